/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is not a plugin: it must be rejected without being opened (P-20). */
#include <stdlib.h>

int tenon_test_no_plugin(void);
int tenon_test_no_plugin(void) { return 42; }

__attribute__((constructor)) static void opened(void) { abort(); }
