/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of LSTMBlockCell and BlockLSTM (names as in lstm.c; dv is the gradient of v).
 *
 *   do = o (1 - o) co dh                          dcs = (1 - co^2) o dh + dcs from outside + wco do
 *   dci = (1 - ci^2) i dcs                        df = f (1 - f) cs' dcs
 *   di = i (1 - i) ci dcs                         dcs' = f dcs + wci di + wcf df
 *
 * The gradients of x, w and b follow from those of the gates, and are computed for all steps at once. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/rnn/cell_loops.h>
#include <string.h>

/* ---- shapes ---- */

static tn_status infer_block(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 1, 3, &s, err);
  for (size_t i = 0; i < 8 && st == TN_OK; i++) {
    tn__infer_get(ctx, i + 1, &s);
    st = tn__infer_set(ctx, i, &s, err);
  }
  return st;
}

static tn_status infer_cell(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, cs, s;
  tn_status st = tn__infer_rank(ctx, 0, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &cs, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &cs, err);
  if (st != TN_OK) return st;
  s = cs;
  if (s.dims[1] >= 0 && __builtin_mul_overflow(s.dims[1], 4, &s.dims[1])) s.dims[1] = -1;
  st = tn__infer_set(ctx, 1, &s, err);
  tn__shape_set(&s, &cs.dims[1], 1);
  for (size_t i = 2; i < 5 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &s, err);
  return st;
}

/* ---- preparing ---- */

typedef struct grad_plan {
  tn__lstm_sizes z;
  tn__cell_floats floats;
  tn__gemm_plan to_x, to_h, to_wx, to_wh;
  size_t at_gates, at_before, at_gemm; /* offsets in scratch; at_before: h of the previous steps */
} grad_plan;

static void destroy_plan(void *plan) { tn__free(plan, sizeof(grad_plan)); }

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static void plan_products(tn_prepare_ctx *ctx, grad_plan *p)
{
  const tn__lstm_sizes *z = &p->z;
  const int64_t rows = z->steps * z->batch, gates = 4 * z->cell;
  p->to_x = tn__cell_product(ctx, rows, z->in, gates, gates, true);
  p->to_h = tn__cell_product(ctx, z->batch, z->cell, gates, gates, true);
  p->to_wx = tn__cell_product(ctx, z->in, gates, rows, gates, false);
  p->to_wh = tn__cell_product(ctx, z->cell, gates, rows, gates, false);
  p->to_wx.a_row = p->to_wh.a_row = 1;
  p->to_wx.a_col = z->in;
  p->to_wh.a_col = z->cell;
  p->at_before = tn__take(&ctx->scratch_bytes, (size_t)(rows * z->cell) * sizeof(float));
  p->at_gemm = tn__take(&ctx->scratch_bytes, most(most(p->to_x.scratch, p->to_h.scratch),
                                                  most(p->to_wx.scratch, p->to_wh.scratch)));
  ctx->cost_ns = p->to_x.cost_ns + p->to_wx.cost_ns + p->to_wh.cost_ns + p->to_h.cost_ns * (double)z->steps;
}

static tn_status plan_new(tn_prepare_ctx *ctx, const tn__lstm_sizes *z, int64_t gates, const int64_t *counts,
                          tn_error *err)
{
  const tn__lstm_state *s = ctx->state;
  grad_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "LSTM plan", sizeof *p);
  ctx->shape_state = p;
  p->z = *z;
  tn__cell_floats_plan(ctx, &p->floats, s->block ? 1 : 0, counts);
  p->at_gates = tn__take(&ctx->scratch_bytes, (size_t)gates * sizeof(float));
  if (s->block && gates > 0) plan_products(ctx, p);
  return TN_OK;
}

static tn_status prepare_block(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__lstm_sizes z = { 0 };
  int64_t counts[8], gates = 0;
  tn_status st = tn__lstm_measure(ctx, &z, err);
  if (st == TN_OK) st = tn_shape_elements((int64_t[3]){ z.steps, z.batch, 4 * z.cell }, 3, &gates, err);
  for (uint32_t i = 0; i < 8 && st == TN_OK; i++) {
    st = tn_prepare_output_like(ctx, i, i + 1, err);
    counts[i] = ctx->inputs[i + 1].count;
  }
  return st != TN_OK ? st : plan_new(ctx, &z, gates, counts, err);
}

static tn_status prepare_cell(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__lstm_sizes z = { 0 };
  int64_t gates = 0;
  tn_status st = tn__lstm_measure(ctx, &z, err);
  if (st != TN_OK) return st;
  const int64_t dims[2] = { z.batch, 4 * z.cell };
  st = tn_shape_elements(dims, 2, &gates, err);
  const int64_t counts[5] = { gates / 4, gates, z.cell, z.cell, z.cell };
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 1, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, dims, 2, err);
  for (uint32_t i = 2; i < 5 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, &z.cell, 1, err);
  return st != TN_OK ? st : plan_new(ctx, &z, gates, counts, err);
}

/* ---- a step ---- */

typedef struct step {
  const tn__lstm_state *state;
  int64_t cell;
  const float *wci, *wcf, *wco, *cs_before;
  const float *i, *cs, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;   /* from outside */
  const float *cs_after, *h_after; /* from the next step; NULL if none */
  float *gates, *cs_out;           /* cs_out may be cs_after */
} step;

static void step_part(void *user, int64_t begin, int64_t end)
{
  const step *s = user;
  const tn__lstm_gates g = tn__lstm_order(s->state, s->cell);
  const bool peephole = s->state->peephole;
  for (int64_t row = begin; row < end; row++) {
    float *gates = s->gates + 4 * row * s->cell;
    for (int64_t k = 0; k < s->cell; k++) {
      const int64_t at = row * s->cell + k;
      const float i = s->i[at], f = s->f[at], o = s->o[at], ci = s->ci[at], co = s->co[at];
      const float dh = s->h_grad[at] + (s->h_after == NULL ? 0 : s->h_after[at]);
      const float d_o = o * (1 - o) * dh * co;
      float dcs = (1 - co * co) * dh * o + s->cs_grad[at] + (s->cs_after == NULL ? 0 : s->cs_after[at]);
      if (peephole) dcs += d_o * s->wco[k];
      const float df = f * (1 - f) * dcs * s->cs_before[at], di = i * (1 - i) * dcs * ci;
      gates[g.i + k] = di;
      gates[g.c + k] = (1 - ci * ci) * dcs * i;
      gates[g.f + k] = df;
      gates[g.o + k] = d_o;
      s->cs_out[at] = dcs * f + (peephole ? di * s->wci[k] + df * s->wcf[k] : 0);
    }
  }
}

/* Adds a step's contributions to the gradients of wci, wcf and wco, summed over the batch. */
static void add_peephole(const step *s, int64_t batch, float *wci, float *wcf, float *wco)
{
  const tn__lstm_gates g = tn__lstm_order(s->state, s->cell);
  if (!s->state->peephole) return;
  for (int64_t row = 0; row < batch; row++) {
    const float *gates = s->gates + 4 * row * s->cell, *before = s->cs_before + row * s->cell;
    const float *cs = s->cs + row * s->cell;
    for (int64_t k = 0; k < s->cell; k++) {
      wci[k] += gates[g.i + k] * before[k];
      wcf[k] += gates[g.f + k] * before[k];
      wco[k] += gates[g.o + k] * cs[k];
    }
  }
}

static void clear(float *to, int64_t n)
{
  if (n > 0) memset(to, 0, (size_t)n * sizeof *to);
}

static tn_status compute_cell(tn_kernel_ctx *ctx)
{
  const grad_plan *p = ctx->shape_state;
  const tn__lstm_sizes *z = &p->z;
  const float *in[16];
  float *out[5];
  for (uint32_t i = 0; i < 16; i++) in[i] = tn__cell_in(ctx, &p->floats, i);
  for (uint32_t i = 0; i < 5; i++) out[i] = tn__cell_out(ctx, &p->floats, i);
  for (int i = 2; i < 5; i++) clear(out[i], z->cell);
  step s = { .state = ctx->state, .cell = z->cell, .wci = in[4], .wcf = in[5], .wco = in[6], .cs_before = in[1],
             .i = in[8], .cs = in[9], .f = in[10], .o = in[11], .ci = in[12], .co = in[13], .cs_grad = in[14],
             .h_grad = in[15], .gates = out[1], .cs_out = out[0] };
  if (ctx->outputs[0]->count > 0) {
    tn__run_parts(ctx, z->batch, 4.0 * (double)z->cell, step_part, &s);
    add_peephole(&s, z->batch, out[2], out[3], out[4]);
  }
  tn__cell_store(ctx, &p->floats);
  return TN_OK;
}

/* ---- all steps ---- */

typedef struct block {
  tn_kernel_ctx *ctx;
  const grad_plan *p;
  const float *in[17];   /* from x on */
  float *out[8];
  float *gates, *before;
  void *gemm;
  int64_t length;
} block;

/* Goes backwards through the steps: computes the gradients of the gates, of cs_prev and h_prev, and of the peephole. */
static void walk(const block *b)
{
  const tn__lstm_sizes *z = &b->p->z;
  const int64_t n = z->batch * z->cell;
  const float *w_h = b->in[3] + z->in * 4 * z->cell;
  tn__poll poll = tn__poll_of(b->ctx);
  for (int64_t t = b->length - 1; t >= 0 && !tn__poll_over(&poll, (int64_t)b->p->to_h.cost_ns + 20 * n); t--) {
    const int64_t at = t * n;
    const bool last = t == b->length - 1;
    step s = { .state = b->ctx->state, .cell = z->cell, .wci = b->in[4], .wcf = b->in[5], .wco = b->in[6],
               .cs_before = t == 0 ? b->in[1] : b->in[9] + at - n, .i = b->in[8] + at, .cs = b->in[9] + at,
               .f = b->in[10] + at, .o = b->in[11] + at, .ci = b->in[12] + at, .co = b->in[13] + at,
               .cs_grad = b->in[15] + at, .h_grad = b->in[16] + at, .cs_after = last ? NULL : b->out[1],
               .h_after = last ? NULL : b->out[2], .gates = b->gates + 4 * at, .cs_out = b->out[1] };
    tn__run_parts(b->ctx, z->batch, 4.0 * (double)z->cell, step_part, &s);
    add_peephole(&s, z->batch, b->out[4], b->out[5], b->out[6]);
    tn__gemm_run(&b->p->to_h, b->ctx, s.gates, w_h, b->out[2], b->gemm);
    memcpy(b->before + at, t == 0 ? b->in[2] : b->in[14] + at - n, (size_t)n * sizeof(float));
  }
}

/* Computes the gradients of x, w and b from those of the gates. */
static void finish(const block *b)
{
  const tn__lstm_sizes *z = &b->p->z;
  const int64_t rows = b->length * z->batch, gates = 4 * z->cell;
  tn__gemm_plan to_x = b->p->to_x, to_wx = b->p->to_wx, to_wh = b->p->to_wh;
  to_x.m = to_wx.k = to_wh.k = rows;
  tn__gemm_run(&to_x, b->ctx, b->gates, b->in[3], b->out[0], b->gemm);
  clear(b->out[0] + rows * z->in, (z->steps * z->batch - rows) * z->in);
  tn__gemm_run(&to_wx, b->ctx, b->in[0], b->gates, b->out[3], b->gemm);
  tn__gemm_run(&to_wh, b->ctx, b->before, b->gates, b->out[3] + z->in * gates, b->gemm);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < gates; k++) b->out[7][k] += b->gates[row * gates + k];
}

static tn_status compute_block(tn_kernel_ctx *ctx)
{
  const grad_plan *p = ctx->shape_state;
  char *scratch = ctx->scratch;
  block b = { .ctx = ctx, .p = p, .gates = (float *)(scratch + p->at_gates),
              .before = (float *)(scratch + p->at_before), .gemm = scratch + p->at_gemm };
  tn_status st = tn__lstm_length(ctx, &p->z, &b.length);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < 17; i++) b.in[i] = tn__cell_in(ctx, &p->floats, i + 1);
  for (uint32_t i = 0; i < 8; i++) {
    b.out[i] = tn__cell_out(ctx, &p->floats, i);
    clear(b.out[i], ctx->outputs[i]->count);
  }
  if (p->z.steps * p->z.batch > 0 && p->z.cell > 0) {
    walk(&b);
    finish(&b);
  }
  tn__cell_store(ctx, &p->floats);
  return TN_OK;
}

/* ---- tables ---- */

#define INPUTS "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T"
#define BLOCK_OP(op)                                                                                               \
  { .struct_size = TN_OP_DEF_SIZE, .name = op,                                                                     \
    .inputs = "seq_len_max: int64, " INPUTS ", h: T, cs_grad: T, h_grad: T",                                       \
    .outputs = "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, "    \
               "b_grad: T",                                                                                        \
    .attrs = "use_peephole: bool; T: {half, float}", .infer = infer_block, .summary = "gradient of an LSTM layer" }

static const tn_op_def ops[] = {
  BLOCK_OP("BlockLSTMGrad"),
  BLOCK_OP("BlockLSTMGradV2"),
  { .struct_size = TN_OP_DEF_SIZE, .name = "LSTMBlockCellGrad", .inputs = INPUTS ", cs_grad: T, h_grad: T",
    .outputs = "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    .attrs = "use_peephole: bool; T: {half, float}", .infer = infer_cell, .summary = "gradient of LSTMBlockCell" },
};

#define GRAD_KERNEL(which, title, kind)                                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,          \
    .create = tn__lstm_create, .destroy = tn__lstm_destroy, .prepare = prepare_##kind,                          \
    .destroy_shape_state = destroy_plan, .compute = compute_##kind }

static const tn_kernel_def kernels[] = {
  GRAD_KERNEL("BlockLSTMGrad", "block_lstm_grad_cpu", block),
  GRAD_KERNEL("BlockLSTMGradV2", "block_lstm_grad_v2_cpu", block),
  GRAD_KERNEL("LSTMBlockCellGrad", "lstm_block_cell_grad_cpu", cell),
};

TN_OP_FAMILY(lstm_grad)
