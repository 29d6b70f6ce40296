/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/support/rnn_kit.h"

#include <stdio.h>

typedef struct maker {
  tn_graph *graph;
  const rnn_net *net;
  int layer, step;
  tn_output w, u, v, b, d, axis; /* weights of the layer */
} maker;

/* ---- nodes ---- */

static void name_of(const maker *m, const char *what, char *name, size_t room)
{
  snprintf(name, room, "%s%d_%d", what, m->layer, m->step);
}

static tn_output finish(tn_operation_builder *b, uint32_t index)
{
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  return (tn_output){ op, index };
}

static tn_output binary(const maker *m, const char *op, const char *what, tn_output x, tn_output y)
{
  char name[48];
  name_of(m, what, name, sizeof name);
  return ts_op2(m->graph, op, name, x, y);
}

static tn_output unary(const maker *m, const char *op, const char *what, tn_output x)
{
  char name[48];
  name_of(m, what, name, sizeof name);
  return ts_op1(m->graph, op, name, x);
}

static tn_output numbers(tn_graph *graph, const char *name, int32_t rank, const int64_t *dims, int seed)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, &err), &err);
  float *v = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) v[i] = (float)((i * 7919 + seed * 104729) % 1009 - 504) / 900;
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

static tn_output ints(tn_graph *graph, const char *name, int32_t rank, int32_t a, int32_t b)
{
  tn_error err = TN_ERROR_INIT;
  tn_tensor *t = NULL;
  const int32_t values[2] = { a, b };
  const int64_t n = 2;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, rank, values, (size_t)(rank == 0 ? 1 : 2) * sizeof *values, &t, &err),
             &err);
  tn_output out = ts_const_tensor(graph, name, t);
  tn_tensor_unref(t);
  return out;
}

static tn_output placeholder(tn_graph *graph, const char *name, const int64_t *dims, int32_t rank)
{
  tn_operation_builder *b = tn_operation_begin(graph, "Placeholder", name, 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", dims, rank);
  return finish(b, 0);
}

/* Output 0; the other outputs follow. */
static tn_output split(const maker *m, const char *what, tn_output x, int64_t parts)
{
  char name[48];
  name_of(m, what, name, sizeof name);
  tn_operation_builder *b = tn_operation_begin(m->graph, "Split", name, 0);
  tn_operation_add_input(b, m->axis);
  tn_operation_add_input(b, x);
  tn_operation_set_int(b, "num_split", parts);
  return finish(b, 0);
}

static tn_output nth(tn_output x, uint32_t k) { return (tn_output){ x.op, k }; }

/* Columns [k * cells, (k + 1) * cells) of a matrix; `last`: to the end. */
static tn_output slice(const maker *m, const char *what, tn_output x, int k, bool last)
{
  char name[48], part[64];
  const int32_t cells = (int32_t)m->net->cells;
  /* begin, end, strides */
  const int32_t bounds[3][2] = { { 0, k * cells }, { 0, last ? 0 : (k + 1) * cells }, { 1, 1 } };
  name_of(m, what, name, sizeof name);
  tn_output list[3];
  for (int i = 0; i < 3; i++) {
    snprintf(part, sizeof part, "%s/%d", name, i);
    list[i] = ints(m->graph, part, 1, bounds[i][0], bounds[i][1]);
  }
  tn_operation_builder *b = tn_operation_begin(m->graph, "StridedSlice", name, 0);
  tn_operation_add_input(b, x);
  for (int i = 0; i < 3; i++) tn_operation_add_input(b, list[i]);
  tn_operation_set_int(b, "begin_mask", k == 0 ? 3 : 1);
  tn_operation_set_int(b, "end_mask", last ? 3 : 1);
  return finish(b, 0);
}

static tn_output concat(const maker *m, const char *what, tn_output x, tn_output y)
{
  char name[48];
  name_of(m, what, name, sizeof name);
  tn_operation_builder *b = tn_operation_begin(m->graph, "ConcatV2", name, 0);
  tn_operation_add_input_list(b, (const tn_output[]){ x, y }, 2);
  tn_operation_add_input(b, m->axis);
  return finish(b, 0);
}

/* ---- cells ---- */

/* Gates i, j, f, o in this order, or i, f, j, o. */
static tn_output lstm(const maker *m, tn_output x, tn_output h, tn_output *c)
{
  const bool apart = m->net->kind == RNN_LSTM_APART;
  tn_output sum;
  if (apart)
    sum = binary(m, "AddV2", "sum", binary(m, "MatMul", "of_x", x, m->w), binary(m, "MatMul", "of_h", h, m->u));
  else sum = binary(m, "MatMul", "product", concat(m, "both", x, h), m->w);
  tn_output gate = split(m, "gates", binary(m, "BiasAdd", "biased", sum, m->b), 4), f = nth(gate, apart ? 1 : 2);
  if (!apart) f = binary(m, "Add", "forget", f, m->d);
  tn_output kept = binary(m, "Mul", "kept", *c, unary(m, "Sigmoid", "f", f));
  tn_output now =
      binary(m, "Mul", "now", unary(m, "Sigmoid", "i", gate), unary(m, "Tanh", "j", nth(gate, apart ? 2 : 1)));
  *c = apart ? binary(m, "AddV2", "c", kept, now) : binary(m, "Add", "c", kept, now);
  tn_output tanh = unary(m, "Tanh", "tanh", *c), o = unary(m, "Sigmoid", "o", nth(gate, 3));
  return apart ? binary(m, "Mul", "h", o, tanh) : binary(m, "Mul", "h", tanh, o);
}

static tn_output mix(const maker *m, tn_output u, tn_output h, tn_output candidate)
{
  char name[48];
  name_of(m, "one", name, sizeof name);
  tn_output rest = binary(m, "Sub", "rest", ts_const(m->graph, name, 1), u);
  return binary(m, "AddV2", "h", binary(m, "Mul", "old", u, h),
                binary(m, "Mul", "new", rest, unary(m, "Tanh", "tanh", candidate)));
}

static tn_output gru(const maker *m, tn_output x, tn_output h)
{
  tn_output sum = binary(m, "BiasAdd", "biased", binary(m, "MatMul", "product", concat(m, "both", x, h), m->w), m->b);
  tn_output gate = split(m, "gates", unary(m, "Sigmoid", "sigmoid", sum), 2);
  tn_output pair = concat(m, "scaled", x, binary(m, "Mul", "r_h", gate, h));
  return mix(m, nth(gate, 1), h, binary(m, "BiasAdd", "c", binary(m, "MatMul", "candidate", pair, m->v), m->d));
}

static tn_output gru_apart(const maker *m, tn_output x, tn_output h)
{
  const bool after = m->net->kind == RNN_GRU_AFTER;
  tn_output of_x = split(m, "x_parts", binary(m, "BiasAdd", "of_x", binary(m, "MatMul", "x_w", x, m->w), m->b), 3);
  tn_output of_h = binary(m, "MatMul", "h_u", h, m->u);
  if (after) of_h = binary(m, "AddV2", "of_h", of_h, m->d);
  tn_output u = unary(m, "Sigmoid", "u", binary(m, "AddV2", "u_sum", of_x, slice(m, "h_of_u", of_h, 0, false)));
  tn_output of_r = slice(m, "h_of_r", of_h, 1, !after);
  tn_output r = unary(m, "Sigmoid", "r", binary(m, "AddV2", "r_sum", nth(of_x, 1), of_r)), last;
  if (after) last = binary(m, "Mul", "last", r, slice(m, "h_of_c", of_h, 2, true));
  else last = binary(m, "MatMul", "last", binary(m, "Mul", "r_h", r, h), m->v);
  return mix(m, u, h, binary(m, "AddV2", "c_sum", nth(of_x, 2), last));
}

/* ---- layers ---- */

static tn_output weight(const maker *m, const char *what, int64_t rows, int64_t columns)
{
  char name[48];
  const int64_t dims[2] = { rows, columns };
  snprintf(name, sizeof name, "%s%d", what, m->layer);
  if (m->net->variables && rows > 0) return placeholder(m->graph, name, dims, 2);
  return numbers(m->graph, name, rows > 0 ? 2 : 1, rows > 0 ? dims : dims + 1, what[0] + 3 * m->layer);
}

static void make_weights(maker *m, int64_t in)
{
  const int64_t n = m->net->cells;
  const bool together = m->net->kind == RNN_LSTM || m->net->kind == RNN_GRU;
  const bool is_lstm = m->net->kind == RNN_LSTM || m->net->kind == RNN_LSTM_APART;
  const int64_t gru_gates = m->net->kind == RNN_GRU ? 2 : 3, gates = (is_lstm ? 4 : gru_gates) * n;
  m->w = weight(m, "w", in + (together ? n : 0), gates);
  if (!together) m->u = weight(m, "u", n, m->net->kind == RNN_GRU_BEFORE ? 2 * n : gates);
  if (m->net->kind == RNN_GRU || m->net->kind == RNN_GRU_BEFORE) m->v = weight(m, "v", n + (together ? in : 0), n);
  m->b = weight(m, "b", 0, gates);
  if (m->net->kind == RNN_GRU) m->d = weight(m, "d", 0, n);
  if (m->net->kind == RNN_GRU_AFTER) m->d = weight(m, "d", 0, 3 * n);
  char name[48];
  snprintf(name, sizeof name, "forget_bias%d", m->layer);
  if (m->net->kind == RNN_LSTM) m->d = ts_const(m->graph, name, 1);
}

static tn_output input_of(const maker *m, tn_output x, tn_output unpacked, tn_output h, tn_output early)
{
  char name[48], part[64];
  if (m->net->early && m->step >= m->net->steps - 2) return early;
  if (m->net->back && m->step > 0) return unary(m, "Neg", "back", h);
  if (!m->net->slices) return nth(unpacked, (uint32_t)m->step);
  name_of(m, "x", name, sizeof name);
  tn_operation_builder *b = tn_operation_begin(m->graph, "GatherV2", name, 0);
  snprintf(part, sizeof part, "%s/place", name);
  tn_operation_add_input(b, x);
  tn_operation_add_input(b, ints(m->graph, part, 0, m->step, 0));
  snprintf(part, sizeof part, "%s/axis", name);
  tn_operation_add_input(b, ints(m->graph, part, 0, 0, 0));
  return finish(b, 0);
}

#define MOST_LAYERS 3

static void make_step(maker *m, tn_output x, tn_output *h, tn_output *c, const maker *weights)
{
  for (m->layer = 0; m->layer < m->net->layers; m->layer++) {
    maker now = weights[m->layer];
    now.step = m->step;
    const rnn_kind kind = m->net->kind;
    tn_output *state = &h[m->layer];
    if (kind == RNN_LSTM || kind == RNN_LSTM_APART) *state = lstm(&now, x, *state, &c[m->layer]);
    else *state = kind == RNN_GRU ? gru(&now, x, *state) : gru_apart(&now, x, *state);
    x = *state;
  }
}

void rnn_graph(tn_graph *graph, const rnn_net *net)
{
  maker m = { .graph = graph, .net = net }, weights[MOST_LAYERS];
  const int64_t batch = net->batch_known ? net->batch : -1;
  const int64_t x_dims[3] = { net->steps, batch, net->in }, state_dims[2] = { batch, net->cells };
  tn_output x = placeholder(graph, "x", x_dims, 3), h[MOST_LAYERS], c[MOST_LAYERS];
  tn_output h0 = placeholder(graph, "h", state_dims, 2), c0 = placeholder(graph, "c", state_dims, 2);
  m.axis = ints(graph, "axis", 0, 1, 0);
  tn_operation_builder *b = tn_operation_begin(graph, "Unpack", "unpacked", 0);
  tn_operation_add_input(b, x);
  tn_operation_set_int(b, "num", net->steps);
  tn_output unpacked = finish(b, 0);
  for (m.layer = 0; m.layer < net->layers; m.layer++) {
    make_weights(&m, m.layer == 0 ? net->in : net->cells);
    weights[m.layer] = m;
    h[m.layer] = h0;
    c[m.layer] = c0;
  }
  tn_output early = h0;
  for (m.layer = 0, m.step = 0; m.step < net->steps; m.step++, m.layer = 0) {
    make_step(&m, input_of(&m, x, unpacked, h[0], early), h, c, weights);
    if (m.step == 1) early = h[0];
  }
}

/* ---- runs ---- */

void rnn_open(ts *t, const rnn_net *net, int level, const char *disabled)
{
  ts_init(t, level);
  rnn_graph(t->graph, net);
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", disabled, &t->err), &t->err);
  ts_start(t);
}

static tn_tensor *filled(int32_t rank, const int64_t *dims, int seed, float scale)
{
  tn_tensor *t = ts_filled(rank, dims, 0);
  float *v = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) v[i] = scale * (float)((i * 6151 + seed * 31) % 499 - 249) / 249;
  return t;
}

/* The first layer's, identified by their declared shapes. */
static size_t add_weights(tn_graph *graph, tn_tensor **in, const char **names, size_t n)
{
  static const char *const weights[] = { "w0", "u0", "v0" };
  for (int i = 0; i < 3; i++) {
    tn_operation *op = tn_graph_find(graph, weights[i]);
    int64_t dims[2];
    int32_t rank;
    if (op == NULL) continue;
    REQUIRE_OK(tn_output_shape((tn_output){ op, 0 }, dims, 2, &rank, NULL), NULL);
    names[n] = weights[i];
    in[n++] = filled(rank, dims, 4 + i, 0.5f);
  }
  return n;
}

tn_status rnn_run(ts *t, const rnn_net *net, const rnn_feeds *feeds, const char *const *fetches, size_t n,
                  tn_tensor **out)
{
  static const rnn_feeds plain;
  if (feeds == NULL) feeds = &plain;
  const int64_t x_dims[3] = { net->steps, net->batch, net->in };
  const int64_t h_dims[2] = { feeds->h_rows > 0 ? feeds->h_rows : net->batch, net->cells };
  const int64_t c_dims[2] = { feeds->c_rows > 0 ? feeds->c_rows : net->batch, net->cells };
  const float scale = feeds->zeros ? 0 : 1;
  tn_tensor *in[6] = { filled(3, x_dims, 1, 1), filled(2, h_dims, 2, scale), filled(2, c_dims, 3, scale) };
  const char *names[6] = { "x:0", "h:0", "c:0" };
  size_t n_in = net->kind == RNN_LSTM || net->kind == RNN_LSTM_APART ? 3 : 2;
  if (n_in == 2) {
    tn_tensor_unref(in[2]);
    in[2] = NULL;
  }
  if (net->variables) n_in = add_weights(t->graph, in, names, n_in);
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  tn_status st = tn_session_run(t->session, NULL, names, in, n_in, fetches, out, n, NULL, 0, NULL, &t->err);
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) tn_tensor_unref(in[i]);
  return st;
}
