/* SPDX-License-Identifier: Apache-2.0 */
/* Level (a) of the kit with parts run by the runtime: results equal those of `direct` wherever
 * the parts are, each part is offered once, every part taken is released, and errors become the
 * step's. */
#include <pthread.h>
#include <stdio.h>

#include <tenon/runtime.h>

#include "conformance/support/calls_kit.h"
#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"

/* ---- what the plugin says when its session ends ---- */

static size_t offered, taken, runs, released;

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  const char *at = strstr(line, "offload: ");
  if (at != NULL)
    CHECK_INT(
        sscanf(at, "offload: %zu parts offered, %zu taken, %zu runs, %zu released", &offered, &taken, &runs, &released),
        4);
}

static void listen(void)
{
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
}

static void listen_no_more(void)
{
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
}

/* ---- graphs ---- */

#define MATMUL(name, a, b) BODY(name, "MatMul", "input: '" a "' input: '" b "'", T("DT_FLOAT"))
#define LOOP_BODY                                                                                             \
  FUNCTION("Body",                                                                                            \
           COUNTED(ARG("a", "DT_FLOAT") ARG("w", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") \
               RESULT("b", "DT_FLOAT") RESULT("v", "DT_FLOAT"),                                               \
           NEXT MATMUL("product", "a", "w") BODY("tanh", "Tanh", "input: 'product:product:0'", T("DT_FLOAT")) \
               RET("j", "next:z:0") RET("m", "n") RET("b", "tanh:y:0") RET("v", "w"))
/* A loop over functions, followed by a branch with a call in it. */
static const char flow_text[] =
    LIBRARY(BELOW(ARG("a", "DT_FLOAT") ARG("w", "DT_FLOAT")) LOOP_BODY TWICE) IN("x", "DT_FLOAT") IN("m", "DT_FLOAT")
        IN("p", "DT_BOOL") NODE("twice", "AddV2", "input: 'x' input: 'x'",
                                T("DT_FLOAT")) COUNT("w", "While", "Below", "Body", "input: 'twice' input: 'm'", F F)
            NODE("switch", "Switch", "input: 'w:2' input: 'p'", T("DT_FLOAT"))
                NODE("yes", "Neg", "input: 'switch:1'", T("DT_FLOAT")) CALL("no", "PartitionedCall", "Twice", "switch")
                    NODE("merge", "Merge", "input: 'no' input: 'yes'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
                        NODE("out", "Exp", "input: 'merge'", T("DT_FLOAT"))
                            NODE("text", "AsString", "input: 'out'", T("DT_FLOAT"))
                                NODE("size", "StringLength", "input: 'text'", "");

static const char *const feeds[] = { "x", "m", "p", "n" }, *const fetches[] = { "out", "w:0", "size", "merge", "out" };
enum { N_FEEDS = 4, N_FETCHES = 5 };

/* Loads the plugin, and `direct` from the place where it was found. */
static void load_both(void)
{
  static bool there;
  ts t;
  if (there) return;
  ts_init(&t, 0);
  REQUIRE_OK(tn_session_options_set_target(t.options, "direct", &t.err), &t.err);
  ts_start(&t);
  const char *folder = plugin_folder();
  plugin_copy("offload", folder, "offload.so");
  plugin_search(folder);
  there = true;
  ts_fini(&t);
}

static void open_on(ts *t, const char *target, int level)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  load_both();
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, flow_text, strlen(flow_text), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_status run_flow(ts *t, int64_t rows, int32_t n, tn_bool side, const tn_run_options *options,
                          tn_run_metadata *m, tn_tensor **out)
{
  const int64_t dims[] = { rows, 3 }, square[] = { 3, 3 };
  tn_tensor *in[N_FEEDS] = { NULL };
  tn_status st = tn_tensor_create(TN_FLOAT, dims, 2, &in[0], &t->err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, square, 2, &in[1], &t->err);
  for (int64_t i = 0; st == TN_OK && i < rows * 3; i++) ((float *)tn_tensor_data(in[0]))[i] = (float)(i % 7) / 8;
  for (int i = 0; st == TN_OK && i < 9; i++) ((float *)tn_tensor_data(in[1]))[i] = (float)(i % 4) / 3 - 0.4f;
  if (st == TN_OK) st = tn_tensor_from_data(TN_BOOL, NULL, 0, &side, sizeof side, &in[2], &t->err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[3], &t->err);
  if (st == TN_OK)
    st = tn_session_run(t->session, options, feeds, in, N_FEEDS, fetches, out, N_FETCHES, NULL, 0, m, &t->err);
  for (int i = 0; i < N_FEEDS; i++) tn_tensor_unref(in[i]);
  return st;
}

static void unref_all(tn_tensor **t)
{
  for (int k = 0; k < N_FETCHES; k++) {
    tn_tensor_unref(t[k]);
    t[k] = NULL;
  }
}

static void check_like(ts *own, ts *direct, int64_t rows, int32_t n, tn_bool side)
{
  tn_tensor *a[N_FETCHES] = { NULL }, *b[N_FETCHES] = { NULL };
  REQUIRE_OK(run_flow(own, rows, n, side, NULL, NULL, a), &own->err);
  REQUIRE_OK(run_flow(direct, rows, n, side, NULL, NULL, b), &direct->err);
  for (int k = 0; k < N_FETCHES; k++) {
    REQUIRE(tn_tensor_bytes(a[k]) == tn_tensor_bytes(b[k]));
    CHECK(memcmp(tn_tensor_data(a[k]), tn_tensor_data(b[k]), tn_tensor_bytes(a[k])) == 0);
  }
  unref_all(a);
  unref_all(b);
}

/* ---- tests ---- */

static void offload__results_equal_those_of_direct(void)
{
  static const char *const targets[] = { "test.offload", "test.offload:take=half", "test.offload:take=none" };
  FOR_LEVELS(level)
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    ts own, direct;
    open_on(&direct, "direct", level);
    open_on(&own, targets[i], level);
    static const int32_t turns[] = { 0, 1, 2, 7, 100 };
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
      check_like(&own, &direct, 4, turns[k], 0);
      check_like(&own, &direct, 4, turns[k], 1);
      check_like(&own, &direct, (int64_t)k, turns[k], 1);
    }
    ts_fini(&own);
    ts_fini(&direct);
  }
}

/* The loop's body is one part, whatever the number of iterations; all parts are released. */
static void offload__offers_each_part_once(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[N_FETCHES] = { NULL };
    listen();
    for (int steps = 1; steps <= 3; steps += 2) {
      static size_t once, once_runs;
      open_on(&t, "test.offload", level);
      for (int i = 0; i < steps; i++) {
        REQUIRE_OK(run_flow(&t, 4, 50, 1, NULL, NULL, out), &t.err);
        unref_all(out);
      }
      ts_fini(&t);
      CHECK(offered > 0 && taken == offered && released == taken);
      CHECK(runs >= 50 * (size_t)steps);
      if (steps == 1) {
        once = offered;
        once_runs = runs;
      } else {
        CHECK_INT(offered, once);
        CHECK_INT(runs, once_runs * (size_t)steps);
      }
    }
    listen_no_more();
  }
}

/* The kit records what it runs, the runtime what it took; nodes that compute nothing have
 * records, too. */
static void offload__metadata_covers_each_node(void)
{
  static const char *const targets[] = { "direct", "test.offload" };
  size_t records[2];
  for (int i = 0; i < 2; i++) {
    ts t;
    tn_run_metadata *m = NULL;
    tn_run_options options;
    tn_tensor *out[N_FETCHES] = { NULL };
    tn_metadata_summary sum = { .struct_size = sizeof sum };
    open_on(&t, targets[i], 0);
    tn_run_options_init(&options);
    options.trace_level = 3;
    REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
    REQUIRE_OK(run_flow(&t, 4, 3, 0, &options, m, out), &t.err);
    REQUIRE_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
    records[i] = sum.records;
    unref_all(out);
    tn_run_metadata_destroy(m);
    ts_fini(&t);
  }
  CHECK_INT(records[0], records[1]);
}

static void offload__errors_become_those_of_the_step(void)
{
  static const struct { const char *target, *message; } cases[] = {
    { "test.offload:fail=take", "the device was missing" },
    { "test.offload:fail=run", "the runtime's offload: run failed without a message" },
  };
  for (size_t i = 0; i < 2; i++) {
    ts t;
    tn_tensor *out[N_FETCHES] = { NULL };
    open_on(&t, cases[i].target, 0);
    for (int k = 0; k < 2; k++) { /* the second step fails in the same way */
      CHECK_STATUS(run_flow(&t, 4, 3, 0, NULL, NULL, out), TN_UNAVAILABLE, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), cases[i].message);
      tn_error_clear(&t.err);
    }
    ts_fini(&t);
  }
}

static void *many_steps(void *arg)
{
  ts *t = arg;
  ts mine = *t;
  mine.err = (tn_error)TN_ERROR_INIT;
  for (int i = 0; i < 40; i++) {
    tn_tensor *out[N_FETCHES] = { NULL };
    CHECK_OK(run_flow(&mine, 2 + i % 3, i % 5, (tn_bool)(i & 1), NULL, NULL, out), &mine.err);
    unref_all(out);
  }
  return NULL;
}

static void offload__concurrent_steps(void)
{
  ts t;
  pthread_t threads[4];
  listen();
  open_on(&t, "test.offload", 1);
  for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&threads[i], NULL, many_steps, &t) == 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
  CHECK_INT(released, taken);
  listen_no_more();
}

/* An endless step is cancelled in the middle of its loop. */
static void offload__late_steps_exceed_their_time_limit(void)
{
  ts t;
  tn_run_options options;
  tn_tensor *out[N_FETCHES] = { NULL };
  open_on(&t, "test.offload", 1);
  tn_run_options_init(&options);
  options.timeout_ms = 20;
  CHECK_STATUS(run_flow(&t, 4, INT32_MAX, 1, &options, NULL, out), TN_DEADLINE_EXCEEDED, &t.err);
  tn_error_clear(&t.err);
  REQUIRE_OK(run_flow(&t, 4, 3, 1, NULL, NULL, out), &t.err);
  unref_all(out);
  ts_fini(&t);
}

/* A session's life: parts are offered, taken, created and released. */
static tn_status one_life(void *arg)
{
  tn_tensor *out[N_FETCHES] = { NULL };
  ts *t = arg;
  t->session = NULL;
  tn_status st = tn_session_create(t->options, &t->session, &t->err);
  if (st == TN_OK) st = tn_session_set_graph(t->session, t->graph, &t->err);
  if (st == TN_OK) st = run_flow(t, 3, 2, 0, NULL, NULL, out);
  unref_all(out);
  tn_session_destroy(t->session);
  t->session = NULL;
  tn_error_clear(&t->err);
  return st;
}

static void offload__without_memory(void)
{
  static const char *const targets[] = { "direct", "test.offload" };
  for (int i = 0; i < 2; i++) { /* a failure on both targets has nothing to do with parts */
    ts t;
    open_on(&t, targets[i], 0);
    tn_session_destroy(t.session);
    one_life(&t);
    tn_test_oom_sweep(one_life, &t);
    ts_fini(&t);
  }
}

static tn_status take_nothing(void *user, const tn_kit_part *part, void **handle, tn_error *err)
{
  (void)user, (void)part, (void)handle, (void)err;
  return TN_OK;
}

static void offload__wrong_calls(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_executable *e;
  tn_plan_instruction in = { .struct_size = sizeof in };
  const tn_plan *some = (const tn_plan *)&err;
  tn_kit_offload o = { .struct_size = TN_KIT_OFFLOAD_SIZE, .take = take_nothing };
  CHECK_STATUS(tn_kit_prepare_offloaded(some, TN_KIT_INLINE, &o, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_kit_prepare_offloaded(some, TN_KIT_INLINE, NULL, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_kit_prepare_offloaded(some, TN_KIT_INLINE, &o, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the offload has no run");
  o.struct_size = 8;
  CHECK_STATUS(tn_kit_prepare_offloaded(some, TN_KIT_INLINE, &o, &e, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "struct_size");
  CHECK_STATUS(tn_kit_part_instruction(NULL, 0, &in, &err), TN_INVALID_ARGUMENT, &err);
  const tn_kit_part part = { .struct_size = sizeof part, .begin = 2, .end = 3 };
  CHECK_STATUS(tn_kit_part_instruction(&part, 3, &in, &err), TN_OUT_OF_RANGE, &err);
  tn_error_clear(&err);
}

TAP_MAIN(
  TAP_TEST(offload__results_equal_those_of_direct),
  TAP_TEST(offload__offers_each_part_once),
  TAP_TEST(offload__metadata_covers_each_node),
  TAP_TEST(offload__errors_become_those_of_the_step),
  TAP_TEST(offload__concurrent_steps),
  TAP_TEST(offload__late_steps_exceed_their_time_limit),
  TAP_TEST(offload__without_memory),
  TAP_TEST(offload__wrong_calls))
