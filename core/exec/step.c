/* SPDX-License-Identifier: Apache-2.0 */
/* What a step is asked: its number. */
#include <core/exec/exec.h>

static _Atomic uint64_t step_counter;

/* S-RUN-31. Steps that nobody asks take none, so that those on different threads do not write to the same memory. Of two steps,
 * one behind the other, the later one asks later. */
uint64_t tn__step_id(const tn_step *step)
{
  if (step->env == NULL) return 0;
  uint64_t id = atomic_load_explicit(&step->env->id, memory_order_relaxed);
  if (id != 0) return id;
  uint64_t mine = atomic_fetch_add_explicit(&step_counter, 1, memory_order_relaxed) + 1;
  bool first = atomic_compare_exchange_strong_explicit(&step->env->id, &id, mine, memory_order_relaxed, memory_order_relaxed);
  return first ? mine : id;
}
