/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool.
 *
 * A *pool* has workers: threads that sleep until they are called. A *client* (one for each session) may have up to a
 * maximum number of them at work at once. A *crew* is the threads that work for one step: the calling thread, its
 * owner, and workers that joined it. Each thread of a crew has a deque of tasks; an idle thread steals from another
 * deque, or takes parts of a loop.
 *
 *     tn__crew *crew = tn__crew_take(client);         this thread is its owner now
 *     tn__crew_submit(crew, &task, cost_ns);          from any thread of the crew, or from outside of it
 *     tn__parallel_for(crew, n, grain, cost_ns, fn, user);
 *     tn__crew_wait(crew, over, user, 0);             runs the remaining tasks until it is over
 *     tn__crew_put(crew);
 *
 * Help is optional: the owner runs any remaining tasks itself while it waits. So a busy pool delays nothing, and a Run
 * inside of a kernel, which takes a crew of its own, cannot deadlock. Tasks and loops allocate nothing. */
#ifndef TN_CORE_POOL_POOL_H
#define TN_CORE_POOL_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenon/status.h>

typedef struct tn__pool tn__pool;
typedef struct tn__pool_client tn__pool_client;
typedef struct tn__crew tn__crew;

/* ---- pools ---- */

/* Number of CPUs that this process may use: its affinity, and the quota of its control group rounded up. At least 1. */
uint32_t tn__usable_cpus(void);

/* Each returns a reference; releasing the last one joins the workers. A thread is started when there
 * is work for it. Any thread.
 * default: as many workers as usable CPUs.
 * private: a pool of its own. pin: worker i stays on the i-th usable CPU, where the system can do that.
 * named:   one pool for all callers that use the name. TN_INVALID_ARGUMENT if it has another number
 *          of workers. */
tn_status tn__pool_default(tn__pool **out, tn_error *err);
tn_status tn__pool_private(uint32_t workers, bool pin, tn__pool **out, tn_error *err);
tn_status tn__pool_named(const char *name, uint32_t workers, tn__pool **out, tn_error *err);
void tn__pool_unref(tn__pool *pool); /* NULL allowed; not from one of its workers */
uint32_t tn__pool_workers(const tn__pool *pool);

/* Ends and joins the workers; a worker in a crew finishes its step first. They start again when there is work.
 * False: the calling thread is one of them, and nothing happened. */
bool tn__pool_join(tn__pool *pool);

/* The number of this thread among the workers of its pool, from 1; 0 = it is no worker. For traces. */
uint32_t tn__worker_number(void);

/* ---- clients ---- */

typedef struct tn__client_config {
  uint32_t workers; /* maximum at once for all its steps, without the callers; the pool's number of workers is a limit,
                       too */
  uint32_t intra;   /* maximum threads of one loop, including the caller: 1 = the caller alone, 0 = no limit */
  uint32_t spin_us; /* time for which an idle thread looks for work within a step before it sleeps */
  int32_t linger_us; /* time for which a worker looks for work after its last work, also between steps. Below 0: spin_us
                      * if steps follow each other closely, else it sleeps between them */
} tn__client_config;
#define TN__SPIN_US 50 /* the usual spin_us */

/* Takes a reference to the pool. Starts no thread. */
tn_status tn__client_create(tn__pool *pool, const tn__client_config *config, tn__pool_client **out, tn_error *err);
/* No step of the client may run. Waits for workers that are leaving its crews. NULL allowed. */
void tn__client_destroy(tn__pool_client *client);
/* Maximum threads for a step of the client: 1 + workers. */
uint32_t tn__client_width(const tn__pool_client *client);

/* ---- crews ---- */

/* A crew for a step, with this thread as the owner; the client keeps it between steps. NULL without
 * memory: the step then runs without a crew. Between take and put, idle workers stay awake for
 * spin_us. */
tn__crew *tn__crew_take(tn__pool_client *client);
/* The same for steps that repeat: the crew measures what their loops gain from help and remembers it by this address,
 * which is only compared. */
tn__crew *tn__crew_take_for(tn__pool_client *client, const void *kind);
/* Returns the crew to the client. All submitted tasks must have run. The owner only. NULL allowed. */
void tn__crew_put(tn__crew *crew);
/* For a step that continues from call to call (a partial run): another thread becomes the owner in between. Without an
 * owner, workers may run tasks, but nothing guarantees that any thread does. */
void tn__crew_leave(tn__crew *crew);
void tn__crew_enter(tn__crew *crew);

/* Runs once. The submitter owns the memory and may reuse it as soon as `run` begins. */
typedef struct tn__task {
  void (*run)(struct tn__task *task);
  struct tn__task *next; /* used by the crew, as is the next field */
  float cost_ns;
} tn__task;

/* Any thread. Wakes a worker if the tasks in this thread's deque cost more than a wake-up: a thread with several ready
 * tasks keeps one for itself and submits the others. cost_ns is an estimate. The crew must live until the task has
 * run. */
void tn__crew_submit(tn__crew *crew, tn__task *task, double cost_ns);

/* Runs one task, or some parts of a loop, if there are any. Threads of the crew only. */
bool tn__crew_help(tn__crew *crew);

/* Runs tasks until over(user) is true, which any thread may call; false if the monotonic time deadline_ns came first
 * (0 = none). The owner only. The thread that makes `over` true calls tn__crew_notify afterwards, the last task
 * included. */
bool tn__crew_wait(tn__crew *crew, bool (*over)(void *user), void *user, int64_t deadline_ns);
/* From a task, or from any thread if the client lives until this has returned. */
void tn__crew_notify(tn__crew *crew);

/* The usual `over`: true once a counter is 0. Each task counts it down at its end; that must be its
 * last access to memory of the step. */
bool tn__counted_down(void *counter /* _Atomic uint32_t */);
void tn__count_down(tn__crew *crew, _Atomic uint32_t *counter);

/* The crew that this thread works in; NULL = none. */
tn__crew *tn__crew_current(void);

/* ---- loops ---- */

/* Calls fn over [0, n) in parts of at least `grain` items; each item costs about cost_ns. Returns when all have ended.
 * The caller takes part, as do idle threads of the crew; workers are woken if the loop costs more than waking them.
 * Inside of a loop, on a thread outside of the crew, or with a NULL crew it calls fn(user, 0, n). */
#define TN__LOOP_NS 4000 /* shorter loops are not shared */
void tn__parallel_for(tn__crew *crew, int64_t n, int64_t grain, double cost_ns,
                      void (*fn)(void *user, int64_t begin, int64_t end), void *user);

#endif
