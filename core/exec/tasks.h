/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the tasks of a tape while they run. A crew runs them (tasks.c), or a runtime's scheduler does
 * (core/kit/schedule.c). */
#ifndef TN_CORE_EXEC_TASKS_H
#define TN_CORE_EXEC_TASKS_H

#include <core/exec/trace.h>
#include <core/layout/tasks.h>

typedef struct tn__jobs tn__jobs;

/* Of a job for a scheduler: not ready; given to the scheduler, which may run it; a thread runs it or has run it. */
enum { TN__JOB_WAITS = 0, TN__JOB_READY, TN__JOB_TAKEN };

typedef struct tn__job {
  tn__task task; /* the first member */
  tn__jobs *all;
  struct tn__job *next; /* in the list of jobs that a thread runs one after the other */
  _Atomic uint32_t waits; /* number of tasks before it that have not ended */
  _Atomic uint32_t state;
} tn__job;

/* The tasks of one instance, kept with it so that a step allocates nothing. */
struct tn__jobs {
  size_t block_bytes;
  const tn__plan_tasks *tasks;
  tn__run *run;
  tn__instance *instance;
  tn__crew *crew; /* NULL: a scheduler runs them */
  tn__trace *trace;
  tn__trace_scope *scope;
  uint32_t float_mode; /* of the step's own thread, as the account */
  tn__account *account;
  tn__mutex guard;       /* of the workspace's spares, while there are several threads */
  _Atomic uint32_t left; /* tasks that have not ended */
  _Atomic uint32_t failed;
  tn_status status;      /* of the first that failed; read when none is left */
  tn_error err;
  _Atomic uint32_t inside; /* number of threads of a scheduler (core/kit/schedule.c) */
  _Atomic uint32_t *counts; /* as tasks->counted: number of tasks that still use the value */
  tn__job jobs[];
};

/* tasks.c: runs the job's calls, one after the other, and notes an error. */
void tn__job_compute(tn__jobs *all, tn__job *job);

/* jobs.c. NULL without memory. */
tn__jobs *tn__jobs_create(const tn__plan_tasks *tasks);
void tn__jobs_free(tn__jobs *jobs); /* NULL allowed */
bool tn__jobs_failed(const tn__jobs *jobs); /* some call failed: no other begins */
/* Resets them for one run of the instance's tape; crew NULL: a scheduler runs them. */
void tn__jobs_begin(tn__jobs *jobs, tn__run *run, tn__instance *instance, tn__crew *crew);
/* Notes the first error, after which no call begins. Takes the contents of `err`. */
void tn__jobs_fail(tn__jobs *all, tn_status status, tn_error *err);
/* The next job that may begin now that this one has ended; NULL = no more. *at is 0 at first. */
tn__job *tn__job_next_ready(tn__jobs *all, const tn__job *job, uint32_t *at);
static inline uint32_t tn__job_number(const tn__job *job) { return (uint32_t)(job - job->all->jobs); }

/* The state of a thread on which results or accounting depend. */
typedef struct tn__surroundings {
  uint32_t float_mode;
  tn__account *account;
  tn__trace_scope *scope;
} tn__surroundings;
tn__surroundings tn__jobs_enter(const tn__jobs *all);
void tn__jobs_leave(const tn__jobs *all, tn__surroundings mine);

/* tasks.c: the tape of a layout with tasks. */
tn_status tn__tasks_tape(tn__run *run, uint32_t number, tn__instance *instance);

#endif
