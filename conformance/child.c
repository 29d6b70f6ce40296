/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one test in a separate process. Its output goes to one pipe and its verdict to another, so that neither exit()
 * nor text on standard output can be taken for a verdict. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <conformance/plugin/plugin.h>
#include <conformance/support/oom.h>

static struct {
  pthread_mutex_t mutex; /* guards failed */
  pthread_t runner;
  jmp_buf end;
  bool inside; /* inside the test: `end` is a valid jump target */
  bool failed;
  char *step; /* shared with the parent */
} now = { .mutex = PTHREAD_MUTEX_INITIALIZER };

const cf_runtime *cf_under_test;

void cf_reached(const char *step)
{
  if (now.step != NULL) snprintf(now.step, CF_STEP_BYTES, "%s", step);
}

/* Path relative to the source tree, independent of the build directory. */
static const char *short_path(const char *file)
{
  const char *from = file;
  for (const char *at = file; (at = strchr(at, '/')) != NULL; at++)
    if (strncmp(at, "/tests/", 7) == 0 || strncmp(at, "/conformance/", 13) == 0) from = at + 1;
  return from;
}

void tap_record(bool ok, const char *file, int line, bool fatal, const char *message)
{
  if (ok) return;
  pthread_mutex_lock(&now.mutex);
  now.failed = true;
  tap_note("%s:%d: %s", short_path(file), line, message);
  pthread_mutex_unlock(&now.mutex);
  if (fatal && now.inside && pthread_equal(pthread_self(), now.runner)) longjmp(now.end, 1);
}

static void tell(int fd)
{
  cf_verdict verdict;
  const char *reason = now.failed ? tap_unimplemented() : tap_skip_reason();
  memset(&verdict, 0, sizeof(verdict));
  verdict.kind = now.failed ? 'f' : 'p';
  if (reason != NULL) verdict.kind = 's';
  snprintf(verdict.reason, sizeof(verdict.reason), "%s", reason != NULL ? reason : "");
  fflush(stdout);
  while (write(fd, &verdict, sizeof(verdict)) < 0 && errno == EINTR) { }
  close(fd);
}

static void call(const cf_test *t, const cf_runtime *runtime)
{
  bool of_sessions = t->stage == CF_STAGE_WORKS || t->stage == CF_STAGE_SESSIONS;
  now.runner = pthread_self();
  cf_under_test = runtime;
  if (of_sessions && !cf_runtime_enter(runtime)) return;
  if (t->suite->setup) t->suite->setup();
  if (setjmp(now.end) == 0) {
    now.inside = true;
    t->test->fn();
  }
  now.inside = false;
  if (t->suite->teardown) t->suite->teardown();
}

static void be_child(const cf_test *t, const cf_runtime *runtime, int output, int verdict, int timeout)
{
  static const int defaults[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGALRM };
  setpgid(0, 0);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) signal(defaults[i], SIG_DFL);
  alarm((unsigned)timeout + 5); /* in case the parent process is gone */
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  close(output);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (t->stage == CF_STAGE_WORKS || t->stage == CF_STAGE_SESSIONS) tn_test_alloc_install();
  else pg_heap_install();
  call(t, runtime);
  tell(verdict);
  exit(0);
}

/* Do not pass these to programs that a test starts. */
static bool open_pipe(int *fds)
{
  if (pipe(fds) != 0) return false;
  return fcntl(fds[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(fds[1], F_SETFD, FD_CLOEXEC) == 0;
}

static void close_all(int *fds)
{
  for (int i = 0; i < 4; i++)
    if (fds[i] >= 0) close(fds[i]);
}

/* One page shared with the parent. */
static char *shared_page(void)
{
  void *page = mmap(NULL, CF_STEP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? NULL : page;
}

bool cf_child_start(cf_child *child, const cf_test *test, const cf_runtime *runtime, int timeout)
{
  int fds[4] = { -1, -1, -1, -1 };
  if (!open_pipe(fds) || !open_pipe(fds + 2)) {
    close_all(fds);
    return false;
  }
  fflush(stdout);
  fflush(stderr);
  char *step = shared_page();
  pid_t pid = step != NULL ? fork() : -1;
  if (pid < 0) {
    if (step != NULL) munmap(step, CF_STEP_BYTES);
    close_all(fds);
    return false;
  }
  if (pid == 0) {
    now.step = step;
    close(fds[0]);
    close(fds[2]);
    be_child(test, runtime, fds[1], fds[3], timeout);
  }
  setpgid(pid, pid); /* also called in the child, as either may run first */
  close(fds[1]);
  close(fds[3]);
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  fcntl(fds[2], F_SETFL, O_NONBLOCK);
  *child = (cf_child){ pid, fds[0], fds[2], step };
  return true;
}
