/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeNearestNeighbor and its gradient. */
#include <core/base/alloc.h>
#include <ops/image/resize.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/elements/widen.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <string.h>

/* ---- copies of pixels ---- */

typedef void (*pixels_fn)(const char *in, const int32_t *from, int64_t n, size_t size, char *out);

#define PIXELS(bytes)                                                                                    \
  static void pixels_##bytes(const char *in, const int32_t *from, int64_t n, size_t size, char *out)     \
  {                                                                                                      \
    for (int64_t i = 0; i < n; i++) memcpy(out + i * (bytes), in + (int64_t)from[i] * (bytes), (bytes)); \
  }
PIXELS(1)
PIXELS(2)
PIXELS(3)
PIXELS(4)
PIXELS(6)
PIXELS(8)
PIXELS(12)
PIXELS(16)
PIXELS(24)
PIXELS(32)

static void pixels_any(const char *in, const int32_t *from, int64_t n, size_t size, char *out)
{
  for (int64_t i = 0; i < n; i++) memcpy(out + (size_t)i * size, in + (size_t)from[i] * size, size);
}

static pixels_fn pixels_of(size_t size)
{
  switch (size) {
  case 1: return pixels_1;
  case 2: return pixels_2;
  case 3: return pixels_3;
  case 4: return pixels_4;
  case 6: return pixels_6;
  case 8: return pixels_8;
  case 12: return pixels_12;
  case 16: return pixels_16;
  case 24: return pixels_24;
  case 32: return pixels_32;
  default: return pixels_any;
  }
}

/* ---- the kernel ---- */

typedef struct nearest_plan {
  int32_t *rows, *columns; /* one block, rows first */
  pixels_fn pixels;
  tn__bands bands;
  tn__resize_sizes size;
  size_t pixel; /* bytes */
  bool same;    /* columns are unchanged: rows are copied whole */
} nearest_plan;

static tn_status nearest_create(const tn_operation *op, void **state, tn_error *err)
{
  tn__resize_mode mode;
  *state = NULL;
  return tn__resize_mode_read(op, false, &mode, err);
}

static size_t places_bytes(const nearest_plan *p) { return (size_t)(p->size.oh + p->size.ow) * sizeof(int32_t); }

static void nearest_destroy_plan(void *shape_state)
{
  nearest_plan *p = shape_state;
  if (p->rows != NULL) tn__free(p->rows, places_bytes(p));
  tn__free(p, sizeof *p);
}

static tn_status find_places(nearest_plan *p, tn__resize_mode mode, tn_error *err)
{
  p->rows = tn__alloc(places_bytes(p));
  if (p->rows == NULL) return tn__no_memory(err, "places of rows", places_bytes(p));
  p->columns = p->rows + p->size.oh;
  p->same = p->size.w == p->size.ow;
  float row = tn__resize_scale(mode, p->size.h, p->size.oh), column = tn__resize_scale(mode, p->size.w, p->size.ow);
  for (int64_t i = 0; i < p->size.oh; i++) p->rows[i] = (int32_t)tn__resize_nearest(mode, row, i, p->size.h);
  for (int64_t i = 0; i < p->size.ow; i++) {
    p->columns[i] = (int32_t)tn__resize_nearest(mode, column, i, p->size.w);
    p->same = p->same && p->columns[i] == i;
  }
  return TN_OK;
}

static tn_status nearest_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__resize_mode mode;
  int64_t size[2];
  tn__resize_sizes sizes;
  tn_status st = tn__want_images(ctx, 0, true, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 1, size, err);
  if (st == TN_OK) st = tn__prepare_resized(ctx, size, &sizes, err);
  if (st == TN_OK) st = tn__resize_mode_read(ctx->op, false, &mode, err);
  if (st != TN_OK || sizes.elements == 0) return st;
  if (in->dims[1] == size[0] && in->dims[2] == size[1]) return tn_prepare_view(ctx, 0, 0, err);

  nearest_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "resizing", sizeof *p);
  ctx->shape_state = p;
  p->size = sizes;
  p->pixel = (size_t)in->dims[3] * tn_dtype_size(in->dtype);
  p->pixels = pixels_of(p->pixel);
  st = find_places(p, mode, err);
  double cost = 20 + (double)p->size.ow * (p->same ? 0 : 1) + (double)p->size.ow * (double)p->pixel * 0.05;
  return st != TN_OK ? st : tn__bands_plan(ctx, p->size.lines, cost, 0, &p->bands, err);
}

typedef struct nearest_run {
  const nearest_plan *plan;
  const char *in;
  char *out;
} nearest_run;

/* An output row with the same source row as the previous one is copied from that. */
static void nearest_band(void *user, int64_t begin, int64_t end, char *unused)
{
  const nearest_run *r = user;
  const nearest_plan *p = r->plan;
  size_t row = (size_t)p->size.w * p->pixel, out_row = (size_t)p->size.ow * p->pixel;
  int64_t before = -1;
  for (int64_t line = begin; line < end; line++) {
    int64_t from = line / p->size.oh * p->size.h + p->rows[line % p->size.oh];
    const char *in = r->in + (size_t)from * row;
    char *out = r->out + (size_t)line * out_row;
    if (from == before)
      memcpy(out, out - out_row, out_row);
    else if (p->same)
      memcpy(out, in, out_row);
    else
      p->pixels(in, p->columns, p->size.ow, p->pixel, out);
    before = from;
  }
}

static tn_status nearest_compute(tn_kernel_ctx *ctx)
{
  const nearest_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  nearest_run r = { p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  tn__bands_run(ctx, &p->bands, nearest_band, &r);
  return TN_OK;
}

/* ---- the gradient ---- */

/* The output pixels of one input pixel are adjacent, so a sum iterates over contiguous rows, then
 * over contiguous columns. Sums are in float for 16-bit floats, and wrap in 32 bits for integers. */
typedef struct gradient_plan {
  tn__resize_taps rows, columns;
  tn__bands bands;
  tn__convert load, store;
  tn_dtype wide;
  tn__resize_sizes size;
  size_t sum_bytes, line_bytes; /* of the buffers: a sum of rows; a row of the result or of the gradients */
} gradient_plan;

#define SUMS(name, T)                                                                 \
  static void add_##name(const void *from, int64_t n, void *to)                       \
  {                                                                                   \
    const T *restrict in = from;                                                      \
    T *restrict sum = to;                                                             \
    for (int64_t i = 0; i < n; i++) sum[i] += in[i];                                  \
  }                                                                                   \
  static void gather_##name(const tn__resize_taps *t, const void *from, int64_t c, void *to) \
  {                                                                                   \
    const T *restrict in = from;                                                      \
    T *restrict out = to;                                                             \
    for (int64_t i = 0; i < t->n_out; i++, out += c)                                  \
      for (int64_t k = t->firsts[i]; k < t->firsts[i + 1]; k++)                       \
        for (int64_t j = 0; j < c; j++) out[j] += in[t->indices[k] * c + j];          \
  }
SUMS(f32, float)
SUMS(f64, double)
SUMS(u32, uint32_t)

static const struct {
  tn_dtype wide;
  void (*add)(const void *from, int64_t n, void *to);
  void (*gather)(const tn__resize_taps *t, const void *from, int64_t c, void *to);
} sums[] = { { TN_FLOAT, add_f32, gather_f32 }, { TN_DOUBLE, add_f64, gather_f64 }, { TN_INT32, add_u32, gather_u32 } };

static void gradient_destroy_plan(void *shape_state)
{
  gradient_plan *p = shape_state;
  tn__resize_taps_fini(&p->rows);
  tn__resize_taps_fini(&p->columns);
  tn__free(p, sizeof *p);
}

/* Finds, for each of the `out` pixels, the gradients in a line of `in` that contribute to it. */
static tn_status find_sources(tn__resize_taps *t, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err)
{
  float scale = tn__resize_scale(mode, out, in);
  tn__resize_taps forward;
  tn_status st = tn__resize_taps_create(&forward, out, in, in, err);
  if (st != TN_OK) return st;
  for (int64_t i = 0; i < in; i++) {
    tn__resize_taps_line(&forward, i);
    tn__resize_taps_add(&forward, i, tn__resize_nearest(mode, scale, i, out), 1);
  }
  st = tn__resize_taps_transpose(&forward, t, err);
  tn__resize_taps_fini(&forward);
  return st;
}

static tn_status gradient_plan_fill(tn_prepare_ctx *ctx, gradient_plan *p, tn_error *err)
{
  tn_dtype dtype = ctx->inputs[0].dtype;
  tn__resize_mode mode;
  size_t all = 0;
  tn_status st = tn__resize_mode_read(ctx->op, true, &mode, err);
  p->wide = tn__wide_dtype(dtype);
  if (!tn__convert_find(dtype, p->wide, false, &p->load) || !tn__convert_find(p->wide, dtype, false, &p->store))
    return tn__no_kernel(err, ctx->op, dtype);
  if (st == TN_OK) st = find_sources(&p->rows, mode, p->size.h, p->size.oh, err);
  if (st == TN_OK) st = find_sources(&p->columns, mode, p->size.w, p->size.ow, err);
  if (st != TN_OK) return st;
  size_t element = tn_dtype_size(p->wide);
  int64_t line = p->size.w > p->size.ow ? p->size.w : p->size.ow, columns = 0;
  if (__builtin_mul_overflow(line, p->size.c, &columns) || !tn__band_buffer(columns, element, &p->line_bytes) ||
      !tn__band_buffer(p->size.w * p->size.c, element, &p->sum_bytes) ||
      !tn__size_add(p->sum_bytes, p->line_bytes, &all))
    return tn__no_memory(err, "buffers of rows", SIZE_MAX);
  double cost =
      (double)p->size.w * (double)p->size.c * (1 + (double)p->size.h / (double)p->size.oh) + (double)p->size.ow;
  return tn__bands_plan(ctx, p->size.lines, cost, all, &p->bands, err);
}

static tn_status gradient_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  int64_t size[2];
  tn__resize_sizes sizes;
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 1, size, err);
  if (st == TN_OK) st = tn__prepare_resized(ctx, size, &sizes, err);
  if (st != TN_OK || sizes.elements == 0 || ctx->inputs[0].count == 0) return st;
  st = tn__want_images(ctx, 0, true, err);
  if (st != TN_OK) return st;
  gradient_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "resizing", sizeof *p);
  ctx->shape_state = p;
  p->size = sizes;
  return gradient_plan_fill(ctx, p, err);
}

typedef struct gradient_run {
  const gradient_plan *plan;
  const char *in;
  char *out;
} gradient_run;

static void gradient_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const gradient_run *r = user;
  const gradient_plan *p = r->plan;
  size_t k = p->wide == TN_DOUBLE ? 1 : 2, wide = tn_dtype_size(p->wide);
  if (p->wide == TN_FLOAT) k = 0;
  char *sum = buffers, *line_buffer = buffers + p->sum_bytes;
  int64_t row = p->size.w * p->size.c, out_row = p->size.ow * p->size.c;
  tn__poll poll = tn__poll_here();
  for (int64_t line = begin; line < end; line++) {
    int64_t y = line % p->size.oh, image = line / p->size.oh;
    char *out = r->out + (size_t)(line * out_row) * p->store.to_size;
    char *to = p->store.same ? out : line_buffer;
    memset(sum, 0, (size_t)row * wide);
    for (int64_t i = p->rows.firsts[y]; i < p->rows.firsts[y + 1] && !tn__poll_over(&poll, row); i++) {
      const void *in = r->in + (size_t)((image * p->size.h + p->rows.indices[i]) * row) * p->load.from_size;
      if (!p->load.same) {
        tn__convert_run(&p->load, in, line_buffer, row);
        in = line_buffer;
      }
      sums[k].add(in, row, sum);
    }
    memset(to, 0, (size_t)out_row * wide);
    sums[k].gather(&p->columns, sum, p->size.c, to);
    if (!p->store.same) tn__convert_run(&p->store, to, out, out_row);
  }
}

static tn_status gradient_compute(tn_kernel_ctx *ctx)
{
  const gradient_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  if (p == NULL) {
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
    return TN_OK;
  }
  gradient_run r = { p, ctx->inputs[0]->data, out->data };
  tn__bands_run(ctx, &p->bands, gradient_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

#define NEAREST_OP(op, in, out, types, text)                                                                           \
  {                                                                                                                    \
    .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out,                                           \
    .attrs = "T: " types "; align_corners: bool = false; half_pixel_centers: bool = false", .shape_operands = 1u << 1, \
    .infer = tn__infer_resized, .summary = text                                                                        \
  }

static const tn_op_def ops[] = {
  NEAREST_OP("ResizeNearestNeighbor", "images: T, size: int32", "resized_images: T",
             "{int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
             "resizes images by nearest-neighbour interpolation"),
  NEAREST_OP("ResizeNearestNeighborGrad", "grads: T, size: int32", "output: T",
             "{uint8, int8, int32, half, float, double, bfloat16}", "gradient of ResizeNearestNeighbor"),
};

#define NEAREST_KERNEL(which, title, part, check)                                                                     \
  {                                                                                                                   \
    .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,                \
    .create = check, .prepare = part##_prepare, .destroy_shape_state = part##_destroy_plan, .compute = part##_compute \
  }

static const tn_kernel_def kernels[] = {
  NEAREST_KERNEL("ResizeNearestNeighbor", "resize_nearest_cpu", nearest, nearest_create),
  NEAREST_KERNEL("ResizeNearestNeighborGrad", "resize_nearest_grad_cpu", gradient, NULL),
};

TN_OP_FAMILY(resize_nearest)
