/* SPDX-License-Identifier: Apache-2.0 */
/* LeakyRelu and its gradient are the same function: x where y > 0, else alpha * x. For LeakyRelu, y is x. curves.h
 * has the kernel. */
#ifndef TN_OPS_KERNEL_ELEMENTS_LEAKY_H
#define TN_OPS_KERNEL_ELEMENTS_LEAKY_H

#include <tenon/op.h>

#define TN__LEAKY_NS 0.4 /* per element */

/* alpha is rounded to the type of the elements. out may have the address of x or y. */
typedef void (*tn__leaky_fn)(const void *x, const void *y, void *out, int64_t n, float alpha);
/* The loop for this machine's vectors; NULL if dtype is not a floating-point type. */
tn__leaky_fn tn__leaky_find(tn_dtype dtype);

#endif
