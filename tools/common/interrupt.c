/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C, SIGTERM and SIGHUP. The first signal cancels the step, or ends the process during an activity that can be
 * abandoned. The second one always ends it immediately. A thread that reads a pipe does the work that is not allowed in
 * a signal handler. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tools/tool.h>

/* Two signals within TWICE_MS are often one: timeout(1) signals both the process and its group. The second one takes
 * effect only after that time. If the step has not ended HINT_MS later, a hint is printed. */
enum { TWICE_MS = 200, HINT_MS = 800, SIGNAL = 's', END = 'e' };

static const int caught[] = { SIGHUP, SIGINT, SIGTERM };
enum { N_CAUGHT = sizeof(caught) / sizeof(caught[0]) };

static struct sigaction before[N_CAUGHT];
static sigset_t mask_before;
static int ends[2];
static pthread_t watcher;
static bool watching;
static tn_cancellation *token;
static _Atomic(const char *) doing;
static atomic_int first, again; /* signal numbers */
static atomic_uint first_ms;

static void on_signal(int number)
{
  int code = errno, none = 0;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  unsigned now = (unsigned)time.tv_sec * 1000u + (unsigned)(time.tv_nsec / 1000000);
  if (atomic_load(&first) == 0) atomic_store(&first_ms, now);
  if (atomic_compare_exchange_strong(&first, &none, number)) {
    const char byte = SIGNAL;
    while (write(ends[1], &byte, 1) < 0 && errno == EINTR) continue;
  } else if (now - atomic_load(&first_ms) >= TWICE_MS) {
    tool_end_by_signal(number);
  } else {
    atomic_store(&again, number);
  }
  errno = code;
}

/* Waits for the next byte of the pipe; returns 0 on timeout. -1 waits indefinitely. */
static char next_byte(int ms)
{
  struct pollfd end = { .fd = ends[0], .events = POLLIN };
  char byte = 0;
  int ready;
  do ready = poll(&end, 1, ms);
  while (ready < 0 && errno == EINTR);
  if (ready > 0 && read(ends[0], &byte, 1) != 1) byte = END;
  return byte;
}

static void *watch(void *unused)
{
  (void)unused;
  if (next_byte(-1) != SIGNAL) return NULL;
  const char *what = atomic_load(&doing);
  if (what != NULL) {
    /* Start a new line after the ^C on a terminal. */
    fprintf(stderr, "%stenon: CANCELLED: interrupted while %s\n", isatty(STDERR_FILENO) ? "\n" : "", what);
    tool_end_by_signal(atomic_load(&first));
  }
  if (isatty(STDERR_FILENO)) fputc('\r', stderr); /* the next output overwrites the ^C */
  tn_cancellation_cancel(token);
  if (next_byte(TWICE_MS) == END) return NULL;
  if (atomic_load(&again) != 0) tool_end_by_signal(atomic_load(&again));
  if (next_byte(HINT_MS) == END) return NULL;
  fprintf(stderr, "%sinterrupted; waiting for the step to end; a second %s ends the command immediately\n",
          isatty(STDERR_FILENO) ? "\n" : "", atomic_load(&first) == SIGINT ? "Ctrl-C" : "signal");
  next_byte(-1);
  return NULL;
}

/* The watcher thread handles the signals, as it is never busy. They are blocked here, so threads created later inherit
 * the mask. A signal ignored at the start, as in a script's background job, stays ignored. */
static void catch_signals(void)
{
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < N_CAUGHT; i++) sigaddset(&action.sa_mask, caught[i]);
  pthread_sigmask(SIG_BLOCK, &action.sa_mask, &mask_before);
  for (int i = 0; i < N_CAUGHT; i++)
    if (sigaction(caught[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
      sigaction(caught[i], &action, NULL);
}

tn_status tool_interrupt_start(const char *what, tn_cancellation **out, tn_error *err)
{
  tn_status status = tn_cancellation_create(NULL, &token, err);
  *out = token;
  if (status != TN_OK) return status;
  atomic_store(&doing, what);
  if (pipe(ends) != 0) return TN_OK; /* signals keep their default action */
  for (int i = 0; i < 2; i++) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  watching = pthread_create(&watcher, NULL, watch, NULL) == 0;
  if (watching) {
    catch_signals();
  } else {
    close(ends[0]);
    close(ends[1]);
  }
  return TN_OK;
}

void tool_interrupt_doing(const char *what) { atomic_store(&doing, what); }

int tool_interrupted(void) { return atomic_load(&first); }

void tool_interrupt_stop(void)
{
  const char byte = END;
  if (watching) {
    for (int i = 0; i < N_CAUGHT; i++) sigaction(caught[i], &before[i], NULL);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
    while (write(ends[1], &byte, 1) < 0 && errno == EINTR) continue;
    pthread_join(watcher, NULL);
    close(ends[0]);
    close(ends[1]);
  }
  watching = false;
  tn_cancellation_unref(token);
  token = NULL;
}
