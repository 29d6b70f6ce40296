/* SPDX-License-Identifier: Apache-2.0 */
/* Preparation stops when the call that needs it is stopped: by close, cancellation or its time limit. */
#include <core/base/threads/stop.h>
#include <core/plan/plan.h>

tn_status tn__prepare_check(const tn_operation *op, tn_error *err)
{
  int why = tn__stop_now == NULL ? TN__GO_ON : tn__stop_why(tn__stop_now);
  if (__builtin_expect(why == TN__GO_ON, 1)) return TN_OK;
  const char *name = op == NULL ? "" : tn_operation_name(op), *type = op == NULL ? "" : tn_operation_type(op);
  tn_status st = why == TN__STOP_DEADLINE ? TN_DEADLINE_EXCEEDED : TN_CANCELLED;
  tn_error_clear(err);
  if (why == TN__STOP_CLOSED) {
    tn_error_set(err, st, "session has been closed");
  } else if (why == TN__STOP_CANCELLED) {
    tn_error_set(err, st, "the step was cancelled during preparation%s%s%s%s%s",
                 op == NULL ? "" : ", at node '", name, op == NULL ? "" : "' (", type, op == NULL ? "" : ")");
  } else {
    tn_error_set(err, st,
                 "the step exceeded its time limit during preparation%s%s%s%s%s; plans and packed weights are made "
                 "once: prepare them with tn_session_make_callable and a first step with a longer limit",
                 op == NULL ? "" : ", at node '", name, op == NULL ? "" : "' (", type, op == NULL ? "" : ")");
  }
  if (op != NULL) tn_error_set_node(err, name);
  return st;
}
