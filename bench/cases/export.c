/* SPDX-License-Identifier: Apache-2.0 */
/* Writing graphs: bytes of constants each second, for a graph made by the builder, so that every node is encoded. */
#include <bench/bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONSTANTS 4000
#define EACH 3277 /* floats; 50 MiB in total */

typedef struct job {
  tn_graph *graph;
  const char *path;
} job;

static void export_memory(void *user)
{
  job *j = user;
  tn_error err = TN_ERROR_INIT;
  void *bytes;
  size_t size;
  bench_check(tn_graph_export(j->graph, 0, &bytes, &size, &err), &err, "export");
  tn_free(bytes);
}

static void export_file(void *user)
{
  job *j = user;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_graph_export_file(j->graph, j->path, 0, &err), &err, j->path);
}

static void add_constant(tn_graph *graph, int number)
{
  const int64_t n = EACH;
  char name[32];
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_create(TN_FLOAT, &n, 1, &t, &err), &err, "tensor");
  for (int i = 0; i < EACH; i++) ((float *)tn_tensor_data(t))[i] = (float)(number + i);
  snprintf(name, sizeof name, "weight_%d", number);
  tn_operation_builder *op = tn_operation_begin(graph, "Const", name, 0);
  if (op == NULL) exit(1);
  tn_operation_set_type(op, "dtype", TN_FLOAT);
  tn_operation_set_tensor(op, "value", t);
  tn_tensor_unref(t);
  bench_check(tn_operation_finish(op, NULL, &err), &err, name);
}

static void report(bench *b, const char *name, void (*export)(void *user), job *j)
{
  double median, p99, megabytes = CONSTANTS * (double)EACH * sizeof(float) / 1e6;
  bench_time(b, 1, export, j, &median, &p99);
  bench_report(b, name, megabytes / median, megabytes / p99, "MB/s", ">= 500");
}

void bench_exports(bench *b)
{
  tn_error err = TN_ERROR_INIT;
  char *path = bench_new_file();
  job j = { .path = path };
  bench_check(tn_graph_create(&j.graph, &err), &err, "graph");
  for (int i = 0; i < CONSTANTS; i++) add_constant(j.graph, i);
  report(b, "export_file", export_file, &j);
  report(b, "export_memory", export_memory, &j);
  tn_graph_unref(j.graph);
  unlink(path);
  free(path);
}
