/* SPDX-License-Identifier: Apache-2.0 */
/* Index tensors of gathers and scatters: reads them as int64, checks them, and combines multi-dimensional indices. */
#ifndef TN_OPS_KERNEL_INDICES_H
#define TN_OPS_KERNEL_INDICES_H

#include <stdbool.h>
#include <tenon/op.h>

#define TN__INDEX_BLOCK 256 /* indices read at a time */

/* Elements [at, at + n) of a view of int16, uint16, int32 or int64. */
void tn__indices_load(const tn_view *indices, int64_t at, int64_t n, int64_t *to);

/* All must be in [0, limit); TN_INVALID_ARGUMENT "index 3 of input 1 is 9, wanted one in [0, 4)". */
tn_status tn__indices_check(tn_error *err, const tn_view *indices, int64_t limit);

/* Indices of shape [..., depth] into the first `depth` dimensions of a tensor. There are n of them. Each is
 * flattened to one number: the position of a piece, in row-major order over these dimensions. */
typedef struct tn__index_space {
  const tn_view *indices;
  const int64_t *dims;
  int32_t depth;
  int64_t n;
} tn__index_space;

/* indices must have rank 1 or more, and its last dimension must not exceed the number of dims. Borrows both. */
void tn__space_init(tn__index_space *s, const tn_view *indices, const int64_t *dims);
/* Stores the positions of indices [begin, begin + n); -1 for an index that is out of range. */
void tn__space_places(const tn__index_space *s, int64_t begin, int64_t n, int64_t *places);
/* The first index that is out of range, or -1 if there is none. */
int64_t tn__space_find_bad(const tn__index_space *s);
/* Reports the first index that is out of range. Returns TN_INVALID_ARGUMENT. */
tn_status tn__space_error(const tn__index_space *s, tn_error *err);

/* The attribute bad_indices_policy: with '', 'DEFAULT' and 'ERROR' an index out of range is an error; with 'IGNORE'
 * it is ignored. For a kernel's `create`; the state is static. */
typedef struct tn__bad_indices {
  bool ignore;
} tn__bad_indices;
tn_status tn__bad_indices_create(const tn_operation *op, void **state, tn_error *err);

#endif
