/* SPDX-License-Identifier: Apache-2.0 */
/* tenon-conformance: the suites of make check that keep the rules of sessions, on a runtime that its user names, and
 * suites of its own on what the author of a plugin owes (plugin_*.c). It is linked with libtenon as any program and
 * needs neither the source tree nor CUnit.
 *
 * Each test runs in a process of its own (child.c) with a time limit: one that crashes, hangs or ends the process
 * is one failed test (run.c). The parent never calls the library: no thread and no plugin is in it when it forks. */
#ifndef TENON_CONFORMANCE_CONFORMANCE_H
#define TENON_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <conformance/support/tap.h>

enum { CF_PASSED = 0, CF_FAILED = 1, CF_USAGE = 2, CF_SKIPPED = 77 }; /* exit statuses */

/* Which rules a test cites; made from the sources, ends with NULLs. */
typedef struct cf_citation {
  const char *suite; /* "test_queues" */
  const char *test;
  const char *rules; /* between spaces */
} cf_citation;
extern const cf_citation cf_citations[];

/* What a rule says; made from docs/spec/, ends with NULLs. */
typedef struct cf_rule {
  const char *name; /* "S-THR-05" */
  const char *text;
} cf_rule;
extern const cf_rule cf_rules[];

typedef struct cf_test {
  const tap_suite *suite;
  const tap_test *test;
  const char *rules; /* "" for none */
  char name[64];     /* of the suite, without "test_" */
  int stage;         /* CF_STAGE_... */
} cf_test;

/* When a suite runs. Each test of the two in the middle is a gate: when it fails, none comes after it. */
enum {
  CF_STAGE_FILE = 0,  /* plugin_file: reads the file */
  CF_STAGE_LOAD = 1,  /* plugin_load: runs the plugin's code, one step more with each test */
  CF_STAGE_WORKS = 2, /* runtime_works */
  CF_STAGE_PLUGIN = 3,
  CF_STAGE_SESSIONS = 4
};

typedef struct cf_options {
  const char *runtime; /* as it was given */
  const char *filters[64];
  size_t n_filters;
  int jobs;
  int timeout; /* seconds for one test */
  bool list;
} cf_options;

/* ---- tests (select.c) ---- */

struct cf_runtime;

/* The tests that a filter chooses and that the runtime can be asked (NULL: all), sorted by stage and suite, in the
 * order of their files; those of the gates are always there. In an array for free(); *n is 0 when the filter fits
 * none. */
cf_test *cf_select(const cf_options *options, const struct cf_runtime *runtime, size_t *n);
void cf_list(const cf_test *tests, size_t n);

/* ---- the runtime (runtime.c) ---- */

/* What was named on the command line: a target, or the file of a plugin with settings behind it. */
typedef struct cf_runtime {
  char *target; /* "threaded:threads=2"; NULL for a file */
  char *file;   /* absolute path of the plugin */
  char *folder; /* a folder of ours that has a link to it and nothing else */
  char *settings; /* ":threads=2" or "" */
  char *name;     /* of the runtime or kernel plugin; NULL: there is none */
  char *plugin;   /* the file that it is in; NULL: none, as for one that was linked into the program */
  bool kernels;   /* it is a kernel plugin */
} cf_runtime;

/* False: an error was printed. */
bool cf_runtime_open(cf_runtime *runtime, const char *text);
void cf_runtime_close(cf_runtime *runtime);

/* In the child: makes it what ts_runtime() names. A failure is recorded as that of the test. */
bool cf_runtime_enter(const cf_runtime *runtime);

/* In the child: what is tested. */
extern const cf_runtime *cf_under_test;

/* ---- one test (child.c) ---- */

/* What a child says of its test, in one write. */
typedef struct cf_verdict {
  char kind; /* 'p'assed, 'f'ailed, 's'kipped */
  char reason[600];
} cf_verdict;

typedef struct cf_child {
  pid_t pid;
  int output;  /* what it prints */
  int verdict; /* a cf_verdict, when it got that far */
  char *step;  /* shared with it: the last step that it reached, "" when it told none */
} cf_child;
enum { CF_STEP_BYTES = 256 };

/* Starts a test in a process and group of its own. False: there is no process or descriptor left. */
bool cf_child_start(cf_child *child, const cf_test *test, const cf_runtime *runtime, int timeout);

/* In the child: what it does next, as "its init"; shown when the process ends in it. Static text. */
void cf_reached(const char *step);

/* Something that is no failure, shown below the test that found it. */
#define cf_note(...) tap_note("note: " __VA_ARGS__)

/* ---- all tests (run.c) ---- */

/* Runs them and prints TAP; returns the exit status. */
int cf_run(const cf_options *options, const cf_runtime *runtime, const cf_test *tests, size_t n);
extern bool cf_nobody_reads; /* standard output was a pipe that was closed */

/* ---- texts (main.c) ---- */

void *cf_alloc(size_t count, size_t size); /* zeroed; ends the program when there is none */
int cf_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
