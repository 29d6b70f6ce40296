/* SPDX-License-Identifier: Apache-2.0 */
/* Fill, ZerosLike, OnesLike, Range. */
#include "ops/elementwise/elementwise.h"

#include <string.h>

static tn_status plan_fill(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  (void)gpu_ew_begin(&e, n, 0, err);
  uint32_t x = gpu_ew_input_as(&e, 1, NULL, 0, err);
  e.dtype = e.result = e.args[0].dtype = gpu_moved_as(n->outputs[0].dtype);
  gpu_ew_step_of(&e, gpu_step_find("Identity", 8), x, 0, 0, err);
  return gpu_ew_end(&e, err);
}

static tn_status plan_like(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  bool ones = strcmp(tn_operation_type(n->op), "OnesLike") == 0;
  (void)gpu_ew_begin(&e, n, 0, err);
  if (!ones) e.dtype = e.result = gpu_moved_as(n->outputs[0].dtype);
  gpu_ew_text_step(&e, ones ? "(V)1" : "(V)0", 0, err);
  return gpu_ew_end(&e, err);
}

/* start + place * delta */
static tn_status plan_range(gpu_node *n, tn_error *err)
{
  const gpu_value *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(out->dtype);
  gpu_launch *l = gpu_launch_file(n, "fill", "range");
  gpu_define_elements(l, "", out->dtype);
  gpu_define(l, "W", "%s", t->kind == GPU_FLOATING ? t->computed : "ulong");
  gpu_define_places(l, out->count);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 2);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, out->count, out->count);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

#define NUMBERS GPU_FLOATS "|" GPU_INTEGERS

extern const gpu_op gpu_fill_ops[];
const gpu_op gpu_fill_ops[] = {
  { "Fill", "T=" GPU_MOVED, plan_fill, .host_inputs = 1u << 0 },
  { "ZerosLike", "T=" GPU_MOVED, plan_like },
  { "OnesLike", "T=" NUMBERS "|bool", plan_like },
  { "Range", "Tidx=" GPU_FLOATS "|int8|int16|int32|int64|uint16|uint32|uint64", plan_range },
  { NULL },
};
