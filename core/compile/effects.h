/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether steps of a plan have effects. */
#ifndef TN_CORE_COMPILE_EFFECTS_H
#define TN_CORE_COMPILE_EFFECTS_H

#include <core/plan/plan.h>

/* Stores the first operation with an effect that others can observe, also in loops and functions: it writes state,
 * prints, waits, or draws random numbers. NULL if there is none, so that running a step only takes time. Compiles the
 * functions that the plan calls, and returns the error of the first that cannot be compiled. */
tn_status tn__plan_effect(tn_plan *plan, const tn_operation **out, tn_error *err);

#endif
