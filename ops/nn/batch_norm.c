/* SPDX-License-Identifier: Apache-2.0 */
/* FusedBatchNorm, versions 1 to 3, and BatchNormWithGlobalNormalization: a scale and a shift per channel. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/nn/norm_images.h>
#include <string.h>

/* ---- shapes ---- */

static tn_status infer_fused(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, c;
  tn__norm_state s;
  tn_status st = tn__norm_read(tn_infer_operation(ctx), &s, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 0, s.rank, &x, err);
  if (st != TN_OK) return st;
  tn__shape_set(&c, &x.dims[s.axis], 1);
  for (size_t i = 1; i < 5; i++) {
    tn__shape in;
    st = tn__infer_rank(ctx, i, 1, &in, err);
    if (st != TN_OK) return st;
    if (i > 2 && s.training) continue; /* the statistics inputs are not used for training */
    if (!tn__dim_merge(&c.dims[0], in.dims[0]))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "%s: input %zu has %lld values, wanted one for each of %lld channels", tn__infer_op(ctx), i,
                          (long long)in.dims[0], (long long)c.dims[0]);
  }
  x.dims[s.axis] = c.dims[0];
  st = tn__infer_set(ctx, 0, &x, err);
  for (size_t i = 1; i < 5 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &c, err);
  if (st != TN_OK || !s.third) return st;
  tn__shape_scalar(&c);
  return tn__infer_set(ctx, 5, &c, err);
}

static tn_status infer_global(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape t, in;
  tn_status st = tn__infer_rank(ctx, 0, 4, &t, err);
  for (size_t i = 1; i < 5 && st == TN_OK; i++) {
    st = tn__infer_rank(ctx, i, 1, &in, err);
    if (st == TN_OK && !tn__dim_merge(&t.dims[3], in.dims[0]))
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu has %lld values, wanted one for each of %lld channels",
                        tn__infer_op(ctx), i, (long long)in.dims[0], (long long)t.dims[3]);
  }
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &t, err);
}

/* ---- FusedBatchNorm ---- */

static tn_status fused_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__norm_state *s = ctx->state;
  const tn_view *x = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, s->rank, err);
  if (st != TN_OK) return st;
  const int64_t c = x->dims[s->axis];
  for (uint32_t i = 1; i < 5 && st == TN_OK; i++) {
    if (i < 3 || !s->training || s->factor != 1)
      st = tn__want_shape(ctx, i, &c, 1, err);
    else
      st = tn__want_rank(ctx, i, 1, err);
  }
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  for (uint32_t i = 1; i < 5 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, &c, 1, err);
  if (st == TN_OK && s->third) st = tn_prepare_output(ctx, 5, NULL, 0, err);
  if (st == TN_OK) st = tn_prepare_in_place(ctx, 0, 0, err);
  return st != TN_OK ? st : tn__norm_plan_create(ctx, 1, err);
}

/* Computes the mean and variance of every channel. Outputs 3 and 4 hold them for the gradient; outputs 1 and 2 are the
 * updated running statistics. */
static void measure(tn_kernel_ctx *ctx, const tn__norm_plan *p, const float *x)
{
  const tn__norm_state *s = ctx->state;
  const int64_t n = p->channels.count, c = p->channels.c;
  tn__norm_room r = tn__norm_room_of(p, ctx->scratch);
  float *keep_mean = ctx->outputs[1]->data, *keep_var = ctx->outputs[2]->data;
  float *mean = ctx->outputs[3]->data, *var = ctx->outputs[4]->data;
  const float *old_mean = ctx->inputs[3]->data, *old_var = ctx->inputs[4]->data;
  tn__channels_sums(&p->channels, ctx, x, NULL, NULL, r.first, r.second, r.sums);
  for (int64_t i = 0; i < c; i++) mean[i] = n == 0 ? 0 : (float)(r.first[i] / (double)n);
  tn__channels_sums(&p->channels, ctx, x, mean, NULL, r.first, r.second, r.sums);
  for (int64_t i = 0; i < c; i++) {
    double off = n == 0 ? 0 : r.first[i] / (double)n, v = n == 0 ? 0 : r.second[i] / (double)n - off * off;
    double unbiased = n > 1 ? v * ((double)n / (double)(n - 1)) : v;
    var[i] = (float)v;
    if (s->factor == 1) {
      keep_mean[i] = mean[i];
      keep_var[i] = (float)unbiased;
    } else {
      keep_mean[i] = (1 - s->factor) * old_mean[i] + s->factor * mean[i];
      keep_var[i] = (1 - s->factor) * old_var[i] + s->factor * (float)unbiased;
    }
  }
}

static tn_status fused_compute(tn_kernel_ctx *ctx)
{
  const tn__norm_state *s = ctx->state;
  const tn__norm_plan *p = ctx->shape_state;
  const int64_t c = p->channels.c;
  tn__norm_room r = tn__norm_room_of(p, ctx->scratch);
  const float *x = tn__norm_load(ctx, p, 0, ctx->inputs[0]->data);
  const float *scale = ctx->inputs[1]->data, *offset = ctx->inputs[2]->data;
  if (s->third) *(float *)ctx->outputs[5]->data = 0;
  if (s->training) {
    measure(ctx, p, x);
  } else if (c > 0) {
    for (uint32_t i = 1; i < 5; i++)
      memcpy(ctx->outputs[i]->data, ctx->inputs[i % 2 == 1 ? 3 : 4]->data, (size_t)c * sizeof(float));
  }
  if (p->channels.count == 0) { /* no elements: the mean is undefined */
    for (int64_t i = 0; i < c; i++) ((float *)ctx->outputs[1]->data)[i] = ((float *)ctx->outputs[2]->data)[i] = NAN;
    return TN_OK;
  }
  const float *mean = ctx->outputs[3]->data, *var = ctx->outputs[4]->data;
  for (int64_t i = 0; i < c; i++) r.scale[i] = scale[i] / sqrtf(var[i] + s->epsilon);
  float *y = tn__norm_result(ctx, p, 0);
  tn__channels_scale(&p->channels, ctx, x, mean, r.scale, offset, NULL, NULL, y);
  tn__norm_store(ctx, p, y);
  return TN_OK;
}

/* ---- BatchNormWithGlobalNormalization ---- */

typedef struct global_state {
  tn_dtype dtype;
  float epsilon;
  bool scale;
} global_state;

static tn_status global_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  global_state *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "batch normalisation", sizeof *p);
  p->dtype = tn_operation_input_dtype(op, 0);
  p->epsilon = tn__attr_float(op, "variance_epsilon", 0);
  p->scale = tn__attr_bool(op, "scale_after_normalization", false);
  *state = p;
  return TN_OK;
}

static void global_destroy(void *state) { tn__free(state, sizeof(global_state)); }

static tn_status global_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  for (uint32_t i = 1; i < 5 && st == TN_OK; i++) st = tn__want_shape(ctx, i, &ctx->inputs[0].dims[3], 1, err);
  ctx->cost_ns = (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn__prepare_unchanged(ctx, err);
}

/* Channels processed at a time. */
#define BLOCK 64
#define SAME(x) (x)
#define GLOBAL(name, T, E, LOAD, STORE, SQRT)                                                                 \
  static void global_##name(tn_kernel_ctx *ctx)                                                               \
  {                                                                                                           \
    const global_state *s = ctx->state;                                                                       \
    const T *t = ctx->inputs[0]->data, *m = ctx->inputs[1]->data, *v = ctx->inputs[2]->data;                  \
    const T *beta = ctx->inputs[3]->data, *gamma = ctx->inputs[4]->data;                                      \
    T *out = ctx->outputs[0]->data;                                                                           \
    const int64_t c = ctx->inputs[1]->count, rows = c == 0 ? 0 : ctx->inputs[0]->count / c;                   \
    E by[BLOCK], mean[BLOCK], add[BLOCK];                                                                     \
    for (int64_t first = 0; first < c; first += BLOCK) {                                                      \
      const int64_t n = c - first < BLOCK ? c - first : BLOCK;                                                \
      for (int64_t j = 0; j < n; j++) {                                                                       \
        by[j] = (s->scale ? LOAD(gamma[first + j]) : 1) / SQRT(LOAD(v[first + j]) + (E)s->epsilon);           \
        mean[j] = LOAD(m[first + j]);                                                                         \
        add[j] = LOAD(beta[first + j]);                                                                       \
      }                                                                                                       \
      for (int64_t at = first; at < rows * c; at += c)                                                        \
        for (int64_t j = 0; j < n; j++) out[at + j] = STORE((LOAD(t[at + j]) - mean[j]) * by[j] + add[j]);    \
    }                                                                                                         \
  }
GLOBAL(f32, float, float, SAME, SAME, sqrtf)
GLOBAL(f64, double, double, SAME, SAME, sqrt)
GLOBAL(f16, uint16_t, float, tn__half_to_float, tn__half_from_float, sqrtf)

static tn_status global_compute(tn_kernel_ctx *ctx)
{
  switch (((const global_state *)ctx->state)->dtype) {
  case TN_DOUBLE: global_f64(ctx); break;
  case TN_HALF: global_f16(ctx); break;
  default: global_f32(ctx); break;
  }
  return TN_OK;
}

/* ---- tables ---- */

#define ATTRS "epsilon: float = 0.0001; exponential_avg_factor: float = 1; is_training: bool = true; "
#define FORMAT "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
#define FUSED_OP(op, in, out, attributes)                                                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = ATTRS attributes, \
    .infer = infer_fused, .summary = "batch normalisation" }
#define IN_U "x: T, scale: U, offset: U, mean: U, variance: U"
#define OUT_U "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "BatchNormWithGlobalNormalization",
    .inputs = "t: T, m: T, v: T, beta: T, gamma: T", .outputs = "result: T",
    .attrs = "T: numbertype; variance_epsilon: float; scale_after_normalization: bool", .infer = infer_global,
    .summary = "batch normalisation" },
  FUSED_OP("FusedBatchNorm", "x: T, scale: T, offset: T, mean: T, variance: T",
           "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T", "T: {float}; " FORMAT),
  FUSED_OP("FusedBatchNormV2", IN_U, OUT_U, "T: {half, bfloat16, float}; U: {float}; " FORMAT),
  FUSED_OP("FusedBatchNormV3", IN_U, OUT_U ", reserve_space_3: U",
           "T: {half, bfloat16, float}; U: {bfloat16, float}; "
           "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"),
};

#define FUSED_KERNEL(which, set, title)                                                                  \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = set, .name = title,        \
    .rank = TN_RANK_C, .create = tn__norm_create, .destroy = tn__norm_destroy, .prepare = fused_prepare, \
    .destroy_shape_state = tn__norm_destroy_plan, .compute = fused_compute }

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "BatchNormWithGlobalNormalization", .device = "CPU",
    .types = "T=float|double|half", .name = "batch_norm_global_cpu", .rank = TN_RANK_C, .create = global_create,
    .destroy = global_destroy, .prepare = global_prepare, .compute = global_compute },
  FUSED_KERNEL("FusedBatchNorm", NULL, "fused_batch_norm_cpu"),
  FUSED_KERNEL("FusedBatchNormV2", NULL, "fused_batch_norm_v2_cpu"),
  FUSED_KERNEL("FusedBatchNormV3", "U=float", "fused_batch_norm_v3_cpu"),
};

TN_OP_FAMILY(batch_norm)
