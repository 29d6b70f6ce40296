/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizedInstanceNorm and QuantizedBatchNormWithGlobalNormalization. */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/family.h>
#include <ops/quantized/levels.h>

/* ---- QuantizedInstanceNorm ---- */

typedef struct instance {
  bool given;
  float min, max, epsilon, separation;
} instance;

static tn_status instance_create(const tn_operation *op, void **out, tn_error *err)
{
  instance s = { tn__attr_bool(op, "output_range_given", false), tn__attr_float(op, "given_y_min", 0),
                 tn__attr_float(op, "given_y_max", 0), tn__attr_float(op, "variance_epsilon", 1e-5f),
                 tn__attr_float(op, "min_separation", 1e-3f) };
  *out = NULL;
  if (s.given && !(s.min < s.max))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "QuantizedInstanceNorm: given_y_min is %g, given_y_max is %g, wanted "
                        "a larger one", (double)s.min, (double)s.max);
  return tn__keep_state(&s, sizeof s, "QuantizedInstanceNorm", out, err);
}

static void instance_destroy(void *s) { tn__free(s, sizeof(instance)); }

/* The mean of an image's channel, and what its numbers are multiplied by. */
typedef struct moments {
  float mean, factor;
} moments;

static tn_status instance_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t n;
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_scalars(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  if (__builtin_mul_overflow(in->dims[0], in->dims[3], &n) || n > ((int64_t)1 << 40))
    return tn__no_memory(err, "means of channels", sizeof(moments));
  ctx->scratch_bytes = in->count > 0 ? (size_t)n * sizeof(moments) : 0;
  ctx->cost_ns = 4 * (double)in->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

typedef struct instance_run {
  const instance *s;
  const uint8_t *x;
  uint8_t *out;
  moments *of;
  int64_t pixels, channels;
  float scale;
  tn__quantizer quantizer;
} instance_run;

/* Mean and variance of channels [begin, end), counted over all images. */
static void find_moments(void *user, int64_t begin, int64_t end)
{
  const instance_run *r = user;
  for (int64_t at = begin; at < end; at++) {
    const uint8_t *x = r->x + at / r->channels * r->pixels * r->channels + at % r->channels;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < r->pixels; i++) sum += x[i * r->channels];
    float mean = (float)(sum / (double)r->pixels);
    for (int64_t i = 0; i < r->pixels; i++) {
      float d = r->scale * ((float)x[i * r->channels] - mean);
      squares += (double)d * d;
    }
    float variance = (float)(squares / (double)r->pixels);
    r->of[at] = (moments){ mean, r->scale / sqrtf(variance + r->s->epsilon) };
  }
}

static inline float normed(const instance_run *r, int64_t at)
{
  const moments *m = &r->of[at / (r->pixels * r->channels) * r->channels + at % r->channels];
  return ((float)r->x[at] - m->mean) * m->factor;
}

static void normalize(void *user, int64_t begin, int64_t end)
{
  const instance_run *r = user;
  for (int64_t at = begin; at < end; at++) r->out[at] = (uint8_t)tn__quantizer_value(&r->quantizer, normed(r, at));
}

static tn_status instance_compute(tn_kernel_ctx *ctx)
{
  const instance *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  float x_min = tn__float_at(ctx->inputs[1]), x_max = tn__float_at(ctx->inputs[2]), min = s->min, max = s->max;
  if (!(x_min < x_max))
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "QuantizedInstanceNorm: x_min is %g, x_max is %g, wanted a "
                        "larger one", (double)x_min, (double)x_max);
  instance_run r = { .s = s, .x = in->data, .out = ctx->outputs[0]->data, .of = ctx->scratch,
                     .pixels = in->dims[1] * in->dims[2], .channels = in->dims[3], .scale = (x_max - x_min) / 255 };
  if (in->count > 0)
    tn_parallel_for(ctx, in->dims[0] * in->dims[3], 1 + 8192 / r.pixels, 3 * (double)r.pixels, find_moments, &r);
  if (!s->given) {
    min = FLT_MAX;
    max = -FLT_MAX;
    for (int64_t at = 0; at < in->count; at++) {
      float v = normed(&r, at);
      min = v < min ? v : min;
      max = v > max ? v : max;
    }
  }
  if (max - min < s->separation) max = min + s->separation;
  r.quantizer = tn__quantizer_of(TN_QUINT8, min, max);
  if (in->count > 0) tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 3, normalize, &r);
  tn__set_range(ctx, min, max);
  return TN_OK;
}

/* ---- QuantizedBatchNormWithGlobalNormalization ---- */

/* Inputs: the images, then mean, variance, beta and gamma of channels; after each its minimum and maximum. */
enum { IMAGES, MEAN = 3, VARIANCE = 6, BETA = 9, GAMMA = 12, INPUTS = 15 };

#define LARGEST ((float)(1 << 20)) /* the output's range is symmetric */

typedef struct batch {
  float epsilon;
  bool scaled;
} batch;

static tn_status batch_create(const tn_operation *op, void **out, tn_error *err)
{
  batch s = { tn__attr_float(op, "variance_epsilon", 0), tn__attr_bool(op, "scale_after_normalization", false) };
  *out = NULL;
  return tn__keep_state(&s, sizeof s, "QuantizedBatchNormWithGlobalNormalization", out, err);
}

static void batch_destroy(void *s) { tn__free(s, sizeof(batch)); }

static tn_status batch_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[IMAGES];
  tn_status st = tn__want_rank(ctx, IMAGES, 4, err);
  for (uint32_t i = 0; i < INPUTS && st == TN_OK; i += 3) {
    st = tn__want_scalars(ctx, i + 1, i + 2, err);
    if (st == TN_OK && i > 0 && (ctx->inputs[i].rank != 1 || ctx->inputs[i].count != in->dims[3]))
      st = tn__shape_error(err, ctx, i, &in->dims[3], 1);
  }
  if (st != TN_OK) return st;
  ctx->scratch_bytes = (size_t)ctx->inputs[MEAN].count * 2 * sizeof(int32_t);
  ctx->cost_ns = 6 * (double)in->count;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st == TN_OK ? tn__prepare_scalars(ctx, 1, err) : st;
}

static float number_at(const tn_kernel_ctx *ctx, uint32_t i, int64_t k)
{
  return tn__number_of(TN_QUINT8, ((const uint8_t *)ctx->inputs[i]->data)[k], tn__float_at(ctx->inputs[i + 1]),
                       tn__float_at(ctx->inputs[i + 2]));
}

static int32_t output_value(float number) { return tn__value_of(TN_QINT32, number, -LARGEST, LARGEST); }

typedef struct batch_run {
  const uint8_t *x;
  int32_t *out;
  const int32_t *scales, *offsets;
  int32_t values[256]; /* of each input value in the output's range */
  int32_t one;
  int64_t channels;
} batch_run;

static void batch_part(void *user, int64_t begin, int64_t end)
{
  const batch_run *r = user;
  for (int64_t at = begin; at < end; at++) {
    int64_t c = at % r->channels;
    int32_t product = (int32_t)((uint32_t)r->values[r->x[at]] * (uint32_t)r->scales[c]);
    r->out[at] = (int32_t)((uint32_t)(product / r->one) + (uint32_t)r->offsets[c]);
  }
}

static tn_status batch_compute(tn_kernel_ctx *ctx)
{
  const batch *s = ctx->state;
  const tn_view *in = ctx->inputs[IMAGES];
  int64_t channels = in->dims[3];
  int32_t *scales = ctx->scratch, *offsets = scales + channels;
  batch_run r = { .x = in->data, .out = ctx->outputs[0]->data, .scales = scales, .offsets = offsets,
                  .one = output_value(1), .channels = channels };
  for (int64_t c = 0; c < channels; c++) {
    float scale = 1.0f / sqrtf(number_at(ctx, VARIANCE, c) + s->epsilon);
    if (s->scaled) scale *= number_at(ctx, GAMMA, c);
    scales[c] = output_value(scale);
    offsets[c] = output_value(-number_at(ctx, MEAN, c) * scale + number_at(ctx, BETA, c));
  }
  float min = tn__float_at(ctx->inputs[1]), max = tn__float_at(ctx->inputs[2]);
  for (int q = 0; q < 256; q++) r.values[q] = output_value(tn__number_of(TN_QUINT8, q, min, max));
  if (in->count > 0) tn_parallel_for(ctx, in->count, TN__SERIAL_ELEMENTS, 5, batch_part, &r);
  tn__set_range(ctx, -LARGEST, LARGEST);
  return TN_OK;
}

/* ---- the family ---- */

#define RANGED(name) name ": Tinput, " name "_min: float, " name "_max: float"
static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedInstanceNorm", .inputs = "x: T, x_min: float, x_max: float",
    .outputs = "y: T, y_min: float, y_max: float",
    .attrs = "T: " TN__QUANTIZED "; output_range_given: bool = false; given_y_min: float = 0; given_y_max: float = 0; "
             "variance_epsilon: float = 1e-05; min_separation: float = 0.001",
    .infer = tn__infer_quantized, .summary = "normalises each channel of each image of quantised values" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedBatchNormWithGlobalNormalization",
    .inputs = RANGED("t") ", " RANGED("m") ", " RANGED("v") ", " RANGED("beta") ", " RANGED("gamma"),
    .outputs = "result: out_type, result_min: float, result_max: float",
    .attrs = "Tinput: " TN__QUANTIZED "; out_type: " TN__QUANTIZED
             "; variance_epsilon: float; scale_after_normalization: bool",
    .infer = tn__infer_quantized, .summary = "normalises channels of quantised values" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedInstanceNorm", .device = "CPU", .types = "T=quint8",
    .name = "quantized_instance_norm_cpu", .rank = TN_RANK_C, .create = instance_create, .destroy = instance_destroy,
    .prepare = instance_prepare, .compute = instance_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "QuantizedBatchNormWithGlobalNormalization", .device = "CPU",
    .types = "Tinput=quint8,out_type=qint32", .name = "quantized_batch_norm_cpu", .rank = TN_RANK_C,
    .create = batch_create, .destroy = batch_destroy, .prepare = batch_prepare, .compute = batch_compute },
};

TN_OP_FAMILY(quantized_norm)
