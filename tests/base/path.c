/* SPDX-License-Identifier: Apache-2.0 */
/* Where paths lead. */
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>
#include <core/base/path.h>
#include <core/base/text.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "TOP/name", in a folder of this test that has: dir/, dir/file, to_dir -> dir, to_file -> dir/file, up -> .., loop ->
 * loop, gone -> none/at/all, root -> / */
static const char *at(const char *name)
{
  static char top[PATH_MAX], paths[8][PATH_MAX];
  static int next;
  if (top[0] == 0) {
    REQUIRE(realpath(tap_scratch_dir(), top) != NULL);
    REQUIRE_INT(chdir(top), 0);
    REQUIRE_INT(mkdir("dir", 0777), 0);
    fclose(fopen("dir/file", "w"));
    REQUIRE_INT(symlink("dir", "to_dir"), 0);
    REQUIRE_INT(symlink("dir/file", "to_file"), 0);
    REQUIRE_INT(symlink("..", "dir/up"), 0);
    REQUIRE_INT(symlink("loop", "loop"), 0);
    REQUIRE_INT(symlink("none/at/all", "gone"), 0);
    REQUIRE_INT(symlink("/", "root"), 0);
  }
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%.2000s%s%.2000s", top, name[0] == 0 ? "" : "/", name);
  return path;
}

static void leads(const char *path, const char *to)
{
  char *found;
  tn_error err = TN_ERROR_INIT;
  CHECK_OK(tn__path_follow(path, &found, &err), &err);
  if (found != NULL) CHECK_STR(found, to);
  tn__strfree(found);
  tn_error_clear(&err);
}

static void fails(const char *path, tn_status wanted, const char *text)
{
  char *found;
  tn_error err = TN_ERROR_INIT;
  CHECK_STATUS(tn__path_follow(path, &found, &err), wanted, &err);
  CHECK_NULL(found);
  CHECK_CONTAINS(tn_error_message(&err), text);
  tn_error_clear(&err);
}

static void path__is_made_absolute(void)
{
  leads(at("dir/file"), at("dir/file"));
  leads(at("dir//./file/"), at("dir/file"));
  leads("dir/file", at("dir/file"));
  leads("./dir/../dir", at("dir"));
  leads(".", at(""));
  leads("/", "/");
  leads("//..//../", "/");
}

static void path__follows_links(void)
{
  leads(at("to_dir/file"), at("dir/file"));
  leads(at("to_file"), at("dir/file"));
  leads(at("to_dir/up/to_dir/up/to_file"), at("dir/file"));
  leads(at("to_dir/.."), at("")); /* the folder above the target */
  leads(at("root"), "/");
  leads(at("root/none"), "/none");
}

static void path__may_lead_to_a_file_that_does_not_exist(void)
{
  leads(at("none"), at("none"));
  leads(at("to_dir/none/file"), at("dir/none/file"));
  leads(at("gone"), at("none/at/all"));
  leads(at("gone/more"), at("none/at/all/more"));
  leads(at("dir/file/more"), at("dir/file/more"));
}

static void path__must_make_sense(void)
{
  char *text = calloc(PATH_MAX + 1, 1);
  REQUIRE_PTR(text);
  memset(text, 'a', PATH_MAX);
  fails("", TN_INVALID_ARGUMENT, "''");
  fails(text, TN_INVALID_ARGUMENT, "too long");
  fails(at("loop"), TN_INVALID_ARGUMENT, "loop'");
  fails(at("none/../dir"), TN_NOT_FOUND, "none/../dir'");
  fails(at("dir/file/../file"), TN_NOT_FOUND, "Not a directory");
  fails(at("gone/../file"), TN_NOT_FOUND, "gone/../file'");
  free(text);
}

static void path__is_within_a_folder(void)
{
  CHECK(tn__path_is_within("/a/b", "/a/b"));
  CHECK(tn__path_is_within("/a/b/c", "/a/b"));
  CHECK(!tn__path_is_within("/a/bc", "/a/b"));
  CHECK(!tn__path_is_within("/a", "/a/b"));
  CHECK(tn__path_is_within("/a", "/"));
  CHECK(tn__path_is_within("/", "/"));
}

static tn_status follow(void *arg)
{
  char *found;
  tn_status st = tn__path_follow(arg, &found, NULL);
  tn__strfree(found);
  return st;
}

static void path__survives_every_failed_allocation(void)
{
  tn_test_oom_sweep(follow, (void *)at("to_dir/up/to_file"));
}

TAP_MAIN(TAP_TEST(path__is_made_absolute), TAP_TEST(path__follows_links),
         TAP_TEST(path__may_lead_to_a_file_that_does_not_exist), TAP_TEST(path__must_make_sense),
         TAP_TEST(path__is_within_a_folder), TAP_TEST(path__survives_every_failed_allocation))
