/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of FusedBatchNorm, versions 1 to 3. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/nn/norm_images.h>

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, y, c;
  tn__norm_state s;
  tn_status st = tn__norm_read(tn_infer_operation(ctx), &s, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 0, s.rank, &y, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, s.rank, &x, err);
  if (st != TN_OK) return st;
  if (!tn__shape_merge(&x, y.dims, y.rank))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: inputs 0 and 1 have different shapes", tn__infer_op(ctx));
  tn__shape_set(&c, &x.dims[s.axis], 1);
  for (size_t i = 2; i < 5; i++) {
    tn__shape in;
    st = tn__infer_rank(ctx, i, 1, &in, err);
    if (st != TN_OK) return st;
    if (!tn__dim_merge(&c.dims[0], in.dims[0]))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: input %zu has %lld values, wanted one for each of %lld channels", tn__infer_op(ctx), i,
                          (long long)in.dims[0], (long long)c.dims[0]);
  }
  x.dims[s.axis] = c.dims[0];
  st = tn__infer_set(ctx, 0, &x, err);
  for (size_t i = 1; i < 3 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &c, err);
  c.dims[0] = 0;
  for (size_t i = 3; i < 5 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &c, err);
  return st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__norm_state *s = ctx->state;
  tn_status st = tn__want_rank(ctx, 0, s->rank, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 0, 1, err);
  if (st != TN_OK) return st;
  const int64_t c = ctx->inputs[0].dims[s->axis], none = 0;
  for (uint32_t i = 2; i < 5 && st == TN_OK; i++) st = tn__want_shape(ctx, i, &c, 1, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  for (uint32_t i = 1; i < 3 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, &c, 1, err);
  for (uint32_t i = 3; i < 5 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, &none, 1, err);
  if (st == TN_OK) st = tn_prepare_in_place(ctx, 0, 0, err);
  return st != TN_OK ? st : tn__norm_plan_create(ctx, 2, err);
}

/* dx, with d = x - mean, k = scale / sqrt(var + epsilon) and means taken over a channel:
 *   training   k (dy - mean(dy) - d mean(d dy) / (var + epsilon))
 *   otherwise  k dy */
static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn__norm_state *s = ctx->state;
  const tn__norm_plan *p = ctx->shape_state;
  const int64_t c = p->channels.c;
  const double n = (double)p->channels.count;
  tn__norm_room r = tn__norm_room_of(p, ctx->scratch);
  const float *dy = tn__norm_load(ctx, p, 0, ctx->inputs[0]->data);
  const float *x = tn__norm_load(ctx, p, 1, ctx->inputs[1]->data);
  const float *scale = ctx->inputs[2]->data, *mean = ctx->inputs[3]->data, *var = ctx->inputs[4]->data;
  float *to_scale = ctx->outputs[1]->data, *to_offset = ctx->outputs[2]->data;
  tn__channels_sums(&p->channels, ctx, x, mean, dy, r.first, r.second, r.sums);
  for (int64_t i = 0; i < c; i++) {
    const double spread = (double)var[i] + (double)s->epsilon, k = (double)scale[i] / sqrt(spread);
    to_scale[i] = (float)(r.second[i] / sqrt(spread));
    to_offset[i] = (float)r.first[i];
    r.by[i] = (float)k;
    r.scale[i] = s->training && n > 0 ? (float)(-k * r.second[i] / n / spread) : 0;
    r.shift[i] = s->training && n > 0 ? (float)(-k * r.first[i] / n) : 0;
  }
  float *dx = tn__norm_result(ctx, p, 0);
  if (s->training) {
    tn__channels_scale(&p->channels, ctx, x, mean, r.scale, r.shift, dy, r.by, dx);
  } else { /* no statistics to subtract: shift holds zeros */
    tn__channels_scale(&p->channels, ctx, dy, r.shift, r.by, r.shift, NULL, NULL, dx);
  }
  tn__norm_store(ctx, p, dx);
  return TN_OK;
}

/* ---- tables ---- */

#define ATTRS "epsilon: float = 0.0001; is_training: bool = true; "
#define FORMAT "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
#define GRAD_OP(op, in, out, attributes)                                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = ATTRS attributes, \
    .infer = infer, .summary = "gradient of batch normalisation" }
#define IN_U "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U"
#define OUT_U "x_backprop: T, scale_backprop: U, offset_backprop: U"

static const tn_op_def ops[] = {
  GRAD_OP("FusedBatchNormGrad", "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
          "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
          "T: {float}; " FORMAT),
  GRAD_OP("FusedBatchNormGradV2", IN_U, OUT_U ", reserve_space_3: U, reserve_space_4: U",
          "T: {half, bfloat16, float}; U: {float}; " FORMAT),
  GRAD_OP("FusedBatchNormGradV3", IN_U ", reserve_space_3: U", OUT_U ", reserve_space_4: U, reserve_space_5: U",
          "T: {half, bfloat16, float}; U: {float}; data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"),
};

#define GRAD_KERNEL(which, title)                                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,    \
    .create = tn__norm_create, .destroy = tn__norm_destroy, .prepare = prepare,                           \
    .destroy_shape_state = tn__norm_destroy_plan, .compute = compute }

static const tn_kernel_def kernels[] = {
  GRAD_KERNEL("FusedBatchNormGrad", "fused_batch_norm_grad_cpu"),
  GRAD_KERNEL("FusedBatchNormGradV2", "fused_batch_norm_grad_v2_cpu"),
  GRAD_KERNEL("FusedBatchNormGradV3", "fused_batch_norm_grad_v3_cpu"),
};

TN_OP_FAMILY(batch_norm_grad)
