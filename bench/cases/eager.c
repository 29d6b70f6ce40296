/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: one scalar addition and its release, from one thread and from several, and the cost of deleting. */
#include <bench/bench.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct eager {
  tn_eager_session *session;
  tn_eager_op *op;
  tn_eager_handle x, y;
  tn_error err;
} eager;

static tn_eager_session *open_session(const bench *b, int32_t strategy)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_options options;
  tn_session_options *session_options;
  tn_eager_session *session;
  bench_check(tn_session_options_create(&session_options, &err), &err, "options");
  bench_check(tn_session_options_set_target(session_options, b->runtime, &err), &err, "target");
  tn_eager_options_init(&options);
  options.strategy = strategy;
  options.session = session_options;
  bench_check(tn_eager_session_create(&options, &session, &err), &err, "eager session");
  tn_session_options_destroy(session_options);
  return session;
}

static tn_eager_handle scalar(tn_eager_session *session, float value)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_handle h;
  bench_check(tn_eager_from_data(session, TN_FLOAT, NULL, 0, &value, sizeof value, &h, &err), &err, "scalar");
  return h;
}

static void open_eager(const bench *b, int32_t strategy, eager *e)
{
  *e = (eager){ .session = open_session(b, strategy), .err = TN_ERROR_INIT };
  bench_check(tn_eager_op_create(e->session, "AddV2", NULL, NULL, 0, &e->op, &e->err), &e->err, "AddV2");
  e->x = scalar(e->session, 1);
  e->y = scalar(e->session, 2);
}

static void close_eager(eager *e)
{
  tn_eager_op_destroy(e->op);
  tn_eager_session_destroy(e->session);
}

/* ---- one addition ---- */

static void add_prepared(void *user)
{
  eager *e = user;
  const tn_eager_handle inputs[] = { e->x, e->y };
  tn_eager_handle out;
  size_t n;
  bench_check(tn_eager_op_call(e->op, inputs, 2, &out, 1, &n, &e->err), &e->err, "AddV2");
  tn_eager_release(e->session, out, &e->err);
}

static void add_by_name(void *user)
{
  eager *e = user;
  tn_eager_handle out;
  bench_check(tn_eager_add(e->session, e->x, e->y, &out, &e->err), &e->err, "AddV2");
  tn_eager_release(e->session, out, &e->err);
}

static void additions(bench *b)
{
  static const struct {
    const char *name;
    int32_t strategy;
    void (*fn)(void *user);
    const char *limit;
  } rows[] = {
    { "eager_add_prepared", TN_EAGER_IN_BACKGROUND, add_prepared, "<= 150 ns" },
    { "eager_add_by_name", TN_EAGER_IN_BACKGROUND, add_by_name, "<= 500 ns" },
    { "eager_add_safe_points", TN_EAGER_ON_SAFE_POINTS, add_prepared, "" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    eager e;
    double median, p99;
    if (!bench_wants(rows[i].name)) continue;
    open_eager(b, rows[i].strategy, &e);
    bench_time(b, 1000, rows[i].fn, &e, &median, &p99);
    bench_report(b, rows[i].name, median * 1e9, p99 * 1e9, "ns", rows[i].limit);
    close_eager(&e);
  }
}

/* ---- several threads in one session ---- */

enum { MOST = 4, ROUNDS = 8 };

typedef struct adder {
  pthread_t thread;
  eager own;
  const atomic_bool *stop;
  double rate;
} adder;

static void *add_on(void *arg)
{
  adder *a = arg;
  uint64_t n = 0;
  a->own.x = scalar(a->own.session, 1);
  a->own.y = scalar(a->own.session, 2);
  double begin = bench_now();
  for (; !atomic_load_explicit(a->stop, memory_order_relaxed); n++) add_prepared(&a->own);
  a->rate = (double)n / (bench_now() - begin);
  tn_eager_release(a->own.session, a->own.x, NULL);
  tn_eager_release(a->own.session, a->own.y, NULL);
  return NULL;
}

/* shared: the session of all threads; NULL: each has its own, which shows the machine's limit. */
static double rate_of(const bench *b, const eager *shared, int n, double seconds)
{
  adder adders[MOST];
  atomic_bool stop = false;
  double rate = 0;
  const struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  for (int i = 0; i < n; i++) {
    adders[i] = (adder){ .stop = &stop };
    if (shared != NULL) adders[i].own = *shared;
    else open_eager(b, TN_EAGER_IN_BACKGROUND, &adders[i].own);
  }
  for (int i = 0; i < n; i++) {
    if (pthread_create(&adders[i].thread, NULL, add_on, &adders[i]) != 0) exit(1);
  }
  nanosleep(&pause, NULL);
  atomic_store(&stop, true);
  for (int i = 0; i < n; i++) {
    pthread_join(adders[i].thread, NULL);
    rate += adders[i].rate;
    if (shared == NULL) close_eager(&adders[i].own);
  }
  return rate;
}

static void side_by_side(bench *b)
{
  static const char *const names[] = { "eager_add_1_thread", "eager_add_2_threads", "eager_add_4_threads",
                                       "eager_add_2_sessions" };
  static const int counts[] = { 1, 2, 4, 2 };
  static const char *const limits[] = { "", "2 x 1 thread, or 2 sessions", ">= 2 threads", "" };
  double best[4] = { 0 };
  eager e;
  bool wanted = false;
  for (int k = 0; k < 4; k++) wanted = wanted || bench_wants(names[k]);
  if (!wanted) return;
  open_eager(b, TN_EAGER_IN_BACKGROUND, &e);
  for (int r = 0; r < ROUNDS; r++)
    for (int k = 0; k < 4; k++) {
      double rate = rate_of(b, k < 3 ? &e : NULL, counts[k], b->seconds / ROUNDS);
      if (rate > best[k]) best[k] = rate;
    }
  for (int k = 0; k < 4; k++) bench_report(b, names[k], best[k] * 1e-6, -1, "M/s", limits[k]);
  close_eager(&e);
}

/* ---- releasing and deleting ----
 *
 * Tensors of 64 bytes, as a program creates them; for comparison the same sizes with the allocator alone. */

enum { MANY = 100000 };

typedef struct deletion {
  double release, sweep, plain;
} deletion;

static tn_tensor *small_tensor(void)
{
  static const int64_t dims[] = { 16 };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_create(TN_FLOAT, dims, 1, &t, &err), &err, "tensor");
  return t;
}

static void delete_many(const bench *b, int32_t strategy, deletion *d)
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s = open_session(b, strategy);
  tn_eager_handle *handles = bench_alloc(MANY * sizeof *handles);
  void **plain = bench_alloc(MANY * sizeof *plain);
  for (int i = 0; i < MANY; i++) plain[i] = small_tensor();
  double begin = bench_now();
  for (int i = 0; i < MANY; i++) tn_tensor_unref(plain[i]);
  d->plain = bench_now() - begin;
  for (int i = 0; i < MANY; i++) {
    tn_tensor *t = small_tensor();
    bench_check(tn_eager_from_tensor(s, t, &handles[i], &err), &err, "handle");
    tn_tensor_unref(t);
  }
  begin = bench_now();
  for (int i = 0; i < MANY; i++) tn_eager_release(s, handles[i], &err);
  d->release = bench_now() - begin;
  begin = bench_now();
  tn_eager_safe_point(s, &err);
  d->sweep = bench_now() - begin;
  tn_eager_session_destroy(s);
  free(handles);
  free(plain);
}

static void deletions(bench *b)
{
  deletion best = { 1, 1, 1 }, d;
  double background = 1;
  if (!bench_wants("eager_release") && !bench_wants("eager_delete_64B") && !bench_wants("eager_delete_ratio")) return;
  for (double end = bench_now() + b->seconds; bench_now() < end;) {
    delete_many(b, TN_EAGER_ON_SAFE_POINTS, &d);
    if (d.sweep < best.sweep) best.sweep = d.sweep;
    if (d.plain < best.plain) best.plain = d.plain;
    delete_many(b, TN_EAGER_IN_BACKGROUND, &d);
    if (d.release < background) background = d.release;
  }
  bench_report(b, "eager_release", background / MANY * 1e9, -1, "ns", "<= 30 ns");
  bench_report(b, "eager_delete_64B", MANY / best.sweep * 1e-6, -1, "M/s", ">= 15 M/s");
  bench_report(b, "eager_delete_ratio", best.sweep / best.plain, -1, "x", "<= 1.1");
}

/* ---- n operations in m iterations ----
 *
 * Additions of 4 KiB, each iteration's results released at its end: the peak number of bytes, in iterations. */

enum { LOOP_OPS = 1000, LOOP_ITERATIONS = 1000, LOOP_ITERATIONS_HELD = 50, LOOP_ELEMENTS = 1024 };

static void loop(bench *b, int32_t strategy, const char *peak_name, const char *time_name, const char *limit)
{
  static const int64_t dims[] = { LOOP_ELEMENTS };
  const int iterations = strategy == TN_EAGER_ON_SESSION_CLOSE ? LOOP_ITERATIONS_HELD : LOOP_ITERATIONS;
  tn_tensor *filled;
  tn_eager_handle x, *made = bench_alloc(LOOP_OPS * sizeof *made);
  eager e;
  if (!bench_wants(peak_name) && !bench_wants(time_name)) return;
  open_eager(b, strategy, &e);
  bench_check(tn_tensor_create(TN_FLOAT, dims, 1, &filled, &e.err), &e.err, "tensor");
  for (int i = 0; i < LOOP_ELEMENTS; i++) ((float *)tn_tensor_data(filled))[i] = 1;
  bench_check(tn_eager_from_tensor(e.session, filled, &x, &e.err), &e.err, "handle");
  tn_tensor_unref(filled);
  double begin = bench_now();
  for (int m = 0; m < iterations; m++) {
    for (int n = 0; n < LOOP_OPS; n++) {
      const tn_eager_handle inputs[] = { n == 0 ? x : made[n - 1], x };
      bench_check(tn_eager_op_call(e.op, inputs, 2, &made[n], 1, NULL, &e.err), &e.err, "AddV2");
    }
    for (int n = 0; n < LOOP_OPS; n++) tn_eager_release(e.session, made[n], &e.err);
  }
  double seconds = bench_now() - begin;
  tn_eager_counters c = { .struct_size = TN_EAGER_COUNTERS_SIZE };
  tn_eager_get_counters(e.session, &c, NULL);
  bench_report(b, peak_name, (double)c.peak_bytes / (LOOP_OPS * LOOP_ELEMENTS * sizeof(float)), -1, "iter.", limit);
  bench_report(b, time_name, seconds / iterations / LOOP_OPS * 1e9, -1, "ns/op", "");
  close_eager(&e);
  free(made);
}

static void loops(bench *b)
{
  loop(b, TN_EAGER_IN_BACKGROUND, "eager_loop_background", "eager_loop_background_ns", "<= 3");
  loop(b, TN_EAGER_ON_SAFE_POINTS, "eager_loop_safe_points", "eager_loop_safe_points_ns", "<= 3");
  loop(b, TN_EAGER_ON_SESSION_CLOSE, "eager_loop_on_close", "eager_loop_on_close_ns", "= 50, all");
}

void bench_eager(bench *b)
{
  additions(b);
  side_by_side(b);
  deletions(b);
  loops(b);
}
