/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of partial runs: each feed is an instruction of its own, which has its turn when the feed is given. */
#ifndef TN_CORE_PLAN_PARTIAL_H
#define TN_CORE_PLAN_PARTIAL_H

#include <core/plan/ir.h>

/* What is known of each fetch before anything runs. Feeds have the numbers of the signature; behind those stand
 * placeholders that are needed and no feed of it: they are never given. */
typedef struct tn__partial_plan {
  uint32_t n_missing;
  const tn_operation **missing;
  uint32_t n_words;      /* of a set of feeds, 64 in each */
  const uint64_t *needs; /* by fetch: the feeds without which it is not there */
} tn__partial_plan;

/* Loops and functions inside of a partial run are fed as anywhere. */
static inline bool tn__spec_is_partial(const tn__signature_spec *spec)
{
  return spec->partial && spec->body == NULL && spec->depth == 0;
}

static inline const uint64_t *tn__partial_needs(const tn__partial_plan *p, uint32_t fetch)
{
  return p->needs + (size_t)fetch * p->n_words;
}

/* A node in the place of each feed, and of each placeholder that is no feed; before the passes. */
tn_status tn__ir_hold_feeds(tn__ir *ir);
/* Makes plan->partial; after the cut. */
tn_status tn__plan_find_needs(tn_plan *plan, tn_error *err);

#endif
