/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions that stop work for a caller: its session was closed, it was cancelled, its deadline has passed. They
 * apply to a step and to the preparation of one (plans, layouts, packed constants). */
#ifndef TN_CORE_BASE_THREADS_STOP_H
#define TN_CORE_BASE_THREADS_STOP_H

#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The reason to stop. */
enum { TN__GO_ON = 0, TN__STOP_CLOSED, TN__STOP_CANCELLED, TN__STOP_DEADLINE };

/* Times are those of tn__now_ns. The pointers are borrowed. */
typedef struct tn__stop {
  const _Atomic int64_t *closed;    /* when the session was closed, 0 = open; NULL = no session */
  const _Atomic int64_t *cancelled; /* when the work was cancelled, 0 = not cancelled; NULL = it cannot be cancelled */
  int64_t deadline_ns;              /* 0 = none */
} tn__stop;

/* The reason to stop; of several, the earliest (S-CAN-07). Arguments are times; 0 = it did not happen, or there is no
 * deadline. */
static inline int tn__stop_first(int64_t closed, int64_t cancelled, int64_t deadline_ns)
{
  if (closed == 0 && cancelled == 0)
    return deadline_ns != 0 && tn__now_ns() >= deadline_ns ? TN__STOP_DEADLINE : TN__GO_ON;
  int64_t first = closed == 0 || (cancelled != 0 && cancelled < closed) ? cancelled : closed;
  if (deadline_ns != 0 && deadline_ns < first) return TN__STOP_DEADLINE;
  return first == closed ? TN__STOP_CLOSED : TN__STOP_CANCELLED;
}

static inline int tn__stop_why(const tn__stop *s)
{
  int64_t closed = s->closed == NULL ? 0 : atomic_load_explicit(s->closed, memory_order_relaxed);
  int64_t cancelled = s->cancelled == NULL ? 0 : atomic_load_explicit(s->cancelled, memory_order_relaxed);
  return tn__stop_first(closed, cancelled, s->deadline_ns);
}

/* The stop conditions of what this thread prepares: plans, layouts, packed constants. NULL: none. Borrowed. */
extern _Thread_local const tn__stop *tn__stop_now TN__THREAD_WORD;

static inline bool tn__stopped_now(void) { return tn__stop_now != NULL && tn__stop_why(tn__stop_now) != TN__GO_ON; }

#endif
