/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that differ from step to step: RandomUniform RandomStandardNormal TruncatedNormal
 * RandomUniformInt. The same seeds give the same sequence in another session. */
#include <ops/kernel/family.h>
#include <ops/random/random_source.h>

static tn_status uniform_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_UNIFORM), err);
}

static tn_status normal_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_NORMAL), err);
}

static tn_status truncated_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  return tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_TRUNCATED), err);
}

static tn_status int_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 2, 0, err);
  return st != TN_OK ? st : tn__random_prepare(ctx, tn__random_cost(TN__RANDOM_RANGE), err);
}

static tn_status fill(tn_kernel_ctx *ctx, tn__random_kind kind)
{
  const tn_view *out = ctx->outputs[0];
  tn__philox from = tn__random_reserve(ctx->state, out->count, TN__RANDOM_BLOCKS);
  tn__random_fill(ctx, kind, &from, out, 0, 0);
  return TN_OK;
}

static tn_status uniform_compute(tn_kernel_ctx *ctx) { return fill(ctx, TN__RANDOM_UNIFORM); }
static tn_status normal_compute(tn_kernel_ctx *ctx) { return fill(ctx, TN__RANDOM_NORMAL); }
static tn_status truncated_compute(tn_kernel_ctx *ctx) { return fill(ctx, TN__RANDOM_TRUNCATED); }

static tn_status int_compute(tn_kernel_ctx *ctx)
{
  tn__philox from = tn__random_reserve(ctx->state, ctx->outputs[0]->count, TN__RANDOM_BLOCKS);
  return tn__random_fill_between(ctx, &from, 1, "RandomUniformInt");
}

static tn_status infer_int(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 1, 0, &unused, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 2, 0, &unused, err);
  return st != TN_OK ? st : tn__infer_random(ctx, err);
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, shapes, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM, .shape_operands = 1u << 0, .infer = shapes, .summary = text }
#define SEEDS "seed: int = 0; seed2: int = 0; "
#define FLOATS SEEDS "dtype: {half, bfloat16, float, double}; T: {int32, int64}"

static const tn_op_def ops[] = {
  OP("RandomStandardNormal", "shape: T", "output: dtype", FLOATS, tn__infer_random,
     "normally distributed random numbers, mean 0 and deviation 1"),
  OP("RandomUniform", "shape: T", "output: dtype", FLOATS, tn__infer_random, "uniform random numbers in [0, 1)"),
  OP("RandomUniformInt", "shape: T, minval: Tout, maxval: Tout", "output: Tout",
     SEEDS "Tout: {int32, int64}; T: {int32, int64}", infer_int, "uniform random integers in [minval, maxval)"),
  OP("TruncatedNormal", "shape: T", "output: dtype", FLOATS, tn__infer_random,
     "truncated normal random numbers, mean 0 and deviation 1, within 2"),
};

#define KERNEL(which, title, prepare_fn, compute_fn)                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .create = tn__random_create, .destroy = tn__random_destroy, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("RandomStandardNormal", "random_normal_cpu", normal_prepare, normal_compute),
  KERNEL("RandomUniform", "random_uniform_cpu", uniform_prepare, uniform_compute),
  KERNEL("RandomUniformInt", "random_int_cpu", int_prepare, int_compute),
  KERNEL("TruncatedNormal", "truncated_normal_cpu", truncated_prepare, truncated_compute),
};

TN_OP_FAMILY(random)
