/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/quantized/uniform.h>

tn_status tn__want_scales(const tn_prepare_ctx *ctx, uint32_t i, int64_t axis, const int64_t *dims, int32_t rank,
                          tn_error *err)
{
  if (axis < -1 || axis >= rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a quantization axis is %lld, outside [-1, %d)",
                        tn_operation_type(ctx->op), (long long)axis, (int)rank);
  int64_t size = axis < 0 ? 1 : dims[axis];
  for (uint32_t k = i; k <= i + 1; k++)
    if (ctx->inputs[k].rank != (axis >= 0) || ctx->inputs[k].count != size)
      return tn__shape_error(err, ctx, k, &size, axis >= 0);
  return TN_OK;
}

tn_status tn__positive_scales(const tn_kernel_ctx *ctx, const char *op, uint32_t i)
{
  const float *scales = ctx->inputs[i]->data;
  for (int64_t k = 0; k < ctx->inputs[i]->count; k++)
    if (!(scales[k] > 0))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%s: element %lld of input %u is %g, wanted a positive scale",
                          op, (long long)k, (unsigned)i, (double)scales[k]);
  return TN_OK;
}

tn__channels tn__channels_along(int64_t axis, const int64_t *dims, int32_t rank)
{
  tn__channels c = { 1, 1 };
  if (axis < 0) return c;
  c.channels = dims[axis];
  for (int32_t i = (int32_t)axis + 1; i < rank; i++) c.inner *= dims[i];
  return c;
}

tn_status tn__multiplier_of(double number, const char *op, tn__multiplier *out, tn_error *err)
{
  if (!(number > 0) || isinf(number))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the ratio of scales is %g, wanted a positive number", op,
                        number);
  int shift;
  int64_t factor = (int64_t)round(frexp(number, &shift) * 0x1p31);
  if (factor == (int64_t)1 << 31) {
    factor /= 2;
    shift++;
  }
  if (shift < -31) {
    shift = 0;
    factor = 0;
  }
  if (shift > 30) {
    shift = 30;
    factor = INT32_MAX;
  }
  *out = (tn__multiplier){ (int32_t)factor, shift };
  return TN_OK;
}

int32_t tn__attr_int32(const tn_operation *op, const char *name)
{
  int64_t v = tn__attr_int(op, name, 0);
  v = v < INT32_MIN ? INT32_MIN : v;
  return (int32_t)(v > INT32_MAX ? INT32_MAX : v);
}

void tn__range_add(tn__range *r, const float *x, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    r->low = x[i] < r->low ? x[i] : r->low;
    r->high = x[i] > r->high ? x[i] : r->high;
  }
}

float tn__range_scale(const tn__range *r, float *scale, int32_t *zero)
{
  double range = (double)r->high - r->low;
  float inverse = range != 0 ? (float)(255 / range) : 0;
  *scale = (float)(range / 255);
  if (*scale == 0 || isinf(inverse) || isinf(*scale)) {
    *scale = 1;
    *zero = 0;
    return 0;
  }
  /* Of the zero points that the minimum and the maximum suggest, the one with the smaller error. */
  double low = r->low / (double)*scale, high = r->high / (double)*scale;
  double best = 128 + fabs(low) < 127 + fabs(high) ? -128 - low : 127 - high;
  *zero = (int32_t)round(fmin(fmax(best, -128), 127));
  return inverse;
}
