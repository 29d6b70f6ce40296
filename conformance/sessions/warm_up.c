/* SPDX-License-Identifier: Apache-2.0 */
/* Warming up a callable does the one-time work of its first run in advance, and nothing else. */
#include <pthread.h>
#include <stdlib.h>

#include "conformance/support/blocked_kit.h"

static tn_callable callable_of(ts *t, const char *fetch, const tn_run_options *options)
{
  static const char *const feeds[] = { "x" };
  tn_callable callable = { 0 };
  REQUIRE_OK(tn_session_make_callable(t->session, options, feeds, 1, &fetch, 1, NULL, 0, &callable, &t->err), &t->err);
  return callable;
}

/* Warms up with a vector of n. Returns the status; *ran tells whether a step was run. */
static tn_status warm(ts *t, tn_callable callable, int64_t n, const tn_run_options *options, tn_bool *ran)
{
  tn_tensor *feed = n < 0 ? ts_scalar(1) : ts_filled(1, &n, 1);
  *ran = 9;
  tn_error_clear(&t->err);
  tn_status st = tn_session_warm_callable(t->session, callable, options, &feed, 1, ran, &t->err);
  tap_answered(st, &t->err);
  tn_tensor_unref(feed);
  return st;
}

static float run(ts *t, tn_callable callable, int64_t n)
{
  tn_tensor *feed = n < 0 ? ts_scalar(1) : ts_filled(1, &n, 1), *fetched = NULL;
  tn_error_clear(&t->err);
  tn_status st = tn_session_run_callable(t->session, callable, &feed, 1, &fetched, 1, NULL, &t->err);
  tap_answered(st, &t->err);
  float value = st == TN_OK ? ts_float(fetched) : NAN;
  tn_tensor_unref(feed);
  tn_tensor_unref(fetched);
  return value;
}

/* Number of layouts and packed constants of the signature so far. */
static tn_plan_summary look(ts *t, const char *fetch)
{
  static const char *const feeds[] = { "x" };
  tn_plan_report *report = NULL;
  tn_plan_summary s = { .struct_size = sizeof s };
  REQUIRE_OK(tn_session_plan_report(t->session, feeds, 1, &fetch, 1, NULL, 0, &report, &t->err), &t->err);
  REQUIRE_OK(tn_plan_report_summary(report, &s, &t->err), &t->err);
  tn_plan_report_release(report);
  return s;
}

/* ---- without effects ---- */

static void warm_up__leaves_no_layout_to_the_first_run(void) /* S-CAL-06 */
{
  static const int64_t dims[] = { 64, 64 };
  FOR_LEVELS(level)
  {
    ts t;
    tn_bool ran;
    ts_init(&t, level);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    tn_tensor *value = ts_filled(2, dims, 0.5f);
    tn_output w = ts_const_tensor(t.graph, "w", value);
    tn_tensor_unref(value);
    ts_op2(t.graph, "MatMul", "y", ts_op2(t.graph, "Mul", "wx", w, x), w);
    ts_start(&t);
    tn_callable callable = callable_of(&t, "y", NULL);
    CHECK_INT(look(&t, "y").layouts, 0);
    CHECK_OK(warm(&t, callable, -1, NULL, &ran), &t.err);
    CHECK_INT(ran, 1);
    tn_plan_summary warmed = look(&t, "y");
    CHECK(warmed.layouts > 0);
    CHECK_DOUBLE(run(&t, callable, -1), 16, 0);
    tn_plan_summary after = look(&t, "y");
    CHECK_INT(after.layouts, warmed.layouts);
    CHECK_INT(after.packed, warmed.packed);
    ts_fini(&t);
  }
}

/* A step was run, and its values are discarded. */
static void warm_up__runs_a_step_without_effects(void) /* S-CAL-06 */
{
  ts t;
  tn_bool ran;
  ts_init(&t, 0);
  ts_watch_reset();
  ts_watch_op(t.graph, "TestPlain", "y", ts_placeholder(t.graph, "x", TN_FLOAT), 3);
  ts_start(&t);
  tn_callable callable = callable_of(&t, "y", NULL);
  CHECK_OK(warm(&t, callable, 5, NULL, &ran), &t.err);
  CHECK_INT(ran, 1);
  CHECK_INT(ts_counted(3), 1);
  CHECK_DOUBLE(run(&t, callable, 5), 1, 0);
  CHECK_INT(ts_counted(3), 2);
  ts_fini(&t);
}

/* Each shape is warmed up separately, including one other than declared, which has its own plan. */
static void warm_up__applies_to_the_fed_shapes(void) /* S-CAL-06, S-RUN-16 */
{
  ts t;
  tn_bool ran;
  tn_operation *x;
  ts_init(&t, 1);
  tn_operation_builder *b = tn_operation_begin(t.graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", (int64_t[]){ 4 }, 1);
  REQUIRE_OK(tn_operation_finish(b, &x, &t.err), &t.err);
  ts_op1(t.graph, "Neg", "y", (tn_output){ x, 0 });
  ts_start(&t);
  tn_callable callable = callable_of(&t, "y", NULL);
  for (int64_t n = 0; n < 8; n += 2) {
    CHECK_OK(warm(&t, callable, n, NULL, &ran), &t.err);
    CHECK_INT(ran, 1);
  }
  for (int64_t n = 2; n < 8; n += 2) CHECK_DOUBLE(run(&t, callable, n), -1, 0);
  ts_fini(&t);
}

#define LOOPS(more) ANY("x", "DT_FLOAT") COUNTS ROUND("ever", "input: 'x'", "Ever", "Same") more LOOP_LIBRARY

/* Reading a variable, a loop and a function have no effects. */
static void warm_up__runs_loops_functions_and_reads(void) /* S-CAL-06 */
{
  ts t;
  tn_bool ran;
  bk_open(&t, true, LOOPS(SCALAR_VARIABLE(TEXT_ATTR("shared_name", "warm_up"))
                          NODE("sum", "AddV2", "input: 'x' input: 'read'", F)));
  tn_callable sum = callable_of(&t, "sum", NULL), ten = callable_of(&t, "ten", NULL),
              few = callable_of(&t, "few", NULL);
  CHECK_STATUS(warm(&t, sum, -1, NULL, &ran), TN_FAILED_PRECONDITION, &t.err); /* as a run: no value is set */
  CHECK_INT(ran, 0);
  CHECK_INT(bk_target(t.session, "set", 3), TN_OK);
  CHECK_OK(warm(&t, sum, -1, NULL, &ran), &t.err);
  CHECK_INT(ran, 1);
  CHECK_DOUBLE(run(&t, sum, -1), 4, 0);
  CHECK_OK(warm(&t, ten, -1, NULL, &ran), &t.err);
  CHECK_INT(ran, 1);
  CHECK_OK(warm(&t, few, -1, NULL, &ran), &t.err);
  CHECK_INT(ran, 1);
  CHECK_DOUBLE(run(&t, few, -1), 10, 0);
  ts_fini(&t);
}

/* ---- with effects ---- */

static void warm_up__changes_no_state(void) /* S-CAL-06 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_bool ran;
    ts_init(&t, level);
    ts_watch_reset();
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    ts_op1(t.graph, "Neg", "y", ts_watch_op(t.graph, "TestCount", "counts", x, 4));
    ts_start(&t);
    tn_callable callable = callable_of(&t, "y", NULL);
    CHECK_OK(warm(&t, callable, 5, NULL, &ran), &t.err);
    CHECK_INT(ran, 0);
    CHECK_INT(ts_counted(4), 0);
    uint64_t layouts = look(&t, "y").layouts;
    CHECK(layouts > 0);
    CHECK_DOUBLE(run(&t, callable, 5), -1, 0);
    CHECK_INT(ts_counted(4), 1);
    CHECK_INT(look(&t, "y").layouts, layouts);
    ts_fini(&t);
  }
}

#define TALLY                                                                                                          \
  "function { signature { name: 'Tally' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT " \
  "} "                                                                                                                 \
  "is_stateful: true } node_def { name: 'c' op: 'TestCount' input: 'x' " F INT(                                        \
      "slot", 6) " } ret { key: 'y' value: 'c:y:0' } } "

/* Effects in a function, in the body of a loop, in a variable, and through a queue. */
static void warm_up__finds_effects_wherever_they_are(void) /* S-CAL-06 */
{
  static const char *const fetches[] = { "called", "chosen", "turned", "added", "dequeued", "drawn", "random" };
  ts t;
  tn_bool ran;
  bk_open(&t, true,
          ANY("x", "DT_FLOAT") SCALAR_VARIABLE(TEXT_ATTR("shared_name", "warm_up"))
              NODE("called", "StatefulPartitionedCall", "input: 'x'",
                   LIST("Tin", "type: DT_FLOAT")
                       LIST("Tout", "type: DT_FLOAT") "attr { key: 'f' value { func { name: 'Tally' } } }")
                  NODE("chosen", "If", "input: 'x' input: 'x'",
                       TYPE("Tcond", "DT_FLOAT") LIST("Tin", "type: DT_FLOAT") LIST(
                           "Tout", "type: DT_FLOAT") "attr { key: 'then_branch' value { func { name: 'Tally' } } } "
                                                     "attr { key: 'else_branch' value { func { name: 'Tally' } } }")
                      NODE("drawn", "TestRandom", "input: 'x'", F INT("slot", 6))
                          ROUND("turned", "input: 'x'", "Few", "Tally") QUEUE("")
                              NODE("added", "Identity", "input: 'x' input: '^add'", F)
                                  NODE("dequeued", "AddV2", "input: 'x' input: 'get'", F)
                                      NODE("shape", "Shape", "input: 'x'", F TYPE("out_type", "DT_INT32"))
                                          NODE("random", "RandomUniform", "input: 'shape'",
                                               TYPE("T", "DT_INT32") DT INT("seed", 1) INT("seed2", 2))
                                              NODE("begun", "Identity", "input: 'x'", F) "library { " TALLY UNARY(
                                                  "Few", "DT_BOOL",
                                                  INNER("k", "Const", "", FILLED("DT_FLOAT", "float_val: 10"))
                                                      INNER("l", "Less", "input: 'x' input: 'k:output:0'", F),
                                                  "l:z:0") "}\n");
  CHECK_INT(bk_target(t.session, "set", 3), TN_OK);
  for (size_t i = 0; i < sizeof fetches / sizeof *fetches; i++) {
    tn_callable callable = callable_of(&t, fetches[i], NULL);
    CHECK_OK(warm(&t, callable, i < 6 ? -1 : 3, NULL, &ran), &t.err);
    CHECK_MSG(ran == 0, "'%s' was run", fetches[i]);
  }
  CHECK_INT(ts_counted(6), 0);
  CHECK_DOUBLE(bk_fetch(t.session, "read"), 3, 0);
  ts_fini(&t);
}

/* ---- limits ---- */

static void warm_up__ends_at_its_limits(void) /* S-CAL-06, S-RO-03, S-CAN-08 */
{
  ts t;
  tn_bool ran;
  tn_run_options limited, stopped;
  bk_open(&t, true, LOOPS(""));
  tn_callable ever = callable_of(&t, "ever", NULL), few = callable_of(&t, "few", NULL);
  tn_run_options_init(&limited);
  tn_run_options_init(&stopped);
  limited.timeout_ms = 50;
  REQUIRE_OK(tn_cancellation_create(NULL, &stopped.cancellation, &t.err), &t.err);
  tn_cancellation_cancel(stopped.cancellation);
  CHECK_STATUS(warm(&t, ever, -1, &limited, &ran), TN_DEADLINE_EXCEEDED, &t.err);
  CHECK_STATUS(warm(&t, ever, -1, &stopped, &ran), TN_CANCELLED, &t.err);
  CHECK_INT(ran, 0);
  CHECK_OK(warm(&t, few, -1, NULL, &ran), &t.err);
  CHECK_DOUBLE(run(&t, few, -1), 10, 0);
  tn_cancellation_unref(stopped.cancellation);
  ts_fini(&t);
}

/* The callable's own options apply to its runs only. */
static void warm_up__has_options_of_its_own(void) /* S-CAL-06 */
{
  FOR_LEVELS(effect)
  {
    ts t;
    tn_bool ran;
    tn_run_options options;
    ts_init(&t, 1);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    ts_watch_op(t.graph, effect ? "TestCount" : "TestPlain", "y", x, 5);
    ts_start(&t);
    tn_run_options_init(&options);
    REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
    tn_cancellation_cancel(options.cancellation);
    tn_callable callable = callable_of(&t, "y", &options);
    CHECK_OK(warm(&t, callable, 2, NULL, &ran), &t.err);
    CHECK_INT(ran, !effect);
    CHECK(isnan(run(&t, callable, 2)));
    CHECK_INT(tn_error_code(&t.err), TN_CANCELLED);
    CHECK_STATUS(warm(&t, callable, 3, &options, &ran), TN_CANCELLED, &t.err);
    options.trace_level = 7;
    CHECK_STATUS(warm(&t, callable, 2, &options, &ran), TN_INVALID_ARGUMENT, &t.err);
    tn_cancellation_unref(options.cancellation);
    ts_fini(&t);
  }
}

static void *warm_for_ever(void *user)
{
  ts *t = user;
  tn_bool ran;
  tn_callable ever = callable_of(t, "ever", NULL);
  CHECK_STATUS(warm(t, ever, -1, NULL, &ran), TN_CANCELLED, &t->err);
  return NULL;
}

static void warm_up__ends_with_its_session(void) /* S-CAL-06, S-LIFE-04 */
{
  ts t;
  pthread_t thread;
  tn_bool ran;
  bk_open(&t, true, LOOPS(""));
  tn_callable few = callable_of(&t, "few", NULL);
  REQUIRE_INT(pthread_create(&thread, NULL, warm_for_ever, &t), 0);
  ts_sleep_ms(20);
  CHECK_INT(tn_session_close(t.session, NULL), TN_OK);
  pthread_join(thread, NULL);
  CHECK_STATUS(warm(&t, few, -1, NULL, &ran), TN_CANCELLED, &t.err);
  ts_fini(&t);
}

/* ---- errors ---- */

static void warm_up__wrong_arguments_are_named(void) /* S-CAL-02, S-CAL-03, S-CAL-06 */
{
  static const int64_t three = 3;
  ts t;
  tn_bool ran;
  ts_open(&t, 1);
  static const char *const feeds[] = { "x", "y" }, *const fetches[] = { "sum" };
  tn_callable callable, none = { 0 };
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, feeds, 2, fetches, 1, NULL, 0, &callable, &t.err), &t.err);
  tn_tensor *x = ts_filled(1, &three, 1), *i = NULL, *y = ts_filled(1, (int64_t[]){ 2 }, 1);
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, (int32_t[]){ 1 }, 4, &i, &t.err), &t.err);
  CHECK_STATUS(tn_session_warm_callable(NULL, callable, NULL, NULL, 0, &ran, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, NULL, 2, &ran, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, &x, 1, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, (tn_tensor *[]){ x, NULL }, 2, &ran, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, (tn_tensor *[]){ x, i }, 2, &ran, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'y' has type int32");
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, (tn_tensor *[]){ x, y }, 2, &ran, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'sum'"); /* the node whose kernel refuses the shapes */
  CHECK_INT(ran, 0);
  CHECK_STATUS(tn_session_warm_callable(t.session, none, NULL, (tn_tensor *[]){ x, x }, 2, &ran, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_OK(tn_session_release_callable(t.session, callable, &t.err), &t.err);
  CHECK_STATUS(tn_session_warm_callable(t.session, callable, NULL, (tn_tensor *[]){ x, x }, 2, &ran, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "released");
  tn_tensor_unref(x);
  tn_tensor_unref(y);
  tn_tensor_unref(i);
  ts_fini(&t);
}

/* ---- memory and threads ---- */

static tn_status warm_anew(void *user)
{
  ts *t = user;
  static const char *const feed = "x", *const fetch = "y";
  static const int64_t n = 4;
  tn_session *session = NULL;
  tn_callable callable;
  tn_error err = TN_ERROR_INIT;
  tn_tensor *x = NULL;
  tn_status st = tn_tensor_create(TN_FLOAT, &n, 1, &x, &err);
  if (st == TN_OK) memset(tn_tensor_data(x), 0, tn_tensor_bytes(x));
  if (st == TN_OK) st = tn_session_create(t->options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, t->graph, &err);
  if (st == TN_OK) st = tn_session_make_callable(session, NULL, &feed, 1, &fetch, 1, NULL, 0, &callable, &err);
  if (st == TN_OK) st = tn_session_warm_callable(session, callable, NULL, &x, 1, NULL, &err);
  CHECK_INT(tn_error_code(&err), st);
  tn_session_destroy(session);
  tn_tensor_unref(x);
  tn_error_clear(&err);
  return st;
}

static void warm_up__survives_every_failed_allocation(void) /* S-CAN-13 */
{
  FOR_LEVELS(effect)
  {
    ts t;
    ts_init(&t, 1);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    tn_output mid = ts_watch_op(t.graph, effect ? "TestCount" : "TestPlain", "mid", x, 7);
    ts_op1(t.graph, "Neg", "y", mid);
    ts_start(&t);
    tn_test_oom_sweep(warm_anew, &t);
    ts_fini(&t);
  }
}

enum { THREADS = 4, TURNS = 20 };

typedef struct shared {
  ts *t;
  tn_callable callable;
} shared;

static void *warm_and_run(void *user)
{
  const shared *s = user;
  for (int64_t i = 1; i <= TURNS; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *feed = ts_filled(1, &i, 2), *fetched = NULL;
    CHECK_OK(tn_session_warm_callable(s->t->session, s->callable, NULL, &feed, 1, NULL, &err), &err);
    CHECK_OK(tn_session_run_callable(s->t->session, s->callable, &feed, 1, &fetched, 1, NULL, &err), &err);
    CHECK_DOUBLE(ts_float(fetched), -2, 0);
    tn_tensor_unref(feed);
    tn_tensor_unref(fetched);
    tn_error_clear(&err);
  }
  return NULL;
}

static void warm_up__is_concurrent_with_runs(void) /* S-CAL-06, S-THR-01 */
{
  FOR_LEVELS(effect)
  {
    ts t;
    pthread_t threads[THREADS];
    ts_init(&t, 1);
    tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
    ts_op1(t.graph, "Neg", "y", ts_watch_op(t.graph, effect ? "TestCount" : "TestPlain", "mid", x, 8));
    ts_start(&t);
    shared s = { &t, callable_of(&t, "y", NULL) };
    for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, warm_and_run, &s), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(warm_up__leaves_no_layout_to_the_first_run),
  TAP_TEST(warm_up__runs_a_step_without_effects),
  TAP_TEST(warm_up__applies_to_the_fed_shapes),
  TAP_TEST(warm_up__runs_loops_functions_and_reads),
  TAP_TEST(warm_up__changes_no_state),
  TAP_TEST(warm_up__finds_effects_wherever_they_are),
  TAP_TEST(warm_up__ends_at_its_limits),
  TAP_TEST(warm_up__has_options_of_its_own),
  TAP_TEST(warm_up__ends_with_its_session),
  TAP_TEST(warm_up__wrong_arguments_are_named),
  TAP_TEST(warm_up__survives_every_failed_allocation),
  TAP_TEST(warm_up__is_concurrent_with_runs))
