/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any dtype, moved without a look at what they mean. Strings and handles own memory: they are copied by
 * their own rules, into elements of an output, which are empty or hold a value already. */
#ifndef TN_OPS_KERNEL_ELEMENTS_ELEMENTS_H
#define TN_OPS_KERNEL_ELEMENTS_ELEMENTS_H

#include <core/tensor/tensor_internal.h>
#include <tenon/op.h>

/* Copies n elements that do not overlap. Fails for want of memory only, plain dtypes never. */
tn_status tn__copy_elements(tn_dtype dtype, void *to, const void *from, int64_t n, tn_error *err);
/* Writes one element n times. */
tn_status tn__fill_elements(tn_dtype dtype, void *to, const void *value, int64_t n, tn_error *err);
/* The same for plain elements of `size` bytes: 1, 2, 4, 8 or 16. */
void tn__fill_bytes(size_t size, void *to, const void *value, int64_t n);

/* Element k of a view of integers of any width but uint64, whose data is there. */
int64_t tn__index_at(const tn_view *view, int64_t k);

#endif
