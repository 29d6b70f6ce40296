/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool.
 *
 * A *pool* has workers: threads that sleep until somebody asks for them. A *client* (one for a session) may have so
 * many of them at work at once. A *crew* is what works for one step: the thread that called (its owner) and workers
 * that joined it. Each of the crew has a deque of tasks; who has nothing to do steals from another one, or takes parts
 * of a loop.
 *
 *     tn__crew *crew = tn__crew_take(client);         this thread is its owner now
 *     tn__crew_submit(crew, &task, cost_ns);          from any thread of the crew, or from outside of it
 *     tn__parallel_for(crew, n, grain, cost_ns, fn, user);
 *     tn__crew_wait(crew, over, user, 0);             runs what there is until it is over
 *     tn__crew_put(crew);
 *
 * Nobody has to come: whatever was submitted is run by the owner while it waits. So a full pool delays nothing, and a
 * Run inside of a kernel, which takes a crew of its own, cannot deadlock. Nothing is allocated for a task or a loop. */
#ifndef TN_CORE_POOL_POOL_H
#define TN_CORE_POOL_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/status.h>

typedef struct tn__pool tn__pool;
typedef struct tn__pool_client tn__pool_client;
typedef struct tn__crew tn__crew;

/* ---- pools ---- */

/* CPUs that this process may use: its affinity, and the quota of its control group rounded up. At least 1. */
uint32_t tn__usable_cpus(void);

/* Each gives a reference; the last one that goes joins the workers. No thread is started before there is work for it.
 * default: as many workers as usable CPUs.
 * private: a pool of its own. pin: worker i stays on the i-th usable CPU, where the system can do that.
 * named:   the same for all who name it. TN_INVALID_ARGUMENT when it has another count of workers. */
tn_status tn__pool_default(tn__pool **out, tn_error *err);
tn_status tn__pool_private(uint32_t workers, bool pin, tn__pool **out, tn_error *err);
tn_status tn__pool_named(const char *name, uint32_t workers, tn__pool **out, tn_error *err);
void tn__pool_unref(tn__pool *pool); /* NULL allowed; not from one of its workers */
uint32_t tn__pool_workers(const tn__pool *pool);

/* Ends and joins the workers; those that are in a crew finish its step first. They start again when there is work.
 * False: this thread is one of them, and nothing happened. */
bool tn__pool_join(tn__pool *pool);

/* The worker that this thread is in its pool, from 1; 0 = it is none. For traces. */
uint32_t tn__worker_number(void);

/* ---- clients ---- */

typedef struct tn__client_config {
  uint32_t workers; /* at most so many at once for all its steps, callers not counted; the pool's count at most */
  uint32_t intra;   /* threads of one loop, the caller among them: 1 = the caller alone, 0 = as many as there are */
  uint32_t spin_us; /* how long who finds nothing to do looks for it, within a step only; then it sleeps */
  int32_t linger_us;  /* how long a worker looks for it after the last time that it had some, between steps, too. Below 0: as
                       * long as spin_us where steps follow each other closely, else it sleeps between them */
} tn__client_config;
#define TN__SPIN_US 50 /* the usual spin_us */

/* Takes a reference to the pool. */
tn_status tn__client_create(tn__pool *pool, const tn__client_config *config, tn__pool_client **out, tn_error *err);
/* No step of it may run. Waits for workers that are on their way out. NULL allowed. */
void tn__client_destroy(tn__pool_client *client);
/* Threads that may work for a step of it: 1 + workers. */
uint32_t tn__client_width(const tn__pool_client *client);

/* ---- crews ---- */

/* A crew for a step, with this thread as the owner; kept by the client between steps. NULL without memory: the step
 * then does without. Between take and put workers stay awake for spin_us when they have nothing to do. */
tn__crew *tn__crew_take(tn__pool_client *client);
/* The same for steps that come again: what their loops gain by help is measured, and remembered by this address, which
 * is only compared. */
tn__crew *tn__crew_take_for(tn__pool_client *client, const void *kind);
/* All that was submitted has been run. The owner only. NULL allowed. */
void tn__crew_put(tn__crew *crew);
/* For what goes on from call to call (partial runs): another thread becomes the owner in between. Without an owner
 * nobody sees to it that tasks are run, though workers may do it. */
void tn__crew_leave(tn__crew *crew);
void tn__crew_enter(tn__crew *crew);

/* Something to run once; belongs to who submits it, and may be used again from the moment in which `run` begins. */
typedef struct tn__task {
  void (*run)(struct tn__task *task);
  struct tn__task *next; /* the crew's */
  float cost_ns;         /* the crew's */
} tn__task;

/* Any thread. Wakes a worker when what waits in this thread's deque costs more than waking one: who has several ready
 * tasks keeps one for itself and submits the others. cost_ns is rough. The crew must live until the task was run. */
void tn__crew_submit(tn__crew *crew, tn__task *task, double cost_ns);

/* Runs one task, or some parts of a loop, if there is any. A thread of the crew only. */
bool tn__crew_help(tn__crew *crew);

/* Runs tasks until over(user), which any thread may ask; false when the monotonic time deadline_ns came first (0 =
 * none). The owner only. Who makes `over` true calls tn__crew_notify afterwards; the last task of the crew, too. */
bool tn__crew_wait(tn__crew *crew, bool (*over)(void *user), void *user, int64_t deadline_ns);
/* From a task, or from any thread that knows that the client lives until this has returned. */
void tn__crew_notify(tn__crew *crew);

/* The usual `over`: a counter that is 0; and what each task does at its end, the last thing that touches memory of the
 * step. */
bool tn__counted_down(void *counter /* _Atomic uint32_t */);
void tn__count_down(tn__crew *crew, _Atomic uint32_t *counter);

/* The crew that this thread works in; NULL = none. */
tn__crew *tn__crew_current(void);

/* ---- loops ---- */

/* fn over [0, n) in parts of at least `grain` items, each item costs about cost_ns; returns when all have ended. The
 * caller takes part, so do threads of the crew that have nothing else to do, and workers are woken when the loop costs
 * more than waking them. Inside of a loop, on a thread that is not of the crew, with a NULL crew: fn(user, 0, n). */
#define TN__LOOP_NS 4000 /* shorter ones are not shared */
void tn__parallel_for(tn__crew *crew, int64_t n, int64_t grain, double cost_ns,
                      void (*fn)(void *user, int64_t begin, int64_t end), void *user);

#endif
