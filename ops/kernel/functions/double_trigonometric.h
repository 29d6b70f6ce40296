/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric functions of double and their inverses, without calls and branches, as in double_exponential.h. Maximum
 * errors in units in the last place (tests/ops/kernel/double_math.c): sin and cos 0.9, tan 1.5, asin 1, acos 1.3,
 * atan and atan2 1.8. */
#ifndef TN_OPS_KERNEL_FUNCTIONS_DOUBLE_TRIGONOMETRIC_H
#define TN_OPS_KERNEL_FUNCTIONS_DOUBLE_TRIGONOMETRIC_H

#include <stdbool.h>

#include <ops/kernel/functions/wide_log.h>

#define MADD(a, b, c) TN__MADD_DOUBLE(fused, a, b, c)

/* sin, cos and tan are for arguments up to this; infinities and NaN give NaN. */
#define TN__TURNS_LIMIT_D 0x1.9p16

#define TN__HALF_PI_D 0x1.921fb54442d18p+0
#define TN__HALF_PI_REST_D 0x1.1a62633145c07p-54

/* The rest of x by pi / 2, at most pi / 4 in size, plus *low; the low two bits of *turns are the number of quarter
 * turns. */
TN__INLINED double tn__turns_rest_d_by(const int fused, double x, uint64_t *turns, double *low)
{
  double shifted = MADD(x, 0x1.45f306dc9c883p-1, TN__ROUND_DOUBLE), n = shifted - TN__ROUND_DOUBLE;
  *turns = tn__double_bits(shifted);
  /* pi / 2 in three parts; the products with the first two, and the first difference, are exact. */
  double a = MADD(n, -0x1.921fb54440000p+0, x), b = n * 0x1.68c234c4c0000p-39, u = a - b, back = u - a;
  double lost = (a - (u - back)) - (b + back), v = MADD(n, -0x1.98a2e03707345p-77, lost), r = u + v;
  *low = v - (r - u);
  return r;
}

/* What the sine of r + low has beyond r */
TN__INLINED double tn__sine_tail_by(const int fused, double r, double low)
{
  double z = r * r;
  double q = 0x1.5d91600bcc7dap-33;
  q = MADD(q, z, -0x1.ae5e60d9b9681p-26);
  q = MADD(q, z, 0x1.71de35712fcabp-19);
  q = MADD(q, z, -0x1.a01a019c0a83dp-13);
  q = MADD(q, z, 0x1.111111110f845p-7);
  q = MADD(q, z, -0x1.5555555555549p-3);
  return MADD(r * z, q, MADD(-0.5 * z, low, low));
}

/* What its cosine has beyond *most */
TN__INLINED double tn__cosine_tail_by(const int fused, double r, double low, double *most)
{
  double z = r * r, half = 0.5 * z, w = 1 - half;
  double q = -0x1.8facda9652d4cp-37;
  q = MADD(q, z, 0x1.1ee9e8a785f81p-29);
  q = MADD(q, z, -0x1.27e4f8055f23ap-22);
  q = MADD(q, z, 0x1.a01a019cabc30p-16);
  q = MADD(q, z, -0x1.6c16c16c15144p-10);
  q = MADD(q, z, 0x1.555555555554cp-5);
  *most = w;
  return ((1 - w) - half) + MADD(z * z, q, -r * low);
}

/* a if the lowest bit of turns is 0, b if it is 1 */
TN__INLINED double tn__by_turn(uint64_t turns, double a, double b)
{
  uint64_t odd = 0 - (turns & 1);
  return tn__double_of_bits((tn__double_bits(a) & ~odd) | (tn__double_bits(b) & odd));
}

/* The sine of x, turned by `more` quarters */
TN__INLINED double tn__turned_d_by(const int fused, double x, uint64_t more)
{
  uint64_t turns;
  double low, most, r = tn__turns_rest_d_by(fused, x, &turns, &low);
  double sine = r + tn__sine_tail_by(fused, r, low), tail = tn__cosine_tail_by(fused, r, low, &most);
  double value = tn__by_turn(turns + more, sine, most + tail);
  return tn__double_of_bits(tn__double_bits(value) ^ ((turns + more) & 2) << 62);
}

TN__INLINED double tn__sin_d_by(const int fused, double x) { return x == 0 ? x : tn__turned_d_by(fused, x, 0); }
TN__INLINED double tn__cos_d_by(const int fused, double x) { return tn__turned_d_by(fused, x, 1); }

/* The quotient of the two sums is rounded little more than once. */
TN__INLINED double tn__tan_d_by(const int fused, double x)
{
  uint64_t turns;
  double low, most, r = tn__turns_rest_d_by(fused, x, &turns, &low);
  double sine_tail = tn__sine_tail_by(fused, r, low), cosine_tail = tn__cosine_tail_by(fused, r, low, &most);
  double sine = r + sine_tail, cosine = most + cosine_tail;
  double sine_lost = sine_tail - (sine - r), cosine_lost = cosine_tail - (cosine - most);
  double above = tn__by_turn(turns, sine, -cosine), below = tn__by_turn(turns, cosine, sine), ratio = above / below;
  double lost = tn__by_turn(turns, sine_lost, -cosine_lost) - ratio * tn__by_turn(turns, cosine_lost, sine_lost);
  return x == 0 ? x : ratio + lost / below;
}

/* ---- inverses ---- */

/* (asin s - s) / s for s in [0, 1/2], z = s^2 */
TN__INLINED double tn__asin_tail_by(const int fused, double z)
{
  double q = 0x1.05fe1eb648ed7p-5;
  q = MADD(q, z, -0x1.0b7dea35e4346p-6);
  q = MADD(q, z, 0x1.4107b915cef2dp-6);
  q = MADD(q, z, 0x1.aa387fc314e5cp-8);
  q = MADD(q, z, 0x1.8ef29d501befap-7);
  q = MADD(q, z, 0x1.c6f6688245723p-7);
  q = MADD(q, z, 0x1.1c6c42243d20bp-6);
  q = MADD(q, z, 0x1.6e89edc44b86cp-6);
  q = MADD(q, z, 0x1.f1c72c7f18902p-6);
  q = MADD(q, z, 0x1.6db6db419e1c9p-5);
  q = MADD(q, z, 0x1.333333336fd9ap-4);
  return MADD(q, z, 0x1.5555555555384p-3) * z;
}

TN__INLINED double tn__asin_d_by(const int fused, double x)
{
  double a = fabs(x), square = a > 0.5 ? (1 - a) / 2 : a * a, s = a > 0.5 ? sqrt(square) : a;
  double tail = s * tn__asin_tail_by(fused, square);
  /* pi / 2 - 2 (s + tail), where `top` has the upper half of the root's bits and `rest` the lower ones. A tiny number
   * keeps the divisor from being 0. */
  double top = tn__upper_half(s), rest = (square - top * top) / (s + top + 0x1p-500);
  double far = TN__HALF_PI_D / 2 + ((TN__HALF_PI_D / 2 - 2 * top) - (2 * (rest + tail) - TN__HALF_PI_REST_D));
  return copysign(a > 0.5 ? far : s + tail, x);
}

TN__INLINED double tn__acos_d_by(const int fused, double x)
{
  double a = fabs(x), square = a > 0.5 ? (1 - a) / 2 : a * a, s = a > 0.5 ? sqrt(square) : a;
  double r = MADD(s, tn__asin_tail_by(fused, square), s);
  double near = TN__HALF_PI_D - (copysign(r, x) - TN__HALF_PI_REST_D);
  double far = x < 0 ? 2 * TN__HALF_PI_D - (2 * r - 2 * TN__HALF_PI_REST_D) : 2 * r;
  return a > 0.5 ? far : near;
}

/* The angle in [0, pi / 2] of the point (b, a), where a and b are not negative, not both 0 and not infinite */
TN__INLINED double tn__angle_d_by(const int fused, double a, double b)
{
  double t = (a > b ? b : a) / (a > b ? a : b), z = t * t;
  double q = 0x1.bb90128a4114bp-17;
  q = MADD(q, z, -0x1.3efda21a1f969p-13);
  q = MADD(q, z, 0x1.b3bb592cad165p-11);
  q = MADD(q, z, -0x1.7a0e0d02a1042p-9);
  q = MADD(q, z, 0x1.d790223676c1ap-8);
  q = MADD(q, z, -0x1.c773b2f79cbeep-7);
  q = MADD(q, z, 0x1.682e4c3cc12d3p-6);
  q = MADD(q, z, -0x1.e9ee9336ee62bp-6);
  q = MADD(q, z, 0x1.2c2ad3d5b5d89p-5);
  q = MADD(q, z, -0x1.59a24b29d081fp-5);
  q = MADD(q, z, 0x1.82da33236a597p-5);
  q = MADD(q, z, -0x1.ae5e4256041e7p-5);
  q = MADD(q, z, 0x1.e1bb9b636ef00p-5);
  q = MADD(q, z, -0x1.110e50312a2fbp-4);
  q = MADD(q, z, 0x1.3b13667a29966p-4);
  q = MADD(q, z, -0x1.745d11ab703cap-4);
  q = MADD(q, z, 0x1.c71c717f9d41fp-4);
  q = MADD(q, z, -0x1.249249237e4e7p-3);
  q = MADD(q, z, 0x1.9999999995554p-3);
  q = MADD(q, z, -0x1.5555555555526p-2);
  double r = MADD(t * z, q, t);
  return a > b ? TN__HALF_PI_D - (r - TN__HALF_PI_REST_D) : r;
}

TN__INLINED double tn__atan_d_by(const int fused, double x)
{
  double a = fabs(x);
  return copysign(tn__angle_d_by(fused, a, 1), x);
}

TN__INLINED double tn__atan2_d_by(const int fused, double y, double x)
{
  double a = fabs(y), b = fabs(x), most = a > b ? a : b, endless = (double)INFINITY;
  double scale = most > 0x1p1000 ? 0x1p-100 : 1; /* sums must not overflow */
  double a_end = a == endless ? 1.0 : 0.0, b_end = b == endless ? 1.0 : 0.0;
  a = most < endless ? a * scale : a_end;
  b = most < endless ? b * scale : b_end;
  double r = tn__angle_d_by(fused, a, most == 0 ? 1 : b);
  r = tn__double_bits(x) >> 63 != 0 ? 2 * TN__HALF_PI_D - (r - 2 * TN__HALF_PI_REST_D) : r;
  return x != x || y != y ? x + y : copysign(r, y);
}

#undef MADD

TN__FUNCTION_D(sin)
TN__FUNCTION_D(cos)
TN__FUNCTION_D(tan)
TN__FUNCTION_D(asin)
TN__FUNCTION_D(acos)
TN__FUNCTION_D(atan)
TN__INLINED double tn__atan2_d(double y, double x) { return tn__atan2_d_by(0, y, x); }

#endif
