/* SPDX-License-Identifier: Apache-2.0 */
/* Products of vectors. Integers are computed as unsigned, so they wrap. */
#include <ops/kernel/product/product_loops.h>

#include <ops/kernel/elements/complex.h>

#define PLUS(x, y) ((x) + (y))
#define TIMES(x, y) ((x) * (y))

#define LOOPS(name, T, lanes, MUL)                                                                \
  static void line_##name(void *out, const void *a, const void *b, int64_t n, bool first)         \
  {                                                                                               \
    T *restrict z = out;                                                                          \
    const T *restrict x = a, *restrict y = b;                                                     \
    if (first)                                                                                    \
      for (int64_t i = 0; i < n; i++) z[i] = MUL(x[i], y[i]);                                     \
    else                                                                                          \
      for (int64_t i = 0; i < n; i++) z[i] = PLUS(z[i], MUL(x[i], y[i]));                         \
  }                                                                                               \
  static void dot_##name(void *out, const void *a, const void *b, int64_t n)                      \
  {                                                                                               \
    const T *x = a, *y = b;                                                                       \
    T sums[lanes] = { 0 };                                                                        \
    int64_t whole = n / (lanes) * (lanes);                                                        \
    for (int64_t i = 0; i < whole; i += (lanes))                                                  \
      for (int k = 0; k < (lanes); k++) sums[k] = PLUS(sums[k], MUL(x[i + k], y[i + k]));         \
    for (int64_t i = whole; i < n; i++) sums[i - whole] = PLUS(sums[i - whole], MUL(x[i], y[i])); \
    for (int half = (lanes) / 2; half > 0; half /= 2)                                             \
      for (int k = 0; k < half; k++) sums[k] = PLUS(sums[k], sums[k + half]);                     \
    *(T *)out = sums[0];                                                                          \
  }
LOOPS(f32, float, 32, TIMES)
LOOPS(f64, double, 16, TIMES)
LOOPS(i32, uint32_t, 32, TIMES)
LOOPS(i64, uint64_t, 16, TIMES)
LOOPS(c64, tn__c64, 8, tn__mul_c64)
LOOPS(c128, tn__c128, 8, tn__mul_c128)

const tn__product_loops *tn__product_loops_of(tn__gemm_type type)
{
  static const tn__product_loops loops[] = {
    [TN__GEMM_F32] = { line_f32, dot_f32 }, [TN__GEMM_F64] = { line_f64, dot_f64 },
    [TN__GEMM_I32] = { line_i32, dot_i32 }, [TN__GEMM_I64] = { line_i64, dot_i64 },
    [TN__GEMM_C64] = { line_c64, dot_c64 }, [TN__GEMM_C128] = { line_c128, dot_c128 },
  };
  return &loops[type];
}

bool tn__gemm_type_of(tn_dtype dtype, tn__gemm_type *type)
{
  switch (dtype) {
  case TN_FLOAT: *type = TN__GEMM_F32; return true;
  case TN_DOUBLE: *type = TN__GEMM_F64; return true;
  case TN_INT32: *type = TN__GEMM_I32; return true;
  case TN_INT64: *type = TN__GEMM_I64; return true;
  case TN_COMPLEX64: *type = TN__GEMM_C64; return true;
  case TN_COMPLEX128: *type = TN__GEMM_C128; return true;
  default: return false;
  }
}
