/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions. Recorded cases check the ops; here are the parts of the syntax, and expressions that other
 * engines take long for. */
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>
#include <ops/string/regex/regex.h>

#include <stdlib.h>
#include <string.h>

/* ---- helpers ---- */

static tn__slice of(const char *text) { return (tn__slice){ text, strlen(text) }; }

/* Whether the whole text matches. */
static bool matches(const char *pattern, const char *text)
{
  tn__regex *re;
  tn__re_run *run = NULL;
  tn__poll poll = tn__poll_here();
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn__regex_compile(of(pattern), &re, &err), &err);
  REQUIRE_OK(tn__re_run_create(re, 0, &poll, &run, &err), &err);
  bool found = tn__regex_matches(run, of(text));
  tn__re_run_destroy(run);
  tn__regex_destroy(re);
  return found;
}

/* The first match and its groups: "abc|b|" for a match abc whose first group is b and whose second took no part. */
static const char *find(const char *pattern, const char *text)
{
  static char all[400];
  size_t slots[TN__RE_SLOTS], n = 0;
  tn__regex *re;
  tn__re_run *run = NULL;
  tn__poll poll = tn__poll_here();
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn__regex_compile(of(pattern), &re, &err), &err);
  REQUIRE(re->groups < 10);
  REQUIRE_OK(tn__re_run_create(re, 2 * (re->groups + 1), &poll, &run, &err), &err);
  bool found = tn__regex_find(run, of(text), 0, slots);
  snprintf(all, sizeof all, "none");
  for (int32_t g = 0; found && g <= re->groups; g++) {
    bool took_part = slots[2 * g] != TN__RE_NOWHERE;
    n += (size_t)snprintf(all + n, sizeof all - n, "%s%.*s", g > 0 ? "|" : "",
                          took_part ? (int)(slots[2 * g + 1] - slots[2 * g]) : 0,
                          took_part ? text + slots[2 * g] : "");
  }
  tn__re_run_destroy(run);
  tn__regex_destroy(re);
  return all;
}

static const char *fault(const char *pattern)
{
  static char text[400];
  tn__regex *re;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn__regex_compile(of(pattern), &re, &err);
  CHECK_NULL(re);
  snprintf(text, sizeof text, "%s %s", tn_status_name(st), tn_error_message(&err));
  tn_error_clear(&err);
  return text;
}

/* ---- syntax ---- */

static void regex__characters_and_sets(void)
{
  CHECK(matches("a.c", "a\xc3\xa9" "c"));
  CHECK(!matches("a.c", "a\nc"));
  CHECK(matches("(?s)a.c", "a\nc"));
  CHECK(!matches("a.c", "a\xff" "c"));
  CHECK(matches("[a-cx]+", "abcx"));
  CHECK(matches("[^a-c]+", "xyz\n"));
  CHECK(matches("[]a]+", "]a]"));
  CHECK(matches("[a\\]-]+", "]-a"));
  CHECK(matches("[[:alpha:]_[:^space:]]*", "a_1"));
  CHECK(matches("\\d\\D\\w\\W\\s\\S", "1x_- !"));
  CHECK(matches("\\x41\\x{1F600}\\101\\t", "A\xf0\x9f\x98\x80" "A\t"));
  CHECK(matches("\\Qa.b\\E+", "a.bbb"));
  CHECK(matches("[\xc3\xa9-\xe6\x97\xa5]", "\xce\xb1"));
}

static void regex__cases_are_folded(void)
{
  CHECK(matches("(?i)hello", "HeLLo"));
  CHECK(matches("a(?i:B)c", "abc"));
  CHECK(!matches("a(?i:B)c", "abC"));
  CHECK(matches("(?i)[x-z]+", "XyZ"));
  CHECK(!matches("(?i)[^x]", "X"));
  CHECK(matches("(?i)k", "\xe2\x84\xaa")); /* the Kelvin sign */
  CHECK(matches("(?i)\xc3\xa9", "\xc3\x89"));
}

static void regex__repetitions_are_greedy_or_not(void)
{
  CHECK_STR(find("<.*>", "x<a><b>"), "<a><b>");
  CHECK_STR(find("<.*?>", "x<a><b>"), "<a>");
  CHECK_STR(find("(?U)<.*>", "x<a><b>"), "<a>");
  CHECK_STR(find("a{2,3}", "aaaa"), "aaa");
  CHECK_STR(find("a{2,3}?", "aaaa"), "aa");
  CHECK_STR(find("a{2}", "aaaa"), "aa");
  CHECK_STR(find("(ab){2,}", "ababab"), "ababab|ab");
  CHECK(matches("a{0}b", "b"));
  CHECK(matches("a{,2}", "a{,2}"));
  CHECK_STR(find("(a*)*", "aab"), "aa|aa");
  CHECK_STR(find("(|a)*", "aab"), "|");
  CHECK_STR(find("(|a)+", "aab"), "|");
}

static void regex__alternatives_are_tried_in_order(void)
{
  CHECK_STR(find("a|ab", "ab"), "a");
  CHECK_STR(find("(a|ab)(c|bcd)", "abcd"), "abcd|a|bcd");
  CHECK_STR(find("(a)|(b)|", "b"), "b||b");
  CHECK_STR(find("x(?:1|2|)y", "x2y"), "x2y");
  CHECK(matches("(a|ab)c", "abc"));
  CHECK_STR(find("(?P<year>\\d+)-(?<month>\\d+)", "on 2026-11"), "2026-11|2026|11");
}

static void regex__positions(void)
{
  CHECK_STR(find("^b", "a\nb"), "none");
  CHECK_STR(find("(?m)^b$", "a\nb\nc"), "b");
  CHECK_STR(find("a$", "a\n"), "none");
  CHECK_STR(find("\\bthe\\b", "other the"), "the");
  CHECK_STR(find("\\Bhe\\b", "he the"), "he");
  CHECK_STR(find("\\Ab|c\\z", "abc"), "c");
}

static void regex__faults_name_their_byte(void)
{
  CHECK_STR(fault("a(b"), "INVALID_ARGUMENT regular expression 'a(b': a '(' without its ')' at byte 1");
  CHECK_CONTAINS(fault("ab)"), "a ')' without its '(' at byte 2");
  CHECK_CONTAINS(fault("[a-"), "a '[' without its ']' at byte 0");
  CHECK_CONTAINS(fault("[z-a]"), "a range that ends before it begins at byte 1");
  CHECK_CONTAINS(fault("[[:nope:]]"), "an unknown class at byte 1");
  CHECK_CONTAINS(fault("*a"), "a repetition of nothing at byte 0");
  CHECK_CONTAINS(fault("a**"), "a repetition of a repetition at byte 2");
  CHECK_CONTAINS(fault("a{1001}"), "a repetition with a wrong count at byte 1");
  CHECK_CONTAINS(fault("a{3,2}"), "a repetition with a wrong count at byte 1");
  CHECK_CONTAINS(fault("((a{100}){100}){100}"), "repetitions with too large counts at byte 9");
  CHECK_CONTAINS(fault("(?=a)"), "an unknown kind of group at byte 0");
  CHECK_CONTAINS(fault("(?<=a)"), "an unknown kind of group at byte 0");
  CHECK_CONTAINS(fault("(?P<1-2>a)"), "a malformed name of a group at byte 0");
  CHECK_CONTAINS(fault("(a)\\1"), "an unknown escape at byte 3");
  CHECK_CONTAINS(fault("a\\"), "a backslash without a character at byte 1");
  CHECK_CONTAINS(fault("a\xff"), "invalid UTF-8 at byte 1");
  CHECK_CONTAINS(fault("\\pL"), "UNIMPLEMENTED");
  CHECK_CONTAINS(fault("\\C"), "UNIMPLEMENTED");
}

/* ---- hostile expressions ---- */

static void regex__nesting_has_no_limit(void)
{
  enum { N = 20000 };
  char *text = malloc(2 * N + 2);
  REQUIRE_PTR(text);
  memset(text, '(', N);
  text[N] = 'a';
  memset(text + N + 1, ')', N);
  text[2 * N + 1] = 0;
  CHECK(matches(text, "a"));
  memset(text, '(', 2 * N + 1);
  CHECK_CONTAINS(fault(text), "a '(' without its ')'");
  free(text);
}

static void regex__size_has_a_limit(void)
{
  char text[2000] = "";
  for (int i = 0; i < 100; i++) strcat(text, "(?:abc){999}");
  CHECK_CONTAINS(fault(text), "it is too large");
}

static void regex__time_is_proportional_to_the_text(void)
{
  enum { N = 20000 };
  char *text = malloc(N + 1);
  REQUIRE_PTR(text);
  memset(text, 'a', N);
  text[N] = 0;
  CHECK(!matches("(a*)*b", text));
  CHECK(!matches("(a|a)*(a|a)*(a|a)*b", text));
  CHECK(!matches("(?:a?){50}a{50}b", text));
  CHECK_STR(find("(x+x+)+y", text), "none");
  free(text);
}

/* ---- lack of memory ---- */

static tn_status compile_and_match(void *arg)
{
  size_t slots[TN__RE_SLOTS];
  tn__regex *re;
  tn__re_run *run = NULL;
  tn__poll poll = tn__poll_here();
  tn_status st = tn__regex_compile(of("(?i)(?:[a-c\xc3\xa9]|\\W(x))+?\\b[^[:space:]]{2,4}"), &re, NULL);
  if (st == TN_OK) st = tn__re_run_create(re, 2 * (re->groups + 1), &poll, &run, NULL);
  if (st == TN_OK) tn__regex_find(run, of("ABC-x yz"), 0, slots);
  tn__re_run_destroy(run);
  tn__regex_destroy(re);
  (void)arg;
  return st;
}

static void regex__survives_every_failed_allocation(void) { tn_test_oom_sweep(compile_and_match, NULL); }

TAP_MAIN(TAP_TEST(regex__characters_and_sets), TAP_TEST(regex__cases_are_folded),
         TAP_TEST(regex__repetitions_are_greedy_or_not), TAP_TEST(regex__alternatives_are_tried_in_order),
         TAP_TEST(regex__positions), TAP_TEST(regex__faults_name_their_byte), TAP_TEST(regex__nesting_has_no_limit),
         TAP_TEST(regex__size_has_a_limit), TAP_TEST(regex__time_is_proportional_to_the_text),
         TAP_TEST(regex__survives_every_failed_allocation))
