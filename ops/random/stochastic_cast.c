/* SPDX-License-Identifier: Apache-2.0 */
/* StochasticCastToInt: floats rounded to one of the two nearest integers, at random, so that the mean is the float. */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/random/random_source.h>

#define WORDS 4 /* random words of a block: one for each element */

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_key(ctx, 1, err);
  return st == TN_OK ? tn__infer_unchanged(ctx, err) : st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__random_want_key(ctx, 1, err);
  ctx->cost_ns = 8 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

typedef struct run {
  const tn_view *in, *out;
  tn__philox from;
  double low, high;
} run;

static double number_at(const tn_view *in, int64_t i)
{
  switch (in->dtype) {
  case TN_HALF: return tn__half_to_float(((const uint16_t *)in->data)[i]);
  case TN_BFLOAT16: return tn__bfloat16_to_float(((const uint16_t *)in->data)[i]);
  case TN_FLOAT: return ((const float *)in->data)[i];
  default: return ((const double *)in->data)[i];
  }
}

static void put(const tn_view *out, int64_t i, int32_t v)
{
  switch (out->dtype) {
  case TN_INT8: ((int8_t *)out->data)[i] = (int8_t)v; break;
  case TN_INT16: ((int16_t *)out->data)[i] = (int16_t)v; break;
  default: ((int32_t *)out->data)[i] = v; break;
  }
}

/* NaN gives 0; numbers beyond the dtype's range give its end. */
static int32_t rounded(const run *r, double x, uint32_t word)
{
  if (isnan(x)) return 0;
  if (x >= r->high) return (int32_t)r->high;
  if (x <= r->low) return (int32_t)r->low;
  double whole = floor(x);
  return (int32_t)(whole + (x - whole > word * 0x1p-32));
}

static void part(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  tn__philox p = r->from;
  uint32_t words[WORDS];
  tn__philox_skip(&p, (uint64_t)begin);
  for (int64_t block = begin; block < end; block++) {
    tn__philox_next(&p, words);
    for (int64_t i = block * WORDS; i < (block + 1) * WORDS && i < r->in->count; i++)
      put(r->out, i, rounded(r, number_at(r->in, i), words[i % WORDS]));
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  run r = { .in = ctx->inputs[0], .out = ctx->outputs[0] };
  tn_status st = tn__random_keyed(ctx, 1, "StochasticCastToInt", &r.from);
  if (st != TN_OK || r.in->count == 0) return st;
  r.high = ldexp(1, 8 * (int)tn_dtype_size(r.out->dtype) - 1) - 1;
  r.low = -r.high - 1;
  tn_parallel_for(ctx, (r.in->count - 1) / WORDS + 1, 1024, 30, part, &r);
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "StochasticCastToInt",
    .inputs = "input: Tin, key: uint64, counter: uint64, alg: int32", .outputs = "output: Tout",
    .attrs = "Tin: {half, bfloat16, float, double}; Tout: {int8, int16, int32}", .infer = infer,
    .summary = "floats rounded up or down at random" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StochasticCastToInt", .device = "CPU", .name = "stochastic_cast_cpu",
    .rank = TN_RANK_C, .prepare = prepare, .compute = compute },
};

TN_OP_FAMILY(stochastic_cast)
