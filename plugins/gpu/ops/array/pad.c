/* SPDX-License-Identifier: Apache-2.0 */
/* Pad, PadV2, MirrorPad. */
#include "ops/kernel/move.h"

#include <string.h>

typedef struct borders {
  int32_t rank;
  int64_t dims[GPU_MOVE_DIMS], from[GPU_MOVE_DIMS], before[GPU_MOVE_DIMS], size[GPU_MOVE_DIMS];
} borders;

/* Dimensions without a border are merged with those before them. */
static void read_borders(const gpu_node *n, borders *b)
{
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  int64_t strides[GPU_MOVE_DIMS];
  (void)gpu_strides(in->dims, in->rank, strides);
  for (int32_t d = 0; d < in->rank; d++) {
    bool whole = out->dims[d] == in->dims[d];
    bool joins = b->rank > 0 && whole && b->dims[b->rank - 1] == b->size[b->rank - 1];
    int32_t at = joins ? b->rank - 1 : b->rank++;
    b->dims[at] = joins ? b->dims[at] * out->dims[d] : out->dims[d];
    b->size[at] = joins ? b->size[at] * in->dims[d] : in->dims[d];
    b->before[at] = joins ? 0 : gpu_int_at(&n->inputs[1], 2 * d);
    b->from[at] = strides[d];
  }
  if (b->rank > 0) return;
  b->dims[0] = b->size[0] = b->from[0] = b->rank = 1;
}

static int mode_of(const gpu_node *n)
{
  if (strcmp(tn_operation_type(n->op), "MirrorPad") != 0) return 0;
  return gpu_attr_text_is(n, "mode", "REFLECT") ? 1 : 2;
}

static tn_status plan_pad(gpu_node *n, tn_error *err)
{
  borders b = { 0 };
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(out->dtype));
  if (in->rank > GPU_MOVE_DIMS || t == NULL)
    return gpu_decline(err, "rank %d, at most %d are walked", (int)in->rank, GPU_MOVE_DIMS);
  if (out->count == 0) return gpu_node_done(n, err);
  read_borders(n, &b);
  int mode = mode_of(n);
  bool zero = mode == 0 && n->n_inputs < 3;
  gpu_launch *l = gpu_launch_file(n, "move", "pad");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "%d", (int)b.rank);
  gpu_define(l, "MODE", "%d", mode);
  if (zero) gpu_define(l, "ZERO", "1");
  gpu_define_places(l, out->count);
  gpu_arg_input(l, 0);
  if (mode == 0 && !zero) gpu_arg_input(l, 2);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, out->count, out->count);
  cl_long w[4 * GPU_MOVE_DIMS];
  size_t r = (size_t)b.rank;
  for (size_t d = 0; d < r; d++) {
    w[d] = b.dims[d];
    w[r + d] = b.from[d];
    w[2 * r + d] = b.before[d];
    w[3 * r + d] = b.size[d];
  }
  gpu_arg_bytes(l, w, 4 * r * sizeof *w);
  gpu_range_1d(l, out->count, 64);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_pad_ops[];
const gpu_op gpu_pad_ops[] = {
  { "Pad", "T=" GPU_MOVED, plan_pad, .host_inputs = 1u << 1 },
  { "PadV2", "T=" GPU_MOVED, plan_pad, .host_inputs = 1u << 1 },
  { "MirrorPad", "T=" GPU_MOVED, plan_pad, .host_inputs = 1u << 1 },
  { NULL },
};
