/* SPDX-License-Identifier: Apache-2.0 */
/* The table of dtypes: names and sizes. */
#include <core/tensor/tensor_internal.h>

#include <string.h>

typedef struct row {
  const char *name, *ref_name, *upper; /* "float32", "float32_ref", "FLOAT" as in DT_FLOAT */
  size_t size;                         /* bytes of an element */
} row;

static const row rows[] = {
#define DTYPE_ROW(upper, number, bytes, name) [number] = { name, name "_ref", #upper, bytes },
  TN_DTYPE_MAP(DTYPE_ROW)
#undef DTYPE_ROW
};
#define N_ROWS ((tn_dtype)(sizeof(rows) / sizeof(rows[0])))

/* NULL: not the number of a type. Reference types have no rows of their own. */
static const row *find(tn_dtype dtype)
{
  return dtype > 0 && dtype < N_ROWS && rows[dtype].name != NULL ? &rows[dtype] : NULL;
}

const char *tn_dtype_name(tn_dtype dtype)
{
  const row *r = find(tn__dtype_base(dtype));
  if (r == NULL) return "invalid";
  return tn__dtype_is_ref(dtype) ? r->ref_name : r->name;
}

size_t tn_dtype_size(tn_dtype dtype)
{
  const row *r = find(dtype);
  return r == NULL ? 0 : r->size;
}

size_t tn__dtype_align(tn_dtype dtype)
{
  if (tn__dtype_is_managed(dtype)) return 8;
  size_t size = tn_dtype_size(dtype);
  return dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128 ? size / 2 : size;
}

static bool is_text(const char *text, size_t n, const char *wanted)
{
  return strlen(wanted) == n && memcmp(text, wanted, n) == 0;
}

/* Accepts our own names ("float32", "float32_ref"), aliases, and those of protobuf ("DT_FLOAT", "DT_FLOAT_REF"). */
tn_dtype tn_dtype_from_name(const char *name)
{
  static const struct {
    const char *name;
    tn_dtype dtype;
  } aliases[] = { { "float", TN_FLOAT }, { "double", TN_DOUBLE }, { "float16", TN_HALF } };
  if (name == NULL) return TN_DTYPE_INVALID;

  bool proto = strncmp(name, "DT_", 3) == 0;
  if (proto) name += 3;
  size_t n = strlen(name);
  tn_dtype ref = 0;
  if (n > 4 && strcmp(name + n - 4, proto ? "_REF" : "_ref") == 0) {
    ref = TN_DTYPE_REF;
    n -= 4;
  }
  for (tn_dtype d = 1; d < N_ROWS; d++)
    if (rows[d].name != NULL && is_text(name, n, proto ? rows[d].upper : rows[d].name)) return d + ref;
  for (size_t i = 0; !proto && i < sizeof(aliases) / sizeof(aliases[0]); i++)
    if (is_text(name, n, aliases[i].name)) return aliases[i].dtype + ref;
  return TN_DTYPE_INVALID;
}
