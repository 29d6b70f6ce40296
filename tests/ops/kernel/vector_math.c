/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of float compared with those of double: the bounds stated in vector_math.h and in ops/kernel/functions. */
#include <ops/kernel/elements/curves.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/functions/error.h>
#include <ops/kernel/functions/exponential.h>
#include <ops/kernel/functions/trigonometric.h>
#include <string.h>

#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

/* Distance in units in the last place of the expected value as a float. */
static double ulps(double wanted, float found)
{
  if (isnan(wanted)) return isnan(found) ? 0 : INFINITY;
  if (isinf((float)wanted) || isinf(found)) return (float)wanted == found ? 0 : INFINITY;
  int exponent;
  frexp(wanted, &exponent);
  return fabs((double)found - wanted) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Every 1009th float of either sign up to a limit in size, and NaN. */
static void check_up_to(float limit, float (*fn)(float), double (*exact)(double), double bound)
{
  double worst = 0;
  float at = 0;
  for (uint64_t u = 0; u <= UINT32_MAX; u += 1009) {
    float x = tn__float_of_bits((uint32_t)u);
    if (fabsf(x) > limit) continue;
    double d = ulps(exact((double)x), fn(x));
    if (d > worst) {
      worst = d;
      at = x;
    }
  }
  CHECK_MSG(worst <= bound, "%g units at %a", worst, (double)at);
  tap_note("largest error %.2f units, at %a", worst, (double)at);
}

static void check_all(float (*fn)(float), double (*exact)(double), double bound)
{
  check_up_to(INFINITY, fn, exact, bound);
}

static void vector_math__exp(void) { check_all(tn__expf, exp, 1); }
static void vector_math__log(void) { check_all(tn__logf, log, 1); }
static void vector_math__tanh(void) { check_all(tn__tanhf, tanh, 1.5); }
static void vector_math__sigmoid(void) { check_all(tn__sigmoidf, sigmoid, 1.9); }

static void vector_math__expm1(void) { check_all(tn__expm1f, expm1, 1.6); }
static void vector_math__log1p(void) { check_all(tn__log1pf, log1p, 0.6); }
static void vector_math__sinh(void) { check_all(tn__sinhf, sinh, 1.6); }
static void vector_math__cosh(void) { check_all(tn__coshf, cosh, 1.5); }
static void vector_math__asinh(void) { check_all(tn__asinhf, asinh, 0.6); }
static void vector_math__acosh(void) { check_all(tn__acoshf, acosh, 0.6); }
static void vector_math__atanh(void) { check_all(tn__atanhf, atanh, 0.6); }
static void vector_math__erf(void) { check_all(tn__erff, erf, 1.3); }
static void vector_math__erfc(void) { check_all(tn__erfcf, erfc, 1.3); }
static void vector_math__sin(void) { check_up_to(TN__TURNS_LIMIT, tn__sinf, sin, 1.6); }
static void vector_math__cos(void) { check_up_to(TN__TURNS_LIMIT, tn__cosf, cos, 1.6); }
static void vector_math__tan(void) { check_up_to(TN__TURNS_LIMIT, tn__tanf, tan, 0.6); }
static void vector_math__asin(void) { check_all(tn__asinf, asin, 1); }
static void vector_math__acos(void) { check_all(tn__acosf, acos, 1.4); }
static void vector_math__atan(void) { check_all(tn__atanf, atan, 1.6); }

/* Those that round once when they multiply and add. */
#define FUSED(name, exact, bound)                                             \
  static float name##_fused(float x) { return tn__##name##_by(1, x); }        \
  static void vector_math__##name##_fused(void) { check_all(name##_fused, exact, bound); }
FUSED(expf, exp, 1)
FUSED(logf, log, 1)
FUSED(tanhf, tanh, 1.5)
FUSED(sigmoidf, sigmoid, 1.9)
FUSED(expm1f, expm1, 1.6)
FUSED(log1pf, log1p, 0.6)
FUSED(erff, erf, 1.3)
FUSED(erfcf, erfc, 1.3)
FUSED(asinf, asin, 1)
FUSED(acosf, acos, 1.4)

/* erf of the result is x again, as far as the slope of erf tells results apart. */
static void vector_math__erfinv(void)
{
  const double root_pi = 1.7724538509055160273;
  double worst = 0;
  for (uint32_t u = 0; u < 0x3f800000u; u += 1009) {
    double x = (double)tn__float_of_bits(u), y = (double)tn__erfinvf((float)x);
    double miss = x > 0.5 ? (1 - x) - erfc(y) : erf(y) - x;
    int exponent;
    frexp(y, &exponent);
    double d = fabs(miss * root_pi / 2 * exp(y * y)) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
    if (d > worst) worst = d;
    if (tn__erfinvf((float)-x) != (float)-y) worst = INFINITY;
  }
  CHECK_MSG(worst <= 0.7, "%g units", worst);
}

static const float ends[] = { 0,     -0.0f, 1,  -1,     0.5f,   -0.5f, 2,    -2,    3,           -3,
                              2.5f,  1e-45f, -1e-45f, 3e38f, -3e38f, 1e9f, -1e9f, 16777217.0f, 0.9999999f,
                              INFINITY, -INFINITY, NAN };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

static bool same(double wanted, float found, double bound)
{
  return ulps(wanted, found) <= bound && (isnan(wanted) || !signbit(wanted) == !signbit(found));
}

static void check_pairs(float (*fn)(float, float), double (*exact)(double, double), double bound)
{
  uint32_t seed = 1;
  for (int i = 0; i < ENDS; i++)
    for (int j = 0; j < ENDS; j++)
      CHECK_MSG(same(exact((double)ends[i], (double)ends[j]), fn(ends[i], ends[j]), bound), "of %g and %g: %g",
                (double)ends[i], (double)ends[j], (double)fn(ends[i], ends[j]));
  double worst = 0;
  for (int k = 0; k < 1000000; k++) {
    seed = seed * 1664525u + 1013904223u;
    float x = tn__float_of_bits(seed);
    seed = seed * 1664525u + 1013904223u;
    float y = k % 2 ? tn__float_of_bits(seed) : (float)((int)(seed >> 8) % 4000) * 0.01f - 20;
    double d = ulps(exact((double)x, (double)y), fn(x, y));
    if (d > worst) worst = d;
  }
  CHECK_MSG(worst <= bound, "%g units", worst);
}

static void vector_math__pow(void) { check_pairs(tn__powf, pow, 0.6); }
static void vector_math__atan2(void) { check_pairs(tn__atan2f, atan2, 1.6); }

/* The sign of zero, infinities and NaN as in C. */
static void vector_math__ends(void)
{
  static const struct {
    float (*fn)(float);
    double (*exact)(double);
  } all[] = { { tn__expm1f, expm1 }, { tn__log1pf, log1p }, { tn__sinhf, sinh },   { tn__coshf, cosh },
              { tn__asinhf, asinh }, { tn__acoshf, acosh }, { tn__atanhf, atanh }, { tn__erff, erf },
              { tn__erfcf, erfc },   { tn__asinf, asin },   { tn__acosf, acos },   { tn__atanf, atan },
              { tn__tanhf, tanh },   { tn__sinf, sin },     { tn__cosf, cos },     { tn__tanf, tan } };
  for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
    for (int i = 0; i < ENDS; i++) {
      bool bounded = all[k].fn == tn__sinf || all[k].fn == tn__cosf || all[k].fn == tn__tanf;
      if (bounded && fabsf(ends[i]) > TN__TURNS_LIMIT && fabsf(ends[i]) < INFINITY) continue;
      CHECK_MSG(same(all[k].exact((double)ends[i]), all[k].fn(ends[i]), 2), "function %zu of %g: %g", k,
                (double)ends[i], (double)all[k].fn(ends[i]));
    }
  CHECK(tn__erfinvf(1) == INFINITY && tn__erfinvf(-1) == -INFINITY && isnan(tn__erfinvf(1.5f)));
  CHECK(isnan(tn__erfinvf(NAN)) && tn__erfinvf(0) == 0 && signbit(tn__erfinvf(-0.0f)));
}

static void vector_math__special_values(void)
{
  CHECK(tn__expf(0) == 1 && tn__expf(-INFINITY) == 0 && tn__expf(INFINITY) == INFINITY && isnan(tn__expf(NAN)));
  CHECK(tn__expf(88.8f) == INFINITY && tn__expf(88.7f) < INFINITY);
  CHECK(tn__expf(-103.9f) > 0 && tn__expf(-104.1f) == 0); /* the smallest subnormal number */
  CHECK(tn__logf(1) == 0 && tn__logf(0) == -INFINITY && tn__logf(-0.0f) == -INFINITY && isnan(tn__logf(-1)));
  CHECK(tn__logf(INFINITY) == INFINITY && isnan(tn__logf(NAN)) && isnan(tn__logf(-INFINITY)));
  CHECK(tn__tanhf(0) == 0 && signbit(tn__tanhf(-0.0f)) && tn__tanhf(INFINITY) == 1 && tn__tanhf(-INFINITY) == -1);
  CHECK(isnan(tn__tanhf(NAN)) && isnan(tn__sigmoidf(NAN)));
  CHECK(tn__sigmoidf(0) == 0.5f && tn__sigmoidf(-INFINITY) == 0 && tn__sigmoidf(INFINITY) == 1);
}

/* ---- curves: relative to the size of x, for GELU with a small result has few digits ---- */

static double swish(double x) { return x / (1 + exp(-1.702 * x)); }
static double mish(double x) { return x * tanh(x > 40 ? x : log1p(exp(x))); }
static double gelu(double x) { return x / 2 * erfc(-x * 0.70710678118654752); }
static double gelu_tanh(double x) { return x / (1 + exp(-2 * 0.79788456080286536 * x * (1 + 0.044715 * x * x))); }

#define CURVE_POINTS 200000

static void check_curve(const char *op, double (*exact)(double), float alpha)
{
  static float x[CURVE_POINTS], plain[CURVE_POINTS], y[CURVE_POINTS];
  for (int i = 0; i < CURVE_POINTS; i++) x[i] = (float)(i - CURVE_POINTS / 2) * 1.7e-4f;
  for (int most = TN__BASELINE; most < TN__VECTORS; most++) {
    tn__vectors_limit(most);
    for (int reproducible = 0; reproducible < 2; reproducible++) {
      tn__leaky_fn fn = tn__curve_find(op, TN_FLOAT, reproducible != 0);
      double worst = 0;
      fn(x, x, y, CURVE_POINTS, alpha);
      for (int i = 0; i < CURVE_POINTS; i++)
        worst = fmax(worst, fabs((double)y[i] - exact((double)x[i])) / (fabs((double)x[i]) + 1e-30));
      CHECK_MSG(worst <= 1.6e-7, "%s: an error of %g", op, worst);
      if (most == TN__BASELINE) memcpy(plain, y, sizeof y);
      else if (reproducible != 0) CHECK_MSG(memcmp(plain, y, sizeof y) == 0, "%s: other bits with kind %d", op, most);
    }
  }
  tn__vectors_limit(TN__VECTORS - 1);
}

static void curves__are_near_their_functions(void)
{
  check_curve("_TnSwish", swish, 1.702f);
  check_curve("_TnMish", mish, 1);
  check_curve("_TnGelu", gelu, 0.707106781f);
  check_curve("_TnGeluTanh", gelu_tanh, 0.797884561f);
}

TAP_MAIN(
  TAP_TEST(curves__are_near_their_functions),
  TAP_TEST(vector_math__expf_fused),
  TAP_TEST(vector_math__logf_fused),
  TAP_TEST(vector_math__tanhf_fused),
  TAP_TEST(vector_math__sigmoidf_fused),
  TAP_TEST(vector_math__expm1f_fused),
  TAP_TEST(vector_math__log1pf_fused),
  TAP_TEST(vector_math__erff_fused),
  TAP_TEST(vector_math__erfcf_fused),
  TAP_TEST(vector_math__asinf_fused),
  TAP_TEST(vector_math__acosf_fused),
  TAP_TEST(vector_math__exp),
  TAP_TEST(vector_math__log),
  TAP_TEST(vector_math__tanh),
  TAP_TEST(vector_math__sigmoid),
  TAP_TEST(vector_math__expm1),
  TAP_TEST(vector_math__log1p),
  TAP_TEST(vector_math__sinh),
  TAP_TEST(vector_math__cosh),
  TAP_TEST(vector_math__asinh),
  TAP_TEST(vector_math__acosh),
  TAP_TEST(vector_math__atanh),
  TAP_TEST(vector_math__erf),
  TAP_TEST(vector_math__erfc),
  TAP_TEST(vector_math__sin),
  TAP_TEST(vector_math__cos),
  TAP_TEST(vector_math__tan),
  TAP_TEST(vector_math__asin),
  TAP_TEST(vector_math__acos),
  TAP_TEST(vector_math__atan),
  TAP_TEST(vector_math__erfinv),
  TAP_TEST(vector_math__pow),
  TAP_TEST(vector_math__atan2),
  TAP_TEST(vector_math__ends),
  TAP_TEST(vector_math__special_values))
