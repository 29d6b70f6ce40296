/* SPDX-License-Identifier: Apache-2.0 */
/* Uses series where they converge fast, continued fractions and asymptotic series elsewhere. */
#include <ops/kernel/functions/gamma.h>
#include <ops/math/special_functions.h>

#include <float.h>
#include <math.h>

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

/* ---- zeta ---- */

/* For x > 1 and q > 0: sums the first terms directly and the rest by the Euler-Maclaurin formula. */
static double zeta_positive(double x, double q, double enough)
{
  /* Bernoulli numbers divided by factorials. */
  static const double weights[] = { 1.0 / 12,      -1.0 / 720,       1.0 / 30240,
                                    -1.0 / 1209600, 1.0 / 47900160,   -691.0 / 1307674368000.0,
                                    1.0 / 74724249600.0, -3617.0 / 10670622842880000.0 };
  double sum = 0;
  if (isinf(x)) return q < 1 ? HUGE_VAL : q == 1;
  if (isinf(q)) return 0;
  /* From here on the formula's terms get small fast enough. */
  const double start = enough > DBL_EPSILON ? 7 : 12;
  for (; q < start || q < x; q += 1) {
    double term = pow(q, -x);
    sum += term;
    if (term <= sum * (enough / 16)) return sum;
  }
  double power = pow(q, -x), factor = x * power / q;
  sum += power * q / (x - 1) + power / 2;
  for (int j = 0; j < (int)(sizeof weights / sizeof weights[0]); j++) {
    sum += weights[j] * factor;
    factor *= (x + 2 * j + 1) * (x + 2 * j + 2) / (q * q);
  }
  return sum;
}

double tn__zeta(double x, double q, double enough)
{
  if (x == 1) return HUGE_VAL;
  if (!(x > 1) || isnan(q)) return (double)NAN;
  if (q > 0) return zeta_positive(x, q, enough);
  double below = floor(-q), part = -q - below;
  int whole = x == floor(x), even = whole && fmod(x, 2) == 0;
  if (isinf(x)) return HUGE_VAL;
  if (part == 0 || isinf(q)) return even ? HUGE_VAL : (double)NAN;
  if (!whole) return (double)NAN;
  /* The first below + 1 terms have negative bases, of magnitudes part, part + 1, ..., -q. */
  double negative = zeta_positive(x, part, enough) - zeta_positive(x, part + below + 1, enough);
  return (even ? negative : -negative) + zeta_positive(x, 1 - part, enough);
}

double tn__polygamma(double n, double x, double enough)
{
  if (n == 0) return tn__digamma_d(x);
  if (!(n > 0) || n != floor(n)) return (double)NAN;
  double size = exp(tn__log_gamma(n + 1)) * tn__zeta(n + 1, x, enough);
  return fmod(n, 2) == 0 ? -size : size;
}

/* ---- incomplete gamma ---- */

/* x^a exp(-x) / gamma(a) */
static double gamma_front(double a, double x) { return exp(a * log(x) - x - tn__log_gamma(a)); }

static double gamma_series(double a, double x, double enough)
{
  double term = 1 / a, sum = term;
  for (int k = 1; k < MANY && term > enough * sum / 4; k++) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * gamma_front(a, x);
}

/* The upper function's continued fraction, as the quotient of two sequences: no division waits for another one. */
static double gamma_fraction(double a, double x, double enough)
{
  double front = gamma_front(a, x), b = x + 1 - a, above[2] = { 0, 1 }, below[2] = { 1, b }, h = 1 / b;
  if (front == 0 || b > 1e100) return front * h;
  for (int k = 1; k < MANY; k++) {
    double numerator = -k * (k - a);
    b += 2;
    double p = b * above[1] + numerator * above[0], q = b * below[1] + numerator * below[0], before = h;
    h = p / q;
    if (!(fabs(h - before) > enough * fabs(h))) break;
    double scale = fabs(q) > 1e100 ? 1 / fabs(q) : 1;
    above[0] = above[1] * scale;
    above[1] = p * scale;
    below[0] = below[1] * scale;
    below[1] = q * scale;
  }
  return h * front;
}

double tn__igamma(double a, double x, double enough)
{
  if (x == 0) return isnan(a) ? a : 0;
  if (!(a > 0 && x > 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (isinf(a)) return 0;
  if (isinf(x)) return 1;
  return in_unit(x < a + 1 ? gamma_series(a, x, enough) : 1 - gamma_fraction(a, x, enough));
}

double tn__igammac(double a, double x, double enough)
{
  if (!(a > 0 && x >= 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (x == 0 || isinf(a)) return 1;
  if (isinf(x)) return 0;
  return in_unit(x < a + 1 ? 1 - gamma_series(a, x, enough) : gamma_fraction(a, x, enough));
}

/* The series of the lower function, differentiated term by term. */
double tn__igamma_grad_a(double a, double x, double enough)
{
  if (x == 0) return isnan(a) ? a : 0;
  if (!(a > 0 && x > 0) || (isinf(a) && isinf(x))) return (double)NAN;
  if (isinf(a)) return 0;
  if (isinf(x)) return -0.0;
  double term = gamma_front(a, x) / a, psi = tn__digamma_d(a + 1), log_x = log(x), sum = 0, size = 0;
  for (int k = 1; k < MANY; k++) {
    sum += term * (log_x - psi);
    size += term;
    if (a + k > x && term < enough * size / 16) break;
    psi += 1 / (a + k);
    term *= x / (a + k);
    if (term == 0) break;
  }
  return sum;
}

/* ---- incomplete beta ---- */

static double beta_fraction(double a, double b, double x, double enough)
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
    if (fabs(d * c - 1) < enough) break;
  }
  return h;
}

double tn__betainc(double a, double b, double x, double enough)
{
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || isinf(a) || isinf(b)) return (double)NAN;
  if (x == 0 || x == 1) return x;
  double front = exp(tn__log_gamma(a + b) - tn__log_gamma(a) - tn__log_gamma(b) + a * log(x) + b * log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return in_unit(front * beta_fraction(a, b, x, enough) / a);
  return in_unit(1 - front * beta_fraction(b, a, 1 - x, enough) / b);
}
