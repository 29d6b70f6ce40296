/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: who calls takes parts from the front, who helps takes them from the back. */
#include <core/pool/float_mode.h>
#include <core/pool/pool_internal.h>

#define LEAST_NS 2000      /* a part that is worth being taken by itself */
#define PART_NS 12000      /* a part, where a thread has several: halves of a loop may differ by half of their time */
#define PARTS_PER_THREAD 4 /* at most: so that who comes late, or is slow, gets less */
#define CALLS_AT_ONCE 2    /* whom each one that comes calls, so that many come in few rounds */

/* ---- parts ---- */

static bool take(tn__loop_share *l, bool first, uint32_t *part)
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

static bool more_may_come(const tn__crew *crew)
{
  return atomic_load_explicit(&crew->seated, memory_order_relaxed) < crew->client->max_helpers;
}

/* Calls for help when what is left is worth it: of this loop, or of those that the step has ahead (owner: it has
 * written that down). `held`: parts that the calling thread has and did not run yet. Who was called is counted though
 * he is not there yet. */
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

/* What belongs to a thread, and parts of a loop depend on. */
typedef struct surroundings {
  uint32_t float_mode;
  tn__account *account;
  const tn__plugin_call *const volatile *helped;
} surroundings;

static surroundings enter(const tn__loop_share *l)
{
  surroundings mine = { tn__float_mode(), tn__account_now, tn__plugin_call_helped };
  if (l->float_mode != mine.float_mode) tn__set_float_mode(l->float_mode);
  tn__account_now = l->account;
  tn__plugin_call_helped = &l->calling;
  return mine;
}

static void leave(const tn__loop_share *l, surroundings mine)
{
  if (l->float_mode != mine.float_mode) tn__set_float_mode(mine.float_mode);
  tn__account_now = mine.account;
  tn__plugin_call_helped = mine.helped;
}

/* All parts that are left, one after the other. Gives how many it took. */
static uint32_t help(tn__seat *helper, tn__seat *other)
{
  tn__loop_share *l = &other->loop;
  uint32_t part, done = 0;
  surroundings mine = { 0, NULL };
  while (take(l, false, &part)) {
    if (done++ == 0) {
      helper->looping = true;
      mine = enter(l);
      if (more_may_come(helper->crew)) call_for_help(helper->crew, l, 0, l->part_ns);
    }
    run_part(l, part);
  }
  if (done == 0) return 0;
  leave(l, mine);
  helper->looping = false;
  return done;
}

bool tn__loop_help(tn__seat *helper, tn__seat *other)
{
  tn__loop_share *l = &other->loop;
  const tn__pool_client *client = helper->crew->client;
  uint32_t done = 0;
  if (!tn__loop_counts(client)) {
    done = help(helper, other);
  } else {
    if (atomic_fetch_add_explicit(&l->helpers, 1, memory_order_relaxed) < client->max_helpers)
      done = help(helper, other);
    atomic_fetch_sub_explicit(&l->helpers, 1, memory_order_relaxed);
  }
  if (done > 0 && atomic_fetch_sub_explicit(&l->left, done, memory_order_acq_rel) == done) tn__unpark(&other->parker);
  return done > 0;
}

/* ---- the caller ---- */

static bool all_done(const tn__loop_share *l) { return atomic_load_explicit(&l->left, memory_order_acquire) == 0; }

/* Until those who took parts have ended them. */
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

/* The parts: at least `grain` items each, and edges that vectors like. 0: it is not worth two. */
static uint32_t cut(tn__loop_share *l, int64_t n, int64_t grain, double cost_ns, uint32_t threads)
{
  double all = (double)n * cost_ns, each = all / threads / PART_NS;
  double most = threads * (each < 1 ? 1 : each > PARTS_PER_THREAD ? PARTS_PER_THREAD : (double)(int)each);
  if (all / LEAST_NS < most) most = all / LEAST_NS;
  if (grain < 1) grain = 1;
  if ((double)(n / grain) < most) most = (double)(n / grain);
  if (!(most >= 2)) return 0;
  int64_t parts = (int64_t)(most < 1 << 20 ? most : 1 << 20);
  int64_t size = n / parts + (n % parts != 0);
  if (size < grain) size = grain;
  if (size >= 256) size += -size & (size >= 1024 ? 63 : 15);
  parts = n / size + (n % size >= grain || n < size);
  if (parts > threads && parts % threads != 0) { /* somebody would have one more */
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

/* Whether somebody would come: one who looks for work, or was not seated yet. */
static bool somebody(const tn__crew *crew)
{
  return crew->client->max_helpers > 0 && tn__pool_alive(crew->client->pool);
}

/* What was said of the cost may be far off: when it matters, the first part, which the caller has, is measured. Gives
 * whether it was run. */
static bool begin(tn__seat *seat, tn__loop_share *l)
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

/* The first part is the caller's from the beginning. */
static void run_shared(tn__seat *seat, tn__loop_share *l)
{
  uint32_t part, done = 1;
  seat->looping = true;
  atomic_store_explicit(&l->left, l->n_parts, memory_order_relaxed);
  atomic_store_explicit(&l->range, UINT64_C(1) << 32 | l->n_parts, memory_order_release);
  if (!begin(seat, l)) run_part(l, 0);
  for (; take(l, true, &part); done++) run_part(l, part);
  if (done != l->n_parts && atomic_fetch_sub_explicit(&l->left, done, memory_order_acq_rel) != done)
    wait_for_helpers(seat);
  seat->looping = false;
}

/* A loop of a step whose kind is known. */
static void note(tn__crew *crew, double all)
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
                somebody(crew);
  if (shared && crew->profile != NULL && tn__seat_owns(seat)) note(crew, all);
  if (!shared || crew->alone || cut(&seat->loop, n, grain, cost_ns, crew->client->max_helpers + 1) == 0) {
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
