/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of real lines whose length is a power of two, in doubles, four lines at a
 * time. The loops run across the lines, so vectors are full whatever the length is. */
#ifndef TN_OPS_AUDIO_FFT_H
#define TN_OPS_AUDIO_FFT_H

#include <stdint.h>
#include <tenon/types.h>

#define TN__FFT_LINES 4

typedef struct tn__fft {
  int64_t n;               /* numbers in a line, 2 or more */
  int64_t half;            /* complex numbers that represent a line: n / 2 */
  int64_t *places;         /* input permutation: where complex number i is stored before the transform */
  double *cosines, *sines; /* of 2 pi k / n, k < half */
  size_t bytes;
} tn__fft;

tn_status tn__fft_create(tn__fft *f, int64_t n, tn_error *err);
void tn__fft_destroy(tn__fft *f); /* a zeroed one is allowed */

/* The lines are interleaved in one block, aligned to 32 bytes: for each complex number the real
 * parts of all lines, then their imaginary parts. This is the size of the block in bytes. */
#define TN__FFT_BYTES(half) ((size_t)(half)*2 * TN__FFT_LINES * sizeof(double))

/* Transforms in place. Input: number places[i] has elements 2 i and 2 i + 1 of the line as its real
 * and imaginary part. Output: the transform of these complex numbers, from which tn__fft_powers
 * computes that of the line. */
void tn__fft_run(const tn__fft *f, double *block);
/* powers[k][l]: squared magnitude of coefficient k of line l, k <= half. */
void tn__fft_powers(const tn__fft *f, const double *block, double *powers);

#endif
