/* SPDX-License-Identifier: Apache-2.0 */
/* What an import may take is bounded by the size of its file. */
#include "tests/support/graph_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- files that ask for much ---- */

/* The shortest nodes that there are: a name, an op. */
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

/* An attribute with n items without content, of a kind that takes 16 bytes for each of their two. */
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

/* Functions without a name, which nothing can call. */
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

/* The least budget with which the file is read. */
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

/* What is counted is what is taken, but for the last block of the graph's arena. */
static void import_budget__no_file_takes_more_than_it(void)
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
    CHECK_MSG(taken <= least + (1 << 20), "%s: %llu taken, %zu counted", name, (unsigned long long)taken, least);
    tap_note("%s: %zu bytes; for each one %.1f are kept, and the least budget is %.1f; %.0f ms for each MB", name, g.size,
             (double)taken / (double)g.size, (double)least / (double)g.size, ms * 1e6 / (double)g.size);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    gk_bytes_free(&g);
  }
}

static void import_budget__more_is_refused_by_name(void)
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
              (long long)(tn_test_live_bytes() - before)); /* a first segment and index stay with the graph */
    o.budget = 100 * g.size + (1 << 20);
    CHECK_OK(tn_graph_import(graph, g.data, g.size, &o, &err), &err);
    tn_graph_unref(graph);
    tn_error_clear(&err);
    gk_bytes_free(&g);
  }
}

/* Nodes that are none are found before there is room for all that follow them. */
static void import_budget__claims_are_not_believed(void)
{
  tn_error err = TN_ERROR_INIT;
  gk_bytes g = { 0 };
  for (int i = 0; i < 1000000; i++) gk_data(&g, 1, "", 0);
  tn_graph *graph = gk_new_graph();
  tn_import_options o = named(100000);
  CHECK_STATUS(tn_graph_import(graph, g.data, g.size, &o, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "h.pb: byte 2: '' is no valid name of a node");
  tn_graph_unref(graph);
  tn_error_clear(&err);
  gk_bytes_free(&g);
}

/* The budget is that of one import: a small file goes into a graph of any size, any number of times. */
static void import_budget__is_of_one_import(void)
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
  tn_operation_builder *b = tn_operation_begin(graph, "GkRun", "built", 0); /* which knows no budget */
  CHECK_OK(tn_operation_finish(b, NULL, &err), &err);
  tn_graph_unref(graph);
  gk_bytes_free(&big);
  gk_bytes_free(&small);
}

TAP_MAIN(
    TAP_TEST(import_budget__no_file_takes_more_than_it),
    TAP_TEST(import_budget__more_is_refused_by_name),
    TAP_TEST(import_budget__claims_are_not_believed),
    TAP_TEST(import_budget__is_of_one_import))
