/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests that print TAP. In make check CUnit runs them (tests/support/tap_cunit.c); the installed program
 * tenon-conformance runs the same files with its own runner (conformance/), each test in a separate process.
 *
 * A test file consists of functions and a table:
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
 * Names are <module>__<behaviour>. CHECK records a failure and continues; REQUIRE ends the test. CHECK may be used on
 * any thread, REQUIRE only on the thread that runs the test.
 *
 * Every program uses the checking allocator of oom.h, has a time limit for each test (TENON_TEST_TIMEOUT seconds, 300),
 * and reports the current test if it crashes. `test_x --list` lists the tests, `test_x 'glob'...` runs the matching
 * ones; if a glob matches no test, it exits with status 2. Without make check, it sets variables such as
 * TENON_PLUGIN_PATH for its own build. */
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

/* Like TAP_MAIN, with a function that runs once before the tests and one that runs after them; NULL for none.
 * Adds the file to the suites of the program, whose main is in tests/support/tap_program.c or in conformance/. */
#define TAP_MAIN_WITH(setup, teardown, ...)                                                                \
  __attribute__((constructor)) static void tap_add_this_file(void)                                         \
  {                                                                                                        \
    static const tap_test tests[] = { __VA_ARGS__ };                                                       \
    static tap_suite suite = { __FILE__, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown, NULL }; \
    tap_add_suite(&suite);                                                                                 \
  }

/* The suites of the program, in unspecified order. */
void tap_add_suite(tap_suite *suite);
tap_suite *tap_suites(void);

/* The name of a suite, derived from its file: "test_queues" for ".../conformance/state/queues.c". */
void tap_suite_name(const char *file, char *name, size_t size);

/* Ends the test and reports it as skipped, with a printf-style reason. */
#define TAP_SKIP(...)      \
  do {                     \
    tap_skip(__VA_ARGS__); \
    return;                \
  } while (0)

#define CHECK(condition) tap_check((condition), __FILE__, __LINE__, false, "%s", #condition)
#define REQUIRE(condition) tap_check((condition), __FILE__, __LINE__, true, "%s", #condition)

/* With a printf-style message, for loops over cases. */
#define CHECK_MSG(condition, ...) tap_check((condition), __FILE__, __LINE__, false, __VA_ARGS__)
#define REQUIRE_MSG(condition, ...) tap_check((condition), __FILE__, __LINE__, true, __VA_ARGS__)
#define FAIL(...) tap_check(false, __FILE__, __LINE__, false, __VA_ARGS__)

/* The actual value first, the expected value second. Integers of any type up to 64 bits. */
#define CHECK_INT(found, wanted) tap_check_int((int64_t)(found), (int64_t)(wanted), #found, __FILE__, __LINE__, false)
#define REQUIRE_INT(found, wanted) tap_check_int((int64_t)(found), (int64_t)(wanted), #found, __FILE__, __LINE__, true)
#define CHECK_DOUBLE(found, wanted, tolerance) \
  tap_check_double((found), (wanted), (tolerance), #found, __FILE__, __LINE__)
#define CHECK_STR(found, wanted) tap_check_str((found), (wanted), #found, __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) tap_check_contains((text), (part), #text, __FILE__, __LINE__)
#define CHECK_BYTES(found, wanted, n) tap_check_bytes((found), (wanted), (n), #found, __FILE__, __LINE__)
#define CHECK_NULL(pointer) tap_check((pointer) == NULL, __FILE__, __LINE__, false, "%s is NULL", #pointer)
#define REQUIRE_PTR(pointer) tap_check((pointer) != NULL, __FILE__, __LINE__, true, "%s is not NULL", #pointer)

/* A call and the error object passed to it (or NULL); a failure shows the error's text. */
#define CHECK_OK(call, err) tap_check_status((call), TN_OK, (err), #call, __FILE__, __LINE__, false)
#define REQUIRE_OK(call, err) tap_check_status((call), TN_OK, (err), #call, __FILE__, __LINE__, true)
#define CHECK_STATUS(call, wanted, err) tap_check_status((call), (wanted), (err), #call, __FILE__, __LINE__, false)

/* For programs with their own main. */
int tap_main(int argc, char **argv, const char *file, const tap_test *tests, size_t n);
int tap_main_with(int argc, char **argv, const char *file, const tap_test *tests, size_t n, void (*setup)(void),
                  void (*teardown)(void));

void tap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *tap_skip_reason(void); /* NULL if the test was not skipped */
void tap_unskip(void);

/* Records a runtime's answer. UNIMPLEMENTED means that the runtime lacks the tested feature: tenon-conformance reports
 * a test that fails after that as skipped. The helpers that run steps call it, as do CHECK_OK and REQUIRE_OK. */
void tap_answered(tn_status status, const tn_error *err);
const char *tap_unimplemented(void); /* the message, NULL if there was none before the first failure */

/* Prints a line "# ..." into the log. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Each returns whether the check passed. */
bool tap_check(bool ok, const char *file, int line, bool fatal, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
bool tap_check_int(int64_t found, int64_t wanted, const char *what, const char *file, int line, bool fatal);
bool tap_check_double(double found, double wanted, double tolerance, const char *what, const char *file, int line);
bool tap_check_str(const char *found, const char *wanted, const char *what, const char *file, int line);
bool tap_check_contains(const char *text, const char *part, const char *what, const char *file, int line);
bool tap_check_bytes(const void *found, const void *wanted, size_t n, const char *what, const char *file, int line);
bool tap_check_status(tn_status found, tn_status wanted, const tn_error *err, const char *what, const char *file,
                      int line, bool fatal);

/* Provided by the test runner: records one check. A fatal failed check ends the test if called on the thread that runs
 * it. */
void tap_record(bool ok, const char *file, int line, bool fatal, const char *message);

/* A path below TENON_SRCDIR or TENON_BUILDDIR. Uses four static buffers in turn, so it is valid for four calls. */
const char *tap_source_path(const char *path);
const char *tap_build_path(const char *path);

/* A new folder for the files of a test, removed with its contents when the program ends. */
const char *tap_scratch_dir(void);
/* A path in that folder. The last 32 stay valid; one thread at a time. */
const char *tap_scratch_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
