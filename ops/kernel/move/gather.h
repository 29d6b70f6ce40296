/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers slices by index, from tensors and from variables: shape computation and copying. */
#ifndef TN_OPS_KERNEL_MOVE_GATHER_H
#define TN_OPS_KERNEL_MOVE_GATHER_H

#include <ops/kernel/shapes.h>

/* ---- along an axis ---- */

/* Resolves the axis and the number of batch dimensions for these ranks of inputs 0 and 1. */
tn_status tn__gather_places(const char *op, int64_t axis_wanted, int64_t batch_wanted, int32_t rank, int32_t index_rank,
                            int32_t *axis, int32_t *batch, tn_error *err);
/* The output's shape; dimensions may be unknown. */
tn_status tn__gather_shape(const char *op, const tn__shape *params, const tn__shape *indices, int32_t axis,
                           int32_t batch, tn__shape *out, tn_error *err);

/* The work is `blocks` blocks of n positions each. Block b uses the n indices starting at b / share * n, and
 * selects among `pool` pieces. */
typedef struct tn__gather_plan {
  int64_t blocks, share, n, pool;
  int64_t piece; /* elements */
} tn__gather_plan;
void tn__gather_plan_init(tn__gather_plan *plan, const int64_t *dims, int32_t rank, const tn_view *indices,
                          int32_t axis, int32_t batch);
/* Checks the indices and copies. If there is nothing to copy, the indices are not checked. */
tn_status tn__gather_run(tn_kernel_ctx *ctx, const tn__gather_plan *plan, const void *params, const tn_view *indices,
                         const tn_view *out);

/* ---- at indices of several dimensions ---- */

/* For indices of shape [..., depth] the output has shape [..., dimensions of params after the first `depth`]. */
tn_status tn__gather_nd_shape(const char *op, const tn__shape *params, const tn__shape *indices, tn__shape *out,
                              tn_error *err);
/* ignore_bad: indices out of range give zeros instead of an error. dims are those of params. */
tn_status tn__gather_nd_run(tn_kernel_ctx *ctx, const void *params, const int64_t *dims, const tn_view *indices,
                            bool ignore_bad, const tn_view *out);

#endif
