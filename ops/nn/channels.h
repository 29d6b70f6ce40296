/* SPDX-License-Identifier: Apache-2.0 */
/* Per-channel operations for batch normalisation: sums over everything except the channels, and scaling.
 *
 * A tensor is viewed as [outer][channel][inner]. inner is 1 if channels are last; if channels are first, each
 * channel is a plane of inner elements. Sums accumulate a few neighbouring terms in float, then continue in double.
 * The cut into parts depends only on the shape, so results do not depend on the number of threads. */
#ifndef TN_OPS_NN_CHANNELS_H
#define TN_OPS_NN_CHANNELS_H

#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__channels {
  int64_t outer, c, inner;
  int64_t count;       /* elements per channel; if 0, outer and inner are not set */
  int64_t parts, part; /* number of parts that `outer` is cut into; outer indices per part */
  size_t scratch;      /* bytes for tn__channels_sums */
} tn__channels;

/* `axis` is the channel dimension; `elements` is the product of dims. */
void tn__channels_plan(tn__channels *p, const int64_t *dims, int32_t rank, int32_t axis, int64_t elements);

/* first[c] = sum of y, second[c] = sum of (x - shift[c]) * y. If y is NULL, x - shift[c] takes its place; if shift is
 * NULL, it is 0. */
void tn__channels_sums(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift, const float *y,
                       double *first, double *second, void *scratch);

/* out = (x - shift[c]) * scale[c] + add[c] + y * by[c]; the last term is omitted if y and by are NULL. out may be x
 * or y. */
void tn__channels_scale(const tn__channels *p, tn_kernel_ctx *ctx, const float *x, const float *shift,
                        const float *scale, const float *add, const float *y, const float *by, float *out);

#endif
