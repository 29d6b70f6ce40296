/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric functions of float and their inverses, without calls and branches. Maximum errors in units in the last
 * place (tests/ops/kernel/vector_math.c): sin and cos 1.6, tan 0.6, asin
 * 1, acos 1.4, atan and atan2 1.6. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_TRIGONOMETRIC_H
#define TN_OPS_KERNEL_FUNCTIONS_TRIGONOMETRIC_H

#include <stdbool.h>

#include <ops/kernel/elements/half.h>
#include <ops/kernel/functions/wide_log.h>

#define MADD(a, b, c) TN__MADD(fused, a, b, c)

/* sin, cos and tan are for arguments up to this; infinities and NaN give NaN. */
#define TN__TURNS_LIMIT 0x1p30f

/* The rest of x by pi / 2, at most pi / 4 in size; the low two bits of *turns are the number of quarter turns. */
TN__INLINED double tn__turns_rest(float x, uint32_t *turns)
{
  double wide = x, shifted = wide * 0x1.45f306dc9c883p-1 + TN__ROUND_DOUBLE, n = shifted - TN__ROUND_DOUBLE;
  *turns = (uint32_t)tn__double_bits(shifted);
  /* pi / 2 in three parts; the products with the first two are exact. */
  return wide - n * 0x1.921fbp+0 - n * 0x1.5110bp-22 - n * 0x1.18469898cc517p-44;
}

/* The sine, or the cosine if `turns` is odd, negated if its second bit is set. */
TN__INLINED float tn__turned(float r, uint32_t turns)
{
  float z = r * r;
  float s = -0x1.994222p-13f;
  s = s * z + 0x1.110736p-7f;
  s = s * z - 0x1.555546p-3f;
  float c = 0x1.99ea04p-16f;
  c = c * z - 0x1.6c0c2ep-10f;
  c = c * z + 0x1.55554ap-5f;
  float sine = r + r * z * s, cosine = 1 - z / 2 + z * z * c;
  float value = (turns & 1) != 0 ? cosine : sine;
  return tn__float_of_bits(tn__float_bits(value) ^ (turns & 2) << 30);
}

TN__INLINED float tn__sinf(float x)
{
  uint32_t turns;
  float r = (float)tn__turns_rest(x, &turns);
  return x == 0 ? x : tn__turned(r, turns);
}

TN__INLINED float tn__cosf(float x)
{
  uint32_t turns;
  float r = (float)tn__turns_rest(x, &turns);
  return tn__turned(r, turns + 1);
}

TN__INLINED float tn__tanf(float x)
{
  uint32_t turns;
  double r = tn__turns_rest(x, &turns), z = r * r;
  double s = 0x1.6cd0a8595bb69p-19;
  s = s * z - 0x1.a00f79c4ad1d0p-13;
  s = s * z + 0x1.11110863b516bp-7;
  s = s * z - 0x1.5555554c68a72p-3;
  double c = -0x1.241da2f96c0b6p-22;
  c = c * z + 0x1.a010da1555913p-16;
  c = c * z - 0x1.6c16b822ddf36p-10;
  c = c * z + 0x1.5555554ed2c1ap-5;
  double sine = r + r * z * s, cosine = 1 - z / 2 + z * z * c;
  uint64_t odd = 0 - (uint64_t)(turns & 1);
  double above = tn__double_of_bits((tn__double_bits(sine) & ~odd) | (tn__double_bits(-cosine) & odd));
  double below = tn__double_of_bits((tn__double_bits(cosine) & ~odd) | (tn__double_bits(sine) & odd));
  return x == 0 ? x : (float)(above / below);
}

/* ---- inverses ---- */

#define TN__HALF_PI 0x1.921fb6p+0f
#define TN__HALF_PI_REST (-0x1.777a5cp-25f)

/* (asin s - s) / s for s in [0, 1/2], z = s^2 */
TN__INLINED float tn__asin_tail(const int fused, float z)
{
  float q = 0x1.59f28cp-5f;
  q = MADD(q, z, 0x1.8b88cap-6f);
  q = MADD(q, z, 0x1.748eb6p-5f);
  q = MADD(q, z, 0x1.33013ap-4f);
  return MADD(q, z, 0x1.5555cap-3f) * z;
}

TN__INLINED float tn__asinf_by(const int fused, float x)
{
  float a = fabsf(x), square = a > 0.5f ? (1 - a) / 2 : a * a, s = a > 0.5f ? sqrtf(square) : a;
  float tail = s * tn__asin_tail(fused, square);
  /* pi / 2 - 2 (s + tail), where `top` has the upper half of the root's bits and `rest` the lower ones. A tiny number
   * keeps the divisor from being 0. */
  float top = tn__float_of_bits(tn__float_bits(s) & 0xfffff000u), rest = (square - top * top) / (s + top + 0x1p-100f);
  float far = TN__HALF_PI / 2 + ((TN__HALF_PI / 2 - 2 * top) - (2 * (rest + tail) - TN__HALF_PI_REST));
  return copysignf(a > 0.5f ? far : s + tail, x);
}

TN__INLINED float tn__acosf_by(const int fused, float x)
{
  float a = fabsf(x), square = a > 0.5f ? (1 - a) / 2 : a * a, s = a > 0.5f ? sqrtf(square) : a;
  float r = MADD(s, tn__asin_tail(fused, square), s);
  float near = TN__HALF_PI - (copysignf(r, x) - TN__HALF_PI_REST);
  float far = x < 0 ? 2 * TN__HALF_PI - (2 * r - 2 * TN__HALF_PI_REST) : 2 * r;
  return a > 0.5f ? far : near;
}

TN__INLINED float tn__asinf(float x) { return tn__asinf_by(0, x); }
TN__INLINED float tn__acosf(float x) { return tn__acosf_by(0, x); }

/* atan a for a in [0, 1] */
TN__INLINED float tn__atan_near(float a)
{
  float z = a * a;
  float q = -0x1.d62fd0p-10f;
  q = q * z + 0x1.65a64ap-7f;
  q = q * z - 0x1.fed150p-6f;
  q = q * z + 0x1.dac9dcp-5f;
  q = q * z - 0x1.583490p-4f;
  q = q * z + 0x1.c099fep-4f;
  q = q * z - 0x1.2421b6p-3f;
  q = q * z + 0x1.9991fep-3f;
  q = q * z - 0x1.55553ep-2f;
  return a + a * z * q;
}

TN__INLINED float tn__atanf(float x)
{
  float a = fabsf(x), r = tn__atan_near(a > 1.0f ? 1 / a : a);
  return copysignf(a > 1.0f ? TN__HALF_PI - (r - TN__HALF_PI_REST) : r, x);
}

TN__INLINED float tn__atan2f(float y, float x)
{
  float a = fabsf(y), b = fabsf(x);
  float most = a > b ? a : b, least = a > b ? b : a;
  float ratio = least == most ? 1.0f : least / most; /* both may be infinite */
  float r = tn__atan_near(most == 0 ? 0.0f : ratio);
  r = a > b ? TN__HALF_PI - (r - TN__HALF_PI_REST) : r;
  r = tn__float_bits(x) >> 31 != 0 ? 2 * TN__HALF_PI - (r - 2 * TN__HALF_PI_REST) : r;
  return x != x || y != y ? x + y : copysignf(r, y);
}

#undef MADD

#endif
