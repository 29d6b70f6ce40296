/* SPDX-License-Identifier: Apache-2.0 */
/* When work for a caller has to end: its session was closed, it was cancelled, its time is over. A step has all three,
 * and so has what is prepared for one. */
#ifndef TN_CORE_BASE_STOP_H
#define TN_CORE_BASE_STOP_H

#include <core/base/lock.h>
#include <core/base/thread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Why work is to end. */
enum { TN__GO_ON = 0, TN__STOP_CLOSED, TN__STOP_CANCELLED, TN__STOP_DEADLINE };

/* Times are of the monotonic clock. */
typedef struct tn__stop {
  const _Atomic int64_t *closed;    /* when the session was closed, 0 = it is open; NULL = there is none */
  const _Atomic int64_t *cancelled; /* when it was, 0 = it was not; NULL = nothing can cancel it */
  int64_t deadline_ns;              /* 0 = none */
} tn__stop;

/* Of several reasons the first counts (S-CAN-07). Times; 0 = it did not happen, or there is no limit. */
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

/* What this thread prepares ends with: plans, layouts, forms of constants. NULL: nothing ends it. */
extern _Thread_local const tn__stop *tn__stop_now TN__THREAD_WORD;

static inline bool tn__stopped_now(void) { return tn__stop_now != NULL && tn__stop_why(tn__stop_now) != TN__GO_ON; }

#endif
