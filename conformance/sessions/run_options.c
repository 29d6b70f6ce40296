/* SPDX-License-Identifier: Apache-2.0 */
/* Options of one step: defaults, rejected values, and effects. */
#include "conformance/support/blocked_kit.h"

#include <limits.h>
#include <stdio.h>

/* Runs "c", a TestCount of slot 1, with x = 4. */
static tn_status run_with(ts *t, const tn_run_options *options, float *value)
{
  const char *feed = "x", *fetch = "c";
  tn_tensor *x = ts_scalar(4), *out = NULL;
  tn_status st = tn_session_run(t->session, options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, &t->err);
  CHECK((out != NULL) == (st == TN_OK));
  *value = st == TN_OK ? ts_float(out) : 0;
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  return st;
}

#define COUNTED ANY("x", "DT_FLOAT") NODE("c", "TestCount", "input: 'x'", SLOT(1))

static tn_run_options defaults(void)
{
  tn_run_options options;
  tn_run_options_init(&options);
  return options;
}

/* ---- defaults ---- */

static void *open_late(void *unused)
{
  CHECK(ts_wait_at_gate(1));
  ts_sleep_ms(150);
  ts_open_gate();
  return unused;
}

static void run_options__null_means_the_defaults(void) /* S-RO-01, S-RO-04 */
{
  tn_run_options options;
  memset(&options, 0xab, sizeof options);
  tn_run_options_init(&options);
  CHECK_INT(options.struct_size, sizeof options);
  CHECK_INT(options.timeout_ms, 0);
  CHECK_INT(options.trace_level, 0);
  CHECK_INT(options.inter_op_pool, 0);
  CHECK_INT(options.output_partition_graphs, 0);
  CHECK_NULL(options.cancellation);
  tn_run_options_init(NULL);
  for (int given = 0; given < 3; given++) { /* there is no time limit */
    ts t;
    float value;
    pthread_t opener;
    vk_open(&t, 1, ANY("x", "DT_FLOAT") NODE("gate", "TestGate", "input: 'x'", SLOT(0))
                   NODE("c", "TestCount", "input: 'gate'", SLOT(1)));
    ts_watch_reset();
    REQUIRE_INT(pthread_create(&opener, NULL, open_late, NULL), 0);
    options = defaults();
    options.timeout_ms = given == 2 ? INT64_MIN : 0;
    CHECK_OK(run_with(&t, given > 0 ? &options : NULL, &value), &t.err);
    CHECK_DOUBLE(value, 4, 0);
    CHECK_INT(ts_counted(1), 1);
    pthread_join(opener, NULL);
    ts_fini(&t);
  }
}

static void run_options__that_were_not_initialised_are_refused(void)
{
  ts t;
  float value;
  tn_run_options options = { .struct_size = 0 };
  vk_open(&t, 1, COUNTED);
  ts_watch_reset();
  CHECK_STATUS(run_with(&t, &options, &value), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "tn_run_options_init");
  CHECK_INT(ts_counted(1), 0);
  ts_fini(&t);
}

/* ---- pools ---- */

static void run_options__name_a_pool_of_the_session(void) /* S-RO-09 */
{
  static const int32_t pools[] = { -2, 1, 2, INT32_MIN, INT32_MAX };
  ts t;
  float value;
  char text[16];
  tn_run_options options = defaults();
  vk_open(&t, 1, COUNTED);
  ts_watch_reset();
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
    options.inter_op_pool = pools[i];
    snprintf(text, sizeof text, "%d", (int)pools[i]);
    CHECK_STATUS(run_with(&t, &options, &value), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "inter_op_pool");
    CHECK_CONTAINS(tn_error_message(&t.err), text);
  }
  CHECK_INT(ts_counted(1), 0); /* such a step runs nothing */
  for (options.inter_op_pool = -1; options.inter_op_pool <= 0; options.inter_op_pool++) {
    CHECK_OK(run_with(&t, &options, &value), &t.err);
    CHECK_DOUBLE(value, 4, 0);
  }
  ts_fini(&t);
}

enum { THREADS = 4, STEPS = 50 };

typedef struct caller {
  tn_session *session;
  int slot; /* slot of this thread's kernels; the next slot is also its own */
  int strangers;
  pthread_t thread;
} caller;

/* A step of independent nodes, a branch and a loop. */
static void *run_here(void *arg)
{
  caller *c = arg;
  tn_run_options options = defaults();
  char fetches[2][16];
  options.inter_op_pool = -1;
  for (int i = 0; i < 2; i++) snprintf(fetches[i], sizeof fetches[i], "s%d", c->slot + i);
  for (int i = 0; i < STEPS; i++) {
    const char *feed = "x", *names[] = { fetches[0], fetches[1], "ten" };
    tn_tensor *x = ts_scalar(2), *out[3] = { NULL, NULL, NULL };
    CHECK_INT(tn_session_run(c->session, &options, &feed, &x, 1, names, out, 3, NULL, 0, NULL, NULL), TN_OK);
    CHECK_DOUBLE(ts_float(out[0]), 2, 0);
    CHECK_DOUBLE(ts_float(out[2]), 10, 0);
    for (int k = 0; k < 3; k++) tn_tensor_unref(out[k]);
    tn_tensor_unref(x);
    for (int k = 0; k < 2; k++) c->strangers += atomic_load(&ts_watched.thread[c->slot + k]) != ts_this_thread();
  }
  return NULL;
}

#define SEEN(n) NODE("s" #n, "TestCount", "input: 'x'", SLOT(n))
static void run_options__pool_minus_1_is_the_calling_thread(void) /* S-RO-10 */
{
  FOR_LEVELS(level) {
    ts t;
    caller callers[THREADS];
    vk_open(&t, level,
            LOOP_LIBRARY ANY("x", "DT_FLOAT") SEEN(0) SEEN(1) SEEN(2) SEEN(3) SEEN(4) SEEN(5) SEEN(6) SEEN(7) COUNTS);
    ts_watch_reset();
    for (int i = 0; i < THREADS; i++) {
      callers[i] = (caller){ .session = t.session, .slot = 2 * i };
      REQUIRE_INT(pthread_create(&callers[i].thread, NULL, run_here, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(callers[i].thread, NULL);
      CHECK_INT(callers[i].strangers, 0);
      CHECK_INT(ts_counted(2 * i), STEPS);
    }
    ts_fini(&t);
  }
}

/* ---- traces and partition graphs ---- */

static void run_options__trace_level_has_four_values(void) /* S-RO-11, S-RO-12 */
{
  static const int32_t wrong[] = { -1, 4, 5, INT32_MIN, INT32_MAX };
  ts t;
  float value;
  tn_run_options options = defaults();
  vk_open(&t, 1, COUNTED);
  ts_watch_reset();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    options.trace_level = wrong[i];
    CHECK_STATUS(run_with(&t, &options, &value), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "trace_level");
  }
  CHECK_INT(ts_counted(1), 0);
  for (options.trace_level = 0; options.trace_level <= 3; options.trace_level++) { /* the trace is discarded */
    uint64_t bytes = 0;
    for (int i = 0; i < 20; i++) {
      CHECK_OK(run_with(&t, &options, &value), &t.err);
      CHECK_DOUBLE(value, 4, 0);
      if (i == 10) bytes = tn_test_live_bytes();
    }
    CHECK_INT(tn_test_live_bytes(), bytes); /* and is not kept */
  }
  CHECK_INT(ts_counted(1), 80);
  ts_fini(&t);
}

static void run_options__partition_graphs_without_metadata_are_dropped(void) /* S-RO-13 */
{
  FOR_LEVELS(level) {
    ts t;
    float value;
    tn_run_options options = defaults();
    options.output_partition_graphs = 1;
    vk_open(&t, level, COUNTED);
    ts_watch_reset();
    for (int i = 0; i < 3; i++) {
      CHECK_OK(run_with(&t, &options, &value), &t.err);
      CHECK_DOUBLE(value, 4, 0);
    }
    CHECK_INT(ts_counted(1), 3);
    ts_fini(&t);
  }
}

/* A callable uses the options it was created with. */
static void run_options__hold_for_callables(void) /* S-RO-02, S-CAL-05 */
{
  ts t;
  tn_callable callable;
  tn_tensor *out = NULL, *x = ts_scalar(1);
  const char *feed = "x", *late = "late", *names[] = { "x" };
  tn_run_options options = defaults();
  bk_open(&t, true, START QUEUE(""));
  options.inter_op_pool = 9;
  CHECK_STATUS(tn_session_make_callable(t.session, &options, &feed, 1, &late, 1, NULL, 0, &callable, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  options = defaults();
  options.timeout_ms = 20;
  REQUIRE_OK(tn_session_make_callable(t.session, &options, names, 1, &late, 1, NULL, 0, &callable, &t.err), &t.err);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(tn_session_run_callable(t.session, callable, &x, 1, &out, 1, NULL, &t.err), TN_DEADLINE_EXCEEDED,
                 &t.err);
    CHECK_NULL(out);
  }
  CHECK_INT(bk_target(t.session, "put", 6), TN_OK);
  CHECK_OK(tn_session_run_callable(t.session, callable, &x, 1, &out, 1, NULL, &t.err), &t.err);
  CHECK_DOUBLE(ts_float(out), 6, 0);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  ts_fini(&t);
}

/* ---- memory ---- */

static tn_status take_parts(ts *t, int64_t n, tn_tensor **out)
{
  const int32_t most = (int32_t)n, half = most / 2;
  const char *feeds[] = { "x", "most", "half" }, *fetch = "y";
  tn_tensor *values[3] = { ts_filled(1, &n, 1), NULL, NULL };
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &most, sizeof most, &values[1], &t->err), &t->err);
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &half, sizeof half, &values[2], &t->err), &t->err);
  tn_status st = tn_session_run(t->session, NULL, feeds, values, 3, &fetch, out, 1, NULL, 0, NULL, &t->err);
  for (int i = 0; i < 3; i++) tn_tensor_unref(values[i]);
  return st;
}

/* Always, not only on request: a step that reaches its session's memory limit reports the largest
 * tensors first. */
static void run_options__memory_users_are_reported(void) /* S-RO-14, S-CAN-13 */
{
  FOR_LEVELS(level) {
    ts t;
    tn_tensor *out = NULL;
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT), most = ts_placeholder(t.graph, "most", TN_INT32),
              half = ts_placeholder(t.graph, "half", TN_INT32);
    tn_output all = ts_op2(t.graph, "TestHead", "all", x, most);
    tn_output some = ts_op2(t.graph, "TestHead", "some", all, half);
    ts_op2(t.graph, "Sub", "y", some, ts_op2(t.graph, "TestHead", "more", some, half));
    CHECK_OK(tn_session_options_set_int(t.options, "memory_limit_bytes", 1000000, &t.err), &t.err);
    ts_start(&t);
    for (int i = 0; i < 3; i++) {
      CHECK_STATUS(take_parts(&t, 200000, &out), TN_RESOURCE_EXHAUSTED, &t.err); /* 800,000 bytes and half of that */
      CHECK_CONTAINS(tn_error_message(&t.err), "largest tensors are 'all:0' float32 [200000], 800000 bytes");
      CHECK_CONTAINS(tn_error_message(&t.err), "memory_limit_bytes");
      CHECK_STR(tn_error_node(&t.err), "some");
      CHECK_STATUS(take_parts(&t, 100000, &out), TN_OK, &t.err); /* memory of the failed step was freed */
      CHECK_DOUBLE(ts_float(out), 0, 0);
      CHECK_INT(tn_tensor_elements(out), 50000);
      tn_tensor_unref(out);
      out = NULL;
    }
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(run_options__null_means_the_defaults),
  TAP_TEST(run_options__that_were_not_initialised_are_refused),
  TAP_TEST(run_options__name_a_pool_of_the_session),
  TAP_TEST(run_options__pool_minus_1_is_the_calling_thread),
  TAP_TEST(run_options__trace_level_has_four_values),
  TAP_TEST(run_options__partition_graphs_without_metadata_are_dropped),
  TAP_TEST(run_options__hold_for_callables),
  TAP_TEST(run_options__memory_users_are_reported))
