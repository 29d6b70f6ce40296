/* SPDX-License-Identifier: Apache-2.0 */
/* The planner on awkward graphs: constants too large to fold, several outputs, intermediate
 * values fed and fetched, shared values, control edges, shapes known only in a step, sessions
 * that compile concurrently. */
#include <math.h>
#include <pthread.h>

#include "conformance/support/plan_kit.h"

static tn_tensor *counted(int64_t rows, int64_t columns)
{
  const int64_t dims[] = { rows, columns };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &t, NULL), NULL);
  for (int64_t i = 0; i < rows * columns; i++) ((float *)tn_tensor_data(t))[i] = (float)(i % 17 - 8) / 4;
  return t;
}

/* Feeds x:0 and releases x. */
static tn_tensor *step(ts *t, tn_tensor *x, const char *fetch)
{
  const char *feed = "x:0";
  tn_tensor *y = NULL;
  CHECK_OK(tn_session_run(t->session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t->err), &t->err);
  tn_tensor_unref(x);
  return y;
}

static double distance(const tn_tensor *a, const tn_tensor *b)
{
  double most = 0;
  if (a == NULL || b == NULL || tn_tensor_bytes(a) != tn_tensor_bytes(b)) return INFINITY;
  for (int64_t i = 0; i < tn_tensor_elements(a); i++)
    most = fmax(most, fabs((double)((float *)tn_tensor_data(a))[i] - (double)((float *)tn_tensor_data(b))[i]));
  return most;
}

/* ---- each pass, on and off ---- */

#define MATRIX(name, rows, columns) CONSTANT(name, "DT_FLOAT", D(rows) D(columns), \
    "float_val: [0.5, -1, 0.25, 2, -0.75, 1.5, 0.125, -0.5, 1, 0.75, -2, 0.25]")
#define VECTOR(name, n) CONSTANT(name, "DT_FLOAT", D(n), "float_val: [0.5, 1.25, 2, 0.75]")
#define UNARY(name, op, x) NODE(name, op, "input: '" x "'", F)
#define BINARY(name, op, x, y) NODE(name, op, "input: '" x "' input: '" y "'", F)
#define ROWS IN(D(-1) D(3))
#define NORM ROWS CONSTANT("f", "DT_FLOAT", D(3) D(4), "float_val: [0.5, -1, 0.25, 2, -0.75]") VECTOR("s", 4) \
  BINARY("m", "MatMul", "x", "f") BINARY("y", "Mul", "m", "s")

static const struct {
  const char *pass, *text;
} passes[] = {
  { "control", ROWS SCALAR("c", 2) NODE("z", "NoOp", "input: '^c'", "")
               NODE("y", "AddV2", "input: 'x' input: 'c' input: '^z'", F) },
  { "identity", ROWS UNARY("i", "Identity", "x") UNARY("y", "Neg", "i") },
  { "fold", ROWS SCALAR("c", 2) BINARY("w", "Mul", "c", "c") BINARY("y", "AddV2", "x", "w") },
  { "common", ROWS UNARY("a", "Tanh", "x") UNARY("b", "Tanh", "x") BINARY("y", "AddV2", "a", "b") },
  { "batch_norm", NORM },
  { "fuse", ROWS MATRIX("f", 3, 4) VECTOR("b", 4) BINARY("m", "MatMul", "x", "f") BINARY("a", "BiasAdd", "m", "b")
            UNARY("y", "Relu", "a") },
  { "elementwise", ROWS UNARY("a", "Tanh", "x") UNARY("b", "Neg", "a") UNARY("c", "Exp", "b")
                   BINARY("y", "Mul", "c", "a") },
};

static void passes__each_keeps_results_and_can_be_disabled(void)
{
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    tn_tensor *y[3];
    const char *disabled[] = { "", "", passes[i].pass };
    for (int k = 0; k < 3; k++) {
      ts t;
      tp_open(&t, passes[i].text, k > 0, disabled[k]);
      y[k] = step(&t, counted(5, 3), "y:0");
      tn_plan_report *report = tp_report(&t, "x:0", "y:0");
      int64_t n = tp_changes(report, passes[i].pass);
      CHECK_MSG(k == 1 ? n > 0 : n == -1, "pass '%s' made %lld changes, attempt %d", passes[i].pass, (long long)n, k);
      tn_plan_report_release(report);
      ts_fini(&t);
    }
    CHECK_MSG(distance(y[0], y[1]) < 1e-5, "pass '%s' changes results", passes[i].pass);
    CHECK_MSG(distance(y[0], y[2]) < 1e-5, "without pass '%s' results change", passes[i].pass);
    for (int k = 0; k < 3; k++) tn_tensor_unref(y[k]);
  }
}

/* ---- folding ---- */

/* Three gigabytes of zeros; the step needs only their shape. */
static void fold__keeps_values_that_are_too_large(void)
{
  static const char *const texts[] = {
    ROWS INTS("d", 2, "int_val: 30000 int_val: 25000") SCALAR("v", 0) NODE("big", "Fill", "input: 'd' input: 'v'", F)
    NODE("y", "Rank", "input: 'big'", F),
    ROWS CONSTANT("d", "DT_INT32", D(2), "int_val: 300 int_val: 250") CONSTANT("h", "DT_INT32", "", "int_val: 100")
    NODE("dd", "Mul", "input: 'd' input: 'h'", TYPE("T", "DT_INT32")) SCALAR("v", 0)
    NODE("big", "Fill", "input: 'dd' input: 'v'", F) NODE("y", "Rank", "input: 'big'", F),
    /* dimensions that shape functions do not compute */
    ROWS CONSTANT("d", "DT_INT32", D(2), "int_val: 300 int_val: 250") CONSTANT("h", "DT_INT32", "", "int_val: 20000")
    NODE("dd", "BitwiseXor", "input: 'd' input: 'h'", TYPE("T", "DT_INT32")) SCALAR("v", 0)
    NODE("big", "Fill", "input: 'dd' input: 'v'", F) NODE("y", "Rank", "input: 'big'", F),
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ts t;
    tp_open(&t, texts[i], 1, "");
    tn_plan_report *report = tp_report(&t, NULL, "big:0");
    CHECK_INT(tp_calls(report, "Fill"), 1);
    CHECK(tp_summary(report).constant_bytes < 1000);
    tn_plan_report_release(report);
    ts_fini(&t);
  }
}

#define SPLITS ROWS CONSTANT("axis", "DT_INT32", "", "int_val: 1") MATRIX("m", 3, 4)                   \
  NODE("parts", "Split", "input: 'axis' input: 'm'", F INT("num_split", 2))                          \
  NODE("same", "Split", "input: 'axis' input: 'm'", F INT("num_split", 2))                           \
  BINARY("a", "MatMul", "x", "parts") BINARY("b", "MatMul", "x", "same:1") BINARY("y", "Sub", "a", "b")

static void fold__nodes_with_several_outputs(void)
{
  tn_tensor *plain = NULL;
  static const char *const disabled[] = { "", "", "fold", "fold,common" };
  static const int splits[] = { 2, 0, 1, 2 };
  for (int k = 0; k < 4; k++) {
    ts t;
    tp_open(&t, SPLITS, k > 0, disabled[k]);
    tn_tensor *y = step(&t, counted(2, 3), "y:0");
    if (k > 0) CHECK(distance(y, plain) < 1e-6);
    tn_plan_report *report = tp_report(&t, "x:0", "y:0");
    CHECK_INT(tp_calls(report, "Split"), splits[k]);
    tn_plan_report_release(report);
    if (k == 0) plain = y;
    else tn_tensor_unref(y);
    ts_fini(&t);
  }
  tn_tensor_unref(plain);
}

/* ---- intermediate values ---- */

#define LAYER ROWS MATRIX("f", 3, 4) VECTOR("b", 4) BINARY("m", "MatMul", "x", "f") BINARY("a", "BiasAdd", "m", "b") \
  UNARY("r", "Relu", "a") UNARY("y", "Tanh", "r")

static void passes__intermediate_values_are_fetched(void)
{
  static const char *const names[] = { "m:0", "a:0", "r:0", "y:0" };
  const char *feed = "x:0";
  tn_tensor *got[2][4] = { { NULL } };
  for (int level = 0; level <= 1; level++) {
    ts t;
    tn_tensor *x = counted(3, 3);
    tp_open(&t, LAYER, level, "");
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, names, got[level], 4, NULL, 0, NULL, &t.err), &t.err);
    tn_tensor_unref(x);
    ts_fini(&t);
  }
  for (int k = 0; k < 4; k++) {
    CHECK(distance(got[0][k], got[1][k]) < 1e-5);
    tn_tensor_unref(got[0][k]);
    tn_tensor_unref(got[1][k]);
  }
}

static void passes__intermediate_values_are_fed(void)
{
  const char *feeds[] = { "x:0", "a:0" }, *fetch = "y:0";
  tn_tensor *got[2] = { NULL };
  for (int level = 0; level <= 1; level++) {
    ts t;
    tn_tensor *values[] = { counted(3, 3), counted(3, 4) };
    tp_open(&t, LAYER, level, "");
    CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, &fetch, &got[level], 1, NULL, 0, NULL, &t.err), &t.err);
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
  REQUIRE_PTR(got[0]);
  CHECK(((float *)tn_tensor_data(got[0]))[0] == 0); /* relu of -2, for any x */
  CHECK(distance(got[0], got[1]) < 1e-6);
  tn_tensor_unref(got[0]);
  tn_tensor_unref(got[1]);
}

/* A product with two readers is computed once, and not fused with either. */
static void fuse__keeps_shared_products(void)
{
  ts t;
  tp_open(&t, ROWS MATRIX("f", 3, 4) VECTOR("b", 4) BINARY("m", "MatMul", "x", "f") BINARY("a", "BiasAdd", "m", "b")
          BINARY("y", "Maximum", "a", "m"), 1, "elementwise");
  tn_plan_report *report = tp_report(&t, "x:0", "y:0");
  CHECK_INT(tp_calls(report, "MatMul"), 1);
  CHECK_INT(tp_calls(report, "_TnMatMul"), 0);
  CHECK_INT(tp_calls(report, "BiasAdd"), 1);
  tn_plan_report_release(report);
  ts_fini(&t);
}

/* A control successor waits for that very node, so the node is not fused into another. */
static void fuse__control_edges_keep_nodes(void)
{
  ts t;
  tp_open(&t, ROWS MATRIX("f", 3, 4) VECTOR("b", 4) BINARY("m", "MatMul", "x", "f") BINARY("a", "BiasAdd", "m", "b")
          UNARY("r", "Relu", "a") NODE("y", "Neg", "input: 'r' input: '^a'", F), 1, "elementwise");
  tn_plan_report *report = tp_report(&t, "x:0", "y:0");
  CHECK_INT(tp_calls(report, "BiasAdd"), 1);
  tn_plan_report_release(report);
  tn_tensor_unref(step(&t, counted(2, 3), "y:0"));
  ts_fini(&t);
}

static void fuse__errors_name_a_node_of_the_program(void)
{
  ts t;
  tp_open(&t, LAYER, 1, "");
  tn_tensor *x = counted(3, 5), *y = NULL;
  const char *feed = "x:0", *fetch = "y:0";
  CHECK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err) == TN_INVALID_ARGUMENT);
  CHECK_NULL(y);
  REQUIRE(tn_error_node(&t.err) != NULL);
  CHECK_MSG(tn_graph_find(t.graph, tn_error_node(&t.err)) != NULL, "no such node: %s", tn_error_node(&t.err));
  tn_tensor_unref(x);
  ts_fini(&t);
}

#define PER_CHANNEL(name) CONSTANT(name, "DT_FLOAT", D(4), "float_val: [0.5, 1.25, 2, 0.75]")
#define NORMED                                                                                                \
  IN(D(-1) D(-1) D(-1) D(-1))                                                                                 \
  CONSTANT("f", "DT_FLOAT", D(1) D(1) D(3) D(4), "float_val: [0.5, -1, 0.25, 2]")                             \
      NODE("conv", "Conv2D", "input: 'x' input: 'f'", F TEXT("padding", "VALID") LIST("strides", 1, 1, 1, 1)) \
          PER_CHANNEL("s") PER_CHANNEL("o") PER_CHANNEL("m") PER_CHANNEL("v")                                 \
              NODE("y", "FusedBatchNormV3", "input: 'conv' input: 's' input: 'o' input: 'm' input: 'v'",      \
                   F TYPE("U", "DT_FLOAT") "attr { key: 'is_training' value { b: false } }")

/* A node that was expanded to several, which were then fused into one. */
static void batch_norm__errors_name_a_node_of_the_program(void)
{
  ts t;
  const int64_t good[] = { 1, 2, 2, 3 }, bad[] = { 1, 2, 2, 5 };
  const char *feed = "x:0", *fetch = "y:0";
  tp_open(&t, NORMED, 1, "");
  tn_tensor_unref(step(&t, ts_filled(4, good, 1), "y:0"));
  tn_plan_report *report = tp_report(&t, feed, fetch);
  CHECK_INT(tp_rewrites(report, "norm_to_scale"), 1);
  CHECK_INT(tp_rewrites(report, "scale_into_filter"), 1);
  CHECK_INT(tp_summary(report).instructions, 1);
  tn_plan_report_release(report);
  tn_tensor *x = ts_filled(4, bad, 1), *y = NULL;
  CHECK_STATUS(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT,
               &t.err);
  CHECK_STR(tn_error_node(&t.err), "y");
  CHECK_CONTAINS(tn_error_message(&t.err), "node 'y' (");
  tn_tensor_unref(x);
  ts_fini(&t);
}

/* ---- shapes ---- */

/* [n, 3] to [n, 3, 1] by a shape computed from the input's. */
#define BATCHES                                                                                                \
  ROWS NODE("s", "Shape", "input: 'x'", F) INTS("zero", 1, "int_val: 0") INTS("one", 1, "int_val: 1")          \
      NODE("n", "StridedSlice", "input: 's' input: 'zero' input: 'one' input: 'one'",                          \
           TYPE("T", "DT_INT32") TYPE("Index", "DT_INT32") INT("shrink_axis_mask", 1))                         \
          CONSTANT("three", "DT_INT32", "", "int_val: 3") CONSTANT("last", "DT_INT32", "", "int_val: 1")       \
              NODE("to", "Pack", "input: 'n' input: 'three' input: 'last'", TYPE("T", "DT_INT32") INT("N", 3)) \
                  UNARY("t", "Tanh", "x") NODE("y", "Reshape", "input: 't' input: 'to'", F)

static void layout__values_that_follow_from_shapes_are_not_computed_in_steps(void)
{
  for (int level = 0; level <= 1; level++) {
    ts t;
    tp_open(&t, BATCHES, level, "");
    for (int64_t rows = 0; rows < 5; rows++) {
      tn_tensor *y = step(&t, counted(rows, 3), "y:0");
      REQUIRE_PTR(y);
      CHECK_INT(tn_tensor_rank(y), 3);
      CHECK_INT(tn_tensor_dims(y)[0], rows);
      CHECK_INT(tn_tensor_dims(y)[2], 1);
      tn_tensor_unref(y);
    }
    tn_plan_report *report = tp_report(&t, "x:0", "y:0");
    tn_plan_call c = { .struct_size = sizeof c };
    int with_layout = 0;
    for (size_t i = 0; tn_plan_report_call(report, i, &c, NULL) == TN_OK; i++) with_layout += c.with_layout;
    CHECK_INT(with_layout, level == 0 ? 0 : 3);
    CHECK_INT(tp_summary(report).segments, level == 0 ? 2 : 1);
    tn_plan_report_release(report);
    ts_fini(&t);
  }
}

static void passes__batches_of_any_size(void)
{
  ts plain, t;
  tp_open(&plain, LAYER, 0, "");
  tp_open(&t, LAYER, 1, "");
  static const int64_t rows[] = { 1, 5, 3, 0, 64, 5 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tn_tensor *a = step(&plain, counted(rows[i], 3), "y:0"), *b = step(&t, counted(rows[i], 3), "y:0");
    CHECK(distance(a, b) < 1e-5);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
  }
  ts_fini(&plain);
  ts_fini(&t);
}

/* More may be known of a shape in the second signature than in the first; both keep giving the
 * same results. */
static void passes__shapes_that_become_known_later(void)
{
  ts t;
  tp_open(&t, ANY INTS("to", 2, "int_val: -1 int_val: 3") NODE("r", "Reshape", "input: 'x' input: 'to'", F)
          UNARY("y", "Neg", "r") UNARY("z", "Tanh", "r"), 1, "");
  tn_tensor *before = step(&t, counted(2, 3), "y:0");
  const int64_t dims[] = { -1, 3 };
  REQUIRE_OK(tn_graph_set_shape((tn_output){ tn_graph_find(t.graph, "x"), 0 }, dims, 2, &t.err), &t.err);
  tn_tensor_unref(step(&t, counted(4, 3), "z:0"));
  tn_plan_report *first = tp_report(&t, "x:0", "y:0"), *second = tp_report(&t, "x:0", "z:0");
  CHECK_INT(tp_calls(first, "Reshape"), 1);
  CHECK_INT(tp_calls(second, "Reshape"), 0);
  tn_tensor *after = step(&t, counted(2, 3), "y:0");
  CHECK(distance(before, after) == 0);
  tn_tensor_unref(before);
  tn_tensor_unref(after);
  tn_plan_report_release(first);
  tn_plan_report_release(second);
  ts_fini(&t);
}

/* ---- threads ---- */

static void *compile_and_run(void *arg)
{
  ts *shared = arg;
  tn_session *session = NULL;
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 10; i++) {
    tn_tensor *x = counted(1 + i % 3, 3), *y = NULL;
    const char *feed = "x:0", *fetch = "y:0";
    CHECK_OK(tn_session_create(shared->options, &session, &err), &err);
    CHECK_OK(tn_session_set_graph(session, shared->graph, &err), &err);
    CHECK_OK(tn_session_run(session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &err), &err);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_session_destroy(session);
  }
  tn_error_clear(&err);
  return NULL;
}

static void passes__sessions_compile_one_graph_concurrently(void)
{
  ts t;
  pthread_t threads[4];
  tp_open(&t, SPLITS, 1, "");
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, compile_and_run, &t), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(passes__each_keeps_results_and_can_be_disabled),
  TAP_TEST(fold__keeps_values_that_are_too_large),
  TAP_TEST(fold__nodes_with_several_outputs),
  TAP_TEST(passes__intermediate_values_are_fetched),
  TAP_TEST(passes__intermediate_values_are_fed),
  TAP_TEST(fuse__keeps_shared_products),
  TAP_TEST(fuse__control_edges_keep_nodes),
  TAP_TEST(fuse__errors_name_a_node_of_the_program),
  TAP_TEST(batch_norm__errors_name_a_node_of_the_program),
  TAP_TEST(layout__values_that_follow_from_shapes_are_not_computed_in_steps),
  TAP_TEST(passes__batches_of_any_size),
  TAP_TEST(passes__shapes_that_become_known_later),
  TAP_TEST(passes__sessions_compile_one_graph_concurrently))
