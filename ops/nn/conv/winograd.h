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
  int64_t down, across;     /* tiles of an image */
  int64_t tiles, block;     /* of all images; of a block */
  int64_t columns;          /* oc, rounded up to whole panels */
  int64_t x_step, y_step;   /* elements between the matrices of a block before and after the product */
  size_t at_zeros;          /* offset in scratch: a pixel outside the image */
  tn__slots slots;
  double cost_ns;
} tn__winograd;

/* Plans a convolution. False if it would not be faster or memory is short; nothing has changed then. Adds to *scratch.
 */
bool tn__winograd_plan(tn__winograd *w, const tn__winograd_image *z, tn__winograd_filter filter, tn_prepare_ctx *ctx,
                       size_t *scratch);
/* filter: unused if it is constant. The same results on any number of threads. A NaN or an infinity affects the results
 * whose windows contain it, and no others. */
void tn__winograd_run(const tn__winograd *w, tn_kernel_ctx *ctx, const float *in, const float *filter, float *out,
                      const tn__gemm_then *then);

#endif
