/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that aborts when it is opened: listing must not open it (P-16). */
#include <stdlib.h>

#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.aborts", "CPU", "0", "1.0.0", "Tests", "")

__attribute__((constructor)) static void opened(void) { abort(); }

static const tn_plugin plugin = { .struct_size = TN_PLUGIN_SIZE };

TN_PLUGIN_DEFINE(plugin)
