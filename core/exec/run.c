/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan on the calling thread: for a step, or inside of an instruction of another plan.
 *
 * A plan runs loops and functions, which run plans: run.c, control.c, loop.c and call.c call each
 * other recursively. No other file of the executor is part of this recursion. */
#include <core/exec/control.h>
#include <core/exec/inner.h>
#include <core/exec/run.h>
#include <core/exec/segment.h>
#include <core/exec/step/env.h>
#include <core/exec/values.h>

/* After an error the memory report is made first: it lists the values that the run still holds. */
static tn_status run_plan(tn_plan *plan, tn_step *step, tn_error *err)
{
  tn__run run = { .plan = plan, .step = step, .err = err, .again = step->again,
                  .offload = step->env == NULL ? NULL : step->env->offload };
  run.workspace = tn__workspace_take(plan, err);
  if (run.workspace == NULL) return TN_RESOURCE_EXHAUSTED;
  tn_status st = TN_OK;
  if (plan->has_control) {
    tn__run_controlled_reset(&run);
    st = tn__run_controlled(&run);
  } else {
    for (uint32_t i = 0; st == TN_OK && i < plan->n_segments; i++) st = tn__segment_run(&run, i);
  }
  if (st == TN_OK) st = tn__outputs_finish(&run);
  if (st != TN_OK) tn__memory_explain(&run, st);
  if (st != TN_OK) tn__outputs_drop(&run);
  tn__run_drop(&run);
  if (st == TN_RESOURCE_EXHAUSTED && tn__account_now != NULL) tn__spare_drop(run.workspace);
  tn__workspace_put(plan, run.workspace);
  if (__builtin_expect(atomic_load_explicit(&plan->upgrade.may, memory_order_relaxed), 0))
    tn__plan_note_cost(plan, run.cost_ns);
  return st;
}

/* Kernels always have an error object, also those that wait and are called again. If the caller has
 * none, one serves for the whole step and is discarded. */
tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err)
{
  int why = tn__step_stop(step);
  if (why != TN__GO_ON) return tn__step_stopped(why, NULL, err);
  if (err != NULL) return run_plan(plan, step, err);
  tn_error unheard = TN_ERROR_INIT;
  tn_status st = run_plan(plan, step, &unheard);
  tn_error_clear(&unheard);
  return st;
}

/* ---- inside of an instruction ---- */

/* Such a plan shares the step of the plan around it: its time limit, its cancellation, its
 * containers. If a call in it waits, it returns TN_PENDING, and the plan around it continues with
 * other segments. */

tn_status tn__inner_begin(tn__inner *inner, tn_plan *plan, const tn_operation *op, const tn_step *around, tn_error *err)
{
  *inner = (tn__inner){ .run = { .plan = plan, .op = op, .err = err, .inner = true,
                                 .offload = around->env == NULL ? NULL : around->env->offload },
                        .step = *around, .around = around };
  inner->run.step = &inner->step;
  inner->outputs = tn__alloc_array((size_t)plan->n_outputs + 1, sizeof *inner->outputs);
  if (inner->outputs == NULL) return tn__no_memory(err, "memory of a step", 0);
  inner->step.outputs = inner->outputs;
  inner->step.given = NULL;
  inner->step.n_inputs = plan->n_inputs;
  inner->step.n_outputs = plan->n_outputs;
  inner->run.workspace = tn__workspace_take(plan, err);
  return inner->run.workspace == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
}

/* Collects the outputs as tensors. An output is live only if the Switches between its producer and
 * the output passed the value on. */
static tn_status inner_collect(tn__run *run)
{
  const tn_plan *plan = run->plan;
  tn_status st = TN_OK;
  for (uint32_t o = 0; st == TN_OK && o < plan->n_outputs; o++) {
    int live = plan->has_control ? tn__context_state(run, plan->conditions.outputs[o]) : TN__LIVE;
    if (live < 0) return TN_INVALID_ARGUMENT; /* TN__FAULT: the error names the predicate */
    if (live == TN__LIVE && run->step->outputs[o] == NULL)
      st = tn__run_tensor(run, plan->outputs[o], &run->step->outputs[o]);
  }
  /* Dead outputs are released after that, since live ones may share their tensors. */
  for (uint32_t o = 0; st == TN_OK && plan->has_control && o < plan->n_outputs; o++) {
    if (tn__context_state(run, plan->conditions.outputs[o]) == TN__LIVE) continue;
    tn_tensor_unref(run->step->outputs[o]);
    run->step->outputs[o] = NULL;
  }
  return st;
}

static tn_status inner_run(tn__inner *inner)
{
  tn__run *run = &inner->run;
  tn_status st = TN_OK;
  if (run->plan->has_control) return tn__run_controlled(run);
  for (uint32_t i = 0; st == TN_OK && i < run->plan->n_segments; i++) st = tn__segment_run(run, i);
  return st;
}

tn_status tn__inner_go(tn__inner *inner, tn_tensor *const *inputs, const bool *dead)
{
  tn__run *run = &inner->run;
  inner->step.deadline_ns = inner->around->deadline_ns; /* a partial run sets a new one for each call */
  if (!inner->busy) {
    int why = tn__step_stop(&inner->step);
    if (why != TN__GO_ON) return tn__step_stopped(why, run->op, run->err);
    inner->step.inputs = inputs;
    run->dead_feeds = dead;
    if (run->plan->has_control) tn__run_controlled_reset(run);
  }
  tn_status st = inner_run(inner);
  inner->busy = st == TN_PENDING;
  if (inner->busy) return st;
  if (st == TN_OK) st = inner_collect(run);
  if (st != TN_OK) tn__memory_explain(run, st);
  if (st != TN_OK) tn__outputs_drop(run);
  tn__run_drop(run);
  return st;
}

/* Also after a failed tn__inner_begin. The outputs are the caller's by now. */
void tn__inner_end(tn__inner *inner)
{
  tn_plan *plan = inner->run.plan;
  if (inner->outputs != NULL) tn__free(inner->outputs, ((size_t)plan->n_outputs + 1) * sizeof *inner->outputs);
  inner->outputs = NULL;
  if (inner->run.workspace != NULL) tn__workspace_put(plan, inner->run.workspace);
  inner->run.workspace = NULL;
  if (atomic_load_explicit(&plan->upgrade.may, memory_order_relaxed)) tn__plan_note_cost(plan, inner->run.cost_ns);
}
