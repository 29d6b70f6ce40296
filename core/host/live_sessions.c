/* SPDX-License-Identifier: Apache-2.0 */
/* The live sessions of the process: unique names and versions, a reset of all sessions of a factory, detection of
 * fork. */
#include <core/kit/hooks.h>
#include <core/host/host.h>
#include <pthread.h>
#include <string.h>

static tn__mutex list_mu = TN__MUTEX_INIT("live sessions", TN_RANK_SESSION_LIST);
static tn__session_base *list; /* guarded by list_mu */
_Atomic uint32_t tn__fork_seen;
static _Atomic uint32_t existed;  /* 1: there has been a session */
static _Atomic uint32_t creating; /* calls in progress that make one */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* If the process forks before it has sessions, the child may use them. */
static void in_child(void)
{
  if (atomic_load(&existed) != 0 || atomic_load(&creating) != 0) atomic_store(&tn__fork_seen, 1);
}

static tn_status reset_sessions_of(const tn_session_factory *self, const char *const *containers, size_t n,
                                   uint32_t flags, tn_error *err);

static void install(void)
{
  pthread_atfork(NULL, NULL, in_child);
  tn__kit_reset_sessions = reset_sessions_of;
}

tn_status tn__session_forked(tn_error *err)
{
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "sessions cannot be used in a process forked after one existed; exec a new program");
}

void tn__live_sessions_begin(void)
{
  pthread_once(&once, install);
  atomic_fetch_add(&creating, 1);
}

void tn__live_sessions_end(tn_status status)
{
  if (status == TN_OK) atomic_store(&existed, 1);
  atomic_fetch_sub(&creating, 1);
}

/* ---- sessions ---- */

tn_status tn__live_sessions_add(tn__session_base *on, tn_error *err)
{
  tn__containers *set =
      on->isolated ? tn__containers_create() : tn__containers_ref(tn__factory_containers(on->factory));
  if (set == NULL) return tn__no_memory(err, "containers", 0);
  tn_status st = TN_OK;
  tn__mutex_lock(&list_mu);
  for (const tn__session_base *other = list; other != NULL && on->name[0] != 0; other = other->next)
    if (other->version == on->version && strcmp(other->name, on->name) == 0)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "a live session has the name '%s' and version %lld already",
                        on->name, (long long)on->version); /* S-LIFE-15 */
  /* Under list_mu, so a concurrent reset sees this session either completely or not at all (S-RST-14). */
  if (st == TN_OK) st = tn__container_view_create(set, &on->containers, err);
  if (st == TN_OK) tn__container_view_set_folders(on->containers, &on->folders);
  if (st == TN_OK) {
    on->next = list;
    if (list != NULL) list->prev = on;
    list = on;
    on->listed = true;
  }
  tn__mutex_unlock(&list_mu);
  tn__containers_unref(set);
  return st;
}

void tn__live_sessions_remove(tn__session_base *on)
{
  tn__mutex_lock(&list_mu);
  if (on->listed) {
    if (on->prev != NULL) on->prev->next = on->next;
    else list = on->next;
    if (on->next != NULL) on->next->prev = on->prev;
    on->prev = on->next = NULL;
    on->listed = false;
  }
  tn__mutex_unlock(&list_mu);
}

/* Marks all sessions of a factory closed and detaches the containers under the lock; then cancels the steps of each
 * session without the lock. */
static tn_status reset_sessions_of(const tn_session_factory *self, const char *const *containers, size_t n,
                                   uint32_t flags, tn_error *err)
{
  if (tn__forked()) return tn__session_forked(err);
  tn__factory *factory = tn__factory_by_self(self);
  if (factory == NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "tn_kit_reset: the factory is not registered: pass the self of reset");
  tn__containers *set = tn__factory_slot(factory); /* NULL: no session has used one */
  tn__container *old = NULL;
  tn__session_base *shut = NULL;
  tn_status st = TN_OK;
  tn__mutex_lock(&list_mu);
  for (tn__session_base *on = list; on != NULL; on = on->next) {
    if (on->self != self || !on->kind->shut(on)) continue;
    on->next_shut = shut;
    shut = on;
  }
  if (set != NULL && (flags & TN_RESET_ALL) != 0) tn__containers_detach_all(set, &old);
  else if (set != NULL) st = tn__containers_detach(set, containers, n, &old, err);
  tn__mutex_unlock(&list_mu);
  while (shut != NULL) {
    tn__session_base *next = shut->next_shut;
    shut->kind->tell(shut);
    shut = next;
  }
  tn__containers_leave_all(old);
  tn__factory_release(factory);
  return st;
}
