/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of tools: consumers of outputs, control edges in reverse, schemas. */
#include "conformance/support/graph_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* An entry of a function's attributes; moves the AttrValue. */
static void put_attr(gk_bytes *func, const char *name, gk_bytes *value)
{
  gk_bytes entry = { 0 };
  gk_text(&entry, 1, name);
  gk_message(&entry, 2, value);
  gk_message(func, 2, &entry);
}

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

static void walk__consumers_are_in_order_of_addition(void)
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
  /* nodes are added after the walk */
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

static void walk__a_schema_has_parts(void)
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

/* Most of these ops have never been looked up by name. */
static void walk__listed_schemas_have_their_parts(void)
{
  for (size_t i = 0; i < tn_n_op_schemas(); i++) {
    const tn_op_schema *s = tn_op_schema_at(i);
    REQUIRE(s != NULL);
    size_t parts = tn_op_schema_n_inputs(s) + tn_op_schema_n_outputs(s) + tn_op_schema_n_attrs(s);
    bool none = strcmp(tn_op_schema_name(s), "NoOp") == 0 || strcmp(tn_op_schema_name(s), "GkRun") == 0 ||
                strcmp(tn_op_schema_name(s), "ControlTrigger") == 0;
    CHECK_MSG(none || parts > 0, "%s has no parts", tn_op_schema_name(s));
  }
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

static void walk__nothing_leaks_without_memory(void)
{
  gk_register();
  tn_test_oom_sweep(walk_all, NULL);
}

/* ---- attributes of any kind ---- */

/* f[T=float, n=[4, 5], inner=g[s="x"], t=<a tensor>] as a NameAttrList. */
static void put_func(gk_bytes *out)
{
  static const float two[] = { 1, 2 };
  const int64_t dims[] = { 2 };
  gk_bytes type = { 0 }, list = { 0 }, numbers = { 0 }, s = { 0 }, inner = { 0 }, value = { 0 };
  gk_bytes t = { 0 }, tensor = { 0 };
  gk_text(out, 1, "f");
  gk_int(&type, 6, TN_FLOAT);
  gk_int(&numbers, 3, 4);
  gk_int(&numbers, 3, 5);
  gk_message(&list, 1, &numbers);
  gk_text(&s, 2, "x");
  gk_text(&inner, 1, "g");
  put_attr(&inner, "s", &s);
  gk_message(&value, 10, &inner);
  gk_tensor(&tensor, TN_FLOAT, dims, 1, two, sizeof two);
  gk_message(&t, 8, &tensor);
  put_attr(out, "T", &type);
  put_attr(out, "n", &list);
  put_attr(out, "inner", &value);
  put_attr(out, "t", &t);
}

static void put_value_of_func(gk_bytes *out)
{
  gk_bytes func = { 0 };
  put_func(&func);
  gk_message(out, 10, &func);
}

/* list(func): h, f[...] */
static void put_value_of_funcs(gk_bytes *out)
{
  gk_bytes list = { 0 }, plain = { 0 }, func = { 0 };
  gk_text(&plain, 1, "h");
  put_func(&func);
  gk_message(&list, 9, &plain);
  gk_message(&list, 9, &func);
  gk_message(out, 1, &list);
}

/* A node with functions as attributes, imported from bytes; its op is registered (known = true)
 * or not. */
static tn_graph *import_functions(bool known, tn_error *err)
{
  gk_bytes graph = { 0 }, node = { 0 }, fn = { 0 }, more = { 0 }, holder = { 0 }, list = { 0 }, none = { 0 };
  gk_register();
  gk_node(&node, "a", known ? "GkAttrs" : "Mystery", NULL);
  put_value_of_func(&fn);
  put_value_of_funcs(&more);
  gk_text(&holder, 9, "T");
  gk_message(&list, 1, &none);
  gk_attr(&node, "fn", &fn);
  gk_attr(&node, "more", &more);
  gk_attr(&node, "holder", &holder);
  gk_attr(&node, "empty", &list);
  gk_add_node(&graph, &node);
  tn_graph *out;
  if (tn_graph_create(&out, err) == TN_OK && tn_graph_import(out, graph.data, graph.size, NULL, err) != TN_OK) {
    tn_graph_unref(out);
    out = NULL;
  }
  gk_bytes_free(&graph);
  return out;
}

static tn_status build_functions(tn_graph *graph, tn_operation **out, tn_error *err)
{
  gk_bytes fn = { 0 }, more = { 0 };
  put_value_of_func(&fn);
  put_value_of_funcs(&more);
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  tn_operation_set_proto(b, "fn", fn.data, fn.size);
  tn_operation_set_proto(b, "more", more.data, more.size);
  gk_bytes_free(&fn); /* it is not read again */
  gk_bytes_free(&more);
  return tn_operation_finish(b, out, err);
}

/* Checks the function's attributes against put_func. */
static void check_func(const tn_attr_value *func)
{
  tn_error err = TN_ERROR_INIT;
  tn_attr_value v = { .struct_size = sizeof v };
  const char *name;
  CHECK_INT(func->n_attrs, 4);
  CHECK_STR(func->text, "f");
  CHECK_INT(func->length, 1);
  REQUIRE_OK(tn_attr_value_attr(func, 0, 0, &name, &v, &err), &err);
  CHECK_STR(name, "T");
  CHECK(v.kind == TN_ATTR_TYPE && v.type == TN_FLOAT && v.n == 1);
  CHECK_OK(tn_attr_value_attr(func, 1, 1, NULL, &v, &err), &err);
  CHECK(v.kind == TN_ATTR_LIST + TN_ATTR_INT && v.n == 2 && v.i == 5);
  CHECK_OK(tn_attr_value_attr(func, 3, 0, &name, &v, &err), &err);
  CHECK_STR(name, "t");
  CHECK(v.kind == TN_ATTR_TENSOR && tn_tensor_elements(v.tensor) == 2);
  CHECK(((const float *)tn_tensor_data(v.tensor))[1] == 2);
  REQUIRE_OK(tn_attr_value_attr(func, 2, 0, &name, &v, &err), &err);
  CHECK(v.kind == TN_ATTR_FUNC && v.n_attrs == 1);
  CHECK_STR(v.text, "g");
  CHECK_OK(tn_attr_value_attr(&v, 0, 0, &name, &v, &err), &err); /* output in place of the input */
  CHECK_STR(name, "s");
  CHECK_STR(v.text, "x");
  CHECK_STATUS(tn_attr_value_attr(func, 4, 0, &name, &v, &err), TN_OUT_OF_RANGE, &err);
  CHECK_CONTAINS(tn_error_message(&err), "function 'f': attribute 4 was asked for, it has 4");
  CHECK_NULL(name);
  CHECK_STATUS(tn_attr_value_attr(&v, 0, 0, &name, &v, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
}

static void check_functions(const tn_operation *op)
{
  tn_error err = TN_ERROR_INIT;
  tn_attr_value v = { .struct_size = sizeof v };
  REQUIRE_OK(tn_operation_attr_value(op, "fn", 0, &v, &err), &err);
  CHECK(v.kind == TN_ATTR_FUNC && v.n == 1);
  check_func(&v);
  REQUIRE_OK(tn_operation_attr_value(op, "more", 0, &v, &err), &err);
  CHECK(v.kind == TN_ATTR_FUNC + TN_ATTR_LIST && v.n == 2 && v.n_attrs == 0);
  CHECK_STR(v.text, "h");
  CHECK_STATUS(tn_attr_value_attr(&v, 0, 0, NULL, &v, &err), TN_OUT_OF_RANGE, &err);
  REQUIRE_OK(tn_operation_attr_value(op, "more", 1, &v, &err), &err);
  check_func(&v);
  const char *text;
  CHECK_OK(tn_operation_attr_func_at(op, "more", 1, &text, NULL, &err), &err);
  CHECK_STR(text, "f");
  tn_error_clear(&err);
}

static void value__of_functions_with_attributes(void)
{
  tn_error err = TN_ERROR_INIT;
  for (int known = 0; known < 2; known++) {
    tn_graph *graph = import_functions(known != 0, &err);
    REQUIRE_PTR(graph);
    const tn_operation *op = tn_graph_operation(graph, 0);
    check_functions(op);
    tn_attr_value v = { .struct_size = sizeof v };
    CHECK_OK(tn_operation_attr_value(op, "holder", 0, &v, &err), &err);
    CHECK(v.kind == TN_ATTR_PLACEHOLDER && v.length == 1);
    CHECK_STR(v.text, "T");
    CHECK_OK(tn_operation_attr_value(op, "empty", 0, &v, &err), &err);
    CHECK(v.kind == TN_ATTR_LIST && v.n == 0 && v.text == NULL);
    tn_graph_unref(graph);
  }
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  REQUIRE_OK(build_functions(graph, &op, &err), &err);
  check_functions(op);
  tn_graph_unref(graph);
}

static void value__of_every_other_kind(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  tn_tensor *one = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, NULL, 0, &one, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  tn_operation_set_string(b, "s", "a\0b", 3);
  tn_operation_set_int(b, "i", -5);
  tn_operation_set_tensor(b, "tensor", one);
  tn_operation_set_tensors(b, "tensors", &one, 1);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  tn_attr_value v = { .struct_size = sizeof v };
#define ASK(name, item) REQUIRE_OK(tn_operation_attr_value(op, name, item, &v, &err), &err)
  ASK("s", 0);
  CHECK(v.kind == TN_ATTR_STRING && v.length == 3 && memcmp(v.text, "a\0b", 4) == 0);
  ASK("i", 9); /* an attribute that is not a list has one item */
  CHECK(v.i == -5 && v.text == NULL && v.n == 1);
  ASK("f", 0); /* from here on, defaults of the schema */
  CHECK(v.f == 1.5f);
  ASK("b", 0);
  CHECK(v.b == 1);
  ASK("t", 0);
  CHECK(v.type == TN_INT32);
  ASK("shape", 0);
  CHECK(v.rank == 2 && v.dims[0] == 2 && v.dims[1] == -1);
  ASK("lsh", 1);
  CHECK(v.n == 2 && v.rank == -1 && v.dims == NULL);
  ASK("lsh", 2);
  CHECK(v.n == 2 && v.rank == 0);
  ASK("ls", 1);
  CHECK_STR(v.text, "b");
  ASK("lt", 0);
  CHECK(v.type == TN_FLOAT);
  ASK("lb", 0);
  CHECK(v.b == 1);
  ASK("lf", 0);
  CHECK(v.kind == TN_ATTR_FLOAT + TN_ATTR_LIST && v.n == 0);
  ASK("fn", 0);
  CHECK_STR(v.text, "f");
  ASK("tensor", 0);
  CHECK(v.tensor == one);
  ASK("tensors", 0);
  CHECK(v.kind == TN_ATTR_TENSOR + TN_ATTR_LIST && v.tensor == one);
#undef ASK
  CHECK_STATUS(tn_operation_attr_value(op, "none", 0, &v, &err), TN_NOT_FOUND, &err);
  CHECK_STATUS(tn_operation_attr_value(NULL, "s", 0, &v, &err), TN_INVALID_ARGUMENT, &err);
  v.struct_size = 8;
  CHECK_STATUS(tn_operation_attr_value(op, "s", 0, &v, &err), TN_INVALID_ARGUMENT, &err);
  tn_tensor_unref(one);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void value__sizes_are_known_before_allocation(void)
{
  static const struct {
    const char *name;
    int64_t n, total;
  } cases[] = { { "s", -1, 5 },  { "i", -1, -1 }, { "shape", -1, 2 }, { "l", 2, -1 },  { "ls", 2, 2 },
                { "lsh", 2, 0 }, { "fn", -1, 1 }, { "lf", 0, -1 },    { "names", 2, 5 }, { "any", -1, -1 } };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  const char *functions[] = { "one", "or" };
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  tn_operation_set_funcs(b, "names", functions, 2);
  tn_operation_set_shape(b, "any", NULL, -1);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t n, total;
    CHECK_OK(tn_operation_attr_size(op, cases[i].name, &n, &total, &err), &err);
    CHECK_MSG(n == cases[i].n && total == cases[i].total, "%s: %d items, %d in all", cases[i].name, (int)n, (int)total);
  }
  int64_t n = 0;
  CHECK_STATUS(tn_operation_attr_size(op, "none", &n, NULL, &err), TN_NOT_FOUND, &err);
  CHECK_INT(n, -1);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- as messages ---- */

static void proto__of_an_attribute_has_the_bytes_of_the_file(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes wanted = { 0 };
  put_value_of_func(&wanted);
  tn_graph *graph = import_functions(false, &err);
  REQUIRE_PTR(graph);
  void *bytes;
  size_t size;
  REQUIRE_OK(tn_operation_attr_proto(tn_graph_operation(graph, 0), "fn", &bytes, &size, &err), &err);
  CHECK_INT(size, wanted.size);
  CHECK_BYTES(bytes, wanted.data, wanted.size);
  tn_free(bytes);
  CHECK_STATUS(tn_operation_attr_proto(tn_graph_operation(graph, 0), "x", &bytes, &size, &err), TN_NOT_FOUND, &err);
  CHECK(bytes == NULL && size == 0);
  CHECK_STATUS(tn_operation_attr_proto(NULL, "x", &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(graph);
  /* Built nodes are encoded, with the default for an attribute that is not set. */
  graph = gk_new_graph();
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  tn_operation_set_int(b, "i", 3);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  REQUIRE_OK(tn_operation_attr_proto(op, "i", &bytes, &size, &err), &err);
  CHECK(size == 2 && memcmp(bytes, "\x18\x03", 2) == 0);
  tn_free(bytes);
  REQUIRE_OK(tn_operation_attr_proto(op, "s", &bytes, &size, &err), &err);
  CHECK(size == 7 && memcmp(bytes, "\x12\x05plain", 7) == 0);
  tn_free(bytes);
  tn_graph_unref(graph);
  gk_bytes_free(&wanted);
  tn_error_clear(&err);
}

static void proto__of_an_operation_can_be_imported(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *x = in_of(graph, "x"), *y = in_of(graph, "y"), *sum = add_of(graph, "sum", x, y, x);
  gk_bytes copy = { 0 };
  tn_operation *all[] = { x, y, sum };
  for (size_t i = 0; i < 3; i++) {
    void *bytes;
    size_t size;
    REQUIRE_OK(tn_operation_node_def(all[i], &bytes, &size, &err), &err);
    gk_data(&copy, 1, bytes, size);
    tn_free(bytes);
  }
  tn_graph *again = gk_import(&copy, &err);
  REQUIRE_PTR(again);
  const tn_operation *op = tn_graph_find(again, "sum");
  REQUIRE(op != NULL);
  CHECK_STR(tn_operation_name(tn_operation_input(op, 1).op), "y");
  CHECK_STR(tn_operation_name(tn_operation_control_input(op, 0)), "x");
  void *bytes, *same;
  size_t size, n;
  REQUIRE_OK(tn_operation_node_def(op, &bytes, &size, &err), &err); /* imported: the bytes of the file */
  REQUIRE_OK(tn_operation_node_def(sum, &same, &n, &err), &err);
  CHECK(size == n && memcmp(bytes, same, n) == 0);
  tn_free(bytes);
  tn_free(same);
  CHECK_STATUS(tn_operation_node_def(NULL, &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_operation_node_def(op, NULL, &size, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(again);
  tn_graph_unref(graph);
  gk_bytes_free(&copy);
  tn_error_clear(&err);
}

/* An OpDef written by hand, field by field. */
static void proto__of_a_schema_is_an_opdef(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_register();
  gk_bytes op = { 0 }, arg = { 0 }, attr = { 0 }, list = { 0 }, value = { 0 };
  static const uint8_t types[] = { TN_FLOAT, TN_DOUBLE, TN_INT32, TN_INT64, TN_HALF };
  static const char *const args[] = { "x", "y", "z" };
  gk_text(&op, 1, "GkAdd");
  for (int i = 0; i < 3; i++) {
    gk_text(&arg, 1, args[i]);
    gk_text(&arg, 4, "T");
    gk_message(&op, i < 2 ? 2 : 3, &arg);
  }
  gk_text(&attr, 1, "T");
  gk_text(&attr, 2, "type");
  gk_data(&list, 6, types, sizeof types);
  gk_message(&value, 1, &list);
  gk_message(&attr, 7, &value);
  gk_message(&op, 4, &attr);
  gk_int(&op, 18, 1);
  void *bytes;
  size_t size;
  REQUIRE_OK(tn_op_schema_op_def(tn_op_schema_find("GkAdd"), &bytes, &size, &err), &err);
  CHECK_INT(size, op.size);
  CHECK_BYTES(bytes, op.data, op.size);
  tn_free(bytes);
  CHECK_STATUS(tn_op_schema_op_def(NULL, &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  gk_bytes_free(&op);
  tn_error_clear(&err);
}

static void walk__a_schema_has_defaults_of_every_kind(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_register();
  const tn_op_schema *s = tn_op_schema_find("GkAttrs");
  tn_attr_value v = { .struct_size = sizeof v };
  tn_op_attr attr = { .struct_size = sizeof attr };
  unsigned seen = 0;
  for (size_t i = 0; i < tn_op_schema_n_attrs(s); i++) {
    REQUIRE_OK(tn_op_schema_attr(s, i, &attr, &err), &err);
    REQUIRE_OK(tn_op_schema_attr_default(s, i, 0, &v, &err), &err);
    CHECK_INT(v.kind, attr.kind);
    if (strcmp(attr.name, "shape") == 0 && ++seen) CHECK(v.rank == 2 && v.dims[0] == 2 && v.dims[1] == -1);
    if (strcmp(attr.name, "l") == 0 && ++seen) CHECK(v.n == 2 && v.i == 1);
    if (strcmp(attr.name, "lf") == 0 && ++seen) CHECK_INT(v.n, 0);
    if (strcmp(attr.name, "fn") == 0 && ++seen) CHECK_STR(v.text, "f");
    if (strcmp(attr.name, "i") == 0 && ++seen) CHECK(v.i == 7 && attr.has_minimum && attr.minimum == -5);
    if (strcmp(attr.name, "lsh") != 0) continue;
    seen++;
    CHECK_OK(tn_op_schema_attr_default(s, i, 1, &v, &err), &err);
    CHECK(v.n == 2 && v.rank == -1);
  }
  CHECK_INT(seen, 6);
  CHECK_STATUS(tn_op_schema_attr_default(s, 99, 0, &v, &err), TN_OUT_OF_RANGE, &err);
  CHECK_STATUS(tn_op_schema_attr_default(tn_op_schema_find("GkIn"), 0, 0, &v, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "op 'GkIn': attribute 'T' has no default");
  CHECK_STATUS(tn_op_schema_attr_default(NULL, 0, 0, &v, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
}

/* The status is the same if the caller passes no error object. */
static void value__codes_do_not_need_an_error(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes graph = { 0 }, node = { 0 }, dim = { 0 }, shape = { 0 }, value = { 0 };
  gk_bytes inner = { 0 }, fn = { 0 }, outer = { 0 };
  gk_int(&dim, 1, -7);
  gk_message(&shape, 2, &dim);
  gk_message(&value, 7, &shape);
  gk_put(&inner, value.data, value.size);
  gk_text(&fn, 1, "f");
  put_attr(&fn, "shape", &inner);
  gk_message(&outer, 10, &fn);
  gk_node(&node, "a", "Mystery", NULL);
  gk_attr(&node, "bad", &value);
  gk_attr(&node, "fn", &outer);
  gk_add_node(&graph, &node);
  tn_graph *g = gk_import(&graph, &err);
  REQUIRE_PTR(g);
  const tn_operation *op = tn_graph_operation(g, 0);
  tn_attr_value v = { .struct_size = sizeof v };
  const int64_t *dims;
  int32_t rank;
  CHECK_INT(tn_operation_attr_shape(op, "bad", &dims, &rank, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_operation_attr_value(op, "bad", 0, &v, NULL), TN_INVALID_ARGUMENT);
  CHECK_STATUS(tn_operation_attr_value(op, "bad", 0, &v, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'a': attribute 'bad'");
  REQUIRE_OK(tn_operation_attr_value(op, "fn", 0, &v, &err), &err);
  tn_attr_value part = { .struct_size = sizeof part };
  CHECK_INT(tn_attr_value_attr(&v, 0, 0, NULL, &part, NULL), TN_INVALID_ARGUMENT);
  CHECK_STATUS(tn_attr_value_attr(&v, 0, 0, NULL, &part, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'a': function 'f'");
  tn_graph_unref(g);
  gk_bytes_free(&graph);
  tn_error_clear(&err);
}

/* ---- lack of memory ---- */

static tn_status ask_all(const tn_operation *op)
{
  static const char *const names[] = { "fn", "more", "holder", "empty" };
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < 4; i++) {
    tn_attr_value v = { .struct_size = sizeof v };
    int64_t n;
    void *bytes = NULL;
    size_t size;
    if (tn_operation_attr_kind(op, names[i]) == TN_ATTR_NONE) continue;
    st = tn_operation_attr_value(op, names[i], 1, &v, NULL);
    if (st == TN_OK && v.n_attrs > 3) st = tn_attr_value_attr(&v, 3, 0, NULL, &v, NULL);
    if (st == TN_OK) st = tn_operation_attr_size(op, names[i], &n, NULL, NULL);
    if (st == TN_OK) st = tn_operation_attr_proto(op, names[i], &bytes, &size, NULL);
    tn_free(bytes);
  }
  void *bytes = NULL;
  size_t size;
  if (st == TN_OK) st = tn_operation_node_def(op, &bytes, &size, NULL);
  tn_free(bytes);
  bytes = NULL;
  if (st == TN_OK) st = tn_op_schema_op_def(tn_op_schema_find("GkAttrs"), &bytes, &size, NULL);
  tn_free(bytes);
  return st;
}

/* arg: 0 an unregistered op, 1 a registered op, 2 a built node */
static tn_status ask_without_memory(void *arg)
{
  int how = *(int *)arg;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_operation *op = NULL;
  tn_status st = TN_OK;
  if (how < 2) {
    graph = import_functions(how != 0, &err);
    st = graph == NULL ? tn_error_code(&err) : TN_OK;
    op = tn_graph_operation(graph, 0);
  } else {
    st = tn_graph_create(&graph, &err);
    if (st == TN_OK) st = build_functions(graph, &op, &err);
  }
  if (st == TN_OK) st = ask_all(op);
  if (st == TN_OK) st = ask_all(op); /* values parsed lazily exist now */
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void value__nothing_leaks_without_memory(void)
{
  gk_register();
  for (int how = 0; how < 3; how++) tn_test_oom_sweep(ask_without_memory, &how);
}

/* ---- concurrency ---- */

enum { SETTERS = 3, READERS = 3, PLACES = 2000 };

/* in[i] are placeholders of unknown shape; sum[i] = in[i] + in[i + 1]. */
typedef struct shared {
  tn_graph *graph;
  tn_operation *in[PLACES + 1], *sum[PLACES];
  _Atomic int setters;
  _Atomic int arrived; /* setters move on together, so that they contend */
  _Atomic int done;
} shared;

/* Each thread sets another dimension of every placeholder: 2, 3 and 4. */
static void *set_shapes(void *arg)
{
  shared *s = arg;
  int k = atomic_fetch_add(&s->setters, 1);
  void *failed = NULL;
  int64_t dims[SETTERS] = { -1, -1, -1 };
  for (int i = 0; i <= PLACES; i++) {
    atomic_fetch_add(&s->arrived, 1);
    while (atomic_load(&s->arrived) < SETTERS * (i + 1)) sched_yield();
    dims[k] = k + 2;
    if (tn_graph_set_shape((tn_output){ s->in[i], 0 }, dims, SETTERS, NULL) != TN_OK)
      failed = s;
    dims[k] = 9; /* contradicts any of these */
    if (tn_graph_set_shape((tn_output){ s->in[i], 0 }, dims, SETTERS, NULL) != TN_INVALID_ARGUMENT)
      failed = s;
  }
  return failed;
}

/* The known dimensions are right, whatever has been set so far. */
static bool sound(tn_operation *op)
{
  int64_t dims[SETTERS];
  int32_t rank;
  if (tn_output_shape((tn_output){ op, 0 }, dims, SETTERS, &rank, NULL) != TN_OK) return false;
  if (rank == -1) return true;
  for (int k = 0; k < SETTERS; k++)
    if (dims[k] != -1 && dims[k] != k + 2) return false;
  return rank == SETTERS;
}

static void *read_shapes(void *arg)
{
  shared *s = arg;
  for (unsigned i = 0; !atomic_load(&s->done); i++) {
    size_t at = i % PLACES, n;
    tn_consumer who[3];
    if (!sound(s->sum[at]) || !sound(s->in[at])) return s;
    if (tn_output_consumers((tn_output){ s->in[at], 0 }, who, 3, &n, NULL) != TN_OK || n != (at == 0 ? 1 : 2)) return s;
    if (who[n - 1].op != s->sum[at] || who[n - 1].input != 0) return s;
    /* attributes that are parsed from their bytes at the first request */
    tn_attr_value v = { .struct_size = sizeof v };
    if (tn_operation_attr_value(tn_graph_operation(s->graph, 0), "more", 1, &v, NULL) != TN_OK) return s;
    if (tn_attr_value_attr(&v, 3, 0, NULL, &v, NULL) != TN_OK || v.tensor == NULL) return s;
  }
  return NULL;
}

static void walk__while_threads_set_shapes(void)
{
  tn_error err = TN_ERROR_INIT;
  char name[16];
  shared s = { .graph = import_functions(false, &err) };
  pthread_t setters[SETTERS], readers[READERS];
  REQUIRE_PTR(s.graph);
  for (int i = 0; i <= PLACES; i++) {
    snprintf(name, sizeof name, "in%d", i);
    s.in[i] = in_of(s.graph, name);
    snprintf(name, sizeof name, "sum%d", i - 1);
    if (i > 0) s.sum[i - 1] = add_of(s.graph, name, s.in[i - 1], s.in[i], NULL);
  }
  for (int i = 0; i < READERS; i++) REQUIRE_INT(pthread_create(&readers[i], NULL, read_shapes, &s), 0);
  for (int i = 0; i < SETTERS; i++) REQUIRE_INT(pthread_create(&setters[i], NULL, set_shapes, &s), 0);
  void *failed;
  for (int i = 0; i < SETTERS; i++) {
    pthread_join(setters[i], &failed);
    CHECK_NULL(failed);
  }
  atomic_store(&s.done, 1);
  for (int i = 0; i < READERS; i++) {
    pthread_join(readers[i], &failed);
    CHECK_NULL(failed);
  }
  for (int i = 0; i < PLACES; i++) {
    int64_t dims[SETTERS] = { -1, -1, -1 };
    int32_t rank;
    CHECK_OK(tn_output_shape((tn_output){ s.sum[i], 0 }, dims, SETTERS, &rank, &err), &err);
    CHECK_MSG(rank == SETTERS && dims[0] == 2 && dims[1] == 3 && dims[2] == 4, "sum%d: %d, %d, %d", i, (int)dims[0],
              (int)dims[1], (int)dims[2]);
  }
  tn_graph_unref(s.graph);
}

TAP_MAIN(TAP_TEST(walk__listed_schemas_have_their_parts),
         TAP_TEST(walk__consumers_are_in_order_of_addition), TAP_TEST(walk__a_schema_has_parts),
         TAP_TEST(walk__nothing_leaks_without_memory), TAP_TEST(value__of_functions_with_attributes),
         TAP_TEST(value__of_every_other_kind), TAP_TEST(value__sizes_are_known_before_allocation),
         TAP_TEST(proto__of_an_attribute_has_the_bytes_of_the_file), TAP_TEST(proto__of_an_operation_can_be_imported),
         TAP_TEST(proto__of_a_schema_is_an_opdef), TAP_TEST(walk__a_schema_has_defaults_of_every_kind),
         TAP_TEST(value__codes_do_not_need_an_error), TAP_TEST(value__nothing_leaks_without_memory),
         TAP_TEST(walk__while_threads_set_shapes))
