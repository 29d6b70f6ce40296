/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of Conv2D. */
#include <ops/kernel/family.h>
#include <ops/nn/conv/conv_product.h>

static const tn__conv_kind to_input = { .wanted = TN__CONV_X, .directions = 2 };
static const tn__conv_kind to_filter = { .wanted = TN__CONV_FILTER, .directions = 2 };

static tn_status infer_input(tn_infer_ctx *ctx, tn_error *err) { return tn__conv_infer(ctx, &to_input, err); }
static tn_status infer_filter(tn_infer_ctx *ctx, tn_error *err) { return tn__conv_infer(ctx, &to_filter, err); }

static tn_status create_input(const tn_operation *op, void **state, tn_error *err)
{
  return tn__conv_create(op, &to_input, state, err);
}

static tn_status create_filter(const tn_operation *op, void **state, tn_error *err)
{
  return tn__conv_create(op, &to_filter, state, err);
}

#define ATTRS                                                                                   \
  "; strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME', 'VALID', 'EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                 \
  "dilations: list(int) = [1, 1, 1, 1]"

static const tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE, .name = "Conv2DBackpropFilter",
    .inputs = "input: T, filter_sizes: int32, out_backprop: T", .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double}" ATTRS, .shape_operands = 1u << 1, .infer = infer_filter,
    .summary = "gradient of Conv2D for its filter" },
  { .struct_size = TN_OP_DEF_SIZE, .name = "Conv2DBackpropInput",
    .inputs = "input_sizes: int32, filter: T, out_backprop: T", .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double, int32}" ATTRS, .shape_operands = 1u << 0, .infer = infer_input,
    .summary = "gradient of Conv2D for its images" },
};

static const tn_kernel_def kernels[] = {
  TN__CONV_KERNEL("Conv2DBackpropFilter", NULL, "conv2d_backprop_filter_cpu", create_filter),
  TN__CONV_KERNEL("Conv2DBackpropInput", NULL, "conv2d_backprop_input_cpu", create_input),
};

TN_OP_FAMILY(conv_grad)
