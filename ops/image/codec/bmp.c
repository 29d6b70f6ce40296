/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes BMP images without compression, of 8, 24 and 32 bits a pixel. 8 bits are shades of grey. */
#include <ops/image/codec/pixels.h>

#define HEADER 32 /* bytes up to the fields that are read */

static int64_t field(const uint8_t *at)
{
  return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}

static void put_pixel(const uint8_t *from, int64_t from_c, uint8_t *to, int64_t to_c)
{
  for (int k = 0; k < to_c && k < 3; k++) to[k] = from_c == 1 ? from[0] : from[2 - k];
  if (to_c == 4) to[3] = from_c == 4 ? from[3] : 255;
}

tn_status tn__bmp_decode(const tn__coded *in, int channels, tn__pixels *out, tn_error *err)
{
  const uint8_t *data = in->data;
  if (in->size < HEADER)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the BMP data has %zu bytes, wanted %d at least", in->op,
                        in->size, HEADER);
  int64_t header = field(data + 10), w = field(data + 18), h = field(data + 22), rest = 0;
  int bits = data[28] | data[29] << 8, c = bits / 8;
  bool down = h < 0;
  if (down) h = -h;
  if (bits % 8 != 0 || (c != 1 && c != 3 && c != 4))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the BMP image has %d bits a pixel, wanted 8, 24 or 32", in->op,
                        bits);
  int64_t row = w > 0 ? (w * c + 3) / 4 * 4 : 0, size = (int64_t)in->size;
  if (header < HEADER || row == 0 || __builtin_mul_overflow(row, h, &rest) || rest != size - header)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "%s: the BMP data has %lld bytes, which is not %lld of a header and %lld rows of %lld", in->op,
                        (long long)size, (long long)header, (long long)h, (long long)row);
  *out = (tn__pixels){ .frames = 1, .h = h, .w = w, .c = channels != 0 ? channels : c };
  tn_status st = tn__pixels_room(out, in->op, err);
  if (st != TN_OK) return st;
  uint8_t *to = out->data;
  for (int64_t y = 0; y < h; y++) {
    const uint8_t *from = data + header + (down ? y : h - 1 - y) * row;
    for (int64_t x = 0; x < w; x++, from += c, to += out->c) put_pixel(from, c, to, out->c);
  }
  return TN_OK;
}
