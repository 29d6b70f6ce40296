/* SPDX-License-Identifier: Apache-2.0 */
/* LeakyRelu and its gradient, which are one function: x where y is above 0, else alpha x. For LeakyRelu y is x. */
#ifndef TN_OPS_KERNEL_ELEMENTS_LEAKY_H
#define TN_OPS_KERNEL_ELEMENTS_LEAKY_H

#include <tenon/op.h>

#define TN__LEAKY_NS 0.4 /* of an element */

/* alpha is rounded to the type of the elements. out may have the address of x or y. */
typedef void (*tn__leaky_fn)(const void *x, const void *y, void *out, int64_t n, float alpha);
/* For the machine's vectors; NULL for what is no dtype of floats. */
tn__leaky_fn tn__leaky_find(tn_dtype dtype);

/* The kernel: of the inputs x, or x and y. */
tn_status tn__leaky_create(const tn_operation *node, void **state, tn_error *err);
void tn__leaky_destroy(void *state);
tn_status tn__leaky_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__leaky_compute(tn_kernel_ctx *ctx);

#endif
