/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of places as batches and back: SpaceToBatch, SpaceToBatchND, BatchToSpace, BatchToSpaceND. */
#include "ops/kernel/move.h"

#include <string.h>

enum { AXES = 8 }; /* that have blocks */

/* One side is the space [batch, sizes..., rest], the other [places of a block x batch, cells..., rest]. */
static tn_status plan_batches(gpu_node *n, tn_error *err)
{
  const char *op = tn_operation_type(n->op);
  bool to_batch = op[0] == 'S', nd = strcmp(op + strlen(op) - 2, "ND") == 0;
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0], *space = to_batch ? in : out,
                  *cells = to_batch ? out : in;
  const gpu_value *pads = &n->inputs[nd ? 2 : 1];
  const gpu_element *t = gpu_element_of(gpu_moved_as(in->dtype));
  int64_t axes = nd ? n->inputs[1].count : 2, rest = 1, count = in->count > out->count ? in->count : out->count;
  cl_long w[4 * AXES];
  if (axes > AXES) return gpu_decline(err, "%lld axes with blocks, at most %d are walked", (long long)axes, AXES);
  if (axes < 1) {
    gpu_copy(n, 0, 0);
    return gpu_node_done(n, err);
  }
  for (int64_t d = axes + 1; d < in->rank; d++) rest *= in->dims[d];
  for (int64_t d = 0; d < axes; d++) {
    w[d] = nd ? gpu_int_at(&n->inputs[1], d) : gpu_attr_int(n, "block_size", 1);
    w[axes + d] = gpu_int_at(pads, 2 * d);
    w[2 * axes + d] = space->dims[d + 1];
    w[3 * axes + d] = cells->dims[d + 1];
  }
  gpu_launch *l = gpu_launch_file(n, "batches", to_batch ? "to_batches" : "to_space");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "M", "%d", (int)axes);
  gpu_define_places(l, count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, count, out->count);
  gpu_arg_place(l, count, space->dims[0]);
  gpu_arg_place(l, count, rest);
  gpu_arg_bytes(l, w, 4 * (size_t)axes * sizeof *w);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_batches_ops[];
const gpu_op gpu_batches_ops[] = {
  { "SpaceToBatch", "T=" GPU_MOVED, plan_batches, .host_inputs = 1u << 1 },
  { "SpaceToBatchND", "T=" GPU_MOVED, plan_batches, .host_inputs = 3u << 1 },
  { "BatchToSpace", "T=" GPU_MOVED, plan_batches, .host_inputs = 1u << 1 },
  { "BatchToSpaceND", "T=" GPU_MOVED, plan_batches, .host_inputs = 3u << 1 },
  { NULL },
};
