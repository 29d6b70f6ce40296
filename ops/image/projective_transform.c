/* SPDX-License-Identifier: Apache-2.0 */
/* ImageProjectiveTransformV2 ImageProjectiveTransformV3: each pixel of the result is read at the place that a
 * projection gives for it. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/image/resize.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <string.h>

typedef enum fill_mode { REFLECT, WRAP, CONSTANT, NEAREST } fill_mode;

typedef struct project_state {
  tn__convert load, store; /* to and from float */
  int bilinear, mode;
} project_state;

typedef struct project_plan {
  tn__bands bands;
  int64_t h, w, c, oh, ow;
  bool shared; /* one projection for all images */
} project_plan;

static tn_status project_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const kernels[] = { "NEAREST", "BILINEAR" };
  static const char *const modes[] = { "REFLECT", "WRAP", "CONSTANT", "NEAREST" };
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  project_state s = { .mode = CONSTANT };
  *state = NULL;
  tn_status st = tn__attr_choice(op, "interpolation", kernels, 2, &s.bilinear, err);
  if (st == TN_OK) st = tn__attr_choice(op, "fill_mode", modes, 4, &s.mode, err);
  if (st != TN_OK) return st;
  if (!tn__convert_find(dtype, TN_FLOAT, false, &s.load) || !tn__convert_find(TN_FLOAT, dtype, false, &s.store))
    return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "options", state, err);
}

static void project_destroy(void *state) { tn__free(state, sizeof(project_state)); }
static void project_destroy_plan(void *plan) { tn__free(plan, sizeof(project_plan)); }

static tn_status project_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *transforms = &ctx->inputs[1];
  int64_t size[2];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK && ctx->n_inputs > 3) st = tn__want_rank(ctx, 3, 0, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 2, size, err);
  if (st != TN_OK) return st;
  const int64_t wanted[] = { in->dims[0], 8 };
  if (transforms->rank != 2 || transforms->dims[1] != 8 ||
      (transforms->dims[0] != 1 && transforms->dims[0] != in->dims[0]))
    return tn__shape_error(err, ctx, 1, wanted, 2);
  const int64_t dims[] = { in->dims[0], size[0], size[1], in->dims[3] };
  int64_t n;
  st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 4, &n, err);
  if (st != TN_OK || n == 0) return st;
  project_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "projections", sizeof *p);
  ctx->shape_state = p;
  *p = (project_plan){ .h = in->dims[1], .w = in->dims[2], .c = in->dims[3], .oh = size[0], .ow = size[1],
                       .shared = transforms->dims[0] == 1 };
  size_t bytes; /* four pixels of the image and one of the result */
  if (!tn__band_buffer(5 * p->c, sizeof(float), &bytes)) return tn__no_memory(err, "pixels", SIZE_MAX);
  return tn__bands_plan(ctx, dims[0] * size[0], (double)size[1] * (15 + 5 * (double)p->c), bytes, &p->bands, err);
}

typedef struct project_run {
  const project_state *state;
  const project_plan *plan;
  const char *in;
  char *out;
  const float *transforms;
  float fill;
} project_run;

/* ---- places ---- */

static float limit(float at, int64_t n)
{
  float last = (float)(n - 1);
  if (at < 0) return 0;
  return at > last ? last : at;
}

/* [abcd] continued as dcba|abcd|dcba. */
static float reflect(float at, int64_t n)
{
  float size = (float)n, twice = 2 * size;
  if (n <= 1) return 0;
  if (at < 0) {
    if (at < twice) at = twice * truncf(-at / twice) + at;
    at = at < -size ? at + twice : -at - 1;
  } else if (at > size - 1) {
    at -= twice * truncf(at / twice);
    if (at >= size) at = twice - at - 1;
  }
  return limit(at, n);
}

/* [abcd] continued as abcd|abcd|abcd. */
static float wrap(float at, int64_t n)
{
  float size = (float)n;
  if (n <= 1) return 0;
  if (at < 0) at += size * (truncf(-at / (size - 1)) + 1);
  else if (at > size - 1) at -= size * truncf(at / (size - 1));
  return limit(at, n);
}

static float place_of(int mode, float at, int64_t n)
{
  switch (mode) {
  case REFLECT: return reflect(at, n);
  case WRAP: return wrap(at, n);
  case NEAREST: return limit(at, n);
  default: return at;
  }
}

/* The pixel at a whole place; NULL outside of the image, and for NaN. */
static const char *pixel_at(const project_run *r, const char *image, float y, float x)
{
  const project_plan *p = r->plan;
  if (!(y >= 0 && x >= 0 && y < (float)p->h && x < (float)p->w)) return NULL;
  return image + (size_t)(((int64_t)y * p->w + (int64_t)x) * p->c) * r->state->load.from_size;
}

/* ---- pixels ---- */

static void fill_pixel(const project_run *r, float *buffer, char *to)
{
  for (int64_t k = 0; k < r->plan->c; k++) buffer[k] = r->fill;
  tn__convert_run(&r->state->store, buffer, to, r->plan->c);
}

/* A pixel as floats; the fill value outside of the image. */
static void load_pixel(const project_run *r, const char *from, float *to)
{
  if (from != NULL) tn__convert_run(&r->state->load, from, to, r->plan->c);
  else
    for (int64_t k = 0; k < r->plan->c; k++) to[k] = r->fill;
}

static void mix_pixel(const project_run *r, const char *image, float y, float x, float *buffer, char *to)
{
  int64_t c = r->plan->c;
  float y0 = floorf(y), x0 = floorf(x), y1 = y0 + 1, x1 = x0 + 1;
  float *a = buffer, *b = a + c, *d = b + c, *e = d + c, *mixed = e + c;
  load_pixel(r, pixel_at(r, image, y0, x0), a);
  load_pixel(r, pixel_at(r, image, y0, x1), b);
  load_pixel(r, pixel_at(r, image, y1, x0), d);
  load_pixel(r, pixel_at(r, image, y1, x1), e);
  for (int64_t k = 0; k < c; k++) {
    float upper = (x1 - x) * a[k] + (x - x0) * b[k], lower = (x1 - x) * d[k] + (x - x0) * e[k];
    mixed[k] = (y1 - y) * upper + (y - y0) * lower;
  }
  tn__convert_run(&r->state->store, mixed, to, c);
}

static void project_pixel(const project_run *r, const char *image, const float *t, int64_t row, int64_t column,
                          float *buffer, char *to)
{
  const project_plan *p = r->plan;
  float y = (float)row, x = (float)column, scale = t[6] * x + t[7] * y + 1;
  if (scale == 0) {
    fill_pixel(r, buffer, to);
    return;
  }
  float at_x = place_of(r->state->mode, (t[0] * x + t[1] * y + t[2]) / scale, p->w);
  float at_y = place_of(r->state->mode, (t[3] * x + t[4] * y + t[5]) / scale, p->h);
  if (r->state->bilinear) {
    mix_pixel(r, image, at_y, at_x, buffer, to);
    return;
  }
  const char *from = pixel_at(r, image, roundf(at_y), roundf(at_x));
  if (from == NULL) fill_pixel(r, buffer, to);
  else memcpy(to, from, (size_t)p->c * r->state->load.from_size);
}

static void project_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const project_run *r = user;
  const project_plan *p = r->plan;
  size_t pixel = (size_t)p->c * r->state->load.from_size;
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / p->oh;
    const char *in = r->in + (size_t)(image * p->h * p->w) * pixel;
    const float *t = r->transforms + (p->shared ? 0 : 8 * image);
    char *to = r->out + (size_t)(line * p->ow) * pixel;
    for (int64_t x = 0; x < p->ow; x++, to += pixel) project_pixel(r, in, t, line % p->oh, x, (float *)buffers, to);
  }
}

static tn_status project_compute(tn_kernel_ctx *ctx)
{
  const project_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  project_run r = { ctx->state, p, ctx->inputs[0]->data, ctx->outputs[0]->data, ctx->inputs[1]->data, 0 };
  if (ctx->n_inputs > 3) r.fill = *(const float *)ctx->inputs[3]->data;
  tn__bands_run(ctx, &p->bands, project_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_projected(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  const int64_t *size;
  tn_status st = tn__infer_rank(ctx, 0, 4, &in, err);
  bool known = tn_infer_input_ints(ctx, 2, &size) == 2;
  for (int k = 0; st == TN_OK && k < 2; k++) in.dims[k + 1] = known && size[k] > 0 ? size[k] : -1;
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &in, err);
}

#define OP(op, also)                                                                                        \
  { .struct_size = TN_OP_DEF_SIZE, .name = op,                                                              \
    .inputs = "images: dtype, transforms: float, output_shape: int32" also,                                 \
    .outputs = "transformed_images: dtype",                                                                 \
    .attrs = "dtype: {uint8, int32, int64, half, bfloat16, float, double}; interpolation: string; "         \
             "fill_mode: string = 'CONSTANT'",                                                              \
    .shape_operands = 1u << 2, .infer = infer_projected, .summary = "images seen through a projection" }
#define KERNEL(which, title)                                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,     \
    .create = project_create, .destroy = project_destroy, .prepare = project_prepare,                      \
    .destroy_shape_state = project_destroy_plan, .compute = project_compute }

static const tn_op_def ops[] = {
  OP("ImageProjectiveTransformV2", ""),
  OP("ImageProjectiveTransformV3", ", fill_value: float"),
};

static const tn_kernel_def kernels[] = {
  KERNEL("ImageProjectiveTransformV2", "project_image_cpu"),
  KERNEL("ImageProjectiveTransformV3", "project_image_filled_cpu"),
};

TN_OP_FAMILY(projective_transform)
