/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the activations. Below, x is the incoming gradient; y is the activation's input, or for Elu and Selu its
 * output. */
#include <math.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/functions/double_exponential.h>

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

/* Written as products, so that an infinite or NaN gradient gives NaN where the activation is flat. */
#define EXPR_relu_grad(d, x, y) ((x) * ((y) > 0 ? 1 : 0))
#define EXPR_relu6_grad(d, x, y) ((x) * ((((y) > 0) & ((y) < 6)) ? 1 : 0))
#define EXPR_elu_grad(d, x, y) ((y) < 0 ? (x) * ((y) + 1) : (x))
#define EXPR_selu_grad(d, x, y) ((y) < 0 ? (x) * ((y) + SCALE_ALPHA_##d) : (x) * SCALE_##d)
#define EXPR_softplus_grad(d, x, y) ((x) / (BY_FLOAT(-(y), tn__expf, tn__exp_d) + 1))
#define EXPR_softplus_grad_fused(d, x, y) ((x) / (tn__exp_d_by(1, -(y)) + 1))
#define EXPR_softsign_grad(d, x, y) ((x) / ((1 + BY_FLOAT(y, fabsf, fabs)) * (1 + BY_FLOAT(y, fabsf, fabs))))

#define REALS(X, op) TN__VIA_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
TN__BINARY(relu_grad, 0.3, REALS, TN__NO_TYPES)
TN__BINARY(relu6_grad, 0.3, REALS, TN__NO_TYPES)
TN__BINARY(elu_grad, 0.4, TN__VIA_FLOATS, TN__NO_TYPES)
TN__BINARY(selu_grad, 0.4, TN__SAME_FLOATS, TN__NO_TYPES)
TN__BINARY_DENSE(softplus_grad, 2, TN__VIA_FLOATS, TN__NO_TYPES)
TN__BINARY(softsign_grad, 1, TN__VIA_FLOATS, TN__NO_TYPES)

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_same_shape(ctx, 0, 1, err);
  return st != TN_OK ? st : tn__binary_prepare_same(ctx, err);
}

/* ---- the family ---- */

#define T_FLOATS "T: {half, bfloat16, float, double}"
#define T_REALS "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"

/* X(op, its loops, name of input 1, attributes, summary) */
#define GRADIENT_OPS(X)                                                                       \
  X("ReluGrad", relu_grad, "features", T_REALS, "gradient of Relu")                           \
  X("Relu6Grad", relu6_grad, "features", T_REALS, "gradient of Relu6")                        \
  X("EluGrad", elu_grad, "outputs", T_FLOATS, "gradient of Elu")                              \
  X("SeluGrad", selu_grad, "outputs", T_FLOATS, "gradient of Selu")                           \
  X("SoftplusGrad", softplus_grad, "features", T_FLOATS, "gradient of Softplus")              \
  X("SoftsignGrad", softsign_grad, "features", T_FLOATS, "gradient of Softsign")

#define GRADIENT_OP(op, fn, second, attrs, summary)                                                  \
  TN__ELEMENTWISE_OP(op, "gradients: T, " second ": T", "backprops: T", attrs, 0, tn__infer_merged, summary),

static const tn_op_def ops[] = {
  GRADIENT_OPS(GRADIENT_OP)
  TN__ELEMENTWISE_OP("LeakyReluGrad", "gradients: T, features: T", "backprops: T",
                     "alpha: float = 0.2; " T_FLOATS " = float", 0, tn__infer_merged, "gradient of LeakyRelu"),
};

#define GRADIENT_KERNEL(op_, fn, second, attrs_, summary_)                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = #fn "_cpu", .rank = TN_RANK_C, \
    .create = fn##_create, .prepare = prepare, .compute = tn__binary_compute },

static const tn_kernel_def kernels[] = {
  GRADIENT_OPS(GRADIENT_KERNEL)
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "LeakyReluGrad", .device = "CPU", .name = "leaky_relu_grad_cpu",
    .rank = TN_RANK_C, .create = tn__curve_create, .destroy = tn__curve_destroy, .prepare = tn__curve_prepare,
    .compute = tn__curve_compute },
};

TN_OP_FAMILY(activation_grad)
