/* SPDX-License-Identifier: Apache-2.0 */
/* HistogramFixedWidth: counts of numbers in bins of equal width. Values outside of the range are counted in the first
 * and the last bin. */
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

#define BLOCK 256

/* Stores the distances of n elements from the lower end of the range, or 0 for those below it. False if one is NaN. */
typedef bool (*distances_fn)(const void *values, int64_t at, int64_t n, const void *range, double *to);

#define DISTANCES(name, T)                                                                                        \
  static bool distances_##name(const void *values, int64_t at, int64_t n, const void *range, double *to)          \
  {                                                                                                               \
    const T *x = (const T *)values + at, low = *(const T *)range;                                                 \
    bool nan = false;                                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                             \
      nan |= x[i] != x[i];                                                                                        \
      to[i] = (double)(x[i] < low ? low : x[i]) - (double)low;                                                    \
    }                                                                                                             \
    return !nan;                                                                                                  \
  }
DISTANCES(f32, float)
DISTANCES(f64, double)
DISTANCES(i32, int32_t)
DISTANCES(i64, int64_t)

static distances_fn distances_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return distances_f32;
  case TN_DOUBLE: return distances_f64;
  case TN_INT32: return distances_i32;
  default: return distances_i64;
  }
}

static double number_at(const tn_view *v, int64_t k)
{
  switch (v->dtype) {
  case TN_FLOAT: return (double)((const float *)v->data)[k];
  case TN_DOUBLE: return ((const double *)v->data)[k];
  case TN_INT32: return (double)((const int32_t *)v->data)[k];
  default: return (double)((const int64_t *)v->data)[k];
  }
}

static tn_status bad_bins(tn_error *err, int64_t n)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "HistogramFixedWidth: %lld bins are wanted", (long long)n);
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const int64_t two[] = { 2 };
  tn_status st = tn__want_rank(ctx, 1, 1, err);
  if (st == TN_OK && ctx->inputs[1].count != 2) st = tn__shape_error(err, ctx, 1, two, 1);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 2, err);
  if (st != TN_OK) return st;
  int64_t n = tn__operand_int(&ctx->inputs[2], 0);
  ctx->cost_ns = 50 + 5 * (double)ctx->inputs[0].count;
  return n <= 0 ? bad_bins(err, n) : tn_prepare_output(ctx, 0, &n, 1, err);
}

static tn_status count(tn_kernel_ctx *ctx, double step)
{
  const tn_view *values = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  distances_fn distances = distances_of(values->dtype);
  double block[BLOCK], last = (double)(out->count - 1);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t at = 0, n; at < values->count; at += n) {
    n = values->count - at < BLOCK ? values->count - at : BLOCK;
    if (tn__poll_over(&poll, 5 * n)) return TN_CANCELLED;
    if (!distances(values->data, at, n, ctx->inputs[1]->data, block))
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "one of the values from %lld on is NaN", (long long)at);
    for (int64_t i = 0; i < n; i++) {
      double bin = block[i] / step;
      if (!(bin > 0)) bin = 0; /* also if both are infinite */
      int64_t k = (int64_t)(bin < last ? bin : last);
      if (out->dtype == TN_INT64) ((int64_t *)out->data)[k]++;
      else ((uint32_t *)out->data)[k]++;
    }
  }
  return TN_OK;
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  tn_view *out = ctx->outputs[0];
  double low = number_at(ctx->inputs[1], 0), high = number_at(ctx->inputs[1], 1);
  if (!(low < high))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "HistogramFixedWidth: the range is not one of ascending numbers");
  memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return count(ctx, (high - low) / (double)out->count);
}

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape range, scalar;
  const int64_t *items;
  int64_t n = -1, two = 2;
  tn_status st = tn__infer_rank(ctx, 1, 1, &range, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 0, &scalar, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&two, range.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "HistogramFixedWidth: the range has %lld numbers, wanted 2",
                        (long long)range.dims[0]);
  if (tn_infer_input_ints(ctx, 2, &items) == 1 && items[0] != TN_UNKNOWN_INT) n = items[0];
  if (n == 0 || n < -1) return bad_bins(err, n);
  return tn_infer_output(ctx, 0, &n, 1, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "HistogramFixedWidth", .inputs = "values: T, value_range: T, nbins: int32",
    .outputs = "out: dtype", .attrs = "T: {int32, int64, float, double}; dtype: {int32, int64} = int32",
    .shape_operands = 1u << 2, .infer = infer, .summary = "counts of numbers in bins of equal width" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "HistogramFixedWidth", .device = "CPU",
    .name = "histogram_fixed_width_cpu", .rank = TN_RANK_C, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(histogram)
