/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that run by their kernels on the host, outside of any step. */
#ifndef TN_CORE_EXEC_EVALUATE_H
#define TN_CORE_EXEC_EVALUATE_H

#include <core/plan/plan.h>

/* Run a kernel, or an operation by its kernel. The caller owns the outputs; they are NULL on failure. Any thread. */
tn_status tn__call_kernel(const tn__plan_kernel *kernel, const void *shape_state, tn_view *const *inputs,
                          uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs, void *scratch, tn_error *err);
tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, tn__evaluate_limits *limits, tn_error *err);

#endif
