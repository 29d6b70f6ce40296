/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of MaxPool, MaxPoolV2 and AvgPool, and the gradients of those. */
#include <ops/kernel/family.h>
#include <ops/nn/pool/pooling.h>

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  return tn__pool_create(op, 2, 0, state, err);
}

static tn_status create_v2(const tn_operation *op, void **state, tn_error *err)
{
  return tn__pool_create(op, 2, 3, state, err);
}

/* ---- tables ---- */

#define REALS "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define WINDOW "; ksize: list(int) >= 4; strides: list(int) >= 4"
#define FORMAT "; data_format: {'NHWC', 'NCHW'} = 'NHWC'"
#define PADDING "; padding: {'SAME', 'VALID'}"
#define IMAGES "orig_input: T, orig_output: T, grad: T"
#define SIZES ", ksize: int32, strides: int32"
#define GRAD_OP(op, in, attributes, operands, shape, text)                                                 \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = "output: T", .attrs = attributes,  \
    .shape_operands = operands, .infer = shape, .summary = text }

static const tn_op_def ops[] = {
  GRAD_OP("AvgPoolGrad", "orig_input_shape: int32, grad: T",
          "T: {half, bfloat16, float, double}" WINDOW PADDING FORMAT, 1u << 0, tn__pool_infer_mean_2d,
          "gradient of AvgPool"),
  GRAD_OP("MaxPoolGrad", IMAGES,
          REALS " = float" WINDOW "; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []" FORMAT,
          0, tn__pool_infer_image, "gradient of MaxPool"),
  GRAD_OP("MaxPoolGradGrad", IMAGES, REALS WINDOW PADDING FORMAT, 0, tn__pool_infer_pooled,
          "gradient of MaxPoolGrad"),
  GRAD_OP("MaxPoolGradGradV2", IMAGES SIZES, REALS PADDING FORMAT, 1u << 3 | 1u << 4, tn__pool_infer_pooled,
          "gradient of MaxPoolGradV2"),
  GRAD_OP("MaxPoolGradV2", IMAGES SIZES, REALS " = float" PADDING FORMAT, 1u << 3 | 1u << 4, tn__pool_infer_image,
          "gradient of MaxPoolV2"),
};

#define GRAD_KERNEL(which, title, create_, kind)                                                          \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = which, .device = "CPU", .name = title, .rank = TN_RANK_C,    \
    .create = create_, .destroy = tn__pool_destroy, .prepare = tn__pool_prepare_##kind,                   \
    .destroy_shape_state = tn__pool_destroy_plan, .compute = tn__pool_compute_##kind }

static const tn_kernel_def kernels[] = {
  GRAD_KERNEL("AvgPoolGrad", "avg_pool_grad_cpu", create, mean),
  GRAD_KERNEL("MaxPoolGrad", "max_pool_grad_cpu", create, grad),
  GRAD_KERNEL("MaxPoolGradGrad", "max_pool_grad_grad_cpu", create, grad_grad),
  GRAD_KERNEL("MaxPoolGradGradV2", "max_pool_grad_grad_v2_cpu", create_v2, grad_grad),
  GRAD_KERNEL("MaxPoolGradV2", "max_pool_grad_v2_cpu", create_v2, grad),
};

TN_OP_FAMILY(pool_grad)
