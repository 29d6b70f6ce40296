/* SPDX-License-Identifier: Apache-2.0 */
/* Whether constants may be multiplied with each other, or added up, before a step: a sum of products keeps its value, but for
 * rounding, only if what stands in the place of two numbers is as good a number as these. */
#ifndef TN_OPS_KERNEL_PRODUCT_FACTORS_H
#define TN_OPS_KERNEL_PRODUCT_FACTORS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The largest factor: products with it are far from the end of float, also those of which a sum's small result is left. */
#define TN__MOST_FACTOR 0x1p100

/* Whether float holds this number with all its digits, and it is no infinity, NaN or huge. `exact` is worked out in double. */
static inline bool tn__keeps_digits(double exact)
{
  double size = fabs(exact);
  return size <= TN__MOST_FACTOR && (size >= (double)FLT_MIN || (double)(float)exact == exact);
}

/* The same for a product: of its factors, too. */
static inline bool tn__may_multiply(float a, float b)
{
  return fabsf(a) <= (float)TN__MOST_FACTOR && fabsf(b) <= (float)TN__MOST_FACTOR && tn__keeps_digits((double)a * (double)b);
}

/* The same for a sum, which loses no digit where it is small. */
static inline bool tn__may_add(float a, float b)
{
  return fabsf(a) <= (float)TN__MOST_FACTOR && fabsf(b) <= (float)TN__MOST_FACTOR;
}

/* Whether a filter of `rows` by `channels` may be multiplied by a scale for each channel. Numbers that are too small for all
 * their digits may stand beside others of their channel that are so large that the digits count for nothing. */
bool tn__filter_may_scale(const float *filter, int64_t rows, const float *scale, int64_t channels);

#endif
