/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/quantized/levels.h>

/* X(dtype, C type, lowest, highest) */
#define TYPES(X)                                     \
  X(TN_QINT8, int8_t, INT8_MIN, INT8_MAX)            \
  X(TN_QUINT8, uint8_t, 0, UINT8_MAX)                \
  X(TN_QINT16, int16_t, INT16_MIN, INT16_MAX)        \
  X(TN_QUINT16, uint16_t, 0, UINT16_MAX)             \
  X(TN_QINT32, int32_t, INT32_MIN, INT32_MAX)

int64_t tn__levels_lowest(tn_dtype dtype)
{
#define LOWEST(d, T, low, high) if (dtype == d) return low;
  TYPES(LOWEST)
  return 0;
}

int64_t tn__levels_highest(tn_dtype dtype)
{
#define HIGHEST(d, T, low, high) if (dtype == d) return high;
  TYPES(HIGHEST)
  return 0;
}

void tn__levels_load(tn_dtype dtype, const void *from, int64_t at, int64_t n, int32_t *to)
{
#define LOAD(d, T, low, high)                                 \
  if (dtype == d) {                                           \
    const T *p = (const T *)from + at;                        \
    for (int64_t i = 0; i < n; i++) to[i] = p[i];             \
  }
  TYPES(LOAD)
}

void tn__levels_store(tn_dtype dtype, void *to, int64_t at, int64_t n, const int32_t *from)
{
#define STORE(d, T, low, high)                                \
  if (dtype == d) {                                           \
    T *p = (T *)to + at;                                      \
    for (int64_t i = 0; i < n; i++) p[i] = (T)from[i];        \
  }
  TYPES(STORE)
}

/* The number of values of a dtype. */
static double steps_of(tn_dtype dtype) { return ldexp(1, 8 * (int)tn_dtype_size(dtype)); }

tn__levels tn__levels_of(tn_dtype dtype, float min, float max)
{
  tn__levels l = { .scale = (float)((max - min) / (steps_of(dtype) - 1)) };
  float first = max == min ? min : roundf(min / l.scale) * l.scale;
  l.offset = first - (float)tn__levels_lowest(dtype) * l.scale;
  return l;
}

tn__quantizer tn__quantizer_of(tn_dtype dtype, float min, float max)
{
  tn__quantizer q;
  float lowest = (float)tn__levels_lowest(dtype);
  q.scale = max == min ? 0 : (float)((steps_of(dtype) - 1) / (max - min));
  q.shift = roundf(min * q.scale) - lowest;
  q.low = lowest;
  /* The largest float that int32 can hold. */
  q.high = fminf((float)tn__levels_highest(dtype), 2147483520.0f);
  return q;
}

int64_t tn__value_unclamped(tn_dtype dtype, float number, float min, float max)
{
  double steps = steps_of(dtype);
  int64_t lowest = tn__levels_lowest(dtype);
  if (min == max) return lowest;
  double scale = steps / ((max - min) * (steps / (steps - 1)));
  int64_t value = tn__double_to_int(round(number * scale) - round(min * scale));
  return __builtin_add_overflow(value, lowest, &value) ? INT64_MIN : value;
}

int32_t tn__value_of(tn_dtype dtype, float number, float min, float max)
{
  int64_t value = tn__value_unclamped(dtype, number, min, max);
  int64_t low = tn__levels_lowest(dtype), high = tn__levels_highest(dtype);
  if (value < low) value = low;
  return (int32_t)(value > high ? high : value);
}

float tn__number_of(tn_dtype dtype, int64_t value, float min, float max)
{
  if (min == max) return min;
  double steps = steps_of(dtype);
  double scale = (max - min) * (steps / (steps - 1)) / steps;
  float first = roundf(min / (float)scale) * (float)scale; /* rounded to float */
  return (float)(first + ((double)value - (double)tn__levels_lowest(dtype)) * scale);
}

static float step_of(tn_dtype dtype, float min, float max)
{
  return (max - min) / (float)(tn__levels_highest(dtype) - tn__levels_lowest(dtype));
}

void tn__product_range(tn_dtype a, float min_a, float max_a, tn_dtype b, float min_b, float max_b, tn_dtype out,
                       float *min, float *max)
{
  float step = step_of(a, min_a, max_a) * step_of(b, min_b, max_b);
  *min = step * (float)tn__levels_lowest(out);
  *max = step * (float)tn__levels_highest(out);
}

void tn__sum_range(const float range[4], int bits, float *min, float *max)
{
  float widest = fmaxf(fmaxf(-range[0], range[1]), fmaxf(-range[2], range[3]));
  *max = ldexpf(widest, bits);
  *min = -*max;
}

void tn__channel_runs(const tn__channels *c, int64_t begin, int64_t end, tn__channel_run run, void *user)
{
  if (c->channels <= 1) {
    run(user, 0, 0, begin, end - begin);
    return;
  }
  bool single = c->inner == 1;
  int64_t length = single ? c->channels : c->inner;
  for (int64_t at = begin, n; at < end; at += n) {
    int64_t in = at % length, channel = single ? in : at / length % c->channels;
    n = length - in < end - at ? length - in : end - at;
    run(user, channel, single, at, n);
  }
}

tn_status tn__infer_scalars(tn_infer_ctx *ctx, size_t first, size_t n, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = first; i < n && st == TN_OK; i++) st = tn_infer_output(ctx, i, NULL, 0, err);
  return st;
}

tn_status tn__infer_quantized(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK ? tn__infer_scalars(ctx, 1, 3, err) : st;
}

tn_status tn__prepare_scalars(tn_prepare_ctx *ctx, uint32_t first, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = first; i < ctx->n_outputs && st == TN_OK; i++) st = tn_prepare_output(ctx, i, NULL, 0, err);
  return st;
}

tn_status tn__want_scalars(const tn_prepare_ctx *ctx, uint32_t first, uint32_t last, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = first; i <= last && st == TN_OK; i++) st = tn__want_rank(ctx, i, 0, err);
  return st;
}
