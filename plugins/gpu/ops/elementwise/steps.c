/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of elementwise ops. Each has the meaning of the CPU's kernel (ops/math/math_unary.c and its
 * neighbours). */
#include "ops/elementwise/steps.h"

#include <string.h>

#define UNARY(op_, ...) { .op = op_, .reads = 1, __VA_ARGS__ }
#define BINARY(op_, ...) { .op = op_, .reads = 2, __VA_ARGS__ }
#define FLOAT(op, text) UNARY(op, .floats = text),
/* One number at a time: on PoCL a huge number makes its three neighbours in a vector wrong. */
#define PERIODIC(op, text) UNARY(op, .single = true, .floats = text),
#define FLOAT2(op, text) BINARY(op, .floats = text),
#define COMPARE(op, text) BINARY(op, .compares = true, .floats = text, .integers = text),
#define COMPARE_ALL(op, text) BINARY(op, .compares = true, .floats = text, .integers = text, .truths = text),

/* Uses the correctly rounded quotient, which the device's division may not give: rounding down must not yield the next
 * lower integer. */
#define NEAREST(op, action, ...) BINARY(op, .single = true, .floats = action "(NEAREST_QUOTIENT(x, y))", __VA_ARGS__),
/* Of integers, with functions of elementwise_text.c. TensorFlow has another code for two of them. */
#define BY_ZERO(code, function) \
  .integers = function "(x, y, fault_words, fault_call)", .fault = code, .fault_text = "integer division by zero"

static const gpu_step_info steps[] = {
  /* ---- of one ---- */
  UNARY("Identity", .floats = "x", .integers = "x", .truths = "x"),
  UNARY("Abs", .floats = "fabs(x)", .integers = "(V)(x < 0 ? 0 - (W)x : (W)x)"),
  UNARY("Neg", .floats = "-x", .integers = "(V)(0 - (W)x)"),
  UNARY("Sign", .floats = "x != x ? x : sign(x)", .integers = "(V)((x > 0) - (x < 0))"),
  UNARY("Square", .floats = "x * x", .integers = "(V)((W)x * (W)x)"),
  FLOAT("Sqrt", "sqrt(x)") FLOAT("Rsqrt", "K(1.0) / sqrt(x)") FLOAT("Exp", "exp(x)") FLOAT("Expm1", "expm1(x)")
      FLOAT("Log", "log(x)") FLOAT("Log1p", "log1p(x)") PERIODIC("Sin", "sin(x)") PERIODIC("Cos", "cos(x)")
          PERIODIC("Tan", "tan(x)") FLOAT("Asin", "asin(x)") FLOAT("Acos", "acos(x)") FLOAT("Atan", "atan(x)")
              FLOAT("Sinh", "sinh(x)") FLOAT("Cosh", "cosh(x)") FLOAT("Tanh", "tanh(x)") FLOAT("Asinh", "asinh(x)")
                  FLOAT("Acosh", "acosh(x)") FLOAT("Atanh", "atanh(x)") FLOAT("Sigmoid", "K(1.0) / (K(1.0) + exp(-x))")
                      FLOAT("Floor", "floor(x)") FLOAT("Ceil", "ceil(x)")
                          UNARY("Round", .floats = "rint(x)", .integers = "(V)0"), /* 0 as the CPU's kernel has it */
  FLOAT("Rint", "rint(x)") FLOAT("Reciprocal", "K(1.0) / x") FLOAT("Inv", "K(1.0) / x")
      FLOAT("Erf", "x * x > (V)ERF_LIMIT ? (V)NAN : erf(x)") FLOAT("Erfc", "erfc(x)")
          UNARY("Lgamma", .single = true, .floats = "lgamma(x)"),
  UNARY("IsNan", .compares = true, .floats = "x != x"),
  UNARY("IsInf", .compares = true, .floats = "fabs(x) == (V)INFINITY"),
  UNARY("IsFinite", .compares = true, .floats = "fabs(x) < (V)INFINITY"),
  UNARY("LogicalNot", .truths = "x == 0"),
  UNARY("Invert", .integers = "(V)~x"),
  UNARY("Relu", .floats = "x <= K(0.0) ? K(0.0) : x", .integers = "x <= 0 ? (V)0 : x"),
  UNARY("Relu6", .floats = "x <= K(0.0) ? K(0.0) : x > K(6.0) ? K(6.0) : x",
        .integers = "x <= 0 ? (V)0 : x > 6 ? (V)6 : x"),
  FLOAT("Elu", "x < K(0.0) ? expm1(x) : x")
      FLOAT("Selu", "x < K(0.0) ? K(SELU_SCALE_ALPHA) * expm1(x) : K(SELU_SCALE) * x")
          FLOAT("Softplus", "x > K(SOFTPLUS_LIMIT) ? x : x < -K(SOFTPLUS_LIMIT) ? exp(x) : "
                            "fmax(x, K(0.0)) + log1p(exp(-fabs(x)))") FLOAT("Softsign", "x / (K(1.0) + fabs(x))")
              UNARY("LeakyRelu", .floats = "x > K(0.0) ? x : x * (V)A", .attr = "alpha"),

  /* ---- of two ---- */
  BINARY("Add", .floats = "x + y", .integers = "(V)((W)x + (W)y)"),
  BINARY("AddV2", .floats = "x + y", .integers = "(V)((W)x + (W)y)"),
  BINARY("Sub", .floats = "x - y", .integers = "(V)((W)x - (W)y)"),
  BINARY("Mul", .floats = "x * y", .integers = "(V)((W)x * (W)y)"),
  FLOAT2("RealDiv", "x / y") BINARY("Div", .floats = "x / y", BY_ZERO(TN_INVALID_ARGUMENT, "int_div")),
  NEAREST("FloorDiv", "floor", BY_ZERO(TN_INVALID_ARGUMENT, "int_floor_div")) NEAREST("TruncateDiv", "trunc",
                                                                                      BY_ZERO(TN_INTERNAL, "int_div"))
      BINARY("FloorMod", .single = true, .floats = "FLOOR_MOD(x, y)", BY_ZERO(TN_INVALID_ARGUMENT, "int_floor_mod")),
  BINARY("Mod", .floats = "fmod(x, y)", BY_ZERO(TN_INVALID_ARGUMENT, "int_mod")),
  BINARY("TruncateMod", .floats = "fmod(x, y)", BY_ZERO(TN_INTERNAL, "int_mod")),
  BINARY("Pow", .floats = "pow(x, y)", .integers = "int_pow(x, y, fault_words, fault_call)",
         .fault = TN_INVALID_ARGUMENT, .fault_text = "integer to a negative power"),
  FLOAT2("Atan2", "atan2(x, y)") FLOAT2("NextAfter", "nextafter(x, y)")
      BINARY("Maximum", .floats = "x > y || x != x ? x : y", .integers = "x > y ? x : y"),
  BINARY("Minimum", .floats = "x < y || x != x ? x : y", .integers = "x < y ? x : y"),
  BINARY("SquaredDifference", .floats = "(x - y) * (x - y)", .integers = "(V)(((W)x - (W)y) * ((W)x - (W)y))"),
  FLOAT2("DivNoNan", "y == K(0.0) ? K(0.0) : x / y") FLOAT2("MulNoNan", "y == K(0.0) ? K(0.0) : x * y")
      FLOAT2("Xdivy", "x == K(0.0) ? K(0.0) : x / y") FLOAT2("Xlogy", "x == K(0.0) ? K(0.0) : x * log(y)")
          FLOAT2("Xlog1py", "x == K(0.0) ? K(0.0) : x * log1p(y)") BINARY("BitwiseAnd", .integers = "(V)(x & y)"),
  BINARY("BitwiseOr", .integers = "(V)(x | y)"),
  BINARY("BitwiseXor", .integers = "(V)(x ^ y)"),
  BINARY("LeftShift", .integers = "(V)((W)x << (y < 0 ? 0 : y > BITS - 1 ? BITS - 1 : y))"),
  BINARY("RightShift", .integers = "(V)(x >> (y < 0 ? 0 : y > BITS - 1 ? BITS - 1 : y))"),
  COMPARE_ALL("Equal", "x == y") COMPARE_ALL("NotEqual", "x != y") COMPARE("Less", "x < y")
      COMPARE("LessEqual", "x <= y") COMPARE("Greater", "x > y") COMPARE("GreaterEqual", "x >= y")
          BINARY("ApproximateEqual", .compares = true, .floats = "fabs(x - y) <= (V)A", .attr = "tolerance"),
  BINARY("LogicalAnd", .truths = "x & y"),
  BINARY("LogicalOr", .truths = "x | y"),

  /* ---- gradients: products, so that an infinite gradient is NaN where an activation is flat ---- */
  BINARY("ReluGrad", .floats = "x * (y > K(0.0) ? K(1.0) : K(0.0))", .integers = "(V)(y > 0 ? x : 0)"),
  BINARY("Relu6Grad", .floats = "x * (y > K(0.0) && y < K(6.0) ? K(1.0) : K(0.0))",
         .integers = "(V)(y > 0 && y < 6 ? x : 0)"),
  FLOAT2("EluGrad", "y < K(0.0) ? x * (y + K(1.0)) : x")
      FLOAT2("SeluGrad", "y < K(0.0) ? x * (y + K(SELU_SCALE_ALPHA)) : x * K(SELU_SCALE)")
          FLOAT2("SoftplusGrad", "x / (exp(-y) + K(1.0))")
              FLOAT2("SoftsignGrad", "x / ((K(1.0) + fabs(y)) * (K(1.0) + fabs(y)))")
                  BINARY("LeakyReluGrad", .floats = "y > K(0.0) ? x : x * (V)A", .attr = "alpha"),
  FLOAT2("SigmoidGrad", "y * (x * (K(1.0) - x))") FLOAT2("TanhGrad", "y * (K(1.0) - x * x)")
      FLOAT2("SqrtGrad", "y == K(0.0) ? K(0.0) : y * (K(0.5) / x)")
          FLOAT2("RsqrtGrad", "y == K(0.0) ? K(0.0) : (-(y * x) / K(2.0)) * (x * x)")
              FLOAT2("ReciprocalGrad", "y == K(0.0) ? K(0.0) : y * -(x * x)")
                  FLOAT2("InvGrad", "y == K(0.0) ? K(0.0) : y * -(x * x)")

  /* ---- of three; the first one of Select and SelectV2 is bool ---- */
  { .op = "ClipByValue",
    .reads = 3,
    .floats = "z < x ? (z < y ? y : z) : x < y ? y : x",
    .integers = "z < x ? (z < y ? y : z) : x < y ? y : x" },
  { .op = "SelectV2", .reads = 3, .single = true, .integers = "x ? y : z" }, /* elements are moved as they are */
};

const gpu_step_info *gpu_step_find(const char *op, size_t size)
{
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (strncmp(steps[i].op, op, size) == 0 && steps[i].op[size] == 0) return &steps[i];
  return NULL;
}

const char *gpu_step_text(const gpu_step_info *s, int kind)
{
  switch (kind) {
  case GPU_FLOATING: return s->floats;
  case GPU_SIGNED: case GPU_UNSIGNED: return s->integers;
  case GPU_TRUTH: return s->truths;
  default: return strcmp(s->op, "Identity") == 0 || strcmp(s->op, "SelectV2") == 0 ? s->integers : NULL;
  }
}
