/* SPDX-License-Identifier: Apache-2.0 */
/* AudioSpectrogram: Fourier transforms of windows of samples. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/audio/fft.h>
#include <ops/kernel/bands.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

typedef struct spectrum_state {
  int64_t window, stride, length; /* length: of a transform */
  bool squared;
} spectrum_state;

typedef struct spectrum_plan {
  tn__fft fft;
  tn__bands bands;
  double *weights;                          /* window function, one per sample of a window */
  int64_t window, channels, slices, groups; /* groups of slices that are transformed at once */
} spectrum_plan;

static int64_t bins_of(const spectrum_state *s) { return s->length / 2 + 1; }

static tn_status read_sizes(const tn_operation *op, spectrum_state *s, tn_error *err)
{
  s->window = tn__attr_int(op, "window_size", 0);
  s->stride = tn__attr_int(op, "stride", 0);
  s->squared = tn__attr_bool(op, "magnitude_squared", false);
  if (s->window < 2 || s->window > 1 << 30 || s->stride < 1 || s->stride > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "AudioSpectrogram: window_size is %lld and stride %lld, wanted 2 to 2^30 "
                        "and 1 to 2^31 - 1",
                        (long long)s->window, (long long)s->stride);
  for (s->length = 2; s->length < s->window;) s->length *= 2;
  return TN_OK;
}

static tn_status spectrum_create(const tn_operation *op, void **state, tn_error *err)
{
  spectrum_state s = { 0 };
  *state = NULL;
  tn_status st = read_sizes(op, &s, err);
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "spectrogram", state, err);
}

static void spectrum_destroy(void *state) { tn__free(state, sizeof(spectrum_state)); }

static void spectrum_destroy_plan(void *shape_state)
{
  spectrum_plan *p = shape_state;
  tn__fft_destroy(&p->fft);
  if (p->weights != NULL) tn__free(p->weights, (size_t)p->window * sizeof(double));
  tn__free(p, sizeof *p);
}

static tn_status spectrum_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const spectrum_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st != TN_OK) return st;
  int64_t slices = in->dims[0] < s->window ? 0 : 1 + (in->dims[0] - s->window) / s->stride;
  const int64_t dims[] = { in->dims[1], slices, bins_of(s) };
  st = tn_prepare_output(ctx, 0, dims, 3, err);
  if (st != TN_OK || in->dims[1] == 0 || slices == 0) return st;
  spectrum_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "spectrogram", sizeof *p);
  ctx->shape_state = p;
  p->window = s->window;
  p->channels = in->dims[1];
  p->slices = slices;
  p->groups = (slices + TN__FFT_LINES - 1) / TN__FFT_LINES;
  p->weights = tn__alloc((size_t)s->window * sizeof(double));
  if (p->weights == NULL) return tn__no_memory(err, "weights of a window", (size_t)s->window * sizeof(double));
  for (int64_t i = 0; i < s->window; i++)
    p->weights[i] = 0.5 - 0.5 * cos(2 * 3.14159265358979323846 * (double)i / (double)s->window);
  st = tn__fft_create(&p->fft, s->length, err);
  if (st != TN_OK) return st;
  double cost = (double)s->length * 8;
  size_t bytes = TN__FFT_BYTES(p->fft.half) + (size_t)bins_of(s) * TN__FFT_LINES * sizeof(double);
  return tn__bands_plan(ctx, p->channels * p->groups, cost, bytes, &p->bands, err);
}

/* ---- computing ---- */

typedef struct spectrum_run {
  const spectrum_state *state;
  const spectrum_plan *plan;
  const float *in;
  float *out;
} spectrum_run;

/* Loads line l of a block: the window that begins at `from`, zero-padded. If `from` is NULL, all
 * zeros. */
static void load_line(const spectrum_plan *p, const float *from, int l, double *block)
{
  const int64_t c = p->channels, pairs = from != NULL ? p->window / 2 : 0;
  const double *w = p->weights;
  for (int64_t i = 0; i < pairs; i++) {
    double *to = block + p->fft.places[i] * 2 * TN__FFT_LINES + l;
    to[0] = (double)from[2 * i * c] * w[2 * i];
    to[TN__FFT_LINES] = (double)from[(2 * i + 1) * c] * w[2 * i + 1];
  }
  for (int64_t i = pairs; i < p->fft.half; i++) {
    double *to = block + p->fft.places[i] * 2 * TN__FFT_LINES + l;
    to[0] = from != NULL && 2 * i < p->window ? (double)from[2 * i * c] * w[2 * i] : 0;
    to[TN__FFT_LINES] = 0;
  }
}

static void store_line(const spectrum_state *s, const double *powers, int l, float *to)
{
  const int64_t bins = bins_of(s);
  for (int64_t k = 0; k < bins; k++) to[k] = (float)powers[k * TN__FFT_LINES + l];
  if (s->squared) return;
  for (int64_t k = 0; k < bins; k++) to[k] = sqrtf(to[k]);
}

static void spectrum_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const spectrum_run *r = user;
  const spectrum_plan *p = r->plan;
  double *block = (double *)buffers, *powers = block + p->fft.half * 2 * TN__FFT_LINES;
  for (int64_t group = begin; group < end; group++) {
    int64_t channel = group / p->groups, slice = group % p->groups * TN__FFT_LINES;
    for (int l = 0; l < TN__FFT_LINES; l++) {
      bool there = slice + l < p->slices;
      load_line(p, there ? r->in + (slice + l) * r->state->stride * p->channels + channel : NULL, l, block);
    }
    tn__fft_run(&p->fft, block);
    tn__fft_powers(&p->fft, block, powers);
    for (int l = 0; l < TN__FFT_LINES && slice + l < p->slices; l++)
      store_line(r->state, powers, l, r->out + (channel * p->slices + slice + l) * bins_of(r->state));
  }
}

static tn_status spectrum_compute(tn_kernel_ctx *ctx)
{
  const spectrum_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  spectrum_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  tn__bands_run(ctx, &p->bands, spectrum_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_spectrum(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  spectrum_state s = { 0 };
  int64_t dims[] = { -1, -1, -1 };
  tn__infer_get(ctx, 0, &in);
  bool known = read_sizes(tn_infer_operation(ctx), &s, NULL) == TN_OK; /* the kernel reports errors */
  if (known) dims[2] = bins_of(&s);
  if (in.rank == 2) {
    dims[0] = in.dims[1];
    if (known && in.dims[0] >= 0) dims[1] = in.dims[0] < s.window ? 0 : 1 + (in.dims[0] - s.window) / s.stride;
  }
  return tn_infer_output(ctx, 0, dims, 3, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "AudioSpectrogram",
    .inputs = "input: float",
    .outputs = "spectrogram: float",
    .attrs = "window_size: int; stride: int; magnitude_squared: bool = false",
    .infer = infer_spectrum,
    .summary = "spectrogram of audio samples" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "AudioSpectrogram",
    .device = "CPU",
    .name = "audio_spectrogram_cpu",
    .rank = TN_RANK_C,
    .create = spectrum_create,
    .destroy = spectrum_destroy,
    .prepare = spectrum_prepare,
    .destroy_shape_state = spectrum_destroy_plan,
    .compute = spectrum_compute },
};

TN_OP_FAMILY(audio_spectrogram)
