/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: a pool for each device that keeps freed blocks for reuse, and a limit for each session. */
#ifndef GPU_DEVICE_MEMORY_H
#define GPU_DEVICE_MEMORY_H

#include "device/device.h"

/* Memory of a device. On a device that shares memory with the host, `host` is its address for both. */
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
void gpu_budget_unref(gpu_budget *budget); /* NULL allowed */
int64_t gpu_budget_used(const gpu_budget *budget);

tn_status gpu_pool_create(gpu_device *device, gpu_pool **out, tn_error *err);
void gpu_pool_destroy(gpu_pool *pool); /* gives everything back to the driver; NULL allowed */
void gpu_pool_trim(gpu_pool *pool);    /* returns free blocks to the driver */
cl_command_queue gpu_pool_queue(const gpu_pool *pool); /* in order; of the pool, for transfers outside of steps */
typedef struct gpu_pool_stats {
  size_t used_bytes, free_bytes;
  size_t most_bytes; /* that were in use at once */
  size_t n_created;  /* blocks that the driver was asked for, ever */
} gpu_pool_stats;
void gpu_pool_stats_get(gpu_pool *pool, gpu_pool_stats *out);

/* TN_RESOURCE_EXHAUSTED: above the limit, naming limit, used and asked; or the driver has none, also after
 * what is free was given back to it. bytes 0 is allowed. Any thread. */
tn_status gpu_alloc(gpu_budget *budget, size_t bytes, gpu_block *out, tn_error *err);
void gpu_free(gpu_block *block); /* to the pool; block->mem NULL allowed; clears it */

/* Host memory that the device reads and writes without a copy in between: block->host is what the host sees,
 * and what transfers to and from other blocks are given as the host's side. Not counted in a budget. For a
 * user of the device, and kept as device memory is. */
tn_status gpu_pinned_alloc(gpu_device *device, size_t bytes, gpu_block *out, tn_error *err);
void gpu_pinned_free(gpu_block *block); /* block->mem NULL allowed; clears it */

#endif
