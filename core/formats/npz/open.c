/* SPDX-License-Identifier: Apache-2.0 */
/* Opens an .npz file: runs libzip on our own source, and lists the keys. With our own source, reads have our error
 * messages and are no cancellation points. */
#include <core/formats/npz/npz.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ARENA_BLOCK 1024
/* The default limit of the memory for an archive's arrays: a base in bytes, plus a factor times the archive's size.
 * Deflate can reach a thousand to one, but real data comes near that only if almost all of it is zeros. */
#define BUDGET_BASE ((uint64_t)1 << 30)
#define BUDGET_TIMES 100

/* ---- the bytes ---- */

/* Reads less than n bytes at the end of the file, as libzip expects. An error of the system is kept for the message. */
static zip_int64_t source_read(tn_npz *npz, void *data, zip_uint64_t n)
{
  uint64_t left = npz->size - npz->at;
  if (n > left) n = left;
  if (n > PTRDIFF_MAX) n = PTRDIFF_MAX;
  tn_status s = tn__npz_read_raw(npz, npz->at, data, (size_t)n, npz->err);
  if (s != TN_OK) {
    npz->source_status = s;
    npz->zip.error_set(&npz->source_error, ZIP_ER_READ, EIO);
    return -1;
  }
  npz->at += n;
  return (zip_int64_t)n;
}

static uint64_t seek_base(const tn_npz *npz, int whence)
{
  if (whence == SEEK_CUR) return npz->at;
  return whence == SEEK_END ? npz->size : 0;
}

static zip_int64_t source_seek(tn_npz *npz, const void *data, zip_uint64_t n)
{
  const zip_source_args_seek_t *to = data;
  int64_t at;
  if (n < sizeof(*to) || __builtin_add_overflow((int64_t)seek_base(npz, to->whence), to->offset, &at) || at < 0 ||
      (uint64_t)at > npz->size) {
    npz->zip.error_set(&npz->source_error, ZIP_ER_SEEK, EINVAL);
    return -1;
  }
  npz->at = (uint64_t)at;
  return 0;
}

/* libzip needs the size to find the end record. */
static zip_int64_t source_stat(const tn_npz *npz, void *data, zip_uint64_t n)
{
  zip_stat_t *st = data;
  if (n < sizeof(*st)) return -1;
  memset(st, 0, sizeof(*st));
  st->valid = ZIP_STAT_SIZE;
  st->size = npz->size;
  return sizeof(*st);
}

/* The callback through which libzip reads. */
static zip_int64_t source_call(void *user, void *data, zip_uint64_t n, zip_source_cmd_t command)
{
  tn_npz *npz = user;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS:
    return TN_ZIP_CAN(ZIP_SOURCE_SUPPORTS) | TN_ZIP_CAN(ZIP_SOURCE_OPEN) | TN_ZIP_CAN(ZIP_SOURCE_READ) |
           TN_ZIP_CAN(ZIP_SOURCE_CLOSE) | TN_ZIP_CAN(ZIP_SOURCE_STAT) | TN_ZIP_CAN(ZIP_SOURCE_ERROR) |
           TN_ZIP_CAN(ZIP_SOURCE_FREE) | TN_ZIP_CAN(ZIP_SOURCE_SEEK) | TN_ZIP_CAN(ZIP_SOURCE_TELL);
  case ZIP_SOURCE_OPEN: npz->at = 0; return 0;
  case ZIP_SOURCE_READ: return source_read(npz, data, n);
  case ZIP_SOURCE_SEEK: return source_seek(npz, data, n);
  case ZIP_SOURCE_TELL: return (zip_int64_t)npz->at;
  case ZIP_SOURCE_STAT: return source_stat(npz, data, n);
  case ZIP_SOURCE_ERROR: return npz->zip.error_to_data(&npz->source_error, data, n);
  case ZIP_SOURCE_CLOSE:
  case ZIP_SOURCE_FREE: return 0;
  default: npz->zip.error_set(&npz->source_error, ZIP_ER_OPNOTSUPP, 0); return -1;
  }
}

/* Lets libzip read the directory. npz owns the archive, which owns the source. */
static tn_status open_archive(tn_npz *npz, tn_error *err)
{
  zip_error_t error;
  tn_status s = TN_OK;
  npz->zip.error_init(&error);
  npz->zip.error_init(&npz->source_error);
  zip_source_t *source = npz->zip.source_function_create(source_call, npz, &error);
  if (source != NULL) npz->archive = npz->zip.open_from_source(source, ZIP_RDONLY, &error);
  if (npz->archive == NULL)
    s = npz->source_status != TN_OK
            ? npz->source_status
            : tn__zip_failed(&npz->zip, &error, npz->name, "the archive's directory cannot be read", err);
  if (npz->archive == NULL && source != NULL) npz->zip.source_free(source);
  npz->zip.error_fini(&error);
  return s;
}

/* ---- the keys ---- */

/* Adds a key. NumPy drops the ending ".npy" of names; other names are keys as they are. */
static tn_status add_entry(tn_npz *npz, zip_uint64_t index, const char *name, tn_error *err)
{
  size_t size = strlen(name);
  if (size > 0 && name[size - 1] == '/') return TN_OK; /* a directory */
  tn__npz_entry *e = &npz->entries[npz->n];
  e->plain = size < 4 || memcmp(name + size - 4, ".npy", 4) != 0;
  if (!e->plain) size -= 4;
  e->index = index;
  e->key = tn__arena_string(&npz->arena, name, size);
  if (e->key == NULL) return tn__no_memory(err, "a key", size + 1);
  if (tn__map_get(&npz->by_key, e->key, size) != NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': two arrays have the key '%.200s'", npz->name, e->key);
  if (!tn__map_put(&npz->by_key, e->key, size, e, NULL)) return tn__no_memory(err, "a key", sizeof(*e));
  npz->n++;
  return TN_OK;
}

/* check_end has bounded the number of entries by the size of the archive. */
static tn_status list_entries(tn_npz *npz, tn_error *err)
{
  zip_int64_t count = npz->zip.get_num_entries(npz->archive, 0);
  if (count < 0) return tn_error_set(err, TN_INTERNAL, "'%s': the archive's entries cannot be counted", npz->name);
  npz->entries = tn__arena_array(&npz->arena, (size_t)count, sizeof(*npz->entries));
  if (npz->entries == NULL || !tn__map_reserve(&npz->by_key, (size_t)count))
    return tn__no_memory(err, "the keys of an .npz file", (size_t)count * sizeof(*npz->entries));
  for (zip_int64_t i = 0; i < count; i++) {
    const char *name = npz->zip.get_name(npz->archive, (zip_uint64_t)i, 0);
    tn_status s = name == NULL ? tn__zip_failed(&npz->zip, npz->zip.get_error(npz->archive), npz->name,
                                                "a name cannot be read", err)
                               : add_entry(npz, (zip_uint64_t)i, name, err);
    if (s != TN_OK) return s;
  }
  return TN_OK;
}

/* ---- opening ---- */

/* discard() may call our source, so the bytes are closed after it. */
void tn_npz_close(tn_npz *npz)
{
  if (npz == NULL) return;
  npz->err = NULL;
  if (npz->archive != NULL) npz->zip.discard(npz->archive);
  if (npz->bytes == NULL) tn__file_close(&npz->file);
  tn__map_fini(&npz->by_key);
  tn__arena_fini(&npz->arena);
  tn__free(npz, sizeof(*npz));
}

/* Makes an npz without bytes; the caller closes it after an error. */
static tn_status create(const char *name, tn_npz **out, tn_error *err)
{
  tn_npz *npz = tn__zalloc(sizeof(*npz));
  if (npz == NULL) return tn__no_memory(err, "an .npz file", sizeof(*npz));
  npz->file.fd = -1;
  tn__arena_init(&npz->arena, ARENA_BLOCK);
  tn__map_init(&npz->by_key);
  npz->name = tn__arena_string(&npz->arena, name, strlen(name));
  *out = npz;
  return npz->name == NULL ? tn__no_memory(err, "a file name", strlen(name) + 1) : TN_OK;
}

/* The end of the archive is checked before libzip sees it (end.c). */
static tn_status open_bytes(tn_npz *npz, tn_error *err)
{
  npz->err = err;
  npz->budget =
      npz->size > (UINT64_MAX - BUDGET_BASE) / BUDGET_TIMES ? UINT64_MAX : BUDGET_BASE + BUDGET_TIMES * npz->size;
  tn_status s = npz->size > INT64_MAX ? tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is too large", npz->name) : TN_OK;
  if (s == TN_OK) s = tn__npz_check_end(npz, err);
  if (s == TN_OK) s = tn__zip_load(&npz->zip, npz->name, err);
  if (s == TN_OK) s = open_archive(npz, err);
  if (s == TN_OK) s = list_entries(npz, err);
  npz->err = NULL;
  return s;
}

/* Returns the opened file, or closes it after an error. */
static tn_status deliver(tn_status s, tn_npz *npz, tn_npz **out)
{
  if (s == TN_OK)
    *out = npz;
  else
    tn_npz_close(npz);
  return s;
}

tn_status tn_npz_open(const char *path, tn_npz **out, tn_error *err)
{
  tn_npz *npz = NULL;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (out == NULL || path == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npz_open: %s is NULL", out == NULL ? "out" : "path");
  tn_status s = create(path, &npz, err);
  if (s == TN_OK) s = tn__file_open(npz->name, &npz->file, err);
  if (s == TN_OK) npz->size = npz->file.size;
  if (s == TN_OK) s = open_bytes(npz, err);
  return deliver(s, npz, out);
}

tn_status tn_npz_open_bytes(const void *bytes, size_t size, const char *name, tn_npz **out, tn_error *err)
{
  tn_npz *npz = NULL;
  tn__error_reset(err);
  if (out != NULL) *out = NULL;
  if (out == NULL || (bytes == NULL && size > 0))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npz_open_bytes: %s is NULL", out == NULL ? "out" : "bytes");
  tn_status s = create(name != NULL ? name : "memory", &npz, err);
  if (s == TN_OK) {
    npz->bytes = bytes != NULL ? bytes : (const void *)"";
    npz->size = size;
    s = open_bytes(npz, err);
  }
  return deliver(s, npz, out);
}

void tn_npz_set_budget(tn_npz *npz, uint64_t bytes) { npz->budget = bytes; }

size_t tn_npz_count(const tn_npz *npz) { return npz->n; }

const char *tn_npz_key(const tn_npz *npz, size_t i) { return i < npz->n ? npz->entries[i].key : NULL; }
