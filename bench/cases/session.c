/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of sessions besides their steps: one callable from several threads at once, and idle sessions. */
#include <bench/bench.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const char *const runtimes[] = { "direct", "threaded" };

/* ---- callables side by side ----
 *
 * One scalar addition, from 1, 2 and 4 threads at once in one session, and from 2 with a session each: calls each
 * second of all threads together. Each thread has its own tensors. Only ratios of figures of one run are meaningful. */

enum { MOST_CALLERS = 4, ROUNDS = 10 };
enum { ONE, TWO, OWN, FOUR, SORTS };

typedef struct tiny {
  tn_session *session;
  tn_callable callable;
} tiny;

typedef struct caller {
  pthread_t thread;
  tn_session *session;
  tn_callable callable;
  const atomic_bool *stop;
  double calls, seconds;
} caller;

static void *call(void *arg)
{
  caller *c = arg;
  tn_tensor *feeds[] = { bench_scalar(1), bench_scalar(0.5f) }, *out;
  tn_error err = TN_ERROR_INIT;
  double begin = bench_now();
  uint64_t n = 0;
  for (; !atomic_load_explicit(c->stop, memory_order_relaxed); n++) {
    out = NULL;
    bench_check(tn_session_run_callable(c->session, c->callable, feeds, 2, &out, 1, NULL, &err), &err, "run");
    tn_tensor_unref(out);
  }
  c->seconds = bench_now() - begin;
  c->calls = (double)n;
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return NULL;
}

static void sleep_for(double seconds)
{
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  nanosleep(&t, NULL);
}

/* Calls each second of n threads, each in its own session or all in one. */
static double rate_of(const tiny *sessions, bool own, int n, double seconds)
{
  caller callers[MOST_CALLERS];
  atomic_bool stop = false;
  double rate = 0;
  for (int i = 0; i < n; i++) {
    const tiny *t = &sessions[own ? i : 0];
    callers[i] = (caller){ .session = t->session, .callable = t->callable, .stop = &stop };
    if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0) exit(1);
  }
  sleep_for(seconds);
  atomic_store(&stop, true);
  for (int i = 0; i < n; i++) {
    pthread_join(callers[i].thread, NULL);
    rate += callers[i].calls / callers[i].seconds;
  }
  return rate;
}

static tiny open_tiny(const bench *b, const char *target)
{
  static const char *const feeds[] = { "x", "y" };
  const char *fetch = "add_0";
  bench_bytes bytes = { 0 };
  bench on = *b;
  tn_error err = TN_ERROR_INIT;
  on.runtime = target;
  bench_graph_chain(&bytes, 1);
  tn_graph *graph = bench_import(&bytes);
  tiny t = { .session = bench_session(&on, graph, 0) };
  bench_check(tn_session_make_callable(t.session, NULL, feeds, 2, &fetch, 1, NULL, 0, &t.callable, &err), &err,
              "callable");
  tn_graph_unref(graph);
  free(bytes.data);
  return t;
}

/* Measured alternately, so that other load on the machine affects all of them; the best round of each. */
static void side_by_side(bench *b, const char *target, const char *const *names)
{
  static const int counts[SORTS] = { 1, 2, 2, 4 };
  static const char *const limits[SORTS] = { "", "2 x callable_1", "", ">= callable_2" };
  tiny sessions[MOST_CALLERS];
  double best[SORTS] = { 0 };
  bool wanted = false;
  for (int k = 0; k < SORTS; k++) wanted |= bench_wants(names[k]);
  if (!wanted) return;
  for (int i = 0; i < MOST_CALLERS; i++) sessions[i] = open_tiny(b, target);
  for (int r = 0; r < ROUNDS; r++)
    for (int k = 0; k < SORTS; k++) {
      double rate = rate_of(sessions, k == OWN, counts[k], b->seconds / ROUNDS);
      if (rate > best[k]) best[k] = rate;
    }
  for (int k = 0; k < SORTS; k++) bench_report(b, names[k], best[k] * 1e-6, -1, "M/s", limits[k]);
  for (int i = 0; i < MOST_CALLERS; i++) tn_session_destroy(sessions[i].session);
}

/* ---- idle sessions ----
 *
 * One for each runtime and kind of pools, after steps that used workers: the CPU time that the process takes. */

enum { IDLE_SECONDS = 10 };

static const struct {
  const char *target, *pools;
  bool own;
} sorts[] = {
  { "direct", "", false },   { "direct", "2@idle", false }, { "threaded", "", false },
  { "threaded", "", true },  { "threaded", "2,3", false },  { "threaded", "2@idle", false },
  { "threaded:pin=1", "", false },
};
enum { N_IDLE = sizeof sorts / sizeof *sorts };

/* y = exp(x), large enough for several threads. */
static tn_graph *exp_graph(void)
{
  tn_graph *graph;
  tn_operation *x, *y;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  bench_check(tn_operation_finish(b, &x, &err), &err, "x");
  b = tn_operation_begin(graph, "Exp", "y", 0);
  tn_operation_add_input(b, (tn_output){ x, 0 });
  bench_check(tn_operation_finish(b, &y, &err), &err, "y");
  return graph;
}

static tn_session *open_idle(size_t i, tn_graph *graph)
{
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_options_create(&options, &err), &err, "options");
  bench_check(tn_session_options_set_target(options, sorts[i].target, &err), &err, "target");
  bench_check(tn_session_options_parse(options, "session_inter_op_pools", sorts[i].pools, &err), &err, "pools");
  bench_check(tn_session_options_set_bool(options, "use_per_session_threads", sorts[i].own, &err), &err, "own pool");
  bench_check(tn_session_create(options, &session, &err), &err, "session");
  bench_check(tn_session_set_graph(session, graph, &err), &err, "graph");
  tn_session_options_destroy(options);
  return session;
}

static void run_idle(tn_session *session)
{
  const int64_t dims[] = { 1 << 20 };
  const char *feed = "x", *fetch = "y";
  tn_tensor *x, *y = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_tensor_create(TN_FLOAT, dims, 1, &x, &err), &err, "tensor");
  memset(tn_tensor_data(x), 0, sizeof(float) << 20);
  for (int i = 0; i < 20; i++) {
    bench_check(tn_session_run(session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &err), &err, "run");
    tn_tensor_unref(y);
  }
  tn_tensor_unref(x);
}

static double cpu_seconds(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void idle(bench *b)
{
  tn_session *sessions[N_IDLE];
  if (!bench_wants("idle_cpu_10s")) return;
  tn_graph *graph = exp_graph();
  for (size_t i = 0; i < N_IDLE; i++) sessions[i] = open_idle(i, graph);
  for (size_t i = 0; i < N_IDLE; i++) run_idle(sessions[i]);
  sleep_for(0.01);
  double before = cpu_seconds();
  sleep_for(IDLE_SECONDS);
  bench_report(b, "idle_cpu_10s", (cpu_seconds() - before) * 1e3, -1, "ms", "0 % of 10 s");
  for (size_t i = 0; i < N_IDLE; i++) tn_session_destroy(sessions[i]);
  tn_graph_unref(graph);
}

void bench_sessions(bench *b)
{
  static const char *const names[][SORTS] = {
    { "callable_1_direct", "callable_2_direct", "callable_2_own_direct", "callable_4_direct" },
    { "callable_1_threaded", "callable_2_threaded", "callable_2_own_threaded", "callable_4_threaded" },
  };
  for (int i = 0; i < 2; i++) side_by_side(b, runtimes[i], names[i]);
  idle(b);
}
