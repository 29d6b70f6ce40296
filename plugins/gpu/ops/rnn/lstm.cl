/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a recurrent layer: the products and the operations after them in one kernel. A group computes CELLS cells
 * and ROWS rows of the batch; its items share the terms, and weights are read once for all these rows. Weights have the
 * graph's layout: part p of cell k is column order[p] * cells + k. Numbers are floats; those of four parts form a
 * float4.
 *
 * x and h' have `in` and `cells` terms; their rows, and those of c', are x_row, h_row and c_row elements apart: 0
 * where all rows of the batch have the same. */
#define CELLS 16
#define SLICES 16

typedef struct step_sizes {
  long batch;
  int in, cells, x_row, h_row, c_row;
  int order[4];
  float forget_bias;
} step_sizes;

static float sigmoid(float x) { return 1 / (1 + exp(-x)); }

#define PLACE                                                                                                   \
  __local float4 parts[ROWS][256];                                                                              \
  const int item = get_local_id(0), slice = item / CELLS, blocks = (z.cells + CELLS - 1) / CELLS;               \
  const long group = get_group_id(0), row = group / blocks * ROWS;                                              \
  const int cell = (int)(group % blocks) * CELLS + item % CELLS;                                                \
  float4 sum[ROWS];                                                                                             \
  for (int r = 0; r < ROWS; r++) sum[r] = 0

/* sum[r] += a[r] BY over this item's terms k. */
#define ADD_TERMS(a, a_row, terms, BY)                                                                          \
  for (int k = slice; k < (terms) && cell < z.cells; k += SLICES) {                                             \
    const float4 by = BY;                                                                                       \
    for (int r = 0; r < ROWS; r++) sum[r] += (a)[min(row + r, z.batch - 1) * (a_row) + k] * by;                 \
  }
#define PART(w, row, p) (w)[(row) + z.order[p] * z.cells + cell]

/* From here on slice r computes only row r, whose sums are `all`. */
#define JOIN                                                                                                    \
  for (int r = 0; r < ROWS; r++) parts[r][item] = sum[r];                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                                 \
  if (slice >= ROWS || row + slice >= z.batch || cell >= z.cells) return;                                       \
  float4 all = 0;                                                                                               \
  for (int k = 0; k < SLICES; k++) all += parts[slice][k * CELLS + item % CELLS];                               \
  const long at = (row + slice) * z.cells + cell

#ifdef LSTM
/* Gates i, j, f and o. u is what follows w unless they are APART. */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void lstm_step(IN(x), IN(h), IN(c), IN(w), IN(u), IN(bias), OUT(to_h), OUT(to_c), const step_sizes z)
{
  PLACE;
  GET_IN(float, x);
  GET_IN(float, h);
  GET_IN(float, c);
  GET_IN(float, w);
  GET_IN(float, u);
  GET_IN(float, bias);
  GET_OUT(float, to_h);
  GET_OUT(float, to_c);
  const long columns = 4L * z.cells;
#ifndef APART
  u += z.in * columns;
#endif
#define OF(w, p) PART(w, k * columns, p)
#define GATES(w) (float4)(OF(w, 0), OF(w, 1), OF(w, 2), OF(w, 3))
  ADD_TERMS(x, z.x_row, z.in, GATES(w))
  ADD_TERMS(h, z.h_row, z.cells, GATES(u))
  JOIN;
  all += (float4)(PART(bias, 0, 0), PART(bias, 0, 1), PART(bias, 0, 2), PART(bias, 0, 3));
  const float kept = c[(row + slice) * z.c_row + cell] * sigmoid(all.s2 + z.forget_bias);
  const float state = kept + sigmoid(all.s0) * tanh(all.s1);
  to_c[at] = state;
  to_h[at] = tanh(state) * sigmoid(all.s3);
}
#endif

#ifdef GRU_AFTER
/* r, u = sigmoid(x w + h' u + b + d)   c = tanh(x w + b + r (h' u + d))   h = u h' + (1 - u) c */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gru_step(IN(x), IN(h), IN(w), IN(u), IN(b), IN(d), OUT(to_h), const step_sizes z)
{
  PLACE;
  GET_IN(float, x);
  GET_IN(float, h);
  GET_IN(float, w);
  GET_IN(float, u);
  GET_IN(float, b);
  GET_IN(float, d);
  GET_OUT(float, to_h);
  const long columns = 3L * z.cells;
#define OF(w, p) PART(w, k * columns, p)
  ADD_TERMS(x, z.x_row, z.in, ((float4)(OF(w, 0), OF(w, 1), OF(w, 2), 0)))
  ADD_TERMS(h, z.h_row, z.cells, ((float4)(OF(u, 0), OF(u, 1), 0, OF(u, 2))))
  JOIN;
  const float reset = sigmoid(all.s0 + PART(b, 0, 0) + PART(d, 0, 0));
  const float update = sigmoid(all.s1 + PART(b, 0, 1) + PART(d, 0, 1));
  const float fresh = tanh(all.s2 + PART(b, 0, 2) + reset * (all.s3 + PART(d, 0, 2)));
  to_h[at] = update * h[(row + slice) * z.h_row + cell] + (1 - update) * fresh;
}
#endif

#ifdef GRU_GATES
/* r, u = sigmoid(of x and h'); to_r gets r h', to_c what x adds to c with its bias. TOGETHER: w is that of [x, h'], v
 * that of [x, r h'], and c has bias d; else w and b are those of r, u and c, and u that of h'. */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gru_gates(IN(x), IN(h), IN(w), IN(u), IN(v), IN(b), IN(d), OUT(to_r), OUT(to_u), OUT(to_c), const step_sizes z)
{
  PLACE;
  GET_IN(float, x);
  GET_IN(float, h);
  GET_IN(float, w);
  GET_IN(float, u);
  GET_IN(float, v);
  GET_IN(float, b);
  GET_IN(float, d);
  GET_OUT(float, to_r);
  GET_OUT(float, to_u);
  GET_OUT(float, to_c);
  const long two = 2L * z.cells;
#ifdef TOGETHER
#define FRESH(k) v[k * (long)z.cells + cell]
  const long columns = two;
  u = w + z.in * columns;
  const float fresh_bias = cell < z.cells ? d[cell] : 0;
#else
#define FRESH(k) PART(w, k * columns, 2)
  const long columns = 3L * z.cells;
  const float fresh_bias = cell < z.cells ? PART(b, 0, 2) : 0;
#endif
  ADD_TERMS(x, z.x_row, z.in, ((float4)(PART(w, k * columns, 0), PART(w, k * columns, 1), FRESH(k), 0)))
  ADD_TERMS(h, z.h_row, z.cells, ((float4)(PART(u, k * two, 0), PART(u, k * two, 1), 0, 0)))
  JOIN;
  to_r[at] = sigmoid(all.s0 + PART(b, 0, 0)) * h[(row + slice) * z.h_row + cell];
  to_u[at] = sigmoid(all.s1 + PART(b, 0, 1));
  to_c[at] = all.s2 + fresh_bias;
}

/* c = tanh(what x added + (r h') v)   h = u h' + (1 - u) c */
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void gru_output(IN(r_h), IN(update), IN(of_x), IN(h), IN(v), OUT(to_h), const step_sizes z)
{
  PLACE;
  GET_IN(float, r_h);
  GET_IN(float, update);
  GET_IN(float, of_x);
  GET_IN(float, h);
  GET_IN(float, v);
  GET_OUT(float, to_h);
#ifdef TOGETHER
  v += (long)z.in * z.cells;
#endif
  ADD_TERMS(r_h, z.cells, z.cells, ((float4)(v[k * (long)z.cells + cell], 0, 0, 0)))
  JOIN;
  const float fresh = tanh(all.s0 + of_x[at]);
  to_h[at] = update[at] * h[(row + slice) * z.h_row + cell] + (1 - update[at]) * fresh;
}
#endif
