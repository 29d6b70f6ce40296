/* SPDX-License-Identifier: Apache-2.0 */
/* The error function, its complement and its inverse of float, without calls and branches. Maximum errors in units in
 * the last place (tests/ops/kernel/vector_math.c): erf 1.3, erfc 1.3, its inverse 0.7,
 * quantiles 0.7. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_ERROR_H
#define TN_OPS_KERNEL_FUNCTIONS_ERROR_H

#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/functions/wide_log.h>

#define MADD(a, b, c) TN__MADD(fused, a, b, c)

/* Polynomials are evaluated in pairs of terms, so that additions wait for fewer others. */
TN__INLINED float tn__erff_by(const int fused, float x)
{
  float a = fabsf(x), z = a * a, z2 = z * z;
  float n0 = MADD(-0x1.81273ep-2f, z, 0x1.06eba8p-3f), n1 = MADD(-0x1.b7f90ep-6f, z, 0x1.ce2cf8p-4f);
  float n2 = MADD(0x1.496a32p-14f, z2, MADD(-0x1.a3f700p-11f, z, 0x1.5405b2p-8f));
  float near = MADD(a, MADD(z2, MADD(z2, n2, n1), n0), a);
  /* erf t = 1 - exp(-t H(t)). From 4 on the result is 1. */
  float t = a > 4.0f ? 4.0f : a, t2 = t * t;
  float h0 = MADD(0x1.451c18p-1f, t, 0x1.20f1eep+0f), h1 = MADD(-0x1.892c22p-6f, t, 0x1.b448fcp-4f);
  float h2 = MADD(0x1.d07b14p-17f, t2, MADD(-0x1.6e4722p-12f, t, 0x1.ebc456p-9f));
  float far = 1 - tn__expf_within_by(fused, -t * MADD(t2, MADD(t2, h2, h1), h0));
  return copysignf(a < 1.0f ? near : far, x);
}

/* erfc t = exp(-t^2) P(q) / (1 + 2t), where q = (t - 3) / (t + 3), for t from 0.5 to where the result of float is 0;
 * *power is exp(-t^2). */
TN__INLINED double tn__erfc_far_by(const int fused, double t, double *power)
{
  double q = (t - 3) / (t + 3);
  double p = -0x1.897212842326bp-13;
  p = TN__MADD_DOUBLE(fused, p, q, -0x1.6c58044641cd4p-11);
  p = TN__MADD_DOUBLE(fused, p, q, 0x1.0032e136c4c09p-9);
  p = TN__MADD_DOUBLE(fused, p, q, 0x1.48acd525c92ffp-9);
  p = TN__MADD_DOUBLE(fused, p, q, -0x1.85c169adbeb3dp-6);
  p = TN__MADD_DOUBLE(fused, p, q, 0x1.17cccac88b09cp-4);
  p = TN__MADD_DOUBLE(fused, p, q, -0x1.e88953b880040p-4);
  p = TN__MADD_DOUBLE(fused, p, q, 0x1.0983558737323p-3);
  p = TN__MADD_DOUBLE(fused, p, q, -0x1.85a1889fe48cdp-5);
  p = TN__MADD_DOUBLE(fused, p, q, -0x1.15c08471a19fcp-3);
  p = TN__MADD_DOUBLE(fused, p, q, 0x1.40c522da224a1p+0);
  *power = tn__wide_exp2_by(fused, -t * t * TN__LOG2_E);
  return *power * p / (1 + 2 * t);
}

TN__INLINED float tn__erfcf_by(const int fused, float x)
{
  float a = fabsf(x);
  double power, far = tn__erfc_far_by(fused, a > 10.1f ? 10.1f : a, &power);
  far = x < 0 ? 2 - far : far;
  return a < 0.5f ? 1 - tn__erff_by(fused, x) : (float)far;
}

#undef MADD

TN__INLINED float tn__erff(float x) { return tn__erff_by(0, x); }
TN__INLINED float tn__erfcf(float x) { return tn__erfcf_by(0, x); }

/* erfinv(x) / x as a function of c = w - 2.5, where w = -log(1 - x^2) is at most 5 */
TN__INLINED double tn__erfinv_near(double c)
{
  double near = -0x1.2e0e7eab7deefp-27;
  near = near * c + 0x1.8f221ce91bfe8p-26;
  near = near * c + 0x1.f48bd2dc6f996p-22;
  near = near * c - 0x1.d0c19def5e7d1p-19;
  near = near * c - 0x1.4d159ce35d011p-18;
  near = near * c + 0x1.c9e6c71107281p-13;
  near = near * c - 0x1.486615ae9b2bbp-10;
  near = near * c - 0x1.11c4eb99ce9dep-8;
  near = near * c + 0x1.f91e8ad751f5dp-3;
  near = near * c + 0x1.805c5d200692fp+0;
  return near;
}

/* x times a function of w = -log(1 - x^2), in two ranges: of w up to 5, of its square root beyond. */
TN__INLINED float tn__erfinvf(float x)
{
  double wide = x, w = -tn__wide_log1p(-wide * wide);
  double s = sqrt(w) - 3;
  double near = tn__erfinv_near(w - 2.5);
  double far = 0x1.0818646dc18e4p-13;
  far = far * s - 0x1.4c6ed97aff2f9p-12;
  far = far * s - 0x1.2e1ea682fba09p-14;
  far = far * s + 0x1.87a0dbfee595ep-10;
  far = far * s - 0x1.d677af7de5b4bp-9;
  far = far * s + 0x1.747e8d1e6bef5p-8;
  far = far * s - 0x1.f4a010ed409b5p-8;
  far = far * s + 0x1.35839f5a1317dp-7;
  far = far * s + 0x1.006dc6dceb1f3p+0;
  far = far * s + 0x1.6a9efbd185d7fp+1;
  float r = (float)(wide * (w < 5 ? near : far));
  float end = fabsf(x) > 1.0f ? NAN : x * INFINITY;
  return fabsf(x) < 1.0f ? r : end;
}

/* The quantile of the normal distribution for a float p: the same for w up to 5, beyond it a rough value and a step of
 * Halley's method. */
TN__INLINED double tn__quantile_rough(double p)
{
  double q = 1 - p, x = p - q, least = p < 0.5 ? p : q;
  double n, rest = tn__log_rest_by(0, 4 * p * q, -x * x, &n), w = -(n * TN__LN2 + rest);
  double t = sqrt(2 * (w + 2 * TN__LN2 - least)), power; /* -log(least) is this but for the square of least */
  double z = (t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))) * 0.70710678118654752;
  double miss = tn__erfc_far_by(0, z, &power) - 2 * least;
  z += miss / (0x1.20dd750429b6dp+0 * power - z * miss);
  double inside = 1.4142135623730950488 * (w < 5 ? x * tn__erfinv_near(w - 2.5) : copysign(z, x));
  double end = p == 1 ? (double)INFINITY : (double)NAN;
  end = p == 0 ? (double)-INFINITY : end;
  return p > 0 && p < 1 ? inside : end;
}

#endif
