/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow primitives, from which the planner builds branches and loops. None of these ops
 * computes anything, so only Abort has a kernel. */
#include <ops/kernel/family.h>
#include <ops/kernel/shapes.h>

static tn_status infer_switch(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 1, &dims);
  if (rank > 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: the predicate has rank %d, wanted a scalar", tn__infer_op(ctx),
                        rank);
  rank = tn_infer_input(ctx, 0, &dims);
  tn_status st = tn_infer_output(ctx, 0, dims, rank, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, dims, rank, err) : st;
}

/* Infers the shape that all inputs agree on. */
static tn_status infer_merge(tn_infer_ctx *ctx, tn_error *err)
{
  int64_t common[TN_MAX_RANK];
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  for (int32_t d = 0; d < rank; d++) common[d] = dims[d];
  for (size_t i = 1; rank >= 0 && i < tn_infer_n_inputs(ctx); i++) {
    if (tn_infer_input(ctx, i, &dims) != rank) rank = -1;
    for (int32_t d = 0; d < rank; d++)
      if (common[d] != dims[d]) common[d] = -1;
  }
  tn_status st = tn_infer_output(ctx, 0, common, rank, err);
  return st == TN_OK ? tn_infer_output(ctx, 1, NULL, 0, err) : st;
}

/* A loop variable may change its shape in the next iteration, a loop invariant may not. */
static tn_status infer_enter(tn_infer_ctx *ctx, tn_error *err)
{
  tn_bool constant = 0;
  tn_status st = tn_operation_attr_bool(tn_infer_operation(ctx), "is_constant", &constant, err);
  const int64_t *dims = NULL;
  int32_t rank = st == TN_OK && constant ? tn_infer_input(ctx, 0, &dims) : -1;
  return st == TN_OK ? tn_infer_output(ctx, 0, dims, rank, err) : st;
}

static tn_status infer_same(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims;
  int32_t rank = tn_infer_input(ctx, 0, &dims);
  return tn_infer_output(ctx, 0, dims, rank, err);
}

#define OP(op, in, out, attributes, more, shapes, text)                                                           \
  {                                                                                                               \
    .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, .traits = more, \
    .infer = shapes, .summary = text                                                                              \
  }
#define FRAME "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10"
#define HANDS_ON TN_TRAIT_IDENTITY

static const tn_op_def ops[] = {
  OP("ControlTrigger", "", "", "", TN_TRAIT_CONTROL_TRIGGER | TN_TRAIT_NO_EFFECT, NULL,
     "does nothing; runs even if its control inputs are dead"),
  OP("Enter", "data: T", "output: T", FRAME, TN_TRAIT_ENTER | HANDS_ON, infer_enter,
     "forwards its input into a loop frame"),
  OP("Exit", "data: T", "output: T", "T: type", TN_TRAIT_EXIT | HANDS_ON, infer_same,
     "forwards its input out of a loop frame"),
  OP("LoopCond", "input: bool", "output: bool", "", TN_TRAIT_LOOP_COND | HANDS_ON, infer_same, "loop condition"),
  OP("Merge", "inputs: N * T", "output: T, value_index: int32", "T: type; N: int >= 1", TN_TRAIT_MERGE, infer_merge,
     "forwards the available input"),
  OP("NextIteration", "data: T", "output: T", "T: type", TN_TRAIT_NEXT_ITERATION | HANDS_ON, infer_same,
     "forwards its input to the next loop iteration"),
  OP("RefEnter", "data: Ref(T)", "output: Ref(T)", FRAME, TN_TRAIT_ENTER | HANDS_ON, infer_enter,
     "forwards a reference into a loop frame"),
  OP("RefExit", "data: Ref(T)", "output: Ref(T)", "T: type", TN_TRAIT_EXIT | HANDS_ON, infer_same,
     "forwards a reference out of a loop frame"),
  OP("RefMerge", "inputs: Ref(N * T)", "output: Ref(T), value_index: int32", "T: type; N: int >= 1", TN_TRAIT_MERGE,
     infer_merge, "forwards the available reference"),
  OP("RefNextIteration", "data: Ref(T)", "output: Ref(T)", "T: type", TN_TRAIT_NEXT_ITERATION | HANDS_ON, infer_same,
     "forwards a reference to the next loop iteration"),
  OP("RefSwitch", "data: Ref(T), pred: bool", "output_false: Ref(T), output_true: Ref(T)", "T: type", TN_TRAIT_SWITCH,
     infer_switch, "forwards a reference to one of two outputs, selected by a predicate"),
  OP("Switch", "data: T, pred: bool", "output_false: T, output_true: T", "T: type", TN_TRAIT_SWITCH, infer_switch,
     "forwards its input to one of two outputs, selected by a predicate"),
};

TN_OP_FAMILY_WITHOUT_KERNELS(control_flow)
