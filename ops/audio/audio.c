/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeWav and EncodeWav. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/tensor/tensor_internal.h>
#include <math.h>
#include <ops/audio/wav.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- reading ---- */

typedef struct decode_state {
  int64_t channels, samples; /* -1: as in the file */
} decode_state;

static tn_status read_count(const tn_operation *op, const char *name, int64_t *out, tn_error *err)
{
  *out = tn__attr_int(op, name, -1);
  if (*out >= -1 && *out <= INT32_MAX) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is %lld, wanted -1 or more, and below 2^31",
                      tn_operation_type(op), name, (long long)*out);
}

static tn_status decode_create(const tn_operation *op, void **state, tn_error *err)
{
  decode_state s;
  *state = NULL;
  tn_status st = read_count(op, "desired_channels", &s.channels, err);
  if (st == TN_OK) st = read_count(op, "desired_samples", &s.samples, err);
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "decoding", state, err);
}

static void decode_destroy(void *state) { tn__free(state, sizeof(decode_state)); }

static tn_status decode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const decode_state *s = ctx->state;
  const int64_t dims[] = { s->samples, s->channels };
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK)
    st = s->samples < 0 || s->channels < 0 ? tn_prepare_dynamic(ctx, 0, err) : tn_prepare_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, NULL, 0, err);
  ctx->cost_ns = 200 + (s->samples > 0 ? 0.3 * (double)s->samples : 5000);
  return st;
}

/* Converts n samples of 16 bits, which need not be aligned. */
static void to_floats(const uint8_t *from, int64_t n, float *to)
{
  for (int64_t i = 0; i < n; i++) {
    int16_t sample;
    memcpy(&sample, from + 2 * i, sizeof sample);
    to[i] = (float)sample * 0x1p-15f;
  }
}

/* If the file has fewer channels than wanted, its last one is repeated. */
static void spread(const tn__wav *wav, int64_t samples, int64_t channels, float *to)
{
  for (int64_t i = 0; i < samples; i++)
    for (int64_t c = 0; c < channels; c++)
      to_floats(wav->data + 2 * (i * wav->channels + (c < wav->channels ? c : wav->channels - 1)), 1, to++);
}

static tn_status decode_compute(tn_kernel_ctx *ctx)
{
  const decode_state *s = ctx->state;
  tn__wav wav;
  size_t size;
  const char *file = tn_string_data(ctx->inputs[0]->data, &size);
  tn_status st = tn__wav_read(file, size, &wav, ctx->err);
  if (st != TN_OK) return st;
  int64_t dims[] = { s->samples < 0 ? wav.samples : s->samples, s->channels < 0 ? wav.channels : s->channels };
  if (s->samples < 0 || s->channels < 0) st = tn_kernel_allocate(ctx, 0, dims, 2);
  if (st != TN_OK) return st;
  int64_t samples = dims[0] < wav.samples ? dims[0] : wav.samples, n = samples * dims[1];
  float *to = ctx->outputs[0]->data;
  if (dims[1] == wav.channels)
    to_floats(wav.data, n, to);
  else
    spread(&wav, samples, dims[1], to);
  memset(to + n, 0, (size_t)((dims[0] - samples) * dims[1]) * sizeof *to);
  *(int32_t *)ctx->outputs[1]->data = wav.rate;
  return TN_OK;
}

static tn_status infer_decode(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  int64_t dims[] = { tn__attr_int(op, "desired_samples", -1), tn__attr_int(op, "desired_channels", -1) };
  for (int k = 0; k < 2; k++)
    if (dims[k] < -1) dims[k] = -1; /* the kernel reports the error */
  tn_status st = tn_infer_output(ctx, 0, dims, 2, err);
  return st != TN_OK ? st : tn_infer_output(ctx, 1, NULL, 0, err);
}

/* ---- writing ---- */

static tn_status encode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *audio = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  if (audio->dims[1] < 1 || audio->dims[1] > UINT16_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "EncodeWav: %lld channels, wanted 1 to 65535",
                        (long long)audio->dims[1]);
  if (audio->count > (UINT32_MAX - TN__WAV_HEADER) / 2)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "EncodeWav: %lld numbers, more than a file holds",
                        (long long)audio->count);
  ctx->cost_ns = 200 + 2 * (double)audio->count;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

/* A NaN becomes 0. */
static int16_t sample_of(float x)
{
  float sample = roundf(x * 32768.0f);
  if (sample >= 32767) return 32767;
  if (sample <= -32768) return -32768;
  return sample == sample ? (int16_t)sample : 0;
}

static tn_status encode_compute(tn_kernel_ctx *ctx)
{
  const tn_view *audio = ctx->inputs[0];
  const float *x = audio->data;
  int32_t rate = *(const int32_t *)ctx->inputs[1]->data;
  if (rate <= 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "EncodeWav: sample_rate is %d, wanted 1 or more", (int)rate);
  size_t bytes = TN__WAV_HEADER + 2 * (size_t)audio->count;
  char *to = tn__string_reserve(ctx->outputs[0]->data, bytes);
  if (to == NULL) return tn__no_memory(ctx->err, "a WAV file", bytes);
  tn__wav_header((uint8_t *)to, (uint32_t)audio->dims[1], (uint32_t)rate, 2 * (uint32_t)audio->count);
  for (int64_t i = 0; i < audio->count; i++) {
    int16_t number = sample_of(x[i]);
    memcpy(to + TN__WAV_HEADER + 2 * i, &number, sizeof number);
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "DecodeWav",
    .inputs = "contents: string",
    .outputs = "audio: float, sample_rate: int32",
    .attrs = "desired_channels: int = -1; desired_samples: int = -1",
    .traits = TN_TRAIT_DYNAMIC,
    .infer = infer_decode,
    .summary = "decodes a WAV file to samples in [-1, 1]" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "EncodeWav",
    .inputs = "audio: float, sample_rate: int32",
    .outputs = "contents: string",
    .attrs = "",
    .infer = tn__infer_scalar,
    .summary = "encodes samples as a 16-bit WAV file" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "DecodeWav",
    .device = "CPU",
    .name = "decode_wav_cpu",
    .rank = TN_RANK_C,
    .create = decode_create,
    .destroy = decode_destroy,
    .prepare = decode_prepare,
    .compute = decode_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "EncodeWav",
    .device = "CPU",
    .name = "encode_wav_cpu",
    .rank = TN_RANK_C,
    .prepare = encode_prepare,
    .compute = encode_compute },
};

TN_OP_FAMILY(audio)
