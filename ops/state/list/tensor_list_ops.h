/* SPDX-License-Identifier: Apache-2.0 */
/* What ops on tensor lists share: the list of an input, lists given, shapes of elements. */
#ifndef TN_OPS_STATE_LIST_TENSOR_LIST_OPS_H
#define TN_OPS_STATE_LIST_TENSOR_LIST_OPS_H

#include <ops/state/list/tensor_list_store.h>

/* Element k of input i, borrowed for as long as the input is. TN_INVALID_ARGUMENT: it is no list, or, where `dtype` is not
 * TN_DTYPE_INVALID, one of other elements. */
tn_status tn__list_input(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn_dtype dtype, tn__list **out);

/* Makes element k of output i the list; takes over the reference. */
void tn__list_give(const tn_kernel_ctx *ctx, uint32_t i, int64_t k, tn__list *list);

/* For `prepare`. Input 0 is a list, a scalar; output 0 is a scalar, too, or has a shape of compute's. */
tn_status tn__list_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__list_prepare_scalar(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__list_prepare_dynamic(tn_prepare_ctx *ctx, tn_error *err);

/* The shape that elements have as far as input i and the list say. */
tn_status tn__list_element_shape(const tn_kernel_ctx *ctx, uint32_t i, const tn__list *list, tn__shape *out);

/* As that, and as far as n tensors say, NULL ones nothing: then it is known, or it is TN_INVALID_ARGUMENT. `what` is for the
 * message: "Op: `what`, but the shape of elements is [?]". */
tn_status tn__list_full_shape(const tn_kernel_ctx *ctx, tn__shape *shape, tn_tensor *const *items, int64_t n,
                              const char *what);

/* A tensor fits the elements of a list. */
tn_status tn__list_fits(const tn_kernel_ctx *ctx, const tn__list *list, const tn_view *tensor, int32_t skip);

#endif
