/* SPDX-License-Identifier: Apache-2.0 */
/* The "layer" pass: consecutive _TnLSTMCell nodes, each with the state of the previous one and all with the same
 * weights, become one _TnLSTMLayer, if the inputs of all steps are available before the first step:
 *
 *   - either a single node produces all inputs, a lower layer or a node that splits a tensor; the layer then takes the
 *     place of the first cell,
 *   - or only the next cell reads each intermediate state, so no input can depend on one; the layer then takes the
 * place of the last cell. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/rewrite/steps.h>
#include <string.h>
#include <tenon/rewrite.h>

enum { X, H, C, W, B, U };
enum { LAYER_H, LAYER_C, LAYER_W, LAYER_U, LAYER_B, FIXED };

typedef struct chain {
  uint32_t *cells; /* nodes, first step first */
  uint32_t *inputs; /* inputs of the new node: the fixed ones, then x of each step */
  int64_t *h_steps, *c_steps; /* steps whose state is read by other nodes */
  size_t n, n_h, n_c;
  bool inner; /* these include steps other than the last */
  bool apart; /* x w + h' u instead of [x, h'] w */
} chain;

/* The cell whose state this one continues from; TN_NO_NODE if there is none. */
static uint32_t cell_before(const tn_rewriter *rw, uint32_t node)
{
  uint32_t h_index, c_index;
  uint32_t from = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, H), &h_index);
  if (!tn_rewrite_is(rw, from, "_TnLSTMCell") || h_index != 1) return TN_NO_NODE;
  if (tn_rewrite_producer(rw, tn_rewrite_input(rw, node, C), &c_index) != from || c_index != 0) return TN_NO_NODE;
  for (uint32_t i = W; i <= U; i++)
    if (tn_rewrite_input(rw, from, i) != tn_rewrite_input(rw, node, i)) return TN_NO_NODE;
  const tn_operation *a = tn_rewrite_operation(rw, from), *b = tn_rewrite_operation(rw, node);
  if (tn__attr_float(a, "forget_bias", 0) != tn__attr_float(b, "forget_bias", 0)) return TN_NO_NODE;
  if (tn__attr_bool(a, "apart", false) != tn__attr_bool(b, "apart", false)) return TN_NO_NODE;
  const int64_t *order[2];
  size_t n[2];
  if (tn_operation_attr_ints(a, "gates", &order[0], &n[0], NULL) != TN_OK ||
      tn_operation_attr_ints(b, "gates", &order[1], &n[1], NULL) != TN_OK)
    return TN_NO_NODE;
  return n[0] == n[1] && memcmp(order[0], order[1], n[0] * sizeof *order[0]) == 0 ? from : TN_NO_NODE;
}

static size_t count_cells(const tn_rewriter *rw, uint32_t last)
{
  size_t n = 1;
  while ((last = cell_before(rw, last)) != TN_NO_NODE) n++;
  return n;
}

/* True if a step's output is read by nodes other than the next step. */
static bool is_read(const tn_rewriter *rw, const chain *m, size_t step, uint32_t output)
{
  uint32_t by_next = step + 1 < m->n ? 1 : 0;
  return tn_rewrite_n_uses(rw, tn_rewrite_output(rw, m->cells[step], output)) > by_next;
}

static void read_chain(const tn_rewriter *rw, uint32_t last, chain *m)
{
  static const uint32_t of_cell[FIXED] = { H, C, W, U, B };
  uint32_t node = last;
  m->apart = tn__attr_bool(tn_rewrite_operation(rw, last), "apart", false);
  for (size_t i = m->n; i-- > 0; node = cell_before(rw, node)) m->cells[i] = node;
  for (uint32_t i = 0; i < FIXED; i++) m->inputs[i] = tn_rewrite_input(rw, m->cells[0], of_cell[i]);
  if (!m->apart) m->inputs[LAYER_U] = m->inputs[LAYER_B]; /* unused; any input that the layer needs anyway */
  for (size_t i = 0; i < m->n; i++) {
    m->inputs[FIXED + i] = tn_rewrite_input(rw, m->cells[i], X);
    if (is_read(rw, m, i, 1)) m->h_steps[m->n_h++] = (int64_t)i;
    if (is_read(rw, m, i, 0)) m->c_steps[m->n_c++] = (int64_t)i;
    if (i + 1 < m->n && m->n_h + m->n_c > 0) m->inner = true;
  }
}

/* ---- conditions ---- */

/* True if the widths are known and nothing is broadcast along a row. */
static bool widths_fit(const tn_rewriter *rw, const chain *m)
{
  int64_t h[TN_MAX_RANK], c[TN_MAX_RANK], w[TN_MAX_RANK], u[TN_MAX_RANK], x[TN_MAX_RANK];
  if (tn_rewrite_shape(rw, m->inputs[LAYER_H], h) != 2 || tn_rewrite_shape(rw, m->inputs[LAYER_C], c) != 2)
    return false;
  if (tn_rewrite_shape(rw, m->inputs[LAYER_W], w) != 2) return false;
  if (h[1] < 1 || h[1] > INT64_MAX / 4 || c[1] != h[1] || w[1] != 4 * h[1]) return false;
  if (m->apart && (tn_rewrite_shape(rw, m->inputs[LAYER_U], u) != 2 || u[0] != h[1] || u[1] != w[1])) return false;
  const int64_t in = w[0] - (m->apart ? 0 : h[1]);
  for (size_t i = 0; i < m->n; i++)
    if (in < 0 || tn_rewrite_shape(rw, m->inputs[FIXED + i], x) != 2 || x[1] != in) return false;
  return true;
}

/* True if all steps have the same number of rows, or the plain ops would fail, too. In plain ops, a state with more
 * rows than the input increases the rows of all later steps; if x and h' are apart, so does an input with more rows
 * than the state. */
static bool rows_fit(const tn_rewriter *rw, const chain *m)
{
  int64_t h[TN_MAX_RANK], c[TN_MAX_RANK];
  (void)tn_rewrite_shape(rw, m->inputs[LAYER_H], h);
  (void)tn_rewrite_shape(rw, m->inputs[LAYER_C], c);
  if (!m->apart && (m->inputs[LAYER_H] == m->inputs[LAYER_C] || (h[0] >= 0 && h[0] == c[0]))) return true;
  return tn__steps_same_rows(rw, m->inputs + FIXED, m->n);
}

/* ---- the new node ---- */

static void set_attrs(tn_operation_builder *b, const tn_operation *cell, const chain *m)
{
  const int64_t *gates;
  size_t n;
  if (tn_operation_attr_ints(cell, "gates", &gates, &n, NULL) == TN_OK) tn_operation_set_ints(b, "gates", gates, n);
  tn_operation_set_float(b, "forget_bias", tn__attr_float(cell, "forget_bias", 0));
  tn_operation_set_bool(b, "apart", m->apart);
  tn_operation_set_int(b, "n_h", (int64_t)m->n_h);
  tn_operation_set_int(b, "n_c", (int64_t)m->n_c);
  tn_operation_set_ints(b, "h_steps", m->h_steps, m->n_h);
  tn_operation_set_ints(b, "c_steps", m->c_steps, m->n_c);
}

static tn_status make_layer(tn_rewriter *rw, uint32_t like, const chain *m, tn_error *err)
{
  uint32_t made;
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnLSTMLayer", like);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  set_attrs(b, tn_rewrite_operation(rw, like), m);
  tn_status st = tn_rewrite_finish(rw, b, m->inputs, (uint32_t)(FIXED + m->n), FIXED, &made, err);
  if (st != TN_OK) return st;
  for (size_t k = 0; k < m->n_h; k++)
    tn_rewrite_replace(rw, tn_rewrite_output(rw, m->cells[m->h_steps[k]], 1), tn_rewrite_output(rw, made, (uint32_t)k));
  for (size_t k = 0; k < m->n_c; k++)
    tn_rewrite_replace(rw, tn_rewrite_output(rw, m->cells[m->c_steps[k]], 0),
                       tn_rewrite_output(rw, made, (uint32_t)(m->n_h + k)));
  return TN_OK;
}

tn_status tn__fuse_lstm_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err)
{
  chain m = { .n = count_cells(rw, node) };
  tn_status st = m.n < 2 ? TN_OK : tn__steps_fuse_below(rw, tn_rewrite_input(rw, node, X), depth, err);
  if (st == TN_OK && m.n >= 2) m.n = count_cells(rw, node); /* some steps may be part of a layer now */
  if (st != TN_OK || m.n < 2) return st;
  size_t words = 2 * m.n + FIXED, bytes = words * sizeof(uint32_t) + 2 * m.n * sizeof(int64_t);
  m.h_steps = tn__alloc(bytes);
  if (m.h_steps == NULL) return tn__no_memory(err, "plan", bytes);
  m.c_steps = m.h_steps + m.n;
  m.cells = (uint32_t *)(m.c_steps + m.n);
  m.inputs = m.cells + m.n;
  read_chain(rw, node, &m);
  bool one = tn__steps_from_one(rw, m.inputs + FIXED, m.n);
  if ((one || !m.inner) && widths_fit(rw, &m) && (one || rows_fit(rw, &m))) {
    tn_rewrite_place(rw, m.inner ? m.cells[0] : node);
    st = make_layer(rw, node, &m, err);
  }
  tn__free(m.h_steps, bytes);
  return st;
}

static tn_status fuse_layer(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  return tn__fuse_lstm_layer(rw, node, 0, err);
}

static const tn_rewrite_def rewrites[] = {
  { .struct_size = TN_REWRITE_DEF_SIZE,
    .pass = "layer",
    .name = "lstm_layer",
    .op = "_TnLSTMCell",
    .apply = fuse_layer },
};

TN_REWRITE_FAMILY(fuse_lstm_layer)
