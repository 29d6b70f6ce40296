/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest without the entry point that it names (S-PLG-01). */
#include <tenon/runtime.h>

TN_PLUGIN_MANIFEST("runtime", "test.no_entry", "CPU", "0", "1.0.0", "Tests", "")

TN_EXPORT const void *tenon_test_keep(void);
const void *tenon_test_keep(void) { return tn__manifest; }
