/* SPDX-License-Identifier: Apache-2.0 */
#include <core/formats/file.h>

#include <core/base/file.h>
#include <string.h>

static size_t room_of(size_t size) { return size == 0 ? 1 : size; }

static void release(void *user, void *data, size_t bytes)
{
  (void)user;
  tn__free_aligned(data, room_of(bytes), TN_ALIGN);
}

static tn_status wrap(void *data, size_t size, tn_buffer **out, tn_error *err)
{
  tn_buffer_desc desc = { .struct_size = sizeof desc,
                          .memory = TN_MEMORY_HOST,
                          .ownership = TN_BUFFER_IMMUTABLE,
                          .data = data,
                          .bytes = size,
                          .release = release };
  tn_status st = tn_buffer_create(&desc, out, err);
  if (st != TN_OK) release(NULL, data, size);
  return st;
}

tn_status tn__bytes_copy(const void *bytes, size_t size, tn_buffer **out, tn_error *err)
{
  *out = NULL;
  void *data = tn__alloc_aligned(room_of(size), TN_ALIGN);
  if (data == NULL) return tn__no_memory(err, "bytes of a file", size);
  if (size > 0) memcpy(data, bytes, size);
  return wrap(data, size, out, err);
}

static tn_status load_open(const tn__file *file, uint64_t limit, tn_buffer **out, tn_error *err)
{
  if (file->size > limit || file->size > PTRDIFF_MAX)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the file has %llu bytes, at most %llu are read", file->path,
                        (unsigned long long)file->size, (unsigned long long)limit);
  size_t size = (size_t)file->size;
  void *data = tn__alloc_aligned(room_of(size), TN_ALIGN);
  if (data == NULL) return tn__no_memory(err, file->path, size);
  tn_status st = tn__file_read(file, 0, data, size, err);
  if (st == TN_OK) return wrap(data, size, out, err);
  release(NULL, data, size);
  return st;
}

tn_status tn__bytes_load(const char *path, uint64_t limit, tn_buffer **out, tn_error *err)
{
  *out = NULL;
  if (path == NULL || *path == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "the path of a file is %s", path == NULL ? "NULL" : "empty");
  tn__file file;
  tn_status st = tn__file_open(path, &file, err);
  if (st != TN_OK) return st;
  st = load_open(&file, limit, out, err);
  tn__file_close(&file);
  return st;
}
