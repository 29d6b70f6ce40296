/* SPDX-License-Identifier: Apache-2.0 */
/* The log of placements: process.h has the public side. */
#ifndef TN_CORE_SESSION_PLACEMENT_LOG_H
#define TN_CORE_SESSION_PLACEMENT_LOG_H

/* Gives "node: (op): device" to the sink, one line at a time; control characters become spaces. */
void tn__placement_line(const char *node, const char *op, const char *device);

#endif
