/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a step: tensors that the CPU writes, that are read from the device, or that stay there. */
#include "device/base.h"
#include "device/tensor.h"
#include "step/lane.h"

static const gpu_slot *slot_of(const gpu_run *run, size_t o)
{
  return &run->schedule->slots[run->schedule->io.outs[o].value];
}

static tn_tensor *given_for(const gpu_run *run, size_t o)
{
  return tn_step_output(run->step, run->schedule->io.outs[o].number);
}

/* The caller's tensor must be what the output is. */
static tn_status check_given(const gpu_run *run, size_t o, const tn_tensor *t, tn_error *err)
{
  const gpu_slot *v = slot_of(run, o);
  bool fits = tn_tensor_dtype(t) == v->dtype && (v->rank < 0 || tn_tensor_rank(t) == v->rank);
  for (int32_t d = 0; fits && d < v->rank; d++) fits = tn_tensor_dims(t)[d] == v->dims[d];
  if (fits) return TN_OK;
  tn_error_set(err, TN_INVALID_ARGUMENT,
               "output %zu, node '%s': the tensor given for it has another dtype or shape than the %s of rank %d", o,
               tn_operation_name(v->op), tn_dtype_name(v->dtype), (int)v->rank);
  tn_error_set_node(err, tn_operation_name(v->op));
  return TN_INVALID_ARGUMENT;
}

static tn_status host_tensor(gpu_run *run, size_t o, tn_error *err)
{
  const gpu_slot *v = slot_of(run, o);
  if (given_for(run, o) != NULL) return TN_OK;
  return tn_tensor_create(v->dtype, v->dims, v->rank, &run->outputs[o], err);
}

static tn_status outputs_begin(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  tn_status st = TN_OK;
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) {
    tn_tensor *given = given_for(run, o);
    if (given != NULL) st = check_given(run, o, given, err);
    if (st == TN_OK && s->io.outs[o].how == GPU_OUT_STRAIGHT) st = host_tensor(run, o, err);
  }
  return st;
}

static tn_tensor *target(gpu_run *run, uint32_t o)
{
  tn_tensor *given = given_for(run, o);
  return given != NULL ? given : run->outputs[o];
}

static tn_status read_one(gpu_run *run, uint32_t o, uint32_t action, tn_error *err)
{
  const gpu_slot *v = slot_of(run, o);
  tn_status st = host_tensor(run, o, err);
  if (st != TN_OK || v->bytes == 0) return st;
  gpu_memory from = gpu_memory_of(run->in, v->root, run->schedule->io.outs[o].site);
  void *to = tn_tensor_data(target(run, o));
  if (to == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "output %u: the tensor given for it is not in host memory", o);
  gpu_links l = gpu_step_links(run, action);
  cl_int code = cl.EnqueueReadBuffer(l.queue, from.mem, CL_FALSE, from.at, v->bytes, to, l.n_waits, l.waits, l.event);
  return code == CL_SUCCESS
             ? TN_OK
             : gpu_step_failed(run, run->schedule->work.actions[action].lane, code, "clEnqueueReadBuffer", v->op, err);
}

static tn_status copy_one(gpu_run *run, uint32_t o, uint32_t action, tn_error *err)
{
  const gpu_slot *v = slot_of(run, o);
  const gpu_out *out = &run->schedule->io.outs[o];
  gpu_memory from = gpu_memory_of(run->in, v->root, out->site);
  gpu_links l = gpu_step_links(run, action);
  cl_int code = cl.EnqueueCopyBuffer(l.queue, from.mem, run->blocks[out->dynamic].mem, from.at, 0, v->bytes, l.n_waits,
                                     l.waits, l.event);
  return code == CL_SUCCESS
             ? TN_OK
             : gpu_step_failed(run, run->schedule->work.actions[action].lane, code, "clEnqueueCopyBuffer", v->op, err);
}

/* The output stays where it is. Later actions of the lane rely on its waits, so these are enqueued. */
static tn_status leave_one(gpu_run *run, uint32_t o, uint32_t action, tn_error *err)
{
  const gpu_action *a = &run->schedule->work.actions[action];
  if (a->n_waits == 0) return TN_OK;
  gpu_links l = gpu_step_links(run, action);
  cl_int code = cl.EnqueueMarkerWithWaitList(l.queue, l.n_waits, l.waits, l.event);
  return code == CL_SUCCESS
             ? TN_OK
             : gpu_step_failed(run, a->lane, code, "clEnqueueMarkerWithWaitList", slot_of(run, o)->op, err);
}

/* Whether it becomes a tensor on the device: not if the caller gave a tensor for it. */
static bool stays(gpu_run *run, uint32_t o)
{
  uint8_t how = run->schedule->io.outs[o].how;
  return (how == GPU_OUT_DYNAMIC || how == GPU_OUT_COPY || how == GPU_OUT_FED) && given_for(run, o) == NULL;
}

static tn_status outputs_read(gpu_run *run, uint32_t action, tn_error *err)
{
  uint32_t o = run->schedule->work.actions[action].id;
  if (!stays(run, o)) return read_one(run, o, action, err);
  return run->schedule->io.outs[o].how == GPU_OUT_COPY ? copy_one(run, o, action, err) : leave_one(run, o, action, err);
}

/* ---- giving ---- */

static tn_status copy_strings(tn_tensor *to, const tn_view *from, tn_error *err)
{
  tn_status st = TN_OK;
  if (from->dtype != TN_STRING)
    return tn_error_set(err, TN_UNIMPLEMENTED, "an output of %s into a given tensor", tn_dtype_name(from->dtype));
  for (int64_t i = 0; st == TN_OK && i < from->count; i++) {
    size_t n;
    const char *text = tn_string_data((const tn_string *)from->data + i, &n);
    st = tn_string_set((tn_string *)tn_tensor_data(to) + i, text, n, err);
  }
  return st;
}

static tn_status copy_plain(gpu_run *run, uint32_t o, const tn_view *from, tn_error *err)
{
  tn_tensor *given = given_for(run, o);
  size_t bytes = (size_t)from->count * tn_dtype_size(from->dtype);
  if (given == NULL)
    return tn_tensor_from_data(from->dtype, from->dims, from->rank, from->data, bytes, &run->outputs[o], err);
  if (bytes > 0) memcpy(tn_tensor_data(given), from->data, bytes);
  return TN_OK;
}

/* A tensor made by the step: handed over if there is no other reference to it. */
static tn_status give_tensor(gpu_run *run, uint32_t o, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_slot *v = slot_of(run, o);
  const tn_view *view = &run->in->views[s->io.outs[o].value];
  tn_tensor *given = given_for(run, o), *t = run->tensors[v->root], *copy = NULL;
  bool last = v->root == s->io.outs[o].value;
  if (given != NULL) {
    tn_status st = check_given(run, o, given, err);
    if (st == TN_OK && (tn_tensor_rank(given) != view->rank || tn_tensor_elements(given) != view->count))
      st = tn_error_set(err, TN_INVALID_ARGUMENT, "output %u: the tensor given for it has another shape", o);
    if (st != TN_OK) return st;
    return gpu_is_plain(v->dtype) ? copy_plain(run, o, view, err) : copy_strings(given, view, err);
  }
  for (uint32_t p = o + 1; p < s->io.n_outs; p++) last = last && s->slots[s->io.outs[p].value].root != v->root;
  if (last && tn_tensor_is_exclusive(t)) {
    run->outputs[o] = t;
    run->tensors[v->root] = NULL;
    return TN_OK;
  }
  if (gpu_is_plain(v->dtype)) return copy_plain(run, o, view, err);
  tn_status st = tn_tensor_copy(t, &copy, err);
  if (st == TN_OK) st = tn_tensor_reshape(copy, view->dims, view->rank, &run->outputs[o], err);
  tn_tensor_unref(copy);
  return st;
}

static tn_status give_host(gpu_run *run, uint32_t o, tn_error *err)
{
  const gpu_slot *v = slot_of(run, o);
  const tn_view *view = &run->in->views[run->schedule->io.outs[o].value];
  const gpu_slot *root = &run->schedule->slots[v->root];
  if (gpu_is_plain(v->dtype)) return copy_plain(run, o, view, err);
  tn_tensor *given = given_for(run, o), *copy = NULL;
  if (given != NULL) return copy_strings(given, view, err);
  const tn_tensor *t = root->kind == GPU_FROM_CONSTANT ? root->constant : run->values->tensors[v->root]; /* a feed */
  tn_status st = tn_tensor_copy(t, &copy, err);
  if (st == TN_OK) st = tn_tensor_reshape(copy, view->dims, view->rank, &run->outputs[o], err);
  tn_tensor_unref(copy);
  return st;
}

/* ---- what later segments read ---- */

/* A tensor with the memory of root. */
static tn_status root_tensor(gpu_run *run, uint32_t root, tn_tensor **out, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_slot *r = &s->slots[root];
  tn_tensor *t = NULL;
  tn_status st = TN_OK;
  if (r->kind == GPU_FROM_CONSTANT) t = (tn_tensor *)r->constant;
  else if (r->kind == GPU_FROM_OWN || r->kind == GPU_FROM_GIVEN) t = run->tensors[root];
  else if (r->straight) t = target(run, r->output);
  if (t != NULL) {
    *out = tn_tensor_ref(t);
    return TN_OK;
  }
  uint32_t dynamic = r->home == GPU_NONE ? GPU_NONE : gpu_place_at(s, r->home, root)->dynamic;
  if (dynamic != GPU_NONE) return gpu_tensor(&run->blocks[dynamic], NULL, r->dtype, r->dims, r->rank, out, err);
  st = tn_tensor_create(r->dtype, r->dims, r->rank, out, err);
  if (st == TN_OK && r->bytes > 0) memcpy(tn_tensor_data(*out), run->in->views[root].data, r->bytes);
  return st;
}

static tn_status hand_on(gpu_run *run, uint32_t v, tn_error *err)
{
  const gpu_slot *slot = &run->schedule->slots[v];
  tn_tensor **to = &run->values->tensors[v], **root = &run->values->tensors[slot->root], *host = NULL;
  tn_status st = *root == NULL ? root_tensor(run, slot->root, root, err) : TN_OK;
  if (st == TN_OK && *to == NULL)
    st = tn_tensor_reshape(*root, run->in->views[v].dims, run->in->views[v].rank, to, err);
  if (st != TN_OK || !run->schedule->executable->gives_shapes[v] || tn_tensor_data(*to) != NULL ||
      tn_tensor_bytes(*to) == 0)
    return st;
  st = tn_tensor_copy(*to, &host, err); /* shapes are read on the host */
  if (st != TN_OK) return st;
  tn_tensor_unref(*to);
  *to = host;
  return TN_OK;
}

static tn_view view_of(const tn_tensor *t)
{
  return (tn_view){ .data = tn_tensor_data(t), .dims = tn_tensor_dims(t), .count = tn_tensor_elements(t),
                    .dtype = tn_tensor_dtype(t), .rank = tn_tensor_rank(t), .buffer = tn_tensor_buffer(t) };
}

static tn_status outputs_hand_on(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  tn_status st = TN_OK;
  if (run->values->views == NULL) return TN_OK;
  for (uint32_t v = 0; st == TN_OK && v < s->n_slots; v++)
    if (gpu_hands_on(s, v)) st = hand_on(run, v, err);
  for (uint32_t v = 0; st == TN_OK && v < s->n_slots; v++)
    if (run->values->tensors[v] != NULL) run->values->views[v] = view_of(run->values->tensors[v]);
  return st;
}

/* ---- all of a step ---- */

/* Sends the outputs that the host has to the device that the plan was prepared for. Values that follow from
 * shapes alone stay: as a rule they are read on the host again. */
static tn_status outputs_send(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  const gpu_site *site = &s->sites[s->executable->placed_at];
  tn_status st = TN_OK;
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) {
    tn_tensor *t = run->outputs[o], *sent = NULL;
    const gpu_slot *root = &s->slots[s->slots[s->io.outs[o].value].root];
    if (t == NULL || tn_tensor_bytes(t) == 0 || root->kind == GPU_FROM_KNOWN) continue;
    if (gpu_tensor_memory(t, site->device, &(cl_mem){ 0 }, &(size_t){ 0 }, &(cl_event){ 0 })) continue;
    st = gpu_tensor_send(site->budget, t, &sent, err);
    if (st != TN_OK) break;
    tn_tensor_unref(t);
    run->outputs[o] = sent;
  }
  return st;
}

static tn_status outputs_give(gpu_run *run, tn_error *err)
{
  const gpu_schedule *s = run->schedule;
  tn_status st = outputs_hand_on(run, err);
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) {
    const gpu_slot *v = slot_of(run, o);
    uint32_t dynamic = s->io.outs[o].dynamic;
    if (s->io.outs[o].how == GPU_OUT_HOST) st = give_host(run, o, err);
    else if (s->io.outs[o].how == GPU_OUT_TENSOR) st = give_tensor(run, o, err);
    else if (stays(run, o) && s->io.outs[o].how == GPU_OUT_FED)
      st = tn_tensor_reshape(run->values->tensors[v->root], v->dims, v->rank, &run->outputs[o], err);
    else if (stays(run, o))
      st = gpu_tensor(&run->blocks[dynamic], NULL, v->dtype, v->dims, v->rank, &run->outputs[o], err);
  }
  if (st == TN_OK && s->executable->placed) st = outputs_send(run, err);
  for (uint32_t o = 0; st == TN_OK && o < s->io.n_outs; o++) {
    if (run->outputs[o] != NULL) tn_step_set_output(run->step, s->io.outs[o].number, run->outputs[o]);
    run->outputs[o] = NULL;
  }
  return st;
}

const gpu_output_policy gpu_step_outputs = { .begin = outputs_begin, .read = outputs_read, .give = outputs_give };
