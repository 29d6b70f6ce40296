/* SPDX-License-Identifier: Apache-2.0 */
/* A partial run: one step that continues from call to call. The caller makes one call at a time,
 * and after it may go on from another thread. */
#ifndef TN_CORE_EXEC_PARTIAL_H
#define TN_CORE_EXEC_PARTIAL_H

#include <core/exec/step/env.h>
#include <core/exec/step/run_state.h>
#include <core/plan/partial_plan.h>

typedef struct tn__partial {
  tn__run run;
  tn_step step;        /* env is set by tn__partial_begin; the caller sets the deadline before each call */
  tn__step_env env;    /* a copy, so that it outlives the call that began the run */
  tn_error err;        /* kernels write to it: waiting calls keep its address from one call to the next */
  tn_tensor **inputs;  /* by feed: references, released when the step has taken them */
  tn_tensor **outputs; /* by fetch: references, until they are taken */
  tn_status status;    /* TN_PENDING: it continues; else its final status, with the error in err */
} tn__partial;

/* `step` and `env` are copied; workers of env->client help in each call, and have left the step
 * when it returns. Runs nothing yet. Call tn__partial_end also after a failure. */
tn_status tn__partial_begin(tn__partial *p, tn_plan *plan, const tn_step *step, const tn__step_env *env, tn_error *err);

/* Runs segments until the wanted fetches have values (to_end: until the step has ended).
 * TN_PENDING: they have, and the step can continue. TN_OK: it has ended. Else the run has failed:
 * all of its waiting calls have returned, and its memory is released. */
tn_status tn__partial_go(tn__partial *p, const uint32_t *wanted, size_t n, bool to_end);

/* Takes the value of a fetch that has one, as a tensor to which no other reference exists; each
 * fetch once. After an error the caller ends the run. */
tn_status tn__partial_take(tn__partial *p, uint32_t fetch, tn_tensor **out);

/* Ends the run with an error that is in p->err already. Sleeps until all waiting calls have
 * returned. */
void tn__partial_fail(tn__partial *p, tn_status cause);

/* Cancels the waiting calls of an unfinished run whose step is to end. Does not sleep:
 * tn__partial_end waits for calls that have not returned by then. */
void tn__partial_cancel(tn__partial *p);

/* Releases the run; one that is unfinished is cancelled first. */
void tn__partial_end(tn__partial *p);

#endif
