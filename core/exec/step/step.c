/* SPDX-License-Identifier: Apache-2.0 */
/* A step: its id, the status with which it ends when it is stopped, and the release of its helper
 * threads. */
#include <core/exec/step/step.h>
#include <core/exec/step/env.h>

static _Atomic uint64_t step_counter;

/* S-RUN-31. Ids are assigned at the first request, so that concurrent steps do not contend for the
 * counter unless they need one. Of two consecutive steps the later one requests its id later, so
 * its id is larger. Tasks of a step may request it concurrently; the first one wins, and the ids of
 * the others are never used. */
uint64_t tn__step_id(const tn_step *step)
{
  if (step->env == NULL) return 0;
  uint64_t id = atomic_load_explicit(&step->env->id, memory_order_relaxed);
  if (id != 0) return id;
  uint64_t mine = atomic_fetch_add_explicit(&step_counter, 1, memory_order_relaxed) + 1;
  bool first =
      atomic_compare_exchange_strong_explicit(&step->env->id, &id, mine, memory_order_relaxed, memory_order_relaxed);
  return first ? mine : id;
}

tn_status tn__step_stopped(int why, const tn_operation *op, tn_error *err)
{
  tn_status st = why == TN__STOP_DEADLINE ? TN_DEADLINE_EXCEEDED : TN_CANCELLED;
  const char *type = op == NULL ? "" : tn_operation_type(op), *name = op == NULL ? "" : tn_operation_name(op);
  if (why == TN__STOP_CLOSED)
    tn_error_set(err, st, "session has been closed");
  else if (why == TN__STOP_DEADLINE && op == NULL)
    tn_error_set(err, st, "the step exceeded its time limit");
  else if (why == TN__STOP_DEADLINE)
    tn_error_set(err, st, "the step exceeded its time limit at node '%s' (%s)", name, type);
  else if (op == NULL)
    tn_error_set(err, st, "the step was cancelled");
  else
    tn_error_set(err, st, "the step was cancelled at node '%s' (%s)", name, type);
  if (op != NULL) tn_error_set_node(err, name);
  return st;
}

void tn__step_dismiss(tn__step_env *env)
{
  if (env->crew != NULL) tn__crew_put(env->crew);
  env->crew = NULL;
  env->client = NULL;
}
