/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedTensorToSparse: a ragged tensor as a sparse one, with an entry for each element. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/ragged/ragged.h>

/* Inputs: nested splits, values. */
static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t levels = ctx->n_inputs - 1;
  const tn_view *values = &ctx->inputs[levels];
  tn_status st = tn__want_rank_at_least(ctx, levels, 1, err);
  for (uint32_t i = 0; st == TN_OK && i < levels; i++) st = tn__want_rank_at_least(ctx, i, 1, err);
  const int64_t rank = (int64_t)levels + values->rank, dims[2] = { values->count, rank };
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, dims, 1, err);
  if (st == TN_OK) st = tn_prepare_view(ctx, 1, levels, err);
  if (!tn__size_mul(levels, sizeof(int64_t), &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  ctx->cost_ns = 100 + 3 * (double)values->count * (double)rank;
  return st == TN_OK ? tn_prepare_output(ctx, 2, &rank, 1, err) : st;
}

/* The dense shape: rows, the longest row of each level, the dimensions of a value. */
static void dense_shape(const tn_kernel_ctx *ctx, int64_t *to)
{
  uint32_t levels = ctx->n_inputs - 1;
  const tn_view *values = ctx->inputs[levels];
  *to++ = ctx->inputs[0]->dims[0] - 1;
  for (uint32_t l = 0; l < levels; l++) {
    const tn_view *splits = ctx->inputs[l];
    int64_t longest = 0;
    for (int64_t k = 1; k < splits->count; k++) {
      int64_t length = tn__view_int_at(splits, k) - tn__view_int_at(splits, k - 1);
      if (length > longest) longest = length;
    }
    *to++ = longest;
  }
  for (int32_t d = 1; d < values->rank; d++) *to++ = values->dims[d];
}

/* Moves to a row of the last level: rows[l] is the row of level l that contains it. */
static void find_rows(const tn_kernel_ctx *ctx, int64_t *rows, uint32_t levels, int64_t row)
{
  rows[levels - 1] = row;
  for (uint32_t l = levels - 1; l-- > 0;)
    while (tn__view_int_at(ctx->inputs[l], rows[l] + 1) <= rows[l + 1]) rows[l]++;
}

/* Writes the indices of the elements of one value; *to is moved behind them. */
static void write_value(const tn_kernel_ctx *ctx, const int64_t *rows, uint32_t levels, int64_t position, int64_t **to)
{
  const tn_view *values = ctx->inputs[levels];
  int64_t within[TN_MAX_RANK] = { 0 }, n = values->count / values->dims[0];
  for (int64_t e = 0; e < n; e++) {
    for (uint32_t l = 0; l < levels; l++)
      *(*to)++ = rows[l] - (l > 0 ? tn__view_int_at(ctx->inputs[l - 1], rows[l - 1]) : 0);
    *(*to)++ = position;
    for (int32_t d = 1; d < values->rank; d++) *(*to)++ = within[d];
    for (int32_t d = values->rank - 1; d >= 1 && ++within[d] == values->dims[d]; d--) within[d] = 0;
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  uint32_t levels = ctx->n_inputs - 1;
  const tn_view *values = ctx->inputs[levels], *last = ctx->inputs[levels - 1];
  int64_t *rows = ctx->scratch, *to = ctx->outputs[0]->data;
  tn__poll poll = tn__poll_of(ctx);
  for (uint32_t l = 0; l < levels; l++) {
    int64_t next = l + 1 < levels ? ctx->inputs[l + 1]->count - 1 : values->dims[0];
    tn_status st = tn__splits_check(ctx, l, next, &poll);
    if (st != TN_OK) return st;
    rows[l] = 0;
  }
  dense_shape(ctx, ctx->outputs[2]->data);
  for (int64_t row = 0; values->count > 0 && row < last->count - 1; row++) {
    int64_t length = tn__view_int_at(last, row + 1) - tn__view_int_at(last, row);
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
    find_rows(ctx, rows, levels, row);
    for (int64_t i = 0; i < length; i++) {
      if (tn__poll_over(&poll, 10 + values->count / values->dims[0])) return TN_CANCELLED;
      write_value(ctx, rows, levels, i, &to);
    }
  }
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  size_t levels = tn_infer_n_inputs(ctx) - 1;
  tn__shape values, splits;
  int64_t count = 1;
  tn_status st = tn__infer_rank_at_least(ctx, levels, 1, &values, err);
  for (size_t i = 0; st == TN_OK && i < levels; i++) st = tn__infer_rank(ctx, i, 1, &splits, err);
  if (st != TN_OK) return st;
  for (int32_t d = 0; d < values.rank; d++)
    if (values.dims[d] < 0 || count < 0 || __builtin_mul_overflow(count, values.dims[d], &count)) count = -1;
  if (values.rank < 0) count = -1;
  const int64_t rank = values.rank < 0 ? -1 : (int64_t)levels + values.rank, dims[2] = { count, rank };
  st = tn_infer_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, dims, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 2, &rank, 1, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedTensorToSparse",
    .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
    .outputs = "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    .attrs = "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = int64", .infer = infer,
    .summary = "a ragged tensor as a sparse one" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedTensorToSparse", .device = "CPU",
    .name = "ragged_tensor_to_sparse_cpu", .rank = TN_RANK_C, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(ragged_sparse)
