/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel plugin: what it offers, and entering it in the op table. */
#include "onednn.h"

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST_KERNELS("kernels", "onednn", "CPU", "300", TN_VERSION_STRING, "Tenon", "",
                           "MatMul@CPU:float;_TnMatMul@CPU:float;Conv2D@CPU:float;_TnConv2D@CPU:float;"
                           "DepthwiseConv2dNative@CPU:float;_TnDepthwiseConv2D@CPU:float")

static tn_status add(const char *name, const tn_kernel_def *kernels, size_t n, tn_op_family *family, tn_error *err)
{
  *family = (tn_op_family){ .struct_size = TN_OP_FAMILY_SIZE, .name = name, .kernels = kernels, .n_kernels = n };
  return tn_register_ops(family, err);
}

static tn_status register_kernels(tn_error *err)
{
  static tn_op_family products, convolutions; /* the table keeps them */
  tn_status st = add("onednn.product", dnn_product_kernels, dnn_n_product_kernels, &products, err);
  if (st == TN_OK) st = add("onednn.convolution", dnn_convolution_kernels, dnn_n_convolution_kernels, &convolutions, err);
  return st;
}

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
