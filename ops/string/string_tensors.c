/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors serialised to texts: SerializeTensor ParseTensor. */
#include <core/tensor/tensor_internal.h>
#include <ops/kernel/family.h>
#include <ops/string/string_proto.h>

static tn_status serialize_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = 200 + (double)ctx->inputs[0].count;
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status serialize_compute(tn_kernel_ctx *ctx)
{
  tn__text t;
  tn__text_init(&t, PTRDIFF_MAX / 8);
  tn__proto_put_tensor(&t, ctx->inputs[0]);
  tn_status st = t.failed ? tn__no_memory(ctx->err, "serialized tensor", t.size)
                          : tn_string_set(ctx->outputs[0]->data, tn__text_get(&t), t.size, ctx->err);
  tn__text_fini(&t);
  return st;
}

static tn_status parse_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_rank(ctx, 0, 0, err);
  ctx->cost_ns = 1000;
  return st == TN_OK ? tn_prepare_dynamic(ctx, 0, err) : st;
}

static tn_status parse_compute(tn_kernel_ctx *ctx)
{
  tn__proto_tensor proto;
  tn__slice text;
  size_t bytes = 0;
  tn_dtype wanted = ctx->outputs[0]->dtype;
  text.data = tn_string_data(ctx->inputs[0]->data, &text.size);
  tn_status st = tn__proto_read_tensor(text, &proto, ctx->err);
  if (st != TN_OK) return tn_error_prefix(ctx->err, "ParseTensor");
  if (proto.dtype != wanted)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "ParseTensor: the text is a tensor of %s, wanted %s",
                        tn_dtype_name(proto.dtype), tn_dtype_name(wanted));
  st = tn__proto_tensor_bytes(&proto, &bytes, ctx->err);
  if (st != TN_OK) return tn_error_prefix(ctx->err, "ParseTensor");
  st = tn_kernel_allocate(ctx, 0, proto.shape.dims, proto.shape.rank);
  if (st != TN_OK) return st;
  st = tn__proto_read_elements(&proto, ctx->outputs[0]->count, ctx->outputs[0]->data, ctx->err);
  return st == TN_OK ? TN_OK : tn_error_prefix(ctx->err, "ParseTensor");
}

/* ---- tables ---- */

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "SerializeTensor", .inputs = "tensor: T", .outputs = "serialized: string",
    .attrs = "T: type", .infer = tn__infer_scalar, .summary = "serializes a tensor as a TensorProto" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "ParseTensor", .inputs = "serialized: string", .outputs = "output: out_type",
    .attrs = "out_type: type", .traits = TN_TRAIT_DYNAMIC, .infer = tn__infer_unknown,
    .summary = "parses a serialized TensorProto" },
};

#define TYPES                                                                                                    \
  "float|double|half|bfloat16|int8|uint8|int16|uint16|int32|uint32|int64|uint64|bool|complex64|complex128|string|" \
  "qint8|quint8|qint16|quint16|qint32"

static const tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "SerializeTensor", .device = "CPU", .types = "T=" TYPES,
    .name = "serialize_tensor_cpu", .rank = TN_RANK_C, .prepare = serialize_prepare, .compute = serialize_compute },
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ParseTensor", .device = "CPU", .types = "out_type=" TYPES,
    .name = "parse_tensor_cpu", .rank = TN_RANK_C, .prepare = parse_prepare, .compute = parse_compute },
};

TN_OP_FAMILY(string_tensors)
