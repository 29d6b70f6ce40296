/* SPDX-License-Identifier: Apache-2.0 */
/* Uses series where they converge fast, continued fractions and asymptotic series elsewhere. */
#include <ops/math/special_functions.h>

#include <float.h>
#include <math.h>

#define PI 3.14159265358979323846
#define ROOT_2 1.41421356237309504880
#define TWO_BY_ROOT_PI 1.12837916709551257390
#define HALF_LOG_2PI 0.91893853320467274178
#define MANY 100000 /* maximum number of iterations; by then the result has practically converged */
#define TINY 1e-300

/* Clamps to [0, 1]: rounding, and parameters near the ends of the number range, can give results outside. */
static double in_unit(double x)
{
  if (x < 0) return 0;
  return x > 1 ? 1 : x;
}

double tn__log_gamma(double x)
{
#if defined(__GLIBC__) || defined(__APPLE__) || defined(__FreeBSD__)
  int sign;
  return lgamma_r(x, &sign);
#else
  return lgamma(x);
#endif
}

double tn__digamma(double x)
{
  double result = 0;
  if (isinf(x)) return x > 0 ? x : (double)NAN;
  if (x <= 0) {
    double part = x - nearbyint(x);
    if (part == 0) return (double)NAN;
    result = -PI / tan(PI * part);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  double r = 1 / (x * x);
  return result + log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760))))));
}

/* ---- inverses ---- */

/* The z >= 0 for which erfc(z) = y, for y in (0, 1]: a rational initial guess, then Halley iterations. */
static double inverse_erfc(double y)
{
  double t = sqrt(-2 * log(y / 2));
  double z = (t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t))) / ROOT_2;
  for (int i = 0; i < 3; i++) {
    double slope = TWO_BY_ROOT_PI * exp(-z * z), miss = erfc(z) - y;
    if (!(slope > 0)) break;
    z += miss / (slope - z * miss);
  }
  return z;
}

double tn__inverse_erf(double y)
{
  double size = fabs(y);
  if (!(size <= 1)) return (double)NAN;
  if (size == 1) return y * HUGE_VAL;
  if (size > 0.5) return copysign(inverse_erfc(1 - size), y);
  double z = y * (1 / TWO_BY_ROOT_PI);
  for (int i = 0; i < 4; i++) {
    double slope = TWO_BY_ROOT_PI * exp(-z * z), miss = y - erf(z);
    z += miss / (slope + z * miss);
  }
  return z;
}

double tn__normal_quantile(double p)
{
  if (!(p >= 0 && p <= 1)) return (double)NAN;
  if (p == 0 || p == 1) return p == 0 ? -HUGE_VAL : HUGE_VAL;
  if (p < 0.25) return -ROOT_2 * inverse_erfc(2 * p);
  return p > 0.75 ? ROOT_2 * inverse_erfc(2 * (1 - p)) : ROOT_2 * tn__inverse_erf(2 * p - 1);
}

/* ---- Bessel functions of order 0 and 1 ---- */

/* exp(-x) I(x) for x >= 0. */
static double bessel_ie(int order, double x)
{
  if (isinf(x)) return 0;
  double term = 1, sum = 1;
  if (x > 30) {
    for (int k = 1; k < 30 && fabs(term) > DBL_EPSILON * sum / 4; k++) {
      double odd = 2 * k - 1;
      term *= (odd * odd - 4 * order) / (8 * x * k);
      sum += term;
    }
    return sum / sqrt(2 * PI * x);
  }
  for (int k = 1; term > DBL_EPSILON * sum / 4; k++) {
    term *= x * x / 4 / ((double)k * (k + order));
    sum += term;
  }
  return exp(-x) * sum * (order == 1 ? x / 2 : 1);
}

double tn__bessel_i0e(double x) { return isnan(x) ? x : bessel_ie(0, fabs(x)); }
double tn__bessel_i1e(double x) { return isnan(x) ? x : copysign(bessel_ie(1, fabs(x)), x); }

/* ---- zeta ---- */

/* For x > 1 and q > 0: sums the first terms directly and the rest by the Euler-Maclaurin formula. */
static double zeta_positive(double x, double q)
{
  /* Bernoulli numbers divided by factorials. */
  static const double weights[] = { 1.0 / 12,      -1.0 / 720,       1.0 / 30240,
                                    -1.0 / 1209600, 1.0 / 47900160,   -691.0 / 1307674368000.0,
                                    1.0 / 74724249600.0, -3617.0 / 10670622842880000.0 };
  double sum = 0;
  if (isinf(x)) return q < 1 ? HUGE_VAL : q == 1;
  if (isinf(q)) return 0;
  for (; q < 12 || q < x; q += 1) {
    double term = pow(q, -x);
    sum += term;
    if (term <= sum * (DBL_EPSILON / 16)) return sum;
  }
  double power = pow(q, -x), factor = x * power / q;
  sum += power * q / (x - 1) + power / 2;
  for (int j = 0; j < (int)(sizeof weights / sizeof weights[0]); j++) {
    sum += weights[j] * factor;
    factor *= (x + 2 * j + 1) * (x + 2 * j + 2) / (q * q);
  }
  return sum;
}

double tn__zeta(double x, double q)
{
  if (x == 1) return HUGE_VAL;
  if (!(x > 1) || isnan(q)) return (double)NAN;
  if (q > 0) return zeta_positive(x, q);
  double below = floor(-q), part = -q - below;
  int whole = x == floor(x), even = whole && fmod(x, 2) == 0;
  if (isinf(x)) return HUGE_VAL;
  if (part == 0 || isinf(q)) return even ? HUGE_VAL : (double)NAN;
  if (!whole) return (double)NAN;
  /* The first below + 1 terms have negative bases, of magnitudes part, part + 1, ..., -q. */
  double negative = zeta_positive(x, part) - zeta_positive(x, part + below + 1);
  return (even ? negative : -negative) + zeta_positive(x, 1 - part);
}

double tn__polygamma(double n, double x)
{
  if (n == 0) return tn__digamma(x);
  if (!(n > 0) || n != floor(n)) return (double)NAN;
  double size = exp(tn__log_gamma(n + 1)) * tn__zeta(n + 1, x);
  return fmod(n, 2) == 0 ? -size : size;
}

/* ---- incomplete gamma ---- */

/* x^a exp(-x) / gamma(a) */
static double gamma_front(double a, double x) { return exp(a * log(x) - x - tn__log_gamma(a)); }

static double gamma_series(double a, double x)
{
  double term = 1 / a, sum = term;
  for (int k = 1; k < MANY && term > DBL_EPSILON * sum / 4; k++) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_front(a, x);
}

/* The upper function's continued fraction, by Lentz's algorithm. */
static double gamma_fraction(double a, double x)
{
  double b = x + 1 - a, c = 1 / TINY, d = 1 / b, h = d;
  for (int k = 1; k < MANY; k++) {
    double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (fabs(d) < TINY ? TINY : d);
    c = fabs(c) < TINY ? TINY : c;
    h *= d * c;
    if (fabs(d * c - 1) < DBL_EPSILON) break;
  }
  return h * gamma_front(a, x);
}

double tn__igamma(double a, double x)
{
  if (x == 0) return isnan(a) ? a : 0;
  if (!(a > 0 && x > 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (isinf(a)) return 0;
  if (isinf(x)) return 1;
  return in_unit(x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x));
}

double tn__igammac(double a, double x)
{
  if (!(a > 0 && x >= 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (x == 0 || isinf(a)) return 1;
  if (isinf(x)) return 0;
  return in_unit(x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x));
}

/* The series of the lower function, differentiated term by term. */
double tn__igamma_grad_a(double a, double x)
{
  if (x == 0) return isnan(a) ? a : 0;
  if (!(a > 0 && x > 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (isinf(a)) return 0;
  if (isinf(x)) return -0.0;
  double term = gamma_front(a, x) / a, psi = tn__digamma(a + 1), log_x = log(x), sum = 0, size = 0;
  for (int k = 1; k < MANY; k++) {
    sum += term * (log_x - psi);
    size += term;
    if (a + k > x && term < DBL_EPSILON * size / 16) break;
    psi += 1 / (a + k);
    term *= x / (a + k);
    if (term == 0) break;
  }
  return sum;
}

/* ---- incomplete beta ---- */

static double beta_fraction(double a, double b, double x)
{
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (fabs(d) < TINY ? TINY : d);
  double h = d;
  for (int k = 1; k < MANY; k++) {
    double numerators[2] = { k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
                             -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)) };
    for (int half = 0; half < 2; half++) {
      d = 1 + numerators[half] * d;
      c = 1 + numerators[half] / c;
      d = 1 / (fabs(d) < TINY ? TINY : d);
      c = fabs(c) < TINY ? TINY : c;
      h *= d * c;
    }
    if (fabs(d * c - 1) < DBL_EPSILON) break;
  }
  return h;
}

double tn__betainc(double a, double b, double x)
{
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || isinf(a) || isinf(b)) return (double)NAN;
  if (x == 0 || x == 1) return x;
  double front = exp(tn__log_gamma(a + b) - tn__log_gamma(a) - tn__log_gamma(b) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return in_unit(front * beta_fraction(a, b, x) / a);
  return in_unit(1 - front * beta_fraction(b, a, 1 - x) / b);
}
