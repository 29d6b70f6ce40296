/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/product/weights.h>
#include <ops/kernel/poll.h>
#include <math.h>
#include <string.h>

void tn__weights_to_bfloat16(const float *from, int64_t n, uint16_t *to)
{
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, from + i, sizeof bits);
    const uint32_t nan = bits >> 16 | 0x40, rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
  }
}

/* Largest magnitudes of the columns so far. Infinity and NaN compare as bits, so both are larger than any number. */
static void add_row(const float *from, int64_t n, int64_t column, float *most)
{
  for (int64_t j = 0; j < n; j++) {
    uint32_t bits, old;
    memcpy(&bits, from + j * column, sizeof bits);
    memcpy(&old, most + j, sizeof old);
    bits &= 0x7fffffff;
    bits = bits > old ? bits : old;
    memcpy(most + j, &bits, sizeof bits);
  }
}

static float most_of(const float *from, int64_t n, int64_t step)
{
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, from + i * step, sizeof bits);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  float result;
  memcpy(&result, &most, sizeof result);
  return result;
}

bool tn__weights_scales(const float *from, int64_t rows, int64_t columns, int64_t row, int64_t column, float *scales)
{
  tn__poll poll = tn__poll_here();
  bool finite = true;
  for (int64_t j = 0; j < columns; j++) scales[j] = 0;
  if (column == 1) {
    for (int64_t i = 0; i < rows && !tn__poll_over(&poll, columns); i++) add_row(from + i * row, columns, 1, scales);
  } else {
    for (int64_t j = 0; j < columns && !tn__poll_over(&poll, rows); j++)
      scales[j] = most_of(from + j * column, rows, row);
  }
  for (int64_t j = 0; j < columns; j++) {
    finite &= isfinite(scales[j]) != 0;
    scales[j] /= 127;
  }
  return finite;
}

/* A scale can be 0 for tiny weights, too. */
void tn__weights_to_int8(const float *from, int64_t rows, int64_t columns, const float *scales, int8_t *to)
{
  for (int64_t i = 0; i < rows; i++, from += columns, to += columns)
    for (int64_t j = 0; j < columns; j++) {
      float x = scales[j] > 0 ? from[j] / scales[j] : 0;
      x = x > 127 ? 127 : x;
      x = x < -127 ? -127 : x;
      /* Adding 1.5 * 2^23 rounds to an integer, ties to even. */
      to[j] = (int8_t)(int32_t)((x + 12582912.0f) - 12582912.0f);
    }
}
