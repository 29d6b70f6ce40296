/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between dtypes: results that C leaves undefined, and conversions of more than one
 * step. */
#include <math.h>
#include <ops/kernel/elements/convert.h>
#include <string.h>
#include <conformance/support/tap.h>

static void convert(tn_dtype from, const void *in, tn_dtype to, void *out, int64_t n, bool truncate)
{
  tn__convert c;
  REQUIRE_MSG(tn__convert_find(from, to, truncate, &c), "%s to %s", tn_dtype_name(from), tn_dtype_name(to));
  tn__convert_run(&c, in, out, n);
}

static void convert__numbers_out_of_range_become_the_lowest(void)
{
  const float in[] = { NAN, INFINITY, -INFINITY, 3e9f, -3e9f, -1.5f, 255.9f };
  const int32_t wanted32[] = { INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, -1, 255 };
  const int64_t wanted64[] = { INT64_MIN, INT64_MIN, INT64_MIN, 3000000000, -3000000000, -1, 255 };
  const uint8_t wanted8[] = { 0, 0, 0, 0, 0, 255, 255 };
  const uint32_t wanted_u32[] = { 1u << 31, 1u << 31, 1u << 31, 3000000000u, 1u << 31, UINT32_MAX, 255 };
  int32_t out32[7];
  int64_t out64[7];
  uint8_t out8[7];
  uint32_t out_u32[7];
  convert(TN_FLOAT, in, TN_INT32, out32, 7, false);
  CHECK_BYTES(out32, wanted32, sizeof out32);
  convert(TN_FLOAT, in, TN_INT64, out64, 7, false);
  CHECK_BYTES(out64, wanted64, sizeof out64);
  convert(TN_FLOAT, in, TN_UINT8, out8, 7, false);
  CHECK_BYTES(out8, wanted8, sizeof out8);
  convert(TN_FLOAT, in, TN_UINT32, out_u32, 7, false);
  CHECK_BYTES(out_u32, wanted_u32, sizeof out_u32);
}

static void convert__large_unsigned_numbers(void)
{
  const double in[] = { 18446744073709549568.0, 9223372036854775808.0, 2e19 };
  const uint64_t wanted[] = { UINT64_C(18446744073709549568), UINT64_C(1) << 63, UINT64_C(1) << 63 };
  uint64_t out[3];
  float back[3];
  convert(TN_DOUBLE, in, TN_UINT64, out, 3, false);
  CHECK_BYTES(out, wanted, sizeof out);
  convert(TN_UINT64, out, TN_FLOAT, back, 3, false);
  CHECK_DOUBLE(back[0], 18446744073709551616.0, 0);
}

static void convert__bool_is_not_zero(void)
{
  const float in[] = { 0, -0.0f, NAN, 0.1f, 1e-40f };
  const uint8_t wanted[] = { 0, 0, 1, 1, 0 };
  uint8_t out[5];
  convert(TN_FLOAT, in, TN_BOOL, out, 5, false);
  CHECK_BYTES(out, wanted, sizeof out);
  const float complex_in[] = { 0, 5, 2, 0 }; /* 5i, 2: the real part decides */
  const uint8_t complex_wanted[] = { 0, 1 };
  convert(TN_COMPLEX64, complex_in, TN_BOOL, out, 2, false);
  CHECK_BYTES(out, complex_wanted, 2);
}

static void convert__complex_keeps_or_loses_its_imaginary_part(void)
{
  const float in[] = { 1.5f, -2, 300, 4 };
  const double wide[] = { 1.5, -2, 300, 4 };
  const int16_t ints[] = { 1, 300 };
  double out[4];
  int16_t shorts[2];
  convert(TN_COMPLEX64, in, TN_COMPLEX128, out, 2, false);
  CHECK_BYTES(out, wide, sizeof out);
  convert(TN_COMPLEX128, wide, TN_INT16, shorts, 2, false);
  CHECK_BYTES(shorts, ints, sizeof shorts);
  convert(TN_INT16, ints, TN_COMPLEX128, out, 2, false);
  CHECK(out[0] == 1 && out[1] == 0 && out[2] == 300 && out[3] == 0);
}

/* More elements than a block, in three steps: load, convert, store. */
static void convert__long_arrays_by_several_steps(void)
{
  enum { N = 1300 };
  static uint16_t halves[N], brains[N];
  static int32_t ints[N];
  for (int i = 0; i < N; i++) ints[i] = i % 200 - 100;
  convert(TN_INT32, ints, TN_HALF, halves, N, false);
  convert(TN_HALF, halves, TN_BFLOAT16, brains, N, false);
  memset(ints, 0, sizeof ints);
  convert(TN_BFLOAT16, brains, TN_INT32, ints, N, false);
  for (int i = 0; i < N; i++) CHECK_MSG(ints[i] == i % 200 - 100, "element %d is %d", i, (int)ints[i]);
}

static void convert__truncation_cuts_instead_of_rounding(void)
{
  const float in[] = { 1.9999999f, -1.9999999f, NAN };
  uint16_t rounded[3], cut[3];
  convert(TN_FLOAT, in, TN_BFLOAT16, rounded, 3, false);
  convert(TN_FLOAT, in, TN_BFLOAT16, cut, 3, true);
  CHECK_INT(rounded[0], 0x4000);
  CHECK_INT(cut[0], 0x3fff);
  CHECK_INT(cut[1], 0xbfff);
  CHECK(cut[2] > 0x7f80);
}

/* Every code is a number that is converted back to the same code. */
static void convert__eight_bit_floats_round_trip(void)
{
  static const tn_dtype dtypes[] = { TN_FLOAT8_E5M2, TN_FLOAT8_E4M3FN };
  for (int k = 0; k < 2; k++) {
    uint8_t codes[256], back[256];
    float numbers[256];
    for (int i = 0; i < 256; i++) codes[i] = (uint8_t)i;
    convert(dtypes[k], codes, TN_FLOAT, numbers, 256, false);
    convert(TN_FLOAT, numbers, dtypes[k], back, 256, false);
    for (int i = 0; i < 256; i++)
      CHECK_MSG(back[i] == codes[i] || numbers[i] != numbers[i], "%s: code %d is %g, converted back to %d",
                tn_dtype_name(dtypes[k]), i, (double)numbers[i], back[i]);
  }
  const float in[] = { 448, 460, 480, 1e6f, 0.0009765625f, 57344, 61439, 61440, INFINITY };
  uint8_t e4m3[9], e5m2[9];
  convert(TN_FLOAT, in, TN_FLOAT8_E4M3FN, e4m3, 9, false);
  convert(TN_FLOAT, in, TN_FLOAT8_E5M2, e5m2, 9, false);
  CHECK_INT(e4m3[0], 0x7e);
  CHECK_INT(e4m3[1], 0x7e);
  CHECK_INT(e4m3[2], 0x7f); /* beyond the largest there is only NaN */
  CHECK_INT(e4m3[3], 0x7f);
  CHECK_INT(e4m3[4], 0x00); /* half of the smallest: rounds to even */
  CHECK_INT(e5m2[5], 0x7b);
  CHECK_INT(e5m2[6], 0x7b);
  CHECK_INT(e5m2[7], 0x7c);
  CHECK_INT(e5m2[8], 0x7c);
}

static void convert__equal_representations_are_not_converted(void)
{
  tn__convert c;
  CHECK(tn__convert_find(TN_QINT8, TN_INT8, false, &c) && c.same);
  CHECK(tn__convert_find(TN_FLOAT, TN_FLOAT, true, &c) && c.same);
  CHECK(tn__convert_find(TN_BOOL, TN_UINT8, false, &c) && c.same);
  CHECK(tn__convert_find(TN_UINT8, TN_BOOL, false, &c) && !c.same);
  CHECK(!tn__convert_find(TN_STRING, TN_FLOAT, false, &c));
  CHECK(!tn__convert_find(TN_FLOAT, TN_RESOURCE, false, &c));
}

TAP_MAIN(
  TAP_TEST(convert__numbers_out_of_range_become_the_lowest),
  TAP_TEST(convert__large_unsigned_numbers),
  TAP_TEST(convert__bool_is_not_zero),
  TAP_TEST(convert__complex_keeps_or_loses_its_imaginary_part),
  TAP_TEST(convert__long_arrays_by_several_steps),
  TAP_TEST(convert__truncation_cuts_instead_of_rounding),
  TAP_TEST(convert__eight_bit_floats_round_trip),
  TAP_TEST(convert__equal_representations_are_not_converted))
