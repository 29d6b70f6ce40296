/* SPDX-License-Identifier: Apache-2.0 */
/* Python slicing: StridedSlice, its gradient StridedSliceGrad, and TensorStridedSliceUpdate, which
 * writes into a copy. */
#include <core/base/alloc.h>
#include <core/base/text.h>
#include <core/graph/prepare.h>
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/move/slicing.h>
#include <ops/kernel/operands.h>
#include <string.h>

typedef struct pick_state {
  tn__box_copy copy;
  /* compute reads where the box begins from inputs `first` and after; `copy` has no offset of its
   * own */
  bool moves;
  uint32_t first;
  const char *op;
  tn__slicing masks;
} pick_state;

static void destroy_state(void *state) { tn__free(state, sizeof(pick_state)); }

/* Whether begin and end only select single indices, as in x[i] or x[:, i]; then they do not affect
 * the shape. */
static bool only_picks(const tn__slicing *s)
{
  for (int32_t k = 0; k < s->n; k++) {
    uint32_t bit = UINT32_C(1) << k;
    bool whole = (s->begin_mask & s->end_mask & bit) != 0;
    if (!whole && !((s->shrink_axis_mask | s->new_axis_mask | s->ellipsis_mask) & bit)) return false;
  }
  return true;
}

/* `steps` are those of the other side, as in tn__box_copy_init. */
static tn_status use_copy(tn_prepare_ctx *ctx, uint32_t first, tn_dtype dtype, const int64_t *dims, const tn__box *box,
                          const int64_t *steps, bool into, tn_error *err)
{
  pick_state *s = tn__zalloc(sizeof *s);
  if (s == NULL) return tn__no_memory(err, "slice", sizeof *s);
  ctx->shape_state = s;
  tn__box_copy_init(&s->copy, dtype, dims, box, steps, into);
  ctx->cost_ns = s->copy.strided.cost_ns;
  s->first = first;
  s->op = tn_operation_type(ctx->op);
  s->masks.n = (int32_t)ctx->inputs[first].count;
  tn__slicing_masks(ctx->op, &s->masks);
  if (!only_picks(&s->masks)) return TN_OK;
  s->moves = tn__prepare_any_value(ctx, first);
  s->moves |= tn__prepare_any_value(ctx, first + 1);
  if (s->moves) s->copy.offset = 0;
  return TN_OK;
}

/* Runs the copy in a step; `tensor` is the whole one. */
static tn_status run_copy(tn_kernel_ctx *ctx, const tn_view *tensor, void *other)
{
  const pick_state *s = ctx->shape_state;
  if (!s->moves) return tn__box_copy_run(&s->copy, ctx, tensor->data, other);
  tn__slicing slicing = s->masks;
  tn__sliced now;
  int64_t at = 0;
  tn_status st = tn__slicing_vectors(ctx, s->first, &slicing);
  if (st == TN_OK) st = tn__slicing_apply(s->op, &slicing, tensor->dims, tensor->rank, &now, ctx->err);
  if (st != TN_OK) return st;
  for (int32_t k = 0; k < tensor->rank; k++) at = at * tensor->dims[k] + now.box.begin[k];
  return tn__box_copy_run(&s->copy, ctx, (char *)tensor->data + (size_t)at * tn_dtype_size(tensor->dtype), other);
}

/* Applies inputs first to first + 2 and the masks to a tensor of this shape. */
static tn_status read_sliced(const tn_prepare_ctx *ctx, uint32_t first, const int64_t *dims, int32_t rank,
                             tn__sliced *out, tn_error *err)
{
  tn__slicing s;
  tn_status st = tn__slicing_read(ctx, first, &s, err);
  return st != TN_OK ? st : tn__slicing_apply(tn_operation_type(ctx->op), &s, dims, rank, out, err);
}

/* ---- StridedSlice ---- */

static tn_status slice_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  tn__sliced s;
  tn_status st = read_sliced(ctx, 1, in->dims, in->rank, &s, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, s.shape.dims, s.shape.rank, err);
  if (st != TN_OK) return st;
  if (tn__box_is_all(&s.box, in->dims)) return tn_prepare_view(ctx, 0, 0, err);
  if (tn__box_is_empty(&s.box)) return TN_OK;
  return use_copy(ctx, 1, in->dtype, in->dims, &s.box, NULL, false, err);
}

static tn_status slice_compute(tn_kernel_ctx *ctx)
{
  if (ctx->shape_state == NULL) return TN_OK; /* no elements */
  return run_copy(ctx, ctx->inputs[0], ctx->outputs[0]->data);
}

/* The output's values are known where those of the input are; the output is a scalar if one element
 * is taken. */
static tn_status infer_sliced_ints(tn_infer_ctx *ctx, const tn__sliced *s, tn_error *err)
{
  const int64_t *items;
  int64_t taken[TN_MAX_INFER_INTS], n = tn_infer_input_ints(ctx, 0, &items);
  const tn__box *b = &s->box;
  if (b->rank != 1 || s->shape.rank > 1 || b->size[0] < 0 || b->size[0] > n) return TN_OK;
  if (b->begin[0] == TN_UNKNOWN_INT || (b->size[0] > 0 && (b->begin[0] < 0 || b->begin[0] >= n))) return TN_OK;
  if (s->shape.rank == 1 && s->source[0] != 0) return TN_OK;
  for (int64_t k = 0; k < b->size[0]; k++) taken[k] = items[b->begin[0] + k * b->step[0]];
  return tn_infer_output_ints(ctx, 0, taken, b->size[0], err);
}

static tn_status infer_slice(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape in;
  tn__slicing slicing;
  tn__sliced s;
  tn__infer_get(ctx, 0, &in);
  if (in.rank < 0 || !tn__slicing_infer(ctx, 1, &slicing)) return tn_infer_output(ctx, 0, NULL, -1, err);
  tn_status st = tn__slicing_apply(tn__infer_op(ctx), &slicing, in.dims, in.rank, &s, err);
  if (st == TN_OK) st = tn__infer_set(ctx, 0, &s.shape, err);
  return st == TN_OK ? infer_sliced_ints(ctx, &s, err) : st;
}

/* ---- StridedSliceGrad ---- */

/* The output's shape, input 0. */
static tn_status read_shape(const tn_prepare_ctx *ctx, tn__shape *s, tn_error *err)
{
  const tn_view *shape = &ctx->inputs[0];
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, 0, err);
  if (st == TN_OK && shape->count > TN_MAX_RANK)
    st = tn_error_set(err, TN_INVALID_ARGUMENT, "%s: a shape of %lld sizes", tn_operation_type(ctx->op),
                      (long long)shape->count);
  s->rank = st == TN_OK ? (int32_t)shape->count : 0;
  for (int32_t k = 0; k < s->rank; k++) {
    s->dims[k] = tn__operand_int(shape, k);
    if (s->dims[k] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %d of the shape is %lld", tn_operation_type(ctx->op),
                          (int)k, (long long)s->dims[k]);
  }
  return st;
}

static tn_status grad_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *dy = &ctx->inputs[4];
  tn__shape out;
  tn__sliced s;
  tn_status st = read_shape(ctx, &out, err);
  if (st == TN_OK) st = tn_prepare_output(ctx, 0, out.dims, out.rank, err);
  if (st == TN_OK) st = read_sliced(ctx, 1, out.dims, out.rank, &s, err);
  if (st != TN_OK) return st;
  tn_view wanted = { .dims = s.shape.dims, .rank = s.shape.rank };
  if (!tn__view_same_shape(dy, &wanted)) return tn__shape_error(err, ctx, 4, s.shape.dims, s.shape.rank);
  if (tn__box_is_all(&s.box, out.dims)) return tn_prepare_view(ctx, 0, 4, err);
  if (tn__box_is_empty(&s.box)) return TN_OK;
  return use_copy(ctx, 1, dy->dtype, out.dims, &s.box, NULL, true, err);
}

static tn_status grad_compute(tn_kernel_ctx *ctx)
{
  const tn_view *dy = ctx->inputs[4], *out = ctx->outputs[0];
  if (dy->count < out->count && !tn__dtype_is_managed(out->dtype)) /* handles and strings are zeroed already */
    memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return ctx->shape_state == NULL ? TN_OK : run_copy(ctx, out, dy->data);
}

static tn_status infer_grad(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  s.rank = tn_infer_input_as_shape(ctx, 0, s.dims);
  return tn__infer_set(ctx, 0, &s, err);
}

/* ---- TensorStridedSliceUpdate ---- */

static tn_status update_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0], *value = &ctx->inputs[4];
  tn__sliced s;
  int64_t steps[TN_MAX_RANK];
  tn_status st = read_sliced(ctx, 1, in->dims, in->rank, &s, err);
  if (st == TN_OK) st = tn_prepare_output_like(ctx, 0, 0, err);
  if (st != TN_OK) return st;
  if (tn__box_is_empty(&s.box)) return tn_prepare_view(ctx, 0, 0, err); /* nothing is written, whatever the value */
  if (!tn__sliced_value_steps(value, &s, steps)) return tn__shape_error(err, ctx, 4, s.shape.dims, s.shape.rank);
  if (tn__box_is_all(&s.box, in->dims) && value->count == in->count) return tn_prepare_view(ctx, 0, 4, err);
  st = use_copy(ctx, 1, in->dtype, in->dims, &s.box, steps, true, err);
  return st != TN_OK || in->dtype == TN_STRING ? st : tn_prepare_in_place(ctx, 0, 0, err);
}

static tn_status update_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0], *out = ctx->outputs[0];
  if (out->data != in->data) {
    tn__strided all;
    tn__strided_init(&all, in->dtype);
    tn__strided_add(&all, in->count, 1, 1);
    tn__strided_plan(&all);
    tn_status st = tn__strided_run(&all, ctx, in->data, out->data);
    if (st != TN_OK) return st;
  }
  return run_copy(ctx, out, ctx->inputs[4]->data);
}

/* ---- tables ---- */

#define ATTRIBUTES(index)                                                                       \
  "T: type; Index: {" index                                                                     \
  "}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; " \
  "shrink_axis_mask: int = 0"
#define OP(op, in, attributes, operands, shapes, text)                                                  \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define OPERANDS (1u << 1 | 1u << 2 | 1u << 3) /* begin, end, strides; also where they only decide what is copied */

static const tn_op_def ops[] = {
  OP("StridedSlice", "input: T, begin: Index, end: Index, strides: Index", ATTRIBUTES("int16, int32, int64"), OPERANDS,
     infer_slice, "extracts a strided slice"),
  OP("StridedSliceGrad", "shape: Index, begin: Index, end: Index, strides: Index, dy: T", ATTRIBUTES("int32, int64"),
     OPERANDS | 1u << 0, infer_grad, "gradient of StridedSlice: zeros with a tensor in the slice"),
  OP("TensorStridedSliceUpdate", "input: T, begin: Index, end: Index, strides: Index, value: T",
     ATTRIBUTES("int32, int64"), OPERANDS, tn__infer_unchanged, "replaces a strided slice of a tensor"),
};

#define KERNEL(which, title, type_list, prepare_fn, compute_fn)                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = type_list, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .destroy_shape_state = destroy_state, .compute = compute_fn }
/* All dtypes except handles, whose old elements would have to be released. */
#define UPDATE_TYPES                                                                                                 \
  "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16|uint32|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint32|qint16|quint16|float8_e5m2|float8_e4m3fn"

static const tn_kernel_def kernels[] = {
  KERNEL("StridedSlice", "strided_slice_cpu", NULL, slice_prepare, slice_compute),
  KERNEL("StridedSliceGrad", "strided_slice_grad_cpu", NULL, grad_prepare, grad_compute),
  KERNEL("TensorStridedSliceUpdate", "tensor_strided_slice_update_cpu", UPDATE_TYPES, update_prepare, update_compute),
};

TN_OP_FAMILY(strided_slice)
