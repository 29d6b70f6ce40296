/* SPDX-License-Identifier: Apache-2.0 */
/* Converts arrays from one dtype to another.
 *
 * Numbers convert as in C. Where C leaves the result undefined (a number that does not fit the integer type, NaN), the
 * result is that of x86's instructions: the lowest number for 32 and 64 bits, and its low bits for shorter integers. A
 * complex number loses its imaginary part. Conversion to bool tests for "not 0". */
#ifndef TN_OPS_KERNEL_ELEMENTS_CONVERT_H
#define TN_OPS_KERNEL_ELEMENTS_CONVERT_H

#include <stdbool.h>
#include <tenon/op.h>

typedef void (*tn__convert_fn)(const void *from, void *to, int64_t n);

/* The steps in order: load, cut, change, store. NULL steps are skipped. Intermediate blocks hold elements of at most 16
 * bytes. */
typedef struct tn__convert {
  tn__convert_fn load, change, store;
  tn__convert_fn cut;  /* after load, in place: clears mantissa bits that the target cannot hold */
  size_t from_size, mid_size, late_size, to_size;
  bool same;           /* the bytes are copied unchanged */
} tn__convert;

/* False if there is no conversion between the two dtypes. truncate: round towards zero instead of to nearest when the
 * target is a shorter float. */
bool tn__convert_find(tn_dtype from, tn_dtype to, bool truncate, tn__convert *out);
void tn__convert_run(const tn__convert *c, const void *from, void *to, int64_t n);

#endif
