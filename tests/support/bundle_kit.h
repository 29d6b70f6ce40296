/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of checkpoints of version 2: tensors, writing and reading a bundle, messages. */
#ifndef TN_TESTS_BUNDLE_KIT_H
#define TN_TESTS_BUNDLE_KIT_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/formats/bundle/bundle.h>

#include "conformance/support/tap.h"

static tn_error err;

/* Nothing here depends on the disk, and waiting for it would take most of the time. */
int fsync(int fd) { return 0; }

static inline TN_UNUSED const char *scratch(const char *name)
{
  static char paths[32][300];
  static unsigned next;
  char *path = paths[next++ % 32];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

/* Makes a folder below the scratch folder and returns the path of a prefix in it. */
static inline TN_UNUSED const char *prefix_in(const char *folder)
{
  char name[100];
  mkdir(scratch(folder), 0700);
  snprintf(name, sizeof(name), "%s/model", folder);
  return scratch(name);
}

static inline TN_UNUSED size_t files_in(const char *folder)
{
  size_t n = 0;
  DIR *dir = opendir(scratch(folder));
  REQUIRE_PTR(dir);
  while (readdir(dir) != NULL) n++;
  closedir(dir);
  return n - 2;
}

static inline TN_UNUSED bool exists(const char *prefix, const char *end)
{
  char path[400];
  snprintf(path, sizeof(path), "%s%s", prefix, end);
  return access(path, F_OK) == 0;
}

static inline TN_UNUSED void write_file(const char *prefix, const char *end, const void *data, size_t size)
{
  char path[400];
  snprintf(path, sizeof(path), "%s%s", prefix, end);
  REQUIRE_OK(tn_file_save(path, data, size, &err), &err);
}

/* ---- tensors ---- */

static inline TN_UNUSED tn_tensor *numbers(tn_dtype dtype, int32_t rank, const int64_t *dims)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &err), &err);
  for (size_t i = 0; i < tn_tensor_bytes(t); i++)
    ((unsigned char *)tn_tensor_data(t))[i] = (unsigned char)(dtype == TN_BOOL ? i & 1 : i * 31 + (size_t)dtype);
  return t;
}

static inline TN_UNUSED tn_tensor *floats(int64_t n, float first)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, &n, 1, &t, &err), &err);
  for (int64_t i = 0; i < n; i++) ((float *)tn_tensor_data(t))[i] = first + (float)i;
  return t;
}

static inline TN_UNUSED void check_equal(const tn_tensor *found, const tn_tensor *wanted)
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

static inline TN_UNUSED tn__bundle_writer *open_writer(const char *prefix, unsigned shards)
{
  tn__bundle_writer *w = NULL;
  REQUIRE_OK(tn__bundle_writer_open(prefix, shards, &w, &err), &err);
  return w;
}

/* Adds a tensor and releases it. */
static inline TN_UNUSED void add(tn__bundle_writer *w, const char *key, tn_tensor *t)
{
  REQUIRE_OK(tn__bundle_writer_add(w, tn__slice_of(key), t, &err), &err);
  tn_tensor_unref(t);
}

static inline TN_UNUSED tn__store *open_store(const char *path)
{
  tn__store *store = NULL;
  REQUIRE_OK(tn__store_open(path, &store, &err), &err);
  return store;
}

static inline TN_UNUSED tn_status try_read(tn__store *store, const char *key, tn_tensor **out)
{
  const tn__stored *entry;
  *out = NULL;
  tn_error_clear(&err);
  tn_status s = tn__store_get(store, tn__slice_of(key), &entry, &err);
  return s == TN_OK ? tn__store_read(store, entry, out, &err) : s;
}

static inline TN_UNUSED tn_tensor *read_key(tn__store *store, const char *key)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(try_read(store, key, &t), &err);
  return t;
}

/* Reads a key and compares it; releases `wanted`. */
static inline TN_UNUSED void check_key(tn__store *store, const char *key, tn_tensor *wanted)
{
  tn_tensor *t = read_key(store, key);
  check_equal(t, wanted);
  tn_tensor_unref(t);
  tn_tensor_unref(wanted);
}

static inline TN_UNUSED void check_refused(const char *path, tn_status status, const char *part)
{
  tn__store *store = (tn__store *)&err;
  tn_error_clear(&err);
  CHECK_STATUS(tn__store_open(path, &store, &err), status, NULL);
  CHECK_NULL(store);
  CHECK_CONTAINS(tn_error_message(&err), part);
  tn_error_clear(&err);
}

static inline TN_UNUSED tn_tensor *texts(int64_t n)
{
  static const char *const some[] = { "short", "", "a longer text, which does not fit into an element", "\xc3\xa9",
                                      "x" };
  const char *list[5];
  for (int64_t i = 0; i < n; i++) list[i] = some[i % 5];
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_from_strings(&n, 1, list, NULL, &t, &err), &err);
  return t;
}


static inline TN_UNUSED tn_tensor *grid(int64_t y, int64_t x, int64_t rows, int64_t columns, bool strings)
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

static inline TN_UNUSED tn_status add_grid(tn__bundle_writer *w, const char *key, int64_t y, int64_t x, int64_t rows,
                                           int64_t columns, bool strings)
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

#endif
