/* SPDX-License-Identifier: Apache-2.0 */
/* The files around checkpoints: paths, the state file of a folder, merging. */
#define _GNU_SOURCE
#include "conformance/support/oom.h"
#include "tests/support/bundle_kit.h"

/* ---- paths ---- */

static void checkpoint_state__paths_of_a_checkpoint(void)
{
  const char *prefix = prefix_in("paths"), *folder = scratch("paths");
  tn__bundle_writer *w = open_writer(prefix, 1);
  tn_tensor *t = NULL;
  char *latest = NULL;
  add(w, "value", floats(1, 5));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(scratch("paths/model.index"));
  CHECK_STR(store->prefix, prefix);
  CHECK_STATUS(try_read(store, "valeu", &t), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "has no tensor 'valeu' (did you mean 'value'?)");
  tn__store_close(store);
  check_refused(scratch("paths/other"), TN_NOT_FOUND, "there is no checkpoint '");
  check_refused(folder, TN_NOT_FOUND, "paths/checkpoint'");
  REQUIRE_OK(tn__checkpoint_update_state(prefix, 0, &err), &err);
  store = open_store(folder);
  CHECK_STR(store->prefix, prefix);
  tn__store_close(store);
  REQUIRE_OK(tn__checkpoint_latest(folder, &latest, &err), &err);
  CHECK_STR(latest, prefix);
  tn__strfree(latest);
  REQUIRE_INT(unlink(scratch("paths/model.index")), 0);
  CHECK_STATUS(tn__checkpoint_latest(folder, &latest, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "which is not there");
  CHECK_NULL(latest);
  tn_error_clear(&err);
}

/* ---- state files ---- */

static void save(const char *prefix)
{
  tn__bundle_writer *w = open_writer(prefix, 1);
  add(w, "value", floats(1, 5));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
}

static const char *read_state(const char *folder)
{
  static char text[4000];
  char path[400];
  snprintf(path, sizeof(path), "%s/checkpoint", scratch(folder));
  FILE *f = fopen(path, "rb");
  REQUIRE_PTR(f);
  text[fread(text, 1, sizeof(text) - 1, f)] = 0;
  fclose(f);
  return text;
}

static void checkpoint_state__the_newest_checkpoints_are_kept(void)
{
  char name[40];
  mkdir(scratch("kept"), 0700);
  for (int i = 1; i <= 5; i++) {
    snprintf(name, sizeof(name), "kept/model-%d", i);
    save(scratch(name));
    if (i == 2) write_file(scratch(name), ".meta", "m", 1);
    REQUIRE_OK(tn__checkpoint_update_state(scratch(name), 3, &err), &err);
  }
  CHECK_INT(files_in("kept"), 7); /* three of two files each, and the state */
  CHECK(!exists(scratch("kept/model-2"), ".index"));
  CHECK(exists(scratch("kept/model-3"), ".index"));
  const char *text = read_state("kept");
  CHECK(strncmp(text,
                "model_checkpoint_path: \"model-5\"\nall_model_checkpoint_paths: \"model-3\"\n"
                "all_model_checkpoint_paths: \"model-4\"\nall_model_checkpoint_paths: \"model-5\"\n"
                "all_model_checkpoint_timestamps: ",
                117) == 0);
  /* Saved again, a checkpoint is the newest and listed once. */
  REQUIRE_OK(tn__checkpoint_update_state(scratch("kept/model-3"), 0, &err), &err);
  CHECK(strncmp(read_state("kept"),
                "model_checkpoint_path: \"model-3\"\nall_model_checkpoint_paths: \"model-4\"\n"
                "all_model_checkpoint_paths: \"model-5\"\nall_model_checkpoint_paths: \"model-3\"\n",
                141) == 0);
}

static void check_latest(const char *state, const char *wanted)
{
  char *latest = NULL;
  write_file(scratch("state"), "/checkpoint", state, strlen(state));
  REQUIRE_OK(tn__checkpoint_latest(scratch("state"), &latest, &err), &err);
  CHECK_STR(latest, wanted);
  tn__strfree(latest);
}

static void checkpoint_state__state_files_of_all_forms(void)
{
  char state[600];
  mkdir(scratch("state"), 0700);
  mkdir(scratch("state/sub"), 0700);
  save(scratch("state/a\"\xc3\xa9\n"));
  save(scratch("state/sub/b"));
  check_latest("model_checkpoint_path: \"a\\\"\\303\\251\\n\"", scratch("state/a\"\xc3\xa9\n"));
  check_latest("# a comment\nmodel_checkpoint_path:'a\"' '\\u00e9\\x0a' ; other: 5, more { x: \"}\" y < z: 1 > }\n"
               "all_model_checkpoint_paths: ['a', \"b\"] list: []",
               scratch("state/a\"\xc3\xa9\n"));
  check_latest("model_checkpoint_path: \"none\" model_checkpoint_path: \"sub/b\"", scratch("state/sub/b"));
  snprintf(state, sizeof(state), "model_checkpoint_path: \"%s\"", scratch("state/sub/b"));
  check_latest(state, scratch("state/sub/b"));
}

static void checkpoint_state__damaged_state_files_give_a_status(void)
{
  static const char *const wrong[] = { "model_checkpoint_path: \"a",
                                       "model_checkpoint_path \"a\"",
                                       "model_checkpoint_path:",
                                       "model_checkpoint_path: \"a\nb\"",
                                       "x { y: 1",
                                       "x: [1",
                                       "x: [1 2]",
                                       "x: \"\\",
                                       "model_checkpoint_path: \"a\\000b\"",
                                       "\x89PNG",
                                       "x: \"\\U00110000\"",
                                       ": 5" };
  char *latest = NULL;
  mkdir(scratch("state"), 0700);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    write_file(scratch("state"), "/checkpoint", wrong[i], strlen(wrong[i]));
    tn_error_clear(&err);
    CHECK_STATUS(tn__checkpoint_latest(scratch("state"), &latest, &err), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "state/checkpoint' at byte ");
    tn_error_clear(&err);
    CHECK_STATUS(tn__checkpoint_update_state(scratch("state/x"), 1, &err), TN_DATA_LOSS, NULL);
  }
  write_file(scratch("state"), "/checkpoint", "", 0);
  tn_error_clear(&err);
  CHECK_STATUS(tn__checkpoint_latest(scratch("state"), &latest, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "names no checkpoint");
  tn_error_clear(&err);
}

/* A state file may come from elsewhere: only checkpoints of its own folder are deleted. */
static void checkpoint_state__checkpoints_of_other_folders_are_not_deleted(void)
{
  char state[1000];
  mkdir(scratch("own"), 0700);
  mkdir(scratch("foreign"), 0700);
  save(scratch("foreign/a"));
  save(scratch("own/b"));
  save(scratch("own/c"));
  snprintf(
      state, sizeof(state),
      "model_checkpoint_path: \"b\" all_model_checkpoint_paths: \"%s\" all_model_checkpoint_paths: \"../foreign/a\" "
      "all_model_checkpoint_paths: \"b\" last_preserved_timestamp: 12.5",
      scratch("foreign/a"));
  write_file(scratch("own"), "/checkpoint", state, strlen(state));
  REQUIRE_OK(tn__checkpoint_update_state(scratch("own/c"), 1, &err), &err);
  CHECK(exists(scratch("foreign/a"), ".index"));
  CHECK(exists(scratch("foreign/a"), ".data-00000-of-00001"));
  CHECK(!exists(scratch("own/b"), ".index"));
  CHECK_STR(read_state("own"),
            "model_checkpoint_path: \"c\"\nall_model_checkpoint_paths: \"c\"\nlast_preserved_timestamp: 12.5\n");
}

/* ---- merging ---- */

static void save_part(const char *folder, int part)
{
  char key[20];
  tn__bundle_writer *w = open_writer(prefix_in(folder), part == 0 ? 2 : 1);
  snprintf(key, sizeof(key), "own %d", part);
  add(w, key, floats(100, (float)part));
  if (part == 0) add(w, "texts", texts(5));
  REQUIRE_OK(part == 0 ? add_grid(w, "rows", 0, 0, 2, 8, false) : add_grid(w, "rows", 2, 0, 4, 8, false), &err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
}

static void check_merged(const char *prefix)
{
  tn__store *store = open_store(prefix);
  CHECK_INT(store->n, 4);
  check_key(store, "own 0", floats(100, 0));
  check_key(store, "own 1", floats(100, 1));
  check_key(store, "texts", texts(5));
  check_key(store, "rows", grid(0, 0, 6, 8, false));
  tn__store_close(store);
}

static void checkpoint_state__parts_are_merged(void)
{
  save_part("part0", 0);
  save_part("part1", 1);
  const char *parts[] = { scratch("part0/model"), scratch("part1/model") }, *whole = prefix_in("merged");
  REQUIRE_OK(tn__bundle_merge(parts, 2, whole, true, &err), &err);
  check_merged(whole);
  CHECK_INT(files_in("merged"), 4);
  CHECK(access(parts[0], F_OK) != 0);
  CHECK(access(scratch("part0"), F_OK) != 0);
  CHECK(access(scratch("part1"), F_OK) != 0);
  /* Again, in place of the former one. */
  save_part("part0", 0);
  save_part("part1", 1);
  REQUIRE_OK(tn__bundle_merge(parts, 2, whole, false, &err), &err);
  check_merged(whole);
  CHECK_INT(files_in("part0"), 0);
  REQUIRE_OK(tn__bundle_merge(&whole, 1, whole, true, &err), &err); /* a part may have the name of the whole */
  check_merged(whole);
}

static void checkpoint_state__parts_that_do_not_fit_stay(void)
{
  save_part("part0", 0);
  save_part("part1", 1);
  const char *parts[] = { scratch("part0/model"), scratch("part1/model"), scratch("part2/model") },
             *whole = prefix_in("unmerged");
  tn__bundle_writer *w = open_writer(prefix_in("part2"), 1);
  add(w, "own 1", floats(1, 1));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  CHECK_STATUS(tn__bundle_merge(parts, 3, whole, true, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "tensor 'own 1', which '");
  CHECK_CONTAINS(tn_error_message(&err), "part2/model' has, is in another part, too");
  tn_error_clear(&err);
  w = open_writer(prefix_in("part2"), 1);
  REQUIRE_OK(add_grid(w, "rows", 2, 0, 3, 8, true), &err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  CHECK_STATUS(tn__bundle_merge(parts, 3, whole, true, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "has another dtype or shape in another part");
  tn_error_clear(&err);
  REQUIRE_INT(unlink(scratch("part1/model.data-00000-of-00001")), 0);
  CHECK_STATUS(tn__bundle_merge(parts, 2, whole, true, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "part1/model.data-00000-of-00001'");
  tn_error_clear(&err);
  CHECK_STATUS(tn__bundle_merge(parts, 0, whole, true, &err), TN_INVALID_ARGUMENT, NULL);
  tn_error_clear(&err);
  CHECK_INT(files_in("unmerged"), 0);
  CHECK_INT(files_in("part0"), 3);
}

/* ---- memory ---- */

static tn_status update_and_open(void *arg)
{
  tn__store *store = NULL;
  char path[400];
  snprintf(path, sizeof(path), "%s/a", (const char *)arg);
  tn_status s = tn__checkpoint_update_state(path, 2, NULL);
  if (s == TN_OK) s = tn__store_open(arg, &store, NULL);
  tn__store_close(store);
  return s;
}

static tn_status merge_itself(void *arg)
{
  const char *prefix = arg;
  return tn__bundle_merge(&prefix, 1, prefix, false, NULL);
}

static void checkpoint_state__nothing_leaks_without_memory(void)
{
  static char path[300];
  save_part("sweep", 0);
  snprintf(path, sizeof(path), "%s", scratch("sweep/model"));
  tn_test_oom_sweep(merge_itself, path);
  mkdir(scratch("state_sweep"), 0700);
  save(scratch("state_sweep/a"));
  snprintf(path, sizeof(path), "%s", scratch("state_sweep"));
  tn_test_oom_sweep(update_and_open, path);
}

TAP_MAIN(
  TAP_TEST(checkpoint_state__paths_of_a_checkpoint),
  TAP_TEST(checkpoint_state__the_newest_checkpoints_are_kept),
  TAP_TEST(checkpoint_state__state_files_of_all_forms),
  TAP_TEST(checkpoint_state__damaged_state_files_give_a_status),
  TAP_TEST(checkpoint_state__checkpoints_of_other_folders_are_not_deleted),
  TAP_TEST(checkpoint_state__parts_are_merged),
  TAP_TEST(checkpoint_state__parts_that_do_not_fit_stay),
  TAP_TEST(checkpoint_state__nothing_leaks_without_memory))
