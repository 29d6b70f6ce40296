/* SPDX-License-Identifier: Apache-2.0 */
/* What ops that call functions share. */
#ifndef TN_OPS_CONTROL_FUNCTION_CALLS_H
#define TN_OPS_CONTROL_FUNCTION_CALLS_H

#include <stdbool.h>
#include <tenon/op.h>

/* Function k with the inputs from `first` on gives all outputs. The whole of a compute: it may be resumed. */
tn_status tn__call_function(tn_kernel_ctx *ctx, uint32_t k, uint32_t first);
/* Gives output i the tensor, and the reference away. TN_INVALID_ARGUMENT: it has another type. */
tn_status tn__give_result(tn_kernel_ctx *ctx, uint32_t i, tn_tensor *tensor);
/* A prepare: all outputs come from functions. */
tn_status tn__prepare_results(tn_prepare_ctx *ctx, tn_error *err);

/* A condition: a scalar that is not zero, or a text that is not empty; any other tensor that has elements. */
tn_status tn__is_true(const tn_view *v, bool *out, tn_error *err);

#define TN__FUNCTION_OP(op, in, out, attributes, more, shapes, text)                              \
  { .struct_size = TN_OP_DEF_SIZE, .name = op, .inputs = in, .outputs = out, .attrs = attributes, \
    .traits = TN_TRAIT_FUNCTION_CALL | TN_TRAIT_DYNAMIC | (more), .infer = shapes, .summary = text }
#define TN__FUNCTION_KERNEL(name_, create_, compute_)                                                         \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = name_, .device = "CPU", .name = name_ "_cpu", .rank = TN_RANK_C, \
    .create = create_, .prepare = tn__prepare_results, .compute = compute_ }

#endif
