/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot: a row for each index, `on` at the index and `off` elsewhere. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

/* Shape state: the output is [before, depth, after], the indices are [before, after]. */
typedef struct one_hot_plan {
  int64_t before, depth, after;
} one_hot_plan;

static void free_plan(void *shape_state) { tn__free(shape_state, sizeof(one_hot_plan)); }

/* The output's shape: the indices' shape with `depth` inserted at the axis. Axis -1 is the last one. */
static tn_status one_hot_shape(const char *op, tn__shape *s, int64_t axis_wanted, int64_t depth, int32_t *axis,
                               tn_error *err)
{
  *axis = 0;
  if (axis_wanted < -1 || axis_wanted > s->rank)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: axis is %lld, wanted one in [-1, %d]", op,
                        (long long)axis_wanted, (int)s->rank);
  *axis = (int32_t)(axis_wanted < 0 ? s->rank : axis_wanted);
  if (!tn__shape_append(s, depth))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has %d dimensions already", op, TN_MAX_RANK);
  for (int32_t i = s->rank - 1; i > *axis; i--) s->dims[i] = s->dims[i - 1];
  s->dims[*axis] = depth;
  return TN_OK;
}

static tn_status check_depth(const char *op, int64_t depth, tn_error *err)
{
  if (depth >= 0) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: depth (input 1) is %lld", op, (long long)depth);
}

static tn_status one_hot_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = TN_OK;
  for (uint32_t i = 1; st == TN_OK && i < 4; i++) st = tn__want_rank(ctx, i, 0, err);
  if (st != TN_OK) return st;
  if (ctx->inputs[1].data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 1 is not known", op);
  int64_t depth = tn__view_int_at(&ctx->inputs[1], 0);
  int32_t axis;
  tn__shape s;
  tn__shape_set(&s, x->dims, x->rank);
  st = check_depth(op, depth, err);
  if (st == TN_OK) st = one_hot_shape(op, &s, tn__attr_int(ctx->op, "axis", -1), depth, &axis, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st != TN_OK) return st;
  one_hot_plan *p = tn__alloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "plan of OneHot", sizeof *p);
  ctx->shape_state = p;
  *p = (one_hot_plan){ 1, depth, 1 };
  for (int32_t i = 0; i < x->rank && x->count > 0; i++) *(i < axis ? &p->before : &p->after) *= x->dims[i];
  ctx->cost_ns = 20 + 2 * (double)x->count + 0.1 * (double)x->count * (double)depth;
  return TN_OK;
}

typedef struct one_hot_run {
  const one_hot_plan *plan;
  const tn_view *indices;
  tn_dtype dtype;
  size_t size;
  const void *on, *off;
  char *out;
  tn_error *err;
  tn_status status;
} one_hot_run;

/* Rows [begin, end) of `before`. */
static void one_hot_part(void *user, int64_t begin, int64_t end)
{
  one_hot_run *r = user;
  const one_hot_plan *p = r->plan;
  bool managed = tn__dtype_is_managed(r->dtype);
  for (int64_t b = begin; b < end && r->status == TN_OK; b++) {
    char *to = r->out + (size_t)(b * p->depth * p->after) * r->size;
    if (managed)
      r->status = tn__fill_elements(r->dtype, to, r->off, p->depth * p->after, r->err);
    else
      tn__fill_bytes(r->size, to, r->off, p->depth * p->after);
    for (int64_t a = 0; a < p->after && r->status == TN_OK; a++) {
      int64_t index = tn__index_at(r->indices, b * p->after + a);
      if (index < 0 || index >= p->depth) continue;
      char *place = to + (size_t)(index * p->after + a) * r->size;
      if (managed)
        r->status = tn__copy_elements(r->dtype, place, r->on, 1, r->err);
      else
        memcpy(place, r->on, r->size);
    }
  }
}

static tn_status one_hot_compute(tn_kernel_ctx *ctx)
{
  const one_hot_plan *p = ctx->shape_state;
  tn_view *out = ctx->outputs[0];
  if (out->count == 0) return TN_OK;
  one_hot_run r = { p, ctx->inputs[0], out->dtype, tn_dtype_size(out->dtype), ctx->inputs[2]->data,
                    ctx->inputs[3]->data, out->data, ctx->err, TN_OK };
  int64_t each = p->depth * p->after;
  if (out->count <= 2 * TN__SERIAL_ELEMENTS || tn__dtype_is_managed(out->dtype))
    one_hot_part(&r, 0, p->before);
  else
    tn_parallel_for(ctx, p->before, TN__SERIAL_ELEMENTS / each + 1, 5 + 0.1 * (double)each, one_hot_part, &r);
  return r.status;
}

static tn_status infer_one_hot(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  tn__shape s, scalar;
  tn_status st = TN_OK;
  for (size_t i = 1; st == TN_OK && i < 4; i++) st = tn__infer_rank(ctx, i, 0, &scalar, err);
  if (st != TN_OK) return st;
  tn__infer_get(ctx, 0, &s);
  const int64_t *items;
  int64_t depth = -1;
  int32_t axis;
  if (tn_infer_input_ints(ctx, 1, &items) == 1 && items[0] != TN_UNKNOWN_INT) {
    depth = items[0];
    st = check_depth(op, depth, err);
  }
  if (st == TN_OK && s.rank >= 0)
    st = one_hot_shape(op, &s, tn__attr_int(tn_infer_operation(ctx), "axis", -1), depth, &axis, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, &s, err);
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "OneHot",
    .inputs = "indices: TI, depth: int32, on_value: T, off_value: T", .outputs = "output: T",
    .attrs = "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64", .shape_operands = 1u << 1,
    .infer = infer_one_hot, .summary = "one-hot vectors with on_value at each index and off_value elsewhere" },
};

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "OneHot", .device = "CPU", .name = "one_hot_cpu", .rank = TN_RANK_C,
    .prepare = one_hot_prepare, .destroy_shape_state = free_plan, .compute = one_hot_compute },
};

TN_OP_FAMILY(one_hot)
