/* SPDX-License-Identifier: Apache-2.0 */
/* AdjustContrast AdjustContrastv2: the distance of each pixel from its channel's mean over the image, multiplied. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

enum { PARTS = 16, BLOCK = 512 }; /* parts of an image, which are summed alone; elements that are converted at a time */

typedef struct contrast_state {
  tn__convert load, store; /* to and from float */
  bool limits;             /* inputs 2 and 3 are the least and the greatest result */
} contrast_state;

typedef struct contrast_plan {
  int64_t images, pixels, channels; /* pixels of one image */
} contrast_plan;

static tn_status contrast_create(const tn_operation *op, void **state, tn_error *err)
{
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  contrast_state s = { .limits = tn_operation_n_inputs(op) == 4 };
  *state = NULL;
  if (!tn__convert_find(dtype, TN_FLOAT, false, &s.load) ||
      !tn__convert_find(TN_FLOAT, s.limits ? TN_FLOAT : dtype, false, &s.store))
    return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "contrast", state, err);
}

static void contrast_destroy(void *state) { tn__free(state, sizeof(contrast_state)); }
static void contrast_destroy_plan(void *plan) { tn__free(plan, sizeof(contrast_plan)); }

static tn_status contrast_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  size_t sums = 0;
  tn_status st = tn__want_rank_at_least(ctx, 0, 3, err);
  for (uint32_t i = 1; st == TN_OK && i < ctx->n_inputs; i++) st = tn__want_rank(ctx, i, 0, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK || in->count == 0) return st;
  contrast_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "contrast", sizeof *p);
  ctx->shape_state = p;
  p->channels = in->dims[in->rank - 1];
  p->pixels = in->dims[in->rank - 2] * in->dims[in->rank - 3];
  p->images = in->count / p->channels / p->pixels;
  if (!tn__size_mul((size_t)(p->images * p->channels), PARTS * sizeof(double), &sums))
    return tn__no_memory(err, "sums of channels", SIZE_MAX);
  ctx->scratch_bytes = sums;
  ctx->cost_ns = 20 + (double)in->count * 2;
  return TN_OK;
}

typedef struct contrast_run {
  const contrast_state *state;
  const contrast_plan *plan;
  const char *in;
  char *out;
  double *sums; /* images x parts x channels */
  float factor, least, most;
} contrast_run;

/* Elements [*begin, *end) of the tensor are part `i` of all images' parts. */
static void part_of(const contrast_plan *p, int64_t i, int64_t *begin, int64_t *end)
{
  int64_t image = i / PARTS, k = i % PARTS, whole = p->pixels / PARTS, rest = p->pixels % PARTS;
  int64_t first = k * whole + (k < rest ? k : rest), n = whole + (k < rest);
  *begin = (image * p->pixels + first) * p->channels;
  *end = *begin + n * p->channels;
}

static void sum_parts(void *user, int64_t from, int64_t to)
{
  const contrast_run *r = user;
  int64_t c = r->plan->channels, begin, end;
  float block[BLOCK];
  for (int64_t i = from; i < to; i++) {
    double *sums = r->sums + i * c;
    int64_t channel = 0;
    part_of(r->plan, i, &begin, &end);
    for (int64_t k = 0; k < c; k++) sums[k] = 0;
    for (int64_t at = begin; at < end; at += BLOCK) {
      int64_t n = end - at < BLOCK ? end - at : BLOCK;
      tn__convert_run(&r->state->load, r->in + (size_t)at * r->state->load.from_size, block, n);
      for (int64_t k = 0; k < n; k++, channel = channel + 1 == c ? 0 : channel + 1) sums[channel] += (double)block[k];
    }
  }
}

/* The means of an image's channels take the place of its first part's sums. */
static void find_means(const contrast_run *r)
{
  int64_t c = r->plan->channels;
  for (int64_t image = 0; image < r->plan->images; image++) {
    double *first = r->sums + image * PARTS * c;
    for (int64_t k = 0; k < c; k++) {
      for (int part = 1; part < PARTS; part++) first[k] += first[part * c + k];
      first[k] /= (double)r->plan->pixels;
    }
  }
}

static void adjust(const contrast_run *r, float *block, int64_t n, const double *means, int64_t *channel)
{
  for (int64_t k = 0; k < n; k++) {
    float mean = (float)means[*channel], v = (block[k] - mean) * r->factor + mean;
    if (r->state->limits && v > r->most) v = r->most;
    if (r->state->limits && v < r->least) v = r->least;
    block[k] = v;
    *channel = *channel + 1 == r->plan->channels ? 0 : *channel + 1;
  }
}

static void adjust_parts(void *user, int64_t from, int64_t to)
{
  const contrast_run *r = user;
  int64_t begin, end;
  float block[BLOCK];
  for (int64_t i = from; i < to; i++) {
    int64_t channel = 0;
    part_of(r->plan, i, &begin, &end);
    for (int64_t at = begin; at < end; at += BLOCK) {
      int64_t n = end - at < BLOCK ? end - at : BLOCK;
      tn__convert_run(&r->state->load, r->in + (size_t)at * r->state->load.from_size, block, n);
      adjust(r, block, n, r->sums + i / PARTS * PARTS * r->plan->channels, &channel);
      tn__convert_run(&r->state->store, block, r->out + (size_t)at * r->state->store.to_size, n);
    }
  }
}

static tn_status contrast_compute(tn_kernel_ctx *ctx)
{
  const contrast_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  contrast_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data, ctx->scratch,
                     *(const float *)ctx->inputs[1]->data, 0, 0 };
  if (r.state->limits) {
    r.least = *(const float *)ctx->inputs[2]->data;
    r.most = *(const float *)ctx->inputs[3]->data;
  }
  double cost = (double)p->pixels * (double)p->channels / PARTS;
  tn_parallel_for(ctx, p->images * PARTS, 1, cost, sum_parts, &r);
  if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
  find_means(&r);
  tn_parallel_for(ctx, p->images * PARTS, 1, cost, adjust_parts, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_contrast(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 3, &unused, err);
  for (size_t i = 1; st == TN_OK && i < tn_infer_n_inputs(ctx); i++) st = tn__infer_rank(ctx, i, 0, &unused, err);
  return st != TN_OK ? st : tn__infer_unchanged(ctx, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "AdjustContrast",
    .inputs = "images: T, contrast_factor: float, min_value: float, max_value: float",
    .outputs = "output: float",
    .attrs = "T: {uint8, int8, int16, int32, int64, float, double}",
    .infer = infer_contrast,
    .summary = "multiplies each pixel's distance from its channel's mean, between two limits" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "AdjustContrastv2",
    .inputs = "images: T, contrast_factor: float",
    .outputs = "output: T",
    .attrs = "T: {half, float} = float",
    .infer = infer_contrast,
    .summary = "multiplies each pixel's distance from its channel's mean" },
};

#define CONTRAST_KERNEL(which, title)                                                                  \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = contrast_create, .destroy = contrast_destroy, .prepare = contrast_prepare,               \
    .destroy_shape_state = contrast_destroy_plan, .compute = contrast_compute }

static const tn_kernel_def kernels[] = {
  CONTRAST_KERNEL("AdjustContrast", "adjust_contrast_limited_cpu"),
  CONTRAST_KERNEL("AdjustContrastv2", "adjust_contrast_cpu"),
};

TN_OP_FAMILY(contrast)
