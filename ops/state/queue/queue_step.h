/* SPDX-License-Identifier: Apache-2.0 */
/* Queue attempts made by kernels: properties wanted by nodes, elements from inputs, outputs from
 * elements, and waiting in between. */
#ifndef TN_OPS_STATE_QUEUE_QUEUE_STEP_H
#define TN_OPS_STATE_QUEUE_QUEUE_STEP_H

#include <ops/state/queue/queue.h>

/* ---- create ---- */

/* For ops with a timeout attribute: TN_INVALID_ARGUMENT if one is set. *state is NULL. */
tn_status tn__queue_check_timeout(const tn_operation *op, void **state, tn_error *err);

/* Requirements of a node that takes elements. */
typedef struct tn__queue_wanted {
  bool small; /* allow_small_batch: fewer elements suffice once the barrier is closed */
  uint32_t n;
  tn_dtype dtypes[];
} tn__queue_wanted;
tn_status tn__queue_take_create(const tn_operation *op, void **state, tn_error *err);
void tn__queue_take_destroy(void *state);

/* The state is not NULL if pending enqueues are to be cancelled. */
tn_status tn__queue_close_create(const tn_operation *op, void **state, tn_error *err);

/* ---- compute ---- */

/* Makes one element from the inputs from `first` on, or, with `rows`, one from each of their rows.
 * The inputs must match the spec. After TN_INVALID_ARGUMENT or TN_RESOURCE_EXHAUSTED the list is
 * unchanged. */
tn_status tn__queue_read_inputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, uint32_t first, bool rows,
                                tn__queue_list *list);

/* Submits an attempt on the caller's stack and finishes it. TN_PENDING if it has to wait. */
tn_status tn__queue_submit(tn_kernel_ctx *ctx, tn__queue_attempt *attempt);
/* Call it when compute is resumed. */
tn_status tn__queue_resume(tn_kernel_ctx *ctx);

/* Sets dynamic output i from component i of elements. `many`: elements become rows, also if there
 * are none. */
tn_status tn__queue_write_outputs(tn_kernel_ctx *ctx, const tn__queue_spec *spec, const tn__queue_list *list,
                                  bool many);

/* TN_INVALID_ARGUMENT unless the output dtypes of a node that takes elements are those of the
 * components. */
tn_status tn__queue_check_outputs(const tn_kernel_ctx *ctx, const tn__queue *queue, const tn__queue_wanted *wanted);

/* ---- rows ---- */

#endif
