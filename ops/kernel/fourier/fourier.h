/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of complex lines of any length, in float or double, several lines at a time. The loops run
 * across the lines, so vectors are full whatever the length is. */
#ifndef TN_OPS_KERNEL_FOURIER_FOURIER_H
#define TN_OPS_KERNEL_FOURIER_FOURIER_H

#include <stdbool.h>
#include <stdint.h>
#include <tenon/types.h>

#define TN__FOURIER_LANES(wide) ((wide) ? 4 : 8) /* lines in a block */

typedef struct tn__fourier {
  int64_t n;        /* length of a line */
  int64_t m;        /* length of the passes: n, or a power of two if n has a large prime factor */
  int n_factors;    /* of m */
  int factors[64];
  bool wide;        /* double */
  void *roots;      /* exp(-2 pi i k / m), k < m, as pairs */
  void *chirp;      /* if m > n: exp(-pi i k^2 / n), k < n */
  void *filter;     /* if m > n: transform of the conjugate chirp, divided by m */
  size_t bytes;
} tn__fourier;

/* TN_INVALID_ARGUMENT if n is not positive. */
tn_status tn__fourier_create(tn__fourier *f, int64_t n, bool wide, tn_error *err);
void tn__fourier_destroy(tn__fourier *f); /* a zeroed one is allowed */

/* Bytes of one block; false if they overflow. A block has m complex numbers, each of 32 bytes with the real parts of
 * all lines, then 32 bytes with their imaginary parts. */
bool tn__fourier_block(const tn__fourier *f, size_t *bytes);
/* Transforms the lines of `block`, forward and not scaled. `other` is a second block. Returns the one with the result.
 * Both are aligned to 32 bytes. */
void *tn__fourier_run(const tn__fourier *f, void *block, void *other);

#endif
