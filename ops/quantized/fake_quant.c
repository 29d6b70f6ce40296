/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuantWithMinMaxArgs, ...Vars, ...VarsPerChannel and their gradients: floats rounded to quantised values. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/quantized/levels.h>
#include <string.h>

typedef struct state {
  bool args, per_channel, gradient;
  float min, max;   /* with args */
  float low, high;  /* the lowest and highest value */
  uint32_t input;   /* index of the input tensor, which the range follows */
} state;

static tn_status create(const tn_operation *op, void **out, tn_error *err)
{
  const char *name = tn_operation_type(op);
  int64_t bits = tn__attr_int(op, "num_bits", 8);
  *out = NULL;
  state s = { .args = strstr(name, "Args") != NULL, .per_channel = strstr(name, "PerChannel") != NULL,
              .gradient = strstr(name, "Gradient") != NULL };
  s.input = s.gradient;
  if (bits < 2 || bits > 16)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_bits is %lld, outside [2, 16]", name, (long long)bits);
  s.low = tn__attr_bool(op, "narrow_range", false);
  s.high = (float)((1 << bits) - 1);
  if (s.args) {
    s.min = tn__attr_float(op, "min", -6);
    s.max = tn__attr_float(op, "max", 6);
    if (!(s.min < s.max))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: min is %g, max is %g, wanted a larger one", name,
                          (double)s.min, (double)s.max);
  }
  return tn__keep_state(&s, sizeof s, "fake quantisation", out, err);
}

static void destroy(void *s) { tn__free(s, sizeof(state)); }

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  const char *name = tn__infer_op(ctx);
  size_t n = tn_infer_n_inputs(ctx);
  bool gradient = strstr(name, "Gradient") != NULL;
  tn__shape s, range;
  tn__infer_get(ctx, 0, &s);
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  if (st != TN_OK || !gradient || n < 4) return st;
  tn__infer_get(ctx, 2, &range);
  st = tn__infer_set(ctx, 1, &range, err);
  return st == TN_OK ? tn__infer_set(ctx, 2, &range, err) : st;
}

/* The range of a channel, moved so that it includes 0 as a value. */
typedef struct range {
  float min, max, scale, inverse, zero;
  bool off; /* minimum and maximum are 0: all results are 0, and the gradient passes */
} range;

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *in = &ctx->inputs[s->input];
  int64_t channels = 1;
  tn_status st = TN_OK;
  if (s->gradient) st = tn__want_same_shape(ctx, 0, 1, err);
  if (s->per_channel && st == TN_OK) {
    st = tn__want_rank_at_least(ctx, s->input, 1, err);
    if (st == TN_OK) channels = in->dims[in->rank - 1];
  }
  if (!s->args)
    for (uint32_t i = s->input + 1; i <= s->input + 2 && st == TN_OK; i++) {
      const tn_view *v = &ctx->inputs[i];
      if (v->rank != s->per_channel || v->count != channels)
        return tn__shape_error(err, ctx, i, &channels, s->per_channel);
      if (s->gradient) st = tn_prepare_output(ctx, i - s->input, &channels, s->per_channel, err);
    }
  if (st != TN_OK) return st;
  ctx->scratch_bytes = (size_t)channels * (sizeof(range) + 2 * sizeof(double));
  ctx->cost_ns = 0.6 * (double)in->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn_prepare_in_place(ctx, 0, 0, err) : st;
}

static range range_of(const state *s, float min, float max)
{
  range r = { .scale = (max - min) / (s->high - s->low), .inverse = (s->high - s->low) / (max - min),
              .off = !s->args && min == 0 && max == 0 };
  float zero = s->low - min / r.scale;
  float value = s->low;
  if (zero > s->high)
    value = s->high;
  else if (zero >= s->low)
    value = roundf(zero);
  r.min = (s->low - value) * r.scale;
  r.max = (s->high - value) * r.scale;
  r.zero = floorf(-r.min * r.inverse + 0.5f);
  return r;
}

typedef struct run {
  const state *s;
  const range *ranges;
  const float *x, *gradients;
  float *out;
  double *below, *above; /* sums for each channel */
  tn__channels channels;
} run;

/* NaN passes both comparisons. */
TN__INLINED float rounded(const range *r, bool divide, float x)
{
  x = x > r->max ? r->max : x;
  x = (x < r->min ? r->min : x) - r->min;
  x = divide ? x / r->scale : x * r->inverse;
  x = tn__floor_f(x - r->zero + 0.5f) * r->scale;
  return r->off ? 0 : x;
}

static void forward_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  const range *g = r->ranges + channel;
  if (step) {
    for (int64_t i = 0; i < n; i++) r->out[at + i] = rounded(&g[i], false, r->x[at + i]);
  } else if (!r->s->args && !r->s->per_channel) {
    const range one = *g;
    TN__IVDEP
    for (int64_t i = at; i < at + n; i++) r->out[i] = rounded(&one, true, r->x[i]);
  } else {
    const range one = *g;
    TN__IVDEP
    for (int64_t i = at; i < at + n; i++) r->out[i] = rounded(&one, false, r->x[i]);
  }
}

TN__INLINED float passed(const range *r, float gradient, float x)
{
  return gradient * (r->off || (x >= r->min && x <= r->max) ? 1.0f : 0.0f);
}

static void backward_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  const range *g = r->ranges + channel;
  for (int64_t i = 0; i < n; i++) r->out[at + i] = passed(&g[step ? i : 0], r->gradients[at + i], r->x[at + i]);
}

/* Adds the gradients outside the range to the sums of their channels. */
static void sum_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  const range *g = r->ranges + channel;
  if (step) {
    for (int64_t i = 0; i < n; i++) {
      float d = r->gradients[at + i], x = r->x[at + i];
      r->below[channel + i] += d * (!g[i].off && x < g[i].min ? 1.0f : 0.0f);
      r->above[channel + i] += d * (!g[i].off && x > g[i].max ? 1.0f : 0.0f);
    }
    return;
  }
  if (g->off) return;
  double below = 0, above = 0;
  for (int64_t i = at; i < at + n; i++) {
    below += r->gradients[i] * (r->x[i] < g->min ? 1.0f : 0.0f);
    above += r->gradients[i] * (r->x[i] > g->max ? 1.0f : 0.0f);
  }
  r->below[channel] += below;
  r->above[channel] += above;
}

static void part(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, r->s->gradient ? backward_channel : forward_channel, r);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  int64_t channels = s->args ? 1 : ctx->inputs[s->input + 1]->count, n = ctx->inputs[0]->count;
  double *sums = ctx->scratch;
  range *ranges = (range *)(sums + 2 * channels);
  run r = { s, ranges, ctx->inputs[s->input]->data, ctx->inputs[0]->data, ctx->outputs[0]->data, sums,
            sums + channels, { channels, 1 } };
  for (int64_t i = 0; i < channels; i++) {
    float min = s->args ? s->min : ((const float *)ctx->inputs[s->input + 1]->data)[i];
    float max = s->args ? s->max : ((const float *)ctx->inputs[s->input + 2]->data)[i];
    ranges[i] = range_of(s, min, max);
    r.below[i] = r.above[i] = 0;
  }
  if (s->gradient && !s->args) {
    /* Before the gradients, which the output may overwrite. */
    if (n > 0) tn__channel_runs(&r.channels, 0, n, sum_channel, &r);
    for (int64_t i = 0; i < channels; i++) {
      ((float *)ctx->outputs[1]->data)[i] = (float)r.below[i];
      ((float *)ctx->outputs[2]->data)[i] = (float)r.above[i];
    }
  }
  if (n > 0) tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.6, part, &r);
  return TN_OK;
}

#define BITS "num_bits: int = 8; narrow_range: bool = false"
#define ARGS "min: float = -6.0; max: float = 6.0; " BITS
#define RANGE ", min: float, max: float"
#define OP(name_, in, out, attributes, text)                                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = infer, .summary = text }
#define BACK "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float"
static const tn_op_def ops[] = {
  OP("FakeQuantWithMinMaxArgs", "inputs: float", "outputs: float", ARGS, "floats rounded to quantised values"),
  OP("FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float", "backprops: float", ARGS,
     "gradient of FakeQuantWithMinMaxArgs"),
  OP("FakeQuantWithMinMaxVars", "inputs: float" RANGE, "outputs: float", BITS, "floats rounded to quantised values"),
  OP("FakeQuantWithMinMaxVarsGradient", "gradients: float, inputs: float" RANGE, BACK, BITS,
     "gradient of FakeQuantWithMinMaxVars"),
  OP("FakeQuantWithMinMaxVarsPerChannel", "inputs: float" RANGE, "outputs: float", BITS,
     "floats rounded to quantised values with a range for each channel"),
  OP("FakeQuantWithMinMaxVarsPerChannelGradient", "gradients: float, inputs: float" RANGE, BACK, BITS,
     "gradient of FakeQuantWithMinMaxVarsPerChannel"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("FakeQuantWithMinMaxArgs", "fake_quant_args_cpu", create, destroy, prepare, compute),
  TN__KERNEL("FakeQuantWithMinMaxArgsGradient", "fake_quant_args_grad_cpu", create, destroy, prepare, compute),
  TN__KERNEL("FakeQuantWithMinMaxVars", "fake_quant_cpu", create, destroy, prepare, compute),
  TN__KERNEL("FakeQuantWithMinMaxVarsGradient", "fake_quant_grad_cpu", create, destroy, prepare, compute),
  TN__KERNEL("FakeQuantWithMinMaxVarsPerChannel", "fake_quant_channels_cpu", create, destroy, prepare, compute),
  TN__KERNEL("FakeQuantWithMinMaxVarsPerChannelGradient", "fake_quant_channels_grad_cpu", create, destroy, prepare,
             compute),
};

TN_OP_FAMILY(fake_quant)
