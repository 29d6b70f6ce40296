/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the targets that create operations: numbers, ops and tensors from a fuzzer's bytes. */
#ifndef TENON_FUZZ_BYTES_H
#define TENON_FUZZ_BYTES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/tenon.h>

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

static inline uint8_t next(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

/* Half of the bytes give numbers at the limits of a file format, half small ones. */
static inline int64_t number(bytes *b)
{
  static const int64_t edges[] = { 0, 1, -1, 2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, (int64_t)1 << 48, 3 };
  uint8_t kind = next(b);
  return kind < 128 ? edges[kind % 10] : kind - 160;
}

static inline tn_bool is_real(tn_dtype dtype)
{
  return dtype == TN_FLOAT || dtype == TN_DOUBLE || dtype == TN_HALF || dtype == TN_BFLOAT16 || dtype == TN_COMPLEX64 ||
         dtype == TN_COMPLEX128;
}

/* The bits of any number of a floating-point or complex type; half of them are edge cases of kernels. */
static inline void next_real(bytes *b, tn_dtype dtype, void *to)
{
  static const double edges[] = {
    0,         -0.0,     0.5,      1e-45, -1e-40,           5e-324,      INFINITY,
    -INFINITY, NAN,      1e30,     1e300, 2147483647,       -2147483649, 16777217,
    65504,     65520,    1e19,     -1e19, 9007199254740991, 4294967296,  3.4028235677973366e38,
    -1e-300,   0x1p-126, 0x1p-1022
  };
  uint8_t kind = next(b);
  double value = edges[kind % (sizeof edges / sizeof edges[0])];
  float narrow = (float)value;
  if (kind < 128 && dtype == TN_DOUBLE) memcpy(to, &value, sizeof value);
  else if (kind < 128 && dtype == TN_FLOAT) memcpy(to, &narrow, sizeof narrow);
  else
    for (size_t i = 0; i < tn_dtype_size(dtype); i++) ((uint8_t *)to)[i] = next(b);
}

static inline tn_tensor *next_tensor(bytes *b)
{
  static const tn_dtype dtypes[] = { TN_INT32, TN_FLOAT, TN_INT64, TN_BOOL };
  tn_tensor *t = NULL;
  int64_t n = next(b) % 6;
  tn_dtype dtype = dtypes[next(b) % 4];
  if (tn_tensor_create(dtype, &n, next(b) % 2, &t, NULL) != TN_OK) abort();
  for (int64_t k = 0; k < tn_tensor_elements(t); k++) {
    int64_t value = number(b);
    if (dtype == TN_INT64) ((int64_t *)tn_tensor_data(t))[k] = value;
    if (dtype == TN_INT32) ((int32_t *)tn_tensor_data(t))[k] = (int32_t)(value & 0xff) - 4;
    if (dtype == TN_FLOAT && value >= -1) ((float *)tn_tensor_data(t))[k] = 1;
    else if (dtype == TN_FLOAT) next_real(b, dtype, (float *)tn_tensor_data(t) + k);
    if (dtype == TN_BOOL) ((uint8_t *)tn_tensor_data(t))[k] = value & 1;
  }
  return t;
}

#define MOST_ITEMS 8

static inline void set_list_attr(tn_operation_builder *op, const char *name, int32_t kind, bytes *b,
                                 const int64_t *ints, size_t n, const char *text)
{
  float floats[MOST_ITEMS];
  tn_bool bools[MOST_ITEMS];
  tn_dtype types[MOST_ITEMS];
  const char *texts[MOST_ITEMS];
  size_t lengths[MOST_ITEMS];
  const int64_t *shapes[MOST_ITEMS];
  int32_t ranks[MOST_ITEMS];
  for (size_t i = 0; i < n; i++) {
    floats[i] = (float)ints[i];
    bools[i] = ints[i] & 1;
    types[i] = next(b) % 32;
    texts[i] = text;
    lengths[i] = strlen(text);
    shapes[i] = ints;
    ranks[i] = (int32_t)(next(b) % (n + 2)) - 1;
  }
  switch (kind) {
  case TN_ATTR_FLOAT: tn_operation_set_floats(op, name, floats, n); break;
  case TN_ATTR_BOOL: tn_operation_set_bools(op, name, bools, n); break;
  case TN_ATTR_TYPE: tn_operation_set_types(op, name, types, n); break;
  case TN_ATTR_STRING: tn_operation_set_strings(op, name, (const void *const *)texts, lengths, n); break;
  case TN_ATTR_SHAPE: tn_operation_set_shapes(op, name, shapes, ranks, n); break;
  case TN_ATTR_FUNC: tn_operation_set_funcs(op, name, texts, n); break;
  case TN_ATTR_TENSOR: {
    tn_tensor *t = next_tensor(b), *tensors[MOST_ITEMS];
    for (size_t i = 0; i < n; i++) tensors[i] = t;
    tn_operation_set_tensors(op, name, tensors, n);
    tn_tensor_unref(t);
    break;
  }
  default: tn_operation_set_ints(op, name, ints, n); break;
  }
}

/* Sets an attribute to a value of its kind, with integers from `some`; `text` is used for strings and functions. */
static inline void set_attr(tn_operation_builder *op, const char *name, int32_t kind, bytes *b,
                            int64_t (*some)(bytes *b), const char *text)
{
  int64_t ints[MOST_ITEMS];
  size_t n = next(b) % (MOST_ITEMS + 1);
  for (size_t i = 0; i < n; i++) ints[i] = some(b);
  switch (kind) {
  case TN_ATTR_INT: tn_operation_set_int(op, name, some(b)); break;
  case TN_ATTR_FLOAT: tn_operation_set_float(op, name, (float)some(b)); break;
  case TN_ATTR_BOOL: tn_operation_set_bool(op, name, next(b) & 1); break;
  case TN_ATTR_TYPE: tn_operation_set_type(op, name, next(b) % 32); break;
  case TN_ATTR_STRING: tn_operation_set_string(op, name, text, strlen(text)); break;
  case TN_ATTR_SHAPE: tn_operation_set_shape(op, name, ints, (int32_t)n - 1); break;
  case TN_ATTR_FUNC: tn_operation_set_func(op, name, text); break;
  case TN_ATTR_TENSOR: {
    tn_tensor *t = next_tensor(b);
    tn_operation_set_tensor(op, name, t);
    tn_tensor_unref(t);
    break;
  }
  default:
    if (kind > TN_ATTR_LIST && kind <= TN_ATTR_LIST + TN_ATTR_FUNC)
      set_list_attr(op, name, kind - TN_ATTR_LIST, b, ints, n, text);
    else
      tn_operation_set_proto(op, name, b->at, (size_t)(b->end - b->at) % 16);
    break;
  }
}

/* Chooses an op. Bytes that start with a capital letter are a name up to a NUL, so that seeds keep their meaning
 * when ops are added; a name of no op gives the next op in alphabetical order. Otherwise two bytes are its number. */
static inline const tn_op_schema *next_op(bytes *b)
{
  char name[64];
  size_t n = 0, low = 0, high = tn_n_op_schemas();
  uint8_t first = next(b);
  if (first < 'A' || first > 'Z') return tn_op_schema_at((first | (size_t)next(b) << 8) % high);
  for (uint8_t c = first; c != 0 && n < sizeof name - 1; c = next(b)) name[n++] = (char)c;
  name[n] = 0;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (strcmp(tn_op_schema_name(tn_op_schema_at(middle)), name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return tn_op_schema_at(low % tn_n_op_schemas());
}

/* A failed status has a message; OK has none. */
static inline void check_status(tn_status status, const tn_error *err)
{
  if ((status == TN_OK) != (tn_error_code(err) == TN_OK)) abort();
  if (status != TN_OK && tn_error_message(err)[0] == 0) abort();
}

#endif
