/* SPDX-License-Identifier: Apache-2.0 */
/* Ends in random order: a few threads set up, call, release, cancel, close, reset and destroy each other's sessions,
 * partial runs, callables and eager handles, and free everything that the library borrowed as soon as it reports that
 * it has finished with it. Nothing may be used after that, no call may hang, and no memory may leak.
 *
 *   stress_ends [--seconds N] [--seed S] [--threads T]
 *
 * Without options: 2 s, four threads. Sanitizers detect more than a plain build does. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tenon/kit.h>
#include <tenon/metadata.h>
#include <tenon/runtime.h>

#include "conformance/support/eager_kit.h"
#include "conformance/support/partial_kit.h"

#define GRAPH START QUEUE("") COUNTS NODE("neg", "Neg", "input: 'x'", F)

enum { SLOTS = 3, RUNS = 4, CALLABLES = 2, EAGER = 2, HANDLES = 8, MAX_THREADS = 64 };

static struct {
  int64_t seconds;
  uint64_t seed;
  int threads;
} asked = { 2, 1, 4 };

static ts shared; /* the graph and the options */
static atomic_bool stop;
static atomic_uint_fast32_t setups, releases, calls, cancels, closes, resets, deletes, eager_calls, told;

/* ---- a runtime that is notified of steps that end ---- */

struct tn_runtime_session {
  atomic_int alive;
};

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return TN_RESOURCE_EXHAUSTED;
  atomic_store(&(*out)->alive, 1);
  return TN_OK;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  return strcmp(tn_session_options_target(options), "test.told") == 0;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  CHECK_INT(atomic_exchange(&session->alive, 0), 1);
  free(session);
}

static tn_status run_step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                          tn_step *step, tn_error *err)
{
  return tn_kit_step(executable, step, err);
}

/* The step has not ended, and the session exists. */
static void cancel_step(const tn_session_factory *self, tn_runtime_session *session, tn_step *step)
{
  CHECK(tn_step_cancelled(step));
  CHECK_INT(atomic_load(&session->alive), 1);
  atomic_fetch_add(&told, 1);
}

static tn_status reset_sessions(const tn_session_factory *self, const tn_session_options *options,
                                const char *const *containers, size_t n, uint32_t flags, tn_error *err)
{
  return tn_kit_reset(self, containers, n, flags, err);
}

static const tn_session_factory told_factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.told",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .step = run_step,
  .cancel = cancel_step,
  .reset = reset_sessions,
};

static const char *const targets[] = { "direct", "threaded:threads=3", "test.told" };
enum { TARGETS = sizeof targets / sizeof *targets };

/* ---- shared by the threads ---- */

typedef struct worker {
  pthread_t thread;
  uint64_t random;
} worker;
static worker workers[MAX_THREADS];

static uint32_t any(worker *w, uint32_t below)
{
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (uint32_t)(w->random >> 33) % below;
}

/* A partial run. The thread that takes `id` releases the run, and then frees the metadata. */
typedef struct place {
  _Atomic uint64_t id; /* 0 = none */
  tn_run_metadata *metadata;
  pthread_mutex_t mu;
  tn_cancellation *token; /* guarded by mu */
} place;

typedef struct slot {
  pthread_rwlock_t lock; /* for writing: the session is replaced */
  tn_session *session;
  place places[RUNS];
  pthread_mutex_t setting_up; /* a place */
  _Atomic uint64_t callables[CALLABLES];
} slot;
static slot slots[SLOTS];

typedef struct eager_slot {
  pthread_rwlock_t lock;
  te te;
  _Atomic uint64_t handles[HANDLES];
  te_told told;
} eager_slot;
static eager_slot eager[EAGER];

/* ---- partial runs ---- */

/* Other threads cancel it at any time, even while the session is destroyed. */
static void set_token(place *p, tn_cancellation *token)
{
  pthread_mutex_lock(&p->mu);
  tn_cancellation_unref(p->token);
  p->token = token;
  pthread_mutex_unlock(&p->mu);
}

static tn_run_options traced(tn_run_metadata *metadata, tn_cancellation *token)
{
  tn_run_options options;
  tn_run_options_init(&options);
  options.trace_level = 3;
  options.output_partition_graphs = 1;
  options.metadata = metadata;
  options.cancellation = token;
  return options;
}

static void set_up(worker *w, slot *at)
{
  static const char *const feed = "x", *const fetches[] = { "late", "ten" };
  pthread_mutex_lock(&at->setting_up);
  place *p = NULL;
  for (int i = 0; p == NULL && i < RUNS; i++)
    if (at->places[i].metadata == NULL) p = &at->places[i];
  if (p != NULL) {
    tn_partial_run run;
    tn_cancellation *token = NULL;
    CHECK_INT(tn_run_metadata_create(&p->metadata, NULL), TN_OK);
    CHECK_INT(tn_cancellation_create(NULL, &token, NULL), TN_OK);
    tn_run_options options = traced(p->metadata, token);
    if (any(w, 4) == 0) options.timeout_ms = 1;
    tn_status st = tn_session_partial_setup(at->session, &options, &feed, 1, fetches, 2, NULL, 0, &run, NULL);
    CHECK_MSG(st == TN_OK || st == TN_CANCELLED || st == TN_DEADLINE_EXCEEDED, "setup: %s", tn_status_name(st));
    set_token(p, token);
    if (st == TN_OK) {
      atomic_store(&p->id, run.id);
      atomic_fetch_add(&setups, 1);
    } else {
      tn_run_metadata_destroy(p->metadata);
      p->metadata = NULL;
      set_token(p, NULL);
    }
  }
  pthread_mutex_unlock(&at->setting_up);
}

/* A call; it may wait in the queue until another thread ends it. */
static void call_run(worker *w, slot *at)
{
  static const char *const feed = "x", *const fetches[] = { "late", "ten" };
  tn_partial_run run = { atomic_load(&at->places[any(w, RUNS)].id) };
  if (run.id == 0) return;
  bool feeds = any(w, 2), fetch = any(w, 2);
  tn_tensor *x = ts_scalar(1), *out = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_partial_run(at->session, run, &feed, &x, feeds, &fetches[any(w, 2)], &out, fetch, &err);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED || st == TN_INVALID_ARGUMENT || st == TN_DEADLINE_EXCEEDED,
            "call: %s: %s", tn_status_name(st), tn_error_message(&err));
  tn_tensor_unref(x);
  tn_tensor_unref(out);
  tn_error_clear(&err);
  atomic_fetch_add(&calls, 1);
}

/* After the release this thread owns the metadata: it is read, and freed. */
static void release_run(slot *at, place *p)
{
  uint64_t id = atomic_exchange(&p->id, 0);
  if (id == 0) return;
  tn_status st = tn_session_partial_release(at->session, (tn_partial_run){ id }, NULL);
  CHECK_MSG(st == TN_OK || st == TN_INVALID_ARGUMENT, "release: %s", tn_status_name(st)); /* it ended by itself */
  tn_metadata_summary s = { .struct_size = sizeof s };
  CHECK_INT(tn_run_metadata_summary(p->metadata, &s, NULL), TN_OK);
  CHECK_INT(s.partition_graphs, 1);
  for (size_t i = 0; i < s.records; i++) {
    tn_node_record r = { .struct_size = sizeof r };
    CHECK_INT(tn_run_metadata_record(p->metadata, i, &r, NULL), TN_OK);
  }
  set_token(p, NULL);
  pthread_mutex_lock(&at->setting_up);
  tn_run_metadata_destroy(p->metadata);
  p->metadata = NULL;
  pthread_mutex_unlock(&at->setting_up);
  atomic_fetch_add(&releases, 1);
}

static void note_call(void *user) { atomic_fetch_add((atomic_int *)user, 1); }

/* Cancels a run's token, or registers a callback; a callback that was deregistered never runs. */
static void cancel_run(worker *w, slot *at)
{
  place *p = &at->places[any(w, RUNS)];
  pthread_mutex_lock(&p->mu);
  tn_cancellation *token = tn_cancellation_ref(p->token);
  pthread_mutex_unlock(&p->mu);
  if (token == NULL) return;
  if (any(w, 2)) {
    tn_cancellation_cancel(token);
    atomic_fetch_add(&cancels, 1);
  } else {
    atomic_int *called = calloc(1, sizeof *called);
    uint64_t key = called == NULL ? 0 : tn_cancellation_register(token, note_call, called);
    tn_bool removed = tn_cancellation_deregister(token, key);
    CHECK(called == NULL || atomic_load(called) == (key != 0 && !removed));
    free(called);
  }
  tn_cancellation_unref(token);
}

/* ---- steps and callables ---- */

static void run_step_of(worker *w, slot *at)
{
  bk_step s = { .session = at->session, .fetch = any(w, 4) ? "ten" : "late", .timeout_ms = 1 + any(w, 5) };
  CHECK_INT(tn_run_metadata_create(&s.metadata, NULL), TN_OK);
  CHECK_INT(tn_cancellation_create(NULL, &s.cancellation, NULL), TN_OK);
  bk_run(&s);
  tn_cancellation_unref(s.cancellation);
  tn_run_metadata_destroy(s.metadata);
  bk_done(&s);
}

static void release_callable(tn_session *session, uint64_t id)
{
  if (id != 0) CHECK_INT(tn_session_release_callable(session, (tn_callable){ id }, NULL), TN_OK);
}

static void call_callable(worker *w, slot *at)
{
  static const char *const feed = "x", *const fetch = "neg";
  uint32_t i = any(w, CALLABLES), action = any(w, 6);
  uint64_t id = atomic_load(&at->callables[i]);
  if (id == 0 || action == 0) {
    tn_callable made;
    tn_status st = tn_session_make_callable(at->session, NULL, &feed, 1, &fetch, 1, NULL, 0, &made, NULL);
    CHECK_MSG(st == TN_OK || st == TN_CANCELLED, "a callable: %s", tn_status_name(st));
    if (st == TN_OK) release_callable(at->session, atomic_exchange(&at->callables[i], made.id));
    return;
  }
  if (action == 1) {
    if (atomic_compare_exchange_strong(&at->callables[i], &id, 0)) release_callable(at->session, id);
    return;
  }
  tn_tensor *x = ts_scalar(2), *out = NULL;
  tn_run_metadata *metadata = NULL;
  CHECK_INT(tn_run_metadata_create(&metadata, NULL), TN_OK);
  tn_status st = tn_session_run_callable(at->session, (tn_callable){ id }, &x, 1, &out, 1, metadata, NULL);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED || st == TN_INVALID_ARGUMENT, "callable: %s", tn_status_name(st));
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), -2, 0);
  tn_run_metadata_destroy(metadata);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
}

/* ---- ends of sessions ---- */

static tn_session *open_session(worker *w)
{
  tn_session_options *o = NULL;
  tn_session *s = NULL;
  CHECK_INT(tn_session_options_copy(shared.options, &o, NULL), TN_OK);
  CHECK_INT(tn_session_options_set_target(o, targets[any(w, TARGETS)], NULL), TN_OK);
  CHECK_INT(tn_session_create(o, &s, NULL), TN_OK);
  tn_session_options_destroy(o);
  tn_status st = tn_session_set_graph(s, shared.graph, NULL);
  CHECK_MSG(st == TN_OK || st == TN_CANCELLED, "the graph: %s", tn_status_name(st)); /* a reset may intervene */
  return s;
}

static void close_slot(slot *at)
{
  pthread_rwlock_rdlock(&at->lock);
  CHECK_INT(tn_session_close(at->session, NULL), TN_OK);
  pthread_rwlock_unlock(&at->lock);
  atomic_fetch_add(&closes, 1);
}

/* The runs of the places are released first, or end with the session. */
static void end_slot(worker *w, slot *at)
{
  bool release = any(w, 2);
  for (int i = 0; i < RUNS; i++)
    if (release) release_run(at, &at->places[i]);
  tn_session_destroy(at->session);
  for (int i = 0; i < RUNS; i++) {
    place *p = &at->places[i];
    atomic_store(&p->id, 0);
    set_token(p, NULL);
    tn_run_metadata_destroy(p->metadata);
    p->metadata = NULL;
  }
  for (int i = 0; i < CALLABLES; i++) atomic_store(&at->callables[i], 0);
}

static void replace(worker *w, slot *at)
{
  close_slot(at); /* makes threads waiting in it release the lock */
  pthread_rwlock_wrlock(&at->lock);
  end_slot(w, at);
  at->session = open_session(w);
  pthread_rwlock_unlock(&at->lock);
  atomic_fetch_add(&deletes, 1);
}

static void reset_on(const char *target)
{
  tn_session_options *o = NULL;
  CHECK_INT(tn_session_options_copy(shared.options, &o, NULL), TN_OK);
  CHECK_INT(tn_session_options_set_target(o, target, NULL), TN_OK);
  CHECK_INT(tn_reset(o, NULL, 0, NULL), TN_OK);
  tn_session_options_destroy(o);
  atomic_fetch_add(&resets, 1);
}

/* ---- eager sessions ---- */

static void open_eager(worker *w, eager_slot *at)
{
  static const int32_t strategies[] = { TN_EAGER_ON_SESSION_CLOSE, TN_EAGER_ON_SAFE_POINTS, TN_EAGER_IN_BACKGROUND };
  te_init(&at->te, targets[any(w, 2)], strategies[any(w, 3)]);
  at->te.options.async = (tn_bool)any(w, 2);
  te_start(&at->te);
}

static bool has_ended(tn_status st) { return st == TN_CANCELLED || st == TN_FAILED_PRECONDITION; }

/* Another thread may release a handle of the table at any time. */
static void call_eager(worker *w, eager_slot *at)
{
  tn_eager_handle x = { atomic_load(&at->handles[any(w, HANDLES)]) }, y = { 0 };
  tn_error err = TN_ERROR_INIT;
  tn_status st;
  float one = 1;
  if (x.id == 0 || any(w, 4) == 0) {
    tn_tensor *tensor = NULL;
    CHECK_INT(tn_tensor_wrap(TN_FLOAT, NULL, 0, &at->told.value, sizeof(float), te_tell, &at->told, &tensor, NULL),
              TN_OK);
    st = tn_eager_from_tensor(at->te.session, tensor, &y, &err);
    tn_tensor_unref(tensor);
  } else if (any(w, 3) == 0) {
    tn_tensor *tensor = NULL;
    st = tn_eager_tensor(at->te.session, x, &tensor, &err);
    tn_tensor_unref(tensor);
  } else if (any(w, 3) == 0) {
    st = tn_eager_from_data(at->te.session, TN_FLOAT, NULL, 0, &one, sizeof one, &y, &err);
  } else {
    st = tn_eager_add(at->te.session, x, x, &y, &err);
  }
  CHECK_MSG(st == TN_OK || st == TN_INVALID_ARGUMENT || has_ended(st), "eager: %s: %s", tn_status_name(st),
            tn_error_message(&err));
  tn_eager_handle old = { atomic_exchange(&at->handles[any(w, HANDLES)], y.id) };
  st = tn_eager_release(at->te.session, old, NULL);
  CHECK_MSG(st == TN_OK || has_ended(st), "release of a handle: %s", tn_status_name(st));
  if (any(w, 8) == 0) tn_eager_safe_point(at->te.session, NULL);
  tn_error_clear(&err);
  atomic_fetch_add(&eager_calls, 1);
}

static void end_eager(eager_slot *at)
{
  te_fini(&at->te);
  for (int i = 0; i < HANDLES; i++) atomic_store(&at->handles[i], 0);
}

static void replace_eager(worker *w, eager_slot *at)
{
  pthread_rwlock_rdlock(&at->lock);
  CHECK_INT(tn_eager_session_close(at->te.session, NULL), TN_OK);
  pthread_rwlock_unlock(&at->lock);
  pthread_rwlock_wrlock(&at->lock);
  end_eager(at);
  open_eager(w, at);
  pthread_rwlock_unlock(&at->lock);
}

static void in_eager(worker *w, eager_slot *at, bool close)
{
  pthread_rwlock_rdlock(&at->lock);
  if (close) CHECK_INT(tn_eager_session_close(at->te.session, NULL), TN_OK);
  else call_eager(w, at);
  pthread_rwlock_unlock(&at->lock);
}

/* ---- the threads ---- */

static void in_session(worker *w, slot *at)
{
  pthread_rwlock_rdlock(&at->lock);
  switch (any(w, 8)) {
  case 0: case 1: set_up(w, at); break;
  case 2: call_run(w, at); break;
  case 3: cancel_run(w, at); break;
  case 4: run_step_of(w, at); break;
  case 5: call_callable(w, at); break;
  default: release_run(at, &at->places[any(w, RUNS)]); break;
  }
  pthread_rwlock_unlock(&at->lock);
}

/* The first thread never waits, so that it ends the operations that others wait for. */
static void *work(void *arg)
{
  worker *w = arg;
  while (!atomic_load(&stop)) {
    slot *at = &slots[any(w, SLOTS)];
    uint32_t action = any(w, 100);
    if (w == workers) action %= 20;
    if (action < 2) replace(w, at);
    else if (action < 4) close_slot(at);
    else if (action < 5) reset_on(targets[any(w, TARGETS)]);
    else if (action < 6) replace_eager(w, &eager[any(w, EAGER)]);
    else if (action < 7) in_eager(w, &eager[any(w, EAGER)], true);
    else if (action < 20 && w == workers) cancel_run(w, at);
    else if (action < 40) in_eager(w, &eager[any(w, EAGER)], false);
    else in_session(w, at);
  }
  return NULL;
}

static void init_slots(void)
{
  for (int i = 0; i < SLOTS; i++) {
    pthread_rwlock_init(&slots[i].lock, NULL);
    pthread_mutex_init(&slots[i].setting_up, NULL);
    for (int p = 0; p < RUNS; p++) pthread_mutex_init(&slots[i].places[p].mu, NULL);
  }
  for (int i = 0; i < EAGER; i++) pthread_rwlock_init(&eager[i].lock, NULL);
}

static void fini_slots(void)
{
  for (int i = 0; i < SLOTS; i++) {
    pthread_rwlock_destroy(&slots[i].lock);
    pthread_mutex_destroy(&slots[i].setting_up);
    for (int p = 0; p < RUNS; p++) pthread_mutex_destroy(&slots[i].places[p].mu);
  }
  for (int i = 0; i < EAGER; i++) pthread_rwlock_destroy(&eager[i].lock);
}

static void round_of(double seconds)
{
  atomic_store(&stop, false);
  for (int i = 0; i < asked.threads; i++)
    workers[i].random = (asked.seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)i * 0xD1B54A32D192ED03u;
  for (int i = 0; i < SLOTS; i++) slots[i].session = open_session(workers);
  for (int i = 0; i < EAGER; i++) open_eager(workers, &eager[i]);
  for (int i = 0; i < asked.threads; i++) REQUIRE_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  ts_sleep_ms((int)(seconds * 1000));
  atomic_store(&stop, true);
  for (int i = 0; i < asked.threads; i++) {
    for (int k = 0; k < SLOTS; k++) close_slot(&slots[k]);
    pthread_join(workers[i].thread, NULL);
  }
  for (int i = 0; i < SLOTS; i++) end_slot(workers, &slots[i]);
  for (int i = 0; i < EAGER; i++) end_eager(&eager[i]);
  for (int i = 0; i < TARGETS; i++) reset_on(targets[i]);
}

/* S-LIFE-03 to 05, S-LIFE-10, S-LIFE-12, S-RO-07, S-RST-02, S-RST-15, S-CAN-04 to 07, S-CAL-03, S-MD-04, S-PR-23,
 * S-PR-24, S-PR-31, S-PR-32, S-PR-34, S-EAG-19, S-EAG-20 */
static void stress_ends__freed_objects_are_not_used(void)
{
  bk_open(&shared, false, GRAPH);
  CHECK_INT(tn_session_options_set_string(shared.options, "kernel_plugins", "never", NULL), TN_OK);
  REQUIRE_OK(tn_runtime_register("test.told", &told_factory, &shared.err), &shared.err);
  tn_session_destroy(shared.session);
  shared.session = NULL;
  printf("# seed %llu, %lld s, %d threads\n", (unsigned long long)asked.seed, (long long)asked.seconds, asked.threads);
  alarm((unsigned)(300 + 2 * asked.seconds)); /* replaces the usual limit of a test */
  init_slots();
  round_of(0.3); /* creates the objects that the library makes once */
  uint64_t blocks = tn_test_live_blocks();
  int rounds = 0;
  for (int64_t end = ts_now_ms() + 1000 * asked.seconds; ts_now_ms() < end; rounds++) {
    asked.seed++;
    round_of(1);
  }
  CHECK_INT(tn_test_live_blocks(), blocks);
  fini_slots();
  printf(
      "# %d rounds: %u partial runs, %u calls, %u released, %u cancelled, %u closes, %u resets, %u sessions deleted, "
      "%u eager calls, %u steps notified\n",
      rounds, (unsigned)setups, (unsigned)calls, (unsigned)releases, (unsigned)cancels, (unsigned)closes,
      (unsigned)resets, (unsigned)deletes, (unsigned)eager_calls, (unsigned)told);
  CHECK_OK(tn_runtime_unregister("test.told", &shared.err), &shared.err);
  ts_fini(&shared);
}

static int threads_of(long long n)
{
  if (n < 2) return 2;
  return n > MAX_THREADS ? MAX_THREADS : (int)n;
}

int main(int argc, char **argv)
{
  static const tap_test tests[] = { TAP_TEST(stress_ends__freed_objects_are_not_used) };
  int at = 1;
  for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
    long long n = strtoll(argv[at + 1], NULL, 10);
    if (strcmp(argv[at], "--seconds") == 0) asked.seconds = n;
    else if (strcmp(argv[at], "--seed") == 0) asked.seed = (uint64_t)n;
    else if (strcmp(argv[at], "--threads") == 0) asked.threads = threads_of(n);
    else return fprintf(stderr, "stress_ends: no such option: %s\n", argv[at]), 2;
  }
  argv[at - 1] = argv[0];
  return tap_main(argc - at + 1, argv + at - 1, __FILE__, tests, 1);
}
