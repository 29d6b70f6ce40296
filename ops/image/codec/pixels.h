/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded images, and the functions that decode each format.
 *
 * A decoder fills in a zeroed tn__pixels, whose content the caller frees also after an error. Malformed input gives
 * TN_INVALID_ARGUMENT; `op` is for messages. */
#ifndef TN_OPS_IMAGE_CODEC_PIXELS_H
#define TN_OPS_IMAGE_CODEC_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/op.h>

typedef struct tn__pixels {
  void *data; /* uint8_t, or uint16_t if wide: frames x h x w x c */
  size_t bytes;
  int64_t frames, h, w, c;
  bool wide;
} tn__pixels;

/* Allocates `data` for the sizes, which are checked. */
tn_status tn__pixels_room(tn__pixels *p, const char *op, tn_error *err);
void tn__pixels_fini(tn__pixels *p);

/* A text to decode. */
typedef struct tn__coded {
  const char *op;
  const uint8_t *data;
  size_t size;
} tn__coded;

/* channels: 0 for those of the image. */
tn_status tn__png_decode(const tn__coded *in, int channels, bool wide, tn__pixels *out, tn_error *err);
tn_status tn__bmp_decode(const tn__coded *in, int channels, tn__pixels *out, tn_error *err);
tn_status tn__gif_decode(const tn__coded *in, bool all_frames, tn__pixels *out, tn_error *err);
tn_status tn__webp_decode(const tn__coded *in, int channels, tn__pixels *out, tn_error *err);

typedef struct tn__jpeg_options {
  int channels, ratio;
  bool fancy, recover, fast;
  float acceptable;       /* part of the rows that must be there if `recover` */
  bool crops;
  int64_t window[4];      /* y, x, height, width */
} tn__jpeg_options;
tn_status tn__jpeg_decode(const tn__coded *in, const tn__jpeg_options *o, tn__pixels *out, tn_error *err);
/* Sets the sizes of *out only. */
tn_status tn__jpeg_shape(const tn__coded *in, tn__pixels *out, tn_error *err);

/* ---- encoders ---- */

/* A growing text. */
typedef struct tn__encoded {
  uint8_t *data;
  size_t size, capacity;
} tn__encoded;
bool tn__encoded_add(tn__encoded *e, const void *data, size_t size);
void tn__encoded_fini(tn__encoded *e);

typedef struct tn__jpeg_encoding {
  int quality, unit, x_density, y_density; /* unit: 1 inch, 2 centimetre */
  bool progressive, optimize, downsample;
  const char *xmp; /* not terminated */
  size_t xmp_size;
} tn__jpeg_encoding;

tn_status tn__png_encode(const char *op, const tn__pixels *in, int compression, tn__encoded *out, tn_error *err);
tn_status tn__jpeg_encode(const char *op, const tn__pixels *in, const tn__jpeg_encoding *how, tn__encoded *out,
                          tn_error *err);

#endif
