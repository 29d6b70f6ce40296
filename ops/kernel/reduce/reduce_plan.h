/* SPDX-License-Identifier: Apache-2.0 */
/* How a reduction over some axes of a shape is walked.
 *
 * Axes of size 1 are left out and neighbours of one kind are merged, so kept and reduced dimensions alternate. The
 * innermost two are the work of one call of a typed loop:
 *
 *   last one kept      a block is `rows` rows of `width` columns, gathered by columns
 *   last one reduced   a block is `width` rows of `rows` elements, each gathered into one accumulator
 *
 * The others are outer dimensions, walked by an odometer. When there are few results and much to reduce, the elements
 * of each are cut into parts that are gathered on their own and merged in order; the cut depends on the shape only, so
 * results do not depend on the number of threads. */
#ifndef TN_OPS_KERNEL_REDUCE_REDUCE_PLAN_H
#define TN_OPS_KERNEL_REDUCE_REDUCE_PLAN_H

#include <ops/kernel/reduce/reduce_loops.h>
#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__reduce_dim {
  int64_t size, stride; /* in elements */
} tn__reduce_dim;

typedef struct tn__reduce_plan {
  size_t bytes;          /* of this allocation */
  const tn__reduce_loops *loops;
  size_t element;        /* bytes */
  bool last_reduced;
  int64_t width, width_stride;
  int64_t rows, row_stride;
  int64_t n_kept_outer, n_reduced_outer; /* products of the outer sizes */
  int64_t block;         /* results that are gathered together, of a width */
  int64_t count;         /* elements that go into one result */
  int64_t parts, part;   /* number of parts; steps of one */
  int32_t n_kept, n_reduced;
  tn__reduce_dim *kept, *reduced; /* outer ones, slowest first */
} tn__reduce_plan;

/* NULL without memory. reduced[i] tells whether dimension i is. dims has no zero. */
tn__reduce_plan *tn__reduce_plan_new(const tn__reduce_loops *loops, const int64_t *dims, int32_t rank,
                                     const bool *reduced);
void tn__reduce_plan_free(tn__reduce_plan *plan); /* NULL allowed */
size_t tn__reduce_plan_scratch(const tn__reduce_plan *plan);
double tn__reduce_plan_cost(const tn__reduce_plan *plan); /* nanoseconds */
/* The work: in and out hold what the plan was made for. ctx is for its scratch and its threads. */
void tn__reduce_plan_run(const tn__reduce_plan *plan, tn_kernel_ctx *ctx, const void *in, void *out);

#endif
