/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks share. A benchmark is a function that is called with a `bench`, measures, and reports rows; it stands in
 * a file of its subject and has one line in main.c's table. */
#ifndef TENON_BENCH_H
#define TENON_BENCH_H

#include <bench/memory.h>
#include <stdbool.h>
#include <tenon/tenon.h>

typedef struct bench {
  const char *runtime; /* target of the sessions */
  const char *models;  /* folder of models, or NULL */
  double seconds;      /* time to spend on one figure */
  const char *self;    /* path of this program, for whole-process figures */
  struct bench_row *rows;
  size_t n_rows, room;
} bench;

/* One figure. p99 is negative where it has no meaning. */
void bench_report(bench *b, const char *name, double median, double p99, const char *unit, const char *limit);

/* Whether a figure of this name is wanted: what takes long to make need not be made. */
bool bench_wants(const char *name);

double bench_now(void); /* seconds, monotonic */

/* Calls fn until the time is spent, `inner` calls a sample; gives the median and p99 of one call in seconds. */
void bench_time(const bench *b, int inner, void (*fn)(void *user), void *user, double *median, double *p99);
void bench_stats(double *samples, size_t n, double *median, double *p99);

/* Ends the program with a message: a benchmark that fails has no figure. */
void bench_check(tn_status status, const tn_error *err, const char *what);
void *bench_alloc(size_t bytes);

/* A session with a graph on the bench's runtime. */
tn_session *bench_session(const bench *b, tn_graph *graph, int level);
tn_tensor *bench_scalar(float value);

/* GraphDefs of float scalars, as bytes: a chain x -> Add -> Add ..., n Adds side by side into AddN. */
typedef struct bench_bytes {
  unsigned char *data;
  size_t size, room;
} bench_bytes;
void bench_graph_chain(bench_bytes *out, int n);
void bench_graph_wide(bench_bytes *out, int n);
/* A chain of n / 2 Adds, each with a constant of its own; the constants have `bytes` together. */
void bench_graph_weights(bench_bytes *out, int n, size_t bytes);
tn_graph *bench_import(const bench_bytes *bytes);

/* A network of float [n,32] from "x" to "y": `blocks` of 33 nodes, and after each count_every-th of them (0 = none) seven with
 * a shape that only a step knows. */
tn_graph *bench_net(int blocks, int count_every);
tn_tensor *bench_rows(int64_t n); /* what "x" takes */

void bench_steps(bench *b);
void bench_branches(bench *b);
void bench_elementwise(bench *b);
void bench_prepares(bench *b);
void bench_control(bench *b);
void bench_imports(bench *b);
void bench_exports(bench *b);
void bench_process(bench *b);
void bench_plugins(bench *b);
void bench_sessions(bench *b);
void bench_eager(bench *b);
void bench_gpu(bench *b);
void bench_gpu_products(bench *b);

/* A new empty file where temporary ones go; the path is to be freed, the file to be unlinked. */
char *bench_new_file(void);

/* Runs this program again with an option and its value; gives the time it took and the memory it had at most. What the child
 * returns from main is bench_child_done(), which tells that memory. */
int bench_child_done(void);
void bench_run_child(const bench *b, const char *option, const char *value, double *seconds, double *peak_mb);

/* What a child of bench_imports does: imports the file. */
int bench_child_import(const char *path);

/* What a child of bench_process does: opens the digits model, runs it once. */
int bench_child_digits(const char *models);

#endif
