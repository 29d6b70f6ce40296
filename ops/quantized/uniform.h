/* SPDX-License-Identifier: Apache-2.0 */
/* Uniformly quantised values: integers q that stand for (q - zero point) * scale, with one scale and zero point for a
 * tensor or for each index along an axis. */
#ifndef OPS_QUANTIZED_UNIFORM_H
#define OPS_QUANTIZED_UNIFORM_H

#include <ops/quantized/levels.h>

/* Checks that inputs i and i + 1, scales and zero points, suit values of these dimensions quantised along an axis, or
 * as a whole if it is -1. */
tn_status tn__want_scales(const tn_prepare_ctx *ctx, uint32_t i, int64_t axis, const int64_t *dims, int32_t rank,
                          tn_error *err);
/* Checks in compute that all elements of a view of scales are positive. */
tn_status tn__positive_scales(const tn_kernel_ctx *ctx, const char *op, uint32_t i);
/* The channels along an axis. */
tn__channels tn__channels_along(int64_t axis, const int64_t *dims, int32_t rank);

/* A positive factor in fixed point: factor * 2^(shift - 31). */
typedef struct tn__multiplier {
  int32_t factor, shift;
} tn__multiplier;
/* TN_INVALID_ARGUMENT if the number is not positive and finite. */
tn_status tn__multiplier_of(double number, const char *op, tn__multiplier *out, tn_error *err);

/* x times the factor, rounded once; halves are rounded up. */
static inline int32_t tn__multiply(const tn__multiplier *m, int32_t x)
{
  int shift = 31 - m->shift;
  int64_t v = ((int64_t)x * m->factor + ((int64_t)1 << (shift - 1))) >> shift;
  v = v < INT32_MIN ? INT32_MIN : v;
  return (int32_t)(v > INT32_MAX ? INT32_MAX : v);
}

static inline int32_t tn__wrapped_sum(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

static inline int32_t tn__between(int32_t x, int32_t low, int32_t high)
{
  x = x > high ? high : x;
  return x < low ? low : x;
}

/* floor(x * inverse + 0.5) + zero, between low and high. */
static inline int32_t tn__affine_value(float x, float inverse, int32_t zero, int32_t low, int32_t high)
{
  int64_t v = (int64_t)tn__clamp_int(tn__floor_f(x * inverse + 0.5f), -0x1p31f, 0x1.fffffep30f) + zero;
  v = v > high ? high : v;
  return (int32_t)(v < low ? low : v);
}

/* Reads an attribute as int32; values out of its range are clamped. */
int32_t tn__attr_int32(const tn_operation *op, const char *name);

/* The range of floats, which includes 0, and what quantises it to int8: 1 / scale is returned, 0 if the scale would
 * be 0 or infinite. */
typedef struct tn__range {
  float low, high;
} tn__range;
void tn__range_add(tn__range *r, const float *x, int64_t n);
float tn__range_scale(const tn__range *r, float *scale, int32_t *zero);

#endif
