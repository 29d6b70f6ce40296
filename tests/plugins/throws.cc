/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime in C++ that lets an exception out of the callback that the variable TENON_TEST_FAULT names (P-94). The script that
 * uses it compiles it. */
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.throws", "CPU", "0", "1.0.0", "Tests", "")

static void may_throw(const char *where)
{
  const char *fault = std::getenv("TENON_TEST_FAULT");
  if (fault != nullptr && std::strcmp(fault, where) == 0) throw std::runtime_error(where);
}

static tn_status init(tn_error *)
{
  may_throw("throw_init");
  return TN_OK;
}

static tn_status new_session(const tn_session_factory *, const tn_session_options *, tn_runtime_session **out, tn_error *err)
{
  may_throw("throw_new_session");
  *out = static_cast<tn_runtime_session *>(tn_alloc(1));
  return *out != nullptr ? TN_OK : tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
}

static tn_bool accepts_options(const tn_session_factory *, const tn_session_options *options)
{
  may_throw("throw_accepts_options");
  return tn_session_options_check_settings(options, nullptr, 0, nullptr) == TN_OK;
}

static void destroy_session(const tn_session_factory *, tn_runtime_session *session)
{
  may_throw("throw_destroy_session");
  tn_free(session);
}

static tn_session_factory factory;
static const tn_session_factory *const factories[] = { &factory };
static tn_plugin plugin;

static const tn_plugin &describe()
{
  factory.struct_size = TN_SESSION_FACTORY_SIZE;
  factory.name = "test.throws";
  factory.new_session = new_session;
  factory.accepts_options = accepts_options;
  factory.destroy_session = destroy_session;
  plugin.struct_size = TN_PLUGIN_SIZE;
  plugin.abi_major = TN_ABI_MAJOR;
  plugin.abi_minor = TN_ABI_MINOR;
  plugin.kind = TN_PLUGIN_RUNTIME;
  plugin.name = "test.throws";
  plugin.version = "1.0.0";
  plugin.types = "CPU";
  plugin.factories = factories;
  plugin.n_factories = 1;
  plugin.init = init;
  may_throw("throw_entry");
  return plugin;
}

TN_PLUGIN_DEFINE(describe())
