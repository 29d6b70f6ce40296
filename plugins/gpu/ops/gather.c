/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherV2, OneHot. */
#include "move.h"

#include <string.h>

/* An index that is none is an error, which only the CPU can say: indices must be known. */
static tn_status check_indices(const gpu_value *indices, int64_t size, tn_error *err)
{
  if (indices->count == 0) return TN_OK;
  if (indices->host == NULL) return gpu_decline(err, "its indices are not known beforehand");
  for (int64_t i = 0; i < indices->count; i++)
    if (gpu_int_at(indices, i) < 0 || gpu_int_at(indices, i) >= size)
      return gpu_decline(err, "index %lld is outside", (long long)i);
  return TN_OK;
}

static tn_status plan_gather(gpu_node *n, tn_error *err)
{
  const gpu_value *params = &n->inputs[0], *indices = &n->inputs[1], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(params->dtype));
  int64_t axis = n->n_inputs > 2 ? gpu_int_at(&n->inputs[2], 0) : 0, batches = gpu_attr_int(n, "batch_dims", 0);
  int64_t outer = 1, piece = 1, picks = 1;
  if (axis < 0) axis += params->rank;
  if (batches < 0) batches += indices->rank;
  tn_status st = check_indices(indices, params->dims[axis], err);
  if (st != TN_OK) return st;
  for (int64_t d = batches; d < axis; d++) outer *= params->dims[d];
  for (int64_t d = axis + 1; d < params->rank; d++) piece *= params->dims[d];
  for (int64_t d = batches; d < indices->rank; d++) picks *= indices->dims[d];
  int64_t places = params->count > out->count ? params->count : out->count;
  gpu_launch *l = gpu_launch_file(n, "gather", "gather");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "J", "%s", gpu_type(indices->dtype));
  gpu_define_places(l, places);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 1);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, places, out->count);
  gpu_arg_place(l, places, piece);
  gpu_arg_place(l, places, picks);
  gpu_arg_place(l, places, outer);
  gpu_arg_place(l, places, params->dims[axis]);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

static tn_status plan_one_hot(gpu_node *n, tn_error *err)
{
  const gpu_value *indices = &n->inputs[0], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(out->dtype));
  int64_t axis = gpu_attr_int(n, "axis", -1), after = 1;
  if (axis < 0) axis = indices->rank;
  for (int64_t d = axis; d < indices->rank; d++) after *= indices->dims[d];
  gpu_launch *l = gpu_launch_file(n, "gather", "one_hot");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "J", "%s", gpu_type(indices->dtype));
  gpu_define_places(l, out->count);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, 2);
  gpu_arg_input(l, 3);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, out->count, out->count);
  gpu_arg_place(l, out->count, out->dims[axis]);
  gpu_arg_place(l, out->count, after);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_gather_ops[];
const gpu_op gpu_gather_ops[] = {
  { "Gather", "Tparams=" GPU_MOVED ",Tindices=int32|int64", plan_gather },
  { "GatherV2", "Tparams=" GPU_MOVED ",Tindices=int16|int32|int64", plan_gather, .host_inputs = 1u << 2 },
  { "OneHot", "T=" GPU_MOVED ",TI=uint8|int8|int32|int64", plan_one_hot, .host_inputs = 1u << 1 },
  { NULL },
};
