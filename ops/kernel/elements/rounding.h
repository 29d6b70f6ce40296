/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding to integers without a function call, so that loops vectorise on machines without a rounding instruction. */
#ifndef TN_OPS_KERNEL_ELEMENTS_ROUNDING_H
#define TN_OPS_KERNEL_ELEMENTS_ROUNDING_H

#include <math.h>

#include <ops/kernel/elements/vectors.h>

/* Below 2^23 (2^52 for double), adding that number and subtracting it again rounds to nearest even. All larger numbers
 * are integers already. The sign of zero and NaN are preserved. */
#define TN__ROUNDING(T, suffix, limit, fabs_, copysign_) \
  TN__INLINED T tn__round_##suffix(T x)                \
  {                                                      \
    T big = copysign_(limit, x);                         \
    T r = copysign_((x + big) - big, x);                 \
    return fabs_(x) < limit ? r : x;                     \
  }                                                      \
  TN__INLINED T tn__floor_##suffix(T x)                \
  {                                                      \
    T r = tn__round_##suffix(x);                         \
    return copysign_(r > x ? r - 1 : r, x);              \
  }                                                      \
  TN__INLINED T tn__ceil_##suffix(T x)                 \
  {                                                      \
    T r = tn__round_##suffix(x);                         \
    return copysign_(r < x ? r + 1 : r, x);              \
  }                                                      \
  TN__INLINED T tn__trunc_##suffix(T x)                \
  {                                                      \
    T r = fabs_(tn__round_##suffix(x)), a = fabs_(x);    \
    return copysign_(r > a ? r - 1 : r, x);              \
  }
TN__ROUNDING(float, f, 0x1p23f, fabsf, copysignf)
TN__ROUNDING(double, d, 0x1p52, fabs, copysign)

#endif
