/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = A B for one pair of matrices. C is m x n, and k is the length of the sums.
 *
 * Every element of C is summed over k in ascending order, whatever the code path and the number of threads. Each term
 * is multiplied and added at once, rounded once, where the processor can do so and the column count suits its vectors;
 * if the plan is `reproducible`, the product is rounded first, and every processor gives the same bits.
 *
 * B is read in panels one or two vectors wide. The plan decides how: from a copy in panels made beforehand
 * (tn__gemm_pack), from such a copy in scratch memory, or in place. A is read through pointers to a few rows, so
 * the windows of a convolution need not be gathered. Steps that follow a product can be applied to a few rows at a
 * time, while they are in the L1 cache. */
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
  TN__GEMM_C128,
  TN__GEMM_PAIRS /* elements of A and B are two int16 terms (pairs.h), those of C are int32, which wraps */
} tn__gemm_type;

#define TN__GEMM_MR 12  /* maximum rows per tile */
#define TN__GEMM_KC 256 /* maximum terms at a time: the parts of A and B they use stay in the L1 cache */

/* Locates rows [row, row + rows) of A from term `term` on: term t of row i is at at[i] + (t - term) * *step elements.
 * Provides 1 to `terms` terms and returns how many. Elements that do not exist in memory can be built in `room`, which
 * has space for rows x terms elements. */
typedef int64_t (*tn__gemm_rows)(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                                 const void **at, int64_t *step);

/* Rows of A with a common pattern: term t of run (i, j) of row r is at a[r] + i a_outer + j a_inner + t, in
 * elements, and is multiplied by B's row b + i b_outer + j b_inner + t. Row r is row c[r] of C. Terms outside all
 * runs count as zeros. */
typedef struct tn__gemm_window {
  int rows;
  int64_t outer, inner, terms;
  int64_t a_outer, a_inner;
  int64_t b, b_outer, b_inner;
  const void *a[TN__GEMM_MR];
  int64_t c[TN__GEMM_MR];
  int64_t place[8]; /* private to the function that fills the window: zeroed before its first call, then preserved */
} tn__gemm_window;

/* Describes group `group` of A's rows: at most kernel->mr rows. Each row is in exactly one group. */
typedef void (*tn__gemm_windows)(const void *user, int64_t group, tn__gemm_window *out);

/* NaN stays NaN. */
typedef enum tn__gemm_clamp { TN__GEMM_NO_CLAMP, TN__GEMM_RELU, TN__GEMM_RELU6 } tn__gemm_clamp;

/* Steps applied to complete elements of C. For float, a bias per column is added and the elements are clamped. Then
 * `rows` is called with columns [column, column + columns) of n rows; c[i] points to the first of these columns. */
typedef struct tn__gemm_then tn__gemm_then;
struct tn__gemm_then {
  const float *bias; /* or NULL */
  tn__gemm_clamp clamp;
  void (*rows)(const tn__gemm_then *then, int n, void *const *c, int64_t column, int64_t columns); /* or NULL */
};

typedef struct tn__gemm_kernel tn__gemm_kernel;

/* How a packed B of float is stored (weights.h has the conversions). A number of int8 counts multiples of its column's
 * scale; sums are multiplied by the scale at their end. Results do not depend on the number of rows. */
typedef enum tn__gemm_weights { TN__GEMM_FULL, TN__GEMM_BFLOAT16, TN__GEMM_INT8 } tn__gemm_weights;

/* The caller sets sizes, strides (in elements), rows or windows, packed, weights, serial and reproducible.
 * tn__gemm_plan_choose sets the rest, except `groups`. */
typedef struct tn__gemm_plan {
  tn__gemm_type type;
  int64_t m, n, k;      /* may be 0 */
  int64_t a_row, a_col; /* unused with `rows` and `windows` */
  int64_t b_row, b_col;
  int64_t c_row;        /* columns of C are adjacent */
  tn__gemm_rows rows;   /* locates rows of A; NULL: A is a matrix in memory */
  tn__gemm_windows windows; /* alternative to `rows`, or NULL */
  int64_t groups;           /* of windows; depends on the kernel, so the caller sets it after _choose */
  bool packed;          /* B is a copy made by tn__gemm_pack */
  tn__gemm_weights weights; /* of the packed copy; not TN__GEMM_FULL only with TN__GEMM_F32 */
  bool serial;          /* run on the calling thread, without scratch: one of many small products */
  bool reproducible;    /* as in tn_kernel_ctx */

  const tn__gemm_kernel *kernel;
  int64_t k_chunk, n_chunk; /* size of a chunk of B in scratch; 0: B is read in place */
  size_t scratch;           /* bytes that _run needs */
  double cost_ns;           /* estimated time on one thread */
} tn__gemm_plan;

void tn__gemm_plan_choose(tn__gemm_plan *plan);

/* The number of groups for `rows` rows. Groups have the kernel's size; the last two are balanced to avoid a group
 * of very few rows. */
int64_t tn__gemm_groups(const tn__gemm_plan *plan, int64_t rows);
/* The first row of a group; `rows` for the group number past the last one. */
int64_t tn__gemm_group_begin(const tn__gemm_plan *plan, int64_t rows, int64_t group);
/* The size of the next group if `left` rows are left. */
int tn__gemm_group_rows(const tn__gemm_plan *plan, int64_t left);

/* Size in bytes of a copy of B in panels, and the function that makes it. False if the weights cannot be reduced: int8
 * has no infinity and no NaN. */
size_t tn__gemm_packed_bytes(const tn__gemm_plan *plan);
bool tn__gemm_pack(const tn__gemm_plan *plan, const void *b, void *to);

/* Runs a plan. If the plan has `rows` or `windows`, a is passed to them as `user`. ctx may be NULL for a serial
 * plan. */
void tn__gemm_run(const tn__gemm_plan *plan, tn_kernel_ctx *ctx, const void *a, const void *b, void *c, void *scratch);
/* The same, followed by the steps of `then` (NULL allowed). */
void tn__gemm_run_then(const tn__gemm_plan *plan, tn_kernel_ctx *ctx, const void *a, const void *b, void *c,
                       void *scratch, const tn__gemm_then *then);

#endif
