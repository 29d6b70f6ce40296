/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that exports one symbol too many (P-93). */
#include "minimal.c"

TN_EXPORT int util(void);
int util(void) { return 1; }
