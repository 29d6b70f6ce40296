/* SPDX-License-Identifier: Apache-2.0 */
/* Reports where the nodes of a session run, for tools. */
#ifndef GPU_SESSION_PLACEMENT_REPORT_H
#define GPU_SESSION_PLACEMENT_REPORT_H

#include <stdbool.h>
#include <tenon/runtime.h>

typedef struct gpu_placement_report gpu_placement_report;
tn_status gpu_report_create(gpu_placement_report **out, tn_error *err);
void gpu_report_destroy(gpu_placement_report *report); /* NULL allowed */
/* Stores the decision for a node. `device` is borrowed for the session's life; NULL: the CPU, for this reason, which is
 * copied. False without memory. Any thread. */
bool gpu_report_note(gpu_placement_report *report, const char *node, const char *device, const char *reason);
/* The last decision for a node; false, and nothing is written, if there is none. The reason lives as long as the
 * report. Any thread. */
bool gpu_report_find(gpu_placement_report *report, const char *node, const char **device, const char **reason);

#endif
