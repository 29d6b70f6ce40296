/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists: elements of dtype variant that are lists of tensors.
 *
 * A list is a value: changing it makes a new list, and the old one stays as it was. Still, a change
 * makes no copy. Versions derived from one another share a store with the elements of the newest;
 * an older version records the elements that newer ones replaced. A loop that pushes or sets n
 * elements therefore does O(n) work, even if older versions are still held, and reading the newest
 * version is an array access. When the newest version is destroyed, the store is restored to the
 * one before it. Only changing a version that is not the newest copies it. */
#ifndef TN_OPS_STATE_LIST_TENSOR_LIST_STORE_H
#define TN_OPS_STATE_LIST_TENSOR_LIST_STORE_H

#include <ops/kernel/move/pieces.h>

typedef struct tn__list tn__list;

/* Properties common to all versions. Elements have this dtype and fit this partial shape; rank -1 =
 * any. */
typedef struct tn__list_kind {
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  int64_t max; /* maximum length for pushing; negative = no limit */
} tn__list_kind;

/* Creates a list of `length` unset elements, with one reference; the kind is copied. All functions
 * here are thread-safe. */
tn_status tn__list_create(const tn__list_kind *kind, int64_t length, tn__list **out, tn_error *err);
tn__list *tn__list_ref(tn__list *list);
void tn__list_unref(tn__list *list); /* NULL allowed */

/* Converts between a list and its handle in a tensor: the same pointer, no new reference. NULL if
 * the handle is no list. */
tn_handle *tn__list_handle(tn__list *list);
tn__list *tn__handle_list(tn_handle *handle);

const tn__list_kind *tn__list_kind_of(const tn__list *list);
int64_t tn__list_length(const tn__list *list);

/* Element i, in [0, length), as a new reference; NULL if it is not set. */
tn_tensor *tn__list_get(tn__list *list, int64_t i);

/* All elements, as an array of references with the list's length. */
tn_status tn__list_all(tn__list *list, tn_tensor ***out, tn_error *err);
void tn__list_all_destroy(tn_tensor **items, int64_t n);

/* ---- changes ---- */

/* Starts a new version of `length` elements; those past the old length are unset. Follow it at once
 * by calls of tn__list_put, of which at most `puts` may replace elements that are set or within the
 * old version, and by tn__list_done. The store is locked until then, so no other function here may
 * be called in between. *out has one reference. On failure nothing has changed. */
tn_status tn__list_change(tn__list *list, int64_t length, size_t puts, tn__list **out, tn_error *err);
/* Sets element i; takes over the reference. */
void tn__list_put(tn__list *version, int64_t i, tn_tensor *tensor);
void tn__list_done(tn__list *version);

#endif
