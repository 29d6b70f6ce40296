/* SPDX-License-Identifier: Apache-2.0 */
/* UniformQuantize UniformDequantize UniformRequantize UniformQuantizedAdd UniformQuantizedClipByValue. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/quantized/uniform.h>

typedef struct state {
  int64_t axis[3];   /* of the input, or both inputs, and the output */
  int32_t low, high; /* range of the output's values */
} state;

static tn_status keep(const tn_operation *op, const char *const *axes, int n, const char *low, const char *high,
                      void **out, tn_error *err)
{
  state s = { .low = low != NULL ? tn__attr_int32(op, low) : 0, .high = high != NULL ? tn__attr_int32(op, high) : 0 };
  *out = NULL;
  for (int i = 0; i < n; i++) {
    s.axis[i] = tn__attr_int(op, axes[i], -1);
    if (s.axis[i] < -1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is %lld, wanted at least -1", tn_operation_type(op),
                          axes[i], (long long)s.axis[i]);
  }
  return tn__keep_state(&s, sizeof s, tn_operation_type(op), out, err);
}

static void destroy(void *s) { tn__free(s, sizeof(state)); }

/* ---- ops of one tensor ---- */

/* For one tensor: what each channel needs, and the type of the values read and written. */
typedef struct run {
  const tn_view *in, *out;
  const float *scales;
  const int32_t *zeros, *min, *max, *to_zeros;
  const tn__multiplier *multipliers;
  int zero_step, to_zero_step;
  tn__channels channels;
  int32_t low, high;
} run;

static void run_all(tn_kernel_ctx *ctx, run *r, void (*part)(void *user, int64_t begin, int64_t end))
{
  if (r->in->count > 0) tn_parallel_for(ctx, r->in->count, TN__SERIAL_ELEMENTS, 0.6, part, r);
}

static tn_status one_create(const tn_operation *op, void **out, tn_error *err)
{
  static const char *const axes[] = { "quantization_axis" };
  return keep(op, axes, 1, "quantization_min_val", "quantization_max_val", out, err);
}

static tn_status one_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  tn_status st = tn__want_scales(ctx, 1, s->axis[0], ctx->inputs[0].dims, ctx->inputs[0].rank, err);
  ctx->cost_ns = 0.6 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

static void quantize_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  const float *x = (const float *)r->in->data + at;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    for (int64_t k = 0; k < m; k++) {
      int64_t c = channel + (step ? i + k : 0);
      q[k] = tn__affine_value(x[i + k], 1.0f / r->scales[c], r->zeros[c], r->low, r->high);
    }
    tn__levels_store(r->out->dtype, r->out->data, at + i, m, q);
  }
}

static void quantize_part(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, quantize_channel, r);
}

static void dequantize_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  float *x = (float *)r->out->data + at;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    tn__levels_load(r->in->dtype, r->in->data, at + i, m, q);
    for (int64_t k = 0; k < m; k++) {
      int64_t c = channel + (step ? i + k : 0);
      x[i + k] = (float)(int32_t)((uint32_t)q[k] - (uint32_t)r->zeros[c]) * r->scales[c];
    }
  }
}

static void dequantize_part(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, dequantize_channel, r);
}

static run run_of(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  return (run){ .in = in, .out = ctx->outputs[0], .scales = ctx->inputs[1]->data, .zeros = ctx->inputs[2]->data,
                .channels = tn__channels_along(s->axis[0], in->dims, in->rank), .low = s->low, .high = s->high };
}

static tn_status quantize_compute(tn_kernel_ctx *ctx)
{
  run r = run_of(ctx);
  int64_t low = tn__levels_lowest(r.out->dtype), high = tn__levels_highest(r.out->dtype);
  r.low = tn__between(r.low, (int32_t)low, (int32_t)high);
  r.high = tn__between(r.high, (int32_t)low, (int32_t)high);
  run_all(ctx, &r, quantize_part);
  return TN_OK;
}

static tn_status dequantize_compute(tn_kernel_ctx *ctx)
{
  tn_status st = tn__positive_scales(ctx, "UniformDequantize", 1);
  if (st != TN_OK) return st;
  run r = run_of(ctx);
  run_all(ctx, &r, dequantize_part);
  return TN_OK;
}

/* ---- UniformQuantizedClipByValue: inputs operand, min, max, scales, zero points ---- */

static tn_status clip_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  tn_status st = tn__want_scales(ctx, 3, s->axis[0], ctx->inputs[0].dims, ctx->inputs[0].rank, err);
  if (st == TN_OK) st = tn__want_scales(ctx, 1, s->axis[0], ctx->inputs[0].dims, ctx->inputs[0].rank, err);
  return st == TN_OK ? tn__prepare_unchanged(ctx, err) : st;
}

static void clip_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  const int32_t *x = (const int32_t *)r->in->data + at, *min = r->min + channel, *max = r->max + channel;
  int32_t *out = (int32_t *)r->out->data + at;
  for (int64_t i = 0; i < n; i++) {
    int64_t c = step ? i : 0;
    int32_t v = x[i] < min[c] ? min[c] : x[i];
    out[i] = v > max[c] ? max[c] : v;
  }
}

static void clip_part(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, clip_channel, r);
}

static tn_status clip_compute(tn_kernel_ctx *ctx)
{
  run r = run_of(ctx);
  r.min = ctx->inputs[1]->data;
  r.max = ctx->inputs[2]->data;
  run_all(ctx, &r, clip_part);
  return TN_OK;
}

/* ---- UniformRequantize ---- */

static tn_status requantize_create(const tn_operation *op, void **out, tn_error *err)
{
  static const char *const axes[] = { "input_quantization_axis", "output_quantization_axis" };
  int64_t a = tn__attr_int(op, axes[0], -1), b = tn__attr_int(op, axes[1], -1);
  *out = NULL;
  if (a >= 0 && b >= 0 && a != b)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "UniformRequantize: the quantization axes are %lld and %lld, wanted "
                        "equal ones", (long long)a, (long long)b);
  return keep(op, axes, 2, "output_quantization_min_val", "output_quantization_max_val", out, err);
}

static tn_status requantize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_scales(ctx, 1, s->axis[0], in->dims, in->rank, err);
  if (st == TN_OK) st = tn__want_scales(ctx, 3, s->axis[1], in->dims, in->rank, err);
  if (st != TN_OK) return st;
  int64_t n = ctx->inputs[1].count > ctx->inputs[3].count ? ctx->inputs[1].count : ctx->inputs[3].count;
  ctx->scratch_bytes = (size_t)n * sizeof(tn__multiplier);
  ctx->cost_ns = 2 * (double)in->count;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

/* Multipliers of channels: the scale of the input divided by that of the output. */
static tn_status find_multipliers(tn_kernel_ctx *ctx, const char *op, uint32_t from, uint32_t to, int64_t n,
                                  tn__multiplier *out)
{
  const tn_view *a = ctx->inputs[from], *b = ctx->inputs[to];
  tn_status st = tn__positive_scales(ctx, op, from);
  if (st == TN_OK) st = tn__positive_scales(ctx, op, to);
  for (int64_t i = 0; i < n && st == TN_OK; i++) {
    double x = ((const float *)a->data)[a->count > 1 ? i : 0], y = ((const float *)b->data)[b->count > 1 ? i : 0];
    st = tn__multiplier_of(x / y, op, &out[i], ctx->err);
  }
  return st;
}

static void requantize_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const run *r = user;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    tn__levels_load(r->in->dtype, r->in->data, at + i, m, q);
    for (int64_t k = 0; k < m; k++) {
      int64_t c = channel + (step ? i + k : 0);
      int32_t x = (int32_t)((uint32_t)q[k] - (uint32_t)r->zeros[c * r->zero_step]);
      q[k] = tn__between(tn__wrapped_sum(tn__multiply(&r->multipliers[c], x), r->to_zeros[c * r->to_zero_step]),
                         r->low, r->high);
    }
    tn__levels_store(r->out->dtype, r->out->data, at + i, m, q);
  }
}

static void requantize_part(void *user, int64_t begin, int64_t end)
{
  run *r = user;
  tn__channel_runs(&r->channels, begin, end, requantize_channel, r);
}

static tn_status requantize_compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  run r = run_of(ctx);
  r.channels = tn__channels_along(s->axis[0] >= 0 ? s->axis[0] : s->axis[1], r.in->dims, r.in->rank);
  tn_status st = find_multipliers(ctx, "UniformRequantize", 1, 3, r.channels.channels, ctx->scratch);
  if (st != TN_OK) return st;
  r.multipliers = ctx->scratch;
  r.to_zeros = ctx->inputs[4]->data;
  r.zero_step = s->axis[0] >= 0;
  r.to_zero_step = s->axis[1] >= 0;
  int64_t low = tn__levels_lowest(r.out->dtype), high = tn__levels_highest(r.out->dtype);
  r.low = tn__between(r.low, (int32_t)low, (int32_t)high);
  r.high = tn__between(r.high, (int32_t)low, (int32_t)high);
  run_all(ctx, &r, requantize_part);
  return TN_OK;
}

/* ---- UniformQuantizedAdd ---- */

static tn_status add_create(const tn_operation *op, void **out, tn_error *err)
{
  static const char *const axes[] = { "lhs_quantization_axis", "rhs_quantization_axis", "output_quantization_axis" };
  return keep(op, axes, 3, "output_quantization_min_val", "output_quantization_max_val", out, err);
}

static tn_status add_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const state *s = ctx->state;
  const tn_view *x = ctx->inputs, *y = &ctx->inputs[1];
  tn__shape out;
  if (!tn__broadcast_shapes(x->dims, x->rank, y->dims, y->rank, &out))
    return tn__broadcast_error(err, "UniformQuantizedAdd", x->dims, x->rank, y->dims, y->rank);
  tn_status st = TN_OK;
  for (uint32_t i = 0; i < 2 && st == TN_OK; i++) {
    const tn_view *in = &ctx->inputs[i];
    st = tn__want_scales(ctx, 2 + 2 * i, s->axis[i], in->dims, in->rank, err);
    if (st == TN_OK && s->axis[i] >= 0 && s->axis[2] >= 0 && in->rank - s->axis[i] != out.rank - s->axis[2])
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "UniformQuantizedAdd: the quantization axis of input %u is %lld, "
                        "that of the output is %lld, wanted the same dimension", (unsigned)i, (long long)s->axis[i],
                        (long long)s->axis[2]);
  }
  if (st == TN_OK) st = tn__want_scales(ctx, 6, s->axis[2], out.dims, out.rank, err);
  if (st != TN_OK) return st;
  size_t most = 0;
  for (uint32_t i = 2; i <= 6; i += 2) {
    size_t n = (size_t)ctx->inputs[i].count;
    most = n > most ? n : most;
  }
  ctx->scratch_bytes = 2 * most * sizeof(tn__multiplier);
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* An addend: dimensions of the output by its strides, and which of them its channels follow. */
typedef struct addend {
  const int32_t *values, *zeros;
  tn__multiplier *multipliers;
  int64_t strides[TN_MAX_RANK];
  int64_t axis, zero_step, step; /* axis of the output, -1 if none; steps of zero points and multipliers */
} addend;

typedef struct add_run {
  addend of[2];
  const tn_view *out;
  const int32_t *zeros;
  int64_t axis;
  int32_t low, high;
} add_run;

static void add_part(void *user, int64_t begin, int64_t end)
{
  const add_run *r = user;
  const tn_view *out = r->out;
  for (int64_t at = begin; at < end; at++) {
    int64_t place[TN_MAX_RANK], rest = at;
    int32_t sum = r->zeros[0];
    for (int32_t i = out->rank - 1; i >= 0; i--) {
      place[i] = rest % out->dims[i];
      rest /= out->dims[i];
    }
    if (r->axis >= 0) sum = r->zeros[place[r->axis]];
    for (int k = 0; k < 2; k++) {
      const addend *a = &r->of[k];
      int64_t from = 0, c = a->axis >= 0 ? place[a->axis] : 0;
      for (int32_t i = 0; i < out->rank; i++) from += place[i] * a->strides[i];
      int32_t x = (int32_t)((uint32_t)a->values[from] - (uint32_t)a->zeros[c * a->zero_step]);
      sum = tn__wrapped_sum(sum, tn__multiply(&a->multipliers[c * a->step], x));
    }
    ((int32_t *)out->data)[at] = tn__between(sum, r->low, r->high);
  }
}

static tn_status add_compute(tn_kernel_ctx *ctx)
{
  const state *s = ctx->state;
  const tn_view *out = ctx->outputs[0];
  int64_t most = 1;
  for (uint32_t i = 2; i <= 6; i += 2) most = ctx->inputs[i]->count > most ? ctx->inputs[i]->count : most;
  add_run r = { .out = out, .zeros = ctx->inputs[7]->data, .axis = s->axis[2], .low = s->low, .high = s->high };
  for (int k = 0; k < 2; k++) {
    const tn_view *in = ctx->inputs[k];
    addend *a = &r.of[k];
    uint32_t scales = 2 + 2 * (uint32_t)k;
    int64_t own = ctx->inputs[scales]->count, n = own > ctx->inputs[6]->count ? own : ctx->inputs[6]->count, stride = 1;
    a->values = in->data;
    a->zeros = ctx->inputs[scales + 1]->data;
    a->multipliers = (tn__multiplier *)ctx->scratch + k * most;
    a->axis = s->axis[k] >= 0 ? s->axis[k] + out->rank - in->rank : s->axis[2];
    a->zero_step = own > 1;
    a->step = n > 1;
    tn_status st = find_multipliers(ctx, "UniformQuantizedAdd", scales, 6, n, a->multipliers);
    if (st != TN_OK) return st;
    for (int32_t i = out->rank - 1; i >= 0; i--) {
      int32_t d = i - (out->rank - in->rank);
      int64_t size = d >= 0 ? in->dims[d] : 1;
      a->strides[i] = size == 1 ? 0 : stride;
      stride *= size;
    }
  }
  if (out->count > 0) tn_parallel_for(ctx, out->count, 2048, 10, add_part, &r);
  return TN_OK;
}

/* ---- the family ---- */

#define RANGE(what)                                                              \
  what "quantization_axis: int = -1; " what "quantization_min_val: int; " what \
       "quantization_max_val: int"
#define SCALES(what) ", " what "scales: float, " what "zero_points: int32"
#define OP(name_, in, out, attributes, shape, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = shape, .summary = text }
static const tn_op_def ops[] = {
  OP("UniformQuantize", "input: Tin" SCALES(""), "output: Tout",
     "Tin: {float}; Tout: {qint8, quint8, qint32}; " RANGE(""), tn__infer_unchanged,
     "uniformly quantised values of floats"),
  OP("UniformDequantize", "input: Tin" SCALES(""), "output: Tout",
     "Tin: {qint8, quint8, qint32}; Tout: {float}; " RANGE(""), tn__infer_unchanged,
     "floats of uniformly quantised values"),
  OP("UniformRequantize", "input: Tin" SCALES("input_") SCALES("output_"), "output: Tout",
     "Tin: {qint8, qint32}; Tout: {qint8, qint32}; " RANGE("input_") "; " RANGE("output_"), tn__infer_unchanged,
     "uniformly quantised values with another scale"),
  OP("UniformQuantizedAdd", "lhs: T, rhs: T" SCALES("lhs_") SCALES("rhs_") SCALES("output_"), "output: T",
     RANGE("lhs_") "; " RANGE("rhs_") "; " RANGE("output_") "; T: {qint32}", tn__infer_broadcast,
     "sums of uniformly quantised values"),
  OP("UniformQuantizedClipByValue", "operand: T, min: T, max: T" SCALES(""), "output: T",
     "T: {qint32}; " RANGE(""), tn__infer_unchanged, "uniformly quantised values between two others"),
};

#define KERNEL(op_, constraint, title, create_fn, prepare_fn, compute_fn)                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = constraint, .name = title,         \
    .rank = TN_RANK_C, .create = create_fn, .destroy = destroy, .prepare = prepare_fn, .compute = compute_fn }
static const tn_kernel_def kernels[] = {
  KERNEL("UniformQuantize", NULL, "uniform_quantize_cpu", one_create, one_prepare, quantize_compute),
  KERNEL("UniformDequantize", NULL, "uniform_dequantize_cpu", one_create, one_prepare, dequantize_compute),
  KERNEL("UniformRequantize", "Tout=qint8", "uniform_requantize_cpu", requantize_create, requantize_prepare,
         requantize_compute),
  KERNEL("UniformQuantizedAdd", NULL, "uniform_add_cpu", add_create, add_prepare, add_compute),
  KERNEL("UniformQuantizedClipByValue", NULL, "uniform_clip_cpu", one_create, clip_prepare, clip_compute),
};

TN_OP_FAMILY(uniform_elements)
