/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a test plugin that is one runtime: its factory with the file's new_session, accepts_options and
 * destroy_session, and the plugin. */
#ifndef TESTS_PLUGINS_RUNTIME_H
#define TESTS_PLUGINS_RUNTIME_H

#include <tenon/kit.h>
#include <tenon/runtime.h>

/* For the slot `reset`: the kit gives the containers. */
static inline TN_UNUSED tn_status test_reset(const tn_session_factory *self, const tn_session_options *options,
                                             const char *const *containers, size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* NAME as in the manifest; the other slots of the factory as `.slot = function`. */
#define TEST_RUNTIME(NAME, ...)                                          \
  static const tn_session_factory factory = {                            \
    .struct_size = TN_SESSION_FACTORY_SIZE,                              \
    .name = NAME,                                                        \
    .new_session = new_session,                                          \
    .accepts_options = accepts_options,                                  \
    .destroy_session = destroy_session,                                  \
    __VA_ARGS__                                                          \
  };                                                                     \
  static const tn_session_factory *const factories[] = { &factory };     \
  static const tn_plugin plugin = {                                      \
    .struct_size = TN_PLUGIN_SIZE,                                       \
    .abi_major = TN_ABI_MAJOR,                                           \
    .abi_minor = TN_ABI_MINOR,                                           \
    .kind = TN_PLUGIN_RUNTIME,                                           \
    .name = NAME,                                                        \
    .version = "1.0.0",                                                  \
    .types = "CPU",                                                      \
    .factories = factories,                                              \
    .n_factories = 1,                                                    \
  };                                                                     \
  TN_PLUGIN_DEFINE(plugin)

#endif
