/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting unused tensors, and when: the three strategies.
 *
 * IN_BACKGROUND: a thread that puts a slot down wakes the session's thread if that sleeps. The session's
 * thread stays awake for some ticks after work, so a program that releases all the time rarely wakes it.
 * Tensors that need only be freed do not wait for it: the next calls of the releasing thread that make
 * tensors delete a few each, since allocators reuse memory fastest on the thread that freed it. If much is
 * unused, calls help with all of it, so memory is bounded even if the session's thread gets no time. */
#include <core/eager/sweep.h>
#include <core/eager/slots.h>
#include <core/eager/task.h>

#include <sched.h>
#include <time.h>

#define TICK_NS 1000000
#define TICKS 50                      /* idle ticks before the thread sleeps until it is woken */
#define PART 256                      /* tensors deleted between two updates of the counters */
#define SMALL_DEPTH 6                 /* unused slots from which a thread deletes its own... */
#define SOME 16                       /* ... at most this many in a call... */
#define SMALL_BYTES (256 << 10)       /* ... and little more than this many bytes */
#define MUCH_DEPTH 4096               /* unused slots of one lane from which calls delete all of them */
#define MUCH_BYTES ((uint64_t)64 << 20)
#define SPARE_BYTES 1024              /* maximum size of a spare */
#define AHEAD 8                       /* slots whose tensors are prefetched */
#define LARGE 1024                    /* bytes: allocators keep smaller ones by size */
#define TRIFLE 4                      /* a sweep of so few small tensors is not timed */
#define LOOK_EVERY 64                 /* calls between two checks of other lanes */
#define YIELDS 100                    /* of a thread that waits for other deletions, before it sleeps... */
#define NAP_NS 100000                 /* ... for this long... */
#define WAIT_NS 1000000000            /* ... and in all at most this long: the caller itself may be inside a deletion */

/* ---- deleting ---- */

/* Locks this lane, and no other. */
static void lock_this(tn__eager_lane *lane)
{
  while (atomic_exchange_explicit(&lane->busy, 1, memory_order_acquire) != 0) sched_yield();
}

/* Prefetches the tensor of a slot that will be deleted soon. */
static void fetch_tensor(const tn__eager_slot *slot)
{
  /* An integer, since the slot may have no tensor and arithmetic on a null pointer is undefined. */
  uintptr_t t = (uintptr_t)atomic_load_explicit(&slot->tensor, memory_order_relaxed);
  __builtin_prefetch((const void *)t, 1);
  __builtin_prefetch((const void *)(t + 64), 1);
  __builtin_prefetch((const void *)(t + 128), 1);
}

/* ---- spares ----
 *
 * Loops make tensors of the same few shapes repeatedly. */

/* Whether a tensor may become a spare: small, one allocation, not shared, and in a session without
 * a memory limit. */
static bool fits_spares(const tn_eager_session *s, const tn_tensor *t)
{
  return t != NULL && t->bytes <= SPARE_BYTES && s->runtime.on.account == NULL && t->buffer->inside == t &&
         t->buffer->managed == 0 && tn_tensor_is_exclusive(t);
}

/* Returns how many of n tensors the lane took. The lane is locked. */
static uint32_t spares_put(tn__eager_lane *lane, tn_tensor *const *tensors, uint32_t n)
{
  uint32_t have = atomic_load_explicit(&lane->n_spares, memory_order_relaxed), took = 0;
  while (took < n && have < TN__EAGER_SPARES) lane->spares[have++] = tensors[took++];
  atomic_store_explicit(&lane->n_spares, have, memory_order_relaxed);
  return took;
}

/* Gives up at once if the lane is busy: allocating a tensor is cheaper than waiting. */
tn_tensor *tn__eager_spare_take(tn_eager_session *s)
{
  tn_tensor *t = NULL;
  tn__eager_lane *lane = &s->lanes[tn__thread_place(TN__EAGER_LANES)];
  if (atomic_load_explicit(&lane->n_spares, memory_order_relaxed) == 0) return NULL;
  if (atomic_exchange_explicit(&lane->busy, 1, memory_order_acquire) != 0) return NULL;
  uint32_t n = atomic_load_explicit(&lane->n_spares, memory_order_relaxed);
  if (n > 0) {
    t = lane->spares[n - 1];
    atomic_store_explicit(&lane->n_spares, n - 1, memory_order_relaxed);
  }
  tn__eager_lane_unlock(lane);
  return t;
}

static void eager_spares_free(tn_eager_session *s)
{
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) {
    tn__eager_lane *lane = &s->lanes[i];
    uint32_t n = atomic_exchange(&lane->n_spares, 0);
    while (n > 0) tn_tensor_unref(lane->spares[--n]);
  }
}

/* Results of deleting slots. */
typedef struct deletion {
  uint64_t deleted, detached;
  int64_t bytes;
  tn_tensor *spares[TN__EAGER_SPARES];
  uint32_t n_spares, room;
} deletion;

/* Deletes the tensor of a slot; the slot itself is freed later, by give_slots. Heavy tensors may
 * call the program here, so no lock is held. */
static void delete_slot(const tn_eager_session *s, tn__eager_slot *slot, deletion *d)
{
  tn_tensor *t = atomic_load_explicit(&slot->tensor, memory_order_acquire);
  atomic_store_explicit(&slot->tensor, NULL, memory_order_relaxed);
  if (__builtin_expect(slot->task != NULL, 0)) {
    tn__eager_task_unref(slot->task);
    slot->task = NULL;
  }
  d->bytes += (int64_t)slot->bytes;
  if (atomic_load_explicit(&slot->word, memory_order_relaxed) & TN__EAGER_TAKEN) d->detached++;
  else d->deleted++;
  if (d->n_spares < d->room && fits_spares(s, t)) d->spares[d->n_spares++] = t;
  else tn_tensor_unref(t);
}

/* Frees and counts the slots from `first` to before `end`. */
static void give_slots(tn_eager_session *s, tn__eager_lane *lane, uint32_t first, uint32_t end, deletion *d)
{
  lock_this(lane);
  uint32_t took = spares_put(lane, d->spares, d->n_spares);
  for (uint32_t at = first; at != end;) {
    tn__eager_slot *slot = tn__eager_slot_at(s, at);
    at = atomic_load_explicit(&slot->next, memory_order_relaxed);
    tn__eager_slot_free(lane, slot);
  }
  atomic_store_explicit(&lane->deleted, atomic_load_explicit(&lane->deleted, memory_order_relaxed) + d->deleted,
                        memory_order_relaxed);
  atomic_store_explicit(&lane->detached, atomic_load_explicit(&lane->detached, memory_order_relaxed) + d->detached,
                        memory_order_relaxed);
  tn__eager_lane_count(s, lane, -d->bytes);
  atomic_fetch_sub_explicit(&lane->taken, d->deleted + d->detached, memory_order_relaxed);
  tn__eager_lane_unlock(lane);
  while (d->n_spares > took) tn_tensor_unref(d->spares[--d->n_spares]);
}

/* Deletes the tensors of up to n slots of a list, until `bytes` are exceeded; returns the rest of the list. */
static uint32_t delete_part(tn_eager_session *s, tn__eager_lane *lane, uint32_t list, uint32_t n, int64_t bytes)
{
  deletion d = { .room = TN__EAGER_SPARES - atomic_load_explicit(&lane->n_spares, memory_order_relaxed) };
  tn__eager_slot *ahead[AHEAD]; /* the next slots, whose tensors are prefetched */
  uint32_t first = list, next = list, begin = 0, end = 0;
  for (uint32_t i = 0; list != 0 && i < n && d.bytes <= bytes; i++) {
    for (; next != 0 && end - begin < AHEAD; end++) {
      tn__eager_slot *slot = ahead[end % AHEAD] = tn__eager_slot_at(s, next);
      next = atomic_load_explicit(&slot->next, memory_order_relaxed);
      fetch_tensor(slot);
    }
    tn__eager_slot *slot = ahead[begin++ % AHEAD];
    list = atomic_load_explicit(&slot->next, memory_order_relaxed);
    delete_slot(s, slot, &d);
  }
  give_slots(s, lane, first, list, &d);
  return list;
}

/* Reverses a list. */
static uint32_t reversed(const tn_eager_session *s, uint32_t list)
{
  uint32_t back = 0;
  while (list != 0) {
    tn__eager_slot *slot = tn__eager_slot_at(s, list);
    uint32_t next = atomic_load_explicit(&slot->next, memory_order_relaxed);
    atomic_store_explicit(&slot->next, back, memory_order_relaxed);
    back = list;
    list = next;
  }
  return back;
}

/* Takes the whole list `unused` and its length. Large tensors are returned in the order in which they were
 * released, as a program would free them itself: allocators that join free neighbours then grow a block from
 * its beginning. In reverse order each tensor would join the free end of the heap, which would be returned to
 * the system repeatedly. */
static uint32_t take_unused(tn_eager_session *s, tn__eager_lane *lane, size_t *n)
{
  *n = 0;
  if (atomic_load_explicit(&lane->unused, memory_order_relaxed) == 0) return 0;
  atomic_fetch_add(&lane->taken,
                   TN__EAGER_TAKES); /* before the list is empty, for a thread that waits for its deletion */
  uint32_t list = atomic_exchange(&lane->unused, 0);
  if (list == 0) {
    atomic_fetch_sub_explicit(&lane->taken, TN__EAGER_TAKES, memory_order_relaxed);
    return 0;
  }
  const tn__eager_slot *top = tn__eager_slot_at(s, list);
  *n = atomic_load_explicit(&top->depth, memory_order_relaxed);
  atomic_fetch_add_explicit(&lane->taken, *n - TN__EAGER_TAKES, memory_order_relaxed);
  uint64_t bytes = atomic_load_explicit(&top->below, memory_order_relaxed) & ~TN__EAGER_HEAVY;
  return bytes / LARGE >= *n ? reversed(s, list) : list;
}

/* Takes the lane's list of slots that wait for deletion; 0 = none. */
static uint32_t take_backlog(tn__eager_lane *lane)
{
  if (atomic_load_explicit(&lane->backlog, memory_order_relaxed) == 0) return 0;
  lock_this(lane);
  uint32_t list = atomic_exchange_explicit(&lane->backlog, 0, memory_order_relaxed);
  tn__eager_lane_unlock(lane);
  return list;
}

static void delete_list(tn_eager_session *s, tn__eager_lane *lane, uint32_t list)
{
  while (list != 0) list = delete_part(s, lane, list, PART, INT64_MAX - 1);
}

/* Deletes the unused tensors of a lane and returns their number. */
static size_t eager_sweep_lane(tn_eager_session *s, tn__eager_lane *lane)
{
  size_t n;
  uint32_t backlog = take_backlog(lane);
  delete_list(s, lane, backlog);
  delete_list(s, lane, take_unused(s, lane, &n));
  return n + (backlog != 0);
}

/* Deletes a few of the lane's unused tensors. */
static void sweep_some(tn_eager_session *s, tn__eager_lane *lane)
{
  size_t n;
  uint32_t list = take_backlog(lane);
  if (list == 0) list = take_unused(s, lane, &n);
  if (list == 0) return;
  list = delete_part(s, lane, list, SOME, SMALL_BYTES);
  if (list == 0) return;
  lock_this(lane);
  bool kept = atomic_load_explicit(&lane->backlog, memory_order_relaxed) == 0;
  if (kept) atomic_store_explicit(&lane->backlog, list, memory_order_relaxed);
  tn__eager_lane_unlock(lane);
  if (!kept) delete_list(s, lane, list); /* another thread of the lane has stored a rest already */
}

/* Deletes the unused tensors of all lanes. */
static size_t eager_sweep(tn_eager_session *s)
{
  size_t n = 0;
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) n += eager_sweep_lane(s, &s->lanes[i]);
  return n;
}

/* Another thread may have left the rest of a list for later, so the lane is swept again. */
static void wait_for_deletions(tn_eager_session *s, tn__eager_lane *lane, int64_t until)
{
  const struct timespec nap = { .tv_nsec = NAP_NS };
  for (uint32_t i = 0; atomic_load(&lane->taken) != 0 && tn__now_ns() < until; i++) {
    if (i < YIELDS) sched_yield();
    else nanosleep(&nap, NULL);
    eager_sweep_lane(s, lane);
  }
}

bool tn__eager_reclaim(tn_eager_session *s)
{
  if (s->strategy == TN_EAGER_ON_SESSION_CLOSE) return false;
  eager_sweep(s);
  int64_t until = tn__now_ns() + WAIT_NS;
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) wait_for_deletions(s, &s->lanes[i], until);
  return true;
}

/* ---- ON_SAFE_POINTS ---- */

/* Whether a lane has unused tensors. Sequentially consistent, as is setting `asleep` before
 * (sleep_or_tick). */
static bool any_unused(const tn_eager_session *s)
{
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++)
    if (atomic_load(&s->lanes[i].unused) != 0 || atomic_load(&s->lanes[i].backlog) != 0) return true;
  return false;
}

/* Whether a sweep is too short to be timed: no tensors, or a few small ones. *n: their number. */
static bool is_trifle(const tn_eager_session *s, uint64_t *n)
{
  uint64_t bytes = 0;
  *n = 0;
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) {
    uint32_t head = atomic_load_explicit(&s->lanes[i].unused, memory_order_acquire);
    if (head == 0) continue;
    const tn__eager_slot *top = tn__eager_slot_at(s, head);
    *n += atomic_load_explicit(&top->depth, memory_order_relaxed);
    bytes += atomic_load_explicit(&top->below, memory_order_relaxed);
  }
  return *n <= TRIFLE && bytes <= SMALL_BYTES;
}

/* Only sweeps that may take noticeable time are timed and counted as pauses: reading the clock
 * would cost as much as a short one. */
void tn__eager_safe_point(tn_eager_session *s)
{
  uint64_t n;
  if (s->strategy != TN_EAGER_ON_SAFE_POINTS) return;
  if (is_trifle(s, &n)) {
    if (n > 0) eager_sweep(s);
    return;
  }
  int64_t began = tn__now_ns();
  if (eager_sweep(s) == 0) return;
  uint64_t ns = (uint64_t)(tn__now_ns() - began),
           longest = atomic_load_explicit(&s->longest_pause_ns, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->pauses, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&s->pause_ns, ns, memory_order_relaxed);
  while (ns > longest && !atomic_compare_exchange_weak_explicit(&s->longest_pause_ns, &longest, ns,
                                                                memory_order_release, memory_order_relaxed)) {}
}

/* ---- IN_BACKGROUND ---- */

/* Deletes all unused tensors of lanes that have very many, so that memory stays bounded. */
static void relieve(tn_eager_session *s)
{
  for (uint32_t i = 0; i < TN__EAGER_LANES; i++) {
    uint32_t head = atomic_load_explicit(&s->lanes[i].unused, memory_order_acquire);
    if (head == 0) continue;
    const tn__eager_slot *top = tn__eager_slot_at(s, head);
    if (atomic_load_explicit(&top->depth, memory_order_relaxed) >= MUCH_DEPTH ||
        (atomic_load_explicit(&top->below, memory_order_relaxed) & ~TN__EAGER_HEAVY) >= MUCH_BYTES)
      eager_sweep_lane(s, &s->lanes[i]);
  }
}

void tn__eager_help(tn_eager_session *s)
{
  if (!s->worker.has_thread) return;
  tn__eager_lane *lane = &s->lanes[tn__thread_place(TN__EAGER_LANES)];
  uint32_t head = atomic_load_explicit(&lane->unused, memory_order_acquire);
  if (__builtin_expect(atomic_load_explicit(&lane->backlog, memory_order_relaxed) != 0, 0)) {
    sweep_some(s, lane);
  } else if (head != 0) {
    const tn__eager_slot *top = tn__eager_slot_at(s, head);
    uint64_t below = atomic_load_explicit(&top->below, memory_order_relaxed);
    bool enough = atomic_load_explicit(&top->depth, memory_order_relaxed) >= SMALL_DEPTH || below > SMALL_BYTES;
    if (enough && (below & TN__EAGER_HEAVY) == 0) sweep_some(s, lane);
  }
  if (atomic_load_explicit(&lane->allocated, memory_order_relaxed) % LOOK_EVERY == 0) relieve(s);
}

/* Waits for one tick, or, after enough idle ticks, until a slot is added to the unused ones. False:
 * the thread is to end. A thread that adds a slot either sees `asleep` and wakes this thread, or
 * its slot is seen by any_unused. */
static bool sleep_or_tick(tn_eager_session *s, uint32_t *idle)
{
  tn__mutex_lock(&s->worker.wake_mu);
  if (!s->worker.stop && *idle < TICKS) {
    ++*idle;
    tn__cond_wait_until(&s->worker.wake, &s->worker.wake_mu, tn__now_ns() + TICK_NS);
  } else if (!s->worker.stop) {
    atomic_store(&s->asleep, 1); /* a thread that puts a slot down after this sees it */
    if (any_unused(s)) atomic_store(&s->asleep, 0);
    while (!s->worker.stop && atomic_load(&s->asleep) != 0) tn__cond_wait(&s->worker.wake, &s->worker.wake_mu);
    *idle = 0;
  }
  bool on = !s->worker.stop;
  tn__mutex_unlock(&s->worker.wake_mu);
  return on;
}

static void *run_thread(void *session)
{
  tn_eager_session *s = session;
  uint32_t idle = TICKS;
  tn__eager_frame frame = { s, NULL };
  tn__eager_inside = &frame;
  while (sleep_or_tick(s, &idle))
    if (eager_sweep(s) > 0) idle = 0;
  return NULL;
}

tn_status tn__eager_thread_start(tn_eager_session *s, tn_error *err)
{
  int code = pthread_create(&s->worker.thread, NULL, run_thread, s);
  if (code != 0)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "cannot start a thread for an eager session (system error %d)",
                        code);
  s->worker.has_thread = true;
  return TN_OK;
}

void tn__eager_thread_end(tn_eager_session *s)
{
  if (!s->worker.has_thread) return;
  tn__mutex_lock(&s->worker.wake_mu);
  s->worker.stop = true;
  tn__cond_signal(&s->worker.wake);
  tn__mutex_unlock(&s->worker.wake_mu);
  tn__thread_join(s->worker.thread);
}

/* ---- the end ---- */

/* No call is inside. Handles released at this time change words and lists that are not read again. */
void tn__eager_delete_all(tn_eager_session *s)
{
  uint64_t deleted = 0;
  int64_t bytes = 0;
  const uint32_t n = atomic_load(&s->n_slots);
  for (uint32_t number = 1; number <= n; number++) {
    tn__eager_slot *slot = tn__eager_slot_at(s, number);
    if (number < n) fetch_tensor(tn__eager_slot_at(s, number + 1));
    uint64_t word = atomic_exchange(&slot->word, 0);
    if ((word & TN__EAGER_HELD) == 0) continue;
    tn_tensor *t = atomic_load_explicit(&slot->tensor, memory_order_acquire);
    atomic_store_explicit(&slot->tensor, NULL, memory_order_relaxed);
    tn__eager_task_unref(slot->task);
    slot->task = NULL;
    deleted++;
    bytes += (int64_t)slot->bytes;
    tn_tensor_unref(t);
  }
  eager_spares_free(s);
  tn__eager_lane *lane = tn__eager_lane_lock(s);
  atomic_store(&lane->deleted, atomic_load(&lane->deleted) + deleted);
  tn__eager_lane_count(s, lane, -bytes);
  tn__eager_lane_unlock(lane);
}
