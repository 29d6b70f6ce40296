/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on ragged tensors. Row splits are vectors of int32 or int64: row i has the values [splits[i],
 * splits[i + 1]) of the next level. */
#ifndef TN_OPS_RAGGED_RAGGED_H
#define TN_OPS_RAGGED_RAGGED_H

#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

static inline void tn__split_put(const tn_view *splits, int64_t k, int64_t value)
{
  if (splits->dtype == TN_INT64) ((int64_t *)splits->data)[k] = value;
  else ((int32_t *)splits->data)[k] = (int32_t)value;
}

/* Whether a split fits the dtype of the splits. */
static inline bool tn__split_fits(tn_dtype dtype, int64_t value) { return dtype == TN_INT64 || value <= INT32_MAX; }

/* Checks that splits, input i, start at 0, do not descend, and end with `rows`. */
tn_status tn__splits_check(const tn_kernel_ctx *ctx, uint32_t i, int64_t rows, tn__poll *poll);

#endif
