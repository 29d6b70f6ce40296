/* SPDX-License-Identifier: Apache-2.0 */
/* Cross: products of vectors of three elements. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

#define LOOP(d)                                                                          \
  static void cross_##d(const tn_kernel_ctx *ctx)                                        \
  {                                                                                      \
    const tn__S_##d *a = ctx->inputs[0]->data, *b = ctx->inputs[1]->data;                \
    tn__S_##d *y = ctx->outputs[0]->data;                                                \
    for (int64_t i = 0; i < ctx->outputs[0]->count; i += 3)                              \
      for (int j = 0; j < 3; j++) {                                                      \
        const int64_t p = i + (j + 1) % 3, q = i + (j + 2) % 3;                          \
        tn__C_##d first = TN__L_##d(TN__P_##d(TN__L_##d(a[p]) * TN__L_##d(b[q])));       \
        tn__C_##d second = TN__L_##d(TN__P_##d(TN__L_##d(a[q]) * TN__L_##d(b[p])));      \
        y[i + j] = TN__P_##d(first - second);                                            \
      }                                                                                  \
  }
LOOP(f32)
LOOP(f64)
LOOP(f16)
LOOP(bf16)
LOOP(wi8)
LOOP(wi16)
LOOP(wi32)
LOOP(wi64)

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 0, 1, err);
  if (st != TN_OK) return st;
  if (in->dims[in->rank - 1] != 3)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "Cross: the last dimension is %lld, wanted 3",
                        (long long)in->dims[in->rank - 1]);
  ctx->cost_ns = 50 + (double)in->count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  switch (ctx->inputs[0]->dtype) {
  case TN_FLOAT: cross_f32(ctx); break;
  case TN_DOUBLE: cross_f64(ctx); break;
  case TN_HALF: cross_f16(ctx); break;
  case TN_BFLOAT16: cross_bf16(ctx); break;
  case TN_INT8:
  case TN_UINT8: cross_wi8(ctx); break;
  case TN_INT16:
  case TN_UINT16: cross_wi16(ctx); break;
  case TN_INT32:
  case TN_UINT32: cross_wi32(ctx); break;
  default: cross_wi64(ctx); break;
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Cross", .inputs = "a: T, b: T", .outputs = "product: T",
    .attrs = "T: realnumbertype", .infer = tn__infer_merged, .summary = "cross product of vectors of 3 elements" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("Cross", "cross_cpu", NULL, NULL, prepare, compute),
};

TN_OP_FAMILY(cross)
