/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of bytes: C = A (B - z) in int32, which wraps. C is m x n, and k is the length of the sums.
 *
 * Operands are extended to 16 bits, so that pairs of terms are multiplied and added at once, exactly. B is read from a
 * copy in panels (tn__bytes_pack). Rows of A are extended by a function of the caller, which also subtracts A's zero
 * point and fills in padding. */
#ifndef TN_OPS_KERNEL_PRODUCT_BYTES_H
#define TN_OPS_KERNEL_PRODUCT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/op.h>

/* Writes terms [term, term + n) of a row of A. */
typedef void (*tn__bytes_rows)(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to);

typedef struct tn__bytes {
  int64_t m, n, k;
  int64_t b_row, b_col;   /* strides of B in elements */
  bool b_signed;
  tn__bytes_rows rows;
  const void *user;
  const int32_t *zero;    /* B's zero point, or one for each column; NULL: none */
  int64_t zero_step;      /* 0 or 1 */
  uint32_t factor;        /* multiplies the product */
  bool add;               /* adds to C */
} tn__bytes;

/* Rows of A that are a matrix of bytes in memory: the `user` of tn__bytes_matrix_rows. */
typedef struct tn__bytes_matrix {
  const void *data;
  int64_t row, col;       /* strides */
  bool is_signed;
  int32_t zero;           /* subtracted */
  const int32_t *zeros;   /* or one for each row */
  bool ones;              /* all elements count as 1 */
} tn__bytes_matrix;
void tn__bytes_matrix_rows(const void *user, int64_t row, int64_t term, int64_t n, int16_t *to);

/* Writes n bytes minus a zero point as 16 bits. */
void tn__bytes_extend(const void *from, bool is_signed, int64_t step, int64_t n, int32_t zero, int16_t *to);

/* Zero points within this range can be subtracted from A's bytes in 16 bits. For others, run
 * the plan without a zero point, and add the product with ones times its negative. */
#define TN__BYTES_NEAR 32000

/* Size of the copy of B, and the function that makes panels [begin, end) of it, of tn__bytes_panels. */
int64_t tn__bytes_panels(const tn__bytes *p);
size_t tn__bytes_packed(const tn__bytes *p);
void tn__bytes_pack(const tn__bytes *p, const void *b, int64_t begin, int64_t end, void *to);
/* Makes the copy with all threads of the step. */
void tn__bytes_pack_parallel(const tn__bytes *p, tn_kernel_ctx *ctx, const void *b, void *to);

/* The estimated time on one thread. */
double tn__bytes_cost(const tn__bytes *p);
void tn__bytes_run(const tn__bytes *p, tn_kernel_ctx *ctx, const void *packed, int32_t *c);

#endif
