/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution for its images, and so the transposed convolution that enlarges images. With strides
 * above 1 only every stride-th tap contributes to a pixel, and which ones depends on the pixel's position modulo the
 * stride, its phase. The pixels of a phase are a convolution of y by those taps, turned, with strides of 1: a matrix
 * product whose rows are read from a copy of y with a margin of zeros. */
#ifndef TN_OPS_NN_CONV_CONV_PHASES_H
#define TN_OPS_NN_CONV_CONV_PHASES_H

#include <ops/nn/conv/convolution.h>

typedef struct tn__conv_phases tn__conv_phases;

/* For images in one group of channels without dilation. *out is NULL if the shapes are not such, or there are too many
 * phases. z is kept. Adds to *scratch. */
tn_status tn__conv_phases_plan(tn_prepare_ctx *ctx, const tn__conv_sizes *z, tn__gemm_type type, bool constant,
                               tn__conv_phases **out, size_t *scratch, tn_error *err);
void tn__conv_phases_destroy(tn__conv_phases *p); /* NULL allowed */
double tn__conv_phases_cost(const tn__conv_phases *p);
/* filter: unused if it was constant. */
void tn__conv_phases_run(const tn__conv_phases *p, tn_kernel_ctx *ctx, const void *y, const void *filter, void *x);

#endif
