/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: how they are started, called and joined, and how the cost of a call is measured.
 *
 * The life of a worker: it sleeps until it gets a seat in a crew; works there until the crew has no
 * more work, or other crews need workers; then takes the next seat for which a crew is waiting, or
 * sleeps again. Seats and the list of waiting crews are changed under the pool's lock. A worker's
 * own lock guards only the seat that it is given.
 *
 * Order of locks: the pool's lock, then a worker's. */
#define _GNU_SOURCE
#include <core/pool/pool_internal.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#define STACK_BYTES ((size_t)8 << 20) /* of address space; the default of some systems is much smaller */
#define TURN_NS 2000000               /* a worker stays this long in a busy crew while other crews wait for workers */
#define NO_THREADS_NS 1000000000      /* after a thread could not be started: time until the next attempt */
#define FIRST_WAKE_NS 20000           /* estimates before anything is measured */
#define FIRST_CALL_NS 3000
#define LEAST_WAKE_NS 2000            /* tn__pool_declined does not lower the estimate below this */
#define LEAST_NS 500                  /* limits of a measured estimate: more than MOST_NS is due to a busy machine, */
#define MOST_NS 200000                /* not to a slow wake-up */

static _Thread_local tn__worker *this_worker; /* NULL: this thread is no worker */

uint32_t tn__worker_number(void) { return this_worker == NULL ? 0 : this_worker->number; }

/* ---- the cost of a call ---- */

/* The estimates are updated by several threads without a lock. A lost update does no harm. */
static void set_worth(tn__pool *pool)
{
  int64_t wake = atomic_load_explicit(&pool->wake_ns, memory_order_relaxed);
  int64_t call = atomic_load_explicit(&pool->call_ns, memory_order_relaxed);
  atomic_store_explicit(&pool->worth_ns, wake + 2 * call, memory_order_relaxed);
}

void tn__pool_measures(tn__pool *pool)
{
  atomic_init(&pool->wake_ns, FIRST_WAKE_NS);
  atomic_init(&pool->call_ns, FIRST_CALL_NS);
  set_worth(pool);
}

/* Moves the estimate towards the sample by a fixed step, so that it approximates the median: on a
 * busy machine a few wake-ups take milliseconds, which says nothing about the others. */
static void measured(tn__pool *pool, _Atomic int64_t *median, int64_t sample)
{
  int64_t old = atomic_load_explicit(median, memory_order_relaxed);
  int64_t now = sample > old ? old + old / 8 : old - old / 8;
  if (now < LEAST_NS) now = LEAST_NS;
  if (now > MOST_NS) now = MOST_NS;
  atomic_store_explicit(median, now, memory_order_relaxed);
  set_worth(pool);
}

void tn__pool_declined(tn__pool *pool)
{
  int64_t wake = atomic_load_explicit(&pool->wake_ns, memory_order_relaxed);
  if (wake <= LEAST_WAKE_NS) return;
  atomic_store_explicit(&pool->wake_ns, wake - wake / 16, memory_order_relaxed);
  set_worth(pool);
}

/* ---- seats ---- */

/* A place for one more worker in the crew; NULL: its client has as many at work as it may, or no
 * memory. The pool's lock is held. The seat is published before n_seats, since thieves read both
 * without the lock. */
static tn__seat *seat_claim(tn__crew *crew)
{
  tn__pool_client *client = crew->client;
  if (client->closing || atomic_load_explicit(&client->seated, memory_order_relaxed) >= client->workers) return NULL;
  uint32_t n = atomic_load_explicit(&crew->n_seats, memory_order_relaxed), i = 1;
  while (i < n && atomic_load_explicit(&crew->seats[i], memory_order_relaxed)->taken) i++;
  tn__seat *seat = i < n ? atomic_load_explicit(&crew->seats[i], memory_order_relaxed) : tn__seat_create(crew);
  if (seat == NULL) return NULL;
  if (i == n) {
    atomic_store_explicit(&crew->seats[n], seat, memory_order_release);
    atomic_store_explicit(&crew->n_seats, n + 1, memory_order_release);
  }
  seat->taken = true;
  atomic_fetch_add_explicit(&client->seated, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&crew->seated, 1, memory_order_relaxed);
  return seat;
}

/* Gives up a seat. The pool's lock is held. */
static void seat_release(tn__pool *pool, tn__seat *seat)
{
  tn__pool_client *client = seat->crew->client;
  seat->taken = false;
  atomic_fetch_sub_explicit(&seat->crew->seated, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&client->seated, 1, memory_order_release);
  if (client->closing) tn__cond_broadcast(&pool->left);
}

/* ---- calls that no worker could answer at once ---- */

/* Crews that wait for a worker are in a list, the one that has waited longest first. They are also
 * counted, either for the pool or for their client, so that workers at work see without a lock that
 * they are needed elsewhere (tn__asked_elsewhere). All functions here need the pool's lock. */

static _Atomic uint32_t *counter_of(tn__crew *crew)
{
  bool pool = atomic_load_explicit(&crew->called, memory_order_relaxed) == TN__CALLED_POOL;
  return pool ? &crew->client->pool->n_calls : &crew->client->n_calls;
}

static void add_call(tn__pool *pool, tn__crew *crew, uint32_t why)
{
  if (atomic_load_explicit(&crew->called, memory_order_relaxed) != TN__CALLED_NOT) return;
  atomic_store_explicit(&crew->called, why, memory_order_relaxed);
  atomic_fetch_add_explicit(counter_of(crew), 1, memory_order_relaxed);
  crew->next_call = NULL;
  *pool->last_call = crew;
  pool->last_call = &crew->next_call;
}

static void take_call(tn__pool *pool, tn__crew **at)
{
  tn__crew *crew = *at;
  *at = crew->next_call;
  if (*at == NULL) pool->last_call = at;
  atomic_fetch_sub_explicit(counter_of(crew), 1, memory_order_relaxed);
  atomic_store_explicit(&crew->called, TN__CALLED_NOT, memory_order_relaxed);
}

/* A seat in the first crew that still has work and may have one more worker. Crews without work are
 * removed from the list. NULL: there is none. */
static tn__seat *answer_call(tn__pool *pool)
{
  for (tn__crew **at = &pool->calls; *at != NULL;) {
    tn__crew *crew = *at;
    tn__seat *seat = NULL;
    bool work = tn__crew_has_work(crew);
    if (work) seat = seat_claim(crew);
    if (!work || seat != NULL) take_call(pool, at);
    else at = &crew->next_call;
    if (seat != NULL) return seat;
  }
  return NULL;
}

void tn__pool_forget(tn__crew *crew)
{
  tn__pool *pool = crew->client->pool;
  for (tn__crew **at = &pool->calls; *at != NULL; at = &(*at)->next_call)
    if (*at == crew) {
      take_call(pool, at);
      return;
    }
}

/* ---- the thread ---- */

/* Whether other crews have waited long enough for this worker. *since: when it first noticed that
 * they wait, 0 = it has not. */
static bool turn_is_over(const tn__pool_client *client, int64_t *since)
{
  if (!tn__asked_elsewhere(client)) {
    *since = 0;
    return false;
  }
  int64_t now = tn__now_ns();
  if (*since == 0) *since = now;
  return now - *since > TURN_NS;
}

/* Works in a crew until there is no more work, or workers are needed elsewhere. Tasks may be left
 * in its deque: it wakes the owner for them. */
static void seat_work(tn__seat *seat)
{
  int64_t since = 0;
  seat->below = NULL;
  tn__seat_now = seat;
  for (;;) {
    if (tn__seat_run(seat)) {
      if (turn_is_over(seat->crew->client, &since)) break;
    } else if (!tn__seat_spin(seat, NULL, NULL)) {
      break;
    }
  }
  tn__seat_now = NULL;
  if (tn__deque_count(&seat->deque) > 0) tn__unpark(&atomic_load(&seat->crew->seats[0])->parker);
}

/* Leaves a crew. Returns the next seat; NULL: the worker sleeps, or ends if *stop. */
static tn__seat *worker_next(tn__worker *w, tn__seat *seat, bool *stop)
{
  tn__pool *pool = w->pool;
  tn__mutex_lock(&pool->mu);
  bool more = tn__crew_has_work(seat->crew); /* it leaves for another crew, or work has just arrived */
  seat_release(pool, seat);
  if (more && !seat->crew->client->closing && !pool->stopping) add_call(pool, seat->crew, TN__CALLED_POOL);
  *stop = pool->stopping;
  seat = *stop ? NULL : answer_call(pool);
  if (seat == NULL && !*stop) {
    w->next_idle = pool->idle;
    pool->idle = w;
    atomic_fetch_add_explicit(&pool->n_idle, 1, memory_order_relaxed);
  }
  tn__mutex_unlock(&pool->mu);
  return seat;
}

/* NULL: the worker is to end. */
static tn__seat *sleep_until_called(tn__worker *w)
{
  tn__mutex_lock(&w->mu);
  while (w->seat == NULL && !w->stop) tn__cond_wait(&w->called, &w->mu);
  tn__seat *seat = w->seat;
  int64_t called_at = w->called_at;
  w->seat = NULL;
  tn__mutex_unlock(&w->mu);
  if (seat != NULL && called_at != 0) measured(w->pool, &w->pool->wake_ns, tn__now_ns() - called_at);
  return seat;
}

/* For debuggers and monitors. */
static void name_thread(uint32_t number)
{
  char name[16];
  snprintf(name, sizeof name, "tenon-%u", number % 1000000);
#if defined(__linux__)
  prctl(PR_SET_NAME, name, 0, 0, 0);
#elif defined(__APPLE__)
  pthread_setname_np(name);
#endif
}

static void *worker_main(void *arg)
{
  tn__worker *w = arg;
  bool stop = false;
  this_worker = w;
  name_thread(w->number);
  if (w->pool->pin) tn__cpus_pin(&w->pool->cpus, w->number); /* numbers begin at 1: CPU 0 is left to the caller */
  for (tn__seat *seat = sleep_until_called(w); seat != NULL;) {
    seat_work(seat);
    seat = worker_next(w, seat, &stop);
    if (seat == NULL && !stop) seat = sleep_until_called(w);
  }
  return NULL;
}

/* ---- starting ---- */

/* The program's signals are delivered to its own threads. Not blocked: those of faults, which must
 * be delivered to the thread that caused them, and that of profilers. */
static void block_signals(sigset_t *before)
{
  sigset_t set;
  static const int let[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF };
  sigfillset(&set);
  for (size_t i = 0; i < sizeof let / sizeof *let; i++) sigdelset(&set, let[i]);
  pthread_sigmask(SIG_SETMASK, &set, before);
}

/* Starts the thread of a worker, with signals blocked. False: the system has no thread to give. */
static bool worker_start(tn__worker *w)
{
  pthread_attr_t attr;
  sigset_t before;
  if (pthread_attr_init(&attr) != 0) return false;
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  block_signals(&before);
  w->started = pthread_create(&w->thread, &attr, worker_main, w) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return w->started;
}

/* A worker without a thread: one that was joined, or a new one. The pool's lock is held. NULL
 * without memory. */
static tn__worker *unused_worker(tn__pool *pool)
{
  for (size_t i = 0; i < pool->n_made; i++)
    if (!pool->workers[i]->started) return pool->workers[i];
  if (!tn__grow((void **)&pool->workers, &pool->room, pool->n_made + 1, sizeof *pool->workers)) return NULL;
  tn__worker *w = tn__zalloc(sizeof *w);
  if (w == NULL) return NULL;
  w->pool = pool;
  tn__mutex_init(&w->mu, "worker", TN_RANK_PARKED);
  tn__cond_init(&w->called);
  pool->workers[pool->n_made++] = w;
  w->number = (uint32_t)pool->n_made;
  return w;
}

/* Keeps a worker off the CPU of the thread that calls it. Some systems place a woken thread on the
 * CPU of the thread that woke it although other CPUs are idle, and leave it there. The pool's lock
 * is held, so the thread exists. */
static void keep_apart(tn__pool *pool, tn__worker *w)
{
  int cpu = pool->pin ? -1 : tn__cpu_now();
  if (cpu >= 0 && cpu != w->off && tn__cpus_keep_off(&pool->cpus, w->thread, w->off, cpu)) w->off = cpu;
}

/* Starts a new thread in the seat. False: the system has none to give, or there is no memory. The
 * pool's lock is held. */
static bool start_in(tn__pool *pool, tn__seat *seat)
{
  int64_t now = tn__now_ns();
  if (now < pool->no_threads_until) return false;
  tn__worker *w = unused_worker(pool);
  if (w != NULL) {
    tn__mutex_lock(&w->mu);
    w->seat = seat;
    w->stop = false;
    w->called_at = 0; /* starting a thread is not measured as a wake-up */
    tn__mutex_unlock(&w->mu);
  }
  if (w != NULL && worker_start(w)) {
    w->off = this_worker == NULL ? -1 : this_worker->off; /* a thread inherits the affinity of its creator */
    keep_apart(pool, w);
    atomic_fetch_add_explicit(&pool->n_started, 1, memory_order_relaxed);
    return true;
  }
  if (w != NULL) w->seat = NULL;
  pool->no_threads_until = now + NO_THREADS_NS;
  return false;
}

/* ---- calling ---- */

/* Gives a seat to the worker that fell asleep last; the caller signals it after the pool's lock is
 * released. The lock is held, and there is an idle worker. */
static tn__worker *take_idle(tn__pool *pool, tn__seat *seat, int64_t now)
{
  tn__worker *w = pool->idle;
  pool->idle = w->next_idle;
  atomic_fetch_sub_explicit(&pool->n_idle, 1, memory_order_relaxed);
  tn__mutex_lock(&w->mu);
  w->seat = seat;
  w->called_at = now;
  tn__mutex_unlock(&w->mu);
  return w;
}

/* Other crews of the client have all of its workers: puts the crew in the list of calls, and one of
 * them will change to it. */
static void call_for_peers(tn__crew *crew)
{
  tn__pool *pool = crew->client->pool;
  if (atomic_load_explicit(&crew->called, memory_order_relaxed) != TN__CALLED_NOT) return;
  tn__mutex_lock(&pool->mu);
  bool seated = atomic_load_explicit(&crew->client->seated, memory_order_relaxed) > 0;
  if (seated && !pool->stopping && !crew->client->closing) add_call(pool, crew, TN__CALLED_CLIENT);
  tn__mutex_unlock(&pool->mu);
}

/* The checks before the lock only save time: the client has all its workers here or elsewhere, or
 * the crew waits already. */
void tn__pool_call(tn__crew *crew)
{
  tn__pool_client *client = crew->client;
  tn__pool *pool = client->pool;
  if (atomic_load_explicit(&crew->seated, memory_order_relaxed) >= client->workers || !tn__pool_alive(pool)) return;
  if (atomic_load_explicit(&client->seated, memory_order_relaxed) >= client->workers) {
    call_for_peers(crew);
    return;
  }
  bool none = atomic_load_explicit(&pool->n_idle, memory_order_relaxed) == 0 &&
              atomic_load_explicit(&pool->n_started, memory_order_relaxed) >= pool->n_workers;
  if (none && atomic_load_explicit(&crew->called, memory_order_relaxed)) return;
  tn__worker *w = NULL;
  int64_t now = tn__now_ns();
  tn__mutex_lock(&pool->mu);
  tn__seat *seat = pool->stopping ? NULL : seat_claim(crew);
  if (seat != NULL && pool->idle != NULL) {
    keep_apart(pool, pool->idle);
    w = take_idle(pool, seat, now);
  } else if (seat != NULL) {
    bool more = atomic_load_explicit(&pool->n_started, memory_order_relaxed) < pool->n_workers;
    if (!more || !start_in(pool, seat)) {
      seat_release(pool, seat);
      if (atomic_load_explicit(&pool->n_started, memory_order_relaxed) > 0) add_call(pool, crew, TN__CALLED_POOL);
    }
  }
  tn__mutex_unlock(&pool->mu);
  if (w == NULL) return;
  tn__cond_signal(&w->called); /* without a lock: a worker's struct lives as long as its pool */
  measured(pool, &pool->call_ns, tn__now_ns() - now);
}

/* ---- joining ---- */

/* While `stopping` is set no worker is started or called, and workers leave their crews. The pool
 * can be used again afterwards. */
bool tn__pool_stop(tn__pool *pool)
{
  if (this_worker != NULL && this_worker->pool == pool) return false;
  if (!tn__pool_alive(pool)) return true;
  tn__mutex_lock(&pool->mu);
  while (pool->stopping) tn__cond_wait(&pool->left, &pool->mu); /* another thread joins them */
  pool->stopping = true;
  pool->idle = NULL;
  atomic_store_explicit(&pool->n_idle, 0, memory_order_relaxed);
  size_t n = pool->n_made; /* no worker is started from now on, so the list does not change */
  tn__mutex_unlock(&pool->mu);
  for (size_t i = 0; i < n; i++) {
    tn__worker *w = pool->workers[i];
    if (!w->started) continue;
    tn__mutex_lock(&w->mu);
    w->stop = true;
    tn__mutex_unlock(&w->mu);
    tn__cond_signal(&w->called);
    tn__thread_join(w->thread);
    w->started = false;
  }
  tn__mutex_lock(&pool->mu);
  pool->stopping = false;
  atomic_store_explicit(&pool->n_started, 0, memory_order_relaxed);
  tn__cond_broadcast(&pool->left);
  tn__mutex_unlock(&pool->mu);
  return true;
}
