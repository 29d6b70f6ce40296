/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 3 by 3 points with fewer products (Winograd's algorithm): tiles of 6 by 6 of the image and the filter
 * are transformed, so that 36 products of matrices replace the 144 of a tile's 16 results, and the results are
 * transformed back. Float, channels last, strides and dilations of 1. */
#ifndef TN_OPS_NN_CONV_WINOGRAD_H
#define TN_OPS_NN_CONV_WINOGRAD_H

#include <ops/kernel/product/gemm.h>
#include <ops/kernel/slots.h>

typedef struct tn__winograd_image {
  int64_t n, h, w, c, oh, ow, oc; /* images, their size and channels, and those of the result */
  int64_t before[2];              /* padding above and to the left */
} tn__winograd_image;

/* ---- parts ---- */

enum { TN__WINOGRAD_TILE = 6, TN__WINOGRAD_OUT = 4, TN__WINOGRAD_POINTS = 36, TN__WINOGRAD_LANES = 16 };

/* The points of the transforms besides 0 and infinity: these two and their negatives. */
#define TN__WINOGRAD_A (2.0f / 3)
#define TN__WINOGRAD_B (3.0f / 2)

int64_t tn__winograd_tiles(const tn__winograd_image *z);
/* The 36 pixels of a tile; `zeros` for those outside the image. */
void tn__winograd_pixels(const tn__winograd_image *z, const float *in, const float *zeros, int64_t tile,
                         const float **at);
/* Transforms the pixels of a tile into its row of 36 matrices, which are `step` elements apart. At least
 * TN__WINOGRAD_LANES channels. */
typedef void (*tn__winograd_enter)(const float *const *from, float *to, int64_t step, int64_t channels);
tn__winograd_enter tn__winograd_enter_of(void);
/* The distance of such matrices of so many elements: an odd number of cache lines, so that their lines do not compete
 * for the same sets of the L1 cache. */
static inline int64_t tn__winograd_step(int64_t elements) { return ((elements + 15) / 16 | 1) * 16; }

/* ---- results and gradients for images ---- */

typedef enum tn__winograd_filter {
  TN__WINOGRAD_CONSTANT, /* [3, 3, c, oc], input 1, a constant */
  TN__WINOGRAD_FED,      /* the same, transformed in each step */
  TN__WINOGRAD_TURNED    /* [3, 3, oc, c], fed: the gradient for the images is a convolution with the turned filter */
} tn__winograd_filter;

typedef struct tn__winograd {
  tn__winograd_image z;
  tn__winograd_filter filter;
  const struct tn__gemm_kernel *kernel;
  const void *packed;       /* the constant filter, transformed, in panels; NULL: it is made in scratch */
  size_t at_packed;
  int64_t tiles, block;     /* of all images; of a block */
  int64_t columns;          /* oc, rounded up to whole panels */
  int64_t x_step, y_step;   /* elements between the matrices of a block before and after the product */
  size_t at_zeros;          /* offset in scratch: a pixel outside the image */
  tn__slots slots;
  double cost_ns;
} tn__winograd;

/* Plans a convolution. False if it would not be faster, memory is short, or a constant filter has elements that are not
 * finite; nothing has changed then. Adds to *scratch. */
bool tn__winograd_plan(tn__winograd *w, const tn__winograd_image *z, tn__winograd_filter filter, tn_prepare_ctx *ctx,
                       size_t *scratch);
/* filter: unused if it is constant. The same results on any number of threads. A NaN or an infinity of the image
 * affects the results whose windows contain it, and no others. False if a filter that is not constant has elements that
 * are not finite: the caller computes the results directly. */
bool tn__winograd_run(const tn__winograd *w, tn_kernel_ctx *ctx, const float *in, const float *filter, float *out,
                      const tn__gemm_then *then);

/* ---- gradients for filters ---- */

typedef struct tn__winograd_sums {
  tn__winograd_image z;
  const struct tn__gemm_kernel *kernel;
  int64_t tiles, block, columns, x_step, y_step; /* as in tn__winograd */
  size_t at_zeros, at_x, at_y, at_sums;          /* offsets in scratch */
  double tile_ns, product_ns;                    /* of a tile's transforms; of a point's product in a block */
} tn__winograd_sums;

/* Plans the gradient [3, 3, c, oc] for the filter. False as above. */
bool tn__winograd_sums_plan(tn__winograd_sums *w, const tn__winograd_image *z, const tn_prepare_ctx *ctx,
                            size_t *scratch);
/* False if elements of the result are not finite: the caller computes it directly, so that a NaN or an infinity
 * affects no other elements than it should. */
bool tn__winograd_sums_run(const tn__winograd_sums *w, tn_kernel_ctx *ctx, const float *in, const float *y,
                           float *filter);

#endif
