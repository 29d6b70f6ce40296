/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients as matrix products. A kernel's `create` names its kind; the other functions are the
 * kernel's own.
 *
 *   y       windows of x, times the filter
 *   x       windows of y, times the filter turned around
 *   filter  windows of x lying across, times y */
#ifndef TN_OPS_NN_CONV_PRODUCT_H
#define TN_OPS_NN_CONV_PRODUCT_H

#include <ops/nn/convolution.h>

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
