/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and their CRC. Tables that the library would not write are made by hand. */
#define _GNU_SOURCE
#include "conformance/support/tap.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <core/formats/table/crc32c.h>
#include <core/formats/table/table.h>

#include "conformance/support/oom.h"

static tn_error err;

static const char *scratch(const char *name)
{
  static char paths[4][300];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof(paths[0]), "%s/%s", tap_scratch_dir(), name);
  return path;
}

static tn__slice text(const char *s) { return tn__slice_of(s); }

/* ---- handmade tables ---- */

static struct {
  unsigned char bytes[400000];
  size_t size;
} file;

typedef struct place {
  uint64_t offset, size;
} place;

/* The contents of a block that is being made. */
static struct {
  unsigned char bytes[200000];
  size_t size;
} block;

static void put(const void *bytes, size_t n)
{
  if (n > 0) memcpy(block.bytes + block.size, bytes, n);
  block.size += n;
}

static void put_word(uint32_t word) { put(&word, sizeof(word)); }

static void put_varint(uint64_t value)
{
  for (; value >= 0x80; value >>= 7) put((const unsigned char[]){ (unsigned char)(value | 0x80) }, 1);
  put((const unsigned char[]){ (unsigned char)value }, 1);
}

static void put_entry(size_t shared, const char *further, const char *value)
{
  put_varint(shared);
  put_varint(strlen(further));
  put_varint(strlen(value));
  put(further, strlen(further));
  put(value, strlen(value));
}

/* Ends the block that is being made and puts it into the file. */
static place add_block(unsigned char compression)
{
  place at = { file.size, block.size };
  put(&compression, 1);
  uint32_t crc = tn__crc32c_mask(tn__crc32c(0, block.bytes, block.size));
  memcpy(file.bytes + file.size, block.bytes, block.size);
  memcpy(file.bytes + file.size + block.size, &crc, sizeof(crc));
  file.size += block.size + sizeof(crc);
  block.size = 0;
  return at;
}

static place add_plain(void)
{
  put_word(0);
  put_word(1);
  return add_block(0);
}

static void begin(void) { file.size = block.size = 0; }

static void put_handle(const char *key, place at)
{
  put_varint(0);
  put_varint(strlen(key));
  size_t size = block.size++, from = block.size;
  put(key, strlen(key));
  put_varint(at.offset);
  put_varint(at.size);
  block.bytes[size] = (unsigned char)(block.size - from - strlen(key));
}

static void add_footer(place meta, place index)
{
  static const unsigned char magic[] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };
  block.size = 0;
  put_varint(meta.offset);
  put_varint(meta.size);
  put_varint(index.offset);
  put_varint(index.size);
  memset(block.bytes + block.size, 0, 40 - block.size);
  block.size = 40;
  put(magic, 8);
  memcpy(file.bytes + file.size, block.bytes, 48);
  file.size += 48;
  block.size = 0;
}

/* Ends a file whose index, without its restart array, is the block that is being made. */
static void finish(void)
{
  place index = add_plain(), meta = add_plain();
  add_footer(meta, index);
}

/* Ends a file with one data block. */
static void finish_with(place data)
{
  put_handle("z", data);
  finish();
}

/* ---- reading ---- */

/* Opens the handmade table and reads all of it; *n is the number of entries. */
static tn_status walk(size_t *n)
{
  tn__table *table = NULL;
  tn__slice key = { "", 0 }, value;
  const char *path = scratch("made.index");
  tn_error_clear(&err);
  *n = 0;
  REQUIRE_OK(tn_file_save(path, file.bytes, file.size, &err), &err);
  tn_status s = tn__table_open(path, &table, &err);
  CHECK_MSG((s == TN_OK) == (table != NULL), "status %d", (int)s);
  while (s == TN_OK && key.data != NULL) {
    s = tn__table_next(table, &key, &value, &err);
    *n += key.data != NULL;
  }
  tn__table_close(table);
  return s;
}

static void check_refused(tn_status status, const char *part)
{
  size_t n;
  CHECK_STATUS(walk(&n), status, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "made.index'");
  CHECK_CONTAINS(tn_error_message(&err), part);
}

static void check_entries(size_t wanted)
{
  size_t n;
  CHECK_OK(walk(&n), &err);
  CHECK_INT(n, wanted);
}

/* The file with one data block, which is being made, is refused. */
static void check_block_refused(const char *part)
{
  finish_with(add_block(0));
  check_refused(TN_DATA_LOSS, part);
}

static void table__reads_tables_of_tensorflow(void)
{
  static const char *const keys[] = { "", "_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                                      "step/.ATTRIBUTES/VARIABLE_VALUE", "w/.ATTRIBUTES/VARIABLE_VALUE" };
  static const size_t sizes[] = { 6, 14, 13, 11, 21 };
  static const char *const files[] = { "bundle", "packed" };
  for (int f = 0; f < 2; f++) {
    tn__table *table;
    tn__slice key, value;
    char path[100];
    snprintf(path, sizeof(path), "fuzz/corpus/fuzz_table/%s.index", files[f]);
    tn_error_clear(&err);
    tn_status s = tn__table_open(tap_source_path(path), &table, &err);
    if (f == 1 && (s == TN_UNAVAILABLE || s == TN_UNIMPLEMENTED)) TAP_SKIP("no libsnappy");
    REQUIRE_OK(s, &err);
    for (int i = 0; i < 5; i++) {
      REQUIRE_OK(tn__table_next(table, &key, &value, &err), &err);
      CHECK_MSG(tn__slice_is(key, keys[i]), "key %d is '%.*s'", i, (int)key.size, key.data);
      CHECK_INT(value.size, sizes[i]);
      CHECK_INT(tn__table_offset(table), 0);
    }
    REQUIRE_OK(tn__table_next(table, &key, &value, &err), &err);
    CHECK_NULL(key.data);
    REQUIRE_OK(tn__table_next(table, &key, &value, &err), &err); /* still at the end */
    CHECK_NULL(key.data);
    tn__table_close(table);
  }
}

static void table__errors_name_files_that_are_no_tables(void)
{
  tn__table *table;
  tn_error_clear(&err);
  CHECK_STATUS(tn__table_open(scratch("nothing.index"), &table, &err), TN_NOT_FOUND, NULL);
  CHECK_NULL(table);
  tn_error_clear(&err);
  CHECK_STATUS(tn__table_open(tap_scratch_dir(), &table, &err), TN_INVALID_ARGUMENT, NULL);
  begin();
  check_refused(TN_DATA_LOSS, "byte 0: the file has 0 bytes, a table has 48 at least");
  memset(file.bytes, 'x', file.size = 100);
  check_refused(TN_DATA_LOSS, "byte 92: a table's magic number is not there");
  CHECK(!tn__table_is((tn__slice){ (const char *)file.bytes, 100 }));
  begin();
  finish();
  CHECK(tn__table_is((tn__slice){ (const char *)file.bytes, file.size }));
  CHECK(!tn__table_is((tn__slice){ (const char *)file.bytes, file.size - 1 }));
  CHECK(!tn__table_is((tn__slice){ NULL, 0 }));
  check_entries(0);
}

static void table__keys_and_values_may_be_empty(void)
{
  begin();
  put_entry(0, "", "");
  put_entry(0, "a", "");
  put_entry(1, "b", "value");
  finish_with(add_plain());
  check_entries(3);
}

/* ---- damage ---- */

static void make_sound(void)
{
  begin();
  put_entry(0, "alpha", "one");
  put_entry(2, "pine", "two");
  place first = add_plain();
  put_entry(0, "beta", "three");
  place second = add_plain();
  put_handle("ar", first);
  put_handle("c", second);
  finish();
}

static void table__every_truncated_file_is_rejected(void)
{
  size_t n;
  make_sound();
  check_entries(3);
  for (size_t whole = file.size; file.size-- > 0;) {
    CHECK_MSG(walk(&n) == TN_DATA_LOSS, "%zu of %zu bytes", file.size, whole);
    CHECK_CONTAINS(tn_error_message(&err), "made.index': byte ");
    if (file.size == 0) break;
  }
}

/* All changes are noticed but those of bytes that mean nothing: the metaindex and the padding of the footer. */
static void table__every_changed_bit_of_a_block_is_noticed(void)
{
  size_t n;
  make_sound();
  size_t meta = file.size - 48 - 13;
  for (size_t bit = 0; bit < file.size * 8; bit++) {
    file.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    tn_status s = walk(&n);
    if (bit / 8 < meta || bit / 8 >= file.size - 8)
      CHECK_MSG(s == TN_DATA_LOSS, "bit %zu: status %d", bit, (int)s);
    else
      CHECK_MSG(s == TN_DATA_LOSS || (s == TN_OK && n == 3), "bit %zu: status %d", bit, (int)s);
    file.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
}

static void table__errors_name_the_byte_of_a_damaged_block(void)
{
  make_sound();
  file.bytes[28]++;
  check_refused(TN_DATA_LOSS, "made.index': byte 0: the block of 29 bytes is damaged: its CRC is ");
  file.bytes[28]--;
  file.bytes[40]++;
  check_refused(TN_DATA_LOSS, "made.index': byte 34: the block of 20 bytes is damaged: its CRC is ");
  file.bytes[40]--;
  file.bytes[60]++;
  check_refused(TN_DATA_LOSS, "made.index': byte 59: the block of ");
}

static void table__keys_ascend(void)
{
  begin();
  put_entry(0, "ab", "1");
  put_entry(1, "a", "2");
  put_word(0);
  put_word(1);
  check_block_refused("byte 6: the entry's key is not after the key of the entry before");
  begin();
  put_entry(0, "ab", "1");
  put_entry(2, "", "2");
  put_word(0);
  put_word(1);
  check_block_refused("byte 6: the entry's key is not after");
  begin();
  put_entry(0, "b", "1");
  place first = add_plain();
  put_entry(0, "a", "2");
  place second = add_plain();
  put_handle("b", first);
  put_handle("c", second);
  finish();
  check_refused(TN_DATA_LOSS, "byte 18: the entry's key is not after");
  begin();
  put_entry(0, "b", "1");
  first = add_plain();
  put_handle("a", first);
  finish();
  check_refused(TN_DATA_LOSS, "byte 0: the last key of the block is after its key in the index at byte 18");
}

static void table__entries_stay_within_their_block(void)
{
  begin();
  put_varint(1);
  put_varint(1);
  put_varint(0);
  put("a", 1);
  put_word(0);
  put_word(1);
  check_block_refused("byte 0: the entry's key shares more bytes with the key before than that one has");
  begin();
  put("\0\5\0abcd", 7);
  put_word(0);
  put_word(1);
  check_block_refused("byte 0: the entry is longer than its block");
  begin();
  put("\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1a", 13);
  put_word(0);
  put_word(1);
  check_block_refused("byte 0: the entry is longer than its block");
  begin();
  put("\0\1\x80", 3);
  put_word(0);
  put_word(1);
  check_block_refused("byte 0: the entry is cut short");
}

static void table__restart_points_are_entries_with_full_keys(void)
{
  begin();
  put("abc", 3);
  check_block_refused("byte 0: a block of a table has 4 bytes at least");
  begin();
  put_entry(0, "a", "1");
  put_word(2);
  check_block_refused("byte 5: the block has more restart points than there is room for");
  begin();
  put_entry(0, "a", "1");
  put_word(0);
  check_block_refused("byte 5: the block has entries, but no restart point");
  begin();
  put_entry(0, "a", "1");
  put_word(5);
  put_word(1);
  check_block_refused("byte 5: the first restart point is not the first entry");
  begin();
  put_entry(0, "a", "1");
  put_word(0);
  put_word(5);
  put_word(2);
  check_block_refused("byte 9: the restart point is at no entry");
  begin();
  put_entry(0, "a", "1");
  put_entry(0, "b", "2");
  put_word(0);
  put_word(4);
  put_word(2);
  check_block_refused("byte 14: the restart point is at no entry");
  begin();
  put_entry(0, "a", "1");
  put_entry(1, "b", "2");
  put_word(0);
  put_word(5);
  put_word(2);
  check_block_refused("byte 5: the entry's key shares more bytes");
  begin();
  put_word(0);
  finish_with(add_block(0));
  check_entries(0); /* no restart points, and no entries */
}

static void table__unknown_compressions_are_rejected(void)
{
  begin();
  put_entry(0, "a", "1");
  put_word(0);
  put_word(1);
  finish_with(add_block(7));
  check_refused(TN_DATA_LOSS, "byte 13: the block has compression 7, wanted 0 (none) or 1 (snappy)");
}

/* ---- blocks that a hostile index names ---- */

static void table__blocks_lie_within_the_file(void)
{
  static const place places[] = { { 0, (uint64_t)1 << 40 },
                                  { (uint64_t)1 << 40, 8 },
                                  { UINT64_MAX, UINT64_MAX },
                                  { 8, UINT64_MAX - 8 },
                                  { 0, UINT64_MAX - 4 } };
  for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
    uint64_t live = tn_test_live_bytes();
    begin();
    finish_with(places[i]);
    check_refused(TN_DATA_LOSS, "the index at byte 0 says that a block has ");
    begin();
    place meta = add_plain();
    add_footer(meta, places[i]);
    check_refused(TN_DATA_LOSS, "byte 13: the footer says that the index has ");
    begin();
    place index = add_plain();
    add_footer(places[i], index);
    check_refused(TN_DATA_LOSS, "byte 13: the footer says that the metaindex has ");
    tn_error_clear(&err);
    CHECK_INT(tn_test_live_bytes(), live);
  }
  begin();
  put_entry(0, "a", "\x80");
  finish();
  check_refused(TN_DATA_LOSS, "the index at byte 0: an entry is not the offset and size of a block");
}

static void table__no_block_is_read_twice(void)
{
  begin();
  place data = add_plain(); /* without entries, so that no key repeats */
  put_handle("a", data);
  put_handle("b", data);
  finish();
  check_refused(TN_DATA_LOSS,
                "the index at byte 13 says that a block has 8 bytes at byte 0, wanted one between bytes 13 and ");
}

/* A key that shares all but its end with the one before takes few bytes of the file. */
static void table__long_keys_of_a_small_file_are_refused(void)
{
  static char long_key[60001];
  memset(long_key, 'k', 60000);
  begin();
  put_entry(0, long_key, "");
  for (int i = 0; i < 2000; i++) put_entry(60000, (const char[]){ (char)('A' + i / 60), (char)('A' + i % 60), 0 }, "");
  finish_with(add_plain());
  check_refused(TN_RESOURCE_EXHAUSTED, "byte 0: the keys up to this block take ");
}

/* ---- compressed blocks ---- */

/* Whether this build can unpack blocks. */
static bool have_snappy(void)
{
  size_t n;
  begin();
  put("\4\x0c\0\0\0\0", 6); /* 4 bytes, stored as they are */
  finish_with(add_block(1));
  tn_status s = walk(&n);
  return s != TN_UNAVAILABLE && s != TN_UNIMPLEMENTED;
}

static void table__densely_packed_blocks_are_read(void)
{
  if (!have_snappy()) TAP_SKIP("no libsnappy");
  enum { COPIES = 1000 }; /* of 64 zeros each */
  begin();
  put_varint(7 + COPIES * 64 + 8);
  put("\x18\0\1\x81\xf4\3k\0",
      8); /* stored: an entry with a key of one byte and a value of 64001 zeros, the first of them */
  for (int i = 0; i < COPIES; i++) put("\xfe\1\0", 3);
  put("\x1c\0\0\0\0\1\0\0\0", 9);
  finish_with(add_block(1));
  check_entries(1);
}

static void table__damaged_packed_blocks_are_rejected(void)
{
  size_t n;
  begin();
  put("\xff\xff\xff\xff\x0f\0\0\0\0\0", 10);
  finish_with(add_block(1));
  check_refused(TN_DATA_LOSS, "byte 0: the compressed block of 10 bytes is damaged: its first bytes are no size that ");
  begin();
  put("\x80", 1);
  finish_with(add_block(1));
  check_refused(TN_DATA_LOSS, "its first bytes are no size that ");
  if (!have_snappy()) TAP_SKIP("no libsnappy");
  static const char *const bad[] = { "\4\x0c\1\1", "\4\xfe\1\1", "\5\x0c\1\1\1\1" };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    begin();
    put(bad[i], strlen(bad[i]));
    finish_with(add_block(1));
    CHECK_STATUS(walk(&n), TN_DATA_LOSS, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "bytes cannot be unpacked");
  }
  begin();
  put("\x0d\x30\0\5\1k1\0\0\0\0\1\0\0\0", 15);
  finish_with(add_block(1));
  check_refused(TN_DATA_LOSS, "byte 0 of the unpacked block at byte 0: the entry is longer than its block");
}

/* ---- writing ---- */

enum { MANY = 20000 };

/* Entry i of a large table: keys with long common parts, and values of some sizes, one of them larger than a block. */
static void entry_of(int i, char key[100], tn__slice *value)
{
  static char bytes[400000];
  snprintf(key, 100, "model/layer_%05d/%s", i / 4, (const char *const[]){ "beta", "bias", "gamma", "kernel" }[i % 4]);
  if (i == 0) key[0] = 0;
  *value = (tn__slice){ bytes, i == 777 ? sizeof(bytes) : (size_t)(i % 50) };
  memset(bytes, i, value->size);
}

/* Writes entries 0 to n - 1. */
static tn_status write_many(const char *path, int n)
{
  tn__writer to;
  tn__table_writer *w = NULL;
  tn_status s = tn__writer_open(&to, path, &err);
  if (s != TN_OK) return s;
  s = tn__table_writer_create(&to, &w, &err);
  for (int i = 0; s == TN_OK && i < n; i++) {
    char key[100];
    tn__slice value;
    entry_of(i, key, &value);
    s = tn__table_writer_add(w, text(key), value, &err);
  }
  if (s == TN_OK) s = tn__table_writer_finish(w, &err);
  tn__table_writer_destroy(w);
  if (s == TN_OK) return tn__writer_commit(&to, &err);
  tn__writer_abandon(&to);
  return s;
}

static tn_status read_many(const char *path, int n)
{
  tn__table *table;
  tn__slice key = { "", 0 }, value, wanted;
  char wanted_key[100];
  int i = 0;
  tn_status s = tn__table_open(path, &table, &err);
  for (; s == TN_OK && key.data != NULL; i++) {
    s = tn__table_next(table, &key, &value, &err);
    if (s != TN_OK || key.data == NULL) break;
    entry_of(i, wanted_key, &wanted);
    if (!tn__slice_is(key, wanted_key) || !tn__slice_equal(value, wanted)) {
      FAIL("entry %d has key '%.*s'", i, (int)key.size, key.data);
      break;
    }
  }
  tn__table_close(table);
  if (s == TN_OK) CHECK_INT(i, n);
  return s;
}

static void table__entries_round_trip(void)
{
  static const int counts[] = { 0, 1, 2, 16, 17, 1000, MANY };
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
    tn_error_clear(&err);
    REQUIRE_OK(write_many(scratch("many.index"), counts[i]), &err);
    REQUIRE_OK(read_many(scratch("many.index"), counts[i]), &err);
  }
}

/* Writes the entries of a table to another file, and compares the files. */
static bool copy_is_equal(const char *path)
{
  tn__table *table;
  tn__writer to;
  tn__table_writer *w;
  tn__slice key = { "", 0 }, value;
  size_t sizes[2] = { 0, 0 };
  void *bytes[2];
  const char *copy = scratch("copy.index");
  tn_error_clear(&err);
  REQUIRE_OK(tn__table_open(path, &table, &err), &err);
  REQUIRE_OK(tn__writer_open(&to, copy, &err), &err);
  REQUIRE_OK(tn__table_writer_create(&to, &w, &err), &err);
  for (;;) {
    REQUIRE_OK(tn__table_next(table, &key, &value, &err), &err);
    if (key.data == NULL) break;
    REQUIRE_OK(tn__table_writer_add(w, key, value, &err), &err);
  }
  REQUIRE_OK(tn__table_writer_finish(w, &err), &err);
  tn__table_writer_destroy(w);
  tn__table_close(table);
  REQUIRE_OK(tn__writer_commit(&to, &err), &err);
  for (int i = 0; i < 2; i++) {
    FILE *f = fopen(i == 0 ? path : copy, "rb");
    REQUIRE_PTR(f);
    bytes[i] = malloc((size_t)1 << 24);
    REQUIRE_PTR(bytes[i]);
    sizes[i] = fread(bytes[i], 1, (size_t)1 << 24, f);
    fclose(f);
  }
  bool equal = sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
  free(bytes[0]);
  free(bytes[1]);
  return equal;
}

static void table__equal_entries_give_the_bytes_of_tensorflow(void)
{
  CHECK(copy_is_equal(tap_source_path("fuzz/corpus/fuzz_table/bundle.index")));
}

static int n_files;

static int try_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
  size_t n = strlen(path);
  (void)st, (void)where;
  if (type != FTW_F || n < 6 || strcmp(path + n - 6, ".index") != 0) return 0;
  n_files++;
  copy_is_equal(path); /* older files have compressed blocks, and so other bytes */
  return 0;
}

static void table__reads_the_checkpoints_of_models(void)
{
  const char *root = getenv("TENON_MODELS");
  if (root == NULL) TAP_SKIP("no models: set TENON_MODELS to their folder");
  if (!have_snappy()) TAP_SKIP("no libsnappy");
  CHECK_INT(nftw(root, try_file, 20, FTW_PHYS), 0);
  tap_note("%d tables", n_files);
}

static void table__keys_that_do_not_ascend_are_not_written(void)
{
  tn__writer to;
  tn__table_writer *w;
  tn_error_clear(&err);
  REQUIRE_OK(tn__writer_open(&to, scratch("order.index"), &err), &err);
  REQUIRE_OK(tn__table_writer_create(&to, &w, &err), &err);
  REQUIRE_OK(tn__table_writer_add(w, text("b"), text("1"), &err), &err);
  static const char *const before[] = { "", "a", "b" };
  for (int i = 0; i < 3; i++) {
    tn_error_clear(&err);
    CHECK_STATUS(tn__table_writer_add(w, text(before[i]), text(""), &err), TN_INVALID_ARGUMENT, NULL);
    CHECK_CONTAINS(tn_error_message(&err), "order.index': the keys of a table ascend, and '");
  }
  tn_error_clear(&err);
  CHECK_OK(tn__table_writer_add(w, text("b\xff"), text(""), &err),
           &err); /* bytes are unsigned, the writer still works */
  CHECK_OK(tn__table_writer_add(w, text("b\xff\1"), text(""), &err), &err);
  CHECK_OK(tn__table_writer_finish(w, &err), &err);
  tn__table_writer_destroy(w);
  CHECK_OK(tn__writer_commit(&to, &err), &err);
}

static void table__a_failed_write_is_reported(void)
{
  if (access("/dev/full", W_OK) != 0) TAP_SKIP("no /dev/full");
  tn__writer to;
  tn__table_writer *w;
  char key[100];
  tn__slice value;
  tn_status s = TN_OK;
  tn_error_clear(&err);
  CHECK_STATUS(write_many("/dev/full", 1), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "cannot write '/dev/full'");
  tn_error_clear(&err);
  REQUIRE_OK(tn__writer_open(&to, "/dev/full", &err), &err);
  REQUIRE_OK(tn__table_writer_create(&to, &w, &err), &err);
  for (int i = 0; s == TN_OK && i < MANY; i++) {
    entry_of(i, key, &value);
    s = tn__table_writer_add(w, text(key), value, &err);
  }
  CHECK_STATUS(s, TN_RESOURCE_EXHAUSTED, NULL);
  tn_error_clear(&err);
  CHECK_STATUS(tn__table_writer_finish(w, &err), TN_RESOURCE_EXHAUSTED, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "'/dev/full': the table is incomplete");
  tn__table_writer_destroy(w);
  tn__writer_abandon(&to);
}

static void table__a_file_truncated_while_open_gives_a_status(void)
{
  tn__table *table;
  tn__slice key, value;
  const char *path = scratch("cut.index");
  tn_error_clear(&err);
  REQUIRE_OK(write_many(path, 100), &err);
  REQUIRE_OK(tn__table_open(path, &table, &err), &err);
  REQUIRE_INT(truncate(path, 1000), 0);
  CHECK_STATUS(tn__table_next(table, &key, &value, &err), TN_DATA_LOSS, NULL);
  CHECK_CONTAINS(tn_error_message(&err), "cut.index' ends at byte 1000");
  CHECK_NULL(key.data);
  tn__table_close(table);
}

static tn_status write_and_read(void *path)
{
  tn_error_clear(&err);
  tn_status s = write_many(path, 800);
  if (s == TN_OK) s = read_many(path, 800);
  tn_error_clear(&err);
  return s;
}

static tn_status read_packed(void *path)
{
  tn__table *table = NULL;
  tn__slice key = { "", 0 }, value;
  tn_status s = tn__table_open(path, &table, NULL);
  while (s == TN_OK && key.data != NULL) s = tn__table_next(table, &key, &value, NULL);
  tn__table_close(table);
  return s;
}

static void table__nothing_leaks_without_memory(void)
{
  static char path[300];
  tn_error_clear(&err);
  snprintf(path, sizeof(path), "%s", scratch("sweep.index"));
  tn_test_oom_sweep(write_and_read, path);
  if (!have_snappy()) return;
  tn_error_clear(&err);
  snprintf(path, sizeof(path), "%s", tap_source_path("fuzz/corpus/fuzz_table/packed.index"));
  tn_test_oom_sweep(read_packed, path);
}

/* ---- CRC-32C ---- */

static void crc32c__gives_the_values_of_rfc_3720(void)
{
  unsigned char bytes[32] = { 0 };
  CHECK_INT(tn__crc32c(0, bytes, 32), 0x8a9136aa);
  memset(bytes, 0xff, 32);
  CHECK_INT(tn__crc32c(0, bytes, 32), 0x62a8ab43);
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
  CHECK_INT(tn__crc32c(0, bytes, 32), 0x46dd794e);
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)(31 - i);
  CHECK_INT(tn__crc32c(0, bytes, 32), 0x113fdb5c);
  static const unsigned char command[48] = { 1, 0xc0, [16] = 20, [22] = 4, [27] = 20, [31] = 24, 40, [40] = 2 };
  CHECK_INT(tn__crc32c(0, command, 48), 0xd9963a56);
  CHECK_INT(tn__crc32c(0, NULL, 0), 0);
  CHECK_INT(tn__crc32c(0, "123456789", 9), 0xe3069283);
}

static void crc32c__is_the_same_for_any_split(void)
{
  size_t n = 100000;
  unsigned char *bytes = malloc(n);
  REQUIRE_PTR(bytes);
  for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i * i >> 3);
  static const size_t sizes[] = { 0,     1,     7,     8,     9,     100,   8192,  24575,
                                  24576, 24577, 31743, 31744, 31745, 49152, 63488, 99990 };
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
    for (size_t at = 0; at < 9; at++) {
      uint32_t whole = tn__crc32c(0, bytes + at, sizes[i]), head = tn__crc32c(0, bytes + at, sizes[i] / 3);
      size_t rest = sizes[i] - sizes[i] / 3;
      CHECK_MSG(tn__crc32c_by_tables(0, bytes + at, sizes[i]) == whole, "%zu bytes at %zu", sizes[i], at);
      CHECK_MSG(tn__crc32c(head, bytes + at + sizes[i] / 3, rest) == whole, "%zu bytes at %zu", sizes[i], at);
      CHECK_MSG(tn__crc32c_join(head, tn__crc32c(0, bytes + at + sizes[i] / 3, rest), rest) == whole,
                "%zu bytes at %zu", sizes[i], at);
    }
  free(bytes);
  CHECK_INT(tn__crc32c_join(5, 7, 0), 5 ^ 7);
  CHECK_INT(tn__crc32c_join(tn__crc32c_join(0x12345678, 0, (uint64_t)1 << 40), 0, 3),
            tn__crc32c_join(0x12345678, 0, ((uint64_t)1 << 40) + 3));
}

static void crc32c__masks_are_undone(void)
{
  CHECK_INT(tn__crc32c_mask(0), 0xa282ead8);
  CHECK_INT(tn__crc32c_unmask(tn__crc32c_mask(0xdeadbeef)), 0xdeadbeef);
}

TAP_MAIN(TAP_TEST(table__reads_tables_of_tensorflow), TAP_TEST(table__errors_name_files_that_are_no_tables),
         TAP_TEST(table__keys_and_values_may_be_empty), TAP_TEST(table__every_truncated_file_is_rejected),
         TAP_TEST(table__every_changed_bit_of_a_block_is_noticed),
         TAP_TEST(table__errors_name_the_byte_of_a_damaged_block), TAP_TEST(table__keys_ascend),
         TAP_TEST(table__entries_stay_within_their_block), TAP_TEST(table__restart_points_are_entries_with_full_keys),
         TAP_TEST(table__unknown_compressions_are_rejected), TAP_TEST(table__blocks_lie_within_the_file),
         TAP_TEST(table__no_block_is_read_twice), TAP_TEST(table__long_keys_of_a_small_file_are_refused),
         TAP_TEST(table__densely_packed_blocks_are_read), TAP_TEST(table__damaged_packed_blocks_are_rejected),
         TAP_TEST(table__entries_round_trip), TAP_TEST(table__equal_entries_give_the_bytes_of_tensorflow),
         TAP_TEST(table__reads_the_checkpoints_of_models), TAP_TEST(table__keys_that_do_not_ascend_are_not_written),
         TAP_TEST(table__a_failed_write_is_reported), TAP_TEST(table__a_file_truncated_while_open_gives_a_status),
         TAP_TEST(table__nothing_leaks_without_memory), TAP_TEST(crc32c__gives_the_values_of_rfc_3720),
         TAP_TEST(crc32c__is_the_same_for_any_split), TAP_TEST(crc32c__masks_are_undone))
