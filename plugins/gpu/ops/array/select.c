/* SPDX-License-Identifier: Apache-2.0 */
/* Select, SelectV2 and ClipByValue. */
#include "ops/elementwise/elementwise.h"

#include <string.h>

/* Elements are moved as they are. A vector of conditions of Select is one for each row. */
static tn_status plan_select(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  const gpu_value *out = &n->outputs[0], *c = &n->inputs[0];
  bool rows = strcmp(tn_operation_type(n->op), "Select") == 0 && c->rank == 1 && out->rank > 1;
  (void)gpu_ew_begin(&e, n, 0, err);
  uint32_t at[3] = { 0 };
  if (rows && e.status == TN_OK) {
    e.args[e.n_args++] = (gpu_ew_arg){ .dtype = TN_BOOL, .input = 0, .n_inputs = 1, .strides = { c->count != 1 } };
  } else {
    at[0] = gpu_ew_input(&e, 0, err);
  }
  for (uint32_t i = 1; i < 3; i++) at[i] = gpu_ew_input(&e, i, err);
  e.dtype = e.result = e.args[1].dtype = e.args[2].dtype = gpu_moved_as(out->dtype);
  gpu_ew_step_of(&e, gpu_step_find("SelectV2", 8), at[0], at[1], at[2], err);
  return gpu_ew_end(&e, err);
}

extern const gpu_op gpu_select_ops[];
const gpu_op gpu_select_ops[] = {
  { "Select", "T=" GPU_MOVED, plan_select, .in_place = true },
  { "SelectV2", "T=" GPU_MOVED, plan_select, .in_place = true },
  { "ClipByValue", "T=" GPU_FLOATS "|int8|int16|int32|int64|uint8|uint16", gpu_plan_step, .in_place = true },
  { NULL },
};
