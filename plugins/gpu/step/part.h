/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of plans that the kit runs. */
#ifndef GPU_STEP_PART_H
#define GPU_STEP_PART_H

#include "schedule/executable.h"

/* The kit's offload, whose user is the plan's executable. */
tn_kit_offload gpu_parts_of(tn_executable *executable);

#endif
