/* SPDX-License-Identifier: Apache-2.0 */
/* The deque of a worker.
 *
 * The owner and a thief may both try to take the last item. Each first announces that in one of the
 * two numbers, and then reads the other one: the owner stores bottom and loads top, the thief loads
 * top and bottom and exchanges top. These accesses are sequentially consistent, so at least one of
 * the two sees the other; then the compare-exchange of top decides. */
#include <core/pool/deque.h>

#include <core/base/alloc.h>

#define FIRST_RING 32

struct tn__ring {
  tn__ring *old; /* the ring that it replaced, NULL = none */
  int64_t mask;  /* size - 1; the size is a power of 2 */
  _Atomic(void *) items[];
};

static size_t size_of(int64_t n) { return sizeof(tn__ring) + (size_t)n * sizeof(_Atomic(void *)); }

void tn__deque_init(tn__deque *d)
{
  atomic_init(&d->top, 0);
  atomic_init(&d->bottom, 0);
  atomic_init(&d->ring, NULL);
}

void tn__deque_fini(tn__deque *d)
{
  tn__ring *r = atomic_load_explicit(&d->ring, memory_order_relaxed);
  while (r != NULL) {
    tn__ring *old = r->old;
    tn__free(r, size_of(r->mask + 1));
    r = old;
  }
}

/* Replaces the ring by one of twice the size, with the items in [top, bottom). Thieves may steal at
 * the same time, from either ring: an item is at the same number in both. NULL without memory. */
static tn__ring *grow(tn__deque *d, tn__ring *old, int64_t top, int64_t bottom)
{
  if (old != NULL && old->mask >= 1 << 27) return NULL;
  int64_t n = old == NULL ? FIRST_RING : 2 * (old->mask + 1);
  tn__ring *r = tn__alloc(size_of(n));
  if (r == NULL) return NULL;
  r->old = old;
  r->mask = n - 1;
  for (int64_t i = 0; i < n; i++) atomic_init(&r->items[i], NULL);
  for (int64_t i = top; i < bottom; i++)
    atomic_init(&r->items[i & r->mask], atomic_load_explicit(&old->items[i & old->mask], memory_order_relaxed));
  atomic_store_explicit(&d->ring, r, memory_order_release);
  return r;
}

bool tn__deque_push(tn__deque *d, void *item)
{
  int64_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);
  int64_t top = atomic_load_explicit(&d->top, memory_order_acquire);
  tn__ring *r = atomic_load_explicit(&d->ring, memory_order_relaxed);
  if (r == NULL || bottom - top > r->mask) {
    r = grow(d, r, top, bottom);
    if (r == NULL) return false;
  }
  atomic_store_explicit(&r->items[bottom & r->mask], item, memory_order_relaxed);
  atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
  return true;
}

void *tn__deque_pop(tn__deque *d)
{
  int64_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;
  if (bottom < atomic_load_explicit(&d->top, memory_order_relaxed)) return NULL; /* top only increases: it is empty */
  tn__ring *r = atomic_load_explicit(&d->ring, memory_order_relaxed);
  atomic_store_explicit(&d->bottom, bottom, memory_order_seq_cst);
  int64_t top = atomic_load_explicit(&d->top, memory_order_seq_cst);
  if (top > bottom) { /* a thief has taken the last item */
    atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
    return NULL;
  }
  void *item = atomic_load_explicit(&r->items[bottom & r->mask], memory_order_relaxed);
  if (top < bottom) return item;
  bool mine =
      atomic_compare_exchange_strong_explicit(&d->top, &top, top + 1, memory_order_seq_cst, memory_order_relaxed);
  atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
  return mine ? item : NULL;
}

void *tn__deque_steal(tn__deque *d)
{
  for (;;) {
    int64_t top = atomic_load_explicit(&d->top, memory_order_seq_cst);
    if (top >= atomic_load_explicit(&d->bottom, memory_order_seq_cst)) return NULL;
    tn__ring *r = atomic_load_explicit(&d->ring, memory_order_acquire);
    void *item = atomic_load_explicit(&r->items[top & r->mask], memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&d->top, &top, top + 1, memory_order_seq_cst, memory_order_relaxed))
      return item; /* no other thread had taken it, so its place was not reused when it was read */
  }
}
