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
  const tn_operation *op; /* that it runs inside of, NULL = none */
  const bool *dead_feeds; /* by feed; NULL: none is dead */
  double cost_ns;         /* of what ran, roughly */
  tn_tensor **again;      /* by output: references to tensors that may be written again when nobody else holds them */
  bool inner;             /* of a loop or a function: outputs need not be exclusive, and nobody sleeps */
  bool partial;           /* feeds come later: nobody sleeps */
  struct tn__offload *offload; /* as the step's; NULL = nobody */
  struct tn__jobs *jobs;  /* calls that run at once now (tasks.h); NULL = there is one at a time */
} tn__run;

/* A call for who runs a plan himself (core/kit/layout.c): outputs that the kernel makes go there. */
typedef struct tn__apart {
  const tn__layout *layout;
  tn_view *const *outputs;
  tn_tensor **made; /* by output */
} tn__apart;

/* What compute gets, with what stands behind it. */
typedef struct tn__call {
  tn_kernel_ctx ctx;
  tn__run *run; /* NULL: outside of one */
  tn__instance *instance;
  const tn__tape *tape;
  const tn__apart *apart; /* NULL = it is not */
} tn__call;

/* tape.c: computes, and records that it is in a plugin's kernel. */
tn_status tn__guest_compute(tn__call *call, const tn__layout *layout);
static inline tn_status tn__call_compute(tn__call *call, const tn__layout *layout)
{
  const tn__tape *t = call->tape;
  return __builtin_expect((t->flags & TN_TAPE_GUEST) == 0, 1) ? t->compute(&call->ctx) : tn__guest_compute(call, layout);
}

tn_status tn__run_plan(tn_plan *plan, tn_step *step, tn_error *err);
/* warm.c: lays out what the step would, as far as the shapes of its inputs say, and takes the memory; computes nothing. Returns what
 * kernels say of the shapes, and what the step ends with when it is stopped. */
tn_status tn__plan_warm(tn_plan *plan, const tn_step *step, tn_error *err);

/* The tensor that a value is, when it is a whole one: a feed, or what a Merge or a loop made; else NULL. */
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

/* run.c: a plan that runs inside of an instruction, once or again and again. */
typedef struct tn__inner {
  tn__run run;
  tn_step step;
  const tn_step *around;
  tn_tensor **outputs; /* after a run that went well: references, the caller's to take; NULL = dead */
  bool busy;           /* it waits */
} tn__inner;
tn_status tn__inner_begin(tn__inner *inner, tn_plan *plan, const tn_operation *op, const tn_step *around, tn_error *err);
/* Inputs are borrowed until it has ended. TN_PENDING: call tn__inner_go again, without changing anything. */
tn_status tn__inner_go(tn__inner *inner, tn_tensor *const *inputs, const bool *dead);
void tn__inner_end(tn__inner *inner);

#endif
