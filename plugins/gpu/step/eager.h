/* SPDX-License-Identifier: Apache-2.0 */
/* Single operations of eager sessions. */
#ifndef GPU_STEP_EAGER_H
#define GPU_STEP_EAGER_H

#include "schedule/executable.h"

/* The extension tn_eager's: plans of one operation, and tensors, on device i of gpu_list_devices. */
tn_status gpu_prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                         tn_executable **out, tn_error *err);
tn_status gpu_copy_to(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                   tn_tensor **out, tn_error *err);

#endif
