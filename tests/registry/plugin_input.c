/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid and unusual plugins, names and files: truncated while in use, owned by other users,
 * named randomly, in a process that ends (P-48, P-76, P-78, P-79). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/registry/registry_internal.h>
#include <tenon/tenon.h>

#include "tests/support/loader_kit.h"
#include "conformance/support/oom.h"

/* The child's exit status, or 256 plus the signal that ended it. */
static int in_child(int (*fn)(const char *arg), const char *arg)
{
  int status = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    signal(SIGBUS, SIG_DFL); /* the parent reports it */
    signal(SIGSEGV, SIG_DFL);
    _exit(fn(arg));
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* ---- truncated while mapped ---- */

/* The memory disappears with the file. Everything that the library does by itself continues, and
 * so do other plugins; except the dynamic linker, which reads the names of loaded objects when
 * it opens another file. */
static int cut_and_look(const char *folder)
{
  setenv("TENON_PLUGIN_PATH", folder, 1);
  setenv("TENON_PLUGIN_PATH_ONLY", "1", 1);
  if (tn_runtime_rescan(NULL) != TN_OK || load("t.cut") != TN_OK || load("t.whole") != TN_OK) return 1;
  if (truncate(plugin_path(folder, "cut.so"), 0) != 0) return 2;
  if (tn_runtime_rescan(NULL) != TN_OK) return 3;
  if (listed_file(plugin_path(folder, "cut.so")).struct_size == 0) return 4;
  if (load("t.absent") != TN_NOT_FOUND || strcmp(chosen("t.whole"), "t.whole") != 0) return 5;
  tn_session *session;
  if (plugin_open_session("t.whole", &session, NULL) != TN_OK) return 6;
  tn_session_destroy(session);
  if (load("t.cut") != TN_OK) return 7; /* already loaded: none of its code runs for this */
  return 0;
}

static int cut_and_use(const char *folder)
{
  tn_session *session;
  int code = cut_and_look(folder);
  if (code != 0) return code;
  return plugin_open_session("t.cut", &session, NULL) == TN_OK ? 100 : 101;
}

/* A file that is overwritten in place, rather than replaced by renaming a new one (P-99), ends
 * the process as soon as its code runs, but not before. */
static void input__a_plugin_truncated_in_place_is_harmless_until_it_runs(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "cut.so", "t.cut", 0, "none");
  plugin_chameleon(folder, "whole.so", "t.whole", 0, "none");
  CHECK_INT(in_child(cut_and_look, folder), 0);
  plugin_chameleon(folder, "cut.so", "t.cut", 0, "none");
  int code = in_child(cut_and_use, folder);
  tap_note("using it ended with %d", code); /* 256 + SIGBUS if the pages were not in use yet */
  CHECK(code == 256 + SIGBUS || code == 256 + SIGSEGV || code == 100);
}

/* The same before it is loaded: an error reports the damage. */
static void input__a_plugin_truncated_before_its_load_is_rejected(void)
{
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.cut_before", 0, "none");
  plugin_search(folder);
  REQUIRE_INT(truncate(plugin_path(folder, "a.so"), 5000), 0);
  CHECK(load("t.cut_before") != TN_OK);
  CHECK_CONTAINS(tn_error_message(&err), "t.cut_before");
  CHECK_INT(plugin_count_mapped(folder), 0);
}

/* ---- names ---- */

/* P-79: names are compared and shown, whatever they contain, and never become part of a path. */
static void input__random_names_are_rejected_or_unknown(void)
{
  static const char bits[] = "ab/.:\\-_%$\n\r\t\033\177\200\377 A=,;*~\"'";
  const char *folder = plugin_folder();
  uint64_t state = 88172645463325252u;
  int refused = 0, unknown = 0;
  plugin_chameleon(folder, "a.so", "ab", 0, "none");
  plugin_search(folder);
  for (int i = 0; i < 20000; i++) {
    char name[140];
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    size_t n = i % 50 == 0 ? 60 + state % 70 : state % 12;
    for (size_t k = 0; k < n; k++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      name[k] = i % 4 == 0 ? (char)(1 + state % 255) : bits[state % (sizeof(bits) - 1)];
    }
    name[n] = 0;
    tn_status status = load(name);
    if (strcmp(name, "ab") == 0) continue;
    refused += status == TN_INVALID_ARGUMENT;
    unknown += status == TN_NOT_FOUND;
    CHECK_MSG(status == TN_INVALID_ARGUMENT || (status == TN_NOT_FOUND && tn__runtime_name_ok(name, n)), "%s",
              tn_error_message(&err));
  }
  CHECK(refused > 1000 && unknown > 10);
  char longest[70];
  memset(longest, 'a', 65);
  longest[64] = 0;
  CHECK_STATUS(load(longest), TN_NOT_FOUND, &err);
  longest[64] = 'a', longest[65] = 0;
  CHECK_STATUS(load(longest), TN_INVALID_ARGUMENT, &err);
}

static tn_status no_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                            tn_error *e)
{
  (void)self, (void)options;
  *out = NULL;
  return tn_error_set(e, TN_UNAVAILABLE, "none here");
}
static tn_bool accept_all(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}
static void end_session(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

/* P-48: first the plugin and then the program, and vice versa. P-52: the program must not use
 * the library's names, either. */
static void input__a_name_is_taken_once_in_either_order(void)
{
  static tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE, .name = "t.taken",
                                        .new_session = no_session, .accepts_options = accept_all,
                                        .destroy_session = end_session };
  const char *folder = plugin_folder();
  plugin_chameleon(folder, "a.so", "t.taken", 0, "none");
  plugin_search(folder);
  REQUIRE_OK(load("t.taken"), &err);
  CHECK_STATUS(tn_runtime_register("t.taken", &factory, &err), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "a.so"));
  CHECK_CONTAINS(tn_error_message(&err), "program");
  REQUIRE_OK(tn_runtime_unregister("t.taken", &err), &err);
  plugin_chameleon(folder, "b.so", "t.taken_b", 0, "none");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  REQUIRE_OK(tn_runtime_register("t.taken_b", &factory, &err), &err);
  REQUIRE_OK(tn_runtime_allow_files(1, &err), &err);
  CHECK_STATUS(tn_runtime_load_file(plugin_path(folder, "b.so"), NULL, &err), TN_ALREADY_EXISTS, &err);
  CHECK_CONTAINS(tn_error_message(&err), plugin_path(folder, "b.so"));
  CHECK_CONTAINS(tn_error_message(&err), "program");
  REQUIRE_OK(tn_runtime_allow_files(0, &err), &err);
  CHECK_STR(chosen("t.taken_b"), "t.taken_b");
  CHECK_OK(tn_runtime_unregister("t.taken_b", &err), &err);
  CHECK_STATUS(tn_runtime_register("direct", &factory, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the name 'direct' is reserved for the library's own runtimes");
}

/* ---- manifests ---- */

/* A manifest of random bytes in an intact file is either read, or rejected with a printable
 * message. */
static void input__manifests_of_random_bytes(void)
{
  enum { BATCH = 25, ROUNDS = 16 };
  const char *folder = plugin_folder();
  uint64_t state = 88172645463325252u;
  int refused = 0;
  size_t size = 0;
  unsigned char *bytes = plugin_read(plugin_source("chameleon"), &size);
  unsigned char *manifest = memmem(bytes, size, "format=1", 8), good[200];
  REQUIRE_PTR(manifest);
  memcpy(good, manifest, sizeof(good));
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < BATCH; i++) {
      char file[20];
      memcpy(manifest, good, sizeof(good));
      for (int k = 0; k <= round * 3; k++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        manifest[state % sizeof(good)] = (unsigned char)(state >> 40);
      }
      snprintf(file, sizeof(file), "p%02d.so", i);
      plugin_write(plugin_path(folder, file), bytes, size);
    }
    plugin_search(folder);
    for (int i = 0; i < BATCH; i++) {
      char file[20];
      snprintf(file, sizeof(file), "p%02d.so", i);
      tn_runtime_info one = listed_file(plugin_path(folder, file));
      CHECK(one.struct_size != 0);
      CHECK(one.usable || one.shadowed || one.reason[0] != 0);
      CHECK(tn__path_is_plain(one.reason, strlen(one.reason)) && tn__path_is_plain(one.name, strlen(one.name)));
      refused += !one.usable && !one.shadowed;
    }
  }
  free(bytes);
  CHECK(refused > BATCH);
  CHECK_INT(plugin_count_mapped(folder), 0);
  plugin_search(plugin_folder());
}

/* ---- owners and modes ---- */

static tn_status check_as(const char *path, bool elevated)
{
  tn_error_clear(&err);
  return tn__path_check(path, elevated, NULL, NULL, &err);
}

/* P-78: a file and its folder, with root as the owner of everything above them; in processes
 * with and without elevated rights. */
static void input__owners_and_modes(void)
{
  static const struct {
    unsigned folder_mode, file_mode;
    unsigned folder_owner, file_owner;
    bool usual, elevated;
  } cases[] = {
    { 0755, 0644, 0, 0, true, true },          { 0755, 0600, 0, 0, true, true },
    { 0755, 0664, 0, 0, true, false },         { 0775, 0644, 0, 0, true, false },
    { 0755, 0644, 0, 65534, true, false },     { 0755, 0644, 65534, 0, true, false },
    { 0755, 0646, 0, 0, false, false },        { 0757, 0644, 0, 0, false, false },
    { 01777, 0644, 0, 0, true, false },        { 01755, 0644, 0, 0, true, true },
    { 0775, 0664, 65534, 65534, true, false }, { 0777, 0644, 65534, 0, false, false },
  };
  char folder[] = "/root/tenon-test-XXXXXX", path[100];
  if (geteuid() != 0) TAP_SKIP("only root can change the owner of files");
  REQUIRE_INT(access(plugin_source("minimal"), R_OK), 0);
  if (check_as("/root", true) == TN_PERMISSION_DENIED || mkdtemp(folder) == NULL)
    TAP_SKIP("no folder that only root may write to");
  snprintf(path, sizeof(path), "%s/a.so", folder);
  plugin_copy("minimal", folder, "a.so");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    bool good = chown(path, cases[i].file_owner, cases[i].file_owner) == 0 && chmod(path, cases[i].file_mode) == 0 &&
                chown(folder, cases[i].folder_owner, cases[i].folder_owner) == 0 &&
                chmod(folder, cases[i].folder_mode) == 0;
    CHECK(good);
    for (int elevated = 0; elevated < 2; elevated++) {
      tn_status wanted = (elevated ? cases[i].elevated : cases[i].usual) ? TN_OK : TN_PERMISSION_DENIED;
      CHECK_MSG(check_as(path, elevated) == wanted, "case %zu, elevated %d: %s", i, elevated, tn_error_message(&err));
      if (wanted == TN_OK) continue;
      CHECK_CONTAINS(tn_error_message(&err), folder); /* names the component */
    }
  }
  unlink(path);
  rmdir(folder);
}

/* ---- the end of the process ---- */

/* P-76: as in plugin_files.c, but under valgrind: no code runs after it was unmapped, and no
 * freed memory is used. */
static void input__an_exit_during_activity_is_clean(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  TAP_SKIP("sanitizers check this already");
#else
  const char *folder = plugin_folder();
  char program[1000], command[3000];
  const char *files = tap_build_path("tests/registry/plugin_files");
  if (system("valgrind --version >/dev/null 2>&1") != 0) TAP_SKIP("valgrind is not available");
  snprintf(program, sizeof(program), "%s", files);
  if (access(program, X_OK) != 0) TAP_SKIP("plugin_files is not built");
  plugin_chameleon(folder, "a.so", "t.e_end", 0, "none");
  setenv("TENON_PLUGIN_PATH", folder, 1);
  setenv("TENON_TEST_END", "1", 1);
  snprintf(command, sizeof(command), "valgrind -q --error-exitcode=99 '%s' >/dev/null 2>'%s/valgrind'", program,
           folder);
  int status = system(command);
  unsetenv("TENON_TEST_END");
  CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with %d", command, status);
#endif
}

TAP_MAIN_WITH(loader_setup, loader_teardown,
  TAP_TEST(input__a_plugin_truncated_in_place_is_harmless_until_it_runs),
  TAP_TEST(input__a_plugin_truncated_before_its_load_is_rejected),
  TAP_TEST(input__random_names_are_rejected_or_unknown),
  TAP_TEST(input__a_name_is_taken_once_in_either_order),
  TAP_TEST(input__manifests_of_random_bytes),
  TAP_TEST(input__owners_and_modes),
  TAP_TEST(input__an_exit_during_activity_is_clean))
