/* SPDX-License-Identifier: Apache-2.0 */
/* Plans with branches, loops and functions on the runtime gpu: the nodes inside run on the
 * device. Uses PoCL or any other device; tests are skipped without one, unless
 * TENON_TEST_GPU=required. */
#include <pthread.h>
#include <stdio.h>

#include "conformance/support/calls_kit.h"
#include "tests/support/gpu_kit.h"
#include "conformance/support/oom.h"

#define DEVICE "gpu:placement=device"
#define APART "gpu:placement=device,copies=always" /* as on a device with memory of its own */
static const char *const targets[] = { DEVICE, APART };
#define FOR_TARGETS(t)                       \
  for (size_t t##_i = 0; t##_i < 2; t##_i++) \
    for (const char *t = targets[t##_i]; t != NULL; t = NULL)

/* ---- the log ---- */

static struct {
  pthread_mutex_t mu;
  int parts; /* number of parts made for the device */
} said = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  pthread_mutex_lock(&said.mu);
  said.parts += strstr(line, "gpu: a plan for ") != NULL;
  pthread_mutex_unlock(&said.mu);
}

static void listen(void)
{
  said.parts = 0;
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
}

static void listen_no_more(void)
{
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
}

/* ---- graphs ---- */

#define A_AND_W ARG("a", "DT_FLOAT") ARG("w", "DT_FLOAT")
#define LOOP(name, body)                                                                            \
  FUNCTION(name,                                                                                    \
           COUNTED(A_AND_W) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT") \
               RESULT("v", "DT_FLOAT"),                                                             \
           NEXT body RET("j", "next:z:0") RET("m", "n") RET("v", "w"))
#define LAYER                                                       \
  BODY("product", "MatMul", "input: 'a' input: 'w'", T("DT_FLOAT")) \
  BODY("tanh", "Tanh", "input: 'product:product:0'", T("DT_FLOAT"))
#define FED IN("x", "DT_FLOAT") IN("m", "DT_FLOAT") IN("p", "DT_BOOL")

/* A While with nodes before and after it. */
static const char while_text[] = LIBRARY(BELOW(A_AND_W) LOOP("Body", LAYER RET("b", "tanh:y:0")))
    FED NODE("twice", "AddV2", "input: 'x' input: 'x'", T("DT_FLOAT"))
        COUNT("w", "While", "Below", "Body", "input: 'twice' input: 'm'", F F)
            NODE("out", "Neg", "input: 'w:2'", T("DT_FLOAT"));

/* A While nested in another's body, and a string, which no device handles. */
static const char nested_text[] = LIBRARY(BELOW(A_AND_W) LOOP("Inner", LAYER RET("b", "tanh:y:0")) LOOP(
    "Outer", BODY("none", "Const", "", INT_OF("0")) BODY("three", "Const", "", INT_OF("3"))
                 BODY("in", "While", "input: 'none:output:0' input: 'three:output:0' input: 'a' input: 'w'",
                      TYPES("T", I I F F) FUNC("cond", "Below") FUNC("body", "Inner"))
                     BODY("neg", "Neg", "input: 'in:output:2'", T("DT_FLOAT")) RET("b", "neg:y:0")))
    FED COUNT("w", "While", "Below", "Outer", "input: 'x' input: 'm'", F F)
        NODE("out", "Square", "input: 'w:2'", T("DT_FLOAT"));

/* A branch, and a function called on one side of it. */
#define DOUBLED                                                                 \
  UNARY("Doubled", BODY("sum", "AddV2", "input: 'x' input: 'x'", T("DT_FLOAT")) \
                       BODY("exp", "Exp", "input: 'sum:z:0'", T("DT_FLOAT")) RET("y", "exp:y:0"))
static const char branch_text[] =
    LIBRARY(DOUBLED) FED IN("n", "DT_INT32") NODE("switch", "Switch", "input: 'x' input: 'p'", T("DT_FLOAT"))
        NODE("product", "MatMul", "input: 'switch:1' input: 'm'", T("DT_FLOAT"))
            CALL("no", "PartitionedCall", "Doubled", "switch")
                NODE("merge", "Merge", "input: 'no' input: 'product'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
                    NODE("out", "Tanh", "input: 'merge'", T("DT_FLOAT"));

/* A loop of Enter, Merge, Switch, NextIteration and Exit. */
#define FRAME(type) T(type) "attr { key: 'frame_name' value { s: 'loop' } }"
#define ALWAYS "attr { key: 'is_constant' value { b: true } }"
#define TWO "attr { key: 'N' value { i: 2 } }"
static const char frame_text[] = FED IN("n", "DT_INT32") NODE("zero", "Const", "", INT_OF("0"))
    NODE("one", "Const", "", INT_OF("1")) NODE("i_in", "Enter", "input: 'zero'", FRAME("DT_INT32")) NODE(
        "a_in", "Enter", "input: 'x'", FRAME("DT_FLOAT")) NODE("n_in", "Enter", "input: 'n'", FRAME("DT_INT32") ALWAYS)
        NODE("m_in", "Enter", "input: 'm'", FRAME("DT_FLOAT") ALWAYS)
            NODE("one_in", "Enter", "input: 'one'", FRAME("DT_INT32") ALWAYS)
                NODE("i", "Merge", "input: 'i_in' input: 'i_next'", T("DT_INT32") TWO)
                    NODE("a", "Merge", "input: 'a_in' input: 'a_next'", T("DT_FLOAT") TWO)
                        NODE("less", "Less", "input: 'i' input: 'n_in'", T("DT_INT32")) NODE("cond", "LoopCond",
                                                                                             "input: 'less'", "")
                            NODE("i_switch", "Switch", "input: 'i' input: 'cond'", T("DT_INT32"))
                                NODE("a_switch", "Switch", "input: 'a' input: 'cond'", T("DT_FLOAT"))
                                    NODE("i_more", "AddV2", "input: 'i_switch:1' input: 'one_in'", T("DT_INT32"))
                                        NODE("product", "MatMul", "input: 'a_switch:1' input: 'm_in'", T("DT_FLOAT"))
                                            NODE("relu", "Relu", "input: 'product'", T("DT_FLOAT"))
                                                NODE("i_next", "NextIteration", "input: 'i_more'", T("DT_INT32"))
                                                    NODE("a_next", "NextIteration", "input: 'relu'", T("DT_FLOAT"))
                                                        NODE("out", "Exit", "input: 'a_switch'", T("DT_FLOAT"));

static const struct graph {
  const char *text;
  const char *inside[2]; /* per level, a node inside; a fused node has its last member's name */
} graphs[] = { { while_text, { "product", "tanh" } },
               { nested_text, { "product", "tanh" } },
               { branch_text, { "product", "product" } },
               { frame_text, { "product", "relu" } } };
enum { N_GRAPHS = sizeof graphs / sizeof *graphs };

static void open_on(ts *t, const char *target, int level, const char *text)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_session_options_set_target(t->options, target, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_status run_flow(ts *t, int64_t rows, int32_t n, tn_bool side, const tn_run_options *options,
                          tn_run_metadata *m, tn_tensor **out)
{
  static const char *const feeds[] = { "x", "m", "p", "n" };
  const int64_t dims[] = { rows, 3 }, square[] = { 3, 3 };
  tn_tensor *in[4] = { NULL };
  tn_status st = tn_tensor_create(TN_FLOAT, dims, 2, &in[0], &t->err);
  *out = NULL;
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, square, 2, &in[1], &t->err);
  for (int64_t i = 0; st == TN_OK && i < rows * 3; i++) ((float *)tn_tensor_data(in[0]))[i] = (float)(i % 7) / 8;
  for (int i = 0; st == TN_OK && i < 9; i++) ((float *)tn_tensor_data(in[1]))[i] = (float)(i % 4) / 3 - 0.4f;
  if (st == TN_OK) st = tn_tensor_from_data(TN_BOOL, NULL, 0, &side, sizeof side, &in[2], &t->err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_INT32, NULL, 0, &n, sizeof n, &in[3], &t->err);
  if (st == TN_OK) st = tn_session_run(t->session, options, feeds, in, 4, NAMES("out"), out, 1, NULL, 0, m, &t->err);
  for (int i = 0; i < 4; i++) tn_tensor_unref(in[i]);
  return st;
}

static void check_like(ts *gpu, ts *direct, int64_t rows, int32_t n, tn_bool side)
{
  tn_tensor *a, *b;
  REQUIRE_OK(run_flow(gpu, rows, n, side, NULL, NULL, &a), &gpu->err);
  REQUIRE_OK(run_flow(direct, rows, n, side, NULL, NULL, &b), &direct->err);
  REQUIRE(tn_tensor_bytes(a) == tn_tensor_bytes(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    float got = ((float *)tn_tensor_data(a))[i], want = ((float *)tn_tensor_data(b))[i];
    CHECK_DOUBLE(got, want, 1e-5 * (1 + (want < 0 ? -want : want)));
  }
  tn_tensor_unref(a);
  tn_tensor_unref(b);
}

/* ---- tests ---- */

static void gpu_flow__results_equal_those_of_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  for (int g = 0; g < N_GRAPHS; g++)
    FOR_LEVELS(level)
    FOR_TARGETS(target)
    {
      ts gpu, direct;
      open_on(&gpu, target, level, graphs[g].text);
      open_on(&direct, "direct", level, graphs[g].text);
      static const int32_t turns[] = { 3, 0, 1, 20 };
      for (int k = 0; k < 4; k++) {
        check_like(&gpu, &direct, 4, turns[k], 1);
        check_like(&gpu, &direct, 4, turns[k], 0);
        check_like(&gpu, &direct, k, turns[k], 1);
      }
      ts_fini(&gpu);
      ts_fini(&direct);
    }
}

/* S-MD-02: each time a node inside runs, the records name the device. */
static void gpu_flow__nodes_inside_run_on_the_device(void)
{
  GPU_NEEDS_DEVICE();
  static const int times[N_GRAPHS] = { 5, 15, 1, 5 };
  for (int g = 0; g < N_GRAPHS; g++)
    FOR_LEVELS(level)
    {
      ts t;
      tn_run_metadata *m = NULL;
      tn_run_options options;
      tn_tensor *out;
      tn_metadata_summary sum = { .struct_size = sizeof sum };
      int on_device = 0;
      open_on(&t, DEVICE, level, graphs[g].text);
      tn_run_options_init(&options);
      options.trace_level = 3;
      REQUIRE_OK(tn_run_metadata_create(&m, &t.err), &t.err);
      REQUIRE_OK(run_flow(&t, 4, 5, 1, &options, m, &out), &t.err);
      REQUIRE_OK(tn_run_metadata_summary(m, &sum, &t.err), &t.err);
      for (size_t i = 0; i < sum.records; i++) {
        tn_node_record r = { .struct_size = sizeof r };
        REQUIRE_OK(tn_run_metadata_record(m, i, &r, &t.err), &t.err);
        if (strstr(r.node, graphs[g].inside[level]) == NULL) continue;
        CHECK_CONTAINS(r.device, "device:GPU:0");
        on_device++;
      }
      CHECK_INT(on_device, times[g]);
      tn_tensor_unref(out);
      tn_run_metadata_destroy(m);
      ts_fini(&t);
    }
}

static void gpu_flow__reports_where_nodes_run(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  tn_tensor *out;
  tn_placement placed = { .struct_size = sizeof placed };
  open_on(&t, DEVICE, 1, frame_text);
  REQUIRE_OK(run_flow(&t, 4, 2, 1, NULL, NULL, &out), &t.err);
  tn_tensor_unref(out);
  REQUIRE_OK(tn_session_device_of(t.session, "product", &placed, &t.err), &t.err);
  CHECK_CONTAINS(placed.device, "device:GPU:0");
  ts_fini(&t);
  open_on(&t, "gpu:placement=host", 1, frame_text);
  listen();
  REQUIRE_OK(run_flow(&t, 4, 2, 1, NULL, NULL, &out), &t.err);
  listen_no_more();
  tn_tensor_unref(out);
  CHECK_INT(said.parts, 0);
  REQUIRE_OK(tn_session_device_of(t.session, "product", &placed, &t.err), &t.err);
  CHECK_CONTAINS(placed.device, "device:CPU:0");
  CHECK_CONTAINS(placed.reason, "placement=host");
  ts_fini(&t);
}

/* A part's objects are made once, however many iterations and steps there are. */
static void gpu_flow__a_second_step_builds_nothing(void)
{
  GPU_NEEDS_DEVICE();
  for (int g = 0; g < N_GRAPHS; g++) {
    ts t;
    uint64_t made[2];
    tn_tensor *out;
    listen();
    open_on(&t, DEVICE, 1, graphs[g].text);
    for (int i = 0; i < 2; i++) { /* the second step reuses objects of the first */
      REQUIRE_OK(run_flow(&t, 4, 3, 1, NULL, NULL, &out), &t.err);
      tn_tensor_unref(out);
    }
    int parts = said.parts;
    CHECK(parts > 0);
    for (int i = 0; i < 2; i++) { /* an iteration does not allocate */
      uint64_t before = tn_test_allocations();
      REQUIRE_OK(run_flow(&t, 4, i == 0 ? 3 : 60, 1, NULL, NULL, &out), &t.err);
      made[i] = tn_test_allocations() - before;
      tn_tensor_unref(out);
    }
    CHECK_INT(said.parts, parts);
    if (graphs[g].text != nested_text) CHECK(made[1] <= made[0] + 2); /* spare tensors are freed now and then */
    ts_fini(&t);
    listen_no_more();
  }
}

static void gpu_flow__late_steps_exceed_their_time_limit(void)
{
  GPU_NEEDS_DEVICE();
  FOR_TARGETS(target)
  {
    ts t;
    tn_run_options options;
    tn_tensor *out;
    open_on(&t, target, 1, while_text);
    REQUIRE_OK(run_flow(&t, 4, 3, 1, NULL, NULL, &out), &t.err); /* programs have been compiled */
    tn_tensor_unref(out);
    tn_run_options_init(&options);
    options.timeout_ms = 50;
    CHECK_STATUS(run_flow(&t, 4, INT32_MAX, 1, &options, NULL, &out), TN_DEADLINE_EXCEEDED, &t.err);
    tn_error_clear(&t.err);
    REQUIRE_OK(run_flow(&t, 4, 3, 1, NULL, NULL, &out), &t.err);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

static void *many_steps(void *arg)
{
  ts mine = *(ts *)arg;
  mine.err = (tn_error)TN_ERROR_INIT;
  for (int i = 0; i < 20; i++) {
    tn_tensor *out;
    CHECK_OK(run_flow(&mine, 2 + i % 3, i % 5, (tn_bool)(i & 1), NULL, NULL, &out), &mine.err);
    tn_tensor_unref(out);
  }
  return NULL;
}

static void gpu_flow__concurrent_steps(void)
{
  GPU_NEEDS_DEVICE();
  for (int g = 0; g < N_GRAPHS; g++) {
    ts t, direct;
    pthread_t threads[4];
    open_on(&t, APART, 1, graphs[g].text);
    open_on(&direct, "direct", 1, graphs[g].text);
    for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&threads[i], NULL, many_steps, &t) == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    check_like(&t, &direct, 3, 4, 0);
    ts_fini(&t);
    ts_fini(&direct);
  }
}

static tn_status one_life(void *arg)
{
  tn_tensor *out = NULL;
  ts *t = arg;
  t->session = NULL;
  tn_status st = tn_session_create(t->options, &t->session, &t->err);
  if (st == TN_OK) st = tn_session_set_graph(t->session, t->graph, &t->err);
  if (st == TN_OK) st = run_flow(t, 3, 2, 0, NULL, NULL, &out);
  tn_tensor_unref(out);
  tn_session_destroy(t->session);
  t->session = NULL;
  tn_error_clear(&t->err);
  return st;
}

static void gpu_flow__without_memory(void)
{
  GPU_NEEDS_DEVICE();
  ts t;
  open_on(&t, APART, 1, frame_text);
  tn_session_destroy(t.session);
  one_life(&t);
  tn_test_oom_sweep(one_life, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(gpu_flow__results_equal_those_of_the_cpu),
  TAP_TEST(gpu_flow__nodes_inside_run_on_the_device),
  TAP_TEST(gpu_flow__reports_where_nodes_run),
  TAP_TEST(gpu_flow__a_second_step_builds_nothing),
  TAP_TEST(gpu_flow__late_steps_exceed_their_time_limit),
  TAP_TEST(gpu_flow__concurrent_steps),
  TAP_TEST(gpu_flow__without_memory))
