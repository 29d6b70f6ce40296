/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log, tanh and sigmoid of float compared with double: the bounds stated in vector_math.h. */
#include <ops/kernel/elements/vector_math.h>
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

/* Every 1009th float of either sign. */
static void check_all(float (*fn)(float), double (*exact)(double), double bound)
{
  double worst = 0;
  float at = 0;
  for (uint64_t u = 0; u <= UINT32_MAX; u += 1009) {
    float x = tn__float_of_bits((uint32_t)u);
    double d = ulps(exact((double)x), fn(x));
    if (d > worst) {
      worst = d;
      at = x;
    }
  }
  CHECK_MSG(worst <= bound, "%g units at %a", worst, (double)at);
  tap_note("largest error %.2f units, at %a", worst, (double)at);
}

static void vector_math__exp(void) { check_all(tn__expf, exp, 1); }
static void vector_math__log(void) { check_all(tn__logf, log, 1); }
static void vector_math__tanh(void) { check_all(tn__tanhf, tanh, 1.5); }
static void vector_math__sigmoid(void) { check_all(tn__sigmoidf, sigmoid, 2.5); }

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

TAP_MAIN(
  TAP_TEST(vector_math__exp),
  TAP_TEST(vector_math__log),
  TAP_TEST(vector_math__tanh),
  TAP_TEST(vector_math__sigmoid),
  TAP_TEST(vector_math__special_values))
