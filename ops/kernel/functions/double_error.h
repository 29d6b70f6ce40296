/* SPDX-License-Identifier: Apache-2.0 */
/* The error function and its complement of double, without calls and branches, as in double_exponential.h. Maximum
 * errors in units in the last place (tests/ops/kernel/double_math.c): erf 1.4, erfc 1.7. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_DOUBLE_ERROR_H
#define TN_OPS_KERNEL_FUNCTIONS_DOUBLE_ERROR_H

#include <ops/kernel/functions/double_exponential.h>

#define MADD(a, b, c) TN__MADD_DOUBLE(fused, a, b, c)

/* erf a for a in [0, 1] */
TN__INLINED double tn__erf_near_by(const int fused, double a)
{
  double z = a * a;
  double q = 0x1.055afdfe3f3b0p-34;
  q = MADD(q, z, -0x1.385fb872dc3ffp-30);
  q = MADD(q, z, 0x1.f7a09b8445424p-27);
  q = MADD(q, z, -0x1.5f1ce707b1cecp-23);
  q = MADD(q, z, 0x1.b9dee88dc5cf6p-20);
  q = MADD(q, z, -0x1.f4d1de8bc2af7p-17);
  q = MADD(q, z, 0x1.f9a321987f8a7p-14);
  q = MADD(q, z, -0x1.c02db3d8a56bbp-11);
  q = MADD(q, z, 0x1.565bcd0daeb69p-8);
  q = MADD(q, z, -0x1.b82ce3128490dp-6);
  q = MADD(q, z, 0x1.ce2f21a042b1fp-4);
  q = MADD(q, z, -0x1.812746b0379e6p-2);
  q = MADD(q, z, 0x1.06eba8214db69p-3);
  return MADD(a, q, a);
}

/* erf t = 1 - exp(-t H(t)). From 6 on the result is 1. */
TN__INLINED double tn__erf_d_by(const int fused, double x)
{
  double a = fabs(x), t = a > 6 ? 6 : a;
  double h = -0x1.ab7ee6976526cp-40;
  h = MADD(h, t, 0x1.28a05f9082be1p-34);
  h = MADD(h, t, -0x1.817c0f3d10e60p-30);
  h = MADD(h, t, 0x1.377a59e2312eep-26);
  h = MADD(h, t, -0x1.5e161292cd795p-23);
  h = MADD(h, t, 0x1.216780cbf4929p-20);
  h = MADD(h, t, -0x1.6964b220e4573p-18);
  h = MADD(h, t, 0x1.556f6a3a46908p-16);
  h = MADD(h, t, -0x1.d614520219f79p-15);
  h = MADD(h, t, 0x1.907e3be10789dp-14);
  h = MADD(h, t, -0x1.04fa10ae24969p-20);
  h = MADD(h, t, -0x1.2d49d66bbfea4p-11);
  h = MADD(h, t, 0x1.bbb5370f33816p-10);
  h = MADD(h, t, -0x1.bcad7cd7445cep-13);
  h = MADD(h, t, -0x1.3957e90bb7d0dp-6);
  h = MADD(h, t, 0x1.a4f305b286e98p-4);
  h = MADD(h, t, 0x1.45f316fb73036p-1);
  h = MADD(h, t, 0x1.20dd7412924ccp+0);
  double far = 1 - tn__exp_within_d_by(fused, -t * h);
  return copysign(a < 1 ? tn__erf_near_by(fused, a) : far, x);
}

/* erfc t = exp(-t^2) P(q) / (1 + 2t), where q = (t - 3.5) / (t + 3.5), for t from 0.5 to where the result is 0. */
TN__INLINED double tn__erfc_d_by(const int fused, double x)
{
  double a = fabs(x), t = a > 27.3 ? 27.3 : a, q = (t - 3.5) / (t + 3.5);
  double p = 0x1.577c5919fdd4cp-27;
  p = MADD(p, q, 0x1.02abf7d7f99e7p-29);
  p = MADD(p, q, -0x1.8b768bdb21926p-24);
  p = MADD(p, q, -0x1.926fe84d335ccp-27);
  p = MADD(p, q, 0x1.41bdf33cb6216p-21);
  p = MADD(p, q, -0x1.54046966b33adp-25);
  p = MADD(p, q, -0x1.ffe8b137b915cp-19);
  p = MADD(p, q, 0x1.3812ecdeffd01p-19);
  p = MADD(p, q, 0x1.9707b77b0fb62p-16);
  p = MADD(p, q, -0x1.66df532547652p-15);
  p = MADD(p, q, -0x1.fda8fd75242fap-14);
  p = MADD(p, q, 0x1.27e6596a9876fp-11);
  p = MADD(p, q, -0x1.3cf369c5106a9p-12);
  p = MADD(p, q, -0x1.143c4c6eb3235p-8);
  p = MADD(p, q, 0x1.38ec667118531p-6);
  p = MADD(p, q, -0x1.8ff5ef77723dbp-5);
  p = MADD(p, q, 0x1.686106046f4a8p-4);
  p = MADD(p, q, -0x1.d76830c34f7e1p-4);
  p = MADD(p, q, 0x1.8f702ec6b32dep-4);
  p = MADD(p, q, -0x1.59e2c284b1a13p-7);
  p = MADD(p, q, -0x1.1ebd220ea593bp-3);
  double more = MADD(p, q, -0x1.902cb7976c65ep-57), sum = 0x1.3e0a99a0ee914p+0 + more, below = 2 * t + 1;
  /* The quotient as two numbers: ratio + rest. Products of upper halves, which `tn__upper_half` gives, are exact. */
  double by = 1 / below, ratio = tn__upper_half(sum * by), half = tn__upper_half(below);
  double other = (below - half) + (1 - (below - 2 * t));
  double rest = ((sum - ratio * half) - ratio * other + (more - (sum - 0x1.3e0a99a0ee914p+0))) * by;
  double top = tn__upper_half(t), shifted, e = tn__exp_sum_d_by(fused, -top * top, (top - t) * (top + t), &shifted);
  double far = tn__scaled_d(ratio + MADD(ratio, e, MADD(rest, e, rest)), shifted, 0);
  double z = a * a, n = 0x1.88d9c208d26e4p-20;
  n = MADD(n, z, -0x1.f1d1cb268bb64p-17);
  n = MADD(n, z, 0x1.f9892841cbecap-14);
  n = MADD(n, z, -0x1.c02d2dae90262p-11);
  n = MADD(n, z, 0x1.565bcb6a15318p-8);
  n = MADD(n, z, -0x1.b82ce30c7da55p-6);
  n = MADD(n, z, 0x1.ce2f21a036afdp-4);
  n = MADD(n, z, -0x1.812746b037938p-2);
  n = MADD(n, z, 0x1.06eba8214db67p-3);
  double near = 1 - (x + x * n);
  far = x < 0 ? 2 - far : far;
  return a < 0.5 ? near : far;
}

#undef MADD

TN__FUNCTION_D(erf)
TN__FUNCTION_D(erfc)

#endif
