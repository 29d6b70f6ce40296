/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a session and its pools: their options, checked when the session is opened. */
#include <core/session/session_internal.h>

#define MOST_DEVICES 65535

/* The list of most sessions, which needs no memory: one CPU. */
static tn__device the_cpu = { .name = "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":0",
                              .type = TN__HOST_DEVICE,
                              .parsed = { .job = { "localhost", 9 },
                                          .type = { TN__HOST_DEVICE, sizeof TN__HOST_DEVICE - 1 } } };
static const tn__devices one_cpu = { &the_cpu, 1, 1, 0 };

static void list_free(tn__devices *list)
{
  for (size_t i = 0; i < list->n; i++) {
    tn__strfree((char *)list->at[i].name);
    tn__strfree((char *)list->at[i].type);
    tn__strfree((char *)list->at[i].model);
  }
  tn__free(list->at, list->room * sizeof *list->at);
  tn__free(list, sizeof *list);
}

/* ---- filters ---- */

static tn_status check_filters(const tn_session_options *o, tn_error *err)
{
  for (size_t i = 0; i < tn__option_n_items(o, TN__OPTION_device_filters); i++) {
    int64_t unused;
    const char *text = tn__option_item_at(o, TN__OPTION_device_filters, i, &unused);
    tn__device_name name;
    if (!tn__device_parse(text, strlen(text), &name))
      return tn_error_set(err, TN_INVALID_ARGUMENT,
                          "option device_filters: '%.200s' is malformed, wanted as '/device:CPU:0'", text);
  }
  return TN_OK;
}

/* Whether the filters of the options let the session see a device: S-CFG-19 */
static bool is_seen(const tn_session_options *o, const tn__device_name *device)
{
  size_t n = tn__option_n_items(o, TN__OPTION_device_filters);
  bool seen = n == 0;
  for (size_t i = 0; i < n && !seen; i++) {
    int64_t unused;
    const char *text = tn__option_item_at(o, TN__OPTION_device_filters, i, &unused);
    tn__device_name asked;
    seen = tn__device_parse(text, strlen(text), &asked) && tn__device_matches(&asked, device);
  }
  return seen;
}

/* ---- the list ---- */

/* Adds a copy of a device, unless it is hidden. */
static tn_status add(const tn_session *s, tn__devices *list, const tn_device_info *info, tn_error *err)
{
  tn__device_name parsed;
  if (info->name == NULL || info->type == NULL || !tn__device_parse(info->name, strlen(info->name), &parsed))
    return tn_error_set(err, TN_INTERNAL, "runtime '%s': device '%.200s' has no %s", s->on.info.name,
                        info->name == NULL ? "" : info->name, info->type == NULL ? "type" : "well-formed name");
  if (!is_seen(s->on.options, &parsed)) return TN_OK;
  if (list->n == MOST_DEVICES)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "a session has at most %d devices", MOST_DEVICES);
  char *name = tn__strdup(info->name), *type = tn__strdup(info->type);
  char *model = info->model != NULL ? tn__strdup(info->model) : NULL;
  if (name == NULL || type == NULL || (model == NULL) != (info->model == NULL) ||
      !tn__grow((void **)&list->at, &list->room, list->n + 1, sizeof *list->at)) {
    tn__strfree(name);
    tn__strfree(type);
    tn__strfree(model);
    return tn__no_memory(err, "devices", sizeof *list->at);
  }
  tn__device *d = &list->at[list->n++];
  *d = (tn__device){ .name = name, .type = type, .memory_bytes = info->memory_bytes, .model = model };
  tn__device_parse(name, strlen(name), &d->parsed);
  return TN_OK;
}

/* The devices of a session whose runtime lists none. */
static tn_status list_cpus(const tn_session *s, int64_t cpus, tn__devices *list, tn_error *err)
{
  tn_status st = TN_OK;
  char name[80];
  for (int64_t i = 0; i < cpus && st == TN_OK; i++) {
    tn__snprintf(name, sizeof name, "/job:localhost/replica:0/task:0/device:" TN__HOST_DEVICE ":%lld", (long long)i);
    const tn_device_info info = { sizeof info, name, TN__HOST_DEVICE, 0, NULL };
    st = add(s, list, &info, err);
  }
  return st;
}

static tn_status list_runtime(const tn_session *s, tn__devices *list, tn_error *err)
{
  for (size_t i = 0;; i++) {
    tn_device_info info = { .struct_size = sizeof info };
    tn_status st = tn__session_base_device(&s->on, i, &info, err);
    if (st == TN_OUT_OF_RANGE) break;
    st = tn__factory_status(s->on.factory, "list_devices", st, err);
    if (st == TN_OK) st = add(s, list, &info, err);
    if (st != TN_OK) return st;
  }
  tn__error_reset(err);
  return TN_OK;
}

/* Finds the client device (S-CFG-20); a session without a CPU is refused. */
static tn_status find_client(const tn_session *s, tn__devices *list, tn_error *err)
{
  for (list->client = 0; list->client < list->n; list->client++)
    if (strcmp(list->at[list->client].type, TN__HOST_DEVICE) == 0) return TN_OK;
  return tn_error_set(
      err, TN_NOT_FOUND, "the session has no device of type " TN__HOST_DEVICE "%s",
      tn__option_n_items(s->on.options, TN__OPTION_device_filters) > 0 ? ": device_filters hide them all" : "");
}

static tn_status build(tn_session *s, int64_t cpus, tn__devices **out, tn_error *err)
{
  tn__devices *list = tn__zalloc(sizeof *list);
  *out = NULL;
  if (list == NULL) return tn__no_memory(err, "devices", sizeof *list);
  tn_status st = s->on.slots->list_devices != NULL ? list_runtime(s, list, err) : list_cpus(s, cpus, list, err);
  if (st == TN_OK) st = find_client(s, list, err);
  if (st == TN_OK) *out = list;
  else list_free(list);
  return st;
}

/* The list is made now if the options change it (filters, several CPUs), since it may be invalid.
 * Otherwise it is made at the first request, so most sessions never ask the runtime for its
 * devices. */
tn_status tn__devices_open(tn_session *s, tn_error *err)
{
  const tn_session_options *o = s->on.options;
  int64_t cpus = 1;
  bool filtered = tn__option_n_items(o, TN__OPTION_device_filters) > 0;
  for (size_t i = 0; i < tn__option_n_items(o, TN__OPTION_device_count); i++) {
    int64_t n;
    if (strcmp(tn__option_item_at(o, TN__OPTION_device_count, i, &n), TN__HOST_DEVICE) == 0) cpus = n;
  }
  if (cpus < 1) /* S-CFG-18 */
    return tn_error_set(err, TN_NOT_FOUND, "option device_count asks for %lld devices of type " TN__HOST_DEVICE
                        ", a session needs one", (long long)cpus);
  tn_status st = check_filters(o, err);
  if (st != TN_OK || (!filtered && (cpus == 1 || s->on.slots->list_devices != NULL))) return st;
  tn__devices *list;
  st = build(s, cpus, &list, err);
  atomic_init(&s->devices, list);
  return st;
}

/* Threads may make the list concurrently; the first one is kept. */
tn_status tn__devices_get(tn_session *s, const tn__devices **out, tn_error *err)
{
  tn__devices *list = atomic_load_explicit(&s->devices, memory_order_acquire), *mine;
  *out = list != NULL ? list : &one_cpu;
  if (list != NULL || s->on.slots->list_devices == NULL) return TN_OK;
  tn_status st = build(s, 1, &mine, err);
  if (st != TN_OK) return st;
  *out = mine;
  if (atomic_compare_exchange_strong(&s->devices, &list, mine)) return TN_OK;
  list_free(mine);
  *out = list;
  return TN_OK;
}

void tn__devices_close(tn_session *s)
{
  tn__devices *list = atomic_load(&s->devices);
  if (list != NULL) list_free(list);
}

/* ---- properties ---- */

/* Devices in the runtime's order, or those that the filters leave. */
static tn_status device_at(tn_session *s, size_t i, tn_device_info *out, tn_error *err)
{
  const tn__devices *list = atomic_load_explicit(&s->devices, memory_order_acquire);
  bool filtered = list != NULL && tn__option_n_items(s->on.options, TN__OPTION_device_filters) > 0;
  if (s->on.slots->list_devices != NULL && !filtered)
    return tn__session_base_device(&s->on, i, out, err);
  if (list == NULL) list = &one_cpu;
  if (i >= list->n) return TN_OUT_OF_RANGE;
  *out =
      (tn_device_info){ sizeof *out, list->at[i].name, list->at[i].type, list->at[i].memory_bytes, list->at[i].model };
  return TN_OK;
}

tn_status tn_session_device(tn_session *session, size_t i, tn_device_info *out, tn_error *err)
{
  tn__error_reset(err);
  if (session == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_device: session is NULL");
  if (out == NULL || out->struct_size < sizeof out->struct_size)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_session_device: out is NULL or its struct_size is not set");
  if (tn__forked()) return tn__session_forked(err);
  tn_device_info full = { .struct_size = sizeof full };
  tn_status st = device_at(session, i, &full, err);
  if (st == TN_OK && (full.name == NULL || full.type == NULL))
    st = tn_error_set(err, TN_INTERNAL, "device %zu has no %s", i, full.name == NULL ? "name" : "type");
  if (st == TN_OUT_OF_RANGE) return tn_error_set(err, st, "device %zu requested, but the session has fewer", i);
  st = tn__factory_status(session->on.factory, "list_devices", st, err);
  if (st != TN_OK) return st;
  size_t room = out->struct_size, n = room < sizeof full ? room : sizeof full; /* rule P-26 */
  full.struct_size = room;
  memset(out, 0, room);
  memcpy(out, &full, n);
  return TN_OK;
}

/* ---- threads ----
 *
 * Workers belong to the runtime. The session holds the pools that have a global name, since all sessions that name a
 * pool must agree on it, even if their runtimes have no use for workers. Pools without a name are the runtime's
 * alone. */

/* Takes a reference to a pool with a name; *out stays NULL for one without. */
static tn_status hold_pool(const char *name, int64_t threads, tn__pool **out, tn_error *err)
{
  uint32_t workers = threads > 0 ? (uint32_t)threads : 0; /* S-CFG-16 */
  if (threads == 0) workers = tn__usable_cpus();
  return *name == 0 ? TN_OK : tn__pool_named(name, workers, out, err);
}

tn_status tn__threads_open(tn_session *s, tn_error *err)
{
  tn__session_threads *t = &s->threads;
  size_t n = tn__option_n_items(s->on.options, TN__OPTION_session_inter_op_pools);
  if (n == 0) return TN_OK;
  t->pools = tn__alloc_array(n, sizeof *t->pools);
  if (t->pools == NULL) return tn__no_memory(err, "pools", n * sizeof *t->pools);
  t->n_pools = n;
  tn_status st = TN_OK;
  for (size_t i = 0; i < n && st == TN_OK; i++) {
    int64_t threads;
    const char *name = tn__option_item_at(s->on.options, TN__OPTION_session_inter_op_pools, i, &threads);
    st = hold_pool(name, threads, &t->pools[i], err);
    if (st != TN_OK) tn_error_prefix(err, "option session_inter_op_pools, pool %zu", i);
  }
  return st;
}

void tn__threads_close(tn_session *s)
{
  for (size_t i = 0; i < s->threads.n_pools; i++) tn__pool_unref(s->threads.pools[i]);
  tn__free(s->threads.pools, s->threads.n_pools * sizeof *s->threads.pools);
}
