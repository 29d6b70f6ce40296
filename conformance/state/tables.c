/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as used by a program: filling, look-up, changes, sharing, threads, files, invalid
 * arguments, lack of memory. */
#include "conformance/support/op_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT(key, text) "attr { key: '" key "' value { s: '" text "' } }"
#define PAIR(k, v) TYPE(k, "DT_INT64") TYPE(v, "DT_STRING")

/* Keys are int64, values strings. */
#define OPERANDS ANY("k", "DT_INT64") ANY("v", "DT_STRING") ANY("d", "DT_STRING") ANY("p", "DT_STRING")
#define OPS                                                                                      \
  NODE("find", "LookupTableFindV2", "input: 'h' input: 'k' input: 'd'",                          \
       TYPE("Tin", "DT_INT64") TYPE("Tout", "DT_STRING"))                                        \
  NODE("size", "LookupTableSizeV2", "input: 'h'", "")                                            \
  NODE("init", "InitializeTableV2", "input: 'h' input: 'k' input: 'v'", PAIR("Tkey", "Tval"))    \
  NODE("insert", "LookupTableInsertV2", "input: 'h' input: 'k' input: 'v'", PAIR("Tin", "Tout")) \
  NODE("import", "LookupTableImportV2", "input: 'h' input: 'k' input: 'v'", PAIR("Tin", "Tout")) \
  NODE("remove", "LookupTableRemoveV2", "input: 'h' input: 'k'", TYPE("Tin", "DT_INT64"))        \
  NODE("export", "LookupTableExportV2", "input: 'h'", PAIR("Tkeys", "Tvalues"))                  \
  NODE("file", "InitializeTableFromTextFileV2", "input: 'h' input: 'p'", INT("key_index", -1) INT("value_index", -2))
#define GRAPH(op, attrs) NODE("h", op, "", PAIR("key_dtype", "value_dtype") attrs) OPERANDS OPS
#define FIXED GRAPH("HashTableV2", TEXT("shared_name", "fixed"))
#define MUTABLE GRAPH("MutableHashTableV2", TEXT("shared_name", "mutable"))
#define DENSE                                                                                                     \
  TENSOR("e", "DT_INT64", "", "int64_val: -1") TENSOR("x", "DT_INT64", "", "int64_val: -2")                       \
  NODE("h", "MutableDenseHashTableV2", "input: 'e' input: 'x'",                                                   \
       PAIR("key_dtype", "value_dtype") INT("initial_num_buckets", 8)) OPERANDS OPS

/* Containers belong to this session alone. folder: the graph may read its files; NULL: none. */
static void open_reading(ts *t, const char *text, const char *folder)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, 1);
  if (folder != NULL) REQUIRE_OK(tn_session_options_add_read_folder(t->options, folder, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_bool(t->options, "isolate_session_state", 1, &t->err), &t->err);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

static void open_alone(ts *t, const char *text) { open_reading(t, text, NULL); }

static tn_tensor *keys_of(size_t n, const int64_t *keys)
{
  tn_tensor *t;
  int64_t dims = (int64_t)n;
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, &dims, 1, keys, n * sizeof *keys, &t, NULL), NULL);
  return t;
}

static tn_tensor *texts_of(size_t n, const char *const *texts)
{
  tn_tensor *t;
  int64_t dims = (int64_t)n;
  REQUIRE_OK(tn_tensor_from_strings(&dims, 1, texts, NULL, &t, NULL), NULL);
  return t;
}

static tn_tensor *text_of(const char *text)
{
  tn_tensor *t;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &text, NULL, &t, NULL), NULL);
  return t;
}

/* Runs a target with keys and, if given, values. */
static tn_status put(ts *t, const char *target, size_t n, const int64_t *keys, const char *const *texts)
{
  static const char *const names[] = { "k", "v" };
  tn_tensor *feeds[2] = { keys_of(n, keys), texts == NULL ? NULL : texts_of(n, texts) };
  tn_status st = tn_session_run(t->session, NULL, names, feeds, texts == NULL ? 1 : 2, NULL, NULL, 0, &target, 1, NULL,
                                &t->err);
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return st;
}
#define KEYS(...) sizeof((int64_t[]){ __VA_ARGS__ }) / 8, (const int64_t[]){ __VA_ARGS__ }
#define TEXTS(...) ((const char *const[]){ __VA_ARGS__ })

/* The strings stored under the keys, with "?" for missing keys: "one,?,three". NULL on failure. */
static const char *find(ts *t, size_t n, const int64_t *keys)
{
  static char all[400];
  static const char *const names[] = { "k", "d" }, *const fetch = "find:0";
  tn_tensor *feeds[2] = { keys_of(n, keys), text_of("?") }, *out = NULL;
  size_t at = 0;
  tn_status st = tn_session_run(t->session, NULL, names, feeds, 2, &fetch, &out, 1, NULL, 0, NULL, &t->err);
  all[0] = 0;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    const char *text;
    size_t length;
    REQUIRE_OK(tn_tensor_get_string(out, (int64_t)i, &text, &length, NULL), NULL);
    at += (size_t)snprintf(all + at, sizeof all - at, "%s%.*s", i > 0 ? "," : "", (int)length, text);
  }
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  tn_tensor_unref(out);
  return st == TN_OK ? all : NULL;
}

static int64_t size_of(ts *t)
{
  static const char *const fetch = "size:0";
  tn_tensor *out = NULL;
  REQUIRE_OK(tn_session_run(t->session, NULL, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, NULL, &t->err), &t->err);
  int64_t n = *(const int64_t *)tn_tensor_data(out);
  tn_tensor_unref(out);
  return n;
}

/* ---- tables that are initialised once ---- */

static void tables__a_table_is_filled_once(void)
{
  ts t;
  open_alone(&t, FIXED);
  CHECK_INT(size_of(&t), 0);
  CHECK_NULL(find(&t, KEYS(1)));
  CHECK_INT(t.err.code, TN_FAILED_PRECONDITION);
  CHECK_CONTAINS(tn_error_message(&t.err), "'fixed' is not initialised");
  CHECK_OK(put(&t, "init", KEYS(1, 2, 3), TEXTS("one", "two", "a text that is longer than an element")), &t.err);
  CHECK_STR(find(&t, KEYS(3, 7, 1)), "a text that is longer than an element,?,one");
  /* as many keys as before: TensorFlow does not look further */
  CHECK_OK(put(&t, "init", KEYS(4, 5, 6), TEXTS("x", "y", "z")), &t.err);
  CHECK_STR(find(&t, KEYS(1, 4)), "one,?");
  CHECK_STATUS(put(&t, "init", KEYS(4), TEXTS("x")), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "with 3 keys before, it cannot be with 1");
  CHECK_STATUS(put(&t, "insert", KEYS(4), TEXTS("x")), TN_UNIMPLEMENTED, &t.err);
  CHECK_STATUS(put(&t, "remove", KEYS(1), NULL), TN_UNIMPLEMENTED, &t.err);
  CHECK_INT(size_of(&t), 3);
  ts_fini(&t);
}

static void tables__a_failed_initialisation_changes_nothing(void)
{
  ts t;
  open_alone(&t, FIXED);
  CHECK_STATUS(put(&t, "init", KEYS(8, 9, 8), TEXTS("a", "b", "c")), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "key 8 occurs twice");
  CHECK_INT(size_of(&t), 0);
  CHECK_OK(put(&t, "init", KEYS(8, 8), TEXTS("a", "a")), &t.err);
  CHECK_INT(size_of(&t), 1);
  CHECK_STR(find(&t, KEYS(8, 9)), "a,?");
  ts_fini(&t);
}

/* ---- tables that change ---- */

static void tables__keys_are_inserted_and_removed(void)
{
  ts t;
  open_alone(&t, MUTABLE);
  CHECK_STR(find(&t, KEYS(1)), "?");
  CHECK_OK(put(&t, "insert", KEYS(1, 2, 2), TEXTS("one", "two", "second two")), &t.err);
  CHECK_STR(find(&t, KEYS(2, 1)), "second two,one");
  CHECK_OK(put(&t, "remove", KEYS(1, 99), NULL), &t.err);
  CHECK_STR(find(&t, KEYS(2, 1)), "second two,?");
  CHECK_OK(put(&t, "import", KEYS(5), TEXTS("five")), &t.err);
  CHECK_STR(find(&t, KEYS(2, 5)), "?,five");
  CHECK_INT(size_of(&t), 1);
  CHECK_STATUS(put(&t, "init", KEYS(1), TEXTS("x")), TN_INVALID_ARGUMENT, &t.err);
  ts_fini(&t);
}

static void tables__reserved_keys_of_a_dense_table_are_refused(void)
{
  ts t;
  open_alone(&t, DENSE);
  CHECK_STATUS(put(&t, "insert", KEYS(5, -1), TEXTS("five", "x")), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the table's empty key");
  CHECK_INT(size_of(&t), 0); /* a rejected insertion inserts nothing */
  CHECK_STATUS(put(&t, "remove", KEYS(-2), NULL), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the table's deleted key");
  CHECK_OK(put(&t, "insert", KEYS(5, 6), TEXTS("five", "six")), &t.err);
  CHECK_OK(put(&t, "remove", KEYS(5), NULL), &t.err);
  CHECK_STR(find(&t, KEYS(5, 6)), "?,six");
  ts_fini(&t);
}

/* At most 0.8 of 8 buckets are used, so nine keys need 16 buckets. An exported table can be
 * imported. */
static void tables__a_dense_table_is_exported_with_its_free_buckets(void)
{
  static const char *const fetch[] = { "export:0", "export:1" }, *const names[] = { "k", "v" },
                           *const import = "import";
  ts t;
  tn_tensor *out[2];
  open_alone(&t, DENSE);
  CHECK_OK(put(&t, "insert", KEYS(1, 2, 3, 4, 5, 6, 7, 8, 9), TEXTS("a", "b", "c", "d", "e", "f", "g", "h", "i")),
           &t.err);
  REQUIRE_OK(tn_session_run(t.session, NULL, NULL, NULL, 0, fetch, out, 2, NULL, 0, NULL, &t.err), &t.err);
  CHECK_INT(tn_tensor_rank(out[0]), 2);
  CHECK_INT(tn_tensor_dims(out[0])[0], 16);
  CHECK_OK(put(&t, "remove", KEYS(1, 2, 3), NULL), &t.err);
  CHECK_OK(tn_session_run(t.session, NULL, names, out, 2, NULL, NULL, 0, &import, 1, NULL, &t.err), &t.err);
  CHECK_INT(size_of(&t), 9);
  CHECK_STR(find(&t, KEYS(1, 9, 10)), "a,i,?");
  tn_tensor_unref(out[0]);
  tn_tensor_unref(out[1]);
  ts_fini(&t);
}

/* ---- mismatched arguments ---- */

static void tables__bad_operands_are_named(void)
{
  static const char *const names[] = { "k", "v" }, *const insert = "insert";
  ts t;
  open_alone(&t, MUTABLE);
  tn_tensor *feeds[2] = { keys_of(KEYS(1, 2)), texts_of(1, TEXTS("x")) };
  CHECK_STATUS(tn_session_run(t.session, NULL, names, feeds, 2, NULL, NULL, 0, &insert, 1, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "'mutable': values have shape [1], wanted [2]");
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  ts_fini(&t);

  open_alone(&t, GRAPH("MutableHashTableV2", TEXT("shared_name", "mutable"))
             ANY("w", "DT_INT32") NODE("wrong", "LookupTableRemoveV2", "input: 'h' input: 'w'", TYPE("Tin", "DT_INT32"))
             NODE("other", "MutableHashTableV2", "", TYPE("key_dtype", "DT_STRING") TYPE("value_dtype", "DT_STRING")
                  TEXT("shared_name", "mutable")) NODE("others", "LookupTableSizeV2", "input: 'other'", ""));
  static const char *const w = "w", *const wrong = "wrong", *const others = "others:0";
  tn_tensor *int32s, *out = NULL;
  const int64_t one = 1;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &one, 1, (int32_t[]){ 1 }, 4, &int32s, &t.err), &t.err);
  CHECK_STATUS(tn_session_run(t.session, NULL, &w, &int32s, 1, NULL, NULL, 0, &wrong, 1, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "maps int64 to string, the node has keys of int32");
  CHECK_STATUS(tn_session_run(t.session, NULL, NULL, NULL, 0, &others, &out, 1, NULL, 0, NULL, &t.err),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "the node wants one from string to string");
  tn_tensor_unref(int32s);
  ts_fini(&t);
}

/* ---- sharing ---- */

static void tables__sessions_share_a_table_by_its_name(void) /* S-RST-18 */
{
  ts a, b;
  ops_open_text(&a, GRAPH("MutableHashTableV2", TEXT("shared_name", "of two sessions")));
  ops_open_text(&b, GRAPH("MutableHashTableV2", TEXT("shared_name", "of two sessions")));
  CHECK_OK(put(&a, "insert", KEYS(1), TEXTS("from a")), &a.err);
  CHECK_STR(find(&b, KEYS(1)), "from a");
  ts_fini(&a);
  CHECK_STR(find(&b, KEYS(1)), "from a");
  ts_fini(&b);
}

static void tables__both_versions_of_a_handle_are_one_table(void)
{
  static const char *const fetch = "size1:0";
  ts t;
  tn_tensor *out;
  open_alone(&t, FIXED NODE("h1", "HashTable", "", PAIR("key_dtype", "value_dtype") TEXT("shared_name", "fixed"))
             NODE("size1", "LookupTableSize", "input: 'h1'", ""));
  CHECK_OK(put(&t, "init", KEYS(1, 2), TEXTS("one", "two")), &t.err);
  REQUIRE_OK(tn_session_run(t.session, NULL, NULL, NULL, 0, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
  CHECK_INT(*(const int64_t *)tn_tensor_data(out), 2);
  tn_tensor_unref(out);
  ts_fini(&t);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS 300

typedef struct worker {
  ts *t;
  int number;
  int bad;
} worker;

/* Puts its own keys and one shared key; a value read must have been written by one of the threads. */
static void *work(void *arg)
{
  static const char *const names[] = { "k", "v" }, *const insert = "insert", *const feeds2[] = { "k", "d" };
  static const char *const fetch = "find:0";
  worker *w = arg;
  char text[40];
  for (int i = 0; i < ROUNDS; i++) {
    int64_t keys[2] = { 0, w->number * ROUNDS + i + 1 };
    const char *texts[2] = { text, text };
    snprintf(text, sizeof text, "thread %d wrote this", w->number);
    tn_tensor *feeds[2] = { keys_of(2, keys), texts_of(2, texts) }, *otherwise = text_of("?"), *out = NULL;
    tn_tensor *more[2] = { feeds[0], otherwise };
    if (tn_session_run(w->t->session, NULL, names, feeds, 2, NULL, NULL, 0, &insert, 1, NULL, NULL) != TN_OK) w->bad++;
    if (tn_session_run(w->t->session, NULL, feeds2, more, 2, &fetch, &out, 1, NULL, 0, NULL, NULL) != TN_OK) w->bad++;
    const char *found = "";
    size_t n = 0;
    if (out != NULL) tn_tensor_get_string(out, 0, &found, &n, NULL);
    w->bad += n != 19 || memcmp(found, "thread ", 7) != 0 || memcmp(found + 8, " wrote this", 11) != 0;
    if (out != NULL) tn_tensor_get_string(out, 1, &found, &n, NULL);
    w->bad += n != 19 || memcmp(found, text, n) != 0;
    tn_tensor_unref(feeds[0]);
    tn_tensor_unref(feeds[1]);
    tn_tensor_unref(otherwise);
    tn_tensor_unref(out);
  }
  return NULL;
}

static void tables__steps_side_by_side_change_one_table(void) /* S-EXE-23 */
{
  ts t;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  open_alone(&t, MUTABLE);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){ &t, i, 0 };
    REQUIRE_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK_INT(workers[i].bad, 0);
  }
  CHECK_INT(size_of(&t), THREADS * ROUNDS + 1);
  ts_fini(&t);
}

/* Each thread initialises both keys with its own text. */
static void *fill(void *arg)
{
  static const char *const names[] = { "k", "v" }, *const target = "init";
  worker *w = arg;
  char text[40];
  const char *texts[2] = { text, text };
  snprintf(text, sizeof text, "filled by %d", w->number);
  tn_tensor *feeds[2] = { keys_of(KEYS(1, 2)), texts_of(2, texts) };
  if (tn_session_run(w->t->session, NULL, names, feeds, 2, NULL, NULL, 0, &target, 1, NULL, NULL) != TN_OK) w->bad++;
  tn_tensor_unref(feeds[0]);
  tn_tensor_unref(feeds[1]);
  return NULL;
}

static void tables__of_several_initialisations_one_wins(void)
{
  for (int round = 0; round < 20; round++) {
    ts t;
    pthread_t threads[THREADS];
    worker workers[THREADS];
    open_alone(&t, FIXED);
    for (int i = 0; i < THREADS; i++) {
      workers[i] = (worker){ &t, i, 0 };
      REQUIRE_INT(pthread_create(&threads[i], NULL, fill, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      CHECK_INT(workers[i].bad, 0);
    }
    const char *found = find(&t, KEYS(1, 2));
    REQUIRE_PTR(found);
    CHECK_INT(strlen(found), 23); /* "filled by 0,filled by 0" */
    CHECK(memcmp(found, found + 12, 11) == 0);
    ts_fini(&t);
  }
}

/* ---- files ---- */

static tn_status init_from(ts *t, const char *path)
{
  static const char *const name = "p", *const target = "file";
  tn_tensor *p = text_of(path);
  tn_status st = tn_session_run(t->session, NULL, &name, &p, 1, NULL, NULL, 0, &target, 1, NULL, &t->err);
  tn_tensor_unref(p);
  return st;
}

static void write_lines(const char *path, const char *text)
{
  FILE *f = fopen(path, "w");
  REQUIRE(f != NULL);
  fputs(text, f);
  fclose(f);
}

static void tables__a_file_fills_a_table(void)
{
  char folder[] = "/tmp/tenon-tables-XXXXXX", path[80];
  ts t;
  REQUIRE(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/words", folder);
  open_reading(&t, FIXED, folder);
  CHECK_STATUS(init_from(&t, path), TN_NOT_FOUND, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), path);
  CHECK_STATUS(init_from(&t, folder), TN_FAILED_PRECONDITION, &t.err);
  CHECK_STATUS(init_from(&t, ""), TN_INVALID_ARGUMENT, &t.err);
  write_lines(path, "zero\n\ntwo\n");
  CHECK_STATUS(init_from(&t, path), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "line 1, at byte 5, is empty");
  CHECK_INT(size_of(&t), 0);
  write_lines(path, "zero\none\r\ntwo");
  CHECK_OK(init_from(&t, path), &t.err);
  CHECK_STR(find(&t, KEYS(2, 1, 0, 3)), "two,one,zero,?");
  write_lines(path, "other\n");
  CHECK_OK(init_from(&t, path), &t.err); /* it was already initialised */
  CHECK_INT(size_of(&t), 3);
  unlink(path);
  rmdir(folder);
  ts_fini(&t);
}

/* ---- lack of memory ---- */

#define LONG1 "a value that is longer than fits into an element"
#define LONG2 "another value that is longer than fits into an element"
#define ANONYMOUS                                                                                                 \
  TENSOR("k", "DT_STRING", D(2), "string_val: 'short' string_val: 'a key that is longer than fits'")              \
  TENSOR("v", "DT_STRING", D(2), "string_val: '" LONG1 "' string_val: '" LONG2 "'")                               \
  TENSOR("d", "DT_STRING", "", "string_val: 'none'")                                                              \
  NODE("h", "AnonymousMutableHashTable", "", TYPE("key_dtype", "DT_STRING") TYPE("value_dtype", "DT_STRING"))     \
  NODE("insert", "LookupTableInsertV2", "input: 'h' input: 'k' input: 'v'", STRINGS("Tin", "Tout"))               \
  NODE("import", "LookupTableImportV2", "input: 'h' input: 'k' input: 'v' input: '^insert'", STRINGS("Tin", "Tout")) \
  NODE("find", "LookupTableFindV2", "input: 'h' input: 'k' input: 'd' input: '^import'", STRINGS("Tin", "Tout"))  \
  NODE("export", "LookupTableExportV2", "input: 'h' input: '^find'", STRINGS("Tkeys", "Tvalues"))                 \
  NODE("remove", "LookupTableRemoveV2", "input: 'h' input: 'k' input: '^export'", TYPE("Tin", "DT_STRING"))       \
  NODE("f", "AnonymousHashTable", "", TYPE("key_dtype", "DT_STRING") TYPE("value_dtype", "DT_STRING"))            \
  NODE("init", "InitializeTableV2", "input: 'f' input: 'k' input: 'v'", STRINGS("Tkey", "Tval"))
#define STRINGS(k, v) TYPE(k, "DT_STRING") TYPE(v, "DT_STRING")

/* One step that creates tables and runs all their operations. */
static tn_status compile_and_run(void *arg)
{
  static const char *const fetches[] = { "find:0", "export:1" }, *const targets[] = { "remove", "init" };
  ts *t = arg;
  tn_callable callable;
  tn_tensor *out[2] = { NULL };
  tn_status st = tn_session_make_callable(t->session, NULL, NULL, 0, fetches, 2, targets, 2, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(t->session, callable, NULL, 0, out, 2, NULL, NULL);
  for (int k = 0; k < 2; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(t->session, callable, NULL);
  return st;
}

static void tables__without_memory_nothing_is_left(void)
{
  ts t;
  open_alone(&t, ANONYMOUS);
  REQUIRE_INT(compile_and_run(&t), TN_OK);
  tn_test_oom_sweep(compile_and_run, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(tables__a_table_is_filled_once),
  TAP_TEST(tables__a_failed_initialisation_changes_nothing),
  TAP_TEST(tables__keys_are_inserted_and_removed),
  TAP_TEST(tables__reserved_keys_of_a_dense_table_are_refused),
  TAP_TEST(tables__a_dense_table_is_exported_with_its_free_buckets),
  TAP_TEST(tables__bad_operands_are_named),
  TAP_TEST(tables__sessions_share_a_table_by_its_name),
  TAP_TEST(tables__both_versions_of_a_handle_are_one_table),
  TAP_TEST(tables__steps_side_by_side_change_one_table),
  TAP_TEST(tables__of_several_initialisations_one_wins),
  TAP_TEST(tables__a_file_fills_a_table),
  TAP_TEST(tables__without_memory_nothing_is_left))
