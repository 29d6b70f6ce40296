/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of elementwise programs: tensors of random numbers including special ones,
 * comparing bits of results, and nodes. */
#ifndef TN_TESTS_SUPPORT_ELEMENTWISE_KIT_H
#define TN_TESTS_SUPPORT_ELEMENTWISE_KIT_H

#include "conformance/support/session_kit.h"

static uint64_t seed;

static inline uint32_t random_below(uint32_t n)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(seed >> 33) % n;
}

static inline double random_number(void)
{
  static const double special[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, 3e38, -1 };
  if (random_below(12) == 0) return special[random_below(8)];
  return ((double)random_below(20001) - 10000) / 2500;
}

/* Of any float dtype; halves have arbitrary bits. */
static inline tn_tensor *numbers(tn_dtype dtype, int32_t rank, const int64_t *dims)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &err), &err);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) {
    if (dtype == TN_FLOAT) ((float *)tn_tensor_data(t))[i] = (float)random_number();
    else if (dtype == TN_DOUBLE) ((double *)tn_tensor_data(t))[i] = random_number();
    else ((uint16_t *)tn_tensor_data(t))[i] = (uint16_t)random_below(65536);
  }
  return t;
}

static inline bool is_nan_at(const tn_tensor *t, int64_t i)
{
  const uint16_t *bits = tn_tensor_data(t);
  switch (tn_tensor_dtype(t)) {
  case TN_FLOAT: return ((const float *)tn_tensor_data(t))[i] != ((const float *)tn_tensor_data(t))[i];
  case TN_DOUBLE: return ((const double *)tn_tensor_data(t))[i] != ((const double *)tn_tensor_data(t))[i];
  case TN_HALF: return (bits[i] & 0x7fff) > 0x7c00;
  default: return (bits[i] & 0x7fff) > 0x7f80;
  }
}

/* The same shape and the same bits, except that any NaN equals any NaN. */
static inline bool same(const tn_tensor *a, const tn_tensor *b)
{
  size_t size = tn_dtype_size(tn_tensor_dtype(a));
  if (tn_tensor_dtype(a) != tn_tensor_dtype(b) || tn_tensor_rank(a) != tn_tensor_rank(b)) return false;
  for (int32_t d = 0; d < tn_tensor_rank(a); d++)
    if (tn_tensor_dims(a)[d] != tn_tensor_dims(b)[d]) return false;
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    const char *x = tn_tensor_data(a), *y = tn_tensor_data(b);
    bool equal = memcmp(x + (size_t)i * size, y + (size_t)i * size, size) == 0;
    if (!equal && !(is_nan_at(a, i) && is_nan_at(b, i))) return false;
  }
  return true;
}

static inline tn_output placeholder(tn_graph *graph, const char *name, tn_dtype dtype, int32_t rank,
                                    const int64_t *dims)
{
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", name, 0);
  tn_operation *op = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_operation_set_type(b, "dtype", dtype);
  tn_operation_set_shape(b, "shape", dims, rank);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

static inline tn_output constant(tn_graph *graph, const char *name, tn_dtype dtype, int32_t rank, const int64_t *dims)
{
  tn_tensor *t = numbers(dtype, rank, dims);
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* ConcatV2, or Concat, of values along an axis; a negative axis counts from the end. */
static inline tn_output concat(tn_graph *graph, const char *name, const tn_output *parts, size_t n, int32_t axis,
                               bool old)
{
  char text[40];
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  snprintf(text, sizeof text, "%s_axis", name);
  tn_tensor *number = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &axis, sizeof axis, &number, &err), &err);
  tn_output at = ts_const_tensor(graph, text, number);
  tn_tensor_unref(number);
  tn_operation_builder *b = tn_operation_begin(graph, old ? "Concat" : "ConcatV2", name, 0);
  if (old) tn_operation_add_input(b, at);
  tn_operation_add_input_list(b, parts, n);
  if (!old) tn_operation_add_input(b, at);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, 0 };
}

#endif
