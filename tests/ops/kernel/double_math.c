/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of double compared with those of long double: the bounds stated in ops/kernel/functions/double_*.h. */
#include <float.h>
#include <ops/kernel/functions/bessel.h>
#include <ops/kernel/functions/double_error.h>
#include <ops/kernel/functions/double_exponential.h>
#include <ops/kernel/functions/double_trigonometric.h>
#include <ops/kernel/functions/error.h>
#include <ops/kernel/functions/gamma.h>
#include <ops/kernel/functions/quantile.h>
#include <conformance/support/oom.h>
#include <conformance/support/tap.h>

/* Distance in units in the last place of the expected value as a double. */
static double ulps(long double wanted, double found)
{
  if (isnan(wanted)) return isnan(found) ? 0 : (double)INFINITY;
  if (isinf((double)wanted) || isinf(found)) return (double)wanted == found ? 0 : (double)INFINITY;
  int exponent;
  frexpl(wanted, &exponent);
  return (double)(fabsl((long double)found - wanted) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53));
}

static uint64_t seed;

static uint64_t random_bits(void)
{
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static double random_unit(void) { return (double)(random_bits() >> 11) * 0x1p-52 - 1; } /* in [-1, 1) */

/* Any double, one of a size up to span, one near 0, and one that is smaller still. */
static double random_argument(int k, double span)
{
  double u = random_unit();
  switch (k % 4) {
  case 0: return tn__double_of_bits(random_bits());
  case 1: return u * span;
  case 2: return u * 2;
  default: return ldexp(u, -(int)(random_bits() % 60));
  }
}

typedef struct function {
  const char *name;
  double (*fn[2])(double); /* without and with fused operations */
  long double (*exact)(long double);
  double limit, span, bound;
} function;

static long double sigmoid(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

#define FUNCTION(name, exact, limit, span, bound) \
  { #name, { tn__##name##_d, tn__##name##_fused_d }, exact, limit, span, bound }
static const function functions[] = {
  FUNCTION(exp, expl, DBL_MAX, 750, 1),
  FUNCTION(expm1, expm1l, DBL_MAX, 40, 1.2),
  FUNCTION(log, logl, DBL_MAX, 10, 0.9),
  FUNCTION(log1p, log1pl, DBL_MAX, 10, 0.9),
  FUNCTION(tanh, tanhl, DBL_MAX, 20, 1.4),
  FUNCTION(sigmoid, sigmoid, DBL_MAX, 50, 2),
  FUNCTION(sinh, sinhl, DBL_MAX, 20, 1.7),
  FUNCTION(cosh, coshl, DBL_MAX, 20, 1.5),
  FUNCTION(asinh, asinhl, DBL_MAX, 20, 1.3),
  FUNCTION(acosh, acoshl, DBL_MAX, 20, 1.8),
  FUNCTION(atanh, atanhl, DBL_MAX, 1, 1.6),
  FUNCTION(sin, sinl, TN__TURNS_LIMIT_D, 100, 0.9),
  FUNCTION(cos, cosl, TN__TURNS_LIMIT_D, 1e5, 0.9),
  FUNCTION(tan, tanl, TN__TURNS_LIMIT_D, 100, 1.5),
  FUNCTION(asin, asinl, DBL_MAX, 1, 1),
  FUNCTION(acos, acosl, DBL_MAX, 1, 1.3),
  FUNCTION(atan, atanl, DBL_MAX, 20, 1.8),
  FUNCTION(erf, erfl, DBL_MAX, 7, 1.4),
  FUNCTION(erfc, erfcl, DBL_MAX, 28, 1.7),
};
enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void double_math__errors_are_below_the_bounds(void)
{
  seed = UINT64_C(88172645463325252);
  for (int i = 0; i < FUNCTIONS; i++)
    for (int fused = 0; fused < 2; fused++) {
      const function *f = &functions[i];
      double worst = 0, at = 0;
      for (int k = 0; k < 200000; k++) {
        double x = random_argument(k, f->span);
        if (fabs(x) > f->limit && !isnan(x)) continue;
        double d = ulps(f->exact((long double)x), f->fn[fused](x));
        if (d > worst) {
          worst = d;
          at = x;
        }
      }
      CHECK_MSG(worst <= f->bound, "%s, fused %d: %g units at %a", f->name, fused, worst, at);
      tap_note("%s, fused %d: largest error %.2f units, at %a", f->name, fused, worst, at);
    }
}

static const double ends[] = { 0,        -0.0,      1,       -1,       0.5,   -0.5,   2,     -2,      3,
                               0x1p-1074, -0x1p-1074, 1e-310,  -1e-310,  1e-20, -1e-20, 36.7,  -36.8,   709.7827,
                               709.79,   -708.5,    -745.13, -745.14,  710.4, 710.5,  26.5,  27.22,   -27.5,
                               1e16,     1e100,     -1e100,  DBL_MAX,  -DBL_MAX, INFINITY, -INFINITY, NAN };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

static bool same(long double wanted, double found)
{
  return ulps(wanted, found) <= 2 && (isnan(wanted) || !signbit(wanted) == !signbit(found));
}

/* The sign of zero, subnormal numbers, infinities and NaN as in C. */
static void double_math__ends(void)
{
  for (int i = 0; i < FUNCTIONS; i++)
    for (int k = 0; k < 2 * ENDS; k++) {
      const function *f = &functions[i];
      double x = ends[k / 2];
      if (fabs(x) > f->limit && fabs(x) < (double)INFINITY) continue;
      CHECK_MSG(same(f->exact((long double)x), f->fn[k % 2](x)), "%s of %a: %a", f->name, x, f->fn[k % 2](x));
    }
}

/* Multiples of pi / 2 as exact as a double has them, where the rest is smallest. */
static void double_math__multiples_of_the_quarter_turn(void)
{
  double worst = 0;
  for (int n = 1; n <= 65000; n++) {
    double x = (double)((long double)n * 1.57079632679489661923132169163975144L);
    double s = ulps(sinl((long double)x), tn__sin_d(x)), c = ulps(cosl((long double)x), tn__cos_fused_d(x));
    if (s > worst) worst = s;
    if (c > worst) worst = c;
  }
  CHECK_MSG(worst <= 1, "%g units", worst);
}

static void double_math__atan2(void)
{
  seed = 5;
  for (int i = 0; i < ENDS; i++)
    for (int j = 0; j < ENDS; j++) {
      double r = tn__atan2_d(ends[i], ends[j]), fused = tn__atan2_d_by(1, ends[i], ends[j]);
      long double wanted = atan2l((long double)ends[i], (long double)ends[j]);
      CHECK_MSG(same(wanted, r) && same(wanted, fused), "of %g and %g: %g", ends[i], ends[j], r);
    }
  double worst = 0;
  for (int k = 0; k < 400000; k++) {
    double y = random_argument(k, 10), x = random_argument(k / 4, 10);
    double d = ulps(atan2l((long double)y, (long double)x), k % 2 ? tn__atan2_d(y, x) : tn__atan2_d_by(1, y, x));
    if (d > worst) worst = d;
  }
  CHECK_MSG(worst <= 1.8, "%g units", worst);
  tap_note("largest error %.2f units", worst);
}

/* ---- special functions ---- */

/* e^-x times the series of the modified Bessel function of order 0 or 1, whose terms are positive, for x >= 0. */
static long double bessel(int order, long double x)
{
  long double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 2000 && term > sum * 1e-22L; k++) {
    term *= x * x / 4 / ((long double)k * (k + order));
    sum += term;
  }
  return expl(-x) * sum;
}

/* In units of a type of `digits` bits */
static double units(long double wanted, long double found, int digits)
{
  int exponent;
  frexpl(wanted, &exponent);
  return (double)(fabsl(found - wanted) / ldexpl(1, exponent - digits));
}

static void double_math__bessel(void)
{
  double worst[4] = { 0 };
  for (int k = 1; k < 24000; k++) {
    double x = k * 0.00271828, z = k % 2 ? x : -x;
    float narrow = (float)z;
    long double i0 = bessel(0, (long double)x), i1 = bessel(1, (long double)x), y = fabsl((long double)narrow);
    double d[4] = { units(i0, tn__bessel_i0e_d(z), 53), units(k % 2 ? i1 : -i1, tn__bessel_i1e_d(z), 53),
                    units(bessel(0, y), tn__bessel_i0ef(narrow), 24),
                    units(k % 2 ? bessel(1, y) : -bessel(1, y), tn__bessel_i1ef(narrow), 24) };
    for (int i = 0; i < 4; i++) worst[i] = d[i] > worst[i] ? d[i] : worst[i];
  }
  for (int i = 0; i < 4; i++) CHECK_MSG(worst[i] <= 3, "function %d: %g units", i, worst[i]);
  tap_note("largest errors %.2f %.2f, of float %.2f %.2f units", worst[0], worst[1], worst[2], worst[3]);
  CHECK(tn__bessel_i0e_d(0) == 1 && tn__bessel_i0ef(-0.0f) == 1 && tn__bessel_i1e_d(-0.0) == 0);
  CHECK(signbit(tn__bessel_i1e_d(-0.0)) && signbit(tn__bessel_i1ef(-0.0f)) && tn__bessel_i1ef(1e-40f) > 0);
  CHECK(tn__bessel_i0e_d(INFINITY) == 0 && tn__bessel_i0ef(-INFINITY) == 0 && tn__bessel_i1e_d(-INFINITY) == 0);
  CHECK(isnan(tn__bessel_i0e_d(NAN)) && isnan(tn__bessel_i1e_d(NAN)) && isnan(tn__bessel_i0ef(NAN)));
  CHECK(isnan(tn__bessel_i1ef(NAN)) && tn__bessel_i0e_d(1e300) > 0 && tn__bessel_i0ef(3e38f) > 0);
}

static const long double pi = 3.14159265358979323846264338327950288L;

/* The derivative of log gamma by its recurrence and asymptotic series */
static long double digamma(long double x)
{
  long double steps = 0;
  if (x < 0) {
    long double part = x - roundl(x);
    return digamma(1 - x) - pi / tanl(pi * part);
  }
  for (; x < 40; x += 1) steps += 1 / x;
  long double r = 1 / (x * x);
  return logl(x) - 1 / (2 * x) - r * (1 / 12.0L - r * (1 / 120.0L - r * (1 / 252.0L - r / 240))) - steps;
}

static void double_math__gamma(void)
{
  double worst = 0, worst_log = 0, units_log = 0;
  seed = 3;
  for (int k = 0; k < 200000; k++) {
    double x = random_unit() * (k % 3 == 0 ? 3 : 30);
    if (fabs(x - nearbyint(x)) < 1e-6) continue;
    long double wanted = digamma((long double)x), most = fabsl(wanted) > 1 ? fabsl(wanted) : 1;
    double d = (double)(fabsl((long double)tn__digamma_d(x) - wanted) / most);
    worst = d > worst ? d : worst;
    float narrow = (float)x;
    wanted = lgammal((long double)narrow), most = fabsl(wanted) > 1 ? fabsl(wanted) : 1;
    d = (double)(fabsl((long double)tn__lgamma_wide((double)narrow) - wanted) / most);
    worst_log = d > worst_log ? d : worst_log;
    d = units(wanted, (long double)(float)tn__lgamma_wide((double)narrow), 24);
    units_log = d > units_log ? d : units_log;
  }
  CHECK_MSG(worst <= 3e-15, "digamma: %g", worst);
  CHECK_MSG(worst_log <= 1e-14 && units_log <= 0.6, "log gamma: %g, %g units of float", worst_log, units_log);
  tap_note("digamma %.2g, log gamma %.2g, %.2f units of float", worst, worst_log, units_log);
  CHECK(isnan(tn__digamma_d(0)) && isnan(tn__digamma_d(-3)) && isnan(tn__digamma_d(-INFINITY)));
  CHECK(tn__digamma_d(INFINITY) == (double)INFINITY && isnan(tn__digamma_d(NAN)));
  CHECK(tn__lgamma_wide(0) == (double)INFINITY && tn__lgamma_wide(-4) == (double)INFINITY);
  CHECK(tn__lgamma_wide(INFINITY) == (double)INFINITY && tn__lgamma_wide(-INFINITY) == (double)INFINITY);
  CHECK(isnan(tn__lgamma_wide(NAN)) && fabs(tn__lgamma_wide(1)) < 1e-14 && fabs(tn__lgamma_wide(2)) < 1e-14);
}

/* What x would have to change by for f(x) = wanted, in units of x */
static double inverse_miss(long double x, long double miss, long double slope)
{
  return units(x, x + miss / slope, 53);
}

static void double_math__inverses_of_erf(void)
{
  const long double two_by_root_pi = 1.12837916709551257389615890312154517L;
  const long double root_2 = 1.41421356237309504880168872420969808L;
  double worst = 0, worst_quantile = 0;
  seed = 4;
  for (int k = 0; k < 100000; k++) {
    double x = fabs(random_argument(1 + k % 3, 1)), p = k % 2 ? exp(-700 * fabs(random_unit())) : fabs(random_unit());
    if (x < 1 && x > 0) {
      long double z = (long double)tn__erfinv_d(x);
      long double miss = x < 0.5 ? (long double)x - erfl(z) : erfcl(z) - (1 - (long double)x);
      double d = inverse_miss(z, miss, two_by_root_pi * expl(-z * z));
      worst = d > worst ? d : worst;
      CHECK(tn__erfinv_d(-x) == -tn__erfinv_d(x));
    }
    long double z = fabsl((long double)tn__quantile_d(p)) / root_2;
    long double rest = p < 0.5 ? (long double)p : 1 - (long double)p;
    long double miss = rest > 0.25L ? (1 - 2 * rest) - erfl(z) : erfcl(z) - 2 * rest;
    double d = inverse_miss(z, miss, two_by_root_pi * expl(-z * z));
    if (p > 0) worst_quantile = d > worst_quantile ? d : worst_quantile;
  }
  double worst_rough = 0;
  for (uint32_t u = 1; u < 0x3f800000u; u += 30011) { /* floats from the smallest to 1 */
    double p = (double)tn__float_of_bits(u), wanted = tn__quantile_d(p);
    double d = wanted == 0 ? 0 : units((long double)wanted, (long double)(float)tn__quantile_rough(p), 24);
    worst_rough = d > worst_rough ? d : worst_rough;
  }
  CHECK_MSG(worst_rough <= 0.7, "quantile of float: %g units", worst_rough);
  CHECK(isnan(tn__quantile_rough(-1)) && isnan(tn__quantile_rough(2)) && isnan(tn__quantile_rough(NAN)));
  CHECK(tn__quantile_rough(1) == (double)INFINITY && tn__quantile_rough(0) == -(double)INFINITY);
  CHECK_MSG(worst <= 2, "erfinv: %g units", worst);
  CHECK_MSG(worst_quantile <= 3, "quantile: %g units", worst_quantile);
  tap_note("erfinv %.2f, quantile %.2f units", worst, worst_quantile);
  CHECK(tn__erfinv_d(1) == (double)INFINITY && tn__erfinv_d(-1) == -(double)INFINITY && isnan(tn__erfinv_d(1.5)));
  CHECK(isnan(tn__erfinv_d(NAN)) && tn__erfinv_d(0) == 0 && signbit(tn__erfinv_d(-0.0)));
  CHECK(tn__quantile_d(1) == (double)INFINITY && tn__quantile_d(0) == -(double)INFINITY);
  CHECK(isnan(tn__quantile_d(-0.1)) && isnan(tn__quantile_d(1.1)) && isnan(tn__quantile_d(NAN)));
  CHECK(tn__quantile_d(0.5) == 0 && isfinite(tn__quantile_d(0x1p-1074)));
}

TAP_MAIN(
  TAP_TEST(double_math__errors_are_below_the_bounds),
  TAP_TEST(double_math__ends),
  TAP_TEST(double_math__multiples_of_the_quarter_turn),
  TAP_TEST(double_math__atan2),
  TAP_TEST(double_math__bessel),
  TAP_TEST(double_math__gamma),
  TAP_TEST(double_math__inverses_of_erf))
