/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and error objects. */
#include "conformance/support/tap.h"

#include <locale.h>
#include <string.h>

#include "conformance/support/oom.h"

static char long_text[2001];

static const char *make_long_text(void)
{
  for (size_t i = 0; i < sizeof(long_text) - 1; i++) long_text[i] = (char)('a' + i % 26);
  return long_text;
}

static void status__every_code_has_a_name_and_a_text(void)
{
  tn_status code = 99;
  CHECK_STR(tn_status_name(TN_OK), "OK");
  CHECK_STR(tn_status_name(TN_DATA_LOSS), "DATA_LOSS");
  CHECK_STR(tn_status_text(TN_NOT_FOUND), "the requested item does not exist");
  CHECK_STR(tn_status_name(-1), "UNKNOWN");
  CHECK_STR(tn_status_name(17), "UNKNOWN");
  CHECK_STR(tn_status_name(TN_PENDING), "UNKNOWN");
  for (tn_status i = 0; i <= 16; i++) {
    CHECK_STATUS(tn_status_from_name(tn_status_name(i), &code), TN_OK, NULL);
    CHECK_INT(code, i);
  }
  CHECK_STATUS(tn_status_from_name("NO_SUCH", &code), TN_NOT_FOUND, NULL);
  CHECK_INT(code, TN_UNKNOWN);
  CHECK_STATUS(tn_status_from_name(NULL, NULL), TN_NOT_FOUND, NULL);
}

static void error__numbers_equal_those_of_grpc(void)
{
  CHECK_INT(TN_CANCELLED, 1);
  CHECK_INT(TN_INVALID_ARGUMENT, 3);
  CHECK_INT(TN_RESOURCE_EXHAUSTED, 8);
  CHECK_INT(TN_UNAUTHENTICATED, 16);
}

static void error__a_fresh_object_is_ok_and_empty(void)
{
  tn_error err = TN_ERROR_INIT, zero;
  memset(&zero, 0, sizeof(zero));
  CHECK_INT(tn_error_code(&err), TN_OK);
  CHECK_STR(tn_error_message(&err), "");
  CHECK_STR(tn_error_node(&err), "");
  CHECK_INT(tn_error_n_causes(&err), 0);
  CHECK_STR(tn_error_cause(&err, 0), "");
  CHECK_STATUS(tn_error_set(&zero, TN_ABORTED, "an object of zeros works, too"), TN_ABORTED, NULL);
  CHECK_STR(tn_error_message(&zero), "an object of zeros works, too");
  tn_error_clear(&zero);
  tn_error_clear(NULL);
  CHECK_INT(tn_error_code(NULL), TN_OK);
  CHECK_STR(tn_error_message(NULL), "");
}

static void error__the_first_error_wins(void)
{
  tn_error err = TN_ERROR_INIT;
  CHECK_STATUS(tn_error_set(&err, TN_NOT_FOUND, "node '%s'", "x"), TN_NOT_FOUND, NULL);
  CHECK_STATUS(tn_error_set(&err, TN_ABORTED, "later"), TN_ABORTED, NULL);
  CHECK_INT(tn_error_code(&err), TN_NOT_FOUND);
  CHECK_STR(tn_error_message(&err), "node 'x'");
  CHECK_STATUS(tn_error_set(NULL, TN_ABORTED, "nowhere"), TN_ABORTED, NULL);
  tn_error_clear(&err);
  CHECK_INT(tn_error_code(&err), TN_OK);
  CHECK_STR(tn_error_message(&err), "");
  tn_error_set(&err, TN_ABORTED, "now");
  CHECK_STR(tn_error_message(&err), "now");
  tn_error_clear(&err);
}

static void error__short_texts_need_no_memory(void)
{
  tn_error err = TN_ERROR_INIT;
  uint64_t before = tn_test_allocations();
  tn_error_set(&err, TN_NOT_FOUND, "cannot open '%s'", "model.pb");
  tn_error_set_node(&err, "conv1");
  tn_error_wrap(&err, TN_OK, "cannot load the graph");
  tn_error_prefix(&err, "model '%s'", "digits");
  tn_error_clear(&err);
  CHECK_INT(tn_test_allocations() - before, 0);
}

/* P-61: a code, a text of one line, a chain of causes */
static void error__causes_are_listed_nearest_first(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_error_set(&err, TN_NOT_FOUND, "libfoo.so: cannot open shared object file");
  tn_error_set_node(&err, "MatMul_1");
  CHECK_STATUS(tn_error_wrap(&err, TN_UNAVAILABLE, "plugin 'gpu' cannot be loaded"), TN_UNAVAILABLE, NULL);
  CHECK_STATUS(tn_error_wrap(&err, TN_OK, "no runtime '%s'", "gpu"), TN_UNAVAILABLE, NULL);
  CHECK_STR(tn_error_message(&err), "no runtime 'gpu'");
  CHECK_STR(tn_error_node(&err), "MatMul_1");
  REQUIRE_INT(tn_error_n_causes(&err), 2);
  CHECK_STR(tn_error_cause(&err, 0), "plugin 'gpu' cannot be loaded");
  CHECK_STR(tn_error_cause(&err, 1), "libfoo.so: cannot open shared object file");
  CHECK_STR(tn_error_cause(&err, 2), "");

  char text[300];
  const char *whole = "UNAVAILABLE: no runtime 'gpu'\n"
                      "  caused by: plugin 'gpu' cannot be loaded\n"
                      "  caused by: libfoo.so: cannot open shared object file";
  CHECK_INT(tn_error_format(&err, text, sizeof(text)), strlen(whole));
  CHECK_STR(text, whole);
  CHECK_INT(tn_error_format(&err, NULL, 0), strlen(whole));
  CHECK_INT(tn_error_format(&err, text, 10), strlen(whole));
  CHECK_STR(text, "UNAVAILAB");
  tn_error_clear(&err);
  CHECK_INT(tn_error_format(&err, text, sizeof(text)), 2);
  CHECK_STR(text, "OK");
}

static void error__prefix_and_node_keep_the_rest(void)
{
  tn_error err = TN_ERROR_INIT;
  CHECK_STATUS(tn_error_prefix(&err, "x"), TN_OK, NULL);
  CHECK_STATUS(tn_error_wrap(&err, TN_OK, "x"), TN_OK, NULL);
  tn_error_set_node(&err, "x");
  CHECK_STR(tn_error_node(&err), "");
  tn_error_set(&err, TN_INVALID_ARGUMENT, "rank 3");
  tn_error_wrap(&err, TN_OK, "bad input");
  tn_error_set_node(&err, "a/b");
  tn_error_set_node(&err, "other");
  CHECK_STATUS(tn_error_prefix(&err, "node '%s'", "a/b"), TN_INVALID_ARGUMENT, NULL);
  CHECK_STR(tn_error_message(&err), "node 'a/b': bad input");
  CHECK_STR(tn_error_node(&err), "a/b");
  CHECK_STR(tn_error_cause(&err, 0), "rank 3");
  tn_error_clear(&err);
}

/* A caller without an error object must not take a failure for success. */
static void error__wrapping_nothing_is_still_a_failure(void)
{
  CHECK_INT(tn_error_wrap(NULL, TN_OK, "x"), TN_UNKNOWN);
  CHECK_INT(tn_error_wrap(NULL, TN_ABORTED, "x"), TN_ABORTED);
  CHECK_INT(tn_error_prefix(NULL, "x"), TN_UNKNOWN);
}

static void error__a_text_may_quote_the_object_itself(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_error_set(&err, TN_INTERNAL, "first");
  tn_error_wrap(&err, TN_OK, "second (%s)", tn_error_message(&err));
  tn_error_prefix(&err, "%s", tn_error_cause(&err, 0));
  tn_error_set_node(&err, tn_error_message(&err));
  CHECK_STR(tn_error_message(&err), "first: second (first)");
  CHECK_STR(tn_error_node(&err), "first: second (first)");
  tn_error_wrap(&err, TN_OK, "%s%s", make_long_text(), tn_error_message(&err));
  CHECK_INT(strlen(tn_error_message(&err)), 2000 + 21);
  tn_error_clear(&err);
  tn_error_set(&err, TN_INTERNAL, "%s", long_text);
  tn_error_set_node(&err, tn_error_message(&err));
  CHECK_STR(tn_error_node(&err), long_text);
  CHECK_STR(tn_error_message(&err), long_text);
  tn_error_clear(&err);
}

static void error__long_texts_spill(void)
{
  tn_error err = TN_ERROR_INIT;
  make_long_text();
  tn_error_set(&err, TN_INTERNAL, "[%s]", long_text);
  CHECK_INT(strlen(tn_error_message(&err)), 2002);
  for (int i = 0; i < 50; i++) tn_error_wrap(&err, TN_OK, "cause %d %s", i, long_text);
  CHECK_INT(tn_error_n_causes(&err), 50);
  CHECK_CONTAINS(tn_error_message(&err), "cause 49 abc");
  CHECK_CONTAINS(tn_error_cause(&err, 48), "cause 0 abc");
  CHECK_INT(strlen(tn_error_cause(&err, 49)), 2002);
  tn_error_clear(&err);
}

static void error__endless_texts_are_cut(void)
{
  static char huge[200000];
  memset(huge, 'x', sizeof(huge) - 1);
  tn_error err = TN_ERROR_INIT;
  tn_error_set(&err, TN_INTERNAL, "%s", huge);
  size_t n = strlen(tn_error_message(&err));
  CHECK(n > 10000 && n < 100000);
  CHECK_STR(tn_error_message(&err) + n - 4, "x...");
  for (int i = 0; i < 100; i++) tn_error_wrap(&err, TN_OK, "%d %s", i, huge);
  CHECK_CONTAINS(tn_error_message(&err), "99 xxx");
  CHECK(tn_error_n_causes(&err) >= 1);
  CHECK(tn_error_format(&err, NULL, 0) < 1000000);
  tn_error_clear(&err);
}

static void error__without_memory_texts_end_in_dots(void)
{
  tn_error err = TN_ERROR_INIT;
  make_long_text();
  tn_test_fail_allocation(1, 1);
  tn_error_set(&err, TN_INTERNAL, "%s", long_text);
  CHECK_INT(tn_error_code(&err), TN_INTERNAL);
  size_t n = strlen(tn_error_message(&err));
  CHECK_INT(n, 222); /* 224 bytes hold an empty node, this and its NUL */
  CHECK_STR(tn_error_message(&err) + n - 4, "k...");
  tn_error_wrap(&err, TN_UNAVAILABLE, "what was tried");
  CHECK_STR(tn_error_message(&err), "what was tried");
  REQUIRE_INT(tn_error_n_causes(&err), 1);
  CHECK_CONTAINS(tn_error_cause(&err, 0), "...");
  tn_error_wrap(&err, TN_OK, "%s", long_text);
  CHECK_CONTAINS(tn_error_message(&err), "...");
  CHECK(strlen(tn_error_message(&err)) > 100);
  CHECK_INT(err.used <= sizeof(err.inline_text), 1);
  tn_error_set_node(&err, long_text);
  CHECK(strncmp(tn_error_node(&err), "abcdefgh", 8) == 0);
  for (int i = 0; i < 1000; i++) {
    tn_error_wrap(&err, TN_OK, "w%d", i);
    tn_error_prefix(&err, "p");
    REQUIRE(err.used >= 2 && err.used <= sizeof(err.inline_text) && err.inline_text[err.used - 1] == 0);
  }
  tn_test_fail_allocation(0, 0);
  CHECK_INT(tn_error_code(&err), TN_UNAVAILABLE);
  tn_error_clear(&err);
}

static void error__a_copy_has_all_and_frees_the_old(void)
{
  tn_error a = TN_ERROR_INIT, b = TN_ERROR_INIT;
  make_long_text();
  tn_error_set(&b, TN_ABORTED, "%s", long_text);
  tn_error_set(&a, TN_NOT_FOUND, "deep %s", long_text);
  tn_error_set_node(&a, "n");
  tn_error_wrap(&a, TN_OK, "near");
  tn_error_copy(&b, &a);
  tn_error_copy(&b, &b);
  CHECK_INT(tn_error_code(&b), TN_NOT_FOUND);
  CHECK_STR(tn_error_message(&b), "near");
  CHECK_STR(tn_error_node(&b), "n");
  REQUIRE_INT(tn_error_n_causes(&b), 1);
  CHECK_STR(tn_error_cause(&b, 0), tn_error_cause(&a, 0));
  tn_error_clear(&b);
  tn_test_fail_allocation(1, 1);
  tn_error_copy(&b, &a);
  tn_test_fail_allocation(0, 0);
  CHECK_STR(tn_error_message(&b), "near");
  CHECK_STR(tn_error_node(&b), "n");
  CHECK_CONTAINS(tn_error_cause(&b, 0), "...");
  tn_error_clear(&a);
  tn_error_copy(&b, &a);
  CHECK_INT(tn_error_code(&b), TN_OK);
  tn_error_copy(NULL, &b);
  CHECK_INT(tn_test_live_blocks(), 0);
}

static void error__numbers_are_written_without_the_locale(void)
{
  tn_error err = TN_ERROR_INIT;
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL)
    TAP_SKIP("no locale with a decimal comma is installed");
  tn_error_set(&err, TN_OUT_OF_RANGE, "%.2f", 1.5);
  setlocale(LC_NUMERIC, "C");
  CHECK_STR(tn_error_message(&err), "1.50");
  tn_error_clear(&err);
}

static tn_status many_texts(void *arg)
{
  tn_error err = TN_ERROR_INIT, copy = TN_ERROR_INIT;
  (void)arg;
  tn_error_set(&err, TN_ABORTED, "%s", long_text);
  tn_error_wrap(&err, TN_OK, "%s", long_text);
  tn_error_set_node(&err, long_text);
  tn_error_prefix(&err, "%s", long_text);
  tn_error_copy(&copy, &err);
  bool whole = tn_error_code(&copy) == TN_ABORTED && tn_error_n_causes(&copy) == 1;
  tn_error_clear(&err);
  tn_error_clear(&copy);
  return whole ? TN_OK : TN_RESOURCE_EXHAUSTED;
}

static void error__nothing_leaks_without_memory(void)
{
  make_long_text();
  tn_test_oom_sweep(many_texts, NULL);
}

TAP_MAIN(
  TAP_TEST(status__every_code_has_a_name_and_a_text),
  TAP_TEST(error__numbers_equal_those_of_grpc),
  TAP_TEST(error__a_fresh_object_is_ok_and_empty),
  TAP_TEST(error__the_first_error_wins),
  TAP_TEST(error__short_texts_need_no_memory),
  TAP_TEST(error__causes_are_listed_nearest_first),
  TAP_TEST(error__prefix_and_node_keep_the_rest),
  TAP_TEST(error__wrapping_nothing_is_still_a_failure),
  TAP_TEST(error__a_text_may_quote_the_object_itself),
  TAP_TEST(error__long_texts_spill),
  TAP_TEST(error__endless_texts_are_cut),
  TAP_TEST(error__without_memory_texts_end_in_dots),
  TAP_TEST(error__a_copy_has_all_and_frees_the_old),
  TAP_TEST(error__numbers_are_written_without_the_locale),
  TAP_TEST(error__nothing_leaks_without_memory))
