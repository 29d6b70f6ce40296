/* SPDX-License-Identifier: Apache-2.0 */
/* ExtractImagePatches: the pixels that a window covers at each of its positions in an image. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* One direction: rows or columns. */
typedef struct direction {
  int64_t window, stride, rate;
  int64_t size, places, before; /* size of the image; window positions; padding before the image */
} direction;

typedef struct form {
  const char *op;
  bool same; /* SAME padding: the strides alone determine the number of positions */
  direction dir[2];
} form;

static tn_status read_list(const tn_operation *op, const char *name, const int64_t **items, tn_error *err)
{
  size_t n;
  tn_status st = tn_operation_attr_ints(op, name, items, &n, err);
  if (st != TN_OK) return st;
  if (n != 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: attribute '%s' has %zu numbers, wanted 4",
                        tn_operation_type(op), name, n);
  if ((*items)[0] != 1 || (*items)[3] != 1)
    return tn_error_set(err, TN_UNIMPLEMENTED, "%s: attribute '%s' has %lld and %lld for batch and depth, wanted 1",
                        tn_operation_type(op), name, (long long)(*items)[0], (long long)(*items)[3]);
  for (int i = 1; i < 3; i++)
    if ((*items)[i] < 1)
      return tn_error_set(err, TN_OUT_OF_RANGE, "%s: attribute '%s' has %lld, wanted 1 or more", tn_operation_type(op),
                          name, (long long)(*items)[i]);
  return TN_OK;
}

static tn_status read_form(const tn_operation *op, form *f, tn_error *err)
{
  static const char *const paddings[] = { "SAME", "VALID" };
  const int64_t *windows, *strides, *rates;
  int padding;
  f->op = tn_operation_type(op);
  tn_status st = read_list(op, "ksizes", &windows, err);
  if (st == TN_OK) st = read_list(op, "strides", &strides, err);
  if (st == TN_OK) st = read_list(op, "rates", &rates, err);
  if (st == TN_OK) st = tn__attr_choice(op, "padding", paddings, 2, &padding, err);
  if (st != TN_OK) return st;
  f->same = padding == 0;
  for (int i = 0; i < 2; i++) f->dir[i] = (direction){ windows[i + 1], strides[i + 1], rates[i + 1], -1, -1, 0 };
  return TN_OK;
}

/* Computes the window positions along an image of this size. A window larger than the image by less
 * than a stride has none, which is no error. */
static tn_status fit(const form *f, direction *d, int64_t size, tn_error *err)
{
  int64_t reach, room, needed = 0;
  bool fits = !__builtin_mul_overflow(d->window - 1, d->rate, &reach) && !__builtin_add_overflow(reach, 1, &reach);
  d->size = size;
  if (f->same) {
    d->places = size / d->stride + (size % d->stride != 0);
    fits = fits && !__builtin_add_overflow((d->places - 1) * d->stride - size, reach, &needed);
    d->before = needed > 0 ? needed / 2 : 0;
  } else {
    fits = fits && !__builtin_sub_overflow(size, reach, &room) && !__builtin_add_overflow(room, d->stride, &room);
    d->places = fits ? room / d->stride : -1;
    fits = d->places >= 0;
  }
  if (fits) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a window of %lld with rate %lld does not fit into %lld", f->op,
                      (long long)d->window, (long long)d->rate, (long long)size);
}

/* Changes the image's shape to the output's. */
static tn_status output_shape(form *f, int64_t *dims, tn_error *err)
{
  for (int i = 0; i < 2; i++) {
    tn_status st = dims[i + 1] < 0 ? TN_OK : fit(f, &f->dir[i], dims[i + 1], err);
    if (st != TN_OK) return st;
    dims[i + 1] = f->dir[i].places;
  }
  int64_t taps;
  if (__builtin_mul_overflow(f->dir[0].window, f->dir[1].window, &taps) ||
      (dims[3] >= 0 && __builtin_mul_overflow(dims[3], taps, &dims[3])))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the windows have too many elements", f->op);
  return TN_OK;
}

static tn_status infer_patches(tn_infer_ctx *ctx, tn_error *err)
{
  form f;
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 4, &s, err);
  if (st == TN_OK) st = read_form(tn_infer_operation(ctx), &f, err);
  if (st == TN_OK) st = output_shape(&f, s.dims, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- the kernel ---- */

typedef struct patches_plan {
  direction rows, columns;
  size_t pixel; /* bytes */
  int64_t count; /* output rows (window positions) of all images */
  double cost_ns; /* of one output row */
} patches_plan;

static tn_status patches_create(const tn_operation *op, void **state, tn_error *err)
{
  form f;
  *state = NULL;
  return read_form(op, &f, err);
}

static tn_status patches_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t dims[4], count;
  form f;
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = read_form(ctx->op, &f, err);
  if (st != TN_OK) return st;
  memcpy(dims, in->dims, sizeof dims);
  st = output_shape(&f, dims, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, 4, err);
  if (st == TN_OK) st = tn_shape_elements(dims, 4, &count, err);
  if (st != TN_OK || count == 0) return st;
  patches_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "the plan of patches", sizeof *p);
  ctx->shape_state = p;
  p->rows = f.dir[0];
  p->columns = f.dir[1];
  p->pixel = (size_t)in->dims[3] * tn_dtype_size(in->dtype);
  p->count = dims[0] * dims[1];
  p->cost_ns = (double)(count / p->count) * 0.5;
  ctx->cost_ns = p->cost_ns * (double)p->count;
  return TN_OK;
}

static void patches_destroy_plan(void *plan) { tn__free(plan, sizeof(patches_plan)); }

typedef struct patches_run {
  const patches_plan *p;
  const char *in;
  char *out;
} patches_run;

/* Copies one row of a window: pixels inside the image, zeros for the others. */
static void copy_window_row(const patches_plan *p, const char *in, int64_t left, char *out)
{
  const direction *c = &p->columns;
  size_t pixel = p->pixel;
  int64_t first = left < 0 ? (-left - 1) / c->rate + 1 : 0;
  int64_t end = left < c->size ? (c->size - left - 1) / c->rate + 1 : 0;
  if (first > c->window) first = c->window;
  if (end > c->window) end = c->window;
  if (end < first) end = first;
  memset(out, 0, (size_t)first * pixel);
  if (c->rate == 1) {
    if (end > first)
      memcpy(out + (size_t)first * pixel, in + (left + first) * (int64_t)pixel, (size_t)(end - first) * pixel);
  } else {
    for (int64_t k = first; k < end; k++)
      memcpy(out + (size_t)k * pixel, in + (left + k * c->rate) * (int64_t)pixel, pixel);
  }
  memset(out + (size_t)end * pixel, 0, (size_t)(c->window - end) * pixel);
}

static void patches_rows(void *user, int64_t begin, int64_t end)
{
  const patches_run *r = user;
  const patches_plan *p = r->p;
  const direction *v = &p->rows, *c = &p->columns;
  size_t window_row = (size_t)c->window * p->pixel, row = (size_t)c->size * p->pixel;
  char *out = r->out + (size_t)(begin * c->places * v->window) * window_row;
  for (int64_t i = begin; i < end; i++) {
    const char *image = r->in + (size_t)(i / v->places * v->size) * row;
    int64_t top = i % v->places * v->stride - v->before;
    for (int64_t x = 0; x < c->places; x++) {
      for (int64_t k = 0; k < v->window; k++, out += window_row) {
        int64_t y = top + k * v->rate;
        if (y < 0 || y >= v->size)
          memset(out, 0, window_row);
        else
          copy_window_row(p, image + (size_t)y * row, x * c->stride - c->before, out);
      }
    }
  }
}

static tn_status patches_compute(tn_kernel_ctx *ctx)
{
  const patches_plan *p = ctx->shape_state;
  if (p == NULL) return TN_OK;
  patches_run r = { p, ctx->inputs[0]->data, ctx->outputs[0]->data };
  if (ctx->outputs[0]->count <= TN__SERIAL_ELEMENTS)
    patches_rows(&r, 0, p->count);
  else
    tn_parallel_for(ctx, p->count, 1, p->cost_ns, patches_rows, &r);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "ExtractImagePatches", .inputs = "images: T", .outputs = "patches: T",
    .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
             "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
             "complex128, bool}; padding: {'SAME', 'VALID'}",
    .infer = infer_patches, .summary = "extracts image patches at each window position" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ExtractImagePatches", .device = "CPU",
    .name = "extract_image_patches_cpu", .rank = TN_RANK_C, .create = patches_create, .prepare = patches_prepare,
    .destroy_shape_state = patches_destroy_plan, .compute = patches_compute },
};

TN_OP_FAMILY(patches)
