/* SPDX-License-Identifier: Apache-2.0 */
/* A step: the actions of its schedule are gone through once. What the device does is enqueued in order and waited for where the host
 * needs a value, and at the end. */
#include "schedule.h"

#define CALLS_BETWEEN_LOOKS 16

tn_status gpu_step_failed(const gpu_run *run, cl_int code, const char *call, const tn_operation *op, tn_error *err)
{
  tn_status st = gpu_cl_error(err, code, call, run->schedule->device->name);
  if (st == TN_UNAVAILABLE) gpu_device_lost(run->schedule->device);
  if (op == NULL) return st;
  tn_error_prefix(err, "node '%s'", tn_operation_name(op));
  tn_error_set_node(err, tn_operation_name(op));
  return st;
}

/* ---- what the step brings ---- */

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
    t = tn_step_output(run->step, run->schedule->outs[slot->output].number);
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
  for (uint32_t i = 0; st == TN_OK && i < s->n_late; i++)
    if (s->slots[s->late[i]].root == s->late[i]) st = bring(run, s->late[i], err);
  for (uint32_t i = 0; st == TN_OK && i < s->n_late; i++)
    if (s->slots[s->late[i]].root != s->late[i]) show(run, s->late[i]);
  return st;
}

static tn_status bind_memory(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  for (uint32_t d = 0; d < s->n_dynamic; d++) {
    const gpu_slot *v = &s->slots[s->dynamic_value[d]];
    cl_event ready = NULL;
    cl_int code = CL_SUCCESS;
    if (!v->device_feed) {
      tn_status st = gpu_alloc(s->budget, s->dynamic_bytes[d], &run->blocks[d], err);
      if (st != TN_OK) return st;
      run->in->bound[d] = (gpu_memory){ run->blocks[d].mem, 0 };
      continue;
    }
    gpu_memory *m = &run->in->bound[d];
    if (!gpu_tensor_memory(run->values->tensors[s->dynamic_value[d]], s->device, &m->mem, &m->at, &ready))
      return tn_error_set(err, TN_INTERNAL, "value '%s' has left the device", tn_operation_name(v->op));
    if (ready != NULL) code = cl.EnqueueMarkerWithWaitList(run->in->queue, 1, &ready, NULL);
    if (code != CL_SUCCESS) return gpu_step_failed(run, code, "clEnqueueMarkerWithWaitList", v->op, err);
    run->in_flight = run->in_flight || ready != NULL;
  }
  for (uint32_t b = 0; b < s->n_bindings; b++) {
    const gpu_binding *binding = &s->bindings[b];
    cl_int code = gpu_set_memory(run->in->kernels[binding->call], binding->arg, run->in->bound[binding->dynamic]);
    if (code != CL_SUCCESS) return gpu_step_failed(run, code, "clSetKernelArg", s->items[s->calls[binding->call].item].in.op, err);
  }
  return TN_OK;
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
  for (uint32_t i = 0; i < s->n_late; i++)
    if (s->late[i] != v && s->slots[s->late[i]].root == v) show(run, s->late[i]);
}

/* What item i was the last to read goes: a variable whose value was read is written without a copy then. */
static void let_go(gpu_run *run, uint32_t i)
{
  const gpu_schedule *s = run->schedule;
  const gpu_item *item = &s->items[i];
  const tn_executable *e = s->executable;
  for (uint32_t k = 0; k < item->in.n_inputs; k++) {
    uint32_t root = s->slots[item->in.inputs[k]].root;
    const gpu_slot *r = &s->slots[root];
    if (r->last != i || r->device.first != GPU_NONE || r->device_feed) continue;
    tn_tensor **held = NULL;
    if (r->kind == GPU_FROM_OWN || r->kind == GPU_FROM_GIVEN) held = &run->tensors[root];
    else if (r->kind == GPU_FROM_FEED && gpu_is_computed(e, root) && e->read_in[root] == s->segment && !e->gives_shapes[root])
      held = &run->values->tensors[root];
    if (held == NULL || *held == NULL) continue;
    tn_tensor_unref(*held);
    *held = NULL;
    if (r->kind != GPU_FROM_FEED) continue;
    run->values->views[root].data = NULL; /* layouts of later segments are told its shape */
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
  tn_status st = tn_kit_compute(run->step, run->schedule->layout, first + i, operands, operands + item->in.n_inputs, run->in->scratch,
                                run->made, err);
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
  gpu_memory a = gpu_memory_of(run->in, s->slots[from].root), b = gpu_memory_of(run->in, s->slots[to].root);
  if (s->slots[to].bytes == 0 || (a.mem == b.mem && a.at == b.at)) return TN_OK;
  cl_int code = cl.EnqueueCopyBuffer(run->in->queue, a.mem, b.mem, a.at, b.at, s->slots[to].bytes, 0, NULL, NULL);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clEnqueueCopyBuffer", item->in.op, err);
}

static tn_status do_call(gpu_run *run, uint32_t id, tn_error *err)
{
  const gpu_call *c = &run->schedule->calls[id];
  const gpu_launch *l = c->launch;
  const tn_operation *op = run->schedule->items[c->item].in.op;
  tn_status st = id % CALLS_BETWEEN_LOOKS == 0 ? tn_step_check(run->step, op, err) : TN_OK;
  if (st != TN_OK) return st;
  run->in_flight = true;
  if (l->copies) return do_copy(run, c, err);
  if (run->events != NULL && run->first_ns == 0) run->first_ns = gpu_now_ns();
  cl_int code = cl.EnqueueNDRangeKernel(run->in->queue, run->in->kernels[id], l->n_dims, NULL, l->global,
                                        l->local[0] == 0 ? NULL : l->local, 0, NULL,
                                        run->events == NULL ? NULL : &run->events[id]);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clEnqueueNDRangeKernel", op, err);
}

static tn_status do_upload(gpu_run *run, uint32_t v, tn_error *err)
{
  const gpu_slot *slot = &run->schedule->slots[v];
  gpu_memory to = gpu_memory_of(run->in, v);
  run->in_flight = true;
  cl_int code = cl.EnqueueWriteBuffer(run->in->queue, to.mem, CL_FALSE, to.at, slot->bytes, run->in->views[v].data, 0, NULL, NULL);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clEnqueueWriteBuffer", slot->op, err);
}

static tn_status do_read(gpu_run *run, const gpu_action *a, tn_error *err)
{
  const gpu_slot *slot = &run->schedule->slots[a->id];
  gpu_memory from = gpu_memory_of(run->in, a->id);
  run->in_flight = true;
  cl_int code = cl.EnqueueReadBuffer(run->in->queue, from.mem, a->waits, from.at, slot->bytes, run->in->views[a->id].data, 0, NULL,
                                     NULL);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clEnqueueReadBuffer", slot->op, err);
}

static tn_status do_enter(gpu_run *run, tn_error *err)
{
  cl_int code;
  run->in_flight = true;
  run->map = cl.EnqueueMapBuffer(run->in->queue, run->in->arena.mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                 run->in->arena.bytes, 0, NULL, NULL, &code);
  if (code == CL_SUCCESS) return TN_OK;
  run->map = NULL;
  return gpu_step_failed(run, code, "clEnqueueMapBuffer", NULL, err);
}

static tn_status do_leave(gpu_run *run, tn_error *err)
{
  if (run->map == NULL) return TN_OK;
  cl_int code = cl.EnqueueUnmapMemObject(run->in->queue, run->in->arena.mem, run->map, 0, NULL, NULL);
  run->map = NULL;
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clEnqueueUnmapMemObject", NULL, err);
}

static tn_status act(gpu_run *run, const gpu_action *a, tn_error *err)
{
  switch (a->what) {
  case GPU_DO_HOST: return do_host(run, a->id, err);
  case GPU_DO_CALL: return do_call(run, a->id, err);
  case GPU_DO_UPLOAD: return do_upload(run, a->id, err);
  case GPU_DO_READ: return do_read(run, a, err);
  case GPU_DO_ENTER: return do_enter(run, err);
  default: return do_leave(run, err);
  }
}

/* The device begins on what is there while the host has work of its own. */
static tn_status flush(gpu_run *run, const gpu_action *a, tn_error *err)
{
  if (a->what != GPU_DO_HOST || a == run->schedule->actions || a[-1].what != GPU_DO_CALL) return TN_OK;
  cl_int code = cl.Flush(run->in->queue);
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clFlush", NULL, err);
}

static tn_status finish(gpu_run *run, tn_error *err)
{
  if (!run->in_flight) return TN_OK;
  cl_int code = cl.Finish(run->in->queue);
  run->in_flight = false;
  return code == CL_SUCCESS ? TN_OK : gpu_step_failed(run, code, "clFinish", NULL, err);
}

tn_status gpu_run_step(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  gpu_profile_begin(run);
  tn_status st = gpu_outputs_begin(run, err);
  if (st == TN_OK) st = bring_values(run, err);
  if (st == TN_OK) st = bind_memory(run, err);
  for (uint32_t i = 0; st == TN_OK && i < s->n_actions; i++) {
    st = flush(run, &s->actions[i], err);
    if (st == TN_OK) st = act(run, &s->actions[i], err);
  }
  if (st == TN_OK) st = gpu_outputs_read(run, err);
  if (st == TN_OK) st = finish(run, err);
  if (st == TN_OK) st = tn_step_check(run->step, NULL, err);
  if (st == TN_OK) st = gpu_outputs_hand_on(run, err);
  if (st == TN_OK) st = gpu_outputs_give(run, err);
  if (st != TN_OK && run->map != NULL) do_leave(run, NULL);
  if (st != TN_OK) finish(run, NULL); /* nothing touches the memory any more */
  gpu_profile_end(run, st);
  return st;
}
