/* SPDX-License-Identifier: Apache-2.0 */
/* Runs inside of an instruction. */
#ifndef TN_CORE_EXEC_INNER_H
#define TN_CORE_EXEC_INNER_H

#include <core/exec/step/run_state.h>
#include <core/exec/step/step.h>

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
