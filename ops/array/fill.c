/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of one value: Fill ZerosLike OnesLike. */
#include <core/base/text.h>
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define GRAIN_BYTES 65536 /* smaller parts are not worth another thread */

typedef struct fill_run {
  const void *value;
  char *out;
  size_t size; /* of an element */
} fill_run;

static void fill_part(void *user, int64_t begin, int64_t end)
{
  const fill_run *r = user;
  tn__fill_bytes(r->size, r->out + (size_t)begin * r->size, r->value, end - begin);
}

static tn_status fill(tn_kernel_ctx *ctx, const void *value)
{
  tn_view *out = ctx->outputs[0];
  if (tn__dtype_is_managed(out->dtype)) return tn__fill_elements(out->dtype, out->data, value, out->count, ctx->err);
  fill_run r = { value, out->data, tn_dtype_size(out->dtype) };
  int64_t grain = (int64_t)(GRAIN_BYTES / r.size);
  if (out->count <= 2 * grain)
    fill_part(&r, 0, out->count);
  else
    tn_parallel_for(ctx, out->count, grain, 0.05 * (double)r.size, fill_part, &r);
  return TN_OK;
}

static double cost_of(int64_t count, tn_dtype dtype)
{
  return 10 + 0.05 * (double)count * (double)tn_dtype_size(dtype);
}

/* ---- Fill ---- */

static tn_status bad_size(tn_error *err, const char *op, int64_t k, int64_t size)
{
  return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: size %lld of the shape wanted is %lld", op, (long long)k,
                      (long long)size);
}

static tn_status fill_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *dims = &ctx->inputs[0], *value = &ctx->inputs[1];
  const char *op = tn_operation_type(ctx->op);
  if (dims->rank > 1) return tn__want_rank(ctx, 0, 1, err); /* old graphs pass a single size as a scalar */
  if (value->rank > 1 || value->count != 1) return tn__want_rank(ctx, 1, 0, err);
  if (dims->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %lld dimensions are wanted, at most %d are possible", op,
                        (long long)dims->count, TN_MAX_RANK);
  if (dims->count > 0 && dims->data == NULL)
    return tn_error_set(err, TN_INTERNAL, "%s: the value of input 0 is not known", op);
  tn__shape s = { .rank = (int32_t)dims->count };
  int64_t count = 1;
  for (int32_t k = 0; k < s.rank; k++) {
    s.dims[k] = tn__view_int_at(dims, k);
    if (s.dims[k] < 0) return bad_size(err, op, k, s.dims[k]);
    if (__builtin_mul_overflow(count, s.dims[k], &count)) count = 0; /* tn_prepare_output reports the error */
  }
  ctx->cost_ns = cost_of(count, value->dtype);
  return tn_prepare_output(ctx, 0, s.dims, s.rank, err);
}

static tn_status fill_compute(tn_kernel_ctx *ctx) { return fill(ctx, ctx->inputs[1]->data); }

/* Infers the elements of a vector or scalar that are all `value`. */
static tn_status infer_same_ints(tn_infer_ctx *ctx, const tn__shape *s, int64_t value, tn_error *err)
{
  tn_dtype dtype = tn_operation_output_dtype(tn_infer_operation(ctx), 0);
  int64_t items[TN_MAX_INFER_INTS], n = -1;
  if (s->rank == 0) n = 1;
  else if (s->rank == 1) n = s->dims[0];
  if ((dtype != TN_INT32 && dtype != TN_INT64) || n < 0 || n > TN_MAX_INFER_INTS) return TN_OK;
  for (int64_t k = 0; k < n; k++) items[k] = value;
  return tn_infer_output_ints(ctx, 0, items, n, err);
}

static tn_status infer_fill(tn_infer_ctx *ctx, tn_error *err)
{
  const char *op = tn__infer_op(ctx);
  const int64_t *items, *unused;
  int32_t rank = tn_infer_input(ctx, 0, &unused);
  if (rank > 1)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input 0 has rank %d, wanted rank 1", op, (int)rank);
  int64_t n = tn_infer_input_ints(ctx, 0, &items);
  for (int64_t k = 0; k < n; k++)
    if (items[k] < 0 && items[k] != TN_UNKNOWN_INT) return bad_size(err, op, k, items[k]);
  tn__shape s;
  s.rank = rank == 0 && n < 0 ? 1 : tn_infer_input_as_shape(ctx, 0, s.dims);
  if (rank == 0 && n < 0) s.dims[0] = -1;
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  if (st != TN_OK || tn_infer_input_ints(ctx, 1, &items) != 1) return st;
  return infer_same_ints(ctx, &s, items[0], err);
}

/* ---- ZerosLike, OnesLike ---- */

static tn_status like_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = cost_of(ctx->inputs[0].count, ctx->inputs[0].dtype);
  return tn__prepare_unchanged(ctx, err);
}

/* New strings are empty already. */
static tn_status zeros_compute(tn_kernel_ctx *ctx)
{
  static const uint64_t zero[2];
  return ctx->outputs[0]->dtype == TN_STRING ? TN_OK : fill(ctx, zero);
}

static tn_status ones_compute(tn_kernel_ctx *ctx)
{
  union { uint8_t u8; uint16_t u16; uint32_t u32; uint64_t u64; float f32[2]; double f64[2]; } one;
  memset(&one, 0, sizeof one);
  switch (ctx->outputs[0]->dtype) {
  case TN_FLOAT:
  case TN_COMPLEX64: one.f32[0] = 1; break;
  case TN_DOUBLE:
  case TN_COMPLEX128: one.f64[0] = 1; break;
  case TN_HALF: one.u16 = tn__half_from_float(1); break;
  case TN_BFLOAT16: one.u16 = tn__bfloat16_from_float(1); break;
  case TN_INT16:
  case TN_UINT16: one.u16 = 1; break;
  case TN_INT32:
  case TN_UINT32: one.u32 = 1; break;
  case TN_INT64:
  case TN_UINT64: one.u64 = 1; break;
  default: one.u8 = 1;
  }
  return fill(ctx, &one);
}

static tn_status infer_like(tn_infer_ctx *ctx, tn_error *err, int64_t value)
{
  tn__shape s;
  tn__infer_get(ctx, 0, &s);
  tn_status st = tn__infer_set(ctx, 0, &s, err);
  return st != TN_OK ? st : infer_same_ints(ctx, &s, value, err);
}

static tn_status infer_zeros(tn_infer_ctx *ctx, tn_error *err) { return infer_like(ctx, err, 0); }
static tn_status infer_ones(tn_infer_ctx *ctx, tn_error *err) { return infer_like(ctx, err, 1); }

/* ---- tables ---- */

#define OP(op, in, out, attributes, operands, shapes, text)                                       \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .shape_operands = operands, .infer = shapes, .summary = text }
#define ONES_TYPES                                                                                               \
  "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "     \
  "complex128, bool}"

static const tn_op_def ops[] = {
  OP("Fill", "dims: index_type, value: T", "output: T", "T: type; index_type: {int32, int64} = int32", 1u << 0,
     infer_fill, "tensor filled with one value"),
  OP("OnesLike", "x: T", "y: T", ONES_TYPES, 0, infer_ones, "tensor of ones with the shape of the input"),
  OP("ZerosLike", "x: T", "y: T", "T: type", 0, infer_zeros, "tensor of zeros with the shape of the input"),
};

#define KERNEL(which, title, constraint, prepare_fn, compute_fn)                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }
#define LIKE_TYPES \
  "T=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128"

static const tn_kernel_def kernels[] = {
  KERNEL("Fill", "fill_cpu", NULL, fill_prepare, fill_compute),
  KERNEL("OnesLike", "ones_like_cpu", LIKE_TYPES, like_prepare, ones_compute),
  KERNEL("ZerosLike", "zeros_like_cpu", LIKE_TYPES "|string", like_prepare, zeros_compute),
};

TN_OP_FAMILY(fill)
