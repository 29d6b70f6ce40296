/* SPDX-License-Identifier: Apache-2.0 */
/* Notifying a runtime of steps that were cancelled, or whose session was closed. Only steps of runtimes that have the
 * slot `cancel` are listed. */
#include <core/exec/step.h>
#include <core/host/host.h>

typedef struct tn__cancel_notice {
  struct tn__cancel_notice *prev, *next;
  tn__opened *on;
  tn_step *step;
  bool begun, running; /* a call of cancel for it; guarded by on->steps_mu, as the list */
  uint64_t key;        /* its registration with the step's cancellation */
} notice;

/* The step cannot end during this: unlist_step waits while `running` is set. */
static void call_cancel(tn__opened *on, notice *s)
{
  tn__plugin_call calling = tn__opened_call(on, "its cancel");
  tn__plugin_call_enter(&calling);
  on->slots->cancel(on->self, on->runtime, s->step);
  tn__plugin_call_leave(&calling);
  tn__mutex_lock(&on->steps_mu);
  s->running = false;
  tn__cond_broadcast(&on->notified);
  tn__mutex_unlock(&on->steps_mu);
}

static void notify(notice *s)
{
  tn__opened *on = s->on;
  tn__mutex_lock(&on->steps_mu);
  bool mine = !s->begun;
  s->begun = true;
  s->running |= mine;
  tn__mutex_unlock(&on->steps_mu);
  if (mine) call_cancel(on, s);
}

static void notify_callback(void *s) { notify(s); }

void tn__cancel_notify_all(tn__opened *on)
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

static void list_step(tn__opened *on, notice *s)
{
  tn__mutex_lock(&on->steps_mu);
  s->next = on->steps;
  if (on->steps != NULL) on->steps->prev = s;
  on->steps = s;
  tn__mutex_unlock(&on->steps_mu);
  if (s->step->cancellation != NULL) s->key = tn_cancellation_register(s->step->cancellation, notify_callback, s);
  if (tn__step_stop(s->step) != TN__GO_ON) notify(s); /* closed or cancelled before it was listed */
}

static void unlist_step(tn__opened *on, notice *s)
{
  if (s->key != 0) tn_cancellation_deregister(s->step->cancellation, s->key);
  tn__mutex_lock(&on->steps_mu);
  while (s->running) tn__cond_wait(&on->notified, &on->steps_mu);
  if (s->prev != NULL) s->prev->next = s->next;
  else on->steps = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  tn__mutex_unlock(&on->steps_mu);
}

tn_status tn__cancel_notify_run(tn__opened *on, tn__step_fn fn, tn_executable *executable, tn_step *step, tn_error *err)
{
  notice n = { .on = on, .step = step };
  list_step(on, &n);
  tn_status st = fn(on->self, on->runtime, executable, step, err);
  unlist_step(on, &n);
  return st;
}
