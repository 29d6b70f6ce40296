/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of a step: wait lists of actions, flushing and finishing queues, errors of failed calls. */
#include "step/lane.h"

tn_status gpu_step_failed(const gpu_run *run, uint32_t lane, cl_int code, const char *call, const tn_operation *op,
                          tn_error *err)
{
  gpu_device *device = run->schedule->sites[run->schedule->lanes[lane].site].device;
  tn_status st = gpu_cl_error(err, code, call, device->name);
  if (st == TN_UNAVAILABLE) gpu_device_lost(device);
  if (op == NULL) return st;
  tn_error_prefix(err, "node '%s'", tn_operation_name(op));
  tn_error_set_node(err, tn_operation_name(op));
  return st;
}

gpu_links gpu_step_links(gpu_run *run, uint32_t action)
{
  gpu_instance *in = run->in;
  const gpu_action *a = &run->schedule->work.actions[action];
  bool timed = run->first_ns != NULL && a->what == GPU_DO_CALL;
  for (uint32_t i = 0; i < a->n_waits; i++) in->waits[i] = in->events[run->schedule->work.waits[a->first_wait + i]];
  in->busy[a->lane] = true;
  return (gpu_links){ .queue = in->queues[a->lane], .n_waits = a->n_waits, .waits = a->n_waits > 0 ? in->waits : NULL,
                      .event = a->awaited || timed ? &in->events[action] : NULL };
}

/* Lanes may wait for each other, so all are submitted before the host waits for one of them. */
tn_status gpu_step_flush(gpu_run *run, tn_error *err)
{
  for (uint32_t l = 1; l < run->schedule->n_lanes; l++) {
    cl_int code = run->in->busy[l] ? cl.Flush(run->in->queues[l]) : CL_SUCCESS;
    if (code != CL_SUCCESS) return gpu_step_failed(run, l, code, "clFlush", NULL, err);
  }
  return TN_OK;
}

tn_status gpu_step_before_waiting(gpu_run *run, tn_error *err)
{
  return run->schedule->n_lanes > 2 ? gpu_step_flush(run, err) : TN_OK;
}

/* Finishes all lanes, even after one failed, so that no command is in flight. */
tn_status gpu_step_finish(gpu_run *run, tn_error *err)
{
  tn_status st = gpu_step_before_waiting(run, err);
  for (uint32_t l = 1; l < run->schedule->n_lanes; l++) {
    cl_int code = run->in->busy[l] ? cl.Finish(run->in->queues[l]) : CL_SUCCESS;
    run->in->busy[l] = false;
    if (code != CL_SUCCESS && st == TN_OK) st = gpu_step_failed(run, l, code, "clFinish", NULL, err);
  }
  return st;
}
