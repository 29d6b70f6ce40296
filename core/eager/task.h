/* SPDX-License-Identifier: Apache-2.0 */
/* A call that waits in the queue of an asynchronous session. */
#ifndef TN_CORE_EAGER_TASK_H
#define TN_CORE_EAGER_TASK_H

#include <core/eager/eager.h>

typedef struct tn__eager_task tn__eager_task;
struct tn__eager_task {
  _Atomic uint32_t refs; /* the queue's, and one for each output */
  tn__eager_task *next;  /* in the queue */
  tn_eager_op *op;       /* borrowed, as is the plan unless `mine`: freed only when the queue is empty */
  struct tn__eager_plan *plan;
  bool mine;             /* the plan is the task's own */
  size_t n_inputs, n_outputs;
  tn_status status;      /* when `done`; guarded by the queue's mu, as is error */
  bool done;
  tn_error error;
  tn__eager_slot **slots; /* of inputs and outputs; after the struct, followed by as many tensors */
  tn_tensor **tensors;
};

/* A task with references for the queue and for each output, whose inputs are copied from `inputs`. NULL
 * without memory. */
tn__eager_task *tn__eager_task_create(tn__eager_slot *const *inputs, size_t n_inputs, size_t n_outputs);
void tn__eager_task_unref(tn__eager_task *task); /* NULL allowed */
size_t tn__eager_task_size(size_t n); /* bytes of one with n inputs and outputs */

#endif
