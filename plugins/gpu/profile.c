/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a step for who wants metadata: when the device ran each node. The step goes through a queue that takes times. */
#include "schedule.h"

#include <time.h>

int64_t gpu_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void swap_queues(gpu_instance *in)
{
  cl_command_queue queue = in->queue;
  in->queue = in->timed;
  in->timed = queue;
}

void gpu_profile_begin(gpu_run *run)
{
  gpu_instance *in = run->in;
  const gpu_schedule *s = run->schedule;
  cl_int code = CL_SUCCESS;
  run->records = tn_step_wants_records(run->step);
  if (!run->records) return;
  run->events = gpu_new(s->n_calls + 1, sizeof *run->events);
  if (run->events != NULL && in->timed == NULL)
    in->timed = cl.CreateCommandQueue(s->device->context, s->device->id, CL_QUEUE_PROFILING_ENABLE, &code);
  if (code != CL_SUCCESS) in->timed = NULL;
  if (in->timed != NULL && run->events != NULL) {
    swap_queues(in);
    return;
  }
  tn_free(run->events); /* nodes of the device are left out */
  run->events = NULL;
}

static cl_ulong time_of(cl_event event, cl_profiling_info what)
{
  cl_ulong ns = 0;
  return cl.GetEventProfilingInfo(event, what, sizeof ns, &ns, NULL) == CL_SUCCESS ? ns : 0;
}

/* What is to be added to the device's clock for the host's. */
static int64_t clock_difference(const gpu_run *run)
{
  for (uint32_t c = 0; c < run->schedule->n_calls; c++)
    if (run->events[c] != NULL) return run->first_ns - (int64_t)time_of(run->events[c], CL_PROFILING_COMMAND_QUEUED);
  return 0;
}

static void record_item(const gpu_run *run, uint32_t i, const char *device, int64_t difference, tn_status status)
{
  const gpu_schedule *s = run->schedule;
  const gpu_item *item = &s->items[i];
  int64_t begin = 0, end = 0;
  for (uint32_t c = item->first_call; c < item->first_call + item->n_calls; c++) {
    if (run->events[c] == NULL) continue;
    int64_t from = (int64_t)time_of(run->events[c], CL_PROFILING_COMMAND_START);
    int64_t to = (int64_t)time_of(run->events[c], CL_PROFILING_COMMAND_END);
    if (begin == 0 || from < begin) begin = from;
    if (to > end) end = to;
  }
  if (begin == 0 || end < begin) return;
  tn_step_record(run->step, s->layout, s->executable->segments[s->segment].begin + i, device, begin + difference, end + difference,
                 status);
}

/* Nothing is in flight. */
void gpu_profile_end(gpu_run *run, tn_status status)
{
  const gpu_schedule *s = run->schedule;
  const tn_runtime_session *session = s->executable->session;
  const char *device = NULL;
  if (run->events == NULL) return;
  for (size_t i = 0; device == NULL && i < session->n_listed; i++)
    if (strcmp(session->listed[i].type, "CPU") != 0) device = session->listed[i].name;
  int64_t difference = clock_difference(run);
  for (uint32_t i = 0; status == TN_OK && device != NULL && i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_DEVICE) record_item(run, i, device, difference, status);
  for (uint32_t c = 0; c < s->n_calls; c++)
    if (run->events[c] != NULL) cl.ReleaseEvent(run->events[c]);
  tn_free(run->events);
  run->events = NULL;
  swap_queues(run->in);
}
