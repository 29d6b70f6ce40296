/* SPDX-License-Identifier: Apache-2.0 */
/* Joining tensors: Concat ConcatV2, Pack along a new axis, ConcatOffset. */
#include <ops/kernel/family.h>
#include <ops/kernel/move/join.h>
#include <ops/kernel/operands.h>
#include <string.h>

static void destroy_join(void *shape_state) { tn__join_destroy(shape_state); }

/* ---- Concat ConcatV2 ---- */

/* Which inputs are joined, and which one is the axis. */
typedef struct joined {
  uint32_t first, n, axis;
} joined;

static joined joined_of(const tn_operation *op, uint32_t n_inputs)
{
  bool axis_last = strcmp(tn_operation_type(op), "ConcatV2") == 0;
  return (joined){ axis_last ? 0 : 1, n_inputs - 1, axis_last ? n_inputs - 1 : 0 };
}

/* Checks that the inputs have the same shape except along the axis, and sums up the sizes along it. */
static tn_status check_shapes(const tn_prepare_ctx *ctx, const joined *j, int32_t axis, int64_t *sum, tn_error *err)
{
  const tn_view *first = &ctx->inputs[j->first];
  *sum = 0;
  for (uint32_t i = j->first; i < j->first + j->n; i++) {
    const tn_view *in = &ctx->inputs[i];
    bool fits = in->rank == first->rank;
    for (int32_t k = 0; k < first->rank && fits; k++) fits = k == axis || in->dims[k] == first->dims[k];
    if (!fits) {
      tn__shape wanted;
      tn__shape_set(&wanted, first->dims, first->rank);
      wanted.dims[axis] = -1;
      return tn__shape_error(err, ctx, i, wanted.dims, wanted.rank);
    }
    if (__builtin_add_overflow(*sum, in->dims[axis], sum))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the sizes along axis %d are too large together",
                          tn_operation_type(ctx->op), (int)axis);
  }
  return TN_OK;
}

/* Finds the only joined input that has elements; returns false if there are several, or none. */
static bool only_one(const tn_prepare_ctx *ctx, const joined *j, uint32_t *which)
{
  uint32_t n = 0;
  for (uint32_t i = j->first; i < j->first + j->n; i++)
    if (ctx->inputs[i].count > 0) *which = i, n++;
  return n == 1;
}

static tn_status concat_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  joined j = joined_of(ctx->op, ctx->n_inputs);
  const tn_view *first = &ctx->inputs[j.first];
  int32_t axis;
  tn__shape out;
  int64_t count;
  uint32_t only;
  tn_status st = tn__want_axis(ctx, j.axis, 1, first->rank, &axis, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, first->dims, first->rank);
  st = check_shapes(ctx, &j, axis, &out.dims[axis], err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = tn_shape_elements(out.dims, out.rank, &count, err);
  if (st != TN_OK || count == 0) return st;
  if (only_one(ctx, &j, &only)) return tn_prepare_view(ctx, 0, only, err);
  tn__join *join = tn__join_create(first->dtype, out.dims, axis, out.rank, j.n);
  if (join == NULL) return tn__join_no_memory(ctx, err);
  for (uint32_t i = j.first; i < j.first + j.n; i++) tn__join_add(join, i, ctx->inputs[i].dims[axis]);
  ctx->shape_state = join;
  ctx->cost_ns = tn__join_cost(join);
  return TN_OK;
}

static tn_status join_compute(tn_kernel_ctx *ctx)
{
  if (ctx->shape_state == NULL) return TN_OK; /* no elements */
  return tn__join_gather(ctx->shape_state, ctx, ctx->inputs, ctx->outputs[0]->data);
}

/* The output's values are known where those of the inputs are. */
static tn_status infer_joined_ints(tn_infer_ctx *ctx, const joined *j, int64_t n, tn_error *err)
{
  int64_t all[TN_MAX_INFER_INTS], at = 0;
  bool some = false;
  if (n < 0 || n > TN_MAX_INFER_INTS) return TN_OK;
  for (uint32_t i = j->first; i < j->first + j->n; i++) {
    const int64_t *items, *dims;
    int64_t known = tn_infer_input_ints(ctx, i, &items);
    tn_infer_input(ctx, i, &dims);
    some |= known > 0;
    for (int64_t k = 0; k < dims[0]; k++) all[at++] = known == dims[0] ? items[k] : TN_UNKNOWN_INT;
  }
  return some ? tn_infer_output_ints(ctx, 0, all, n, err) : TN_OK;
}

/* Merges the shape of input i into *s. *sum is the total size along the axis, -1 once one is
 * unknown. */
static tn_status infer_more(tn_infer_ctx *ctx, size_t i, int32_t axis, tn__shape *s, int64_t *sum, tn_error *err)
{
  tn__shape in;
  tn__infer_get(ctx, i, &in);
  int64_t size = in.rank < 0 || axis < 0 ? -1 : in.dims[axis];
  if (size < 0 || *sum < 0 || __builtin_add_overflow(*sum, size, sum)) *sum = -1;
  for (int32_t k = 0; k < in.rank; k++)
    if (axis < 0 || k == axis) in.dims[k] = -1;
  if (tn__shape_merge(s, in.dims, in.rank)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu does not fit the inputs before it", tn__infer_op(ctx),
                      i);
}

static tn_status infer_concat(tn_infer_ctx *ctx, tn_error *err)
{
  joined j = joined_of(tn_infer_operation(ctx), (uint32_t)tn_infer_n_inputs(ctx));
  tn__shape s;
  tn__shape_unknown(&s);
  for (uint32_t i = j.first; i < j.first + j.n && s.rank < 0; i++) tn__infer_get(ctx, i, &s);
  int32_t axis;
  int64_t sum = 0;
  tn_status st = tn__infer_axis(ctx, j.axis, s.rank, &axis, err);
  for (int32_t k = 0; k < s.rank; k++)
    if (axis < 0 || k == axis) s.dims[k] = -1;
  for (uint32_t i = j.first; i < j.first + j.n && st == TN_OK; i++) st = infer_more(ctx, i, axis, &s, &sum, err);
  if (st != TN_OK) return st;
  if (axis >= 0) s.dims[axis] = sum;
  st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK && s.rank == 1 ? infer_joined_ints(ctx, &j, s.dims[0], err) : st;
}

/* ---- Pack ---- */

/* Inserts a dimension of size n at the axis; returns false if the rank would exceed TN_MAX_RANK. */
static bool insert(tn__shape *s, int32_t axis, int64_t n)
{
  if (!tn__shape_append(s, n)) return false;
  for (int32_t k = s->rank - 1; k > axis; k--) s->dims[k] = s->dims[k - 1];
  s->dims[axis] = n;
  return true;
}

/* The shape of n tensors of shape *s packed along the axis given by the attribute. */
static tn_status pack_shape(const tn_operation *op, tn__shape *s, int64_t n, int32_t *axis, tn_error *err)
{
  const char *name = tn_operation_type(op);
  tn_status st = tn__shape_axis(name, tn__attr_int(op, "axis", 0), s->rank + 1, axis, err);
  if (st != TN_OK || insert(s, *axis, n)) return st;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the inputs have %d dimensions already", name, TN_MAX_RANK);
}

static tn_status pack_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int32_t axis;
  int64_t count;
  for (uint32_t i = 1; i < ctx->n_inputs; i++) {
    tn_status st = tn__want_same_shape(ctx, 0, i, err);
    if (st != TN_OK) return st;
  }
  tn__shape_set(&s, ctx->inputs[0].dims, ctx->inputs[0].rank);
  tn_status st = pack_shape(ctx->op, &s, ctx->n_inputs, &axis, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, s.dims, s.rank, err);
  if (st == TN_OK) st = tn_shape_elements(s.dims, s.rank, &count, err);
  if (st != TN_OK || count == 0) return st;
  if (ctx->n_inputs == 1) return tn_prepare_view(ctx, 0, 0, err);
  tn__join *join = tn__join_create(ctx->inputs[0].dtype, s.dims, axis, s.rank, ctx->n_inputs);
  if (join == NULL) return tn__join_no_memory(ctx, err);
  for (uint32_t i = 0; i < ctx->n_inputs; i++) tn__join_add(join, i, 1);
  ctx->shape_state = join;
  ctx->cost_ns = tn__join_cost(join);
  return TN_OK;
}

/* The output's values are known where those of the inputs are. */
static tn_status infer_packed_ints(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t all[TN_MAX_INFER_INTS];
  size_t n = tn_infer_n_inputs(ctx);
  bool some = false;
  if (n > TN_MAX_INFER_INTS) return TN_OK;
  for (size_t i = 0; i < n; i++) {
    const int64_t *item;
    bool known = tn_infer_input_ints(ctx, i, &item) == 1;
    all[i] = known ? item[0] : TN_UNKNOWN_INT;
    some |= known;
  }
  return some ? tn_infer_output_ints(ctx, 0, all, (int64_t)n, err) : TN_OK;
}

static tn_status infer_pack(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int32_t axis;
  size_t n = tn_infer_n_inputs(ctx);
  tn__infer_get(ctx, 0, &s);
  for (size_t i = 1; i < n; i++) {
    tn__shape more;
    tn__infer_get(ctx, i, &more);
    if (!tn__shape_merge(&s, more.dims, more.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %zu has a different shape than the inputs before it",
                          tn__infer_op(ctx), i);
  }
  if (s.rank < 0) return tn__infer_set(ctx, 0, &s, err);
  tn_status st = pack_shape(tn_infer_operation(ctx), &s, (int64_t)n, &axis, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &s, err);
  return st == TN_OK && s.rank == 1 ? infer_packed_ints(ctx, err) : st;
}

/* ---- ConcatOffset ---- */

static tn_status offset_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++) {
    st = tn__want_rank(ctx, i + 1, 1, err);
    if (st == TN_OK) st = tn__want_same_shape(ctx, 1, i + 1, err);
    if (st == TN_OK) st = tn_prepare_output_like(ctx, i, i + 1, err);
  }
  ctx->cost_ns = 20 + 10.0 * ctx->n_outputs;
  return st;
}

static void put_int(tn_view *v, int64_t k, int64_t number)
{
  if (v->dtype == TN_INT64)
    ((int64_t *)v->data)[k] = number;
  else
    ((int32_t *)v->data)[k] = (int32_t)number;
}

static tn_status offset_compute(tn_kernel_ctx *ctx)
{
  const tn_view *first = ctx->inputs[1];
  int64_t offset = 0;
  int32_t axis;
  if (first->count > TN_MAX_RANK)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "ConcatOffset: a shape of %lld sizes", (long long)first->count);
  tn_status st = tn__shape_axis("ConcatOffset", tn__view_int_at(ctx->inputs[0], 0), (int32_t)first->count, &axis,
                                ctx->err);
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++) {
    const tn_view *shape = ctx->inputs[i + 1];
    for (int64_t k = 0; k < shape->count; k++) {
      int64_t size = tn__view_int_at(shape, k), wanted = tn__view_int_at(first, k);
      if (k != axis && size != wanted)
        return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "ConcatOffset: size %lld of input %u is %lld, wanted %lld",
                            (long long)k, i + 1, (long long)size, (long long)wanted);
      put_int(ctx->outputs[i], k, k == axis ? offset : 0);
    }
    offset = (int64_t)((uint64_t)offset + (uint64_t)tn__view_int_at(shape, axis));
  }
  return st;
}

static tn_status infer_offset(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = TN_OK;
  for (size_t i = 1; i < tn_infer_n_inputs(ctx) && st == TN_OK; i++) {
    tn__shape s;
    st = tn__infer_rank(ctx, i, 1, &s, err);
    if (st == TN_OK) st = tn__infer_set(ctx, i - 1, &s, err);
  }
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Concat", "concat_dim: int32, values: N * T", "output: T", "N: int >= 2; T: type", 1u << 0, infer_concat,
     "concatenates tensors along an axis"),
  OP("ConcatOffset", "concat_dim: int32, shape: N * shape_type", "offset: N * shape_type",
     "N: int >= 2; shape_type: {int32, int64} = int32", 0, infer_offset,
     "offsets of the inputs of Concat in its output"),
  OP("ConcatV2", "values: N * T, axis: Tidx", "output: T", "N: int >= 2; T: type; Tidx: {int32, int64} = int32",
     1u << 1, infer_concat, "concatenates tensors along an axis"),
  OP("Pack", "values: N * T", "output: T", "N: int >= 1; T: type; axis: int = 0", 0, infer_pack,
     "stacks tensors along a new axis"),
};

#define KERNEL(which, title, prepare_fn, destroy_fn, compute_fn)                                            \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,      \
    .prepare = prepare_fn, .destroy_shape_state = destroy_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("Concat", "concat_cpu", concat_prepare, destroy_join, join_compute),
  KERNEL("ConcatOffset", "concat_offset_cpu", offset_prepare, NULL, offset_compute),
  KERNEL("ConcatV2", "concat_v2_cpu", concat_prepare, destroy_join, join_compute),
  KERNEL("Pack", "pack_cpu", pack_prepare, destroy_join, join_compute),
};

TN_OP_FAMILY(concat)
