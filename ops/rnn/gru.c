/* SPDX-License-Identifier: Apache-2.0 */
/* GRUBlockCell and its gradient.
 *
 *   [r, u] = sigmoid([x, h'] w_ru + b_ru)      c = tanh([x, r h'] w_c + b_c)
 *   h = u h' + (1 - u) c */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/family.h>
#include <ops/rnn/cell_loops.h>
#include <string.h>

typedef struct gru_sizes {
  int64_t batch, in, cell;
} gru_sizes;

typedef struct gru_plan {
  gru_sizes z;
  tn__gemm_plan to_ru, to_c;        /* products from [x, state], or for the gradient to it */
  size_t at_joined, at_ru, at_gemm; /* offsets in scratch; at_joined: [x, state], or its gradients from r, u and c */
} gru_plan;

/* ---- shapes ---- */

static tn_status infer_cell(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, h;
  tn_status st = tn__infer_rank(ctx, 0, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &h, err);
  if (st != TN_OK) return st;
  if (h.dims[0] < 0) h.dims[0] = x.dims[0];
  for (size_t i = 0; i < 4 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &h, err);
  return st;
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape x, h;
  tn_status st = tn__infer_rank(ctx, 0, 2, &x, err);
  if (st == TN_OK) st = tn__infer_rank(ctx, 1, 2, &h, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &x, err);
  for (size_t i = 1; i < 3 && st == TN_OK; i++) st = tn__infer_set(ctx, i, &h, err);
  if (st != TN_OK) return st;
  if (h.dims[1] >= 0 && __builtin_mul_overflow(h.dims[1], 2, &h.dims[1])) h.dims[1] = -1;
  return tn__infer_set(ctx, 3, &h, err);
}

static tn_status measure(const tn_prepare_ctx *ctx, gru_sizes *z, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, 1, 2, err);
  if (st != TN_OK) return st;
  *z = (gru_sizes){ ctx->inputs[0].dims[0], ctx->inputs[0].dims[1], ctx->inputs[1].dims[1] };
  int64_t rows, gates, all;
  if (__builtin_add_overflow(z->in, z->cell, &rows) || __builtin_mul_overflow(z->cell, 2, &gates) ||
      __builtin_mul_overflow(z->batch, rows, &all) || __builtin_mul_overflow(z->batch, gates, &all))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sizes overflow 64 bits", tn_operation_type(ctx->op));
  const int64_t state[2] = { z->batch, z->cell }, w_ru[2] = { rows, gates }, w_c[2] = { rows, z->cell };
  st = tn__want_shape(ctx, 1, state, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 2, w_ru, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 3, w_c, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 4, &gates, 1, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 5, &z->cell, 1, err);
  for (uint32_t i = 6; i < ctx->n_inputs && st == TN_OK; i++) st = tn__want_shape(ctx, i, state, 2, err);
  return st;
}

/* ---- preparing ---- */

static void destroy_plan(void *plan) { tn__free(plan, sizeof(gru_plan)); }

static tn_status plan_new(tn_prepare_ctx *ctx, const gru_sizes *z, bool gradient, tn_error *err)
{
  gru_plan *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "GRU plan", sizeof *p);
  ctx->shape_state = p;
  p->z = *z;
  const int64_t rows = z->in + z->cell;
  if (gradient) {
    p->to_ru = tn__cell_product(ctx, z->batch, rows, 2 * z->cell, 2 * z->cell, true);
    p->to_c = tn__cell_product(ctx, z->batch, rows, z->cell, z->cell, true);
  } else {
    p->to_ru = tn__cell_product(ctx, z->batch, 2 * z->cell, rows, 2 * z->cell, false);
    p->to_c = tn__cell_product(ctx, z->batch, z->cell, rows, z->cell, false);
  }
  p->at_joined = tn__take(&ctx->scratch_bytes, (size_t)(z->batch * rows) * sizeof(float));
  p->at_ru = tn__take(&ctx->scratch_bytes, (size_t)(z->batch * (gradient ? rows : 2 * z->cell)) * sizeof(float));
  p->at_gemm = tn__take(&ctx->scratch_bytes,
                        p->to_ru.scratch > p->to_c.scratch ? p->to_ru.scratch : p->to_c.scratch);
  ctx->cost_ns = p->to_ru.cost_ns + p->to_c.cost_ns + 20.0 * (double)z->batch * (double)z->cell;
  return TN_OK;
}

static tn_status prepare_cell(tn_prepare_ctx *ctx, tn_error *err)
{
  gru_sizes z = { 0 };
  tn_status st = measure(ctx, &z, err);
  for (uint32_t i = 0; i < 4 && st == TN_OK; i++) st = tn_prepare_output_like(ctx, i, 1, err);
  return st != TN_OK ? st : plan_new(ctx, &z, false, err);
}

static tn_status prepare_grad(tn_prepare_ctx *ctx, tn_error *err)
{
  gru_sizes z = { 0 };
  tn_status st = measure(ctx, &z, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  for (uint32_t i = 1; i < 3 && st == TN_OK; i++) st = tn_prepare_output_like(ctx, i, 1, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 3, (int64_t[2]){ z.batch, 2 * z.cell }, 2, err);
  return st != TN_OK ? st : plan_new(ctx, &z, true, err);
}

/* ---- a step ---- */

static tn_status compute_cell(tn_kernel_ctx *ctx)
{
  const gru_plan *p = ctx->shape_state;
  const gru_sizes *z = &p->z;
  const int64_t n = z->cell, row = z->in + n;
  char *scratch = ctx->scratch;
  float *joined = (float *)(scratch + p->at_joined), *ru = (float *)(scratch + p->at_ru);
  const float *x = ctx->inputs[0]->data, *before = ctx->inputs[1]->data;
  const float *b_ru = ctx->inputs[4]->data, *b_c = ctx->inputs[5]->data;
  float *r = ctx->outputs[0]->data, *u = ctx->outputs[1]->data, *c = ctx->outputs[2]->data, *h = ctx->outputs[3]->data;
  if (ctx->outputs[0]->count == 0) return TN_OK;
  for (int64_t i = 0; i < z->batch; i++) {
    if (z->in > 0) memcpy(joined + i * row, x + i * z->in, (size_t)z->in * sizeof *x);
    memcpy(joined + i * row + z->in, before + i * n, (size_t)n * sizeof *before);
  }
  tn__gemm_run(&p->to_ru, ctx, joined, ctx->inputs[2]->data, ru, scratch + p->at_gemm);
  for (int64_t i = 0; i < z->batch; i++) {
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) {
      r[i * n + k] = tn__sigmoidf(ru[2 * i * n + k] + b_ru[k]);
      u[i * n + k] = tn__sigmoidf(ru[(2 * i + 1) * n + k] + b_ru[n + k]);
      joined[i * row + z->in + k] = before[i * n + k] * r[i * n + k];
    }
  }
  tn__gemm_run(&p->to_c, ctx, joined, ctx->inputs[3]->data, c, scratch + p->at_gemm);
  for (int64_t i = 0; i < z->batch; i++) {
    TN__IVDEP
    for (int64_t k = 0; k < n; k++) {
      const int64_t at = i * n + k;
      const float now = tn__tanhf(c[at] + b_c[k]);
      c[at] = now;
      h[at] = u[at] * before[at] + (1 - u[at]) * now;
    }
  }
  return TN_OK;
}

/* dv is the gradient of v; c_bar, r_bar and u_bar are gradients before tanh and sigmoid:
 *   c_bar = dh (1 - u) (1 - c^2)               u_bar = dh (h' - c) u (1 - u)
 *   [dx2, d(r h')] = c_bar w_c^T               r_bar = d(r h') h' r (1 - r)
 *   [dx1, dh1] = [r_bar, u_bar] w_ru^T         dx = dx1 + dx2, dh' = dh1 + r d(r h') + u dh */
static tn_status compute_grad(tn_kernel_ctx *ctx)
{
  const gru_plan *p = ctx->shape_state;
  const gru_sizes *z = &p->z;
  const int64_t n = z->cell, row = z->in + n;
  char *scratch = ctx->scratch;
  float *from_c = (float *)(scratch + p->at_joined), *from_ru = (float *)(scratch + p->at_ru);
  const float *before = ctx->inputs[1]->data, *r = ctx->inputs[6]->data, *u = ctx->inputs[7]->data;
  const float *c = ctx->inputs[8]->data, *dh = ctx->inputs[9]->data;
  float *dx = ctx->outputs[0]->data, *d_before = ctx->outputs[1]->data;
  float *c_bar = ctx->outputs[2]->data, *ru_bar = ctx->outputs[3]->data;
  for (int64_t i = 0; i < z->batch; i++)
    for (int64_t k = 0; k < n; k++) {
      const int64_t at = i * n + k;
      c_bar[at] = dh[at] * (1 - u[at]) * (1 - c[at] * c[at]);
      ru_bar[(2 * i + 1) * n + k] = dh[at] * (before[at] - c[at]) * u[at] * (1 - u[at]);
    }
  tn__gemm_run(&p->to_c, ctx, c_bar, ctx->inputs[3]->data, from_c, scratch + p->at_gemm);
  for (int64_t i = 0; i < z->batch; i++)
    for (int64_t k = 0; k < n; k++) {
      const int64_t at = i * n + k;
      ru_bar[2 * i * n + k] = from_c[i * row + z->in + k] * before[at] * r[at] * (1 - r[at]);
    }
  tn__gemm_run(&p->to_ru, ctx, ru_bar, ctx->inputs[2]->data, from_ru, scratch + p->at_gemm);
  for (int64_t i = 0; i < z->batch; i++) {
    for (int64_t k = 0; k < z->in; k++) dx[i * z->in + k] = from_ru[i * row + k] + from_c[i * row + k];
    for (int64_t k = 0; k < n; k++) {
      const int64_t at = i * n + k, joined = i * row + z->in + k;
      d_before[at] = from_ru[joined] + from_c[joined] * r[at] + dh[at] * u[at];
    }
  }
  return TN_OK;
}

/* ---- tables ---- */

#define INPUTS "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "GRUBlockCell", .inputs = INPUTS, .outputs = "r: T, u: T, c: T, h: T",
    .attrs = "T: {float}", .infer = infer_cell, .summary = "one step of a GRU layer" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "GRUBlockCellGrad", .inputs = INPUTS ", r: T, u: T, c: T, d_h: T",
    .outputs = "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T", .attrs = "T: {float}", .infer = infer_grad,
    .summary = "gradient of GRUBlockCell" },
};

#define GRU_KERNEL(which, title, kind)                                                                        \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,        \
    .prepare = prepare_##kind, .destroy_shape_state = destroy_plan, .compute = compute_##kind }

static const tn_kernel_def kernels[] = {
  GRU_KERNEL("GRUBlockCell", "gru_block_cell_cpu", cell),
  GRU_KERNEL("GRUBlockCellGrad", "gru_block_cell_grad_cpu", grad),
};

TN_OP_FAMILY(gru)
