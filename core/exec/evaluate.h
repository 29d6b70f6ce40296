/* SPDX-License-Identifier: Apache-2.0 */
/* Running single operations and kernels on the host, outside of any step. */
#ifndef TN_CORE_EXEC_EVALUATE_H
#define TN_CORE_EXEC_EVALUATE_H

#include <core/plan/plan.h>

/* Runs a kernel of a plan with these views. Work ends early when this thread's preparation is
 * stopped (tn__stop_now). Any thread. */
tn_status tn__call_kernel(const tn_plan *plan, const tn__plan_kernel *kernel, const void *shape_state,
                          tn_view *const *inputs, uint32_t n_inputs, tn_view *const *outputs, uint32_t n_outputs,
                          void *scratch, tn_error *err);
/* Runs an operation by its kernel. The caller owns the outputs; they are NULL on failure. If there
 * is one output, its tensor may be given in outputs[0]. limits: NULL = none; the estimated time is
 * subtracted from limits->ns. Any thread. */
tn_status tn__evaluate(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs, tn_tensor **outputs,
                       size_t n_outputs, tn__evaluate_limits *limits, tn_error *err);
/* The same for sessions with the option reproducible. */
tn_status tn__evaluate_reproducible(const tn_operation *op, tn_tensor *const *inputs, size_t n_inputs,
                                    tn_tensor **outputs, size_t n_outputs, tn__evaluate_limits *limits,
                                    tn_error *err);

#endif
