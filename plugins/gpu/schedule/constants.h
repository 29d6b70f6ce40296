/* SPDX-License-Identifier: Apache-2.0 */
/* Constants in device memory, shared by all plans that use the tensor. */
#ifndef GPU_SCHEDULE_CONSTANTS_H
#define GPU_SCHEDULE_CONSTANTS_H

#include "device/memory.h"
#include "node/built.h"

/* A constant's elements, or a form of them, in device memory: shared by all plans that use the tensor. Counted. */
typedef struct gpu_constant gpu_constant;
struct gpu_constant {
  gpu_constant *next;
  const gpu_device *device;
  const tn_tensor *tensor; /* a reference */
  const void *form;        /* the function that made the form; NULL: the elements */
  uint64_t key;
  size_t bytes;
  size_t n_users;
  gpu_block block;
};
tn_status gpu_constant_get(gpu_budget *budget, gpu_device *device, cl_command_queue queue, const tn_tensor *tensor,
                           const gpu_pack *pack, gpu_constant **out, tn_error *err);
void gpu_constant_put(gpu_constant *constant); /* NULL allowed */

/* Creates the device data of a schedule that no step changes: constants, their forms, tables, known values. */
struct gpu_schedule;
tn_status gpu_statics(struct gpu_schedule *s, tn_error *err);

#endif
