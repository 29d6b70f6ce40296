/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function that does not exist: rejected when it is loaded, not at the first call
 * (P-62). */
#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.undefined", "CPU", "0", "1.0.0", "Tests", "")

int tenon_test_missing_function(void);

static tn_status init(tn_error *err)
{
  (void)err;
  return tenon_test_missing_function() == 0 ? TN_OK : TN_INTERNAL;
}

static const tn_plugin plugin = { .struct_size = TN_PLUGIN_SIZE, .init = init };

TN_PLUGIN_DEFINE(plugin)
