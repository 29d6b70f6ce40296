/* SPDX-License-Identifier: Apache-2.0 */
/* Ops by name and attributes. */
#ifndef TN_CORE_EAGER_CACHE_H
#define TN_CORE_EAGER_CACHE_H

#include <core/eager/op.h>

/* An entry, immutable: the op for a key of `size` bytes. */
typedef struct tn__eager_named {
  uint64_t hash; /* of the key */
  size_t size;
  tn_eager_op *op; /* owned */
  char key[];
} tn__eager_named;
/* A hash table with open addressing, at most half full. It is replaced when it grows, and read
 * without a lock, so older ones are kept until the session is closed. */
typedef struct tn__eager_table {
  struct tn__eager_table *older; /* owned; NULL = none */
  size_t capacity; /* a power of two */
  _Atomic(tn__eager_named *) at[];
} tn__eager_table;

/* The op for a name and attributes, found or made. *mine: it is not kept, and the caller frees it. */
tn_status tn__eager_named_op(tn_eager_session *session, const char *op, const tn_eager_attr *attrs, size_t n,
                             tn_eager_op **out, bool *mine, tn_error *err);
void tn__eager_named_destroy(tn_eager_session *session);

#endif
