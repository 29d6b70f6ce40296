/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `tenon eager-demo` as text: bytes over time in characters, and tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tools/eager_demo/eager_demo.h>

enum { ROWS = 5, LEFT = 11 };

/* ---- bytes over time ---- */

/* Picks the character for a cell: `full` eighths were always held, `any` eighths at least once. */
static const char *cell_text(const tool_screen *screen, int full, int any, bool ground)
{
  static const char *const eighths[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588" };
  if (!screen->blocks) {
    if (full >= 4) return "#";
    if (any >= 4) return ":";
    return ground ? "." : " ";
  }
  if (any - full >= 3) return "\u2591";
  return eighths[any == 0 && ground ? 1 : any];
}

static int in_cell(double share, int row)
{
  double eighths = (share * ROWS - row) * 8 + 0.5;
  if (eighths < 0) return 0;
  return eighths > 8 ? 8 : (int)eighths;
}

static void print_row(const demo *d, const demo_run *run, const tool_screen *screen, int row, size_t columns)
{
  static const char *const colours[DEMO_STRATEGIES] = { "34", "32", "33" };
  double scale = (double)demo_scale(d, run), wide = (double)run->end_ns / (double)columns;
  char label[32] = "";
  tool_text line = { 0 };
  if (row == ROWS - 1) tool_bytes_text(label, demo_scale(d, run));
  tool_text_printf(&line, "%*s |", LEFT - 2, label);
  if (screen->colour) tool_text_printf(&line, "\033[%sm", colours[run->strategy]);
  for (size_t i = 0; i < columns; i++) {
    demo_bin bin = demo_track_between(&run->track, (uint64_t)((double)i * wide), (uint64_t)((double)(i + 1) * wide));
    int full = in_cell((double)bin.least / scale, row), any = in_cell((double)bin.most / scale, row);
    const char *cell = cell_text(screen, full, any, row == 0 && bin.most > 0);
    tool_text_add(&line, cell, strlen(cell));
  }
  while (line.length > 0 && line.data[line.length - 1] == ' ') line.data[--line.length] = '\0';
  if (screen->colour) tool_text_printf(&line, "\033[0m");
  puts(line.data);
  tool_text_fini(&line);
}

static void print_ground(size_t columns, uint64_t end_ns)
{
  char half[32], whole[32];
  printf("%*s +", LEFT - 2, "0");
  for (size_t i = 0; i < columns; i++) fputc('-', stdout);
  tool_duration_text(half, (double)end_ns / 2);
  tool_duration_text(whole, (double)end_ns);
  int before = (int)(columns / 2) - (int)strlen(half) / 2;
  printf("\n%*s0%*s%*s\n", LEFT, "", before + (int)strlen(half) - 1, half, (int)columns - before - (int)strlen(half),
         whole);
}

static void print_plot(const demo *d)
{
  tool_screen screen = tool_screen_look();
  size_t columns = screen.width - LEFT - 1;
  char peak[32];
  printf("Bytes held over time: %s always, %s at times.\n", screen.blocks ? "\u2588" : "#",
         screen.blocks ? "\u2591" : ":");
  for (size_t i = 0; i < d->n_begun; i++) {
    const demo_run *run = &d->runs[i];
    if (run->end_ns == 0) continue;
    printf("\n%s: at most %s, %.2f times the bytes of an iteration\n", demo_strategy_name(run->strategy),
           tool_bytes_text(peak, run->peak_bytes), demo_in_iterations(d, run->peak_bytes));
    for (int row = ROWS - 1; row >= 0; row--) print_row(d, run, &screen, row, columns);
    print_ground(columns, run->end_ns);
  }
  fputc('\n', stdout);
}

/* ---- tables ---- */

static void duration_cell(tool_table *table, bool any, double ns)
{
  char text[32];
  tool_table_cell(table, "%s", any ? tool_duration_text(text, ns) : "-");
}

static void rate_cell(tool_table *table, double value)
{
  if (value <= 0)
    tool_table_cell(table, "-");
  else if (value >= 1e6)
    tool_table_cell(table, "%.3g M", value / 1e6);
  else if (value >= 1e3)
    tool_table_cell(table, "%.3g k", value / 1e3);
  else
    tool_table_cell(table, "%.3g", value);
}

/* Show the iterations if some strategy ran fewer than requested. */
static bool with_iterations(const demo *d)
{
  for (size_t i = 0; i < d->n_begun; i++)
    if (d->runs[i].done != d->iterations) return true;
  return false;
}

static void print_memory(const demo *d)
{
  static const char *const titles[] = { "STRATEGY",     "ITERATIONS", "ALLOCATED",    "DELETED",
                                        "BEFORE CLOSE", "PEAK",       "IN ITERATIONS" };
  size_t n = sizeof(titles) / sizeof(titles[0]);
  bool iterations = with_iterations(d);
  tool_table table;
  char text[32];
  tool_table_init(&table, iterations ? n : n - 1, UINT32_MAX << 1);
  for (size_t i = 0; i < n; i++)
    if (i != 1 || iterations) tool_table_cell(&table, "%s", titles[i]);
  for (size_t i = 0; i < d->n_begun; i++) {
    const demo_run *run = &d->runs[i];
    if (run->end_ns == 0) continue;
    tool_table_cell(&table, "%s", demo_strategy_name(run->strategy));
    if (iterations) tool_table_cell(&table, "%" PRIu64, run->done);
    tool_table_cell(&table, "%" PRIu64, run->made);
    tool_table_cell(&table, "%" PRIu64, run->deleted);
    tool_table_cell(&table, "%" PRIu64, run->deleted_before);
    tool_table_cell(&table, "%s", tool_bytes_text(text, run->peak_bytes));
    tool_table_cell(&table, "%.2f", demo_in_iterations(d, run->peak_bytes));
  }
  tool_table_print(&table, "", stdout);
}

static void print_times(const demo *d)
{
  static const char *const titles[] = { "STRATEGY", "LOOP", "ADDITION", "PAUSES", "LONGEST", "CLOSE", "DELETED/S" };
  tool_table table;
  tool_table_init(&table, sizeof(titles) / sizeof(titles[0]), UINT32_MAX << 1);
  for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) tool_table_cell(&table, "%s", titles[i]);
  for (size_t i = 0; i < d->n_begun; i++) {
    const demo_run *run = &d->runs[i];
    if (run->end_ns == 0) continue;
    tool_table_cell(&table, "%s", demo_strategy_name(run->strategy));
    duration_cell(&table, true, (double)run->loop_ns);
    duration_cell(&table, run->made > 0, (double)run->loop_ns / (double)(run->made > 0 ? run->made : 1));
    tool_table_cell(&table, "%" PRIu64, run->pauses);
    duration_cell(&table, run->pauses > 0, (double)run->longest_pause_ns);
    duration_cell(&table, true, (double)run->close_ns);
    rate_cell(&table, demo_deletions_per_second(run));
  }
  for (size_t i = 0; i < d->n_plains; i++) {
    tool_table_cell(&table, "%s", d->plains[i].at_end ? "without, at the end" : "without, each iteration");
    for (int k = 0; k < 5; k++) tool_table_cell(&table, "-");
    rate_cell(&table, demo_plain_per_second(&d->plains[i]));
  }
  fputc('\n', stdout);
  tool_table_print(&table, "", stdout);
}

void demo_print(const demo *d)
{
  char text[32];
  printf("%" PRIu64 " addition%s in each of %" PRIu64 " iteration%s, of %s each; runtime %s %s\n\n", d->ops,
         d->ops == 1 ? "" : "s", d->iterations, d->iterations == 1 ? "" : "s", tool_bytes_text(text, d->bytes),
         d->runtime, d->version);
  if (!d->no_plot) print_plot(d);
  print_memory(d);
  print_times(d);
}
