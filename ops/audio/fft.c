/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/audio/fft.h>
#include <ops/kernel/elements/vectors.h>
#include <string.h>

#define PI 3.14159265358979323846

tn_status tn__fft_create(tn__fft *f, int64_t n, tn_error *err)
{
  size_t half = (size_t)n / 2, bytes;
  *f = (tn__fft){ .n = n, .half = n / 2 };
  if (!tn__size_mul(half, sizeof(int64_t) + 2 * sizeof(double), &bytes) || (f->places = tn__alloc(bytes)) == NULL)
    return tn__no_memory(err, "tables of a Fourier transform", half * 24);
  f->bytes = bytes;
  f->cosines = (double *)(f->places + half);
  f->sines = f->cosines + half;
  f->places[0] = 0;
  /* Bit reversal: the reversed bits of i follow from those of i / 2. */
  for (int64_t i = 1; i < f->half; i++) f->places[i] = f->places[i / 2] / 2 + (i % 2) * (f->half / 2);
  for (int64_t k = 0; k < f->half; k++) {
    f->cosines[k] = cos(2 * PI * (double)k / (double)n);
    f->sines[k] = sin(2 * PI * (double)k / (double)n);
  }
  return TN_OK;
}

void tn__fft_destroy(tn__fft *f)
{
  tn__free(f->places, f->bytes);
  *f = (tn__fft){ 0 };
}

/* ---- butterflies ---- */

typedef double lines __attribute__((vector_size(TN__FFT_LINES * sizeof(double)), may_alias));

typedef struct __attribute__((may_alias)) pair {
  lines re, im;
} pair;

/* Number k of a block. */
#define AT(k) ((pair *)block + (k))

/* a + b w and a - b w, w = cosine - i sine. */
#define BUTTERFLY(a, b, c, s)               \
  do {                                      \
    lines re = (b).re * (c) + (b).im * (s); \
    lines im = (b).im * (c) - (b).re * (s); \
    (b).re = (a).re - re;                   \
    (b).im = (a).im - im;                   \
    (a).re += re;                           \
    (a).im += im;                           \
  } while (0)

/* The same with w turned by a quarter: -i w. */
#define QUARTER(a, b, c, s)                    \
  do {                                         \
    lines re = (b).im * (c) - (b).re * (s);    \
    lines im = -((b).re * (c) + (b).im * (s)); \
    (b).re = (a).re - re;                      \
    (b).im = (a).im - im;                      \
    (a).re += re;                              \
    (a).im += im;                              \
  } while (0)

/* Two radix-2 steps at once: transforms of length h become transforms of length 4 h. If the number
 * of steps is odd, the first one is done alone. */
#define STEPS(end, TARGET)                                                                                           \
  TARGET static void first_step_##end(double *block, int64_t half)                                                   \
  {                                                                                                                  \
    for (int64_t k = 0; k < half; k += 2) {                                                                          \
      pair a = *AT(k), b = *AT(k + 1);                                                                               \
      *AT(k) = (pair){ a.re + b.re, a.im + b.im };                                                                   \
      *AT(k + 1) = (pair){ a.re - b.re, a.im - b.im };                                                               \
    }                                                                                                                \
  }                                                                                                                  \
  TARGET static void two_steps_##end(const tn__fft *f, double *block, int64_t h)                                     \
  {                                                                                                                  \
    const int64_t step = f->half / (2 * h); /* of the tables, for a quarter of a transform */                        \
    for (int64_t k = 0; k < f->half; k += 4 * h)                                                                     \
      for (int64_t j = 0; j < h; j++) {                                                                              \
        const double c1 = f->cosines[2 * j * step], s1 = f->sines[2 * j * step];                                     \
        const double c2 = f->cosines[j * step], s2 = f->sines[j * step];                                             \
        pair a = *AT(k + j), b = *AT(k + j + h), c = *AT(k + j + 2 * h), d = *AT(k + j + 3 * h);                     \
        BUTTERFLY(a, b, c1, s1);                                                                                     \
        BUTTERFLY(c, d, c1, s1);                                                                                     \
        BUTTERFLY(a, c, c2, s2);                                                                                     \
        QUARTER(b, d, c2, s2);                                                                                       \
        *AT(k + j) = a;                                                                                              \
        *AT(k + j + h) = b;                                                                                          \
        *AT(k + j + 2 * h) = c;                                                                                      \
        *AT(k + j + 3 * h) = d;                                                                                      \
      }                                                                                                              \
  }                                                                                                                  \
  TARGET static void powers_##end(const tn__fft *f, const double *block, double *to)                                 \
  {                                                                                                                  \
    lines *powers = (lines *)to;                                                                                     \
    const pair z = *AT(0);                                                                                           \
    powers[0] = (z.re + z.im) * (z.re + z.im);                                                                       \
    powers[f->half] = (z.re - z.im) * (z.re - z.im);                                                                 \
    for (int64_t k = 1; k < f->half; k++) {                                                                          \
      const pair a = *AT(k), b = *AT(f->half - k);                                                                   \
      /* Half of the sum with the other's conjugate belongs to the even elements, of the difference to the odd ones. \
       */                                                                                                            \
      const lines er = (a.re + b.re) * 0.5, ei = (a.im - b.im) * 0.5;                                                \
      const lines dr = (a.im + b.im) * 0.5, di = (b.re - a.re) * 0.5;                                                \
      const double c = f->cosines[k], s = f->sines[k];                                                               \
      const lines re = er + dr * c + di * s, im = ei + di * c - dr * s;                                              \
      powers[k] = re * re + im * im;                                                                                 \
    }                                                                                                                \
  }

STEPS(base, )
#if TN__VECTORS > 1
STEPS(avx2, TN__FOR_AVX2)
#define PICK(f)                  \
  {                              \
    f##_base, f##_avx2, f##_avx2 \
  }
#else
#define PICK(f) \
  {             \
    f##_base    \
  }
#endif

void tn__fft_run(const tn__fft *f, double *block)
{
  static void (*const first[])(double *, int64_t) = PICK(first_step);
  static void (*const two[])(const tn__fft *, double *, int64_t) = PICK(two_steps);
  int kind = tn__vectors();
  int64_t h = 1;
  if (__builtin_ctzll((unsigned long long)f->half) % 2 != 0) {
    first[kind](block, f->half);
    h = 2;
  }
  for (; h < f->half; h *= 4) two[kind](f, block, h);
}

void tn__fft_powers(const tn__fft *f, const double *block, double *powers)
{
  static void (*const fns[])(const tn__fft *, const double *, double *) = PICK(powers);
  fns[tn__vectors()](f, block, powers);
}
