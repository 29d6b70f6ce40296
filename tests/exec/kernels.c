/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in a session: a small network end to end, their errors for unsuitable shapes, and lack
 * of memory. The recorded cases (tests/oracle) check the numbers. */
#include <stdlib.h>

#include "conformance/support/session_kit.h"

/* ---- a network with most kinds of kernels ---- */

static tn_output ints(tn_graph *graph, const char *name, int64_t n, const int32_t *values)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, n == 0 ? 0 : 1, values, (size_t)(n == 0 ? 1 : n) * 4, &t, &err), &err);
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* Numbers that all differ, so that no result is right by accident. */
static tn_output weights(tn_graph *graph, const char *name, int32_t rank, const int64_t *dims)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err);
  float *data = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) data[i] = (float)((i * 37 + 11) % 29 - 14) / 16;
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

static tn_output finish(tn_operation_builder *b)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

static tn_output window(tn_graph *graph, const char *op, const char *name, tn_output x, const tn_output *filter)
{
  static const int64_t ones[] = { 1, 1, 1, 1 }, twos[] = { 1, 2, 2, 1 };
  tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
  tn_operation_add_input(b, x);
  if (filter != NULL) tn_operation_add_input(b, *filter);
  if (filter == NULL) tn_operation_set_ints(b, "ksize", twos, 4);
  tn_operation_set_ints(b, "strides", filter != NULL ? ones : twos, 4);
  tn_operation_set_string(b, "padding", "SAME", 4);
  return finish(b);
}

static tn_output cast(tn_graph *graph, const char *name, tn_output x, tn_dtype to)
{
  tn_operation_builder *b = tn_operation_begin(graph, "Cast", name, 0);
  tn_operation_add_input(b, x);
  tn_operation_set_type(b, "DstT", to);
  return finish(b);
}

/* in [n,4,4,2] -> probabilities [n,3], best [n], total [3], whole [] */
static void build_network(tn_graph *g)
{
  tn_output in = ts_placeholder(g, "in", TN_FLOAT);
  tn_output filter = weights(g, "filter", 4, (int64_t[]){ 3, 3, 2, 4 });
  tn_output conv = window(g, "Conv2D", "conv", in, &filter);
  tn_output bias = ts_op2(g, "BiasAdd", "bias", conv, weights(g, "b", 1, (int64_t[]){ 4 }));
  tn_output pool = window(g, "MaxPool", "pool", ts_op1(g, "LeakyRelu", "leaky", bias), NULL);
  tn_output flat = ts_op2(g, "Reshape", "flat", pool, ints(g, "shape", 2, (int32_t[]){ -1, 16 }));
  tn_output dense = ts_op2(g, "MatMul", "dense", flat, weights(g, "w", 2, (int64_t[]){ 16, 3 }));
  tn_output probabilities = ts_op1(g, "Softmax", "probabilities", dense);
  ts_op2(g, "ArgMax", "best", probabilities, ints(g, "one", 0, (int32_t[]){ 1 }));
  tn_output total = ts_op2(g, "Sum", "total", probabilities, ints(g, "zero", 1, (int32_t[]){ 0 }));
  tn_output whole = ts_op2(g, "Max", "most", total, ints(g, "first", 1, (int32_t[]){ 0 }));
  cast(g, "whole", whole, TN_INT32);
}

static tn_tensor *images(int64_t n)
{
  tn_tensor *t = ts_filled(4, (int64_t[]){ n, 4, 4, 2 }, 0);
  float *data = tn_tensor_data(t);
  for (int64_t i = 0; i < 32 * n; i++) data[i] = (float)((i * i) % 23) / 8;
  return t;
}

static void kernels__compute_a_network(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[3] = { NULL };
    static const char *const feeds[] = { "in" }, *const fetches[] = { "probabilities", "best", "total" };
    ts_init(&t, level);
    build_network(t.graph);
    ts_start(&t);
    for (int64_t n = 0; n <= 5; n += 5) { /* zero images are a shape like any other */
      tn_tensor *in = images(n);
      REQUIRE_OK(tn_session_run(t.session, NULL, feeds, &in, 1, fetches, out, 3, NULL, 0, NULL, &t.err), &t.err);
      tn_tensor_unref(in);
      REQUIRE_INT(tn_tensor_elements(out[0]), 3 * n);
      const float *p = tn_tensor_data(out[0]), *total = tn_tensor_data(out[2]);
      const int64_t *best = tn_tensor_data(out[1]);
      float sums[3] = { 0 };
      for (int64_t i = 0; i < n; i++) {
        CHECK_DOUBLE(p[3 * i] + p[3 * i + 1] + p[3 * i + 2], 1, 1e-6);
        for (int k = 0; k < 3; k++) {
          CHECK(p[3 * i + k] <= p[3 * i + best[i]]);
          sums[k] += p[3 * i + k];
        }
      }
      for (int k = 0; k < 3; k++) CHECK_DOUBLE(total[k], sums[k], 1e-5);
      for (int k = 0; k < 3; k++) tn_tensor_unref(out[k]);
    }
    ts_fini(&t);
  }
}

typedef struct trial {
  ts *t;
  tn_tensor *in;
} trial;

/* Covers everything that a kernel allocates: states, plans of shapes, scratch. */
static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "in" }, *const fetches[] = { "best", "whole" };
  trial *x = arg;
  tn_callable callable;
  tn_tensor *out[2] = { NULL };
  tn_status st = tn_session_make_callable(x->t->session, NULL, feeds, 1, fetches, 2, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(x->t->session, callable, &x->in, 1, out, 2, NULL, NULL);
  for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(x->t->session, callable, NULL);
  return st;
}

static void kernels__survive_lack_of_memory(void)
{
  ts t;
  ts_init(&t, 0);
  build_network(t.graph);
  ts_start(&t);
  trial x = { &t, images(2) };
  tn_test_oom_sweep(compile_and_run, &x);
  tn_tensor_unref(x.in);
  ts_fini(&t);
}

/* ---- refusals ---- */

/* Feeds x and y of these shapes to node "it" and checks the message. */
static void check_refusal(ts *t, int32_t x_rank, const int64_t *x, int32_t y_rank, const int64_t *y, const char *wanted)
{
  static const char *const names[] = { "x", "y" }, *const fetch[] = { "it" };
  tn_tensor *in[2] = { ts_filled(x_rank, x, 1), ts_filled(y_rank, y, 1) }, *out = NULL;
  CHECK_STATUS(tn_session_run(t->session, NULL, names, in, 2, fetch, &out, 1, NULL, 0, NULL, &t->err),
               TN_INVALID_ARGUMENT, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), wanted);
  CHECK_STR(tn_error_node(&t->err), "it");
  CHECK_NULL(out);
  for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
}

static void open_pair(ts *t, const char *op)
{
  ts_init(t, 1);
  tn_output x = ts_placeholder(t->graph, "x", TN_FLOAT), y = ts_placeholder(t->graph, "y", TN_FLOAT);
  if (op[0] == 'C')
    window(t->graph, op, "it", x, &y);
  else
    ts_op2(t->graph, op, "it", x, y);
  ts_start(t);
}

static void kernels__errors_name_both_shapes(void)
{
  ts t;
  open_pair(&t, "MatMul");
  check_refusal(&t, 2, (int64_t[]){ 2, 3 }, 2, (int64_t[]){ 4, 5 }, "MatMul: inputs of shapes [2,3] and [4,5] cannot");
  check_refusal(&t, 1, (int64_t[]){ 3 }, 2, (int64_t[]){ 3, 5 }, "[3] and [3,5] are not two matrices");
  ts_fini(&t);
  open_pair(&t, "Conv2D");
  check_refusal(&t, 4, (int64_t[]){ 1, 4, 4, 3 }, 4, (int64_t[]){ 2, 2, 2, 5 },
                "images of shape [1,4,4,3], filter of shape [2,2,2,5]: the channels are not a multiple");
  check_refusal(&t, 3, (int64_t[]){ 4, 4, 3 }, 4, (int64_t[]){ 2, 2, 3, 5 }, "[4,4,3], wanted rank 4");
  ts_fini(&t);
  open_pair(&t, "BiasAdd");
  check_refusal(&t, 2, (int64_t[]){ 2, 3 }, 1, (int64_t[]){ 4 }, "[4]");
  ts_fini(&t);
}

static void kernels__errors_name_the_placeholder_that_is_not_fed(void)
{
  ts t;
  tn_tensor *out = NULL;
  ts_init(&t, 1);
  ts_op1(t.graph, "Identity", "it", ts_placeholder(t.graph, "absent", TN_INT64));
  ts_start(&t);
  CHECK_STATUS(ts_run(&t, NULL, NAMES("it"), &out, NULL), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'absent'");
  CHECK_CONTAINS(tn_error_message(&t.err), "int64");
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(kernels__compute_a_network),
  TAP_TEST(kernels__survive_lack_of_memory),
  TAP_TEST(kernels__errors_name_both_shapes),
  TAP_TEST(kernels__errors_name_the_placeholder_that_is_not_fed))
