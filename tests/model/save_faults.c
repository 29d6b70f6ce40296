/* SPDX-License-Identifier: Apache-2.0 */
/* tn_model_save while system calls fail or the process ends: a folder is there with all of the model, or not at all. */
#define _GNU_SOURCE
#include "tests/support/sys_faults.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <tenon/tenon.h>

#include "conformance/support/tap.h"

static tn_error err;

static tn_session *session_of(const char *path)
{
  tn_model *model = NULL;
  tn_session *session = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn_model_open(path, NULL, &model, &err), &err);
  REQUIRE_OK(tn_model_session(model, NULL, &session, &err), &err);
  tn_model_close(model);
  return session;
}

/* A folder for one test, and the path of the model in it. */
static const char *place(const char *folder)
{
  static char path[600];
  const char *whole = tap_scratch_path("%s", folder);
  mkdir(whole, 0700);
  snprintf(path, sizeof path, "%s/model", whole);
  return path;
}

/* The entries of a folder, hidden ones included. */
static int entries_of(const char *folder)
{
  int n = 0;
  DIR *d = opendir(tap_scratch_path("%s", folder));
  REQUIRE_PTR(d);
  for (const struct dirent *e; (e = readdir(d)) != NULL;)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return n;
}

/* Whether y = a * x + b with the saved a = 0.5 and b = 2, for x = 1. */
static bool is_whole(const char *path)
{
  static const char *const x[] = { "x" }, *const y[] = { "y" };
  const float ones[] = { 1, 1 };
  tn_tensor *in = NULL, *out = NULL;
  tn_session *session = session_of(path);
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (const int64_t[]){ 2 }, 1, ones, sizeof ones, &in, &err), &err);
  REQUIRE_OK(tn_model_call(session, NULL, x, &in, 1, y, &out, 1, &err), &err);
  bool whole = ((const float *)tn_tensor_data(out))[0] == 2.5f;
  tn_tensor_unref(out);
  tn_tensor_unref(in);
  tn_session_destroy(session);
  return whole;
}

static void remove_model(const char *path)
{
  char command[700];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  REQUIRE(system(command) == 0);
}

/* Each call fails in turn, once. Failed removals after it are none, so that nothing is left. */
static void check_failures(int number)
{
  tn_session *session = session_of(tap_source_path("tests/data/saved/half_plus_two"));
  const char *path = place("fails");
  unsigned n = 1, failed = 0;
  for (bool met = true; met && n < 1000; n++) {
    tn_error_clear(&err);
    sys_faults_arm(n, number, false);
    tn_status st = tn_model_save(session, path, NULL, &err);
    met = sys_faults_end();
    if (st == TN_OK) {
      CHECK(is_whole(path));
      remove_model(path);
    } else {
      failed++;
      CHECK_MSG(entries_of("fails") == 0, "call %u (%s) left something: %s", n, sys_faults.log, tn_error_message(&err));
      CHECK_CONTAINS(tn_error_message(&err), strerror(number));
      remove_model(path);
    }
  }
  CHECK(n < 1000 && failed > 10);
  tn_session_destroy(session);
}

static void save_faults__a_failed_save_leaves_nothing(void)
{
  check_failures(EIO);
  check_failures(ENOSPC);
}

/* Runs a function in a child, since a process that had a session cannot be forked. Returns its exit status. */
static int in_child(int (*run)(const char *path, unsigned n), const char *path, unsigned n)
{
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) _exit(run(path, n));
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* Ends with status 42 before the nth call of a save. */
static int save_and_end(const char *path, unsigned n)
{
  tn_session *session = session_of(tap_source_path("tests/data/saved/half_plus_two"));
  sys_faults_arm(n, 0, false);
  tn_status st = tn_model_save(session, path, NULL, &err);
  return st == TN_OK ? 0 : 1;
}

static int check_whole(const char *path, unsigned n) { return is_whole(path) ? 0 : 1; }

/* A process that ends leaves no folder with the wanted name, or a whole model. */
static void save_faults__a_killed_save_leaves_no_half_a_model(void)
{
  const char *path = place("ends");
  int ended = 42;
  unsigned n = 1;
  for (; ended == 42 && n < 1000; n++) {
    ended = in_child(save_and_end, path, n);
    CHECK_MSG(ended == 42 || ended == 0, "call %u: the save failed", n);
    if (access(path, F_OK) == 0) CHECK_MSG(in_child(check_whole, path, n) == 0, "call %u: the model is not whole", n);
    else CHECK(ended == 42);
    remove_model(path);
  }
  CHECK(n > 10);
}

/* First the test that forks. */
TAP_MAIN(
  TAP_TEST(save_faults__a_killed_save_leaves_no_half_a_model),
  TAP_TEST(save_faults__a_failed_save_leaves_nothing))
