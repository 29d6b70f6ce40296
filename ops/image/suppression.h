/* SPDX-License-Identifier: Apache-2.0 */
/* Non-maximum suppression: of overlapping boxes the one with the highest score is kept. */
#ifndef TN_OPS_IMAGE_SUPPRESSION_H
#define TN_OPS_IMAGE_SUPPRESSION_H

#include <stdbool.h>
#include <tenon/op.h>

/* Boxes are y1 x1 y2 x2, opposite corners in either order. Box i begins at boxes[i * box_stride],
 * its score is at scores[i * score_stride]. If `overlaps` is set, boxes i and j have the overlap
 * overlaps[i * n + j] instead of their intersection over union. */
typedef struct tn__suppression {
  const float *boxes, *scores, *overlaps;
  int64_t n, box_stride, score_stride;
  int64_t most;    /* maximum number of boxes kept */
  float threshold; /* boxes that overlap a kept one by more are dropped */
  float least;     /* only scores above it are considered */
  float sigma;     /* if above 0: scores are multiplied by exp(-overlap^2 / (2 sigma)) instead */
  /* Polled for cancellation; the result is then undefined. NULL if called inside a parallel loop. */
  const tn_kernel_ctx *ctx;
  bool half;       /* numbers were halves: overlaps, weights and scores are rounded to half */
} tn__suppression;

/* Scratch bytes that tn__suppress needs for n boxes; false if n exceeds 2^31 - 1. */
bool tn__suppression_scratch(int64_t n, size_t *bytes);
/* Returns the number of kept boxes. *kept are their indices in the order in which they were kept,
 * *scores their final scores. Both point into the scratch memory, which must be aligned to 8 bytes. */
int64_t tn__suppress(const tn__suppression *s, void *scratch, const int32_t **kept, const float **scores);

/* ---- a heap ---- */

typedef struct tn__candidate {
  float score;
  int32_t index;
  int32_t seen;
} tn__candidate;

/* Max-heap by score; of equal scores the lowest index is first. */
void tn__candidates_heap(tn__candidate *heap, int64_t n);
void tn__candidates_sink(tn__candidate *heap, int64_t n, int64_t at); /* after the score at `at` was lowered */

#endif
