/* SPDX-License-Identifier: Apache-2.0 */
/* ResizeBilinear: rows first, then columns, in float.
 *
 * A resized row of the image is kept as long as output rows next to it need it. */
#include <core/base/alloc.h>
#include <ops/image/resize.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/family.h>

typedef struct bilinear_state {
  tn__resize_mode mode;
  tn__convert load; /* to float */
} bilinear_state;

typedef struct bilinear_plan {
  tn__lerp rows, columns;
  tn__bands bands;
  tn__resize_sizes size;
  size_t line_bytes; /* of the buffer of a resized row */
} bilinear_plan;

static tn_status bilinear_create(const tn_operation *op, void **state, tn_error *err)
{
  bilinear_state s;
  *state = NULL;
  tn_status st = tn__resize_mode_read(op, false, &s.mode, err);
  if (st != TN_OK) return st;
  tn_dtype dtype = tn_operation_input_dtype(op, 0);
  if (!tn__convert_find(dtype, TN_FLOAT, false, &s.load)) return tn__no_kernel(err, op, dtype);
  return tn__keep_state(&s, sizeof s, "resizing", state, err);
}

static void bilinear_destroy(void *state) { tn__free(state, sizeof(bilinear_state)); }

static void bilinear_destroy_plan(void *shape_state)
{
  bilinear_plan *p = shape_state;
  tn__lerp_destroy(&p->rows);
  tn__lerp_destroy(&p->columns);
  tn__free(p, sizeof *p);
}

/* Scratch per band: two resized rows, and one row of the image as floats. */
static tn_status plan_bands(tn_prepare_ctx *ctx, bilinear_plan *p, bool converted, tn_error *err)
{
  size_t wide = 0, row = 0, all;
  if (!tn__size_mul((size_t)p->size.w, (size_t)p->size.c, &row) || row > INT64_MAX / 8 ||
      !tn__band_buffer(p->size.ow * p->size.c, sizeof(float), &p->line_bytes) ||
      (converted && !tn__band_buffer((int64_t)row, sizeof(float), &wide)) || !tn__size_mul(p->line_bytes, 2, &all) ||
      !tn__size_add(all, wide, &all))
    return tn__no_memory(err, "buffers of rows", SIZE_MAX);
  double below = p->size.h < p->size.oh ? (double)p->size.h / (double)p->size.oh : 1;
  double each = (double)(p->size.ow * p->size.c);
  double cost = each * 0.15 + 2 * below * (each * 0.5 + (converted ? (double)row * 0.2 : 0));
  return tn__bands_plan(ctx, p->size.lines, 20 + cost, all, &p->bands, err);
}

static tn_status bilinear_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const bilinear_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  int64_t size[2];
  tn__resize_sizes sizes;
  tn_status st = tn__want_images(ctx, 0, true, err);
  if (st == TN_OK) st = tn__want_image_size(ctx, 1, size, err);
  if (st == TN_OK) st = tn__prepare_resized(ctx, size, &sizes, err);
  if (st != TN_OK || sizes.elements == 0) return st;
  if (in->dims[1] == size[0] && in->dims[2] == size[1] && in->dtype == TN_FLOAT) return tn_prepare_view(ctx, 0, 0, err);

  bilinear_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "resizing", sizeof *p);
  ctx->shape_state = p;
  p->size = sizes;
  st = tn__lerp_create(&p->rows, s->mode, p->size.h, p->size.oh, err);
  if (st == TN_OK) st = tn__lerp_create(&p->columns, s->mode, p->size.w, p->size.ow, err);
  return st != TN_OK ? st : plan_bands(ctx, p, in->dtype != TN_FLOAT, err);
}

/* ---- computing ---- */

typedef struct bilinear_run {
  const bilinear_state *state;
  const bilinear_plan *plan;
  const char *in, *end; /* the images */
  float *out;
} bilinear_run;

/* The resized rows held in the buffers. Rows are numbered through all images. */
typedef struct kept_rows {
  float *buffer[2];
  const float *data[2]; /* the buffer, or the image itself */
  int64_t row[2];
  float *wide;
} kept_rows;

/* Resizes row `row`, if it is not held yet, without replacing row `keep`. Returns its slot. */
static int keep_row(const bilinear_run *r, kept_rows *kept, int64_t row, int64_t keep)
{
  const bilinear_plan *p = r->plan;
  for (int k = 0; k < 2; k++)
    if (kept->row[k] == row) return k;
  int k = kept->row[0] == keep;
  size_t bytes = (size_t)(p->size.w * p->size.c) * r->state->load.from_size;
  const char *from = r->in + (size_t)row * bytes;
  const float *line = (const float *)from;
  bool all = from + bytes < r->end; /* another row follows this one */
  if (!r->state->load.same) {
    float *wide = p->columns.same ? kept->buffer[k] : kept->wide;
    tn__convert_run(&r->state->load, from, wide, p->size.w * p->size.c);
    line = wide;
    all = true;
  }
  kept->row[k] = row;
  kept->data[k] = line;
  if (p->columns.same) return k;
  tn__lerp_row(&p->columns, line, p->size.c, all, kept->buffer[k]);
  kept->data[k] = kept->buffer[k];
  return k;
}

static void bilinear_band(void *user, int64_t begin, int64_t end, char *buffers)
{
  const bilinear_run *r = user;
  const bilinear_plan *p = r->plan;
  kept_rows kept = { .buffer = { (float *)buffers, (float *)(buffers + p->line_bytes) }, .row = { -1, -1 } };
  kept.wide = (float *)(buffers + 2 * p->line_bytes);
  int64_t n = p->size.ow * p->size.c;
  for (int64_t line = begin; line < end; line++) {
    int64_t y = line % p->size.oh, first = line / p->size.oh * p->size.h;
    int64_t lower = first + p->rows.lower[y], upper = first + p->rows.upper[y];
    int a = keep_row(r, &kept, lower, upper), b = keep_row(r, &kept, upper, lower);
    tn__lerp_rows(kept.data[a], kept.data[b], p->rows.lerp[y], n, r->out + line * n);
  }
}

static tn_status bilinear_compute(tn_kernel_ctx *ctx)
{
  const bilinear_plan *p = ctx->shape_state;
  const tn_view *in = ctx->inputs[0];
  if (p == NULL) return TN_OK;
  bilinear_run r = { ctx->state, p, in->data, NULL, ctx->outputs[0]->data };
  r.end = r.in + (size_t)in->count * r.state->load.from_size;
  tn__bands_run(ctx, &p->bands, bilinear_band, &r);
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "ResizeBilinear",
    .inputs = "images: T, size: int32",
    .outputs = "resized_images: float",
    .attrs =
        "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; align_corners: bool = false; "
        "half_pixel_centers: bool = false",
    .shape_operands = 1u << 1,
    .infer = tn__infer_resized,
    .summary = "resizes images by bilinear interpolation" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .op = "ResizeBilinear",
    .device = "CPU",
    .name = "resize_bilinear_cpu",
    .rank = TN_RANK_C,
    .create = bilinear_create,
    .destroy = bilinear_destroy,
    .prepare = bilinear_prepare,
    .destroy_shape_state = bilinear_destroy_plan,
    .compute = bilinear_compute },
};

TN_OP_FAMILY(resize_bilinear)
