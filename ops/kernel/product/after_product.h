/* SPDX-License-Identifier: Apache-2.0 */
/* The epilogue of a fused product, done to a few rows of the result at a time, as soon as they are complete. */
#ifndef TN_OPS_KERNEL_PRODUCT_AFTER_PRODUCT_H
#define TN_OPS_KERNEL_PRODUCT_AFTER_PRODUCT_H

#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/product/gemm.h>

typedef struct tn__after_product {
  tn__gemm_then then;
  const tn__epilogue *epilogue;
  const float *out;      /* the result */
  tn_view *const *args;
  int64_t column;            /* of the result that the product's first one is */
  uint32_t first, first_arg; /* step and arg that `rows` begins with: the product does those before */
} tn__after_product;

/* Of the op's attributes where it has them; else there are no steps. TN_INVALID_ARGUMENT as tn__epilogue_read,
 * TN_UNIMPLEMENTED when channels, which biases are for, do not come last. */
tn_status tn__after_product_read(const tn_operation *op, bool channels_last, tn__epilogue *out, tn_error *err);
/* For `prepare`: whether the inputs from `first` on fit a result of this shape. TN_INVALID_ARGUMENT names the input. */
tn_status tn__after_product_check(const tn__epilogue *e, const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims,
                                  int32_t rank, tn_error *err);
/* For `compute`: what to give to tn__gemm_run_then, NULL when there are no steps. Output 0 is float and as `prepare`
 * said; column 0 of the product is its column `column`. */
const tn__gemm_then *tn__after_product_set(tn__after_product *a, const tn__epilogue *e, const tn_kernel_ctx *ctx,
                                           uint32_t first, int64_t column);
/* What a kernel that has no bias and clamp of its own does to complete rows, before `rows`. `then` is of _set. */
void tn__after_product_finish(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns);

#endif
