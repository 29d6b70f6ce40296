/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: resources that map keys to values. One class for all kinds and for both kinds of handle, V1's by reference
 * and V2's. */
#ifndef TN_OPS_STATE_TABLE_TABLE_H
#define TN_OPS_STATE_TABLE_TABLE_H

#include <core/base/lock.h>
#include <ops/kernel/resources.h>
#include <ops/state/table/table_rows.h>

extern const tn_resource_class tn__table_class; /* "HashTable"; its objects are tn__table */

typedef enum tn__table_kind {
  TN__TABLE_FIXED,   /* HashTable: filled once, then read without a lock */
  TN__TABLE_MUTABLE, /* MutableHashTable, MutableHashTableOfTensors */
  TN__TABLE_DENSE    /* MutableDenseHashTable: two keys are reserved; exported with its free buckets */
} tn__table_kind;

/* Names are borrowed here, a table's are its own. */
typedef struct tn__table_spec {
  tn__table_kind kind;
  tn_dtype key_dtype, value_dtype;
  tn__shape key_shape, value_shape; /* known; of one key, one value */
  const char *container, *name;
  int64_t buckets;                  /* dense: a power of two, at least 4 */
  float max_load;                   /* dense: in (0, 1) */
  const void *empty_key, *deleted_key; /* dense: key elements; deleted_key may be NULL */
} tn__table_spec;

/* `rows` is guarded by the lock; in a fixed table it does not change any more once `ready` is set. */
typedef struct tn__table {
  tn__rwlock lock;
  tn__table_kind kind;
  tn__shape key_shape, value_shape;
  tn__rows rows;
  _Atomic bool ready;   /* fixed: it was initialised */
  int64_t buckets;      /* dense: how many it is exported with; guarded by the lock */
  double max_load;
  char *empty_key, *deleted_key; /* dense: elements; deleted_key may be NULL */
  char *container, *name;
} tn__table;

/* TN_RESOURCE_EXHAUSTED; TN_INVALID_ARGUMENT: a row would be too large. */
tn_status tn__table_create(const tn__table_spec *spec, tn__table **out, tn_error *err);
void tn__table_destroy(void *table);

/* ---- any thread; keys and values have the table's dtypes ---- */

/* Keys as an operand gives them: how many there are, or TN_INVALID_ARGUMENT where its shape is not that of keys; for a
 * dense table also where one of them is reserved. */
tn_status tn__table_keys(const tn__table *t, const tn_view *keys, size_t *n, tn_error *err);
/* The shape of values for such keys. */
tn_status tn__table_values_shape(const tn__table *t, const tn_view *keys, tn__shape *out, tn_error *err);

/* Initialises a fixed table with n pairs; when it was before, n has to be the number that it has.
 * TN_FAILED_PRECONDITION: another number, or a key with two values; nothing changed. */
tn_status tn__table_init(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
/* The same of rows that are ready; takes them over, also on failure. */
tn_status tn__table_init_rows(tn__table *t, tn__rows *rows, tn_error *err);
/* One more pair for such rows: TN_FAILED_PRECONDITION when the key is there with another value. Both elements are
 * moved. */
tn_status tn__table_add_row(tn__rows *rows, void *key, void *value, tn_error *err);

/* Writes values, or of `otherwise` the first value where a key is not there; each_key: the value in the key's place.
 * TN_FAILED_PRECONDITION: not initialised. */
tn_status tn__table_find(tn__table *t, tn_kernel_ctx *ctx, const void *keys, size_t n, const void *otherwise,
                         bool each_key, void *values);
/* TN_UNIMPLEMENTED: a fixed table. On failure nothing changed. */
tn_status tn__table_insert(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
tn_status tn__table_remove(tn__table *t, const void *keys, size_t n, tn_error *err);
/* What it has is replaced. */
tn_status tn__table_import(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err);
int64_t tn__table_size(tn__table *t);

/* For an export: keeps others from changing the table until tn__table_end_export. *n is how many rows are exported; the
 * first of them are those of t->rows, a dense table's others are free ones. TN_ABORTED: not initialised; no lock is
 * held. */
tn_status tn__table_begin_export(tn__table *t, size_t *n, tn_error *err);
void tn__table_end_export(tn__table *t);

#endif
