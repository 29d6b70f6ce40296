/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a whole process: the time from its start to the first result of the digits model, its peak memory, and the
 * size on disk. */
#include <bench/bench.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int bench_child_digits(const char *models)
{
  char path[4096];
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  tn_tensor *images, *out = NULL;
  bench b = { .runtime = "" };
  snprintf(path, sizeof path, "%s/digits/images.npy", models);
  bench_check(tn_npy_load(path, TN_DTYPE_INVALID, &images, &err), &err, path);
  snprintf(path, sizeof path, "%s/digits/digits.pb", models);
  bench_check(tn_graph_create(&graph, &err), &err, "graph");
  bench_check(tn_graph_import_file(graph, path, NULL, &err), &err, path);
  tn_session *session = bench_session(&b, graph, 1);
  const char *feed = "image", *fetch = "probabilities";
  bench_check(tn_session_run(session, NULL, &feed, &images, 1, &fetch, &out, 1, NULL, 0, NULL, &err), &err, "run");
  tn_tensor_unref(out);
  tn_tensor_unref(images);
  tn_session_destroy(session);
  tn_graph_unref(graph);
  return bench_child_done();
}

char *bench_new_file(void)
{
  const char *folder = getenv("TMPDIR");
  size_t room = 4096;
  char *path = bench_alloc(room);
  snprintf(path, room, "%s/tenon-bench-XXXXXX", folder == NULL || *folder == 0 ? "/tmp" : folder);
  int fd = mkstemp(path);
  if (fd < 0) {
    perror(path);
    exit(1);
  }
  close(fd);
  return path;
}

static double stripped_size(const char *file)
{
  char command[8192], *out = bench_new_file();
  struct stat st;
  snprintf(command, sizeof command, "strip -o '%s' '%s'", out, file);
  bool ok = system(command) == 0 && stat(out, &st) == 0;
  unlink(out);
  free(out);
  return ok ? (double)st.st_size : -1;
}

static void library_size(bench *b)
{
  const char *build = getenv("TENON_BUILDDIR");
  char path[4096];
  if (build == NULL) return;
  snprintf(path, sizeof path, "%s/.libs/libtenon.so", build);
  double bytes = stripped_size(path);
  snprintf(path, sizeof path, "%s/plugins/.libs/direct.so", build);
  double plugin = stripped_size(path);
  if (bytes > 0 && plugin > 0) bench_report(b, "library_bytes", (bytes + plugin) / 1e6, -1, "MB", "<= 3");
}

void bench_process(bench *b)
{
  double seconds[21], peaks[21], median, p99;
  library_size(b);
  char path[4096];
  snprintf(path, sizeof path, "%s/digits/digits.pb", b->models == NULL ? "" : b->models);
  if (b->models == NULL || access(path, R_OK) != 0) {
    printf("# no models (TENON_MODELS): start_to_result_digits and peak_memory_digits are not measured\n");
    return;
  }
  for (int i = 0; i < 21; i++) bench_run_child(b, "--child", b->models, &seconds[i], &peaks[i]);
  bench_stats(seconds, 21, &median, &p99);
  bench_report(b, "start_to_result_digits", median * 1e3, p99 * 1e3, "ms", "<= 30");
  bench_stats(peaks, 21, &median, &p99);
  bench_report(b, "peak_memory_digits", median, p99, "MB", "<= 25");
}
