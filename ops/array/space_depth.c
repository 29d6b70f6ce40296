/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of pixels as channels and back: SpaceToDepth DepthToSpace. With the two block directions
 * as separate dimensions both are a single transposition, in each of the three layouts. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/strided.h>
#include <ops/kernel/shapes.h>
#include <string.h>

enum { NHWC, NCHW, NCHW_VECT_C };

#define VECTOR 4 /* channels in the last dimension of NCHW_VECT_C */

/* The parsed name and attributes of the op. */
typedef struct form {
  const char *op;
  bool to_depth;
  int layout;
  int64_t block;
  int32_t rank, height, width, depth; /* which dimension is which */
} form;

static tn_status read_form(const tn_operation *op, form *f, tn_error *err)
{
  static const char *const layouts[] = { "NHWC", "NCHW", "NCHW_VECT_C" };
  f->op = tn_operation_type(op);
  f->to_depth = strcmp(f->op, "SpaceToDepth") == 0;
  f->block = tn__attr_int(op, "block_size", 0);
  tn_status st = tn__attr_choice(op, "data_format", layouts, 3, &f->layout, err);
  if (st != TN_OK) return st;
  f->rank = f->layout == NCHW_VECT_C ? 5 : 4;
  f->height = f->layout == NHWC ? 1 : 2;
  f->width = f->height + 1;
  f->depth = f->layout == NHWC ? 3 : 1;
  if (f->block < 2 || f->block > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: block_size is %lld, wanted 2 or more", f->op,
                        (long long)f->block);
  tn_dtype d = tn_operation_output_dtype(op, 0);
  if (f->layout == NCHW_VECT_C && d != TN_QINT8 && d != TN_INT8)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: NCHW_VECT_C is for int8 and qint8, not for %s", f->op,
                        tn_dtype_name(d));
  return TN_OK;
}

/* dims / by, or dims * by; -1 stays -1. */
static tn_status scale(const form *f, int64_t *dim, const char *what, bool divide, int64_t by, tn_error *err)
{
  if (*dim < 0) return TN_OK;
  if (divide && *dim % by != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %s %lld, not a multiple of %lld", f->op, what,
                        (long long)*dim, (long long)by);
  if (divide)
    *dim /= by;
  else if (__builtin_mul_overflow(*dim, by, dim))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the output has too many elements", f->op);
  return TN_OK;
}

/* Changes the input's shape to the output's. */
static tn_status output_shape(const form *f, int64_t *dims, tn_error *err)
{
  tn_status st = scale(f, &dims[f->height], "height", f->to_depth, f->block, err);
  if (st == TN_OK) st = scale(f, &dims[f->width], "width", f->to_depth, f->block, err);
  if (st == TN_OK) st = scale(f, &dims[f->depth], "depth", !f->to_depth, f->block * f->block, err);
  if (st == TN_OK && f->layout == NCHW_VECT_C && dims[4] >= 0 && dims[4] != VECTOR)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the last dimension is %lld, wanted %d for NCHW_VECT_C", f->op,
                      (long long)dims[4], VECTOR);
  return st;
}

static tn_status infer_form(tn_infer_ctx *ctx, tn_error *err)
{
  form f;
  tn__shape s;
  tn_status st = read_form(tn_infer_operation(ctx), &f, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 0, f.rank, &s, err);
  if (st == TN_OK) st = output_shape(&f, s.dims, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- the kernel ---- */

/* Dimensions of the copy. */
enum { BATCH, ROW, COLUMN, BLOCK_ROW, BLOCK_COLUMN, CHANNEL, PART, N_DIMS };

/* Strides of each dimension in the picture (where block rows are rows) and in the tensor with
 * blocks as channels. */
static void steps_of(const form *f, const int64_t *sizes, int64_t *picture, int64_t *deep)
{
  int64_t b = f->block, h = sizes[ROW], w = sizes[COLUMN], c = sizes[CHANNEL];
  bool last = f->layout == NHWC; /* channels last */
  int64_t part = sizes[PART], pixel = last ? c : part, deep_pixel = last ? c * b * b : part;
  picture[PART] = deep[PART] = 1;
  picture[CHANNEL] = last ? 1 : h * b * w * b * part;
  picture[BLOCK_COLUMN] = pixel;
  picture[COLUMN] = pixel * b;
  picture[BLOCK_ROW] = pixel * w * b;
  picture[ROW] = picture[BLOCK_ROW] * b;
  deep[CHANNEL] = last ? 1 : h * w * part;
  deep[BLOCK_COLUMN] = last ? c : deep[CHANNEL] * c;
  deep[BLOCK_ROW] = deep[BLOCK_COLUMN] * b;
  deep[COLUMN] = deep_pixel;
  deep[ROW] = deep_pixel * w;
  picture[BATCH] = deep[BATCH] = h * w * b * b * c * part;
}

static void plan_form(tn__strided *s, const form *f, const int64_t *sizes)
{
  static const int last_picture[] = { BATCH, ROW, BLOCK_ROW, COLUMN, BLOCK_COLUMN, CHANNEL, PART };
  static const int first_picture[] = { BATCH, CHANNEL, ROW, BLOCK_ROW, COLUMN, BLOCK_COLUMN, PART };
  static const int last_deep[] = { BATCH, ROW, COLUMN, BLOCK_ROW, BLOCK_COLUMN, CHANNEL, PART };
  static const int first_deep[] = { BATCH, BLOCK_ROW, BLOCK_COLUMN, CHANNEL, ROW, COLUMN, PART };
  int64_t picture[N_DIMS], deep[N_DIMS];
  const int64_t *from = f->to_depth ? picture : deep, *to = f->to_depth ? deep : picture;
  const int *order = f->to_depth ? first_deep : first_picture;
  if (f->layout == NHWC) order = f->to_depth ? last_deep : last_picture;
  steps_of(f, sizes, picture, deep);
  for (int i = 0; i < N_DIMS; i++) tn__strided_add(s, sizes[order[i]], from[order[i]], to[order[i]]);
}

static tn_status form_create(const tn_operation *op, void **state, tn_error *err)
{
  form f;
  *state = NULL;
  return read_form(op, &f, err);
}

static tn_status form_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  form f;
  int64_t dims[5];
  tn_status st = read_form(ctx->op, &f, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 0, f.rank, err);
  if (st != TN_OK) return st;
  memcpy(dims, in->dims, (size_t)f.rank * sizeof *dims);
  st = output_shape(&f, dims, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, f.rank, err);
  if (st != TN_OK) return st;
  tn__strided *s = tn__alloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "the plan of a transposition", sizeof *s);
  ctx->shape_state = s;
  tn__strided_init(s, in->dtype);
  s->empty = in->count == 0;
  if (!s->empty) {
    const int64_t *small = f.to_depth ? dims : in->dims, *shallow = f.to_depth ? in->dims : dims;
    int64_t sizes[N_DIMS] = { in->dims[0], small[f.height], small[f.width], f.block, f.block, shallow[f.depth],
                              f.layout == NCHW_VECT_C ? VECTOR : 1 };
    plan_form(s, &f, sizes);
  }
  tn__strided_plan(s);
  ctx->cost_ns = s->cost_ns;
  return TN_OK;
}

static void form_destroy_plan(void *plan) { tn__free(plan, sizeof(tn__strided)); }

static tn_status form_compute(tn_kernel_ctx *ctx)
{
  return tn__strided_run(ctx->shape_state, ctx, ctx->inputs[0]->data, ctx->outputs[0]->data);
}

/* ---- tables ---- */

#define OP(op, text)                                                                                         \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = "input: T", .outputs = "output: T",                 \
    .attrs = "T: type; block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",         \
    .infer = infer_form, .summary = text }
#define KERNEL(which, title)                                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title,                   \
    .rank = TN_RANK_C, .create = form_create, .prepare = form_prepare,                                \
    .destroy_shape_state = form_destroy_plan, .compute = form_compute }

static const tn_op_def ops[] = {
  OP("DepthToSpace", "rearranges channels into blocks of pixels"),
  OP("SpaceToDepth", "rearranges blocks of pixels into channels"),
};

static const tn_kernel_def kernels[] = {
  KERNEL("DepthToSpace", "depth_to_space_cpu"),
  KERNEL("SpaceToDepth", "space_to_depth_cpu"),
};

TN_OP_FAMILY(space_depth)
