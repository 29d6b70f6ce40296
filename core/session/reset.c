/* SPDX-License-Identifier: Apache-2.0 */
/* Resetting a runtime's containers. The library finds the runtime and calls its `reset`, which as a
 * rule calls tn_kit_reset; that closes the runtime's sessions and gives the containers new
 * generations. */
#include <core/session/session_internal.h>

static tn_status check_reset(const tn_session_options *options, const char *const *containers, size_t n, uint32_t flags,
                             tn_error *err)
{
  tn__error_reset(err);
  if (options == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: options is NULL");
  if (containers == NULL && n > 0) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: containers is NULL");
  for (size_t i = 0; i < n; i++)
    if (containers[i] == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: container %zu is NULL", i);
  if ((flags & ~(uint32_t)TN_RESET_ALL) != 0)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_reset: unknown flags %#x", flags);
  return tn__forked() ? tn__session_forked(err) : TN_OK;
}

/* found, unless NULL: by container, whether it existed before the reset. */
static tn_status reset_runtime(const tn_session_options *options, const char *const *containers, size_t n,
                               uint32_t flags, tn_bool *found, tn_error *err)
{
  tn__factory *factory;
  tn_status st = tn__registry_acquire(options, &factory, err);
  if (st != TN_OK) return st;
  const tn_session_factory *slots = tn__factory_vtable(factory);
  if (slots->reset == NULL) { /* S-RST-12 */
    st = tn_error_set(err, TN_UNIMPLEMENTED, "runtime '%s' has no reset", tn__factory_name(factory));
  } else {
    for (size_t i = 0; found != NULL && i < n; i++)
      found[i] = tn__containers_has(tn__factory_slot(factory), containers[i]);
    tn__plugin_call calling = tn__factory_call(factory, "its reset");
    tn__plugin_call_enter(&calling);
    st = slots->reset(tn__factory_self(factory), options, containers, n, flags, err);
    tn__plugin_call_leave(&calling);
    st = tn__factory_status(factory, "reset", st, err);
  }
  tn__factory_release(factory);
  return st;
}

tn_status tn_reset_containers(const tn_session_options *options, const char *const *containers, size_t n,
                              uint32_t flags, tn_bool *found, tn_error *err)
{
  tn_status st = check_reset(options, containers, n, flags, err);
  if (st != TN_OK) return st;
  tn__host_install();
  tn__live_sessions_begin(); /* the runtime's reset calls the hook that this installs */
  st = reset_runtime(options, containers, n, flags, found, err);
  tn__live_sessions_end(TN_CANCELLED);
  return st;
}

tn_status tn_reset(const tn_session_options *options, const char *const *containers, size_t n, tn_error *err)
{
  return tn_reset_containers(options, containers, n, 0, NULL, err);
}
