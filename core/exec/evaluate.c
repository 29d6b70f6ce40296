/* SPDX-License-Identifier: Apache-2.0 */
/* One operation at once, outside any session: what folds constants. */
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
