/* SPDX-License-Identifier: Apache-2.0 */
/* Writes tensors to .npy files. */
#include <core/formats/npy/npy.h>

#include <string.h>

#include <core/base/file.h>

#define CHUNK ((size_t)1 << 16) /* bytes of strings that are written at once */

/* Writes strings in one width, padded with zeros. */
static tn_status write_strings(tn__writer *w, const tn_tensor *t, size_t item, tn_error *err)
{
  size_t chunk = item > CHUNK ? item : CHUNK, used = 0;
  char *buffer = tn__alloc(chunk);
  if (buffer == NULL) return tn__no_memory(err, "strings to write", chunk);
  tn_status s = TN_OK;
  for (int64_t i = 0; s == TN_OK && i < tn_tensor_elements(t); i++) {
    const char *text;
    size_t length;
    if (used + item > chunk) {
      s = tn__writer_write(w, buffer, used, err);
      used = 0;
    }
    if (s == TN_OK) s = tn_tensor_get_string(t, i, &text, &length, err);
    if (s != TN_OK) break;
    if (length > 0) memcpy(buffer + used, text, length);
    memset(buffer + used + length, 0, item - length);
    used += item;
  }
  if (s == TN_OK) s = tn__writer_write(w, buffer, used, err);
  tn__free(buffer, chunk);
  return s;
}

static tn_status write_plain(tn__writer *w, const tn_tensor *t, tn_error *err)
{
  size_t bytes = tn_tensor_bytes(t);
  if (tn_tensor_data(t) != NULL) return tn__writer_write(w, tn_tensor_data(t), bytes, err);
  tn_tensor *copy; /* of device memory */
  tn_status s = tn_tensor_copy(t, &copy, err);
  if (s == TN_OK) s = tn__writer_write(w, tn_tensor_data(copy), bytes, err);
  tn_tensor_unref(copy);
  return s;
}

tn_status tn_npy_save(const tn_tensor *tensor, const char *path, tn_error *err)
{
  tn__error_reset(err);
  if (tensor == NULL || path == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_npy_save: %s is NULL", tensor == NULL ? "tensor" : "path");
  tn__text header;
  tn__writer w;
  size_t item;
  tn__text_init(&header, TN_NPY_MAX_HEADER);
  tn_status s = tn__npy_format_header(tensor, &header, &item, err);
  if (s != TN_OK) tn_error_prefix(err, "'%s'", path);
  if (s == TN_OK) s = tn__writer_open(&w, path, err);
  if (s == TN_OK) {
    s = tn__writer_write(&w, header.data, header.size, err);
    if (s == TN_OK)
      s = tn_tensor_dtype(tensor) == TN_STRING ? write_strings(&w, tensor, item, err) : write_plain(&w, tensor, err);
    if (s == TN_OK)
      s = tn__writer_commit(&w, err);
    else
      tn__writer_abandon(&w);
  }
  tn__text_fini(&header);
  return s;
}
