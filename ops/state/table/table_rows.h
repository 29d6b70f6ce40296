/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table, each a key and a value, found through an open-addressing index. Keys and values
 * are a fixed number of elements of any dtype; strings and handles are owned. Not locked: the table
 * has a lock. */
#ifndef TN_OPS_STATE_TABLE_TABLE_ROWS_H
#define TN_OPS_STATE_TABLE_TABLE_ROWS_H

#include <core/tensor/account.h>
#include <core/tensor/tensor_internal.h>

/* The number of `slots` is a power of two. A slot is 0 if free; otherwise its upper half is the
 * hash of the key and its lower half the row plus 1. Rows [0, n) are in use; later ones are zero if
 * elements own memory. */
typedef struct tn__rows {
  char *rows;
  uint64_t *slots;
  size_t n, n_slots;
  size_t stride, value_at;        /* bytes of a row; offset of its value */
  size_t key_bytes, value_bytes;
  int64_t key_elements, value_elements;
  tn_dtype key_dtype, value_dtype;
  bool managed;                   /* keys or values own memory */
  tn__charge charge;              /* of rows and slots */
} tn__rows;

/* Starts empty. TN_INVALID_ARGUMENT if the size of a row overflows. */
tn_status tn__rows_init(tn__rows *rows, tn_dtype key, int64_t key_elements, tn_dtype value, int64_t value_elements,
                        tn_error *err);
void tn__rows_fini(tn__rows *rows);
/* Reserves room for `more` rows. Nothing changes after TN_RESOURCE_EXHAUSTED. */
tn_status tn__rows_reserve(tn__rows *rows, size_t more, tn_error *err);

/* The value of a key; NULL if the key does not exist. */
void *tn__rows_find(const tn__rows *rows, const void *key);
/* The same for n consecutive keys, at most TN__ROWS_BLOCK, with prefetching. */
#define TN__ROWS_BLOCK 64
void tn__rows_find_block(const tn__rows *rows, const void *keys, size_t n, const void **values);

/* Adds a row, or replaces the value of an existing key; there must be room. Plain elements are
 * copied. Elements that own memory are moved: the caller still owns what is in key and value
 * afterwards, possibly the old value. */
void tn__rows_put(tn__rows *rows, void *key, void *value);
/* Prefetches for a key that will be put soon. There must be room. */
void tn__rows_expect(const tn__rows *rows, const void *key);
#define TN__ROWS_AHEAD 8
/* Moves the row of a key to gone[stride], which must be zero. Returns false if the key does not
 * exist. */
bool tn__rows_remove(tn__rows *rows, const void *key, void *gone);

static inline char *tn__rows_key(const tn__rows *rows, size_t i) { return rows->rows + i * rows->stride; }
static inline char *tn__rows_value(const tn__rows *rows, size_t i) { return tn__rows_key(rows, i) + rows->value_at; }

/* ---- sources of rows ---- */

/* n keys and values, each contiguous: the given ones, or copies if elements own memory. */
typedef struct tn__rows_source {
  char *keys, *values;
  size_t n;
  bool owned; /* both are copies */
} tn__rows_source;

tn_status tn__rows_source_open(const tn__rows *like, const void *keys, const void *values, size_t n,
                               tn__rows_source *out, tn_error *err);
void tn__rows_source_close(const tn__rows *like, tn__rows_source *source);

/* Whether two keys, or two values, are equal; floats are compared as numbers. */
bool tn__elements_equal(tn_dtype dtype, const void *a, const void *b, int64_t n);

#endif
