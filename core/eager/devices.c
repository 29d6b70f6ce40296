/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of an eager session, and where operations run. They are those of type CPU: their memory is the host's, so a tensor
 * is copied from one to another by a handle that shares it. Each slot says on which device its tensor is. */
#include <core/eager/eager.h>
#include <tenon/process.h>

#define HOST_NAME "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":"
#define MOST_DEVICES (TN__EAGER_ANYWHERE - 1)

/* ---- the list ---- */

static int64_t count_cpus(const tn_session_options *o)
{
  int64_t number = 1;
  for (size_t i = 0; i < tn__option_n_items(o, TN__OPTION_device_count); i++) {
    const char *type = tn__option_item_at(o, TN__OPTION_device_count, i, &number);
    if (strcmp(type, TN__HOST_DEVICE) == 0) return number;
  }
  return 1;
}

/* S-CFG-19 */
static tn_status is_seen(const tn_session_options *o, const tn__device_name *device, bool *seen, tn_error *err)
{
  size_t n = tn__option_n_items(o, TN__OPTION_device_filters);
  *seen = n == 0;
  for (size_t i = 0; i < n; i++) {
    int64_t unused;
    const char *text = tn__option_item_at(o, TN__OPTION_device_filters, i, &unused);
    tn__device_name asked;
    if (!tn__device_parse(text, strlen(text), &asked))
      return tn_error_set(err, TN_INVALID_ARGUMENT, "option device_filters: '%.200s' is malformed, wanted as '/device:CPU:0'",
                          text);
    if (tn__device_matches(&asked, device)) *seen = true;
  }
  return TN_OK;
}

static tn_status add(tn_eager_session *s, const char *name, tn_error *err)
{
  tn__device_name parsed;
  bool seen;
  if (name == NULL || !tn__device_parse(name, strlen(name), &parsed))
    return tn_error_set(err, TN_INTERNAL, "runtime '%s': device '%.200s' has no well-formed name", s->on.info.name,
                        name == NULL ? "" : name);
  tn_status st = is_seen(s->on.options, &parsed, &seen, err);
  if (st != TN_OK || !seen) return st;
  if (s->n_devices == MOST_DEVICES)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "an eager session has at most %d devices", MOST_DEVICES);
  char *copy = tn__strdup(name);
  if (copy == NULL || !tn__grow((void **)&s->devices, &s->device_room, s->n_devices + 1, sizeof *s->devices)) {
    tn__strfree(copy);
    return tn__no_memory(err, "devices", sizeof *s->devices);
  }
  tn__eager_device *d = &s->devices[s->n_devices++];
  d->name = copy;
  tn__device_parse(copy, strlen(copy), &d->parsed);
  return TN_OK;
}

static tn_status list_cpus(tn_eager_session *s, tn_error *err)
{
  char name[sizeof HOST_NAME + 24];
  tn_status st = TN_OK;
  int64_t n = count_cpus(s->on.options);
  for (int64_t i = 0; i < n && st == TN_OK; i++) {
    tn__snprintf(name, sizeof name, HOST_NAME "%lld", (long long)i);
    st = add(s, name, err);
  }
  return st;
}

static tn_status list_runtime(tn_eager_session *s, tn_error *err)
{
  for (size_t i = 0;; i++) {
    tn_device_info info = { .struct_size = sizeof info };
    tn_status st = s->on.slots->list_devices(s->on.self, s->on.runtime, i, &info, err);
    if (st == TN_OUT_OF_RANGE) break;
    st = tn__factory_status(s->on.factory, "list_devices", st, err);
    if (st == TN_OK && info.type != NULL && strcmp(info.type, TN__HOST_DEVICE) == 0) st = add(s, info.name, err);
    if (st != TN_OK) return st;
  }
  tn__error_reset(err);
  return TN_OK;
}

tn_status tn__eager_devices_open(tn_eager_session *s, tn_error *err)
{
  tn_status st = s->on.slots->list_devices != NULL ? list_runtime(s, err) : list_cpus(s, err);
  if (st != TN_OK || s->n_devices > 0) return st;
  return tn_error_set(err, TN_NOT_FOUND, "the eager session has no device of type " TN__HOST_DEVICE "%s", /* S-CFG-18 */
                      tn__option_n_items(s->on.options, TN__OPTION_device_filters) > 0 ? ": device_filters hide them all" : "");
}

void tn__eager_devices_close(tn_eager_session *s)
{
  for (uint32_t i = 0; i < s->n_devices; i++) tn__strfree(s->devices[i].name);
  tn__free(s->devices, s->device_room * sizeof *s->devices);
}

tn_status tn__eager_device_find(const tn_eager_session *s, const char *device, uint16_t *out, tn_error *err)
{
  tn__device_name asked;
  *out = TN__EAGER_ANYWHERE;
  if (device == NULL || device[0] == 0) return TN_OK;
  if (!tn__device_parse(device, strlen(device), &asked))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "malformed device '%.200s', wanted as '/device:CPU:0'", device);
  for (uint32_t i = 0; i < s->n_devices && *out == TN__EAGER_ANYWHERE; i++)
    if (tn__device_matches(&asked, &s->devices[i].parsed)) *out = (uint16_t)i;
  if (*out != TN__EAGER_ANYWHERE) return TN_OK;
  return tn_error_set(err, TN_INVALID_ARGUMENT, "the eager session on runtime '%s' has no device '%.200s' that it can run "
                      "operations on", s->on.info.name, device);
}

/* ---- where an operation runs ---- */

/* That of the first resource; else the one on which all inputs are; else the default one. */
static uint16_t choose(tn__eager_slot *const *inputs, size_t n)
{
  bool same = true;
  for (size_t i = 0; i < n; i++) {
    if (inputs[i]->dtype == TN_RESOURCE) return inputs[i]->device;
    same = same && inputs[i]->device == inputs[0]->device;
  }
  return n > 0 && same ? inputs[0]->device : 0;
}

/* S-EAG-26 */
static tn_status move(const tn_eager_op *op, size_t i, const tn__eager_slot *input, uint16_t to, tn_error *err)
{
  const tn_eager_session *s = op->session;
  const char *from = s->devices[input->device].name, *wanted = s->devices[to].name;
  bool refused = s->policy == TN_EAGER_EXPLICIT || (s->policy == TN_EAGER_SILENT_FOR_INT32 && input->dtype != TN_INT32);
  if (refused)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "eager op '%s' runs on '%s', its input %zu (%s) is on '%s', and the session's "
                        "device policy does not copy it: use tn_eager_copy_to_device", op->name, wanted, i,
                        tn_dtype_name(input->dtype), from);
  if (s->policy == TN_EAGER_WARN)
    tn_log(TN_LOG_WARNING, "eager op '%s' runs on '%s', its input %zu (%s) is copied from '%s'", op->name, wanted, i,
           tn_dtype_name(input->dtype), from);
  return TN_OK;
}

tn_status tn__eager_place(const tn_eager_op *op, tn__eager_slot *const *inputs, size_t n, uint16_t *out, tn_error *err)
{
  *out = op->place != TN__EAGER_ANYWHERE ? op->place : choose(inputs, n);
  for (size_t i = 0; i < n; i++) {
    if (inputs[i]->device == *out || inputs[i]->dtype == TN_RESOURCE) continue; /* a resource stays where it is */
    tn_status st = move(op, i, inputs[i], *out, err);
    if (st != TN_OK) return st;
  }
  return TN_OK;
}

void tn__eager_set_device(const tn_eager_session *s, const tn_eager_handle *handles, size_t n, uint16_t device)
{
  for (size_t i = 0; i < n; i++) tn__eager_slot_of(s, handles[i])->device = device;
}
