/* SPDX-License-Identifier: Apache-2.0 */
/* The function library of imported graphs. */
#include "tests/support/graph_kit.h"

#include <string.h>

enum { FLOAT = 1, INT = 3 };

static void arg(gk_bytes *signature, unsigned field, const char *name, int type)
{
  gk_bytes a = { 0 };
  gk_text(&a, 1, name);
  if (type != 0) gk_int(&a, 3, type);
  if (type == 0) gk_text(&a, 4, "T");
  gk_message(signature, field, &a);
}

/* f(x: type) -> (y: type) with one node "n" of input `input`. */
static void function(gk_bytes *library, const char *name, int type, const char *input)
{
  gk_bytes f = { 0 }, signature = { 0 }, node = { 0 }, ret = { 0 };
  gk_text(&signature, 1, name);
  arg(&signature, 2, "x", type);
  arg(&signature, 3, "y", type);
  gk_message(&f, 1, &signature);
  gk_node(&node, "n", "NoSuchOp", input);
  gk_message(&f, 3, &node);
  gk_text(&ret, 1, "y");
  gk_text(&ret, 2, "n:out:0");
  gk_message(&f, 4, &ret);
  gk_message(library, 1, &f);
}

static void gradient(gk_bytes *library, const char *f, const char *g)
{
  gk_bytes message = { 0 };
  gk_text(&message, 1, f);
  gk_text(&message, 2, g);
  gk_message(library, 2, &message);
}

static void rich(gk_bytes *g)
{
  gk_bytes library = { 0 }, node = { 0 };
  function(&library, "Twice", FLOAT, "x");
  function(&library, "Generic", 0, "x:0");
  function(&library, "__inference_<lambda>_6404", FLOAT, "x"); /* as TensorFlow names Python's */
  gradient(&library, "Twice", "Generic");
  gk_in(g, "a");
  gk_node(&node, "call", "Twice", "a");
  gk_add_node(g, &node);
  gk_node(&node, "any", "Generic", "call");
  gk_attr_type(&node, "T", FLOAT);
  gk_add_node(g, &node);
  gk_message(g, 2, &library);
}

static void functions__are_listed(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  rich(&g);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_INT(tn_graph_n_functions(graph), 3);
  CHECK(tn_graph_find_function(graph, "__inference_<lambda>_6404") != NULL);
  const tn_function *f = tn_graph_find_function(graph, "Twice");
  REQUIRE_PTR(f);
  CHECK(f == tn_graph_function(graph, 0));
  CHECK_STR(tn_function_input_name(f, 0), "x");
  CHECK_INT(tn_function_output_dtype(f, 0), TN_FLOAT);
  CHECK_INT(tn_function_n_nodes(f), 1);
  CHECK_STR(tn_function_node_type(f, 0), "NoSuchOp");
  CHECK_STR(tn_function_node_input(f, 0, 0), "x");
  CHECK_NULL(tn_function_node_input(f, 0, 1));
  CHECK_STR(tn_graph_gradient(graph, "Twice"), "Generic");
  CHECK_NULL(tn_graph_gradient(graph, "Generic"));
  CHECK_NULL(tn_graph_find_function(graph, "Thrice"));
  CHECK_NULL(tn_graph_function(graph, 3));
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

static void functions__type_their_calls(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  rich(&g);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_INT(tn_operation_n_outputs(tn_graph_find(graph, "call")), 1);
  CHECK_INT(tn_operation_output_dtype(tn_graph_find(graph, "call"), 0), TN_FLOAT);
  CHECK_INT(tn_operation_output_dtype(tn_graph_find(graph, "any"), 0), TN_FLOAT);
  tn_graph_unref(graph);
  gk_bytes_free(&g);

  gk_bytes wrong = { 0 }, library = { 0 }, node = { 0 };
  function(&library, "F", INT, "x");
  gk_in(&wrong, "a");
  gk_node(&node, "call", "F", "a");
  gk_add_node(&wrong, &node);
  gk_message(&wrong, 2, &library);
  CHECK_NULL(gk_import(&wrong, &err));
  CHECK_CONTAINS(tn_error_message(&err), "node 'call': input 0 has type float32, function 'F' takes int32");
  gk_bytes_free(&wrong);
  tn_error_clear(&err);
}

static void functions__merge_when_equal(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes one = { 0 }, two = { 0 }, other = { 0 }, library = { 0 };
  function(&library, "F", FLOAT, "x");
  gk_message(&one, 2, &library);
  function(&library, "F", FLOAT, "x");
  function(&library, "G", FLOAT, "x");
  gk_message(&two, 2, &library);
  function(&library, "H", FLOAT, "x");
  function(&library, "F", INT, "x");
  gk_message(&other, 2, &library);
  tn_graph *graph = gk_import(&one, &err);
  REQUIRE_PTR(graph);
  CHECK_OK(tn_graph_import(graph, two.data, two.size, NULL, &err), &err);
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_STATUS(tn_graph_import(graph, other.data, other.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "function 'F' is there with another definition");
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_NULL(tn_graph_find_function(graph, "H"));
  CHECK_STR(tn_function_name(tn_graph_function(graph, 1)), "G");
  tn_graph_unref(graph);
  gk_bytes_free(&one);
  gk_bytes_free(&two);
  gk_bytes_free(&other);
  tn_error_clear(&err);
}

static void functions__malformed_ones_are_refused(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, library = { 0 };
  function(&library, "F", FLOAT, "z:out:0");
  gk_message(&g, 2, &library);
  CHECK_NULL(gk_import(&g, &err));
  CHECK_CONTAINS(tn_error_message(&err), "function 'F': input 'z:out:0' names no argument or node of it");
  gk_bytes_free(&g);

  gk_bytes cut = { 0 };
  gk_data(&library, 1, "\x0a\x50", 2);
  gk_message(&cut, 2, &library);
  CHECK_NULL(gk_import(&cut, &err));
  CHECK_CONTAINS(tn_error_message(&err), "byte 4:");
  gk_bytes_free(&cut);
  tn_error_clear(&err);
}

static tn_status import_rich(void *bytes)
{
  const gk_bytes *g = bytes;
  tn_graph *graph;
  tn_status st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, g->data, g->size, NULL, NULL);
  tn_graph_unref(graph);
  return st;
}

static void functions__without_memory(void)
{
  gk_bytes g = { 0 };
  rich(&g);
  gk_register();
  tn_test_oom_sweep(import_rich, &g);
  gk_bytes_free(&g);
}

TAP_MAIN(
  TAP_TEST(functions__are_listed),
  TAP_TEST(functions__type_their_calls),
  TAP_TEST(functions__merge_when_equal),
  TAP_TEST(functions__malformed_ones_are_refused),
  TAP_TEST(functions__without_memory))
