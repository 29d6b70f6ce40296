/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a session as the default session of a thread: scoped and interactive sessions. */
#include <core/session/session_internal.h>

/* Creates a session with this graph, if any, and makes it the default session of this thread until
 * it is closed. */
static tn_status open_default(const tn_session_options *options, tn_graph *graph, tn_session **out, tn_error *err)
{
  tn_session *session;
  tn_status st = tn_session_create(options, &session, err);
  if (st == TN_OK && graph != NULL) st = tn__session_adopt(session, graph, err);
  if (st == TN_OK) {
    session->opened_default = true; /* before another thread can see the session */
    st = tn__default_push(session, true, err);
  }
  if (st == TN_OK) *out = session;
  else tn_session_destroy(session);
  return st;
}

static tn_status check_open(const tn_session_options *options, tn_session **out, const char *call, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (options != NULL && out != NULL) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %s is NULL", call, out == NULL ? "out" : "options");
}

tn_status tn_session_open_scoped(const tn_session_options *options, tn_graph *graph, tn_session **out, tn_error *err)
{
  tn_status st = check_open(options, out, "tn_session_open_scoped", err);
  return st == TN_OK ? open_default(options, graph, out, err) : st;
}

tn_status tn_session_open_interactive(const tn_session_options *options, tn_graph *graph, tn_session **out,
                                      tn_error *err)
{
  tn_session_options *own = NULL;
  tn_status st = check_open(options, out, "tn_session_open_interactive", err);
  if (st == TN_OK) st = tn_session_options_copy(options, &own, err);
  if (st == TN_OK) st = tn_session_options_set_bool(own, "place_pruned_graph", 1, err); /* S-DEF-18 */
  if (st == TN_OK) st = open_default(own, graph, out, err);
  tn_session_options_destroy(own);
  return st;
}
