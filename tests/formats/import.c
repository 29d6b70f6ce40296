/* SPDX-License-Identifier: Apache-2.0 */
/* GraphDef import: accepted and rejected graphs. */
#include "core/formats/graphdef/graphdef.h"
#include "conformance/support/graph_kit.h"

#include <stdlib.h>
#include <string.h>

/* ---- valid graphs ---- */

static void import__small_graph(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_add(&g, "sum", "c x"); /* before its inputs */
  gk_in(&g, "x");
  gk_const(&g, "c", 2.5f);
  gk_node(&node, "after", "GkRun", "^sum ^x");
  gk_text(&node, 4, "/device:CPU:0");
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_INT(tn_graph_n_operations(graph), 4);
  tn_operation *sum = tn_graph_find(graph, "sum"), *c = tn_graph_find(graph, "c"),
               *after = tn_graph_find(graph, "after");
  CHECK(tn_graph_operation(graph, 0) == sum);
  CHECK(tn_operation_input(sum, 0).op == c);
  CHECK_INT(tn_operation_n_control_inputs(after), 2);
  CHECK(tn_operation_control_input(after, 0) == sum);
  CHECK_STR(tn_operation_device(after), "/device:CPU:0");
  CHECK_STR(tn_operation_type(c), "GkConst");
  CHECK_INT(tn_operation_output_dtype(sum, 0), TN_FLOAT);
  tn_tensor *value;
  CHECK_OK(tn__operation_constant(c, &value, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(value), 2.5, 0);
  tn_tensor *again;
  CHECK_OK(tn_operation_attr_tensor(c, "value", &again, &err), &err);
  CHECK(again == value);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

static void import__empty_graphs_change_nothing(void) /* S-GRA-12 */
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  CHECK_OK(tn_graph_import(graph, NULL, 0, NULL, &err), &err);
  CHECK_OK(tn_graph_import(graph, "", 0, NULL, &err), &err);
  CHECK_INT(tn_graph_n_operations(graph), 0);
  CHECK_STATUS(tn_graph_import(graph, NULL, 5, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_import(NULL, "", 0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void import__adds_to_a_graph(void) /* S-GRA-10, S-GRA-11, S-GRA-13 */
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes one = { 0 }, two = { 0 }, clash = { 0 };
  gk_in(&one, "x");
  gk_add(&two, "sum", "x x");
  gk_in(&clash, "y");
  gk_in(&clash, "x");
  tn_graph *graph = gk_import(&one, &err);
  REQUIRE_PTR(graph);
  CHECK_OK(tn_graph_import(graph, two.data, two.size, NULL, &err), &err);
  CHECK_INT(tn_graph_n_operations(graph), 2);
  CHECK_STATUS(tn_graph_import(graph, clash.data, clash.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "GraphDef: node 'x': the graph has a node of this name");
  CHECK_STATUS(tn_graph_import(graph, one.data, one.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_INT(tn_graph_n_operations(graph), 2);
  CHECK_NULL(tn_graph_find(graph, "y"));
  /* later imports are not affected */
  gk_bytes three = { 0 };
  gk_add(&three, "y", "sum x");
  CHECK_OK(tn_graph_import(graph, three.data, three.size, NULL, &err), &err);
  CHECK(tn_graph_find(graph, "y") == tn_graph_operation(graph, 2));
  CHECK_STR(tn_operation_name(tn_operation_input(tn_graph_find(graph, "y"), 0).op), "sum");
  tn_graph_unref(graph);
  gk_bytes_free(&one);
  gk_bytes_free(&two);
  gk_bytes_free(&three);
  gk_bytes_free(&clash);
  tn_error_clear(&err);
}

/* Many nodes are added and removed: removing those of a failed import from the index must not
 * hide the others. */
static void import__failed_ones_leave_no_trace(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  char name[64];
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  size_t n = 0;
  for (int round = 0; round < 40; round++) {
    gk_bytes good = { 0 }, bad = { 0 };
    for (int i = 0; i < 60; i++) {
      snprintf(name, sizeof name, "r%d/n%d", round, i);
      gk_in(i % 3 == 0 ? &good : &bad, name);
      if (i % 3 == 0) n++;
    }
    gk_add(&bad, "broken", "r0/n0 absent");
    CHECK_STATUS(tn_graph_import(graph, bad.data, bad.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_OK(tn_graph_import(graph, good.data, good.size, NULL, &err), &err);
    gk_bytes_free(&good);
    gk_bytes_free(&bad);
  }
  CHECK_INT(tn_graph_n_operations(graph), n);
  for (int round = 0; round < 40; round++)
    for (int i = 0; i < 60; i++) {
      snprintf(name, sizeof name, "r%d/n%d", round, i);
      CHECK((tn_graph_find(graph, name) != NULL) == (i % 3 == 0));
    }
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void import__unknown_ops_are_kept(void) /* S-GRA-06 */
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 }, value = { 0 }, list = { 0 }, shape = { 0 };
  gk_node(&node, "m", "Mystery", "sum:0 m2:5 ^x"); /* on a cycle, which could be a loop */
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_attr_int(&node, "k", -3);
  gk_attr_text(&node, "s", "text");
  const int64_t dims[] = { 4, -1 };
  gk_shape(&shape, dims, 2);
  gk_message(&list, 7, &shape);
  gk_int(&shape, 3, 1);
  gk_message(&list, 7, &shape);
  gk_message(&value, 1, &list);
  gk_attr(&node, "_output_shapes", &value);
  gk_attr(&node, "empty", &value);
  gk_add_node(&g, &node);
  gk_node(&node, "m2", "Mystery", "m:1");
  gk_add_node(&g, &node);
  gk_in(&g, "x");
  gk_add(&g, "sum", "x m:7");
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  tn_operation *m = tn_graph_find(graph, "m");
  CHECK_NULL(tn_operation_schema(m));
  CHECK_STR(tn_operation_type(m), "Mystery");
  CHECK_INT(tn_operation_n_inputs(m), 2);
  CHECK_INT(tn_operation_input(m, 1).index, 5);
  CHECK_INT(tn_operation_n_outputs(m), 0);
  CHECK_INT(tn_operation_n_attrs(m), 5);
  int64_t k;
  tn_dtype t;
  const char *text;
  size_t n;
  const int64_t *found;
  int32_t rank;
  CHECK_OK(tn_operation_attr_int(m, "k", &k, &err), &err);
  CHECK_INT(k, -3);
  CHECK_OK(tn_operation_attr_type(m, "T", &t, &err), &err);
  CHECK_INT(t, TN_FLOAT);
  CHECK_OK(tn_operation_attr_string(m, "s", &text, &n, &err), &err);
  CHECK_STR(text, "text");
  CHECK_INT(tn_operation_attr_kind(m, "_output_shapes"), TN_ATTR_LIST + TN_ATTR_SHAPE);
  CHECK_OK(tn_operation_attr_shape_at(m, "_output_shapes", 0, &found, &rank, &n, &err), &err);
  CHECK(n == 2 && rank == 2 && found[0] == 4);
  CHECK_OK(tn_operation_attr_shape_at(m, "_output_shapes", 1, &found, &rank, &n, &err), &err);
  CHECK_INT(rank, -1);
  CHECK_INT(tn_operation_attr_kind(m, "empty"), TN_ATTR_NONE);
  CHECK_INT(tn_operation_input_dtype(m, 0), TN_FLOAT);
  CHECK_INT(tn_operation_input_dtype(m, 1), TN_DTYPE_INVALID);
  /* nodes that depend on it have shapes nevertheless */
  CHECK_OK(tn_output_shape((tn_output){ tn_graph_find(graph, "sum"), 0 }, NULL, 0, &rank, &err), &err);
  tn_graph_unref(graph);

  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_REFUSE_UNKNOWN_OPS, .file = "my.pb" };
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &options, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "my.pb: node 'm': op 'Mystery' is not registered");
  options.struct_size = 8;
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &options, &err), TN_INVALID_ARGUMENT, &err);
  options = (tn_import_options){ .struct_size = sizeof options, .flags = 64 };
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &options, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

static void import__every_kind_of_attribute(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 }, v = { 0 }, list = { 0 }, func = { 0 };
  gk_node(&node, "a", "GkAttrs", NULL);
  gk_attr_text(&node, "s", "t\"x");
  gk_attr_text(&node, "mode", "VALID");
  gk_attr_int(&node, "i", 99);
  gk_float(&v, 4, 0.25f);
  gk_attr(&node, "f", &v);
  gk_int(&v, 5, 0);
  gk_attr(&node, "b", &v);
  gk_attr_type(&node, "t", TN_VARIANT);
  const int64_t dims[] = { 300, -1, 0 };
  gk_attr_shape(&node, "shape", dims, 3);
  gk_data(&list, 3, "\x05\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13); /* packed: 5, 300, -1 */
  gk_int(&list, 3, 6);                                                           /* and one that is not packed */
  gk_message(&v, 1, &list);
  gk_attr(&node, "l", &v);
  const float floats[] = { 1, 2 };
  gk_data(&list, 4, floats, sizeof floats);
  gk_float(&list, 4, 3);
  gk_message(&v, 1, &list);
  gk_attr(&node, "lf", &v);
  gk_data(&list, 6, "\x01\x03", 2);
  gk_message(&v, 1, &list);
  gk_attr(&node, "lt", &v);
  gk_data(&v, 1, "", 0); /* an empty list does not determine its kind */
  gk_attr(&node, "ls", &v);
  gk_text(&func, 1, "body");
  gk_message(&v, 10, &func);
  gk_attr(&node, "fn", &v);
  gk_text(&v, 9, "placeholder");
  gk_attr(&node, "_open", &v);
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  tn_operation *a = tn_graph_find(graph, "a");
  float f;
  tn_bool b;
  const int64_t *ints, *found;
  const float *lf;
  const tn_dtype *types;
  const char *text;
  int32_t rank;
  size_t n;
  CHECK_OK(tn_operation_attr_float(a, "f", &f, &err), &err);
  CHECK_DOUBLE(f, 0.25, 0);
  CHECK_OK(tn_operation_attr_bool(a, "b", &b, &err), &err);
  CHECK_INT(b, 0);
  CHECK_OK(tn_operation_attr_shape(a, "shape", &found, &rank, &err), &err);
  CHECK(rank == 3 && found[0] == 300 && found[1] == -1 && found[2] == 0);
  CHECK_OK(tn_operation_attr_ints(a, "l", &ints, &n, &err), &err);
  CHECK(n == 4 && ints[0] == 5 && ints[1] == 300 && ints[2] == -1 && ints[3] == 6);
  CHECK_OK(tn_operation_attr_floats(a, "lf", &lf, &n, &err), &err);
  CHECK(n == 3 && lf[2] == 3);
  CHECK_OK(tn_operation_attr_types(a, "lt", &types, &n, &err), &err);
  CHECK(n == 2 && types[1] == TN_INT32);
  CHECK_OK(tn_operation_attr_string_at(a, "ls", 0, &text, NULL, &n, &err), &err);
  CHECK_INT(n, 0);
  CHECK_OK(tn_operation_attr_func(a, "fn", &text, &err), &err);
  CHECK_STR(text, "body");
  CHECK_INT(tn_operation_attr_kind(a, "_open"), TN_ATTR_PLACEHOLDER);
  CHECK_OK(tn_operation_attr_bools(a, "lb", (const tn_bool **)&text, &n, &err), &err); /* the default */
  CHECK_INT(n, 1);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* A while loop: the edge from NextIteration to Merge may close a cycle, no other one (S-GRA-09). */
static void import__loops(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_in(&g, "x");
  gk_node(&node, "merge", "GkMerge", "x next");
  gk_attr_int(&node, "N", 2);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&g, &node);
  gk_add(&g, "body", "merge x");
  gk_node(&node, "next", "GkNext", "body");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  int32_t rank;
  CHECK_OK(tn_output_shape((tn_output){ tn_graph_find(graph, "next"), 0 }, NULL, 0, &rank, &err), &err);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

static void import__library_and_versions_are_kept(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, versions = { 0 };
  gk_int(&versions, 1, 1994);
  gk_message(&g, 4, &versions);
  gk_in(&g, "x");
  gk_data(&g, 2, "\x0a\x00", 2);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  const tn__import_record *r = graph->imports;
  REQUIRE_PTR(r);
  CHECK_INT(r->n_rest, 2);
  CHECK(r->rest[0].size == 5 && (unsigned char)r->rest[0].data[0] == 0x22);
  CHECK(r->rest[1].size == 4 && (unsigned char)r->rest[1].data[0] == 0x12);
  /* and each node keeps its bytes, for their other contents */
  tn__slice node = tn_graph_operation(graph, 0)->proto;
  CHECK(node.size > 3 && memcmp(node.data, "\x0a\x01x", 3) == 0);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* ---- invalid graphs ---- */

static void check_refused(gk_bytes *g, const char *wanted)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_import(g, &err);
  CHECK_MSG(graph == NULL, "wanted the error '%s'", wanted);
  CHECK_STATUS(tn_error_code(&err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), wanted);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  gk_bytes_free(g);
}

static void import__rejects_wrong_edges(void)
{
  gk_bytes g = { 0 };
  gk_add(&g, "sum", "x x"); /* S-GRA-05 */
  check_refused(&g, "GraphDef: node 'sum': input 'x' names no node");
  gk_add(&g, "sum", "sum x");
  gk_in(&g, "x");
  check_refused(&g, "nodes form a cycle: 'sum' -> 'sum'");
  gk_in(&g, "x");
  gk_add(&g, "a", "x c");
  gk_add(&g, "b", "a x");
  gk_add(&g, "c", "b x");
  check_refused(&g, "nodes form a cycle: 'a' ->"); /* S-GRA-09 */
  gk_bytes node = { 0 };
  gk_node(&node, "a", "GkRun", "^b");
  gk_add_node(&g, &node);
  gk_node(&node, "b", "GkRun", "^a");
  gk_add_node(&g, &node);
  check_refused(&g, "nodes form a cycle");
  gk_in(&g, "x");
  gk_in(&g, "x"); /* S-GRA-08 */
  check_refused(&g, "node 'x': there are two nodes of this name");
  gk_in(&g, "x");
  gk_add(&g, "sum", "^x x");
  check_refused(&g, "input 'x' follows a control input");
  gk_in(&g, "x");
  gk_add(&g, "sum", "x");
  check_refused(&g, "node 'sum': op 'GkAdd' takes 2 inputs, found 1");
  gk_in(&g, "x");
  gk_add(&g, "sum", "x x x");
  check_refused(&g, "takes 2 inputs, found 3");
  gk_in(&g, "x");
  gk_add(&g, "sum", "x x:1");
  check_refused(&g, "input 1 ('y') is 'x:1', but node 'x' (GkIn) has 1 outputs");
  gk_in(&g, "x");
  gk_add(&g, "sum", "x x:");
  check_refused(&g, "malformed input 'x:'");
  gk_in(&g, "x");
  gk_node(&node, "m", "Mystery", "x:4");
  gk_add_node(&g, &node);
  check_refused(&g, "node 'm': input 0 is 'x:4'");
  gk_node(&node, "x", "GkIn", NULL);
  gk_attr_type(&node, "T", TN_INT32);
  gk_add_node(&g, &node);
  gk_add(&g, "sum", "x x");
  check_refused(&g, "input 0 ('x') is 'x:0' of type int32, wanted float32");
}

static void import__rejects_wrong_names(void)
{
  gk_bytes g = { 0 }, node = { 0 };
  gk_in(&g, "two words");
  check_refused(&g, "'two words' is not a valid node name");
  gk_in(&g, "");
  check_refused(&g, "byte 2: '' is not a valid node name");
  gk_node(&node, "x", "", NULL);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': '' is not a valid op name");
  gk_node(&node, "x", "Op\nOp", NULL);
  gk_add_node(&g, &node);
  check_refused(&g, "is not a valid op name");
  gk_node(&node, "x", "GkRun", NULL);
  gk_text(&node, 4, "/device");
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': malformed device '/device'"); /* S-CFG-06 */
  gk_node(&node, "x", "GkRun", NULL);
  gk_attr_int(&node, "", 1);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': an attribute has an invalid name");
}

static void import__rejects_wrong_attributes(void)
{
  gk_bytes g = { 0 }, node = { 0 }, v = { 0 }, list = { 0 };
  gk_node(&node, "x", "GkIn", NULL);
  gk_add_node(&g, &node);
  check_refused(&g, "GraphDef: node 'x': attribute 'T' (a type) is missing");
  gk_node(&node, "x", "GkIn", NULL);
  gk_attr_int(&node, "T", 1);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': attribute 'T' is an int, wanted a type");
  gk_node(&node, "x", "GkIn", NULL);
  gk_attr_type(&node, "T", 0);
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'T' is 0, which is not a valid type");
  gk_node(&node, "x", "GkIn", NULL);
  gk_attr_type(&node, "T", 101);
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'T' is the type float32_ref, wanted one of");
  gk_node(&node, "x", "GkAttrs", NULL);
  gk_attr_text(&node, "mode", "FULL");
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'mode' is 'FULL', wanted one of: 'SAME', 'VALID'");
  gk_node(&node, "x", "GkAttrs", NULL);
  gk_int(&list, 3, 1);
  gk_text(&list, 2, "one");
  gk_message(&v, 1, &list);
  gk_attr(&node, "l", &v);
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'l' is a list with values of several kinds");
  gk_node(&node, "x", "GkAttrs", NULL);
  gk_text(&v, 9, "T");
  gk_attr(&node, "i", &v);
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'i' is a placeholder, wanted an int");
  gk_node(&node, "x", "GkAttrs", NULL);
  gk_attr(&node, "i", &v);
  gk_add_node(&g, &node);
  check_refused(&g, "attribute 'i' is nothing, wanted an int");
  gk_node(&node, "x", "GkAttrs", NULL);
  const int64_t dims[] = { -7 };
  gk_attr_shape(&node, "shape", dims, 1);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': attribute 'shape': dimension 0 of a shape is -7");
  gk_node(&node, "x", "GkAttrs", NULL);
  int64_t many[255] = { 0 };
  gk_attr_shape(&node, "shape", many, 255);
  gk_add_node(&g, &node);
  check_refused(&g, "more than 254 dimensions");
  gk_in(&g, "y");
  gk_node(&node, "x", "GkSplit", "y");
  gk_attr_int(&node, "N", INT64_C(1) << 60);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&g, &node);
  check_refused(&g, "output 'parts' has 1152921504606846976 tensors");
}

static void import__rejects_malformed_bytes(void)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *wanted;
  } cases[] = {
    { "\x0a", 1, "byte 0: a length is cut short" },
    { "\x0a\x05\x0a", 3, "byte 0: a field is longer than its message" },
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "byte 0: a field is longer than its message" },
    { "\x0a\x03\x0a\x09x", 5, "byte 2: a field is longer than its message" },
    { "\x80", 1, "byte 0: a field's tag is cut short" },
    { "\x00\x00", 2, "byte 0: a field's number is out of range" },
    { "\x0e", 1, "byte 0: a field has an unknown wire type" },
    { "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
      "byte 0: a number is cut short or longer than ten bytes" },
    { "\x1d\x01\x02", 3, "byte 0: a number is cut short" },
    { "\x1c", 1, "byte 0: the end of a group has no start" },
    { "\x1b\x08\x01", 3, "a group has no end" },
    { "\x08\x01\x12\x00", 4, "GraphDef: this is a SavedModel (saved_model.pb), wanted a GraphDef" },
    { "\x08\x01\x12\x00\x48\x00", 6, "byte 0: a node is a number: this is not a GraphDef" },
    { "node {\n  name", 13, "GraphDef:2:7: the text ends, wanted ':'" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gk_bytes g = { 0 };
    gk_put(&g, cases[i].bytes, cases[i].size);
    check_refused(&g, cases[i].wanted);
  }
  /* in a tensor that the schema knows */
  gk_bytes g = { 0 }, node = { 0 }, tensor = { 0 };
  gk_node(&node, "c", "GkConst", NULL);
  gk_int(&tensor, 1, TN_FLOAT);
  gk_data(&tensor, 5, "\0\0\0", 3); /* three bytes of a float */
  gk_attr_tensor(&node, "value", &tensor);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&g, &node);
  check_refused(&g, "a run of numbers is cut short");
}

static void import__skips_unknown_fields(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_node(&node, "r", "GkRun", NULL);
  gk_double(&node, 70000, 1.5);
  gk_float(&node, 300, 1);
  gk_int(&node, 3, 5); /* a number where a string belongs is not an input */
  gk_put(&node, "\x33\x08\x01\x3b\x3c\x34", 6); /* groups 6 and, in it, 7 */
  gk_add_node(&g, &node);
  gk_put(&g, "\x43\x44", 2);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_INT(tn_graph_n_operations(graph), 1);
  CHECK_INT(tn_operation_n_inputs(tn_graph_operation(graph, 0)), 0);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* A hundred thousand nested messages, in a function's attributes. */
static void import__bounds_nesting(void)
{
  tn_error err = TN_ERROR_INIT;
  enum { DEPTH = 100000 };
  uint8_t *data = malloc(DEPTH * 32);
  size_t at = DEPTH * 32, size = 0;
  for (int i = 0; i < DEPTH; i++) { /* innermost first: func { attr { value { func ... */
    static const uint8_t tags[] = { 0x52, 0x12, 0x12 };
    for (int k = 0; k < 3; k++) {
      uint8_t length[10];
      size_t n = 0, rest = size;
      for (; rest >= 0x80; rest >>= 7) length[n++] = (uint8_t)(rest | 0x80);
      length[n++] = (uint8_t)rest;
      at -= n;
      memcpy(data + at, length, n);
      data[--at] = tags[(i * 3 + k + 2) % 3];
      size += n + 1;
    }
  }
  gk_bytes g = { 0 }, node = { 0 }, value = { 0 };
  gk_put(&value, data + at, size);
  /* the outermost tag must be that of a func in an AttrValue */
  while (value.size > 0 && value.data[0] != 0x52) {
    size_t skip = 1;
    while (value.data[skip] >= 0x80) skip++;
    memmove(value.data, value.data + skip + 1, value.size -= skip + 1);
  }
  gk_node(&node, "x", "Mystery", NULL);
  gk_attr(&node, "f", &value);
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  CHECK_NULL(graph);
  CHECK_CONTAINS(tn_error_message(&err), "messages are nested too deeply");
  tn_graph_unref(graph);
  tn_error_clear(&err);
  gk_bytes_free(&g);
  for (int i = 0; i < DEPTH; i++) gk_put(&g, "\x1b", 1);
  check_refused(&g, "groups are nested too deeply");
  free(data);
}

TAP_MAIN(TAP_TEST(import__small_graph), TAP_TEST(import__empty_graphs_change_nothing),
         TAP_TEST(import__adds_to_a_graph), TAP_TEST(import__failed_ones_leave_no_trace),
         TAP_TEST(import__unknown_ops_are_kept), TAP_TEST(import__every_kind_of_attribute), TAP_TEST(import__loops),
         TAP_TEST(import__library_and_versions_are_kept), TAP_TEST(import__rejects_wrong_edges),
         TAP_TEST(import__rejects_wrong_names), TAP_TEST(import__rejects_wrong_attributes),
         TAP_TEST(import__rejects_malformed_bytes), TAP_TEST(import__skips_unknown_fields),
         TAP_TEST(import__bounds_nesting))
