/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeAndDequantize to V4 and V4Grad: floats scaled to integers, rounded, and scaled back. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/quantized/levels.h>
#include <string.h>

typedef struct state {
  bool is_signed, given, narrow, half_up, gradient;
  bool attrs;       /* the range is in the attributes */
  bool bits_input;  /* input 3 is the number of bits */
  int64_t bits, axis;
  float min, max;
  uint32_t x;       /* index of the input */
} state;

static tn_status check_bits(const state *s, const char *op, int64_t bits, tn_error *err)
{
  int most = s->is_signed ? 61 : 62;
  if (bits >= 1 && bits <= most) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: num_bits is %lld, outside [1, %d]", op, (long long)bits, most);
}

static tn_status check_range(const char *op, double min, double max, tn_error *err)
{
  if (min <= max) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input_min is %g, input_max is %g, wanted a larger one", op, min,
                      max);
}

static tn_status create(const tn_operation *op, void **out, tn_error *err)
{
  const char *name = tn_operation_type(op);
  const char *version = name + strlen("QuantizeAndDequantize");
  static const char *const rounds[] = { "HALF_TO_EVEN", "HALF_UP" };
  int round = 0;
  tn_status st = TN_OK;
  *out = NULL;
  state s = { .is_signed = tn__attr_bool(op, "signed_input", true), .given = tn__attr_bool(op, "range_given", false),
              .narrow = tn__attr_bool(op, "narrow_range", false), .gradient = strcmp(version, "V4Grad") == 0,
              .attrs = *version == '\0', .bits_input = strcmp(version, "V3") == 0,
              .bits = tn__attr_int(op, "num_bits", 8), .axis = tn__attr_int(op, "axis", -1),
              .min = tn__attr_float(op, "input_min", 0), .max = tn__attr_float(op, "input_max", 0) };
  s.x = s.gradient;
  if (!s.attrs && !s.bits_input && !s.gradient) st = tn__attr_choice(op, "round_mode", rounds, 2, &round, err);
  s.half_up = round == 1;
  if (st == TN_OK && !s.bits_input && !s.gradient) st = check_bits(&s, name, s.bits, err);
  if (st == TN_OK && s.attrs && s.given) st = check_range(name, s.min, s.max, err);
  if (st == TN_OK && s.axis < -1)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis is %lld, wanted -1 or more", name, (long long)s.axis);
  return st == TN_OK ? tn__keep_state(&s, sizeof s, name, out, err) : st;
}

static void destroy(void *s) { tn__free(s, sizeof(state)); }

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  const char *name = tn__infer_op(ctx);
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  if (strcmp(name, "QuantizeAndDequantizeV4Grad") != 0) return st;
  for (size_t i = 1; i <= 2 && st == TN_OK; i++) {
    tn__infer_get(ctx, i + 1, &s);
    st = tn__infer_set(ctx, i, &s, err);
  }
  return st;
}

/* The channels and, in scratch, what each needs: four numbers, as doubles so that both dtypes have room. */
#define NUMBERS 4

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *in = &ctx->inputs[s->x];
  tn__channels c = { 1, 1 };
  tn_status st = s->gradient ? tn__want_same_shape(ctx, 0, 1, err) : TN_OK;
  if (st != TN_OK) return st;
  if (s->axis >= in->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis is %lld, the input has rank %d",
                        tn_operation_type(ctx->op), (long long)s->axis, (int)in->rank);
  if (s->axis >= 0) {
    c.channels = in->dims[s->axis];
    for (int32_t i = (int32_t)s->axis + 1; i < in->rank; i++) c.inner *= in->dims[i];
  }
  if (s->gradient || (s->given && !s->attrs))
    for (uint32_t i = s->x + 1; i <= s->x + 2; i++)
      if (ctx->inputs[i].rank != (s->axis >= 0) || ctx->inputs[i].count != c.channels)
        return tn__shape_error(err, ctx, i, &c.channels, s->axis >= 0);
  if (s->bits_input && (ctx->inputs[3].rank > 1 || ctx->inputs[3].count != 1))
    return tn__shape_error(err, ctx, 3, NULL, 0);
  tn__channels *kept = tn__alloc(sizeof *kept);
  if (kept == NULL) return tn__no_memory(err, "plan of quantisation", sizeof *kept);
  *kept = c;
  ctx->shape_state = kept;
  if (c.channels > ((int64_t)1 << 40)) return tn__no_memory(err, "ranges of channels", (size_t)c.channels);
  ctx->scratch_bytes = (size_t)c.channels * NUMBERS * sizeof(double);
  ctx->cost_ns = 0.6 * (double)in->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  for (uint32_t i = 1; i < ctx->n_outputs && st == TN_OK; i++)
    st = tn_prepare_output(ctx, i, &c.channels, s->axis >= 0, err);
  return st;
}

static void destroy_channels(void *c) { tn__free(c, sizeof(tn__channels)); }

typedef struct run {
  const state *s;
  const void *x, *gradients, *min, *max;
  void *out, *numbers;
  tn__channels channels;
} run;

/* The loops of one dtype. Of a channel's numbers, min and max clamp, scale and inverse convert. */
#define LOOPS(T, suffix, largest)                                                                                  \
  typedef struct range_##suffix {                                                                                  \
    T min, max, scale, inverse;                                                                                    \
  } range_##suffix;                                                                                                \
  static void extremes_##suffix(void *user, int64_t channel, int step, int64_t at, int64_t n)                      \
  {                                                                                                                \
    const run *r = user;                                                                                           \
    range_##suffix *g = (range_##suffix *)r->numbers + channel;                                                    \
    const T *x = (const T *)r->x + at;                                                                             \
    for (int64_t i = 0; i < n; i++) {                                                                              \
      range_##suffix *c = &g[step ? i : 0];                                                                        \
      c->min = x[i] < c->min ? x[i] : c->min;                                                                      \
      c->max = x[i] > c->max ? x[i] : c->max;                                                                      \
    }                                                                                                              \
  }                                                                                                                \
  /* The largest scale that keeps the range within the integers, and 0 at 0. */                                    \
  static void plan_##suffix(const state *s, int64_t bits, range_##suffix *g)                                       \
  {                                                                                                                \
    int64_t top = (int64_t)1 << (bits - 1);                                                                        \
    T low = s->is_signed ? (T)(-top + s->narrow) : 0, high = (T)(s->is_signed ? top - 1 : 2 * top - 1);            \
    T from_min = low * g->min > 0 ? low / g->min : largest, from_max = high * g->max > 0 ? high / g->max : largest;\
    if (from_min < from_max) {                                                                                     \
      g->scale = from_min;                                                                                         \
      g->inverse = g->min / low;                                                                                   \
      g->max = high * g->inverse;                                                                                  \
    } else {                                                                                                       \
      g->scale = from_max;                                                                                         \
      g->inverse = g->max / high;                                                                                  \
      g->min = low * g->inverse;                                                                                   \
    }                                                                                                              \
  }                                                                                                                \
  static void round_##suffix(void *user, int64_t channel, int step, int64_t at, int64_t n)                         \
  {                                                                                                                \
    const run *r = user;                                                                                           \
    const range_##suffix *g = (const range_##suffix *)r->numbers + channel;                                        \
    const T *x = (const T *)r->x + at;                                                                             \
    T *out = (T *)r->out + at;                                                                                     \
    const bool given = r->s->given, up = r->s->half_up;                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                              \
      const range_##suffix *c = &g[step ? i : 0];                                                                  \
      T v = x[i];                                                                                                  \
      v = given && v > c->max ? c->max : v;                                                                        \
      v = (given && v < c->min ? c->min : v) * c->scale;                                                           \
      out[i] = (up ? tn__floor_##suffix(v + (T)0.5) : tn__round_##suffix(v)) * c->inverse;                         \
    }                                                                                                              \
  }                                                                                                                \
  static void pass_##suffix(void *user, int64_t channel, int step, int64_t at, int64_t n)                          \
  {                                                                                                                \
    const run *r = user;                                                                                           \
    const T *x = (const T *)r->x + at, *d = (const T *)r->gradients + at;                                          \
    const T *min = (const T *)r->min + channel, *max = (const T *)r->max + channel;                                \
    T *out = (T *)r->out + at;                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                              \
      int64_t k = step ? i : 0;                                                                                    \
      out[i] = d[i] * (T)(x[i] >= min[k] && x[i] <= max[k]);                                                       \
    }                                                                                                              \
  }                                                                                                                \
  static tn_status find_ranges_##suffix(tn_kernel_ctx *ctx, run *r, int64_t bits)                                  \
  {                                                                                                                \
    const state *s = r->s;                                                                                         \
    range_##suffix *g = r->numbers;                                                                                \
    tn_status st = TN_OK;                                                                                          \
    for (int64_t i = 0; i < r->channels.channels; i++) {                                                           \
      g[i].min = largest;                                                                                          \
      g[i].max = -largest;                                                                                         \
      if (!s->given) continue;                                                                                     \
      g[i].min = s->attrs ? (T)s->min : ((const T *)r->min)[i];                                                    \
      g[i].max = s->attrs ? (T)s->max : ((const T *)r->max)[i];                                                    \
      if (s->axis < 0) st = check_range("QuantizeAndDequantize", g[i].min, g[i].max, ctx->err);                    \
      if (st != TN_OK) return st;                                                                                  \
    }                                                                                                              \
    if (!s->given) tn__channel_runs(&r->channels, 0, ctx->inputs[0]->count, extremes_##suffix, r);                 \
    for (int64_t i = 0; i < r->channels.channels; i++) plan_##suffix(s, bits, &g[i]);                              \
    return TN_OK;                                                                                                  \
  }
LOOPS(float, f, FLT_MAX)
LOOPS(double, d, DBL_MAX)

static void part_f(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, r->s->gradient ? pass_f : round_f, r);
}

static void part_d(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, r->s->gradient ? pass_d : round_d, r);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  bool wide = ctx->inputs[0]->dtype == TN_DOUBLE;
  int64_t n = ctx->inputs[0]->count, bits = s->bits_input ? tn__operand_int(ctx->inputs[3], 0) : s->bits;
  run r = { .s = s, .x = ctx->inputs[s->x]->data, .gradients = ctx->inputs[0]->data, .out = ctx->outputs[0]->data,
            .numbers = ctx->scratch, .channels = *(const tn__channels *)ctx->shape_state };
  if (!s->attrs) {
    r.min = ctx->inputs[s->x + 1]->data;
    r.max = ctx->inputs[s->x + 2]->data;
  }
  tn_status st = s->gradient ? TN_OK : check_bits(s, "QuantizeAndDequantize", bits, ctx->err);
  for (uint32_t i = 1; i < ctx->n_outputs; i++)
    memset(ctx->outputs[i]->data, 0, (size_t)ctx->outputs[i]->count * tn_dtype_size(ctx->outputs[i]->dtype));
  if (st == TN_OK && n == 0 && s->given && s->axis < 0 && !s->gradient)
    return wide ? find_ranges_d(ctx, &r, bits) : find_ranges_f(ctx, &r, bits);
  if (st != TN_OK || n == 0) return st;
  if (!s->gradient) st = wide ? find_ranges_d(ctx, &r, bits) : find_ranges_f(ctx, &r, bits);
  if (st != TN_OK) return st;
  tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.6, wide ? part_d : part_f, &r);
  return TN_OK;
}

#define T_FLOATS "T: {bfloat16, half, float, double}"
#define SIGNED "signed_input: bool = true; "
#define ROUNDED "; round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; narrow_range: bool = false; axis: int = -1"
#define OP(name_, in, out, attributes, text)                                                          \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = infer, .summary = text }
static const tn_op_def ops[] = {
  OP("QuantizeAndDequantize", "input: T", "output: T",
     SIGNED "num_bits: int = 8; range_given: bool = false; input_min: float = 0; input_max: float = 0; " T_FLOATS,
     "floats rounded to quantised values"),
  OP("QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T", "output: T",
     SIGNED "num_bits: int = 8; range_given: bool = false; " T_FLOATS ROUNDED, "floats rounded to quantised values"),
  OP("QuantizeAndDequantizeV3", "input: T, input_min: T, input_max: T, num_bits: int32", "output: T",
     SIGNED "range_given: bool = true; " T_FLOATS "; narrow_range: bool = false; axis: int = -1",
     "floats rounded to quantised values"),
  OP("QuantizeAndDequantizeV4", "input: T, input_min: T, input_max: T", "output: T",
     SIGNED "num_bits: int = 8; range_given: bool = false; " T_FLOATS ROUNDED, "floats rounded to quantised values"),
  OP("QuantizeAndDequantizeV4Grad", "gradients: T, input: T, input_min: T, input_max: T",
     "input_backprop: T, input_min_backprop: T, input_max_backprop: T", T_FLOATS "; axis: int = -1",
     "gradient of QuantizeAndDequantizeV4"),
};

#define KERNEL(op_, title)                                                                                 \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = "T=float|double",              \
    .name = title, .rank = TN_RANK_C, .create = create, .destroy = destroy, .prepare = prepare,            \
    .destroy_shape_state = destroy_channels, .compute = compute }
static const tn_kernel_def kernels[] = {
  KERNEL("QuantizeAndDequantize", "quantize_dequantize_cpu"),
  KERNEL("QuantizeAndDequantizeV2", "quantize_dequantize_v2_cpu"),
  KERNEL("QuantizeAndDequantizeV3", "quantize_dequantize_v3_cpu"),
  KERNEL("QuantizeAndDequantizeV4", "quantize_dequantize_v4_cpu"),
  KERNEL("QuantizeAndDequantizeV4Grad", "quantize_dequantize_v4_grad_cpu"),
};

TN_OP_FAMILY(quantize_dequantize)
