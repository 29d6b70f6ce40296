/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that sleep until another thread unparks them. */
#include <core/pool/park.h>

void tn__parker_init(tn__parker *p)
{
  atomic_init(&p->parked, 0);
  tn__mutex_init(&p->mu, "parked thread", TN_RANK_PARKED);
  tn__cond_init(&p->woken);
}

void tn__parker_fini(tn__parker *p)
{
  tn__cond_fini(&p->woken);
  tn__mutex_fini(&p->mu);
}

void tn__park(tn__parker *p, int64_t deadline_ns)
{
  tn__mutex_lock(&p->mu);
  while (atomic_load_explicit(&p->parked, memory_order_acquire) != 0) {
    if (deadline_ns == 0) tn__cond_wait(&p->woken, &p->mu);
    else if (!tn__cond_wait_until(&p->woken, &p->mu, deadline_ns)) break;
  }
  tn__mutex_unlock(&p->mu);
  tn__park_cancel(p);
}

bool tn__unpark(tn__parker *p)
{
  if (atomic_exchange_explicit(&p->parked, 0, memory_order_acq_rel) == 0) return false;
  tn__mutex_lock(&p->mu); /* once the lock is free, the thread sleeps, or has yet to check `parked` */
  tn__mutex_unlock(&p->mu);
  tn__cond_signal(&p->woken);
  return true;
}
