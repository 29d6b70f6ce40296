/* SPDX-License-Identifier: Apache-2.0 */
/* Slices picked by index: Gather GatherV2 GatherNd. */
#include <core/base/alloc.h>
#include <ops/kernel/family.h>
#include <ops/kernel/indices.h>
#include <ops/kernel/move/gather.h>

/* ---- Gather ---- */

static void free_plan(void *shape_state) { tn__free(shape_state, sizeof(tn__gather_plan)); }

static tn_status gather_axis(const tn_prepare_ctx *ctx, int64_t *axis, tn_error *err)
{
  *axis = 0;
  if (ctx->n_inputs < 3) return TN_OK;
  tn_status st = tn__want_rank(ctx, 2, 0, err);
  if (st != TN_OK) return st;
  if (ctx->inputs[2].data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 2 is not known", tn_operation_type(ctx->op));
  *axis = tn__view_int_at(&ctx->inputs[2], 0);
  return TN_OK;
}

static tn_status gather_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *p = &ctx->inputs[0], *x = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape params, indices, out;
  tn__shape_set(&params, p->dims, p->rank);
  tn__shape_set(&indices, x->dims, x->rank);
  int64_t wanted;
  int32_t axis, batch;
  tn_status st = gather_axis(ctx, &wanted, err);
  if (st == TN_OK)
    st = tn__gather_places(op, wanted, tn__attr_int(ctx->op, "batch_dims", 0), p->rank, x->rank, &axis, &batch, err);
  if (st == TN_OK) st = tn__gather_shape(op, &params, &indices, axis, batch, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st != TN_OK) return st;
  tn__gather_plan *s = tn__alloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "plan of Gather", sizeof *s);
  ctx->shape_state = s;
  tn__gather_plan_init(s, p->dims, p->rank, x, axis, batch);
  ctx->cost_ns = 20 + (double)s->blocks * (double)s->n * (1 + 0.1 * (double)s->piece);
  return TN_OK;
}

static tn_status gather_compute(tn_kernel_ctx *ctx)
{
  return tn__gather_run(ctx, ctx->shape_state, ctx->inputs[0]->data, ctx->inputs[1], ctx->outputs[0]);
}

/* The output's values are known where those of params are. */
static tn_status infer_picked_ints(tn_infer_ctx *ctx, const tn__shape *out, tn_error *err)
{
  const int64_t *items, *at;
  int64_t n = tn_infer_input_ints(ctx, 0, &items), m = tn_infer_input_ints(ctx, 1, &at), picked[TN_MAX_INFER_INTS];
  tn_dtype dtype = tn_operation_output_dtype(tn_infer_operation(ctx), 0);
  bool fits = out->rank == 0 ? m == 1 : out->rank == 1 && m == out->dims[0];
  if (n < 0 || m < 0 || m > TN_MAX_INFER_INTS || !fits || (dtype != TN_INT32 && dtype != TN_INT64)) return TN_OK;
  for (int64_t i = 0; i < m; i++) picked[i] = at[i] >= 0 && at[i] < n ? items[at[i]] : TN_UNKNOWN_INT;
  return tn_infer_output_ints(ctx, 0, picked, m, err);
}

static tn_status infer_gather(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  tn__shape params, indices, out;
  int64_t wanted = 0, batch_wanted = tn__attr_int(tn_infer_operation(ctx), "batch_dims", 0);
  const int64_t *items;
  tn__shape_unknown(&out);
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &params, err);
  tn__infer_get(ctx, 1, &indices);
  bool known = params.rank >= 0 && indices.rank >= 0;
  if (st == TN_OK && tn_infer_n_inputs(ctx) > 2) {
    st = tn__infer_rank(ctx, 2, 0, &out, err);
    tn__shape_unknown(&out);
    wanted = tn_infer_input_ints(ctx, 2, &items) == 1 ? items[0] : TN_UNKNOWN_INT;
  }
  if (st == TN_OK && known && wanted == TN_UNKNOWN_INT && batch_wanted >= 0 && batch_wanted <= indices.rank) {
    out.rank = 0; /* the rank does not depend on the axis */
    for (int64_t i = 1; i < params.rank + indices.rank - batch_wanted; i++)
      if (!tn__shape_append(&out, -1)) break;
    if (out.rank != params.rank + indices.rank - batch_wanted - 1) tn__shape_unknown(&out);
  } else if (st == TN_OK && known && wanted != TN_UNKNOWN_INT) {
    int32_t axis, batch;
    st = tn__gather_places(op, wanted, batch_wanted, params.rank, indices.rank, &axis, &batch, err);
    if (st == TN_OK) st = tn__gather_shape(op, &params, &indices, axis, batch, &out, err);
  }
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &out, err);
  return st == TN_OK && params.rank == 1 && batch_wanted == 0 ? infer_picked_ints(ctx, &out, err) : st;
}

/* ---- GatherNd ---- */

static tn_status nd_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *p = &ctx->inputs[0], *x = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  tn__shape params, indices, out;
  tn__shape_set(&params, p->dims, p->rank);
  tn__shape_set(&indices, x->dims, x->rank);
  tn_status st = tn__want_rank_at_least(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_rank_at_least(ctx, 1, 1, err);
  if (st == TN_OK) st = tn__gather_nd_shape(op, &params, &indices, &out, err);
  if (st != TN_OK) return st;
  bool any = true;
  for (int32_t i = 0; i < x->rank - 1; i++) any = any && x->dims[i] > 0;
  if (any && p->count == 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 1 has indices, but input 0 has no elements", op);
  ctx->cost_ns = 20 + 3 * (double)x->count;
  return tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

static tn_status nd_compute(tn_kernel_ctx *ctx)
{
  const tn__bad_indices *policy = ctx->state;
  const tn_view *in = ctx->inputs[0];
  return tn__gather_nd_run(ctx, in->data, in->dims, ctx->inputs[1], policy->ignore, ctx->outputs[0]);
}

static tn_status infer_nd(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape params, indices, out;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &params, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, 1, 1, &indices, err);
  if (st == TN_OK) st = tn__gather_nd_shape(tn__infer_op(ctx), &params, &indices, &out, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &out, err);
}

/* ---- tables ---- */

#define OP(op, in, attributes, operands, shapes, text)                                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: Tparams", .attrs = attributes,  \
    .shape_operands = operands, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Gather", "params: Tparams, indices: Tindices",
     "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}", 0, infer_gather,
     "gathers slices of params along the first dimension"),
  OP("GatherNd", "params: Tparams, indices: Tindices",
     "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''", 0, infer_nd,
     "gathers slices of params at multi-dimensional indices"),
  OP("GatherV2", "params: Tparams, indices: Tindices, axis: Taxis",
     "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}", 1u << 2,
     infer_gather, "gathers slices of params along an axis"),
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Gather", .device = "CPU", .name = "gather_cpu", .rank = TN_RANK_C,
    .prepare = gather_prepare, .destroy_shape_state = free_plan, .compute = gather_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "GatherNd", .device = "CPU", .name = "gather_nd_cpu", .rank = TN_RANK_C,
    .create = tn__bad_indices_create, .prepare = nd_prepare, .compute = nd_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "GatherV2", .device = "CPU", .name = "gather_v2_cpu", .rank = TN_RANK_C,
    .prepare = gather_prepare, .destroy_shape_state = free_plan, .compute = gather_compute },
};

TN_OP_FAMILY(gather)
