/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks. A benchmark is a function that takes a `bench`, measures, and reports rows. It is in the
 * file of its subject in bench/cases/ and has one line in main.c's table. */
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

/* Reports one figure. p99 is negative if it does not apply. */
void bench_report(bench *b, const char *name, double median, double p99, const char *unit, const char *limit);

/* Whether a figure of this name is wanted; otherwise skip expensive preparations. */
bool bench_wants(const char *name);

double bench_now(void); /* seconds, monotonic */

/* Calls fn until the time is spent, `inner` calls for each sample. Returns the median and p99 of one call in
 * seconds. */
void bench_time(const bench *b, int inner, void (*fn)(void *user), void *user, double *median, double *p99);
void bench_stats(double *samples, size_t n, double *median, double *p99);

/* Ends the program with a message, since a failed benchmark has no figure. */
void bench_check(tn_status status, const tn_error *err, const char *what);
void *bench_alloc(size_t bytes);

/* Opens a session for a graph on the bench's runtime. */
tn_session *bench_session(const bench *b, tn_graph *graph, int level);
tn_tensor *bench_scalar(float value);

/* GraphDefs of float scalars, as bytes: a chain x -> Add -> Add ..., n Adds side by side into AddN. */
typedef struct bench_bytes {
  unsigned char *data;
  size_t size, room;
} bench_bytes;
void bench_graph_chain(bench_bytes *out, int n);
void bench_graph_wide(bench_bytes *out, int n);
/* A chain of n / 2 Adds, each with its own constant; the constants have `bytes` bytes in total. */
void bench_graph_weights(bench_bytes *out, int n, size_t bytes);
tn_graph *bench_import(const bench_bytes *bytes);

/* A network of float [n,32] from "x" to "y": `blocks` blocks of 33 nodes, and after each count_every-th of them (0 =
 * none) seven nodes with a shape known only during a step. */
tn_graph *bench_net(int blocks, int count_every);
tn_tensor *bench_rows(int64_t n); /* a feed for "x" */

void bench_steps(bench *b);
void bench_branches(bench *b);
void bench_elementwise(bench *b);
void bench_prepares(bench *b);
void bench_control(bench *b);
void bench_imports(bench *b);
void bench_exports(bench *b);
void bench_checkpoints(bench *b);
void bench_process(bench *b);
void bench_plugins(bench *b);
void bench_sessions(bench *b);
void bench_eager(bench *b);
void bench_gpu(bench *b);
void bench_gpu_products(bench *b);

/* Creates an empty file in the folder for temporary files. The caller frees the path and unlinks the file. */
char *bench_new_file(void);

/* Runs this program again with an option and its value; returns the time it took and its peak memory. The child returns
 * bench_child_done() from main, which reports that memory. */
int bench_child_done(void);
void bench_run_child(const bench *b, const char *option, const char *value, double *seconds, double *peak_mb);

/* Run by a child of bench_imports: imports the file. */
int bench_child_import(const char *path);

/* Run by a child of bench_process: opens the digits model and runs it once. */
int bench_child_digits(const char *models);

#endif
