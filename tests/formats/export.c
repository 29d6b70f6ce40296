/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs written as GraphDefs. */
#define _GNU_SOURCE
#include "conformance/support/graph_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *scratch(const char *name)
{
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", tap_scratch_dir(), name);
  return path;
}

static gk_bytes exported(tn_graph *graph, uint32_t flags)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes out = { 0 };
  void *bytes;
  size_t size;
  if (CHECK_OK(tn_graph_export(graph, flags, &bytes, &size, &err), &err)) {
    gk_put(&out, bytes, size);
    if ((flags & TN_EXPORT_TEXT) != 0) CHECK_INT(((const char *)bytes)[size], 0);
    tn_free(bytes);
  }
  tn_error_clear(&err);
  return out;
}

static bool same_bytes(const gk_bytes *a, const gk_bytes *b)
{
  return CHECK_INT(a->size, b->size) && (a->size == 0 || CHECK_BYTES(a->data, b->data, a->size));
}

/* Removes the comments that replace fields without a text form. */
static void drop_comments(gk_bytes *text)
{
  uint8_t *to = text->data, *end = text->data + text->size;
  for (uint8_t *p = text->data, *next; p < end; p = next) {
    uint8_t *line = memchr(p, '\n', (size_t)(end - p)), *at = p;
    next = line == NULL ? end : line + 1;
    while (at < next && *at == ' ') at++;
    if (at < next && *at == '#') continue;
    memmove(to, p, (size_t)(next - p));
    to += next - p;
  }
  text->size = (size_t)(to - text->data);
}

/* Importing the written graph and writing it again gives the same bytes, in both forms. */
static void check_again(tn_graph *graph)
{
  static const uint32_t flags[] = { 0, TN_EXPORT_TEXT };
  tn_error err = TN_ERROR_INIT;
  for (int i = 0; i < 2; i++) {
    gk_bytes first = exported(graph, flags[i]);
    tn_graph *copy = gk_import(&first, &err);
    REQUIRE_MSG(copy != NULL, "%s", tn_error_message(&err));
    gk_bytes second = exported(copy, flags[i]);
    if (flags[i] == TN_EXPORT_TEXT) drop_comments(&first);
    same_bytes(&second, &first);
    CHECK_INT(tn_graph_n_operations(copy), tn_graph_n_operations(graph));
    tn_graph_unref(copy);
    gk_bytes_free(&first);
    gk_bytes_free(&second);
  }
}

/* ---- imported graphs ---- */

/* Nodes that Tenon would not write: fields out of order, unknown fields, attributes of unknown
 * ops. */
static void odd_graph(gk_bytes *g)
{
  gk_bytes node = { 0 }, v = { 0 }, list = { 0 }, part = { 0 };
  gk_text(&node, 2, "Unheard");
  gk_int(&node, 99, -7); /* not a field of a node */
  gk_text(&node, 4, "/job:worker/task:3/device:GPU:1");
  gk_text(&list, 2, "loc:@x");
  gk_message(&v, 1, &list);
  gk_attr(&node, "_class", &v);
  gk_data(&v, 77, "\x01\x02", 2); /* not a field of an attribute */
  gk_attr(&node, "odd", &v);
  gk_text(&part, 1, "before");
  gk_message(&node, 6, &part); /* experimental_debug_info */
  gk_text(&node, 3, "x");
  gk_text(&node, 3, "later:4");
  gk_text(&node, 3, "^c");
  gk_text(&node, 1, "first");
  gk_message(g, 1, &node);
  gk_in(g, "x");
  gk_const(g, "c", 2.5f);
  gk_node(&node, "later", "Unheard", "x");
  gk_add_node(g, &node);
  gk_node(&part, "f", "Unheard", NULL);
  gk_message(&v, 3, &part); /* in a function's node */
  gk_message(&list, 1, &v);
  gk_message(g, 2, &list);
  gk_int(&v, 1, 1882);
  gk_int(&v, 2, 12);
  gk_message(g, 4, &v);
  gk_text(g, 60, "not a field of a graph");
}

static void export__imported_bytes_are_kept(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  odd_graph(&g);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  gk_bytes out = exported(graph, 0);
  same_bytes(&out, &g);
  check_again(graph);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  gk_bytes_free(&out);
}

/* Parts other than nodes are written after the nodes. */
static void export__versions_before_nodes(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, wanted = { 0 }, v = { 0 };
  gk_int(&v, 1, 21);
  gk_message(&g, 4, &v);
  gk_in(&g, "x");
  gk_in(&wanted, "x");
  gk_int(&v, 1, 21);
  gk_message(&wanted, 4, &v);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  gk_bytes out = exported(graph, 0);
  same_bytes(&out, &wanted);
  check_again(graph);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  gk_bytes_free(&wanted);
  gk_bytes_free(&out);
}

static void export__two_imports_share_a_library(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes one = { 0 }, two = { 0 }, wanted = { 0 }, v = { 0 };
  gk_in(&one, "x");
  gk_in(&two, "y");
  gk_in(&wanted, "x");
  gk_in(&wanted, "y");
  gk_bytes *const all[] = { &one, &two, &wanted };
  for (int i = 0; i < 3; i++) {
    gk_int(&v, 1, 21);
    gk_message(all[i], 4, &v);
  }
  gk_int(&v, 1, 22);
  gk_message(&two, 4, &v); /* another function */
  gk_int(&v, 1, 22);
  gk_message(&wanted, 4, &v);
  tn_graph *graph = gk_import(&one, &err);
  REQUIRE_PTR(graph);
  REQUIRE_OK(tn_graph_import(graph, two.data, two.size, NULL, &err), &err);
  gk_bytes out = exported(graph, 0), text = exported(graph, TN_EXPORT_TEXT);
  same_bytes(&out, &wanted);
  gk_put(&text, "", 1);
  CHECK_CONTAINS((const char *)text.data,
                 "versions {\n  producer: 22\n}\n"); /* both are merged; the last value counts */
  CHECK_NULL(strstr((const char *)text.data, "producer: 21"));
  tn_graph_unref(graph);
  gk_bytes_free(&one);
  gk_bytes_free(&two);
  gk_bytes_free(&wanted);
  gk_bytes_free(&out);
  gk_bytes_free(&text);
}

/* ---- built graphs ---- */

static tn_operation *build_in(tn_graph *graph, const char *name)
{
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_builder *b = tn_operation_begin(graph, "Unheard", name, TN_BUILD_KEEP_UNKNOWN_OP);
  tn_operation_set_device(b, "/device:CPU:0");
  CHECK_OK(tn_operation_finish(b, &op, &err), &err);
  tn_error_clear(&err);
  return op;
}

static tn_tensor *floats(void)
{
  static const float values[] = { 1, -2.5f, 3e-9f };
  tn_tensor *t = NULL;
  CHECK_INT(tn_tensor_from_data(TN_FLOAT, (int64_t[]){ 3, 1 }, 2, values, sizeof values, &t, NULL), TN_OK);
  return t;
}

static tn_tensor *texts(void)
{
  tn_tensor *t = NULL;
  CHECK_INT(tn_tensor_create(TN_STRING, (int64_t[]){ 2 }, 1, &t, NULL), TN_OK);
  CHECK_INT(tn_tensor_set_string(t, 1, "a\0\n", 3, NULL), TN_OK);
  return t;
}

/* A node with attributes of every kind; tensors may be NULL if memory is limited. */
static tn_status build_all(tn_graph *graph, tn_operation *from, tn_tensor *const *tensors, tn_error *err)
{
  static const int64_t dims[] = { 2, -1, 0 }, ints[] = { 0, -1, INT64_MAX };
  static const float some[] = { 0.5f, -1 };
  static const tn_bool bools[] = { 1, 0 };
  static const tn_dtype types[] = { TN_FLOAT, TN_STRING, TN_FLOAT + TN_DTYPE_REF };
  static const void *const words[] = { "one", "", "t\0w" };
  static const size_t lengths[] = { 3, 0, 3 };
  static const int64_t *const shapes[] = { dims, NULL };
  static const int32_t ranks[] = { 3, -1 };
  static const char *const functions[] = { "f", "g" };
  tn_operation_builder *b = tn_operation_begin(graph, "Unheard", "all", TN_BUILD_KEEP_UNKNOWN_OP);
  tn_operation_add_input(b, (tn_output){ from, 0 });
  tn_operation_add_input(b, (tn_output){ from, 12 });
  tn_operation_add_control_input(b, from);
  tn_operation_set_int(b, "int", -3);
  tn_operation_set_int(b, "zero", 0);
  tn_operation_set_float(b, "float", 0.1f);
  tn_operation_set_bool(b, "bool", 0);
  tn_operation_set_type(b, "type", TN_INT64);
  tn_operation_set_string(b, "string", "\xff\0\"", 3);
  tn_operation_set_shape(b, "shape", dims, 3);
  tn_operation_set_shape(b, "no_rank", NULL, -1);
  tn_operation_set_shape(b, "scalar", NULL, 0);
  tn_operation_set_tensor(b, "tensor", tensors[0]);
  tn_operation_set_tensor(b, "texts", tensors[1]);
  tn_operation_set_func(b, "func", "body");
  tn_operation_set_ints(b, "ints", ints, 3);
  tn_operation_set_ints(b, "none", NULL, 0);
  tn_operation_set_floats(b, "floats", some, 2);
  tn_operation_set_bools(b, "bools", bools, 2);
  tn_operation_set_types(b, "types", types, 3);
  tn_operation_set_strings(b, "strings", words, lengths, 3);
  tn_operation_set_shapes(b, "shapes", shapes, ranks, 2);
  tn_operation_set_tensors(b, "tensors", tensors, 2);
  tn_operation_set_funcs(b, "funcs", functions, 2);
  tn_operation_set_proto(b, "raw", "\x1a\x80\x00\x18\x85\x00", 6); /* numbers longer than necessary */
  return tn_operation_finish(b, NULL, err);
}

static tn_graph *built_graph(void)
{
  tn_graph *graph = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_tensor *tensors[] = { floats(), texts() };
  gk_register();
  CHECK_INT(tn_graph_create(&graph, NULL), TN_OK);
  tn_status st = build_all(graph, build_in(graph, "in"), tensors, &err);
  if (st == TN_INVALID_ARGUMENT) CHECK_OK(st, &err);
  for (int i = 0; i < 2; i++) tn_tensor_unref(tensors[i]);
  tn_error_clear(&err);
  return graph;
}

static void check_all(tn_operation *op)
{
  const char *text;
  size_t length, n;
  float f;
  int64_t i;
  const int64_t *dims, *ints;
  const tn_dtype *types;
  int32_t rank;
  tn_tensor *t;
  REQUIRE_PTR(op);
  CHECK_INT(tn_operation_n_inputs(op), 2);
  CHECK_INT(tn_operation_input(op, 1).index, 12);
  CHECK_INT(tn_operation_n_control_inputs(op), 1);
  CHECK_STR(tn_operation_device(tn_operation_input(op, 0).op), "/device:CPU:0");
  CHECK_STR(tn_operation_attr_name(op, 0), "int");
  CHECK_INT(tn_operation_n_attrs(op), 22);
  CHECK(tn_operation_attr_int(op, "zero", &i, NULL) == TN_OK && i == 0);
  CHECK(tn_operation_attr_float(op, "float", &f, NULL) == TN_OK && f == 0.1f);
  CHECK(tn_operation_attr_string(op, "string", &text, &length, NULL) == TN_OK && length == 3);
  CHECK_BYTES(text, "\xff\0\"", 3);
  CHECK(tn_operation_attr_shape(op, "shape", &dims, &rank, NULL) == TN_OK && rank == 3 && dims[1] == -1 &&
        dims[2] == 0);
  CHECK(tn_operation_attr_shape(op, "no_rank", &dims, &rank, NULL) == TN_OK && rank == -1);
  CHECK(tn_operation_attr_ints(op, "ints", &ints, &n, NULL) == TN_OK && n == 3 && ints[2] == INT64_MAX);
  CHECK(tn_operation_attr_types(op, "types", &types, &n, NULL) == TN_OK && n == 3 && types[2] == 101);
  CHECK(tn_operation_attr_string_at(op, "strings", 2, &text, &length, &n, NULL) == TN_OK && n == 3 && length == 3);
  CHECK(tn_operation_attr_shape_at(op, "shapes", 1, &dims, &rank, &n, NULL) == TN_OK && rank == -1);
  CHECK(tn_operation_attr_func_at(op, "funcs", 1, &text, &n, NULL) == TN_OK && strcmp(text, "g") == 0);
  REQUIRE_INT(tn_operation_attr_tensor(op, "tensor", &t, NULL), TN_OK);
  CHECK_INT(tn_tensor_dims(t)[0], 3);
  CHECK(((const float *)tn_tensor_data(t))[2] == 3e-9f);
  REQUIRE_INT(tn_operation_attr_tensor_at(op, "tensors", 1, &t, &n, NULL), TN_OK);
  REQUIRE_INT(tn_tensor_get_string(t, 1, &text, &length, NULL), TN_OK);
  CHECK_INT(length, 3);
  CHECK(tn_operation_attr_int(op, "raw", &i, NULL) == TN_OK && i == 5);
}

static void export__built_node_of_every_kind(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = built_graph();
  for (uint32_t flags = 0; flags <= TN_EXPORT_TEXT; flags++) {
    gk_bytes out = exported(graph, flags);
    tn_graph *copy = gk_import(&out, &err);
    REQUIRE_MSG(copy != NULL, "%s", tn_error_message(&err));
    check_all(tn_graph_find(copy, "all"));
    tn_graph_unref(copy);
    gk_bytes_free(&out);
  }
  gk_bytes out = exported(graph, 0);
  CHECK(memmem(out.data, out.size, "\x1a\x80\x00\x18\x85\x00", 6) != NULL); /* unchanged */
  gk_bytes_free(&out);
  check_again(graph);
  tn_graph_unref(graph);
}

static void export__built_graphs_have_a_version(void)
{
  tn_graph *graph;
  REQUIRE_INT(tn_graph_create(&graph, NULL), TN_OK);
  gk_bytes none = exported(graph, 0);
  CHECK_INT(none.size, 0);
  build_in(graph, "x");
  gk_bytes text = exported(graph, TN_EXPORT_TEXT);
  gk_put(&text, "", 1);
  CHECK_STR((const char *)text.data, "node {\n  name: \"x\"\n  op: \"Unheard\"\n  device: \"/device:CPU:0\"\n}\n"
                                     "versions {\n  producer: 1882\n}\n");
  tn_graph_unref(graph);
  gk_bytes_free(&none);
  gk_bytes_free(&text);
}

/* Nodes built after an import; one is given the tensor of an imported constant. */
static void export__import_then_build(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  gk_const(&g, "c", 7.0f);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  tn_tensor *value;
  REQUIRE_OK(tn_operation_attr_tensor(tn_graph_find(graph, "c"), "value", &value, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "GkConst", "d", 0);
  tn_operation_set_tensor(b, "value", value);
  tn_operation_set_type(b, "T", TN_FLOAT);
  REQUIRE_OK(tn_operation_finish(b, NULL, &err), &err);
  gk_bytes out = exported(graph, 0);
  REQUIRE(out.size > g.size);
  CHECK_BYTES(out.data, g.data, g.size);
  check_again(graph);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  gk_bytes_free(&out);
}

static void export__handles_are_rejected(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  tn_tensor *t;
  void *bytes = &bytes;
  size_t size = 5;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn_tensor_create(TN_VARIANT, NULL, 0, &t, &err), &err);
  tn_operation_builder *b = tn_operation_begin(graph, "Unheard", "v", TN_BUILD_KEEP_UNKNOWN_OP);
  tn_operation_set_tensor(b, "value", t);
  REQUIRE_OK(tn_operation_finish(b, NULL, &err), &err);
  CHECK_STATUS(tn_graph_export(graph, 0, &bytes, &size, &err), TN_UNIMPLEMENTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'v': attribute 'value': a tensor of type variant cannot be written");
  CHECK_NULL(bytes);
  CHECK_INT(size, 0);
  char *path = scratch("handles.pb");
  CHECK_STATUS(tn_graph_export_file(graph, path, 0, &err), TN_UNIMPLEMENTED, &err);
  CHECK(access(path, F_OK) != 0);
  tn_tensor_unref(t);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

static void export__wrong_arguments(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph;
  void *bytes;
  size_t size;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  CHECK_STATUS(tn_graph_export(NULL, 0, &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_export(graph, 0, NULL, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_export(graph, 0, &bytes, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_export(graph, 8, &bytes, &size, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "0x8");
  CHECK_STATUS(tn_graph_export_file(graph, NULL, 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_export_file(graph, "", 0, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_graph_export_file(graph, "/nowhere/at/all.pb", 0, &err), TN_NOT_FOUND, &err);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* ---- files ---- */

static void export__files(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = built_graph();
  static const char *const names[] = { "model.pb", "model.pbtxt" };
  for (int i = 0; i < 2; i++) {
    char *path = scratch(names[i]);
    tn_graph *copy;
    REQUIRE_OK(tn_graph_export_file(graph, path, 0, &err), &err);
    REQUIRE_OK(tn_graph_create(&copy, &err), &err);
    CHECK_OK(tn_graph_import_file(copy, path, NULL, &err), &err);
    gk_bytes wanted = exported(graph, 0), found = exported(copy, 0);
    if (i == 0) same_bytes(&found, &wanted);
    check_all(tn_graph_find(copy, "all"));
    tn_graph_unref(copy);
    gk_bytes_free(&wanted);
    gk_bytes_free(&found);
  }
  tn_graph_unref(graph);
}

/* Constants larger than a file writer's buffer. */
static void export__large_constant_in_a_file(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph, *copy;
  tn_tensor *t, *back;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn_tensor_create(TN_UINT8, (int64_t[]){ 3, 300001 }, 2, &t, &err), &err);
  uint8_t *data = tn_tensor_data(t);
  for (size_t i = 0; i < tn_tensor_bytes(t); i++) data[i] = (uint8_t)(i * 7 >> 3);
  tn_operation_builder *b = tn_operation_begin(graph, "Unheard", "c", TN_BUILD_KEEP_UNKNOWN_OP);
  tn_operation_set_tensor(b, "value", t);
  REQUIRE_OK(tn_operation_finish(b, NULL, &err), &err);
  for (uint32_t flags = 0; flags <= TN_EXPORT_TEXT; flags++) {
    char *path = scratch("large");
    REQUIRE_OK(tn_graph_export_file(graph, path, flags, &err), &err);
    REQUIRE_OK(tn_graph_create(&copy, &err), &err);
    REQUIRE_OK(tn_graph_import_file(copy, path, NULL, &err), &err);
    REQUIRE_OK(tn_operation_attr_tensor(tn_graph_find(copy, "c"), "value", &back, &err), &err);
    REQUIRE_INT(tn_tensor_bytes(back), tn_tensor_bytes(t));
    CHECK(memcmp(tn_tensor_data(back), data, tn_tensor_bytes(t)) == 0);
    tn_graph_unref(copy);
  }
  tn_tensor_unref(t);
  tn_graph_unref(graph);
}

/* ---- lack of memory ---- */

static tn_status export_both(void *arg)
{
  tn_error err = TN_ERROR_INIT;
  tn_status st = TN_OK;
  for (uint32_t flags = 0; st == TN_OK && flags <= TN_EXPORT_TEXT; flags++) {
    void *bytes;
    size_t size;
    st = tn_graph_export(arg, flags, &bytes, &size, &err);
    CHECK((bytes != NULL) == (st == TN_OK));
    tn_free(bytes);
    if (st == TN_OK) st = tn_graph_export_file(arg, scratch("sweep"), flags, &err);
  }
  tn_error_clear(&err);
  return st;
}

static void export__without_memory(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, again = { 0 };
  tn_graph *graph = built_graph();
  tn_test_oom_sweep(export_both, graph);
  tn_graph_unref(graph);
  odd_graph(&g);
  graph = gk_import(&g, &err);
  REQUIRE_PTR(graph);
  gk_in(&again, "y");
  gk_text(&again, 60, "not a field of a graph");
  REQUIRE_OK(tn_graph_import(graph, again.data, again.size, NULL, &err), &err);
  tn_test_oom_sweep(export_both, graph);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  gk_bytes_free(&again);
}

static tn_status whole_way(void *arg)
{
  (void)arg;
  gk_bytes g = { 0 };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = NULL;
  odd_graph(&g);
  tn_status st = tn_graph_create(&graph, &err);
  void *bytes = NULL;
  size_t size = 0;
  if (st == TN_OK) st = tn_graph_import(graph, g.data, g.size, NULL, &err);
  if (st == TN_OK) st = tn_graph_export(graph, TN_EXPORT_TEXT, &bytes, &size, &err);
  tn_graph *copy = NULL;
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  if (st == TN_OK) st = tn_graph_create(&copy, &err);
  if (st == TN_OK) st = tn_graph_import(copy, bytes, size, &options, &err);
  tn_free(bytes);
  if (copy != NULL) tn_graph_unref(copy);
  if (graph != NULL) tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
  return st;
}

static void export__whole_way_without_memory(void)
{
  gk_register();
  tn_test_oom_sweep(whole_way, NULL);
}

TAP_MAIN(TAP_TEST(export__imported_bytes_are_kept), TAP_TEST(export__versions_before_nodes),
              TAP_TEST(export__two_imports_share_a_library), TAP_TEST(export__built_node_of_every_kind),
              TAP_TEST(export__built_graphs_have_a_version), TAP_TEST(export__import_then_build),
              TAP_TEST(export__handles_are_rejected), TAP_TEST(export__wrong_arguments), TAP_TEST(export__files),
              TAP_TEST(export__large_constant_in_a_file), TAP_TEST(export__without_memory),
              TAP_TEST(export__whole_way_without_memory))
