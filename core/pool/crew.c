/* SPDX-License-Identifier: Apache-2.0 */
/* Clients, and their crews: the threads that work for one step.
 *
 * A crew is kept by its client between steps, in one of a few places that threads exchange
 * atomically, or in a list if these are full. Workers may still be in it then, looking for work of
 * the next step. Its memory lives as long as the client, so a thread that looks at a crew late, or
 * at another thread's seat, reads valid memory. */
#include <core/base/threads/thread.h>
#include <core/pool/pool_internal.h>
#include <string.h>

#define MOST_WORKERS 4095 /* limit for a client: a crew has a seat for each */
#define CLOSELY 32 /* after this many steps that each began soon after the one before, the next is expected soon, too */

_Thread_local tn__seat *tn__seat_now; /* this thread's seat in the crew that it works in; NULL = none */

tn__crew *tn__crew_current(void) { return tn__seat_now == NULL ? NULL : tn__seat_now->crew; }

/* ---- crews and seats ---- */

tn__seat *tn__seat_create(tn__crew *crew)
{
  tn__seat *seat = tn__alloc_aligned(sizeof *seat, _Alignof(tn__seat));
  if (seat == NULL) return NULL;
  *seat = (tn__seat){ .crew = crew, .random = (uintptr_t)seat | 1 };
  tn__deque_init(&seat->deque);
  tn__parker_init(&seat->parker);
  return seat;
}

static size_t size_of_crew(const tn__pool_client *client)
{
  return sizeof(tn__crew) + ((size_t)client->workers + 1) * sizeof(_Atomic(tn__seat *));
}

/* No worker is in it. Threads outside of it may still be submitting (guests): waits until they have
 * left. */
static void free_crew(tn__crew *crew)
{
  bool alive = tn__pool_alive(crew->client->pool);
  uint32_t n = atomic_load_explicit(&crew->n_seats, memory_order_acquire);
  while (atomic_load_explicit(&crew->guests, memory_order_acquire) != 0 && alive) sched_yield();
  for (uint32_t i = 0; i < n; i++) {
    tn__seat *seat = atomic_load_explicit(&crew->seats[i], memory_order_relaxed);
    tn__deque_fini(&seat->deque);
    if (alive) tn__parker_fini(&seat->parker);
    tn__free_aligned(seat, sizeof *seat, _Alignof(tn__seat));
  }
  tn__free_aligned(crew, size_of_crew(crew->client), _Alignof(tn__crew));
}

/* A crew with the owner's seat; those of workers are made when they first join. NULL without
 * memory. */
static tn__crew *make_crew(tn__pool_client *client)
{
  tn__crew *crew = tn__alloc_aligned(size_of_crew(client), _Alignof(tn__crew));
  if (crew == NULL) return NULL;
  memset(crew, 0, size_of_crew(client));
  crew->client = client;
  tn__seat *owner = tn__seat_create(crew);
  if (owner == NULL) {
    tn__free_aligned(crew, size_of_crew(client), _Alignof(tn__crew));
    return NULL;
  }
  atomic_init(&crew->seats[0], owner);
  atomic_init(&crew->n_seats, 1);
  bool alive = tn__pool_alive(client->pool);
  if (alive) tn__mutex_lock(&client->pool->mu);
  crew->next = client->crews;
  client->crews = crew;
  if (alive) tn__mutex_unlock(&client->pool->mu);
  return crew;
}

/* ---- clients ---- */

tn_status tn__client_create(tn__pool *pool, const tn__client_config *config, tn__pool_client **out, tn_error *err)
{
  tn__pool_client *c = tn__zalloc(sizeof *c);
  *out = c;
  if (c == NULL) return tn__no_memory(err, "worker threads of a session", sizeof *c);
  atomic_fetch_add_explicit(&pool->refs, 1, memory_order_relaxed);
  c->pool = pool;
  c->workers = config->workers < pool->n_workers ? config->workers : pool->n_workers;
  if (c->workers > MOST_WORKERS) c->workers = MOST_WORKERS;
  c->max_helpers = config->intra == 0 || config->intra - 1 > c->workers ? c->workers : config->intra - 1;
  c->spin_ns = (int64_t)config->spin_us * 1000;
  c->linger_ns = (int64_t)config->linger_us * 1000;
  return TN_OK;
}

void tn__client_destroy(tn__pool_client *client)
{
  if (client == NULL) return;
  tn__pool *pool = client->pool;
  bool alive = tn__pool_alive(pool);
  if (alive) {
    tn__mutex_lock(&pool->mu);
    client->closing = true;
    for (tn__crew *crew = client->crews; crew != NULL; crew = crew->next) tn__pool_forget(crew);
    while (atomic_load_explicit(&client->seated, memory_order_acquire) > 0) tn__cond_wait(&pool->left, &pool->mu);
    tn__mutex_unlock(&pool->mu);
  }
  while (client->crews != NULL) {
    tn__crew *crew = client->crews;
    client->crews = crew->next;
    free_crew(crew);
  }
  tn__free(client, sizeof *client);
  tn__pool_unref(pool);
}

uint32_t tn__client_width(const tn__pool_client *client) { return client->workers + 1; }

/* ---- taking a crew ---- */

/* The place in which this thread looks first: it finds the crew that it put there. */
static inline uint32_t own_place(void) { return tn__thread_place(TN__IDLE_CREWS); }

/* A crew that found no free place when it was put back. */
static tn__crew *take_listed(tn__pool_client *client)
{
  if (atomic_load_explicit(&client->n_idle, memory_order_relaxed) == 0) return NULL;
  tn__mutex_lock(&client->pool->mu);
  tn__crew *crew = client->idle_list;
  if (crew != NULL) {
    client->idle_list = crew->next_idle;
    atomic_fetch_sub_explicit(&client->n_idle, 1, memory_order_relaxed);
  }
  tn__mutex_unlock(&client->pool->mu);
  return crew;
}

static tn__crew *take_idle(tn__pool_client *client)
{
  uint32_t own = own_place();
  for (uint32_t k = 0; k < TN__IDLE_CREWS; k++) {
    _Atomic(tn__crew *) *place = &client->idle[(own + k) % TN__IDLE_CREWS].at;
    if (atomic_load_explicit(place, memory_order_relaxed) == NULL) continue;
    tn__crew *crew = atomic_exchange_explicit(place, NULL, memory_order_acq_rel);
    if (crew != NULL) return crew;
  }
  return tn__pool_alive(client->pool) ? take_listed(client) : NULL;
}

void tn__crew_enter(tn__crew *crew)
{
  tn__seat *seat = atomic_load_explicit(&crew->seats[0], memory_order_relaxed);
  seat->below = tn__seat_now;
  tn__seat_now = seat;
  atomic_store_explicit(&crew->open, 1, memory_order_relaxed);
}

void tn__crew_leave(tn__crew *crew)
{
  atomic_store_explicit(&crew->open, 0, memory_order_relaxed);
  tn__seat_now = tn__seat_now->below;
}

tn__crew *tn__crew_take(tn__pool_client *client)
{
  tn__crew *crew = take_idle(client);
  if (crew == NULL) crew = make_crew(client);
  if (crew != NULL) tn__crew_enter(crew);
  return crew;
}

/* Notes whether this step began so soon after the last one that a worker which kept looking for
 * work would have found it. After CLOSELY such steps workers stay awake between steps. A single
 * late step makes them sleep between steps again, so a program that runs a step from time to time
 * has no CPU time wasted in between. */
static void expect_next(tn__crew *crew)
{
  bool soon = crew->ended_ns != 0 && tn__now_ns() - crew->ended_ns < crew->client->spin_ns;
  if (!soon) crew->closely = 0;
  else if (crew->closely < CLOSELY) crew->closely++;
  atomic_store_explicit(&crew->awake, crew->closely == CLOSELY, memory_order_relaxed);
  crew->timed = true;
}

tn__crew *tn__crew_take_for(tn__pool_client *client, const void *kind)
{
  tn__crew *crew = tn__crew_take(client);
  if (crew == NULL || kind == NULL || client->max_helpers == 0) return crew;
  if (client->linger_ns < 0 && client->spin_ns > 0) expect_next(crew);
  tn__profile_begin(crew, kind);
  return crew;
}

void tn__crew_put(tn__crew *crew)
{
  if (crew == NULL) return;
  tn__pool_client *client = crew->client;
  if (crew->profile != NULL) tn__profile_end(crew);
  if (crew->timed) crew->ended_ns = tn__now_ns();
  crew->timed = false;
  tn__crew_leave(crew);
  uint32_t own = own_place();
  for (uint32_t k = 0; k < TN__IDLE_CREWS; k++) {
    tn__crew *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&client->idle[(own + k) % TN__IDLE_CREWS].at, &none, crew,
                                                memory_order_acq_rel, memory_order_relaxed))
      return;
  }
  bool alive = tn__pool_alive(client->pool);
  if (!alive) return; /* no lock may be taken in a child process; the client frees the crew */
  tn__mutex_lock(&client->pool->mu);
  crew->next_idle = client->idle_list;
  client->idle_list = crew;
  atomic_fetch_add_explicit(&client->n_idle, 1, memory_order_relaxed);
  tn__mutex_unlock(&client->pool->mu);
}

/* ---- submitting ---- */

static tn__seat *owner_of(tn__crew *crew) { return atomic_load_explicit(&crew->seats[0], memory_order_relaxed); }

void tn__crew_invite(tn__crew *crew)
{
  tn__seat *owner = owner_of(crew);
  if (owner != tn__seat_now && atomic_load_explicit(&owner->parker.parked, memory_order_relaxed) != 0 &&
      tn__unpark(&owner->parker))
    return;
  tn__pool_call(crew);
}

/* Announces a task that was pushed, if the tasks pushed since the last announcement are worth a
 * wake-up. None is needed if a thread is searching: it finds the task by itself, and wakes others
 * when it finds more. */
static void offer(tn__seat *seat, double cost_ns)
{
  tn__crew *crew = seat->crew;
  seat->offered_ns += cost_ns;
  if (seat->offered_ns <= tn__crew_worth(crew)) {
    tn__seat_declined(seat, cost_ns);
    return;
  }
  seat->offered_ns = 0;
  if (atomic_load_explicit(&crew->spinning, memory_order_relaxed) == 0) tn__crew_invite(crew);
}

/* The inbox is a stack that any thread pushes to; the thread that takes it takes all, so there is
 * no ABA problem. */
static void put_in_inbox(tn__crew *crew, tn__task *task)
{
  tn__task *first = atomic_load_explicit(&crew->inbox, memory_order_relaxed);
  do task->next = first;
  while (!atomic_compare_exchange_weak_explicit(&crew->inbox, &first, task, memory_order_acq_rel,
                                                memory_order_relaxed));
}

void tn__crew_submit(tn__crew *crew, tn__task *task, double cost_ns)
{
  tn__seat *seat = tn__seat_now;
  task->cost_ns = (float)cost_ns;
  if (seat != NULL && seat->crew == crew && tn__deque_push(&seat->deque, task)) {
    offer(seat, cost_ns);
    return;
  }
  atomic_fetch_add_explicit(&crew->guests, 1, memory_order_relaxed);
  put_in_inbox(crew, task); /* from here the task's step may end; `guests` keeps the crew alive */
  if (!tn__unpark(&owner_of(crew)->parker) && cost_ns > tn__crew_worth(crew)) tn__pool_call(crew);
  atomic_fetch_sub_explicit(&crew->guests, 1, memory_order_release);
}

void tn__crew_notify(tn__crew *crew) { tn__unpark(&owner_of(crew)->parker); }

/* ---- running ---- */

/* A random seat, so that thieves do not all begin with the same victim (xorshift). */
static uint32_t any_seat(tn__seat *seat, uint32_t n)
{
  seat->random ^= seat->random << 13;
  seat->random ^= seat->random >> 7;
  seat->random ^= seat->random << 17;
  return (uint32_t)((seat->random >> 32) * n >> 32);
}

/* Takes the whole inbox: returns the task that was submitted first, and pushes the others to the
 * deque. Those for which there is no memory go back to the inbox. */
static tn__task *take_inbox(tn__seat *seat)
{
  tn__crew *crew = seat->crew;
  if (atomic_load_explicit(&crew->inbox, memory_order_relaxed) == NULL) return NULL;
  tn__task *task = atomic_exchange_explicit(&crew->inbox, NULL, memory_order_acq_rel);
  while (task != NULL && task->next != NULL) { /* the last one of the list was submitted first */
    tn__task *next = task->next;
    double cost_ns = (double)task->cost_ns;
    if (tn__deque_push(&seat->deque, task)) offer(seat, cost_ns);
    else put_in_inbox(crew, task);
    task = next;
  }
  return task;
}

/* Steals a task. If the victim has more of them and no thread is searching, wakes another worker. */
static tn__task *steal(tn__seat *seat, tn__seat *from)
{
  if (tn__deque_count(&from->deque) == 0) return NULL;
  tn__task *task = tn__deque_steal(&from->deque);
  if (task == NULL) return NULL;
  tn__crew *crew = seat->crew;
  double rest = (double)tn__deque_count(&from->deque) * (double)task->cost_ns;
  if (rest > tn__crew_worth(crew) && atomic_load_explicit(&crew->spinning, memory_order_relaxed) == 0)
    tn__crew_invite(crew);
  return task;
}

/* Runs parts of another thread's loop, a stolen task, or one submitted from outside. False: there
 * is none. */
static bool run_elsewhere(tn__seat *seat)
{
  tn__crew *crew = seat->crew;
  uint32_t n = atomic_load_explicit(&crew->n_seats, memory_order_acquire);
  uint32_t at = n > 1 ? any_seat(seat, n) : 0;
  for (uint32_t k = 0; k < n; k++, at = at + 1 == n ? 0 : at + 1) {
    tn__seat *other = atomic_load_explicit(&crew->seats[at], memory_order_relaxed);
    if (other == seat) continue;
    if (tn__loop_open(&other->loop, crew->client) && tn__loop_help(seat, other)) return true;
    tn__task *task = steal(seat, other);
    if (task == NULL) continue;
    task->run(task);
    return true;
  }
  tn__task *task = take_inbox(seat);
  if (task != NULL) task->run(task);
  return task != NULL;
}

/* Its own tasks first, the newest first: its data is likely to be in the cache. */
bool tn__seat_run(tn__seat *seat)
{
  tn__task *task = tn__deque_pop(&seat->deque);
  if (task == NULL) {
    seat->offered_ns = 0;
    return run_elsewhere(seat);
  }
  seat->offered_ns -= (double)task->cost_ns;
  if (seat->offered_ns < 0) seat->offered_ns = 0;
  task->run(task);
  return true;
}

bool tn__crew_help(tn__crew *crew)
{
  tn__seat *seat = tn__seat_now;
  return seat != NULL && seat->crew == crew && !seat->looping && tn__seat_run(seat);
}

bool tn__crew_has_work(tn__crew *crew)
{
  if (atomic_load_explicit(&crew->inbox, memory_order_acquire) != NULL) return true;
  uint32_t n = atomic_load_explicit(&crew->n_seats, memory_order_acquire);
  for (uint32_t i = 0; i < n; i++) {
    const tn__seat *seat = atomic_load_explicit(&crew->seats[i], memory_order_relaxed);
    if (tn__loop_open(&seat->loop, crew->client) || tn__deque_count(&seat->deque) > 0) return true;
  }
  return false;
}

/* ---- waiting ---- */

/* Whether to keep looking for work. over: what the owner waits for; NULL: a worker. A worker leaves
 * when others need workers. It does not wait for the next step unless it is to linger, or that step
 * is expected soon. */
static bool look_on(const tn__seat *seat, bool (*over)(void *user), void *user)
{
  const tn__crew *crew = seat->crew;
  const tn__pool_client *client = crew->client;
  if (over != NULL) return !over(user);
  bool stays = atomic_load_explicit(&crew->open, memory_order_relaxed) != 0 || client->linger_ns > 0 ||
               atomic_load_explicit(&crew->awake, memory_order_relaxed) != 0;
  return stays && !atomic_load_explicit(&client->closing, memory_order_relaxed) && !tn__asked_elsewhere(client);
}

/* How long a thread that finds nothing keeps looking. */
static int64_t looks_for_ns(const tn__pool_client *client, bool worker)
{
  return worker && client->linger_ns > client->spin_ns ? client->linger_ns : client->spin_ns;
}

/* The last check is made after `spinning` was decremented: a thread that submitted a task while it
 * was above 0 woke no other one. */
bool tn__seat_spin(tn__seat *seat, bool (*over)(void *user), void *user)
{
  tn__crew *crew = seat->crew;
  bool found = false;
  uint32_t turns = 0;
  int64_t ns = looks_for_ns(crew->client, over == NULL);
  if (ns == 0) return tn__crew_has_work(crew);
  atomic_fetch_add_explicit(&crew->spinning, 1, memory_order_acq_rel);
  int64_t until = tn__now_ns() + ns;
  while (!(found = tn__crew_has_work(crew)) && look_on(seat, over, user) && tn__spin(crew->client, until, &turns))
    continue;
  atomic_fetch_sub_explicit(&crew->spinning, 1, memory_order_acq_rel);
  return found || tn__crew_has_work(crew);
}

/* Runs what there is, then spins, then parks. Between tn__park_begin and tn__park it checks both
 * conditions again; threads that make one true unpark the owner afterwards. */
bool tn__crew_wait(tn__crew *crew, bool (*over)(void *user), void *user, int64_t deadline_ns)
{
  tn__seat *seat = owner_of(crew);
  for (;;) {
    if (over(user)) return true;
    if (deadline_ns != 0 && tn__now_ns() >= deadline_ns) return false;
    if (tn__seat_run(seat) || tn__seat_spin(seat, over, user) || over(user)) continue;
    tn__park_begin(&seat->parker);
    if (over(user) || tn__crew_has_work(crew)) tn__park_cancel(&seat->parker);
    else tn__park(&seat->parker, deadline_ns);
  }
}

bool tn__counted_down(void *counter)
{
  return atomic_load_explicit((_Atomic uint32_t *)counter, memory_order_acquire) == 0;
}

void tn__count_down(tn__crew *crew, _Atomic uint32_t *counter)
{
  if (atomic_fetch_sub_explicit(counter, 1, memory_order_acq_rel) == 1) tn__crew_notify(crew);
}
