/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a tape on the crew of a step. Each has a count of the tasks that it waits for (see the
 * protocol in step/jobs.h). A thread that ends a task runs the first of those that may begin now, and
 * submits the others. After its first run by tasks an instance allocates nothing.
 *
 * The first error ends the step: no other call begins, and tn_kernel_cancelled returns true in
 * those that run. */
#include <core/exec/segment.h>
#include <core/exec/step/env.h>
#include <core/exec/tasks.h>
#include <core/pool/pool_internal.h>

#define ALWAYS_NS 1e9 /* assumed cost of tasks in tests, so that a worker is woken */

/* ---- a run by tasks ---- */

/* Records the instructions that compute nothing; they belong to no task. */
static void trace_empty(const tn__jobs *all, uint32_t number)
{
  const tn__segment *s = &all->run->plan->segments[number];
  const tn__layout *l = all->instance->layout;
  uint32_t next = s->begin;
  for (uint32_t i = 0; i < l->n_tape; i++) {
    tn__trace_empty(all->trace, all->run, all->instance, next, l->tape[i].instr);
    next = l->tape[i].instr + 1;
  }
  tn__trace_empty(all->trace, all->run, all->instance, next, s->end);
}

/* The node of the last call before a stop was noticed; NULL: there was none in this task or tape. */
static const tn_operation *late_op(const tn__jobs *all, const tn__tape *last)
{
  return last == NULL ? all->run->op : all->run->plan->instrs[last->instr].op;
}

/* All jobs have ended: the status of the tape. On the step's own thread. */
static tn_status jobs_end(tn__jobs *all, uint32_t number)
{
  tn__run *run = all->run;
  const tn__layout *l = all->instance->layout;
  run->jobs = NULL;
  run->workspace->guard = NULL;
  if (all->trace != NULL) trace_empty(all, number);
  tn_status st = all->status;
  int why = st == TN_OK ? tn__step_stop(run->step) : TN__GO_ON;
  if (st != TN_OK) {
    tn_error_copy(run->err, &all->err);
    tn_error_clear(&all->err);
  } else if (why != TN__GO_ON) {
    st = tn__step_stopped(why, late_op(all, l->n_tape == 0 ? NULL : &l->tape[l->n_tape - 1]), run->err);
  }
  return st;
}

/* ---- one job ---- */

/* Releases the values that this call reads last. A value that several tasks use is released when
 * all of them have ended (release_counted). */
static void release_own(tn__jobs *all, const tn__tape *t)
{
  const tn__plan_tasks *tasks = all->tasks;
  for (uint32_t k = 0; k < t->n_release; k++) {
    uint32_t slot = all->instance->layout->operands[t->release + k];
    if (tasks->is_counted == NULL || !tasks->is_counted[slot]) tn__slot_release(all->run, all->instance, slot);
  }
}

/* Counts this task as ended for the values that it shares with other tasks. The last task releases
 * the value. */
static void release_counted(tn__jobs *all, const tn__plan_task *t)
{
  for (uint32_t k = 0; k < t->n_counts; k++) {
    uint32_t i = all->tasks->counts[t->counts + k];
    if (atomic_fetch_sub_explicit(&all->counts[i], 1, memory_order_acq_rel) == 1)
      tn__slot_release(all->run, all->instance, all->tasks->counted[i].slot);
  }
}

void tn__job_compute(tn__jobs *all, tn__job *job)
{
  const tn__plan_task *task = &all->tasks->tasks[tn__job_number(job)];
  const tn__tape *tape = all->instance->layout->tape, *before = NULL; /* the last call that ended */
  tn_error err = TN_ERROR_INIT;
  tn__call call = { .run = all->run, .instance = all->instance };
  call.ctx.struct_size = sizeof call.ctx;
  call.ctx.step = all->run->step;
  call.ctx.reproducible = all->run->plan->settings.reproducible;
  call.ctx.err = &err;
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < task->n_calls; k++) {
    if (tn__jobs_failed(all)) return;
    const tn__tape *t = &tape[all->tasks->calls[task->calls + k]];
    int why = tn__step_stop(all->run->step);
    st = why == TN__GO_ON ? tn__tape_call(&call, t, all->trace) : tn__step_stopped(why, late_op(all, before), &err);
    if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release_own(all, t);
    if (st == TN_OK && err.code != TN_OK) tn_error_clear(&err); /* the kernel set an error but returned TN_OK */
    before = t;
  }
  if (st == TN_OK) release_counted(all, task);
  else tn__jobs_fail(all, st, &err);
  tn_error_clear(&err);
}

/* ---- on a crew ---- */

static void run_jobs(tn__task *first);

/* Passes a job that may begin to the crew. Its cost includes that of later tasks that wait for no
 * other one. */
static void job_submit(tn__jobs *all, tn__job *job)
{
  job->task.run = run_jobs;
  double cost = all->tasks->measured ? (double)all->tasks->tasks[tn__job_number(job)].ahead_ns : ALWAYS_NS;
  tn__crew_submit(all->crew, &job->task, cost);
}

/* Runs a job, then one that may begin after it, and so on. The jobs are counted at the end, all at
 * once: that is the last access to memory of the step, so the crew is read before. */
static void run_jobs(tn__task *first)
{
  tn__job *job = (tn__job *)first, *mine;
  tn__jobs *all = job->all;
  tn__crew *crew = all->crew;
  tn__surroundings was = tn__jobs_enter(all);
  uint32_t done = 0;
  for (; job != NULL; job = mine, done++) {
    tn__job_compute(all, job);
    uint32_t at = 0;
    mine = tn__job_next_ready(all, job, &at);
    for (tn__job *other = mine; other != NULL && (other = tn__job_next_ready(all, job, &at)) != NULL;)
      job_submit(all, other);
  }
  tn__jobs_leave(all, was);
  if (atomic_fetch_sub_explicit(&all->left, done, memory_order_acq_rel) == done) tn__crew_notify(crew);
}

/* Runs all jobs; this thread takes part and returns when all have ended. */
static void run_by_crew(tn__jobs *all)
{
  const tn__plan_tasks *t = all->tasks;
  for (uint32_t i = 1; i < t->n_roots; i++) job_submit(all, &all->jobs[t->roots[i]]);
  run_jobs(&all->jobs[t->roots[0]].task);
  tn__crew_wait(all->crew, tn__counted_down, &all->left, 0);
}

/* The step's crew, if workers may help; it is taken once. NULL also if this thread does not work in
 * it. */
static tn__crew *crew_of(tn__step_env *env)
{
  if (env->client == NULL || env->client->workers == 0 || !tn__pool_alive(env->client->pool)) return NULL;
  if (env->crew == NULL) env->crew = tn__crew_take_for(env->client, env->kind);
  return env->crew != NULL && tn__crew_current() == env->crew ? env->crew : NULL;
}

/* ---- whether tasks are faster ---- */

/* Whether tasks are faster than one call after the other is estimated when a layout is made, from
 * the costs that kernels give. Measurements decide it: in a trial, some runs are timed, first in
 * order, then by tasks, and the faster way is used until the next trial. Concurrent steps share the
 * measurements, which are only statistics: relaxed atomics suffice, and a lost update does no harm. */

#define PERIOD 1024 /* runs from one trial to the next; a power of 2 */
#define IN_ORDER 5  /* runs of a trial in order; the first one is not measured */
#define BY_TASKS 10 /* runs of a trial by tasks, after those in order */
#define WARM 4      /* the first of these are not measured: a thread that was woken recently wakes sooner */
#define BETTER 0.97 /* maximum time of tasks, relative to the time in order */

/* Whether this run is by tasks. *timed: pass its time to note_time(). */
static bool choose_way(tn__plan_tasks *t, bool *timed)
{
  *timed = false;
  if (!t->measured) return true;
  uint32_t turn = atomic_fetch_add_explicit(&t->turn, 1, memory_order_relaxed) & (PERIOD - 1);
  if (turn >= IN_ORDER + BY_TASKS) return atomic_load_explicit(&t->chosen, memory_order_relaxed);
  if (turn == 0) {
    atomic_store_explicit(&t->one_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&t->all_ns, 0, memory_order_relaxed);
  }
  *timed = turn < IN_ORDER ? turn > 0 : turn >= IN_ORDER + WARM;
  return turn >= IN_ORDER;
}

/* Notes the time of a run of a trial, and decides once there are times of both ways. */
static void note_time(tn__plan_tasks *t, bool by_tasks, int64_t ns)
{
  _Atomic uint32_t *best = by_tasks ? &t->all_ns : &t->one_ns;
  uint32_t time = (uint32_t)(ns < UINT32_MAX ? ns : UINT32_MAX);
  if (ns < 1) time = 1; /* 0 = none yet */
  uint32_t old = atomic_load_explicit(best, memory_order_relaxed);
  if (old == 0 || time < old) atomic_store_explicit(best, time, memory_order_relaxed);
  uint32_t one = atomic_load_explicit(&t->one_ns, memory_order_relaxed),
           all = atomic_load_explicit(&t->all_ns, memory_order_relaxed);
  if (one != 0 && all != 0)
    atomic_store_explicit(&t->chosen, (double)all <= BETTER * (double)one, memory_order_relaxed);
}

/* ---- a tape with tasks ---- */

static tn__jobs *jobs_of(tn__instance *instance)
{
  if (instance->jobs == NULL) instance->jobs = tn__jobs_create(instance->layout->tasks);
  return instance->jobs;
}

static tn_status run_jobs_of(tn__run *run, uint32_t number, tn__instance *instance, tn__crew *crew)
{
  tn__jobs *all = instance->jobs;
  tn__jobs_begin(all, run, instance, crew);
  if (crew != NULL) run_by_crew(all);
  else run->step->env->schedule(all);
  return jobs_end(all, number);
}

tn_status tn__tasks_tape(tn__run *run, uint32_t number, tn__instance *instance)
{
  tn__step_env *env = run->step->env;
  tn__plan_tasks *tasks = instance->layout->tasks;
  if (env == NULL || tasks->n_tasks == 0) return tn__tape_run(run, number, instance);
  if (env->scheduler != NULL)
    return jobs_of(instance) == NULL ? tn__tape_run(run, number, instance) : run_jobs_of(run, number, instance, NULL);
  tn__crew *crew = crew_of(env);
  bool timed, by_tasks = crew != NULL && choose_way(tasks, &timed);
  if (crew == NULL || (by_tasks && jobs_of(instance) == NULL)) return tn__tape_run(run, number, instance);
  int64_t begun = timed ? tn__now_ns() : 0;
  tn_status st = by_tasks ? run_jobs_of(run, number, instance, crew) : tn__tape_run(run, number, instance);
  if (timed && st == TN_OK) note_time(tasks, by_tasks, tn__now_ns() - begun);
  return st;
}
