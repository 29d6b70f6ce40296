/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellations.
 *
 * Protocol: `cancelled` is set once, under mu. The thread that sets it then takes the callbacks one
 * by one from the list and calls each without the lock, with its key in `running`. Deregistering
 * removes a callback that is still listed, or waits until it has ended if it is running; on the
 * thread that runs the callbacks, it does not wait. A child registers a callback with its parent
 * that cancels the child. While it runs, that callback has a reference to the child, since a
 * callback of the child may release it. */
#include <core/base/alloc.h>
#include <core/exec/step/cancellation.h>

/* Called at most once. The list owns it; the thread that cancels takes it from the list and frees
 * it. */
typedef struct tn__cancel_callback {
  struct tn__cancel_callback *next;
  uint64_t key;
  void (*fn)(void *user);
  void *user;
} tn__cancel_callback;

/* The callback of a child, registered with its parent. It must not revive a child whose last
 * reference is gone. */
static void cancel_child(void *user)
{
  tn_cancellation *c = user;
  uint32_t refs = atomic_load(&c->refs);
  do {
    if (refs == 0) return; /* tn_cancellation_unref is waiting, in deregister, for this callback to end */
  } while (!atomic_compare_exchange_weak(&c->refs, &refs, refs + 1));
  tn_cancellation_cancel(c);
  tn_cancellation_unref(c);
}

tn_status tn_cancellation_create(tn_cancellation *parent, tn_cancellation **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_cancellation_create: out is NULL");
  *out = NULL;
  tn_cancellation *c = tn__zalloc(sizeof *c);
  if (c == NULL) return tn__no_memory(err, "cancellation", sizeof *c);
  atomic_init(&c->refs, 1);
  tn__mutex_init(&c->mu, "cancellation", TN_RANK_CANCEL);
  tn__cond_init(&c->ended);
  c->parent = tn_cancellation_ref(parent);
  if (parent != NULL) {
    c->parent_key = tn_cancellation_register(parent, cancel_child, c); /* 0: cancelled, or no memory */
    if (c->parent_key == 0 && tn_cancellation_is_cancelled(parent)) {
      atomic_store(&c->cancelled, atomic_load(&parent->cancelled));
    } else if (c->parent_key == 0) {
      tn_cancellation_unref(c);
      return tn__no_memory(err, "cancellation", sizeof(tn__cancel_callback));
    }
  }
  *out = c;
  return TN_OK;
}

tn_cancellation *tn_cancellation_ref(tn_cancellation *c)
{
  if (c != NULL) atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}

void tn_cancellation_unref(tn_cancellation *c)
{
  if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  if (c->parent_key != 0) tn_cancellation_deregister(c->parent, c->parent_key);
  tn_cancellation_unref(c->parent);
  while (c->callbacks != NULL) {
    tn__cancel_callback *next = c->callbacks->next;
    tn__free(c->callbacks, sizeof *c->callbacks);
    c->callbacks = next;
  }
  tn__cond_fini(&c->ended);
  tn__mutex_fini(&c->mu);
  tn__free(c, sizeof *c);
}

/* The lock is not held during a callback, which may register, deregister, or cancel again. */
void tn_cancellation_cancel(tn_cancellation *c)
{
  if (c == NULL) return;
  tn__mutex_lock(&c->mu);
  bool first = atomic_load(&c->cancelled) == 0;
  if (first) atomic_store(&c->cancelled, tn__now_ns());
  if (first) c->runner = pthread_self();
  while (first && c->callbacks != NULL) {
    tn__cancel_callback *cb = c->callbacks;
    c->callbacks = cb->next;
    c->running = cb->key;
    tn__mutex_unlock(&c->mu);
    cb->fn(cb->user);
    tn__free(cb, sizeof *cb);
    tn__mutex_lock(&c->mu);
    c->running = 0;
    tn__cond_broadcast(&c->ended);
  }
  tn__mutex_unlock(&c->mu);
}

tn_bool tn_cancellation_is_cancelled(const tn_cancellation *c)
{
  return c != NULL && atomic_load_explicit(&c->cancelled, memory_order_acquire) != 0;
}

uint64_t tn_cancellation_register(tn_cancellation *c, void (*callback)(void *user), void *user)
{
  if (c == NULL || callback == NULL) return 0;
  tn__cancel_callback *cb = tn__alloc(sizeof *cb);
  if (cb == NULL) return 0;
  tn__mutex_lock(&c->mu);
  uint64_t key = 0;
  if (atomic_load(&c->cancelled) == 0) {
    key = ++c->next_key;
    *cb = (tn__cancel_callback){ c->callbacks, key, callback, user };
    c->callbacks = cb;
    cb = NULL;
  }
  tn__mutex_unlock(&c->mu);
  tn__free(cb, sizeof *cb);
  return key;
}

/* True: the callback was removed before it ran. Else it ran, or runs; with `wait` it has ended
 * unless this thread is the one that runs it. */
static bool deregister(tn_cancellation *c, uint64_t key, bool wait)
{
  if (c == NULL || key == 0) return false;
  tn__mutex_lock(&c->mu);
  tn__cancel_callback **at = &c->callbacks;
  while (*at != NULL && (*at)->key != key) at = &(*at)->next;
  tn__cancel_callback *found = *at;
  if (found != NULL) *at = found->next;
  while (found == NULL && wait && c->running == key && !pthread_equal(c->runner, pthread_self()))
    tn__cond_wait(&c->ended, &c->mu);
  tn__mutex_unlock(&c->mu);
  tn__free(found, sizeof *found);
  return found != NULL;
}

tn_bool tn_cancellation_deregister(tn_cancellation *c, uint64_t key) { return deregister(c, key, true); }
tn_bool tn_cancellation_try_deregister(tn_cancellation *c, uint64_t key) { return deregister(c, key, false); }
