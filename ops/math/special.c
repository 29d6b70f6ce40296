/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise special functions: BesselI0e BesselI1e Digamma Erf Erfc Erfinv Lgamma Ndtri of one tensor, Igamma
 * IgammaGradA Igammac Polygamma Zeta of two, Betainc of three. */
#include <float.h>
#include <math.h>
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>
#include <ops/kernel/functions/bessel.h>
#include <ops/kernel/functions/double_error.h>
#include <ops/kernel/functions/error.h>
#include <ops/kernel/functions/gamma.h>
#include <ops/kernel/functions/quantile.h>
#include <ops/math/special_functions.h>

/* For double only, TensorFlow 2.21 gives NaN if the square overflows; its results are the reference. */
TN__INLINED double erf_d_by(const int fused, double x)
{
  return x * x > DBL_MAX ? (double)NAN : tn__erf_d_by(fused, x);
}
TN__INLINED double erf_d(double x) { return erf_d_by(0, x); }

#define BY_FLOAT(x, f, d) _Generic((x), float: f, double: d)(x)

/* Computed in double; the results of float need fewer terms. */
#define IN_DOUBLE(d, fn, x, y) ((tn__C_##d)fn((double)(x), (double)(y), ENOUGH_##d))
#define ENOUGH_f32 1e-10
#define ENOUGH_f16 1e-10
#define ENOUGH_bf16 1e-10
#define ENOUGH_f64 DBL_EPSILON
#define FUSED(x, f, d) _Generic((x), float: f, double: d)(1, x)
#define EXPR_erf_fused(d, x) FUSED(x, tn__erff_by, erf_d_by)
#define EXPR_erfc_fused(d, x) FUSED(x, tn__erfcf_by, tn__erfc_d_by)
#define EXPR_erf(d, x) _Generic((x), float: tn__erff, double: erf_d)(x)
#define EXPR_erfc(d, x) _Generic((x), float: tn__erfcf, double: tn__erfc_d)(x)
#define EXPR_erfinv(d, x) _Generic((x), float: tn__erfinvf, double: tn__erfinv_d)(x)
#define EXPR_ndtri(d, x) tn__quantile_d(x)
#define EXPR_ndtri_rough(d, x) tn__quantile_rough(x)
#define EXPR_lgamma(d, x) tn__log_gamma(x)
#define EXPR_lgamma_rough(d, x) tn__lgamma_wide(x)
#define EXPR_digamma(d, x) tn__digamma_d(x)
#define EXPR_bessel_i0e(d, x) BY_FLOAT(x, tn__bessel_i0ef, tn__bessel_i0e_d)
#define EXPR_bessel_i1e(d, x) BY_FLOAT(x, tn__bessel_i1ef, tn__bessel_i1e_d)
#define EXPR_igamma(d, x, y) IN_DOUBLE(d, tn__igamma, x, y)
#define EXPR_igammac(d, x, y) IN_DOUBLE(d, tn__igammac, x, y)
#define EXPR_igamma_grad_a(d, x, y) IN_DOUBLE(d, tn__igamma_grad_a, x, y)
#define EXPR_zeta(d, x, y) IN_DOUBLE(d, tn__zeta, x, y)
#define EXPR_polygamma(d, x, y) IN_DOUBLE(d, tn__polygamma, x, y)

TN__UNARY_FUSED(erf, 3, TN__VIA_FLOATS)
TN__UNARY_FUSED(erfc, 6, TN__VIA_FLOATS)
TN__UNARY(erfinv, 8, TN__VIA_FLOATS)
/* The results of float need fewer steps, or fewer digits. */
TN__UNARY_LOOP_PLAIN(ndtri_rough, f64, f64)
TN__UNARY_WIDE(ndtri, 20, ndtri_rough)
TN__UNARY_LOOP_PLAIN(lgamma_rough, f64, f64)
TN__UNARY_WIDE(lgamma, 10, lgamma_rough)
TN__UNARY_WIDE(digamma, 8, digamma)
TN__UNARY(bessel_i0e, 5, TN__VIA_FLOATS)
TN__UNARY(bessel_i1e, 5, TN__VIA_FLOATS)
TN__BINARY(igamma, 200, TN__NO_TYPES, TN__SAME_FLOATS)
TN__BINARY(igammac, 200, TN__NO_TYPES, TN__SAME_FLOATS)
TN__BINARY(igamma_grad_a, 200, TN__NO_TYPES, TN__SAME_FLOATS)
TN__BINARY(zeta, 300, TN__NO_TYPES, TN__SAME_FLOATS)
TN__BINARY(polygamma, 300, TN__NO_TYPES, TN__SAME_FLOATS)

/* ---- Betainc: scalars are broadcast, other shapes must be equal ---- */

static tn_status betainc_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  uint32_t shape_of = 0;
  for (uint32_t i = 3; i-- > 0;)
    if (ctx->inputs[i].rank > 0) shape_of = i;
  for (uint32_t i = shape_of + 1; i < 3; i++) {
    tn_status st = ctx->inputs[i].rank == 0 ? TN_OK : tn__want_same_shape(ctx, shape_of, i, err);
    if (st != TN_OK) return st;
  }
  ctx->cost_ns = 20 + 200.0 * (double)ctx->inputs[shape_of].count;
  return tn_prepare_output_like(ctx, 0, shape_of, err);
}

static double element(const tn_view *v, int64_t i)
{
  int64_t at = v->rank == 0 ? 0 : i;
  return v->dtype == TN_DOUBLE ? ((const double *)v->data)[at] : (double)((const float *)v->data)[at];
}

static void betainc_part(void *user, int64_t begin, int64_t end)
{
  const tn_kernel_ctx *ctx = user;
  const tn_view *out = ctx->outputs[0];
  double enough = out->dtype == TN_DOUBLE ? ENOUGH_f64 : ENOUGH_f32;
  for (int64_t i = begin; i < end; i++) {
    double y = tn__betainc(element(ctx->inputs[0], i), element(ctx->inputs[1], i), element(ctx->inputs[2], i), enough);
    if (out->dtype == TN_DOUBLE)
      ((double *)out->data)[i] = y;
    else
      ((float *)out->data)[i] = (float)y;
  }
}

static tn_status betainc_compute(tn_kernel_ctx *ctx)
{
  tn_parallel_for(ctx, ctx->outputs[0]->count, 256, 200, betainc_part, ctx);
  return TN_OK;
}

static tn_status infer_betainc(tn_infer_ctx *ctx, tn_error *err)
{
  tn__shape out;
  bool unknown = false;
  tn__shape_scalar(&out);
  for (size_t i = 0; i < 3; i++) {
    tn__shape s;
    tn__infer_get(ctx, i, &s);
    unknown = unknown || s.rank < 0;
    if (s.rank <= 0) continue;
    if (out.rank == 0)
      out = s;
    else if (!tn__shape_merge(&out, s.dims, s.rank))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "%s: input %u has a different shape than the inputs before it",
                          tn__infer_op(ctx), (unsigned)i);
  }
  if (unknown && out.rank == 0) tn__shape_unknown(&out);
  return tn__infer_set(ctx, 0, &out, err);
}

/* ---- tables ---- */

#define T_FLOATS "T: {bfloat16, half, float, double}"
#define T_WIDE "T: {float, double}"

#define UNARY_OPS(X)                                                                           \
  X("BesselI0e", bessel_i0e, "e to the -|x| times the modified Bessel function of order 0")    \
  X("BesselI1e", bessel_i1e, "e to the -|x| times the modified Bessel function of order 1")    \
  X("Digamma", digamma, "derivative of the logarithm of the gamma function")                   \
  X("Erf", erf, "error function")                                                              \
  X("Erfc", erfc, "1 - error function")                                                        \
  X("Erfinv", erfinv, "inverse of the error function")                                         \
  X("Lgamma", lgamma, "logarithm of the gamma function's absolute value")                      \
  X("Ndtri", ndtri, "quantile of the normal distribution")
#define BINARY_OPS(X)                                                                                     \
  X("Igamma", igamma, "a: T, x: T", T_FLOATS, "lower incomplete gamma function, regularized")             \
  X("IgammaGradA", igamma_grad_a, "a: T, x: T", T_WIDE, "derivative of Igamma by a")                      \
  X("Igammac", igammac, "a: T, x: T", T_FLOATS, "upper incomplete gamma function, regularized")           \
  X("Polygamma", polygamma, "a: T, x: T", T_WIDE, "derivative number a of the digamma function")          \
  X("Zeta", zeta, "x: T, q: T", T_WIDE, "Hurwitz zeta function")

#define UNARY_OP(op, fn, summary) TN__ELEMENTWISE_OP(op, "x: T", "y: T", T_FLOATS, 0, tn__infer_unchanged, summary),
#define BINARY_OP(op, fn, in, types, summary) \
  TN__ELEMENTWISE_OP(op, in, "z: T", types, 0, tn__infer_broadcast, summary),

static const tn_op_def ops[] = {
  UNARY_OPS(UNARY_OP)
  BINARY_OPS(BINARY_OP)
  TN__ELEMENTWISE_OP("Betainc", "a: T, b: T, x: T", "z: T", T_WIDE, 0, infer_betainc,
                     "incomplete beta function, regularized"),
};

#define UNARY_KERNEL(op, fn, summary) TN__UNARY_KERNEL(op, NULL, fn),
#define BINARY_KERNEL(op, fn, in, types, summary) TN__BINARY_KERNEL(op, "T=float|double", fn),

static const tn_kernel_def kernels[] = {
  UNARY_OPS(UNARY_KERNEL)
  BINARY_OPS(BINARY_KERNEL)
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "Betainc", .device = "CPU", .name = "betainc_cpu", .rank = TN_RANK_C,
    .prepare = betainc_prepare, .compute = betainc_compute },
};

TN_OP_FAMILY(special)
