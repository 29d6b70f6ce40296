/* SPDX-License-Identifier: Apache-2.0 */
/* Telling a runtime of steps that were cancelled, or whose session was closed. Only those of runtimes with a cancel are listed. */
#include <core/host/host.h>

typedef struct tn__told_step {
  struct tn__told_step *prev, *next;
  tn__opened *on;
  tn_step *step;
  bool told, telling; /* guarded by on->steps_mu, as the list */
  uint64_t key;       /* at the step's cancellation */
} told_step;

/* The step does not end meanwhile: unlist waits for `telling`. */
static void tell_runtime(tn__opened *on, told_step *s)
{
  tn__plugin_call calling = tn__opened_call(on, "its cancel");
  tn__plugin_call_enter(&calling);
  on->slots->cancel(on->self, on->runtime, s->step);
  tn__plugin_call_leave(&calling);
  tn__mutex_lock(&on->steps_mu);
  s->telling = false;
  tn__cond_broadcast(&on->told);
  tn__mutex_unlock(&on->steps_mu);
}

static void tell(told_step *s)
{
  tn__opened *on = s->on;
  tn__mutex_lock(&on->steps_mu);
  bool mine = !s->told;
  s->told = true;
  s->telling |= mine;
  tn__mutex_unlock(&on->steps_mu);
  if (mine) tell_runtime(on, s);
}

static void tell_callback(void *s) { tell(s); }

void tn__told_all(tn__opened *on)
{
  if (on->slots->cancel == NULL) return;
  for (;;) {
    tn__mutex_lock(&on->steps_mu);
    told_step *s = on->steps;
    while (s != NULL && s->told) s = s->next;
    if (s != NULL) s->told = s->telling = true;
    tn__mutex_unlock(&on->steps_mu);
    if (s == NULL) return;
    tell_runtime(on, s);
  }
}

static void list_step(tn__opened *on, told_step *s)
{
  tn__mutex_lock(&on->steps_mu);
  s->next = on->steps;
  if (on->steps != NULL) on->steps->prev = s;
  on->steps = s;
  tn__mutex_unlock(&on->steps_mu);
  if (s->step->cancellation != NULL) s->key = tn_cancellation_register(s->step->cancellation, tell_callback, s);
  if (tn__step_stop(s->step) != TN__GO_ON) tell(s); /* closed or cancelled before it was listed */
}

static void unlist_step(tn__opened *on, told_step *s)
{
  if (s->key != 0) tn_cancellation_deregister(s->step->cancellation, s->key);
  tn__mutex_lock(&on->steps_mu);
  while (s->telling) tn__cond_wait(&on->told, &on->steps_mu);
  if (s->prev != NULL) s->prev->next = s->next;
  else on->steps = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  tn__mutex_unlock(&on->steps_mu);
}

tn_status tn__told_run(tn__opened *on, tn__step_fn fn, tn_executable *executable, tn_step *step, tn_error *err)
{
  told_step told = { .on = on, .step = step };
  list_step(on, &told);
  tn_status st = fn(on->self, on->runtime, executable, step, err);
  unlist_step(on, &told);
  return st;
}
