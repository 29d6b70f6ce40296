/* SPDX-License-Identifier: Apache-2.0 */
/* Modified Bessel functions of orders 0 and 1, times e^-|x|, of float and double, without calls and branches. Below 8
 * a polynomial of x^2 is multiplied by the exponential, and what the square lacks is made good in it; from 8 on a
 * polynomial of 1 / x is divided by the square root. Maximum errors in units in the last place
 * (tests/ops/kernel/double_math.c): 3. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_BESSEL_H
#define TN_OPS_KERNEL_FUNCTIONS_BESSEL_H

#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/functions/double_exponential.h>

TN__INLINED float tn__bessel_i0ef(float x)
{
  float a = fabsf(x), t = a > 8.0f ? 8.0f : a, z = t * t, v = 1 / (a < 8.0f ? 8.0f : a), shifted;
  float p = 0x1.079d100000000p-54f;
  p = p * z + 0x1.a309a60000000p-48f;
  p = p * z + 0x1.72bbc20000000p-39f;
  p = p * z + 0x1.fc5c0e0000000p-32f;
  p = p * z + 0x1.2414500000000p-24f;
  p = p * z + 0x1.c6f3b60000000p-18f;
  p = p * z + 0x1.c720c00000000p-12f;
  p = p * z + 0x1.ffff920000000p-7f;
  p = p * z + 0x1.0000040000000p-2f;
  p = p * z + 0x1.0000000000000p+0f;
  float q = 0x1.8de7f40000000p-2f;
  q = q * v - 0x1.cb8fb80000000p-7f;
  q = q * v + 0x1.14e8600000000p-5f;
  q = q * v + 0x1.c9153c0000000p-6f;
  q = q * v + 0x1.98881e0000000p-5f;
  q = q * v + 0x1.9884540000000p-2f;
  float e = tn__expm1_rest_by(0, -t, &shifted), top = tn__float_of_bits(tn__float_bits(t) & 0xfffff000u);
  /* What z lacks of the square, times an estimate of the logarithm's slope */
  float low = ((top * top - z) + (t - top) * (t + top)) * ((0.00265f * t - 0.0445f) * t + 0.25f);
  e += low + low * e;
  float scale = tn__float_of_bits((tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) + 127u) << 23);
  float near = (p + p * e) * scale, far = q / sqrtf(a);
  return a < 8.0f ? near : far;
}

TN__INLINED float tn__bessel_i1ef(float x)
{
  float a = fabsf(x), t = a > 8.0f ? 8.0f : a, z = t * t, v = 1 / (a < 8.0f ? 8.0f : a), shifted;
  float p = 0x1.95e5cc0000000p-59f;
  p = p * z + 0x1.940a500000000p-52f;
  p = p * z + 0x1.6c4d800000000p-43f;
  p = p * z + 0x1.23e1040000000p-35f;
  p = p * z + 0x1.8518d60000000p-28f;
  p = p * z + 0x1.6c02940000000p-21f;
  p = p * z + 0x1.c71ed00000000p-15f;
  p = p * z + 0x1.5555340000000p-9f;
  p = p * z + 0x1.0000020000000p-4f;
  p = p * z + 0x1.0000000000000p-1f;
  float q = -0x1.cfd9d40000000p-2f;
  q = q * v + 0x1.435fc40000000p-7f;
  q = q * v - 0x1.7a3fb00000000p-5f;
  q = q * v - 0x1.7d8b180000000p-5f;
  q = q * v - 0x1.3264580000000p-3f;
  q = q * v + 0x1.9884540000000p-2f;
  float e = tn__expm1_rest_by(0, -t, &shifted), top = tn__float_of_bits(tn__float_bits(t) & 0xfffff000u);
  /* What z lacks of the square, times an estimate of the logarithm's slope */
  float low = ((top * top - z) + (t - top) * (t + top)) * ((0.00015f * t - 0.0105f) * t + 0.125f);
  e += low + low * e;
  float scale = tn__float_of_bits((tn__float_bits(shifted) - tn__float_bits(TN__MAGIC) + 127u) << 23);
  float near = (p + p * e) * t * scale, far = q / sqrtf(a);
  return copysignf(a < 8.0f ? near : far, x);
}

TN__INLINED double tn__bessel_i0e_d(double x)
{
  double a = fabs(x), t = a > 8 ? 8 : a, z = t * t, v = 1 / (a < 8 ? 8 : a), shifted;
  double p = 0x1.1cb10aa8579ddp-110;
  p = p * z + 0x1.108a48f85aa5cp-101;
  p = p * z + 0x1.f2a36f1ee1e69p-92;
  p = p * z + 0x1.40a5cf1b8d4a0p-82;
  p = p * z + 0x1.69e62154d5a50p-73;
  p = p * z + 0x1.55ff4d4c86497p-64;
  p = p * z + 0x1.0b3153eb26821p-55;
  p = p * z + 0x1.522a41264066bp-47;
  p = p * z + 0x1.522a4421963bep-39;
  p = p * z + 0x1.02e85c06c8eeap-31;
  p = p * z + 0x1.23456789c5ecdp-24;
  p = p * z + 0x1.c71c71c71a92fp-18;
  p = p * z + 0x1.c71c71c71c85cp-12;
  p = p * z + 0x1.ffffffffffff3p-7;
  p = p * z + 0x1.0000000000000p-2;
  p = p * z + 0x1.0000000000000p+0;
  double q = 0x1.8684fce039b75p+54;
  q = q * v - 0x1.071dbe1376d30p+55;
  q = q * v + 0x1.4756cd4607be7p+54;
  q = q * v - 0x1.f290af2c89e3ep+52;
  q = q * v + 0x1.03ec7e3a71906p+51;
  q = q * v - 0x1.8951934de4f96p+48;
  q = q * v + 0x1.bed8f19fe751ap+45;
  q = q * v - 0x1.85336f1fb429fp+42;
  q = q * v + 0x1.0730012dc6849p+39;
  q = q * v - 0x1.162e264b179f0p+35;
  q = q * v + 0x1.cc4d1e840f1bfp+30;
  q = q * v - 0x1.292256252014fp+26;
  q = q * v + 0x1.28cc9171a4263p+21;
  q = q * v - 0x1.c3d992b18a690p+15;
  q = q * v + 0x1.00a0918a93d7fp+10;
  q = q * v - 0x1.8904e2cbdcc61p+3;
  q = q * v + 0x1.5a0b88af1cd9fp-2;
  q = q * v + 0x1.70f73af1b048bp-4;
  q = q * v + 0x1.6e885ffb285f2p-5;
  q = q * v + 0x1.debb19116308ep-6;
  q = q * v + 0x1.cb94dd9cb182dp-6;
  q = q * v + 0x1.9884533d44854p-5;
  double top = tn__upper_half(t);
  double low = ((top * top - z) + (t - top) * (t + top)) * ((0.00265 * t - 0.0445) * t + 0.25);
  double e = tn__exp_sum_d_by(0, -t, low, &shifted);
  double far = (0x1.9884533d43651p-2 + (q * v - 0x1.cbc0d30ebfd15p-56)) / sqrt(a);
  return a < 8 ? (p + p * e) * tn__power_of_2(shifted) : far;
}

TN__INLINED double tn__bessel_i1e_d(double x)
{
  double a = fabs(x), t = a > 8 ? 8 : a, z = t * t, v = 1 / (a < 8 ? 8 : a), shifted;
  double p = 0x1.17ce814e5ee6bp-115;
  p = p * z + 0x1.26fdfdce4d4c3p-106;
  p = p * z + 0x1.1c186c56b26c6p-96;
  p = p * z + 0x1.8ad6ace465a2dp-87;
  p = p * z + 0x1.e28089af2f1f9p-78;
  p = p * z + 0x1.f17427dcd358ap-69;
  p = p * z + 0x1.ab82105c97661p-60;
  p = p * z + 0x1.2c975730079c6p-51;
  p = p * z + 0x1.522a441145d3cp-43;
  p = p * z + 0x1.27e4fb7658577p-35;
  p = p * z + 0x1.845c8a0cf770cp-28;
  p = p * z + 0x1.6c16c16c160bep-21;
  p = p * z + 0x1.c71c71c71c7a1p-15;
  p = p * z + 0x1.5555555555552p-9;
  p = p * z + 0x1.0000000000000p-4;
  p = p * z + 0x1.0000000000000p-1;
  double q = -0x1.96cf3b763de8ep+54;
  q = q * v + 0x1.12aae9ed04da5p+55;
  q = q * v - 0x1.567d4b935687bp+54;
  q = q * v + 0x1.05781408da32cp+53;
  q = q * v - 0x1.115fd3f5e2e3cp+51;
  q = q * v + 0x1.9eeb185c5f48dp+48;
  q = q * v - 0x1.d8f7b882ea99cp+45;
  q = q * v + 0x1.9d8143c400fe1p+42;
  q = q * v - 0x1.18d2a5336cd67p+39;
  q = q * v + 0x1.2a4ae5c3f1f23p+35;
  q = q * v - 0x1.f076a7981520fp+30;
  q = q * v + 0x1.42bbeee1a0b3fp+26;
  q = q * v - 0x1.453148801e6edp+21;
  q = q * v + 0x1.f4b1c1e5434d6p+15;
  q = q * v - 0x1.20d0445481457p+10;
  q = q * v + 0x1.c4a901a0dc04cp+3;
  q = q * v - 0x1.9aef0dad01418p-2;
  q = q * v - 0x1.c2c05915e4503p-4;
  q = q * v - 0x1.d743009e72f98p-5;
  q = q * v - 0x1.4f1c8ed96b3ddp-5;
  q = q * v - 0x1.7efc0e05ac855p-5;
  q = q * v - 0x1.32633e6df2d30p-3;
  double top = tn__upper_half(t);
  double low = ((top * top - z) + (t - top) * (t + top)) * ((0.00015 * t - 0.0105) * t + 0.125);
  double e = tn__exp_sum_d_by(0, -t, low, &shifted);
  double far = (0x1.9884533d43651p-2 + (q * v - 0x1.cbc0d30ebfd15p-56)) / sqrt(a);
  return copysign(a < 8 ? (p + p * e) * t * tn__power_of_2(shifted) : far, x);
}

#endif
