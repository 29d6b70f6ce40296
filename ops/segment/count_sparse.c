/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of integers as sparse tensors: DenseCountSparseOutput RaggedCountSparseOutput SparseCountSparseOutput. Pairs
 * of row and value are sorted, so the memory needed does not depend on how large the values are. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/sorted_rows.h>
#include <string.h>

typedef struct count_state {
  int64_t least, most; /* minlength and maxlength; no limit if negative */
  bool binary;
} count_state;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  count_state s = { tn__attr_int(op, "minlength", -1), tn__attr_int(op, "maxlength", -1),
                    tn__attr_bool(op, "binary_output", false) };
  return tn__keep_state(&s, sizeof s, "state of counts", state, err);
}

static void destroy(void *state) { tn__free(state, sizeof(count_state)); }

/* ---- pairs ---- */

/* Scratch memory of n values: n pairs of row and value, room to sort them, the position of each pair's value. */
typedef struct pairs {
  int64_t *keys, *from, n;
  void *room;
} pairs;

static tn_status pairs_scratch(tn_prepare_ctx *ctx, int64_t n, tn_error *err)
{
  size_t room, bytes;
  ctx->cost_ns = 100 + 60 * (double)n;
  if (!tn__int_rows_room(n, &room) || !tn__size_mul((size_t)n, 3 * sizeof(int64_t), &bytes) ||
      !tn__size_add(room, bytes, &ctx->scratch_bytes))
    return tn__no_memory(err, "scratch memory", SIZE_MAX);
  return tn__prepare_all_dynamic(ctx, err);
}

static pairs pairs_of(const tn_kernel_ctx *ctx, int64_t n)
{
  int64_t *keys = ctx->scratch;
  return (pairs){ keys, keys + 2 * n, 0, keys + 3 * n };
}

/* Adds value i of a row, if it is below maxlength. */
static void add_pair(pairs *p, const count_state *s, int64_t row, int64_t value, int64_t i)
{
  if (s->most >= 0 && value >= s->most) return;
  p->keys[2 * p->n] = row;
  p->keys[2 * p->n + 1] = value;
  p->from[p->n++] = i;
}

static tn_status no_negatives(const tn_kernel_ctx *ctx, const tn_view *values)
{
  for (int64_t i = 0; i < values->count; i++)
    if (tn__view_int_at(values, i) < 0)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "value %lld is %lld, wanted 0 or more", (long long)i,
                          (long long)tn__view_int_at(values, i));
  return TN_OK;
}

/* ---- outputs ---- */

/* *to += the weight, or 1 if there are none; in a binary count *to = 1. */
static void count(const count_state *s, tn_view *out, int64_t at, const tn_view *weights, int64_t i)
{
  bool one = s->binary || weights->count == 0;
  switch (out->dtype) {
#define COUNT(D, T, A)                                                                        \
  case D: {                                                                                   \
    T *to = (T *)out->data + at;                                                              \
    T weight = one ? (T)1 : ((const T *)weights->data)[i];                                    \
    *to = s->binary ? (T)1 : (T)((A)*to + (A)weight);                                         \
    break;                                                                                    \
  }
    COUNT(TN_FLOAT, float, float)
    COUNT(TN_DOUBLE, double, double)
    COUNT(TN_INT32, int32_t, uint32_t)
    default: COUNT(TN_INT64, int64_t, uint64_t)
#undef COUNT
  }
}

/* The dense shape: the rows, unless the output is a vector, and the number of values. */
static tn_status give_shape(tn_kernel_ctx *ctx, const count_state *s, bool vector, int64_t rows, int64_t largest)
{
  int64_t rank = vector ? 1 : 2, width = s->most;
  if (width < 0 && __builtin_add_overflow(largest, 1, &width))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the value %lld is too large", (long long)largest);
  if (s->most < 0 && width < s->least) width = s->least;
  tn_status st = tn_kernel_allocate(ctx, 2, &rank, 1);
  if (st != TN_OK) return st;
  int64_t *shape = ctx->outputs[2]->data;
  if (!vector) *shape++ = rows;
  *shape = width;
  return TN_OK;
}

static tn_status give_counts(tn_kernel_ctx *ctx, pairs *p, bool vector, int64_t rows, const tn_view *weights)
{
  const count_state *s = ctx->state;
  const tn__int_rows keys = { p->keys, p->n, 2, 2, NULL };
  tn__poll poll = tn__poll_of(ctx);
  const int64_t *sorted = tn__int_rows_sort(&keys, p->room, &poll);
  if (sorted == NULL) return TN_CANCELLED;
  int64_t dims[2] = { 0, vector ? 1 : 2 }, largest = 0;
  for (int64_t k = 0; k < p->n; k++) {
    dims[0] += k == 0 || tn__int_rows_compare(&keys, sorted[k - 1], sorted[k]) != 0;
    if (p->keys[2 * k + 1] > largest) largest = p->keys[2 * k + 1];
  }
  tn_status st = tn_kernel_allocate(ctx, 0, dims, 2);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 1, dims, 1);
  if (st == TN_OK) st = give_shape(ctx, s, vector, rows, largest);
  if (st != TN_OK) return st;
  int64_t *at = ctx->outputs[0]->data, u = -1;
  tn_view *out = ctx->outputs[1];
  if (out->count > 0) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  for (int64_t k = 0; k < p->n; k++) {
    const int64_t *key = p->keys + 2 * sorted[k];
    if (k == 0 || tn__int_rows_compare(&keys, sorted[k - 1], sorted[k]) != 0) {
      u++;
      if (!vector) *at++ = key[0];
      *at++ = key[1];
    }
    count(s, out, u, weights, p->from[sorted[k]]);
  }
  return TN_OK;
}

/* Weights, input i, are missing or have the shape of the values, input v. */
static tn_status want_weights(const tn_prepare_ctx *ctx, uint32_t i, uint32_t v, tn_error *err)
{
  return ctx->inputs[i].count == 0 ? TN_OK : tn__want_same_shape(ctx, i, v, err);
}

/* ---- DenseCountSparseOutput ---- */

static tn_status dense_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *values = &ctx->inputs[0];
  if (values->rank < 1 || values->rank > 2) return tn__want_rank(ctx, 0, values->rank < 1 ? 1 : 2, err);
  if (values->rank == 2 && values->dims[0] == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: there are no rows", tn_operation_type(ctx->op));
  tn_status st = want_weights(ctx, 1, 0, err);
  return st == TN_OK ? pairs_scratch(ctx, values->count, err) : st;
}

static tn_status dense_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[0];
  bool vector = values->rank == 1;
  int64_t rows = vector ? 1 : values->dims[0], row = vector ? values->dims[0] : values->dims[1];
  tn_status st = no_negatives(ctx, values);
  if (st != TN_OK) return st;
  pairs p = pairs_of(ctx, values->count);
  for (int64_t r = 0, i = 0; r < rows; r++)
    for (int64_t k = 0; k < row; k++, i++) add_pair(&p, ctx->state, r, tn__view_int_at(values, i), i);
  return give_counts(ctx, &p, vector, rows, ctx->inputs[1]);
}

/* ---- RaggedCountSparseOutput ---- */

static tn_status ragged_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  if (ctx->inputs[0].count < 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld row splits, wanted at least 2", tn_operation_type(ctx->op),
                        (long long)ctx->inputs[0].count);
  tn_status st = want_weights(ctx, 2, 1, err);
  return st == TN_OK ? pairs_scratch(ctx, ctx->inputs[1].count, err) : st;
}

/* Splits between the first and the last one are not compared, as in TensorFlow. */
static tn_status ragged_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[1];
  const int64_t *splits = ctx->inputs[0]->data;
  int64_t rows = ctx->inputs[0]->count - 1;
  if (splits[0] != 0 || splits[rows] != values->count)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "row splits are %lld to %lld, wanted 0 to %lld",
                        (long long)splits[0], (long long)splits[rows], (long long)values->count);
  tn_status st = no_negatives(ctx, values);
  if (st != TN_OK) return st;
  pairs p = pairs_of(ctx, values->count);
  for (int64_t i = 0, split = 0; i < values->count; i++) {
    while (i >= splits[split]) split++;
    add_pair(&p, ctx->state, split - 1, tn__view_int_at(values, i), i);
  }
  return give_counts(ctx, &p, false, rows, ctx->inputs[2]);
}

/* ---- SparseCountSparseOutput ---- */

static tn_status sparse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[0], *values = &ctx->inputs[1], *shape = &ctx->inputs[2];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 1, err);
  if (st != TN_OK) return st;
  const int64_t wanted[2] = { values->count, shape->count };
  if (indices->dims[0] != wanted[0] || indices->dims[1] != wanted[1] || shape->count == 0)
    return tn__shape_error(err, ctx, 0, wanted, 2);
  st = want_weights(ctx, 3, 1, err);
  return st == TN_OK ? pairs_scratch(ctx, values->count, err) : st;
}

static tn_status check_sparse(const tn_kernel_ctx *ctx)
{
  const int64_t *at = ctx->inputs[0]->data, *dims = ctx->inputs[2]->data;
  int64_t n = ctx->inputs[0]->dims[0], rank = ctx->inputs[0]->dims[1];
  if (rank > 1 && (dims[0] <= 0 || dims[0] >= INT32_MAX))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the dense shape has %lld rows", (long long)dims[0]);
  for (int64_t i = 0; i < n; i++, at += rank)
    for (int64_t d = 0; d < rank; d++)
      if (at[d] < 0 || at[d] >= dims[d])
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                            "index %lld is %lld in dimension %lld, wanted one in [0, %lld)", (long long)i,
                            (long long)at[d], (long long)d, (long long)dims[d]);
  return no_negatives(ctx, ctx->inputs[1]);
}

static tn_status sparse_compute(tn_kernel_ctx *ctx)
{
  const tn_view *values = ctx->inputs[1];
  const int64_t *at = ctx->inputs[0]->data, *dims = ctx->inputs[2]->data;
  int64_t rank = ctx->inputs[0]->dims[1];
  bool vector = rank == 1;
  tn_status st = check_sparse(ctx);
  if (st != TN_OK) return st;
  pairs p = pairs_of(ctx, values->count);
  for (int64_t i = 0; i < values->count; i++)
    add_pair(&p, ctx->state, vector ? 0 : at[i * rank], tn__view_int_at(values, i), i);
  return give_counts(ctx, &p, vector, dims[0], ctx->inputs[3]);
}

/* ---- shape functions ---- */

static tn_status infer_rank(tn_infer_ctx *ctx, int64_t rank, tn_error *err)
{
  const int64_t indices[2] = { -1, rank }, unknown = -1;
  tn_status st = tn_infer_output(ctx, 0, indices, 2, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, &unknown, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 2, &rank, 1, err) : st;
}

static tn_status infer_dense(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *unused;
  return infer_rank(ctx, tn_infer_input(ctx, 0, &unused), err); /* -1 means unknown for both */
}

static tn_status infer_ragged(tn_infer_ctx *ctx, tn_error *err) { return infer_rank(ctx, 2, err); }

static tn_status infer_sparse(tn_infer_ctx *ctx, tn_error *err)
{
  int32_t rank = tn__infer_length(ctx, 2);
  return infer_rank(ctx, rank > 2 ? 2 : rank, err);
}

/* ---- tables ---- */

#define OP(op, in, shapes, text)                                                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in ", weights: output_type",                                 \
    .outputs = "output_indices: int64, output_values: output_type, output_dense_shape: int64",                        \
    .attrs = "T: {int32, int64}; minlength: int >= -1 = -1; maxlength: int >= -1 = -1; binary_output: bool; "         \
             "output_type: {int32, int64, float, double}",                                                            \
    .traits = TN_TRAIT_DYNAMIC, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("DenseCountSparseOutput", "values: T", infer_dense, "counts of the integers in each row, as a sparse tensor"),
  OP("RaggedCountSparseOutput", "splits: int64, values: T", infer_ragged,
     "counts of the integers in each row of a ragged tensor, as a sparse tensor"),
  OP("SparseCountSparseOutput", "indices: int64, values: T, dense_shape: int64", infer_sparse,
     "counts of the integers in each row of a sparse tensor, as a sparse tensor"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,          \
    .create = create, .destroy = destroy, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("DenseCountSparseOutput", "dense_count_sparse_output_cpu", dense_prepare, dense_compute),
  KERNEL("RaggedCountSparseOutput", "ragged_count_sparse_output_cpu", ragged_prepare, ragged_compute),
  KERNEL("SparseCountSparseOutput", "sparse_count_sparse_output_cpu", sparse_prepare, sparse_compute),
};

TN_OP_FAMILY(count_sparse)
