/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of functions. */
#ifndef TN_OPS_CONTROL_FUNCTION_GRADIENT_H
#define TN_OPS_CONTROL_FUNCTION_GRADIENT_H

#include <core/graph/function_instance.h>

/* Replaces a function's body by that of its gradient: (arguments, gradients of all outputs) ->
 * gradients of all arguments. TN_UNIMPLEMENTED if the gradient of an op is unknown. Used as
 * tn__function_differentiate. */
tn_status tn__function_gradient(tn__function_instance *f, tn_error *err);

#endif
