/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: attempts served in order. */
#include <core/base/alloc.h>
#include <core/base/map.h>
#include <core/base/text.h>
#include <ops/state/queue/queue.h>

const tn_resource_class tn__queue_class = { .struct_size = sizeof(tn_resource_class), .name = "Queue",
                                            .destroy = tn__queue_destroy };

/* ---- creation ---- */

/* If both seeds are 0, the seed is random: hashes are keyed with a random key per process, so those
 * of an address and the time are unpredictable. */
static void seed(tn__queue *q)
{
  uint64_t any[3] = { (uint64_t)tn__now_ns(), (uint64_t)(uintptr_t)q, 0 }, s[2];
  tn__philox generator;
  s[0] = (uint64_t)q->spec->seed;
  s[1] = (uint64_t)q->spec->seed2;
  if (s[0] == 0 && s[1] == 0)
    for (int i = 0; i < 2; i++, any[2]++) s[i] = tn__hash(any, sizeof any);
  tn__philox_init(&generator, s[0], 0, s[1]);
  tn__philox_words_init(&q->store.words, &generator);
}

tn_status tn__queue_init(tn__queue *q, tn__queue_spec *spec, const char *what, const char *name, tn_error *err)
{
  *q = (tn__queue){ .what = what, .name = tn__strdup(name) };
  if (q->name == NULL) return tn__no_memory(err, what, sizeof *q);
  q->spec = tn__queue_spec_ref(spec);
  q->store.order = spec->kind == TN__QUEUE_PRIORITY ? TN__ORDER_PRIORITY : TN__ORDER_ARRIVAL;
  if (spec->kind == TN__QUEUE_RANDOM) {
    q->store.order = TN__ORDER_RANDOM;
    seed(q);
  }
  tn__waitable_init(&q->place, what);
  return TN_OK;
}

void tn__queue_fini(tn__queue *q)
{
  tn__queue_store_fini(&q->store);
  tn__waitable_fini(&q->place);
  tn__queue_spec_unref(q->spec);
  tn__strfree(q->name);
}

tn_status tn__queue_create(tn__queue_spec *spec, const char *name, tn__queue **out, tn_error *err)
{
  tn__queue *q = tn__alloc(sizeof *q);
  *out = NULL;
  if (q == NULL) return tn__no_memory(err, "a queue", sizeof *q);
  tn_status st = tn__queue_init(q, spec, "queue", name, err);
  if (st == TN_OK) *out = q;
  else tn__free(q, sizeof *q);
  return st;
}

void tn__queue_destroy(void *queue)
{
  tn__queue_fini(queue);
  tn__free(queue, sizeof(tn__queue));
}

/* ---- attempts, under the lock ---- */

static void end(tn__queue_attempt *a, tn__queue_end how, tn_status status)
{
  a->end = how;
  tn__attempt_serve(&a->base, status);
}

/* Elements that can be taken now. */
static int64_t available(const tn__queue *q)
{
  int64_t n = (int64_t)q->store.n, least = q->closed ? 0 : q->spec->min_after_dequeue;
  return n > least ? n - least : 0;
}

/* Takes out the elements that the attempt put in, except those that others have taken since. */
static void undo_put(tn__queue_attempt *a)
{
  tn__queue_store *s = &a->queue->store;
  if (a->list.n < a->asked) tn__queue_store_take_owned(s, a->number, &a->list);
  tn__queue_store_release(s, (size_t)a->list.n);
}

static void undo_take(tn__queue_attempt *a) { tn__queue_store_give_back(&a->queue->store, &a->list); }

/* The run functions return whether anything changed. */
static bool run_put(tn__queue_attempt *a)
{
  tn__queue *q = a->queue;
  if (q->closed) {
    undo_put(a);
    end(a, TN__QUEUE_CLOSED, TN_CANCELLED);
    return true;
  }
  bool changed = false;
  for (; a->list.n > 0 && (int64_t)q->store.n < q->spec->capacity; changed = true) {
    tn__queue_element *e = tn__queue_list_take(&a->list);
    e->owner = a->number;
    e->order = q->n_elements++;
    tn__queue_store_put(&q->store, e);
  }
  if (a->list.n > 0) return changed;
  end(a, TN__QUEUE_DONE, TN_OK);
  return true;
}

static bool run_close(tn__queue_attempt *a)
{
  bool again = a->queue->closed;
  a->queue->closed = true;
  end(a, again ? TN__QUEUE_CLOSED : TN__QUEUE_DONE, again ? TN_CANCELLED : TN_OK);
  return true;
}

static bool run_take(tn__queue_attempt *a)
{
  tn__queue *q = a->queue;
  int64_t n = available(q), missing = a->asked - a->list.n;
  if (q->closed && n < missing) {
    if (!a->up_to || n + a->list.n == 0) {
      undo_take(a);
      a->found = (int64_t)q->store.n;
      end(a, TN__QUEUE_TOO_FEW, TN_OUT_OF_RANGE);
      return true;
    }
    missing = n;
    a->asked = n + a->list.n;
  }
  for (int64_t i = 0; i < n && i < missing; i++) tn__queue_list_add(&a->list, tn__queue_store_take(&q->store));
  if (a->list.n < a->asked) return n > 0;
  tn__queue_store_release(&q->store, (size_t)a->asked);
  end(a, TN__QUEUE_DONE, TN_OK);
  return true;
}

static bool run(tn__queue_attempt *a)
{
  if (a->action == TN__QUEUE_TAKE) return run_take(a);
  return a->action == TN__QUEUE_PUT ? run_put(a) : run_close(a);
}

/* Serves a line up to the first attempt that has to wait. */
static bool serve_line(tn__line *line)
{
  bool changed = false;
  for (tn__attempt *a; (a = line->first) != NULL;) {
    if (!run((tn__queue_attempt *)a)) return changed;
    changed = true;
    if (line->first == a) break;
  }
  return changed;
}

void tn__queue_serve(tn__queue *q)
{
  bool changed = true;
  while (changed) {
    changed = serve_line(&q->takers);
    changed = serve_line(&q->putters) || changed;
  }
}

/* Reserves room for what the attempt will put in, so that serving it later cannot fail. */
static bool keep_room(tn__queue_attempt *a)
{
  a->number = ++a->queue->n_attempts;
  if (a->action == TN__QUEUE_PUT) a->asked = a->list.n;
  if (a->action != TN__QUEUE_PUT || tn__queue_store_reserve(&a->queue->store, (size_t)a->list.n)) return true;
  end(a, TN__QUEUE_NO_MEMORY, TN_RESOURCE_EXHAUSTED);
  return false;
}

void tn__queue_enter(tn__attempt *attempt)
{
  tn__queue_attempt *a = (tn__queue_attempt *)attempt;
  if (!keep_room(a)) return;
  tn__line_join(a->action == TN__QUEUE_TAKE ? &a->queue->takers : &a->queue->putters, attempt);
  tn__queue_serve(a->queue);
}

static void leave(tn__attempt *attempt)
{
  tn__queue_attempt *a = (tn__queue_attempt *)attempt;
  if (a->action == TN__QUEUE_PUT) undo_put(a);
  if (a->action == TN__QUEUE_TAKE) undo_take(a);
  a->end = TN__QUEUE_GONE;
  tn__queue_serve(a->queue);
}

/* ---- attempts, no lock held ---- */

void tn__queue_attempt_init(tn__queue_attempt *a, tn__queue *queue, tn_resource *resource, tn__queue_action action)
{
  *a = (tn__queue_attempt){ .queue = queue, .action = action };
  tn__attempt_init(&a->base, &queue->place, resource, leave);
}

void tn__queue_attempt_fini(tn__attempt *attempt)
{
  tn__queue_list_clear(&((tn__queue_attempt *)attempt)->list);
  tn__attempt_fini(attempt);
}

/* Whether the attempt can be served immediately and completely. */
static bool is_possible(const tn__queue_attempt *a)
{
  const tn__queue *q = a->queue;
  if (a->action == TN__QUEUE_TAKE)
    return q->takers.first == NULL && (q->closed || available(q) >= a->asked);
  if (q->putters.first != NULL) return false;
  return a->action == TN__QUEUE_CLOSE || q->closed || a->list.n <= q->spec->capacity - (int64_t)q->store.n;
}

bool tn__queue_attempt_now(tn__attempt *attempt)
{
  tn__queue_attempt *a = (tn__queue_attempt *)attempt;
  if (!is_possible(a)) return false;
  if (keep_room(a)) run(a);
  tn__queue_serve(a->queue);
  return true;
}

void tn__queue_give_back(tn__queue_attempt *a)
{
  tn__queue *q = a->queue;
  tn__waitable_lock(&q->place);
  if (tn__queue_store_reserve(&q->store, (size_t)a->list.n)) {
    undo_take(a);
    tn__queue_serve(q);
  } /* otherwise memory has run out and the elements are lost with the step */
  tn__waitable_unlock(&q->place);
}

int64_t tn__queue_size(tn__queue *q)
{
  tn__waitable_lock(&q->place);
  int64_t n = (int64_t)q->store.n;
  tn__waitable_unlock(&q->place);
  return n;
}

bool tn__queue_is_closed(tn__queue *q)
{
  tn__waitable_lock(&q->place);
  bool closed = q->closed;
  tn__waitable_unlock(&q->place);
  return closed;
}

void tn__queue_shut(tn__queue *q)
{
  tn__waitable_lock(&q->place);
  q->closed = true;
  while (q->putters.first != NULL) {
    tn__queue_attempt *a = (tn__queue_attempt *)q->putters.first;
    if (a->action == TN__QUEUE_PUT) undo_put(a);
    end(a, TN__QUEUE_SHUT, TN_CANCELLED);
  }
  tn__queue_serve(q);
  tn__waitable_unlock(&q->place);
}
