/* SPDX-License-Identifier: Apache-2.0 */
/* Stored arrays to tensors. If NumPy lacks a type, its bits are stored (bfloat16 as uint16,
 * qint8 as int8); a string array is stored as the concatenated bytes, with the length of each
 * element, or with offsets, in a second array. */
#include "tests/oracle/run/oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_MARK "@SCRATCH@"

/* The same bytes as a tensor of the expected type. */
static bool retype(tn_tensor *stored, tn_dtype dtype, const char *name, tn_tensor **out, oracle_result *result)
{
  *out = NULL;
  if (tn_tensor_dtype(stored) == dtype) {
    *out = tn_tensor_ref(stored);
    return true;
  }
  size_t wanted = tn_dtype_size(dtype), found = tn_dtype_size(tn_tensor_dtype(stored));
  if (wanted != found)
    return oracle_fail(result, "array '%s' is stored as %s, which cannot hold %s", name,
                       tn_dtype_name(tn_tensor_dtype(stored)), tn_dtype_name(dtype));
  tn_error err = TN_ERROR_INIT;
  if (tn_tensor_from_data(dtype, tn_tensor_dims(stored), tn_tensor_rank(stored), tn_tensor_data(stored),
                          tn_tensor_bytes(stored), out, &err) != TN_OK)
    oracle_fail_status(result, &err, name);
  tn_error_clear(&err);
  return *out != NULL;
}

static bool parse(const oracle_bytes *npy, const char *name, tn_tensor **out, oracle_result *result)
{
  tn_error err = TN_ERROR_INIT;
  *out = NULL;
  if (tn_npy_parse(npy->data, npy->size, name, TN_DTYPE_INVALID, out, &err) != TN_OK)
    oracle_fail_status(result, &err, name);
  tn_error_clear(&err);
  return *out != NULL;
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

static const char *find_mark(const char *text, size_t length)
{
  const size_t mark = strlen(SCRATCH_MARK);
  for (size_t i = 0; length - i >= mark && i < length; i++)
    if (memcmp(text + i, SCRATCH_MARK, mark) == 0) return text + i;
  return NULL;
}

/* The folder of the case, created when it is first needed. */
static const char *scratch_folder(oracle_arrays *arrays, oracle_result *result)
{
  const char *tmp = getenv("TMPDIR");
  if (arrays->scratch[0]) return arrays->scratch;
  snprintf(arrays->scratch, sizeof(arrays->scratch), "%s/tenon-oracle-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (mkdtemp(arrays->scratch)) return arrays->scratch;
  oracle_fail(result, "no scratch folder %s", arrays->scratch);
  arrays->scratch[0] = 0;
  return NULL;
}

/* Returns the text with every mark replaced by the folder's path. */
static char *with_folder(const char *text, size_t length, const char *folder, size_t *new_length)
{
  const size_t mark = strlen(SCRATCH_MARK), path = strlen(folder);
  char *copy = oracle_alloc(length * (path / mark + 2) + 1);
  size_t n = 0;
  while (length > 0) {
    const char *at = find_mark(text, length);
    size_t before = at ? (size_t)(at - text) : length;
    memcpy(copy + n, text, before);
    n += before;
    if (at) memcpy(copy + n, folder, path);
    n += at ? path : 0;
    text += before + (at ? mark : 0);
    length -= before + (at ? mark : 0);
  }
  *new_length = n;
  return copy;
}

/* `arrays` is NULL if texts cannot name the folder. */
static bool set_element(oracle_arrays *arrays, tn_tensor *tensor, int64_t i, const char *text, size_t length,
                        oracle_result *result)
{
  char *replaced = NULL;
  if (arrays && find_mark(text, length)) {
    const char *folder = scratch_folder(arrays, result);
    if (!folder) return false;
    text = replaced = with_folder(text, length, folder, &length);
  }
  tn_error err = TN_ERROR_INIT;
  bool ok = tn_tensor_set_string(tensor, i, text, length, &err) == TN_OK ||
            oracle_fail_status(result, &err, "setting a string");
  tn_error_clear(&err);
  free(replaced);
  return ok;
}

/* `marks` has a length for each element, or, with one more number, the positions where each
 * begins and the last ends. */
static bool fill_strings(oracle_arrays *arrays, tn_tensor *tensor, const tn_tensor *bytes, const int64_t *marks,
                         bool offsets, const char *name, oracle_result *result)
{
  const int64_t size = tn_tensor_elements(bytes), n = tn_tensor_elements(tensor);
  const char *text = size > 0 ? tn_tensor_data(bytes) : "";
  int64_t at = 0;
  bool ok = true;
  for (int64_t i = 0; ok && i < n; i++) {
    int64_t begin = offsets ? marks[i] : at, length = offsets ? marks[i + 1] - marks[i] : marks[i];
    if (begin < 0 || length < 0 || begin > size || length > size - begin)
      ok = oracle_fail(result, "array '%s': string %" PRId64 " does not lie inside its %" PRId64 " bytes", name, i,
                       size);
    else
      ok = set_element(arrays, tensor, i, text + begin, (size_t)length, result);
    at = begin + length;
  }
  return ok;
}

static bool make_strings(oracle_arrays *arrays, const tn_tensor *bytes, const tn_tensor *marks, const int64_t *dims,
                         int32_t rank, bool offsets, const char *name, tn_tensor **out, oracle_result *result)
{
  *out = NULL;
  if (tn_dtype_size(tn_tensor_dtype(bytes)) != 1 || tn_tensor_dtype(marks) != TN_INT64)
    return oracle_fail(result, "array '%s': strings are stored as %s and %s, wanted uint8 and int64", name,
                       tn_dtype_name(tn_tensor_dtype(bytes)), tn_dtype_name(tn_tensor_dtype(marks)));
  tn_tensor *tensor;
  tn_error err = TN_ERROR_INIT;
  if (tn_tensor_create(TN_STRING, dims, rank, &tensor, &err) != TN_OK) {
    oracle_fail_status(result, &err, name);
    tn_error_clear(&err);
    return false;
  }
  int64_t n = tn_tensor_elements(tensor), n_marks = tn_tensor_elements(marks);
  bool ok = n_marks == n + (offsets ? 1 : 0) ||
            oracle_fail(result, "array '%s': %" PRId64 " strings with %" PRId64 " marks", name, n, n_marks);
  ok = ok && fill_strings(arrays, tensor, bytes, tn_tensor_data(marks), offsets, name, result);
  if (ok)
    *out = tensor;
  else
    tn_tensor_unref(tensor);
  return ok;
}

/* --- entry points
 * ------------------------------------------------------------------------------------------------ */

static bool dtype_of(const char *text, const char *name, tn_dtype *dtype, oracle_result *result)
{
  *dtype = text ? tn_dtype_from_name(text) : TN_DTYPE_INVALID;
  return *dtype != TN_DTYPE_INVALID || oracle_fail(result, "tensor '%s' has dtype '%s'", name, text ? text : "(none)");
}

static bool stored(oracle_arrays *arrays, const char *name, tn_tensor **out, oracle_result *result)
{
  oracle_bytes npy;
  bool owned;
  *out = NULL;
  if (!oracle_arrays_bytes(arrays, name, &npy, &owned, result)) return false;
  bool ok = parse(&npy, name, out, result);
  if (owned) free(npy.data);
  return ok;
}

bool oracle_arrays_tensor(oracle_arrays *arrays, const char *name, const char *dtype_name, tn_tensor **out,
                          oracle_result *result)
{
  tn_dtype dtype;
  tn_tensor *plain, *lengths;
  *out = NULL;
  if (!dtype_of(dtype_name, name, &dtype, result) || !stored(arrays, name, &plain, result)) return false;
  bool ok;
  if (dtype != TN_STRING) {
    ok = retype(plain, dtype, name, out, result);
  } else {
    char *second = oracle_format("%s#lengths", name);
    ok = stored(arrays, second, &lengths, result);
    free(second);
    ok = ok && make_strings(arrays, plain, lengths, tn_tensor_dims(lengths), tn_tensor_rank(lengths), false, name, out,
                            result);
    tn_tensor_unref(lengths);
  }
  tn_tensor_unref(plain);
  return ok;
}

static bool load(const char *path, tn_tensor **out, oracle_result *result)
{
  oracle_bytes npy;
  char why[500];
  *out = NULL;
  if (!oracle_read_file(path, &npy, why, sizeof(why))) return oracle_fail(result, "%s", why);
  bool ok = parse(&npy, path, out, result);
  free(npy.data);
  return ok;
}

bool oracle_npy_tensor(const char *path, const char *offsets, const char *dtype_name, const int64_t *dims, int32_t rank,
                       tn_tensor **out, oracle_result *result)
{
  tn_dtype dtype;
  tn_tensor *plain, *marks = NULL;
  *out = NULL;
  if (!dtype_of(dtype_name, path, &dtype, result) || !load(path, &plain, result)) return false;
  bool ok;
  if (dtype != TN_STRING)
    ok = retype(plain, dtype, path, out, result);
  else if (!offsets)
    ok = oracle_fail(result, "%s: strings need offsets", path);
  else
    ok = load(offsets, &marks, result) && make_strings(NULL, plain, marks, dims, rank, true, path, out, result);
  tn_tensor_unref(marks);
  tn_tensor_unref(plain);
  return ok;
}
