/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPoolWithArgmax, which also returns the indices of the maxima, and its gradient. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/poll.h>
#include <ops/kernel/shapes.h>
#include <ops/nn/pool/pooling.h>
#include <string.h>

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  return tn__pool_create(op, 2, 0, state, err);
}

/* ---- MaxPoolWithArgmax ---- */

static tn_status infer_argmax(tn_infer_ctx *ctx, tn_error *err)
{
  tn__volume_window w;
  bool known = tn__volume_read(tn_infer_operation(ctx), 2, &w, NULL) == TN_OK; /* the kernel reports the error */
  return tn__volume_infer_pool(ctx, 2, &w, known, 2, err);
}

static tn_status prepare_argmax(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__pool_plan *p;
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__pool_plan_create(ctx, ctx->inputs[0].dims, &p, err);
  for (uint32_t i = 0; i < 2 && st == TN_OK; i++) st = tn_prepare_output(ctx, i, p->out_dims, 4, err);
  if (st != TN_OK) return st;
  /* Indices are relative to the whole batch, or to each image. */
  if (tn__attr_bool(ctx->op, "include_batch_in_index", false)) p->batch = 0;
  tn__pool_form(ctx, p, 0, true);
  tn__pool_form(ctx, p, 1, false);
  return TN_OK;
}

typedef struct argmax_run {
  tn__pool_run run;
  void *index;
  bool is_long; /* 64-bit indices */
} argmax_run;

static void argmax_part(void *user, int64_t begin, int64_t end)
{
  const argmax_run *a = user;
  const tn__pool_run *r = &a->run;
  const tn__pool_plan *p = r->plan;
  const tn__pool_loops *l = r->state->loops;
  const size_t size = r->state->size;
  int64_t where[TN__POOL_BLOCK], first;
  tn__poll poll = tn__poll_here();
  tn__cells cells;
  for (int64_t line = begin; line < end; line++)
    for (int64_t at = 0; at < p->out.size[2]; at++) {
      if (!tn__pool_cells(p, line, at, &cells, &first)) continue; /* never: paddings are narrower than a window */
      const int64_t to = (line * p->out.size[2] + at) * p->in.c, origin = line / p->out.size[1] * p->batch;
      for (int64_t c = 0; c < p->in.c; c += TN__POOL_BLOCK) {
        if (tn__poll_over(&poll, tn__cells_ns(&cells))) return;
        const int64_t n = p->in.c - c < TN__POOL_BLOCK ? p->in.c - c : TN__POOL_BLOCK;
        const char *in = r->in + (size_t)(first + c) * size;
        l->best(in, &cells, n, where);
        l->take(in, where, n, r->out + (size_t)(to + c) * size);
        for (int64_t j = 0; j < n; j++) {
          const int64_t index = first + c + j + where[j] - origin;
          if (a->is_long)
            ((int64_t *)a->index)[to + c + j] = index;
          else
            ((int32_t *)a->index)[to + c + j] = (int32_t)index;
        }
      }
    }
}

static tn_status compute_argmax(tn_kernel_ctx *ctx)
{
  const tn__pool_plan *p = ctx->shape_state;
  argmax_run a = { { .state = ctx->state, .plan = p }, ctx->outputs[1]->data, ctx->outputs[1]->dtype == TN_INT64 };
  if (ctx->outputs[0]->count == 0) return TN_OK;
  a.run.in = tn__form_load(&p->form[0], ctx, ctx->inputs[0]->data, ctx->scratch);
  a.run.out = tn__form_room(&p->form[1], ctx->outputs[0]->data, ctx->scratch);
  double cost = (double)(p->out.size[2] * p->in.c) * (double)p->axis[1].size * (double)p->axis[2].size;
  tn__run_parts(ctx, p->lines, cost, argmax_part, &a);
  tn__form_store(&p->form[1], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}

/* ---- MaxPoolGradWithArgmax ---- */

static tn_status prepare_grad(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__pool_plan *p;
  tn_status st = tn__want_rank(ctx, 0, 4, err);
  if (st == TN_OK) st = tn__pool_plan_create(ctx, ctx->inputs[0].dims, &p, err);
  if (st == TN_OK) st = tn__want_shape(ctx, 1, p->out_dims, 4, err);
  if (st == TN_OK) st = tn__want_same_shape(ctx, 1, 2, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  if (tn__attr_bool(ctx->op, "include_batch_in_index", false)) p->batch = 0;
  tn__pool_form(ctx, p, 0, false);
  tn__pool_form(ctx, p, 1, true);
  return TN_OK;
}

static tn_status compute_grad(tn_kernel_ctx *ctx)
{
  const tn__pool_plan *p = ctx->shape_state;
  const tn__pool_state *s = ctx->state;
  const tn_view *index = ctx->inputs[2];
  if (p->ins == 0) return TN_OK;
  const char *from = tn__form_load(&p->form[0], ctx, ctx->inputs[1]->data, ctx->scratch);
  char *out = tn__form_room(&p->form[1], ctx->outputs[0]->data, ctx->scratch);
  memset(out, 0, (size_t)p->ins * s->size);
  const int64_t results = p->outs == 0 ? 1 : p->outs / p->out.n; /* per image */
  tn__poll poll = tn__poll_of(ctx);
  for (int64_t i = 0; i < p->outs; i++) {
    if (tn__poll_over(&poll, 10)) return TN_CANCELLED;
    const int64_t said = tn__view_int_at(index, i), origin = i / results * p->batch;
    if (said < 0 || said >= p->ins - origin)
      return tn_error_set(ctx->err, TN_INVALID_ARGUMENT,
                          "MaxPoolGradWithArgmax: element %lld of input 2 is %lld, wanted 0 to %lld", (long long)i,
                          (long long)said, (long long)(p->ins - origin - 1));
    const int64_t where = said + origin;
    s->loops->add(out, &where, 1, from + (size_t)i * s->size);
  }
  tn__form_store(&p->form[1], ctx, ctx->outputs[0]->data, ctx->scratch);
  return TN_OK;
}

/* ---- tables ---- */

#define ATTRS                                                                                                 \
  "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; "                              \
  "include_batch_in_index: bool = false; "                                                                    \
  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; "            \
  "Targmax: {int32, int64}"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "MaxPoolGradWithArgmax", .inputs = "input: T, grad: T, argmax: Targmax",
    .outputs = "output: T", .attrs = ATTRS, .infer = tn__pool_infer_image, .summary = "gradient of MaxPoolWithArgmax" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "MaxPoolWithArgmax", .inputs = "input: T",
    .outputs = "output: T, argmax: Targmax", .attrs = ATTRS " = int64", .infer = infer_argmax,
    .summary = "max pooling of images, with the indices of the maxima" },
};

#define ARGMAX_KERNEL(which, title, prepare_, compute_)                                                  \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,   \
    .create = create, .destroy = tn__pool_destroy, .prepare = prepare_,                                  \
    .destroy_shape_state = tn__pool_destroy_plan, .compute = compute_ }

static const tn_kernel_def kernels[] = {
  ARGMAX_KERNEL("MaxPoolGradWithArgmax", "max_pool_grad_argmax_cpu", prepare_grad, compute_grad),
  ARGMAX_KERNEL("MaxPoolWithArgmax", "max_pool_argmax_cpu", prepare_argmax, compute_argmax),
};

TN_OP_FAMILY(pool_argmax)
