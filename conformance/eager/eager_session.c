/* SPDX-License-Identifier: Apache-2.0 */
/* Eager sessions: when tensors are deleted under each strategy, closing, the default session. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/support/eager_kit.h"
#include "conformance/support/threads.h"

#define FOR_STRATEGIES(s) for (int32_t s = TN_EAGER_IN_BACKGROUND; s <= TN_EAGER_ON_SESSION_CLOSE; s++)

static void eager_session__runs_operations_at_once(void) /* S-EAG-01 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    te_open(&t, runtime, strategy);
    tn_eager_handle x = te_scalar(&t, 1.5f), y = te_scalar(&t, 2), z = te_add(&t, x, y), w;
    CHECK_DOUBLE(te_value(&t, z), 3.5, 0);
    REQUIRE_OK(tn_eager_mul(t.session, z, z, &w, &t.err), &t.err);
    CHECK_DOUBLE(te_value(&t, w), 12.25, 0);
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.allocated, 4);
    CHECK_INT(c.live, 4);
    CHECK_INT(c.bytes, 4 * sizeof(float));
    te_fini(&t);
  }
}

static void eager_session__close_deletes_everything_used_or_not(void) /* S-EAG-02 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    te_told told = { 0 };
    te_open(&t, runtime, strategy);
    for (int i = 0; i < 5; i++) te_telling(&t, &told);
    tn_eager_handle released = te_telling(&t, &told);
    te_release(&t, released);
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&told.n), 6);
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.deleted, 6);
    CHECK_INT(c.live, 0);
    CHECK_INT(c.unused, 0);
    CHECK_INT(c.bytes, 0);
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 6); /* S-EAG-21 */
  }
}

static void eager_session__there_are_three_strategies(void) /* S-EAG-03, S-EAG-04 */
{
  static const int32_t bad[] = { -1, 3, INT32_MAX, INT32_MIN };
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  for (int i = 0; i < 4; i++) {
    t.options.strategy = bad[i];
    CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
    CHECK_NULL(t.session);
    CHECK_CONTAINS(tn_error_message(&t.err), "strategy");
  }
  tn_eager_options defaults;
  tn_eager_options_init(&defaults);
  CHECK_INT(defaults.strategy, TN_EAGER_IN_BACKGROUND);
  CHECK_INT(defaults.async, 0);
  te_fini(&t);
}

static void eager_session__invalid_options_are_refused(void)
{
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  t.options.device_policy = 9;
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  t.options.device_policy = -1;
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  t.options.device_policy = 0;
  t.options.memory_limit_bytes = -1;
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  t.options.memory_limit_bytes = 0;
  t.options.struct_size = 4;
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_eager_session_create(NULL, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  t.options.struct_size = TN_EAGER_OPTIONS_SIZE;
  REQUIRE_OK(tn_session_options_set_target(t.session_options, "absent", &t.err), &t.err);
  CHECK_STATUS(tn_eager_session_create(&t.options, &t.session, &t.err), TN_NOT_FOUND, &t.err);
  te_fini(&t);
}

/* ---- IN_BACKGROUND ---- */

/* Number of threads that an eager session has in addition to those the runtime makes for any
 * session. One session is open. -1: unknown. */
static int own_threads(te *t)
{
  tn_session *plain;
  int before = threads_of_process();
  if (before < 0) return -1;
  REQUIRE_OK(tn_session_create(t->session_options, &plain, &t->err), &t->err);
  int of_runtime = threads_of_process() - before;
  before = threads_of_process();
  te_start(t);
  int all = threads_of_process() - before;
  tn_session_destroy(plain);
  return all - of_runtime;
}

/* S-EAG-05, S-EAG-06, S-EAG-09 */
static void eager_session__a_background_session_has_one_thread_until_it_is_closed(void)
{
  FOR_RUNTIMES(runtime)
  {
    te ground, t;
    te_open(&ground, runtime, TN_EAGER_ON_SESSION_CLOSE);
    te_init(&t, runtime, TN_EAGER_IN_BACKGROUND);
    int own = own_threads(&t);
    if (own < 0) TAP_SKIP("the number of threads is unknown on this system");
    CHECK_INT(own, 1);
    for (int i = 0; i < 100; i++) te_release(&t, te_add(&t, te_scalar(&t, 1), te_scalar(&t, 2)));
    int open = threads_of_process();
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK(threads_of_process() < open);
    te_fini(&t);
    te_fini(&ground);
  }
}

static void eager_session__the_background_deletes_without_any_call(void) /* S-EAG-07 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_told told = { 0 };
    te_open(&t, runtime, TN_EAGER_IN_BACKGROUND);
    for (int round = 1; round <= 3; round++) {
      te_release(&t, te_telling(&t, &told));
      CHECK(te_wait_for(&told.n, round));
      CHECK(atomic_load(&told.thread) != ts_this_thread());
      ts_sleep_ms(round * 40); /* in the last round the thread is in a long sleep */
    }
    CHECK(te_wait_deleted(&t, 3));
    CHECK_INT(te_counters(&t).unused, 0);
    te_fini(&t);
  }
}

static int64_t cpu_us(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

static long switches(void)
{
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_nvcsw;
}

static void eager_session__the_background_sleeps_when_there_is_nothing_to_do(void) /* S-EAG-08 */
{
  te t[8];
  for (int i = 0; i < 8; i++) {
    te_open(&t[i], te_runtime(i % 2) != NULL ? te_runtime(i % 2) : te_runtime(0), TN_EAGER_IN_BACKGROUND);
    te_release(&t[i], te_scalar(&t[i], 1));
    CHECK(te_wait_deleted(&t[i], 1));
  }
  long times = 0;
  int64_t cpu = 0;
  for (int round = 0; round < 20; round++) { /* on a busy machine the thread's last ticks take long */
    ts_sleep_ms(200);
    times = switches();
    cpu = cpu_us();
    ts_sleep_ms(500);
    times = switches() - times;
    cpu = cpu_us() - cpu;
    if (times < 20 && cpu < 100000) break;
  }
  CHECK_MSG(times < 20, "threads went to sleep %ld times in half a second", times);
  CHECK(cpu < 100000);
  for (int i = 0; i < 8; i++) te_fini(&t[i]);
}

/* ---- ON_SAFE_POINTS ---- */

static void eager_session__safe_points_need_no_thread(void) /* S-EAG-10, S-EAG-15 */
{
  FOR_RUNTIMES(runtime)
  for (int32_t strategy = TN_EAGER_ON_SAFE_POINTS; strategy <= TN_EAGER_ON_SESSION_CLOSE; strategy++)
  {
    te ground, t;
    te_open(&ground, runtime, TN_EAGER_ON_SESSION_CLOSE);
    te_init(&t, runtime, strategy);
    int own = own_threads(&t);
    if (own < 0) TAP_SKIP("the number of threads is unknown on this system");
    CHECK_INT(own, 0);
    int open = threads_of_process();
    te_release(&t, te_add(&t, te_scalar(&t, 1), te_scalar(&t, 2)));
    CHECK_INT(threads_of_process(), open);
    te_fini(&t);
    te_fini(&ground);
  }
}

static void eager_session__a_safe_point_deletes_unused_tensors_on_its_thread(void) /* S-EAG-11, S-EAG-13, S-EAG-14 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_told told = { 0 };
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    tn_eager_handle kept = te_telling(&t, &told), h[7];
    for (int i = 0; i < 7; i++) h[i] = te_telling(&t, &told);
    for (int i = 0; i < 7; i++) te_release(&t, h[i]);
    ts_sleep_ms(20);
    CHECK_INT(atomic_load(&told.n), 0); /* nothing is deleted between safe points */
    CHECK_INT(te_counters(&t).unused, 7);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&told.n), 7);
    CHECK(atomic_load(&told.thread) == ts_this_thread());
    tn_eager_counters c = te_counters(&t);
    CHECK_INT(c.unused, 0);
    CHECK_INT(c.live, 1);
    CHECK_INT(c.pauses, 1);
    CHECK(c.longest_pause_ns > 0 && c.pause_ns >= c.longest_pause_ns);
    te_release(&t, kept);
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK_INT(atomic_load(&told.n), 8);
    uint64_t pauses = te_counters(&t).pauses;
    te_release(&t, te_scalar(&t, 1));
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    CHECK_INT(te_counters(&t).unused, 0);
    CHECK_INT(te_counters(&t).pauses, pauses); /* deleting one small tensor is not a pause */
    te_fini(&t);
  }
}

/* A kernel runs between the two safe points: handles released before it are deleted before it runs,
 * handles released during it when it returns. */
typedef struct at_gate {
  te *t;
  tn_eager_handle late;
  te_told before, meanwhile;
  int n_before; /* number deleted before the kernel reached the gate */
} at_gate;

static void *release_at_gate(void *arg)
{
  at_gate *g = arg;
  ts_wait_at_gate(1);
  g->n_before = atomic_load(&g->before.n);
  tn_eager_release(g->t->session, g->late, NULL);
  ts_open_gate();
  return NULL;
}

static void eager_session__operations_begin_and_end_with_a_safe_point(void) /* S-EAG-12 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    at_gate g = { .t = &t };
    pthread_t thread;
    te_open(&t, runtime, TN_EAGER_ON_SAFE_POINTS);
    tn_eager_handle x = te_scalar(&t, 1), out;
    g.late = te_telling(&t, &g.meanwhile);
    te_release(&t, te_telling(&t, &g.before));
    REQUIRE_INT(pthread_create(&thread, NULL, release_at_gate, &g), 0);
    REQUIRE_OK(tn_eager_call(t.session, "TestGate", NULL, 0, &x, 1, &out, 1, NULL, &t.err), &t.err);
    pthread_join(thread, NULL);
    CHECK_INT(g.n_before, 1);
    CHECK_INT(atomic_load(&g.before.n), 1);
    CHECK_INT(atomic_load(&g.meanwhile.n), 1);
    te_fini(&t);
  }
}

/* ---- ON_SESSION_CLOSE, and the n*m loop ---- */

static void eager_session__on_session_close_nothing_is_deleted_earlier(void) /* S-EAG-15 */
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_told told = { 0 };
    te_open(&t, runtime, TN_EAGER_ON_SESSION_CLOSE);
    tn_eager_handle h[200];
    for (int i = 0; i < 200; i++) h[i] = te_telling(&t, &told);
    for (int i = 0; i < 200; i++) te_release(&t, h[i]);
    for (int i = 0; i < 100; i++) te_release(&t, te_add(&t, te_scalar(&t, 1), te_scalar(&t, 2)));
    CHECK_OK(tn_eager_safe_point(t.session, &t.err), &t.err);
    ts_sleep_ms(20);
    CHECK_INT(atomic_load(&told.n), 0);
    CHECK_INT(te_counters(&t).deleted, 0);
    te_fini(&t);
    CHECK_INT(atomic_load(&told.n), 200);
  }
}

enum { OPS = 50, ITERATIONS = 60, ELEMENTS = 1024 };

/* Each iteration makes OPS tensors and releases them at the end. */
static tn_eager_counters run_loop(const char *runtime, int32_t strategy)
{
  te t;
  const int64_t dims[] = { ELEMENTS };
  tn_eager_handle x, made[OPS];
  te_open(&t, runtime, strategy);
  tn_tensor *filled = ts_filled(1, dims, 1);
  REQUIRE_OK(tn_eager_from_tensor(t.session, filled, &x, &t.err), &t.err);
  tn_tensor_unref(filled);
  for (int m = 0; m < ITERATIONS; m++) {
    for (int n = 0; n < OPS; n++) made[n] = te_add(&t, n == 0 ? x : made[n - 1], x);
    for (int n = 0; n < OPS; n++) te_release(&t, made[n]);
  }
  tn_eager_counters c = te_counters(&t);
  te_fini(&t);
  return c;
}

static void eager_session__a_loop_holds_one_iteration_or_all(void) /* S-EAG-16 */
{
  const uint64_t iteration = (uint64_t)OPS * ELEMENTS * sizeof(float);
  FOR_RUNTIMES(runtime)
  {
    tn_eager_counters all = run_loop(runtime, TN_EAGER_ON_SESSION_CLOSE);
    CHECK_INT(all.live + all.unused, OPS * ITERATIONS + 1);
    CHECK(all.peak_bytes >= iteration * ITERATIONS);
    for (int32_t strategy = TN_EAGER_IN_BACKGROUND; strategy <= TN_EAGER_ON_SAFE_POINTS; strategy++) {
      tn_eager_counters c = run_loop(runtime, strategy);
      CHECK_INT(c.allocated, OPS * ITERATIONS + 1);
      CHECK_MSG(c.peak_bytes <= 3 * iteration, "%s, strategy %d: the peak is %llu bytes, an iteration needs %llu",
                runtime, (int)strategy, (unsigned long long)c.peak_bytes, (unsigned long long)iteration);
    }
  }
}

/* ---- closing ---- */

static void eager_session__close_twice_is_ok(void) /* S-EAG-17 */
{
  FOR_STRATEGIES(strategy)
  {
    te t;
    te_open(&t, te_runtime(0), strategy);
    for (int i = 0; i < 3; i++) CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    te_fini(&t);
  }
  CHECK_STATUS(tn_eager_session_close(NULL, NULL), TN_INVALID_ARGUMENT, NULL);
  tn_eager_session_destroy(NULL);
}

static void eager_session__after_close_every_use_is_refused(void) /* S-EAG-18, S-EAG-19 */
{
  FOR_RUNTIMES(runtime) FOR_STRATEGIES(strategy)
  {
    te t;
    te_open(&t, runtime, strategy);
    tn_eager_handle x = te_scalar(&t, 1), out;
    tn_eager_op *op, *none;
    tn_tensor *tensor, *given = ts_scalar(1);
    REQUIRE_OK(tn_eager_op_create(t.session, "Neg", NULL, NULL, 0, &op, &t.err), &t.err);
    REQUIRE_OK(tn_eager_op_call(op, &x, 1, &out, 1, NULL, &t.err), &t.err);
    CHECK_OK(tn_eager_session_close(t.session, &t.err), &t.err);
    CHECK_STATUS(tn_eager_op_call(op, &x, 1, &out, 1, NULL, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_add(t.session, x, x, &out, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "closed");
    CHECK_STATUS(tn_eager_op_create(t.session, "Neg", NULL, NULL, 0, &none, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_from_tensor(t.session, given, &out, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_tensor(t.session, x, &tensor, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_detach(t.session, x, &tensor, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_safe_point(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_wait(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STATUS(tn_eager_scope_push(t.session, &t.err), TN_FAILED_PRECONDITION, &t.err);
    for (int i = 0; i < 2; i++) CHECK_OK(tn_eager_release(t.session, x, &t.err), &t.err);
    CHECK_OK(tn_eager_release(t.session, (tn_eager_handle){ 12345 }, &t.err), &t.err);
    tn_eager_op_destroy(op);
    tn_tensor_unref(given);
    te_fini(&t);
  }
}

static void eager_session__ops_may_outlive_it(void)
{
  te t;
  tn_eager_op *op;
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 2), out;
  REQUIRE_OK(tn_eager_op_create(t.session, "Neg", NULL, NULL, 0, &op, &t.err), &t.err);
  REQUIRE_OK(tn_eager_op_call(op, &x, 1, &out, 1, NULL, &t.err), &t.err);
  te_fini(&t);
  tn_eager_op_destroy(op);
  tn_eager_op_destroy(NULL);
}

static tn_status open_and_close(void *arg)
{
  tn_eager_session *session;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_eager_session_create(arg, &session, &err);
  tn_eager_session_destroy(session);
  tn_error_clear(&err);
  return st;
}

static void eager_session__without_memory_none_is_opened(void)
{
  FOR_RUNTIMES(runtime)
  {
    te t;
    te_init(&t, runtime, TN_EAGER_IN_BACKGROUND);
    tn_test_oom_sweep(open_and_close, &t.options);
    t.options.async = 1;
    t.options.memory_limit_bytes = 1 << 20;
    tn_test_oom_sweep(open_and_close, &t.options);
    te_fini(&t);
  }
}

static int use_in_child(te *t, tn_eager_handle x)
{
  tn_eager_session *fresh;
  tn_eager_handle out;
  if (tn_eager_session_create(NULL, &fresh, NULL) != TN_FAILED_PRECONDITION) return 1;
  if (tn_eager_neg(t->session, x, &out, NULL) != TN_FAILED_PRECONDITION) return 2;
  if (tn_eager_session_close(t->session, NULL) != TN_FAILED_PRECONDITION) return 3;
  if (tn_eager_release(t->session, x, NULL) != TN_OK) return 4;
  tn_eager_session_destroy(t->session); /* has no effect */
  return 0;
}

static void eager_session__in_a_forked_child_it_cannot_be_used(void) /* S-THR-08 */
{
  te t;
  te_open(&t, te_runtime(0), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 1);
  int status = -1;
  pid_t child = fork();
  if (child == 0) _exit(use_in_child(&t, x));
  REQUIRE(child > 0);
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0);
  CHECK_DOUBLE(te_value(&t, x), 1, 0);
  te_fini(&t);
}

/* ---- the session of the process ---- */

static void eager_session__the_default_one_is_made_once_and_stays(void) /* S-EAG-23, S-EAG-24 */
{
  tn_error err = TN_ERROR_INIT;
  tn_eager_session *one, *other;
  te t;
  te_init(&t, te_runtime(0), TN_EAGER_ON_SAFE_POINTS);
  tn_eager_options bad = t.options;
  bad.strategy = 7;
  CHECK_STATUS(tn_eager_set_default_options(&bad, &err), TN_INVALID_ARGUMENT, &err);
  REQUIRE_OK(tn_eager_set_default_options(&t.options, &err), &err);
  CHECK_STATUS(tn_eager_set_default_options(&t.options, &err), TN_FAILED_PRECONDITION, &err);
  te_fini(&t); /* the options were copied */
  REQUIRE_OK(tn_eager_default(&one, &err), &err);
  REQUIRE_OK(tn_eager_default(&other, &err), &err);
  CHECK(one == other);
  CHECK_STATUS(tn_eager_set_default_options(NULL, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_STATUS(tn_eager_session_close(one, &err), TN_FAILED_PRECONDITION, &err);
  tn_eager_session_destroy(one);
  te use = { .session = one, .err = TN_ERROR_INIT };
  tn_eager_handle x = te_scalar(&use, 3), y = te_add(&use, x, x);
  CHECK_DOUBLE(te_value(&use, y), 6, 0);
  te_release(&use, x);
  te_release(&use, y);
  CHECK_INT(te_counters(&use).unused, 2); /* it has the strategy that was set */
  CHECK_OK(tn_eager_safe_point(one, &err), &err);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(eager_session__runs_operations_at_once),
         TAP_TEST(eager_session__close_deletes_everything_used_or_not),
         TAP_TEST(eager_session__there_are_three_strategies), TAP_TEST(eager_session__invalid_options_are_refused),
         TAP_TEST(eager_session__a_background_session_has_one_thread_until_it_is_closed),
         TAP_TEST(eager_session__the_background_deletes_without_any_call),
         TAP_TEST(eager_session__the_background_sleeps_when_there_is_nothing_to_do),
         TAP_TEST(eager_session__safe_points_need_no_thread),
         TAP_TEST(eager_session__a_safe_point_deletes_unused_tensors_on_its_thread),
         TAP_TEST(eager_session__operations_begin_and_end_with_a_safe_point),
         TAP_TEST(eager_session__on_session_close_nothing_is_deleted_earlier),
         TAP_TEST(eager_session__a_loop_holds_one_iteration_or_all), TAP_TEST(eager_session__close_twice_is_ok),
         TAP_TEST(eager_session__after_close_every_use_is_refused), TAP_TEST(eager_session__ops_may_outlive_it),
         TAP_TEST(eager_session__without_memory_none_is_opened),
         TAP_TEST(eager_session__in_a_forked_child_it_cannot_be_used),
         TAP_TEST(eager_session__the_default_one_is_made_once_and_stays))
