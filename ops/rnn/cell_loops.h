/* SPDX-License-Identifier: Apache-2.0 */
/* Common code of recurrent cells: LSTM cells, their gradients, and GRU cells.
 *
 * Arrays are float; half is widened into scratch memory and narrowed from there. */
#ifndef TN_OPS_RNN_CELL_LOOPS_H
#define TN_OPS_RNN_CELL_LOOPS_H

#include <ops/kernel/product/gemm.h>
#include <ops/kernel/window/volume.h>

/* ---- operands as floats ---- */

#define TN__CELL_OPERANDS 28

typedef struct tn__cell_floats {
  tn__form in[TN__CELL_OPERANDS], out[TN__CELL_OPERANDS];
} tn__cell_floats;

/* Plans inputs from `first` on and all outputs. out_counts holds the outputs' element counts. */
void tn__cell_floats_plan(tn_prepare_ctx *ctx, tn__cell_floats *f, uint32_t first, const int64_t *out_counts);
/* Input i in float; NULL if it has no elements. */
const float *tn__cell_in(tn_kernel_ctx *ctx, const tn__cell_floats *f, uint32_t i);
/* Where to write output i in float. tn__cell_store then converts all outputs. */
float *tn__cell_out(tn_kernel_ctx *ctx, const tn__cell_floats *f, uint32_t i);
void tn__cell_store(tn_kernel_ctx *ctx, const tn__cell_floats *f);

/* c[m][n] = a[m][k] b. b[k][n] has rows of b_row elements; if `turned`, it is stored transposed. c has rows of n
 * elements. */
tn__gemm_plan tn__cell_product(const tn_prepare_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t b_row, bool turned);

/* ---- LSTM ---- */

typedef struct tn__lstm_state {
  float forget_bias, clip; /* clip <= 0: none */
  bool peephole;
  bool block;              /* many steps; the first input is the number of steps to run */
  bool gradient;
  bool ifco;               /* order of the gates: i f c o; otherwise i c f o */
  tn_dtype dtype;
} tn__lstm_state;

tn_status tn__lstm_create(const tn_operation *op, void **state, tn_error *err);
void tn__lstm_destroy(void *state);

typedef struct tn__lstm_sizes {
  int64_t steps, batch, in, cell;
} tn__lstm_sizes;

/* Checks the inputs common to all LSTM ops: x to b, and for gradients the cell's values and their gradients. */
tn_status tn__lstm_measure(const tn_prepare_ctx *ctx, tn__lstm_sizes *z, tn_error *err);
/* The number of steps to run; TN_INVALID_ARGUMENT if the inputs have fewer. */
tn_status tn__lstm_length(const tn_kernel_ctx *ctx, const tn__lstm_sizes *z, int64_t *out);

/* Offsets of the gates in a row of 4 * cell. */
typedef struct tn__lstm_gates {
  int64_t i, c, f, o;
} tn__lstm_gates;
static inline tn__lstm_gates tn__lstm_order(const tn__lstm_state *s, int64_t cell)
{
  return s->ifco ? (tn__lstm_gates){ 0, 2 * cell, cell, 3 * cell } : (tn__lstm_gates){ 0, cell, 2 * cell, 3 * cell };
}

#endif
