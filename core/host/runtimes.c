/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of the registry that may load a plugin. They install the host table first. */
#include <core/base/alloc.h>
#include <core/host/host.h>
#include <core/registry/registry.h>
#include <tenon/plugins.h>

tn_status tn_runtime_load(const char *name, tn_runtime_info *out, tn_error *err)
{
  tn__error_reset(err);
  tn__host_install();
  return tn__registry_load(name, out, err);
}

tn_status tn_explain_selection(const tn_session_options *options, char *buffer, size_t size, size_t *needed,
                               tn_error *err)
{
  tn__error_reset(err);
  tn__host_install();
  return tn__registry_explain(options, buffer, size, needed, err);
}

tn_status tn_runtime_find(const tn_session_options *options, const tn_session_factory **out, tn_error *err)
{
  tn__error_reset(err);
  tn__host_install();
  return tn__registry_find(options, out, err);
}

tn_status tn_runtime_load_file(const char *path, tn_runtime_info *out, tn_error *err)
{
  tn__error_reset(err);
  tn__host_install();
  return tn__registry_load_file(path, false, out, err);
}

tn_status tn_load_op_library(const char *path, tn_runtime_info *out, tn_error *err)
{
  tn__error_reset(err);
  tn__host_install();
  return tn__registry_load_file(path, true, out, err);
}
