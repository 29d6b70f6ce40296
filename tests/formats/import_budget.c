/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an import is bounded by the size of its file. */
#include "conformance/support/graph_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- files that need much memory ---- */

/* The shortest possible nodes: a name and an op. */
static void tiny_nodes(gk_bytes *g, size_t n)
{
  static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (size_t i = 0; i < n; i++) {
    gk_bytes node = { 0 };
    char name[16];
    size_t k = 0;
    for (size_t rest = i; rest > 0 || k == 0; rest /= 62) name[k++] = digits[rest % 62];
    name[k] = 0;
    gk_text(&node, 1, name);
    gk_text(&node, 2, "u");
    gk_add_node(g, &node);
  }
}

/* A node with n attributes without values. */
static void many_attributes(gk_bytes *g, size_t n)
{
  gk_bytes node = { 0 };
  gk_node(&node, "attributes", "u", NULL);
  for (size_t i = 0; i < n; i++) gk_data(&node, 5, "\x0a\x01k", 3);
  gk_add_node(g, &node);
}

/* An attribute with n items without content, of a kind that takes 16 bytes for each of its two. */
static void long_list(gk_bytes *g, size_t n)
{
  gk_bytes node = { 0 }, list = { 0 }, value = { 0 };
  for (size_t i = 0; i < n; i++) gk_data(&list, 7, "", 0);
  gk_message(&value, 1, &list);
  gk_node(&node, "shapes", "GkAttrs", NULL);
  gk_attr(&node, "lsh", &value);
  gk_add_node(g, &node);
}

static void many_inputs(gk_bytes *g, size_t n)
{
  gk_bytes node = { 0 };
  gk_in(g, "x");
  gk_node(&node, "inputs", "u", NULL);
  for (size_t i = 0; i < n; i++) gk_text(&node, 3, "x");
  gk_add_node(g, &node);
}

/* Functions without a name, which cannot be called. */
static void many_functions(gk_bytes *g, size_t n)
{
  gk_bytes library = { 0 };
  for (size_t i = 0; i < n; i++) gk_data(&library, 1, "", 0);
  gk_message(g, 2, &library);
}

static const struct hostile {
  void (*make)(gk_bytes *g, size_t n);
  size_t n;
  const char *name, *where;
} hostile[] = {
  { tiny_nodes, 20000, "tiny nodes", "" },
  { many_attributes, 60000, "attributes", "node 'attributes'" },
  { long_list, 100000, "a list", "node 'shapes'" },
  { many_inputs, 100000, "inputs", "node 'inputs'" },
  { many_functions, 100000, "functions", "" },
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

/* ---- tests ---- */

static tn_import_options named(uint64_t budget)
{
  return (tn_import_options){ .struct_size = sizeof(tn_import_options), .file = "h.pb", .budget = budget };
}

static double now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The smallest budget with which the file is read. */
static size_t least_budget(const gk_bytes *g)
{
  size_t low = 0, high = 64 * g->size;
  while (low + 1 < high) {
    tn_graph *graph = gk_new_graph();
    tn_import_options o = named(low + (high - low) / 2);
    if (tn_graph_import(graph, g->data, g->size, &o, NULL) == TN_OK)
      high = (size_t)o.budget;
    else
      low = (size_t)o.budget;
    tn_graph_unref(graph);
  }
  return high;
}

/* The memory counted is the memory used, except for the last block of the graph's arena. */
static void import_budget__bounds_every_import(void)
{
  for (size_t i = 0; i < HOSTILE; i++) {
    tn_error err = TN_ERROR_INIT;
    gk_bytes g = { 0 };
    tn_graph *graph = gk_new_graph();
    hostile[i].make(&g, hostile[i].n);
    uint64_t before = tn_test_live_bytes();
    double start = now_ms();
    CHECK_OK(tn_graph_import(graph, g.data, g.size, NULL, &err), &err);
    double ms = now_ms() - start;
    uint64_t taken = tn_test_live_bytes() - before - g.size;
    size_t least = least_budget(&g);
    CHECK_MSG(least < 64 * g.size, "%s", hostile[i].name);
    const char *name = hostile[i].name;
    CHECK_MSG(taken <= least + (1 << 20), "%s: %llu used, %zu counted", name, (unsigned long long)taken, least);
    tap_note("%s: %zu bytes; for each one %.1f are kept, and the least budget is %.1f; %.0f ms for each MB", name,
             g.size, (double)taken / (double)g.size, (double)least / (double)g.size, ms * 1e6 / (double)g.size);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    gk_bytes_free(&g);
  }
}

static void import_budget__the_error_names_the_budget(void)
{
  for (size_t i = 0; i < HOSTILE; i++) {
    tn_error err = TN_ERROR_INIT;
    gk_bytes g = { 0 };
    tn_graph *graph = gk_new_graph();
    hostile[i].make(&g, hostile[i].n);
    uint64_t before = tn_test_live_bytes();
    tn_import_options o = named(g.size);
    CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &o, &err), TN_RESOURCE_EXHAUSTED, &err);
    char wanted[200];
    snprintf(wanted, sizeof wanted,
             "the import takes more memory than its budget of %zu bytes (tn_import_options.budget)", g.size);
    CHECK_CONTAINS(tn_error_message(&err), wanted);
    CHECK_CONTAINS(tn_error_message(&err), "h.pb: ");
    CHECK_CONTAINS(tn_error_message(&err), hostile[i].where);
    CHECK_INT(tn_graph_n_operations(graph), 0);
    tn_error_clear(&err);
    CHECK_MSG(tn_test_live_bytes() < before + 100000, "file %zu left %lld", i,
              (long long)(tn_test_live_bytes() - before)); /* the graph keeps a first segment and index */
    o.budget = 100 * g.size + (1 << 20);
    CHECK_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    gk_bytes_free(&g);
  }
}

/* Invalid nodes are rejected before room is made for the nodes that are claimed to follow. */
static void import_budget__claims_do_not_allocate(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  for (int i = 0; i < 1000000; i++) gk_data(&g, 1, "", 0);
  tn_graph *graph = gk_new_graph();
  tn_import_options o = named(100000);
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &o, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "h.pb: byte 2: '' is not a valid node name");
  tn_graph_unref(graph);
  tn_error_clear(&err);
  gk_bytes_free(&g);
}

/* The budget applies to one import: a small file can be imported any number of times, into a
 * graph of any size. */
static void import_budget__applies_to_each_import(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes big = { 0 }, small = { 0 };
  tn_graph *graph = gk_new_graph();
  tiny_nodes(&big, 5000);
  gk_in(&small, "node");
  REQUIRE_OK(tn_graph_import(graph, big.data, big.size, NULL, &err), &err);
  for (int i = 0; i < 3000; i++) {
    char prefix[16];
    tn_import_options o = named(4000);
    snprintf(prefix, sizeof prefix, "p%d", i);
    o.prefix = prefix;
    REQUIRE_OK(tn_graph_import(graph, small.data, small.size, &o, &err), &err);
  }
  CHECK_INT(tn_graph_n_operations(graph), 8000);
  tn_operation_builder *b = tn_operation_begin(graph, "GkRun", "built", 0); /* built nodes have no budget */
  CHECK_OK(tn_operation_finish(b, NULL, &err), &err);
  tn_graph_unref(graph);
  gk_bytes_free(&big);
  gk_bytes_free(&small);
}

/* ---- functions ---- */

enum { SOON = 4000 /* ms; these take milliseconds, or minutes if every pair is compared */ };

/* name() -> (o0: float, ...) with n outputs, each from node "c"; and a default of attribute "t"
 * if there is one. */
static void put_function(gk_bytes *library, const char *name, size_t n, gk_bytes *tensor)
{
  gk_bytes f = { 0 }, signature = { 0 }, node = { 0 };
  gk_text(&signature, 1, name);
  for (size_t i = 0; i < n; i++) {
    gk_bytes arg = { 0 };
    char text[24];
    snprintf(text, sizeof text, "o%zu", i);
    gk_text(&arg, 1, text);
    gk_int(&arg, 3, TN_FLOAT);
    gk_message(&signature, 3, &arg);
  }
  if (tensor != NULL) {
    gk_bytes attr = { 0 }, value = { 0 };
    gk_text(&attr, 1, "t");
    gk_text(&attr, 2, "tensor");
    gk_message(&value, 8, tensor);
    gk_message(&attr, 3, &value);
    gk_message(&signature, 4, &attr);
  }
  gk_message(&f, 1, &signature);
  gk_node(&node, "c", "NoSuchOp", NULL);
  gk_message(&f, 3, &node);
  for (size_t i = 0; i < n; i++) {
    gk_bytes ret = { 0 };
    char text[24];
    snprintf(text, sizeof text, "o%zu", n - 1 - i);
    gk_text(&ret, 1, text);
    gk_text(&ret, 2, "c:out:0");
    gk_message(&f, 4, &ret);
  }
  gk_message(library, 1, &f);
}

/* Function "f<i>", whose gradient is "f<i - 1>". */
static tn_status import_function(tn_graph *graph, int i, size_t n_outputs, tn_error *err)
{
  gk_bytes g = { 0 }, library = { 0 }, gradient = { 0 };
  char name[24], before[24];
  snprintf(name, sizeof name, "f%d", i);
  snprintf(before, sizeof before, "f%d", i - 1);
  put_function(&library, name, n_outputs, NULL);
  if (i > 0) gk_text(&gradient, 1, name);
  if (i > 0) gk_text(&gradient, 2, before);
  if (i > 0) gk_message(&library, 2, &gradient);
  gk_message(&g, 2, &library);
  tn_import_options o = named(4000);
  tn_status st = tn_graph_import(graph, g.data, g.size, &o, err);
  gk_bytes_free(&g);
  return st;
}

/* A library may be imported in any number of parts: no import copies the functions of the
 * others. */
static void import_budget__a_library_can_be_imported_in_parts(void)
{
  enum { N = 4000 };
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  uint64_t before = tn_test_live_bytes();
  for (int i = 0; i < N; i++) REQUIRE_OK(import_function(graph, i, 1, &err), &err);
  uint64_t each = (tn_test_live_bytes() - before) / N;
  CHECK_MSG(each < 4000, "%llu bytes for each function", (unsigned long long)each);
  CHECK_STATUS(import_function(graph, N / 2, 2, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "function 'f2000' exists with another definition");
  CHECK_OK(import_function(graph, N / 2, 1, &err), &err); /* it exists */
  CHECK_INT(tn_graph_n_functions(graph), N);
  for (int i = 0; i < N; i++) {
    char name[24], gradient[24];
    snprintf(name, sizeof name, "f%d", i);
    snprintf(gradient, sizeof gradient, "f%d", i - 1);
    const tn_function *f = tn_graph_find_function(graph, name);
    REQUIRE_PTR(f);
    CHECK(f == tn_graph_function(graph, (size_t)i));
    const char *found = tn_graph_gradient(graph, name);
    CHECK(i == 0 ? found == NULL : found != NULL && strcmp(found, gradient) == 0);
  }
  CHECK_NULL(tn_graph_find_function(graph, "f"));
  CHECK_NULL(tn_graph_find_function(graph, "f4000"));
  tn_graph_unref(graph);
  tn_error_clear(&err);
}

/* An import that fails after reading its functions leaves the graph's functions unchanged. */
static void import_budget__a_failed_import_leaves_no_functions(void)
{
  tn_error err = TN_ERROR_INIT;
  tn_graph *graph = gk_new_graph();
  for (int i = 0; i < 3; i++) REQUIRE_OK(import_function(graph, i, 1, &err), &err);
  gk_bytes g = { 0 }, library = { 0 }, node = { 0 };
  put_function(&library, "other", 1, NULL);
  gk_message(&g, 2, &library);
  gk_node(&node, "n", "other", "absent");
  gk_add_node(&g, &node);
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_INT(tn_graph_n_functions(graph), 3);
  CHECK_NULL(tn_graph_find_function(graph, "other"));
  for (int i = 3; i < 9; i++) CHECK_OK(import_function(graph, i, 1, &err), &err);
  CHECK_STR(tn_function_name(tn_graph_function(graph, 3)), "f3");
  CHECK_STR(tn_function_name(tn_graph_find_function(graph, "f8")), "f8");
  CHECK_STR(tn_graph_gradient(graph, "f1"), "f0");
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

static void import_budget__outputs_of_functions_are_found_quickly(void)
{
  enum { N = 100000 };
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, library = { 0 };
  put_function(&library, "F", N, NULL);
  gk_message(&g, 2, &library);
  double start = now_ms();
  tn_graph *graph = gk_import(&g, &err);
  double ms = now_ms() - start;
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  CHECK_MSG(ms < SOON, "%.0f ms", ms);
  const tn_function *f = tn_graph_function(graph, 0);
  CHECK_STR(tn_function_output_name(f, N - 1), "o99999");
  CHECK_STR(tn_function_output_source(f, N - 1), "c:out:0");
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

/* A few bytes can describe a tensor of a gigabyte. Defaults in signatures are read immediately,
 * so they count. */
static void import_budget__defaults_of_functions_count(void)
{
  tn_error err = TN_ERROR_INIT;
  for (int is_text = 0; is_text < 2; is_text++) {
    gk_bytes g = { 0 }, library = { 0 }, tensor = { 0 }, shape = { 0 };
    gk_shape(&shape, (const int64_t[]){ is_text ? 1 << 19 : 1 << 28 }, 1);
    gk_int(&tensor, 1, is_text ? TN_STRING : TN_FLOAT);
    gk_message(&tensor, 2, &shape);
    if (is_text) gk_text(&tensor, 8, "sixty-four bytes of text that are copied to every single element");
    put_function(&library, "F", 1, &tensor);
    gk_message(&g, 2, &library);
    uint64_t before = tn_test_live_bytes();
    CHECK_NULL(gk_import(&g, &err));
    CHECK_INT(tn_error_code(&err), TN_RESOURCE_EXHAUSTED);
    CHECK_CONTAINS(tn_error_message(&err), "the import takes more memory than its budget");
    CHECK_INT(tn_test_live_bytes(), before);
    gk_bytes_free(&g);
    tn_error_clear(&err);
  }
}

static tn_status import_pieces(void *unused)
{
  (void)unused;
  tn_graph *graph;
  tn_status st = tn_graph_create(&graph, NULL);
  for (int i = 0; st == TN_OK && i < 4; i++) {
    st = import_function(graph, i, 1, NULL);
    CHECK_INT(tn_graph_n_functions(graph), i + (st == TN_OK));
  }
  tn_graph_unref(graph);
  return st;
}

static void import_budget__parts_are_complete_or_absent_without_memory(void)
{
  gk_register();
  tn_test_oom_sweep(import_pieces, NULL);
}

/* Values read for functions are freed if the import fails later. */
static void import_budget__defaults_of_a_failed_import_are_freed(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, library = { 0 }, tensor = { 0 }, shape = { 0 }, node = { 0 };
  tn_graph *graph = gk_new_graph();
  REQUIRE_OK(import_function(graph, 0, 1, &err), &err);
  gk_shape(&shape, (const int64_t[]){ 1 << 20 }, 1);
  gk_int(&tensor, 1, TN_FLOAT);
  gk_message(&tensor, 2, &shape);
  put_function(&library, "F", 1, &tensor);
  gk_message(&g, 2, &library);
  gk_node(&node, "n", "F", "absent");
  gk_add_node(&g, &node);
  uint64_t before = tn_test_live_bytes();
  for (int i = 0; i < 3; i++)
    CHECK_STATUS(tn_graph_import(graph, g.data, g.size, NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_error_clear(&err);
  CHECK_MSG(tn_test_live_bytes() < before + 100000, "%lld bytes left", (long long)(tn_test_live_bytes() - before));
  tn_graph_unref(graph);
  gk_bytes_free(&g);
}

/* ---- attributes ---- */

/* As tools do: looks up all attributes of a node by name. */
static void import_budget__attributes_are_found_quickly(void)
{
  enum { N = 65000 };
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 }, node = { 0 };
  char name[24];
  gk_node(&node, "n", "u", NULL);
  gk_attr_int(&node, "a00007", -1); /* the last of two with the same name counts */
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof name, "a%05d", (i * 7) % N);
    gk_attr_int(&node, name, (i * 7) % N);
  }
  gk_add_node(&g, &node);
  tn_graph *graph = gk_import(&g, &err);
  REQUIRE_MSG(graph != NULL, "%s", tn_error_message(&err));
  const tn_operation *op = tn_graph_find(graph, "n");
  CHECK_INT(tn_operation_n_attrs(op), N + 1);
  double start = now_ms();
  size_t wrong = 0;
  for (size_t i = 0; i < tn_operation_n_attrs(op); i++) {
    const char *attr = tn_operation_attr_name(op, i);
    int64_t value;
    wrong += tn_operation_attr_int(op, attr, &value, NULL) != TN_OK || value != atoi(attr + 1);
  }
  double ms = now_ms() - start;
  CHECK_INT(wrong, 0);
  CHECK_MSG(ms < SOON, "%.0f ms", ms);
  CHECK_INT(tn_operation_attr_kind(op, "a0000"), TN_ATTR_NONE);
  CHECK_INT(tn_operation_attr_kind(op, "a99999"), TN_ATTR_NONE);
  tn_graph_unref(graph);
  gk_bytes_free(&g);
  tn_error_clear(&err);
}

TAP_MAIN(
    TAP_TEST(import_budget__bounds_every_import),
    TAP_TEST(import_budget__the_error_names_the_budget),
    TAP_TEST(import_budget__claims_do_not_allocate),
    TAP_TEST(import_budget__applies_to_each_import),
    TAP_TEST(import_budget__a_library_can_be_imported_in_parts),
    TAP_TEST(import_budget__a_failed_import_leaves_no_functions),
    TAP_TEST(import_budget__outputs_of_functions_are_found_quickly),
    TAP_TEST(import_budget__defaults_of_functions_count),
    TAP_TEST(import_budget__parts_are_complete_or_absent_without_memory),
    TAP_TEST(import_budget__defaults_of_a_failed_import_are_freed),
    TAP_TEST(import_budget__attributes_are_found_quickly))
