/* SPDX-License-Identifier: Apache-2.0 */
/* Between the driver of matrix products and its innermost loops. */
#ifndef TN_OPS_SUPPORT_GEMM_KERNEL_H
#define TN_OPS_SUPPORT_GEMM_KERNEL_H

#include <ops/support/gemm.h>

#define TN__GEMM_LINE 64 /* bytes of a panel's row at most */

struct tn__gemm_kernel {
  /* Strides in elements. Term t of row i of A is a[i][t * step]. pairs is 1, or 4 for one row. */
  void (*tile)(int rows, int pairs, int64_t terms, const void *const *a, int64_t step, const void *b, int64_t b_row,
               int64_t panel, void *c, int64_t c_row, bool first);
  size_t element;
  int mr; /* rows of a tile, at most */
  int nr; /* columns of a panel */
};

/* The best for n columns on this processor. */
const tn__gemm_kernel *tn__gemm_kernel_find(tn__gemm_type type, int64_t n);

#endif
