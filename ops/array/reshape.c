/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes as values, and other shapes for the same elements: Reshape Squeeze ExpandDims, Shape ShapeN Size Rank. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static tn_status nothing(tn_kernel_ctx *ctx)
{
  (void)ctx;
  return TN_OK;
}

/* Output 0 has this shape and is input 0. */
static tn_status prepare_view_of(tn_prepare_ctx *ctx, const tn__shape *s, tn_error *err)
{
  tn_status st = tn_prepare_output(ctx, 0, s->dims, s->rank, err);
  return st != TN_OK ? st : tn_prepare_view(ctx, 0, 0, err);
}

static tn_status unknown_operand(const tn_prepare_ctx *ctx, tn_error *err)
{
  return tn_error_set(err, TN_INTERNAL, "%s: the value of input 1 is not known", tn_operation_type(ctx->op));
}

/* ---- Reshape ---- */

/* A parsed list of sizes: the shape, with -1 for a size to be computed (*hole is its index, else
 * -1), and the product of the other sizes that are not 0. */
typedef struct wanted {
  tn__shape shape;
  int32_t hole;
  bool zero;
  int64_t product;
} wanted;

static tn_status wanted_add(wanted *w, const char *op, int64_t size, tn_error *err)
{
  int32_t i = w->shape.rank;
  if (size < -1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %d is %lld", op, (int)i, (long long)size);
  if (size == -1 && w->hole >= 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sizes %d and %d are both -1, only one can be worked out", op,
                        (int)w->hole, (int)i);
  if (size == -1)
    w->hole = i;
  else if (size == 0)
    w->zero = true;
  else if (__builtin_mul_overflow(w->product, size, &w->product))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the wanted sizes have too many elements together", op);
  if (!tn__shape_append(&w->shape, size))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions are wanted", op, TN_MAX_RANK);
  return TN_OK;
}

/* Computes the missing size for an input of known shape, and checks that the number of elements is
 * unchanged. */
static tn_status wanted_fit(wanted *w, const char *op, const int64_t *dims, int32_t rank, tn_error *err)
{
  int64_t all, not_zero = 1;
  bool zero = false;
  for (int32_t i = 0; i < rank; i++) {
    zero |= dims[i] == 0;
    if (dims[i] != 0 && __builtin_mul_overflow(not_zero, dims[i], &not_zero))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has too many elements", op);
  }
  all = zero ? 0 : not_zero;
  char from[160], to[160];
  tn__format_shape(from, sizeof from, dims, rank);
  tn__format_shape(to, sizeof to, w->shape.dims, w->shape.rank);
  if (w->hole >= 0) {
    /* If a wanted size is 0, the input's zeros are ignored: the missing size is still the quotient. */
    int64_t elements = w->zero ? not_zero : all;
    w->shape.dims[w->hole] = elements / w->product;
    if (elements % w->product != 0 && !(w->zero && all == 0))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: input 0 of shape %s has %lld elements, which shape %s cannot hold: they are not a "
                          "multiple of %lld", op, from, (long long)all, to, (long long)w->product);
  }
  int64_t got = w->zero || (w->hole >= 0 && w->shape.dims[w->hole] == 0) ? 0 : w->product;
  if (w->hole >= 0 && got != 0) got *= w->shape.dims[w->hole];
  if (got != all)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 of shape %s has %lld elements, shape %s has %lld", op,
                        from, (long long)all, to, (long long)got);
  return TN_OK;
}

static tn_status reshape_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *sizes = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  if (sizes->rank > 1) return tn__want_rank(ctx, 1, 1, err);
  if (sizes->count > 0 && sizes->data == NULL) return unknown_operand(ctx, err);
  wanted w = { .hole = -1, .product = 1 };
  for (int64_t k = 0; k < sizes->count; k++) {
    tn_status st = wanted_add(&w, op, tn__view_int_at(sizes, k), err);
    if (st != TN_OK) return st;
  }
  tn_status st = wanted_fit(&w, op, in->dims, in->rank, err);
  return st != TN_OK ? st : prepare_view_of(ctx, &w.shape, err);
}

/* Handles sizes that are known in part. A single unknown size is computed if the input's shape is
 * known and none of the other sizes is 0. */
static bool reshape_in_part(const tn_infer_ctx *ctx, tn__shape *s)
{
  const int64_t *items, *dims;
  int64_t n = tn_infer_input_ints(ctx, 1, &items), product = 1, all = 1;
  if (n < 0 || n > TN_MAX_RANK) return false;
  int32_t rank = tn_infer_input(ctx, 0, &dims), hole = -1, holes = 0;
  bool fits = tn__shape_is_known(dims, rank);
  s->rank = (int32_t)n;
  for (int32_t k = 0; k < s->rank; k++) {
    s->dims[k] = items[k] < 0 ? -1 : items[k];
    if (items[k] < 0) hole = k, holes++;
    if (items[k] >= 0 && __builtin_mul_overflow(product, items[k], &product)) fits = false;
  }
  for (int32_t k = 0; k < rank && fits; k++) fits = !__builtin_mul_overflow(all, dims[k], &all);
  if (fits && holes == 1 && product > 0 && all % product == 0) s->dims[hole] = all / product;
  return true;
}

static tn_status infer_reshape(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims, *size_dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims), size_rank = tn_infer_input(ctx, 1, &size_dims);
  const char *op = tn__infer_op(ctx);
  wanted w = { .hole = -1, .product = 1 };
  const tn_tensor *sizes = tn_infer_input_value(ctx, 1);
  if (sizes == NULL || tn_tensor_rank(sizes) > 1) {
    tn__shape_unknown(&w.shape);
    if (sizes == NULL && size_rank <= 1 && reshape_in_part(ctx, &w.shape)) return tn__infer_set(ctx, 0, &w.shape, err);
    if (size_rank > 1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has rank %d, wanted rank 1", op, (int)size_rank);
    if (size_rank == 1 && size_dims[0] >= 0 && size_dims[0] <= TN_MAX_RANK) { /* one dimension per size */
      w.shape.rank = (int32_t)size_dims[0];
      for (int32_t i = 0; i < w.shape.rank; i++) w.shape.dims[i] = -1;
    }
    return tn__infer_set(ctx, 0, &w.shape, err);
  }
  for (int64_t k = 0; k < tn_tensor_elements(sizes); k++) {
    tn_status st = wanted_add(&w, op, tn__tensor_int_at(sizes, k), err);
    if (st != TN_OK) return st;
  }
  if (tn__shape_is_known(dims, rank)) {
    tn_status st = wanted_fit(&w, op, dims, rank, err);
    if (st != TN_OK) return st;
  }
  return tn__infer_set(ctx, 0, &w.shape, err);
}

/* ---- ExpandDims ---- */

/* Inserts a dimension of size 1 at `axis`, in [-rank - 1, rank]. */
static tn_status expand(tn__shape *s, const char *op, int64_t axis, tn_error *err)
{
  int32_t at;
  tn_status st = tn__shape_axis(op, axis, s->rank + 1, &at, err);
  if (st != TN_OK) return st;
  if (!tn__shape_append(s, 1))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %d dimensions already", op, TN_MAX_RANK);
  for (int32_t i = s->rank - 1; i > at; i--) s->dims[i] = s->dims[i - 1];
  s->dims[at] = 1;
  return TN_OK;
}

static tn_status expand_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *axis = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  if (axis->count != 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has %lld elements, wanted one axis", op,
                        (long long)axis->count);
  if (axis->data == NULL) return unknown_operand(ctx, err);
  tn__shape s;
  tn__shape_set(&s, in->dims, in->rank);
  tn_status st = expand(&s, op, tn__view_int_at(axis, 0), err);
  return st != TN_OK ? st : prepare_view_of(ctx, &s, err);
}

static tn_status infer_expand(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  const tn_tensor *axis = tn_infer_input_value(ctx, 1);
  if (s.rank >= 0 && axis != NULL && tn_tensor_elements(axis) == 1) {
    tn_status st = expand(&s, tn__infer_op(ctx), tn__tensor_int_at(axis, 0), err);
    if (st != TN_OK) return st;
  } else if (s.rank >= 0) {
    for (int32_t i = 0; i < s.rank; i++) s.dims[i] = -1;
    if (!tn__shape_append(&s, -1)) tn__shape_unknown(&s);
  }
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- Squeeze ---- */

/* Removes the given dimensions, which must be 1 (or unknown), or all that are 1. */
static tn_status squeeze(tn__shape *s, const char *op, const int64_t *axes, size_t n, tn_error *err)
{
  bool gone[TN_MAX_RANK] = { false };
  for (size_t k = 0; k < n; k++) {
    int32_t at;
    tn_status st = tn__shape_axis(op, axes[k], s->rank, &at, err);
    if (st != TN_OK) return st;
    if (s->dims[at] != 1 && s->dims[at] >= 0) {
      char text[160];
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension %d of shape %s is %lld, wanted 1", op, (int)at,
                          tn__format_shape(text, sizeof text, s->dims, s->rank), (long long)s->dims[at]);
    }
    gone[at] = true;
  }
  int32_t rank = 0;
  for (int32_t i = 0; i < s->rank; i++)
    if (n > 0 ? !gone[i] : s->dims[i] != 1) s->dims[rank++] = s->dims[i];
  s->rank = rank;
  return TN_OK;
}

static tn_status squeeze_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const int64_t *axes;
  size_t n;
  tn_status st = tn_operation_attr_ints(ctx->op, "squeeze_dims", &axes, &n, err);
  if (st != TN_OK) return st;
  tn__shape s;
  tn__shape_set(&s, ctx->inputs[0].dims, ctx->inputs[0].rank);
  st = squeeze(&s, tn_operation_type(ctx->op), axes, n, err);
  return st != TN_OK ? st : prepare_view_of(ctx, &s, err);
}

static tn_status infer_squeeze(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *axes;
  size_t n;
  tn_status st = tn_operation_attr_ints(tn_infer_operation(ctx), "squeeze_dims", &axes, &n, err);
  if (st != TN_OK) return st;
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  if (s.rank >= 0 && n == 0 && !tn__shape_is_known(s.dims, s.rank)) tn__shape_unknown(&s);
  if (s.rank >= 0) st = squeeze(&s, tn__infer_op(ctx), axes, n, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- shapes as values ---- */

/* Checks that a number fits the output's dtype. */
static tn_status check_fits(const tn_prepare_ctx *ctx, uint32_t i, int64_t number, tn_error *err)
{
  if (tn_operation_output_dtype(ctx->op, i) == TN_INT64 || number <= INT32_MAX) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld does not fit into int32, set out_type to int64",
                      tn_operation_type(ctx->op), (long long)number);
}

static tn_status shape_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  for (uint32_t i = 0; i < ctx->n_inputs; i++) {
    const tn_view *in = &ctx->inputs[i];
    for (int32_t k = 0; k < in->rank; k++) {
      tn_status st = check_fits(ctx, i, in->dims[k], err);
      if (st != TN_OK) return st;
    }
    int64_t rank = in->rank;
    tn_status st = tn_prepare_output(ctx, i, &rank, 1, err);
    if (st != TN_OK) return st;
  }
  ctx->cost_ns = 10;
  return TN_OK;
}

static void put_int(tn_view *out, int64_t k, int64_t number)
{
  if (out->dtype == TN_INT64)
    ((int64_t *)out->data)[k] = number;
  else
    ((int32_t *)out->data)[k] = (int32_t)number;
}

static tn_status shape_compute(tn_kernel_ctx *ctx)
{
  for (uint32_t i = 0; i < ctx->n_inputs; i++)
    for (int32_t k = 0; k < ctx->inputs[i]->rank; k++) put_int(ctx->outputs[i], k, ctx->inputs[i]->dims[k]);
  return TN_OK;
}

static tn_status infer_shape(tn_infer_ctx *ctx, tn_error *err)
{
  for (size_t i = 0; i < tn_infer_n_inputs(ctx); i++) {
    const int64_t *dims;
    int64_t rank = tn_infer_input(ctx, i, &dims); /* -1 means unknown for both */
    tn_status st = tn_infer_output(ctx, i, &rank, 1, err);
    int64_t items[TN_MAX_RANK];
    for (int64_t k = 0; k < rank; k++) items[k] = dims[k] < 0 ? TN_UNKNOWN_INT : dims[k];
    if (st == TN_OK && rank >= 0) st = tn_infer_output_ints(ctx, i, items, rank, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* Output 0 is a scalar with this value, if known. */
static tn_status infer_number(tn_infer_ctx *ctx, int64_t value, tn_error *err)
{
  tn_status st = tn_infer_output(ctx, 0, NULL, 0, err);
  return st != TN_OK || value < 0 ? st : tn_infer_output_ints(ctx, 0, &value, 1, err);
}

static tn_status infer_size(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  int64_t n = rank < 0 ? -1 : 1;
  bool zero = false;
  for (int32_t k = 0; k < rank; k++) {
    zero |= dims[k] == 0;
    if (n >= 0 && (dims[k] < 0 || __builtin_mul_overflow(n, dims[k], &n))) n = -1;
  }
  return infer_number(ctx, zero ? 0 : n, err);
}

static tn_status infer_rank_op(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  return infer_number(ctx, tn_infer_input(ctx, 0, &dims), err);
}

static tn_status size_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = check_fits(ctx, 0, ctx->inputs[0].count, err);
  ctx->cost_ns = 10;
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status size_compute(tn_kernel_ctx *ctx)
{
  put_int(ctx->outputs[0], 0, ctx->inputs[0]->count);
  return TN_OK;
}

static tn_status rank_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 10;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status rank_compute(tn_kernel_ctx *ctx)
{
  put_int(ctx->outputs[0], 0, ctx->inputs[0]->rank);
  return TN_OK;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, bits, operands, shapes, text)                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = bits, .shape_operands = operands, .infer = shapes, .summary = text }
#define OUT_TYPE "out_type: {int32, int64} = int32"

static const tn_op_def ops[] = {
  OP("ExpandDims", "input: T, dim: Tdim", "output: T", "T: type; Tdim: {int32, int64} = int32", TN_TRAIT_RESHAPE,
     1u << 1, infer_expand, "inserts a dimension of size 1"),
  OP("Rank", "input: T", "output: int32", "T: type", TN_TRAIT_SHAPE_ONLY, 0, infer_rank_op,
     "number of dimensions"),
  OP("Reshape", "tensor: T, shape: Tshape", "output: T", "T: type; Tshape: {int32, int64} = int32", TN_TRAIT_RESHAPE,
     1u << 1, infer_reshape, "reshapes a tensor"),
  OP("Shape", "input: T", "output: out_type", "T: type; " OUT_TYPE, TN_TRAIT_SHAPE_ONLY, 0,
     infer_shape,
     "shape of a tensor as a vector"),
  OP("ShapeN", "input: N * T", "output: N * out_type", "N: int >= 1; T: type; " OUT_TYPE, TN_TRAIT_SHAPE_ONLY, 0,
     infer_shape,
     "shapes of tensors as vectors"),
  OP("Size", "input: T", "output: out_type", "T: type; " OUT_TYPE, TN_TRAIT_SHAPE_ONLY, 0, infer_size,
     "number of elements"),
  OP("Squeeze", "input: T", "output: T", "T: type; squeeze_dims: list(int) = []", TN_TRAIT_RESHAPE, 0, infer_squeeze,
     "removes dimensions of size 1"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("ExpandDims", "expand_dims_cpu", expand_prepare, nothing),
  KERNEL("Rank", "rank_cpu", rank_prepare, rank_compute),
  KERNEL("Reshape", "reshape_cpu", reshape_prepare, nothing),
  KERNEL("Shape", "shape_cpu", shape_prepare, shape_compute),
  KERNEL("ShapeN", "shape_n_cpu", shape_prepare, shape_compute),
  KERNEL("Size", "size_cpu", size_prepare, size_compute),
  KERNEL("Squeeze", "squeeze_cpu", squeeze_prepare, nothing),
};

TN_OP_FAMILY(reshape)
