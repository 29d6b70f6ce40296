/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests: CUnit runs them, this prints TAP (CUnit's own reports break off at the first failure).
 *
 * A test file is functions and a table:
 *
 *   #include <tests/support/tap.h>
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
 * several threads, REQUIREs only from the one that runs the test. CUnit's CU_ASSERTs work, too.
 *
 * Every program has the checking allocator of oom.h, a time limit for each test (TENON_TEST_TIMEOUT seconds, 300), and says
 * which test it was in when it crashes. `test_x --list` lists, `test_x 'glob'...` runs some. */
#ifndef TENON_TESTS_SUPPORT_TAP_H
#define TENON_TESTS_SUPPORT_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <CUnit/CUnit.h>

#include <tenon/status.h>

typedef struct tap_test {
  const char *name;
  void (*fn)(void);
} tap_test;

#define TAP_TEST(function) { #function, function }

#define TAP_MAIN(...)                                                                \
  int main(int argc, char **argv)                                                    \
  {                                                                                  \
    static const tap_test tests[] = { __VA_ARGS__ };                                 \
    return tap_main(argc, argv, __FILE__, tests, sizeof(tests) / sizeof(tests[0])); \
  }

/* As TAP_MAIN, with a function that runs once before the tests and one that runs after them; NULL for none. */
#define TAP_MAIN_WITH(setup, teardown, ...)                                                           \
  int main(int argc, char **argv)                                                                     \
  {                                                                                                   \
    static const tap_test tests[] = { __VA_ARGS__ };                                                  \
    return tap_main_with(argc, argv, __FILE__, tests, sizeof(tests) / sizeof(tests[0]), setup, teardown); \
  }

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

int tap_main(int argc, char **argv, const char *file, const tap_test *tests, size_t n);
int tap_main_with(int argc, char **argv, const char *file, const tap_test *tests, size_t n, void (*setup)(void),
                  void (*teardown)(void));

void tap_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

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

/* TENON_SRCDIR and TENON_BUILDDIR with a path below them. In one of four static buffers, so good for four calls. */
const char *tap_source_path(const char *path);
const char *tap_build_path(const char *path);

/* A fresh folder for the files of a test, removed with all that is in it when the program ends. */
const char *tap_scratch_dir(void);

#endif
