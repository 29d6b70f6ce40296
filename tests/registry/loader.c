/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins as files: finding, listing, loading, rejecting. Each test has folders and names of its
 * own, since loaded plugins stay in the process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>
#include <tenon/tenon.h>

#include "tests/support/loader_kit.h"
#include "conformance/support/oom.h"

/* ---- discovery ---- */

/* P-09, P-16, S-PLG-06: listing runs no plugin code, not even a constructor that aborts. */
static void discovery__lists_without_opening(void)
{
  const char *folder = plugin_folder();
  plugin_copy("aborts", folder, "aborts.so");
  plugin_copy("minimal", folder, "minimal.so");
  plugin_copy("no_manifest", folder, "no_manifest.so");
  plugin_search(folder);
  tn_runtime_info one = listed_file(plugin_path(folder, "aborts.so"));
  CHECK_STR(one.name, "test.aborts");
  CHECK_INT(one.usable, 1);
  one = listed_file(plugin_path(folder, "minimal.so"));
  CHECK_STR(one.name, "test.minimal");
  CHECK_STR(one.kind, "runtime");
  CHECK_STR(one.origin, "file");
  CHECK_STR(one.version, "1.2.3");
  CHECK_STR(one.vendor, "Tests");
  CHECK_STR(one.types, "CPU");
  CHECK_INT(one.abi_major, TN_ABI_MAJOR);
  CHECK_INT(one.abi_minor, TN_ABI_MINOR);
  CHECK_INT(one.loaded, 0);
  one = listed_file(plugin_path(folder, "no_manifest.so")); /* P-20 */
  CHECK_STR(one.name, "");
  CHECK_INT(one.usable, 0);
  CHECK_STR(one.reason, "not a runtime plugin (no .tenon.manifest)");
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK_OK(load("test.minimal"), &err);
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_INT(info.loaded, 1);
  CHECK_STR(info.file, plugin_path(folder, "minimal.so"));
}

/* P-05, P-06, S-PLG-09 */
static void discovery__lists_regular_files_with_suitable_names_in_order(void)
{
  static const char *const decoys[] = { "plugin.so.bak", "plugin.so.1", "plugin.la",  "plugin",
                                        "Plugin.so",     "1plugin.so",  "plug-in.so", ".so",
                                        ".hidden.so",    "plugin.SO",   "a.b.so" };
  const char *folder = plugin_folder();
  size_t before;
  plugin_search(folder);
  before = listed();
  for (size_t i = 0; i < sizeof(decoys) / sizeof(decoys[0]); i++) plugin_copy("minimal", folder, decoys[i]);
  static const char longest[] = "name_of_64_bytes_name_of_64_bytes_name_of_64_bytes_name_of_64_by.so";
  plugin_copy("minimal", folder, "name_of_65_bytes_name_of_65_bytes_name_of_65_bytes_name_of_65_byt.so");
  plugin_write(plugin_path(folder, longest), "text", 4);
  REQUIRE_INT(mkdir(plugin_path(folder, "folder.so"), 0755), 0);
  REQUIRE_INT(mkfifo(plugin_path(folder, "fifo.so"), 0644), 0);
  REQUIRE_INT(symlink("nothing.so", plugin_path(folder, "dangling.so")), 0);
  plugin_chameleon(folder, "c.so", "t.order", 0, "none");
  plugin_chameleon(folder, "b_2.so", "t.order", 0, "none");
  plugin_write(plugin_path(folder, "a.so"), "text", 4); /* an invalid file before the others */
  plugin_search(folder);
  CHECK_INT(listed(), before + 4);
  CHECK_INT(listed_file(plugin_path(folder, longest)).usable, 0);
  CHECK_INT(listed_file(plugin_path(folder, "a.so")).usable, 0);
  CHECK_INT(listed_file(plugin_path(folder, "b_2.so")).shadowed, 0);
  CHECK_INT(listed_file(plugin_path(folder, "c.so")).shadowed, 1);
  CHECK_STR(chosen("t.order"), "t.order");
  CHECK_INT(listed_file(plugin_path(folder, "b_2.so")).loaded, 1);
}

/* P-01, P-13: the first plugin of a name wins, the others are reported. */
static void discovery__program_folders_precede_the_environment(void)
{
  const char *program = plugin_folder(), *first = plugin_folder(), *second = plugin_folder();
  char path[2000];
  plugin_chameleon(program, "z.so", "t.three", 0, "none");
  plugin_chameleon(first, "y.so", "t.three", 0, "none");
  plugin_chameleon(second, "x.so", "t.three", 0, "none");
  snprintf(path, sizeof(path), "%s:%s", first, second);
  plugin_search(path);
  CHECK_INT(listed_file(plugin_path(first, "y.so")).shadowed, 0);
  CHECK_INT(listed_file(plugin_path(second, "x.so")).shadowed, 1);
  REQUIRE_OK(tn_runtime_add_directory(program, &err), &err);
  CHECK_INT(listed_file(plugin_path(program, "z.so")).shadowed, 0);
  tn_runtime_info one = listed_file(plugin_path(first, "y.so"));
  CHECK_INT(one.shadowed, 1);
  CHECK_INT(one.usable, 0);
  CHECK_STR(one.reason, "another one of this name takes precedence over it");
  CHECK_STR(one.shadowed_by, plugin_path(program, "z.so"));
  CHECK_STR(listed_file(plugin_path(second, "x.so")).shadowed_by, plugin_path(program, "z.so"));
  CHECK_OK(load("t.three"), &err);
  CHECK_STR(info.file, plugin_path(program, "z.so"));
  CHECK_INT(plugin_count_mapped(first) + plugin_count_mapped(second), 0);
}

/* P-03, P-04 */
static void discovery__empty_and_relative_elements_are_rejected(void)
{
  const char *folder = plugin_folder();
  char path[1000], before[2000];
  plugin_chameleon(folder, "here.so", "t.here", 0, "none");
  REQUIRE(getcwd(before, sizeof(before)) != NULL);
  REQUIRE_INT(chdir(folder), 0);
  forget_log();
  snprintf(path, sizeof(path), ":.:%s:./", plugin_folder());
  plugin_search(path);
  REQUIRE_INT(chdir(before), 0);
  CHECK_INT(listed_file(plugin_path(folder, "here.so")).struct_size, 0);
  CHECK_INT(count_logged("has an empty element"), 1);
  CHECK_INT(count_logged("TENON_PLUGIN_PATH: the element '.' is refused: it is not an absolute path"), 1);
  CHECK_INT(count_logged("TENON_PLUGIN_PATH: the element './' is refused: it is not an absolute path"), 1);
}

/* P-10 */
static void discovery__missing_folders_are_not_errors(void)
{
  const char *folder = plugin_folder();
  char path[1000];
  plugin_chameleon(folder, "a.so", "t.behind", 0, "none");
  snprintf(path, sizeof(path), "/nowhere/at/all:%s/", folder);
  plugin_search(path);
  CHECK_STR(listed_file(plugin_path(folder, "a.so")).name, "t.behind");
}

/* P-12 */
static void discovery__links_to_one_file_are_one_plugin(void)
{
  const char *folder = plugin_folder(), *other = plugin_folder();
  char path[1000];
  size_t before;
  snprintf(path, sizeof(path), "%s:%s", folder, other);
  plugin_search(path);
  before = listed();
  plugin_chameleon(folder, "b.so", "t.links", 0, "none");
  REQUIRE_INT(link(plugin_path(folder, "b.so"), plugin_path(folder, "a.so")), 0);
  REQUIRE_INT(symlink(plugin_path(folder, "b.so"), plugin_path(folder, "c.so")), 0);
  REQUIRE_INT(symlink(plugin_path(folder, "b.so"), plugin_path(other, "d.so")), 0);
  plugin_search(path);
  CHECK_INT(listed(), before + 1);
  CHECK_OK(load("t.links"), &err);
  CHECK_STR(info.file, plugin_path(folder, "a.so"));
}

/* P-11 */
static void discovery__rescan_finds_new_files_and_keeps_loaded_ones(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.kept", 0, "none");
  plugin_chameleon(folder, "b.so", "t.removed", 0, "none");
  plugin_search(folder);
  CHECK_OK(load("t.kept"), &err);
  REQUIRE_INT(unlink(plugin_path(folder, "a.so")), 0);
  REQUIRE_INT(unlink(plugin_path(folder, "b.so")), 0);
  plugin_chameleon(folder, "c.so", "t.new", 0, "none");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("t.removed"), TN_NOT_FOUND, &err);
  CHECK_OK(load("t.new"), &err);
  CHECK_OK(load("t.kept"), &err);
  CHECK_STR(info.file, plugin_path(folder, "a.so"));
}

static tn_status rescan(void *arg)
{
  (void)arg;
  return tn_runtime_rescan(NULL);
}

static void discovery__survives_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.memory_a", 0, "none");
  plugin_copy("no_manifest", folder, "b.so");
  plugin_search(folder);
  size_t before = listed();
  tn_test_oom_sweep(rescan, NULL);
  CHECK_INT(listed(), before);
}

/* P-14: there is no limit, but a hundred files must work. */
static void discovery__a_hundred_plugins_are_scanned(void)
{
  const char *folder = plugin_folder();
  char file[32], name[32];
  for (int i = 0; i < 100; i++) {
    snprintf(file, sizeof(file), "p%03d.so", i);
    snprintf(name, sizeof(name), "t.many_%03d", 99 - i);
    plugin_chameleon(folder, file, name, 0, "none");
  }
  plugin_search(folder);
  int64_t start = tn__now_ns();
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  tap_note("100 plugins are scanned in %.2f ms", (double)(tn__now_ns() - start) / 1e6);
  CHECK_STR(listed_file(plugin_path(folder, "p099.so")).name, "t.many_000");
  CHECK_INT(plugin_count_mapped(folder), 0);
  plugin_search(plugin_folder());
}

/* ---- loading ---- */

/* S-PLG-04, P-23: the file's name does not matter, and init runs once. */
static void loader__loads_once(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "some_other_name.so", "t.once", 0, "none");
  plugin_search(folder);
  forget_log();
  CHECK_OK(load("t.once"), &err);
  CHECK_OK(load("t.once"), &err);
  CHECK_STR(chosen("t.once"), "t.once");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(load("t.once"), &err);
  CHECK_INT(count_logged("chameleon t.once: init"), 1);
}

/* P-08 */
static void loader__libtool_files_are_never_read(void)
{
  static const char la[] =
      "dlname='bait.so'\nlibrary_names='bait.so'\nold_library=''\ninstalled=no\nlibdir='/nowhere'\n"
      "shouldnotlink=yes\ndlopen=''\ndlpreopen=''\n";
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "good.so", "t.la", 0, "none");
  plugin_copy("aborts", folder, "bait.so");
  plugin_write(plugin_path(folder, "good.la"), la, sizeof(la) - 1);
  plugin_search(folder);
  CHECK_OK(load("t.la"), &err);
}

/* P-19, P-27, P-28, P-29, P-37, P-40, P-49, P-52, S-PLG-02, S-PLG-03, S-PLG-08: the error of
 * each fault; no trace of the plugin remains. */
static void loader__faulty_plugins_are_rejected_completely(void)
{
  static const struct {
    const char *fault;
    tn_status status;
    const char *message;
    int mapped; /* the code stays mapped once init was called */
  } cases[] = {
    { "query_null", TN_UNIMPLEMENTED, "it does not feel like it", 0 },
    { "query_silent", TN_FAILED_PRECONDITION, "its entry failed and gave no reason", 0 },
    { "code_name", TN_INVALID_ARGUMENT,
      "disagree: 'name' is 't.f_code_name' in the manifest and 'test.liar' in the code", 0 },
    { "code_types", TN_INVALID_ARGUMENT, "'types' is 'CPU' in the manifest and 'GPU' in the code", 0 },
    { "code_kind", TN_INVALID_ARGUMENT, "'kind' is 'runtime' in the manifest and 'kernels' in the code", 0 },
    { "code_abi", TN_INVALID_ARGUMENT, "'abi' is '0.1' in the manifest and '0.8' in the code", 0 },
    { "code_major", TN_FAILED_PRECONDITION, "made for plugin ABI 1.1, this library has 0.1", 0 },
    { "short_plugin", TN_INVALID_ARGUMENT, "struct_size of the tn_plugin that its entry returned is 24, wanted", 0 },
    { "no_factories", TN_INVALID_ARGUMENT, "it provides no session factory", 0 },
    { "many_factories", TN_INVALID_ARGUMENT, "it claims to provide 1099511627776 session factories", 0 },
    { "null_factory", TN_INVALID_ARGUMENT, "is NULL", 0 },
    { "other_name", TN_INVALID_ARGUMENT, "none of its session factories is named 't.f_other_name'", 0 },
    { "bad_name", TN_INVALID_ARGUMENT, "'No Name' is not a valid runtime name", 0 },
    { "no_name", TN_INVALID_ARGUMENT, "lacks the required callback 'name'", 0 },
    { "no_new_session", TN_INVALID_ARGUMENT, "lacks the required callback 'new_session'", 0 },
    { "no_accepts_options", TN_INVALID_ARGUMENT, "lacks the required callback 'accepts_options'", 0 },
    { "no_destroy_session", TN_INVALID_ARGUMENT, "lacks the required callback 'destroy_session'", 0 },
    { "short_factory", TN_INVALID_ARGUMENT, "struct_size is 32, wanted at least", 0 },
    { "two_equal", TN_ALREADY_EXISTS, "runtime 't.f_two_equal' exists already (", 0 },
    { "init_fails", TN_DATA_LOSS, "its tables are damaged", 1 },
    { "init_silent", TN_ABORTED, "its init failed and gave no reason", 1 },
    { "init_nonsense", TN_INTERNAL, "its init returned 4711, which is not a status", 1 },
  };
  const char *good = plugin_folder();
  char name[64], path[1000];
  plugin_chameleon(good, "good.so", "t.f_good", 0, "none");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const char *folder = plugin_folder();
    snprintf(name, sizeof(name), "t.f_%s", cases[i].fault);
    plugin_chameleon(folder, "bad.so", name, 0, cases[i].fault);
    snprintf(path, sizeof(path), "%s:%s", folder, good);
    plugin_search(path);
    forget_log();
    tn_status status = load(name);
    CHECK_MSG(status == cases[i].status, "%s: found %s, wanted %s", cases[i].fault, tn_status_name(status),
              tn_status_name(cases[i].status));
    CHECK_CONTAINS(tn_error_message(&err), cases[i].message);
    snprintf(path, sizeof(path), "plugin '%s' (%s): ", name, plugin_path(folder, "bad.so"));
    CHECK_CONTAINS(tn_error_message(&err), path); /* P-64 */
    CHECK_STR(info.name, name);
    CHECK_INT(info.usable, 0);
    CHECK_CONTAINS(info.reason, cases[i].message);
    CHECK_INT(plugin_count_mapped(folder), cases[i].mapped);
    CHECK_STATUS(tn_runtime_unregister(name, &err), TN_NOT_FOUND, &err);
    CHECK_INT(load(name), cases[i].status); /* fails again, without a second init */
    CHECK_INT(count_logged(": init"), cases[i].mapped);
    CHECK_OK(load("t.f_good"), &err);
  }
}

/* P-26, P-27, P-50: newer and older structs, and two factories in one file. */
static void loader__other_sizes_and_two_factories_are_accepted(void)
{
  static const char *const good[] = { "long_plugin", "long_factory", "two", "none" };
  const char *folder = plugin_folder();
  char file[64], name[64];
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    snprintf(file, sizeof(file), "%s.so", good[i]);
    snprintf(name, sizeof(name), "t.g_%s", good[i]);
    plugin_chameleon(folder, file, name, 0, good[i]);
  }
  plugin_search(folder);
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    snprintf(name, sizeof(name), "t.g_%s", good[i]);
    CHECK_OK(load(name), &err);
    CHECK_STR(chosen(name), name);
  }
  CHECK_STR(chosen("t.g_two.b"), "t.g_two.b");
}

/* P-48, S-PLG-08: a name that is taken fails the whole load, including the plugin's other
 * factory. */
static void loader__taken_name_fails_the_whole_load(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.has_taken", 0, "taken");
  plugin_chameleon(folder, "b.so", "test.taken", 0, "none");
  plugin_search(folder);
  CHECK_OK(load("test.taken"), &err);
  CHECK_STATUS(load("t.has_taken"), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "a.so"));
  CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "b.so"));
  CHECK_STR(chosen("t.has_taken"), "");
  CHECK_STR(chosen("test.taken"), "test.taken");
}

/* P-52: names of the library's own plugins are reserved, also in folders that precede them in
 * the search list. */
static void loader__names_of_the_library_are_reserved(void)
{
  static const char *const names[] = { "direct", "threaded", "gpu", "onednn", "cluster", "local", "remote" };
  char text[200];
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *folder = plugin_folder();
    plugin_chameleon(folder, "a.so", names[i], 900, "none");
    plugin_search(folder);
    CHECK_STATUS(load(names[i]), TN_NOT_FOUND, &err);
    snprintf(text, sizeof(text),
             "manifest: 'name' is '%s', wanted one that is not reserved for the library's own plugins", names[i]);
    CHECK_CONTAINS(tn_error_message(&err), text);
    CHECK_STR(listed_file(plugin_path(folder, "a.so")).name, ""); /* it hides no other file */
    CHECK_INT(plugin_count_mapped(folder), 0);
  }
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "direct.own", 0, "none");
  plugin_search(folder);
  CHECK_OK(load("direct.own"), &err);
}

/* P-40, P-41, S-PLG-03, S-PLG-07 */
static void loader__declining_plugins_are_listed_as_unusable(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.no_device", 900, "init_unavailable");
  plugin_chameleon(folder, "b.so", "t.fallback", 100, "none");
  plugin_search(folder);
  forget_log();
  CHECK_STR(chosen(""), "t.fallback"); /* with a warning */
  CHECK_INT(count_logged("no such device here"), 1);
  CHECK_STR(chosen(""), "t.fallback");
  CHECK_INT(count_logged("no such device here"), 1);
  CHECK_STATUS(load("t.no_device"), TN_UNAVAILABLE, &err);
  CHECK_CONTAINS(tn_error_message(&err), "no such device here");
  CHECK_INT(info.usable, 0);
  CHECK_STR(info.reason, "no such device here");
  CHECK_STR(chosen("nowhere"), "");
  CHECK_CONTAINS(tn_error_message(&err), "(no such device here)"); /* P-54 */
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("t.no_device"), TN_UNAVAILABLE, &err);
  CHECK_INT(count_logged("chameleon t.no_device: init"), 1);
  CHECK_OK(tn_runtime_unregister("t.no_device", &err), &err);
  CHECK_STATUS(tn_runtime_unregister("t.no_device", &err), TN_NOT_FOUND, &err);
  CHECK_OK(tn_runtime_unregister("t.fallback", &err), &err);
}

/* P-28, P-30: a plugin of another ABI is rejected by its manifest; none of its code runs. */
static void loader__other_abis_are_rejected_before_any_code_runs(void)
{
  static const struct {
    const char *abi, *min_host, *message;
    tn_status status;
  } cases[] = {
    { "9.0", "9.0",
      "made for plugin ABI 9.0, this library has 0.1: the library is older; update the library, or rebuild the "
      "plugin with its headers",
      TN_FAILED_PRECONDITION },
    { "0.9", "0.9", "made for plugin ABI 0.9 and needs at least 0.9, this library has 0.1: the library is older",
      TN_FAILED_PRECONDITION },
    { "0.9", "0.1", "", TN_INVALID_ARGUMENT }, /* accepted; only this one is opened, and its code says 0.1 */
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const char *folder = plugin_folder();
    size_t size = 0;
    char text[32];
    unsigned char *bytes = plugin_read(plugin_source(i < 2 ? "aborts" : "minimal"), &size);
    snprintf(text, sizeof(text), "abi=%s", cases[i].abi);
    plugin_patch(bytes, size, "abi=0.1", text);
    snprintf(text, sizeof(text), "min_host=%s", cases[i].min_host);
    plugin_patch(bytes, size, "min_host=0.1", text);
    snprintf(text, sizeof(text), "name=t.abi%zu", i);
    plugin_patch(bytes, size, i < 2 ? "name=test.aborts" : "name=test.minimal", text);
    plugin_write(plugin_path(folder, "abi.so"), bytes, size);
    free(bytes);
    plugin_search(folder);
    CHECK_STATUS(load(text + strlen("name=")), cases[i].status, &err);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].message);
    CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "abi.so"));
    CHECK_INT(plugin_count_mapped(folder), 0);
  }
}

/* P-61, P-62, S-PLG-01: each cause has its own message; the dynamic linker's is the innermost. */
static void loader__every_cause_has_its_own_message(void)
{
  const char *folder = plugin_folder();
  size_t size = 0;
  plugin_copy("undefined", folder, "undefined.so");
  plugin_copy("no_entry", folder, "no_entry.so");
  plugin_chameleon(folder, "removed.so", "t.w_removed", 0, "none");
  unsigned char *bytes = plugin_read(plugin_source("chameleon"), &size);
  plugin_patch(bytes, size, "chameleon_________________", "t.w_needs");
  plugin_patch(bytes, size, "libc.so.6", "libq.so.6");
  plugin_write(plugin_path(folder, "needs.so"), bytes, size);
  plugin_patch(bytes, size, "t.w_needs", "t.w_cut");
  plugin_write(plugin_path(folder, "cut.so"), bytes, size / 2);
  plugin_write(plugin_path(folder, "text.so"), "#!/bin/sh\n", 10);
  free(bytes);
  plugin_search(folder);
  REQUIRE_INT(unlink(plugin_path(folder, "removed.so")), 0);

  CHECK_STATUS(load("test.undefined"), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "undefined.so): the dynamic linker cannot open it");
  CHECK_CONTAINS(tn_error_cause(&err, tn_error_n_causes(&err) - 1), "tenon_test_missing_function");
  CHECK_CONTAINS(info.reason, "tenon_test_missing_function");
  CHECK_STATUS(load("t.w_needs"), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_cause(&err, tn_error_n_causes(&err) - 1), "libq.so.6");
  CHECK_STATUS(load("test.no_entry"), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(whole_error(),
                 "it has no entry 'no_entry_LTX_tn_plugin_query', which its manifest names\n  caused by: ");
  CHECK_STATUS(load("t.w_removed"), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "removed.so' does not exist");
  tn_runtime_info one = listed_file(plugin_path(folder, "cut.so"));
  CHECK_INT(one.usable, 0);
  CHECK_CONTAINS(one.reason, "cut short or damaged");
  one = listed_file(plugin_path(folder, "text.so"));
  CHECK_STR(one.reason, "not a shared object: byte 0 does not begin an ELF header");
  CHECK_STATUS(load("t.w_cut"), TN_NOT_FOUND, &err); /* its manifest is not trusted */
  CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "cut.so"));
  CHECK_INT(plugin_count_mapped(folder), 0);
}

/* P-17 end to end: a truncated file that is found and requested never ends the process. */
static void loader__truncated_files_are_errors(void)
{
  const char *folder = plugin_folder();
  size_t size = 0;
  char file[32];
  unsigned char *bytes = plugin_read(plugin_source("chameleon"), &size);
  plugin_patch(bytes, size, "chameleon_________________", "t.truncated");
  for (size_t n = 0; n < size; n += 64) {
    snprintf(file, sizeof(file), "cut_%zu.so", n);
    plugin_write(plugin_path(folder, file), bytes, n);
  }
  free(bytes);
  plugin_search(folder);
  CHECK_STATUS(load("t.truncated"), TN_NOT_FOUND, &err);
  for (size_t n = 0; n < size; n += 64) {
    snprintf(file, sizeof(file), "cut_%zu.so", n);
    tn_runtime_info one = listed_file(plugin_path(folder, file));
    CHECK_MSG(one.struct_size != 0 && !one.usable && one.reason[0] != 0, "%s", file);
  }
  plugin_search(plugin_folder());
}

/* A file that changes between scan and load, or while its plugin is loaded. */
static void loader__changed_files_are_rejected(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.swapped", 0, "none");
  plugin_search(folder);
  plugin_chameleon(folder, "a.so", "t.swapped", 0, "none");
  CHECK_STATUS(load("t.swapped"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the file was changed after it was found");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(load("t.swapped"), &err);
  plugin_chameleon(folder, "a.so", "t.newer", 0, "none");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("t.newer"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "another file was loaded from this path before");
  CHECK_OK(load("t.swapped"), &err);
}

/* P-78 */
static void loader__insecure_files_are_listed_and_rejected(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.insecure", 0, "none");
  REQUIRE_INT(chmod(plugin_path(folder, "a.so"), 0666), 0);
  plugin_search(folder);
  tn_runtime_info one = listed_file(plugin_path(folder, "a.so"));
  CHECK_INT(one.usable, 0);
  CHECK_CONTAINS(one.reason, "has mode 0666: it is world-writable");
  CHECK_STATUS(load("t.insecure"), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "has mode 0666");
  REQUIRE_INT(chmod(plugin_path(folder, "a.so"), 0644), 0);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  REQUIRE_INT(chmod(folder, 0777), 0); /* after the scan */
  CHECK_STATUS(load("t.insecure"), TN_PERMISSION_DENIED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "has mode 0777");
  REQUIRE_INT(chmod(folder, 0755), 0);
}

static void loader__kernel_plugins_are_listed_only(void)
{
  const char *folder = plugin_folder();
  plugin_copy("kernels_only", folder, "kernels.so");
  plugin_search(folder);
  tn_runtime_info one = listed_file(plugin_path(folder, "kernels.so"));
  CHECK_STR(one.name, "test.kernels");
  CHECK_STR(one.kind, "kernels");
  CHECK_INT(one.rank, 300);
  CHECK_INT(one.usable, 1);
  CHECK_STATUS(load("test.kernels"), TN_NOT_FOUND, &err);
  CHECK_CONTAINS(tn_error_message(&err), "there is no runtime 'test.kernels' (it is a kernel plugin)");
  CHECK_STR(chosen(""), "");
  CHECK_INT(plugin_count_mapped(folder), 0);
}

/* Each allocation fails in turn: the plugin is not loaded, can be loaded later, and nothing
 * leaks. */
static void loader__survives_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  tn_status status = TN_RESOURCE_EXHAUSTED;
  plugin_chameleon(folder, "a.so", "t.memory", 0, "two");
  plugin_search(folder);
  for (uint64_t nth = 1; nth < 1000 && status != TN_OK; nth++) {
    tn_error_clear(&err);
    uint64_t blocks = tn_test_live_blocks();
    info = (tn_runtime_info){ .struct_size = sizeof(info) };
    tn_test_fail_allocation(nth, 1);
    status = tn_runtime_load("t.memory", &info, NULL);
    tn_test_fail_allocation(0, 0);
    CHECK_MSG(status == TN_OK || status == TN_RESOURCE_EXHAUSTED, "allocation %d: %s", (int)nth,
              tn_status_name(status));
    if (status == TN_OK) break;
    CHECK_INT(tn_test_live_blocks(), blocks);
    CHECK_INT(plugin_count_mapped(folder), 0);
  }
  CHECK_INT(status, TN_OK);
  CHECK_STR(chosen("t.memory.b"), "t.memory.b");
}

/* ---- other users ---- */

/* Runs fn in a child; fn's return value is the exit status. */
static int in_child(int (*fn)(void *arg), void *arg)
{
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(fn(arg));
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int unreadable(void *arg)
{
  const char *folder = arg;
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  if (setenv("TENON_PLUGIN_PATH", folder, 1) != 0 || tn_runtime_rescan(NULL) != TN_OK) return 1;
  tn_runtime_info one = listed_file(plugin_path(folder, "a.so"));
  if (one.struct_size == 0) return 2;
  return strstr(one.reason, "cannot be read: permission denied") != NULL ? 0 : 3;
}

/* P-61 */
static void loader__unreadable_files_are_errors(void)
{
  const char *folder = plugin_folder();
  if (geteuid() != 0) TAP_SKIP("only root can become another user");
  plugin_chameleon(folder, "a.so", "t.unreadable", 0, "none");
  REQUIRE_INT(chmod(tap_scratch_dir(), 0755), 0);
  REQUIRE_INT(chmod(plugin_path(folder, "a.so"), 0600), 0);
  int code = in_child(unreadable, (void *)folder);
  if (code == 77) TAP_SKIP("this process may not change its user");
  CHECK_INT(code, 0);
}

/* Run by the test below as a set-user-id program: exits with 0 if the environment was ignored
 * (P-77). */
static int elevated_child(void)
{
  if (!tn__elevated()) return 77; /* mounted nosuid */
  tn_runtime_info one = { .struct_size = sizeof(one) };
  forget_log();
  if (tn_runtime_rescan(NULL) != TN_OK) return 1;
  for (size_t i = 0; tn_runtime_at(i, &one, NULL) == TN_OK; i++)
    if (strcmp(one.name, "t.elevated") == 0) return 2;
  return count_logged("TENON_PLUGIN_PATH is ignored: this process has elevated privileges") == 1 ? 0 : 3;
}

static int become_elevated(void *arg)
{
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  execl(arg, arg, "--elevated", (char *)NULL);
  return 77;
}

static void security__set_user_id_programs_ignore_the_environment(void)
{
  const char *folder = plugin_folder();
  char program[1000];
  size_t size = 0;
  if (geteuid() != 0) TAP_SKIP("only root can create a set-user-id program owned by root");
  plugin_chameleon(folder, "a.so", "t.elevated", 0, "none");
  unsigned char *bytes = plugin_read("/proc/self/exe", &size);
  snprintf(program, sizeof(program), "%s/elevated", tap_scratch_dir());
  plugin_write(program, bytes, size);
  free(bytes);
  REQUIRE_INT(chmod(tap_scratch_dir(), 0755), 0);
  REQUIRE_INT(chmod(program, 04755), 0);
  setenv("TENON_PLUGIN_PATH", folder, 1);
  setenv("LTDL_LIBRARY_PATH", folder, 1);
  int code = in_child(become_elevated, program);
  unsetenv("LTDL_LIBRARY_PATH");
  if (code == 77) TAP_SKIP("set-user-id programs do not work here");
  CHECK_INT(code, 0);
}

/* ---- main ---- */

static const tap_test tests[] = {
  TAP_TEST(discovery__lists_without_opening),
  TAP_TEST(discovery__lists_regular_files_with_suitable_names_in_order),
  TAP_TEST(discovery__program_folders_precede_the_environment),
  TAP_TEST(discovery__empty_and_relative_elements_are_rejected),
  TAP_TEST(discovery__missing_folders_are_not_errors),
  TAP_TEST(discovery__links_to_one_file_are_one_plugin),
  TAP_TEST(discovery__rescan_finds_new_files_and_keeps_loaded_ones),
  TAP_TEST(discovery__survives_lack_of_memory),
  TAP_TEST(discovery__a_hundred_plugins_are_scanned),
  TAP_TEST(loader__loads_once),
  TAP_TEST(loader__libtool_files_are_never_read),
  TAP_TEST(loader__faulty_plugins_are_rejected_completely),
  TAP_TEST(loader__other_sizes_and_two_factories_are_accepted),
  TAP_TEST(loader__taken_name_fails_the_whole_load),
  TAP_TEST(loader__names_of_the_library_are_reserved),
  TAP_TEST(loader__declining_plugins_are_listed_as_unusable),
  TAP_TEST(loader__other_abis_are_rejected_before_any_code_runs),
  TAP_TEST(loader__every_cause_has_its_own_message),
  TAP_TEST(loader__truncated_files_are_errors),
  TAP_TEST(loader__changed_files_are_rejected),
  TAP_TEST(loader__insecure_files_are_listed_and_rejected),
  TAP_TEST(loader__kernel_plugins_are_listed_only),
  TAP_TEST(loader__survives_lack_of_memory),
  TAP_TEST(loader__unreadable_files_are_errors),
  TAP_TEST(security__set_user_id_programs_ignore_the_environment),
};

int main(int argc, char **argv)
{
  if (argc == 2 && strcmp(argv[1], "--elevated") == 0) {
    loader_setup();
    return elevated_child();
  }
  return tap_main_with(argc, argv, __FILE__, tests, sizeof(tests) / sizeof(tests[0]), loader_setup, loader_teardown);
}
