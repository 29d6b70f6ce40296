/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints through the public calls: opening, entries, reading, paths, saving, the newest one. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/tenon.h>

#include "conformance/support/oom.h"

#define GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

static tn_error err;

static const char *folder(const char *name)
{
  const char *path = tap_scratch_path("%s", name);
  REQUIRE_INT(mkdir(path, 0777), 0);
  return path;
}

/* ---- tensors ---- */

static const float floats[] = { 1, 2, 3, 4, 5, 6 };
static const int64_t numbers[] = { 7, 8 };

static tn_tensor *float_tensor(void)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, (const int64_t[]){ 2, 3 }, 2, floats, sizeof floats, &t, &err), &err);
  return t;
}

static tn_tensor *int_tensor(void)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT64, (const int64_t[]){ 2 }, 1, numbers, sizeof numbers, &t, &err), &err);
  return t;
}

static tn_tensor *text_tensor(const char *text, size_t size)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_strings(NULL, 0, &text, &size, &t, &err), &err);
  return t;
}

static void save(const char *prefix, const char *const *keys, tn_tensor *const *tensors, size_t n,
                 const tn_checkpoint_options *options)
{
  tn_error_clear(&err);
  REQUIRE_OK(tn_checkpoint_save(prefix, keys, tensors, n, options, &err), &err);
}

/* Three tensors: "a/floats", "b/numbers", "c/text". */
static void save_three(const char *prefix, const tn_checkpoint_options *options)
{
  static const char *const keys[] = { "c/text", "a/floats", "b/numbers" };
  tn_tensor *tensors[] = { text_tensor("two words", 9), float_tensor(), int_tensor() };
  save(prefix, keys, tensors, 3, options);
  for (int i = 0; i < 3; i++) tn_tensor_unref(tensors[i]);
}

static tn_checkpoint *open_checkpoint(const char *path)
{
  tn_checkpoint *c = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn_checkpoint_open(path, &c, &err), &err);
  REQUIRE_PTR(c);
  return c;
}

static void check_floats(tn_tensor *t)
{
  REQUIRE_PTR(t);
  CHECK_INT(tn_tensor_dtype(t), TN_FLOAT);
  REQUIRE_INT(tn_tensor_bytes(t), sizeof floats);
  CHECK_BYTES(tn_tensor_data(t), floats, sizeof floats);
}

/* ---- opening ---- */

static void checkpoint__opens_a_prefix_an_index_or_a_folder(void)
{
  const char *in = folder("open");
  char prefix[300], index[310];
  snprintf(prefix, sizeof prefix, "%s/ckpt-1", in);
  snprintf(index, sizeof index, "%s.index", prefix);
  save_three(prefix, &(tn_checkpoint_options){ .struct_size = sizeof(tn_checkpoint_options), .update_state = 1 });
  const char *const paths[] = { prefix, index, in };
  for (int i = 0; i < 3; i++) {
    tn_checkpoint *c = open_checkpoint(paths[i]);
    CHECK_INT(tn_checkpoint_version(c), 2);
    CHECK_INT(tn_checkpoint_count(c), 3);
    CHECK_STR(tn_checkpoint_prefix(c), prefix);
    tn_checkpoint_close(c);
  }
}

static void check_not_opened(const char *path, tn_status status, const char *why)
{
  tn_checkpoint *c = (tn_checkpoint *)&err;
  tn_error_clear(&err);
  CHECK_STATUS(tn_checkpoint_open(path, &c, &err), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), why);
  CHECK_NULL(c);
}

static void checkpoint__what_is_no_checkpoint_is_not_opened(void)
{
  check_not_opened(tap_scratch_path("nothing"), TN_NOT_FOUND, "nothing'");
  check_not_opened(folder("empty"), TN_NOT_FOUND, "empty");
  check_not_opened(NULL, TN_INVALID_ARGUMENT, "path is NULL");
  CHECK_STATUS(tn_checkpoint_open("x", NULL, NULL), TN_INVALID_ARGUMENT, NULL);
  tn_checkpoint_close(NULL);
}

/* ---- entries ---- */

static void checkpoint__entries_are_in_the_order_of_their_keys(void)
{
  static const struct {
    const char *key;
    tn_dtype dtype;
    int32_t rank;
    uint64_t bytes;
  } wanted[] = { { "a/floats", TN_FLOAT, 2, sizeof floats },
                 { "b/numbers", TN_INT64, 1, sizeof numbers },
                 { "c/text", TN_STRING, 0, 1 + 4 + 9 } };
  save_three(tap_scratch_path("entries"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("entries"));
  REQUIRE_INT(tn_checkpoint_count(c), 3);
  for (size_t i = 0; i < 3; i++) {
    tn_checkpoint_entry at = { .struct_size = sizeof at }, found = { .struct_size = sizeof found };
    CHECK_OK(tn_checkpoint_at(c, i, &at, &err), &err);
    CHECK_STR(at.key, wanted[i].key);
    CHECK_OK(tn_checkpoint_find(c, wanted[i].key, &found, &err), &err);
    CHECK_STR(found.key, wanted[i].key);
    CHECK_INT(found.n_slices, 0);
    CHECK_INT(found.dtype, wanted[i].dtype);
    CHECK_INT(found.rank, wanted[i].rank);
    CHECK_INT(found.bytes, wanted[i].bytes);
    if (i == 0) CHECK_INT(found.dims[1], 3);
  }
  tn_checkpoint_entry e = { .struct_size = sizeof e };
  CHECK_STATUS(tn_checkpoint_at(c, 3, &e, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "tensor 3 requested from '");
  e.struct_size = 0;
  CHECK_STATUS(tn_checkpoint_at(c, 0, &e, NULL), TN_INVALID_ARGUMENT, NULL);
  tn_checkpoint_close(c);
}

/* A program that was compiled with an older header has a shorter struct. */
static void checkpoint__a_shorter_entry_is_not_overrun(void)
{
  tn_checkpoint_entry e;
  save_three(tap_scratch_path("short"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("short"));
  memset(&e, 0x55, sizeof e);
  e.struct_size = TN_SIZE_TO(tn_checkpoint_entry, key);
  CHECK_OK(tn_checkpoint_at(c, 0, &e, &err), &err);
  CHECK_STR(e.key, "a/floats");
  CHECK_INT(e.rank, 0x55555555);
  tn_checkpoint_close(c);
}

static void checkpoint__an_unknown_key_names_the_nearest_one(void)
{
  save_three(tap_scratch_path("near"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("near"));
  tn_checkpoint_entry e = { .struct_size = sizeof e };
  tn_tensor *t = (tn_tensor *)&err;
  CHECK_STATUS(tn_checkpoint_find(c, "a/float", &e, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'a/floats'");
  CHECK_STATUS(tn_checkpoint_read(c, "b/numbrs", &t, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'b/numbers'");
  CHECK_NULL(t);
  tn_checkpoint_close(c);
}

/* ---- reading ---- */

static void checkpoint__tensors_outlive_the_checkpoint(void)
{
  tn_tensor *t = NULL;
  save_three(tap_scratch_path("outlive"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("outlive"));
  REQUIRE_OK(tn_checkpoint_read(c, "a/floats", &t, &err), &err);
  tn_checkpoint_close(c);
  check_floats(t);
  tn_tensor_unref(t);
}

static void checkpoint__reads_many_or_none(void)
{
  static const char *const keys[] = { "c/text", "a/floats", "c/text" }, *const wrong[] = { "a/floats", "a/x" };
  tn_tensor *t[3] = { NULL };
  const char *text;
  size_t size;
  save_three(tap_scratch_path("many"),
             &(tn_checkpoint_options){ .struct_size = sizeof(tn_checkpoint_options), .shards = 2 });
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("many"));
  REQUIRE_OK(tn_checkpoint_read_many(c, keys, 3, t, &err), &err);
  check_floats(t[1]);
  for (int i = 0; i < 3; i += 2) {
    REQUIRE_OK(tn_tensor_get_string(t[i], 0, &text, &size, &err), &err);
    CHECK_INT(size, 9);
    CHECK_STR(text, "two words");
  }
  for (int i = 0; i < 3; i++) tn_tensor_unref(t[i]);
  t[0] = t[1] = (tn_tensor *)&err;
  CHECK_STATUS(tn_checkpoint_read_many(c, wrong, 2, t, &err), TN_NOT_FOUND, NULL);
  CHECK_NULL(t[0]);
  CHECK_NULL(t[1]);
  CHECK_OK(tn_checkpoint_read_many(c, NULL, 0, NULL, &err), &err);
  tn_checkpoint_close(c);
}

static void checkpoint__a_missing_data_file_is_named(void)
{
  tn_tensor *t = NULL;
  char data[320];
  save_three(tap_scratch_path("gone"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("gone"));
  snprintf(data, sizeof data, "%s.data-00000-of-00001", tap_scratch_path("gone"));
  REQUIRE_INT(unlink(data), 0);
  CHECK_STATUS(tn_checkpoint_read(c, "a/floats", &t, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "gone.data-00000-of-00001");
  tn_checkpoint_close(c);
}

/* ---- object graphs ---- */

/* Appends a field of bytes. */
static size_t put_field(unsigned char *to, unsigned field, const void *bytes, size_t size)
{
  to[0] = (unsigned char)(field << 3 | 2);
  to[1] = (unsigned char)size;
  memcpy(to + 2, bytes, size);
  return size + 2;
}

static size_t put_child(unsigned char *to, unsigned node, const char *name)
{
  unsigned char child[100] = { 1 << 3, (unsigned char)node };
  return put_field(to, 1, child, 2 + put_field(child + 2, 2, name, strlen(name)));
}

static size_t put_attribute(unsigned char *to, const char *name, const char *full_name, const char *key)
{
  unsigned char a[100];
  size_t n = put_field(a, 1, name, strlen(name));
  n += put_field(a + n, 2, full_name, strlen(full_name));
  n += put_field(a + n, 3, key, strlen(key));
  return put_field(to, 2, a, n);
}

static size_t put_slot(unsigned char *to, unsigned variable, const char *name, unsigned node)
{
  unsigned char slot[100] = { 1 << 3, (unsigned char)variable };
  size_t n = 2 + put_field(slot + 2, 2, name, strlen(name));
  slot[n++] = 3 << 3;
  slot[n++] = (unsigned char)node;
  return put_field(to, 3, slot, n);
}

/* A root with "model", which names itself "me" and has a variable and a table, and an optimizer with a slot. */
static size_t graph_bytes(unsigned char *to, unsigned slot_node)
{
  unsigned char node[200];
  size_t n = put_child(node, 1, "model"), size;
  n += put_child(node + n, 4, "sgd");
  size = put_field(to, 1, node, n);
  n = put_child(node, 1, "me");
  n += put_child(node + n, 2, "w/raw");
  n += put_child(node + n, 3, "table");
  size += put_field(to + size, 1, node, n);
  size += put_field(to + size, 1, node, put_attribute(node, "VARIABLE_VALUE", "dense/w", "model/w"));
  size += put_field(to + size, 1, node, put_attribute(node, "table", "", "model/table"));
  size += put_field(to + size, 1, node, put_slot(node, 2, "momentum", slot_node));
  size += put_field(to + size, 1, node, put_attribute(node, "VARIABLE_VALUE", "", "slot"));
  return size;
}

static void save_objects(const char *prefix, unsigned slot_node)
{
  static const char *const keys[] = { "model/w", "model/table-keys", "model/table-values", "slot", GRAPH_KEY };
  unsigned char message[1000];
  size_t size = graph_bytes(message, slot_node);
  tn_tensor *t[] = { float_tensor(), int_tensor(), int_tensor(), float_tensor(),
                     text_tensor((const char *)message, size) };
  save(prefix, keys, t, 5, NULL);
  for (int i = 0; i < 5; i++) tn_tensor_unref(t[i]);
}

static void checkpoint__paths_lead_to_keys(void)
{
  static const struct {
    const char *path, *key;
  } paths[] = { { "model/w%2Fraw", "model/w" },
                { "model/me/me/w%2Fraw", "model/w" },
                { "model/table:table-keys", "model/table-keys" },
                { "model/me/table:table-values", "model/table-values" },
                { "sgd:momentum(model/w%2Fraw)", "slot" } };
  const char *key;
  save_objects(tap_scratch_path("objects"), 5);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("objects"));
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    CHECK_OK(tn_checkpoint_resolve(c, paths[i].path, &key, &err), &err);
    CHECK_STR(key, paths[i].key);
  }
  CHECK_STATUS(tn_checkpoint_resolve(c, "model/w", &key, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'model' has no 'w'; it has ");
  CHECK_NULL(key);
  CHECK_STATUS(tn_checkpoint_resolve(c, "model/table:table", &key, &err), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_cause(&err, 0), "'model/table:table-keys' and 'model/table:table-values'");
  tn_checkpoint_close(c);
}

static void checkpoint__lists_paths(void)
{
  const char *path, *key, *again;
  size_t of_w = 0, of_keys = 0, of_slot = 0;
  save_objects(tap_scratch_path("list"), 5);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("list"));
  size_t n = tn_checkpoint_path_count(c);
  for (size_t i = 0; i < n; i++) {
    REQUIRE_OK(tn_checkpoint_path_at(c, i, &path, &key, &err), &err);
    if (i == 0) CHECK_STR(path, "model/table:table-keys");
    if (i == 2) CHECK_STR(path, "model/w%2Fraw");
    REQUIRE_OK(tn_checkpoint_resolve(c, path, &again, &err), &err);
    CHECK_STR(again, key);
    of_w += strcmp(key, "model/w") == 0;
    of_keys += strcmp(key, "model/table-keys") == 0;
    of_slot += strcmp(key, "slot") == 0;
  }
  CHECK_INT(of_w, 8);
  CHECK_INT(of_keys, 8);
  CHECK_INT(of_slot, 1);
  CHECK_STATUS(tn_checkpoint_path_at(c, n, &path, &key, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_NULL(path);
  tn_checkpoint_close(c);
}

static void checkpoint__without_an_object_graph_there_are_no_paths(void)
{
  const char *key, *path;
  save_three(tap_scratch_path("plain"), NULL);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("plain"));
  CHECK_INT(tn_checkpoint_path_count(c), 0);
  CHECK_STATUS(tn_checkpoint_path_at(c, 0, &path, &key, &err), TN_OUT_OF_RANGE, NULL);
  CHECK_STATUS(tn_checkpoint_resolve(c, "a/floats", &key, &err), TN_FAILED_PRECONDITION, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "it is not an object-based checkpoint");
  tn_checkpoint_close(c);
}

static void checkpoint__a_damaged_object_graph_leaves_the_tensors(void)
{
  const char *path, *key;
  tn_tensor *t = NULL;
  save_objects(tap_scratch_path("bad"), 99);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("bad"));
  CHECK_INT(tn_checkpoint_path_count(c), 0);
  CHECK_STATUS(tn_checkpoint_path_at(c, 0, &path, &key, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "slot 'momentum' is node 99, but there are only 6");
  CHECK_STATUS(tn_checkpoint_resolve(c, "model/w%2Fraw", &key, &err), TN_DATA_LOSS, NULL);
  REQUIRE_OK(tn_checkpoint_read(c, "model/w", &t, &err), &err);
  check_floats(t);
  tn_tensor_unref(t);
  tn_checkpoint_close(c);
}

static void *use_paths(void *checkpoint)
{
  const char *key;
  size_t n = tn_checkpoint_path_count(checkpoint);
  CHECK(n > 8);
  CHECK_INT(tn_checkpoint_resolve(checkpoint, "model/w%2Fraw", &key, NULL), TN_OK);
  CHECK_INT(tn_checkpoint_path_at(checkpoint, n - 1, &key, NULL, NULL), TN_OK);
  return NULL;
}

static void checkpoint__threads_share_the_object_graph(void)
{
  save_objects(tap_scratch_path("threads"), 5);
  for (int round = 0; round < 20; round++) {
    pthread_t threads[4];
    tn_checkpoint *c = open_checkpoint(tap_scratch_path("threads"));
    for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, use_paths, c), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    tn_checkpoint_close(c);
  }
}

/* ---- saving ---- */

static void checkpoint__saving_replaces_a_checkpoint(void)
{
  static const char *const keys[] = { "only" };
  save_three(tap_scratch_path("again"),
             &(tn_checkpoint_options){ .struct_size = sizeof(tn_checkpoint_options), .shards = 3 });
  tn_tensor *t = float_tensor();
  save(tap_scratch_path("again"), keys, &t, 1, NULL);
  tn_tensor_unref(t);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("again"));
  CHECK_INT(tn_checkpoint_count(c), 1);
  REQUIRE_OK(tn_checkpoint_read(c, "only", &t, &err), &err);
  check_floats(t);
  tn_tensor_unref(t);
  tn_checkpoint_close(c);
}

static void check_not_saved(const char *const *keys, tn_tensor *const *tensors, size_t n,
                            const tn_checkpoint_options *options, const char *why)
{
  tn_error_clear(&err);
  CHECK_STATUS(tn_checkpoint_save(tap_scratch_path("kept"), keys, tensors, n, options, &err), TN_INVALID_ARGUMENT,
               NULL);
  CHECK_CONTAINS(tn_error_message(&err), why);
  tn_checkpoint *c = open_checkpoint(tap_scratch_path("kept"));
  CHECK_INT(tn_checkpoint_count(c), 3);
  tn_checkpoint_close(c);
}

static void checkpoint__a_refused_save_keeps_the_former_one(void)
{
  tn_checkpoint_options o = { .struct_size = sizeof o };
  tn_tensor *t[] = { float_tensor(), int_tensor() };
  save_three(tap_scratch_path("kept"), NULL);
  check_not_saved((const char *const[]){ "a", "a" }, t, 2, NULL, "'a'");
  check_not_saved((const char *const[]){ "a", "" }, t, 2, NULL, "");
  check_not_saved((const char *const[]){ "a", NULL }, t, 2, NULL, "keys[1] is NULL");
  check_not_saved((const char *const[]){ "a" }, (tn_tensor *const[]){ NULL }, 1, NULL, "tensors[0] is NULL");
  o.shards = -1;
  check_not_saved((const char *const[]){ "a", "b" }, t, 2, &o, "shards is -1");
  o.shards = 0;
  o.keep = 2;
  check_not_saved((const char *const[]){ "a", "b" }, t, 2, &o, "update_state, which it needs, is not set");
  for (int i = 0; i < 2; i++) tn_tensor_unref(t[i]);
}

/* ---- the newest checkpoint ---- */

static void checkpoint__the_state_names_the_newest_and_keeps_some(void)
{
  const tn_checkpoint_options o = { .struct_size = sizeof o, .update_state = 1, .keep = 2 };
  const char *in = folder("state");
  char path[340], *latest = NULL;
  for (int i = 1; i <= 4; i++) {
    snprintf(path, sizeof path, "%s/ckpt-%d", in, i);
    save_three(path, &o);
  }
  REQUIRE_OK(tn_checkpoint_latest(in, &latest, &err), &err);
  CHECK_STR(latest, path);
  tn_free(latest);
  for (int i = 1; i <= 4; i++) {
    snprintf(path, sizeof path, "%s/ckpt-%d.index", in, i);
    CHECK_MSG((access(path, F_OK) == 0) == (i > 2), "'%s'", path);
    snprintf(path, sizeof path, "%s/ckpt-%d.data-00000-of-00001", in, i);
    CHECK_MSG((access(path, F_OK) == 0) == (i > 2), "'%s'", path);
  }
  CHECK_STATUS(tn_checkpoint_latest(folder("no-state"), &latest, &err), TN_NOT_FOUND, NULL);
  CHECK_NULL(latest);
}

/* ---- memory ---- */

static tn_status open_and_read(void *prefix)
{
  static const char *const keys[] = { "model/w", "model/table-keys" };
  tn_tensor *t[2] = { NULL };
  tn_checkpoint *c = NULL;
  const char *key;
  tn_error_clear(&err);
  tn_status st = tn_checkpoint_open(prefix, &c, &err);
  if (st == TN_OK) st = tn_checkpoint_read_many(c, keys, 2, t, &err);
  if (st == TN_OK) st = tn_checkpoint_path_at(c, 0, &key, NULL, &err);
  if (st == TN_OK) st = tn_checkpoint_resolve(c, "model/table:table-keys", &key, &err);
  tn_checkpoint_close(c);
  for (int i = 0; i < 2; i++) tn_tensor_unref(t[i]);
  tn_error_clear(&err);
  return st;
}

/* A former bundle would keep its data files whenever they cannot be deleted. */
static tn_status save_one(void *tensor)
{
  static const char *const keys[] = { "a" };
  tn_tensor *const t = tensor;
  unlink(tap_scratch_path("swept.index"));
  tn_error_clear(&err);
  tn_status st = tn_checkpoint_save(tap_scratch_path("swept"), keys, &t, 1, NULL, &err);
  tn_error_clear(&err);
  return st;
}

/* Whether two files are equal. */
static bool same_bytes(const char *a, const char *b)
{
  char command[800];
  snprintf(command, sizeof command, "cmp '%s' '%s' >&2", a, b);
  return system(command) == 0;
}

/* tests/data/checkpoint/types was written by TensorFlow: every type, scalars, empty tensors, strings. */
static void checkpoint__writes_the_bytes_that_tensorflow_writes(void)
{
  char prefix[300], name[400];
  tn_checkpoint *c = open_checkpoint(tap_source_path("tests/data/checkpoint/types"));
  size_t n = tn_checkpoint_count(c);
  const char *keys[40];
  tn_tensor *tensors[40];
  REQUIRE(n > 15 && n <= 40);
  for (size_t i = 0; i < n; i++) {
    tn_checkpoint_entry e = { .struct_size = sizeof e };
    REQUIRE_OK(tn_checkpoint_at(c, i, &e, &err), &err);
    keys[i] = e.key;
  }
  REQUIRE_OK(tn_checkpoint_read_many(c, keys, n, tensors, &err), &err);
  snprintf(prefix, sizeof prefix, "%s", tap_scratch_path("types"));
  save(prefix, keys, tensors, n, NULL);
  for (size_t i = 0; i < n; i++) tn_tensor_unref(tensors[i]);
  tn_checkpoint_close(c);
  snprintf(name, sizeof name, "%s.index", prefix);
  CHECK(same_bytes(name, tap_source_path("tests/data/checkpoint/types.index")));
  snprintf(name, sizeof name, "%s.data-00000-of-00001", prefix);
  CHECK(same_bytes(name, tap_source_path("tests/data/checkpoint/types.data-00000-of-00001")));
}

static void checkpoint__nothing_leaks_without_memory(void)
{
  char prefix[300];
  save_objects(tap_scratch_path("sweep"), 5);
  snprintf(prefix, sizeof prefix, "%s", tap_scratch_path("sweep"));
  tn_test_oom_sweep(open_and_read, prefix);
  tn_tensor *t = float_tensor();
  tn_test_oom_sweep(save_one, t);
  tn_tensor_unref(t);
}

TAP_MAIN(
  TAP_TEST(checkpoint__opens_a_prefix_an_index_or_a_folder),
  TAP_TEST(checkpoint__what_is_no_checkpoint_is_not_opened),
  TAP_TEST(checkpoint__entries_are_in_the_order_of_their_keys),
  TAP_TEST(checkpoint__a_shorter_entry_is_not_overrun),
  TAP_TEST(checkpoint__an_unknown_key_names_the_nearest_one),
  TAP_TEST(checkpoint__tensors_outlive_the_checkpoint),
  TAP_TEST(checkpoint__reads_many_or_none),
  TAP_TEST(checkpoint__a_missing_data_file_is_named),
  TAP_TEST(checkpoint__paths_lead_to_keys),
  TAP_TEST(checkpoint__lists_paths),
  TAP_TEST(checkpoint__without_an_object_graph_there_are_no_paths),
  TAP_TEST(checkpoint__a_damaged_object_graph_leaves_the_tensors),
  TAP_TEST(checkpoint__threads_share_the_object_graph),
  TAP_TEST(checkpoint__saving_replaces_a_checkpoint),
  TAP_TEST(checkpoint__a_refused_save_keeps_the_former_one),
  TAP_TEST(checkpoint__the_state_names_the_newest_and_keeps_some),
  TAP_TEST(checkpoint__writes_the_bytes_that_tensorflow_writes),
  TAP_TEST(checkpoint__nothing_leaks_without_memory))
