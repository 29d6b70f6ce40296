/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/factors.h>

/* A lost digit is less than 2^-149, hence less than 2^-49 of a number of this size. */
#define LARGE 0x1p-100
#define BLOCK 64 /* channels processed together, row by row */

static bool block_may_scale(const float *filter, int64_t rows, int64_t step, const float *scale, int64_t n)
{
  double largest[BLOCK] = { 0 };
  bool exact[BLOCK], sound = true;
  for (int64_t c = 0; c < n; c++) exact[c] = fabsf(scale[c]) <= (float)TN__MOST_FACTOR;
  for (int64_t c = 0; c < n; c++) sound &= exact[c];
  for (int64_t r = 0; r < rows && sound; r++, filter += step)
    for (int64_t c = 0; c < n; c++) {
      double w = filter[c], size = fabs(w * (double)scale[c]);
      sound &= fabs(w) <= TN__MOST_FACTOR && size <= TN__MOST_FACTOR; /* false for NaN */
      exact[c] &= tn__keeps_digits(size);
      largest[c] = size > largest[c] ? size : largest[c];
    }
  for (int64_t c = 0; c < n; c++) sound &= exact[c] || largest[c] >= LARGE;
  return sound;
}

bool tn__filter_may_scale(const float *filter, int64_t rows, const float *scale, int64_t channels)
{
  bool sound = true;
  for (int64_t c = 0; c < channels && sound; c += BLOCK)
    sound = block_may_scale(filter + c, rows, channels, scale + c, channels - c < BLOCK ? channels - c : BLOCK);
  return sound;
}
