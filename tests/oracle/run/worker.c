/* SPDX-License-Identifier: Apache-2.0 */
/* Cases run one after another in a child process that reports each verdict through a pipe. When
 * it dies or hangs, its current case has failed and a new child continues with the next one:
 * isolation for the price of one fork. The parent never uses the library, which does not support
 * a fork once a session exists.
 *
 * The child's allocator fills fresh and freed memory, so that an element not written by a kernel
 * is not zero by accident, and counts blocks, to detect cases that leak memory each time they
 * run. */
#define _GNU_SOURCE
#include "tests/oracle/run/oracle.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

/* --- the allocator ------------------------------------------------------------------------------------------------ */

static atomic_long live_blocks;

static void *filling_alloc(void *user, size_t size, size_t align)
{
  void *memory = NULL;
  (void)user;
  if (posix_memalign(&memory, align, size) != 0) return NULL;
  memset(memory, 0xa5, size);
  atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
  return memory;
}

static void filling_free(void *user, void *memory, size_t size, size_t align)
{
  (void)user;
  (void)align;
  memset(memory, 0xdd, size);
  atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
  free(memory);
}

static void install_allocator(void)
{
  tn_allocator allocator = { sizeof(allocator), NULL, filling_alloc, filling_free };
  tn_error err = TN_ERROR_INIT;
  if (tn_set_allocator(&allocator, &err) != TN_OK) oracle_usage_error("tn_set_allocator: %s", tn_error_message(&err));
}

/* --- one case ----------------------------------------------------------------------------------------------------- */

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long run_counted(const oracle_config *config, const oracle_case *c, oracle_result *result)
{
  long before = atomic_load(&live_blocks);
  if (c->kind == ORACLE_MODEL)
    oracle_run_model(config, c, result);
  else
    oracle_run_case(config, c, result);
  return atomic_load(&live_blocks) - before;
}

/* Objects that the library makes once per process are not leaks; blocks left by a second run
 * are. */
void oracle_run_one(const oracle_config *config, const oracle_case *c, oracle_result *result)
{
  double start = now();
  memset(result, 0, sizeof(*result));
  long left = run_counted(config, c, result);
  result->seconds = now() - start;
  if (left <= 0 || result->verdict != ORACLE_PASSED) return;
  long again = run_counted(config, c, result);
  if (again > 0 && result->verdict == ORACLE_PASSED)
    oracle_fail(result, "each run leaks %ld blocks of memory", again);
}

/* --- crashes in this process -------------------------------------------------------------------------------------- */

static const char *volatile running; /* id of the case, for the handler */

static void on_crash(int number)
{
  const char *id = running;
  static const char text[] = "\noracle_run: crash in ";
  ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
  if (id) n = write(STDERR_FILENO, id, strlen(id));
  n = write(STDERR_FILENO, "\n", 1);
  (void)n;
  signal(number, SIG_DFL);
  raise(number);
}

static void watch_crashes(void)
{
#ifndef SANITIZED
  static const int crashes[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
  for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) signal(crashes[i], on_crash);
#endif
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t size)
{
  const char *at = data;
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

/* exit rather than _exit, so that a leak checker can report. */
static void child(const oracle_config *config, const oracle_list *list, size_t first, int fd)
{
  oracle_result result;
  install_allocator();
  watch_crashes();
  for (size_t i = first; i < list->n; i++) {
    running = list->cases[i].id;
    oracle_run_one(config, &list->cases[i], &result);
    if (!write_all(fd, &result, sizeof(result))) exit(2);
  }
  running = "the end of the process";
  exit(0);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

typedef enum reading { READ_ONE, READ_END, READ_TIMEOUT } reading;

static reading read_result(int fd, int timeout_s, oracle_result *result)
{
  char *at = (char *)result;
  size_t left = sizeof(*result);
  double deadline = now() + timeout_s;
  while (left > 0) {
    struct pollfd poller = { .fd = fd, .events = POLLIN };
    double wait = deadline - now();
    int ready = poll(&poller, 1, wait > 0 ? (int)(wait * 1000) + 1 : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return READ_TIMEOUT;
    ssize_t n = read(fd, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return READ_END;
    at += n;
    left -= (size_t)n;
  }
  return READ_ONE;
}

static void describe_end(int status, char *out, size_t size)
{
  if (WIFSIGNALED(status))
    snprintf(out, size, "crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(out, size, "ended the process with exit status %d", WEXITSTATUS(status));
}

static pid_t start_child(const oracle_config *config, const oracle_list *list, size_t first, int *fd)
{
  int ends[2];
  fflush(NULL);
  if (pipe(ends) != 0) oracle_usage_error("pipe: %s", strerror(errno));
  pid_t pid = fork();
  if (pid < 0) oracle_usage_error("fork: %s", strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    child(config, list, first, ends[1]);
  }
  close(ends[1]);
  *fd = ends[0];
  return pid;
}

/* Runs cases from `first` on in one child. Returns the number of the next case, list->n if all
 * are done. *status is that of a child that finished all of its cases, otherwise 0: then a case
 * is to blame. */
static size_t run_child(const oracle_config *config, const oracle_list *list, size_t first, oracle_result *results,
                        int *status)
{
  int fd;
  pid_t pid = start_child(config, list, first, &fd);
  size_t i = first;
  reading got = READ_ONE;
  while (i < list->n && (got = read_result(fd, config->timeout_s, &results[i])) == READ_ONE) i++;
  if (got == READ_TIMEOUT) kill(pid, SIGKILL);
  close(fd);
  while (waitpid(pid, status, 0) < 0 && errno == EINTR) {}
  if (i == list->n) return i;

  memset(&results[i], 0, sizeof(results[i]));
  if (got == READ_TIMEOUT) {
    results[i].seconds = config->timeout_s;
    oracle_fail(&results[i], "still running after %d seconds", config->timeout_s);
  } else {
    char how[200];
    describe_end(*status, how, sizeof(how));
    oracle_fail(&results[i], "%s", how);
  }
  *status = 0;
  return i + 1;
}

bool oracle_run_all(const oracle_config *config, const oracle_list *list, oracle_result *results, char *why,
                    size_t why_size)
{
  why[0] = 0;
  if (config->in_process) {
    install_allocator();
    watch_crashes();
    for (size_t i = 0; i < list->n; i++) {
      running = list->cases[i].id;
      oracle_run_one(config, &list->cases[i], &results[i]);
    }
    running = NULL;
    return true;
  }
  int status = 0;
  for (size_t next = 0; next < list->n;) next = run_child(config, list, next, results, &status);
  if (status == 0) return true;
  describe_end(status, why, why_size);
  return false;
}
