/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel plugin controlled by its manifest. Tests copy the file and write another name, op, rank or fault over the
 * manifest's texts. Its kernel has the rank of the plugin and returns x + rank + 1000, whatever the op should compute,
 * so that a test can identify the plugin. The key "fault" selects a fault:
 *
 *   none               nothing
 *   create, prepare    the kernel declines each node, or all shapes
 *   nothing            it registers no kernel at all
 *   unknown_op         its kernel is for an op that does not exist
 *   fails, fails_late  register_kernels fails, before or after the kernel was registered
 *   silent             register_kernels fails without a reason
 *   null, unnamed      it has no register_kernels, or no name */
#include <stdlib.h>
#include <string.h>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST_KERNELS("kernels", "faster____________", "CPU\0fault=none______", "000", "1.0.0", "Tests", "",
                           "Other@CPU:float;OpName______@CPU")

/* volatile: the compiler must not rely on the initialiser, as the bytes in the file are changed. */
static const char *volatile manifest = tn__manifest;

static const char *value_of(const char *key)
{
  const char *text = manifest, *end = text + sizeof(tn__manifest);
  for (size_t n = strlen(key); text < end; text += strlen(text) + 1)
    if (strncmp(text, key, n) == 0 && text[n] == '=') return text + n + 1;
  return "";
}

static int has_fault(const char *name) { return strcmp(value_of("fault"), name) == 0; }

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  *state = NULL;
  if (!has_fault("create")) return TN_OK;
  return tn_error_set(err, TN_UNIMPLEMENTED, "no node '%s' here", tn_operation_name(op));
}

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  if (has_fault("prepare")) return tn_error_set(err, TN_UNIMPLEMENTED, "no such shapes here");
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const float *in = ctx->inputs[0]->data;
  float *out = ctx->outputs[0]->data, more = 1000 + (float)atoi(value_of("rank"));
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) out[i] = in[i] + more;
  return TN_OK;
}

static char op_name[40];
static tn_kernel_def kernel = {
  .struct_size = TN_KERNEL_DEF_SIZE,
  .op = op_name,
  .device = "CPU",
  .types = "T=float",
  .name = "faster_cpu",
  .create = create,
  .prepare = prepare,
  .compute = compute,
};
static const tn_op_family family = {
  .struct_size = TN_OP_FAMILY_SIZE, .name = "faster", .kernels = &kernel, .n_kernels = 1
};

static tn_status register_kernels(tn_error *err)
{
  const char *op = strchr(value_of("kernels"), ';') + 1;
  if (has_fault("nothing")) return TN_OK;
  if (has_fault("fails")) return tn_error_set(err, TN_INTERNAL, "told to fail");
  if (has_fault("silent")) return TN_UNAVAILABLE;
  strncpy(op_name, has_fault("unknown_op") ? "NoSuchOp@" : op, sizeof op_name - 1);
  op_name[strcspn(op_name, "@")] = 0;
  kernel.rank = atoi(value_of("rank"));
  tn_status st = tn_register_ops(&family, err);
  if (st == TN_OK && has_fault("fails_late")) return tn_error_set(err, TN_INTERNAL, "told to fail late");
  return st;
}

static tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_KERNELS,
  .types = "CPU",
  .register_kernels = register_kernels,
};

/* Defined by hand, as the name comes from the manifest. */
__attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;
TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err);
const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)
{
  (void)err;
  TN_HOST_TABLE = host;
  plugin.name = has_fault("unnamed") ? NULL : value_of("name");
  if (has_fault("null")) plugin.register_kernels = NULL;
  plugin.version = value_of("version");
  plugin.manifest = manifest;
  return &plugin;
}
