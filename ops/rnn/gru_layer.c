/* SPDX-License-Identifier: Apache-2.0 */
/* _TnGRULayer: one or more steps of a GRU in the variants that layers built from plain ops use. Graphs never
 * contain it; the planner creates it: the "cell" pass for one step (ops/rewrite/fuse_gru.c), the "layer" pass for
 * consecutive steps (ops/rewrite/fuse_gru_layer.c).
 *
 *   r, u = sigmoid(sums of x and h' + biases)      h = u h' + (1 - u) c, with one of
 *
 *   together  r, u = [x, h'] w + b        c = tanh([x, r h'] v + d)
 *   before    r, u = x w + h' u + b       c = tanh(x w + (r h') v + b)
 *   after     r, u = x w + h' u + b + d   c = tanh(x w + b + r (h' u + d))
 *
 * `parts` gives the parts of the columns that belong to r, u and c. An input that a form does not use is a copy of
 * b and is not read. Except in the form `together`, x and h' may have a single row for the whole batch. Weights are
 * read as in ops/rnn/lstm_layer.c: those of x once for many steps. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/rnn/gates.h>
#include <ops/rnn/recurrent.h>
#include <string.h>

enum { H, W, U, V, B, D, X }; /* inputs; X: the first of one per step */
enum { TOGETHER, BEFORE, AFTER };
enum { R_PART, U_PART, C_PART };

/* of_step: the output that receives a step's h, or -1. */
typedef struct layer_state {
  int64_t steps, part[3];
  int form;
  int32_t of_step[];
} layer_state;

static size_t state_bytes(int64_t steps) { return sizeof(layer_state) + (size_t)steps * sizeof(int32_t); }

static tn_status read_parts(const tn_operation *op, layer_state *s, tn_error *err)
{
  static const char *const forms[] = { "together", "before", "after" };
  const int64_t *parts;
  size_t n;
  tn_status st = tn__attr_choice(op, "form", forms, 3, &s->form, err);
  if (st == TN_OK) st = tn_operation_attr_ints(op, "parts", &parts, &n, err);
  if (st != TN_OK) return st;
  bool good = n == 3 && parts[0] >= 0 && parts[0] < 3 && parts[1] >= 0 && parts[1] < 3 && parts[0] != parts[1];
  if (good && s->form == AFTER) good = parts[0] + parts[1] + parts[2] == 3 && parts[2] >= 0 && parts[2] < 3;
  if (good && s->form != AFTER) good = parts[0] + parts[1] == 1 && parts[2] == 2; /* c has a separate matrix */
  if (!good) return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnGRULayer: parts is not a permutation of 0, 1 and 2");
  memcpy(s->part, parts, sizeof s->part);
  return TN_OK;
}

static void layer_destroy(void *state) { tn__free(state, state_bytes(((layer_state *)state)->steps)); }

static tn_status layer_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  int64_t steps = (int64_t)tn_operation_n_inputs(op) - X;
  layer_state *s = tn__zalloc(state_bytes(steps));
  if (s == NULL) return tn__no_memory(err, "_TnGRULayer", state_bytes(steps));
  s->steps = steps;
  size_t n = 0;
  tn_status st = read_parts(op, s, err);
  if (st == TN_OK) st = tn__layer_steps(op, "h_steps", 0, steps, s->of_step, &n, err);
  if (st == TN_OK && n != tn_operation_n_outputs(op))
    st =
        tn_error_set(err, TN_INVALID_ARGUMENT, "_TnGRULayer: %zu outputs for %zu steps", tn_operation_n_outputs(op), n);
  if (st == TN_OK) *state = s;
  else layer_destroy(s);
  return st;
}

/* ---- shapes ---- */

static tn_status layer_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape h, x, rows;
  tn_status st = tn__infer_rank(ctx, H, 2, &h, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, X, 2, &x, err);
  if (st != TN_OK) return st;
  if (!tn__broadcast_shapes(x.dims, 1, h.dims, 1, &rows))
    return tn__broadcast_error(err, "_TnGRULayer", x.dims, 1, h.dims, 1);
  h.dims[0] = rows.dims[0];
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  for (size_t i = 0; i < n && st == TN_OK; i++) st = tn__infer_set(ctx, i, &h, err);
  return st;
}

enum { GATES_X, C_X, GATES_H, C_H, FACTORS }; /* factors of x and h', for the gates r and u and for c */

typedef struct layer_plan {
  tn__recurrent gates, c;       /* products: of r and u, of c */
  int64_t batch, in, chunk;
  int64_t x_row, h_row;         /* row strides; 0: x, or the old state, is one row for the whole batch */
  const float *packed[FACTORS]; /* NULL: the weights are not constant */
  size_t at_packed[FACTORS];    /* offsets in scratch of weights that are not constant */
  size_t at_gates, at_c, at_inner, at_r, at_u, at_h;
  double gates_ns, c_ns;        /* per step */
} layer_plan;

static void free_plan(void *plan) { tn__free(plan, sizeof(layer_plan)); }

static tn_status want_weights(const tn_prepare_ctx *ctx, int form, int64_t in, int64_t cells, tn_error *err)
{
  int64_t rows, three;
  if (__builtin_add_overflow(in, cells, &rows) || __builtin_mul_overflow(cells, 3, &three))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnGRULayer: sizes overflow 64 bits");
  const int64_t two = 2 * cells, gates = form == TOGETHER ? two : three, d = form == TOGETHER ? cells : three;
  const int64_t w[2] = { form == TOGETHER ? rows : in, gates }, u[2] = { cells, form == AFTER ? three : two };
  const int64_t v[2] = { form == TOGETHER ? rows : cells, cells };
  tn_status st = tn__want_shape(ctx, W, w, 2, err);
  if (st == TN_OK && form != TOGETHER) st = tn__want_shape(ctx, U, u, 2, err);
  if (st == TN_OK && form != AFTER) st = tn__want_shape(ctx, V, v, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, B, &gates, 1, err);
  return st == TN_OK && form != BEFORE ? tn__want_shape(ctx, D, &d, 1, err) : st;
}

static tn_status measure(const tn_prepare_ctx *ctx, layer_plan *p, int64_t *cells, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  const int form = ((const layer_state *)ctx->state)->form;
  tn__shape rows;
  tn_status st = tn__want_rank(ctx, H, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, X, 2, err);
  if (st != TN_OK) return st;
  p->in = in[X].dims[1];
  *cells = in[H].dims[1];
  const int64_t x[2] = { form == TOGETHER ? in[H].dims[0] : in[X].dims[0], p->in };
  for (uint32_t i = X; i < ctx->n_inputs && st == TN_OK; i++) st = tn__want_shape(ctx, i, x, 2, err);
  if (st == TN_OK && !tn__broadcast_shapes(x, 1, in[H].dims, 1, &rows))
    st = tn__broadcast_error(err, "_TnGRULayer", x, 1, in[H].dims, 1);
  if (st != TN_OK) return st;
  p->batch = rows.dims[0];
  p->x_row = x[0] == 1 ? 0 : p->in;
  p->h_row = in[H].dims[0] == 1 ? 0 : *cells;
  return want_weights(ctx, form, p->in, *cells, err);
}

/* ---- weights ---- */

typedef struct source {
  const tn__recurrent *product;
  uint32_t input;
  int64_t first, terms, row; /* first row and number of rows of the input; row stride in elements */
  int64_t order[2];
  bool lines;
} source;

static source source_of(const layer_plan *p, const layer_state *s, int which)
{
  const bool of_x = which == GATES_X || which == C_X, of_c = which == C_X || which == C_H,
             together = s->form == TOGETHER;
  const int64_t cells = p->c.cells;
  source k = { .product = of_c ? &p->c : &p->gates, .terms = of_x ? p->in : cells, .lines = !of_x && p->batch == 1,
                .order = { s->part[R_PART], s->part[U_PART] } };
  if (of_c) k.order[0] = (of_x && !together) || s->form == AFTER ? s->part[C_PART] : 0;
  if (together) k.input = of_c ? V : W;
  else if (of_x) k.input = W;
  else k.input = of_c && s->form == BEFORE ? V : U;
  k.first = together && !of_x ? p->in : 0;
  if (s->form == AFTER || (of_x && !together)) k.row = 3 * cells;
  else k.row = of_c ? cells : 2 * cells;
  return k;
}

/* The packed weights are followed by a flag: 1 if all of them are finite. Products with zeros can then be skipped. */
static size_t packed_bytes(const source *k)
{
  size_t bytes = tn__recurrent_packed_bytes(k->product, k->terms) + sizeof(float);
  return (bytes + TN_ALIGN - 1) / TN_ALIGN * TN_ALIGN;
}

typedef struct packing {
  const layer_plan *plan;
  const layer_state *state;
  uint32_t input;
} packing;

/* Packs all factors that come from one input. */
static tn_status pack_weights(void *user, const tn_view *from, void *to_, tn_error *err)
{
  const packing *p = user;
  char *to = to_;
  (void)err;
  for (int which = 0; which < FACTORS; which++) {
    const source k = source_of(p->plan, p->state, which);
    if (k.input != p->input) continue;
    const float *w = (const float *)from->data + k.first * k.row;
    float zero = 0;
    tn__recurrent_pack(k.product, w, k.row, k.terms, k.order, k.lines, (float *)to);
    for (int64_t i = 0; i < k.terms * k.row; i++) zero += w[i] * 0; /* NaN if any weight is not finite */
    ((float *)to)[k.terms * k.product->columns] = zero == 0;
    to += packed_bytes(&k);
  }
  return TN_OK;
}

/* Packs the weights of an input once if it is constant; otherwise reserves scratch memory to pack them in each run. */
static tn_status plan_weights(tn_prepare_ctx *ctx, layer_plan *p, uint32_t input, tn_error *err)
{
  const layer_state *s = ctx->state;
  packing user = { p, s, input };
  size_t bytes = 0, at[FACTORS] = { 0 };
  bool mine[FACTORS];
  for (int which = 0; which < FACTORS; which++) {
    const source k = source_of(p, s, which);
    mine[which] = k.input == input;
    at[which] = bytes;
    if (mine[which]) bytes += packed_bytes(&k);
  }
  if (bytes == 0) return TN_OK;
  uint64_t key = 0x6772750000000000u | (uint64_t)p->gates.width << 24 | (uint64_t)p->c.width << 16 |
                 (uint64_t)input << 12 | (uint64_t)(p->batch == 1) << 11 | (uint64_t)s->form << 8 |
                 (uint64_t)s->part[0] << 4 | (uint64_t)s->part[1] << 2 | (uint64_t)s->part[2];
  const void *packed = NULL;
  tn_status st = tn_prepare_pack(ctx, input, key, bytes, pack_weights, &user, &packed, err);
  if (st != TN_OK && st != TN_FAILED_PRECONDITION) return st;
  if (st != TN_OK) tn_error_clear(err);
  size_t scratch = st == TN_OK ? 0 : tn__take(&ctx->scratch_bytes, bytes);
  for (int which = 0; which < FACTORS; which++) {
    if (mine[which] && st == TN_OK) p->packed[which] = (const float *)((const char *)packed + at[which]);
    else if (mine[which]) p->at_packed[which] = scratch + at[which];
  }
  return TN_OK;
}

/* ---- preparing ---- */

static tn_status take_rows(tn_prepare_ctx *ctx, int64_t steps, int64_t batch, int64_t columns, size_t *at,
                           tn_error *err)
{
  const int64_t dims[3] = { steps, batch, columns };
  int64_t n;
  tn_status st = tn_shape_elements(dims, 3, &n, err);
  if (st == TN_OK) *at = tn__take(&ctx->scratch_bytes, (size_t)n * sizeof(float));
  return st;
}

static tn_status plan_scratch(tn_prepare_ctx *ctx, layer_plan *p, tn_error *err)
{
  const int form = ((const layer_state *)ctx->state)->form;
  tn_status st = take_rows(ctx, p->chunk, p->batch, p->gates.columns, &p->at_gates, err);
  if (st == TN_OK) st = take_rows(ctx, p->chunk, p->batch, p->c.columns, &p->at_c, err);
  if (st == TN_OK && form == AFTER) st = take_rows(ctx, 1, p->batch, p->c.columns, &p->at_inner, err);
  if (st == TN_OK) st = take_rows(ctx, 1, p->batch, p->c.cells, &p->at_r, err);
  if (st == TN_OK) st = take_rows(ctx, 1, p->batch, p->c.cells, &p->at_u, err);
  return st == TN_OK ? take_rows(ctx, 2, p->batch, p->c.cells, &p->at_h, err) : st;
}

static tn_status layer_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  layer_plan z = { 0 };
  int64_t cells = 0, steps = (int64_t)ctx->n_inputs - X;
  tn_status st = measure(ctx, &z, &cells, err);
  const int64_t dims[2] = { z.batch, cells };
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++) st = tn_prepare_output(ctx, i, dims, 2, err);
  if (st != TN_OK) return st;
  layer_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "_TnGRULayer", sizeof *p);
  ctx->shape_state = p;
  *p = z;
  tn__recurrent_plan(&p->gates, cells, 2);
  tn__recurrent_plan(&p->c, cells, 1);
  if (z.batch == 0 || cells == 0) return TN_OK;
  p->chunk = tn__recurrent_chunk(&p->gates, steps, p->batch);
  st = plan_scratch(ctx, p, err);
  if (st != TN_OK) return st;
  const double all = (double)p->batch * (double)cells;
  p->gates_ns = all * (2 + 0.08 * (double)cells);
  p->c_ns = all * (2 + 0.04 * (double)cells);
  ctx->cost_ns = (double)steps * (p->gates_ns + p->c_ns + 0.12 * all * (double)p->in);
  for (uint32_t input = W; input <= V && st == TN_OK; input++) st = plan_weights(ctx, p, input, err);
  return st;
}

/* ---- computing ---- */

typedef struct layer_run {
  tn_kernel_ctx *ctx;
  const layer_state *state;
  const layer_plan *plan;
  const float *bias[3], *more[3], *h; /* of r, u and c; more: NULL if none */
  const float *w_gates, *w_c;
  int64_t h_row;
  float *gates, *c, *inner, *r, *u, *to_h;
  bool zero; /* h' is zero and the weights of r and u are finite, so their products are skipped */
  bool back;
} layer_run;

static void gates_part(void *user, int64_t begin, int64_t end)
{
  const layer_run *s = user;
  const layer_plan *p = s->plan;
  const tn__recurrent *g = &p->gates;
  const tn__recurrent_factors f = { .a = s->h, .packed = s->w_gates, .a_row = s->h_row, .packed_terms = g->cells,
                                    .terms = s->zero ? 0 : g->cells, .lines = p->batch == 1 };
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row, rows, block = tn__recurrent_unit(g, p->batch, unit, s->back, &row, &rows);
    const int64_t n = tn__recurrent_cells(g, block), at = block * g->width;
    float *sums = s->gates + row * g->columns;
    tn__recurrent_multiply(g, &f, block, row, rows, sums);
    tn__gru_gates b = { .rows = rows, .cells = n, .sums = sums + tn__recurrent_at(g, block), .sums_row = g->columns,
                        .part = { 0, n }, .h = s->h + row * s->h_row + at, .h_row = s->h_row, .to_row = g->cells,
                        .to_r = s->r + row * g->cells + at, .to_u = s->u + row * g->cells + at,
                        .scale = s->state->form != AFTER };
    for (int k = 0; k < 2; k++) {
      b.bias[k] = s->bias[k] + at;
      if (s->more[k] != NULL) b.more[k] = s->more[k] + at;
    }
    tn__gru_gates_run(&b);
  }
}

static void c_part(void *user, int64_t begin, int64_t end)
{
  const layer_run *s = user;
  const layer_plan *p = s->plan;
  const tn__recurrent *c = &p->c;
  const bool after = s->state->form == AFTER;
  const tn__recurrent_factors f = { .a = after ? s->h : s->r, .packed = s->w_c, .a_row = after ? s->h_row : c->cells,
                                    .packed_terms = c->cells, .terms = c->cells, .first = after,
                                    .lines = p->batch == 1 };
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row, rows, block = tn__recurrent_unit(c, p->batch, unit, s->back, &row, &rows);
    const int64_t at = block * c->width, gate = row * c->cells + at, sums = row * c->columns;
    tn__recurrent_multiply(c, &f, block, row, rows, (after ? s->inner : s->c) + sums);
    const tn__gru_output b = { .rows = rows, .cells = tn__recurrent_cells(c, block),
                               .sums = s->c + sums + tn__recurrent_at(c, block), .sums_row = c->columns,
                               .bias = s->bias[C_PART] + at, .more = after ? s->more[C_PART] + at : NULL,
                               .inner = after ? s->inner + sums + tn__recurrent_at(c, block) : NULL, .r = s->r + gate,
                               .u = s->u + gate, .gate_row = c->cells, .h = s->h + row * s->h_row + at,
                               .h_row = s->h_row, .to_h = s->to_h + gate, .to_row = c->cells };
    tn__gru_output_run(&b);
  }
}

static void *at_scratch(const layer_run *s, size_t at) { return (char *)s->ctx->scratch + at; }

static const float *weights(const layer_run *s, int which, bool *finite)
{
  const float *packed = s->plan->packed[which];
  const source k = source_of(s->plan, s->state, which);
  if (packed == NULL) packed = at_scratch(s, s->plan->at_packed[which]);
  *finite = packed[k.terms * k.product->columns] != 0;
  return packed;
}

/* Packs the weights that are not constant. */
static void make_weights(const layer_run *s)
{
  const layer_plan *p = s->plan;
  uint32_t done = H;
  for (int which = 0; which < FACTORS; which++) {
    packing user = { p, s->state, source_of(p, s->state, which).input };
    if (p->packed[which] != NULL || user.input <= done) continue; /* only for the first factor of an input */
    (void)pack_weights(&user, s->ctx->inputs[user.input], at_scratch(s, p->at_packed[which]), NULL);
    done = user.input;
  }
}

static bool all_zero(const tn_view *v)
{
  const float *x = v->data;
  int64_t i = 0;
  while (i < v->count && x[i] == 0) i++;
  return i == v->count;
}

static void run_step(layer_run *s, int64_t t)
{
  const layer_plan *p = s->plan;
  const int64_t units = tn__recurrent_units(&p->gates, p->batch), c_units = tn__recurrent_units(&p->c, p->batch);
  int32_t output = s->state->of_step[t];
  if (output >= 0) s->to_h = s->ctx->outputs[output]->data;
  else s->to_h = (float *)at_scratch(s, p->at_h) + t % 2 * p->batch * p->c.cells;
  s->back = t % 2 != 0;
  tn__run_parts(s->ctx, units, p->gates_ns / (double)units, gates_part, s);
  tn__run_parts(s->ctx, c_units, p->c_ns / (double)c_units, c_part, s);
  s->gates += p->batch * p->gates.columns;
  s->c += p->batch * p->c.columns;
  s->h = s->to_h;
  s->h_row = p->c.cells;
  s->zero = false;
}

static void begin_run(layer_run *s)
{
  const layer_plan *p = s->plan;
  tn_view *const *in = s->ctx->inputs;
  const int64_t cells = p->c.cells, *part = s->state->part;
  const float *b = in[B]->data, *d = in[D]->data;
  for (int k = 0; k < 3; k++) {
    s->bias[k] = s->state->form == TOGETHER && k == C_PART ? d : b + part[k] * cells;
    s->more[k] = s->state->form == AFTER ? d + part[k] * cells : NULL;
  }
  bool finite;
  s->w_c = weights(s, C_H, &finite);
  s->w_gates = weights(s, GATES_H, &finite);
  s->zero = finite && all_zero(in[H]);
  s->h = in[H]->data;
  s->h_row = p->h_row;
  s->r = at_scratch(s, p->at_r);
  s->u = at_scratch(s, p->at_u);
  s->inner = at_scratch(s, p->at_inner);
}

static tn_status layer_compute(tn_kernel_ctx *ctx)
{
  const layer_plan *p = ctx->shape_state;
  if (p->batch == 0 || p->c.cells == 0) return TN_OK;
  layer_run s = { .ctx = ctx, .state = ctx->state, .plan = p };
  bool finite;
  make_weights(&s);
  const float *gates_x = weights(&s, GATES_X, &finite), *c_x = weights(&s, C_X, &finite);
  begin_run(&s);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t t = 0, steps = s.state->steps; t < steps;) {
    const int64_t end = steps - t < p->chunk ? steps : t + p->chunk;
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    s.gates = at_scratch(&s, p->at_gates);
    s.c = at_scratch(&s, p->at_c);
    tn__recurrent_inputs(&p->gates, ctx, ctx->inputs + X + t, end - t, p->batch, gates_x, s.gates);
    tn__recurrent_inputs(&p->c, ctx, ctx->inputs + X + t, end - t, p->batch, c_x, s.c);
    for (; t < end && !tn__poll_over(&poll, (int64_t)(p->gates_ns + p->c_ns)); t++) run_step(&s, t);
    if (t < end) return TN_CANCELLED;
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "_TnGRULayer",
    .inputs = "h_prev: T, w: T, u: T, v: T, b: T, d: T, x: steps * T",
    .outputs = "h: n_h * T",
    .attrs =
        "T: {float} = float; steps: int >= 1; n_h: int >= 0; h_steps: list(int) = []; parts: list(int) = [1, 0, 2]; "
        "form: {'together', 'before', 'after'} = 'after'",
    .infer = layer_infer,
    .summary = "several steps of a GRU built from plain ops" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnGRULayer", .device = "CPU", .name = "gru_layer_cpu", .rank = TN_RANK_C,
    .create = layer_create, .destroy = layer_destroy, .prepare = layer_prepare, .destroy_shape_state = free_plan,
    .compute = layer_compute },
};

TN_OP_FAMILY(gru_layer)
