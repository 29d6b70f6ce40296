/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric functions of float and their inverses, without calls and branches. Maximum errors in units in the last
 * place (tests/ops/kernel/vector_math.c): sin and cos 1.6, tan, asin and acos
 * 0.6, atan and atan2 1.6. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_TRIGONOMETRIC_H
#define TN_OPS_KERNEL_FUNCTIONS_TRIGONOMETRIC_H

#include <stdbool.h>

#include <ops/kernel/elements/half.h>
#include <ops/kernel/functions/wide_log.h>

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

/* asin s for s in [0, 1/2] */
TN__INLINED double tn__asin_near(double s)
{
  double z = s * s;
  double q = 0x1.3370d02d6a15dp-5;
  q = q * z + 0x1.d8d646b9f6423p-7;
  q = q * z + 0x1.04963822a8560p-5;
  q = q * z + 0x1.6cae4ddb1c595p-5;
  q = q * z + 0x1.33387fd316e37p-4;
  q = q * z + 0x1.55554c594cda2p-3;
  return s + s * z * q;
}

#define TN__WIDE_HALF_PI 0x1.921fb54442d18p+0

/* asin |x|, or if x is large the complement of half of the result, as *far says. */
TN__INLINED double tn__asin_part(float x, bool *far)
{
  double a = fabsf(x);
  *far = a > 0.5;
  return tn__asin_near(*far ? sqrt((1 - a) / 2) : a);
}

TN__INLINED float tn__asinf(float x)
{
  bool far;
  double r = tn__asin_part(x, &far);
  return copysignf((float)(far ? TN__WIDE_HALF_PI - 2 * r : r), x);
}

TN__INLINED float tn__acosf(float x)
{
  bool far;
  double r = tn__asin_part(x, &far), near = x < 0 ? TN__WIDE_HALF_PI + r : TN__WIDE_HALF_PI - r;
  double twice = x < 0 ? 2 * TN__WIDE_HALF_PI - 2 * r : 2 * r;
  return (float)(far ? twice : near);
}

#define TN__HALF_PI 0x1.921fb6p+0f
#define TN__HALF_PI_REST (-0x1.777a5cp-25f)

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

#endif
