/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that call functions of the graph's library. Their shapes come from the functions' bodies; a function that the library
 * does not have leaves them unknown. There are no kernels yet: running them belongs to control flow. */
#include <core/graph/graph_internal.h>
#include <ops/support/shapes.h>

#define GIVEN "output_shapes"

static tn_status infer_call(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_call(ctx, "f", 0, err); }

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

static tn_status infer_while(tn_infer_ctx *ctx, tn_error *err) { return tn__infer_loop(ctx, "cond", "body", GIVEN, err); }

/* What comes back for an input has its shape. */
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

#define OP(op, in, out, attributes, more, shapes, text)                                           \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_FUNCTION_CALL | (more), .infer = shapes, .summary = text }
#define LISTS "Tin: list(type) >= 0; Tout: list(type) >= 0"
#define CONFIG "config: string = ''; config_proto: string = ''; executor_type: string = ''"

static const tn_op_def ops[] = {
  OP("Case", "branch_index: int32, input: Tin", "output: Tout",
     LISTS "; branches: list(func) >= 1; output_shapes: list(shape) = []", TN_TRAIT_STATEFUL, infer_case,
     "one of several functions, by number"),
  OP("If", "cond: Tcond, input: Tin", "output: Tout",
     "Tcond: type; " LISTS "; then_branch: func; else_branch: func; output_shapes: list(shape) = []", TN_TRAIT_STATEFUL,
     infer_if, "one of two functions"),
  OP("PartitionedCall", "args: Tin", "output: Tout", LISTS "; f: func; " CONFIG, 0, infer_call,
     "a function without effects"),
  OP("StatefulPartitionedCall", "args: Tin", "output: Tout", LISTS "; f: func; " CONFIG, TN_TRAIT_STATEFUL, infer_call,
     "a function"),
  OP("StatelessCase", "branch_index: int32, input: Tin", "output: Tout",
     LISTS "; branches: list(func) >= 1; output_shapes: list(shape) = []", 0, infer_case,
     "one of several functions without effects, by number"),
  OP("StatelessIf", "cond: Tcond, input: Tin", "output: Tout",
     "Tcond: type; " LISTS "; then_branch: func; else_branch: func; output_shapes: list(shape) = []", 0, infer_if,
     "one of two functions without effects"),
  OP("StatelessWhile", "input: T", "output: T",
     "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10", 0,
     infer_while, "a function again and again, without effects"),
  OP("SymbolicGradient", "input: Tin", "output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func", 0,
     infer_gradient, "the gradient of a function"),
  OP("While", "input: T", "output: T",
     "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10",
     TN_TRAIT_STATEFUL, infer_while, "a function again and again"),
};

extern const tn_op_family tn__ops_functions;
const tn_op_family tn__ops_functions = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "functions",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
};
