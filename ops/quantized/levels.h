/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised values: integers that stand for evenly spaced numbers between a minimum and a maximum. The numbers are
 * rounded where TensorFlow rounds them, in float or double as it does.
 *
 * Kernels read and write quantised values in blocks of int32 (tn__levels_load, tn__levels_store), so that each loop is
 * written once for all quantised dtypes. */
#ifndef OPS_QUANTIZED_LEVELS_H
#define OPS_QUANTIZED_LEVELS_H

#include <math.h>
#include <ops/kernel/elements/rounding.h>
#include <ops/kernel/shapes.h>
#include <stdint.h>

#define TN__LEVELS_BLOCK 256 /* values that a loop holds as int32 at a time */

#define TN__QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"

/* The lowest and highest value of a quantised dtype. */
int64_t tn__levels_lowest(tn_dtype dtype);
int64_t tn__levels_highest(tn_dtype dtype);

/* Converts n values, from value `at` on, to int32 and back. Values to be stored must be in the dtype's range. */
void tn__levels_load(tn_dtype dtype, const void *from, int64_t at, int64_t n, int32_t *to);
void tn__levels_store(tn_dtype dtype, void *to, int64_t at, int64_t n, const int32_t *from);

/* Numbers of values q: offset + q * scale. */
typedef struct tn__levels {
  float scale, offset;
} tn__levels;
tn__levels tn__levels_of(tn_dtype dtype, float min, float max);
static inline float tn__levels_number(const tn__levels *l, int32_t q) { return l->offset + (float)q * l->scale; }

/* Values of numbers x: round(x * scale) - shift, between low and high. */
typedef struct tn__quantizer {
  float scale, shift, low, high;
} tn__quantizer;
tn__quantizer tn__quantizer_of(tn_dtype dtype, float min, float max);

/* Rounds halves away from zero. */
TN__INLINED float tn__round_away(float x)
{
  float t = tn__trunc_f(x);
  return fabsf(x - t) >= 0.5f ? t + copysignf(1, x) : t;
}

/* x as an int32 between low and high, which int32 can hold; NaN gives low. */
TN__INLINED int32_t tn__clamp_int(float x, float low, float high)
{
  x = x > low ? x : low;
  return (int32_t)(x < high ? x : high);
}

TN__INLINED int32_t tn__quantizer_value(const tn__quantizer *q, float x)
{
  return tn__clamp_int(tn__round_away(x * q->scale) - q->shift, q->low, q->high);
}

/* A double as int64, INT64_MIN if it does not fit or is NaN. */
static inline int64_t tn__double_to_int(double d)
{
  return d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : INT64_MIN;
}

/* One number, in double precision: its value before it is clamped and clamped, and the number of a value. */
int64_t tn__value_unclamped(tn_dtype dtype, float number, float min, float max);
int32_t tn__value_of(tn_dtype dtype, float number, float min, float max);
float tn__number_of(tn_dtype dtype, int64_t value, float min, float max);

/* The range of products: one step of it is the product of a step of a and a step of b. */
void tn__product_range(tn_dtype a, float min_a, float max_a, tn_dtype b, float min_b, float max_b, tn_dtype out,
                       float *min, float *max);
/* The range of sums: symmetric, and 2^bits times as wide as the wider one, so that int32 sums do not overflow. */
void tn__sum_range(const float range[4], int bits, float *min, float *max);

/* ---- one minimum and maximum for each channel ---- */

/* Elements are [outer, channels, inner]; one channel: one range for all. */
typedef struct tn__channels {
  int64_t channels, inner;
} tn__channels;

/* Splits elements [begin, end) into runs. Element i of a run belongs to channel `channel` + i * step; step is 0 or
 * 1. */
typedef void (*tn__channel_run)(void *user, int64_t channel, int step, int64_t at, int64_t n);
void tn__channel_runs(const tn__channels *c, int64_t begin, int64_t end, tn__channel_run run, void *user);

/* ---- shape functions and checks ---- */

/* Output 0 has the shape of input 0, all others are scalars. */
tn_status tn__infer_quantized(tn_infer_ctx *ctx, tn_error *err);
/* Sets outputs first and later to scalars. */
tn_status tn__infer_scalars(tn_infer_ctx *ctx, size_t first, size_t n, tn_error *err);
tn_status tn__prepare_scalars(tn_prepare_ctx *ctx, uint32_t first, tn_error *err);
/* Inputs first to last must be scalars. */
tn_status tn__want_scalars(const tn_prepare_ctx *ctx, uint32_t first, uint32_t last, tn_error *err);
/* Element 0 of a view of floats. */
static inline float tn__float_at(const tn_view *v) { return *(const float *)v->data; }
static inline void tn__set_range(tn_kernel_ctx *ctx, float min, float max)
{
  *(float *)ctx->outputs[1]->data = min;
  *(float *)ctx->outputs[2]->data = max;
}

#endif
