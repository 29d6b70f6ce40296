/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent networks of plain ops: the passes "cell" and "layer" replace each layer by one node.
 * Results stay the same, and intermediate values can still be fetched, fed and used as control
 * inputs. */
#include <math.h>
#include <stdio.h>

#include "conformance/support/plan_kit.h"
#include "conformance/support/rnn_kit.h"

#define TOLERANCE 2e-6

static bool is_lstm(rnn_kind kind) { return kind == RNN_LSTM || kind == RNN_LSTM_APART; }

static double distance(const tn_tensor *a, const tn_tensor *b)
{
  double most = 0;
  if (a == NULL || b == NULL || tn_tensor_bytes(a) != tn_tensor_bytes(b)) return INFINITY;
  for (int64_t i = 0; i < tn_tensor_elements(a); i++)
    most = fmax(most, fabs((double)((float *)tn_tensor_data(a))[i] - (double)((float *)tn_tensor_data(b))[i]));
  return most;
}

static void release(tn_tensor **out, size_t n)
{
  for (size_t i = 0; i < n; i++) tn_tensor_unref(out[i]);
}

/* Results of a network under an option. */
static void results(const rnn_net *net, const rnn_feeds *feeds, int level, const char *disabled,
                    const char *const *fetches, size_t n, tn_tensor **out)
{
  ts t;
  rnn_open(&t, net, level, disabled);
  REQUIRE_OK(rnn_run(&t, net, feeds, fetches, n, out), &t.err);
  ts_fini(&t);
}

/* Compares level 1 with level 0 and with the passes disabled. */
static void compare(const rnn_net *net, const rnn_feeds *feeds, const char *const *fetches, size_t n)
{
  static const char *const off[] = { "", "layer", "cell" };
  tn_tensor *plain[4], *out[4];
  results(net, feeds, 0, "", fetches, n, plain);
  for (int i = 0; i < 3; i++) {
    results(net, feeds, 1, off[i], fetches, n, out);
    for (size_t k = 0; k < n; k++)
      CHECK_MSG(distance(plain[k], out[k]) < TOLERANCE,
                "kind %d, batch %d, %d to %d cells, without '%s': %s is off by %g", net->kind, (int)net->batch,
                (int)net->in, (int)net->cells, off[i], fetches[k], distance(plain[k], out[k]));
    release(out, n);
  }
  release(plain, n);
}

/* ---- results ---- */

static void layers__give_the_same(void)
{
  static const int64_t sizes[][3] = {
    { 1, 3, 16 }, { 1, 5, 5 }, { 2, 1, 1 }, { 3, 7, 20 }, { 4, 8, 33 }, { 7, 40, 16 }
  };
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const rnn_net net = { .kind = kind, .steps = 4, .layers = 1, .batch = sizes[i][0], .in = sizes[i][1],
                            .cells = sizes[i][2], .batch_known = i % 2 == 1 };
      const rnn_feeds feeds = { .zeros = i == 3 };
      const char *const fetches[] = { "h0_3:0", "h0_1:0", "c0_3:0", "c0_0:0" };
      compare(&net, &feeds, fetches, is_lstm(kind) ? 4 : 2);
    }
}

/* More rows than a block holds, weights larger than the caches, more steps than a chunk. */
static void layers__of_many_sizes(void)
{
  static const struct {
    int steps;
    int64_t batch, in, cells;
  } sizes[] = { { 3, 61, 10, 24 }, { 2, 1, 300, 280 }, { 70, 1, 4, 12 }, { 9, 5, 300, 200 } };
  static const rnn_kind kinds[] = { RNN_LSTM, RNN_GRU_AFTER, RNN_GRU };
  for (int k = 0; k < 3; k++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      const rnn_net net = { .kind = kinds[k], .steps = sizes[i].steps, .layers = 1, .batch = sizes[i].batch,
                            .in = sizes[i].in, .cells = sizes[i].cells };
      char name[32];
      snprintf(name, sizeof name, "h0_%d:0", net.steps - 1);
      tn_tensor *plain, *out;
      results(&net, NULL, 0, "", (const char *const[]){ name }, 1, &plain);
      results(&net, NULL, 1, "", (const char *const[]){ name }, 1, &out);
      CHECK_MSG(distance(plain, out) < 5e-5, "kind %d, size %d is off by %g", net.kind, (int)i, distance(plain, out));
      release(&out, 1);
      release(&plain, 1);
    }
}

/* Sums are broadcast if x and h' are not concatenated. */
static void layers__broadcast_as_sums_do(void)
{
  static const rnn_kind kinds[] = { RNN_LSTM_APART, RNN_GRU_BEFORE, RNN_GRU_AFTER };
  for (int k = 0; k < 3; k++) {
    rnn_net net = { .kind = kinds[k], .steps = 3, .layers = 1, .batch = 5, .in = 4, .cells = 6 };
    const char *const fetches[] = { "h0_2:0", "h0_0:0", "c0_2:0" };
    size_t n = is_lstm(net.kind) ? 3 : 2;
    compare(&net, &(rnn_feeds){ .h_rows = 1, .c_rows = 1 }, fetches, n);
    net.batch = 1;
    compare(&net, &(rnn_feeds){ .h_rows = 5, .c_rows = 1 }, fetches, n);
    compare(&net, &(rnn_feeds){ .h_rows = 1, .c_rows = 5 }, fetches, is_lstm(net.kind) ? 3 : 1);
  }
  const rnn_net together = { .kind = RNN_LSTM, .steps = 3, .layers = 1, .batch = 5, .in = 4, .cells = 6 };
  compare(&together, &(rnn_feeds){ .c_rows = 1 }, (const char *const[]){ "h0_2:0", "c0_0:0" }, 2);
}

static void layers__wrong_shapes_stay_errors(void)
{
  static const rnn_feeds wrong[] = { { .h_rows = 2 }, { .c_rows = 3 }, { .h_rows = 2, .c_rows = 2 } };
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++)
    FOR_LEVELS(level) {
      ts t;
      const rnn_net net = { .kind = kind, .steps = 3, .layers = 1, .batch = 5, .in = 4, .cells = 6 };
      rnn_open(&t, &net, level, "");
      for (int i = 0; i < 3; i++) {
        tn_tensor *out;
        if (i == 1 && !is_lstm(kind)) continue;
        CHECK_STATUS(rnn_run(&t, &net, &wrong[i], (const char *const[]){ "h0_2:0" }, 1, &out), TN_INVALID_ARGUMENT,
                     &t.err);
        CHECK_NULL(out);
      }
      ts_fini(&t);
    }
}

/* ---- what the passes do ---- */

static tn_plan_report *report_of(ts *t, const rnn_net *net, const char *const *feeds, size_t n_feeds, const char *fetch)
{
  static const char *const usual[] = { "x:0", "h:0", "c:0" };
  tn_plan_report *report = NULL;
  if (feeds == NULL) n_feeds = is_lstm(net->kind) ? 3 : 2;
  REQUIRE_OK(
      tn_session_plan_report(t->session, feeds == NULL ? usual : feeds, n_feeds, &fetch, 1, NULL, 0, &report, &t->err),
      &t->err);
  return report;
}

static int layers_of(const tn_plan_report *report, rnn_kind kind)
{
  return tp_calls(report, is_lstm(kind) ? "_TnLSTMLayer" : "_TnGRULayer");
}

static void layers__are_one_instruction(void)
{
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++) {
    const rnn_net net = { .kind = kind, .steps = 6, .layers = 3, .batch = 2, .in = 4, .cells = 6 };
    ts t;
    rnn_open(&t, &net, 1, "");
    tn_plan_report *report = report_of(&t, &net, NULL, 0, "h2_5:0");
    CHECK_INT(tp_summary(report).instructions, 1 + 3);
    CHECK_INT(layers_of(report, kind), 3);
    CHECK_INT(tp_rewrites(report, is_lstm(kind) ? "lstm_cell" : "gru_cell"), 18);
    CHECK(tp_rewrites(report, is_lstm(kind) ? "lstm_layer" : "gru_layer") > 0);
    tn_plan_report_release(report);
    ts_fini(&t);
    rnn_open(&t, &net, 1, "layer");
    report = report_of(&t, &net, NULL, 0, "h2_5:0");
    CHECK_INT(tp_summary(report).instructions, 1 + 18);
    CHECK_INT(tp_changes(report, "layer"), -1);
    tn_plan_report_release(report);
    ts_fini(&t);
  }
}

/* Inputs from many nodes: fused if no intermediate value is read; otherwise the inputs might depend
 * on it. */
static void layers__need_their_inputs_in_advance(void)
{
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++) {
    const rnn_net net = { .kind = kind, .steps = 5, .layers = 1, .batch = 2, .in = 4, .cells = 6, .batch_known = true,
                          .slices = true };
    ts t;
    rnn_open(&t, &net, 1, "");
    tn_plan_report *report = report_of(&t, &net, NULL, 0, "h0_4:0");
    CHECK_INT(layers_of(report, kind), 1);
    CHECK_INT(tp_summary(report).instructions, 5 + 1);
    tn_plan_report_release(report);
    ts_fini(&t);
    compare(&net, NULL, (const char *const[]){ "h0_4:0", "h0_2:0" }, 2);
  }
}

/* The output of a step is fed into the next step's input, so the inputs cannot be computed in
 * advance. */
static void layers__leave_loops_alone(void)
{
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++) {
    const rnn_net net = { .kind = kind, .steps = 4, .layers = 2, .batch = 2, .in = 6, .cells = 6, .back = true };
    ts t;
    rnn_open(&t, &net, 1, "");
    tn_plan_report *report = report_of(&t, &net, NULL, 0, "h1_3:0");
    CHECK_INT(tp_calls(report, "Neg") + tp_calls(report, "_TnElementwise"), 3);
    tn_plan_report_release(report);
    ts_fini(&t);
    compare(&net, NULL, (const char *const[]){ "h1_3:0", "h0_2:0" }, 2);
    const rnn_net early = { .kind = kind, .steps = 6, .layers = 2, .batch = 2, .in = 6, .cells = 6, .early = true };
    compare(&early, NULL, (const char *const[]){ "h1_5:0", "h0_2:0" }, 2);
  }
}

static void layers__weights_may_be_fed(void)
{
  for (rnn_kind kind = 0; kind < RNN_KINDS; kind++)
    for (int64_t batch = 1; batch <= 5; batch += 4) {
      const rnn_net net = {
        .kind = kind, .steps = 4, .layers = 1, .batch = batch, .in = 5, .cells = 18, .variables = true
      };
      compare(&net, NULL, (const char *const[]){ "h0_3:0", "h0_1:0" }, 2);
    }
}

/* Feeding a state splits the layer: steps before it do not run, steps after it continue from it. */
static void layers__a_fed_state_cuts(void)
{
  const rnn_net net = { .kind = RNN_LSTM, .steps = 6, .layers = 1, .batch = 2, .in = 4, .cells = 6 };
  const char *const feeds[] = { "x:0", "h:0", "c:0", "h0_2:0" };
  tn_tensor *in[4] = { ts_filled(3, (const int64_t[]){ 6, 2, 4 }, 0.5f), ts_filled(2, (const int64_t[]){ 2, 6 }, 0.25f),
                       ts_filled(2, (const int64_t[]){ 2, 6 }, -0.5f), ts_filled(2, (const int64_t[]){ 2, 6 }, 0.75f) };
  tn_tensor *out[2] = { NULL };
  ts t;
  FOR_LEVELS(level) {
    const char *fetch = "h0_5:0";
    rnn_open(&t, &net, level, "");
    REQUIRE_OK(tn_session_run(t.session, NULL, feeds, in, 4, &fetch, &out[level], 1, NULL, 0, NULL, &t.err), &t.err);
    if (level == 1) {
      tn_plan_report *report = report_of(&t, &net, feeds, 4, fetch);
      CHECK_INT(layers_of(report, net.kind), 2);
      tn_plan_report_release(report);
    }
    ts_fini(&t);
  }
  CHECK_DOUBLE(distance(out[0], out[1]), 0, TOLERANCE);
  release(out, 2);
  release(in, 4);
}

/* A control edge from a node of a state keeps that node, and the fused chain ends there. */
static void layers__control_edges_hold(void)
{
  const rnn_net net = { .kind = RNN_GRU, .steps = 5, .layers = 1, .batch = 2, .in = 4, .cells = 6 };
  tn_tensor *plain, *out;
  ts t;
  results(&net, NULL, 0, "", (const char *const[]){ "h0_4:0" }, 1, &plain);
  ts_init(&t, 1);
  rnn_graph(t.graph, &net);
  tn_operation *h = tn_graph_find(t.graph, "h0_2");
  ts_watch_reset();
  ts_test_op(t.graph, "TestEffect", "effect", NULL, 2, &h, 1);
  ts_start(&t);
  REQUIRE_OK(rnn_run(&t, &net, NULL, (const char *const[]){ "h0_4:0" }, 1, &out), &t.err);
  CHECK_DOUBLE(distance(plain, out), 0, TOLERANCE);
  CHECK_INT(ts_counted(2), 0);
  ts_fini(&t);
  release(&out, 1);
  release(&plain, 1);
}

static tn_status run_all(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_session *s = NULL;
  tn_session_options *o = NULL;
  tn_tensor *in[3] = { NULL }, *out = NULL;
  static const int64_t x[] = { 3, 2, 4 }, state[] = { 2, 6 };
  static const char *const feeds[] = { "x:0", "h:0", "c:0" }, *const fetch = "h1_2:0";
  const bool c = tn_graph_find(arg, "c0_0") != NULL && tn_graph_find(arg, "kept0_0") != NULL;
  tn_status st = tn_session_options_create(&o, &err);
  if (st == TN_OK) st = tn_session_options_set_target(o, ts_runtime(), &err);
  if (st == TN_OK) st = tn_session_create(o, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, arg, &err);
  for (int i = 0; i < 3 && st == TN_OK; i++) {
    st = i == 0 ? tn_tensor_create(TN_FLOAT, x, 3, &in[i], &err) : tn_tensor_create(TN_FLOAT, state, 2, &in[i], &err);
    if (st == TN_OK) memset(tn_tensor_data(in[i]), 0, tn_tensor_bytes(in[i]));
  }
  if (st == TN_OK) st = tn_session_run(s, NULL, feeds, in, c ? 3 : 2, &fetch, &out, 1, NULL, 0, NULL, &err);
  release(in, 3);
  tn_tensor_unref(out);
  tn_session_destroy(s);
  tn_session_options_destroy(o);
  tn_error_clear(&err);
  return st;
}

static void layers__survive_lack_of_memory(void)
{
  static const rnn_kind kinds[] = { RNN_LSTM_APART, RNN_GRU_AFTER };
  for (int k = 0; k < 2; k++) {
    ts t;
    const rnn_net net = { .kind = kinds[k], .steps = 3, .layers = 2, .batch = 2, .in = 4, .cells = 6 };
    ts_init(&t, 1);
    rnn_graph(t.graph, &net);
    tn_test_oom_sweep(run_all, t.graph);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(layers__give_the_same),
  TAP_TEST(layers__of_many_sizes),
  TAP_TEST(layers__broadcast_as_sums_do),
  TAP_TEST(layers__wrong_shapes_stay_errors),
  TAP_TEST(layers__are_one_instruction),
  TAP_TEST(layers__need_their_inputs_in_advance),
  TAP_TEST(layers__leave_loops_alone),
  TAP_TEST(layers__weights_may_be_fed),
  TAP_TEST(layers__a_fed_state_cuts),
  TAP_TEST(layers__control_edges_hold),
  TAP_TEST(layers__survive_lack_of_memory))
