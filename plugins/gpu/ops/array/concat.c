/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors side by side: programs that take over what they read. */
#include "ops/elementwise/elementwise.h"

#include <string.h>

/* The result as rows of the dimensions after the axis; each row is the inputs, one after the other. */
static tn_status plan_rows(gpu_node *n, uint32_t first, uint32_t n_parts, int32_t axis, tn_error *err)
{
  gpu_ew e;
  const gpu_value *out = &n->outputs[0];
  int64_t rows = 1;
  gpu_value flat = *out;
  for (int32_t d = 0; d < axis; d++) rows *= out->dims[d];
  const int64_t dims[2] = { rows, rows > 0 ? out->count / rows : 0 };
  if (out->count == 0) return gpu_node_done(n, err);
  flat.dims = dims;
  flat.rank = 2;
  (void)gpu_ew_begin_as(&e, n, 0, &flat, err);
  uint32_t x = n_parts > 1 ? gpu_ew_joined(&e, first, n_parts, dims, 2, err) : gpu_ew_input_as(&e, first, dims, 2, err);
  e.dtype = e.result = e.args[0].dtype = gpu_moved_as(out->dtype);
  gpu_ew_step_of(&e, gpu_step_find("Identity", 8), x, 0, 0, err);
  return gpu_ew_end(&e, err);
}

static int32_t axis_of(int64_t axis, int32_t rank) { return (int32_t)(axis < 0 ? axis + rank : axis); }

static int64_t int_at(const gpu_value *v)
{
  return v->dtype == TN_INT64 ? *(const int64_t *)v->host : *(const int32_t *)v->host;
}

static tn_status plan_concat(gpu_node *n, tn_error *err)
{
  bool in_front = strcmp(tn_operation_type(n->op), "Concat") == 0;
  const gpu_value *axis = &n->inputs[in_front ? 0 : n->n_inputs - 1];
  if (axis->host == NULL) return gpu_decline(err, "the axis is not known");
  return plan_rows(n, in_front, n->n_inputs - 1, axis_of(int_at(axis), n->outputs[0].rank), err);
}

static tn_status plan_pack(gpu_node *n, tn_error *err)
{
  return plan_rows(n, 0, n->n_inputs, axis_of(gpu_attr_int(n, "axis", 0), n->outputs[0].rank), err);
}

extern const gpu_op gpu_concat_ops[];
const gpu_op gpu_concat_ops[] = {
  { "ConcatV2", "T=" GPU_MOVED, plan_concat },
  { "Concat", "T=" GPU_MOVED, plan_concat, .host_inputs = 1u << 0 },
  { "Pack", "T=" GPU_MOVED, plan_pack },
  { NULL },
};
