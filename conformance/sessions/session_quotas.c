/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that work for a session, in a runtime with workers and in one without: only those
 * that its options allow, and none after it is destroyed. */
#include <pthread.h>
#include <stdlib.h>

#include "conformance/support/session_kit.h"
#include "conformance/support/threads.h"

enum { N = 16, STEPS = 20 };

/* Uses a runtime by its name alone, because settings in the target take precedence over options. */
static void open_with(ts *t, const char *field, const char *value)
{
  tn_output in = ts_open_watched(t, 0);
  char name[16];
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof name, "n%d", i);
    ts_watch_op(t->graph, "TestCount", name, in, i);
  }
  REQUIRE_OK(tn_session_options_set_target(t->options, ts_runtime_name(), &t->err), &t->err);
  REQUIRE_OK(tn_session_options_parse(t->options, field, value, &t->err), &t->err);
  ts_start(t);
}

static void run_all(ts *t)
{
  static const char *const names[] = { "n0", "n1", "n2",  "n3",  "n4",  "n5",  "n6",  "n7", "n8",
                                       "n9", "n10", "n11", "n12", "n13", "n14", "n15", NULL };
  tn_tensor *out[N];
  CHECK_OK(ts_run(t, FEEDS({ "in", 3 }), names, out, NULL), &t->err);
  for (int i = 0; i < N; i++) {
    CHECK_DOUBLE(ts_float(out[i]), 3, 0);
    tn_tensor_unref(out[i]);
  }
}

/* Number of threads that ran nodes of the last step. */
static int threads_of_step(void)
{
  int n = 0;
  for (int i = 0; i < N; i++) {
    int before = 0;
    while (before < i && atomic_load(&ts_watched.thread[before]) != atomic_load(&ts_watched.thread[i])) before++;
    n += before == i;
  }
  return n;
}

static void session_quotas__hold_in_every_step(void) /* S-CFG-10, S-CFG-11 */
{
  for (int threads = -1; threads <= 3; threads++) {
    ts t;
    char text[8];
    snprintf(text, sizeof text, "%d", threads);
    open_with(&t, "inter_op_threads", text);
    for (int i = 0; i < STEPS; i++) {
      run_all(&t);
      int found = threads_of_step();
      if (threads > 0) CHECK_MSG(found <= threads, "%d threads were used, at most %d are allowed", found, threads);
      if (threads >= 0 && threads != 1) continue;
      for (int k = 0; k < N; k++) CHECK(atomic_load(&ts_watched.thread[k]) == ts_this_thread());
    }
    ts_fini(&t);
  }
}

static void session_quotas__own_threads_end_with_the_session(void) /* S-CFG-12, S-LIFE-12 */
{
  ts t;
  int before = threads_of_process();
  if (before < 0) TAP_SKIP("the number of threads is unknown on this system");
  for (int i = 0; i < STEPS; i++) {
    open_with(&t, "use_per_session_threads", "1");
    run_all(&t);
    ts_fini(&t);
    CHECK_INT(threads_of_process(), before);
  }
}

typedef struct blocked {
  pthread_t thread;
  ts *t;
  int32_t pool;
  tn_status status;
} blocked;

static tn_status run_in_pool(ts *t, int32_t pool, const char *fetch)
{
  static const char *const feed = "in";
  tn_run_options options;
  tn_tensor *x = ts_scalar(5), *out = NULL;
  tn_run_options_init(&options);
  options.inter_op_pool = pool;
  tn_status st = tn_session_run(t->session, &options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 5, 0);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  return st;
}

static void *run_blocked(void *arg)
{
  blocked *b = arg;
  b->status = run_in_pool(b->t, b->pool, "gate");
  return NULL;
}

/* A waiting step occupies one pool; steps in the other pool and on their callers' threads continue. */
static void session_quotas__a_blocked_step_holds_up_its_pool_at_most(void) /* S-THR-05, S-THR-06, S-RO-09, S-RO-10 */
{
  ts t;
  blocked b = { .t = &t, .pool = 0 };
  tn_output in = ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestGate", "gate", in, 0);
  ts_watch_op(t.graph, "TestCount", "count", in, 1);
  REQUIRE_OK(tn_session_options_add_inter_op_pool(t.options, 1, NULL, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_add_inter_op_pool(t.options, 1, NULL, &t.err), &t.err);
  ts_start(&t);
  REQUIRE_INT(pthread_create(&b.thread, NULL, run_blocked, &b), 0);
  CHECK(ts_wait_at_gate(1));
  for (int i = 0; i < STEPS; i++) {
    CHECK_INT(run_in_pool(&t, 1, "count"), TN_OK);
    CHECK_INT(run_in_pool(&t, -1, "count"), TN_OK);
  }
  CHECK_INT(atomic_load(&ts_watched.passed), 0);
  ts_open_gate();
  pthread_join(b.thread, NULL);
  CHECK_INT(b.status, TN_OK);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(session_quotas__hold_in_every_step), TAP_TEST(session_quotas__own_threads_end_with_the_session),
         TAP_TEST(session_quotas__a_blocked_step_holds_up_its_pool_at_most))
