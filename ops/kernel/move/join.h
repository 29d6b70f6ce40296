/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that stand side by side in the rows of a whole: what joins tensors and what takes them apart.
 *
 * The whole has `rows` rows of `row` bytes; each part has as many rows, a stretch of each row of the whole. Joining rank 3
 * along axis 1: a row is what dimensions 1 and 2 hold, the rows are dimension 0. */
#ifndef TN_OPS_KERNEL_MOVE_JOIN_H
#define TN_OPS_KERNEL_MOVE_JOIN_H

#include <ops/kernel/shapes.h>
#include <ops/kernel/move/strided.h>

typedef struct tn__join_part {
  uint32_t index;        /* of the part's view */
  size_t offset, width;  /* bytes in a row */
  tn__strided_line line; /* for units of `width` */
} tn__join_part;

typedef struct tn__join {
  size_t bytes; /* of this allocation */
  tn_dtype dtype;
  int64_t rows;
  int64_t block;     /* rows that are moved at a time; 0: one is longer than that */
  size_t row, place; /* bytes: of a row of the whole, of one place along the axis */
  size_t filled;     /* bytes of a row that the parts so far have */
  uint32_t n_parts;
  tn__join_part parts[]; /* those that have elements, in order */
} tn__join;

tn_status tn__join_no_memory(const tn_prepare_ctx *ctx, tn_error *err);
/* For a whole of this shape, which has elements. NULL without memory. */
tn__join *tn__join_new(tn_dtype dtype, const int64_t *dims, int32_t axis, int32_t rank, uint32_t max_parts);
/* The next part has `size` places along the axis. The sizes of all parts are dims[axis] together. */
void tn__join_add(tn__join *join, uint32_t index, int64_t size);
double tn__join_cost(const tn__join *join); /* nanoseconds */
void tn__join_free(tn__join *join);         /* NULL allowed */

/* views[index] are the parts. The target's strings and handles are zeroed. Fails without memory only. */
tn_status tn__join_gather(const tn__join *join, tn_kernel_ctx *ctx, tn_view *const *views, void *whole);
/* Bytes [begin, end) of the whole, into a buffer of their own: for types without memory of their own only. */
void tn__join_read(const tn__join *join, tn_view *const *views, size_t begin, size_t end, char *to);
tn_status tn__join_scatter(const tn__join *join, tn_kernel_ctx *ctx, const void *whole, tn_view *const *views);

#endif
