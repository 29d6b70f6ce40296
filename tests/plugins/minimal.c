/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest runtime: only the four required callbacks (P-38). The kit runs its plans. */
#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.minimal", "CPU", "0", "1.2.3", "Tests", "")

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  *out = tn_alloc(1);
  return *out != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, NULL, 0, NULL) == TN_OK;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

/* A struct of an older header: it ends before the slots after destroy_session (P-26). */
static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_MIN_SIZE,
  .name = "test.minimal",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_SIZE_TO(tn_plugin, n_factories),
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "test.minimal",
  .version = "1.2.3",
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
};

TN_PLUGIN_DEFINE(plugin)
