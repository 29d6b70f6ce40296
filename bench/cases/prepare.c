/* SPDX-License-Identifier: Apache-2.0 */
/* Work before a step: compiling a signature of a large network, and laying it out for its first and further shapes. */
#include <bench/bench.h>
#include <stdlib.h>

typedef struct open_net {
  tn_session *session;
  tn_callable callable;
  tn_tensor *rows[3];
  int turn;
} open_net;

static void make_callable(open_net *n)
{
  static const char *const feed = "x", *const fetch = "y";
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_make_callable(n->session, NULL, &feed, 1, &fetch, 1, NULL, 0, &n->callable, &err), &err,
              "callable");
}

static void run_rows(open_net *n, tn_tensor *rows)
{
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run_callable(n->session, n->callable, &rows, 1, &out, 1, NULL, &err), &err, "run");
  tn_tensor_unref(out);
}

typedef struct prepare_times {
  double prepare, first, later; /* session and callable; the first step; a later one */
} prepare_times;

#define MOST_ROUNDS 15

/* Medians: times on a shared machine vary in both directions. */
static prepare_times measure(const bench *b, tn_graph *graph, int rounds)
{
  double prepared[MOST_ROUNDS], first[MOST_ROUNDS], later[MOST_ROUNDS], unused;
  prepare_times t;
  tn_tensor *rows = bench_rows(2);
  for (int i = 0; i < rounds; i++) {
    open_net n;
    double t0 = bench_now();
    n.session = bench_session(b, graph, 1);
    make_callable(&n);
    double t1 = bench_now();
    run_rows(&n, rows);
    double t2 = bench_now();
    run_rows(&n, rows); /* may search for faster kernels */
    double t3 = bench_now();
    run_rows(&n, rows);
    later[i] = bench_now() - t3;
    prepared[i] = t1 - t0;
    first[i] = t2 - t1;
    tn_session_destroy(n.session);
  }
  tn_tensor_unref(rows);
  bench_stats(prepared, (size_t)rounds, &t.prepare, &unused);
  bench_stats(first, (size_t)rounds, &t.first, &unused);
  bench_stats(later, (size_t)rounds, &t.later, &unused);
  return t;
}

static void prepare(bench *b, const char *name, const char *first, int blocks, int count_every, const char *limit)
{
  if (!bench_wants(name) && !bench_wants(first)) return;
  tn_graph *graph = bench_net(blocks, count_every);
  prepare_times t = measure(b, graph, blocks >= 1000 ? 3 : MOST_ROUNDS);
  tn_graph_unref(graph);
  bench_report(b, name, t.prepare * 1e3, -1, "ms", limit);
  bench_report(b, first, (t.first - t.later) * 1e3, -1, "ms", "");
}

/* ---- batch sizes ---- */

static void run_in_turn(void *user)
{
  open_net *n = user;
  run_rows(n, n->rows[n->turn ^= 1]);
}
static void run_same(void *user)
{
  open_net *n = user;
  run_rows(n, n->rows[0]);
}

/* A step with another batch size than the previous step, both seen before, minus a step with the same size; and the
 * first step with a new size. */
static void new_batch(bench *b)
{
  if (!bench_wants("new_batch") && !bench_wants("new_batch_first")) return;
  double same, turns, p99, first[101], later;
  tn_graph *graph = bench_net(1, 0);
  open_net n = { .session = bench_session(b, graph, 1), .rows = { bench_rows(3), bench_rows(3), bench_rows(4) } };
  make_callable(&n);
  bench_time(b, 100, run_same, &n, &same, &p99);
  tn_tensor_unref(n.rows[1]);
  n.rows[1] = bench_rows(4);
  bench_time(b, 100, run_in_turn, &n, &turns, &p99);
  bench_report(b, "new_batch", (turns - same) * 1e6, -1, "us", "<= 5");
  for (int i = 0; i < 101; i++) {
    tn_tensor *rows = bench_rows(5 + i % 60);
    double t0 = bench_now();
    run_rows(&n, rows);
    double t1 = bench_now();
    run_rows(&n, rows);
    later = bench_now() - t1;
    first[i] = t1 - t0 - later;
    tn_tensor_unref(rows);
  }
  bench_stats(first, 101, &turns, &p99);
  bench_report(b, "new_batch_first", turns * 1e6, p99 * 1e6, "us", "");
  for (int i = 0; i < 3; i++) tn_tensor_unref(n.rows[i]);
  tn_session_destroy(n.session);
  tn_graph_unref(graph);
}

void bench_prepares(bench *b)
{
  prepare(b, "prepare_4000", "prepare_4000_first", 120, 16, "<= 40");
  prepare(b, "prepare_40000", "prepare_40000_first", 1200, 160, "");
  prepare(b, "prepare_segments", "prepare_segments_first", 100, 1, "");
  prepare(b, "prepare_segments_10", "prepare_segments_10_first", 1000, 1, "");
  new_batch(b);
}
