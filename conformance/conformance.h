/* SPDX-License-Identifier: Apache-2.0 */
/* tenon-conformance: runs the suites of make check that test the rules of sessions on a runtime
 * chosen by the user, and its own suites for the obligations of a plugin author (plugin_*.c). It is
 * linked with libtenon as any program and needs neither the source tree nor CUnit.
 *
 * Each test runs in a separate process (child.c) with a time limit: a test that crashes, hangs or
 * ends the process counts as one failed test (run.c). The parent never calls the library, so no
 * thread or plugin is in it when it forks. */
#ifndef TENON_CONFORMANCE_CONFORMANCE_H
#define TENON_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <conformance/support/tap.h>

enum { CF_PASSED = 0, CF_FAILED = 1, CF_USAGE = 2, CF_SKIPPED = 77 }; /* exit statuses */

/* Rules cited by a test. Generated from the sources; ends with NULLs. */
typedef struct cf_citation {
  const char *suite; /* "test_queues" */
  const char *test;
  const char *rules; /* separated by spaces */
} cf_citation;
extern const cf_citation cf_citations[];

/* Text of a rule. Generated from docs/spec/; ends with NULLs. */
typedef struct cf_rule {
  const char *name; /* "S-THR-05" */
  const char *text;
} cf_rule;
extern const cf_rule cf_rules[];

typedef struct cf_test {
  const tap_suite *suite;
  const tap_test *test;
  const char *rules; /* "" for none */
  char name[64];     /* of the suite, without the prefix "test_" */
  int stage;         /* CF_STAGE_... */
} cf_test;

/* When a suite runs. Each test of the two middle stages is a gate: if it fails, no later test runs. */
enum {
  CF_STAGE_FILE = 0,  /* plugin_file: reads the file */
  CF_STAGE_LOAD = 1,  /* plugin_load: runs the plugin's code, one more step in each test */
  CF_STAGE_WORKS = 2, /* runtime_works */
  CF_STAGE_PLUGIN = 3,
  CF_STAGE_SESSIONS = 4
};

typedef struct cf_options {
  const char *runtime; /* as given on the command line */
  const char *filters[64];
  size_t n_filters;
  int jobs;
  int timeout; /* time limit of a test, in seconds */
  bool list;
} cf_options;

/* ---- tests (select.c) ---- */

struct cf_runtime;

/* Selects the tests that match the filters and apply to the runtime (NULL: all), sorted by stage
 * and suite, in the order of their files. Gate tests are always included. Returns an array to be
 * freed with free(); *n is 0 if no test matches the filters. */
cf_test *cf_select(const cf_options *options, const struct cf_runtime *runtime, size_t *n);
void cf_list(const cf_test *tests, size_t n);

/* ---- the runtime (runtime.c) ---- */

/* The runtime named on the command line: a target, or a plugin file followed by settings. */
typedef struct cf_runtime {
  char *target; /* "threaded:threads=2"; NULL for a file */
  char *file;   /* absolute path of the plugin */
  char *folder; /* our temporary folder, which contains only a link to the file */
  char *settings; /* ":threads=2" or "" */
  char *name;     /* of the runtime or kernel plugin; NULL if there is none */
  char *plugin;   /* its file; NULL if there is none, as for a plugin linked into the program */
  bool kernels;   /* whether it is a kernel plugin */
} cf_runtime;

/* Returns false after printing an error. */
bool cf_runtime_open(cf_runtime *runtime, const char *text);
void cf_runtime_close(cf_runtime *runtime);

/* In the child: makes ts_runtime() name this runtime. Records a failure as one of the test. */
bool cf_runtime_enter(const cf_runtime *runtime);

/* In the child: the runtime under test. */
extern const cf_runtime *cf_under_test;

/* ---- one test (child.c) ---- */

/* The result of a test, which the child sends in one write. */
typedef struct cf_verdict {
  char kind; /* 'p'assed, 'f'ailed, 's'kipped */
  char reason[600];
} cf_verdict;

typedef struct cf_child {
  pid_t pid;
  int output;  /* standard output and error of the child */
  int verdict; /* a cf_verdict, if the test came to its end */
  char *step;  /* shared with the child: the last step it reported; "" if none */
} cf_child;
enum { CF_STEP_BYTES = 256 };

/* Starts a test in a separate process and process group. Returns false if no process or descriptor
 * is available. */
bool cf_child_start(cf_child *child, const cf_test *test, const cf_runtime *runtime, int timeout);

/* In the child: records its next step, such as "its init", which is reported if the process ends in
 * it. Static text. */
void cf_reached(const char *step);

/* Prints a remark that is not a failure below the test. */
#define cf_note(...) tap_note("note: " __VA_ARGS__)

/* ---- all tests (run.c) ---- */

/* Runs all tests and prints TAP; returns the exit status. */
int cf_run(const cf_options *options, const cf_runtime *runtime, const cf_test *tests, size_t n);
extern bool cf_output_closed; /* standard output was a pipe whose reader closed it */

/* ---- texts (main.c) ---- */

void *cf_alloc(size_t count, size_t size); /* zeroed; ends the program if there is no memory */
int cf_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
