/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as files in use: loading by path, freezing, plugins that call back, files that change
 * under the loader, memory of both sides, many threads at once (P-34, P-46, P-47, P-53, P-63,
 * P-69, P-70, P-74, P-76, P-80 to P-82). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/host/host.h>
#include <tenon/host.h>
#include <tenon/runtime.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

static tn_error err = TN_ERROR_INIT;
static tn_runtime_info info;

static tn_status load(const char *name)
{
  info = (tn_runtime_info){ .struct_size = sizeof(info) };
  return tn_runtime_load(name, &info, &err);
}

static tn_status load_file(const char *path)
{
  info = (tn_runtime_info){ .struct_size = sizeof(info) };
  return tn_runtime_load_file(path, &info, &err);
}

/* Runs fn in a child; fn's return value is the exit status. */
static int in_child(int (*fn)(const char *arg), const char *arg)
{
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(fn(arg));
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* ---- the log, with an action at a line ---- */

static const char *log_trigger;
static void (*log_action)(void);
static atomic_int inits;

static void watch_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  if (strstr(line, ": init") != NULL) atomic_fetch_add(&inits, 1);
  if (log_trigger != NULL && strstr(line, log_trigger) != NULL) {
    log_trigger = NULL;
    log_action();
  }
}

/* ---- by path ---- */

/* P-81 */
static void by_path__is_disabled_unless_the_program_allows_it(void)
{
  const char *folder = plugin_folder();
  plugin_search(plugin_folder());
  plugin_chameleon(folder, "any name at all.so", "t.path", 0, "none");
  CHECK_STATUS(load_file(plugin_path(folder, "any name at all.so")), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "this program does not load plugins by path (tn_runtime_allow_files)");
  CHECK_INT(plugin_count_mapped(folder), 0);
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  CHECK_OK(load_file(plugin_path(folder, "any name at all.so")), &err);
  CHECK_STR(info.name, "t.path");
  CHECK_INT(info.loaded, 1);
  CHECK_OK(load_file(plugin_path(folder, "any name at all.so")), &err); /* only once */
  tn_session *session = NULL;
  CHECK_OK(plugin_open_session("t.path", &session, &err), &err);
  REQUIRE_OK(tn_runtime_rescan(&err), &err); /* it is in no folder of the list, but stays */
  CHECK_OK(load("t.path"), &err);
  tn_session_destroy(session);
  CHECK_STATUS(load_file("relative.so"), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(load_file(NULL), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(load_file("/nowhere/a.so"), TN_NOT_FOUND, &err);
  plugin_copy("no_manifest", folder, "b.so");
  CHECK_STATUS(load_file(plugin_path(folder, "b.so")), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "b.so': not a runtime plugin");
  plugin_copy("kernels_only", folder, "c.so");
  CHECK_STATUS(load_file(plugin_path(folder, "c.so")), TN_INVALID_ARGUMENT, &err);
  plugin_chameleon(folder, "d.so", "t.path", 0, "none"); /* P-48 */
  CHECK_STATUS(load_file(plugin_path(folder, "d.so")), TN_ALREADY_EXISTS, &err);
  plugin_chameleon(folder, "e.so", "t.path_open", 0, "none"); /* P-78 */
  REQUIRE_INT(chmod(plugin_path(folder, "e.so"), 0666), 0);
  CHECK_STATUS(load_file(plugin_path(folder, "e.so")), TN_PERMISSION_DENIED, &err);
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
  CHECK_STATUS(load_file(plugin_path(folder, "d.so")), TN_FAILED_PRECONDITION, &err);
}

static tn_status load_again(void *path) { return tn_runtime_load_file(path, NULL, NULL); }

static void by_path__survives_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  char path[600];
  plugin_chameleon(folder, "a.so", "t.path_memory", 0, "none");
  snprintf(path, sizeof(path), "%s", plugin_path(folder, "a.so"));
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  tn_test_oom_sweep(load_again, path);
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
}

/* P-81: a process with more rights than its caller cannot allow it. */
static int elevated_child(void)
{
  if (tn_runtime_allow_files(1, NULL) != TN_PERMISSION_DENIED) return 1;
  if (tn_load_op_library("/a.so", NULL, NULL) != TN_PERMISSION_DENIED) return 3;
  return tn_runtime_load_file("/a.so", NULL, NULL) == TN_PERMISSION_DENIED ? 0 : 2;
}

static int become_elevated(const char *program)
{
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  execl(program, program, "--list", (char *)NULL);
  return 77;
}

static void by_path__is_rejected_in_a_set_user_id_program(void)
{
  char program[1000];
  size_t size = 0;
  if (geteuid() != 0) TAP_SKIP("only root can create a set-user-id program owned by root");
  unsigned char *bytes = plugin_read("/proc/self/exe", &size);
  snprintf(program, sizeof(program), "%s/elevated", tap_scratch_dir());
  plugin_write(program, bytes, size);
  free(bytes);
  REQUIRE_INT(chmod(tap_scratch_dir(), 0755), 0);
  REQUIRE_INT(chmod(program, 04755), 0);
  setenv("TENON_TEST_ELEVATED", "1", 1);
  int code = in_child(become_elevated, program);
  unsetenv("TENON_TEST_ELEVATED");
  if (code == 77) TAP_SKIP("set-user-id programs do not work here");
  CHECK_INT(code, 0);
}

/* ---- freezing ---- */

static int frozen_child(const char *folder)
{
  tn_session *session = NULL;
  (void)folder;
  if (load("t.z_before") != TN_OK) return 1;
  if (tn_freeze(NULL) != TN_OK) return 2;
  if (load("t.z_after") != TN_FAILED_PRECONDITION || strstr(tn_error_message(&err), "(tn_freeze)") == NULL) return 3;
  if (plugin_open_session("t.z_after", &session, &err) != TN_FAILED_PRECONDITION) return 4;
  if (plugin_open_session("t.z_before", &session, &err) != TN_OK) return 5;
  tn_session_destroy(session);
  if (plugin_open_session("", &session, &err) != TN_FAILED_PRECONDITION) return 6; /* no substitute is chosen */
  if (tn_runtime_rescan(NULL) != TN_OK || load("t.z_after") != TN_FAILED_PRECONDITION) return 7;
  if (tn_runtime_allow_files(1, NULL) != TN_OK || load_file(plugin_path(folder, "b.so")) != TN_FAILED_PRECONDITION)
    return 8;
  if (tn_freeze(NULL) != TN_OK) return 9;
  return plugin_count_mapped(folder) == 1 ? 0 : 10;
}

/* P-82; in a child, as freezing cannot be undone. */
static void freeze__nothing_is_loaded_afterwards(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.z_before", 100, "none");
  plugin_chameleon(folder, "b.so", "t.z_after", 900, "none");
  plugin_search(folder);
  CHECK_INT(in_child(frozen_child, folder), 0);
  CHECK_OK(load("t.z_after"), &err);
  CHECK_OK(tn_runtime_unregister("t.z_after", &err), &err);
}

/* ---- plugins that call back ---- */

static struct {
  int calls;
  tn_status registered, loaded, rescanned, added, frozen, listed, by_path;
  tn_status loaded_known;
  char text[600];
} back;

static tn_status fake_new(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *e)
{
  (void)self, (void)options, (void)e;
  *out = (tn_runtime_session *)&back;
  return TN_OK;
}
static tn_bool fake_accepts(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void fake_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }
static const tn_session_factory fake = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                         .name = "t.k_own",
                                         .new_session = fake_new,
                                         .accepts_options = fake_accepts,
                                         .destroy_session = fake_destroy };

/* Called by a plugin through TENON_TEST_CALL. */
static void called_back(void)
{
  tn_runtime_info one = { .struct_size = sizeof(one) };
  tn_error e = TN_ERROR_INIT;
  back.calls++;
  back.registered = tn_runtime_register("t.k_own", &fake, &e);
  snprintf(back.text, sizeof(back.text), "%s", tn_error_message(&e));
  back.loaded = tn_runtime_load("t.k_other", &one, &e);
  back.listed = tn_runtime_at(0, &one, &e);
  back.loaded_known = tn_runtime_load("t.k_known", &one, &e);
  tn_error_clear(&e);
}

static void called_back_to_change(void)
{
  called_back();
  back.rescanned = tn_runtime_rescan(NULL);
  back.added = tn_runtime_add_directory("/nowhere", NULL);
  back.frozen = tn_freeze(NULL);
  back.by_path = tn_runtime_load_file("/a.so", NULL, NULL);
}

static void will_call(void (*function)(void))
{
  char text[40];
  snprintf(text, sizeof(text), "%p", (void *)(uintptr_t)function);
  setenv("TENON_TEST_CALL", text, 1);
  memset(&back, 0, sizeof(back));
}

/* P-53: only the loader may change the registry during a load; a plugin that tries gets an
 * error, and no thread waits for itself. */
static void callback__a_plugin_cannot_change_the_registry_while_it_is_loaded(void)
{
  static const char *const places[] = { "ctor:call", "entry:call", "init:call" };
  const char *folder = plugin_folder();
  char file[20], name[20];
  plugin_chameleon(folder, "other.so", "t.k_other", 0, "none");
  plugin_chameleon(folder, "known.so", "t.k_known", 0, "none");
  for (int i = 0; i < 3; i++) {
    snprintf(file, sizeof(file), "p%d.so", i);
    snprintf(name, sizeof(name), "t.k_%d", i);
    plugin_ender(folder, file, name, places[i]);
  }
  plugin_search(folder);
  REQUIRE_OK(load("t.k_known"), &err);
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof(name), "t.k_%d", i);
    will_call(called_back_to_change);
    CHECK_OK(load(name), &err);
    CHECK_INT(back.calls, 1);
    CHECK_INT(back.registered, TN_FAILED_PRECONDITION);
    CHECK_STR(back.text,
              "registering runtime 't.k_own' is not allowed from a plugin's constructor, entry, init or shutdown");
    CHECK_INT(back.loaded, TN_FAILED_PRECONDITION);
    CHECK_INT(back.rescanned, TN_FAILED_PRECONDITION);
    CHECK_INT(back.added, TN_FAILED_PRECONDITION);
    CHECK_INT(back.frozen, TN_FAILED_PRECONDITION);
    CHECK(back.by_path != TN_OK);
    CHECK_INT(back.listed, TN_OK);
    CHECK_INT(back.loaded_known, TN_OK);
    CHECK_STATUS(load("t.k_own"), TN_NOT_FOUND, &err);
  }
  CHECK_OK(load("t.k_other"), &err);
}

static void called_back_where(void)
{
  tn_plugin_call call = { .struct_size = sizeof(call) };
  back.calls++;
  if (tn_plugin_call_now(&call))
    snprintf(back.text, sizeof(back.text), "%s (%s): %s%s", call.plugin, call.file, call.call,
             call.kernel != NULL ? "?" : "");
}

/* A session on the runtime, with one step. */
static void run_once(const char *target)
{
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *fetched = NULL;
  static const char text[] =
      "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } "
      "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }";
  const char *fetch = "c:0";
  const tn_import_options as_text = { .struct_size = sizeof as_text, .flags = TN_IMPORT_TEXT };
  REQUIRE_OK(tn_graph_create(&graph, &err), &err);
  REQUIRE_OK(tn_graph_import(graph, text, sizeof(text) - 1, &as_text, &err), &err);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, target, &err), &err);
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  REQUIRE_OK(tn_session_set_graph(session, graph, &err), &err);
  CHECK_OK(tn_session_run(session, NULL, NULL, NULL, 0, &fetch, &fetched, 1, NULL, 0, NULL, &err), &err);
  tn_tensor_unref(fetched);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
}

static void callback__a_program_can_query_the_running_plugin(void)
{
  static const struct {
    const char *fault, *call;
  } cases[] = { { "ctor:call", "one of its constructors" },
                { "entry:call", "its entry" },
                { "init:call", "its init" },
                { "accept:call", "its accepts_options" },
                { "session:call", "its new_session" },
                { "prepare:call", "its prepare" },
                { "step:call", "its step" },
                { "release:call", "its release" },
                { "destroy:call", "its destroy_session" } };
  const char *folder = plugin_folder();
  tn_plugin_call call = { .struct_size = sizeof(call) }, small = { .struct_size = TN_SIZE_TO(tn_plugin_call, call) };
  char file[20], name[20], wanted[500];
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    snprintf(file, sizeof(file), "p%zu.so", i);
    snprintf(name, sizeof(name), "t.which_%zu", i);
    plugin_ender(folder, file, name, cases[i].fault);
  }
  plugin_search(folder);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    snprintf(file, sizeof(file), "p%zu.so", i);
    snprintf(name, sizeof(name), "t.which_%zu", i);
    snprintf(wanted, sizeof(wanted), "%s (%s): %s", name, plugin_path(folder, file), cases[i].call);
    will_call(called_back_where);
    run_once(name);
    CHECK(back.calls > 0);
    CHECK_STR(back.text, wanted);
    CHECK(!tn_plugin_call_now(&call));
    CHECK(call.plugin == NULL && call.file == NULL && call.call == NULL && call.kernel == NULL && call.node == NULL);
  }
  CHECK(!tn_plugin_call_now(&small));
  CHECK(!tn_plugin_call_now(NULL));
}

/* P-70: queries from a callback are answered; a nested load is rejected. */
static void callback__may_query_but_not_load(void)
{
  const char *folder = plugin_folder();
  tn_session *session = NULL;
  plugin_ender(folder, "a.so", "t.k_asks", "none:");
  plugin_chameleon(folder, "b.so", "t.k_other", 0, "none"); /* another plugin, not loaded */
  plugin_chameleon(folder, "c.so", "t.k_fresh", 0, "none");
  plugin_search(folder);
  will_call(called_back);
  REQUIRE_OK(load("t.k_asks"), &err);
  REQUIRE_OK(tn_runtime_unregister("t.k_other", &err), &err);
  CHECK_OK(plugin_open_session("t.k_asks:call=yes", &session, &err), &err);
  CHECK_INT(back.calls, 1);
  CHECK_INT(back.listed, TN_OK);
  CHECK_INT(back.loaded, TN_FAILED_PRECONDITION);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_INT(back.registered, TN_OK); /* registering a factory of the program is not a load */
  CHECK_OK(tn_runtime_unregister("t.k_own", &err), &err);
  tn_session_destroy(session);
  CHECK_OK(load("t.k_fresh"), &err);
}

/* A plugin registers from another thread while it is being loaded. */
static void callback__another_thread_registers_during_a_load(void)
{
  const char *folder = plugin_folder();
  plugin_ender(folder, "a.so", "t.k_thread", "init:spawn");
  plugin_search(folder);
  will_call(called_back);
  /* t.k_known is loaded, and t.k_other is known to have been: neither needs the loader. */
  CHECK_OK(load("t.k_thread"), &err);
  CHECK_INT(back.calls, 1);
  CHECK_INT(back.registered, TN_OK);
  CHECK_INT(back.listed, TN_OK);
  CHECK_OK(tn_runtime_unregister("t.k_own", &err), &err);
}

/* ---- files that change ---- */

static char swap_from[600], swap_to[600];

static void swap_files(void) { rename(swap_from, swap_to); }

/* P-80: the file is replaced by another before the linker opens it. */
static void change__a_file_swapped_between_check_and_open_is_rejected(void)
{
  const char *folder = plugin_folder(), *other = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.w_swap", 0, "none");
  plugin_chameleon(other, "b.so", "t.w_swap", 0, "none");
  snprintf(swap_from, sizeof(swap_from), "%s", plugin_path(other, "b.so"));
  snprintf(swap_to, sizeof(swap_to), "%s", plugin_path(folder, "a.so"));
  plugin_search(folder);
  atomic_store(&inits, 0);
  log_action = swap_files;
  log_trigger = "opening plugin 't.w_swap'";
  tn_set_log_level(TN_LOG_DEBUG);
  CHECK_STATUS(load("t.w_swap"), TN_FAILED_PRECONDITION, &err);
  tn_set_log_level(TN_LOG_WARNING);
  CHECK_CONTAINS(tn_error_message(&err),
                 "a.so): the file was replaced while it was opened; its constructors have run, its entry has not");
  CHECK_NULL(log_trigger);
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK_INT(atomic_load(&inits), 0);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(load("t.w_swap"), &err);
}

/* P-99: users of the old file continue with it, whatever replaces it. */
static void change__a_plugin_is_replaced_while_it_runs(void)
{
  const char *folder = plugin_folder();
  tn_session *session = NULL, *second = NULL;
  plugin_ender(folder, "a.so", "t.w_runs", "none:");
  plugin_search(folder);
  REQUIRE_OK(plugin_open_session("t.w_runs", &session, &err), &err);
  plugin_write(plugin_path(folder, "a.so"), "rubbish", 7);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(plugin_open_session("t.w_runs", &second, &err), &err);
  tn_session_destroy(second);
  plugin_ender(folder, "a.so", "t.w_runs", "none:");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(plugin_open_session("t.w_runs", &second, &err), &err);
  tn_session_destroy(second);
  REQUIRE_INT(unlink(plugin_path(folder, "a.so")), 0);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(plugin_open_session("t.w_runs", &second, &err), &err);
  tn_session_destroy(second);
  tn_session_destroy(session);
}

/* P-63: an error stays valid after the plugin that set it is unloaded. */
static void change__an_error_outlives_its_plugin(void)
{
  const char *folder = plugin_folder();
  tn_error own = TN_ERROR_INIT;
  plugin_chameleon(folder, "a.so", "t.w_error", 0, "query_null");
  plugin_search(folder);
  tn_runtime_info one = { .struct_size = sizeof(one) };
  CHECK_STATUS(tn_runtime_load("t.w_error", &one, &own), TN_UNIMPLEMENTED, &own);
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK_CONTAINS(tn_error_message(&own), "it does not feel like it");
  REQUIRE_INT(unlink(plugin_path(folder, "a.so")), 0);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_CONTAINS(tn_error_message(&own), "it does not feel like it");
  tn_error_clear(&own);
}

/* ---- memory of two sides ---- */

/* P-46, P-47: each side frees the memory it allocated; a plugin copies the options that it
 * keeps. */
static void memory__is_freed_by_the_side_that_allocated_it(void)
{
  const char *folder = plugin_folder();
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_device_info device = { .struct_size = sizeof(device) };
  plugin_copy("own_heap", folder, "a.so");
  plugin_search(folder);
  REQUIRE_OK(plugin_open_session("test.own_heap", &session, &err), &err);
  tn_session_destroy(session);
  uint64_t before = tn_test_live_blocks();
  for (int i = 0; i < 20; i++) {
    char target[60];
    snprintf(target, sizeof(target), "test.own_heap:note=%d", 1000 + i);
    REQUIRE_OK(tn_session_options_create(&options, &err), &err);
    REQUIRE_OK(tn_session_options_set_target(options, target, &err), &err);
    REQUIRE_OK(tn_session_create(options, &session, &err), &err);
    memset(target, 'x', sizeof(target));
    REQUIRE_OK(tn_session_options_set_target(options, "direct:note=7", &err), &err);
    tn_session_options_destroy(options);
    CHECK_OK(tn_session_device(session, 0, &device, &err), &err);
    CHECK_INT(device.memory_bytes, 1000 + i);
    CHECK_STR(device.name, "/job:localhost/replica:0/task:0/device:CPU:0");
    tn_session_destroy(session);
  }
  CHECK_STATUS(plugin_open_session("test.own_heap:colour=red", &session, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "colour");
  tn_error_clear(&err);
  CHECK_INT(tn_test_live_blocks(), before);
  CHECK_OK(tn_runtime_unregister("test.own_heap", &err), &err); /* shutdown counts the blocks of its heap */
}

/* P-34 */
static void host__unknown_extensions_are_absent(void)
{
  const tn_host *host = tn__host_table();
  CHECK_NULL(host->get_extension("unknown.extension", 1));
  CHECK_NULL(host->get_extension("", 0));
  CHECK_INT(host->struct_size, TN_HOST_SIZE);
}

/* ---- unloading ---- */

/* P-74: unmapped only if it has no holders and its shutdown agrees; then it can be loaded again. */
static void unload__only_without_holders(void)
{
  const char *folder = plugin_folder();
  tn_session *session = NULL;
  plugin_copy("unloads", folder, "a.so");
  plugin_search(folder);
  for (int i = 0; i < 3; i++) {
    atomic_store(&inits, 0);
    REQUIRE_OK(plugin_open_session("test.unloads", &session, &err), &err);
    CHECK_INT(atomic_load(&inits), 1);
    CHECK_INT(plugin_count_mapped(folder), 1);
    CHECK_STATUS(tn_runtime_unregister("test.unloads", &err), TN_FAILED_PRECONDITION, &err);
    CHECK_CONTAINS(tn_error_message(&err), "it is held by 1 session, 0 calls and 0 buffers");
    tn_session_destroy(session);
    setenv("TENON_TEST_BUSY", "1", 1);
    CHECK_STATUS(tn_runtime_unregister("test.unloads", &err), TN_FAILED_PRECONDITION, &err);
    CHECK_CONTAINS(tn_error_message(&err), "its shutdown refuses; it stays registered");
    unsetenv("TENON_TEST_BUSY");
    CHECK_INT(plugin_count_mapped(folder), 1);
    CHECK_OK(tn_runtime_unregister("test.unloads", &err), &err);
    CHECK_INT(plugin_count_mapped(folder), 0);
    CHECK_STATUS(tn_runtime_unregister("test.unloads", &err), TN_NOT_FOUND, &err);
    REQUIRE_OK(tn_runtime_rescan(&err), &err);
  }
  plugin_copy("unloads", folder, "a.so"); /* a new version in its place, without a new process */
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(load("test.unloads"), &err);
  CHECK_OK(tn_runtime_unregister("test.unloads", &err), &err);
}

/* ---- the end of the process ---- */

static void *open_for_ever(void *arg)
{
  tn_session *session = NULL;
  for (;;) {
    if (plugin_open_session(arg, &session, NULL) != TN_OK) _exit(9);
    tn_session_destroy(session);
  }
}

static void print_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  puts(line);
}

/* The child ends while a session is open and a thread opens others. */
static void end_in_the_middle(void)
{
  static char target[] = "t.e_end";
  pthread_t thread;
  tn_session *session = NULL;
  tn_set_log_sink(print_line, NULL);
  tn_set_log_level(TN_LOG_INFO);
  if (plugin_open_session(target, &session, &err) != TN_OK || pthread_create(&thread, NULL, open_for_ever, target) != 0)
    _exit(8);
  usleep(50 * 1000);
  exit(0);
}

/* P-76: no plugin code runs when the process ends, whatever other threads do. */
static void end__no_plugin_code_runs_at_exit(void)
{
  const char *folder = plugin_folder();
  char line[200], command[4200];
  int inits_seen = 0, shutdowns_seen = 0;
  plugin_chameleon(folder, "a.so", "t.e_end", 0, "none");
  setenv("TENON_PLUGIN_PATH", folder, 1);
  setenv("TENON_PLUGIN_PATH_ONLY", "1", 1);
  setenv("TENON_TEST_END", "1", 1);
  snprintf(command, sizeof(command), "exec /proc/%d/exe", (int)getpid());
  fflush(stdout);
  FILE *pipe = popen(command, "r");
  unsetenv("TENON_TEST_END");
  REQUIRE_PTR(pipe);
  while (fgets(line, sizeof(line), pipe) != NULL) {
    inits_seen += strstr(line, "chameleon t.e_end: init") != NULL;
    shutdowns_seen += strstr(line, "shutdown") != NULL;
  }
  CHECK_INT(pclose(pipe), 0);
  CHECK_INT(inits_seen, 1);
  CHECK_INT(shutdowns_seen, 0);
}

/* ---- concurrent loads, and the second session ---- */

enum { THREADS = 200 };
static pthread_barrier_t all_here;
static atomic_int failures;

static void *open_by_name(void *arg)
{
  tn_error e = TN_ERROR_INIT;
  tn_session *session = NULL;
  pthread_barrier_wait(&all_here);
  if (plugin_open_session(arg, &session, &e) != TN_OK) {
    atomic_fetch_add(&failures, 1);
    tap_note("%s: %s", (const char *)arg, tn_error_message(&e));
  }
  tn_session_destroy(session);
  tn_error_clear(&e);
  return NULL;
}

static int first_use(const char *folder)
{
  static char names[4][20];
  pthread_t threads[THREADS];
  int n = 0;
  setenv("TENON_PLUGIN_PATH", folder, 1);
  pthread_barrier_init(&all_here, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    snprintf(names[i % 4], sizeof(names[0]), "t.m_%d", i % 4);
    if (pthread_create(&threads[n], NULL, open_by_name, names[i % 4]) != 0) return 3;
    n++;
  }
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  if (atomic_load(&failures) != 0) return 1;
  return atomic_load(&inits) == 4 && plugin_count_mapped(folder) == 4 ? 0 : 2;
}

/* A program that starts with 200 threads; in a child, so that plugins loaded here do not count. */
static void threads__two_hundred_open_sessions_by_name(void)
{
  const char *folder = plugin_folder();
  char file[20], name[20];
  for (int i = 0; i < 5; i++) {
    snprintf(file, sizeof(file), "p%d.so", i);
    snprintf(name, sizeof(name), "t.m_%d", i);
    plugin_chameleon(folder, file, name, 0, "init_slow");
  }
  atomic_store(&inits, 0);
  plugin_search(plugin_folder());
  tn_set_log_level(TN_LOG_INFO);
  setenv("TENON_PLUGIN_PATH", folder, 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_INT(first_use(folder), 0);
  tn_set_log_level(TN_LOG_WARNING);
}

static atomic_int inside, most_inside;

static void be_inside(void)
{
  int n = atomic_fetch_add(&inside, 1) + 1;
  if (n > atomic_load(&most_inside)) atomic_store(&most_inside, n);
  usleep(20 * 1000);
  atomic_fetch_sub(&inside, 1);
}

/* P-69 */
static void threads__inits_run_one_at_a_time(void)
{
  static char names[8][20];
  const char *folder = plugin_folder();
  pthread_t threads[8];
  char file[20];
  for (int i = 0; i < 8; i++) {
    snprintf(file, sizeof(file), "p%d.so", i);
    snprintf(names[i], sizeof(names[0]), "t.i_%d", i);
    plugin_ender(folder, file, names[i], "init:call");
  }
  plugin_search(folder);
  will_call(be_inside);
  atomic_store(&failures, 0);
  pthread_barrier_init(&all_here, NULL, 8);
  for (int i = 0; i < 8; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, open_by_name, names[i]), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&all_here);
  CHECK_INT(atomic_load(&failures), 0);
  CHECK_INT(atomic_load(&most_inside), 1);
}

/* P-09: the named plugin is loaded and nothing else; the second session opens no file at all. */
static void threads__second_session_touches_no_file(void)
{
  const char *folder = plugin_folder();
  char file[20], name[20];
  tn_session *session = NULL, *second = NULL;
  struct rlimit limit, none;
  for (int i = 0; i < 10; i++) {
    snprintf(file, sizeof(file), "p%d.so", i);
    snprintf(name, sizeof(name), "t.n_%d", i);
    plugin_chameleon(folder, file, name, 0, "none");
  }
  plugin_search(folder);
  CHECK_INT(plugin_count_mapped(folder), 0);
  REQUIRE_OK(plugin_open_session("t.n_7", &session, &err), &err);
  CHECK_INT(plugin_count_mapped(folder), 1);
  REQUIRE_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  none = (struct rlimit){ 0, limit.rlim_max };
  REQUIRE_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
  CHECK_NULL(fopen("/dev/null", "r"));
  tn_status status = plugin_open_session("t.n_7", &second, &err);
  REQUIRE_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  CHECK_OK(status, &err);
  tn_session_destroy(second);
  tn_session_destroy(session);
}

static void setup(void)
{
  if (getenv("TENON_TEST_END") != NULL) end_in_the_middle();
  tn_set_log_sink(watch_line, NULL);
  tn_set_log_level(TN_LOG_WARNING);
}

static void teardown(void) { tn_error_clear(&err); }

/* The set-user-id copy requests the list of tests. */
__attribute__((constructor)) static void begin(void)
{
  if (getenv("TENON_TEST_ELEVATED") != NULL) _exit(elevated_child());
}

/* The test with a child is first: sessions cannot be used in a process forked after one existed. */
TAP_MAIN_WITH(setup, teardown, TAP_TEST(freeze__nothing_is_loaded_afterwards),
              TAP_TEST(by_path__is_disabled_unless_the_program_allows_it), TAP_TEST(by_path__survives_lack_of_memory),
              TAP_TEST(by_path__is_rejected_in_a_set_user_id_program),
              TAP_TEST(callback__a_plugin_cannot_change_the_registry_while_it_is_loaded),
              TAP_TEST(callback__may_query_but_not_load), TAP_TEST(callback__a_program_can_query_the_running_plugin),
              TAP_TEST(callback__another_thread_registers_during_a_load),
              TAP_TEST(change__a_file_swapped_between_check_and_open_is_rejected),
              TAP_TEST(change__a_plugin_is_replaced_while_it_runs), TAP_TEST(change__an_error_outlives_its_plugin),
              TAP_TEST(memory__is_freed_by_the_side_that_allocated_it), TAP_TEST(host__unknown_extensions_are_absent),
              TAP_TEST(end__no_plugin_code_runs_at_exit), TAP_TEST(unload__only_without_holders),
              TAP_TEST(threads__inits_run_one_at_a_time), TAP_TEST(threads__two_hundred_open_sessions_by_name),
              TAP_TEST(threads__second_session_touches_no_file))
