/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a schedule that one step at a time uses: arenas, kernels with their arguments, views for CPU
 * nodes, queues. */
#include "step/instance.h"

#include "device/base.h"
#include "node/built.h"
#include "step/fault.h"

/* ---- memory ---- */

static gpu_memory in_arena(const gpu_instance *in, uint32_t site, size_t at)
{
  const gpu_site *s = &in->schedule->sites[site];
  size_t part = at / s->part_bytes;
  return (gpu_memory){ in->arenas[part == 0 ? site : s->more_parts + part - 1].mem, at % s->part_bytes };
}

gpu_memory gpu_memory_of(const gpu_instance *in, uint32_t root, uint32_t site)
{
  const gpu_schedule *s = in->schedule;
  const gpu_slot *v = &s->slots[root];
  const gpu_place *p = gpu_place_at(s, site, root);
  gpu_memory any = { in->arenas[site].mem, 0 }; /* of what has no elements */
  if (v->kind == GPU_FROM_CONSTANT) return p->on == NULL ? any : (gpu_memory){ p->on->block.mem, 0 };
  if (v->kind == GPU_FROM_KNOWN) return v->bytes == 0 ? any : (gpu_memory){ s->sites[site].statics.mem, p->span.at };
  if (p->dynamic != GPU_NONE) return in->bound[p->dynamic];
  return p->span.first == GPU_NONE ? any : in_arena(in, site, p->span.at);
}

static void *aligned_memory(size_t bytes, void **memory)
{
  if (bytes > (size_t)PTRDIFF_MAX - 64) return NULL;
  *memory = tn_alloc(bytes + 64);
  return *memory == NULL ? NULL : (void *)(((uintptr_t)*memory + 63) / 64 * 64);
}

/* Host memory for values: a device's, which the others copy from and to as from any. */
static void *make_host_memory(gpu_instance *in)
{
  const gpu_schedule *s = in->schedule;
  if (s->memory.shared) return in->arenas[0].host;
  for (uint32_t k = 0; s->memory.host_bytes > 0 && k < s->n_sites; k++) {
    if (!s->sites[k].used) continue;
    if (gpu_pinned_alloc(s->sites[k].device, s->memory.host_bytes, &in->pinned, NULL) == TN_OK) return in->pinned.host;
    in->pinned = (gpu_block){ 0 };
    break;
  }
  return aligned_memory(s->memory.host_bytes, &in->host_memory);
}

static tn_status make_arena(gpu_instance *in, uint32_t k, tn_error *err)
{
  const gpu_site *site = &in->schedule->sites[k];
  size_t left = site->arena_bytes == 0 ? GPU_ALIGN : site->arena_bytes;
  tn_status st = TN_OK;
  for (uint32_t part = 0; st == TN_OK && left > 0; part++) {
    size_t bytes = left < site->part_bytes ? left : site->part_bytes;
    st = gpu_alloc(site->budget, bytes, &in->arenas[part == 0 ? k : site->more_parts + part - 1], err);
    left -= bytes;
  }
  return st;
}

static tn_status make_memory(gpu_instance *in, tn_error *err)
{
  gpu_schedule *s = in->schedule;
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < s->n_sites; k++)
    if (s->sites[k].used) st = make_arena(in, k, err);
  if (st != TN_OK) return st;
  in->host = make_host_memory(in);
  in->scratch = aligned_memory(s->memory.host_scratch, &in->scratch_memory);
  if (in->host == NULL || in->scratch == NULL)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a step: %zu bytes",
                        s->memory.host_bytes + s->memory.host_scratch);
  return TN_OK;
}

/* ---- kernels ---- */

gpu_memory gpu_argument(const gpu_instance *in, uint32_t c, const gpu_arg *g)
{
  const gpu_schedule *s = in->schedule;
  const gpu_item *item = &s->items[s->calls[c].item];
  const gpu_block *arena = &in->arenas[item->site], *statics = &s->sites[item->site].statics;
  switch (g->kind) {
  case GPU_ARG_FAULT: return (gpu_memory){ in->faults[item->site].mem, c }; /* the number in place of an offset */
  case GPU_ARG_INPUT: return gpu_memory_of(in, s->slots[item->in.inputs[g->index]].root, item->site);
  case GPU_ARG_OUTPUT: return gpu_memory_of(in, s->slots[item->in.outputs[g->index]].root, item->site);
  case GPU_ARG_SCRATCH: {
    gpu_memory m = in_arena(in, item->site, s->lanes[item->lane].scratch_at);
    return (gpu_memory){ m.mem, m.at + g->at };
  }
  default: break;
  }
  if (item->packs[g->index] != NULL) return (gpu_memory){ item->packs[g->index]->block.mem, 0 };
  return (gpu_memory){ statics->mem == NULL ? arena->mem : statics->mem, item->tables[g->index] };
}

cl_int gpu_set_memory(cl_kernel kernel, cl_uint arg, gpu_memory m)
{
  cl_ulong at = m.at;
  cl_int code = cl.SetKernelArg(kernel, arg, sizeof m.mem, &m.mem);
  return code == CL_SUCCESS ? cl.SetKernelArg(kernel, arg + 1, sizeof at, &at) : code;
}

static tn_status make_kernel(gpu_instance *in, uint32_t c, tn_error *err)
{
  const gpu_schedule *s = in->schedule;
  const gpu_launch *l = s->calls[c].launch;
  const gpu_item *item = &s->items[s->calls[c].item];
  cl_int code;
  cl_uint arg = 0;
  if (!gpu_has_kernel(l)) return TN_OK;
  in->kernels[c] = cl.CreateKernel(s->calls[c].program, l->kernel, &code);
  if (code != CL_SUCCESS) {
    in->kernels[c] = NULL;
    gpu_cl_error(err, code, "clCreateKernel", s->sites[item->site].device->name);
    return tn_error_prefix(err, "node '%s', kernel '%s'", tn_operation_name(item->in.op), l->kernel);
  }
  for (size_t a = 0; code == CL_SUCCESS && a < l->n_args; a++) {
    const gpu_arg *g = &l->args[a];
    bool pointer = g->kind != GPU_ARG_VALUE && g->kind != GPU_ARG_LOCAL;
    if (pointer) code = gpu_set_memory(in->kernels[c], arg, gpu_argument(in, c, g));
    else code = cl.SetKernelArg(in->kernels[c], arg, g->size, g->kind == GPU_ARG_VALUE ? l->values + g->at : NULL);
    arg += pointer ? 2 : 1;
  }
  if (code == CL_SUCCESS) return TN_OK;
  gpu_cl_error(err, code, "clSetKernelArg", s->sites[item->site].device->name);
  return tn_error_prefix(err, "node '%s', kernel '%s', argument %u", tn_operation_name(item->in.op), l->kernel, arg);
}

/* ---- views ---- */

/* Host memory of a value that is the same in all steps; NULL: it is not. */
static void *steady(const gpu_instance *in, uint32_t v)
{
  const gpu_slot *root = &in->schedule->slots[in->schedule->slots[v].root];
  if (root->kind == GPU_FROM_CONSTANT || root->kind == GPU_FROM_KNOWN) return (void *)root->data;
  if (root->unified) return in->host + gpu_place_at(in->schedule, 0, in->schedule->slots[v].root)->span.at;
  return root->host.first == GPU_NONE ? NULL : in->host + root->host.at;
}

static void make_views(gpu_instance *in)
{
  const gpu_schedule *s = in->schedule;
  for (uint32_t v = 0; v < s->n_slots; v++) {
    const gpu_slot *slot = &s->slots[v];
    in->views[v] = (tn_view){ .dims = slot->dims, .count = slot->count, .dtype = slot->dtype, .rank = slot->rank };
    if (slot->root == GPU_NONE) continue;
    const gpu_slot *root = &s->slots[slot->root];
    in->views[v].data = steady(in, v);
    if (in->views[v].data == NULL) in->views[v].data = in->host; /* without elements */
    if (root->kind == GPU_FROM_CONSTANT) in->views[v].buffer = tn_tensor_buffer(root->constant);
  }
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    tn_view **operands = in->operands + item->first_operand;
    if (item->where != GPU_ON_HOST) continue;
    for (uint32_t k = 0; k < item->in.n_inputs; k++) *operands++ = &in->views[item->in.inputs[k]];
    for (uint32_t k = 0; k < item->in.n_outputs; k++) *operands++ = &in->views[item->in.outputs[k]];
  }
}

/* ---- life ---- */

static void destroy(gpu_instance *in)
{
  if (in == NULL) return;
  for (uint32_t c = 0; in->kernels != NULL && c < in->schedule->n_calls; c++)
    if (in->kernels[c] != NULL) cl.ReleaseKernel(in->kernels[c]);
  for (uint32_t l = 0; l < in->schedule->n_lanes; l++) {
    if (in->queues != NULL && in->queues[l] != NULL) cl.ReleaseCommandQueue(in->queues[l]);
    if (in->timed != NULL && in->timed[l] != NULL) cl.ReleaseCommandQueue(in->timed[l]);
  }
  for (uint32_t k = 0; in->arenas != NULL && k < in->schedule->memory.n_arenas; k++) gpu_free(&in->arenas[k]);
  for (uint32_t k = 0; in->faults != NULL && k < in->schedule->n_sites; k++) gpu_free(&in->faults[k]);
  tn_free(in->arenas);
  tn_free(in->faults);
  tn_free(in->found);
  tn_free(in->queues);
  tn_free(in->timed);
  tn_free(in->busy);
  tn_free(in->events);
  tn_free(in->waits);
  gpu_pinned_free(&in->pinned);
  tn_free(in->host_memory);
  tn_free(in->scratch_memory);
  tn_free(in->kernels);
  tn_free(in->views);
  tn_free(in->operands);
  tn_free(in->bound);
  tn_free(in->tensors);
  tn_free(in->outputs);
  tn_free(in->blocks);
  tn_free(in->made);
  tn_free(in);
}

void gpu_instances_destroy(gpu_instance *first)
{
  for (gpu_instance *in = first, *next; in != NULL; in = next) {
    next = in->next;
    destroy(in);
  }
}

/* Binds placeholder memory to the arguments that each step binds again. */
static void bind_nothing(gpu_instance *in)
{
  for (uint32_t d = 0; d < in->schedule->n_dynamic; d++)
    in->bound[d] = (gpu_memory){ in->arenas[in->schedule->dynamics[d].site].mem, 0 };
}

static bool make_lists(const gpu_schedule *s, gpu_instance *in)
{
  in->arenas = gpu_new(s->memory.n_arenas + 1, sizeof *in->arenas);
  in->faults = gpu_new(s->n_sites + 1, sizeof *in->faults);
  in->found = gpu_new(s->n_sites + 1, sizeof *in->found);
  in->queues = gpu_new(s->n_lanes + 1, sizeof *in->queues);
  in->timed = gpu_new(s->n_lanes + 1, sizeof *in->timed);
  in->busy = gpu_new(s->n_lanes + 1, sizeof *in->busy);
  in->events = gpu_new(s->work.n_actions + 1, sizeof *in->events);
  in->waits = gpu_new(s->work.n_waits + 1, sizeof *in->waits);
  in->kernels = gpu_new(s->n_calls + 1, sizeof *in->kernels);
  in->views = gpu_new(s->n_slots + 1, sizeof *in->views);
  in->operands = gpu_new(s->n_operands + 1, sizeof *in->operands);
  in->bound = gpu_new(s->n_dynamic + 1, sizeof *in->bound);
  in->tensors = gpu_new(s->n_slots + 1, sizeof *in->tensors);
  in->outputs = gpu_new(s->io.n_outs + 1, sizeof *in->outputs);
  in->blocks = gpu_new(s->n_dynamic + 1, sizeof *in->blocks);
  in->made = gpu_new(s->max_outputs + 1, sizeof *in->made);
  if (in->faults == NULL || in->found == NULL || in->arenas == NULL || in->queues == NULL || in->timed == NULL ||
      in->busy == NULL || in->events == NULL || in->waits == NULL)
    return false;
  return in->kernels != NULL && in->views != NULL && in->operands != NULL && in->bound != NULL && in->tensors != NULL &&
         in->outputs != NULL && in->blocks != NULL && in->made != NULL;
}

tn_status gpu_instance_queue(const gpu_schedule *s, uint32_t lane, cl_command_queue_properties properties,
                             cl_command_queue *out, tn_error *err)
{
  const gpu_device *device = s->sites[s->lanes[lane].site].device;
  cl_int code;
  *out = cl.CreateCommandQueue(device->context, device->id, properties, &code);
  if (code == CL_SUCCESS) return TN_OK;
  *out = NULL;
  return gpu_cl_error(err, code, "clCreateCommandQueue", device->name);
}

static tn_status make(gpu_schedule *s, gpu_instance *in, tn_error *err)
{
  in->schedule = s;
  tn_status st = make_lists(s, in) ? make_memory(in, err) : gpu_no_memory(err, "a step");
  if (st != TN_OK) return st;
  bind_nothing(in);
  for (uint32_t l = 1; st == TN_OK && l < s->n_lanes; l++) st = gpu_instance_queue(s, l, 0, &in->queues[l], err);
  if (st == TN_OK) st = gpu_fault_create(in, err);
  for (uint32_t c = 0; st == TN_OK && c < s->n_calls; c++) st = make_kernel(in, c, err);
  if (st == TN_OK) make_views(in);
  return st;
}

tn_status gpu_instance_take(gpu_schedule *s, gpu_instance **out, tn_error *err)
{
  tn_executable *e = s->executable;
  pthread_mutex_lock(&e->mu);
  gpu_instance *in = s->entry.idle;
  if (in != NULL) s->entry.idle = in->next;
  pthread_mutex_unlock(&e->mu);
  *out = in;
  if (in != NULL) return TN_OK;
  in = gpu_new(1, sizeof *in);
  if (in == NULL) return gpu_no_memory(err, "a step");
  tn_status st = make(s, in, err);
  if (st == TN_OK) *out = in;
  else destroy(in);
  return st;
}

static void give_back(gpu_instance *in)
{
  tn_executable *e = in->schedule->executable;
  pthread_mutex_lock(&e->mu);
  in->next = in->schedule->entry.idle;
  in->schedule->entry.idle = in;
  pthread_mutex_unlock(&e->mu);
}

/* ---- the end of a step ---- */

static void clear_instance(gpu_instance *in)
{
  const gpu_schedule *s = in->schedule;
  for (uint32_t i = 0; i < s->memory.n_late; i++) {
    tn_tensor_unref(in->tensors[s->memory.late[i]]);
    in->tensors[s->memory.late[i]] = NULL;
  }
  for (uint32_t o = 0; o < s->io.n_outs; o++) {
    tn_tensor_unref(in->outputs[o]);
    in->outputs[o] = NULL;
  }
  for (uint32_t d = 0; d < s->n_dynamic; d++) gpu_free(&in->blocks[d]);
}

void gpu_instance_leave(gpu_instance *in, bool unharmed)
{
  clear_instance(in);
  if (unharmed) give_back(in);
  else destroy(in);
}
