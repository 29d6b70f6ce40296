/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that single ops read and write each second, compared with memcpy, for blocks from the size of the
 * first-level cache to larger than any cache. Each step overwrites the previous step's results.
 * bench/elementwise_peers.py does the same with NumPy and ONNX Runtime. */
#include <bench/bench.h>
#include <stdlib.h>
#include <string.h>

#define ROW 256

typedef enum sort { COPY, ONE, TWO, TWO_ROW, AXIS_0, AXIS_1, NORM } sort;

/* X(op, kind, name) */
#define CASES(X)                                                                                              \
  X("", COPY, "memcpy") X("AddV2", TWO, "add") X("AddV2", TWO_ROW, "add_row") X("Relu", ONE, "relu")          \
  X("Exp", ONE, "exp") X("Tanh", ONE, "tanh") X("Sigmoid", ONE, "sigmoid") X("Sum", AXIS_1, "sum_rows")       \
  X("Sum", AXIS_0, "sum_columns") X("Max", AXIS_1, "max_rows") X("ArgMax", AXIS_1, "argmax_rows")             \
  X("Softmax", ONE, "softmax") X("FusedBatchNormV3", NORM, "batch_norm")

typedef struct single {
  sort kind;
  int64_t n;
  tn_graph *graph;
  tn_session *session;
  tn_callable callable;
  const char *names[5];
  tn_tensor *feeds[5], *out;
  size_t n_feeds;
  float *from, *to; /* for COPY */
  double bytes;
} single;

static void run(void *user)
{
  single *s = user;
  tn_error err = TN_ERROR_INIT;
  if (s->kind == COPY) memcpy(s->to, s->from, (size_t)s->n * sizeof *s->to);
  else
    bench_check(tn_session_run_callable(s->session, s->callable, s->feeds, s->n_feeds, &s->out, 1, NULL, &err), &err,
                "run");
}

static tn_output input(single *s, int32_t rank, const int64_t *dims)
{
  static const char *const names[] = { "a", "b", "c", "d", "e" };
  size_t i = s->n_feeds++;
  tn_error err = TN_ERROR_INIT;
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(s->graph, "Placeholder", names[i], 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", dims, rank);
  bench_check(tn_operation_finish(b, &op, &err), &err, names[i]);
  bench_check(tn_tensor_create(TN_FLOAT, dims, rank, &s->feeds[i], &err), &err, names[i]);
  float *x = tn_tensor_data(s->feeds[i]);
  for (int64_t k = 0; k < tn_tensor_elements(s->feeds[i]); k++) x[k] = (float)(k % 2003) / 500 + 0.01f;
  s->names[i] = names[i];
  s->bytes += (double)tn_tensor_bytes(s->feeds[i]);
  return (tn_output){ op, 0 };
}

static tn_output axis(single *s, const char *op, int32_t value)
{
  const int64_t one = 1;
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  tn_tensor *t;
  bench_check(tn_tensor_from_data(TN_INT32, &one, strncmp(op, "Arg", 3) != 0, &value, sizeof value, &t, &err), &err,
              "axis");
  tn_operation_builder *b = tn_operation_begin(s->graph, "Const", "axis", 0);
  tn_operation_set_type(b, "dtype", TN_INT32);
  tn_operation_set_tensor(b, "value", t);
  bench_check(tn_operation_finish(b, &made, &err), &err, "axis");
  tn_tensor_unref(t);
  return (tn_output){ made, 0 };
}

static void build(single *s, const char *op)
{
  const int64_t rows[] = { s->n / ROW, ROW }, row = ROW, image[] = { 1, s->n / 512, 8, 64 }, channels = 64;
  tn_error err = TN_ERROR_INIT;
  tn_operation *made;
  tn_output in[5];
  size_t n = 0;
  bench_check(tn_graph_create(&s->graph, &err), &err, "graph");
  in[n++] = s->kind == NORM ? input(s, 4, image) : input(s, 2, rows);
  if (s->kind == TWO) in[n++] = input(s, 2, rows);
  if (s->kind == TWO_ROW) in[n++] = input(s, 1, &row);
  if (s->kind == AXIS_0 || s->kind == AXIS_1) in[n++] = axis(s, op, s->kind == AXIS_1);
  while (s->kind == NORM && n < 5) in[n++] = input(s, 1, &channels);
  tn_operation_builder *b = tn_operation_begin(s->graph, op, "out", 0);
  for (size_t i = 0; i < n; i++) tn_operation_add_input(b, in[i]);
  if (s->kind == NORM) tn_operation_set_bool(b, "is_training", false);
  bench_check(tn_operation_finish(b, &made, &err), &err, op);
}

static void open_single(const bench *b, single *s, const char *op)
{
  const char *fetch = "out";
  tn_error err = TN_ERROR_INIT;
  build(s, op);
  s->session = bench_session(b, s->graph, 1);
  bench_check(tn_session_make_callable(s->session, NULL, s->names, s->n_feeds, &fetch, 1, NULL, 0, &s->callable, &err),
              &err, "callable");
  run(s);
  s->bytes += (double)tn_tensor_bytes(s->out);
}

static void close_single(single *s)
{
  free(s->from);
  free(s->to);
  if (s->session == NULL) return;
  tn_session_destroy(s->session);
  tn_graph_unref(s->graph);
  tn_tensor_unref(s->out);
  for (size_t i = 0; i < s->n_feeds; i++) tn_tensor_unref(s->feeds[i]);
}

static void measure(bench *b, const char *op, sort kind, const char *name, int64_t n)
{
  single s = { .kind = kind, .n = n };
  double median, p99;
  bench quick = *b; /* there are many */
  quick.seconds /= 4;
  if (!bench_wants(name)) return;
  if (kind == COPY) {
    s.from = bench_alloc((size_t)n * sizeof *s.from);
    s.to = bench_alloc((size_t)n * sizeof *s.to);
    memset(s.from, 1, (size_t)n * sizeof *s.from);
    s.bytes = 2.0 * (double)n * sizeof *s.from;
  } else {
    open_single(b, &s, op);
  }
  int calls = 1;
  if (n < 1 << 14) calls = 200;
  else if (n < 1 << 20) calls = 10;
  bench_time(&quick, calls, run, &s, &median, &p99);
  bench_report(b, name, s.bytes / median / 1e9, s.bytes / p99 / 1e9, "GB/s", "");
  close_single(&s);
}

void bench_elementwise(bench *b)
{
#define CASE_1K(op, sort, name) measure(b, op, sort, "elementwise_" name "_1k", 1 << 10);
#define CASE_64K(op, sort, name) measure(b, op, sort, "elementwise_" name "_64k", 1 << 16);
#define CASE_1M(op, sort, name) measure(b, op, sort, "elementwise_" name "_1m", 1 << 20);
#define CASE_16M(op, sort, name) measure(b, op, sort, "elementwise_" name "_16m", 1 << 24);
  CASES(CASE_1K)
  CASES(CASE_64K)
  CASES(CASE_1M)
  CASES(CASE_16M)
}
