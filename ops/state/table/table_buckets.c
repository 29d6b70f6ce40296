/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns the rows of a dense table to buckets by TensorFlow's hash functions, with quadratic probing. */
#include <ops/state/table/table_buckets.h>
#include <ops/string/hash/fingerprint.h>

#include <string.h>

/* The hash of an element. Only types that TensorFlow has as keys need to be right. */
static uint64_t hash_element(tn_dtype dtype, const char *element)
{
  int64_t wide = 0;
  int32_t narrow = 0;
  size_t n;
  if (dtype == TN_STRING) {
    const char *text = tn_string_data((const tn_string *)element, &n);
    return tn__murmur64(text, n);
  }
  if (dtype == TN_INT32) {
    memcpy(&narrow, element, sizeof narrow);
    return (uint64_t)(int64_t)narrow;
  }
  n = tn_dtype_size(dtype);
  memcpy(&wide, element, n < sizeof wide ? n : sizeof wide);
  return (uint64_t)wide;
}

static uint64_t hash_key(const tn__rows *rows, const char *key)
{
  size_t size = tn_dtype_size(rows->key_dtype);
  uint64_t h = 0;
  if (rows->key_elements == 1) return hash_element(rows->key_dtype, key);
  for (int64_t i = 0; i < rows->key_elements; i++, key += size)
    h ^= hash_element(rows->key_dtype, key) + UINT64_C(0x9e3779b97f4a7800) + (h << 10) + (h >> 4);
  return h;
}

void tn__rows_place(const tn__rows *rows, size_t *buckets, size_t n)
{
  for (size_t i = 0; i < n; i++) buckets[i] = SIZE_MAX;
  for (size_t i = 0; i < rows->n; i++) {
    size_t at = (size_t)hash_key(rows, tn__rows_key(rows, i)) & (n - 1);
    for (size_t probes = 1; buckets[at] != SIZE_MAX; probes++) at = (at + probes) & (n - 1);
    buckets[at] = i;
  }
}
