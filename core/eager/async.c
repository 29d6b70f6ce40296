/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous sessions: the thread that runs the queued calls, one after the other.
 *
 * A task pins the slots of its inputs and outputs until it has run, so an input is computed before the task
 * that reads it runs. A slot keeps a reference to its task: a reader of the slot waits for the task, and
 * takes the task's error. */
#include <core/eager/async.h>
#include <core/eager/call.h>
#include <core/eager/queue.h>
#include <core/eager/slots.h>
#include <core/eager/sweep.h>

/* ---- running ---- */

/* Finds the inputs, or the error of one that could not be computed. */
static tn_status find_inputs(tn__eager_queue *q, tn__eager_task *t, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 0; i < t->n_inputs; i++) {
    tn__eager_slot *slot = t->slots[i];
    t->tensors[i] = atomic_load_explicit(&slot->tensor, memory_order_acquire);
    if (t->tensors[i] != NULL || st != TN_OK) continue;
    tn__mutex_lock(&q->mu);
    st = slot->task->status;
    tn_error_copy(err, &slot->task->error);
    tn__mutex_unlock(&q->mu);
  }
  return st;
}

/* Stores the outputs in their slots, and counts their bytes. Readers see them once the task is
 * done. */
static void give_outputs(tn_eager_session *s, tn__eager_task *t)
{
  int64_t bytes = 0;
  for (size_t i = 0; i < t->n_outputs; i++) {
    tn__eager_slot *slot = t->slots[t->n_inputs + i];
    tn_tensor *made = t->tensors[t->n_inputs + i];
    slot->bytes = made->bytes;
    slot->heavy = tn__eager_is_heavy(made);
    bytes += (int64_t)made->bytes;
    atomic_store_explicit(&slot->tensor, made, memory_order_release);
  }
  tn__eager_lane *lane = tn__eager_lane_lock(s);
  tn__eager_lane_count(s, lane, bytes);
  tn__eager_lane_unlock(lane);
}

/* The task has ended: notes the status, wakes waiting threads, unpins all slots. */
static void task_finish(tn_eager_session *s, tn__eager_task *t, tn_status st, tn_error *err)
{
  tn__eager_queue *q = s->queue;
  tn__mutex_lock(&q->mu);
  t->status = st;
  t->done = true;
  if (st != TN_OK) tn_error_copy(&t->error, err);
  if (st != TN_OK && tn_error_code(&q->error) == TN_OK) tn_error_copy(&q->error, err);
  q->n_done++;
  tn__cond_broadcast(&q->ended);
  tn__mutex_unlock(&q->mu);
  for (size_t i = 0; i < t->n_inputs + t->n_outputs; i++) tn__eager_unpin(s, t->slots[i]);
  if (t->mine) tn__eager_plan_destroy(s, t->plan);
  tn__eager_task_unref(t);
}

/* Runs a task, unless an input failed or the session was closed; then it fails with that error. */
static void run_task(tn_eager_session *s, tn__eager_task *t)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = find_inputs(s->queue, t, &err);
  if (st == TN_OK && atomic_load(&s->closed) != 0) st = tn__eager_closed(s, &err);
  if (st == TN_OK) st = tn__eager_step(s, t->plan, t->tensors, t->tensors + t->n_inputs, NULL, &err);
  if (st == TN_OK) give_outputs(s, t);
  if (st != TN_OK && tn_error_code(&err) == TN_OK) tn_error_set(&err, st, "eager op '%s' failed", t->op->name);
  task_finish(s, t, st, &err);
  tn_error_clear(&err);
  tn__eager_safe_point(s);
}

/* The session's thread. Tasks that are queued when the session is closed still end, with an error. */
static void *run_queue(void *session)
{
  tn_eager_session *s = session;
  tn__eager_queue *q = s->queue;
  tn__eager_frame frame = { s, NULL };
  tn__eager_inside = &frame;
  for (;;) {
    tn__mutex_lock(&q->mu);
    while (q->first == NULL && !q->stop) tn__cond_wait(&q->work, &q->mu);
    tn__eager_task *t = q->first;
    if (t != NULL) q->first = t->next;
    if (q->first == NULL) q->last = NULL;
    tn__mutex_unlock(&q->mu);
    if (t == NULL) return NULL;
    run_task(s, t);
  }
}

/* ---- life ---- */

static void queue_free(tn__eager_queue *q)
{
  tn_error_clear(&q->error);
  tn__cond_fini(&q->ended);
  tn__cond_fini(&q->work);
  tn__mutex_fini(&q->mu);
  tn__free(q, sizeof *q);
}

tn_status tn__eager_queue_open(tn_eager_session *s, tn_error *err)
{
  tn__eager_queue *q = tn__zalloc(sizeof *q);
  if (q == NULL) return tn__no_memory(err, "eager session", sizeof *q);
  tn__mutex_init(&q->mu, "eager queue", TN_RANK_PARKED);
  tn__cond_init(&q->work);
  tn__cond_init(&q->ended);
  tn_error_init(&q->error);
  s->queue = q;
  int code = pthread_create(&q->thread, NULL, run_queue, s);
  if (code == 0) return TN_OK;
  s->queue = NULL;
  queue_free(q);
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "cannot start a thread for an eager session (system error %d)", code);
}

void tn__eager_queue_close(tn_eager_session *s)
{
  tn__eager_queue *q = s->queue;
  if (q == NULL) return;
  tn__mutex_lock(&q->mu);
  q->stop = true;
  tn__cond_signal(&q->work);
  tn__mutex_unlock(&q->mu);
  tn__thread_join(q->thread);
  s->queue = NULL;
  queue_free(q);
}
