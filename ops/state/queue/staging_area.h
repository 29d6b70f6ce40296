/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ops on staging areas: attributes, tuples and their memory size. */
#ifndef TN_OPS_STATE_QUEUE_STAGING_AREA_H
#define TN_OPS_STATE_QUEUE_STAGING_AREA_H

#include <ops/state/queue/queue_store.h>
#include <ops/state/queue/waiting.h>

/* The attributes of a node, the state of its kernel. The limits of an area are those of the node
 * that creates it. */
typedef struct tn__staging_state {
  tn__resource_place place;
  int64_t capacity, memory_limit; /* 0: no limit */
  uint32_t n; /* dtypes */
  tn_dtype dtypes[];
} tn__staging_state;

tn_status tn__staging_create(const tn_operation *op, void **state, tn_error *err);
void tn__staging_destroy(void *state);

/* Bytes of a tensor, including those of its strings. */
int64_t tn__staging_bytes(const tn_tensor *tensor);

/* Makes a tuple of whole tensors from n inputs from `first` on, and computes its size in bytes. */
tn_status tn__staging_keep(tn_kernel_ctx *ctx, uint32_t first, uint32_t n, tn__queue_element **out, int64_t *bytes);
/* TN_RESOURCE_EXHAUSTED if the bytes exceed the limit of a whole area. */
tn_status tn__staging_check_bytes(tn_kernel_ctx *ctx, const char *name, int64_t bytes, int64_t limit);

/* Sets the outputs from `first` on to the parts of a tuple. */
tn_status tn__staging_give(tn_kernel_ctx *ctx, uint32_t first, const tn__queue_element *tuple);

#endif
