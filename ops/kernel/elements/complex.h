/* SPDX-License-Identifier: Apache-2.0 */
/* Complex arithmetic beyond C's own functions: tn__make_c64 and tn__make_c128, likewise mul, div, expm1 and log1p. */
#ifndef TN_OPS_KERNEL_ELEMENTS_COMPLEX_H
#define TN_OPS_KERNEL_ELEMENTS_COMPLEX_H

#include <complex.h>
#undef I
#include <math.h>

/* glibc (as of 2022) defines these for gcc only. */
#ifndef CMPLX
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#endif

typedef float complex tn__c64;
typedef double complex tn__c128;

/* T is the type of a part, f its suffix in libm's names.
 * make   builds from parts; multiplying by the imaginary unit would corrupt infinities and NaNs
 * mul    textbook formula: vectorises, does not recover infinities
 * div    likewise, scaled so that intermediates do not overflow; dividing by 0 or infinity gives NaN, as in TensorFlow
 * expm1  uses exp(x) cos y - 1 = expm1(x) - 2 exp(x) sin(y/2)^2, which does not cancel near 0
 * log1p  uses |1 + z|^2 - 1 = x (2 + x) + y^2, which does not cancel either */
#define TN__COMPLEX_FUNCTIONS(T, f, C, CMPLX_)                                                     \
  static inline tn__##C tn__make_##C(T re, T im)                                                   \
  {                                                                                                \
    return CMPLX_(re, im);                                                                         \
  }                                                                                                \
  static inline tn__##C tn__mul_##C(tn__##C x, tn__##C y)                                          \
  {                                                                                                \
    T a = creal##f(x), b = cimag##f(x), c = creal##f(y), d = cimag##f(y);                          \
    return tn__make_##C(a * c - b * d, a * d + b * c);                                             \
  }                                                                                                \
  static inline tn__##C tn__div_##C(tn__##C x, tn__##C y)                                          \
  {                                                                                                \
    T a = creal##f(x), b = cimag##f(x), c = creal##f(y), d = cimag##f(y);                          \
    T scale = fabs##f(c) > fabs##f(d) ? fabs##f(c) : fabs##f(d);                                   \
    c /= scale;                                                                                    \
    d /= scale;                                                                                    \
    T square = c * c + d * d;                                                                      \
    return tn__make_##C((a * c + b * d) / square / scale, (b * c - a * d) / square / scale);       \
  }                                                                                                \
  static inline tn__##C tn__expm1_##C(tn__##C z)                                                   \
  {                                                                                                \
    T e = expm1##f(creal##f(z)), im = cimag##f(z), half = sin##f(im / 2);                          \
    return tn__make_##C(e - 2 * (e + 1) * half * half, (e + 1) * sin##f(im));                      \
  }                                                                                                \
  static inline tn__##C tn__log1p_##C(tn__##C z)                                                   \
  {                                                                                                \
    T re = creal##f(z), im = cimag##f(z);                                                          \
    if (!(fabs##f(re) < (T)0.5 && fabs##f(im) < (T)0.5)) return clog##f(tn__make_##C(1 + re, im)); \
    return tn__make_##C(log1p##f(re * (2 + re) + im * im) / 2, atan2##f(im, 1 + re));              \
  }
TN__COMPLEX_FUNCTIONS(float, f, c64, CMPLXF)
TN__COMPLEX_FUNCTIONS(double, , c128, CMPLX)

#endif
