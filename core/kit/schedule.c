/* SPDX-License-Identifier: Apache-2.0 */
/* Level (b) of the kit: a runtime's scheduler decides where and when the tasks of a step run. Its
 * `ready` receives the tasks that may begin, and threads of its choice call
 * tn_kit_run_instructions. The instruction numbers that it sees are those of tasks. If it makes a
 * mistake, the step fails.
 *
 * Protocol: the step's own thread passes the tasks that wait for no other one to `ready`, runs
 * those that `ready` runs at once, and calls the scheduler's `wait`, which returns when
 * tn_kit_instructions_left is 0. Each thread that ends a task passes those that may begin now to
 * `ready`; the thread that ends the last one calls `ready` with no tasks.
 *
 * A thread of the scheduler may still be inside of tn_kit_run_instructions when `wait` has
 * returned. So threads are counted in jobs->inside, and the step's own thread waits for them
 * (close_jobs) before the step's memory is reused. */
#include <core/exec/step/env.h>
#include <core/exec/step/run_state.h>
#include <core/kit/executable.h>
#include <core/exec/tasks.h>

#include <sched.h>
#include <string.h>
#include <time.h>

#define CHUNK 64         /* maximum number of tasks in one call of `ready` */
#define SLEEP_NS 100000  /* between two checks, if `wait` returned while threads of the scheduler were at work */

/* The jobs of a step that this thread has taken and not run yet. It runs them one after the other,
 * also those that it takes inside of `ready`: a scheduler that runs tasks at once needs no more
 * stack for a long chain than for a short one. On the stack of the thread. */
typedef struct turn {
  struct turn *around; /* of a step whose kernel this thread is in; NULL = none */
  tn__jobs *all;
  tn__job *first, **last; /* a list; last: where the next job is linked */
} turn;

static _Thread_local turn *turn_now; /* this thread's innermost turn; NULL = none */

/* ---- mistakes of a scheduler ---- */

/* Fails the step. The format has the number, then the number of tasks. */
static void fail_scheduler(tn__jobs *all, const char *format, uint32_t number)
{
  tn_error err = TN_ERROR_INIT;
  tn_error_set(&err, TN_INTERNAL, format, number, all->tasks->n_tasks);
  tn__jobs_fail(all, TN_INTERNAL, &err);
  tn_error_clear(&err);
}

/* Takes a task. The exchange of its state makes sure that it is ready, and that no other thread
 * takes it. */
static void turn_take(turn *t, uint32_t number)
{
  tn__jobs *all = t->all;
  uint32_t was = TN__JOB_READY;
  if (number >= all->tasks->n_tasks) {
    fail_scheduler(all, "the runtime's scheduler ran instruction %u, but there are %u", number);
    return;
  }
  tn__job *job = &all->jobs[number];
  if (!atomic_compare_exchange_strong_explicit(&job->state, &was, TN__JOB_TAKEN, memory_order_acq_rel,
                                               memory_order_acquire)) {
    fail_scheduler(all,
                   was == TN__JOB_TAKEN ? "the runtime's scheduler ran instruction %u of %u twice"
                                        : "the runtime's scheduler ran instruction %u of %u, which was not ready",
                   number);
    return;
  }
  job->next = NULL;
  *t->last = job;
  t->last = &job->next;
}

/* ---- passing tasks to the scheduler ---- */

/* Passes tasks that may begin. They become READY before the call: the scheduler may run them inside
 * of it. n = 0: all tasks have ended. */
static void give(tn__jobs *all, const uint32_t *numbers, size_t n)
{
  const tn__step_env *env = all->run->step->env;
  float costs[CHUNK];
  for (size_t i = 0; i < n; i++) {
    costs[i] = all->tasks->tasks[numbers[i]].cost_ns;
    atomic_store_explicit(&all->jobs[numbers[i]].state, TN__JOB_READY, memory_order_release);
  }
  env->scheduler->ready(env->scheduler->user, env->scheduled, n == 0 ? NULL : numbers, n == 0 ? NULL : costs, n);
}

static void give_roots(tn__jobs *all)
{
  const tn__plan_tasks *t = all->tasks;
  for (uint32_t i = 0; i < t->n_roots; i += CHUNK)
    give(all, t->roots + i, t->n_roots - i < CHUNK ? t->n_roots - i : CHUNK);
}

static void give_next(tn__jobs *all, const tn__job *job)
{
  uint32_t numbers[CHUNK], at = 0;
  size_t n = 0;
  for (const tn__job *next; (next = tn__job_next_ready(all, job, &at)) != NULL;) {
    numbers[n++] = tn__job_number(next);
    if (n < CHUNK) continue;
    give(all, numbers, n);
    n = 0;
  }
  if (n > 0) give(all, numbers, n);
}

/* ---- running ---- */

/* Runs the jobs that were taken, and those that `ready` takes meanwhile. Each is counted in `left`
 * after its successors were passed on, so `left` cannot become 0 too early. */
static void turn_run(turn *t)
{
  tn__jobs *all = t->all;
  while (t->first != NULL) {
    tn__job *job = t->first;
    t->first = job->next;
    if (t->first == NULL) t->last = &t->first;
    tn__surroundings mine = tn__jobs_enter(all);
    tn__job_compute(all, job);
    tn__jobs_leave(all, mine);
    give_next(all, job);
    if (atomic_fetch_sub_explicit(&all->left, 1, memory_order_acq_rel) == 1) give(all, NULL, 0);
  }
}

static void begin_turn(turn *t, tn__jobs *all)
{
  *t = (turn){ .around = turn_now, .all = all, .last = &t->first };
  turn_now = t;
}

/* jobs->inside counts threads in units of 2; its lowest bit says that none may enter any more. The
 * decrement is a thread's last access to memory of the step. */
static void go_out(tn__jobs *all) { atomic_fetch_sub_explicit(&all->inside, 2, memory_order_release); }

/* False: the tape is over, and the jobs must not be used. */
static bool come_in(tn__jobs *all)
{
  if ((atomic_fetch_add_explicit(&all->inside, 2, memory_order_acquire) & 1) == 0) return true;
  go_out(all);
  return false;
}

void tn_kit_run_instructions(tn_step *step, const uint32_t *instructions, size_t n)
{
  tn__jobs *all = step->env == NULL ? NULL : atomic_load_explicit(&step->env->jobs, memory_order_acquire);
  if (all == NULL) return;
  if (turn_now != NULL && turn_now->all == all) { /* inside of `ready`: they run once that has returned */
    for (size_t i = 0; i < n; i++) turn_take(turn_now, instructions[i]);
    return;
  }
  if (!come_in(all)) return;
  turn t;
  begin_turn(&t, all);
  for (size_t i = 0; i < n; i++) turn_take(&t, instructions[i]);
  turn_run(&t);
  turn_now = t.around;
  go_out(all);
}

size_t tn_kit_instructions_left(const tn_step *step)
{
  const tn__jobs *all = step->env == NULL ? NULL : atomic_load_explicit(&step->env->jobs, memory_order_acquire);
  return all == NULL ? 0 : atomic_load_explicit(&all->left, memory_order_acquire);
}

/* Lets no thread enter any more, and waits until those inside have left. As a rule all tasks have
 * ended, and they are about to leave. */
static void close_jobs(tn__jobs *all)
{
  atomic_fetch_or_explicit(&all->inside, 1, memory_order_acq_rel);
  for (uint32_t turns = 0; atomic_load_explicit(&all->inside, memory_order_acquire) > 1; turns++) {
    if (turns < 1000) sched_yield();
    else nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
  }
}

/* Runs all jobs of a tape by the scheduler, on the step's own thread. */
static void schedule(tn__jobs *all)
{
  tn__step_env *env = all->run->step->env;
  turn t;
  atomic_store_explicit(&env->jobs, all, memory_order_release);
  begin_turn(&t, all);
  give_roots(all);
  turn_run(&t);
  turn_now = t.around;
  env->scheduler->wait(env->scheduler->user, env->scheduled);
  close_jobs(all);
  uint32_t left = atomic_load_explicit(&all->left, memory_order_acquire);
  if (left > 0) fail_scheduler(all, "the runtime's scheduler has not run %u of %u instructions", left);
  atomic_store_explicit(&env->jobs, NULL, memory_order_relaxed);
}

/* ---- executables ---- */

tn_status tn_kit_prepare_scheduled(const tn_plan *plan, const tn_kit_scheduler *scheduler, tn_executable **out,
                                   tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_scheduled: out is NULL");
  *out = NULL;
  if (plan == NULL || scheduler == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_scheduled: %s is NULL",
                        plan == NULL ? "plan" : "scheduler");
  if (scheduler->struct_size < TN_KIT_SCHEDULER_SIZE)
    return tn_error_set(err, TN_INVALID_ARGUMENT,
                        "tn_kit_prepare_scheduled: struct_size of the scheduler is %zu, wanted %zu",
                        scheduler->struct_size, (size_t)TN_KIT_SCHEDULER_SIZE);
  if (scheduler->ready == NULL || scheduler->wait == NULL)
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_prepare_scheduled: the scheduler has no %s",
                        scheduler->ready == NULL ? "ready" : "wait");
  tn_executable *e = tn__zalloc(sizeof *e);
  if (e == NULL) return tn__no_memory(err, "executable", sizeof *e);
  e->plan = tn__plan_ref((tn_plan *)plan);
  e->flags = TN__KIT_SCHEDULED;
  memcpy(&e->scheduler, scheduler,
         scheduler->struct_size < sizeof e->scheduler ? scheduler->struct_size : sizeof e->scheduler);
  e->schedule = schedule;
  tn__plan_set_scheduled(e->plan);
  *out = e;
  return TN_OK;
}
