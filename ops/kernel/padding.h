/* SPDX-License-Identifier: Apache-2.0 */
/* Paddings as ops have them: a matrix with a row for each dimension, places before and behind it. */
#ifndef TN_OPS_KERNEL_PADDING_H
#define TN_OPS_KERNEL_PADDING_H

#include <ops/kernel/operands.h>

typedef struct tn__paddings {
  int32_t rank;
  int64_t before[TN_MAX_RANK], after[TN_MAX_RANK];
} tn__paddings;

/* Input i, for the dimensions of input 0. TN_INVALID_ARGUMENT for another shape, and for a number below 0. */
tn_status tn__paddings_read(const tn_prepare_ctx *ctx, uint32_t i, tn__paddings *out, tn_error *err);
/* Output 0 of a shape function: input 0 with paddings more (sign 1) or less (sign -1). */
tn_status tn__paddings_infer(tn_infer_ctx *ctx, size_t i, int sign, tn_error *err);

#endif
