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

/* The loop of an op, which ignores y; NULL if the op is none of these, or dtype is not a floating-point type. */
tn__leaky_fn tn__curve_find(const char *op, tn_dtype dtype, bool reproducible);
/* The cost of an element. */
double tn__curve_ns(const char *op);

#endif
