/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/elements.h>

#include <string.h>

static tn_status copy_string(tn_string *to, const tn_string *from, tn_error *err)
{
  size_t n;
  const char *text = tn_string_data(from, &n);
  return tn_string_set(to, text, n, err);
}

static void copy_handle(tn_handle **to, tn_handle *from)
{
  tn_handle *old = *to;
  if (from != NULL) from->cls->ref(from);
  *to = from;
  if (old != NULL) old->cls->unref(old);
}

tn_status tn__copy_elements(tn_dtype dtype, void *to, const void *from, int64_t n, tn_error *err)
{
  tn_status st = TN_OK;
  if (n <= 0) return TN_OK;
  if (dtype == TN_STRING)
    for (int64_t i = 0; st == TN_OK && i < n; i++)
      st = copy_string((tn_string *)to + i, (const tn_string *)from + i, err);
  else if (tn__dtype_is_managed(dtype))
    for (int64_t i = 0; i < n; i++) copy_handle((tn_handle **)to + i, ((tn_handle *const *)from)[i]);
  else
    memcpy(to, from, (size_t)n * tn_dtype_size(dtype));
  return st;
}

tn_status tn__fill_elements(tn_dtype dtype, void *to, const void *value, int64_t n, tn_error *err)
{
  tn_status st = TN_OK;
  if (dtype == TN_STRING)
    for (int64_t i = 0; st == TN_OK && i < n; i++) st = copy_string((tn_string *)to + i, value, err);
  else if (tn__dtype_is_managed(dtype))
    for (int64_t i = 0; i < n; i++) copy_handle((tn_handle **)to + i, *(tn_handle *const *)value);
  else
    tn__fill_bytes(tn_dtype_size(dtype), to, value, n);
  return st;
}

#define FILL(T)                                  \
  do {                                           \
    T v, *out = to;                              \
    memcpy(&v, value, sizeof v);                 \
    for (int64_t i = 0; i < n; i++) out[i] = v;  \
  } while (0)

typedef struct pair {
  uint64_t a, b;
} pair;

void tn__fill_bytes(size_t size, void *to, const void *value, int64_t n)
{
  switch (size) {
  case 1:
    if (n > 0) memset(to, *(const uint8_t *)value, (size_t)n);
    break;
  case 2: FILL(uint16_t); break;
  case 4: FILL(uint32_t); break;
  case 8: FILL(uint64_t); break;
  default: FILL(pair);
  }
}

int64_t tn__index_at(const tn_view *view, int64_t k)
{
  switch (view->dtype) {
  case TN_INT64: return ((const int64_t *)view->data)[k];
  case TN_INT32: return ((const int32_t *)view->data)[k];
  case TN_INT16: return ((const int16_t *)view->data)[k];
  case TN_UINT16: return ((const uint16_t *)view->data)[k];
  case TN_UINT32: return ((const uint32_t *)view->data)[k];
  case TN_UINT8: return ((const uint8_t *)view->data)[k];
  default: return ((const int8_t *)view->data)[k];
  }
}
