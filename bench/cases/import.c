/* SPDX-License-Identifier: Apache-2.0 */
/* Reading graphs. A large file is compared with a plain read of it into fresh memory, measured alternately. */
#include <bench/bench.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NODES 8000
#define WEIGHTS ((size_t)50 << 20)
#define ROUNDS 41

static void import_once(void *user) { tn_graph_unref(bench_import(user)); }

static tn_graph *import_file(const char *path)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  bench_check(tn_graph_import_file(graph, path, NULL, &err), &err, path);
  return graph;
}

int bench_child_import(const char *path)
{
  tn_graph_unref(import_file(path));
  return bench_child_done();
}

static double read_once(const char *path, size_t size)
{
  double t = bench_now();
  int fd = open(path, O_RDONLY);
  char *memory = bench_alloc(size);
  bool ok = fd >= 0 && read(fd, memory, size) == (ssize_t)size;
  close(fd);
  t = bench_now() - t;
  free(memory);
  if (ok) return t;
  perror(path);
  exit(1);
}

static void import_times(bench *b, const char *path, size_t size)
{
  static char limit[64];
  double plain[ROUNDS], import[ROUNDS], read, read_p99, median, p99;
  for (int i = 0; i < ROUNDS; i++) {
    plain[i] = read_once(path, size);
    double t = bench_now();
    tn_graph *graph = import_file(path);
    import[i] = bench_now() - t;
    tn_graph_unref(graph);
  }
  bench_stats(plain, ROUNDS, &read, &read_p99);
  bench_stats(import, ROUNDS, &median, &p99);
  snprintf(limit, sizeof limit, "<= %.1f: 1.2 x read_50mb + 2", 1.2 * read * 1e3 + 2);
  bench_report(b, "read_50mb", read * 1e3, read_p99 * 1e3, "ms", "");
  bench_report(b, "import_50mb", median * 1e3, p99 * 1e3, "ms", limit);
}

/* The peak memory of an importing process beyond one that imports nothing, as a fraction of the file's size. */
static void import_memory(bench *b, const char *path, size_t size)
{
  double parts[5], peak, none, seconds, median, p99;
  char *nothing = bench_new_file();
  for (int i = 0; i < 5; i++) {
    bench_run_child(b, "--import", nothing, &seconds, &none);
    bench_run_child(b, "--import", path, &seconds, &peak);
    parts[i] = (peak - none) * (1 << 20) / (double)size;
  }
  unlink(nothing);
  free(nothing);
  bench_stats(parts, 5, &median, &p99);
  bench_report(b, "import_50mb_memory", median, p99, "x file", "<= 1.1");
}

static void import_large(bench *b)
{
  bench_bytes bytes = { 0 };
  bench_graph_weights(&bytes, NODES, WEIGHTS);
  char *path = bench_new_file();
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
  free(bytes.data);
  import_times(b, path, bytes.size);
  import_memory(b, path, bytes.size);
  unlink(path);
  free(path);
}

void bench_imports(bench *b)
{
  bench_bytes bytes = { 0 };
  double median, p99;
  bench_graph_chain(&bytes, 10000);
  bench_time(b, 1, import_once, &bytes, &median, &p99);
  bench_report(b, "import_10000", median * 1e3, p99 * 1e3, "ms", "<= 6");
  free(bytes.data);
  import_large(b);
}
