/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include <tools/bench/roofline/roofline.h>

enum { MOST_GROUPS = 20, BAR = 20 };
enum { GREEN = 32, YELLOW = 33 };

/* A trace that makes steps slower than this gives times that are too long. */
#define TRACE_LIMIT 1.1

static const char *number(char text[32], double value)
{
  if (value <= 0) return "-";
  snprintf(text, 32, "%.*f", value < 9999.5 ? tool_decimals(value) : 0, value);
  return text;
}

/* A part of a bar: `columns` of it. */
static void add_part(tool_text *line, const tool_screen *out, size_t columns, const char *block, char plain, int colour)
{
  if (columns == 0) return;
  if (out->colour) tool_text_printf(line, "\033[%dm", colour);
  for (size_t i = 0; i < columns; i++) {
    if (out->blocks)
      tool_text_add(line, block, strlen(block));
    else
      tool_text_add(line, &plain, 1);
  }
  if (out->colour) tool_text_add(line, "\033[0m", 4);
}

/* The group's time as a part of the costliest group's: first what it takes at its roof, then what is above. */
static void add_bar(tool_text *line, const tool_screen *out, const roof_group *g, double most_ns)
{
  size_t all = most_ns > 0 ? (size_t)(g->ns / most_ns * BAR + 0.5) : 0;
  if (all == 0) all = 1;
  if (all > BAR) all = BAR;
  size_t at_roof = g->ns > 0 ? (size_t)(g->counted_ns / g->ns * (double)all + 0.5) : 0;
  if (at_roof > all) at_roof = all;
  add_part(line, out, at_roof, "\u2588", '#', GREEN);
  add_part(line, out, all - at_roof, "\u2591", '-', YELLOW);
  for (size_t i = all; i < BAR; i++) tool_text_add(line, " ", 1);
}

/* Follows the share of a group that is above its roof. */
static char mark_of(const roof_group *g)
{
  if (roof_share(g) <= 1) return ' ';
  return roof_bound_of(g) == ROOF_COMPUTE ? '+' : '*';
}

static const char *share_text(char text[32], const roof_group *g)
{
  double share = roof_share(g) * 100;
  if (g->roof_ns <= 0 || g->ns <= 0) return "-";
  snprintf(text, 32, "%.0f %%%c", share < 9999 ? share : 9999, mark_of(g));
  return text;
}

/* Op and kernel, on one line whatever a plugin calls its kernel. */
static void add_name(tool_text *line, const roof_group *g)
{
  size_t from = line->length;
  tool_text_printf(line, " %s %s", g->op, g->kernel);
  for (size_t i = from; i < line->length; i++)
    if ((unsigned char)line->data[i] < 0x20 || line->data[i] == 0x7f) line->data[i] = '?';
}

static void print_group(const roofline *r, const roof_group *g, const tool_screen *out)
{
  tool_text line = { 0 };
  char time[32], flops[32], bytes[32], intensity[32], share[32];
  double seconds = g->ns / 1e9;
  tool_text_printf(&line, "%8s %5.1f %% %6.4g %8s %7s %7s %7s  %-7s ", tool_duration_text(time, g->ns),
                   roof_part(r, g) * 100, g->calls, number(flops, seconds > 0 ? g->flops / seconds / 1e9 : 0),
                   number(bytes, seconds > 0 ? g->bytes / seconds / 1e9 : 0),
                   number(intensity, g->bytes > 0 ? g->flops / g->bytes : 0), share_text(share, g),
                   roof_bound_of(g) == ROOF_COMPUTE ? "compute" : "memory");
  add_bar(&line, out, g, r->groups[0].ns);
  add_name(&line, g);
  puts(line.data);
  tool_text_fini(&line);
}

static void print_groups(const roofline *r)
{
  tool_screen out = tool_screen_look();
  bool cached = false, fewer = false;
  printf("%8s %7s %6s %8s %7s %7s %7s  %-7s %-*s %s\n", "TIME", "SHARE", "CALLS", "GFLOP/S", "GB/S", "FLOP/B",
         "OF ROOF", "BOUND", BAR, "TIME, AND AT THE ROOF", "OP AND KERNEL");
  double rest = 0;
  for (size_t i = 0; i < r->n_groups; i++) {
    cached = cached || (i < MOST_GROUPS && mark_of(&r->groups[i]) == '*');
    fewer = fewer || (i < MOST_GROUPS && mark_of(&r->groups[i]) == '+');
    if (i < MOST_GROUPS)
      print_group(r, &r->groups[i], &out);
    else
      rest += r->groups[i].ns;
  }
  if (r->n_groups > MOST_GROUPS)
    printf("and %zu more with %.1f %%\n", r->n_groups - MOST_GROUPS, r->nodes_ns > 0 ? rest / r->nodes_ns * 100 : 0);
  if (cached) puts("* above its roof: its data were still in a cache, which is faster than memory");
  if (fewer) puts("+ above its roof: it computes the same with fewer operations");
}

static void print_machine(const roofline *r)
{
  char block[32], text[32];
  printf("limits of %d thread%s: %s GFLOP/s (%s)", r->threads, r->threads == 1 ? "" : "s",
         number(text, r->most.flops / 1e9), r->most.isa);
  printf(", memory %s GB/s (reading %s, as much as a step uses)", number(text, r->most.bandwidth / 1e9),
         tool_bytes_text(block, r->block_bytes));
  printf(", caches %s GB/s\n", number(text, r->cache_bandwidth / 1e9));
}

static void print_whole(const roofline *r)
{
  char text[32];
  double slower = r->step_ns > 0 ? r->traced_ns / r->step_ns : 1;
  printf("fastest step %s", tool_duration_text(text, r->step_ns));
  printf(", with a trace %s", tool_duration_text(text, r->traced_ns));
  if (slower > 1) printf(" (%+.1f %%)", (slower - 1) * 100);
  printf(", of which kernels took %s (%.1f %%)\n", tool_duration_text(text, r->nodes_ns),
         r->traced_ns > 0 ? r->nodes_ns / r->traced_ns * 100 : 0);
  if (slower > TRACE_LIMIT) puts("the trace slows these steps down, so the times of short kernels are too long");
  printf("roofline %s: all kernels at their roofs, %.1f %% of their time, %.1f %% of the step\n",
         tool_duration_text(text, r->roof_ns), r->nodes_ns > 0 ? r->roof_ns / r->nodes_ns * 100 : 0,
         r->step_ns > 0 ? r->roof_ns / r->step_ns * 100 : 0);
}

void roof_print(const bench_case *c)
{
  const roofline *r = c->roofline;
  tool_text title = { 0 };
  bench_case_text(c, &title);
  printf("\n%s: roofline, shortest times of %" PRIu64 " steps\n", title.data, r->nodes.steps);
  tool_text_fini(&title);
  print_machine(r);
  if (r->n_groups > 0)
    print_groups(r);
  else
    puts("no kernel ran");
  print_whole(r);
}
