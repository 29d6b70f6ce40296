/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as files: choosing among them, and unregistering. Each test has folders and names of
 * its own, since loaded plugins stay in the process. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>
#include <tenon/tenon.h>

#include "tests/support/loader_kit.h"
#include "conformance/support/oom.h"

/* ---- choosing among files ---- */

/* S-OPT-03, P-09, P-58: lower ranks are not opened. */
static void select__lower_ranks_are_not_opened(void)
{
  const char *top = plugin_folder(), *low = plugin_folder(), *none = plugin_folder();
  char path[1000];
  plugin_chameleon(top, "a.so", "t.r_top", 500, "none");
  plugin_chameleon(low, "a.so", "t.r_low", 200, "none");
  plugin_chameleon(none, "a.so", "t.r_none", 0, "none");
  snprintf(path, sizeof(path), "%s:%s:%s", none, low, top);
  plugin_search(path);
  CHECK_STR(chosen(""), "t.r_top");
  CHECK_INT(plugin_count_mapped(top), 1);
  CHECK_INT(plugin_count_mapped(low) + plugin_count_mapped(none), 0);
  CHECK_STR(chosen("t.r_none"), "t.r_none"); /* by name */
  CHECK_STR(chosen(""), "t.r_top");
  setenv("TENON_RANK", "t.r_none=600,t.r_top=0", 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STR(chosen(""), "t.r_none");
  CHECK_INT(plugin_count_mapped(low), 0);
  unsetenv("TENON_RANK");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(tn_runtime_unregister("t.r_top", &err), &err);
  CHECK_OK(tn_runtime_unregister("t.r_none", &err), &err);
}

/* P-09: without a name in the target, a plugin whose device types are all filtered out is not
 * opened. */
static void select__types_that_are_filtered_out_are_not_opened(void)
{
  static const char *const none[] = { "/device:GPU:0", "/gpu:1", "/job:localhost/device:CPUX:*,/gpu:0" };
  static const char *const some[] = { "/gpu:0,/cpu:0", "/job:localhost", "/task:0/device:CPU:*", "/" };
  const char *folder = plugin_folder();
  char text[8000];
  tn_session_options *options = NULL;
  plugin_chameleon(folder, "a.so", "t.t_cpu", 900, "none");
  plugin_search(folder);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  for (int turn = 0; turn < 2; turn++) { /* the same choice before and after it is opened */
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
      REQUIRE_OK(tn_session_options_parse(options, "device_filters", none[i], &err), &err);
      CHECK_STATUS(tn_explain_selection(options, text, sizeof(text), NULL, &err), TN_NOT_FOUND, &err);
      CHECK_CONTAINS(tn_error_message(&err), "a.so): device_filters exclude all its device types");
      CHECK_CONTAINS(text, "a.so) rank 900: not asked: device_filters exclude all its device types\n");
      CHECK_INT(plugin_count_mapped(folder), turn);
    }
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
      REQUIRE_OK(tn_session_options_parse(options, "device_filters", some[i], &err), &err);
      CHECK_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
      CHECK_CONTAINS(text, "chosen: t.t_cpu");
    }
  }
  tn_session_options_destroy(options);
  CHECK_OK(tn_runtime_unregister("t.t_cpu", &err), &err);
}

/* P-58: rank_for_options may only lower the rank; P-44, and health. */
static void select__refusing_unhealthy_and_lowering_plugins(void)
{
  const char *folder = plugin_folder();
  char text[8000];
  tn_session_options *options = NULL;
  plugin_chameleon(folder, "a.so", "t.s_refuses", 900, "refuses");
  plugin_chameleon(folder, "b.so", "t.s_ill", 800, "unhealthy");
  plugin_chameleon(folder, "c.so", "t.s_lowers", 700, "lowers_rank");
  plugin_chameleon(folder, "d.so", "t.s_good", 600, "none");
  plugin_chameleon(folder, "e.so", "t.s_silent", 950, "refuses_silently");
  plugin_search(folder);
  CHECK_STR(chosen(""), "t.s_good");
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
  tn_session_options_destroy(options);
  CHECK_CONTAINS(text, "a.so) rank 900: refused: ");
  CHECK_CONTAINS(text, ": it likes no options at all\n");
  CHECK_CONTAINS(text, "e.so) rank 950: refused: ");
  CHECK_CONTAINS(text, ": it gives no reason\n");
  CHECK_CONTAINS(text, "b.so) rank 800: refused: runtime 't.s_ill' (");
  CHECK_CONTAINS(text, ": the device fell off the bus\n");
  CHECK_CONTAINS(text, "c.so) rank 700: accepted\n");
  CHECK_CONTAINS(text, "d.so) rank 600: accepted\n");
  CHECK_STR(chosen("t.s_ill"), "");
  CHECK_INT(tn_error_code(&err), TN_UNAVAILABLE);
  CHECK_STR(chosen("t.s_refuses"), "");
  CHECK_INT(tn_error_code(&err), TN_INVALID_ARGUMENT);
  CHECK_STR(chosen("t.s_lowers"), "t.s_lowers");
  static const char *const names[] = { "t.s_refuses", "t.s_ill", "t.s_lowers", "t.s_good", "t.s_silent" };
  for (size_t i = 0; i < 5; i++) CHECK_OK(tn_runtime_unregister(names[i], &err), &err);
}

static uint64_t state = 88172645463325252u;

static size_t random_below(size_t n)
{
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (size_t)(state % n);
}

static void shuffle(int *items, size_t n)
{
  for (size_t i = n - 1; i > 0; i--) {
    size_t k = random_below(i + 1);
    int item = items[i];
    items[i] = items[k], items[k] = item;
  }
}

/* P-59: a hundred orders of the folders in the list, and of the files in the folders. */
static void select__the_whole_trace_is_the_same_in_every_order(void)
{
  enum { FOLDERS = 3, FILES = 6 };
  static const struct {
    const char *file, *name, *fault;
    int rank;
  } plugins[FILES] = { { "q.so", "t.r_top", "refuses", 900 }, { "a.so", "t.r_one", "none", 700 },
                       { "z.so", "t.r_two", "none", 600 },    { "m.so", "t.r_off", "none", 0 },
                       { "b.so", "t.r_low", "none", 20 },     { "y.so", "t.r_sick", "unhealthy", 800 } };
  const char *folders[FOLDERS];
  char path[1000], first[5000] = "", text[5000];
  tn_session_options *options = NULL;
  for (int i = 0; i < FOLDERS; i++) folders[i] = plugin_folder();
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  for (int round = 0; round < 100; round++) {
    int order[FILES] = { 0, 1, 2, 3, 4, 5 }, list[FOLDERS] = { 0, 1, 2 };
    shuffle(order, FILES);
    shuffle(list, FOLDERS);
    for (int i = 0; round < 50 && i < FILES; i++)
      unlink(plugin_path(folders[order[i] % FOLDERS], plugins[order[i]].file));
    for (int i = 0; round < 50 && i < FILES; i++)
      plugin_chameleon(folders[order[i] % FOLDERS], plugins[order[i]].file, plugins[order[i]].name,
                       plugins[order[i]].rank, plugins[order[i]].fault);
    snprintf(path, sizeof(path), "%s:%s:%s", folders[list[0]], folders[list[1]], folders[list[2]]);
    plugin_search(path);
    if (round == 49) /* from here on the files are kept, since candidates are opened */
      CHECK_OK(tn_explain_selection(options, first, sizeof(first), NULL, &err), &err);
    if (round < 50) {
      for (size_t i = 0; i < FILES; i++)
        CHECK_STR(listed_file(plugin_path(folders[i % FOLDERS], plugins[i].file)).name, plugins[i].name);
      continue;
    }
    CHECK_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
    CHECK_STR(text, first);
  }
  CHECK_CONTAINS(first, "chosen: t.r_one\n");
  CHECK_INT(plugin_count_mapped(plugin_path(folders[2 % FOLDERS], "z.so")), 0);
  tn_session_options_destroy(options);
  static const char *const loaded[] = { "t.r_top", "t.r_one", "t.r_sick" };
  for (size_t i = 0; i < 3; i++) CHECK_OK(tn_runtime_unregister(loaded[i], &err), &err);
}

/* P-58: installing a plugin with the usual rank does not change the choice for programs that
 * name no runtime. */
static void select__a_plugin_of_the_usual_rank_does_not_change_the_default(void)
{
  const char *folder = plugin_folder(), *other = plugin_folder();
  char path[700];
  plugin_chameleon(folder, "a.so", "t.d_first", 500, "none");
  plugin_search(folder);
  CHECK_STR(chosen(""), "t.d_first");
  plugin_chameleon(other, "a.so", "a.third_party", 0, "accept_aborts");
  snprintf(path, sizeof(path), "%s:%s", other, folder);
  plugin_search(path);
  CHECK_STR(chosen(""), "t.d_first");
  CHECK_INT(plugin_count_mapped(other), 0);
  CHECK_OK(load("a.third_party"), &err); /* loading it makes no difference */
  CHECK_STR(chosen(""), "t.d_first");
  CHECK_OK(tn_runtime_unregister("t.d_first", &err), &err);
  CHECK_OK(tn_runtime_unregister("a.third_party", &err), &err);
}

/* P-60: only the named runtime is asked; here another one, of higher rank, would end the
 * process. */
static void select__a_broken_acceptor_does_not_affect_a_named_one(void)
{
  const char *folder = plugin_folder();
  tn_session *session = NULL;
  tn_session_options *options = NULL;
  plugin_chameleon(folder, "a.so", "t.n_broken", 900, "accept_aborts");
  plugin_chameleon(folder, "b.so", "t.n_good", 100, "none");
  plugin_search(folder);
  REQUIRE_OK(load("t.n_broken"), &err);
  CHECK_STR(chosen("t.n_good"), "t.n_good");
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "t.n_good", &err), &err);
  CHECK_OK(tn_session_create(options, &session, &err), &err);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  CHECK_OK(tn_runtime_unregister("t.n_broken", &err), &err);
  CHECK_OK(tn_runtime_unregister("t.n_good", &err), &err);
}

/* P-59: for any order of folders and files. */
static void select__choice_does_not_depend_on_order(void)
{
  const char *folders[3] = { plugin_folder(), plugin_folder(), plugin_folder() };
  static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
  char path[1000];
  plugin_chameleon(folders[0], "z.so", "t.o_a", 300, "none");
  plugin_chameleon(folders[1], "a.so", "t.o_b", 300, "none");
  plugin_chameleon(folders[2], "m.so", "t.o_c", 200, "none");
  for (size_t i = 0; i < 6; i++) {
    snprintf(path, sizeof(path), "%s:%s:%s", folders[orders[i][0]], folders[orders[i][1]], folders[orders[i][2]]);
    plugin_search(path);
    CHECK_STR(chosen(""), "");
    CHECK_INT(tn_error_code(&err), TN_FAILED_PRECONDITION); /* P-57 */
    CHECK_CONTAINS(tn_error_message(&err), "z.so) with rank 300, t.o_b (");
    CHECK_CONTAINS(tn_error_message(&err),
                   "name one in the target, such as 't.o_b', or give it a higher rank, such as TENON_RANK=t.o_b=301");
  }
  CHECK_INT(plugin_count_mapped(folders[2]), 0);
  CHECK_OK(tn_runtime_unregister("t.o_a", &err), &err);
  CHECK_OK(tn_runtime_unregister("t.o_b", &err), &err);
}

/* ---- unregistering ---- */

/* P-45, P-73, S-PLG-05, S-REG-10 */
static void unregister__plugin_stays_mapped_and_is_not_started_again(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.u_two", 0, "two");
  plugin_search(folder);
  CHECK_STATUS(tn_runtime_unregister("t.u_two", &err), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "is not registered; the file '");
  CHECK_OK(load("t.u_two"), &err);
  tn__plugin *plugin = tn__reg.plugins;
  while (plugin != NULL && (!plugin->named || strcmp(plugin->manifest.name, "t.u_two") != 0)) plugin = plugin->next;
  REQUIRE_PTR(plugin);
  tn__registry_hold_plugin(plugin->host.self); /* as a buffer does */
  CHECK_STATUS(tn_runtime_unregister("t.u_two.b", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it is held by 0 sessions, 0 calls and 1 buffer");
  tn__registry_drop_plugin(plugin->host.self);
  forget_log();
  CHECK_OK(tn_runtime_unregister("t.u_two.b", &err), &err);
  CHECK_INT(count_logged("shutdown"), 0); /* one of its factories still exists */
  CHECK_STR(chosen("t.u_two.b"), "");
  CHECK_INT(tn_error_code(&err), TN_NOT_FOUND);
  CHECK_STR(chosen("t.u_two"), "t.u_two");
  CHECK_OK(tn_runtime_unregister("t.u_two", &err), &err);
  CHECK_INT(count_logged("chameleon t.u_two: shutdown"), 1);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_STATUS(load("t.u_two"), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "was unregistered; a plugin is initialised only once in a process");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("t.u_two"), TN_NOT_FOUND, &err);
}

static float on_device[2]; /* the memory of the handle below */
static int maps, releases;

static tn_status map_device(void *user, tn_buffer *buffer, void **address, tn_error *e)
{
  (void)user, (void)buffer, (void)e;
  maps++;
  *address = on_device;
  return TN_OK;
}

static void unmap_device(void *user, tn_buffer *buffer, void *address) { (void)user, (void)buffer, (void)address; }

static void release_device(void *user, void *data, size_t bytes)
{
  (void)user, (void)data, (void)bytes;
  releases++;
}

/* P-45: a tensor in the plugin's memory holds the plugin, even when its session has been
 * destroyed. */
static void unregister__a_device_tensor_holds_the_plugin(void)
{
  const char *folder = plugin_folder();
  const tn_host *host = NULL;
  char address[40];
  tn_session *session = NULL;
  tn_session_options *options = NULL;
  tn_buffer *buffer = NULL;
  tn_tensor *tensor = NULL;
  const int64_t two = 2;
  float values[2];
  plugin_ender(folder, "a.so", "t.u_device", "none:");
  plugin_search(folder);
  snprintf(address, sizeof(address), "%p", (void *)&host);
  setenv("TENON_TEST_HOST", address, 1);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "t.u_device", &err), &err);
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  unsetenv("TENON_TEST_HOST");
  REQUIRE_PTR(host);
  tn_buffer_desc desc = { .struct_size = sizeof(desc), .memory = TN_MEMORY_DEVICE, .device = "/device:GPU:0",
                          .handle = on_device, .bytes = sizeof(on_device), .map = map_device, .unmap = unmap_device,
                          .release = release_device, .holder = host->self };
  REQUIRE_OK(host->tensor->tn_buffer_create(&desc, &buffer, &err), &err);
  REQUIRE_OK(host->tensor->tn_tensor_from_buffer(TN_FLOAT, &two, 1, buffer, 0, &tensor, &err), &err);
  host->tensor->tn_buffer_unref(buffer);
  CHECK_STATUS(tn_runtime_unregister("t.u_device", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it is held by 1 session, 0 calls and 1 buffer");
  tn_session_destroy(session);
  CHECK_STATUS(tn_runtime_unregister("t.u_device", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it is held by 0 sessions, 0 calls and 1 buffer");
  CHECK_OK(tn_tensor_read(tensor, values, sizeof(values), &err), &err); /* still usable */
  CHECK_INT(maps, 1);
  CHECK_INT(releases, 0);
  tn_tensor_unref(tensor);
  CHECK_INT(releases, 1);
  CHECK_OK(tn_runtime_unregister("t.u_device", &err), &err);
  tn_session_options_destroy(options);
}

/* P-75 */
static void unregister__shutdown_may_refuse(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.u_busy", 0, "shutdown_refuses");
  plugin_search(folder);
  CHECK_OK(load("t.u_busy"), &err);
  CHECK_STATUS(tn_runtime_unregister("t.u_busy", &err), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(whole_error(), "its shutdown refuses; it stays registered\n  caused by: plugin 't.u_busy' (");
  CHECK_CONTAINS(whole_error(), "it is busy");
  CHECK_STR(chosen("t.u_busy"), "t.u_busy");
}

TAP_MAIN_WITH(loader_setup, loader_teardown,
  TAP_TEST(select__lower_ranks_are_not_opened), TAP_TEST(select__types_that_are_filtered_out_are_not_opened),
  TAP_TEST(select__refusing_unhealthy_and_lowering_plugins),
  TAP_TEST(select__the_whole_trace_is_the_same_in_every_order),
  TAP_TEST(select__a_plugin_of_the_usual_rank_does_not_change_the_default),
  TAP_TEST(select__a_broken_acceptor_does_not_affect_a_named_one),
  TAP_TEST(select__choice_does_not_depend_on_order),
  TAP_TEST(unregister__plugin_stays_mapped_and_is_not_started_again),
  TAP_TEST(unregister__a_device_tensor_holds_the_plugin),
  TAP_TEST(unregister__shutdown_may_refuse))
