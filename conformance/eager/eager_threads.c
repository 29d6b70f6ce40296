/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions and threads: several threads in one session, closing meanwhile, deletions that
 * block or call back, asynchronous calls. */
#include "conformance/support/eager_kit.h"

#define FOR_STRATEGIES(s) for (int32_t s = TN_EAGER_IN_BACKGROUND; s <= TN_EAGER_ON_SESSION_CLOSE; s++)

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 300 };

typedef struct worker {
  te *t;
  tn_eager_handle shared;
  tn_status status; /* the first status that was not OK */
  atomic_int *ready;
} worker;

static void *work(void *arg)
{
  worker *w = arg;
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *s = w->t->session;
  for (int i = 0; i < ROUNDS && w->status == TN_OK; i++) {
    tn_eager_handle x = { 0 }, y = { 0 }, z = { 0 };
    tn_tensor *tensor = NULL;
    const float value = (float)i;
    w->status = tn_eager_from_data(s, TN_FLOAT, NULL, 0, &value, sizeof value, &x, &err);
    if (w->status == TN_OK) w->status = tn_eager_add(s, x, w->shared, &y, &err);
    if (w->status == TN_OK) w->status = tn_eager_mul(s, y, y, &z, &err);
    if (w->status == TN_OK) w->status = tn_eager_tensor(s, z, &tensor, &err);
    if (w->status == TN_OK) CHECK_DOUBLE(ts_float(tensor), (value + 2) * (value + 2), 0);
    tn_tensor_unref(tensor);
    tn_eager_release(s, x, NULL);
    tn_eager_release(s, y, NULL);
    tn_eager_release(s, z, NULL);
    if (w->ready != NULL) atomic_fetch_add(w->ready, 1);
  }
  tn_error_clear(&err);
  return NULL;
}

static void eager_threads__work_in_one_session(void) /* S-EAG-25 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    te_open(&t, runtime, strategy);
    tn_eager_handle two = te_scalar(&t, 2);
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (worker){ .t = &t, .shared = two };
      REQUIRE_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      CHECK_INT(workers[i].status, TN_OK);
    }
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.allocated, 3 * THREADS * ROUNDS + 1);
    CHECK_INT(c.live, 1);
    te_fini(&t);
  }
}

static void eager_threads__close_may_come_in_the_middle(void) /* S-EAG-17, S-EAG-18, S-EAG-21, S-EAG-25 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    atomic_int ready = 0;
    te_open(&t, runtime, strategy);
    tn_eager_handle two = te_scalar(&t, 2);
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (worker){ .t = &t, .shared = two, .ready = &ready };
      REQUIRE_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    CHECK(te_wait_for(&ready, 20));
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      CHECK(workers[i].status == TN_OK || workers[i].status == TN_FAILED_PRECONDITION);
    }
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.deleted, c.allocated);
    CHECK_INT(c.bytes, 0);
    te_fini(&t);
  }
}

static void *make_and_release(void *arg)
{
  worker *w = arg;
  for (int i = 0; i < 4 * ROUNDS; i++) {
    tn_eager_handle x = { 0 };
    const float value = 1;
    if (tn_eager_from_data(w->t->session, TN_FLOAT, NULL, 0, &value, sizeof value, &x, NULL) != TN_OK) continue;
    tn_eager_release(w->t->session, x, NULL);
    tn_eager_safe_point(w->t->session, NULL);
  }
  atomic_store(w->ready, 1);
  return NULL;
}

/* Counters read during a deletion count the handle once; the longest pause is at most the sum of
 * all pauses. */
static void eager_threads__counters_are_consistent_at_any_time(void)
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    pthread_t thread;
    atomic_int ended = 0;
    int wrong = 0;
    te_open(&t, runtime, strategy);
    worker w = { .t = &t, .ready = &ended };
    REQUIRE_INT(pthread_create(&thread, NULL, make_and_release, &w), 0);
    while (atomic_load(&ended) == 0) {
      tn_eager_counters c = te_counters(&t);
      wrong += c.live + c.unused + c.deleted + c.detached > c.allocated || c.bytes > c.peak_bytes ||
               c.longest_pause_ns > c.pause_ns;
    }
    pthread_join(thread, NULL);
    CHECK_INT(wrong, 0);
    te_fini(&t);
  }
}

static void *close_it(void *arg)
{
  te *t = arg;
  CHECK_OK(tn_eager_session_close(t->session, NULL), NULL);
  CHECK_INT(te_counters(t).live, 0); /* in whichever thread closes it, all are deleted when close returns */
  return NULL;
}

static void eager_threads__several_may_close(void) /* S-EAG-17 */
{
  for (int round = 0; round < 20; round++) {
    te t;
    pthread_t threads[THREADS];
    te_open(&t, te_runtime(0), round % 3);
    for (int i = 0; i < 50; i++) te_scalar(&t, 1);
    for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, close_it, &t), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    te_fini(&t);
  }
}

/* ---- tensors in use ---- */

typedef struct gated {
  te *t;
  tn_eager_handle x;
  tn_status status;
  float value;
} gated;

static void *call_gate(void *arg)
{
  gated *g = arg;
  tn_error err = TN_ERROR_INIT;
  tn_eager_handle out;
  tn_tensor *tensor;
  g->status = tn_eager_call(g->t->session, "TestGate", NULL, 0, &g->x, 1, &out, 1, NULL, &err);
  if (g->status == TN_OK && tn_eager_tensor(g->t->session, out, &tensor, &err) == TN_OK) {
    g->value = ts_float(tensor);
    tn_tensor_unref(tensor);
  }
  tn_error_clear(&err);
  return NULL;
}

static void eager_threads__tensors_in_use_are_not_deleted(void) /* S-EAG-22 */
{
  FOR_RUNTIMES(runtime) for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++)
  {
    te t;
    te_told told = { .value = 6 };
    pthread_t thread;
    te_open(&t, runtime, strategy);
    gated g = { .t = &t, .x = te_telling(&t, &told) };
    REQUIRE_INT(pthread_create(&thread, NULL, call_gate, &g), 0);
    CHECK(ts_wait_at_gate(1));
    te_release(&t, g.x);
    CHECK_STATUS(tn_eager_release(t.session, g.x, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    ts_sleep_ms(20);
    CHECK_INT(atomic_load(&told.n), 0);
    CHECK_INT(te_counters(&t).unused, 0);
    ts_open_gate();
    pthread_join(thread, NULL);
    CHECK_INT(g.status, TN_OK);
    CHECK_DOUBLE(g.value, 6, 0);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK(te_wait_for(&told.n, 1));
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 1);
  }
}

static void eager_threads__a_tensor_in_use_may_be_detached(void) /* S-EAG-20, S-EAG-22 */
{
  te t;
  te_told told = { .value = 6 };
  pthread_t thread;
  tn_tensor *mine;
  te_open(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  gated g = { .t = &t, .x = te_telling(&t, &told) };
  REQUIRE_INT(pthread_create(&thread, NULL, call_gate, &g), 0);
  CHECK(ts_wait_at_gate(1));
  REQUIRE_OK(tn_eager_detach(t.session, g.x, &mine, &t.err), &t.err);
  ts_open_gate();
  pthread_join(thread, NULL);
  CHECK_DOUBLE(g.value, 6, 0);
  CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
  tn_eager_counters c = te_counters(&t);
  CHECK_INT(c.detached, 1);
  CHECK_INT(c.deleted, 0);
  CHECK_INT(atomic_load(&told.n), 0);
  te_fini(&t);
  tn_tensor_unref(mine);
  CHECK_INT(atomic_load(&told.n), 1);
}

static void *call_dequeue(void *arg)
{
  gated *g = arg;
  static const tn_dtype types[] = { TN_FLOAT };
  static const tn_eager_attr components[] = {
    { .name = "component_types", .kind = TN_ATTR_LIST | TN_ATTR_TYPE, .at = types, .n = 1 }
  };
  tn_eager_handle queue, out;
  g->status = tn_eager_call(g->t->session, "FIFOQueueV2", components, 1, NULL, 0, &queue, 1, NULL, NULL);
  atomic_fetch_add(&ts_watched.at_gate, 1);
  if (g->status == TN_OK)
    g->status = tn_eager_call(g->t->session, "QueueDequeueV2", components, 1, &queue, 1, &out, 1, NULL, NULL);
  return NULL;
}

/* The kernel sleeps and checks nothing until it is woken. */
static void eager_threads__close_wakes_an_operation_that_sleeps(void) /* S-EAG-18 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    pthread_t thread;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    gated g = { .t = &t };
    REQUIRE_INT(pthread_create(&thread, NULL, call_dequeue, &g), 0);
    CHECK(ts_wait_at_gate(1));
    ts_sleep_ms(50);
    int64_t begin = ts_now_ms();
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK(ts_now_ms() - begin < 5000);
    pthread_join(thread, NULL);
    CHECK_INT(g.status, TN_FAILED_PRECONDITION);
    te_fini(&t);
  }
}

static void eager_threads__close_ends_an_operation_that_waits(void) /* S-EAG-18 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    pthread_t thread;
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    gated g = { .t = &t, .x = te_scalar(&t, 1) };
    REQUIRE_INT(pthread_create(&thread, NULL, call_gate, &g), 0);
    CHECK(ts_wait_at_gate(1));
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    pthread_join(thread, NULL);
    CHECK_INT(g.status, TN_FAILED_PRECONDITION);
    te_fini(&t);
  }
}

/* ---- deletions that block or call back ---- */

static void eager_threads__a_deletion_that_blocks_stops_no_other_session(void) /* S-EAG-28 */
{
  te slow, other;
  te_told blocked = { .wait = 1 }, told = { 0 };
  te_open(&slow, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  te_open(&other, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  te_release(&slow, te_telling(&slow, &blocked));
  CHECK(te_wait_for(&blocked.waiting, 1));
  te_release(&other, te_telling(&other, &told));
  CHECK(te_wait_for(&told.n, 1));
  CHECK_DOUBLE(te_value(&other, te_add(&other, te_scalar(&other, 1), te_scalar(&other, 2))), 3, 0);
  CHECK_OK(tn_eager_session_close(other.session, &other.err), &other.err);
  /* The same session also remains usable; its calls do not run deletions that call functions. */
  te_told later = { 0 };
  for (int i = 0; i < 10; i++) te_release(&slow, te_telling(&slow, &later));
  for (int i = 0; i < 500; i++) te_release(&slow, te_add(&slow, te_scalar(&slow, 1), te_scalar(&slow, 2)));
  CHECK_INT(atomic_load(&blocked.n), 0);
  CHECK_INT(atomic_load(&later.n), 0);
  atomic_store(&blocked.wait, 0);
  te_fini(&slow);
  te_fini(&other);
  CHECK_INT(atomic_load(&blocked.n), 1);
  CHECK_INT(atomic_load(&later.n), 10);
}

/* The background thread makes no progress, but memory stays bounded. */
static void eager_threads__calls_delete_excess_unused_tensors(void) /* S-EAG-16 */
{
  enum { MANY = 30000, MOST = 8192 };
  te t;
  te_told blocked = { .wait = 1 }, later = { 0 };
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  te_release(&t, te_telling(&t, &blocked));
  CHECK(te_wait_for(&blocked.waiting, 1));
  te_release(&t, te_telling(&t, &later));
  tn_eager_handle x = te_scalar(&t, 1);
  uint64_t most = 0;
  for (int i = 0; i < MANY; i++) {
    te_release(&t, te_add(&t, x, x));
    if (i % 100 == 0 && te_counters(&t).unused > most) most = te_counters(&t).unused;
  }
  CHECK_MSG(most < MOST, "%llu tensors were unused at once", (unsigned long long)most);
  CHECK_INT(atomic_load(&blocked.n), 0);
  CHECK_INT(atomic_load(&later.n), 1);
  atomic_store(&blocked.wait, 0);
  te_fini(&t);
}

typedef struct again {
  te *t;
  tn_eager_handle x;
  tn_status add, close;
  atomic_int calls;
} again;

static void call_back(void *user)
{
  again *a = user;
  tn_eager_handle out = { 0 };
  a->add = tn_eager_add(a->t->session, a->x, a->x, &out, NULL);
  tn_eager_release(a->t->session, out, NULL);
  tn_eager_safe_point(a->t->session, NULL);
  a->close = tn_eager_session_close(a->t->session, NULL);
  atomic_fetch_add(&a->calls, 1);
}

static void eager_threads__a_deletion_may_call_the_session(void)
{
  FOR_RUNTIMES(runtime) for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++)
  {
    te t;
    te_open(&t, runtime, strategy);
    again a = { .t = &t, .x = te_scalar(&t, 1), .add = TN_UNKNOWN };
    te_told told = { .also = call_back, .user = &a };
    te_release(&t, te_telling(&t, &told));
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK(te_wait_for(&told.n, 1));
    CHECK_INT(a.add, TN_OK);
    CHECK_INT(a.close, TN_FAILED_PRECONDITION); /* called from within a deletion of the session */
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 1);
  }
}

typedef struct at_end {
  te *t;
  tn_eager_op *op;
  tn_status close, add;
} at_end;

static void call_at_the_end(void *user)
{
  at_end *a = user;
  const tn_eager_handle some = { 1 };
  tn_eager_handle out;
  a->add = tn_eager_add(a->t->session, some, some, &out, NULL);
  a->close = tn_eager_session_close(a->t->session, NULL);
  tn_eager_op_destroy(a->op);
}

static void eager_threads__deletions_of_close_may_call_the_session(void)
{
  for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++) {
    te t;
    tn_eager_handle out;
    te_open(&t, te_runtime(0), strategy);
    at_end a = { .t = &t };
    te_told told = { .also = call_at_the_end, .user = &a };
    tn_eager_handle x = te_telling(&t, &told);
    REQUIRE_OK(tn_eager_op_create(t.session, "Neg", NULL, NULL, 0, &a.op, &t.err), &t.err);
    REQUIRE_OK(tn_eager_op_call(a.op, &x, 1, &out, 1, NULL, &t.err), &t.err);
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&told.n), 1);
    CHECK_INT(a.add, TN_FAILED_PRECONDITION);
    CHECK_INT(a.close, TN_FAILED_PRECONDITION);
    te_fini(&t);
  }
}

/* ---- asynchronous sessions ---- */

static void open_async(te *t, const char *runtime, int32_t strategy)
{
  te_init(t, runtime, strategy);
  t->options.async = 1;
  te_start(t);
}

static void eager_threads__asynchronous_calls_give_the_same_results(void) /* S-EAG-27 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    open_async(&t, runtime, strategy);
    tn_eager_handle one = te_scalar(&t, 1), sum = te_scalar(&t, 0);
    for (int i = 0; i < 5000; i++) {
      tn_eager_handle next = te_add(&t, sum, one);
      te_release(&t, sum); /* possibly before it was read */
      sum = next;
    }
    CHECK_DOUBLE(te_value(&t, sum), 5000, 0);
    CHECK_OK(tn_eager_wait(t.session, &t.err), &t.err);
    CHECK_INT(te_counters(&t).bytes >= 2 * sizeof(float), 1);
    te_fini(&t);
  }
}

static void eager_threads__an_asynchronous_error_shows_at_the_next_wait(void) /* S-EAG-27 */
{
  static const tn_eager_attr code[] = { { .name = "slot", .kind = TN_ATTR_INT, .i = TN_DATA_LOSS } };
  FOR_RUNTIMES(runtime)
  {
    te t;
    tn_tensor *tensor;
    open_async(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_eager_handle x = te_scalar(&t, 1), bad, after;
    REQUIRE_OK(tn_eager_call(t.session, "TestFail", code, 1, &x, 1, &bad, 1, NULL, &t.err), &t.err);
    after = te_add(&t, bad, x);
    CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0); /* independent operations are unaffected */
    CHECK_STATUS(tn_eager_tensor(t.session, after, &tensor, &t.err), TN_DATA_LOSS, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
    CHECK_STATUS(tn_eager_wait(t.session, &t.err), TN_DATA_LOSS, &t.err);
    CHECK_OK(tn_eager_wait(t.session, &t.err), &t.err); /* the error is reported once */
    CHECK_STATUS(tn_eager_tensor(t.session, bad, &tensor, &t.err), TN_DATA_LOSS, &t.err);
    CHECK_STATUS(tn_eager_call(t.session, "AddV2", NULL, 0, &x, 1, &bad, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
    te_release(&t, after);
    te_fini(&t);
  }
}

static void eager_threads__the_first_asynchronous_error_counts(void) /* S-EAG-27 */
{
  static const tn_eager_attr first[] = { { .name = "slot", .kind = TN_ATTR_INT, .i = TN_DATA_LOSS } };
  static const tn_eager_attr second[] = { { .name = "slot", .kind = TN_ATTR_INT, .i = TN_ABORTED } };
  te t;
  open_async(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 1), bad[2];
  REQUIRE_OK(tn_eager_call(t.session, "TestFail", first, 1, &x, 1, &bad[0], 1, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_eager_call(t.session, "TestFail", second, 1, &x, 1, &bad[1], 1, NULL, &t.err), &t.err);
  CHECK_STATUS(tn_eager_wait(t.session, &t.err), TN_DATA_LOSS, &t.err);
  CHECK_OK(tn_eager_wait(t.session, &t.err), &t.err);
  tn_tensor *tensor;
  CHECK_STATUS(tn_eager_tensor(t.session, bad[1], &tensor, &t.err), TN_ABORTED, &t.err); /* its own error */
  te_fini(&t);
}

static void *open_gate_late(void *unused)
{
  (void)unused;
  ts_wait_at_gate(1);
  ts_sleep_ms(30);
  ts_open_gate();
  return NULL;
}

static void eager_threads__waiting_lasts_until_all_has_ended(void) /* S-EAG-27, S-EAG-22 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_told told = { .value = 2 };
    pthread_t thread;
    open_async(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_eager_handle x = te_telling(&t, &told), y, z;
    REQUIRE_OK(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &y, 1, NULL, &t.err), &t.err);
    z = te_add(&t, y, x);
    te_release(&t, x); /* two operations have yet to read it */
    te_release(&t, y);
    REQUIRE_INT(pthread_create(&thread, NULL, open_gate_late, NULL), 0);
    CHECK_OK(tn_eager_wait(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&ts_watched.passed), 1);
    CHECK_DOUBLE(te_value(&t, z), 4, 0);
    pthread_join(thread, NULL);
    te_release(&t, z);
    CHECK(te_wait_deleted(&t, 3)); /* nothing references them any more */
    CHECK_INT(atomic_load(&told.n), 1);
    te_fini(&t);
  }
}

/* Calls also wait if too many are queued. */
static void *call_often(void *arg)
{
  worker *w = arg;
  tn_eager_handle out;
  for (int i = 0; i < 6000 && w->status == TN_OK; i++) {
    w->status = tn_eager_neg(w->t->session, w->shared, &out, NULL);
    tn_eager_release(w->t->session, out, NULL);
    atomic_fetch_add(w->ready, 1);
  }
  return NULL;
}

static void eager_threads__the_queue_is_bounded(void) /* S-EAG-27 */
{
  te t;
  pthread_t thread;
  atomic_int done = 0;
  open_async(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 1), y;
  REQUIRE_OK(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &y, 1, NULL, &t.err), &t.err);
  worker w = { .t = &t, .shared = x, .ready = &done };
  REQUIRE_INT(pthread_create(&thread, NULL, call_often, &w), 0);
  CHECK(te_wait_for(&done, 4000));
  for (int before = -1; before != atomic_load(&done); ts_sleep_ms(50)) before = atomic_load(&done);
  CHECK_MSG(atomic_load(&done) < 4200, "%d calls wait", atomic_load(&done));
  ts_open_gate();
  pthread_join(thread, NULL);
  CHECK_INT(w.status, TN_OK);
  CHECK_OK(tn_eager_wait(t.session, &t.err), &t.err);
  te_fini(&t);
}

static void eager_threads__close_ends_asynchronous_calls(void) /* S-EAG-02, S-EAG-27 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    open_async(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_eager_handle x = te_scalar(&t, 1), y;
    REQUIRE_OK(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &y, 1, NULL, &t.err), &t.err);
    for (int i = 0; i < 50; i++) y = te_add(&t, y, x);
    CHECK(ts_wait_at_gate(1));
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK_INT(te_counters(&t).live, 0);
    te_fini(&t);
  }
}

TAP_MAIN(TAP_TEST(eager_threads__work_in_one_session), TAP_TEST(eager_threads__counters_are_consistent_at_any_time),
         TAP_TEST(eager_threads__close_may_come_in_the_middle), TAP_TEST(eager_threads__several_may_close),
         TAP_TEST(eager_threads__tensors_in_use_are_not_deleted),
         TAP_TEST(eager_threads__a_tensor_in_use_may_be_detached),
         TAP_TEST(eager_threads__close_ends_an_operation_that_waits),
         TAP_TEST(eager_threads__a_deletion_that_blocks_stops_no_other_session),
         TAP_TEST(eager_threads__a_deletion_may_call_the_session),
         TAP_TEST(eager_threads__deletions_of_close_may_call_the_session),
         TAP_TEST(eager_threads__asynchronous_calls_give_the_same_results),
         TAP_TEST(eager_threads__an_asynchronous_error_shows_at_the_next_wait),
         TAP_TEST(eager_threads__the_first_asynchronous_error_counts),
         TAP_TEST(eager_threads__waiting_lasts_until_all_has_ended), TAP_TEST(eager_threads__the_queue_is_bounded),
         TAP_TEST(eager_threads__close_wakes_an_operation_that_sleeps),
         TAP_TEST(eager_threads__calls_delete_excess_unused_tensors),
         TAP_TEST(eager_threads__close_ends_asynchronous_calls))
