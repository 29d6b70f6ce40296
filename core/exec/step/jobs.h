/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the tasks of a tape while they run. A crew runs them (core/exec/tasks.c), or a runtime's
 * scheduler does (core/kit/schedule.c).
 *
 * Protocol: a job's `waits` starts at the number of tasks before it. The thread that ends a job
 * decrements the `waits` of those after it (tn__job_next_ready); the thread that brings a count to
 * 0 may run that job or pass it on. The decrements are acquire-release, so a job sees everything
 * that the jobs before it wrote. Each ended job is counted in `left`; that is its thread's last
 * access to memory of the step, which may end as soon as `left` is 0. */
#ifndef TN_CORE_EXEC_STEP_JOBS_H
#define TN_CORE_EXEC_STEP_JOBS_H

#include <core/exec/step/trace.h>
#include <core/layout/tasks.h>
#include <core/pool/pool.h>

typedef struct tn__jobs tn__jobs;

/* The state of a job for a scheduler: not ready; given to the scheduler, which may run it; a thread
 * runs it or has run it. Changes only in this order. */
enum { TN__JOB_WAITS = 0, TN__JOB_READY, TN__JOB_TAKEN };

typedef struct tn__job {
  tn__task task; /* the first member */
  tn__jobs *all;
  struct tn__job *next; /* in the list of jobs that a thread of a scheduler runs one after the other */
  _Atomic uint32_t waits; /* number of tasks before it that have not ended */
  _Atomic uint32_t state; /* TN__JOB_...; only used with a scheduler */
} tn__job;

/* The tasks of one instance, kept with it so that a step allocates nothing. Except for the atomic
 * fields and the error, all is set before the first job is passed on, and constant until the last
 * has ended. */
struct tn__jobs {
  size_t block_bytes;    /* of this allocation */
  const tn__plan_tasks *tasks; /* of the layout */
  struct tn__run *run;
  struct tn__instance *instance;
  tn__crew *crew;        /* NULL: a scheduler runs them */
  tn__trace *trace;      /* NULL: the step is not traced */
  tn__trace_scope *scope; /* the function that the step's own thread is in */
  uint32_t float_mode;   /* of the step's own thread, as is the account: results must not depend on the thread */
  tn__account *account;
  tn__mutex guard;       /* of the workspace's spares, while there are several threads */
  _Atomic uint32_t left; /* tasks that have not ended */
  _Atomic uint32_t failed; /* 0 or 1; the thread that sets it to 1 writes status and err */
  tn_status status;      /* of the first that failed; read when none is left */
  tn_error err;
  _Atomic uint32_t inside; /* 2 * the threads of a scheduler at work, + 1 once none may enter (core/kit/schedule.c) */
  _Atomic uint32_t *counts; /* as tasks->counted: number of tasks that still use the value */
  tn__job jobs[];
};

/* NULL without memory. */
tn__jobs *tn__jobs_create(const tn__plan_tasks *tasks);
void tn__jobs_destroy(tn__jobs *jobs); /* NULL allowed */
bool tn__jobs_failed(const tn__jobs *jobs); /* some call has failed: no other begins */
/* Resets them for one run of the instance's tape, on the step's own thread. crew NULL: a scheduler
 * runs them. */
void tn__jobs_begin(tn__jobs *jobs, struct tn__run *run, struct tn__instance *instance, tn__crew *crew);
/* Notes the first error, after which no call begins; later ones are ignored. Any thread. If it is
 * the first, takes the contents of `err`. */
void tn__jobs_fail(tn__jobs *all, tn_status status, tn_error *err);
/* The next job that may begin now that this one has ended; NULL = no more. *at is 0 at first. Call
 * it until it returns NULL: it decrements the counts as it goes. */
tn__job *tn__job_next_ready(tn__jobs *all, const tn__job *job, uint32_t *at);
static inline uint32_t tn__job_number(const tn__job *job) { return (uint32_t)(job - job->all->jobs); }

/* State of a thread on which results or accounting depend. A thread that runs jobs takes over that
 * of the step's own thread (tn__jobs_enter) and restores its own afterwards. */
typedef struct tn__surroundings {
  uint32_t float_mode;
  tn__account *account;
  tn__trace_scope *scope;
} tn__surroundings;
tn__surroundings tn__jobs_enter(const tn__jobs *all);
void tn__jobs_leave(const tn__jobs *all, tn__surroundings mine);

#endif
