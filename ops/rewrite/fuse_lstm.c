/* SPDX-License-Identifier: Apache-2.0 */
/* The "cell" pass: LSTM cells built from plain ops become _TnLSTMCell. The pattern, matched from its end:
 *
 *   h = tanh(c) * sigmoid(o)             c = c' * sigmoid(f [+ constant]) + sigmoid(i) * tanh(j)
 *   i, j, f, o = the four parts of concat(x, h') w + b, or of x w + h' u + b, in any order
 *
 * Factors and summands may be in either order. Except for c and h, intermediate values must not be read by other
 * nodes. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <tenon/rewrite.h>

typedef struct cell {
  uint32_t split;      /* the node that splits the gates */
  int64_t gate[4];     /* parts of i, j, f, o */
  float forget_bias;
  uint32_t inputs[6];  /* x, h', c', w, b, u; u is w unless apart */
  bool apart;          /* x and h' have separate weights, instead of being concatenated */
  uint32_t c, add;     /* the new state, and the node that computes it */
} cell;

/* The producer of a value if it is this op and the value has a single use; otherwise TN_NO_NODE. */
static uint32_t made_by(const tn_rewriter *rw, uint32_t value, const char *op)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (!tn_rewrite_is(rw, node, op) || tn_rewrite_n_uses(rw, value) != 1) return TN_NO_NODE;
  return tn_rewrite_dtype(rw, value) == TN_FLOAT ? node : TN_NO_NODE;
}

/* Matches a value op(part of a split), and sets *gate to the part. All four parts must come from the same m->split. */
static bool gate_through(const tn_rewriter *rw, uint32_t value, const char *op, cell *m, int64_t *gate)
{
  uint32_t node = made_by(rw, value, op), index;
  if (node == TN_NO_NODE) return false;
  uint32_t part = tn_rewrite_input(rw, node, 0), split = tn_rewrite_producer(rw, part, &index);
  if (!tn_rewrite_is(rw, split, "Split") || tn_rewrite_n_uses(rw, part) != 1) return false;
  if (m->split != TN_NO_NODE && m->split != split) return false;
  m->split = split;
  *gate = index;
  return true;
}

static bool scalar_of(const tn_rewriter *rw, uint32_t value, double *out)
{
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  if (t == NULL || tn_tensor_elements(t) != 1 || tn_tensor_rank(t) != 0 || tn_tensor_data(t) == NULL) return false;
  tn_dtype dtype = tn_tensor_dtype(t);
  if (dtype == TN_FLOAT) *out = *(const float *)tn_tensor_data(t);
  else if (dtype == TN_INT32) *out = *(const int32_t *)tn_tensor_data(t);
  else return false;
  return true;
}

static bool is_sum(const tn_rewriter *rw, uint32_t node)
{
  return tn_rewrite_is(rw, node, "Add") || tn_rewrite_is(rw, node, "AddV2");
}

/* Matches sigmoid(f) or sigmoid(f + constant). */
static bool match_forget(const tn_rewriter *rw, uint32_t value, cell *m)
{
  m->forget_bias = 0;
  if (gate_through(rw, value, "Sigmoid", m, &m->gate[2])) return true;
  uint32_t node = made_by(rw, value, "Sigmoid"), index;
  if (node == TN_NO_NODE) return false;
  uint32_t sum = tn_rewrite_input(rw, node, 0), add = tn_rewrite_producer(rw, sum, NULL);
  if (!is_sum(rw, add) || tn_rewrite_n_uses(rw, sum) != 1) return false;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t part = tn_rewrite_input(rw, add, side), split = tn_rewrite_producer(rw, part, &index);
    double bias;
    if (split != m->split || tn_rewrite_n_uses(rw, part) != 1) continue;
    if (!scalar_of(rw, tn_rewrite_input(rw, add, 1 - side), &bias)) continue;
    m->gate[2] = index;
    m->forget_bias = (float)bias;
    return true;
  }
  return false;
}

/* Matches sigmoid(i) * tanh(j). */
static bool match_now(const tn_rewriter *rw, uint32_t value, cell *m)
{
  uint32_t mul = made_by(rw, value, "Mul");
  for (uint32_t side = 0; mul != TN_NO_NODE && side < 2; side++)
    if (gate_through(rw, tn_rewrite_input(rw, mul, side), "Sigmoid", m, &m->gate[0]) &&
        gate_through(rw, tn_rewrite_input(rw, mul, 1 - side), "Tanh", m, &m->gate[1]))
      return true;
  return false;
}

/* Matches c' * sigmoid(f). */
static bool match_kept(const tn_rewriter *rw, uint32_t value, cell *m)
{
  uint32_t mul = made_by(rw, value, "Mul");
  for (uint32_t side = 0; mul != TN_NO_NODE && side < 2; side++) {
    if (!match_forget(rw, tn_rewrite_input(rw, mul, side), m)) continue;
    m->inputs[2] = tn_rewrite_input(rw, mul, 1 - side);
    return true;
  }
  return false;
}

static bool match_state(const tn_rewriter *rw, cell *m)
{
  uint32_t add = m->add = tn_rewrite_producer(rw, m->c, NULL);
  if (!is_sum(rw, add)) return false;
  for (uint32_t side = 0; side < 2; side++)
    if (match_now(rw, tn_rewrite_input(rw, add, side), m) && match_kept(rw, tn_rewrite_input(rw, add, 1 - side), m))
      return true;
  return false;
}

/* Matches a matrix product without transposition and with a single use; returns its factors. */
static bool match_matmul(const tn_rewriter *rw, uint32_t value, uint32_t *a, uint32_t *b)
{
  uint32_t product = made_by(rw, value, "MatMul");
  if (product == TN_NO_NODE) return false;
  const tn_operation *op = tn_rewrite_operation(rw, product);
  if (tn__attr_bool(op, "transpose_a", true) || tn__attr_bool(op, "transpose_b", true)) return false;
  *a = tn_rewrite_input(rw, product, 0);
  *b = tn_rewrite_input(rw, product, 1);
  return true;
}

/* Matches concat(x, h') w. */
static bool match_together(const tn_rewriter *rw, uint32_t value, cell *m)
{
  double axis;
  uint32_t side_by_side;
  if (!match_matmul(rw, value, &side_by_side, &m->inputs[3])) return false;
  uint32_t concat = made_by(rw, side_by_side, "ConcatV2");
  if (concat == TN_NO_NODE || tn_rewrite_n_inputs(rw, concat) != 3) return false;
  if (!scalar_of(rw, tn_rewrite_input(rw, concat, 2), &axis) || (axis != 1 && axis != -1)) return false;
  m->inputs[0] = tn_rewrite_input(rw, concat, 0);
  m->inputs[1] = tn_rewrite_input(rw, concat, 1);
  m->inputs[5] = m->inputs[3];
  return true;
}

/* Matches x w + h' u. Which of the two is h' only matters when consecutive cells are joined: it is the output of
 * the cell that produces c', otherwise the second summand. */
static bool match_apart(const tn_rewriter *rw, uint32_t value, cell *m)
{
  uint32_t add = tn_rewrite_producer(rw, value, NULL);
  if (!is_sum(rw, add) || tn_rewrite_n_uses(rw, value) != 1) return false;
  uint32_t a[2], b[2], from = tn_rewrite_producer(rw, m->inputs[2], NULL);
  for (uint32_t k = 0; k < 2; k++)
    if (!match_matmul(rw, tn_rewrite_input(rw, add, k), &a[k], &b[k])) return false;
  uint32_t h =
      from != TN_NO_NODE && tn_rewrite_is(rw, from, "_TnLSTMCell") && tn_rewrite_output(rw, from, 1) == a[0] ? 0 : 1;
  m->inputs[0] = a[1 - h];
  m->inputs[1] = a[h];
  m->inputs[3] = b[1 - h];
  m->inputs[5] = b[h];
  m->apart = true;
  return true;
}

/* Matches the value that is split: the biased product. */
static bool match_product(const tn_rewriter *rw, cell *m)
{
  double axis;
  const tn_operation *split = tn_rewrite_operation(rw, m->split);
  if (tn_operation_n_outputs(split) != 4 || !scalar_of(rw, tn_rewrite_input(rw, m->split, 0), &axis)) return false;
  if (axis != 1 && axis != -1) return false;
  uint32_t sum = tn_rewrite_input(rw, m->split, 1), add = made_by(rw, sum, "BiasAdd");
  if (add == TN_NO_NODE) return false;
  m->inputs[4] = tn_rewrite_input(rw, add, 1);
  uint32_t products = tn_rewrite_input(rw, add, 0);
  return match_together(rw, products, m) || match_apart(rw, products, m);
}

/* Checks ranks and dtypes; plain ops also accept other ranks. */
static bool ranks_fit(const tn_rewriter *rw, const cell *m)
{
  int64_t dims[TN_MAX_RANK];
  for (int i = 0; i < 6; i++)
    if (tn_rewrite_shape(rw, m->inputs[i], dims) != (i == 4 ? 1 : 2) || tn_rewrite_dtype(rw, m->inputs[i]) != TN_FLOAT)
      return false;
  return true;
}

static bool match(const tn_rewriter *rw, uint32_t node, cell *m)
{
  for (uint32_t side = 0; side < 2; side++) {
    *m = (cell){ .split = TN_NO_NODE };
    uint32_t tanh = made_by(rw, tn_rewrite_input(rw, node, side), "Tanh");
    if (tanh == TN_NO_NODE || !gate_through(rw, tn_rewrite_input(rw, node, 1 - side), "Sigmoid", m, &m->gate[3]))
      continue;
    m->c = tn_rewrite_input(rw, tanh, 0);
    unsigned seen = 0;
    if (!match_state(rw, m) || !match_product(rw, m) || !ranks_fit(rw, m)) continue;
    for (int i = 0; i < 4; i++) seen |= 1u << m->gate[i];
    if (seen == 15) return true;
  }
  return false;
}

static tn_status fuse_cell(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  cell m;
  if (tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) != TN_FLOAT || !match(rw, node, &m)) return TN_OK;
  tn_rewrite_place(rw, m.add); /* all inputs are computed before this node; readers of the new state come after it */
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnLSTMCell", node);
  if (b == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory: plan");
  tn_operation_set_ints(b, "gates", m.gate, 4);
  tn_operation_set_float(b, "forget_bias", m.forget_bias);
  tn_operation_set_bool(b, "apart", m.apart);
  uint32_t made;
  tn_status st = tn_rewrite_finish(rw, b, m.inputs, 6, TN_NO_LIST, &made, err);
  if (st != TN_OK) return st;
  tn_rewrite_replace(rw, m.c, tn_rewrite_output(rw, made, 0));
  tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 1));
  return TN_OK;
}

static const tn_rewrite_def rewrites[] = {
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "cell", .name = "lstm_cell", .op = "Mul", .apply = fuse_cell },
};

TN_REWRITE_FAMILY(fuse_lstm)
