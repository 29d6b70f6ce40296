/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a session's target, "gpu:device=1,placement=device". */
#ifndef GPU_SESSION_SETTINGS_H
#define GPU_SESSION_SETTINGS_H

#include "device/clblast.h"
#include "device/device.h"

enum { GPU_PLACE_COST = 0, GPU_PLACE_DEVICE = 1, GPU_PLACE_HOST = 2 };
typedef struct gpu_settings {
  int placement;      /* placement=cost|device|host: where nodes without a device name run */
  bool fetch_device;  /* fetch=host|device: device memory for fetched tensors */
  int64_t memory_limit_bytes; /* memory=BYTES of the device for this session; 0: memory_fraction of the device */
  gpu_device **devices; /* device=0, device=0+1, platform=TEXT, type=gpu|cpu|accelerator|any: in the order of GPU:0,
                           GPU:1, ... */
  size_t n_devices;     /* may be 0: device_count GPU=0 */
  double memory_fraction; /* of each device, when memory_limit_bytes is 0 */
  int64_t total_limit_bytes; /* option memory_limit_bytes; 0: none */
  int queues;  /* queues=N: for the kernels of a step on a device; 0: by the device */
  int blas;    /* blas=auto|clblast|own: the library that computes matrix products */
  bool copies; /* copies=auto|always: always copies values for the CPU, even if the device shares its memory */
} gpu_settings;
/* TN_INVALID_ARGUMENT with the setting, its value and the allowed ones; TN_NOT_FOUND with the devices that exist. */
tn_status gpu_settings_check(const tn_session_options *options, tn_error *err); /* pure; touches no hardware */
tn_status gpu_settings_read(const tn_session_options *options, gpu_settings *out, tn_error *err);
int64_t gpu_settings_limit(const gpu_settings *s, const gpu_device *device); /* bytes that the session may have of it */
int64_t gpu_settings_cpus(const tn_session_options *options); /* devices of type CPU; at least 1 */
void gpu_settings_fini(gpu_settings *s);

#endif
