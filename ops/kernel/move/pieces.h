/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors taken apart and put together by their first dimension, as arrays and lists of tensors do. */
#ifndef TN_OPS_KERNEL_MOVE_PIECES_H
#define TN_OPS_KERNEL_MOVE_PIECES_H

#include <ops/kernel/shapes.h>

/* Rows [begin, begin + n) of a tensor of rank 1 or more, without a copy: *out holds the tensor's memory. `keep`: the first
 * dimension stays, as n; else n is 1 and it goes. */
tn_status tn__rows_of(tn_tensor *whole, int64_t begin, int64_t n, bool keep, tn_tensor **out, tn_error *err);

/* A tensor of zeros, empty strings, handles of nothing. */
tn_status tn__zeros(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err);

/* Copies n pieces to output i, which has room for all, one after the other. A piece that is NULL is zeros: rows[k] * row
 * elements of them, or `row` elements when rows is NULL. */
tn_status tn__put_together(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *const *pieces, int64_t n, const int64_t *rows,
                           int64_t row);

/* to[k] = a[k] + b[k]; `to` may be a or b. False when elements of this dtype cannot be added. */
bool tn__add_elements(tn_dtype dtype, void *to, const void *a, const void *b, int64_t n);
bool tn__can_add(tn_dtype dtype);

/* The shape that an operand asks for: a vector, -1 for what is not known, or the scalar -1 for an unknown rank.
 * TN_INVALID_ARGUMENT names input i. */
tn_status tn__shape_operand(const tn_kernel_ctx *ctx, uint32_t i, tn__shape *out);
/* The same before any step; what is not known yet is not an error. */
void tn__infer_shape_operand(const tn_infer_ctx *ctx, size_t i, tn__shape *out);

/* *s takes over what the other one knows. TN_INVALID_ARGUMENT "Op: what: shapes [2] and [3] do not fit". */
tn_status tn__merge_or_fail(tn_error *err, const char *what, tn__shape *s, const int64_t *dims, int32_t rank);
/* Whether a shape could be the partial one. */
bool tn__shape_fits(const int64_t *partial, int32_t partial_rank, const int64_t *dims, int32_t rank);

/* References dropped; NULL places allowed. */
void tn__drop_tensors(tn_tensor **tensors, int64_t n);

#endif
