/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid elements that kernels find, such as an index out of range or a divisor of 0. The kernel records
 * them in memory of the instance (prelude.cl describes how) and continues. The host reads the record when it
 * waits for the device anyway, before it uses results of such elements: before CPU nodes that read from the
 * device or have effects, and before the step returns its outputs. The memory is cleared when it is
 * allocated, and after a step that found invalid elements; other steps do no work for it. */
#include "step/fault.h"

#include "device/base.h"
#include "step/lane.h"

enum { NOTES = 63 }; /* as in prelude.cl */
typedef struct notes {
  gpu_found found;
  cl_long note[NOTES][2];
} notes;

static cl_command_queue queue_of(const gpu_instance *in, uint32_t site)
{
  return in->queues[in->schedule->sites[site].first_lane];
}

static cl_int clear(gpu_instance *in, uint32_t site)
{
  static const gpu_found nothing;
  return cl.EnqueueWriteBuffer(queue_of(in, site), in->faults[site].mem, CL_TRUE, 0, sizeof nothing, &nothing, 0, NULL,
                               NULL);
}

tn_status gpu_fault_create(gpu_instance *in, tn_error *err)
{
  const gpu_schedule *s = in->schedule;
  for (uint32_t k = 0; k < s->n_sites; k++) {
    if (!s->sites[k].may_fault) continue;
    tn_status st = gpu_alloc(s->sites[k].budget, sizeof(notes), &in->faults[k], err);
    if (st != TN_OK) return st;
    cl_int code = clear(in, k);
    if (code != CL_SUCCESS) return gpu_cl_error(err, code, "clEnqueueWriteBuffer", s->sites[k].device->name);
  }
  return TN_OK;
}

/* With one queue the read follows the kernels in the queue; several queues are finished first. */
tn_status gpu_fault_read(gpu_run *run, bool waits, tn_error *err)
{
  gpu_instance *in = run->in;
  const gpu_schedule *s = run->schedule;
  bool several = s->n_lanes > 2;
  tn_status st = several ? gpu_step_finish(run, err) : TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < s->n_sites; k++) {
    if (!s->sites[k].may_fault) continue;
    uint32_t lane = s->sites[k].first_lane;
    in->busy[lane] = true;
    cl_int code = cl.EnqueueReadBuffer(in->queues[lane], in->faults[k].mem, several || waits, 0, sizeof in->found[k],
                                       &in->found[k], 0, NULL, NULL);
    if (code != CL_SUCCESS) st = gpu_step_failed(run, lane, code, "clEnqueueReadBuffer", NULL, err);
  }
  return st;
}

/* The note of the lowest place, which is the one that the CPU would have met. */
static void find_first(const notes *n, gpu_fault *fault)
{
  cl_uint count = n->found.words[2] < NOTES ? n->found.words[2] : NOTES;
  for (cl_uint i = 0; i < count; i++) {
    if (i > 0 && n->note[i][0] >= fault->place) continue;
    fault->place = n->note[i][0];
    fault->value = n->note[i][1];
  }
}

static tn_status explain(const gpu_schedule *s, const notes *n, tn_error *err)
{
  const gpu_call *c = &s->calls[n->found.words[0] - 1];
  const gpu_item *item = &s->items[c->item];
  uint32_t n_inputs = item->in.n_inputs;
  gpu_value *values = gpu_new(n_inputs + item->in.n_outputs + 1, sizeof *values);
  if (values == NULL) return gpu_no_memory(err, "an error");
  for (uint32_t k = 0; k < n_inputs + item->in.n_outputs; k++) {
    const gpu_slot *v = &s->slots[k < n_inputs ? item->in.inputs[k] : item->in.outputs[k - n_inputs]];
    values[k] =
        (gpu_value){ .dtype = v->dtype, .rank = v->rank, .dims = v->dims, .count = v->count, .bytes = v->bytes };
  }
  gpu_fault fault = { .op = item->in.op, .limit = c->launch->limit, .inputs = values, .outputs = values + n_inputs };
  find_first(n, &fault);
  tn_status st = c->launch->explain(&fault, err);
  tn_free(values);
  tn_error_prefix(err, "node '%s' (%s)", tn_operation_name(item->in.op), tn_operation_type(item->in.op));
  tn_error_set_node(err, tn_operation_name(item->in.op));
  return st;
}

static tn_status check_site(gpu_run *run, uint32_t site, tn_error *err)
{
  gpu_instance *in = run->in;
  const gpu_schedule *s = run->schedule;
  notes n;
  cl_int code = cl.EnqueueReadBuffer(queue_of(in, site), in->faults[site].mem, CL_TRUE, 0, sizeof n, &n, 0, NULL, NULL);
  if (code != CL_SUCCESS)
    return gpu_step_failed(run, s->sites[site].first_lane, code, "clEnqueueReadBuffer", NULL, err);
  cl_uint call = n.found.words[0];
  if (call == 0 || call > s->n_calls || s->calls[call - 1].launch->explain == NULL)
    return tn_error_set(err, TN_INTERNAL, "device '%s' says that launch %u of %u found wrong elements",
                        s->sites[site].device->name, (unsigned)call, (unsigned)s->n_calls);
  tn_status st = explain(s, &n, err);
  run->unharmed = clear(in, site) == CL_SUCCESS;
  in->found[site] = (gpu_found){ { 0 } };
  return st;
}

/* If several devices found invalid elements, the first device's error is returned. */
tn_status gpu_fault_check(gpu_run *run, tn_error *err)
{
  tn_status st = TN_OK;
  bool unharmed = true;
  for (uint32_t k = 0; k < run->schedule->n_sites; k++) {
    if (run->in->found[k].words[0] == 0) continue;
    tn_status one = check_site(run, k, st == TN_OK ? err : NULL);
    unharmed = unharmed && run->unharmed;
    if (st == TN_OK) st = one;
  }
  run->unharmed = st != TN_OK && unharmed;
  return st;
}
