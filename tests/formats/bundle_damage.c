/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged checkpoints of version 2: indices that say what cannot be, changed and truncated files. */
#define _GNU_SOURCE
#include <core/formats/sink.h>
#include <core/formats/table/crc32c.h>
#include <core/formats/table/table.h>

#include "conformance/support/oom.h"
#include "tests/support/bundle_kit.h"

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

static void bundle_damage__impossible_entries_are_rejected(void)
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
static void bundle_damage__false_sizes_do_not_allocate(void)
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
static void bundle_damage__handles_are_listed_but_not_read(void)
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

static void bundle_damage__slices_must_fit_their_tensor(void)
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
static void bundle_damage__a_slice_that_is_not_listed_is_no_tensor(void)
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

static void bundle_damage__the_header_says_whether_this_reader_fits(void)
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

static void bundle_damage__an_entry_that_is_no_message_is_rejected(void)
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
static void bundle_damage__mutated_files_give_a_status(void)
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

static void bundle_damage__every_truncated_file_gives_a_status(void)
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

static void bundle_damage__a_missing_data_file_harms_only_its_tensors(void)
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

static void bundle_damage__a_file_changed_while_open_gives_a_status(void)
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


TAP_MAIN(
  TAP_TEST(bundle_damage__impossible_entries_are_rejected),
  TAP_TEST(bundle_damage__false_sizes_do_not_allocate),
  TAP_TEST(bundle_damage__handles_are_listed_but_not_read),
  TAP_TEST(bundle_damage__slices_must_fit_their_tensor),
  TAP_TEST(bundle_damage__a_slice_that_is_not_listed_is_no_tensor),
  TAP_TEST(bundle_damage__the_header_says_whether_this_reader_fits),
  TAP_TEST(bundle_damage__an_entry_that_is_no_message_is_rejected),
  TAP_TEST(bundle_damage__mutated_files_give_a_status),
  TAP_TEST(bundle_damage__every_truncated_file_gives_a_status),
  TAP_TEST(bundle_damage__a_missing_data_file_harms_only_its_tensors),
  TAP_TEST(bundle_damage__a_file_changed_while_open_gives_a_status))
