/* SPDX-License-Identifier: Apache-2.0 */
/* The log of placements. <tenon/process.h> has the public functions. */
#ifndef TN_CORE_SESSION_PLACEMENT_LOG_H
#define TN_CORE_SESSION_PLACEMENT_LOG_H

/* Passes "node: (op): device" to the sink, one line at a time; control characters become spaces. */
void tn__placement_line(const char *node, const char *op, const char *device);

#endif
