/* SPDX-License-Identifier: Apache-2.0 */
/* A partial run: one step that continues from call to call. The caller makes one call at a time. */
#ifndef TN_CORE_EXEC_PARTIAL_H
#define TN_CORE_EXEC_PARTIAL_H

#include <core/exec/run.h>
#include <core/plan/partial_plan.h>

typedef struct tn__partial {
  tn__run run;
  tn_step step;        /* env is set by tn__partial_begin; the caller sets the deadline before each call */
  tn__step_env env;
  tn_error err;        /* kernels write to it: waiting calls keep its address from one call to the next */
  tn_tensor **inputs;  /* by feed: references, released when the step has taken them */
  tn_tensor **outputs; /* by fetch */
  tn_status status;    /* TN_PENDING: it continues; else its final status, with the error in err */
} tn__partial;

/* `step` and `env` are copied; workers of env->client help in each call, and have left the step when it returns.
 * Nothing runs yet. tn__partial_end also after a failure. */
tn_status tn__partial_begin(tn__partial *p, tn_plan *plan, const tn_step *step, const tn__step_env *env, tn_error *err);

/* Runs what can run, until the wanted fetches are there (to_end: until the step has ended). TN_PENDING: they are, and
 * the step goes on. TN_OK: it has ended. Else the run has failed: everything in it has come back, and is gone. */
tn_status tn__partial_go(tn__partial *p, const uint32_t *wanted, size_t n, bool to_end);

/* The value of a fetch that is there, the caller's alone; each fetch once. An error is the run's end. */
tn_status tn__partial_take(tn__partial *p, uint32_t fetch, tn_tensor **out);

/* The run ends with an error that is in p->err already. */
void tn__partial_fail(tn__partial *p, tn_status cause);

/* Cancels what waits in a run that goes on, because its step is to end. Does not sleep: what comes back only later is
 * awaited by tn__partial_end. */
void tn__partial_cancel(tn__partial *p);

void tn__partial_end(tn__partial *p);

#endif
