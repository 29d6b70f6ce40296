/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include <tests/support/tap.h>

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/TestRun.h>

#include <tests/support/oom.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static struct {
  pthread_mutex_t mutex; /* guards CUnit's list of failures */
  pthread_t runner;
  unsigned done;
  const char *suite;
  const char *test; /* that runs now, for signal handlers */
  bool skipped;
  char skip_reason[200];
  char scratch[200];
} tap = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* TAP lines end at a newline: one in a text starts a new comment line. */
static void print_comment(const char *text)
{
  printf("# ");
  for (; *text; text++) {
    putchar(*text);
    if (*text == '\n') printf("#   ");
  }
  putchar('\n');
}

void tap_note(const char *format, ...)
{
  char text[2000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  print_comment(text);
}

void tap_skip(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(tap.skip_reason, sizeof(tap.skip_reason), format, args);
  va_end(args);
  tap.skipped = true;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool record(bool ok, const char *file, int line, bool fatal, const char *message)
{
  pthread_mutex_lock(&tap.mutex);
  CU_assertImplementation(ok ? CU_TRUE : CU_FALSE, (unsigned)line, message, file, "", CU_FALSE);
  pthread_mutex_unlock(&tap.mutex);
  if (!ok && fatal) {
    CU_pTest test = CU_get_current_test();
    if (test && test->pJumpBuf && pthread_equal(pthread_self(), tap.runner)) longjmp(*test->pJumpBuf, 1);
  }
  return ok;
}

bool tap_check(bool ok, const char *file, int line, bool fatal, const char *format, ...)
{
  char text[2000];
  if (ok) return record(true, file, line, fatal, "");
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return record(false, file, line, fatal, text);
}

bool tap_check_int(int64_t found, int64_t wanted, const char *what, const char *file, int line, bool fatal)
{
  return tap_check(found == wanted, file, line, fatal, "%s: found %" PRId64 ", wanted %" PRId64, what, found, wanted);
}

bool tap_check_double(double found, double wanted, double tolerance, const char *what, const char *file, int line)
{
  bool ok = isnan(wanted) ? isnan(found) : found == wanted || fabs(found - wanted) <= tolerance;
  return tap_check(ok, file, line, false, "%s: found %.17g, wanted %.17g +- %g", what, found, wanted, tolerance);
}

bool tap_check_str(const char *found, const char *wanted, const char *what, const char *file, int line)
{
  bool ok = found && wanted ? strcmp(found, wanted) == 0 : found == wanted;
  return tap_check(ok, file, line, false, "%s: found \"%s\", wanted \"%s\"", what, found ? found : "(NULL)",
                   wanted ? wanted : "(NULL)");
}

bool tap_check_contains(const char *text, const char *part, const char *what, const char *file, int line)
{
  bool ok = text && strstr(text, part);
  return tap_check(ok, file, line, false, "%s: \"%s\" does not contain \"%s\"", what, text ? text : "(NULL)", part);
}

bool tap_check_bytes(const void *found, const void *wanted, size_t n, const char *what, const char *file, int line)
{
  const unsigned char *f = found, *w = wanted;
  if (n != 0 && (!f || !w)) return tap_check(false, file, line, false, "%s: NULL", what);
  for (size_t i = 0; i < n; i++)
    if (f[i] != w[i])
      return tap_check(false, file, line, false, "%s: byte %zu of %zu: found 0x%02x, wanted 0x%02x", what, i, n, f[i], w[i]);
  return tap_check(true, file, line, false, "%s", what);
}

bool tap_check_status(tn_status found, tn_status wanted, const tn_error *err, const char *what, const char *file, int line,
                      bool fatal)
{
  if (found == wanted) return tap_check(true, file, line, fatal, "%s", what);
  char text[1000] = "";
  if (err && tn_error_code(err) != TN_OK) {
    text[0] = '\n';
    tn_error_format(err, text + 1, sizeof(text) - 1);
  }
  return tap_check(false, file, line, fatal, "%s: found %s, wanted %s%s", what, tn_status_name(found),
                   tn_status_name(wanted), text);
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

static const char *path_below(const char *variable, const char *path)
{
  static char buffers[4][4096];
  static unsigned next;
  const char *top = getenv(variable);
  char *buffer = buffers[next++ % 4];
  snprintf(buffer, sizeof(buffers[0]), "%s/%s", top ? top : ".", path);
  return buffer;
}

const char *tap_source_path(const char *path) { return path_below("TENON_SRCDIR", path); }

const char *tap_build_path(const char *path) { return path_below("TENON_BUILDDIR", path); }

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
  (void)info;
  (void)type;
  (void)where;
  return remove(path);
}

static pid_t scratch_owner;

static void remove_scratch(void)
{
  if (getpid() == scratch_owner) nftw(tap.scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *tap_scratch_dir(void)
{
  if (tap.scratch[0] != 0) return tap.scratch;
  const char *tmp = getenv("TMPDIR");
  snprintf(tap.scratch, sizeof(tap.scratch), "%s/tenon-test-XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(tap.scratch)) {
    printf("Bail out! %s: %s\n", tap.scratch, strerror(errno));
    exit(1);
  }
  scratch_owner = getpid();
  atexit(remove_scratch);
  return tap.scratch;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
  (void)suite;
  const char *verdict = failure ? "not ok" : "ok";
  printf("%s %u - %s: %s", verdict, ++tap.done, tap.suite, test->pName);
  if (!failure && tap.skipped) printf(" # SKIP %s", tap.skip_reason);
  putchar('\n');
  for (CU_pFailureRecord f = failure; f; f = f->pNext) {
    char text[2400];
    snprintf(text, sizeof(text), "%s:%u: %s", f->strFileName, f->uiLineNumber, f->strCondition);
    print_comment(text);
  }
  fflush(stdout);
}

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
  (void)suite;
  const char *limit = getenv("TENON_TEST_TIMEOUT");
  tap.test = test->pName;
  tap.skipped = false;
  alarm(limit ? (unsigned)strtoul(limit, NULL, 10) : 300);
}

/* Only calls that are safe in a handler. */
static void say(const char *text)
{
  size_t left = strlen(text);
  while (left > 0) {
    ssize_t n = write(STDOUT_FILENO, text, left);
    if (n <= 0) return;
    text += n;
    left -= (size_t)n;
  }
}

static void on_signal(int signal_number)
{
  say("Bail out! ");
  say(signal_number == SIGALRM ? "time limit in " : "crash in ");
  say(tap.test ? tap.test : "no test");
  say("\n");
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static bool selected(const char *name, int n_patterns, char **patterns)
{
  for (int i = 0; i < n_patterns; i++)
    if (fnmatch(patterns[i], name, 0) == 0) return true;
  return n_patterns == 0;
}

int tap_main(int argc, char **argv, const char *file, const tap_test *tests, size_t n)
{
  return tap_main_with(argc, argv, file, tests, n, NULL, NULL);
}

int tap_main_with(int argc, char **argv, const char *file, const tap_test *tests, size_t n, void (*setup)(void),
                  void (*teardown)(void))
{
  static char suite_name[64];
  const char *slash = strrchr(file, '/');
  snprintf(suite_name, sizeof(suite_name), "%s", slash ? slash + 1 : file);
  suite_name[strcspn(suite_name, ".")] = 0;
  tap.suite = suite_name;
  tap.runner = pthread_self();

  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < n; i++) puts(tests[i].name);
    return 0;
  }

  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGALRM, on_signal);
  if (!SANITIZED) {
    static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) signal(crashes[i], on_signal);
  }
  tn_test_alloc_install();

  if (CU_initialize_registry() != CUE_SUCCESS) {
    printf("Bail out! CUnit: %s\n", CU_get_error_msg());
    return 1;
  }
  CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
  unsigned planned = 0;
  for (size_t i = 0; i < n; i++) {
    if (!selected(tests[i].name, argc - 1, argv + 1)) continue;
    planned++;
    if (!CU_add_test(suite, tests[i].name, tests[i].fn)) {
      printf("Bail out! CUnit: %s: %s\n", tests[i].name, CU_get_error_msg());
      return 1;
    }
  }
  printf("1..%u\n", planned);
  CU_set_test_start_handler(on_start);
  CU_set_test_complete_handler(on_complete);
  if (setup) setup();
  CU_run_all_tests();
  alarm(0);
  tap.test = NULL;
  if (teardown) teardown();
  CU_cleanup_registry();
  /* Failures are in the TAP already; a nonzero status would count as one more. */
  return 0;
}
