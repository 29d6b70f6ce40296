/* SPDX-License-Identifier: Apache-2.0 */
/* What tools walk: consumers of outputs, control edges the other way round, schemas. */
#include "tests/support/graph_kit.h"

#include <string.h>

static tn_operation *in_of(tn_graph *graph, const char *name)
{
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "GkIn", name, 0);
  if (b == NULL) return NULL;
  tn_operation_set_type(b, "T", TN_FLOAT);
  return tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL;
}

static tn_operation *add_of(tn_graph *graph, const char *name, tn_operation *x, tn_operation *y, tn_operation *control)
{
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "GkAdd", name, 0);
  if (b == NULL) return NULL;
  tn_operation_add_input(b, (tn_output){ x, 0 });
  tn_operation_add_input(b, (tn_output){ y, 0 });
  if (control != NULL) tn_operation_add_control_input(b, control);
  return tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL;
}

static void walk__consumers_come_in_order_of_addition(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_operation *x = in_of(graph, "x"), *y = in_of(graph, "y");
  tn_operation *a = add_of(graph, "a", x, x, y);
  tn_consumer who[4];
  size_t n;
  CHECK_OK(tn_output_consumers((tn_output){ x, 0 }, who, 4, &n, &err), &err);
  CHECK(n == 2 && who[0].op == a && who[0].input == 0 && who[1].op == a && who[1].input == 1);
  CHECK_OK(tn_output_consumers((tn_output){ y, 0 }, who, 4, &n, &err), &err);
  CHECK_INT(n, 0);
  CHECK_OK(tn_operation_control_consumers(y, who, 4, &n, &err), &err);
  CHECK(n == 1 && who[0].op == a && who[0].input == -1);
  /* the graph grows after it was walked */
  tn_operation *b = add_of(graph, "b", a, x, NULL);
  CHECK_OK(tn_output_consumers((tn_output){ x, 0 }, who, 1, &n, &err), &err);
  CHECK(n == 3 && who[0].op == a);
  CHECK_OK(tn_output_consumers((tn_output){ a, 0 }, who, 4, &n, &err), &err);
  CHECK(n == 1 && who[0].op == b && who[0].input == 0);
  CHECK_OK(tn_output_consumers((tn_output){ b, 0 }, NULL, 0, &n, &err), &err);
  CHECK_INT(n, 0);
  CHECK_INT(tn_output_consumers((tn_output){ NULL, 0 }, NULL, 0, &n, &err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_output_consumers((tn_output){ b, -1 }, NULL, 0, &n, &err), TN_OUT_OF_RANGE);
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

static void walk__a_schema_tells_its_parts(void)
{
  tn_error err = TN_ERROR_INIT;
  const tn_op_schema *s = tn_op_schema_find("Conv2D");
  REQUIRE(s != NULL);
  CHECK_INT(tn_op_schema_n_inputs(s), 2);
  CHECK_INT(tn_op_schema_n_outputs(s), 1);
  tn_op_arg arg = { .struct_size = sizeof arg };
  CHECK_OK(tn_op_schema_input(s, 1, &arg, &err), &err);
  CHECK_STR(arg.name, "filter");
  REQUIRE(arg.type_attr >= 0);
  tn_op_attr attr = { .struct_size = sizeof attr };
  CHECK_OK(tn_op_schema_attr(s, (size_t)arg.type_attr, &attr, &err), &err);
  CHECK_STR(attr.name, "T");
  CHECK_INT(attr.kind, TN_ATTR_TYPE);
  CHECK((attr.types >> TN_FLOAT & 1) != 0 && (attr.types >> TN_STRING & 1) == 0);
  bool found = false;
  for (size_t i = 0; i < tn_op_schema_n_attrs(s); i++) {
    CHECK_OK(tn_op_schema_attr(s, i, &attr, &err), &err);
    if (strcmp(attr.name, "data_format") != 0) continue;
    found = true;
    CHECK(attr.kind == TN_ATTR_STRING && attr.has_default);
    CHECK_STR(attr.default_string, "NHWC");
    CHECK_INT(attr.n_strings, 2);
    CHECK_STR(tn_op_schema_attr_string(s, i, 1), "NCHW");
    CHECK_NULL(tn_op_schema_attr_string(s, i, 2));
  }
  CHECK(found);
  CHECK_INT(tn_op_schema_output(s, 1, &arg, &err), TN_OUT_OF_RANGE);
  arg.struct_size = 8;
  CHECK_INT(tn_op_schema_input(s, 0, &arg, &err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_op_schema_attr(NULL, 0, &attr, &err), TN_INVALID_ARGUMENT);
  tn_error_clear(&err);
}

static tn_status walk_all(void *arg)
{
  (void)arg;
  tn_graph *graph;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_graph_create(&graph, &err);
  tn_operation *x = NULL, *a = NULL;
  if (st == TN_OK && (x = in_of(graph, "x")) == NULL) st = TN_RESOURCE_EXHAUSTED;
  if (st == TN_OK && (a = add_of(graph, "a", x, x, x)) == NULL) st = TN_RESOURCE_EXHAUSTED;
  size_t n;
  if (st == TN_OK) st = tn_output_consumers((tn_output){ x, 0 }, NULL, 0, &n, &err);
  if (st == TN_OK) CHECK_INT(n, 2);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void walk__without_memory_nothing_is_left(void)
{
  gk_register();
  tn_test_oom_sweep(walk_all, NULL);
}

TAP_MAIN(TAP_TEST(walk__consumers_come_in_order_of_addition), TAP_TEST(walk__a_schema_tells_its_parts),
         TAP_TEST(walk__without_memory_nothing_is_left))
