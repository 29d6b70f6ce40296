/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes that are cropped from images and resized: boxes float [n, 4] as y1 x1 y2 x2, relative to
 * the image's size minus one pixel, and the image of each box, int32 [n]. */
#ifndef TN_OPS_IMAGE_RESIZE_BOXES_H
#define TN_OPS_IMAGE_RESIZE_BOXES_H

#include <math.h>
#include <ops/kernel/shapes.h>

/* Checks the shapes of boxes in input i and their images in input i + 1; *n is the number of boxes. */
tn_status tn__want_boxes(const tn_prepare_ctx *ctx, uint32_t i, int64_t *n, tn_error *err);
/* For compute: checks that all boxes are finite and their image numbers are below `images`. */
tn_status tn__check_boxes(const tn_kernel_ctx *ctx, uint32_t i, int64_t images);

/* Maps rows or columns of a crop to those of an image of `size`: index i is at first + i * step. */
typedef struct tn__crop_line {
  float first, step, last; /* last: last index of the image */
  int64_t size;
} tn__crop_line;

static inline tn__crop_line tn__crop_line_of(float begin, float end, int64_t size, int64_t crop)
{
  float last = (float)(size - 1);
  if (crop > 1) return (tn__crop_line){ begin * last, (end - begin) * last / (float)(crop - 1), last, size };
  return (tn__crop_line){ (float)(0.5 * (double)(begin + end) * (double)(size - 1)), 0, last, size };
}

static inline float tn__crop_place(const tn__crop_line *l, int64_t i) { return l->first + (float)i * l->step; }

/* The pixel at or before a position inside the image. Clamped, because float rounds in large images. */
static inline int64_t tn__crop_pixel(const tn__crop_line *l, float place)
{
  int64_t pixel = (int64_t)place;
  return pixel < l->size ? pixel : l->size - 1;
}

/* Whether a position is inside the image; false for NaN, which results from huge boxes. */
static inline bool tn__crop_inside(const tn__crop_line *l, float place) { return place >= 0 && place <= l->last; }

#endif
