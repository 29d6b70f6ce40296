/* SPDX-License-Identifier: Apache-2.0 */
/* Writes checkpoints of version 1.
 *
 * The first entry, with an empty key, lists the tensors and their slices. Each slice has an entry under its ordered
 * key, with its elements in the fields of a TensorProto. Entries are encoded one at a time. */
#include <core/formats/checkpoint_v1/write.h>

#include <core/base/file.h>
#include <core/base/map.h>
#include <core/formats/sink.h>
#include <core/formats/table/table.h>
#include <core/formats/wire.h>
#include <core/tensor/tensor_internal.h>
#include <stdlib.h>
#include <string.h>

/* A part with its key. Parts of one tensor are a list, in the order of their keys. */
typedef struct entry {
  const tn__v1_part *part;
  tn__slice key;
  struct entry *first; /* of the same tensor */
  struct entry *next;  /* of the same tensor; NULL: the last one */
  struct entry *last;  /* of the list that begins here */
} entry;

typedef struct job {
  const char *path;
  const tn__v1_part *parts;
  size_t n;
  entry *entries;  /* sorted by key */
  tn__arena arena; /* keys */
  tn__map by_name; /* the first entry of each tensor */
} job;

/* ---- elements ---- */

/* How a TensorProto stores a dtype. */
typedef enum form { NO_FORM = 0, BYTES, TEXTS, WORD8, INT8, WORD16, INT16, INT32, INT64 } form;

typedef struct layout {
  form form;
  uint32_t field;
} layout;

static layout layout_of(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return (layout){ BYTES, 5 };
  case TN_DOUBLE: return (layout){ BYTES, 6 };
  case TN_INT32:
  case TN_QINT32: return (layout){ INT32, 7 };
  case TN_INT16: return (layout){ INT16, 7 };
  case TN_UINT16: return (layout){ WORD16, 7 };
  case TN_INT8:
  case TN_QINT8: return (layout){ INT8, 7 };
  case TN_UINT8:
  case TN_QUINT8: return (layout){ WORD8, 7 };
  case TN_STRING: return (layout){ TEXTS, 8 };
  case TN_COMPLEX64: return (layout){ BYTES, 9 };
  case TN_INT64: return (layout){ INT64, 10 };
  case TN_BOOL: return (layout){ WORD8, 11 };
  case TN_COMPLEX128: return (layout){ BYTES, 12 };
  case TN_HALF: return (layout){ WORD16, 13 };
  default: return (layout){ NO_FORM, 0 };
  }
}

/* A negative number is a varint of ten bytes, as in protobuf. */
static int64_t number_at(form f, const void *data, int64_t i)
{
  switch (f) {
  case WORD8: return ((const uint8_t *)data)[i];
  case INT8: return ((const int8_t *)data)[i];
  case WORD16: return ((const uint16_t *)data)[i];
  case INT16: return ((const int16_t *)data)[i];
  case INT32: return ((const int32_t *)data)[i];
  default: return ((const int64_t *)data)[i];
  }
}

static void put_packed(tn__sink *s, const void *what)
{
  const tn__v1_part *part = what;
  form f = layout_of(part->dtype).form;
  if (f == BYTES) {
    tn__sink_put(s, part->data, (size_t)part->count * tn_dtype_size(part->dtype));
    return;
  }
  for (int64_t i = 0; i < part->count; i++) tn__sink_varint(s, (uint64_t)number_at(f, part->data, i));
}

static void put_elements(tn__sink *s, const void *what)
{
  const tn__v1_part *part = what;
  layout l = layout_of(part->dtype);
  if (part->count == 0) return;
  if (l.form != TEXTS) {
    tn__sink_message(s, l.field, put_packed, part);
    return;
  }
  for (int64_t i = 0; i < part->count; i++) {
    tn__slice text;
    text.data = tn_string_data((const tn_string *)part->data + i, &text.size);
    tn__sink_bytes(s, l.field, text);
  }
}

/* ---- messages ---- */

typedef struct extent {
  int64_t start, length;
} extent;

static void put_extent(tn__sink *s, const void *what)
{
  const extent *e = what;
  if (e->length < 0) return;
  if (e->start != 0) tn__sink_int(s, 1, (uint64_t)e->start);
  tn__sink_int(s, 2, (uint64_t)e->length);
}

/* TensorSliceProto */
static void put_slice(tn__sink *s, const void *what)
{
  const tn__region *region = what;
  for (int32_t d = 0; d < region->rank; d++) {
    extent e = { region->starts[d], region->lengths[d] };
    tn__sink_message(s, 1, put_extent, &e);
  }
}

static void put_dim(tn__sink *s, const void *what)
{
  const int64_t *dim = what;
  if (*dim != 0) tn__sink_int(s, 1, (uint64_t)*dim);
}

/* TensorShapeProto */
static void put_shape(tn__sink *s, const void *what)
{
  const tn__v1_part *part = what;
  for (int32_t d = 0; d < part->region.rank; d++) tn__sink_message(s, 2, put_dim, &part->dims[d]);
}

/* SavedSliceMeta: a tensor with all of its slices. */
static void put_tensor(tn__sink *s, const void *what)
{
  const entry *first = what;
  if (first->part->name.size > 0) tn__sink_bytes(s, 1, first->part->name);
  tn__sink_message(s, 2, put_shape, first->part);
  tn__sink_int(s, 3, first->part->dtype);
  for (const entry *e = first; e != NULL; e = e->next) tn__sink_message(s, 4, put_slice, &e->part->region);
}

/* VersionDef */
static void put_version(tn__sink *s, const void *what)
{
  (void)what;
  tn__sink_int(s, 1, 1);
}

/* SavedTensorSliceMeta */
static void put_tensors(tn__sink *s, const void *what)
{
  const job *j = what;
  for (size_t i = 0; i < j->n; i++)
    if (j->entries[i].first == &j->entries[i]) tn__sink_message(s, 1, put_tensor, &j->entries[i]);
  tn__sink_message(s, 2, put_version, NULL);
}

/* SavedSlice */
static void put_part(tn__sink *s, const void *what)
{
  const tn__v1_part *part = what;
  if (part->name.size > 0) tn__sink_bytes(s, 1, part->name);
  tn__sink_message(s, 2, put_slice, &part->region);
  tn__sink_message(s, 3, put_elements, part);
}

/* ---- the table ---- */

static int name_size(const tn__v1_part *part) { return (int)(part->name.size < 200 ? part->name.size : 200); }

/* Adds an entry whose value is a SavedTensorSlices message with one field. */
static tn_status add(const job *j, tn__table_writer *table, tn__slice key, uint32_t field, tn__sink_body body,
                     const void *what, tn_error *err)
{
  tn__sink size = tn__sink_counter(err), bytes = tn__sink_memory(err);
  tn__sink_message(&size, field, body, what);
  if (size.status == TN_OK && size.before > INT32_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "'%s': an entry of %zu bytes, but a checkpoint of version 1 takes entries of less than 2 GiB",
                        j->path, size.before);
  if (size.status == TN_OK) tn__sink_reserve(&bytes, size.before);
  if (size.status == TN_OK) tn__sink_message(&bytes, field, body, what);
  tn_status st = size.status != TN_OK ? size.status : bytes.status;
  if (st == TN_OK) st = tn__table_writer_add(table, key, (tn__slice){ bytes.data, bytes.used }, err);
  tn__sink_fini(&bytes);
  return st;
}

static tn_status write_table(const job *j, tn__writer *file, tn_error *err)
{
  tn__table_writer *table;
  tn_status st = tn__table_writer_create(file, &table, err);
  if (st != TN_OK) return st;
  st = add(j, table, (tn__slice){ "", 0 }, 1, put_tensors, j, err);
  for (size_t i = 0; st == TN_OK && i < j->n; i++)
    st = add(j, table, j->entries[i].key, 2, put_part, j->entries[i].part, err);
  if (st == TN_OK) st = tn__table_writer_finish(table, err);
  tn__table_writer_destroy(table);
  return st;
}

static tn_status write_file(const job *j, tn_error *err)
{
  tn__writer file;
  tn_status st = tn__writer_open(&file, j->path, err);
  if (st != TN_OK) return st;
  st = write_table(j, &file, err);
  if (st == TN_OK) st = tn__writer_sync(&file, err);
  if (st == TN_OK) st = tn__writer_commit(&file, err);
  else tn__writer_abandon(&file);
  return st == TN_OK ? tn__folder_sync(j->path, err) : st;
}

/* ---- the entries ---- */

static bool same_tensor(const tn__v1_part *a, const tn__v1_part *b)
{
  return a->dtype == b->dtype && a->region.rank == b->region.rank &&
         memcmp(a->dims, b->dims, (size_t)a->region.rank * sizeof *a->dims) == 0;
}

/* Appends the entry to the list of its tensor. */
static tn_status join_tensor(job *j, entry *e, tn_error *err)
{
  const tn__v1_part *part = e->part;
  const char *name = part->name.size == 0 ? "" : part->name.data;
  entry *first = tn__map_get(&j->by_name, name, part->name.size);
  e->first = first == NULL ? e : first;
  e->last = e;
  if (first == NULL) {
    if (tn__map_put(&j->by_name, name, part->name.size, e, NULL)) return TN_OK;
    return tn__no_memory(err, "names of tensors", j->n);
  }
  if (!same_tensor(part, first->part))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': the slices of tensor '%.*s' have different shapes or dtypes",
                        j->path, name_size(part), name);
  first->last->next = e;
  first->last = e;
  return TN_OK;
}

static int compare_keys(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  size_t n = x->key.size < y->key.size ? x->key.size : y->key.size;
  int order = memcmp(x->key.data, y->key.data, n);
  return order != 0 ? order : (x->key.size > y->key.size) - (x->key.size < y->key.size);
}

static tn_status make_entry(job *j, size_t i, tn_error *err)
{
  entry *e = &j->entries[i];
  e->part = &j->parts[i];
  if (layout_of(e->part->dtype).form == NO_FORM)
    return tn_error_set(err, TN_UNIMPLEMENTED, "'%s': tensor '%.*s' has dtype %s, which version 1 does not have",
                        j->path, name_size(e->part), e->part->name.data, tn_dtype_name(e->part->dtype));
  return tn__slice_key(e->part->name, &e->part->region, &j->arena, &e->key, err);
}

static tn_status make_entries(job *j, tn_error *err)
{
  tn_status st = TN_OK;
  j->entries = tn__arena_array(&j->arena, j->n, sizeof *j->entries);
  if (j->entries == NULL) return tn__no_memory(err, "entries of a table", j->n);
  for (size_t i = 0; st == TN_OK && i < j->n; i++) st = make_entry(j, i, err);
  if (st == TN_OK && j->n > 1) qsort(j->entries, j->n, sizeof *j->entries, compare_keys);
  for (size_t i = 0; st == TN_OK && i < j->n; i++) {
    entry *e = &j->entries[i];
    if (i > 0 && compare_keys(e - 1, e) == 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': tensor '%.*s', or a slice of it, is given twice", j->path,
                          name_size(e->part), e->part->name.data);
    st = join_tensor(j, e, err);
  }
  return st;
}

tn_status tn__v1_write(const char *path, const tn__v1_part *parts, size_t n, tn_error *err)
{
  job j = { .path = path, .parts = parts, .n = n };
  tn__arena_init(&j.arena, 1024);
  tn__map_init(&j.by_name);
  tn_status st = make_entries(&j, err);
  if (st == TN_OK) st = write_file(&j, err);
  tn__map_fini(&j.by_name);
  tn__arena_fini(&j.arena);
  return st;
}
