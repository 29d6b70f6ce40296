/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a tape at work: what tasks.c (a crew runs them), kit_schedule.c (a scheduler of the runtime's has them run) and
 * tasks_choice.c (whether it is worth it) share. */
#ifndef TN_CORE_EXEC_TASKS_H
#define TN_CORE_EXEC_TASKS_H

#include <core/exec/trace.h>
#include <core/plan/tasks.h>

typedef struct tn__jobs tn__jobs;

/* Of a scheduler: it has not heard of the job yet; it may run it; somebody runs it, or has. */
enum { TN__JOB_WAITS = 0, TN__JOB_READY, TN__JOB_TAKEN };

typedef struct tn__job {
  tn__task task; /* the first member */
  tn__jobs *all;
  struct tn__job *next; /* of those that a thread runs one after the other */
  _Atomic uint32_t waits; /* tasks before it that have not ended */
  _Atomic uint32_t state;
} tn__job;

/* The tasks of one instance. Kept with it, so that a step allocates nothing. */
struct tn__jobs {
  size_t block_bytes;
  const tn__plan_tasks *tasks;
  tn__run *run;
  tn__instance *instance;
  tn__crew *crew; /* NULL: a scheduler has them */
  tn__trace *trace;
  tn__trace_scope *scope;
  uint32_t float_mode; /* of the step's own thread, as the account */
  tn__account *account;
  tn__mutex guard;       /* of the workspace's spares, while there are several threads */
  _Atomic uint32_t left; /* tasks that have not ended */
  _Atomic uint32_t failed;
  tn_status status;      /* of the first that failed; read when none is left */
  tn_error err;
  _Atomic uint32_t inside; /* threads of a scheduler (kit_schedule.c) */
  _Atomic uint32_t *counts; /* as tasks->counted: tasks that will touch the value */
  tn__job jobs[];
};

/* The job's calls, one after the other; an error is noted. */
void tn__job_compute(tn__jobs *all, tn__job *job);
/* Notes why the step fails, if it is the first to do so: nothing new begins. Takes what the error holds. */
void tn__jobs_fail(tn__jobs *all, tn_status status, tn_error *err);
/* The next one of those that wait for the job which may begin, NULL = no more; *at begins with 0. */
tn__job *tn__job_next_ready(tn__jobs *all, const tn__job *job, uint32_t *at);
static inline uint32_t tn__job_number(const tn__job *job) { return (uint32_t)(job - job->all->jobs); }

/* What belongs to a thread, and what it computes depends on. */
typedef struct tn__surroundings {
  uint32_t float_mode;
  tn__account *account;
  tn__trace_scope *scope;
} tn__surroundings;
tn__surroundings tn__jobs_enter(const tn__jobs *all);
void tn__jobs_leave(const tn__jobs *all, tn__surroundings mine);

/* kit_schedule.c */
void tn__jobs_schedule(tn__jobs *all);

/* tasks_choice.c: whether this run is by tasks, and what it took, when *timed says so. */
bool tn__tasks_choose(tn__plan_tasks *tasks, bool *timed);
void tn__tasks_note(tn__plan_tasks *tasks, bool by_tasks, int64_t ns);

#endif
