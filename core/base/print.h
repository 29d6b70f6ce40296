/* SPDX-License-Identifier: Apache-2.0 */
/* Where ops print to: process.h has the public side. */
#ifndef TN_CORE_BASE_PRINT_H
#define TN_CORE_BASE_PRINT_H

#include <tenon/process.h>

/* Gives a text to the sink, one at a time; stream is TN_PRINT_... */
void tn__print(int32_t stream, const char *text, size_t length);

#endif
