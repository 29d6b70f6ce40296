/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a step of a plan has no effect, so that running it only takes time. */
#ifndef TN_CORE_COMPILE_EFFECTS_H
#define TN_CORE_COMPILE_EFFECTS_H

#include <core/plan/plan.h>

/* *out: the first operation, also in loops and functions, that changes what another step sees: it writes a state,
 * prints, waits, or draws random numbers. NULL: there is none. Functions are compiled for that. Returns what compiling
 * one returns. */
tn_status tn__plan_effect(tn_plan *plan, const tn_operation **out, tn_error *err);

#endif
