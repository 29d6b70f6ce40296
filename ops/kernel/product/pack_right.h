/* SPDX-License-Identifier: Apache-2.0 */
/* Packing the constant right operand of a matrix product when a kernel is prepared. */
#ifndef TN_OPS_KERNEL_PRODUCT_PACK_RIGHT_H
#define TN_OPS_KERNEL_PRODUCT_PACK_RIGHT_H

#include <ops/kernel/product/gemm.h>

/* Reads the attribute W of an op whose constant operand is kept in a shorter type. TN__GEMM_FULL if it has none. */
tn__gemm_weights tn__weights_of(const tn_operation *op);

/* Packs input 1, which is B of a plan with all sizes and strides, if it is a constant: in the given kind of weights, or
 * as it is if that is impossible. *packed is then the panels for tn__gemm_run, else NULL: a plan of TN__GEMM_FULL reads
 * the input. The plan is chosen in any case.
 *
 * Results do not depend on whether a float B is packed. They do on whether it is reduced: then lack of memory is an
 * error. */
tn_status tn__pack_right(tn_prepare_ctx *ctx, tn__gemm_plan *plan, tn__gemm_weights weights, const void **packed,
                         tn_error *err);

#endif
