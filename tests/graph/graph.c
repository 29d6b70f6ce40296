/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs and reading them back. */
#include "core/graph/graph_structs.h"
#include "conformance/support/graph_kit.h"

#include <string.h>

/* ---- building ---- */

static void graph__starts_empty(void)
{
  tn_graph *graph = gk_new_graph();
  CHECK_INT(tn_graph_n_operations(graph), 0);
  CHECK_NULL(tn_graph_operation(graph, 0));
  CHECK_NULL(tn_graph_find(graph, "x"));
  tn_graph *again = tn_graph_ref(graph);
  tn_graph_unref(graph);
  CHECK_INT(tn_graph_n_operations(again), 0);
  tn_graph_unref(again);
  tn_graph_unref(NULL);
}

static void build__operation_can_be_read_back(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_output x = gk_float_in(graph, "x"), y = gk_float_in(graph, "scope/y");
  tn_operation_builder *b = tn_operation_begin(graph, "GkAdd", "scope/sum", 0);
  tn_operation_set_device(b, "/job:worker/replica:0/task:1/device:CPU:0");
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, y);
  tn_operation_add_control_input(b, y.op);
  tn_operation *sum;
  REQUIRE_OK(tn_operation_finish(b, &sum, &err), &err);
  CHECK_STR(tn_operation_name(sum), "scope/sum");
  CHECK_STR(tn_operation_type(sum), "GkAdd");
  CHECK_STR(tn_operation_device(sum), "/job:worker/replica:0/task:1/device:CPU:0");
  CHECK_STR(tn_operation_device(x.op), "");
  CHECK(tn_operation_schema(sum) == tn_op_schema_find("GkAdd"));
  CHECK_INT(tn_operation_n_inputs(sum), 2);
  CHECK(tn_operation_input(sum, 1).op == y.op && tn_operation_input(sum, 1).index == 0);
  CHECK_NULL(tn_operation_input(sum, 2).op);
  CHECK_INT(tn_operation_n_control_inputs(sum), 1);
  CHECK(tn_operation_control_input(sum, 0) == y.op);
  CHECK_NULL(tn_operation_control_input(sum, 1));
  CHECK_INT(tn_operation_n_outputs(sum), 1);
  CHECK_INT(tn_operation_output_dtype(sum, 0), TN_FLOAT);
  CHECK_INT(tn_operation_input_dtype(sum, 1), TN_FLOAT);
  CHECK_INT(tn_operation_output_dtype(sum, 1), TN_DTYPE_INVALID);
  CHECK_INT(tn_graph_n_operations(graph), 3);
  CHECK(tn_graph_operation(graph, 2) == sum);
  CHECK(tn_graph_find(graph, "scope/sum") == sum);
  CHECK_NULL(tn_graph_find(graph, "scope/su"));
  tn_graph_unref(graph);
}

static void build__inputs_decide_attributes(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_output f = gk_float_in(graph, "f"), i = gk_in_of(graph, "i", TN_INT64, NULL, -1);
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkAddN", "n", 0);
  tn_operation_add_input_list(b, (tn_output[]){ f, f, f }, 3);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  int64_t n;
  tn_dtype t;
  CHECK_OK(tn_operation_attr_int(op, "N", &n, &err), &err);
  CHECK_INT(n, 3);
  CHECK_OK(tn_operation_attr_type(op, "T", &t, &err), &err);
  CHECK_INT(t, TN_FLOAT);

  b = tn_operation_begin(graph, "GkPack", "pack", 0);
  tn_operation_add_input(b, f);
  tn_operation_add_input_list(b, (tn_output[]){ i, f }, 2);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  const tn_dtype *types;
  size_t count, first;
  CHECK_OK(tn_operation_attr_types(op, "Tlist", &types, &count, &err), &err);
  CHECK(count == 2 && types[0] == TN_INT64 && types[1] == TN_FLOAT);
  CHECK_OK(tn_operation_input_range(op, "rest", &first, &count, &err), &err);
  CHECK(first == 1 && count == 2);
  CHECK_STATUS(tn_operation_output_range(op, "rest", &first, &count, &err), TN_NOT_FOUND, &err);
  CHECK_INT(tn_operation_input_dtype(op, 1), TN_INT64);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void build__references_feed_values(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *var, *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkVar", "var", 0);
  tn_operation_set_type(b, "T", TN_FLOAT);
  REQUIRE_OK(tn_operation_finish(b, &var, &err), &err);
  CHECK_INT(tn_operation_output_dtype(var, 0), TN_FLOAT + TN_DTYPE_REF);
  tn_output ref = { var, 0 }, x = gk_float_in(graph, "x");
  REQUIRE_OK(gk_build2(graph, "GkAssign", "assign", ref, ref, &op, &err), &err);
  CHECK_INT(tn_operation_input_dtype(op, 0), TN_FLOAT + TN_DTYPE_REF);
  CHECK_INT(tn_operation_input_dtype(op, 1), TN_FLOAT);
  CHECK_STATUS(gk_build2(graph, "GkAssign", "wrong", x, x, &op, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "input 0 ('ref') is 'x:0' of type float32, wanted float32_ref");
  CHECK_NULL(op);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void build__many_outputs_cost_nothing(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkSplit", "split", 0);
  tn_operation_add_input(b, gk_float_in(graph, "x"));
  tn_operation_set_int(b, "N", 100000);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  CHECK_INT(tn_operation_n_outputs(op), 100001);
  CHECK_INT(tn_operation_output_dtype(op, 100000), TN_FLOAT);
  CHECK_INT(tn_operation_output_dtype(op, 100001), TN_DTYPE_INVALID);
  size_t first, n;
  CHECK_OK(tn_operation_output_range(op, "rest", &first, &n, &err), &err);
  CHECK(first == 100000 && n == 1);
  b = tn_operation_begin(graph, "GkSplit", "too_many", 0);
  tn_operation_add_input(b, (tn_output){ tn_graph_find(graph, "x"), 0 });
  tn_operation_set_int(b, "N", INT64_MAX);
  CHECK_STATUS(tn_operation_finish(b, &op, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "output 'parts'");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* All mistakes are kept until finish; the error names the node, and the graph is unchanged. */
static void build__mistakes_are_reported_by_finish(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph(), *other = gk_new_graph();
  tn_output f = gk_float_in(graph, "f"), i = gk_in_of(graph, "i", TN_INT32, NULL, -1),
            foreign = gk_float_in(other, "foreign");
  const int64_t bad_dims[] = { -2 };
  for (int k = 0; k < 22; k++) {
    const char *wanted = "?", *op = "GkAdd", *name = "bad";
    tn_status code = TN_INVALID_ARGUMENT;
    if (k == 0) op = "NoSuchOp", code = TN_NOT_FOUND, wanted = "op 'NoSuchOp' is not registered";
    if (k == 1) name = "two words", wanted = "the node name is not valid";
    if (k == 2) name = "f", wanted = "has a node of this name";
    if (k >= 11 && k <= 13) op = "GkAddN";
    if (k >= 14) op = "GkAttrs";
    tn_operation_builder *b = tn_operation_begin(graph, op, name, 0);
    REQUIRE_PTR(b);
    if (k <= 2) tn_operation_add_input(b, f), tn_operation_add_input(b, f);
    switch (k) {
    case 3: tn_operation_add_input(b, f), wanted = "takes 2 inputs (a list counts as one), found 1"; break;
    case 4:
      tn_operation_add_input(b, f), tn_operation_add_input(b, i),
          wanted = "input 1 ('y') is 'i:0' of type int32, wanted float32";
      break;
    case 5: tn_operation_add_input(b, foreign), wanted = "another graph"; break;
    case 6: tn_operation_add_input(b, (tn_output){ NULL, 0 }), wanted = "no operation"; break;
    case 7:
      tn_operation_add_input(b, (tn_output){ f.op, 1 }), wanted = "'f:1', but node 'f' (GkIn) has 1 outputs";
      break;
    case 8: tn_operation_set_device(b, "/device:CPU:x"), wanted = "malformed device '/device:CPU:x'"; break;
    case 9: tn_operation_add_control_input(b, foreign.op), wanted = "another graph"; break;
    case 10:
      tn_operation_add_input_list(b, &f, 1), tn_operation_add_input(b, f),
          wanted = "input 'x' is one tensor, found a list";
      break;
    case 11: tn_operation_add_input(b, f), wanted = "input 'inputs' is a list"; break;
    case 12: tn_operation_add_input_list(b, NULL, 0), wanted = "attribute 'N' is 0, wanted at least 1"; break;
    case 13:
      tn_operation_set_int(b, "N", 2);
      tn_operation_add_input_list(b, &f, 1);
      wanted = "input 'inputs' has 1 tensors, but attribute 'N' is 2";
      break;
    case 14: tn_operation_set_int(b, "s", 1), wanted = "attribute 's' is an int, wanted a string"; break;
    case 15:
      tn_operation_set_string(b, "mode", "FULL", 4),
          wanted = "attribute 'mode' is 'FULL', wanted one of: 'SAME', 'VALID'";
      break;
    case 16: tn_operation_set_int(b, "i", -6), wanted = "attribute 'i' is -6, wanted at least -5"; break;
    case 17:
      tn_operation_set_types(b, "lt", (tn_dtype[]){ TN_HALF }, 1),
          wanted = "attribute 'lt' is the type half, wanted one of: float32, int32";
      break;
    case 18: tn_operation_set_type(b, "t", 77), wanted = "is 77, which is not a valid type"; break;
    case 19: tn_operation_set_shape(b, "shape", bad_dims, 1), wanted = "dimension 0 is -2"; break;
    case 20: tn_operation_set_shape(b, "shape", NULL, 255), wanted = "rank 255"; break;
    case 21: tn_operation_set_tensor(b, "anything", NULL), wanted = "attribute 'anything': no tensor given"; break;
    default: break;
    }
    tn_operation *out = f.op;
    CHECK_STATUS(tn_operation_finish(b, &out, &err), code, &err);
    CHECK_NULL(out);
    CHECK_CONTAINS(tn_error_message(&err), wanted);
    CHECK_STR(tn_error_node(&err), name);
    tn_error_clear(&err);
    CHECK_INT(tn_graph_n_operations(graph), 2);
  }
  tn_operation *out;
  CHECK_STATUS(tn_operation_finish(tn_operation_begin(NULL, "GkRun", "r", 0), &out, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_operation_finish(tn_operation_begin(graph, NULL, "r", 0), &out, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_operation_finish(tn_operation_begin(graph, "GkIn", "r", 0), &out, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "attribute 'T' (a type) is missing");
  CHECK_STATUS(tn_operation_finish(tn_operation_begin(graph, "GkRun", "r", 8), &out, &err), TN_INVALID_ARGUMENT, &err);
  tn_operation_abandon(tn_operation_begin(graph, "GkRun", "r", 0));
  tn_operation_abandon(NULL);
  CHECK_NULL(tn_graph_find(graph, "r"));
  tn_graph_unref(graph);
  tn_graph_unref(other);
  tn_error_clear(&err);
}

static void build__first_mistake_wins(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation_builder *b = tn_operation_begin(graph, "GkRun", "bad name", 0);
  tn_operation_set_device(b, "nonsense");
  CHECK_STATUS(tn_operation_finish(b, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'bad name' (GkRun): the node name is not valid");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void build__keeps_an_unknown_op_on_request(void) /* S-GRA-06 */
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op, *sum;
  tn_operation_builder *b = tn_operation_begin(graph, "Vendor>Mystery", "m", TN_BUILD_KEEP_UNKNOWN_OP);
  tn_operation_add_input(b, gk_float_in(graph, "x"));
  tn_operation_set_int(b, "k", 5);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  CHECK_STR(tn_operation_type(op), "Vendor>Mystery");
  CHECK_NULL(tn_operation_schema(op));
  CHECK_INT(tn_operation_n_outputs(op), 0);
  CHECK_INT(tn_operation_n_inputs(op), 1);
  CHECK_INT(tn_operation_input_dtype(op, 0), TN_FLOAT);
  CHECK_INT(tn__operation_traits(op), 0);
  /* any output of it may be used if the type is given */
  tn_output third = { op, 3 };
  CHECK_STATUS(gk_build2(graph, "GkAdd", "untyped", third, third, &sum, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "attribute 'T' (a type) is missing");
  REQUIRE_OK(gk_build2(graph, "GkAdd", "sum", third, (tn_output){ tn_graph_find(graph, "x"), 0 }, &sum, &err), &err);
  CHECK_INT(tn_operation_output_dtype(sum, 0), TN_FLOAT);
  int32_t rank = 0;
  CHECK_OK(tn_output_shape(third, NULL, 0, &rank, &err), &err);
  CHECK_INT(rank, -1);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- attributes ---- */

static void set_all(tn_operation_builder *b)
{
  const int64_t dims[] = { 3, -1 };
  const void *texts[] = { "x\0y", "" };
  const char *functions[] = { "g", "h" };
  const int64_t *shapes[] = { dims, NULL };
  tn_operation_set_string(b, "s", "te\0xt", 5);
  tn_operation_set_string(b, "mode", "VALID", 5);
  tn_operation_set_int(b, "i", INT64_MAX);
  tn_operation_set_float(b, "f", -0.0f);
  tn_operation_set_bool(b, "b", 0);
  tn_operation_set_type(b, "t", TN_STRING);
  tn_operation_set_shape(b, "shape", dims, 2);
  tn_operation_set_ints(b, "l", (int64_t[]){ 1 }, 1);
  tn_operation_set_ints(b, "l", (int64_t[]){ 4, 5, 6 }, 3); /* the later value counts */
  tn_operation_set_floats(b, "lf", (float[]){ 0.5f }, 1);
  tn_operation_set_bools(b, "lb", (tn_bool[]){ 0, 1 }, 2);
  tn_operation_set_types(b, "lt", (tn_dtype[]){ TN_INT32 }, 1);
  tn_operation_set_strings(b, "ls", texts, (size_t[]){ 3, 0 }, 2);
  tn_operation_set_shapes(b, "lsh", shapes, (int32_t[]){ 2, -1 }, 2);
  tn_operation_set_func(b, "fn", "body");
  tn_operation_set_funcs(b, "more", functions, 2);
}

static void attrs__every_kind_can_be_read_back(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  set_all(b);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);

  int64_t i;
  float f;
  tn_bool flag;
  tn_dtype t;
  const char *text;
  size_t n, length;
  const int64_t *dims, *ints;
  const float *floats;
  const tn_bool *bools;
  const tn_dtype *types;
  int32_t rank;
  CHECK_INT(tn_operation_n_attrs(op), 15);
  CHECK_STR(tn_operation_attr_name(op, 0), "s");
  CHECK_NULL(tn_operation_attr_name(op, 15));
  CHECK_INT(tn_operation_attr_kind(op, "lsh"), TN_ATTR_LIST + TN_ATTR_SHAPE);
  CHECK_INT(tn_operation_attr_kind(op, "nothing"), TN_ATTR_NONE);
  CHECK_OK(tn_operation_attr_string(op, "s", &text, &length, &err), &err);
  CHECK(length == 5 && memcmp(text, "te\0xt", 5) == 0);
  CHECK_OK(tn_operation_attr_int(op, "i", &i, &err), &err);
  CHECK_INT(i, INT64_MAX);
  CHECK_OK(tn_operation_attr_float(op, "f", &f, &err), &err);
  CHECK(f == 0 && __builtin_signbit(f));
  CHECK_OK(tn_operation_attr_bool(op, "b", &flag, &err), &err);
  CHECK_INT(flag, 0);
  CHECK_OK(tn_operation_attr_type(op, "t", &t, &err), &err);
  CHECK_INT(t, TN_STRING);
  CHECK_OK(tn_operation_attr_shape(op, "shape", &dims, &rank, &err), &err);
  CHECK(rank == 2 && dims[0] == 3 && dims[1] == -1);
  CHECK_OK(tn_operation_attr_func(op, "fn", &text, &err), &err);
  CHECK_STR(text, "body");
  CHECK_OK(tn_operation_attr_ints(op, "l", &ints, &n, &err), &err);
  CHECK(n == 3 && ints[2] == 6);
  CHECK_OK(tn_operation_attr_floats(op, "lf", &floats, &n, &err), &err);
  CHECK(n == 1 && floats[0] == 0.5f);
  CHECK_OK(tn_operation_attr_bools(op, "lb", &bools, &n, &err), &err);
  CHECK(n == 2 && bools[1] == 1);
  CHECK_OK(tn_operation_attr_types(op, "lt", &types, &n, &err), &err);
  CHECK(n == 1 && types[0] == TN_INT32);
  CHECK_OK(tn_operation_attr_string_at(op, "ls", 0, &text, &length, &n, &err), &err);
  CHECK(n == 2 && length == 3 && text[1] == 0);
  CHECK_OK(tn_operation_attr_string_at(op, "ls", 2, &text, &length, &n, &err), &err);
  CHECK(text == NULL && length == 0 && n == 2);
  CHECK_STATUS(tn_operation_attr_string_at(op, "ls", 2, &text, &length, NULL, &err), TN_OUT_OF_RANGE, &err);
  CHECK_OK(tn_operation_attr_shape_at(op, "lsh", 1, &dims, &rank, &n, &err), &err);
  CHECK_INT(rank, -1);
  CHECK_OK(tn_operation_attr_func_at(op, "more", 1, &text, NULL, &err), &err); /* not in the schema */
  CHECK_STR(text, "h");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void attrs__defaults_come_from_the_schema(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  int64_t i;
  size_t n;
  const char *text;
  REQUIRE_OK(tn_operation_finish(tn_operation_begin(graph, "GkAttrs", "a", 0), &op, &err), &err);
  CHECK_INT(tn_operation_n_attrs(op), 0);
  CHECK_OK(tn_operation_attr_int(op, "i", &i, &err), &err);
  CHECK_INT(i, 7);
  CHECK_OK(tn_operation_attr_string_at(op, "ls", 1, &text, NULL, &n, &err), &err);
  CHECK_STR(text, "b");
  CHECK_INT(tn_operation_attr_kind(op, "mode"), TN_ATTR_STRING);
  tn_graph_unref(graph);
}

static void attrs__wrong_requests_are_errors(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  int64_t i = 1;
  tn_tensor *tensor;
  REQUIRE_OK(tn_operation_finish(tn_operation_begin(graph, "GkAttrs", "a", 0), &op, &err), &err);
  CHECK_STATUS(tn_operation_attr_int(op, "none", &i, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'a' (GkAttrs) has no attribute 'none'");
  CHECK_STATUS(tn_operation_attr_int(op, "s", &i, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "attribute 's' is a string, an int was asked for");
  CHECK_STATUS(tn_operation_attr_tensor(op, "s", &tensor, NULL), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_operation_attr_int(NULL, "s", &i, NULL), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_operation_attr_int(op, NULL, &i, NULL), TN_INVALID_ARGUMENT, NULL);
  CHECK_INT(i, 0);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void attrs__tensors_are_shared(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  tn_tensor *tensor, *found, *list[2];
  const float values[] = { 1, 2, 3 };
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (int64_t[]){ 3 }, 1, values, sizeof values, &tensor, &err), &err);
  list[0] = list[1] = tensor;
  tn_operation_builder *b = tn_operation_begin(graph, "GkConst", "c", 0);
  tn_operation_set_tensor(b, "value", tensor);
  tn_operation_set_type(b, "T", TN_FLOAT);
  tn_operation_set_tensors(b, "others", list, 2);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  CHECK_OK(tn_operation_attr_tensor(op, "value", &found, &err), &err);
  CHECK(found == tensor);
  size_t n;
  CHECK_OK(tn_operation_attr_tensor_at(op, "others", 1, &found, &n, &err), &err);
  CHECK(found == tensor && n == 2);
  CHECK_OK(tn__operation_constant(op, &found, &err), &err);
  CHECK(found == tensor);
  tn_tensor_unref(tensor);
  CHECK_DOUBLE(((float *)tn_tensor_data(found))[2], 3, 0); /* the graph owns it */
  CHECK_STATUS(tn__operation_constant(gk_float_in(graph, "x").op, &found, &err), TN_INVALID_ARGUMENT, &err);

  /* An abandoned builder owns nothing. */
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (int64_t[]){ 3 }, 1, values, sizeof values, &tensor, &err), &err);
  b = tn_operation_begin(graph, "GkConst", "d", 0);
  tn_operation_set_tensor(b, "value", tensor);
  tn_operation_set_tensor(b, "value", tensor);
  tn_operation_abandon(b);
  CHECK(tn_tensor_is_exclusive(tensor));
  tn_tensor_unref(tensor);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void attrs__serialized_values_are_parsed(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_operation *op;
  gk_bytes proto = { 0 }, list = { 0 }, tensor = { 0 };
  gk_int(&list, 3, 8);
  gk_int(&list, 3, 9);
  gk_message(&proto, 1, &list);
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "a", 0);
  tn_operation_set_proto(b, "l", proto.data, proto.size);
  gk_bytes_free(&proto);
  const float value = 4;
  gk_tensor(&tensor, TN_FLOAT, NULL, 0, &value, sizeof value);
  gk_message(&proto, 8, &tensor);
  tn_operation_set_proto(b, "tensor", proto.data, proto.size);
  gk_bytes_free(&proto);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  const int64_t *ints;
  size_t n;
  tn_tensor *t;
  CHECK_OK(tn_operation_attr_ints(op, "l", &ints, &n, &err), &err);
  CHECK(n == 2 && ints[1] == 9);
  CHECK_OK(tn_operation_attr_tensor(op, "tensor", &t, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(t), 4, 0);
  b = tn_operation_begin(graph, "GkAttrs", "b", 0);
  tn_operation_set_proto(b, "l", "\x0a\x05", 2);
  CHECK_STATUS(tn_operation_finish(b, &op, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "attribute 'l': byte 0: a field is longer than its message");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- lack of memory ---- */

static tn_status build_all(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_tensor *tensor = NULL;
  tn_operation *x = NULL, *sum = NULL;
  const float value = 1;
  tn_status st = tn_graph_create(&graph, &err);
  if (st == TN_OK) st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &value, sizeof value, &tensor, &err);
  if (st == TN_OK) {
    tn_operation_builder *b = tn_operation_begin(graph, "GkConst", "c", 0);
    tn_operation_set_tensor(b, "value", tensor);
    tn_operation_set_type(b, "T", TN_FLOAT);
    tn_operation_set_tensors(b, "more", &tensor, 1);
    st = tn_operation_finish(b, &x, &err);
  }
  if (st == TN_OK) {
    tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", "attrs", 0);
    set_all(b);
    st = tn_operation_finish(b, NULL, &err);
  }
  if (st == TN_OK) {
    tn_operation_builder *b = tn_operation_begin(graph, "GkAddN", "sum", 0);
    tn_operation_add_input_list(b, (tn_output[]){ { x, 0 }, { x, 0 } }, 2);
    tn_operation_add_control_input(b, x);
    st = tn_operation_finish(b, &sum, &err);
  }
  int32_t rank;
  if (st == TN_OK) st = tn_output_shape((tn_output){ sum, 0 }, NULL, 0, &rank, &err);
  /* A failure leaves the graph unchanged. */
  if (st != TN_OK && graph != NULL) {
    size_t n = tn_graph_n_operations(graph);
    CHECK(n == 0 || tn_graph_find(graph, "c") == tn_graph_operation(graph, 0));
    CHECK((tn_graph_find(graph, "sum") != NULL) == (n == 3));
  }
  tn_tensor_unref(tensor);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void build__nothing_leaks_without_memory(void)
{
  gk_register();
  tn_test_oom_sweep(build_all, NULL);
}

/* An empty list has a NULL pointer, to which nothing may be added. Found by fuzzing. */
static void build__empty_lists_are_counted(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  CHECK_OK(tn_graph_create(&graph, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "GkAddN", "none", 0);
  tn_operation_add_input_list(b, NULL, 0);
  tn_operation *op = NULL;
  CHECK_STATUS(tn_operation_finish(b, &op, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_NULL(op);
  CHECK_INT(tn_graph_n_operations(graph), 0);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- equal attributes ---- */

/* The lists end at the end of the builder's memory, as far as the test can tell. */
static tn_operation *with_ints(tn_graph *graph, const char *name, const int64_t *ints, size_t n)
{
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(graph, "GkAttrs", name, 0);
  tn_operation_set_ints(b, "l", ints, n);
  return tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL;
}

static tn_operation *with_branches(tn_graph *graph, const char *name, tn_output number, const char *last)
{
  tn_operation *op = NULL;
  const char *branches[3] = { "first", "second", last };
  tn_operation_builder *b = tn_operation_begin(graph, "Case", name, 0);
  tn_operation_add_input(b, number);
  tn_operation_add_input_list(b, NULL, 0);
  tn_operation_set_types(b, "Tin", NULL, 0);
  tn_operation_set_types(b, "Tout", NULL, 0);
  tn_operation_set_funcs(b, "branches", branches, 3);
  return tn_operation_finish(b, &op, NULL) == TN_OK ? op : NULL;
}

static void attrs__equal_lists_are_recognised(void)
{
  tn_graph *graph = gk_new_graph();
  tn_output number = gk_in_of(graph, "number", TN_INT32, NULL, 0);
  static const int64_t ints[] = { 1, 2, 3 }, others[] = { 1, 2, 4 };
  tn_operation *a = with_ints(graph, "a", ints, 3), *b = with_ints(graph, "b", ints, 3);
  tn_operation *c = with_ints(graph, "c", others, 3), *d = with_ints(graph, "d", ints, 2);
  REQUIRE_PTR(a), REQUIRE_PTR(b), REQUIRE_PTR(c), REQUIRE_PTR(d);
  CHECK(tn__operation_same_attrs(a, b));
  CHECK(!tn__operation_same_attrs(a, c));
  CHECK(!tn__operation_same_attrs(a, d));
  tn_operation *x = with_branches(graph, "x", number, "third"), *y = with_branches(graph, "y", number, "third");
  tn_operation *z = with_branches(graph, "z", number, "other");
  REQUIRE_PTR(x), REQUIRE_PTR(y), REQUIRE_PTR(z);
  CHECK(tn__operation_same_attrs(x, y));
  CHECK(!tn__operation_same_attrs(x, z));
  tn_graph_unref(graph);
}

static void shapes__without_dimensions_are_rejected(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  tn_output x = gk_float_in(graph, "x");
  CHECK_STATUS(tn_graph_set_shape(x, NULL, 2, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "'x:0': rank 2, but no dimensions given");
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

TAP_MAIN(TAP_TEST(attrs__equal_lists_are_recognised), TAP_TEST(shapes__without_dimensions_are_rejected),
         TAP_TEST(graph__starts_empty), TAP_TEST(build__empty_lists_are_counted),
         TAP_TEST(build__operation_can_be_read_back),
         TAP_TEST(build__inputs_decide_attributes), TAP_TEST(build__references_feed_values),
         TAP_TEST(build__many_outputs_cost_nothing), TAP_TEST(build__mistakes_are_reported_by_finish),
         TAP_TEST(build__first_mistake_wins), TAP_TEST(build__keeps_an_unknown_op_on_request),
         TAP_TEST(attrs__every_kind_can_be_read_back), TAP_TEST(attrs__defaults_come_from_the_schema),
         TAP_TEST(attrs__wrong_requests_are_errors), TAP_TEST(attrs__tensors_are_shared),
         TAP_TEST(attrs__serialized_values_are_parsed), TAP_TEST(build__nothing_leaks_without_memory))
