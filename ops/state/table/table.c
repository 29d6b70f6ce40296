/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: the operations of each kind, and locking. Elements are copied before locking and freed
 * after unlocking, because freeing a handle may destroy its resource. */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/state/table/table.h>
#include <stdatomic.h>
#include <string.h>

/* ---- creation and destruction ---- */

static void key_free(const tn__table *t, char *key)
{
  if (key == NULL) return;
  tn__elements_clear(t->rows.key_dtype, key, t->rows.key_elements);
  tn__free(key, t->rows.key_bytes + 1);
}

static char *key_copy(const tn__table *t, const void *key)
{
  char *copy = tn__zalloc(t->rows.key_bytes + 1);
  if (copy == NULL || tn__copy_elements(t->rows.key_dtype, copy, key, t->rows.key_elements, NULL) == TN_OK) return copy;
  key_free(t, copy);
  return NULL;
}

static void table_destroy(void *table)
{
  tn__table *t = table;
  key_free(t, t->empty_key);
  key_free(t, t->deleted_key);
  tn__strfree(t->container);
  tn__strfree(t->name);
  tn__rows_fini(&t->rows);
  tn__rwlock_fini(&t->lock);
  tn__free(t, sizeof *t);
}

static int64_t elements_of(const tn__shape *s)
{
  int64_t n = 1;
  for (int32_t i = 0; i < s->rank; i++)
    if (__builtin_mul_overflow(n, s->dims[i], &n)) return INT64_MAX;
  return n;
}

tn_status tn__table_create(const tn__table_spec *spec, tn__table **out, tn_error *err)
{
  tn__table *t = tn__zalloc(sizeof *t);
  *out = NULL;
  if (t == NULL) return tn__no_memory(err, "table", sizeof *t);
  tn__rwlock_init(&t->lock, "table", TN_RANK_TABLE);
  t->kind = spec->kind;
  t->key_shape = spec->key_shape;
  t->value_shape = spec->value_shape;
  t->buckets = spec->buckets;
  t->max_load = (double)spec->max_load;
  tn_status st = tn__rows_init(&t->rows, spec->key_dtype, elements_of(&spec->key_shape), spec->value_dtype,
                               elements_of(&spec->value_shape), err);
  if (st != TN_OK) {
    table_destroy(t);
    return st;
  }
  t->container =
      tn__strdup(spec->container == NULL || spec->container[0] == 0 ? TN_DEFAULT_CONTAINER : spec->container);
  t->name = tn__strdup(spec->name);
  if (spec->empty_key != NULL) t->empty_key = key_copy(t, spec->empty_key);
  if (spec->deleted_key != NULL) t->deleted_key = key_copy(t, spec->deleted_key);
  if (t->container == NULL || t->name == NULL || (spec->empty_key != NULL && t->empty_key == NULL) ||
      (spec->deleted_key != NULL && t->deleted_key == NULL)) {
    table_destroy(t);
    return tn__no_memory(err, "table", sizeof *t);
  }
  *out = t;
  return TN_OK;
}

/* The value of a V1 handle for ops that take strings: container and name. */
static tn_status read_table(void *object, tn_tensor **out, tn_error *err)
{
  const tn__table *t = object;
  const int64_t two = 2;
  return tn_tensor_from_strings(&two, 1, (const char *const[]){ t->container, t->name }, NULL, out, err);
}

const tn_resource_class tn__table_class = {
  .struct_size = sizeof tn__table_class, .name = "HashTable", .destroy = table_destroy, .read = read_table
};

/* ---- keys ---- */

static tn_status reserved_key(const tn__table *t, const char *which, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s': a key is the table's %s key", t->name, which);
}

static tn_status bad_keys(const tn__table *t, const tn_view *keys, tn_error *err)
{
  char found[96], wanted[96];
  return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s': keys have shape %s, wanted keys of shape %s", t->name,
                      tn__format_shape(found, sizeof found, keys->dims, keys->rank),
                      tn__format_shape(wanted, sizeof wanted, t->key_shape.dims, t->key_shape.rank));
}

tn_status tn__table_keys(const tn__table *t, const tn_view *keys, size_t *n, tn_error *err)
{
  const int64_t one = t->rows.key_elements;
  *n = (size_t)keys->count;
  if (t->kind != TN__TABLE_DENSE) return TN_OK;
  int64_t first = keys->rank == 0 ? 1 : keys->dims[0];
  if (keys->count / one != first || keys->count % one != 0) return bad_keys(t, keys, err);
  *n = (size_t)first;
  const size_t bytes = t->rows.key_bytes;
  for (size_t i = 0; i < *n; i++) {
    const char *key = (const char *)keys->data + i * bytes;
    if (tn__elements_equal(t->rows.key_dtype, key, t->empty_key, one)) return reserved_key(t, "empty", err);
    if (t->deleted_key != NULL && tn__elements_equal(t->rows.key_dtype, key, t->deleted_key, one))
      return reserved_key(t, "deleted", err);
  }
  return TN_OK;
}

tn_status tn__table_values_shape(const tn__table *t, const tn_view *keys, tn__shape *out, tn_error *err)
{
  int32_t prefix = keys->rank - t->key_shape.rank;
  bool fits = prefix >= 0;
  for (int32_t i = 0; fits && i < t->key_shape.rank; i++) fits = keys->dims[prefix + i] == t->key_shape.dims[i];
  if (!fits) return bad_keys(t, keys, err);
  tn__shape_set(out, keys->dims, prefix);
  for (int32_t i = 0; i < t->value_shape.rank; i++)
    if (!tn__shape_append(out, t->value_shape.dims[i]))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s': keys of rank %d give values of more than rank %d",
                          t->name, keys->rank, TN_MAX_RANK);
  return TN_OK;
}

/* ---- fixed tables ---- */

static tn_status two_values(tn_dtype dtype, const void *key, tn_error *err)
{
  char text[64] = "of several elements";
  size_t n;
  if (dtype == TN_STRING) {
    const char *s = tn_string_data(key, &n);
    tn__snprintf(text, sizeof text, "'%.*s'", n > 48 ? 48 : (int)n, s);
  } else if (dtype == TN_INT64) {
    tn__snprintf(text, sizeof text, "%lld", (long long)*(const int64_t *)key);
  } else if (dtype == TN_INT32) {
    tn__snprintf(text, sizeof text, "%d", *(const int32_t *)key);
  }
  return tn_error_set(err, TN_FAILED_PRECONDITION, "key %s occurs twice, with different values", text);
}

tn_status tn__table_add_row(tn__rows *rows, void *key, void *value, tn_error *err)
{
  const void *before = tn__rows_find(rows, key);
  if (before != NULL)
    return tn__elements_equal(rows->value_dtype, before, value, rows->value_elements)
               ? TN_OK
               : two_values(rows->key_dtype, key, err);
  tn_status st = tn__rows_reserve(rows, 1, err);
  if (st == TN_OK) tn__rows_put(rows, key, value);
  return st;
}

static bool is_ready(const tn__table *t) { return atomic_load_explicit(&t->ready, memory_order_acquire); }

static tn_status not_ready(const tn__table *t, tn_status code, tn_error *err)
{
  return tn_error_set(err, code, "table '%s' is not initialised", t->name);
}

static tn_status check_again(const tn__table *t, size_t n, tn_error *err)
{
  if (n == t->rows.n) return TN_OK;
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "table '%s' was initialised with %zu keys before, it cannot be with %zu", t->name, t->rows.n, n);
}

/* Swaps rows and index only: the other members are equal, and are read without the lock. */
static void swap_rows(tn__rows *a, tn__rows *b)
{
  tn__rows was = *a;
  a->rows = b->rows, a->slots = b->slots, a->n = b->n, a->n_slots = b->n_slots;
  b->rows = was.rows, b->slots = was.slots, b->n = was.n, b->n_slots = was.n_slots;
}

/* Drops the rows if another thread initialised the table first. */
tn_status tn__table_init_rows(tn__table *t, tn__rows *rows, tn_error *err)
{
  size_t n = rows->n;
  tn__rwlock_write(&t->lock);
  bool late = is_ready(t);
  if (!late) {
    swap_rows(&t->rows, rows);
    atomic_store_explicit(&t->ready, true, memory_order_release);
  }
  tn__rwlock_unlock(&t->lock);
  if (!late) return TN_OK;
  tn__rows_fini(rows);
  return check_again(t, n, err);
}

static void empty_like(const tn__table *t, tn__rows *rows)
{
  tn__rows_init(rows, t->rows.key_dtype, t->rows.key_elements, t->rows.value_dtype, t->rows.value_elements, NULL);
}

tn_status tn__table_init(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err)
{
  tn__rows rows;
  tn__rows_source from;
  if (t->kind != TN__TABLE_FIXED)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s' cannot be initialised, its values are inserted",
                        t->name);
  if (n == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s' cannot be initialised without keys", t->name);
  if (is_ready(t)) return check_again(t, n, err);
  empty_like(t, &rows);
  tn_status st = tn__rows_source_open(&rows, keys, values, n, &from, err);
  if (st != TN_OK) return st;
  st = tn__rows_reserve(&rows, n, err);
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    if (i + TN__ROWS_AHEAD < n) tn__rows_expect(&rows, from.keys + (i + TN__ROWS_AHEAD) * rows.key_bytes);
    st = tn__table_add_row(&rows, from.keys + i * rows.key_bytes, from.values + i * rows.value_bytes, err);
  }
  tn__rows_source_close(&rows, &from);
  if (st == TN_OK) return tn__table_init_rows(t, &rows, err);
  tn__rows_fini(&rows);
  return tn_error_prefix(err, "table '%s'", t->name);
}

/* ---- finding ---- */

static void copy_plain(char *to, const void *const *from, size_t n, size_t bytes)
{
  switch (bytes) {
  case 4:
    for (size_t i = 0; i < n; i++) memcpy(to + i * 4, from[i], 4);
    break;
  case 8:
    for (size_t i = 0; i < n; i++) memcpy(to + i * 8, from[i], 8);
    break;
  default:
    for (size_t i = 0; i < n; i++) memcpy(to + i * bytes, from[i], bytes);
  }
}

static tn_status copy_values(const tn__rows *rows, char *to, const void *const *from, size_t n, tn_error *err)
{
  tn_status st = TN_OK;
  if (!tn__dtype_is_managed(rows->value_dtype)) {
    if (rows->value_bytes > 0) copy_plain(to, from, n, rows->value_bytes);
    return TN_OK;
  }
  for (size_t i = 0; st == TN_OK && i < n; i++)
    st = tn__copy_elements(rows->value_dtype, to + i * rows->value_bytes, from[i], rows->value_elements, err);
  return st;
}

static tn_status find_all(const tn__rows *rows, const char *keys, size_t n, const char *otherwise, bool each_key,
                          char *values, tn_error *err)
{
  const void *found[TN__ROWS_BLOCK];
  tn_status st = TN_OK;
  for (size_t at = 0, m; st == TN_OK && at < n; at += m) {
    m = n - at < TN__ROWS_BLOCK ? n - at : TN__ROWS_BLOCK;
    tn__rows_find_block(rows, keys + at * rows->key_bytes, m, found);
    for (size_t i = 0; i < m; i++)
      if (found[i] == NULL) found[i] = otherwise + (each_key ? (at + i) * rows->value_bytes : 0);
    st = copy_values(rows, values + at * rows->value_bytes, found, m, err);
  }
  return st;
}

typedef struct finding {
  const tn__rows *rows;
  const char *keys, *otherwise;
  bool each_key;
  char *values;
} finding;

static void find_part(void *user, int64_t begin, int64_t end)
{
  const finding *f = user;
  size_t at = (size_t)begin, value_bytes = f->rows->value_bytes;
  find_all(f->rows, f->keys + at * f->rows->key_bytes, (size_t)(end - begin),
           f->otherwise + (f->each_key ? at * value_bytes : 0), f->each_key, f->values + at * value_bytes, NULL);
}

/* Plain values are looked up by several threads, as copying them cannot fail. */
static tn_status find_many(tn_kernel_ctx *ctx, finding *f, size_t n)
{
  if (tn__dtype_is_managed(f->rows->value_dtype))
    return find_all(f->rows, f->keys, n, f->otherwise, f->each_key, f->values, ctx->err);
  tn_parallel_for(ctx, (int64_t)n, 1024, 30, find_part, f);
  return TN_OK;
}

tn_status tn__table_find(tn__table *t, tn_kernel_ctx *ctx, const void *keys, size_t n, const void *otherwise,
                         bool each_key, void *values)
{
  finding f = { &t->rows, keys, otherwise, each_key, values };
  if (t->kind == TN__TABLE_FIXED)
    return is_ready(t) ? find_many(ctx, &f, n) : not_ready(t, TN_FAILED_PRECONDITION, ctx->err);
  tn__rwlock_read(&t->lock);
  tn_status st = find_many(ctx, &f, n);
  tn__rwlock_unlock(&t->lock);
  return st;
}

int64_t tn__table_size(tn__table *t)
{
  if (t->kind == TN__TABLE_FIXED) return is_ready(t) ? (int64_t)t->rows.n : 0;
  tn__rwlock_read(&t->lock);
  size_t n = t->rows.n;
  tn__rwlock_unlock(&t->lock);
  return (int64_t)n;
}

/* ---- changing ---- */

static tn_status cannot_change(const tn__table *t, const char *what, tn_error *err)
{
  return tn_error_set(err, TN_UNIMPLEMENTED, "table '%s' is a HashTable, whose keys are not %s", t->name, what);
}

/* The buckets of a dense table are doubled as in TensorFlow, where inserted keys count even if they
 * exist already. Returns false if there would be too many. */
static bool more_buckets(const tn__table *t, size_t n, int64_t *buckets)
{
  for (*buckets = t->buckets; (double)n > (double)*buckets * t->max_load; *buckets *= 2)
    if (*buckets > INT64_MAX / 4) return false;
  return true;
}

tn_status tn__table_insert(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err)
{
  tn__rows_source from;
  int64_t buckets = 0;
  if (t->kind == TN__TABLE_FIXED) return cannot_change(t, "inserted", err);
  tn_status st = tn__rows_source_open(&t->rows, keys, values, n, &from, err);
  if (st != TN_OK) return st;
  tn__rwlock_write(&t->lock);
  if (t->kind == TN__TABLE_DENSE && !more_buckets(t, t->rows.n + n, &buckets))
    st = tn__no_memory(err, "buckets of a table", SIZE_MAX);
  if (st == TN_OK) st = tn__rows_reserve(&t->rows, n, err);
  if (st == TN_OK) t->buckets = buckets;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    if (i + TN__ROWS_AHEAD < n) tn__rows_expect(&t->rows, from.keys + (i + TN__ROWS_AHEAD) * t->rows.key_bytes);
    tn__rows_put(&t->rows, from.keys + i * t->rows.key_bytes, from.values + i * t->rows.value_bytes);
  }
  tn__rwlock_unlock(&t->lock);
  tn__rows_source_close(&t->rows, &from);
  return st;
}

/* Frees the elements of removed rows. */
static void clear_rows(const tn__rows *rows, char *gone, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    tn__elements_clear(rows->key_dtype, gone + i * rows->stride, rows->key_elements);
    tn__elements_clear(rows->value_dtype, gone + i * rows->stride + rows->value_at, rows->value_elements);
  }
}

tn_status tn__table_remove(tn__table *t, const void *keys, size_t n, tn_error *err)
{
  const tn__rows *rows = &t->rows;
  size_t places = rows->managed ? n : 1, removed = 0, bytes;
  if (t->kind == TN__TABLE_FIXED) return cannot_change(t, "removed", err);
  if (n == 0) return TN_OK;
  if (t->kind == TN__TABLE_DENSE && t->deleted_key == NULL)
    return tn_error_set(err, TN_UNIMPLEMENTED, "table '%s' has no deleted key, its keys are not removed", t->name);
  char *gone = tn__size_mul(places, rows->stride, &bytes) ? tn__zalloc(bytes) : NULL;
  if (gone == NULL) return tn__no_memory(err, "removed rows", SIZE_MAX);
  tn__rwlock_write(&t->lock);
  for (size_t i = 0; i < n; i++) {
    char *to = gone + (rows->managed ? removed * rows->stride : 0);
    removed += tn__rows_remove(&t->rows, (const char *)keys + i * rows->key_bytes, to);
  }
  tn__rwlock_unlock(&t->lock);
  if (rows->managed) clear_rows(rows, gone, removed);
  tn__free(gone, bytes);
  return TN_OK;
}

/* Whether a row imported into a dense table is a free bucket. */
static bool is_free(const tn__table *t, const void *key)
{
  const tn__rows *r = &t->rows;
  return t->kind == TN__TABLE_DENSE &&
         (tn__elements_equal(r->key_dtype, key, t->empty_key, r->key_elements) ||
          (t->deleted_key != NULL && tn__elements_equal(r->key_dtype, key, t->deleted_key, r->key_elements)));
}

static tn_status rows_of(const tn__table *t, const void *keys, const void *values, size_t n, tn__rows *rows,
                         tn_error *err)
{
  tn__rows_source from;
  empty_like(t, rows);
  tn_status st = tn__rows_source_open(rows, keys, values, n, &from, err);
  if (st != TN_OK) return st;
  st = tn__rows_reserve(rows, n, err);
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    char *key = from.keys + i * rows->key_bytes;
    if (!is_free(t, key)) tn__rows_put(rows, key, from.values + i * rows->value_bytes);
  }
  tn__rows_source_close(rows, &from);
  return st;
}

tn_status tn__table_import(tn__table *t, const void *keys, const void *values, size_t n, tn_error *err)
{
  tn__rows rows;
  if (t->kind == TN__TABLE_FIXED) return tn__table_init(t, keys, values, n, err);
  if (t->kind == TN__TABLE_DENSE && (n < 4 || (n & (n - 1)) != 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "table '%s': %zu buckets are imported, wanted 4, 8, 16 and so on",
                        t->name, n);
  tn_status st = rows_of(t, keys, values, n, &rows, err);
  if (st != TN_OK) return st;
  tn__rwlock_write(&t->lock);
  swap_rows(&t->rows, &rows);
  if (t->kind == TN__TABLE_DENSE) t->buckets = (int64_t)n;
  tn__rwlock_unlock(&t->lock);
  tn__rows_fini(&rows);
  return TN_OK;
}

/* ---- exporting ---- */

tn_status tn__table_begin_export(tn__table *t, size_t *n, tn_error *err)
{
  *n = 0;
  if (t->kind == TN__TABLE_FIXED && !is_ready(t)) return not_ready(t, TN_ABORTED, err);
  if (t->kind != TN__TABLE_FIXED) tn__rwlock_read(&t->lock);
  *n = t->kind == TN__TABLE_DENSE ? (size_t)t->buckets : t->rows.n;
  return TN_OK;
}

void tn__table_end_export(tn__table *t)
{
  if (t->kind != TN__TABLE_FIXED) tn__rwlock_unlock(&t->lock);
}
