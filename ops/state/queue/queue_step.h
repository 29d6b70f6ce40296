/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels do with attempts at queues: what nodes want, elements from inputs, outputs from elements, and waiting in between. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_STEP_H
#define TN_OPS_STATE_QUEUE_QUEUE_STEP_H

#include <ops/state/queue/queue.h>

/* ---- create ---- */

/* Of ops that have a time limit of their own: none is wanted. *state is NULL. TN_INVALID_ARGUMENT. */
tn_status tn__queue_check_timeout(const tn_operation *op, void **state, tn_error *err);

/* What a node that takes elements wants. */
typedef struct tn__queue_wanted {
  bool small; /* allow_small_batch: fewer will do once it is closed */
  uint32_t n;
  tn_dtype dtypes[];
} tn__queue_wanted;
tn_status tn__queue_take_create(const tn_operation *op, void **state, tn_error *err);
void tn__queue_take_destroy(void *state);

/* The state is not NULL where those that wait to put something in are cancelled. */
tn_status tn__queue_close_create(const tn_operation *op, void **state, tn_error *err);

/* ---- compute ---- */

/* The inputs from `first` on as one element; rows: as many as they have rows. They must be what the spec says.
 * TN_INVALID_ARGUMENT, TN_RESOURCE_EXHAUSTED: the list is as it was. */
tn_status tn__queue_read_inputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, bool rows,
                                tn__queue_list *list);

/* Has an attempt of the caller's stack served, and finishes it: TN_PENDING when it has to wait for that. */
tn_status tn__queue_submit(tn_kernel_ctx *ctx, tn__queue_attempt *attempt);
/* When compute is called again. */
tn_status tn__queue_resume(tn_kernel_ctx *ctx);

/* Outputs from elements: component i is output i, dynamic; many: elements are rows, also when there is none. */
tn_status tn__queue_write_outputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, const tn__queue_list *list, bool many);

/* Output dtypes of a node that takes elements: they are the components'. TN_INVALID_ARGUMENT. */
tn_status tn__queue_check_outputs(const tn_kernel_ctx *ctx, const tn__queue *queue, const tn__queue_wanted *wanted);

/* ---- rows ---- */

/* A part as a tensor: the whole, a small copy of a row, or a view of it. *out is the caller's. */
tn_status tn__queue_part_tensor(const tn__queue_part *part, tn_tensor **out, tn_error *err);

#endif
