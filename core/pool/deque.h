/* SPDX-License-Identifier: Apache-2.0 */
/* A work-stealing deque (Chase and Lev): its owner pushes and pops at one end without a lock, any
 * other thread steals at the other end.
 *
 * The items are stored in a ring that doubles when it is full. A thief may still be reading the old
 * ring, so old rings are kept until the deque is destroyed. All old ones together are smaller than
 * the ring in use.
 *
 * Items [top, bottom) are in the deque. Both numbers count items since the beginning; an item's
 * place in the ring is its number modulo the ring's size. */
#ifndef TN_CORE_POOL_DEQUE_H
#define TN_CORE_POOL_DEQUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__ring tn__ring;

typedef struct tn__deque {
  _Atomic int64_t top;    /* number of the oldest item; changed by thieves, and by the owner for the last item; only
                           * increases */
  char apart[64 - sizeof(int64_t)]; /* thieves write to another cache line than the owner */
  _Atomic int64_t bottom; /* number of the next item; changed by the owner only */
  _Atomic(tn__ring *) ring; /* NULL: nothing has been pushed yet */
} tn__deque;

void tn__deque_init(tn__deque *deque);
void tn__deque_fini(tn__deque *deque); /* no thread may use it any more */

/* Appends an item. The owner only. False without memory: nothing changed. */
bool tn__deque_push(tn__deque *deque, void *item);
/* Removes the newest item. The owner only. NULL = empty. */
void *tn__deque_pop(tn__deque *deque);
/* Removes the oldest item. Any thread. NULL = empty. */
void *tn__deque_steal(tn__deque *deque);

/* The approximate number of items. Any thread. */
static inline int64_t tn__deque_count(const tn__deque *deque)
{
  int64_t top = atomic_load_explicit(&deque->top, memory_order_relaxed);
  int64_t n = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - top;
  return n > 0 ? n : 0;
}

#endif
