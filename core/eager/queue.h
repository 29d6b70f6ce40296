/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of an asynchronous session: adding calls, and waiting for them. */
#ifndef TN_CORE_EAGER_QUEUE_H
#define TN_CORE_EAGER_QUEUE_H

#include <core/eager/task.h>

typedef struct tn__eager_queue {
  tn__mutex mu;
  tn__cond work;                /* signalled when a task is added, or the thread is to end */
  tn__cond ended;               /* signalled when a task has ended */
  tn__eager_task *first, *last; /* guarded by mu, as are all fields up to stop */
  uint64_t n_put, n_done;       /* tasks added, and ended, so far */
  tn_error error;               /* the first since the last one was taken */
  bool stop;                    /* the thread ends once the queue is empty */
  pthread_t thread;
} tn__eager_queue;

/* Adds a call to the queue. Takes over the pins of the inputs, and the plan if it is the caller's own (mine). */
tn_status tn__eager_queue_call(tn_eager_op *op, struct tn__eager_plan *plan, bool mine, tn__eager_slot *const *inputs,
                               size_t n, tn_eager_handle *outputs, tn_error *err);
/* Waits until all tasks added before have ended. take: returns and clears the first error since the last time. */
tn_status tn__eager_queue_wait(tn_eager_session *session, tn_error *err, bool take);
/* Waits for the tensor of a slot that the caller has pinned, and returns a reference. */
tn_status tn__eager_slot_tensor(tn_eager_session *session, tn__eager_slot *slot, tn_tensor **out, tn_error *err);

#endif
