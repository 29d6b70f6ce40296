/* SPDX-License-Identifier: Apache-2.0 */
/* Data that the device reads and no step changes. Constants and their forms are shared by all their users on
 * a device; values that follow from shapes, and the tables of nodes, are stored together in one block of the
 * schedule. */
#include "schedule/constants.h"

#include "device/base.h"
#include "node/built.h"
#include "schedule/schedule.h"

static struct {
  pthread_mutex_t mu;
  gpu_constant *first; /* guarded by mu, as are their counts */
} all = { PTHREAD_MUTEX_INITIALIZER, NULL };

static gpu_constant *find(const gpu_device *device, const tn_tensor *tensor, const void *form, uint64_t key,
                          size_t bytes)
{
  for (gpu_constant *c = all.first; c != NULL; c = c->next)
    if (c->device == device && c->tensor == tensor && c->form == form && c->key == key && c->bytes == bytes) return c;
  return NULL;
}

static tn_status write_block(gpu_device *device, cl_command_queue queue, const gpu_block *to, size_t at,
                             const void *data, size_t bytes, tn_error *err)
{
  if (bytes == 0) return TN_OK;
  cl_int code = cl.EnqueueWriteBuffer(queue, to->mem, CL_TRUE, at, bytes, data, 0, NULL, NULL);
  return code == CL_SUCCESS ? TN_OK : gpu_cl_error(err, code, "clEnqueueWriteBuffer", device->name);
}

static tn_status make(gpu_budget *budget, gpu_device *device, cl_command_queue queue, const void *data, gpu_constant *c,
                      tn_error *err)
{
  tn_status st = gpu_alloc(budget, c->bytes, &c->block, err);
  if (st == TN_OK) st = write_block(device, queue, &c->block, 0, data, c->bytes, err);
  if (st != TN_OK) {
    gpu_free(&c->block);
    return st;
  }
  c->next = all.first;
  all.first = c;
  tn_tensor_ref((tn_tensor *)c->tensor);
  return TN_OK;
}

/* As make, with a form of the elements that is packed first. */
static tn_status make_packed(gpu_budget *budget, gpu_device *device, cl_command_queue queue, const gpu_pack *pack,
                             gpu_constant *c, tn_error *err)
{
  const tn_tensor *t = c->tensor;
  const gpu_value from = { .dtype = tn_tensor_dtype(t),
                           .rank = tn_tensor_rank(t),
                           .dims = tn_tensor_dims(t),
                           .count = tn_tensor_elements(t),
                           .bytes = tn_tensor_bytes(t),
                           .host = tn_tensor_data(t),
                           .constant = true };
  void *data = tn_alloc(pack->bytes == 0 ? 1 : pack->bytes);
  if (data == NULL)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a packed constant: %zu bytes", pack->bytes);
  tn_status st = pack->pack(pack->user, &from, data, err);
  if (st == TN_OK) st = make(budget, device, queue, data, c, err);
  tn_free(data);
  return st;
}

tn_status gpu_constant_get(gpu_budget *budget, gpu_device *device, cl_command_queue queue, const tn_tensor *tensor,
                           const gpu_pack *pack, gpu_constant **out, tn_error *err)
{
  const void *form;
  uint64_t key = pack == NULL ? 0 : pack->key;
  size_t bytes = pack == NULL ? tn_tensor_bytes(tensor) : pack->bytes;
  *out = NULL;
  memset(&form, 0, sizeof form);
  if (pack != NULL) memcpy(&form, &pack->pack, sizeof form); /* the address of a function identifies a form */
  pthread_mutex_lock(&all.mu);
  gpu_constant *c = find(device, tensor, form, key, bytes);
  tn_status st = TN_OK;
  if (c == NULL) {
    c = gpu_new(1, sizeof *c);
    if (c == NULL) {
      st = gpu_no_memory(err, "a constant");
    } else {
      *c = (gpu_constant){ .device = device, .tensor = tensor, .form = form, .key = key, .bytes = bytes };
      st = pack != NULL ? make_packed(budget, device, queue, pack, c, err)
                        : make(budget, device, queue, tn_tensor_data(tensor), c, err);
      if (st != TN_OK) tn_free(c);
    }
  }
  if (st == TN_OK) {
    c->n_users++;
    *out = c;
  }
  pthread_mutex_unlock(&all.mu);
  return st;
}

void gpu_constant_put(gpu_constant *constant)
{
  if (constant == NULL) return;
  pthread_mutex_lock(&all.mu);
  bool last = --constant->n_users == 0;
  gpu_constant **at = &all.first;
  while (last && *at != constant) at = &(*at)->next;
  if (last) *at = constant->next;
  pthread_mutex_unlock(&all.mu);
  if (!last) return;
  gpu_free(&constant->block);
  tn_tensor_unref((tn_tensor *)constant->tensor);
  tn_free(constant);
}

/* ---- of a schedule ---- */

static size_t rounded(size_t bytes) { return (bytes + GPU_ALIGN - 1) / GPU_ALIGN * GPU_ALIGN; }

/* Value v follows from the shapes, and the site reads it. */
static bool is_known(const gpu_schedule *s, uint32_t site, uint32_t v)
{
  return s->slots[v].kind == GPU_FROM_KNOWN && gpu_place_at(s, site, v)->span.first != GPU_NONE &&
         s->slots[v].bytes > 0;
}

static tn_status make_packs(gpu_schedule *s, gpu_item *item, cl_command_queue queue, tn_error *err)
{
  gpu_site *site = &s->sites[item->site];
  tn_status st = TN_OK;
  uint32_t id = 0;
  item->packs = gpu_new(item->built->n_packs + 1, sizeof *item->packs);
  item->tables = gpu_new(item->built->n_packs + 1, sizeof *item->tables);
  if (item->packs == NULL || item->tables == NULL) return gpu_no_memory(err, "a schedule");
  for (gpu_pack *p = item->built->packs; st == TN_OK && p != NULL; p = p->next, id++) {
    if (p->input == UINT32_MAX) {
      item->tables[id] = site->statics_bytes;
      site->statics_bytes += rounded(p->bytes);
      continue;
    }
    const gpu_slot *v = &s->slots[s->slots[item->in.inputs[p->input]].source];
    st = gpu_constant_get(site->budget, site->device, queue, v->constant, p, &item->packs[id], err);
    if (st == TN_OK) s->memory.constant_bytes += p->bytes;
  }
  return st;
}

static bool is_at(const gpu_item *item, uint32_t site) { return item->where == GPU_ON_DEVICE && item->site == site; }

static tn_status make_constants(gpu_schedule *s, uint32_t k, cl_command_queue queue, tn_error *err)
{
  gpu_site *site = &s->sites[k];
  tn_status st = TN_OK;
  for (uint32_t i = 0; st == TN_OK && i < s->n_items; i++)
    if (is_at(&s->items[i], k)) st = make_packs(s, &s->items[i], queue, err);
  for (uint32_t v = 0; st == TN_OK && v < s->n_slots; v++) {
    const gpu_slot *slot = &s->slots[v];
    gpu_place *p = gpu_place_at(s, k, v);
    if (is_known(s, k, v)) {
      p->span.at = site->statics_bytes;
      site->statics_bytes += rounded(slot->bytes);
    } else if (slot->kind == GPU_FROM_CONSTANT && p->span.first != GPU_NONE && slot->bytes > 0) {
      st = gpu_constant_get(site->budget, site->device, queue, slot->constant, NULL, &p->on, err);
      s->memory.constant_bytes += slot->bytes;
    }
  }
  return st;
}

static tn_status write_statics(gpu_schedule *s, uint32_t k, cl_command_queue queue, tn_error *err)
{
  gpu_site *site = &s->sites[k];
  tn_status st = site->statics_bytes == 0 ? TN_OK : gpu_alloc(site->budget, site->statics_bytes, &site->statics, err);
  for (uint32_t v = 0; st == TN_OK && v < s->n_slots; v++)
    if (is_known(s, k, v))
      st = write_block(site->device, queue, &site->statics, gpu_place_at(s, k, v)->span.at, s->slots[v].data,
                       s->slots[v].bytes, err);
  for (uint32_t i = 0; i < s->n_items; i++) {
    const gpu_item *item = &s->items[i];
    uint32_t id = 0;
    if (!is_at(item, k)) continue;
    for (gpu_pack *p = item->built->packs; st == TN_OK && p != NULL; p = p->next, id++)
      if (p->input == UINT32_MAX)
        st = write_block(site->device, queue, &site->statics, item->tables[id], p->data, p->bytes, err);
  }
  return st;
}

static tn_status make_statics(gpu_schedule *s, uint32_t k, tn_error *err)
{
  const gpu_device *device = s->sites[k].device;
  cl_int code;
  cl_command_queue queue = cl.CreateCommandQueue(device->context, device->id, 0, &code);
  if (code != CL_SUCCESS) return gpu_cl_error(err, code, "clCreateCommandQueue", device->name);
  tn_status st = make_constants(s, k, queue, err);
  if (st == TN_OK) st = write_statics(s, k, queue, err);
  cl.ReleaseCommandQueue(queue);
  return st;
}

tn_status gpu_statics(gpu_schedule *s, tn_error *err)
{
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < s->n_sites; k++)
    if (s->sites[k].used) st = make_statics(s, k, err);
  return st;
}
