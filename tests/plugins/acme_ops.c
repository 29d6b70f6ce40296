/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with two ops that the library lacks, with schema, shape function and kernels:
 *
 *   AcmeScale   x: T, attribute factor   y = x * factor
 *   AcmeRepeat  x: T, attribute n        n copies of x in a new first dimension
 *
 * It takes their names from its manifest, where tests write others. The key "fault" selects a fault:
 *
 *   none     nothing
 *   misses   it does not register its second op
 *   fails    register_kernels fails when its ops are registered
 *   schema   the schema of its first op is malformed */
#include <string.h>

#include <tenon/runtime.h>

#define TYPES "float|double"
TN_PLUGIN_MANIFEST_OPS("acme.example_ops", "CPU", "300", "1.0.0", "Acme\0fault=none__", "AcmeScale,AcmeRepeat",
                       "AcmeScale@CPU:" TYPES ";AcmeRepeat@CPU:" TYPES)

/* ---- AcmeScale ---- */

static tn_status infer_scale(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims); /* -1: unknown */
  return tn_infer_output(ctx, 0, dims, rank, err);
}

/* Once per node: the state needed by compute. */
static tn_status create_scale(const tn_operation *op, void **state, tn_error *err)
{
  float *factor = tn_alloc(sizeof *factor);
  if (factor == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a factor");
  tn_status st = tn_operation_attr_float(op, "factor", factor, err);
  if (st == TN_OK) *state = factor;
  else tn_free(factor);
  return st;
}

static void destroy_state(void *state) { tn_free(state); }

static tn_status prepare_scale(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->cost_ns = (double)ctx->inputs[0].count / 4;
  tn_status st = tn_prepare_in_place(ctx, 0, 0, err); /* y may reuse x */
  return st == TN_OK ? tn_prepare_output_like(ctx, 0, 0, err) : st;
}

static tn_status scale_float(tn_kernel_ctx *ctx)
{
  const float *x = ctx->inputs[0]->data, factor = *(const float *)ctx->state;
  float *y = ctx->outputs[0]->data;
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) y[i] = x[i] * factor;
  return TN_OK;
}

static tn_status scale_double(tn_kernel_ctx *ctx)
{
  const double *x = ctx->inputs[0]->data, factor = (double)*(const float *)ctx->state;
  double *y = ctx->outputs[0]->data;
  for (int64_t i = 0; i < ctx->inputs[0]->count; i++) y[i] = x[i] * factor;
  return TN_OK;
}

/* ---- AcmeRepeat ---- */

static tn_status infer_repeat(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int64_t all[TN_MAX_RANK];
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  tn_status st = tn_operation_attr_int(tn_infer_operation(ctx), "n", &all[0], err);
  if (st != TN_OK || rank < 0) return st;
  if (rank == TN_MAX_RANK) return tn_error_set(err, TN_INVALID_ARGUMENT, "x has rank %d, wanted less", rank);
  if (rank > 0) memcpy(all + 1, dims, (size_t)rank * sizeof *dims);
  return tn_infer_output(ctx, 0, all, rank + 1, err);
}

static tn_status prepare_repeat(tn_prepare_ctx *ctx, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0];
  int64_t all[TN_MAX_RANK];
  tn_status st = tn_operation_attr_int(ctx->op, "n", &all[0], err);
  if (st != TN_OK) return st;
  if (x->rank == TN_MAX_RANK) return tn_error_set(err, TN_INVALID_ARGUMENT, "x has rank %d, wanted less", x->rank);
  if (x->rank > 0) memcpy(all + 1, x->dims, (size_t)x->rank * sizeof *x->dims);
  return tn_prepare_output(ctx, 0, all, x->rank + 1, err);
}

/* For all types whose elements can be copied as bytes. */
static tn_status repeat(tn_kernel_ctx *ctx)
{
  const tn_view *x = ctx->inputs[0], *y = ctx->outputs[0];
  size_t bytes = (size_t)x->count * tn_dtype_size(x->dtype);
  for (int64_t i = 0; bytes > 0 && i < y->dims[0]; i++) memcpy((char *)y->data + (size_t)i * bytes, x->data, bytes);
  return TN_OK;
}

/* ---- ops and kernels ---- */

static tn_op_def ops[] = {
  { .struct_size = TN_OP_DEF_SIZE,
    .inputs = "x: T",
    .outputs = "y: T",
    .attrs = "T: {float, double}; factor: float = 2.0",
    .traits = TN_TRAIT_ELEMENTWISE,
    .infer = infer_scale,
    .summary = "x times a constant" },
  { .struct_size = TN_OP_DEF_SIZE,
    .inputs = "x: T",
    .outputs = "y: T",
    .attrs = "T: {float, double}; n: int >= 0",
    .infer = infer_repeat,
    .summary = "n copies of x" },
};
static tn_kernel_def kernels[] = {
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .device = "CPU",
    .types = "T=float",
    .name = "acme_scale_float",
    .rank = TN_RANK_C,
    .create = create_scale,
    .destroy = destroy_state,
    .prepare = prepare_scale,
    .compute = scale_float },
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .device = "CPU",
    .types = "T=double",
    .name = "acme_scale_double",
    .rank = TN_RANK_C,
    .create = create_scale,
    .destroy = destroy_state,
    .prepare = prepare_scale,
    .compute = scale_double },
  { .struct_size = TN_KERNEL_DEF_SIZE,
    .device = "CPU",
    .name = "acme_repeat",
    .rank = TN_RANK_C,
    .prepare = prepare_repeat,
    .compute = repeat },
};
enum { N_OPS = 2, N_KERNELS = 3 };
static tn_op_family family = { .struct_size = TN_OP_FAMILY_SIZE, .name = "acme", .ops = ops, .n_ops = N_OPS,
                               .kernels = kernels, .n_kernels = N_KERNELS };

/* volatile: the compiler must not rely on the initialiser, as the bytes in the file are changed. */
static const char *volatile manifest = tn__manifest;

static const char *value_of(const char *key)
{
  const char *text = manifest, *end = text + sizeof(tn__manifest);
  for (size_t n = strlen(key); text < end; text += strlen(text) + 1)
    if (strncmp(text, key, n) == 0 && text[n] == '=') return text + n + 1;
  return "";
}

static char names[64], *second;

static tn_status register_kernels(tn_error *err)
{
  const char *fault = value_of("fault");
  strncpy(names, value_of("ops"), sizeof names - 1);
  second = strchr(names, ',');
  if (second == NULL) return tn_error_set(err, TN_INTERNAL, "two ops are wanted in its manifest");
  *second++ = 0;
  ops[0].name = kernels[0].op = kernels[1].op = names;
  ops[1].name = kernels[2].op = second;
  if (strcmp(fault, "schema") == 0) ops[0].attrs = "T: {nonsense}";
  if (strcmp(fault, "misses") == 0) family.n_ops = 1, family.n_kernels = 2;
  tn_status st = tn_register_ops(&family, err);
  if (st == TN_OK && strcmp(fault, "fails") == 0) return tn_error_set(err, TN_DATA_LOSS, "told to fail");
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

/* Defined by hand, as the name comes from the manifest; other plugins use
 * TN_PLUGIN_DEFINE(plugin). */
__attribute__((visibility("hidden"))) const tn_host *TN_HOST_TABLE = NULL;
TN_EXPORT const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err);
const tn_plugin *TN__ENTRY(const tn_host *host, tn_error *err)
{
  (void)err;
  TN_HOST_TABLE = host;
  plugin.name = value_of("name");
  plugin.version = value_of("version");
  plugin.manifest = manifest;
  return &plugin;
}
