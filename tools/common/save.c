/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --fetch TENSOR=: an .npy file, or an array in an .npz file. All arrays of an .npz file are written
 * together, because a file is written completely or not at all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tools/tool.h>

int tool_place_parse(tool_place *place, const char *tensor, const char *value)
{
  size_t length = value != NULL ? strlen(value) : 0;
  place->tensor = tensor;
  if (value == NULL) return TOOL_OK;
  if (tool_split_npz(value, &length, &place->key)) {
    if (place->key == NULL || place->key[0] == '\0')
      return tool_usage("run", "--fetch '%s=%s': the array needs a key, as in %.*s:NAME", tensor, value,
                        (int)length, value);
  } else if (length < 5 || strcmp(value + length - 4, ".npy") != 0) {
    return tool_usage("run", "--fetch '%s=%s': the file name must end in .npy, or in .npz followed by :KEY",
                      tensor, value);
  }
  place->file = tool_alloc(length + 1, 1);
  memcpy(place->file, value, length);
  return TOOL_OK;
}

tn_status tool_real_name(const char *file, char **out, tn_error *err)
{
  const char *slash = strrchr(file, '/');
  size_t length = slash == NULL ? 0 : (size_t)(slash - file);
  if (slash == file) length = 1; /* "/" */
  char *folder = tool_alloc(length + 2, 1);
  memcpy(folder, length > 0 ? file : ".", length > 0 ? length : 1);
  char *real = realpath(folder, NULL);
  int code = errno;
  tn_status status = TN_OK;
  if (real == NULL)
    status = tn_error_set(err, code == EACCES ? TN_PERMISSION_DENIED : TN_NOT_FOUND,
                          "cannot write '%s': folder '%s': %s", file, folder, strerror(code));
  else if (access(real, W_OK | X_OK) != 0)
    status =
        tn_error_set(err, TN_PERMISSION_DENIED, "cannot write '%s': folder '%s': %s", file, folder, strerror(errno));
  if (status == TN_OK) {
    tool_text name = { 0 };
    tool_text_printf(&name, "%s/%s", real, slash != NULL ? slash + 1 : file);
    *out = name.data;
  }
  free(real);
  free(folder);
  return status;
}

/* Two tensors may share an .npz file only under different keys. */
static int check_pair(const tool_place *a, const tool_place *b)
{
  if (a->real == NULL || strcmp(a->real, b->real) != 0) return TOOL_OK;
  if (a->key == NULL || b->key == NULL)
    return tool_usage("run", "'%s' and '%s' would both be written to '%s'", a->tensor, b->tensor, b->file);
  if (strcmp(a->key, b->key) != 0) return TOOL_OK;
  return tool_usage("run", "'%s' and '%s' would both be written to '%s' under the key '%s'", a->tensor, b->tensor,
                    b->file, b->key);
}

int tool_places_check(tool_place *places, size_t n)
{
  tn_error err = TN_ERROR_INIT;
  for (size_t i = 0; i < n; i++) {
    tool_place *place = &places[i];
    struct stat about;
    if (place->file == NULL) continue;
    if (tool_real_name(place->file, &place->real, &err) != TN_OK) return tool_fail(&err);
    if (stat(place->file, &about) == 0 && !S_ISREG(about.st_mode)) {
      tn_error_set(&err, TN_INVALID_ARGUMENT, "cannot write '%s': it exists and is not a regular file", place->file);
      return tool_fail(&err);
    }
    for (size_t j = 0; j < i; j++) {
      int status = check_pair(&places[j], place);
      if (status != TOOL_OK) return status;
    }
  }
  return TOOL_OK;
}

/* Writes the .npz file of places[first] if that is the first place that names the file. */
static tn_status save_npz(const tool_place *places, tn_tensor *const *tensors, size_t n, size_t first, tn_error *err)
{
  for (size_t i = 0; i < first; i++)
    if (places[i].real != NULL && strcmp(places[i].real, places[first].real) == 0) return TN_OK;
  const char **keys = tool_alloc(n, sizeof(*keys));
  tn_tensor **arrays = tool_alloc(n, sizeof(tn_tensor *));
  size_t count = 0;
  for (size_t i = first; i < n; i++)
    if (places[i].real != NULL && strcmp(places[i].real, places[first].real) == 0) {
      keys[count] = places[i].key;
      arrays[count++] = tensors[i];
    }
  tn_status status = tn_npz_save(keys, arrays, count, 0, places[first].file, err);
  free(keys);
  free(arrays);
  return status;
}

tn_status tool_places_save(const tool_place *places, tn_tensor *const *tensors, size_t n, tn_error *err)
{
  tn_status status = TN_OK;
  for (size_t i = 0; i < n && status == TN_OK; i++) {
    if (places[i].file == NULL) continue;
    if (places[i].key != NULL) {
      status = save_npz(places, tensors, n, i, err);
    } else {
      status = tn_npy_save(tensors[i], places[i].file, err);
      if (status != TN_OK) tn_error_prefix(err, "fetch '%s'", places[i].tensor);
    }
  }
  return status;
}

void tool_places_destroy(tool_place *places, size_t n)
{
  for (size_t i = 0; i < n && places != NULL; i++) {
    free(places[i].file);
    free(places[i].real);
  }
  free(places);
}
