/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of small integers: Bincount DenseBincount RaggedBincount SparseBincount. A count is the number of values that
 * equal its position, or the sum of their weights; with binary_output it is 1 if there are any. Values of `size` and
 * more are not counted. */
#include <core/base/text.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

/* ---- counting ---- */

/* Counts n values in `bins`, of `size` elements. Negative values are skipped. weights: NULL = all are 1. */
typedef void (*count_fn)(void *bins, int64_t size, const int64_t *values, int64_t n, const void *weights);

#define COUNT_LOOP(op, d, unused)                                                                             \
  static void op##_##d(void *bins_, int64_t size, const int64_t *values, int64_t n, const void *weights)      \
  {                                                                                                           \
    tn__S_##d *bins = bins_;                                                                                  \
    const tn__S_##d *w = weights;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                         \
      if ((uint64_t)values[i] >= (uint64_t)size) continue;                                                    \
      tn__C_##d one = w != NULL ? TN__L_##d(w[i]) : (tn__C_##d)1;                                             \
      bins[values[i]] = TN__P_##d(TN__L_##d(bins[values[i]]) + one);                                          \
    }                                                                                                         \
  }                                                                                                           \
  static void op##_any_##d(void *bins_, int64_t size, const int64_t *values, int64_t n, const void *weights)  \
  {                                                                                                           \
    (void)weights;                                                                                            \
    tn__S_##d *bins = bins_;                                                                                  \
    for (int64_t i = 0; i < n; i++)                                                                           \
      if ((uint64_t)values[i] < (uint64_t)size) bins[values[i]] = TN__P_##d((tn__C_##d)1);                    \
  }
COUNT_LOOP(count, f32, f32)
COUNT_LOOP(count, f64, f64)
COUNT_LOOP(count, wi32, wi32)
COUNT_LOOP(count, wi64, wi64)

typedef struct count_state {
  count_fn count;
  bool binary;
} count_state;

#define CHOOSE(d) binary ? count_any_##d : count_##d
static count_fn count_of(tn_dtype dtype, bool binary)
{
  switch (dtype) {
  case TN_FLOAT: return CHOOSE(f32);
  case TN_DOUBLE: return CHOOSE(f64);
  case TN_INT32: return CHOOSE(wi32);
  default: return CHOOSE(wi64);
  }
}

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  bool binary = tn__attr_bool(op, "binary_output", false);
  count_state s = { count_of(tn_operation_output_dtype(op, 0), binary), binary };
  return tn__keep_state(&s, sizeof s, "state of counts", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(count_state)); }

/* ---- inputs ---- */

/* Input i: the number of bins. */
static tn_status want_size(const tn_prepare_ctx *ctx, uint32_t i, int64_t *size, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, i, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, i, err);
  if (st != TN_OK) return st;
  *size = tn__operand_int(&ctx->inputs[i], 0);
  if (*size >= 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld bins are wanted", tn_operation_type(ctx->op),
                      (long long)*size);
}

static tn_status negative(tn_error *err, const tn_view *values, int64_t at)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "value %lld is %lld, wanted 0 or more", (long long)at,
                      (long long)tn__view_int_at(values, at));
}

/* Input i has no elements, or as many as there are values. */
static tn_status want_weights(const tn_prepare_ctx *ctx, uint32_t i, uint32_t values, tn_error *err)
{
  int64_t found = ctx->inputs[i].count, wanted = ctx->inputs[values].count;
  if (found == 0 || found == wanted) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld weights for %lld values", tn_operation_type(ctx->op),
                      (long long)found, (long long)wanted);
}

/* Counts values [from, to) in one row of bins. `at` is the number of the first negative value, -1 if there is none. */
static int64_t count_row(const count_state *s, void *bins, int64_t size, const tn_view *values, int64_t from,
                         int64_t to, const tn_view *weights, tn__poll *poll)
{
  int64_t block[TN__INDEX_BLOCK];
  size_t each = tn_dtype_size(weights->dtype);
  for (int64_t at = from, n; at < to; at += n) {
    n = to - at < TN__INDEX_BLOCK ? to - at : TN__INDEX_BLOCK;
    if (tn__poll_over(poll, 3 * n)) return -1;
    tn__indices_load(values, at, n, block);
    int64_t any = 0;
    for (int64_t i = 0; i < n; i++) any |= block[i];
    for (int64_t i = 0; any < 0 && i < n; i++)
      if (block[i] < 0) return at + i;
    s->count(bins, size, block, n, weights->count == 0 ? NULL : (const char *)weights->data + (size_t)at * each);
  }
  return -1;
}

static void clear(tn_view *out)
{
  if (out->count > 0) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
}

/* ---- Bincount DenseBincount ---- */

static tn_status bincount_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t size;
  tn_status st = want_size(ctx, 1, &size, err);
  if (st == TN_OK) st = want_weights(ctx, 2, 0, err);
  ctx->cost_ns = 50 + 3 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output(ctx, 0, &size, 1, err) : st;
}

static tn_status dense_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *values = &ctx->inputs[0], *weights = &ctx->inputs[2];
  int64_t dims[2];
  tn_status st = values->rank > 2 ? tn__want_rank(ctx, 0, 2, err) : TN_OK;
  if (st == TN_OK) st = want_size(ctx, 1, &dims[1], err);
  if (st == TN_OK && weights->count > 0) st = tn__want_same_shape(ctx, 0, 2, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 50 + 3 * (double)values->count;
  if (values->rank < 2) return tn_prepare_output(ctx, 0, &dims[1], 1, err);
  dims[0] = values->dims[0];
  return tn_prepare_output(ctx, 0, dims, 2, err);
}

static tn_status bincount_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  tn__poll poll = tn__poll_of(ctx);
  clear(out);
  int64_t bad = count_row(ctx->state, out->data, out->dims[0], values, 0, values->count, ctx->inputs[2], &poll);
  return bad >= 0 ? negative(ctx->err, values, bad) : tn__poll_status(&poll, 0);
}

static tn_status first_negative(const tn_kernel_ctx *ctx, const tn_view *values)
{
  int64_t block[TN__INDEX_BLOCK];
  for (int64_t at = 0, n; at < values->count; at += n) {
    n = values->count - at < TN__INDEX_BLOCK ? values->count - at : TN__INDEX_BLOCK;
    tn__indices_load(values, at, n, block);
    for (int64_t i = 0; i < n; i++)
      if (block[i] < 0) return negative(ctx->err, values, at + i);
  }
  return TN_OK;
}

static void dense_rows(void *user, int64_t begin, int64_t end)
{
  const tn_kernel_ctx *ctx = user;
  tn_view *out = ctx->outputs[0];
  int64_t row = ctx->inputs[0]->dims[1], size = out->dims[1];
  size_t bytes = (size_t)size * tn_dtype_size(out->dtype);
  tn__poll poll = tn__poll_here();
  for (int64_t r = begin; r < end; r++)
    count_row(ctx->state, (char *)out->data + (size_t)r * bytes, size, ctx->inputs[0], r * row, (r + 1) * row,
              ctx->inputs[2], &poll);
}

static tn_status dense_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[0];
  if (values->rank < 2) return bincount_compute(ctx);
  tn_status st = first_negative(ctx, values);
  if (st != TN_OK) return st;
  clear(ctx->outputs[0]);
  tn_parallel_for(ctx, values->dims[0], 1, 20 + 3 * (double)values->dims[1], dense_rows, ctx);
  return TN_OK;
}

/* ---- RaggedBincount ---- */

static tn_status ragged_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *splits = &ctx->inputs[0];
  int64_t dims[2];
  tn_status st = want_size(ctx, 2, &dims[1], err);
  if (st != TN_OK) return st;
  if (splits->count == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are no row splits", tn_operation_type(ctx->op));
  dims[0] = splits->count - 1;
  ctx->cost_ns = 50 + 4 * (double)ctx->inputs[1].count;
  return tn_prepare_output(ctx, 0, dims, 2, err);
}

/* The first split is 0 and the last one the number of values. Others are not compared: value i belongs to the row
 * before the first split above i that follows the split of the value before it, as in TensorFlow. */
static tn_status ragged_compute(tn_kernel_ctx *ctx)
{
  const count_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1], *weights = ctx->inputs[3];
  const int64_t *splits = ctx->inputs[0]->data;
  tn_view *out = ctx->outputs[0];
  int64_t rows = out->dims[0], size = out->dims[1], n = values->count;
  if (splits[0] != 0 || splits[rows] != n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row splits are %lld to %lld, wanted 0 to %lld",
                        (long long)splits[0], (long long)splits[rows], (long long)n);
  if (!s->binary && weights->count > 0 && weights->count < n)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%lld weights for %lld values", (long long)weights->count,
                        (long long)n);
  clear(out);
  size_t bytes = (size_t)size * tn_dtype_size(out->dtype);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t at = 0, split = 0, end; at < n; at = end) {
    while (at >= splits[split]) split++;
    end = splits[split] < n ? splits[split] : n;
    int64_t bad = count_row(s, (char *)out->data + (size_t)(split - 1) * bytes, size, values, at, end, weights, &poll);
    if (bad >= 0) return negative(ctx->err, values, bad);
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
  }
  return TN_OK;
}

/* ---- SparseBincount ---- */

static tn_status sparse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[0], *values = &ctx->inputs[1], *shape = &ctx->inputs[2];
  int64_t size;
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  if (st == TN_OK) st = want_size(ctx, 3, &size, err);
  if (st != TN_OK) return st;
  const int64_t wanted[2] = { values->count, shape->count };
  if (indices->dims[0] != wanted[0] || indices->dims[1] != wanted[1] || shape->count == 0)
    return tn__shape_error(err, ctx, 0, wanted, 2);
  ctx->cost_ns = 50 + 5 * (double)values->count;
  return tn_prepare_dynamic(ctx, 0, err);
}

static tn_status check_indices(const tn_kernel_ctx *ctx)
{
  const int64_t *at = ctx->inputs[0]->data, *dims = ctx->inputs[2]->data;
  int64_t n = ctx->inputs[0]->dims[0], rank = ctx->inputs[0]->dims[1];
  for (int64_t i = 0; i < n; i++, at += rank)
    for (int64_t d = 0; d < rank; d++)
      if (at[d] < 0 || at[d] >= dims[d])
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                            "index %lld is %lld in dimension %lld, wanted one in [0, %lld)", (long long)i,
                            (long long)at[d], (long long)d, (long long)dims[d]);
  return TN_OK;
}

/* Values of rows; negative ones are not counted. */
static tn_status count_sparse(tn_kernel_ctx *ctx, int64_t size)
{
  const count_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1], *weights = ctx->inputs[4];
  const int64_t *at = ctx->inputs[0]->data;
  tn_view *out = ctx->outputs[0];
  int64_t rank = ctx->inputs[0]->dims[1];
  size_t each = tn_dtype_size(out->dtype), bytes = (size_t)size * each;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < values->count; i++) {
    if (tn__poll_over(&poll, 5)) return TN_CANCELLED;
    int64_t value = tn__view_int_at(values, i);
    const void *weight = weights->count == 0 || s->binary ? NULL : (const char *)weights->data + (size_t)i * each;
    s->count((char *)out->data + (size_t)at[i * rank] * bytes, size, &value, 1, weight);
  }
  return TN_OK;
}

static tn_status sparse_compute(tn_kernel_ctx *ctx)
{
  const count_state *s = ctx->state;
  const tn_view *values = ctx->inputs[1], *shape = ctx->inputs[2], *weights = ctx->inputs[4];
  int64_t size = tn__operand_int(ctx->inputs[3], 0), dims[2] = { ((const int64_t *)shape->data)[0], size };
  bool row = shape->count == 1;
  tn_status st = check_indices(ctx);
  if (st != TN_OK) return st;
  if (!s->binary && weights->count > 0 && weights->count < values->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%lld weights for %lld values", (long long)weights->count,
                        (long long)values->count);
  st = row ? tn_kernel_allocate(ctx, 0, &size, 1) : tn_kernel_allocate(ctx, 0, dims, 2);
  if (st != TN_OK) return st;
  clear(ctx->outputs[0]);
  if (!row) return count_sparse(ctx, size);
  tn__poll poll = tn__poll_of(ctx);
  int64_t bad = count_row(s, ctx->outputs[0]->data, size, values, 0, values->count, weights, &poll);
  return bad >= 0 ? negative(ctx->err, values, bad) : tn__poll_status(&poll, 0);
}

/* ---- shape functions ---- */

/* The number of bins, input i; -1 if it is not known. */
static tn_status infer_size(tn_infer_ctx *ctx, size_t i, int64_t *size, tn_error *err)
{
  tn__shape scalar;
  const int64_t *items;
  tn_status st = tn__infer_rank(ctx, i, 0, &scalar, err);
  *size = -1;
  if (st != TN_OK || tn_infer_input_ints(ctx, i, &items) != 1 || items[0] == TN_UNKNOWN_INT) return st;
  if (items[0] < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld bins are wanted", tn__infer_op(ctx), (long long)items[0]);
  *size = items[0];
  return TN_OK;
}

static tn_status infer_bincount(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t size;
  tn_status st = infer_size(ctx, 1, &size, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, &size, 1, err) : st;
}

static tn_status infer_dense(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int64_t both[2] = { -1, -1 };
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  tn_status st = infer_size(ctx, 1, &both[1], err);
  if (st != TN_OK) return st;
  if (rank < 0) return tn_infer_output(ctx, 0, NULL, -1, err);
  if (rank < 2) return tn_infer_output(ctx, 0, &both[1], 1, err);
  both[0] = dims[0];
  return tn_infer_output(ctx, 0, both, 2, err);
}

static tn_status infer_ragged(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int64_t both[2] = { -1, -1 };
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  tn_status st = infer_size(ctx, 2, &both[1], err);
  if (rank == 1 && dims[0] > 0) both[0] = dims[0] - 1;
  return st == TN_OK ? tn_infer_output(ctx, 0, both, 2, err) : st;
}

static tn_status infer_sparse(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *items;
  int64_t both[2] = { -1, -1 };
  int32_t rank = tn__infer_length(ctx, 2);
  tn_status st = infer_size(ctx, 3, &both[1], err);
  if (st != TN_OK) return st;
  if (rank < 1) return tn_infer_output(ctx, 0, NULL, -1, err);
  if (rank == 1) return tn_infer_output(ctx, 0, &both[1], 1, err);
  if (tn_infer_input_ints(ctx, 2, &items) == rank && items[0] >= 0) both[0] = items[0];
  return tn_infer_output(ctx, 0, both, 2, err);
}

/* ---- tables ---- */

#define T_COUNTS "T: {int32, int64, float, double}"
#define BINARY "Tidx: {int32, int64}; " T_COUNTS "; binary_output: bool = false"
#define OP(op, in, out, attributes, bits, operands, shapes, text)                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in ", weights: T", .outputs = out ": T",          \
    .attrs = attributes, .traits = bits, .shape_operands = operands, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Bincount", "arr: int32, size: int32", "bins", T_COUNTS, 0, 1u << 1, infer_bincount, "counts of each integer"),
  OP("DenseBincount", "input: Tidx, size: Tidx", "output", BINARY, 0, 1u << 1, infer_dense,
     "counts of each integer in each row"),
  OP("RaggedBincount", "splits: int64, values: Tidx, size: Tidx", "output", BINARY, 0, 1u << 2, infer_ragged,
     "counts of each integer in each row of a ragged tensor"),
  OP("SparseBincount", "indices: int64, values: Tidx, dense_shape: int64, size: Tidx", "output", BINARY,
     TN_TRAIT_DYNAMIC, 1u << 3, infer_sparse, "counts of each integer in each row of a sparse tensor"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,          \
    .create = create, .destroy = destroy, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("Bincount", "bincount_cpu", bincount_prepare, bincount_compute),
  KERNEL("DenseBincount", "dense_bincount_cpu", dense_prepare, dense_compute),
  KERNEL("RaggedBincount", "ragged_bincount_cpu", ragged_prepare, ragged_compute),
  KERNEL("SparseBincount", "sparse_bincount_cpu", sparse_prepare, sparse_compute),
};

TN_OP_FAMILY(bincount)
