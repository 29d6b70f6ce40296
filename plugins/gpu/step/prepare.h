/* SPDX-License-Identifier: Apache-2.0 */
/* Executables, and their steps: slots of the factory. */
#ifndef GPU_STEP_PREPARE_H
#define GPU_STEP_PREPARE_H

#include "schedule/executable.h"

tn_status gpu_prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                      tn_executable **out, tn_error *err);
void gpu_release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable);
tn_status gpu_step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                   tn_step *step, tn_error *err);

#endif
