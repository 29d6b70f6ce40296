/* SPDX-License-Identifier: Apache-2.0 */
/* Joins tensors along an axis, and splits them.
 *
 * The whole has `rows` rows of `row` bytes. Each part has the same number of rows and holds a contiguous range of
 * each row of the whole. Example: to join tensors of rank 3 along axis 1, dimension 0 counts the rows, and a row
 * spans dimensions 1 and 2. */
#ifndef TN_OPS_KERNEL_MOVE_JOIN_H
#define TN_OPS_KERNEL_MOVE_JOIN_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/move/strided.h>

typedef struct tn__join_part {
  uint32_t index;        /* index of the part's view */
  size_t offset, width;  /* position and size within a row, in bytes */
  tn__strided_line line; /* copy loop for units of `width` bytes */
} tn__join_part;

typedef struct tn__join {
  size_t bytes; /* size of this allocation */
  tn_dtype dtype;
  int64_t rows;
  int64_t block;     /* rows moved at a time; 0 if one row exceeds a block */
  size_t row, place; /* bytes of a row of the whole, and of one index along the axis */
  size_t filled;     /* bytes of a row covered by the parts added so far */
  uint32_t n_parts;
  tn__join_part parts[]; /* the parts that have elements, in order */
} tn__join;

tn_status tn__join_no_memory(const tn_prepare_ctx *ctx, tn_error *err);
/* Creates a plan for a whole of this shape, which must have elements. NULL if out of memory. */
tn__join *tn__join_create(tn_dtype dtype, const int64_t *dims, int32_t axis, int32_t rank, uint32_t max_parts);
/* Adds the next part, of `size` along the axis. The sizes of all parts must add up to dims[axis]. */
void tn__join_add(tn__join *join, uint32_t index, int64_t size);
double tn__join_cost(const tn__join *join); /* nanoseconds */
void tn__join_destroy(tn__join *join);         /* NULL allowed */

/* views[index] are the parts. Strings and handles of the target must be zeroed. Fails if out of memory, and with
 * TN_CANCELLED if the step has been stopped; both only for elements that own memory. */
tn_status tn__join_gather(const tn__join *join, tn_kernel_ctx *ctx, tn_view *const *views, void *whole);
/* Copies bytes [begin, end) of the whole to a separate buffer. Only for dtypes whose elements do not own memory. */
void tn__join_read(const tn__join *join, tn_view *const *views, size_t begin, size_t end, char *to);
tn_status tn__join_scatter(const tn__join *join, tn_kernel_ctx *ctx, const void *whole, tn_view *const *views);

#endif
