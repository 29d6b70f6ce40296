/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in and out of an eager session, and references to it. */
#include <core/eager/eager.h>

#define DRAINED 1

/* Closing threads wait here for the last call. Global, since the thread that leaves last must not touch the
 * session any more. */
static tn__mutex drain_mu = TN__MUTEX_INIT("eager drain", TN_RANK_STEP);
static tn__cond drain_cond;
static pthread_once_t once = PTHREAD_ONCE_INIT;

_Thread_local tn__eager_frame *tn__eager_inside TN__THREAD_WORD;

static void install(void) { tn__cond_init(&drain_cond); }

void tn__eager_gate_init(tn_eager_session *s)
{
  pthread_once(&once, install);
  tn__gate_open(&s->calls);
}

tn_status tn__eager_closed(const tn_eager_session *s, tn_error *err)
{
  if (tn__forked()) return tn__session_forked(err);
  if (atomic_load(&s->ending) == 0 && atomic_load(&s->closed) != 0) /* S-RST-04 */
    return tn_error_set(err, TN_CANCELLED, "a reset of runtime '%s' has ended the eager session",
                        s->runtime.on.info.name);
  return tn_error_set(err, TN_FAILED_PRECONDITION, "the eager session has been closed");
}

/* ---- in and out ---- */

/* Leaves the gate; the last call to leave a session that is being closed wakes the closing thread. */
static void left(tn_eager_session *s, uint32_t thread)
{
  if (__builtin_expect(tn__gate_leave_as(&s->calls, thread) == 0, 1)) return;
  tn__mutex_lock(&drain_mu);
  tn__cond_broadcast(&drain_cond);
  tn__mutex_unlock(&drain_mu);
}

/* Notes that this thread is inside of the session. The frame is on the caller's stack. */
static void go_in(tn_eager_session *s, tn__eager_frame *frame)
{
  frame->session = s;
  frame->around = tn__eager_inside;
  tn__eager_inside = frame;
}

/* Enters the gate before `closed` is read: a thread that closes the session and then shuts the gate
 * waits for this call, unless this call sees that the session is closed. */
tn_status tn__eager_enter(tn_eager_session *s, tn__eager_frame *frame, uint32_t thread, tn_error *err)
{
  if (__builtin_expect(tn__forked(), 0)) return tn__session_forked(err);
  tn__gate_enter_as(&s->calls, thread);
  if (__builtin_expect(atomic_load(&s->closed) != 0, 0)) {
    left(s, thread);
    return tn__eager_closed(s, err);
  }
  go_in(s, frame);
  return TN_OK;
}

/* `ending` is set before the gate is shut, so close waits for this call if it reads 0 here. */
bool tn__eager_enter_to_free(tn_eager_session *s, tn__eager_frame *frame, uint32_t thread)
{
  tn__gate_enter_as(&s->calls, thread);
  bool open = atomic_load(&s->ending) == 0;
  if (open) go_in(s, frame);
  else left(s, thread);
  return open;
}

void tn__eager_leave(tn_eager_session *s, tn__eager_frame *frame, uint32_t thread)
{
  tn__eager_inside = frame->around;
  left(s, thread);
}

void tn__eager_drain(tn_eager_session *s)
{
  if (tn__gate_shut(&s->calls, DRAINED)) return;
  tn__mutex_lock(&drain_mu);
  while (!tn__gate_is_empty(&s->calls)) tn__cond_wait(&drain_cond, &drain_mu);
  tn__mutex_unlock(&drain_mu);
}

bool tn__eager_is_inside(const tn_eager_session *s)
{
  for (const tn__eager_frame *f = tn__eager_inside; f != NULL; f = f->around)
    if (f->session == s) return true;
  return false;
}

/* ---- the end ---- */

/* Must not be called inside of the session: the closing thread would wait for this one. */
void tn__eager_wait_for_end(tn_eager_session *s)
{
  tn__mutex_lock(&s->mu);
  while (!s->ended) tn__cond_wait(&s->end, &s->mu);
  tn__mutex_unlock(&s->mu);
}

void tn__eager_unref(tn_eager_session *s)
{
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) s->destroy(s);
}
