/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of functions. */
#ifndef TN_OPS_CONTROL_FUNCTION_GRADIENT_H
#define TN_OPS_CONTROL_FUNCTION_GRADIENT_H

#include <core/graph/function_instance.h>

/* Makes a function's body that of its gradient: arguments, then the gradients of all outputs -> the gradients of all
 * arguments. TN_UNIMPLEMENTED: it has an op whose gradient is not known. For tn__function_differentiate. */
tn_status tn__function_gradient(tn__function_instance *f, tn_error *err);

#endif
