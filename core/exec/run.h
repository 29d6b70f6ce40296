/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a plan, each from its begin to its end. */
#ifndef TN_CORE_EXEC_RUN_H
#define TN_CORE_EXEC_RUN_H

#include <tenon/kit.h>

/* run.c: runs a step of the plan to its end, on this thread. The outputs become the caller's; after
 * an error they are NULL, except those that the caller gave. */
tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);
/* warm.c: makes the layouts that the step would make, as far as the shapes of its inputs determine
 * them, and allocates the memory; computes nothing. Returns the error of a kernel that rejects the
 * shapes, or the status of a step that is stopped. */
tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err);

#endif
