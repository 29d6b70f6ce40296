/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `tenon bench` as text: tables, and a histogram of each row. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/bench/bench.h>
#include <tools/bench/roofline/roofline.h>

enum { BODY = 10, TAIL = 4 };

/* ---- figures ---- */

double bench_steps_per_second(const bench_case *c)
{
  return c->wall_ns > 0 ? (double)c->latencies->n * 1e9 / (double)c->wall_ns : 0;
}

double bench_ratio(const bench *b, const bench_case *c)
{
  double first = (double)bench_histogram_quantile(b->cases[0].latencies, 0.5);
  double this = (double)bench_histogram_quantile(c->latencies, 0.5);
  return this > 0 ? first / this : 0;
}

static const char *rate(char buffer[32], double value)
{
  if (value >= 1000)
    snprintf(buffer, 32, "%.0f", value);
  else
    snprintf(buffer, 32, "%.*f", tool_decimals(value) + 1, value);
  return buffer;
}

/* ---- tables ---- */

static bool with_threads(const bench *b)
{
  for (size_t i = 0; i < b->n_cases; i++)
    if (b->cases[i].threads > 0) return true;
  return false;
}

static void start_row(const bench *b, const bench_case *c, tool_table *table)
{
  tool_table_cell(table, "%s", c->label);
  if (!with_threads(b)) return;
  if (c->threads > 0)
    tool_table_cell(table, "%" PRIu64, c->threads);
  else
    tool_table_cell(table, "-");
}

static void start_table(const bench *b, tool_table *table, const char *const *titles, size_t n)
{
  size_t first = with_threads(b) ? 2 : 1;
  tool_table_init(table, n + first, UINT32_MAX << 1);
  tool_table_cell(table, "RUNTIME");
  if (first == 2) tool_table_cell(table, "THREADS");
  for (size_t i = 0; i < n; i++) tool_table_cell(table, "%s", titles[i]);
}

static void print_figures(const bench *b)
{
  static const char *const with_items[] = { "P50", "P90", "P99", "P99.9", "STEPS/S", "ITEMS/S", "RATIO" };
  static const char *const without[] = { "P50", "P90", "P99", "P99.9", "STEPS/S", "RATIO" };
  static const double shares[] = { 0.5, 0.9, 0.99, 0.999 };
  bool items = b->request->batch > 0, several = b->n_cases > 1;
  size_t columns = (items ? 7 : 6) - (several ? 0 : 1);
  tool_table table;
  char text[32];
  start_table(b, &table, items ? with_items : without, columns);
  for (size_t i = 0; i < b->n_cases; i++) {
    const bench_case *c = &b->cases[i];
    double steps = bench_steps_per_second(c), ratio = bench_ratio(b, c);
    bool any = c->latencies->n > 0;
    start_row(b, c, &table);
    for (size_t k = 0; k < 4; k++)
      tool_table_cell(&table, "%s",
                      any ? tool_duration_text(text, (double)bench_histogram_quantile(c->latencies, shares[k])) : "-");
    tool_table_cell(&table, "%s", any ? rate(text, steps) : "-");
    if (items) tool_table_cell(&table, "%s", any ? rate(text, steps * (double)b->request->batch) : "-");
    if (several && ratio > 0) tool_table_cell(&table, "%.*f", tool_decimals(ratio), ratio);
    if (several && ratio <= 0) tool_table_cell(&table, "-");
  }
  tool_table_print(&table, "", stdout);
}

static void print_times(const bench *b)
{
  static const char *const titles[] = { "STEPS", "MEAN", "MIN", "MAX", "SESSION", "PREPARE", "FIRST STEP", "WARM-UP" };
  tool_table table;
  char text[32];
  start_table(b, &table, titles, sizeof(titles) / sizeof(titles[0]));
  for (size_t i = 0; i < b->n_cases; i++) {
    const bench_case *c = &b->cases[i];
    const bench_histogram *h = c->latencies;
    start_row(b, c, &table);
    tool_table_cell(&table, "%" PRIu64, h->n);
    tool_table_cell(&table, "%s", h->n > 0 ? tool_duration_text(text, bench_histogram_mean(h)) : "-");
    tool_table_cell(&table, "%s", h->n > 0 ? tool_duration_text(text, (double)h->min) : "-");
    tool_table_cell(&table, "%s", h->n > 0 ? tool_duration_text(text, (double)h->max) : "-");
    tool_table_cell(&table, "%s", tool_duration_text(text, (double)c->session_ns));
    tool_table_cell(&table, "%s", tool_duration_text(text, (double)c->prepare_ns));
    tool_table_cell(&table, "%s", tool_duration_text(text, (double)c->first_ns));
    tool_table_cell(&table, "%s%s", tool_duration_text(text, (double)c->warm_ns), c->stable ? "" : "?");
  }
  fputc('\n', stdout);
  tool_table_print(&table, "", stdout);
}

/* ---- histograms ---- */

typedef struct bin {
  size_t first, last; /* buckets */
  uint64_t count;
} bin;

/* Adds at most `most` bins with the same number of buckets; like buckets, bins grow with the value. */
static size_t add_bins(const bench_histogram *h, size_t low, size_t high, size_t most, bin *bins)
{
  size_t n = 0, wide = (high - low + most) / most;
  for (size_t at = low; at <= high; at += wide, n++) {
    bins[n] = (bin){ at, at + wide - 1 < high ? at + wide - 1 : high, 0 };
    for (size_t k = at; k <= bins[n].last; k++) bins[n].count += h->counts[k];
  }
  return n;
}

/* The slowest 5 % get separate bins: otherwise a few slow steps would squeeze all others into one row. */
static size_t make_bins(const bench_histogram *h, bin bins[BODY + TAIL])
{
  size_t low = bench_bucket_of(h->min), high = bench_bucket_of(bench_histogram_quantile(h, 0.95));
  size_t top = bench_bucket_of(h->max), n = add_bins(h, low, high, BODY, bins);
  return top > high ? n + add_bins(h, high + 1, top, TAIL, bins + n) : n;
}

/* Appends the percentiles in the bin, such as "p50 p90". */
static void add_marks(const bench_histogram *h, const bin *row, tool_text *line)
{
  static const struct {
    double share;
    const char *name;
  } marks[] = { { 0.5, "p50" }, { 0.9, "p90" }, { 0.99, "p99" }, { 0.999, "p99.9" } };
  for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
    size_t bucket = bench_bucket_of(bench_histogram_quantile(h, marks[i].share));
    if (bucket >= row->first && bucket <= row->last) tool_text_printf(line, "  %s", marks[i].name);
  }
}

static void print_histogram(const tool_screen *out, const bench_case *c)
{
  const bench_histogram *h = c->latencies;
  bin bins[BODY + TAIL];
  size_t n = make_bins(h, bins);
  uint64_t most = 1, slow = bench_histogram_quantile(h, 0.99);
  for (size_t i = 0; i < n; i++)
    if (bins[i].count > most) most = bins[i].count;
  for (size_t i = 0; i < n; i++) {
    tool_text line = { 0 };
    char from[32];
    uint64_t low = bench_bucket_low(bins[i].first);
    tool_text_printf(&line, "%9s  ", tool_duration_text(from, (double)(i == 0 ? h->min : low)));
    /* Reserve columns for the time before the bar, and for the share and the marks after it. */
    tool_text_bar(&line, out, (double)bins[i].count / (double)most, out->width - 36, bins[i].count > 0,
                  low > slow ? 33 : 36);
    tool_text_printf(&line, " %5.1f %%", (double)bins[i].count / (double)h->n * 100);
    add_marks(h, &bins[i], &line);
    puts(line.data);
    tool_text_fini(&line);
  }
}

void bench_print(const bench *b)
{
  char load[32], peak[32];
  tool_screen out = tool_screen_look();
  printf("%s: read in %s", b->request->source.path, tool_duration_text(load, (double)b->load_ns));
  if (b->request->batch > 0) printf(", batch %" PRIu64, b->request->batch);
  if (b->request->concurrency > 1) printf(", %" PRIu64 " clients", b->request->concurrency);
  if (b->peak_bytes > 0) printf(", peak memory %s", tool_bytes_text(peak, b->peak_bytes));
  fputs("\n\n", stdout);
  print_figures(b);
  print_times(b);
  for (size_t i = 0; i < b->n_cases && !b->request->no_histogram; i++) {
    tool_text title = { 0 };
    if (b->cases[i].latencies->n == 0) continue;
    bench_case_text(&b->cases[i], &title);
    printf("\n%s: distribution of step times\n", title.data);
    tool_text_fini(&title);
    print_histogram(&out, &b->cases[i]);
  }
  for (size_t i = 0; i < b->n_cases; i++)
    if (b->cases[i].roofline != NULL) roof_print(&b->cases[i]);
}
