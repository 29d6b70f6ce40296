/* SPDX-License-Identifier: Apache-2.0 */
/* Ops by name and attributes. */
#ifndef TN_CORE_EAGER_CACHE_H
#define TN_CORE_EAGER_CACHE_H

#include <core/eager/op.h>

/* Ops by name and attributes: a table that is replaced when it grows, and read without a lock. */
typedef struct tn__eager_named {
  uint64_t hash;
  size_t size;
  tn_eager_op *op;
  char key[];
} tn__eager_named;
typedef struct tn__eager_table {
  struct tn__eager_table *older;
  size_t capacity; /* a power of two */
  _Atomic(tn__eager_named *) at[];
} tn__eager_table;

tn_status tn__eager_named_op(tn_eager_session *session, const char *op, const tn_eager_attr *attrs, size_t n,
                             tn_eager_op **out, bool *mine, tn_error *err);
void tn__eager_named_free(tn_eager_session *session);

#endif
