/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients as matrix products. A kernel's `create` passes its kind; the functions below
 * serve as the kernel's other functions.
 *
 *   y       windows of x, times the filter
 *   x       windows of y, times the filter with input and output channels exchanged
 *   filter  transposed windows of x, times y */
#ifndef TN_OPS_NN_CONV_CONV_PRODUCT_H
#define TN_OPS_NN_CONV_CONV_PRODUCT_H

#include <ops/nn/conv/convolution.h>

tn_status tn__conv_create(const tn_operation *op, const tn__conv_kind *kind, void **state, tn_error *err);
void tn__conv_destroy(void *state);
tn_status tn__conv_product_prepare(tn_prepare_ctx *ctx, tn_error *err);
void tn__conv_destroy_plan(void *plan);
tn_status tn__conv_compute(tn_kernel_ctx *ctx);

#define TN__CONV_KERNEL(op_, types_, title, create_)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = title,                 \
    .rank = TN_RANK_C, .create = create_, .destroy = tn__conv_destroy, .prepare = tn__conv_product_prepare,         \
    .destroy_shape_state = tn__conv_destroy_plan, .compute = tn__conv_compute }

#endif
