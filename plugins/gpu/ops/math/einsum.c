/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: a product of matrices if the layout of the operands allows it; otherwise each element of the result
 * sums its terms. */
#include "ops/kernel/product.h"

#include <string.h>

enum { LABELS = 24, DOTS = 256 /* names of the dimensions of "...", counted from their last one */ };

/* A dimension, wherever it occurs. */
typedef struct label {
  int name;
  int64_t size,
      step[3]; /* elements from one place to the next, in both operands and the result; 0 where it broadcasts */
  bool in[3];
} label;

typedef struct equation {
  int n;
  label labels[LABELS]; /* first those of the result, in its order */
  int results;
} equation;

/* ---- reading ---- */

static label *label_of(equation *e, int name)
{
  for (int i = 0; i < e->n; i++)
    if (e->labels[i].name == name) return &e->labels[i];
  if (e->n == LABELS) return NULL;
  e->labels[e->n] = (label){ .name = name, .size = 1 };
  return &e->labels[e->n++];
}

/* A part of the equation with the dimensions of a value; t: 0, 1 for operands, 2 for the result. */
static tn_status read_part(equation *e, const char *text, size_t size, const gpu_value *v, int t, tn_error *err)
{
  int32_t letters = 0, d = 0;
  int64_t step = v->count;
  for (size_t i = 0; i < size; i++) letters += text[i] != '.' && text[i] != ' ';
  for (size_t i = 0; i < size && d < v->rank; i++) {
    int32_t dots = text[i] == '.' ? v->rank - letters : 0;
    if (text[i] == ' ') continue;
    if (text[i] == '.') i += 2;
    for (int32_t k = dots > 0 || text[i] == '.' ? dots : 1; k > 0; k--, d++) {
      label *l = label_of(e, dots > 0 ? DOTS + k : (unsigned char)text[i]);
      if (l == NULL) return gpu_decline(err, "more than %d dimensions", LABELS);
      if (t == 2 && l->in[2]) return gpu_decline(err, "a result that is a diagonal");
      step = v->dims[d] == 0 ? 0 : step / v->dims[d];
      if (v->dims[d] != 1) l->size = v->dims[d];
      if (v->dims[d] != 1) l->step[t] += step;
      l->in[t] = l->in[t] || v->dims[d] != 1;
    }
  }
  return d == v->rank ? TN_OK : gpu_decline(err, "the equation does not name all dimensions");
}

static tn_status read_equation(const gpu_node *n, equation *e, tn_error *err)
{
  const char *text, *arrow = NULL;
  size_t size, comma = 0;
  tn_status st = tn_operation_attr_string(n->op, "equation", &text, &size, err);
  if (st != TN_OK) return st;
  for (size_t i = 0; i + 1 < size && arrow == NULL; i++)
    if (text[i] == '-' && text[i + 1] == '>') arrow = text + i;
  if (arrow == NULL || n->n_inputs < 1 || n->n_inputs > 2) return gpu_decline(err, "an equation without '->'");
  size_t left = (size_t)(arrow - text);
  while (comma < left && text[comma] != ',') comma++;
  if ((comma < left) != (n->n_inputs == 2)) return gpu_decline(err, "an equation of other operands");
  st = read_part(e, arrow + 2, size - left - 2, &n->outputs[0], 2, err);
  e->results = e->n;
  if (st == TN_OK) st = read_part(e, text, comma, &n->inputs[0], 0, err);
  if (st == TN_OK && comma < left) st = read_part(e, text + comma + 1, left - comma - 1, &n->inputs[1], 1, err);
  return st;
}

/* ---- as a product ---- */

/* Labels that are walked as one: sizes and steps. */
typedef struct group {
  int64_t size, step[3];
} group;

/* Whether l is of this kind: in the left operand, in the right one, in the result. */
static bool is_of(const label *l, int left, bool in_left, bool in_right, bool in_result)
{
  return l->size != 1 && l->in[left] == in_left && l->in[1 - left] == in_right && l->in[2] == in_result;
}

/* Joins the labels of a kind into one dimension; false if they are not contiguous. Labels that are summed up are in the
 * order of the operand that names them first. */
static bool join(const equation *e, int left, bool in_left, bool in_right, bool in_result, group *g)
{
  *g = (group){ .size = 1 };
  for (int i = e->n - 1; i >= 0; i--) {
    const label *l = &e->labels[i];
    if (!is_of(l, left, in_left, in_right, in_result)) continue;
    for (int t = 0; t < 3; t++) {
      if (g->size != 1 && l->step[t] != g->step[t] * g->size) return false;
      if (g->size == 1) g->step[t] = l->step[t];
    }
    g->size *= l->size;
  }
  return true;
}

static bool add_batches(const equation *e, int left, gpu_product *p)
{
  gpu_batches *s = &p->batches;
  for (int i = 0; i < e->n; i++) {
    const label *l = &e->labels[i];
    if (!is_of(l, left, true, true, true)) continue;
    if (s->rank == 8) return false;
    s->size[s->rank] = l->size;
    s->a[s->rank] = l->step[left];
    s->b[s->rank++] = l->step[1 - left];
    p->batch *= l->size;
  }
  if (s->rank > 1) return true;
  p->a_batch = s->rank == 1 ? s->a[0] : 0;
  p->b_batch = s->rank == 1 ? s->b[0] : 0;
  s->rank = 0;
  return true;
}

/* The part of a product to which a label belongs: 0 batch, 1 rows, 2 columns, 3 none of these. */
static int kind_of(const label *l, int left)
{
  if (is_of(l, left, true, true, true)) return 0;
  if (is_of(l, left, true, false, true)) return 1;
  return is_of(l, left, false, true, true) ? 2 : 3;
}

/* Whether the result is [batch, rows of the left operand, columns of the right one], and no label is in one operand
 * only. */
static bool is_in_order(const equation *e, int left)
{
  int last = 0;
  for (int i = 0; i < e->n; i++) {
    const label *l = &e->labels[i];
    int kind = kind_of(l, left);
    if (kind == 3 && l->size != 1 && !is_of(l, left, true, true, false)) return false;
    if (l->size == 1) continue;
    if (kind < last) return false;
    last = kind;
  }
  return true;
}

static bool fill_product(const equation *e, int left, gpu_product *p)
{
  group m, n, k;
  *p = (gpu_product){ .mode = GPU_MATRIX, .a = (uint32_t)left, .b = (uint32_t)(1 - left), .batch = 1, .first_arg = 2 };
  if (!is_in_order(e, left) || !join(e, left, true, false, true, &m) || !join(e, left, false, true, true, &n) ||
      !join(e, left, true, true, false, &k) || !add_batches(e, left, p))
    return false;
  if (k.size == 1 || (m.size == 1 && n.size == 1)) return false; /* not worth it */
  p->across_a = m.size > 1 && k.step[left] != 1;
  p->across_b = n.size > 1 && n.step[1 - left] != 1;
  if (p->across_a ? m.step[left] != 1 : k.step[left] != 1) return false;
  if (n.size == 1) p->across_b = k.step[1 - left] == 1;
  if (p->across_b && k.step[1 - left] != 1) return false;
  p->m = m.size;
  p->n = p->out_row = n.size;
  p->k = k.size;
  p->a_row = m.size > 1 ? m.step[left] : k.size;
  if (p->across_a) p->a_row = k.step[left];
  p->b_row = n.size > 1 ? n.step[1 - left] : k.size;
  if (!p->across_b) p->b_row = k.step[1 - left];
  p->out_batch = p->m * p->n;
  return true;
}

/* ---- element by element ---- */

static tn_status plan_sums(gpu_node *n, const equation *e, tn_error *err)
{
  const gpu_value *out = &n->outputs[0];
  const gpu_element *t = gpu_element_of(out->dtype);
  int64_t places = out->count, terms = 1;
  cl_long w[3 * (LABELS + 1)];
  size_t r = e->results > 0 ? (size_t)e->results : 1, k = e->n > e->results ? (size_t)(e->n - e->results) : 1;
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i].count > places) places = n->inputs[i].count;
  for (size_t i = 0; i < r + k; i++) { /* dimensions of the result, then of the terms; 1 if there are none */
    size_t at = i < r ? i : i - r, all = i < r ? r : k;
    const label *l = NULL;
    if (i < r && e->results > 0) l = &e->labels[i];
    if (i >= r && e->n > e->results) l = &e->labels[e->results + (int)at];
    cl_long *to = (i < r ? w : w + 3 * r) + at;
    to[0] = l != NULL ? l->size : 1;
    for (size_t o = 0; o < 2; o++) to[(o + 1) * all] = l != NULL ? l->step[o] : 0;
    if (i >= r) terms *= to[0];
  }
  gpu_launch *l = gpu_launch_file(n, "einsum", "einsum");
  gpu_define_elements(l, "", out->dtype);
  gpu_define(l, "W", "%s", gpu_sum_type(t));
  gpu_define(l, "R", "%d", (int)r);
  gpu_define(l, "K", "%d", (int)k);
  if (n->n_inputs == 2) gpu_define(l, "TWO", "1");
  gpu_define_places(l, places);
  gpu_arg_input(l, 0);
  gpu_arg_input(l, n->n_inputs - 1);
  gpu_arg_output(l, 0);
  gpu_arg_place(l, places, out->count);
  gpu_arg_long(l, terms);
  gpu_arg_bytes(l, w, 3 * (r + k) * sizeof *w);
  gpu_range_1d(l, out->count, 64);
  n->cost_ns = 0.05 * (double)out->count * (double)terms;
  return gpu_node_done(n, err);
}

static tn_status plan_einsum(gpu_node *n, tn_error *err)
{
  equation e = { 0 };
  gpu_product p;
  tn_status st = read_equation(n, &e, err);
  if (st != TN_OK) return st;
  if (n->n_inputs == 2 && n->outputs[0].count > 0 && (fill_product(&e, 0, &p) || fill_product(&e, 1, &p))) {
    st = gpu_product_launch(n, &p, err);
    return st == TN_OK ? gpu_node_done(n, err) : st;
  }
  return plan_sums(n, &e, err);
}

extern const gpu_op gpu_einsum_ops[];
const gpu_op gpu_einsum_ops[] = {
  { "Einsum", "T=bfloat16|half|float|double|int32|int64", plan_einsum },
  { NULL },
};
