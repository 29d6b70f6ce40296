/* SPDX-License-Identifier: Apache-2.0 */
/* CUnit runs the tests of make check. Its own reports stop at the first failure, so this file prints the results. */
#define _XOPEN_SOURCE 700
#include <fnmatch.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

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
  const char *test; /* the running test, for signal handlers */
} now = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void tap_record(bool ok, const char *file, int line, bool fatal, const char *message)
{
  pthread_mutex_lock(&now.mutex);
  CU_assertImplementation(ok ? CU_TRUE : CU_FALSE, (unsigned)line, message, file, "", CU_FALSE);
  pthread_mutex_unlock(&now.mutex);
  if (ok || !fatal) return;
  CU_pTest test = CU_get_current_test();
  if (test && test->pJumpBuf && pthread_equal(pthread_self(), now.runner)) longjmp(*test->pJumpBuf, 1);
}

static void on_complete(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
  (void)suite;
  const char *verdict = failure ? "not ok" : "ok";
  printf("%s %u - %s: %s", verdict, ++now.done, now.suite, test->pName);
  if (!failure && tap_skip_reason()) printf(" # SKIP %s", tap_skip_reason());
  putchar('\n');
  for (CU_pFailureRecord f = failure; f; f = f->pNext)
    tap_note("%s:%u: %s", f->strFileName, f->uiLineNumber, f->strCondition);
  fflush(stdout);
}

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
  (void)suite;
  const char *limit = getenv("TENON_TEST_TIMEOUT");
  now.test = test->pName;
  tap_unskip();
  alarm(limit ? (unsigned)strtoul(limit, NULL, 10) : 300);
}

/* Uses only async-signal-safe calls. */
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
  say(now.test ? now.test : "no test");
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

/* The first pattern that matches no test, or NULL. */
static const char *useless(const tap_test *tests, size_t n, int n_patterns, char **patterns)
{
  for (int i = 0; i < n_patterns; i++) {
    size_t fits = 0;
    for (size_t t = 0; t < n; t++) fits += fnmatch(patterns[i], tests[t].name, 0) == 0;
    if (fits == 0) return patterns[i];
  }
  return NULL;
}

/* A program started by hand tests its own build; make check sets the variables itself. */
static void use_build_tree(void)
{
  setenv("TENON_SRCDIR", TAP_SRCDIR, 0);
  setenv("TENON_BUILDDIR", TAP_BUILDDIR, 0);
  setenv("TENON_TEST_PLUGINS", TAP_BUILDDIR "/tests/plugins/" TAP_OBJDIR, 0);
  setenv("TENON_PROBE_PROGRAM", TAP_BUILDDIR "/tools/tenon-probe", 0);
  if (getenv("TENON_PLUGIN_PATH") != NULL) return;
  setenv("TENON_PLUGIN_PATH", TAP_BUILDDIR "/plugins/" TAP_OBJDIR, 1);
  setenv("TENON_PLUGIN_PATH_ONLY", "1", 0);
}

int tap_main(int argc, char **argv, const char *file, const tap_test *tests, size_t n)
{
  return tap_main_with(argc, argv, file, tests, n, NULL, NULL);
}

int tap_main_with(int argc, char **argv, const char *file, const tap_test *tests, size_t n, void (*setup)(void),
                  void (*teardown)(void))
{
  static char suite_name[64];
  tap_suite_name(file, suite_name, sizeof(suite_name));
  now.suite = suite_name;
  now.runner = pthread_self();

  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < n; i++) puts(tests[i].name);
    return 0;
  }
  const char *pattern = useless(tests, n, argc - 1, argv + 1);
  if (pattern != NULL) {
    fprintf(stderr, "%s: no test matches '%s'; '--list' shows the tests of this program\n", suite_name, pattern);
    return 2;
  }
  use_build_tree();

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
  now.test = NULL;
  if (teardown) teardown();
  CU_cleanup_registry();
  /* Failures are already in the TAP output; a nonzero status would count as another failure. */
  return 0;
}
