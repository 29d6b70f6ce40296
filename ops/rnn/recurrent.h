/* SPDX-License-Identifier: Apache-2.0 */
/* Products of recurrent layers: sums += a w, one block of cells at a time, so that the steps after a block's
 * products read them from the L1 cache. The products have few rows and are repeated with the same weights, which
 * stay in the caches. Therefore nothing is copied or decided here beyond what was done when the weights were
 * packed.
 *
 * A block has as many cells as make up four panels, if possible. Its columns are those of its first part (a gate,
 * of which there are `parts`), then of its second part, and so on. The last block is padded to whole panels. Rows
 * of sums have the same order. Terms are added in ascending order, with one multiplication and one addition each,
 * so the bits are the same as in gemm.h. */
#ifndef TN_OPS_RNN_RECURRENT_H
#define TN_OPS_RNN_RECURRENT_H

#include <stdbool.h>
#include <tenon/op.h>

typedef void (*tn__recurrent_tile)(int rows, int panels, int64_t terms, const float *const *a, const float *b,
                                   int64_t b_row, int64_t panel, float *c, int64_t c_row, bool first);

typedef struct tn__recurrent {
  tn__recurrent_tile tile;
  int64_t cells, parts;
  int64_t panel, width;    /* columns per panel; cells per block */
  int64_t blocks, columns; /* number of blocks; columns of a row of sums */
} tn__recurrent;

void tn__recurrent_plan(tn__recurrent *r, int64_t cells, int64_t parts);

static inline int64_t tn__recurrent_cells(const tn__recurrent *r, int64_t block)
{
  int64_t left = r->cells - block * r->width;
  return left < r->width ? left : r->width;
}
/* The first column of a block in a row of sums. */
static inline int64_t tn__recurrent_at(const tn__recurrent *r, int64_t block) { return block * r->parts * r->width; }

/* Packs w[terms][..] in that order: part p of cell k is column order[p] * cells + k of w. With `lines`, all columns
 * of a block are adjacent for each term, which is better for products of one row. */
size_t tn__recurrent_packed_bytes(const tn__recurrent *r, int64_t terms);
void tn__recurrent_pack(const tn__recurrent *r, const float *w, int64_t w_row, int64_t terms, const int64_t *order,
                        bool lines, float *to);

/* The factors of a step's product: rows of a, and the first `terms` terms of packed weights. */
typedef struct tn__recurrent_factors {
  const float *a, *packed;
  int64_t a_row, terms, packed_terms;
  bool lines; /* as given to tn__recurrent_pack */
  bool first; /* sums are uninitialised and start at 0 */
} tn__recurrent_factors;

/* sums[rows][block's columns] += a[row ..][terms] w. sums points to the first row's first column. */
void tn__recurrent_multiply(const tn__recurrent *r, const tn__recurrent_factors *f, int64_t block, int64_t row,
                            int64_t rows, float *sums);

/* ---- over time: x[steps] are matrices of one shape, [batch][terms] or one row for the whole batch ---- */

/* The number of steps whose sums are computed at a time, so that they are still in the L2 cache when used. */
int64_t tn__recurrent_chunk(const tn__recurrent *r, int64_t steps, int64_t batch);
/* sums[steps * batch][r->columns] = x w. The weights are read once for all these steps. */
void tn__recurrent_inputs(const tn__recurrent *r, tn_kernel_ctx *ctx, tn_view *const *x, int64_t steps, int64_t batch,
                          const float *packed, float *sums);

/* ---- threads: a step is divided into units, each some rows of one block ---- */

#define TN__RECURRENT_ROWS 48
static inline int64_t tn__recurrent_units(const tn__recurrent *r, int64_t rows)
{
  return r->blocks * ((rows + TN__RECURRENT_ROWS - 1) / TN__RECURRENT_ROWS);
}
/* Returns the unit's block, and its rows [*row, *row + *n). `back`: blocks are visited from last to first. If steps
 * alternate, each finds the weights that the previous one read last in the L1 cache. */
static inline int64_t tn__recurrent_unit(const tn__recurrent *r, int64_t rows, int64_t unit, bool back, int64_t *row,
                                         int64_t *n)
{
  int64_t block = unit;
  *row = 0;
  *n = rows;
  if (rows > TN__RECURRENT_ROWS) {
    int64_t parts = (rows + TN__RECURRENT_ROWS - 1) / TN__RECURRENT_ROWS;
    block = unit / parts;
    *row = unit % parts * TN__RECURRENT_ROWS;
    *n = rows - *row < TN__RECURRENT_ROWS ? rows - *row : TN__RECURRENT_ROWS;
  }
  return back ? r->blocks - 1 - block : block;
}

#endif
