/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tensors to an .npz file. libzip requests the bytes of each array while it writes, so no array is copied as a
 * whole. There are two kinds of sources: the file that libzip writes, and an array that libzip reads. */
#include <core/formats/npz/npz.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_NAME 65535 /* bytes of a name in a zip archive */
#define DATE_1980 0x21  /* 1 January 1980, as NumPy writes: equal arrays give equal files */

/* ---- the file that libzip writes ---- */

typedef struct archive_writer {
  tn__zip zip;
  tn__writer file;
  zip_error_t error; /* of the file's source */
  tn_status status;  /* of the first callback that failed, whose message is in *err */
  tn_error *err;
} archive_writer;

/* Makes a callback fail: tells libzip, and keeps the status, because the message is in *err already. */
static zip_int64_t stopped(archive_writer *w, zip_error_t *error, tn_status status, int code)
{
  if (w->status == TN_OK) w->status = status;
  w->zip.error_set(error, code, EIO);
  return -1;
}

/* libzip seeks to write sizes and checksums into headers that it has written. */
static zip_int64_t seek_file(archive_writer *w, const void *data, zip_uint64_t n)
{
  const zip_source_args_seek_t *to = data;
  if (n < sizeof(*to))
    return stopped(w, &w->error, tn_error_set(w->err, TN_INTERNAL, "a malformed seek request"), ZIP_ER_INVAL);
  if (lseek(w->file.fd, (off_t)to->offset, to->whence) >= 0) return 0;
  return stopped(w, &w->error, tn__system_error(w->err, errno, "cannot write '%s'", w->file.path), ZIP_ER_SEEK);
}

static zip_int64_t write_file(archive_writer *w, const void *data, zip_uint64_t n)
{
  tn_status s = tn__writer_write(&w->file, data, (size_t)n, w->err);
  return s == TN_OK ? (zip_int64_t)n : stopped(w, &w->error, s, ZIP_ER_WRITE);
}

/* The callback for the file that is written. libzip is told that it does not exist yet. Begin, commit and rollback do
 * nothing: tn__writer moves the complete file to its name. */
static zip_int64_t file_call(void *user, void *data, zip_uint64_t n, zip_source_cmd_t command)
{
  archive_writer *w = user;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE | TN_ZIP_CAN(ZIP_SOURCE_SUPPORTS);
  case ZIP_SOURCE_STAT: w->zip.error_set(&w->error, ZIP_ER_READ, ENOENT); return -1;
  case ZIP_SOURCE_ERROR: return w->zip.error_to_data(&w->error, data, n);
  case ZIP_SOURCE_WRITE: return write_file(w, data, n);
  case ZIP_SOURCE_SEEK_WRITE: return seek_file(w, data, n);
  case ZIP_SOURCE_TELL_WRITE: return lseek(w->file.fd, 0, SEEK_CUR);
  case ZIP_SOURCE_BEGIN_WRITE:
  case ZIP_SOURCE_COMMIT_WRITE:
  case ZIP_SOURCE_ROLLBACK_WRITE:
  case ZIP_SOURCE_REMOVE:
  case ZIP_SOURCE_CLOSE:
  case ZIP_SOURCE_FREE: return 0;
  default: w->zip.error_set(&w->error, ZIP_ER_OPNOTSUPP, 0); return -1;
  }
}

/* ---- an array that libzip reads ---- */

typedef struct array_source {
  archive_writer *writer;  /* borrowed, as are key and tensor */
  const char *key;
  const tn_tensor *tensor;
  tn_tensor *copy; /* of device memory, while it is read; a reference */
  tn__text header; /* of the .npy file */
  size_t item;     /* bytes of an element in the file */
  uint64_t bytes;  /* of header and elements */
  uint64_t at;     /* current offset */
  zip_error_t error;
} array_source;

/* The bytes of `text` within [in, in + part) of its padded element. */
static size_t text_within(size_t length, size_t in, size_t part)
{
  if (length <= in) return 0;
  return length - in < part ? length - in : part;
}

/* Copies n bytes of the elements, from byte `from` on. In the file strings have one width and are padded with zeros. */
static tn_status copy_strings(const array_source *a, uint64_t from, char *to, size_t n, tn_error *err)
{
  while (n > 0) {
    const char *text;
    size_t length, in = (size_t)(from % a->item), part = a->item - in;
    tn_status s = tn_tensor_get_string(a->tensor, (int64_t)(from / a->item), &text, &length, err);
    if (s != TN_OK) return s;
    if (part > n) part = n;
    size_t have = text_within(length, in, part);
    if (have > 0) memcpy(to, text + in, have);
    memset(to + have, 0, part - have);
    from += part;
    to += part;
    n -= part;
  }
  return TN_OK;
}

/* Copies n bytes of the elements, from byte `from` on. Device memory is copied to the host at the first read. */
static tn_status copy_elements(array_source *a, uint64_t from, char *to, size_t n, tn_error *err)
{
  if (tn_tensor_dtype(a->tensor) == TN_STRING) return copy_strings(a, from, to, n, err);
  const char *data = tn_tensor_data(a->tensor);
  if (data == NULL && a->copy == NULL) {
    tn_status s = tn_tensor_copy(a->tensor, &a->copy, err);
    if (s != TN_OK) return s;
  }
  if (n > 0) memcpy(to, (data != NULL ? data : (const char *)tn_tensor_data(a->copy)) + from, n);
  return TN_OK;
}

/* Gives libzip the next n bytes of the .npy file: the rest of the header, then elements. */
static zip_int64_t read_array(array_source *a, char *to, zip_uint64_t n)
{
  if (n > a->bytes - a->at) n = a->bytes - a->at;
  size_t done = 0, header = a->header.size, size = (size_t)n;
  if (a->at < header) {
    done = header - (size_t)a->at < size ? header - (size_t)a->at : size;
    memcpy(to, a->header.data + a->at, done);
  }
  if (done < size) {
    tn_status s = copy_elements(a, a->at + done - header, to + done, size - done, a->writer->err);
    if (s != TN_OK) return stopped(a->writer, &a->error, s, ZIP_ER_READ);
  }
  a->at += n;
  return (zip_int64_t)n;
}

/* The only known fact is the size; libzip sets the other members of the entry. */
static zip_int64_t stat_array(const array_source *a, void *data, zip_uint64_t n)
{
  zip_stat_t *st = data;
  if (n < sizeof(*st)) return -1;
  memset(st, 0, sizeof(*st));
  st->valid = ZIP_STAT_SIZE;
  st->size = a->bytes;
  return sizeof(*st);
}

static void close_array(array_source *a)
{
  tn_tensor_unref(a->copy);
  a->copy = NULL;
}

/* The callback for an array that is read. */
static zip_int64_t array_call(void *user, void *data, zip_uint64_t n, zip_source_cmd_t command)
{
  array_source *a = user;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS:
    return TN_ZIP_CAN(ZIP_SOURCE_SUPPORTS) | TN_ZIP_CAN(ZIP_SOURCE_OPEN) | TN_ZIP_CAN(ZIP_SOURCE_READ) |
           TN_ZIP_CAN(ZIP_SOURCE_CLOSE) | TN_ZIP_CAN(ZIP_SOURCE_STAT) | TN_ZIP_CAN(ZIP_SOURCE_ERROR) |
           TN_ZIP_CAN(ZIP_SOURCE_FREE);
  case ZIP_SOURCE_OPEN: a->at = 0; return 0;
  case ZIP_SOURCE_READ: return read_array(a, data, n);
  case ZIP_SOURCE_CLOSE: close_array(a); return 0;
  case ZIP_SOURCE_STAT: return stat_array(a, data, n);
  case ZIP_SOURCE_ERROR: return a->writer->zip.error_to_data(&a->error, data, n);
  case ZIP_SOURCE_FREE: return 0;
  default: a->writer->zip.error_set(&a->error, ZIP_ER_OPNOTSUPP, 0); return -1;
  }
}

/* ---- checks ---- */

/* NumPy could read only one of two arrays with the same key, so keys must be unique. */
static tn_status check_keys(const char *const *keys, tn_tensor *const *tensors, size_t n, const char *path,
                            tn_error *err)
{
  tn__map seen;
  tn_status s = TN_OK;
  tn__map_init(&seen);
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    size_t size = keys[i] != NULL ? strlen(keys[i]) : 0;
    if (keys[i] == NULL || tensors[i] == NULL)
      s = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': array %zu has no %s", path, i,
                       keys[i] == NULL ? "key" : "tensor");
    else if (size > MOST_NAME - 4)
      s = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': the key of array %zu has %zu bytes, wanted at most %d", path, i,
                       size, MOST_NAME - 4);
    else if (tn__map_get(&seen, keys[i], size) != NULL)
      s = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': two arrays have the key '%.200s'", path, keys[i]);
    else if (!tn__map_put(&seen, keys[i], size, tensors[i], NULL))
      s = tn__no_memory(err, "the keys of an .npz file", sizeof(tn__map_entry));
  }
  tn__map_fini(&seen);
  return s;
}

/* Makes the header and computes the size of the .npy file, which libzip asks for before it reads. */
static tn_status describe_array(array_source *a, const char *path, tn_error *err)
{
  size_t bytes;
  tn_status s = tn__npy_format_header(a->tensor, &a->header, &a->item, err);
  if (s == TN_OK && (!tn__size_mul((size_t)tn_tensor_elements(a->tensor), a->item, &bytes) ||
                     !tn__size_add(bytes, a->header.size, &bytes) || bytes > PTRDIFF_MAX))
    s = tn_error_set(err, TN_INVALID_ARGUMENT, "the array is too large to be written");
  if (s != TN_OK) {
    tn_error_prefix(err, "'%s:%.200s'", path, a->key);
    return s;
  }
  a->bytes = bytes;
  return TN_OK;
}

/* ---- writing ---- */

/* Adds an array to the archive. libzip takes ownership of the source if it succeeds, and reads it in close(). */
static tn_status add_array(archive_writer *w, zip_t *archive, array_source *a, uint32_t flags, tn_error *err)
{
  tn__text name;
  zip_int64_t index = -1;
  tn__text_init(&name, MOST_NAME + 1);
  tn__text_printf(&name, "%s.npy", a->key);
  if (name.failed) {
    tn__text_fini(&name);
    return tn__no_memory(err, "the name of an array", strlen(a->key) + 5);
  }
  w->zip.error_init(&a->error);
  zip_source_t *source = w->zip.source_function(archive, array_call, a);
  if (source != NULL) index = w->zip.file_add(archive, name.data, source, ZIP_FL_ENC_UTF_8);
  bool ok = index >= 0 &&
            w->zip.set_file_compression(archive, (zip_uint64_t)index,
                                        flags & TN_NPZ_DEFLATE ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0 &&
            w->zip.file_set_dostime(archive, (zip_uint64_t)index, 0, DATE_1980, 0) == 0;
  if (index < 0 && source != NULL) w->zip.source_free(source);
  if (!ok) {
    tn_status s = tn__zip_failed(&w->zip, w->zip.get_error(archive), w->file.path, "an array cannot be added", err);
    tn__text_fini(&name);
    return s != TN_INVALID_ARGUMENT ? s
                                    : tn_error_wrap(err, s, "'%s:%.200s': the key is not UTF-8", w->file.path, a->key);
  }
  tn__text_fini(&name);
  return TN_OK;
}

/* Writes the whole archive. libzip writes in close(); an error of a callback has priority over its own. */
static tn_status write_archive(archive_writer *w, array_source *arrays, size_t n, uint32_t flags, tn_error *err)
{
  zip_error_t error;
  zip_t *archive = NULL;
  tn_status s = TN_OK;
  w->err = err;
  w->zip.error_init(&error);
  w->zip.error_init(&w->error);
  zip_source_t *source = w->zip.source_function_create(file_call, w, &error);
  if (source != NULL) archive = w->zip.open_from_source(source, ZIP_CREATE | ZIP_EXCL, &error);
  if (archive == NULL) {
    s = tn__zip_failed(&w->zip, &error, w->file.path, "an archive cannot be created", err);
    if (source != NULL) w->zip.source_free(source);
  }
  w->zip.error_fini(&error);
  for (size_t i = 0; i < n && s == TN_OK; i++) s = add_array(w, archive, &arrays[i], flags, err);
  if (s == TN_OK && w->zip.close(archive) == 0) return TN_OK;
  if (s == TN_OK)
    s = w->status != TN_OK
            ? w->status
            : tn__zip_failed(&w->zip, w->zip.get_error(archive), w->file.path, "the archive cannot be written", err);
  if (archive != NULL) w->zip.discard(archive);
  return s;
}

/* An archive needs seeks, so the target must be a regular file at offset 0. */
static tn_status save(array_source *arrays, size_t n, uint32_t flags, const char *path, tn_error *err)
{
  archive_writer w = { .status = TN_OK };
  tn_status s = tn__zip_load(&w.zip, path, err);
  for (size_t i = 0; i < n && s == TN_OK; i++) {
    arrays[i].writer = &w;
    s = describe_array(&arrays[i], path, err);
  }
  if (s != TN_OK) return s;
  s = tn__writer_open(&w.file, path, err);
  if (s != TN_OK) return s;
  if (lseek(w.file.fd, 0, SEEK_CUR) != 0)
    s = tn_error_set(err, TN_INVALID_ARGUMENT,
                     "cannot write '%s': an archive is not written sequentially, wanted a regular file", path);
  if (s == TN_OK) s = write_archive(&w, arrays, n, flags, err);
  if (s == TN_OK) return tn__writer_commit(&w.file, err);
  tn__writer_abandon(&w.file);
  return s;
}

tn_status tn_npz_save(const char *const *keys, tn_tensor *const *tensors, size_t n, uint32_t flags, const char *path,
                      tn_error *err)
{
  tn__error_reset(err);
  const char *missing = keys == NULL ? "keys" : NULL;
  if (n == 0 || tensors == NULL) missing = "tensors";
  if (path == NULL) missing = "path";
  if (missing != NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npz_save: no %s given", missing);
  if ((flags & ~(uint32_t)TN_NPZ_DEFLATE) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s': unknown flags 0x%" PRIx32, path, flags);
  tn_status s = check_keys(keys, tensors, n, path, err);
  if (s != TN_OK) return s;
  array_source *arrays = tn__alloc_array(n, sizeof(*arrays));
  if (arrays == NULL) return tn__no_memory(err, "the arrays of an .npz file", n);
  for (size_t i = 0; i < n; i++) {
    arrays[i].key = keys[i];
    arrays[i].tensor = tensors[i];
    tn__text_init(&arrays[i].header, TN_NPY_MAX_HEADER);
  }
  s = save(arrays, n, flags, path, err);
  for (size_t i = 0; i < n; i++) {
    close_array(&arrays[i]);
    tn__text_fini(&arrays[i].header);
  }
  tn__free(arrays, n * sizeof(*arrays));
  return s;
}
