/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and kernels outside any step: what folds constants, and what follows from shapes. */
#include <core/exec/exec.h>

/* Lays the one operation out, which says how large its outputs are before they are made. */
static tn_status check_size(tn_plan *plan, tn_tensor *const *inputs, uint64_t max_bytes, tn_error *err)
{
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
  for (uint32_t i = 0; bytes <= max_bytes && i < layout->n_slots; i++)
    if (plan->values[layout->slots[i].value].kind == TN_VALUE_COMPUTED) bytes += layout->slots[i].bytes;
  tn__layout_unref(layout);
  return bytes <= max_bytes ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "the outputs are too large to keep");
}

tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, uint64_t max_bytes, tn_error *err)
{
  const tn__signature_spec spec = { .n_feeds = n_inputs, .n_fetches = n_outputs, .max_layouts = 1 };
  tn_tensor *room = n_outputs == 1 ? outputs[0] : NULL;
  for (size_t i = 0; i < n_outputs; i++) outputs[i] = NULL;
  tn_plan *plan;
  tn_status st = tn__plan_operation(op, &spec, &plan, err);
  if (st != TN_OK) return st;
  tn_step step = { .inputs = inputs, .outputs = outputs, .given = room == NULL ? NULL : &room, .n_inputs = n_inputs,
                   .n_outputs = n_outputs };
  st = check_size(plan, inputs, max_bytes, err);
  if (st == TN_OK) st = tn__run_plan(plan, &step, err);
  if (st == TN_OK && room != NULL) outputs[0] = room;
  tn__plan_unref(plan);
  return st;
}

tn_status tn__call_kernel(const tn__plan_kernel *kernel, const void *shape_state, tn_view *const *inputs,
                          uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs, void *scratch, tn_error *err)
{
  tn_step step = { 0 };
  tn_error local = TN_ERROR_INIT;
  tn__call call = { .ctx = { .struct_size = sizeof call.ctx, .state = kernel->state, .shape_state = shape_state,
                             .scratch = scratch, .inputs = inputs, .outputs = outputs, .n_inputs = n_inputs,
                             .n_outputs = n_outputs, .err = err != NULL ? err : &local, .step = &step } };
  tn_status st = kernel->def->compute(&call.ctx);
  tn_error_clear(&local);
  return st;
}
