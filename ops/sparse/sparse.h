/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on sparse tensors. A sparse tensor is three inputs: indices, a matrix with a row for each value;
 * values, a vector; and the dense shape, a vector with a number for each column of the indices. */
#ifndef TN_OPS_SPARSE_SPARSE_H
#define TN_OPS_SPARSE_SPARSE_H

#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/sorted_rows.h>

/* For `prepare`: checks the ranks and sizes of a sparse tensor's inputs. */
tn_status tn__want_sparse(const tn_prepare_ctx *ctx, uint32_t indices, uint32_t values, uint32_t shape, tn_error *err);

/* For `compute`: the dense shape in input i, a vector of int64. TN_INVALID_ARGUMENT for negative sizes, too many
 * dimensions, or more than 2^63 - 1 elements. */
tn_status tn__sparse_shape(const tn_kernel_ctx *ctx, uint32_t i, tn__shape *out);
/* Checks that all indices, input i, are inside of this shape. */
tn_status tn__sparse_check_bounds(const tn_kernel_ctx *ctx, uint32_t i, const int64_t *dims, tn__poll *poll);
/* Checks that inputs i and j, vectors of int64, are equal. */
tn_status tn__sparse_same_shapes(const tn_kernel_ctx *ctx, uint32_t i, uint32_t j);

/* The indices as rows that are compared by all columns. */
tn__int_rows tn__sparse_rows(const tn_view *indices);
/* Scratch memory to sort the rows of input i. */
tn_status tn__sparse_sort_scratch(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
/* Sets *sorted to the numbers of the rows in ascending order, in the scratch memory; NULL if they are in order already.
 * TN_CANCELLED if the step is over. */
tn_status tn__sparse_sort(tn_kernel_ctx *ctx, const tn__int_rows *rows, const int64_t **sorted);

/* Sets dynamic output i to a vector of int64. */
tn_status tn__give_ints(tn_kernel_ctx *ctx, uint32_t i, const int64_t *items, int64_t n);
/* Allocates indices and values of n entries of this rank, the outputs i and i + 1. */
tn_status tn__give_entries(tn_kernel_ctx *ctx, uint32_t i, int64_t n, int64_t rank);
/* Copies one value; fails only if out of memory. */
tn_status tn__copy_value(const tn_view *to, int64_t k, const tn_view *from, int64_t i, tn_error *err);
/* Fills a tensor with one element, on several threads if it is large. */
tn_status tn__fill_all(tn_kernel_ctx *ctx, const tn_view *out, const void *value);

/* For shape functions: checks the ranks of a sparse tensor's inputs. *rank is the number of dimensions, -1 if unknown,
 * and *n the number of values. */
tn_status tn__infer_sparse(tn_infer_ctx *ctx, size_t indices, size_t values, size_t shape, int64_t *n, int64_t *rank,
                           tn_error *err);
/* The shape of outputs i and i + 1: indices and values of n entries; -1 = unknown. */
tn_status tn__infer_entries(tn_infer_ctx *ctx, size_t i, int64_t n, int64_t rank, tn_error *err);
/* The outputs i to i + 2 are a sparse tensor with this number of entries and rank. */
tn_status tn__infer_sparse_output(tn_infer_ctx *ctx, size_t i, int64_t n, int64_t rank, tn_error *err);

#endif
