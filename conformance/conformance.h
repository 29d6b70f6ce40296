/* SPDX-License-Identifier: Apache-2.0 */
/* tenon-conformance: the suites of make check that keep the rules of sessions, on a runtime that its user names. It
 * is linked with libtenon as any program and needs neither the source tree nor CUnit.
 *
 * Each test runs in a process of its own (child.c) with a time limit: one that crashes, hangs or ends the process
 * is one failed test (run.c). The parent never calls the library: no thread and no plugin is in it when it forks. */
#ifndef TENON_CONFORMANCE_CONFORMANCE_H
#define TENON_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tests/support/tap.h>

enum { CF_PASSED = 0, CF_FAILED = 1, CF_USAGE = 2, CF_SKIPPED = 77 }; /* exit statuses */

/* Which rules a test cites; made from the sources, ends with NULLs. */
typedef struct cf_citation {
  const char *suite; /* "test_queues" */
  const char *test;
  const char *rules; /* between spaces */
} cf_citation;
extern const cf_citation cf_citations[];

typedef struct cf_test {
  const tap_suite *suite;
  const tap_test *test;
  const char *rules; /* "" for none */
  char name[64];     /* of the suite, without "test_" */
} cf_test;

typedef struct cf_options {
  const char *runtime; /* as it was given */
  const char *filters[64];
  size_t n_filters;
  int jobs;
  int timeout; /* seconds for one test */
  bool list;
} cf_options;

/* ---- tests (select.c) ---- */

/* The tests that a filter chooses, sorted by suite, in the order of their files, and before them that of
 * runtime_works.c, which all others need. In an array for free(); *n is 0 when the filter fits none. */
cf_test *cf_select(const cf_options *options, size_t *n);
void cf_list(const cf_test *tests, size_t n);

/* ---- the runtime (runtime.c) ---- */

/* What was named on the command line: a target, or the file of a plugin with settings behind it. */
typedef struct cf_runtime {
  char *target; /* "threaded:threads=2"; NULL for a file */
  char *file;   /* absolute path of the plugin */
  char *folder; /* a folder of ours that has a link to it and nothing else */
  char *settings; /* ":threads=2" or "" */
} cf_runtime;

/* False: an error was printed. */
bool cf_runtime_open(cf_runtime *runtime, const char *text);
void cf_runtime_close(cf_runtime *runtime);

/* In the child: makes it what ts_runtime() names. A failure is recorded as that of the test. */
bool cf_runtime_enter(const cf_runtime *runtime);

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
} cf_child;

/* Starts a test in a process and group of its own. False: there is no process or descriptor left. */
bool cf_child_start(cf_child *child, const cf_test *test, const cf_runtime *runtime, int timeout);

/* ---- all tests (run.c) ---- */

/* Runs them and prints TAP; returns the exit status. */
int cf_run(const cf_options *options, const cf_runtime *runtime, const cf_test *tests, size_t n);
extern bool cf_nobody_reads; /* standard output was a pipe that was closed */

/* ---- texts (main.c) ---- */

void *cf_alloc(size_t count, size_t size); /* zeroed; ends the program when there is none */
int cf_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
