/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over everything but the channels of a tensor. */
#ifndef GPU_OPS_KERNEL_COLUMNS_H
#define GPU_OPS_KERNEL_COLUMNS_H

#include "ops/kernel/elements.h"

/* Memory of a node: GPU_ARG_INPUT and GPU_ARG_OUTPUT with a number, GPU_ARG_SCRATCH with a place. */
typedef struct gpu_ref {
  int kind;
  size_t at;
} gpu_ref;
void gpu_arg_ref(gpu_launch *l, gpu_ref ref);

/* Element [n][c][inner] of a tensor of `terms` elements for each channel. */
typedef struct gpu_columns {
  tn_dtype dtype;
  int64_t channels, inner, terms;
} gpu_columns;
/* Channels are last, or with channels_first dimension 1. */
gpu_columns gpu_columns_of(const gpu_value *v, bool channels_first);

enum { GPU_SUM_PLAIN, GPU_SUM_SQUARES, GPU_SUM_WITH };
/* Adds launches: to[c] = by * sum of x, of (x - mean)^2, or of x (y - mean). `to` is of dtype `as`; y and mean are
 * read where the kind has them. mean is of the type that sums have. */
void gpu_columns_sum(gpu_node *n, const gpu_columns *c, int kind, gpu_ref x, gpu_ref y, gpu_ref mean, float by,
                     gpu_ref to, tn_dtype as);

#endif
