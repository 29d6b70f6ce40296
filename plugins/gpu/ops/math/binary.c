/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of two tensors that broadcast, gradients of activations, biases and sums of many tensors. */
#include "ops/elementwise/elementwise.h"

#include <string.h>

/* ---- BiasAdd ---- */

/* A vector along the channels. */
static tn_status plan_bias(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  const gpu_value *v = &n->outputs[0];
  bool first = gpu_attr_text_is(n, "data_format", "NCHW");
  (void)gpu_ew_begin(&e, n, 0, err);
  uint32_t x = gpu_ew_input(&e, 0, err), y = x;
  if (first && e.status == TN_OK) {
    e.args[e.n_args] = (gpu_ew_arg){ .dtype = n->inputs[1].dtype, .input = 1, .n_inputs = 1 };
    if (v->dims[1] != 1) e.args[e.n_args].strides[1] = 1;
    y = e.n_args++;
  } else {
    y = gpu_ew_input(&e, 1, err);
  }
  gpu_ew_step_of(&e, gpu_step_find("AddV2", 5), x, y, 0, err);
  return gpu_ew_end(&e, err);
}

/* ---- AddN ---- */

static tn_status plan_sum(gpu_node *n, tn_error *err)
{
  gpu_ew e;
  uint32_t sum = 0, at[GPU_EW_VALUES] = { 0 };
  if (n->n_inputs > GPU_EW_VALUES / 2) return gpu_decline(err, "it has %u inputs", (unsigned)n->n_inputs);
  (void)gpu_ew_begin(&e, n, 0, err);
  for (uint32_t i = 0; i < n->n_inputs; i++) at[i] = gpu_ew_input(&e, i, err);
  const gpu_step_info *add = gpu_step_find(n->n_inputs > 1 ? "AddV2" : "Identity", n->n_inputs > 1 ? 5 : 8);
  gpu_ew_step_of(&e, add, at[0], at[1], 0, err);
  sum = n->n_inputs;
  for (uint32_t i = 2; i < n->n_inputs; i++) gpu_ew_step_of(&e, add, sum++, at[i], 0, err);
  return gpu_ew_end(&e, err);
}

/* ---- Equal, NotEqual: shapes that do not fit are an answer, which the CPU gives ---- */

/* A bool that broadcasts is as large as a number that does not, so nothing is in place. */
#define COMPARE_OP(op, types) { op, "T=" types, gpu_plan_step },
#define NUMBERS GPU_FLOATS "|" GPU_INTEGERS
#define NUMBERS_OP(op) { op, "T=" NUMBERS, gpu_plan_step, .in_place = true },
#define FLOATS_OP(op) { op, "T=" GPU_FLOATS, gpu_plan_step, .in_place = true },
#define INTEGERS_OP(op) { op, "T=" GPU_INTEGERS, gpu_plan_step, .in_place = true },

extern const gpu_op gpu_binary_ops[];
const gpu_op gpu_binary_ops[] = {
  NUMBERS_OP("Add") NUMBERS_OP("AddV2") NUMBERS_OP("Sub") NUMBERS_OP("Mul") NUMBERS_OP("Maximum")
  NUMBERS_OP("Minimum")
  FLOATS_OP("RealDiv") NUMBERS_OP("Div") NUMBERS_OP("FloorDiv") NUMBERS_OP("TruncateDiv") NUMBERS_OP("FloorMod")
  { "Pow", "T=" GPU_FLOATS "|int8|int16|int32|int64", gpu_plan_step, .in_place = true },
  { "Mod", "T=float|double|int32|int64", gpu_plan_step, .in_place = true },
  { "TruncateMod", "T=float|double|int32|int64", gpu_plan_step, .in_place = true },
  { "SquaredDifference", "T=" GPU_FLOATS "|int32|int64", gpu_plan_step, .in_place = true },
  FLOATS_OP("DivNoNan") FLOATS_OP("MulNoNan") FLOATS_OP("Xdivy") FLOATS_OP("Xlogy") FLOATS_OP("Xlog1py")
  FLOATS_OP("Atan2")
  { "NextAfter", "T=float|double", gpu_plan_step, .in_place = true },
  INTEGERS_OP("BitwiseAnd") INTEGERS_OP("BitwiseOr") INTEGERS_OP("BitwiseXor") INTEGERS_OP("LeftShift")
  INTEGERS_OP("RightShift")
  COMPARE_OP("Equal", NUMBERS "|bool") COMPARE_OP("NotEqual", NUMBERS "|bool")
  COMPARE_OP("Less", NUMBERS) COMPARE_OP("LessEqual", NUMBERS) COMPARE_OP("Greater", NUMBERS)
  COMPARE_OP("GreaterEqual", NUMBERS)
  COMPARE_OP("ApproximateEqual", "float|double")
  { "LogicalAnd", NULL, gpu_plan_step, .in_place = true },
  { "LogicalOr", NULL, gpu_plan_step, .in_place = true },
  NUMBERS_OP("ReluGrad") NUMBERS_OP("Relu6Grad")
  FLOATS_OP("EluGrad") FLOATS_OP("SeluGrad") FLOATS_OP("SoftplusGrad") FLOATS_OP("SoftsignGrad")
  FLOATS_OP("LeakyReluGrad")
  FLOATS_OP("SigmoidGrad") FLOATS_OP("TanhGrad") FLOATS_OP("SqrtGrad") FLOATS_OP("RsqrtGrad")
  FLOATS_OP("ReciprocalGrad")
  FLOATS_OP("InvGrad")
  { "BiasAdd", "T=" NUMBERS, plan_bias, .in_place = true },
  { "BiasAddV1", "T=" NUMBERS, plan_bias, .in_place = true },
  { "AddN", "T=" NUMBERS, plan_sum, .in_place = true },
  { "AccumulateNV2", "T=" NUMBERS, plan_sum, .in_place = true },
  { NULL },
};
