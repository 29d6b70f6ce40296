/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: lists of the handles that a thread made. They belong to the thread, and only it uses
 * their lists. All scopes of the process are also in a list, so that they can forget a session that
 * is destroyed. */
#include <core/eager/scope.h>
#include <core/eager/slots.h>

#include <stdlib.h>

typedef struct tn__eager_scope {
  struct tn__eager_scope *around;   /* of the thread */
  _Atomic(const tn_eager_session *) session; /* NULL: it was destroyed */
  struct tn__eager_scope *prev, *next; /* all of the process, guarded by all_mu */
  uint64_t *ids;
  size_t n, room;
} scope;

static _Thread_local scope *innermost TN__THREAD_WORD;
static tn__mutex all_mu = TN__MUTEX_INIT("eager scopes", TN_RANK_DEFAULT_STACK);
static scope *all; /* guarded by all_mu */
static pthread_key_t at_exit; /* only for its destructor, which frees the scopes of a thread that ends */
static bool has_exit;         /* the key exists */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void unlist(scope *sc)
{
  tn__mutex_lock(&all_mu);
  if (sc->prev != NULL) sc->prev->next = sc->next;
  else all = sc->next;
  if (sc->next != NULL) sc->next->prev = sc->prev;
  tn__mutex_unlock(&all_mu);
}

static void scope_free(scope *sc)
{
  unlist(sc);
  tn__free(sc->ids, sc->room * sizeof *sc->ids);
  tn__free(sc, sizeof *sc);
}

/* A thread ends with open scopes: frees them, and keeps the handles in them. */
static void thread_ends(void *unused)
{
  (void)unused;
  while (innermost != NULL) {
    scope *around = innermost->around;
    scope_free(innermost);
    innermost = around;
  }
}

static void make_key(void) { has_exit = pthread_key_create(&at_exit, thread_ends) == 0; }

void tn__eager_scopes_forget(tn_eager_session *s)
{
  tn__mutex_lock(&all_mu);
  for (scope *sc = all; sc != NULL; sc = sc->next)
    if (atomic_load(&sc->session) == s) atomic_store(&sc->session, NULL);
  tn__mutex_unlock(&all_mu);
}

/* The thread's innermost scope in the session; *before: the pointer to it. */
static scope *find(const tn_eager_session *s, scope ***before)
{
  scope **at = &innermost;
  while (*at != NULL && atomic_load_explicit(&(*at)->session, memory_order_relaxed) != s) at = &(*at)->around;
  if (before != NULL) *before = at;
  return *at;
}

tn_status tn__eager_scope_room(const tn_eager_session *s, size_t n, tn_error *err)
{
  if (__builtin_expect(innermost == NULL, 1)) return TN_OK;
  scope *sc = find(s, NULL);
  if (sc == NULL || tn__grow((void **)&sc->ids, &sc->room, sc->n + n, sizeof *sc->ids)) return TN_OK;
  return tn__no_memory(err, "an eager scope", n * sizeof *sc->ids);
}

/* tn__eager_scope_room has reserved space. */
void tn__eager_scope_note(const tn_eager_session *s, const tn_eager_handle *handles, size_t n)
{
  if (__builtin_expect(innermost == NULL, 1)) return;
  scope *sc = find(s, NULL);
  for (size_t i = 0; sc != NULL && i < n; i++) sc->ids[sc->n++] = handles[i].id;
}

/* Opens a scope inside of the thread's innermost one. */
static tn_status push(tn_eager_session *s, tn_error *err)
{
  pthread_once(&once, make_key);
  scope *sc = tn__zalloc(sizeof *sc);
  if (sc == NULL) return tn__no_memory(err, "an eager scope", sizeof *sc);
  if (has_exit && pthread_getspecific(at_exit) == NULL) pthread_setspecific(at_exit, &innermost);
  atomic_init(&sc->session, s);
  sc->around = innermost;
  innermost = sc;
  tn__mutex_lock(&all_mu);
  sc->next = all;
  if (all != NULL) all->prev = sc;
  all = sc;
  tn__mutex_unlock(&all_mu);
  return TN_OK;
}

tn_status tn_eager_scope_push(tn_eager_session *s, tn_error *err)
{
  tn__error_reset(err);
  if (s == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_scope_push: session is NULL");
  tn__eager_frame frame;
  uint32_t thread = tn__thread_number();
  tn_status st = tn__eager_enter(s, &frame, thread, err);
  if (st != TN_OK) return st;
  st = push(s, err);
  tn__eager_leave(s, &frame, thread);
  return st;
}

/* Whether a handle is valid now. */
static bool is_handle(tn_eager_session *s, tn_eager_handle h)
{
  tn__eager_slot *slot;
  if (tn__eager_pin(s, h, &slot, NULL) != TN_OK) return false;
  tn__eager_unpin(s, slot);
  return true;
}

static int by_id(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* Binary search. */
static bool is_among(const uint64_t *sorted, size_t n, uint64_t id)
{
  size_t low = 0;
  while (n > 0) {
    size_t half = n / 2;
    if (sorted[low + half] == id) return true;
    if (sorted[low + half] < id) {
      low += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return false;
}

/* Allocates the sorted list of kept handles, and room for them in the enclosing scope, which takes them over. */
static tn_status make_room(tn_eager_session *s, scope *sc, const tn_eager_handle *keep, size_t n, scope **outer,
                           uint64_t **sorted, tn_error *err)
{
  *outer = sc->around;
  while (*outer != NULL && atomic_load_explicit(&(*outer)->session, memory_order_relaxed) != s)
    *outer = (*outer)->around;
  *sorted = n == 0 ? NULL : tn__alloc_array(n, sizeof **sorted);
  if ((n > 0 && *sorted == NULL) ||
      (*outer != NULL && n > 0 &&
       !tn__grow((void **)&(*outer)->ids, &(*outer)->room, (*outer)->n + n, sizeof *sc->ids))) {
    tn__free(*sorted, n * sizeof **sorted);
    return tn__no_memory(err, "an eager scope", n * sizeof **sorted);
  }
  for (size_t i = 0; i < n; i++) (*sorted)[i] = keep[i].id;
  if (n > 1) qsort(*sorted, n, sizeof **sorted, by_id);
  return TN_OK;
}

/* Handles that are kept pass to the enclosing scope of the session, if there is one. After an error
 * the scope stays open. */
tn_status tn_eager_scope_pop(tn_eager_session *s, const tn_eager_handle *keep, size_t n, tn_error *err)
{
  scope **at, *outer;
  uint64_t *sorted;
  tn__error_reset(err);
  if (s == NULL || (keep == NULL && n > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_scope_pop: %s is NULL", s == NULL ? "session" : "keep");
  if (tn__forked()) return tn__eager_closed(s, err);
  scope *sc = find(s, &at);
  if (sc == NULL)
    return tn_error_set(err, TN_FAILED_PRECONDITION, "this thread has no open scope in the eager session");
  bool open = atomic_load(&s->ending) == 0;
  for (size_t i = 0; open && i < n; i++)
    if (!is_handle(s, keep[i])) return tn__eager_bad_handle(s, keep[i], err);
  tn_status st = make_room(s, sc, keep, n, &outer, &sorted, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i < sc->n; i++) {
    if (!is_among(sorted, n, sc->ids[i])) tn_eager_release(s, (tn_eager_handle){ sc->ids[i] }, NULL);
    else if (outer != NULL) outer->ids[outer->n++] = sc->ids[i];
  }
  tn__free(sorted, n * sizeof *sorted);
  *at = sc->around;
  scope_free(sc);
  return TN_OK;
}
