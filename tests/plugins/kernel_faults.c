/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel plugin that breaks one rule, selected by the variable TENON_TEST_FAULT, for tests of
 * tenon-conformance: a kernel for Neg on floats. Without it, or with "none", it breaks none. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/runtime.h>

#include "effects.h"

TN_PLUGIN_MANIFEST_KERNELS("kernels", "test.kernel_faults", "CPU", "300", "1.0.0", "Tests", "", "Neg@CPU:float")

static const char *fault;
static int is(const char *name)
{
  if (fault == NULL) fault = getenv("TENON_TEST_FAULT");
  return fault != NULL && strcmp(fault, name) == 0;
}

static atomic_int inside;
static void *volatile leaked;

static tn_status create(const tn_operation *op, void **state, tn_error *err)
{
  (void)op;
  effects_of(fault, "create");
  if (is("kernel_leaks")) leaked = tn_alloc(100);
  *state = tn_alloc(16);
  return *state != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a kernel");
}

static void destroy(void *state) { tn_free(state); }

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  if (is("prepare_crash")) raise(SIGSEGV);
  return tn_prepare_output_like(ctx, 0, 0, err);
}

static tn_status compute(tn_kernel_ctx *ctx)
{
  const float *in = ctx->inputs[0]->data;
  float *out = ctx->outputs[0]->data;
  int64_t n = ctx->inputs[0]->count;
  effects_of(fault, "kernel");
  if (is("kernel_exits")) exit(0);
  if (is("kernel_crash")) raise(SIGSEGV);
  if (is("kernel_needs_elements") && n == 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "there are no elements");
  if (is("kernel_scribbles") && n > 0) *(volatile float *)ctx->inputs[0]->data = 1;
  if (is("kernel_not_reentrant")) {
    int others = atomic_fetch_add(&inside, 1);
    if (others == 0) usleep(500);
    atomic_fetch_sub(&inside, 1);
    if (others > 0) return tn_error_set(ctx->err, TN_INTERNAL, "one after the other");
  }
  for (int64_t i = 0; i < n; i++) out[i] = -in[i];
  if (is("kernel_wrong") && n > 0) out[n - 1] += 1;
  return TN_OK;
}

static tn_kernel_def kernel = { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Neg", .device = "CPU", .types = "T=float",
                                .name = "neg_of_faults", .rank = 300, .create = create, .destroy = destroy,
                                .prepare = prepare, .compute = compute };
static const tn_op_family family = {
  .struct_size = TN_OP_FAMILY_SIZE, .name = "faults", .kernels = &kernel, .n_kernels = 1
};

static tn_status register_kernels(tn_error *err)
{
  effects_of(getenv("TENON_TEST_FAULT"), "register");
  if (is("register_crash")) *(volatile int *)NULL = 1;
  if (is("register_exit")) exit(0);
  while (is("register_hang")) sleep(1);
  if (is("register_silent")) return TN_INTERNAL;
  if (is("register_fails")) return tn_error_set(err, TN_INTERNAL, "its tables are damaged");
  if (is("register_nothing")) return TN_OK;
  if (is("other_op")) kernel.op = "Abs";
  if (is("other_type")) kernel.types = "T=double";
  if (is("other_device")) kernel.device = "GPU";
  if (is("flags")) kernel.flags = 4;
  return tn_register_ops(&family, err);
}

static tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_KERNELS,
  .name = "test.kernel_faults",
  .version = "1.0.0",
  .types = "CPU",
  .register_kernels = register_kernels,
};

static tn_plugin as_told(void)
{
  if (is("no_register_kernels")) plugin.register_kernels = NULL;
  return plugin;
}

TN_PLUGIN_DEFINE(as_told())
