/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/support/half.h>

void tn__half_to_floats(const uint16_t *restrict from, float *restrict to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = tn__half_to_float(from[i]);
}

void tn__half_from_floats(const float *restrict from, uint16_t *restrict to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = tn__half_from_float(from[i]);
}

void tn__bfloat16_to_floats(const uint16_t *restrict from, float *restrict to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = tn__bfloat16_to_float(from[i]);
}

void tn__bfloat16_from_floats(const float *restrict from, uint16_t *restrict to, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = tn__bfloat16_from_float(from[i]);
}
