/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins linked into the program: tests/libpreloaded.la contains some of tests/plugins, with a
 * table that libtool made from -dlpreopen; another table is written by hand (P-23, P-51, P-89,
 * P-90). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ltdl.h>

#include <core/registry/registry.h>
#include <tenon/runtime.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/session_kit.h"

extern const lt_dlsymlist lt_libpreloaded_LTX_preloaded_symbols[];

static tn_error err = TN_ERROR_INIT;
static tn_runtime_info info;
static char logged[20000];

static void keep_line(void *user, int32_t level, const char *line)
{
  size_t n = strlen(logged);
  (void)user, (void)level;
  snprintf(logged + n, sizeof(logged) - n, "%s\n", line);
}

static tn_status load(const char *name)
{
  info = (tn_runtime_info){ .struct_size = sizeof(info) };
  return tn_runtime_load(name, &info, &err);
}

/* The entry of this name and origin in the listing; its name is empty if there is none. */
static tn_runtime_info listed(const char *name, const char *origin)
{
  tn_runtime_info one = { .struct_size = sizeof(one), .name = "" };
  for (size_t i = 0; tn_runtime_at(i, &one, NULL) == TN_OK; i++)
    if (strcmp(one.name, name) == 0 && strcmp(one.origin, origin) == 0) return one;
  return (tn_runtime_info){ .struct_size = sizeof(one), .name = "" };
}

/* The result for -2 after an Abs in a session on this target. */
static float result_on(const char *target, const char *kernel_plugins)
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_string(t.options, "kernel_plugins", kernel_plugins, &t.err), &t.err);
  ts_op1(t.graph, "Abs", "y", ts_placeholder(t.graph, "x", TN_FLOAT));
  ts_start(&t);
  float y = ts_run1(&t, FEEDS({ "x", -2 }), "y:0");
  ts_fini(&t);
  return y;
}

/* ---- the table made by libtool ---- */

/* P-90: listed by their manifests, without a file, and without loading anything. */
static void preloaded__are_known_without_a_file(void)
{
  plugin_search("");
  CHECK_STR(listed("test.minimal", "preloaded").name, "");
  REQUIRE_OK(tn_runtime_preload(lt_libpreloaded_LTX_preloaded_symbols, &err), &err);
  info = listed("test.minimal", "preloaded");
  CHECK_STR(info.name, "test.minimal");
  CHECK_STR(info.file, "");
  CHECK_STR(info.kind, "runtime");
  CHECK_STR(info.version, "1.2.3");
  CHECK_STR(info.vendor, "Tests");
  CHECK_INT(info.usable, 1);
  CHECK_INT(info.loaded, 0);
  CHECK_STR(listed("test.kernels", "preloaded").kind, "kernels");
  CHECK_STR(listed("test.unloads", "preloaded").name, "test.unloads");
  CHECK_OK(tn_runtime_preload(lt_libpreloaded_LTX_preloaded_symbols, &err), &err); /* no change */
  CHECK_OK(tn_runtime_rescan(&err), &err);
  CHECK_STR(listed("test.minimal", "preloaded").name, "test.minimal");
}

/* P-90: they precede every folder, and the file of the same name is not opened. */
static void preloaded__shadow_files(void)
{
  char text[8000];
  size_t needed = 0;
  tn_session_options *options = NULL;
  const char *folder = plugin_folder();
  plugin_copy("minimal", folder, "minimal.so");
  plugin_search(folder);
  CHECK_INT(listed("test.minimal", "file").shadowed, 1);
  CHECK_STR(listed("test.minimal", "file").file, plugin_path(folder, "minimal.so"));
  CHECK_INT(listed("test.minimal", "preloaded").shadowed, 0);
  CHECK(result_on("test.minimal", "never") == 2);
  CHECK_INT(plugin_count_mapped(folder), 0);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "test.minimal", &err), &err);
  CHECK_OK(tn_explain_selection(options, text, sizeof(text), &needed, &err), &err);
  CHECK_CONTAINS(text, "test.minimal (preloaded minimal.a) rank 0: asked by name, accepted");
  tn_session_options_destroy(options);
  REQUIRE_OK(tn_runtime_add_directory(folder, &err), &err); /* nor those of the program's folders */
  CHECK_INT(listed("test.minimal", "file").shadowed, 1);
  CHECK_OK(tn_runtime_allow_files(1, &err), &err);
  info = (tn_runtime_info){ .struct_size = sizeof(info) };
  CHECK_STATUS(tn_runtime_load_file(plugin_path(folder, "minimal.so"), &info, &err), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), "preloaded minimal.a");
  CHECK_INT(unlink(plugin_path(folder, "minimal.so")), 0); /* the folder stays in the list */
}

/* P-23: two in one program, with concurrent sessions of both. P-62: the dynamic linker opens
 * nothing for that. */
static void preloaded__two_in_one_program(void)
{
  ts a, b;
  int mapped = plugin_count_mapped("/");
  CHECK_OK(load("test.unloads"), &err);
  CHECK_STR(info.origin, "preloaded");
  CHECK_INT(info.loaded, 1);
  CHECK_OK(load("test.minimal"), &err);
  CHECK(mapped > 0);
  CHECK_INT(plugin_count_mapped("/"), mapped);
  ts_init(&a, 1);
  ts_init(&b, 1);
  REQUIRE_OK(tn_session_options_set_target(a.options, "test.minimal", &err), &err);
  REQUIRE_OK(tn_session_options_set_target(b.options, "test.unloads", &err), &err);
  ts_usual_graph(a.graph);
  ts_usual_graph(b.graph);
  ts_start(&a);
  ts_start(&b);
  CHECK(ts_run1(&a, FEEDS({ "x", 3 }, { "y", 4 }), "twice:0") == 14);
  CHECK(ts_run1(&b, FEEDS({ "x", 5 }, { "y", 4 }), "twice:0") == 18);
  ts_fini(&a);
  ts_fini(&b);
}

/* If one is disabled, a file of the same name is used instead. */
static void preloaded__can_be_disabled(void)
{
  const char *folder = plugin_folder();
  plugin_copy("crashing", folder, "crashing.so");
  setenv("TENON_PLUGIN_DISABLE", "test.k*", 1);
  plugin_search(folder);
  unsetenv("TENON_PLUGIN_DISABLE");
  info = listed("test.kernels", "preloaded");
  CHECK_INT(info.disabled, 1);
  CHECK_CONTAINS(info.reason, "TENON_PLUGIN_DISABLE");
  logged[0] = 0;
  CHECK(result_on("test.minimal", "always") == 2);
  CHECK(strstr(logged, "test.kernels") == NULL);
  plugin_search(folder);
  CHECK_INT(listed("test.kernels", "preloaded").disabled, 0);
}

/* A plan that wants one of its ops loads a preloaded kernel plugin. */
static void preloaded__kernels_are_loaded_on_demand(void)
{
  const char *const none = "Abs", *const wanted = "MatMul";
  plugin_search("");
  tn_set_log_level(TN_LOG_DEBUG);
  logged[0] = 0;
  tn__registry_want_kernels(&none, 1, "CPU");
  CHECK(strstr(logged, "test.kernels") == NULL);
  tn__registry_want_kernels(&wanted, 1, "CPU");
  tn_set_log_level(TN_LOG_WARNING);
  CHECK_CONTAINS(logged, "plugin 'test.kernels' (preloaded kernels_only.a) is loaded");
}

/* ---- the same as other plugins ---- */

static tn_status program_session(const tn_session_factory *self, const tn_session_options *options,
                                 tn_runtime_session **out, tn_error *e)
{
  (void)options, (void)e;
  *out = (tn_runtime_session *)self;
  return TN_OK;
}
static tn_bool program_accepts(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, NULL, 0, NULL) == TN_OK;
}
static void program_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }
static const tn_session_factory program_factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "t.program",
  .new_session = program_session,
  .accepts_options = program_accepts,
  .destroy_session = program_destroy,
};

static void check_as_all(const char *name, const char *origin)
{
  char target[80];
  ts t;
  CHECK_OK(load(name), &err);
  CHECK_STR(info.origin, origin);
  info = listed(name, origin);
  CHECK_STR(info.name, name);
  CHECK_INT(info.loaded, 1);
  CHECK_INT(info.usable, 1);
  CHECK_INT(info.rank, 0);
  CHECK(result_on(name, "never") == 2);
  CHECK_STATUS(tn_runtime_register(name, &program_factory, &err), TN_ALREADY_EXISTS, &err);
  ts_init(&t, 1);
  snprintf(target, sizeof(target), "%s:colour=red", name);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  CHECK_STATUS(tn_session_create(t.options, &t.session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), name);
  REQUIRE_OK(tn_session_options_set_target(t.options, name, &t.err), &t.err);
  ts_usual_graph(t.graph);
  ts_start(&t);
  CHECK_STR(tn_session_runtime(t.session)->origin, origin);
  CHECK_STATUS(tn_runtime_unregister(name, &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "held by 1 session");
  CHECK_STATUS(tn_reset(t.options, NULL, 0, &err), TN_UNIMPLEMENTED, &err);
  CHECK(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "sum:0") == 3);
  ts_fini(&t);
  CHECK_OK(tn_runtime_unregister(name, &err), &err);
  CHECK_STATUS(load(name), TN_NOT_FOUND, &err);
}

/* P-51: runtimes of the program, linked and loaded ones are the same to their users. */
static void preloaded__behave_like_all_others(void)
{
  const char *folder = plugin_folder();
  plugin_copy("own_heap", folder, "own_heap.so");
  plugin_search(folder);
  REQUIRE_OK(tn_runtime_register("t.program", &program_factory, &err), &err);
  check_as_all("t.program", "program");
  check_as_all("test.own_heap", "file");
  check_as_all("test.minimal", "preloaded");
}

/* The code stays, so a plugin is started once, even if its manifest says `unloadable`. */
static void preloaded__are_started_once(void)
{
  CHECK_OK(load("test.unloads"), &err);
  logged[0] = 0;
  CHECK_OK(tn_runtime_unregister("test.unloads", &err), &err);
  CHECK_STATUS(load("test.unloads"), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "a plugin is initialised only once in a process");
  CHECK_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("test.unloads"), TN_NOT_FOUND, &err);
  CHECK(strstr(logged, "unloads: init") == NULL);
}

/* ---- tables by hand ---- */

#define MANIFEST(name, rest) \
  "format=1\0kind=runtime\0name=" name "\0types=CPU\0rank=0\0version=1.0\0vendor=Tests\0flags=\0kernels=\0" rest "\0"
static const char hand_manifest[] = MANIFEST("t.hand", "abi=0.1\0min_host=0.1\0entry=hand_LTX_tn_plugin_query");
static const char new_manifest[] = MANIFEST("t.new", "abi=9.0\0min_host=9.0\0entry=new_LTX_tn_plugin_query");
static const char bad_manifest[] = "format=1\0kind=runtime\0name=t.bad\0";
static const char lone_manifest[] = MANIFEST("t.lone", "abi=0.1\0min_host=0.1\0entry=lone_LTX_tn_plugin_query");
static char endless_manifest[20000] = "format=1\0";

static const tn_session_factory hand_factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "t.hand",
  .new_session = program_session,
  .accepts_options = program_accepts,
  .destroy_session = program_destroy,
};

static const tn_plugin *hand_query(const tn_host *host, tn_error *e)
{
  static const tn_session_factory *const factories[] = { &hand_factory };
  static const tn_plugin plugin = {
    .struct_size = TN_PLUGIN_SIZE,
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_MINOR,
    .kind = TN_PLUGIN_RUNTIME,
    .name = "t.hand",
    .types = "CPU",
    .factories = factories,
    .n_factories = 1,
  };
  (void)host, (void)e;
  return &plugin;
}

static lt_dlsymlist hand_table[] = {
  { "by-hand", NULL },
  { "hand.a", NULL },
  { "hand_LTX_tn_plugin_manifest", (void *)hand_manifest },
  { "hand_LTX_tn_plugin_query", NULL /* set below */ },
  { "new.a", NULL },
  { "new_LTX_tn_plugin_manifest", (void *)new_manifest },
  { "bad.a", NULL },
  { "bad_LTX_tn_plugin_manifest", (void *)bad_manifest },
  { "lone.a", NULL },
  { "lone_LTX_tn_plugin_manifest", (void *)lone_manifest },
  { "other.a", NULL },
  { "other_function", (void *)hand_manifest },
  { "endless.a", NULL },
  { "endless_LTX_tn_plugin_manifest", (void *)endless_manifest },
  { NULL, NULL },
};

static tn_runtime_info nameless(const char *reason)
{
  tn_runtime_info one = { .struct_size = sizeof(one) };
  for (size_t i = 0; tn_runtime_at(i, &one, NULL) == TN_OK; i++)
    if (strcmp(one.name, "") == 0 && strstr(one.reason, reason) != NULL) return one;
  return (tn_runtime_info){ .struct_size = sizeof(one), .origin = "none" };
}

/* An error of one entry is reported like that of a file, and does not affect others. */
static void preloaded__table_by_hand(void)
{
  tn_plugin_query_fn query = hand_query;
  memcpy(&hand_table[3].address, &query, sizeof(query));
  for (char *at = endless_manifest + 9; at < endless_manifest + sizeof(endless_manifest) - 2; at += 5)
    memcpy(at, "k=vv", 5);
  REQUIRE_OK(tn_runtime_preload(hand_table, &err), &err);
  CHECK(result_on("t.hand", "never") == 2);
  CHECK_STATUS(load("t.new"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "plugin 't.new' (preloaded new.a): made for plugin ABI 9.0");
  CHECK_STATUS(load("t.lone"), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it has no entry 'lone_LTX_tn_plugin_query'");
  CHECK_STR(nameless("the key 'entry' is missing").origin, "preloaded");
  CHECK_STR(nameless("bytes, at most 16384 are allowed").origin, "preloaded");
  CHECK_STR(listed("test.minimal", "preloaded").name, "test.minimal");
}

static void preloaded__wrong_tables_are_rejected(void)
{
  static const lt_dlsymlist empty[] = { { NULL, NULL } },
                            headless[] = { { "a", (void *)hand_manifest }, { NULL, NULL } };
  CHECK_STATUS(tn_runtime_preload(NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_preload(empty, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_preload(headless, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "does not begin with a name");
}

/* ---- lack of memory ---- */

static tn_status scan_again(void *arg)
{
  (void)arg;
  tn_error e = TN_ERROR_INIT;
  tn_status status = tn_runtime_rescan(&e);
  tn_error_clear(&e);
  return status;
}

/* A table that could not be added for lack of memory has no effect. */
static void preloaded__survive_every_failed_allocation(void)
{
  static const char late_manifest[] = MANIFEST("t.late", "abi=0.1\0min_host=0.1\0entry=late_LTX_tn_plugin_query");
  static const lt_dlsymlist table[] = {
    { "late", NULL }, { "late.a", NULL }, { "late_LTX_tn_plugin_manifest", (void *)late_manifest }, { NULL, NULL }
  };
  plugin_search("");
  tn_test_oom_sweep(scan_again, NULL);
  CHECK_STR(listed("t.hand", "preloaded").name, "t.hand");
  int failures = 0;
  for (bool failed = true; failed && failures < 1000; failures++) {
    tn_test_fail_allocation((uint64_t)failures + 1, 0);
    tn_status status = tn_runtime_preload(table, &err);
    failed = tn_test_allocation_failed();
    tn_test_fail_allocation(0, 0);
    CHECK_INT(status, failed ? TN_RESOURCE_EXHAUSTED : TN_OK);
    CHECK_STR(listed("t.late", "preloaded").name, failed ? "" : "t.late");
  }
  CHECK(failures > 5);
}

/* A program linked like this one can load files (P-91 is tested by tests/repo/check-static.sh). */
static void preloaded__this_program_loads_files(void) { CHECK_INT(tn_runtime_loads_files(), 1); }

static void setup(void) { tn_set_log_sink(keep_line, NULL); }
static void teardown(void) { tn_set_log_sink(NULL, NULL); }

TAP_MAIN_WITH(setup, teardown,
  TAP_TEST(preloaded__are_known_without_a_file),
  TAP_TEST(preloaded__shadow_files), /* before other tests load them */
  TAP_TEST(preloaded__two_in_one_program),
  TAP_TEST(preloaded__can_be_disabled),
  TAP_TEST(preloaded__kernels_are_loaded_on_demand),
  TAP_TEST(preloaded__behave_like_all_others),
  TAP_TEST(preloaded__are_started_once),
  TAP_TEST(preloaded__table_by_hand),
  TAP_TEST(preloaded__wrong_tables_are_rejected),
  TAP_TEST(preloaded__survive_every_failed_allocation),
  TAP_TEST(preloaded__this_program_loads_files))
