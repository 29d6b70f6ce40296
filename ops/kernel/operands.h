/* SPDX-License-Identifier: Apache-2.0 */
/* Operands whose values decide shapes: axes, sizes, begins, paddings. Any integer dtype. */
#ifndef TN_OPS_KERNEL_OPERANDS_H
#define TN_OPS_KERNEL_OPERANDS_H

#include <ops/kernel/shapes.h>

/* Element k of a view of integers whose data is there. */
int64_t tn__operand_int(const tn_view *view, int64_t k);
/* The value of input i must be there: TN_INTERNAL when it is not. */
tn_status tn__want_value(const tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Input i must be a vector of n elements whose value is there. */
tn_status tn__want_vector(const tn_prepare_ctx *ctx, uint32_t i, int64_t n, tn_error *err);
/* Input i must be one element of at most `max_rank` dimensions: an axis of a tensor of that rank. */
tn_status tn__want_axis(const tn_prepare_ctx *ctx, uint32_t i, int32_t max_rank, int32_t rank, int32_t *axis,
                        tn_error *err);

/* The same in a shape function: *axis is -1 where it or the rank is not known. */
tn_status tn__infer_axis(const tn_infer_ctx *ctx, size_t i, int32_t rank, int32_t *axis, tn_error *err);
/* The rank of a tensor that has a dimension for each element (or row) of input i; -1 = not known. */
int32_t tn__infer_length(const tn_infer_ctx *ctx, size_t i);

#endif
