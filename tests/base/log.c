/* SPDX-License-Identifier: Apache-2.0 */
/* The log. Its level is read once per process, so each case runs in a child. */
#include "conformance/support/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/process.h>

static char shown[4096];

/* Standard error of fn in a fresh process with TENON_LOG set to `level` (NULL: not set). */
static const char *stderr_of(void (*fn)(void), const char *level)
{
  int ends[2];
  fflush(stdout);
  if (pipe(ends) != 0) return "no pipe";
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (level != NULL)
      setenv("TENON_LOG", level, 1);
    else
      unsetenv("TENON_LOG");
    fn();
    _exit(0);
  }
  close(ends[1]);
  size_t n = 0;
  ssize_t got;
  while (n < sizeof(shown) - 1 && (got = read(ends[0], shown + n, sizeof(shown) - 1 - n)) > 0) n += (size_t)got;
  shown[n] = 0;
  close(ends[0]);
  waitpid(pid, NULL, 0);
  return shown;
}

static void log_all_levels(void)
{
  tn_log(TN_LOG_ERROR, "e%d", 1);
  tn_log(TN_LOG_WARNING, "w");
  tn_log(TN_LOG_INFO, "i");
  tn_log(TN_LOG_DEBUG, "d");
}

static void log__shows_warnings_by_default(void)
{
  CHECK_STR(stderr_of(log_all_levels, NULL), "tenon: error: e1\ntenon: warning: w\n");
  CHECK_STR(stderr_of(log_all_levels, ""), "tenon: error: e1\ntenon: warning: w\n");
}

static void log__the_environment_sets_the_level(void)
{
  CHECK_STR(stderr_of(log_all_levels, "error"), "tenon: error: e1\n");
  CHECK_STR(stderr_of(log_all_levels, "debug"),
            "tenon: error: e1\ntenon: warning: w\ntenon: info: i\ntenon: debug: d\n");
}

static void log__an_unknown_level_is_reported_once(void)
{
  const char *text = stderr_of(log_all_levels, "loud");
  CHECK_STR(text, "tenon: warning: TENON_LOG is 'loud', wanted error, warning, info or debug; using warning\n"
                  "tenon: error: e1\ntenon: warning: w\n");
}

static void set_level_first(void)
{
  tn_set_log_level(TN_LOG_INFO);
  log_all_levels();
  tn_set_log_level(-100);
  log_all_levels();
}

static void log__the_program_overrides_the_level(void)
{
  CHECK_STR(stderr_of(set_level_first, "debug"),
            "tenon: error: e1\ntenon: warning: w\ntenon: info: i\ntenon: error: e1\n");
}

static void log_odd_lines(void)
{
  static char text[3000];
  memset(text, 'x', sizeof(text) - 1);
  tn_log(TN_LOG_ERROR, "two\nlines\x1b[31m");
  tn_log(TN_LOG_ERROR, "%s", text);
}

/* Names from a file may contain any character, but each message stays on one line. */
static void log__each_message_stays_on_one_line(void)
{
  const char *text = stderr_of(log_odd_lines, NULL);
  CHECK_CONTAINS(text, "tenon: error: two lines [31m\n");
  CHECK_INT(strlen(text), strlen("tenon: error: two lines [31m\n") + strlen("tenon: error: \n") + 2999);
}

static int n_lines, last_level;
static char last_line[100];

static void sink(void *user, int32_t level, const char *line)
{
  (*(int *)user)++;
  last_level = level;
  snprintf(last_line, sizeof(last_line), "%s", line);
  tn_log(TN_LOG_ERROR, "a sink that logs is not called again");
}

static void *log_many(void *arg)
{
  for (int i = 0; i < 1000; i++) tn_log(TN_LOG_ERROR, "line %d", i);
  return arg;
}

/* n_lines is an int without a lock: calls of the sink never overlap. */
static void use_sink(void)
{
  pthread_t threads[4];
  tn_set_log_sink(sink, &n_lines);
  tn_log(TN_LOG_WARNING, "to the sink");
  if (n_lines != 1 || last_level != TN_LOG_WARNING || strcmp(last_line, "to the sink") != 0)
    fprintf(stderr, "wrong line\n");
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, log_many, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  tn_set_log_sink(NULL, NULL);
  fprintf(stderr, "%d lines\n", n_lines);
  tn_log(TN_LOG_WARNING, "to standard error");
}

static void log__calls_of_a_sink_never_overlap(void)
{
  CHECK_STR(stderr_of(use_sink, NULL), "4001 lines\ntenon: warning: to standard error\n");
}

TAP_MAIN(
  TAP_TEST(log__shows_warnings_by_default),
  TAP_TEST(log__the_environment_sets_the_level),
  TAP_TEST(log__an_unknown_level_is_reported_once),
  TAP_TEST(log__the_program_overrides_the_level),
  TAP_TEST(log__each_message_stays_on_one_line),
  TAP_TEST(log__calls_of_a_sink_never_overlap))
