/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that scale, shift and clamp each column of a float matrix, such as a batch norm with its activation.
 * They run in one pass over the elements, part by part if the matrix is a concatenation. The bits are the same as
 * those of the separate steps, provided that numbers are rounded to nearest and subnormals are not flushed to zero.
 * */
#ifndef TN_OPS_KERNEL_PRODUCT_AFFINE_H
#define TN_OPS_KERNEL_PRODUCT_AFFINE_H

#include <ops/kernel/move/join.h>

/* out = x * scale + shift, clamped to [low, high]; NaN stays NaN. x_row and out_row are row strides in elements. */
typedef struct tn__affine_rows {
  const float *x, *scale, *shift; /* scale, shift: one per column; NULL: 1 and -0, which have no effect */
  float *out;
  int64_t x_row, out_row, rows, columns;
  float low, high;
} tn__affine_rows;

/* out may equal x if the row strides are equal. */
void tn__affine_run(const tn__affine_rows *r);

/* Description of a program recognised as scale, shift and clamp. */
typedef struct tn__affine {
  bool found;
  uint8_t x;            /* index of the argument that is the matrix */
  int16_t scale, shift; /* indices of arguments; -1: none */
  float low, high;
  int64_t rows, columns, block; /* block: rows at a time */
  const tn__join *join;         /* NULL: x is one input */
  double row_ns;
} tn__affine;

#endif
