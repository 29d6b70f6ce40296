/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel plugin, for listing. */
#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST_KERNELS("kernels", "test.kernels", "CPU", "300", "1.0.0", "Tests", "", "MatMul@CPU:float|double")

static tn_status register_kernels(tn_error *err)
{
  (void)err;
  return TN_OK;
}

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_KERNELS,
  .name = "test.kernels",
  .types = "CPU",
  .register_kernels = register_kernels,
};

TN_PLUGIN_DEFINE(plugin)
