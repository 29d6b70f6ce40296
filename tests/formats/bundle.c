/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of version 2, written and read. That TensorFlow reads the same files is shown by the cases of models, not
 * here. How a bundle replaces a former one is in bundle_replace.c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>

#include "conformance/support/oom.h"
#include "tests/support/bundle_kit.h"

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

/* ---- many files and threads ---- */

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

static void bundle__nothing_leaks_without_memory(void)
{
  static char path[300];
  snprintf(path, sizeof(path), "%s", prefix_in("sweep"));
  tn_test_oom_sweep(save_and_load, path);
  CHECK(files_in("sweep") <= 4);
  check_slices(false);
  snprintf(path, sizeof(path), "%s", scratch("slices/model"));
  tn_test_oom_sweep(read_regions, path);
}

TAP_MAIN(
  TAP_TEST(bundle__every_dtype_round_trips),
  TAP_TEST(bundle__tensors_are_distributed_over_data_files),
  TAP_TEST(bundle__strings_round_trip),
  TAP_TEST(bundle__keys_are_any_bytes),
  TAP_TEST(bundle__empty_tensors_need_no_data_file),
  TAP_TEST(bundle__a_bundle_may_be_empty),
  TAP_TEST(bundle__large_tensors_are_read_on_several_threads),
  TAP_TEST(bundle__a_damaged_tensor_fails_all_of_a_read),
  TAP_TEST(bundle__slices_are_put_together),
  TAP_TEST(bundle__slices_of_strings_are_put_together),
  TAP_TEST(bundle__large_slices_are_put_together),
  TAP_TEST(bundle__slices_must_cover_what_is_read),
  TAP_TEST(bundle__errors_name_tensors_that_cannot_be_written),
  TAP_TEST(bundle__an_abandoned_bundle_leaves_nothing),
  TAP_TEST(bundle__many_data_files),
  TAP_TEST(bundle__any_number_of_threads_reads_a_checkpoint),
  TAP_TEST(bundle__nothing_leaks_without_memory))
