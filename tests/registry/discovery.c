/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of plugins and their configuration: search list, files beside plugins, variables, and
 * unusable folders (P-02, P-07, P-21, P-22, P-65). */
#define _GNU_SOURCE
#include <dirent.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/base/threads/lock.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

static tn_error err = TN_ERROR_INIT;

/* ---- the log ---- */

static char logged[400000];

static void keep_line(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  size_t n = strlen(logged);
  snprintf(logged + n, sizeof(logged) - n, "%s\n", line);
}

static int count_logged(const char *text)
{
  int n = 0;
  for (const char *at = logged; (at = strstr(at, text)) != NULL; at++) n++;
  return n;
}

/* ---- queries ---- */

static tn_status load(const char *name)
{
  tn_runtime_info info = { .struct_size = sizeof(info) };
  return tn_runtime_load(name, &info, &err);
}

static tn_runtime_info listed_file(const char *path)
{
  tn_runtime_info found = { .struct_size = sizeof(found) };
  for (size_t i = 0; tn_runtime_at(i, &found, NULL) == TN_OK; i++)
    if (strcmp(found.file, path) == 0) return found;
  return (tn_runtime_info){ 0 };
}

static size_t listed(void)
{
  size_t n = 0;
  for (tn_runtime_info one = { .struct_size = sizeof(one) }; tn_runtime_at(n, &one, NULL) == TN_OK; n++) {}
  return n;
}

static size_t search_list(const char **first)
{
  size_t n = 0;
  const char *path = NULL, *fault = NULL;
  *first = "";
  for (; tn_runtime_directory_at(n, &path, &fault, NULL) == TN_OK; n++)
    if (n == 0) *first = path;
  return n;
}

static void set(const char *name, const char *value)
{
  if (value != NULL) setenv(name, value, 1);
  else unsetenv(name);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
}

static void beside(const char *folder, const char *file, const char *text)
{
  plugin_write(plugin_path(folder, file), text, strlen(text));
}

/* ---- the search list ---- */

/* P-02: TENON_PLUGIN_PATH is searched before the installed folder; with the other variable it
 * replaces that folder. */
static void search__only_replaces_the_installed_folder(void)
{
  static const char *const off[] = { "", "0", NULL };
  const char *folder = plugin_folder(), *first = NULL, *last = NULL;
  plugin_search(folder);
  CHECK_INT(search_list(&first), 1);
  CHECK_STR(first, folder);
  for (size_t i = 0; i < 3; i++) {
    set("TENON_PLUGIN_PATH_ONLY", off[i]);
    CHECK_INT(search_list(&first), 2);
    CHECK_STR(first, folder);
    REQUIRE_OK(tn_runtime_directory_at(1, &last, NULL, &err), &err);
    CHECK_CONTAINS(last, "/tenon/plugins-0");
  }
  set("TENON_PLUGIN_PATH", NULL);
  CHECK_INT(search_list(&first), 1);
  CHECK_CONTAINS(first, "/tenon/plugins-0");
  CHECK_STATUS(tn_runtime_directory_at(1, NULL, NULL, &err), TN_OUT_OF_RANGE, &err);
  plugin_search(folder);
}

/* P-10: each unreadable folder is listed with the reason, and the others are read. */
static void search__unreadable_folders_have_a_reason(void)
{
  const char *good = plugin_folder(), *bad = plugin_folder(), *fault = NULL;
  char path[3000];
  plugin_chameleon(good, "a.so", "t.s_good", 0, "none");
  REQUIRE_INT(symlink("two", plugin_path(bad, "one")), 0);
  REQUIRE_INT(symlink("one", plugin_path(bad, "two")), 0);
  beside(bad, "file", "x");
  snprintf(path, sizeof(path), "/nowhere:%s/one:%s/file:%s", bad, bad, good);
  plugin_search(path);
  static const char *const wanted[] = { "it does not exist", "its symbolic links form a loop", "it is not a folder",
                                        "" };
  for (size_t i = 0; i < 4; i++) {
    REQUIRE_OK(tn_runtime_directory_at(i, NULL, &fault, &err), &err);
    CHECK_STR(fault, wanted[i]);
  }
  CHECK_STR(listed_file(plugin_path(good, "a.so")).name, "t.s_good");
}

static int unreadable_folder(const char *folder)
{
  const char *fault = NULL;
  if (setgid(65534) != 0 || setuid(65534) != 0) return 77;
  if (setenv("TENON_PLUGIN_PATH", folder, 1) != 0 || tn_runtime_rescan(NULL) != TN_OK) return 1;
  if (tn_runtime_directory_at(0, NULL, &fault, NULL) != TN_OK) return 2;
  return strcmp(fault, "permission denied") == 0 ? 0 : 3;
}

static void search__unreadable_folder_is_a_note(void)
{
  const char *folder = plugin_folder();
  int status = 0;
  if (geteuid() != 0) TAP_SKIP("only root can become another user");
  REQUIRE_INT(chmod(tap_scratch_dir(), 0755), 0);
  REQUIRE_INT(chmod(folder, 0700), 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(unreadable_folder(folder));
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  if (WEXITSTATUS(status) == 77) TAP_SKIP("this process may not change its user");
  CHECK_INT(status, 0);
}

/* Mistakes in the environment are reported to the caller. */
static void search__notes_are_reported(void)
{
  char notes[2000];
  size_t needed = 0;
  plugin_search("relative:/tmp");
  CHECK_OK(tn_runtime_notes(notes, sizeof(notes), &needed, &err), &err);
  CHECK_STR(notes, "TENON_PLUGIN_PATH: the element 'relative' is refused: it is not an absolute path\n");
  CHECK_INT(needed, strlen(notes));
  CHECK_OK(tn_runtime_notes(notes, 10, &needed, &err), &err);
  CHECK_STR(notes, "TENON_PLU");
  plugin_search(plugin_folder());
  CHECK_OK(tn_runtime_notes(notes, sizeof(notes), &needed, &err), &err);
  CHECK_STR(notes, "");
}

/* P-07: variables of libltdl have no effect. */
static void search__variables_of_libltdl_are_not_read(void)
{
  const char *folder = plugin_folder(), *other = plugin_folder();
  plugin_chameleon(other, "a.so", "t.ltdl", 0, "none");
  setenv("LTDL_LIBRARY_PATH", other, 1);
  plugin_search(folder);
  CHECK_INT(listed_file(plugin_path(other, "a.so")).struct_size, 0);
  CHECK_STATUS(load("t.ltdl"), TN_NOT_FOUND, &err);
  unsetenv("LTDL_LIBRARY_PATH");
}

/* In locales that sort by words a_c comes after ab. */
static const char *const in_order[] = { "a.so", "a1.so", "a_b.so", "a_c.so", "ab.so", "b.so", "b0.so", "ba.so" };
#define N_FILES (sizeof(in_order) / sizeof(in_order[0]))

/* The folder's files are listed in this order, and the first one with a name owns it. */
static void check_order(const char *folder, const char *where)
{
  size_t n = 0;
  plugin_search(folder);
  tn_runtime_info one = { .struct_size = sizeof(one) };
  for (size_t i = 0; tn_runtime_at(i, &one, NULL) == TN_OK; i++) {
    if (strncmp(one.file, folder, strlen(folder)) != 0) continue;
    CHECK_MSG(n < N_FILES && strcmp(one.file, plugin_path(folder, in_order[n])) == 0, "%s: %zu is %s", where, n,
              one.file);
    CHECK_INT(one.shadowed, n > 0);
    n++;
  }
  CHECK_MSG(n == N_FILES, "%s: %zu files", where, n);
}

/* Creates a locale that sorts by letters first, if the system supports that. */
static const char *make_locale(void)
{
  static char command[3000];
  const char *folder = plugin_folder();
  snprintf(command, sizeof(command), "localedef -i en_US -f UTF-8 '%s/en_US.UTF-8' >/dev/null 2>&1", folder);
  if (system(command) == 0) setenv("LOCPATH", folder, 1);
  return "en_US.UTF-8";
}

/* P-05: sorted by the bytes of their names, on each file system and in each locale. */
static void search__order_is_by_bytes_everywhere(void)
{
  char other[] = "/dev/shm/tenon-order-XXXXXX";
  const char *folders[] = { plugin_folder(), mkdtemp(other) };
  const char *locales[] = { "C", "C.UTF-8", make_locale() };
  for (size_t k = 0; k < 2; k++) /* the second folder is filled in reverse order */
    for (size_t i = 0; folders[k] != NULL && i < N_FILES; i++)
      plugin_chameleon(folders[k], in_order[k == 0 ? (i * 5 + 3) % N_FILES : N_FILES - 1 - i], "t.s_order", 0, "none");
  for (size_t i = 0; i < 3; i++) {
    if (setlocale(LC_ALL, locales[i]) == NULL) {
      tap_note("locale %s is not available", locales[i]);
      continue;
    }
    if (i == 2 && strcoll("a_c.so", "ab.so") <= 0) tap_note("locale %s sorts by bytes, too", locales[i]);
    for (size_t k = 0; k < 2; k++)
      if (folders[k] != NULL) check_order(folders[k], locales[i]);
  }
  setlocale(LC_ALL, "C");
  unsetenv("LOCPATH");
  plugin_search(plugin_folder());
  for (size_t i = 0; folders[1] != NULL && i < N_FILES; i++) unlink(plugin_path(folders[1], in_order[i]));
  if (folders[1] != NULL) rmdir(folders[1]);
}

/* ---- files beside plugins ---- */

/* P-21: a plugin disabled by its administrator is listed as disabled, and does not hide others
 * of its name. */
static void sidecar__disables_without_deleting(void)
{
  const char *first = plugin_folder(), *second = plugin_folder();
  char path[700];
  plugin_chameleon(first, "a.so", "t.c_off", 900, "none");
  plugin_chameleon(second, "a.so", "t.c_off", 0, "none");
  beside(first, "a.conf", "# not now\n\n  enabled = no \n");
  plugin_search(first);
  tn_runtime_info one = listed_file(plugin_path(first, "a.so"));
  CHECK_INT(one.disabled, 1);
  CHECK_INT(one.usable, 0);
  CHECK_STR(one.name, "t.c_off");
  snprintf(path, sizeof(path), "it is disabled: '%s' says enabled=no", plugin_path(first, "a.conf"));
  CHECK_STR(one.reason, path);
  CHECK_STATUS(load("t.c_off"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it is disabled: ");
  CHECK_STATUS(load("t.c_none"), TN_NOT_FOUND, &err); /* P-54: listed, with the reason */
  CHECK_CONTAINS(tn_error_message(&err), "it is disabled: ");
  snprintf(path, sizeof(path), "%s:%s", first, second);
  plugin_search(path);
  CHECK_INT(listed_file(plugin_path(second, "a.so")).usable, 1);
  CHECK_OK(load("t.c_off"), &err);
  CHECK_INT(plugin_count_mapped(first), 0);
  CHECK_INT(plugin_count_mapped(second), 1);
}

/* P-21, P-58: precedence is options, environment, file, manifest. */
static void sidecar__rank_is_between_environment_and_manifest(void)
{
  const char *folder = plugin_folder();
  char text[8000];
  tn_session_options *options = NULL;
  plugin_chameleon(folder, "a.so", "t.c_rank", 100, "none");
  plugin_search(folder);
  CHECK_INT(listed_file(plugin_path(folder, "a.so")).rank, 100);
  beside(folder, "a.conf", "rank=300\n");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_INT(listed_file(plugin_path(folder, "a.so")).rank, 300);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
  CHECK_CONTAINS(text, "a.so) rank 300: accepted");
  CHECK_OK(load("t.c_rank"), &err);
  beside(folder, "a.conf", "rank=0");
  REQUIRE_OK(tn_runtime_rescan(&err), &err); /* also of a loaded plugin */
  CHECK_INT(listed_file(plugin_path(folder, "a.so")).rank, 0);
  set("TENON_RANK", "t.c_rank=700");
  CHECK_INT(listed_file(plugin_path(folder, "a.so")).rank, 700);
  REQUIRE_OK(tn_session_options_set_string(options, "runtime_ranks", "t.c_rank=800", &err), &err);
  REQUIRE_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
  CHECK_CONTAINS(text, "a.so) rank 800: accepted");
  set("TENON_RANK", NULL);
  tn_session_options_destroy(options);
  CHECK_OK(tn_runtime_unregister("t.c_rank", &err), &err);
}

/* P-58: ranks in the options also apply to plugins opened for this choice. */
static void rank__of_the_options_applies_to_plugins_opened_now(void)
{
  const char *folder = plugin_folder();
  char text[8000];
  tn_session_options *options = NULL;
  plugin_chameleon(folder, "a.so", "t.r_first", 500, "none");
  plugin_chameleon(folder, "b.so", "t.r_second", 200, "none");
  plugin_search(folder);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_string(options, "runtime_ranks", "t.r_second=900", &err), &err);
  REQUIRE_OK(tn_explain_selection(options, text, sizeof(text), NULL, &err), &err);
  tn_session_options_destroy(options);
  CHECK_CONTAINS(text, "b.so) rank 900: accepted");
  CHECK_CONTAINS(text, "chosen: t.r_second");
  CHECK_INT(plugin_count_mapped(folder), 1);
  CHECK_OK(tn_runtime_unregister("t.r_second", &err), &err);
}

/* P-21: the file's settings apply if the target does not name them. */
static void sidecar__options_complete_the_target(void)
{
  const char *folder = plugin_folder();
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  plugin_copy("crashing", folder, "a.so"); /* accepts the setting `how` only */
  beside(folder, "a.conf", "option.how = exit\n");
  plugin_search(folder);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "test.crashing", &err), &err);
  REQUIRE_OK(tn_session_create(options, &session, &err), &err);
  tn_session_destroy(session);
  CHECK_STR(tn_session_options_target(options), "test.crashing"); /* the caller's options are unchanged */
  REQUIRE_OK(tn_runtime_unregister("test.crashing", &err), &err);
  tn_session_options_destroy(options);
}

/* Settings unknown to the runtime are rejected as if they were in the target. */
static void sidecar__unknown_options_are_rejected(void)
{
  const char *folder = plugin_folder();
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("crashing"), &size);
  for (int i = 0; i < 2; i++) { /* listed in the manifest and in the code */
    unsigned char *at = memmem(bytes, size, "test.crashing", 13);
    if (at != NULL) memcpy(at, "test.crashers", 13);
  }
  plugin_write(plugin_path(folder, "a.so"), bytes, size);
  free(bytes);
  beside(folder, "a.conf", "option.colour=red\n");
  plugin_search(folder);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, "test.crashers:how=exit", &err), &err);
  CHECK_STATUS(tn_session_create(options, &session, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "test.crashers:how=exit,colour=red");
  CHECK_CONTAINS(tn_error_message(&err), "with 'colour=red' from its .conf file: ");
  tn_session_options_destroy(options);
}

/* P-21, "nothing else": anything else is an error, and the plugin does not run as if the file
 * were empty. */
static void sidecar__errors_name_the_line(void)
{
  static const struct {
    const char *text, *reason;
  } cases[] = {
    { "enabled=maybe\n", "a.conf', line 1: 'maybe', wanted enabled=yes or enabled=no" },
    { "\nenable=no\n", "a.conf', line 2: 'enable', wanted enabled, rank or option.KEY" },
    { "rank=1001", "a.conf', line 1: '1001', wanted a rank from 0 to 1000" },
    { "rank=", "a.conf', line 1: '', wanted a rank" },
    { "words\n", "a.conf', line 1: 'words', wanted KEY=VALUE" },
    { "rank=7\nrank=8\n", "a.conf', line 2: 'rank', wanted each key at most once" },
    { "enabled=yes\n\nenabled=no\n", "a.conf', line 3: 'enabled', wanted each key at most once" },
    { "option.b=1\noption.bc=2\noption.b=3\n", "a.conf', line 3: 'b', wanted each key at most once" },
    { "option.A=1\n", "a.conf', line 1: 'A', wanted option.KEY=VALUE" },
    { "option.a=1,b=2\n", "wanted option.KEY=VALUE with a key" },
    { "option.a=\001\n", "wanted option.KEY=VALUE with a key" },
  };
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.c_wrong", 0, "none");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    beside(folder, "a.conf", cases[i].text);
    plugin_search(folder);
    tn_runtime_info one = listed_file(plugin_path(folder, "a.so"));
    CHECK_INT(one.usable, 0);
    CHECK_CONTAINS(one.reason, cases[i].reason);
    CHECK_STATUS(load("t.c_wrong"), TN_INVALID_ARGUMENT, &err);
  }
  beside(folder, "a.conf", "rank=5\n");
  REQUIRE_INT(chmod(plugin_path(folder, "a.conf"), 0666), 0);
  plugin_search(folder);
  CHECK_CONTAINS(listed_file(plugin_path(folder, "a.so")).reason, "has mode 0666: it is world-writable");
  char *big = calloc(1, 20000);
  REQUIRE_PTR(big);
  plugin_write(plugin_path(folder, "a.conf"), big, 20000);
  free(big);
  plugin_search(folder);
  CHECK_CONTAINS(listed_file(plugin_path(folder, "a.so")).reason, "a.conf' has 20000 bytes, at most 16384 are allowed");
  REQUIRE_INT(unlink(plugin_path(folder, "a.conf")), 0);
  plugin_search(folder);
  CHECK_OK(load("t.c_wrong"), &err);
}

/* Arbitrary bytes are either understood or rejected with an error. */
static void sidecar__random_bytes_are_handled(void)
{
  static const char good[] = "enabled=yes\nrank=300\n# words\noption.threads=4\noption.note=some text\n";
  const char *folder = plugin_folder();
  uint64_t state = 88172645463325252u;
  int refused = 0;
  plugin_chameleon(folder, "a.so", "t.c_random", 0, "none");
  for (int i = 0; i < 400; i++) {
    char text[sizeof(good)];
    size_t size = sizeof(good) - 1;
    memcpy(text, good, sizeof(good));
    for (int k = 0; k < 1 + i % 7; k++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      text[state % size] = (char)(state >> 32);
    }
    plugin_write(plugin_path(folder, "a.conf"), text, size - state % 20);
    plugin_search(folder);
    tn_runtime_info one = listed_file(plugin_path(folder, "a.so"));
    CHECK(one.usable || one.reason[0] != 0);
    refused += !one.usable;
  }
  CHECK(refused > 50 && refused < 400);
  plugin_search(plugin_folder());
}

/* ---- variables ---- */

/* P-22: globs over names; disabling wins, wherever it is set. */
static void variables__disable_wins_over_select(void)
{
  static const struct {
    const char *disable, *select, *conf;
    int usable[3]; /* t.x_one, t.x_two, t.y */
  } cases[] = {
    { NULL, NULL, "", { 1, 1, 1 } },
    { "t.x_*", NULL, "", { 0, 0, 1 } },
    { NULL, "t.x_*", "", { 1, 1, 0 } },
    { "t.x_two", "t.x_*", "", { 1, 0, 0 } },
    { "*", "*", "", { 0, 0, 0 } },
    { " t.y , t.x_o?e", "", "", { 0, 1, 0 } },
    { "", "t.[xy]*", "", { 1, 1, 1 } },
    { NULL, "t.x_one,t.y", "enabled=no", { 0, 0, 1 } }, /* of t.x_one: selecting does not enable it */
    { "t.x_two", NULL, "enabled=yes", { 1, 0, 1 } },
    { "nothing,,", "t.x_one,,t.x_two", "", { 1, 1, 0 } },
  };
  static const char *const files[] = { "a.so", "b.so", "c.so" };
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.x_one", 0, "none");
  plugin_chameleon(folder, "b.so", "t.x_two", 0, "none");
  plugin_chameleon(folder, "c.so", "t.y", 0, "none");
  plugin_search(folder);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    beside(folder, "a.conf", cases[i].conf);
    set("TENON_PLUGIN_DISABLE", cases[i].disable);
    set("TENON_PLUGIN_SELECT", cases[i].select);
    for (size_t k = 0; k < 3; k++) {
      tn_runtime_info one = listed_file(plugin_path(folder, files[k]));
      CHECK_MSG(one.usable == cases[i].usable[k] && one.disabled == !cases[i].usable[k], "case %zu, %s: %s", i,
                one.name, one.reason);
    }
  }
  set("TENON_PLUGIN_SELECT", NULL);
  set("TENON_PLUGIN_DISABLE", "t.x_*");
  CHECK_STATUS(load("t.x_two"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it is disabled: 't.x_*' in TENON_PLUGIN_DISABLE matches it");
  set("TENON_PLUGIN_DISABLE", NULL);
  CHECK_OK(load("t.x_two"), &err);
}

/* P-65: one line for each candidate, however often candidates are queried. */
static void variables__debug_logs_each_candidate_once(void)
{
  const char *folder = plugin_folder();
  char wanted[700];
  plugin_chameleon(folder, "good.so", "t.b_good", 0, "none");
  plugin_chameleon(folder, "off.so", "t.b_off", 0, "none");
  plugin_copy("no_manifest", folder, "bad.so");
  beside(folder, "near.so.bak", "x");
  beside(folder, "off.conf", "enabled=no");
  REQUIRE_INT(symlink("good.so", plugin_path(folder, "link.so")), 0);
  logged[0] = 0;
  setenv("TENON_DEBUG", "other,load", 1);
  tn_set_log_level(TN_LOG_ERROR);
  plugin_search(folder);
  for (int i = 0; i < 100; i++) {
    CHECK_STATUS(load("t.b_none"), TN_NOT_FOUND, &err);
    CHECK_STATUS(load("t.b_off"), TN_FAILED_PRECONDITION, &err);
    CHECK_OK(load("t.b_good"), &err);
    if (i % 10 == 0) REQUIRE_OK(tn_runtime_rescan(&err), &err);
  }
  unsetenv("TENON_DEBUG");
  static const struct {
    const char *file, *text;
  } lines[] = { { "good.so", "found: t.b_good (" },
                { "bad.so", "refused: not a runtime plugin (no .tenon.manifest) (" },
                { "off.so", "disabled: it is disabled: " },
                { "link.so", "the same file as: " },
                { "near.so.bak", "not a plugin: wanted a regular file" },
                { "good.so", "loaded (" } };
  for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
    snprintf(wanted, sizeof(wanted), "load: '%s': %s", plugin_path(folder, lines[i].file), lines[i].text);
    CHECK_MSG(count_logged(wanted) == 1, "%d times: %s", count_logged(wanted), wanted);
  }
  CHECK_INT(count_logged("load: '"), 6);
  CHECK_INT(count_logged(" ms)\n"), 5);
  plugin_search(folder);
  CHECK_INT(count_logged("load: '"), 6);
}

/* ---- extreme folders ---- */

static void folders__ten_thousand_files(void)
{
  const char *folder = plugin_folder();
  char file[64];
  plugin_search(folder);
  size_t before = listed();
  plugin_chameleon(folder, "good.so", "t.thousands", 0, "none");
  for (int i = 0; i < 10000; i++) {
    snprintf(file, sizeof(file), i % 2 ? "p%05d.so" : "p%05d.txt", i);
    FILE *made = fopen(plugin_path(folder, file), "w");
    REQUIRE_PTR(made);
    fputs("no plugin", made);
    fclose(made);
  }
  int64_t begin = tn__now_ns();
  plugin_search(folder);
  CHECK_INT(listed(), before + 5001);
  CHECK_OK(load("t.thousands"), &err);
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  double seconds = (double)(tn__now_ns() - begin) / 1e9;
  tap_note("10000 files in %.2f s", seconds);
  CHECK(seconds < 60);
  CHECK_INT(plugin_count_mapped(folder), 1);
  plugin_search(plugin_folder());
}

/* Names of files and folders are arbitrary bytes. */
static void folders__names_in_every_encoding(void)
{
  static const char *const names[] = { "caf\303\251.so", "caf\351.so", "\203\145\203\130\203\147.so", "\377\376.so",
                                       "a\nb.so",        "a\033[2Jb.so", " .so",                      "'; rm x.so",
                                       "%s%n.so",        "\357\273\277x.so" };
  const char *folder = plugin_folder();
  char inner[700];
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) plugin_copy("minimal", folder, names[i]);
  snprintf(inner, sizeof(inner), "%s", plugin_path(folder, "caf\351 [1m%s"));
  REQUIRE_INT(mkdir(inner, 0755), 0);
  plugin_chameleon(inner, "a.so", "t.bytes", 0, "none");
  tn_set_log_level(TN_LOG_DEBUG);
  logged[0] = 0;
  plugin_search(folder);
  CHECK_INT(listed(), 0);
  CHECK_INT(count_logged("is not a plugin: wanted a regular file"), 10);
  CHECK_NULL(strchr(logged, '\033'));
  plugin_search(inner);
  CHECK_OK(load("t.bytes"), &err);
  tn_set_log_level(TN_LOG_WARNING);
}

/* A folder whose name could break lines or control a terminal is rejected, and its name is not
 * shown. */
static void folders__with_control_characters_are_rejected(void)
{
  static const char *const names[] = { "a\nb", "a\033[31mb", "\x7f", "tab\t" };
  const char *folder = plugin_folder();
  char path[700], notes[4000], list[3000];
  plugin_search(folder);
  size_t before = listed();
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    snprintf(path, sizeof(path), "%s", plugin_path(folder, names[i]));
    REQUIRE_INT(mkdir(path, 0755), 0);
    plugin_chameleon(path, "a.so", "t.control", 0, "none");
    snprintf(list, sizeof(list), ":%s", path);
    plugin_search(list);
    CHECK_INT(listed(), before);
    CHECK_OK(tn_runtime_notes(notes, sizeof(notes), NULL, &err), &err);
    CHECK_CONTAINS(notes, "the element that begins at byte 1 is refused: it has a control character\n");
    for (const char *c = notes; *c != 0; c++) CHECK(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
    CHECK_STATUS(tn_runtime_add_directory(path, &err), TN_INVALID_ARGUMENT, &err);
    CHECK_STR(tn_error_message(&err), "plugin folder: the path has a control character");
    REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
    CHECK_STATUS(tn_runtime_load_file(plugin_path(path, "a.so"), NULL, &err), TN_INVALID_ARGUMENT, &err);
    REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
  }
  plugin_search(folder);
}

/* Only regular files are read: no pipe blocks, no cycle of links is followed, no device is
 * opened. */
static void folders__with_all_kinds_of_entries(void)
{
  const char *folder = plugin_folder();
  REQUIRE_INT(symlink("loop_b.so", plugin_path(folder, "loop_a.so")), 0);
  REQUIRE_INT(symlink("loop_a.so", plugin_path(folder, "loop_b.so")), 0);
  REQUIRE_INT(symlink("nowhere.so", plugin_path(folder, "dangling.so")), 0);
  REQUIRE_INT(symlink("/dev/zero", plugin_path(folder, "zero.so")), 0);
  REQUIRE_INT(symlink(".", plugin_path(folder, "self.so")), 0);
  REQUIRE_INT(mkfifo(plugin_path(folder, "pipe.so"), 0755), 0);
  REQUIRE_INT(mkdir(plugin_path(folder, "folder.so"), 0755), 0);
  plugin_chameleon(folder, "good.so", "t.kinds", 0, "none");
  plugin_search(plugin_folder());
  size_t before = listed();
  plugin_search(folder);
  CHECK_INT(listed(), before + 1);
  CHECK_OK(load("t.kinds"), &err);
}

static tn_status rescan(void *arg)
{
  (void)arg;
  return tn_runtime_rescan(NULL);
}

static void folders__survive_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.o_a", 0, "none");
  plugin_chameleon(folder, "b.so", "t.o_b", 0, "none");
  beside(folder, "a.conf", "rank=3\noption.x=1\noption.y=2\n");
  beside(folder, "b.conf", "enabled=no\n");
  plugin_search(folder);
  tn_test_oom_sweep(rescan, NULL);
  CHECK_INT(listed(), 2);
}

static void setup(void) { tn_set_log_sink(keep_line, NULL); }

static void teardown(void) { tn_error_clear(&err); }

TAP_MAIN_WITH(setup, teardown, TAP_TEST(search__only_replaces_the_installed_folder),
              TAP_TEST(search__unreadable_folders_have_a_reason), TAP_TEST(search__unreadable_folder_is_a_note),
              TAP_TEST(search__notes_are_reported), TAP_TEST(search__variables_of_libltdl_are_not_read),
              TAP_TEST(search__order_is_by_bytes_everywhere), TAP_TEST(folders__survive_lack_of_memory),
              TAP_TEST(folders__names_in_every_encoding), TAP_TEST(folders__with_control_characters_are_rejected),
              TAP_TEST(folders__with_all_kinds_of_entries), TAP_TEST(folders__ten_thousand_files),
              TAP_TEST(sidecar__disables_without_deleting),
              TAP_TEST(sidecar__rank_is_between_environment_and_manifest),
              TAP_TEST(rank__of_the_options_applies_to_plugins_opened_now),
              TAP_TEST(sidecar__options_complete_the_target),
              TAP_TEST(sidecar__unknown_options_are_rejected),
              TAP_TEST(sidecar__random_bytes_are_handled), TAP_TEST(sidecar__errors_name_the_line),
              TAP_TEST(variables__disable_wins_over_select), TAP_TEST(variables__debug_logs_each_candidate_once))
