/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of double compared with those of long double: the bounds stated in ops/kernel/functions/double_*.h. */
#include <float.h>
#include <ops/kernel/functions/double_error.h>
#include <ops/kernel/functions/double_exponential.h>
#include <ops/kernel/functions/double_trigonometric.h>
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

TAP_MAIN(
  TAP_TEST(double_math__errors_are_below_the_bounds),
  TAP_TEST(double_math__ends),
  TAP_TEST(double_math__multiples_of_the_quarter_turn),
  TAP_TEST(double_math__atan2))
