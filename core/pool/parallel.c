/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: the calling thread takes parts from the front, helpers take them from the back.
 *
 * A loop is shared by storing `range`, the parts that are not taken, in the caller's seat. A thread
 * takes a part by a compare-exchange of `range`, and counts the parts that it has run in `left`.
 * The caller returns when `left` is 0, after which the seat is used for its next loop. A helper
 * that comes late finds `range` empty, or helps with the next loop. See tn__loop_share in
 * pool_internal.h. */
#include <core/pool/float_mode.h>
#include <core/pool/pool_internal.h>

#define LEAST_NS 2000      /* minimum time of a part: less is not worth taking */
#define PART_NS 12000      /* intended time of a part, where a thread gets several: equal parts may differ in time */
#define PARTS_PER_THREAD 4 /* maximum; with several parts, a thread that comes late or is slow runs fewer */
#define CALLS_AT_ONCE 2    /* workers called by each thread that joins, so that many come in few rounds */

/* ---- parts ---- */

/* Takes the first or the last part; false: none is left. */
static bool loop_take(tn__loop_share *l, bool first, uint32_t *part)
{
  uint64_t range = atomic_load_explicit(&l->range, memory_order_relaxed), next;
  do {
    uint32_t from = (uint32_t)(range >> 32), to = (uint32_t)range;
    if (from >= to) return false;
    *part = first ? from : to - 1;
    next = first ? range + ((uint64_t)1 << 32) : range - 1;
  } while (!atomic_compare_exchange_weak_explicit(&l->range, &range, next, memory_order_acq_rel, memory_order_relaxed));
  return true;
}

static void run_part(const tn__loop_share *l, uint32_t part)
{
  int64_t begin = l->size * part;
  l->fn(l->user, begin, part + 1 == l->n_parts ? l->n : begin + l->size);
}

static uint32_t parts_left(const tn__loop_share *l)
{
  uint64_t range = atomic_load_explicit(&l->range, memory_order_relaxed);
  uint32_t from = (uint32_t)(range >> 32), to = (uint32_t)range;
  return from < to ? to - from : 0;
}

/* Whether another worker may join the crew for its loops. */
static bool more_may_come(const tn__crew *crew)
{
  return atomic_load_explicit(&crew->seated, memory_order_relaxed) < crew->client->max_helpers;
}

/* Calls for help if the remaining work is worth it: that of this loop, or for the owner's loops
 * that of all further loops of the step (ahead_ns). `held`: parts that this thread has taken and
 * not run yet. Workers that were called count as present although they are still on their way. */
static void call_for_help(tn__crew *crew, const tn__loop_share *l, uint32_t held, double part_ns)
{
  const tn__seat *owner = atomic_load_explicit(&crew->seats[0], memory_order_relaxed);
  double worth = tn__crew_worth(crew), ahead = l == &owner->loop ? crew->ahead_ns : 0;
  for (int i = 0; i < CALLS_AT_ONCE; i++) {
    uint32_t there = atomic_load_explicit(&crew->seated, memory_order_relaxed), parts = parts_left(l) + held;
    double work = (double)parts * part_ns;
    if (there >= crew->client->max_helpers || parts < there + 2) return;
    if ((work > ahead ? work : ahead) < worth * (there + 1)) return;
    tn__crew_invite(crew);
  }
}

/* State of a thread on which parts of a loop depend. A helper takes over that of the caller, then
 * restores its own. */
typedef struct surroundings {
  uint32_t float_mode;
  tn__account *account;
  const tn__plugin_call *const volatile *helped; /* for reports of a crash: the plugin call that this thread helps */
} surroundings;

static surroundings surroundings_enter(const tn__loop_share *l)
{
  surroundings mine = { tn__float_mode(), tn__account_now, tn__plugin_call_helped };
  if (l->float_mode != mine.float_mode) tn__set_float_mode(l->float_mode);
  tn__account_now = l->account;
  tn__plugin_call_helped = &l->calling;
  return mine;
}

static void surroundings_leave(const tn__loop_share *l, surroundings mine)
{
  if (l->float_mode != mine.float_mode) tn__set_float_mode(mine.float_mode);
  tn__account_now = mine.account;
  tn__plugin_call_helped = mine.helped;
}

/* Runs all parts that are left, one after the other. Returns their number. The loop's fields may be
 * read only while this thread has a part that is not counted in `left`. */
static uint32_t loop_run_parts(tn__seat *helper, tn__seat *other)
{
  tn__loop_share *l = &other->loop;
  uint32_t part, done = 0;
  surroundings mine = { 0, NULL };
  while (loop_take(l, false, &part)) {
    if (done++ == 0) {
      helper->looping = true;
      mine = surroundings_enter(l);
      if (more_may_come(helper->crew)) call_for_help(helper->crew, l, 0, l->part_ns);
    }
    run_part(l, part);
  }
  if (done == 0) return 0;
  surroundings_leave(l, mine);
  helper->looping = false;
  return done;
}

/* `helpers` is counted only if a loop may have fewer helpers than the client has workers. The
 * decrement of `left` is the last access to the loop, except for unparking its caller, whose seat
 * lives as long as the client. */
bool tn__loop_help(tn__seat *helper, tn__seat *other)
{
  tn__loop_share *l = &other->loop;
  const tn__pool_client *client = helper->crew->client;
  uint32_t done = 0;
  if (!tn__loop_counts(client)) {
    done = loop_run_parts(helper, other);
  } else {
    if (atomic_fetch_add_explicit(&l->helpers, 1, memory_order_relaxed) < client->max_helpers)
      done = loop_run_parts(helper, other);
    atomic_fetch_sub_explicit(&l->helpers, 1, memory_order_relaxed);
  }
  if (done > 0 && atomic_fetch_sub_explicit(&l->left, done, memory_order_acq_rel) == done) tn__unpark(&other->parker);
  return done > 0;
}

/* ---- the caller ---- */

static bool all_done(const tn__loop_share *l) { return atomic_load_explicit(&l->left, memory_order_acquire) == 0; }

/* Waits until helpers have run the parts that they took. Runs no other tasks meanwhile. */
static void wait_for_helpers(tn__seat *seat)
{
  tn__loop_share *l = &seat->loop;
  int64_t until = tn__now_ns() + seat->crew->client->spin_ns;
  uint32_t turns = 0;
  while (!all_done(l)) {
    if (tn__spin(seat->crew->client, until, &turns)) continue;
    tn__park_begin(&seat->parker);
    if (all_done(l)) tn__park_cancel(&seat->parker);
    else tn__park(&seat->parker, 0);
  }
}

/* The largest number of parts that this loop is worth for that many threads, as a number that may
 * be below 1. */
static double most_parts(double all_ns, uint32_t threads)
{
  double each = all_ns / threads / PART_NS;
  if (each < 1) each = 1;
  if (each > PARTS_PER_THREAD) each = PARTS_PER_THREAD;
  double most = threads * (double)(int)each;
  return all_ns / LEAST_NS < most ? all_ns / LEAST_NS : most;
}

/* Cuts the loop into parts of at least `grain` items, with edges that suit vectors. Returns their
 * number; 0: it is not worth two. */
static uint32_t loop_cut(tn__loop_share *l, int64_t n, int64_t grain, double cost_ns, uint32_t threads)
{
  double most = most_parts((double)n * cost_ns, threads);
  if (grain < 1) grain = 1;
  if ((double)(n / grain) < most) most = (double)(n / grain);
  if (!(most >= 2)) return 0;
  int64_t parts = (int64_t)(most < 1 << 20 ? most : 1 << 20);
  int64_t size = n / parts + (n % parts != 0);
  if (size < grain) size = grain;
  if (size >= 256) size += -size & (size >= 1024 ? 63 : 15);
  parts = n / size + (n % size >= grain || n < size);
  if (parts > threads && parts % threads != 0) { /* some threads would get one part more than others */
    parts -= parts % threads;
    size = n / parts + (n % parts != 0);
    parts = n / size + (n % size >= grain || n < size);
  }
  l->n = n;
  l->size = size;
  l->n_parts = (uint32_t)parts;
  l->part_ns = (double)size * cost_ns;
  return parts < 2 ? 0 : (uint32_t)parts;
}

/* Whether the crew can have helpers at all. */
static bool may_have_helpers(const tn__crew *crew)
{
  return crew->client->max_helpers > 0 && tn__pool_alive(crew->client->pool);
}

/* Calls the first helpers. The kernel's estimate of the cost may be far off: where that decides
 * whether help is worth it, the first part, which the caller has, is run and measured. Returns
 * whether it was run. */
static bool loop_begin(tn__seat *seat, tn__loop_share *l)
{
  if (!more_may_come(seat->crew)) return false;
  double worth = tn__crew_worth(seat->crew), all = l->part_ns * l->n_parts, part_ns = l->part_ns;
  if (tn__seat_owns(seat) && seat->crew->ahead_ns >= worth) {
    call_for_help(seat->crew, l, 1, part_ns);
    return false;
  }
  bool measured = all > worth / 8 && all <= 4 * worth;
  if (measured) {
    int64_t before = tn__now_ns();
    run_part(l, 0);
    part_ns = (double)(tn__now_ns() - before);
  }
  if (part_ns * l->n_parts > worth) call_for_help(seat->crew, l, !measured, part_ns);
  else tn__seat_declined(seat, part_ns * l->n_parts);
  return measured;
}

/* The caller has the first part from the beginning. Storing `range` publishes the loop; everything
 * else is set before. */
static void run_shared(tn__seat *seat, tn__loop_share *l)
{
  uint32_t part, done = 1;
  seat->looping = true;
  atomic_store_explicit(&l->left, l->n_parts, memory_order_relaxed);
  atomic_store_explicit(&l->range, UINT64_C(1) << 32 | l->n_parts, memory_order_release);
  if (!loop_begin(seat, l)) run_part(l, 0);
  for (; loop_take(l, true, &part); done++) run_part(l, part);
  if (done != l->n_parts && atomic_fetch_sub_explicit(&l->left, done, memory_order_acq_rel) != done)
    wait_for_helpers(seat);
  seat->looping = false;
}

/* Accounts for a loop of a step whose kind is known: ahead_ns is the estimated time of the rest of
 * the step's loops, according to the step before. */
static void note_loop(tn__crew *crew, double all)
{
  crew->ahead_ns = crew->profile->loops_ns - crew->loops_ns;
  if (crew->sure && crew->ahead_ns < 2 * tn__crew_worth(crew)) crew->ahead_ns = tn__crew_worth(crew);
  crew->loops_ns += all;
}

void tn__parallel_for(tn__crew *crew, int64_t n, int64_t grain, double cost_ns,
                      void (*fn)(void *user, int64_t begin, int64_t end), void *user)
{
  if (n <= 0) return;
  tn__seat *seat = tn__seat_now;
  double all = (double)n * cost_ns;
  bool shared = crew != NULL && all >= TN__LOOP_NS && seat != NULL && seat->crew == crew && !seat->looping &&
                may_have_helpers(crew);
  if (shared && crew->profile != NULL && tn__seat_owns(seat)) note_loop(crew, all);
  if (!shared || crew->alone || loop_cut(&seat->loop, n, grain, cost_ns, crew->client->max_helpers + 1) == 0) {
    fn(user, 0, n);
    return;
  }
  seat->loop.fn = fn;
  seat->loop.user = user;
  seat->loop.float_mode = tn__float_mode();
  seat->loop.account = tn__account_now;
  seat->loop.calling = tn__plugin_call_now;
  run_shared(seat, &seat->loop);
}
