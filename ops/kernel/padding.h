/* SPDX-License-Identifier: Apache-2.0 */
/* Padding operands: a matrix with one row per dimension, holding the padding before and after it. */
#ifndef TN_OPS_KERNEL_PADDING_H
#define TN_OPS_KERNEL_PADDING_H

#include <ops/kernel/operands.h>

typedef struct tn__paddings {
  int32_t rank;
  int64_t before[TN_MAX_RANK], after[TN_MAX_RANK];
} tn__paddings;

/* Reads input i as the paddings of input 0. TN_INVALID_ARGUMENT if its shape does not match or a number is below 0. */
tn_status tn__paddings_read(const tn_prepare_ctx *ctx, uint32_t i, tn__paddings *out, tn_error *err);
/* Shape function for output 0: input 0 with the paddings added (sign 1) or removed (sign -1). */
tn_status tn__paddings_infer(tn_infer_ctx *ctx, size_t i, int sign, tn_error *err);

#endif
