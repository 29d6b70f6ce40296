/* SPDX-License-Identifier: Apache-2.0 */
#include <tools/bench/roofline/roofline.h>

static void set(json_t *object, const char *key, double value) { tool_json_set(object, key, json_real(value)); }

static json_t *ratio(double a, double b) { return b > 0 ? json_real(a / b) : json_null(); }

static json_t *group_json(const roofline *r, const roof_group *g)
{
  json_t *object = json_object();
  tool_json_set(object, "op", tool_json_text(g->op));
  tool_json_set(object, "kernel", tool_json_text(g->kernel));
  tool_json_set(object, "nodes", json_integer((json_int_t)g->nodes));
  set(object, "calls", g->calls);
  set(object, "ns", g->ns);
  tool_json_set(object, "share", ratio(g->ns, r->nodes_ns));
  set(object, "flops", g->flops);
  set(object, "bytes", g->bytes);
  tool_json_set(object, "flops_per_second", ratio(g->flops, g->ns / 1e9));
  tool_json_set(object, "bytes_per_second", ratio(g->bytes, g->ns / 1e9));
  tool_json_set(object, "flops_per_byte", ratio(g->flops, g->bytes));
  set(object, "roof_ns", g->roof_ns);
  tool_json_set(object, "roof_flops_per_second", ratio(g->flops, g->roof_ns / 1e9));
  tool_json_set(object, "of_roof", ratio(g->roof_ns, g->ns));
  tool_json_set(object, "bound", tool_json_text(roof_bound_of(g) == ROOF_COMPUTE ? "compute" : "memory"));
  return object;
}

json_t *roof_json(const bench_case *c)
{
  const roofline *r = c->roofline;
  if (r == NULL) return json_null();
  json_t *object = json_object(), *machine = json_object(), *groups = json_array();
  tool_json_set(machine, "threads", json_integer(r->threads));
  tool_json_set(machine, "vectors", tool_json_text(r->most.isa));
  set(machine, "flops_per_second", r->most.flops);
  set(machine, "bytes_per_second", r->most.bandwidth);
  tool_json_set(machine, "block_bytes", json_integer((json_int_t)r->block_bytes));
  set(machine, "cache_bytes_per_second", r->cache_bandwidth);
  for (size_t i = 0; i < r->n_groups; i++) tool_json_append(groups, group_json(r, &r->groups[i]));
  tool_json_set(object, "machine", machine);
  tool_json_set(object, "steps", json_integer((json_int_t)r->nodes.steps));
  set(object, "step_ns", r->step_ns);
  set(object, "traced_step_ns", r->traced_ns);
  set(object, "kernels_ns", r->nodes_ns);
  set(object, "roof_ns", r->roof_ns);
  tool_json_set(object, "of_kernels", ratio(r->roof_ns, r->nodes_ns));
  tool_json_set(object, "of_step", ratio(r->roof_ns, r->step_ns));
  tool_json_set(object, "groups", groups);
  return object;
}
