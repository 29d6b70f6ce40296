/* SPDX-License-Identifier: Apache-2.0 */
/* CropAndResize: crops boxes out of images and resizes all of them to one size. */
#include <core/base/alloc.h>
#include <ops/image/resize.h>
#include <ops/image/resize_boxes.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>
#include <string.h>

typedef struct crop_state {
  tn__convert load; /* to float */
  float outside;
  int nearest;
} crop_state;

typedef struct crop_plan {
  tn__bands bands;
  int64_t h, w, c, ch, cw;
  size_t line_bytes, places_bytes; /* of the buffers: a resized row; column positions */
} crop_plan;

static tn_status crop_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const methods[] = { "bilinear", "nearest" };
  crop_state s = { .outside = tn__attr_float(op, "extrapolation_value", 0) };
  *state = NULL;
  tn_status st = tn__attr_choice(op, "method", methods, 2, &s.nearest, err);
  if (st != TN_OK) return st;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  if (!tn__convert_find(dtype, TN_FLOAT, false, &s.load)) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "crops", state, err);
}

static void crop_destroy(void *state) { tn__free(state, sizeof(crop_state)); }
static void crop_destroy_plan(void *plan) { tn__free(plan, sizeof(crop_plan)); }

/* Scratch per band: two resized rows, the column positions, and a row of the image as floats. */
static tn_status plan_bands(tn_prepare_ctx *ctx, crop_plan *p, int64_t lines, tn_error *err)
{
  const crop_state *s = ctx->state;
  size_t wide = 0, all;
  if (!tn__band_buffer(p->cw * p->c, sizeof(float), &p->line_bytes) ||
      !tn__band_buffer(p->cw, 3 * sizeof(int32_t), &p->places_bytes) ||
      (!s->load.same && !tn__band_buffer(p->w * p->c, sizeof(float), &wide)) || !tn__size_mul(p->line_bytes, 2, &all) ||
      !tn__size_add(all, p->places_bytes, &all) || !tn__size_add(all, wide, &all))
    return tn__no_memory(err, "buffers of rows", SIZE_MAX);
  double cost = 30 + (double)p->cw * (double)p->c * 1.2 + (double)p->cw;
  return tn__bands_plan(ctx, lines, cost, all, &p->bands, err);
}

static tn_status crop_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t boxes = 0, size[2], n;
  tn_status st = tn__want_images(ctx, 0, false, err);
  if (st == TN_OK) st = tn__want_boxes(ctx, 1, &boxes, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 3, size, err);
  if (st != TN_OK) return st;
  int64_t dims[] = { boxes, size[0], size[1], in->dims[3] };
  st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 4, &n, err);
  if (st != TN_OK || n == 0) return st;
  crop_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "crops", sizeof *p);
  *p = (crop_plan){ .h = in->dims[1], .w = in->dims[2], .c = in->dims[3], .ch = size[0], .cw = size[1] };
  ctx->shape_state = p;
  return plan_bands(ctx, p, boxes * p->ch, err);
}

/* ---- computing ---- */

typedef struct crop_run {
  const crop_state *state;
  const crop_plan *plan;
  const char *in, *end;
  const float *boxes;
  const int32_t *index;
  float *out;
} crop_run;

/* The current box. Columns [first, first + places.n) of the crop are inside the image, in its
 * columns [base, base + width). */
typedef struct crop_box {
  int64_t box, first, base, width;
  tn__lerp places;
  tn__crop_line rows;
  float *buffer[2], *wide;
  const float *data[2];
  int64_t row[2];
} crop_box;

static void set_places(const crop_run *r, crop_box *b)
{
  const crop_plan *p = r->plan;
  const float *box = r->boxes + 4 * b->box;
  tn__crop_line columns = tn__crop_line_of(box[1], box[3], p->w, p->cw);
  tn__lerp *l = &b->places;
  int64_t least = p->w, most = -1, i = 0;
  b->rows = tn__crop_line_of(box[0], box[2], p->h, p->ch);
  while (i < p->cw && !tn__crop_inside(&columns, tn__crop_place(&columns, i))) i++;
  b->first = i;
  for (l->n = 0; i < p->cw; i++, l->n++) { /* the columns inside are contiguous */
    float place = tn__crop_place(&columns, i);
    if (!tn__crop_inside(&columns, place)) break;
    float lower = r->state->nearest ? roundf(place) : floorf(place);
    l->lower[l->n] = (int32_t)tn__crop_pixel(&columns, lower);
    l->upper[l->n] = (int32_t)tn__crop_pixel(&columns, r->state->nearest ? lower : ceilf(place));
    l->lerp[l->n] = place - lower;
    if (l->lower[l->n] < least) least = l->lower[l->n];
    if (l->upper[l->n] > most) most = l->upper[l->n];
  }
  b->base = least;
  b->width = most + 1 - least;
  for (i = 0; i < l->n; i++) {
    l->lower[i] -= (int32_t)least;
    l->upper[i] -= (int32_t)least;
  }
  b->row[0] = b->row[1] = -1;
}

/* The part of an image row that the box needs, as floats. *all: as in tn__lerp_row. */
static const float *row_part(const crop_run *r, const crop_box *b, int64_t row, bool *all)
{
  const crop_plan *p = r->plan;
  size_t element = r->state->load.from_size;
  int64_t at = ((r->index[b->box] * p->h + row) * p->w + b->base) * p->c, n = b->width * p->c;
  const char *from = r->in + (size_t)at * element;
  *all = true;
  if (!r->state->load.same) {
    tn__convert_run(&r->state->load, from, b->wide, n);
    return b->wide;
  }
  *all = from + (size_t)n * element < r->end;
  return (const float *)from;
}

static int keep_row(const crop_run *r, crop_box *b, int64_t row, int64_t keep)
{
  bool all;
  for (int k = 0; k < 2; k++)
    if (b->row[k] == row) return k;
  int k = b->row[0] == keep;
  const float *from = row_part(r, b, row, &all);
  tn__lerp_row(&b->places, from, r->plan->c, all, b->buffer[k]);
  b->row[k] = row;
  return k;
}

static void fill(float *out, float value, int64_t n)
{
  for (int64_t i = 0; i < n; i++) out[i] = value;
}

static void crop_line(const crop_run *r, crop_box *b, int64_t y, float *out)
{
  const crop_plan *p = r->plan;
  const tn__lerp *l = &b->places;
  int64_t c = p->c;
  float place = tn__crop_place(&b->rows, y), *to = out + b->first * c;
  if (l->n == 0 || !tn__crop_inside(&b->rows, place)) {
    fill(out, r->state->outside, p->cw * c);
    return;
  }
  fill(out, r->state->outside, b->first * c);
  fill(to + l->n * c, r->state->outside, (p->cw - b->first - l->n) * c);
  if (r->state->nearest) {
    bool all;
    const float *from = row_part(r, b, tn__crop_pixel(&b->rows, roundf(place)), &all);
    for (int64_t i = 0; i < l->n; i++) memcpy(to + i * c, from + l->lower[i] * c, (size_t)c * sizeof *to);
    return;
  }
  int64_t lower = tn__crop_pixel(&b->rows, place), upper = tn__crop_pixel(&b->rows, ceilf(place));
  int i = keep_row(r, b, lower, upper), j = keep_row(r, b, upper, lower);
  tn__lerp_rows(b->buffer[i], b->buffer[j], place - floorf(place), l->n * c, to);
}

static void crop_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const crop_run *r = user;
  const crop_plan *p = r->plan;
  crop_box b = { .box = -1, .buffer = { (float *)buffers, (float *)(buffers + p->line_bytes) } };
  char *places = buffers + 2 * p->line_bytes;
  b.wide = (float *)(places + p->places_bytes);
  b.places.lower = (int32_t *)places;
  b.places.upper = b.places.lower + p->cw;
  b.places.lerp = (float *)(b.places.upper + p->cw);
  for (int64_t line = begin; line < end; line++) {
    if (line / p->ch != b.box) {
      b.box = line / p->ch;
      set_places(r, &b);
    }
    crop_line(r, &b, line % p->ch, r->out + line * p->cw * p->c);
  }
}

static tn_status crop_compute(tn_kernel_ctx *ctx)
{
  const crop_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0];
  tn_status st = tn__check_boxes(ctx, 1, in->dims[0]);
  if (p == NULL || st != TN_OK) return st;
  crop_run r = { ctx->state, p, in->data, NULL, ctx->inputs[1]->data, ctx->inputs[2]->data, ctx->outputs[0]->data };
  r.end = r.in + (size_t)in->count * r.state->load.from_size;
  tn__bands_run(ctx, &p->bands, crop_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_crops(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape image, boxes;
  const int64_t *size;
  int64_t dims[4] = { -1, -1, -1, -1 };
  tn__infer_get(ctx, 0, &image);
  tn__infer_get(ctx, 1, &boxes);
  if (boxes.rank == 2) dims[0] = boxes.dims[0];
  if (image.rank == 4) dims[3] = image.dims[3];
  bool known = tn_infer_input_ints(ctx, 3, &size) == 2;
  for (int k = 0; k < 2 && known; k++) dims[k + 1] = size[k] > 0 ? size[k] : -1;
  return tn_infer_output(ctx, 0, dims, 4, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CropAndResize",
    .inputs = "image: T, boxes: float, box_ind: int32, crop_size: int32",
    .outputs = "crops: float",
    .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear', 'nearest'} = "
             "'bilinear'; extrapolation_value: float = 0",
    .shape_operands = 1u << 3,
    .infer = infer_crops,
    .summary = "crops boxes from images and resizes them to one size" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "CropAndResize",
    .device = "CPU",
    .name = "crop_and_resize_cpu",
    .rank = TN_RANK_C,
    .create = crop_create,
    .destroy = crop_destroy,
    .prepare = crop_prepare,
    .destroy_shape_state = crop_destroy_plan,
    .compute = crop_compute },
};

TN_OP_FAMILY(crop_and_resize)
