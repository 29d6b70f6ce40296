/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reductions, one set for each operation and dtype.
 *
 * An accumulator is what a result is gathered in: wider than the element where that makes sums exact enough (float sums
 * are gathered in double, half in float and double, integer means in 64 bits). No loop branches on data. */
#ifndef TN_OPS_KERNEL_REDUCE_REDUCE_LOOPS_H
#define TN_OPS_KERNEL_REDUCE_REDUCE_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <tenon/tensor.h>

typedef enum tn__reduce_op {
  TN__REDUCE_SUM,
  TN__REDUCE_PROD,
  TN__REDUCE_MEAN,
  TN__REDUCE_NORM, /* square root of the sum of squares */
  TN__REDUCE_MAX,
  TN__REDUCE_MIN,
  TN__REDUCE_ALL,
  TN__REDUCE_ANY
} tn__reduce_op;

/* Widest accumulator, bytes. */
#define TN__REDUCE_ACC_MAX 16

typedef struct tn__reduce_loops {
  tn__reduce_op op;
  tn_dtype dtype;
  size_t acc_size;
  /* acc[0..n) = the result of reducing nothing. */
  void (*init)(void *acc, int64_t n);
  /* acc[j] takes in[i * stride + j] for i < rows, j < n. */
  void (*columns)(void *acc, const void *in, int64_t rows, int64_t stride, int64_t n);
  /* acc[o] takes in[o * stride + i] for i < n, o < outs. */
  void (*rows)(void *acc, const void *in, int64_t n, int64_t stride, int64_t outs);
  /* acc[j] takes the accumulator other[j]. */
  void (*combine)(void *acc, const void *other, int64_t n);
  /* out[j] = the result; `count` elements went into each. */
  void (*finish)(void *out, const void *acc, int64_t n, int64_t count);
} tn__reduce_loops;

/* NULL when the operation has none for the dtype. */
const tn__reduce_loops *tn__reduce_loops_find(tn__reduce_op op, tn_dtype dtype);

/* Sums of halves down a few rows, rounded after each addition: TensorFlow's own results, which matter where the terms
 * cancel. Not for many terms: such a sum stops growing at 2048 times its last one. */
extern const tn__reduce_loops tn__reduce_short_half_sum;
#define TN__REDUCE_SHORT 64

#endif
