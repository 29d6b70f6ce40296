/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the activations: of the gradient that comes in (x below) and what the activation was given, or for Elu
 * and Selu what it gave (y). */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/support/elementwise.h>
#include <ops/support/vector_math.h>

#define BY_FLOAT(x, f, d) _Generic((x), float: f, double: d)(x)
/* Selu's two constants, in the type of the elements as TensorFlow has them. */
#define SCALE_f32 1.05070099f
#define SCALE_f64 1.05070098735548049342
#define SCALE_f16 0x1.0dp0f
#define SCALE_bf16 0x1.0cp0f
#define SCALE_ALPHA_f32 1.75809934f
#define SCALE_ALPHA_f64 1.75809934084737685994
#define SCALE_ALPHA_f16 0x1.c2p0f
#define SCALE_ALPHA_bf16 0x1.c2p0f

/* Products, so that an infinite or undefined gradient is NaN where the activation is flat. */
#define EXPR_relu_grad(d, x, y) ((x) * ((y) > 0 ? 1 : 0))
#define EXPR_relu6_grad(d, x, y) ((x) * ((((y) > 0) & ((y) < 6)) ? 1 : 0))
#define EXPR_elu_grad(d, x, y) ((y) < 0 ? (x) * ((y) + 1) : (x))
#define EXPR_selu_grad(d, x, y) ((y) < 0 ? (x) * ((y) + SCALE_ALPHA_##d) : (x) * SCALE_##d)
#define EXPR_softplus_grad(d, x, y) ((x) / (BY_FLOAT(-(y), tn__expf, exp) + 1))
#define EXPR_softsign_grad(d, x, y) ((x) / ((1 + BY_FLOAT(y, fabsf, fabs)) * (1 + BY_FLOAT(y, fabsf, fabs))))

#define REALS(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
TN__BINARY(relu_grad, 0.3, REALS, TN__NO_TYPES)
TN__BINARY(relu6_grad, 0.3, REALS, TN__NO_TYPES)
TN__BINARY(elu_grad, 0.4, TN__SAME_FLOATS, TN__NO_TYPES)
TN__BINARY(selu_grad, 0.4, TN__SAME_FLOATS, TN__NO_TYPES)
TN__BINARY(softplus_grad, 2, TN__SAME_FLOATS, TN__NO_TYPES)
TN__BINARY(softsign_grad, 1, TN__SAME_FLOATS, TN__NO_TYPES)

static tn_status prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_same_shape(ctx, 0, 1, err);
  return st != TN_OK ? st : tn__binary_prepare_same(ctx, err);
}

/* ---- LeakyReluGrad ---- */

#define LEAKY_NS 0.4

typedef struct leaky_state {
  void (*fn)(const void *x, const void *y, void *out, int64_t n, float alpha);
  int64_t size;
  float alpha;
} leaky_state;

/* alpha is rounded to the type of the elements. */
#define LEAKY_LOOP(d)                                                                            \
  static void leaky_##d(const void *x_, const void *y_, void *out_, int64_t n, float alpha_)     \
  {                                                                                              \
    const tn__S_##d *xs = x_, *ys = y_;                                                          \
    tn__S_##d *out = out_;                                                                       \
    tn__C_##d alpha = TN__L_##d(TN__P_##d(alpha_));                                              \
    TN__IVDEP                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                            \
      tn__C_##d x = TN__L_##d(xs[i]), y = TN__L_##d(ys[i]), scaled = x * alpha;                  \
      out[i] = TN__P_##d(y > 0 ? x : scaled);                                                    \
    }                                                                                            \
  }
LEAKY_LOOP(f32)
LEAKY_LOOP(f64)
LEAKY_LOOP(f16)
LEAKY_LOOP(bf16)

static tn_status leaky_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = NULL;
  leaky_state s = { NULL, 0, tn__attr_float(node, "alpha", 0.2f) };
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  switch (dtype) {
  case TN_FLOAT: s.fn = leaky_f32; break;
  case TN_DOUBLE: s.fn = leaky_f64; break;
  case TN_HALF: s.fn = leaky_f16; break;
  case TN_BFLOAT16: s.fn = leaky_bf16; break;
  default: return tn__no_kernel(err, node, dtype);
  }
  s.size = (int64_t)tn_dtype_size(dtype);
  leaky_state *p = tn__zalloc(sizeof *p);
  if (p == NULL) return tn__no_memory(err, "LeakyReluGrad", sizeof *p);
  *p = s;
  *state = p;
  return TN_OK;
}

static void leaky_destroy(void *state) { tn__free(state, sizeof(leaky_state)); }

static tn_status leaky_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_same_shape(ctx, 0, 1, err);
  ctx->cost_ns = LEAKY_NS * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn__prepare_unchanged(ctx, err);
}

typedef struct leaky_run {
  const leaky_state *state;
  const char *x, *y;
  char *out;
} leaky_run;

static void leaky_part(void *user, int64_t begin, int64_t end)
{
  const leaky_run *r = user;
  int64_t at = begin * r->state->size;
  r->state->fn(r->x + at, r->y + at, r->out + at, end - begin, r->state->alpha);
}

static tn_status leaky_compute(tn_kernel_ctx *ctx)
{
  leaky_run run = { ctx->state, ctx->inputs[0]->data, ctx->inputs[1]->data, ctx->outputs[0]->data };
  int64_t n = ctx->outputs[0]->count;
  if (n == 0) return TN_OK;
  if (n <= TN__SERIAL_ELEMENTS)
    leaky_part(&run, 0, n);
  else
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, LEAKY_NS, leaky_part, &run);
  return TN_OK;
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
    .rank = TN_RANK_C, .create = leaky_create, .destroy = leaky_destroy, .prepare = leaky_prepare,
    .compute = leaky_compute },
};

extern const tn_op_family tn__ops_activation_grad;
const tn_op_family tn__ops_activation_grad = {
  .struct_size = TN_OP_FAMILY_SIZE,
  .name = "activation_grad",
  .ops = ops,
  .n_ops = sizeof ops / sizeof ops[0],
  .kernels = kernels,
  .n_kernels = sizeof kernels / sizeof kernels[0],
};
