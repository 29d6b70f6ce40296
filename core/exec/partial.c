/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs. A feed is a segment that runs when the feed is given. So a call gives feeds,
 * continues the step as far as it can, and takes the fetches that are ready. The workspace, waiting
 * kernels and the step's container persist from one call to the next; the crew is put back at the
 * end of each call, since another thread may make the next one. */
#include <core/exec/control.h>
#include <core/exec/partial.h>
#include <core/exec/segment.h>
#include <core/exec/values.h>
#include <core/exec/step/wait.h>

static size_t array_size(uint32_t n) { return ((size_t)n + 1) * sizeof(tn_tensor *); }

tn_status tn__partial_begin(tn__partial *p, tn_plan *plan, const tn_step *step, const tn__step_env *env, tn_error *err)
{
  *p = (tn__partial){ .run = { .plan = plan, .partial = true }, .step = *step, .env = *env, .status = TN_PENDING,
                      .err = TN_ERROR_INIT };
  p->run.step = &p->step;
  p->run.err = &p->err;
  p->step.env = &p->env;
  p->inputs = tn__zalloc(array_size(plan->n_inputs));
  p->outputs = tn__zalloc(array_size(plan->n_outputs));
  p->step.inputs = p->inputs;
  p->step.outputs = p->outputs;
  p->step.n_inputs = plan->n_inputs;
  p->step.n_outputs = plan->n_outputs;
  if (p->inputs == NULL || p->outputs == NULL) tn__no_memory(err, "feeds and fetches of a step", plan->n_outputs);
  else p->run.workspace = tn__workspace_take(plan, err);
  if (p->run.workspace == NULL) return p->status = TN_RESOURCE_EXHAUSTED;
  tn__run_controlled_reset(&p->run);
  return TN_OK;
}

/* ---- ending ---- */

/* Releases the feeds of this call, once the segments that read them have references of their own. */
static void drop_inputs(tn__partial *p)
{
  for (uint32_t i = 0; p->inputs != NULL && i < p->run.plan->n_inputs; i++) {
    tn_tensor_unref(p->inputs[i]);
    p->inputs[i] = NULL;
  }
}

/* The step has ended and its values are no longer needed. May be called twice. */
static void drop_all(tn__partial *p)
{
  tn_plan *plan = p->run.plan;
  drop_inputs(p);
  if (p->run.workspace != NULL) {
    tn__outputs_drop(&p->run);
    tn__run_drop(&p->run);
    tn__workspace_put(plan, p->run.workspace);
  }
  p->run.workspace = NULL;
  tn__container_leave(p->env.own);
  p->env.own = NULL;
  tn__sleeper_unref(p->env.sleeper);
  p->env.sleeper = NULL;
}

/* The call ends, and another thread may make the next one: releases the crew. */
static void dismiss(tn__partial *p)
{
  if (p->env.crew != NULL) tn__crew_put(p->env.crew);
  p->env.crew = NULL;
}

/* The step has ended with this status. */
static tn_status settle(tn__partial *p, tn_status st)
{
  p->status = st;
  drop_inputs(p);
  if (st == TN_OK) return st;
  tn__memory_explain(&p->run, st);
  drop_all(p);
  return st;
}

/* The step fails with this cause, unless it has failed before: no other call begins, and waiting
 * calls are cancelled. */
static void begin_to_fail(tn__partial *p, tn_status cause)
{
  if (!p->env.failed) p->env.cause = cause;
  p->env.failed = true;
  tn__cancel_waits(&p->step);
}

/* Continues the step as far as possible without sleeping. Returns the first cause of a failure, not
 * one of its consequences. */
static tn_status go_on(tn__partial *p)
{
  tn__contexts_look_again(&p->run); /* are_there() may have checked contexts that can be decided now */
  const tn__stop *around = tn__stop_now; /* that of a step whose kernel makes this call does not apply to this step */
  tn__stop_now = NULL;
  tn_status st = tn__run_controlled(&p->run);
  tn__stop_now = around;
  return st != TN_PENDING && p->env.failed ? p->env.cause : st;
}

/* Waits until all waiting calls of a failed step have returned; nothing else ends tn__sleep then.
 * Without may_sleep it resumes only those that were woken already, and may return TN_PENDING. */
static tn_status come_back(tn__partial *p, bool may_sleep)
{
  for (;;) {
    uint64_t seen = tn__wakes(&p->step);
    tn_status st = go_on(p);
    if (st != TN_PENDING) return settle(p, st);
    if (!may_sleep) return st;
    tn__sleep(&p->step, seen, NULL);
  }
}

void tn__partial_fail(tn__partial *p, tn_status cause)
{
  if (p->run.workspace == NULL) return;
  begin_to_fail(p, cause);
  if (p->status == TN_PENDING) come_back(p, true);
  else settle(p, cause);
  dismiss(p);
}

void tn__partial_cancel(tn__partial *p)
{
  if (p->status != TN_PENDING || p->env.failed) return;
  int why = tn__step_stop(&p->step);
  begin_to_fail(p, tn__step_stopped(why == TN__GO_ON ? TN__STOP_CANCELLED : why, NULL, &p->err));
  come_back(p, false);
  dismiss(p);
}

void tn__partial_end(tn__partial *p)
{
  tn_plan *plan = p->run.plan;
  if (p->status == TN_PENDING && p->run.workspace != NULL) tn__partial_fail(p, TN_CANCELLED);
  drop_all(p);
  if (p->inputs != NULL) tn__free(p->inputs, array_size(plan->n_inputs));
  if (p->outputs != NULL) tn__free(p->outputs, array_size(plan->n_outputs));
  p->inputs = p->outputs = NULL;
  tn_error_clear(&p->err);
  if (atomic_load_explicit(&plan->upgrade.may, memory_order_relaxed)) tn__plan_note_cost(plan, p->run.cost_ns);
}

/* ---- continuing ---- */

/* Whether fetch o is ready: its value is computed, or known to be dead, which tn__partial_take
 * reports. */
static bool is_there(tn__partial *p, uint32_t o)
{
  const tn_plan *plan = p->run.plan;
  const tn__plan_value *v = &plan->values[plan->outputs[o]];
  int live = tn__context_state(&p->run, plan->conditions.outputs[o]);
  if (live == TN__UNDECIDED) return false;
  return live != TN__LIVE || v->kind != TN_VALUE_COMPUTED || tn__segment_has_run(&p->run, v->segment);
}

static bool are_there(tn__partial *p, const uint32_t *wanted, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!is_there(p, wanted[i])) return false;
  return true;
}

/* The error if no call waits and the wanted fetches still have no value. The usual reason is a
 * placeholder that the fetches need, and that was not declared as a feed. */
static tn_status is_stuck(tn__partial *p)
{
  const tn__partial_plan *needs = p->run.plan->partial;
  if (needs->n_missing == 0) return tn_error_set(&p->err, TN_INTERNAL, "the partial run cannot proceed");
  return tn__placeholder_missing(needs->missing[0], "declared as a feed", &p->err);
}

/* Each turn continues the step, then ends the call if the fetches are ready, else sleeps until a
 * call is woken. After a failure further turns wait for the calls that were cancelled. */
tn_status tn__partial_go(tn__partial *p, const uint32_t *wanted, size_t n, bool to_end)
{
  tn_status st;
  while (p->status == TN_PENDING) {
    uint64_t seen = tn__wakes(&p->step);
    int why = tn__step_stop(&p->step);
    if (why != TN__GO_ON && !p->env.failed) begin_to_fail(p, tn__step_stopped(why, NULL, &p->err));
    st = go_on(p);
    why = tn__step_stop(&p->step); /* S-LIFE-04 */
    if (st == TN_OK && why != TN__GO_ON) st = tn__step_stopped(why, NULL, &p->err);
    if (st != TN_PENDING) return settle(p, st);
    if (why != TN__GO_ON && !p->env.failed) continue;
    if (!p->env.failed && !to_end && are_there(p, wanted, n)) break;
    if (!p->env.failed && !tn__run_waits(&p->run)) {
      begin_to_fail(p, is_stuck(p));
      continue;
    }
    st = tn__sleep(&p->step, seen, &p->err);
    if (st != TN_OK && !p->env.failed) begin_to_fail(p, st);
  }
  drop_inputs(p);
  dismiss(p);
  return p->status;
}

/* ---- fetches ---- */

/* The place of the reference to the fetch's tensor, if only this fetch uses the value: the tensor
 * can be handed over. NULL: it has to be copied. */
static tn_tensor **lone_place(const tn__partial *p, uint32_t o)
{
  const tn__plan_value *v = &p->run.plan->values[p->run.plan->outputs[o]];
  uint32_t slot;
  tn__instance *in;
  if (v->kind != TN_VALUE_COMPUTED || v->n_uses != 1) return NULL;
  if (v->whole) return &p->run.workspace->held[v->held];
  tn__run_view(&p->run, p->run.plan->outputs[o], &slot, &in);
  const tn__slot *s = &in->layout->slots[slot];
  if (s->root != slot) return NULL;
  if (s->store == TN_STORE_HEAP) return &in->heap[slot];
  return s->store == TN_STORE_OUTPUT && s->offset == o ? &p->outputs[o] : NULL;
}

/* A tensor to which no other reference exists. */
static tn_status take_copy(tn__partial *p, uint32_t o, tn_tensor **out)
{
  tn_tensor *t;
  tn_status st = tn__run_tensor(&p->run, p->run.plan->outputs[o], &t);
  if (st != TN_OK || tn_tensor_is_exclusive(t)) {
    *out = t;
    return st;
  }
  st = tn_tensor_copy(t, out, &p->err);
  tn_tensor_unref(t);
  return st;
}

tn_status tn__partial_take(tn__partial *p, uint32_t o, tn_tensor **out)
{
  tn_status st = TN_OK;
  int live = tn__context_state(&p->run, p->run.plan->conditions.outputs[o]);
  *out = NULL;
  if (live == TN__UNDECIDED || live == TN__DEAD) st = tn__output_dead(&p->run, o); /* S-PR-27 */
  else if (live != TN__LIVE) st = TN_INVALID_ARGUMENT; /* TN__FAULT: the error names the predicate */
  tn_tensor **place = st == TN_OK ? lone_place(p, o) : NULL;
  if (place != NULL && tn_tensor_is_exclusive(*place)) {
    *out = *place;
    *place = NULL;
  } else if (st == TN_OK) {
    st = take_copy(p, o, out);
  }
  return st;
}
