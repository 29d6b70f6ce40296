/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on a device: level (c) of the kit for straight plans. All others are run by level (a), which offers the parts between
 * conditions, also those of loops and functions: each is a schedule of its own (part.c).
 *
 * A schedule is a segment of a plan with concrete shapes: for each instruction whether it runs on the device or on the CPU, the launches of
 * those on the device, and between them what has to be copied from one memory to the other. Values lie in two arenas, one in
 * each memory; on a device that shares memory with the host the two are one. An instance is what one step at a time
 * uses of a schedule: arenas, kernels with their arguments set, a queue. Instances are kept, so a second step allocates and
 * builds nothing. */
#ifndef GPU_EXECUTOR_H
#define GPU_EXECUTOR_H

#include "memory.h"
#include "node.h"
#include "placement_report.h"
#include "program.h"

struct tn_runtime_session {
  gpu_settings settings;
  gpu_budget **budgets; /* by device */
  int64_t max_layouts;  /* the option: schedules of a plan that are kept; 0: 16 */
  /* session.c's: */
  size_t n_used;          /* devices that gpu_device_use was called for */
  size_t n_pools;         /* at least 1 */
  tn_kit_workers **pools; /* by the index that a call may give; NULL: the calling thread alone */
  size_t n_listed;
  tn_device_info *listed; /* the CPUs, then the devices; names are its own */
  gpu_placement_report *report; /* where nodes run */
};

/* session.c: what the factory keeps for a session, and its slots. */
tn_status gpu_new_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *err);
void gpu_destroy_session(const tn_session_factory *self, tn_runtime_session *session);
tn_status gpu_list_devices(const tn_session_factory *self, tn_runtime_session *session, size_t i, tn_device_info *out,
                           tn_error *err);
/* Its device number i as the session lists it; NULL past the end. */
const char *gpu_device_listed(const tn_runtime_session *session, size_t i);
tn_status gpu_devices_check(const tn_runtime_session *session, tn_error *err); /* TN_UNAVAILABLE when one is lost */
/* The device of the session, by number, in whose memory a tensor is; GPU_NONE: it is none's. */
uint32_t gpu_feed_site(const tn_runtime_session *session, const tn_tensor *tensor);
/* The workers for work on the CPU: by the step's tn_step_pool; NULL: the calling thread alone. */
tn_kit_workers *gpu_workers(const tn_session_factory *self, tn_runtime_session *session, int32_t pool);

/* The factory's slot: where a node that names no device runs, as far as that is known. */
const char *gpu_node_device(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                            const char **reason);

tn_status gpu_prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, tn_executable **out,
                      tn_error *err);
/* The extension tn_eager's: plans of one operation, and tensors, on device i of gpu_list_devices. */
tn_status gpu_prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                         tn_executable **out, tn_error *err);
tn_status gpu_copy_to(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                   tn_tensor **out, tn_error *err);
void gpu_release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable);
tn_status gpu_step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable, tn_step *step,
                   tn_error *err);

#endif
