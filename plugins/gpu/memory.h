/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: a pool for each device that keeps what was freed for the next who asks, and a limit for each session. */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include "device.h"

/* Memory of a device. On a device that shares memory with the host `host` is its address, there for both. */
typedef struct gpu_block {
  cl_mem mem;
  void *host;   /* page-aligned; NULL when only the device sees it */
  size_t bytes; /* at least what was asked for */
  gpu_device *device;
  struct gpu_budget *budget;
} gpu_block;

/* What one session may have of a device; counted, since tensors outlive sessions. */
typedef struct gpu_budget gpu_budget;
tn_status gpu_budget_create(gpu_device *device, int64_t limit_bytes, gpu_budget **out, tn_error *err);
gpu_budget *gpu_budget_ref(gpu_budget *budget);
void gpu_budget_unref(gpu_budget *budget); /* NULL allowed */
int64_t gpu_budget_used(const gpu_budget *budget);

tn_status gpu_pool_create(gpu_device *device, gpu_pool **out, tn_error *err);
void gpu_pool_destroy(gpu_pool *pool); /* gives everything back to the driver; NULL allowed */
void gpu_pool_trim(gpu_pool *pool);    /* what is free goes back to the driver */
cl_command_queue gpu_pool_queue(const gpu_pool *pool); /* in order; of the pool, for transfers outside of steps */
typedef struct gpu_pool_stats {
  size_t used_bytes, free_bytes;
  size_t most_bytes; /* that were in use at once */
  size_t n_created;  /* blocks that the driver was asked for, ever */
} gpu_pool_stats;
void gpu_pool_stats_get(gpu_pool *pool, gpu_pool_stats *out);

/* TN_RESOURCE_EXHAUSTED: above the limit, naming limit, used and asked; or the driver has none, also after what is free was given back
 * to it. bytes 0 is allowed. Any thread. */
tn_status gpu_alloc(gpu_budget *budget, size_t bytes, gpu_block *out, tn_error *err);
void gpu_free(gpu_block *block); /* to the pool; block->mem NULL allowed; clears it */

/* Host memory that the device reads and writes without a copy in between: block->host is what the host sees, and what transfers to and
 * from other blocks are given as the host's side. Not counted in a budget. For a user of the device, and kept as device memory is. */
tn_status gpu_pinned_alloc(gpu_device *device, size_t bytes, gpu_block *out, tn_error *err);
void gpu_pinned_free(gpu_block *block); /* block->mem NULL allowed; clears it */

/* A tensor in device memory, which takes the block over unless it fails: TN_MEMORY_DEVICE, or TN_MEMORY_SHARED with an address.
 * `ready` is an event (a reference is taken) after which the content is there, or NULL; a tensor with an address waits for it here.
 * The device stays in use as long as the tensor lives. map waits and reads, unmap lets go. */
tn_status gpu_tensor(gpu_block *block, cl_event ready, tn_dtype dtype, const int64_t *dims, int32_t rank, tn_tensor **out,
                     tn_error *err);
/* A copy on the budget's device of a tensor in host memory that has bytes. Waits until it is written. */
tn_status gpu_tensor_send(gpu_budget *budget, const tn_tensor *tensor, tn_tensor **out, tn_error *err);
/* The memory of a tensor that this runtime made on this device: *offset bytes into *mem, after *ready (may be NULL). False for
 * any other tensor. */
bool gpu_tensor_memory(const tn_tensor *tensor, const gpu_device *device, cl_mem *mem, size_t *offset, cl_event *ready);

#endif
