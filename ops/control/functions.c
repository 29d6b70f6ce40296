/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that call functions of the graph's library: calls and branches. Loops are in
 * function_loops.c. Shapes are inferred from the functions' bodies; if the library lacks a
 * function, they are unknown. */
#include <core/graph/graph_internal.h>
#include <ops/control/function_calls.h>
#include <ops/control/function_gradient.h>
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>
#include <string.h>

#define GIVEN "output_shapes"

/* ---- shapes ---- */

static tn_status infer_call(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_call(ctx, "f", 0, err); }
static tn_status infer_remote(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_call(ctx, "f", 1, err); }

static tn_status infer_if(tn_infer_ctx *ctx, tn_error *err)
{
  static const char *const branches[] = { "then_branch", "else_branch" };
  return tn__infer_branches(ctx, branches, 2, 1, GIVEN, err);
}

static tn_status infer_case(tn_infer_ctx *ctx, tn_error *err)
{
  static const char *const branches[] = { "branches" };
  return tn__infer_branches(ctx, branches, 1, 1, GIVEN, err);
}

/* The gradient of an input has the input's shape. */
static tn_status infer_gradient(tn_infer_ctx *ctx, tn_error *err)
{
  size_t n = tn_operation_n_outputs(tn_infer_operation(ctx));
  if (tn_infer_n_inputs(ctx) < n)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: %zu outputs, but only %zu inputs", tn__infer_op(ctx), n,
                        tn_infer_n_inputs(ctx));
  tn_status st = TN_OK;
  for (size_t i = 0; st == TN_OK && i < n; i++) {
    const int64_t *dims;
    int32_t rank = tn_infer_input(ctx, i, &dims);
    st = tn_infer_output(ctx, i, dims, rank, err);
  }
  return st;
}

/* ---- calls ---- */

static tn_status call_compute(tn_kernel_ctx *ctx) { return tn__call_function(ctx, 0, 0); }

/* Whether a target is a device of this process: "", "/device:CPU:0",
 * "/job:localhost/replica:0/task:0/cpu:0". */
static bool is_local(const char *target, size_t size)
{
  static const char *const parts[] = { "/job:localhost", "/replica:0", "/task:0" };
  for (size_t i = 0; i < 3; i++) {
    size_t n = strlen(parts[i]);
    if (size < n || memcmp(target, parts[i], n) != 0 || (size > n && target[n] != '/')) continue;
    target += n;
    size -= n;
  }
  static const char *const devices[] = { "", "/cpu:0", "/CPU:0", "/device:CPU:0", "/device:cpu:0" };
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (strlen(devices[i]) == size && memcmp(devices[i], target, size) == 0) return true;
  return false;
}

static tn_status remote_compute(tn_kernel_ctx *ctx)
{
  const tn_view *target = ctx->inputs[0];
  if (target->count != 1)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "the target has %lld elements, wanted one",
                        (long long)target->count);
  size_t size;
  const char *text = tn_string_data(target->data, &size);
  int shown = size > 200 ? 200 : (int)size;
  if (!is_local(text, size))
    return tn_error_set(ctx->err, TN_UNIMPLEMENTED,
                        "target '%.*s' is not a device of this process, and only these are supported", shown, text);
  return tn__call_function(ctx, 0, 1);
}

/* The gradient is function 1: gradients are numbered after the functions themselves. */
static tn_status gradient_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)op, (void)err;
  *state = NULL;
  tn__function_differentiate = tn__function_gradient;
  return TN_OK;
}

static tn_status gradient_compute(tn_kernel_ctx *ctx) { return tn__call_function(ctx, 1, 0); }

/* ---- branches ---- */

static tn_status if_compute(tn_kernel_ctx *ctx)
{
  bool yes;
  tn_status st = tn__is_true(ctx->inputs[0], &yes, ctx->err);
  if (st != TN_OK) return st;
  return tn__call_function(ctx, yes ? 0 : 1, 1);
}

static tn_status case_create(const tn_operation *op, void **state, tn_error *err)
{
  (void)err;
  *state = (void *)(uintptr_t)tn_operation_n_functions(op);
  return TN_OK;
}

/* An index out of range selects the last branch. */
static tn_status case_compute(tn_kernel_ctx *ctx)
{
  const tn_view *index = ctx->inputs[0];
  uint32_t n = (uint32_t)(uintptr_t)ctx->state;
  if (index->rank != 0)
    return tn_error_set(ctx->err, TN_INVALID_ARGUMENT, "branch_index has rank %d, wanted a scalar", index->rank);
  int32_t k = *(const int32_t *)index->data;
  return tn__call_function(ctx, k < 0 || (uint32_t)k >= n ? n - 1 : (uint32_t)k, 1);
}

/* ---- tables ---- */

#define LISTS "Tin: list(type) >= 0; Tout: list(type) >= 0"
#define CONFIG "config: string = ''; config_proto: string = ''; executor_type: string = ''"
#define IF_ATTRS "Tcond: type; " LISTS "; then_branch: func; else_branch: func; output_shapes: list(shape) = []"
#define CASE_ATTRS LISTS "; branches: list(func) >= 1; output_shapes: list(shape) = []"
#define OP TN__FUNCTION_OP

static const tn_op_def ops[] = {
  OP("Case", "branch_index: int32, input: Tin", "output: Tout", CASE_ATTRS, TN_TRAIT_STATEFUL | TN_TRAIT_READS,
     infer_case, "one of several functions, by number"),
  OP("If", "cond: Tcond, input: Tin", "output: Tout", IF_ATTRS, TN_TRAIT_STATEFUL | TN_TRAIT_READS, infer_if,
     "one of two functions"),
  OP("PartitionedCall", "args: Tin", "output: Tout", LISTS "; f: func; " CONFIG,
     TN_TRAIT_OWN_CALL | TN_TRAIT_PLAIN_CALL, infer_call, "a function without effects"),
  OP("RemoteCall", "target: string, args: Tin", "output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
     TN_TRAIT_STATEFUL | TN_TRAIT_READS, infer_remote, "a function on a device that is named by an input"),
  OP("StatefulPartitionedCall", "args: Tin", "output: Tout", LISTS "; f: func; " CONFIG,
     TN_TRAIT_STATEFUL | TN_TRAIT_READS | TN_TRAIT_PLAIN_CALL, infer_call, "a function"),
  OP("StatelessCase", "branch_index: int32, input: Tin", "output: Tout", CASE_ATTRS, 0, infer_case,
     "one of several functions without effects, by number"),
  OP("StatelessIf", "cond: Tcond, input: Tin", "output: Tout", IF_ATTRS, 0, infer_if,
     "one of two functions without effects"),
  OP("SymbolicGradient", "input: Tin", "output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func", 0,
     infer_gradient, "the gradient of a function"),
};

#define KERNEL(name_, create_, compute_) TN__FUNCTION_KERNEL(name_, create_, compute_)

static const tn_kernel_def kernels[] = {
  KERNEL("Case", case_create, case_compute),
  KERNEL("If", NULL, if_compute),
  KERNEL("PartitionedCall", NULL, call_compute),
  KERNEL("RemoteCall", NULL, remote_compute),
  KERNEL("StatefulPartitionedCall", NULL, call_compute),
  KERNEL("StatelessCase", case_create, case_compute),
  KERNEL("StatelessIf", NULL, if_compute),
  KERNEL("SymbolicGradient", gradient_create, gradient_compute),
};

TN_OP_FAMILY(functions)
