/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise arithmetic on one tensor, and its gradients. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/rounding.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/family.h>
#include <ops/kernel/functions/double_exponential.h>
#include <ops/kernel/functions/double_trigonometric.h>
#include <ops/kernel/functions/exponential.h>
#include <ops/kernel/functions/trigonometric.h>

#include <tgmath.h>
#undef I

/* ---- helpers ---- */

static inline uint32_t abs_32(uint32_t x) { return x >> 31 ? 0 - x : x; }
static inline uint64_t abs_64(uint64_t x) { return x >> 63 ? 0 - x : x; }
static inline uint32_t sign_32(uint32_t x) { return (x != 0) | (0 - (x >> 31)); }
static inline uint64_t sign_64(uint64_t x) { return (x != 0) | (0 - (x >> 63)); }

static inline tn__c64 sign_zf(tn__c64 z) { return z == 0 ? 0 : z / cabsf(z); }
static inline tn__c128 sign_zd(tn__c128 z) { return z == 0 ? 0 : z / cabs(z); }

static inline tn__c64 sigmoid_zf(tn__c64 z) { return 1 / (1 + cexpf(-z)); }
static inline tn__c128 sigmoid_zd(tn__c128 z) { return 1 / (1 + cexp(-z)); }

/* The logarithm of complex 0 has an undefined angle. */
static inline tn__c64 log1p_zf(tn__c64 z) { return z == -1 ? tn__make_c64(-INFINITY, NAN) : tn__log1p_c64(z); }
static inline tn__c128 log1p_zd(tn__c128 z) { return z == -1 ? tn__make_c128(-INFINITY, NAN) : tn__log1p_c128(z); }

#define BY_FLOAT(x, f, d) _Generic((x), float: f, double: d)(x)
#define FUSED(x, f, d) _Generic((x), float: f, double: d)(1, x)
#define BY_COMPLEX(x, f, d, c64, c128) _Generic((x), float: f, double: d, tn__c64: c64, tn__c128: c128)(x)
/* NaN stays NaN. */
static inline float sign_f(float x) { return x != x ? x : (float)(x > 0) - (float)(x < 0); }
static inline double sign_d(double x) { return x != x ? x : (double)(x > 0) - (double)(x < 0); }
/* TensorFlow 2.21 gives 0 for every integer; its results are the reference. */
static inline uint32_t round_32(uint32_t x) { return 0; }
static inline uint64_t round_64(uint64_t x) { return 0; }

/* ---- loops ---- */

#define EXPR_abs(d, x) _Generic((x), float: fabsf, double: fabs, uint32_t: abs_32, uint64_t: abs_64)(x)
#define EXPR_neg(d, x) (-(x))
#define EXPR_sign(d, x)                                                                                \
  _Generic((x), float: sign_f, double: sign_d, uint32_t: sign_32, uint64_t: sign_64, tn__c64: sign_zf, \
           tn__c128: sign_zd)(x)
#define EXPR_square(d, x) TN__MUL(x, x)
#define EXPR_sqrt(d, x) sqrt(x)
#define EXPR_rsqrt(d, x) (1 / sqrt(x))
#define EXPR_exp_fused(d, x) FUSED(x, tn__expf_by, tn__exp_d_by)
#define EXPR_exp(d, x) BY_COMPLEX(x, tn__expf, tn__exp_d, cexpf, cexp)
#define EXPR_expm1_fused(d, x) FUSED(x, tn__expm1f_by, tn__expm1_d_by)
#define EXPR_expm1(d, x) BY_COMPLEX(x, tn__expm1f, tn__expm1_d, tn__expm1_c64, tn__expm1_c128)
#define EXPR_log_fused(d, x) FUSED(x, tn__logf_by, tn__log_d_by)
#define EXPR_log(d, x) BY_COMPLEX(x, tn__logf, tn__log_d, clogf, clog)
#define EXPR_log1p_fused(d, x) FUSED(x, tn__log1pf_by, tn__log1p_d_by)
#define EXPR_log1p(d, x) BY_COMPLEX(x, tn__log1pf, tn__log1p_d, log1p_zf, log1p_zd)
#define EXPR_sin(d, x) sin(x)
#define EXPR_sin_near_fused(d, x) tn__sin_fused_d(x)
#define EXPR_sin_near(d, x) BY_FLOAT(x, tn__sinf, tn__sin_d)
#define EXPR_cos(d, x) cos(x)
#define EXPR_cos_near_fused(d, x) tn__cos_fused_d(x)
#define EXPR_cos_near(d, x) BY_FLOAT(x, tn__cosf, tn__cos_d)
#define EXPR_tan(d, x) tan(x)
#define EXPR_tan_near_fused(d, x) tn__tan_fused_d(x)
#define EXPR_tan_near(d, x) BY_FLOAT(x, tn__tanf, tn__tan_d)
#define EXPR_asin_fused(d, x) FUSED(x, tn__asinf_by, tn__asin_d_by)
#define EXPR_asin(d, x) BY_COMPLEX(x, tn__asinf, tn__asin_d, casinf, casin)
#define EXPR_acos_fused(d, x) FUSED(x, tn__acosf_by, tn__acos_d_by)
#define EXPR_acos(d, x) BY_COMPLEX(x, tn__acosf, tn__acos_d, cacosf, cacos)
#define EXPR_atan_fused(d, x) BY_FLOAT(x, tn__atanf, tn__atan_fused_d)
#define EXPR_atan(d, x) BY_COMPLEX(x, tn__atanf, tn__atan_d, catanf, catan)
#define EXPR_sinh_fused(d, x) BY_FLOAT(x, tn__sinhf, tn__sinh_fused_d)
#define EXPR_sinh(d, x) BY_COMPLEX(x, tn__sinhf, tn__sinh_d, csinhf, csinh)
#define EXPR_cosh_fused(d, x) BY_FLOAT(x, tn__coshf, tn__cosh_fused_d)
#define EXPR_cosh(d, x) BY_COMPLEX(x, tn__coshf, tn__cosh_d, ccoshf, ccosh)
#define EXPR_tanh_fused(d, x) FUSED(x, tn__tanhf_by, tn__tanh_d_by)
#define EXPR_tanh(d, x) BY_COMPLEX(x, tn__tanhf, tn__tanh_d, ctanhf, ctanh)
#define EXPR_asinh_fused(d, x) BY_FLOAT(x, tn__asinhf, tn__asinh_fused_d)
#define EXPR_asinh(d, x) BY_COMPLEX(x, tn__asinhf, tn__asinh_d, casinhf, casinh)
#define EXPR_acosh_fused(d, x) BY_FLOAT(x, tn__acoshf, tn__acosh_fused_d)
#define EXPR_acosh(d, x) BY_COMPLEX(x, tn__acoshf, tn__acosh_d, cacoshf, cacosh)
#define EXPR_atanh_fused(d, x) BY_FLOAT(x, tn__atanhf, tn__atanh_fused_d)
#define EXPR_atanh(d, x) BY_COMPLEX(x, tn__atanhf, tn__atanh_d, catanhf, catanh)
#define EXPR_sigmoid_fused(d, x) FUSED(x, tn__sigmoidf_by, tn__sigmoid_d_by)
#define EXPR_sigmoid(d, x) BY_COMPLEX(x, tn__sigmoidf, tn__sigmoid_d, sigmoid_zf, sigmoid_zd)
#define EXPR_floor(d, x) BY_FLOAT(x, tn__floor_f, tn__floor_d)
#define EXPR_ceil(d, x) BY_FLOAT(x, tn__ceil_f, tn__ceil_d)
#define EXPR_round(d, x) \
  _Generic((x), float: tn__round_f, double: tn__round_d, uint32_t: round_32, uint64_t: round_64)(x)
#define EXPR_rint(d, x) BY_FLOAT(x, tn__round_f, tn__round_d)
#define EXPR_reciprocal(d, x) TN__DIV((tn__C_##d)1, x)
#define EXPR_is_nan(d, x) ((x) != (x))
#define EXPR_is_inf(d, x) (fabs(x) == (tn__C_##d)INFINITY)
#define EXPR_is_finite(d, x) (fabs(x) < (tn__C_##d)INFINITY)
#define EXPR_logical_not(d, x) ((x) == 0)
#define EXPR_real(d, x) creal(x)
#define EXPR_imag(d, x) cimag(x)
#define EXPR_angle(d, x) carg(x)
#define EXPR_conj(d, x) conj(x)
#define EXPR_complex_abs(d, x) fabs(x)

#define REALS(X, op) TN__VIA_FLOATS(X, op) TN__WRAP_SIGNED(X, op)
#define SIGNED_NUMBERS(X, op) REALS(X, op) TN__SAME_COMPLEXES(X, op)
#define NUMBERS(X, op) SIGNED_NUMBERS(X, op) TN__WRAP_UNSIGNED(X, op)
#define ROUNDED(X, op) TN__VIA_FLOATS(X, op) X(op, wi32, wi32) X(op, wi64, wi64)
#define WIDE_FLOATS(X, op) X(op, f32, f32) X(op, f64, f64)
#define FLOATS_TO_BOOL(X, op) X(op, f32, b8) X(op, f64, b8) X(op, vf16, b8) X(op, vbf16, b8)
#define BOOLS(X, op) X(op, b8, b8)
#define NOT_REAL(X, op) X(op, vf16, vf16) X(op, vbf16, vbf16) TN__SAME_COMPLEXES(X, op)
#define COMPLEX_TO_PART(X, op) X(op, c64, f32) X(op, c128, f64)

TN__UNARY(abs, 0.3, REALS)
TN__UNARY(neg, 0.3, SIGNED_NUMBERS)
TN__UNARY(sign, 0.5, SIGNED_NUMBERS)
TN__UNARY(square, 0.3, NUMBERS)
TN__UNARY(sqrt, 2, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY(rsqrt, 3, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(exp, 2, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(expm1, 3, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(log, 3, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(log1p, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_BOUNDED(sin, 3, TN__TURNS_LIMIT, sinf, TN__TURNS_LIMIT_D, sin, TN__VIA_FLOATS_COMPLEXES, NOT_REAL)
TN__UNARY_BOUNDED(cos, 3, TN__TURNS_LIMIT, cosf, TN__TURNS_LIMIT_D, cos, TN__VIA_FLOATS_COMPLEXES, NOT_REAL)
TN__UNARY_BOUNDED(tan, 4, TN__TURNS_LIMIT, tanf, TN__TURNS_LIMIT_D, tan, TN__VIA_FLOATS_COMPLEXES, NOT_REAL)
TN__UNARY_FUSED(asin, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(acos, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(atan, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(sinh, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(cosh, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(tanh, 3, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(asinh, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(acosh, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(atanh, 4, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_FUSED(sigmoid, 3, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY_HEAVY(floor, 0.7, TN__VIA_FLOATS)
TN__UNARY_HEAVY(ceil, 0.7, TN__VIA_FLOATS)
TN__UNARY_HEAVY(round, 0.5, ROUNDED)
TN__UNARY_HEAVY(rint, 0.5, WIDE_FLOATS)
TN__UNARY(reciprocal, 1, TN__VIA_FLOATS_COMPLEXES)
TN__UNARY(is_nan, 0.3, FLOATS_TO_BOOL)
TN__UNARY(is_inf, 0.3, FLOATS_TO_BOOL)
TN__UNARY(is_finite, 0.3, FLOATS_TO_BOOL)
TN__UNARY(logical_not, 0.1, BOOLS)
TN__UNARY_SLOW(real, 0.4, COMPLEX_TO_PART)
TN__UNARY_SLOW(imag, 0.4, COMPLEX_TO_PART)
TN__UNARY_SLOW(angle, 15, COMPLEX_TO_PART)
TN__UNARY_SLOW(conj, 0.5, TN__SAME_COMPLEXES)
TN__UNARY_SLOW(complex_abs, 4, COMPLEX_TO_PART)

/* ---- gradients: x is the function's result, y the incoming gradient ---- */

static inline float conj_f(float x) { return x; }
static inline double conj_d(double x) { return x; }
#define CONJ(x) _Generic((x), float: conj_f, double: conj_d, tn__c64: conjf, tn__c128: conj)(x)
/* Products are evaluated in TensorFlow's order, which matters if they overflow, and each is rounded to the type in
 * memory, which matters for half and bfloat16. For the last three ops an incoming gradient of 0 gives 0. */
#define ROUNDED_TO(d, v) TN__L_##d(TN__P_##d(v))
#define PRODUCT(d, x, y) ROUNDED_TO(d, TN__MUL(x, y))
#define EXPR_sigmoid_grad(d, x, y) TN__MUL(y, PRODUCT(d, x, ROUNDED_TO(d, 1 - (x))))
#define EXPR_tanh_grad(d, x, y) TN__MUL(y, ROUNDED_TO(d, 1 - PRODUCT(d, x, x)))
#define EXPR_sqrt_grad(d, x, y) ((y) == 0 ? 0 : TN__MUL(y, ROUNDED_TO(d, TN__DIV((tn__C_##d)0.5, CONJ(x)))))
#define EXPR_rsqrt_grad(d, x, y) \
  ((y) == 0 ? 0 : TN__MUL(ROUNDED_TO(d, -PRODUCT(d, y, CONJ(x)) / 2), CONJ(PRODUCT(d, x, x))))
#define EXPR_reciprocal_grad(d, x, y) ((y) == 0 ? 0 : TN__MUL(y, -CONJ(PRODUCT(d, x, x))))

#define WIDE_TYPES(X, op) WIDE_FLOATS(X, op) TN__SAME_COMPLEXES(X, op)
#define SHORT_TYPES(X, op) X(op, f16, f16) X(op, bf16, bf16)
TN__BINARY(sigmoid_grad, 0.7, WIDE_TYPES, SHORT_TYPES)
TN__BINARY(tanh_grad, 0.7, WIDE_TYPES, SHORT_TYPES)
TN__BINARY(sqrt_grad, 1, WIDE_TYPES, SHORT_TYPES)
TN__BINARY(rsqrt_grad, 1, WIDE_TYPES, SHORT_TYPES)
TN__BINARY(reciprocal_grad, 0.7, WIDE_TYPES, SHORT_TYPES)

/* ---- ClipByValue: bounds are scalars or have the shape of the values ---- */

typedef void (*clip_fn)(const void *x, const void *lo, int64_t slo, const void *hi, int64_t shi, void *out, int64_t n);
typedef struct clip_loop {
  tn_dtype dtype;
  int64_t size;
  clip_fn fn[TN__VECTORS];
} clip_loop;

/* A NaN bound has no effect. */
#define RAISE(x, lo) ((x) < (lo) ? (lo) : (x))
#define CLIP_REAL(x, lo, hi) ((hi) < (x) ? RAISE(hi, lo) : RAISE(x, lo))
#define CLIP_COMPLEX(T, C, make, suffix)                                                              \
  static inline C clip_##suffix(C x, C lo, C hi)                                                      \
  {                                                                                                   \
    T re = CLIP_REAL(creal(x), creal(lo), creal(hi)), im = CLIP_REAL(cimag(x), cimag(lo), cimag(hi)); \
    return make(re, im);                                                                              \
  }
CLIP_COMPLEX(float, tn__c64, tn__make_c64, zf)
CLIP_COMPLEX(double, tn__c128, tn__make_c128, zd)

#define CLIP_FOR(d, EXPR, lo_, hi_, count)              \
  TN__IVDEP                                             \
  for (int64_t i = 0; i < (count); i++) {               \
    tn__C_##d x = TN__L_##d(xs[i]), lo = lo_, hi = hi_; \
    out[i] = TN__P_##d(EXPR(x, lo, hi));                \
  }
/* n > 0 */
#define CLIP_ROWS(d, EXPR, count)                                                      \
  const tn__S_##d *xs = x_, *los = lo_, *his = hi_;                                    \
  tn__S_##d *out = out_;                                                               \
  if (slo == 0 && shi == 0) {                                                          \
    tn__C_##d lo0 = TN__L_##d(los[0]), hi0 = TN__L_##d(his[0]);                        \
    CLIP_FOR(d, EXPR, lo0, hi0, count)                                                 \
  } else {                                                                             \
    CLIP_FOR(d, EXPR, TN__L_##d(los[i * slo]), TN__L_##d(his[i * shi]), count)         \
  }
#define CLIP_LOOP(d, EXPR)                                                                                  \
  TN__APART static void clip_##d(const void *x_, const void *lo_, int64_t slo, const void *hi_, int64_t shi, \
                                 void *out_, int64_t n)                                                     \
  {                                                                                                         \
    if (n == 0) return;                                                                                     \
    CLIP_ROWS(d, EXPR, n)                                                                                   \
  }
#define CLIP_WIDE(d, EXPR, end, attribute)                                                                           \
  attribute static void clip_##d##_##end(const void *x_, const void *lo_, int64_t slo, const void *hi_, int64_t shi, \
                                         void *out_, int64_t n)                                                      \
  {                                                                                                                  \
    int64_t whole = n & -TN__WHOLE(d, d);                                                                            \
    if (whole == 0 || slo + shi != 0) {                                                                              \
      clip_##d(x_, lo_, slo, hi_, shi, out_, n);                                                                     \
      return;                                                                                                        \
    }                                                                                                                \
    const tn__S_##d *xs = x_;                                                                                        \
    tn__S_##d *out = out_;                                                                                           \
    tn__C_##d lo0 = TN__L_##d(*(const tn__S_##d *)lo_), hi0 = TN__L_##d(*(const tn__S_##d *)hi_);                    \
    CLIP_FOR(d, EXPR, lo0, hi0, whole)                                                                               \
    if (whole < n) clip_##d(xs + whole, lo_, slo, hi_, shi, out + whole, n - whole);                                 \
  }
/* The result equals one of the three operands, so the detour through float loses nothing for half and bfloat16. */
#define CLIP_SHORT(d)                                                                                       \
  static void clip_##d(const void *x, const void *lo, int64_t slo, const void *hi, int64_t shi, void *out,  \
                       int64_t n)                                                                           \
  {                                                                                                         \
    clip_via_float(&TN__FORMAT_##d, x, lo, slo, hi, shi, out, n);                                           \
  }
#define CLIP_TYPES(X) X(f32, CLIP_REAL) X(f64, CLIP_REAL) X(u8, CLIP_REAL) X(i32, CLIP_REAL)
#define CLIP_NARROW_TYPES(X)                                                                                 \
  X(i8, CLIP_REAL) X(i16, CLIP_REAL) X(i64, CLIP_REAL) X(u16, CLIP_REAL) X(c64, clip_zf) X(c128, clip_zd)
#define CLIP_LOOPS(d, EXPR) CLIP_LOOP(d, EXPR) TN__AVX2_LOOPS(CLIP_WIDE, d, EXPR)
CLIP_TYPES(CLIP_LOOPS)
CLIP_NARROW_TYPES(CLIP_LOOP)

static void clip_via_float(const tn__short_format *format, const void *x, const void *lo, int64_t slo, const void *hi,
                           int64_t shi, void *out, int64_t n)
{
  enum { FLOATS = 512 };
  static const clip_fn fn[] = TN__AVX2_FNS(clip_f32);
  float xs[FLOATS], los[FLOATS], his[FLOATS];
  const uint16_t *from = x, *from_lo = lo, *from_hi = hi;
  for (int64_t at = 0, k; at < n; at += k) {
    k = n - at < FLOATS ? n - at : FLOATS;
    format->to_floats(from + at, xs, k);
    if (at == 0 || slo != 0) format->to_floats(from_lo + at * slo, los, slo != 0 ? k : 1);
    if (at == 0 || shi != 0) format->to_floats(from_hi + at * shi, his, shi != 0 ? k : 1);
    fn[tn__vectors()](xs, los, slo, his, shi, xs, k);
    format->from_floats(xs, (uint16_t *)out + at, k);
  }
}
CLIP_SHORT(vf16)
CLIP_SHORT(vbf16)
#define CLIP_ENTRY(d, EXPR) { TN__D_##d, sizeof(tn__S_##d), TN__AVX2_FNS(clip_##d) },
#define CLIP_NARROW_ENTRY(d, EXPR) { TN__D_##d, sizeof(tn__S_##d), TN__SAME_FNS(clip_##d) },

static tn_status clip_create(const tn_operation *node, void **state, tn_error *err)
{
  static const clip_loop loops[] = { CLIP_TYPES(CLIP_ENTRY) CLIP_NARROW_TYPES(CLIP_NARROW_ENTRY)
                                     CLIP_NARROW_ENTRY(vf16, ) CLIP_NARROW_ENTRY(vbf16, ) };
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  *state = NULL;
  for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
    if (loops[i].dtype == dtype) *state = (void *)&loops[i]; /* only read through it */
  return *state != NULL ? TN_OK : tn__no_kernel(err, node, dtype);
}

static tn_status clip_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  for (uint32_t i = 1; i < 3; i++) {
    if (ctx->inputs[i].rank == 0) continue;
    tn_status st = tn__want_same_shape(ctx, 0, i, err);
    if (st != TN_OK) return st;
  }
  ctx->cost_ns = 0.5 * (double)ctx->inputs[0].count;
  return tn__prepare_unchanged(ctx, err);
}

typedef struct clip_run {
  const clip_loop *loop;
  clip_fn fn;
  const char *x, *lo, *hi;
  char *out;
  int64_t slo, shi;
} clip_run;

static void clip_part(void *user, int64_t begin, int64_t end)
{
  const clip_run *r = user;
  int64_t at = begin * r->loop->size;
  r->fn(r->x + at, r->lo + at * r->slo, r->slo, r->hi + at * r->shi, r->shi, r->out + at, end - begin);
}

static tn_status clip_compute(tn_kernel_ctx *ctx)
{
  const clip_loop *loop = ctx->state;
  const tn_view *const *in = (const tn_view *const *)ctx->inputs;
  int64_t n = ctx->outputs[0]->count, slo = in[1]->rank != 0, shi = in[2]->rank != 0;
  if (n <= TN__SERIAL_ELEMENTS) {
    loop->fn[tn__vectors()](in[0]->data, in[1]->data, slo, in[2]->data, shi, ctx->outputs[0]->data, n);
  } else {
    clip_run run = { loop, loop->fn[tn__vectors()], in[0]->data, in[1]->data, in[2]->data, ctx->outputs[0]->data,
                     slo, shi };
    tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.5, clip_part, &run);
  }
  return TN_OK;
}

/* ---- the family ---- */

#define T_FLOATS "T: {bfloat16, half, float, double}"
#define T_FLOATS_COMPLEXES "T: {bfloat16, half, float, double, complex64, complex128}"
#define T_REALS "T: {bfloat16, half, float, double, int8, int16, int32, int64}"
#define T_SIGNED "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}"
#define T_NUMBERS                                                                                            \
  "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, " \
  "complex128}"
#define T_COMPLEXES "T: {complex64, complex128} = complex64"
#define T_PARTS T_COMPLEXES "; Tout: {float, double} = float"
#define FLOATS_COMPLEXES "T=bfloat16|half|float|double|complex64|complex128"

/* X(op, its loops, inputs, outputs, attributes, dtypes of the kernel if the schema allows more, summary) */
#define UNARY_OPS(X)                                                                                      \
  X("Abs", abs, "x: T", "y: T", T_REALS, NULL, "|x|")                                                     \
  X("Neg", neg, "x: T", "y: T", T_SIGNED, NULL, "-x")                                                     \
  X("Sign", sign, "x: T", "y: T", T_SIGNED, NULL, "-1, 0 or 1; x/|x| for complex numbers")                \
  X("Square", square, "x: T", "y: T", T_NUMBERS, NULL, "x * x")                                           \
  X("Sqrt", sqrt, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "square root")                                \
  X("Rsqrt", rsqrt, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "1 / square root")                          \
  X("Exp", exp, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "e to the x")                                   \
  X("Expm1", expm1, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "e to the x, minus 1")                      \
  X("Log", log, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "natural logarithm")                            \
  X("Log1p", log1p, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "natural logarithm of 1 + x")               \
  X("Sin", sin, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "sine")                                         \
  X("Cos", cos, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "cosine")                                       \
  X("Tan", tan, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "tangent")                                      \
  X("Asin", asin, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse sine")                               \
  X("Acos", acos, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse cosine")                             \
  X("Atan", atan, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse tangent")                            \
  X("Sinh", sinh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "hyperbolic sine")                            \
  X("Cosh", cosh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "hyperbolic cosine")                          \
  X("Tanh", tanh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "hyperbolic tangent")                         \
  X("Asinh", asinh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse hyperbolic sine")                  \
  X("Acosh", acosh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse hyperbolic cosine")                \
  X("Atanh", atanh, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "inverse hyperbolic tangent")               \
  X("Sigmoid", sigmoid, "x: T", "y: T", T_FLOATS_COMPLEXES, NULL, "1 / (1 + e to the -x)")                \
  X("Floor", floor, "x: T", "y: T", T_FLOATS, NULL, "largest integer not above x")                        \
  X("Ceil", ceil, "x: T", "y: T", T_FLOATS, NULL, "smallest integer not below x")                         \
  X("Round", round, "x: T", "y: T", T_SIGNED, "T=bfloat16|half|float|double|int32|int64",                 \
    "nearest integer, halves to the even one")                                                            \
  X("Rint", rint, "x: T", "y: T", T_FLOATS, "T=float|double", "nearest integer, halves to the even one")  \
  X("Reciprocal", reciprocal, "x: T", "y: T", T_SIGNED, FLOATS_COMPLEXES, "1 / x")                        \
  X("Inv", reciprocal, "x: T", "y: T", T_SIGNED, FLOATS_COMPLEXES, "1 / x")                               \
  X("IsNan", is_nan, "x: T", "y: bool", T_FLOATS, NULL, "whether x is NaN")                               \
  X("IsInf", is_inf, "x: T", "y: bool", T_FLOATS, NULL, "whether x is an infinity")                       \
  X("IsFinite", is_finite, "x: T", "y: bool", T_FLOATS, NULL, "whether x is neither NaN nor an infinity") \
  X("LogicalNot", logical_not, "x: bool", "y: bool", "", NULL, "not x")                                   \
  X("Conj", conj, "input: T", "output: T", "T: {complex64, complex128, variant} = complex64",             \
    "T=complex64|complex128", "complex conjugate")

/* Tout is the real type of T. The schema allows other pairs, but there are no kernels for them. */
#define PART_OPS(X)                                                                        \
  X("Real", real, "input: T", "output: Tout", "real part of complex numbers")              \
  X("Imag", imag, "input: T", "output: Tout", "imaginary part of complex numbers")         \
  X("Angle", angle, "input: T", "output: Tout", "argument of complex numbers, in radians") \
  X("ComplexAbs", complex_abs, "x: T", "y: Tout", "absolute value of complex numbers")

#define GRADIENT_OPS(X)                               \
  X("SigmoidGrad", sigmoid_grad, "dy * y * (1 - y)")  \
  X("TanhGrad", tanh_grad, "dy * (1 - y * y)")        \
  X("SqrtGrad", sqrt_grad, "dy / 2 / y")              \
  X("RsqrtGrad", rsqrt_grad, "-dy / 2 * y * y * y")   \
  X("ReciprocalGrad", reciprocal_grad, "-dy * y * y") \
  X("InvGrad", reciprocal_grad, "-dy * y * y")

#define UNARY_OP(op, fn, in, out, attrs, types, summary) \
  TN__ELEMENTWISE_OP(op, in, out, attrs, 0, tn__infer_unchanged, summary),
#define PART_OP(op, fn, in, out, summary) TN__ELEMENTWISE_OP(op, in, out, T_PARTS, 0, tn__infer_unchanged, summary),
#define GRADIENT_OP(op, fn, summary) \
  TN__ELEMENTWISE_OP(op, "y: T, dy: T", "z: T", T_FLOATS_COMPLEXES, 0, tn__infer_unchanged, summary),

static const tn_op_def ops[] = {
  UNARY_OPS(UNARY_OP)
  PART_OPS(PART_OP)
  GRADIENT_OPS(GRADIENT_OP)
  TN__ELEMENTWISE_OP("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T", "output: T",
                     "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
                     "qint16, quint16, uint16, complex128, half, uint32, uint64}",
                     0, tn__infer_unchanged, "the value between two bounds that is nearest to t"),
};

#define UNARY_KERNEL(op, fn, in, out, attrs, types, summary) TN__UNARY_KERNEL(op, types, fn),
#define PART_KERNELS(op, fn, in, out, summary)        \
  TN__UNARY_KERNEL(op, "T=complex64,Tout=float", fn), \
  TN__UNARY_KERNEL(op, "T=complex128,Tout=double", fn),
#define GRADIENT_KERNEL(op_, fn, summary_)                                                                \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .name = #fn "_cpu", .rank = TN_RANK_C, \
    .create = fn##_create, .prepare = tn__binary_prepare_same, .compute = tn__binary_compute },

static const tn_kernel_def kernels[] = {
  UNARY_OPS(UNARY_KERNEL)
  PART_OPS(PART_KERNELS)
  GRADIENT_OPS(GRADIENT_KERNEL)
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ClipByValue", .device = "CPU",
    .types = "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16|complex64|complex128",
    .name = "clip_by_value_cpu", .rank = TN_RANK_C, .create = clip_create, .prepare = clip_prepare,
    .compute = clip_compute },
};

TN_OP_FAMILY(math_unary)
