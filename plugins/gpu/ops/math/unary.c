/* SPDX-License-Identifier: Apache-2.0 */
/* Ops of one tensor, element by element, and Cast. */
#include "ops/elementwise/elementwise.h"

/* ---- Cast ---- */

/* An integer of a float, as the CPU's kernel makes it: out of range is the smallest one, short ones are cut from 32
 * bits. */
static const char *of_float(tn_dtype to)
{
  switch (to) {
  case TN_INT8: case TN_INT16: case TN_INT32: case TN_UINT8: case TN_UINT16:
    return "(V)(x >= -2147483648.0f && x < 2147483648.0f ? (int)x : INT_MIN)";
  case TN_INT64: return "x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (long)x : LONG_MIN";
  case TN_UINT32: return "x > -2147483649.0f && x < 4294967296.0f ? (uint)(long)x : 0x80000000u";
  default:
    return "x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (ulong)(long)x : "
           "x > 0 && x < 18446744073709551616.0f ? (ulong)x : 0x8000000000000000ul";
  }
}

/* Subnormal numbers of the wide types count as 0. */
static const char *to_truth(tn_dtype from)
{
  switch (from) {
  case TN_FLOAT: return "!(x > -FLT_MIN && x < FLT_MIN)";
  case TN_DOUBLE: return "!(x > -DBL_MIN && x < DBL_MIN)";
  default: return "x != 0";
  }
}

static tn_status plan_cast(gpu_node *n, tn_error *err)
{
  const gpu_element *from = gpu_element_of(n->inputs[0].dtype), *to = gpu_element_of(n->outputs[0].dtype);
  gpu_ew e;
  if (from == NULL || to == NULL || gpu_attr_bool(n, "Truncate", false)) return gpu_decline(err, "no such cast");
  if (from == to) {
    gpu_copy(n, 0, 0);
    return gpu_node_done(n, err);
  }
  (void)gpu_ew_begin(&e, n, 0, err);
  uint32_t x = gpu_ew_input(&e, 0, err);
  bool cut = from->kind == GPU_FLOATING && (to->kind == GPU_SIGNED || to->kind == GPU_UNSIGNED);
  const char *expression = "(V)x";
  if (to->kind == GPU_TRUTH) expression = to_truth(from->dtype);
  else if (cut) expression = of_float(to->dtype);
  gpu_ew_text_step(&e, expression, x, err);
  return gpu_ew_end(&e, err);
}

#define FLOATS_OP(op) { op, "T=" GPU_FLOATS, gpu_plan_step, .in_place = true },
#define NUMBERS_OP(op) { op, "T=" GPU_FLOATS "|" GPU_INTEGERS, gpu_plan_step, .in_place = true },
#define SIGNED_OP(op) { op, "T=" GPU_FLOATS "|int8|int16|int32|int64", gpu_plan_step, .in_place = true },

extern const gpu_op gpu_unary_ops[];
const gpu_op gpu_unary_ops[] = {
  SIGNED_OP("Abs") SIGNED_OP("Neg") SIGNED_OP("Sign") NUMBERS_OP("Square")
  FLOATS_OP("Sqrt") FLOATS_OP("Rsqrt") FLOATS_OP("Exp") FLOATS_OP("Expm1") FLOATS_OP("Log") FLOATS_OP("Log1p")
  FLOATS_OP("Sin") FLOATS_OP("Cos") FLOATS_OP("Tan") FLOATS_OP("Asin") FLOATS_OP("Acos") FLOATS_OP("Atan")
  FLOATS_OP("Sinh") FLOATS_OP("Cosh") FLOATS_OP("Tanh") FLOATS_OP("Asinh") FLOATS_OP("Acosh") FLOATS_OP("Atanh")
  FLOATS_OP("Sigmoid") FLOATS_OP("Floor") FLOATS_OP("Ceil") FLOATS_OP("Reciprocal") FLOATS_OP("Inv")
  FLOATS_OP("Erf") FLOATS_OP("Erfc") FLOATS_OP("Lgamma")
  { "Round", "T=" GPU_FLOATS "|int32|int64", gpu_plan_step, .in_place = true },
  { "Rint", "T=float|double", gpu_plan_step, .in_place = true },
  { "IsNan", "T=" GPU_FLOATS, gpu_plan_step },
  { "IsInf", "T=" GPU_FLOATS, gpu_plan_step },
  { "IsFinite", "T=" GPU_FLOATS, gpu_plan_step },
  { "LogicalNot", NULL, gpu_plan_step, .in_place = true },
  { "Invert", "T=" GPU_INTEGERS, gpu_plan_step, .in_place = true },
  NUMBERS_OP("Relu") NUMBERS_OP("Relu6")
  FLOATS_OP("Elu") FLOATS_OP("Selu") FLOATS_OP("Softplus") FLOATS_OP("Softsign") FLOATS_OP("LeakyRelu")
  { "Cast", "SrcT=" GPU_FLOATS "|" GPU_INTEGERS "|bool,DstT=" GPU_FLOATS "|" GPU_INTEGERS "|bool", plan_cast,
    .in_place = true },
  { NULL },
};
