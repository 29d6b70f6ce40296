/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = A B for one pair of matrices, C is m x n and k is the length of the sums.
 *
 * Every element of C is summed over k in rising order with one multiplication and one addition a term, whatever the
 * path, the number of threads and the vector width of the machine: results are the same bits everywhere.
 *
 * B is read in panels of one or two vectors' width. A plan says once how: from a copy in panels that was made
 * beforehand (tn__gemm_pack), through such a copy in scratch memory, or as it lies. A is read through pointers to a few
 * rows, so a convolution's windows need not be copied together. What follows a product can be done to a few rows at a
 * time, while the first cache has them. */
#ifndef TN_OPS_KERNEL_PRODUCT_GEMM_H
#define TN_OPS_KERNEL_PRODUCT_GEMM_H

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

#define TN__GEMM_MR 12  /* rows that are done together at most */
#define TN__GEMM_KC 256 /* terms that are done together at most: A's and B's part of it stay in the first cache */

/* Where rows [row, row + rows) of A are, from term `term` on: term t of row i is at[i] + (t - term) * *step elements.
 * Gives 1 to `terms` terms and returns how many. room has place for rows x terms elements that are in no memory. */
typedef int64_t (*tn__gemm_rows)(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                                 const void **at, int64_t *step);

/* Rows of A of one pattern: term t of run (i, j) of row r is a[r] + i a_outer + j a_inner + t, in elements, and meets
 * B's row b + i b_outer + j b_inner + t. Row r is row c[r] of C. Terms that no run has count as zeros. */
typedef struct tn__gemm_window {
  int rows;
  int64_t outer, inner, terms;
  int64_t a_outer, a_inner;
  int64_t b, b_outer, b_inner;
  const void *a[TN__GEMM_MR];
  int64_t c[TN__GEMM_MR];
  int64_t place[8]; /* of the function that fills it: zeros at first, then as it left them */
} tn__gemm_window;

/* Group `group` of A's rows: at most kernel->mr of them. Each row is in one group. */
typedef void (*tn__gemm_windows)(const void *user, int64_t group, tn__gemm_window *out);

/* A NaN stays one. */
typedef enum tn__gemm_clamp { TN__GEMM_NO_CLAMP, TN__GEMM_RELU, TN__GEMM_RELU6 } tn__gemm_clamp;

/* What is done to elements of C that are complete: of float, a bias for each column is added, and they are clamped;
 * then `rows` gets columns [column, column + columns) of n rows, c[i] at the first of these. */
typedef struct tn__gemm_then tn__gemm_then;
struct tn__gemm_then {
  const float *bias; /* or NULL */
  tn__gemm_clamp clamp;
  void (*rows)(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns); /* or NULL */
};

typedef struct tn__gemm_kernel tn__gemm_kernel;

/* Set by the maker: the sizes and strides (in elements), fill, packed. The rest is tn__gemm_plan_choose's. */
typedef struct tn__gemm_plan {
  tn__gemm_type type;
  int64_t m, n, k;      /* may be 0 */
  int64_t a_row, a_col; /* not used with `rows` and `windows` */
  int64_t b_row, b_col;
  int64_t c_row;        /* columns of C are adjacent */
  tn__gemm_rows rows;   /* NULL: A is in memory */
  tn__gemm_windows windows; /* or its rows are read through these, */
  int64_t groups;           /* set after the choice: how many there are depends on the kernel */
  bool packed;          /* B is a copy that tn__gemm_pack made */
  bool serial;          /* run on the calling thread, without scratch: one of many small products */

  const tn__gemm_kernel *kernel;
  int64_t k_chunk, n_chunk; /* what goes through scratch at a time; 0 = B is read as it lies */
  size_t scratch;           /* bytes that _run needs */
  double cost_ns;           /* rough time on one thread */
} tn__gemm_plan;

void tn__gemm_plan_choose(tn__gemm_plan *plan);

/* Rows in groups of the kernel's size, with no group of very few rows where that can be helped. */
int64_t tn__gemm_groups(const tn__gemm_plan *plan, int64_t rows);
/* The first row of a group; that of group number `groups` is `rows`. */
int64_t tn__gemm_group_begin(const tn__gemm_plan *plan, int64_t rows, int64_t group);
/* How many rows a group has, with which this many are left. */
int tn__gemm_group_rows(const tn__gemm_plan *plan, int64_t left);

/* Bytes of a copy of B in panels, and the copying. */
size_t tn__gemm_packed_bytes(const tn__gemm_plan *plan);
void tn__gemm_pack(const tn__gemm_plan *plan, const void *b, void *to);

/* Runs a plan. a is what `rows` or `windows` get as their user, if there are any. ctx may be NULL for a serial plan. */
void tn__gemm_run(const tn__gemm_plan *plan, tn_kernel_ctx *ctx, const void *a, const void *b, void *c, void *scratch);
/* The same, with what follows; NULL: nothing. */
void tn__gemm_run_then(const tn__gemm_plan *plan, tn_kernel_ctx *ctx, const void *a, const void *b, void *c,
                       void *scratch, const tn__gemm_then *then);

#endif
