/* SPDX-License-Identifier: Apache-2.0 */
/* A window of a sparse tensor: SparseSlice, and its gradient SparseSliceGrad. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- SparseSlice ---- */

static tn_status slice_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 2, 3, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 2, 4, err);
  ctx->cost_ns = 100 + 4 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

/* Reads the start and the size of the window. ends[d] = start + size wraps, so such a window has no entries, as in
 * TensorFlow. *out is the part of the window that is inside of the tensor. */
static tn_status window(const tn_kernel_ctx *ctx, const tn__shape *shape, int64_t *ends, tn__shape *out)
{
  const int64_t *start = ctx->inputs[3]->data, *size = ctx->inputs[4]->data;
  *out = *shape;
  for (int32_t d = 0; d < shape->rank; d++) {
    int64_t end, left;
    if (size[d] < 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %d of the slice is %lld", (int)d, (long long)size[d]);
    bool wraps = __builtin_add_overflow(start[d], size[d], &end);
    ends[d] = end;
    if (__builtin_sub_overflow(shape->dims[d], start[d], &left) || left < 0) left = 0;
    out->dims[d] = !wraps && end < shape->dims[d] ? size[d] : left;
  }
  return TN_OK;
}

static bool inside(const int64_t *at, const int64_t *start, const int64_t *ends, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (at[d] < start[d] || at[d] >= ends[d]) return false;
  return true;
}

static tn_status copy_entries(tn_kernel_ctx *ctx, const int64_t *ends, int32_t rank)
{
  const int64_t *at = ctx->inputs[0]->data, *start = ctx->inputs[3]->data;
  int64_t *to = ctx->outputs[0]->data, n = ctx->inputs[0]->dims[0], found = 0;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; st == TN_OK && i < n; i++, at += rank) {
    if (tn__poll_over(&poll, 2 + rank)) return TN_CANCELLED;
    if (!inside(at, start, ends, rank)) continue;
    for (int32_t d = 0; d < rank; d++) *to++ = at[d] - start[d];
    st = tn__copy_value(ctx->outputs[1], found++, ctx->inputs[1], i, ctx->err);
  }
  return st;
}

static tn_status slice_compute(tn_kernel_ctx *ctx)
{
  tn__shape shape, out;
  int64_t ends[TN_MAX_RANK], found = 0;
  tn_status st = tn__sparse_shape(ctx, 2, &shape);
  if (st == TN_OK) st = window(ctx, &shape, ends, &out);
  if (st != TN_OK) return st;
  const int64_t *at = ctx->inputs[0]->data, *start = ctx->inputs[3]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < ctx->inputs[0]->dims[0]; i++, at += shape.rank) {
    if (tn__poll_over(&poll, 2 + shape.rank)) return TN_CANCELLED;
    found += inside(at, start, ends, shape.rank);
  }
  st = tn__give_entries(ctx, 0, found, shape.rank);
  if (st == TN_OK) st = tn__give_ints(ctx, 2, out.dims, out.rank);
  return st == TN_OK ? copy_entries(ctx, ends, shape.rank) : st;
}

static tn_status infer_slice(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape start, size;
  int64_t n, rank;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 3, 1, &start, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 4, 1, &size, err);
  return st == TN_OK ? tn__infer_sparse_output(ctx, 0, -1, rank, err) : st;
}

/* ---- SparseSliceGrad ---- */

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *grad = &ctx->inputs[0], *from = &ctx->inputs[1], *start = &ctx->inputs[2], *to = &ctx->inputs[3];
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 3, 2, err);
  if (st != TN_OK) return st;
  const int64_t wanted[2] = { grad->count, from->dims[1] };
  if (to->dims[0] != wanted[0] || to->dims[1] != wanted[1]) return tn__shape_error(err, ctx, 3, wanted, 2);
  if (start->count != from->dims[1]) return tn__shape_error(err, ctx, 2, &wanted[1], 1);
  if (to->dims[0] > from->dims[0])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a slice of %lld entries has %lld", tn_operation_type(ctx->op),
                        (long long)from->dims[0], (long long)to->dims[0]);
  ctx->cost_ns = 50 + 4 * (double)from->count;
  return tn_prepare_output(ctx, 0, from->dims, 1, err);
}

/* Entries of the slice are in the order of those that they were copied from. */
static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const int64_t *from = ctx->inputs[1]->data, *start = ctx->inputs[2]->data, *to = ctx->inputs[3]->data;
  int64_t n = ctx->inputs[1]->dims[0], rank = ctx->inputs[1]->dims[1], used = 0, all = ctx->inputs[3]->dims[0];
  tn_view *out = ctx->outputs[0];
  if (n > 0) memset(out->data, 0, (size_t)n * tn_dtype_size(out->dtype));
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < n && used < all; i++, from += rank) {
    if (tn__poll_over(&poll, 2 + rank)) return TN_CANCELLED;
    bool same = true;
    for (int64_t d = 0; d < rank; d++) same = same && (uint64_t)from[d] - (uint64_t)start[d] == (uint64_t)to[d];
    if (!same) continue;
    tn_status st = tn__copy_value(out, i, ctx->inputs[0], used, ctx->err);
    if (st != TN_OK) return st;
    used++;
    to += rank;
  }
  if (used == all) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                      "entry %lld of the slice is not one of the tensor after those before it", (long long)used);
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape grad, from, start, to;
  tn_status st = tn__infer_rank(ctx, 0, 1, &grad, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &from, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 1, &start, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 3, 2, &to, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, from.dims, 1, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseSlice",
    .inputs = "indices: int64, values: T, shape: int64, start: int64, size: int64",
    .outputs = "output_indices: int64, output_values: T, output_shape: int64", .attrs = "T: type",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_slice, .summary = "a window of a sparse tensor" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseSliceGrad",
    .inputs = "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64",
    .outputs = "val_grad: T", .attrs = "T: {numbertype, qint16, quint16}", .infer = infer_grad,
    .summary = "gradient of SparseSlice" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSlice", .device = "CPU", .name = "sparse_slice_cpu",
    .rank = TN_RANK_C, .prepare = slice_prepare, .compute = slice_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseSliceGrad", .device = "CPU",
    .types = "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128",
    .name = "sparse_slice_grad_cpu", .rank = TN_RANK_C, .prepare = grad_prepare, .compute = grad_compute },
};

TN_OP_FAMILY(sparse_slice)
