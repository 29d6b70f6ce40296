/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a plan, and calls of its kernels. */
#ifndef TN_CORE_EXEC_RUN_H
#define TN_CORE_EXEC_RUN_H

#include <core/exec/step.h>
#include <core/exec/workspace.h>

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
  struct tn__jobs *jobs;  /* calls that run concurrently now (tasks.h); NULL = one call at a time */
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
  tn__instance *instance; /* of the segment; NULL if apart is set, or outside of a run */
  const tn__tape *tape;   /* the call; NULL outside of a layout */
  const tn__external_call *apart; /* NULL = the executor makes the call */
} tn__call;

/* tape.c: calls a plugin's kernel, and records which one while the call lasts, for reports of a
 * crash. */
tn_status tn__guest_compute(tn__call *call, const tn__layout *layout);
static inline tn_status tn__call_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  return __builtin_expect((t->flags & TN_TAPE_GUEST) == 0, 1) ? t->compute(&call->ctx)
                                                              : tn__guest_compute(call, layout);
}

/* run.c: runs a step of the plan to its end, on this thread. The outputs become the caller's; after
 * an error they are NULL, except those that the caller gave. */
tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);
/* warm.c: makes the layouts that the step would make, as far as the shapes of its inputs determine
 * them, and allocates the memory; computes nothing. Returns the error of a kernel that rejects the
 * shapes, or the status of a step that is stopped. */
tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err);

/* The tensor of a value that is a tensor of its own: a feed, or the output of a Merge or a loop.
 * Else NULL. Borrowed. */
static inline tn_tensor *tn__run_whole(const tn__run *run, uint32_t value)
{
  const tn__plan_value *v = &run->plan->values[value];
  if (v->kind == TN_VALUE_FEED) return run->step->inputs[v->index];
  return v->whole ? run->workspace->held[v->held] : NULL;
}

/* View of a computed value, in the instance of its segment: the first of the list, since the
 * segment has run. */
static inline tn_view *tn__run_view(const tn__run *run, uint32_t value, uint32_t *slot, tn__instance **instance)
{
  const tn__plan_value *v = &run->plan->values[value];
  *instance = run->workspace->instances[v->segment];
  *slot = v->slot;
  return &(*instance)->views[v->slot];
}

/* run.c: a plan that runs inside of an instruction, once or repeatedly: the body of a loop, or a
 * function. It keeps its workspace between runs. */
typedef struct tn__inner {
  tn__run run;
  tn_step step;        /* a copy of the step around it, with inputs and outputs of its own */
  const tn_step *around;
  tn_tensor **outputs; /* after a successful run: references, which the caller takes; NULL = dead */
  bool busy;           /* it waits: the last tn__inner_go returned TN_PENDING */
} tn__inner;
/* Takes a workspace. Call tn__inner_end also after a failure. */
tn_status tn__inner_begin(tn__inner *inner, tn_plan *plan, const tn_operation *op, const tn_step *around,
                          tn_error *err);
/* Runs it once. Inputs are borrowed until that run has ended. TN_PENDING: call tn__inner_go again
 * with the same arguments; the inputs must not change in between. */
tn_status tn__inner_go(tn__inner *inner, tn_tensor *const *inputs, const bool *dead);
void tn__inner_end(tn__inner *inner);

#endif
