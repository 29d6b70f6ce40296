/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing and deleting a session. The order in which parts are made and freed matters:
 * read create and session_free together. */
#include <core/host/host.h>
#include <core/session/entry_point.h>

static const tn__session_kind graph_session;

/* ---- opening ---- */

static tn_status read_options(tn_session *s, const tn_session_options *options, tn_error *err)
{
  tn_status st = tn__session_base_read(&s->on, options, 0, err);
  if (st != TN_OK) return st;
  const tn_session_options *o = s->on.options;
  s->strict_shapes = tn__option_number(o, TN__OPTION_strict_shapes) != 0;
  s->static_graph = tn__option_number(o, TN__OPTION_static_graph) != 0;
  s->placing.soft = tn__option_number(o, TN__OPTION_allow_soft_placement) != 0;
  s->placing.pruned = tn__option_number(o, TN__OPTION_place_pruned_graph) != 0;
  s->placing.log = tn__option_number(o, TN__OPTION_log_device_placement) != 0;
  s->on.name = tn__option_string(o, TN__OPTION_session_name);
  return TN_OK;
}

/* No call is in the session. Also frees one that was only partly made. Signatures release the
 * runtime's executables, so they are freed before the runtime's session ends (tn__session_base_end). */
static void session_free(tn_session *s)
{
  tn__partials_fini(s); /* S-LIFE-11 */
  tn__callables_fini(s);
  tn__entries_fini(s);
  tn__signatures_fini(s);
  tn__kernel_states_fini(&s->states);
  tn__placement_fini(s);
  tn__devices_close(s);
  tn__session_base_end(&s->on);
  tn__threads_close(s);
  tn_graph_unref(atomic_load(&s->graph));
  if (s->held != NULL) s->release_held(s->held);
  tn__session_base_fini(&s->on);
  tn__sleepers_fini(&s->sleepers);
  tn__cond_fini(&s->compiled_one);
  tn__mutex_fini(&s->mu);
  tn__free_aligned(s, sizeof *s, _Alignof(tn_session));
}

/* Everything that session_free touches is initialised before the first step that can fail. */
static tn_status create(const tn_session_options *options, tn_session **out, tn_error *err)
{
  tn__host_install();
  tn_session *s = tn__alloc_aligned(sizeof *s, _Alignof(tn_session));
  if (s == NULL) return tn__no_memory(err, "session", sizeof *s);
  memset(s, 0, sizeof *s);
  s->on.kind = &graph_session;
  s->free = session_free;
  tn__gate_open(&s->calls);
  tn__mutex_init(&s->mu, "session", TN_RANK_SESSION);
  tn__cond_init(&s->compiled_one);
  tn__sleepers_init(&s->sleepers);
  tn__map_init(&s->entries);
  tn__map_init(&s->signatures);
  tn__kernel_states_init(&s->states);
  tn__map_init(&s->partials);
  tn__placement_init(s);
  tn_status st = read_options(s, options, err);
  if (st == TN_OK) st = tn__session_base_choose(&s->on, err);
  if (st == TN_OK) st = tn__session_base_start(&s->on, err);
  if (st == TN_OK) st = tn__devices_open(s, err);
  if (st == TN_OK) st = tn__threads_open(s, err);
  if (st == TN_OK) st = tn__live_sessions_add(&s->on, err);
  if (st != TN_OK) session_free(s);
  else *out = s;
  return st;
}

tn_status tn_session_create(const tn_session_options *options, tn_session **out, tn_error *err)
{
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (options == NULL || out == NULL) /* S-OPT-13 */
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_create: %s is NULL", out == NULL ? "out" : "options");
  if (tn__forked()) return tn__session_forked(err);
  tn__live_sessions_begin();
  tn_status st = create(options, out, err);
  tn__live_sessions_end(st);
  return st;
}

/* ---- closing ---- */

/* False: it was closed before. The exchange decides which thread cancels the steps. */
static bool mark_closed(tn_session *session)
{
  int64_t open = 0;
  return atomic_compare_exchange_strong(&session->closed, &open, tn__now_ns());
}

/* Wakes every live step of the session and tells its runtime that they are cancelled. */
static void cancel_steps(tn_session *s)
{
  tn__sleepers_wake(&s->sleepers);
  tn__partials_tell(s);
  tn__cancel_notify_all(&s->on);
}

/* Does not wait for running steps: they notice `closed`. */
tn_status tn_session_close(tn_session *session, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_close: session is NULL");
  if (tn__forked()) return tn__session_forked(err);
  if (mark_closed(session)) cancel_steps(session);
  if (session->opened_default) tn__default_forget(session, true); /* S-DEF-14 to 17 */
  return TN_OK;
}

static tn_session *session_of(tn__session_base *on) { return (tn_session *)((char *)on - offsetof(tn_session, on)); }

/* For a reset. Destroy takes the session off the list before it waits for the gate, so entering the gate here keeps it
 * alive. */
static bool shut(tn__session_base *on)
{
  tn_session *session = session_of(on);
  if (!mark_closed(session)) return false;
  tn__gate_enter(&session->calls);
  return true;
}

/* Cancels the steps of a session that `shut` has marked; outside of the list's lock. */
static void tell(tn__session_base *on)
{
  cancel_steps(session_of(on));
  tn__session_leave(session_of(on));
}

static const tn__session_kind graph_session = { shut, tell };

/* The first half of destroying: removes the session from all lists and cancels its steps. False: there is nothing to
 * do. */
static bool retire(tn_session *session)
{
  if (session == NULL) return false;
  if (tn__forked()) return false; /* threads that are not in this process may hold its locks: leave all as it is */
  tn__default_forget(session, false); /* S-DEF-19 */
  tn__live_sessions_remove(&session->on);
  tn_session_close(session, NULL);
  return true;
}

void tn_session_destroy(tn_session *session)
{
  if (!retire(session)) return;
  tn__session_drain(session);
  session_free(session);
}

void tn_session_release(tn_session *session)
{
  if (retire(session) && tn__gate_shut(&session->calls, TN__RELEASED)) session_free(session);
}

/* ---- properties ---- */

const tn_runtime_info *tn_session_runtime(const tn_session *session)
{
  return session == NULL ? NULL : &session->on.info;
}

tn_graph *tn_session_graph(const tn_session *session)
{
  return session == NULL ? NULL : atomic_load_explicit(&session->graph, memory_order_acquire);
}

void tn_session_signature_counts(const tn_session *session, uint64_t *compiled, uint64_t *held)
{
  tn_session *s = (tn_session *)session;
  if (compiled != NULL) *compiled = 0;
  if (held != NULL) *held = 0;
  if (s == NULL || tn__forked()) return;
  tn__mutex_lock(&s->mu);
  if (compiled != NULL) *compiled = s->compiled;
  if (held != NULL) *held = s->signatures.count;
  tn__mutex_unlock(&s->mu);
}
