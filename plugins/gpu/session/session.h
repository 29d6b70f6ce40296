/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of a session. */
#ifndef GPU_SESSION_SESSION_H
#define GPU_SESSION_SESSION_H

#include "device/memory.h"
#include "session/placement_report.h"
#include "session/settings.h"

struct tn_runtime_session {
  gpu_settings settings;
  gpu_budget **budgets; /* by device */
  int64_t max_layouts;  /* the option: schedules of a plan that are kept; 0: 16 */
  /* For session.c alone: */
  size_t n_used;          /* number of devices for which gpu_device_use succeeded */
  size_t n_pools;         /* at least 1 */
  tn_kit_workers **pools; /* by the pool index of a call; NULL: the calling thread alone */
  size_t n_listed;
  tn_device_info *listed; /* the CPUs, then the devices; names are its own */
  gpu_placement_report *report; /* where nodes run */
};

/* The factory's slots. */
tn_status gpu_new_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *err);
void gpu_destroy_session(const tn_session_factory *self, tn_runtime_session *session);
tn_status gpu_list_devices(const tn_session_factory *self, tn_runtime_session *session, size_t i, tn_device_info *out,
                           tn_error *err);
/* Its device number i as the session lists it; NULL past the end. */
const char *gpu_device_listed(const tn_runtime_session *session, size_t i);
tn_status gpu_devices_check(const tn_runtime_session *session, tn_error *err); /* TN_UNAVAILABLE if one is lost */
/* The number of the session's device whose memory holds a tensor; GPU_NONE if none does. */
uint32_t gpu_feed_site(const tn_runtime_session *session, const tn_tensor *tensor);
/* The workers for work on the CPU: by the step's tn_step_pool; NULL: the calling thread alone. */
tn_kit_workers *gpu_workers(const tn_session_factory *self, tn_runtime_session *session, int32_t pool);

/* The factory's slot: where a node without a device name runs, as far as that is known. */
const char *gpu_node_device(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                            const char **reason);

#endif
