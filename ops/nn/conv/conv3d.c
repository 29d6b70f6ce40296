/* SPDX-License-Identifier: Apache-2.0 */
/* Conv3D and its gradients. */
#include <ops/kernel/family.h>
#include <ops/nn/conv/conv_product.h>

static const tn__conv_kind forward = { .wanted = TN__CONV_Y, .directions = 3 };
static const tn__conv_kind to_input = { .wanted = TN__CONV_X, .directions = 3 };
static const tn__conv_kind to_filter = { .wanted = TN__CONV_FILTER, .directions = 3 };
/* The first versions of the gradients take a tensor of the wanted shape, not the shape's sizes. */
static const tn__conv_kind to_input_1 = { .wanted = TN__CONV_X, .directions = 3, .by_example = true };
static const tn__conv_kind to_filter_1 = { .wanted = TN__CONV_FILTER, .directions = 3, .by_example = true };

/* Defines the shape function and `create` of a kind. */
#define KIND(kind)                                                                                  \
  static tn_status infer_##kind(tn_infer_ctx *ctx, tn_error *err)                                   \
  {                                                                                                 \
    return tn__conv_infer(ctx, &kind, err);                                                         \
  }                                                                                                 \
  static tn_status create_##kind(const tn_operation *op, void **state, tn_error *err)               \
  {                                                                                                 \
    return tn__conv_create(op, &kind, state, err);                                                  \
  }
KIND(forward)
KIND(to_input)
KIND(to_filter)
KIND(to_input_1)
KIND(to_filter_1)

#define ATTRS "; strides: list(int) >= 5; padding: {'SAME', 'VALID'}"
#define FORMAT "; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
#define DILATIONS "; dilations: list(int) = [1, 1, 1, 1, 1]"
#define T_FLOATS "T: {half, bfloat16, float, double}"
#define CONV_OP(op, in, attributes, traits_, operands, kind, text)                                        \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes, \
    .traits = traits_, .shape_operands = operands, .infer = infer_##kind, .summary = text }

static const tn_op_def ops[] = {
  CONV_OP("Conv3D", "input: T, filter: T", T_FLOATS ATTRS FORMAT DILATIONS, TN_TRAIT_CONTRACTION, 0, forward,
          "convolution of volumes with a filter"),
  CONV_OP("Conv3DBackpropFilter", "input: T, filter: T, out_backprop: T", "T: {half, float, double}" ATTRS DILATIONS, 0,
          0, to_filter_1, "gradient of Conv3D for its filter"),
  CONV_OP("Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T", T_FLOATS ATTRS FORMAT DILATIONS,
          0, 1u << 1, to_filter, "gradient of Conv3D for its filter"),
  CONV_OP("Conv3DBackpropInput", "input: T, filter: T, out_backprop: T", "T: {half, float, double}" ATTRS DILATIONS, 0,
          0, to_input_1, "gradient of Conv3D for its volumes"),
  CONV_OP("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T",
          T_FLOATS ATTRS FORMAT DILATIONS "; Tshape: {int32, int64} = int32", 0, 1u << 0, to_input,
          "gradient of Conv3D for its volumes"),
};

static const tn_kernel_def kernels[] = {
  TN__CONV_KERNEL("Conv3D", NULL, "conv3d_cpu", create_forward),
  TN__CONV_KERNEL("Conv3DBackpropFilter", NULL, "conv3d_backprop_filter_cpu", create_to_filter_1),
  TN__CONV_KERNEL("Conv3DBackpropFilterV2", NULL, "conv3d_backprop_filter_v2_cpu", create_to_filter),
  TN__CONV_KERNEL("Conv3DBackpropInput", NULL, "conv3d_backprop_input_cpu", create_to_input_1),
  TN__CONV_KERNEL("Conv3DBackpropInputV2", NULL, "conv3d_backprop_input_v2_cpu", create_to_input),
};

TN_OP_FAMILY(conv3d)
