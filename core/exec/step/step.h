/* SPDX-License-Identifier: Apache-2.0 */
/* A step: the object that a runtime receives, the state that it shares with its session, and the
 * conditions that end it. */
#ifndef TN_CORE_EXEC_STEP_STEP_H
#define TN_CORE_EXEC_STEP_STEP_H

#include <core/base/threads/stop.h>
#include <core/pool/pool.h>
#include <core/resource/container.h>
#include <core/tensor/tensor_internal.h>
#include <tenon/kit.h>
#include <tenon/session.h>

/* Its protocol is described in cancel.c. */
struct tn_cancellation {
  _Atomic uint32_t refs;
  _Atomic int64_t cancelled; /* when, on the monotonic clock; 0 = not. Set under mu, once. tn__stop points here */
  tn__mutex mu;
  tn__cond ended; /* signalled when a callback has returned */
  struct tn__cancel_callback *callbacks; /* guarded by mu, as are the next three */
  uint64_t next_key;
  uint64_t running; /* key of the callback that runs, 0 = none */
  pthread_t runner; /* the thread that cancels; valid once cancelled */
  tn_cancellation *parent; /* a reference; NULL = none */
  uint64_t parent_key;     /* of the callback registered with the parent; 0 = none */
  const struct tn__folders *folders; /* replace those of the session in steps of this call; borrowed; NULL = none */
};

struct tn__jobs;
struct tn__sleepers;

/* Per-step environment: state borrowed from the session, plus the step's own. Shared by all plans
 * that the step runs. Set before the step begins; atomic fields may change while it runs. Other
 * fields are changed only by the step's own thread, except `own`. */
typedef struct tn__step_env {
  tn__container_view *containers; /* borrowed; NULL = none */
  tn__mutex *mu;                  /* of the session; guards own */
  tn__container *own;             /* of the step (S-RST-22), a reference; NULL = not requested yet */
  struct tn__sleepers *sleepers;  /* the session's; NULL = closing the session does not wake the step */
  struct tn__sleeper *sleeper;    /* a reference; made when a kernel first waits, NULL until then */
  tn__account *account;           /* of the session's memory, NULL = it has no limit */
  bool explained;                 /* the error already lists the tensors that hold its memory */
  _Atomic bool failed;            /* an error occurred: waiting kernels are cancelled, no other call begins */
  tn_status cause;                /* the status of that error; set before failed */
  int32_t pool;                   /* requested by the caller; -1 = the calling thread alone */
  tn__pool_client *client;        /* its workers may help; NULL = the calling thread works alone */
  tn__crew *crew;                 /* of this step: taken when it is first needed, put back at the step's end */
  struct tn__trace *trace;        /* records the step's calls (trace.h); NULL = no trace */
  const void *kind;               /* steps of equal kind do the same work; only compared; NULL = not known */
  _Atomic uint64_t id;            /* of the step; 0 = not requested yet (tn__step_id) */
  const tn_kit_scheduler *scheduler; /* runs the step's tasks; NULL = the step's crew does */
  void (*schedule)(struct tn__jobs *jobs); /* gives all tasks to the scheduler and waits (core/kit/schedule.c) */
  tn_step *scheduled;             /* the step as the scheduler knows it */
  _Atomic(struct tn__jobs *) jobs; /* those that the scheduler has at present (core/kit/schedule.c); NULL = none */
  struct tn__offload *offload;    /* runs parts of plans for the executor (offload.h); NULL = none */
} tn__step_env;

struct tn_step {
  tn_tensor *const *inputs; /* by feed, borrowed */
  tn_tensor **outputs;      /* references, set by the runtime, except those that the caller gave in `given` */
  tn_tensor *const *given;  /* by output: the caller's tensor to write into, NULL = none; NULL = none given */
  size_t n_inputs, n_outputs;
  const _Atomic int64_t *closed; /* time at which the session was closed, 0 = it is open; NULL = no session */
  tn_cancellation *cancellation;  /* NULL = none */
  int64_t deadline_ns;            /* monotonic, 0 = none */
  tn__step_env *env;              /* NULL: outside of a session */
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

/* The cancellation that a stop made by tn__step_limits points into; NULL = none. Borrowed. */
static inline tn_cancellation *tn__stop_cancellation(const tn__stop *stop)
{
  if (stop->cancelled == NULL) return NULL;
  return (tn_cancellation *)(uintptr_t)((const char *)stop->cancelled - offsetof(tn_cancellation, cancelled));
}

/* Why the step is to stop now: TN__GO_ON or TN__STOP_... Any thread of the step. */
static inline int tn__step_stop(const tn_step *step)
{
  int64_t closed = step->closed == NULL ? 0 : atomic_load_explicit(step->closed, memory_order_relaxed);
  const tn_cancellation *c = step->cancellation;
  int64_t cancelled = c == NULL ? 0 : atomic_load_explicit(&c->cancelled, memory_order_relaxed);
  return tn__stop_first(closed, cancelled, step->deadline_ns);
}

/* Whether an error occurred in it. Any thread of the step. */
static inline bool tn__step_failed(const tn_step *step)
{
  return step->env != NULL && atomic_load_explicit(&step->env->failed, memory_order_relaxed);
}

/* Unique in the process, and larger than the id of any step that ended before this one began. 0 outside of a
 * session. */
uint64_t tn__step_id(const tn_step *step);
/* Releases the step's helper threads. Call it on the thread that runs the step, or one that takes the step over from
 * it. */
void tn__step_dismiss(tn__step_env *env);
/* Sets the error of a step that is stopped, and returns its status. op: the node that was running
 * when it was noticed, NULL = not known. */
tn_status tn__step_stopped(int why, const tn_operation *op, tn_error *err);

#endif
