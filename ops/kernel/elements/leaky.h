/* SPDX-License-Identifier: Apache-2.0 */
/* LeakyRelu and its gradient are the same function: x where y > 0, else alpha * x. For LeakyRelu, y is x. The kernel
 * also computes the other activations with a parameter (curves.h). */
#ifndef TN_OPS_KERNEL_ELEMENTS_LEAKY_H
#define TN_OPS_KERNEL_ELEMENTS_LEAKY_H

#include <tenon/op.h>

#define TN__LEAKY_NS 0.4 /* per element */

/* alpha is rounded to the type of the elements. out may have the address of x or y. */
typedef void (*tn__leaky_fn)(const void *x, const void *y, void *out, int64_t n, float alpha);
/* The loop for this machine's vectors; NULL if dtype is not a floating-point type. */
tn__leaky_fn tn__leaky_find(tn_dtype dtype);

/* The kernel, with input x or inputs x and y. */
tn_status tn__leaky_create(const tn_operation *node, void **state, tn_error *err);
void tn__leaky_destroy(void *state);
tn_status tn__leaky_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__leaky_compute(tn_kernel_ctx *ctx);

#endif
