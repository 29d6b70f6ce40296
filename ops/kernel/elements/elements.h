/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills elements of any dtype. Strings and handles own memory, so they are assigned one by one; the target
 * elements must be initialised: empty, or holding a value, which is released. */
#ifndef TN_OPS_KERNEL_ELEMENTS_ELEMENTS_H
#define TN_OPS_KERNEL_ELEMENTS_ELEMENTS_H

#include <core/tensor/tensor_internal.h>
#include <tenon/op.h>

/* Copies n elements that do not overlap. Fails only if out of memory; never for plain dtypes. */
tn_status tn__copy_elements(tn_dtype dtype, void *to, const void *from, int64_t n, tn_error *err);
/* Writes one element n times. */
tn_status tn__fill_elements(tn_dtype dtype, void *to, const void *value, int64_t n, tn_error *err);
/* The same for plain elements of `size` bytes: 1, 2, 4, 8 or 16. */
void tn__fill_bytes(size_t size, void *to, const void *value, int64_t n);

/* Element k of a view of integers of any width except uint64. The view's data must be set. */
int64_t tn__index_at(const tn_view *view, int64_t k);

#endif
