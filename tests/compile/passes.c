/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's passes as a user sees them: constants are computed once rather than in every
 * step, equal nodes are merged, results stay the same, and each pass can be disabled by name. */
#include <stdlib.h>

#include "conformance/support/session_kit.h"

static void disable(ts *t, const char *passes)
{
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", passes, &t->err), &t->err);
}

static void fold__constants_are_computed_once(void)
{
  FOR_LEVELS(level) {
    for (int off = 0; off <= 1; off++) {
      ts t;
      tn_output in = ts_open_watched(&t, level);
      tn_output plain = ts_watch_op(t.graph, "TestPlain", "plain", ts_const(t.graph, "c", 3), 1);
      ts_op2(t.graph, "AddV2", "sum", plain, in);
      if (off) disable(&t, "fold");
      ts_start(&t);
      for (int step = 0; step < 3; step++) CHECK(ts_run1(&t, FEEDS({ "in", 4 }), "sum:0") == 7);
      CHECK_INT(ts_counted(1), level == 0 || off ? 3 : 1);
      ts_fini(&t);
    }
  }
}

static void fold__keeps_effects_and_random_ops(void)
{
  ts t;
  ts_open_watched(&t, 1);
  tn_output c = ts_const(t.graph, "c", 3);
  ts_op2(t.graph, "AddV2", "sum", ts_watch_op(t.graph, "TestCount", "count", c, 1),
         ts_watch_op(t.graph, "TestRandom", "random", c, 2));
  ts_start(&t);
  for (int step = 0; step < 3; step++) CHECK(ts_run1(&t, NULL, "sum:0") == 6);
  CHECK_INT(ts_counted(1), 3);
  CHECK_INT(ts_counted(2), 3);
  ts_fini(&t);
}

/* A constant that cannot be computed causes an error in the step, as it does without the pass. */
static void fold__errors_remain_errors_of_the_step(void)
{
  ts t;
  ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestFail", "fails", ts_const(t.graph, "c", 3), TN_DATA_LOSS);
  ts_const(t.graph, "other", 5);
  ts_start(&t);
  CHECK(ts_run1(&t, NULL, "other:0") == 5);
  tn_tensor *out;
  CHECK_STATUS(ts_run(&t, NULL, NAMES("fails:0"), &out, NULL), TN_DATA_LOSS, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
  CHECK_STR(tn_error_node(&t.err), "fails");
  ts_fini(&t);
}

/* Each fetch of a constant returns a new tensor. */
static void fold__fetched_constants_are_copies(void)
{
  ts t;
  ts_open_watched(&t, 1);
  ts_watch_op(t.graph, "TestPlain", "plain", ts_const(t.graph, "c", 3), 1);
  ts_start(&t);
  for (int step = 0; step < 2; step++) {
    tn_tensor *out = NULL;
    REQUIRE_OK(ts_run(&t, NULL, NAMES("plain:0"), &out, NULL), &t.err);
    CHECK(ts_float(out) == 3);
    *(float *)tn_tensor_data(out) = 99;
    tn_tensor_unref(out);
  }
  ts_fini(&t);
}

static void common__equal_nodes_run_once(void)
{
  FOR_LEVELS(level) {
    for (int off = 0; off <= 1; off++) {
      ts t;
      tn_output in = ts_open_watched(&t, level);
      tn_output a = ts_watch_op(t.graph, "TestPlain", "a", in, 1), b = ts_watch_op(t.graph, "TestPlain", "b", in, 1);
      tn_output other = ts_watch_op(t.graph, "TestPlain", "other", in, 2); /* a different attribute */
      tn_output aa = ts_watch_op(t.graph, "TestPlain", "aa", a, 3), bb = ts_watch_op(t.graph, "TestPlain", "bb", b, 3);
      ts_op2(t.graph, "AddV2", "sum", ts_op2(t.graph, "AddV2", "inner", aa, bb), other);
      if (off) disable(&t, "fold,common");
      ts_start(&t);
      CHECK(ts_run1(&t, FEEDS({ "in", 5 }), "sum:0") == 15);
      int once = level == 0 || off ? 2 : 1;
      CHECK_INT(ts_counted(1), once);
      CHECK_INT(ts_counted(2), 1);
      CHECK_INT(ts_counted(3), once);
      ts_fini(&t);
    }
  }
}

static void common__effects_are_not_merged(void)
{
  ts t;
  tn_output in = ts_open_watched(&t, 1);
  ts_op2(t.graph, "AddV2", "sum", ts_watch_op(t.graph, "TestCount", "a", in, 1),
         ts_watch_op(t.graph, "TestCount", "b", in, 1));
  ts_start(&t);
  CHECK(ts_run1(&t, FEEDS({ "in", 5 }), "sum:0") == 10);
  CHECK_INT(ts_counted(1), 2);
  ts_fini(&t);
}

/* A node with control successors runs, whatever it computes. */
static void passes__keep_control_edges(void)
{
  ts t;
  ts_open_watched(&t, 1);
  tn_output c = ts_const(t.graph, "c", 3);
  tn_operation *first = ts_watch_op(t.graph, "TestPlain", "first", c, 1).op;
  ts_test_op(t.graph, "TestEffect", "effect", NULL, 2, &first, 1);
  ts_start(&t);
  for (int step = 0; step < 2; step++) CHECK_OK(ts_run(&t, NULL, NULL, NULL, NAMES("effect")), &t.err);
  CHECK_INT(ts_counted(1), 2);
  CHECK_INT(ts_counted(2), 2);
  ts_fini(&t);
}

/* Incompatible sizes are an error of the step, although a Reshape of a vector to a vector
 * changes nothing if they are compatible. */
static void algebra__errors_remain_errors(void)
{
  FOR_LEVELS(level) {
    ts t;
    ts_init(&t, level);
    tn_operation_builder *b = tn_operation_begin(t.graph, "Placeholder", "x", 0);
    tn_operation_set_type(b, "dtype", TN_FLOAT);
    tn_operation_set_shape(b, "shape", (int64_t[]){ -1 }, 1);
    tn_operation *x = NULL, *sizes = NULL;
    REQUIRE_OK(tn_operation_finish(b, &x, &t.err), &t.err);
    b = tn_operation_begin(t.graph, "Placeholder", "sizes", 0);
    tn_operation_set_type(b, "dtype", TN_INT32);
    tn_operation_set_shape(b, "shape", (int64_t[]){ 1 }, 1);
    REQUIRE_OK(tn_operation_finish(b, &sizes, &t.err), &t.err);
    ts_op2(t.graph, "Reshape", "y", (tn_output){ x, 0 }, (tn_output){ sizes, 0 });
    ts_start(&t);
    for (int32_t n = 2; n <= 3; n++) {
      tn_tensor *in[] = { ts_vector(2, (float[]){ 1, 2 }), NULL }, *got = NULL;
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, (int64_t[]){ 1 }, 1, &n, sizeof n, &in[1], &t.err), &t.err);
      const char *feeds[] = { "x", "sizes" }, *fetch = "y";
      tn_status st = tn_session_run(t.session, NULL, feeds, in, 2, &fetch, &got, 1, NULL, 0, NULL, &t.err);
      CHECK_INT(st, n == 2 ? TN_OK : TN_INVALID_ARGUMENT);
      tn_tensor_unref(got);
      tn_tensor_unref(in[0]);
      tn_tensor_unref(in[1]);
    }
    ts_fini(&t);
  }
}

/* A graph of a single node without edges. */
static void passes__a_node_alone(void)
{
  ts t;
  ts_open_watched(&t, 1);
  ts_test_op(t.graph, "TestNothing", "nothing", NULL, 0, NULL, 0);
  ts_start(&t);
  CHECK_OK(ts_run(&t, NULL, NULL, NULL, NAMES("nothing")), &t.err);
  ts_fini(&t);
}

static void passes__unknown_names_are_rejected(void)
{
  ts t;
  ts_init(&t, 1);
  disable(&t, "fold,no_such_pass");
  tn_session *s = NULL;
  CHECK_STATUS(tn_session_create(t.options, &s, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err),
                 "disable_passes: unknown pass 'no_such_pass'; "
                 "the passes are: inline, control, identity, common, fold");
  CHECK(s == NULL);
  ts_fini(&t);
}

/* ---- products with fused ops ---- */

static tn_output matrix(tn_graph *graph, const char *name, int64_t rows, int64_t columns, int seed)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  const int64_t dims[] = { rows, columns };
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rows > 0 ? 2 : 1, &t, &err), &err);
  if (rows == 0) {
    tn_tensor_unref(t);
    REQUIRE_OK(tn_tensor_create(TN_FLOAT, &columns, 1, &t, &err), &err);
  }
  srand((unsigned)seed);
  float *v = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) v[i] = (float)(rand() % 2001 - 1000) / 500;
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* relu(x w + bias) and tanh((x w2 + bias2) + relu): two products, one of which adds a residual. */
static void products_graph(tn_graph *graph)
{
  tn_output x = ts_placeholder(graph, "x", TN_FLOAT);
  tn_output relu =
      ts_op1(graph, "Relu", "relu",
             ts_op2(graph, "BiasAdd", "biased", ts_op2(graph, "MatMul", "product", x, matrix(graph, "w", 24, 32, 1)),
                    matrix(graph, "b", 0, 32, 2)));
  tn_output second = ts_op2(graph, "AddV2", "biased2",
                            ts_op2(graph, "MatMul", "product2", relu, matrix(graph, "w2", 32, 32, 3)),
                            matrix(graph, "b2", 0, 32, 4));
  ts_op1(graph, "Tanh", "out", ts_op2(graph, "AddV2", "sum", second, relu));
}

static void run_products(const char *disabled, int level, int64_t rows, float *out, size_t n)
{
  ts t;
  ts_init(&t, level);
  products_graph(t.graph);
  disable(&t, disabled);
  ts_start(&t);
  const int64_t dims[] = { rows, 24 };
  tn_tensor *x, *got = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 2, &x, &t.err), &t.err);
  for (int64_t i = 0; i < rows * 24; i++) ((float *)tn_tensor_data(x))[i] = (float)(i % 37 - 18) / 9;
  const char *feed = "x:0", *fetch = "out:0";
  REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &got, 1, NULL, 0, NULL, &t.err), &t.err);
  REQUIRE_INT(tn_tensor_elements(got), (int64_t)n);
  memcpy(out, tn_tensor_data(got), n * sizeof *out);
  tn_tensor_unref(got);
  tn_tensor_unref(x);
  ts_fini(&t);
}

static void fuse__products_give_the_same_results(void)
{
  float plain[5 * 32], fused[5 * 32], off[5 * 32];
  run_products("", 0, 5, plain, 5 * 32);
  run_products("", 1, 5, fused, 5 * 32);
  run_products("fuse,elementwise", 1, 5, off, 5 * 32);
  for (int i = 0; i < 5 * 32; i++) {
    CHECK(fused[i] > plain[i] - 1e-5f && fused[i] < plain[i] + 1e-5f);
    CHECK(off[i] == plain[i]);
  }
}

/* A constant of any shape with values in [low, high). */
static tn_output numbers(tn_graph *graph, const char *name, int32_t rank, const int64_t *dims, float low, float high)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err);
  float *v = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) v[i] = low + (high - low) * (float)(i * 7919 % 1009) / 1009;
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

static tn_output window_op(tn_graph *graph, const char *op, const char *name, tn_output x, tn_output filter)
{
  static const int64_t ones[] = { 1, 1, 1, 1 };
  tn_error err = TN_ERROR_INIT;
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, filter);
  tn_operation_set_ints(b, "strides", ones, 4);
  tn_operation_set_string(b, "padding", "SAME", 4);
  tn_operation *made = NULL;
  REQUIRE_OK(tn_operation_finish(b, &made, &err), &err);
  return (tn_output){ made, 0 };
}

/* relu(norm(window(x) + bias)): the norm is moved through the bias into the filter. */
static tn_output normed(tn_graph *graph, const char *op, tn_output x, const int64_t filter[4], int64_t channels, int k)
{
  static const char *const parts[] = { "scale", "offset", "mean", "variance" };
  char name[32];
  tn_error err = TN_ERROR_INIT;
  snprintf(name, sizeof name, "filter%d", k);
  tn_output f = numbers(graph, name, 4, filter, -1, 1);
  snprintf(name, sizeof name, "window%d", k);
  tn_output w = window_op(graph, op, name, x, f);
  snprintf(name, sizeof name, "bias%d", k);
  tn_output bias = numbers(graph, name, 1, &channels, -2, 2);
  snprintf(name, sizeof name, "biased%d", k);
  tn_output sum = ts_op2(graph, "BiasAdd", name, w, bias);
  snprintf(name, sizeof name, "norm%d", k);
  tn_operation_builder *b = tn_operation_begin(graph, "FusedBatchNormV3", name, 0);
  tn_operation_add_input(b, sum);
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s%d", parts[i], k);
    tn_operation_add_input(b, numbers(graph, name, 1, &channels, i == 3 ? 0.5f : -1, 2));
  }
  tn_operation_set_bool(b, "is_training", 0);
  tn_operation *made = NULL;
  REQUIRE_OK(tn_operation_finish(b, &made, &err), &err);
  snprintf(name, sizeof name, "relu%d", k);
  return ts_op1(graph, "Relu", name, (tn_output){ made, 0 });
}

static void run_normed(int level, const char *plugins, float *out, int64_t n)
{
  ts t;
  ts_init(&t, level);
  tn_operation_builder *b = tn_operation_begin(t.graph, "Placeholder", "x", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", (int64_t[]){ -1, 6, 5, 8 }, 4);
  tn_operation *x = NULL;
  REQUIRE_OK(tn_operation_finish(b, &x, &t.err), &t.err);
  tn_output first = normed(t.graph, "DepthwiseConv2dNative", (tn_output){ x, 0 }, (int64_t[]){ 3, 3, 8, 2 }, 16, 1);
  normed(t.graph, "Conv2D", first, (int64_t[]){ 3, 3, 16, 4 }, 4, 2);
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", plugins, &t.err), &t.err);
  ts_start(&t);
  tn_tensor *in = ts_filled(4, (int64_t[]){ 2, 6, 5, 8 }, 0), *got = NULL;
  for (int i = 0; i < 480; i++) ((float *)tn_tensor_data(in))[i] = (float)(i % 31 - 15) / 8;
  const char *feed = "x:0", *fetch = "relu2:0";
  REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &in, 1, &fetch, &got, 1, NULL, 0, NULL, &t.err), &t.err);
  REQUIRE_INT(tn_tensor_elements(got), n);
  memcpy(out, tn_tensor_data(got), (size_t)n * sizeof *out);
  tn_tensor_unref(got);
  tn_tensor_unref(in);
  ts_fini(&t);
}

static void batch_norm__is_moved_through_a_bias_into_the_filter(void)
{
  enum { N = 2 * 6 * 5 * 4 };
  float plain[N], own[N], plugins[N];
  run_normed(0, "never", plain, N);
  run_normed(1, "never", own, N);
  run_normed(1, "always", plugins, N);
  for (int i = 0; i < N; i++) {
    CHECK_DOUBLE(own[i], plain[i], 1e-3);
    CHECK_DOUBLE(plugins[i], plain[i], 1e-3);
  }
}

static tn_status run_all(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = arg;
  tn_session *s = NULL;
  tn_tensor *x = NULL, *got = NULL;
  const int64_t dims[] = { 2, 24 };
  const char *feed = "x:0", *fetch = "out:0";
  tn_session_options *o = NULL;
  tn_status st = tn_session_options_create(&o, &err);
  if (st == TN_OK) st = tn_session_options_set_target(o, ts_runtime(), &err);
  if (st == TN_OK) st = tn_session_create(o, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, graph, &err);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, dims, 2, &x, &err);
  if (st == TN_OK) memset(tn_tensor_data(x), 0, tn_tensor_bytes(x));
  if (st == TN_OK) st = tn_session_run(s, NULL, &feed, &x, 1, &fetch, &got, 1, NULL, 0, NULL, &err);
  tn_tensor_unref(got);
  tn_tensor_unref(x);
  tn_session_destroy(s);
  tn_session_options_destroy(o);
  CHECK_INT(tn_error_code(&err), st);
  CHECK(st == TN_OK || tn_error_message(&err)[0] != 0);
  tn_error_clear(&err);
  return st;
}

/* Passes, packed weights and layouts: no failed allocation causes a leak or a crash. */
static void passes__survive_lack_of_memory(void)
{
  ts t;
  ts_init(&t, 1);
  products_graph(t.graph);
  tn_test_oom_sweep(run_all, t.graph);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(fold__constants_are_computed_once),
  TAP_TEST(fold__keeps_effects_and_random_ops),
  TAP_TEST(fold__errors_remain_errors_of_the_step),
  TAP_TEST(fold__fetched_constants_are_copies),
  TAP_TEST(common__equal_nodes_run_once),
  TAP_TEST(common__effects_are_not_merged),
  TAP_TEST(passes__keep_control_edges),
  TAP_TEST(algebra__errors_remain_errors),
  TAP_TEST(passes__a_node_alone),
  TAP_TEST(passes__unknown_names_are_rejected),
  TAP_TEST(fuse__products_give_the_same_results),
  TAP_TEST(batch_norm__is_moved_through_a_bias_into_the_filter),
  TAP_TEST(passes__survive_lack_of_memory))
