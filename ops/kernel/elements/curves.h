/* SPDX-License-Identifier: Apache-2.0 */
/* Activations with a parameter: LeakyRelu, and those that the pass "activation" makes of several steps
 * (ops/rewrite/fuse_activation.c).
 *
 *   LeakyRelu         x, below 0 alpha * x
 *   _TnSwish          x * sigmoid(alpha * x)
 *   _TnHardSigmoid    alpha * min(max(x + 3, 0), 6)
 *   _TnHardSwish      x times this
 *   _TnMish           x * tanh(log(1 + e^x)); alpha has no effect
 *   _TnGelu           x / 2 * (1 + erf(alpha * x))
 *   _TnGeluTanh       x / 2 * (1 + tanh(alpha * (x + 0.044715 * x^3))) */
#ifndef TN_OPS_KERNEL_ELEMENTS_CURVES_H
#define TN_OPS_KERNEL_ELEMENTS_CURVES_H

#include <ops/kernel/elements/leaky.h>
#include <stdbool.h>

/* The loop of an op, which ignores y unless it is LeakyReluGrad; NULL if the op is none of these, or dtype is not a
 * floating-point type. */
tn__leaky_fn tn__curve_find(const char *op, tn_dtype dtype, bool reproducible);
/* The cost of an element. */
double tn__curve_ns(const char *op);

/* The kernel of these ops, with input x, and of LeakyReluGrad, with x and y. */
tn_status tn__curve_create(const tn_operation *node, void **state, tn_error *err);
void tn__curve_destroy(void *state);
tn_status tn__curve_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__curve_compute(tn_kernel_ctx *ctx);

#endif
