/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that may be unmapped (P-74). Its shutdown refuses while the variable TENON_TEST_BUSY
 * is set. It counts its inits, from 1 after each mapping, and logs them. */
#include <stdlib.h>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.unloads", "CPU", "0", "1.0.0", "Tests", "later,unloadable")

static int inits;

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  *out = tn_alloc(1);
  return *out != NULL ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  return 1;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  tn_free(session);
}

static tn_status init(tn_error *err)
{
  (void)err;
  tn_log(TN_LOG_WARNING, "unloads: init %d", ++inits);
  return TN_OK;
}

static tn_status shutdown(tn_error *err)
{
  return getenv("TENON_TEST_BUSY") == NULL ? TN_OK : tn_error_set(err, TN_FAILED_PRECONDITION, "it is busy");
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "test.unloads",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "test.unloads",
  .version = "1.0.0",
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
  .init = init,
  .shutdown = shutdown,
};

TN_PLUGIN_DEFINE(plugin)
