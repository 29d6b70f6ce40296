/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules of a plan, found by the segment and its inputs. */
#ifndef GPU_SCHEDULE_LOOKUP_H
#define GPU_SCHEDULE_LOOKUP_H

#include "schedule/schedule.h"

/* lookup.c: the schedule of a segment for these values, as a user of it. */
tn_status gpu_schedule_take(tn_executable *e, uint32_t segment, tn_step *step, gpu_values *values, gpu_schedule **out,
                            tn_error *err);
void gpu_schedule_leave(gpu_schedule *s);
void gpu_schedules_destroy(tn_executable *e);

#endif
