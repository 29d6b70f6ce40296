/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of a tape on the crew of a step. Each has a count of those that it waits for; who ends one takes the next that may begin
 * for itself, and submits the others. Nothing is allocated once an instance has run this way.
 *
 * The first error ends the step: what has not begun does not begin, and kernels that ask are told. */
#include <core/exec/pool_internal.h>
#include <core/exec/tasks.h>

#define ALWAYS_NS 1e9 /* said of tasks in tests, so that somebody comes */

/* ---- jobs ---- */

static tn__jobs *make(const tn__plan_tasks *tasks)
{
  size_t jobs = tasks->n_tasks * sizeof(tn__job), counts = tasks->n_counted * sizeof(_Atomic uint32_t);
  tn__jobs *all = tn__zalloc(sizeof *all + jobs + counts);
  if (all == NULL) return NULL;
  all->block_bytes = sizeof *all + jobs + counts;
  all->tasks = tasks;
  all->counts = (_Atomic uint32_t *)((char *)(all + 1) + jobs);
  tn__mutex_init(&all->guard, "spare tensors", TN_RANK_SPARES);
  for (uint32_t i = 0; i < tasks->n_tasks; i++) all->jobs[i].all = all;
  return all;
}

void tn__jobs_free(tn__jobs *all)
{
  if (all == NULL) return;
  tn__mutex_fini(&all->guard);
  tn__free(all, all->block_bytes);
}

static void begin(tn__jobs *all, tn__run *run, tn__instance *instance, tn__crew *crew)
{
  const tn__plan_tasks *t = all->tasks;
  all->run = run;
  all->instance = instance;
  all->crew = crew;
  all->trace = tn__step_trace(run->step);
  all->scope = all->trace == NULL ? NULL : tn__trace_scope_now(all->trace);
  all->float_mode = tn__float_mode();
  all->account = tn__account_now;
  all->status = TN_OK;
  all->err = (tn_error)TN_ERROR_INIT;
  atomic_store_explicit(&all->inside, 0, memory_order_relaxed);
  for (uint32_t i = 0; i < t->n_tasks; i++) {
    atomic_store_explicit(&all->jobs[i].waits, t->tasks[i].n_before, memory_order_relaxed);
    atomic_store_explicit(&all->jobs[i].state, TN__JOB_WAITS, memory_order_relaxed);
  }
  for (uint32_t i = 0; i < t->n_counted; i++) atomic_store_explicit(&all->counts[i], t->counted[i].n, memory_order_relaxed);
  atomic_store_explicit(&all->failed, 0, memory_order_relaxed);
  atomic_store_explicit(&all->left, t->n_tasks, memory_order_release);
  run->jobs = all;
  run->workspace->guard = &all->guard;
}

/* Instructions without a call, which nobody waited for. */
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

static const tn_operation *op_of(const tn__jobs *all, const tn__tape *t) { return all->run->plan->instrs[t->instr].op; }

static tn_status end(tn__jobs *all, uint32_t number)
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
    st = tn__step_stopped(why, l->n_tape == 0 ? run->op : op_of(all, &l->tape[l->n_tape - 1]), run->err);
  }
  return st;
}

/* ---- one job ---- */

tn__surroundings tn__jobs_enter(const tn__jobs *all)
{
  tn__surroundings mine = { tn__float_mode(), tn__account_now, NULL };
  if (all->float_mode != mine.float_mode) tn__set_float_mode(all->float_mode);
  tn__account_now = all->account;
  if (all->trace != NULL) mine.scope = tn__trace_move(all->trace, all->scope);
  return mine;
}

void tn__jobs_leave(const tn__jobs *all, tn__surroundings mine)
{
  if (all->float_mode != mine.float_mode) tn__set_float_mode(mine.float_mode);
  tn__account_now = mine.account;
  if (all->trace != NULL) tn__trace_leave(all->trace, mine.scope);
}

bool tn__jobs_failed(const tn__jobs *all) { return atomic_load_explicit(&all->failed, memory_order_relaxed) != 0; }

void tn__jobs_fail(tn__jobs *all, tn_status status, tn_error *err)
{
  uint32_t no = 0;
  if (!atomic_compare_exchange_strong_explicit(&all->failed, &no, 1, memory_order_relaxed, memory_order_relaxed)) return;
  all->status = status;
  all->err = *err;
  *err = (tn_error)TN_ERROR_INIT;
}

/* A value that others may read after this call goes when all of them have ended. */
static void release(tn__jobs *all, const tn__tape *t)
{
  const tn__plan_tasks *tasks = all->tasks;
  for (uint32_t k = 0; k < t->n_release; k++) {
    uint32_t slot = all->instance->layout->operands[t->release + k];
    if (tasks->is_counted == NULL || !tasks->is_counted[slot]) tn__slot_release(all->run, all->instance, slot);
  }
}

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
  const tn__tape *tape = all->instance->layout->tape, *before = NULL;
  tn_error err = TN_ERROR_INIT;
  tn__call call = { .run = all->run, .instance = all->instance };
  call.ctx.struct_size = sizeof call.ctx;
  call.ctx.step = all->run->step;
  call.ctx.err = &err;
  tn_status st = TN_OK;
  for (uint32_t k = 0; st == TN_OK && k < task->n_calls; k++) {
    if (tn__jobs_failed(all)) return;
    const tn__tape *t = &tape[all->tasks->calls[task->calls + k]];
    int why = tn__step_stop(all->run->step);
    st = why == TN__GO_ON ? tn__tape_call(&call, t, all->trace)
                          : tn__step_stopped(why, before == NULL ? all->run->op : op_of(all, before), &err);
    if (st == TN_OK && (t->flags & TN_TAPE_RELEASE)) release(all, t);
    if (st == TN_OK && err.code != TN_OK) tn_error_clear(&err); /* it went on all the same */
    before = t;
  }
  if (st == TN_OK) release_counted(all, task);
  else tn__jobs_fail(all, st, &err);
  tn_error_clear(&err);
}

tn__job *tn__job_next_ready(tn__jobs *all, const tn__job *job, uint32_t *at)
{
  const tn__plan_task *task = &all->tasks->tasks[tn__job_number(job)];
  while (*at < task->n_nexts) {
    tn__job *next = &all->jobs[all->tasks->nexts[task->nexts + (*at)++]];
    if (atomic_fetch_sub_explicit(&next->waits, 1, memory_order_acq_rel) == 1) return next;
  }
  return NULL;
}

/* ---- on a crew ---- */

static void run_jobs(tn__task *first);

static void submit(tn__jobs *all, tn__job *job)
{
  job->task.run = run_jobs;
  double cost = all->tasks->measured ? (double)all->tasks->tasks[tn__job_number(job)].ahead_ns : ALWAYS_NS;
  tn__crew_submit(all->crew, &job->task, cost);
}

/* A job, and what may begin after it, as long as there is something. The count is the last that is touched of the step. */
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
    for (tn__job *other = mine; other != NULL && (other = tn__job_next_ready(all, job, &at)) != NULL;) submit(all, other);
  }
  tn__jobs_leave(all, was);
  if (atomic_fetch_sub_explicit(&all->left, done, memory_order_acq_rel) == done) tn__crew_notify(crew);
}

static void run_by_crew(tn__jobs *all)
{
  const tn__plan_tasks *t = all->tasks;
  for (uint32_t i = 1; i < t->n_roots; i++) submit(all, &all->jobs[t->roots[i]]);
  run_jobs(&all->jobs[t->roots[0]].task);
  tn__crew_wait(all->crew, tn__counted_down, &all->left, 0);
}

/* The step's crew, when workers may come; it is taken once. */
static tn__crew *crew_of(tn__step_env *env)
{
  if (env->client == NULL || env->client->workers == 0 || !tn__pool_alive(env->client->pool)) return NULL;
  if (env->crew == NULL) env->crew = tn__crew_take_for(env->client, env->kind);
  return env->crew != NULL && tn__crew_current() == env->crew ? env->crew : NULL;
}

/* ---- a tape with tasks ---- */

static tn__jobs *jobs_of(tn__instance *instance)
{
  if (instance->jobs == NULL) instance->jobs = make(instance->layout->tasks);
  return instance->jobs;
}

static tn_status run_jobs_of(tn__run *run, uint32_t number, tn__instance *instance, tn__crew *crew)
{
  tn__jobs *all = instance->jobs;
  begin(all, run, instance, crew);
  if (crew != NULL) run_by_crew(all);
  else tn__jobs_schedule(all);
  return end(all, number);
}

tn_status tn__tasks_tape(tn__run *run, uint32_t number, tn__instance *instance)
{
  tn__step_env *env = run->step->env;
  tn__plan_tasks *tasks = instance->layout->tasks;
  if (env == NULL || tasks->n_tasks == 0) return tn__tape_run(run, number, instance);
  if (env->scheduler != NULL) return jobs_of(instance) == NULL ? tn__tape_run(run, number, instance) : run_jobs_of(run, number, instance, NULL);
  tn__crew *crew = crew_of(env);
  bool timed, by_tasks = crew != NULL && tn__tasks_choose(tasks, &timed);
  if (crew == NULL || (by_tasks && jobs_of(instance) == NULL)) return tn__tape_run(run, number, instance);
  int64_t begun = timed ? tn__now_ns() : 0;
  tn_status st = by_tasks ? run_jobs_of(run, number, instance, crew) : tn__tape_run(run, number, instance);
  if (timed && st == TN_OK) tn__tasks_note(tasks, by_tasks, tn__now_ns() - begun);
  return st;
}
