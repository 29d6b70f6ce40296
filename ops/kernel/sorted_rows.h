/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of rows of int64 numbers: the indices of sparse tensors, keys with several parts. */
#ifndef TN_OPS_KERNEL_SORTED_ROWS_H
#define TN_OPS_KERNEL_SORTED_ROWS_H

#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>

/* n rows of `width` numbers. They are compared by the columns order[0], order[1], ... order[keys - 1], or by the first
 * `keys` columns if `order` is NULL. */
typedef struct tn__int_rows {
  const int64_t *at;
  int64_t n;
  int32_t width, keys;
  const int32_t *order;
} tn__int_rows;

/* -1, 0 or 1 as row a is before row b, equal to it, or after it. */
int tn__int_rows_compare(const tn__int_rows *rows, int64_t a, int64_t b);
bool tn__int_rows_are_sorted(const tn__int_rows *rows);

/* Bytes that tn__int_rows_sort needs; false if there are too many. */
bool tn__int_rows_room(int64_t n, size_t *bytes);
/* Returns the numbers of the rows in ascending order, an array inside `room`; equal rows keep their order. NULL once
 * `poll` is over. */
const int64_t *tn__int_rows_sort(const tn__int_rows *rows, void *room, tn__poll *poll);

#endif
