/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists: what an element of dtype variant is when it is a list of tensors.
 *
 * A list has the ways of a value: who changes one gets a new list, and the old one stays as it was. All the same a change
 * costs no copy. Versions that came from one another share a store, which has the elements of the newest; an older version
 * notes what it had where a newer one changed something. So a loop that pushes or sets n elements does work for n, whoever
 * holds older versions, and reading the newest is reading an array. When the newest ends, the store goes back to the one
 * before. Only who changes a version that is not the newest has it copied. */
#ifndef TN_OPS_STATE_LIST_TENSOR_LIST_STORE_H
#define TN_OPS_STATE_LIST_TENSOR_LIST_STORE_H

#include <ops/kernel/move/pieces.h>

typedef struct tn__list tn__list;

/* What all versions have in common. Elements have this dtype and fit this partial shape; rank -1 = any. */
typedef struct tn__list_kind {
  tn_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  int64_t max; /* elements that may be pushed; below 0 = no limit */
} tn__list_kind;

/* A list of `length` elements that are not set; the kind is copied. One holder. Any thread, as all of these. */
tn_status tn__list_create(const tn__list_kind *kind, int64_t length, tn__list **out, tn_error *err);
tn__list *tn__list_ref(tn__list *list);
void tn__list_unref(tn__list *list); /* NULL allowed */

/* As an element of a tensor: the same pointer, no new holder. NULL when the handle is no list. */
tn_handle *tn__list_handle(tn__list *list);
tn__list *tn__handle_list(tn_handle *handle);

const tn__list_kind *tn__list_kind_of(const tn__list *list);
int64_t tn__list_length(const tn__list *list);

/* Element i of [0, length), a reference; NULL when it is not set. */
tn_tensor *tn__list_get(tn__list *list, int64_t i);

/* All elements: an array of the list's length with references. */
tn_status tn__list_all(tn__list *list, tn_tensor ***out, tn_error *err);
void tn__list_all_free(tn_tensor **items, int64_t n);

/* ---- changes ---- */

/* A new version of `length` elements: those past the old length are not set. Calls of tn__list_put may follow, of which at
 * most `puts` set what is set already or what the old version has, then tn__list_done, at once: the store is locked, so no
 * other call here may come between. *out has one holder. On failure there is nothing to undo. */
tn_status tn__list_change(tn__list *list, int64_t length, size_t puts, tn__list **out, tn_error *err);
/* Sets element i; takes the reference over. */
void tn__list_put(tn__list *version, int64_t i, tn_tensor *tensor);
void tn__list_done(tn__list *version);

#endif
