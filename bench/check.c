/* SPDX-License-Identifier: Apache-2.0 */
/* bench/check NAME: runs one fixed step, for bench/check.sh to count its instructions; without NAME lists the steps.
 *
 * Nothing here depends on the time, on addresses or on the processor beyond its vector width: graphs and values are
 * fixed, the step runs on the calling thread with the library's own kernels, and twice before it is counted. */
#include <bench/bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixed {
  tn_session *session;
  tn_callable callable;
  tn_tensor *feeds[2];
  size_t n_feeds;
  const char *feed_names[2], *fetch;
  bench_bytes bytes;
  char *path;
} fixed;

/* bench/check.sh counts the instructions between entering and leaving this function. */
void bench_counted(void (*fn)(fixed *), fixed *f);
__attribute__((noinline, noclone)) void bench_counted(void (*fn)(fixed *), fixed *f)
{
  fn(f);
  __asm__ volatile("" ::: "memory"); /* keeps the call from becoming a tail call */
}

static void open_session(fixed *f, tn_graph *graph, int level)
{
  tn_error err = TN_ERROR_INIT;
  tn_session_options *options;
  bench_check(tn_session_options_create(&options, &err), &err, "options");
  bench_check(tn_session_options_set_target(options, "direct", &err), &err, "target");
  bench_check(tn_session_options_set_int(options, "level", level, &err), &err, "level");
  bench_check(tn_session_options_set_string(options, "kernel_plugins", "never", &err), &err, "kernel_plugins");
  bench_check(tn_session_create(options, &f->session, &err), &err, "session");
  bench_check(tn_session_set_graph(f->session, graph, &err), &err, "set_graph");
  bench_check(
      tn_session_make_callable(f->session, NULL, f->feed_names, f->n_feeds, &f->fetch, 1, NULL, 0, &f->callable, &err),
      &err, "callable");
  tn_session_options_destroy(options);
}

static void run_callable(fixed *f)
{
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(tn_session_run_callable(f->session, f->callable, f->feeds, f->n_feeds, &out, 1, NULL, &err), &err, "run");
  tn_tensor_unref(out);
}

static void run_names(fixed *f)
{
  tn_tensor *out = NULL;
  tn_error err = TN_ERROR_INIT;
  bench_check(
      tn_session_run(f->session, NULL, f->feed_names, f->feeds, f->n_feeds, &f->fetch, &out, 1, NULL, 0, NULL, &err),
      &err, "run");
  tn_tensor_unref(out);
}

static void import(fixed *f) { tn_graph_unref(bench_import(&f->bytes)); }

/* From the file to the first result, including freeing everything. */
static void load(fixed *f)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  bench_check(tn_graph_import_file(graph, f->path, NULL, &err), &err, f->path);
  open_session(f, graph, 1);
  run_callable(f);
  tn_session_destroy(f->session);
  tn_graph_unref(graph);
  f->session = NULL;
}

static void scalars(fixed *f)
{
  f->n_feeds = 2;
  f->feed_names[0] = "x";
  f->feed_names[1] = "y";
  f->feeds[0] = bench_scalar(1);
  f->feeds[1] = bench_scalar(0.5f);
}

static void open_bytes(fixed *f, int level)
{
  tn_graph *graph = bench_import(&f->bytes);
  open_session(f, graph, level);
  tn_graph_unref(graph);
}

static void make_tiny(fixed *f)
{
  scalars(f);
  f->fetch = "add_0";
  bench_graph_chain(&f->bytes, 1);
  open_bytes(f, 0);
}

static void make_chain(fixed *f)
{
  scalars(f);
  f->fetch = "add_999";
  bench_graph_chain(&f->bytes, 1000);
  open_bytes(f, 0);
}

static void make_wide(fixed *f)
{
  scalars(f);
  f->fetch = "sum";
  bench_graph_wide(&f->bytes, 1000);
  open_bytes(f, 0);
}

/* A tensor of small numbers. */
static tn_tensor *ramp(const int64_t *dims, int32_t rank)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  bench_check(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err, "tensor");
  float *values = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) values[i] = (float)(i % 17) / 17;
  return t;
}

/* Twenty additions of vectors, which the planner may fuse. */
static void make_vectors(fixed *f)
{
  int64_t n = 4096;
  f->n_feeds = 1;
  f->feed_names[0] = "x";
  f->fetch = "add_19";
  f->feeds[0] = ramp(&n, 1);
  bench_graph_weights(&f->bytes, 40, 20 * 4096 * sizeof(float));
  open_bytes(f, 1);
}

static void digits_input(fixed *f)
{
  const char *source = getenv("TENON_SRCDIR");
  int64_t dims[4] = { 10, 8, 8, 1 };
  size_t size = strlen(source == NULL ? "." : source) + 64;
  f->path = bench_alloc(size);
  snprintf(f->path, size, "%s/examples/digits/digits.pb", source == NULL ? "." : source);
  f->n_feeds = 1;
  f->feed_names[0] = "image";
  f->fetch = "probabilities";
  f->feeds[0] = ramp(dims, 4);
}

static void make_digits(fixed *f)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  digits_input(f);
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  bench_check(tn_graph_import_file(graph, f->path, NULL, &err), &err, f->path);
  open_session(f, graph, 1);
  tn_graph_unref(graph);
}

static void make_import(fixed *f) { bench_graph_chain(&f->bytes, 1000); }

static const struct {
  const char *name;
  void (*make)(fixed *);
  void (*run)(fixed *);
} all[] = {
  { "tiny_callable", make_tiny, run_callable }, { "tiny_names", make_tiny, run_names },
  { "chain_1000", make_chain, run_callable },   { "wide_1000", make_wide, run_callable },
  { "vectors_20", make_vectors, run_callable }, { "digits_10", make_digits, run_callable },
  { "import_1000", make_import, import },       { "load_digits", digits_input, load },
};

int main(int argc, char **argv)
{
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (argc < 2) puts(all[i].name);
    if (argc < 2 || strcmp(argv[1], all[i].name) != 0) continue;
    fixed f = { .session = NULL };
    all[i].make(&f);
    for (int k = 0; k < 2; k++) all[i].run(&f);
    bench_counted(all[i].run, &f);
    tn_session_destroy(f.session);
    for (size_t k = 0; k < f.n_feeds; k++) tn_tensor_unref(f.feeds[k]);
    free(f.bytes.data);
    free(f.path);
    return 0;
  }
  if (argc >= 2) fprintf(stderr, "check: no step '%s'\n", argv[1]);
  return argc < 2 ? 0 : 2;
}
