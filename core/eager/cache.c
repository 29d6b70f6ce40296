/* SPDX-License-Identifier: Apache-2.0 */
/* Ops by name and attributes. The key is all of them as bytes, tensors with their elements. Looking up takes
 * no lock: entries are never removed before the session is closed, and a table that became too small is kept
 * until then. Their number and bytes are limited; beyond the limit an op is made for its call only. */
#include <core/eager/cache.h>

#define MOST_NAMED 4096                        /* entries of a session */
#define MOST_NAMED_BYTES ((size_t)64 << 20)    /* estimated memory of all entries */
#define MOST_BYTES_FOR_TENSORS (MOST_NAMED_BYTES / 4) /* for ops with tensors: they may differ in each call */
#define PLAN_BYTES ((size_t)24 << 10) /* roughly the memory of an op and its plan */
#define MOST_TENSOR_BYTES ((size_t)8 << 10) /* of a tensor in a key: comparing more takes as long as making the plan */
#define FIRST_CAPACITY 64
#define KEY_ON_STACK 512

/* ---- keys ---- */

/* Writes as much as fits, and counts all: the first attempt tells how much room is needed. */
typedef struct writer {
  char *to;
  size_t room, at;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
  if (n > 0 && w->at + n <= w->room) memcpy(w->to + w->at, bytes, n);
  w->at += n;
}

static void put_text(writer *w, const char *text) { put(w, text, strlen(text) + 1); }

/* The items of a list. Lengths precede texts and shapes, so that different lists have different
 * bytes. */
static void put_items(writer *w, const tn_eager_attr *a)
{
  int32_t item = a->kind & ~TN_ATTR_LIST;
  static const uint8_t sizes[] = {
    [TN_ATTR_INT] = 8, [TN_ATTR_FLOAT] = 4, [TN_ATTR_BOOL] = 1, [TN_ATTR_TYPE] = sizeof(tn_dtype)
  };
  if (item >= TN_ATTR_INT && item <= TN_ATTR_TYPE) {
    put(w, a->at, a->n * sizes[item]);
    return;
  }
  for (size_t i = 0; i < a->n; i++) {
    if (item == TN_ATTR_SHAPE) {
      int32_t rank = ((const int32_t *)a->sizes)[i];
      put(w, &rank, sizeof rank);
      if (rank > 0) put(w, ((const int64_t *const *)a->at)[i], (size_t)rank * sizeof(int64_t));
    } else {
      const char *text = ((const char *const *)a->at)[i];
      size_t n = a->sizes != NULL ? ((const size_t *)a->sizes)[i] : strlen(text);
      put(w, &n, sizeof n);
      put(w, text, n);
    }
  }
}

static void put_tensor(writer *w, const tn_tensor *t)
{
  put(w, &t->dtype, sizeof t->dtype);
  put(w, &t->rank, sizeof t->rank);
  put(w, t->dims, (size_t)t->rank * sizeof *t->dims);
  if (t->dtype != TN_STRING) {
    put(w, t->data, t->bytes);
    return;
  }
  for (int64_t i = 0; i < t->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)t->data + i, &n);
    put(w, &n, sizeof n);
    put(w, text, n);
  }
}

static void put_attr(writer *w, const tn_eager_attr *a)
{
  float f = (float)a->f;
  put_text(w, a->name);
  put(w, &a->kind, sizeof a->kind);
  if (a->kind & TN_ATTR_LIST) {
    put(w, &a->n, sizeof a->n);
    put_items(w, a);
  } else if (a->kind == TN_ATTR_STRING) {
    put(w, &a->n, sizeof a->n);
    put(w, a->at, a->n);
  } else if (a->kind == TN_ATTR_FUNC) {
    put_text(w, a->at);
  } else if (a->kind == TN_ATTR_TENSOR) {
    put_tensor(w, a->at);
  } else if (a->kind == TN_ATTR_SHAPE) {
    put(w, &a->rank, sizeof a->rank);
    if (a->rank > 0) put(w, a->at, (size_t)a->rank * sizeof(int64_t));
  } else if (a->kind == TN_ATTR_FLOAT) {
    put(w, &f, sizeof f);
  } else {
    put(w, &a->i, sizeof a->i);
  }
}

/* Writes the key if it fits; returns its size. */
static size_t write_key(const char *op, const tn_eager_attr *attrs, size_t n, char *to, size_t room)
{
  writer w = { to, room, 0 };
  put_text(&w, op);
  for (size_t i = 0; i < n; i++) put_attr(&w, &attrs[i]);
  return w.at;
}

/* Bytes of a tensor, strings included; SIZE_MAX if they are unknown or too many. */
static size_t tensor_bytes(const tn_tensor *t)
{
  size_t bytes = t->bytes;
  if (bytes > MOST_TENSOR_BYTES || (t->data == NULL && bytes > 0) || t->dtype == TN_RESOURCE || t->dtype == TN_VARIANT)
    return SIZE_MAX;
  for (int64_t i = 0; t->dtype == TN_STRING && i < t->count; i++) {
    size_t n;
    tn_string_data((const tn_string *)t->data + i, &n);
    if (n > MOST_TENSOR_BYTES - bytes) return SIZE_MAX;
    bytes += n;
  }
  return bytes;
}

/* Whether the attributes fit in a key. *copied: bytes of tensors, of which an op in the table has copies. */
static bool has_key(const tn_eager_attr *attrs, size_t n, size_t *copied)
{
  *copied = 0;
  for (size_t i = 0; i < n; i++) {
    size_t bytes = attrs[i].kind == TN_ATTR_TENSOR ? tensor_bytes(attrs[i].at) : 0;
    if (bytes == SIZE_MAX) return false;
    *copied += attrs[i].kind == TN_ATTR_TENSOR ? sizeof(tn_tensor) + bytes : 0;
  }
  return true;
}

/* ---- tables ---- */

/* Finds an entry; NULL: there is none. Ends at a free place, of which there always is one. */
static tn__eager_named *table_find(const tn__eager_table *t, uint64_t hash, const char *key, size_t size)
{
  for (size_t at = hash & (t->capacity - 1);; at = (at + 1) & (t->capacity - 1)) {
    tn__eager_named *named = atomic_load_explicit(&t->at[at], memory_order_acquire);
    if (named == NULL) return NULL;
    if (named->hash == hash && named->size == size && memcmp(named->key, key, size) == 0) return named;
  }
}

/* Stores an entry in a free place. The release makes its contents visible to threads that find it. */
static void table_insert(tn__eager_table *t, tn__eager_named *named)
{
  size_t at = named->hash & (t->capacity - 1);
  while (atomic_load_explicit(&t->at[at], memory_order_relaxed) != NULL) at = (at + 1) & (t->capacity - 1);
  atomic_store_explicit(&t->at[at], named, memory_order_release);
}

static size_t bytes_of(size_t capacity)
{
  return sizeof(tn__eager_table) + capacity * sizeof(_Atomic(tn__eager_named *));
}

/* A table with room for one more entry; NULL without memory. The session's mu is held. */
static tn__eager_table *room_locked(tn_eager_session *s)
{
  tn__eager_table *old = atomic_load(&s->table);
  if (old != NULL && s->n_named < old->capacity / 2) return old;
  size_t capacity = old == NULL ? FIRST_CAPACITY : 2 * old->capacity;
  tn__eager_table *t = tn__zalloc(bytes_of(capacity));
  if (t == NULL) return NULL;
  t->older = old;
  t->capacity = capacity;
  for (size_t i = 0; old != NULL && i < old->capacity; i++) {
    tn__eager_named *named = atomic_load_explicit(&old->at[i], memory_order_relaxed);
    if (named != NULL) table_insert(t, named);
  }
  atomic_store_explicit(&s->table, t, memory_order_release);
  return t;
}

/* Adds an entry. True: it is in the table, or an entry of the same key already is, whose op is stored in *op. */
static bool table_keep(tn_eager_session *s, tn__eager_named *named, size_t copied, tn_eager_op **op)
{
  size_t most = copied > 0 ? MOST_BYTES_FOR_TENSORS : MOST_NAMED_BYTES, bytes = PLAN_BYTES + named->size + copied;
  tn__mutex_lock(&s->mu);
  bool fits = s->n_named < MOST_NAMED && s->named_bytes <= most && bytes <= most - s->named_bytes;
  tn__eager_table *t = fits ? room_locked(s) : NULL;
  tn__eager_named *other = t == NULL ? NULL : table_find(t, named->hash, named->key, named->size);
  if (other != NULL) *op = other->op;
  if (t != NULL && other == NULL) {
    table_insert(t, named);
    s->n_named++;
    s->named_bytes += bytes;
  }
  tn__mutex_unlock(&s->mu);
  return t != NULL;
}

/* Makes an op, and adds it to the table if it may be kept. key NULL: the attributes fit in no key.
 * copied: bytes of tensors. */
static tn_status named_make(tn_eager_session *s, const char *name, const tn_eager_attr *attrs, size_t n, uint64_t hash,
                            const char *key, size_t size, size_t copied, tn_eager_op **out, bool *mine, tn_error *err)
{
  tn_eager_op *op;
  tn_status st = tn__eager_op_create(s, name, NULL, attrs, n, &op, err);
  if (st != TN_OK) return st;
  *out = op;
  *mine = true;
  if (key == NULL || !tn__eager_op_copy_tensors(op)) return TN_OK;
  tn__eager_named *named = tn__alloc(sizeof *named + size);
  if (named == NULL) return TN_OK; /* not kept: the next call makes it again */
  *named = (tn__eager_named){ .hash = hash, .size = size, .op = op };
  memcpy(named->key, key, size);
  if (!table_keep(s, named, copied, out)) {
    tn__free(named, sizeof *named + size);
    return TN_OK;
  }
  *mine = false;
  if (*out != op) {
    tn__free(named, sizeof *named + size);
    tn__eager_op_destroy(op);
  }
  return TN_OK;
}

tn_status tn__eager_named_op(tn_eager_session *s, const char *op, const tn_eager_attr *attrs, size_t n,
                             tn_eager_op **out, bool *mine, tn_error *err)
{
  char fixed[KEY_ON_STACK], *key = fixed;
  *out = NULL;
  *mine = false;
  tn_status st = n == 0 ? TN_OK : tn__eager_attrs_check(op, attrs, n, err);
  if (st != TN_OK) return st;
  size_t copied = 0;
  if (n > 0 && !has_key(attrs, n, &copied)) return named_make(s, op, attrs, n, 0, NULL, 0, 0, out, mine, err);
  size_t size = write_key(op, attrs, n, fixed, sizeof fixed);
  if (size > sizeof fixed) {
    key = tn__alloc(size);
    if (key == NULL) return tn__no_memory(err, "attributes of an operation", size);
    write_key(op, attrs, n, key, size);
  }
  uint64_t hash = tn__hash(key, size);
  const tn__eager_table *t = atomic_load_explicit(&s->table, memory_order_acquire);
  tn__eager_named *named = t == NULL ? NULL : table_find(t, hash, key, size);
  if (named != NULL) *out = named->op;
  else st = named_make(s, op, attrs, n, hash, key, size, copied, out, mine, err);
  if (key != fixed) tn__free(key, size);
  return st;
}

void tn__eager_named_destroy(tn_eager_session *s)
{
  tn__eager_table *t = atomic_exchange(&s->table, NULL);
  for (size_t i = 0; t != NULL && i < t->capacity; i++) {
    tn__eager_named *named = atomic_load(&t->at[i]);
    if (named == NULL) continue;
    tn__eager_plans_destroy(s, named->op);
    tn__eager_op_destroy(named->op);
    tn__free(named, sizeof *named + named->size);
  }
  while (t != NULL) {
    tn__eager_table *older = t->older;
    tn__free(t, bytes_of(t->capacity));
    t = older;
  }
}
