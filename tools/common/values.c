/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of a tensor as numbers. */
#include <stdlib.h>
#include <string.h>

#include <tools/tool.h>

tn_status tool_values_init(tool_values *values, const tn_tensor *tensor, tn_error *err)
{
  memset(values, 0, sizeof(*values));
  values->dtype = tn_tensor_dtype(tensor);
  values->n = tn_tensor_elements(tensor);
  if (values->dtype == TN_STRING || values->dtype == TN_RESOURCE || values->dtype == TN_VARIANT) return TN_OK;
  values->data = tn_tensor_data(tensor);
  if (values->data != NULL) return TN_OK;
  size_t bytes = tn_tensor_bytes(tensor);
  values->data = values->copy = tool_alloc(bytes, 1);
  tn_status status = bytes > 0 ? tn_tensor_read(tensor, values->copy, bytes, err) : TN_OK;
  if (status != TN_OK) tool_values_fini(values);
  return status;
}

static double integer_at(tn_dtype dtype, const uint8_t *at)
{
  int64_t min = 0;
  uint64_t max, value = 0;
  size_t size = tn_dtype_size(dtype);
  tool_integer_range(dtype, &min, &max);
  memcpy(&value, at, size);
  if (min == 0) return (double)value;
  int unused = 64 - 8 * (int)size;
  return (double)((int64_t)(value << unused) >> unused);
}

double tool_value_at(const tool_values *values, int64_t i, double *imaginary)
{
  size_t size = tn_dtype_size(values->dtype);
  const uint8_t *at = values->data + (size_t)i * size;
  *imaginary = 0;
  switch (values->dtype) {
  case TN_COMPLEX64:
  case TN_COMPLEX128: {
    tn_dtype part = values->dtype == TN_COMPLEX64 ? TN_FLOAT : TN_DOUBLE;
    *imaginary = tool_float_load(part, at + size / 2);
    return tool_float_load(part, at);
  }
  case TN_FLOAT:
  case TN_DOUBLE: return tool_float_load(values->dtype, at);
  case TN_BOOL: return *at != 0;
  default:
    return tool_float_is_small(values->dtype) ? tool_float_load(values->dtype, at) : integer_at(values->dtype, at);
  }
}

void tool_values_fini(tool_values *values)
{
  free(values->copy);
  memset(values, 0, sizeof(*values));
}
