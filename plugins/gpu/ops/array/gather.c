/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherV2, GatherNd, OneHot. */
#include "ops/kernel/move.h"

enum { DEPTH = 8 }; /* numbers of an index of GatherNd; a node with more stays on the CPU */

/* Indices that planning knows need no look in the step. */
static bool are_known(const gpu_value *indices, int64_t size)
{
  for (int64_t i = 0; i < indices->count; i++)
    if (indices->host == NULL || gpu_int_at(indices, i) < 0 || gpu_int_at(indices, i) >= size) return false;
  return true;
}

static tn_status explain_index(const gpu_fault *f, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld of input 1 is %lld, wanted one in [0, %lld)",
                      (long long)f->place, (long long)f->value, (long long)f->limit);
}

static void check_indices(gpu_launch *l, const gpu_value *indices, int64_t size)
{
  if (are_known(indices, size)) return;
  gpu_define(l, "CHECKED", "1");
  gpu_arg_fault(l, explain_index, size);
}

static tn_status plan_gather(gpu_node *n, tn_error *err)
{
  const gpu_value *params = &n->inputs[0], *indices = &n->inputs[1], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(params->dtype));
  int64_t axis = n->n_inputs > 2 ? gpu_int_at(&n->inputs[2], 0) : 0, batches = gpu_attr_int(n, "batch_dims", 0);
  int64_t outer = 1, piece = 1, picks = 1;
  if (axis < 0) axis += params->rank;
  if (batches < 0) batches += indices->rank;
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
  check_indices(l, indices, params->dims[axis]);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

/* ---- GatherNd ---- */

/* The place is that of the number among all of the indices. */
static tn_status explain_nd(const gpu_fault *f, tn_error *err)
{
  const gpu_value *x = &f->inputs[1];
  int64_t depth = x->dims[x->rank - 1], d = f->place % depth;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld is %lld in dimension %d, wanted one in [0, %lld)",
                      (long long)(f->place / depth), (long long)f->value, (int)d, (long long)f->inputs[0].dims[d]);
}

static tn_status plan_gather_nd(gpu_node *n, tn_error *err)
{
  const gpu_value *params = &n->inputs[0], *indices = &n->inputs[1], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(params->dtype));
  int64_t depth = indices->dims[indices->rank - 1], piece = 1, picks = 1;
  int64_t places = params->count > out->count ? params->count : out->count;
  if (depth > DEPTH) return gpu_decline(err, "indices of %lld numbers, at most %d are walked", (long long)depth, DEPTH);
  for (int64_t d = depth; d < params->rank; d++) piece *= params->dims[d];
  for (int32_t d = 0; d + 1 < indices->rank; d++) picks *= indices->dims[d];
  if (out->count == 0 && picks > 0) return gpu_decline(err, "the result is empty, but indices must still be checked");
  bool ignores = gpu_attr_text_is(n, "bad_indices_policy", "IGNORE");
  gpu_launch *l = gpu_launch_file(n, "gather", "gather_nd");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "J", "%s", gpu_type(indices->dtype));
  gpu_define(l, "DEPTH", "%d", (int)depth);
  if (ignores) gpu_define(l, "IGNORES", "1");
  gpu_define_places(l, places);
  for (uint32_t i = 0; i < 2; i++) gpu_arg_input(l, i);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, places, out->count);
  gpu_arg_place(l, places, piece);
  for (int d = 0; d < DEPTH; d++) gpu_arg_place(l, places, d < depth ? params->dims[d] : 1);
  if (!ignores) gpu_arg_fault(l, explain_nd, 0);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

/* ---- OneHot ---- */

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
  { "GatherNd", "Tparams=" GPU_MOVED ",Tindices=int16|int32|int64", plan_gather_nd },
  { "OneHot", "T=" GPU_MOVED ",TI=uint8|int8|int32|int64", plan_one_hot, .host_inputs = 1u << 1 },
  { NULL },
};
