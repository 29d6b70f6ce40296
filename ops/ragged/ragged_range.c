/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedRange: a range of numbers in each row. */
#include <core/base/text.h>
#include <math.h>
#include <ops/kernel/family.h>
#include <ops/ragged/ragged.h>

/* ---- ranges ---- */

/* The number of elements of a range. TN_INVALID_ARGUMENT if delta is 0, or the number is not finite. */
typedef tn_status (*length_fn)(const void *start, const void *limit, const void *delta, int64_t *n, tn_error *err);
/* Writes n elements. Floats are added up, as in TensorFlow. */
typedef void (*write_fn)(const void *start, const void *delta, void *to, int64_t n);

static tn_status no_delta(tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "RaggedRange: a delta is 0");
}

static tn_status too_long(tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "RaggedRange: a range has too many elements");
}

#define INTEGERS(T, U)                                                                                         \
  static tn_status length_##T(const void *start_, const void *limit_, const void *delta_, int64_t *n,          \
                              tn_error *err)                                                                   \
  {                                                                                                            \
    T start = *(const T *)start_, limit = *(const T *)limit_, delta = *(const T *)delta_;                      \
    *n = 0;                                                                                                    \
    if (delta == 0) return no_delta(err);                                                                      \
    if (delta > 0 ? limit < start : limit > start) return TN_OK;                                               \
    uint64_t distance = delta > 0 ? (U)limit - (U)start : (U)((U)start - (U)limit);                            \
    uint64_t step = delta > 0 ? (U)delta : (U)(0 - (U)delta);                                                  \
    uint64_t whole = distance / step + (distance % step != 0);                                                 \
    *n = (int64_t)whole;                                                                                       \
    return whole > INT64_MAX ? too_long(err) : TN_OK;                                                          \
  }                                                                                                            \
  static void write_##T(const void *start, const void *delta, void *to_, int64_t n)                            \
  {                                                                                                            \
    U value = (U)*(const T *)start, step = (U)*(const T *)delta;                                               \
    T *to = to_;                                                                                               \
    for (int64_t i = 0; i < n; i++, value += step) to[i] = (T)value;                                           \
  }
INTEGERS(int32_t, uint32_t)
INTEGERS(int64_t, uint64_t)

#define FLOATS(T, ceil_, fabs_)                                                                                \
  static tn_status length_##T(const void *start_, const void *limit_, const void *delta_, int64_t *n,          \
                              tn_error *err)                                                                   \
  {                                                                                                            \
    T start = *(const T *)start_, limit = *(const T *)limit_, delta = *(const T *)delta_;                      \
    *n = 0;                                                                                                    \
    if (delta == 0) return no_delta(err);                                                                      \
    if ((delta > 0 && limit < start) || (delta < 0 && limit > start)) return TN_OK;                            \
    T length = ceil_(fabs_((limit - start) / delta));                                                          \
    if (!(length < (T)0x1p63)) return too_long(err);                                                           \
    *n = (int64_t)length;                                                                                      \
    return TN_OK;                                                                                              \
  }                                                                                                            \
  static void write_##T(const void *start, const void *delta, void *to_, int64_t n)                            \
  {                                                                                                            \
    T value = *(const T *)start, step = *(const T *)delta, *to = to_;                                          \
    for (int64_t i = 0; i < n; i++, value += step) to[i] = value;                                              \
  }
FLOATS(float, ceilf, fabsf)
FLOATS(double, ceil, fabs)

static const struct range_fns {
  tn_dtype dtype;
  length_fn length;
  write_fn write;
} all_fns[] = {
  { TN_FLOAT, length_float, write_float },
  { TN_DOUBLE, length_double, write_double },
  { TN_INT32, length_int32_t, write_int32_t },
  { TN_INT64, length_int64_t, write_int64_t },
};

/* ---- the kernel ---- */

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  *state = NULL;
  for (size_t i = 0; i < sizeof all_fns / sizeof *all_fns; i++)
    if (all_fns[i].dtype == dtype) *state = (void *)(uintptr_t)&all_fns[i]; /* only read through it */
  return *state != NULL ? TN_OK : tn__no_kernel(err, op, dtype);
}

/* Vectors of one length, or scalars for all rows. */
static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t rows = -1;
  for (uint32_t i = 0; i < 3; i++) {
    const tn_view *v = &ctx->inputs[i];
    if (v->rank > 1) return tn__want_rank(ctx, i, 1, err);
    if (v->rank == 1 && rows >= 0 && v->count != rows) return tn__shape_error(err, ctx, i, &rows, 1);
    if (v->rank == 1) rows = v->count;
  }
  if (rows < 0) rows = 1;
  ctx->cost_ns = 1000 + 20 * (double)rows;
  int64_t splits = rows + 1;
  tn_status st = tn_prepare_output(ctx, 0, &splits, 1, err);
  return st == TN_OK ? tn_prepare_dynamic(ctx, 1, err) : st;
}

static const void *element(const tn_view *v, int64_t row)
{
  return (const char *)v->data + (v->rank == 0 ? 0 : (size_t)row * tn_dtype_size(v->dtype));
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const struct range_fns *fns = ctx->state;
  tn_view *splits = ctx->outputs[0];
  int64_t rows = splits->count - 1, total = 0, n;
  tn__poll poll = tn__poll_of(ctx);
  tn__split_put(splits, 0, 0);
  for (int64_t row = 0; row < rows; row++) {
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
    tn_status st = fns->length(element(ctx->inputs[0], row), element(ctx->inputs[1], row), element(ctx->inputs[2], row),
                               &n, ctx->err);
    if (st != TN_OK) return st;
    if (__builtin_add_overflow(total, n, &total) || !tn__split_fits(splits->dtype, total)) return too_long(ctx->err);
    tn__split_put(splits, row + 1, total);
  }
  tn_status st = tn_kernel_allocate(ctx, 1, &total, 1);
  if (st != TN_OK) return st;
  size_t size = tn_dtype_size(ctx->outputs[1]->dtype);
  char *to = ctx->outputs[1]->data;
  for (int64_t row = 0; row < rows; row++, to += (size_t)n * size) {
    n = tn__view_int_at(splits, row + 1) - tn__view_int_at(splits, row);
    if (tn__poll_over(&poll, 5 + n)) return TN_CANCELLED;
    fns->write(element(ctx->inputs[0], row), element(ctx->inputs[2], row), to, n);
  }
  return TN_OK;
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t rows = -1, splits, unknown = -1;
  bool scalars = true;
  for (size_t i = 0; i < 3; i++) {
    const int64_t *dims;
    int32_t rank = tn_infer_input(ctx, i, &dims);
    scalars = scalars && rank == 0;
    if (rank > 1 || (rank == 1 && !tn__dim_merge(&rows, dims[0])))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "RaggedRange: input %zu does not fit the inputs before it", i);
  }
  splits = rows < 0 ? -1 : rows + 1;
  if (scalars) splits = 2;
  tn_status st = tn_infer_output(ctx, 0, &splits, 1, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, &unknown, 1, err) : st;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "RaggedRange", .inputs = "starts: T, limits: T, deltas: T",
    .outputs = "rt_nested_splits: Tsplits, rt_dense_values: T",
    .attrs = "T: {bfloat16, float, double, int32, int64} = int32; Tsplits: {int32, int64} = int64",
    .traits = TN_TRAIT_DYNAMIC, .infer = infer, .summary = "a range of numbers in each row of a ragged tensor" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RaggedRange", .device = "CPU", .types = "T=float|double|int32|int64",
    .name = "ragged_range_cpu", .rank = TN_RANK_C, .create = create, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(ragged_range)
