/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table, a key and a value each, found through an index with open addresses. Keys and values are some
 * elements of any dtype; strings and handles are owned. No lock: that is the table's business. */
#ifndef TN_OPS_STATE_TABLE_TABLE_ROWS_H
#define TN_OPS_STATE_TABLE_TABLE_ROWS_H

#include <core/tensor/account.h>
#include <core/tensor/tensor_internal.h>

/* `slots` has a power of two places, 0 is a free one: the upper half is the hash of the key, the lower its row plus 1.
 * Rows [0, n) are in use, what is behind them is zero where elements own memory. */
typedef struct tn__rows {
  char *rows;
  uint64_t *slots;
  size_t n, n_slots;
  size_t stride, value_at;        /* bytes of a row, where its value begins */
  size_t key_bytes, value_bytes;
  int64_t key_elements, value_elements;
  tn_dtype key_dtype, value_dtype;
  bool managed;                   /* keys or values own memory */
  tn__charge charge;              /* of rows and slots */
} tn__rows;

/* Empty. TN_INVALID_ARGUMENT: a row has more bytes than there can be. */
tn_status tn__rows_init(tn__rows *rows, tn_dtype key, int64_t key_elements, tn_dtype value, int64_t value_elements,
                        tn_error *err);
void tn__rows_fini(tn__rows *rows);
/* Room for `more` rows. TN_RESOURCE_EXHAUSTED: nothing changed. */
tn_status tn__rows_reserve(tn__rows *rows, size_t more, tn_error *err);

/* The value of a key; NULL: it is not there. */
void *tn__rows_find(const tn__rows *rows, const void *key);
/* The same for n keys in a row, at most TN__ROWS_BLOCK: memory is asked for ahead. */
#define TN__ROWS_BLOCK 64
void tn__rows_find_block(const tn__rows *rows, const void *keys, size_t n, const void **values);

/* Adds a row, or gives the one of this key another value; there is room. Plain elements are copied. Those that own
 * memory are moved: what is in key and value afterwards, an old value perhaps, is still the caller's. */
void tn__rows_put(tn__rows *rows, void *key, void *value);
/* Asks for memory ahead: this key will be put soon. There is room. */
void tn__rows_expect(const tn__rows *rows, const void *key);
#define TN__ROWS_AHEAD 8
/* Moves the row of a key to gone[stride], which is zero; false when there is none. */
bool tn__rows_remove(tn__rows *rows, const void *key, void *gone);

static inline char *tn__rows_key(const tn__rows *rows, size_t i) { return rows->rows + i * rows->stride; }
static inline char *tn__rows_value(const tn__rows *rows, size_t i) { return tn__rows_key(rows, i) + rows->value_at; }

/* ---- elements that are put ---- */

/* n keys and values, one behind the other: the given ones, or, where elements own memory, copies. */
typedef struct tn__rows_source {
  char *keys, *values;
  size_t n;
  bool owned; /* both are copies */
} tn__rows_source;

tn_status tn__rows_source_open(const tn__rows *like, const void *keys, const void *values, size_t n,
                               tn__rows_source *out, tn_error *err);
void tn__rows_source_close(const tn__rows *like, tn__rows_source *source);

/* Whether two values, two keys are equal; floats as numbers. */
bool tn__elements_equal(tn_dtype dtype, const void *a, const void *b, int64_t n);

#endif
