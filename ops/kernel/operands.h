/* SPDX-License-Identifier: Apache-2.0 */
/* Operands whose values determine shapes: axes, sizes, begins, paddings. Any integer dtype. */
#ifndef TN_OPS_KERNEL_OPERANDS_H
#define TN_OPS_KERNEL_OPERANDS_H

#include <ops/kernel/shapes.h>

/* Element k of a view of integers. The view's data must be set. */
int64_t tn__operand_int(const tn_view *view, int64_t k);
/* Checks that the value of input i is known; TN_INTERNAL if not. */
tn_status tn__want_value(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Checks that input i is a vector of n elements whose value is known. */
tn_status tn__want_vector(const tn_prepare_ctx *ctx, uint32_t i, int64_t n, tn_error *err);
/* Reads input i, a single element of at most `max_rank` dimensions, as an axis of a tensor of rank `rank`. */
tn_status tn__want_axis(const tn_prepare_ctx *ctx, uint32_t i, int32_t max_rank, int32_t rank, int32_t *axis,
                        tn_error *err);

/* The same in a shape function: *axis is -1 if the axis or the rank is unknown. */
tn_status tn__infer_axis(const tn_infer_ctx *ctx, size_t i, int32_t rank, int32_t *axis, tn_error *err);
/* The rank of a tensor with one dimension per element (or row) of input i; -1 if unknown. */
int32_t tn__infer_length(const tn_infer_ctx *ctx, size_t i);

#endif
