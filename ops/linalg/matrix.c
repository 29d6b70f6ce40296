/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <float.h>
#include <ops/kernel/elements/complex.h>
#include <ops/kernel/product/gemm.h>
#include <ops/linalg/matrix.h>
#include <string.h>

#define BLOCK 48        /* columns that are factored at a time */
#define SMALL (24 * 24 * 24) /* products below this size are not worth a plan */

#define T float
#define R float
#define NAME(x) x##_f32
#define EPSILON FLT_EPSILON
#define GEMM TN__GEMM_F32
#define SQRT sqrtf
#define LOG logf
#define MAKE(re, im) (re)
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define CONJ(a) (a)
#define RE(a) (a)
#define IM(a) ((float)0)
#define ABS(a) fabsf(a)
#include <ops/linalg/matrix_functions.h>

#define T double
#define R double
#define NAME(x) x##_f64
#define EPSILON DBL_EPSILON
#define GEMM TN__GEMM_F64
#define SQRT sqrt
#define LOG log
#define MAKE(re, im) (re)
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define CONJ(a) (a)
#define RE(a) (a)
#define IM(a) ((double)0)
#define ABS(a) fabs(a)
#include <ops/linalg/matrix_functions.h>

#define T tn__c64
#define R float
#define NAME(x) x##_c64
#define EPSILON FLT_EPSILON
#define GEMM TN__GEMM_C64
#define SQRT sqrtf
#define LOG logf
#define MAKE(re, im) tn__make_c64(re, im)
#define MUL(a, b) tn__mul_c64(a, b)
#define DIV(a, b) tn__div_c64(a, b)
#define CONJ(a) conjf(a)
#define RE(a) crealf(a)
#define IM(a) cimagf(a)
#define ABS(a) cabsf(a)
#include <ops/linalg/matrix_functions.h>

#define T tn__c128
#define R double
#define NAME(x) x##_c128
#define EPSILON DBL_EPSILON
#define GEMM TN__GEMM_C128
#define SQRT sqrt
#define LOG log
#define MAKE(re, im) tn__make_c128(re, im)
#define MUL(a, b) tn__mul_c128(a, b)
#define DIV(a, b) tn__div_c128(a, b)
#define CONJ(a) conj(a)
#define RE(a) creal(a)
#define IM(a) cimag(a)
#define ABS(a) cabs(a)
#include <ops/linalg/matrix_functions.h>

tn__matrix_fn tn__matrix_find(tn__matrix_op op, tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return fns_f32[op];
  case TN_DOUBLE: return fns_f64[op];
  case TN_COMPLEX64: return fns_c64[op];
  case TN_COMPLEX128: return fns_c128[op];
  default: return NULL;
  }
}

bool tn__matrix_work(int64_t m, int64_t n, int64_t k, size_t *elements)
{
  size_t side = (size_t)(m > n ? m : n), wide, all;
  if (!tn__size_add(side, 8, &side)) return false;
  wide = (size_t)k > side ? (size_t)k : side;
  if (!tn__size_mul(side, wide, &all) || !tn__size_mul(all, 5, &all)) return false;
  return tn__size_add(all, 4 * side + 64, elements);
}
