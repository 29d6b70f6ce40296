/* SPDX-License-Identifier: Apache-2.0 */
/* EncodeJpeg EncodeJpegVariableQuality EncodePng. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/image/codec/pixels.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

/* ---- PNG ---- */

static tn_status png_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t level = tn__attr_int(op, "compression", -1);
  *state = NULL;
  if (level < -1 || level > 9)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "EncodePng: compression is %lld, wanted [-1, 9]", (long long)level);
  return tn__keep_state(&level, sizeof level, "options", state, err);
}

static void png_destroy(void *state) { tn__free(state, sizeof(int64_t)); }

static tn_status png_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank_at_least(ctx, 0, 3, err);
  if (st != TN_OK) return st;
  int64_t channels = in->dims[in->rank - 1];
  if (channels < 1 || channels > 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "EncodePng: the image has %lld channels, wanted 1 to 4",
                        (long long)channels);
  ctx->cost_ns = 2000 + (double)in->count * 30;
  return tn_prepare_output(ctx, 0, in->dims, in->rank - 3, err);
}

static tn_status png_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  const int64_t *sizes = in->dims + in->rank - 3;
  tn__pixels p = { .frames = 1, .h = sizes[0], .w = sizes[1], .c = sizes[2], .wide = in->dtype == TN_UINT16 };
  size_t bytes = (size_t)(p.h * p.w * p.c) * tn_dtype_size(in->dtype);
  tn_status st = TN_OK;
  for (int64_t i = 0; st == TN_OK && i < ctx->outputs[0]->count; i++) {
    tn__encoded text = { 0 };
    p.data = (char *)in->data + (size_t)i * bytes;
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    st = tn__png_encode("EncodePng", &p, (int)*(const int64_t *)ctx->state, &text, ctx->err);
    if (st == TN_OK) st = tn_string_set((tn_string *)ctx->outputs[0]->data + i, text.data, text.size, ctx->err);
    tn__encoded_fini(&text);
  }
  return st;
}

/* ---- JPEG ---- */

typedef struct jpeg_state {
  tn__jpeg_encoding how;
  int channels; /* 0: 1 or 3 */
  bool variable; /* input 1 is the quality */
} jpeg_state;

static tn_status check_quality(int64_t quality, const char *op, tn_error *err)
{
  if (quality >= 0 && quality <= 100) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: quality is %lld, wanted [0, 100]", op, (long long)quality);
}

static tn_status jpeg_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const formats[] = { "", "grayscale", "rgb" }, *const units[] = { "in", "cm" };
  static const int channels[] = { 0, 1, 3 };
  int64_t quality = tn__attr_int(op, "quality", 95), x = tn__attr_int(op, "x_density", 300);
  int64_t y = tn__attr_int(op, "y_density", 300);
  jpeg_state s = { .variable = tn_operation_n_inputs(op) > 1 };
  int format = 0, unit = 0;
  *state = NULL;
  tn_status st = check_quality(quality, tn_operation_type(op), err);
  if (st == TN_OK && !s.variable) st = tn__attr_choice(op, "format", formats, 3, &format, err);
  if (st == TN_OK && !s.variable) st = tn__attr_choice(op, "density_unit", units, 2, &unit, err);
  if (st != TN_OK) return st;
  s.channels = channels[format];
  s.how = (tn__jpeg_encoding){ .quality = (int)quality, .unit = unit + 1, .x_density = (int)x, .y_density = (int)y,
                               .progressive = tn__attr_bool(op, "progressive", false),
                               .optimize = tn__attr_bool(op, "optimize_size", false),
                               .downsample = tn__attr_bool(op, "chroma_downsampling", true) };
  if (tn_operation_attr_string(op, "xmp_metadata", &s.how.xmp, &s.how.xmp_size, NULL) != TN_OK) s.how.xmp_size = 0;
  return tn__keep_state(&s, sizeof s, "options", state, err);
}

static void jpeg_destroy(void *state) { tn__free(state, sizeof(jpeg_state)); }

static tn_status jpeg_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const char *const wanted[] = { "1 or 3", "1", "", "3" };
  const jpeg_state *s = ctx->state;
  const tn_view *in = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 3, err);
  if (st == TN_OK && s->variable) st = tn__want_rank(ctx, 1, 0, err);
  if (st != TN_OK) return st;
  int64_t channels = in->dims[2];
  if ((channels != 1 && channels != 3) || (s->channels != 0 && s->channels != channels))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the image has %lld channels, wanted %s",
                        tn_operation_type(ctx->op), (long long)channels,
                        wanted[s->channels]);
  ctx->cost_ns = 2000 + (double)in->count * 10;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status jpeg_compute(tn_kernel_ctx *ctx)
{
  const jpeg_state *s = ctx->state;
  const tn_view *in = ctx->inputs[0];
  const char *op = s->variable ? "EncodeJpegVariableQuality" : "EncodeJpeg";
  tn__pixels p = { .data = in->data, .frames = 1, .h = in->dims[0], .w = in->dims[1], .c = in->dims[2] };
  tn__jpeg_encoding how = s->how;
  tn__encoded text = { 0 };
  if (s->variable) how.quality = *(const int32_t *)ctx->inputs[1]->data;
  tn_status st = check_quality(how.quality, op, ctx->err);
  if (st == TN_OK) st = tn__jpeg_encode(op, &p, &how, &text, ctx->err);
  if (st == TN_OK) st = tn_string_set(ctx->outputs[0]->data, text.data, text.size, ctx->err);
  tn__encoded_fini(&text);
  return st;
}

/* ---- tables ---- */

static tn_status infer_png(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 3, &s, err);
  tn__infer_get(ctx, 0, &s);
  int32_t rank = s.rank < 3 ? -1 : s.rank - 3;
  return st != TN_OK ? st : tn_infer_output(ctx, 0, s.dims, rank, err);
}

static tn_status infer_jpeg(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 0, 3, &unused, err);
  return st != TN_OK ? st : tn__infer_scalar(ctx, err);
}

#define OP(op, in, attributes, shapes, text)                                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "contents: string", .attrs = attributes, \
    .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("EncodeJpeg", "image: uint8",
     "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; progressive: bool = false; "
     "optimize_size: bool = false; chroma_downsampling: bool = true; density_unit: {'in', 'cm'} = 'in'; "
     "x_density: int = 300; y_density: int = 300; xmp_metadata: string = ''",
     infer_jpeg, "encodes an image as JPEG"),
  OP("EncodeJpegVariableQuality", "images: uint8, quality: int32", "", infer_jpeg,
     "encodes an image as JPEG of a given quality"),
  OP("EncodePng", "image: T", "compression: int = -1; T: {uint8, uint16} = uint8", infer_png,
     "encodes images as PNG"),
};

static const tn_kernel_def kernels[] = {
  TN__KERNEL("EncodeJpeg", "encode_jpeg_cpu", jpeg_create, jpeg_destroy, jpeg_prepare, jpeg_compute),
  TN__KERNEL("EncodeJpegVariableQuality", "encode_jpeg_quality_cpu", jpeg_create, jpeg_destroy, jpeg_prepare,
             jpeg_compute),
  TN__KERNEL("EncodePng", "encode_png_cpu", png_create, png_destroy, png_prepare, png_compute),
};

TN_OP_FAMILY(image_encode)
