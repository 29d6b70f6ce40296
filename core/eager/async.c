/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous sessions: calls wait in a queue, and a thread runs them one after the other.
 *
 * A task pins the slots of its inputs and of its outputs until it has run, so an input is there when its reader's turn comes. Slots
 * keep their task: who reads one waits for it, and finds its error there. */
#include <core/eager/eager.h>

#define MOST_WAITING 4096 /* then calls wait, too */

struct tn__eager_task {
  _Atomic uint32_t refs; /* the queue's, and one of each output */
  tn__eager_task *next;
  tn_eager_op *op;
  tn__eager_plan *plan;
  bool mine;             /* the plan is the task's own */
  size_t n_inputs, n_outputs;
  tn_status status;      /* when `done`; guarded by the queue's mu, as is error */
  bool done;
  tn_error error;
  tn__eager_slot **slots; /* inputs, outputs, behind the struct, and as many tensors */
  tn_tensor **tensors;
};

typedef struct tn__eager_queue {
  tn__mutex mu;
  tn__cond work, ended;
  tn__eager_task *first, *last; /* guarded by mu, as what follows */
  uint64_t n_put, n_done;
  tn_error error;               /* the first since it was taken */
  bool stop;
  pthread_t thread;
} tn__eager_queue;

static size_t size_of(size_t n) { return sizeof(tn__eager_task) + n * (sizeof(tn__eager_slot *) + sizeof(tn_tensor *)); }

void tn__eager_task_unref(tn__eager_task *t)
{
  if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  tn_error_clear(&t->error);
  tn__free(t, size_of(t->n_inputs + t->n_outputs));
}

/* A deletion may call the session, and then this thread does. */
static bool is_own_thread(const tn__eager_queue *q) { return pthread_equal(pthread_self(), q->thread) != 0; }

static tn_status from_inside(tn_error *err)
{
  return tn_error_set(err, TN_FAILED_PRECONDITION, "the thread that runs an asynchronous session's operations cannot wait for them");
}

/* ---- running ---- */

/* The error of an input that could not be made. */
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

static void finish(tn_eager_session *s, tn__eager_task *t, tn_status st, tn_error *err)
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
  if (t->mine) tn__eager_plan_free(s, t->plan);
  tn__eager_task_unref(t);
}

static void run_task(tn_eager_session *s, tn__eager_task *t)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = find_inputs(s->queue, t, &err);
  if (st == TN_OK && atomic_load(&s->closed) != 0) st = tn__eager_closed(s, &err);
  if (st == TN_OK) st = tn__eager_step(s, t->plan, t->tensors, t->tensors + t->n_inputs, NULL, &err);
  if (st == TN_OK) give_outputs(s, t);
  if (st != TN_OK && tn_error_code(&err) == TN_OK) tn_error_set(&err, st, "eager op '%s' failed", t->op->name);
  finish(s, t, st, &err);
  tn_error_clear(&err);
  tn__eager_safe_point(s);
}

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

/* ---- putting in ---- */

static tn__eager_task *task_new(tn_eager_op *op, tn__eager_plan *plan, tn__eager_slot *const *inputs, size_t n)
{
  size_t all = n + plan->n_outputs;
  tn__eager_task *t = tn__zalloc(size_of(all));
  if (t == NULL) return NULL;
  atomic_init(&t->refs, 1 + plan->n_outputs);
  tn_error_init(&t->error);
  t->op = op;
  t->plan = plan;
  t->n_inputs = n;
  t->n_outputs = plan->n_outputs;
  t->slots = (tn__eager_slot **)(t + 1);
  t->tensors = (tn_tensor **)(t->slots + all);
  if (n > 0) memcpy(t->slots, inputs, n * sizeof(tn__eager_slot *));
  return t;
}

tn_status tn__eager_queue_call(tn_eager_op *op, tn__eager_plan *plan, bool mine, tn__eager_slot *const *inputs, size_t n,
                               tn_eager_handle *outputs, tn_error *err)
{
  tn_eager_session *s = op->session;
  tn__eager_queue *q = s->queue;
  tn__eager_task *t = task_new(op, plan, inputs, n);
  if (t == NULL) return tn__no_memory(err, "a call of an operation", size_of(n + plan->n_outputs));
  tn_status st = tn__eager_publish(s, NULL, plan->outputs, t, plan->n_outputs, outputs, err);
  if (st != TN_OK) {
    atomic_store(&t->refs, 1);
    tn__eager_task_unref(t);
    return st;
  }
  t->mine = mine;
  for (size_t i = 0; i < plan->n_outputs; i++) /* nobody knows the handle by now */
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
  return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no thread for an eager session (error %d of the system)", code);
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
