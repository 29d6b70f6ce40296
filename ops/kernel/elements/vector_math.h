/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log, tanh and sigmoid of float without calls and branches, so that loops around them vectorise on the
 * baseline of every architecture. NAME_by(fused, x) multiplies and adds at once if the constant `fused` is 1; NAME(x)
 * is NAME_by(0, x), which has the same bits everywhere. Maximum errors in units in the last place, measured at every
 * third float: exp 0.97, log 0.84, tanh 1.34, sigmoid 1.88 (tests/ops/kernel/vector_math.c). NaN stays NaN; infinities
 * and overflow give the same results as libm; subnormal results are rounded once. The polynomials are minimax fits to
 * the relative error of the result. */
#ifndef TN_OPS_KERNEL_ELEMENTS_VECTOR_MATH_H
#define TN_OPS_KERNEL_ELEMENTS_VECTOR_MATH_H

#include <math.h>

#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vectors.h>

#define TN__LN2_HIGH 0x1.62e4p-1f /* 16 bits: exact when multiplied by an exponent */
#define TN__LN2_LOW 0x1.7f7d1cp-20f

#define MADD(a, b, c) TN__MADD(fused, a, b, c)

/* Returns e^r - 1 where x = n ln 2 + r. *shifted is TN__MAGIC + n, so its low bits hold the integer n. */
#define TN__MAGIC 0x1.8p23f
TN__INLINED float tn__expm1_rest_by(const int fused, float x, float *shifted)
{
  /* |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds n to an integer in the low bits. */
  *shifted = MADD(x, 0x1.715476p0f, TN__MAGIC);
  float n = *shifted - TN__MAGIC;
  float r = MADD(n, -TN__LN2_LOW, MADD(n, -TN__LN2_HIGH, x));
  float q = 0x1.6a107cp-10f;
  q = MADD(q, r, 0x1.1245c8p-7f);
  q = MADD(q, r, 0x1.55593cp-5f);
  q = MADD(q, r, 0x1.555482p-3f);
  q = MADD(q, r, 0x1.fffffcp-2f);
  return MADD(r * r, q, r);
}

/* e^r, likewise. */
TN__INLINED float tn__exp_rest_by(const int fused, float x, float *shifted)
{
  return 1 + tn__expm1_rest_by(fused, x, shifted);
}

TN__INLINED float tn__expf_by(const int fused, float x)
{
  /* Beyond these bounds the result is infinity or 0. A NaN fails both comparisons and is kept. */
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  float shifted, e = tn__exp_rest_by(fused, x, &shifted);
  /* 2^n as two factors: neither overflows, and a subnormal result is rounded only by the last product. */
  uint32_t k = tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) + 512;
  uint32_t half = k >> 1;
  return e * tn__float_of_bits((half - 256 + 127) << 23) * tn__float_of_bits((k - half - 256 + 127) << 23);
}

/* The same for x in [-88, 88] or NaN, with fewer instructions: a subnormal result comes out as 0 or close to it. */
TN__INLINED float tn__expf_within_by(const int fused, float x)
{
  float shifted, e = tn__exp_rest_by(fused, x, &shifted);
  return e * tn__float_of_bits((tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) + 127u) << 23);
}

/* e^x for x <= 0 or NaN: a subnormal result comes out as 0 or close to it. */
TN__INLINED float tn__expf_below_by(const int fused, float x)
{
  return tn__expf_within_by(fused, x < -88.0f ? -88.0f : x);
}

TN__INLINED float tn__logf_by(const int fused, float x)
{
  float tiny = x < 0x1p-126f ? 1.0f : 0.0f; /* subnormal, zero or negative */
  float scaled = tiny != 0 ? x * 0x1p23f : x;
  uint32_t u = tn__float_bits(scaled) - 0x3f3504f3u; /* sqrt(1/2) */
  float n = (float)((int32_t)u >> 23) - 23 * tiny;
  float f = tn__float_of_bits((u & 0x7fffffu) + 0x3f3504f3u) - 1;
  float q = 0x1.1456d2p-4f;
  q = MADD(q, f, -0x1.de658cp-4f);
  q = MADD(q, f, 0x1.e706fep-4f);
  q = MADD(q, f, -0x1.fc1d5ap-4f);
  q = MADD(q, f, 0x1.2335b2p-3f);
  q = MADD(q, f, -0x1.555c5cp-3f);
  q = MADD(q, f, 0x1.99a4cap-3f);
  q = MADD(q, f, -0x1.000006p-2f);
  q = MADD(q, f, 0x1.555548p-2f);
  float f2 = f * f;
  float r = MADD(n, TN__LN2_HIGH, f + MADD(n, TN__LN2_LOW, MADD(f2 * f, q, -f2 / 2)));
  r = x == 0 ? -INFINITY : r;
  r = x < 0 ? NAN : r;
  return x < INFINITY ? r : x; /* infinity and NaN */
}

TN__INLINED float tn__tanhf_by(const int fused, float x)
{
  float a = fabsf(x), z = x * x;
  float q = -0x1.75e1c6p-8f;
  q = MADD(q, z, 0x1.52269ap-6f);
  q = MADD(q, z, -0x1.b83c5ap-5f);
  q = MADD(q, z, 0x1.110726p-3f);
  q = MADD(q, z, -0x1.555532p-2f);
  float near = MADD(a * z, q, a);
  float twice = 2 * a > 88.0f ? 88.0f : 2 * a; /* the result is already exactly 1 there */
  float far = 1 - 2 / (tn__expf_within_by(fused, twice) + 1);
  return copysignf(a < 0.625f ? near : far, x);
}

TN__INLINED float tn__sigmoidf_by(const int fused, float x)
{
  float e = tn__expf_by(fused, -fabsf(x)), above = 1 / (1 + e);
  return x < 0 ? MADD(-e, e * above, e) : above; /* nearer than e / (1 + e) */
}

#undef MADD

TN__INLINED float tn__expf(float x) { return tn__expf_by(0, x); }
TN__INLINED float tn__expf_within(float x) { return tn__expf_within_by(0, x); }
TN__INLINED float tn__logf(float x) { return tn__logf_by(0, x); }
TN__INLINED float tn__tanhf(float x) { return tn__tanhf_by(0, x); }
TN__INLINED float tn__sigmoidf(float x) { return tn__sigmoidf_by(0, x); }

#endif
