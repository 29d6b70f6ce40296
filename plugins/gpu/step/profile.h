/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a step, for metadata. */
#ifndef GPU_STEP_PROFILE_H
#define GPU_STEP_PROFILE_H

#include "step/run.h"

void gpu_profile_begin(gpu_run *run);
void gpu_profile_end(gpu_run *run, tn_status status);

#endif
