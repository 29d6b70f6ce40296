/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime "gpu": the plugin's table and the slots of its factory. */
#include "device/driver.h"
#include "node/table.h"
#include "step/eager.h"
#include "step/prepare.h"

#include <string.h>

TN_PLUGIN_MANIFEST("runtime", "gpu", "GPU,CPU", "0", TN_VERSION_STRING, "Tenon", "")

/* P-40, S-PLG-07: without OpenCL or a device the name stays, with the reason. */
static tn_status init(tn_error *err)
{
  gpu_process *kept = gpu_process_keep();
  if (kept == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "gpu: no memory to look for devices");
  tn_status st = gpu_cl_load(err);
  if (st == TN_OK) st = gpu_devices_find(err);
  gpu_process_restore(kept);
  return st == TN_OK ? gpu_ops_register(err) : st;
}

static tn_status shutdown(tn_error *err) { return gpu_devices_forget(err); }

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return gpu_settings_check(options, NULL) == TN_OK;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self;
  gpu_settings_check(options, err);
}

static tn_status health(const tn_session_factory *self, tn_error *err)
{
  (void)self;
  return gpu_devices_forked(err);
}

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* Eager sessions: an operation is a step like any other, and may be one on the device. */
static const void *get_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime eager = {
    .struct_size = TN_EAGER_RUNTIME_SIZE, .execute = gpu_step, .prepare_on = gpu_prepare_on, .copy = gpu_copy_to
  };
  (void)self;
  return version == 1 && name != NULL && strcmp(name, TN_EAGER_EXTENSION) == 0 ? &eager : NULL;
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "gpu",
  .new_session = gpu_new_session,
  .accepts_options = accepts_options,
  .destroy_session = gpu_destroy_session,
  .prepare = gpu_prepare,
  .release = gpu_release,
  .step = gpu_step,
  .list_devices = gpu_list_devices,
  .reset = reset,
  .explain_options = explain_options,
  .health = health,
  .workers = gpu_workers,
  .get_extension = get_extension,
  .node_device = gpu_node_device,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "gpu",
  .version = TN_VERSION_STRING,
  .types = "GPU,CPU",
  .factories = factories,
  .n_factories = 1,
  .init = init,
  .shutdown = shutdown,
};

TN_PLUGIN_DEFINE(plugin)
