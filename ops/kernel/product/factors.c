/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/factors.h>

/* A lost digit is less than 2^-149, hence less than 2^-49 of a number of this size. */
#define LARGE 0x1p-100
#define BLOCK 64 /* channels processed together, row by row */

/* Whether all products of a channel keep their digits. */
static bool channel_keeps_digits(const float *filter, int64_t rows, int64_t step, float scale)
{
  for (int64_t r = 0; r < rows; r++)
    if (!tn__keeps_digits((double)filter[r * step] * (double)scale)) return false;
  return true;
}

/* The least and the largest size in each channel decide, except for sizes so small that not all have their digits. */
static bool block_may_scale(const float *filter, int64_t rows, int64_t step, const float *scale, int64_t n)
{
  float largest[BLOCK] = { 0 }, least[BLOCK];
  int32_t over[BLOCK] = { 0 };
  bool sound = true;
  for (int64_t c = 0; c < n; c++) least[c] = INFINITY;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < n; c++) {
      float size = fabsf(filter[r * step + c]), some = size > 0 ? size : INFINITY;
      over[c] |= !(size <= (float)TN__MOST_FACTOR); /* true for NaN */
      largest[c] = size > largest[c] ? size : largest[c];
      least[c] = some < least[c] ? some : least[c];
    }
  for (int64_t c = 0; c < n && sound; c++) {
    const double by = fabs((double)scale[c]), most = largest[c] * by;
    sound = !over[c] && by <= TN__MOST_FACTOR && most <= TN__MOST_FACTOR;
    if (sound && most < LARGE && least[c] * by < (double)FLT_MIN)
      sound = channel_keeps_digits(filter + c, rows, step, scale[c]);
  }
  return sound;
}

bool tn__filter_may_scale(const float *filter, int64_t rows, const float *scale, int64_t channels)
{
  bool sound = true;
  for (int64_t c = 0; c < channels && sound; c += BLOCK)
    sound = block_may_scale(filter + c, rows, channels, scale + c, channels - c < BLOCK ? channels - c : BLOCK);
  return sound;
}
