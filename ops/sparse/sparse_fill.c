/* SPDX-License-Identifier: Apache-2.0 */
/* Rows without entries get one with a default value: SparseFillEmptyRows RaggedFillEmptyRows, and their gradients
 * SparseFillEmptyRowsGrad RaggedFillEmptyRowsGrad. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/sparse/sparse.h>
#include <string.h>

/* ---- filling ---- */

/* Inputs: indices, values, dense_shape, default_value; or value_rowids, values, nrows, default_value. */
static tn_status fill_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  bool ragged = ctx->inputs[2].rank == 0;
  tn_status st = tn__want_rank(ctx, 3, 0, err);
  if (st == TN_OK && ragged) st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK && ragged) st = tn__want_same_shape(ctx, 0, 1, err);
  if (st == TN_OK && !ragged) st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK && !ragged && ctx->inputs[2].count == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a scalar has no rows", tn_operation_type(ctx->op));
  if (st == TN_OK) st = tn__sparse_sort_scratch(ctx, 0, err);
  ctx->cost_ns = 100 + 10 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn__prepare_all_dynamic(ctx, err) : st;
}

static tn_status sparse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 2, 1, err);
  return st == TN_OK ? fill_prepare(ctx, err) : st;
}

static tn_status ragged_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 2, 0, err);
  return st == TN_OK ? fill_prepare(ctx, err) : st;
}

/* Marks rows without entries in output 2. *empty is their number, *ordered whether the rows ascend. */
static tn_status find_empty(tn_kernel_ctx *ctx, const tn__int_rows *entries, int64_t rows, int64_t *empty,
                            bool *ordered)
{
  int64_t last = 0;
  tn_status st = tn_kernel_allocate(ctx, 2, &rows, 1);
  if (st != TN_OK) return st;
  uint8_t *is_empty = ctx->outputs[2]->data;
  tn__poll poll = tn__poll_of(ctx);
  memset(is_empty, 1, (size_t)rows);
  *empty = rows;
  *ordered = true;
  for (int64_t i = 0; i < entries->n; i++) {
    int64_t row = entries->at[i * entries->width];
    if (tn__poll_over(&poll, 3)) return TN_CANCELLED;
    if (row < 0 || row >= rows)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "entry %lld is in row %lld, wanted one in [0, %lld)",
                          (long long)i, (long long)row, (long long)rows);
    *empty -= is_empty[row];
    is_empty[row] = 0;
    *ordered = *ordered && row >= last;
    last = row;
  }
  return TN_OK;
}

/* Writes the entries of all rows, which are in the order `sorted` (NULL: as they are), and the place of each. */
static tn_status fill_rows(tn_kernel_ctx *ctx, const tn__int_rows *entries, const int64_t *sorted, int64_t rows)
{
  const uint8_t *is_empty = ctx->outputs[2]->data;
  int64_t *to = ctx->outputs[0]->data, *places = ctx->outputs[3]->data, next = 0, at = 0;
  size_t width = (size_t)entries->width;
  tn_status st = TN_OK;
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t row = 0; st == TN_OK && row < rows; row++) {
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
    if (is_empty[row]) {
      memset(to, 0, width * sizeof *to);
      to[0] = row;
      to += width;
      st = tn__copy_value(ctx->outputs[1], at++, ctx->inputs[3], 0, ctx->err);
      continue;
    }
    for (; st == TN_OK && next < entries->n; next++, to += width, at++) {
      int64_t i = sorted == NULL ? next : sorted[next];
      const int64_t *from = entries->at + (size_t)i * width;
      if (from[0] != row) break;
      if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
      memcpy(to, from, width * sizeof *to);
      places[i] = at;
      st = tn__copy_value(ctx->outputs[1], at, ctx->inputs[1], i, ctx->err);
    }
  }
  return st;
}

static tn_status fill_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[0];
  int64_t rows = ((const int64_t *)ctx->inputs[2]->data)[0], empty, n = ctx->inputs[1]->count;
  int32_t width = indices->rank == 2 ? (int32_t)indices->dims[1] : 1;
  const tn__int_rows entries = { indices->data, n, width, 1, NULL };
  const int64_t *sorted = NULL;
  bool ordered;
  if (rows < 0) return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "%lld rows are wanted", (long long)rows);
  tn_status st = find_empty(ctx, &entries, rows, &empty, &ordered);
  tn__poll poll = tn__poll_of(ctx);
  if (st == TN_OK && !ordered && (sorted = tn__int_rows_sort(&entries, ctx->scratch, &poll)) == NULL) st = TN_CANCELLED;
  const int64_t dims[2] = { n + (st == TN_OK ? empty : 0), width };
  /* without rows, the ids of RaggedFillEmptyRows have shape [0,1], as in TensorFlow */
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 0, dims, rows == 0 ? 2 : indices->rank);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 1, dims, 1);
  if (st == TN_OK) st = tn_kernel_allocate(ctx, 3, &n, 1);
  return st == TN_OK ? fill_rows(ctx, &entries, sorted, rows) : st;
}

static tn_status infer_fill(tn_infer_ctx *ctx, int64_t n, int64_t rows, tn_error *err)
{
  tn__shape scalar;
  const int64_t unknown = -1;
  tn_status st = tn__infer_rank(ctx, 3, 0, &scalar, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 1, &unknown, 1, err);
  if (st == TN_OK) st = tn_infer_output(ctx, 2, &rows, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 3, &n, 1, err) : st;
}

static tn_status infer_sparse(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *sizes;
  int64_t n, rank;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  const int64_t indices[2] = { -1, rank };
  if (st == TN_OK) st = tn_infer_output(ctx, 0, indices, 2, err);
  bool known = st == TN_OK && tn_infer_input_ints(ctx, 2, &sizes) > 0 && sizes[0] >= 0;
  const int64_t rows = known ? sizes[0] : -1;
  return st == TN_OK ? infer_fill(ctx, n, rows, err) : st;
}

static tn_status infer_ragged(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape ids, values, scalar;
  const int64_t *rows, unknown = -1;
  tn_status st = tn__infer_rank(ctx, 0, 1, &ids, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &values, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 0, &scalar, err);
  bool known = st == TN_OK && tn_infer_input_ints(ctx, 2, &rows) == 1 && rows[0] >= 0;
  if (st == TN_OK) st = tn_infer_output(ctx, 0, &unknown, known && rows[0] > 0 ? 1 : -1, err);
  const int64_t n_rows = known ? rows[0] : -1;
  return st == TN_OK ? infer_fill(ctx, ids.dims[0], n_rows, err) : st;
}

/* ---- gradients ---- */

/* The sum of the elements whose flag is 0. */
typedef void (*rest_fn)(const void *x, const uint8_t *flags, int64_t n, void *out);

#define REST_LOOP(op, d, unused)                                                        \
  static void op##_##d(const void *x_, const uint8_t *flags, int64_t n, void *out)      \
  {                                                                                     \
    const tn__S_##d *x = x_;                                                            \
    tn__S_##d sum = TN__P_##d((tn__C_##d)0);                                            \
    for (int64_t i = 0; i < n; i++)                                                     \
      if (!flags[i]) sum = TN__P_##d(TN__L_##d(sum) + TN__L_##d(x[i]));                 \
    *(tn__S_##d *)out = sum;                                                            \
  }
#define NUMBERS(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
NUMBERS(REST_LOOP, rest)

static rest_fn rest_of(tn_dtype dtype)
{
  static const struct {
    tn_dtype dtype, twin;
    rest_fn fn;
  } all[] = {
#define ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, op##_##d },
    NUMBERS(ENTRY, rest)
#undef ENTRY
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].dtype == dtype || all[i].twin == dtype) return all[i].fn;
  return NULL;
}

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 1, err);
  ctx->scratch_bytes = (size_t)ctx->inputs[1].count;
  ctx->cost_ns = 50 + 5 * (double)ctx->inputs[1].count;
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_output(ctx, 1, NULL, 0, err) : st;
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const tn_view *map = ctx->inputs[0], *grad = ctx->inputs[1];
  const int64_t *places = map->data;
  uint8_t *used = ctx->scratch;
  tn__poll poll = tn__poll_of(ctx);
  if (grad->count > 0) memset(used, 0, (size_t)grad->count);
  for (int64_t i = 0; i < map->count; i++) {
    if (tn__poll_over(&poll, 5)) return TN_CANCELLED;
    if (places[i] < 0 || places[i] >= grad->count)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "place %lld is %lld, wanted one in [0, %lld)", (long long)i,
                          (long long)places[i], (long long)grad->count);
    tn__copy_value(ctx->outputs[0], i, grad, places[i], ctx->err);
    used[places[i]] = 1;
  }
  rest_of(grad->dtype)(grad->data, used, grad->count, ctx->outputs[1]->data);
  return TN_OK;
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape map, grad;
  tn_status st = tn__infer_rank(ctx, 0, 1, &map, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 1, &grad, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &map, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, NULL, 0, err) : st;
}

/* ---- tables ---- */

#define OP(op, in, out, bits, shapes, text)                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = "T: type",      \
    .traits = bits, .infer = shapes, .summary = text }
#define GRAD_IN "reverse_index_map: int64, grad_values: T"
#define GRAD_OUT "d_values: T, d_default_value: T"

static const tn_op_def ops[] = {
  OP("RaggedFillEmptyRows", "value_rowids: int64, values: T, nrows: int64, default_value: T",
     "output_value_rowids: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
     TN_TRAIT_DYNAMIC, infer_ragged, "a ragged tensor without empty rows"),
  OP("RaggedFillEmptyRowsGrad", GRAD_IN, GRAD_OUT, 0, infer_grad, "gradient of RaggedFillEmptyRows"),
  OP("SparseFillEmptyRows", "indices: int64, values: T, dense_shape: int64, default_value: T",
     "output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64", TN_TRAIT_DYNAMIC,
     infer_sparse, "a sparse tensor without empty rows"),
  OP("SparseFillEmptyRowsGrad", GRAD_IN, GRAD_OUT, 0, infer_grad, "gradient of SparseFillEmptyRows"),
};

#define KERNEL(which, constraint, title, prepare_fn, compute_fn)                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,    \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }
#define GRAD_TYPES                                                                                            \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("RaggedFillEmptyRows", NULL, "ragged_fill_empty_rows_cpu", ragged_prepare, fill_compute),
  KERNEL("RaggedFillEmptyRowsGrad", GRAD_TYPES, "ragged_fill_empty_rows_grad_cpu", grad_prepare, grad_compute),
  KERNEL("SparseFillEmptyRows", NULL, "sparse_fill_empty_rows_cpu", sparse_prepare, fill_compute),
  KERNEL("SparseFillEmptyRowsGrad", GRAD_TYPES, "sparse_fill_empty_rows_grad_cpu", grad_prepare, grad_compute),
};

TN_OP_FAMILY(sparse_fill)
