/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <tools/bench/roofline/roofline.h>

/* A group of this node alone. If it did not run in all steps, its time is that of an average step. */
static roof_group group_of(const roofline *r, const roof_node *node)
{
  double steps = (double)r->nodes.steps;
  roof_group g = { .op = node->op,
                   .kernel = node->kernel,
                   .nodes = 1,
                   .calls = (double)node->calls / steps,
                   .ns = node->best_ns * (double)node->steps / steps,
                   .flops = node->flops / steps,
                   .bytes = node->bytes / steps };
  double compute = g.flops / r->most.flops * 1e9, memory = g.bytes / r->most.bandwidth * 1e9;
  g.roof_ns = compute > memory ? compute : memory;
  g.counted_ns = g.roof_ns < g.ns ? g.roof_ns : g.ns;
  g.compute_ns = compute > memory ? compute : 0;
  return g;
}

static int by_kernel(const void *a, const void *b)
{
  const roof_group *x = a, *y = b;
  int order = strcmp(x->op, y->op);
  return order != 0 ? order : strcmp(x->kernel, y->kernel);
}

static int by_time(const void *a, const void *b)
{
  const roof_group *x = a, *y = b;
  if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
  return by_kernel(a, b);
}

static void add(roof_group *to, const roof_group *more)
{
  to->nodes += more->nodes;
  to->calls += more->calls;
  to->ns += more->ns;
  to->flops += more->flops;
  to->bytes += more->bytes;
  to->roof_ns += more->roof_ns;
  to->counted_ns += more->counted_ns;
  to->compute_ns += more->compute_ns;
}

void roof_group_nodes(roofline *r)
{
  size_t n = 0;
  r->groups = tool_alloc(r->nodes.n + 1, sizeof(*r->groups));
  for (size_t i = 0; i < r->nodes.n; i++) r->groups[i] = group_of(r, &r->nodes.items[i]);
  qsort(r->groups, r->nodes.n, sizeof(*r->groups), by_kernel);
  for (size_t i = 0; i < r->nodes.n; i++) {
    if (n > 0 && by_kernel(&r->groups[n - 1], &r->groups[i]) == 0)
      add(&r->groups[n - 1], &r->groups[i]);
    else
      r->groups[n++] = r->groups[i];
  }
  qsort(r->groups, n, sizeof(*r->groups), by_time);
  r->n_groups = n;
  for (size_t i = 0; i < n; i++) {
    r->nodes_ns += r->groups[i].ns;
    r->roof_ns += r->groups[i].counted_ns;
  }
}
