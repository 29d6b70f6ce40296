/* SPDX-License-Identifier: Apache-2.0 */
/* Default sessions: one stack per thread.
 *
 * A thread's stack is created when the thread first enters a session, and is freed when the thread ends. Each stack
 * has a lock of its own. Only its thread takes that lock, except when a session is removed from all stacks: those
 * are found in a list. A session counts its places on stacks, so destroying a session that was never entered reads
 * one word. */
#include <core/session/session_internal.h>

typedef struct place {
  tn_session *session;
  bool opened; /* the place lasts until the session is closed; otherwise until the session is left */
} place;

typedef struct stack {
  tn__mutex mu; /* guards the places; taken inside list_mu */
  place *places;
  size_t n, room;
  struct stack *prev, *next; /* guarded by list_mu */
} stack;

static _Thread_local stack *mine; /* owned by the thread; NULL: none yet */
static tn__mutex list_mu = TN__MUTEX_INIT("stacks of default sessions", TN_RANK_DEFAULT_LIST);
static stack *list; /* guarded by list_mu */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;  /* only for its destructor, which frees the stack when the thread ends */
static int key_error = -1; /* 0: the key exists */

/* ---- the stack of a thread ---- */

/* The thread ends: sessions are no default sessions of it any more. */
static void end_thread(void *its)
{
  stack *s = its;
  if (tn__forked()) return; /* a thread that fork() did not copy may hold the locks */
  tn__mutex_lock(&list_mu); /* a destroyer takes list_mu, so a session is not freed before its count is down */
  tn__mutex_lock(&s->mu);
  for (size_t i = 0; i < s->n; i++) atomic_fetch_sub(&s->places[i].session->on_stacks, 1);
  tn__mutex_unlock(&s->mu);
  if (s->prev != NULL) s->prev->next = s->next;
  else list = s->next;
  if (s->next != NULL) s->next->prev = s->prev;
  tn__mutex_unlock(&list_mu);
  mine = NULL;
  tn__mutex_fini(&s->mu);
  tn__free(s->places, s->room * sizeof *s->places);
  tn__free(s, sizeof *s);
}

static void make_key(void) { key_error = pthread_key_create(&key, end_thread); }

/* Threads that end after the library was unloaded must not call into it. */
static __attribute__((destructor)) void unload(void)
{
  if (key_error == 0) pthread_key_delete(key);
}

/* Makes the calling thread's stack at its first use, and adds it to the list. */
static tn_status make_mine(tn_error *err)
{
  if (mine != NULL) return TN_OK;
  pthread_once(&key_once, make_key);
  stack *s = key_error == 0 ? tn__zalloc(sizeof *s) : NULL;
  if (s == NULL || pthread_setspecific(key, s) != 0) {
    tn__free(s, sizeof *s);
    return tn__no_memory(err, "stack of default sessions", sizeof *s);
  }
  tn__mutex_init(&s->mu, "default sessions of a thread", TN_RANK_DEFAULT_STACK);
  tn__mutex_lock(&list_mu);
  s->next = list;
  if (list != NULL) list->prev = s;
  list = s;
  tn__mutex_unlock(&list_mu);
  mine = s;
  return TN_OK;
}

/* ---- entering and leaving ---- */

tn_status tn__default_push(tn_session *session, bool opened, tn_error *err)
{
  tn_status st = make_mine(err);
  if (st != TN_OK) return st;
  stack *s = mine;
  tn__mutex_lock(&s->mu);
  bool room = tn__grow((void **)&s->places, &s->room, s->n + 1, sizeof *s->places);
  if (room) {
    s->places[s->n++] = (place){ session, opened };
    atomic_fetch_add(&session->on_stacks, 1);
  }
  tn__mutex_unlock(&s->mu);
  return room ? TN_OK : tn__no_memory(err, "stack of default sessions", (s->n + 1) * sizeof *s->places);
}

tn_status tn_session_enter_default(tn_session *session, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_enter_default: session is NULL");
  return tn__forked() ? tn__session_forked(err) : tn__default_push(session, false, err);
}

/* Reports why `session` cannot be left. The thread's stack is locked. `session` is only compared: it may have been
 * freed. */
static tn_status cannot_leave(const stack *s, const tn_session *session, tn_error *err)
{
  size_t i = s == NULL ? 0 : s->n;
  while (i > 0 && s->places[i - 1].session != session) i--;
  if (i == 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the session is not among the default sessions of this thread, of which there are %zu",
                        s == NULL ? (size_t)0 : s->n);
  if (s->places[i - 1].opened)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "the session was opened as default session and remains one until tn_session_close");
  return tn_error_set(err, TN_FAILED_PRECONDITION,
                      "the session is not the innermost default session of this thread: %zu that %s entered after it "
                      "must be left first", s->n - i, s->n - i == 1 ? "was" : "were");
}

tn_status tn_session_leave_default(tn_session *session, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_leave_default: session is NULL");
  if (tn__forked()) return tn__session_forked(err);
  stack *s = mine;
  if (s == NULL) return cannot_leave(NULL, session, err);
  tn__mutex_lock(&s->mu);
  place *top = s->n == 0 ? NULL : &s->places[s->n - 1];
  bool can = top != NULL && top->session == session && !top->opened;
  tn_status st = can ? TN_OK : cannot_leave(s, session, err);
  if (can) {
    s->n--;
    atomic_fetch_sub(&session->on_stacks, 1);
  }
  tn__mutex_unlock(&s->mu);
  return st;
}

tn_session *tn_session_default(void)
{
  stack *s = mine;
  if (s == NULL || tn__forked()) return NULL;
  tn__mutex_lock(&s->mu);
  tn_session *session = s->n == 0 ? NULL : s->places[s->n - 1].session;
  tn__mutex_unlock(&s->mu);
  return session;
}

/* The stack's lock keeps the session alive until it is entered; after that the counted call does. */
tn_status tn__default_enter(tn_session **out, tn_error *err)
{
  stack *s = mine;
  tn_status st = TN_OK;
  *out = NULL;
  if (tn__forked()) return tn__session_forked(err);
  if (s != NULL) {
    tn__mutex_lock(&s->mu);
    if (s->n > 0) {
      *out = s->places[s->n - 1].session;
      st = tn__session_enter(*out, err);
    }
    tn__mutex_unlock(&s->mu);
  }
  if (*out != NULL) return st;
  return tn_error_set(err, TN_FAILED_PRECONDITION, /* S-DEF-07 */
                      "no session was given and this thread has no default session: give one, or make one the default "
                      "by tn_session_enter_default, TN_SCOPED_SESSION or tn_session_open_interactive");
}

/* Both locks are taken: list_mu keeps the stacks alive, and a stack's lock excludes its thread. */
void tn__default_forget(tn_session *session, bool opened_only)
{
  if (atomic_load(&session->on_stacks) == 0) return;
  tn__mutex_lock(&list_mu);
  for (stack *s = list; s != NULL; s = s->next) {
    tn__mutex_lock(&s->mu);
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
      bool remove = s->places[i].session == session && (s->places[i].opened || !opened_only);
      if (remove) atomic_fetch_sub(&session->on_stacks, 1);
      else s->places[kept++] = s->places[i];
    }
    s->n = kept;
    tn__mutex_unlock(&s->mu);
  }
  tn__mutex_unlock(&list_mu);
}
