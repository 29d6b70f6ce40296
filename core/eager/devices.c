/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of an eager session, and where operations run. Each slot stores the device of its tensor. All
 * CPUs use host memory, so copying a tensor from one to another makes a handle that shares the tensor. Other
 * devices belong to runtimes that can run a single operation there and leave its outputs there. */
#include <core/eager/devices.h>
#include <core/eager/slots.h>
#include <core/eager/sweep.h>
#include <tenon/process.h>

#define HOST_NAME "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":"
#define MOST_DEVICES (TN__EAGER_ANYWHERE - 1)

/* ---- the list ---- */

/* The number of CPUs that the option device_count gives; 1 by default. */
static int64_t count_cpus(const tn_session_options *o)
{
  int64_t number = 1;
  for (size_t i = 0; i < tn__option_n_items(o, TN__OPTION_device_count); i++) {
    const char *type = tn__option_item_at(o, TN__OPTION_device_count, i, &number);
    if (strcmp(type, TN__HOST_DEVICE) == 0) return number;
  }
  return 1;
}

/* Whether the filters of the options let the session see a device. S-CFG-19 */
static tn_status is_seen(const tn_session_options *o, const tn__device_name *device, bool *seen, tn_error *err)
{
  size_t n = tn__option_n_items(o, TN__OPTION_device_filters);
  *seen = n == 0;
  for (size_t i = 0; i < n; i++) {
    int64_t unused;
    const char *text = tn__option_item_at(o, TN__OPTION_device_filters, i, &unused);
    tn__device_name asked;
    if (!tn__device_parse(text, strlen(text), &asked))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "option device_filters: '%.200s' is malformed, wanted as '/device:CPU:0'", text);
    if (tn__device_matches(&asked, device)) *seen = true;
  }
  return TN_OK;
}

static void free_texts(tn__eager_device *d)
{
  tn__strfree(d->name);
  tn__strfree(d->type);
  tn__strfree(d->model);
}

/* Appends a copy of a device to the list. number: in the runtime's list. */
static tn_status keep(tn_eager_session *s, const tn_device_info *info, size_t number, tn_error *err)
{
  tn__eager_device d = { .name = tn__strdup(info->name),
                         .type = tn__strdup(info->type),
                         .number = number,
                         .model = tn__strdup(info->model == NULL ? "" : info->model),
                         .memory_bytes = info->memory_bytes };
  if (d.name == NULL || d.type == NULL || d.model == NULL ||
      !tn__grow((void **)&s->runtime.devices, &s->runtime.device_room, s->n_devices + 1, sizeof *s->runtime.devices)) {
    free_texts(&d);
    return tn__no_memory(err, "devices", sizeof *s->runtime.devices);
  }
  tn__device_parse(d.name, strlen(d.name), &d.parsed);
  s->runtime.devices[s->n_devices++] = d;
  return TN_OK;
}

/* Adds a device unless the filters hide it. */
static tn_status add(tn_eager_session *s, const tn_device_info *info, size_t number, tn_error *err)
{
  const char *name = info->name;
  tn__device_name parsed;
  bool seen;
  if (name == NULL || !tn__device_parse(name, strlen(name), &parsed))
    return tn_error_set(err, TN_INTERNAL, "runtime '%s': device '%.200s' has no well-formed name",
                        s->runtime.on.info.name, name == NULL ? "" : name);
  tn_status st = is_seen(s->runtime.on.options, &parsed, &seen, err);
  if (st != TN_OK || !seen) return st;
  if (s->n_devices == MOST_DEVICES)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "an eager session has at most %d devices", MOST_DEVICES);
  return keep(s, info, number, err);
}

static tn_status list_cpus(tn_eager_session *s, tn_error *err)
{
  char name[sizeof HOST_NAME + 24];
  tn_status st = TN_OK;
  int64_t n = count_cpus(s->runtime.on.options);
  for (int64_t i = 0; i < n && st == TN_OK; i++) {
    tn__snprintf(name, sizeof name, HOST_NAME "%lld", (long long)i);
    st = add(s, &(tn_device_info){ .name = name, .type = TN__HOST_DEVICE }, (size_t)i, err);
  }
  s->n_cpus = s->n_devices;
  return st;
}

/* Lists the devices of type CPU, or all others. */
static tn_status list_type(tn_eager_session *s, bool cpus, tn_error *err)
{
  for (size_t i = 0;; i++) {
    tn_device_info info = { .struct_size = sizeof info };
    tn_status st = tn__session_base_device(&s->runtime.on, i, &info, err);
    if (st == TN_OUT_OF_RANGE) break;
    st = tn__factory_status(s->runtime.on.factory, "list_devices", st, err);
    if (st == TN_OK && info.type != NULL && (strcmp(info.type, TN__HOST_DEVICE) == 0) == cpus)
      st = add(s, &info, i, err);
    if (st != TN_OK) return st;
  }
  tn__error_reset(err);
  return TN_OK;
}

/* CPUs first. Other devices are of use only if the runtime can prepare plans on them. */
static tn_status list_runtime(tn_eager_session *s, tn_error *err)
{
  tn_status st = list_type(s, true, err);
  s->n_cpus = s->n_devices;
  return st == TN_OK && s->runtime.prepare_on != NULL && s->n_cpus > 0 ? list_type(s, false, err) : st;
}

tn_status tn__eager_devices_open(tn_eager_session *s, tn_error *err)
{
  s->soft = tn__option_number(s->runtime.on.options, TN__OPTION_allow_soft_placement) != 0;
  tn_status st = s->runtime.on.slots->list_devices != NULL ? list_runtime(s, err) : list_cpus(s, err);
  if (st != TN_OK || s->n_devices > 0) return st;
  return tn_error_set(
      err, TN_NOT_FOUND, "the eager session has no device of type " TN__HOST_DEVICE "%s", /* S-CFG-18 */
      tn__option_n_items(s->runtime.on.options, TN__OPTION_device_filters) > 0 ? ": device_filters hide them all" : "");
}

void tn__eager_devices_close(tn_eager_session *s)
{
  for (uint32_t i = 0; i < s->n_devices; i++) free_texts(&s->runtime.devices[i]);
  tn__free(s->runtime.devices, s->runtime.device_room * sizeof *s->runtime.devices);
}

tn_status tn_eager_session_device(const tn_eager_session *s, size_t i, tn_device_info *out, tn_error *err)
{
  tn__error_reset(err);
  if (s == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_session_device: session is NULL");
  if (out == NULL || out->struct_size < sizeof out->struct_size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_eager_session_device: out is NULL or its struct_size is not set");
  if (i >= s->n_devices)
    return tn_error_set(err, TN_OUT_OF_RANGE, "device %zu requested, but the eager session has %u", i, s->n_devices);
  const tn__eager_device *d = &s->runtime.devices[i];
  tn_device_info full = { .name = d->name, .type = d->type, .memory_bytes = d->memory_bytes, .model = d->model };
  size_t room = out->struct_size, n = room < sizeof full ? room : sizeof full; /* rule P-26 */
  full.struct_size = room;
  memset(out, 0, room);
  memcpy(out, &full, n);
  return TN_OK;
}

tn_status tn__eager_device_find(const tn_eager_session *s, const char *device, uint16_t *out, tn_error *err)
{
  tn__device_name asked;
  *out = TN__EAGER_ANYWHERE;
  if (device == NULL || device[0] == 0) return TN_OK;
  if (!tn__device_parse(device, strlen(device), &asked))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "malformed device '%.200s', wanted as '/device:CPU:0'", device);
  for (uint32_t i = 0; i < s->n_devices && *out == TN__EAGER_ANYWHERE; i++)
    if (tn__device_matches(&asked, &s->runtime.devices[i].parsed)) *out = (uint16_t)i;
  if (*out != TN__EAGER_ANYWHERE) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT,
                      "the eager session on runtime '%s' has no device '%.200s' that it can run "
                      "operations on",
                      s->runtime.on.info.name, device);
}

/* ---- where an operation runs ---- */

/* The device of all inputs except those in `skip`; the default device if they are on several. */
static uint16_t common(tn__eager_slot *const *inputs, size_t n, uint64_t skip)
{
  uint16_t found = TN__EAGER_ANYWHERE;
  for (size_t i = 0; i < n; i++) {
    if (i < 64 && (skip >> i & 1) != 0) continue;
    if (found != TN__EAGER_ANYWHERE && inputs[i]->device != found) return 0;
    found = inputs[i]->device;
  }
  return found != TN__EAGER_ANYWHERE ? found : 0;
}

/* The device of the first resource; else the one that all inputs are on; else the default device. If the
 * inputs are on several devices, those that kernels read on the host, such as shapes, are left out. */
static tn_status choose(tn_eager_op *op, tn__eager_slot *const *inputs, const tn_dtype *dtypes, size_t n, uint16_t *out,
                        tn_error *err)
{
  bool same = true, away = false, mine;
  for (size_t i = 0; i < n; i++) {
    same = same && inputs[i]->device == inputs[0]->device;
    away = away || tn__eager_is_away(op->session, inputs[i]->device);
    *out = inputs[i]->device;
    if (inputs[i]->dtype == TN_RESOURCE) return TN_OK;
  }
  *out = n > 0 && same ? inputs[0]->device : 0;
  if (same || !away) return TN_OK;
  tn__eager_plan *plan;
  tn_status st = tn__eager_plan_get(op, dtypes, n, 0, &plan, &mine, err);
  if (st != TN_OK) return st;
  *out = common(inputs, n, plan->on_host);
  if (mine) tn__eager_plan_destroy(op->session, plan);
  return TN_OK;
}

/* Applies the device policy to an input that has to be copied: refuses, warns, or allows it.
 * S-EAG-26 */
static tn_status move(const tn_eager_op *op, size_t i, const tn__eager_slot *input, uint16_t to, tn_error *err)
{
  const tn_eager_session *s = op->session;
  const char *from = s->runtime.devices[input->device].name, *wanted = s->runtime.devices[to].name;
  bool refused = s->policy == TN_EAGER_EXPLICIT || (s->policy == TN_EAGER_SILENT_FOR_INT32 && input->dtype != TN_INT32);
  if (refused)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "eager op '%s' runs on '%s', its input %zu (%s) is on '%s', and the session's "
                        "device policy does not copy it: use tn_eager_copy_to_device",
                        op->name, wanted, i, tn_dtype_name(input->dtype), from);
  if (s->policy == TN_EAGER_WARN)
    tn_log(TN_LOG_WARNING, "eager op '%s' runs on '%s', its input %zu (%s) is copied from '%s'", op->name, wanted, i,
           tn_dtype_name(input->dtype), from);
  return TN_OK;
}

tn_status tn__eager_place(tn_eager_op *op, tn__eager_slot *const *inputs, const tn_dtype *dtypes, size_t n,
                          uint16_t *out, tn_error *err)
{
  *out = op->place;
  return op->place != TN__EAGER_ANYWHERE ? TN_OK : choose(op, inputs, dtypes, n, out, err);
}

tn_status tn__eager_admit(const tn_eager_op *op, const tn__eager_plan *plan, tn__eager_slot *const *inputs, size_t n,
                          uint16_t to, tn_error *err)
{
  uint64_t stay = tn__eager_is_away(op->session, to) ? plan->on_host : 0;
  for (size_t i = 0; i < n; i++) {
    if (inputs[i]->device == to || inputs[i]->dtype == TN_RESOURCE) continue; /* resources are never copied */
    if (i < 64 && (stay >> i & 1) != 0) continue;
    tn_status st = move(op, i, inputs[i], to, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

/* ---- copies ---- */

static bool is_host_memory(const tn_tensor *t)
{
  int32_t memory = t->buffer->desc.memory;
  return memory == TN_MEMORY_HOST || memory == TN_MEMORY_PINNED;
}

/* Copies a tensor to a device by the runtime's `copy`. */
static tn_status copy_out(tn_eager_session *s, const tn_tensor *t, uint16_t to, tn_tensor **out, tn_error *err)
{
  *out = NULL;
  tn__plugin_call calling = tn__session_base_call(&s->runtime.on, "its copy");
  tn__plugin_call_enter(&calling);
  tn_status st = s->runtime.copy(s->runtime.on.self, s->runtime.on.runtime, t, s->runtime.devices[to].number, out, err);
  tn__plugin_call_leave(&calling);
  if (st == TN_OK && *out == NULL)
    return tn_error_set(err, TN_INTERNAL, "runtime '%s': copy returned OK without a tensor", s->runtime.on.info.name);
  return st == TN_OK ? TN_OK : tn__factory_status(s->runtime.on.factory, "copy", st, err);
}

/* The copy is charged to the session's memory account. */
static tn_status copy(tn_eager_session *s, const tn_tensor *t, uint16_t to, tn_tensor **out, tn_error *err)
{
  tn__account *around = tn__account_now;
  tn__account_now = s->runtime.on.account;
  tn_status st = tn__eager_is_away(s, to) ? copy_out(s, t, to, out, err) : tn_tensor_copy(t, out, err);
  tn__account_now = around;
  return st;
}

/* All CPUs use host memory, so between them the tensor is shared. If memory is exhausted, deletes
 * unused tensors and tries once more. */
tn_status tn__eager_bring(tn_eager_session *s, tn_tensor *t, uint16_t from, uint16_t to, tn_tensor **out, tn_error *err)
{
  if (from == to || (!tn__eager_is_away(s, to) && is_host_memory(t))) {
    *out = tn_tensor_ref(t);
    return TN_OK;
  }
  tn_status st = copy(s, t, to, out, err);
  if (st != TN_RESOURCE_EXHAUSTED || !tn__eager_reclaim(s)) return st;
  tn__error_reset(err);
  return copy(s, t, to, out, err);
}

void tn__eager_set_device(const tn_eager_session *s, const tn_eager_handle *handles, size_t n, uint16_t device)
{
  for (size_t i = 0; i < n; i++) tn__eager_slot_of(s, handles[i])->device = device;
}
