/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting tensors along an axis: Split SplitV, Unpack. */
#include <ops/kernel/family.h>
#include <ops/kernel/move/join.h>
#include <ops/kernel/operands.h>

static void destroy_join(void *shape_state) { tn__join_destroy(shape_state); }

static tn_status split_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[ctx->n_inputs == 2 ? 1 : 0]; /* the first input of Split is the axis */
  if (ctx->shape_state == NULL) return TN_OK;                  /* no elements */
  return tn__join_scatter(ctx->shape_state, ctx, in->data, ctx->outputs);
}

/* Plans one part per output, for an input that has elements. */
static tn_status make_join(tn_prepare_ctx *ctx, const tn_view *in, int32_t axis, tn__join **out, tn_error *err)
{
  *out = tn__join_create(in->dtype, in->dims, axis, in->rank, ctx->n_outputs);
  if (*out == NULL) return tn__join_no_memory(ctx, err);
  ctx->shape_state = *out;
  return TN_OK;
}

/* ---- Split ---- */

static tn_status not_divisible(const char *op, int64_t size, int32_t axis, int64_t n, tn_error *err)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: dimension %d has size %lld, which cannot be split in %lld", op,
                      (int)axis, (long long)size, (long long)n);
}

static tn_status split_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[1];
  int32_t axis;
  tn__shape out;
  tn__join *join;
  tn_status st = tn__want_axis(ctx, 0, 0, in->rank, &axis, err);
  if (st != TN_OK) return st;
  tn__shape_set(&out, in->dims, in->rank);
  if (out.dims[axis] % ctx->n_outputs != 0)
    return not_divisible(tn_operation_type(ctx->op), out.dims[axis], axis, ctx->n_outputs, err);
  out.dims[axis] /= ctx->n_outputs;
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++)
    st = tn_prepare_output(ctx, i, out.dims, out.rank, err);
  if (st == TN_OK && ctx->n_outputs == 1) return tn_prepare_view(ctx, 0, 1, err);
  if (st != TN_OK || in->count == 0) return st;
  st = make_join(ctx, in, axis, &join, err);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < ctx->n_outputs; i++) tn__join_add(join, i, out.dims[axis]);
  ctx->cost_ns = tn__join_cost(join);
  return TN_OK;
}

static tn_status infer_all(tn_infer_ctx *ctx, const tn__shape *s, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  for (size_t i = 0; i < n && st == TN_OK; i++) st = tn__infer_set(ctx, i, s, err);
  return st;
}

/* The outputs' values are known where those of the input are. Output i has sizes[i] elements. */
static tn_status infer_pieces(tn_infer_ctx *ctx, size_t input, const int64_t *sizes, size_t n, tn_error *err)
{
  const int64_t *items;
  int64_t known = tn_infer_input_ints(ctx, input, &items), at = 0;
  for (size_t i = 0; i < n; i++) {
    if (sizes[i] < 0 || sizes[i] > known - at) return TN_OK;
    tn_status st = tn_infer_output_ints(ctx, i, items + at, sizes[i], err);
    if (st != TN_OK) return st;
    at += sizes[i];
  }
  return TN_OK;
}

static tn_status infer_split(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s, scalar;
  int32_t axis;
  int64_t n = (int64_t)tn_operation_n_outputs(tn_infer_operation(ctx));
  tn__infer_get(ctx, 1, &s);
  tn_status st = tn__infer_rank(ctx, 0, 0, &scalar, err);
  if (st == TN_OK) st = tn__infer_axis(ctx, 0, s.rank, &axis, err);
  if (st != TN_OK) return st;
  for (int32_t k = 0; k < s.rank && axis < 0; k++) s.dims[k] = -1;
  if (axis >= 0 && s.dims[axis] >= 0) {
    if (s.dims[axis] % n != 0) return not_divisible(tn__infer_op(ctx), s.dims[axis], axis, n, err);
    s.dims[axis] /= n;
  }
  st = infer_all(ctx, &s, err);
  if (st != TN_OK || s.rank != 1 || n > TN_MAX_INFER_INTS) return st;
  int64_t sizes[TN_MAX_INFER_INTS];
  for (int64_t i = 0; i < n; i++) sizes[i] = s.dims[0];
  return infer_pieces(ctx, 1, sizes, (size_t)n, err);
}

/* ---- SplitV ---- */

/* Checks that the sizes fit a dimension of size `whole`. *rest is what they leave for a size of -1. */
static tn_status check_sizes(const tn_prepare_ctx *ctx, int64_t whole, int64_t *rest, tn_error *err)
{
  const tn_view *sizes = &ctx->inputs[1];
  int64_t hole = -1, left = whole;
  for (int64_t k = 0; k < sizes->count && left >= 0; k++) {
    int64_t size = tn__operand_int(sizes, k);
    if (size < -1)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "SplitV: size %lld is %lld", (long long)k, (long long)size);
    if (size == -1 && hole >= 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "SplitV: sizes %lld and %lld are both -1, only one can be worked out", (long long)hole,
                          (long long)k);
    if (size == -1) hole = k;
    else left = size > left ? -1 : left - size;
  }
  *rest = left;
  if (hole >= 0 && sizes->count == 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "SplitV: the only size is -1, wanted %lld, the size of the dimension",
                        (long long)whole); /* as in TensorFlow: a single size must be explicit */
  if (left == 0 || (left > 0 && hole >= 0)) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "SplitV: %lld sizes are together %s than the dimension's size of %lld",
                      (long long)sizes->count, left < 0 ? "more" : "less", (long long)whole);
}

static int64_t size_at(const tn_prepare_ctx *ctx, uint32_t i, int64_t rest)
{
  int64_t size = tn__operand_int(&ctx->inputs[1], i);
  return size == -1 ? rest : size;
}

static tn_status prepare_parts(tn_prepare_ctx *ctx, int32_t axis, int64_t rest, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape out;
  tn__join *join;
  uint32_t all = ctx->n_outputs; /* the output that is the whole input */
  tn__shape_set(&out, in->dims, in->rank);
  for (uint32_t i = 0; i < ctx->n_outputs; i++) {
    out.dims[axis] = size_at(ctx, i, rest);
    if (out.dims[axis] == in->dims[axis]) all = i;
    tn_status st = tn_prepare_output(ctx, i, out.dims, out.rank, err);
    if (st != TN_OK) return st;
  }
  if (in->count == 0) return TN_OK;
  if (all < ctx->n_outputs) return tn_prepare_view(ctx, all, 0, err);
  tn_status st = make_join(ctx, in, axis, &join, err);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < ctx->n_outputs; i++) tn__join_add(join, i, size_at(ctx, i, rest));
  ctx->cost_ns = tn__join_cost(join);
  return TN_OK;
}

static tn_status splitv_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int32_t axis;
  int64_t rest = 0;
  tn_status st = tn__want_vector(ctx, 1, ctx->n_outputs, err);
  if (st == TN_OK) st = tn__want_axis(ctx, 2, TN_MAX_RANK, in->rank, &axis, err);
  if (st == TN_OK) st = check_sizes(ctx, in->dims[axis], &rest, err);
  return st != TN_OK ? st : prepare_parts(ctx, axis, rest, err);
}

/* Computes the size that is -1 if all the others are known. */
static void fill_hole(int64_t *sizes, int64_t n, int64_t whole)
{
  int64_t hole = -1, left = whole;
  for (int64_t k = 0; k < n; k++) {
    if (sizes[k] == -1 && hole < 0) hole = k;
    else if (sizes[k] < 0 || sizes[k] > left) left = -1;
    else left -= sizes[k];
  }
  if (hole >= 0 && left >= 0 && whole >= 0) sizes[hole] = left;
}

static tn_status infer_splitv(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int32_t axis;
  const int64_t *items;
  int64_t n = (int64_t)tn_operation_n_outputs(tn_infer_operation(ctx)), sizes[TN_MAX_INFER_INTS];
  tn__infer_get(ctx, 0, &s);
  if (n == 1) return tn__infer_set(ctx, 0, &s, err);
  tn_status st = tn__infer_axis(ctx, 2, s.rank, &axis, err);
  if (st != TN_OK) return st;
  for (int32_t k = 0; k < s.rank && axis < 0; k++) s.dims[k] = -1;
  bool known = axis >= 0 && n <= TN_MAX_INFER_INTS && tn_infer_input_ints(ctx, 1, &items) == n;
  for (int64_t i = 0; i < n && known; i++) sizes[i] = items[i];
  if (known) fill_hole(sizes, n, s.dims[axis]);
  for (int64_t i = 0; i < n && st == TN_OK; i++) {
    if (axis >= 0) s.dims[axis] = known && sizes[i] >= 0 ? sizes[i] : -1;
    st = tn__infer_set(ctx, (size_t)i, &s, err);
  }
  return st == TN_OK && known && s.rank == 1 ? infer_pieces(ctx, 0, sizes, (size_t)n, err) : st;
}

/* ---- Unpack ---- */

/* Removes from *s the dimension given by the attribute, which must have size n. */
static tn_status unpack_shape(const tn_operation *op, tn__shape *s, int64_t n, int32_t *axis, tn_error *err)
{
  if (s->rank == 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "Unpack: a scalar cannot be taken apart");
  tn_status st = tn__shape_axis("Unpack", tn__attr_int(op, "axis", 0), s->rank, axis, err);
  if (st != TN_OK) return st;
  if (s->dims[*axis] >= 0 && s->dims[*axis] != n)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Unpack: dimension %d has size %lld, attribute 'num' is %lld",
                        (int)*axis, (long long)s->dims[*axis], (long long)n);
  s->rank--;
  for (int32_t k = *axis; k < s->rank; k++) s->dims[k] = s->dims[k + 1];
  return TN_OK;
}

static tn_status unpack_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int32_t axis;
  tn__shape s;
  tn__join *join;
  tn__shape_set(&s, in->dims, in->rank);
  tn_status st = unpack_shape(ctx->op, &s, ctx->n_outputs, &axis, err);
  for (uint32_t i = 0; i < ctx->n_outputs && st == TN_OK; i++) st = tn_prepare_output(ctx, i, s.dims, s.rank, err);
  if (st == TN_OK && ctx->n_outputs == 1) return tn_prepare_view(ctx, 0, 0, err);
  if (st != TN_OK || in->count == 0) return st;
  st = make_join(ctx, in, axis, &join, err);
  if (st != TN_OK) return st;
  for (uint32_t i = 0; i < ctx->n_outputs; i++) tn__join_add(join, i, 1);
  ctx->cost_ns = tn__join_cost(join);
  return TN_OK;
}

static tn_status infer_unpack(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  int32_t axis;
  const int64_t *items;
  const tn_operation *op = tn_infer_operation(ctx);
  size_t n = tn_operation_n_outputs(op);
  tn__infer_get(ctx, 0, &s);
  tn_status st = s.rank < 0 ? TN_OK : unpack_shape(op, &s, (int64_t)n, &axis, err);
  if (st == TN_OK) st = infer_all(ctx, &s, err);
  if (st != TN_OK || s.rank != 0 || tn_infer_input_ints(ctx, 0, &items) != (int64_t)n) return st;
  for (size_t i = 0; i < n && st == TN_OK; i++) st = tn_infer_output_ints(ctx, i, &items[i], 1, err);
  return st;
}

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }

static const tn_op_def ops[] = {
  OP("Split", "split_dim: int32, value: T", "output: num_split * T", "num_split: int >= 1; T: type", 1u << 0,
     infer_split, "splits a tensor into equal parts along an axis"),
  OP("SplitV", "value: T, size_splits: Tlen, split_dim: int32", "output: num_split * T",
     "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64", 1u << 1 | 1u << 2, infer_splitv,
     "splits a tensor into parts of given sizes along an axis"),
  OP("Unpack", "value: T", "output: num * T", "num: int >= 0; T: type; axis: int = 0", 0, infer_unpack,
     "unpacks a tensor along an axis"),
};

#define KERNEL(which, title, prepare_fn)                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C, \
    .prepare = prepare_fn, .destroy_shape_state = destroy_join, .compute = split_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("Split", "split_cpu", split_prepare),
  KERNEL("SplitV", "split_v_cpu", splitv_prepare),
  KERNEL("Unpack", "unpack_cpu", unpack_prepare),
};

TN_OP_FAMILY(split)
