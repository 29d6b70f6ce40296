/* SPDX-License-Identifier: Apache-2.0 */
/* The function library of imported graphs. */
#include "conformance/support/graph_kit.h"

#include <stdlib.h>
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
  function(&library, "__inference_<lambda>_6404", FLOAT, "x"); /* like TensorFlow's names for Python lambdas */
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
  CHECK_CONTAINS(tn_error_message(&err), "node 'call': input 0 ('x') is 'a:0' of type float32, wanted int32");
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
  CHECK_CONTAINS(tn_error_message(&err), "function 'F' exists with another definition");
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_NULL(tn_graph_find_function(graph, "H"));
  CHECK_STR(tn_function_name(tn_graph_function(graph, 1)), "G");
  tn_graph_unref(graph);
  gk_bytes_free(&one);
  gk_bytes_free(&two);
  gk_bytes_free(&other);
  tn_error_clear(&err);
}

static void functions__malformed_ones_are_rejected(void)
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

  gk_bytes twice = { 0 }, f = { 0 };
  gk_data(&f, 1, "\x0a\x01" "F", 3);
  gk_data(&f, 1, "\x0a\x01" "F", 3);
  gk_message(&library, 1, &f);
  gk_message(&twice, 2, &library);
  CHECK_NULL(gk_import(&twice, &err));
  CHECK_CONTAINS(tn_error_message(&err), "byte 4: a function has two signatures");
  gk_bytes longer = { 0 }; /* a gradient that claims to be longer than its library, which contains nothing else */
  gk_put(&longer, "\x12\x04\x12\x04\x3a\x02", 6);
  CHECK_NULL(gk_import(&longer, &err));
  CHECK_CONTAINS(tn_error_message(&err), "a field is longer than its message");
  gk_bytes_free(&longer);
  gk_bytes_free(&twice);
  tn_error_clear(&err);
}

/* ---- as text ---- */

static tn_graph *import_text(const char *text, tn_error *err)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  tn_graph *graph;
  if (tn_graph_create(&graph, err) != TN_OK) return NULL;
  if (tn_graph_import(graph, text, strlen(text), &options, err) == TN_OK) return graph;
  tn_graph_unref(graph);
  return NULL;
}

#define FUNCTION(text) "library { function { " text " } }"
#define SIGNATURE(name) \
  "signature { name: '" name "' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT } } "

static const char whole[] = FUNCTION(
    "signature { name: 'W' description: 'a function' is_stateful: true"
    " input_arg { name: 'a' type_attr: 'T' } input_arg { name: 'n' type_attr: 'T' number_attr: 'N' }"
    " input_arg { name: 'l' type_list_attr: 'L' } input_arg { name: 'r' type: DT_RESOURCE }"
    " input_arg { name: 'v' type: DT_FLOAT is_ref: true }"
    " output_arg { name: 'y' type_attr: 'T' } output_arg { name: 'z' type_list_attr: 'L' }"
    " attr { name: 'T' type: 'type' allowed_values { list { type: DT_FLOAT type: DT_INT32 } } default_value { type: "
    "DT_INT32 } }"
    " attr { name: 'N' type: 'int' has_minimum: true minimum: 2 } attr { name: 'L' type: 'list(type)' }"
    " attr { name: 's' type: 'string' default_value { s: 'hi' } allowed_values { list { s: 'hi' s: 'ho' } } }"
    " attr { name: 't' type: 'tensor' default_value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 } } }"
    " attr { name: 'f' type: 'func' default_value { func { name: 'W' attr { key: 'q' value { i: 1 } } } } }"
    " attr { name: 'p' type: 'list(shape)' default_value { list { shape { dim { size: 4 } } } } } control_output: "
    "'done' } "
    "node_def { name: 'k' op: 'NoSuchOp' input: 'a' input: 'n:1' device: '/device:CPU:0'"
    " attr { key: 'T' value { placeholder: 'T' } } attr { key: 'i' value { i: -3 } } attr { key: 'g' value { f: 2.5 } }"
    " attr { key: 'b' value { b: true } } attr { key: 's' value { s: 'text' } } attr { key: 'd' value { type: DT_HALF "
    "} }"
    " attr { key: 'h' value { shape { dim { size: 2 } dim { size: -1 } } } }"
    " attr { key: 't' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 5 } } }"
    " attr { key: 'c' value { func { name: 'W' attr { key: 'T' value { type: DT_FLOAT } } } } }"
    " attr { key: 'li' value { list { i: 1 i: 2 } } } attr { key: 'ls' value { list { s: 'a' s: 'b' } } } }"
    "node_def { name: 'm' op: 'GkPass' input: 'a' input: '^k' attr { key: 'T' value { placeholder: 'T' } } }"
    "ret { key: 'y' value: 'm:y:0' } ret { key: 'z' value: 'l' } control_ret { key: 'done' value: 'k' }"
    "attr { key: '_noinline' value { b: true } }"
    "arg_attr { key: 3 value { attr { key: '_user' value { s: 'res' } } } } resource_arg_unique_id { key: 3 value: 17 "
    "}");

static void check_signature(const tn_function *f)
{
  tn_error err = TN_ERROR_INIT;
  const tn_op_schema *s = tn_function_schema(f);
  char text[400];
  tn_op_schema_format(s, text, sizeof text);
  CHECK_STR(text, "W(a: T, n: N * T, l: L, r: resource, v: Ref(float32)) -> (y: T, z: L); T: type; N: int >= 2; L: "
                  "list(type); s: string; t: tensor; f: func; p: list(shape)");
  CHECK_INT(tn_op_schema_traits(s),
            TN_TRAIT_FUNCTION_CALL | TN_TRAIT_PLAIN_CALL | TN_TRAIT_DYNAMIC | TN_TRAIT_STATEFUL | TN_TRAIT_READS);
  tn_op_arg arg = { .struct_size = sizeof arg };
  CHECK_OK(tn_op_schema_input(s, 1, &arg, &err), &err);
  CHECK_INT(arg.type_attr, 0);
  CHECK_INT(arg.number_attr, 1);
  CHECK_OK(tn_op_schema_input(s, 4, &arg, &err), &err);
  CHECK(arg.is_ref && arg.dtype == TN_FLOAT);
  tn_op_attr attr = { .struct_size = sizeof attr };
  CHECK_OK(tn_op_schema_attr(s, 0, &attr, &err), &err);
  CHECK(attr.types == (UINT64_C(1) << TN_FLOAT | UINT64_C(1) << TN_INT32));
  CHECK_INT(attr.default_type, TN_INT32);
  CHECK_OK(tn_op_schema_attr(s, 3, &attr, &err), &err);
  CHECK_STR(attr.default_string, "hi");
  CHECK_STR(tn_op_schema_attr_string(s, 3, 1), "ho");
  tn_attr_value value = { .struct_size = sizeof value };
  CHECK_OK(tn_op_schema_attr_default(s, 4, 0, &value, &err), &err);
  CHECK(value.tensor != NULL && *(int32_t *)tn_tensor_data(value.tensor) == 7);
  CHECK_OK(tn_op_schema_attr_default(s, 5, 0, &value, &err), &err);
  CHECK_STR(value.text, "W");
  CHECK_INT(value.n_attrs, 0);
  CHECK_OK(tn_op_schema_attr_default(s, 6, 0, &value, &err), &err);
  CHECK(value.rank == 1 && value.dims[0] == 4);
}

static void check_node(const tn_function *f)
{
  tn_error err = TN_ERROR_INIT;
  const tn_operation *k;
  tn_attr_value value = { .struct_size = sizeof value };
  CHECK_OK(tn_function_node(f, 0, &k, &err), &err);
  CHECK_STR(tn_operation_name(k), "k");
  CHECK_STR(tn_operation_device(k), "/device:CPU:0");
  CHECK_INT(tn_operation_n_attrs(k), 11);
  CHECK_INT(tn_operation_attr_kind(k, "T"), TN_ATTR_PLACEHOLDER);
  CHECK_OK(tn_operation_attr_value(k, "T", 0, &value, &err), &err);
  CHECK_STR(value.text, "T");
  int64_t i;
  float g;
  tn_bool b;
  tn_dtype d;
  const char *s;
  tn_tensor *t;
  const int64_t *dims;
  int32_t rank;
  CHECK_OK(tn_operation_attr_int(k, "i", &i, &err), &err);
  CHECK_OK(tn_operation_attr_float(k, "g", &g, &err), &err);
  CHECK_OK(tn_operation_attr_bool(k, "b", &b, &err), &err);
  CHECK_OK(tn_operation_attr_type(k, "d", &d, &err), &err);
  CHECK(i == -3 && g == 2.5f && b && d == TN_HALF);
  CHECK_OK(tn_operation_attr_string(k, "s", &s, NULL, &err), &err);
  CHECK_STR(s, "text");
  CHECK_OK(tn_operation_attr_shape(k, "h", &dims, &rank, &err), &err);
  CHECK(rank == 2 && dims[0] == 2 && dims[1] == -1);
  CHECK_OK(tn_operation_attr_tensor(k, "t", &t, &err), &err);
  CHECK(t != NULL && ((int32_t *)tn_tensor_data(t))[1] == 5);
  CHECK_OK(tn_operation_attr_value(k, "c", 0, &value, &err), &err);
  CHECK_STR(value.text, "W");
  CHECK_OK(tn_attr_value_attr(&value, 0, 0, &s, &value, &err), &err);
  CHECK(strcmp(s, "T") == 0 && value.type == TN_FLOAT);
  CHECK_OK(tn_operation_attr_value(k, "li", 1, &value, &err), &err);
  CHECK_INT(value.i, 2);
  CHECK_OK(tn_operation_attr_value(k, "ls", 0, &value, &err), &err);
  CHECK_STR(value.text, "a");
  CHECK_STATUS(tn_function_node(f, 2, &k, &err), TN_OUT_OF_RANGE, &err);
  CHECK_CONTAINS(tn_error_message(&err), "function 'W': node 2 was asked for, it has 2");
  tn_error_clear(&err);
}

static void functions__have_attributes_of_every_kind(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_register();
  tn_graph *graph = import_text(whole, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  const tn_function *f = tn_graph_find_function(graph, "W");
  check_signature(f);
  check_node(f);
  const tn_operation *op;
  int64_t resource;
  tn_bool flag;
  const char *text;
  CHECK_OK(tn_function_node(f, 1, &op, &err), &err);
  CHECK(tn_operation_schema(op) == tn_op_schema_find("GkPass"));
  CHECK_OK(tn_function_self(f, &op, &err), &err);
  CHECK_OK(tn_operation_attr_bool(op, "_noinline", &flag, &err), &err);
  CHECK(flag);
  CHECK_OK(tn_function_input(f, 3, &op, &resource, &err), &err);
  CHECK_INT(resource, 17);
  CHECK_OK(tn_operation_attr_string(op, "_user", &text, NULL, &err), &err);
  CHECK_STR(text, "res");
  CHECK_OK(tn_function_input(f, 0, &op, &resource, &err), &err);
  CHECK_INT(resource, -1);
  CHECK_INT(tn_operation_n_attrs(op), 0);
  CHECK_STR(tn_function_output_source(f, 0), "m:y:0");
  CHECK_STR(tn_function_output_source(f, 1), "l");
  CHECK_INT(tn_function_n_control_outputs(f), 1);
  CHECK_STR(tn_function_control_output_name(f, 0), "done");
  CHECK_STR(tn_function_control_output_node(f, 0), "k");
  /* It is not a node of a graph, so it cannot be an input. */
  CHECK_OK(tn_function_node(f, 1, &op, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "GkPass", "on", 0);
  tn_operation_add_input(b, (tn_output){ (tn_operation *)op, 0 });
  CHECK_STATUS(tn_operation_finish(b, NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void functions__unknown_names_are_errors(void)
{
  static const char *const cases[][2] = {
    { SIGNATURE("F") "ret { key: 'y' value: 'z:out:0' }", "output 'z:out:0' names no argument or node of it" },
    { SIGNATURE("F") "ret { key: 'y' value: 'x:out:0' }", "output 'x:out:0' names an output of an argument" },
    { SIGNATURE("F") "node_def { name: 'n' op: 'Relu' input: 'x' } ret { key: 'y' value: 'n:0' }",
      "output 'n:0' names no output of the node" },
    { SIGNATURE("F") "node_def { name: 'n' op: 'Relu' input: 'x' } ret { key: 'y' value: 'n:result:0' }",
      "output 'n:result:0' names an output that the op does not have" },
    { SIGNATURE("F") "node_def { name: 'n' op: 'Relu' input: 'n:activations:zero' }",
      "input 'n:activations:zero' is malformed" },
    { SIGNATURE("F") "ret { key: 'y' value: 'x' } control_ret { key: 'c' value: 'x' }",
      "control output 'x' names no node of it" },
    { SIGNATURE("Relu") "ret { key: 'y' value: 'x' }", "function 'Relu' has the name of an op" },
    { "signature { name: 'F' attr { name: 'a' type: 'number' } }", "attribute 'a' has an unknown kind" },
    { "signature { name: 'F' attr { name: 'a' type: 'int' default_value { b: true } } }",
      "attribute 'a' has a default of another kind" },
    { "signature { name: 'F' attr { name: 'a' type: 'int' } attr { name: 'a' type: 'int' } }",
      "attribute 'a' occurs twice" },
    { "signature { name: 'F' input_arg { name: 'x' type_attr: 'a' } attr { name: 'a' type: 'int' } }",
      "argument 'x' names an attribute of the wrong kind" },
    { "signature { name: 'F' input_arg { name: 'x' } }",
      "argument 'x' needs either one type or one attribute that gives the type" },
  };
  tn_error err = TN_ERROR_INIT;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[600];
    snprintf(text, sizeof text, FUNCTION("%s"), cases[i][0]);
    tn_graph *graph = import_text(text, &err);
    CHECK_NULL(graph);
    CHECK_CONTAINS(tn_error_message(&err), cases[i][1]);
    tn_error_clear(&err);
    tn_graph_unref(graph);
  }
  CHECK_NULL(import_text("library { gradient { function_name: 'F' gradient_func: 'G' } }", &err));
  CHECK_CONTAINS(tn_error_message(&err), "there is no function 'F'");
  tn_error_clear(&err);
}

/* A call is checked like a node of any other op, by the import and the builder. */
static void functions__check_their_calls(void)
{
#define LIST                                                                                                        \
  FUNCTION("signature { name: 'L' input_arg { name: 'x' type_attr: 'T' number_attr: 'N' } input_arg { name: 'm' "   \
           "type_list_attr: 'M' } output_arg { name: 'y' type_attr: 'T' number_attr: 'N' } attr { name: 'T' type: " \
           "'type' } "                                                                                              \
           "attr { name: 'N' type: 'int' } attr { name: 'M' type: 'list(type)' } } ret { key: 'y' value: 'x' }")    \
  "node { name: 'a' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"                             \
  "node { name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } } }"
#define CALL(inputs, n, types) \
  LIST "node { name: 'c' op: 'L' " inputs " attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: " n \
       " } } attr { key: 'M' value { list { " types " } } } }"
  static const char *const cases[][2] = {
    { CALL("input: 'a' input: 'a'", "2", "type: DT_INT32"), "takes 3 inputs, found 2" },
    { CALL("input: 'a' input: 'i' input: 'i'", "2", "type: DT_INT32"), "input 1 ('x') is 'i:0' of type int32" },
    { CALL("input: 'a' input: 'a'", "1", "type: DT_INT32"), "input 1 ('m') is 'a:0' of type float32" },
    { CALL("", "-1", ""), "attribute 'N' is -1, wanted at least 0" },
    { LIST "node { name: 'c' op: 'L' }", "attribute 'T' (a type) is missing" },
  };
  tn_error err = TN_ERROR_INIT;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_NULL(import_text(cases[i][0], &err));
    CHECK_CONTAINS(tn_error_message(&err), cases[i][1]);
    tn_error_clear(&err);
  }
  tn_graph *graph = import_text(CALL("input: 'a' input: 'a' input: 'i'", "2", "type: DT_INT32"), &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  tn_operation *c = tn_graph_find(graph, "c"), *built;
  CHECK_INT(tn_operation_n_outputs(c), 2);
  CHECK_INT(tn_operation_output_dtype(c, 1), TN_FLOAT);
  CHECK(tn_operation_schema(c) == tn_function_schema(tn_graph_function(graph, 0)));
  tn_output a = { tn_graph_find(graph, "a"), 0 }, i = { tn_graph_find(graph, "i"), 0 };
  tn_operation_builder *b = tn_operation_begin(graph, "L", "again", 0);
  tn_operation_add_input_list(b, &a, 1);
  tn_operation_add_input_list(b, &i, 1);
  CHECK_OK(tn_operation_finish(b, &built, &err), &err);
  CHECK_INT(tn_operation_n_outputs(built), 1);
  tn_graph_unref(graph);
  tn_error_clear(&err);
#undef CALL
#undef LIST
}

/* ---- export ---- */

static size_t occurrences(const char *text, const char *what)
{
  size_t n = 0;
  for (; (text = strstr(text, what)) != NULL; text++) n++;
  return n;
}

static void functions__shared_by_two_files_are_written_once(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes one = { 0 }, two = { 0 }, library = { 0 };
  function(&library, "F", FLOAT, "x");
  function(&library, "G", FLOAT, "x");
  gk_message(&one, 2, &library);
  function(&library, "F", FLOAT, "x");
  function(&library, "H", FLOAT, "x");
  gradient(&library, "F", "H");
  gk_message(&two, 2, &library);
  tn_graph *graph = gk_import(&one, &err);
  REQUIRE_PTR(graph);
  CHECK_OK(tn_graph_import(graph, two.data, two.size, NULL, &err), &err);
  CHECK_OK(tn_graph_import(graph, one.data, one.size, NULL, &err), &err);
  void *text, *bytes, *again;
  size_t size, size_again;
  CHECK_OK(tn_graph_export(graph, TN_EXPORT_TEXT, &text, &size, &err), &err);
  CHECK_INT(occurrences(text, " name: \"F\""), 1);
  CHECK_INT(occurrences(text, " name: \"H\""), 1);
  CHECK_INT(occurrences(text, "gradient {"), 1);
  CHECK_OK(tn_graph_export(graph, 0, &bytes, &size, &err), &err);
  tn_graph *back;
  CHECK_OK(tn_graph_create(&back, &err), &err);
  CHECK_OK(tn_graph_import(back, bytes, size, NULL, &err), &err);
  CHECK_INT(tn_graph_n_functions(back), 3);
  CHECK_STR(tn_graph_gradient(back, "F"), "H");
  CHECK_OK(tn_graph_export(back, 0, &again, &size_again, &err), &err);
  CHECK(size == size_again && memcmp(bytes, again, size) == 0);
  tn_free(text);
  tn_free(bytes);
  tn_free(again);
  tn_graph_unref(back);
  tn_graph_unref(graph);
  gk_bytes_free(&one);
  gk_bytes_free(&two);
  tn_error_clear(&err);
}

/* ---- memory ---- */

/* A constant of a body is used in place in the bytes of the file, like a constant of the graph. */
static void functions__do_not_copy_their_constants(void)
{
  enum { SIZE = 1 << 20 };
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, library = { 0 }, f = { 0 }, signature = { 0 }, node = { 0 }, tensor = { 0 };
  char *content = calloc(1, SIZE);
  int64_t dims[1] = { SIZE };
  content[SIZE - 1] = 7;
  gk_text(&signature, 1, "F");
  gk_message(&f, 1, &signature);
  gk_node(&node, "c", "Const", NULL);
  gk_attr_type(&node, "dtype", TN_UINT8);
  gk_tensor(&tensor, TN_UINT8, dims, 1, content, SIZE);
  gk_attr_tensor(&node, "value", &tensor);
  gk_message(&f, 3, &node);
  gk_message(&library, 1, &f);
  gk_message(&g, 2, &library);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  uint64_t before = tn_test_live_bytes();
  const tn_operation *op;
  tn_tensor *value;
  CHECK_OK(tn_function_node(tn_graph_function(graph, 0), 0, &op, &err), &err);
  CHECK_OK(tn_operation_attr_tensor(op, "value", &value, &err), &err);
  CHECK_INT(((const char *)tn_tensor_data(value))[SIZE - 1], 7);
  CHECK(tn_test_live_bytes() - before < SIZE / 10);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  free(content);
  tn_error_clear(&err);
}

static tn_status read_whole(void *unused)
{
  (void)unused;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = import_text(whole, &err);
  tn_status st = graph == NULL ? tn_error_code(&err) : TN_OK;
  const tn_function *f = graph == NULL ? NULL : tn_graph_function(graph, 0);
  for (size_t i = 0; st == TN_OK && i < tn_function_n_nodes(f); i++) {
    const tn_operation *op;
    st = tn_function_node(f, i, &op, NULL);
    for (size_t k = 0; st == TN_OK && k < tn_operation_n_attrs(op); k++) {
      tn_attr_value value = { .struct_size = sizeof value };
      st = tn_operation_attr_value(op, tn_operation_attr_name(op, k), 0, &value, NULL);
    }
  }
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
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
  tn_test_oom_sweep(read_whole, NULL);
  gk_bytes_free(&g);
}

TAP_MAIN(
  TAP_TEST(functions__are_listed),
  TAP_TEST(functions__type_their_calls),
  TAP_TEST(functions__merge_when_equal),
  TAP_TEST(functions__malformed_ones_are_rejected),
  TAP_TEST(functions__have_attributes_of_every_kind),
  TAP_TEST(functions__unknown_names_are_errors),
  TAP_TEST(functions__check_their_calls),
  TAP_TEST(functions__shared_by_two_files_are_written_once),
  TAP_TEST(functions__do_not_copy_their_constants),
  TAP_TEST(functions__without_memory))
