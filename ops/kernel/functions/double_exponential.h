/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, logarithms and hyperbolic functions of double, without calls and branches, and with only those
 * operations on 64-bit integers that AVX2 has, so that loops vectorise. NAME_by(fused, x) is as in vector_math.h.
 * Maximum errors in units in the last place (tests/ops/kernel/double_math.c): exp 1, expm1 1.2, log and log1p 0.9,
 * tanh 1.4, sigmoid 2, sinh 1.7, cosh 1.5, asinh 1.3, acosh 1.8, atanh 1.6. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_DOUBLE_EXPONENTIAL_H
#define TN_OPS_KERNEL_FUNCTIONS_DOUBLE_EXPONENTIAL_H

#include <stdbool.h>

#include <ops/kernel/functions/wide_log.h>

#define MADD(a, b, c) TN__MADD_DOUBLE(fused, a, b, c)

/* ln 2 in two parts: 41 bits, which are exact when multiplied by an exponent, and the rest */
#define TN__LN2_UPPER 0x1.62e42fefa3000p-1
#define TN__LN2_REST 0x1.3de6af278ece6p-42

/* 2^n for a normal result; `shifted` is TN__ROUND_DOUBLE + n. */
TN__INLINED double tn__power_of_2(double shifted)
{
  return tn__double_of_bits((tn__double_bits(shifted) + 1023) << 52);
}

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2 */
TN__INLINED double tn__exp_tail_by(const int fused, double r)
{
  double q = 0x1.ad7de852e5cafp-26;
  q = MADD(q, r, 0x1.28ae9a36ef09bp-22);
  q = MADD(q, r, 0x1.71df2830cec9ap-19);
  q = MADD(q, r, 0x1.a01998db007dfp-16);
  q = MADD(q, r, 0x1.a01a012837103p-13);
  q = MADD(q, r, 0x1.6c16c18494834p-10);
  q = MADD(q, r, 0x1.111111112849cp-7);
  q = MADD(q, r, 0x1.55555555506b8p-5);
  q = MADD(q, r, 0x1.55555555554f7p-3);
  return MADD(q, r, 0x1.000000000000ap-1);
}

/* e^r where x = n ln 2 + r; *shifted is TN__ROUND_DOUBLE + n. */
TN__INLINED double tn__exp_rest_d_by(const int fused, double x, double *shifted)
{
  *shifted = MADD(x, TN__LOG2_E, TN__ROUND_DOUBLE);
  double n = *shifted - TN__ROUND_DOUBLE, r = MADD(n, -TN__LN2_REST, MADD(n, -TN__LN2_UPPER, x));
  return 1 + MADD(r * r, tn__exp_tail_by(fused, r), r);
}

/* e 2^(n - less) in two factors: neither overflows, and a subnormal result is rounded only by the last product. */
TN__INLINED double tn__scaled_d(double e, double shifted, uint64_t less)
{
  uint64_t k = tn__double_bits(shifted) - tn__double_bits(TN__ROUND_DOUBLE) + 2048 - less, half = k >> 1;
  return e * tn__double_of_bits((half - 1) << 52) * tn__double_of_bits((k - half - 1) << 52);
}

TN__INLINED double tn__exp_d_by(const int fused, double x)
{
  double shifted, e = tn__exp_rest_d_by(fused, fabs(x) > 750 ? copysign(750, x) : x, &shifted);
  return tn__scaled_d(e, shifted, 0);
}

/* e^r - 1 where x + low = n ln 2 + r, for |x| <= 750 and low far below x, with little more than the last rounding's
 * error. */
TN__INLINED double tn__exp_sum_d_by(const int fused, double x, double low, double *shifted)
{
  *shifted = MADD(x, TN__LOG2_E, TN__ROUND_DOUBLE);
  double n = *shifted - TN__ROUND_DOUBLE, upper = MADD(n, -TN__LN2_UPPER, x), sum = upper + low;
  double r = MADD(n, -TN__LN2_REST, sum), lost = (low - (sum - upper)) + MADD(n, -TN__LN2_REST, sum - r);
  return r + MADD(r * r, tn__exp_tail_by(fused, r), lost);
}

/* e^x for |x| <= 700 or NaN */
TN__INLINED double tn__exp_within_d_by(const int fused, double x)
{
  double shifted, e = tn__exp_rest_d_by(fused, x, &shifted);
  return e * tn__power_of_2(shifted);
}

TN__INLINED double tn__expm1_d_by(const int fused, double x)
{
  double t = x > 710.0 ? 710.0 : x;
  t = t < -40.0 ? -40.0 : t; /* the result is -1 there */
  double shifted = MADD(t, TN__LOG2_E, TN__ROUND_DOUBLE), n = shifted - TN__ROUND_DOUBLE;
  double upper = MADD(n, -TN__LN2_UPPER, t), r = MADD(n, -TN__LN2_REST, upper);
  double low = MADD(n, -TN__LN2_REST, upper - r);
  double tail = MADD(r * r, tn__exp_tail_by(fused, r), low);
  /* 2^n - 1 + 2^n (r + tail), all halved so that nothing overflows, and the rounding error of the large sum */
  double scale = tn__power_of_2(shifted - 1), whole = scale - 0.5, part = scale * r, sum = whole + part;
  double result = (sum + (part - (sum - whole) + scale * tail)) * 2;
  return fabs(x) < 0x1p-54 ? x : result;
}

/* ---- logarithms ---- */

/* log(m 2^n) + low = *upper + the result, where w = m 2^n > 0 is normal and low is small. */
TN__INLINED double tn__log_sum_d_by(const int fused, double w, double shift, double low)
{
  double n, f = tn__log_parts(w, &n) - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  double q = 0x1.2f0dae36ac04ap-4;
  q = MADD(q, z, 0x1.39a0f1d13791ap-4);
  q = MADD(q, z, 0x1.7466464c965d5p-4);
  q = MADD(q, z, 0x1.c71c51e75b113p-4);
  q = MADD(q, z, 0x1.24924942185dap-3);
  q = MADD(q, z, 0x1.999999997fb25p-3);
  q = MADD(q, z, 0x1.5555555555593p-2);
  n -= shift;
  double tail = MADD(s, MADD(2 * z, q, half), MADD(n, TN__LN2_REST, low));
  return MADD(n, TN__LN2_UPPER, f - (half - tail));
}

TN__INLINED double tn__log_d_by(const int fused, double x)
{
  double tiny = x < 0x1p-1022 ? 1.0 : 0.0; /* subnormal, zero or negative */
  double r = tn__log_sum_d_by(fused, tiny != 0 ? x * 0x1p54 : x, 54 * tiny, 0);
  r = x == 0 ? (double)-INFINITY : r;
  r = x < 0 ? (double)NAN : r;
  return x < (double)INFINITY ? r : x;
}

/* The sum of 1, u and low, where low is far below the others; *lost is what the result lacks. */
TN__INLINED double tn__one_plus(double u, double low, double *lost)
{
  double w = 1 + u, back = w - 1;
  *lost = (1 - (w - back)) + (u - back) + low;
  return w;
}

/* log(1 + x + low) for low far below 1 + x */
TN__INLINED double tn__log1p_sum_d_by(const int fused, double x, double low)
{
  double lost, w = tn__one_plus(x, low, &lost), r = tn__log_sum_d_by(fused, w, 0, lost / w);
  r = x == -1 ? (double)-INFINITY : r;
  r = x < -1 ? (double)NAN : r;
  return x < (double)INFINITY ? r : x;
}

TN__INLINED double tn__log1p_d_by(const int fused, double x)
{
  double r = tn__log1p_sum_d_by(fused, x, 0);
  return fabs(x) < 0x1p-54 ? x : r;
}

/* ---- activations and hyperbolic functions ---- */

TN__INLINED double tn__tanh_d_by(const int fused, double x)
{
  double a = fabs(x), z = a * a, e = tn__exp_within_d_by(fused, 2 * a > 80.0 ? 80.0 : 2 * a);
  double above = MADD(MADD(-0x1.a18574f24cea2p-13, z, -0x1.4fd1d326475e5p-6), z, -0x1.5555555555554p-2);
  double below = MADD(MADD(MADD(0x1.b0ef267ed8ba1p-13, z, 0x1.7d8fc466131c6p-6), z, 0x1.d890f130c6ea9p-2), z, 1);
  bool near = a < 0.625;
  double ratio = (near ? a * z * above : -2) / (near ? below : e + 1);
  return copysign((near ? a : 1) + ratio, x);
}

TN__INLINED double tn__sigmoid_d_by(const int fused, double x)
{
  double e = tn__exp_d_by(fused, -fabs(x)), above = 1 / (1 + e);
  return x < 0 ? MADD(-e, e * above, e) : above; /* nearer than e / (1 + e) */
}

/* e^a / 2 for a >= 0 or NaN */
TN__INLINED double tn__half_exp_d_by(const int fused, double a)
{
  double shifted, e = tn__exp_rest_d_by(fused, a > 711.0 ? 711.0 : a, &shifted);
  return tn__scaled_d(e, shifted, 1);
}

TN__INLINED double tn__cosh_d_by(const int fused, double x)
{
  double h = tn__half_exp_d_by(fused, fabs(x));
  return h + 0.25 / h;
}

TN__INLINED double tn__sinh_d_by(const int fused, double x)
{
  double a = fabs(x), z = a * a, h = tn__half_exp_d_by(fused, a);
  double q = 0x1.b4d0ecf6169b6p-41;
  q = MADD(q, z, 0x1.611a3590d8270p-33);
  q = MADD(q, z, 0x1.ae6467719a11ep-26);
  q = MADD(q, z, 0x1.71de3a45ea193p-19);
  q = MADD(q, z, 0x1.a01a01a0292f1p-13);
  q = MADD(q, z, 0x1.11111111110a0p-7);
  q = MADD(q, z, 0x1.5555555555556p-3);
  return copysign(a < 1 ? MADD(a * z, q, a) : h - 0.25 / h, x);
}

/* log(1 + u + low), or log(2 x) if x is so large that its square would not change the result */
TN__INLINED double tn__area_d_by(const int fused, double x, double u, double low)
{
  double lost, w = tn__one_plus(u, low, &lost);
  bool large = x > 0x1p28;
  return tn__log_sum_d_by(fused, large ? x : w, large ? -1 : 0, large ? 0 : lost / w);
}

TN__INLINED double tn__asinh_d_by(const int fused, double x)
{
  double a = fabs(x), square = a * a, part = square / (1 + sqrt(1 + square)), u = a + part;
  double r = tn__area_d_by(fused, a, u, part - (u - a));
  r = a < 0x1p-28 ? a : r;
  return a < (double)INFINITY ? copysign(r, x) : x;
}

TN__INLINED double tn__acosh_d_by(const int fused, double x)
{
  double above = x - 1, root = sqrt(above * (2 + above)), u = root + above;
  double r = tn__area_d_by(fused, x, u, above - (u - root));
  r = x < 1 ? (double)NAN : r;
  return x < (double)INFINITY ? r : x;
}

TN__INLINED double tn__atanh_d_by(const int fused, double x)
{
  double a = fabs(x), below = 1 - a, u = 2 * a / below;
  /* The rounding error of `below`, which is not 0 for a < 1/2 only, times an estimate of -u / below. */
  double low = ((1 - below) - a) * u * MADD(below, 0x1.e1e1e2p0, -0x1.696970p1);
  double r = copysign(0.5 * tn__log1p_sum_d_by(fused, u, low), x);
  double end = a == 1 ? x * (double)INFINITY : (double)NAN;
  r = a < 0x1p-28 ? x : r;
  return a < 1 ? r : end;
}

#undef MADD

TN__FUNCTION_D(exp)
TN__FUNCTION_D(expm1)
TN__FUNCTION_D(log)
TN__FUNCTION_D(log1p)
TN__FUNCTION_D(tanh)
TN__FUNCTION_D(sigmoid)
TN__FUNCTION_D(sinh)
TN__FUNCTION_D(cosh)
TN__FUNCTION_D(asinh)
TN__FUNCTION_D(acosh)
TN__FUNCTION_D(atanh)

#endif
