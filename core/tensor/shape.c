/* SPDX-License-Identifier: Apache-2.0 */
/* The number of elements and bytes of a shape, with overflow checks. */
#include <core/tensor/tensor_internal.h>

#include <inttypes.h>

/* Counts the elements of a shape, at most `limit`. If a dimension is zero, the product of the others must still be
 * within the limit, because strides are computed from them. */
static tn_status count_elements(const int64_t *dims, int32_t rank, int64_t limit, int64_t *out, tn_error *err)
{
  char text[160];
  *out = 0;
  if (rank < 0 || rank > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "rank %" PRId32 " is outside 0 to %d", rank, TN_MAX_RANK);
  if (rank > 0 && dims == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "no dimensions are given for rank %" PRId32, rank);
  int64_t product = 1;
  bool empty = false;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "dimension %" PRId32 " of shape %s is %" PRId64 ", wanted 0 or more", i,
                          tn__format_shape(text, sizeof(text), dims, rank), dims[i]);
    if (dims[i] == 0) {
      empty = true;
    } else if (product > limit / dims[i]) {
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "shape %s is too large: with dimension %" PRId32 " it has more than %" PRId64 " elements",
                          tn__format_shape(text, sizeof(text), dims, rank), i, limit);
    } else {
      product *= dims[i];
    }
  }
  *out = empty ? 0 : product;
  return TN_OK;
}

tn_status tn_shape_elements(const int64_t *dims, int32_t rank, int64_t *elements, tn_error *err)
{
  int64_t n;
  tn__error_reset(err);
  tn_status s = count_elements(dims, rank, PTRDIFF_MAX, &n, err);
  if (elements != NULL) *elements = n;
  return s;
}

tn_status tn_shape_bytes(tn_dtype dtype, const int64_t *dims, int32_t rank, size_t *bytes, tn_error *err)
{
  int64_t n;
  tn__error_reset(err);
  if (bytes != NULL) *bytes = 0;
  size_t size = tn_dtype_size(dtype);
  if (size == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s (number %" PRId32 ") is not a data type of tensors",
                        tn_dtype_name(dtype), dtype);
  tn_status s = count_elements(dims, rank, (int64_t)(PTRDIFF_MAX / size), &n, err);
  if (s == TN_OK && bytes != NULL) *bytes = (size_t)n * size;
  return s;
}
