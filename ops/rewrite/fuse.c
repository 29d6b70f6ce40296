/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites around products (Conv2D, DepthwiseConv2dNative, MatMul of float):
 *
 *   batch_norm  FusedBatchNorm with constants becomes a multiplication by and an addition of constants. A
 * multiplication after a product with a constant filter is folded into the filter; if a constant bias is between them,
 * the multiplication is first moved before the bias. All of this only if the new constants are finite, far from the
 * largest float, and keep all their digits. fuse        a step after a product, if nothing else reads the product,
 * becomes part of it: a bias, the addition of a tensor of the same shape, an
 * activation */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/product/factors.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <tenon/rewrite.h>

#define CONV_ATTRS "strides padding explicit_paddings data_format dilations"
#define MATMUL_ATTRS "transpose_a transpose_b"

typedef struct product {
  const char *plain, *fused, *attrs;
} product;

static const product products[] = {
  { "Conv2D", "_TnConv2D", CONV_ATTRS },
  { "DepthwiseConv2dNative", "_TnDepthwiseConv2D", CONV_ATTRS },
  { "MatMul", "_TnMatMul", MATMUL_ATTRS },
};

/* The product that computes a float value with channels last, if the value has a single use; otherwise NULL. */
static const product *product_of(const tn_rewriter *rw, uint32_t value, uint32_t *node)
{
  *node = tn_rewrite_producer(rw, value, NULL);
  if (*node == TN_NO_NODE || tn_rewrite_dtype(rw, value) != TN_FLOAT || tn_rewrite_n_uses(rw, value) != 1) return NULL;
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    if (!tn_rewrite_is(rw, *node, products[i].plain) && !tn_rewrite_is(rw, *node, products[i].fused)) continue;
    const char *text;
    size_t size;
    if (tn_operation_attr_string(tn_rewrite_operation(rw, *node), "data_format", &text, &size, NULL) == TN_OK &&
        (size != 4 || memcmp(text, "NHWC", 4) != 0))
      return NULL;
    return &products[i];
  }
  return NULL;
}

/* ---- fuse ---- */

typedef struct steps {
  const char *names[TN__EPILOGUE_STEPS];
  uint32_t inputs[2 + TN__EPILOGUE_STEPS];
  size_t n;
  uint32_t n_inputs;
  bool ended; /* the last step is an activation: no more steps are fused */
} steps;

static const char *const step_names[] = { "BiasAdd", "Add", "Relu", "Relu6", "LeakyRelu", "Tanh", "Sigmoid",
                                          "_TnSwish", "_TnHardSigmoid", "_TnHardSwish", "_TnMish", "_TnGelu",
                                          "_TnGeluTanh" };

static void read_steps(const tn_rewriter *rw, uint32_t node, steps *s)
{
  const tn_operation *op = tn_rewrite_operation(rw, node);
  *s = (steps){ .n_inputs = tn_rewrite_n_inputs(rw, node) };
  for (uint32_t i = 0; i < s->n_inputs && i < 2 + TN__EPILOGUE_STEPS; i++) s->inputs[i] = tn_rewrite_input(rw, node, i);
  const char *text;
  size_t size, n = 0;
  if (tn_operation_attr_string_at(op, "fused_ops", 0, &text, &size, &n, NULL) != TN_OK) return;
  for (size_t i = 0; i < n && i < TN__EPILOGUE_STEPS; i++) {
    tn_operation_attr_string_at(op, "fused_ops", i, &text, &size, NULL, NULL);
    for (size_t k = 0; k < sizeof step_names / sizeof *step_names; k++)
      if (strlen(step_names[k]) == size && memcmp(step_names[k], text, size) == 0) {
        s->names[s->n++] = step_names[k];
        if (k >= 2) s->ended = true;
      }
  }
}

/* Replaces output 0 of `root` by a new product with one additional step. */
static tn_status add_step(tn_rewriter *rw, uint32_t root, uint32_t node, const product *p, const char *step,
                          uint32_t arg, float alpha, tn_error *err)
{
  steps s;
  read_steps(rw, node, &s);
  if (s.ended || s.n == TN__EPILOGUE_STEPS) return TN_OK;
  s.names[s.n++] = step;
  if (arg != TN_NO_NODE) s.inputs[s.n_inputs++] = arg;
  size_t sizes[TN__EPILOGUE_STEPS];
  for (size_t i = 0; i < s.n; i++) sizes[i] = strlen(s.names[i]);
  tn_operation_builder *b = tn_rewrite_begin(rw, p->fused, root);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, node, p->attrs);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_int(b, "num_args", (int64_t)s.n_inputs - 2);
  tn_operation_set_strings(b, "fused_ops", (const void *const *)s.names, sizes, s.n);
  tn_operation_set_float(b, "leakyrelu_alpha", alpha);
  uint32_t made;
  tn_status st = tn_rewrite_finish(rw, b, s.inputs, s.n_inputs, 2, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, root, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

static tn_status fuse_bias(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t at;
  const product *p = product_of(rw, tn_rewrite_input(rw, node, 0), &at);
  const char *text;
  size_t size;
  if (tn_operation_attr_string(tn_rewrite_operation(rw, node), "data_format", &text, &size, NULL) == TN_OK &&
      (size != 4 || memcmp(text, "NHWC", 4) != 0))
    return TN_OK;
  return p == NULL ? TN_OK : add_step(rw, node, at, p, "BiasAdd", tn_rewrite_input(rw, node, 1), 0, err);
}

static tn_status fuse_activation(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  uint32_t at;
  const product *p = product_of(rw, tn_rewrite_input(rw, node, 0), &at);
  const tn_operation *op = tn_rewrite_operation(rw, node);
  return p == NULL ? TN_OK : add_step(rw, node, at, p, tn_operation_type(op), TN_NO_NODE,
                                      tn__attr_float(op, "alpha", 0.2f), err);
}

/* If the constant has one value per channel of a value of this rank, and all its other dimensions are 1, *out is a
 * vector of its values. */
static tn_status as_channels(tn_rewriter *rw, uint32_t constant, int32_t rank, int64_t channels, uint32_t *out,
                             tn_error *err)
{
  int64_t dims[TN_MAX_RANK];
  int32_t own = tn_rewrite_shape(rw, constant, dims);
  *out = TN_NO_NODE;
  if (!tn_rewrite_is_constant(rw, constant) || own < 1 || own > rank || dims[own - 1] != channels) return TN_OK;
  tn_tensor *t = (tn_tensor *)tn_rewrite_constant(rw, constant), *flat;
  if (t == NULL || tn_tensor_rank(t) < 1 || tn_tensor_rank(t) > rank || tn_tensor_elements(t) != channels ||
      tn_tensor_dims(t)[tn_tensor_rank(t) - 1] != channels || tn_tensor_dtype(t) != TN_FLOAT)
    return TN_OK;
  if (tn_tensor_rank(t) == 1) {
    *out = constant;
    return TN_OK;
  }
  tn_status st = tn_tensor_reshape(t, &channels, 1, &flat, err);
  if (st != TN_OK) return st;
  st = tn_rewrite_add_constant(rw, flat, out, err);
  tn_tensor_unref(flat);
  return st;
}

/* The value from which a value's first dimension originates: skips ops that pass it on unchanged from an input. */
static uint32_t batch_origin(const tn_rewriter *rw, uint32_t value)
{
  static const char *const hand_on[] = { "Conv2D",
                                         "DepthwiseConv2dNative",
                                         "_TnConv2D",
                                         "_TnDepthwiseConv2D",
                                         "BiasAdd",
                                         "Relu",
                                         "Relu6",
                                         "LeakyRelu",
                                         "MaxPool",
                                         "AvgPool",
                                         "FusedBatchNorm",
                                         "FusedBatchNormV2",
                                         "FusedBatchNormV3",
                                         "Sigmoid",
                                         "Tanh",
                                         "_TnSwish",
                                         "_TnHardSigmoid",
                                         "_TnHardSwish",
                                         "_TnMish",
                                         "_TnGelu",
                                         "_TnGeluTanh" };
  for (uint32_t node; (node = tn_rewrite_producer(rw, value, NULL)) != TN_NO_NODE;) {
    bool found = false;
    for (size_t i = 0; !found && i < sizeof hand_on / sizeof *hand_on; i++) found = tn_rewrite_is(rw, node, hand_on[i]);
    bool sum = tn_rewrite_is(rw, node, "Add") || tn_rewrite_is(rw, node, "AddV2") || tn_rewrite_is(rw, node, "Mul");
    if (sum && tn_rewrite_is_constant(rw, tn_rewrite_input(rw, node, 1))) {
      int64_t dims[TN_MAX_RANK];
      int32_t whole = tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 0), dims);
      int32_t rank = tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 1), dims);
      found = rank < whole || (rank > 0 && dims[0] == 1);
    }
    if (!found) break;
    value = tn_rewrite_input(rw, node, 0);
  }
  return value;
}

/* True if the shapes are equal. All dimensions must be known, except the first, which must then have the same
 * origin. */
static bool same_shape(const tn_rewriter *rw, uint32_t a, uint32_t b)
{
  int64_t x[TN_MAX_RANK], y[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, a, x);
  if (rank < 1 || tn_rewrite_shape(rw, b, y) != rank) return false;
  for (int32_t d = 0; d < rank; d++)
    if (x[d] != y[d] || (x[d] < 0 && d > 0)) return false;
  return x[0] >= 0 || batch_origin(rw, a) == batch_origin(rw, b);
}

static tn_status fuse_add(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t value = tn_rewrite_input(rw, node, side), other = tn_rewrite_input(rw, node, 1 - side), at, bias;
    const product *p = product_of(rw, value, &at);
    int64_t dims[TN_MAX_RANK];
    int32_t rank = tn_rewrite_shape(rw, value, dims);
    if (p == NULL || rank < 1 || dims[rank - 1] < 0) continue;
    tn_status st = as_channels(rw, other, rank, dims[rank - 1], &bias, err);
    if (st != TN_OK) return st;
    if (bias != TN_NO_NODE) return add_step(rw, node, at, p, "BiasAdd", bias, 0, err);
    if (!tn_rewrite_is_constant(rw, other) && same_shape(rw, value, other))
      return add_step(rw, node, at, p, "Add", other, 0, err);
  }
  return TN_OK;
}

/* ---- batch_norm ---- */

/* Sets *may if the filter may be multiplied by the scale without loss (factors.h). */
static tn_status may_scale(tn_rewriter *rw, uint32_t filter, const tn_tensor *scale, int64_t channels, bool *may,
                           tn_error *err)
{
  tn_tensor *f;
  *may = false;
  tn_status st = tn_rewrite_elements(rw, filter, &f, err);
  const float *w = st == TN_OK && f != NULL ? tn_tensor_data(f) : NULL, *by = tn_tensor_data(scale);
  if (w != NULL && by != NULL) *may = tn__filter_may_scale(w, tn_tensor_elements(f) / channels, by, channels);
  tn_tensor_unref(f);
  return st;
}

/* filter * scale, with the scale along the last dimension of the product's output: that of a filter [.., C] for
 * Conv2D and MatMul, or of a depthwise filter [.., C, M]. *out is TN_NO_NODE if that is not possible. */
static tn_status scale_filter(tn_rewriter *rw, uint32_t like, uint32_t filter, uint32_t scale, bool depthwise,
                              uint32_t *out, tn_error *err)
{
  const tn_tensor *s = tn_rewrite_constant(rw, scale);
  int64_t dims[TN_MAX_RANK];
  int32_t rank = tn_rewrite_shape(rw, filter, dims);
  int64_t channels = dims[rank - 1] * (depthwise ? dims[rank - 2] : 1);
  tn_tensor *spread;
  *out = TN_NO_NODE;
  bool may;
  if (s == NULL || channels != tn_tensor_elements(s) || channels == 0) return TN_OK;
  tn_status st = may_scale(rw, filter, s, channels, &may, err);
  if (st != TN_OK || !may) return st;
  uint32_t inputs[2] = { filter, scale };
  if (depthwise) {
    st = tn_tensor_reshape((tn_tensor *)s, dims + rank - 2, 2, &spread, err);
    if (st != TN_OK) return st;
    st = tn_rewrite_add_constant(rw, spread, &inputs[1], err);
    tn_tensor_unref(spread);
    if (st != TN_OK) return st;
  }
  tn_operation_builder *b = tn_rewrite_begin(rw, "Mul", like);
  return b == NULL ? tn__no_memory(err, "plan", 0) : tn_rewrite_compute(rw, b, inputs, 2, out, err);
}

static tn_status with_filter(tn_rewriter *rw, uint32_t node, uint32_t at, const product *p, uint32_t filter,
                             tn_error *err)
{
  uint32_t inputs[2] = { tn_rewrite_input(rw, at, 0), filter }, made;
  tn_operation_builder *b = tn_rewrite_begin(rw, p->plain, node);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_rewrite_copy_attrs(rw, b, at, p->attrs);
  tn_status st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

/* Replaces (x * filter) * scale by x * (filter * scale). */
static tn_status fold_scale(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t value = tn_rewrite_input(rw, node, side), at, scale;
    const product *p = product_of(rw, value, &at);
    if (p == NULL || !tn_rewrite_is(rw, at, p->plain)) continue;
    int64_t dims[TN_MAX_RANK];
    int32_t rank = tn_rewrite_shape(rw, value, dims);
    if (!tn_rewrite_is_constant(rw, tn_rewrite_input(rw, at, 1)) || rank < 1 || dims[rank - 1] < 0) continue;
    if (tn__attr_bool(tn_rewrite_operation(rw, at), "transpose_b", false)) continue;
    tn_status st = as_channels(rw, tn_rewrite_input(rw, node, 1 - side), rank, dims[rank - 1], &scale, err);
    if (st != TN_OK || scale == TN_NO_NODE) return st;
    uint32_t scaled;
    st = scale_filter(rw, node, tn_rewrite_input(rw, at, 1), scale, p == &products[1], &scaled, err);
    return st == TN_OK && scaled != TN_NO_NODE ? with_filter(rw, node, at, p, scaled, err) : st;
  }
  return TN_OK;
}

/* y = x * s + t with s = scale / sqrt(variance + epsilon), t = offset - mean * s. *sound: s and t keep the
 * precision of their operands and are finite, which a variance of 0 can prevent. */
static tn_status norm_constants(const tn_tensor *const *in, float epsilon, tn_tensor **s, tn_tensor **t, bool *sound,
                                tn_error *err)
{
  int64_t n = tn_tensor_elements(in[0]);
  *sound = true;
  tn_status st = tn_tensor_create(TN_FLOAT, &n, 1, s, err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, &n, 1, t, err);
  if (st != TN_OK) return st;
  const float *v[4];
  for (int i = 0; i < 4; i++) v[i] = tn_tensor_data(in[i]);
  float *to_s = tn_tensor_data(*s), *to_t = tn_tensor_data(*t);
  for (int64_t i = 0; i < n; i++) {
    double k = (double)v[0][i] / sqrt((double)v[3][i] + (double)epsilon), shift = (double)v[1][i] - (double)v[2][i] * k;
    to_s[i] = (float)k;
    to_t[i] = (float)shift;
    *sound &= tn__keeps_digits(k) && tn__keeps_digits(shift);
  }
  return TN_OK;
}

static tn_status binary(tn_rewriter *rw, uint32_t like, const char *op, uint32_t x, tn_tensor *constant, uint32_t *out,
                        tn_error *err)
{
  uint32_t inputs[2] = { x, 0 }, made;
  tn_status st = tn_rewrite_add_constant(rw, constant, &inputs[1], err);
  if (st != TN_OK) return st;
  tn_operation_builder *b = tn_rewrite_begin(rw, op, like);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  st = tn_rewrite_finish(rw, b, inputs, 2, TN_NO_LIST, &made, err);
  if (st == TN_OK) *out = tn_rewrite_output(rw, made, 0);
  return st;
}

/* True if a FusedBatchNorm is float, for inference, with constant parameters and channels last, and only output 0
 * is read. */
static bool norm_fits(const tn_rewriter *rw, uint32_t node, const tn_tensor **in)
{
  const tn_operation *op = tn_rewrite_operation(rw, node);
  const char *text;
  size_t size;
  if (tn_operation_input_dtype(op, 0) != TN_FLOAT || tn__attr_bool(op, "is_training", true)) return false;
  if (tn_operation_attr_string(op, "data_format", &text, &size, NULL) != TN_OK || size != 4 ||
      memcmp(text, "NHWC", 4) != 0)
    return false;
  for (uint32_t k = 1; k < tn_operation_n_outputs(op); k++)
    if (tn_rewrite_n_uses(rw, tn_rewrite_output(rw, node, k)) > 0) return false;
  for (uint32_t i = 0; i < 4; i++) {
    in[i] = tn_rewrite_constant(rw, tn_rewrite_input(rw, node, i + 1));
    if (in[i] == NULL || tn_tensor_rank(in[i]) != 1 || tn_tensor_data(in[i]) == NULL ||
        tn_tensor_elements(in[i]) != tn_tensor_elements(in[0]))
      return false;
  }
  int64_t dims[TN_MAX_RANK];
  return tn_rewrite_shape(rw, tn_rewrite_input(rw, node, 0), dims) == 4 && dims[3] == tn_tensor_elements(in[0]);
}

static tn_status split_norm(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  const tn_tensor *in[4];
  tn_tensor *s = NULL, *t = NULL;
  bool sound;
  if (!norm_fits(rw, node, in)) return TN_OK;
  tn_status st =
      norm_constants(in, tn__attr_float(tn_rewrite_operation(rw, node), "epsilon", 1e-4f), &s, &t, &sound, err);
  uint32_t value = tn_rewrite_input(rw, node, 0);
  if (st == TN_OK && sound) st = binary(rw, node, "Mul", value, s, &value, err);
  if (st == TN_OK && sound) st = binary(rw, node, "AddV2", value, t, &value, err);
  if (st == TN_OK && sound) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), value);
  tn_tensor_unref(s);
  tn_tensor_unref(t);
  return st;
}

/* Matches a product with a constant filter followed by the addition of a constant per channel: *bias, as a vector. */
static tn_status biased_product(tn_rewriter *rw, uint32_t value, uint32_t *sum, uint32_t *inner, uint32_t *bias,
                                tn_error *err)
{
  *bias = TN_NO_NODE;
  *sum = tn_rewrite_producer(rw, value, NULL);
  bool plain = tn_rewrite_is(rw, *sum, "Add") || tn_rewrite_is(rw, *sum, "AddV2");
  if ((!plain && !tn_rewrite_is(rw, *sum, "BiasAdd")) || tn_rewrite_n_uses(rw, value) != 1) return TN_OK;
  for (uint32_t side = 0; side < (plain ? 2u : 1u) && *bias == TN_NO_NODE; side++) {
    uint32_t at;
    int64_t dims[TN_MAX_RANK];
    *inner = tn_rewrite_input(rw, *sum, side);
    const product *p = product_of(rw, *inner, &at);
    int32_t rank = tn_rewrite_shape(rw, *inner, dims);
    if (p == NULL || !tn_rewrite_is(rw, at, p->plain) || rank < 1 || dims[rank - 1] < 0) continue;
    if (!tn_rewrite_is_constant(rw, tn_rewrite_input(rw, at, 1))) continue;
    tn_status st = as_channels(rw, tn_rewrite_input(rw, *sum, 1 - side), rank, dims[rank - 1], bias, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* a * b, or a + b, of two float vectors. *sound: the result keeps the precision of both. */
static tn_status combine(const tn_tensor *a, const tn_tensor *b, bool times, tn_tensor **out, bool *sound,
                         tn_error *err)
{
  int64_t n = tn_tensor_elements(a);
  tn_status st = tn_tensor_create(TN_FLOAT, &n, 1, out, err);
  if (st != TN_OK) return st;
  const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
  float *to = tn_tensor_data(*out);
  *sound = true;
  for (int64_t i = 0; i < n; i++) {
    to[i] = times ? x[i] * y[i] : x[i] + y[i];
    *sound &= times ? tn__may_multiply(x[i], y[i]) : tn__may_add(x[i], y[i]);
  }
  return TN_OK;
}

/* Rewrites (product + bias) * scale to product * scale + bias * scale, whose scale can then be folded into the
 * filter, and (product + bias) + constant to product + (bias + constant). */
static tn_status behind_bias(tn_rewriter *rw, uint32_t node, bool times, tn_error *err)
{
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t sum, inner = TN_NO_NODE, bias, other, value;
    tn_status st = biased_product(rw, tn_rewrite_input(rw, node, side), &sum, &inner, &bias, err);
    if (st != TN_OK) return st;
    if (bias == TN_NO_NODE) continue;
    int64_t channels = tn_tensor_elements(tn_rewrite_constant(rw, bias)), dims[TN_MAX_RANK];
    int32_t rank = tn_rewrite_shape(rw, inner, dims);
    st = as_channels(rw, tn_rewrite_input(rw, node, 1 - side), rank, channels, &other, err);
    if (st != TN_OK || other == TN_NO_NODE) return st;
    const tn_tensor *b = tn_rewrite_constant(rw, bias), *c = tn_rewrite_constant(rw, other);
    if (tn_tensor_data(b) == NULL || tn_tensor_data(c) == NULL) return TN_OK;
    tn_tensor *both = NULL;
    bool sound;
    value = inner;
    st = combine(b, c, times, &both, &sound, err);
    if (st == TN_OK && sound && times) st = binary(rw, node, "Mul", inner, (tn_tensor *)c, &value, err);
    if (st == TN_OK && sound) st = binary(rw, node, "AddV2", value, both, &value, err);
    if (st == TN_OK && sound) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), value);
    tn_tensor_unref(both);
    return st;
  }
  return TN_OK;
}

static tn_status scale_through_bias(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  return behind_bias(rw, node, true, err);
}
static tn_status merge_biases(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  return behind_bias(rw, node, false, err);
}

#define REWRITE(in, text, type, fn) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = in, .name = text, .op = type, .apply = fn }

static const tn_rewrite_def rewrites[] = {
  REWRITE("batch_norm", "norm_to_scale", "FusedBatchNorm", split_norm),
  REWRITE("batch_norm", "norm_to_scale", "FusedBatchNormV2", split_norm),
  REWRITE("batch_norm", "norm_to_scale", "FusedBatchNormV3", split_norm),
  REWRITE("batch_norm", "scale_into_filter", "Mul", fold_scale),
  REWRITE("batch_norm", "scale_through_bias", "Mul", scale_through_bias),
  REWRITE("batch_norm", "biases_into_one", "Add", merge_biases),
  REWRITE("batch_norm", "biases_into_one", "AddV2", merge_biases),
  REWRITE("fuse", "product_bias", "BiasAdd", fuse_bias),
  REWRITE("fuse", "product_add", "Add", fuse_add),
  REWRITE("fuse", "product_add", "AddV2", fuse_add),
  REWRITE("fuse", "product_activation", "Relu", fuse_activation),
  REWRITE("fuse", "product_activation", "Relu6", fuse_activation),
  REWRITE("fuse", "product_activation", "LeakyRelu", fuse_activation),
  REWRITE("fuse", "product_activation", "Tanh", fuse_activation),
  REWRITE("fuse", "product_activation", "Sigmoid", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnSwish", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnHardSigmoid", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnHardSwish", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnMish", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnGelu", fuse_activation),
  REWRITE("fuse", "product_activation", "_TnGeluTanh", fuse_activation),
};

TN_REWRITE_FAMILY(fuse)
