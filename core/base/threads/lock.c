/* SPDX-License-Identifier: Apache-2.0 */
/* With TN_DEBUG_LOCKS each thread records the ranks that it holds, in the order of locking. */
#define _GNU_SOURCE
#include <core/base/threads/lock.h>
#include <core/base/threads/thread.h>

#include <errno.h>
#include <time.h>

#if !defined(TN_DEBUG_LOCKS)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TN_DEBUG_LOCKS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TN_DEBUG_LOCKS 1
#endif
#endif
#endif

#ifdef TN_DEBUG_LOCKS
#undef NDEBUG
#endif
#include <assert.h>

/* ---- ranks ---- */

#ifdef TN_DEBUG_LOCKS
#define MAX_HELD 32 /* locks that a thread may hold at once */

static _Thread_local struct {
  int n;
  int ranks[MAX_HELD];
} held;

static void take_peer(int rank)
{
  assert(held.n < MAX_HELD);
  assert((held.n == 0 || held.ranks[held.n - 1] <= rank) && "locks are taken in rising rank (base/threads/lock.h)");
  held.ranks[held.n++] = rank;
}

static void take_rank(int rank)
{
  assert((held.n == 0 || held.ranks[held.n - 1] != rank) && "locks are taken in rising rank (base/threads/lock.h)");
  take_peer(rank);
}

/* Not always the last rank: a thread may lock A, lock B and then unlock A first. */
static void drop_rank(int rank)
{
  int i = held.n - 1;
  while (i >= 0 && held.ranks[i] != rank) i--;
  assert(i >= 0 && "a lock is given back by the thread that took it");
  held.n--;
  for (; i < held.n; i++) held.ranks[i] = held.ranks[i + 1];
}

static void set_owner(tn__mutex *m)
{
  m->owner = pthread_self();
  m->held = true;
}
static void clear_owner(tn__mutex *m) { m->held = false; }
#else
static inline void take_peer(int rank) { (void)rank; }
static inline void take_rank(int rank) { (void)rank; }
static inline void drop_rank(int rank) { (void)rank; }
static inline void set_owner(tn__mutex *m) { (void)m; }
static inline void clear_owner(tn__mutex *m) { (void)m; }
#endif

/* These calls fail only through a bug of the library. */
static inline void sure(int rc)
{
  assert(rc == 0);
  (void)rc;
}

/* ---- mutex ---- */

void tn__mutex_init(tn__mutex *m, const char *name, tn__rank rank) { *m = (tn__mutex)TN__MUTEX_INIT(name, rank); }

void tn__mutex_fini(tn__mutex *m) { sure(pthread_mutex_destroy(&m->mu)); }

void tn__mutex_lock(tn__mutex *m)
{
  take_rank(m->rank);
  sure(pthread_mutex_lock(&m->mu));
  set_owner(m);
}

void tn__mutex_lock_peer(tn__mutex *m)
{
  take_peer(m->rank);
  sure(pthread_mutex_lock(&m->mu));
  set_owner(m);
}

void tn__mutex_unlock(tn__mutex *m)
{
  tn__assert_held(m);
  clear_owner(m);
  sure(pthread_mutex_unlock(&m->mu));
  drop_rank(m->rank);
}

void tn__assert_held(tn__mutex *m)
{
#ifdef TN_DEBUG_LOCKS
  assert(m->held && pthread_equal(m->owner, pthread_self()));
#else
  (void)m;
#endif
}

/* ---- condition ----
 *
 * A condition wait is a cancellation point. A thread cancelled there would never release what it holds (a step, a place
 * in a queue, the mutex). So cancellation is held back during the wait and takes effect at the next cancellation point
 * in the program's own code. */

void tn__cond_init(tn__cond *c)
{
  pthread_condattr_t attr;
  sure(pthread_condattr_init(&attr));
  sure(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
  sure(pthread_cond_init(&c->cond, &attr));
  pthread_condattr_destroy(&attr);
}

void tn__cond_fini(tn__cond *c) { sure(pthread_cond_destroy(&c->cond)); }

void tn__cond_wait(tn__cond *c, tn__mutex *m)
{
  tn__assert_held(m);
  clear_owner(m);
  int state = tn__cancel_hold();
  sure(pthread_cond_wait(&c->cond, &m->mu));
  tn__cancel_restore(state);
  set_owner(m);
}

bool tn__cond_wait_until(tn__cond *c, tn__mutex *m, int64_t deadline_ns)
{
  if (deadline_ns < 0) deadline_ns = 0;
  struct timespec deadline = { (time_t)(deadline_ns / 1000000000), (long)(deadline_ns % 1000000000) };
  tn__assert_held(m);
  clear_owner(m);
  int state = tn__cancel_hold();
  int rc = pthread_cond_timedwait(&c->cond, &m->mu, &deadline);
  tn__cancel_restore(state);
  set_owner(m);
  assert(rc == 0 || rc == ETIMEDOUT);
  return rc != ETIMEDOUT;
}

void tn__cond_signal(tn__cond *c) { sure(pthread_cond_signal(&c->cond)); }

void tn__cond_broadcast(tn__cond *c) { sure(pthread_cond_broadcast(&c->cond)); }

int64_t tn__now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- readers and writers ---- */

void tn__rwlock_init(tn__rwlock *l, const char *name, tn__rank rank)
{
  pthread_rwlockattr_t attr;
  sure(pthread_rwlockattr_init(&attr));
#if defined(__GLIBC__)
  /* A stream of readers must not starve a writer. No thread takes a read lock recursively: the ranks forbid it. */
  pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
  sure(pthread_rwlock_init(&l->rw, &attr));
  pthread_rwlockattr_destroy(&attr);
  l->name = name;
  l->rank = rank;
}

void tn__rwlock_fini(tn__rwlock *l) { sure(pthread_rwlock_destroy(&l->rw)); }

void tn__rwlock_read(tn__rwlock *l)
{
  take_rank(l->rank);
  sure(pthread_rwlock_rdlock(&l->rw));
}

void tn__rwlock_write(tn__rwlock *l)
{
  take_rank(l->rank);
  sure(pthread_rwlock_wrlock(&l->rw));
}

void tn__rwlock_unlock(tn__rwlock *l)
{
  sure(pthread_rwlock_unlock(&l->rw));
  drop_rank(l->rank);
}
