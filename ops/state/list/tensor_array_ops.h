/* SPDX-License-Identifier: Apache-2.0 */
/* What ops on tensor arrays share: the array behind input 0, handles given, the flow. */
#ifndef TN_OPS_STATE_LIST_TENSOR_ARRAY_OPS_H
#define TN_OPS_STATE_LIST_TENSOR_ARRAY_OPS_H

#include <ops/kernel/resources.h>
#include <ops/state/list/tensor_array_store.h>

typedef struct tn__array_ref {
  tn__array *array;
  const char *name;
  tn_resource *held; /* found by name */
} tn__array_ref;

/* The array behind input 0. tn__array_input_end in any case. TN_INVALID_ARGUMENT: it is something else; TN_NOT_FOUND: the
 * step has no such array. */
tn_status tn__array_input(tn_kernel_ctx *ctx, tn__array_ref *out);
void tn__array_input_end(tn__array_ref *ref);

/* A resource of the array, which it takes over, also on failure: in no container, or in the step's where handles are
 * strings. */
tn_status tn__array_register(tn_kernel_ctx *ctx, tn__array *array, const char *name, bool in_step, tn_resource **out);

/* Prepare: output i is a handle, of dtype resource or string. Compute: gives it; takes the reference over. */
tn_status tn__array_prepare_handle(tn_prepare_ctx *ctx, uint32_t i, tn_error *err);
tn_status tn__array_give(tn_kernel_ctx *ctx, uint32_t i, tn_resource *resource);

/* Output 0 is the flow, the last input. */
tn_status tn__array_prepare_flow(tn_prepare_ctx *ctx, tn_error *err);

#endif
