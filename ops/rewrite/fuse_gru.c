/* SPDX-License-Identifier: Apache-2.0 */
/* The "cell" pass: GRU cells built from plain ops become a _TnGRULayer of one step. The pattern, matched from its end:
 *
 *   h = u * h' + (1 - u) * tanh(c)
 *
 * preceded by one of the forms of ops/rnn/gru_layer.c. Factors and summands may be in either order. Intermediate
 * values must not be read by other nodes. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>
#include <tenon/rewrite.h>

enum { R, U, C };
enum { H_IN, W_IN, U_IN, V_IN, B_IN, D_IN, X_IN, INPUTS };

typedef struct cell {
  const char *form;
  uint32_t inputs[INPUTS];
  uint32_t r, u, now; /* r and u; now: the operand of tanh */
  int64_t cells;
  int64_t part[3];
} cell;

/* A part of a matrix's columns. */
typedef struct columns {
  uint32_t whole;
  int64_t part;
} columns;

/* The producer of a float value if it is this op and the value has `uses` uses; otherwise TN_NO_NODE. */
static uint32_t made_by(const tn_rewriter *rw, uint32_t value, const char *op, uint32_t uses)
{
  uint32_t node = tn_rewrite_producer(rw, value, NULL);
  if (!tn_rewrite_is(rw, node, op) || tn_rewrite_n_uses(rw, value) != uses) return TN_NO_NODE;
  return tn_rewrite_dtype(rw, value) == TN_FLOAT ? node : TN_NO_NODE;
}

static uint32_t sum_of(const tn_rewriter *rw, uint32_t value)
{
  uint32_t node = made_by(rw, value, "AddV2", 1);
  return node != TN_NO_NODE ? node : made_by(rw, value, "Add", 1);
}

/* If the value is a constant of n integers, stores them in out. */
static bool integers(const tn_rewriter *rw, uint32_t value, int64_t n, int64_t *out)
{
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  if (t == NULL || tn_tensor_elements(t) != n || tn_tensor_data(t) == NULL) return false;
  if (tn_tensor_dtype(t) != TN_INT32 && tn_tensor_dtype(t) != TN_INT64) return false;
  for (int64_t i = 0; i < n; i++) out[i] = tn__tensor_int_at(t, i);
  return true;
}

static bool is_one(const tn_rewriter *rw, uint32_t value)
{
  const tn_tensor *t = tn_rewrite_constant(rw, value);
  return t != NULL && tn_tensor_dtype(t) == TN_FLOAT && tn_tensor_rank(t) == 0 && tn_tensor_data(t) != NULL &&
         *(const float *)tn_tensor_data(t) == 1;
}

/* ---- columns of a matrix ---- */

static bool split_sizes_fit(const tn_rewriter *rw, uint32_t node, int64_t parts, int64_t cells)
{
  int64_t sizes[3], open = 0;
  if (!integers(rw, tn_rewrite_input(rw, node, 1), parts, sizes)) return false;
  for (int64_t i = 0; i < parts; i++) {
    if (sizes[i] == -1) open++;
    else if (sizes[i] != cells) return false;
  }
  return open <= 1;
}

/* Matches Split and SplitV along the second dimension. */
static bool split_columns(const tn_rewriter *rw, uint32_t node, uint32_t index, int64_t parts, int64_t cells,
                          columns *out)
{
  const bool sized = tn_rewrite_is(rw, node, "SplitV");
  int64_t axis;
  if (!sized && !tn_rewrite_is(rw, node, "Split")) return false;
  if ((int64_t)tn_operation_n_outputs(tn_rewrite_operation(rw, node)) != parts) return false;
  if (!integers(rw, tn_rewrite_input(rw, node, sized ? 2 : 0), 1, &axis) || (axis != 1 && axis != -1)) return false;
  if (sized && !split_sizes_fit(rw, node, parts, cells)) return false;
  *out = (columns){ tn_rewrite_input(rw, node, sized ? 0 : 1), index };
  return tn_rewrite_n_uses(rw, out->whole) == 1;
}

/* Matches StridedSlice [:, part * cells : (part + 1) * cells]. */
static bool slice_columns(const tn_rewriter *rw, uint32_t node, int64_t parts, int64_t cells, columns *out)
{
  static const char *const none[] = { "ellipsis_mask", "new_axis_mask", "shrink_axis_mask" };
  int64_t begin[2], end[2], step[2];
  if (!tn_rewrite_is(rw, node, "StridedSlice")) return false;
  const tn_operation *op = tn_rewrite_operation(rw, node);
  int64_t from = tn__attr_int(op, "begin_mask", 0), to = tn__attr_int(op, "end_mask", 0);
  for (int i = 0; i < 3; i++)
    if (tn__attr_int(op, none[i], 0) != 0) return false;
  if (!integers(rw, tn_rewrite_input(rw, node, 1), 2, begin) || !integers(rw, tn_rewrite_input(rw, node, 2), 2, end) ||
      !integers(rw, tn_rewrite_input(rw, node, 3), 2, step) || step[0] != 1 || step[1] != 1)
    return false;
  if ((!(from & 1) && begin[0] != 0) || !(to & 1)) return false;
  int64_t first = from & 2 ? 0 : begin[1], last = to & 2 ? parts * cells : end[1];
  if (first < 0 || first % cells != 0 || last != first + cells || last > parts * cells) return false;
  *out = (columns){ tn_rewrite_input(rw, node, 0), first / cells };
  return tn_rewrite_n_uses(rw, out->whole) == (uint32_t)parts;
}

/* Matches one part, with a single use, of a matrix with `parts` parts. */
static bool part_of(const tn_rewriter *rw, uint32_t value, int64_t parts, int64_t cells, columns *out)
{
  uint32_t index, node = tn_rewrite_producer(rw, value, &index);
  int64_t dims[TN_MAX_RANK];
  if (node == TN_NO_NODE || tn_rewrite_n_uses(rw, value) != 1) return false;
  if (!split_columns(rw, node, index, parts, cells, out) && !slice_columns(rw, node, parts, cells, out)) return false;
  return tn_rewrite_shape(rw, out->whole, dims) == 2 && dims[1] == parts * cells;
}

/* ---- products ---- */

/* Matches a b with `uses` uses. */
static bool match_matmul(const tn_rewriter *rw, uint32_t value, uint32_t uses, uint32_t *a, uint32_t *b)
{
  uint32_t node = made_by(rw, value, "MatMul", uses);
  if (node == TN_NO_NODE) return false;
  const tn_operation *op = tn_rewrite_operation(rw, node);
  *a = tn_rewrite_input(rw, node, 0);
  *b = tn_rewrite_input(rw, node, 1);
  return !tn__attr_bool(op, "transpose_a", true) && !tn__attr_bool(op, "transpose_b", true);
}

/* Matches a b + vector with `uses` uses. */
static bool match_biased(const tn_rewriter *rw, uint32_t value, uint32_t uses, uint32_t *a, uint32_t *b, uint32_t *bias)
{
  static const char *const sums[] = { "BiasAdd", "AddV2", "Add" };
  int64_t dims[TN_MAX_RANK];
  uint32_t node = TN_NO_NODE;
  for (int i = 0; i < 3 && node == TN_NO_NODE; i++) node = made_by(rw, value, sums[i], uses);
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++) {
    *bias = tn_rewrite_input(rw, node, 1 - side);
    if (tn_rewrite_shape(rw, *bias, dims) == 1 && match_matmul(rw, tn_rewrite_input(rw, node, side), 1, a, b))
      return true;
  }
  return false;
}

/* ---- the forms ---- */

/* Matches the end of the cell, starting at its last node: finds u, h' and the operand of tanh. */
static bool match_end(const tn_rewriter *rw, uint32_t node, uint32_t side, cell *m)
{
  uint32_t keep = made_by(rw, tn_rewrite_input(rw, node, side), "Mul", 1);
  uint32_t take = made_by(rw, tn_rewrite_input(rw, node, 1 - side), "Mul", 1);
  int64_t dims[TN_MAX_RANK];
  for (uint32_t k = 0; keep != TN_NO_NODE && take != TN_NO_NODE && k < 4; k++) {
    uint32_t rest = made_by(rw, tn_rewrite_input(rw, take, k & 1), "Sub", 1);
    uint32_t tanh = made_by(rw, tn_rewrite_input(rw, take, 1 - (k & 1)), "Tanh", 1);
    if (rest == TN_NO_NODE || tanh == TN_NO_NODE || !is_one(rw, tn_rewrite_input(rw, rest, 0))) continue;
    m->u = tn_rewrite_input(rw, keep, k >> 1);
    m->inputs[H_IN] = tn_rewrite_input(rw, keep, 1 - (k >> 1));
    m->now = tn_rewrite_input(rw, tanh, 0);
    if (m->u != tn_rewrite_input(rw, rest, 1) || tn_rewrite_n_uses(rw, m->u) != 2) continue;
    if (tn_rewrite_shape(rw, m->inputs[H_IN], dims) != 2 || dims[1] < 1 || dims[1] > INT64_MAX / 4) return false;
    m->cells = dims[1];
    return true;
  }
  return false;
}

/* Matches r * h'; sets r. */
static bool match_scaled(const tn_rewriter *rw, uint32_t value, cell *m)
{
  uint32_t node = made_by(rw, value, "Mul", 1);
  for (uint32_t side = 0; node != TN_NO_NODE && side < 2; side++) {
    if (tn_rewrite_input(rw, node, side) != m->inputs[H_IN]) continue;
    m->r = tn_rewrite_input(rw, node, 1 - side);
    return tn_rewrite_n_uses(rw, m->r) == 1;
  }
  return false;
}

/* Matches the concatenation of two matrices along columns. */
static bool match_pair(const tn_rewriter *rw, uint32_t value, uint32_t *a, uint32_t *b)
{
  uint32_t node = made_by(rw, value, "ConcatV2", 1);
  int64_t axis;
  if (node == TN_NO_NODE || tn_rewrite_n_inputs(rw, node) != 3) return false;
  *a = tn_rewrite_input(rw, node, 0);
  *b = tn_rewrite_input(rw, node, 1);
  return integers(rw, tn_rewrite_input(rw, node, 2), 1, &axis) && (axis == 1 || axis == -1);
}

static bool match_together(const tn_rewriter *rw, cell *m)
{
  uint32_t pair, x, scaled, h, index[2], *in = m->inputs;
  if (!match_biased(rw, m->now, 1, &pair, &in[V_IN], &in[D_IN]) || !match_pair(rw, pair, &x, &scaled)) return false;
  if (!match_scaled(rw, scaled, m)) return false;
  uint32_t split = tn_rewrite_producer(rw, m->r, &index[R]);
  columns all;
  if (split == TN_NO_NODE || tn_rewrite_producer(rw, m->u, &index[U]) != split || index[R] == index[U]) return false;
  if (!split_columns(rw, split, index[R], 2, m->cells, &all)) return false;
  uint32_t sigmoid = made_by(rw, all.whole, "Sigmoid", 1);
  if (sigmoid == TN_NO_NODE) return false;
  if (!match_biased(rw, tn_rewrite_input(rw, sigmoid, 0), 1, &pair, &in[W_IN], &in[B_IN])) return false;
  if (!match_pair(rw, pair, &in[X_IN], &h) || in[X_IN] != x || h != in[H_IN]) return false;
  in[U_IN] = in[B_IN];
  m->part[R] = index[R];
  m->part[U] = index[U];
  m->part[C] = 2;
  m->form = "together";
  return true;
}

/* Matches sigmoid(part of x's product + the same part of h's product). */
static bool match_gate(const tn_rewriter *rw, uint32_t value, uint32_t uses, uint32_t of_x, uint32_t of_h,
                       int64_t h_parts, cell *m, int64_t *part)
{
  uint32_t sigmoid = made_by(rw, value, "Sigmoid", uses);
  uint32_t sum = sigmoid == TN_NO_NODE ? TN_NO_NODE : sum_of(rw, tn_rewrite_input(rw, sigmoid, 0));
  columns x, h;
  for (uint32_t side = 0; sum != TN_NO_NODE && side < 2; side++) {
    if (!part_of(rw, tn_rewrite_input(rw, sum, side), 3, m->cells, &x) || x.whole != of_x) continue;
    if (!part_of(rw, tn_rewrite_input(rw, sum, 1 - side), h_parts, m->cells, &h)) continue;
    *part = x.part;
    return (of_h == TN_NO_NODE || h.whole == of_h) && h.part == x.part;
  }
  return false;
}

/* The product of h that contains u's part. */
static uint32_t whole_of_state(const tn_rewriter *rw, uint32_t of_x, int64_t parts, const cell *m)
{
  uint32_t sigmoid = made_by(rw, m->u, "Sigmoid", 2);
  uint32_t sum = sigmoid == TN_NO_NODE ? TN_NO_NODE : sum_of(rw, tn_rewrite_input(rw, sigmoid, 0));
  columns of;
  for (uint32_t side = 0; sum != TN_NO_NODE && side < 2; side++)
    if (part_of(rw, tn_rewrite_input(rw, sum, side), parts, m->cells, &of) && of.whole != of_x) return of.whole;
  return TN_NO_NODE;
}

/* Matches both gates, and x's product with its bias. */
static bool match_gates(const tn_rewriter *rw, uint32_t of_x, uint32_t of_h, int64_t h_parts, cell *m)
{
  uint32_t *in = m->inputs;
  if (!match_gate(rw, m->r, 1, of_x, of_h, h_parts, m, &m->part[R]) ||
      !match_gate(rw, m->u, 2, of_x, of_h, h_parts, m, &m->part[U]))
    return false;
  return match_biased(rw, of_x, tn_rewrite_n_uses(rw, of_x), &in[X_IN], &in[W_IN], &in[B_IN]);
}

static bool match_before(const tn_rewriter *rw, cell *m)
{
  uint32_t sum = sum_of(rw, m->now), scaled, h, *in = m->inputs;
  columns x;
  for (uint32_t side = 0; sum != TN_NO_NODE && side < 2; side++) {
    if (!match_matmul(rw, tn_rewrite_input(rw, sum, side), 1, &scaled, &in[V_IN]) || !match_scaled(rw, scaled, m))
      continue;
    if (!part_of(rw, tn_rewrite_input(rw, sum, 1 - side), 3, m->cells, &x)) continue;
    uint32_t of_h = whole_of_state(rw, x.whole, 2, m);
    if (of_h == TN_NO_NODE || !match_gates(rw, x.whole, of_h, 2, m)) continue;
    if (!match_matmul(rw, of_h, tn_rewrite_n_uses(rw, of_h), &h, &in[U_IN]) || h != in[H_IN]) continue;
    in[D_IN] = in[B_IN];
    m->part[C] = x.part;
    m->form = "before";
    return true;
  }
  return false;
}

static bool match_after(const tn_rewriter *rw, cell *m)
{
  uint32_t sum = sum_of(rw, m->now), h, *in = m->inputs;
  columns x, of_h;
  for (uint32_t k = 0; sum != TN_NO_NODE && k < 4; k++) {
    uint32_t mul = made_by(rw, tn_rewrite_input(rw, sum, k & 1), "Mul", 1);
    if (mul == TN_NO_NODE || !part_of(rw, tn_rewrite_input(rw, sum, 1 - (k & 1)), 3, m->cells, &x)) continue;
    m->r = tn_rewrite_input(rw, mul, k >> 1);
    if (!part_of(rw, tn_rewrite_input(rw, mul, 1 - (k >> 1)), 3, m->cells, &of_h) || of_h.part != x.part) continue;
    if (!match_gates(rw, x.whole, of_h.whole, 3, m)) continue;
    if (!match_biased(rw, of_h.whole, tn_rewrite_n_uses(rw, of_h.whole), &h, &in[U_IN], &in[D_IN]) || h != in[H_IN])
      continue;
    in[V_IN] = in[B_IN];
    m->part[C] = x.part;
    m->form = "after";
    return true;
  }
  return false;
}

/* ---- the new node ---- */

static bool shape_is(const tn_rewriter *rw, uint32_t value, int32_t rank, int64_t rows, int64_t last)
{
  int64_t dims[TN_MAX_RANK];
  if (tn_rewrite_shape(rw, value, dims) != rank || tn_rewrite_dtype(rw, value) != TN_FLOAT) return false;
  return dims[rank - 1] == last && (rank == 1 || rows < 0 || dims[0] == rows);
}

/* True if all widths are known and match. Plain ops would broadcast other widths. */
static bool widths_fit(const tn_rewriter *rw, const cell *m)
{
  const uint32_t *in = m->inputs;
  const int64_t n = m->cells;
  int64_t x[TN_MAX_RANK];
  if (tn_rewrite_shape(rw, in[X_IN], x) != 2 || x[1] < 0 || x[1] > INT64_MAX / 4) return false;
  unsigned seen = 1u << m->part[R] | 1u << m->part[U] | 1u << m->part[C];
  if (seen != 7 || !shape_is(rw, in[X_IN], 2, -1, x[1]) || !shape_is(rw, in[H_IN], 2, -1, n)) return false;
  if (strcmp(m->form, "together") == 0)
    return shape_is(rw, in[W_IN], 2, x[1] + n, 2 * n) && shape_is(rw, in[V_IN], 2, x[1] + n, n) &&
           shape_is(rw, in[B_IN], 1, 0, 2 * n) && shape_is(rw, in[D_IN], 1, 0, n);
  if (!shape_is(rw, in[W_IN], 2, x[1], 3 * n) || !shape_is(rw, in[B_IN], 1, 0, 3 * n)) return false;
  if (strcmp(m->form, "after") == 0) return shape_is(rw, in[U_IN], 2, n, 3 * n) && shape_is(rw, in[D_IN], 1, 0, 3 * n);
  return m->part[C] == 2 && shape_is(rw, in[U_IN], 2, n, 2 * n) && shape_is(rw, in[V_IN], 2, n, n);
}

static bool match(const tn_rewriter *rw, uint32_t node, cell *m)
{
  static bool (*const forms[])(const tn_rewriter *rw, cell *m) = { match_together, match_before, match_after };
  for (uint32_t side = 0; side < 2; side++) {
    *m = (cell){ .form = NULL };
    if (!match_end(rw, node, side, m)) continue;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
      if (forms[i](rw, m) && widths_fit(rw, m)) return true;
  }
  return false;
}

static tn_status fuse_cell(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  static const int64_t step = 0;
  cell m;
  if (tn_rewrite_dtype(rw, tn_rewrite_output(rw, node, 0)) != TN_FLOAT || !match(rw, node, &m)) return TN_OK;
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnGRULayer", node);
  if (b == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "out of memory: plan");
  tn_operation_set_string(b, "form", m.form, strlen(m.form));
  tn_operation_set_ints(b, "parts", m.part, 3);
  tn_operation_set_int(b, "n_h", 1);
  tn_operation_set_ints(b, "h_steps", &step, 1);
  uint32_t made;
  tn_status st = tn_rewrite_finish(rw, b, m.inputs, INPUTS, X_IN, &made, err);
  if (st == TN_OK) tn_rewrite_replace(rw, tn_rewrite_output(rw, node, 0), tn_rewrite_output(rw, made, 0));
  return st;
}

#define GRU_REWRITE(type) \
  { .struct_size = TN_REWRITE_DEF_SIZE, .pass = "cell", .name = "gru_cell", .op = type, .apply = fuse_cell }

static const tn_rewrite_def rewrites[] = { GRU_REWRITE("AddV2"), GRU_REWRITE("Add") };

TN_REWRITE_FAMILY(fuse_gru)
