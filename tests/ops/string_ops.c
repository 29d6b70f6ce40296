/* SPDX-License-Identifier: Apache-2.0 */
/* Strings as a program sees them: numbers printed and parsed in any locale, hashes, substrings,
 * files, errors, and lack of memory. Recorded cases check the texts that ops return. */
#include "conformance/support/op_kit.h"

#include <ops/string/hash/fingerprint.h>
#include <ops/string/string_number.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT(key, text) "attr { key: '" key "' value { s: '" text "' } }"
#define STRINGS(name, shape, values) TENSOR(name, "DT_STRING", shape, values)

/* Fetches a string, valid until the next call; "" on failure. */
static const char *fetch_text(ts *t, const char *name)
{
  static char all[600];
  tn_tensor *out = NULL;
  const char *text;
  size_t n;
  all[0] = 0;
  if (tn_session_run(t->session, NULL, NULL, NULL, 0, &name, &out, 1, NULL, 0, NULL, &t->err) != TN_OK) return all;
  REQUIRE_OK(tn_tensor_get_string(out, 0, &text, &n, &t->err), &t->err);
  snprintf(all, sizeof all, "%.*s", (int)n, text);
  tn_tensor_unref(out);
  return all;
}

static tn_status run_target(ts *t, const char *name)
{
  return tn_session_run(t->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &name, 1, NULL, &t->err);
}

/* ---- numbers ---- */

static bool read_double(const char *text, double *out)
{
  return tn__text_to_number(TN_DOUBLE, tn__slice_of(text), out);
}

static bool read_float(const char *text, float *out) { return tn__text_to_number(TN_FLOAT, tn__slice_of(text), out); }

static void string_ops__numbers_are_rounded_once(void)
{
  double d;
  float f;
  CHECK(read_double("9007199254740993", &d) && d == 9007199254740992.0);
  CHECK(read_double("2.4703282292062328e-324", &d) && d == 0x1p-1074);
  CHECK(read_double("2.4703282292062327e-324", &d) && d == 0);
  CHECK(read_double("0x1.8p1", &d) && d == 3);
  CHECK(read_double(" -Infinity\n", &d) && isinf(d) && d < 0);
  /* through a double this would be a tie, and 16777216 */
  CHECK(read_float("16777217.0000000001", &f) && f == 16777218.0f);
  CHECK(read_float("1e39", &f) && isinf(f));
  CHECK(read_float("-1e-60", &f) && f == 0 && signbit(f));
  static const char *const none[] = { "", ".", "1e", "0x", "1 2", "1_000", "infin", "+-1", "nan(", "1d3" };
  for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) CHECK_MSG(!read_double(none[i], &d), "'%s'", none[i]);
}

static void string_ops__numbers_do_not_depend_on_the_locale(void)
{
  static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "cs_CZ.UTF-8" };
  const char *set = NULL;
  ts t;
  double d;
  for (size_t i = 0; set == NULL && i < sizeof names / sizeof names[0]; i++) set = setlocale(LC_ALL, names[i]);
  ops_open_text(&t, TENSOR("x", "DT_FLOAT", "", "float_val: 1234.5")
                NODE("text", "AsString", "input: 'x'", F INT("precision", 2))
                NODE("back", "StringToNumber", "input: 'text'", TYPE("out_type", "DT_DOUBLE"))
                NODE("again", "AsString", "input: 'back'",
                     TYPE("T", "DT_DOUBLE") "attr { key: 'shortest' value { b: true } }"));
  CHECK_STR(fetch_text(&t, "text:0"), "1234.50");
  CHECK_STR(fetch_text(&t, "again:0"), "1234.5");
  CHECK(read_double("1234.5", &d) && d == 1234.5);
  CHECK(!read_double("1234,5", &d));
  ts_fini(&t);
  setlocale(LC_ALL, "C");
}

static void string_ops__errors_name_texts_that_are_not_numbers(void)
{
  ts t;
  ops_open_text(&t, STRINGS("x", D(2), "string_val: '12' string_val: 'twelve'")
                NODE("n", "StringToNumber", "input: 'x'", TYPE("out_type", "DT_INT32"))
                NODE("wide", "AsString", "input: 'n'", TYPE("T", "DT_INT32") INT("precision", 3))
                NODE("fill", "AsString", "input: 'n'", TYPE("T", "DT_INT32") TEXT("fill", "xy")));
  CHECK_STATUS(run_target(&t, "n"), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'twelve' at 1 is no int32");
  CHECK_STATUS(run_target(&t, "wide"), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "int32 has no 'precision'");
  CHECK_STATUS(run_target(&t, "fill"), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "attribute 'fill' is 'xy'");
  ts_fini(&t);
}

/* ---- hashes ---- */

/* Hashes of TensorFlow 2.21 for the first n of these bytes, modulo 1000003. */
static void string_ops__hashes_equal_those_of_tensorflow(void)
{
  static const struct { size_t n; unsigned fast, old, strong; } wanted[] = {
    { 0, 377723, 598820, 383377 }, { 1, 234668, 254437, 436679 }, { 3, 370279, 791890, 332231 },
    { 4, 168110, 328566, 108912 }, { 7, 603764, 724373, 433034 }, { 8, 903111, 735783, 795926 },
    { 9, 598948, 760229, 11156 }, { 16, 350198, 27571, 949896 }, { 17, 293, 685500, 753912 },
    { 32, 353264, 582612, 601253 }, { 33, 828419, 375751, 477794 }, { 64, 708217, 594744, 556292 },
    { 65, 575007, 717939, 678048 }, { 127, 326431, 487647, 990812 }, { 128, 483601, 633453, 761195 },
    { 129, 520050, 447640, 195582 }, { 200, 751600, 277363, 893368 }, { 399, 201695, 75744, 547696 },
  };
  unsigned char bytes[400];
  const uint64_t key[2] = { 1, 2 };
  for (int i = 0; i < 400; i++) bytes[i] = (unsigned char)(i * 37 + 11);
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    CHECK_INT(tn__fingerprint64(bytes, wanted[i].n) % 1000003, wanted[i].fast);
    CHECK_INT(tn__murmur64(bytes, wanted[i].n) % 1000003, wanted[i].old);
    CHECK_INT(tn__siphash(key, bytes, wanted[i].n) % 1000003, wanted[i].strong);
  }
}

/* ---- shapes and parts ---- */

static void string_ops__texts_are_joined_and_divided(void)
{
  ts t;
  ops_open_text(&t, STRINGS("a", D(2), "string_val: 'x y' string_val: 'z'") STRINGS("b", "", "string_val: '+'")
                STRINGS("c", D(3), "string_val: '1' string_val: '2' string_val: '3'") INTS("axis", D(1), "int_val: 0")
                INTS("nine", "", "int_val: 9") INTS("far", D(1), "int_val: 7")
                NODE("join", "StringJoin", "input: 'a' input: 'b'", INT("N", 2) TEXT("separator", "-"))
                NODE("bad", "StringJoin", "input: 'a' input: 'c'", INT("N", 2))
                NODE("all", "ReduceJoin", "input: 'c' input: 'axis'", TEXT("separator", ", "))
                NODE("outside", "ReduceJoin", "input: 'c' input: 'far'", "")
                NODE("split", "StringSplitV2", "input: 'a' input: 'b'", "")
                NODE("sub", "Substr", "input: 'a' input: 'nine' input: 'nine'", TYPE("T", "DT_INT32")));
  CHECK_STR(ops_shape_of(&t, "join", 0), "[2]");
  CHECK_STR(ops_shape_of(&t, "split", 0), "[?,2]");
  CHECK_STR(fetch_text(&t, "join:0"), "x y-+");
  CHECK_STR(fetch_text(&t, "all:0"), "1, 2, 3");
  CHECK_STR(fetch_text(&t, "split:1"), "x y");
  CHECK_STATUS(run_target(&t, "outside"), TN_OUT_OF_RANGE, &t.err);
  CHECK_STATUS(run_target(&t, "sub"), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "position 9 of element 0 is outside of its text of 3 bytes");
  CHECK_STATUS(run_target(&t, "bad"), TN_INVALID_ARGUMENT, &t.err);
  ts_fini(&t);
}

/* ---- files ---- */

static void string_ops__files_are_written_with_their_folders(void)
{
  static const char *const names[] = { "path", "text" }, *const write = "write", *const fetch = "read:0";
  char folder[] = "/tmp/tenon-files-XXXXXX", path[100];
  ts t;
  tn_tensor *feeds[2], *out = NULL;
  const char *text = path;
  size_t n;
  REQUIRE(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/a/b", folder);
  ops_open_text_in(&t, folder, ANY("path", "DT_STRING") ANY("text", "DT_STRING")
                   NODE("write", "WriteFile", "input: 'path' input: 'text'", "")
                   NODE("read", "ReadFile", "input: 'path'", ""));
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &text, NULL, &feeds[0], &t.err), &t.err);
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &(const char *){ "with\0zero" }, &(size_t){ 9 }, &feeds[1], &t.err),
             &t.err);
  CHECK_STATUS(tn_session_run(t.session, NULL, names, feeds, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err), TN_NOT_FOUND,
               &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), path);
  CHECK_OK(tn_session_run(t.session, NULL, names, feeds, 2, NULL, NULL, 0, &write, 1, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_session_run(t.session, NULL, names, feeds, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_tensor_get_string(out, 0, &text, &n, &t.err), &t.err);
  CHECK_INT(n, 9);
  CHECK_BYTES(text, "with\0zero", 9);
  tn_tensor_unref(out);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  unlink(path);
  snprintf(path, sizeof path, "%s/a", folder);
  rmdir(path);
  rmdir(folder);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define LONG "a text that does not fit into an element of its own"
#define UTF8 TEXT("encoding", "utf-8")
#define ONE_OF_EACH                                                                                                 \
  STRINGS("a", D(2), "string_val: '" LONG "' string_val: 'short'") STRINGS("b", "", "string_val: ' '")              \
  STRINGS("csv", D(1), "string_val: '\"" LONG "\",1'") STRINGS("none", "", "string_val: ''")                        \
  INTS("axis", D(1), "int_val: 0") INTS("ids", D(2), "int_val: 0 int_val: 0") INTS("one", "", "int_val: 1")         \
  INTS("length", "", "int_val: 6") INTS("rows", D(2), "int_val: 0 int_val: 2")                                      \
  TENSOR("x", "DT_COMPLEX64", "", "scomplex_val: 1 scomplex_val: 2")                                                \
  NODE("join", "StringJoin", "input: 'a' input: 'b'", INT("N", 2))                                                  \
  NODE("reduce", "ReduceJoin", "input: 'a' input: 'axis'", "")                                                      \
  NODE("segments", "UnsortedSegmentJoin", "input: 'a' input: 'ids' input: 'one'", TYPE("Tindices", "DT_INT32"))     \
  NODE("split", "StringSplitV2", "input: 'a' input: 'b'", "")                                                       \
  NODE("format", "StringFormat", "input: 'a'",                                                                      \
       TEXT("template", "<%s>") "attr { key: 'T' value { list { type: DT_STRING } } }")                             \
  NODE("code", "EncodeBase64", "input: 'a'", "") NODE("upper", "StringUpper", "input: 'a'", UTF8)                   \
  NODE("number", "AsString", "input: 'x'", TYPE("T", "DT_COMPLEX64") INT("width", 100))                             \
  NODE("raw", "DecodePaddedRaw", "input: 'a' input: 'length'", TYPE("out_type", "DT_INT16"))                        \
  NODE("fields", "DecodeCSV", "input: 'csv' input: 'none' input: 'one'",                                            \
       "attr { key: 'OUT_TYPE' value { list { type: DT_STRING type: DT_INT32 } } }")                                \
  NODE("runs", "StringNGrams", "input: 'a' input: 'rows'", TYPE("Tsplits", "DT_INT32") TEXT("separator", "-")       \
       "attr { key: 'ngram_widths' value { list { i: 2 } } }" TEXT("left_pad", "") TEXT("right_pad", "")            \
       INT("pad_width", 0) "attr { key: 'preserve_short_sequences' value { b: false } }")                           \
  NODE("bytes", "SerializeTensor", "input: 'a'", TYPE("T", "DT_STRING"))                                            \
  NODE("parsed", "ParseTensor", "input: 'bytes'", TYPE("out_type", "DT_STRING"))                                    \
  NODE("characters", "UnicodeDecode", "input: 'a'", TEXT("input_encoding", "UTF-8"))                                \
  NODE("utf16", "UnicodeTranscode", "input: 'a'",                                                                   \
       TEXT("input_encoding", "UTF-8") TEXT("output_encoding", "UTF-16-BE"))

static tn_status compile_and_run(void *arg)
{
  static const char *const names[] = { "join:0", "reduce:0", "segments:0", "split:1", "format:0", "code:0", "upper:0",
                                       "number:0", "raw:0", "fields:0", "runs:0", "parsed:0", "characters:1",
                                       "utf16:0" };
  enum { N = sizeof names / sizeof names[0] };
  ts *t = arg;
  tn_callable callable;
  tn_tensor *out[N] = { NULL };
  tn_status st = tn_session_make_callable(t->session, NULL, NULL, 0, names, N, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(t->session, callable, NULL, 0, out, N, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(t->session, callable, NULL);
  return st;
}

static void string_ops__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, ONE_OF_EACH);
  REQUIRE_INT(compile_and_run(&t), TN_OK);
  tn_test_oom_sweep(compile_and_run, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(string_ops__numbers_are_rounded_once),
  TAP_TEST(string_ops__numbers_do_not_depend_on_the_locale),
  TAP_TEST(string_ops__errors_name_texts_that_are_not_numbers),
  TAP_TEST(string_ops__hashes_equal_those_of_tensorflow),
  TAP_TEST(string_ops__texts_are_joined_and_divided),
  TAP_TEST(string_ops__files_are_written_with_their_folders),
  TAP_TEST(string_ops__nothing_leaks_without_memory))
