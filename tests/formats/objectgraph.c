/* SPDX-License-Identifier: Apache-2.0 */
/* Object graphs of checkpoints: paths through them, and graphs that no program would write. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <core/formats/objectgraph/objectgraph.h>
#include <core/formats/sink.h>

#include "conformance/support/oom.h"

static tn_error err;

/* ---- making graphs ---- */

static tn__sink message;
static size_t node_place;

static tn__slice text(const char *s) { return tn__slice_of(s); }

static void begin(void)
{
  tn__sink_fini(&message);
  message = tn__sink_memory(NULL);
}

static void begin_node(void)
{
  tn__sink_tag(&message, 1, 2);
  node_place = tn__sink_begin(&message);
}

static void end_node(void) { tn__sink_end(&message, node_place); }

static void add_child(int64_t node, const char *name)
{
  tn__sink_tag(&message, 1, 2);
  size_t place = tn__sink_begin(&message);
  tn__sink_int(&message, 1, (uint64_t)node);
  tn__sink_bytes(&message, 2, text(name));
  tn__sink_end(&message, place);
}

static void add_attribute(const char *name, const char *full_name, const char *key)
{
  tn__sink_tag(&message, 2, 2);
  size_t place = tn__sink_begin(&message);
  tn__sink_bytes(&message, 1, text(name));
  tn__sink_bytes(&message, 2, text(full_name));
  tn__sink_bytes(&message, 3, text(key));
  tn__sink_end(&message, place);
}

static void add_slot(int64_t variable, const char *name, int64_t node)
{
  tn__sink_tag(&message, 3, 2);
  size_t place = tn__sink_begin(&message);
  tn__sink_int(&message, 1, (uint64_t)variable);
  tn__sink_bytes(&message, 2, text(name));
  tn__sink_int(&message, 3, (uint64_t)node);
  tn__sink_end(&message, place);
}

/* A node that is a variable. */
static void add_variable(const char *full_name, const char *key)
{
  begin_node();
  add_attribute("VARIABLE_VALUE", full_name, key);
  end_node();
}

static tn__slice bytes(void) { return (tn__slice){ message.data, message.used }; }

static tn__object_graph *read_graph(void)
{
  tn__object_graph *graph = NULL;
  REQUIRE_INT(message.status, TN_OK);
  REQUIRE_OK(tn__object_graph_read(bytes(), "ckpt", &graph, &err), &err);
  return graph;
}

/* A model whose layers share a variable, a table, an optimizer with slots, and cycles. */
static tn__object_graph *model(void)
{
  begin();
  begin_node(); /* 0 */
  add_child(1, "model");
  add_child(6, "optimizer");
  end_node();
  begin_node(); /* 1 */
  add_child(1, "self");
  add_child(0, "parent");
  add_child(2, "layer-0");
  add_child(3, "layer-1");
  add_child(8, "table");
  end_node();
  begin_node(); /* 2 */
  add_child(4, "kernel");
  end_node();
  begin_node(); /* 3 */
  add_child(4, "kernel");
  add_child(5, "bias/raw");
  end_node();
  add_variable("dense/kernel", "K"); /* 4 */
  add_variable("dense/bias", "B");   /* 5 */
  begin_node();                      /* 6 */
  add_slot(4, "m", 7);
  add_slot(4, "v", 9);
  add_slot(5, "m", 10);
  end_node();
  add_variable("Adam", "K.m"); /* 7 */
  begin_node();                /* 8 */
  add_attribute("table", "", "T");
  end_node();
  add_variable("Adam", "K.v");   /* 9 */
  add_variable("Adam_1", "B.m"); /* 10 */
  return read_graph();
}

/* The key to which a path leads, with its suffix. */
static const char *resolve(const tn__object_graph *graph, const char *path)
{
  static char found[200];
  tn__object_key key;
  tn_error_clear(&err);
  if (tn__object_graph_resolve(graph, path, &key, &err) != TN_OK) return "";
  snprintf(found, sizeof found, "%.*s%.*s", (int)key.key.size, key.key.data, (int)key.suffix.size,
           key.suffix.size == 0 ? "" : key.suffix.data);
  return found;
}

static void check_nowhere(const tn__object_graph *graph, const char *path, const char *why)
{
  tn__object_key key;
  tn_error_clear(&err);
  CHECK_STATUS(tn__object_graph_resolve(graph, path, &key, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), why);
  CHECK_CONTAINS(tn_error_message(&err), "'ckpt': path '");
}

/* ---- paths ---- */

static void objectgraph__paths_join_the_names_of_objects(void)
{
  tn__object_graph *graph = model();
  CHECK_STR(resolve(graph, "model/layer-0/kernel"), "K");
  CHECK_STR(resolve(graph, "model/layer-1/kernel"), "K");
  CHECK_STR(resolve(graph, "model/layer-1/bias%2Fraw"), "B");
  CHECK_STR(resolve(graph, "model/layer-1/bias%2fraw"), "B");
  CHECK_STR(resolve(graph, "model/layer-1/kernel:VARIABLE_VALUE"), "K");
  tn__object_graph_destroy(graph);
}

static void objectgraph__paths_may_lead_through_cycles(void)
{
  tn__object_graph *graph = model();
  CHECK_STR(resolve(graph, "model/self/self/parent/model/parent/model/layer-0/kernel"), "K");
  tn__object_graph_destroy(graph);
}

static void objectgraph__an_attribute_follows_a_colon(void)
{
  tn__object_graph *graph = model();
  CHECK_STR(resolve(graph, "model/table:table"), "T");
  CHECK_STR(resolve(graph, "model/table:table-keys"), "T-keys");
  CHECK_STR(resolve(graph, "model/self/table:table-values"), "T-values");
  check_nowhere(graph, "model/table:keys", "'model/table' has no attribute 'keys'; it has ':table'");
  check_nowhere(graph, "model/layer-0/kernel:VARIABLE_VALUES", "it has ':VARIABLE_VALUE'");
  tn__object_graph_destroy(graph);
}

static void objectgraph__slots_are_named_by_optimizer_and_variable(void)
{
  tn__object_graph *graph = model();
  CHECK_STR(resolve(graph, "optimizer:m(model/layer-0/kernel)"), "K.m");
  CHECK_STR(resolve(graph, "model/parent/optimizer:v(model/layer-1/kernel)"), "K.v");
  CHECK_STR(resolve(graph, "optimizer:m(model/layer-1/bias%2Fraw)"), "B.m");
  check_nowhere(graph, "optimizer:v(model/layer-1/bias%2Fraw)",
                "'optimizer' has no slot 'v' for 'model/layer-1/bias%2Fraw'; it has 'm'");
  check_nowhere(graph, "optimizer:m(model/layer-2/kernel)", "'model' has no 'layer-2'; it has 'layer-0', 'layer-1'");
  check_nowhere(graph, "optimiser:m(model/layer-0/kernel)", "the root has no 'optimiser'; it has 'optimizer', 'model'");
  check_nowhere(graph, "model:m(model/layer-0/kernel)", "'model' has no slot 'm'");
  tn__object_graph_destroy(graph);
}

static void objectgraph__names_may_have_characters_of_the_syntax(void)
{
  begin();
  begin_node();
  add_child(1, "a:b");
  add_child(2, "o:m(x)");
  add_child(3, "%2F");
  add_child(1, "");
  end_node();
  add_variable("", "1");
  add_variable("", "2");
  add_variable("", "3");
  tn__object_graph *graph = read_graph();
  CHECK_STR(resolve(graph, "a:b"), "1");
  CHECK_STR(resolve(graph, "o:m(x)"), "2");
  CHECK_STR(resolve(graph, "%2F"), "3");
  check_nowhere(graph, "", "the root is no variable");
  check_nowhere(graph, "a", "the root has no 'a'");
  check_nowhere(graph, "a:b/", "'a:b' has no ''; it names nothing");
  check_nowhere(graph, "a:c", "the root has no 'a'");
  tn__object_graph_destroy(graph);
}

static void objectgraph__errors_say_which_part_leads_nowhere(void)
{
  tn__object_graph *graph = model();
  check_nowhere(graph, "model/lajer-0/kernel", "path 'model/lajer-0/kernel' leads nowhere: 'model' has no 'lajer-0'");
  check_nowhere(graph, "model/lajer-0/kernel", "; it has 'layer-0', 'layer-1', 'parent', 'self', 'table'");
  check_nowhere(graph, "model/layer-1", "'model/layer-1' is no variable; it has 'bias%2Fraw', 'kernel'");
  check_nowhere(graph, "model/layer-0/kernel/x", "'model/layer-0/kernel' has no 'x'; it names nothing");
  tn__object_graph_destroy(graph);
}

static void objectgraph__errors_list_the_nearest_of_many_names(void)
{
  char name[40];
  begin();
  begin_node();
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "%d", 100000 + i);
    add_child(1, name);
  }
  add_child(1, "variable_77");
  end_node();
  add_variable("", "1");
  tn__object_graph *graph = read_graph();
  check_nowhere(graph, "variable_7", "the root has no 'variable_7'; it has 'variable_77', '100000', '100001', ");
  CHECK_CONTAINS(tn_error_message(&err), "'100018' and 981 more");
  tn__object_graph_destroy(graph);
}

/* ---- names of variables ---- */

static void objectgraph__variables_are_found_by_their_names(void)
{
  tn__slice key;
  tn__object_graph *graph = model();
  CHECK_INT(tn__object_graph_named(graph, text("dense/kernel"), &key), 1);
  CHECK(tn__slice_is(key, "K"));
  CHECK_INT(tn__object_graph_named(graph, text("Adam_1"), &key), 1);
  CHECK(tn__slice_is(key, "B.m"));
  CHECK_INT(tn__object_graph_named(graph, text("Adam"), &key), 2); /* K.m and K.v */
  CHECK_INT(tn__object_graph_named(graph, text("kernel"), &key), 0);
  CHECK_INT(tn__object_graph_named(graph, text(""), &key), 0);
  tn__object_graph_destroy(graph);
}

/* ---- lists ---- */

static void objectgraph__lists_the_shortest_paths_first(void)
{
  tn__arena arena;
  tn__object_path *paths;
  size_t n, of_kernel = 0, last = 0;
  tn__object_graph *graph = model();
  tn__arena_init(&arena, 1024);
  REQUIRE_OK(tn__object_graph_paths(graph, &arena, &paths, &n, &err), &err);
  REQUIRE(n > 4);
  CHECK_STR(paths[0].path, "model/table:table");
  CHECK(paths[0].attribute);
  CHECK_STR(paths[1].path, "model/layer-0/kernel");
  CHECK_STR(paths[2].path, "model/layer-1/bias%2Fraw");
  CHECK_STR(paths[3].path, "model/layer-1/kernel");
  for (size_t i = 0; i < n; i++) {
    size_t names = 1;
    for (const char *p = paths[i].path; *p != 0; p++) names += *p == '/';
    if (strchr(paths[i].path, '(') == NULL) {
      CHECK_MSG(names >= last, "'%s' is shorter than the path before", paths[i].path);
      last = names;
      of_kernel += tn__slice_is(paths[i].key, "K");
    }
    if (!paths[i].attribute) CHECK(tn__slice_is(paths[i].key, resolve(graph, paths[i].path)));
  }
  CHECK_INT(of_kernel, TN__OBJECT_PATHS);
  CHECK_STR(paths[n - 3].path, "optimizer:m(model/layer-0/kernel)");
  CHECK_STR(paths[n - 2].path, "optimizer:v(model/layer-0/kernel)");
  CHECK_STR(paths[n - 1].path, "optimizer:m(model/layer-1/bias%2Fraw)");
  tn__arena_fini(&arena);
  tn__object_graph_destroy(graph);
}

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t list(const tn__object_graph *graph)
{
  tn__arena arena;
  tn__object_path *paths;
  size_t n = 0;
  double begun = now();
  tn__arena_init(&arena, 1024);
  CHECK_OK(tn__object_graph_paths(graph, &arena, &paths, &n, &err), &err);
  CHECK_MSG(now() - begun < 20, "listing took %.1f s", now() - begun);
  CHECK_MSG(arena.bytes < (size_t)200 << 20, "listing took %zu bytes", arena.bytes);
  tn__arena_fini(&arena);
  return n;
}

static void objectgraph__exponentially_many_paths_are_not_followed(void)
{
  enum { LEVELS = 60 };
  begin();
  for (int i = 0; i < LEVELS; i++) {
    begin_node();
    add_child(i + 1, "a");
    add_child(i + 1, "b");
    end_node();
  }
  add_variable("", "deep");
  tn__object_graph *graph = read_graph();
  CHECK_INT(list(graph), TN__OBJECT_PATHS);
  tn__object_graph_destroy(graph);
}

static void objectgraph__a_long_chain_is_listed_in_bounded_memory(void)
{
  enum { NODES = 100000 };
  begin();
  for (int i = 0; i < NODES; i++) {
    char key[20];
    snprintf(key, sizeof key, "%d", i);
    begin_node();
    add_child(i + 1, "the next one");
    add_attribute("VARIABLE_VALUE", "", key);
    end_node();
  }
  add_variable("", "end");
  tn__object_graph *graph = read_graph();
  size_t n = list(graph);
  CHECK_MSG(n > 1000 && n < NODES, "%zu paths", n);
  tn__object_graph_destroy(graph);
}

static void objectgraph__a_node_with_many_names_is_searched_quickly(void)
{
  enum { NAMES = 200000 };
  char name[20];
  double begun = now();
  begin();
  begin_node();
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "%d", i);
    add_child(1, name);
  }
  end_node();
  add_variable("", "1");
  tn__object_graph *graph = read_graph();
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "%d", i);
    tn__object_key key;
    if (tn__object_graph_resolve(graph, name, &key, &err) != TN_OK) FAIL("'%s' is not found", name);
  }
  CHECK_MSG(now() - begun < 30, "it took %.1f s", now() - begun);
  tn__object_graph_destroy(graph);
}

/* ---- damage ---- */

static void check_damaged(const char *why)
{
  tn__object_graph *graph = (tn__object_graph *)&err;
  tn_error_clear(&err);
  CHECK_STATUS(tn__object_graph_read(bytes(), "ckpt", &graph, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), why);
  CHECK_CONTAINS(tn_error_message(&err), "'ckpt': ");
  CHECK_NULL(graph);
}

static void objectgraph__ids_that_no_node_has_are_damage(void)
{
  static const int64_t ids[] = { 2, -1, INT32_MAX, INT64_MIN, (int64_t)1 << 32 };
  static const char *const what[] = { "child", "the variable of slot", "slot" };
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    for (int where = 0; where < 3; where++) {
      char why[200];
      begin();
      begin_node();
      end_node();
      begin_node();
      if (where == 0) add_child(ids[i], "x");
      if (where == 1) add_slot(ids[i], "x", 0);
      if (where == 2) add_slot(0, "x", ids[i]);
      end_node();
      snprintf(why, sizeof why, "node 1 of the object graph: %s 'x' is node %lld, but there are only 2", what[where],
               (long long)ids[i]);
      check_damaged(why);
    }
  }
}

static void objectgraph__a_graph_without_nodes_is_damage(void)
{
  begin();
  check_damaged("has no nodes, not even a root");
}

static void objectgraph__truncated_and_changed_messages_give_a_status(void)
{
  tn__object_graph_destroy(model());
  tn__slice whole = bytes();
  char *copy = malloc(whole.size);
  REQUIRE_PTR(copy);
  for (size_t i = 0; i < whole.size * 9; i++) {
    tn__object_graph *graph = NULL;
    size_t size = i < whole.size ? i : whole.size;
    memcpy(copy, whole.data, whole.size);
    if (i >= whole.size) copy[(i - whole.size) / 8] ^= (char)(1 << (i - whole.size) % 8);
    tn_error_clear(&err);
    tn_status st = tn__object_graph_read((tn__slice){ copy, size }, "ckpt", &graph, &err);
    CHECK_MSG(st == TN_OK || st == TN_DATA_LOSS, "byte %zu: %s", i, tn_error_message(&err));
    CHECK((st == TN_OK) == (graph != NULL));
    if (graph != NULL) list(graph);
    if (graph != NULL) resolve(graph, "model/layer-1/bias%2Fraw");
    tn__object_graph_destroy(graph);
  }
  free(copy);
}

static tn_status read_and_list(void *unused)
{
  tn__arena arena;
  tn__object_graph *graph = NULL;
  tn__object_path *paths;
  size_t n;
  (void)unused;
  tn__arena_init(&arena, 64);
  tn_error_clear(&err);
  tn_status st = tn__object_graph_read(bytes(), "ckpt", &graph, &err);
  if (st == TN_OK) st = tn__object_graph_paths(graph, &arena, &paths, &n, &err);
  tn__object_graph_destroy(graph);
  tn__arena_fini(&arena);
  tn_error_clear(&err);
  return st;
}

static void objectgraph__nothing_leaks_without_memory(void)
{
  tn__object_graph_destroy(model());
  tn_test_oom_sweep(read_and_list, NULL);
  begin();
}

TAP_MAIN(
  TAP_TEST(objectgraph__paths_join_the_names_of_objects),
  TAP_TEST(objectgraph__paths_may_lead_through_cycles),
  TAP_TEST(objectgraph__an_attribute_follows_a_colon),
  TAP_TEST(objectgraph__slots_are_named_by_optimizer_and_variable),
  TAP_TEST(objectgraph__names_may_have_characters_of_the_syntax),
  TAP_TEST(objectgraph__errors_say_which_part_leads_nowhere),
  TAP_TEST(objectgraph__errors_list_the_nearest_of_many_names),
  TAP_TEST(objectgraph__variables_are_found_by_their_names),
  TAP_TEST(objectgraph__lists_the_shortest_paths_first),
  TAP_TEST(objectgraph__exponentially_many_paths_are_not_followed),
  TAP_TEST(objectgraph__a_long_chain_is_listed_in_bounded_memory),
  TAP_TEST(objectgraph__a_node_with_many_names_is_searched_quickly),
  TAP_TEST(objectgraph__ids_that_no_node_has_are_damage),
  TAP_TEST(objectgraph__a_graph_without_nodes_is_damage),
  TAP_TEST(objectgraph__truncated_and_changed_messages_give_a_status),
  TAP_TEST(objectgraph__nothing_leaks_without_memory))
