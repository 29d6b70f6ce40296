/* SPDX-License-Identifier: Apache-2.0 */
/* Options of an import: names, mapped inputs, control inputs, results. Names and edges must
 * equal those that TensorFlow 2.21 produces for the same graphs. */
#include "conformance/support/graph_kit.h"
#include "conformance/support/session_kit.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- graphs as text ---- */

/* Nodes "NAME=OP in in:1 ^control", separated by "; ". GkMerge has as many inputs as are listed;
 * T is float. */
static void add_nodes(gk_bytes *g, const char *text)
{
  char copy[1000], *rest = copy, *one;
  snprintf(copy, sizeof copy, "%s", text);
  while ((one = strtok_r(rest, ";", &rest)) != NULL) {
    while (*one == ' ') one++;
    char *op = strchr(one, '='), *inputs = op == NULL ? NULL : strchr(op, ' ');
    REQUIRE(op != NULL);
    *op++ = 0;
    if (inputs != NULL) *inputs++ = 0;
    if (strcmp(op, "GkConst") == 0) {
      gk_const(g, one, 1);
      continue;
    }
    gk_bytes node = { 0 };
    int64_t n = 0;
    for (const char *p = inputs; p != NULL && *p != 0 && *p != '^'; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL) n++;
    gk_node(&node, one, op, inputs);
    if (strcmp(op, "GkRun") != 0) gk_attr_type(&node, "T", TN_FLOAT);
    if (strcmp(op, "GkMerge") == 0 || strcmp(op, "GkAddN") == 0) gk_attr_int(&node, "N", n);
    if (strcmp(op, "GkSplit") == 0) gk_attr_int(&node, "N", 2);
    gk_add_node(g, &node);
  }
}

static char shown[4000];

static void show(size_t *used, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(shown + *used, sizeof shown - *used, format, args);
  va_end(args);
  *used += n < 0 ? 0 : (size_t)n;
  REQUIRE(*used < sizeof shown);
}

/* The nodes from `first` on, in the form of add_nodes, with the device after an @. */
static const char *nodes_of(tn_graph *graph, size_t first)
{
  size_t used = 0;
  shown[0] = 0;
  for (size_t i = first; i < tn_graph_n_operations(graph); i++) {
    tn_operation *op = tn_graph_operation(graph, i);
    show(&used, "%s%s=%s", i == first ? "" : "; ", tn_operation_name(op), tn_operation_type(op));
    for (size_t k = 0; k < tn_operation_n_inputs(op); k++) {
      tn_output in = tn_operation_input(op, k);
      show(&used, " %s", tn_operation_name(in.op));
      if (in.index > 0) show(&used, ":%d", (int)in.index);
    }
    for (size_t k = 0; k < tn_operation_n_control_inputs(op); k++)
      show(&used, " ^%s", tn_operation_name(tn_operation_control_input(op, k)));
    if (tn_operation_device(op)[0] != 0) show(&used, " @%s", tn_operation_device(op));
  }
  return shown;
}

static tn_import_options no_options(void) { return (tn_import_options){ .struct_size = sizeof(tn_import_options) }; }

static tn_graph *graph_of(const char *nodes)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  add_nodes(&g, nodes);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  gk_bytes_free(&g);
  return graph;
}

static tn_status import_text(tn_graph *graph, const char *nodes, const tn_import_options *options, tn_error *err)
{
  gk_bytes g = { 0 };
  add_nodes(&g, nodes);
  tn_status st = tn_graph_import(graph, g.data, g.size, options, err);
  gk_bytes_free(&g);
  return st;
}

/* Imports `nodes` into a graph of `before` and compares the new nodes. */
static void check_import(const char *before, const char *nodes, const tn_import_options *options, const char *wanted)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of(before);
  size_t first = tn_graph_n_operations(graph);
  CHECK_OK(import_text(graph, nodes, options, &err), &err);
  CHECK_STR(nodes_of(graph, first), wanted);
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* A rejected import changes nothing. */
static void check_refused(tn_graph *graph, const char *nodes, const tn_import_options *options, const char *message)
{
  tn_error err = TN_ERROR_INIT;
  size_t n = tn_graph_n_operations(graph);
  CHECK_STATUS(import_text(graph, nodes, options, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), message);
  CHECK_INT(tn_graph_n_operations(graph), n);
  if (options->results != NULL) CHECK_NULL(*options->results);
  tn_error_clear(&err);
}

/* ---- names ---- */

static void import_options__prefix(void)
{
  tn_import_options o = no_options();
  o.prefix = "net";
  check_import("x=GkIn", "x=GkIn; go=GkRun; s=GkAdd x y:0 ^go; y=GkIn", &o,
               "net/x=GkIn; net/go=GkRun; net/s=GkAdd net/x net/y ^net/go; net/y=GkIn");
  o.prefix = "a/b/";
  check_import("x=GkIn", "x=GkIn; y=GkPass x", &o, "a/b/x=GkIn; a/b/y=GkPass a/b/x");
  o.prefix = "";
  check_import("x=GkIn", "y=GkPass x", &o, "y=GkPass x"); /* as without a prefix */
}

static void import_options__invalid_prefixes_are_rejected(void)
{
  tn_graph *graph = graph_of("x=GkIn; p/y=GkIn; net=GkIn");
  tn_import_options o = no_options();
  o.prefix = "p q";
  check_refused(graph, "x=GkIn", &o, "tn_import_options.prefix is 'p q'");
  o.prefix = "/";
  check_refused(graph, "x=GkIn", &o, "tn_import_options.prefix is '/'");
  o.prefix = "p"; /* TensorFlow creates two nodes of one name here */
  check_refused(graph, "y=GkIn", &o, "node 'p/y': the graph has a node of this name");
  check_refused(graph, "z=GkPass x", &o, "node 'p/z': input 'x' names no node of the file");
  check_refused(graph, "a=GkIn; a=GkIn", &o, "node 'p/a': there are two nodes of this name");
  tn_graph_unref(graph);
}

static void import_options__unique_names(void)
{
  tn_import_options o = no_options();
  o.flags = TN_IMPORT_UNIQUIFY_NAMES;
  /* "a" is a scope of the graph; "x_1" one of the file, "x_2" a node of it */
  check_import("x=GkIn; a/b=GkIn", "x_2=GkPass x; x=GkConst; a=GkIn; x_1/k=GkIn", &o,
               "x_2=GkPass x_3; x_3=GkConst; a_1=GkIn; x_1/k=GkIn");
  check_import("x=GkIn; x_1=GkIn; x_2/y=GkIn", "x=GkIn; y=GkPass x; z=GkRun ^x", &o,
               "x_3=GkIn; y=GkPass x_3; z=GkRun ^x_3");
  check_import("x=GkIn; y=GkIn", "z=GkAdd x y; y=GkConst", &o, "z=GkAdd x y_1; y_1=GkConst"); /* the graph's x */
  o.prefix = "p";
  check_import("p/a=GkIn; p/a_1=GkIn", "a=GkConst; i=GkPass a", &o, "p/a_2=GkConst; p/i=GkPass p/a_2");
  check_import("p/a=GkIn", "a=GkConst; i=GkPass a; a_1=GkIn", &o, "p/a_2=GkConst; p/i=GkPass p/a_2; p/a_1=GkIn");
  check_import("p=GkIn", "a=GkConst", &o, "p/a=GkConst");
}

static void import_options__unique_prefix(void)
{
  tn_import_options o = no_options();
  o.flags = TN_IMPORT_UNIQUIFY_PREFIX;
  o.prefix = "p";
  check_import("x=GkIn", "a=GkIn", &o, "p/a=GkIn");
  check_import("p=GkIn", "a=GkIn; p_1=GkIn", &o, "p_1/a=GkIn; p_1/p_1=GkIn");
  check_import("p/z=GkIn; p_1/y/z=GkIn; p_2x=GkIn", "a=GkIn", &o, "p_2/a=GkIn");
  check_import("p-=GkIn; p0/a=GkIn", "a=GkIn", &o, "p/a=GkIn"); /* neither node makes it a scope */
  o.flags = TN_IMPORT_UNIQUIFY_PREFIX | TN_IMPORT_UNIQUIFY_NAMES;
  check_import("p/a=GkIn", "a=GkIn", &o, "p_1/a=GkIn");
  o.prefix = NULL;
  check_import("a=GkIn", "a=GkConst", &o, "a_1=GkConst");
}

/* The same file many times, as in a program that serves several copies of a model. */
static void import_options__many_copies(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("net=GkIn");
  tn_import_results *results;
  tn_import_options o = no_options();
  o.prefix = "net";
  o.flags = TN_IMPORT_UNIQUIFY_PREFIX;
  o.results = &results;
  for (int i = 1; i <= 50; i++) {
    char wanted[32];
    size_t first;
    snprintf(wanted, sizeof wanted, "net_%d", i);
    REQUIRE_OK(import_text(graph, "x=GkIn; y=GkPass x", &o, &err), &err);
    CHECK_STR(tn_import_results_prefix(results), wanted);
    CHECK_INT(tn_import_results_new_operations(results, &first), 2);
    CHECK_INT(first, 2 * i - 1);
    tn_import_results_free(results);
  }
  CHECK_INT(tn_graph_n_operations(graph), 101);
  tn_graph_unref(graph);
}

/* ---- devices and other attributes of nodes ---- */

static void put_class(gk_bytes *node, const char *const *texts)
{
  gk_bytes list = { 0 }, value = { 0 };
  for (; *texts != NULL; texts++) gk_text(&list, 2, *texts);
  gk_message(&value, 1, &list);
  gk_attr(node, "_class", &value);
}

static void check_class(tn_operation *op, const char *const *wanted)
{
  const char *text;
  size_t length, n;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_PTR(op);
  for (size_t i = 0; wanted[i] != NULL; i++) {
    CHECK_OK(tn_operation_attr_string_at(op, "_class", i, &text, &length, &n, &err), &err);
    CHECK_STR(text, wanted[i]);
  }
  tn_error_clear(&err);
}

/* Colocation refers to nodes by their new names. */
static void import_options__colocation(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_node(&node, "y", "GkPass", "x");
  gk_attr_type(&node, "T", TN_FLOAT);
  put_class(&node, (const char *const[]){ "loc:@x", "other", "loc:@y", NULL });
  gk_add_node(&g, &node);
  gk_in(&g, "x");
  tn_graph *graph = graph_of("x=GkIn");
  tn_import_options o = no_options();
  o.prefix = "p";
  REQUIRE_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);
  check_class(tn_graph_find(graph, "p/y"), (const char *const[]){ "loc:@p/x", "other", "loc:@p/y", NULL });
  o.prefix = NULL;
  o.flags = TN_IMPORT_UNIQUIFY_NAMES;
  REQUIRE_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);
  check_class(tn_graph_find(graph, "y"), (const char *const[]){ "loc:@x_1", "other", "loc:@y", NULL });
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

static void import_options__default_device(void) /* S-CFG-06 */
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  gk_in(&g, "x");
  gk_node(&node, "y", "GkRun", NULL);
  gk_text(&node, 4, "/cpu:0");
  gk_add_node(&g, &node);
  tn_graph *graph = graph_of("a=GkIn");
  tn_import_options o = no_options();
  o.default_device = "/device:CPU:1";
  REQUIRE_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);
  CHECK_STR(nodes_of(graph, 1), "x=GkIn @/device:CPU:1; y=GkRun @/cpu:0");
  o.default_device = "rubbish";
  check_refused(graph, "z=GkIn", &o, "tn_import_options.default_device is malformed: 'rubbish'");
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* Changed nodes are encoded anew, including fields unknown to this library; importing the result
 * is the identity. */
static void import_options__export_of_changed_nodes(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 }, debug = { 0 }, wanted = { 0 };
  gk_in(&g, "x");
  gk_node(&node, "y", "GkPass", "x:0");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_text(&debug, 1, "x_before");
  gk_message(&node, 6, &debug); /* experimental_debug_info */
  gk_add_node(&g, &node);
  tn_graph *graph, *again;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  tn_import_options o = no_options();
  o.prefix = "p";
  REQUIRE_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);

  gk_in(&wanted, "p/x");
  gk_node(&node, "p/y", "GkPass", "p/x");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_text(&debug, 1, "x_before");
  gk_message(&node, 6, &debug);
  gk_add_node(&wanted, &node);
  void *bytes, *second;
  size_t size, second_size;
  REQUIRE_OK(tn_graph_export(graph, 0, &bytes, &size, &err), &err);
  CHECK_INT(size, wanted.size);
  CHECK_BYTES(bytes, wanted.data, size < wanted.size ? size : wanted.size);
  REQUIRE_OK(tn_graph_create(&again, &err), &err);
  CHECK_OK(tn_graph_import(again, bytes, size, NULL, &err), &err);
  REQUIRE_OK(tn_graph_export(again, 0, &second, &second_size, &err), &err);
  CHECK_INT(second_size, size);
  CHECK_BYTES(second, bytes, size);
  tn_free(bytes);
  tn_free(second);
  tn_graph_unref(graph);
  tn_graph_unref(again);
  gk_bytes_free(&g);
  gk_bytes_free(&wanted);
}

/* ---- inputs ---- */

static tn_output out(tn_graph *graph, const char *name, int32_t index)
{
  return (tn_output){ tn_graph_find(graph, name), index };
}

#define MAP(o, list)                                  \
  do {                                                \
    (o)->input_map = (list);                          \
    (o)->n_input_map = sizeof(list) / sizeof *(list); \
  } while (0)

static void import_options__input_map(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn; y=GkIn; go=GkRun; two=GkSplit x");
  tn_import_mapping map[] = { { "b", out(graph, "x", 0) },
                              { "a:1", out(graph, "two", 2) },
                              { "^q", out(graph, "go", 0) } };
  tn_import_options o = no_options();
  o.prefix = "p";
  MAP(&o, map);
  /* The file lacks b and q. It has a, one of whose outputs is mapped; a control edge is not an
   * output. */
  REQUIRE_OK(import_text(graph, "s=GkAdd b:0 a:1 ^q; a=GkSplit b; t=GkAdd a b ^a", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 4), "p/s=GkAdd x two:2 ^go; p/a=GkSplit x; p/t=GkAdd p/a x ^p/a");
  o.prefix = NULL;
  REQUIRE_OK(import_text(graph, "s=GkAdd b x", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 7), "s=GkAdd x x");
  void *bytes;
  size_t size;
  REQUIRE_OK(tn_graph_export(graph, TN_EXPORT_TEXT, &bytes, &size, &err), &err);
  CHECK_NULL(strstr(bytes, "input: \"b\"")); /* names of the file are replaced */
  CHECK(strstr(bytes, "input: \"two:2\"") != NULL);
  tn_free(bytes);
  tn_graph_unref(graph);
}

static void import_options__controls_mapped_to_one(void)
{
  tn_graph *graph = graph_of("x=GkIn; go=GkRun");
  tn_import_mapping map[] = { { "^k", out(graph, "go", 0) },
                              { "^l", out(graph, "go", 7) },
                              { "^m", out(graph, "x", 0) } };
  tn_import_options o = no_options();
  tn_error err = TN_ERROR_INIT;
  MAP(&o, map);
  REQUIRE_OK(import_text(graph, "n=GkRun ^a ^k ^l ^m ^k; a=GkIn; o=GkRun ^l ^k", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 2), "n=GkRun ^a ^go ^x; a=GkIn; o=GkRun ^go");
  tn_graph_unref(graph);
}

static void import_options__invalid_maps_are_rejected(void)
{
  tn_graph *graph = graph_of("x=GkIn; go=GkRun"), *other = graph_of("x=GkIn");
  tn_import_mapping map[] = { { "a", out(graph, "x", 0) }, { "b", out(graph, "x", 0) } };
  tn_import_options o = no_options();
  MAP(&o, map);
  map[1].target = out(graph, "x", 4);
  check_refused(graph, "n=GkRun", &o,
                "tn_import_options.input_map[1]: 'b' is mapped to 'x:4', but node 'x' (GkIn) has 1 outputs");
  map[1].target = out(graph, "x", -1);
  check_refused(graph, "n=GkRun", &o, "'x:-1'");
  map[1].target = out(graph, "none", 0);
  check_refused(graph, "n=GkRun", &o, "input_map[1]: 'b' is mapped to no operation");
  map[1].target = out(other, "x", 0);
  check_refused(graph, "n=GkRun", &o, "input_map[1]: 'b' is mapped to an operation of another graph");
  map[1] = (tn_import_mapping){ "a:0", out(graph, "x", 0) };
  check_refused(graph, "n=GkRun", &o, "tn_import_options.input_map has 'a");
  map[1].source = "a:b";
  check_refused(graph, "n=GkRun", &o, "input_map[1]: 'a:b' is not an input name");
  map[1].source = NULL;
  check_refused(graph, "n=GkRun", &o, "input_map[1]: '' is not an input name");
  o.n_input_map = 1;
  map[0].target.op = tn_graph_find(graph, "go");
  check_refused(graph, "n=GkRun", &o, "node 'go' (GkRun) has 0 outputs");
  o.input_map = NULL;
  check_refused(graph, "n=GkRun", &o, "tn_import_options.input_map is NULL, but n_input_map is 1");
  tn_graph_unref(graph);
  tn_graph_unref(other);
}

static void import_options__mapped_types_are_checked(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  gk_in_of(graph, "i", TN_INT32, NULL, -1);
  tn_import_mapping map[] = { { "b", out(graph, "i", 0) } };
  tn_import_options o = no_options();
  MAP(&o, map);
  check_refused(graph, "s=GkAdd b b", &o, "node 's': input 0 ('x') is 'i:0' of type int32, wanted float32");
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

static void import_options__skip_mapped_nodes(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn; y=GkIn; go=GkRun");
  tn_import_mapping map[] = { { "a", out(graph, "x", 0) },   { "two:0", out(graph, "x", 0) },
                              { "two:1", out(graph, "y", 0) }, { "two:2", out(graph, "x", 0) },
                              { "half:0", out(graph, "x", 0) }, { "^a", out(graph, "go", 0) } };
  tn_import_results *results;
  tn_import_options o = no_options();
  o.flags = TN_IMPORT_SKIP_MAPPED_NODES;
  o.results = &results;
  o.return_outputs = (const char *const[]){ "two:1", "s" };
  o.n_return_outputs = 2;
  MAP(&o, map);
  /* If the file has an x, it takes precedence over the graph's. GkRun has no outputs, so nothing
   * of it is mapped. */
  const char *nodes = "s=GkAdd a two:1 ^a; a=GkConst; two=GkSplit a; half=GkSplit a; r=GkRun; t=GkAdd half half:1";
  REQUIRE_OK(import_text(graph, nodes, &o, &err), &err);
  CHECK_STR(nodes_of(graph, 3), "s=GkAdd x y ^go; half=GkSplit x; r=GkRun; t=GkAdd x half:1");
  CHECK(tn_import_results_output(results, 0).op == tn_graph_find(graph, "y"));
  CHECK(tn_import_results_output(results, 1).op == tn_graph_find(graph, "s"));
  CHECK_INT(tn_import_results_new_operations(results, NULL), 4);
  tn_bool missing;
  CHECK_INT(tn_import_results_n_unused(results), 2); /* two:0 and two:2, which exist in the file */
  CHECK_CONTAINS(tn_import_results_unused(results, 0, &missing), "two:");
  CHECK(!missing);
  tn_import_results_free(results);
  o.n_input_map = 1;
  o.n_return_outputs = 0;
  check_refused(graph, "n=GkRun ^a; a=GkConst", &o, "node 'n': input '^a' belongs to a node that is left out");
  check_refused(graph, "a=GkConst; a=GkIn", &o, "there are two nodes of this name");
  o.return_operations = (const char *const[]){ "a" };
  o.n_return_operations = 1;
  check_refused(graph, "a=GkConst", &o, "return operation 'a' is left out");
  tn_graph_unref(graph);
}

/* ---- control inputs ---- */

static void import_options__control_inputs(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn; go=GkRun; on=GkRun");
  tn_operation *controls[] = { tn_graph_find(graph, "go"), tn_graph_find(graph, "on"), tn_graph_find(graph, "go") };
  tn_import_mapping map[] = { { "b", out(graph, "x", 0) }, { "^k", out(graph, "on", 0) } };
  tn_import_options o = no_options();
  o.control_inputs = controls;
  o.n_control_inputs = 3;
  MAP(&o, map);
  /* Nodes that depend on a new node do not get them; mapped inputs are not new. */
  const char *nodes = "i=GkPass a; a=GkIn; n=GkRun; m=GkRun ^n; s=GkAdd b b; t=GkAdd b b ^k; u=GkAdd b a";
  REQUIRE_OK(import_text(graph, nodes, &o, &err), &err);
  CHECK_STR(nodes_of(graph, 3), "i=GkPass a; a=GkIn ^go ^on; n=GkRun ^go ^on; m=GkRun ^n; s=GkAdd x x ^go ^on; "
                                "t=GkAdd x x ^on ^go; u=GkAdd x a");
  controls[1] = NULL;
  check_refused(graph, "z=GkIn", &o, "tn_import_options.control_inputs[1] is NULL");
  tn_graph *other = graph_of("x=GkIn");
  controls[1] = tn_graph_find(other, "x");
  check_refused(graph, "z=GkIn", &o, "tn_import_options.control_inputs[1] is an operation of another graph");
  tn_graph_unref(other);
  tn_graph_unref(graph);
}

/* The edge that closes a loop does not count as a dependency. */
static void import_options__control_inputs_of_loops(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn; go=GkRun");
  tn_operation *controls[] = { tn_graph_find(graph, "go") };
  tn_import_mapping map[] = { { "b", out(graph, "x", 0) } };
  tn_import_options o = no_options();
  o.prefix = "p";
  o.control_inputs = controls;
  o.n_control_inputs = 1;
  REQUIRE_OK(import_text(graph, "a=GkIn; m=GkMerge a n; n=GkNext m", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 2), "p/a=GkIn ^go; p/m=GkMerge p/a p/n; p/n=GkNext p/m");
  MAP(&o, map);
  o.prefix = "q";
  REQUIRE_OK(import_text(graph, "m=GkMerge b n; n=GkNext m", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 5), "q/m=GkMerge x q/n ^go; q/n=GkNext q/m");
  tn_graph_unref(graph);
}

/* ---- results ---- */

static void import_options__results(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn; y=GkIn");
  tn_import_mapping map[] = { { "b", out(graph, "x", 0) },  { "b:1", out(graph, "x", 0) }, { "zz", out(graph, "x", 0) },
                              { "a:3", out(graph, "x", 0) }, { "s", out(graph, "y", 0) },
                              { "^nn", out(graph, "x", 0) } };
  tn_import_results *results;
  tn_import_options o = no_options();
  o.prefix = "p";
  o.results = &results;
  o.return_outputs = (const char *const[]){ "b", "s:0", "a", "two:1" };
  o.n_return_outputs = 4;
  o.return_operations = (const char *const[]){ "a", "s" };
  o.n_return_operations = 2;
  MAP(&o, map);
  REQUIRE_OK(import_text(graph, "a=GkConst; s=GkAdd a b; two=GkSplit a", &o, &err), &err);
  static const char *const wanted[] = { "x", "y", "p/a", "p/two" };
  for (size_t i = 0; i < 4; i++) CHECK_STR(tn_operation_name(tn_import_results_output(results, i).op), wanted[i]);
  CHECK_INT(tn_import_results_output(results, 3).index, 1);
  CHECK_NULL(tn_import_results_output(results, 4).op);
  CHECK(tn_import_results_operation(results, 0) == tn_graph_find(graph, "p/a"));
  CHECK(tn_import_results_operation(results, 1) == tn_graph_find(graph, "p/s")); /* not the mapped operation */
  CHECK_NULL(tn_import_results_operation(results, 2));
  CHECK_STR(tn_import_results_prefix(results), "p");
  int missing = 0, unused = 0;
  for (size_t i = 0; i < tn_import_results_n_unused(results); i++) {
    tn_bool is_missing;
    const char *source = tn_import_results_unused(results, i, &is_missing);
    CHECK_MSG(is_missing == (strcmp(source, "s") != 0), "%s", source); /* the file has an s, which is not read */
    missing += is_missing;
    unused++;
  }
  CHECK_INT(unused, 5);
  CHECK_INT(missing, 4);
  CHECK_NULL(tn_import_results_unused(results, 5, NULL));
  tn_import_results_free(results);
  tn_graph_unref(graph);
}

static void import_options__missing_results_are_errors(void)
{
  tn_graph *graph = graph_of("x=GkIn");
  tn_import_results *results;
  tn_import_options o = no_options();
  const char *name = "q";
  o.return_outputs = &name;
  o.n_return_outputs = 1;
  check_refused(graph, "a=GkConst", &o, "tn_import_options.results is NULL, but return_outputs are requested");
  o.results = &results;
  check_refused(graph, "a=GkConst", &o, "return output 'q' belongs to no node of the file");
  check_refused(graph, "", &o, "return output 'q' belongs to no node of the file");
  name = "x"; /* in the graph, not in the file */
  check_refused(graph, "a=GkConst", &o, "return output 'x' belongs to no node of the file");
  name = "a:1";
  check_refused(graph, "a=GkConst", &o, "return output 'a:1': node 'a' (GkConst) has 1 outputs");
  name = "^a";
  check_refused(graph, "a=GkConst", &o, "return output '^a' is not an output name");
  name = NULL;
  check_refused(graph, "a=GkConst", &o, "tn_import_options.return_outputs[0] is NULL");
  o.n_return_outputs = 0;
  o.return_operations = (const char *const[]){ "a:0" };
  o.n_return_operations = 1;
  check_refused(graph, "a=GkConst", &o, "return operation 'a:0' is not a node of the file");
  tn_import_results_free(NULL);
  CHECK_NULL(tn_import_results_output(NULL, 0).op);
  CHECK_STR(tn_import_results_prefix(NULL), "");
  CHECK_INT(tn_import_results_n_unused(NULL), 0);
  tn_graph_unref(graph);
}

/* ---- the struct ---- */

/* A program built with an older header passes a shorter struct. */
static void import_options__older_structs(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = graph_of("x=GkIn");
  tn_import_options o;
  memset(&o, 0xff, sizeof o);
  o.struct_size = TN_SIZE_TO(tn_import_options, file);
  o.flags = 0;
  o.file = "m.pb";
  CHECK_OK(import_text(graph, "y=GkPass x", &o, &err), &err);
  o.struct_size = TN_SIZE_TO(tn_import_options, default_device);
  o.prefix = "p";
  o.default_device = NULL;
  CHECK_OK(import_text(graph, "z=GkIn", &o, &err), &err);
  CHECK_STR(nodes_of(graph, 1), "y=GkPass x; p/z=GkIn");
  o.struct_size = TN_SIZE_TO(tn_import_options, flags);
  CHECK_STATUS(import_text(graph, "a=GkIn", &o, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "tn_import_options.struct_size is");
  o = no_options();
  o.flags = 1 << 20;
  CHECK_STATUS(import_text(graph, "a=GkIn", &o, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "unknown bits 0x100000");
  tn_error_clear(&err);
  tn_graph_unref(graph);
}

/* ---- memory ---- */

static tn_status sweep(void *arg)
{
  const gk_bytes *g = arg;
  tn_graph *graph;
  tn_status st = tn_graph_create(&graph, NULL);
  if (st != TN_OK) return st;
  st = tn_graph_import(graph, g[0].data, g[0].size, NULL, NULL);
  size_t n = tn_graph_n_operations(graph);
  tn_operation *x = tn_graph_find(graph, "x");
  tn_import_mapping map[] = { { "b", { x, 0 } }, { "^k", { x, 0 } }, { "none", { x, 0 } } };
  tn_import_results *results = NULL;
  for (int flags = 0; st == TN_OK && flags < 2; flags++) {
    tn_import_options o = no_options();
    o.flags = flags ? TN_IMPORT_UNIQUIFY_NAMES : TN_IMPORT_UNIQUIFY_PREFIX | TN_IMPORT_SKIP_MAPPED_NODES;
    o.prefix = flags ? NULL : "p";
    o.control_inputs = &x;
    o.n_control_inputs = 1;
    o.return_outputs = (const char *const[]){ "y" };
    o.n_return_outputs = 1;
    o.results = &results;
    o.default_device = "/device:CPU:0";
    MAP(&o, map);
    st = tn_graph_import(graph, g[1].data, g[1].size, &o, NULL);
    if (st != TN_OK) CHECK(results == NULL && tn_graph_n_operations(graph) == n); /* all or nothing */
    n = tn_graph_n_operations(graph);
    tn_import_results_free(results);
  }
  tn_graph_unref(graph);
  return st;
}

static void import_options__without_memory(void)
{
  gk_bytes g[2] = { { 0 }, { 0 } }, node = { 0 };
  add_nodes(&g[0], "x=GkIn; y=GkIn; p/q=GkIn");
  add_nodes(&g[1], "y=GkAdd a b ^k; a=GkIn; b=GkIn");
  gk_node(&node, "z", "GkRun", "^a");
  put_class(&node, (const char *const[]){ "loc:@a", NULL });
  gk_add_node(&g[1], &node);
  tn_test_oom_sweep(sweep, g);
  gk_bytes_free(&g[0]);
  gk_bytes_free(&g[1]);
}

/* ---- during steps of sessions ---- */

enum { RUNNERS = 4, IMPORTERS = 2, IMPORTS = 60 };

typedef struct side {
  ts t;
  const gk_bytes *file;
  atomic_int *importing;
  int right, wrong;
  pthread_t thread;
} side;

/* Repeatedly computes (x + y) * 2, and each new copy. */
static void *run_steps(void *arg)
{
  side *s = arg;
  int last = 0;
  while (atomic_load(s->importing) > 0 || last == 0) {
    float got = ts_run1(&s->t, FEEDS({ "x", 1 }, { "y", (float)last }), "twice");
    s->right += got == 2 * (1 + (float)last);
    s->wrong += got != 2 * (1 + (float)last);
    last++;
    size_t n = tn_graph_n_operations(s->t.graph);
    tn_operation *newest = tn_graph_operation(s->t.graph, n - 1); /* published with all its inputs */
    if (strncmp(tn_operation_name(newest), "copy", 4) != 0) continue;
    got = ts_run1(&s->t, FEEDS({ "x", 5 }), tn_operation_name(newest));
    s->right += got == -5;
    s->wrong += got != -5;
  }
  return NULL;
}

static void *import_copies(void *arg)
{
  side *s = arg;
  tn_import_mapping map[] = { { "in", { tn_graph_find(s->t.graph, "x"), 0 } } };
  for (int i = 0; i < IMPORTS; i++) {
    tn_import_options o = no_options();
    o.prefix = "copy";
    o.flags = TN_IMPORT_UNIQUIFY_PREFIX;
    MAP(&o, map);
    s->wrong += tn_graph_import(s->t.graph, s->file->data, s->file->size, &o, &s->t.err) != TN_OK;
    /* rejected, without visible effect */
    s->wrong += tn_graph_import(s->t.graph, "\x0a\x03\x0a\x01", 4, &o, NULL) == TN_OK;
  }
  atomic_fetch_sub(s->importing, 1);
  return NULL;
}

static void import_options__import_during_steps(void) /* S-GRA-10, S-GRA-13 */
{
  ts t;
  gk_bytes file = { 0 }, node = { 0 };
  ts_open(&t, 1);
  gk_node(&node, "one", "Neg", "in");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&file, &node);
  gk_node(&node, "two", "Neg", "one");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&file, &node);
  gk_node(&node, "three", "Neg", "two");
  gk_attr_type(&node, "T", TN_FLOAT);
  gk_add_node(&file, &node);
  size_t before = tn_graph_n_operations(t.graph);
  atomic_int importing = IMPORTERS;
  side sides[RUNNERS + IMPORTERS];
  for (int i = 0; i < RUNNERS + IMPORTERS; i++) {
    sides[i] = (side){ .t = t, .file = &file, .importing = &importing };
    sides[i].t.err = (tn_error)TN_ERROR_INIT;
    REQUIRE_INT(pthread_create(&sides[i].thread, NULL, i < RUNNERS ? run_steps : import_copies, &sides[i]), 0);
  }
  for (int i = 0; i < RUNNERS + IMPORTERS; i++) {
    pthread_join(sides[i].thread, NULL);
    CHECK_MSG(sides[i].wrong == 0, "thread %d: %d wrong: %s", i, sides[i].wrong, tn_error_message(&sides[i].t.err));
    CHECK(i >= RUNNERS || sides[i].right > 0);
    tn_error_clear(&sides[i].t.err);
  }
  CHECK_INT(tn_graph_n_operations(t.graph) - before, 3 * IMPORTERS * IMPORTS);
  CHECK(tn_graph_find(t.graph, "copy_119/three") != NULL);
  ts_fini(&t);
  gk_bytes_free(&file);
}

TAP_MAIN(
    TAP_TEST(import_options__prefix),
    TAP_TEST(import_options__invalid_prefixes_are_rejected),
    TAP_TEST(import_options__unique_names),
    TAP_TEST(import_options__unique_prefix),
    TAP_TEST(import_options__many_copies),
    TAP_TEST(import_options__colocation),
    TAP_TEST(import_options__default_device),
    TAP_TEST(import_options__export_of_changed_nodes),
    TAP_TEST(import_options__input_map),
    TAP_TEST(import_options__controls_mapped_to_one),
    TAP_TEST(import_options__invalid_maps_are_rejected),
    TAP_TEST(import_options__mapped_types_are_checked),
    TAP_TEST(import_options__skip_mapped_nodes),
    TAP_TEST(import_options__control_inputs),
    TAP_TEST(import_options__control_inputs_of_loops),
    TAP_TEST(import_options__results),
    TAP_TEST(import_options__missing_results_are_errors),
    TAP_TEST(import_options__older_structs),
    TAP_TEST(import_options__without_memory),
    TAP_TEST(import_options__import_during_steps))
