/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes set by the program, and shapes that follow from values known before a step. */
#include <ops/kernel/window/window.h>
#include "conformance/support/graph_kit.h"

#include <string.h>

static tn_operation *in_of(tn_graph *graph, const char *name, tn_dtype dtype, const int64_t *dims, int32_t rank)
{
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", name, 0);
  if (b == NULL) return NULL;
  tn_operation_set_type(b, "dtype", dtype);
  tn_operation_set_shape(b, "shape", dims, rank);
  return tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL;
}

static tn_operation *build(tn_graph *graph, const char *type, const char *name, tn_operation *x, tn_operation *y)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_builder *b = tn_operation_begin(graph, type, name, 0);
  if (b == NULL) return NULL;
  tn_operation_add_input(b, (tn_output){ x, 0 });
  if (y != NULL) tn_operation_add_input(b, (tn_output){ y, 0 });
  if (strcmp(type, "Cast") == 0) tn_operation_set_type(b, "DstT", TN_INT64);
  tn_status st = tn_operation_finish(b, &op, &err);
  CHECK(st == TN_OK || st == TN_RESOURCE_EXHAUSTED);
  tn_error_clear(&err);
  return op;
}

static tn_operation *ints(tn_graph *graph, const char *name, const int32_t *values, int64_t n)
{
  tn_tensor *t;
  tn_operation *op = NULL;
  if (tn_tensor_create(TN_INT32, &n, 1, &t, NULL) != TN_OK) return NULL;
  memcpy(tn_tensor_data(t), values, (size_t)n * sizeof *values);
  tn_operation_builder *b = tn_operation_begin(graph, "Const", name, 0);
  if (b != NULL) {
    tn_operation_set_type(b, "dtype", TN_INT32);
    tn_operation_set_tensor(b, "value", t);
    if (tn_operation_finish(b, &op, NULL) != TN_OK) op = NULL;
  }
  tn_tensor_unref(t);
  return op;
}

/* "[2,?]", "?" for an unknown rank */
static const char *shape_of(tn_operation *op)
{
  static char text[160];
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
  if (op == NULL || tn_output_shape((tn_output){ op, 0 }, dims, TN_MAX_RANK, &rank, NULL) != TN_OK) return "error";
  if (rank < 0) return "?";
  size_t at = 0;
  text[at++] = '[';
  for (int32_t i = 0; i < rank; i++) {
    if (i > 0) text[at++] = ',';
    if (dims[i] < 0) text[at++] = '?';
    else at += (size_t)snprintf(text + at, sizeof text - at, "%lld", (long long)dims[i]);
  }
  text[at++] = ']';
  text[at] = 0;
  return text;
}

static tn_graph *new_graph(void)
{
  tn_graph *graph = NULL;
  REQUIRE_OK(tn_graph_create(&graph, NULL), NULL);
  return graph;
}

static void set_shape__is_merged_and_propagates(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = new_graph();
  tn_operation *x = in_of(graph, "x", TN_FLOAT, NULL, -1);
  tn_operation *r = build(graph, "Relu", "r", x, NULL), *s = build(graph, "Relu", "s", r, NULL);
  CHECK_STR(shape_of(s), "?");
  CHECK_OK(tn_graph_set_shape((tn_output){ x, 0 }, (int64_t[]){ -1, 3 }, 2, &err), &err);
  CHECK_STR(shape_of(x), "[?,3]");
  CHECK_STR(shape_of(s), "[?,3]");
  CHECK_OK(tn_graph_set_shape((tn_output){ r, 0 }, (int64_t[]){ 2, -1 }, 2, &err), &err);
  CHECK_STR(shape_of(r), "[2,3]");
  CHECK_STR(shape_of(s), "[2,3]");
  CHECK_STR(shape_of(x), "[?,3]");
  CHECK_OK(tn_graph_set_shape((tn_output){ r, 0 }, NULL, -1, &err), &err); /* carries no information */
  CHECK_STR(shape_of(r), "[2,3]");
  tn_graph_unref(graph);
}

static void set_shape__errors_name_both_shapes(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = new_graph();
  tn_operation *x = in_of(graph, "x", TN_FLOAT, (int64_t[]){ 2, -1 }, 2);
  CHECK_INT(tn_graph_set_shape((tn_output){ x, 0 }, (int64_t[]){ 3, 1 }, 2, &err), TN_INVALID_ARGUMENT);
  CHECK(strstr(tn_error_message(&err), "[2,?]") != NULL && strstr(tn_error_message(&err), "[3,1]") != NULL);
  CHECK_INT(tn_graph_set_shape((tn_output){ x, 0 }, NULL, 0, &err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_graph_set_shape((tn_output){ x, 1 }, NULL, 0, &err), TN_OUT_OF_RANGE);
  CHECK_INT(tn_graph_set_shape((tn_output){ x, 0 }, (int64_t[]){ -2 }, 1, &err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_graph_set_shape((tn_output){ NULL, 0 }, NULL, 0, &err), TN_INVALID_ARGUMENT);
  CHECK_STR(shape_of(x), "[2,?]");
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

static void values__of_shapes_are_shapes(void)
{
  tn_graph *graph = new_graph();
  tn_operation *x = in_of(graph, "x", TN_FLOAT, (int64_t[]){ -1, 4 }, 2);
  tn_operation *y = in_of(graph, "y", TN_FLOAT, NULL, -1);
  tn_operation *s = build(graph, "Shape", "s", x, NULL);
  CHECK_STR(shape_of(build(graph, "Reshape", "part", y, s)), "[?,4]");
  tn_operation *m = build(graph, "Mul", "m", s, ints(graph, "two", (int32_t[]){ 2 }, 1));
  tn_operation *c = build(graph, "Cast", "c", build(graph, "Identity", "i", m, NULL), NULL);
  tn_operation *r = build(graph, "Reshape", "r", y, c);
  CHECK_STR(shape_of(r), "[?,8]");
  tn_error err = TN_ERROR_INIT;
  CHECK_OK(tn_graph_set_shape((tn_output){ x, 0 }, (int64_t[]){ 3, 4 }, 2, &err), &err);
  CHECK_STR(shape_of(r), "[6,8]");
  /* axes from a computed value: the rank of x minus one */
  tn_operation *axis = build(graph, "Sub", "last", build(graph, "Rank", "rank", x, NULL),
                             ints(graph, "one", (int32_t[]){ 1 }, 1));
  CHECK_STR(shape_of(build(graph, "Sum", "sum", x, axis)), "[3]");
  CHECK_STR(shape_of(build(graph, "ExpandDims", "e", x, build(graph, "Rank", "rank2", x, NULL))), "[3,4,1]");
  /* an unknown size is computed from the input */
  tn_operation *z = in_of(graph, "z", TN_FLOAT, (int64_t[]){ 2, 6 }, 2);
  tn_operation *u = in_of(graph, "u", TN_FLOAT, (int64_t[]){ 3, -1 }, 2);
  CHECK_STR(shape_of(build(graph, "Reshape", "h", z, build(graph, "Shape", "us", u, NULL))), "[3,4]");
  tn_graph_unref(graph);
}

static void window__extremes_are_rejected(void)
{
  tn_error err = TN_ERROR_INIT;
  int64_t n;
  tn__window_axis big = { .size = INT64_MAX, .stride = 1, .dilation = INT64_MAX };
  CHECK_INT(tn__window_fit(&big, TN__PAD_SAME, "Op", 5, &n, &err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn__window_fit_unknown(&big, TN__PAD_VALID, 5), -1);
  tn__window_axis pad = { .size = 1, .stride = INT64_MAX, .dilation = 1, .before = INT64_MAX, .after = 1 };
  CHECK_INT(tn__window_fit(&pad, TN__PAD_EXPLICIT, "Op", 5, &n, &err), TN_INVALID_ARGUMENT);
  tn__window_axis far = { .size = 2, .stride = INT64_MAX, .dilation = 1 };
  CHECK_OK(tn__window_fit(&far, TN__PAD_SAME, "Op", INT64_MAX, &n, &err), &err);
  CHECK_INT(n, 1);
  tn_error_clear(&err);
}

static tn_status set_all(void *arg)
{
  (void)arg;
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_graph_create(&graph, &err);
  tn_operation *x = NULL, *s = NULL, *r = NULL;
  if (st == TN_OK && (x = in_of(graph, "x", TN_FLOAT, (int64_t[]){ -1, 4 }, 2)) == NULL) st = TN_RESOURCE_EXHAUSTED;
  if (st == TN_OK && (s = build(graph, "Shape", "s", x, NULL)) == NULL) st = TN_RESOURCE_EXHAUSTED;
  if (st == TN_OK && (r = build(graph, "Reshape", "r", x, s)) == NULL) st = TN_RESOURCE_EXHAUSTED;
  if (st == TN_OK) st = tn_graph_set_shape((tn_output){ x, 0 }, (int64_t[]){ 3, -1 }, 2, &err);
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
  if (st == TN_OK) st = tn_output_shape((tn_output){ r, 0 }, dims, TN_MAX_RANK, &rank, &err);
  if (st == TN_OK) CHECK(rank == 2 && dims[0] == 3 && dims[1] == 4);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void set_shape__nothing_leaks_without_memory(void) { tn_test_oom_sweep(set_all, NULL); }

TAP_MAIN(TAP_TEST(set_shape__is_merged_and_propagates), TAP_TEST(set_shape__errors_name_both_shapes),
         TAP_TEST(values__of_shapes_are_shapes), TAP_TEST(window__extremes_are_rejected),
         TAP_TEST(set_shape__nothing_leaks_without_memory))
