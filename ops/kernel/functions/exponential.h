/* SPDX-License-Identifier: Apache-2.0 */
/* expm1, log1p, pow and the hyperbolic functions of float and their inverses, without calls and branches. Maximum
 * errors in units in the last place (tests/ops/kernel/vector_math.c): expm1 1.6, log1p 0.6, pow 0.6, sinh 1.6, cosh
 * 1.5, asinh, acosh and atanh 0.6. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_EXPONENTIAL_H
#define TN_OPS_KERNEL_FUNCTIONS_EXPONENTIAL_H

#include <ops/kernel/elements/rounding.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/functions/wide_log.h>

TN__INLINED float tn__expm1f_by(const int fused, float x)
{
  float t = x > 89.0f ? 89.0f : x;
  t = t < -20.0f ? -20.0f : t; /* the result is -1 there */
  float shifted, above = tn__expm1_rest_by(fused, t, &shifted);
  /* 2^n as twice 2^(n - 1), which does not overflow. */
  float scale = tn__float_of_bits((tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) + 126u) << 23);
  float result = (scale * above + (scale - 0.5f)) * 2;
  result = shifted == TN__MAGIC ? above : result; /* n is 0 */
  return x == 0 ? x : result;
}

TN__INLINED float tn__expm1f(float x) { return tn__expm1f_by(0, x); }

TN__INLINED float tn__log1pf_by(const int fused, float x)
{
  float r = (float)tn__wide_log1p_by(fused, x);
  r = x == 0 ? x : r;
  r = x < -1.0f ? NAN : r;
  return x < INFINITY ? r : x;
}

TN__INLINED float tn__log1pf(float x) { return tn__log1pf_by(0, x); }

/* e^a / 2 for a >= 0 or NaN */
TN__INLINED float tn__half_exp(float a)
{
  float t = a > 90.0f ? 90.0f : a, shifted, e = tn__exp_rest_by(0, t, &shifted);
  uint32_t k = tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) - 1;
  uint32_t half = (uint32_t)((int32_t)k >> 1); /* k is -1 for the smallest arguments */
  return e * tn__float_of_bits((half + 127) << 23) * tn__float_of_bits((k - half + 127) << 23);
}

TN__INLINED float tn__coshf(float x)
{
  float h = tn__half_exp(fabsf(x));
  return h + 0.25f / h;
}

TN__INLINED float tn__sinhf(float x)
{
  float a = fabsf(x), z = a * a, h = tn__half_exp(a);
  float q = 0x1.7a1516p-19f;
  q = q * z + 0x1.9ffe92p-13f;
  q = q * z + 0x1.111134p-7f;
  q = q * z + 0x1.555556p-3f;
  return copysignf(a < 1.0f ? a + a * z * q : h - 0.25f / h, x);
}

TN__INLINED float tn__asinhf(float x)
{
  double a = fabsf(x), square = a * a;
  float r = (float)tn__wide_log1p(a + square / (1 + sqrt(1 + square)));
  return x < INFINITY && x > -INFINITY ? copysignf(r, x) : x;
}

TN__INLINED float tn__acoshf(float x)
{
  double above = (double)x - 1;
  float r = (float)tn__wide_log1p(above + sqrt(above * (2 + above)));
  r = x < 1.0f ? NAN : r;
  return x < INFINITY ? r : x;
}

TN__INLINED float tn__atanhf(float x)
{
  double a = fabsf(x);
  float r = copysignf((float)(0.5 * tn__wide_log1p(2 * a / (1 - a))), x);
  float end = fabsf(x) == 1.0f ? x * INFINITY : NAN;
  return fabsf(x) < 1.0f ? r : end;
}

/* x^y as C's powf has it. */
TN__INLINED float tn__powf(float x, float y)
{
  float a = fabsf(x), half = y * 0.5f;
  int whole = tn__round_f(y) == y, odd = whole & (tn__round_f(half) != half);
  double l = tn__wide_log2(a);
  l = a == 0 ? -0x1p900 : l;
  l = a < INFINITY ? l : (double)a; /* infinity and NaN */
  double t = (double)y * l;
  t = t > 1000 ? 1000 : t;
  t = t < -1000 ? -1000 : t;
  float r = (float)tn__wide_exp2(t);
  r = x < 0 && !whole && a < INFINITY ? NAN : r;
  r = odd && tn__float_bits(x) >> 31 != 0 ? -r : r;
  r = x == -1.0f && fabsf(y) == INFINITY ? 1 : r;
  return x == 1.0f || y == 0 ? 1 : r;
}

#endif
