/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops that call functions. */
#ifndef TN_OPS_CONTROL_FUNCTION_CALLS_H
#define TN_OPS_CONTROL_FUNCTION_CALLS_H

#include <stdbool.h>
#include <tenon/op.h>

/* Calls function k with the inputs from `first` on; its results are the outputs. The whole compute
 * of an op: it may return TN_PENDING and be resumed. */
tn_status tn__call_function(tn_kernel_ctx *ctx, uint32_t k, uint32_t first);
/* Sets output i to the tensor and takes over the caller's reference. TN_INVALID_ARGUMENT if its
 * type is wrong. */
tn_status tn__give_result(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor);
/* For prepare: all outputs come from functions. */
tn_status tn__prepare_results(tn_prepare_ctx *ctx, tn_error *err);

/* Evaluates a condition. A numeric scalar is true if not zero, a string scalar if not empty, any
 * other tensor if it has elements. */
tn_status tn__is_true(const tn_view *v, bool *out, tn_error *err);

#define TN__FUNCTION_OP(op, in, out, attributes, more, shapes, text)                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_FUNCTION_CALL | TN_TRAIT_DYNAMIC | (more), .infer = shapes, .summary = text }
#define TN__FUNCTION_KERNEL(name_, create_, compute_)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = name_, .device = "CPU", .name = name_ "_cpu", .rank = TN_RANK_C, \
    .create = create_, .prepare = tn__prepare_results, .compute = compute_ }

#endif
