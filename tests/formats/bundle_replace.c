/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint that replaces a former one: wherever it fails or the process ends, one of the two can be read. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/formats/bundle/bundle.h>

#include "tests/support/sys_faults.h"

static tn_error err;

/* The path of a file in the scratch folder, valid until the end: each name has one. */
static const char *scratch(const char *name)
{
  static struct {
    char name[60], path[300];
  } known[40];
  size_t i = 0;
  while (known[i].name[0] != 0 && strcmp(known[i].name, name) != 0) i++;
  REQUIRE(i < 39);
  snprintf(known[i].name, sizeof(known[i].name), "%s", name);
  snprintf(known[i].path, sizeof(known[i].path), "%s/%s", tap_scratch_dir(), name);
  return known[i].path;
}

/* Without those whose names begin with a dot, as temporary names do. */
static size_t files_in(const char *folder)
{
  size_t n = 0;
  DIR *dir = opendir(scratch(folder));
  REQUIRE_PTR(dir);
  for (struct dirent *entry; (entry = readdir(dir)) != NULL;) n += entry->d_name[0] != '.';
  closedir(dir);
  return n;
}

/* ---- checkpoints with a value ---- */

/* Adds tensors of some sizes whose elements have the value, a slice, and strings. */
static tn_status add_all(tn__bundle_writer *w, int32_t value)
{
  static const int64_t sizes[] = { 1, 1000, 0, 70000 }, dims[] = { 2000 };
  tn_status s = TN_OK;
  for (int i = 0; i < 4 && s == TN_OK; i++) {
    tn_tensor *t = NULL;
    char key[20];
    snprintf(key, sizeof(key), "t%d", i);
    s = tn_tensor_create(TN_INT32, &sizes[i], 1, &t, NULL);
    for (int64_t k = 0; s == TN_OK && k < sizes[i]; k++) ((int32_t *)tn_tensor_data(t))[k] = value;
    if (s == TN_OK) s = tn__bundle_writer_add(w, tn__slice_of(key), t, &err);
    int64_t starts[] = { 1000 }, lengths[] = { 1000 };
    tn__region r = { 1, starts, lengths };
    if (s == TN_OK && i == 1) s = tn__bundle_writer_add_slice(w, tn__slice_of("sliced"), 1, dims, &r, t, &err);
    starts[0] = 0;
    if (s == TN_OK && i == 1) s = tn__bundle_writer_add_slice(w, tn__slice_of("sliced"), 1, dims, &r, t, &err);
    tn_tensor_unref(t);
  }
  return s;
}

static tn_status save(const char *prefix, unsigned shards, int32_t value)
{
  tn__bundle_writer *w = NULL;
  tn_error_clear(&err);
  tn_status s = tn__bundle_writer_open(prefix, shards, &w, &err);
  if (s != TN_OK) return s;
  s = add_all(w, value);
  if (s == TN_OK) return tn__bundle_writer_commit(w, &err);
  tn__bundle_writer_abandon(w);
  return s;
}

/* Reads the whole checkpoint; returns its value, which all elements have. -1: it cannot be read. */
static int32_t value_of(const char *path)
{
  tn__store *store = NULL;
  int32_t value = -1;
  tn_error_clear(&err);
  if (tn__store_open(path, &store, &err) != TN_OK) return -1;
  CHECK_INT(store->n, 5);
  for (size_t i = 0; i < store->n; i++) {
    tn_tensor *t = NULL;
    if (tn__store_read(store, &store->entries[i], &t, &err) != TN_OK) value = -1;
    for (int64_t k = 0; t != NULL && k < tn_tensor_elements(t); k++) {
      int32_t found = ((int32_t *)tn_tensor_data(t))[k];
      CHECK_MSG(i == 0 || found == value, "value %d, then %d", (int)value, (int)found);
      value = found;
    }
    if (t == NULL) break;
    tn_tensor_unref(t);
  }
  tn__store_close(store);
  return value;
}

/* ---- failures ---- */

/* Fails each system call of a save in turn. A save that fails leaves the former checkpoint, unless only the names in
 * the folder could not be synced after the new index was in place. */
static void check_failures(const char *prefix, unsigned shards, int number, bool for_good)
{
  int32_t value = 1;
  CHECK_OK(save(prefix, shards, value), &err);
  for (unsigned n = 1;; n++) {
    sys_faults_arm(n, number, for_good);
    tn_status s = save(prefix, shards, value + 1);
    bool met = sys_faults_end();
    bool placed = strrchr(sys_faults.log, 'S') != NULL && strstr(tn_error_message(&err), "the folder") != NULL;
    char why[300];
    snprintf(why, sizeof(why), "%s", tn_error_message(&err));
    int32_t found = value_of(prefix);
    if (s == TN_OK)
      CHECK_MSG(found == value + 1, "call %u: value %d after %d was saved: %s", n, (int)found, (int)value + 1,
                tn_error_message(&err));
    else
      CHECK_MSG(found == value || (placed && found == value + 1), "call %u (%s): value %d: %s", n, why, (int)found,
                tn_error_message(&err));
    value = found;
    if (value < 0 || !met) break;
    REQUIRE(n < 1000);
  }
}

static void check_all_failures(unsigned shards)
{
  static const int numbers[] = { EIO, ENOSPC, EACCES };
  mkdir(scratch("fail"), 0700);
  const char *prefix = scratch("fail/model");
  for (int names = 0; names < 2; names++) {
    tn__writer_always_names = names;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
      check_failures(prefix, shards, numbers[i], i == 0);
    }
  }
  tn__writer_always_names = false;
  CHECK_OK(save(prefix, shards, 1), &err);
  CHECK_OK(save(prefix, shards, 1), &err);
  CHECK(files_in("fail") <= shards + 2); /* what failed saves have left is gone */
  tn_error_clear(&err);
}

static void replace__a_failed_save_keeps_the_former_checkpoint(void) { check_all_failures(1); }
static void replace__a_failed_save_of_several_files_keeps_the_former_checkpoint(void) { check_all_failures(3); }

/* ---- the process ends ---- */

/* Saves in a child that ends before its nth call. Returns whether it was ended. */
static bool save_and_end(const char *prefix, unsigned shards, int32_t value, unsigned n)
{
  int status = 0;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    sys_faults_arm(n, 0, false);
    tn_status s = save(prefix, shards, value);
    sys_faults_end();
    _exit(s == TN_OK ? 0 : 1);
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status) && (WEXITSTATUS(status) == 42 || WEXITSTATUS(status) == 0));
  return WEXITSTATUS(status) == 42;
}

static void check_ends(unsigned shards, bool names)
{
  int32_t value = 1;
  bool ended = true, seen_old = false, seen_new = false;
  mkdir(scratch("end"), 0700);
  const char *prefix = scratch("end/model");
  tn__writer_always_names = names;
  CHECK_OK(save(prefix, shards, value), &err);
  for (unsigned n = 1; ended && n < 1000; n++) {
    ended = save_and_end(prefix, shards, value + 1, n);
    int32_t found = value_of(prefix);
    CHECK_MSG(found == value + 1 || (ended && found == value), "ended before call %u: value %d instead of %d: %s", n,
              (int)found, (int)value, tn_error_message(&err));
    seen_old = seen_old || (ended && found == value);
    seen_new = seen_new || (ended && found == value + 1);
    value = found;
    if (value < 0) break;
  }
  CHECK(seen_old && seen_new);
  tn__writer_always_names = false;
  CHECK_OK(save(prefix, shards, 7), &err);
  CHECK_INT(value_of(prefix), 7);
}

static void replace__a_killed_save_keeps_one_of_the_two(void)
{
  check_ends(1, false);
  check_ends(3, false);
  check_ends(2, true);
}

static void replace__what_killed_saves_left_is_deleted_by_the_next(void)
{
  mkdir(scratch("left"), 0700);
  const char *prefix = scratch("left/model");
  CHECK_OK(save(prefix, 2, 1), &err);
  for (unsigned n = 1; save_and_end(prefix, 2, 2, n); n++) {
    CHECK(files_in("left") <= 7); /* at most two checkpoints, of 3 and 4 files */
    CHECK_OK(save(prefix, 2, 3), &err);
    CHECK(files_in("left") <= 4);
  }
}

/* ---- the order of calls ---- */

/* Data is on the disk before its files have names, the names before the index has its own, and that before the former
 * data is deleted. */
static void replace__the_disk_has_each_step_before_the_next(void)
{
  mkdir(scratch("order"), 0700);
  const char *prefix = scratch("order/model");
  CHECK_OK(save(prefix, 2, 1), &err);
  sys_faults_arm(0, 0, false);
  CHECK_OK(save(prefix, 2, 2), &err);
  sys_faults_end();
  char order[100], *p = order;
  for (const char *c = sys_faults.log; *c != 0 && p < order + sizeof(order) - 1; c++)
    if (strchr("sSlru", *c) != NULL) *p++ = *c;
  *p = 0;
  /* Three data files are synced and named, the folder is synced; the index is synced, found to exist, linked under
   * another name and renamed; the folder is synced; two data files are deleted. */
  CHECK_STR(order, "ssslllSsllrSuu");
}

/* ---- numbers of data files ---- */

static void check_counts(const char *prefix, unsigned shards, const char *last)
{
  char path[400];
  snprintf(path, sizeof(path), "%s.data-%s", prefix, last);
  CHECK_OK(save(prefix, shards, 5), &err);
  CHECK_MSG(access(path, F_OK) == 0, "%s", path);
  CHECK_INT(value_of(prefix), 5);
}

static void replace__old_and_new_data_files_have_other_names(void)
{
  mkdir(scratch("names"), 0700);
  const char *prefix = scratch("names/model");
  check_counts(prefix, 1, "00000-of-00001");
  check_counts(prefix, 1, "00001-of-00002");
  CHECK_INT(files_in("names"), 3);
  check_counts(prefix, 1, "00000-of-00001");
  CHECK_INT(files_in("names"), 2);
  check_counts(prefix, 3, "00002-of-00003");
  check_counts(prefix, 4, "00003-of-00004");
  check_counts(prefix, 4, "00004-of-00005");
  CHECK_INT(files_in("names"), 6);
}

/* It may be one that another reader understands: its data files are not touched until the new index is in place. */
static void replace__an_index_that_cannot_be_read_is_replaced_with_care(void)
{
  mkdir(scratch("damaged"), 0700);
  const char *prefix = scratch("damaged/model");
  CHECK_OK(save(prefix, 1, 1), &err);
  CHECK_OK(tn_file_save(scratch("damaged/model.index"), "no table", 8, &err), &err);
  CHECK_OK(tn_file_save(scratch("damaged/model.data-00000-of-00002"), "x", 1, &err), &err);
  CHECK_OK(tn_file_save(scratch("damaged/model.data-0000-of-0003"), "other", 5, &err), &err);
  CHECK_OK(tn_file_save(scratch("damaged/model-2.data-00000-of-00001"), "other", 5, &err), &err);
  check_counts(prefix, 1, "00002-of-00003");
  CHECK_INT(files_in("damaged"), 6); /* the files of others, too */
}

/* An index that is a symbolic link stays one. */
static void replace__symbolic_links_are_followed(void)
{
  struct stat st;
  mkdir(scratch("linked"), 0700);
  mkdir(scratch("linked/there"), 0700);
  const char *prefix = scratch("linked/model");
  CHECK_OK(save(prefix, 1, 1), &err);
  REQUIRE_INT(rename(scratch("linked/model.index"), scratch("linked/there/index")), 0);
  REQUIRE_INT(symlink("there/index", scratch("linked/model.index")), 0);
  CHECK_INT(value_of(prefix), 1);
  CHECK_OK(save(prefix, 1, 2), &err);
  CHECK_INT(value_of(prefix), 2);
  CHECK(lstat(scratch("linked/model.index"), &st) == 0 && S_ISLNK(st.st_mode));
}

static void replace__devices_are_rejected(void)
{
  mkdir(scratch("devices"), 0700);
  const char *prefix = scratch("devices/model");
  REQUIRE_INT(symlink("/dev/null", scratch("devices/model.data-00000-of-00001")), 0);
  CHECK_STATUS(save(prefix, 1, 1), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "it is not a regular file");
  tn_error_clear(&err);
}

/* ---- merging ---- */

static tn_status merge_parts(const char *prefix)
{
  const char *parts[] = { scratch("merge/a/part"), scratch("merge/b/part") };
  return tn__bundle_merge(parts, 2, prefix, true, NULL);
}

static tn_status save_part(const char *prefix, const char *key, int32_t value)
{
  tn__bundle_writer *w = NULL;
  int64_t n = 3;
  tn_tensor *t = NULL;
  tn_status s = tn_tensor_create(TN_INT32, &n, 1, &t, &err);
  for (int i = 0; i < 3 && s == TN_OK; i++) ((int32_t *)tn_tensor_data(t))[i] = value;
  if (s == TN_OK) s = tn__bundle_writer_open(prefix, 1, &w, &err);
  if (s == TN_OK) s = tn__bundle_writer_add(w, tn__slice_of(key), t, &err);
  tn_tensor_unref(t);
  return s == TN_OK ? tn__bundle_writer_commit(w, &err) : s;
}

/* The value of two keys, which is the same in a whole checkpoint; -1: one cannot be read. */
static int32_t value_of_keys(const char *const prefixes[2])
{
  static const char *const keys[] = { "a", "b" };
  int32_t values[2] = { -1, -2 };
  for (int i = 0; i < 2; i++) {
    tn__store *store = NULL;
    tn_tensor *t = NULL;
    if (tn__store_open(prefixes[i], &store, NULL) != TN_OK) return -1;
    const tn__stored *e = tn__store_find(store, tn__slice_of(keys[i]));
    if (e != NULL && tn__store_read(store, e, &t, NULL) == TN_OK) values[i] = *(int32_t *)tn_tensor_data(t);
    tn_tensor_unref(t);
    tn__store_close(store);
  }
  return values[0] == values[1] ? values[0] : -1;
}

/* If a merge fails, its parts can be read; if it has not, the new checkpoint. At any time the former one or the new one
 * is there. */
static void check_merges(bool kill)
{
  bool met = true;
  mkdir(scratch("merge"), 0700);
  const char *prefix = scratch("merge/whole"), *whole[] = { prefix, prefix };
  const char *parts[] = { scratch("merge/a/part"), scratch("merge/b/part") };
  int32_t former = 0;
  for (unsigned n = 1; met && n < 500; n++) {
    mkdir(scratch("merge/a"), 0700);
    mkdir(scratch("merge/b"), 0700);
    REQUIRE_OK(save_part(parts[0], "a", (int32_t)n), &err);
    REQUIRE_OK(save_part(parts[1], "b", (int32_t)n), &err);
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      sys_faults_arm(n, kill ? 0 : EIO, false);
      tn_status s = merge_parts(prefix);
      _exit((s == TN_OK ? 0 : 1) + (sys_faults_end() ? 2 : 0));
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    met = WEXITSTATUS(status) != 0;
    int32_t found = value_of_keys(whole);
    CHECK_MSG(found == (int32_t)n || (met && found == former) || (met && n == 1) || (met && former == 0),
              "call %u: value %d", n, (int)found);
    if (found != (int32_t)n) CHECK_MSG(value_of_keys(parts) == (int32_t)n, "call %u: the parts are damaged", n);
    former = found > 0 ? found : 0;
  }
}

static void replace__a_failed_merge_keeps_its_parts(void)
{
  check_merges(false);
  check_merges(true);
}

TAP_MAIN(TAP_TEST(replace__a_failed_save_keeps_the_former_checkpoint),
         TAP_TEST(replace__a_failed_save_of_several_files_keeps_the_former_checkpoint),
         TAP_TEST(replace__a_killed_save_keeps_one_of_the_two),
         TAP_TEST(replace__what_killed_saves_left_is_deleted_by_the_next),
         TAP_TEST(replace__the_disk_has_each_step_before_the_next),
         TAP_TEST(replace__old_and_new_data_files_have_other_names),
         TAP_TEST(replace__an_index_that_cannot_be_read_is_replaced_with_care),
         TAP_TEST(replace__symbolic_links_are_followed), TAP_TEST(replace__devices_are_rejected),
         TAP_TEST(replace__a_failed_merge_keeps_its_parts))
