/* SPDX-License-Identifier: Apache-2.0 */
/* Level (a) of the kit: steps of an executable, and the parts of a step that a runtime can read. */
#include <core/exec/run.h>
#include <core/exec/step/env.h>
#include <core/kit/executable.h>
#include <core/kit/hooks.h>
#include <tenon/runtime.h>

tn_status (*tn__kit_reset_sessions)(const tn_session_factory *factory, const char *const *containers, size_t n,
                                    uint32_t flags, tn_error *err);

uint64_t tn_step_id(const tn_step *step) { return tn__step_id(step); }
size_t tn_step_n_inputs(const tn_step *step) { return step->n_inputs; }
tn_tensor *tn_step_input(const tn_step *step, size_t i) { return i < step->n_inputs ? step->inputs[i] : NULL; }
size_t tn_step_n_outputs(const tn_step *step) { return step->n_outputs; }

tn_tensor *tn_step_output(const tn_step *step, size_t i)
{
  return step->given != NULL && i < step->n_outputs ? step->given[i] : NULL;
}

/* Takes over the reference, also if the output cannot be set. */
void tn_step_set_output(tn_step *step, size_t i, tn_tensor *tensor)
{
  if (i >= step->n_outputs || (step->given != NULL && step->given[i] != NULL)) {
    tn_tensor_unref(tensor);
    return;
  }
  tn_tensor_unref(step->outputs[i]);
  step->outputs[i] = tensor;
}

tn_bool tn_step_cancelled(const tn_step *step) { return tn__step_stop(step) != TN__GO_ON; }

tn_status tn_step_check(const tn_step *step, const tn_operation *op, tn_error *err)
{
  int why = tn__step_stop(step);
  tn__error_reset(err);
  return why == TN__GO_ON ? TN_OK : tn__step_stopped(why, op, err);
}

int64_t tn_step_deadline_ns(const tn_step *step) { return step->deadline_ns; }
tn_cancellation *tn_step_cancellation(tn_step *step) { return step->cancellation; }

/* Runs a step with host copies of the feeds that are in device memory. Each is copied once for the
 * whole step. */
static tn_status step_with_copies(tn_executable *executable, tn_step *step, tn_error *err)
{
  tn_step copy = *step;
  tn_tensor **inputs = tn__alloc_array(step->n_inputs, sizeof *inputs);
  if (inputs == NULL) return tn__no_memory(err, "feeds", step->n_inputs * sizeof *inputs);
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < step->n_inputs; i++) {
    tn_tensor *t = step->inputs[i];
    if (t->data == NULL && t->bytes > 0) st = tn_tensor_copy(t, &inputs[i], err);
    else inputs[i] = tn_tensor_ref(t);
  }
  copy.inputs = inputs;
  if (st == TN_OK) st = tn__run_plan(executable->plan, &copy, err);
  for (size_t i = 0; i < step->n_inputs; i++) tn_tensor_unref(inputs[i]);
  tn__free(inputs, step->n_inputs * sizeof *inputs);
  return st;
}

/* Kernels need feeds in host memory. */
static tn_status kit_run_step(tn_executable *executable, tn_step *step, tn_error *err)
{
  for (size_t i = 0; i < step->n_inputs; i++)
    if (step->inputs[i]->data == NULL && step->inputs[i]->bytes > 0) return step_with_copies(executable, step, err);
  return tn__run_plan(executable->plan, step, err);
}

/* A step whose caller asked for the calling thread alone (pool below 0) does not use the scheduler. */
tn_status tn_kit_step(tn_executable *executable, tn_step *step, tn_error *err)
{
  tn__step_env *env = step->env;
  if (env != NULL) env->offload = executable->offload;
  if (__builtin_expect(executable->flags != TN__KIT_SCHEDULED || env == NULL, 1))
    return kit_run_step(executable, step, err);
  if (env->pool < 0) return kit_run_step(executable, step, err);
  env->scheduler = &executable->scheduler;
  env->schedule = executable->schedule;
  env->scheduled = step;
  tn_status st = kit_run_step(executable, step, err);
  env->scheduler = NULL;
  return st;
}

tn_status tn_kit_reset(const tn_session_factory *factory, const char *const *containers, size_t n, uint32_t flags,
                       tn_error *err)
{
  tn__error_reset(err);
  if (factory == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_reset: factory is NULL");
  if (containers == NULL && n > 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_reset: containers is NULL");
  for (size_t i = 0; i < n; i++)
    if (containers[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_reset: container %zu is NULL", i);
  if ((flags & ~(uint32_t)TN_RESET_ALL) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_reset: unknown flags %#x", flags);
  return tn__kit_reset_sessions == NULL ? TN_OK : tn__kit_reset_sessions(factory, containers, n, flags, err);
}
