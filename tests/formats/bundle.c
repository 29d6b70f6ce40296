/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of version 2, written and read. That TensorFlow reads the same files is shown by the cases of models, not
 * here. How a bundle replaces a former one is in bundle_replace.c. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/formats/bundle/bundle.h>
#include <core/formats/sink.h>
#include <core/formats/table/crc32c.h>
#include <core/formats/table/table.h>

#include "conformance/support/oom.h"

static tn_error err;

/* Nothing here depends on the disk, and waiting for it would take most of the time. */
int fsync(int fd) { return 0; }

static const char *scratch(const char *name)
{
  static char paths[32][300];
  static unsigned next;
  char *path = paths[next++ % 32];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

/* Makes a folder below the scratch folder and returns the path of a prefix in it. */
static const char *prefix_in(const char *folder)
{
  char name[100];
  mkdir(scratch(folder), 0700);
  snprintf(name, sizeof(name), "%s/model", folder);
  return scratch(name);
}

static size_t files_in(const char *folder)
{
  size_t n = 0;
  DIR *dir = opendir(scratch(folder));
  REQUIRE_PTR(dir);
  while (readdir(dir) != NULL) n++;
  closedir(dir);
  return n - 2;
}

static bool exists(const char *prefix, const char *end)
{
  char path[400];
  snprintf(path, sizeof(path), "%s%s", prefix, end);
  return access(path, F_OK) == 0;
}

static void write_file(const char *prefix, const char *end, const void *data, size_t size)
{
  char path[400];
  snprintf(path, sizeof(path), "%s%s", prefix, end);
  REQUIRE_OK(tn_file_save(path, data, size, &err), &err);
}

/* ---- tensors ---- */

static tn_tensor *numbers(tn_dtype dtype, int32_t rank, const int64_t *dims)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &err), &err);
  for (size_t i = 0; i < tn_tensor_bytes(t); i++)
    ((unsigned char *)tn_tensor_data(t))[i] = (unsigned char)(dtype == TN_BOOL ? i & 1 : i * 31 + (size_t)dtype);
  return t;
}

static tn_tensor *floats(int64_t n, float first)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &t, &err), &err);
  for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(t))[i] = first + (float)i;
  return t;
}

static void check_equal(const tn_tensor *found, const tn_tensor *wanted)
{
  REQUIRE_INT(tn_tensor_dtype(found), tn_tensor_dtype(wanted));
  REQUIRE_INT(tn_tensor_rank(found), tn_tensor_rank(wanted));
  for (int32_t d = 0; d < tn_tensor_rank(found); d++) REQUIRE_INT(tn_tensor_dims(found)[d], tn_tensor_dims(wanted)[d]);
  if (tn_tensor_dtype(found) != TN_STRING) {
    CHECK_BYTES(tn_tensor_data(found), tn_tensor_data(wanted), tn_tensor_bytes(wanted));
    return;
  }
  for (int64_t i = 0; i < tn_tensor_elements(found); i++) {
    const char *a, *b;
    size_t n, m;
    CHECK_OK(tn_tensor_get_string(found, i, &a, &n, &err), &err);
    CHECK_OK(tn_tensor_get_string(wanted, i, &b, &m, &err), &err);
    REQUIRE_INT(n, m);
    CHECK_BYTES(a, b, n);
  }
}

/* ---- writing and reading ---- */

static tn__bundle_writer *open_writer(const char *prefix, unsigned shards)
{
  tn__bundle_writer *w = NULL;
  REQUIRE_OK(tn__bundle_writer_open(prefix, shards, &w, &err), &err);
  return w;
}

/* Adds a tensor and releases it. */
static void add(tn__bundle_writer *w, const char *key, tn_tensor *t)
{
  REQUIRE_OK(tn__bundle_writer_add(w, tn__slice_of(key), t, &err), &err);
  tn_tensor_unref(t);
}

static tn__store *open_store(const char *path)
{
  tn__store *store = NULL;
  REQUIRE_OK(tn__store_open(path, &store, &err), &err);
  return store;
}

static tn_status try_read(tn__store *store, const char *key, tn_tensor **out)
{
  const tn__stored *entry;
  *out = NULL;
  tn_error_clear(&err);
  tn_status s = tn__store_get(store, tn__slice_of(key), &entry, &err);
  return s == TN_OK ? tn__store_read(store, entry, out, &err) : s;
}

static tn_tensor *read_key(tn__store *store, const char *key)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(try_read(store, key, &t), &err);
  return t;
}

/* Reads a key and compares it; releases `wanted`. */
static void check_key(tn__store *store, const char *key, tn_tensor *wanted)
{
  tn_tensor *t = read_key(store, key);
  check_equal(t, wanted);
  tn_tensor_unref(t);
  tn_tensor_unref(wanted);
}

static void check_refused(const char *path, tn_status status, const char *part)
{
  tn__store *store = (tn__store *)&err;
  tn_error_clear(&err);
  CHECK_STATUS(tn__store_open(path, &store, &err), status, NULL);
  CHECK_NULL(store);
  CHECK_CONTAINS(tn_error_message(&err), part);
  tn_error_clear(&err);
}

/* ---- round trips ---- */

static const tn_dtype types[] = { TN_FLOAT,     TN_DOUBLE, TN_INT32,       TN_UINT8,         TN_INT16,      TN_INT8,
                                  TN_COMPLEX64, TN_INT64,  TN_BOOL,        TN_QINT8,         TN_QUINT8,     TN_QINT32,
                                  TN_BFLOAT16,  TN_QINT16, TN_QUINT16,     TN_UINT16,        TN_COMPLEX128, TN_HALF,
                                  TN_UINT32,    TN_UINT64, TN_FLOAT8_E5M2, TN_FLOAT8_E4M3FN, TN_INT4,       TN_UINT4 };
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static void check_types(unsigned shards)
{
  static const int64_t dims[] = { 3, 1, 5 };
  const char *prefix = prefix_in("types");
  char key[40];
  tn__bundle_writer *w = open_writer(prefix, shards);
  for (int i = 0; i < TYPES; i++) {
    snprintf(key, sizeof(key), "array/%s", tn_dtype_name(types[i]));
    add(w, key, numbers(types[i], 3, dims));
    snprintf(key, sizeof(key), "scalar/%s", tn_dtype_name(types[i]));
    add(w, key, numbers(types[i], 0, NULL));
  }
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  CHECK_INT(store->n, 2 * TYPES);
  CHECK_INT(store->kind->version, 2);
  CHECK_STR(store->prefix, prefix);
  for (int i = 0; i < TYPES; i++) {
    snprintf(key, sizeof(key), "array/%s", tn_dtype_name(types[i]));
    check_key(store, key, numbers(types[i], 3, dims));
    snprintf(key, sizeof(key), "scalar/%s", tn_dtype_name(types[i]));
    check_key(store, key, numbers(types[i], 0, NULL));
  }
  for (size_t i = 1; i < store->n; i++) CHECK(strcmp(store->entries[i - 1].key, store->entries[i].key) < 0);
  tn__store_close(store);
}

static void bundle__every_dtype_round_trips(void) { check_types(1); }

static void bundle__tensors_are_distributed_over_data_files(void)
{
  check_types(3);
  CHECK(exists(scratch("types/model"), ".data-00000-of-00003"));
  CHECK(exists(scratch("types/model"), ".data-00002-of-00003"));
  CHECK_INT(files_in("types"), 4);
}

static tn_tensor *texts(int64_t n)
{
  static const char *const some[] = { "short", "", "a longer text, which does not fit into an element", "\xc3\xa9",
                                      "x" };
  const char *list[5];
  for (int64_t i = 0; i < n; i++) list[i] = some[i % 5];
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_strings(&n, 1, list, NULL, &t, &err), &err);
  return t;
}

/* Longer than the buffers of reading and writing, with lengths of one to four bytes. */
static tn_tensor *long_texts(void)
{
  static const size_t lengths[] = { 3, 200, 70000, 0, 600000, 22, 23 };
  static char bytes[600000];
  const char *list[7];
  int64_t n = 7;
  tn_tensor *t = NULL;
  for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 7 + i / 256);
  for (int i = 0; i < 7; i++) list[i] = bytes + i;
  size_t cut[7];
  for (int i = 0; i < 7; i++) cut[i] = i == 4 ? lengths[i] - 4 : lengths[i];
  REQUIRE_OK(tn_tensor_from_strings(&n, 1, list, cut, &t, &err), &err);
  return t;
}

static tn_tensor *many_texts(void)
{
  int64_t n = 50000;
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_STRING, &n, 1, &t, &err), &err);
  for (int64_t i = 0; i < n; i++) {
    char text[40];
    int length = snprintf(text, sizeof(text), "%*d", (int)(i % 33), (int)i);
    REQUIRE_OK(tn_tensor_set_string(t, i, text, (size_t)length, &err), &err);
  }
  return t;
}

static void bundle__strings_round_trip(void)
{
  const char *prefix = prefix_in("strings");
  tn__bundle_writer *w = open_writer(prefix, 1);
  add(w, "some", texts(5));
  add(w, "none", texts(0));
  add(w, "long", long_texts());
  add(w, "many", many_texts());
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  CHECK_INT(tn__store_find(store, tn__slice_of("none"))->bytes, 4); /* the CRC of no lengths */
  check_key(store, "some", texts(5));
  check_key(store, "none", texts(0));
  check_key(store, "long", long_texts());
  check_key(store, "many", many_texts());
  tn__store_close(store);
}

/* Keys are bytes: any but none. */
static void bundle__keys_are_any_bytes(void)
{
  static const struct {
    const char *bytes;
    size_t size;
  } keys[] = { { "a/b c", 5 }, { "\xe6\x97\xa5", 3 }, { "zero\0byte", 9 }, { "\0", 1 }, { "\xff", 1 }, { "zero", 4 } };
  const char *prefix = prefix_in("keys");
  tn__bundle_writer *w = open_writer(prefix, 1);
  for (int i = 0; i < 6; i++) {
    tn_tensor *t = floats(1, (float)i);
    REQUIRE_OK(tn__bundle_writer_add(w, (tn__slice){ keys[i].bytes, keys[i].size }, t, &err), &err);
    tn_tensor_unref(t);
  }
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  REQUIRE_INT(store->n, 6);
  CHECK_INT(store->entries[0].key_size, 1);
  for (int i = 0; i < 6; i++) {
    tn_tensor *t = NULL;
    const tn__stored *entry = tn__store_find(store, (tn__slice){ keys[i].bytes, keys[i].size });
    REQUIRE_PTR(entry);
    REQUIRE_OK(tn__store_read(store, entry, &t, &err), &err);
    CHECK_DOUBLE(*(float *)tn_tensor_data(t), i, 0);
    tn_tensor_unref(t);
  }
  CHECK_NULL(tn__store_find(store, (tn__slice){ NULL, 0 }));
  tn__store_close(store);
}

static void bundle__empty_tensors_need_no_data_file(void)
{
  static const int64_t dims[] = { 4, 0, 2 };
  const char *prefix = prefix_in("empty");
  tn__bundle_writer *w = open_writer(prefix, 1);
  add(w, "e", numbers(TN_DOUBLE, 3, dims));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  REQUIRE_INT(unlink(scratch("empty/model.data-00000-of-00001")), 0);
  tn__store *store = open_store(prefix);
  check_key(store, "e", numbers(TN_DOUBLE, 3, dims));
  tn__store_close(store);
}

static void bundle__a_bundle_may_be_empty(void)
{
  const char *prefix = prefix_in("nothing");
  REQUIRE_OK(tn__bundle_writer_commit(open_writer(prefix, 1), &err), &err);
  tn__store *store = open_store(prefix);
  tn_tensor *t = NULL;
  CHECK_INT(store->n, 0);
  CHECK_STATUS(try_read(store, "x", &t), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "has no tensor 'x'; it has none");
  CHECK_OK(tn__store_read_many(store, NULL, 0, 0, NULL, &err), &err);
  tn__store_close(store);
}

/* ---- large tensors, threads ---- */

/* Large tensors are read in pieces by several threads; those of some megabytes share a block of memory. */
static void bundle__large_tensors_are_read_on_several_threads(void)
{
  enum { N = 12 };
  static const int64_t sizes[N] = {
    10000000, 1, 300000, 500000, 0, 700000, 2000000, 100, 400000, 400001, 9000, 1999999
  };
  const char *prefix = prefix_in("large");
  char key[N][20];
  const tn__stored *entries[N];
  tn_tensor *out[N];
  tn__bundle_writer *w = open_writer(prefix, 2);
  for (int i = 0; i < N; i++) {
    snprintf(key[i], sizeof(key[i]), "t%d", i);
    add(w, key[i], floats(sizes[i], (float)i));
  }
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  for (int i = 0; i < N; i++) entries[i] = tn__store_find(store, tn__slice_of(key[i]));
  for (unsigned threads = 0; threads < 5; threads += 4) {
    REQUIRE_OK(tn__store_read_many(store, entries, N, threads, out, &err), &err);
    for (int i = 0; i < N; i++) {
      tn_tensor *wanted = floats(sizes[i], (float)i);
      check_equal(out[i], wanted);
      CHECK(tn_tensor_is_exclusive(out[i]));
      tn_tensor_unref(wanted);
    }
    for (int i = 0; i < N; i += 2) tn_tensor_unref(out[i]); /* the others stay valid */
    for (int i = 1; i < N; i += 2) {
      for (int64_t k = 0; k < sizes[i]; k++)
        CHECK_MSG(((float *)tn_tensor_data(out[i]))[k] == (float)i + (float)k, "t%d", i);
      ((float *)tn_tensor_data(out[i]))[0] = -1;
      tn_tensor_unref(out[i]);
    }
  }
  tn__store_close(store);
}

static void bundle__a_damaged_tensor_fails_all_of_a_read(void)
{
  const char *prefix = prefix_in("all_or_none");
  const tn__stored *entries[3];
  tn_tensor *out[3];
  tn__bundle_writer *w = open_writer(prefix, 1);
  add(w, "a", floats(100, 0));
  add(w, "b", floats(6000000, 0));
  add(w, "c", floats(100, 0));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  FILE *f = fopen(scratch("all_or_none/model.data-00000-of-00001"), "r+b");
  REQUIRE_PTR(f);
  fseek(f, 23000000, SEEK_SET);
  fputc(1, f);
  fclose(f);
  tn__store *store = open_store(prefix);
  for (int i = 0; i < 3; i++) entries[i] = &store->entries[i];
  CHECK_STATUS(tn__store_read_many(store, entries, 3, 0, out, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err),
                 "all_or_none/model.data-00000-of-00001': the 24000000 bytes of tensor 'b' from byte 400 on "
                 "have the CRC");
  for (int i = 0; i < 3; i++) CHECK_NULL(out[i]);
  tn_error_clear(&err);
  check_key(store, "a", floats(100, 0));
  check_key(store, "c", floats(100, 0));
  tn__store_close(store);
}

/* ---- slices ---- */

static tn_tensor *grid(int64_t y, int64_t x, int64_t rows, int64_t columns, bool strings)
{
  const int64_t dims[] = { rows, columns };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(strings ? TN_STRING : TN_INT32, dims, 2, &t, &err), &err);
  for (int64_t i = 0; i < rows * columns; i++) {
    int value = (int)((y + i / columns) * 8 + x + i % columns);
    char text[60];
    int n = snprintf(text, sizeof(text), "%s%d", value % 2 == 0 ? "" : "a text that is on the heap as it is so long ",
                     value);
    if (strings)
      REQUIRE_OK(tn_tensor_set_string(t, i, text, (size_t)n, &err), &err);
    else
      ((int32_t *)tn_tensor_data(t))[i] = value;
  }
  return t;
}

static tn_status add_grid(tn__bundle_writer *w, const char *key, int64_t y, int64_t x, int64_t rows, int64_t columns,
                          bool strings)
{
  static const int64_t dims[] = { 6, 8 };
  tn_tensor *t = grid(y, x, rows, columns, strings);
  int64_t starts[] = { y, x }, lengths[] = { rows, columns == 8 ? -1 : columns };
  tn__region r = { 2, starts, lengths };
  tn_error_clear(&err);
  tn_status s = tn__bundle_writer_add_slice(w, tn__slice_of(key), 2, dims, &r, t, &err);
  tn_tensor_unref(t);
  return s;
}

static void check_regions(tn__store *store, const char *key, bool strings)
{
  for (int64_t y = 0; y < 6; y++)
    for (int64_t x = 0; x < 8; x++)
      for (int64_t h = 1; h <= 6 - y; h += 2)
        for (int64_t n = 1; n <= 8 - x; n += 3) {
          int64_t starts[] = { y, x }, lengths[] = { h, n };
          tn__region r = { 2, starts, lengths };
          tn_tensor *t = NULL, *wanted = grid(y, x, h, n, strings);
          REQUIRE_OK(tn__store_read_region(store, tn__store_find(store, tn__slice_of(key)), &r, &t, &err), &err);
          check_equal(t, wanted);
          tn_tensor_unref(t);
          tn_tensor_unref(wanted);
        }
}

static void check_slices(bool strings)
{
  const char *prefix = prefix_in("slices");
  tn__bundle_writer *w = open_writer(prefix, 2);
  REQUIRE_OK(add_grid(w, "rows", 0, 0, 2, 8, strings), &err);
  REQUIRE_OK(add_grid(w, "rows", 2, 0, 4, 8, strings), &err);
  REQUIRE_OK(add_grid(w, "wheel", 0, 0, 2, 5, strings), &err);
  REQUIRE_OK(add_grid(w, "wheel", 0, 5, 4, 3, strings), &err);
  REQUIRE_OK(add_grid(w, "wheel", 4, 3, 2, 5, strings), &err);
  REQUIRE_OK(add_grid(w, "wheel", 2, 0, 4, 3, strings), &err);
  REQUIRE_OK(add_grid(w, "wheel", 2, 3, 2, 2, strings), &err);
  REQUIRE_OK(add_grid(w, "whole", 0, 0, 6, 8, strings), &err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  CHECK_INT(store->n, 3); /* slices are not listed on their own */
  CHECK_INT(store->entries[1].n_parts, 5);
  CHECK(store->entries[1].sliced);
  CHECK(!store->entries[2].sliced);
  CHECK(store->entries[1].bytes == store->entries[0].bytes || strings);
  check_key(store, "rows", grid(0, 0, 6, 8, strings));
  check_key(store, "wheel", grid(0, 0, 6, 8, strings));
  check_key(store, "whole", grid(0, 0, 6, 8, strings));
  check_regions(store, "rows", strings);
  check_regions(store, "wheel", strings);
  check_regions(store, "whole", strings);
  tn__store_close(store);
}

static void bundle__slices_are_put_together(void) { check_slices(false); }
static void bundle__slices_of_strings_are_put_together(void) { check_slices(true); }

/* A slice that is not contiguous in its tensor is read through a buffer, which is smaller than the slice. */
static void bundle__large_slices_are_put_together(void)
{
  enum { ROWS = 700, COLUMNS = 999 };
  static const int64_t dims[] = { ROWS, COLUMNS }, cuts[] = { 0, 333, 334, 999 };
  const char *prefix = prefix_in("large_slices");
  tn__bundle_writer *w = open_writer(prefix, 1);
  for (int i = 0; i < 3; i++) {
    int64_t starts[] = { 0, cuts[i] }, lengths[] = { -1, cuts[i + 1] - cuts[i] }, shape[] = { ROWS, lengths[1] };
    tn__region r = { 2, starts, lengths };
    tn_tensor *t = NULL;
    REQUIRE_OK(tn_tensor_create(TN_DOUBLE, shape, 2, &t, &err), &err);
    for (int64_t k = 0; k < tn_tensor_elements(t); k++)
      ((double *)tn_tensor_data(t))[k] = (double)(k / shape[1] * COLUMNS + cuts[i] + k % shape[1]);
    REQUIRE_OK(tn__bundle_writer_add_slice(w, tn__slice_of("t"), 2, dims, &r, t, &err), &err);
    tn_tensor_unref(t);
  }
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  tn_tensor *t = read_key(store, "t");
  for (int64_t k = 0; k < ROWS * COLUMNS; k++) CHECK_MSG(((double *)tn_tensor_data(t))[k] == (double)k, "%d", (int)k);
  tn_tensor_unref(t);
  tn__store_close(store);
}

static void bundle__slices_must_cover_what_is_read(void)
{
  const char *prefix = prefix_in("gap");
  tn__bundle_writer *w = open_writer(prefix, 1);
  tn_tensor *t = NULL;
  REQUIRE_OK(add_grid(w, "gap", 0, 0, 2, 8, false), &err);
  REQUIRE_OK(add_grid(w, "gap", 3, 0, 3, 8, false), &err);
  REQUIRE_OK(add_grid(w, "twice", 0, 0, 4, 8, false), &err);
  REQUIRE_OK(add_grid(w, "twice", 2, 0, 2, 8, false), &err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  CHECK_STATUS(try_read(store, "gap", &t), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "the 2 slices of tensor 'gap' do not cover its region 0,6:0,8 exactly");
  CHECK_NULL(t);
  CHECK_STATUS(try_read(store, "twice", &t), TN_DATA_LOSS, NULL);
  int64_t starts[] = { 3, 0 }, lengths[] = { 3, -1 };
  tn__region r = { 2, starts, lengths };
  tn_error_clear(&err);
  REQUIRE_OK(tn__store_read_region(store, tn__store_find(store, tn__slice_of("gap")), &r, &t, &err), &err);
  tn_tensor *wanted = grid(3, 0, 3, 8, false);
  check_equal(t, wanted);
  tn_tensor_unref(t);
  tn_tensor_unref(wanted);
  lengths[0] = 4;
  CHECK_STATUS(tn__store_read_region(store, tn__store_find(store, tn__slice_of("gap")), &r, &t, &err),
               TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "tensor 'gap': ");
  tn_error_clear(&err);
  tn__store_close(store);
}

/* ---- what cannot be written ---- */

static void check_add(tn__bundle_writer *w, const char *key, tn_tensor *t, const char *part)
{
  tn_error_clear(&err);
  CHECK_STATUS(tn__bundle_writer_add(w, tn__slice_of(key), t, &err), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), part);
}

static void bundle__errors_name_tensors_that_cannot_be_written(void)
{
  const char *prefix = prefix_in("refused");
  tn__bundle_writer *w = open_writer(prefix, 1);
  tn_tensor *t = floats(2, 1), *handles = NULL;
  REQUIRE_OK(tn_tensor_create(TN_VARIANT, NULL, 0, &handles, &err), &err);
  check_add(w, "", t, "tensor '' has an empty key");
  check_add(w, "h", handles, "tensor 'h' has handles as elements");
  add(w, "a", floats(2, 1));
  check_add(w, "a", t, "refused/model': tensor 'a' was added before");
  CHECK_STATUS(add_grid(w, "a", 0, 0, 2, 8, false), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "was added before as a whole");
  REQUIRE_OK(add_grid(w, "s", 0, 0, 2, 8, false), &err);
  CHECK_STATUS(add_grid(w, "s", 0, 0, 2, 8, false), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "was added before with this slice");
  CHECK_STATUS(add_grid(w, "s", 2, 0, 4, 8, true), TN_INVALID_ARGUMENT, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "has slices of several dtypes or shapes");
  check_add(w, "s", t, "was added before");
  tn_error_clear(&err);
  int64_t dims[] = { 4 }, starts[] = { 3 }, lengths[] = { 2 };
  tn__region r = { 1, starts, lengths };
  CHECK_STATUS(tn__bundle_writer_add_slice(w, tn__slice_of("o"), 1, dims, &r, t, &err), TN_INVALID_ARGUMENT, NULL);
  lengths[0] = 1;
  CHECK_STATUS(tn__bundle_writer_add_slice(w, tn__slice_of("o"), 1, dims, &r, t, NULL), TN_INVALID_ARGUMENT, NULL);
  tn_error_clear(&err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err); /* the others are written */
  tn__store *store = open_store(prefix);
  CHECK_INT(store->n, 2);
  tn__store_close(store);
  CHECK_STATUS(tn__bundle_writer_open(prefix, 0, &w, &err), TN_INVALID_ARGUMENT, NULL);
  tn_error_clear(&err);
  CHECK_STATUS(tn__bundle_writer_open("", 1, &w, &err), TN_INVALID_ARGUMENT, NULL);
  tn_error_clear(&err);
  CHECK_STATUS(tn__bundle_writer_open(scratch("no/such/folder"), 1, &w, &err), TN_NOT_FOUND, NULL);
  tn_error_clear(&err);
  tn_tensor_unref(t);
  tn_tensor_unref(handles);
}

static void bundle__an_abandoned_bundle_leaves_nothing(void)
{
  tn__bundle_writer *w = open_writer(prefix_in("abandoned"), 2);
  add(w, "a", floats(1000000, 1));
  tn__bundle_writer_abandon(w);
  tn__bundle_writer_abandon(NULL);
  CHECK_INT(files_in("abandoned"), 0);
}

/* ---- damaged files ---- */

static const int64_t six[] = { 3, 2 };

/* An entry "t" of six floats at the beginning of the data file. */
static tn__bundle_entry entry_of_floats(void)
{
  static float values[6];
  return (tn__bundle_entry){ .key = { "t", 1 },
                             .dtype = TN_FLOAT,
                             .rank = 2,
                             .dims = six,
                             .size = 24,
                             .crc = tn__crc32c_mask(tn__crc32c(0, values, 24)) };
}

/* Writes an index with these entries, and a data file of 24 zeros. */
static const char *craft(const tn__bundle_entry *list, size_t n)
{
  static const char zeros[24];
  const char *prefix = prefix_in("crafted");
  char path[400];
  tn__bundle_entry copies[8], *entries[8];
  tn__writer w;
  snprintf(path, sizeof(path), "%s.index", prefix);
  for (size_t i = 0; i < n; i++) {
    copies[i] = list[i];
    entries[i] = &copies[i];
  }
  write_file(prefix, ".data-00000-of-00001", zeros, sizeof(zeros));
  REQUIRE_OK(tn__writer_open(&w, path, &err), &err);
  REQUIRE_OK(tn__bundle_index_write(&w, entries, n, 1, &err), &err);
  REQUIRE_OK(tn__writer_commit(&w, &err), &err);
  return prefix;
}

static void check_entry(tn__bundle_entry e, const char *part) { check_refused(craft(&e, 1), TN_DATA_LOSS, part); }

static void bundle__impossible_entries_are_rejected(void)
{
  static const int64_t negative[] = { -1, 2 }, huge[] = { (int64_t)1 << 60, 2 },
                       overflow[] = { (int64_t)1 << 32, (int64_t)1 << 32, 4 };
  tn__bundle_entry good = entry_of_floats(), e;
  const char *prefix = craft(&good, 1);
  tn__store *store = open_store(prefix);
  tn_tensor *t = read_key(store, "t");
  tn_tensor_unref(t);
  tn__store_close(store);
  check_entry((e = good, e.dtype = 77, e),
              "crafted/model.index': in the block at byte 0, the entry of 't' is damaged: 77 is not a data type");
  check_entry((e = good, e.dtype = -1, e), "-1 is not a data type");
  check_entry((e = good, e.dims = negative, e), "the shape [?,2] of float32 elements is impossible");
  check_entry((e = good, e.dims = huge, e), "is impossible");
  check_entry((e = good, e.dims = overflow, e.rank = 3, e), "is impossible");
  check_entry((e = good, e.size = 20, e), "20 bytes for a tensor float32 [3,2]");
  check_entry((e = good, e.size = UINT64_MAX, e), "it has -1 bytes from byte 0 on");
  check_entry((e = good, e.offset = UINT64_MAX, e), "it has 24 bytes from byte -1 on");
  check_entry((e = good, e.offset = INT64_MAX, e), "it has 24 bytes from byte 9223372036854775807 on");
  check_entry((e = good, e.shard = 1, e), "it is in data file 1 of 1");
  check_entry((e = good, e.shard = UINT32_MAX, e), "it is in data file 4294967295 of 1");
  check_entry((e = good, e.dtype = TN_STRING, e.size = 9, e), "9 bytes for a tensor string [3,2]");
}

/* What an entry says of a file is compared with the file before memory is allocated. */
static void bundle__false_sizes_do_not_allocate(void)
{
  static const int64_t huge[] = { (int64_t)1 << 44, 1 };
  tn__bundle_entry e = entry_of_floats();
  tn_tensor *t = NULL;
  e.dims = huge;
  e.size = (uint64_t)4 << 44;
  for (int i = 0; i < 2; i++) {
    tn__store *store = open_store(craft(&e, 1));
    uint64_t before = tn_test_live_bytes();
    CHECK_STATUS(try_read(store, "t", &t), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err),
                   ".data-00000-of-00001' has 24 bytes, but tensor 't' has 70368744177664 from byte 0 on");
    CHECK_NULL(t);
    CHECK(tn_test_live_bytes() < before + 10000);
    tn__store_close(store);
    e.dtype = TN_STRING;
  }
  e = entry_of_floats();
  e.offset = 1;
  tn__store *store = open_store(craft(&e, 1));
  CHECK_STATUS(try_read(store, "t", &t), TN_DATA_LOSS, NULL);
  tn__store_close(store);
  tn_error_clear(&err);
}

/* Handles may be in an index, but their values cannot be read. */
static void bundle__handles_are_listed_but_not_read(void)
{
  tn__bundle_entry list[2] = { entry_of_floats(), entry_of_floats() };
  tn_tensor *t = NULL;
  list[1].key = tn__slice_of("v");
  list[1].dtype = TN_VARIANT;
  tn__store *store = open_store(craft(list, 2));
  CHECK_STATUS(try_read(store, "v", &t), TN_UNIMPLEMENTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "tensor 'v' is of dtype variant");
  CHECK_OK(try_read(store, "t", &t), &err);
  tn_tensor_unref(t);
  tn__store_close(store);
}

/* ---- slices in damaged files ---- */

static tn_status open_sliced(tn__bundle_entry whole, tn__bundle_entry part, const char *what)
{
  tn__bundle_entry list[] = { whole, part };
  tn__store *store = NULL;
  const char *prefix = craft(list, 2);
  tn_error_clear(&err);
  tn_status s = tn__store_open(prefix, &store, &err);
  tn__store_close(store);
  CHECK_CONTAINS(tn_error_message(&err), what);
  return s;
}

static void bundle__slices_must_fit_their_tensor(void)
{
  static const int64_t five[] = { 5, 2 };
  int64_t starts[] = { 0, 0 }, lengths[] = { 3, -1 };
  tn__region r = { 2, starts, lengths };
  tn__arena arena;
  tn__bundle_entry part = entry_of_floats(), e,
                   whole = {
                     .key = { "w", 1 }, .dtype = TN_FLOAT, .rank = 2, .dims = five, .slices = &r, .n_slices = 1
                   };
  tn__arena_init(&arena, 256);
  REQUIRE_OK(tn__slice_key(whole.key, &r, &arena, &part.key, &err), &err);
  CHECK_INT(open_sliced(whole, part, ""), TN_OK);
  CHECK_INT(
      open_sliced(whole, entry_of_floats(), "crafted/model.index': slice 0,3:- of tensor 'w' has no entry of its own"),
      TN_DATA_LOSS);
  CHECK_INT(open_sliced((e = whole, e.dtype = TN_INT32, e), part, "has an entry of another dtype or shape"),
            TN_DATA_LOSS);
  CHECK_INT(open_sliced((e = whole, e.dims = (int64_t[]){ 5, 3 }, e), part, "has an entry of another dtype or shape"),
            TN_DATA_LOSS);
  CHECK_INT(open_sliced((e = whole, e.dims = (int64_t[]){ 2, 2 }, e), part, "is outside of the tensor"), TN_DATA_LOSS);
  CHECK_INT(open_sliced((e = whole, e.rank = 1, e), part, "is outside of the tensor"), TN_DATA_LOSS);
  CHECK_INT(open_sliced(whole, (e = whole, e.key = part.key, e), "has no entry of its own"), TN_DATA_LOSS);
  tn__arena_fini(&arena);
  tn_error_clear(&err);
}

/* The entry of a slice that its tensor does not list is no tensor: an export that reads every tensor must not ask for
 * it. */
static void bundle__a_slice_that_is_not_listed_is_no_tensor(void)
{
  int64_t starts[] = { 0, 0 }, lengths[] = { 3, -1 };
  tn__region r = { 2, starts, lengths };
  tn__arena arena;
  tn__bundle_entry list[] = { entry_of_floats(), entry_of_floats() };
  tn__store *store = NULL;
  tn__arena_init(&arena, 256);
  REQUIRE_OK(tn__slice_key((tn__slice){ "w", 1 }, &r, &arena, &list[1].key, &err), &err);
  const char *kept = list[0].key.data;
  const char *prefix = craft(list, 2);
  REQUIRE_OK(tn__store_open(prefix, &store, &err), &err);
  REQUIRE_INT(store->n, 1);
  CHECK_STR(store->entries[0].key, kept);
  tn__store_close(store);
  tn__arena_fini(&arena);
}

/* ---- headers ---- */

static void check_header(const void *header, size_t size, const char *key, tn_status status, const char *part)
{
  const char *prefix = prefix_in("header");
  char path[400];
  tn__writer file;
  tn__table_writer *table = NULL;
  snprintf(path, sizeof(path), "%s.index", prefix);
  REQUIRE_OK(tn__writer_open(&file, path, &err), &err);
  REQUIRE_OK(tn__table_writer_create(&file, &table, &err), &err);
  REQUIRE_OK(tn__table_writer_add(table, tn__slice_of(key), (tn__slice){ header, size }, &err), &err);
  REQUIRE_OK(tn__table_writer_finish(table, &err), &err);
  tn__table_writer_destroy(table);
  REQUIRE_OK(tn__writer_commit(&file, &err), &err);
  if (status != TN_OK) {
    check_refused(prefix, status, part);
    return;
  }
  tn__store_close(open_store(prefix));
}

static void bundle__the_header_says_whether_this_reader_fits(void)
{
  check_header("\x08\1\x1a\2\x08\1", 6, "", TN_OK, NULL);
  check_header("\x08\1\x1a\4\x08\7\x10\1", 8, "", TN_OK, NULL);
  check_header("\x08\1\x1a\2\x10\x63", 6, "", TN_INVALID_ARGUMENT, "was written for readers of version 99 and newer");
  check_header("\x08\1\x1a\2\x18\1", 6, "", TN_INVALID_ARGUMENT, "says that readers of version 1 cannot read it");
  check_header("\x08\1\x1a\4\x1a\2\2\1", 8, "", TN_INVALID_ARGUMENT, "says that readers of version 1 cannot read it");
  check_header("\x08\1\x10\1", 4, "", TN_UNIMPLEMENTED, "big-endian");
  check_header("\x1a\2\x08\1", 4, "", TN_DATA_LOSS, "the header is damaged: the bundle has 0 data files");
  check_header("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, "", TN_DATA_LOSS, "-1 data files");
  check_header("\x08", 1, "", TN_DATA_LOSS, "the header is damaged: ");
  check_header("\x08\1", 2, "a", TN_DATA_LOSS, "has no header");
}

static void bundle__an_entry_that_is_no_message_is_rejected(void)
{
  const char *prefix = prefix_in("garbage");
  char path[400];
  tn__writer file;
  tn__table_writer *table = NULL;
  snprintf(path, sizeof(path), "%s.index", prefix);
  REQUIRE_OK(tn__writer_open(&file, path, &err), &err);
  REQUIRE_OK(tn__table_writer_create(&file, &table, &err), &err);
  REQUIRE_OK(tn__table_writer_add(table, (tn__slice){ "", 0 }, (tn__slice){ "\x08\1", 2 }, &err), &err);
  REQUIRE_OK(tn__table_writer_add(table, tn__slice_of("x\ny"), tn__slice_of("garbage"), &err), &err);
  REQUIRE_OK(tn__table_writer_finish(table, &err), &err);
  tn__table_writer_destroy(table);
  REQUIRE_OK(tn__writer_commit(&file, &err), &err);
  check_refused(prefix, TN_DATA_LOSS, "the entry of 'x?y' is damaged: ");
}

/* ---- data files ---- */

/* A flipped bit anywhere in the files gives a status or the right values. */
static void bundle__mutated_files_give_a_status(void)
{
  static const char *const ends[] = { ".index", ".data-00000-of-00001" };
  const char *prefix = prefix_in("mutated");
  tn__bundle_writer *w = open_writer(prefix, 1);
  add(w, "numbers", floats(4, 1));
  add(w, "texts", texts(5));
  REQUIRE_OK(add_grid(w, "rows", 0, 0, 2, 8, false), &err);
  REQUIRE_OK(add_grid(w, "rows", 2, 0, 4, 8, false), &err);
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  static const char *const keys[] = { "numbers", "rows", "texts" };
  tn_tensor *wanted[] = { floats(4, 1), grid(0, 0, 6, 8, false), texts(5) };
  for (int which = 0; which < 2; which++) {
    static unsigned char bytes[4000];
    char path[400];
    snprintf(path, sizeof(path), "%s%s", prefix, ends[which]);
    FILE *f = fopen(path, "r+b");
    REQUIRE_PTR(f);
    size_t size = fread(bytes, 1, sizeof(bytes), f);
    for (size_t i = 0; i < size * 8; i++) {
      tn__store *store = NULL;
      pwrite(fileno(f), (char[]){ (char)(bytes[i / 8] ^ 1u << i % 8) }, 1, (off_t)(i / 8));
      tn_error_clear(&err);
      tn_status s = tn__store_open(prefix, &store, &err);
      CHECK_MSG(s == TN_OK || s == TN_DATA_LOSS, "bit %zu of %s: %s", i, ends[which], tn_error_message(&err));
      for (int k = 0; k < 3 && store != NULL; k++) {
        tn_tensor *t = NULL;
        s = try_read(store, keys[k], &t);
        CHECK_MSG(s == TN_OK || s == TN_DATA_LOSS, "bit %zu of %s: %s", i, ends[which], tn_error_message(&err));
        if (t != NULL) check_equal(t, wanted[k]);
        tn_tensor_unref(t);
      }
      tn__store_close(store);
      pwrite(fileno(f), &bytes[i / 8], 1, (off_t)(i / 8));
    }
    fclose(f);
  }
  for (int k = 0; k < 3; k++) tn_tensor_unref(wanted[k]);
  tn_error_clear(&err);
}

static void bundle__every_truncated_file_gives_a_status(void)
{
  const char *prefix = prefix_in("cut");
  tn__bundle_writer *w = open_writer(prefix, 1);
  tn_tensor *t = NULL;
  add(w, "first", floats(4, 1));
  add(w, "texts", texts(5));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  const char *data = scratch("cut/model.data-00000-of-00001"), *index = scratch("cut/model.index");
  struct stat st;
  REQUIRE_INT(stat(data, &st), 0);
  for (off_t n = st.st_size - 1; n >= 0; n--) {
    REQUIRE_INT(truncate(data, n), 0);
    tn__store *store = open_store(prefix);
    CHECK_INT(try_read(store, "first", &t), n >= 16 ? TN_OK : TN_DATA_LOSS);
    tn_tensor_unref(t);
    CHECK_STATUS(try_read(store, "texts", &t), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "cut/model.data-00000-of-00001' has ");
    tn__store_close(store);
  }
  REQUIRE_INT(stat(index, &st), 0);
  for (off_t n = st.st_size - 1; n >= 0; n--) {
    REQUIRE_INT(truncate(index, n), 0);
    check_refused(prefix, TN_DATA_LOSS, "cut/model.index'");
  }
}

static void bundle__a_missing_data_file_harms_only_its_tensors(void)
{
  const char *prefix = prefix_in("missing");
  tn__bundle_writer *w = open_writer(prefix, 2);
  tn_tensor *t = NULL;
  add(w, "a", floats(100, 1)); /* the first file; then the other one has fewer bytes */
  add(w, "b", floats(50, 1));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  REQUIRE_INT(unlink(scratch("missing/model.data-00001-of-00002")), 0);
  tn__store *store = open_store(prefix);
  check_key(store, "a", floats(100, 1));
  CHECK_STATUS(try_read(store, "b", &t), TN_NOT_FOUND, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "tensor 'b': cannot open '");
  CHECK_CONTAINS(tn_error_message(&err), "model.data-00001-of-00002': No such file or directory");
  tn__store_close(store);
}

static void bundle__a_file_changed_while_open_gives_a_status(void)
{
  const char *prefix = prefix_in("changed"), *data = scratch("changed/model.data-00000-of-00001");
  tn__bundle_writer *w = open_writer(prefix, 1);
  tn_tensor *t = NULL;
  add(w, "a", floats(1000, 1));
  add(w, "b", floats(1000, 1));
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  tn__store *store = open_store(prefix);
  check_key(store, "a", floats(1000, 1));
  FILE *f = fopen(data, "r+b");
  REQUIRE_PTR(f);
  fseek(f, 5000, SEEK_SET);
  fputs("something else", f);
  fclose(f);
  CHECK_STATUS(try_read(store, "b", &t), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "; the file was changed while the checkpoint was open");
  REQUIRE_INT(truncate(data, 6000), 0);
  CHECK_STATUS(try_read(store, "b", &t), TN_DATA_LOSS, NULL);
  CHECK_NULL(t);
  check_key(store, "a", floats(1000, 1));
  tn__store_close(store);
}

/* More data files than are kept open. */
enum { FILES = 90 };

static const char *save_many(void)
{
  const char *prefix = prefix_in("many");
  char key[20];
  tn__bundle_writer *w = open_writer(prefix, FILES);
  for (int i = 0; i < FILES; i++) {
    snprintf(key, sizeof(key), "t%d", i);
    add(w, key, floats(3, (float)i));
  }
  REQUIRE_OK(tn__bundle_writer_commit(w, &err), &err);
  return prefix;
}

static void check_many(tn__store *store)
{
  for (int i = 0; i < FILES; i++) {
    char key[20];
    snprintf(key, sizeof(key), "t%d", i);
    check_key(store, key, floats(3, (float)i));
  }
}

static void bundle__many_data_files(void)
{
  struct rlimit old, limit;
  tn__store *store = open_store(save_many());
  CHECK(files_in("many") >= FILES + 1);
  check_many(store);
  check_many(store);
  /* The process has no descriptor left: files are closed for others. */
  REQUIRE_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
  limit = old;
  limit.rlim_cur = 20;
  REQUIRE_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  check_many(store);
  setrlimit(RLIMIT_NOFILE, &old);
  tn__store_close(store);
}

static void *read_many(void *arg)
{
  tn__store *store = arg;
  for (size_t i = 0; i < 5 * store->n; i++) {
    const tn__stored *entry = &store->entries[i * 7 % store->n];
    tn_tensor *t = NULL;
    CHECK_INT(tn__store_read(store, entry, &t, NULL), TN_OK);
    if (t != NULL) CHECK_INT(((float *)tn_tensor_data(t))[1], atoi(entry->key + 1) + 1);
    tn_tensor_unref(t);
  }
  return NULL;
}

static void bundle__any_number_of_threads_reads_a_checkpoint(void)
{
  pthread_t threads[4];
  tn__store *store = open_store(save_many());
  for (int i = 0; i < 4; i++) REQUIRE_INT(pthread_create(&threads[i], NULL, read_many, store), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  tn__store_close(store);
}

/* ---- paths ---- */

static void bundle__paths_of_a_checkpoint(void)
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

static void bundle__the_newest_checkpoints_are_kept(void)
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

static void bundle__state_files_of_all_forms(void)
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

static void bundle__damaged_state_files_give_a_status(void)
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
static void bundle__checkpoints_of_other_folders_are_not_deleted(void)
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

static void bundle__parts_are_merged(void)
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

static void bundle__parts_that_do_not_fit_stay(void)
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

static tn_status save_and_load(void *arg)
{
  static const int64_t dims[] = { 4 };
  int64_t starts[] = { 0 }, lengths[] = { 2 };
  tn__region r = { 1, starts, lengths };
  const char *words[] = { "a", "a longer text, which does not fit into an element" };
  tn_tensor *in[2] = { NULL, NULL }, *out[3] = { NULL, NULL, NULL };
  tn__bundle_writer *w = NULL;
  tn__store *store = NULL;
  int64_t two = 2;
  tn_status s = tn_tensor_from_strings(&two, 1, words, NULL, &in[0], NULL);
  if (s == TN_OK) s = tn_tensor_from_data(TN_INT16, &two, 1, "abcd", 4, &in[1], NULL);
  if (s == TN_OK) s = tn__bundle_writer_open(arg, 2, &w, NULL);
  if (s == TN_OK) {
    s = tn__bundle_writer_add(w, tn__slice_of("strings"), in[0], NULL);
    if (s == TN_OK) s = tn__bundle_writer_add(w, tn__slice_of("numbers"), in[1], NULL);
    if (s == TN_OK) s = tn__bundle_writer_add_slice(w, tn__slice_of("slices"), 1, dims, &r, in[0], NULL);
    starts[0] = 2;
    if (s == TN_OK) s = tn__bundle_writer_add_slice(w, tn__slice_of("slices"), 1, dims, &r, in[0], NULL);
    if (s == TN_OK)
      s = tn__bundle_writer_commit(w, NULL);
    else
      tn__bundle_writer_abandon(w);
  }
  if (s == TN_OK) s = tn__store_open(arg, &store, NULL);
  if (s == TN_OK)
    s = tn__store_read_many(store, (const tn__stored *[]){ &store->entries[0], &store->entries[1], &store->entries[2] },
                            3, 0, out, NULL);
  for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
  for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  tn__store_close(store);
  return s;
}

static tn_status read_regions(void *arg)
{
  int64_t starts[] = { 1, 2 }, lengths[] = { 4, 5 };
  tn__region r = { 2, starts, lengths };
  tn__store *store = NULL;
  tn_tensor *t = NULL;
  tn_status s = tn__store_open(arg, &store, NULL);
  for (size_t i = 0; s == TN_OK && i < store->n; i++) {
    s = tn__store_read_region(store, &store->entries[i], &r, &t, NULL);
    tn_tensor_unref(t);
  }
  tn__store_close(store);
  return s;
}

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

static void bundle__nothing_leaks_without_memory(void)
{
  static char path[300];
  snprintf(path, sizeof(path), "%s", prefix_in("sweep"));
  tn_test_oom_sweep(save_and_load, path);
  CHECK(files_in("sweep") <= 4);
  check_slices(false);
  snprintf(path, sizeof(path), "%s", scratch("slices/model"));
  tn_test_oom_sweep(read_regions, path);
  tn_test_oom_sweep(merge_itself, path);
  mkdir(scratch("state_sweep"), 0700);
  save(scratch("state_sweep/a"));
  snprintf(path, sizeof(path), "%s", scratch("state_sweep"));
  tn_test_oom_sweep(update_and_open, path);
}

TAP_MAIN(TAP_TEST(bundle__every_dtype_round_trips), TAP_TEST(bundle__tensors_are_distributed_over_data_files),
         TAP_TEST(bundle__strings_round_trip), TAP_TEST(bundle__keys_are_any_bytes),
         TAP_TEST(bundle__empty_tensors_need_no_data_file), TAP_TEST(bundle__a_bundle_may_be_empty),
         TAP_TEST(bundle__large_tensors_are_read_on_several_threads),
         TAP_TEST(bundle__a_damaged_tensor_fails_all_of_a_read), TAP_TEST(bundle__slices_are_put_together),
         TAP_TEST(bundle__slices_of_strings_are_put_together), TAP_TEST(bundle__large_slices_are_put_together),
         TAP_TEST(bundle__slices_must_cover_what_is_read), TAP_TEST(bundle__errors_name_tensors_that_cannot_be_written),
         TAP_TEST(bundle__an_abandoned_bundle_leaves_nothing), TAP_TEST(bundle__impossible_entries_are_rejected),
         TAP_TEST(bundle__false_sizes_do_not_allocate), TAP_TEST(bundle__handles_are_listed_but_not_read),
         TAP_TEST(bundle__a_slice_that_is_not_listed_is_no_tensor),
  TAP_TEST(bundle__slices_must_fit_their_tensor), TAP_TEST(bundle__the_header_says_whether_this_reader_fits),
         TAP_TEST(bundle__an_entry_that_is_no_message_is_rejected), TAP_TEST(bundle__mutated_files_give_a_status),
         TAP_TEST(bundle__every_truncated_file_gives_a_status),
         TAP_TEST(bundle__a_missing_data_file_harms_only_its_tensors),
         TAP_TEST(bundle__a_file_changed_while_open_gives_a_status), TAP_TEST(bundle__many_data_files),
         TAP_TEST(bundle__any_number_of_threads_reads_a_checkpoint), TAP_TEST(bundle__paths_of_a_checkpoint),
         TAP_TEST(bundle__the_newest_checkpoints_are_kept), TAP_TEST(bundle__state_files_of_all_forms),
         TAP_TEST(bundle__damaged_state_files_give_a_status),
         TAP_TEST(bundle__checkpoints_of_other_folders_are_not_deleted), TAP_TEST(bundle__parts_are_merged),
         TAP_TEST(bundle__parts_that_do_not_fit_stay), TAP_TEST(bundle__nothing_leaks_without_memory))
