/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid elements that the kernels of a step found. */
#ifndef GPU_STEP_FAULT_H
#define GPU_STEP_FAULT_H

#include "step/run.h"

/* Allocates and clears the memory in which kernels record them. */
tn_status gpu_fault_create(gpu_instance *in, tn_error *err);
/* Enqueues reading it; with `waits`, waits until it is read. */
tn_status gpu_fault_read(gpu_run *run, bool waits, tn_error *err);
/* Turns the record that was read into the status of the step. */
tn_status gpu_fault_check(gpu_run *run, tn_error *err);

#endif
