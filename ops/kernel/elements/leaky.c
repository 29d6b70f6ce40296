/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/leaky.h>

/* ---- loops ---- */

#define LEAKY_FOR(T, count)                      \
  const T *xs = x_, *ys = y_;                    \
  T *out = out_, alpha = (T)alpha_;              \
  TN__IVDEP                                      \
  for (int64_t i = 0; i < (count); i++) {        \
    T x = xs[i], y = ys[i], scaled = x * alpha;  \
    out[i] = y > 0 ? x : scaled;                 \
  }
#define LEAKY_WIDE(d, T, end, attribute)                                                                             \
  attribute static void leaky_##d##_##end(const void *x_, const void *y_, void *out_, int64_t n, float alpha_)       \
  {                                                                                                                  \
    int64_t whole = n & -TN__WHOLE(d, d);                                                                            \
    LEAKY_FOR(T, whole)                                                                                              \
    if (whole < n) leaky_##d(xs + whole, ys + whole, out + whole, n - whole, alpha_);                                \
  }
#define LEAKY(d, T)                                                                           \
  TN__APART static void leaky_##d(const void *x_, const void *y_, void *out_, int64_t n, float alpha_) \
  {                                                                                           \
    LEAKY_FOR(T, n)                                                                           \
  }                                                                                           \
  TN__AVX2_LOOPS(LEAKY_WIDE, d, T)
LEAKY(f32, float)
LEAKY(f64, double)
static const tn__leaky_fn by_float[] = TN__AVX2_FNS(leaky_f32), by_double[] = TN__AVX2_FNS(leaky_f64);

#define FLOATS 512 /* block size: small enough to stay in the cache */

static void via_float(const tn__short_format *format, const void *x, const void *y, void *out, int64_t n, float alpha)
{
  float xs[FLOATS], ys[FLOATS];
  tn__leaky_fn fn = by_float[tn__vectors()];
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    format->to_floats((const uint16_t *)x + at, xs, k);
    if (y != x) format->to_floats((const uint16_t *)y + at, ys, k);
    fn(xs, y != x ? ys : xs, xs, k, alpha);
    format->from_floats(xs, (uint16_t *)out + at, k);
  }
}

static void leaky_f16(const void *x, const void *y, void *out, int64_t n, float alpha)
{
  via_float(&tn__half_format, x, y, out, n, tn__half_to_float(tn__half_from_float(alpha)));
}

static void leaky_bf16(const void *x, const void *y, void *out, int64_t n, float alpha)
{
  via_float(&tn__bfloat16_format, x, y, out, n, tn__bfloat16_to_float(tn__bfloat16_from_float(alpha)));
}

tn__leaky_fn tn__leaky_find(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return by_float[tn__vectors()];
  case TN_DOUBLE: return by_double[tn__vectors()];
  case TN_HALF: return leaky_f16;
  case TN_BFLOAT16: return leaky_bf16;
  default: return NULL;
  }
}
