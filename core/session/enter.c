/* SPDX-License-Identifier: Apache-2.0 */
/* Entering and leaving a session, and waiting until all calls have left it. */
#include <core/session/session_internal.h>

/* Destroyers wait on these. They belong to the process, since the last call to leave must not touch a session that may
 * have been freed. */
static tn__mutex drain_mu = TN__MUTEX_INIT("drain", TN_RANK_STEP);
static tn__cond drain_cond;
static pthread_once_t drain_once = PTHREAD_ONCE_INIT;

static void drain_init(void) { tn__cond_init(&drain_cond); }

/* Enters the gate before `closed` is read: a thread that closes the session and then shuts the gate
 * waits for this call, unless this call sees that the session is closed. */
tn_status tn__session_enter_as(tn_session *session, uint32_t thread, tn_error *err)
{
  if (__builtin_expect(tn__forked(), 0)) return tn__session_forked(err);
  tn__gate_enter_as(&session->calls, thread);
  if (__builtin_expect(atomic_load(&session->closed) != 0, 0)) {
    tn__session_leave_as(session, thread);
    return tn_error_set(err, TN_CANCELLED, "session has been closed");
  }
  return TN_OK;
}

void tn__session_leave_as(tn_session *session, uint32_t thread)
{
  uint32_t how = tn__gate_leave_as(&session->calls, thread);
  if (__builtin_expect(how == 0, 1)) return;
  if (how == TN__RELEASED) {
    session->free(session);
    return;
  }
  tn__mutex_lock(&drain_mu); /* the destroyer may have freed the session by now */
  tn__cond_broadcast(&drain_cond);
  tn__mutex_unlock(&drain_mu);
}

/* The thread number selects the counter of the gate that this thread uses. */
tn_status tn__session_enter(tn_session *session, tn_error *err)
{
  return tn__session_enter_as(session, tn__thread_number(), err);
}

void tn__session_leave(tn_session *session) { tn__session_leave_as(session, tn__thread_number()); }

void tn__session_drain(tn_session *session)
{
  pthread_once(&drain_once, drain_init);
  if (tn__gate_shut(&session->calls, TN__DESTROYED)) return;
  tn__mutex_lock(&drain_mu);
  while (!tn__gate_is_empty(&session->calls)) tn__cond_wait(&drain_cond, &drain_mu);
  tn__mutex_unlock(&drain_mu);
}
