/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins with ops: found when a graph names one of their ops, loaded by path, rejected if they
 * clash (P-15, P-19, P-81). Each test has ops of its own, since loaded plugins stay. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

static tn_error err = TN_ERROR_INIT;
static char logged[20000];

static void keep_line(void *user, int32_t level, const char *line)
{
  size_t n = strlen(logged);
  (void)user;
  if (level <= TN_LOG_WARNING) snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

/* A copy of tests/plugins/acme_ops.c whose ops are "PREFIXScale" and "PREFIXRepeat"; PREFIX has
 * four letters. */
static void add_plugin(const char *folder, const char *file, const char *name, const char *prefix, int rank,
                       const char *fault)
{
  char text[64];
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("acme_ops"), &size);
  snprintf(text, sizeof text, "name=%s", name);
  plugin_patch(bytes, size, "name=acme.example_ops", text);
  snprintf(text, sizeof text, "ops=%sScale,%sRepeat", prefix, prefix);
  plugin_patch(bytes, size, "ops=AcmeScale,AcmeRepeat", text);
  snprintf(text, sizeof text, "rank=%03d", rank);
  plugin_patch(bytes, size, "rank=300", text);
  plugin_patch(bytes, size, "none__", fault);
  plugin_write(plugin_path(folder, file), bytes, size);
  free(bytes);
}

/* Searches its folder in addition to those of the runtimes. */
static void search(const char *folder)
{
  char both[3000];
  snprintf(both, sizeof both, "%s:%s", folder, getenv("TEST_RUNTIMES"));
  plugin_search(both);
  logged[0] = 0;
}

static const char *one_plugin(const char *name, const char *prefix, const char *fault)
{
  const char *folder = plugin_folder();
  add_plugin(folder, "a.so", name, prefix, 300, fault);
  search(folder);
  return folder;
}

/* x (of any shape) -> scale -> repeat, as text. */
static const char *graph_text(const char *prefix, const char *type)
{
  static char text[2000];
  snprintf(
      text, sizeof text,
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: %s } } attr { key: 'shape' value { shape { "
      "dim { size: 2 } } } } }\n"
      "node { name: 'half' op: '%sScale' input: 'x' attr { key: 'T' value { type: %s } } "
      "attr { key: 'factor' value { f: 0.5 } } }\n"
      "node { name: 'twice' op: '%sScale' input: 'x' attr { key: 'T' value { type: %s } } }\n"
      "node { name: 'three' op: '%sRepeat' input: 'half' attr { key: 'T' value { type: %s } } "
      "attr { key: 'n' value { i: 3 } } }\n",
      type, prefix, type, prefix, type, prefix, type);
  return text;
}

static tn_graph *import(const char *text)
{
  tn_graph *graph;
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn_graph_import(graph, text, strlen(text), NULL, &err), &err);
  return graph;
}

static tn_status run(tn_graph *graph, tn_tensor *x, const char *fetch, tn_tensor **out)
{
  ts t;
  const char *feed = "x";
  ts_init(&t, 1);
  tn_graph_unref(t.graph);
  t.graph = tn_graph_ref(graph);
  ts_start(&t);
  tn_status st = tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, out, 1, NULL, 0, NULL, &err);
  ts_fini(&t);
  return st;
}

/* Checks element i of the fetch for x = { 3, 5 }, and the shape, also the one inferred in the
 * graph. */
static void check_run(tn_graph *graph, tn_dtype dtype, const char *fetch, int64_t n, double first, double last)
{
  const float f[] = { 3, 5 };
  const double d[] = { 3, 5 };
  int64_t two = 2;
  tn_tensor *x, *y;
  REQUIRE_OK(
      tn_tensor_from_data(dtype, &two, 1, dtype == TN_FLOAT ? (const void *)f : d, 2 * tn_dtype_size(dtype), &x, &err),
      &err);
  CHECK_OK(run(graph, x, fetch, &y), &err);
  tn_tensor_unref(x);
  if (y == NULL) return;
  CHECK_INT(tn_tensor_elements(y), n);
  const void *data = tn_tensor_data(y);
  CHECK_DOUBLE(dtype == TN_FLOAT ? (double)((const float *)data)[0] : ((const double *)data)[0], first, 0);
  CHECK_DOUBLE(dtype == TN_FLOAT ? (double)((const float *)data)[n - 1] : ((const double *)data)[n - 1], last, 0);
  tn_tensor_unref(y);
}

static void check_shape(tn_graph *graph, const char *node, int64_t first, int32_t wanted)
{
  int64_t dims[4];
  int32_t rank;
  tn_output output = { tn_graph_find(graph, node), 0 };
  CHECK_OK(tn_output_shape(output, dims, 4, &rank, &err), &err);
  CHECK_INT(rank, wanted);
  CHECK_INT(dims[0], first);
}

/* ---- in a folder ---- */

/* P-15: the manifest lists the ops of a file; it is opened when a graph names one of them. */
static void op_plugins__are_loaded_when_a_graph_names_their_op(void)
{
  const char *folder = one_plugin("t.o_named", "Nam1", "none");
  tn_graph *graph = import("node { name: 'x' op: 'Nam1ScaleNot' }\n node { name: 'y' op: 'Nam1' }");
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK_NULL(tn_op_schema_find("Nam1Scale"));
  tn_graph_unref(graph);
  graph = import(graph_text("Nam1", "DT_FLOAT"));
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK(tn_op_schema_find("Nam1Scale") != NULL);
  check_shape(graph, "half", 2, 1);
  check_shape(graph, "three", 3, 2);
  check_run(graph, TN_FLOAT, "twice", 2, 6, 10); /* the attribute's default */
  check_run(graph, TN_FLOAT, "three", 6, 1.5, 2.5);
  tn_graph_unref(graph);
  graph = import(graph_text("Nam1", "DT_DOUBLE"));
  check_run(graph, TN_DOUBLE, "three", 6, 1.5, 2.5);
  tn_graph_unref(graph);
  CHECK_STR(logged, "");
}

static void op_plugins__are_loaded_for_builders(void)
{
  const char *folder = one_plugin("t.o_built", "Bui1", "none");
  ts t;
  ts_init(&t, 1);
  ts_op1(t.graph, "Bui1Scale", "y", ts_placeholder(t.graph, "x", TN_FLOAT));
  CHECK_INT(plugin_count_mapped(folder), 1);
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 4 }), "y"), 8, 0);
  ts_fini(&t);
}

/* Ops of a plugin are checked like others, by their schemas. */
static void op_plugins__schemas_are_kept(void)
{
  one_plugin("t.o_kept", "Kep1", "none");
  tn_graph *graph = import(graph_text("Kep1", "DT_FLOAT"));
  const char *wrong = "node { name: 'z' op: 'Kep1Scale' input: 'x' attr { key: 'T' value { type: DT_INT32 } } }";
  CHECK_STATUS(tn_graph_import(graph, wrong, strlen(wrong), NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'z'");
  wrong = "node { name: 'z' op: 'Kep1Repeat' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } "
          "attr { key: 'n' value { i: -1 } } }";
  CHECK_STATUS(tn_graph_import(graph, wrong, strlen(wrong), NULL, &err), TN_INVALID_ARGUMENT, &err);
  tn_graph_unref(graph);
}

static const char function_text[] =
    "library { function { signature { name: 'Body' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'b' type: "
    "DT_FLOAT } } "
    "node_def { name: 's' op: '%s' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } ret { key: 'b' value: "
    "'s:y:0' } } }\n"
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
    "node { name: 'y' op: 'Body' input: 'x' }\n";

static void op_plugins__are_loaded_for_bodies_of_functions(void)
{
  const char *folder = one_plugin("t.o_body", "Bod1", "none");
  char text[1000];
  snprintf(text, sizeof text, function_text, "Bod1Scale");
  tn_graph *graph = import(text);
  CHECK_INT(plugin_count_mapped(folder), 1);
  check_run(graph, TN_FLOAT, "y", 2, 6, 10);
  tn_graph_unref(graph);
}

/* If a function of the file has the name of a plugin's op, the file means its own function. */
static void op_plugins__functions_of_the_file_take_precedence(void)
{
  const char *folder = one_plugin("t.o_own", "Own1", "none");
  static const char text[] =
      "library { function { signature { name: 'Own1Scale' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: "
      "'b' type: "
      "DT_FLOAT } } node_def { name: 's' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } "
      "ret { key: 'b' value: 's:y:0' } } }\n"
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
      "node { name: 'y' op: 'Own1Scale' input: 'x' }\n";
  tn_graph *graph = import(text);
  CHECK_INT(plugin_count_mapped(folder), 0);
  check_run(graph, TN_FLOAT, "y", 2, -3, -5);
  const char *more = "node { name: 'z' op: 'Own1Scale' input: 'x' }"; /* the function of the graph */
  CHECK_OK(tn_graph_import(graph, more, strlen(more), NULL, &err), &err);
  CHECK_INT(plugin_count_mapped(folder), 0);
  tn_graph_unref(graph);
}

static atomic_int failures;

static void *import_on_thread(void *text)
{
  tn_graph *graph = NULL;
  if (tn_graph_create(&graph, NULL) != TN_OK || tn_graph_import(graph, text, strlen(text), NULL, NULL) != TN_OK ||
      tn_operation_schema(tn_graph_find(graph, "three")) == NULL)
    atomic_fetch_add(&failures, 1);
  tn_graph_unref(graph);
  return NULL;
}

static void op_plugins__are_loaded_once_by_many_threads(void)
{
  enum { THREADS = 16 };
  const char *folder = one_plugin("t.o_many", "Man1", "none");
  pthread_t threads[THREADS];
  char *text = strdup(graph_text("Man1", "DT_FLOAT"));
  for (int i = 0; i < THREADS; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, import_on_thread, text), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_INT(atomic_load(&failures), 0);
  CHECK_INT(plugin_count_mapped(folder), 1);
  free(text);
}

/* ---- failures ---- */

/* The graph can be imported; a run reports the reason. */
static void check_unusable(const char *prefix, const char *why)
{
  tn_graph *graph = import(graph_text(prefix, "DT_FLOAT"));
  const float f[] = { 3, 5 };
  tn_tensor *x = ts_vector(2, f), *y;
  CHECK_STATUS(run(graph, x, "half", &y), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "node 'half': op '");
  CHECK_CONTAINS(tn_error_message(&err), "Scale' is not registered; plugin 't.o_");
  CHECK_CONTAINS(tn_error_message(&err), why);
  tn_tensor_unref(x);
  tn_graph_unref(graph);
}

static void op_plugins__failures_have_a_reason(void)
{
  one_plugin("t.o_schema", "Sch1", "schema");
  check_unusable("Sch1", "nonsense");
  CHECK_CONTAINS(logged, "its ops are not available");
  one_plugin("t.o_damaged", "Dam1", "none");
  setenv("TENON_PLUGIN_DISABLE", "t.o_dam*", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  check_unusable("Dam1", "it is disabled");
  unsetenv("TENON_PLUGIN_DISABLE");
  setenv("TENON_RANK", "onednn=0,t.o_damaged=0", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  check_unusable("Dam1", "its rank is 0, which disables it");
  setenv("TENON_RANK", "onednn=0", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  tn_graph *graph = import(graph_text("Dam1", "DT_FLOAT"));
  check_run(graph, TN_FLOAT, "three", 6, 1.5, 2.5);
  tn_graph_unref(graph);
}

/* P-19: a plugin must register all ops in its manifest. */
static void op_plugins__must_register_the_ops_of_the_manifest(void)
{
  one_plugin("t.o_misses", "Mis1", "misses");
  tn_graph *graph = import(graph_text("Mis1", "DT_FLOAT"));
  CHECK_CONTAINS(
      logged, "its manifest and its code disagree: op 'Mis1Repeat' is in the manifest, and its register_kernels does "
              "not register it");
  CHECK_NULL(tn_op_schema_find("Mis1Repeat"));
  CHECK_NULL(tn_op_schema_find("Mis1Scale")); /* P-49: registrations are undone */
  tn_graph_unref(graph);
}

/* ---- clashes ---- */

static tn_status load_file(const char *path)
{
  tn_runtime_info info = { .struct_size = sizeof info };
  return tn_load_op_library(path, &info, &err);
}

static void op_plugins__cannot_replace_an_op(void)
{
  const char *folder = plugin_folder();
  char path[700];
  add_plugin(folder, "a.so", "t.o_first", "Fst1", 300, "none");
  add_plugin(folder, "b.so", "t.o_second", "Fst1", 300, "none");
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  REQUIRE_OK(load_file(plugin_path(folder, "a.so")), &err);
  CHECK_STATUS(load_file(plugin_path(folder, "b.so")), TN_ALREADY_EXISTS, &err);
  snprintf(path, sizeof path, "plugin 't.o_second' (%s): ", plugin_path(folder, "b.so"));
  CHECK_CONTAINS(tn_error_message(&err), path);
  snprintf(path, sizeof path, "op 'Fst1Scale' is registered already, by plugin 't.o_first' (%s)",
           plugin_path(folder, "a.so"));
  CHECK_CONTAINS(tn_error_message(&err), path);
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("acme_ops"), &size);
  plugin_patch(bytes, size, "ops=AcmeScale,AcmeRepeat", "ops=Neg,AcmeNeg");
  plugin_patch(bytes, size, "name=acme.example_ops", "name=t.o_neg");
  plugin_write(plugin_path(folder, "c.so"), bytes, size);
  free(bytes);
  CHECK_STATUS(load_file(plugin_path(folder, "c.so")), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), "op 'Neg' is registered already, by the library");
  CHECK_NULL(tn_op_schema_find("AcmeNeg")); /* all or nothing */
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
}

/* Of two plugins in folders the one of higher rank is loaded; of equal rank none is, and both
 * are named. */
static void op_plugins__of_equal_rank_with_the_same_op_are_an_error(void)
{
  const char *folder = plugin_folder();
  add_plugin(folder, "a.so", "t.o_left", "Two1", 300, "none");
  add_plugin(folder, "b.so", "t.o_right", "Two1", 300, "none");
  search(folder);
  check_unusable("Two1", "another plugin of the same rank provides it, too");
  CHECK_CONTAINS(logged, "op 'Two1Scale' is provided by plugin 't.o_left' (");
  CHECK_CONTAINS(logged, "and by plugin 't.o_right' (");
  CHECK_INT(plugin_count_mapped(folder), 0);
  setenv("TENON_RANK", "onednn=0,t.o_right=301", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  tn_graph_unref(import(graph_text("Two1", "DT_FLOAT")));
  CHECK_INT(plugin_count_mapped(plugin_path(folder, "b.so")), 1);
  CHECK_INT(plugin_count_mapped(folder), 1);
  setenv("TENON_RANK", "onednn=0", 1);
}

/* ---- by path ---- */

/* P-81 */
static void op_libraries__are_loaded_by_path_if_allowed(void)
{
  const char *folder = plugin_folder();
  tn_runtime_info info = { .struct_size = sizeof info };
  search(plugin_folder());
  add_plugin(folder, "any name.so", "t.o_path", "Pat1", 0, "none");
  const char *path = plugin_path(folder, "any name.so");
  CHECK_STATUS(tn_load_op_library(path, &info, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "tn_runtime_allow_files");
  CHECK_INT(plugin_count_mapped(folder), 0);
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  REQUIRE_OK(tn_load_op_library(path, &info, &err), &err);
  CHECK_STR(info.name, "t.o_path");
  CHECK_STR(info.kind, "kernels");
  CHECK_STR(info.file, path);
  CHECK_OK(tn_load_op_library(path, NULL, &err), &err); /* only once */
  CHECK_INT(plugin_count_mapped(folder), 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err); /* it stays */
  tn_graph *graph = import(graph_text("Pat1", "DT_FLOAT"));
  check_run(graph, TN_FLOAT, "three", 6, 1.5, 2.5);
  tn_graph_unref(graph);
  CHECK_STATUS(load_file("relative.so"), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(load_file(NULL), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(load_file("/nowhere/a.so"), TN_NOT_FOUND, &err);
  plugin_chameleon(folder, "b.so", "t.o_runtime", 0, "none");
  CHECK_STATUS(load_file(plugin_path(folder, "b.so")), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "provides a runtime, wanted ops or kernels");
  add_plugin(folder, "c.so", "t.o_fails", "Pat2", 300, "fails");
  info.usable = 7;
  CHECK_STATUS(tn_load_op_library(plugin_path(folder, "c.so"), &info, &err), TN_DATA_LOSS, &err);
  CHECK_CONTAINS(tn_error_message(&err), "plugin 't.o_fails' (");
  CHECK_INT(info.usable, 0);
  CHECK_CONTAINS(info.reason, "told to fail");
  CHECK_NULL(tn_op_schema_find("Pat2Scale"));
  CHECK_STATUS(load_file(plugin_path(folder, "c.so")), TN_DATA_LOSS, &err); /* fails again in the same way */
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
}

static int frozen_child(const char *folder)
{
  tn_graph *graph;
  if (tn_freeze(NULL) != TN_OK || tn_runtime_allow_files(1, NULL) != TN_OK) return 1;
  if (tn_load_op_library(plugin_path(folder, "a.so"), NULL, NULL) != TN_FAILED_PRECONDITION) return 2;
  graph = import(graph_text("Frz1", "DT_FLOAT"));
  return tn_operation_schema(tn_graph_find(graph, "half")) == NULL && plugin_count_mapped(folder) == 0 ? 0 : 3;
}

/* P-82 */
static void op_libraries__are_not_loaded_after_freezing(void)
{
  const char *folder = one_plugin("t.o_frozen", "Frz1", "none");
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(frozen_child(folder));
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : 255, 0);
}

/* Each allocation of a load fails once: nothing is registered halfway, and a load that had not
 * begun can be tried again. */
static void op_libraries__survive_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  int again = 0, n = 1;
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  for (;; n++) {
    char file[20], name[20], prefix[24], path[700];
    snprintf(file, sizeof file, "p%d.so", n);
    snprintf(name, sizeof name, "t.o_m%d", n);
    snprintf(prefix, sizeof prefix, "M%03d", n);
    add_plugin(folder, file, name, prefix, 300, "none");
    snprintf(path, sizeof path, "%s", plugin_path(folder, file));
    tn_test_fail_allocation((uint64_t)n, 0);
    tn_status st = tn_load_op_library(path, NULL, NULL);
    bool failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    CHECK(st == TN_OK || (failed && st == TN_RESOURCE_EXHAUSTED));
    strcat(prefix, "Scale");
    CHECK((tn_op_schema_find(prefix) != NULL) == (st == TN_OK));
    if (!failed || n > 500) break;
    if (st != TN_OK && load_file(path) == TN_OK) again++;
  }
  CHECK_MSG(again > 0 && n < 500, "%d loads succeeded at the second attempt", again);
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
}

static void setup(void)
{
  tn_set_log_sink(keep_line, NULL);
  setenv("TENON_RANK", "onednn=0", 1);
  const char *path = getenv("TENON_PLUGIN_PATH");
  if (getenv("TEST_RUNTIMES") == NULL) setenv("TEST_RUNTIMES", path == NULL ? "" : path, 1);
}

static void teardown(void)
{
  tn_set_log_sink(NULL, NULL);
  tn_error_clear(&err);
}

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(op_libraries__are_not_loaded_after_freezing),
  TAP_TEST(op_plugins__are_loaded_when_a_graph_names_their_op),
  TAP_TEST(op_plugins__are_loaded_for_builders),
  TAP_TEST(op_plugins__schemas_are_kept),
  TAP_TEST(op_plugins__are_loaded_for_bodies_of_functions),
  TAP_TEST(op_plugins__functions_of_the_file_take_precedence),
  TAP_TEST(op_plugins__are_loaded_once_by_many_threads),
  TAP_TEST(op_plugins__failures_have_a_reason),
  TAP_TEST(op_plugins__must_register_the_ops_of_the_manifest),
  TAP_TEST(op_plugins__cannot_replace_an_op),
  TAP_TEST(op_plugins__of_equal_rank_with_the_same_op_are_an_error),
  TAP_TEST(op_libraries__are_loaded_by_path_if_allowed),
  TAP_TEST(op_libraries__survive_lack_of_memory))
