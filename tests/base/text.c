/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and numbers. */
#include "conformance/support/tap.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/base/near.h>

#include "conformance/support/oom.h"

static void text__grows_up_to_its_limit(void)
{
  tn__text t;
  tn__text_init(&t, 20);
  CHECK_STR(tn__text_get(&t), "");
  tn__text_puts(&t, "abc");
  tn__text_append(&t, "d\0e", 3);
  tn__text_printf(&t, "%d-%s", 42, "x");
  CHECK_INT(t.size, 10);
  CHECK_BYTES(t.data, "abcd\0e42-x", 11);
  tn__text_printf(&t, "%s", "0123456789");
  CHECK(!t.failed);
  CHECK_INT(t.size, 20);
  tn__text_puts(&t, "y");
  CHECK(t.failed);
  CHECK_INT(t.size, 20);
  tn__text_fini(&t);
  tn__text_init(&t, 20);
  tn__text_printf(&t, "%s", "123456789012345678901");
  CHECK(t.failed);
  CHECK_STR(tn__text_get(&t), "");
  tn__text_puts(&t, "later appends do nothing");
  CHECK_STR(tn__text_get(&t), "");
  tn__text_fini(&t);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static tn_status build_text(void *arg)
{
  tn__text t;
  (void)arg;
  tn__text_init(&t, 100000);
  for (int i = 0; i < 500; i++) {
    tn__text_printf(&t, "item %d, ", i);
    tn__text_puts(&t, "and ");
  }
  tn_status s = t.failed ? TN_RESOURCE_EXHAUSTED : TN_OK;
  if (s == TN_OK) CHECK_CONTAINS(tn__text_get(&t), "item 499, and ");
  tn__text_fini(&t);
  return s;
}

static void text__fails_once_without_memory(void) { tn_test_oom_sweep(build_text, NULL); }

static void text__copies_end_at_a_zero_byte(void)
{
  char *a = tn__strdup("abc"), *b = tn__strndup("abcdef", 2), *c = tn__strndup("a\0b", 3);
  CHECK_STR(a, "abc");
  CHECK_STR(b, "ab");
  CHECK_STR(c, "a");
  CHECK_NULL(tn__strdup(NULL));
  tn__strfree(a);
  tn__strfree(b);
  tn__strfree(c);
  tn__strfree(NULL);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void slice__compares_bytes(void)
{
  tn__slice a = { "abc", 3 }, empty = { NULL, 0 };
  CHECK(tn__slice_is(a, "abc"));
  CHECK(!tn__slice_is(a, "abcd"));
  CHECK(!tn__slice_is(a, "ab"));
  CHECK(tn__slice_is(empty, ""));
  CHECK(tn__slice_equal(empty, tn__slice_of(NULL)));
}

static void shape__is_written_for_people(void)
{
  char text[40];
  const int64_t dims[] = { 2, -1, 30 };
  int64_t many[100];
  for (int i = 0; i < 100; i++) many[i] = 1000 + i;
  CHECK_STR(tn__format_shape(text, sizeof(text), dims, 3), "[2,?,30]");
  CHECK_STR(tn__format_shape(text, sizeof(text), dims, 0), "[]");
  CHECK_STR(tn__format_shape(text, sizeof(text), NULL, -1), "unknown rank");
  CHECK_STR(tn__format_shape(text, 9, dims, 3), "[2,?,30]");
  CHECK_STR(tn__format_shape(text, 8, dims, 3), "[2,?...");
  CHECK_STR(tn__format_shape(text, sizeof(text), many, 100), "[1000,1001,1002,1003,1004,1005,1006...");
  for (size_t size = 1; size < 20; size++) CHECK(strlen(tn__format_shape(text, size, many, 100)) < size);
}

static void number__integers(void)
{
  static const struct {
    const char *text;
    bool ok;
    int64_t value;
  } cases[] = {
    { "0", true, 0 },
    { "-7", true, -7 },
    { "+12", true, 12 },
    { "9223372036854775807", true, INT64_MAX },
    { "-9223372036854775808", true, INT64_MIN },
    { "9223372036854775808", false, 0 },
    { "-9223372036854775809", false, 0 },
    { "", false, 0 },
    { "-", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "0x10", false, 0 },
    { "1e3", false, 0 },
    { "007", true, 7 },
    { "--1", false, 0 },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int64_t value = 0;
    CHECK_MSG(tn__parse_int(tn__slice_of(cases[i].text), &value) == cases[i].ok && value == cases[i].value,
              "'%s' gives %lld", cases[i].text, (long long)value);
  }
  int64_t part;
  tn__slice slice = { "12345", 3 };
  CHECK(tn__parse_int(slice, &part));
  CHECK_INT(part, 123);
}

static void number__reals(void)
{
  static const struct {
    const char *text;
    bool ok;
    double value;
  } cases[] = {
    { "0", true, 0 },
    { "1.5", true, 1.5 },
    { "-2.5e3", true, -2500 },
    { "1e5", true, 1e5 },
    { "1E+5", true, 1e5 },
    { ".5", true, 0.5 },
    { "5.", true, 5 },
    { "1e-400", true, 0 },
    { "1e400", false, 0 },
    { "1.7976931348623157e308", true, 1.7976931348623157e308 },
    { "4.9e-324", true, 4.9e-324 },
    { "0.1", true, 0.1 },
    { "inf", true, INFINITY },
    { "-Infinity", true, -INFINITY },
    { "", false, 0 },
    { ".", false, 0 },
    { "1e", false, 0 },
    { "e5", false, 0 },
    { "1,5", false, 0 },
    { " 1", false, 0 },
    { "0x1p3", false, 0 },
    { "1.5f", false, 0 },
    { "nan(1)", false, 0 },
    { "infinit", false, 0 },
    { "--1", false, 0 },
    { "0e99999999999999999999", true, 0 },
    { "1e99999999999999999999", false, 0 },
    { "1e-99999999999999999999", true, 0 },
    /* halfway between two doubles, and just above: a digit far to the right decides */
    { "9007199254740993", true, 9007199254740992.0 },
    { "9007199254740993.00000000000000000000000000000000001", true, 9007199254740994.0 },
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    double value = 0;
    CHECK_MSG(tn__parse_double(tn__slice_of(cases[i].text), &value) == cases[i].ok && value == cases[i].value,
              "'%s' gives %g", cases[i].text, value);
  }
  double nan = 0, zero = 1;
  CHECK(tn__parse_double(tn__slice_of("-NaN"), &nan) && isnan(nan));
  CHECK(tn__parse_double(tn__slice_of("-0.0"), &zero) && zero == 0 && signbit(zero));
}

/* Digits beyond any buffer still affect rounding, and leading zeros cost nothing. */
static void number__reals_of_thousands_of_digits(void)
{
  static char text[6000];
  double value = 0;
  snprintf(text, sizeof(text), "9007199254740993.%04000d1", 0);
  CHECK(tn__parse_double(tn__slice_of(text), &value));
  CHECK(value == 9007199254740994.0);
  snprintf(text, sizeof(text), "0.%04000d125e4000", 0);
  CHECK(tn__parse_double(tn__slice_of(text), &value));
  CHECK(value == 0.125);
  snprintf(text, sizeof(text), "1%04000de-4000", 0);
  CHECK(tn__parse_double(tn__slice_of(text), &value));
  CHECK(value == 1);
}

static void number__reals_round_trip(void)
{
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    double value, back = 0;
    char text[40];
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy(&value, &state, sizeof(value));
    if (!isfinite(value)) continue;
    tn__snprintf(text, sizeof(text), "%.17g", value);
    CHECK_MSG(tn__parse_double(tn__slice_of(text), &back) && back == value, "%s gives %.17g", text, back);
  }
}

static void number__reals_do_not_depend_on_the_locale(void)
{
  double value = 0;
  char text[20];
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL)
    TAP_SKIP("no locale with a decimal comma is installed");
  bool ok = tn__parse_double(tn__slice_of("1.5"), &value);
  tn__snprintf(text, sizeof(text), "%.1f", 2.5);
  setlocale(LC_NUMERIC, "C");
  CHECK(ok);
  CHECK(value == 1.5);
  CHECK_STR(text, "2.5");
}

/* The name suggested for a misspelt one, or "". */
static const char *meant(const char *wrong, const char *const *names)
{
  tn__near near;
  tn__near_init(&near, wrong);
  for (; *names != NULL; names++) tn__near_offer(&near, *names);
  return near.best == NULL ? "" : near.best;
}

static void near__suggests_the_intended_name(void)
{
  char longer[200];
  static const char *const names[] = { "direct", "threaded", "gpu", "a", NULL };
  memset(longer, 'g', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  CHECK_STR(meant("dircet", names), "direct"); /* two letters transposed */
  CHECK_STR(meant("thraded", names), "threaded");
  CHECK_STR(meant("gpuu", names), "gpu");
  CHECK_STR(meant("opu", names), "gpu");
  CHECK_STR(meant("direct", names), "direct");
  CHECK_STR(meant("cluster", names), "");
  CHECK_STR(meant("b", names), ""); /* no letter in common */
  CHECK_STR(meant("", names), "");
  CHECK_STR(meant(longer, names), "");
  CHECK_STR(meant("direct", (const char *[]){ longer, "", NULL }), "");
}

TAP_MAIN(
  TAP_TEST(near__suggests_the_intended_name),
  TAP_TEST(text__grows_up_to_its_limit),
  TAP_TEST(text__fails_once_without_memory),
  TAP_TEST(text__copies_end_at_a_zero_byte),
  TAP_TEST(slice__compares_bytes),
  TAP_TEST(shape__is_written_for_people),
  TAP_TEST(number__integers),
  TAP_TEST(number__reals),
  TAP_TEST(number__reals_of_thousands_of_digits),
  TAP_TEST(number__reals_round_trip),
  TAP_TEST(number__reals_do_not_depend_on_the_locale))
