/* SPDX-License-Identifier: Apache-2.0 */
/* Between the driver of matrix products and its innermost loops. */
#ifndef TN_OPS_KERNEL_PRODUCT_GEMM_KERNEL_H
#define TN_OPS_KERNEL_PRODUCT_GEMM_KERNEL_H

#include <ops/kernel/product/gemm.h>

#define TN__GEMM_LINE 64 /* bytes of a panel's row at most */

/* A tile of C: c (+)= a b. Strides are in elements. Term (i, j, t) of row r of A is a[r][i a_outer + j a_inner + t
 * step], and meets B's row i b_outer + j b_inner + t. */
typedef struct tn__gemm_tile {
  int rows;
  bool first;             /* C has no sums yet */
  bool finish;            /* these are the last terms: bias and clamp follow, of float */
  uint8_t clamp;          /* tn__gemm_clamp */
  const void *bias;       /* for each column of C, or NULL */
  int64_t column, columns; /* of C: b is at the first of them, which begins a panel */
  int64_t outer, inner, terms;
  int64_t a_outer, a_inner, step;
  int64_t b_outer, b_inner, b_row, panel;
  const void *a[TN__GEMM_MR];
  const void *b;
  void *c[TN__GEMM_MR]; /* column 0 of each row */
} tn__gemm_tile;

struct tn__gemm_kernel {
  void (*run)(const tn__gemm_tile *tile);
  /* The same for whole panels, of which one row may have 4, and rows that lie c_row apart. */
  void (*tile)(int rows, int panels, int64_t terms, const void *const *a, int64_t step, const void *b, int64_t b_row,
               int64_t panel, void *c, int64_t c_row, bool first);
  size_t element;
  int mr; /* rows of a tile, at most */
  int nr; /* columns of a panel */
  bool partial; /* `run` takes columns that are not whole panels */
};

/* The best for n columns on this processor. */
const tn__gemm_kernel *tn__gemm_kernel_find(tn__gemm_type type, int64_t n);

#endif
