/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise part of recurrent cells after the matrix products: activations and the new state, for rows of a
 * batch and a range of cells. Terms are added in the order of the plain ops, and all vector kinds give the same
 * bits. */
#ifndef TN_OPS_RNN_GATES_H
#define TN_OPS_RNN_GATES_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/op.h>

/* ---- attributes ---- */

/* Attributes of _TnLSTMCell and _TnLSTMLayer. gate: positions of i, j, f and o among the gates; apart: x and h' have
 * separate weights. Reading fails with TN_INVALID_ARGUMENT. */
typedef struct tn__lstm_form {
  int64_t gate[4];
  float forget_bias;
  bool apart;
} tn__lstm_form;
tn_status tn__lstm_form_read(const tn_operation *op, tn__lstm_form *form, tn_error *err);

/* Reads attribute `name`, a list of the *n steps of a layer whose results are outputs, starting at output `first`.
 * of_step[t] receives the output of step t, or -1. Fails with TN_INVALID_ARGUMENT. */
tn_status tn__layer_steps(const tn_operation *op, const char *name, size_t first, int64_t steps, int32_t *of_step,
                          size_t *n, tn_error *err);

/* ---- a block of cells ---- */

/* c = c' sigmoid(f + forget_bias) + sigmoid(i) tanh(j)      h = tanh(c) sigmoid(o)
 *
 * i, j, f and o of cell k in row r are sums[r * sums_row + part[..] + k] + bias[..][k]. to_c may be c. */
typedef struct tn__lstm_block {
  int64_t rows, cells;
  const float *sums, *bias[4], *c;
  int64_t part[4], sums_row, c_row; /* in elements, like all rows below */
  float *to_c, *to_h;
  int64_t to_c_row, to_h_row;
  float forget_bias;
} tn__lstm_block;

/* Two halves, so that each can be run for several blocks in a row. The first computes c and stores sigmoid(o) in
 * place of h; the second reads only these two. */
void tn__lstm_block_state(const tn__lstm_block *b);
void tn__lstm_block_output(const tn__lstm_block *b);

/* r = sigmoid(r's sums + bias[0])      u = sigmoid(u's sums + bias[1])
 *
 * The sums of r and u begin at part[..] of a row. more[..], unless NULL, is added after bias[..]. to_r receives r,
 * or r h' if `scale` is set. */
typedef struct tn__gru_gates {
  int64_t rows, cells;
  const float *sums, *bias[2], *more[2], *h;
  int64_t part[2], sums_row, h_row, to_row;
  float *to_r, *to_u;
  bool scale;
} tn__gru_gates;

void tn__gru_gates_run(const tn__gru_gates *b);

/* c = tanh(sums + bias), or if `inner` is not NULL: tanh(sums + bias + r (inner + more))      h = u h' + (1 - u) c */
typedef struct tn__gru_output {
  int64_t rows, cells;
  const float *sums, *bias, *inner, *more, *r, *u, *h;
  int64_t sums_row, gate_row, h_row, to_row; /* sums_row: for sums and inner; gate_row: for r and u */
  float *to_h;
} tn__gru_output;

void tn__gru_output_run(const tn__gru_output *b);

#endif
