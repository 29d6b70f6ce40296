/* SPDX-License-Identifier: Apache-2.0 */
/* A step: what a runtime is given to run, what it shares with its session, and what ends it. */
#ifndef TN_CORE_EXEC_STEP_H
#define TN_CORE_EXEC_STEP_H

#include <core/base/stop.h>
#include <core/pool/pool.h>
#include <core/resource/container.h>
#include <core/tensor/tensor_internal.h>
#include <tenon/kit.h>
#include <tenon/session.h>

struct tn_cancellation {
  _Atomic uint32_t refs;
  _Atomic int64_t cancelled; /* when, on the monotonic clock; 0 = not. tn__stop points here */
  tn__mutex mu; /* callbacks, children, the parent link */
  tn__cond ended;
  struct tn__cancel_callback *callbacks; /* guarded by mu */
  uint64_t next_key;
  uint64_t running; /* key of the callback that runs, 0 = none */
  pthread_t runner;
  tn_cancellation *parent; /* a reference */
  uint64_t parent_key;
};

struct tn__jobs;
struct tn__sleepers;

/* What a step has of its session, and what is its own alone; shared by all that runs in it. */
typedef struct tn__step_env {
  tn__container_view *containers; /* NULL = none */
  tn__mutex *mu;                  /* of the session; guards own */
  tn__container *own;             /* of the step (S-RST-22), NULL = not asked for yet */
  struct tn__sleepers *sleepers;  /* NULL = nobody wakes it when the session is closed */
  struct tn__sleeper *sleeper;    /* made when a kernel waits for the first time */
  tn__account *account;           /* of the session's memory, NULL = it has no limit */
  bool explained;                 /* what holds its memory was said */
  _Atomic bool failed;            /* something went wrong: what waits is cancelled, nothing new begins */
  tn_status cause;                /* what it was, when it failed */
  int32_t pool;                   /* that the caller asked for; -1 = the calling thread alone */
  tn__pool_client *client;        /* whose workers may help; NULL = nobody but the caller */
  tn__crew *crew;                 /* of this step, taken when it is wanted first; put when the step ends */
  struct tn__trace *trace;        /* what ran is recorded (trace.h); NULL = it is not */
  const void *kind;               /* steps with the same one do the same; NULL = not known */
  _Atomic uint64_t id;            /* of the step; 0 = nobody asked yet */
  const tn_kit_scheduler *scheduler; /* it runs tasks of the step; NULL = the step's crew does */
  void (*schedule)(struct tn__jobs *jobs); /* with a scheduler: has it run them all (core/kit/schedule.c) */
  tn_step *scheduled;             /* the step as the scheduler knows it */
  _Atomic(struct tn__jobs *) jobs; /* that the scheduler has now (core/kit/schedule.c); NULL = none */
  struct tn__offload *offload;    /* who is offered parts of plans (offload.h); NULL = nobody */
} tn__step_env;

struct tn_step {
  tn_tensor *const *inputs;
  tn_tensor **outputs;      /* set by the runtime; those that the caller gave stand in `given` */
  tn_tensor *const *given;  /* NULL = none given */
  size_t n_inputs, n_outputs;
  const _Atomic int64_t *closed; /* when the session was, 0 = it is open; NULL = none */
  tn_cancellation *cancellation;  /* NULL = none */
  int64_t deadline_ns;            /* monotonic, 0 = none */
  tn__step_env *env;              /* NULL: outside of a session */
  uint32_t depth;                 /* calls of functions that it is inside of */
  tn_tensor **again;              /* by output: as in tn__run; NULL = none */
};

/* What ends a step, and what is prepared for it. */
static inline tn__stop tn__step_limits(const tn_step *step)
{
  return (tn__stop){ .closed = step->closed, .cancelled = step->cancellation == NULL ? NULL : &step->cancellation->cancelled,
                     .deadline_ns = step->deadline_ns };
}

static inline tn_cancellation *tn__stop_cancellation(const tn__stop *stop)
{
  if (stop->cancelled == NULL) return NULL;
  return (tn_cancellation *)(uintptr_t)((const char *)stop->cancelled - offsetof(tn_cancellation, cancelled));
}

static inline int tn__step_stop(const tn_step *step)
{
  int64_t closed = step->closed == NULL ? 0 : atomic_load_explicit(step->closed, memory_order_relaxed);
  const tn_cancellation *c = step->cancellation;
  int64_t cancelled = c == NULL ? 0 : atomic_load_explicit(&c->cancelled, memory_order_relaxed);
  return tn__stop_first(closed, cancelled, step->deadline_ns);
}

/* Something in it went wrong: its own thread and those that work for it ask. */
static inline bool tn__step_failed(const tn_step *step)
{
  return step->env != NULL && atomic_load_explicit(&step->env->failed, memory_order_relaxed);
}

/* step.c: unique in the process, larger than that of any step which ended before this one began; 0 outside of a session. */
uint64_t tn__step_id(const tn_step *step);
/* Releases the step's helper threads. Call it on the thread that runs the step, or one that takes the step over from it. */
void tn__step_dismiss(tn__step_env *env);
/* The status of a step that is stopped; op: the node that was late, NULL = not known. */
tn_status tn__step_stopped(int why, const tn_operation *op, tn_error *err);

#endif
