/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeV2 makes quantised values of floats, Dequantize floats of quantised values. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/quantized/levels.h>
#include <string.h>

typedef enum mode { MIN_COMBINED, MIN_FIRST, SCALED } mode;

typedef struct state {
  mode mode;
  bool to_even, narrow;
  int64_t axis;
  float separation;
  tn_dtype dtype; /* of the quantised values */
} state;

static tn_status read_state(const tn_operation *op, const char *type, state *s, tn_error *err)
{
  static const char *const modes[] = { "MIN_COMBINED", "MIN_FIRST", "SCALED" };
  int m;
  tn_status st = tn__attr_choice(op, "mode", modes, 3, &m, err);
  *s = (state){ .mode = (mode)m, .narrow = tn__attr_bool(op, "narrow_range", false),
                .axis = tn__attr_int(op, "axis", -1), .dtype = tn__attr_type(op, type) };
  if (st == TN_OK && s->axis < -1)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis is %lld, wanted -1 or more", tn_operation_type(op),
                      (long long)s->axis);
  return st;
}

static void destroy(void *s) { tn__free(s, sizeof(state)); }

/* Reads the channels; checks that inputs 1 and 2 have a number for each. */
static tn_status find_channels(tn_prepare_ctx *ctx, tn__channels *c, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  *c = (tn__channels){ 1, 1 };
  if (s->axis >= in->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis is %lld, input 0 has rank %d", tn_operation_type(ctx->op),
                        (long long)s->axis, (int)in->rank);
  if (s->axis >= 0) {
    c->channels = in->dims[s->axis];
    for (int32_t i = (int32_t)s->axis + 1; i < in->rank; i++) c->inner *= in->dims[i];
  }
  for (uint32_t i = 1; i <= 2; i++)
    if (ctx->inputs[i].count != c->channels || ctx->inputs[i].rank > 1)
      return tn__shape_error(err, ctx, i, &c->channels, s->axis >= 0);
  if (s->mode == MIN_FIRST && c->channels != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: mode MIN_FIRST with an axis", tn_operation_type(ctx->op));
  return TN_OK;
}

static tn_status prepare_channels(tn_prepare_ctx *ctx, size_t bytes, tn__channels **out, tn_error *err)
{
  tn__channels c;
  tn_status st = find_channels(ctx, &c, err);
  if (st != TN_OK) return st;
  if (c.channels > ((int64_t)1 << 40)) return tn__no_memory(err, "ranges of channels", (size_t)c.channels);
  tn__channels *kept = tn__alloc(sizeof *kept);
  if (kept == NULL) return tn__no_memory(err, "plan of quantisation", sizeof *kept);
  *kept = c;
  *out = ctx->shape_state = kept;
  ctx->scratch_bytes = (size_t)c.channels * bytes;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static void destroy_channels(void *c) { tn__free(c, sizeof(tn__channels)); }

/* ---- QuantizeV2 ---- */

static tn_status quantize_create(const tn_operation *op, void **out, tn_error *err)
{
  static const char *const rounds[] = { "HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN" };
  int round;
  state s;
  *out = NULL;
  tn_status st = read_state(op, "T", &s, err);
  if (st == TN_OK) st = tn__attr_choice(op, "round_mode", rounds, 2, &round, err);
  if (st != TN_OK) return st;
  s.to_even = round == 1;
  s.separation = tn__attr_float(op, "ensure_minimum_range", 0.01f);
  if (s.to_even && s.mode != SCALED)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizeV2: round_mode is HALF_TO_EVEN, which needs mode SCALED");
  return tn__keep_state(&s, sizeof s, "QuantizeV2", out, err);
}

/* How the numbers of one channel become values: rounded (clamp(x, min, max) - sub) * scale + add. */
typedef struct stage {
  float min, max, sub, scale, add;
} stage;

static tn_status quantize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__channels *c;
  tn_status st = prepare_channels(ctx, sizeof(stage), &c, err);
  if (st != TN_OK) return st;
  /* A single channel has scalars, even along an axis. */
  for (uint32_t i = 1; i <= 2 && st == TN_OK; i++)
    st = tn_prepare_output(ctx, i, &c->channels, c->channels != 1, err);
  ctx->cost_ns = 0.5 * (double)ctx->inputs[0].count;
  return st;
}

static void plan_stage(const state *s, stage *g)
{
  float low = (float)tn__levels_lowest(s->dtype), high = (float)tn__levels_highest(s->dtype);
  g->sub = g->add = 0;
  if (s->mode == SCALED) {
    float lowest = low + (float)s->narrow;
    float from_min = lowest * g->min > 0 ? lowest / g->min : FLT_MAX;
    float from_max = high * g->max > 0 ? high / g->max : FLT_MAX;
    g->scale = from_min < from_max ? from_min : from_max;
    g->min = lowest / g->scale;
    g->max = high / g->scale;
    return;
  }
  g->sub = g->min;
  g->scale = (float)(((double)high - (double)low) / (g->max - g->min));
  if (low < 0) g->add = -(float)(((double)tn__levels_highest(s->dtype) - low + 1) / 2);
}

typedef struct quantize_run {
  const state *s;
  const stage *stages;
  const float *x;
  void *out;
  tn__channels channels;
  tn__quantizer q; /* MIN_FIRST */
} quantize_run;

TN__INLINED void quantize_block(const quantize_run *r, const stage *g, int step, const float *x, int64_t n, int32_t *q)
{
  const float low = (float)tn__levels_lowest(r->s->dtype), high = r->q.high;
  const bool even = r->s->to_even, unsigned_half = r->s->mode == MIN_COMBINED && low == 0;
  for (int64_t i = 0; i < n; i++) {
    const stage *c = &g[step ? i : 0];
    float v = x[i] < c->max ? x[i] : c->max;
    v = ((v > c->min ? v : c->min) - c->sub) * c->scale + c->add;
    if (unsigned_half)
      v = tn__trunc_f(v + 0.5f);
    else
      v = even ? tn__round_f(v) : tn__round_away(v);
    q[i] = tn__clamp_int(v, low, high);
  }
}

static void quantize_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const quantize_run *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    const float *x = r->x + at + i;
    if (r->s->mode == MIN_FIRST)
      for (int64_t k = 0; k < m; k++) q[k] = tn__quantizer_value(&r->q, x[k]);
    else if (step)
      quantize_block(r, r->stages + channel + i, 1, x, m, q);
    else
      quantize_block(r, r->stages + channel, 0, x, m, q);
    tn__levels_store(r->s->dtype, r->out, at + i, m, q);
  }
}

static void quantize_part(void *user, int64_t begin, int64_t end)
{
  quantize_run *r = user;
  tn__channel_runs(&r->channels, begin, end, quantize_channel, r);
}

static tn_status quantize_compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  const tn__channels *c = ctx->shape_state;
  const float *min = ctx->inputs[1]->data, *max = ctx->inputs[2]->data;
  float *out_min = ctx->outputs[1]->data, *out_max = ctx->outputs[2]->data;
  stage *stages = ctx->scratch;
  quantize_run r = { s, stages, ctx->inputs[0]->data, ctx->outputs[0]->data, *c, { 0 } };
  for (int64_t i = 0; i < c->channels; i++) {
    if (max[i] < min[i])
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "QuantizeV2: max_range is %g, less than min_range, %g",
                          (double)max[i], (double)min[i]);
    stage *g = &stages[i];
    float widest = fmaxf(1, fmaxf(fabsf(min[i]), fabsf(max[i]))) * s->separation;
    g->min = fminf(0, min[i]);
    g->max = fmaxf(0, fmaxf(max[i], g->min + widest));
    r.q = tn__quantizer_of(s->dtype, g->min, g->max);
    if (s->mode != MIN_FIRST) plan_stage(s, g);
    out_min[i] = g->min;
    out_max[i] = g->max;
  }
  if (c->channels > 0)
    tn_parallel_for(ctx, ctx->inputs[0]->count, TN__SERIAL_ELEMENTS, 0.5, quantize_part, &r);
  return TN_OK;
}

/* The ranges are scalars, or vectors of one element for each channel if there are several. */
static tn_status infer_range(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t axis = tn__attr_int(tn_infer_operation(ctx), "axis", -1);
  tn__shape in, range = { .rank = 0 };
  tn__infer_get(ctx, 0, &in);
  tn_status st = tn__infer_unchanged(ctx, err);
  if (axis >= 0) {
    bool known = in.rank > axis && in.dims[axis] >= 0;
    range.dims[0] = known ? in.dims[axis] : -1;
    range.rank = known ? range.dims[0] != 1 : -1;
  }
  for (size_t i = 1; i <= 2 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &range, err);
  return st;
}

/* ---- Dequantize ---- */

static tn_status dequantize_create(const tn_operation *op, void **out, tn_error *err)
{
  state s;
  *out = NULL;
  tn_status st = read_state(op, "T", &s, err);
  if (st != TN_OK) return st;
  if (tn__attr_type(op, "dtype") == TN_BFLOAT16 && s.mode != MIN_COMBINED)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Dequantize: the output's dtype is bfloat16, which needs mode "
                        "MIN_COMBINED");
  return tn__keep_state(&s, sizeof s, "Dequantize", out, err);
}

/* Numbers of values q: (q + before) * scale + after. */
typedef struct reading {
  float before, scale, after;
} reading;

static tn_status dequantize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__channels *c;
  tn_status st = prepare_channels(ctx, sizeof(reading), &c, err);
  ctx->cost_ns = 0.3 * (double)ctx->inputs[0].count;
  return st;
}

static reading reading_of(const state *s, float min, float max)
{
  float low = (float)tn__levels_lowest(s->dtype), high = (float)tn__levels_highest(s->dtype);
  if (s->mode == SCALED) {
    float from_max = max / high, from_min = low == 0 ? from_max : min / (low + (float)s->narrow);
    return (reading){ 0, from_min < from_max ? from_max : from_min, 0 };
  }
  if (s->mode == MIN_FIRST) {
    tn__levels l = tn__levels_of(s->dtype, min, max);
    return (reading){ 0, l.scale, l.offset };
  }
  return (reading){ low == 0 ? 0 : (high - low + 1) / 2, (max - min) / (high - low), min };
}

typedef struct dequantize_run {
  const state *s;
  const reading *readings;
  const void *in;
  float *out;
  uint16_t *out16; /* bfloat16, if out is NULL */
  tn__channels channels;
} dequantize_run;

static void dequantize_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const dequantize_run *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  float room[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    float *x = r->out != NULL ? r->out + at + i : room;
    tn__levels_load(r->s->dtype, r->in, at + i, m, q);
    if (step) {
      const reading *g = r->readings + channel + i;
      for (int64_t k = 0; k < m; k++) x[k] = ((float)q[k] + g[k].before) * g[k].scale + g[k].after;
    } else {
      const reading g = r->readings[channel];
      for (int64_t k = 0; k < m; k++) x[k] = ((float)q[k] + g.before) * g.scale + g.after;
    }
    if (r->out == NULL)
      for (int64_t k = 0; k < m; k++) r->out16[at + i + k] = tn__bfloat16_from_float(x[k]);
  }
}

static void dequantize_part(void *user, int64_t begin, int64_t end)
{
  dequantize_run *r = user;
  tn__channel_runs(&r->channels, begin, end, dequantize_channel, r);
}

static tn_status dequantize_compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  const tn__channels *c = ctx->shape_state;
  const float *min = ctx->inputs[1]->data, *max = ctx->inputs[2]->data;
  reading *readings = ctx->scratch;
  bool is_float = ctx->outputs[0]->dtype == TN_FLOAT;
  void *to = ctx->outputs[0]->data;
  dequantize_run r = { s, readings, ctx->inputs[0]->data, is_float ? to : NULL, is_float ? NULL : to, *c };
  for (int64_t i = 0; i < c->channels; i++) readings[i] = reading_of(s, min[i], max[i]);
  if (c->channels > 0)
    tn_parallel_for(ctx, ctx->inputs[0]->count, TN__SERIAL_ELEMENTS, 0.3, dequantize_part, &r);
  return TN_OK;
}

#define MODE "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'; "

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizeV2", .inputs = "input: float, min_range: float, max_range: float",
    .outputs = "output: T, output_min: float, output_max: float",
    .attrs = "T: " TN__QUANTIZED "; " MODE
             "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'; "
             "narrow_range: bool = false; axis: int = -1; ensure_minimum_range: float = 0.01",
    .infer = infer_range, .summary = "quantised values of floats" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "Dequantize", .inputs = "input: T, min_range: float, max_range: float",
    .outputs = "output: dtype",
    .attrs = "T: " TN__QUANTIZED "; " MODE
             "narrow_range: bool = false; axis: int = -1; dtype: {bfloat16, float} = float",
    .infer = tn__infer_unchanged, .summary = "floats of quantised values" },
};

#define KERNEL(op_, constraint, title, which)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = constraint, .name = title,       \
    .rank = TN_RANK_C, .create = which##_create, .destroy = destroy, .prepare = which##_prepare,             \
    .destroy_shape_state = destroy_channels, .compute = which##_compute }
static const tn_kernel_def kernels[] = {
  KERNEL("QuantizeV2", "T=qint8|quint8|qint16|quint16|qint32", "quantize_cpu", quantize),
  KERNEL("Dequantize", NULL, "dequantize_cpu", dequantize),
};

TN_OP_FAMILY(quantize)
