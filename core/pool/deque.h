/* SPDX-License-Identifier: Apache-2.0 */
/* A work-stealing deque (Chase and Lev): its owner pushes and pops at one end without a lock, any other thread steals
 * at the other one.
 *
 * The items stand in a ring that doubles when it is full. A thief may still read the old ring, so that one is kept
 * until the deque goes: all old ones together are smaller than the ring in use. */
#ifndef TN_CORE_POOL_DEQUE_H
#define TN_CORE_POOL_DEQUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn__ring tn__ring;

typedef struct tn__deque {
  _Atomic int64_t top;    /* of the thieves; rises only */
  char apart[64 - sizeof(int64_t)];
  _Atomic int64_t bottom; /* of the owner */
  _Atomic(tn__ring *) ring; /* NULL: nothing was pushed yet */
} tn__deque;

void tn__deque_init(tn__deque *deque);
void tn__deque_fini(tn__deque *deque); /* nobody uses it any more */

/* The owner. False without memory: nothing changed. */
bool tn__deque_push(tn__deque *deque, void *item);
/* The owner: what was pushed last; NULL = empty. */
void *tn__deque_pop(tn__deque *deque);
/* Any thread: what was pushed first; NULL = empty. */
void *tn__deque_steal(tn__deque *deque);

/* Any thread: about how many there are. */
static inline int64_t tn__deque_count(const tn__deque *deque)
{
  int64_t top = atomic_load_explicit(&deque->top, memory_order_relaxed);
  int64_t n = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - top;
  return n > 0 ? n : 0;
}

#endif
