/* SPDX-License-Identifier: Apache-2.0 */
/* Notifies a runtime of steps that were cancelled, or whose session was closed. Only steps of runtimes that have the
 * slot `cancel` are listed.
 *
 * `cancel` is called at most once for a step, without a lock, and never after the step has returned: `begun` is set by
 * the thread that makes the call, and unlist_step waits while `running` is set. */
#include <core/exec/step/step.h>
#include <core/host/host.h>

/* A running step, on the stack of the thread that runs it. */
typedef struct tn__cancel_notice {
  struct tn__cancel_notice *prev, *next; /* guarded by on->steps_mu */
  tn__session_base *on;                        /* borrowed, as is the step */
  tn_step *step;
  bool begun;   /* a call of cancel for the step has begun; guarded by on->steps_mu */
  bool running; /* that call has not returned yet; guarded by on->steps_mu */
  uint64_t key; /* of the callback registered with the step's cancellation; 0 = none */
} notice;

/* Calls cancel; the caller has set `running`, so the step cannot end meanwhile. */
static void call_cancel(tn__session_base *on, notice *s)
{
  tn__plugin_call calling = tn__session_base_call(on, "its cancel");
  tn__plugin_call_enter(&calling);
  on->slots->cancel(on->self, on->runtime, s->step);
  tn__plugin_call_leave(&calling);
  tn__mutex_lock(&on->steps_mu);
  s->running = false;
  tn__cond_broadcast(&on->notified);
  tn__mutex_unlock(&on->steps_mu);
}

/* Calls cancel for the step unless another thread has begun to. */
static void notify(notice *s)
{
  tn__session_base *on = s->on;
  tn__mutex_lock(&on->steps_mu);
  bool mine = !s->begun;
  s->begun = true;
  s->running |= mine;
  tn__mutex_unlock(&on->steps_mu);
  if (mine) call_cancel(on, s);
}

static void notify_callback(void *s) { notify(s); }

void tn__cancel_notify_all(tn__session_base *on)
{
  if (on->slots->cancel == NULL) return;
  for (;;) {
    tn__mutex_lock(&on->steps_mu);
    notice *s = on->steps;
    while (s != NULL && s->begun) s = s->next;
    if (s != NULL) s->begun = s->running = true;
    tn__mutex_unlock(&on->steps_mu);
    if (s == NULL) return;
    call_cancel(on, s);
  }
}

static void list_step(tn__session_base *on, notice *s)
{
  tn__mutex_lock(&on->steps_mu);
  s->next = on->steps;
  if (on->steps != NULL) on->steps->prev = s;
  on->steps = s;
  tn__mutex_unlock(&on->steps_mu);
  if (s->step->cancellation != NULL) s->key = tn_cancellation_register(s->step->cancellation, notify_callback, s);
  if (tn__step_stop(s->step) != TN__GO_ON) notify(s); /* closed or cancelled before it was listed */
}

static void unlist_step(tn__session_base *on, notice *s)
{
  /* Deregister first and without the lock: this waits for a running callback, which takes the lock. */
  if (s->key != 0) tn_cancellation_deregister(s->step->cancellation, s->key);
  tn__mutex_lock(&on->steps_mu);
  while (s->running) tn__cond_wait(&on->notified, &on->steps_mu);
  if (s->prev != NULL) s->prev->next = s->next;
  else on->steps = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  tn__mutex_unlock(&on->steps_mu);
}

tn_status tn__cancel_notify_run(tn__session_base *on, tn__step_fn fn, tn_executable *executable, tn_step *step,
                                tn_error *err)
{
  notice n = { .on = on, .step = step };
  list_step(on, &n);
  tn_status st = fn(on->self, on->runtime, executable, step, err);
  unlist_step(on, &n);
  return st;
}
