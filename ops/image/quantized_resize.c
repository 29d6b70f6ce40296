/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizedResizeBilinear: images of quantised values, interpolated in fixed point. */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/image/resize.h>
#include <ops/kernel/family.h>
#include <string.h>

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  tn__resize_mode mode;
  *state = NULL;
  tn_status st = tn__resize_mode_read(op, true, &mode, err);
  return st == TN_OK ? tn__keep_state(&mode, sizeof mode, "QuantizedResizeBilinear", state, err) : st;
}

static void destroy(void *state) { tn__free(state, sizeof(tn__resize_mode)); }

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_resized(ctx, err);
  for (size_t i = 1; i <= 2 && st == TN_OK; i++) st = tn_infer_output(ctx, i, NULL, 0, err);
  return st;
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t size[2];
  tn__resize_sizes sizes;
  tn_status st = tn__want_images(ctx, 0, false, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 1, size, err);
  for (uint32_t i = 2; i <= 3 && st == TN_OK; i++) st = tn__want_rank(ctx, i, 0, err);
  if (st == TN_OK) st = tn__prepare_resized(ctx, size, &sizes, err);
  for (uint32_t i = 1; i <= 2 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, NULL, 0, err);
  return st;
}

/* Between which two pixels of a line a new pixel is, and how far after the first. */
typedef struct place {
  int64_t lower, upper;
  float after;
} place;

static place place_of(tn__resize_mode mode, float scale, int64_t i, int64_t in)
{
  float at = tn__resize_place(mode, scale, i), first = floorf(at);
  place p = { (int64_t)first, (int64_t)ceilf(at), at - first };
  if (p.lower < 0) p.lower = 0;
  if (p.upper > in - 1) p.upper = in - 1;
  if (p.lower > p.upper) p.lower = p.upper;
  return p;
}

typedef struct run {
  const tn_view *in, *out;
  tn__resize_mode mode;
  float rows, columns; /* scales */
} run;

/* Fixed point with `bits` bits after the point; divisions truncate. Large differences of qint32 may wrap. */
static inline int32_t between(int64_t a, int64_t b, int64_t c, int64_t d, int64_t x, int64_t y, int bits)
{
  const int64_t one = (int64_t)1 << bits;
  uint64_t top = (uint64_t)a * (uint64_t)one + (uint64_t)(b - a) * (uint64_t)x;
  uint64_t bottom = (uint64_t)c * (uint64_t)one + (uint64_t)(d - c) * (uint64_t)x;
  uint64_t v = top + (uint64_t)((int64_t)(bottom - top) / one) * (uint64_t)y;
  return (int32_t)((int64_t)(v + (uint64_t)(one / 2)) / one);
}

/* The four pixels around a new one, and its weights. */
#define PIXELS(T)                                                                 \
  const T *a = (const T *)r->in->data + top * channels + left, *b = a + right;    \
  const T *c = (const T *)r->in->data + bottom * channels + left, *d = c + right; \
  T *out = (T *)r->out->data + at * channels

static void pixel(const run *r, int64_t at, place y, place x)
{
  int64_t channels = r->in->dims[3], image = at / (r->out->dims[1] * r->out->dims[2]) * r->in->dims[1];
  int64_t top = (image + y.lower) * r->in->dims[2], bottom = (image + y.upper) * r->in->dims[2];
  int64_t left = x.lower * channels, right = (x.upper - x.lower) * channels;
  if (r->in->dtype == TN_QUINT8) {
    PIXELS(uint8_t);
    int64_t h = (int64_t)(x.after * 128), v = (int64_t)(y.after * 128);
    for (int64_t k = 0; k < channels; k++) out[k] = (uint8_t)between(a[k], b[k], c[k], d[k], h, v, 7);
  } else if (r->in->dtype == TN_QINT32) {
    PIXELS(int32_t);
    int64_t h = (int64_t)(x.after * 0x1p30f), v = (int64_t)(y.after * 0x1p30f);
    for (int64_t k = 0; k < channels; k++) out[k] = between(a[k], b[k], c[k], d[k], h, v, 30);
  } else {
    PIXELS(float);
    for (int64_t k = 0; k < channels; k++) {
      float upper = a[k] + (b[k] - a[k]) * x.after, lower = c[k] + (d[k] - c[k]) * x.after;
      out[k] = upper + (lower - upper) * y.after;
    }
  }
}

static void rows(void *user, int64_t begin, int64_t end)
{
  const run *r = user;
  int64_t height = r->out->dims[1], width = r->out->dims[2];
  for (int64_t row = begin; row < end; row++) {
    place y = place_of(r->mode, r->rows, row % height, r->in->dims[1]);
    for (int64_t i = 0; i < width; i++)
      pixel(r, row * width + i, y, place_of(r->mode, r->columns, i, r->in->dims[2]));
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[0];
  tn__resize_mode mode = *(const tn__resize_mode *)ctx->state;
  for (int i = 1; i <= 2; i++) *(float *)ctx->outputs[i]->data = *(const float *)ctx->inputs[i + 1]->data;
  if (out->count == 0) return TN_OK;
  if (in->dims[1] == out->dims[1] && in->dims[2] == out->dims[2]) {
    memcpy(out->data, in->data, (size_t)in->count * tn_dtype_size(in->dtype));
    return TN_OK;
  }
  tn__resize_mode corners = { mode.align_corners, false };
  run r = { in, out, mode, tn__resize_scale(corners, in->dims[1], out->dims[1]),
            tn__resize_scale(corners, in->dims[2], out->dims[2]) };
  double cost = (double)out->dims[2] * (10 + 3 * (double)out->dims[3]);
  tn_parallel_for(ctx, out->dims[0] * out->dims[1], (int64_t)(20000 / cost) + 1, cost, rows, &r);
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "QuantizedResizeBilinear",
    .inputs = "images: T, size: int32, min: float, max: float",
    .outputs = "resized_images: T, out_min: float, out_max: float",
    .attrs = "T: {quint8, qint32, float}; align_corners: bool = false; half_pixel_centers: bool = false",
    .shape_operands = 1u << 1, .infer = infer, .summary = "images of quantised values in another size" },
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("QuantizedResizeBilinear", "quantized_resize_bilinear_cpu", create, destroy, prepare, compute),
};

TN_OP_FAMILY(quantized_resize)
