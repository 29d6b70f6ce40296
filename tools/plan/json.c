/* SPDX-License-Identifier: Apache-2.0 */
/* tenon plan --json: a plan as JSON. */
#include <inttypes.h>
#include <string.h>

#include <tools/picture/picture.h>
#include <tools/plan/plan.h>

static tn_plan_summary summary_of(const tn_plan_report *report)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  tn_plan_report_summary(report, &s, NULL);
  return s;
}

static void set_number(json_t *object, const char *key, uint64_t value)
{
  tool_json_set(object, key, json_integer((json_int_t)value));
}

static json_t *json_pass(const tn_plan_report *report, size_t i)
{
  tn_plan_pass p = { .struct_size = sizeof p };
  json_t *object = json_object(), *rewrites = json_object();
  tn_plan_report_pass(report, i, &p, NULL);
  for (size_t k = 0; k < p.rewrites; k++) {
    tn_plan_rewrite r = { .struct_size = sizeof r };
    tn_plan_report_rewrite(report, i, k, &r, NULL);
    set_number(rewrites, r.name, r.count);
  }
  tool_json_set(object, "pass", tool_json_text(p.name));
  tool_json_set(object, "off", json_boolean(p.off));
  set_number(object, "changes", p.changes);
  set_number(object, "nodes", p.nodes);
  tool_json_set(object, "rewrites", rewrites);
  return object;
}

static json_t *json_names(const char *const *names, size_t n)
{
  json_t *array = json_array();
  for (size_t i = 0; i < n; i++) tool_json_append(array, tool_json_text(names[i]));
  return array;
}

static json_t *json_call(const tn_plan_report *report, size_t i)
{
  tn_plan_call c = { .struct_size = sizeof c };
  json_t *object = json_object(), *inputs = json_array(), *outputs = json_array();
  tn_plan_report_call(report, i, &c, NULL);
  for (uint32_t k = 0; k < c.n_inputs; k++) tool_json_append(inputs, json_integer(c.inputs[k]));
  for (uint32_t k = 0; k < c.n_outputs; k++) tool_json_append(outputs, json_integer(c.outputs[k]));
  tool_json_set(object, "op", tool_json_text(plan_op(c.op)));
  tool_json_set(object, "node", tool_json_text(tn_operation_name(c.op)));
  tool_json_set(object, "segment", json_integer(c.segment));
  tool_json_set(object, "kernels", json_names(c.kernels, c.n_kernels));
  tool_json_set(object, "kernel", c.kernel == TN_NOT_IN_PLAN ? json_null() : tool_json_text(c.kernels[c.kernel]));
  tool_json_set(object, "with_layout", json_boolean(c.with_layout));
  tool_json_set(object, "inputs", inputs);
  tool_json_set(object, "outputs", outputs);
  return object;
}

static json_t *json_operand(const tn_plan_report *report, size_t i)
{
  static const char *const kinds[] = { "feed", "constant", "computed" };
  tn_plan_operand v = { .struct_size = sizeof v };
  json_t *object = json_object();
  tn_plan_report_operand(report, i, &v, NULL);
  tool_json_set(object, "kind", tool_json_text(v.kind >= 0 && v.kind < 3 ? kinds[v.kind] : "?"));
  tool_json_set(object, "type", tool_json_text(tn_dtype_name(v.dtype)));
  tool_json_set(object, "node", v.output.op != NULL ? tool_json_text(tn_operation_name(v.output.op)) : json_null());
  tool_json_set(object, "output", json_integer(v.output.index));
  tool_json_set(object, "uses", json_integer(v.n_uses));
  if (v.kind == 1) set_number(object, "bytes", v.bytes);
  return object;
}

static json_t *json_layout(const tn_plan_report *report, size_t i)
{
  tn_plan_layout_info l = { .struct_size = sizeof l };
  json_t *object = json_object();
  tn_plan_report_layout(report, i, &l, NULL);
  set_number(object, "segment", l.segment);
  set_number(object, "calls", l.calls);
  set_number(object, "arena_bytes", l.arena_bytes);
  set_number(object, "live_bytes", l.live_bytes);
  return object;
}

static json_t *json_list(const tn_plan_report *report, uint64_t n, json_t *(*make)(const tn_plan_report *, size_t))
{
  json_t *array = json_array();
  for (size_t i = 0; i < n; i++) tool_json_append(array, make(report, i));
  return array;
}

int plan_print_json(const plan_view *view)
{
  tn_plan_summary s = summary_of(view->after);
  json_t *object = json_object();
  tool_json_set(object, "model", tool_json_text(view->model));
  tool_json_set(object, "level", json_integer(s.level));
  tool_json_set(object, "fetches", json_names(view->fetches, view->n_fetches));
  tool_json_set(object, "targets", json_names(view->targets, view->n_targets));
  set_number(object, "graph_nodes", s.graph_nodes);
  set_number(object, "needed_nodes", s.needed_nodes);
  set_number(object, "nodes", s.nodes);
  set_number(object, "segments", s.segments);
  set_number(object, "constants", s.constants);
  set_number(object, "constant_bytes", s.constant_bytes);
  set_number(object, "packed", s.packed);
  set_number(object, "packed_bytes", s.packed_bytes);
  set_number(object, "held_bytes", s.held_bytes);
  set_number(object, "arena_bytes", s.arena_bytes);
  set_number(object, "live_bytes", s.live_bytes);
  tool_json_set(object, "passes", json_list(view->after, s.passes, json_pass));
  tool_json_set(object, "instructions", json_list(view->after, s.instructions, json_call));
  tool_json_set(object, "values", json_list(view->after, s.values, json_operand));
  tool_json_set(object, "layouts", json_list(view->after, s.layouts, json_layout));
  return tool_json_print(object);
}
