/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeBicubic, ResizeArea and ScaleAndTranslate, their gradients and that of ResizeBilinear. Each
 * pixel is a sum of others, each with the product of a row weight and a column weight. A row of the
 * result first sums rows of the image, then columns of that sum. */
#include <core/base/alloc.h>
#include <ops/image/resize.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

typedef struct kind {
  const char *op;
  /* NULL: inputs 2 and 3 are a scale and a translation, each for rows and columns. */
  tn_status (*taps)(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err);
  bool gradient; /* the taps are those from images to the forward result, used transposed */
} kind;

static const kind kinds[] = {
  { "ResizeBicubic", tn__resize_taps_bicubic, false },
  { "ResizeArea", tn__resize_taps_area, false },
  { "ResizeBilinearGrad", tn__resize_taps_bilinear, true },
  { "ResizeBicubicGrad", tn__resize_taps_bicubic, true },
  { "ScaleAndTranslate", NULL, false },
  { "ScaleAndTranslateGrad", NULL, true },
};

typedef struct weighted_state {
  const kind *kind;
  tn__resize_mode mode;
  tn__resize_sampler sampler;
  tn__convert load, store; /* to float, from float */
} weighted_state;

typedef struct weighted_plan {
  tn__resize_taps rows, columns;
  tn__bands bands;
  tn__resize_sizes size;
  size_t sum_bytes, load_bytes; /* of the first two buffers; the third is a row of the result */
} weighted_plan;

static tn_status weighted_create(const tn_operation *op, void **state, tn_error *err)
{
  weighted_state s = { 0 };
  *state = NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].op, tn_operation_type(op)) == 0) s.kind = &kinds[i];
  tn_status st = tn__resize_mode_read(op, false, &s.mode, err);
  if (st == TN_OK && s.kind->taps == NULL) st = tn__resize_sampler_read(op, &s.sampler, err);
  if (st != TN_OK) return st;
  tn_dtype in = tn_operation_input_dtype(op, 0), out = tn_operation_output_dtype(op, 0);
  if (!tn__convert_find(in, TN_FLOAT, false, &s.load)) return tn__no_kernel(err, op, in);
  if (!tn__convert_find(TN_FLOAT, out, false, &s.store)) return tn__no_kernel(err, op, out);
  return tn__keep_state(&s, sizeof s, "resizing", state, err);
}

static void weighted_destroy(void *state) { tn__free(state, sizeof(weighted_state)); }

static void weighted_destroy_plan(void *shape_state)
{
  weighted_plan *p = shape_state;
  tn__resize_taps_fini(&p->rows);
  tn__resize_taps_fini(&p->columns);
  tn__free(p, sizeof *p);
}

/* Element k (0: rows, 1: columns) of a scale or translation. */
static float number(const tn_prepare_ctx *ctx, uint32_t i, int k) { return ((const float *)ctx->inputs[i].data)[k]; }

static tn_status forward_taps(const tn_prepare_ctx *ctx, int k, tn__resize_taps *taps, int64_t in, int64_t out,
                              tn_error *err)
{
  const weighted_state *s = ctx->state;
  if (s->kind->taps != NULL) return s->kind->taps(taps, s->mode, in, out, err);
  return tn__resize_taps_sampled(taps, &s->sampler, number(ctx, 2, k), number(ctx, 3, k), in, out, err);
}

static tn_status find_taps(const tn_prepare_ctx *ctx, int k, tn__resize_taps *taps, int64_t in, int64_t out,
                           tn_error *err)
{
  const weighted_state *s = ctx->state;
  if (!s->kind->gradient) return forward_taps(ctx, k, taps, in, out, err);
  tn__resize_taps forward = { 0 };
  tn_status st = forward_taps(ctx, k, &forward, out, in, err);
  if (st == TN_OK) st = tn__resize_taps_transpose(&forward, taps, err);
  tn__resize_taps_fini(&forward);
  return st;
}

static tn_status want_scales(const tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_vector(ctx, 2, 2, err);
  if (st == TN_OK) st = tn__want_vector(ctx, 3, 2, err);
  if (st != TN_OK || (number(ctx, 2, 0) > 0 && number(ctx, 2, 1) > 0)) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: scales are %g and %g, wanted above 0", tn_operation_type(ctx->op),
                      (double)number(ctx, 2, 0), (double)number(ctx, 2, 1));
}

static tn_status plan_fill(tn_prepare_ctx *ctx, weighted_plan *p, tn_error *err)
{
  const weighted_state *s = ctx->state;
  size_t out_bytes = 0, all = 0;
  tn_status st = find_taps(ctx, 0, &p->rows, p->size.h, p->size.oh, err);
  if (st == TN_OK) st = find_taps(ctx, 1, &p->columns, p->size.w, p->size.ow, err);
  if (st != TN_OK) return st;
  bool fits = tn__band_buffer(p->size.w * p->size.c, sizeof(float), &p->sum_bytes);
  if (fits && !s->load.same) fits = tn__band_buffer(p->size.w * p->size.c, sizeof(float), &p->load_bytes);
  if (fits && !s->store.same) fits = tn__band_buffer(p->size.ow * p->size.c, sizeof(float), &out_bytes);
  if (!fits || !tn__size_add(p->sum_bytes, p->load_bytes, &all) || !tn__size_add(all, out_bytes, &all))
    return tn__no_memory(err, "buffers of rows", SIZE_MAX);
  double rows = (double)p->rows.firsts[p->size.oh] / (double)p->size.oh, c = (double)p->size.c;
  double cost = rows * (double)p->size.w * c * 0.15 + (double)p->columns.firsts[p->size.ow] * (1 + 0.5 * c);
  return tn__bands_plan(ctx, p->size.lines, 20 + cost, all, &p->bands, err);
}

/* Rows and columns of the result: the given size, or for a gradient those of the original images. */
static tn_status sizes_of(const tn_prepare_ctx *ctx, bool gradient, int64_t size[2], tn_error *err)
{
  if (!gradient) return tn__want_image_size(ctx, 1, size, err);
  tn_status st = tn__want_images(ctx, 1, false, err);
  for (int k = 0; k < 2 && st == TN_OK; k++) size[k] = ctx->inputs[1].dims[k + 1];
  return st;
}

static tn_status weighted_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const weighted_state *s = ctx->state;
  int64_t size[2] = { 0 };
  tn__resize_sizes sizes;
  tn_status st = tn__want_images(ctx, 0, !s->kind->gradient, err);
  if (st == TN_OK) st = sizes_of(ctx, s->kind->gradient, size, err);
  if (st == TN_OK && s->kind->taps == NULL) st = want_scales(ctx, err);
  if (st == TN_OK) st = tn__prepare_resized(ctx, size, &sizes, err);
  if (st != TN_OK || sizes.elements == 0) return st;
  weighted_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "resizing", sizeof *p);
  ctx->shape_state = p;
  p->size = sizes;
  return plan_fill(ctx, p, err);
}

/* ---- computing ---- */

typedef struct weighted_run {
  const weighted_state *state;
  const weighted_plan *plan;
  const char *in;
  char *out;
} weighted_run;

/* Sums in `sum` the rows that line y of the result consists of. If rows are unchanged, returns the
 * row itself, as floats. */
static const float *sum_rows(const weighted_run *r, const char *image, int64_t y, float *sum, float *wide)
{
  const weighted_plan *p = r->plan;
  int64_t n = p->size.w * p->size.c, first = p->rows.firsts[y], end = p->rows.firsts[y + 1];
  tn__poll poll = tn__poll_here();
  if (first == end) memset(sum, 0, (size_t)n * sizeof *sum);
  for (int64_t k = first; k < end && !tn__poll_over(&poll, n); k++) {
    const char *from = image + (size_t)(p->rows.indices[k] * n) * r->state->load.from_size;
    const float *row = (const float *)from;
    if (!r->state->load.same) {
      tn__convert_run(&r->state->load, from, wide, n);
      row = wide;
    }
    if (p->rows.same) return row;
    tn__weigh(row, p->rows.weights[k], n, k > first, sum);
  }
  return sum;
}

static void weighted_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const weighted_run *r = user;
  const weighted_plan *p = r->plan;
  float *sum = (float *)buffers, *wide = (float *)(buffers + p->sum_bytes);
  float *line_buffer = (float *)(buffers + p->sum_bytes + p->load_bytes);
  size_t image = (size_t)(p->size.h * p->size.w * p->size.c) * r->state->load.from_size;
  int64_t n = p->size.ow * p->size.c;
  for (int64_t line = begin; line < end; line++) {
    const float *rows = sum_rows(r, r->in + (size_t)(line / p->size.oh) * image, line % p->size.oh, sum, wide);
    char *out = r->out + (size_t)(line * n) * r->state->store.to_size;
    float *to = r->state->store.same ? (float *)out : line_buffer;
    tn__resize_taps_row(&p->columns, rows, p->size.c, to);
    if (!r->state->store.same) tn__convert_run(&r->state->store, to, out, n);
  }
}

static tn_status weighted_compute(tn_kernel_ctx *ctx)
{
  const weighted_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  weighted_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  tn__bands_run(ctx, &p->bands, weighted_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

#define IMAGE_TYPES "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}; "
#define ALIGN "align_corners: bool = false"
#define BOTH ALIGN "; half_pixel_centers: bool = false"
#define SAMPLED "kernel_type: string = 'lanczos3'; antialias: bool = true"
#define RESIZE_OP(op, attributes, text)                                                                                \
  {                                                                                                                    \
    .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "images: T, size: int32", .outputs = "resized_images: float", \
    .attrs = IMAGE_TYPES attributes, .shape_operands = 1u << 1, .infer = tn__infer_resized, .summary = text            \
  }
#define GRADIENT_OP(op, types, text)                                                                                \
  {                                                                                                                 \
    .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "grads: float, original_image: T", .outputs = "output: T", \
    .attrs = "T: " types "; " BOTH, .infer = tn__infer_resized_like, .summary = text                                \
  }

static const tn_op_def ops[] = {
  RESIZE_OP("ResizeBicubic", BOTH, "resizes images by bicubic interpolation"),
  RESIZE_OP("ResizeArea", ALIGN, "resizes images by area averaging"),
  GRADIENT_OP("ResizeBilinearGrad", "{float, bfloat16, half, double}", "gradient of ResizeBilinear"),
  GRADIENT_OP("ResizeBicubicGrad", "{float, double}", "gradient of ResizeBicubic"),
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "ScaleAndTranslate",
    .inputs = "images: T, size: int32, scale: float, translation: float",
    .outputs = "resized_images: float",
    .attrs = IMAGE_TYPES SAMPLED,
    .shape_operands = 1u << 1 | 1u << 2 | 1u << 3,
    .infer = tn__infer_resized,
    .summary = "scales and translates images" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "ScaleAndTranslateGrad",
    .inputs = "grads: T, original_image: T, scale: float, translation: float",
    .outputs = "output: T",
    .attrs = "T: {float}; " SAMPLED,
    .shape_operands = 1u << 2 | 1u << 3,
    .infer = tn__infer_resized_like,
    .summary = "gradient of ScaleAndTranslate" },
};

#define WEIGHTED_KERNEL(which, title)                                                                  \
  {                                                                                                    \
    .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .create = weighted_create, .destroy = weighted_destroy, .prepare = weighted_prepare,               \
    .destroy_shape_state = weighted_destroy_plan, .compute = weighted_compute                          \
  }

static const tn_kernel_def kernels[] = {
  WEIGHTED_KERNEL("ResizeBicubic", "resize_bicubic_cpu"),
  WEIGHTED_KERNEL("ResizeArea", "resize_area_cpu"),
  WEIGHTED_KERNEL("ResizeBilinearGrad", "resize_bilinear_grad_cpu"),
  WEIGHTED_KERNEL("ResizeBicubicGrad", "resize_bicubic_grad_cpu"),
  WEIGHTED_KERNEL("ScaleAndTranslate", "scale_and_translate_cpu"),
  WEIGHTED_KERNEL("ScaleAndTranslateGrad", "scale_and_translate_grad_cpu"),
};

TN_OP_FAMILY(resize_weighted)
