/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites of the pass "algebra": removes nodes that have no effect, and merges two steps into one.
 *
 *   neutral    x*1, x/1, x-0, x + -0.0 (and x+0 of integers), where the constant does not widen the shape
 *   twice      Neg of Neg, LogicalNot of LogicalNot, Invert of Invert
 *   reshape    Reshape and Squeeze to the input's shape, Reshape of the result of a node that only reshapes
 *   transpose  Transpose by the identity permutation, Transpose of Transpose
 *   nothing    Cast to the same type, split into one part, slice of the whole tensor, padding by 0
 *   pad_conv   zeros around an image that a convolution reads become paddings of the convolution
 *
 * All but the last give the same bits. -0.0 + 0.0 is 0.0, so a positive zero is not a neutral element of float
 * addition. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <tenon/rewrite.h>

static tn_status replace(tn_rewriter *rw, uint32_t node, uint32_t value)
{
  tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), value);
  return TN_OK;
}

static bool is_ints(const tn_tensor *t)
{
  return t != NULL && (tn_tensor_dtype(t) == TN_INT32 || tn_tensor_dtype(t) == TN_INT64) &&
         (tn_tensor_data(t) != NULL || tn_tensor_elements(t) == 0);
}

/* The input's value if it is a constant vector of integers; otherwise NULL. */
static const tn_tensor *ints_of(const tn_rewriter *rw, uint32_t node, uint32_t input)
{
  const tn_tensor *t = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, input));
  return is_ints(t) && tn_tensor_rank(t) == 1 ? t : NULL;
}

/* ---- neutral elements ---- */

enum { ONE, ZERO, MINUS_ZERO };

/* The bits of a number in a type; false if the rewrite does not handle the type. */
static bool bits_of(tn_dtype dtype, int number, uint64_t *bits)
{
  static const struct {
    tn_dtype dtype;
    uint64_t one, minus_zero;
  } types[] = {
    { TN_HALF, 0x3c00, 0x8000 },
    { TN_BFLOAT16, 0x3f80, 0x8000 },
    { TN_FLOAT, 0x3f800000, 0x80000000 },
    { TN_DOUBLE, UINT64_C(0x3ff0000000000000), UINT64_C(1) << 63 },
    { TN_INT8, 1, 0 }, { TN_INT16, 1, 0 }, { TN_INT32, 1, 0 }, { TN_INT64, 1, 0 },
    { TN_UINT8, 1, 0 }, { TN_UINT16, 1, 0 }, { TN_UINT32, 1, 0 }, { TN_UINT64, 1, 0 },
  };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].dtype == dtype) {
      *bits = number == ONE ? types[i].one : types[i].minus_zero;
      if (number == ZERO) *bits = 0;
      return true;
    }
  return false;
}

static bool all_are(const tn_tensor *t, int number)
{
  uint64_t bits;
  size_t size = tn_dtype_size(tn_tensor_dtype(t));
  const char *data = tn_tensor_data(t);
  if (!bits_of(tn_tensor_dtype(t), number, &bits) || data == NULL) return false;
  for (int64_t i = 0; i < tn_tensor_elements(t); i++)
    if (memcmp(data + (size_t)i * size, &bits, size) != 0) return false; /* little-endian, as configure demands */
  return true;
}

/* True if x and a constant broadcast to the shape of x. */
static bool keeps_shape(const tn_rewriter *rw, uint32_t x, const tn_tensor *t)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, x, dims), n = tn_tensor_rank(t);
  if (n == 0) return true;
  if (rank < n) return false;
  for (int32_t d = 0; d < n; d++) {
    int64_t dim = tn_tensor_dims(t)[d];
    if (dim != 1 && dim != dims[rank - n + d]) return false;
  }
  return true;
}

static tn_status neutral(tn_rewriter *rw, uint32_t node, uint32_t constant, int number)
{
  uint32_t x = tn_rewrite_input(rw, node, 1 - constant);
  const tn_tensor *t = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, constant));
  if (t == NULL || tn_rewrite_dtype(rw, x) != tn_tensor_dtype(t) || !keeps_shape(rw, x, t) || !all_are(t, number))
    return TN_OK;
  return replace(rw, node, x);
}

static tn_status drop_product(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t before = tn_rewrite_output(rw, node, 0);
  tn_status st = neutral(rw, node, 1, ONE);
  return tn_rewrite_output(rw, node, 0) != before ? st : neutral(rw, node, 0, ONE);
}

static tn_status drop_quotient(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  /* RealDiv has no kernel for integers: a graph that fails must still fail */
  tn_dtype dtype = tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0));
  bool real = dtype == TN_FLOAT || dtype == TN_DOUBLE || dtype == TN_HALF || dtype == TN_BFLOAT16;
  if (tn_rewrite_is(rw, node, "RealDiv") && !real) return TN_OK;
  (void)err;
  return neutral(rw, node, 1, ONE);
}

static tn_status drop_sum(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t before = tn_rewrite_output(rw, node, 0);
  tn_status st = neutral(rw, node, 1, MINUS_ZERO);
  return tn_rewrite_output(rw, node, 0) != before ? st : neutral(rw, node, 0, MINUS_ZERO);
}

static tn_status drop_difference(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  return neutral(rw, node, 1, ZERO);
}

static tn_status drop_twice(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t inner = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, 0), NULL);
  if (!tn_rewrite_is(rw, inner, tn_operation_type(tn_rewrite_operation(rw, node)))) return TN_OK;
  return replace(rw, node, tn_rewrite_input(rw, inner, 0));
}

/* ---- reshape ---- */

/* True if the shapes are equal as far as they are known, with at most one unknown dimension. Equal element counts then
 * imply that this dimension is equal, too. */
static bool same_shape(const tn_rewriter *rw, uint32_t a, uint32_t b)
{
  int64_t x[TN_MAX_RANK], y[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, a, x), unknown = 0;
  bool empty = false;
  if (rank < 0 || tn_rewrite_shape(rw, b, y) != rank) return false;
  for (int32_t d = 0; d < rank; d++) {
    if (x[d] != y[d]) return false;
    unknown += x[d] < 0;
    empty |= x[d] == 0;
  }
  return unknown == 0 || (unknown == 1 && !empty);
}

static bool is_known(const tn_rewriter *rw, uint32_t value)
{
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, value, dims);
  return rank >= 0 && tn__shape_is_known(dims, rank);
}

/* True if a Reshape to [.., -1, ..] fits whatever the unknown sizes are. */
static bool always_divides(const tn_rewriter *rw, uint32_t node)
{
  const tn_tensor *shape = ints_of(rw, node, 1);
  int64_t dims[TN_MAX_RANK], have = 1, want = 1;
  int32_t rank = tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 0), dims), open = 0;
  if (shape == NULL || rank < 0) return false;
  for (int32_t d = 0; d < rank; d++)
    if (dims[d] >= 0 && __builtin_mul_overflow(have, dims[d], &have)) return false;
  for (int64_t i = 0; i < tn_tensor_elements(shape); i++) {
    int64_t dim = tn__tensor_int_at(shape, i);
    open += dim == -1;
    if (dim != -1 && (dim <= 0 || __builtin_mul_overflow(want, dim, &want))) return false;
  }
  return open == 1 && have % want == 0;
}

/* True if a node that only reshapes cannot fail, whatever the unknown sizes are: errors must not be optimised away. The
 * inferred shape of a Reshape to unknown sizes holds only if it does not fail. */
static bool cannot_fail(const tn_rewriter *rw, uint32_t node)
{
  if (tn_rewrite_is(rw, node, "Reshape") && ints_of(rw, node, 1) == NULL) return false;
  if (is_known(rw, tn_rewrite_input(rw, node, 0)) && is_known(rw, tn_rewrite_output(rw, node, 0))) return true;
  return tn_rewrite_is(rw, node, "Reshape") && always_divides(rw, node);
}

/* True if the node only changes the dimensions of its first input and cannot fail. */
static bool only_reshapes(const tn_rewriter *rw, uint32_t node)
{
  bool one =
      tn_rewrite_is(rw, node, "Reshape") || tn_rewrite_is(rw, node, "ExpandDims") || tn_rewrite_is(rw, node, "Squeeze");
  return one && cannot_fail(rw, node);
}

static tn_status join_reshapes(tn_rewriter *rw, uint32_t node, uint32_t x, tn_error *err)
{
  uint32_t inputs[2] = { x, tn_rewrite_input(rw, node, 1) }, made;
  tn_operation_builder *b = tn_rewrite_begin(rw, "Reshape", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, "T Tshape");
  tn_status st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  return st == TN_OK ? replace(rw, node, tn_rewrite_output(rw, made, 0)) : st;
}

static tn_status drop_reshape(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t x = tn_rewrite_input(rw, node, 0), inner = tn_rewrite_producer(rw, x, NULL);
  bool sure = tn_rewrite_is(rw, node, "Squeeze") || cannot_fail(rw, node); /* equal rank: a Squeeze removed nothing */
  if (sure && same_shape(rw, x, tn_rewrite_output(rw, node, 0))) return replace(rw, node, x);
  if (!only_reshapes(rw, inner)) return TN_OK;
  x = tn_rewrite_input(rw, inner, 0);
  if (cannot_fail(rw, node) && same_shape(rw, x, tn_rewrite_output(rw, node, 0))) return replace(rw, node, x);
  return tn_rewrite_is(rw, node, "Reshape") ? join_reshapes(rw, node, x, err) : TN_OK;
}

/* ---- transpose ---- */

/* Reads the permutation of a Transpose. Returns its length, or -1 if it is not a valid constant permutation. */
static int32_t permutation(const tn_rewriter *rw, uint32_t node, int32_t *perm)
{
  const tn_tensor *t = ints_of(rw, node, 1);
  uint32_t seen = 0;
  if (t == NULL || tn_tensor_elements(t) > TN_MAX_RANK || tn_tensor_elements(t) > 31) return -1;
  int32_t n = (int32_t)tn_tensor_elements(t);
  for (int32_t i = 0; i < n; i++) {
    int64_t p = tn__tensor_int_at(t, i);
    if (p < -n || p >= n) return -1;
    perm[i] = (int32_t)(p < 0 ? p + n : p);
    if (seen >> perm[i] & 1) return -1;
    seen |= 1u << perm[i];
  }
  return n;
}

static bool has_rank(const tn_rewriter *rw, uint32_t value, int32_t rank)
{
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_shape(rw, value, dims) == rank;
}

static tn_status add_transpose(tn_rewriter *rw, uint32_t node, uint32_t x, const int32_t *perm, int32_t n,
                               tn_error *err)
{
  tn_tensor *t;
  const int64_t length = n;
  uint32_t inputs[2] = { x, 0 }, made;
  tn_status st = tn_tensor_create(TN_INT32, &length, 1, &t, err);
  if (st != TN_OK) return st;
  if (n > 0) memcpy(tn_tensor_data(t), perm, (size_t)n * sizeof *perm);
  st = tn_rewrite_add_constant(rw, t, &inputs[1], err);
  tn_tensor_unref(t);
  if (st != TN_OK) return st;
  tn_operation_builder *b = tn_rewrite_begin(rw, "Transpose", node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, "T");
  tn_operation_set_type(b, "Tperm", TN_INT32);
  st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  return st == TN_OK ? replace(rw, node, tn_rewrite_output(rw, made, 0)) : st;
}

static tn_status drop_transpose(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  int32_t outer[TN_MAX_RANK], inner[TN_MAX_RANK], n = permutation(rw, node, outer);
  uint32_t x = tn_rewrite_input(rw, node, 0), in = tn_rewrite_producer(rw, x, NULL);
  bool joined = n >= 0 && tn_rewrite_is(rw, in, "Transpose") && permutation(rw, in, inner) == n, moves = false;
  if (n < 0) return TN_OK;
  if (joined) {
    x = tn_rewrite_input(rw, in, 0);
    for (int32_t i = 0; i < n; i++) outer[i] = inner[outer[i]];
  }
  for (int32_t i = 0; i < n; i++) moves |= outer[i] != i;
  if (!moves) return has_rank(rw, x, n) ? replace(rw, node, x) : TN_OK;
  return joined ? add_transpose(rw, node, x, outer, n, err) : TN_OK;
}

/* ---- nodes without effect ---- */

static tn_status drop_cast(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t x = tn_rewrite_input(rw, node, 0);
  return tn_rewrite_dtype(rw, x) == tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) ? replace(rw, node, x) : TN_OK;
}

/* Split(axis, x) into one part, if the axis is known to be valid. */
static tn_status drop_split(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t x = tn_rewrite_input(rw, node, 1);
  const tn_tensor *axis = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, 0));
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, x, dims);
  if (tn_operation_n_outputs(tn_rewrite_operation(rw, node)) != 1) return TN_OK;
  if (!is_ints(axis) || tn_tensor_elements(axis) != 1 || rank < 1) return TN_OK;
  int64_t at = tn__tensor_int_at(axis, 0);
  return at >= -rank && at < rank ? replace(rw, node, x) : TN_OK;
}

static bool text_is(const tn_operation *op, const char *attr, const char *wanted)
{
  const char *text;
  size_t size;
  return tn_operation_attr_string(op, attr, &text, &size, NULL) == TN_OK && size == strlen(wanted) &&
         memcmp(text, wanted, size) == 0;
}

/* True if a node that pads by 0 cannot fail, whatever the unknown sizes are. PadV2 requires a scalar padding value;
 * REFLECT rejects a dimension of size 0, which has no element beside the edge. */
static bool pads_at_ease(const tn_rewriter *rw, uint32_t node)
{
  int64_t dims[TN_MAX_RANK];
  if (tn_rewrite_is(rw, node, "PadV2")) return has_rank(rw, tn_rewrite_input(rw, node, 2), 0);
  if (!tn_rewrite_is(rw, node, "MirrorPad") || text_is(tn_rewrite_operation(rw, node), "mode", "SYMMETRIC"))
    return true;
  int32_t rank = tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 0), dims);
  for (int32_t d = 0; d < rank; d++)
    if (dims[d] < 1) return false;
  return rank >= 0;
}

static tn_status drop_pad(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t x = tn_rewrite_input(rw, node, 0);
  const tn_tensor *t = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, 1));
  if (!is_ints(t) || tn_tensor_rank(t) != 2 || !has_rank(rw, x, (int32_t)tn_tensor_dims(t)[0])) return TN_OK;
  if (tn_tensor_dims(t)[1] != 2 || !pads_at_ease(rw, node)) return TN_OK;
  for (int64_t i = 0; i < tn_tensor_elements(t); i++)
    if (tn__tensor_int_at(t, i) != 0) return TN_OK;
  return replace(rw, node, x);
}

static tn_status drop_slice(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  uint32_t x = tn_rewrite_input(rw, node, 0);
  const tn_tensor *begin = ints_of(rw, node, 1), *size = ints_of(rw, node, 2);
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, x, dims);
  if (begin == NULL || size == NULL || rank < 0) return TN_OK;
  if (tn_tensor_elements(begin) != rank || tn_tensor_elements(size) != rank) return TN_OK;
  for (int32_t d = 0; d < rank; d++) {
    int64_t n = tn__tensor_int_at(size, d);
    if (tn__tensor_int_at(begin, d) != 0 || (n != -1 && n != dims[d])) return TN_OK;
  }
  return replace(rw, node, x);
}

static tn_status drop_strided_slice(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  (void)err;
  const tn_operation *op = tn_rewrite_operation(rw, node);
  uint32_t x = tn_rewrite_input(rw, node, 0);
  const tn_tensor *begin = ints_of(rw, node, 1), *end = ints_of(rw, node, 2), *stride = ints_of(rw, node, 3);
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, x, dims);
  if (begin == NULL || end == NULL || stride == NULL || tn_tensor_elements(begin) > rank) return TN_OK;
  if (tn_tensor_elements(end) != tn_tensor_elements(begin) || tn_tensor_elements(stride) != tn_tensor_elements(begin))
    return TN_OK;
  if (tn__attr_int(op, "ellipsis_mask", 0) != 0 || tn__attr_int(op, "new_axis_mask", 0) != 0 ||
      tn__attr_int(op, "shrink_axis_mask", 0) != 0)
    return TN_OK;
  for (int32_t d = 0; d < tn_tensor_elements(begin); d++) {
    bool from_start = tn__attr_int(op, "begin_mask", 0) >> d & 1 || tn__tensor_int_at(begin, d) == 0;
    bool to_end = tn__attr_int(op, "end_mask", 0) >> d & 1 || (dims[d] >= 0 && tn__tensor_int_at(end, d) >= dims[d]);
    if (!from_start || !to_end || tn__tensor_int_at(stride, d) != 1) return TN_OK;
  }
  return replace(rw, node, x);
}

/* ---- paddings ---- */

/* True if `pad` adds zeros around rows and columns and is read only by this node. */
static bool reads_padded(const tn_rewriter *rw, uint32_t node, uint32_t pad, int64_t *paddings)
{
  if (!tn_rewrite_is(rw, pad, "Pad") && !tn_rewrite_is(rw, pad, "PadV2")) return false;
  if (tn_rewrite_n_uses(rw, tn_rewrite_output(rw, pad, 0)) != 1) return false;
  const tn_tensor *t = tn_rewrite_constant(rw, tn_rewrite_input(rw, pad, 1));
  if (!is_ints(t) || tn_tensor_rank(t) != 2 || tn_tensor_dims(t)[0] != 4 || tn_tensor_dims(t)[1] != 2) return false;
  if (tn_rewrite_n_inputs(rw, pad) > 2) {
    const tn_tensor *with = tn_rewrite_constant(rw, tn_rewrite_input(rw, pad, 2));
    if (with == NULL || tn_tensor_rank(with) != 0 || !all_are(with, ZERO)) return false;
  }
  int32_t channels = text_is(tn_rewrite_operation(rw, node), "data_format", "NCHW") ? 1 : 3;
  for (int32_t i = 0; i < 8; i++) {
    paddings[i] = tn__tensor_int_at(t, i);
    bool inside = i / 2 != 0 && i / 2 != channels;
    if (paddings[i] < 0 || paddings[i] > INT32_MAX || (!inside && paddings[i] != 0)) return false;
  }
  return true;
}

static tn_status take_padding(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  const tn_operation *op = tn_rewrite_operation(rw, node);
  uint32_t pad = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, 0), NULL), made;
  int64_t paddings[8];
  if (!text_is(op, "padding", "VALID") || !reads_padded(rw, node, pad, paddings)) return TN_OK;
  const uint32_t inputs[2] = { tn_rewrite_input(rw, pad, 0), tn_rewrite_input(rw, node, 1) };
  tn_operation_builder *b = tn_rewrite_begin(rw, tn_operation_type(op), node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, "T strides data_format dilations use_cudnn_on_gpu");
  tn_operation_set_string(b, "padding", "EXPLICIT", 8);
  tn_operation_set_ints(b, "explicit_paddings", paddings, 8);
  tn_status st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  return st == TN_OK ? replace(rw, node, tn_rewrite_output(rw, made, 0)) : st;
}

#define REWRITE(text, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "algebra", .name = text, .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("neutral", "Mul", drop_product),
  REWRITE("neutral", "Div", drop_quotient),
  REWRITE("neutral", "RealDiv", drop_quotient),
  REWRITE("neutral", "Add", drop_sum),
  REWRITE("neutral", "AddV2", drop_sum),
  REWRITE("neutral", "Sub", drop_difference),
  REWRITE("twice", "Neg", drop_twice),
  REWRITE("twice", "LogicalNot", drop_twice),
  REWRITE("twice", "Invert", drop_twice),
  REWRITE("reshape", "Reshape", drop_reshape),
  REWRITE("reshape", "Squeeze", drop_reshape),
  REWRITE("transpose", "Transpose", drop_transpose),
  REWRITE("nothing", "Cast", drop_cast),
  REWRITE("nothing", "Split", drop_split),
  REWRITE("nothing", "Pad", drop_pad),
  REWRITE("nothing", "PadV2", drop_pad),
  REWRITE("nothing", "MirrorPad", drop_pad),
  REWRITE("nothing", "Slice", drop_slice),
  REWRITE("nothing", "StridedSlice", drop_strided_slice),
  REWRITE("pad_conv", "Conv2D", take_padding),
  REWRITE("pad_conv", "DepthwiseConv2dNative", take_padding),
};

TN_REWRITE_FAMILY(algebra)
