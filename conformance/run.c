/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests, in parallel if requested, and prints their results in list order. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <conformance/conformance.h>

enum { MOST_OUTPUT = 12000, TICK_MS = 20, DRAW_MS = 100, BAR = 30 };

typedef struct result {
  char kind; /* kind of verdict; 0: not finished */
  char reason[640];
  char *output; /* NULL if there is none */
} result;

typedef struct job {
  cf_child child; /* pid 0: free */
  size_t test;
  int64_t deadline_ms;
  bool late; /* killed at its time limit */
  bool cut;  /* its output was truncated */
  char *output;
  size_t size;
} job;

typedef struct runner {
  const cf_options *options;
  const cf_runtime *runtime;
  const cf_test *tests;
  result *results;
  job *jobs;
  struct pollfd *polled;
  size_t n, started, done, printed;
  size_t counts[128]; /* indexed by kind */
  int64_t begin_ms, drawn_ms;
  bool planned;  /* the plan was printed; results may follow */
  bool terminal; /* draw progress */
  bool unheard;  /* standard output cannot be written */
} runner;

static volatile sig_atomic_t interrupted;
bool cf_output_closed;

static void on_signal(int number) { interrupted = number; }

static int64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- progress ---- */

static void clear_progress(runner *r)
{
  if (r->terminal && r->drawn_ms != 0) fputs("\r\033[K", stderr);
  r->drawn_ms = 0;
}

static void draw_progress(runner *r)
{
  int64_t now = now_ms();
  if (!r->terminal || now - r->begin_ms < 500 || (r->drawn_ms != 0 && now - r->drawn_ms < DRAW_MS)) return;
  char bar[BAR + 1];
  for (size_t i = 0; i < BAR; i++) bar[i] = i < r->done * BAR / r->n ? '#' : '.';
  bar[BAR] = '\0';
  fprintf(stderr, "\r\033[K%s [%s] %zu/%zu", r->options->runtime, bar, r->done, r->n);
  if (r->counts['f'] > 0) fprintf(stderr, "  %zu failed", r->counts['f']);
  fprintf(stderr, "  %.1f s", (double)(now - r->begin_ms) / 1000);
  fflush(stderr);
  r->drawn_ms = now;
}

/* ---- TAP ---- */

/* Prints the output of a failed test; for other tests only lines marked as notes. */
static void print_comment(const char *text, bool failed)
{
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    if (strncmp(text, failed ? "# " : "# note: ", failed ? 2 : 8) == 0) printf("%.*s\n", (int)length, text);
    else if (failed) printf("#   %.*s\n", (int)length, text);
    text += length + (text[length] == '\n');
  }
}

/* Prints the text of the test's rules, because a process that hangs or exits leaves no message. */
static void print_rule_texts(const char *rules)
{
  while (*rules != '\0') {
    size_t length = strcspn(rules, " ");
    for (const cf_rule *rule = cf_rules; rule->name != NULL; rule++)
      if (strlen(rule->name) == length && memcmp(rule->name, rules, length) == 0)
        printf("# %s: %s\n", rule->name, rule->text);
    rules += length + strspn(rules + length, " ");
  }
}

static void print_result(runner *r, size_t i)
{
  const cf_test *t = &r->tests[i];
  result *res = &r->results[i];
  printf("%s %zu - %s", res->kind == 'f' ? "not ok" : "ok", i + 1, t->test->name);
  if (t->rules[0] != '\0') printf(" (%s)", t->rules);
  if (res->kind == 's') printf(" # SKIP %s", res->reason);
  putchar('\n');
  if (res->kind == 'f' && res->reason[0] != '\0') {
    printf("# %s\n", res->reason);
    print_rule_texts(t->rules);
  }
  if (res->output != NULL) print_comment(res->output, res->kind == 'f');
  free(res->output);
  res->output = NULL;
}

static void print_ready(runner *r)
{
  if (!r->planned || r->printed == r->n || r->results[r->printed].kind == 0) return;
  clear_progress(r);
  for (; r->printed < r->n && r->results[r->printed].kind != 0; r->printed++) print_result(r, r->printed);
  errno = 0;
  if (fflush(stdout) == 0) return;
  r->unheard = true;
  cf_output_closed = errno == EPIPE;
}

/* Prints the rules covered by failed tests, each once, in test order. */
static void print_rules(const runner *r)
{
  char seen[4096] = " ";
  for (size_t i = 0; i < r->n; i++) {
    if (r->results[i].kind != 'f') continue;
    for (const char *at = r->tests[i].rules; *at != '\0';) {
      char rule[40];
      size_t length = strcspn(at, " "), used = strlen(seen);
      snprintf(rule, sizeof(rule), " %.*s ", (int)length, at);
      if (strstr(seen, rule) == NULL) snprintf(seen + used, sizeof(seen) - used, "%s", rule + 1);
      at += length + strspn(at + length, " ");
    }
  }
  if (seen[1] != '\0') printf("# rules of failed tests:%.*s\n", (int)strlen(seen) - 1, seen);
}

static int summary(const runner *r)
{
  size_t passed = r->counts['p'], failed = r->counts['f'], skipped = r->counts['s'];
  print_rules(r);
  printf("# %s: %zu passed, %zu failed", r->options->runtime, passed, failed);
  if (skipped > 0) printf(", %zu skipped", skipped);
  printf(", %.1f s\n", (double)(now_ms() - r->begin_ms) / 1000);
  if (failed > 0) return CF_FAILED;
  return passed > 0 ? CF_PASSED : CF_SKIPPED;
}

/* ---- jobs ---- */

__attribute__((format(printf, 3, 4))) static void decide(result *res, char kind, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(res->reason, sizeof(res->reason), format, args);
  va_end(args);
  res->kind = kind;
  for (char *at = res->reason; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
}

static bool start_next(runner *r, job *j)
{
  *j = (job){ .test = r->started };
  if (!cf_child_start(&j->child, &r->tests[r->started], r->runtime, r->options->timeout)) {
    j->child.pid = 0;
    return false;
  }
  j->deadline_ms = now_ms() + (int64_t)r->options->timeout * 1000;
  r->started++;
  return true;
}

/* Reads its output; false at the end. */
static bool take_output(job *j)
{
  char rest[4096];
  if (j->output == NULL) j->output = cf_alloc(MOST_OUTPUT + 1, 1);
  for (;;) {
    size_t room = MOST_OUTPUT - j->size;
    ssize_t n = read(j->child.output, room > 0 ? j->output + j->size : rest, room > 0 ? room : sizeof(rest));
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    if (room > 0) j->size += (size_t)n;
    else j->cut = true;
  }
}

/* Replaces control bytes, which a terminal would interpret. */
static char *plain_output(job *j)
{
  for (size_t i = 0; i < j->size; i++) {
    unsigned char c = (unsigned char)j->output[i];
    if (c == '\t') j->output[i] = ' ';
    else if ((c < 0x20 && c != '\n') || c == 0x7f) j->output[i] = '?';
  }
  j->output[j->size] = '\0';
  if (j->cut) memcpy(j->output + j->size - 5, "\n...\n", 5);
  return j->output;
}

static void judge(result *res, const job *j, const cf_verdict *v, bool told, int status, int timeout)
{
  char when[CF_STEP_BYTES + 80];
  snprintf(when, sizeof(when), "%s%s%.*s", told ? "when the test was over" : "in the test",
           j->child.step[0] != '\0' ? "; the last step was " : "", CF_STEP_BYTES - 1, j->child.step);
  if (j->late) decide(res, 'f', "it did not end in %d s, %s", timeout, when);
  else if (WIFSIGNALED(status))
    decide(res, 'f', "its process was ended by signal %d (%s) %s%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
           when,
           WTERMSIG(status) == SIGABRT && j->child.step[0] != '\0'
               ? " (an exception or a panic that leaves a callback ends so, too: P-94)"
               : "");
  else if (WEXITSTATUS(status) != 0 || !told)
    decide(res, 'f', "its process ended with status %d %s", WEXITSTATUS(status), when);
  else decide(res, v->kind, "%s", v->reason);
}

/* Its process has ended and is a zombie. Kills the process group, then reaps it. */
static void collect(runner *r, job *j)
{
  cf_verdict verdict;
  int status = 0;
  kill(-j->child.pid, SIGKILL);
  while (waitpid(j->child.pid, &status, 0) < 0 && errno == EINTR) { }
  take_output(j);
  bool told = read(j->child.verdict, &verdict, sizeof(verdict)) == (ssize_t)sizeof(verdict);
  close(j->child.output);
  close(j->child.verdict);
  result *res = &r->results[j->test];
  judge(res, j, &verdict, told, status, r->options->timeout);
  r->counts[(unsigned char)res->kind & 127]++;
  r->done++;
  res->output = plain_output(j);
  munmap(j->child.step, CF_STEP_BYTES);
  j->child.pid = 0;
}

static bool has_ended(pid_t pid)
{
  siginfo_t info;
  memset(&info, 0, sizeof(info));
  return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Checks one job after a possible event. */
static void look_after(runner *r, job *j, bool *closed)
{
  if (j->child.pid == 0) return;
  if (!take_output(j)) *closed = true;
  if (!j->late && now_ms() >= j->deadline_ms) {
    j->late = true;
    kill(-j->child.pid, SIGKILL);
  }
  if (has_ended(j->child.pid)) collect(r, j);
}

static bool give_up(runner *r, const char *why)
{
  for (int i = 0; i < r->options->jobs; i++)
    if (r->jobs[i].child.pid != 0) collect(r, &r->jobs[i]);
  clear_progress(r);
  printf("Bail out! %s\n", why);
  return false;
}

/* Runs tests up to `end`; false if the program must stop. */
static bool run_until(runner *r, size_t end)
{
  bool closed = false; /* a child has closed its pipe and is about to exit */
  while (r->done < end) {
    nfds_t n = 0;
    if (interrupted) return give_up(r, "interrupted");
    for (int i = 0; i < r->options->jobs; i++) {
      job *j = &r->jobs[i];
      if (j->child.pid == 0 && r->started < end && !start_next(r, j) && n == 0)
        return give_up(r, "no process can be started");
      if (j->child.pid != 0) r->polled[n++] = (struct pollfd){ .fd = j->child.output, .events = POLLIN };
    }
    if (closed) poll(NULL, 0, 1);
    else poll(r->polled, n, TICK_MS);
    closed = false;
    for (int i = 0; i < r->options->jobs; i++) look_after(r, &r->jobs[i], &closed);
    draw_progress(r);
    print_ready(r);
    if (r->unheard) return give_up(r, "standard output cannot be written");
  }
  return true;
}

static void watch_signals(void)
{
  static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_signal;
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) sigaction(numbers[i], &action, NULL);
  signal(SIGPIPE, SIG_IGN);
}

/* Tests that must finish before later ones start: the file tests; each gate test alone; all remaining tests. */
static size_t end_of_group(const runner *r, size_t from)
{
  size_t end = from + 1;
  int stage = r->tests[from].stage;
  if (stage == CF_STAGE_LOAD) return end;
  while (end < r->n && (r->tests[end].stage == stage || stage > CF_STAGE_WORKS)) end++;
  return end;
}

/* Why the runtime is unavailable on this machine, or NULL if it is available. */
static const char *unavailable(const runner *r)
{
  for (size_t i = 0; i < r->done; i++)
    if (r->results[i].kind == 's' && strncmp(r->results[i].reason, "UNAVAILABLE", 11) == 0) return r->results[i].reason;
  return NULL;
}

static void print_plan(runner *r)
{
  printf("1..%zu\n", r->n);
  r->planned = true;
  print_ready(r);
}

/* Whether to continue after the group that ends at `end`. */
static bool may_go_on(runner *r, size_t begin, size_t end)
{
  bool open = unavailable(r) == NULL;
  /* Session tests need a runtime that the library finds. If it finds none, the file tests have reported why. */
  bool found = r->runtime->plugin == NULL || r->runtime->kernels || r->runtime->name != NULL;
  if (!found && end < r->n && r->tests[end].stage > CF_STAGE_LOAD) return false;
  for (size_t i = begin; i < end && r->tests[i].stage != CF_STAGE_FILE; i++) open = open && r->results[i].kind != 'f';
  return open;
}

static int run_all(runner *r)
{
  size_t end = 0;
  while (end < r->n && r->tests[end].stage <= CF_STAGE_WORKS) {
    size_t begin = end;
    end = end_of_group(r, begin);
    if (!run_until(r, end)) return CF_FAILED;
    if (may_go_on(r, begin, end)) continue;
    r->n = end;
  }
  if (unavailable(r) != NULL && r->counts['f'] == 0) {
    printf("1..0 # SKIP %s\n", unavailable(r));
    return CF_SKIPPED;
  }
  print_plan(r);
  if (!run_until(r, r->n)) return CF_FAILED;
  clear_progress(r);
  return summary(r);
}

int cf_run(const cf_options *options, const cf_runtime *runtime, const cf_test *tests, size_t n)
{
  const char *terminal = getenv("TERM");
  runner r = { .options = options, .runtime = runtime, .tests = tests, .n = n, .begin_ms = now_ms() };
  r.terminal = isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
  r.results = cf_alloc(n, sizeof(result));
  r.jobs = cf_alloc((size_t)options->jobs, sizeof(job));
  r.polled = cf_alloc((size_t)options->jobs, sizeof(struct pollfd));
  watch_signals();
  int status = run_all(&r);
  for (size_t i = 0; i < n; i++) free(r.results[i].output);
  free(r.results);
  free(r.jobs);
  free(r.polled);
  return interrupted ? 128 + (int)interrupted : status;
}
