/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/indices.h>

#include <ops/kernel/shapes.h>
#include <string.h>

#define LOAD(T)                                                      \
  do {                                                               \
    const T *x = (const T *)indices->data + at;                      \
    for (int64_t i = 0; i < n; i++) to[i] = x[i];                    \
  } while (0)

void tn__indices_load(const tn_view *indices, int64_t at, int64_t n, int64_t *to)
{
  switch (indices->dtype) {
  case TN_INT64: LOAD(int64_t); break;
  case TN_INT32: LOAD(int32_t); break;
  case TN_UINT16: LOAD(uint16_t); break;
  default: LOAD(int16_t);
  }
}

tn_status tn__indices_check(tn_error *err, const tn_view *indices, int64_t limit)
{
  int64_t x[TN__INDEX_BLOCK];
  for (int64_t at = 0, n; at < indices->count; at += n) {
    n = indices->count - at < TN__INDEX_BLOCK ? indices->count - at : TN__INDEX_BLOCK;
    tn__indices_load(indices, at, n, x);
    bool bad = false;
    for (int64_t i = 0; i < n; i++) bad |= (uint64_t)x[i] >= (uint64_t)limit;
    for (int64_t i = 0; bad && i < n; i++)
      if (x[i] < 0 || x[i] >= limit)
        return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld of input 1 is %lld, wanted one in [0, %lld)",
                            (long long)(at + i), (long long)x[i], (long long)limit);
  }
  return TN_OK;
}

void tn__space_init(tn__index_space *s, const tn_view *indices, const int64_t *dims)
{
  uint64_t n = 1; /* may wrap if the output or the indices have no elements; unused in that case */
  for (int32_t i = 0; i < indices->rank - 1; i++) n *= (uint64_t)indices->dims[i];
  *s = (tn__index_space){ indices, dims, (int32_t)indices->dims[indices->rank - 1], (int64_t)n };
}

#define PLACES(T)                                                          \
  do {                                                                     \
    const T *x = (const T *)s->indices->data + begin * s->depth;           \
    for (int64_t k = 0; k < n; k++, x += s->depth) {                       \
      uint64_t place = 0;                                                  \
      bool bad = false;                                                    \
      for (int32_t d = 0; d < s->depth; d++) {                             \
        bad |= (uint64_t)(int64_t)x[d] >= (uint64_t)s->dims[d];            \
        place = place * (uint64_t)s->dims[d] + (uint64_t)(int64_t)x[d];    \
      }                                                                    \
      places[k] = bad ? -1 : (int64_t)place;                               \
    }                                                                      \
  } while (0)

void tn__space_places(const tn__index_space *s, int64_t begin, int64_t n, int64_t *places)
{
  switch (s->indices->dtype) {
  case TN_INT64: PLACES(int64_t); break;
  case TN_INT32: PLACES(int32_t); break;
  case TN_UINT16: PLACES(uint16_t); break;
  default: PLACES(int16_t);
  }
}

int64_t tn__space_find_bad(const tn__index_space *s)
{
  int64_t places[TN__INDEX_BLOCK];
  for (int64_t at = 0, n; at < s->n; at += n) {
    n = s->n - at < TN__INDEX_BLOCK ? s->n - at : TN__INDEX_BLOCK;
    tn__space_places(s, at, n, places);
    for (int64_t k = 0; k < n; k++)
      if (places[k] < 0) return at + k;
  }
  return -1;
}

tn_status tn__space_error(const tn__index_space *s, tn_error *err)
{
  int64_t k = tn__space_find_bad(s), x[TN_MAX_RANK];
  tn__indices_load(s->indices, k * s->depth, s->depth, x);
  for (int32_t d = 0; d < s->depth; d++)
    if (x[d] < 0 || x[d] >= s->dims[d])
      return tn_error_set(err, TN_INVALID_ARGUMENT, "index %lld is %lld in dimension %d, wanted one in [0, %lld)",
                          (long long)k, (long long)x[d], (int)d, (long long)s->dims[d]);
  return TN_OK;
}

tn_status tn__bad_indices_create(const tn_operation *op, void **state, tn_error *err)
{
  static const char *const choices[] = { "", "DEFAULT", "ERROR", "IGNORE" };
  static const tn__bad_indices policies[] = { { false }, { false }, { false }, { true } };
  int choice;
  tn_status st = tn__attr_choice(op, "bad_indices_policy", choices, 4, &choice, err);
  *state = (void *)&policies[choice]; /* only read through it */
  return st;
}
