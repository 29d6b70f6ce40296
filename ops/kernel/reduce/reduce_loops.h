/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reductions, one set for each operation and dtype.
 *
 * An accumulator collects one result. It is wider than the element where sums need the precision: float sums are
 * accumulated in double, half in float and double, integer means in 64 bits. No loop branches on data. */
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

/* Maximum size of an accumulator in bytes. */
#define TN__REDUCE_ACC_MAX 16

typedef struct tn__reduce_loops {
  tn__reduce_op op;
  tn_dtype dtype;
  size_t acc_size;
  /* acc[0..n) = the result of reducing no elements. */
  void (*init)(void *acc, int64_t n);
  /* Reduces in[i * stride + j], i < rows, into acc[j], j < n. */
  void (*columns)(void *acc, const void *in, int64_t rows, int64_t stride, int64_t n);
  /* Reduces in[o * stride + i], i < n, into acc[o], o < outs. */
  void (*rows)(void *acc, const void *in, int64_t n, int64_t stride, int64_t outs);
  /* Combines other[j] into acc[j]. */
  void (*combine)(void *acc, const void *other, int64_t n);
  /* out[j] = the final result of acc[j], which reduced `count` elements. */
  void (*finish)(void *out, const void *acc, int64_t n, int64_t count);
} tn__reduce_loops;

/* NULL if the operation does not support the dtype. */
const tn__reduce_loops *tn__reduce_loops_find(tn__reduce_op op, tn_dtype dtype);

/* Sums of half over columns of a few rows, rounded after each addition as TensorFlow does; this matters if terms
 * cancel. Not for many terms: such a sum stops growing at 2048 times the size of a term. */
extern const tn__reduce_loops tn__reduce_short_half_sum;
#define TN__REDUCE_SHORT 64

#endif
