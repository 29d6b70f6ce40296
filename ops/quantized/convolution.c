/* SPDX-License-Identifier: Apache-2.0 */
#include <core/formats/wire.h>
#include <ops/quantized/convolution.h>
#include <ops/quantized/uniform.h>
#include <string.h>

/* ---- attributes ---- */

static tn_status read_ints(const tn_operation *op, const char *name, tn__ints *out, tn_error *err)
{
  const int64_t *values;
  size_t n;
  tn_status st = tn_operation_attr_ints(op, name, &values, &n, err);
  if (st != TN_OK) return st;
  if (n > sizeof out->items / sizeof *out->items)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s has %zu elements", tn_operation_type(op), name, n);
  out->n = (int64_t)n;
  for (size_t i = 0; i < n; i++) out->items[i] = values[i];
  return TN_OK;
}

static void add_spatial(tn__dimensions *d, int64_t value)
{
  if (d->n < TN_MAX_RANK) d->spatial[d->n] = value;
  d->n++;
}

/* Reads the numbers of dimensions, a message of protobuf: three fields for each of input, kernel and output. */
static tn_status read_dimensions(tn__convolution_attrs *a, const char *op, const char *text, size_t n, tn_error *err)
{
  tn__wire w = tn__wire_read((tn__slice){ text, n });
  tn__dimensions *const all[] = { &a->lhs, &a->rhs, &a->out };
  while (tn__wire_next(&w)) {
    if (w.field < 1 || w.field > 9) continue;
    tn__dimensions *d = all[(w.field - 1) / 3];
    int which = (int)(w.field - 1) % 3;
    if (w.field == 4 || w.field == 5) which = 1 - which; /* the kernel's input feature comes first */
    if (which == 2 && w.type == TN__WIRE_BYTES) {
      const uint8_t *p = (const uint8_t *)w.bytes.data, *end = p + w.bytes.size;
      uint64_t v;
      while (p < end && tn__wire_varint(&p, end, &v)) add_spatial(d, (int64_t)v);
    } else if (w.type == TN__WIRE_VARINT) {
      if (which == 0) d->first = tn__wire_int(&w);
      if (which == 1) d->feature = tn__wire_int(&w);
      if (which == 2) add_spatial(d, tn__wire_int(&w));
    }
  }
  if (w.error != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension_numbers: %s", op, w.error);
  a->numbered = a->lhs.n > 0;
  return TN_OK;
}

tn_status tn__convolution_read(const tn_operation *op, tn__convolution_attrs *a, tn_error *err)
{
  static const char *const paddings[] = { "EXPLICIT", "SAME", "VALID" };
  const char *text;
  size_t length;
  int padding;
  memset(a, 0, sizeof *a);
  a->feature_groups = a->batch_groups = 1;
  a->padding = TN__CONV_VALID;
  a->product = tn_operation_attr_kind(op, "window_strides") == TN_ATTR_NONE;
  if (a->product) return TN_OK;
  tn_status st = tn__attr_choice(op, "padding", paddings, 3, &padding, err);
  if (st == TN_OK) st = read_ints(op, "window_strides", &a->strides, err);
  if (st == TN_OK) st = read_ints(op, "explicit_padding", &a->paddings, err);
  if (st == TN_OK) st = read_ints(op, "lhs_dilation", &a->lhs_dilation, err);
  if (st == TN_OK) st = read_ints(op, "rhs_dilation", &a->rhs_dilation, err);
  if (st == TN_OK) st = tn_operation_attr_string(op, "dimension_numbers", &text, &length, err);
  if (st != TN_OK) return st;
  a->padding = padding;
  a->feature_groups = tn__attr_int(op, "feature_group_count", 1);
  a->batch_groups = tn__attr_int(op, "batch_group_count", 1);
  if (a->feature_groups < 1 || a->batch_groups < 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: group counts are %lld and %lld, wanted at least 1",
                        tn_operation_type(op), (long long)a->feature_groups, (long long)a->batch_groups);
  if (a->padding != TN__CONV_EXPLICIT && a->paddings.n > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: explicit_padding needs padding EXPLICIT", tn_operation_type(op));
  return read_dimensions(a, tn_operation_type(op), text, length, err);
}

/* ---- shapes ---- */

/* Dimensions in the usual order if none are given: batch, feature, then the spatial ones. */
static tn_status find_dimensions(const tn__convolution_attrs *a, const tn__dimensions *given, const char *op,
                                 int32_t rank, tn__dimensions *out, tn_error *err)
{
  bool used[TN_MAX_RANK] = { false }, valid = true;
  *out = *given;
  if (!a->numbered) {
    out->first = 0;
    out->feature = 1;
    out->n = rank - 2;
    for (int32_t i = 0; i < rank - 2; i++) out->spatial[i] = 2 + i;
    return TN_OK;
  }
  valid = out->n == rank - 2;
  for (int64_t i = -2; valid && i < rank - 2; i++) {
    int64_t d = out->first;
    if (i == -1) d = out->feature;
    if (i >= 0) d = out->spatial[i];
    valid = d >= 0 && d < rank && !used[d];
    if (valid) used[d] = true;
  }
  if (valid) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension_numbers are not a permutation of %d dimensions", op,
                      (int)rank);
}

static void strides_of(const int64_t *dims, int32_t rank, int64_t *strides)
{
  int64_t stride = 1;
  for (int32_t i = rank - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= dims[i] > 0 ? dims[i] : 1;
  }
}

static tn_status item(const tn__ints *list, const char *op, const char *name, int32_t spatial, int32_t i, int64_t *out,
                      tn_error *err)
{
  *out = list->n == 0 ? 1 : 0;
  if (list->n == spatial) *out = list->items[i];
  if (*out >= 1 && *out <= INT32_MAX) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s has %lld elements, wanted %d of at least 1", op, name,
                      (long long)list->n, (int)spatial);
}

static bool dilated(int64_t size, int64_t dilation, int64_t *out)
{
  *out = 0;
  return size == 0 || (!__builtin_mul_overflow(size - 1, dilation, out) && !__builtin_add_overflow(*out, 1, out));
}

/* Strides, dilations, padding and the output's size of one spatial dimension. */
static tn_status fit_axis(const tn__convolution_attrs *a, const char *op, int32_t spatial, int32_t i, tn__conv_axis *x,
                          tn_error *err)
{
  int64_t in, window, after = 0, room;
  tn_status st = item(&a->strides, op, "window_strides", spatial, i, &x->stride, err);
  if (st == TN_OK) st = item(&a->lhs_dilation, op, "lhs_dilation", spatial, i, &x->in_dilation, err);
  if (st == TN_OK) st = item(&a->rhs_dilation, op, "rhs_dilation", spatial, i, &x->dilation, err);
  if (st != TN_OK) return st;
  x->before = 0;
  bool fits = dilated(x->in, x->in_dilation, &in) && dilated(x->kernel, x->dilation, &window) &&
              in < ((int64_t)1 << 60) && window < ((int64_t)1 << 60);
  if (fits && a->padding == TN__CONV_EXPLICIT) {
    if (a->paddings.n != 2 * spatial || a->paddings.items[2 * i] < 0 || a->paddings.items[2 * i + 1] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: explicit_padding has %lld elements, wanted %d of at least 0",
                          op, (long long)a->paddings.n, 2 * (int)spatial);
    x->before = a->paddings.items[2 * i];
    after = a->paddings.items[2 * i + 1];
  } else if (fits && a->padding == TN__CONV_SAME) {
    int64_t n = in / x->stride + (in % x->stride != 0), all = (n - 1) * x->stride + window - in;
    if (all < 0) all = 0;
    x->before = all / 2;
    after = all - x->before;
  }
  fits = fits && x->before < ((int64_t)1 << 60) && after < ((int64_t)1 << 60);
  room = fits ? in + x->before + after - window + 1 : -1;
  if (!fits || room + x->stride - 1 < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a window of %lld does not fit into %lld", op,
                        (long long)x->kernel, (long long)x->in);
  x->out = (room + x->stride - 1) / x->stride;
  return TN_OK;
}

static tn_status check_groups(const tn__convolution *c, const char *op, int64_t in_features, tn_error *err)
{
  bool fits = in_features % c->feature_groups == 0 && in_features / c->feature_groups == c->in_features &&
              c->features % c->feature_groups == 0 && c->batches % c->batch_groups == 0 &&
              c->features % c->batch_groups == 0 && c->in_features > 0;
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld batches and %lld features of the input in %lld and %lld "
                      "groups do not fit a kernel of %lld by %lld features", op, (long long)c->batches,
                      (long long)in_features, (long long)c->batch_groups, (long long)c->feature_groups,
                      (long long)c->in_features, (long long)c->features);
}

tn_status tn__convolution_fit(const tn__convolution_attrs *a, const char *op, const tn_view *lhs, const tn_view *rhs,
                              tn__convolution *c, tn_error *err)
{
  tn__dimensions l, r, o;
  int64_t ls[TN_MAX_RANK], rs[TN_MAX_RANK], os[TN_MAX_RANK];
  memset(c, 0, sizeof *c);
  if (lhs->rank != rhs->rank || (a->product ? lhs->rank != 2 : lhs->rank < 3))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the operands have ranks %d and %d, wanted %s", op,
                        (int)lhs->rank, (int)rhs->rank, a->product ? "2" : "the same of at least 3");
  c->rank = lhs->rank;
  c->spatial = c->rank - 2;
  tn_status st = find_dimensions(a, &a->lhs, op, c->rank, &l, err);
  if (st == TN_OK) st = find_dimensions(a, &a->rhs, op, c->rank, &r, err);
  if (st == TN_OK) st = find_dimensions(a, &a->out, op, c->rank, &o, err);
  if (st != TN_OK) return st;
  if (a->product) r.first = 1, r.feature = 0;
  strides_of(lhs->dims, c->rank, ls);
  strides_of(rhs->dims, c->rank, rs);
  c->rhs_feature = r.first;
  c->out_feature = o.feature;
  c->batches = lhs->dims[l.first];
  c->in_count = lhs->count;
  c->features = rhs->dims[r.first];
  c->in_features = rhs->dims[r.feature];
  c->feature_groups = a->feature_groups;
  c->batch_groups = a->batch_groups;
  if (a->product && lhs->dims[1] != rhs->dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the inner dimensions are %lld and %lld", op,
                        (long long)lhs->dims[1], (long long)rhs->dims[0]);
  if (!a->product) st = check_groups(c, op, lhs->dims[l.feature], err);
  c->rows = c->out_batches = c->batches / c->batch_groups;
  c->terms = c->in_features;
  for (int32_t i = 0; i < c->spatial && st == TN_OK; i++) {
    tn__conv_axis *x = &c->axis[i];
    x->in = lhs->dims[l.spatial[i]];
    x->in_stride = ls[l.spatial[i]];
    x->kernel = rhs->dims[r.spatial[i]];
    x->kernel_stride = rs[r.spatial[i]];
    st = fit_axis(a, op, c->spatial, i, x, err);
    c->out[o.spatial[i]] = x->out;
    c->terms *= x->kernel;
    if (st == TN_OK && __builtin_mul_overflow(c->rows, x->out, &c->rows))
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output is too large", op);
  }
  if (st != TN_OK) return st;
  c->out[o.first] = c->out_batches;
  c->out[o.feature] = c->features;
  strides_of(c->out, c->rank, os);
  for (int32_t i = 0; i < c->spatial; i++) c->axis[i].out_stride = os[o.spatial[i]];
  c->batch_stride = ls[l.first];
  c->feature_stride = ls[l.feature];
  c->kernel_out_stride = rs[r.first];
  c->kernel_in_stride = rs[r.feature];
  c->out_batch_stride = os[o.first];
  c->out_feature_stride = os[o.feature];
  return TN_OK;
}

/* ---- elements ---- */

int64_t tn__convolution_groups(const tn__convolution *c)
{
  if (c->batch_groups == 1) return c->feature_groups;
  if (c->feature_groups == 1) return c->batch_groups;
  return c->features > 0 ? c->features : 1;
}

/* Splits a row into the batch, which is returned, and the output's spatial position. */
static int64_t place_of(const tn__convolution *c, int64_t row, int64_t *place)
{
  for (int32_t i = c->spatial - 1; i >= 0; i--) {
    place[i] = row % c->axis[i].out;
    row /= c->axis[i].out;
  }
  return row;
}

int64_t tn__convolution_out(const tn__convolution *c, int64_t row)
{
  int64_t place[TN_MAX_RANK], at = place_of(c, row, place) * c->out_batch_stride;
  for (int32_t i = 0; i < c->spatial; i++) at += place[i] * c->axis[i].out_stride;
  return at;
}

int64_t tn__convolution_batch(const tn__convolution *c, int64_t row, int64_t feature)
{
  int64_t place[TN_MAX_RANK], batch = place_of(c, row, place);
  return feature / (c->features / c->batch_groups) * c->out_batches + batch;
}

void tn__convolution_kernel(const tn__convolution *c, const int8_t *from, int8_t *to)
{
  for (int64_t f = 0; f < c->features; f++)
    for (int64_t t = 0; t < c->terms; t++) {
      int64_t rest = t, at = f * c->kernel_out_stride;
      for (int32_t i = c->spatial - 1; i >= 0; i--) {
        at += rest % c->axis[i].kernel * c->axis[i].kernel_stride;
        rest /= c->axis[i].kernel;
      }
      to[f * c->terms + t] = from[at + rest * c->kernel_in_stride];
    }
}

void tn__convolution_quantize(const tn__convolution *c, const float *from, int8_t *to, float *scales, int32_t *zeros)
{
  int64_t inner = c->batch_stride, size = inner * c->batches, outer = c->in_count / size;
  for (int64_t b = 0; b < c->batches; b++) {
    tn__range range = { 0, 0 };
    for (int64_t i = 0; i < outer; i++) tn__range_add(&range, from + i * size + b * inner, inner);
    float inverse = tn__range_scale(&range, &scales[b], &zeros[b]);
    for (int64_t i = 0; i < outer; i++) {
      int64_t at = i * size + b * inner;
      for (int64_t k = at; k < at + inner; k++)
        to[k] = (int8_t)tn__affine_value(from[k], inverse, zeros[b], -128, 127);
    }
  }
}

void tn__convolution_read_row(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to)
{
  const tn__convolution_rows *r = user;
  const tn__convolution *c = r->c;
  int64_t place[TN_MAX_RANK];
  place_of(c, row, place);
  int64_t batch = tn__convolution_batch(c, row, r->feature);
  int64_t first = r->feature / (c->features / c->feature_groups) * c->in_features;
  int32_t zero = r->zeros[batch * r->zero_step];
  for (int64_t k = 0; k < n; k++) {
    int64_t rest = term + k, at = batch * c->batch_stride;
    bool inside = true;
    for (int32_t i = c->spatial - 1; i >= 0; i--) {
      const tn__conv_axis *x = &c->axis[i];
      int64_t in = place[i] * x->stride + rest % x->kernel * x->dilation - x->before;
      rest /= x->kernel;
      inside = inside && in >= 0 && in % x->in_dilation == 0 && in / x->in_dilation < x->in;
      at += in / x->in_dilation * x->in_stride;
    }
    at += (first + rest) * c->feature_stride;
    to[k] = 0;
    if (inside) to[k] = (int16_t)(r->ones ? 1 : r->values[at] - zero);
  }
}
