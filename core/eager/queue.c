/* SPDX-License-Identifier: Apache-2.0 */
/* Adding calls to the queue of an asynchronous session, and waiting for them. async.c runs them. */
#include <core/eager/queue.h>
#include <core/eager/op.h>
#include <core/eager/slots.h>

#define MOST_WAITING 4096 /* calls block while this many wait */

/* The queue's own thread may call the session, from within a deletion. */
static bool is_own_thread(const tn__eager_queue *q) { return pthread_equal(pthread_self(), q->thread) != 0; }

static tn_status from_inside(tn_error *err)
{
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "the thread that runs an asynchronous session's operations cannot wait for them");
}

/* ---- adding ---- */

/* The handles of the outputs are made first; they refer to the task. Blocks while the queue is
 * full, but not on the queue's own thread, which would wait for itself. */
tn_status tn__eager_queue_call(tn_eager_op *op, tn__eager_plan *plan, bool mine, tn__eager_slot *const *inputs,
                               size_t n, tn_eager_handle *outputs, tn_error *err)
{
  tn_eager_session *s = op->session;
  tn__eager_queue *q = s->queue;
  tn__eager_task *t = tn__eager_task_create(inputs, n, plan->n_outputs);
  if (t == NULL) return tn__no_memory(err, "a call of an operation", tn__eager_task_size(n + plan->n_outputs));
  tn_status st = tn__eager_publish(s, NULL, plan->outputs, t, plan->n_outputs, outputs, err);
  if (st != TN_OK) {
    atomic_store(&t->refs, 1);
    tn__eager_task_unref(t);
    return st;
  }
  t->op = op;
  t->plan = plan;
  t->mine = mine;
  for (size_t i = 0; i < plan->n_outputs; i++) /* cannot fail: no other thread has the handle yet */
    tn__eager_pin(s, outputs[i], &t->slots[n + i], NULL);
  tn__mutex_lock(&q->mu);
  while (q->n_put - q->n_done >= MOST_WAITING && !is_own_thread(q)) tn__cond_wait(&q->ended, &q->mu);
  if (q->last != NULL) q->last->next = t;
  else q->first = t;
  q->last = t;
  q->n_put++;
  tn__cond_signal(&q->work);
  tn__mutex_unlock(&q->mu);
  return TN_OK;
}

/* ---- waiting ---- */

/* Calls that other threads add meanwhile are not waited for. */
tn_status tn__eager_queue_wait(tn_eager_session *s, tn_error *err, bool take)
{
  tn__eager_queue *q = s->queue;
  tn_status st = TN_OK;
  tn__mutex_lock(&q->mu);
  uint64_t until = q->n_put;
  if (is_own_thread(q)) {
    tn__mutex_unlock(&q->mu);
    return from_inside(err);
  }
  while (q->n_done < until) tn__cond_wait(&q->ended, &q->mu);
  if (take) {
    st = tn_error_code(&q->error);
    if (st != TN_OK && err != NULL) tn_error_copy(err, &q->error);
    tn_error_clear(&q->error);
  }
  tn__mutex_unlock(&q->mu);
  return st;
}

tn_status tn__eager_slot_tensor(tn_eager_session *s, tn__eager_slot *slot, tn_tensor **out, tn_error *err)
{
  tn__eager_task *t = slot->task;
  tn_status st = TN_OK;
  if (t != NULL) {
    tn__eager_queue *q = s->queue;
    tn__mutex_lock(&q->mu);
    while (!t->done && !is_own_thread(q)) tn__cond_wait(&q->ended, &q->mu);
    st = t->done ? t->status : from_inside(err);
    if (!t->done) err = NULL;
    if (st != TN_OK && err != NULL) tn_error_copy(err, &t->error);
    tn__mutex_unlock(&q->mu);
  }
  if (st == TN_OK) *out = tn_tensor_ref(atomic_load_explicit(&slot->tensor, memory_order_acquire));
  return st;
}
