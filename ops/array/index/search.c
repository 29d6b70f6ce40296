/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search in sorted rows: LowerBound UpperBound. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* Counts the elements of sorted[n] that are below v (lower), or not above it (upper), by bisection. */
typedef struct search_job {
  const void *sorted, *values;
  void *out;
  int64_t n, m; /* elements per row */
  bool upper, wide; /* wide: int64 results */
} search_job;

#define SEARCH(name, S, T, load)                                                       \
  static void search_##name(void *user, int64_t begin, int64_t end)                    \
  {                                                                                    \
    const search_job *job = user;                                                      \
    for (int64_t i = begin; i < end; i++) {                                            \
      const S *row = (const S *)job->sorted + i / job->m * job->n;                     \
      T v = load(((const S *)job->values)[i]);                                         \
      int64_t at = 0;                                                                  \
      for (int64_t left = job->n; left > 0;) {                                         \
        int64_t half = left / 2;                                                       \
        T x = load(row[at + half]);                                                    \
        bool below = job->upper ? !(v < x) : x < v;                                    \
        at = below ? at + half + 1 : at;                                               \
        left = below ? left - half - 1 : half;                                         \
      }                                                                                \
      if (job->wide) ((int64_t *)job->out)[i] = at;                                    \
      else ((int32_t *)job->out)[i] = (int32_t)at;                                     \
    }                                                                                  \
  }
SEARCH(i8, int8_t, int8_t, )
SEARCH(u8, uint8_t, uint8_t, )
SEARCH(i16, int16_t, int16_t, )
SEARCH(u16, uint16_t, uint16_t, )
SEARCH(i32, int32_t, int32_t, )
SEARCH(u32, uint32_t, uint32_t, )
SEARCH(i64, int64_t, int64_t, )
SEARCH(u64, uint64_t, uint64_t, )
SEARCH(f32, float, float, )
SEARCH(f64, double, double, )
SEARCH(f16, uint16_t, float, tn__half_to_float)
SEARCH(bf16, uint16_t, float, tn__bfloat16_to_float)

typedef struct search {
  void (*fn)(void *user, int64_t begin, int64_t end);
  bool upper;
} search;

static tn_status search_create(const tn_operation *op, void **state, tn_error *err)
{
  static const struct { tn_dtype dtype; search how[2]; } table[] = {
#define ENTRY(dtype, name) { dtype, { { search_##name, false }, { search_##name, true } } }
    ENTRY(TN_INT8, i8), ENTRY(TN_UINT8, u8), ENTRY(TN_INT16, i16), ENTRY(TN_UINT16, u16), ENTRY(TN_INT32, i32),
    ENTRY(TN_UINT32, u32), ENTRY(TN_INT64, i64), ENTRY(TN_UINT64, u64), ENTRY(TN_FLOAT, f32), ENTRY(TN_DOUBLE, f64),
    ENTRY(TN_HALF, f16), ENTRY(TN_BFLOAT16, bf16),
#undef ENTRY
  };
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  bool upper = strcmp(tn_operation_type(op), "UpperBound") == 0;
  *state = NULL;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (table[i].dtype != dtype) continue;
    *state = (void *)&table[i].how[upper]; /* only read through it */
    return TN_OK;
  }
  return tn__no_kernel(err, op, dtype);
}

static tn_status search_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *sorted = &ctx->inputs[0], *values = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  if (sorted->dims[0] != values->dims[0]) {
    int64_t wanted[2] = { sorted->dims[0], values->dims[1] };
    return tn__shape_error(err, ctx, 1, wanted, 2);
  }
  if (tn_operation_output_dtype(ctx->op, 0) == TN_INT32 && sorted->dims[1] > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: places in rows of %lld do not fit int32, set out_type to int64",
                        tn_operation_type(ctx->op), (long long)sorted->dims[1]);
  ctx->cost_ns = 20 + 10 * (double)values->count;
  return tn_prepare_output_like(ctx, 0, 1, err);
}

static tn_status search_compute(tn_kernel_ctx *ctx)
{
  const search *s = ctx->state;
  const tn_view *sorted = ctx->inputs[0], *values = ctx->inputs[1];
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK;
  search_job job = { sorted->data, values->data, out->data, sorted->dims[1], values->dims[1], s->upper,
                     out->dtype == TN_INT64 };
  if (out->count <= TN__SERIAL_ELEMENTS / 8)
    s->fn(&job, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS / 16, 10, s->fn, &job);
  return TN_OK;
}

static tn_status infer_search(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape sorted, values;
  tn_status st = tn__infer_rank(ctx, 0, 2, &sorted, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &values, err);
  if (st != TN_OK) return st;
  if (!tn__dim_merge(&values.dims[0], sorted.dims[0]))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 0 and 1 have %lld and %lld rows, wanted equal numbers",
                        tn__infer_op(ctx), (long long)sorted.dims[0], (long long)values.dims[0]);
  return tn__infer_set(ctx, 0, &values, err);
}

/* ---- tables ---- */

#define OP(op, text)                                                                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "sorted_inputs: T, values: T",           \
    .outputs = "output: out_type", .attrs = "T: type; out_type: {int32, int64} = int32",          \
    .infer = infer_search, .summary = text }

static const tn_op_def ops[] = {
  OP("LowerBound", "index of the first element >= the value in a sorted row"),
  OP("UpperBound", "index of the first element > the value in a sorted row"),
};

#define KERNEL(which, title)                                                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU",                                           \
    .types = "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64", .name = title,  \
    .rank = TN_RANK_C, .create = search_create, .prepare = search_prepare, .compute = search_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("LowerBound", "lower_bound_cpu"),
  KERNEL("UpperBound", "upper_bound_cpu"),
};

TN_OP_FAMILY(search)
