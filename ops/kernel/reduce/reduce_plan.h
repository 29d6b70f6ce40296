/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration order of a reduction over some axes of a shape.
 *
 * Axes of size 1 are dropped and adjacent axes of the same kind are merged, so kept and reduced dimensions alternate. A
 * single call of a typed loop handles the innermost two:
 *
 *   last one kept      a block is `rows` rows of `width` columns, accumulated by columns
 *   last one reduced   a block is `width` rows of `rows` elements, each accumulated into one accumulator
 *
 * The remaining dimensions are outer ones, iterated by an odometer. If there are few results and many elements, the
 * elements of each result are cut into parts, which are reduced separately and combined in order. The cut depends
 * only on the shape, so results do not depend on the number of threads. */
#ifndef TN_OPS_KERNEL_REDUCE_REDUCE_PLAN_H
#define TN_OPS_KERNEL_REDUCE_REDUCE_PLAN_H

#include <ops/kernel/reduce/reduce_loops.h>
#include <stdbool.h>
#include <tenon/op.h>

typedef struct tn__reduce_dim {
  int64_t size, stride; /* in elements */
} tn__reduce_dim;

typedef struct tn__reduce_plan {
  size_t bytes;          /* size of this allocation */
  const tn__reduce_loops *loops;
  size_t element;        /* bytes per element */
  bool last_reduced;
  int64_t width, width_stride;
  int64_t rows, row_stride;
  int64_t n_kept_outer, n_reduced_outer; /* products of the outer sizes */
  int64_t block;         /* results of a width that are computed together */
  int64_t count;         /* elements reduced into each result */
  int64_t parts, part;   /* number of parts; steps per part */
  int32_t n_kept, n_reduced;
  tn__reduce_dim *kept, *reduced; /* outer dimensions, slowest first */
} tn__reduce_plan;

/* Creates a plan; NULL if out of memory. reduced[i] tells whether dimension i is reduced. dims must not contain 0. */
tn__reduce_plan *tn__reduce_plan_create(const tn__reduce_loops *loops, const int64_t *dims, int32_t rank,
                                     const bool *reduced);
void tn__reduce_plan_destroy(tn__reduce_plan *plan); /* NULL allowed */
size_t tn__reduce_plan_scratch(const tn__reduce_plan *plan);
double tn__reduce_plan_cost(const tn__reduce_plan *plan); /* nanoseconds */
/* Runs the reduction. in and out must match the plan's shape and dtype. ctx provides scratch memory and threads. */
void tn__reduce_plan_run(const tn__reduce_plan *plan, tn_kernel_ctx *ctx, const void *in, void *out);

#endif
