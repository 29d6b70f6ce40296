/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's OpenCL devices. */
#ifndef GPU_DEVICE_DEVICE_H
#define GPU_DEVICE_DEVICE_H

#include "device/cl.h"
#include <pthread.h>

typedef struct gpu_pool gpu_pool;         /* memory.h */
typedef struct gpu_programs gpu_programs; /* program.h */
struct gpu_clblast;                       /* clblast.h */

/* Memory of the device: an offset in bytes into a buffer. */
typedef struct gpu_memory {
  cl_mem mem;
  size_t at;
} gpu_memory;

/* A device of the machine. Devices are found once in a process; the context exists while a session uses the
 * device. Fields before `mu` never change. */
typedef struct gpu_device {
  cl_platform_id platform;
  cl_device_id id;
  cl_device_type type;
  char *name, *vendor, *driver, *platform_name;
  cl_ulong memory_bytes, max_alloc_bytes, local_bytes;
  size_t max_group;
  cl_uint compute_units, align_bytes; /* align_bytes: required alignment of a sub-buffer's offset */
  bool host_visible; /* device and host share the memory: page-aligned data need not be copied */
  bool has_half, has_double, has_compiler;

  pthread_mutex_t mu;
  size_t n_users;        /* sessions; guarded by mu */
  cl_context context;    /* NULL without users; guarded by mu, constant while the caller is a user */
  gpu_pool *pool;        /* the device's free memory, with the context */
  gpu_programs *programs; /* compiled, with the context */
  struct gpu_clblast *clblast; /* with the context */
  _Atomic bool lost; /* a call failed and the context is unusable: sessions fail with UNAVAILABLE, and new sessions use
                      * another gpu_device of the same hardware */
  struct gpu_device *next; /* device.c: that other one */
} gpu_device;

/* Looks for devices; once, in init. TN_UNAVAILABLE with the reason if there is none. */
tn_status gpu_devices_find(tn_error *err);
size_t gpu_devices_count(void);
gpu_device *gpu_devices_at(size_t i); /* one that is not lost, unless memory for that is missing */
tn_status gpu_devices_forget(tn_error *err); /* for shutdown: TN_FAILED_PRECONDITION as long as one has users */
const char *gpu_device_kind(const gpu_device *device); /* "gpu", "cpu", "accelerator" */
/* Writes the list of devices: "0 = 'NAME' (gpu, PLATFORM), 1 = ...". */
void gpu_devices_text(char *text, size_t size);
tn_status gpu_devices_forked(tn_error *err); /* TN_FAILED_PRECONDITION in a child of the process that looked for them */

/* Adds or removes a user. The first one creates the context, its pool and its programs; the last one frees
 * them. TN_UNAVAILABLE for a lost device, TN_RESOURCE_EXHAUSTED, TN_FAILED_PRECONDITION after a fork. */
tn_status gpu_device_use(gpu_device *device, tn_error *err);
void gpu_device_leave(gpu_device *device);
void gpu_device_lost(gpu_device *device); /* any thread */

#endif
