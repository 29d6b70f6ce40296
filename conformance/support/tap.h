/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests that print TAP. In make check CUnit runs them (tap_cunit.c); tenon-conformance, which is installed, runs the
 * same files by itself (conformance/), each test in a process of its own.
 *
 * A test file is functions and a table:
 *
 *   #include <conformance/support/tap.h>
 *
 *   static void session__close_twice_is_ok(void)
 *   {
 *     REQUIRE_OK(tn_session_close(session, &err), &err);
 *     CHECK_INT(tn_session_close(session, NULL), TN_OK);
 *   }
 *
 *   TAP_MAIN(
 *     TAP_TEST(session__close_twice_is_ok),
 *     TAP_TEST(session__run_after_close_is_refused))
 *
 * Names are <module>__<behaviour>. CHECK records a failure and goes on; REQUIRE ends the test. CHECKs may be used from
 * several threads, REQUIREs only from the one that runs the test.
 *
 * Every program has the checking allocator of oom.h, a time limit for each test (TENON_TEST_TIMEOUT seconds, 300), and says
 * which test it was in when it crashes. `test_x --list` lists, `test_x 'glob'...` runs some; a glob that fits no test ends it
 * with status 2. Started by hand it takes what make check sets, as TENON_PLUGIN_PATH, from the build that it belongs to. */
#ifndef TENON_CONFORMANCE_SUPPORT_TAP_H
#define TENON_CONFORMANCE_SUPPORT_TAP_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <tenon/status.h>

typedef struct tap_test {
  const char *name;
  void (*fn)(void);
} tap_test;

#define TAP_TEST(function) { #function, function }

/* The tests of one file. */
typedef struct tap_suite {
  const char *file;
  const tap_test *tests;
  size_t n;
  void (*setup)(void);
  void (*teardown)(void);
  struct tap_suite *next;
} tap_suite;

#define TAP_MAIN(...) TAP_MAIN_WITH(NULL, NULL, __VA_ARGS__)

/* As TAP_MAIN, with a function that runs once before the tests and one that runs after them; NULL for none.
 * It adds the file to the suites of the program, which has its main from tap_program.c or from conformance/. */
#define TAP_MAIN_WITH(setup, teardown, ...)                                                                             \
  __attribute__((constructor)) static void tap_add_this_file(void)                                                    \
  {                                                                                                                   \
    static const tap_test tests[] = { __VA_ARGS__ };                                                                  \
    static tap_suite suite = { __FILE__, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown, NULL };            \
    tap_add_suite(&suite);                                                                                            \
  }

/* The suites of the program, in no order. */
void tap_add_suite(tap_suite *suite);
tap_suite *tap_suites(void);

/* The name of a suite, which is that of its file: "test_queues" for ".../conformance/state/queues.c". */
void tap_suite_name(const char *file, char *name, size_t size);

/* Ends the test and reports it as skipped, with the reason in printf's form. */
#define TAP_SKIP(...)      \
  do {                     \
    tap_skip(__VA_ARGS__); \
    return;                \
  } while (0)

#define CHECK(condition) tap_check((condition), __FILE__, __LINE__, false, "%s", #condition)
#define REQUIRE(condition) tap_check((condition), __FILE__, __LINE__, true, "%s", #condition)

/* With a message in printf's form, for loops over cases. */
#define CHECK_MSG(condition, ...) tap_check((condition), __FILE__, __LINE__, false, __VA_ARGS__)
#define REQUIRE_MSG(condition, ...) tap_check((condition), __FILE__, __LINE__, true, __VA_ARGS__)
#define FAIL(...) tap_check(false, __FILE__, __LINE__, false, __VA_ARGS__)

/* Found value first, wanted value second. Integers of any type up to 64 bits. */
#define CHECK_INT(found, wanted) tap_check_int((int64_t)(found), (int64_t)(wanted), #found, __FILE__, __LINE__, false)
#define REQUIRE_INT(found, wanted) tap_check_int((int64_t)(found), (int64_t)(wanted), #found, __FILE__, __LINE__, true)
#define CHECK_DOUBLE(found, wanted, tolerance) tap_check_double((found), (wanted), (tolerance), #found, __FILE__, __LINE__)
#define CHECK_STR(found, wanted) tap_check_str((found), (wanted), #found, __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) tap_check_contains((text), (part), #text, __FILE__, __LINE__)
#define CHECK_BYTES(found, wanted, n) tap_check_bytes((found), (wanted), (n), #found, __FILE__, __LINE__)
#define CHECK_NULL(pointer) tap_check((pointer) == NULL, __FILE__, __LINE__, false, "%s is NULL", #pointer)
#define REQUIRE_PTR(pointer) tap_check((pointer) != NULL, __FILE__, __LINE__, true, "%s is not NULL", #pointer)

/* A call and the error object that it was given (or NULL): a failure shows the error's text. */
#define CHECK_OK(call, err) tap_check_status((call), TN_OK, (err), #call, __FILE__, __LINE__, false)
#define REQUIRE_OK(call, err) tap_check_status((call), TN_OK, (err), #call, __FILE__, __LINE__, true)
#define CHECK_STATUS(call, wanted, err) tap_check_status((call), (wanted), (err), #call, __FILE__, __LINE__, false)

/* For programs with a main of their own. */
int tap_main(int argc, char **argv, const char *file, const tap_test *tests, size_t n);
int tap_main_with(int argc, char **argv, const char *file, const tap_test *tests, size_t n, void (*setup)(void),
                  void (*teardown)(void));

void tap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *tap_skip_reason(void); /* NULL when the test was not skipped */
void tap_unskip(void);

/* What a runtime answered. One that says UNIMPLEMENTED does not have what the test is about: tenon-conformance takes a test
 * that fails after that as skipped. The helpers that run steps say it; CHECK_OK and REQUIRE_OK do, too. */
void tap_answered(tn_status status, const tn_error *err);
const char *tap_unimplemented(void); /* the message, NULL when nothing of it was said before the first failure */

/* Prints a line "# ..." into the log. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Each returns whether the check held. */
bool tap_check(bool ok, const char *file, int line, bool fatal, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_check_int(int64_t found, int64_t wanted, const char *what, const char *file, int line, bool fatal);
bool tap_check_double(double found, double wanted, double tolerance, const char *what, const char *file, int line);
bool tap_check_str(const char *found, const char *wanted, const char *what, const char *file, int line);
bool tap_check_contains(const char *text, const char *part, const char *what, const char *file, int line);
bool tap_check_bytes(const void *found, const void *wanted, size_t n, const char *what, const char *file, int line);
bool tap_check_status(tn_status found, tn_status wanted, const tn_error *err, const char *what, const char *file, int line,
                      bool fatal);

/* Of whoever runs the tests: notes one check. A fatal one that failed ends the test when it is called on the thread that runs
 * it. */
void tap_record(bool ok, const char *file, int line, bool fatal, const char *message);

/* TENON_SRCDIR and TENON_BUILDDIR with a path below them. In one of four static buffers, so good for four calls. */
const char *tap_source_path(const char *path);
const char *tap_build_path(const char *path);

/* A fresh folder for the files of a test, removed with all that is in it when the program ends. */
const char *tap_scratch_dir(void);

#endif
