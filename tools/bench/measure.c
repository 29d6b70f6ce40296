/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of `tenon bench`. Rows take turns, so that other load on the machine affects all of them equally. In
 * a turn --concurrency clients run steps on the row's session. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <tools/bench/bench.h>

/* A turn takes TURN_NS, or an eighth of the measuring time if that is less. The warm-up ends when the medians of two
 * successive windows are each within SAME of the one before. */
#define TURN_NS 250000000.0
#define WINDOW_MIN_NS 2000000.0
#define WINDOW_MAX_NS 100000000.0
#define SAME 0.03
#define WARM_UP_MOST_NS 2000000000.0

typedef struct turn turn;

typedef struct client {
  turn *turn;
  size_t number;
  pthread_t thread;
  tn_tensor **fetched;
  bench_histogram *latencies;
  uint64_t first, last; /* start of the first step and end of the last */
  uint64_t steps;
  tn_status status;
  tn_error err;
} client;

struct turn {
  const bench *b;
  bench_case *c;
  uint64_t ns; /* duration; at least one step is run */
  bool warm;   /* first run a step that is not counted */
  client *clients;
  size_t n;
  atomic_bool stop;
  pthread_mutex_t mutex; /* guards the fields below */
  pthread_cond_t change;
  size_t ready;
  bool go;
};

/* ---- steps ---- */

/* Device memory, and memory that a device may read at any time, must not be reused for another step's results. */
static bool is_writable(const tn_tensor *t)
{
  const tn_buffer_desc *memory = tn_buffer_describe(tn_tensor_buffer(t));
  bool constant = memory != NULL && memory->ownership == TN_BUFFER_IMMUTABLE;
  return !constant && (tn_tensor_data(t) != NULL || tn_tensor_bytes(t) == 0);
}

tn_status bench_step(const bench *b, const bench_case *c, tn_callable callable, tn_tensor **fetched,
                     tn_run_metadata *metadata, tn_error *err)
{
  tn_status status = tn_session_run_callable(c->session, callable, b->feeds, b->n_inputs, fetched, b->fetches.n,
                                             metadata, err);
  bool keep = b->request->reuse && status == TN_OK;
  for (size_t i = 0; i < b->fetches.n; i++) {
    if (keep && is_writable(fetched[i])) continue;
    tn_tensor_unref(fetched[i]);
    fetched[i] = NULL;
  }
  return status;
}

static tn_status one_step(client *me, tn_error *err)
{
  const turn *t = me->turn;
  me->steps++;
  return bench_step(t->b, t->c, t->c->callable, me->fetched, NULL, err);
}

/* Clients start together, so that one client's warm-up does not overlap another's measured steps. */
static void wait_for_all(turn *t)
{
  if (t->n == 1) return;
  pthread_mutex_lock(&t->mutex);
  if (++t->ready == t->n) t->go = true;
  if (t->go) pthread_cond_broadcast(&t->change);
  while (!t->go) pthread_cond_wait(&t->change, &t->mutex);
  pthread_mutex_unlock(&t->mutex);
}

/* Reads the clock once per step: a step lasts from one call to the next, including the release of its results. */
static void *run_client(void *user)
{
  client *me = user;
  turn *t = me->turn;
  if (t->warm) me->status = one_step(me, &me->err);
  if (me->status != TN_OK) atomic_store(&t->stop, true);
  wait_for_all(t);
  uint64_t now = tool_now_ns(), end = now + t->ns;
  me->first = me->last = now;
  while (me->status == TN_OK && !atomic_load_explicit(&t->stop, memory_order_relaxed)) {
    me->status = one_step(me, &me->err);
    if (me->status != TN_OK) break;
    now = tool_now_ns();
    bench_histogram_add(me->latencies, now - me->last);
    me->last = now;
    if (now >= end || tool_interrupted() != 0) break;
  }
  if (me->status != TN_OK) atomic_store(&t->stop, true);
  return NULL;
}

/* ---- turns ---- */

/* Runs each client on its own thread. If a thread cannot be created, the turn fails. */
static tn_status run_threads(turn *t, tn_error *err)
{
  size_t made = 0;
  tn_status status = TN_OK;
  while (made < t->n && pthread_create(&t->clients[made].thread, NULL, run_client, &t->clients[made]) == 0) made++;
  if (made < t->n) {
    atomic_store(&t->stop, true);
    status =
        tn_error_set(err, TN_RESOURCE_EXHAUSTED, "--concurrency %zu: only %zu threads could be created", t->n, made);
    pthread_mutex_lock(&t->mutex);
    t->go = true;
    pthread_cond_broadcast(&t->change);
    pthread_mutex_unlock(&t->mutex);
  }
  for (size_t i = 0; i < made; i++) pthread_join(t->clients[i].thread, NULL);
  return status;
}

/* Collects the clients' measurements. */
static tn_status collect(turn *t, bench_histogram *into, uint64_t *wall, tn_error *err)
{
  uint64_t first = UINT64_MAX, last = 0;
  client *failed = NULL;
  for (size_t i = 0; i < t->n; i++) {
    client *me = &t->clients[i];
    bench_histogram_merge(into, me->latencies);
    t->c->steps += me->steps;
    if (me->latencies->n > 0 && me->first < first) first = me->first;
    if (me->latencies->n > 0 && me->last > last) last = me->last;
    if (me->status != TN_OK && failed == NULL) failed = me;
  }
  *wall += last > first ? last - first : 0;
  if (failed == NULL) return TN_OK;
  tn_error_copy(err, &failed->err);
  if (t->n == 1) tn_error_prefix(err, "step %" PRIu64, t->c->steps);
  return failed->status;
}

static void make_clients(turn *t)
{
  t->clients = tool_alloc(t->n, sizeof(*t->clients));
  for (size_t i = 0; i < t->n; i++) {
    client *me = &t->clients[i];
    tn_error none = TN_ERROR_INIT;
    me->turn = t;
    me->err = none;
    me->fetched = tool_alloc(t->b->fetches.n, sizeof(tn_tensor *));
    me->latencies = tool_alloc(1, sizeof(*me->latencies));
    bench_histogram_clear(me->latencies);
  }
}

static void free_clients(turn *t)
{
  for (size_t i = 0; i < t->n; i++) {
    for (size_t k = 0; k < t->b->fetches.n; k++) tn_tensor_unref(t->clients[i].fetched[k]);
    free(t->clients[i].fetched);
    free(t->clients[i].latencies);
    tn_error_clear(&t->clients[i].err);
  }
  free(t->clients);
}

/* Runs a turn of the row. Latencies and time are added even if it fails. */
static tn_status run_turn(const bench *b, bench_case *c, double ns, bool warm, bench_histogram *into, uint64_t *wall,
                          tn_error *err)
{
  turn t = { .b = b, .c = c, .ns = (uint64_t)ns, .n = (size_t)b->request->concurrency };
  tn_status status = TN_OK;
  /* Threads and their buffers are new in each turn. */
  t.warm = warm || ((t.n > 1 || b->request->reuse) && (double)c->first_ns < TURN_NS);
  atomic_init(&t.stop, false);
  pthread_mutex_init(&t.mutex, NULL);
  pthread_cond_init(&t.change, NULL);
  make_clients(&t);
  if (t.n == 1)
    run_client(&t.clients[0]);
  else
    status = run_threads(&t, err);
  if (status == TN_OK) status = collect(&t, into, wall, err);
  free_clients(&t);
  pthread_cond_destroy(&t.change);
  pthread_mutex_destroy(&t.mutex);
  return status;
}

/* ---- before the turns ---- */

static tn_status run_inits(const bench *b, bench_case *c, const tn_run_options *options, tn_error *err)
{
  const bench_list *inits = &b->request->inits;
  tn_status status = TN_OK;
  for (size_t i = 0; i < inits->n && status == TN_OK; i++) {
    status = tn_session_run(c->session, options, b->feed_names, b->feeds, b->n_inputs, NULL, NULL, 0, &inits->items[i],
                            1, NULL, err);
    if (status != TN_OK) tn_error_prefix(err, "init '%s'", inits->items[i]);
  }
  return status;
}

static void say_not_reused(bench *b, const bench_case *c, tn_tensor *const *fetched)
{
  for (size_t i = 0; i < b->fetches.n; i++) {
    if (fetched[i] != NULL) continue;
    tool_text name = { 0 };
    bench_case_text(c, &name);
    bench_note(b, "%s: fetch '%s' stays on a device, so no step can write into it again: --reuse does not apply to it",
               name.data, b->fetches.items[i]);
    tool_text_fini(&name);
  }
}

static tn_status first_step(bench *b, bench_case *c, tn_error *err)
{
  tn_error none = TN_ERROR_INIT;
  turn t = { .b = b, .c = c, .n = 1 };
  client me = { .turn = &t, .fetched = tool_alloc(b->fetches.n, sizeof(tn_tensor *)), .err = none };
  uint64_t started = tool_now_ns();
  tn_status status = one_step(&me, err);
  c->first_ns = tool_now_ns() - started;
  c->steps = 1;
  if (status != TN_OK) tn_error_prefix(err, "step 1");
  else if (b->request->reuse) say_not_reused(b, c, me.fetched);
  for (size_t i = 0; i < b->fetches.n; i++) tn_tensor_unref(me.fetched[i]);
  free(me.fetched);
  return status;
}

/* Time limits apply to steps, not to the warm-up; Ctrl-C cancels it. */
static tn_status warm_callable(const bench *b, bench_case *c, tn_error *err)
{
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = INT64_MAX / 2000000;
  options.cancellation = b->cancellation;
  tn_status status = tn_session_warm_callable(c->session, c->callable, &options, b->feeds, b->n_inputs, NULL, err);
  if (status != TN_OK) tn_error_prefix(err, "warming up");
  return status;
}

static tn_status prepare(bench *b, bench_case *c, tn_error *err)
{
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = (int64_t)b->request->timeout_ms;
  options.cancellation = b->cancellation;
  tool_interrupt_doing("a session was opened");
  tn_status status = bench_open_case(b, c, err);
  tool_interrupt_doing(NULL);
  if (status == TN_OK) status = run_inits(b, c, &options, err);
  tool_interrupt_doing("the steps were prepared");
  uint64_t started = tool_now_ns();
  if (status == TN_OK)
    status = tn_session_make_callable(c->session, &options, b->feed_names, b->n_inputs, b->fetches.items, b->fetches.n,
                                      b->targets.items, b->targets.n, &c->callable, err);
  if (status == TN_OK && b->request->warm_up) status = warm_callable(b, c, err);
  c->prepare_ns = tool_now_ns() - started;
  tool_interrupt_doing(NULL);
  return status == TN_OK ? first_step(b, c, err) : status;
}

static bool same(uint64_t a, uint64_t b)
{
  double x = (double)a, y = (double)b;
  return x <= y * (1 + SAME) && y <= x * (1 + SAME);
}

/* Runs until the median of a window is stable, for at most two seconds or the measuring time. */
static tn_status warm_up(const bench *b, bench_case *c, tn_error *err)
{
  double most = b->request->seconds * 1e9, window = most / 20;
  if (most > WARM_UP_MOST_NS) most = WARM_UP_MOST_NS;
  if (window > WINDOW_MAX_NS) window = WINDOW_MAX_NS;
  if (window < WINDOW_MIN_NS) window = WINDOW_MIN_NS;
  bench_histogram *h = tool_alloc(1, sizeof(*h));
  uint64_t before = 0, steps = c->steps;
  int alike = 0;
  tn_status status = TN_OK;
  while (status == TN_OK && alike < 2 && tool_interrupted() == 0 && (c->warm_ns == 0 || (double)c->warm_ns < most)) {
    bench_histogram_clear(h);
    status = run_turn(b, c, window, false, h, &c->warm_ns, err);
    uint64_t median = bench_histogram_quantile(h, 0.5);
    alike = same(median, before) ? alike + 1 : 0;
    before = median;
  }
  c->stable = alike == 2;
  c->warm_steps = c->steps - steps;
  free(h);
  return status;
}

/* ---- the turns ---- */

static void show(const bench *b, tool_progress *progress)
{
  double done = 0, all = b->request->seconds * 1e9 * (double)b->n_cases;
  for (size_t i = 0; i < b->n_cases; i++) done += (double)b->cases[i].wall_ns;
  tool_progress_set(progress, done < all ? (uint64_t)(done / all * 100) : 100);
}

static void show_case(const bench_case *c, tool_progress *progress)
{
  if (progress == NULL || c->latencies->n == 0) return;
  char text[64];
  snprintf(text, sizeof(text), "  %.30s %.3g ms", c->label, (double)bench_histogram_quantile(c->latencies, 0.5) / 1e6);
  tool_progress_note(progress, text);
}

/* Alternates between forward and reverse order, so that a steady drift, such as rising temperature, affects all rows
 *
 * alike. */
static tn_status take_turns(bench *b, tool_progress *progress, tn_error *err)
{
  double all = b->request->seconds * 1e9, ns = all / 8 < TURN_NS ? all / 8 : TURN_NS;
  bool more = true;
  tn_status status = TN_OK;
  for (size_t round = 0; more && status == TN_OK && tool_interrupted() == 0; round++) {
    more = false;
    for (size_t i = 0; i < b->n_cases && status == TN_OK && tool_interrupted() == 0; i++) {
      bench_case *c = &b->cases[round % 2 == 0 ? i : b->n_cases - 1 - i];
      double left = all - (double)c->wall_ns, usual = bench_histogram_mean(c->latencies);
      if (c->turns > 0 && left <= 0) continue;
      /* The caches contain another row's data. */
      status = run_turn(b, c, left < ns ? left : ns, b->n_cases > 1 && usual < ns / 4, c->latencies, &c->wall_ns, err);
      c->turns++;
      more = more || (double)c->wall_ns < all;
      if (status != TN_OK) {
        tool_text name = { 0 };
        bench_case_text(c, &name);
        tn_error_prefix(err, "%s", name.data);
        tool_text_fini(&name);
      }
      show_case(c, progress);
      show(b, progress);
    }
  }
  return status;
}

static tn_status prepare_all(bench *b, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < b->n_cases && status == TN_OK && tool_interrupted() == 0; i++) {
    bench_case *c = &b->cases[i];
    status = prepare(b, c, err);
    if (status == TN_OK && tool_interrupted() == 0) status = warm_up(b, c, err);
    if (status == TN_OK) continue;
    tool_text name = { 0 };
    bench_case_text(c, &name);
    tn_error_prefix(err, "%s", name.data);
    tool_text_fini(&name);
  }
  return status;
}

tn_status bench_measure(bench *b, tn_error *err)
{
  tool_progress *progress = tool_progress_start("warming up", 0);
  tn_status status = prepare_all(b, err);
  tool_progress_end(progress);
  if (status == TN_OK && tool_interrupted() == 0) {
    progress = tool_progress_start("measuring", 100);
    status = take_turns(b, progress, err);
    tool_progress_end(progress);
  }
  if (tool_interrupted() == 0) return status;
  tn_error_clear(err); /* it names the cancelled step */
  double least = -1;
  for (size_t i = 0; i < b->n_cases; i++)
    if (least < 0 || (double)b->cases[i].wall_ns < least) least = (double)b->cases[i].wall_ns;
  if (least <= 0) return tn_error_set(err, TN_CANCELLED, "interrupted while warming up");
  return tn_error_set(err, TN_CANCELLED, "interrupted after %.3g of %g s", least / 1e9, b->request->seconds);
}
