/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/nn/soften.h>
#include <math.h>
#include <ops/kernel/elements/vector_math.h>
#include <ops/kernel/elements/vectors.h>
#include <string.h>

#define LANES 16
#define MAX_LANES 32 /* a maximum does not depend on them */
#define BLOCK 1024 /* elements whose sum is a float: stays in the L1 cache, and rounds little */

/* A comparison with NaN is false, so NaN is no maximum, but its exponential is NaN. */
TN__INLINED float most_of(const float *x, int64_t n)
{
  float lanes[MAX_LANES];
  int64_t i = 0;
  for (int k = 0; k < MAX_LANES; k++) lanes[k] = -INFINITY;
  for (; i + MAX_LANES <= n; i += MAX_LANES)
    for (int k = 0; k < MAX_LANES; k++) lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
  for (int k = 0; i < n; i++, k++) lanes[k] = x[i] > lanes[k] ? x[i] : lanes[k];
  for (int half = MAX_LANES / 2; half > 0; half /= 2)
    for (int k = 0; k < half; k++) lanes[k] = lanes[k + half] > lanes[k] ? lanes[k + half] : lanes[k];
  return lanes[0];
}

TN__INLINED float soften_block(const int fused, const float *x, int64_t n, float *out, float most)
{
  float total[LANES] = { 0 }, rest[LANES] = { 0 };
  const int64_t whole = n - n % LANES;
  TN__IVDEP
  for (int64_t i = 0; i < whole; i++) out[i] = tn__expf_below_by(fused, x[i] - most);
  for (int64_t i = 0; i < whole; i += LANES)
    for (int k = 0; k < LANES; k++) total[k] += out[i + k];
  if (whole == n) return tn__add_lanes(total);
  for (int k = 0; k < n - whole; k++) rest[k] = x[whole + k] - most;
  for (int k = 0; k < LANES; k++) rest[k] = tn__expf_below_by(fused, rest[k]);
  for (int k = 0; k < n - whole; k++) {
    out[whole + k] = rest[k];
    total[k] += rest[k];
  }
  return tn__add_lanes(total);
}

TN__INLINED double soften_row(const int fused, const float *x, int64_t n, float *out, float *most)
{
  double sum = 0;
  *most = most_of(x, n);
  for (int64_t at = 0; at < n; at += BLOCK)
    sum += (double)soften_block(fused, x + at, n - at < BLOCK ? n - at : BLOCK, out + at, *most);
  return sum;
}

static double soften(const float *x, int64_t n, float *out, float *most) { return soften_row(0, x, n, out, most); }
#define SOFTEN(fused, name, end, attribute)                                                                          \
  attribute static double name##_##end(const float *x, int64_t n, float *out, float *most)                          \
  {                                                                                                                  \
    return soften_row(fused, x, n, out, most);                                                                       \
  }
#define SOFTEN_ALIKE(name, end, attribute) SOFTEN(0, name, end, attribute)
#define SOFTEN_FUSED(name, end, attribute) SOFTEN(1, name, end, attribute)
TN__AVX2_LOOPS(SOFTEN_ALIKE, soften)
TN__FUSED_LOOPS(SOFTEN_FUSED, soften)

tn__soften_fn tn__soften_for(bool reproducible)
{
  static const tn__soften_fn fns[] = TN__FUSED_FNS(soften);
  return fns[tn__vectors_for(reproducible)];
}
