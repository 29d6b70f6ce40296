/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: the tasks of one instance while they run, whether a crew or a runtime's scheduler runs
 * them. Their protocol is described in jobs.h. */
#include <core/exec/step/jobs.h>
#include <core/exec/step/env.h>
#include <core/exec/step/run_state.h>
#include <core/exec/step/workspace.h>
#include <core/pool/float_mode.h>

/* ---- the object ---- */

tn__jobs *tn__jobs_create(const tn__plan_tasks *tasks)
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

void tn__jobs_destroy(tn__jobs *all)
{
  if (all == NULL) return;
  tn__mutex_fini(&all->guard);
  tn__free(all, all->block_bytes);
}

/* `left` is stored last, with release: a thread that finds it above 0 sees the rest. */
void tn__jobs_begin(tn__jobs *all, tn__run *run, tn__instance *instance, tn__crew *crew)
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
  for (uint32_t i = 0; i < t->n_counted; i++)
    atomic_store_explicit(&all->counts[i], t->counted[i].n, memory_order_relaxed);
  atomic_store_explicit(&all->failed, 0, memory_order_relaxed);
  atomic_store_explicit(&all->left, t->n_tasks, memory_order_release);
  run->jobs = all;
  run->workspace->guard = &all->guard;
}

/* ---- for the threads that run them ---- */

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

/* The exchange decides which thread is first. status and err are read after `left` is 0, which
 * orders them: this thread counts its job after this. */
void tn__jobs_fail(tn__jobs *all, tn_status status, tn_error *err)
{
  uint32_t no = 0;
  if (!atomic_compare_exchange_strong_explicit(&all->failed, &no, 1, memory_order_relaxed, memory_order_relaxed))
    return;
  all->status = status;
  all->err = *err;
  *err = (tn_error)TN_ERROR_INIT;
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
