/* SPDX-License-Identifier: Apache-2.0 */
/* GraphDef import: what is taken, what is refused, and how much bad bytes can do. */
#include "core/formats/graphdef.h"
#include "tests/support/graph_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- graphs that are right ---- */

static void import__small_graph(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_add(&g, "sum", "c x"); /* before what it needs */
  gk_in(&g, "x");
  gk_const(&g, "c", 2.5f);
  gk_node(&node, "after", "GkRun", "^sum ^x");
  gk_text(&node, 4, "/device:CPU:0");
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_INT(tn_graph_n_operations(graph), 4);
  tn_operation *sum = tn_graph_find(graph, "sum"), *c = tn_graph_find(graph, "c"), *after = tn_graph_find(graph, "after");
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
  /* and it goes on as if nothing had been */
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

/* Many nodes come and go: what a failed import took out of the index must not hide what was there. */
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
    gk_add(&bad, "broken", "r0/n0 nobody");
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
  gk_node(&node, "m", "Mystery", "sum:0 m2:5 ^x"); /* part of a cycle: it could be a loop */
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
  /* what it depends on has a shape all the same */
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
  gk_int(&list, 3, 6);                                                           /* and one that is not */
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
  gk_data(&v, 1, "", 0); /* an empty list says nothing of its kind */
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
  /* and of each node its bytes, for what else they say */
  tn__slice node = tn_graph_operation(graph, 0)->proto;
  CHECK(node.size > 3 && memcmp(node.data, "\x0a\x01x", 3) == 0);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* ---- graphs that are wrong ---- */

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

static void import__refuses_wrong_edges(void)
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
  check_refused(&g, "input 'x' stands after a control input");
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

static void import__refuses_wrong_names(void)
{
  gk_bytes g = { 0 }, node = { 0 };
  gk_in(&g, "two words");
  check_refused(&g, "'two words' is no valid name of a node");
  gk_in(&g, "");
  check_refused(&g, "byte 2: '' is no valid name");
  gk_node(&node, "x", "", NULL);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': '' is no name of an op");
  gk_node(&node, "x", "Op\nOp", NULL);
  gk_add_node(&g, &node);
  check_refused(&g, "is no name of an op");
  gk_node(&node, "x", "GkRun", NULL);
  gk_text(&node, 4, "/device");
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': malformed device '/device'"); /* S-CFG-06 */
  gk_node(&node, "x", "GkRun", NULL);
  gk_attr_int(&node, "", 1);
  gk_add_node(&g, &node);
  check_refused(&g, "node 'x': an attribute has no valid name");
}

static void import__refuses_wrong_attributes(void)
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
  check_refused(&g, "attribute 'T' is the number 0, which is no type");
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

static void import__refuses_malformed_bytes(void)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *wanted;
  } cases[] = {
    { "\x0a", 1, "byte 0: a length is cut short" },
    { "\x0a\x05\x0a", 3, "byte 0: a field is longer than what holds it" },
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "byte 0: a field is longer than what holds it" },
    { "\x0a\x03\x0a\x09x", 5, "byte 2: a field is longer than what holds it" },
    { "\x80", 1, "byte 0: a field's tag is cut short" },
    { "\x00\x00", 2, "byte 0: a field's number is out of range" },
    { "\x0e", 1, "byte 0: a field has an unknown wire type" },
    { "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "byte 0: a number is cut short or longer than ten bytes" },
    { "\x1d\x01\x02", 3, "byte 0: a number is cut short" },
    { "\x1c", 1, "byte 0: a group ends that was not begun" },
    { "\x1b\x08\x01", 3, "a group has no end" },
    { "\x08\x01\x12\x00", 4, "byte 0: a node is a number: this is no GraphDef; a SavedModel" },
    { "node {\n  name", 13, "(it looks like a GraphDef in text form, which is not read)" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gk_bytes g = { 0 };
    gk_put(&g, cases[i].bytes, cases[i].size);
    check_refused(&g, cases[i].wanted);
  }
  /* within a tensor that the schema knows */
  gk_bytes g = { 0 }, node = { 0 }, tensor = { 0 };
  gk_node(&node, "c", "GkConst", NULL);
  gk_int(&tensor, 1, TN_FLOAT);
  gk_data(&tensor, 5, "\0\0\0", 3); /* a float and a quarter less */
  gk_attr_tensor(&node, "value", &tensor);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&g, &node);
  check_refused(&g, "a run of numbers is cut short");
}

static void import__passes_over_what_it_does_not_know(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_node(&node, "r", "GkRun", NULL);
  gk_double(&node, 70000, 1.5);
  gk_float(&node, 300, 1);
  gk_int(&node, 3, 5); /* an input that is a number is no input */
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

/* A message within a message within ..., a hundred thousand times, as a function's attributes. */
static void import__bounds_nesting(void)
{
  tn_error err = TN_ERROR_INIT;
  enum { DEPTH = 100000 };
  uint8_t *data = malloc(DEPTH * 32);
  size_t at = DEPTH * 32, size = 0;
  for (int i = 0; i < DEPTH; i++) { /* from the inside out: func { attr { value { func ... */
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

/* ---- tensors ---- */

static tn_tensor *constant(gk_bytes *proto, tn_graph **graph, tn_error *err)
{
  gk_bytes g = { 0 }, node = { 0 };
  gk_node(&node, "c", "Mystery", NULL); /* the type is the tensor's own */
  gk_attr_tensor(&node, "value", proto);
  gk_add_node(&g, &node);
  *graph = gk_import(&g, err);
  gk_bytes_free(&g);
  tn_tensor *tensor = NULL;
  if (*graph != NULL) tn_operation_attr_tensor(tn_graph_operation(*graph, 0), "value", &tensor, err);
  return tensor;
}

/* Values in the field of their type: packed and one by one, fewer than elements, more than elements. */
static void tensor__numbers_of_every_type(void)
{
  static const struct {
    int dtype, field, wire; /* 0 varint, 4 fixed32, 8 fixed64 */
  } types[] = {
    { TN_FLOAT, 5, 4 },  { TN_DOUBLE, 6, 8 },    { TN_INT32, 7, 0 },   { TN_UINT8, 7, 0 },   { TN_INT16, 7, 0 },
    { TN_INT8, 7, 0 },   { TN_COMPLEX64, 9, 4 }, { TN_INT64, 10, 0 },  { TN_BOOL, 11, 0 },   { TN_QINT8, 7, 0 },
    { TN_QUINT8, 7, 0 }, { TN_QINT32, 7, 0 },    { TN_BFLOAT16, 13, 0 }, { TN_QINT16, 7, 0 }, { TN_QUINT16, 7, 0 },
    { TN_UINT16, 7, 0 }, { TN_COMPLEX128, 12, 8 }, { TN_HALF, 13, 0 }, { TN_UINT32, 16, 0 }, { TN_UINT64, 17, 0 },
    { TN_INT4, 7, 0 },   { TN_UINT4, 7, 0 },     { TN_INT2, 7, 0 },    { TN_UINT2, 7, 0 },
  };
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    for (int packed = 0; packed <= 1; packed++) {
      for (int n = 0; n <= 5; n++) { /* values for 3 elements */
        tn_error err = TN_ERROR_INIT;
        gk_bytes proto = { 0 }, run = { 0 };
        const int64_t dims[] = { 3 };
        int parts = types[k].dtype == TN_COMPLEX64 || types[k].dtype == TN_COMPLEX128 ? 2 : 1;
        gk_tensor(&proto, types[k].dtype, dims, 1, NULL, 0);
        for (int i = 0; i < n * parts; i++) {
          float f = (float)(i + 1);
          double d = i + 1;
          if (types[k].wire == 0 && packed) gk_varint(&run, (uint64_t)(i + 1));
          if (types[k].wire == 0 && !packed) gk_int(&proto, (unsigned)types[k].field, i + 1);
          if (types[k].wire == 4 && packed) gk_put(&run, &f, 4);
          if (types[k].wire == 4 && !packed) gk_float(&proto, (unsigned)types[k].field, f);
          if (types[k].wire == 8 && packed) gk_put(&run, &d, 8);
          if (types[k].wire == 8 && !packed) gk_double(&proto, (unsigned)types[k].field, d);
        }
        if (packed && n > 0) gk_message(&proto, (unsigned)types[k].field, &run);
        tn_graph *graph;
        tn_tensor *t = constant(&proto, &graph, &err);
        REQUIRE_MSG(t != NULL, "type %d: %s", types[k].dtype, tn_error_message(&err));
        CHECK_INT(tn_tensor_dtype(t), types[k].dtype);
        size_t size = tn_dtype_size(types[k].dtype) / (size_t)parts;
        const char *data = tn_tensor_data(t);
        for (int i = 0; i < 3 * parts; i++) {
          int element = i / parts, from = element < n ? element : n - 1; /* the last one is repeated */
          double wanted = n == 0 ? 0 : from * parts + i % parts + 1, found = 0;
          if (types[k].dtype == TN_BOOL && wanted != 0) wanted = 1;
          uint64_t bits = 0;
          memcpy(&bits, data + (size_t)i * size, size);
          if (types[k].wire == 4) found = ((const float *)data)[i];
          if (types[k].wire == 8) found = ((const double *)data)[i];
          if (types[k].wire == 0) found = (double)bits;
          CHECK_MSG(found == wanted, "type %s, packed %d, %d values: element %d is %g, wanted %g",
                    tn_dtype_name(types[k].dtype), packed, n, i, found, wanted);
        }
        tn_graph_unref(graph);
      }
    }
  }
}

static void tensor__negative_and_wide_numbers(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes proto = { 0 };
  const int64_t dims[] = { 2, 1 };
  tn_graph *graph;
  gk_tensor(&proto, TN_INT8, dims, 2, NULL, 0);
  gk_int(&proto, 7, -3);
  tn_tensor *t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK_INT(tn_tensor_rank(t), 2);
  CHECK_INT(((int8_t *)tn_tensor_data(t))[1], -3);
  tn_graph_unref(graph);
  gk_tensor(&proto, TN_UINT64, dims, 2, NULL, 0);
  gk_int(&proto, 17, -1);
  gk_int(&proto, 17, 1);
  t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK(((uint64_t *)tn_tensor_data(t))[0] == UINT64_MAX && ((uint64_t *)tn_tensor_data(t))[1] == 1);
  tn_graph_unref(graph);
  gk_tensor(&proto, TN_FLOAT8_E5M2, dims, 2, NULL, 0);
  gk_data(&proto, 18, "\x3c\x40", 2);
  t = constant(&proto, &graph, &err);
  REQUIRE_PTR(t);
  CHECK_INT(((uint8_t *)tn_tensor_data(t))[1], 0x40);
  tn_graph_unref(graph);
}

static void tensor__strings(void)
{
  tn_error err = TN_ERROR_INIT;
  const int64_t dims[] = { 3 };
  tn_graph *graph;
  const char *text;
  size_t length;
  for (int form = 0; form <= 1; form++) {
    gk_bytes proto = { 0 };
    gk_tensor(&proto, TN_STRING, dims, 1, NULL, 0);
    if (form == 0) {
      gk_text(&proto, 8, "first");
      gk_data(&proto, 8, "a text with a \0, longer than fits into an element", 49);
    } else {
      gk_data(&proto, 4, "\x05\x31\x31" "first" "a text with a \0, longer than fits into an element"
                         "a text with a \0, longer than fits into an element", 3 + 5 + 49 + 49);
    }
    tn_tensor *t = constant(&proto, &graph, &err);
    REQUIRE_MSG(t != NULL, "%s", tn_error_message(&err));
    CHECK_OK(tn_tensor_get_string(t, 0, &text, &length, &err), &err);
    CHECK(length == 5 && memcmp(text, "first", 5) == 0);
    CHECK_OK(tn_tensor_get_string(t, 2, &text, &length, &err), &err);
    CHECK(length == 49 && text[14] == 0 && text[48] == 't');
    tn_graph_unref(graph);
  }
  static const struct {
    const char *content;
    size_t size;
  } bad[] = { { "\x01", 1 }, { "\x01\x01\x01" "ab", 5 }, { "\x01\x01\x01" "abcd", 7 }, { "\x01\x01\xff\xff\xff\xff\x7f" "ab", 9 } };
  for (size_t i = 0; i < 4; i++) {
    gk_bytes proto = { 0 };
    gk_tensor(&proto, TN_STRING, dims, 1, bad[i].content, bad[i].size);
    CHECK_NULL(constant(&proto, &graph, &err));
    CHECK_STATUS(tn_error_code(&err), TN_INVALID_ARGUMENT, &err);
    tn_error_clear(&err);
    tn_graph_unref(graph);
  }
}

/* Sizes that lie cost an error when somebody asks, not memory. */
static void tensor__sizes_that_lie(void)
{
  static const struct {
    int64_t dims[3];
    int rank;
    int64_t dtype;
    const char *content;
    tn_status code;
    const char *wanted;
  } cases[] = {
    { { INT64_C(1) << 30, INT64_C(1) << 30, 1 }, 3, TN_FLOAT, NULL, TN_RESOURCE_EXHAUSTED, "has only 1 values" },
    { { INT64_C(1) << 40, 1, 1 }, 1, TN_INT8, NULL, TN_RESOURCE_EXHAUSTED, "takes 1099511627776 bytes" },
    { { INT64_C(1) << 31, INT64_C(1) << 31, 4 }, 3, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { INT64_MAX, 2, 1 }, 2, TN_INT8, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { -1, 1, 1 }, 1, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "the tensor's shape" },
    { { 0, 0, 0 }, -1, TN_FLOAT, NULL, TN_INVALID_ARGUMENT, "unknown rank" },
    { { 3, 1, 1 }, 1, TN_FLOAT, "12345678", TN_INVALID_ARGUMENT, "tensor_content has 8 bytes, wanted 12 for shape [3] of float32" },
    { { 1, 1, 1 }, 1, TN_FLOAT, "12345678", TN_INVALID_ARGUMENT, "tensor_content has 8 bytes, wanted 4" },
    { { 1, 1, 1 }, 1, 0, NULL, TN_INVALID_ARGUMENT, "the number 0, which is no type" },
    { { 1, 1, 1 }, 1, 4711, NULL, TN_INVALID_ARGUMENT, "the number 4711" },
    { { 1, 1, 1 }, 1, 101, NULL, TN_INVALID_ARGUMENT, "the number 101" },
    { { 1, 1, 1 }, 1, TN_VARIANT, NULL, TN_UNIMPLEMENTED, "type variant" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_error err = TN_ERROR_INIT;
    gk_bytes proto = { 0 };
    tn_graph *graph;
    const char *content = cases[i].content;
    gk_tensor(&proto, cases[i].dtype, cases[i].dims, cases[i].rank, content, content == NULL ? 0 : strlen(content));
    if (content == NULL) gk_float(&proto, 5, 1), gk_int(&proto, 7, 1);
    uint64_t before = tn_test_live_bytes();
    CHECK_NULL(constant(&proto, &graph, &err));
    REQUIRE_PTR(graph);
    CHECK_STATUS(tn_error_code(&err), cases[i].code, &err);
    CHECK_CONTAINS(tn_error_message(&err), "node 'c': attribute 'value': ");
    CHECK_CONTAINS(tn_error_message(&err), cases[i].wanted);
    CHECK(tn_test_live_bytes() - before < 1 << 20);
    tn_error_clear(&err);
    tn_graph_unref(graph);
  }
  gk_bytes proto = { 0 }; /* a long text, many times */
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  char *text = calloc(1, 100000);
  gk_tensor(&proto, TN_STRING, (int64_t[]){ 1000000 }, 1, NULL, 0);
  gk_data(&proto, 8, text, 100000);
  CHECK_NULL(constant(&proto, &graph, &err));
  CHECK_STATUS(tn_error_code(&err), TN_RESOURCE_EXHAUSTED, &err);
  free(text);
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

static void tensor__type_of_a_constant_must_fit(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 }, proto = { 0 };
  gk_node(&node, "c", "GkConst", NULL);
  gk_tensor(&proto, TN_FLOAT, NULL, 0, "1234", 4);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_INT32);
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  tn_tensor *t;
  CHECK_STATUS(tn__operation_constant(tn_graph_operation(graph, 0), &t, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'c': the tensor in attribute 'value' has type float32, wanted int32");
  CHECK_NULL(t);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

/* Elements that lie well in the file's bytes are used where they are. */
static void tensor__large_ones_are_not_copied(void)
{
  tn_error err = TN_ERROR_INIT;
  enum { N = 1 << 18 };
  float *values = calloc(N, sizeof *values);
  for (int shift = 0; shift < 8; shift++) {
    gk_bytes g = { 0 }, node = { 0 }, proto = { 0 };
    values[N - 1] = (float)shift;
    char name[16] = "ccccccc";
    name[shift] = 0; /* moves the elements by a byte */
    gk_node(&node, shift == 0 ? "d" : name, "GkConst", NULL);
    gk_tensor(&proto, TN_FLOAT, (int64_t[]){ N }, 1, values, N * sizeof *values);
    gk_attr_tensor(&node, "value", &proto);
    gk_attr_type(&node, "T", TN_FLOAT);
    gk_add_node(&g, &node);
    tn_graph *graph = gk_import(&g, &err);
    REQUIRE_PTR(graph);
    uint64_t before = tn_test_live_bytes();
    tn_tensor *t;
    REQUIRE_OK(tn__operation_constant(tn_graph_operation(graph, 0), &t, &err), &err);
    const char *data = tn_tensor_data(t);
    CHECK_DOUBLE(((const float *)data)[N - 1], shift, 0);
    CHECK_INT((uintptr_t)data % sizeof(float), 0);
    const char *file = graph->imports->file->desc.data;
    bool in_place = data > file && data < file + graph->imports->file->desc.bytes;
    const char *there = tn_graph_operation(graph, 0)->attrs[0].v.tensor->proto.data;
    size_t size = tn_graph_operation(graph, 0)->attrs[0].v.tensor->proto.size;
    bool aligned = (uintptr_t)(there + size - N * sizeof *values) % sizeof(float) == 0;
    CHECK_MSG(in_place == aligned, "shift %d: in place %d, aligned %d", shift, in_place, aligned);
    if (in_place) CHECK(tn_test_live_bytes() - before < 1000);
    tn_graph_unref(graph);
    gk_bytes_free(&g);
  }
  free(values);
}

/* ---- files ---- */

static void write_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  CHECK_INT(fwrite(data, 1, size, f), size);
  fclose(f);
}

static void import_file__reads_and_refuses(void)
{
  tn_error err = TN_ERROR_INIT;
  char path[4200], text[4400];
  gk_bytes g = { 0 };
  tn_graph *graph;
  gk_register();
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  gk_const(&g, "c", 3);
  snprintf(path, sizeof path, "%s/model.pb", tap_scratch_dir());
  write_file(path, g.data, g.size);
  CHECK_OK(tn_graph_import_file(graph, path, NULL, &err), &err);
  tn_tensor *t;
  CHECK_OK(tn__operation_constant(tn_graph_find(graph, "c"), &t, &err), &err);
  CHECK_DOUBLE(*(float *)tn_tensor_data(t), 3, 0);

  write_file(path, g.data, g.size - 1);
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(text, sizeof text, "%s: byte 0: a field is longer", path);
  CHECK_CONTAINS(tn_error_message(&err), text);
  tn_import_options options = { .struct_size = sizeof options, .file = "the model" };
  CHECK_STATUS(tn_graph_import_file(graph, path, &options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the model: byte 0");

  CHECK_STATUS(tn_graph_import_file(graph, tap_scratch_dir(), NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "a directory");
  CHECK_STATUS(tn_graph_import_file(graph, NULL, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_import_file(graph, "", NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(path, sizeof path, "%s/none.pb", tap_scratch_dir());
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "none.pb");
  snprintf(path, sizeof path, "%s/fifo", tap_scratch_dir());
  REQUIRE_INT(mkfifo(path, 0600), 0);
  CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "a FIFO");
  CHECK_STATUS(tn_graph_import_file(graph, "/dev/zero", NULL, &err), TN_INVALID_ARGUMENT, &err);
  snprintf(path, sizeof path, "%s/secret.pb", tap_scratch_dir());
  write_file(path, g.data, g.size);
  chmod(path, 0);
  if (geteuid() != 0) CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_PERMISSION_DENIED, &err);
  snprintf(path, sizeof path, "%s/huge.pb", tap_scratch_dir());
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  REQUIRE(fd >= 0);
  if (ftruncate(fd, (off_t)1 << 40) == 0) {
    CHECK_STATUS(tn_graph_import_file(graph, path, NULL, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_CONTAINS(tn_error_message(&err), "1099511627776 bytes");
  }
  close(fd);
  unlink(path);
  CHECK_INT(tn_graph_n_operations(graph), 1);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

/* ---- mutations ---- */

/* A graph with a bit of everything. */
static void rich_graph(gk_bytes *g)
{
  gk_bytes node = { 0 }, v = { 0 }, list = { 0 }, func = { 0 }, proto = { 0 }, entry = { 0 };
  const int64_t dims[] = { 2, 3 };
  const float values[] = { 1, 2, 3, 4, 5, 6 };
  gk_in(g, "x");
  gk_add(g, "sum", "merge c");
  gk_const(g, "c", 1);
  gk_node(&node, "big", "GkConst", "^x");
  gk_tensor(&proto, TN_FLOAT, dims, 2, values, sizeof values);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_node(&node, "ints", "GkConst", NULL);
  gk_tensor(&proto, TN_INT64, dims, 2, NULL, 0);
  gk_data(&proto, 10, "\x01\x80\x01\x03", 4);
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_INT64);
  gk_add_node(g, &node);
  gk_node(&node, "texts", "GkConst", NULL);
  gk_tensor(&proto, TN_STRING, dims, 2, NULL, 0);
  gk_text(&proto, 8, "hello");
  gk_attr_tensor(&node, "value", &proto);
  gk_attr_type(&node, "T", TN_STRING);
  gk_add_node(g, &node);
  gk_node(&node, "merge", "GkMerge", "x next ^big");
  gk_attr_int(&node, "N", 2);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_node(&node, "next", "GkNext", "sum:0");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_text(&node, 4, "/job:a/device:CPU:0");
  gk_add_node(g, &node);
  gk_node(&node, "attrs", "GkAttrs", NULL);
  gk_attr_shape(&node, "shape", dims, 2);
  gk_data(&list, 3, "\x05\xac\x02", 3);
  gk_message(&v, 1, &list);
  gk_attr(&node, "l", &v);
  gk_text(&list, 2, "one");
  gk_text(&list, 2, "two");
  gk_message(&v, 1, &list);
  gk_attr(&node, "ls", &v);
  gk_text(&func, 1, "body");
  gk_text(&entry, 1, "T");
  gk_int(&v, 6, 1);
  gk_message(&entry, 2, &v);
  gk_message(&func, 2, &entry);
  gk_message(&v, 10, &func);
  gk_attr(&node, "fn", &v);
  gk_add_node(g, &node);
  gk_node(&node, "odd", "Mystery", "sum split:2 ^attrs");
  gk_tensor(&proto, TN_HALF, dims, 2, NULL, 0);
  gk_int(&proto, 13, 15360);
  gk_message(&list, 8, &proto);
  gk_message(&v, 1, &list);
  gk_attr(&node, "tensors", &v);
  gk_add_node(g, &node);
  gk_node(&node, "split", "GkSplit", "x");
  gk_attr_int(&node, "N", 3);
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(g, &node);
  gk_data(g, 2, "\x0a\x00", 2);
}

/* Asks a graph everything there is to ask. */
static void read_everything(tn_graph *graph)
{
  for (size_t i = 0; i < tn_graph_n_operations(graph); i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    CHECK(tn_graph_find(graph, tn_operation_name(op)) == op);
    for (size_t k = 0; k < tn_operation_n_attrs(op); k++) {
      const char *name = tn_operation_attr_name(op, k);
      tn_tensor *t;
      const char *text;
      const int64_t *dims;
      size_t n;
      int32_t rank;
      tn_operation_attr_tensor(op, name, &t, NULL);
      tn_operation_attr_tensor_at(op, name, 0, &t, &n, NULL);
      tn_operation_attr_string_at(op, name, 0, &text, &n, &n, NULL);
      tn_operation_attr_shape(op, name, &dims, &rank, NULL);
      tn_operation_attr_func(op, name, &text, NULL);
      tn_operation_attr_ints(op, name, &dims, &n, NULL);
    }
    for (size_t k = 0; k < tn_operation_n_outputs(op) && k < 100; k++) {
      int64_t dims[TN_MAX_RANK];
      int32_t rank;
      CHECK_INT(tn_output_shape((tn_output){ op, (int32_t)k }, dims, TN_MAX_RANK, &rank, NULL), TN_OK);
      tn_operation_output_dtype(op, k);
    }
    for (size_t k = 0; k < tn_operation_n_inputs(op); k++) {
      REQUIRE_PTR(tn_operation_input(op, k).op);
      tn_operation_input_dtype(op, k);
    }
    tn_tensor *t;
    if (tn_operation_schema(op) != NULL) tn__operation_constant(op, &t, NULL);
  }
}

/* Imports bytes that may be anything, in memory of exactly their size. True when they were taken. */
static bool try_bytes(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  uint8_t *exact = malloc(size + 1);
  memcpy(exact, data, size);
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_status st = tn_graph_import(graph, exact, size, NULL, &err);
  free(exact);
  CHECK(st == TN_OK || st == TN_INVALID_ARGUMENT || st == TN_RESOURCE_EXHAUSTED);
  CHECK((st == TN_OK) == (*tn_error_message(&err) == 0));
  if (st != TN_OK) CHECK_INT(tn_graph_n_operations(graph), 0);
  read_everything(graph);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st == TN_OK;
}

static void import__survives_every_cut(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  CHECK(try_bytes(g.data, g.size));
  uint64_t before = tn_test_live_bytes();
  for (size_t n = 0; n < g.size; n++) try_bytes(g.data, n);
  CHECK_INT(tn_test_live_bytes(), before);
  gk_bytes_free(&g);
}

static uint64_t next_random(uint64_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void import__survives_changed_bytes(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  uint8_t *copy = malloc(g.size);
  uint64_t seed = 0x74656e6f6e, before = tn_test_live_bytes();
  size_t taken = 0, rounds = 6000;
  const char *more = getenv("TENON_TEST_ROUNDS");
  if (more != NULL) rounds = strtoul(more, NULL, 10);
  for (size_t round = 0; round < rounds; round++) {
    memcpy(copy, g.data, g.size);
    size_t changes = 1 + next_random(&seed) % 4;
    for (size_t i = 0; i < changes; i++) {
      uint8_t *byte = &copy[next_random(&seed) % g.size];
      switch (next_random(&seed) % 4) {
      case 0: *byte ^= (uint8_t)(1 << next_random(&seed) % 8); break;
      case 1: *byte = (uint8_t)next_random(&seed); break;
      case 2: *byte = 0xff; break;
      default: *byte = (uint8_t)(*byte + 1); break;
      }
    }
    taken += try_bytes(copy, g.size);
  }
  tap_note("%zu of %zu changed graphs were still taken", taken, rounds);
  CHECK(taken > 0 && taken < rounds);
  CHECK_INT(tn_test_live_bytes(), before);
  free(copy);
  gk_bytes_free(&g);
}

/* ---- without memory ---- */

static tn_status import_rich(void *arg)
{
  const gk_bytes *g = arg;
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  tn_tensor *t;
  const char *text;
  size_t n;
  int32_t rank;
  tn_status st = tn_graph_create(&graph, &err);
  if (st == TN_OK) st = tn_graph_import(graph, g->data, g->size, NULL, &err);
  if (graph != NULL && st != TN_OK) CHECK_INT(tn_graph_n_operations(graph), 0);
  if (st == TN_OK) st = tn__operation_constant(tn_graph_find(graph, "ints"), &t, &err);
  if (st == TN_OK) st = tn__operation_constant(tn_graph_find(graph, "texts"), &t, &err);
  if (st == TN_OK) st = tn_operation_attr_tensor_at(tn_graph_find(graph, "odd"), "tensors", 0, &t, &n, &err);
  if (st == TN_OK) st = tn_operation_attr_string_at(tn_graph_find(graph, "attrs"), "ls", 0, &text, &n, &n, &err);
  if (st == TN_OK) st = tn_output_shape((tn_output){ tn_graph_find(graph, "next"), 0 }, NULL, 0, &rank, &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
  return st;
}

static void import__without_memory_nothing_is_left(void)
{
  gk_bytes g = { 0 };
  gk_register();
  rich_graph(&g);
  tn_test_oom_sweep(import_rich, &g);
  gk_bytes_free(&g);
}

/* ---- real models ---- */

static void import__real_models(void)
{
  const char *root = getenv("TENON_MODELS");
  DIR *dir = root == NULL ? NULL : opendir(root);
  if (dir == NULL) TAP_SKIP("no models: set TENON_MODELS to their folder");
  size_t n = 0, nodes = 0;
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
    tn_error err = TN_ERROR_INIT;
    char path[4200];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s/model.pb", root, entry->d_name);
    if (entry->d_name[0] == '.' || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    tn_graph *graph;
    REQUIRE_OK(tn_graph_create(&graph, &err), &err);
    CHECK_OK(tn_graph_import_file(graph, path, NULL, &err), &err);
    nodes += tn_graph_n_operations(graph);
    read_everything(graph);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    n++;
  }
  closedir(dir);
  tap_note("%zu models, %zu nodes", n, nodes);
  CHECK(n > 0);
}

TAP_MAIN(TAP_TEST(import__small_graph), TAP_TEST(import__empty_graphs_change_nothing), TAP_TEST(import__adds_to_a_graph),
         TAP_TEST(import__failed_ones_leave_no_trace), TAP_TEST(import__unknown_ops_are_kept),
         TAP_TEST(import__every_kind_of_attribute), TAP_TEST(import__loops), TAP_TEST(import__library_and_versions_are_kept),
         TAP_TEST(import__refuses_wrong_edges), TAP_TEST(import__refuses_wrong_names),
         TAP_TEST(import__refuses_wrong_attributes), TAP_TEST(import__refuses_malformed_bytes),
         TAP_TEST(import__passes_over_what_it_does_not_know), TAP_TEST(import__bounds_nesting),
         TAP_TEST(tensor__numbers_of_every_type), TAP_TEST(tensor__negative_and_wide_numbers), TAP_TEST(tensor__strings),
         TAP_TEST(tensor__sizes_that_lie), TAP_TEST(tensor__type_of_a_constant_must_fit),
         TAP_TEST(tensor__large_ones_are_not_copied), TAP_TEST(import_file__reads_and_refuses),
         TAP_TEST(import__survives_every_cut), TAP_TEST(import__survives_changed_bytes),
         TAP_TEST(import__without_memory_nothing_is_left), TAP_TEST(import__real_models))
