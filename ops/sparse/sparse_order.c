/* SPDX-License-Identifier: Apache-2.0 */
/* Other indices for the same values: SparseReorder, in row-major order, and SparseReshape, for another shape. */
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- SparseReorder ---- */

static tn_status reorder_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK) st = tn__sparse_sort_scratch(ctx, 0, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  ctx->cost_ns = 50 + 20 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 1, 1, err) : st;
}

static tn_status reorder_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[0], *values = ctx->inputs[1];
  const tn__int_rows rows = tn__sparse_rows(indices);
  const int64_t *sorted;
  tn_status st = tn__sparse_sort(ctx, &rows, &sorted);
  if (st != TN_OK) return st;
  int64_t *to = ctx->outputs[0]->data;
  if (sorted == NULL) {
    if (indices->count > 0) memcpy(to, indices->data, (size_t)indices->count * sizeof *to);
    return tn__copy_elements(values->dtype, ctx->outputs[1]->data, values->data, values->count, ctx->err);
  }
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t k = 0; st == TN_OK && k < rows.n; k++, to += rows.width) {
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
    memcpy(to, rows.at + sorted[k] * rows.width, (size_t)rows.width * sizeof *to);
    st = tn__copy_value(ctx->outputs[1], k, values, sorted[k], ctx->err);
  }
  return st;
}

static tn_status infer_reorder(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n, rank;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  return st == TN_OK ? tn__infer_entries(ctx, 0, n, rank, err) : st;
}

/* ---- SparseReshape ---- */

static tn_status reshape_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[0], *shape = &ctx->inputs[1], *wanted = &ctx->inputs[2];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  if (st != TN_OK) return st;
  if (indices->dims[1] != shape->count) {
    const int64_t dims[2] = { indices->dims[0], shape->count };
    return tn__shape_error(err, ctx, 0, dims, 2);
  }
  if (shape->count > TN_MAX_RANK || wanted->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions", tn_operation_type(ctx->op),
                        TN_MAX_RANK);
  const int64_t dims[2] = { indices->dims[0], wanted->count };
  ctx->cost_ns = 50 + 10 * (double)indices->count;
  st = tn_prepare_output(ctx, 0, dims, 2, err);
  return st == TN_OK ? tn_prepare_output_like(ctx, 1, 2, err) : st;
}

/* The shape wanted, input 2, with a size for -1. */
static tn_status new_shape(const tn_kernel_ctx *ctx, int64_t elements, tn__shape *out)
{
  const tn_view *v = ctx->inputs[2];
  int64_t product = 1, count, free_dim = -1;
  tn__shape_set(out, v->data, (int32_t)v->count);
  for (int32_t d = 0; d < out->rank; d++) {
    if (out->dims[d] == -1 && free_dim < 0) {
      free_dim = d;
    } else if (out->dims[d] < 0) {
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %d of the new shape is %lld%s", (int)d,
                          (long long)out->dims[d], free_dim >= 0 ? ", but another one is -1 already" : "");
    } else if (__builtin_mul_overflow(product, out->dims[d], &product)) {
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the new shape is too large");
    }
  }
  if (free_dim >= 0 && product == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "size %lld of the new shape cannot be found: another one is 0",
                        (long long)free_dim);
  if (free_dim >= 0) out->dims[free_dim] = elements / product;
  tn_status st = tn_shape_elements(out->dims, out->rank, &count, ctx->err);
  if (st != TN_OK || count == elements) return st;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the new shape has %lld elements, the old one %lld",
                      (long long)count, (long long)elements);
}

/* Sets strides[d] to the distance of neighbours in dimension d; numbers wrap. */
static void strides_of(const tn__shape *s, int64_t *strides)
{
  uint64_t stride = 1;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    strides[d] = (int64_t)stride;
    stride *= (uint64_t)s->dims[d];
  }
}

static tn_status move(tn_kernel_ctx *ctx, const tn__shape *from, const tn__shape *to)
{
  const int64_t *x = ctx->inputs[0]->data;
  int64_t *y = ctx->outputs[0]->data, n = ctx->inputs[0]->dims[0], a[TN_MAX_RANK], b[TN_MAX_RANK];
  tn__poll poll = tn__poll_of(ctx);
  strides_of(from, a);
  strides_of(to, b);
  for (int64_t i = 0; i < n; i++, x += from->rank, y += to->rank) {
    if (tn__poll_over(&poll, 2 * from->rank + 20 * to->rank)) return TN_CANCELLED;
    uint64_t sum = 0;
    for (int32_t d = 0; d < from->rank; d++) sum += (uint64_t)x[d] * (uint64_t)a[d];
    int64_t place = (int64_t)sum;
    for (int32_t d = 0; d < to->rank; d++) {
      y[d] = place / b[d];
      place %= b[d];
    }
  }
  return TN_OK;
}

static tn_status reshape_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[0];
  tn__shape from, to;
  int64_t elements;
  tn_status st = tn__sparse_shape(ctx, 1, &from);
  if (st == TN_OK) st = tn_shape_elements(from.dims, from.rank, &elements, ctx->err);
  if (st == TN_OK) st = new_shape(ctx, elements, &to);
  if (st != TN_OK) return st;
  if (to.rank > 0) memcpy(ctx->outputs[1]->data, to.dims, (size_t)to.rank * sizeof *to.dims);
  bool same = from.rank == to.rank && memcmp(from.dims, to.dims, (size_t)to.rank * sizeof *to.dims) == 0;
  if (same && indices->count > 0)
    memcpy(ctx->outputs[0]->data, indices->data, (size_t)indices->count * sizeof(int64_t));
  if (same || indices->dims[0] == 0) return TN_OK;
  if (elements == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are %lld indices in a shape without elements",
                        (long long)indices->dims[0]);
  return move(ctx, &from, &to);
}

static tn_status infer_reshape(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape indices, shape, wanted;
  tn_status st = tn__infer_rank(ctx, 0, 2, &indices, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &shape, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 1, &wanted, err);
  const int64_t dims[2] = { st == TN_OK ? indices.dims[0] : -1, st == TN_OK ? wanted.dims[0] : -1 };
  if (st == TN_OK) st = tn_infer_output(ctx, 0, dims, 2, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, &dims[1], 1, err) : st;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseReorder",
    .inputs = "input_indices: int64, input_values: T, input_shape: int64",
    .outputs = "output_indices: int64, output_values: T", .attrs = "T: type", .infer = infer_reorder,
    .summary = "a sparse tensor with its indices in row-major order" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseReshape",
    .inputs = "input_indices: int64, input_shape: int64, new_shape: int64",
    .outputs = "output_indices: int64, output_shape: int64", .attrs = "", .infer = infer_reshape,
    .summary = "indices of the same values in another shape" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseReorder", .device = "CPU", .name = "sparse_reorder_cpu",
    .rank = TN_RANK_C, .prepare = reorder_prepare, .compute = reorder_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseReshape", .device = "CPU", .name = "sparse_reshape_cpu",
    .rank = TN_RANK_C, .prepare = reshape_prepare, .compute = reshape_compute },
};

TN_OP_FAMILY(sparse_order)
