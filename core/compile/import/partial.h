/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of partial runs: each feed is an instruction of its own, which has its turn when the feed is given. */
#ifndef TN_CORE_COMPILE_IMPORT_PARTIAL_H
#define TN_CORE_COMPILE_IMPORT_PARTIAL_H

#include <core/compile/ir/ir.h>
#include <core/plan/partial_plan.h>

/* A node in the place of each feed, and of each placeholder that is no feed; before the passes. */
tn_status tn__ir_hold_feeds(tn__ir *ir);
/* Makes plan->partial; after the cut. */
tn_status tn__plan_find_needs(tn_plan *plan, tn_error *err);

#endif
