/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue of a fused product, applied to a few rows of the result at a time as soon as they are complete. */
#ifndef TN_OPS_KERNEL_PRODUCT_AFTER_PRODUCT_H
#define TN_OPS_KERNEL_PRODUCT_AFTER_PRODUCT_H

#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/product/gemm.h>

typedef struct tn__after_product {
  tn__gemm_then then;
  const tn__epilogue *epilogue;
  const float *out;      /* the result */
  tn_view *const *args;
  int64_t column;            /* the result's column that is column 0 of the product */
  uint32_t first, first_arg; /* first step and argument for `rows`; the product itself applies the earlier ones */
  bool reproducible;
} tn__after_product;

/* Reads the epilogue from the op's attributes; there are no steps if the op lacks them. TN_INVALID_ARGUMENT as
 * tn__epilogue_read; TN_UNIMPLEMENTED if there are steps and channels are not the last dimension, as biases require. */
tn_status tn__after_product_read(const tn_operation *op, bool channels_last, tn__epilogue *out, tn_error *err);
/* For `prepare`: checks that the inputs starting at `first` fit a result of this shape. TN_INVALID_ARGUMENT names the
 * input. */
tn_status tn__after_product_check(const tn__epilogue *e, const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims,
                                  int32_t rank, tn_error *err);
/* For `compute`: returns the argument for tn__gemm_run_then, NULL if there are no steps. Output 0 must be float,
 * with the shape set in `prepare`. Column 0 of the product is column `column` of the output. */
const tn__gemm_then *tn__after_product_set(tn__after_product *a, const tn__epilogue *e, const tn_kernel_ctx *ctx,
                                           uint32_t first, int64_t column);
/* Applies bias and clamp to complete rows, for a product that does not do so itself. Call it before `rows`. `then` must
 * come from tn__after_product_set. */
void tn__after_product_finish(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns);

#endif
