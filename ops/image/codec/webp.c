/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes WebP images that are not animated. */
#include <ops/kernel/library.h>
#include <ops/image/codec/pixels.h>

#define NEEDS "WebP images need libwebp"

#ifdef TN_LIBWEBP
#include <webp/decode.h>

#define MAP(F)           \
  F(WebPDecodeRGBAInto)  \
  F(WebPDecodeRGBInto)   \
  F(WebPGetFeaturesInternal)

typedef struct functions {
  MAP(TN__LIBRARY_MEMBER)
} functions;

static tn_status invalid(const tn__coded *in, const char *why, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the WebP data of %zu bytes is invalid%s", in->op, in->size, why);
}

tn_status tn__webp_decode(const tn__coded *in, int channels, tn__pixels *out, tn_error *err)
{
  static const char *const names[] = { MAP(TN__LIBRARY_NAME) };
  functions f;
  WebPBitstreamFeatures features;
  tn_status st = tn__library_load(TN_LIBWEBP, NEEDS, names, &f, sizeof names / sizeof *names, err);
  if (st != TN_OK) return st;
  if (f.WebPGetFeaturesInternal(in->data, in->size, &features, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK)
    return invalid(in, "", err);
  if (features.has_animation) return invalid(in, ": it is animated", err);
  *out = (tn__pixels){ .frames = 1, .h = features.height, .w = features.width };
  out->c = features.has_alpha ? 4 : 3;
  if (channels != 0 && channels != out->c)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: channels is %d, the WebP image has %d", in->op, channels,
                        (int)out->c);
  st = tn__pixels_room(out, in->op, err);
  if (st != TN_OK) return st;
  int stride = (int)(out->w * out->c);
  const uint8_t *done = out->c == 4 ? f.WebPDecodeRGBAInto(in->data, in->size, out->data, out->bytes, stride)
                                    : f.WebPDecodeRGBInto(in->data, in->size, out->data, out->bytes, stride);
  return done != NULL ? TN_OK : invalid(in, "", err);
}
#else
tn_status tn__webp_decode(const tn__coded *in, int channels, tn__pixels *out, tn_error *err)
{
  (void)in, (void)channels, (void)out;
  return tn__library_load(NULL, NEEDS, NULL, NULL, 0, err);
}
#endif
