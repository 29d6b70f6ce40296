/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLSTMLayer, _TnLSTMCell and _TnGRULayer: one or two launches for each step, one after the other. The intermediate
 * states stay on the device: in the outputs that the graph reads, otherwise in scratch memory. */
#include "ops/kernel/columns.h"

#include <string.h>

typedef struct step_sizes { /* of lstm.cl */
  cl_long batch;
  cl_int in, cells, x_row, h_row, c_row;
  cl_int order[4];
  cl_float forget_bias;
} step_sizes;

static gpu_ref input(size_t i) { return (gpu_ref){ GPU_ARG_INPUT, i }; }

/* As many numbers, each below that. */
static tn_status read_order(const gpu_node *n, const char *name, size_t count, cl_int *order, tn_error *err)
{
  const int64_t *list;
  size_t found = 0;
  tn_status st = tn_operation_attr_ints(n->op, name, &list, &found, err);
  if (st != TN_OK) return st;
  if (found != count) return gpu_decline(err, "attribute '%s' has %zu numbers, wanted %zu", name, found, count);
  for (size_t i = 0; i < count; i++) {
    if (list[i] < 0 || list[i] >= (int64_t)count) return gpu_decline(err, "attribute '%s' is no order", name);
    order[i] = (cl_int)list[i];
  }
  return TN_OK;
}

static bool is_matrix(const gpu_value *v, int64_t rows, int64_t columns)
{
  return v->rank == 2 && v->dims[0] == rows && v->dims[1] == columns;
}

/* x or a state: a row for each of the batch, or one for all; *row is how far rows are apart. */
static bool has_rows(const gpu_value *v, int64_t batch, int64_t columns, cl_int *row)
{
  *row = v->rank == 2 && v->dims[0] == 1 ? 0 : (cl_int)columns;
  return v->rank == 2 && v->dims[1] == columns && (v->dims[0] == 1 || v->dims[0] == batch);
}

/* ROWS of the kernels. */
static int rows_of(int64_t batch) { return batch == 1 ? 1 : 4; }

static gpu_launch *launch_step(gpu_node *n, const char *kernel, const char *define, const step_sizes *z)
{
  gpu_launch *l = gpu_launch_file(n, "lstm", kernel);
  gpu_define(l, define, "1");
  gpu_define(l, "ROWS", "%d", rows_of(z->batch));
  return l;
}

static void end_step(gpu_launch *l, const step_sizes *z)
{
  const int64_t rows = rows_of(z->batch);
  gpu_arg_bytes(l, z, sizeof *z);
  gpu_range_1d(l, (z->batch + rows - 1) / rows * ((z->cells + 15) / 16) * 256, 256);
}

/* ---- states over time ---- */

/* Where a step's state is stored: in the output that is read, or alternately in two parts of scratch memory. */
typedef struct states {
  const int64_t *steps; /* those of the outputs from `first` on */
  size_t n, first;
  size_t scratch[2];
} states;

static tn_status read_states(gpu_node *n, const char *name, size_t first, size_t bytes, states *s, tn_error *err)
{
  *s = (states){ .first = first };
  tn_status st = tn_operation_attr_ints(n->op, name, &s->steps, &s->n, err);
  if (st == TN_OK && first + s->n > n->n_outputs) return gpu_decline(err, "attribute '%s' has too many steps", name);
  for (int i = 0; i < 2 && st == TN_OK; i++) s->scratch[i] = gpu_scratch(n, bytes);
  return st;
}

static gpu_ref state_at(const states *s, int64_t step)
{
  for (size_t i = 0; i < s->n; i++)
    if (s->steps[i] == step) return (gpu_ref){ GPU_ARG_OUTPUT, s->first + i };
  return (gpu_ref){ GPU_ARG_SCRATCH, s->scratch[step % 2] };
}

/* ---- LSTM ---- */

typedef struct lstm {
  step_sizes z;
  bool apart;
  uint32_t w, u, bias; /* inputs */
} lstm;

static void lstm_step(gpu_node *n, const lstm *m, uint32_t x, gpu_ref h, gpu_ref c, gpu_ref to_h, gpu_ref to_c)
{
  gpu_launch *l = launch_step(n, "lstm_step", "LSTM", &m->z);
  if (m->apart) gpu_define(l, "APART", "1");
  gpu_arg_input(l, x);
  gpu_arg_ref(l, h);
  gpu_arg_ref(l, c);
  gpu_arg_input(l, m->w);
  gpu_arg_input(l, m->apart ? m->u : m->w);
  gpu_arg_input(l, m->bias);
  gpu_arg_ref(l, to_h);
  gpu_arg_ref(l, to_c);
  end_step(l, &m->z);
}

/* x, h, c: inputs. */
static tn_status read_lstm(gpu_node *n, uint32_t x, uint32_t h, uint32_t c, lstm *m, tn_error *err)
{
  const gpu_value *in = n->inputs, *out = &n->outputs[0];
  m->apart = gpu_attr_bool(n, "apart", false);
  m->z.forget_bias = gpu_attr_float(n, "forget_bias", 0);
  tn_status st = read_order(n, "gates", 4, m->z.order, err);
  if (st != TN_OK) return st;
  if (out->rank != 2 || in[x].rank != 2 || out->dims[1] > INT32_MAX / 8 || in[x].dims[1] > INT32_MAX / 2)
    return gpu_decline(err, "shapes that are no rows of cells");
  const int64_t batch = out->dims[0], cells = out->dims[1], terms = in[x].dims[1];
  m->z.batch = batch;
  m->z.cells = (cl_int)cells;
  m->z.in = (cl_int)terms;
  if (!has_rows(&in[x], batch, terms, &m->z.x_row) || !has_rows(&in[h], batch, cells, &m->z.h_row) ||
      !has_rows(&in[c], batch, cells, &m->z.c_row))
    return gpu_decline(err, "states or inputs of other shapes");
  if (!is_matrix(&in[m->w], m->apart ? terms : terms + cells, 4 * cells) || in[m->bias].count != 4 * cells ||
      (m->apart && !is_matrix(&in[m->u], cells, 4 * cells)))
    return gpu_decline(err, "weights of other shapes");
  return TN_OK;
}

static double step_ns(const step_sizes *z, double gates)
{
  return 5000 + 2e-3 * gates * (double)z->batch * (double)z->cells * ((double)z->cells + (double)z->in);
}

static tn_status plan_lstm_layer(gpu_node *n, tn_error *err)
{
  enum { H, C, W, U, B, X };
  lstm m = { .w = W, .u = U, .bias = B };
  states h, c;
  if (n->n_outputs == 0 || n->n_inputs <= X) return gpu_decline(err, "a layer whose outputs are not read");
  tn_status st = read_lstm(n, X, H, C, &m, err);
  const size_t bytes = st == TN_OK ? (size_t)m.z.batch * (size_t)m.z.cells * sizeof(float) : 0;
  if (st == TN_OK) st = read_states(n, "h_steps", 0, bytes, &h, err);
  if (st == TN_OK) st = read_states(n, "c_steps", h.n, bytes, &c, err);
  if (st != TN_OK) return st;
  gpu_ref old_h = input(H), old_c = input(C);
  const int64_t steps = (int64_t)n->n_inputs - X;
  for (int64_t t = 0; t < steps; t++) {
    const gpu_value *x = &n->inputs[X + t];
    if (!is_matrix(x, n->inputs[X].dims[0], m.z.in)) return gpu_decline(err, "inputs of several shapes");
    const gpu_ref to_h = state_at(&h, t), to_c = state_at(&c, t);
    lstm_step(n, &m, (uint32_t)(X + t), old_h, old_c, to_h, to_c);
    m.z.h_row = m.z.c_row = m.z.cells;
    old_h = to_h;
    old_c = to_c;
  }
  n->cost_ns = (double)steps * step_ns(&m.z, 4);
  return gpu_node_done(n, err);
}

static tn_status plan_lstm_cell(gpu_node *n, tn_error *err)
{
  enum { X, H, C, W, B, U };
  lstm m = { .w = W, .u = U, .bias = B };
  tn_status st = read_lstm(n, X, H, C, &m, err);
  if (st != TN_OK) return st;
  lstm_step(n, &m, X, input(H), input(C), (gpu_ref){ GPU_ARG_OUTPUT, 1 }, (gpu_ref){ GPU_ARG_OUTPUT, 0 });
  n->cost_ns = step_ns(&m.z, 4);
  return gpu_node_done(n, err);
}

/* ---- GRU ---- */

enum { GRU_H, GRU_W, GRU_U, GRU_V, GRU_B, GRU_D, GRU_X };
enum { TOGETHER, BEFORE, AFTER };
typedef struct gru {
  step_sizes z;
  int form;
  size_t r, u, c; /* in scratch: r h', u, what x adds to c */
} gru;

static void gru_step(gpu_node *n, const gru *g, uint32_t x, gpu_ref h, gpu_ref to_h)
{
  gpu_launch *l = launch_step(n, "gru_step", "GRU_AFTER", &g->z);
  gpu_arg_input(l, x);
  gpu_arg_ref(l, h);
  gpu_arg_input(l, GRU_W);
  gpu_arg_input(l, GRU_U);
  gpu_arg_input(l, GRU_B);
  gpu_arg_input(l, GRU_D);
  gpu_arg_ref(l, to_h);
  end_step(l, &g->z);
}

static void gru_two_steps(gpu_node *n, const gru *g, uint32_t x, gpu_ref h, gpu_ref to_h)
{
  const bool together = g->form == TOGETHER;
  gpu_launch *l = launch_step(n, "gru_gates", "GRU_GATES", &g->z);
  if (together) gpu_define(l, "TOGETHER", "1");
  gpu_arg_input(l, x);
  gpu_arg_ref(l, h);
  gpu_arg_input(l, GRU_W);
  gpu_arg_input(l, together ? GRU_W : GRU_U);
  gpu_arg_input(l, GRU_V);
  gpu_arg_input(l, GRU_B);
  gpu_arg_input(l, together ? GRU_D : GRU_B);
  gpu_arg_scratch(l, g->r);
  gpu_arg_scratch(l, g->u);
  gpu_arg_scratch(l, g->c);
  end_step(l, &g->z);
  l = launch_step(n, "gru_output", "GRU_GATES", &g->z);
  if (together) gpu_define(l, "TOGETHER", "1");
  gpu_arg_scratch(l, g->r);
  gpu_arg_scratch(l, g->u);
  gpu_arg_scratch(l, g->c);
  gpu_arg_ref(l, h);
  gpu_arg_input(l, GRU_V);
  gpu_arg_ref(l, to_h);
  end_step(l, &g->z);
}

static bool gru_weights_fit(const gpu_node *n, const gru *g)
{
  const gpu_value *in = n->inputs;
  const int64_t cells = g->z.cells, terms = g->z.in, both = terms + cells;
  switch (g->form) {
  case TOGETHER:
    return is_matrix(&in[GRU_W], both, 2 * cells) && is_matrix(&in[GRU_V], both, cells) &&
           in[GRU_B].count == 2 * cells && in[GRU_D].count == cells;
  case BEFORE:
    return is_matrix(&in[GRU_W], terms, 3 * cells) && is_matrix(&in[GRU_U], cells, 2 * cells) &&
           is_matrix(&in[GRU_V], cells, cells) && in[GRU_B].count == 3 * cells;
  default:
    return is_matrix(&in[GRU_W], terms, 3 * cells) && is_matrix(&in[GRU_U], cells, 3 * cells) &&
           in[GRU_B].count == 3 * cells && in[GRU_D].count == 3 * cells;
  }
}

static tn_status read_gru(gpu_node *n, gru *g, tn_error *err)
{
  const gpu_value *in = n->inputs, *out = &n->outputs[0];
  g->form = AFTER;
  if (gpu_attr_text_is(n, "form", "together")) g->form = TOGETHER;
  if (gpu_attr_text_is(n, "form", "before")) g->form = BEFORE;
  tn_status st = read_order(n, "parts", 3, g->z.order, err);
  if (st != TN_OK) return st;
  if (out->rank != 2 || in[GRU_X].rank != 2 || out->dims[1] > INT32_MAX / 8 || in[GRU_X].dims[1] > INT32_MAX / 2)
    return gpu_decline(err, "shapes that are no rows of cells");
  g->z.batch = out->dims[0];
  g->z.cells = (cl_int)out->dims[1];
  g->z.in = (cl_int)in[GRU_X].dims[1];
  if (!has_rows(&in[GRU_X], g->z.batch, g->z.in, &g->z.x_row) ||
      !has_rows(&in[GRU_H], g->z.batch, g->z.cells, &g->z.h_row))
    return gpu_decline(err, "states or inputs of other shapes");
  return gru_weights_fit(n, g) ? TN_OK : gpu_decline(err, "weights of other shapes");
}

static tn_status plan_gru_layer(gpu_node *n, tn_error *err)
{
  gru g = { 0 };
  states h;
  if (n->n_outputs == 0 || n->n_inputs <= GRU_X) return gpu_decline(err, "a layer whose outputs are not read");
  tn_status st = read_gru(n, &g, err);
  const size_t bytes = st == TN_OK ? (size_t)g.z.batch * (size_t)g.z.cells * sizeof(float) : 0;
  if (st == TN_OK) st = read_states(n, "h_steps", 0, bytes, &h, err);
  if (st != TN_OK) return st;
  g.r = gpu_scratch(n, bytes);
  g.u = gpu_scratch(n, bytes);
  g.c = gpu_scratch(n, bytes);
  gpu_ref old = input(GRU_H);
  const int64_t steps = (int64_t)n->n_inputs - GRU_X;
  for (int64_t t = 0; t < steps; t++) {
    if (!is_matrix(&n->inputs[GRU_X + t], n->inputs[GRU_X].dims[0], g.z.in))
      return gpu_decline(err, "inputs of several shapes");
    const gpu_ref to = state_at(&h, t);
    if (g.form == AFTER) gru_step(n, &g, (uint32_t)(GRU_X + t), old, to);
    else gru_two_steps(n, &g, (uint32_t)(GRU_X + t), old, to);
    g.z.h_row = g.z.cells;
    old = to;
  }
  n->cost_ns = (double)steps * step_ns(&g.z, 3);
  return gpu_node_done(n, err);
}

const gpu_op gpu_lstm_ops[] = {
  { "_TnLSTMLayer", "T=float", plan_lstm_layer, 0, false },
  { "_TnLSTMCell", "T=float", plan_lstm_cell, 0, false },
  { "_TnGRULayer", "T=float", plan_gru_layer, 0, false },
  { NULL, NULL, NULL, 0, false },
};
