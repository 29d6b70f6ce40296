/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse tensors with dense ones: SparseToDense, SparseTensorDenseAdd, and SparseDenseCwiseAdd ...Mul ...Div, which
 * give values for the same indices. */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/move/scatter.h>
#include <ops/kernel/operands.h>
#include <ops/sparse/sparse.h>

#define MOST_DIMS 5 /* of ops that TensorFlow limits to this rank */

static tn_status bad_rank(tn_error *err, const char *op, int64_t rank)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a tensor of rank %lld, wanted 1 to %d", op, (long long)rank,
                      MOST_DIMS);
}

/* ---- SparseToDense ---- */

/* Indices may be a matrix, a vector of indices into a vector, or a scalar. */
static int64_t rows_of(const tn_view *indices) { return indices->rank > 0 ? indices->dims[0] : 1; }
static int64_t depth_of(const tn_view *indices) { return indices->rank > 1 ? indices->dims[1] : 1; }

static tn_status to_dense_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *indices = &ctx->inputs[0], *sizes = &ctx->inputs[1], *values = &ctx->inputs[2];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = indices->rank > 2 ? tn__want_rank(ctx, 0, 2, err) : TN_OK;
  int64_t depth = depth_of(indices), rows = rows_of(indices);
  if (st == TN_OK) st = tn__want_vector(ctx, 1, depth, err);
  if (st == TN_OK && values->rank > 0 && (values->rank != 1 || values->count != rows))
    st = tn__shape_error(err, ctx, 2, &rows, 1);
  if (st == TN_OK) st = tn__want_rank(ctx, 3, 0, err);
  if (st != TN_OK) return st;
  if (depth > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld dimensions are wanted, at most %d are possible", op,
                        (long long)depth, TN_MAX_RANK);
  tn__shape out = { .rank = (int32_t)depth };
  for (int32_t d = 0; d < out.rank; d++) {
    out.dims[d] = tn__operand_int(sizes, d);
    if (out.dims[d] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %d of the shape wanted is %lld", op, (int)d,
                          (long long)out.dims[d]);
  }
  ctx->cost_ns = 50 + 10 * (double)rows;
  ctx->shape_state = tn__attr_bool(ctx->op, "validate_indices", true) ? (void *)(uintptr_t)op : NULL; /* a flag */
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* Checks that indices ascend. */
static tn_status check_order(const tn_kernel_ctx *ctx, const tn__index_space *space, tn__poll *poll)
{
  int64_t last = -1, places[TN__INDEX_BLOCK];
  for (int64_t at = 0, n; at < space->n; at += n) {
    n = space->n - at < TN__INDEX_BLOCK ? space->n - at : TN__INDEX_BLOCK;
    if (tn__poll_over(poll, 5 * n)) return TN_CANCELLED;
    tn__space_places(space, at, n, places);
    for (int64_t i = 0; i < n; i++) {
      if (places[i] <= last)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "index %lld is %s", (long long)(at + i),
                            places[i] == last ? "repeated" : "out of order");
      last = places[i];
    }
  }
  return TN_OK;
}

static tn_status to_dense_compute(tn_kernel_ctx *ctx)
{
  const tn_view *indices = ctx->inputs[0], *values = ctx->inputs[2];
  tn_view *out = ctx->outputs[0];
  const int64_t dims[2] = { rows_of(indices), depth_of(indices) };
  tn_view matrix = *indices;
  matrix.dims = dims;
  matrix.rank = 2;
  tn__index_space space;
  tn__space_init(&space, &matrix, out->dims);
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__space_find_bad(&space) >= 0 ? tn__space_error(&space, ctx->err) : TN_OK;
  if (st == TN_OK && ctx->shape_state != NULL) st = check_order(ctx, &space, &poll);
  if (st == TN_OK && out->count > 0) st = tn__fill_all(ctx, out, ctx->inputs[3]->data);
  if (st == TN_OK && tn_kernel_cancelled(ctx)) st = TN_CANCELLED;
  int64_t places[TN__INDEX_BLOCK];
  for (int64_t at = 0, n; st == TN_OK && at < space.n; at += n) {
    n = space.n - at < TN__INDEX_BLOCK ? space.n - at : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, 10 * n)) return TN_CANCELLED;
    tn__space_places(&space, at, n, places);
    for (int64_t i = 0; st == TN_OK && i < n; i++)
      st = tn__copy_value(out, places[i], values, values->rank == 0 ? 0 : at + i, ctx->err);
  }
  return st;
}

static tn_status infer_to_dense(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out;
  out.rank = tn_infer_input_as_shape(ctx, 1, out.dims);
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- SparseTensorDenseAdd ---- */

static tn_status add_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__scatter s;
  *state = NULL;
  tn_status st = tn__scatter_init(&s, op, TN__SCATTER_ADD, tn_operation_output_dtype(op, 0), err);
  return st == TN_OK ? tn__keep_state(&s, sizeof s, "state of an addition", state, err) : st;
}

static void add_destroy(void *state) { tn__free(state, sizeof(tn__scatter)); }

static tn_status add_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t rank = ctx->inputs[3].rank;
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK && ctx->inputs[2].count != rank) st = tn__shape_error(err, ctx, 2, &rank, 1);
  if (st == TN_OK && (rank < 1 || rank > MOST_DIMS)) st = bad_rank(err, tn_operation_type(ctx->op), rank);
  if (st != TN_OK) return st;
  ctx->cost_ns = 50 + 10 * (double)ctx->inputs[1].count + 0.1 * (double)ctx->inputs[3].count;
  st = tn_prepare_output_like(ctx, 0, 3, err);
  return st == TN_OK ? tn_prepare_in_place(ctx, 0, 3, err) : st;
}

static tn_status add_compute(tn_kernel_ctx *ctx)
{
  const tn_view *dense = ctx->inputs[3];
  tn_view *out = ctx->outputs[0];
  for (int32_t d = 0; d < dense->rank; d++)
    if (tn__view_int_at(ctx->inputs[2], d) != dense->dims[d])
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "size %d of the sparse tensor is %lld, that of the dense one %lld", (int)d,
                          (long long)tn__view_int_at(ctx->inputs[2], d), (long long)dense->dims[d]);
  tn__index_space space;
  tn__space_init(&space, ctx->inputs[0], out->dims);
  if (space.n > 0 && tn__space_find_bad(&space) >= 0) return tn__space_error(&space, ctx->err);
  tn_status st = TN_OK;
  if (out->data != dense->data) st = tn__copy_elements(out->dtype, out->data, dense->data, dense->count, ctx->err);
  if (st != TN_OK || space.n == 0) return st;
  tn__poll poll = tn__poll_of(ctx);
  return tn__scatter_run(ctx->state, &space, out->data, ctx->inputs[1]->data, 1, 0, &poll, ctx->err);
}

static tn_status infer_add(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape dense;
  tn__infer_get(ctx, 3, &dense);
  return tn__infer_set(ctx, 0, &dense, err);
}

/* ---- SparseDenseCwise... ---- */

/* out[i] = values[i] op dense[places[i]]. False: division by zero. */
typedef bool (*cwise_fn)(const void *values, const void *dense, const int64_t *places, void *out, int64_t n);

#define EXPR_add(d, x, y) ((x) + (y))
#define EXPR_mul(d, x, y) TN__MUL(x, y)
#define EXPR_div(d, x, y) TN__DIV(x, y)
/* Wraps where the quotient does not fit. */
#define EXPR_quot_signed(d, x, y) ((y) == -1 ? 0 - (uint64_t)(x) : (uint64_t)((x) / (y)))
#define EXPR_quot(d, x, y) ((x) / (y))

#define CWISE_LOOP(op, d, unused)                                                                              \
  static bool op##_##d(const void *values, const void *dense, const int64_t *places, void *out_, int64_t n)    \
  {                                                                                                            \
    const tn__S_##d *a = values, *b = dense;                                                                   \
    tn__S_##d *out = out_;                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                          \
      tn__C_##d x = TN__L_##d(a[i]), y = TN__L_##d(b[places[i]]);                                              \
      out[i] = TN__P_##d(EXPR_##op(d, x, y));                                                                  \
    }                                                                                                          \
    return true;                                                                                               \
  }
#define SUMS(X, op) TN__SAME_FLOATS(X, op) TN__WRAP_SIGNED(X, op)
SUMS(CWISE_LOOP, add)
SUMS(CWISE_LOOP, mul)
TN__SAME_FLOATS(CWISE_LOOP, div)
TN__SAME_SIGNED(CWISE_LOOP, quot_signed)
TN__SAME_UNSIGNED(CWISE_LOOP, quot)

typedef struct cwise_loop {
  tn_dtype dtype, twin; /* twin: the unsigned dtype with the same wrapping arithmetic, or the dtype itself */
  cwise_fn fn;
  bool no_zeros;
} cwise_loop;

#define CWISE_ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, op##_##d, false },
#define DIV_ENTRY(op, d, unused) { TN__D_##d, TN__TWIN_##d, op##_##d, true },
static const cwise_loop add_loops[] = { SUMS(CWISE_ENTRY, add) };
static const cwise_loop mul_loops[] = { SUMS(CWISE_ENTRY, mul) };
static const cwise_loop div_loops[] = { TN__SAME_FLOATS(DIV_ENTRY, div) TN__SAME_SIGNED(DIV_ENTRY, quot_signed)
                                        TN__SAME_UNSIGNED(DIV_ENTRY, quot) };

static tn_status cwise_create(const tn_operation *op, const cwise_loop *loops, size_t n, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  *state = NULL;
  for (size_t i = 0; i < n; i++) {
    if (loops[i].dtype != dtype && loops[i].twin != dtype) continue;
    *state = (void *)(uintptr_t)&loops[i]; /* only read through it */
    return TN_OK;
  }
  return tn__no_kernel(err, op, dtype);
}

#define CWISE_CREATE(op)                                                                     \
  static tn_status op##_cwise_create(const tn_operation *node, void **state, tn_error *err)  \
  {                                                                                          \
    return cwise_create(node, op##_loops, sizeof op##_loops / sizeof *op##_loops, state, err); \
  }
CWISE_CREATE(add)
CWISE_CREATE(mul)
CWISE_CREATE(div)

static tn_status cwise_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t rank = ctx->inputs[2].count;
  tn_status st = tn__want_sparse(ctx, 0, 1, 2, err);
  if (st == TN_OK && (rank < 1 || rank > MOST_DIMS)) st = bad_rank(err, tn_operation_type(ctx->op), rank);
  ctx->cost_ns = 50 + 8 * (double)ctx->inputs[1].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 1, err) : st;
}

/* The distance of neighbours of the dense tensor in each dimension of the sparse one; 0 where it is broadcast. */
static tn_status broadcast_strides(const tn_kernel_ctx *ctx, const tn__shape *shape, int64_t *strides)
{
  const tn_view *dense = ctx->inputs[3];
  int32_t lead = shape->rank - dense->rank;
  int64_t stride = 1;
  bool fits = lead >= 0;
  for (int32_t d = shape->rank - 1; fits && d >= 0; d--) {
    int64_t size = d < lead ? 1 : dense->dims[d - lead], own = shape->dims[d];
    fits = d < lead || size == own || (size == 1 && own > 0) || (size == 0 && own == 1 && ctx->inputs[1]->count == 0);
    strides[d] = size == 1 ? 0 : stride;
    stride *= size;
  }
  if (fits) return TN_OK;
  char x[160], y[160];
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "dense shape %s does not broadcast to %s",
                      tn__format_shape(x, sizeof x, dense->dims, dense->rank),
                      tn__format_shape(y, sizeof y, shape->dims, shape->rank));
}

static bool has_zero(const tn_view *v, tn__poll *poll)
{
  uint64_t mask = tn_dtype_size(v->dtype) == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * tn_dtype_size(v->dtype))) - 1;
  bool floating = v->dtype == TN_FLOAT || v->dtype == TN_DOUBLE || v->dtype == TN_HALF || v->dtype == TN_BFLOAT16;
  if (floating) mask >>= 1; /* without the sign */
  for (int64_t i = 0; i < v->count && !tn__poll_over(poll, 1); i++) {
    uint64_t bits;
    switch (tn_dtype_size(v->dtype)) {
    case 1: bits = ((const uint8_t *)v->data)[i]; break;
    case 2: bits = ((const uint16_t *)v->data)[i]; break;
    case 4: bits = ((const uint32_t *)v->data)[i]; break;
    default: bits = ((const uint64_t *)v->data)[i];
    }
    if ((bits & mask) == 0) return true;
  }
  return false;
}

static tn_status cwise_compute(tn_kernel_ctx *ctx)
{
  const cwise_loop *loop = ctx->state;
  const int64_t *at = ctx->inputs[0]->data;
  tn__shape shape;
  int64_t strides[MOST_DIMS], places[TN__INDEX_BLOCK], all = ctx->inputs[1]->count;
  size_t size = tn_dtype_size(ctx->outputs[0]->dtype);
  tn__poll poll = tn__poll_of(ctx);
  tn_status st = tn__sparse_shape(ctx, 2, &shape);
  if (st == TN_OK) st = broadcast_strides(ctx, &shape, strides);
  if (st == TN_OK) st = tn__sparse_check_bounds(ctx, 0, shape.dims, &poll);
  if (st == TN_OK && loop->no_zeros && has_zero(ctx->inputs[3], &poll))
    st = tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "division by zero: the dense tensor has a zero");
  for (int64_t begin = 0, n; st == TN_OK && begin < all; begin += n) {
    n = all - begin < TN__INDEX_BLOCK ? all - begin : TN__INDEX_BLOCK;
    if (tn__poll_over(&poll, 8 * n)) return TN_CANCELLED;
    for (int64_t i = 0; i < n; i++, at += shape.rank) {
      places[i] = 0;
      for (int32_t d = 0; d < shape.rank; d++) places[i] += at[d] * strides[d];
    }
    loop->fn((const char *)ctx->inputs[1]->data + (size_t)begin * size, ctx->inputs[3]->data, places,
             (char *)ctx->outputs[0]->data + (size_t)begin * size, n);
  }
  return st;
}

static tn_status infer_cwise(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t n, rank;
  tn_status st = tn__infer_sparse(ctx, 0, 1, 2, &n, &rank, err);
  return st == TN_OK ? tn_infer_output(ctx, 0, &n, 1, err) : st;
}

/* ---- tables ---- */

#define T_NUMBERS "T: {numbertype, qint16, quint16}"
#define CWISE_OP(op, text)                                                                                         \
  { .struct_size = TN_OP_DEF_SIZE, .name = op,                                                                     \
    .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T", .outputs = "output: T",                \
    .attrs = T_NUMBERS, .infer = infer_cwise, .summary = text }

static const tn_op_def ops[] = {
  CWISE_OP("SparseDenseCwiseAdd", "values of a sparse tensor plus those of a dense one"),
  CWISE_OP("SparseDenseCwiseDiv", "values of a sparse tensor by those of a dense one"),
  CWISE_OP("SparseDenseCwiseMul", "values of a sparse tensor times those of a dense one"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseTensorDenseAdd",
    .inputs = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T", .outputs = "output: T",
    .attrs = T_NUMBERS "; Tindices: {int32, int64}", .infer = infer_add,
    .summary = "adds a sparse tensor to a dense one" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "SparseToDense",
    .inputs = "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T",
    .outputs = "dense: T", .attrs = "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
    .shape_operands = 1u << 1, .infer = infer_to_dense, .summary = "a sparse tensor as a dense one" },
};

#define REAL_TYPES "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define CWISE_KERNEL(which, title, fn)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = REAL_TYPES, .name = title,        \
    .rank = TN_RANK_C, .create = fn, .prepare = cwise_prepare, .compute = cwise_compute }

static const tn_kernel_def kernels[] = {
  CWISE_KERNEL("SparseDenseCwiseAdd", "sparse_dense_cwise_add_cpu", add_cwise_create),
  CWISE_KERNEL("SparseDenseCwiseDiv", "sparse_dense_cwise_div_cpu", div_cwise_create),
  CWISE_KERNEL("SparseDenseCwiseMul", "sparse_dense_cwise_mul_cpu", mul_cwise_create),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseTensorDenseAdd", .device = "CPU",
    .types = REAL_TYPES "|complex64|complex128", .name = "sparse_tensor_dense_add_cpu", .rank = TN_RANK_C,
    .create = add_create, .destroy = add_destroy, .prepare = add_prepare, .compute = add_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SparseToDense", .device = "CPU", .name = "sparse_to_dense_cpu",
    .rank = TN_RANK_C, .prepare = to_dense_prepare, .compute = to_dense_compute },
};

TN_OP_FAMILY(sparse_dense)
