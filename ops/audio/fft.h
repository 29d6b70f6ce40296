/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of real lines whose length is a power of two, in doubles, four lines at a time: the loops run over
 * lines, which fill vectors whatever the length is. */
#ifndef TN_OPS_AUDIO_FFT_H
#define TN_OPS_AUDIO_FFT_H

#include <stdint.h>
#include <tenon/types.h>

#define TN__FFT_LINES 4

typedef struct tn__fft {
  int64_t n;               /* of a line, 2 or more */
  int64_t half;            /* a line is that many complex numbers */
  int64_t *places;         /* where number i of them goes before the transform */
  double *cosines, *sines; /* of 2 pi k / n, k < half */
  size_t bytes;
} tn__fft;

tn_status tn__fft_create(tn__fft *f, int64_t n, tn_error *err);
void tn__fft_destroy(tn__fft *f); /* also of one that is all zero */

/* Numbers of the lines lie in one block, aligned to 32: for each complex number the real parts of the lines, then their
 * imaginary parts. It has this many bytes. */
#define TN__FFT_BYTES(half) ((size_t)(half)*2 * TN__FFT_LINES * sizeof(double))

/* In place. Before: number places[i] is elements 2 i and 2 i + 1 of the line as real and imaginary part. After: the
 * transform of these, from which tn__fft_powers makes that of the line. */
void tn__fft_run(const tn__fft *f, double *block);
/* powers[k][l]: the square of the absolute value of coefficient k, k <= half. */
void tn__fft_powers(const tn__fft *f, const double *block, double *powers);

#endif
