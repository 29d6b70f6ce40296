/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of float weights to shorter types, for packed copies of constants. */
#ifndef TN_OPS_KERNEL_PRODUCT_WEIGHTS_H
#define TN_OPS_KERNEL_PRODUCT_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

/* Rounds n numbers to nearest, ties to even. NaN stays NaN. */
void tn__weights_to_bfloat16(const float *from, int64_t n, uint16_t *to);

/* Scales of the columns of a matrix of float: the largest magnitude / 127, 0 for a column of zeros. Element (i, j) is
 * at from + i row + j column. False if an element is infinite or NaN. */
bool tn__weights_scales(const float *from, int64_t rows, int64_t columns, int64_t row, int64_t column, float *scales);

/* Divides the elements of a dense matrix by their columns' scales, and rounds to nearest. */
void tn__weights_to_int8(const float *from, int64_t rows, int64_t columns, const float *scales, int8_t *to);

#endif
