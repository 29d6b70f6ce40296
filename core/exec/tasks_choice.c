/* SPDX-License-Identifier: Apache-2.0 */
/* Whether tasks are faster than one call after the other is guessed when a layout is made, from what kernels say of their cost.
 * Running tells: now and then some runs are timed, first in order, then by tasks, and the fastest of each decide until the next
 * time. */
#include <core/exec/tasks.h>

#define PERIOD 1024 /* runs from one trial to the next; a power of 2 */
#define IN_ORDER 5  /* runs of a trial, in order; the first one does not count */
#define BY_TASKS 10 /* and then by tasks; */
#define WARM 4      /* the first of these do not count: a thread that was woken shortly wakes sooner */
#define BETTER 0.97 /* of the time in order is what tasks have to take at most */

bool tn__tasks_choose(tn__plan_tasks *t, bool *timed)
{
  *timed = false;
  if (!t->measured) return true;
  uint32_t turn = atomic_fetch_add_explicit(&t->turn, 1, memory_order_relaxed) & (PERIOD - 1);
  if (turn >= IN_ORDER + BY_TASKS) return atomic_load_explicit(&t->chosen, memory_order_relaxed);
  if (turn == 0) {
    atomic_store_explicit(&t->one_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&t->all_ns, 0, memory_order_relaxed);
  }
  *timed = turn < IN_ORDER ? turn > 0 : turn >= IN_ORDER + WARM;
  return turn >= IN_ORDER;
}

void tn__tasks_note(tn__plan_tasks *t, bool by_tasks, int64_t ns)
{
  _Atomic uint32_t *best = by_tasks ? &t->all_ns : &t->one_ns;
  uint32_t time = ns < 1 ? 1 : ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
  uint32_t old = atomic_load_explicit(best, memory_order_relaxed);
  if (old == 0 || time < old) atomic_store_explicit(best, time, memory_order_relaxed);
  uint32_t one = atomic_load_explicit(&t->one_ns, memory_order_relaxed), all = atomic_load_explicit(&t->all_ns, memory_order_relaxed);
  if (one != 0 && all != 0) atomic_store_explicit(&t->chosen, (double)all <= BETTER * (double)one, memory_order_relaxed);
}
