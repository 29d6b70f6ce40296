/* SPDX-License-Identifier: Apache-2.0 */
/* A gate counts the threads inside of an object. When it is shut, the last thread to leave is told. Threads count in
 * separate lanes: as long as there are no more threads than lanes, entering and leaving write no memory that other
 * threads write.
 *
 * Threads inside keep the guarded object alive. It may be freed when the gate was shut and all threads have left; the
 * memory of the gate itself must stay valid for late entrants. Entering does not check whether the gate is shut: set a
 * flag of the object (closed, another generation) before tn__gate_shut, and test it after tn__gate_enter. A late
 * entrant simply leaves.
 *
 * A lane's word is a count and two bits: SHUT, and LEFT, which is set once, by the thread that finds the lane empty
 * when it is shut. `open` counts the lanes without LEFT, and one more while tn__gate_shut walks over them. */
#ifndef TN_CORE_BASE_THREADS_GATE_H
#define TN_CORE_BASE_THREADS_GATE_H

#include <core/base/threads/thread.h>
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
  _Alignas(64) _Atomic uint64_t open; /* lower half: the count of lanes; upper half: `how` the gate was shut */
} tn__gate;

/* Opens the gate: the first time, or again after it was shut and all threads have left. */
void tn__gate_open(tn__gate *gate);

/* For callers that have their tn__thread_number at hand. */
static inline void tn__gate_enter_as(tn__gate *gate, uint32_t thread)
{
  atomic_fetch_add_explicit(&gate->lanes[thread & (TN__LANES - 1)].word, 1, memory_order_acq_rel);
}
static inline void tn__gate_enter(tn__gate *gate) { tn__gate_enter_as(gate, tn__thread_number()); }

uint32_t tn__gate_left(tn__gate *gate); /* slow path of leave: a lane became empty after the gate was shut */

/* Called on the thread that entered. Returns 0, or for the last thread to leave after tn__gate_shut the `how` given
 * there: no leaving thread touches the gate after that. */
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

/* Shuts the gate, once until it is opened again; how != 0. True: no thread is inside, and the caller ends the object.
 * False: the last thread to leave does, and may have freed the gate by the time this returns. */
bool tn__gate_shut(tn__gate *gate, uint32_t how);

/* Whether all threads have left a gate that was shut. */
bool tn__gate_is_empty(tn__gate *gate);

#endif
