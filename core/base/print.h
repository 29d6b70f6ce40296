/* SPDX-License-Identifier: Apache-2.0 */
/* Output of the ops that print. The public side is in process.h. */
#ifndef TN_CORE_BASE_PRINT_H
#define TN_CORE_BASE_PRINT_H

#include <tenon/process.h>

/* Passes a text to the sink, one at a time; stream is TN_PRINT_... Any thread. */
void tn__print(int32_t stream, const char *text, size_t length);

#endif
