/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <ops/rnn/cell_loops.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* ---- operands as floats ---- */

void tn__cell_floats_plan(tn_prepare_ctx *ctx, tn__cell_floats *f, uint32_t first, const int64_t *out_counts)
{
  for (uint32_t i = first; i < ctx->n_inputs; i++) {
    const tn__volume v = { 1, { 1, 1, ctx->inputs[i].count }, 1 };
    tn__form_plan(&f->in[i], ctx->inputs[i].dtype, false, &v, &ctx->scratch_bytes);
  }
  for (uint32_t i = 0; i < ctx->n_outputs; i++) {
    const tn__volume v = { 1, { 1, 1, out_counts[i] }, 1 };
    tn__form_plan(&f->out[i], tn_operation_output_dtype(ctx->op, i), false, &v, &ctx->scratch_bytes);
  }
}

const float *tn__cell_in(tn_kernel_ctx *ctx, const tn__cell_floats *f, uint32_t i)
{
  return tn__form_load(&f->in[i], ctx, ctx->inputs[i]->data, ctx->scratch);
}

float *tn__cell_out(tn_kernel_ctx *ctx, const tn__cell_floats *f, uint32_t i)
{
  return tn__form_room(&f->out[i], ctx->outputs[i]->data, ctx->scratch);
}

void tn__cell_store(tn_kernel_ctx *ctx, const tn__cell_floats *f)
{
  for (uint32_t i = 0; i < ctx->n_outputs; i++)
    if (ctx->outputs[i]->count > 0) tn__form_store(&f->out[i], ctx, ctx->outputs[i]->data, ctx->scratch);
}

tn__gemm_plan tn__cell_product(const tn_prepare_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t b_row, bool turned)
{
  tn__gemm_plan g = { .type = TN__GEMM_F32, .m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = turned ? 1 : b_row,
                      .b_col = turned ? b_row : 1, .c_row = n, .reproducible = ctx->reproducible };
  tn__gemm_plan_choose(&g);
  return g;
}

/* ---- LSTM ---- */

tn_status tn__lstm_create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  const char *type = tn_operation_type(op);
  tn__lstm_state s = { .forget_bias = tn__attr_float(op, "forget_bias", 0), .clip = tn__attr_float(op, "cell_clip", 0),
                       .peephole = tn__attr_bool(op, "use_peephole", false) };
  s.block = strncmp(type, "Block", 5) == 0;
  s.gradient = strstr(type, "Grad") != NULL;
  s.ifco = s.block && type[strlen(type) - 1] == '2';
  s.dtype = tn_operation_output_dtype(op, 0);
  return tn__keep_state(&s, sizeof s, "LSTM cell", state, err);
}

void tn__lstm_destroy(void *state) { tn__free(state, sizeof(tn__lstm_state)); }

/* Checks the inputs of a gradient: the cell's values and the gradients of two of them, all of the same shape. */
static tn_status want_values(const tn_prepare_ctx *ctx, const tn__lstm_sizes *z, uint32_t first, tn_error *err)
{
  const tn__lstm_state *s = ctx->state;
  const int64_t dims[3] = { z->steps, z->batch, z->cell };
  tn_status st = TN_OK;
  for (uint32_t i = first; i < ctx->n_inputs && st == TN_OK; i++)
    st = s->block ? tn__want_shape(ctx, i, dims, 3, err) : tn__want_shape(ctx, i, dims + 1, 2, err);
  return st;
}

tn_status tn__lstm_measure(const tn_prepare_ctx *ctx, tn__lstm_sizes *z, tn_error *err)
{
  const tn__lstm_state *s = ctx->state;
  uint32_t x = s->block ? 1 : 0;
  tn_status st = s->block ? tn__want_rank(ctx, 0, 0, err) : TN_OK;
  if (st == TN_OK) st = tn__want_rank(ctx, x, s->block ? 3 : 2, err);
  if (st == TN_OK) st = tn__want_rank(ctx, x + 1, 2, err);
  if (st != TN_OK) return st;
  const int64_t *dims = ctx->inputs[x].dims;
  z->steps = s->block ? dims[0] : 1;
  z->batch = dims[x];
  z->in = dims[x + 1];
  z->cell = ctx->inputs[x + 1].dims[1];
  int64_t all, rows, gates;
  if (__builtin_add_overflow(z->in, z->cell, &rows) || __builtin_mul_overflow(z->cell, 4, &gates) ||
      __builtin_mul_overflow(z->steps, z->batch, &all))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: sizes overflow 64 bits", tn_operation_type(ctx->op));
  const int64_t state[2] = { z->batch, z->cell }, w[2] = { rows, gates };
  for (uint32_t i = 1; i < 3 && st == TN_OK; i++) st = tn__want_shape(ctx, x + i, state, 2, err);
  if (st == TN_OK) st = tn__want_shape(ctx, x + 3, w, 2, err);
  for (uint32_t i = 4; i < 7 && st == TN_OK; i++) st = tn__want_shape(ctx, x + i, &z->cell, 1, err);
  if (st == TN_OK) st = tn__want_shape(ctx, x + 7, &gates, 1, err);
  return st != TN_OK || !s->gradient ? st : want_values(ctx, z, x + 8, err);
}

tn_status tn__lstm_length(const tn_kernel_ctx *ctx, const tn__lstm_sizes *z, int64_t *out)
{
  const tn__lstm_state *s = ctx->state;
  *out = z->steps;
  if (!s->block) return TN_OK;
  *out = *(const int64_t *)ctx->inputs[0]->data;
  if (*out >= 0 && *out <= z->steps) return TN_OK;
  return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "BlockLSTM: input 0 is %lld, wanted 0 to %lld steps",
                      (long long)*out, (long long)z->steps);
}
