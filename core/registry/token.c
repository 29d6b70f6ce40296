/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the registry, its mutex and its loader token. registry_internal.h describes both.
 *
 * The token is a lock that plugin code may run under. It has an owner, so that a plugin that requests another plugin
 * while it is being loaded gets an error instead of a deadlock. A thread that owns it cannot be cancelled, since the
 * token would never be given back. */
#include <core/base/threads/thread.h>
#include <core/registry/registry_internal.h>

tn__registry tn__reg = { .mu = TN__MUTEX_INIT("registry", TN_RANK_REGISTRY) };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t token_owner; /* valid while tn__reg.token; guarded by mu, as the next */
static int token_cancel_state; /* of the owner, before it took the token */

/* A child process has one thread, the one that forked. Holding the mutex across fork keeps the child's lists
 * consistent. If another thread held the token, it is never given back in the child: requests for it fail from then on
 * instead of blocking (P-72). */
static void before_fork(void) { pthread_mutex_lock(&tn__reg.mu.mu); }
static void in_parent(void) { pthread_mutex_unlock(&tn__reg.mu.mu); }

static void in_child(void)
{
  tn__reg.orphaned = tn__reg.orphaned || (tn__reg.token && !pthread_equal(token_owner, pthread_self()));
  pthread_mutex_unlock(&tn__reg.mu.mu);
  tn__cond_init(&tn__reg.cond); /* other threads may have waited on it */
}

static void start(void)
{
  tn__cond_init(&tn__reg.cond);
  pthread_atfork(before_fork, in_parent, in_child);
}

void tn__reg_lock(void)
{
  pthread_once(&once, start);
  tn__mutex_lock(&tn__reg.mu);
}

void tn__reg_unlock(void) { tn__mutex_unlock(&tn__reg.mu); }

bool tn__token_mine_locked(void)
{
  tn__assert_held(&tn__reg.mu);
  return tn__reg.token && pthread_equal(token_owner, pthread_self());
}

tn_status tn__token_take(const char *what, tn_error *err)
{
  tn_status status = TN_OK;
  tn__reg_lock();
  if (tn__token_mine_locked()) {
    status = tn_error_set(err, TN_FAILED_PRECONDITION,
                          "%s is not allowed from a plugin's constructor, entry, init or shutdown", what);
  } else if (tn__reg.orphaned) {
    status = tn_error_set(
        err, TN_FAILED_PRECONDITION,
        "%s is not possible: another thread was loading a plugin when this process was forked; exec a new program",
        what);
  } else {
    while (tn__reg.token) tn__cond_wait(&tn__reg.cond, &tn__reg.mu);
    tn__reg.token = true;
    token_owner = pthread_self();
    token_cancel_state = tn__cancel_hold();
  }
  tn__reg_unlock();
  return status;
}

void tn__token_give(void)
{
  int state = token_cancel_state; /* the next owner overwrites it */
  tn__reg_lock();
  tn__reg.token = false;
  tn__cond_broadcast(&tn__reg.cond);
  tn__reg_unlock();
  tn__cancel_restore(state);
}
