/* SPDX-License-Identifier: Apache-2.0 */
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vectors.h>

#define CONVERT_WIDE(name, From, To, one, end, attribute)                                               \
  attribute static void name##_##end(const From *restrict from, To *restrict to, int64_t n)             \
  {                                                                                                     \
    int64_t whole = n & -INT64_C(32);                                                                   \
    for (int64_t i = 0; i < whole; i++) to[i] = one(from[i]);                                           \
    if (whole < n) name(from + whole, to + whole, n - whole);                                           \
  }
#define CONVERT(name, From, To, one)                                                 \
  TN__APART static void name(const From *restrict from, To *restrict to, int64_t n)  \
  {                                                                                  \
    for (int64_t i = 0; i < n; i++) to[i] = one(from[i]);                            \
  }                                                                                  \
  TN__WIDE_LOOPS(CONVERT_WIDE, name, From, To, one)                                  \
  void tn__##name(const From *restrict from, To *restrict to, int64_t n)             \
  {                                                                                  \
    static void (*const fn[TN__VECTORS])(const From *, To *, int64_t) = TN__FNS(name); \
    fn[tn__vectors()](from, to, n);                                                  \
  }
CONVERT(half_to_floats, uint16_t, float, tn__half_to_float)
CONVERT(half_from_floats, float, uint16_t, tn__half_from_float)
CONVERT(bfloat16_to_floats, uint16_t, float, tn__bfloat16_to_float)
CONVERT(bfloat16_from_floats, float, uint16_t, tn__bfloat16_from_float)
