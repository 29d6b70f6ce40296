/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in device memory. */
#ifndef GPU_DEVICE_TENSOR_H
#define GPU_DEVICE_TENSOR_H

#include "device/memory.h"

/* Makes a tensor in device memory, which takes ownership of the block unless it fails: TN_MEMORY_DEVICE, or
 * TN_MEMORY_SHARED with an address. `ready` is an event (a reference is taken) after which the content is complete, or
 * NULL; for a tensor with an address this function waits for it. The device stays in use as long as the tensor exists.
 * map waits and reads, unmap releases the result. */
tn_status gpu_tensor(gpu_block *block, cl_event ready, tn_dtype dtype, const int64_t *dims, int32_t rank,
                     tn_tensor **out, tn_error *err);
/* A copy on the budget's device of a tensor in host memory that has bytes. Waits until it is written. */
tn_status gpu_tensor_send(gpu_budget *budget, const tn_tensor *tensor, tn_tensor **out, tn_error *err);
/* The memory of a tensor that this runtime made on this device: *offset bytes into *mem, after *ready (may be NULL).
 * False for any other tensor. */
bool gpu_tensor_memory(const tn_tensor *tensor, const gpu_device *device, cl_mem *mem, size_t *offset, cl_event *ready);

#endif
