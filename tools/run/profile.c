/* SPDX-License-Identifier: Apache-2.0 */
/* tenon run --profile: the most expensive nodes and ops. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tools/run/trace.h>

enum { MOST_NODES = 10, MOST_OPS = 10 };

typedef struct cost {
  const char *name, *op, *kernel; /* the kernel with the largest share */
  uint64_t ns, most_ns, calls, nodes;
} cost;

static int by_name(const void *a, const void *b)
{
  const cost *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : strcmp(x->kernel, y->kernel);
}

static int by_time(const void *a, const void *b)
{
  const cost *x = a, *y = b;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  return by_name(a, b);
}

static void add(cost *to, const cost *more)
{
  to->ns += more->ns;
  to->calls += more->calls;
  to->nodes += more->nodes;
}

/* Merges costs of the same name. Costs of the same name and kernel are merged first. */
static size_t merge(cost *costs, size_t n)
{
  size_t used = 0, names = 0;
  qsort(costs, n, sizeof(*costs), by_name);
  for (size_t i = 0; i < n; i++) {
    if (used > 0 && by_name(&costs[used - 1], &costs[i]) == 0) add(&costs[used - 1], &costs[i]);
    else costs[used++] = costs[i];
  }
  for (size_t i = 0; i < used; i++) {
    cost *before = names > 0 && strcmp(costs[names - 1].name, costs[i].name) == 0 ? &costs[names - 1] : NULL;
    if (before == NULL) {
      costs[names] = costs[i];
      costs[names++].most_ns = costs[i].ns;
      continue;
    }
    add(before, &costs[i]);
    if (costs[i].ns <= before->most_ns) continue;
    before->most_ns = costs[i].ns;
    before->kernel = costs[i].kernel;
  }
  qsort(costs, names, sizeof(*costs), by_time);
  return names;
}

static const char *duration_text(char text[32], double ns)
{
  if (ns < 1e6) snprintf(text, 32, "%.2f us", ns / 1e3);
  else if (ns < 1e9) snprintf(text, 32, "%.2f ms", ns / 1e6);
  else snprintf(text, 32, "%.2f s", ns / 1e9);
  return text;
}

static void add_cells(tool_table *table, const run_trace *t, const cost *c)
{
  char text[32];
  tool_table_cell(table, "%s", duration_text(text, (double)c->ns / (double)t->costed_steps));
  tool_table_cell(table, "%.1f %%", t->costed_ns > 0 ? 100 * (double)c->ns / (double)t->costed_ns : 0.0);
  tool_table_cell(table, "%.4g", (double)c->calls / (double)t->costed_steps);
}

static void head(tool_table *table, size_t columns, const char *const *names)
{
  tool_table_init(table, columns, 7);
  for (size_t i = 0; i < columns; i++) tool_table_cell(table, "%s", names[i]);
}

static void print_nodes(const run_trace *t, const cost *costs, size_t n, FILE *out)
{
  static const char *const names[] = { "time", "share", "calls", "node", "op", "kernel" };
  tool_table table;
  uint64_t rest = 0;
  head(&table, 6, names);
  for (size_t i = 0; i < n && i < MOST_NODES; i++) {
    add_cells(&table, t, &costs[i]);
    tool_table_cell(&table, "%s", costs[i].name);
    tool_table_cell(&table, "%s", costs[i].op);
    tool_table_cell(&table, "%s", costs[i].kernel[0] != '\0' ? costs[i].kernel : "-");
  }
  tool_table_print(&table, "  ", out);
  for (size_t i = MOST_NODES; i < n; i++) rest += costs[i].ns;
  if (n > MOST_NODES)
    fprintf(out, "  and %zu more with %.1f %%\n", n - MOST_NODES,
            t->costed_ns > 0 ? 100 * (double)rest / (double)t->costed_ns : 0.0);
}

static void print_ops(const run_trace *t, const cost *costs, size_t n, FILE *out)
{
  static const char *const names[] = { "time", "share", "calls", "op", "nodes" };
  tool_table table;
  head(&table, 5, names);
  for (size_t i = 0; i < n && i < MOST_OPS; i++) {
    add_cells(&table, t, &costs[i]);
    tool_table_cell(&table, "%s", costs[i].name);
    tool_table_cell(&table, "%" PRIu64, costs[i].nodes);
  }
  tool_table_print(&table, "  ", out);
  if (n > MOST_OPS) fprintf(out, "  and %zu more\n", n - MOST_OPS);
}

void trace_profile(const run_trace *t, FILE *out)
{
  if (t->costed_steps == 0) return;
  cost *costs = tool_alloc(t->n_nodes + 1, sizeof(*costs));
  size_t n = 0;
  uint64_t all = 0;
  char text[32];
  for (size_t i = 0; i < t->n_nodes; i++) {
    const trace_node *node = &t->nodes[i];
    all += node->self_ns;
    if (node->calls > 0) costs[n++] = (cost){ node->name, node->op, node->kernel, node->self_ns, 0, node->calls, 1 };
  }
  n = merge(costs, n);
  for (size_t i = 0; i < n; i++) costs[i].nodes = 1;
  fprintf(out, "\n%" PRIu64 " step%s%s, %s each, of which nodes took %.1f %%\n", t->costed_steps,
          t->costed_steps == 1 ? "" : "s", t->all_steps > 1 ? " after the first" : "",
          duration_text(text, (double)t->costed_ns / (double)t->costed_steps),
          t->costed_ns > 0 ? 100 * (double)all / (double)t->costed_ns : 0.0);
  fprintf(out, "\nMost expensive nodes, per step\n");
  print_nodes(t, costs, n, out);
  for (size_t i = 0; i < n; i++) costs[i] = (cost){ costs[i].op, "", "", costs[i].ns, 0, costs[i].calls, 1 };
  n = merge(costs, n);
  fprintf(out, "\nOps\n");
  print_ops(t, costs, n, out);
  free(costs);
}
