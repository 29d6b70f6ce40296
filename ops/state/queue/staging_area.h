/* SPDX-License-Identifier: Apache-2.0 */
/* What the ops on staging areas share: attributes, tuples, and how much memory they take. */
#ifndef TN_OPS_STATE_QUEUE_STAGING_AREA_H
#define TN_OPS_STATE_QUEUE_STAGING_AREA_H

#include <ops/state/queue/queue_store.h>
#include <ops/state/queue/waiting.h>

/* The attributes of a node: state of its kernel. Of the nodes that share an area the one that makes it says how large it may
 * get. */
typedef struct tn__staging_state {
  tn__resource_place place;
  int64_t capacity, memory_limit; /* 0: no limit */
  uint32_t n; /* dtypes */
  tn_dtype dtypes[];
} tn__staging_state;

tn_status tn__staging_create(const tn_operation *op, void **state, tn_error *err);
void tn__staging_destroy(void *state);

/* Bytes of a tensor, those of its strings included. */
int64_t tn__staging_bytes(const tn_tensor *tensor);

/* The inputs from `first` on, n of them, as a tuple of whole tensors, and the bytes of it. */
tn_status tn__staging_keep(tn_kernel_ctx *ctx, uint32_t first, uint32_t n, tn__queue_element **out, int64_t *bytes);
/* TN_RESOURCE_EXHAUSTED: more than a whole area may have. */
tn_status tn__staging_check_bytes(tn_kernel_ctx *ctx, const char *name, int64_t bytes, int64_t limit);

/* Outputs from `first` on are the parts of a tuple. */
tn_status tn__staging_give(tn_kernel_ctx *ctx, uint32_t first, const tn__queue_element *tuple);

#endif
