/* SPDX-License-Identifier: Apache-2.0 */
/* The value of --feed TENSOR=: an .npy file, an array in an .npz file, @FILE, or a literal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tools/tool.h>

static tn_status status_of(int code)
{
  switch (code) {
  case ENOENT:
  case ENOTDIR: return TN_NOT_FOUND;
  case EACCES:
  case EPERM: return TN_PERMISSION_DENIED;
  case ENOMEM:
  case EFBIG: return TN_RESOURCE_EXHAUSTED;
  default: return TN_INVALID_ARGUMENT;
  }
}

static tn_status system_error(const char *path, int code, tn_error *err)
{
  return tn_error_set(err, status_of(code), "'%s': %s", path, strerror(code));
}

/* Reads to the end of the file. The size from fstat is only a hint, as the file may grow. */
static tn_status read_all(int file, const char *path, size_t guess, tool_text *out, tn_error *err)
{
  size_t size = guess < 16777216 ? guess + 1 : 16777216;
  tn_status status = TN_OK;
  if (guess < 65536) size = 65536;
  char *chunk = tool_alloc(size, 1);
  for (;;) {
    ssize_t n = read(file, chunk, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = system_error(path, errno, err);
    if (n <= 0) break;
    tool_text_add(out, chunk, (size_t)n);
  }
  free(chunk);
  return status;
}

static const char *kind_of(mode_t mode)
{
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Appends the contents of a regular file. */
static tn_status read_file(const char *path, tool_text *out, tn_error *err)
{
  struct stat about;
  /* Without O_NONBLOCK, opening a FIFO blocks until a writer opens it. */
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return system_error(path, errno, err);
  tn_status status;
  if (fstat(file, &about) != 0)
    status = system_error(path, errno, err);
  else if (S_ISDIR(about.st_mode))
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is a directory, wanted a regular file", path);
  else if (!S_ISREG(about.st_mode))
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' is %s, wanted a regular file", path,
                          kind_of(about.st_mode));
  else
    status = read_all(file, path, (size_t)about.st_size, out, err);
  close(file);
  if (status != TN_OK) tool_text_fini(out);
  return status;
}

static tn_status feed_bytes(const char *path, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  if (dtype != TN_STRING && dtype != TN_DTYPE_INVALID)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "@FILE feeds a string, but the model expects %s",
                        tn_dtype_name(dtype));
  tool_text bytes = { 0 };
  tn_status status = read_file(path, &bytes, err);
  const char *text = bytes.length > 0 ? bytes.data : "";
  if (status == TN_OK) status = tn_tensor_from_strings(NULL, 0, &text, &bytes.length, out, err);
  tool_text_fini(&bytes);
  return status;
}

/* Checks the type of an array read from `where` and passes it to *out. */
static tn_status feed_array(const char *where, tn_tensor *tensor, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  tn_status status;
  if (dtype != TN_DTYPE_INVALID && tn_tensor_dtype(tensor) != dtype) {
    status = tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' contains %s, but the model expects %s", where,
                          tn_dtype_name(tn_tensor_dtype(tensor)), tn_dtype_name(dtype));
    tn_tensor_unref(tensor);
    return status;
  }
  *out = tensor;
  return TN_OK;
}

static tn_status feed_npy(const char *path, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  tn_tensor *tensor = NULL;
  tn_status status = tn_npy_load(path, dtype, &tensor, err);
  return status == TN_OK ? feed_array(path, tensor, dtype, out, err) : status;
}

bool tool_split_npz(const char *value, size_t *length, const char **key)
{
  for (const char *at = strstr(value, ".npz"); at != NULL; at = strstr(at + 1, ".npz")) {
    if (at == value || (at[4] != '\0' && at[4] != ':')) continue;
    *length = (size_t)(at - value) + 4;
    *key = at[4] == ':' ? at + 5 : NULL;
    return true;
  }
  return false;
}

/* Without a key, the file must contain exactly one array. */
static tn_status choose_key(const tn_npz *npz, const char *path, const char **key, tn_error *err)
{
  enum { MOST = 10 };
  size_t n = tn_npz_count(npz);
  if (*key != NULL) return TN_OK;
  if (n == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' contains no arrays", path);
  *key = tn_npz_key(npz, 0);
  if (n == 1) return TN_OK;
  tool_text list = { 0 };
  for (size_t i = 0; i < n && i < MOST; i++) tool_text_printf(&list, "%s%s", i > 0 ? ", " : "", tn_npz_key(npz, i));
  if (n > MOST) tool_text_printf(&list, " and %zu more", n - MOST);
  tn_status status =
      tn_error_set(err, TN_INVALID_ARGUMENT, "'%s' contains %zu arrays; select one, as in %s:%s: the keys are %s", path,
                   n, path, *key, list.data);
  tool_text_fini(&list);
  return status;
}

static tn_status feed_npz(const char *value, size_t length, const char *key, tn_dtype dtype, tn_tensor **out,
                          tn_error *err)
{
  tn_npz *npz;
  tn_tensor *tensor = NULL;
  char *path = tool_alloc(length + 1, 1);
  memcpy(path, value, length);
  tn_status status = tn_npz_open(path, &npz, err);
  if (status == TN_OK) status = choose_key(npz, path, &key, err);
  if (status == TN_OK) status = tn_npz_load(npz, key, dtype, &tensor, err);
  if (status == TN_OK) status = feed_array(value, tensor, dtype, out, err);
  tn_npz_close(npz);
  free(path);
  return status;
}

static bool ends_in_npy(const char *text)
{
  size_t length = strlen(text);
  return length > 4 && strcmp(text + length - 4, ".npy") == 0 && strchr("[\"'", text[0]) == NULL;
}

tn_status tool_make_feed(const char *value, tn_dtype dtype, tn_tensor **out, tn_error *err)
{
  size_t length;
  const char *key;
  *out = NULL;
  if (value[0] == '@') return feed_bytes(value + 1, dtype, out, err);
  if (strchr("[\"'", value[0]) == NULL && tool_split_npz(value, &length, &key))
    return feed_npz(value, length, key, dtype, out, err);
  if (ends_in_npy(value)) return feed_npy(value, dtype, out, err);
  if (dtype == TN_DTYPE_INVALID)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "its type is unknown because its op is not supported: use an .npy or .npz file");
  tn_status status = tool_literal(value, dtype, out, err);
  /* A file name without the suffix is a likely mistake. */
  if (status != TN_OK && dtype != TN_STRING && access(value, F_OK) == 0)
    tn_error_wrap(err, TN_OK,
                  "'%s' is not a value; a file name must end in .npy or .npz, or begin with @ to feed the file's bytes",
                  value);
  return status;
}
