/* SPDX-License-Identifier: Apache-2.0 */
/* One session, many threads: concurrent runs, with close, extend and callables in between. */
#include "conformance/support/session_kit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, RUNS = 200 };

typedef struct worker {
  ts *t;
  tn_session *session;
  int number;
  tn_callable callable;
  atomic_int *go_on;
  int done;      /* steps with the right results */
  int cancelled; /* steps that ended CANCELLED */
  pthread_t thread;
} worker;

static void start(worker *workers, ts *t, void *(*fn)(void *), tn_callable callable, atomic_int *go_on)
{
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){ .t = t, .session = t->session, .number = i, .callable = callable, .go_on = go_on };
    REQUIRE_INT(pthread_create(&workers[i].thread, NULL, fn, &workers[i]), 0);
  }
}

static int join(worker *workers)
{
  int done = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(workers[i].thread, NULL);
    done += workers[i].done;
  }
  return done;
}

/* One step on a vector of n: (x + y) * 2. Counts the step as done if every element is right. */
static tn_status vector_step(worker *w, int64_t n, float x, float y)
{
  static const char *const feeds[] = { "x", "y" };
  const char *fetch = "twice";
  tn_error err = TN_ERROR_INIT;
  tn_tensor *values[] = { ts_filled(1, &n, x), ts_filled(1, &n, y) }, *fetched = NULL;
  tn_status status = w->callable.id
                         ? tn_session_run_callable(w->session, w->callable, values, 2, &fetched, 1, NULL, &err)
                         : tn_session_run(w->session, NULL, feeds, values, 2, &fetch, &fetched, 1, NULL, 0, NULL, &err);
  if (status == TN_OK) {
    bool right = tn_tensor_elements(fetched) == n;
    const float *data = tn_tensor_data(fetched);
    for (int64_t i = 0; right && i < n; i++) right = data[i] == 2 * (x + y);
    w->done += right && tn_tensor_is_exclusive(fetched);
  } else {
    CHECK_NULL(fetched);
    CHECK_STATUS(status, TN_CANCELLED, &err);
    w->cancelled++;
  }
  tn_tensor_unref(fetched);
  tn_tensor_unref(values[0]);
  tn_tensor_unref(values[1]);
  tn_error_clear(&err);
  return status;
}

static void *run_many(void *arg)
{
  worker *w = arg;
  for (int i = 0; i < RUNS; i++) vector_step(w, 1 + (w->number + i) % 5 * 37, (float)w->number, (float)i);
  return NULL;
}

static atomic_int n_steps; /* of all workers in run_while */

static void *run_while(void *arg)
{
  worker *w = arg;
  for (int i = 0; atomic_load(w->go_on); i++) {
    if (vector_step(w, 1 + i % 3 * 50, (float)w->number, (float)i) != TN_OK) break;
    atomic_fetch_add(&n_steps, 1);
  }
  return NULL;
}

static tn_callable twice_callable(ts *t)
{
  static const char *const feeds[] = { "x", "y" };
  const char *fetch = "twice";
  tn_callable callable = { 0 };
  REQUIRE_OK(tn_session_make_callable(t->session, NULL, feeds, 2, &fetch, 1, NULL, 0, &callable, &t->err), &t->err);
  return callable;
}

static void session_threads__runs_side_by_side(void) /* S-THR-01 */
{
  FOR_LEVELS(level)
  {
    ts t;
    worker workers[THREADS];
    ts_open(&t, level);
    start(workers, &t, run_many, (tn_callable){ 0 }, NULL);
    CHECK_INT(join(workers), THREADS * RUNS);
    uint64_t compiled = 0, held = 0;
    tn_session_signature_counts(t.session, &compiled, &held);
    CHECK(compiled <= THREADS && held == 1); /* several threads may have compiled it concurrently */
    ts_fini(&t);
  }
}

static void session_threads__callables_side_by_side(void) /* S-THR-01 */
{
  FOR_LEVELS(level)
  {
    ts t;
    worker workers[THREADS];
    ts_open(&t, level);
    start(workers, &t, run_many, twice_callable(&t), NULL);
    CHECK_INT(join(workers), THREADS * RUNS);
    ts_fini(&t);
  }
}

static void *through_gate(void *arg)
{
  worker *w = arg;
  w->done = ts_run1(w->t, NULL, "gate") == 1;
  return NULL;
}

/* A kernel of one node runs in several steps at once: all arrive before the gate opens. */
static void session_threads__steps_share_a_kernel(void) /* S-EXE-23, S-THR-05 */
{
  ts t, own[THREADS];
  worker workers[THREADS];
  ts_watch_reset();
  ts_init(&t, 1);
  ts_watch_op(t.graph, "TestGate", "gate", ts_const(t.graph, "one", 1), 0);
  ts_start(&t);
  for (int i = 0; i < THREADS; i++) {
    own[i] = t; /* a separate error object for each thread */
    workers[i] = (worker){ .t = &own[i] };
    REQUIRE_INT(pthread_create(&workers[i].thread, NULL, through_gate, &workers[i]), 0);
  }
  CHECK(ts_wait_at_gate(THREADS));
  ts_open_gate();
  CHECK_INT(join(workers), THREADS);
  for (int i = 0; i < THREADS; i++) tn_error_clear(&own[i].err);
  ts_fini(&t);
}

static void session_threads__close_during_runs(void) /* S-THR-02, S-LIFE-04, S-LIFE-05 */
{
  for (int round = 0; round < 20; round++) {
    ts t;
    worker workers[THREADS];
    atomic_int go_on = 1;
    ts_open(&t, round % 2);
    atomic_store(&n_steps, 0);
    start(workers, &t, run_while, round % 3 ? (tn_callable){ 0 } : twice_callable(&t), &go_on);
    for (int64_t end = ts_now_ms() + 10000; atomic_load(&n_steps) < 20 * round && ts_now_ms() < end;) ts_sleep_ms(0);
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    join(workers);
    for (int i = 0; i < THREADS; i++) CHECK_INT(workers[i].cancelled, 1);
    ts_fini(&t);
  }
}

/* Destroys the session right after the last call of each thread returned: no thread accesses the
 * session afterwards. */
static void session_threads__destroy_after_close(void) /* S-LIFE-10, S-THR-04 */
{
  for (int round = 0; round < 20; round++) {
    ts t;
    worker workers[THREADS];
    atomic_int go_on = 1;
    ts_open(&t, 1);
    start(workers, &t, run_while, (tn_callable){ 0 }, &go_on);
    CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
    join(workers);
    tn_session_destroy(t.session);
    t.session = NULL;
    ts_fini(&t);
  }
}

/* Adds node number i, which negates the previous one. */
static void extend_by_one(ts *t, int i)
{
  ts_bytes more = { .size = 0 };
  char name[16], last[16] = "two";
  snprintf(name, sizeof(name), "e%d", i);
  if (i > 0) snprintf(last, sizeof(last), "e%d", i - 1);
  ts_node(&more, "Neg", name, NAMES(last), "T", TN_FLOAT);
  CHECK_OK(tn_session_extend(t->session, more.data, more.size, &t->err), &t->err);
  CHECK_DOUBLE(ts_run1(t, NULL, name), i % 2 ? 2 : -2, 0);
}

static void session_threads__extend_during_runs(void) /* S-THR-02, S-THR-03 */
{
  FOR_LEVELS(level)
  {
    ts t;
    worker workers[THREADS];
    atomic_int go_on = 1;
    ts_open(&t, level);
    atomic_store(&n_steps, 0);
    start(workers, &t, run_while, (tn_callable){ 0 }, &go_on);
    for (int i = 0; i < 100; i++) { /* other threads run steps before and after each */
      for (int64_t end = ts_now_ms() + 10000; atomic_load(&n_steps) < 10 * i && ts_now_ms() < end;) ts_sleep_ms(0);
      extend_by_one(&t, i);
    }
    atomic_store(&go_on, 0);
    CHECK(join(workers) >= 990);
    for (int i = 0; i < THREADS; i++) CHECK_INT(workers[i].cancelled, 0);
    ts_fini(&t);
  }
}

static void *make_and_release(void *arg)
{
  worker *w = arg;
  static const char *const feeds[] = { "x", "y" };
  const char *fetch = "twice";
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 50; i++) {
    CHECK_OK(tn_session_make_callable(w->session, NULL, feeds, 2, &fetch, 1, NULL, 0, &w->callable, &err), &err);
    vector_step(w, 10, (float)w->number, (float)i);
    CHECK_OK(tn_session_release_callable(w->session, w->callable, &err), &err);
  }
  tn_error_clear(&err);
  return NULL;
}

static void session_threads__callables_come_and_go(void) /* S-CAL-03, S-THR-01 */
{
  ts t;
  worker workers[THREADS];
  ts_open(&t, 1);
  start(workers, &t, make_and_release, (tn_callable){ 0 }, NULL);
  CHECK_INT(join(workers), THREADS * 50);
  ts_fini(&t);
}

static void *live_and_die(void *arg)
{
  worker *w = arg;
  for (int i = 0; i < 20; i++) {
    ts t;
    ts_open(&t, i % 2);
    w->done += ts_run1(&t, FEEDS({ "x", (float)i }), "neg") == (float)-i;
    ts_fini(&t);
  }
  return NULL;
}

static void session_threads__sessions_come_and_go(void) /* S-THR-05, S-REG-06 */
{
  worker workers[THREADS];
  ts t;
  ts_open(&t, 1);
  start(workers, &t, live_and_die, (tn_callable){ 0 }, NULL);
  CHECK_INT(join(workers), THREADS * 20);
  ts_fini(&t);
}

/* A blocked step of one session does not stop another session. */
static void session_threads__sessions_are_independent(void) /* S-THR-05 */
{
  ts blocked, other;
  pthread_t thread;
  ts_watch_reset();
  ts_init(&blocked, 1);
  ts_watch_op(blocked.graph, "TestGate", "gate", ts_const(blocked.graph, "one", 1), 0);
  ts_start(&blocked);
  ts_open(&other, 1);
  worker w = { .t = &blocked };
  REQUIRE_INT(pthread_create(&thread, NULL, through_gate, &w), 0);
  CHECK(ts_wait_at_gate(1));
  for (int i = 0; i < 20; i++) CHECK_DOUBLE(ts_run1(&other, FEEDS({ "x", 1 }), "neg"), -1, 0);
  CHECK_INT(atomic_load(&ts_watched.passed), 0);
  ts_open_gate();
  pthread_join(thread, NULL);
  CHECK_INT(w.done, 1);
  ts_fini(&other);
  ts_fini(&blocked);
}

static void session_threads__fork_is_detected(void) /* S-THR-08 */
{
  ts t;
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
  fflush(stdout);
  pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    alarm(20);
    tn_tensor *fetched = NULL;
    tn_session *second = NULL;
    tn_status old = ts_run(&t, NULL, NAMES("two"), &fetched, NULL);
    tn_status fresh = tn_session_create(t.options, &second, NULL);
    if (old != TN_FAILED_PRECONDITION) _exit(1);
    _exit(fresh == TN_FAILED_PRECONDITION ? 0 : 2);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0); /* 1: run in the child was not refused; 2: create in the child was not */
  CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
  ts_fini(&t);
}

TAP_MAIN(
    TAP_TEST(session_threads__runs_side_by_side),
    TAP_TEST(session_threads__callables_side_by_side),
    TAP_TEST(session_threads__steps_share_a_kernel),
    TAP_TEST(session_threads__close_during_runs),
    TAP_TEST(session_threads__destroy_after_close),
    TAP_TEST(session_threads__extend_during_runs),
    TAP_TEST(session_threads__callables_come_and_go),
    TAP_TEST(session_threads__sessions_come_and_go),
    TAP_TEST(session_threads__sessions_are_independent),
    TAP_TEST(session_threads__fork_is_detected))
