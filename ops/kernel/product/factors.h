/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether constants may be multiplied together, or added, before a step runs. A sum of products keeps its
 * value, up to rounding, only if the combined constant does not overflow or lose digits to underflow. */
#ifndef TN_OPS_KERNEL_PRODUCT_FACTORS_H
#define TN_OPS_KERNEL_PRODUCT_FACTORS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum magnitude of a factor. Products with it are far from overflow, including large terms that cancel in a sum. */
#define TN__MOST_FACTOR 0x1p100

/* True if float holds this number to full precision, and it is finite and at most TN__MOST_FACTOR. `exact` is
 * computed in double. */
static inline bool tn__keeps_digits(double exact)
{
  double size = fabs(exact);
  return size <= TN__MOST_FACTOR && (size >= (double)FLT_MIN || (double)(float)exact == exact);
}

/* The same for a product; the factors themselves are checked, too. */
static inline bool tn__may_multiply(float a, float b)
{
  return fabsf(a) <= (float)TN__MOST_FACTOR && fabsf(b) <= (float)TN__MOST_FACTOR &&
         tn__keeps_digits((double)a * (double)b);
}

/* The same for a sum, which loses no digits to underflow: only the size of the terms matters. */
static inline bool tn__may_add(float a, float b)
{
  return fabsf(a) <= (float)TN__MOST_FACTOR && fabsf(b) <= (float)TN__MOST_FACTOR;
}

/* True if a filter of `rows` by `channels` may be multiplied by one scale per channel. Numbers that lose digits to
 * underflow are accepted if the same channel has numbers so large that the lost digits do not matter. */
bool tn__filter_may_scale(const float *filter, int64_t rows, const float *scale, int64_t channels);

#endif
