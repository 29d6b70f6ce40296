/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of categorical distributions given by logits: Multinomial StatelessMultinomial. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <ops/random/random_source.h>

/* ---- one row ---- */

static double logit(const tn_view *v, int64_t i)
{
  switch (v->dtype) {
  case TN_FLOAT: return (double)((const float *)v->data)[i];
  case TN_DOUBLE: return ((const double *)v->data)[i];
  case TN_HALF: return (double)tn__half_to_float(((const uint16_t *)v->data)[i]);
  default: return (double)tn__bfloat16_to_float(((const uint16_t *)v->data)[i]);
  }
}

/* sums[k]: cumulative probability of classes 0 to k, not yet divided by the total. Logits that are
 * not finite have probability 0. Returns false if the step was stopped. */
static bool add_up(const tn_view *logits, int64_t at, int64_t n, double *sums, tn__poll *poll)
{
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t k = 0; k < n; k++) {
    if (tn__poll_over(poll, 2)) return false;
    sums[k] = logit(logits, at + k);
    if (isfinite(sums[k]) && sums[k] > largest) largest = sums[k];
  }
  for (int64_t k = 0; k < n; k++) {
    if (tn__poll_over(poll, 10)) return false;
    if (isfinite(sums[k])) sum += exp(sums[k] - largest);
    sums[k] = sum;
  }
  return true;
}

/* The number of sums that are not above x. */
static int64_t find(const double *sums, int64_t n, double x)
{
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (x < sums[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* ---- all rows, one after another from one generator ---- */

static tn_status draw(tn_kernel_ctx *ctx, const tn__philox *from)
{
  const tn_view *logits = ctx->inputs[0], *out = ctx->outputs[0];
  int64_t rows = logits->dims[0], classes = logits->dims[1], samples = out->dims[1], at = 0;
  tn__philox_words words;
  tn__poll poll = tn__poll_of(ctx);
  tn__philox_words_init(&words, from);
  for (int64_t r = 0; r < rows && samples > 0; r++) {
    double *sums = ctx->scratch;
    if (!add_up(logits, r * classes, classes, sums, &poll)) return TN_CANCELLED;
    for (int64_t i = 0; i < samples; i++, at++) {
      if (tn__poll_over(&poll, 40)) return TN_CANCELLED;
      uint32_t high = tn__philox_word(&words), low = tn__philox_word(&words);
      int64_t class = find(sums, classes, tn__uniform_double(high, low) * sums[classes - 1]);
      if (out->dtype == TN_INT32)
        ((int32_t *)out->data)[at] = (int32_t)class;
      else
        ((int64_t *)out->data)[at] = class;
    }
  }
  return TN_OK;
}

static tn_status draw_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *logits = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 1, err);
  if (st == TN_OK && ctx->n_inputs > 2) st = tn__random_want_seed(ctx, 2, err);
  if (st != TN_OK) return st;
  int64_t samples = tn__operand_int(&ctx->inputs[1], 0);
  if (samples < 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_samples is %lld, must not be negative", op,
                        (long long)samples);
  if (logits->dims[1] == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has no classes", op);
  if (!tn__size_mul((size_t)logits->dims[1], sizeof(double), &ctx->scratch_bytes))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %lld classes, too many", op,
                        (long long)logits->dims[1]);
  int64_t dims[] = { logits->dims[0], samples };
  ctx->cost_ns = 20 + 15.0 * (double)logits->count + 20.0 * (double)dims[0] * (double)samples;
  return tn_prepare_output(ctx, 0, dims, 2, err);
}

static tn_status draw_compute(tn_kernel_ctx *ctx)
{
  tn__philox from = tn__random_reserve(ctx->state, ctx->outputs[0]->dims[0] * ((ctx->outputs[0]->dims[1] + 3) / 4 * 8),
                                       TN__RANDOM_BLOCKS);
  return draw(ctx, &from);
}

static tn_status seeded_compute(tn_kernel_ctx *ctx)
{
  tn__philox from = tn__random_seeded(ctx->inputs[2]);
  return draw(ctx, &from);
}

static tn_status infer_draw(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, unused;
  const int64_t *items;
  tn_status st = tn__infer_rank(ctx, 0, 2, &s, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 0, &unused, err);
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 2) st = tn__infer_rank(ctx, 2, 1, &unused, err);
  if (st != TN_OK) return st;
  s.dims[1] = tn_infer_input_ints(ctx, 1, &items) == 1 && items[0] >= 0 ? items[0] : -1;
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

#define OP(op, in, seeds, is, text)                                                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "logits: T, num_samples: int32" in,                          \
    .outputs = "output: output_dtype", .attrs = seeds "; output_dtype: {int32, int64} = int64", .traits = is,         \
    .shape_operands = 1u << 1, .infer = infer_draw, .summary = text }

static const tn_op_def ops[] = {
  OP("Multinomial", "", "seed: int = 0; seed2: int = 0; T: realnumbertype", TN_TRAIT_STATEFUL | TN_TRAIT_RANDOM,
     "samples classes from logits"),
  OP("StatelessMultinomial", ", seed: Tseed", "T: realnumbertype; Tseed: {int32, int64} = int64", 0,
     "samples classes from logits, deterministically from a seed"),
};

#define TYPES "T=half|bfloat16|float|double"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Multinomial", .device = "CPU", .types = TYPES, .name = "multinomial_cpu",
    .rank = TN_RANK_C, .create = tn__random_create, .destroy = tn__random_destroy, .prepare = draw_prepare,
    .compute = draw_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "StatelessMultinomial", .device = "CPU", .types = TYPES,
    .name = "seeded_multinomial_cpu", .rank = TN_RANK_C, .prepare = draw_prepare, .compute = seeded_compute },
};

TN_OP_FAMILY(multinomial)
