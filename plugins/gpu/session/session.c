/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's part of a session: its devices, a budget on each, workers for nodes on the CPU. */
#include "session/session.h"

#include "device/base.h"
#include "device/tensor.h"
#include "node/table.h"

#include <stdatomic.h>
#include <stdio.h>

#define NAME_BYTES 80
#define MOST_CPUS 65535

/* ---- devices ---- */

static tn_status open_devices(tn_runtime_session *s, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = s->settings.n_devices;
  if (n == 0) return TN_OK;
  s->budgets = gpu_new(n, sizeof *s->budgets);
  if (s->budgets == NULL) return gpu_no_memory(err, "a session");
  for (size_t i = 0; i < n && st == TN_OK; i++) {
    gpu_device *d = s->settings.devices[i];
    st = gpu_device_use(d, err);
    if (st != TN_OK) break;
    s->n_used++;
    st = gpu_budget_create(d, gpu_settings_limit(&s->settings, d), &s->budgets[i], err);
  }
  return st;
}

/* After the contexts were made, so that CLBlast, which is opened here, is unloaded before their driver when
 * the process ends. */
static void tell_products(const tn_runtime_session *s)
{
  for (size_t i = 0; i < s->settings.n_devices; i++) {
    const gpu_device *d = s->settings.devices[i];
    const char *clblast = gpu_clblast_for(d, s->settings.blas);
    tn_log(TN_LOG_INFO, "gpu: large products on '%s' are computed by %s", d->name,
           clblast != NULL ? clblast : "own kernels");
  }
}

/* The names are stored after the list and live as long as the session. */
static tn_status list(tn_runtime_session *s, size_t n_cpus, tn_error *err)
{
  size_t n = n_cpus + s->settings.n_devices;
  tn_device_info *info = gpu_new(n, sizeof *info + NAME_BYTES);
  if (info == NULL) return gpu_no_memory(err, "a session");
  char *names = (char *)(info + n);
  for (size_t i = 0; i < n; i++) {
    bool cpu = i < n_cpus;
    char *name = names + i * NAME_BYTES;
    const char *type = cpu ? "CPU" : "GPU";
    snprintf(name, NAME_BYTES, "/job:localhost/replica:0/task:0/device:%s:%zu", type, cpu ? i : i - n_cpus);
    info[i] = (tn_device_info){ .struct_size = sizeof *info, .name = name, .type = type };
    if (cpu) continue;
    const gpu_device *d = s->settings.devices[i - n_cpus];
    info[i].memory_bytes = gpu_settings_limit(&s->settings, d);
    info[i].model = d->name;
  }
  s->listed = info;
  s->n_listed = n;
  return TN_OK;
}

tn_status gpu_list_devices(const tn_session_factory *self, tn_runtime_session *s, size_t i, tn_device_info *out,
                           tn_error *err)
{
  (void)self, (void)err;
  if (i >= s->n_listed) return TN_OUT_OF_RANGE;
  size_t room = out->struct_size, size = room < sizeof *out ? room : sizeof *out; /* an older library's is shorter */
  memcpy(out, &s->listed[i], size);
  out->struct_size = room;
  return TN_OK;
}

const char *gpu_device_listed(const tn_runtime_session *s, size_t i)
{
  size_t n_cpus = s->n_listed - s->settings.n_devices;
  return i < s->settings.n_devices ? s->listed[n_cpus + i].name : NULL;
}

tn_status gpu_devices_check(const tn_runtime_session *session, tn_error *err)
{
  for (size_t k = 0; k < session->settings.n_devices; k++) {
    const gpu_device *d = session->settings.devices[k];
    if (atomic_load(&d->lost))
      return tn_error_set(err, TN_UNAVAILABLE, "device '%s' was lost: make a new session", d->name);
  }
  return TN_OK;
}

uint32_t gpu_feed_site(const tn_runtime_session *s, const tn_tensor *tensor)
{
  for (uint32_t k = 0; k < s->settings.n_devices; k++)
    if (gpu_tensor_memory(tensor, s->settings.devices[k], &(cl_mem){ 0 }, &(size_t){ 0 }, &(cl_event){ 0 })) return k;
  return GPU_NONE;
}

/* The answer before any schedule has the node. */
static const char *guess(const tn_runtime_session *session, const tn_operation *op, const char **reason)
{
  if (session->settings.placement == GPU_PLACE_HOST) *reason = "the setting placement=host";
  else if (gpu_op_find(op) == NULL) *reason = "the device has no kernel for it";
  else {
    if (session->settings.placement == GPU_PLACE_COST) *reason = "its costs decide when shapes are known";
    return gpu_device_listed(session, 0);
  }
  return NULL;
}

const char *gpu_node_device(const tn_session_factory *self, tn_runtime_session *session, const tn_operation *op,
                            const char **reason)
{
  const char *device = NULL;
  (void)self;
  *reason = "";
  if (session->settings.n_devices == 0) return NULL;
  bool there = session->report != NULL && gpu_report_find(session->report, tn_operation_name(op), &device, reason);
  return there ? device : guess(session, op, reason);
}

/* ---- workers ---- */

static size_t count_pools(const tn_session_options *options)
{
  tn_error why = TN_ERROR_INIT;
  const char *name;
  int64_t threads;
  size_t n = 0;
  while (tn_session_options_get_item(options, "session_inter_op_pools", n, &name, &threads, &why) == TN_OK) n++;
  tn_error_clear(&why);
  return n;
}

/* Limits n to -1..INT32_MAX; every negative number means the same. */
static int32_t limited(int64_t n)
{
  if (n < -1) return -1;
  return n > INT32_MAX ? INT32_MAX : (int32_t)n;
}

/* S-CFG-10 to 16 */
static tn_status pool_config(const tn_session_options *o, size_t i, tn_kit_workers_config *out, tn_error *err)
{
  int64_t threads = 0, loops = 0;
  *out = (tn_kit_workers_config){ .struct_size = TN_KIT_WORKERS_CONFIG_SIZE, .spin_us = -1 };
  tn_status st = tn_session_options_get_int(o, "inter_op_threads", &threads, err);
  if (st == TN_OK) st = tn_session_options_get_int(o, "intra_op_threads", &loops, err);
  if (st == TN_OK) st = tn_session_options_get_bool(o, "use_per_session_threads", &out->own_pool, err);
  if (st == TN_OK && count_pools(o) > 0) {
    st = tn_session_options_get_item(o, "session_inter_op_pools", i, &out->name, &threads, err);
    out->own_pool = out->name == NULL || *out->name == '\0';
  }
  out->threads = limited(threads);
  out->loop_threads = limited(loops);
  return st;
}

static tn_status open_pools(tn_runtime_session *s, const tn_session_options *options, tn_error *err)
{
  size_t n = count_pools(options), n_pools = n > 0 ? n : 1;
  tn_status st = TN_OK;
  s->pools = gpu_new(n_pools, sizeof *s->pools);
  if (s->pools == NULL) return gpu_no_memory(err, "a session");
  s->n_pools = n_pools;
  for (size_t i = 0; i < n_pools && st == TN_OK; i++) {
    tn_kit_workers_config config;
    st = pool_config(options, i, &config, err);
    if (st != TN_OK || config.threads == 1 || config.threads < 0) continue;
    st = tn_kit_workers_open(&config, &s->pools[i], err);
    if (st != TN_OK && n > 0) tn_error_prefix(err, "option session_inter_op_pools, pool %zu", i);
  }
  return st;
}

tn_kit_workers *gpu_workers(const tn_session_factory *self, tn_runtime_session *s, int32_t pool)
{
  (void)self;
  return pool < 0 || (size_t)pool >= s->n_pools ? NULL : s->pools[pool];
}

/* ---- the session ---- */

static tn_status open_all(tn_runtime_session *s, const tn_session_options *options, tn_error *err)
{
  int64_t n_cpus = gpu_settings_cpus(options);
  if (n_cpus > MOST_CPUS)
    return tn_error_set(err, TN_RESOURCE_EXHAUSTED,
                        "option device_count asks for %lld devices of type CPU, a session has at most %d",
                        (long long)n_cpus, MOST_CPUS);
  tn_status st = gpu_settings_read(options, &s->settings, err);
  if (st == TN_OK) st = list(s, (size_t)n_cpus, err);
  if (st == TN_OK) st = tn_session_options_get_int(options, "max_layouts", &s->max_layouts, err);
  if (st == TN_OK) st = open_pools(s, options, err);
  if (st == TN_OK) st = gpu_report_create(&s->report, err);
  if (st == TN_OK) st = open_devices(s, err);
  if (st == TN_OK) tell_products(s);
  return st;
}

tn_status gpu_new_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *err)
{
  *out = NULL;
  tn_status st = gpu_devices_forked(err);
  if (st != TN_OK) return st;
  tn_runtime_session *s = gpu_new(1, sizeof *s);
  if (s == NULL) return gpu_no_memory(err, "a session");
  st = open_all(s, options, err);
  if (st == TN_OK) *out = s;
  else gpu_destroy_session(self, s);
  return st;
}

void gpu_destroy_session(const tn_session_factory *self, tn_runtime_session *s)
{
  (void)self;
  for (size_t i = 0; i < s->n_pools; i++) tn_kit_workers_close(s->pools[i]);
  for (size_t i = 0; i < s->n_used; i++) {
    gpu_budget_unref(s->budgets[i]);
    gpu_device_leave(s->settings.devices[i]);
  }
  tn_free(s->pools);
  tn_free(s->budgets);
  tn_free(s->listed);
  gpu_report_destroy(s->report);
  gpu_settings_fini(&s->settings);
  tn_free(s);
}
