/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run of a plan, and of a kernel's call in it. core/exec/run.h declares what runs
 * plans. */
#ifndef TN_CORE_EXEC_STEP_RUN_STATE_H
#define TN_CORE_EXEC_STEP_RUN_STATE_H

#include <core/plan/plan.h>

struct tn__instance;
struct tn__tape;

/* One run of a plan for a step. The thread that runs the plan owns it; tasks and offloaded parts
 * only read it. */
typedef struct tn__run {
  tn_plan *plan;          /* borrowed, as are the step and err */
  tn_step *step;
  tn__workspace *workspace; /* taken for this run, and put back at its end */
  tn_error *err;          /* not NULL: kernels always have an error object */
  const tn_operation *op; /* the instruction of another plan that runs this one; NULL = none */
  const bool *dead_feeds; /* by feed; NULL: none is dead */
  double cost_ns;         /* estimated, of the segments that have run */
  tn_tensor **again;      /* by output: references to tensors that may be overwritten if no other reference exists */
  bool inner;             /* of a loop or a function: outputs need not be exclusive, and the run never sleeps */
  bool partial;           /* feeds arrive later: the run never sleeps */
  struct tn__offload *offload; /* as the step's; NULL = none */
  struct tn__jobs *jobs;  /* calls that run concurrently now (jobs.h); NULL = one call at a time */
} tn__run;

/* A kernel call made by a runtime that runs the plan itself (level (c), core/kit/layout.c). It has
 * no instance, so outputs that the kernel allocates are stored here. */
typedef struct tn__external_call {
  const tn__layout *layout;
  tn_view *const *outputs;
  tn_tensor **made; /* by output: references, for the caller; NULL until the kernel sets them */
} tn__external_call;

/* The context that compute receives, embedded in the executor's private state. Functions that
 * kernels call (tn_kernel_...) cast the context back, so `ctx` must be the first member. */
typedef struct tn__call {
  tn_kernel_ctx ctx;
  tn__run *run; /* NULL: outside of a run */
  struct tn__instance *instance; /* of the segment; NULL if apart is set, or outside of a run */
  const struct tn__tape *tape; /* the call; NULL outside of a layout */
  const tn__external_call *apart; /* NULL = the executor makes the call */
} tn__call;

#endif
