/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and kernels outside any step: for constant folding, and for values that follow from
 * shapes. An operation runs as a plan of its own, with a step that belongs to no session. */
#include <core/exec/evaluate.h>
#include <core/exec/compute.h>
#include <core/exec/run.h>
#include <core/compile/compile.h>
#include <core/exec/step/step.h>

#define UNKNOWN_NS 1e6   /* assumed for a kernel that gives no cost */
/* An evaluation is stopped after LATE times its estimated time plus LATE_NS: then the estimate was
 * wrong. */
#define LATE 20
#define LATE_NS 50000000

/* Checks size and time against the limits before anything is computed, by making the layout of the
 * one operation. *ns: its estimated time. */
static tn_status check_cost(tn_plan *plan, tn_tensor *const *inputs, tn__evaluate_limits *limits, double *ns,
                            tn_error *err)
{
  *ns = UNKNOWN_NS;
  if (plan->n_segments != 1) return TN_OK;
  tn__segment *s = &plan->segments[0];
  tn__entry *entries = tn__alloc_array((size_t)s->n_entries + 1, sizeof *entries);
  if (entries == NULL) return tn__no_memory(err, "layout", 0);
  for (uint32_t i = 0; i < s->n_entries; i++) {
    const tn_tensor *t = inputs[plan->values[s->entries[i]].index];
    entries[i] = (tn__entry){ .dims = t->dims, .rank = t->rank, .count = t->count, .data = t->data };
  }
  tn__layout *layout;
  tn_status st = tn__layout_get(plan, s, entries, &layout, err);
  tn__free(entries, ((size_t)s->n_entries + 1) * sizeof *entries);
  if (st != TN_OK) return st;
  uint64_t bytes = 0;
  for (uint32_t i = 0; bytes <= limits->bytes && i < layout->n_slots; i++)
    if (plan->values[layout->slots[i].value].kind == TN_VALUE_COMPUTED) bytes += layout->slots[i].bytes;
  if (layout->cost_ns > 0) *ns = layout->cost_ns;
  tn__layout_unref(layout);
  if (bytes > limits->bytes) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the outputs are too large to keep");
  if (*ns <= limits->ns) return TN_OK;
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the operation would take too long to compute in advance");
}

/* The step stops when this thread's preparation is to stop (tn__stop_now), and when it takes much
 * longer than estimated. ns: the estimate, 0 = none. */
static void limit_step(tn_step *step, double ns)
{
  const tn__stop *stop = tn__stop_now;
  if (stop != NULL) {
    step->closed = stop->closed;
    step->cancellation = tn__stop_cancellation(stop);
    step->deadline_ns = stop->deadline_ns;
  }
  if (ns <= 0) return;
  int64_t late = tn__now_ns() + LATE_NS + (int64_t)(LATE * ns);
  if (step->deadline_ns == 0 || late < step->deadline_ns) step->deadline_ns = late;
}

static tn_status evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                          size_t n_outputs, bool reproducible, tn__evaluate_limits *limits, tn_error *err)
{
  const tn__signature_spec spec = { .n_feeds = n_inputs, .n_fetches = n_outputs, .max_layouts = 1,
                                    .reproducible = reproducible };
  tn_tensor *room = n_outputs == 1 ? outputs[0] : NULL;
  for (size_t i = 0; i < n_outputs; i++) outputs[i] = NULL;
  tn_plan *plan;
  tn_status st = tn__plan_operation(op, &spec, &plan, err);
  if (st != TN_OK) return st;
  tn_step step = { .inputs = inputs, .outputs = outputs, .given = room == NULL ? NULL : &room, .n_inputs = n_inputs,
                   .n_outputs = n_outputs };
  double ns = 0;
  if (limits != NULL) st = check_cost(plan, inputs, limits, &ns, err);
  if (limits != NULL && st == TN_OK) limits->ns -= ns;
  limit_step(&step, ns);
  if (st == TN_OK) st = tn__run_plan(plan, &step, err);
  if (st == TN_OK && room != NULL) outputs[0] = room;
  tn__plan_unref(plan);
  return st;
}

tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, tn__evaluate_limits *limits, tn_error *err)
{
  return evaluate(op, inputs, n_inputs, outputs, n_outputs, false, limits, err);
}

tn_status tn__evaluate_reproducible(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs,
                                    tn_tensor **outputs, size_t n_outputs, tn__evaluate_limits *limits, tn_error *err)
{
  return evaluate(op, inputs, n_inputs, outputs, n_outputs, true, limits, err);
}

tn_status tn__call_kernel(const tn_plan *plan, const tn__plan_kernel *kernel, const void *shape_state,
                          tn_view *const *inputs, uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs,
                          void *scratch, tn_error *err)
{
  tn_step step = { 0 };
  limit_step(&step, 0);
  tn_error local = TN_ERROR_INIT;
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .state = kernel->state, .shape_state = shape_state,
                             .scratch = scratch, .inputs = inputs, .outputs = outputs, .n_inputs = n_inputs,
                             .n_outputs = n_outputs, .reproducible = plan->settings.reproducible,
                             .err = err != NULL ? err : &local, .step = &step } };
  tn__plugin_call calling = tn__kernel_call(kernel, NULL, "compute of a kernel");
  tn__plugin_call_enter(&calling);
  tn_status st = kernel->def->compute(&call.ctx);
  tn__plugin_call_leave(&calling);
  tn_error_clear(&local);
  return st;
}
