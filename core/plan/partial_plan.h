/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan of a partial run knows of its feeds and fetches. */
#ifndef TN_CORE_PLAN_PARTIAL_PLAN_H
#define TN_CORE_PLAN_PARTIAL_PLAN_H

#include <core/plan/plan.h>

/* What is known of each fetch before anything runs. Feeds have the numbers of the signature; behind those stand
 * placeholders that are needed and no feed of it: they are never given. */
typedef struct tn__partial_plan {
  uint32_t n_missing;
  const tn_operation **missing;
  uint32_t n_words;      /* of a set of feeds, 64 in each */
  const uint64_t *needs; /* by fetch: the feeds without which it is not there */
} tn__partial_plan;

static inline const uint64_t *tn__partial_needs(const tn__partial_plan *p, uint32_t fetch)
{
  return p->needs + (size_t)fetch * p->n_words;
}

#endif
