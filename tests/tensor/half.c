/* SPDX-License-Identifier: Apache-2.0 */
/* half and bfloat16: exact in one direction, rounded once to nearest even in the other. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <stdlib.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

/* Value of a half by its definition. */
static double half_value(uint16_t h)
{
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double sign = h & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

static void half__every_value_round_trips_through_float(void)
{
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t h = (uint16_t)i;
    double wanted = half_value(h);
    float f = tn__half_to_float(h);
    if (tn__half_is_nan(h)) {
      CHECK_MSG(isnan(f) && !!signbit(f) == (h >> 15), "%04x gives %g", h, (double)f);
      CHECK_MSG(tn__half_is_nan(tn__half_from_float(f)), "%04x is not converted back to NaN", h);
      continue;
    }
    CHECK_MSG((double)f == wanted && !!signbit(f) == h >> 15, "%04x gives %a, wanted %a", h, (double)f, wanted);
    CHECK_MSG(tn__half_from_float(f) == h, "%04x is converted back to %04x", h, tn__half_from_float(f));
    CHECK_MSG(tn__half_from_double(wanted) == h, "%04x is converted back from double to %04x", h,
              tn__half_from_double(wanted));
    CHECK(tn__half_is_inf(h) == !!isinf(wanted));
  }
}

/* Between two neighbours: below the middle rounds down, above it up, in the middle to even. */
static void half__rounds_to_nearest_even(void)
{
  for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
    for (uint32_t i = 0; i < 0x7c00; i++) {
      uint16_t lo = (uint16_t)(sign | i), hi = (uint16_t)(lo + 1), even = i & 1 ? hi : lo;
      /* After the largest half the next one would be 65536. */
      double a = half_value(lo), b = i == 0x7bff ? copysign(65536, a) : half_value(hi), middle = (a + b) / 2;
      CHECK_MSG(tn__half_from_float((float)middle) == even, "middle after %04x gives %04x", lo,
                tn__half_from_float((float)middle));
      CHECK(tn__half_from_float(nextafterf((float)middle, (float)a)) == lo);
      CHECK(tn__half_from_float(nextafterf((float)middle, (float)b)) == hi);
      CHECK(tn__half_from_double(middle) == even);
      CHECK(tn__half_from_double(nextafter(middle, a)) == lo);
      CHECK(tn__half_from_double(nextafter(middle, b)) == hi);
    }
  }
}

static void half__values_out_of_range(void)
{
  CHECK_INT(tn__half_from_float(1e30f), 0x7c00);
  CHECK_INT(tn__half_from_float(-INFINITY), 0xfc00);
  CHECK_INT(tn__half_from_double(1e300), 0x7c00);
  CHECK_INT(tn__half_from_double(-1e300), 0xfc00);
  CHECK_INT(tn__half_from_float(1e-30f), 0);
  CHECK_INT(tn__half_from_float(-1e-45f), 0x8000);
  CHECK_INT(tn__half_from_double(-1e-300), 0x8000);
  CHECK(tn__half_is_nan(tn__half_from_float(NAN)));
  CHECK(tn__half_is_nan(tn__half_from_double(-(double)NAN)));
  CHECK_INT(tn__half_from_float(tn__float_of_bits(0xff800001u)) >> 15, 1); /* a signalling NaN keeps its sign */
}

static void half__a_double_is_rounded_once(void)
{
  /* Rounding to float first would give the middle, which would then round to the even 1. */
  double above = 1 + ldexp(1, -11) + ldexp(1, -40);
  CHECK_INT(tn__half_from_double(above), 0x3c01);
  CHECK_INT(tn__half_from_float((float)above), 0x3c00);
  double below = 1 + ldexp(3, -11) - ldexp(1, -40);
  CHECK_INT(tn__half_from_double(below), 0x3c01);
  double wide = 1 + ldexp(1, -8) + ldexp(1, -40);
  CHECK_INT(tn__bfloat16_from_double(wide), 0x3f81);
  CHECK_INT(tn__bfloat16_from_float((float)wide), 0x3f80);
}

static void half__bfloat16_rounds_to_nearest_even(void)
{
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t b = (uint16_t)i;
    float f = tn__bfloat16_to_float(b);
    CHECK_INT(tn__float_bits(f), i << 16);
    if (tn__bfloat16_is_nan(b)) {
      CHECK(isnan(f));
      CHECK(tn__bfloat16_is_nan(tn__bfloat16_from_float(f)));
      continue;
    }
    CHECK(tn__bfloat16_is_inf(b) == !!isinf(f));
    CHECK_MSG(tn__bfloat16_from_float(f) == b && tn__bfloat16_from_double(f) == b, "%04x does not round-trip", b);
    if (tn__bfloat16_is_inf(b)) continue;
    uint16_t next = (uint16_t)(b + 1), even = b & 1 ? next : b;
    CHECK(tn__bfloat16_from_float(tn__float_of_bits(i << 16 | 0x7fff)) == b);
    CHECK(tn__bfloat16_from_float(tn__float_of_bits(i << 16 | 0x8000)) == even);
    CHECK(tn__bfloat16_from_float(tn__float_of_bits(i << 16 | 0x8001)) == next);
  }
  /* All payload bits are in the low half: still a NaN. */
  CHECK(tn__bfloat16_is_nan(tn__bfloat16_from_float(tn__float_of_bits(0x7f800001u))));
}

static void half__arrays_are_converted_as_single_values(void)
{
  enum { N = 1000 };
  float wide[N], back[N];
  uint16_t h[N], b[N];
  srand(3);
  for (int n = 0; n <= N; n += n < 20 ? 1 : 245) {
    for (int i = 0; i < n; i++) wide[i] = tn__float_of_bits((uint32_t)rand() << 16 ^ (uint32_t)rand());
    tn__half_from_floats(wide, h, n);
    tn__bfloat16_from_floats(wide, b, n);
    for (int i = 0; i < n; i++) {
      CHECK_INT(h[i], tn__half_from_float(wide[i]));
      CHECK_INT(b[i], tn__bfloat16_from_float(wide[i]));
    }
    tn__half_to_floats(h, back, n);
    for (int i = 0; i < n; i++) CHECK_INT(tn__float_bits(back[i]), tn__float_bits(tn__half_to_float(h[i])));
    tn__bfloat16_to_floats(b, back, n);
    for (int i = 0; i < n; i++) CHECK_INT(tn__float_bits(back[i]), tn__float_bits(tn__bfloat16_to_float(b[i])));
  }
}

TAP_MAIN(
  TAP_TEST(half__every_value_round_trips_through_float),
  TAP_TEST(half__rounds_to_nearest_even),
  TAP_TEST(half__values_out_of_range),
  TAP_TEST(half__a_double_is_rounded_once),
  TAP_TEST(half__bfloat16_rounds_to_nearest_even),
  TAP_TEST(half__arrays_are_converted_as_single_values))
