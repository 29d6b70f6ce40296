/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLSTMCell: one step of an LSTM built from plain ops, in one pass. Graphs never contain it; the planner's "cell"
 * pass creates it (ops/rewrite/fuse_lstm.c).
 *
 *   gates = [x, h'] w + b, or if `apart` x w + h' u + b: four parts in the order given by the attribute `gates`
 *   c = c' sigmoid(f + forget_bias) + sigmoid(i) tanh(j)       h = tanh(c) sigmoid(o)
 *
 * x and h' are read in place; u is read only if `apart`. The terms of a sum are added in the order of the plain
 * ops, so the bits are the same. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/gemm.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/window/volume.h>
#include <ops/rnn/gates.h>

enum { X, H, C, W, B, U };

static tn_status cell_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  tn__lstm_form s;
  tn_status st = tn__lstm_form_read(op, &s, err);
  if (st != TN_OK) return st;
  return tn__keep_state(&s, sizeof s, "_TnLSTMCell", state, err);
}

static void cell_destroy(void *state) { tn__free(state, sizeof(tn__lstm_form)); }

/* ---- shapes ---- */

static tn_status cell_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, h, c, b;
  tn_status st = tn__infer_rank(ctx, X, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, H, 2, &h, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, C, 2, &c, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, B, 1, &b, err);
  if (st != TN_OK) return st;
  tn__shape both, out;
  if (!tn__broadcast_shapes(x.dims, 1, h.dims, 1, &both))
    return tn__broadcast_error(err, "_TnLSTMCell", x.dims, 1, h.dims, 1);
  const int64_t gates[2] = { both.dims[0], b.dims[0] >= 0 ? b.dims[0] / 4 : -1 };
  if (!tn__broadcast_shapes(gates, 2, c.dims, 2, &out))
    return tn__broadcast_error(err, "_TnLSTMCell", gates, 2, c.dims, 2);
  st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK ? tn__infer_set(ctx, 1, &out, err) : st;
}

typedef struct cell_plan {
  tn__gemm_plan product, of_state; /* of_state: only if apart */
  int64_t in, hidden;          /* columns of x and h' */
  int64_t x_rows, h_rows;
  int64_t gate_rows, cell;     /* rows of the gates; columns of each part */
  int64_t rows, columns;       /* shape of the results: the gates and the old state broadcast together */
  int64_t c_rows, c_columns;
  size_t at_gates, at_state, at_gemm;
} cell_plan;

static void free_plan(void *plan) { tn__free(plan, sizeof(cell_plan)); }

/* Determines the rows of x and h'. Only sums are broadcast, so [x, h'] needs equal rows. */
static tn_status measure_rows(const tn_prepare_ctx *ctx, cell_plan *p, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  const bool apart = ((const tn__lstm_form *)ctx->state)->apart;
  tn__shape rows;
  p->in = in[X].dims[1];
  p->hidden = in[H].dims[1];
  p->x_rows = in[X].dims[0];
  p->h_rows = in[H].dims[0];
  const int64_t h[2] = { p->x_rows, -1 }, w[2] = { p->in + (apart ? 0 : p->hidden), in[B].dims[0] };
  const int64_t u[2] = { apart ? p->hidden : w[0], w[1] };
  if (!apart && p->h_rows != p->x_rows) return tn__shape_error(err, ctx, H, h, 2);
  if (!tn__broadcast_shapes(in[X].dims, 1, in[H].dims, 1, &rows))
    return tn__broadcast_error(err, "_TnLSTMCell", in[X].dims, 1, in[H].dims, 1);
  p->gate_rows = rows.dims[0];
  tn_status st = tn__want_shape(ctx, W, w, 2, err);
  return st == TN_OK ? tn__want_shape(ctx, U, u, 2, err) : st;
}

static tn_status measure(const tn_prepare_ctx *ctx, cell_plan *p, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  tn_status st = tn__want_rank(ctx, B, 1, err);
  for (uint32_t i = 0; i < 4 && st == TN_OK; i++) st = tn__want_rank(ctx, i, 2, err);
  if (st == TN_OK) st = measure_rows(ctx, p, err);
  if (st != TN_OK) return st;
  p->c_rows = in[C].dims[0];
  p->c_columns = in[C].dims[1];
  if (in[B].dims[0] % 4 != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLSTMCell: %lld gates cannot be split into four parts",
                        (long long)in[B].dims[0]);
  p->cell = in[B].dims[0] / 4;
  const int64_t gates[2] = { p->gate_rows, p->cell };
  tn__shape out;
  if (!tn__broadcast_shapes(gates, 2, in[C].dims, 2, &out))
    return tn__broadcast_error(err, "_TnLSTMCell", gates, 2, in[C].dims, 2);
  p->rows = out.dims[0];
  p->columns = out.dims[1];
  return TN_OK;
}

/* The matrix [x, h']: row i of A is row i of x, followed by row i of h'. */
typedef struct sources {
  const float *x, *h;
  int64_t in, hidden;
} sources;

static int64_t two_rows(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room,
                        const void **at, int64_t *step)
{
  const sources *s = user;
  bool first = term < s->in;
  int64_t left = first ? s->in - term : s->in + s->hidden - term;
  (void)room;
  for (int i = 0; i < rows; i++)
    at[i] = first ? s->x + (row + i) * s->in + term : s->h + (row + i) * s->hidden + (term - s->in);
  *step = 1;
  return left < terms ? left : terms;
}

/* Plans a[rows][terms] w; if `together`, a is [x, h']. */
static size_t plan_product(tn_prepare_ctx *ctx, tn__gemm_plan *g, int64_t rows, int64_t terms, int64_t columns,
                           bool together)
{
  *g = (tn__gemm_plan){ .type = TN__GEMM_F32, .m = rows, .n = columns, .k = terms, .a_row = terms, .a_col = 1,
                        .b_row = columns, .b_col = 1, .c_row = columns, .rows = together ? two_rows : NULL,
                        .reproducible = ctx->reproducible };
  tn__gemm_plan_choose(g);
  ctx->cost_ns += g->cost_ns;
  return tn__take(&ctx->scratch_bytes, (size_t)(rows * columns) * sizeof(float));
}

static tn_status cell_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const bool apart = ((const tn__lstm_form *)ctx->state)->apart;
  cell_plan z = { 0 };
  tn_status st = measure(ctx, &z, err);
  const int64_t dims[2] = { z.rows, z.columns };
  int64_t elements = 0, gates[2] = { z.gate_rows, 4 * z.cell };
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, dims, 2, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 1, dims, 2, err);
  if (st == TN_OK) st = tn_shape_elements(gates, 2, &elements, err);
  if (st != TN_OK) return st;
  cell_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "_TnLSTMCell", sizeof *p);
  ctx->shape_state = p;
  ctx->cost_ns = 8.0 * (double)(z.rows * z.columns);
  z.at_gates = plan_product(ctx, &z.product, z.x_rows, z.in + (apart ? 0 : z.hidden), 4 * z.cell, !apart);
  if (apart) z.at_state = plan_product(ctx, &z.of_state, z.h_rows, z.hidden, 4 * z.cell, false);
  size_t room = z.product.scratch > z.of_state.scratch ? z.product.scratch : z.of_state.scratch;
  z.at_gemm = tn__take(&ctx->scratch_bytes, room);
  *p = z;
  if (z.c_rows == z.rows && z.c_columns == z.columns) return tn_prepare_in_place(ctx, 0, C, err);
  return TN_OK;
}

/* ---- computing ---- */

typedef struct cell_run {
  const tn__lstm_form *state;
  const cell_plan *plan;
  const float *gates, *bias, *c;
  float *to_c, *to_h;
} cell_run;

/* A row in which the gates have one column and the state has more, or the reverse. */
static void odd_row(const cell_run *r, int64_t row)
{
  const cell_plan *p = r->plan;
  const float *gates = r->gates + (p->gate_rows == 1 ? 0 : row) * 4 * p->cell;
  const float *c = r->c + (p->c_rows == 1 ? 0 : row) * p->c_columns;
  const int64_t *gate = r->state->gate;
  for (int64_t k = 0; k < p->columns; k++) {
    float sum[4];
    for (int g = 0; g < 4; g++) {
      int64_t at = gate[g] * p->cell + (p->cell == 1 ? 0 : k);
      sum[g] = gates[at] + r->bias[at];
    }
    float kept = c[p->c_columns == 1 ? 0 : k] * tn__sigmoidf(sum[2] + r->state->forget_bias);
    float state = kept + tn__sigmoidf(sum[0]) * tn__tanhf(sum[1]);
    r->to_c[row * p->columns + k] = state;
    r->to_h[row * p->columns + k] = tn__tanhf(state) * tn__sigmoidf(sum[3]);
  }
}

static void cell_rows(void *user, int64_t begin, int64_t end)
{
  const cell_run *r = user;
  const cell_plan *p = r->plan;
  if (p->cell == p->c_columns) {
    const int64_t n = p->cell, c_row = p->c_rows == 1 ? 0 : n, sums_row = p->gate_rows == 1 ? 0 : 4 * n;
    tn__lstm_block b = { .rows = end - begin, .cells = n, .sums = r->gates + begin * sums_row, .sums_row = sums_row,
                         .c = r->c + begin * c_row, .c_row = c_row, .to_c = r->to_c + begin * n, .to_c_row = n,
                         .to_h = r->to_h + begin * n, .to_h_row = n, .forget_bias = r->state->forget_bias };
    for (int g = 0; g < 4; g++) {
      b.part[g] = r->state->gate[g] * n;
      b.bias[g] = r->bias + b.part[g];
    }
    tn__lstm_block_state(&b);
    tn__lstm_block_output(&b);
  } else {
    for (int64_t row = begin; row < end; row++) odd_row(r, row);
  }
}

/* Adds the products of x and of h'; one of them may be a single row for all. Returns the buffer that holds the
 * result. */
static float *add_parts(const cell_plan *p, float *of_x, float *of_h)
{
  const int64_t n = 4 * p->cell;
  float *to = p->x_rows == p->gate_rows ? of_x : of_h;
  const float *other = to == of_x ? of_h : of_x;
  const int64_t other_row = (to == of_x ? p->h_rows : p->x_rows) == 1 ? 0 : n;
  for (int64_t row = 0; row < p->gate_rows; row++) {
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) to[row * n + k] += other[row * other_row + k];
  }
  return to;
}

static tn_status cell_compute(tn_kernel_ctx *ctx)
{
  const cell_plan *p = ctx->shape_state;
  const tn__lstm_form *state = ctx->state;
  tn_view *const *in = ctx->inputs;
  char *scratch = ctx->scratch;
  if (ctx->outputs[0]->count == 0) return TN_OK;
  float *gates = (float *)(scratch + p->at_gates);
  const sources a = { in[X]->data, in[H]->data, p->in, p->hidden };
  tn__gemm_run(&p->product, ctx, state->apart ? in[X]->data : (const void *)&a, in[W]->data, gates,
               scratch + p->at_gemm);
  if (state->apart) {
    float *of_h = (float *)(scratch + p->at_state);
    tn__gemm_run(&p->of_state, ctx, in[H]->data, in[U]->data, of_h, scratch + p->at_gemm);
    gates = add_parts(p, gates, of_h);
  }
  cell_run r = { state, p, gates, in[B]->data, in[C]->data, ctx->outputs[0]->data, ctx->outputs[1]->data };
  tn__run_parts(ctx, p->rows, 8.0 * (double)p->columns, cell_rows, &r);
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "_TnLSTMCell",
    .inputs = "x: T, h_prev: T, c_prev: T, w: T, b: T, u: T", .outputs = "c: T, h: T",
    .attrs = "T: {float} = float; gates: list(int) = [0, 1, 2, 3]; forget_bias: float = 0; apart: bool = false",
    .infer = cell_infer, .summary = "one step of an LSTM built from plain ops" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnLSTMCell", .device = "CPU", .name = "fused_lstm_cell_cpu",
    .rank = TN_RANK_C, .create = cell_create, .destroy = cell_destroy, .prepare = cell_prepare,
    .destroy_shape_state = free_plan, .compute = cell_compute },
};

TN_OP_FAMILY(lstm_cell)
