/* SPDX-License-Identifier: Apache-2.0 */
/* Roll, MatrixBandPart, ReverseSequence: elements that keep their shape. */
#include "ops/kernel/move.h"

#include <string.h>

/* ---- Roll: elements shifted out at one end are shifted in at the other ---- */

static tn_status plan_roll(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *shift = &n->inputs[1], *axes = &n->inputs[2];
  const gpu_element *t = gpu_element_of(gpu_moved_as(in->dtype));
  cl_long w[2 * GPU_MOVE_DIMS] = { 0 };
  int32_t r = in->rank;
  if (r < 1 || r > GPU_MOVE_DIMS) return gpu_decline(err, "rank %d, at most %d are walked", (int)r, GPU_MOVE_DIMS);
  if (in->count == 0) return gpu_node_done(n, err);
  for (int32_t d = 0; d < r; d++) w[d] = in->dims[d];
  for (int64_t k = 0; k < axes->count; k++) {
    int64_t axis = gpu_int_at(axes, k);
    if (axis < 0) axis += r;
    if (axis < 0 || axis >= r) return gpu_decline(err, "axis %lld of rank %d", (long long)axis, (int)r);
    int64_t by = (w[r + axis] + gpu_int_at(shift, k) % in->dims[axis]) % in->dims[axis];
    w[r + axis] = by < 0 ? by + in->dims[axis] : by;
  }
  gpu_launch *l = gpu_launch_file(n, "roll", "roll");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "%d", (int)r);
  gpu_define_places(l, in->count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, in->count, in->count);
  gpu_arg_bytes(l, w, 2 * (size_t)r * sizeof *w);
  gpu_range_1d(l, in->count, 64);
  return gpu_node_done(n, err);
}

/* ---- MatrixBandPart ---- */

static tn_status plan_band(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(in->dtype));
  int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
  int64_t lower = gpu_int_at(&n->inputs[1], 0), upper = gpu_int_at(&n->inputs[2], 0);
  if (lower > rows || upper > columns) return gpu_decline(err, "a band that is larger than the matrix");
  gpu_launch *l = gpu_launch_file(n, "roll", "band");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "1");
  gpu_define_places(l, in->count);
  gpu_arg_input(l, 0);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, in->count, in->count);
  gpu_arg_place(l, in->count, rows);
  gpu_arg_place(l, in->count, columns);
  gpu_arg_place(l, in->count, lower < 0 ? rows : lower);
  gpu_arg_place(l, in->count, upper < 0 ? columns : upper);
  gpu_range_1d(l, in->count, 64);
  return gpu_node_done(n, err);
}

/* ---- ReverseSequence: each row has its own length ---- */

static tn_status explain_length(const gpu_fault *f, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "ReverseSequence: length %lld is %lld, wanted [0, %lld]",
                      (long long)f->place, (long long)f->value, (long long)f->limit);
}

static tn_status plan_sequence(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0];
  const gpu_element *t = gpu_element_of(gpu_moved_as(in->dtype));
  int64_t seq = gpu_attr_int(n, "seq_dim", 0), batch = gpu_attr_int(n, "batch_dim", 0), steps[GPU_MOVE_DIMS];
  if (!gpu_strides(in->dims, in->rank, steps))
    return gpu_decline(err, "rank %d, at most %d are walked", (int)in->rank, GPU_MOVE_DIMS);
  if (in->count == 0) return gpu_decline(err, "rows without elements, whose lengths must still be checked");
  gpu_launch *l = gpu_launch_file(n, "roll", "reverse_sequence");
  gpu_define(l, "T", "%s", t->stored);
  gpu_define(l, "R", "1");
  gpu_define(l, "J", "%s", gpu_type(n->inputs[1].dtype));
  gpu_define_places(l, in->count);
  for (uint32_t i = 0; i < 2; i++) gpu_arg_input(l, i);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, in->count, in->count);
  gpu_arg_place(l, in->count, in->dims[seq]);
  gpu_arg_place(l, in->count, steps[seq]);
  gpu_arg_place(l, in->count, in->dims[batch]);
  gpu_arg_place(l, in->count, steps[batch]);
  gpu_arg_fault(l, explain_length, in->dims[seq]);
  gpu_range_1d(l, in->count, 64);
  return gpu_node_done(n, err);
}

extern const gpu_op gpu_roll_ops[];
const gpu_op gpu_roll_ops[] = {
  { "Roll", "T=" GPU_MOVED, plan_roll, .host_inputs = 3u << 1 },
  { "MatrixBandPart", "T=" GPU_MOVED, plan_band, .host_inputs = 3u << 1, .in_place = true },
  { "BatchMatrixBandPart", "T=" GPU_MOVED, plan_band, .host_inputs = 3u << 1, .in_place = true },
  { "ReverseSequence", "T=" GPU_MOVED ",Tlen=int32|int64", plan_sequence },
  { NULL },
};
