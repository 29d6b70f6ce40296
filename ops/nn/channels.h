/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as channels: sums over everything but the channels, and what batch normalisation needs of that.
 *
 * Channels last is many rows of one pixel, channels first is planes; in the middle stands [outer][channel][inner]. Sums
 * are gathered in float over a few neighbours and in double beyond that; parts are cut by the shape alone, so that
 * results do not depend on the number of threads. */
#ifndef TN_OPS_NN_CHANNELS_H
#define TN_OPS_NN_CHANNELS_H

#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__channels {
  int64_t outer, c, inner;
  int64_t count;       /* elements of a channel; 0: outer and inner may be any numbers */
  int64_t parts, part; /* of the outer places; elements of one */
  size_t scratch;      /* bytes for tn__channels_sums */
} tn__channels;

/* dims has a channel dimension at `axis`; `elements` is their product. */
void tn__channels_plan(tn__channels *p, const int64_t *dims, int32_t rank, int32_t axis, int64_t elements);

/* first[c] = sum of y, second[c] = sum of (x - shift[c]) * y; where y is NULL it is x - shift[c], where shift is, 0. */
void tn__channels_sums(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift, const float *y,
                       double *first, double *second, void *scratch);

/* out = (x - shift[c]) * scale[c] + add[c] + y * by[c]; without y and by when they are NULL. out may be x or y. */
void tn__channels_scale(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift,
                        const float *scale, const float *add, const float *y, const float *by, float *out);

#endif
