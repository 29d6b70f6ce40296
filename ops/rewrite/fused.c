/* SPDX-License-Identifier: Apache-2.0 */
/* Products with an epilogue: _TnConv2D, _TnDepthwiseConv2D, _TnMatMul. Graphs never contain them; the planner's
 * "fuse" pass creates them (ops/rewrite/fuse.c), so that a library's kernel can do everything in one pass over the
 * result. Products whose right operand is a constant that is kept in a shorter type W: _TnReducedMatMul,
 * _TnReducedBatchMatMul. The "weights" pass creates them (ops/math/reduce_weights.c). Their inputs are float: a
 * kernel converts the constant when it packs it, and uses it as it is if W cannot represent it.
 *
 * Their kernels are those of the plain ops, which support epilogues (ops/kernel/product/after_product.h). */
#include <core/graph/graph_internal.h>
#include <ops/kernel/family.h>
#include <ops/kernel/product/epilogue.h>
#include <ops/kernel/shapes.h>
#include <string.h>

static const char *base_op(const tn_operation *op)
{
  const char *type = tn_operation_type(op);
  if (strcmp(type, "_TnConv2D") == 0) return "Conv2D";
  if (strcmp(type, "_TnReducedBatchMatMul") == 0) return "BatchMatMulV2";
  return strcmp(type, "_TnDepthwiseConv2D") == 0 ? "DepthwiseConv2dNative" : "MatMul";
}

/* Infers the shape with the plain op's shape function, which reads inputs 0 and 1 and attributes of the same names. */
static tn_status infer_as_base(tn_infer_ctx *ctx, tn_error *err)
{
  const tn_op_def *base = tn__schema_def(tn_op_schema_find(base_op(tn_infer_operation(ctx))));
  return base == NULL || base->infer == NULL ? TN_OK : base->infer(ctx, err);
}

#define CONV_ATTRS                                                                             \
  "T: {float}; num_args: int >= 0; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                \
  "dilations: list(int) = [1, 1, 1, 1]; " TN__EPILOGUE_ATTRS
#define FUSED_OP(type, in, out, attributes, text)                                                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = type, .inputs = in ", args: num_args * T", .outputs = out, \
    .attrs = attributes, .traits = TN_TRAIT_CONTRACTION, .infer = infer_as_base, .summary = text }
static const tn_op_def ops[] = {
  FUSED_OP("_TnConv2D", "input: T, filter: T", "output: T", CONV_ATTRS, "Conv2D fused with the operations after it"),
  FUSED_OP("_TnDepthwiseConv2D", "input: T, filter: T", "output: T", CONV_ATTRS,
           "DepthwiseConv2dNative fused with the operations after it"),
  FUSED_OP("_TnMatMul", "a: T, b: T", "product: T",
           "T: {float}; num_args: int >= 0; transpose_a: bool = false; transpose_b: bool = false; " TN__EPILOGUE_ATTRS,
           "MatMul fused with the operations after it"),
  FUSED_OP("_TnReducedMatMul", "a: T, b: T", "product: T",
           "T: {float}; W: {bfloat16, int8}; num_args: int >= 0; transpose_a: bool = false; "
           "transpose_b: bool = false; " TN__EPILOGUE_ATTRS,
           "_TnMatMul with a constant b that is kept in type W"),
  FUSED_OP("_TnReducedBatchMatMul", "x: T, y: T", "output: T",
           "T: {float}; W: {bfloat16, int8}; num_args: int >= 0; adj_x: bool = false; adj_y: bool = false; "
           TN__EPILOGUE_ATTRS, "BatchMatMulV2 with a constant matrix y that is kept in type W"),
};

TN_OP_FAMILY_WITHOUT_KERNELS(fused)
