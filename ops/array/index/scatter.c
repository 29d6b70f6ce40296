/* SPDX-License-Identifier: Apache-2.0 */
/* Slices written at indices: ScatterNd ScatterNdNonAliasingAdd, TensorScatterAdd ...Max ...Min
 * ...Sub ...Update. */
#include <core/base/alloc.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/scatter.h>
#include <string.h>

/* ---- create ---- */

typedef struct scatter_state {
  tn__scatter scatter;
  bool ignore_bad;
  bool from_zeros; /* starts from zeros: no input is a tensor to update */
} scatter_state;

static tn_status scatter_create(const tn_operation *op, tn__scatter_step step, bool from_zeros, void **state,
                                tn_error *err)
{
  void *policy;
  *state = NULL;
  tn_status st = tn__bad_indices_create(op, &policy, err);
  if (st != TN_OK) return st;
  scatter_state s = { .ignore_bad = ((const tn__bad_indices *)policy)->ignore, .from_zeros = from_zeros };
  st = tn__scatter_init(&s.scatter, op, step, tn_operation_output_dtype(op, 0), err);
  if (st != TN_OK) return st;
  scatter_state *made = tn__alloc(sizeof *made);
  if (made == NULL) return tn__no_memory(err, "state of a scatter", sizeof *made);
  *made = s;
  *state = made;
  return TN_OK;
}

#define CREATE(name, step, from_zeros)                                                \
  static tn_status name##_create(const tn_operation *op, void **state, tn_error *err) \
  {                                                                                   \
    return scatter_create(op, step, from_zeros, state, err);                          \
  }
CREATE(zeros_add, TN__SCATTER_JOIN, true)
CREATE(add, TN__SCATTER_ADD, false)
CREATE(sub, TN__SCATTER_SUB, false)
CREATE(max, TN__SCATTER_MAX, false)
CREATE(min, TN__SCATTER_MIN, false)
CREATE(update, TN__SCATTER_SET, false)

static void scatter_destroy(void *state) { tn__free(state, sizeof(scatter_state)); }

/* ---- shapes ---- */

static tn_status check_inputs(const tn_prepare_ctx *ctx, const tn__shape *out, uint32_t i, uint32_t u, tn_error *err)
{
  return tn__scatter_check_all(tn_operation_type(ctx->op), out, &ctx->inputs[i], i, &ctx->inputs[u], u, err);
}

static double cost_of(const tn_view *updates, const tn_view *out)
{
  return 50 + 2 * (double)updates->count + 0.1 * (double)out->count;
}

/* tensor, indices, updates. */
static tn_status tensor_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__shape out;
  tn__shape_set(&out, in->dims, in->rank);
  tn_status st = check_inputs(ctx, &out, 1, 2, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  ctx->cost_ns = cost_of(&ctx->inputs[2], in);
  return st != TN_OK || in->dtype == TN_STRING ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

/* indices, updates, shape. */
static tn_status zeros_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *sizes = &ctx->inputs[2];
  const char *op = tn_operation_type(ctx->op);
  tn_status st = tn__want_rank(ctx, 2, 1, err);
  if (st != TN_OK) return st;
  if (sizes->count > TN_MAX_RANK || (sizes->count > 0 && sizes->data == NULL))
    return sizes->count > TN_MAX_RANK
               ? tn_error_set(err, TN_INVALID_ARGUMENT, "%s: more than %d dimensions are wanted", op, TN_MAX_RANK)
               : tn_error_set(err, TN_INTERNAL, "%s: the value of input 2 is not known", op);
  tn__shape out = { .rank = (int32_t)sizes->count };
  for (int32_t d = 0; d < out.rank; d++) {
    out.dims[d] = tn__index_at(sizes, d);
    if (out.dims[d] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %d of the shape wanted is %lld", op, (int)d,
                          (long long)out.dims[d]);
  }
  st = check_inputs(ctx, &out, 0, 1, err);
  ctx->cost_ns = cost_of(&ctx->inputs[1], &ctx->inputs[1]);
  return st != TN_OK ? st : tn_prepare_output(ctx, 0, out.dims, out.rank, err);
}

/* ---- compute ---- */

static tn_status start(tn_kernel_ctx *ctx, const scatter_state *s)
{
  tn_view *out = ctx->outputs[0];
  const tn_view *in = ctx->inputs[0];
  if (out->count == 0 || (!s->from_zeros && in->data == out->data)) return TN_OK;
  if (!s->from_zeros) return tn__copy_elements(out->dtype, out->data, in->data, out->count, ctx->err);
  if (!tn__dtype_is_managed(out->dtype)) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return TN_OK;
}

static tn_status scatter_compute(tn_kernel_ctx *ctx)
{
  const scatter_state *s = ctx->state;
  const tn_view *indices = ctx->inputs[s->from_zeros ? 0 : 1], *updates = ctx->inputs[s->from_zeros ? 1 : 2];
  tn_view *out = ctx->outputs[0];
  tn__index_space space;
  tn__space_init(&space, indices, out->dims);
  if (!s->ignore_bad && updates->count > 0 && tn__space_find_bad(&space) >= 0) return tn__space_error(&space, ctx->err);
  tn_status st = start(ctx, s);
  if (st != TN_OK || updates->count == 0) return st;
  tn__poll poll = tn__poll_of(ctx);
  return tn__scatter_run(&s->scatter, &space, out->data, updates->data, updates->count / space.n, 0, &poll, ctx->err);
}

/* ---- shape functions ---- */

static tn_status infer_checked(tn_infer_ctx *ctx, const tn__shape *out, size_t i, size_t u, tn_error *err)
{
  tn__shape indices, updates;
  tn_status st = tn__infer_rank_at_least(ctx, i, 1, &indices, err);
  if (st == TN_OK) st = tn__infer_rank_at_least(ctx, u, 1, &updates, err);
  if (st == TN_OK) st = tn__scatter_check(tn__infer_op(ctx), out, &indices, (uint32_t)i, &updates, (uint32_t)u, err);
  return st != TN_OK ? st : tn__infer_set(ctx, 0, out, err);
}

static tn_status infer_tensor(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out;
  tn_status st = tn__infer_rank_at_least(ctx, 0, 1, &out, err);
  return st != TN_OK ? st : infer_checked(ctx, &out, 1, 2, err);
}

static tn_status infer_zeros(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out, sizes;
  tn_status st = tn__infer_rank(ctx, 2, 1, &sizes, err);
  if (st != TN_OK) return st;
  out.rank = tn_infer_input_as_shape(ctx, 2, out.dims);
  return infer_checked(ctx, &out, 0, 1, err);
}

/* ---- tables ---- */

#define OP(op, in, attributes, operands, shapes, text)                                                      \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes,   \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define POLICY "; bad_indices_policy: string = ''"
#define TENSOR(op, text)                                                                                     \
  OP(op, "tensor: T, indices: Tindices, updates: T", "T: type; Tindices: {int32, int64}" POLICY, 0, infer_tensor, text)

static const tn_op_def ops[] = {
  OP("ScatterNd", "indices: Tindices, updates: T, shape: Tindices", "T: type; Tindices: {int16, int32, int64}" POLICY,
     1u << 2, infer_zeros, "scatters updates into zeros, adding duplicates"),
  OP("ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T",
     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
     "quint16, uint16, complex128, half, uint32, uint64, bool}; Tindices: {int32, int64}" POLICY,
     0, infer_tensor, "adds updates to a tensor at indices"),
  TENSOR("TensorScatterAdd", "adds updates to a tensor at indices"),
  TENSOR("TensorScatterMax", "maximum of a tensor and updates at indices"),
  TENSOR("TensorScatterMin", "minimum of a tensor and updates at indices"),
  TENSOR("TensorScatterSub", "subtracts updates from a tensor at indices"),
  OP("TensorScatterUpdate", "tensor: T, indices: Tindices, updates: T",
     "T: type; Tindices: {int16, int32, int64, uint16}" POLICY, 0, infer_tensor,
     "replaces slices of a tensor at indices"),
};

#define REALS "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64"
#define NUMBERS REALS "|complex64|complex128"
#define KERNEL(which, constraint, title, create_fn, prepare_fn)                                             \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title,    \
    .rank = TN_RANK_C, .create = create_fn##_create, .destroy = scatter_destroy, .prepare = prepare_fn,     \
    .compute = scatter_compute }

static const tn_kernel_def kernels[] = {
  KERNEL("ScatterNd", NUMBERS "|bool|string", "scatter_nd_cpu", zeros_add, zeros_prepare),
  KERNEL("ScatterNdNonAliasingAdd", NUMBERS "|bool", "scatter_nd_non_aliasing_add_cpu", add, tensor_prepare),
  KERNEL("TensorScatterAdd", NUMBERS, "tensor_scatter_add_cpu", add, tensor_prepare),
  KERNEL("TensorScatterMax", REALS, "tensor_scatter_max_cpu", max, tensor_prepare),
  KERNEL("TensorScatterMin", REALS, "tensor_scatter_min_cpu", min, tensor_prepare),
  KERNEL("TensorScatterSub", NUMBERS, "tensor_scatter_sub_cpu", sub, tensor_prepare),
  KERNEL("TensorScatterUpdate", NUMBERS "|bool|string", "tensor_scatter_update_cpu", update, tensor_prepare),
};

TN_OP_FAMILY(scatter)
