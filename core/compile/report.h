/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: descriptions of plans for callers (<tenon/plan.h>). */
#ifndef TN_CORE_COMPILE_REPORT_H
#define TN_CORE_COMPILE_REPORT_H

#include <core/layout/layout.h>
#include <tenon/plan.h>

/* Makes a report of the plan as it is now. It is independent of the plan; free it with tn_plan_report_release. Takes
 * plan->mu. */
tn_status tn__plan_report(tn_plan *plan, tn_plan_report **out, tn_error *err);

#endif
