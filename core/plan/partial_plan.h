/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds and fetches of a plan for partial runs. */
#ifndef TN_CORE_PLAN_PARTIAL_PLAN_H
#define TN_CORE_PLAN_PARTIAL_PLAN_H

#include <core/plan/plan.h>

/* The feeds that each fetch needs, as known before anything runs. In sets, feeds have the numbers of the signature;
 * after them come the placeholders that the plan needs but the signature does not feed: these are never given. In the
 * plan's arena. */
typedef struct tn__partial_plan {
  uint32_t n_missing;
  const tn_operation **missing; /* those placeholders; borrowed */
  uint32_t n_words;             /* size of a set of feeds: 64 feeds in each word */
  const uint64_t *needs;        /* by fetch: the set of feeds that it needs */
} tn__partial_plan;

/* The set of feeds that a fetch needs. */
static inline const uint64_t *tn__partial_needs(const tn__partial_plan *p, uint32_t fetch)
{
  return p->needs + (size_t)fetch * p->n_words;
}

#endif
