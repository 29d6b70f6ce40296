/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a step. */
#ifndef GPU_STEP_LANE_H
#define GPU_STEP_LANE_H

#include "step/run.h"

/* The queue, the wait list and the event of an action's OpenCL call. */
typedef struct gpu_links {
  cl_command_queue queue;
  cl_uint n_waits;
  const cl_event *waits; /* NULL without any */
  cl_event *event;       /* NULL: not needed */
} gpu_links;
gpu_links gpu_step_links(gpu_run *run, uint32_t action); /* also marks the lane as busy */
tn_status gpu_step_flush(gpu_run *run, tn_error *err);   /* all lanes with work in flight */
tn_status gpu_step_before_waiting(gpu_run *run, tn_error *err); /* flushes where lanes may wait for each other */
/* An OpenCL call for a lane failed; op NULL: of no node. */
tn_status gpu_step_failed(const gpu_run *run, uint32_t lane, cl_int code, const char *call, const tn_operation *op,
                          tn_error *err);
tn_status gpu_step_finish(gpu_run *run, tn_error *err); /* afterwards no command is in flight, even if it fails */

#endif
