/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a graph may use: the options read_folders and write_folders. */
#include "conformance/support/eager_kit.h"
#include "conformance/support/op_kit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES                                                                                      \
  ANY("path", "DT_STRING") TENSOR("text", "DT_STRING", "", "string_val: 'new'")                    \
  NODE("write", "WriteFile", "input: 'path' input: 'text'", "") NODE("read", "ReadFile", "input: 'path'", "")

static void put(const char *path)
{
  FILE *file = fopen(path, "w");
  REQUIRE_PTR(file);
  fputs("old", file);
  fclose(file);
}

/* A folder with a file; `in` is what the graph may use, `in2` has a name that begins with it. */
static void make_folders(void)
{
  static const char *const folders[] = { "in", "in/deep", "in2", "out" };
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    mkdir(tap_scratch_path("%s", folders[i]), 0777);
    put(tap_scratch_path("%s/file", folders[i]));
  }
}

static void open_with(ts *t, const char *read, const char *write)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  make_folders();
  ts_init(t, 1);
  if (read != NULL) REQUIRE_OK(tn_session_options_add_read_folder(t->options, read, &t->err), &t->err);
  if (write != NULL) REQUIRE_OK(tn_session_options_add_write_folder(t->options, write, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, FILES, strlen(FILES), &options, &t->err), &t->err);
  ts_start(t);
}

static tn_status use(ts *t, const char *path, const char *fetch, const char *target)
{
  static const char *const name = "path";
  tn_tensor *feed = NULL, *out = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL), NULL);
  tn_status st = tn_session_run(t->session, NULL, &name, &feed, 1, &fetch, &out, fetch != NULL, &target,
                                target != NULL, NULL, &t->err);
  tap_answered(st, &t->err);
  tn_tensor_unref(feed);
  tn_tensor_unref(out);
  return st;
}

static tn_status reading(ts *t, const char *path) { return use(t, path, "read:0", NULL); }
static tn_status writing(ts *t, const char *path) { return use(t, path, NULL, "write"); }

/* S-CFG-25 */
static void folders__without_them_a_graph_uses_no_file(void)
{
  ts t;
  open_with(&t, NULL, NULL);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("in/file"));
  CHECK_CONTAINS(tn_error_message(&t.err), "the session option read_folders allows no folder");
  CHECK_STATUS(reading(&t, tap_scratch_path("in/absent")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the session option write_folders allows no folder");
  CHECK_INT(access(tap_scratch_path("in/new"), F_OK), -1);
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__a_read_folder_is_read_only(void)
{
  ts t;
  open_with(&t, tap_scratch_path("in"), NULL);
  CHECK_OK(reading(&t, tap_scratch_path("in/file")), &t.err);
  CHECK_OK(reading(&t, tap_scratch_path("in/deep/file")), &t.err);
  CHECK_OK(reading(&t, tap_scratch_path("out/../in//./deep/../file")), &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/absent")), TN_NOT_FOUND, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("in2/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/../out/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("out/file"));
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("in'"));
  CHECK_STATUS(reading(&t, "/etc/passwd"), TN_PERMISSION_DENIED, &t.err);
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__a_write_folder_may_also_be_read(void)
{
  ts t;
  open_with(&t, NULL, tap_scratch_path("made/later"));
  CHECK_STATUS(writing(&t, tap_scratch_path("made/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_OK(writing(&t, tap_scratch_path("made/later/and/file")), &t.err);
  CHECK_OK(reading(&t, tap_scratch_path("made/later/and/file")), &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("made/later/../file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("made/later/none/../../../file")), TN_NOT_FOUND, &t.err);
  CHECK_INT(access(tap_scratch_path("made/file"), F_OK), -1);
  CHECK_INT(access(tap_scratch_path("file"), F_OK), -1);
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__links_do_not_lead_out(void)
{
  ts t;
  open_with(&t, NULL, tap_scratch_path("in"));
  REQUIRE_INT(symlink(tap_scratch_path("out/file"), tap_scratch_path("in/link")), 0);
  REQUIRE_INT(symlink("../out", tap_scratch_path("in/folder")), 0);
  REQUIRE_INT(symlink(tap_scratch_path("out/new"), tap_scratch_path("in/dangling")), 0);
  REQUIRE_INT(symlink("loop", tap_scratch_path("in/loop")), 0);
  REQUIRE_INT(symlink("deep/file", tap_scratch_path("in/inside")), 0);
  REQUIRE_INT(symlink(tap_scratch_path("in"), tap_scratch_path("out/back")), 0);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/link")), TN_PERMISSION_DENIED, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), tap_scratch_path("out/file"));
  CHECK_STATUS(reading(&t, tap_scratch_path("in/folder/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/folder/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/dangling")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("in/folder/none/new")), TN_PERMISSION_DENIED, &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/loop")), TN_INVALID_ARGUMENT, &t.err);
  CHECK_INT(access(tap_scratch_path("out/new"), F_OK), -1);
  CHECK_OK(reading(&t, tap_scratch_path("in/inside")), &t.err);
  CHECK_OK(reading(&t, tap_scratch_path("out/back/file")), &t.err);
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__a_single_file_can_be_allowed(void)
{
  ts t;
  open_with(&t, tap_scratch_path("in/file"), tap_scratch_path("out/new"));
  CHECK_OK(reading(&t, tap_scratch_path("in/file")), &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("in/deep/file")), TN_PERMISSION_DENIED, &t.err);
  CHECK_OK(writing(&t, tap_scratch_path("out/new")), &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("out/newer")), TN_PERMISSION_DENIED, &t.err);
  unlink(tap_scratch_path("out/new"));
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__a_star_allows_all_files(void)
{
  ts t;
  open_with(&t, "*", NULL);
  CHECK_OK(reading(&t, tap_scratch_path("out/file")), &t.err);
  CHECK_STATUS(writing(&t, tap_scratch_path("out/new")), TN_PERMISSION_DENIED, &t.err);
  ts_fini(&t);
  open_with(&t, NULL, "/");
  CHECK_OK(reading(&t, tap_scratch_path("out/file")), &t.err);
  CHECK_OK(writing(&t, tap_scratch_path("out/new")), &t.err);
  unlink(tap_scratch_path("out/new"));
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__the_options_are_lists(void)
{
  ts t;
  char text[1400];
  const char *item = NULL;
  make_folders();
  mkdir(tap_scratch_path("a,b"), 0777);
  put(tap_scratch_path("a,b/file"));
  ts_init(&t, 1);
  CHECK_STATUS(tn_session_options_add_read_folder(t.options, "", &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_options_add_write_folder(t.options, NULL, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "write_folders");
  CHECK_STATUS(tn_session_options_parse(t.options, "read_folders", "a,,b", &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "wanted a folder");
  snprintf(text, sizeof text, "%s,%s/a\\,b,%s", tap_scratch_path("in"), tap_scratch_dir(), tap_scratch_path("in"));
  CHECK_OK(tn_session_options_parse(t.options, "read_folders", text, &t.err), &t.err);
  CHECK_OK(tn_session_options_add_read_folder(t.options, tap_scratch_path("in"), &t.err), &t.err);
  CHECK_OK(tn_session_options_get_item(t.options, "read_folders", 1, &item, NULL, &t.err), &t.err);
  CHECK_STR(item, tap_scratch_path("a,b"));
  CHECK_INT(tn_session_options_get_item(t.options, "read_folders", 2, &item, NULL, NULL), TN_OUT_OF_RANGE);
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  REQUIRE_OK(tn_graph_import(t.graph, FILES, strlen(FILES), &options, &t.err), &t.err);
  ts_start(&t);
  CHECK_OK(reading(&t, tap_scratch_path("a,b/file")), &t.err);
  CHECK_OK(reading(&t, tap_scratch_path("in/file")), &t.err);
  CHECK_STATUS(reading(&t, tap_scratch_path("out/file")), TN_PERMISSION_DENIED, &t.err);
  ts_fini(&t);
}

/* S-CFG-25 */
static void folders__hold_in_partial_runs(void)
{
  static const char *const name = "path", *const fetch = "read:0";
  const char *path = tap_scratch_path("in/file");
  ts t;
  tn_partial_run run;
  tn_tensor *feed = NULL, *out = NULL;
  open_with(&t, tap_scratch_path("out"), NULL);
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL), NULL);
  REQUIRE_OK(tn_session_partial_setup(t.session, NULL, &name, 1, &fetch, 1, NULL, 0, &run, &t.err), &t.err);
  CHECK_STATUS(tn_session_partial_run(t.session, run, &name, &feed, 1, &fetch, &out, 1, &t.err), TN_PERMISSION_DENIED,
               &t.err);
  CHECK_NULL(out);
  tn_session_partial_release(t.session, run, NULL);
  tn_tensor_unref(feed);
  ts_fini(&t);
}

static tn_status read_eagerly(te *t, const char *path)
{
  tn_tensor *name = NULL;
  tn_eager_handle input, output;
  size_t made = 0;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &path, NULL, &name, NULL), NULL);
  REQUIRE_OK(tn_eager_from_tensor(t->session, name, &input, &t->err), &t->err);
  tn_tensor_unref(name);
  tn_status st = tn_eager_call(t->session, "ReadFile", NULL, 0, &input, 1, &output, 1, &made, &t->err);
  if (st == TN_OK) tn_eager_release(t->session, output, NULL);
  tn_eager_release(t->session, input, NULL);
  return st;
}

/* S-CFG-25 */
static void folders__hold_in_eager_sessions(void)
{
  te t;
  make_folders();
  FOR_RUNTIMES(r)
  {
    te_open(&t, r, TN_EAGER_ON_SAFE_POINTS);
    CHECK_STATUS(read_eagerly(&t, tap_scratch_path("in/file")), TN_PERMISSION_DENIED, &t.err);
    te_fini(&t);
    te_init(&t, r, TN_EAGER_ON_SAFE_POINTS);
    REQUIRE_OK(tn_session_options_add_read_folder(t.session_options, tap_scratch_path("in"), &t.err), &t.err);
    te_start(&t);
    CHECK_OK(read_eagerly(&t, tap_scratch_path("in/file")), &t.err);
    CHECK_STATUS(read_eagerly(&t, tap_scratch_path("out/file")), TN_PERMISSION_DENIED, &t.err);
    te_fini(&t);
  }
}

static tn_status open_and_read(void *arg)
{
  static const char *const name = "path", *const fetch = "read:0";
  tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  const char *path = arg;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *feed = NULL, *out = NULL;
  tn_status st = tn_graph_create(&graph, NULL);
  if (st == TN_OK) st = tn_graph_import(graph, FILES, strlen(FILES), &import, NULL);
  if (st == TN_OK) st = tn_session_options_create(&options, NULL);
  if (st == TN_OK) st = tn_session_options_set_target(options, ts_runtime(), NULL);
  if (st == TN_OK) st = tn_session_options_set_bool(options, "isolate_session_state", 1, NULL);
  if (st == TN_OK) st = tn_session_options_add_read_folder(options, tap_scratch_dir(), NULL);
  if (st == TN_OK) st = tn_session_options_add_write_folder(options, tap_scratch_dir(), NULL);
  if (st == TN_OK) st = tn_session_create(options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, graph, NULL);
  if (st == TN_OK) st = tn_tensor_from_strings(NULL, 0, &path, NULL, &feed, NULL);
  if (st == TN_OK) st = tn_session_run(session, NULL, &name, &feed, 1, &fetch, &out, 1, NULL, 0, NULL, NULL);
  tn_tensor_unref(feed);
  tn_tensor_unref(out);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return st;
}

static void folders__survive_every_failed_allocation(void)
{
  make_folders();
  ts_register_ops();
  tn_test_oom_sweep(open_and_read, (void *)tap_scratch_path("out/../in/file"));
}

TAP_MAIN(TAP_TEST(folders__without_them_a_graph_uses_no_file), TAP_TEST(folders__a_read_folder_is_read_only),
         TAP_TEST(folders__a_write_folder_may_also_be_read), TAP_TEST(folders__links_do_not_lead_out),
         TAP_TEST(folders__a_single_file_can_be_allowed), TAP_TEST(folders__a_star_allows_all_files),
         TAP_TEST(folders__the_options_are_lists), TAP_TEST(folders__hold_in_partial_runs),
         TAP_TEST(folders__hold_in_eager_sessions), TAP_TEST(folders__survive_every_failed_allocation))
