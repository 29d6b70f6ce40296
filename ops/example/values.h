/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a tf.Feature: a list of float, int64 or string, packed or not. They are counted first, which checks
 * their bytes, and copied to a tensor when the size of that is known. */
#ifndef TN_OPS_EXAMPLE_VALUES_H
#define TN_OPS_EXAMPLE_VALUES_H

#include <ops/example/cursor.h>
#include <ops/kernel/poll.h>
#include <tenon/tensor.h>

/* Values in a message, which must stay in memory. */
typedef struct tn__feature_values {
  const uint8_t *at; /* the first value, or its tag if they are not packed; NULL: there is no such feature */
  int64_t offset;    /* of the first value in a tensor, for the caller's use */
  uint32_t size;     /* bytes from `at` to the end of the values */
  uint32_t n;        /* number of values */
  uint8_t dtype;     /* TN_FLOAT, TN_INT64 or TN_STRING */
  bool packed;
} tn__feature_values;

/* The bytes of the values; none if there is no feature. */
static inline tn__cursor tn__feature_cursor(const tn__feature_values *v)
{
  return tn__cursor_of((tn__slice){ (const char *)v->at, v->at == NULL ? 0 : v->size });
}

/* The dtype of a feature whose first byte is `tag`; TN_DTYPE_INVALID for none of the lists. */
static inline uint8_t tn__feature_dtype(uint8_t tag)
{
  switch (tag) {
  case TN__TAG_BYTES(1): return TN_STRING;
  case TN__TAG_BYTES(2): return TN_FLOAT;
  case TN__TAG_BYTES(3): return TN_INT64;
  default: return TN_DTYPE_INVALID;
  }
}

/* Counts the values of the list at c, whose tag has been read, and moves c past them. v->dtype says what they are; at,
 * size, n and packed are set. If `exact`, packed floats must be whole and end with their run, and a list with a length
 * must have a byte. False: the bytes are malformed, or the step has ended. */
bool tn__feature_count(tn__cursor *c, bool exact, tn__feature_values *v, tn__poll *poll);

/* Counts varints of at most ten bytes, which must end with the run. False: they do not, or the step has ended. */
bool tn__feature_varints(tn__slice run, size_t *n, tn__poll *poll);

/* Copies the counted values to v->n elements. Fails only if out of memory. If the step ends, the rest is not copied. */
tn_status tn__feature_copy(const tn__feature_values *v, void *to, tn__poll *poll, tn_error *err);

#endif
