/* SPDX-License-Identifier: Apache-2.0 */
/* The live sessions of the process: pairs of name and version, sessions of one factory, fork. */
#include <core/exec/kit_hooks.h>
#include <core/host/host.h>
#include <core/session/session_internal.h>

static tn__mutex list_mu = TN__MUTEX_INIT("live sessions", TN_RANK_SESSION_LIST);
static tn_session *list; /* guarded by list_mu */
static _Atomic uint32_t forked;
static _Atomic uint32_t existed, creating; /* whether there was a session; calls that make one */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A process that forks before it has sessions may have them in the child. */
static void in_child(void)
{
  if (atomic_load(&existed) != 0 || atomic_load(&creating) != 0) atomic_store(&forked, 1);
}

static tn_status reset_sessions_of(const tn_session_factory *self, const char *const *containers, size_t n,
                                   uint32_t flags, tn_error *err);

static void install(void)
{
  pthread_atfork(NULL, NULL, in_child);
  tn__kit_reset_sessions = reset_sessions_of;
}

bool tn__forked(void) { return atomic_load_explicit(&forked, memory_order_relaxed) != 0; }

void tn__live_begin(void)
{
  pthread_once(&once, install);
  atomic_fetch_add(&creating, 1);
}

void tn__live_end(tn_status status)
{
  if (status == TN_OK) atomic_store(&existed, 1);
  atomic_fetch_sub(&creating, 1);
}

/* ---- sessions ---- */

tn_status tn__live_add(tn_session *session, tn_error *err)
{
  tn__containers *set = session->isolated ? tn__containers_create() : tn__containers_ref(tn__factory_containers(session->factory));
  if (set == NULL) return tn__no_memory(err, "containers", 0);
  tn_status st = TN_OK;
  tn__mutex_lock(&list_mu);
  for (const tn_session *s = list; s != NULL && session->name[0] != 0; s = s->next)
    if (s->version == session->version && __builtin_strcmp(s->name, session->name) == 0)
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "a live session has the name '%s' and version %lld already",
                        session->name, (long long)session->version); /* S-LIFE-15 */
  /* In the moment in which it becomes one that a reset finds: wholly before it, or wholly after (S-RST-14). */
  if (st == TN_OK) st = tn__container_view_create(set, &session->containers, err);
  if (st == TN_OK) {
    session->next = list;
    if (list != NULL) list->prev = session;
    list = session;
  }
  tn__mutex_unlock(&list_mu);
  tn__containers_unref(set);
  return st;
}

void tn__live_remove(tn_session *session)
{
  tn__mutex_lock(&list_mu);
  if (session->prev != NULL) session->prev->next = session->next;
  else if (list == session) list = session->next;
  if (session->next != NULL) session->next->prev = session->prev;
  session->prev = session->next = NULL;
  tn__mutex_unlock(&list_mu);
}

/* Marks all sessions of a factory closed, and detaches the containers; what a runtime wants to be told is told outside the
 * lock, session by session, while a count keeps each alive. */
static tn_status reset_sessions_of(const tn_session_factory *self, const char *const *containers, size_t n,
                                   uint32_t flags, tn_error *err)
{
  tn__factory *factory = tn__factory_by_self(self);
  tn__containers *set = factory == NULL ? NULL : tn__factory_slot(factory);
  tn__container *old = NULL;
  tn_session *told = NULL;
  tn_status st = TN_OK;
  tn__mutex_lock(&list_mu);
  for (tn_session *s = list; s != NULL; s = s->next) {
    if (s->self != self || !tn__session_mark_closed(s)) continue;
    tn__gate_enter(&s->calls); /* destroy takes the session off this list before it waits */
    s->next_told = told;
    told = s;
  }
  if (set != NULL && (flags & TN_RESET_ALL) != 0) tn__containers_detach_all(set, &old);
  else if (set != NULL) st = tn__containers_detach(set, containers, n, &old, err);
  tn__mutex_unlock(&list_mu);
  while (told != NULL) {
    tn_session *next = told->next_told;
    tn__steps_tell(told);
    tn__session_leave(told);
    told = next;
  }
  tn__containers_leave_all(old);
  if (factory != NULL) tn__factory_release(factory);
  return st;
}

static tn_status check_reset(const tn_session_options *options, const char *const *containers, size_t n, uint32_t flags,
                             tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: options is NULL");
  if (containers == NULL && n > 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: containers is NULL");
  for (size_t i = 0; i < n; i++)
    if (containers[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: container %zu is NULL", i);
  if ((flags & ~(uint32_t)TN_RESET_ALL) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: unknown flags %#x", flags);
  return tn__forked() ? tn__session_forked(err) : TN_OK;
}

static tn_status reset_runtime(const tn_session_options *options, const char *const *containers, size_t n, uint32_t flags,
                               tn_bool *found, tn_error *err)
{
  tn__factory *factory;
  tn_status st = tn__registry_acquire(options, &factory, err);
  if (st != TN_OK) return st;
  const tn_session_factory *slots = tn__factory_vtable(factory);
  if (slots->reset == NULL) { /* S-RST-12 */
    st = tn_error_set(err, TN_UNIMPLEMENTED, "runtime '%s' has no reset", tn__factory_name(factory));
  } else {
    for (size_t i = 0; found != NULL && i < n; i++)
      found[i] = tn__containers_has(tn__factory_slot(factory), containers[i]);
    st = slots->reset(tn__factory_self(factory), options, containers, n, flags, err);
    st = tn__factory_status(factory, "reset", st, err);
  }
  tn__factory_release(factory);
  return st;
}

tn_status tn_reset_containers(const tn_session_options *options, const char *const *containers, size_t n, uint32_t flags,
                              tn_bool *found, tn_error *err)
{
  tn_status st = check_reset(options, containers, n, flags, err);
  if (st != TN_OK) return st;
  tn__host_install();
  tn__live_begin(); /* the runtime's reset calls what it installs */
  st = reset_runtime(options, containers, n, flags, found, err);
  tn__live_end(TN_CANCELLED);
  return st;
}

tn_status tn_reset(const tn_session_options *options, const char *const *containers, size_t n, tn_error *err)
{
  return tn_reset_containers(options, containers, n, 0, NULL, err);
}
