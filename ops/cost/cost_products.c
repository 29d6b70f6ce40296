/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of matrix products, contractions and attention. */
#include <ops/cost/cost.h>
#include <ops/kernel/shapes.h>
#include <ops/math/equation.h>

/* Terms of each sum: elements of a matrix of x by those of the output's dimension that x has too. */
static void batch_product(tn_cost_ctx *ctx)
{
  const tn_view *x = &ctx->inputs[0], *out = &ctx->outputs[0];
  double rows = tn__cost_dim(out, -2);
  ctx->flops = rows > 0 ? 2 * (double)out->count * tn__cost_dim(x, -1) * tn__cost_dim(x, -2) / rows : 0;
}

static void fused_product(tn_cost_ctx *ctx) { tn__cost_epilogue(ctx); }

/* Each combination of all indices is a product and a sum; with one operand a sum, if anything is summed. */
static void einsum(tn_cost_ctx *ctx)
{
  tn__equation equation;
  tn__indices indices;
  tn__shape in[2], out;
  double all = 1;
  if (ctx->n_inputs > 2 || tn__equation_read(ctx->op, &equation, NULL) != TN_OK) return;
  for (uint32_t i = 0; i < ctx->n_inputs; i++) tn__shape_set(&in[i], ctx->inputs[i].dims, ctx->inputs[i].rank);
  if (tn__equation_resolve(&equation, in, &indices, &out, NULL) != TN_OK) return;
  for (int32_t i = 0; i < indices.n; i++) all *= (double)indices.at[i].size;
  if (ctx->n_inputs == 2)
    ctx->flops = 2 * all;
  else
    ctx->flops = all > (double)ctx->outputs[0].count ? all : 0;
}

/* _TnAttention: scores from query and key, their softmax with the steps before it, and the sums of values. Five
 * operations for each score of the softmax: maximum, difference, exponential, sum, quotient. */
static double stored_dim(const tn_cost_ctx *ctx, uint32_t input, const char *perm, int32_t from_end)
{
  const tn_view *v = &ctx->inputs[input];
  const int64_t *order;
  size_t n = 0;
  if (tn_operation_attr_ints(ctx->op, perm, &order, &n, NULL) != TN_OK || n != (size_t)v->rank)
    return tn__cost_dim(v, -from_end);
  int64_t at = n >= (size_t)from_end ? order[n - (size_t)from_end] : -1;
  return at >= 0 && at < v->rank ? (double)v->dims[at] : 1;
}

static void attention(tn_cost_ctx *ctx)
{
  double keys = stored_dim(ctx, 1, "key_perm", 2), depth = stored_dim(ctx, 1, "key_perm", 1);
  double size = stored_dim(ctx, 2, "value_perm", 1);
  double scores = size > 0 ? (double)ctx->outputs[0].count / size * keys : 0;
  ctx->flops = scores * (2 * depth + 2 * size + tn__cost_items(ctx, "steps") + 5);
}

/* a_indices, a_values, a_shape, b: each value is multiplied by a row of b. */
static void sparse_times_dense(tn_cost_ctx *ctx)
{
  ctx->flops = 2 * (double)ctx->inputs[1].count * tn__cost_dim(&ctx->outputs[0], -1);
}

static const tn_cost_def costs[] = {
  TN__COST("BatchMatMul", batch_product),
  TN__COST("BatchMatMulV2", batch_product),
  TN__COST("BatchMatMulV3", batch_product),
  TN__COST("Einsum", einsum),
  TN__COST("SparseTensorDenseMatMul", sparse_times_dense),
  TN__COST("_TnAttention", attention),
  TN__COST("_TnMatMul", fused_product),
};

TN_COST_FAMILY(cost_products)
