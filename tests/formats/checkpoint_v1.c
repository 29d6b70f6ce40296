/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of version 1. The tests write their tables as TensorFlow's SaveSlices does. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <core/formats/checkpoint/checkpoint.h>
#include <core/formats/sink.h>
#include <core/formats/table/table.h>

#include "conformance/support/oom.h"

/* The number of a shard in a pattern. */
#define ANY "?????"

static tn_error err;

static const char *scratch(const char *name)
{
  static char paths[4][300];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

/* ---- writing checkpoints ---- */

/* One slice. Its elements are in field `field` of a TensorProto: numbers of `size` bytes; 0: varints, 1: strings. */
typedef struct slice {
  const char *name;
  int rank;
  int64_t starts[3], lengths[3]; /* -1: the whole dimension */
  uint32_t field;
  size_t size;
  const void *values;
  size_t n;
} slice;

/* A tensor of the list. */
typedef struct tensor {
  const char *name;
  int64_t dtype;
  int rank;
  int64_t dims[3];
} tensor;

static struct {
  int64_t version; /* min_consumer */
  bool no_list;
  const char *says; /* the name in the values of slices, NULL: the right one */
} special;

static void put_list(tn__sink *s, const tensor *tensors, size_t n)
{
  tn__sink_tag(s, 1, 2); /* meta */
  size_t meta = tn__sink_begin(s);
  for (size_t i = 0; i < n; i++) {
    tn__sink_tag(s, 1, 2);
    size_t place = tn__sink_begin(s);
    tn__sink_bytes(s, 1, tn__slice_of(tensors[i].name));
    tn__sink_tag(s, 2, 2);
    size_t shape = tn__sink_begin(s);
    for (int d = 0; d < tensors[i].rank; d++) {
      tn__sink_tag(s, 2, 2);
      size_t dim = tn__sink_begin(s);
      tn__sink_int(s, 1, (uint64_t)tensors[i].dims[d]);
      tn__sink_end(s, dim);
    }
    tn__sink_end(s, shape);
    tn__sink_int(s, 3, (uint64_t)tensors[i].dtype);
    tn__sink_end(s, place);
  }
  tn__sink_tag(s, 2, 2); /* versions */
  size_t versions = tn__sink_begin(s);
  tn__sink_int(s, 1, 1);
  if (special.version != 0) tn__sink_int(s, 2, (uint64_t)special.version);
  tn__sink_end(s, versions);
  tn__sink_end(s, meta);
}

static void put_values(tn__sink *s, const slice *x)
{
  const int64_t *numbers = x->values;
  const char *const *texts = x->values;
  if (x->n == 0) return;
  if (x->size == 1) {
    for (size_t i = 0; i < x->n; i++) tn__sink_bytes(s, x->field, tn__slice_of(texts[i]));
    return;
  }
  tn__sink_tag(s, x->field, 2);
  size_t place = tn__sink_begin(s);
  if (x->size > 1) tn__sink_put(s, x->values, x->size * x->n);
  for (size_t i = 0; x->size == 0 && i < x->n; i++) tn__sink_varint(s, (uint64_t)numbers[i]);
  tn__sink_end(s, place);
}

static void put_slice(tn__sink *s, const slice *x)
{
  tn__sink_tag(s, 2, 2); /* data */
  size_t data = tn__sink_begin(s);
  tn__sink_bytes(s, 1, tn__slice_of(special.says != NULL ? special.says : x->name));
  tn__sink_tag(s, 3, 2);
  size_t values = tn__sink_begin(s);
  put_values(s, x);
  tn__sink_end(s, values);
  tn__sink_end(s, data);
}

static tn_status add_slice(tn__table_writer *w, const slice *x)
{
  tn__arena arena;
  tn__slice key;
  tn__sink s = tn__sink_memory(&err);
  int64_t starts[3], lengths[3];
  memcpy(starts, x->starts, sizeof starts);
  memcpy(lengths, x->lengths, sizeof lengths);
  const tn__region region = { x->rank, starts, lengths };
  tn__arena_init(&arena, 256);
  put_slice(&s, x);
  tn_status st = tn__slice_key(tn__slice_of(x->name), &region, &arena, &key, &err);
  if (st == TN_OK) st = tn__table_writer_add(w, key, (tn__slice){ s.data, s.used }, &err);
  tn__sink_fini(&s);
  tn__arena_fini(&arena);
  return st;
}

/* Writes a table. Slices are in the order of their names and starts. */
static void write_table(const char *path, const tensor *tensors, size_t n, const slice *slices, size_t n_slices)
{
  tn__writer to;
  tn__table_writer *w = NULL;
  tn__sink s = tn__sink_memory(&err);
  tn_error_clear(&err);
  put_list(&s, tensors, n);
  REQUIRE_OK(tn__writer_open(&to, path, &err), &err);
  REQUIRE_OK(tn__table_writer_create(&to, &w, &err), &err);
  if (!special.no_list)
    REQUIRE_OK(tn__table_writer_add(w, (tn__slice){ "", 0 }, (tn__slice){ s.data, s.used }, &err), &err);
  for (size_t i = 0; i < n_slices; i++) REQUIRE_OK(add_slice(w, &slices[i]), &err);
  REQUIRE_OK(tn__table_writer_finish(w, &err), &err);
  tn__table_writer_destroy(w);
  REQUIRE_OK(tn__writer_commit(&to, &err), &err);
  tn__sink_fini(&s);
}

/* ---- reading them ---- */

static tn__store *open_store(const char *path)
{
  tn__store *store = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn__store_open(path, &store, &err), &err);
  REQUIRE_INT(store->kind->version, 1);
  return store;
}

static void check_refused(const char *path, tn_status status, const char *why)
{
  tn__store *store = (tn__store *)&err;
  tn_error_clear(&err);
  CHECK_STATUS(tn__store_open(path, &store, &err), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), why);
  CHECK_NULL(store);
}

static tn_tensor *read_tensor(tn__store *store, const char *key)
{
  const tn__stored *entry;
  tn_tensor *t = NULL;
  tn_error_clear(&err);
  REQUIRE_OK(tn__store_get(store, tn__slice_of(key), &entry, &err), &err);
  REQUIRE_OK(tn__store_read(store, entry, &t, &err), &err);
  return t;
}

static void check_tensor(tn__store *store, const char *key, const void *wanted, size_t bytes)
{
  tn_tensor *t = read_tensor(store, key);
  CHECK_INT(tn_tensor_bytes(t), bytes);
  if (tn_tensor_bytes(t) == bytes && bytes > 0) CHECK_BYTES(tn_tensor_data(t), wanted, bytes);
  tn_tensor_unref(t);
}

/* ---- tests ---- */

static const float floats[] = { 1, -2, 3.5F, 4, 5, 6 };
static const int64_t numbers[] = { 0, 1, -1, 127, -128, 100 };

#define WHOLE { 0, 0 }, { -1, -1 }

static const tensor one_tensor = { "x", TN_FLOAT, 2, { 2, 3 } };
static const slice one_slice = { "x", 2, WHOLE, 5, 4, floats, 6 };

/* Each dtype in the field that SaveSlices uses for it. */
static void checkpoint_v1__reads_every_type(void)
{
  static const double doubles[] = { 1, -2, 3.5, 4, 5, 1e300 };
  static const float complexes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
  static const double complexes2[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
  static const int64_t bools[] = { 0, 1, 1, 0, 1, 0 }, halves[] = { 0x3c00, 0xc000, 0, 1, 2, 3 };
  static const char *const texts[] = { "", "a", "two words", "b", "c", "" };
  static const struct {
    int64_t dtype;
    uint32_t field;
    size_t size;
    const void *values;
  } types[] = { { TN_FLOAT, 5, 4, floats },          { TN_DOUBLE, 6, 8, doubles },
                { TN_COMPLEX64, 9, 4, complexes },   { TN_COMPLEX128, 12, 8, complexes2 },
                { TN_INT64, 10, 0, numbers },        { TN_INT32, 7, 0, numbers },
                { TN_INT16, 7, 0, numbers },         { TN_INT8, 7, 0, numbers },
                { TN_UINT8, 7, 0, numbers },         { TN_UINT16, 7, 0, numbers },
                { TN_BOOL, 11, 0, bools },           { TN_HALF, 13, 0, halves },
                { TN_STRING, 8, 1, texts },          { TN_QINT8, 7, 0, numbers },
                { TN_QUINT8, 7, 0, numbers },        { TN_QINT32, 7, 0, numbers } };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    tn_dtype dtype = (tn_dtype)types[i].dtype;
    size_t parts = dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ? 2 : 1;
    const tensor t = { "x", dtype, 2, { 2, 3 } };
    const slice s = { "x", 2, WHOLE, types[i].field, types[i].size, types[i].values, 6 * parts };
    write_table(scratch("types"), &t, 1, &s, 1);
    tn__store *store = open_store(scratch("types"));
    tn_tensor *found = read_tensor(store, "x");
    CHECK_INT(tn_tensor_dtype(found), dtype);
    REQUIRE_INT(tn_tensor_elements(found), 6);
    size_t size = tn_dtype_size(dtype);
    for (int k = 0; k < 6; k++) {
      const char *at = (const char *)tn_tensor_data(found) + (size_t)k * size;
      if (dtype == TN_STRING)
        CHECK_STR(tn_string_data((const tn_string *)tn_tensor_data(found) + k, NULL), texts[k]);
      else if (types[i].size > 0)
        CHECK_BYTES(at, (const char *)types[i].values + (size_t)k * size, size);
      else /* the low bytes */
        CHECK_BYTES(at, (const int64_t *)types[i].values + k, size);
    }
    tn_tensor_unref(found);
    tn__store_close(store);
  }
}

static void checkpoint_v1__scalars_and_empty_tensors(void)
{
  const tensor tensors[] = { { "empty", TN_FLOAT, 2, { 0, 3 } }, { "scalar", TN_FLOAT, 0, { 0 } } };
  const slice slices[] = { { "empty", 2, WHOLE, 5, 4, NULL, 0 }, { "scalar", 0, { 0 }, { 0 }, 5, 4, floats + 2, 1 } };
  write_table(scratch("scalars"), tensors, 2, slices, 2);
  tn__store *store = open_store(scratch("scalars"));
  CHECK_INT(store->n, 2);
  CHECK(!store->entries[0].sliced && !store->entries[1].sliced);
  check_tensor(store, "empty", NULL, 0);
  check_tensor(store, "scalar", floats + 2, 4);
  tn__store_close(store);
}

static void checkpoint_v1__slices_are_put_together(void)
{
  static const int64_t left[] = { 1, 2, 11, 12, 21, 22 }, right[] = { 3, 13, 23 };
  static const int32_t whole[] = { 1, 2, 3, 11, 12, 13, 21, 22, 23 };
  const tensor t = { "part", TN_INT32, 2, { 3, 3 } };
  const slice slices[] = { { "part", 2, { 0, 0 }, { -1, 2 }, 7, 0, left, 6 },
                           { "part", 2, { 0, 2 }, { -1, 1 }, 7, 0, right, 3 } };
  write_table(scratch("parts"), &t, 1, slices, 2);
  tn__store *store = open_store(scratch("parts"));
  CHECK(store->entries[0].sliced);
  CHECK_INT(store->entries[0].n_parts, 2);
  CHECK_INT(store->entries[0].bytes, sizeof whole);
  check_tensor(store, "part", whole, sizeof whole);
  tn__store_close(store);
}

/* Two shards with the halves of x; y is only in the second one. */
static void write_shards(const char *prefix, int n)
{
  const tensor x = { "x", TN_FLOAT, 1, { 6 } };
  const tensor both[] = { { "y", TN_DOUBLE, 0, { 0 } }, { "x", TN_FLOAT, 1, { 6 } } };
  static const double y = 0.25;
  const slice first = { "x", 1, { 0 }, { 4 }, 5, 4, floats, 4 };
  const slice second[] = { { "x", 1, { 4 }, { 2 }, 5, 4, floats + 4, 2 }, { "y", 0, { 0 }, { 0 }, 6, 8, &y, 1 } };
  char name[100];
  snprintf(name, sizeof name, "%s-00000-of-%05d", prefix, n);
  write_table(scratch(name), &x, 1, &first, 1);
  snprintf(name, sizeof name, "%s-00001-of-%05d", prefix, n);
  write_table(scratch(name), both, 2, second, 2);
}

static void checkpoint_v1__shards_are_found_by_pattern_or_prefix(void)
{
  const double y = 0.25;
  write_shards("shards", 2);
  for (int i = 0; i < 2; i++) {
    tn__store *store = open_store(scratch(i == 0 ? "shards-" ANY "-of-00002" : "shards"));
    CHECK_INT(store->n, 2);
    CHECK_STR(store->entries[0].key, "x");
    check_tensor(store, "x", floats, sizeof floats);
    check_tensor(store, "y", &y, sizeof y);
    tn__store_close(store);
  }
}

static void checkpoint_v1__a_missing_shard_is_named(void)
{
  write_shards("gap", 3);
  check_refused(scratch("gap-" ANY "-of-00003"), TN_NOT_FOUND, "gap-00002-of-00003");
  check_refused(scratch("gap"), TN_NOT_FOUND, "gap-00002-of-00003");
  check_refused(scratch("none-" ANY "-of-00003"), TN_NOT_FOUND, "none-" ANY "-of-00003");
}

static void checkpoint_v1__two_sets_of_shards_need_the_pattern(void)
{
  write_shards("twice", 2);
  write_shards("twice", 3);
  check_refused(scratch("twice"), TN_INVALID_ARGUMENT, "; name one set of them");
  tn__store_close(open_store(scratch("twice-" ANY "-of-00002")));
}

static void checkpoint_v1__one_shard_has_its_own_part_only(void)
{
  const tn__stored *entry;
  tn_tensor *t = NULL;
  write_shards("alone", 2);
  tn__store *store = open_store(scratch("alone-00000-of-00002"));
  REQUIRE_OK(tn__store_get(store, tn__slice_of("x"), &entry, &err), &err);
  CHECK_STATUS(tn__store_read(store, entry, &t, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'x'");
  CHECK_NULL(t);
  tn__store_close(store);
}

static void checkpoint_v1__shards_must_agree(void)
{
  const tensor a = { "x", TN_FLOAT, 1, { 6 } }, b = { "x", TN_FLOAT, 1, { 7 } };
  write_table(scratch("odd-00000-of-00002"), &a, 1, NULL, 0);
  write_table(scratch("odd-00001-of-00002"), &b, 1, NULL, 0);
  check_refused(scratch("odd"), TN_DATA_LOSS,
                "odd-00001-of-00002': byte 0: tensor 'x' is float32 [7] here, and float32 [6] before");
}

/* ---- damage ---- */

static void check_damaged(const tensor *t, const slice *s, const char *why)
{
  write_table(scratch("damaged"), t, 1, s, 1);
  check_refused(scratch("damaged"), TN_DATA_LOSS, why);
  CHECK_CONTAINS(tn_error_message(&err), "damaged': byte ");
}

static void checkpoint_v1__slices_must_fit_their_tensor(void)
{
  slice s = one_slice;
  s.name = "z";
  check_damaged(&one_tensor, &s, "there is a slice of tensor 'z', which is not in the list of tensors");
  s = one_slice;
  s.n = 5;
  check_damaged(&one_tensor, &s, "a slice of tensor 'x' has 5 elements, wanted 6");
  s = one_slice;
  s.starts[0] = 1;
  s.lengths[0] = 2;
  check_damaged(&one_tensor, &s, "a slice of tensor 'x' does not lie within its shape [2,3]");
  s = one_slice;
  s.rank = 1;
  check_damaged(&one_tensor, &s, "does not lie within");
  s = one_slice;
  s.size = 3; /* 18 bytes: no whole number of floats */
  check_damaged(&one_tensor, &s, "are no elements of float32");
  special.says = "other";
  check_damaged(&one_tensor, &one_slice, "a slice of tensor 'x' says that it is one of 'other'");
  special.says = NULL;
}

static void checkpoint_v1__tensors_of_the_list_must_be_possible(void)
{
  static const struct {
    tensor t;
    const char *why;
  } cases[] = { { { "x", 77, 2, { 2, 3 } }, "has the type number 77, which is no type" },
                { { "x", 101, 2, { 2, 3 } }, "has the type number 101, which is no type" },
                { { "x", -1, 2, { 2, 3 } }, "which is no type" },
                { { "x", TN_FLOAT, 2, { -1, 3 } }, "which no tensor can have" },
                { { "x", TN_FLOAT, 2, { -2, 3 } }, "which no tensor can have" },
                { { "x", TN_FLOAT, 3, { (int64_t)1 << 32, (int64_t)1 << 32, 4 } }, "which no tensor can have" },
                { { "", TN_FLOAT, 2, { 2, 3 } }, "has no name" },
                { { "x", TN_FLOAT, 2, { (int64_t)1 << 30, (int64_t)1 << 29 } }, "has 6 elements, wanted" },
                { { "x", TN_RESOURCE, 2, { 2, 3 } }, "are no elements of resource" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_damaged(&cases[i].t, &one_slice, cases[i].why);
}

static void checkpoint_v1__other_tables_and_files_are_refused(void)
{
  special.no_list = true;
  check_damaged(&one_tensor, &one_slice, "the table has no list of tensors: it is no checkpoint (V1)");
  special.no_list = false;
  FILE *f = fopen(scratch("text"), "w");
  REQUIRE_PTR(f);
  fputs("this is a text", f);
  fclose(f);
  check_refused(scratch("text"), TN_DATA_LOSS, "text': byte 0: ");
}

static void checkpoint_v1__a_newer_version_is_refused(void)
{
  special.version = 9;
  write_table(scratch("newer"), &one_tensor, 1, &one_slice, 1);
  special.version = 0;
  check_refused(scratch("newer"), TN_INVALID_ARGUMENT, "needs a reader of version 9 of the format");
}

static void checkpoint_v1__a_missing_slice_is_damage_of_its_tensor_only(void)
{
  const tensor tensors[] = { one_tensor, { "y", TN_FLOAT, 1, { 2 } } };
  const slice y = { "y", 1, { 0 }, { -1 }, 5, 4, floats, 2 };
  const tn__stored *entry;
  tn_tensor *t = NULL;
  write_table(scratch("missing"), tensors, 2, &y, 1);
  tn__store *store = open_store(scratch("missing"));
  check_tensor(store, "y", floats, 8);
  REQUIRE_OK(tn__store_get(store, tn__slice_of("x"), &entry, &err), &err);
  CHECK_STATUS(tn__store_read(store, entry, &t, &err), TN_DATA_LOSS, NULL);
  CHECK_NULL(t);
  tn__store_close(store);
}

static size_t load(const char *path, unsigned char *to, size_t room)
{
  FILE *f = fopen(path, "rb");
  REQUIRE_PTR(f);
  size_t n = fread(to, 1, room, f);
  fclose(f);
  return n;
}

static void store_bytes(const char *path, const unsigned char *bytes, size_t n)
{
  FILE *f = fopen(path, "wb");
  REQUIRE_PTR(f);
  fwrite(bytes, 1, n, f);
  fclose(f);
}

static void write_several(const char *path)
{
  const tensor tensors[] = { { "i", TN_INT64, 1, { 6 } }, one_tensor };
  const slice slices[] = { { "i", 1, { 0 }, { -1 }, 10, 0, numbers, 6 }, one_slice };
  write_table(path, tensors, 2, slices, 2);
}

static void checkpoint_v1__every_cut_and_changed_byte_gives_a_status(void)
{
  static unsigned char whole[2000], copy[2000];
  write_several(scratch("whole"));
  size_t n = load(scratch("whole"), whole, sizeof whole);
  for (size_t i = 0; i < 2 * n; i++) {
    tn__store *store = NULL;
    memcpy(copy, whole, n);
    if (i >= n) copy[i - n] ^= 0x21;
    store_bytes(scratch("changed"), copy, i < n ? i : n);
    tn_error_clear(&err);
    tn_status st = tn__store_open(scratch("changed"), &store, &err);
    /* Footer: 16 bytes of handles of variable length and 24 unused ones. */
    if (i < n || st != TN_OK) {
      CHECK_STATUS(st, TN_DATA_LOSS, &err);
      CHECK_CONTAINS(tn_error_message(&err), "changed': byte ");
    } else {
      check_tensor(store, "i", numbers, sizeof numbers);
    }
    tn__store_close(store);
  }
}

static void checkpoint_v1__files_that_change_while_open_are_damage(void)
{
  static unsigned char whole[2000];
  static const char *const keys[] = { "i", "x" };
  write_several(scratch("open"));
  size_t n = load(scratch("open"), whole, sizeof whole);
  for (int k = 0; k < 2; k++) {
    const tn__stored *entry;
    tn_tensor *t = NULL;
    store_bytes(scratch("open"), whole, n);
    tn__store *store = open_store(scratch("open"));
    int fd = open(scratch("open"), O_WRONLY);
    for (size_t i = 0; i < n - 48; i++) {
      unsigned char byte = (unsigned char)(whole[i] ^ 1);
      CHECK_INT(pwrite(fd, &byte, 1, (off_t)i), 1);
    }
    close(fd);
    REQUIRE_OK(tn__store_get(store, tn__slice_of(keys[k]), &entry, &err), &err);
    CHECK_STATUS(tn__store_read(store, entry, &t, &err), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "open': byte ");
    CHECK_NULL(t);
    tn__store_close(store);
  }
}

static void checkpoint_v1__a_replaced_file_can_still_be_read(void)
{
  write_several(scratch("old"));
  tn__store *store = open_store(scratch("old"));
  unlink(scratch("old"));
  check_tensor(store, "i", numbers, sizeof numbers);
  check_tensor(store, "x", floats, sizeof floats);
  tn__store_close(store);
}

/* ---- memory ---- */

static tn_status open_and_read(void *path)
{
  tn__store *store = NULL;
  tn_error_clear(&err);
  tn_status st = tn__store_open(path, &store, &err);
  for (size_t i = 0; st == TN_OK && i < store->n; i++) {
    tn_tensor *t = NULL;
    st = tn__store_read(store, &store->entries[i], &t, &err);
    tn_tensor_unref(t);
  }
  tn__store_close(store);
  tn_error_clear(&err);
  return st;
}

static void checkpoint_v1__nothing_leaks_without_memory(void)
{
  char path[300];
  write_several(scratch("sweep"));
  snprintf(path, sizeof path, "%s", scratch("sweep"));
  tn_test_oom_sweep(open_and_read, path);
  write_shards("sweeps", 2);
  snprintf(path, sizeof path, "%s", scratch("sweeps-" ANY "-of-00002"));
  tn_test_oom_sweep(open_and_read, path);
}

/* Values are not kept: what is open takes far less memory than the file. */
static void checkpoint_v1__an_open_checkpoint_is_small(void)
{
  enum { N = 1 << 20 };
  float *values = calloc(N, sizeof *values);
  REQUIRE_PTR(values);
  values[N - 1] = 7;
  const tensor t = { "big", TN_FLOAT, 1, { N } };
  const slice s = { "big", 1, { 0 }, { -1 }, 5, 4, values, N };
  write_table(scratch("big"), &t, 1, &s, 1);
  uint64_t before = tn_test_live_bytes();
  tn__store *store = open_store(scratch("big"));
  CHECK_MSG(tn_test_live_bytes() - before < 100000, "%llu bytes",
            (unsigned long long)(tn_test_live_bytes() - before));
  check_tensor(store, "big", values, N * sizeof *values);
  CHECK(tn_test_live_bytes() - before < 100000);
  tn__store_close(store);
  free(values);
}

TAP_MAIN(
  TAP_TEST(checkpoint_v1__reads_every_type),
  TAP_TEST(checkpoint_v1__scalars_and_empty_tensors),
  TAP_TEST(checkpoint_v1__slices_are_put_together),
  TAP_TEST(checkpoint_v1__shards_are_found_by_pattern_or_prefix),
  TAP_TEST(checkpoint_v1__a_missing_shard_is_named),
  TAP_TEST(checkpoint_v1__two_sets_of_shards_need_the_pattern),
  TAP_TEST(checkpoint_v1__one_shard_has_its_own_part_only),
  TAP_TEST(checkpoint_v1__shards_must_agree),
  TAP_TEST(checkpoint_v1__slices_must_fit_their_tensor),
  TAP_TEST(checkpoint_v1__tensors_of_the_list_must_be_possible),
  TAP_TEST(checkpoint_v1__other_tables_and_files_are_refused),
  TAP_TEST(checkpoint_v1__a_newer_version_is_refused),
  TAP_TEST(checkpoint_v1__a_missing_slice_is_damage_of_its_tensor_only),
  TAP_TEST(checkpoint_v1__every_cut_and_changed_byte_gives_a_status),
  TAP_TEST(checkpoint_v1__files_that_change_while_open_are_damage),
  TAP_TEST(checkpoint_v1__a_replaced_file_can_still_be_read),
  TAP_TEST(checkpoint_v1__nothing_leaks_without_memory),
  TAP_TEST(checkpoint_v1__an_open_checkpoint_is_small))
