/* SPDX-License-Identifier: Apache-2.0 */
/* LSTMBlockCell, and BlockLSTM, which runs the cell over many steps.
 *
 *   gates = [x, h'] w + b           i = sigmoid(gate i + wci cs')
 *   ci = tanh(gate c)               f = sigmoid(gate f + forget_bias + wcf cs')
 *   cs = ci i + cs' f, clipped      o = sigmoid(gate o + wco cs)
 *   co = tanh(cs)                   h = o co
 *
 * ' denotes the previous step. The products with wci, wcf and wco are the peephole. x is multiplied for all steps at
 * once. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/rnn/cell_loops.h>
#include <string.h>

/* ---- shapes ---- */

static tn_status infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, state, out;
  size_t at = tn_infer_n_inputs(ctx) == 9 ? 1 : 0; /* index of x; BlockLSTM has the length before it */
  int32_t rank = at == 1 ? 3 : 2;
  tn_status st = tn__infer_rank(ctx, at, rank, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, at + 1, 2, &state, err);
  if (st != TN_OK) return st;
  out = x;
  out.dims[rank - 1] = state.dims[1];
  if (out.dims[rank - 2] < 0) out.dims[rank - 2] = state.dims[0];
  for (size_t i = 0; i < 7 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &out, err);
  return st;
}

/* ---- preparing ---- */

typedef struct lstm_plan {
  tn__lstm_sizes z;
  tn__cell_floats floats;
  tn__gemm_plan from_x, from_h;
  size_t at_x, at_h, at_gemm; /* offsets in scratch; at_x, at_h: contributions of x and h to the gates */
} lstm_plan;

static void destroy_plan(void *plan) { tn__free(plan, sizeof(lstm_plan)); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn__lstm_state *s = ctx->state;
  tn__lstm_sizes z = { 0 };
  tn_status st = tn__lstm_measure(ctx, &z, err);
  const int64_t dims[3] = { z.steps, z.batch, z.cell };
  int64_t counts[7], gates = 0, gates_dims[3] = { z.steps, z.batch, 0 };
  if (st == TN_OK) gates_dims[2] = 4 * z.cell;
  if (st == TN_OK) st = tn_shape_elements(gates_dims, 3, &gates, err);
  for (uint32_t i = 0; i < 7 && st == TN_OK; i++) {
    st = s->block ? tn_prepare_output(ctx, i, dims, 3, err) : tn_prepare_output(ctx, i, dims + 1, 2, err);
    counts[i] = gates / 4;
  }
  if (st != TN_OK) return st;
  lstm_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "LSTM plan", sizeof *p);
  ctx->shape_state = p;
  p->z = z;
  tn__cell_floats_plan(ctx, &p->floats, s->block ? 1 : 0, counts);
  if (gates == 0) return TN_OK;
  p->from_x = tn__cell_product(ctx, z.steps * z.batch, 4 * z.cell, z.in, 4 * z.cell, false);
  p->from_h = tn__cell_product(ctx, z.batch, 4 * z.cell, z.cell, 4 * z.cell, false);
  p->at_x = tn__take(&ctx->scratch_bytes, (size_t)gates * sizeof(float));
  p->at_h = tn__take(&ctx->scratch_bytes, (size_t)(z.batch * 4 * z.cell) * sizeof(float));
  p->at_gemm = tn__take(&ctx->scratch_bytes,
                        p->from_x.scratch > p->from_h.scratch ? p->from_x.scratch : p->from_h.scratch);
  ctx->cost_ns = p->from_x.cost_ns + (p->from_h.cost_ns + 20.0 * (double)(z.batch * z.cell)) * (double)z.steps;
  return TN_OK;
}

/* ---- computing ---- */

typedef struct step {
  const tn__lstm_state *state;
  int64_t cell;
  const float *from_x, *from_h, *b, *wci, *wcf, *wco, *cs_before;
  float *i, *cs, *f, *o, *ci, *co, *h;
} step;

static inline float limit(float x, float clip)
{
  float raised = x < -clip ? -clip : x;
  return x > clip ? clip : raised;
}

static void step_part(void *user, int64_t begin, int64_t end)
{
  const step *s = user;
  const tn__lstm_gates g = tn__lstm_order(s->state, s->cell);
  const bool peephole = s->state->peephole;
  const float forget = s->state->forget_bias, clip = s->state->clip > 0 ? s->state->clip : INFINITY;
  for (int64_t row = begin; row < end; row++) {
    const int64_t at = row * s->cell;
    const float *x = s->from_x + 4 * at, *h = s->from_h + 4 * at, *b = s->b, *before = s->cs_before + at;
    TN__IVDEP
    for (int64_t k = 0; k < s->cell; k++) {
      const float was = before[k], in = peephole ? s->wci[k] * was : 0, keep = peephole ? s->wcf[k] * was : 0;
      const float i = tn__sigmoidf(x[g.i + k] + h[g.i + k] + b[g.i + k] + in);
      const float f = tn__sigmoidf(x[g.f + k] + h[g.f + k] + b[g.f + k] + forget + keep);
      const float ci = tn__tanhf(x[g.c + k] + h[g.c + k] + b[g.c + k]);
      const float cs = limit(ci * i + was * f, clip), out = peephole ? s->wco[k] * cs : 0;
      const float o = tn__sigmoidf(x[g.o + k] + h[g.o + k] + b[g.o + k] + out), co = tn__tanhf(cs);
      s->i[at + k] = i;
      s->cs[at + k] = cs;
      s->f[at + k] = f;
      s->o[at + k] = o;
      s->ci[at + k] = ci;
      s->co[at + k] = co;
      s->h[at + k] = o * co;
    }
  }
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const tn__lstm_state *state = ctx->state;
  const lstm_plan *p = ctx->shape_state;
  const tn__lstm_sizes *z = &p->z;
  const uint32_t first = state->block ? 1 : 0;
  int64_t length;
  tn_status st = tn__lstm_length(ctx, z, &length);
  if (st != TN_OK || ctx->outputs[0]->count == 0) return st;
  const float *in[8];
  float *out[7];
  for (uint32_t i = 0; i < 8; i++) in[i] = tn__cell_in(ctx, &p->floats, first + i);
  for (uint32_t i = 0; i < 7; i++) out[i] = tn__cell_out(ctx, &p->floats, i);
  char *scratch = ctx->scratch;
  float *from_x = (float *)(scratch + p->at_x), *from_h = (float *)(scratch + p->at_h);
  const int64_t n = z->batch * z->cell;
  const float *cs = in[1], *h = in[2];
  tn__gemm_plan all = p->from_x;
  all.m = length * z->batch;
  tn__gemm_run(&all, ctx, in[0], in[3], from_x, scratch + p->at_gemm);
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t t = 0; t < length && !tn__poll_over(&poll, (int64_t)p->from_h.cost_ns + 20 * n); t++) {
    tn__gemm_run(&p->from_h, ctx, h, in[3] + z->in * 4 * z->cell, from_h, scratch + p->at_gemm);
    const int64_t at = t * n;
    step s = { state, z->cell, from_x + 4 * at, from_h, in[7], in[4], in[5], in[6], cs, out[0] + at, out[1] + at,
               out[2] + at, out[3] + at, out[4] + at, out[5] + at, out[6] + at };
    tn__run_parts(ctx, z->batch, 20.0 * (double)z->cell, step_part, &s);
    cs = out[1] + at;
    h = out[6] + at;
  }
  for (int i = 0; i < 7; i++) memset(out[i] + length * n, 0, (size_t)((z->steps - length) * n) * sizeof(float));
  tn__cell_store(ctx, &p->floats);
  return TN_OK;
}

/* ---- tables ---- */

#define INPUTS "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
#define LSTM_OP(op, in, attributes, text)                                                             \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in,                                          \
    .outputs = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",                                         \
    .attrs = attributes "; use_peephole: bool = false; T: {half, float}", .infer = infer, .summary = text }

static const tn_op_def ops[] = {
  LSTM_OP("BlockLSTM", "seq_len_max: int64, " INPUTS, "forget_bias: float = 1; cell_clip: float = 3",
          "LSTM layer over all steps"),
  LSTM_OP("BlockLSTMV2", "seq_len_max: int64, " INPUTS, "cell_clip: float = 0", "LSTM layer over all steps"),
  LSTM_OP("LSTMBlockCell", INPUTS, "forget_bias: float = 1; cell_clip: float = 3", "one step of an LSTM layer"),
};

#define LSTM_KERNEL(which, title)                                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,          \
    .create = tn__lstm_create, .destroy = tn__lstm_destroy, .prepare = prepare,                                 \
    .destroy_shape_state = destroy_plan, .compute = compute }

static const tn_kernel_def kernels[] = {
  LSTM_KERNEL("BlockLSTM", "block_lstm_cpu"),
  LSTM_KERNEL("BlockLSTMV2", "block_lstm_v2_cpu"),
  LSTM_KERNEL("LSTMBlockCell", "lstm_block_cell_cpu"),
};

TN_OP_FAMILY(lstm)
