/* SPDX-License-Identifier: Apache-2.0 */
/* DeepCopy Empty ToBool. */
#include <ops/kernel/elements/elements.h>
#include <ops/kernel/family.h>
#include <ops/kernel/operands.h>
#include <string.h>

#define TYPES                                                                                                  \
  "=float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|" \
  "string|qint8|quint8|qint16|quint16|qint32"

static tn_status copy_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 20 + (double)ctx->inputs[0].count * 0.3;
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status copy_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  return tn__copy_elements(in->dtype, ctx->outputs[0]->data, in->data, in->count, ctx->err);
}

/* Empty gives zeros, whether `init` is set or not. */
static tn_status empty_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *in = &ctx->inputs[0];
  int64_t dims[TN_MAX_RANK];
  tn_status st = tn__want_rank(ctx, 0, 1, err);
  if (st == TN_OK) st = tn__want_value(ctx, 0, err);
  if (st != TN_OK) return st;
  if (in->count > TN_MAX_RANK)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "Empty: %lld dimensions are wanted, at most %d are possible",
                        (long long)in->count, TN_MAX_RANK);
  for (int64_t k = 0; k < in->count; k++) {
    dims[k] = tn__operand_int(in, k);
    if (dims[k] < 0)
      return tn_error_set(err, TN_INVALID_ARGUMENT, "Empty: size %lld of the shape is %lld, wanted 0 or more",
                          (long long)k, (long long)dims[k]);
  }
  return tn_prepare_output(ctx, 0, dims, (int32_t)in->count, err);
}

static tn_status empty_compute(tn_kernel_ctx *ctx)
{
  const tn_view *out = ctx->outputs[0];
  if (out->dtype != TN_STRING && out->count > 0) memset(out->data, 0, (size_t)out->count * tn_dtype_size(out->dtype));
  return TN_OK;
}

/* A scalar is true unless it is 0 or the empty string, another tensor if it has elements. */
static tn_status bool_compute(tn_kernel_ctx *ctx)
{
  const tn_view *in = ctx->inputs[0];
  tn_bool *out = ctx->outputs[0]->data;
  size_t length = 0, size = tn_dtype_size(in->dtype);
  const uint8_t *bytes = in->data;
  *out = in->count > 0;
  if (in->rank > 0) return TN_OK;
  if (in->dtype == TN_STRING) {
    tn_string_data(in->data, &length);
    *out = length > 0;
    return TN_OK;
  }
  bool sign = in->dtype == TN_FLOAT || in->dtype == TN_DOUBLE || in->dtype == TN_HALF || in->dtype == TN_BFLOAT16;
  *out = 0;
  for (size_t k = 0; k < size; k++) /* the sign of a zero does not count */
    if ((sign && k + 1 == size ? bytes[k] & 0x7f : bytes[k]) != 0) *out = 1;
  return TN_OK;
}

static tn_status infer_empty(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape s;
  tn_status st = tn__infer_rank(ctx, 0, 1, &s, err);
  if (st != TN_OK) return st;
  s.rank = tn_infer_input_as_shape(ctx, 0, s.dims);
  return tn__infer_set(ctx, 0, &s, err);
}

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "DeepCopy", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type",
    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .infer = tn__infer_unchanged, .summary = "a copy of its input" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "Empty", .inputs = "shape: int32", .outputs = "output: dtype",
    .attrs = "dtype: type; init: bool = false", .traits = TN_TRAIT_STATEFUL | TN_TRAIT_READS, .shape_operands = 1u << 0,
    .infer = infer_empty, .summary = "a tensor of zeros" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ToBool", .inputs = "input: T", .outputs = "output: bool",
    .attrs = "T: type", .infer = tn__infer_scalar, .summary = "whether a scalar is not zero, a tensor not empty" },
};

#define KERNEL(which, title, constraint, prepare_fn, compute_fn)                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .types = constraint, .name = title, \
    .rank = TN_RANK_C, .prepare = prepare_fn, .compute = compute_fn }

static const tn_kernel_def kernels[] = {
  KERNEL("DeepCopy", "deep_copy_cpu", "T" TYPES, copy_prepare, copy_compute),
  KERNEL("Empty", "empty_cpu", "dtype" TYPES, empty_prepare, empty_compute),
  KERNEL("ToBool", "to_bool_cpu", "T" TYPES, tn__prepare_scalar, bool_compute),
};

TN_OP_FAMILY(copies)
