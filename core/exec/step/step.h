/* SPDX-License-Identifier: Apache-2.0 */
/* A step: the object that a runtime receives, and the conditions that end it. */
#ifndef TN_CORE_EXEC_STEP_STEP_H
#define TN_CORE_EXEC_STEP_STEP_H

#include <core/exec/step/cancellation.h>
#include <core/tensor/tensor_internal.h>
#include <tenon/kit.h>

struct tn__step_env; /* env.h */

struct tn_step {
  tn_tensor *const *inputs; /* by feed, borrowed */
  tn_tensor **outputs;      /* references, set by the runtime, except those that the caller gave in `given` */
  tn_tensor *const *given;  /* by output: the caller's tensor to write into, NULL = none; NULL = none given */
  size_t n_inputs, n_outputs;
  const _Atomic int64_t *closed; /* time at which the session was closed, 0 = it is open; NULL = no session */
  tn_cancellation *cancellation;  /* NULL = none */
  int64_t deadline_ns;            /* monotonic, 0 = none */
  struct tn__step_env *env;       /* NULL: outside of a session */
  uint32_t depth;                 /* number of function calls around it */
  tn_tensor **again;              /* by output: as in tn__run; NULL = none */
};

/* The conditions that end a step, in the form in which they also end work that prepares it
 * (tn__stop_now). */
static inline tn__stop tn__step_limits(const tn_step *step)
{
  return (tn__stop){ .closed = step->closed,
                     .cancelled = step->cancellation == NULL ? NULL : &step->cancellation->cancelled,
                     .deadline_ns = step->deadline_ns };
}

/* Why the step is to stop now: TN__GO_ON or TN__STOP_... Any thread of the step. */
static inline int tn__step_stop(const tn_step *step)
{
  int64_t closed = step->closed == NULL ? 0 : atomic_load_explicit(step->closed, memory_order_relaxed);
  const tn_cancellation *c = step->cancellation;
  int64_t cancelled = c == NULL ? 0 : atomic_load_explicit(&c->cancelled, memory_order_relaxed);
  return tn__stop_first(closed, cancelled, step->deadline_ns);
}

/* Unique in the process, and larger than the id of any step that ended before this one began. 0 outside of a
 * session. */
uint64_t tn__step_id(const tn_step *step);
/* Sets the error of a step that is stopped, and returns its status. op: the node that was running
 * when it was noticed, NULL = not known. */
tn_status tn__step_stopped(int why, const tn_operation *op, tn_error *err);

#endif
