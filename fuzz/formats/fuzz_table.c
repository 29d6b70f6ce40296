/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a table or a status, and a table that was read is written and read again. Random bytes have no right
 * CRC, so most inputs are one block, from which a table is made. The last byte chooses: 'b' for a data block, 'i' for
 * an index, to which two data blocks are added, of 13 bytes at bytes 0 and 18; otherwise the input is a whole file. The
 * first byte of a block is its compression. */
#define _GNU_SOURCE
#include <fuzz/memory.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <core/formats/table/crc32c.h>
#include <core/formats/table/table.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two files in memory, and their names. */
static int files[2];
static char names[2][40];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  for (int i = 0; i < 2; i++) {
    if ((files[i] = memfd_create("table", 0)) < 0) abort();
    snprintf(names[i], sizeof names[i], "/proc/self/fd/%d", files[i]);
  }
  fuzz_limit_memory((size_t)64 << 20);
  return 0;
}

/* ---- making a table ---- */

static uint64_t length; /* of the first file */

static void put(const void *bytes, size_t n)
{
  if (pwrite(files[0], bytes, n, (off_t)length) != (ssize_t)n) abort();
  length += n;
}

/* Writes a block with its trailer; returns its offset. */
static uint64_t put_block(const uint8_t *contents, size_t n, uint8_t compression)
{
  uint64_t at = length;
  uint32_t crc = tn__crc32c_mask(tn__crc32c(tn__crc32c(0, contents, n), &compression, 1));
  put(contents, n);
  put(&compression, 1);
  put(&crc, sizeof crc);
  return at;
}

/* Appends a handle, as two varints of five bytes each; returns the end. */
static uint8_t *handle(uint8_t *to, uint64_t offset, uint64_t size)
{
  const uint64_t values[2] = { offset, size };
  for (int i = 0; i < 10; i++) *to++ = (uint8_t)((values[i / 5] >> i % 5 * 7 & 0x7f) | (i % 5 < 4 ? 0x80 : 0));
  return to;
}

static void put_footer(uint64_t meta, uint64_t index, size_t index_size)
{
  uint8_t footer[48] = { [40] = 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };
  handle(handle(footer, meta, 8), index, index_size);
  put(footer, sizeof footer);
}

static const uint8_t no_entries[8] = { 0, 0, 0, 0, 1 };

/* A table with this data block. The key in the index is 255 bytes 0xff. */
static void make_with_data(const uint8_t *contents, size_t n, uint8_t compression)
{
  uint8_t index[4 + 255 + 10 + 8] = { 0, 0xff, 1, 10 };
  uint64_t at = put_block(contents, n, compression);
  memset(index + 4, 0xff, 255);
  handle(index + 4 + 255, at, n);
  memcpy(index + 4 + 255 + 10, no_entries, 8);
  uint64_t meta = put_block(no_entries, sizeof no_entries, 0), index_at = put_block(index, sizeof index, 0);
  put_footer(meta, index_at, sizeof index);
}

/* A table with this index. */
static void make_with_index(const uint8_t *contents, size_t n, uint8_t compression)
{
  static const uint8_t first[13] = { 0, 1, 1, 'a', '1', 0, 0, 0, 0, 1 };
  static const uint8_t second[13] = { 0, 1, 1, 'c', '2', 0, 0, 0, 0, 1 };
  put_block(first, sizeof first, 0);
  put_block(second, sizeof second, 0);
  uint64_t meta = put_block(no_entries, sizeof no_entries, 0), index_at = put_block(contents, n, compression);
  put_footer(meta, index_at, n);
}

static void make(const uint8_t *data, size_t size)
{
  length = 0;
  if (ftruncate(files[0], 0) != 0) abort();
  if (size < 2 || (data[size - 1] != 'b' && data[size - 1] != 'i')) put(data, size);
  else if (data[size - 1] == 'b') make_with_data(data + 1, size - 2, data[0]);
  else make_with_index(data + 1, size - 2, data[0]);
}

/* ---- reading and writing ---- */

static void check(tn_status s, const tn_error *err)
{
  if (s != tn_error_code(err) || (s != TN_OK && strstr(tn_error_message(err), "memory") == NULL &&
                                  strstr(tn_error_message(err), "/proc/self/fd/") == NULL))
    abort();
  if (s != TN_OK && s != TN_DATA_LOSS && s != TN_RESOURCE_EXHAUSTED && s != TN_UNAVAILABLE && s != TN_UNIMPLEMENTED)
    abort();
}

/* Reads a table and adds its entries to w, if that is not NULL. *n and *sum describe the entries. */
static tn_status walk(const char *name, tn__table_writer *w, size_t *n, uint32_t *sum, tn_error *err)
{
  tn__table *table = NULL;
  tn__slice key = { "", 0 }, value;
  tn_status s = tn__table_open(name, &table, err);
  if ((s == TN_OK) != (table != NULL)) abort();
  for (*n = *sum = 0; s == TN_OK; ++*n) {
    s = tn__table_next(table, &key, &value, err);
    if (s != TN_OK || key.data == NULL) break;
    *sum = tn__crc32c(tn__crc32c(*sum, key.data, key.size), value.data, value.size);
    if (w != NULL) s = tn__table_writer_add(w, key, value, err);
  }
  check(s, err);
  tn__table_close(table);
  return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__writer to;
  tn__table_writer *w = NULL;
  size_t n, again;
  uint32_t sum, sum_again;
  make(data, size);
  tn_status s = tn__writer_open(&to, names[1], &err);
  if (s == TN_OK) s = tn__table_writer_create(&to, &w, &err);
  if (s == TN_OK) s = walk(names[0], w, &n, &sum, &err);
  if (s == TN_OK) s = tn__table_writer_finish(w, &err);
  tn__table_writer_destroy(w);
  if (s == TN_OK) s = tn__writer_commit(&to, &err);
  else tn__writer_abandon(&to);
  check(s, &err);
  if (s == TN_OK) s = walk(names[1], NULL, &again, &sum_again, &err);
  if (s == TN_OK && (n != again || sum != sum_again)) abort();
  tn_error_clear(&err);
  return 0;
}
