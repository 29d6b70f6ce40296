/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/threads/gate.h>

#define HOW_SHIFT 32 /* `open` has the count of lanes in its lower half and `how` in its upper half */

void tn__gate_open(tn__gate *gate)
{
  atomic_store_explicit(&gate->open, TN__LANES + 1, memory_order_relaxed);
  for (uint32_t i = 0; i < TN__LANES; i++) /* a late entrant may be inside */
    atomic_fetch_and_explicit(&gate->lanes[i].word, TN__LANE_COUNT, memory_order_release);
}

/* Counts n more lanes as empty. Returns how the gate was shut if they were the last ones, else 0. */
static uint32_t count_down(tn__gate *gate, uint32_t n)
{
  uint64_t before = atomic_fetch_sub_explicit(&gate->open, n, memory_order_acq_rel);
  return (uint32_t)before == n ? (uint32_t)(before >> HOW_SHIFT) : 0;
}

uint32_t tn__gate_left(tn__gate *gate) { return count_down(gate, 1); }

/* Marks a lane as shut. True: it was empty, and the caller counts it down; else the last thread to leave it does. */
static bool shut_lane(_Atomic uint64_t *word)
{
  uint64_t before = atomic_load_explicit(word, memory_order_relaxed), after;
  do after = before | TN__LANE_SHUT | (before == 0 ? TN__LANE_LEFT : 0);
  while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_acq_rel, memory_order_relaxed));
  return before == 0;
}

bool tn__gate_shut(tn__gate *gate, uint32_t how)
{
  uint32_t empty = 1; /* this call itself */
  atomic_fetch_or_explicit(&gate->open, (uint64_t)how << HOW_SHIFT, memory_order_relaxed);
  for (uint32_t i = 0; i < TN__LANES; i++) empty += shut_lane(&gate->lanes[i].word);
  return count_down(gate, empty) != 0;
}

bool tn__gate_is_empty(tn__gate *gate)
{
  return (uint32_t)atomic_load_explicit(&gate->open, memory_order_acquire) == 0;
}
