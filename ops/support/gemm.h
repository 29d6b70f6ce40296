/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = A B for one pair of matrices, C is m x n and k is the length of the sums.
 *
 * Every element of C is summed over k in rising order with one multiplication and one addition a term, whatever the
 * path, the number of threads and the vector width of the machine: results are the same bits everywhere.
 *
 * B is read in panels of two vectors' width. A plan says once how: from a copy in panels that was made beforehand
 * (tn__gemm_pack), through such a copy in scratch memory, or as it lies. A is read through pointers to a few rows, so a
 * convolution's windows need not be copied together. */
#ifndef TN_OPS_SUPPORT_GEMM_H
#define TN_OPS_SUPPORT_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenon/op.h>

typedef enum tn__gemm_type {
  TN__GEMM_F32,
  TN__GEMM_F64,
  TN__GEMM_I32, /* wraps; signed and unsigned */
  TN__GEMM_I64,
  TN__GEMM_C64,
  TN__GEMM_C128
} tn__gemm_type;

#define TN__GEMM_MR 6   /* rows that are done together at most */
#define TN__GEMM_KC 256 /* terms that are done together at most: A's and B's part of it stay in the first cache */

/* Where rows [row, row + rows) of A are, from term `term` on: term t of row i is at[i] + (t - term) * *step elements.
 * Gives 1 to `terms` terms and returns how many. room has place for rows x terms elements that are in no memory. */
typedef int64_t (*tn__gemm_rows)(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                                 const void **at, int64_t *step);

typedef struct tn__gemm_kernel tn__gemm_kernel;

/* Set by the maker: the sizes and strides (in elements), fill, packed. The rest is tn__gemm_plan_choose's. */
typedef struct tn__gemm_plan {
  tn__gemm_type type;
  int64_t m, n, k;      /* may be 0 */
  int64_t a_row, a_col; /* not used with `rows` */
  int64_t b_row, b_col;
  int64_t c_row;        /* columns of C are adjacent */
  tn__gemm_rows rows;   /* NULL: A is in memory */
  bool packed;          /* B is a copy that tn__gemm_pack made */
  bool serial;          /* run on the calling thread, without scratch: one of many small products */

  const tn__gemm_kernel *kernel;
  int64_t k_chunk, n_chunk; /* what goes through scratch at a time; 0 = B is read as it lies */
  size_t scratch;           /* bytes that _run needs */
  double cost_ns;           /* rough time on one thread */
} tn__gemm_plan;

void tn__gemm_plan_choose(tn__gemm_plan *plan);

/* Bytes of a copy of B in panels, and the copying. */
size_t tn__gemm_packed_bytes(const tn__gemm_plan *plan);
void tn__gemm_pack(const tn__gemm_plan *plan, const void *b, void *to);

/* Runs a plan. a is what `rows` gets as its user, if there is one. ctx may be NULL for a serial plan. */
void tn__gemm_run(const tn__gemm_plan *plan, tn_kernel_ctx *ctx, const void *a, const void *b, void *c, void *scratch);

#endif
