/* SPDX-License-Identifier: Apache-2.0 */
/* The gamma function's logarithm and its derivative, computed in double without calls and branches: a series for large
 * arguments, to which smaller ones are raised by 8 steps of the recurrence, and the reflection of arguments below 0.
 * Errors
 * (tests/ops/kernel/double_math.c) are 3e-15 of digamma and 1e-14 of lgamma, or of 1 if that is more, which is below
 * a unit in the last place of float. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_GAMMA_H
#define TN_OPS_KERNEL_FUNCTIONS_GAMMA_H

#include <ops/kernel/elements/rounding.h>
#include <ops/kernel/functions/double_exponential.h>
#include <ops/kernel/functions/double_trigonometric.h>

#define TN__PI_D 0x1.921fb54442d18p+1

/* The argument of the series, for y > 0 or NaN; *u is such that u (u + 6) (u + 10) (u + 12) is the product of y to
 * y + 7. */
TN__INLINED double tn__gamma_raised(double y, double *u)
{
  *u = y * (y + 7);
  return y < 8 ? y + 8 : y;
}

/* The sine and cosine of half a turn times |part|, which is at most 1/2 */
TN__INLINED double tn__half_turn(double part, double *cosine)
{
  double a = fabs(part), r = TN__PI_D * (a > 0.25 ? 0.5 - a : a), most;
  double s = r + tn__sine_tail_by(0, r, 0), c = tn__cosine_tail_by(0, r, 0, &most) + most;
  *cosine = a > 0.25 ? s : c;
  return a > 0.25 ? c : s;
}

TN__INLINED double tn__digamma_d(double x)
{
  double y = x > 0 ? x : 1 - x, u, w = tn__gamma_raised(y, &u), v = 1 / w, r = v * v;
  double q = 0x1.f820da2938823p-5;
  q = q * r - 0x1.51550299e55d9p-6;
  q = q * r + 0x1.f012cefe21022p-8;
  q = q * r - 0x1.11105583b2a12p-8;
  q = q * r + 0x1.041040501c1b3p-8;
  q = q * r - 0x1.11111110e7fc4p-7;
  q = q * r + 0x1.5555555555549p-4;
  double product = u * (u + 6) * (u + 10) * (u + 12), slope = ((4 * u + 84) * u + 504) * u + 720;
  double steps = y < 8 ? (2 * y + 7) * (slope / product) : 0;
  double above = tn__log_sum_d_by(0, w, 0, 0) - 0.5 * v - r * q - steps;
  above = y < (double)INFINITY ? above : y;
  double part = x - tn__round_d(x), cosine, sine = tn__half_turn(part, &cosine);
  double below = above - TN__PI_D * copysign(cosine / sine, part);
  below = part == 0 ? (double)NAN : below; /* a whole number */
  return x > 0 ? above : below;
}

/* For arguments that are floats */
TN__INLINED double tn__lgamma_wide(double x)
{
  double y = x < 0 ? 1 - x : x, u, w = tn__gamma_raised(y, &u), v = 1 / w, r = v * v;
  double q = -0x1.ac324fff88e58p-10;
  q = q * r + 0x1.b68b9de5d534dp-11;
  q = q * r - 0x1.380d01f3ec730p-11;
  q = q * r + 0x1.a019fa2a06420p-11;
  q = q * r - 0x1.6c16c16b2acd3p-9;
  q = q * r + 0x1.5555555555545p-4;
  double large = (w - 0.5) * tn__log_sum_d_by(0, w, 0, 0) - w + 0x1.d67f1c864beb5p-1 + q * v;
  double cosine, sine = tn__half_turn(x - tn__round_d(x), &cosine);
  double product = y < 8 ? u * (u + 6) * (u + 10) * (u + 12) : 1;
  double steps = tn__log_d(x < 0 ? product * (TN__PI_D / sine) : product);
  double result = x < 0 ? steps - large : large - steps;
  return fabs(x) == (double)INFINITY ? (double)INFINITY : result;
}

#endif
