/* SPDX-License-Identifier: Apache-2.0 */
/* State of the process and thread that a plugin must leave unchanged (P-101): recorded before a call and compared after
 * it.
 *
 * During a call, standard output and standard error are redirected to temporary files, to tell the plugin's output from
 * the test's. Calls may be nested, or run on several threads: the first to begin redirects the descriptors, the last to
 * end restores them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <conformance/plugin/plugin_world.h>

extern char **environ;

enum { N_STREAMS = 3, N_TIMERS = 3, NAME_BYTES = 32 };

static const struct {
  int number;
  const char *name;
} limits[] = {
  { RLIMIT_CORE, "RLIMIT_CORE" }, { RLIMIT_CPU, "RLIMIT_CPU" },       { RLIMIT_DATA, "RLIMIT_DATA" },
  { RLIMIT_AS, "RLIMIT_AS" },     { RLIMIT_FSIZE, "RLIMIT_FSIZE" },   { RLIMIT_NOFILE, "RLIMIT_NOFILE" },
  { RLIMIT_STACK, "RLIMIT_STACK" },
#ifdef RLIMIT_MEMLOCK
  { RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK" }, { RLIMIT_NPROC, "RLIMIT_NPROC" },
#endif
};
enum { N_LIMITS = sizeof(limits) / sizeof(limits[0]) };

static const int timers[N_TIMERS] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
static const char *const timer_names[N_TIMERS] = { "ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF" };
static const char *const stream_names[N_STREAMS] = { "standard input", "standard output", "standard error" };

/* Floating-point mode of the thread. Excludes exception flags, which any computation may set. */
typedef struct arithmetic {
  int rounding;
  int traps;          /* exceptions that raise a signal; -1: unknown */
  bool flushes;       /* denormal results become 0 */
  bool ignores_small; /* denormal operands count as 0 */
} arithmetic;

struct pg_world {
  struct sigaction actions[NSIG];
  bool has_action[NSIG];
  sigset_t mask;
  stack_t signal_stack;
  char *locale, *folder;
  locale_t thread_locale;
  mode_t umask;
  arithmetic numbers;
  char **variables;
  struct rlimit limits[N_LIMITS];
  struct itimerval timers[N_TIMERS];
  struct stat streams[N_STREAMS];
  bool has_stream[N_STREAMS];
  off_t written[N_STREAMS];
  int nice;
  bool children;
  char name[NAME_BYTES]; /* name of the thread; "" if unknown */
#ifdef __linux__
  cpu_set_t cpus;
#endif
};

/* ---- recording ---- */

static char *copy_text(const char *text)
{
  if (text == NULL) text = "";
  char *copy = cf_alloc(strlen(text) + 1, 1);
  memcpy(copy, text, strlen(text));
  return copy;
}

static char **copy_variables(void)
{
  size_t n = 0;
  while (environ != NULL && environ[n] != NULL) n++;
  char **copy = cf_alloc(n + 1, sizeof(*copy));
  for (size_t i = 0; i < n; i++) copy[i] = copy_text(environ[i]);
  return copy;
}

static void drop_variables(char **variables)
{
  for (size_t i = 0; variables != NULL && variables[i] != NULL; i++) free(variables[i]);
  free(variables);
}

/* volatile, so that the thread computes this, not the compiler. */
static arithmetic look_at_numbers(void)
{
  volatile double least = DBL_MIN, half = 0.5, small = 4.9406564584124654e-324, large = 1e300;
  volatile double halved = least * half, raised = small * large;
  return (arithmetic){ .rounding = fegetround(),
#ifdef __GLIBC__
                       .traps = fegetexcept(),
#else
                       .traps = -1,
#endif
                       .flushes = halved == 0,
                       .ignores_small = raised == 0 };
}

static mode_t look_at_umask(void)
{
  mode_t now = umask(077);
  umask(now);
  return now;
}

static bool has_children(void)
{
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

static void look_at_signals(pg_world *w)
{
  for (int s = 1; s < NSIG; s++) w->has_action[s] = sigaction(s, NULL, &w->actions[s]) == 0;
  pthread_sigmask(SIG_BLOCK, NULL, &w->mask);
  sigaltstack(NULL, &w->signal_stack);
}

static void look_at_streams(pg_world *w)
{
  for (int i = 0; i < N_STREAMS; i++) {
    w->has_stream[i] = fstat(i, &w->streams[i]) == 0;
    w->written[i] = w->has_stream[i] && i > 0 ? w->streams[i].st_size : 0;
  }
}

static void look_at_thread(pg_world *w)
{
#ifdef __linux__
  CPU_ZERO(&w->cpus);
  pthread_getaffinity_np(pthread_self(), sizeof(w->cpus), &w->cpus);
  pthread_getname_np(pthread_self(), w->name, sizeof(w->name));
#endif
  errno = 0;
  w->nice = getpriority(PRIO_PROCESS, 0);
}

static void look(pg_world *w)
{
  w->numbers = look_at_numbers();
  look_at_signals(w);
  w->locale = copy_text(setlocale(LC_ALL, NULL));
  w->thread_locale = uselocale((locale_t)0);
  w->folder = getcwd(NULL, 0);
  w->umask = look_at_umask();
  w->variables = copy_variables();
  for (int i = 0; i < N_LIMITS; i++) getrlimit((__typeof__(RLIMIT_CORE))limits[i].number, &w->limits[i]);
  for (int i = 0; i < N_TIMERS; i++) getitimer((__typeof__(ITIMER_REAL))timers[i], &w->timers[i]);
  w->children = has_children();
  look_at_thread(w);
  fflush(stdout); /* output still buffered by the C library also counts */
  fflush(stderr);
  look_at_streams(w);
}

static void drop(pg_world *w)
{
  free(w->locale);
  free(w->folder);
  drop_variables(w->variables);
  free(w);
}

/* ---- the streams of a call ---- */

static struct {
  pthread_mutex_t mutex; /* guards all fields */
  int calls;             /* number of active calls */
  int files[N_STREAMS];  /* files that replace the streams, reused across calls; 0: none */
  int kept[N_STREAMS];   /* saved descriptors of the streams; -1: none */
} streams = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int temporary_file(void)
{
  FILE *file = tmpfile();
  int fd = file != NULL ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 64) : -1;
  if (file != NULL) fclose(file);
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_APPEND);
  return fd;
}

static void replace_streams(void)
{
  fflush(stdout);
  fflush(stderr);
  for (int i = 1; i < N_STREAMS; i++) {
    if (streams.files[i] == 0) streams.files[i] = temporary_file();
    streams.kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 64);
    if (streams.files[i] >= 0 && streams.kept[i] >= 0) dup2(streams.files[i], i);
  }
}

static void put_streams_back(void)
{
  fflush(stdout);
  fflush(stderr);
  for (int i = 1; i < N_STREAMS; i++) {
    if (streams.kept[i] < 0) continue;
    dup2(streams.kept[i], i);
    close(streams.kept[i]);
  }
}

static void streams_begin(void)
{
  pthread_mutex_lock(&streams.mutex);
  if (streams.calls++ == 0) replace_streams();
  pthread_mutex_unlock(&streams.mutex);
}

static void streams_end(void)
{
  pthread_mutex_lock(&streams.mutex);
  if (--streams.calls == 0) put_streams_back();
  pthread_mutex_unlock(&streams.mutex);
}

/* ---- comparing ---- */

/* Collected failures; they are recorded after the streams are restored. */
typedef struct findings {
  const char *call;
  char *text; /* lines; NULL: none */
  size_t size;
} findings;

__attribute__((format(printf, 2, 3))) static void found(findings *f, const char *format, ...)
{
  char line[600];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  size_t n = strlen(line);
  char *grown = realloc(f->text, f->size + n + 2);
  if (grown == NULL) return;
  memcpy(grown + f->size, line, n);
  memcpy(grown + f->size + n, "\n", 2);
  f->text = grown;
  f->size += n + 1;
}

static const char *name_of_signal(int s)
{
  static __thread char text[80];
  const char *words = strsignal(s);
  snprintf(text, sizeof(text), "signal %d (%s)", s, words != NULL ? words : "");
  return text;
}

/* Ignore the flag added by the C library (SA_RESTORER). */
static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
  enum { FLAGS = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER };
  if ((((unsigned)a->sa_flags ^ (unsigned)b->sa_flags) & ((unsigned)FLAGS | (unsigned)SA_RESETHAND)) != 0) return false;
  if ((a->sa_flags & SA_SIGINFO) != 0) return a->sa_sigaction == b->sa_sigaction;
  return a->sa_handler == b->sa_handler;
}

static void compare_signals(findings *f, const pg_world *a, const pg_world *b)
{
  for (int s = 1; s < NSIG; s++) {
    if (!a->has_action[s] || !b->has_action[s]) continue;
    if (!same_action(&a->actions[s], &b->actions[s])) found(f, "changed what happens on %s", name_of_signal(s));
    int before = sigismember(&a->mask, s), after = sigismember(&b->mask, s);
    if (before != after)
      found(f, "left %s %s on its caller's thread", name_of_signal(s), after == 1 ? "blocked" : "unblocked");
  }
  if (a->signal_stack.ss_sp != b->signal_stack.ss_sp || a->signal_stack.ss_flags != b->signal_stack.ss_flags)
    found(f, "changed the stack for signals of its caller's thread");
}

/* The value of "NAME=..." in the list, or NULL. n is the length of the name. */
static const char *value_of(char *const *variables, const char *variable, size_t n)
{
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, variable, n) == 0 && (*variables)[n] == '=') return *variables + n + 1;
  return NULL;
}

static void compare_variables(findings *f, const pg_world *a, const pg_world *b)
{
  for (char *const *at = b->variables; *at != NULL; at++) {
    size_t n = strcspn(*at, "=");
    const char *before = value_of(a->variables, *at, n);
    if (before == NULL || strcmp(before, value_of(b->variables, *at, n)) != 0)
      found(f, "%s the environment variable %.*s", before == NULL ? "added" : "changed", (int)(n < 200 ? n : 200), *at);
  }
  for (char *const *at = a->variables; *at != NULL; at++) {
    size_t n = strcspn(*at, "=");
    if (value_of(b->variables, *at, n) == NULL)
      found(f, "removed the environment variable %.*s", (int)(n < 200 ? n : 200), *at);
  }
}

static void compare_process(findings *f, const pg_world *a, const pg_world *b)
{
  if (strcmp(a->locale, b->locale) != 0)
    found(f, "changed the locale of the process from '%.200s' to '%.200s'", a->locale, b->locale);
  if (a->thread_locale != b->thread_locale) found(f, "changed the locale of its caller's thread");
  const char *before = a->folder != NULL ? a->folder : "", *after = b->folder != NULL ? b->folder : "";
  if (strcmp(before, after) != 0) found(f, "changed the working directory from '%.200s' to '%.200s'", before, after);
  if (a->umask != b->umask) found(f, "changed the umask from %03o to %03o", (unsigned)a->umask, (unsigned)b->umask);
  if (a->nice != b->nice) found(f, "changed the priority from %d to %d", a->nice, b->nice);
  if (b->children && !a->children) found(f, "left a child process");
  for (int i = 0; i < N_LIMITS; i++)
    if (a->limits[i].rlim_cur != b->limits[i].rlim_cur || a->limits[i].rlim_max != b->limits[i].rlim_max)
      found(f, "changed the resource limit %s", limits[i].name);
}

static void compare_thread(findings *f, const pg_world *a, const pg_world *b)
{
  if (a->numbers.rounding != b->numbers.rounding) found(f, "changed how its caller's thread rounds (fesetround)");
  if (a->numbers.traps != b->numbers.traps) found(f, "changed which floating-point exceptions raise a signal");
  if (a->numbers.flushes != b->numbers.flushes || a->numbers.ignores_small != b->numbers.ignores_small)
    found(f, "changed whether its caller's thread takes denormal numbers for 0");
#ifdef __linux__
  if (!CPU_EQUAL(&a->cpus, &b->cpus)) found(f, "changed the CPUs that its caller's thread may run on");
#endif
  if (strcmp(a->name, b->name) != 0)
    found(f, "changed the name of its caller's thread from '%s' to '%s'", a->name, b->name);
}

/* The remaining time of a running timer decreases. */
static void compare_timers(findings *f, const pg_world *a, const pg_world *b)
{
  for (int i = 0; i < N_TIMERS; i++) {
    const struct itimerval *x = &a->timers[i], *y = &b->timers[i];
    double left = (double)x->it_value.tv_sec + (double)x->it_value.tv_usec / 1e6;
    double now = (double)y->it_value.tv_sec + (double)y->it_value.tv_usec / 1e6;
    bool same_turn = x->it_interval.tv_sec == y->it_interval.tv_sec && x->it_interval.tv_usec == y->it_interval.tv_usec;
    if (!same_turn || now > left || (now == 0) != (left == 0)) found(f, "changed the timer %s", timer_names[i]);
  }
}

/* Reports the printable part of the first line that it wrote. */
static void found_text(findings *f, int stream, off_t from)
{
  char text[101];
  ssize_t n = pread(streams.files[stream], text, sizeof(text) - 1, from);
  text[n > 0 ? n : 0] = '\0';
  text[strcspn(text, "\n")] = '\0';
  found(f, "wrote to %s: \"%s\"", stream_names[stream], text);
}

static void compare_streams(findings *f, const pg_world *a, const pg_world *b)
{
  for (int i = 0; i < N_STREAMS; i++) {
    bool same = a->has_stream[i] == b->has_stream[i] && a->streams[i].st_dev == b->streams[i].st_dev &&
                a->streams[i].st_ino == b->streams[i].st_ino;
    if (!same) found(f, "closed or replaced %s", stream_names[i]);
    else if (b->written[i] > a->written[i] && i > 0) found_text(f, i, a->written[i]);
  }
}

/* Records each line as a failure. */
static void record(const findings *f)
{
  for (const char *at = f->text; at != NULL && *at != '\0';) {
    size_t n = strcspn(at, "\n");
    FAIL("%s %.*s", f->call, (int)n, at);
    at += n + (at[n] == '\n');
  }
}

/* ---- calls ---- */

static bool watching;

static void take_line(void *user, int32_t level, const char *line) { (void)user, (void)level, (void)line; }
static void take_text(void *user, int32_t stream, const char *text, size_t length)
{
  (void)user, (void)stream, (void)text, (void)length;
}

void pg_watch(void)
{
  watching = true;
  tn_set_log_sink(take_line, NULL); /* log messages go to the program and do not count as output */
  tn_set_print_sink(take_text, NULL);
}

pg_world *pg_call_begin(const char *call)
{
  if (!watching) return NULL;
  cf_reached(call);
  streams_begin();
  pg_world *w = cf_alloc(1, sizeof(*w));
  look(w);
  return w;
}

void pg_call_end(pg_world *before, const char *call)
{
  if (before == NULL) return;
  pg_world *after = cf_alloc(1, sizeof(*after));
  findings f = { .call = call };
  look(after);
  compare_signals(&f, before, after);
  compare_process(&f, before, after);
  compare_variables(&f, before, after);
  compare_thread(&f, before, after);
  compare_timers(&f, before, after);
  compare_streams(&f, before, after);
  streams_end();
  record(&f);
  free(f.text);
  drop(before);
  drop(after);
}

/* ---- threads ---- */

/* Reads a thread's blocked signals, and whether it sleeps. False: unknown. */
static bool look_at_task(const char *task, uint64_t *blocked, bool *sleeps)
{
  char path[300], line[256];
  snprintf(path, sizeof(path), "/proc/self/task/%.20s/status", task);
  FILE *file = fopen(path, "r");
  bool known = false;
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, "State:", 6) == 0) *sleeps = strstr(line, "(sleeping)") != NULL;
    if (strncmp(line, "SigBlk:", 7) != 0) continue;
    *blocked = strtoull(line + 7, NULL, 16);
    known = true;
  }
  if (file != NULL) fclose(file);
  return known;
}

int pg_unblocked_signal(const char *task)
{
  /* Signals sent to the process from outside: any thread that does not block them may receive them. */
  static const int outside[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGWINCH };
  enum { TRIES = 200 };
  /* A new thread blocks all signals until its function starts; a sleeping thread has started it. */
  for (int k = 0; k < TRIES; k++) {
    uint64_t blocked;
    bool sleeps = true;
    if (!look_at_task(task, &blocked, &sleeps)) return 0;
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
      if ((blocked >> (outside[i] - 1) & 1) == 0) return outside[i];
    if (sleeps) return 0;
    usleep(10000);
  }
  return 0;
}
