/* SPDX-License-Identifier: Apache-2.0 */
/* A step: runs the actions of its schedule once. Work of devices is enqueued, and waited for when the host
 * needs a value and at the end. A lane that depends on another lane waits for its event. */
#include "device/base.h"
#include "device/tensor.h"
#include "node/built.h"
#include "step/fault.h"
#include "step/lane.h"
#include "step/profile.h"

#define CALLS_BETWEEN_LOOKS 16

/* ---- the memory of the step ---- */

static tn_status bring(gpu_run *run, uint32_t v, tn_error *err)
{
  const gpu_slot *slot = &run->schedule->slots[v];
  tn_tensor *t = NULL;
  if (slot->kind == GPU_FROM_OWN) {
    tn_status st = tn_tensor_create(slot->dtype, slot->dims, slot->rank, &run->tensors[v], err);
    if (st != TN_OK) return st;
    t = run->tensors[v];
  } else if (slot->kind == GPU_FROM_FEED) {
    t = run->values->tensors[v];
  } else if (slot->straight) {
    t = tn_step_output(run->step, run->schedule->io.outs[slot->output].number);
    if (t == NULL) t = run->outputs[slot->output];
  }
  if (t == NULL) return TN_OK; /* a kernel makes it */
  run->in->views[v].data = tn_tensor_data(t);
  run->in->views[v].buffer = slot->straight ? NULL : tn_tensor_buffer(t);
  return TN_OK;
}

static void show(gpu_run *run, uint32_t v)
{
  const tn_view *root = &run->in->views[run->schedule->slots[v].root];
  run->in->views[v].data = root->data;
  run->in->views[v].buffer = root->buffer;
}

static tn_status bring_values(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < s->memory.n_late; i++)
    if (s->slots[s->memory.late[i]].root == s->memory.late[i]) st = bring(run, s->memory.late[i], err);
  for (uint32_t i = 0; st == TN_OK && i < s->memory.n_late; i++)
    if (s->slots[s->memory.late[i]].root != s->memory.late[i]) show(run, s->memory.late[i]);
  return st;
}

/* Makes all lanes of the feed's site wait until its content is written. */
static tn_status await_feed(gpu_run *run, uint32_t site, cl_event ready, const tn_operation *op, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  for (uint32_t l = 1; ready != NULL && l < s->n_lanes; l++) {
    if (s->lanes[l].site != site) continue;
    cl_int code = cl.EnqueueMarkerWithWaitList(run->in->queues[l], 1, &ready, NULL);
    if (code != CL_SUCCESS) return gpu_step_failed(run, l, code, "clEnqueueMarkerWithWaitList", op, err);
    run->in->busy[l] = true;
  }
  return TN_OK;
}

static tn_status bind_one(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_dynamic *d = &s->dynamics[number];
  const gpu_site *site = &s->sites[d->site];
  const gpu_slot *v = &s->slots[d->value];
  gpu_memory *m = &run->in->bound[number];
  cl_event ready = NULL;
  if (d->bytes > 0) {
    tn_status st = gpu_alloc(site->budget, d->bytes, &run->blocks[number], err);
    if (st == TN_OK) *m = (gpu_memory){ run->blocks[number].mem, 0 };
    return st;
  }
  if (gpu_tensor_memory(run->values->tensors[d->value], site->device, &m->mem, &m->at, &ready))
    return await_feed(run, d->site, ready, v->op, err);
  return tn_error_set(err, TN_INTERNAL, "value '%s' has left the device", tn_operation_name(v->op));
}

static tn_status bind_memory(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  tn_status st = TN_OK;
  for (uint32_t d = 0; st == TN_OK && d < s->n_dynamic; d++) st = bind_one(run, d, err);
  for (uint32_t b = 0; st == TN_OK && b < s->io.n_bindings; b++) {
    const gpu_binding *binding = &s->io.bindings[b];
    const gpu_item *item = &s->items[s->calls[binding->call].item];
    cl_int code = gpu_set_memory(run->in->kernels[binding->call], binding->arg, run->in->bound[binding->dynamic]);
    if (code != CL_SUCCESS) st = gpu_step_failed(run, item->lane, code, "clSetKernelArg", item->in.op, err);
  }
  return st;
}

/* ---- actions ---- */

static void take_made(gpu_run *run, uint32_t v, tn_tensor *t)
{
  const gpu_schedule *s = run->schedule;
  tn_view *view = &run->in->views[v];
  run->tensors[v] = t;
  view->data = tn_tensor_data(t);
  view->buffer = tn_tensor_buffer(t);
  view->dims = tn_tensor_dims(t);
  view->rank = tn_tensor_rank(t);
  view->count = tn_tensor_elements(t);
  for (uint32_t i = 0; i < s->memory.n_late; i++)
    if (s->memory.late[i] != v && s->slots[s->memory.late[i]].root == v) show(run, s->memory.late[i]);
}

/* Releases values whose last reader was item i, so that a variable whose value was read can be written
 * without a copy. */
static void let_go(gpu_run *run, uint32_t i)
{
  const gpu_schedule *s = run->schedule;
  const gpu_item *item = &s->items[i];
  const tn_executable *e = s->executable;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    uint32_t root = s->slots[item->in.inputs[k]].root;
    const gpu_slot *r = &s->slots[root];
    if (r->last != item->position || r->sent || r->fed_at != GPU_NONE) continue;
    tn_tensor **held = NULL;
    if (r->kind == GPU_FROM_OWN || r->kind == GPU_FROM_GIVEN) held = &run->tensors[root];
    else if (r->kind == GPU_FROM_FEED && gpu_is_computed(e, root) && e->read_in[root] == s->segment &&
             !e->gives_shapes[root])
      held = &run->values->tensors[root];
    if (held == NULL || *held == NULL) continue;
    tn_tensor_unref(*held);
    *held = NULL;
    if (r->kind != GPU_FROM_FEED) continue;
    run->values->views[root].data = NULL; /* the shape is kept for layouts of later segments */
    run->values->views[root].buffer = NULL;
    run->values->views[root].dims = r->dims;
  }
}

static tn_status do_host(gpu_run *run, uint32_t i, tn_error *err)
{
  const gpu_item *item = &run->schedule->items[i];
  tn_view **operands = run->in->operands + item->first_operand;
  uint32_t first = run->schedule->executable->segments[run->schedule->segment].begin;
  int64_t begun = run->records ? gpu_now_ns() : 0;
  tn_status st = tn_kit_compute(run->step, run->schedule->layout, first + i, operands, operands + item->in.n_inputs,
                                run->in->scratch, run->made, err);
  for (uint32_t k = 0; st == TN_OK && k < item->in.n_outputs; k++)
    if (run->made[k] != NULL) take_made(run, item->in.outputs[k], run->made[k]);
  if (run->records) tn_step_record(run->step, run->schedule->layout, first + i, NULL, begun, gpu_now_ns(), st);
  if (st == TN_OK) let_go(run, i);
  return st;
}

static tn_status do_copy(gpu_run *run, const gpu_call *c, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_item *item = &s->items[c->item];
  uint32_t from = item->in.inputs[c->launch->copy_from], to = item->in.outputs[c->launch->copy_to];
  gpu_memory a = gpu_memory_of(run->in, s->slots[from].root, item->site),
             b = gpu_memory_of(run->in, s->slots[to].root, item->site);
  gpu_links l = gpu_step_links(run, c->action);
  bool done = s->slots[to].bytes == 0 || (a.mem == b.mem && a.at == b.at);
  if (done && l.n_waits == 0 && l.event == NULL) return TN_OK;
  cl_int code =
      done ? cl.EnqueueMarkerWithWaitList(l.queue, l.n_waits, l.waits, l.event)
           : cl.EnqueueCopyBuffer(l.queue, a.mem, b.mem, a.at, b.at, s->slots[to].bytes, l.n_waits, l.waits, l.event);
  const char *call = done ? "clEnqueueMarkerWithWaitList" : "clEnqueueCopyBuffer";
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, item->lane, code, call, item->in.op, err);
}

/* Libraries enqueue their commands themselves, so a marker with the wait list precedes them. */
static tn_status do_library(gpu_run *run, uint32_t id, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_call *c = &s->calls[id];
  const gpu_item *item = &s->items[c->item];
  gpu_device *device = s->sites[item->site].device;
  gpu_memory memory[GPU_LIBRARY_ARGS];
  gpu_links l = gpu_step_links(run, c->action);
  cl_event *mark = run->marks == NULL ? NULL : &run->marks[id];
  cl_int code =
      mark == NULL && l.n_waits == 0 ? CL_SUCCESS : cl.EnqueueMarkerWithWaitList(l.queue, l.n_waits, l.waits, mark);
  if (code != CL_SUCCESS)
    return gpu_step_failed(run, item->lane, code, "clEnqueueMarkerWithWaitList", item->in.op, err);
  for (size_t a = 0; a < c->launch->n_args; a++) memory[a] = gpu_argument(run->in, id, &c->launch->args[a]);
  tn_status st = c->launch->library(device, l.queue, c->launch->values, memory, l.event, err);
  if (st == TN_OK) return TN_OK;
  if (st == TN_UNAVAILABLE) gpu_device_lost(device);
  tn_error_prefix(err, "node '%s'", tn_operation_name(item->in.op));
  tn_error_set_node(err, tn_operation_name(item->in.op));
  return st;
}

static tn_status do_call(gpu_run *run, const gpu_action *a, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_call *c = &s->calls[a->id];
  const gpu_launch *l = c->launch;
  const gpu_item *item = &s->items[c->item];
  tn_status st = a->id % CALLS_BETWEEN_LOOKS == 0 ? tn_step_check(run->step, item->in.op, err) : TN_OK;
  if (st != TN_OK) return st;
  if (l->copies) return do_copy(run, c, err);
  if (run->first_ns != NULL && run->first_ns[item->site] == 0) run->first_ns[item->site] = gpu_now_ns();
  if (l->library != NULL) return do_library(run, a->id, err);
  gpu_links to = gpu_step_links(run, c->action);
  cl_int code = cl.EnqueueNDRangeKernel(to.queue, run->in->kernels[a->id], l->n_dims, NULL, l->global,
                                        l->local[0] == 0 ? NULL : l->local, to.n_waits, to.waits, to.event);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, a->lane, code, "clEnqueueNDRangeKernel", item->in.op, err);
}

static tn_status do_upload(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[number];
  const gpu_slot *slot = &run->schedule->slots[a->id];
  gpu_memory to = gpu_memory_of(run->in, a->id, run->schedule->lanes[a->lane].site);
  gpu_links l = gpu_step_links(run, number);
  cl_int code = cl.EnqueueWriteBuffer(l.queue, to.mem, CL_FALSE, to.at, slot->bytes, run->in->views[a->id].data,
                                      l.n_waits, l.waits, l.event);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, a->lane, code, "clEnqueueWriteBuffer", slot->op, err);
}

static tn_status do_read(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[number];
  const gpu_slot *slot = &run->schedule->slots[a->id];
  gpu_memory from = gpu_memory_of(run->in, a->id, run->schedule->lanes[a->lane].site);
  tn_status st = a->waits ? gpu_step_before_waiting(run, err) : TN_OK;
  if (st != TN_OK) return st;
  gpu_links l = gpu_step_links(run, number);
  cl_int code = cl.EnqueueReadBuffer(l.queue, from.mem, a->waits, from.at, slot->bytes, run->in->views[a->id].data,
                                     l.n_waits, l.waits, l.event);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, a->lane, code, "clEnqueueReadBuffer", slot->op, err);
}

static tn_status do_enter(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_block *arena = &run->in->arenas[0];
  uint32_t lane = run->schedule->work.actions[number].lane;
  cl_int code;
  tn_status st = gpu_step_before_waiting(run, err);
  if (st != TN_OK) return st;
  gpu_links l = gpu_step_links(run, number);
  run->map = cl.EnqueueMapBuffer(l.queue, arena->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, arena->bytes, l.n_waits,
                                 l.waits, l.event, &code);
  if (code == CL_SUCCESS) return TN_OK;
  run->map = NULL;
  return gpu_step_failed(run, lane, code, "clEnqueueMapBuffer", NULL, err);
}

/* event NULL: no action waits for it */
static tn_status unmap(gpu_run *run, uint32_t lane, cl_event *event, tn_error *err)
{
  cl_int code = cl.EnqueueUnmapMemObject(run->in->queues[lane], run->in->arenas[0].mem, run->map, 0, NULL, event);
  run->map = NULL;
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, lane, code, "clEnqueueUnmapMemObject", NULL, err);
}

static tn_status do_leave(gpu_run *run, uint32_t number, tn_error *err)
{
  gpu_links l = gpu_step_links(run, number);
  return unmap(run, run->schedule->work.actions[number].lane, l.event, err);
}

static tn_status do_await(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[number];
  tn_status st = gpu_step_flush(run, err);
  bool waits = st == TN_OK && run->in->events[a->id] != NULL; /* NULL: known to have ended */
  cl_int code = waits ? cl.WaitForEvents(1, &run->in->events[a->id]) : CL_SUCCESS;
  if (code == CL_SUCCESS) return st == TN_OK ? tn_step_check(run->step, NULL, err) : st;
  return gpu_step_failed(run, run->schedule->work.actions[a->id].lane, code, "clWaitForEvents", NULL, err);
}

static tn_status act(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[number];
  switch (a->what) {
  case GPU_DO_HOST: return do_host(run, a->id, err);
  case GPU_DO_CALL: return do_call(run, a, err);
  case GPU_DO_UPLOAD: return do_upload(run, number, err);
  case GPU_DO_READ: return do_read(run, number, err);
  case GPU_DO_ENTER: return do_enter(run, number, err);
  case GPU_DO_LEAVE: return do_leave(run, number, err);
  case GPU_DO_AWAIT: return do_await(run, number, err);
  default: return run->policy->read(run, number, err);
  }
}

/* Checks for invalid elements, so that their results are not used. */
static tn_status act_looking(gpu_run *run, uint32_t number, tn_error *err)
{
  bool before = run->schedule->work.actions[number].what == GPU_DO_HOST;
  tn_status st = gpu_fault_read(run, before, err);
  if (st == TN_OK && before) st = gpu_fault_check(run, err);
  if (st == TN_OK) st = act(run, number, err);
  return st == TN_OK && !before ? gpu_fault_check(run, err) : st;
}

/* Submits enqueued work before the host runs a node, so that devices work at the same time. */
static tn_status flush(gpu_run *run, uint32_t number, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[number];
  return a->what != GPU_DO_HOST || number == 0 || a[-1].what != GPU_DO_CALL ? TN_OK : gpu_step_flush(run, err);
}

static void release_events(gpu_run *run)
{
  if (run->schedule->work.n_waits == 0 && run->first_ns == NULL) return;
  for (uint32_t a = 0; a < run->schedule->work.n_actions; a++) {
    if (run->in->events[a] != NULL) cl.ReleaseEvent(run->in->events[a]);
    run->in->events[a] = NULL;
  }
  for (uint32_t c = 0; run->marks != NULL && c < run->schedule->n_calls; c++)
    if (run->marks[c] != NULL) cl.ReleaseEvent(run->marks[c]);
}

static tn_status go_through(gpu_run *run, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < run->schedule->work.n_actions; i++) {
    st = flush(run, i, err);
    if (st == TN_OK) st = run->schedule->work.actions[i].looks ? act_looking(run, i, err) : act(run, i, err);
  }
  return st;
}

tn_status gpu_run_step(gpu_run *run, tn_error *err)
{
  gpu_profile_begin(run);
  tn_status st = run->policy->begin == NULL ? TN_OK : run->policy->begin(run, err);
  if (st == TN_OK) st = bring_values(run, err);
  if (st == TN_OK) st = bind_memory(run, err);
  if (st == TN_OK) st = go_through(run, err);
  if (st == TN_OK && run->schedule->looks) st = gpu_fault_read(run, false, err);
  if (st == TN_OK) st = gpu_step_finish(run, err);
  if (st == TN_OK && run->schedule->looks) st = gpu_fault_check(run, err);
  if (st == TN_OK) st = tn_step_check(run->step, NULL, err);
  if (st == TN_OK) st = run->policy->give(run, err);
  if (st != TN_OK && run->map != NULL) unmap(run, run->schedule->sites[0].first_lane, NULL, NULL);
  if (st != TN_OK) gpu_step_finish(run, NULL); /* no command uses the memory after this */
  gpu_profile_end(run, st);
  release_events(run);
  tn_free(run->first_ns);
  tn_free(run->marks);
  return st;
}
