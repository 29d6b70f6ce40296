/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a tape by its tasks. */
#ifndef TN_CORE_EXEC_TASKS_H
#define TN_CORE_EXEC_TASKS_H

#include <core/exec/step/jobs.h>

/* Runs the tape of a layout with tasks, by tasks or in order, whichever is faster. */
tn_status tn__tasks_tape(struct tn__run *run, uint32_t number, struct tn__instance *instance);
/* Runs the job's calls, one after the other, and notes an error. Does not count the job as ended. */
void tn__job_compute(tn__jobs *all, tn__job *job);

#endif
