/* SPDX-License-Identifier: Apache-2.0 */
/* DrawBoundingBoxes DrawBoundingBoxesV2: images with the outlines of boxes, which take colours of a table in turn. */
#include <core/base/text.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static const float default_colours[][4] = {
  { 1, 1, 0, 1 }, { 0, 0, 1, 1 }, { 1, 0, 0, 1 }, { 0, 1, 0, 1 }, { 0.5f, 0, 0.5f, 1 },
  { 0.5f, 0.5f, 0, 1 }, { 0.5f, 0, 0, 1 }, { 0, 0, 0.5f, 1 }, { 0, 1, 1, 1 }, { 1, 0, 1, 1 },
};

static tn_status check_colours(const tn_prepare_ctx *ctx, int64_t channels, tn_error *err)
{
  const tn_view *colours = &ctx->inputs[2];
  tn_status st = tn__want_rank(ctx, 2, 2, err);
  if (st != TN_OK || colours->dims[1] >= channels) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: colours have %lld channels, images have %lld",
                      tn_operation_type(ctx->op), (long long)colours->dims[1], (long long)channels);
}

static tn_status draw_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *boxes = &ctx->inputs[1];
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 3, err);
  if (st != TN_OK) return st;
  int64_t channels = in->dims[3], wanted[] = { in->dims[0], -1, 4 };
  if (boxes->dims[0] != wanted[0] || boxes->dims[2] != 4) return tn__shape_error(err, ctx, 1, wanted, 3);
  if (channels != 1 && channels != 3 && channels != 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: images have %lld channels, wanted 1, 3 or 4",
                        tn_operation_type(ctx->op), (long long)channels);
  if (ctx->n_inputs > 2) st = check_colours(ctx, channels, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = 20 + (double)in->count * 0.2 + (double)boxes->count * 50;
  st = tn_prepare_output_like(ctx, 0, 0, err);
  return st != TN_OK ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

/* The image that is drawn on. */
typedef struct canvas {
  char *data;
  int64_t h, w, c;
  size_t element;
  char colour[4 * sizeof(float)]; /* of c elements */
} canvas;

static void set_colour(canvas *to, const float *colour, bool half)
{
  if (half) tn__half_from_floats(colour, (void *)to->colour, to->c);
  else memcpy(to->colour, colour, (size_t)to->c * sizeof *colour);
}

static void paint(canvas *to, int64_t row, int64_t column)
{
  size_t bytes = (size_t)to->c * to->element;
  memcpy(to->data + (size_t)(row * to->w + column) * bytes, to->colour, bytes);
}

/* The row or column of a place in [0, 1] of a line of n; places far outside and NaN end there. */
static int64_t place_of(float at, int64_t n)
{
  float place = at * (float)(n - 1);
  if (!(place > -2)) return -2;
  return place < (float)n ? (int64_t)place : n;
}

static void draw_box(canvas *to, const float *box)
{
  int64_t top = place_of(box[0], to->h), left = place_of(box[1], to->w);
  int64_t bottom = place_of(box[2], to->h), right = place_of(box[3], to->w);
  if (top > bottom || left > right || top >= to->h || bottom < 0 || left >= to->w || right < 0) return;
  int64_t first_row = top > 0 ? top : 0, last_row = bottom < to->h ? bottom : to->h - 1;
  int64_t first = left > 0 ? left : 0, last = right < to->w ? right : to->w - 1;
  for (int64_t x = first; x <= last; x++) {
    if (top >= 0) paint(to, top, x);
    if (bottom < to->h) paint(to, bottom, x);
  }
  for (int64_t y = first_row; y <= last_row; y++) {
    if (left >= 0) paint(to, y, left);
    if (right < to->w) paint(to, y, right);
  }
}

static tn_status draw_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *boxes = ctx->inputs[1], *table = ctx->n_inputs > 2 ? ctx->inputs[2] : NULL;
  bool half = in->dtype == TN_HALF, given = table != NULL && table->count > 0;
  canvas to = { ctx->outputs[0]->data, in->dims[1], in->dims[2], in->dims[3], half ? 2 : sizeof(float), { 0 } };
  int64_t n = boxes->dims[1], colours = given ? table->dims[0] : (int64_t)(sizeof default_colours / 16);
  size_t image = (size_t)(to.h * to.w * to.c) * to.element;
  if (in->data != ctx->outputs[0]->data) memcpy(to.data, in->data, (size_t)in->count * to.element);
  if (in->count == 0) return TN_OK;
  for (int64_t b = 0; b < in->dims[0]; b++, to.data += image)
    for (int64_t k = 0; k < n; k++) {
      int64_t i = k % colours;
      float colour[4] = { 1, 1, 1, 1 };
      if (given) memcpy(colour, (const float *)table->data + i * table->dims[1], (size_t)to.c * sizeof *colour);
      else if (to.c > 1) memcpy(colour, default_colours[i], sizeof colour);
      set_colour(&to, colour, half);
      draw_box(&to, (const float *)boxes->data + (b * n + k) * 4);
    }
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_drawn(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 0, 4, &unused, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 3, &unused, err);
  return st != TN_OK ? st : tn__infer_unchanged(ctx, err);
}

#define DRAW_OP(op, in, text)                                                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T",                      \
    .attrs = "T: {float, half} = float", .infer = infer_drawn, .summary = text }

static const tn_op_def ops[] = {
  DRAW_OP("DrawBoundingBoxes", "images: T, boxes: float", "draws the outlines of boxes on images"),
  DRAW_OP("DrawBoundingBoxesV2", "images: T, boxes: float, colors: float",
          "draws the outlines of boxes on images, in given colours"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("DrawBoundingBoxes", "draw_boxes_cpu", NULL, NULL, draw_prepare, draw_compute),
  TN__KERNEL("DrawBoundingBoxesV2", "draw_boxes_coloured_cpu", NULL, NULL, draw_prepare, draw_compute),
};

TN_OP_FAMILY(draw_boxes)
