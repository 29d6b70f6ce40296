/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of partial runs: each feed is an instruction of its own, which runs when the feed is given. */
#ifndef TN_CORE_COMPILE_IMPORT_PARTIAL_H
#define TN_CORE_COMPILE_IMPORT_PARTIAL_H

#include <core/compile/ir/ir.h>
#include <core/plan/partial_plan.h>

/* Replaces each feed, and each placeholder that is not a feed, by a node that waits for its value. Call it before the
 * passes. */
tn_status tn__ir_hold_feeds(tn__ir *ir);
/* Sets plan->partial. Call it after tn__plan_cut. */
tn_status tn__plan_find_needs(tn_plan *plan, tn_error *err);

#endif
