/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: a pool for each device that keeps freed blocks for reuse, and a limit for each session. */
#ifndef GPU_DEVICE_MEMORY_H
#define GPU_DEVICE_MEMORY_H

#include "device/device.h"

/* Memory of a device. On a device that shares memory with the host, `host` is its address for both. */
typedef struct gpu_block {
  cl_mem mem;
  void *host;   /* page-aligned; NULL: only the device can access it */
  size_t bytes; /* at least the number requested */
  gpu_device *device;
  struct gpu_budget *budget;
} gpu_block;

/* A session's limit of a device's memory; reference-counted, since tensors outlive sessions. */
typedef struct gpu_budget gpu_budget;
tn_status gpu_budget_create(gpu_device *device, int64_t limit_bytes, gpu_budget **out, tn_error *err);
void gpu_budget_unref(gpu_budget *budget); /* NULL allowed */
int64_t gpu_budget_used(const gpu_budget *budget);

tn_status gpu_pool_create(gpu_device *device, gpu_pool **out, tn_error *err);
void gpu_pool_destroy(gpu_pool *pool); /* returns all memory to the driver; NULL allowed */
void gpu_pool_trim(gpu_pool *pool);    /* returns free blocks to the driver */
cl_command_queue gpu_pool_queue(const gpu_pool *pool); /* in order; owned by the pool; for transfers outside of steps */
typedef struct gpu_pool_stats {
  size_t used_bytes, free_bytes;
  size_t most_bytes; /* peak of used_bytes */
  size_t n_created;  /* blocks requested from the driver so far */
} gpu_pool_stats;
void gpu_pool_stats_get(gpu_pool *pool, gpu_pool_stats *out);

/* TN_RESOURCE_EXHAUSTED: above the limit, with limit, used and requested bytes; or the driver has no memory, even after
 * free blocks were returned to it. bytes 0 is allowed. Any thread. */
tn_status gpu_alloc(gpu_budget *budget, size_t bytes, gpu_block *out, tn_error *err);
void gpu_free(gpu_block *block); /* to the pool; block->mem NULL allowed; clears it */

/* Host memory that the device reads and writes without an intermediate copy. block->host is the host's address, also
 * for transfers to and from other blocks. Not counted in a budget. The caller must be a user of the device. Freed
 * blocks are kept in the pool like device memory. */
tn_status gpu_pinned_alloc(gpu_device *device, size_t bytes, gpu_block *out, tn_error *err);
void gpu_pinned_free(gpu_block *block); /* block->mem NULL allowed; clears it */

#endif
