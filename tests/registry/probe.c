/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that crash, hang or end their process, probed in a separate process (P-83 to P-88). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/registry/probe/probe.h>
#include <tenon/tenon.h>

#include "conformance/support/oom.h"
#include "tests/support/plugin_files.h"
#include "conformance/support/tap.h"

static tn_error err = TN_ERROR_INIT;
static tn_probe_report report;

/* ---- helpers ---- */

/* Probes a copy of ender.c with this fault. */
static tn_status probe(const char *fault, int64_t timeout_ms)
{
  const char *folder = plugin_folder();
  plugin_ender(folder, "a.so", "t.probed", fault);
  report = (tn_probe_report){ .struct_size = sizeof(report) };
  tn_status status = tn_runtime_probe(plugin_path(folder, "a.so"), timeout_ms, &report, &err);
  CHECK_INT(plugin_count_mapped(folder), 0);
  return status;
}

static tn_status load(const char *name)
{
  tn_runtime_info info = { .struct_size = sizeof(info) };
  return tn_runtime_load(name, &info, &err);
}

/* A fresh file of verdicts. */
static const char *fresh_cache(void)
{
  const char *folder = plugin_folder();
  setenv("TENON_CACHE_DIR", folder, 1);
  return folder;
}

static size_t n_verdicts(void)
{
  char path[600], bytes[65536];
  size_t n = 0, lines = 0;
  REQUIRE_OK(tn_runtime_cache_path(path, sizeof(path), &n, &err), &err);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  n = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  for (size_t i = 0; i < n; i++) lines += bytes[i] == '\n';
  return lines - 1;
}

/* Whether the child of a probed plugin has ended, which may take a moment. It may not have been
 * reaped yet. */
static bool child_has_ended(const char *file)
{
  char path[64], text[400] = "";
  int pid = 0;
  FILE *f = fopen(file, "r");
  REQUIRE_PTR(f);
  REQUIRE_INT(fscanf(f, "%d", &pid), 1);
  fclose(f);
  REQUIRE(pid > 1);
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  for (int i = 0; i < 500; i++) {
    f = fopen(path, "r");
    if (f == NULL) return true;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    if (n == 0 || strstr(text, ") Z ") != NULL || strstr(text, ") X ") != NULL) return true;
    usleep(10000);
  }
  return false;
}

/* Whether this process has a child. */
static bool any_child(void)
{
  siginfo_t info = { 0 };
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* ---- probing a file ---- */

/* P-83, P-84, P-87: each way of ending has its own verdict, with the last step, and this process
 * is unchanged. */
static void probe__each_way_of_ending_has_its_own_verdict(void)
{
  static const struct {
    const char *fault;
    int32_t verdict, signal;
    const char *message;
  } cases[] = {
    { "ctor:segv", TN_PROBE_SIGNAL, SIGSEGV,
      "signal 11 (SIGSEGV) ended it; the last step reached was opening it, where its constructors run" },
    { "ctor:bus", TN_PROBE_SIGNAL, SIGBUS,
      "signal 7 (SIGBUS) ended it; the last step reached was opening it, where its constructors run" },
    { "ctor:exit", TN_PROBE_EXIT, 0,
      "it ended its process, with status 0; the last step reached was opening it, where its constructors run" },
    { "ctor:quit", TN_PROBE_EXIT, 0, "it ended its process, with status 0; the last step reached was opening it" },
    { "entry:abort", TN_PROBE_SIGNAL, SIGABRT, "signal 6 (SIGABRT) ended it; the last step reached was its entry" },
    { "entry:exit", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its entry" },
    { "init:segv", TN_PROBE_SIGNAL, SIGSEGV, "signal 11 (SIGSEGV) ended it; the last step reached was its init" },
    { "init:quit", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its init" },
    { "init:forge", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its init" },
    { "accept:abort", TN_PROBE_SIGNAL, SIGABRT, "the last step reached was its new_session" },
    { "session:segv", TN_PROBE_SIGNAL, SIGSEGV, "the last step reached was its new_session" },
    { "session:exit", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its new_session" },
    { "prepare:abort", TN_PROBE_SIGNAL, SIGABRT, "the last step reached was its prepare" },
    { "step:exit", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its step" },
    { "step:aside", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its step" },
    { "step:null", TN_PROBE_SIGNAL, SIGSEGV, "the last step reached was its step" },
    { "destroy:quit", TN_PROBE_EXIT, 0, "with status 0; the last step reached was its destroy_session" },
  };
  fresh_cache();
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    CHECK_STATUS(probe(cases[i].fault, 60000), TN_ABORTED, &err);
    CHECK_CONTAINS(tn_error_message(&err), cases[i].message);
    CHECK_CONTAINS(tn_error_message(&err), "/a.so': ");
    CHECK_MSG(report.verdict == cases[i].verdict && report.signal == cases[i].signal, "%s: verdict %d, signal %d",
              cases[i].fault, report.verdict, report.signal);
    CHECK_INT(report.cached, 0);
  }
  CHECK(!any_child());
}

/* P-83: it inherits no descriptor, not even one that is kept across exec. */
static void probe__a_valid_plugin_passes_and_inherits_nothing(void)
{
  int kept = fcntl(1, F_DUPFD, 40);
  REQUIRE(kept >= 40 && fcntl(kept, F_GETFD) == 0);
  CHECK_OK(probe("init:open", 60000), &err);
  CHECK_INT(report.verdict, TN_PROBE_WELL);
  CHECK_STR(report.step, "the end");
  CHECK(report.duration_us > 0 && report.peak_bytes > 0);
  close(kept);
  CHECK_OK(probe("none:", 60000), &err);
}

/* P-83 */
static void probe__a_refused_session_is_an_error(void)
{
  CHECK_STATUS(probe("session:later", 60000), TN_UNAVAILABLE, &err);
  CHECK_INT(report.verdict, TN_PROBE_ERROR);
  CHECK_STR(report.step, "its new_session");
  CHECK_STATUS(probe("step:later", 60000), TN_UNAVAILABLE, &err);
  CHECK_STR(report.step, "its step");
  CHECK_STATUS(probe("step:hang", 700), TN_DEADLINE_EXCEEDED, &err);
  CHECK_STR(report.step, "its step");
}

/* P-85: at the deadline the whole process group is killed, including a child that holds the
 * pipe. */
static void probe__a_hang_is_ended_with_its_children(void)
{
  static const char *const faults[] = { "ctor:hang", "init:spin", "init:child" };
  char file[600];
  snprintf(file, sizeof(file), "%s/child", plugin_folder());
  setenv("TENON_TEST_PID", file, 1);
  for (size_t i = 0; i < 3; i++) {
    int64_t begin = tn__now_ns();
    CHECK_STATUS(probe(faults[i], 700), TN_DEADLINE_EXCEEDED, &err);
    CHECK_INT(report.verdict, TN_PROBE_TIMEOUT);
    CHECK_CONTAINS(tn_error_message(&err),
                   i == 0 ? "ms; the last step reached was opening it" : "ms; the last step reached was its init");
    CHECK(tn__now_ns() - begin < (int64_t)30 * 1000000000);
  }
  CHECK(child_has_ended(file));
  int64_t begin = tn__now_ns();
  CHECK_OK(probe("init:leave", 60000), &err); /* its child is killed, too, without waiting for it */
  CHECK(child_has_ended(file));
  CHECK(tn__now_ns() - begin < (int64_t)30 * 1000000000);
  CHECK(!any_child());
}

/* If the system reaps the program's children, less is known, but the plugin does not get a bad
 * verdict. */
static void probe__works_if_children_are_reaped_by_the_system(void)
{
  signal(SIGCHLD, SIG_IGN);
  CHECK_OK(probe("none:", 60000), &err);
  CHECK_STATUS(probe("init:segv", 60000), TN_ABORTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "it ended its process; the last step reached was its init");
  CHECK_STATUS(probe("init:hang", 500), TN_DEADLINE_EXCEEDED, &err);
  signal(SIGCHLD, SIG_DFL);
}

/* P-83: limits on memory. */
static void probe__endless_allocation_is_ended(void)
{
#if defined(TN_PROBE_SANITIZED)
  TAP_SKIP("sanitizers need additional memory");
#endif
  setenv("TENON_PROBE_MEMORY_MB", "64", 1);
  CHECK_STATUS(probe("init:eat", 60000), TN_ABORTED, &err);
  unsetenv("TENON_PROBE_MEMORY_MB");
  CHECK_INT(report.verdict, TN_PROBE_MEMORY);
  CHECK_CONTAINS(tn_error_message(&err),
                 "it used all of the 64 MiB of memory that it was allowed, and signal 11 (SIGSEGV) ended it");
}

/* A plugin that refuses with an error does no harm. */
static void probe__a_refusal_is_reported_with_its_message(void)
{
  const char *folder = plugin_folder();
  CHECK_STATUS(probe("init:later", 60000), TN_UNAVAILABLE, &err);
  CHECK_INT(report.verdict, TN_PROBE_ERROR);
  CHECK_INT(report.status, TN_UNAVAILABLE);
  CHECK_CONTAINS(tn_error_message(&err), "no such device here");
  plugin_copy("no_manifest", folder, "a.so");
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "a.so"), 60000, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_CONTAINS(tn_error_message(&err), "not a runtime plugin (no .tenon.manifest)");
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "none.so"), 0, NULL, &err), TN_NOT_FOUND, &err);
  CHECK_STATUS(tn_runtime_probe("a.so", 0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_probe(NULL, 0, NULL, &err), TN_INVALID_ARGUMENT, &err);
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "a.so"), -1, NULL, &err), TN_INVALID_ARGUMENT, &err);
  report.struct_size = 0;
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "a.so"), 0, &report, &err), TN_INVALID_ARGUMENT, &err);
}

/* ---- before a load ---- */

/* P-86, P-87: the load fails with an error, and this process continues. */
static void load__a_plugin_that_crashes_its_probe_is_rejected(void)
{
  const char *folder = plugin_folder();
  char wanted[1000];
  fresh_cache();
  plugin_ender(folder, "a.so", "t.l_crash", "init:segv");
  plugin_ender(folder, "b.so", "t.l_good", "none:");
  plugin_ender(folder, "c.so", "t.l_later", "init:later");
  setenv("TENON_PROBE", "1", 1);
  plugin_search(folder);
  CHECK_STATUS(load("t.l_crash"), TN_ABORTED, &err);
  snprintf(
      wanted, sizeof(wanted),
      "plugin 't.l_crash' (%s): refused by its probe: signal 11 (SIGSEGV) ended it; the last step reached was its init",
      plugin_path(folder, "a.so"));
  CHECK_STR(tn_error_message(&err), wanted);
  CHECK_INT(plugin_count_mapped(folder), 0);
  CHECK_OK(load("t.l_good"), &err);
  CHECK_STATUS(load("t.l_later"), TN_UNAVAILABLE, &err);
  unsetenv("TENON_PROBE");
  CHECK_INT(n_verdicts(), 3);
}

/* P-86: a verdict applies to one version of a file only. */
static void load__verdicts_are_kept_until_the_file_changes(void)
{
  const char *folder = plugin_folder();
  size_t n = 0;
  fresh_cache();
  REQUIRE_OK(tn_runtime_set_probe(1, 60000, &err), &err);
  plugin_ender(folder, "a.so", "t.v_replaced", "init:abort");
  plugin_search(folder);
  CHECK_STATUS(load("t.v_replaced"), TN_ABORTED, &err);
  setenv("TENON_PROBE_PROGRAM", "/nowhere/tenon-probe", 1); /* from here on, probing is impossible */
  plugin_search(plugin_folder());
  plugin_search(folder);
  CHECK_STATUS(load("t.v_replaced"), TN_ABORTED, &err);
  CHECK_CONTAINS(tn_error_message(&err),
                 "refused by its probe, whose verdict is kept until 'tenon runtimes cache clear': signal 6 (SIGABRT)");
  setenv("TENON_PROBE_PROGRAM", tap_build_path("tools/tenon-probe"), 1);
  plugin_ender(folder, "a.so", "t.v_replaced", "none:");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_OK(load("t.v_replaced"), &err);
  CHECK_INT(n_verdicts(), 1); /* the old verdict was removed */
  plugin_ender(folder, "b.so", "t.v_forgotten", "init:exit");
  REQUIRE_OK(tn_runtime_rescan(&err), &err);
  CHECK_STATUS(load("t.v_forgotten"), TN_ABORTED, &err);
  CHECK_INT(n_verdicts(), 2);
  CHECK_OK(tn_runtime_clear_cache(&n, &err), &err);
  CHECK_INT(n, 2);
  CHECK_INT(n_verdicts(), 0);
  CHECK_OK(tn_runtime_clear_cache(&n, &err), &err);
  CHECK_INT(n, 0);
  REQUIRE_OK(tn_runtime_set_probe(0, 0, &err), &err);
}

/* Damaged files, and those that others may write to, are ignored as caches; nothing fails. */
static void load__a_damaged_cache_is_ignored(void)
{
  static const char *const damages[] = { "", "\n\n\n", "tenon-probes 2\n", "tenon-probes 1\nx y z\n",
                                         "tenon-probes 1\n\377\376 \n" };
  const char *folder = fresh_cache();
  char name[40], cache[600];
  REQUIRE_OK(tn_runtime_set_probe(1, 60000, &err), &err);
  REQUIRE_OK(tn_runtime_cache_path(cache, sizeof(cache), NULL, &err), &err);
  for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
    const char *plugins = plugin_folder();
    plugin_write(cache, damages[i], strlen(damages[i]));
    snprintf(name, sizeof(name), "t.d_%zu", i);
    plugin_ender(plugins, "a.so", name, "ctor:quit");
    plugin_search(plugins);
    CHECK_STATUS(load(name), TN_ABORTED, &err);
    CHECK_INT(n_verdicts(), 1);
  }
  REQUIRE_INT(chmod(cache, 0666), 0); /* any user could write a bad verdict */
  plugin_search(plugin_folder());
  const char *plugins = plugin_folder();
  plugin_ender(plugins, "a.so", "t.d_open", "ctor:quit");
  plugin_search(plugins);
  CHECK_STATUS(load("t.d_open"), TN_ABORTED, &err);
  CHECK_INT(n_verdicts(), 1);
  setenv("TENON_CACHE_DIR", "/proc/nowhere", 1); /* not writable */
  plugins = plugin_folder();
  plugin_ender(plugins, "a.so", "t.d_none", "ctor:quit");
  plugin_search(plugins);
  CHECK_STATUS(load("t.d_none"), TN_ABORTED, &err);
  (void)folder;
  REQUIRE_OK(tn_runtime_set_probe(0, 0, &err), &err);
}

/* Whatever the file contains, each verdict read from it is complete. */
static void load__random_bytes_in_the_cache_are_ignored(void)
{
  const char *plugins = plugin_folder();
  char path[600], cache[600];
  unsigned char bytes[8192], changed[8192];
  uint64_t state = 88172645463325252u;
  struct stat st;
  size_t size = 0;
  int found = 0;
  fresh_cache();
  plugin_ender(plugins, "a.so", "t.r_random", "init:abort");
  snprintf(path, sizeof(path), "%s", plugin_path(plugins, "a.so"));
  CHECK_STATUS(tn_runtime_probe(path, 60000, NULL, &err), TN_ABORTED, &err);
  REQUIRE_OK(tn_runtime_cache_path(cache, sizeof(cache), NULL, &err), &err);
  FILE *file = fopen(cache, "r");
  REQUIRE_PTR(file);
  size = fread(bytes, 1, sizeof(bytes), file);
  fclose(file);
  REQUIRE(size > 100 && stat(path, &st) == 0);
  tn__file_id id = { st.st_dev, st.st_ino, st.st_size, st.st_mtim };
  tn__probe_key key;
  tn__probe_key_init(path, &id, &key);
  CHECK(strlen(key.build_id) == 1 || strlen(key.build_id) == 40);
  for (int i = 0; i < 2000; i++) {
    memcpy(changed, bytes, size);
    for (int k = 0; i > 0 && k < 1 + i % 5; k++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      changed[state % size] = (unsigned char)(state >> 32);
    }
    plugin_write(cache, changed, i % 3 == 2 ? size - state % size : size);
    REQUIRE_INT(chmod(cache, 0600), 0);
    tn_error why = TN_ERROR_INIT;
    bool known = tn__probe_cache_get(&key, &report, &why);
    CHECK(i > 0 || (known && report.verdict == TN_PROBE_SIGNAL && report.signal == SIGABRT && report.cached));
    CHECK(!known || (report.verdict >= TN_PROBE_WELL && report.verdict <= TN_PROBE_MEMORY && report.step != NULL));
    CHECK(!known || report.verdict == TN_PROBE_WELL || tn_error_code(&why) != TN_OK);
    found += known;
    tn_error_clear(&why);
  }
  CHECK(found > 10 && found < 1900);
}

/* A kernel plugin is opened and its register_kernels is called. */
static void probe__kernel_plugins_are_probed_too(void)
{
  const char *folder = plugin_folder();
  size_t size = 0;
  plugin_copy("kernels_only", folder, "a.so");
  report = (tn_probe_report){ .struct_size = sizeof(report) };
  CHECK_OK(tn_runtime_probe(plugin_path(folder, "a.so"), 60000, &report, &err), &err);
  CHECK_INT(report.verdict, TN_PROBE_WELL);
  CHECK_STR(report.step, "its register_kernels");
  unsigned char *bytes = plugin_read(plugin_source("faster"), &size);
  plugin_patch(bytes, size, "faster____________", "t.p_kernels");
  plugin_patch(bytes, size, "none______", "fails");
  plugin_patch(bytes, size, "OpName______@CPU", "MatMul@CPU");
  plugin_write(plugin_path(folder, "b.so"), bytes, size);
  free(bytes);
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "b.so"), 60000, &report, &err), TN_INTERNAL, &err);
  CHECK_STR(report.step, "its register_kernels");
  CHECK_CONTAINS(tn_error_message(&err), "told to fail");
}

/* P-88: a plugin that must be probed and cannot be is not loaded. */
static void load__is_rejected_without_the_probe_program(void)
{
  const char *folder = plugin_folder();
  char program[600];
  fresh_cache();
  plugin_ender(folder, "a.so", "t.w_one", "none:");
  plugin_ender(folder, "b.so", "t.w_two", "none:");
  plugin_ender(folder, "c.so", "t.w_three", "none:");
  plugin_search(folder);
  REQUIRE_OK(tn_runtime_set_probe(1, 60000, &err), &err);
  setenv("TENON_PROBE_PROGRAM", "/nowhere/tenon-probe", 1);
  CHECK_STATUS(load("t.w_one"), TN_FAILED_PRECONDITION, &err);
  CHECK_CONTAINS(tn_error_message(&err), "the probe program '/nowhere/tenon-probe' cannot run: ");
  CHECK_CONTAINS(tn_error_message(&err),
                 "set TENON_PROBE_PROGRAM to its path, or TENON_PROBE=0 to load without a probe");
  CHECK_INT(plugin_count_mapped(folder), 0);
  snprintf(program, sizeof(program), "%s/program", plugin_folder());
  plugin_write(program, "#!/bin/sh\nexit 0\n", 17); /* runs, but reports nothing */
  setenv("TENON_PROBE_PROGRAM", program, 1);
  CHECK_STATUS(load("t.w_two"), TN_FAILED_PRECONDITION, &err);
  REQUIRE_INT(chmod(program, 0777), 0); /* any user could have created it */
  CHECK_STATUS(load("t.w_three"), TN_FAILED_PRECONDITION, &err);
  CHECK_STATUS(tn_runtime_probe(plugin_path(folder, "a.so"), 0, NULL, &err), TN_UNIMPLEMENTED, &err);
  CHECK_CONTAINS(tn_error_message(&err), "has mode 0777: it is world-writable");
  CHECK_INT(n_verdicts(), 0);
  setenv("TENON_PROBE_PROGRAM", tap_build_path("tools/tenon-probe"), 1);
  REQUIRE_OK(tn_runtime_rescan(&err), &err); /* the plugin was not at fault */
  CHECK_OK(load("t.w_one"), &err);
  REQUIRE_OK(tn_runtime_set_probe(0, 0, &err), &err);
}

static tn_status probe_one(void *arg) { return tn_runtime_probe(arg, 60000, NULL, NULL); }

static void probe__survives_lack_of_memory(void)
{
  const char *folder = plugin_folder();
  char path[600];
  fresh_cache();
  plugin_ender(folder, "a.so", "t.m_oom", "none:");
  snprintf(path, sizeof(path), "%s", plugin_path(folder, "a.so"));
  tn_test_oom_sweep(probe_one, path);
}

/* Sanitizers would turn signals of the probe program into exits. */
static void leave_signals(const char *name)
{
  char text[1000];
  const char *old = getenv(name);
  snprintf(text, sizeof(text), "%s%shandle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0:handle_abort=0",
           old != NULL ? old : "", old != NULL ? ":" : "");
  setenv(name, text, 1);
}

/* P-87: the memory of the probing program does not count as the plugin's. It remains this
 * program's peak, so the test is the last. */
static void probe__memory_is_only_that_of_the_plugin(void)
{
  size_t much = (size_t)300 << 20;
  char *volatile taken = malloc(much); /* volatile, so that the compiler keeps it */
  REQUIRE_PTR(taken);
  memset(taken, 1, much);
  fresh_cache();
  CHECK_OK(probe("none:", 60000), &err);
  CHECK_MSG(report.peak_bytes > 500000 && report.peak_bytes < much, "a plugin that needs no memory used %llu bytes",
            (unsigned long long)report.peak_bytes);
  setenv("TENON_PROBE_MEMORY_MB", "256", 1);
  CHECK_STATUS(probe("init:segv", 60000), TN_ABORTED, &err);
  unsetenv("TENON_PROBE_MEMORY_MB");
  CHECK_INT(report.verdict, TN_PROBE_SIGNAL);
  CHECK(report.peak_bytes < much);
  CHECK(taken[much - 1] == 1);
  free(taken);
}

static void setup(void)
{
  leave_signals("ASAN_OPTIONS");
  leave_signals("TSAN_OPTIONS");
  leave_signals("UBSAN_OPTIONS");
  if (getenv("TENON_PROBE_PROGRAM") == NULL) setenv("TENON_PROBE_PROGRAM", tap_build_path("tools/tenon-probe"), 1);
}

static void teardown(void) { tn_error_clear(&err); }

TAP_MAIN_WITH(setup, teardown, TAP_TEST(probe__each_way_of_ending_has_its_own_verdict),
              TAP_TEST(probe__a_valid_plugin_passes_and_inherits_nothing),
              TAP_TEST(probe__a_refused_session_is_an_error),
              TAP_TEST(probe__a_hang_is_ended_with_its_children),
              TAP_TEST(probe__works_if_children_are_reaped_by_the_system),
              TAP_TEST(probe__endless_allocation_is_ended), TAP_TEST(probe__a_refusal_is_reported_with_its_message),
              TAP_TEST(load__a_plugin_that_crashes_its_probe_is_rejected),
              TAP_TEST(load__verdicts_are_kept_until_the_file_changes), TAP_TEST(load__a_damaged_cache_is_ignored),
              TAP_TEST(load__random_bytes_in_the_cache_are_ignored), TAP_TEST(probe__kernel_plugins_are_probed_too),
              TAP_TEST(load__is_rejected_without_the_probe_program), TAP_TEST(probe__survives_lack_of_memory),
              TAP_TEST(probe__memory_is_only_that_of_the_plugin))
