/* SPDX-License-Identifier: Apache-2.0 */
/* bench/bench [--json FILE] [--only NAME] [--runtime TARGET] [--seconds S]: measures, prints a table, writes JSON. */
#include <bench/bench.h>
#include <fnmatch.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench_row {
  char *name; /* owned */
  const char *unit, *limit;
  double median, p99;
} bench_row;

static const char *only;

bool bench_wants(const char *name) { return only == NULL || fnmatch(only, name, 0) == 0; }

void bench_report(bench *b, const char *name, double median, double p99, const char *unit, const char *limit)
{
  if (!bench_wants(name)) return;
  if (b->n_rows == b->room) {
    b->room = b->room * 2 + 16;
    b->rows = realloc(b->rows, b->room * sizeof *b->rows);
    if (b->rows == NULL) exit(1);
  }
  char *copy = strdup(name);
  if (copy == NULL) exit(1);
  b->rows[b->n_rows++] = (bench_row){ copy, unit, limit, median, p99 };
  printf("%-26s %12.3f", name, median);
  if (p99 >= 0) printf(" %12.3f", p99);
  else printf(" %12s", "-");
  printf("  %-6s %s\n", unit, limit);
  fflush(stdout);
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

void bench_stats(double *samples, size_t n, double *median, double *p99)
{
  qsort(samples, n, sizeof *samples, by_value);
  *median = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  *p99 = samples[(size_t)((double)(n - 1) * 0.99)];
}

void bench_time(const bench *b, int inner, void (*fn)(void *user), void *user, double *median, double *p99)
{
  size_t room = 1 << 16, n = 0;
  double *samples = bench_alloc(room * sizeof *samples), end = bench_now() + b->seconds;
  for (int i = 0; i < inner; i++) fn(user); /* warm up */
  while (n < room && (n < 5 || bench_now() < end)) {
    double t = bench_now();
    for (int i = 0; i < inner; i++) fn(user);
    samples[n++] = (bench_now() - t) / inner;
  }
  bench_stats(samples, n, median, p99);
  free(samples);
}

static int write_json(const bench *b, const char *path)
{
  json_t *list = json_array();
  for (size_t i = 0; i < b->n_rows; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(b->rows[i].name));
    json_object_set_new(o, "value", json_real(b->rows[i].median));
    if (b->rows[i].p99 >= 0) json_object_set_new(o, "p99", json_real(b->rows[i].p99));
    json_object_set_new(o, "unit", json_string(b->rows[i].unit));
    json_object_set_new(o, "runtime", json_string(b->runtime));
    json_object_set_new(o, "threads", json_integer(1));
    json_array_append_new(list, o);
  }
  int bad = json_dump_file(list, path, JSON_INDENT(1));
  json_decref(list);
  if (bad) fprintf(stderr, "bench: cannot write %s\n", path);
  return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
  static const struct option options[] = { { "json", 1, 0, 'j' },    { "only", 1, 0, 'o' },  { "runtime", 1, 0, 'r' },
                                           { "seconds", 1, 0, 's' }, { "child", 1, 0, 'c' },
                                           { "import", 1, 0, 'i' },  { 0, 0, 0, 0 } };
  bench b = { .runtime = "direct", .models = getenv("TENON_MODELS"), .seconds = 1, .self = argv[0] };
  const char *json = NULL;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c == 'c') return bench_child_digits(optarg);
    if (c == 'i') return bench_child_import(optarg);
    if (c == 'j') json = optarg;
    else if (c == 'o') only = optarg;
    else if (c == 'r') b.runtime = optarg;
    else if (c == 's') b.seconds = atof(optarg);
    else return 2;
  }
  printf("%-26s %12s %12s  %-6s %s\n", "figure", "median", "p99", "unit", "limit");
  bench_steps(&b);
  bench_branches(&b);
  bench_elementwise(&b);
  bench_prepares(&b);
  bench_control(&b);
  bench_imports(&b);
  bench_exports(&b);
  bench_checkpoints(&b);
  bench_process(&b);
  bench_plugins(&b);
  bench_sessions(&b);
  bench_eager(&b);
  bench_gpu(&b);
  bench_gpu_products(&b);
  int rc = json == NULL ? 0 : write_json(&b, json);
  for (size_t i = 0; i < b.n_rows; i++) free(b.rows[i].name);
  free(b.rows);
  return rc;
}
