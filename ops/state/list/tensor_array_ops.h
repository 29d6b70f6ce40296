/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on tensor arrays: the array of input 0, handle outputs, the flow. */
#ifndef TN_OPS_STATE_LIST_TENSOR_ARRAY_OPS_H
#define TN_OPS_STATE_LIST_TENSOR_ARRAY_OPS_H

#include <ops/kernel/resources.h>
#include <ops/state/list/tensor_array_store.h>

typedef struct tn__array_ref {
  tn__array *array;
  const char *name;
  tn_resource *held; /* if it was found by name */
} tn__array_ref;

/* Gets the array of input 0. Call tn__array_input_end in any case. TN_INVALID_ARGUMENT: the input
 * is something else; TN_NOT_FOUND: the step has no such array. */
tn_status tn__array_input(tn_kernel_ctx *ctx, tn__array_ref *out);
void tn__array_input_end(tn__array_ref *ref);

/* Creates a resource for the array and takes over the array, also on failure. The resource is in no
 * container, or in the step's if handles are strings. */
tn_status tn__array_register(tn_kernel_ctx *ctx, tn__array *array, const char *name, bool in_step, tn_resource **out);

/* For prepare: output i is a handle, of dtype resource or string. For compute: sets it; takes over
 * the reference. */
tn_status tn__array_prepare_handle(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__array_give(tn_kernel_ctx *ctx, uint32_t i, tn_resource *resource);

/* Output 0 is the flow, the last input. */
tn_status tn__array_prepare_flow(tn_prepare_ctx *ctx, tn_error *err);

#endif
