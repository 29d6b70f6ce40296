/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a plan, and calls of its kernels. */
#ifndef TN_CORE_EXEC_RUN_H
#define TN_CORE_EXEC_RUN_H

#include <core/exec/step.h>
#include <core/exec/workspace.h>

/* One run of a plan for a step. */
typedef struct tn__run {
  tn_plan *plan;
  tn_step *step;
  tn__workspace *workspace;
  tn_error *err;
  const tn_operation *op; /* instruction around it, NULL = none */
  const bool *dead_feeds; /* by feed; NULL: none is dead */
  double cost_ns;         /* estimated, of the segments that ran */
  tn_tensor **again;      /* by output: references to tensors that may be overwritten if no other reference exists */
  bool inner;             /* of a loop or a function: outputs need not be exclusive, and the run never sleeps */
  bool partial;           /* feeds arrive later: the run never sleeps */
  struct tn__offload *offload; /* as the step's; NULL = none */
  struct tn__jobs *jobs;  /* calls that run concurrently now (tasks.h); NULL = one call at a time */
} tn__run;

/* A call by a runtime that runs the plan itself (core/kit/layout.c): it receives the outputs that the kernel makes. */
typedef struct tn__apart {
  const tn__layout *layout;
  tn_view *const *outputs;
  tn_tensor **made; /* by output */
} tn__apart;

/* The context that compute receives, with its surroundings. */
typedef struct tn__call {
  tn_kernel_ctx ctx;
  tn__run *run; /* NULL: outside of a run */
  tn__instance *instance;
  const tn__tape *tape;
  const tn__apart *apart; /* NULL = the executor runs it */
} tn__call;

/* tape.c: calls a plugin's kernel and records the call while it lasts. */
tn_status tn__guest_compute(tn__call *call, const tn__layout *layout);
static inline tn_status tn__call_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  return __builtin_expect((t->flags & TN_TAPE_GUEST) == 0, 1) ? t->compute(&call->ctx)
                                                              : tn__guest_compute(call, layout);
}

tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);
/* warm.c: makes the layouts that the step would, as far as the shapes of its inputs determine them, and allocates the
 * memory; computes nothing. Returns the error of a kernel that rejects the shapes, or the status of a step that is
 * stopped. */
tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err);

/* The tensor of a value that is a tensor of its own: a feed, or the output of a Merge or a loop. Else NULL. */
static inline tn_tensor *tn__run_whole(const tn__run *run, uint32_t value)
{
  const tn__plan_value *v = &run->plan->values[value];
  if (v->kind == TN_VALUE_FEED) return run->step->inputs[v->index];
  return v->whole ? run->workspace->held[v->held] : NULL;
}

/* View of a computed value, in the instance of its segment. */
static inline tn_view *tn__run_view(const tn__run *run, uint32_t value, uint32_t *slot, tn__instance **instance)
{
  const tn__plan_value *v = &run->plan->values[value];
  *instance = run->workspace->instances[v->segment];
  *slot = v->slot;
  return &(*instance)->views[v->slot];
}

/* run.c: a plan that runs inside of an instruction, once or repeatedly. */
typedef struct tn__inner {
  tn__run run;
  tn_step step;
  const tn_step *around;
  tn_tensor **outputs; /* after a successful run: references, which the caller takes; NULL = dead */
  bool busy;           /* it waits */
} tn__inner;
tn_status tn__inner_begin(tn__inner *inner, tn_plan *plan, const tn_operation *op, const tn_step *around,
                          tn_error *err);
/* Inputs are borrowed until it has ended. TN_PENDING: call tn__inner_go again, without changing anything. */
tn_status tn__inner_go(tn__inner *inner, tn_tensor *const *inputs, const bool *dead);
void tn__inner_end(tn__inner *inner);

#endif
