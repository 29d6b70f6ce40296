/* SPDX-License-Identifier: Apache-2.0 */
/* Quantised values in another range: Requantize, QuantizeDownAndShrinkRange, RequantizationRange and the ops that
 * have a range for each channel. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/family.h>
#include <ops/quantized/requantized.h>

/* ---- the smallest and largest value ---- */

static void extremes_of(const tn_view *in, int32_t *min, int32_t *max)
{
  int32_t q[TN__LEVELS_BLOCK];
  int32_t low = (int32_t)tn__levels_highest(in->dtype), high = (int32_t)tn__levels_lowest(in->dtype);
  for (int64_t at = 0, n; at < in->count; at += n) {
    n = in->count - at < TN__LEVELS_BLOCK ? in->count - at : TN__LEVELS_BLOCK;
    tn__levels_load(in->dtype, in->data, at, n, q);
    for (int64_t i = 0; i < n; i++) {
      low = q[i] < low ? q[i] : low;
      high = q[i] > high ? q[i] : high;
    }
  }
  *min = low;
  *max = high;
}

/* The range of the values that occur; the minimum is at most 0. */
static void used_range(tn_kernel_ctx *ctx, float *min, float *max)
{
  const tn_view *in = ctx->inputs[0];
  float in_min = tn__float_at(ctx->inputs[1]), in_max = tn__float_at(ctx->inputs[2]);
  int32_t low, high;
  extremes_of(in, &low, &high);
  *min = fminf(0, tn__number_of(in->dtype, low, in_min, in_max));
  *max = tn__number_of(in->dtype, high, in_min, in_max);
}

/* ---- Requantize QuantizeDownAndShrinkRange RequantizationRange ---- */

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_scalars(ctx, 1, ctx->n_inputs - 1, err);
  ctx->cost_ns = 0.8 * (double)ctx->inputs[0].count;
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

static tn_status prepare_range(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_scalars(ctx, 1, 2, err);
  ctx->cost_ns = 0.5 * (double)ctx->inputs[0].count;
  return st == TN_OK ? tn__prepare_scalars(ctx, 0, err) : st;
}

static void requantize(tn_kernel_ctx *ctx, float min, float max)
{
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[0];
  tn__requantized r = tn__requantized_of(in, tn__float_at(ctx->inputs[1]), tn__float_at(ctx->inputs[2]), out, min, max);
  if (in->count > 0) tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 0.8, tn__requantize_part, &r);
  tn__set_range(ctx, min, max);
}

static tn_status requantize_compute(tn_kernel_ctx *ctx)
{
  float min = tn__float_at(ctx->inputs[3]), max = tn__float_at(ctx->inputs[4]);
  if (!(min <= 0))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "Requantize: requested_output_min is %g, wanted at most 0",
                        (double)min);
  if (!(max >= min))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "Requantize: requested_output_max is %g, less than "
                        "requested_output_min, %g", (double)max, (double)min);
  requantize(ctx, min, max);
  return TN_OK;
}

static tn_status shrink_compute(tn_kernel_ctx *ctx)
{
  float min, max;
  used_range(ctx, &min, &max);
  requantize(ctx, min, max);
  return TN_OK;
}

static tn_status range_compute(tn_kernel_ctx *ctx)
{
  used_range(ctx, ctx->outputs[0]->data, ctx->outputs[1]->data);
  return TN_OK;
}

/* ---- with a range for each channel ---- */

/* Inputs 1 and 2 have an element for each channel, the last dimension of input 0. */
static tn_status want_channels(const tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  for (uint32_t i = 1; i <= 2 && st == TN_OK; i++)
    if (ctx->inputs[i].rank != 1 || ctx->inputs[i].count != in->dims[in->rank - 1])
      return tn__shape_error(err, ctx, i, &in->dims[in->rank - 1], 1);
  return st;
}

static float widest_of(const tn_kernel_ctx *ctx, int64_t channel)
{
  return fmaxf(fabsf(((const float *)ctx->inputs[1]->data)[channel]),
               fabsf(((const float *)ctx->inputs[2]->data)[channel]));
}

static tn_status channel_range_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = want_channels(ctx, err);
  if (st == TN_OK && ctx->inputs[0].count == 0)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "RequantizationRangePerChannel: input 0 has no elements");
  ctx->cost_ns = (double)ctx->inputs[0].count;
  ctx->scratch_bytes = (size_t)ctx->inputs[1].count * 2 * sizeof(int32_t);
  return st == TN_OK ? tn__prepare_scalars(ctx, 0, err) : st;
}

static tn_status channel_range_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  const int32_t *x = in->data;
  int64_t channels = ctx->inputs[1]->count;
  int32_t *low = ctx->scratch, *high = low + channels;
  float clip = *(const float *)ctx->state, max = FLT_MIN;
  bool negative = false;
  for (int64_t c = 0; c < channels; c++) low[c] = high[c] = x[c];
  for (int64_t at = channels; at < in->count; at += channels)
    for (int64_t c = 0; c < channels; c++) {
      low[c] = x[at + c] < low[c] ? x[at + c] : low[c];
      high[c] = x[at + c] > high[c] ? x[at + c] : high[c];
    }
  for (int64_t c = 0; c < channels; c++) {
    float largest = fmaxf(fabsf((float)low[c]), fabsf((float)high[c]));
    float range = widest_of(ctx, c) * largest / 0x1p31f;
    max = range > max ? range : max;
    negative |= low[c] < 0;
  }
  if (max > clip) max = clip;
  *(float *)ctx->outputs[0]->data = negative ? -max : 0;
  *(float *)ctx->outputs[1]->data = max;
  return TN_OK;
}

static tn_status keep_clip(const tn_operation *op, void **state, tn_error *err)
{
  float clip = tn__attr_float(op, "clip_value_max", INFINITY);
  *state = NULL;
  return tn__keep_state(&clip, sizeof clip, "clip_value_max", state, err);
}

static void destroy_clip(void *clip) { tn__free(clip, sizeof(float)); }

static tn_status channels_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = want_channels(ctx, err);
  if (st == TN_OK && ctx->inputs[0].rank != 4 && ctx->inputs[0].rank != 5)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "RequantizePerChannel: input 0 has rank %d, wanted 4 or 5",
                      (int)ctx->inputs[0].rank);
  if (st == TN_OK) st = tn__want_scalars(ctx, 3, 4, err);
  ctx->scratch_bytes = (size_t)ctx->inputs[1].count * sizeof(float);
  ctx->cost_ns = (double)ctx->inputs[0].count;
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

typedef struct channels_run {
  const int32_t *in;
  const float *scales;
  const tn_view *out;
  tn__channels channels;
  float low, high;
} channels_run;

static void scale_channel(void *user, int64_t channel, int step, int64_t at, int64_t n)
{
  const channels_run *r = user;
  const float *scales = r->scales + channel;
  int32_t q[TN__LEVELS_BLOCK];
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < TN__LEVELS_BLOCK ? n - i : TN__LEVELS_BLOCK;
    for (int64_t k = 0; k < m; k++) {
      float v = (float)r->in[at + i + k] * scales[step ? i + k : 0];
      q[k] = tn__clamp_int(tn__round_f(v), r->low, r->high);
    }
    tn__levels_store(r->out->dtype, r->out->data, at + i, m, q);
  }
}

static void scale_part(void *user, int64_t begin, int64_t end)
{
  channels_run *r = user;
  tn__channel_runs(&r->channels, begin, end, scale_channel, r);
}

static tn_status channels_compute(tn_kernel_ctx *ctx)
{
  const tn_view *out = ctx->outputs[0];
  float min = tn__float_at(ctx->inputs[3]), max = tn__float_at(ctx->inputs[4]);
  float *scales = ctx->scratch, factor = out->dtype == TN_QINT8 ? 127 : 255, widest = fmaxf(fabsf(min), fabsf(max));
  int64_t channels = ctx->inputs[1]->count;
  if (out->dtype == TN_QINT8 && !(min < 0))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "RequantizePerChannel: requested_output_min is %g, wanted less "
                        "than 0 for qint8", (double)min);
  for (int64_t c = 0; c < channels; c++) scales[c] = factor * (widest_of(ctx, c) / widest / 0x1p31f);
  channels_run r = { ctx->inputs[0]->data, scales, out, { channels, 1 }, (float)tn__levels_lowest(out->dtype),
                     (float)tn__levels_highest(out->dtype) };
  if (out->count > 0) tn_parallel_for(ctx, out->count, TN__SERIAL_ELEMENTS, 1, scale_part, &r);
  tn__set_range(ctx, min, max);
  return TN_OK;
}

#define OP(name_, in, out, attributes, shape, text)                                                   \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = in, .outputs = out, .attrs = attributes,  \
    .infer = shape, .summary = text }
#define RANGE ", input_min: float, input_max: float"
#define REQUESTED RANGE ", requested_output_min: float, requested_output_max: float"
#define OUT "output: out_type, output_min: float, output_max: float"
#define TYPES "Tinput: " TN__QUANTIZED "; out_type: " TN__QUANTIZED
static const tn_op_def ops[] = {
  OP("Requantize", "input: Tinput" REQUESTED, OUT, TYPES, tn__infer_quantized, "quantised values in another range"),
  OP("QuantizeDownAndShrinkRange", "input: Tinput" RANGE, OUT, TYPES, tn__infer_quantized,
     "quantised values in the range that they use"),
  OP("RequantizationRange", "input: Tinput" RANGE, "output_min: float, output_max: float",
     "Tinput: " TN__QUANTIZED, tn__infer_scalar, "range that quantised values use"),
  OP("RequantizationRangePerChannel", "input: T" RANGE, "output_min: float, output_max: float",
     "T: " TN__QUANTIZED " = qint32; clip_value_max: float", tn__infer_scalar,
     "range that quantised values with a range for each channel use"),
  OP("RequantizePerChannel", "input: T" REQUESTED, OUT,
     "T: " TN__QUANTIZED " = qint32; out_type: " TN__QUANTIZED " = quint8", tn__infer_quantized,
     "quantised values with a range for each channel in one range"),
};

#define KERNEL(op_, constraint, title, prepare_fn, compute_fn)                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = constraint, .name = title,      \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }
static const tn_kernel_def kernels[] = {
  KERNEL("Requantize", NULL, "requantize_cpu", prepare, requantize_compute),
  KERNEL("QuantizeDownAndShrinkRange", NULL, "quantize_down_cpu", prepare, shrink_compute),
  KERNEL("RequantizationRange", NULL, "requantization_range_cpu", prepare_range, range_compute),
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "RequantizationRangePerChannel", .device = "CPU", .types = "T=qint32",
    .name = "requantization_range_channels_cpu", .rank = TN_RANK_C, .create = keep_clip, .destroy = destroy_clip,
    .prepare = channel_range_prepare, .compute = channel_range_compute },
  KERNEL("RequantizePerChannel", "T=qint32,out_type=qint8|quint8", "requantize_channels_cpu", channels_prepare,
         channels_compute),
};

TN_OP_FAMILY(requantize)
