/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints written and read by the ops of a graph, as savers do it. */
#include "conformance/support/op_kit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TYPES(key, types) "attr { key: '" key "' value { list { " types " } } }"
#define TEXTS(name, n, values) TENSOR(name, "DT_STRING", D(n), values)
#define EMPTY "string_val: '' "
#define SAVE(name, path, names, specs, inputs, types) \
  NODE(name, "SaveV2", "input: '" path "' input: '" names "' input: '" specs "' " inputs, TYPES("dtypes", types))
#define RESTORE(name, path, names, specs, types) \
  NODE(name, "RestoreV2", "input: '" path "' input: '" names "' input: '" specs "'", TYPES("dtypes", types))

/* Tensors f [2,3], i [2], s [2], e [0,3]; they are fed or constant. */
#define VALUES                                                                                                \
  TENSOR("f", "DT_FLOAT", D(2) D(3), "float_val: 1 float_val: 2 float_val: 3 float_val: 4 float_val: 5 "      \
         "float_val: 6")                                                                                      \
  TENSOR("i", "DT_INT64", D(2), "int64_val: -7 int64_val: 9")                                                 \
  TEXTS("s", 2, "string_val: 'one' string_val: 'a text that is longer than fits into an element'")            \
  TENSOR("e", "DT_FLOAT", D(0) D(3), "") ANY("p", "DT_STRING")                                                \
  TEXTS("none1", 1, EMPTY) TEXTS("none2", 2, EMPTY EMPTY) TEXTS("none4", 4, EMPTY EMPTY EMPTY EMPTY)

#define ALL "type: DT_FLOAT type: DT_INT64 type: DT_STRING type: DT_FLOAT"
#define WHOLE                                                                                                \
  TEXTS("names", 4, "string_val: 'f' string_val: 'dir/i' string_val: 's' string_val: 'e'")                   \
  TEXTS("turned", 4, "string_val: 'e' string_val: 's' string_val: 'dir/i' string_val: 'f'")                  \
  TEXTS("lost", 1, "string_val: 'dir/j'") TEXTS("only_f", 1, "string_val: 'f'")                              \
  TEXTS("pair", 2, "string_val: 'f' string_val: 'lost'") TEXTS("twice", 2, "string_val: 'f' string_val: 'f'") \
  TEXTS("piece", 1, "string_val: '2 3 1,1:0,2'") TEXTS("other", 1, "string_val: '2 4 1,1:0,2'")              \
  TEXTS("beyond", 1, "string_val: '2 3 1,2:-'") TEXTS("bad", 1, "string_val: 'two by three'")                \
  SAVE("save", "p", "names", "none4", "input: 'f' input: 'i' input: 's' input: 'e'", ALL)                    \
  SAVE("save_twice", "p", "twice", "none2", "input: 'f' input: 'f'", "type: DT_FLOAT type: DT_FLOAT")        \
  SAVE("save_wrong", "p", "only_f", "piece", "input: 'f'", "type: DT_FLOAT")                                 \
  SAVE("save_count", "p", "names", "none4", "input: 'f'", "type: DT_FLOAT")                                  \
  RESTORE("load", "p", "turned", "none4", "type: DT_FLOAT type: DT_STRING type: DT_INT64 type: DT_FLOAT")    \
  RESTORE("load_lost", "p", "lost", "none1", "type: DT_FLOAT")                                               \
  RESTORE("load_pair", "p", "pair", "none2", "type: DT_INT32 type: DT_FLOAT")                                \
  RESTORE("load_int", "p", "only_f", "none1", "type: DT_INT32")                                              \
  RESTORE("load_piece", "p", "only_f", "piece", "type: DT_FLOAT")                                            \
  RESTORE("load_other", "p", "only_f", "other", "type: DT_FLOAT")                                            \
  RESTORE("load_beyond", "p", "only_f", "beyond", "type: DT_FLOAT")                                          \
  RESTORE("load_bad", "p", "only_f", "bad", "type: DT_FLOAT")

/* ---- helpers ---- */

/* Runs a step with p fed; the fetch is optional. */
static tn_status with(ts *t, const char *path, const char *fetch, const char *target, tn_tensor **out)
{
  static const char *const name = "p";
  tn_tensor *feed = NULL;
  if (out != NULL) *out = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL), NULL);
  tn_status st = tn_session_run(t->session, NULL, &name, &feed, 1, &fetch, out, fetch != NULL, &target, target != NULL,
                                NULL, &t->err);
  tap_answered(st, &t->err);
  tn_tensor_unref(feed);
  return st;
}

static tn_status run(ts *t, const char *target, const char *path) { return with(t, path, NULL, target, NULL); }

static double number_at(const tn_tensor *t, int64_t i)
{
  const void *data = tn_tensor_data(t);
  switch (tn_tensor_dtype(t)) {
  case TN_INT64: return (double)((const int64_t *)data)[i];
  case TN_INT32: return ((const int32_t *)data)[i];
  default: return (double)((const float *)data)[i];
  }
}

/* The fetched numbers as "[2,3] 1 2 3 4 5 6"; the status' name if there are none. */
static const char *load(ts *t, const char *fetch, const char *path)
{
  static char text[400];
  tn_tensor *out;
  tn_status st = with(t, path, fetch, NULL, &out);
  if (st != TN_OK) {
    CHECK_NULL(out);
    return tn_status_name(st);
  }
  size_t n = (size_t)snprintf(text, sizeof text, "[");
  for (int32_t d = 0; d < tn_tensor_rank(out); d++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld", d > 0 ? "," : "", (long long)tn_tensor_dims(out)[d]);
  n += (size_t)snprintf(text + n, sizeof text - n, "]");
  for (int64_t i = 0; i < tn_tensor_elements(out) && n < sizeof text - 40; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, " %g", number_at(out, i));
  tn_tensor_unref(out);
  return text;
}

/* The number of files of a folder whose names begin with `prefix`; -1: there is no such folder. */
static int count_files(const char *folder, const char *prefix)
{
  int n = 0;
  DIR *dir = opendir(folder);
  if (dir == NULL) return -1;
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    n += e->d_type != DT_DIR && strncmp(e->d_name, prefix, strlen(prefix)) == 0;
  closedir(dir);
  return n;
}

static void remove_files(const char *folder)
{
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) unlinkat(dirfd(dir), e->d_name, 0);
  if (dir != NULL) closedir(dir);
}

static void check_file_is_there(const char *path) { CHECK_MSG(access(path, F_OK) == 0, "%s exists", path); }

/* ---- version 2 ---- */

static void checkpoints__values_are_saved_and_restored(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out;
    const char *text, *prefix = tap_scratch_path("round%d/model", level);
    size_t n = 0;
    ops_open_text_in(&t, tap_scratch_dir(), VALUES WHOLE);
    CHECK_STR(load(&t, "load:3", prefix), "NOT_FOUND");
    REQUIRE_OK(run(&t, "save", prefix), &t.err);
    check_file_is_there(tap_scratch_path("round%d/model.index", level));
    check_file_is_there(tap_scratch_path("round%d/model.data-00000-of-00001", level));
    CHECK_INT(count_files(tap_scratch_path("round%d", level), ""), 2);
    CHECK_STR(load(&t, "load:3", prefix), "[2,3] 1 2 3 4 5 6");
    CHECK_STR(load(&t, "load:2", prefix), "[2] -7 9");
    CHECK_STR(load(&t, "load:0", prefix), "[0,3]");
    CHECK_STR(load(&t, "load_piece:0", prefix), "[1,2] 4 5");
    REQUIRE_OK(with(&t, prefix, "load:1", NULL, &out), &t.err);
    CHECK_OK(tn_tensor_get_string(out, 1, &text, &n, &t.err), &t.err);
    CHECK_INT(n, 47);
    CHECK(memcmp(text, "a text that is longer than fits into an element", 47) == 0);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

static void checkpoints__errors_name_the_tensor(void)
{
  ts t;
  const char *prefix = tap_scratch_path("errors");
  ops_open_text_in(&t, tap_scratch_dir(), VALUES WHOLE);
  REQUIRE_OK(run(&t, "save", prefix), &t.err);
  CHECK_STR(load(&t, "load_lost:0", prefix), "NOT_FOUND");
  CHECK_CONTAINS(tn_error_message(&t.err), "'dir/j' (did you mean 'dir/i'?)");
  CHECK_STR(load(&t, "load_int:0", prefix), "INVALID_ARGUMENT");
  CHECK_CONTAINS(tn_error_message(&t.err), "tensor 'f' of checkpoint");
  CHECK_CONTAINS(tn_error_message(&t.err), "has dtype float32, wanted int32");
  CHECK_STR(load(&t, "load_pair:0", prefix), "NOT_FOUND"); /* a missing one before one of another dtype */
  CHECK_STR(load(&t, "load_other:0", prefix), "INVALID_ARGUMENT");
  CHECK_CONTAINS(tn_error_message(&t.err), "has shape [2,3], but the specification '2 4 1,1:0,2' is for shape [2,4]");
  CHECK_STR(load(&t, "load_beyond:0", prefix), "INVALID_ARGUMENT");
  CHECK_STR(load(&t, "load_bad:0", prefix), "INVALID_ARGUMENT");
  CHECK_CONTAINS(tn_error_message(&t.err), "two by three");
  CHECK_STR(load(&t, "load_piece:0", tap_scratch_path("absent")), "NOT_FOUND");
  mkdir(tap_scratch_path("errors.folder"), 0777);
  CHECK_STR(load(&t, "load_piece:0", tap_scratch_path("errors.folder")), "DATA_LOSS");
  CHECK_STR(load(&t, "load_piece:0", ""), "INVALID_ARGUMENT");
  CHECK_STATUS(run(&t, "save", tap_scratch_path("no/such/folder/model")), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(run(&t, "save", tap_scratch_path("errors.index/model")), TN_FAILED_PRECONDITION, &t.err);
  CHECK_STATUS(run(&t, "save_wrong", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "is of a slice of shape [1,2], the value has shape [2,3]");
  CHECK_STATUS(run(&t, "save_count", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "4 names for 1 tensors");
  ts_fini(&t);
}

static void checkpoints__a_failed_save_leaves_the_former_one(void)
{
  ts t;
  const char *prefix = tap_scratch_path("kept/model");
  ops_open_text_in(&t, tap_scratch_dir(), VALUES WHOLE);
  REQUIRE_OK(run(&t, "save", prefix), &t.err);
  CHECK_STATUS(run(&t, "save_twice", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(run(&t, "save_wrong", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(load(&t, "load:3", prefix), "[2,3] 1 2 3 4 5 6");
  CHECK_INT(count_files(tap_scratch_path("kept"), ""), 2);
  for (int i = 0; i < 3; i++) {
    CHECK_OK(run(&t, "save", prefix), &t.err); /* replaces it */
    CHECK_STR(load(&t, "load:3", prefix), "[2,3] 1 2 3 4 5 6");
    CHECK_INT(count_files(tap_scratch_path("kept"), "."), 0);
    CHECK(count_files(tap_scratch_path("kept"), "") <= 3);
  }
  ts_fini(&t);
}

#define HALVES                                                                                                     \
  TEXTS("v", 1, "string_val: 'v'") TEXTS("vv", 2, "string_val: 'v' string_val: 'v'")                               \
  TEXTS("upper", 1, "string_val: '4 3 0,2:-'") TEXTS("lower", 1, "string_val: '4 3 2,2:-'")                        \
  TEXTS("halves", 2, "string_val: '4 3 0,2:-' string_val: '4 3 2,2:-'")                                            \
  TEXTS("middle", 1, "string_val: '4 3 1,2:1,2'") TEXTS("inside", 1, "string_val: '4 3 1,1:-'")                    \
  SAVE("save_both", "p", "vv", "halves", "input: 'f' input: 'f'", "type: DT_FLOAT type: DT_FLOAT")                 \
  SAVE("save_upper", "p", "v", "upper", "input: 'f'", "type: DT_FLOAT")                                            \
  SAVE("save_lower", "p", "v", "lower", "input: 'f'", "type: DT_FLOAT")                                            \
  RESTORE("load_v", "p", "v", "none1", "type: DT_FLOAT") RESTORE("load_middle", "p", "v", "middle", "type: DT_FLOAT") \
  RESTORE("load_inside", "p", "v", "inside", "type: DT_FLOAT")

static void checkpoints__slices_make_up_a_tensor(void)
{
  ts t;
  ops_open_text_in(&t, tap_scratch_dir(), VALUES HALVES);
  CHECK_STR(ops_shape_of(&t, "load_middle", 0), "[2,2]");
  CHECK_STR(ops_shape_of(&t, "load_v", 0), "?");
  REQUIRE_OK(run(&t, "save_both", tap_scratch_path("both")), &t.err);
  CHECK_STR(load(&t, "load_v:0", tap_scratch_path("both")), "[4,3] 1 2 3 4 5 6 1 2 3 4 5 6");
  CHECK_STR(load(&t, "load_middle:0", tap_scratch_path("both")), "[2,2] 5 6 2 3");
  REQUIRE_OK(run(&t, "save_upper", tap_scratch_path("upper")), &t.err);
  CHECK_STR(load(&t, "load_inside:0", tap_scratch_path("upper")), "[1,3] 4 5 6");
  CHECK_STR(load(&t, "load_middle:0", tap_scratch_path("upper")), "INVALID_ARGUMENT");
  CHECK_STR(load(&t, "load_v:0", tap_scratch_path("upper")), "INVALID_ARGUMENT");
  CHECK_CONTAINS(tn_error_message(&t.err), "the slices of tensor 'v' in checkpoint");
  ts_fini(&t);
}

/* ---- merging ---- */

#define SHARDS                                                                                                   \
  INTS("zero", "", "int_val: 0") INTS("one", "", "int_val: 1") INTS("two", "", "int_val: 2")                     \
  TENSOR("ending", "DT_STRING", "", "string_val: '_temp/part'")                                              \
  NODE("temp", "StringJoin", "input: 'p' input: 'ending'", INT("N", 2))                                      \
  NODE("first", "ShardedFilename", "input: 'temp' input: 'zero' input: 'two'", "")                               \
  NODE("second", "ShardedFilename", "input: 'temp' input: 'one' input: 'two'", "")                               \
  NODE("spec", "ShardedFilespec", "input: 'temp' input: 'two'", "")                                              \
  TEXTS("names0", 1, "string_val: 'f'") TEXTS("names1", 1, "string_val: 'i'")                                    \
  TEXTS("names01", 2, "string_val: 'f' string_val: 'i'")                                                         \
  SAVE("save0", "first", "names0", "none1", "input: 'f'", "type: DT_FLOAT")                                      \
  SAVE("save1", "second", "names1", "none1", "input: 'i'", "type: DT_INT64")                                     \
  NODE("parts", "Pack", "input: 'first' input: 'second'", TYPE("T", "DT_STRING") INT("N", 2))                    \
  NODE("itself", "Pack", "input: 'p'", TYPE("T", "DT_STRING") INT("N", 1))                                       \
  NODE("merge", "MergeV2Checkpoints", "input: 'parts' input: 'p'", "")                                           \
  NODE("merge_there", "MergeV2Checkpoints", "input: 'parts' input: 'p'",                                         \
       "attr { key: 'allow_missing_files' value { b: true } }")                                                  \
  NODE("merge_itself", "MergeV2Checkpoints", "input: 'itself' input: 'p'", "")                                   \
  RESTORE("load01", "p", "names01", "none2", "type: DT_FLOAT type: DT_INT64")                                    \
  RESTORE("load0", "p", "names0", "none1", "type: DT_FLOAT")

static void checkpoints__parts_are_merged(void)
{
  ts t;
  const char *prefix = tap_scratch_path("merged"), *text;
  size_t n;
  tn_tensor *name;
  ops_open_text_in(&t, tap_scratch_dir(), VALUES SHARDS);
  REQUIRE_OK(with(&t, "a", "second:0", NULL, &name), &t.err);
  CHECK_OK(tn_tensor_get_string(name, 0, &text, &n, NULL), NULL);
  CHECK_STR(text, "a_temp/part-00001-of-00002");
  tn_tensor_unref(name);
  REQUIRE_OK(with(&t, "a", "spec:0", NULL, &name), &t.err);
  CHECK_OK(tn_tensor_get_string(name, 0, &text, &n, NULL), NULL);
  CHECK_STR(text, "a_temp/part-?????" "-of-00002");
  tn_tensor_unref(name);
  CHECK_STATUS(run(&t, "merge", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "part-00000-of-00002' does not exist, and allow_missing_files is false");
  CHECK_STATUS(run(&t, "merge_there", prefix), TN_INVALID_ARGUMENT, &t.err);
  REQUIRE_OK(run(&t, "save0", prefix), &t.err);
  CHECK_STATUS(run(&t, "merge", prefix), TN_INVALID_ARGUMENT, &t.err);
  REQUIRE_OK(run(&t, "save1", prefix), &t.err);
  REQUIRE_OK(run(&t, "merge", prefix), &t.err);
  CHECK_INT(count_files(tap_scratch_path("merged_temp"), ""), -1);
  check_file_is_there(tap_scratch_path("merged.data-00001-of-00002"));
  CHECK_STR(load(&t, "load01:0", prefix), "[2,3] 1 2 3 4 5 6");
  CHECK_STR(load(&t, "load01:1", prefix), "[2] -7 9");
  CHECK_STATUS(run(&t, "merge_itself", prefix), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(load(&t, "load01:1", prefix), "[2] -7 9");
  ts_fini(&t);
}

static void checkpoints__missing_parts_may_be_left_out(void)
{
  ts t;
  const char *prefix = tap_scratch_path("half");
  ops_open_text_in(&t, tap_scratch_dir(), VALUES SHARDS);
  REQUIRE_OK(run(&t, "save0", prefix), &t.err);
  REQUIRE_OK(run(&t, "merge_there", prefix), &t.err);
  CHECK_STR(load(&t, "load0:0", prefix), "[2,3] 1 2 3 4 5 6");
  CHECK_STR(load(&t, "load01:0", prefix), "NOT_FOUND");
  ts_fini(&t);
}

/* ---- version 1 ---- */

#define OLD                                                                                                          \
  TEXTS("fi", 2, "string_val: 'f' string_val: 'i'") TEXTS("ff", 2, "string_val: 'f' string_val: 'f'")                \
  TENSOR("f_name", "DT_STRING", "", "string_val: 'f'") TENSOR("x_name", "DT_STRING", "", "string_val: 'x'")          \
  TEXTS("only_f", 1, "string_val: 'f'")                                                                              \
  TEXTS("rows", 2, "string_val: '4 3 0,2:-' string_val: '4 3 2,2:-'")                                                \
  TEXTS("row", 1, "string_val: '4 3 0,2:-'")                                                                         \
  TENSOR("cross", "DT_STRING", "", "string_val: '4 3 1,2:1,1'")                                                      \
  TENSOR("wrong", "DT_STRING", "", "string_val: '5 3 1,2:1,1'")                                                      \
  NODE("save", "Save", "input: 'p' input: 'fi' input: 'f' input: 'i'", TYPES("T", "type: DT_FLOAT type: DT_INT64"))  \
  NODE("save_twice", "Save", "input: 'p' input: 'ff' input: 'f' input: 'f'",                                         \
       TYPES("T", "type: DT_FLOAT type: DT_FLOAT"))                                                                  \
  NODE("save_count", "Save", "input: 'p' input: 'fi' input: 'f'", TYPES("T", "type: DT_FLOAT"))                      \
  NODE("save_rows", "SaveSlices", "input: 'p' input: 'ff' input: 'rows' input: 'f' input: 'f'",                      \
       TYPES("T", "type: DT_FLOAT type: DT_FLOAT"))                                                                  \
  NODE("save_row", "SaveSlices", "input: 'p' input: 'only_f' input: 'row' input: 'f'", TYPES("T", "type: DT_FLOAT")) \
  NODE("load", "Restore", "input: 'p' input: 'f_name'", TYPE("dt", "DT_FLOAT"))                                      \
  NODE("load_x", "Restore", "input: 'p' input: 'x_name'", TYPE("dt", "DT_FLOAT"))                                    \
  NODE("load_int", "Restore", "input: 'p' input: 'f_name'", TYPE("dt", "DT_INT32"))                                  \
  NODE("load_cross", "RestoreSlice", "input: 'p' input: 'f_name' input: 'cross'", TYPE("dt", "DT_FLOAT"))            \
  NODE("load_wrong", "RestoreSlice", "input: 'p' input: 'f_name' input: 'wrong'", TYPE("dt", "DT_FLOAT"))            \
  RESTORE("load2", "p", "fi", "none2", "type: DT_FLOAT type: DT_INT64")                                              \
  SAVE("save2", "p", "fi", "none2", "input: 'f' input: 'i'", "type: DT_FLOAT type: DT_INT64")

static void checkpoints__of_version_1_are_one_file(void)
{
  ts t;
  const char *path = tap_scratch_path("old.ckpt"), *rows = tap_scratch_path("rows.ckpt"),
             *row = tap_scratch_path("row.ckpt");
  ops_open_text_in(&t, tap_scratch_dir(), VALUES OLD);
  CHECK_STR(load(&t, "load:0", path), "NOT_FOUND");
  REQUIRE_OK(run(&t, "save", path), &t.err);
  CHECK_STR(load(&t, "load:0", path), "[2,3] 1 2 3 4 5 6");
  CHECK_STR(load(&t, "load2:1", path), "[2] -7 9");
  CHECK_STR(load(&t, "load_x:0", path), "NOT_FOUND");
  CHECK_STR(load(&t, "load_int:0", path), "INVALID_ARGUMENT");
  CHECK_STR(load(&t, "load_wrong:0", path), "INVALID_ARGUMENT");
  CHECK_STATUS(run(&t, "save_twice", path), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(run(&t, "save_count", path), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STR(load(&t, "load:0", path), "[2,3] 1 2 3 4 5 6");
  CHECK_STATUS(run(&t, "save", tap_scratch_dir()), TN_FAILED_PRECONDITION, &t.err);
  CHECK_STATUS(run(&t, "save", ""), TN_NOT_FOUND, &t.err);
  REQUIRE_OK(run(&t, "save_rows", rows), &t.err);
  CHECK_STR(load(&t, "load:0", rows), "[4,3] 1 2 3 4 5 6 1 2 3 4 5 6");
  CHECK_STR(load(&t, "load_cross:0", rows), "[2,1] 5 2");
  REQUIRE_OK(run(&t, "save_row", row), &t.err);
  CHECK_STR(load(&t, "load_cross:0", row), "INVALID_ARGUMENT");
  REQUIRE_OK(run(&t, "save2", tap_scratch_path("new")), &t.err);
  CHECK_STR(load(&t, "load:0", tap_scratch_path("new")), "NOT_FOUND"); /* Restore reads version 1 only */
  ts_fini(&t);
}

/* ---- other folders ---- */

/* S-CFG-25 */
static void checkpoints__are_kept_in_the_folders_of_the_session(void)
{
  ts t;
  const char *in = tap_scratch_path("mine"), *out = tap_scratch_path("theirs");
  mkdir(in, 0777);
  mkdir(out, 0777);
  ops_open_text_in(&t, tap_scratch_dir(), VALUES SHARDS WHOLE);
  REQUIRE_OK(run(&t, "save", tap_scratch_path("theirs/model")), &t.err);
  ts_fini(&t);

  ops_open_text_in(&t, in, VALUES SHARDS WHOLE);
  CHECK_STR(load(&t, "load_piece:0", tap_scratch_path("theirs/model")), "PERMISSION_DENIED");
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("theirs/model"));
  CHECK_CONTAINS(tn_error_message(&t.err), "option read_folders allows");
  CHECK_STATUS(run(&t, "save", tap_scratch_path("theirs/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(run(&t, "save", tap_scratch_path("mine/../theirs/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(run(&t, "save", in), TN_PERMISSION_DENIED, &t.err); /* its files would be beside the folder */
  CHECK_STATUS(run(&t, "save", tap_scratch_path("mine/")), TN_OK, &t.err);
  check_file_is_there(tap_scratch_path("mine/.index"));
  CHECK_STATUS(run(&t, "merge_itself", tap_scratch_path("theirs/model")), TN_PERMISSION_DENIED, &t.err);
  CHECK_INT(count_files(out, ""), 2);

  REQUIRE_OK(run(&t, "save", tap_scratch_path("mine/model")), &t.err);
  unlink(tap_scratch_path("mine/model.data-00000-of-00001"));
  REQUIRE_INT(
      symlink(tap_scratch_path("theirs/model.data-00000-of-00001"), tap_scratch_path("mine/model.data-00000-of-00001")),
      0);
  CHECK_STR(load(&t, "load_piece:0", tap_scratch_path("mine/model")), "PERMISSION_DENIED");
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("theirs/model.data-00000-of-00001"));
  CHECK_STATUS(run(&t, "save", tap_scratch_path("mine/model")), TN_PERMISSION_DENIED, &t.err);
  REQUIRE_INT(symlink("../theirs", tap_scratch_path("mine/link")), 0);
  CHECK_STR(load(&t, "load_piece:0", tap_scratch_path("mine/link/model")), "PERMISSION_DENIED");
  CHECK_STATUS(run(&t, "save", tap_scratch_path("mine/link/new")), TN_PERMISSION_DENIED, &t.err);
  ts_fini(&t);
}

/* S-CFG-25 */
static void checkpoints__can_be_read_without_being_writable(void)
{
  ts t;
  tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  mkdir(tap_scratch_path("fixed"), 0777);
  ops_open_text_in(&t, tap_scratch_dir(), VALUES WHOLE);
  REQUIRE_OK(run(&t, "save", tap_scratch_path("fixed/model")), &t.err);
  ts_fini(&t);
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_add_read_folder(t.options, tap_scratch_path("fixed"), &t.err), &t.err);
  REQUIRE_OK(tn_graph_import(t.graph, VALUES WHOLE, strlen(VALUES WHOLE), &import, &t.err), &t.err);
  ts_start(&t);
  CHECK_STR(load(&t, "load:2", tap_scratch_path("fixed/model")), "[2] -7 9");
  CHECK_STATUS(run(&t, "save", tap_scratch_path("fixed/model")), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the session option write_folders allows no folder");
  CHECK_STR(load(&t, "load:2", tap_scratch_path("fixed/model")), "[2] -7 9");
  ts_fini(&t);
}

static void checkpoints__a_folder_without_rights_is_left_alone(void)
{
  ts t;
  const char *folder = tap_scratch_path("locked");
  if (geteuid() == 0) TAP_SKIP("root may write everywhere");
  mkdir(folder, 0777);
  ops_open_text_in(&t, tap_scratch_dir(), VALUES WHOLE);
  REQUIRE_OK(run(&t, "save", tap_scratch_path("locked/model")), &t.err);
  chmod(folder, 0555);
  CHECK_STATUS(run(&t, "save", tap_scratch_path("locked/model")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(run(&t, "save", tap_scratch_path("locked/other")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STR(load(&t, "load:2", tap_scratch_path("locked/model")), "[2] -7 9");
  chmod(folder, 0777);
  CHECK_INT(count_files(folder, ""), 2);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define LIFE                                                                                                         \
  VALUES WHOLE                                                                                                       \
  NODE("same", "Identity", "input: 'p' input: '^save'", TYPE("T", "DT_STRING"))                                      \
  RESTORE("again", "same", "turned", "none4", "type: DT_FLOAT type: DT_STRING type: DT_INT64 type: DT_FLOAT")        \
  RESTORE("again_piece", "same", "only_f", "piece", "type: DT_FLOAT")

/* Saves into an empty folder, and loads in the same step. */
static tn_status save_and_load(void *arg)
{
  static const char *const name = "p", *const fetches[] = { "again:1", "again:3", "again_piece:0" };
  const char *path = tap_scratch_path("sweep/model");
  tn_tensor *feed = NULL, *out[3] = { NULL };
  tn_session *session;
  (void)arg;
  remove_files(tap_scratch_path("sweep"));
  tn_status st = ts_open_isolated(LIFE, &session);
  if (st == TN_OK) st = tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL);
  if (st == TN_OK) st = tn_session_run(session, NULL, &name, &feed, 1, fetches, out, 3, NULL, 0, NULL, NULL);
  tn_tensor_unref(feed);
  for (int k = 0; k < 3; k++) tn_tensor_unref(out[k]);
  tn_session_destroy(session);
  return st;
}

static tn_status save_old(void *arg)
{
  static const char *const name = "p", *const target = "save_rows", *const fetch = "load_cross:0";
  const char *path = tap_scratch_path("sweep.ckpt");
  tn_tensor *feed = NULL, *out = NULL;
  tn_session *session;
  (void)arg;
  tn_status st = ts_open_isolated(VALUES OLD, &session);
  if (st == TN_OK) st = tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL);
  if (st == TN_OK) st = tn_session_run(session, NULL, &name, &feed, 1, NULL, NULL, 0, &target, 1, NULL, NULL);
  if (st == TN_OK) st = tn_session_run(session, NULL, &name, &feed, 1, &fetch, &out, 1, NULL, 0, NULL, NULL);
  tn_tensor_unref(out);
  tn_tensor_unref(feed);
  tn_session_destroy(session);
  return st;
}

static void checkpoints__survive_every_failed_allocation(void)
{
  ts_register_ops();
  tn_test_oom_sweep(save_and_load, NULL);
  CHECK_INT(count_files(tap_scratch_path("sweep"), "."), 0);
  CHECK_INT(count_files(tap_scratch_path("sweep"), "model."), 2);
}

static void checkpoints__of_version_1_survive_every_failed_allocation(void)
{
  ts_register_ops();
  tn_test_oom_sweep(save_old, NULL);
}

TAP_MAIN(TAP_TEST(checkpoints__values_are_saved_and_restored), TAP_TEST(checkpoints__errors_name_the_tensor),
         TAP_TEST(checkpoints__a_failed_save_leaves_the_former_one), TAP_TEST(checkpoints__slices_make_up_a_tensor),
         TAP_TEST(checkpoints__parts_are_merged), TAP_TEST(checkpoints__missing_parts_may_be_left_out),
         TAP_TEST(checkpoints__of_version_1_are_one_file),
         TAP_TEST(checkpoints__are_kept_in_the_folders_of_the_session),
         TAP_TEST(checkpoints__can_be_read_without_being_writable),
         TAP_TEST(checkpoints__a_folder_without_rights_is_left_alone),
         TAP_TEST(checkpoints__survive_every_failed_allocation),
         TAP_TEST(checkpoints__of_version_1_survive_every_failed_allocation))
