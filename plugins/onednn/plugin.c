/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel plugin: its manifest, and the registration of its kernels in the op table. */
#include "onednn.h"

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST_KERNELS("kernels", "onednn", "CPU", "300", TN_VERSION_STRING, "Tenon", "",
                           "MatMul@CPU:float|bfloat16;_TnMatMul@CPU:float;BatchMatMul@CPU:float|bfloat16;"
                           "BatchMatMulV2@CPU:float|bfloat16;BatchMatMulV3@CPU:float|bfloat16;"
                           "Conv2D@CPU:float|bfloat16;_TnConv2D@CPU:float;"
                           "DepthwiseConv2dNative@CPU:float;_TnDepthwiseConv2D@CPU:float;Conv3D@CPU:float;"
                           "Conv2DBackpropInput@CPU:float;Conv2DBackpropFilter@CPU:float;"
                           "DepthwiseConv2dNativeBackpropInput@CPU:float;"
                           "DepthwiseConv2dNativeBackpropFilter@CPU:float;"
                           "Conv3DBackpropInput@CPU:float;Conv3DBackpropInputV2@CPU:float;"
                           "Conv3DBackpropFilter@CPU:float;Conv3DBackpropFilterV2@CPU:float;"
                           "AvgPool@CPU:float;MaxPool@CPU:float;AvgPool3D@CPU:float;MaxPool3D@CPU:float;"
                           "AvgPoolGrad@CPU:float;MaxPoolGrad@CPU:float;AvgPool3DGrad@CPU:float;"
                           "Softmax@CPU:float;LRN@CPU:float")

#define KERNEL(type, set, text, create_, prepare_)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = type, .device = "CPU", .types = set, .name = text,      \
    .rank = 300, .create = create_, .destroy = tn_free, .prepare = prepare_,                         \
    .destroy_shape_state = dnn_plan_destroy, .compute = dnn_compute }
#define PRODUCT(type, set, text) KERNEL(type, set, text, dnn_product_create, dnn_product_prepare)
#define CONVOLUTION(type, set, text) KERNEL(type, set, text, dnn_conv_create, dnn_conv_prepare)
#define GRADIENT(type, text) KERNEL(type, "T=float", text, dnn_conv_create, dnn_gradient_prepare)
#define POOLING(type, text) KERNEL(type, "T=float", text, dnn_pool_create, dnn_pool_prepare)

static const tn_kernel_def kernels[] = {
  PRODUCT("MatMul", "T=float|bfloat16", "matmul_onednn"),
  PRODUCT("_TnMatMul", "T=float", "fused_matmul_onednn"),
  PRODUCT("BatchMatMul", "T=float|bfloat16", "batch_matmul_onednn"),
  PRODUCT("BatchMatMulV2", "T=float|bfloat16", "batch_matmul_v2_onednn"),
  PRODUCT("BatchMatMulV3", "Ta=float,Tb=float,Tout=float", "batch_matmul_v3_onednn"),
  PRODUCT("BatchMatMulV3", "Ta=bfloat16,Tb=bfloat16,Tout=bfloat16", "batch_matmul_v3_bf16_onednn"),
  CONVOLUTION("Conv2D", "T=float|bfloat16", "conv2d_onednn"),
  CONVOLUTION("DepthwiseConv2dNative", "T=float", "depthwise_onednn"),
  CONVOLUTION("_TnConv2D", "T=float", "fused_conv2d_onednn"),
  CONVOLUTION("_TnDepthwiseConv2D", "T=float", "fused_depthwise_onednn"),
  CONVOLUTION("Conv3D", "T=float", "conv3d_onednn"),
  GRADIENT("Conv2DBackpropInput", "conv2d_backprop_input_onednn"),
  GRADIENT("Conv2DBackpropFilter", "conv2d_backprop_filter_onednn"),
  GRADIENT("DepthwiseConv2dNativeBackpropInput", "depthwise_backprop_input_onednn"),
  GRADIENT("DepthwiseConv2dNativeBackpropFilter", "depthwise_backprop_filter_onednn"),
  GRADIENT("Conv3DBackpropInput", "conv3d_backprop_input_onednn"),
  GRADIENT("Conv3DBackpropInputV2", "conv3d_backprop_input_v2_onednn"),
  GRADIENT("Conv3DBackpropFilter", "conv3d_backprop_filter_onednn"),
  GRADIENT("Conv3DBackpropFilterV2", "conv3d_backprop_filter_v2_onednn"),
  POOLING("AvgPool", "avg_pool_onednn"),
  POOLING("MaxPool", "max_pool_onednn"),
  POOLING("AvgPool3D", "avg_pool3d_onednn"),
  POOLING("MaxPool3D", "max_pool3d_onednn"),
  KERNEL("AvgPoolGrad", "T=float", "avg_pool_grad_onednn", dnn_pool_create, dnn_pool_gradient_prepare),
  KERNEL("MaxPoolGrad", "T=float", "max_pool_grad_onednn", dnn_pool_create, dnn_pool_gradient_prepare),
  KERNEL("AvgPool3DGrad", "T=float", "avg_pool3d_grad_onednn", dnn_pool_create, dnn_pool_gradient_prepare),
  KERNEL("Softmax", "T=float", "softmax_onednn", NULL, dnn_softmax_prepare),
  KERNEL("LRN", "T=float", "lrn_onednn", dnn_lrn_create, dnn_lrn_prepare),
};

/* One family: all are registered, or none. */
static const tn_op_family family = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "onednn",
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof *kernels,
};

static tn_status register_kernels(tn_error *err) { return tn_register_ops(&family, err); }

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_KERNELS,
  .name = "onednn",
  .version = TN_VERSION_STRING,
  .types = "CPU",
  .register_kernels = register_kernels,
};

TN_PLUGIN_DEFINE(plugin)
