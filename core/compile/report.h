/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of what a plan is, for whoever asks (<tenon/plan.h>). */
#ifndef TN_CORE_COMPILE_REPORT_H
#define TN_CORE_COMPILE_REPORT_H

#include <core/layout/layout.h>
#include <tenon/plan.h>

tn_status tn__plan_report(tn_plan *plan, tn_plan_report **out, tn_error *err);

#endif
