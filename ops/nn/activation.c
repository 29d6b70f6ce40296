/* SPDX-License-Identifier: Apache-2.0 */
/* Activations: the Relu family, Softplus and Softsign. */
#include <math.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/family.h>
#include <ops/kernel/functions/double_exponential.h>

/* ---- float functions without calls, so that loops vectorise ---- */

/* exp(x) for x <= 0; NaN stays NaN. Results below e^-87, about the smallest normal number, are 0. */
TN__INLINED float exp_f(float x)
{
  const float shift = 0x1.8p23f; /* adding it rounds to an integer in the low bits */
  float shifted = x * 0x1.715476p0f + shift, k = shifted - shift;
  float r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f; /* x - k log 2, with log 2 split in two parts */
  float p = 1.0f / 720 + r * (1.0f / 5040);
  p = 1.0f / 120 + r * p;
  p = 1.0f / 24 + r * p;
  p = 1.0f / 6 + r * p;
  p = 0.5f + r * p;
  p = 1 + (r + r * r * p);
  float e = p * tn__float_of_bits((tn__float_bits(shifted) << 23) + (127u << 23));
  return x < -87.0f ? 0 : e;
}

/* log(1 + y) for y in [0, 1], computed as 2 atanh(y / (2 + y)). */
TN__INLINED float log1p_f(float y)
{
  float s = y / (2 + y), q = s * s;
  float p = 1.0f / 13 + q * (1.0f / 15);
  p = 1.0f / 11 + q * p;
  p = 1.0f / 9 + q * p;
  p = 1.0f / 7 + q * p;
  p = 1.0f / 5 + q * p;
  p = 1.0f / 3 + q * p;
  return 2 * (s + s * (q * p));
}

TN__INLINED float expm1_below_f(float x) { return exp_f(x < 0 ? x : 0) - 1; }
TN__INLINED double expm1_below_d(double x) { return tn__expm1_d(x < 0 ? x : 0); }
TN__INLINED double expm1_below_fused_d(double x) { return tn__expm1_fused_d(x < 0 ? x : 0); }
/* Beyond the limit on either side TensorFlow drops a term, which affects bfloat16. */
TN__INLINED float softplus_f(float x, float limit)
{
  float e = exp_f(-fabsf(x)), y = (x > 0 ? x : 0) + log1p_f(e), below = x < -limit ? e : y;
  return x > limit ? x : below;
}
TN__INLINED double softplus_d_by(const int fused, double x, double limit)
{
  double e = tn__exp_d_by(fused, -fabs(x)), y = (x > 0 ? x : 0) + tn__log1p_d_by(fused, e), below = x < -limit ? e : y;
  return x > limit ? x : below;
}
TN__INLINED double softplus_d(double x, double limit) { return softplus_d_by(0, x, limit); }
TN__INLINED double softplus_fused_d(double x, double limit) { return softplus_d_by(1, x, limit); }

/* ---- elementwise ops ---- */

#define BY_FLOAT(x, f, d) _Generic((x), float: f, double: d)(x)
/* Selu's two constants, rounded to the element type as in TensorFlow. */
#define SCALE_f32 1.05070099f
#define SCALE_f64 1.05070098735548049342
#define SCALE_f16 0x1.0dp0f
#define SCALE_bf16 0x1.0cp0f
#define SCALE_ALPHA_f32 1.75809934f
#define SCALE_ALPHA_f64 1.75809934084737685994
#define SCALE_ALPHA_f16 0x1.c2p0f
#define SCALE_ALPHA_bf16 0x1.c2p0f
/* Softplus's limit: -log(epsilon of the type) - 2. */
#define LIMIT_f32 13.9423847f
#define LIMIT_f64 34.0436533891171556
#define LIMIT_f16 0x1.c08p2f
#define LIMIT_bf16 0x1.6cp1f

/* NaN stays NaN. */
#define EXPR_relu(d, x) ((x) <= 0 ? 0 : (x))
#define AT_MOST_6(x) ((x) > 6 ? 6 : (x))
#define EXPR_relu6(d, x) ((x) <= 0 ? 0 : AT_MOST_6(x))
#define EXPR_elu(d, x) ((x) < 0 ? BY_FLOAT(x, expm1_below_f, expm1_below_d) : (x))
#define EXPR_elu_fused(d, x) ((x) < 0 ? BY_FLOAT(x, expm1_below_f, expm1_below_fused_d) : (x))
#define EXPR_selu(d, x) \
  ((x) < 0 ? SCALE_ALPHA_##d * BY_FLOAT(x, expm1_below_f, expm1_below_d) : SCALE_##d * (x))
#define EXPR_selu_fused(d, x) \
  ((x) < 0 ? SCALE_ALPHA_##d * BY_FLOAT(x, expm1_below_f, expm1_below_fused_d) : SCALE_##d * (x))
#define EXPR_softplus(d, x) _Generic((x), float: softplus_f, double: softplus_d)(x, LIMIT_##d)
#define EXPR_softplus_fused(d, x) _Generic((x), float: softplus_f, double: softplus_fused_d)(x, LIMIT_##d)
#define EXPR_softsign(d, x) ((x) / (1 + BY_FLOAT(x, fabsf, fabs)))

#define REALS(X, op) TN__VIA_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
TN__UNARY(relu, 0.3, REALS)
TN__UNARY(relu6, 0.3, REALS)
TN__UNARY_FUSED(elu, 2, TN__VIA_FLOATS)
TN__UNARY_FUSED(selu, 2, TN__SAME_FLOATS)
TN__UNARY_FUSED(softplus, 4, TN__SAME_FLOATS)
TN__UNARY(softsign, 1, TN__VIA_FLOATS)

/* ---- the family ---- */

#define T_FLOATS "T: {half, bfloat16, float, double}"
#define T_REALS "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"

/* X(op, its loops, attributes, dtypes of the kernel if the schema allows more, summary) */
#define UNARY_OPS(X)                                                                                    \
  X("Relu", relu, "T: {" T_REALS ", qint8}",                                                            \
    "T=float|double|int32|uint8|int16|int8|int64|bfloat16|uint16|half|uint32|uint64", "max(x, 0)")      \
  X("Relu6", relu6, "T: {" T_REALS "}", NULL, "min(max(x, 0), 6)")                                      \
  X("Elu", elu, T_FLOATS, NULL, "x, below 0 e to the x, minus 1")                                       \
  X("Selu", selu, T_FLOATS, NULL, "Elu scaled so that layers keep their variance")                      \
  X("Softplus", softplus, T_FLOATS, NULL, "log(1 + e to the x)")                                        \
  X("Softsign", softsign, T_FLOATS, NULL, "x / (1 + |x|)")

#define UNARY_OP(op, fn, attrs, types, summary) \
  TN__ELEMENTWISE_OP(op, "features: T", "activations: T", attrs, 0, tn__infer_unchanged, summary),

#define CURVE(op, summary)                                                                     \
  TN__ELEMENTWISE_OP(op, "features: T", "activations: T", "alpha: float = 1; " T_FLOATS, 0, \
                     tn__infer_unchanged, summary)

static const tn_op_def ops[] = {
  UNARY_OPS(UNARY_OP)
  TN__ELEMENTWISE_OP("LeakyRelu", "features: T", "activations: T", "alpha: float = 0.2; " T_FLOATS " = float", 0,
                     tn__infer_unchanged, "x, below 0 alpha * x"),
  CURVE("_TnSwish", "x * sigmoid(alpha * x), fused from its steps"),
  CURVE("_TnHardSigmoid", "alpha * min(max(x + 3, 0), 6), fused from its steps"),
  CURVE("_TnHardSwish", "alpha * x * min(max(x + 3, 0), 6), fused from its steps"),
  CURVE("_TnMish", "x * tanh(log(1 + e to the x)), fused from its steps"),
  CURVE("_TnGelu", "x / 2 * (1 + erf(alpha * x)), fused from its steps"),
  CURVE("_TnGeluTanh", "x / 2 * (1 + tanh(alpha * (x + 0.044715 * x cubed))), fused from its steps"),
};

#define UNARY_KERNEL(op, fn, attrs, types, summary) TN__UNARY_KERNEL(op, types, fn),

#define CURVE_KERNEL(op_, name_)                                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = name_, .rank = TN_RANK_C,             \
    .create = tn__curve_create, .destroy = tn__curve_destroy, .prepare = tn__curve_prepare,                    \
    .compute = tn__curve_compute }

static const tn_kernel_def kernels[] = {
  UNARY_OPS(UNARY_KERNEL)
  CURVE_KERNEL("LeakyRelu", "leaky_relu_cpu"),
  CURVE_KERNEL("_TnSwish", "swish_cpu"),
  CURVE_KERNEL("_TnHardSigmoid", "hard_sigmoid_cpu"),
  CURVE_KERNEL("_TnHardSwish", "hard_swish_cpu"),
  CURVE_KERNEL("_TnMish", "mish_cpu"),
  CURVE_KERNEL("_TnGelu", "gelu_cpu"),
  CURVE_KERNEL("_TnGeluTanh", "gelu_tanh_cpu"),
};

TN_OP_FAMILY(activation)
