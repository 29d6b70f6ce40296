/* SPDX-License-Identifier: Apache-2.0 */
/* CropAndResizeGradImage and CropAndResizeGradBoxes. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/image/resize.h>
#include <ops/image/resize_boxes.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <ops/kernel/poll.h>
#include <string.h>

/* The position of a pixel of a crop along one axis: `lerp` of the way between image pixels low and
 * high. */
typedef struct corner {
  int64_t low, high;
  float lerp;
} corner;

static bool find_corner(const tn__crop_line *l, int64_t i, bool nearest, corner *c)
{
  float place = tn__crop_place(l, i);
  if (!tn__crop_inside(l, place)) return false;
  c->low = tn__crop_pixel(l, nearest ? roundf(place) : place);
  c->high = nearest ? c->low : tn__crop_pixel(l, ceilf(place));
  c->lerp = nearest ? 0 : place - floorf(place);
  return true;
}

/* ---- to the image ---- */

/* Each image is summed by one thread, over all of its boxes in order, so the order of additions is
 * fixed. */
typedef struct image_run {
  const float *grads, *boxes;
  const int32_t *index;
  void *sums; /* double if the images are, else float */
  int64_t n, gh, gw, h, w, c;
  int nearest;
} image_run;

#define ADD_BOX(name, T)                                                                                              \
  static void add_pixel_##name(T *restrict row, const corner *x, float weight, const float *restrict grad, int64_t c) \
  {                                                                                                                   \
    for (int64_t j = 0; j < c; j++) row[x->low * c + j] += (T)((1 - x->lerp) * (weight * grad[j]));                   \
    if (x->high != x->low || x->lerp != 0)                                                                            \
      for (int64_t j = 0; j < c; j++) row[x->high * c + j] += (T)(x->lerp * (weight * grad[j]));                      \
  }                                                                                                                   \
  static void add_box_##name(const image_run *r, int64_t box, T *image)                                               \
  {                                                                                                                   \
    const float *at = r->boxes + 4 * box;                                                                             \
    const tn__crop_line rows = tn__crop_line_of(at[0], at[2], r->h, r->gh);                                           \
    const tn__crop_line columns = tn__crop_line_of(at[1], at[3], r->w, r->gw);                                        \
    tn__poll poll = tn__poll_here();                                                                                  \
    for (int64_t i = 0; i < r->gh && !tn__poll_over(&poll, r->gw * (10 + 4 * r->c)); i++) {                           \
      corner y, x;                                                                                                    \
      if (!find_corner(&rows, i, r->nearest, &y)) continue;                                                           \
      for (int64_t k = 0; k < r->gw; k++) {                                                                           \
        const float *grad = r->grads + ((box * r->gh + i) * r->gw + k) * r->c;                                        \
        if (!find_corner(&columns, k, r->nearest, &x)) continue;                                                      \
        add_pixel_##name(image + y.low * r->w * r->c, &x, 1 - y.lerp, grad, r->c);                                    \
        if (y.high != y.low || y.lerp != 0) add_pixel_##name(image + y.high * r->w * r->c, &x, y.lerp, grad, r->c);   \
      }                                                                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static void add_images_##name(void *user, int64_t begin, int64_t end)                                               \
  {                                                                                                                   \
    const image_run *r = user;                                                                                        \
    int64_t size = r->h * r->w * r->c;                                                                                \
    memset((T *)r->sums + begin * size, 0, (size_t)((end - begin) * size) * sizeof(T));                               \
    for (int64_t box = 0; box < r->n; box++)                                                                          \
      if (r->index[box] >= begin && r->index[box] < end) add_box_##name(r, box, (T *)r->sums + r->index[box] * size); \
  }
ADD_BOX(f32, float)
ADD_BOX(f64, double)

/* Gradients [boxes, rows, columns, channels], at least one of each but channels. */
static tn_status want_grads(const tn_prepare_ctx *ctx, uint32_t boxes_at, tn_error *err)
{
  const tn_view *grads = &ctx->inputs[0];
  int64_t n = 0;
  tn_status st = tn__want_images(ctx, 0, false, err);
  if (st == TN_OK) st = tn__want_boxes(ctx, boxes_at, &n, err);
  if (st != TN_OK || grads->dims[0] == n) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: gradients of %lld crops, boxes for %lld",
                      tn_operation_type(ctx->op), (long long)grads->dims[0], (long long)n);
}

static tn_status image_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t dims[4] = { 0 }, n = 0;
  tn_status st = want_grads(ctx, 1, err);
  if (st == TN_OK) st = tn__want_vector(ctx, 3, 4, err);
  if (st != TN_OK) return st;
  for (int k = 0; k < 4; k++) dims[k] = tn__operand_int(&ctx->inputs[3], k);
  if (dims[0] < 0 || dims[1] <= 0 || dims[2] <= 0 || dims[3] != ctx->inputs[0].dims[3]) {
    char shape[100];
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: image_size is %s, gradients have %lld channels",
                        tn_operation_type(ctx->op), tn__format_shape(shape, sizeof shape, dims, 4),
                        (long long)ctx->inputs[0].dims[3]);
  }
  st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 4, &n, err);
  tn_dtype dtype = tn_operation_output_dtype(ctx->op, 0);
  if (st == TN_OK && tn__wide_dtype(dtype) != dtype && !tn__size_mul((size_t)n, sizeof(float), &ctx->scratch_bytes))
    return tn__no_memory(err, "sums", SIZE_MAX);
  ctx->cost_ns = 50 + (double)n * 0.1 + (double)ctx->inputs[0].count * 3;
  return st;
}

static tn_status image_compute(tn_kernel_ctx *ctx)
{
  const tn_view *grads = ctx->inputs[0];
  tn_view *out = ctx->outputs[0];
  const int64_t *dims = out->dims;
  tn_status st = tn__check_boxes(ctx, 1, dims[0]);
  if (st != TN_OK || out->count == 0) return st;
  bool wide = tn__wide_dtype(out->dtype) == out->dtype;
  image_run r = { grads->data,
                  ctx->inputs[1]->data,
                  ctx->inputs[2]->data,
                  wide ? out->data : ctx->scratch,
                  grads->dims[0],
                  grads->dims[1],
                  grads->dims[2],
                  dims[1],
                  dims[2],
                  dims[3],
                  ctx->state != NULL };
  double cost = (double)grads->count * 3 / (double)dims[0] + (double)out->count * 0.1 / (double)dims[0];
  tn_parallel_for(ctx, dims[0], cost < 20000 ? dims[0] : 1, cost,
                  out->dtype == TN_DOUBLE ? add_images_f64 : add_images_f32, &r);
  if (!wide) tn__narrow_all(ctx, out->dtype, ctx->scratch, out->data, out->count);
  return TN_OK;
}

/* The state is the method alone. */
static tn_status image_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const methods[] = { "bilinear", "nearest" };
  static char nearest;
  int method = 0;
  tn_status st = tn__attr_choice(op, "method", methods, 2, &method, err);
  *state = st == TN_OK && method == 1 ? &nearest : NULL;
  return st;
}

/* ---- to the boxes ---- */

typedef struct boxes_run {
  const tn__convert *load;
  const char *image;
  const float *grads, *boxes;
  const int32_t *index;
  float *out, *pixels; /* pixels: four of c floats for each box */
  int64_t gh, gw, h, w, c;
} boxes_run;

static tn_status boxes_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__convert load;
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(op, 1);
  if (!tn__convert_find(dtype, TN_FLOAT, false, &load)) return tn__no_kernel(err, op, dtype);
  tn__convert *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "crops", sizeof *p);
  *p = load;
  *state = p;
  return TN_OK;
}

static void boxes_destroy(void *state) { tn__free(state, sizeof(tn__convert)); }

static tn_status boxes_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *grads = &ctx->inputs[0], *image = &ctx->inputs[1];
  size_t pixels = 0;
  tn_status st = want_grads(ctx, 2, err);
  if (st == TN_OK) st = tn__want_images(ctx, 1, false, err);
  if (st != TN_OK) return st;
  if (grads->dims[3] != image->dims[3])
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: gradients of %lld channels, images of %lld",
                        tn_operation_type(ctx->op), (long long)grads->dims[3], (long long)image->dims[3]);
  if (!tn__size_mul((size_t)grads->dims[0] * 4, (size_t)grads->dims[3], &pixels) ||
      !tn__size_mul(pixels, sizeof(float), &ctx->scratch_bytes))
    return tn__no_memory(err, "pixels", SIZE_MAX);
  ctx->cost_ns = 50 + (double)grads->count * 6;
  return tn_prepare_output(ctx, 0, (const int64_t[]){ grads->dims[0], 4 }, 2, err);
}

/* Loads the pixels at rows y and columns x as floats: top left, top right, bottom left, bottom
 * right. */
static void load_pixels(const boxes_run *r, int64_t image, const corner *y, const corner *x, float *pixels)
{
  for (int k = 0; k < 4; k++) {
    int64_t row = image * r->h + (k < 2 ? y->low : y->high), column = k % 2 == 0 ? x->low : x->high;
    tn__convert_run(r->load, r->image + (size_t)((row * r->w + column) * r->c) * r->load->from_size, pixels + k * r->c,
                    r->c);
  }
}

static void box_gradient(const boxes_run *r, int64_t box, float *p, float *out)
{
  const float *at = r->boxes + 4 * box;
  const tn__crop_line rows = tn__crop_line_of(at[0], at[2], r->h, r->gh),
                      columns = tn__crop_line_of(at[1], at[3], r->w, r->gw);
  const int64_t c = r->c;
  double sums[4] = { 0 };
  tn__poll poll = tn__poll_here();
  for (int64_t i = 0; i < r->gh && !tn__poll_over(&poll, r->gw * (10 + 8 * r->c)); i++) {
    corner y, x;
    double down = r->gh > 1 ? (double)i * (double)rows.last / (double)(r->gh - 1) : 0.5 * (double)rows.last;
    if (!find_corner(&rows, i, false, &y)) continue;
    for (int64_t k = 0; k < r->gw; k++) {
      const float *grad = r->grads + ((box * r->gh + i) * r->gw + k) * c;
      double right = r->gw > 1 ? (double)k * (double)columns.last / (double)(r->gw - 1) : 0.5 * (double)columns.last;
      double dy = 0, dx = 0;
      if (!find_corner(&columns, k, false, &x)) continue;
      load_pixels(r, r->index[box], &y, &x, p);
      for (int64_t j = 0; j < c; j++) {
        const float a = p[j], b = p[c + j], d = p[2 * c + j], e = p[3 * c + j];
        dy += (double)(((1 - x.lerp) * (d - a) + x.lerp * (e - b)) * grad[j]);
        dx += (double)(((1 - y.lerp) * (b - a) + y.lerp * (e - d)) * grad[j]);
      }
      sums[0] += dy * ((double)rows.last - down);
      sums[1] += dx * ((double)columns.last - right);
      sums[2] += dy * down;
      sums[3] += dx * right;
    }
  }
  for (int k = 0; k < 4; k++) out[k] = (float)sums[k];
}

static void boxes_part(void *user, int64_t begin, int64_t end)
{
  const boxes_run *r = user;
  for (int64_t box = begin; box < end; box++) box_gradient(r, box, r->pixels + 4 * box * r->c, r->out + 4 * box);
}

static tn_status boxes_compute(tn_kernel_ctx *ctx)
{
  const tn_view *grads = ctx->inputs[0], *image = ctx->inputs[1];
  tn_status st = tn__check_boxes(ctx, 2, image->dims[0]);
  if (st != TN_OK) return st;
  boxes_run r = { ctx->state,           image->data,           grads->data,    ctx->inputs[2]->data,
                  ctx->inputs[3]->data, ctx->outputs[0]->data, ctx->scratch,   grads->dims[1],
                  grads->dims[2],       image->dims[1],        image->dims[2], image->dims[3] };
  double cost = 20 + 6 * (double)(r.gh * r.gw) * (double)r.c;
  tn_parallel_for(ctx, grads->dims[0], cost < 20000 ? (int64_t)(20000 / cost) + 1 : 1, cost, boxes_part, &r);
  return TN_OK;
}

/* ---- tables ---- */

static tn_status infer_image(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t dims[TN_MAX_RANK], all[] = { -1, -1, -1, -1 };
  int32_t rank = tn_infer_input_as_shape(ctx, 3, dims);
  return tn_infer_output(ctx, 0, rank == 4 ? dims : all, 4, err);
}

static tn_status infer_boxes(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape boxes;
  tn__infer_get(ctx, 2, &boxes);
  return tn_infer_output(ctx, 0, (const int64_t[]){ boxes.rank == 2 ? boxes.dims[0] : -1, 4 }, 2, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CropAndResizeGradImage",
    .inputs = "grads: float, boxes: float, box_ind: int32, image_size: int32",
    .outputs = "output: T",
    .attrs = "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'",
    .shape_operands = 1u << 3,
    .infer = infer_image,
    .summary = "gradient of CropAndResize for the images" },
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "CropAndResizeGradBoxes",
    .inputs = "grads: float, image: T, boxes: float, box_ind: int32",
    .outputs = "output: float",
    .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; method: {'bilinear'} = 'bilinear'",
    .infer = infer_boxes,
    .summary = "gradient of CropAndResize for the boxes" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "CropAndResizeGradImage",
    .device = "CPU",
    .name = "crop_and_resize_grad_image_cpu",
    .rank = TN_RANK_C,
    .create = image_create,
    .prepare = image_prepare,
    .compute = image_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "CropAndResizeGradBoxes",
    .device = "CPU",
    .name = "crop_and_resize_grad_boxes_cpu",
    .rank = TN_RANK_C,
    .create = boxes_create,
    .destroy = boxes_destroy,
    .prepare = boxes_prepare,
    .compute = boxes_compute },
};

TN_OP_FAMILY(crop_and_resize_grad)
