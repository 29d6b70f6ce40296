/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels found in the elements of a step. */
#ifndef GPU_STEP_FAULT_H
#define GPU_STEP_FAULT_H

#include "step/run.h"

/* Memory for what kernels find, cleared. */
tn_status gpu_fault_make(gpu_instance *in, tn_error *err);
/* Reads it: for who waits then, or (`waits`) here. */
tn_status gpu_fault_read(gpu_run *run, bool waits, tn_error *err);
/* What was read, as the status of the step. */
tn_status gpu_fault_check(gpu_run *run, tn_error *err);

#endif
