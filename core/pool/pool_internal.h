/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of the worker pool, for pool.c (pools), workers.c (threads), crew.c (clients and crews) and parallel.c
 * (loops). */
#ifndef TN_CORE_POOL_POOL_INTERNAL_H
#define TN_CORE_POOL_POOL_INTERNAL_H

#include <core/base/alloc.h>
#include <core/base/plugin_call.h>
#include <core/base/threads/lock.h>
#include <core/pool/deque.h>
#include <core/pool/park.h>
#include <core/pool/pool.h>
#include <core/tensor/account.h>
#include <sched.h>

typedef struct tn__seat tn__seat;
typedef struct tn__worker tn__worker;

/* A loop that threads share. A thread takes a part by changing `range`. A taken part keeps the loop
 * alive until it is counted in `left`, so only a thread that has a part may read the members below
 * `helpers`. Looking at a loop that has ended, or at the next loop in the same place, does no harm.
 *
 * A cache line takes some 150 ns from one core to another, which is most of the overhead of loops
 * of a few microseconds. So all that a helper needs is in one line (part_ns only while more helpers
 * may come), and the caller writes to no other line that workers read. */
typedef struct tn__loop_share {
  /* Parts that are not taken: first << 32 | end. The caller takes the first, helpers the last. */
  _Atomic uint64_t range;
  _Atomic uint32_t left;    /* parts that have not ended */
  _Atomic uint32_t helpers; /* number of helpers at work; counted only if fewer than all workers may help */
  int64_t n, size;          /* items of the loop; items of each part but the last */
  void (*fn)(void *user, int64_t begin, int64_t end);
  void *user;
  tn__account *account;     /* of the caller's thread, as is float_mode: helpers use both */
  uint32_t n_parts, float_mode;
  double part_ns;           /* estimated time of a part */
  const tn__plugin_call *volatile calling; /* of the caller's thread; read only by the report of a crash */
} tn__loop_share;

/* The place of one thread in a crew. Seat 0 is the owner's. Seats live as long as the client.
 * Fields without a remark belong to the thread in the seat. */
struct tn__seat {
  tn__deque deque; /* any thread of the crew may steal */
  _Alignas(64) tn__loop_share loop; /* on cache lines of its own, for thieves and helpers */
  _Alignas(64) tn__crew *crew;
  tn__seat *below;   /* the seat that this thread returns to: a step may run inside of another one's kernel */
  bool taken;        /* by a worker; guarded by the pool's lock */
  bool looping;      /* the thread runs a part of a loop: loops inside of it are not shared */
  uint64_t random;   /* state of its random numbers, not 0 */
  double offered_ns; /* cost of tasks pushed since other threads were last notified */
  double declined_ns; /* cost of work that was not worth a wake-up, since the last tn__pool_declined */
  tn__parker parker; /* of the owner while it waits, or of a loop's caller */
};

#define TN__PROFILES 8      /* kinds of steps that a crew remembers; a power of 2 */
#define TN__PROFILE_TIMES 7 /* steps of each way in a trial that count */

/* Measurements of steps of one kind (profile.c). Times are of whole steps, in nanoseconds. */
typedef struct tn__profile {
  const void *kind; /* NULL = none yet */
  int way;          /* the faster way */
  uint32_t turn;    /* steps since the way was chosen */
  uint32_t pause;   /* steps until the other way is tried */
  uint32_t slow;    /* of these, steps with help that were too slow */
  float alone_ns;   /* time of one step alone; 0 = not known */
  double loops_ns;  /* estimated time of all loops of the last step */
  float times[2][TN__PROFILE_TIMES]; /* the latest: with help, alone */
} tn__profile;

struct tn__crew {
  tn__pool_client *client;
  tn__crew *next;            /* in the list of all crews of the client; guarded by the pool's lock */
  tn__crew *next_idle;       /* guarded by the pool's lock */
  tn__crew *next_call;       /* guarded by the pool's lock */
  _Atomic uint32_t called;   /* TN__CALLED_...; changed under the pool's lock */
  _Atomic uint32_t seated;   /* number of workers in it; changed under the pool's lock */
  _Atomic uint32_t open;     /* a step runs */
  _Atomic uint32_t awake;    /* the next step is expected soon: workers stay awake for it */
  _Atomic uint32_t spinning; /* number of its threads that look for work */
  _Atomic uint32_t guests;   /* number of outside threads that are submitting */
  _Atomic(tn__task *) inbox; /* tasks from outside, last one first */
  /* This field and those after it belong to the owner, on cache lines that no other thread reads while it writes. */
  _Alignas(64) tn__profile *profile; /* of the step; NULL: its kind is not known */
  bool alone;       /* the step runs without help: its loops are not cut */
  bool sure;        /* the step runs with help: a worker is called for its first loop, whatever the cost */
  double loops_ns;  /* estimated time of its loops so far */
  double ahead_ns;  /* estimated time of its remaining loops, from the step before */
  int64_t begun_ns; /* 0 = the step is not timed */
  int64_t ended_ns; /* end of the last step of tn__crew_take_for; 0 = there was none */
  bool timed;       /* this step sets ended_ns */
  uint32_t closely; /* consecutive steps that each began soon after the one before */
  tn__profile profiles[TN__PROFILES];
  _Alignas(64) _Atomic uint32_t n_seats; /* seats made so far; increased under the pool's lock */
  _Atomic(tn__seat *) seats[];           /* owned; the first n_seats are set */
};

#define TN__IDLE_CREWS 8 /* places for idle crews of a client; further ones are kept in a list */

/* The CPUs of the thread that created a pool. Recorded then, since a worker may be started by
 * another worker that is already pinned. */
typedef struct tn__cpus {
  size_t bytes; /* of the mask */
  void *mask;   /* owned, a cpu_set_t; NULL = not known */
} tn__cpus;

void tn__cpus_read(tn__cpus *out);
void tn__cpus_fini(tn__cpus *cpus);
/* Pins this thread to CPU number `number` of them, from 0, modulo their count. May fail without notice. */
void tn__cpus_pin(const tn__cpus *cpus, uint32_t number);
/* The CPU on which this thread runs; -1 = not known. */
int tn__cpu_now(void);
/* Excludes a CPU from the affinity of a thread that has others, and includes the one excluded before (-1 = none).
 * False: nothing changed. room: a buffer of the size of a mask. */
bool tn__cpus_keep_off(tn__cpus *room, pthread_t thread, int before, int cpu);

/* Why a crew is in the pool's list of calls: no worker was idle, or other crews of its client have all its workers. */
enum { TN__CALLED_NOT = 0, TN__CALLED_POOL, TN__CALLED_CLIENT };

struct tn__pool_client {
  tn__pool *pool;
  uint32_t workers, max_helpers; /* maximum at once: workers of all its crews; helpers of one loop */
  int64_t spin_ns, linger_ns; /* as tn__client_config. linger_ns below 0: only if steps follow each other closely */
  _Atomic uint32_t seated;  /* number of workers in its crews; changed under the pool's lock */
  _Atomic uint32_t n_calls; /* calls of its crews for each other's workers; changed under the pool's lock */
  _Atomic bool closing;    /* changed under the pool's lock */
  tn__crew *crews;         /* all; guarded by the pool's lock */
  tn__crew *idle_list;     /* guarded by the pool's lock */
  _Atomic uint32_t n_idle; /* in the list */
  struct { /* idle crews, each place on a cache line of its own; exchanged without a lock */
    _Atomic(tn__crew *) at;
    char apart[64 - sizeof(void *)];
  } idle[TN__IDLE_CREWS];
};

/* A worker thread. The struct lives as long as the pool, also while it has no thread. */
struct tn__worker {
  tn__pool *pool;
  tn__worker *next_idle; /* guarded by the pool's lock */
  uint32_t number;       /* from 1 */
  bool started;          /* guarded by the pool's lock: a thread to join */
  int off;               /* the CPU excluded for it, guarded by the pool's lock; -1 = none */
  pthread_t thread;
  tn__mutex mu;
  tn__cond called;   /* signalled when seat or stop is set */
  tn__seat *seat;    /* its next seat, NULL = none; guarded by mu */
  int64_t called_at; /* when it was given the seat, 0 = that is not measured; guarded by mu */
  bool stop;         /* the thread is to end; guarded by mu */
};

struct tn__pool {
  _Atomic uint32_t refs;
  uint32_t forks;     /* number of forks of the process when the pool was created */
  uint32_t n_workers;
  bool pin;
  tn__cpus cpus;      /* pinned pools: the CPUs to choose from; else a buffer for a worker's, guarded by mu */
  char *name;         /* NULL = none */
  size_t name_size;
  tn__pool *next;     /* in the list of all pools */
  uint32_t round;     /* of its last tn_join_workers; guarded by the lock of the list */
  tn__mutex mu;
  tn__cond left;      /* signalled when a worker leaves a client that closes, and when a join has ended */
  tn__worker **workers; /* n_made of them; guarded by mu */
  size_t room, n_made;
  tn__worker *idle;   /* guarded by mu; the last to sleep is the first */
  tn__crew *calls, **last_call; /* crews that called for workers when none was idle, first one first; guarded by mu */
  _Atomic bool stopping;        /* its workers are being joined; changed under mu */
  int64_t no_threads_until;     /* monotonic: no thread is started before, since the system had none; guarded by mu */
  _Atomic uint32_t n_idle, n_started, n_calls; /* workers asleep; with a thread; crews in the list. Changed under mu */
  _Atomic int64_t wake_ns;  /* measured time from the call of a worker until it runs */
  _Atomic int64_t call_ns;  /* measured cost of a call for the caller */
  _Atomic int64_t worth_ns; /* work that is worth a wake-up, from these two */
};

/* Number of forks of this process from one that had pools (pool.c). */
extern _Atomic uint32_t tn__pool_forks;
/* False in a child process: the pool has no workers there, and its locks may be held by threads
 * that do not exist. */
static inline bool tn__pool_alive(const tn__pool *pool)
{
  return pool->forks == atomic_load_explicit(&tn__pool_forks, memory_order_relaxed);
}
/* workers.c. Gets one more worker for the crew, if it may have one: a sleeping worker, a new one, or the next that
 * becomes idle. */
void tn__pool_call(tn__crew *crew);
/* Lowers the estimated cost of a wake-up, so that it is measured again. */
void tn__pool_declined(tn__pool *pool);

void tn__pool_forget(tn__crew *crew); /* removes it from the list of calls; the pool's lock is held */
bool tn__pool_stop(tn__pool *pool);   /* as tn__pool_join */
void tn__pool_measures(tn__pool *pool); /* sets the estimates that are used before anything is measured */

/* profile.c: the begin and the end of a step of this kind. The owner only. */
void tn__profile_begin(tn__crew *crew, const void *kind);
void tn__profile_end(tn__crew *crew);

/* crew.c */
extern _Thread_local tn__seat *tn__seat_now;
tn__seat *tn__seat_create(tn__crew *crew); /* NULL without memory */
bool tn__seat_run(tn__seat *seat);       /* runs one task, or parts of a loop; false: there are none */
/* Looks for work for a while before the thread sleeps; false if there is none. It stops when
 * over(user) is true; NULL: the thread is a worker. */
bool tn__seat_spin(tn__seat *seat, bool (*over)(void *user), void *user);
bool tn__crew_has_work(tn__crew *crew); /* any thread; only a snapshot */
/* Wakes a thread for work of the crew: the owner if it sleeps, else a worker. */
void tn__crew_invite(tn__crew *crew);

/* Whether the seat is that of the crew's owner. */
static inline bool tn__seat_owns(const tn__seat *seat)
{
  return atomic_load_explicit(&seat->crew->seats[0], memory_order_relaxed) == seat;
}

/* Work in nanoseconds that is worth waking a worker, as measured so far. */
static inline double tn__crew_worth(const tn__crew *crew)
{
  return (double)atomic_load_explicit(&crew->client->pool->worth_ns, memory_order_relaxed);
}
/* Accumulates work that was too small to justify a wake-up. Once it exceeds eight wake-ups, their
 * estimated cost is lowered slightly: otherwise one wrong measurement could prevent all further
 * ones. */
static inline void tn__seat_declined(tn__seat *seat, double cost_ns)
{
  seat->declined_ns += cost_ns;
  if (seat->declined_ns < 8 * tn__crew_worth(seat->crew)) return;
  seat->declined_ns = 0;
  tn__pool_declined(seat->crew->client->pool);
}

/* Whether a worker in a crew of this client is wanted elsewhere: by another crew, or by a thread that joins the
 * workers. */
static inline bool tn__asked_elsewhere(const tn__pool_client *client)
{
  return atomic_load_explicit(&client->pool->n_calls, memory_order_relaxed) > 0 ||
         atomic_load_explicit(&client->pool->stopping, memory_order_relaxed) ||
         atomic_load_explicit(&client->n_calls, memory_order_relaxed) > 0;
}

/* parallel.c: runs parts of the loop of another seat; false: there are none, or the loop has enough
 * helpers. */
bool tn__loop_help(tn__seat *helper, tn__seat *other);
/* Whether the helpers of a loop are counted: they need not be if all workers may help. */
static inline bool tn__loop_counts(const tn__pool_client *client) { return client->max_helpers < client->workers; }
/* Whether a loop has parts left and may have one more helper; only a snapshot. */
static inline bool tn__loop_open(const tn__loop_share *loop, const tn__pool_client *client)
{
  uint64_t range = atomic_load_explicit(&loop->range, memory_order_relaxed);
  return (uint32_t)(range >> 32) < (uint32_t)range &&
         (!tn__loop_counts(client) || atomic_load_explicit(&loop->helpers, memory_order_relaxed) < client->max_helpers);
}

/* Called between two checks of a thread that spins until the monotonic time `until`; false: the
 * time has passed. In the second half it yields from time to time: on a busy machine the thread
 * that it waits for may need this CPU. The clock is read only at each fourth call. */
static inline bool tn__spin(const tn__pool_client *client, int64_t until, uint32_t *turns)
{
  tn__relax();
  if ((++*turns & 3) != 0) return true;
  int64_t left = until - tn__now_ns();
  if (left < client->spin_ns / 2 && (*turns & 31) == 0) sched_yield();
  return left > 0;
}

#endif
