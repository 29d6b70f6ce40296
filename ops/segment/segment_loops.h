/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction of the rows of a segment, and its inner loops. Rows are consecutive, or selected by indices. */
#ifndef TN_OPS_SEGMENT_SEGMENT_LOOPS_H
#define TN_OPS_SEGMENT_SEGMENT_LOOPS_H

#include <ops/kernel/shapes.h>

typedef enum tn__segment_op {
  TN__SEGMENT_SUM,
  TN__SEGMENT_MEAN,
  TN__SEGMENT_SQRTN, /* sum divided by the square root of the number of rows */
  TN__SEGMENT_PROD,
  TN__SEGMENT_MAX,
  TN__SEGMENT_MIN
} tn__segment_op;

/* An accumulator has at most this size: half and bfloat16 are accumulated in float, integers in unsigned numbers. */
#define TN__SEGMENT_ACC_MAX 16

typedef void (*tn__segment_add)(void *acc, const void *data, const int64_t *places, int64_t rows, int64_t stride,
                                int64_t n);
typedef struct tn__segment_loops {
  size_t acc_size;
  /* acc[0..n) = the result of no rows, from which the others are reduced: of a maximum, the lowest number. */
  void (*start)(void *acc, int64_t n);
  /* Reduces n columns of `rows` rows of `data`, which are `stride` elements apart: the rows places[0..rows), or the
   * first ones if places is NULL. */
  tn__segment_add add;
  /* out[j] = the result of acc[j], which has `count` rows. */
  void (*finish)(void *out, const void *acc, int64_t n, int64_t count);
} tn__segment_loops;

/* False if there are no loops for this dtype. */
bool tn__segment_loops_find(tn__segment_op op, tn_dtype dtype, tn__segment_loops *out);

/* ---- sorted segments ---- */

/* Checks that ids, a vector of int32 or int64, are sorted and not negative. *rows is the last id plus 1, or 0. */
tn_status tn__segments_check(const tn_kernel_ctx *ctx, const tn_view *ids, int64_t *rows);

/* Reduces the rows of `data` by segment to output 0, of which row s is the result of the rows whose id is s. The row of
 * id i is row i, or row indices[i], which must have been checked. A row without any is 0, or 1 for a product. */
void tn__segments_run(tn_kernel_ctx *ctx, tn__segment_op op, const tn__segment_loops *loops, const tn_view *data,
                      const tn_view *indices, const tn_view *ids);

/* Elements of a row: the product of all dimensions but the first; it wraps if there are no elements. */
int64_t tn__segment_inner(const tn_view *data);

#endif
