/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the time of a traced step among what ran. */
#ifndef TENON_TOOLS_COMMON_SHARES_H
#define TENON_TOOLS_COMMON_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something that ran on a thread. If spans of a thread are nested, or begin at the same time, the enclosing one is
 * first. */
typedef struct time_span {
  int64_t start_ns, end_ns;
  uint32_t thread;
  uint32_t owner;
  bool waited; /* other spans of its thread may overlap it */
} time_span;

/* Adds to ns[owner] the time of its spans. At each moment a thread works for the span that began last; if several
 * threads work, each gets an equal part of the time, so all parts together are at most the time of the step. A span
 * that waited counts only while no other one runs. */
void tool_share_time(const time_span *spans, size_t n, double *ns);

#endif
