/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLSTMLayer: consecutive steps of an LSTM whose inputs are all known before the first step. Graphs never contain
 * it; the planner's "layer" pass creates it from consecutive _TnLSTMCell nodes (ops/rewrite/fuse_lstm_layer.c). It
 * gives the same bits as these, except with weights `apart`: it then accumulates in one sum the terms that a cell
 * adds up in two.
 *
 * The weights w are those of [x, h']. If `apart`, w is for x and u for h', and x, h' and c' may have a single row
 * for the whole batch; otherwise u is not read.
 *
 * The inputs' contribution to the gates is one product for many steps, so that their weights are read once for all
 * of these. The state's contribution is computed step by step and block by block of cells, followed by the
 * activations while the sums are in the L1 cache. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/rnn/gates.h>
#include <ops/rnn/recurrent.h>
#include <string.h>

enum { H, C, W, U, B, X }; /* inputs; X: the first of one per step */

/* of_step: the output that receives a step's h, or -1, for all steps; then the same for c. */
typedef struct layer_state {
  int64_t steps;
  tn__lstm_form form;
  int32_t of_step[];
} layer_state;

static size_t state_bytes(int64_t steps) { return sizeof(layer_state) + 2 * (size_t)steps * sizeof(int32_t); }

static void layer_destroy(void *state) { tn__free(state, state_bytes(((layer_state *)state)->steps)); }

static tn_status layer_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  int64_t steps = (int64_t)tn_operation_n_inputs(op) - X;
  layer_state *s = tn__zalloc(state_bytes(steps));
  if (s == NULL) return tn__no_memory(err, "_TnLSTMLayer", state_bytes(steps));
  s->steps = steps;
  size_t h = 0, c = 0;
  tn_status st = tn__lstm_form_read(op, &s->form, err);
  if (st == TN_OK) st = tn__layer_steps(op, "h_steps", 0, steps, s->of_step, &h, err);
  if (st == TN_OK) st = tn__layer_steps(op, "c_steps", h, steps, s->of_step + steps, &c, err);
  if (st == TN_OK && h + c != tn_operation_n_outputs(op))
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLSTMLayer: %zu outputs for %zu steps", tn_operation_n_outputs(op),
                      h + c);
  if (st == TN_OK) *state = s;
  else layer_destroy(s);
  return st;
}

/* ---- shapes ---- */

static tn_status layer_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape h, x;
  tn_status st = tn__infer_rank(ctx, H, 2, &h, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, X, 2, &x, err);
  if (st != TN_OK) return st;
  if (tn__attr_bool(tn_infer_operation(ctx), "apart", false)) {
    tn__shape c, rows, all;
    st = tn__infer_rank(ctx, C, 2, &c, err);
    if (st != TN_OK) return st;
    if (!tn__broadcast_shapes(x.dims, 1, h.dims, 1, &rows) || !tn__broadcast_shapes(rows.dims, 1, c.dims, 1, &all))
      return tn__broadcast_error(err, "_TnLSTMLayer", x.dims, 1, h.dims, 1);
    h.dims[0] = all.dims[0];
  } else if (h.dims[0] < 0) {
    h.dims[0] = x.dims[0];
  }
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  for (size_t i = 0; i < n && st == TN_OK; i++) st = tn__infer_set(ctx, i, &h, err);
  return st;
}

/* How weights are read. Reading the weights of x once per `chunk` steps pays if a step has few rows or the weights are
 * large. */
typedef enum reading {
  CHUNKED,
  JOINED, /* one product per step, of [x, h'] */
  PAIRED  /* two products per step */
} reading;

typedef struct layer_plan {
  tn__recurrent product;
  int64_t batch, in, chunk;
  reading reading;
  int64_t x_row, h_row, c_row; /* row strides; 0: x, or the old state, is one row for the whole batch */
  const float *packed[2];      /* weights of x (none if joined), and of h' or all; NULL: they are not constant */
  size_t at_packed[2];         /* offsets in scratch of weights that are not constant */
  size_t at_sums, at_h, at_c;
  double step_ns;
} layer_plan;

static void free_plan(void *plan) { tn__free(plan, sizeof(layer_plan)); }

static tn_status measure_rows(const tn_prepare_ctx *ctx, layer_plan *p, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  p->batch = in[H].dims[0];
  if (!((const layer_state *)ctx->state)->form.apart) return TN_OK;
  tn__shape rows, all;
  if (!tn__broadcast_shapes(in[X].dims, 1, in[H].dims, 1, &rows) ||
      !tn__broadcast_shapes(rows.dims, 1, in[C].dims, 1, &all))
    return tn__broadcast_error(err, "_TnLSTMLayer", in[X].dims, 1, in[H].dims, 1);
  p->batch = all.dims[0];
  return TN_OK;
}

static tn_status measure(const tn_prepare_ctx *ctx, layer_plan *p, int64_t *cells, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  const bool apart = ((const layer_state *)ctx->state)->form.apart;
  tn_status st = tn__want_rank(ctx, H, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, C, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, X, 2, err);
  if (st == TN_OK) st = measure_rows(ctx, p, err);
  if (st != TN_OK) return st;
  p->in = in[X].dims[1];
  *cells = in[H].dims[1];
  int64_t rows, gates;
  if (__builtin_add_overflow(p->in, *cells, &rows) || __builtin_mul_overflow(*cells, 4, &gates))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLSTMLayer: sizes overflow 64 bits");
  const int64_t x[2] = { apart ? in[X].dims[0] : p->batch, p->in };
  const int64_t w[2] = { apart ? p->in : rows, gates }, u[2] = { *cells, gates };
  const int64_t c[2] = { in[C].dims[0] == 1 ? 1 : p->batch, *cells };
  for (uint32_t i = X; i < ctx->n_inputs && st == TN_OK; i++) st = tn__want_shape(ctx, i, x, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, C, c, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, W, w, 2, err);
  if (st == TN_OK && apart) st = tn__want_shape(ctx, U, u, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, B, &gates, 1, err);
  p->x_row = x[0] == 1 ? 0 : p->in;
  p->h_row = in[H].dims[0] == 1 ? 0 : *cells;
  p->c_row = c[0] == 1 ? 0 : *cells;
  return st;
}

/* ---- weights ---- */

enum { OF_X, OF_H }; /* if joined, OF_H has all weights */

static int64_t packed_terms(const layer_plan *p, int which)
{
  const bool joined = p->reading == JOINED;
  if (which == OF_X) return joined ? 0 : p->in;
  return p->product.cells + (joined ? p->in : 0);
}

static bool in_lines(const layer_plan *p, int which) { return which == OF_H && p->batch == 1; }

/* The packed weights are followed by a flag: 1 if all of them are finite. Products with zeros can then be skipped. */
static size_t packed_bytes(const layer_plan *p, int which)
{
  size_t bytes = tn__recurrent_packed_bytes(&p->product, packed_terms(p, which)) + sizeof(float);
  return (bytes + TN_ALIGN - 1) / TN_ALIGN * TN_ALIGN;
}

typedef struct packing {
  const layer_plan *plan;
  const layer_state *state;
  uint32_t input; /* W holds both weights, unless they are apart */
} packing;

static bool is_of(const packing *k, int which) { return k->input == (k->state->form.apart && which == OF_H ? U : W); }

static tn_status pack_weights(void *user, const tn_view *from, void *to_, tn_error *err)
{
  const packing *k = user;
  const tn__recurrent *r = &k->plan->product;
  const int64_t row = 4 * r->cells;
  const float *w = from->data;
  char *to = to_;
  (void)err;
  for (int which = OF_X; which <= OF_H; which++) {
    if (!is_of(k, which)) continue;
    const int64_t terms = packed_terms(k->plan, which);
    float zero = 0;
    tn__recurrent_pack(r, w, row, terms, k->state->form.gate, in_lines(k->plan, which), (float *)to);
    for (int64_t i = 0; i < terms * row; i++) zero += w[i] * 0; /* NaN if any weight is not finite */
    ((float *)to)[terms * r->columns] = zero == 0;
    w += terms * row;
    to += packed_bytes(k->plan, which);
  }
  return TN_OK;
}

/* Packs the weights of an input once if it is constant; otherwise reserves scratch memory to pack them in each run. */
static tn_status plan_weights(tn_prepare_ctx *ctx, layer_plan *p, uint32_t input, tn_error *err)
{
  const layer_state *s = ctx->state;
  packing k = { p, s, input };
  size_t bytes = 0, at[2] = { 0 };
  for (int which = OF_X; which <= OF_H; which++) {
    if (!is_of(&k, which)) continue;
    at[which] = bytes;
    bytes += packed_bytes(p, which);
  }
  uint64_t key = 0x6c73746d00000000u | (uint64_t)p->product.width << 16 | (uint64_t)in_lines(p, OF_H) << 12 |
                 (uint64_t)p->reading << 10 | (uint64_t)s->form.apart << 9 | (uint64_t)(input == U) << 8;
  for (int g = 0; g < 4; g++) key |= (uint64_t)s->form.gate[g] << (2 * g);
  const void *packed = NULL;
  tn_status st = tn_prepare_pack(ctx, input, key, bytes, pack_weights, &k, &packed, err);
  if (st != TN_OK && st != TN_FAILED_PRECONDITION) return st;
  if (st != TN_OK) tn_error_clear(err);
  size_t scratch = st == TN_OK ? 0 : tn__take(&ctx->scratch_bytes, bytes);
  for (int which = OF_X; which <= OF_H; which++) {
    if (!is_of(&k, which)) continue;
    if (st == TN_OK) p->packed[which] = (const float *)((const char *)packed + at[which]);
    else p->at_packed[which] = scratch + at[which];
  }
  return TN_OK;
}

/* ---- preparing ---- */

#define FEW_ROWS 4             /* below this, steps are bound by memory */
#define MANY_ROWS 24           /* enough rows to justify reading weights of any size */
#define NEAR_WEIGHTS (1 << 20) /* maximum bytes of weights that stay in the L2 cache */

static void choose(layer_plan *p, bool apart, int64_t steps)
{
  const tn__recurrent *r = &p->product;
  size_t weights = tn__recurrent_packed_bytes(r, p->in + r->cells);
  bool each = p->in > 0 && (p->batch >= MANY_ROWS || (p->batch >= FEW_ROWS && weights <= NEAR_WEIGHTS));
  p->reading = apart ? PAIRED : JOINED;
  if (!each) p->reading = CHUNKED;
  p->chunk = each ? 1 : tn__recurrent_chunk(r, steps, p->batch);
  p->step_ns = (double)p->batch * (double)r->cells * (4 + 0.16 * (double)(r->cells + (each ? p->in : 0)));
}

static tn_status plan_scratch(tn_prepare_ctx *ctx, layer_plan *p, tn_error *err)
{
  const tn__recurrent *r = &p->product;
  int64_t c, h, sums, rows;
  const int64_t c_dims[2] = { p->batch, r->cells }, h_dims[2] = { p->batch, packed_terms(p, OF_H) };
  tn_status st = tn_shape_elements(c_dims, 2, &c, err);
  if (st == TN_OK) st = tn_shape_elements(h_dims, 2, &h, err);
  if (__builtin_mul_overflow(p->chunk, p->batch, &rows)) rows = -1;
  const int64_t sums_dims[2] = { rows, r->columns };
  if (st == TN_OK) st = tn_shape_elements(sums_dims, 2, &sums, err);
  if (st != TN_OK) return st;
  p->at_sums = tn__take(&ctx->scratch_bytes, (size_t)sums * sizeof(float));
  p->at_h = tn__take(&ctx->scratch_bytes, 2 * (size_t)h * sizeof(float));
  p->at_c = tn__take(&ctx->scratch_bytes, (size_t)c * sizeof(float));
  return TN_OK;
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
  if (p == NULL) return tn__no_memory(err, "_TnLSTMLayer", sizeof *p);
  ctx->shape_state = p;
  tn__recurrent_plan(&z.product, cells, 4);
  choose(&z, ((const layer_state *)ctx->state)->form.apart, steps);
  *p = z;
  if (z.batch == 0 || cells == 0) return TN_OK;
  st = plan_scratch(ctx, p, err);
  if (st != TN_OK) return st;
  ctx->cost_ns = (double)steps * (p->step_ns + 0.16 * (double)z.batch * (double)cells * (double)z.in);
  st = plan_weights(ctx, p, W, err);
  return st == TN_OK && ((const layer_state *)ctx->state)->form.apart ? plan_weights(ctx, p, U, err) : st;
}

/* ---- computing ---- */

typedef struct layer_run {
  tn_kernel_ctx *ctx;
  const layer_state *state;
  const layer_plan *plan;
  const float *bias, *c; /* c: the old state */
  tn__recurrent_factors factors, of_x; /* of_x: used if paired */
  float *sums, *to_h, *to_c;
  int64_t c_row, to_h_row;
  bool back, finite;
} layer_run;

static void block_of(const layer_run *s, int64_t unit, tn__lstm_block *b)
{
  const tn__recurrent *r = &s->plan->product;
  int64_t row, rows, block = tn__recurrent_unit(r, s->plan->batch, unit, s->back, &row, &rows);
  const int64_t n = tn__recurrent_cells(r, block), at = block * r->width;
  *b = (tn__lstm_block){ .rows = rows, .cells = n, .sums = s->sums + row * r->columns + tn__recurrent_at(r, block),
                         .sums_row = r->columns, .part = { 0, n, 2 * n, 3 * n }, .c = s->c + row * s->c_row + at,
                         .c_row = s->c_row, .to_c = s->to_c + row * r->cells + at, .to_c_row = r->cells,
                         .to_h = s->to_h + row * s->to_h_row + at, .to_h_row = s->to_h_row,
                         .forget_bias = s->state->form.forget_bias };
  for (int g = 0; g < 4; g++) b->bias[g] = s->bias + s->state->form.gate[g] * r->cells + at;
}

static void multiply_unit(const layer_run *s, int64_t unit)
{
  const tn__recurrent *r = &s->plan->product;
  int64_t row, rows, block = tn__recurrent_unit(r, s->plan->batch, unit, s->back, &row, &rows);
  if (s->plan->reading == PAIRED) tn__recurrent_multiply(r, &s->of_x, block, row, rows, s->sums + row * r->columns);
  tn__recurrent_multiply(r, &s->factors, block, row, rows, s->sums + row * r->columns);
}

static void step_part(void *user, int64_t begin, int64_t end)
{
  const layer_run *s = user;
  const int64_t some = s->plan->batch < FEW_ROWS ? end - begin : 1; /* few rows: overlap latencies of units */
  tn__lstm_block b;
  for (int64_t unit = begin; unit < end; unit += some) {
    for (int64_t k = unit; k < unit + some; k++) multiply_unit(s, k);
    for (int64_t k = unit; k < unit + some; k++) {
      block_of(s, k, &b);
      tn__lstm_block_state(&b);
    }
    for (int64_t k = unit; k < unit + some; k++) {
      block_of(s, k, &b);
      tn__lstm_block_output(&b);
    }
  }
}

static void *at_scratch(const layer_run *s, size_t at) { return (char *)s->ctx->scratch + at; }

static const float *weights(layer_run *s, int which)
{
  const layer_plan *p = s->plan;
  const float *packed = p->packed[which] != NULL ? p->packed[which] : at_scratch(s, p->at_packed[which]);
  s->finite = packed[packed_terms(p, which) * p->product.columns] != 0;
  return packed;
}

/* Packs the weights that are not constant. */
static void make_weights(const layer_run *s)
{
  const layer_plan *p = s->plan;
  for (uint32_t input = W; input <= (s->state->form.apart ? U : W); input++) {
    packing k = { p, s->state, input };
    const int first = is_of(&k, OF_X) ? OF_X : OF_H;
    if (p->packed[first] == NULL)
      (void)pack_weights(&k, s->ctx->inputs[input], at_scratch(s, p->at_packed[first]), NULL);
  }
}

static void copy_rows(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns)
{
  for (int64_t i = 0; i < rows; i++) memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof *to);
}

static bool all_zero(const tn_view *v)
{
  const float *x = v->data;
  int64_t i = 0;
  while (i < v->count && x[i] == 0) i++;
  return i == v->count;
}

/* The output that receives a step's h or c; NULL if none. */
static float *output_of(const layer_run *s, int64_t entry)
{
  int32_t output = s->state->of_step[entry];
  return output >= 0 ? s->ctx->outputs[output]->data : NULL;
}

/* Sets the factors of step t, which include the state of step t - 1. */
static void begin_step(layer_run *s, int64_t t)
{
  const layer_plan *p = s->plan;
  const int64_t cells = p->product.cells, row = packed_terms(p, OF_H);
  tn__recurrent_factors *f = &s->factors;
  const bool zero = t == 0 && s->finite && all_zero(s->ctx->inputs[H]);
  if (p->reading == JOINED) {
    float *joined = (float *)at_scratch(s, p->at_h) + (t % 2) * p->batch * row;
    if (t == 0) copy_rows(joined + p->in, row, f->a, p->h_row, p->batch, cells);
    copy_rows(joined, row, s->ctx->inputs[X + t]->data, p->x_row, p->batch, p->in);
    f->a = joined;
    f->terms = zero ? p->in : row;
    f->a_row = row;
  } else {
    s->of_x.a = s->ctx->inputs[X + t]->data;
    f->terms = zero ? 0 : row;
    f->a_row = t == 0 ? p->h_row : cells;
  }
}

static void run_step(layer_run *s, int64_t t)
{
  const layer_plan *p = s->plan;
  const int64_t cells = p->product.cells, row = packed_terms(p, OF_H),
                units = tn__recurrent_units(&p->product, p->batch);
  float *h = output_of(s, t), *c = output_of(s, s->state->steps + t);
  float *next = (float *)at_scratch(s, p->at_h) + (t + 1) % 2 * p->batch * row;
  begin_step(s, t);
  s->to_h = h != NULL ? h : next;
  s->to_h_row = cells;
  if (p->reading == JOINED) {
    s->to_h = next + p->in;
    s->to_h_row = row;
  }
  s->to_c = c != NULL ? c : at_scratch(s, p->at_c);
  s->back = t % 2 != 0;
  tn__run_parts(s->ctx, units, p->step_ns / (double)units, step_part, s);
  if (p->reading == JOINED && h != NULL) copy_rows(h, cells, s->to_h, row, p->batch, cells);
  if (p->reading == CHUNKED) s->sums += p->batch * p->product.columns;
  s->factors.a = s->to_h;
  s->c = s->to_c;
  s->c_row = cells;
}

static tn_status layer_compute(tn_kernel_ctx *ctx)
{
  const layer_plan *p = ctx->shape_state;
  tn_view *const *in = ctx->inputs;
  if (p->batch == 0 || p->product.cells == 0) return TN_OK;
  layer_run s = {
    .ctx = ctx, .state = ctx->state, .plan = p, .bias = in[B]->data, .c = in[C]->data, .c_row = p->c_row
  };
  make_weights(&s);
  const float *w_x = p->reading == JOINED ? NULL : weights(&s, OF_X);
  s.of_x =
      (tn__recurrent_factors){ .packed = w_x, .a_row = p->x_row, .terms = p->in, .packed_terms = p->in, .first = true };
  s.factors = (tn__recurrent_factors){ .a = in[H]->data,
                                       .packed = weights(&s, OF_H),
                                       .packed_terms = packed_terms(p, OF_H),
                                       .lines = in_lines(p, OF_H),
                                       .first = p->reading == JOINED };
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t t = 0, steps = s.state->steps; t < steps;) {
    const int64_t end = steps - t < p->chunk ? steps : t + p->chunk;
    if (tn_kernel_cancelled(ctx)) return TN_CANCELLED;
    s.sums = at_scratch(&s, p->at_sums);
    if (p->reading == CHUNKED) tn__recurrent_inputs(&p->product, ctx, in + X + t, end - t, p->batch, w_x,
                                                      s.sums);
    for (; t < end && !tn__poll_over(&poll, (int64_t)p->step_ns); t++) run_step(&s, t);
    if (t < end) return TN_CANCELLED;
  }
  return TN_OK;
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .name = "_TnLSTMLayer",
    .inputs = "h_prev: T, c_prev: T, w: T, u: T, b: T, x: steps * T",
    .outputs = "h: n_h * T, c: n_c * T",
    .attrs = "T: {float} = float; steps: int >= 1; n_h: int >= 0; n_c: int >= 0; h_steps: list(int) = []; "
             "c_steps: list(int) = []; gates: list(int) = [0, 1, 2, 3]; forget_bias: float = 0; apart: bool = false",
    .infer = layer_infer,
    .summary = "several steps of an LSTM built from plain ops" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnLSTMLayer", .device = "CPU", .name = "lstm_layer_cpu",
    .rank = TN_RANK_C, .create = layer_create, .destroy = layer_destroy, .prepare = layer_prepare,
    .destroy_shape_state = free_plan, .compute = layer_compute },
};

TN_OP_FAMILY(lstm_layer)
