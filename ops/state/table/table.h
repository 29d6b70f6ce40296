/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: resources that map keys to values. One class covers all kinds, and both kinds of handle:
 * V1's by reference and V2's. */
#ifndef TN_OPS_STATE_TABLE_TABLE_H
#define TN_OPS_STATE_TABLE_TABLE_H

#include <core/base/threads/lock.h>
#include <ops/kernel/resources.h>
#include <ops/state/table/table_rows.h>

extern const tn_resource_class tn__table_class; /* "HashTable"; its objects are tn__table */

typedef enum tn__table_kind {
  TN__TABLE_FIXED,   /* HashTable: filled once, then read without a lock */
  TN__TABLE_MUTABLE, /* MutableHashTable, MutableHashTableOfTensors */
  TN__TABLE_DENSE    /* MutableDenseHashTable: two keys are reserved, and exports include free buckets */
} tn__table_kind;

/* Names are borrowed here; a table has its own copies. */
typedef struct tn__table_spec {
  tn__table_kind kind;
  tn_dtype key_dtype, value_dtype;
  tn__shape key_shape, value_shape; /* fully known; of one key, of one value */
  const char *container, *name;
  int64_t buckets;                  /* dense: a power of two, at least 4 */
  float max_load;                   /* dense: in (0, 1) */
  const void *empty_key, *deleted_key; /* dense: elements of a key; deleted_key may be NULL */
} tn__table_spec;

/* `rows` is guarded by the lock. In a fixed table it is immutable once `ready` is set. */
typedef struct tn__table {
  tn__rwlock lock;
  tn__table_kind kind;
  tn__shape key_shape, value_shape;
  tn__rows rows;
  _Atomic bool ready;   /* fixed: it was initialised */
  int64_t buckets;      /* dense: number of exported buckets; guarded by the lock */
  double max_load;
  char *empty_key, *deleted_key; /* dense: elements; deleted_key may be NULL */
  char *container, *name;
} tn__table;

/* TN_RESOURCE_EXHAUSTED; TN_INVALID_ARGUMENT if a row would be too large. */
tn_status tn__table_create(const tn__table_spec *spec, tn__table **out, tn_error *err);

/* ---- thread-safe; keys and values have the table's dtypes ---- */

/* Counts the keys of an operand. TN_INVALID_ARGUMENT if the operand's shape does not consist of
 * keys, or if one of them is a reserved key of a dense table. */
tn_status tn__table_keys(const tn__table *t, const tn_view *keys, size_t *n, tn_error *err);
/* The shape of the values for these keys. */
tn_status tn__table_values_shape(const tn__table *t, const tn_view *keys, tn__shape *out, tn_error *err);

/* Initialises a fixed table with n pairs. If it is initialised already, n must be its number of
 * pairs, and nothing changes. TN_FAILED_PRECONDITION: n differs, or a key has two values; nothing
 * changed. */
tn_status tn__table_init(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
/* The same with prepared rows; takes them over, also on failure. */
tn_status tn__table_init_rows(tn__table *t, tn__rows *rows, tn_error *err);
/* Adds a pair to such rows. TN_FAILED_PRECONDITION if the key exists with another value. Both
 * elements are moved. */
tn_status tn__table_add_row(tn__rows *rows, void *key, void *value, tn_error *err);

/* Looks up n keys and writes their values. For a missing key it writes the first value of
 * `otherwise`, or, if `each_key`, the value at the key's index. TN_FAILED_PRECONDITION if the table
 * is not initialised. */
tn_status tn__table_find(tn__table *t, tn_kernel_ctx *ctx, const void *keys, size_t n, const void *otherwise,
                         bool each_key, void *values);
/* TN_UNIMPLEMENTED for a fixed table. Nothing changes on failure. */
tn_status tn__table_insert(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
tn_status tn__table_remove(tn__table *t, const void *keys, size_t n, tn_error *err);
/* Replaces the contents. */
tn_status tn__table_import(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
int64_t tn__table_size(tn__table *t);

/* Starts an export: locks the table against changes until tn__table_end_export. *n is the number of
 * exported rows: those of t->rows, or the buckets of a dense table. TN_ABORTED if the
 * table is not initialised; then it is not locked. */
tn_status tn__table_begin_export(tn__table *t, size_t *n, tn_error *err);
void tn__table_end_export(tn__table *t);

#endif
