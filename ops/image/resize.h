/* SPDX-License-Identifier: Apache-2.0 */
/* Image resizing: the source positions of the result's rows and columns, and the loops over rows.
 *
 * Images are [batch, rows, columns, channels]. The positions of rows and columns are computed
 * separately, once shapes are known, so a step only iterates over elements. Intermediate numbers
 * are float, whatever the images' dtype is. */
#ifndef TN_OPS_IMAGE_RESIZE_H
#define TN_OPS_IMAGE_RESIZE_H

#include <ops/kernel/bands.h>
#include <ops/kernel/shapes.h>

/* ---- attributes, sizes, shapes ---- */

/* align_corners: the centres of the corner pixels coincide; half_pixel_centers: the corners of the
 * images do. */
typedef struct tn__resize_mode {
  bool align_corners, half_pixel_centers;
} tn__resize_mode;

/* TN_INVALID_ARGUMENT if both are set, unless `both` allows it. */
tn_status tn__resize_mode_read(const tn_operation *op, bool both, tn__resize_mode *mode, tn_error *err);

/* Input pixels per output pixel, for lines of `in` and `out` pixels. */
float tn__resize_scale(tn__resize_mode mode, int64_t in, int64_t out);

/* The position in the old line of pixel i of the new line. */
static inline float tn__resize_place(tn__resize_mode mode, float scale, int64_t i)
{
  return mode.half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

/* The pixel nearest to that position. */
int64_t tn__resize_nearest(tn__resize_mode mode, float scale, int64_t i, int64_t in);

/* Checks that input i is a batch of images with at least one row, one column and, if `channels`,
 * one channel. */
tn_status tn__want_images(const tn_prepare_ctx *ctx, uint32_t i, bool channels, tn_error *err);
/* Reads input i, the two sizes of images, which must be above 0. */
tn_status tn__want_image_size(const tn_prepare_ctx *ctx, uint32_t i, int64_t size[2], tn_error *err);
/* Rows, columns and channels of images; rows and columns of the result. */
typedef struct tn__resize_sizes {
  int64_t h, w, c, oh, ow;
  int64_t lines, elements; /* of the result: rows of all images */
} tn__resize_sizes;
/* For prepare: output 0 has the batch and channels of input 0 and the two sizes. */
tn_status tn__prepare_resized(tn_prepare_ctx *ctx, const int64_t size[2], tn__resize_sizes *out, tn_error *err);
/* Output 0 has the batch and channels of input 0, and the rows and columns given by the values of
 * input 1. */
tn_status tn__infer_resized(tn_infer_ctx *ctx, tn_error *err);
/* Output 0 has the batch and channels of input 0, and the rows and columns of input 1. */
tn_status tn__infer_resized_like(tn_infer_ctx *ctx, tn_error *err);

/* ---- lines as weighted sums ---- */

/* out[i] = sum of weights[k] * in[indices[k]], firsts[i] <= k < firsts[i + 1]. */
typedef struct tn__resize_taps {
  int64_t n_in, n_out;
  int64_t *firsts;
  int32_t *indices;
  float *weights;
  size_t bytes; /* of the allocation, which begins at firsts */
  int64_t room; /* capacity in taps */
  bool same;    /* each line is a copy of the input line with its index */
} tn__resize_taps;

/* Allocates n_out lines with room for `room` taps in total; they are empty. tn__resize_taps_fini
 * accepts a zeroed one. */
tn_status tn__resize_taps_create(tn__resize_taps *taps, int64_t n_in, int64_t n_out, int64_t room, tn_error *err);
void tn__resize_taps_fini(tn__resize_taps *taps);
/* Appends a tap to line i. Lines must be filled in order. */
static inline void tn__resize_taps_add(tn__resize_taps *taps, int64_t i, int64_t index, float weight)
{
  int64_t k = taps->firsts[i + 1]++;
  taps->indices[k] = (int32_t)index;
  taps->weights[k] = weight;
}
/* Starts line i; call it before adding its taps. */
static inline void tn__resize_taps_line(tn__resize_taps *taps, int64_t i) { taps->firsts[i + 1] = taps->firsts[i]; }
/* *out has a line for each of the n_in inputs, with a tap for each line of `taps` that the input
 * contributes to. */
tn_status tn__resize_taps_transpose(const tn__resize_taps *taps, tn__resize_taps *out, tn_error *err);

tn_status tn__resize_taps_bilinear(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err);
tn_status tn__resize_taps_bicubic(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err);
tn_status tn__resize_taps_area(tn__resize_taps *taps, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err);

/* A sampling kernel. antialias: if the result is smaller, the kernel is widened to the size of its
 * pixels. */
typedef struct tn__resize_sampler {
  int kernel;
  bool antialias;
} tn__resize_sampler;
tn_status tn__resize_sampler_read(const tn_operation *op, tn__resize_sampler *s, tn_error *err);
/* Pixel x of the image is at scale * x + translation in the result; scale is above 0. */
tn_status tn__resize_taps_sampled(tn__resize_taps *taps, const tn__resize_sampler *s, float scale, float translation,
                                  int64_t in, int64_t out, tn_error *err);

/* ---- loops ---- */

/* Bilinear interpolation: from in[lower[i]] to in[upper[i]], `lerp[i]` of the way. `safe` is the
 * number of leading pixels whose `upper` is below the last pixel, so that four numbers may be read
 * where a pixel has three. */
typedef struct tn__lerp {
  int32_t *lower, *upper;
  float *lerp;
  int64_t n, safe;
  size_t bytes; /* of the allocation, which begins at lower */
  bool same;
} tn__lerp;
tn_status tn__lerp_create(tn__lerp *l, tn__resize_mode mode, int64_t in, int64_t out, tn_error *err);
void tn__lerp_destroy(tn__lerp *l);

/* A row of pixels with c channels. `all`: four numbers may be read from any pixel, including the
 * last. */
void tn__lerp_row(const tn__lerp *l, const float *in, int64_t c, bool all, float *out);
/* out = a + (b - a) * lerp, n numbers. */
void tn__lerp_rows(const float *a, const float *b, float lerp, int64_t n, float *out);

/* out = weight * in, or out += weight * in if `add`; n numbers. */
void tn__weigh(const float *in, float weight, int64_t n, bool add, float *out);
/* A row of pixels with c channels. */
void tn__resize_taps_row(const tn__resize_taps *taps, const float *in, int64_t c, float *out);

#endif
