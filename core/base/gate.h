/* SPDX-License-Identifier: Apache-2.0 */
/* A gate: who is inside of something is counted, and when it is shut the last one to leave is told so. Threads count in lanes of
 * their own, so going in and out writes no memory that others write, as long as there are no more threads than lanes.
 *
 * Who is inside keeps the thing alive: memory of the gate must be there for whoever comes, and what it guards goes when the
 * gate was shut and all have left. Coming in does not look whether it is shut: what says so (a closed session, another
 * generation) is set before tn__gate_shut, and looked at after tn__gate_enter. Who then leaves again does no harm.
 *
 * A lane's word is a count, and two bits: SHUT, and LEFT, which is set once, by whoever finds the lane empty when it is shut. The
 * lanes that lack LEFT are counted in `open`, and one more while tn__gate_shut goes through them. */
#ifndef TN_CORE_BASE_GATE_H
#define TN_CORE_BASE_GATE_H

#include <core/base/thread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TN__LANES 8
#define TN__LANE_SHUT ((uint64_t)1 << 63)
#define TN__LANE_LEFT ((uint64_t)1 << 62)
#define TN__LANE_COUNT (TN__LANE_LEFT - 1)

typedef struct tn__gate {
  struct {
    _Alignas(64) _Atomic uint64_t word;
  } lanes[TN__LANES];
  _Alignas(64) _Atomic uint64_t open; /* below: how it was shut */
} tn__gate;

/* Opens it for the first time, or again when it was shut and all have left. */
void tn__gate_open(tn__gate *gate);

/* `thread` is tn__thread_number, of who has it at hand. */
static inline void tn__gate_enter_as(tn__gate *gate, uint32_t thread)
{
  atomic_fetch_add_explicit(&gate->lanes[thread & (TN__LANES - 1)].word, 1, memory_order_acq_rel);
}
static inline void tn__gate_enter(tn__gate *gate) { tn__gate_enter_as(gate, tn__thread_number()); }

uint32_t tn__gate_left(tn__gate *gate); /* a lane is empty for good */

/* On the thread that entered. 0, or, for the last one after tn__gate_shut, what was given there: the gate is not touched after
 * that by anybody who is to leave. */
static inline uint32_t tn__gate_leave_as(tn__gate *gate, uint32_t thread)
{
  _Atomic uint64_t *word = &gate->lanes[thread & (TN__LANES - 1)].word;
  uint64_t before = atomic_load_explicit(word, memory_order_relaxed), after;
  do {
    after = before - 1;
    if (before == (TN__LANE_SHUT | 1)) after |= TN__LANE_LEFT;
  } while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_acq_rel, memory_order_relaxed));
  return __builtin_expect(before == (TN__LANE_SHUT | 1), 0) ? tn__gate_left(gate) : 0;
}
static inline uint32_t tn__gate_leave(tn__gate *gate) { return tn__gate_leave_as(gate, tn__thread_number()); }

/* Shuts it, once until it is opened again; how != 0. True: nobody is inside, and the caller is the one who is told. False:
 * whoever leaves last is, who may be gone with the gate when this returns. */
bool tn__gate_shut(tn__gate *gate, uint32_t how);

/* Of a gate that was shut: all have left. */
bool tn__gate_is_empty(tn__gate *gate);

#endif
