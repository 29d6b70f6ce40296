/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedGather: selects rows of a ragged tensor by a tensor of indices. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/ragged/ragged.h>

/* Inputs: nested splits, values, indices. Outputs: for each dimension of the indices but the first a level of splits,
 * then those of the rows, then the values. */
static uint32_t levels_of(const tn_kernel_ctx *ctx) { return ctx->n_inputs - 2; }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t levels = ctx->n_inputs - 2;
  const tn_view *indices = &ctx->inputs[levels + 1];
  tn_status st = tn__want_rank_at_least(ctx, levels, 1, err);
  for (uint32_t i = 0; st == TN_OK && i < levels; i++) {
    st = tn__want_rank_at_least(ctx, i, 1, err);
    if (st == TN_OK && ctx->inputs[i].count == 0)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has no row splits", tn_operation_type(ctx->op), i);
  }
  if (st == TN_OK && (int64_t)ctx->n_outputs - 1 != (int64_t)levels + indices->rank - 1)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: indices of rank %d select rows of a ragged tensor of rank %u, but "
                      "the output has ragged rank %u", tn_operation_type(ctx->op), (int)indices->rank, levels,
                      ctx->n_outputs - 1);
  if (st != TN_OK) return st;
  if (!tn__size_mul(2 * (size_t)levels + 2, sizeof(int64_t), &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  ctx->cost_ns = 200 + 100 * (double)indices->count;
  return tn__prepare_all_dynamic(ctx, err);
}

/* Splits are not negative and do not descend. The last one may be less than the rows of the next level. */
static tn_status check_splits(const tn_kernel_ctx *ctx, tn__poll *poll)
{
  uint32_t levels = levels_of(ctx);
  for (uint32_t i = 0; i < levels; i++) {
    const tn_view *splits = ctx->inputs[i], *next = ctx->inputs[i + 1];
    int64_t last = 0, rows = i + 1 < levels ? next->count : next->dims[0];
    for (int64_t k = 0; k < splits->count; k++) {
      int64_t at = tn__view_int_at(splits, k);
      if (tn__poll_over(poll, 2)) return TN_CANCELLED;
      if (at < last || at > rows)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "split %lld of input %u is %lld, wanted %lld to %lld",
                            (long long)k, i, (long long)at, (long long)last, (long long)rows);
      last = at;
    }
  }
  return TN_OK;
}

/* Descends from row *from of `limit` rows to the next level. */
static tn_status descend(const tn_kernel_ctx *ctx, uint32_t level, int64_t *from, int64_t *to)
{
  const tn_view *splits = ctx->inputs[level];
  if (*to > splits->count - 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row %lld of level %u is selected, which has %lld",
                        (long long)*to - 1, level, (long long)splits->count - 1);
  *from = tn__view_int_at(splits, *from);
  *to = tn__view_int_at(splits, *to);
  return TN_OK;
}

/* Counts the rows of each level, and at totals[levels] the values, that are selected. */
static tn_status count_rows(const tn_kernel_ctx *ctx, int64_t *totals, tn__poll *poll)
{
  uint32_t levels = levels_of(ctx);
  const tn_view *indices = ctx->inputs[levels + 1];
  for (uint32_t l = 0; l <= levels; l++) totals[l] = 0;
  for (int64_t i = 0; i < indices->count; i++) {
    int64_t from = tn__view_int_at(indices, i), to = from + 1;
    if (tn__poll_over(poll, 10 * levels)) return TN_CANCELLED;
    for (uint32_t l = 0; l <= levels; l++) {
      if (__builtin_add_overflow(totals[l], to - from, &totals[l]))
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "too many rows are selected");
      tn_status st = l < levels ? descend(ctx, l, &from, &to) : TN_OK;
      if (st != TN_OK) return st;
    }
  }
  return TN_OK;
}

/* Splits of the dimensions of the indices but the first. */
static tn_status index_splits(tn_kernel_ctx *ctx, const tn_view *indices, tn__poll *poll)
{
  int64_t rows = 1;
  tn_status st = TN_OK;
  for (int32_t d = 0; st == TN_OK && d < indices->rank - 1; d++) {
    int64_t last, n;
    if (__builtin_mul_overflow(rows, indices->dims[d], &rows) || __builtin_add_overflow(rows, 1, &n) ||
        __builtin_mul_overflow(rows, indices->dims[d + 1], &last) ||
        !tn__split_fits(ctx->inputs[0]->dtype, last))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "too many rows are selected");
    st = tn_kernel_allocate(ctx, (uint32_t)d, &n, 1);
    for (int64_t k = 0; st == TN_OK && k < n; k++) {
      if (tn__poll_over(poll, 2)) return TN_CANCELLED;
      tn__split_put(ctx->outputs[d], k, k * indices->dims[d + 1]);
    }
  }
  return st;
}

/* Allocates the splits of each level and the values. With a scalar index, the first level has none. */
static tn_status allocate(tn_kernel_ctx *ctx, const int64_t *totals)
{
  uint32_t levels = levels_of(ctx);
  const tn_view *values = ctx->inputs[levels], *indices = ctx->inputs[levels + 1];
  tn_status st = TN_OK;
  for (uint32_t l = 0; st == TN_OK && l < levels; l++) {
    int64_t n, out = (int64_t)l + indices->rank - 1;
    if (!tn__split_fits(ctx->inputs[0]->dtype, totals[l + 1]) || __builtin_add_overflow(totals[l], 1, &n))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "too many rows are selected");
    if (out < 0) continue;
    st = tn_kernel_allocate(ctx, (uint32_t)out, &n, 1);
    if (st == TN_OK) tn__split_put(ctx->outputs[out], 0, 0);
  }
  tn__shape shape;
  tn__shape_set(&shape, values->dims, values->rank);
  shape.dims[0] = totals[levels];
  return st == TN_OK ? tn_kernel_allocate(ctx, ctx->n_outputs - 1, shape.dims, shape.rank) : st;
}

/* Appends the rows [from, to) of a level to its splits; *at is the number of splits that are written. */
static void append_rows(const tn_kernel_ctx *ctx, uint32_t level, int64_t from, int64_t to, int64_t *at)
{
  const tn_view *splits = ctx->inputs[level];
  int64_t out = (int64_t)level + ctx->inputs[levels_of(ctx) + 1]->rank - 1;
  if (out < 0) return;
  tn_view *made = ctx->outputs[out];
  int64_t shift = tn__view_int_at(made, *at - 1) - tn__view_int_at(splits, from);
  for (int64_t k = from; k < to; k++) tn__split_put(made, (*at)++, tn__view_int_at(splits, k + 1) + shift);
}

static tn_status copy_rows(tn_kernel_ctx *ctx, int64_t *at, tn__poll *poll)
{
  uint32_t levels = levels_of(ctx);
  const tn_view *values = ctx->inputs[levels], *indices = ctx->inputs[levels + 1];
  tn_view *out = ctx->outputs[ctx->n_outputs - 1];
  int64_t row = values->dims[0] > 0 ? values->count / values->dims[0] : 0;
  size_t bytes = (size_t)row * tn_dtype_size(values->dtype);
  tn_status st = TN_OK;
  for (uint32_t l = 0; l < levels; l++) at[l] = 1;
  at[levels] = 0;
  for (int64_t i = 0; st == TN_OK && i < indices->count; i++) {
    int64_t from = tn__view_int_at(indices, i), to = from + 1;
    for (uint32_t l = 0; st == TN_OK && l < levels; l++) {
      if (tn__poll_over(poll, 10 + 2 * (to - from))) return TN_CANCELLED;
      append_rows(ctx, l, from, to, &at[l]);
      st = descend(ctx, l, &from, &to);
    }
    if (tn__poll_over(poll, (to - from) * row / 4)) return TN_CANCELLED;
    if (st == TN_OK)
      st = tn__copy_elements(values->dtype, (char *)out->data + (size_t)at[levels] * bytes,
                             (const char *)values->data + (size_t)from * bytes, (to - from) * row, ctx->err);
    at[levels] += to - from;
  }
  return st;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  uint32_t levels = levels_of(ctx);
  const tn_view *indices = ctx->inputs[levels + 1];
  int64_t *totals = ctx->scratch, rows = ctx->inputs[0]->dims[0] - 1;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < indices->count; i++)
    if (tn__view_int_at(indices, i) < 0 || tn__view_int_at(indices, i) >= rows)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld is %lld, wanted one in [0, %lld)", (long long)i,
                          (long long)tn__view_int_at(indices, i), (long long)rows);
  tn_status st = check_splits(ctx, &poll);
  if (st == TN_OK) st = count_rows(ctx, totals, &poll);
  if (st == TN_OK) st = index_splits(ctx, indices, &poll);
  if (st == TN_OK) st = allocate(ctx, totals);
  return st == TN_OK ? copy_rows(ctx, totals + levels + 1, &poll) : st;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  size_t levels = tn_infer_n_inputs(ctx) - 2, n = tn_operation_n_outputs(tn_infer_operation(ctx));
  tn__shape values, splits;
  const int64_t unknown = -1;
  tn_status st = tn__infer_rank_at_least(ctx, levels, 1, &values, err);
  for (size_t i = 0; st == TN_OK && i < levels; i++) st = tn__infer_rank(ctx, i, 1, &splits, err);
  for (size_t i = 0; st == TN_OK && i + 1 < n; i++) st = tn_infer_output(ctx, i, &unknown, 1, err);
  if (values.rank > 0) values.dims[0] = -1;
  return st == TN_OK ? tn__infer_set(ctx, n - 1, &values, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedGather",
    .inputs = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, indices: Tindices",
    .outputs = "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
    .attrs = "Tvalues: type; Tindices: {int32, int64}; Tsplits: {int32, int64} = int64; PARAMS_RAGGED_RANK: int >= 1; "
             "OUTPUT_RAGGED_RANK: int >= 0",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer, .summary = "selects rows of a ragged tensor" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedGather", .device = "CPU", .name = "ragged_gather_cpu",
    .rank = TN_RANK_C, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(ragged_gather)
