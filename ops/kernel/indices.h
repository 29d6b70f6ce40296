/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of indices, of which gathers and scatters are made: read as int64, checked, put together. */
#ifndef TN_OPS_KERNEL_INDICES_H
#define TN_OPS_KERNEL_INDICES_H

#include <stdbool.h>
#include <tenon/op.h>

#define TN__INDEX_BLOCK 256 /* indices read at a time */

/* Elements [at, at + n) of a view of int16, uint16, int32 or int64. */
void tn__indices_load(const tn_view *indices, int64_t at, int64_t n, int64_t *to);

/* All must be in [0, limit); TN_INVALID_ARGUMENT "index 3 of input 1 is 9, wanted one in [0, 4)". */
tn_status tn__indices_check(tn_error *err, const tn_view *indices, int64_t limit);

/* Indices [..., depth] into the first `depth` dimensions of a tensor: there are n of them, and each is one number, the
 * place among the pieces that these dimensions count. */
typedef struct tn__index_space {
  const tn_view *indices;
  const int64_t *dims;
  int32_t depth;
  int64_t n;
} tn__index_space;

/* indices has rank 1 or more, and its last dimension is no larger than the number of dims. Borrows both. */
void tn__space_init(tn__index_space *s, const tn_view *indices, const int64_t *dims);
/* Places of the indices [begin, begin + n); -1 for one outside. */
void tn__space_places(const tn__index_space *s, int64_t begin, int64_t n, int64_t *places);
/* The first index outside, -1 when there is none. */
int64_t tn__space_find_bad(const tn__index_space *s);
/* Says which it is. Returns TN_INVALID_ARGUMENT. */
tn_status tn__space_error(const tn__index_space *s, tn_error *err);

/* The attribute bad_indices_policy: '', 'DEFAULT' and 'ERROR' make an index outside an error, with 'IGNORE' it counts
 * for nothing. For a kernel's `create`; the state is static. */
typedef struct tn__bad_indices {
  bool ignore;
} tn__bad_indices;
tn_status tn__bad_indices_create(const tn_operation *op, void **state, tn_error *err);

#endif
