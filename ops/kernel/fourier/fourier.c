/* SPDX-License-Identifier: Apache-2.0 */
#include <core/base/alloc.h>
#include <math.h>
#include <ops/kernel/elements/vectors.h>
#include <ops/kernel/fourier/fourier.h>
#include <string.h>

#define PI 3.14159265358979323846
#define TN__FOURIER_PRIME 31 /* largest factor of a pass */

#define REAL float
#define NAME(x) x##_f32
#define TARGET
#include <ops/kernel/fourier/fourier_passes.h>
#define REAL double
#define NAME(x) x##_f64
#define TARGET
#include <ops/kernel/fourier/fourier_passes.h>
#if TN__VECTORS > 1
#define REAL float
#define NAME(x) x##_f32_avx2
#define TARGET TN__FOR_AVX2
#include <ops/kernel/fourier/fourier_passes.h>
#define REAL double
#define NAME(x) x##_f64_avx2
#define TARGET TN__FOR_AVX2
#include <ops/kernel/fourier/fourier_passes.h>
#endif

void *tn__fourier_run(const tn__fourier *f, void *block, void *other)
{
  static void *(*const fns[2][TN__VECTORS])(const tn__fourier *, void *, void *) = { TN__AVX2_FNS(run_f32),
                                                                                     TN__AVX2_FNS(run_f64) };
  return fns[f->wide][tn__vectors()](f, block, other);
}

/* Sets the factors of m; false if a prime is too large for a pass. */
static bool factorise(tn__fourier *f, int64_t m)
{
  f->m = m;
  f->n_factors = 0;
  for (; m % 4 == 0; m /= 4) f->factors[f->n_factors++] = 4;
  for (int p = 2; p <= TN__FOURIER_PRIME; p++)
    for (; m % p == 0; m /= p) f->factors[f->n_factors++] = p;
  return m == 1;
}

static void set(void *to, bool wide, int64_t k, double re, double im)
{
  if (wide) {
    ((double *)to)[2 * k] = re;
    ((double *)to)[2 * k + 1] = im;
  } else {
    ((float *)to)[2 * k] = (float)re;
    ((float *)to)[2 * k + 1] = (float)im;
  }
}

/* Transforms the conjugate chirp by the passes: a plan without a chirp is a plain transform of length m. */
static tn_status set_filter(tn__fourier *f, tn_error *err)
{
  tn__fourier plain = *f;
  size_t bytes;
  char *blocks = NULL;
  plain.chirp = NULL;
  if (!tn__fourier_block(f, &bytes) || !tn__size_mul(bytes, 2, &bytes) ||
      (blocks = tn__alloc_aligned(bytes, 64)) == NULL)
    return tn__no_memory(err, "blocks of a Fourier transform", (size_t)f->m * 128);
  memset(blocks, 0, bytes);
  const int64_t lanes = TN__FOURIER_LANES(f->wide);
  const float *cf = f->chirp;
  const double *cd = f->chirp;
  for (int64_t k = 0; k < f->n; k++)
    for (int twice = 0; twice < 2; twice++) {
      int64_t at = (twice && k > 0 ? f->m - k : k) * 2 * lanes;
      if (f->wide) {
        ((double *)blocks)[at] = cd[2 * k];
        ((double *)blocks)[at + lanes] = -cd[2 * k + 1];
      } else {
        ((float *)blocks)[at] = cf[2 * k];
        ((float *)blocks)[at + lanes] = -cf[2 * k + 1];
      }
    }
  void *done = tn__fourier_run(&plain, blocks, blocks + bytes / 2);
  for (int64_t k = 0; k < f->m; k++) {
    double re = f->wide ? ((double *)done)[k * 8] : (double)((float *)done)[k * 16];
    double im = f->wide ? ((double *)done)[k * 8 + 4] : (double)((float *)done)[k * 16 + 8];
    set(f->filter, f->wide, k, re / (double)f->m, im / (double)f->m);
  }
  tn__free_aligned(blocks, bytes, 64);
  return TN_OK;
}

tn_status tn__fourier_create(tn__fourier *f, int64_t n, bool wide, tn_error *err)
{
  *f = (tn__fourier){ .n = n, .wide = wide };
  if (n < 1 || n > (int64_t)1 << 40)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "a Fourier transform of length %lld, wanted 1 to 2^40", (long long)n);
  bool plain = factorise(f, n);
  if (!plain) {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    factorise(f, m);
  }
  size_t pair = 2 * (wide ? sizeof(double) : sizeof(float));
  if (!tn__size_mul((size_t)f->m * (plain ? 1 : 2) + (plain ? 0 : (size_t)n), pair, &f->bytes) ||
      (f->roots = tn__alloc(f->bytes)) == NULL)
    return tn__no_memory(err, "tables of a Fourier transform", f->bytes);
  for (int64_t k = 0; k < f->m; k++) {
    double angle = 2 * PI * (double)k / (double)f->m;
    set(f->roots, wide, k, cos(angle), -sin(angle));
  }
  if (plain) return TN_OK;
  f->filter = (char *)f->roots + (size_t)f->m * pair;
  f->chirp = (char *)f->filter + (size_t)f->m * pair;
  for (int64_t k = 0, square = 0; k < n; k++) { /* square: k^2 modulo 2 n */
    double angle = PI * (double)square / (double)n;
    set(f->chirp, wide, k, cos(angle), -sin(angle));
    square = (square + 2 * k + 1) % (2 * n);
  }
  return set_filter(f, err);
}

void tn__fourier_destroy(tn__fourier *f)
{
  if (f->roots != NULL) tn__free(f->roots, f->bytes);
  *f = (tn__fourier){ 0 };
}

bool tn__fourier_block(const tn__fourier *f, size_t *bytes) { return tn__size_mul((size_t)f->m, 64, bytes); }
