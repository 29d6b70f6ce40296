/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that scale, shift and clamp each column of a matrix, as a batch norm with its activation does: of float, in one
 * pass over the elements, part by part where the matrix is a concatenation. The bits are those of the steps one by one, as
 * long as numbers are rounded to the nearest and tiny ones are not flushed. */
#ifndef TN_OPS_KERNEL_PRODUCT_AFFINE_H
#define TN_OPS_KERNEL_PRODUCT_AFFINE_H

#include <ops/kernel/move/join.h>

/* out = x * scale + shift, not below `low`, not above `high`; NaN stays. Rows of x and out are so many elements apart. */
typedef struct tn__affine_rows {
  const float *x, *scale, *shift; /* scale and shift by column; NULL: 1 and -0, which change nothing */
  float *out;
  int64_t x_row, out_row, rows, columns;
  float low, high;
} tn__affine_rows;

/* out may be x when the rows are equally far apart. */
void tn__affine_run(const tn__affine_rows *r);

/* A program that is such a thing. */
typedef struct tn__affine {
  bool found;
  uint8_t x;            /* the argument that is the matrix */
  int16_t scale, shift; /* arguments; -1: none */
  float low, high;
  int64_t rows, columns, block; /* block: rows at a time */
  const tn__join *join;         /* NULL: x is one input */
  double row_ns;
} tn__affine;

#endif
