/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of one dtype as arrays of another.
 *
 * Numbers convert as in C; where C leaves the result open (a number that does not fit an integer, NaN) it is what x86's
 * instructions give: the lowest number for 32 and 64 bits, and for shorter integers the low bits of that. A complex
 * number loses its imaginary part; bool is "not 0". */
#ifndef TN_OPS_KERNEL_ELEMENTS_CONVERT_H
#define TN_OPS_KERNEL_ELEMENTS_CONVERT_H

#include <stdbool.h>
#include <tenon/op.h>

typedef void (*tn__convert_fn)(const void *from, void *to, int64_t n);

/* Up to three steps; NULL ones are left out. Between them stand blocks of elements of at most 16 bytes. */
typedef struct tn__convert {
  tn__convert_fn load, change, store;
  tn__convert_fn cut;  /* in place, after load: drops the bits that the target has no place for */
  size_t from_size, mid_size, late_size, to_size;
  bool same;           /* the bytes stay as they are */
} tn__convert;

/* False when there is no way between the two. truncate: towards zero instead of to the nearest, for a shorter float. */
bool tn__convert_find(tn_dtype from, tn_dtype to, bool truncate, tn__convert *out);
void tn__convert_run(const tn__convert *c, const void *from, void *to, int64_t n);

#endif
