/* SPDX-License-Identifier: Apache-2.0 */
/* The "layer" pass: consecutive _TnGRULayer nodes of one step, each with the state of the previous one and all with
 * the same weights, become one node for all steps. Conditions and placement are those of LSTMs
 * (ops/rewrite/fuse_lstm_layer.c). */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <ops/rewrite/steps.h>
#include <string.h>

enum { H, W, X = 6 };

typedef struct chain {
  uint32_t *cells;  /* nodes, first step first */
  uint32_t *inputs; /* inputs of the new node */
  int64_t *h_steps; /* steps whose state is read by other nodes */
  size_t n, n_h;
} chain;

static bool is_step(const tn_rewriter *rw, uint32_t node)
{
  return tn_rewrite_is(rw, node, "_TnGRULayer") && tn_rewrite_n_inputs(rw, node) == X + 1;
}

static bool same_attrs(const tn_operation *a, const tn_operation *b)
{
  const int64_t *part[2];
  const char *form[2];
  size_t n[2], size[2];
  if (tn_operation_attr_ints(a, "parts", &part[0], &n[0], NULL) != TN_OK ||
      tn_operation_attr_ints(b, "parts", &part[1], &n[1], NULL) != TN_OK ||
      tn_operation_attr_string(a, "form", &form[0], &size[0], NULL) != TN_OK ||
      tn_operation_attr_string(b, "form", &form[1], &size[1], NULL) != TN_OK)
    return false;
  return n[0] == n[1] && memcmp(part[0], part[1], n[0] * sizeof *part[0]) == 0 && size[0] == size[1] &&
         memcmp(form[0], form[1], size[0]) == 0;
}

/* The step whose state this one continues from; TN_NO_NODE if there is none. */
static uint32_t step_before(const tn_rewriter *rw, uint32_t node)
{
  uint32_t from = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, H), NULL);
  if (!is_step(rw, from)) return TN_NO_NODE;
  for (uint32_t i = W; i < X; i++)
    if (tn_rewrite_input(rw, from, i) != tn_rewrite_input(rw, node, i)) return TN_NO_NODE;
  return same_attrs(tn_rewrite_operation(rw, from), tn_rewrite_operation(rw, node)) ? from : TN_NO_NODE;
}

static size_t count_steps(const tn_rewriter *rw, uint32_t last)
{
  size_t n = 1;
  while ((last = step_before(rw, last)) != TN_NO_NODE) n++;
  return n;
}

static void read_chain(const tn_rewriter *rw, uint32_t last, chain *m)
{
  uint32_t node = last;
  for (size_t i = m->n; i-- > 0; node = tn_rewrite_producer(rw, tn_rewrite_input(rw, node, H), NULL))
    m->cells[i] = node;
  for (uint32_t i = H; i < X; i++) m->inputs[i] = tn_rewrite_input(rw, m->cells[0], i);
  for (size_t i = 0; i < m->n; i++) {
    m->inputs[X + i] = tn_rewrite_input(rw, m->cells[i], X);
    uint32_t by_next = i + 1 < m->n ? 1 : 0;
    if (tn_rewrite_n_uses(rw, tn_rewrite_output(rw, m->cells[i], 0)) > by_next) m->h_steps[m->n_h++] = (int64_t)i;
  }
}

/* True if the rows of all steps match. In the form `together` the plain ops fail unless x and h' have equal rows;
 * in the other forms they broadcast rows, so the rows must be known to be equal. Columns have been checked already.
 * */
static bool rows_fit(const tn_rewriter *rw, const chain *m)
{
  const char *form;
  size_t size;
  if (tn_operation_attr_string(tn_rewrite_operation(rw, m->cells[0]), "form", &form, &size, NULL) != TN_OK)
    return false;
  return (size == 8 && memcmp(form, "together", 8) == 0) || tn__steps_same_rows(rw, m->inputs + X, m->n);
}

static tn_status make_layer(tn_rewriter *rw, uint32_t like, const chain *m, tn_error *err)
{
  tn_operation_builder *b = tn_rewrite_begin(rw, "_TnGRULayer", like);
  if (b == NULL) return tn__no_memory(err, "plan", 0);
  tn_rewrite_copy_attrs(rw, b, like, "form parts");
  tn_operation_set_int(b, "n_h", (int64_t)m->n_h);
  tn_operation_set_ints(b, "h_steps", m->h_steps, m->n_h);
  uint32_t made;
  tn_status st = tn_rewrite_finish(rw, b, m->inputs, (uint32_t)(X + m->n), X, &made, err);
  for (size_t k = 0; k < m->n_h && st == TN_OK; k++)
    tn_rewrite_replace(rw, tn_rewrite_output(rw, m->cells[m->h_steps[k]], 0), tn_rewrite_output(rw, made, (uint32_t)k));
  return st;
}

tn_status tn__fuse_gru_layer(tn_rewriter *rw, uint32_t node, int depth, tn_error *err)
{
  if (!is_step(rw, node)) return TN_OK;
  chain m = { .n = count_steps(rw, node) };
  tn_status st = m.n < 2 ? TN_OK : tn__steps_fuse_below(rw, tn_rewrite_input(rw, node, X), depth, err);
  if (st == TN_OK && m.n >= 2) m.n = count_steps(rw, node); /* some steps may be part of a layer now */
  if (st != TN_OK || m.n < 2) return st;
  size_t bytes = m.n * sizeof(int64_t) + (2 * m.n + X) * sizeof(uint32_t);
  m.h_steps = tn__alloc(bytes);
  if (m.h_steps == NULL) return tn__no_memory(err, "plan", bytes);
  m.cells = (uint32_t *)(m.h_steps + m.n);
  m.inputs = m.cells + m.n;
  read_chain(rw, node, &m);
  bool one = tn__steps_from_one(rw, m.inputs + X, m.n), inner = m.n_h > 0 && m.h_steps[0] + 1 < (int64_t)m.n;
  if (one || (!inner && rows_fit(rw, &m))) {
    tn_rewrite_place(rw, inner ? m.cells[0] : node);
    st = make_layer(rw, node, &m, err);
  }
  tn__free(m.h_steps, bytes);
  return st;
}

static tn_status fuse_layer(tn_rewriter *rw, uint32_t node, tn_error *err)
{
  return tn__fuse_gru_layer(rw, node, 0, err);
}

static const tn_rewrite_def rewrites[] = {
  { .struct_size = TN_REWRITE_DEF_SIZE,
    .pass = "layer",
    .name = "gru_layer",
    .op = "_TnGRULayer",
    .apply = fuse_layer },
};

TN_REWRITE_FAMILY(fuse_gru_layer)
