/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table. The index uses linear probing and is at most three quarters full. A removal
 * moves later slots back and the last row into the gap, so that rows stay contiguous and there are
 * no tombstones. */
#include <core/base/map.h>
#include <ops/kernel/elements/half.h>
#include <ops/state/table/table_rows.h>
#include <string.h>

#define MIN_SLOTS 16
#define MAX_ROWS UINT32_C(0xbffffff0) /* rows are numbered in 32 bits */

/* ---- keys ---- */

/* Hashes of texts and bytes are seeded per process, so that a file cannot contain keys chosen to
 * collide. */
static uint32_t hash_key(const tn__rows *rows, const void *key)
{
  uint64_t h;
  if (rows->key_dtype != TN_STRING) {
    h = tn__hash(key, rows->key_bytes);
  } else {
    h = 0;
    for (int64_t i = 0; i < rows->key_elements; i++) {
      size_t n;
      const char *text = tn_string_data((const tn_string *)key + i, &n);
      uint64_t one = tn__hash(text, n);
      h = i == 0 ? one : tn__hash((const uint64_t[]){ h, one }, 16);
    }
  }
  return (uint32_t)(h >> 32);
}

static bool equal_strings(const tn_string *a, const tn_string *b, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    size_t na, nb;
    const char *x = tn_string_data(a + i, &na), *y = tn_string_data(b + i, &nb);
    if (na != nb || (na > 0 && memcmp(x, y, na) != 0)) return false;
  }
  return true;
}

static inline bool equal_keys(const tn__rows *rows, const void *a, const void *b)
{
  if (rows->key_dtype == TN_STRING) return equal_strings(a, b, rows->key_elements);
  return memcmp(a, b, rows->key_bytes) == 0;
}

static bool equal_halves(const uint16_t *a, const uint16_t *b, int64_t n, int (*is_nan)(uint16_t))
{
  for (int64_t i = 0; i < n; i++)
    if (is_nan(a[i]) || is_nan(b[i]) || (a[i] != b[i] && ((a[i] | b[i]) & 0x7fff) != 0)) return false;
  return true;
}

bool tn__elements_equal(tn_dtype dtype, const void *a, const void *b, int64_t n)
{
  if (dtype == TN_COMPLEX64) dtype = TN_FLOAT, n *= 2;
  if (dtype == TN_COMPLEX128) dtype = TN_DOUBLE, n *= 2;
  switch (dtype) {
  case TN_STRING: return equal_strings(a, b, n);
  case TN_HALF: return equal_halves(a, b, n, tn__half_is_nan);
  case TN_BFLOAT16: return equal_halves(a, b, n, tn__bfloat16_is_nan);
  case TN_FLOAT:
    for (int64_t i = 0; i < n; i++)
      if (!(((const float *)a)[i] == ((const float *)b)[i])) return false;
    return true;
  case TN_DOUBLE:
    for (int64_t i = 0; i < n; i++)
      if (!(((const double *)a)[i] == ((const double *)b)[i])) return false;
    return true;
  default: return n == 0 || memcmp(a, b, (size_t)n * tn_dtype_size(dtype)) == 0;
  }
}

/* ---- memory ---- */

tn_status tn__rows_init(tn__rows *rows, tn_dtype key, int64_t key_elements, tn_dtype value, int64_t value_elements,
                        tn_error *err)
{
  *rows = (tn__rows){ .key_elements = key_elements, .value_elements = value_elements, .key_dtype = key,
                      .value_dtype = value, .managed = tn__dtype_is_managed(key) || tn__dtype_is_managed(value) };
  size_t limit = PTRDIFF_MAX / 4;
  if (!tn__size_mul((size_t)key_elements, tn_dtype_size(key), &rows->key_bytes) || rows->key_bytes > limit ||
      !tn__size_mul((size_t)value_elements, tn_dtype_size(value), &rows->value_bytes) || rows->value_bytes > limit)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "a key of %lld and a value of %lld elements are too large for a table", (long long)key_elements,
                        (long long)value_elements);
  size_t align = rows->key_bytes % 8 != 0 && rows->value_bytes % 8 != 0 && !rows->managed ? 4 : 8;
  rows->value_at = tn__round_up(rows->key_bytes, align);
  rows->stride = tn__round_up(rows->value_at + rows->value_bytes, align);
  if (rows->stride == 0) rows->stride = align;
  return TN_OK;
}

static size_t max_rows(size_t n_slots) { return n_slots / 4 * 3; }

static void clear_row(const tn__rows *rows, char *row)
{
  tn__elements_clear(rows->key_dtype, row, rows->key_elements);
  tn__elements_clear(rows->value_dtype, row + rows->value_at, rows->value_elements);
}

void tn__rows_fini(tn__rows *rows)
{
  for (size_t i = 0; rows->managed && i < rows->n; i++) clear_row(rows, tn__rows_key(rows, i));
  tn__free(rows->rows, max_rows(rows->n_slots) * rows->stride);
  tn__free(rows->slots, rows->n_slots * sizeof *rows->slots);
  rows->rows = NULL;
  rows->slots = NULL;
  rows->n = rows->n_slots = 0;
  tn__charge_end(&rows->charge);
}

static void index_add(uint64_t *slots, size_t n_slots, uint64_t slot)
{
  size_t mask = n_slots - 1, at = slot >> 32 & mask;
  while (slots[at] != 0) at = (at + 1) & mask;
  slots[at] = slot;
}

tn_status tn__rows_reserve(tn__rows *rows, size_t more, tn_error *err)
{
  size_t wanted, bytes, n_slots = rows->n_slots == 0 ? MIN_SLOTS : rows->n_slots;
  if (!tn__size_add(rows->n, more, &wanted) || wanted > MAX_ROWS)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "a table has room for %lu rows, %zu more than its %zu are too many",
                        (unsigned long)MAX_ROWS, more, rows->n);
  if (wanted <= max_rows(rows->n_slots)) return TN_OK;
  while (max_rows(n_slots) < wanted) n_slots *= 2;
  if (!tn__size_mul(max_rows(n_slots), rows->stride, &bytes)) return tn__no_memory(err, "rows of a table", SIZE_MAX);
  tn_status st = tn__charge_set(&rows->charge, "rows of a table", bytes + n_slots * sizeof *rows->slots, err);
  if (st != TN_OK) return st;
  uint64_t *slots = tn__alloc_array(n_slots, sizeof *slots);
  char *data = NULL;
  if (slots != NULL) data = rows->managed ? tn__zalloc(bytes) : tn__alloc(bytes);
  if (data == NULL) {
    tn__free(slots, n_slots * sizeof *slots);
    tn__charge_settle(&rows->charge, max_rows(rows->n_slots) * rows->stride + rows->n_slots * sizeof *rows->slots);
    return tn__no_memory(err, "rows of a table", bytes);
  }
  for (size_t i = 0; i < rows->n_slots; i++)
    if (rows->slots[i] != 0) index_add(slots, n_slots, rows->slots[i]);
  if (rows->n > 0) memcpy(data, rows->rows, rows->n * rows->stride);
  tn__free(rows->rows, max_rows(rows->n_slots) * rows->stride);
  tn__free(rows->slots, rows->n_slots * sizeof *rows->slots);
  rows->rows = data;
  rows->slots = slots;
  rows->n_slots = n_slots;
  return TN_OK;
}

/* ---- finding ---- */

#define NOWHERE SIZE_MAX

/* Finds the slot of a key, or the free slot for it; then *row is NOWHERE. There must be a free slot. */
static size_t search(const tn__rows *rows, uint32_t hash, const void *key, size_t *row)
{
  size_t mask = rows->n_slots - 1, at = hash & mask;
  for (; rows->slots[at] != 0; at = (at + 1) & mask) {
    if (rows->slots[at] >> 32 != hash) continue;
    *row = (uint32_t)rows->slots[at] - 1;
    if (equal_keys(rows, tn__rows_key(rows, *row), key)) return at;
  }
  *row = NOWHERE;
  return at;
}

void *tn__rows_find(const tn__rows *rows, const void *key)
{
  size_t row;
  if (rows->n == 0) return NULL;
  search(rows, hash_key(rows, key), key, &row);
  return row == NOWHERE ? NULL : tn__rows_value(rows, row);
}

void tn__rows_find_block(const tn__rows *rows, const void *keys, size_t n, const void **values)
{
  uint32_t hashes[TN__ROWS_BLOCK];
  size_t row;
  if (rows->n == 0) {
    for (size_t i = 0; i < n; i++) values[i] = NULL;
    return;
  }
  for (size_t i = 0; i < n; i++) {
    hashes[i] = hash_key(rows, (const char *)keys + i * rows->key_bytes);
    __builtin_prefetch(&rows->slots[hashes[i] & (rows->n_slots - 1)]);
  }
  for (size_t i = 0; i < n; i++) { /* the likely rows of the keys */
    uint64_t slot = rows->slots[hashes[i] & (rows->n_slots - 1)];
    if (slot != 0) __builtin_prefetch(tn__rows_key(rows, (uint32_t)slot - 1));
  }
  for (size_t i = 0; i < n; i++) {
    search(rows, hashes[i], (const char *)keys + i * rows->key_bytes, &row);
    values[i] = row == NOWHERE ? NULL : tn__rows_value(rows, row);
  }
}

/* ---- changing ---- */

/* Elements that own memory are swapped with the previous contents; their size is a multiple of 8
 * bytes. */
static void move(tn_dtype dtype, char *to, char *from, size_t bytes)
{
  if (!tn__dtype_is_managed(dtype)) {
    if (bytes > 0) memcpy(to, from, bytes);
    return;
  }
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t a, b;
    memcpy(&a, to + i, sizeof a);
    memcpy(&b, from + i, sizeof b);
    memcpy(to + i, &b, sizeof b);
    memcpy(from + i, &a, sizeof a);
  }
}

void tn__rows_expect(const tn__rows *rows, const void *key)
{
  __builtin_prefetch(&rows->slots[hash_key(rows, key) & (rows->n_slots - 1)]);
}

void tn__rows_put(tn__rows *rows, void *key, void *value)
{
  size_t row;
  uint32_t hash = hash_key(rows, key);
  size_t at = search(rows, hash, key, &row);
  if (row == NOWHERE) {
    row = rows->n++;
    rows->slots[at] = (uint64_t)hash << 32 | (uint32_t)(row + 1);
    move(rows->key_dtype, tn__rows_key(rows, row), key, rows->key_bytes);
  }
  move(rows->value_dtype, tn__rows_value(rows, row), value, rows->value_bytes);
}

/* Frees a slot of the index: later entries that would fit there are moved back. */
static void index_remove(tn__rows *rows, size_t hole)
{
  size_t mask = rows->n_slots - 1;
  for (size_t at = (hole + 1) & mask; rows->slots[at] != 0; at = (at + 1) & mask) {
    size_t home = rows->slots[at] >> 32 & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its first slot is after the hole */
    rows->slots[hole] = rows->slots[at];
    hole = at;
  }
  rows->slots[hole] = 0;
}

bool tn__rows_remove(tn__rows *rows, const void *key, void *gone)
{
  size_t row, last = rows->n - 1, unused;
  if (rows->n == 0) return false;
  size_t at = search(rows, hash_key(rows, key), key, &row);
  if (row == NOWHERE) return false;
  char *hole = tn__rows_key(rows, row), *from = tn__rows_key(rows, last);
  memcpy(gone, hole, rows->stride);
  index_remove(rows, at);
  if (row != last) {
    at = search(rows, hash_key(rows, from), from, &unused);
    rows->slots[at] = (rows->slots[at] & ~(uint64_t)UINT32_MAX) | (uint32_t)(row + 1);
    memcpy(hole, from, rows->stride);
  }
  if (rows->managed) memset(from, 0, rows->stride);
  rows->n = last;
  return true;
}

/* ---- sources ---- */

/* Copies n elements. Allocates at least one byte, so that only a failure returns NULL. */
static char *copy_of(tn_dtype dtype, const void *from, int64_t n, size_t bytes, tn_error *err)
{
  char *to = tn__zalloc(bytes + 1);
  if (to == NULL) {
    tn__no_memory(err, "elements for a table", bytes);
  } else if (!tn__dtype_is_managed(dtype)) {
    if (bytes > 0) memcpy(to, from, bytes);
  } else if (tn__elements_copy(dtype, to, from, n, err) != TN_OK) {
    tn__free(to, bytes + 1);
    to = NULL;
  }
  return to;
}

tn_status tn__rows_source_open(const tn__rows *like, const void *keys, const void *values, size_t n,
                               tn__rows_source *out, tn_error *err)
{
  *out = (tn__rows_source){ .n = n, .owned = like->managed };
  if (!like->managed) {
    out->keys = (char *)keys; /* not written: plain elements are copied */
    out->values = (char *)values;
    return TN_OK;
  }
  out->keys = copy_of(like->key_dtype, keys, (int64_t)n * like->key_elements, n * like->key_bytes, err);
  if (out->keys == NULL) return TN_RESOURCE_EXHAUSTED;
  out->values = copy_of(like->value_dtype, values, (int64_t)n * like->value_elements, n * like->value_bytes, err);
  if (out->values != NULL) return TN_OK;
  tn__rows_source_close(like, out);
  return TN_RESOURCE_EXHAUSTED;
}

void tn__rows_source_close(const tn__rows *like, tn__rows_source *source)
{
  if (!source->owned) return;
  if (source->keys != NULL) {
    tn__elements_clear(like->key_dtype, source->keys, (int64_t)source->n * like->key_elements);
    tn__free(source->keys, source->n * like->key_bytes + 1);
  }
  if (source->values != NULL) {
    tn__elements_clear(like->value_dtype, source->values, (int64_t)source->n * like->value_elements);
    tn__free(source->values, source->n * like->value_bytes + 1);
  }
  *source = (tn__rows_source){ .n = 0 };
}
