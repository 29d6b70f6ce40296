/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side of a probe: starts the probe program, reads its reports until the verdict, the end of the process
 * or the deadline, and kills its process group.
 *
 * The host program may have children of its own, ignore SIGCHLD, or reap every child. So the child is reaped only by
 * its process id, and a child that something else has reaped is not an error: only its exit status is unknown. The
 * plugin may have started processes that keep the report pipe open, so the end of the pipe is not awaited. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/registry/probe/probe.h>

#define SLICE_MS 20 /* interval at which the parent checks whether the child has ended: others may hold its pipe */
#define REPLY_BYTES (TN_PROBE_MAX_MESSAGE + 4096)
#define DEFAULT_MEMORY ((uint64_t)4 << 30)

extern char **environ;

typedef struct probe {
  char nonce[TN_PROBE_NONCE + 1];
  int request, report; /* the ends that this process keeps; -1: closed */
  pid_t child;
  uint64_t memory;
  int64_t deadline;
  char reply[REPLY_BYTES];
  size_t size;
  tn__step step;
  bool verdict;  /* the child has reported code and message */
  bool timeout;
  bool gone;     /* reaped, but not by this file: wait_status is unknown */
  int32_t code;
  const char *message;
  size_t message_size;
  int wait_status;
  uint64_t before; /* the peak memory that the child started with: that of this process, on Linux */
  uint64_t peak;   /* peak memory of the child alone, in bytes; 0: unknown */
  char built[PATH_MAX]; /* the probe program of the build tree */
} probe;

/* ---- words ---- */

static const char *const step_texts[TN__N_STEPS] = { "nothing",
                                                     "its start",
                                                     "the check of the file",
                                                     "opening it, where its constructors run",
                                                     "its entry",
                                                     "the check of its factories",
                                                     "its init",
                                                     "its register_kernels",
                                                     "its new_session",
                                                     "its prepare",
                                                     "its step",
                                                     "its destroy_session",
                                                     "the end" };

const char *tn__step_text(tn__step step) { return step_texts[(unsigned)step < TN__N_STEPS ? step : TN__STEP_NONE]; }

tn__step tn__step_of_text(const char *text)
{
  for (int i = 0; i < TN__N_STEPS; i++)
    if (strcmp(step_texts[i], text) == 0) return (tn__step)i;
  return TN__STEP_NONE;
}

static const char *signal_name(int number)
{
  static const struct {
    int number;
    const char *name;
  } names[] = {
    { SIGABRT, " (SIGABRT)" }, { SIGALRM, " (SIGALRM)" }, { SIGBUS, " (SIGBUS)" },   { SIGFPE, " (SIGFPE)" },
    { SIGHUP, " (SIGHUP)" },   { SIGILL, " (SIGILL)" },   { SIGINT, " (SIGINT)" },   { SIGKILL, " (SIGKILL)" },
    { SIGPIPE, " (SIGPIPE)" }, { SIGQUIT, " (SIGQUIT)" }, { SIGSEGV, " (SIGSEGV)" }, { SIGSYS, " (SIGSYS)" },
    { SIGTERM, " (SIGTERM)" }, { SIGTRAP, " (SIGTRAP)" }, { SIGXCPU, " (SIGXCPU)" }, { SIGXFSZ, " (SIGXFSZ)" },
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (names[i].number == number) return names[i].name;
  return "";
}

/* ---- start ---- */

static tn_status cannot_run(const char *program, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_UNIMPLEMENTED, "the probe program '%s' cannot run: %s", program, why);
}

static bool make_nonce(char *nonce)
{
  unsigned char bytes[TN_PROBE_NONCE / 2];
  if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) return false;
  for (size_t i = 0; i < sizeof(bytes); i++) tn__snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
  return true;
}

/* Makes a pipe whose ends are above TN_PROBE_FD, so that spawn can assign the lower numbers without overwriting one. */
static bool make_pipe(int ends[2])
{
  int fds[2];
  ends[0] = ends[1] = -1;
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  for (int i = 0; i < 2; i++) {
    ends[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, TN_PROBE_FD + 1);
    close(fds[i]);
  }
  if (ends[0] >= 0 && ends[1] >= 0) return true;
  if (ends[0] >= 0) close(ends[0]);
  if (ends[1] >= 0) close(ends[1]);
  return false;
}

static void shut(int *fd)
{
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* Writes the whole request at once: no process reads the pipe yet, so a request that does not fit is an error. */
static bool write_request(const probe *p, int fd, const char *path, int64_t timeout_ms)
{
  char head[200];
  size_t size = strlen(path);
  int n = tn__snprintf(head, sizeof(head), "tenon-probe 1 %s %d.%d %" PRIu64 " %" PRId64 " %zu\n", p->nonce,
                       TN_ABI_MAJOR, TN_ABI_MINOR, p->memory, timeout_ms / 1000 + 2, size);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return n > 0 && write(fd, head, (size_t)n) == n && write(fd, path, size) == (ssize_t)size;
}

/* Starts the program in a process group of its own, with no signal blocked or ignored. Returns an errno value. */
static int spawn(probe *p, const char *program, int request, int report)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  char *argv[] = { (char *)(uintptr_t)program, NULL };
  sigemptyset(&none);
  sigfillset(&all);
  if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  int number = posix_spawn_file_actions_adddup2(&actions, request, 0);
  if (number == 0) number = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (number == 0) number = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (number == 0) number = posix_spawn_file_actions_adddup2(&actions, report, TN_PROBE_FD);
  if (number == 0) number = posix_spawnattr_setpgroup(&attributes, 0);
  if (number == 0) number = posix_spawnattr_setsigmask(&attributes, &none);
  if (number == 0) number = posix_spawnattr_setsigdefault(&attributes, &all);
  if (number == 0)
    number =
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (number == 0) number = posix_spawn(&p->child, program, &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return number;
}

/* TENON_PROBE_PROGRAM, else that of the build tree, else the installed one. */
static const char *program_path(probe *p)
{
  const char *program = tn__getenv("TENON_PROBE_PROGRAM");
  if (program != NULL && program[0] != 0) return program;
  return tn__uninstalled_probe(p->built) ? p->built : TN_PROBE_PROGRAM;
}

/* Starts the child and keeps the reading end of its report pipe. */
static tn_status start(probe *p, const char *path, int64_t timeout_ms, tn_error *err)
{
  const char *program = program_path(p);
  int request[2], report[2];
  tn_error e = TN_ERROR_INIT;
  if (strlen(path) > TN_PROBE_MAX_PATH) return cannot_run(program, "the plugin's path is too long", err);
  tn_status status = tn__path_check(program, tn__elevated(), NULL, NULL, &e);
  if (status == TN_RESOURCE_EXHAUSTED)
    tn_error_copy(err, &e);
  else if (status != TN_OK)
    status = cannot_run(program, tn_error_message(&e), err);
  tn_error_clear(&e);
  if (status != TN_OK) return status;
  if (!make_nonce(p->nonce)) return cannot_run(program, "the system provides no random bytes", err);
  if (!make_pipe(request)) return cannot_run(program, "no file descriptor is left", err);
  if (!make_pipe(report)) {
    close(request[0]);
    close(request[1]);
    return cannot_run(program, "no file descriptor is left", err);
  }
  bool written = write_request(p, request[1], path, timeout_ms);
  int number = written ? spawn(p, program, request[0], report[1]) : EPIPE;
  close(request[0]);
  close(request[1]);
  close(report[1]);
  p->report = report[0];
  if (number == 0) return TN_OK;
  shut(&p->report);
  return cannot_run(program, written ? tn__strerror(number) : "its request does not fit into a pipe", err);
}

/* ---- listening ---- */

/* Returns the next line of the reply from *at on that has the nonce, without the nonce; NULL: no complete one is
 * left. */
static const char *next_line(probe *p, size_t *at, size_t *size)
{
  for (;;) {
    const char *line = p->reply + *at, *end = memchr(line, '\n', p->size - *at);
    if (end == NULL) return NULL;
    *at = (size_t)(end - p->reply) + 1;
    if ((size_t)(end - line) < TN_PROBE_NONCE + 4 || memcmp(line, p->nonce, TN_PROBE_NONCE) != 0) continue;
    *size = (size_t)(end - line) - TN_PROBE_NONCE - 1;
    return line + TN_PROBE_NONCE + 1;
  }
}

/* Takes "V CODE SIZE" and the message that follows the line; false if it is malformed or not complete yet. */
static bool take_verdict(probe *p, const char *line, size_t size, size_t at)
{
  const char *space = memchr(line + 2, ' ', size - 2);
  int64_t code = 0, bytes = 0;
  if (space == NULL || !tn__parse_int((tn__slice){ line + 2, (size_t)(space - line) - 2 }, &code) ||
      !tn__parse_int((tn__slice){ space + 1, size - (size_t)(space - line) - 1 }, &bytes))
    return false;
  if (code < TN_OK || code > TN_UNAUTHENTICATED || bytes < 0 || (size_t)bytes > p->size - at) return false;
  p->verdict = true;
  p->code = (int32_t)code;
  p->message = p->reply + at;
  p->message_size = (size_t)bytes;
  return true;
}

/* Takes "S STEP", "B BYTES" or "P BYTES". */
static void take_number(probe *p, char what, int64_t number)
{
  if (what == 'S' && number > 0 && number < TN__N_STEPS) p->step = (tn__step)number;
  if (what == 'B' && number > 0) p->before = (uint64_t)number;
  if (what == 'P' && number > 0) p->peak = (uint64_t)number;
}

/* Parses all lines so far, from the first on: the reply is short. */
static void read_lines(probe *p)
{
  size_t at = 0, size = 0;
  const char *line;
  while (!p->verdict && (line = next_line(p, &at, &size)) != NULL) {
    int64_t number = 0;
    if (line[0] == 'V')
      take_verdict(p, line, size, at);
    else if (tn__parse_int((tn__slice){ line + 2, size - 2 }, &number))
      take_number(p, line[0], number);
  }
}

/* Whether the child has ended; does not reap it, so that its id stays in use. */
static bool has_ended(probe *p)
{
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  if (waitid(P_PID, (id_t)p->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0) return info.si_pid == p->child;
  p->gone = errno == ECHILD;
  return p->gone;
}

/* Reads from the report pipe; false at its end. */
static bool read_some(probe *p)
{
  if (p->size == sizeof(p->reply)) return false; /* more than any report: the plugin writes to the pipe */
  ssize_t n = read(p->report, p->reply + p->size, sizeof(p->reply) - p->size);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  p->size += (size_t)n;
  read_lines(p);
  return n > 0;
}

/* Returns on the verdict, at the child's end or at the deadline. */
static void listen_until_end(probe *p)
{
  bool open = true;
  while (!p->verdict) {
    int64_t left = p->deadline - tn__now_ns();
    if (left <= 0) {
      p->timeout = true;
      return;
    }
    struct pollfd fd = { .fd = open ? p->report : -1, .events = POLLIN };
    int64_t ms = left / 1000000 + 1;
    int n = poll(&fd, 1, ms < SLICE_MS ? (int)ms : SLICE_MS);
    if (n > 0) {
      open = read_some(p);
    } else if (n == 0 && has_ended(p)) { /* one of its children may hold the pipe open */
      while (open && poll(&fd, 1, 0) > 0 && !p->verdict) open = read_some(p);
      return;
    }
    if (!open && has_ended(p)) return;
  }
}

/* Kills the whole group before reaping its leader, as until then the system cannot reuse its id. */
static void end_group(probe *p)
{
  struct rusage use;
  bool alive_or_zombie = !p->gone;
  if (alive_or_zombie) {
    has_ended(p);
    if (!p->gone) kill(-p->child, SIGKILL);
  }
  if (p->gone) return;
  pid_t got;
  do got = wait4(p->child, &p->wait_status, 0, &use);
  while (got < 0 && errno == EINTR);
  p->gone = got != p->child;
  if (p->gone || p->peak > 0) return;
  uint64_t bytes = (uint64_t)use.ru_maxrss * 1024;
  if (bytes > p->before) p->peak = bytes;
}

/* ---- the verdict ---- */

/* Fills the report and the reason. */
static void conclude(const probe *p, tn_probe_report *out, tn_error *why)
{
  const char *step = tn__step_text(p->step);
  out->step = step;
  out->peak_bytes = p->peak;
  if (p->verdict) {
    out->verdict = p->code == TN_OK ? TN_PROBE_WELL : TN_PROBE_ERROR;
    out->status = p->code;
    if (p->code != TN_OK) tn_error_set(why, p->code, "%.*s", (int)p->message_size, p->message);
  } else if (p->timeout) {
    out->verdict = TN_PROBE_TIMEOUT;
    tn_error_set(why, TN_DEADLINE_EXCEEDED, "it was not ready after %" PRId64 " ms; the last step reached was %s",
                 out->duration_us / 1000, step);
  } else if (!p->gone && WIFSIGNALED(p->wait_status)) {
    out->signal = WTERMSIG(p->wait_status);
    bool memory = p->memory > 0 && p->peak >= p->memory / 10 * 8;
    out->verdict = memory ? TN_PROBE_MEMORY : TN_PROBE_SIGNAL;
    if (memory)
      tn_error_set(why, TN_ABORTED,
                   "it used all of the %" PRIu64
                   " MiB of memory that it was allowed, and signal %d%s ended it; the last step reached "
                   "was %s",
                   p->memory >> 20, out->signal, signal_name(out->signal), step);
    else
      tn_error_set(why, TN_ABORTED, "signal %d%s ended it; the last step reached was %s", out->signal,
                   signal_name(out->signal), step);
  } else {
    char how[32] = ""; /* the status is unknown if the program ignores SIGCHLD or reaps every child */
    out->verdict = TN_PROBE_EXIT;
    if (!p->gone && WIFEXITED(p->wait_status)) {
      out->exit_status = WEXITSTATUS(p->wait_status);
      tn__snprintf(how, sizeof(how), ", with status %d", out->exit_status);
    }
    tn_error_set(why, TN_ABORTED, "it ended its process%s; the last step reached was %s", how, step);
  }
}

tn_status tn__probe_run(const char *path, int64_t timeout_ms, tn_probe_report *out, tn_error *why, tn_error *err)
{
  probe *p = tn__zalloc(sizeof(*p));
  int64_t begin = tn__now_ns(), memory = 0;
  const char *most = tn__getenv("TENON_PROBE_MEMORY_MB");
  if (p == NULL) return tn__no_memory(err, "a probe", sizeof(*p));
  bool given = most != NULL && tn__parse_int(tn__slice_of(most), &memory) && memory > 0 && memory < INT64_MAX >> 20;
  p->memory = given ? (uint64_t)memory << 20 : DEFAULT_MEMORY;
  p->deadline = timeout_ms < INT64_MAX / 2000000 ? begin + timeout_ms * 1000000 : INT64_MAX;
  p->report = -1;
  tn_status status = start(p, path, timeout_ms, err);
  if (status == TN_OK) {
    listen_until_end(p);
    end_group(p);
    shut(&p->report);
    if (p->step == TN__STEP_NONE && !p->verdict) {
      status = cannot_run(program_path(p), "it exited or hung before it started", err);
    } else {
      *out = (tn_probe_report){ .struct_size = sizeof(*out), .duration_us = (tn__now_ns() - begin) / 1000 };
      conclude(p, out, why);
    }
  }
  tn__free(p, sizeof(*p));
  return status;
}
