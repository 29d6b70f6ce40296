/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a plan, and calls of its kernels. */
#ifndef TN_CORE_EXEC_RUN_H
#define TN_CORE_EXEC_RUN_H

#include <core/exec/step/run_state.h>

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
