/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tables of costs: one line an op. What a function does not set is the default of tn_cost_ctx
 * (<tenon/op.h>). Shapes are those that a kernel has accepted. */
#ifndef TN_OPS_COST_COST_H
#define TN_OPS_COST_COST_H

#include <ops/kernel/family.h>

#define TN__COST(name, fn)                                  \
  {                                                         \
    .struct_size = TN_COST_DEF_SIZE, .op = name, .cost = fn \
  }

/* The number of items of a list attribute. */
static inline double tn__cost_items(const tn_cost_ctx *ctx, const char *name)
{
  int64_t n = 0;
  return tn_operation_attr_size(ctx->op, name, &n, NULL, NULL) == TN_OK && n > 0 ? (double)n : 0;
}

/* Adds one operation for each element of the output and each step of an epilogue (ops/kernel/product/epilogue.h). */
static inline void tn__cost_epilogue(tn_cost_ctx *ctx)
{
  ctx->flops += (double)ctx->outputs[0].count * tn__cost_items(ctx, "fused_ops");
}

/* Dimension i, from the last one back if i is negative; 1 if there is none. */
static inline double tn__cost_dim(const tn_view *v, int32_t i)
{
  if (i < 0) i += v->rank;
  return i >= 0 && i < v->rank ? (double)v->dims[i] : 1;
}

static inline double tn__cost_bytes(const tn_view *v) { return (double)v->count * (double)tn_dtype_size(v->dtype); }

#endif
