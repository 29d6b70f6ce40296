/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose result has the elements of their input at other places: transposed, cut out, split, repeated, turned
 * over. */
#include "ops/elementwise/elementwise.h"
#include "ops/kernel/move.h"

#include <string.h>

static int32_t axis_of(int64_t axis, int32_t rank) { return (int32_t)(axis < 0 ? axis + rank : axis); }

static tn_status too_many(const gpu_value *v, tn_error *err)
{
  return gpu_decline(err, "rank %d, at most %d are walked", (int)v->rank, GPU_MOVE_DIMS);
}

/* Strides of input and output, both of at most `more` fewer dimensions than a walk has. */
static bool both_strides(const gpu_value *in, const gpu_value *out, int32_t more, int64_t *from, int64_t *to)
{
  return in->rank + more <= GPU_MOVE_DIMS && out->rank + more <= GPU_MOVE_DIMS &&
         gpu_strides(in->dims, in->rank, from) && gpu_strides(out->dims, out->rank, to);
}

/* ---- Transpose ---- */

static tn_status plan_transpose(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  int64_t from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  gpu_move m = { 0 };
  if (!both_strides(in, out, 0, from, to)) return too_many(in, err);
  for (int32_t d = 0; d < out->rank; d++)
    gpu_move_add(&m, out->dims[d], from[axis_of(gpu_int_at(&n->inputs[1], d), in->rank)], to[d]);
  gpu_move_launch(n, &m, 0, 0);
  return gpu_node_done(n, err);
}

/* ---- Slice, StridedSlice and its gradient ---- */

static tn_status plan_slice(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  int64_t from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  gpu_move m = { 0 };
  if (!both_strides(in, out, 0, from, to)) return too_many(in, err);
  for (int32_t d = 0; d < out->rank; d++) {
    m.from_at += gpu_int_at(&n->inputs[1], d) * from[d];
    gpu_move_add(&m, out->dims[d], from[d], to[d]);
  }
  gpu_move_launch(n, &m, 0, 0);
  return gpu_node_done(n, err);
}

/* Python's brackets, entry by entry. */
typedef struct brackets {
  const int64_t *whole, *part; /* dims of what is cut, and of what is cut out */
  gpu_move m;
  int64_t from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  int32_t in_at, out_at;
} brackets;

/* Dimensions that are taken whole. */
static void take_whole(brackets *b, int32_t end)
{
  for (; b->in_at < end; b->in_at++, b->out_at++)
    gpu_move_add(&b->m, b->whole[b->in_at], b->from[b->in_at], b->to[b->out_at]);
}

static int64_t within(int64_t n, int64_t low, int64_t high)
{
  if (n < low) return low;
  return n > high ? high : n;
}

static void take(brackets *b, int64_t begin, int64_t step, bool from_start, bool shrink)
{
  int64_t whole = b->whole[b->in_at], low = step > 0 ? 0 : -1, high = step > 0 ? whole : whole - 1;
  if (begin < 0) begin += whole;
  if (!shrink) begin = within(begin, low, high);
  if (!shrink && from_start) begin = step > 0 ? low : high;
  b->m.from_at += begin * b->from[b->in_at];
  if (!shrink) {
    gpu_move_add(&b->m, b->part[b->out_at], step * b->from[b->in_at], b->to[b->out_at]);
    b->out_at++;
  }
  b->in_at++;
}

/* Inputs 1 and 3 are where each bracket begins and its steps: the walk from what is cut to what is cut out. */
static tn_status read_brackets(const gpu_node *n, brackets *b, const gpu_value *whole, const gpu_value *part,
                               tn_error *err)
{
  const gpu_value *begin = &n->inputs[1];
  b->whole = whole->dims;
  b->part = part->dims;
  if (!both_strides(whole, part, 0, b->from, b->to)) return too_many(whole, err);
  uint64_t ellipsis = (uint64_t)gpu_attr_int(n, "ellipsis_mask", 0),
           added = (uint64_t)gpu_attr_int(n, "new_axis_mask", 0);
  uint64_t starts = (uint64_t)gpu_attr_int(n, "begin_mask", 0),
           shrunk = (uint64_t)gpu_attr_int(n, "shrink_axis_mask", 0);
  if (begin->count > 31) return gpu_decline(err, "more brackets than masks have bits");
  for (int64_t i = 0; i < begin->count; i++) {
    if (ellipsis >> i & 1) {
      int32_t behind = 0;
      for (int64_t k = i + 1; k < begin->count; k++) behind += (added >> k & 1) == 0;
      take_whole(b, whole->rank - behind);
    } else if (added >> i & 1) {
      b->out_at++;
    } else {
      take(b, gpu_int_at(begin, i), gpu_int_at(&n->inputs[3], i), starts >> i & 1, shrunk >> i & 1);
    }
  }
  take_whole(b, whole->rank);
  return TN_OK;
}

static tn_status plan_strided_slice(gpu_node *n, tn_error *err)
{
  brackets b = { 0 };
  if (n->outputs[0].count == 0) return gpu_node_done(n, err);
  tn_status st = read_brackets(n, &b, &n->inputs[0], &n->outputs[0], err);
  if (st != TN_OK) return st;
  gpu_move_launch(n, &b.m, 0, 0);
  return gpu_node_done(n, err);
}

/* The same walk in the other direction; elements that the slice left out are 0. */
static tn_status plan_strided_slice_grad(gpu_node *n, tn_error *err)
{
  brackets b = { 0 };
  const gpu_value *dy = &n->inputs[4], *out = &n->outputs[0];
  if (dy->count < out->count) gpu_clear(n, 0);
  if (dy->count == 0) return gpu_node_done(n, err);
  tn_status st = read_brackets(n, &b, out, dy, err);
  if (st != TN_OK) return st;
  gpu_move back = { .rank = b.m.rank, .to_at = b.m.from_at };
  memcpy(back.dims, b.m.dims, sizeof back.dims);
  memcpy(back.from, b.m.to, sizeof back.from);
  memcpy(back.to, b.m.from, sizeof back.to);
  gpu_move_launch(n, &back, 4, 0);
  return gpu_node_done(n, err);
}

/* ---- Split, SplitV, Unpack: each output is a slice ---- */

static tn_status plan_parts(gpu_node *n, uint32_t input, int64_t axis_wanted, bool unpacks, tn_error *err)
{
  const gpu_value *in = &n->inputs[input];
  int32_t axis = axis_of(axis_wanted, in->rank);
  int64_t outer = 1, inner = 1, at = 0;
  for (int32_t d = 0; d < in->rank; d++)
    if (d != axis) *(d < axis ? &outer : &inner) *= in->dims[d];
  for (uint32_t i = 0; i < n->n_outputs; i++) {
    int64_t row = (unpacks ? 1 : n->outputs[i].dims[axis]) * inner;
    gpu_move m = { .from_at = at };
    gpu_move_add(&m, outer, in->dims[axis] * inner, row);
    gpu_move_add(&m, row, 1, 1);
    gpu_move_launch(n, &m, input, i);
    at += row;
  }
  return gpu_node_done(n, err);
}

static tn_status plan_split(gpu_node *n, tn_error *err)
{
  return plan_parts(n, 1, gpu_int_at(&n->inputs[0], 0), false, err);
}
static tn_status plan_split_v(gpu_node *n, tn_error *err)
{
  return plan_parts(n, 0, gpu_int_at(&n->inputs[2], 0), false, err);
}
static tn_status plan_unpack(gpu_node *n, tn_error *err)
{
  return plan_parts(n, 0, gpu_attr_int(n, "axis", 0), true, err);
}

/* ---- Reverse, ReverseV2 ---- */

static tn_status plan_reverse(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *axes = &n->inputs[1];
  int64_t from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  bool turned[GPU_MOVE_DIMS] = { false };
  gpu_move m = { 0 };
  if (!both_strides(in, in, 0, from, to)) return too_many(in, err);
  for (int64_t k = 0; k < axes->count; k++) {
    if (axes->dtype == TN_BOOL) turned[k] = ((const uint8_t *)axes->host)[k] != 0;
    else turned[axis_of(gpu_int_at(axes, k), in->rank)] = true;
  }
  for (int32_t d = 0; d < in->rank; d++) {
    if (turned[d]) m.from_at += (in->dims[d] - 1) * from[d];
    gpu_move_add(&m, in->dims[d], turned[d] ? -from[d] : from[d], to[d]);
  }
  gpu_move_launch(n, &m, 0, 0);
  return gpu_node_done(n, err);
}

/* ---- Tile, BroadcastTo ---- */

/* Each dimension is one of repetitions with one of elements in it. */
static tn_status plan_tile(gpu_node *n, tn_error *err)
{
  const gpu_value *in = &n->inputs[0], *out = &n->outputs[0];
  int64_t from[GPU_MOVE_DIMS], to[GPU_MOVE_DIMS];
  gpu_move m = { 0 };
  if (out->count == 0) return gpu_node_done(n, err);
  if (2 * in->rank > GPU_MOVE_DIMS || !both_strides(in, out, 0, from, to)) return too_many(in, err);
  for (int32_t d = 0; d < in->rank; d++) {
    gpu_move_add(&m, out->dims[d] / in->dims[d], 0, to[d] * in->dims[d]);
    gpu_move_add(&m, in->dims[d], from[d], to[d]);
  }
  gpu_move_launch(n, &m, 0, 0);
  return gpu_node_done(n, err);
}

static tn_status plan_broadcast(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  (void)gpu_ew_begin(&e, n, 0, err);
  uint32_t x = gpu_ew_input(&e, 0, err);
  e.dtype = e.result = e.args[0].dtype = gpu_moved_as(n->outputs[0].dtype);
  gpu_ew_step_of(&e, gpu_step_find("Identity", 8), x, 0, 0, err);
  return gpu_ew_end(&e, err);
}

/* ---- SpaceToDepth, DepthToSpace ---- */

/* Both are a walk over [batch, height, block, width, block, depth]: the small image has its blocks in the channels. */
static tn_status plan_blocks(gpu_node *n, tn_error *err)
{
  bool to_depth = strcmp(tn_operation_type(n->op), "SpaceToDepth") == 0;
  bool first = gpu_attr_text_is(n, "data_format", "NCHW");
  if (n->inputs[0].rank != 4 || (!first && !gpu_attr_text_is(n, "data_format", "NHWC")))
    return gpu_decline(err, "data_format is neither NHWC nor NCHW");
  const int64_t *deep = to_depth ? n->outputs[0].dims : n->inputs[0].dims;
  int64_t b = gpu_attr_int(n, "block_size", 1), batch = deep[0], h = deep[first ? 2 : 1], w = deep[first ? 3 : 2];
  int64_t all = deep[first ? 1 : 3], c = all / (b * b), image = h * w * all;
  /* Elements from one place to the next: of rows, blocks' rows, columns, blocks' columns, channels. */
  int64_t small[5] = { w * all, b * c, all, c, 1 }, large[5] = { b * w * b * c, w * b * c, b * c, c, 1 };
  if (first) {
    int64_t s[5] = { w, b * c * h * w, 1, c * h * w, h * w }, l[5] = { b * w * b, w * b, b, 1, h * b * w * b };
    memcpy(small, s, sizeof s);
    memcpy(large, l, sizeof l);
  }
  const int64_t sizes[5] = { h, b, w, b, c };
  gpu_move m = { 0 };
  gpu_move_add(&m, batch, image, image);
  for (int d = 0; d < 5; d++)
    gpu_move_add(&m, sizes[d], to_depth ? large[d] : small[d], to_depth ? small[d] : large[d]);
  gpu_move_launch(n, &m, 0, 0);
  return gpu_node_done(n, err);
}

/* ---- the same elements in another shape ---- */

static tn_status plan_same(gpu_node *n, tn_error *err)
{
  gpu_copy(n, 0, 0);
  return gpu_node_done(n, err);
}

#define SAME_OP(op, hosts) { op, "T=" GPU_MOVED, plan_same, .host_inputs = hosts, .in_place = true }

extern const gpu_op gpu_move_ops[];
const gpu_op gpu_move_ops[] = {
  { "Transpose", "T=" GPU_MOVED, plan_transpose, .host_inputs = 1u << 1 },
  { "ConjugateTranspose", "T=" GPU_FLOATS "|" GPU_INTEGERS "|bool", plan_transpose, .host_inputs = 1u << 1 },
  { "Slice", "T=" GPU_MOVED, plan_slice, .host_inputs = 3u << 1 },
  { "StridedSlice", "T=" GPU_MOVED, plan_strided_slice, .host_inputs = 7u << 1 },
  { "StridedSliceGrad", "T=" GPU_MOVED, plan_strided_slice_grad, .host_inputs = 15u },
  { "Split", "T=" GPU_MOVED, plan_split, .host_inputs = 1u << 0 },
  { "SplitV", "T=" GPU_MOVED, plan_split_v, .host_inputs = 3u << 1 },
  { "Unpack", "T=" GPU_MOVED, plan_unpack },
  { "Reverse", "T=" GPU_MOVED, plan_reverse, .host_inputs = 1u << 1 },
  { "ReverseV2", "T=" GPU_MOVED, plan_reverse, .host_inputs = 1u << 1 },
  { "Tile", "T=" GPU_MOVED, plan_tile, .host_inputs = 1u << 1 },
  { "BroadcastTo", "T=" GPU_MOVED, plan_broadcast, .host_inputs = 1u << 1 },
  { "SpaceToDepth", "T=" GPU_MOVED, plan_blocks },
  { "DepthToSpace", "T=" GPU_MOVED, plan_blocks },
  SAME_OP("Identity", 0),
  SAME_OP("StopGradient", 0),
  SAME_OP("PreventGradient", 0),
  SAME_OP("Snapshot", 0),
  SAME_OP("Reshape", 1u << 1),
  SAME_OP("ExpandDims", 1u << 1),
  SAME_OP("Squeeze", 0),
  { NULL },
};
