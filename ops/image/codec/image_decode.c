/* SPDX-License-Identifier: Apache-2.0 */
/* Images from files' bytes: DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng DecodeAndCropJpeg DecodeWebP
 * ExtractJpegShape. The data's first bytes tell its format, and most ops decode several formats. */
#include <core/base/alloc.h>
#include <ops/image/codec/pixels.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

typedef enum op_kind { BMP, CROP, GIF, IMAGE, JPEG, PNG, WEBP, N_KINDS } op_kind;

static const char *const kinds[N_KINDS] = { "DecodeBmp", "DecodeAndCropJpeg", "DecodeGif", "DecodeImage",
                                            "DecodeJpeg", "DecodePng", "DecodeWebP" };

typedef struct decode_state {
  op_kind kind;
  tn_dtype dtype;
  int channels;
  bool animations;
  tn__jpeg_options jpeg;
} decode_state;

static op_kind kind_of(const tn_operation *op)
{
  op_kind k = 0;
  while (k + 1 < N_KINDS && strcmp(kinds[k], tn_operation_type(op)) != 0) k++;
  return k;
}

static tn_status read_jpeg_options(const tn_operation *op, tn__jpeg_options *o, tn_error *err)
{
  static const char *const methods[] = { "", "INTEGER_FAST", "INTEGER_ACCURATE" };
  int64_t ratio = tn__attr_int(op, "ratio", 1);
  int method;
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: ratio is %lld, wanted 1, 2, 4 or 8", tn_operation_type(op),
                        (long long)ratio);
  tn_status st = tn__attr_choice(op, "dct_method", methods, 3, &method, err);
  if (st != TN_OK) return st;
  *o = (tn__jpeg_options){ .ratio = (int)ratio,
                           .fancy = tn__attr_bool(op, "fancy_upscaling", true),
                           .recover = tn__attr_bool(op, "try_recover_truncated", false),
                           .fast = method != 2,
                           .acceptable = tn__attr_float(op, "acceptable_fraction", 1) };
  return TN_OK;
}

static tn_status decode_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t channels = tn__attr_int(op, "channels", 0);
  decode_state s = { .kind = kind_of(op), .dtype = tn__attr_type(op, "dtype"), .channels = (int)channels };
  *state = NULL;
  if (s.dtype == TN_DTYPE_INVALID) s.dtype = TN_UINT8;
  s.animations = tn__attr_bool(op, "expand_animations", true);
  s.jpeg = (tn__jpeg_options){ .ratio = 1, .fancy = true, .fast = true, .acceptable = 1 };
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: channels is %lld, wanted 0, 1, 3 or 4", tn_operation_type(op),
                        (long long)channels);
  if (s.kind == WEBP && channels == 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "DecodeWebP: channels is 1, wanted 0, 3 or 4");
  tn_status st = s.kind == JPEG || s.kind == CROP ? read_jpeg_options(op, &s.jpeg, err) : TN_OK;
  s.jpeg.channels = s.channels;
  s.jpeg.crops = s.kind == CROP;
  return st != TN_OK ? st : tn__keep_state(&s, sizeof s, "options", state, err);
}

static void decode_destroy(void *state) { tn__free(state, sizeof(decode_state)); }

static tn_status decode_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const int64_t four = 4;
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  if (st == TN_OK && ctx->n_inputs > 1 && (ctx->inputs[1].rank != 1 || ctx->inputs[1].count != 4))
    st = tn__shape_error(err, ctx, 1, &four, 1);
  ctx->cost_ns = 1e6;
  return st != TN_OK ? st : tn_prepare_dynamic(ctx, 0, err);
}

/* ---- formats ---- */

static bool begins(const tn__coded *in, const char *with, size_t n)
{
  return in->size >= n && memcmp(in->data, with, n) == 0;
}

static op_kind format_of(const tn__coded *in)
{
  if (begins(in, "\xff\xd8\xff", 3)) return JPEG;
  if (begins(in, "\x89PNG\r\n\x1a\n", 8)) return PNG;
  if (begins(in, "GIF8", 4)) return GIF;
  if (begins(in, "BM", 2)) return BMP;
  if (begins(in, "RIFF", 4) && in->size >= 12 && memcmp(in->data + 8, "WEBP", 4) == 0) return WEBP;
  return N_KINDS;
}

/* Whether the op decodes the format. */
static bool accepts(op_kind op, op_kind format)
{
  if (op == IMAGE) return true;
  if (op == BMP || format == BMP || op == WEBP) return op == format;
  return op != CROP || format == JPEG;
}

static tn_status check_format(const decode_state *s, op_kind format, tn_error *err)
{
  static const char *const names[] = { "BMP", "", "GIF", "", "JPEG", "PNG", "WebP" };
  const char *op = kinds[s->kind];
  if (format == N_KINDS)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the format of the data is unknown, wanted %s", op,
                        s->kind == WEBP ? "WebP" : "JPEG, PNG, GIF, BMP or WebP");
  bool grey = s->channels == 1, four = s->channels == 4;
  bool wrong = (format == JPEG && four) || (format == GIF && (grey || four)) ||
               ((format == BMP || format == WEBP) && grey);
  if (wrong)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: channels is %d, which %s images do not have", op, s->channels,
                        names[format]);
  if (format == WEBP && s->dtype != TN_UINT8)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dtype is %s, WebP images have uint8", op,
                        tn_dtype_name(s->dtype));
  if (accepts(s->kind, format)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the data is a %s image, which DecodeImage decodes", op,
                      names[format]);
}

static tn_status decode(const tn_kernel_ctx *ctx, const decode_state *s, const tn__coded *in, tn__pixels *out)
{
  op_kind format = format_of(in);
  tn__jpeg_options jpeg = s->jpeg;
  tn_status st = check_format(s, format, ctx->err);
  if (st != TN_OK) return st;
  for (int k = 0; k < 4 && s->kind == CROP; k++) jpeg.window[k] = ((const int32_t *)ctx->inputs[1]->data)[k];
  switch (format) {
  case JPEG: return tn__jpeg_decode(in, &jpeg, out, ctx->err);
  case PNG: return tn__png_decode(in, s->channels, s->dtype != TN_UINT8, out, ctx->err);
  case GIF: return tn__gif_decode(in, s->kind != IMAGE || s->animations, out, ctx->err);
  case WEBP: return tn__webp_decode(in, s->channels, out, ctx->err);
  default: return tn__bmp_decode(in, s->channels, out, ctx->err);
  }
}

/* ---- results ---- */

static void convert(const tn__pixels *p, const tn_view *out)
{
  int64_t n = out->count;
  const uint8_t *bytes = p->data;
  const uint16_t *words = p->data;
  if (out->dtype == TN_FLOAT && p->wide)
    for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = (float)words[i] * (1.0f / 65535);
  else if (out->dtype == TN_FLOAT)
    for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = (float)bytes[i] * (1.0f / 255);
  else if (out->dtype == TN_UINT16 && !p->wide)
    for (int64_t i = 0; i < n; i++) ((uint16_t *)out->data)[i] = (uint16_t)(bytes[i] << 8);
  else memcpy(out->data, p->data, p->bytes);
}

static tn_status give(tn_kernel_ctx *ctx, const decode_state *s, const tn__coded *in, const tn__pixels *p)
{
  const int64_t dims[] = { p->frames, p->h, p->w, p->c };
  op_kind format = format_of(in);
  bool frames = s->kind == GIF || (format == GIF && s->kind == IMAGE) || format == WEBP;
  if (s->kind == IMAGE && !s->animations) frames = false;
  if (!frames && p->frames > 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                        "%s: the GIF image has %lld frames, which DecodeGif and DecodeImage decode", kinds[s->kind],
                        (long long)p->frames);
  tn_status st = tn_kernel_allocate(ctx, 0, frames ? dims : dims + 1, frames ? 4 : 3);
  if (st == TN_OK) convert(p, ctx->outputs[0]);
  return st;
}

static tn__coded coded_of(const tn_kernel_ctx *ctx, const char *op)
{
  size_t size;
  const char *data = tn_string_data(ctx->inputs[0]->data, &size);
  return (tn__coded){ op, (const uint8_t *)data, size };
}

static tn_status decode_compute(tn_kernel_ctx *ctx)
{
  const decode_state *s = ctx->state;
  tn__coded in = coded_of(ctx, kinds[s->kind]);
  tn__pixels pixels = { 0 };
  tn_status st = decode(ctx, s, &in, &pixels);
  if (st == TN_OK) st = give(ctx, s, &in, &pixels);
  tn__pixels_fini(&pixels);
  return st;
}

/* ---- ExtractJpegShape ---- */

static tn_status shape_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  static const int64_t three = 3;
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  ctx->cost_ns = 2000;
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, &three, 1, err);
}

static tn_status shape_compute(tn_kernel_ctx *ctx)
{
  const tn_view *out = ctx->outputs[0];
  tn__coded in = coded_of(ctx, "ExtractJpegShape");
  tn__pixels p = { 0 };
  tn_status st = tn__jpeg_shape(&in, &p, ctx->err);
  const int64_t sizes[] = { p.h, p.w, p.c };
  for (int k = 0; k < 3; k++)
    if (out->dtype == TN_INT32) ((int32_t *)out->data)[k] = (int32_t)sizes[k];
    else ((int64_t *)out->data)[k] = sizes[k];
  return st;
}

/* ---- tables ---- */

static tn_status infer_decoded(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_operation *op = tn_infer_operation(ctx);
  int64_t channels = tn__attr_int(op, "channels", 0), dims[] = { -1, -1, -1, channels > 0 ? channels : -1 };
  tn__shape unused;
  op_kind kind = kind_of(op);
  tn_status st = tn__infer_rank(ctx, 0, 0, &unused, err);
  if (st != TN_OK) return st;
  if (kind == GIF) dims[3] = 3;
  bool frames = kind == GIF || kind == WEBP;
  if (kind == IMAGE && tn__attr_bool(op, "expand_animations", true)) return tn_infer_output(ctx, 0, NULL, -1, err);
  return tn_infer_output(ctx, 0, frames ? dims : dims + 1, frames ? 4 : 3, err);
}

static tn_status infer_jpeg_shape(tn_infer_ctx *ctx, tn_error *err)
{
  static const int64_t three = 3;
  tn__shape unused;
  tn_status st = tn__infer_rank(ctx, 0, 0, &unused, err);
  return st != TN_OK ? st : tn_infer_output(ctx, 0, &three, 1, err);
}

#define OP(op, in, out, attributes, text)                                                         \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_DYNAMIC, .infer = infer_decoded, .summary = text }
#define JPEG_ATTRS                                                                                   \
  "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; try_recover_truncated: bool = false; " \
  "acceptable_fraction: float = 1; dct_method: string = ''"

static const tn_op_def ops[] = {
  OP("DecodeAndCropJpeg", "contents: string, crop_window: int32", "image: uint8", JPEG_ATTRS,
     "decodes a window of a JPEG image"),
  OP("DecodeBmp", "contents: string", "image: uint8", "channels: int = 0", "decodes a BMP image"),
  OP("DecodeGif", "contents: string", "image: uint8", "", "decodes the frames of a GIF image"),
  OP("DecodeImage", "contents: string", "image: dtype",
     "channels: int = 0; dtype: {uint8, uint16, float} = uint8; expand_animations: bool = true",
     "decodes a JPEG, PNG, GIF, BMP or WebP image"),
  OP("DecodeJpeg", "contents: string", "image: uint8", JPEG_ATTRS, "decodes a JPEG image"),
  OP("DecodePng", "contents: string", "image: dtype", "channels: int = 0; dtype: {uint8, uint16} = uint8",
     "decodes a PNG image"),
  OP("DecodeWebP", "contents: string", "image: dtype", "channels: int = 0; dtype: {uint8} = uint8",
     "decodes a WebP image"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "ExtractJpegShape", .inputs = "contents: string",
    .outputs = "image_shape: output_type", .attrs = "output_type: {int32, int64} = int32", .infer = infer_jpeg_shape,
    .summary = "rows, columns and channels of a JPEG image" },
};

#define DECODE_KERNEL(which, title) \
  TN__KERNEL(which, title, decode_create, decode_destroy, decode_prepare, decode_compute)

static const tn_kernel_def kernels[] = {
  DECODE_KERNEL("DecodeAndCropJpeg", "decode_and_crop_jpeg_cpu"),
  DECODE_KERNEL("DecodeBmp", "decode_bmp_cpu"),
  DECODE_KERNEL("DecodeGif", "decode_gif_cpu"),
  DECODE_KERNEL("DecodeImage", "decode_image_cpu"),
  DECODE_KERNEL("DecodeJpeg", "decode_jpeg_cpu"),
  DECODE_KERNEL("DecodePng", "decode_png_cpu"),
  DECODE_KERNEL("DecodeWebP", "decode_webp_cpu"),
  TN__KERNEL("ExtractJpegShape", "jpeg_shape_cpu", NULL, NULL, shape_prepare, shape_compute),
};

TN_OP_FAMILY(image_decode)
