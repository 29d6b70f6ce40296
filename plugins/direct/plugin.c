/* SPDX-License-Identifier: Apache-2.0 */
/* The direct runtime: every step runs on the thread that calls Run, in a fixed order. Its prepare, release and step are
 * NULL, and its eager extension has no execute, so the kit runs everything (level (a)). */
#include <string.h>
#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "direct", "CPU", "500", TN_VERSION_STRING, "Tenon", "")

/* A session has no state, but its pointer must not be NULL. */
struct tn_runtime_session {
  char unused;
};
static tn_runtime_session the_session;

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  *out = NULL;
  tn_status st = tn_session_options_check_settings(options, NULL, 0, err);
  if (st == TN_OK) *out = &the_session;
  return st;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return tn_session_options_check_settings(options, NULL, 0, NULL) == TN_OK;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self;
  tn_session_options_check_settings(options, NULL, 0, err);
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self, (void)session;
}

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* Supports eager sessions: an operation is a step like any other. */
static const void *get_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime eager = { .struct_size = TN_EAGER_RUNTIME_SIZE };
  (void)self;
  return version == 1 && name != NULL && strcmp(name, TN_EAGER_EXTENSION) == 0 ? &eager : NULL;
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "direct",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .reset = reset,
  .explain_options = explain_options,
  .get_extension = get_extension,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "direct",
  .version = TN_VERSION_STRING,
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
};

TN_PLUGIN_DEFINE(plugin)
