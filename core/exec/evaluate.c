/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and kernels outside any step: what folds constants, and what follows from shapes. */
#include <core/exec/exec.h>

tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, tn_error *err)
{
  const tn__signature_spec spec = { .n_feeds = n_inputs, .n_fetches = n_outputs, .max_layouts = 1 };
  for (size_t i = 0; i < n_outputs; i++) outputs[i] = NULL;
  tn_plan *plan;
  tn_status st = tn__plan_operation(op, &spec, &plan, err);
  if (st != TN_OK) return st;
  tn_step step = { .inputs = inputs, .outputs = outputs, .n_inputs = n_inputs, .n_outputs = n_outputs };
  st = tn__run_plan(plan, &step, err);
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
