/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on tensor lists: lists as inputs and outputs, shapes of elements. */
#ifndef TN_OPS_STATE_LIST_TENSOR_LIST_OPS_H
#define TN_OPS_STATE_LIST_TENSOR_LIST_OPS_H

#include <ops/state/list/tensor_list_store.h>

/* The list that is element k of input i, borrowed as long as the input. TN_INVALID_ARGUMENT: it is
 * no list, or, unless `dtype` is TN_DTYPE_INVALID, its elements have another dtype. */
tn_status tn__list_input(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn_dtype dtype, tn__list **out);

/* Sets element k of output i to the list; takes over the reference. */
void tn__list_give(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn__list *list);

/* For prepare. Input 0 is a scalar list. Output 0 is a scalar, too, or compute determines its shape. */
tn_status tn__list_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__list_prepare_scalar(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__list_prepare_dynamic(tn_prepare_ctx *ctx, tn_error *err);

/* The shape of elements, merged from input i and the list; it may be partial. */
tn_status tn__list_element_shape(const tn_kernel_ctx *ctx, uint32_t i, const tn__list *list, tn__shape *out);

/* Also merges the shapes of n tensors, where NULL ones are skipped. TN_INVALID_ARGUMENT if the
 * result is not fully known. `what` is for the message: "Op: `what`, but the shape of elements is
 * [?]". */
tn_status tn__list_full_shape(const tn_kernel_ctx *ctx, tn__shape *shape, tn_tensor *const *items, int64_t n,
                              const char *what);

/* Checks that a tensor fits the elements of a list. */
tn_status tn__list_fits(const tn_kernel_ctx *ctx, const tn__list *list, const tn_view *tensor, int32_t skip);

#endif
