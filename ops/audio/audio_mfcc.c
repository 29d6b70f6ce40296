/* SPDX-License-Identifier: Apache-2.0 */
/* Mfcc: spectrogram magnitudes summed over triangular filters on the mel scale, then logarithms and
 * a cosine transform. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/bands.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/shapes.h>
#include <string.h>

typedef struct mfcc_state {
  double lower, upper;
  int64_t triangles, coefficients;
} mfcc_state;

/* Bin first + i adds weights[i] of its magnitude to triangle places[i], and the rest to the next
 * triangle. Triangles outside [0, n) are ignored. */
typedef struct mfcc_plan {
  tn__bands bands;
  int64_t bins, first, used; /* bins per slice; range of bins used */
  double *weights, *cosines; /* cosines[triangle][coefficient] */
  int64_t *places;
  size_t bytes; /* of the allocation, which begins at weights */
  bool beyond;  /* the spectrogram ends below the upper limit: all results are 0 */
} mfcc_plan;

static tn_status mfcc_create(const tn_operation *op, void **state, tn_error *err)
{
  mfcc_state s = { (double)tn__attr_float(op, "lower_frequency_limit", 20),
                   (double)tn__attr_float(op, "upper_frequency_limit", 4000),
                   tn__attr_int(op, "filterbank_channel_count", 40), tn__attr_int(op, "dct_coefficient_count", 13) };
  *state = NULL;
  if (!(s.lower >= 0) || s.upper <= s.lower)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Mfcc: frequencies from %g to %g, wanted rising ones from 0 on",
                        s.lower, s.upper);
  if (s.coefficients < 1 || s.coefficients > s.triangles || s.triangles > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "Mfcc: %lld coefficients of %lld channels, wanted 1 or more, and no more "
                        "than channels",
                        (long long)s.coefficients, (long long)s.triangles);
  return tn__keep_state(&s, sizeof s, "mfcc", state, err);
}

static void mfcc_destroy(void *state) { tn__free(state, sizeof(mfcc_state)); }

static void mfcc_destroy_plan(void *shape_state)
{
  mfcc_plan *p = shape_state;
  if (p->weights != NULL) tn__free(p->weights, p->bytes);
  tn__free(p, sizeof *p);
}

static double mel(double frequency) { return 1127.0 * log1p(frequency / 700.0); }

/* The peaks of the triangles are equidistant on the mel scale, between the limits. */
static void set_triangles(const mfcc_state *s, double bin_width, mfcc_plan *p)
{
  const double low = mel(s->lower), step = (mel(s->upper) - low) / (double)(s->triangles + 1);
  int64_t next = 0; /* the first triangle whose peak is not below the bin */
  for (int64_t i = 0; i < p->used; i++) {
    double at = mel((double)(p->first + i) * bin_width);
    while (next < s->triangles && low + step * (double)(next + 1) < at) next++;
    double peak = low + step * (double)(next + 1), before = next > 0 ? low + step * (double)next : low;
    p->places[i] = next - 1;
    p->weights[i] = (peak - at) / (peak - before);
  }
}

static void set_cosines(const mfcc_state *s, double *cosines)
{
  const double norm = sqrt(2.0 / (double)s->triangles), arc = 3.14159265358979323846 / (double)s->triangles;
  for (int64_t j = 0; j < s->triangles; j++)
    for (int64_t i = 0; i < s->coefficients; i++) *cosines++ = norm * cos((double)i * arc * ((double)j + 0.5));
}

static tn_status make_tables(const mfcc_state *s, int32_t rate, mfcc_plan *p, tn_error *err)
{
  size_t bins, cosines;
  const double bin_width = 0.5 * rate / (double)(p->bins - 1), end = s->upper / bin_width;
  p->beyond = !(end < (double)p->bins);
  if (p->beyond) return TN_OK;
  p->first = (int64_t)(1.5 + s->lower / bin_width);
  p->used = (int64_t)end + 1 - p->first;
  if (p->used <= 0) p->used = p->first = 0;
  if (!tn__size_mul((size_t)p->used, sizeof(double) + sizeof(int64_t), &bins) ||
      !tn__size_mul((size_t)s->triangles * (size_t)s->coefficients, sizeof(double), &cosines) ||
      !tn__size_add(bins, cosines, &p->bytes))
    return tn__no_memory(err, "tables of Mfcc", SIZE_MAX);
  p->weights = tn__alloc(p->bytes);
  if (p->weights == NULL) return tn__no_memory(err, "tables of Mfcc", p->bytes);
  p->cosines = p->weights + p->used;
  p->places = (int64_t *)(p->cosines + s->triangles * s->coefficients);
  set_triangles(s, bin_width, p);
  set_cosines(s, p->cosines);
  return TN_OK;
}

static tn_status mfcc_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const mfcc_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 3, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 0, err);
  if (st == TN_OK) st = tn__want_value(ctx, 1, err);
  if (st != TN_OK) return st;
  int64_t rate = tn__operand_int(&ctx->inputs[1], 0);
  if (in->dims[2] < 2 || rate <= 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "Mfcc: slices of %lld frequencies, sample_rate %lld, wanted 2 or more and 1 "
                        "or more",
                        (long long)in->dims[2], (long long)rate);
  st = tn_prepare_output(ctx, 0, (const int64_t[]){ in->dims[0], in->dims[1], s->coefficients }, 3, err);
  if (st != TN_OK || in->count == 0) return st;
  mfcc_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "mfcc", sizeof *p);
  ctx->shape_state = p;
  p->bins = in->dims[2];
  st = make_tables(s, (int32_t)rate, p, err);
  double cost = 20 + 3 * (double)p->used + (double)s->triangles * (12 + 0.3 * (double)s->coefficients);
  size_t bytes = ((size_t)p->used + (size_t)s->triangles + (size_t)s->coefficients) * sizeof(double);
  return st != TN_OK ? st : tn__bands_plan(ctx, in->dims[0] * in->dims[1], cost, bytes, &p->bands, err);
}

/* ---- computing ---- */

typedef struct mfcc_run {
  const mfcc_state *state;
  const mfcc_plan *plan;
  const float *in;
  float *out;
} mfcc_run;

static void add_triangles(const mfcc_state *s, const mfcc_plan *p, const double *magnitudes, double *sums)
{
  memset(sums, 0, (size_t)s->triangles * sizeof *sums);
  for (int64_t i = 0; i < p->used; i++) {
    int64_t place = p->places[i];
    double part = magnitudes[i] * p->weights[i];
    if (place >= 0) sums[place] += part;
    if (place + 1 < s->triangles) sums[place + 1] += magnitudes[i] - part;
  }
}

static void mfcc_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const mfcc_run *r = user;
  const mfcc_state *s = r->state;
  const mfcc_plan *p = r->plan;
  double *magnitudes = (double *)buffers, *sums = magnitudes + p->used, *coefficients = sums + s->triangles;
  for (int64_t slice = begin; slice < end; slice++) {
    const float *in = r->in + slice * p->bins + p->first;
    float *out = r->out + slice * s->coefficients;
    memset(coefficients, 0, (size_t)s->coefficients * sizeof *coefficients);
    for (int64_t i = 0; i < p->used; i++) magnitudes[i] = sqrt((double)in[i]);
    if (!p->beyond) add_triangles(s, p, magnitudes, sums);
    for (int64_t j = 0; j < s->triangles && !p->beyond; j++) {
      const double level = log(sums[j] < 1e-12 ? 1e-12 : sums[j]), *row = p->cosines + j * s->coefficients;
      for (int64_t i = 0; i < s->coefficients; i++) coefficients[i] += row[i] * level;
    }
    for (int64_t i = 0; i < s->coefficients; i++) out[i] = (float)coefficients[i];
  }
}

static tn_status mfcc_compute(tn_kernel_ctx *ctx)
{
  const mfcc_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  mfcc_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  tn__bands_run(ctx, &p->bands, mfcc_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_mfcc(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  int64_t dims[] = { -1, -1, tn__attr_int(tn_infer_operation(ctx), "dct_coefficient_count", 13) };
  tn__infer_get(ctx, 0, &in);
  for (int k = 0; k < 2 && in.rank == 3; k++) dims[k] = in.dims[k];
  if (dims[2] < 1) dims[2] = -1; /* the kernel reports the error */
  return tn_infer_output(ctx, 0, dims, 3, err);
}

/* The rate is a shape operand although it determines no shape: all tables depend on it, and are
 * built once per rate. */
static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "Mfcc",
    .inputs = "spectrogram: float, sample_rate: int32",
    .outputs = "output: float",
    .attrs =
        "upper_frequency_limit: float = 4000; lower_frequency_limit: float = 20; filterbank_channel_count: int = 40; "
        "dct_coefficient_count: int = 13",
    .shape_operands = 1u << 1,
    .infer = infer_mfcc,
    .summary = "Mel-frequency cepstral coefficients of a spectrogram" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "Mfcc",
    .device = "CPU",
    .name = "mfcc_cpu",
    .rank = TN_RANK_C,
    .create = mfcc_create,
    .destroy = mfcc_destroy,
    .prepare = mfcc_prepare,
    .destroy_shape_state = mfcc_destroy_plan,
    .compute = mfcc_compute },
};

TN_OP_FAMILY(audio_mfcc)
