/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes cut out of images and resized: boxes float [n, 4] as y1 x1 y2 x2, in parts of the image's size less a pixel,
 * and the image of each, int32 [n]. */
#ifndef TN_OPS_IMAGE_RESIZE_BOXES_H
#define TN_OPS_IMAGE_RESIZE_BOXES_H

#include <math.h>
#include <ops/kernel/shapes.h>

/* Input i is boxes and the one behind it their images; *n is how many there are. */
tn_status tn__want_boxes(const tn_prepare_ctx *ctx, uint32_t i, int64_t *n, tn_error *err);
/* Compute: all boxes are finite and of images below `images`. */
tn_status tn__check_boxes(const tn_kernel_ctx *ctx, uint32_t i, int64_t images);

/* Rows or columns of a crop in those of an image of `size`: place i is first + i * step. */
typedef struct tn__crop_line {
  float first, step, last; /* last: of the image */
  int64_t size;
} tn__crop_line;

static inline tn__crop_line tn__crop_line_of(float begin, float end, int64_t size, int64_t crop)
{
  float last = (float)(size - 1);
  if (crop > 1) return (tn__crop_line){ begin * last, (end - begin) * last / (float)(crop - 1), last, size };
  return (tn__crop_line){ (float)(0.5 * (double)(begin + end) * (double)(size - 1)), 0, last, size };
}

static inline float tn__crop_place(const tn__crop_line *l, int64_t i) { return l->first + (float)i * l->step; }

/* The pixels below and above a place inside; floats of large images are rounded, so they are held to the image. */
static inline int64_t tn__crop_pixel(const tn__crop_line *l, float place)
{
  int64_t pixel = (int64_t)place;
  return pixel < l->size ? pixel : l->size - 1;
}

/* Whether there is a pixel; false for NaN, which huge boxes make. */
static inline bool tn__crop_inside(const tn__crop_line *l, float place) { return place >= 0 && place <= l->last; }

#endif
