/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes give a checkpoint (V2) or a status, and then each tensor a value or a status. Tensors that were read are
 * written, and must be read again. Random bytes have no right CRC, so the index is written from the input: two bytes
 * with the size of the data file, its bytes, then the entries of the index, each with two bytes with the size of the
 * key, two with that of the value, the key, the value. Entries whose key does not ascend are left out. If the last byte
 * is 'f', the bytes after those of the data file are the whole index; if it is 's', all bytes are a state file. */
#define _GNU_SOURCE
#include <fuzz/memory.h>
#include <fuzz/table.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <core/formats/bundle/bundle.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The disk is not waited for. */
int fsync(int fd) { return 0; }

static char folder[] = "/tmp/tenon-fuzz-bundle-XXXXXX";
static char state[60], prefix[60], index_path[60], data_path[2][60], copy[60];

static void remove_all(void)
{
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command) != 0) fprintf(stderr, "cannot remove %s\n", folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  if (mkdtemp(folder) == NULL) abort();
  atexit(remove_all);
  snprintf(state, sizeof state, "%s/checkpoint", folder);
  snprintf(prefix, sizeof prefix, "%s/m", folder);
  snprintf(copy, sizeof copy, "%s/copy", folder);
  snprintf(index_path, sizeof index_path, "%s/m.index", folder);
  for (int i = 0; i < 2; i++) snprintf(data_path[i], sizeof data_path[i], "%s/m.data-00000-of-0000%d", folder, i + 1);
  fuzz_limit_memory((size_t)64 << 20);
  return 0;
}

/* ---- making the files ---- */

static void put_file(const char *path, const void *data, size_t size)
{
  FILE *f = fopen(path, "wb");
  if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

/* False: without memory. */
static bool put_index(const uint8_t *p, const uint8_t *end)
{
  tn__writer to;
  tn__table_writer *w = NULL;
  tn_status st = tn__writer_open(&to, index_path, NULL);
  if (st != TN_OK) return false;
  st = tn__table_writer_create(&to, &w, NULL);
  if (st == TN_OK) fuzz_add_entries(w, p, end);
  if (st == TN_OK) st = tn__table_writer_finish(w, NULL);
  tn__table_writer_destroy(w);
  if (st == TN_OK) return tn__writer_commit(&to, NULL) == TN_OK;
  tn__writer_abandon(&to);
  return false;
}

static bool put_files(const uint8_t *data, size_t size)
{
  const uint8_t *p = data, *end = data + size;
  size_t n = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
  if (size >= 2) p += 2;
  if (n > (size_t)(end - p)) n = (size_t)(end - p);
  for (int i = 0; i < 2; i++) put_file(data_path[i], p, n);
  if (size == 0 || end[-1] != 'f') return put_index(p + n, end);
  put_file(index_path, p + n, (size_t)(end - p) - n);
  return true;
}

/* ---- reading ---- */

static void check(tn_status st, const tn_error *err)
{
  if (st != tn_error_code(err) || (st != TN_OK && tn_error_message(err)[0] == 0)) abort();
  if (st != TN_OK && st != TN_DATA_LOSS && st != TN_RESOURCE_EXHAUSTED && st != TN_INVALID_ARGUMENT &&
      st != TN_UNAVAILABLE && st != TN_UNIMPLEMENTED && st != TN_NOT_FOUND)
    abort();
}

/* Reads a region in the middle of a tensor. */
static void read_region(tn__store *store, const tn__stored *entry)
{
  int64_t starts[TN_MAX_RANK], lengths[TN_MAX_RANK];
  tn__region r = { entry->rank, starts, lengths };
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t = NULL;
  for (int32_t d = 0; d < entry->rank; d++) {
    starts[d] = entry->dims[d] / 3;
    lengths[d] = entry->dims[d] / 2 + (d & 1);
  }
  tn_status st = tn__store_read_region(store, entry, &r, &t, &err);
  check(st, &err);
  if ((st == TN_OK) != (t != NULL)) abort();
  tn_tensor_unref(t);
  tn_error_clear(&err);
}

static void read_all(tn__store *store, tn__bundle_writer *w, size_t *written)
{
  for (size_t i = 0; i < store->n && i < 50; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *t = NULL;
    const tn__stored *entry = &store->entries[i];
    tn_status st = tn__store_read(store, entry, &t, &err);
    check(st, &err);
    if (st == TN_INVALID_ARGUMENT || (st == TN_OK) != (t != NULL)) abort();
    if (t != NULL && (tn_tensor_dtype(t) != entry->dtype || tn_tensor_elements(t) != entry->elements)) abort();
    if (t != NULL && w != NULL) {
      st = tn__bundle_writer_add(w, (tn__slice){ entry->key, entry->key_size }, t, &err);
      if (st == TN_INVALID_ARGUMENT) abort();
      *written += st == TN_OK;
    }
    tn_tensor_unref(t);
    tn_error_clear(&err);
    read_region(store, entry);
  }
}

static void read_copy(size_t written)
{
  tn_error err = TN_ERROR_INIT;
  tn__store *store = NULL;
  tn_status st = tn__store_open(copy, &store, &err);
  if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) abort();
  if (store != NULL && store->n != written) abort();
  for (size_t i = 0; store != NULL && i < store->n; i++) {
    tn_tensor *t = NULL;
    st = tn__store_read(store, &store->entries[i], &t, &err);
    if (st != TN_OK && st != TN_RESOURCE_EXHAUSTED) abort();
    tn_tensor_unref(t);
    tn_error_clear(&err);
  }
  tn__store_close(store);
  tn_error_clear(&err);
}

static void read_state(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  char *latest = NULL;
  put_file(state, data, size);
  tn_status st = tn__checkpoint_latest(folder, &latest, &err);
  check(st, &err);
  if ((st == TN_OK) != (latest != NULL)) abort();
  tn__strfree(latest);
  tn_error_clear(&err);
  st = tn__checkpoint_update_state(prefix, 2, &err);
  check(st, &err);
  tn_error_clear(&err);
  if (st == TN_OK && tn__checkpoint_update_state(prefix, 1, &err) == TN_DATA_LOSS) abort(); /* its own form */
  tn_error_clear(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  tn__store *store = NULL;
  tn__bundle_writer *w = NULL;
  size_t written = 0;
  if (size > 0 && data[size - 1] == 's')
    read_state(data, size - 1);
  else if (put_files(data, size)) {
    tn_status st = tn__store_open(prefix, &store, &err);
    check(st, &err);
    if ((st == TN_OK) != (store != NULL)) abort();
    if (store != NULL) tn__bundle_writer_open(copy, 1, &w, NULL);
    if (store != NULL) read_all(store, w, &written);
    if (w != NULL && tn__bundle_writer_commit(w, NULL) == TN_OK) read_copy(written);
    tn__store_close(store);
  }
  tn_error_clear(&err);
  return 0;
}
