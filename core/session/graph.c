/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a session: set, extended, finalized. `graph` is set once, and never changes to
 * another object, so it is read without a lock. */
#include <core/session/session_internal.h>

static tn_status check_session(const tn_session *session, const char *call, tn_error *err)
{
  return session != NULL ? TN_OK : tn_error_set(err, TN_INVALID_ARGUMENT, "%s: session is NULL", call);
}

/* Nodes are placed before the graph is set, so that a graph that cannot be placed is refused.
 * Several threads may do that; the first to set its graph wins. */
tn_status tn__session_adopt(tn_session *s, tn_graph *graph, tn_error *err)
{
  if (atomic_load(&s->graph) == NULL && !s->placing.pruned && tn__placement_wanted(s, graph)) { /* S-CFG-04 */
    tn_status st = tn__placement_all(s, graph, err);
    if (st != TN_OK) return st;
  }
  tn__mutex_lock(&s->mu);
  bool taken = atomic_load(&s->graph) != NULL;
  if (!taken) atomic_store_explicit(&s->graph, tn_graph_ref(graph), memory_order_release);
  tn__mutex_unlock(&s->mu);
  return taken ? tn_error_set(err, TN_ALREADY_EXISTS, "the session has a graph already") : TN_OK;
}

tn_status tn_session_set_graph(tn_session *session, tn_graph *graph, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_session(session, "tn_session_set_graph", err);
  if (st != TN_OK) return st;
  if (graph == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_set_graph: graph is NULL");
  st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  if (tn_graph_n_operations(graph) > 0) st = tn__session_adopt(session, graph, err); /* S-GRA-02, S-GRA-03 */
  tn__session_leave(session);
  return st;
}

/* Imports into the session's graph, or makes it from this message if there is none. */
static tn_status extend(tn_session *s, const void *graph_def, size_t size, tn_error *err)
{
  tn_graph *graph = atomic_load(&s->graph);
  if (graph != NULL) {
    tn__mutex_lock(&s->mu);
    bool finalized = s->finalized;
    tn__mutex_unlock(&s->mu);
    if (finalized || s->static_graph)
      return tn_error_set(err, TN_FAILED_PRECONDITION, "the session's graph cannot be extended: it %s",
                          finalized ? "was finalized" : "has the option static_graph");
    return tn__placement_import(s, graph, graph_def, size, err);
  }
  tn_status st = tn_graph_create(&graph, err); /* S-GRA-14 */
  if (st != TN_OK) return st;
  st = tn_graph_import(graph, graph_def, size, NULL, err);
  if (st == TN_OK && tn_graph_n_operations(graph) > 0) st = tn__session_adopt(s, graph, err);
  tn_graph_unref(graph);
  return st;
}

tn_status tn_session_extend(tn_session *session, const void *graph_def, size_t size, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_session(session, "tn_session_extend", err);
  if (st != TN_OK) return st;
  if (graph_def == NULL && size > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_extend: graph_def is NULL");
  st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  if (size > 0) st = extend(session, graph_def, size, err); /* an empty graph is OK: S-GRA-12 */
  tn__session_leave(session);
  return st;
}

tn_status tn_session_finalize(tn_session *session, tn_error *err)
{
  tn__error_reset(err);
  tn_status st = check_session(session, "tn_session_finalize", err);
  if (st != TN_OK) return st;
  st = tn__session_enter(session, err);
  if (st != TN_OK) return st;
  tn_graph *graph;
  st = tn__session_need_graph(session, &graph, err);
  if (st == TN_OK) {
    tn__mutex_lock(&session->mu);
    bool before = session->finalized;
    session->finalized = true;
    tn__mutex_unlock(&session->mu);
    if (before) st = tn_error_set(err, TN_FAILED_PRECONDITION, "the session was finalized before");
  }
  tn__session_leave(session);
  return st;
}
