/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of ops that move elements, that read only a part of an input, or that change state behind a handle; and of
 * those that compute more than one operation for each element. */
#include <ops/cost/cost.h>
#include <stdbool.h>

/* Moves elements and computes nothing. */
static void move(tn_cost_ctx *ctx) { ctx->flops = 0; }

/* Writes without reading, except numbers that are few. */
static void write_only(tn_cost_ctx *ctx)
{
  ctx->flops = ctx->bytes = 0;
  for (uint32_t i = 0; i < ctx->n_outputs; i++) ctx->bytes += tn__cost_bytes(&ctx->outputs[i]);
}

/* Reads as many elements of input 0 as it writes. */
static void read_part(tn_cost_ctx *ctx)
{
  double from = tn__cost_bytes(&ctx->inputs[0]), to = tn__cost_bytes(&ctx->outputs[0]);
  ctx->flops = 0;
  if (ctx->inputs[0].dtype == TN_RESOURCE || from > to) ctx->bytes += to - from;
}

/* Shares a tensor. */
static void share(tn_cost_ctx *ctx) { ctx->flops = ctx->bytes = 0; }

/* Updates of variables read and write, for each element of the largest input, `moved` elements in all and compute
 * `flops`. */
static void update(tn_cost_ctx *ctx, double moved, double flops)
{
  const tn_view *most = &ctx->inputs[0];
  for (uint32_t i = 1; i < ctx->n_inputs; i++)
    if (tn__cost_bytes(&ctx->inputs[i]) > tn__cost_bytes(most) || most->dtype == TN_RESOURCE) most = &ctx->inputs[i];
  ctx->bytes = moved * tn__cost_bytes(most);
  ctx->flops = flops * (double)most->count;
}

static void assign(tn_cost_ctx *ctx) { update(ctx, 1, 0); }
static void add_to(tn_cost_ctx *ctx) { update(ctx, 3, 1); }
static void step_plain(tn_cost_ctx *ctx) { update(ctx, 3, 2); }
static void step_one_slot(tn_cost_ctx *ctx) { update(ctx, 5, 4); }
static void step_two_slots(tn_cost_ctx *ctx) { update(ctx, 7, 12); }
static void step_three_slots(tn_cost_ctx *ctx) { update(ctx, 9, 14); }

static void for_each(tn_cost_ctx *ctx, double flops)
{
  const tn_view *x = &ctx->inputs[0];
  ctx->flops = flops * (double)x->count;
}

static void softmax(tn_cost_ctx *ctx) { for_each(ctx, 5); }       /* maximum, difference, exponential, sum, quotient */
static void normalise(tn_cost_ctx *ctx) { for_each(ctx, 7); }     /* mean, variance, scale and offset */
static void scale_shift(tn_cost_ctx *ctx) { for_each(ctx, 2); }
static void chain(tn_cost_ctx *ctx) { ctx->flops = (double)ctx->outputs[0].count * tn__cost_items(ctx, "steps"); }

/* In training the mean and variance are computed too. */
static void batch_norm(tn_cost_ctx *ctx)
{
  tn_bool training = 1;
  bool trains = tn_operation_attr_bool(ctx->op, "is_training", &training, NULL) != TN_OK || training;
  (trains ? normalise : scale_shift)(ctx);
}

static const tn_cost_def costs[] = {
  TN__COST("BatchToSpace", move),
  TN__COST("BatchToSpaceND", move),
  TN__COST("Bitcast", move),
  TN__COST("Concat", move),
  TN__COST("ConcatV2", move),
  TN__COST("ConjugateTranspose", move),
  TN__COST("DepthToSpace", move),
  TN__COST("ExtractImagePatches", move),
  TN__COST("MirrorPad", move),
  TN__COST("Pack", move),
  TN__COST("Pad", move),
  TN__COST("PadV2", move),
  TN__COST("Reverse", move),
  TN__COST("ReverseSequence", move),
  TN__COST("ReverseV2", move),
  TN__COST("Roll", move),
  TN__COST("Snapshot", move),
  TN__COST("SpaceToBatch", move),
  TN__COST("SpaceToBatchND", move),
  TN__COST("SpaceToDepth", move),
  TN__COST("Split", move),
  TN__COST("SplitV", move),
  TN__COST("Tile", move),
  TN__COST("Transpose", move),
  TN__COST("Unpack", move),
  TN__COST("BroadcastTo", write_only),
  TN__COST("Fill", write_only),
  TN__COST("OneHot", write_only),
  TN__COST("OnesLike", write_only),
  TN__COST("Range", write_only),
  TN__COST("ZerosLike", write_only),
  TN__COST("Gather", read_part),
  TN__COST("GatherNd", read_part),
  TN__COST("GatherV2", read_part),
  TN__COST("ResourceGather", read_part),
  TN__COST("ResourceGatherNd", read_part),
  TN__COST("Slice", read_part),
  TN__COST("StridedSlice", read_part),
  TN__COST("ReadVariableOp", share),
  TN__COST("Assign", assign),
  TN__COST("AssignVariableOp", assign),
  TN__COST("AssignAdd", add_to),
  TN__COST("AssignAddVariableOp", add_to),
  TN__COST("AssignSub", add_to),
  TN__COST("AssignSubVariableOp", add_to),
  TN__COST("ApplyGradientDescent", step_plain),
  TN__COST("ResourceApplyGradientDescent", step_plain),
  TN__COST("ApplyAdagrad", step_one_slot),
  TN__COST("ApplyAdagradV2", step_one_slot),
  TN__COST("ApplyMomentum", step_one_slot),
  TN__COST("ResourceApplyAdagrad", step_one_slot),
  TN__COST("ResourceApplyAdagradV2", step_one_slot),
  TN__COST("ResourceApplyKerasMomentum", step_one_slot),
  TN__COST("ResourceApplyMomentum", step_one_slot),
  TN__COST("ApplyAdaMax", step_two_slots),
  TN__COST("ApplyAdadelta", step_two_slots),
  TN__COST("ApplyAdam", step_two_slots),
  TN__COST("ApplyFtrl", step_two_slots),
  TN__COST("ApplyFtrlV2", step_two_slots),
  TN__COST("ApplyRMSProp", step_two_slots),
  TN__COST("ResourceApplyAdaMax", step_two_slots),
  TN__COST("ResourceApplyAdadelta", step_two_slots),
  TN__COST("ResourceApplyAdam", step_two_slots),
  TN__COST("ResourceApplyFtrl", step_two_slots),
  TN__COST("ResourceApplyFtrlV2", step_two_slots),
  TN__COST("ResourceApplyRMSProp", step_two_slots),
  TN__COST("ApplyCenteredRMSProp", step_three_slots),
  TN__COST("ResourceApplyAdamWithAmsgrad", step_three_slots),
  TN__COST("ResourceApplyCenteredRMSProp", step_three_slots),
  TN__COST("FusedBatchNorm", batch_norm),
  TN__COST("FusedBatchNormV2", batch_norm),
  TN__COST("FusedBatchNormV3", batch_norm),
  TN__COST("LogSoftmax", softmax),
  TN__COST("Softmax", softmax),
  TN__COST("_TnLayerNorm", normalise),
  TN__COST("_TnElementwise", chain),
};

TN_COST_FAMILY(cost_memory)
