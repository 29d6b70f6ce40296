/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing a signature of a model: a graph in which variables are constants gives what the model gives. The models are
 * SavedModels as text; a node `init` gives their variables values. */
#define _GNU_SOURCE
#include "conformance/support/calls_kit.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <tenon/tenon.h>

#define ENDPOINT(put, key, tensor, type) \
  put " { key: '" key "' value { name: '" tensor "' dtype: " type " tensor_shape { unknown_rank: true } } } "
#define INPUT(key, tensor) ENDPOINT("inputs", key, tensor, "DT_FLOAT")
#define OUTPUT(key, tensor) ENDPOINT("outputs", key, tensor, "DT_FLOAT")
#define SIGNATURE(name, endpoints) "signature_def { key: '" name "' value { " endpoints "method_name: 'm' } }\n"
#define X_TO_Y SIGNATURE("serving_default", INPUT("x", "x:0") OUTPUT("y", "y:0"))
#define X IN("x", "DT_FLOAT")

/* Variables that `init` assigns. */
#define DTYPE "attr { key: 'dtype' value { type: DT_FLOAT } } "
#define SCALAR "attr { key: 'shape' value { shape { } } } "
#define THREE "attr { key: 'shape' value { shape { dim { size: 3 } } } } "
#define VECTOR(values)                                                                                                \
  DTYPE "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } " values " } } } "
#define REFERENCE(name, value)                                        \
  NODE(name, "VariableV2", "", DTYPE SCALAR)                          \
  NODE(name "/value", "Const", "", FLOAT_OF(value))                   \
  NODE(name "/init", "Assign", "input: '" name "' input: '" name "/value'", T("DT_FLOAT"))
#define HANDLE_OF(name, shape) \
  NODE(name, "VarHandleOp", "", DTYPE shape "attr { key: 'shared_name' value { s: '" name "' } }")
#define ASSIGN(name) NODE(name "/init", "AssignVariableOp", "input: '" name "' input: '" name "/value'", DTYPE)
#define HANDLE(name, value) HANDLE_OF(name, SCALAR) NODE(name "/value", "Const", "", FLOAT_OF(value)) ASSIGN(name)
#define ROW(name, values) HANDLE_OF(name, THREE) NODE(name "/value", "Const", "", VECTOR(values)) ASSIGN(name)
#define INIT(inputs) NODE("init", "NoOp", inputs, "")
#define R "type: DT_RESOURCE "
#define MUL(name, inputs) BODY(name, "Mul", inputs, T("DT_FLOAT"))
#define READ(name, from) BODY(name, "ReadVariableOp", "input: '" from "'", DTYPE)
#define STATEFUL "is_stateful: true "

/* y = x * v */
#define SCALE                                                                                                    \
  FUNCTION("Scale", ARG("x", "DT_FLOAT") ARG("v", "DT_RESOURCE") RESULT("y", "DT_FLOAT") STATEFUL,               \
           READ("read", "v") MUL("m", "input: 'x' input: 'read:value:0'") RET("y", "m:z:0")                      \
           "control_ret { key: 'r' value: 'read' } ")
#define SCALE_BY(name, x, v)                                                                                   \
  NODE(name, "StatefulPartitionedCall", "input: '" x "' input: '" v "'",                                       \
       FUNC("f", "Scale") TYPES("Tin", F R) TYPES("Tout", F) "attr { key: '_read_only_resource_inputs' value " \
                                                             "{ list { i: 1 } } }")

static tn_error err;

/* ---- models ---- */

/* Opens a model with this graph and these signatures; *session has run `init`, if it is not NULL. */
static tn_model *open_model(const char *nodes, const char *signatures, const char *init, tn_session **session)
{
  static unsigned number;
  char folder[300], path[400];
  tn_model *model = NULL;
  tn_session_options *options = NULL;
  tn_error_clear(&err);
  ts_register_ops();
  snprintf(folder, sizeof folder, "%s/model%u", tap_scratch_dir(), number++);
  snprintf(path, sizeof path, "%s/saved_model.pbtxt", folder);
  mkdir(folder, 0777);
  FILE *file = fopen(path, "w");
  REQUIRE(file != NULL);
  fprintf(file, "saved_model_schema_version: 1\nmeta_graphs {\n"
                "meta_info_def { tags: 'serve' tensorflow_version: '2.21.0' }\n"
                "graph_def { %s versions { producer: 1882 } }\n%s}\n", nodes, signatures);
  fclose(file);
  REQUIRE_OK(tn_model_open(folder, NULL, &model, &err), &err);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, ts_runtime(), &err), &err);
  REQUIRE_OK(tn_model_session(model, options, session, &err), &err);
  tn_session_options_destroy(options);
  if (init != NULL)
    REQUIRE_OK(tn_session_run(*session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, NULL, &err), &err);
  return model;
}

static void close_model(tn_model *model, tn_session *session)
{
  tn_session_destroy(session);
  tn_model_close(model);
  tn_error_clear(&err);
}

static tn_graph *freeze(tn_session *session, uint32_t flags)
{
  tn_graph *graph = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn_model_freeze(session, NULL, flags, &graph, &err), &err);
  REQUIRE_PTR(graph);
  return graph;
}

/* Runs a graph with x fed; NAN on failure. */
static float run(tn_graph *graph, int level, float x, const char *fetch)
{
  ts t;
  ts_init(&t, level);
  tn_graph_unref(t.graph);
  t.graph = tn_graph_ref(graph);
  ts_start(&t);
  float y = ts_run1(&t, FEEDS({ "x:0", x }), fetch);
  if (isnan(y)) tap_note("%s", tn_error_message(&t.err));
  ts_fini(&t);
  return y;
}

/* The frozen graph gives this, at both levels, and also after it was written and read. */
static void check_gives(tn_graph *graph, float x, float y)
{
  void *bytes = NULL;
  size_t size = 0;
  tn_graph *again = NULL;
  FOR_LEVELS(level) CHECK_DOUBLE(run(graph, level, x, "y:0"), y, 0);
  REQUIRE_OK(tn_graph_export(graph, 0, &bytes, &size, &err), &err);
  REQUIRE_OK(tn_graph_create(&again, &err), &err);
  REQUIRE_OK(tn_graph_import(again, bytes, size, NULL, &err), &err);
  CHECK_DOUBLE(run(again, 1, x, "y:0"), y, 0);
  tn_graph_unref(again);
  tn_free(bytes);
}

/* The model gives this, and so do both frozen graphs. The last of them, with calls, is returned. */
static tn_graph *check_frozen(tn_session *session, float x, float y)
{
  tn_tensor *in = ts_scalar(x), *out = NULL;
  const char *const keys[] = { "x", "y" };
  CHECK_OK(tn_model_call(session, NULL, keys, &in, 1, keys + 1, &out, 1, &err), &err);
  CHECK_DOUBLE(ts_float(out), y, 0);
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  tn_graph *inlined = freeze(session, TN_FREEZE_INLINE), *graph = freeze(session, 0);
  check_gives(inlined, x, y);
  check_gives(graph, x, y);
  tn_graph_unref(inlined);
  return graph;
}

/* ---- what a graph has ---- */

static const char *op_of(const tn_graph *graph, const char *name)
{
  const tn_operation *op = tn_graph_find(graph, name);
  return op == NULL ? "none" : tn_operation_type(op);
}

static size_t count_op(const tn_graph *graph, const char *type)
{
  size_t n = 0;
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++)
    n += strcmp(tn_operation_type(tn_graph_operation(graph, i)), type) == 0;
  for (size_t f = 0; f < tn_graph_n_functions(graph); f++)
    for (size_t i = 0; i < tn_function_n_nodes(tn_graph_function(graph, f)); i++)
      n += strcmp(tn_function_node_type(tn_graph_function(graph, f), i), type) == 0;
  return n;
}

/* The function that a node calls. */
static const tn_function *callee(const tn_graph *graph, const char *node, const char *attr)
{
  const char *name = NULL;
  REQUIRE_OK(tn_operation_attr_func(tn_graph_find(graph, node), attr, &name, &err), &err);
  const tn_function *f = tn_graph_find_function(graph, name);
  REQUIRE_PTR(f);
  return f;
}

static void check_refused(const char *nodes, const char *signatures, const char *init, uint32_t flags, tn_status status,
                          const char *part)
{
  tn_session *session;
  tn_graph *graph = (tn_graph *)&err;
  tn_model *model = open_model(nodes, signatures, init, &session);
  CHECK_STATUS(tn_model_freeze(session, NULL, flags, &graph, &err), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), part);
  CHECK_NULL(graph);
  close_model(model, session);
}

/* ---- variables in the graph ---- */

static void freeze__reference_variables_become_constants(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X REFERENCE("w", "3") NODE("w/read", "Identity", "input: 'w'",
                                 T("DT_FLOAT") "attr { key: '_class' value { list { s: 'loc:@w' s: 'loc:@gone' } } }")
          NODE("y", "Mul", "input: 'x' input: 'w/read'", T("DT_FLOAT"))
              NODE("train", "AssignAdd", "input: 'w' input: 'x'", T("DT_FLOAT")),
      X_TO_Y, "w/init", &session);
  tn_graph *graph = check_frozen(session, 5, 15);
  CHECK_INT(tn_graph_n_operations(graph), 4);
  CHECK_STR(op_of(graph, "w"), "Const");
  CHECK_STR(op_of(graph, "w/read"), "Identity");
  size_t n = 0, length = 0;
  const char *text = NULL;
  REQUIRE_OK(tn_operation_attr_string_at(tn_graph_find(graph, "w/read"), "_class", 0, &text, &length, &n, &err), &err);
  CHECK_INT(n, 1);
  CHECK_STR(text, "loc:@w");
  tn_graph_unref(graph);
  close_model(model, session);
}

static void freeze__references_pass_through_branches(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X REFERENCE("w", "3") NODE("zero", "Const", "", FLOAT_OF("0"))
          NODE("up", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT"))
              NODE("switch", "RefSwitch", "input: 'w' input: 'up'", T("DT_FLOAT"))
                  NODE("hi", "RefIdentity", "input: 'switch:1'", T("DT_FLOAT"))
                      NODE("two", "Const", "input: '^hi'", FLOAT_OF("2"))
                          NODE("more", "Mul", "input: 'hi' input: 'two'", T("DT_FLOAT"))
                              NODE("low", "Identity", "input: 'switch'", T("DT_FLOAT"))
                                  NODE("y", "Merge", "input: 'low' input: 'more'",
                                       T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }"),
      X_TO_Y, "w/init", &session);
  tn_graph *graph = check_frozen(session, 1, 6);
  check_gives(graph, -1, 3);
  CHECK_STR(op_of(graph, "switch"), "Switch");
  CHECK_STR(op_of(graph, "hi"), "Identity");
  tn_graph_unref(graph);
  close_model(model, session);
}

#define INDICES NODE("at", "Const", "", INT_OF("2"))
#define PLACE NODE("place", "Const", "", "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { " \
                   "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } }")
#define TINDICES "attr { key: 'Tindices' value { type: DT_INT32 } }"

/* y = x * (row[2] + row[1]) + size(row) */
static void freeze__resources_become_values(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X ROW("row", "float_val: 1 float_val: 10 float_val: 100") INDICES PLACE
          NODE("gather", "ResourceGather", "input: 'row' input: 'at'", DTYPE TINDICES)
          NODE("nd", "ResourceGatherNd", "input: 'row' input: 'place'", DTYPE TINDICES)
          NODE("sum", "AddV2", "input: 'gather' input: 'nd'", T("DT_FLOAT"))
          NODE("pass", "Identity", "input: 'row'", T("DT_RESOURCE"))
          NODE("shape", "VariableShape", "input: 'pass'", "")
          NODE("size", "Reshape", "input: 'shape' input: 'nothing'", T("DT_INT32")
                                  "attr { key: 'Tshape' value { type: DT_INT32 } }")
          NODE("nothing", "Const", "", "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { "
                                       "tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } } } }")
          NODE("float", "Cast", "input: 'size'", "attr { key: 'SrcT' value { type: DT_INT32 } } "
                                                 "attr { key: 'DstT' value { type: DT_FLOAT } }")
          NODE("is", "VarIsInitializedOp", "input: 'other'", "") HANDLE("other", "9")
          NODE("zero", "Const", "", FLOAT_OF("0"))
          NODE("chosen", "SelectV2", "input: 'is' input: 'sum' input: 'zero'", T("DT_FLOAT"))
          NODE("product", "Mul", "input: 'x' input: 'chosen'", T("DT_FLOAT"))
          NODE("y", "AddV2", "input: 'product' input: 'float'", T("DT_FLOAT"))
          INIT("input: '^row/init' input: '^other/init'"),
      X_TO_Y, "init", &session);
  tn_graph *graph = check_frozen(session, 2, 223);
  CHECK_STR(op_of(graph, "gather"), "GatherV2");
  CHECK_STR(op_of(graph, "nd"), "GatherNd");
  CHECK_STR(op_of(graph, "shape"), "Shape");
  CHECK_STR(op_of(graph, "is"), "Const");
  CHECK_STR(op_of(graph, "other"), "none"); /* its value is not needed */
  CHECK_INT(tn_operation_output_dtype(tn_graph_find(graph, "pass"), 0), TN_FLOAT);
  tn_graph_unref(graph);
  close_model(model, session);
}

#define FRAME(more) "attr { key: 'frame_name' value { s: 'loop' } } " more
#define CONSTANT "attr { key: 'is_constant' value { b: true } }"

/* A loop that is made of nodes: y = x, three times multiplied by row[2]. */
static void freeze__loops_of_nodes_keep_their_frames(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X ROW("row", "float_val: 1 float_val: 2 float_val: 3") NODE("i0", "Const", "", INT_OF("0"))
          NODE("i", "Enter", "input: 'i0'", T("DT_INT32") FRAME(""))
          NODE("v", "Enter", "input: 'x'", T("DT_FLOAT") FRAME(""))
          NODE("r", "Enter", "input: 'row'", T("DT_RESOURCE") FRAME(CONSTANT))
          NODE("mi", "Merge", "input: 'i' input: 'ni'", T("DT_INT32") "attr { key: 'N' value { i: 2 } }")
          NODE("mv", "Merge", "input: 'v' input: 'nv'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
          NODE("n", "Const", "input: '^mi'", INT_OF("3"))
          NODE("less", "Less", "input: 'mi' input: 'n'", T("DT_INT32")) NODE("go", "LoopCond", "input: 'less'", "")
          NODE("si", "Switch", "input: 'mi' input: 'go'", T("DT_INT32"))
          NODE("sv", "Switch", "input: 'mv' input: 'go'", T("DT_FLOAT"))
          NODE("bi", "Identity", "input: 'si:1'", T("DT_INT32"))
          NODE("bv", "Identity", "input: 'sv:1'", T("DT_FLOAT"))
          NODE("one", "Const", "input: '^bi'", INT_OF("1")) NODE("at", "Const", "input: '^bi'", INT_OF("2"))
          NODE("next", "AddV2", "input: 'bi' input: 'one'", T("DT_INT32"))
          NODE("g", "ResourceGather", "input: 'r' input: 'at'", DTYPE TINDICES)
          NODE("times", "Mul", "input: 'bv' input: 'g'", T("DT_FLOAT"))
          NODE("ni", "NextIteration", "input: 'next'", T("DT_INT32"))
          NODE("nv", "NextIteration", "input: 'times'", T("DT_FLOAT"))
          NODE("y", "Exit", "input: 'sv'", T("DT_FLOAT")),
      X_TO_Y, "row/init", &session);
  tn_graph *graph = check_frozen(session, 1, 27);
  CHECK_INT(tn_operation_n_control_inputs(tn_graph_find(graph, "g/axis")), 1);
  CHECK_INT(tn_operation_output_dtype(tn_graph_find(graph, "r"), 0), TN_FLOAT);
  tn_graph_unref(graph);
  close_model(model, session);
}

static void freeze__the_values_are_those_of_the_moment(void)
{
  tn_session *session;
  tn_model *model = open_model(X HANDLE("v", "3") NODE("read", "ReadVariableOp", "input: 'v'", DTYPE)
                                   NODE("y", "Mul", "input: 'x' input: 'read'", T("DT_FLOAT"))
                                       NODE("one", "Const", "", FLOAT_OF("1"))
                                           NODE("more", "AssignAddVariableOp", "input: 'v' input: 'one'", DTYPE),
                               X_TO_Y, "v/init", &session);
  tn_graph *graph = check_frozen(session, 2, 6);
  const char *more = "more";
  REQUIRE_OK(tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &more, 1, NULL, &err), &err);
  tn_graph *later = check_frozen(session, 2, 8);
  check_gives(graph, 2, 6);
  close_model(model, session);
  check_gives(graph, 2, 6); /* it needs neither the session nor the model */
  tn_graph_unref(graph);
  tn_graph_unref(later);
}

/* ---- functions ---- */

/* Variables of one type share a function, one of another type has its own. */
static void freeze__functions_take_values(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X HANDLE("a", "2") HANDLE("b", "5") ROW("row", "float_val: 1 float_val: 1 float_val: 1") SCALE_BY("p", "x", "a")
          SCALE_BY("q", "p", "b") SCALE_BY("r", "q", "row")
          NODE("axis", "Const", "", "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor "
                                    "{ dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 } } }")
          NODE("y", "Sum", "input: 'r' input: 'axis'", T("DT_FLOAT") "attr { key: 'Tidx' value { type: DT_INT32 } }")
          INIT("input: '^a/init' input: '^b/init' input: '^row/init'") LIBRARY(SCALE TWICE),
      X_TO_Y, "init", &session);
  tn_graph *graph = check_frozen(session, 1, 30);
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_STR(op_of(graph, "p"), "PartitionedCall"); /* it has no state any more */
  CHECK_INT(tn_operation_attr_kind(tn_graph_find(graph, "p"), "_read_only_resource_inputs"), TN_ATTR_NONE);
  CHECK(callee(graph, "p", "f") == callee(graph, "q", "f"));
  CHECK(callee(graph, "p", "f") != callee(graph, "r", "f"));
  CHECK_CONTAINS(tn_function_name(callee(graph, "p", "f")), "Scale_frozen");
  CHECK_INT(tn_function_input_dtype(callee(graph, "p", "f"), 1), TN_FLOAT);
  CHECK_STR(tn_function_node_input(callee(graph, "p", "f"), 1, 1), "read:output:0");
  tn_graph_unref(graph);
  tn_graph *inlined = freeze(session, TN_FREEZE_INLINE);
  CHECK_INT(tn_graph_n_functions(inlined), 0);
  CHECK_STR(op_of(inlined, "p/read"), "Identity");
  CHECK_STR(op_of(inlined, "r/m"), "Mul");
  CHECK_STR(op_of(inlined, "p"), "none"); /* nothing needs it */
  tn_graph_unref(inlined);
  close_model(model, session);
}

/* y = Scale(x, v) * row[2], in a function that calls another one by its name and has attributes of all kinds. */
#define OUTER                                                                                                       \
  FUNCTION("Outer", ARG("x", "DT_FLOAT") ARG("v", "DT_RESOURCE") ARG("row", "DT_RESOURCE") RESULT("y", "DT_FLOAT"), \
           BODY("at", "Const", "", INT_OF("2"))                                                                     \
           BODY("g", "ResourceGather", "input: 'row' input: 'at:output:0'", DTYPE TINDICES)                         \
           BODY("inner", "Scale", "input: 'x' input: 'v'", "")                                                      \
           BODY("is", "VarIsInitializedOp", "input: 'v'", "")                                                       \
           BODY("sel", "SelectV2", "input: 'is:is_initialized:0' input: 'inner:y:0' input: 'x'", T("DT_FLOAT"))     \
           MUL("m", "input: 'sel:output:0' input: 'g:output:0'") RET("y", "m:z:0")                                  \
           "attr { key: '_input_shapes' value { list { shape { } shape { } shape { } } } } "                        \
           "arg_attr { key: 1 value { attr { key: '_output_shapes' value { list { shape { } } } } "                 \
           "attr { key: '_user_specified_name' value { s: 'v' } } } } "                                             \
           "resource_arg_unique_id { key: 1 value: 0 } resource_arg_unique_id { key: 2 value: 1 } ")

static void freeze__calls_within_functions(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X HANDLE("v", "3") ROW("row", "float_val: 0 float_val: 0 float_val: 7")
          NODE("y", "StatefulPartitionedCall", "input: 'x' input: 'v' input: 'row'",
               FUNC("f", "Outer") TYPES("Tin", F R R) TYPES("Tout", F))
          INIT("input: '^v/init' input: '^row/init'") LIBRARY(SCALE OUTER),
      X_TO_Y, "init", &session);
  tn_graph *graph = check_frozen(session, 2, 42);
  const tn_function *f = callee(graph, "y", "f");
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_INT(count_op(graph, "GatherV2"), 1);
  const tn_operation *about = NULL;
  int64_t resource = 0;
  REQUIRE_OK(tn_function_input(f, 1, &about, &resource, &err), &err);
  CHECK_INT(resource, -1);
  CHECK_INT(tn_operation_n_attrs(about), 1);
  REQUIRE_OK(tn_function_self(f, &about, &err), &err);
  const int64_t *dims = NULL;
  int32_t rank = 0;
  REQUIRE_OK(tn_operation_attr_shape_at(about, "_input_shapes", 2, &dims, &rank, NULL, &err), &err);
  CHECK_INT(rank, 1);
  tn_graph_unref(graph);
  tn_graph *inlined = freeze(session, TN_FREEZE_INLINE);
  CHECK_STR(op_of(inlined, "y"), "Identity");
  CHECK_STR(op_of(inlined, "y/inner/m"), "Mul");
  tn_graph_unref(inlined);
  close_model(model, session);
}

/* i < n; the body multiplies t by a variable, which it hands on. */
#define LOOP_ARGS ARG("i", "DT_INT32") ARG("n", "DT_INT32") ARG("t", "DT_FLOAT") ARG("v", "DT_RESOURCE")
#define LOOP_RESULTS                                                                                         \
  RESULT("ri", "DT_INT32") RESULT("rn", "DT_INT32") RESULT("rt", "DT_FLOAT") RESULT("rv", "DT_RESOURCE")
#define LOOP_FUNCTIONS                                                                                               \
  FUNCTION("Go", LOOP_ARGS RESULT("go", "DT_BOOL"),                                                                  \
           BODY("l", "Less", "input: 'i' input: 'n'", T("DT_INT32")) RET("go", "l:z:0"))                             \
  FUNCTION("Turn", LOOP_ARGS LOOP_RESULTS,                                                                           \
           NEXT READ("read", "v") MUL("m", "input: 't' input: 'read:value:0'")                                       \
           BODY("pass", "Identity", "input: 'v'", T("DT_RESOURCE"))                                                  \
           RET("ri", "next:z:0") RET("rn", "n") RET("rt", "m:z:0") RET("rv", "pass:output:0"))

static void freeze__loops_carry_values(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X HANDLE("v", "3") NODE("zero", "Const", "", INT_OF("0")) NODE("n", "Const", "", INT_OF("4"))
          NODE("loop", "While", "input: 'zero' input: 'n' input: 'x' input: 'v'",
               TYPES("T", I I F R) FUNC("cond", "Go") FUNC("body", "Turn")
               "attr { key: 'output_shapes' value { list { shape { } shape { } shape { } shape { } } } }")
          NODE("read", "ReadVariableOp", "input: 'loop:3'", DTYPE)
          NODE("y", "Mul", "input: 'loop:2' input: 'read'", T("DT_FLOAT")) LIBRARY(LOOP_FUNCTIONS),
      X_TO_Y, "v/init", &session);
  tn_graph *graph = check_frozen(session, 1, 243);
  CHECK_STR(op_of(graph, "loop"), "StatelessWhile");
  CHECK_INT(tn_function_output_dtype(callee(graph, "loop", "body"), 3), TN_FLOAT);
  CHECK_INT(tn_function_input_dtype(callee(graph, "loop", "cond"), 3), TN_FLOAT);
  tn_graph_unref(graph);
  close_model(model, session);
}

#define BRANCH_ARGS ARG("x", "DT_FLOAT") ARG("v", "DT_RESOURCE")
#define BRANCHES                                                                                                    \
  FUNCTION("Other", BRANCH_ARGS RESULT("y", "DT_FLOAT"),                                                            \
           READ("read", "v") BODY("a", "AddV2", "input: 'x' input: 'read:value:0'", T("DT_FLOAT")) RET("y", "a:z:0"))

static void freeze__branches_take_values(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X HANDLE("v", "3") NODE("ten", "Const", "", FLOAT_OF("10"))
          NODE("small", "Less", "input: 'x' input: 'ten'", T("DT_FLOAT"))
          NODE("if", "If", "input: 'small' input: 'x' input: 'v'",
               "attr { key: 'Tcond' value { type: DT_BOOL } }" TYPES("Tin", F R) TYPES("Tout", F)
                   FUNC("then_branch", "Scale") FUNC("else_branch", "Other"))
          NODE("one", "Const", "", INT_OF("1"))
          NODE("y", "Case", "input: 'one' input: 'if' input: 'v'",
               TYPES("Tin", F R) TYPES("Tout", F) "attr { key: 'branches' value { list { func { name: 'Scale' } func { "
                                                  "name: 'Other' } } } }") LIBRARY(SCALE BRANCHES),
      X_TO_Y, "v/init", &session);
  tn_graph *graph = check_frozen(session, 2, 9);
  check_gives(graph, 20, 26);
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_STR(op_of(graph, "if"), "StatelessIf");
  CHECK_STR(op_of(graph, "y"), "StatelessCase");
  tn_graph_unref(graph);
  close_model(model, session);
}

/* Functions that return variables: one of its arguments, or one that it names. */
#define GIVERS                                                                                                  \
  FUNCTION("Second", ARG("a", "DT_RESOURCE") ARG("b", "DT_RESOURCE") RESULT("r", "DT_RESOURCE"), RET("r", "b")) \
  FUNCTION("Named", RESULT("r", "DT_RESOURCE"),                                                                 \
           BODY("h", "VarHandleOp", "", DTYPE SCALAR "attr { key: 'shared_name' value { s: 'v' } }")            \
               RET("r", "h:resource:0"))

static void freeze__functions_return_variables(void)
{
  tn_session *session;
  tn_model *model =
      open_model(X HANDLE("v", "3") HANDLE("w", "4") NODE("second", "PartitionedCall", "input: 'v' input: 'w'",
                                                          FUNC("f", "Second") TYPES("Tin", R R) TYPES("Tout", R))
                     NODE("named", "StatefulPartitionedCall", "", FUNC("f", "Named") TYPES("Tin", "") TYPES("Tout", R))
                         SCALE_BY("p", "x", "second") SCALE_BY("y", "p", "named")
                             INIT("input: '^v/init' input: '^w/init'") LIBRARY(SCALE GIVERS),
                 X_TO_Y, "init", &session);
  tn_graph *graph = check_frozen(session, 1, 12);
  CHECK_INT(count_op(graph, "VarHandleOp"), 0);
  CHECK_INT(count_op(graph, "ReadVariableOp"), 0);
  tn_graph_unref(graph);
  close_model(model, session);
}

static void freeze__other_functions_stay_as_they_are(void)
{
  tn_session *session;
  tn_model *model = open_model(X CALL("twice", "StatefulPartitionedCall", "Twice", "x")
                                   NODE("y", "Square1", "input: 'twice'", "") LIBRARY(TWICE SQUARE SCALE),
                               X_TO_Y, NULL, &session);
  tn_graph *graph = check_frozen(session, 3, 36);
  CHECK_INT(tn_graph_n_functions(graph), 2);
  CHECK_STR(tn_function_name(callee(graph, "twice", "f")), "Twice");
  tn_graph_unref(graph);
  close_model(model, session);
}

/* ---- large constants ---- */

#define LARGE 20000

/* A constant with this many ones, as a node of the graph or of a function. */
static char *large_constant(const char *head, const char *tail)
{
  char *text = malloc(LARGE * 14 + strlen(head) + strlen(tail) + 1), *at = text;
  REQUIRE_PTR(text);
  at += sprintf(at, "%s", head);
  for (int i = 0; i < LARGE; i++) at += sprintf(at, "float_val: 1 ");
  sprintf(at, "%s", tail);
  return text;
}

#define LARGE_HEAD DTYPE "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 20000 } } "
#define ZERO_AXIS                                                                                                    \
  "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape " \
  "{ dim { size: 1 } } int_val: 0 } } }"
#define SUM(node, name, of, axis) \
  node(name, "Sum", "input: '" of "' input: '" axis "'", T("DT_FLOAT") "attr { key: 'Tidx' value { type: DT_INT32 } }")

static void freeze__large_constants_are_kept(void)
{
  char *text = large_constant(
      X NODE("axis", "Const", "", ZERO_AXIS) SUM(NODE, "sum", "large", "axis")
          NODE("called", "PartitionedCall", "input: 'x'", FUNC("f", "Big") TYPES("Tin", F) TYPES("Tout", F))
              NODE("y", "Mul", "input: 'called' input: 'sum'", T("DT_FLOAT"))
      "node { name: 'large' op: 'Const' " LARGE_HEAD,
      "} } } } library { function { signature { name: 'Big' " ARG("x", "DT_FLOAT") RESULT("y", "DT_FLOAT") "} "
      BODY("axis", "Const", "", ZERO_AXIS) SUM(BODY, "sum", "large:output:0", "axis:output:0")
          MUL("m", "input: 'x' input: 'sum:output:0'") RET("y", "m:z:0")
      "node_def { name: 'large' op: 'Const' " LARGE_HEAD);
  char *both = large_constant(text, "} } } } } } ");
  tn_session *session;
  tn_model *model = open_model(both, X_TO_Y, NULL, &session);
  tn_graph *graph = check_frozen(session, 2, 2.f * LARGE * LARGE);
  tn_graph_unref(graph);
  close_model(model, session);
  free(text);
  free(both);
}

/* ---- inlined calls ---- */

#define NOTED                                                                                                  \
  FUNCTION("Noted", ARG("x", "DT_FLOAT") RESULT("y", "DT_FLOAT") STATEFUL,                                     \
           BODY("note", "TestEffect", "", "attr { key: 'slot' value { i: 7 } }")                               \
           BODY("i", "Identity", "input: 'x'", T("DT_FLOAT")) RET("y", "i:output:0")                           \
           "control_ret { key: 'note' value: 'note' } ")
#define EARLIER NODE("first", "TestEffect", "", "attr { key: 'slot' value { i: 5 } }")

/* The effects of a call happen after what it waits for, and before what waits for it. */
static void freeze__inlined_calls_keep_their_order(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X EARLIER NODE("call", "StatefulPartitionedCall", "input: 'x' input: '^first'",
                     FUNC("f", "Noted") TYPES("Tin", F) TYPES("Tout", F))
          NODE("after", "TestEffect", "input: '^call'", "attr { key: 'slot' value { i: 9 } }")
          NODE("y", "Identity", "input: 'x' input: '^after'", T("DT_FLOAT")) LIBRARY(NOTED),
      X_TO_Y, NULL, &session);
  tn_graph *graph = freeze(session, TN_FREEZE_INLINE);
  CHECK_INT(tn_graph_n_functions(graph), 0);
  CHECK_STR(op_of(graph, "call/note"), "TestEffect");
  FOR_LEVELS(level)
  {
    ts_watch_reset();
    CHECK_DOUBLE(run(graph, level, 4, "y:0"), 4, 0);
    REQUIRE_INT(ts_watched.n_log, 3);
    CHECK_INT(ts_watched.log[0], 5);
    CHECK_INT(ts_watched.log[1], 7);
    CHECK_INT(ts_watched.log[2], 9);
  }
  tn_graph_unref(graph);
  close_model(model, session);
}

/* In a branch that is not taken an inlined call does nothing. */
static void freeze__inlined_calls_stay_in_their_branch(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X NODE("zero", "Const", "", FLOAT_OF("0")) NODE("up", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT"))
          NODE("s", "Switch", "input: 'x' input: 'up'", T("DT_FLOAT"))
          NODE("call", "StatefulPartitionedCall", "input: 's:1'", FUNC("f", "Noted") TYPES("Tin", F) TYPES("Tout", F))
          NODE("low", "Neg", "input: 's'", T("DT_FLOAT"))
          NODE("y", "Merge", "input: 'low' input: 'call'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
          LIBRARY(NOTED),
      X_TO_Y, NULL, &session);
  tn_graph *graph = freeze(session, TN_FREEZE_INLINE);
  FOR_LEVELS(level)
  {
    ts_watch_reset();
    CHECK_DOUBLE(run(graph, level, -4, "y:0"), 4, 0);
    CHECK_INT(ts_watched.n_log, 0);
    CHECK_DOUBLE(run(graph, level, 4, "y:0"), 4, 0);
    CHECK_INT(ts_watched.n_log, 1);
  }
  tn_graph_unref(graph);
  close_model(model, session);
}

#define ITSELF UNARY("Itself", BODY("again", "Itself", "input: 'x'", "") RET("y", "again:y:0"))

static void freeze__a_function_that_calls_itself_is_not_inlined(void)
{
  static const char graph[] = X NODE("y", "Itself", "input: 'x'", "") LIBRARY(ITSELF);
  check_refused(graph, X_TO_Y, NULL, TN_FREEZE_INLINE, TN_UNIMPLEMENTED, "function 'Itself', which node 'y' calls");
  tn_session *session;
  tn_model *model = open_model(graph, X_TO_Y, NULL, &session);
  tn_graph *frozen = freeze(session, 0);
  CHECK_INT(tn_graph_n_functions(frozen), 1);
  tn_graph_unref(frozen);
  close_model(model, session);
}

/* ---- inputs and outputs ---- */

static void freeze__inputs_keep_their_names(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X NODE("queue", "FIFOQueueV2", "", TYPES("component_types", F))
          NODE("examples", "QueueDequeueV2", "input: 'queue'", TYPES("component_types", F))
          NODE("y", "Mul", "input: 'x' input: 'examples'", T("DT_FLOAT")) IN("unused", "DT_FLOAT"),
      SIGNATURE("serving_default",
                INPUT("a", "examples:0") INPUT("u", "unused:0") INPUT("x", "x:0") OUTPUT("y", "y:0")),
      NULL, &session);
  tn_graph *graph = freeze(session, 0);
  CHECK_STR(op_of(graph, "examples"), "Placeholder");
  CHECK_STR(op_of(graph, "unused"), "Placeholder");
  CHECK_INT(tn_graph_n_operations(graph), 4);
  tn_graph_unref(graph);
  close_model(model, session);
}

static void freeze__control_edges_of_outputs_are_kept(void)
{
  tn_session *session;
  tn_model *model = open_model(X NODE("check", "TestEffect", "", "attr { key: 'slot' value { i: 3 } }")
                                   NODE("y", "Neg", "input: 'x' input: '^check'", T("DT_FLOAT"))
                                       NODE("mystery", "NoSuchOp", "input: 'x'", ""),
                               X_TO_Y SIGNATURE("more", OUTPUT("m", "mystery:0")), NULL, &session);
  tn_graph *graph = check_frozen(session, 3, -3);
  CHECK_STR(op_of(graph, "check"), "TestEffect");
  CHECK_STR(op_of(graph, "mystery"), "none");
  tn_graph_unref(graph);
  close_model(model, session);
}

/* ---- what cannot be frozen ---- */

#define ADD_ONE                                                                                              \
  FUNCTION("AddOne", ARG("x", "DT_FLOAT") ARG("v", "DT_RESOURCE") RESULT("y", "DT_FLOAT") STATEFUL,          \
           BODY("up", "AssignAddVariableOp", "input: 'v' input: 'x'", DTYPE) READ("read", "v")               \
           RET("y", "read:value:0"))
#define EITHER(name, from) \
  FUNCTION(name, ARG("a", "DT_RESOURCE") ARG("b", "DT_RESOURCE") RESULT("r", "DT_RESOURCE"), RET("r", from))

static void freeze__writers_of_variables_are_refused(void)
{
  static const char in_function[] =
      X HANDLE("v", "1") NODE("y", "StatefulPartitionedCall", "input: 'x' input: 'v'",
                              FUNC("f", "AddOne") TYPES("Tin", F R) TYPES("Tout", F)) LIBRARY(ADD_ONE);
  check_refused(in_function, X_TO_Y, "v/init", 0, TN_UNIMPLEMENTED,
                "function 'AddOne': node 'up' (AssignAddVariableOp) needs variable 'v' itself");
  check_refused(in_function, X_TO_Y, "v/init", TN_FREEZE_INLINE, TN_UNIMPLEMENTED,
                "node 'y/up' (AssignAddVariableOp) needs variable 'v' itself");
  check_refused(X REFERENCE("w", "1") NODE("y", "AssignAdd", "input: 'w' input: 'x'", T("DT_FLOAT")), X_TO_Y, "w/init",
                0, TN_UNIMPLEMENTED, "node 'y' (AssignAdd) needs variable 'w' itself");
}

static void freeze__tables_and_queues_are_refused(void)
{
  check_refused(
      X NODE("queue", "FIFOQueueV2", "", TYPES("component_types", F) "attr { key: 'shared_name' value { s: 'q' } }")
          NODE("y", "QueueDequeueV2", "input: 'queue'", TYPES("component_types", F)),
      X_TO_Y, NULL, 0, TN_UNIMPLEMENTED, "node 'queue' (FIFOQueueV2) makes a queue, 'q', which");
  check_refused(
      X NODE("words", "HashTableV2", "",
             "attr { key: 'key_dtype' value { type: DT_INT64 } } "
             "attr { key: 'value_dtype' value { type: DT_FLOAT } }")
          NODE("key", "Cast", "input: 'x'",
               "attr { key: 'SrcT' value { type: DT_FLOAT } } "
               "attr { key: 'DstT' value { type: DT_INT64 } }") NODE("none", "Const", "", FLOAT_OF("0"))
              NODE("y", "LookupTableFindV2", "input: 'words' input: 'key' input: 'none'",
                   "attr { key: 'Tin' value { type: DT_INT64 } } attr { key: 'Tout' value { type: DT_FLOAT } }"),
      X_TO_Y, NULL, 0, TN_UNIMPLEMENTED, "node 'words' (HashTableV2) makes a table, 'words'");
}

static void freeze__a_choice_between_variables_must_be_of_one_type(void)
{
  check_refused(X HANDLE("v", "1") ROW("row", "float_val: 1 float_val: 1 float_val: 1") NODE(
                    "zero", "Const", "", FLOAT_OF("0")) NODE("up", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT"))
                    NODE("if", "If", "input: 'up' input: 'v' input: 'row'",
                         "attr { key: 'Tcond' value { type: DT_BOOL } }" TYPES("Tin", R R) TYPES("Tout", R)
                             FUNC("then_branch", "A") FUNC("else_branch", "B"))
                        NODE("y", "ReadVariableOp", "input: 'if'", DTYPE) INIT("input: '^v/init' input: '^row/init'")
                            LIBRARY(EITHER("A", "a") EITHER("B", "b")),
                X_TO_Y, "init", 0, TN_UNIMPLEMENTED, "node 'if' (If) chooses between variables of different types");
}

static void freeze__variables_without_a_value_are_named(void)
{
  check_refused(X HANDLE("v", "1") NODE("read", "ReadVariableOp", "input: 'v'", DTYPE)
                    NODE("y", "Mul", "input: 'x' input: 'read'", T("DT_FLOAT")),
                X_TO_Y, NULL, 0, TN_FAILED_PRECONDITION, "node 'v' (VarHandleOp) is variable 'v', which has no value");
}

static void freeze__an_output_that_is_a_variable_is_refused(void)
{
  check_refused(X HANDLE("v", "1"), SIGNATURE("s", ENDPOINT("outputs", "v", "v:0", "DT_RESOURCE")), "v/init", 0,
                TN_UNIMPLEMENTED, "output 'v' of signature 's' is variable 'v' itself");
}

/* Opens a GraphDef as a model, which has no signatures. */
static tn_model *open_frozen(tn_session **session)
{
  char path[400];
  tn_model *model = open_model(X NODE("y", "Neg", "input: 'x'", T("DT_FLOAT")), X_TO_Y, NULL, session);
  tn_graph *graph = freeze(*session, 0);
  snprintf(path, sizeof path, "%s/frozen.pb", tap_scratch_dir());
  REQUIRE_OK(tn_graph_export_file(graph, path, 0, &err), &err);
  tn_graph_unref(graph);
  close_model(model, *session);
  REQUIRE_OK(tn_model_open(path, NULL, &model, &err), &err);
  REQUIRE_OK(tn_model_session(model, NULL, session, &err), &err);
  return model;
}

static void freeze__wrong_calls_are_refused(void)
{
  ts t;
  tn_graph *graph = NULL;
  tn_session *session;
  tn_model *model = open_model(X NODE("y", "Neg", "input: 'x'", T("DT_FLOAT")), X_TO_Y, NULL, &session);
  CHECK_STATUS(tn_model_freeze(session, "sing", 0, &graph, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'serving_default'");
  CHECK_STATUS(tn_model_freeze(session, NULL, 64, &graph, NULL), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_model_freeze(NULL, NULL, 0, &graph, NULL), TN_INVALID_ARGUMENT, NULL);
  CHECK_STATUS(tn_model_freeze(session, NULL, 0, NULL, NULL), TN_INVALID_ARGUMENT, NULL);
  close_model(model, session);
  model = open_frozen(&session);
  CHECK_STATUS(tn_model_freeze(session, NULL, 0, &graph, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "its signatures: none");
  close_model(model, session);
  ts_open(&t, 1);
  CHECK_STATUS(tn_model_freeze(t.session, NULL, 0, &graph, &err), TN_FAILED_PRECONDITION, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "not of a model");
  CHECK_NULL(graph);
  ts_fini(&t);
  tn_error_clear(&err);
}

/* ---- real models ---- */

/* With TENON_MODELS: every signature of these models is frozen and can be compiled. */
static void freeze__real_models(void)
{
  static const char *const names[] = { "savedmodel-lstm", "savedmodel-transformer", "savedmodel-mnist-conv",
                                       "savedmodel-two-inputs", "savedmodel-half-plus-two" };
  const char *models = getenv("TENON_MODELS");
  if (models == NULL) TAP_SKIP("TENON_MODELS is not set");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[500];
    tn_model *model = NULL;
    tn_session *session = NULL;
    snprintf(path, sizeof path, "%s/%s/model", models, names[i]);
    REQUIRE_OK(tn_model_open(path, NULL, &model, &err), &err);
    REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
    for (uint32_t flags = 0; flags <= TN_FREEZE_INLINE; flags++) {
      tn_graph *graph = freeze(session, flags);
      CHECK_INT(count_op(graph, "ReadVariableOp") + count_op(graph, "VarHandleOp") + count_op(graph, "VariableV2"), 0);
      tn_graph_unref(graph);
    }
    close_model(model, session);
  }
}

/* ---- memory ---- */

static tn_status freeze_both(void *arg)
{
  tn_graph *graph = NULL;
  tn_error_clear(&err);
  tn_status st = tn_model_freeze(arg, NULL, 0, &graph, &err);
  tn_graph_unref(graph);
  if (st == TN_OK) st = tn_model_freeze(arg, NULL, TN_FREEZE_INLINE, &graph, &err);
  if (st == TN_OK) tn_graph_unref(graph);
  return st;
}

static void freeze__every_allocation_may_fail(void)
{
  tn_session *session;
  tn_model *model = open_model(
      X HANDLE("v", "3") HANDLE("u", "3") ROW("row", "float_val: 0 float_val: 0 float_val: 7") REFERENCE("w", "3")
          NODE("zero", "Const", "", INT_OF("0")) NODE("n", "Const", "", INT_OF("4"))
          NODE("loop", "While", "input: 'zero' input: 'n' input: 'x' input: 'v'",
               TYPES("T", I I F R) FUNC("cond", "Go") FUNC("body", "Turn"))
          NODE("outer", "StatefulPartitionedCall", "input: 'loop:2' input: 'u' input: 'row' input: '^w'",
               FUNC("f", "Outer") TYPES("Tin", F R R) TYPES("Tout", F))
          NODE("named", "StatefulPartitionedCall", "", FUNC("f", "Named") TYPES("Tin", "") TYPES("Tout", R))
          SCALE_BY("y", "outer", "named")
          INIT("input: '^v/init' input: '^u/init' input: '^row/init' input: '^w/init'")
          LIBRARY(SCALE OUTER LOOP_FUNCTIONS GIVERS),
      X_TO_Y, "init", &session);
  tn_test_oom_sweep(freeze_both, session);
  close_model(model, session);
}

TAP_MAIN(
  TAP_TEST(freeze__reference_variables_become_constants),
  TAP_TEST(freeze__references_pass_through_branches),
  TAP_TEST(freeze__resources_become_values),
  TAP_TEST(freeze__loops_of_nodes_keep_their_frames),
  TAP_TEST(freeze__the_values_are_those_of_the_moment),
  TAP_TEST(freeze__functions_take_values),
  TAP_TEST(freeze__calls_within_functions),
  TAP_TEST(freeze__loops_carry_values),
  TAP_TEST(freeze__branches_take_values),
  TAP_TEST(freeze__functions_return_variables),
  TAP_TEST(freeze__other_functions_stay_as_they_are),
  TAP_TEST(freeze__large_constants_are_kept),
  TAP_TEST(freeze__inlined_calls_keep_their_order),
  TAP_TEST(freeze__inlined_calls_stay_in_their_branch),
  TAP_TEST(freeze__a_function_that_calls_itself_is_not_inlined),
  TAP_TEST(freeze__inputs_keep_their_names),
  TAP_TEST(freeze__control_edges_of_outputs_are_kept),
  TAP_TEST(freeze__writers_of_variables_are_refused),
  TAP_TEST(freeze__tables_and_queues_are_refused),
  TAP_TEST(freeze__a_choice_between_variables_must_be_of_one_type),
  TAP_TEST(freeze__variables_without_a_value_are_named),
  TAP_TEST(freeze__an_output_that_is_a_variable_is_refused),
  TAP_TEST(freeze__wrong_calls_are_refused),
  TAP_TEST(freeze__real_models),
  TAP_TEST(freeze__every_allocation_may_fail))
