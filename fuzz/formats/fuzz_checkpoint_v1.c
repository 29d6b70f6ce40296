/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a checkpoint (V1) or a status, and then each tensor a value or a status. Random bytes have no right
 * CRC, so the input is the entries of a table, which is written first: two bytes with the size of the key, two with
 * that of the value, the key, the value. Entries whose key does not ascend are left out. If the last byte is 'f', the
 * input is a whole file. */
#define _GNU_SOURCE
#include <fuzz/memory.h>
#include <fuzz/table.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <core/formats/checkpoint/checkpoint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file;
static char name[40]; /* of the file in memory */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  if ((file = memfd_create("checkpoint", 0)) < 0) abort();
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  fuzz_limit_memory((size_t)64 << 20);
  return 0;
}

/* False: without memory. */
static bool write_file(const uint8_t *data, size_t size)
{
  tn__writer to;
  tn__table_writer *w = NULL;
  if (ftruncate(file, 0) != 0) abort();
  if (size > 0 && data[size - 1] == 'f') return pwrite(file, data, size, 0) == (ssize_t)size;
  tn_status st = tn__writer_open(&to, name, NULL);
  if (st != TN_OK) return false;
  st = tn__table_writer_create(&to, &w, NULL);
  if (st == TN_OK) fuzz_add_entries(w, data, data + size);
  if (st == TN_OK) st = tn__table_writer_finish(w, NULL);
  tn__table_writer_destroy(w);
  if (st == TN_OK) return tn__writer_commit(&to, NULL) == TN_OK;
  tn__writer_abandon(&to);
  return false;
}

static void check(tn_status st, const tn_error *err)
{
  if (st != tn_error_code(err) || (st != TN_OK && tn_error_message(err)[0] == 0)) abort();
  if (st != TN_OK && st != TN_DATA_LOSS && st != TN_RESOURCE_EXHAUSTED && st != TN_INVALID_ARGUMENT &&
      st != TN_UNAVAILABLE && st != TN_UNIMPLEMENTED)
    abort();
}

static void read_all(tn__store *store)
{
  for (size_t i = 0; i < store->n && i < 50; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *t = NULL;
    const tn__stored *entry = &store->entries[i];
    if (i > 0 && strcmp(entry->key, entry[-1].key) < 0) abort();
    tn_status st = tn__store_read(store, entry, &t, &err);
    check(st, &err);
    if (st == TN_INVALID_ARGUMENT || (st == TN_OK) != (t != NULL)) abort();
    if (t != NULL && (tn_tensor_dtype(t) != entry->dtype || tn_tensor_elements(t) != entry->elements)) abort();
    tn_tensor_unref(t);
    tn_error_clear(&err);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__store *store = NULL;
  if (!write_file(data, size)) return 0;
  tn_status st = tn__store_open(name, &store, &err);
  check(st, &err);
  if ((st == TN_OK) != (store != NULL)) abort();
  if (store != NULL) read_all(store);
  tn__store_close(store);
  tn_error_clear(&err);
  return 0;
}
