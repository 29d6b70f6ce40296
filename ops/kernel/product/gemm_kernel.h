/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the driver of matrix products and its innermost loops. */
#ifndef TN_OPS_KERNEL_PRODUCT_GEMM_KERNEL_H
#define TN_OPS_KERNEL_PRODUCT_GEMM_KERNEL_H

#include <ops/kernel/product/gemm.h>

#define TN__GEMM_LINE 64 /* maximum bytes of one row of a panel */

/* A tile of C: c (+)= a b. Strides are in elements. Term (i, j, t) of row r of A is a[r][i a_outer + j a_inner + t
 * step] and is multiplied by B's row i b_outer + j b_inner + t. */
typedef struct tn__gemm_tile {
  int rows;
  bool first;             /* C is uninitialised: the sums start at 0 */
  bool finish;            /* these are the last terms: apply scales, bias and clamp (float only) */
  uint8_t clamp;          /* tn__gemm_clamp */
  const void *bias;       /* one per column of C, or NULL */
  const void *scales;     /* the same, padded to whole panels; read only by kernels of int8 weights */
  int64_t column, columns; /* columns of C; the first one begins a panel, to which b points */
  int64_t outer, inner, terms;
  int64_t a_outer, a_inner, step;
  int64_t b_outer, b_inner, b_row, panel;
  const void *a[TN__GEMM_MR];
  const void *b;
  void *c[TN__GEMM_MR]; /* column 0 of each row */
  /* Memory that later tiles read: with each term, the line at `next` is fetched to the L2 cache. NULL: none. The steps
   * are bytes, from term to term and from panel to panel. */
  const char *next;
  int64_t next_step, next_panel;
} tn__gemm_tile;

struct tn__gemm_kernel {
  void (*run)(const tn__gemm_tile *tile);
  /* The same for whole panels; rows of C are c_row elements apart. */
  void (*tile)(int rows, int panels, int64_t terms, const void *const *a, int64_t step, const void *b, int64_t b_row,
               int64_t panel, void *c, int64_t c_row, bool first);
  size_t element; /* bytes of a number of A and C */
  size_t weight;  /* bytes of a number of B: less than `element` for reduced weights */
  int mr; /* maximum rows of a tile */
  int nr; /* columns of a panel */
  bool partial; /* `run` accepts columns that do not fill the last panel */
};

/* The best kernel for n columns on this processor. */
const tn__gemm_kernel *tn__gemm_kernel_find(tn__gemm_type type, int64_t n, bool reproducible);

/* The instruction sets for which there are kernels. */
typedef enum tn__gemm_variant {
  TN__GEMM_BASELINE,
  TN__GEMM_AVX2,
  TN__GEMM_FUSED,
  TN__GEMM_AVX512,
  TN__GEMM_HALF, /* AVX-512 with narrow panels */
  TN__GEMM_VARIANTS
} tn__gemm_variant;

tn__gemm_variant tn__gemm_variant_find(tn__gemm_type type, int64_t n, bool reproducible);

/* The kernel for float A and C and reduced weights in B, with panels as wide as those of the variant's float kernel. */
const tn__gemm_kernel *tn__gemm_kernel_reduced(tn__gemm_weights weights, tn__gemm_variant variant);

#endif
