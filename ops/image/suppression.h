/* SPDX-License-Identifier: Apache-2.0 */
/* Of boxes that cover each other the one with the highest score stays. */
#ifndef TN_OPS_IMAGE_SUPPRESSION_H
#define TN_OPS_IMAGE_SUPPRESSION_H

#include <stdbool.h>
#include <tenon/op.h>

/* Boxes y1 x1 y2 x2, opposite corners in either order; box i begins at boxes[i * box_stride], its score is at
 * scores[i * score_stride]. Or, where `overlaps` is set, box i covers overlaps[i * n + j] of box j. */
typedef struct tn__suppression {
  const float *boxes, *scores, *overlaps;
  int64_t n, box_stride, score_stride;
  int64_t most;    /* boxes that may stay */
  float threshold; /* who covers more of one that stays, of what both cover, goes */
  float least;     /* only scores above it count */
  float sigma;     /* above 0: scores shrink by exp(-covered^2 / (2 sigma)) instead */
  const tn_kernel_ctx *ctx; /* whose step may be over: what stays is nonsense then. NULL: it is part of a loop */
  bool half;       /* numbers were halves: parts, weights and scores are rounded to that */
} tn__suppression;

/* Bytes that tn__suppress needs for n boxes; false past 2^31 - 1 of them. */
bool tn__suppression_scratch(int64_t n, size_t *bytes);
/* How many stay: those in *kept with the scores they ended with, in the order in which they were taken. Both lie in the
 * scratch memory, which is aligned to 8. */
int64_t tn__suppress(const tn__suppression *s, void *scratch, const int32_t **kept, const float **scores);

/* ---- a heap ---- */

typedef struct tn__candidate {
  float score;
  int32_t index;
  int32_t seen;
} tn__candidate;

/* The highest score comes first, of equal ones the lowest index. */
void tn__candidates_heap(tn__candidate *heap, int64_t n);
void tn__candidates_sink(tn__candidate *heap, int64_t n, int64_t at); /* after the one at `at` fell */
void tn__candidates_rise(tn__candidate *heap, int64_t at);            /* after one came to the end, at `at` */

#endif
