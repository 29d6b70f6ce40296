/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of recurrent cells and layers: their weights are multiplied by each row of each step. What their gates
 * compute is left out. */
#include <ops/cost/cost.h>
#include <ops/kernel/shapes.h>

static double weights(const tn_cost_ctx *ctx, uint32_t i) { return (double)ctx->inputs[i].count; }

/* x, cs_prev, h_prev, w, ... */
static void lstm_block_cell(tn_cost_ctx *ctx) { ctx->flops = 2 * tn__cost_dim(&ctx->inputs[0], 0) * weights(ctx, 3); }

/* seq_len_max, x: [steps, rows, columns], cs_prev, h_prev, w, ... */
static void lstm_block(tn_cost_ctx *ctx)
{
  const tn_view *x = &ctx->inputs[1];
  ctx->flops = 2 * tn__cost_dim(x, 0) * tn__cost_dim(x, 1) * weights(ctx, 4);
}

/* The gradients of inputs and of weights are as many products each. */
static void lstm_block_grad(tn_cost_ctx *ctx)
{
  lstm_block(ctx);
  ctx->flops *= 2;
}

/* x, h_prev, w_ru, w_c, ...; the gradient multiplies by the same weights. */
static void gru_block_cell(tn_cost_ctx *ctx)
{
  ctx->flops = 2 * tn__cost_dim(&ctx->inputs[0], 0) * (weights(ctx, 2) + weights(ctx, 3));
}

/* x, h_prev, c_prev, w, b, u; u is read only if it is apart (ops/rnn/lstm_cell.c). */
static void lstm_cell(tn_cost_ctx *ctx)
{
  bool apart = tn__attr_bool(ctx->op, "apart", false);
  ctx->flops = 2 * tn__cost_dim(&ctx->outputs[0], 0) * (weights(ctx, 3) + (apart ? weights(ctx, 5) : 0));
  if (!apart) ctx->bytes -= tn__cost_bytes(&ctx->inputs[5]);
}

static double rows_of_steps(const tn_cost_ctx *ctx)
{
  double rows = ctx->n_outputs > 0 ? tn__cost_dim(&ctx->outputs[0], 0) : tn__cost_dim(&ctx->inputs[0], 0);
  return rows * (double)tn__attr_int(ctx->op, "steps", 1);
}

/* h_prev, c_prev, w, u, b, x of each step (ops/rnn/lstm_layer.c) */
static void lstm_layer(tn_cost_ctx *ctx)
{
  bool apart = tn__attr_bool(ctx->op, "apart", false);
  ctx->flops = 2 * rows_of_steps(ctx) * (weights(ctx, 2) + (apart ? weights(ctx, 3) : 0));
  if (!apart) ctx->bytes -= tn__cost_bytes(&ctx->inputs[3]);
}

/* h_prev, w, u, v, b, d, x of each step; weights that a form does not use are a copy of b (ops/rnn/gru_layer.c). */
static void gru_layer(tn_cost_ctx *ctx)
{
  double all = 0;
  for (uint32_t i = 1; i <= 3; i++)
    if (ctx->inputs[i].rank == 2) all += weights(ctx, i);
  ctx->flops = 2 * rows_of_steps(ctx) * all;
}

static const tn_cost_def costs[] = {
  TN__COST("BlockLSTM", lstm_block),
  TN__COST("BlockLSTMGrad", lstm_block_grad),
  TN__COST("BlockLSTMGradV2", lstm_block_grad),
  TN__COST("BlockLSTMV2", lstm_block),
  TN__COST("GRUBlockCell", gru_block_cell),
  TN__COST("GRUBlockCellGrad", gru_block_cell),
  TN__COST("LSTMBlockCell", lstm_block_cell),
  TN__COST("_TnGRULayer", gru_layer),
  TN__COST("_TnLSTMCell", lstm_cell),
  TN__COST("_TnLSTMLayer", lstm_layer),
};

TN_COST_FAMILY(cost_recurrent)
