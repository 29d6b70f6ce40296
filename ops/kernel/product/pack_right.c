/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/pack_right.h>
#include <core/base/map.h>
#include <ops/kernel/product/gemm_kernel.h>

tn__gemm_weights tn__weights_of(const tn_operation *op)
{
  tn_dtype dtype;
  if (tn_operation_attr_type(op, "W", &dtype, NULL) != TN_OK) return TN__GEMM_FULL;
  return dtype == TN_INT8 ? TN__GEMM_INT8 : TN__GEMM_BFLOAT16;
}

static tn_status pack(void *user, const tn_view *from, void *to, tn_error *err)
{
  if (tn__gemm_pack(user, from->data, to)) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "weights of int8 have no infinity and no NaN");
}

static tn_status pack_as(tn_prepare_ctx *ctx, tn__gemm_plan *g, tn__gemm_weights weights, const void **packed,
                         tn_error *err)
{
  g->weights = weights;
  tn__gemm_plan_choose(g);
  const int64_t parts[] = { g->n, g->k, g->b_row, g->b_col, g->kernel->nr, (int64_t)weights };
  return tn_prepare_pack(ctx, 1, tn__hash(parts, sizeof parts), tn__gemm_packed_bytes(g), pack, g, packed, err);
}

tn_status tn__pack_right(tn_prepare_ctx *ctx, tn__gemm_plan *g, tn__gemm_weights weights, const void **packed,
                         tn_error *err)
{
  tn_status st = TN_UNIMPLEMENTED;
  *packed = NULL;
  if (ctx->inputs[1].count > 0 && weights != TN__GEMM_FULL) {
    st = pack_as(ctx, g, weights, packed, err);
    if (st != TN_OK && st != TN_UNIMPLEMENTED && st != TN_FAILED_PRECONDITION) return st;
    if (st != TN_OK) tn_error_clear(err);
  }
  if (ctx->inputs[1].count > 0 && st != TN_OK && pack_as(ctx, g, TN__GEMM_FULL, packed, NULL) != TN_OK) *packed = NULL;
  g->packed = *packed != NULL;
  tn__gemm_plan_choose(g);
  return TN_OK;
}
