/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a step: what it uses of its session, and what its threads share. */
#ifndef TN_CORE_EXEC_STEP_ENV_H
#define TN_CORE_EXEC_STEP_ENV_H

#include <core/exec/step/step.h>
#include <core/pool/pool.h>
#include <core/resource/container.h>

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

/* Whether an error occurred in the step. Any thread of the step. */
static inline bool tn__step_failed(const tn_step *step)
{
  return step->env != NULL && atomic_load_explicit(&step->env->failed, memory_order_relaxed);
}

/* The trace of a step; NULL = none. */
static inline struct tn__trace *tn__step_trace(const tn_step *step)
{
  return step->env == NULL ? NULL : step->env->trace;
}

/* Releases the step's helper threads. Call it on the thread that runs the step, or one that takes the step over from
 * it. */
void tn__step_dismiss(tn__step_env *env);

#endif
