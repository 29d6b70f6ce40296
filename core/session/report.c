/* SPDX-License-Identifier: Apache-2.0 */
/* The report of the plan of one of the session's signatures. */
#include <core/compile/report.h>
#include <core/session/entry.h>

tn_status tn_session_plan_report(tn_session *session, const char *const *feed_names, size_t n_feeds,
                                 const char *const *fetch_names, size_t n_fetches, const char *const *targets,
                                 size_t n_targets, tn_plan_report **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (session == NULL || out == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_plan_report: %s is NULL",
                        out == NULL ? "out" : "session");
  const tn__names names = { feed_names, fetch_names, targets, n_feeds, n_fetches, n_targets };
  tn_status st = tn__names_check(&names, err);
  if (st == TN_OK) st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn__entry_point *e;
  st = tn__entry_resolve(session, &names, NULL, &e, err);
  if (st == TN_OK) st = tn__plan_report(e->signature->plan, out, err);
  tn__entry_unref(e);
  tn__session_leave(session);
  return st;
}
