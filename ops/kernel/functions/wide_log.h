/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithm and exponential of double for functions of float: relative errors below 2^-38, which rounding to float
 * hides. No calls, no branches, and only the operations on 64-bit integers that AVX2 has, so that loops vectorise. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_WIDE_LOG_H
#define TN_OPS_KERNEL_FUNCTIONS_WIDE_LOG_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <ops/kernel/elements/vectors.h>

TN__INLINED uint64_t tn__double_bits(double x)
{
  uint64_t u;
  memcpy(&u, &x, sizeof(u));
  return u;
}

TN__INLINED double tn__double_of_bits(uint64_t u)
{
  double x;
  memcpy(&x, &u, sizeof(x));
  return x;
}

/* For NAME_d_by(fused, x): NAME_d(x) and NAME_fused_d(x) */
#define TN__FUNCTION_D(name)                                                      \
  TN__INLINED double tn__##name##_d(double x) { return tn__##name##_d_by(0, x); } \
  TN__INLINED double tn__##name##_fused_d(double x) { return tn__##name##_d_by(1, x); }

/* The upper 26 bits of a number, whose square is exact */
TN__INLINED double tn__upper_half(double x) { return tn__double_of_bits(tn__double_bits(x) & ~(uint64_t)0x7ffffff); }

#define TN__LN2 0x1.62e42fefa39efp-1
#define TN__LOG2_E 0x1.71547652b82fep+0
#define TN__ROUND_DOUBLE 0x1.8p52 /* added to a number below 2^51, its low bits are the nearest integer */

#define MADD(a, b, c) TN__MADD_DOUBLE(fused, a, b, c)

/* m in [sqrt(1/2), sqrt(2)) where w = m 2^n, for w > 0 that is normal, infinity or NaN */
TN__INLINED double tn__log_parts(double w, double *n)
{
  const uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u;
  uint64_t exponent = (tn__double_bits(w) + (one - root_half)) >> 52; /* 1023 + n */
  *n = tn__double_of_bits(exponent | 0x4330000000000000u) - (0x1p52 + 1023);
  return tn__double_of_bits(tn__double_bits(w) - ((exponent - 1023) << 52));
}

/* log w = *n ln 2 + the result, w as above; above is w - 1, maybe with more digits. */
TN__INLINED double tn__log_rest_by(const int fused, double w, double above, double *n)
{
  double m = tn__log_parts(w, n);
  double f = *n == 0 ? above : m - 1, s = f / (2 + f), z = s * s, twice = 2 * s;
  double q = 0x1.911c92cb10cbcp-4;
  q = MADD(q, z, 0x1.c62aa069035e4p-4);
  q = MADD(q, z, 0x1.2494133629af7p-3);
  q = MADD(q, z, 0x1.999996a67bf17p-3);
  q = MADD(q, z, 0x1.555555561f32ep-2);
  return MADD(twice * z, q, twice);
}

/* log(1 + u) for u >= -1 or NaN; infinity is not handled. */
TN__INLINED double tn__wide_log1p_by(const int fused, double u)
{
  double n, w = 1 + u, rest = tn__log_rest_by(fused, w, u, &n);
  return w > 0 ? MADD(n, TN__LN2, rest) : (double)-INFINITY - u + u; /* a NaN stays NaN */
}

/* log2 x for x > 0 that is normal as a double. */
TN__INLINED double tn__wide_log2(double x)
{
  double n, rest = tn__log_rest_by(0, x, x - 1, &n);
  return n + rest * TN__LOG2_E;
}

/* 2^t for |t| <= 1000 or NaN. */
TN__INLINED double tn__wide_exp2_by(const int fused, double t)
{
  double shifted = t + TN__ROUND_DOUBLE, r = t - (shifted - TN__ROUND_DOUBLE);
  double q = 0x1.63961afcc1830p-20;
  q = MADD(q, r, 0x1.00de260c1d7b8p-16);
  q = MADD(q, r, 0x1.4308d931f2b87p-13);
  q = MADD(q, r, 0x1.5d8742d7975e2p-10);
  q = MADD(q, r, 0x1.3b2ab70559825p-7);
  q = MADD(q, r, 0x1.c6b08dd959f68p-5);
  q = MADD(q, r, 0x1.ebfbdff82b5e4p-3);
  q = MADD(q, r, 0x1.62e42fef83dadp-1);
  return MADD(r, q, 1) * tn__double_of_bits((tn__double_bits(shifted) + 1023) << 52);
}

#undef MADD

TN__INLINED double tn__wide_log1p(double u) { return tn__wide_log1p_by(0, u); }
TN__INLINED double tn__wide_exp2(double t) { return tn__wide_exp2_by(0, t); }

#endif
