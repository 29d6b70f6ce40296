/* SPDX-License-Identifier: Apache-2.0 */
/* Converts arrays of short numbers to the type in which sums of products are computed, and back. */
#ifndef TN_OPS_KERNEL_ELEMENTS_WIDEN_H
#define TN_OPS_KERNEL_ELEMENTS_WIDEN_H

#include <stdbool.h>
#include <tenon/op.h>

/* float for half and bfloat16, int32 for 8-bit and 16-bit integers, otherwise the dtype itself. */
tn_dtype tn__wide_dtype(tn_dtype dtype);

/* Converts n elements: half, bfloat16, int8, uint8 or int16 to float or int32. */
void tn__widen(tn_dtype from_dtype, const void *from, tn_dtype to_dtype, void *to, int64_t n);
/* float to half or bfloat16 (rounded once), int32 to int16 (low bits). */
void tn__narrow(tn_dtype to_dtype, const void *from, void *to, int64_t n);

/* The same, on several threads if there are enough elements. */
void tn__widen_all(tn_kernel_ctx *ctx, tn_dtype from_dtype, const void *from, tn_dtype to_dtype, void *to, int64_t n);
void tn__narrow_all(tn_kernel_ctx *ctx, tn_dtype to_dtype, const void *from, void *to, int64_t n);

#endif
