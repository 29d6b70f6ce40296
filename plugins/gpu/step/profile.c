/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a step for metadata: when the device ran each node. Such a step uses queues with profiling. */
#include "step/profile.h"

#include "device/base.h"

static void swap_queues(gpu_instance *in)
{
  cl_command_queue *queues = in->queues;
  in->queues = in->timed;
  in->timed = queues;
}

/* Without them nodes on devices are recorded with the time of the whole step. */
static bool make_timed(gpu_instance *in)
{
  const gpu_schedule *s = in->schedule;
  for (uint32_t l = 1; l < s->n_lanes; l++)
    if (in->timed[l] == NULL && gpu_instance_queue(s, l, CL_QUEUE_PROFILING_ENABLE, &in->timed[l], NULL) != TN_OK)
      return false;
  return true;
}

void gpu_profile_begin(gpu_run *run)
{
  gpu_instance *in = run->in;
  run->records = tn_step_wants_records(run->step);
  if (!run->records) return;
  run->begun_ns = gpu_now_ns();
  if (!make_timed(in)) return;
  run->first_ns = gpu_new(run->schedule->n_sites + 1, sizeof *run->first_ns);
  if (run->first_ns == NULL) return;
  run->marks = gpu_new(run->schedule->n_calls + 1, sizeof *run->marks);
  swap_queues(in);
}

static cl_ulong time_of(cl_event event, cl_profiling_info what)
{
  cl_ulong ns = 0;
  return cl.GetEventProfilingInfo(event, what, sizeof ns, &ns, NULL) == CL_SUCCESS ? ns : 0;
}

static cl_event event_of(const gpu_run *run, uint32_t call)
{
  return run->in->events[run->schedule->calls[call].action];
}

/* The difference between the host's clock and a device's. */
static int64_t clock_difference(const gpu_run *run, uint32_t site)
{
  const gpu_schedule *s = run->schedule;
  for (uint32_t c = 0; c < s->n_calls; c++)
    if (s->items[s->calls[c].item].site == site && !s->calls[c].launch->copies && event_of(run, c) != NULL)
      return run->first_ns[site] - (int64_t)time_of(event_of(run, c), CL_PROFILING_COMMAND_QUEUED);
  return 0;
}

/* When a call began. A library's event is that of its last command, so a marker precedes the first one. */
static int64_t begin_of(const gpu_run *run, uint32_t c)
{
  cl_event marker = run->marks == NULL ? NULL : run->marks[c];
  int64_t ns = marker == NULL ? 0 : (int64_t)time_of(marker, CL_PROFILING_COMMAND_END);
  return ns != 0 ? ns : (int64_t)time_of(event_of(run, c), CL_PROFILING_COMMAND_START);
}

static void record_item(const gpu_run *run, uint32_t i, const char *device, int64_t difference, tn_status status)
{
  const gpu_schedule *s = run->schedule;
  const gpu_item *item = &s->items[i];
  int64_t begin = 0, end = 0;
  for (uint32_t c = item->first_call; c < item->first_call + item->n_calls; c++) {
    if (event_of(run, c) == NULL) continue;
    int64_t from = begin_of(run, c);
    int64_t to = (int64_t)time_of(event_of(run, c), CL_PROFILING_COMMAND_END);
    if (begin == 0 || from < begin) begin = from;
    if (to > end) end = to;
  }
  if (begin == 0 || end < begin) return;
  tn_step_record(run->step, s->layout, s->executable->segments[s->segment].begin + i, device, begin + difference,
                 end + difference, status);
}

/* Without memory for times, or without queues with profiling. */
static void record_all(const gpu_run *run)
{
  const gpu_schedule *s = run->schedule;
  int64_t now = gpu_now_ns();
  for (uint32_t i = 0; i < s->n_items; i++)
    if (s->items[i].where == GPU_ON_DEVICE)
      tn_step_record(run->step, s->layout, s->executable->segments[s->segment].begin + i,
                     gpu_device_listed(s->executable->session, s->items[i].site), run->begun_ns, now, TN_OK);
}

/* Nothing is in flight. */
void gpu_profile_end(gpu_run *run, tn_status status)
{
  const gpu_schedule *s = run->schedule;
  if (run->first_ns == NULL) {
    if (run->records && status == TN_OK) record_all(run);
    return;
  }
  for (uint32_t k = 0; status == TN_OK && k < s->n_sites; k++) {
    const char *device = gpu_device_listed(s->executable->session, k);
    int64_t difference = clock_difference(run, k);
    for (uint32_t i = 0; device != NULL && i < s->n_items; i++)
      if (s->items[i].where == GPU_ON_DEVICE && s->items[i].site == k) record_item(run, i, device, difference, status);
  }
  swap_queues(run->in);
}
