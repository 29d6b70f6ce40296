/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor lists: a store holds the elements of the newest version, and older versions record where
 * they differ.
 *
 * The versions of a store form a chain from the oldest to the newest. A version has notes (i,
 * tensor): its own element i, which a newer version replaced. The first note for an index is valid.
 * Without a note, the element is that of the next newer version. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/base/threads/lock.h>
#include <core/tensor/account.h>
#include <core/tensor/tensor_internal.h>
#include <ops/state/list/tensor_list_store.h>
#include <stdatomic.h>
#include <string.h>

typedef struct note {
  int64_t i;
  tn_tensor *tensor; /* a reference, NULL = not set */
} note;

/* Notes made by a single change. */
typedef struct notes {
  struct notes *previous, *next;
  size_t n, room;
  note items[];
} notes;

typedef struct store {
  tn__mutex mu;
  tn__list_kind kind; /* dims are stored after the struct */
  size_t bytes;       /* of this allocation */
  _Atomic uint32_t versions;
  tn_tensor **items;  /* guarded by mu, like the whole chain */
  size_t room;
  tn__charge charge;  /* of items */
} store;

struct tn__list {
  tn_handle handle; /* must be first: tensor elements point to it */
  _Atomic uint32_t refs;
  bool locked; /* between change and done; used only by the thread that changes it */
  store *store;
  int64_t length;
  tn__list *older, *newer; /* guarded by the store's mu; not references */
  notes *first, *last;     /* guarded by the same mutex */
  tn__list *next_dead;
};

/* ---- handles ---- */

static void ref_handle(tn_handle *h) { tn__list_ref((tn__list *)h); }
static void unref_handle(tn_handle *h) { tn__list_unref((tn__list *)h); }

static const tn_handle_class handle_class = { .struct_size = sizeof handle_class, .type_name = "TensorList",
                                              .ref = ref_handle, .unref = unref_handle };

tn_handle *tn__list_handle(tn__list *l) { return &l->handle; }
tn__list *tn__handle_list(tn_handle *h) { return h != NULL && h->cls == &handle_class ? (tn__list *)h : NULL; }

const tn__list_kind *tn__list_kind_of(const tn__list *l) { return &l->store->kind; }
int64_t tn__list_length(const tn__list *l) { return l->length; }

tn__list *tn__list_ref(tn__list *l)
{
  if (l != NULL) atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
  return l;
}

/* ---- creation ---- */

static tn_status no_change(int64_t length, tn_error *err)
{
  return tn__no_memory(err, "tensor list", (size_t)length * sizeof(tn_tensor *));
}

static tn__list *new_version(store *s, int64_t length)
{
  tn__list *l = tn__zalloc(sizeof *l);
  if (l == NULL) return NULL;
  l->handle.cls = &handle_class;
  atomic_init(&l->refs, 1);
  l->store = s;
  l->length = length;
  atomic_fetch_add_explicit(&s->versions, 1, memory_order_relaxed);
  return l;
}

static void free_store(store *s)
{
  tn__mutex_fini(&s->mu);
  tn__free(s->items, s->room * sizeof *s->items);
  tn__charge_end(&s->charge);
  tn__free(s, s->bytes);
}

static tn_status new_store(const tn__list_kind *kind, int64_t length, store **out, tn_error *err)
{
  size_t n_dims = kind->rank < 0 ? 0 : (size_t)kind->rank, bytes = sizeof(store) + n_dims * sizeof(int64_t);
  store *s = *out = tn__zalloc(bytes);
  if (s == NULL) return tn__no_memory(err, "tensor list", bytes);
  s->bytes = bytes;
  s->kind = *kind;
  s->kind.dims = (const int64_t *)(s + 1);
  if (n_dims > 0) memcpy(s + 1, kind->dims, n_dims * sizeof(int64_t));
  tn__mutex_init(&s->mu, "tensor list", TN_RANK_TENSOR_LIST);
  if (length <= 0) return TN_OK;
  tn_status st = tn__charge_set(&s->charge, "tensor list", (size_t)length * sizeof *s->items, err);
  if (st == TN_OK) s->items = tn__alloc_array((size_t)length, sizeof *s->items);
  if (st == TN_OK && s->items == NULL) st = no_change(length, err);
  if (st == TN_OK) s->room = (size_t)length;
  return st;
}

/* The last version also owns the mutex, so the store is freed with it. */
static void free_version(tn__list *l)
{
  store *s = l->store;
  tn__free(l, sizeof *l);
  if (atomic_fetch_sub_explicit(&s->versions, 1, memory_order_acq_rel) == 1) free_store(s);
}

tn_status tn__list_create(const tn__list_kind *kind, int64_t length, tn__list **out, tn_error *err)
{
  store *s;
  tn_status st = new_store(kind, length, &s, err);
  *out = st != TN_OK ? NULL : new_version(s, length);
  if (*out != NULL) return TN_OK;
  if (s != NULL) free_store(s);
  return st != TN_OK ? st : no_change(length, err);
}

/* ---- notes ---- */

static notes *new_notes(size_t room)
{
  notes *n = tn__zalloc(sizeof *n + room * sizeof *n->items);
  if (n != NULL) n->room = room;
  return n;
}

static void free_notes(notes *n)
{
  for (notes *next; n != NULL; n = next) {
    next = n->next;
    for (size_t k = 0; k < n->n; k++) tn_tensor_unref(n->items[k].tensor);
    tn__free(n, sizeof *n + n->room * sizeof *n->items);
  }
}

/* Appends a chain of notes to those of a version. */
static void append_notes(tn__list *l, notes *first, notes *last)
{
  if (first == NULL) return;
  first->previous = l->last;
  if (l->last != NULL) l->last->next = first;
  else l->first = first;
  l->last = last;
}

static const note *find_note(const tn__list *l, int64_t i)
{
  for (const notes *n = l->first; n != NULL; n = n->next)
    for (size_t k = 0; k < n->n; k++)
      if (n->items[k].i == i) return &n->items[k];
  return NULL;
}

/* ---- reading ---- */

tn_tensor *tn__list_get(tn__list *l, int64_t i)
{
  store *s = l->store;
  tn__mutex_lock(&s->mu);
  const note *found = NULL;
  for (const tn__list *v = l; found == NULL && v->newer != NULL; v = v->newer) found = find_note(v, i);
  tn_tensor *t = tn_tensor_ref(found != NULL ? found->tensor : s->items[i]);
  tn__mutex_unlock(&s->mu);
  return t;
}

/* Copies the elements of version l, without references. Walks from the newest version back, and
 * through notes backwards, so that the first note for an index is applied last. */
static void copy_items(const tn__list *l, tn_tensor **to)
{
  const tn__list *newest = l;
  while (newest->newer != NULL) newest = newest->newer;
  int64_t n = newest->length < l->length ? newest->length : l->length;
  if (n > 0) memcpy(to, l->store->items, (size_t)n * sizeof *to);
  if (newest == l) return;
  for (const tn__list *v = newest->older;; v = v->older) {
    for (const notes *b = v->last; b != NULL; b = b->previous)
      for (size_t k = b->n; k-- > 0;)
        if (b->items[k].i < l->length) to[b->items[k].i] = b->items[k].tensor;
    if (v == l) return;
  }
}

static void snapshot(tn__list *l, tn_tensor **to)
{
  tn__mutex_lock(&l->store->mu);
  copy_items(l, to);
  for (int64_t i = 0; i < l->length; i++) tn_tensor_ref(to[i]);
  tn__mutex_unlock(&l->store->mu);
}

tn_status tn__list_all(tn__list *l, tn_tensor ***out, tn_error *err)
{
  size_t n = (size_t)l->length + 1, bytes = n * sizeof **out;
  *out = NULL;
  if (!tn__account_charge(tn__account_now, bytes))
    return tn__account_refuse(tn__account_now, "elements of a tensor list", bytes, err);
  *out = tn__alloc_array(n, sizeof **out);
  if (*out == NULL) {
    tn__account_credit(tn__account_now, bytes);
    return tn__no_memory(err, "elements of a tensor list", bytes);
  }
  snapshot(l, *out);
  return TN_OK;
}

void tn__list_all_destroy(tn_tensor **items, int64_t n)
{
  if (items == NULL) return;
  tn__drop_tensors(items, n);
  tn__free(items, ((size_t)n + 1) * sizeof *items);
  tn__account_credit(tn__account_now, ((size_t)n + 1) * sizeof *items); /* credited to the step that charged them */
}

/* ---- changing ---- */

/* Copies version l into a store of its own, truncated or extended to `length`. */
static tn_status copy_version(tn__list *l, int64_t length, tn__list **out, tn_error *err)
{
  int64_t room = length > l->length ? length : l->length;
  tn_status st = tn__list_create(&l->store->kind, room, out, err);
  if (st != TN_OK) return st;
  store *s = (*out)->store;
  snapshot(l, s->items);
  if (length < l->length) {
    tn__drop_tensors(s->items + length, l->length - length);
    memset(s->items + length, 0, (size_t)(l->length - length) * sizeof *s->items);
  }
  (*out)->length = length;
  return TN_OK;
}

/* Records the previous version's element i, unless it is unset and past that version's end. There
 * must be room. */
static void note_old(tn__list *older, int64_t i, tn_tensor *tensor)
{
  if (i >= older->length && tensor == NULL) return;
  notes *b = older->last;
  b->items[b->n++] = (note){ i, tensor };
}

/* Makes room in the store for `to` elements, all from `from` on NULL. Grows geometrically, as for
 * repeated pushes. */
static tn_status grow_items(store *s, int64_t from, int64_t to, tn_error *err)
{
  if (to <= from) return TN_OK;
  if ((size_t)to > s->room) {
    tn_status st = tn__charge_set(&s->charge, "tensor list", (size_t)to * sizeof *s->items, err);
    if (st == TN_OK && !tn__grow((void **)&s->items, &s->room, (size_t)to, sizeof *s->items)) st = no_change(to, err);
    tn__charge_settle(&s->charge, s->room * sizeof *s->items);
    if (st != TN_OK) return st;
  }
  memset(s->items + from, 0, (size_t)(to - from) * sizeof *s->items);
  return TN_OK;
}

tn_status tn__list_change(tn__list *l, int64_t length, size_t puts, tn__list **out, tn_error *err)
{
  store *s = l->store;
  size_t n_notes = puts + (size_t)(length < l->length ? l->length - length : 0);
  notes *b = NULL;
  *out = NULL;
  tn__mutex_lock(&s->mu);
  if (l->newer != NULL) {
    tn__mutex_unlock(&s->mu);
    return copy_version(l, length, out, err);
  }
  tn__list *v = new_version(s, length);
  if (n_notes > 0) b = new_notes(n_notes);
  tn_status st =
      v == NULL || (n_notes > 0 && b == NULL) ? no_change(length, err) : grow_items(s, l->length, length, err);
  if (st != TN_OK) {
    tn__mutex_unlock(&s->mu);
    if (v != NULL) free_version(v);
    free_notes(b);
    return st;
  }
  append_notes(l, b, b);
  v->older = l;
  l->newer = v;
  v->locked = true;
  for (int64_t i = length; i < l->length; i++) {
    note_old(l, i, s->items[i]);
    s->items[i] = NULL;
  }
  *out = v;
  return TN_OK;
}

void tn__list_put(tn__list *v, int64_t i, tn_tensor *tensor)
{
  tn_tensor **place = &v->store->items[i], *old = *place;
  *place = tensor;
  if (v->locked) note_old(v->older, i, old);
  else tn_tensor_unref(old); /* a private copy: no older version */
}

/* Removes the notes of a change if they are empty, as after a push. */
void tn__list_done(tn__list *v)
{
  if (!v->locked) return;
  tn__list *l = v->older;
  notes *b = l->last;
  bool empty = b != NULL && b->n == 0;
  if (empty) {
    l->last = b->previous;
    if (l->last != NULL) l->last->next = NULL;
    else l->first = NULL;
  }
  v->locked = false;
  tn__mutex_unlock(&v->store->mu);
  if (empty) free_notes(b);
}

/* ---- destruction ---- */

static void unlink_version(tn__list *v)
{
  if (v->older != NULL) v->older->newer = v->newer;
  if (v->newer != NULL) v->newer->older = v->older;
}

/* Destroys the newest version, v, and restores the store to the version before it. The returned
 * notes then own the elements of v that were replaced. */
static notes *go_back(tn__list *v)
{
  tn__list *l = v->older;
  store *s = v->store;
  notes *all = l->first;
  for (notes *b = l->last; b != NULL; b = b->previous) {
    for (size_t k = b->n; k-- > 0;) {
      note *n = &b->items[k];
      if (n->i >= l->length) continue;
      tn_tensor *now = s->items[n->i];
      s->items[n->i] = n->tensor;
      n->tensor = now;
    }
  }
  l->first = l->last = NULL;
  unlink_version(v);
  return all;
}

/* Removes v from the chain. If v is the newest and has more elements than the version before it,
 * takes out up to `room` of them first, and must be called again if some are left. Elements to
 * release after unlocking are in *spent and some[*n]. Returns true once v is removed. */
static bool leave_chain(tn__list *v, notes **spent, tn_tensor **some, int64_t *n, int64_t room)
{
  store *s = v->store;
  tn__list *l = v->older;
  if (v->newer != NULL || l == NULL) {
    if (l != NULL) append_notes(l, v->first, v->last);
    else *spent = v->first;
    unlink_version(v);
    return true;
  }
  while (*n < room && v->length > l->length) {
    some[(*n)++] = s->items[--v->length];
    s->items[v->length] = NULL;
  }
  if (v->length > l->length) return false;
  *spent = go_back(v);
  return true;
}

static void destroy(tn__list *v)
{
  store *s = v->store;
  notes *spent = NULL;
  tn_tensor *some[64];
  bool out = false, alone = false;
  while (!out) {
    int64_t n = 0;
    tn__mutex_lock(&s->mu);
    alone = v->older == NULL && v->newer == NULL;
    out = alone || leave_chain(v, &spent, some, &n, 64);
    tn__mutex_unlock(&s->mu);
    tn__drop_tensors(some, n);
  }
  free_notes(spent);
  if (alone) tn__drop_tensors(s->items, v->length);
  free_version(v);
}

/* Lists may be nested to any depth by loops, so lists released in turn are queued rather than
 * released recursively. */
void tn__list_unref(tn__list *l)
{
  static _Thread_local struct {
    bool busy;
    tn__list *dead;
  } ends;
  if (l == NULL || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) return;
  l->next_dead = ends.dead;
  ends.dead = l;
  if (ends.busy) return;
  ends.busy = true;
  while (ends.dead != NULL) {
    tn__list *next = ends.dead;
    ends.dead = next->next_dead;
    destroy(next);
  }
  ends.busy = false;
}
