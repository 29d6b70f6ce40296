/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse of the error function, and quantiles of the normal distribution, of double without calls and branches: a
 * rough value and two steps of Halley's method. Maximum errors in units in the last place
 * (tests/ops/kernel/double_math.c): erfinv 2, quantile 3, more for probabilities below 1e-305, which have fewer digits.
 */
#ifndef TN_OPS_KERNEL_FUNCTIONS_QUANTILE_H
#define TN_OPS_KERNEL_FUNCTIONS_QUANTILE_H

#include <ops/kernel/functions/double_error.h>

/* z after a step of Halley's method towards erf z = a, or erfc z = rest unless `near`. */
TN__INLINED double tn__erf_step(double z, double a, double rest, bool near)
{
  double slope = 0x1.20dd750429b6dp+0 * tn__exp_d(-z * z);
  double miss = near ? a - tn__erf_near_by(0, z) : tn__erfc_d(z) - rest;
  return z + miss / (slope - z * miss);
}

/* The z >= 0 where erf z = a and erfc z = rest, for a in [0, 1/2], or rest in (0, 1/2] */
TN__INLINED double tn__erf_inverse(double a, double rest)
{
  bool near = a <= 0.5;
  double square = a * a, t = sqrt(-2 * tn__log_d(near ? 0.25 : 0.5 * rest));
  double z = (t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))) * 0.70710678118654752;
  z = near ? a * (0.886226925 + square * (0.232013666 + square * (0.127556175 + square * 0.0865521293))) : z;
  return tn__erf_step(tn__erf_step(z, a, rest, near), a, rest, near);
}

TN__INLINED double tn__erfinv_d(double x)
{
  double a = fabs(x), end = a == 1 ? x * (double)INFINITY : (double)NAN;
  double z = tn__erf_inverse(a, 1 - a);
  return a < 1 ? copysign(z, x) : end;
}

TN__INLINED double tn__quantile_d(double p)
{
  double q = 1 - p, a = p < 0.5 ? 1 - 2 * p : 2 * p - 1;
  double z = 1.4142135623730950488 * tn__erf_inverse(a, 2 * (p < 0.5 ? p : q));
  double inside = p < 0.5 ? -z : z, end = p == 1 ? (double)INFINITY : (double)NAN;
  end = p == 0 ? -(double)INFINITY : end;
  return p > 0 && p < 1 ? inside : end;
}

#endif
