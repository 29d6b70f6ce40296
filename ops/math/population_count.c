/* SPDX-License-Identifier: Apache-2.0 */
/* The number of bits that are set in each integer: PopulationCount. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

#define COUNT(T, popcount)                                                \
  static void count_##T(void *user, int64_t begin, int64_t end)           \
  {                                                                       \
    tn_kernel_ctx *ctx = user;                                            \
    const T *x = ctx->inputs[0]->data;                                    \
    uint8_t *y = ctx->outputs[0]->data;                                   \
    for (int64_t i = begin; i < end; i++) y[i] = (uint8_t)popcount(x[i]); \
  }
COUNT(uint8_t, __builtin_popcount)
COUNT(uint16_t, __builtin_popcount)
COUNT(uint32_t, __builtin_popcount)
COUNT(uint64_t, __builtin_popcountll)

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 50 + (double)ctx->inputs[0].count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  int64_t n = ctx->outputs[0]->count;
  void (*fn)(void *user, int64_t begin, int64_t end) = count_uint64_t;
  switch (tn_dtype_size(ctx->inputs[0]->dtype)) {
  case 1: fn = count_uint8_t; break;
  case 2: fn = count_uint16_t; break;
  case 4: fn = count_uint32_t; break;
  default: break;
  }
  if (n <= TN__SERIAL_ELEMENTS) fn(ctx, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.5, fn, ctx);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "PopulationCount", .inputs = "x: T", .outputs = "y: uint8",
    .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", .infer = tn__infer_unchanged,
    .summary = "number of set bits" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("PopulationCount", "population_count_cpu", NULL, NULL, prepare, compute),
};

TN_OP_FAMILY(population_count)
