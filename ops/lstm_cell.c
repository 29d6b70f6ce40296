/* SPDX-License-Identifier: Apache-2.0 */
/* _TnLSTMCell: one step of an LSTM as layers of plain ops spell it, in one pass. Graphs do not hold it; the planner's "cell"
 * pass makes it (ops/fuse_lstm.c).
 *
 *   gates = [x, h'] w + b, four parts in the order that `gates` says
 *   c = c' sigmoid(f + forget_bias) + sigmoid(i) tanh(j)       h = tanh(c) sigmoid(o)
 *
 * x and h' are read where they lie. The terms of a sum are added in the order of the plain ops, so the bits are theirs. */
#include <core/base/alloc.h>
#include <ops/support/gemm.h>
#include <ops/support/shapes.h>
#include <ops/support/vector_math.h>
#include <ops/support/volume.h>
#include <string.h>

enum { X, H, C, W, B };

typedef struct cell_state {
  int64_t gate[4]; /* places of i, j, f, o */
  float forget_bias;
} cell_state;

static tn_status read_state(const tn_operation *op, cell_state *s, tn_error *err)
{
  const int64_t *gates;
  size_t n;
  unsigned seen = 0;
  tn_status st = tn_operation_attr_ints(op, "gates", &gates, &n, err);
  if (st != TN_OK) return st;
  for (size_t k = 0; k < n && k < 4; k++)
    if (gates[k] >= 0 && gates[k] < 4) seen |= 1u << gates[k];
  if (n != 4 || seen != 15)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLSTMCell: gates is no order of 0, 1, 2 and 3");
  memcpy(s->gate, gates, sizeof s->gate);
  s->forget_bias = tn__attr_float(op, "forget_bias", 0);
  return TN_OK;
}

static tn_status cell_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  cell_state s;
  tn_status st = read_state(op, &s, err);
  if (st != TN_OK) return st;
  cell_state *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "_TnLSTMCell", sizeof *p);
  *p = s;
  *state = p;
  return TN_OK;
}

static void cell_destroy(void *state) { tn__free(state, sizeof(cell_state)); }

/* ---- shapes ---- */

static tn_status cell_infer(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, h, c, b;
  tn_status st = tn__infer_rank(ctx, X, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, H, 2, &h, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, C, 2, &c, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, B, 1, &b, err);
  if (st != TN_OK) return st;
  int64_t rows = x.dims[0] >= 0 ? x.dims[0] : h.dims[0], columns = b.dims[0] >= 0 ? b.dims[0] / 4 : -1;
  const int64_t gates[2] = { rows, columns };
  tn__shape out;
  if (!tn__broadcast_shapes(gates, 2, c.dims, 2, &out))
    return tn__broadcast_error(err, "_TnLSTMCell", gates, 2, c.dims, 2);
  st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK ? tn__infer_set(ctx, 1, &out, err) : st;
}

typedef struct cell_plan {
  tn__gemm_plan product;
  int64_t in, hidden;          /* of x and h' */
  int64_t gate_rows, cell;     /* rows and parts of the gates */
  int64_t rows, columns;       /* of the results: the gates' and the old state's broadcast together */
  int64_t c_rows, c_columns;
  size_t at_gates, at_gemm;
} cell_plan;

static void free_plan(void *plan) { tn__free(plan, sizeof(cell_plan)); }

static tn_status measure(const tn_prepare_ctx *ctx, cell_plan *p, tn_error *err)
{
  const tn_view *in = ctx->inputs;
  for (uint32_t i = 0; i < 4; i++) {
    tn_status st = tn__want_rank(ctx, i, 2, err);
    if (st != TN_OK) return st;
  }
  tn_status st = tn__want_rank(ctx, B, 1, err);
  if (st != TN_OK) return st;
  p->in = in[X].dims[1];
  p->hidden = in[H].dims[1];
  p->gate_rows = in[X].dims[0];
  p->c_rows = in[C].dims[0];
  p->c_columns = in[C].dims[1];
  const int64_t h[2] = { p->gate_rows, -1 }, w[2] = { p->in + p->hidden, in[B].dims[0] };
  if (in[H].dims[0] != p->gate_rows) return tn__shape_error(err, ctx, H, h, 2);
  if (in[W].dims[0] != w[0] || in[W].dims[1] != w[1]) return tn__shape_error(err, ctx, W, w, 2);
  if (w[1] % 4 != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "_TnLSTMCell: %lld gates are no four parts", (long long)w[1]);
  p->cell = w[1] / 4;
  const int64_t gates[2] = { p->gate_rows, p->cell };
  tn__shape out;
  if (!tn__broadcast_shapes(gates, 2, in[C].dims, 2, &out))
    return tn__broadcast_error(err, "_TnLSTMCell", gates, 2, in[C].dims, 2);
  p->rows = out.dims[0];
  p->columns = out.dims[1];
  return TN_OK;
}

/* Where x and h' end and begin: row i of A is row i of x, then row i of h'. */
typedef struct sources {
  const float *x, *h;
  int64_t in, hidden;
} sources;

static int64_t two_rows(const void *user, int64_t row, int rows, int64_t term, int64_t terms, void *room, const void **at,
                        int64_t *step)
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

static tn_status cell_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
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
  z.product = (tn__gemm_plan){ .type = TN__GEMM_F32, .m = z.gate_rows, .n = 4 * z.cell, .k = z.in + z.hidden,
                               .b_row = 4 * z.cell, .b_col = 1, .c_row = 4 * z.cell, .rows = two_rows };
  tn__gemm_plan_choose(&z.product);
  z.at_gates = tn__take(&ctx->scratch_bytes, (size_t)elements * sizeof(float));
  z.at_gemm = tn__take(&ctx->scratch_bytes, z.product.scratch);
  ctx->cost_ns = z.product.cost_ns + 8.0 * (double)(z.rows * z.columns);
  *p = z;
  if (z.c_rows == z.rows && z.c_columns == z.columns) return tn_prepare_in_place(ctx, 0, C, err);
  return TN_OK;
}

/* ---- computing ---- */

typedef struct cell_run {
  const cell_state *state;
  const cell_plan *plan;
  const float *gates, *bias, *c;
  float *to_c, *to_h;
} cell_run;

/* `one`: the four parts' values at a place stand still along a row (parts of one column, a wider state). */
static inline __attribute__((always_inline)) void cell_row(const cell_run *r, int64_t row, bool one, bool c_one)
{
  const cell_plan *p = r->plan;
  const float *gates = r->gates + (p->gate_rows == 1 ? 0 : row) * 4 * p->cell;
  const float *c = r->c + (p->c_rows == 1 ? 0 : row) * p->c_columns;
  const float *part[4], *bias[4];
  for (int g = 0; g < 4; g++) {
    part[g] = gates + r->state->gate[g] * p->cell;
    bias[g] = r->bias + r->state->gate[g] * p->cell;
  }
  float *to_c = r->to_c + row * p->columns, *to_h = r->to_h + row * p->columns, forget = r->state->forget_bias;
#pragma GCC ivdep
  for (int64_t k = 0; k < p->columns; k++) {
    int64_t at = one ? 0 : k;
    float kept = c[c_one ? 0 : k] * tn__sigmoidf(part[2][at] + bias[2][at] + forget);
    float now = tn__sigmoidf(part[0][at] + bias[0][at]) * tn__tanhf(part[1][at] + bias[1][at]);
    float sum = kept + now;
    to_c[k] = sum;
    to_h[k] = tn__tanhf(sum) * tn__sigmoidf(part[3][at] + bias[3][at]);
  }
}

#define ROWS(name, target)                                                            \
  target static void name(void *user, int64_t begin, int64_t end)                     \
  {                                                                                   \
    const cell_run *r = user;                                                         \
    bool one = r->plan->cell == 1, c_one = r->plan->c_columns == 1;                   \
    for (int64_t row = begin; row < end; row++) {                                     \
      if (!one && !c_one) cell_row(r, row, false, false);                             \
      else cell_row(r, row, one, c_one);                                              \
    }                                                                                 \
  }
ROWS(rows_base, )
#if defined(__x86_64__) && defined(__GNUC__)
ROWS(rows_avx2, __attribute__((target("avx2"))))
ROWS(rows_avx512, __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))))

static void (*rows_of_this_machine(void))(void *, int64_t, int64_t)
{
  bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide ? rows_avx512 : __builtin_cpu_supports("avx2") ? rows_avx2 : rows_base;
}
#else
static void (*rows_of_this_machine(void))(void *, int64_t, int64_t) { return rows_base; }
#endif

static tn_status cell_compute(tn_kernel_ctx *ctx)
{
  const cell_plan *p = ctx->shape_state;
  tn_view *const *in = ctx->inputs;
  if (ctx->outputs[0]->count == 0) return TN_OK;
  float *gates = (float *)((char *)ctx->scratch + p->at_gates);
  const sources a = { in[X]->data, in[H]->data, p->in, p->hidden };
  tn__gemm_run(&p->product, ctx, &a, in[W]->data, gates, (char *)ctx->scratch + p->at_gemm);
  cell_run r = { ctx->state, p, gates, in[B]->data, in[C]->data, ctx->outputs[0]->data, ctx->outputs[1]->data };
  tn__run_parts(ctx, p->rows, 8.0 * (double)p->columns, rows_of_this_machine(), &r);
  return TN_OK;
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "_TnLSTMCell", .inputs = "x: T, h_prev: T, c_prev: T, w: T, b: T",
    .outputs = "c: T, h: T", .attrs = "T: {float} = float; gates: list(int) = [0, 1, 2, 3]; forget_bias: float = 0",
    .infer = cell_infer, .summary = "one step of an LSTM of plain ops" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "_TnLSTMCell", .device = "CPU", .name = "fused_lstm_cell_cpu",
    .rank = TN_RANK_C, .create = cell_create, .destroy = cell_destroy, .prepare = cell_prepare,
    .destroy_shape_state = free_plan, .compute = cell_compute },
};

extern const tn_op_family tn__ops_lstm_cell;
const tn_op_family tn__ops_lstm_cell = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "lstm_cell",
  .ops = ops,
  .n_ops = sizeof ops / sizeof *ops,
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof *kernels,
};
