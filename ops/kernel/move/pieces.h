/* SPDX-License-Identifier: Apache-2.0 */
/* Splits and joins tensors along their first dimension, as tensor arrays and tensor lists do. */
#ifndef TN_OPS_KERNEL_MOVE_PIECES_H
#define TN_OPS_KERNEL_MOVE_PIECES_H

#include <ops/kernel/shapes.h>

/* Rows [begin, begin + n) of a tensor of rank 1 or more, without copying: *out shares the tensor's buffer and keeps it
 * alive. If `keep`, the first dimension stays, with size n; otherwise n must be 1 and the dimension is dropped. */
tn_status tn__rows_of(tn_tensor *whole, int64_t begin, int64_t n, bool keep, tn_tensor **out, tn_error *err);

/* Creates a tensor of zeros, empty strings or null handles. */
tn_status tn__zeros(tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out, tn_error *err);

/* Copies n pieces one after another to output i, which must have room for all. Piece k has rows[k] * row elements, or
 * `row` elements if rows is NULL. A NULL piece stands for zeros. */
tn_status tn__put_together(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *const *pieces, int64_t n, const int64_t *rows,
                           int64_t row);

/* to[k] = a[k] + b[k]; `to` may be a or b. False if the dtype does not support addition. */
bool tn__add_elements(tn_dtype dtype, void *to, const void *a, const void *b, int64_t n);
bool tn__can_add(tn_dtype dtype);

/* Reads a shape operand: a vector with -1 for unknown dimensions, or the scalar -1 for an unknown rank.
 * TN_INVALID_ARGUMENT names input i. */
tn_status tn__shape_operand(const tn_kernel_ctx *ctx, uint32_t i, tn__shape *out);
/* The same in a shape function. A value that is not known yet is not an error. */
void tn__infer_shape_operand(const tn_infer_ctx *ctx, size_t i, tn__shape *out);

/* Merges the other shape into *s. TN_INVALID_ARGUMENT "what: shapes [2] and [3] do not fit". */
tn_status tn__merge_or_fail(tn_error *err, const char *what, tn__shape *s, const int64_t *dims, int32_t rank);
/* True if a shape is compatible with the partial one. */
bool tn__shape_fits(const int64_t *partial, int32_t partial_rank, const int64_t *dims, int32_t rank);

/* Releases n references; entries may be NULL. */
void tn__drop_tensors(tn_tensor **tensors, int64_t n);

#endif
