/* SPDX-License-Identifier: Apache-2.0 */
/* How a thread waits: it spins for a while, then parks until another one unparks it. */
#ifndef TN_CORE_POOL_PARK_H
#define TN_CORE_POOL_PARK_H

#include <core/base/threads/lock.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The state of a thread that sleeps until the event that it waits for may have occurred. It sets
 * `parked`, checks the condition again, and sleeps. The waking thread makes the condition true,
 * then clears `parked`, and wakes the sleeper if it was set. Both use exchanges of the same
 * variable, so at least one of the two sees the other's change: no wake-up is lost. */
typedef struct tn__parker {
  _Atomic uint32_t parked; /* 1: the thread sleeps, or is about to */
  tn__mutex mu;            /* with `woken`, only for the sleep; it guards nothing */
  tn__cond woken;
} tn__parker;

void tn__parker_init(tn__parker *parker);
void tn__parker_fini(tn__parker *parker);
/* Use: tn__park_begin, check the condition, then tn__park, or tn__park_cancel if it holds already.
 * tn__park sleeps until a thread calls tn__unpark; monotonic deadline, 0 = none. */
static inline void tn__park_begin(tn__parker *p) { atomic_exchange_explicit(&p->parked, 1, memory_order_acq_rel); }
void tn__park(tn__parker *parker, int64_t deadline_ns);
static inline void tn__park_cancel(tn__parker *p) { atomic_exchange_explicit(&p->parked, 0, memory_order_acq_rel); }
/* Any thread. Returns whether the thread was parked. */
bool tn__unpark(tn__parker *parker);

/* Tells the processor that this thread spins. */
static inline void tn__relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
