/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices on the runtime gpu, with its own kernels and with CLBlast, measured alternately: the basis of
 * the setting blas=auto. */
#include <bench/bench.h>

#include <stdio.h>
#include <string.h>

#define CHAIN 4 /* products in a step, one after the other */
#define MOST_ROUNDS 500

typedef struct size {
  const char *name;
  int64_t batch, m, n; /* [m][n] times [n][n] */
} size;

static const size sizes[] = {
  { "64", 1, 64, 64 },
  { "128", 1, 128, 128 },
  { "256", 1, 256, 256 },
  { "512", 1, 512, 512 },
  { "768", 1, 768, 768 },
  { "1024", 1, 1024, 1024 },
  { "1_row_1024", 1, 1, 1024 },
  { "8_rows_1024", 1, 8, 1024 },
  { "batch_64_of_64", 64, 64, 64 },
  { "batch_16_of_256", 16, 256, 256 },
};
static const char *const by[] = { "own", "clblast" };

static tn_tensor *filled(const int64_t *dims, int32_t rank, float x)
{
  tn_tensor *t;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err, "a tensor");
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = x;
  return t;
}

static tn_output node(tn_graph *graph, const char *op, const char *name, const char *type, const tn_output *inputs,
                      int n, tn_tensor *value)
{
  tn_operation *made = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  for (int i = 0; i < n; i++) tn_operation_add_input(b, inputs[i]);
  if (type != NULL) tn_operation_set_type(b, type, TN_FLOAT);
  if (value != NULL) tn_operation_set_tensor(b, "value", value);
  bench_check(tn_operation_finish(b, &made, &err), &err, name);
  return (tn_output){ made, 0 };
}

/* y = x w w ...; the values do not change. */
static tn_graph *chain(const size *s)
{
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  char name[20];
  const int64_t dims[] = { s->batch, s->n, s->n };
  bench_check(tn_graph_create(&graph, &err), &err, "a graph");
  tn_tensor *value = filled(s->batch > 1 ? dims : dims + 1, s->batch > 1 ? 3 : 2, 1.0f / (float)s->n);
  tn_output w = node(graph, "Const", "w", "dtype", NULL, 0, value),
            y = node(graph, "Placeholder", "x", "dtype", NULL, 0, NULL);
  for (int i = 0; i < CHAIN; i++) {
    snprintf(name, sizeof name, i + 1 == CHAIN ? "y" : "y%d", i);
    y = node(graph, s->batch > 1 ? "BatchMatMulV2" : "MatMul", name, NULL, (tn_output[]){ y, w }, 2, NULL);
  }
  tn_tensor_unref(value);
  return graph;
}

static void hear(void *user, int32_t level, const char *line)
{
  (void)level;
  if (strstr(line, " are computed by libclblast") != NULL) *(bool *)user = true;
}

static bool has_clblast; /* otherwise both would use the runtime's own kernels */

static tn_status open_session(tn_graph *graph, const char *blas, tn_session **out, tn_error *err)
{
  tn_session_options *options;
  char target[60];
  snprintf(target, sizeof target, "gpu:placement=device,blas=%s", blas);
  bench_check(tn_session_options_create(&options, err), err, "options");
  bench_check(tn_session_options_set_target(options, target, err), err, target);
  bench_check(tn_session_options_set_int(options, "level", 0, err), err, "level");
  tn_set_log_sink(hear, &has_clblast);
  tn_set_log_level(TN_LOG_INFO);
  tn_status st = tn_session_create(options, out, err);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  if (st == TN_OK) st = tn_session_set_graph(*out, graph, err);
  tn_session_options_destroy(options);
  return st;
}

static double step(tn_session *session, tn_tensor *x)
{
  const char *const feed = "x", *const fetch = "y";
  tn_error err = TN_ERROR_INIT;
  tn_tensor *out;
  double begin = bench_now();
  bench_check(tn_session_run(session, NULL, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &err), &err,
              "a step of products");
  begin = bench_now() - begin;
  tn_tensor_unref(out);
  return begin;
}

static void measure(bench *b, const size *s, tn_session **sessions, int n)
{
  static double times[2][MOST_ROUNDS];
  const int64_t dims[] = { s->batch, s->m, s->n };
  tn_tensor *x = filled(s->batch > 1 ? dims : dims + 1, s->batch > 1 ? 3 : 2, 1);
  double median, p99;
  size_t rounds = 0;
  char name[60];
  for (int i = 0; i < n; i++) step(sessions[i], x), step(sessions[i], x);
  for (double end = bench_now() + b->seconds; rounds < MOST_ROUNDS && (rounds < 3 || bench_now() < end); rounds++)
    for (int i = 0; i < n; i++) times[i][rounds] = step(sessions[i], x) / CHAIN;
  for (int i = 0; i < n; i++) {
    bench_stats(times[i], rounds, &median, &p99);
    snprintf(name, sizeof name, "gpu_product_%s_%s", s->name, by[i]);
    bench_report(b, name, median * 1e6, p99 * 1e6, "us", "");
  }
  tn_tensor_unref(x);
}

static void one_size(bench *b, const size *s)
{
  tn_session *sessions[2] = { NULL };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = chain(s);
  int n = 0;
  while (n < 2 && open_session(graph, by[n], &sessions[n], &err) == TN_OK) n++;
  if (n == 2 && !has_clblast) n = 1;
  if (n == 0) printf("# no figures of products on gpu: %s\n", tn_error_message(&err));
  else measure(b, s, sessions, n);
  for (int i = 0; i < 2; i++) tn_session_destroy(sessions[i]);
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

void bench_gpu_products(bench *b)
{
  char name[60];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t k = 0; k < 2; k++) {
      snprintf(name, sizeof name, "gpu_product_%s_%s", sizes[i].name, by[k]);
      if (!bench_wants(name)) continue;
      one_size(b, &sizes[i]);
      break;
    }
}
