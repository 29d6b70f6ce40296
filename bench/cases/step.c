/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a step beyond its kernels: tiny, long and wide graphs of scalar additions, at level 0. */
#include <bench/bench.h>
#include <stdlib.h>

typedef struct prepared {
  tn_session *session;
  tn_callable callable;
  tn_tensor *feeds[2];
  const char *fetch;
} prepared;

static const char *const feed_names[] = { "x", "y" };

static void run_callable(void *user)
{
  prepared *p = user;
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run_callable(p->session, p->callable, p->feeds, 2, &out, 1, NULL, &err), &err, "run");
  tn_tensor_unref(out);
}

static void run_names(void *user)
{
  prepared *p = user;
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run(p->session, NULL, feed_names, p->feeds, 2, &p->fetch, &out, 1, NULL, 0, NULL, &err), &err,
              "run");
  tn_tensor_unref(out);
}

static void open_graph(const bench *b, const bench_bytes *bytes, const char *fetch, prepared *p)
{
  tn_graph *graph = bench_import(bytes);
  p->session = bench_session(b, graph, 0);
  tn_graph_unref(graph);
  p->feeds[0] = bench_scalar(1);
  p->feeds[1] = bench_scalar(0.5f);
  p->fetch = fetch;
}

static void make_callable(prepared *p)
{
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_make_callable(p->session, NULL, feed_names, 2, &p->fetch, 1, NULL, 0, &p->callable, &err),
              &err, "callable");
}

static void close_graph(prepared *p)
{
  tn_session_destroy(p->session);
  tn_tensor_unref(p->feeds[0]);
  tn_tensor_unref(p->feeds[1]);
}

static void tiny(bench *b)
{
  bench_bytes bytes = { 0 };
  prepared p;
  double median, p99;
  bench_graph_chain(&bytes, 1);
  open_graph(b, &bytes, "add_0", &p);
  make_callable(&p);
  bench_time(b, 1000, run_callable, &p, &median, &p99);
  bench_report(b, "run_tiny_callable", median * 1e6, p99 * 1e6, "us", "<= 0.4");
  bench_time(b, 1000, run_names, &p, &median, &p99);
  bench_report(b, "run_tiny_names", median * 1e6, p99 * 1e6, "us", "<= 1.5");
  close_graph(&p);
  free(bytes.data);
}

static void chain(bench *b)
{
  bench_bytes bytes = { 0 };
  prepared p;
  double first[9], median, p99;
  bench_graph_chain(&bytes, 10000);
  for (int i = 0; i < 9; i++) {
    open_graph(b, &bytes, "add_9999", &p);
    double t = bench_now();
    run_names(&p);
    first[i] = bench_now() - t;
    if (i < 8) close_graph(&p);
  }
  bench_stats(first, 9, &median, &p99);
  bench_report(b, "chain_10000_first", median * 1e3, p99 * 1e3, "ms", "<= 30");
  make_callable(&p);
  bench_time(b, 1, run_callable, &p, &median, &p99);
  bench_report(b, "chain_10000", median * 1e3, p99 * 1e3, "ms", "<= 0.4");
  close_graph(&p);
  free(bytes.data);
}

static void wide(bench *b)
{
  bench_bytes bytes = { 0 };
  prepared p;
  double median, p99;
  bench_graph_wide(&bytes, 10000);
  open_graph(b, &bytes, "sum", &p);
  make_callable(&p);
  bench_time(b, 1, run_callable, &p, &median, &p99);
  bench_report(b, "wide_10000", median * 1e3, p99 * 1e3, "ms", "<= 0.5");
  close_graph(&p);
  free(bytes.data);
}

void bench_steps(bench *b)
{
  tiny(b);
  chain(b);
  wide(b);
}
