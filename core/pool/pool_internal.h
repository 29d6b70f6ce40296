/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the worker pool share: pool.c (pools), workers.c (threads), crew.c (who works for a step),
 * parallel.c (loops). */
#ifndef TN_CORE_POOL_POOL_INTERNAL_H
#define TN_CORE_POOL_POOL_INTERNAL_H

#include <core/base/alloc.h>
#include <core/base/plugin_call.h>
#include <core/base/lock.h>
#include <core/pool/deque.h>
#include <core/pool/park.h>
#include <core/pool/pool.h>
#include <core/tensor/account.h>
#include <sched.h>

typedef struct tn__seat tn__seat;
typedef struct tn__worker tn__worker;

/* A loop that threads share. Parts are taken by changing `range`: a part that was taken keeps the loop alive until it
 * is counted in `left`, so only who has one reads what stands below. A late look at a loop that has ended, or at the
 * next one, does no harm.
 *
 * A line of the cache takes some 150 ns from one core to the other, and loops of a few microseconds lose little else: all
 * that a helper needs is in one (part_ns only while more may come), and the caller writes nowhere else where workers look. */
typedef struct tn__loop_share {
  _Atomic uint64_t range; /* parts that nobody took: first << 32 | end. The caller takes the first, helpers the last */
  _Atomic uint32_t left;  /* parts that have not ended */
  _Atomic uint32_t helpers; /* that are there; counted where not all workers may help */
  int64_t n, size;          /* items; of each part but the last */
  void (*fn)(void *user, int64_t begin, int64_t end);
  void *user;
  tn__account *account;  /* of the caller's thread, as the mode: helpers work as it would */
  uint32_t n_parts, float_mode;
  double part_ns;        /* roughly */
  const tn__plugin_call *volatile calling; /* of the caller's thread; read only when the process ends */
} tn__loop_share;

/* A place in a crew: what one thread has there. Seat 0 is the owner's. They stay until the client goes. */
struct tn__seat {
  tn__deque deque;
  _Alignas(64) tn__loop_share loop; /* thieves and helpers use lines of their own */
  _Alignas(64) tn__crew *crew;
  tn__seat *below;   /* where this thread sat before */
  bool taken;        /* by a worker; guarded by the pool's lock */
  bool looping;      /* it runs a part of a loop */
  uint64_t random;
  double offered_ns; /* what was put into the deque since others were told of it */
  double declined_ns; /* what was not worth a wake-up */
  tn__parker parker; /* the owner waits, or a loop's caller */
};

#define TN__PROFILES 8      /* kinds of steps that a crew remembers; a power of 2 */
#define TN__PROFILE_TIMES 7 /* steps of each way in a trial that count */

/* What a crew remembers of steps of a kind (profile.c). */
typedef struct tn__profile {
  const void *kind; /* NULL = none yet */
  int way;          /* in which they are faster */
  uint32_t turn;    /* steps since that was decided */
  uint32_t pause;   /* steps until the other way is tried */
  uint32_t slow;    /* of these: with help, and too slow */
  float alone_ns;   /* what one took alone; 0 = not known */
  double loops_ns;  /* of all loops of the last one, as was said of them */
  float times[2][TN__PROFILE_TIMES]; /* with help, alone */
} tn__profile;

struct tn__crew {
  tn__pool_client *client;
  tn__crew *next;            /* of the client */
  tn__crew *next_idle;       /* guarded by the pool's lock */
  tn__crew *next_call;       /* guarded by the pool's lock */
  _Atomic uint32_t called;   /* TN__CALLED_...; changed under the pool's lock */
  _Atomic uint32_t seated;   /* workers in it; changed under the pool's lock */
  _Atomic uint32_t open;     /* a step is on */
  _Atomic uint32_t awake;    /* the next one comes soon: workers look on for it */
  _Atomic uint32_t spinning; /* threads of it that look for work */
  _Atomic uint32_t guests;   /* threads from outside that are just submitting */
  _Atomic(tn__task *) inbox; /* from outside, last one first */
  _Alignas(64) tn__profile *profile; /* of the step, NULL = its kind is not known; this and what follows is the owner's, on
                                  * lines that nobody looks at while he writes */
  bool alone;       /* nobody is called for its loops, which stay whole */
  bool sure;        /* somebody is called for its first loop, whatever that costs */
  double loops_ns;  /* of its loops so far, as was said of them */
  double ahead_ns;  /* of its loops from the last one on, as the step before had them */
  int64_t begun_ns; /* 0 = it is not timed */
  int64_t ended_ns; /* when the last one of tn__crew_take_for ended; 0 = there was none */
  bool timed;       /* this one is to say so */
  uint32_t closely; /* steps that came soon after the one before */
  tn__profile profiles[TN__PROFILES];
  _Alignas(64) _Atomic uint32_t n_seats; /* that were made */
  _Atomic(tn__seat *) seats[];
};

#define TN__IDLE_CREWS 8

/* CPUs that the thread which made a pool might use. A worker may be started by a worker that is pinned already. */
typedef struct tn__cpus {
  size_t bytes;
  void *mask; /* NULL = not known */
} tn__cpus;

void tn__cpus_read(tn__cpus *out);
void tn__cpus_free(tn__cpus *cpus);
/* This thread stays on the number-th of them, counted from 0, and from the beginning again. Only a wish: it may fail. */
void tn__cpus_pin(const tn__cpus *cpus, uint32_t number);
/* The CPU that this thread is on; -1 = not known. */
int tn__cpu_now(void);
/* Keeps a thread off a CPU, where it has others, and lets it on the one that it was kept off before (-1 = none). False:
 * nothing was changed. room: as large as a mask. */
bool tn__cpus_keep_off(tn__cpus *room, pthread_t thread, int before, int cpu);

/* Why a crew is among the pool's calls: no worker had time, or its client's other crews have all that it may have. */
enum { TN__CALLED_NOT = 0, TN__CALLED_POOL, TN__CALLED_CLIENT };

struct tn__pool_client {
  tn__pool *pool;
  uint32_t workers, max_helpers;
  int64_t spin_ns, linger_ns; /* linger_ns below 0: where steps follow each other closely */
  _Atomic uint32_t seated;  /* workers in its crews; changed under the pool's lock */
  _Atomic uint32_t n_calls; /* of its crews for each other's workers; changed under the pool's lock */
  _Atomic bool closing;    /* changed under the pool's lock */
  tn__crew *crews;         /* all; guarded by the pool's lock */
  tn__crew *idle_list;     /* guarded by the pool's lock */
  _Atomic uint32_t n_idle; /* in the list */
  struct {
    _Atomic(tn__crew *) at;
    char apart[64 - sizeof(void *)];
  } idle[TN__IDLE_CREWS];
};

struct tn__worker {
  tn__pool *pool;
  tn__worker *next_idle; /* guarded by the pool's lock */
  uint32_t number;       /* from 1 */
  bool started;          /* guarded by the pool's lock: a thread to join */
  int off;               /* the CPU that it is kept off, guarded by the pool's lock; -1 = none */
  pthread_t thread;
  tn__mutex mu;
  tn__cond called;
  tn__seat *seat;    /* guarded by mu: where it is to go */
  int64_t called_at; /* guarded by mu */
  bool stop;         /* guarded by mu */
};

struct tn__pool {
  _Atomic uint32_t refs;
  uint32_t forks;     /* of the process when it was made */
  uint32_t n_workers;
  bool pin;
  tn__cpus cpus;      /* of pin: to choose from; else room for a worker's, guarded by mu */
  char *name;         /* NULL = it has none */
  size_t name_size;
  tn__pool *next;     /* of all */
  uint32_t round;     /* of tn_join_workers that it had last; guarded by the lock of the list */
  tn__mutex mu;
  tn__cond left;      /* a worker left a client that closes; a join has ended */
  tn__worker **workers; /* n_made of them; guarded by mu */
  size_t room, n_made;
  tn__worker *idle;   /* guarded by mu, the last one to sleep first */
  tn__crew *calls, **last_call; /* crews that want workers when there were none */
  _Atomic bool stopping;        /* changed under mu */
  int64_t no_threads_until;     /* guarded by mu: the system gave none */
  _Atomic uint32_t n_idle, n_started, n_calls; /* changed under mu */
  _Atomic int64_t wake_ns;  /* from the call for a worker until it is there, measured */
  _Atomic int64_t call_ns;  /* what the call costs who calls, measured */
  _Atomic int64_t worth_ns; /* from the two: work that is worth a wake-up */
};

/* How often this process was forked from one that had pools (pool.c). */
extern _Atomic uint32_t tn__pool_forks;
/* False in a child process: the workers are not there, and locks may be held for ever. */
static inline bool tn__pool_alive(const tn__pool *pool)
{
  return pool->forks == atomic_load_explicit(&tn__pool_forks, memory_order_relaxed);
}
/* workers.c. Sees to one more worker for the crew, if it may have one: one that sleeps, a new one, or the next that
 * has time. */
void tn__pool_call(tn__crew *crew);
/* Lowers what a wake-up is believed to cost, so that it is measured again. */
void tn__pool_declined(tn__pool *pool);

void tn__pool_forget(tn__crew *crew); /* it goes; the pool's lock is held */
bool tn__pool_stop(tn__pool *pool);   /* as tn__pool_join */
void tn__pool_measures(tn__pool *pool); /* what is believed before anything was measured */

/* profile.c: a step of this kind, and its end. */
void tn__profile_begin(tn__crew *crew, const void *kind);
void tn__profile_end(tn__crew *crew);

/* crew.c */
extern _Thread_local tn__seat *tn__seat_now;
tn__seat *tn__seat_make(tn__crew *crew); /* NULL without memory */
bool tn__seat_run(tn__seat *seat);       /* one task, or parts of a loop */
/* Looks for work for a while, before it sleeps; false when there is none. `over` may be NULL. */
bool tn__seat_spin(tn__seat *seat, bool (*over)(void *user), void *user);
bool tn__crew_has_work(tn__crew *crew);
/* Wakes somebody for work of the crew: the owner if he sleeps, else a worker. */
void tn__crew_invite(tn__crew *crew);

/* Whether it is the owner's, or a loop of his. */
static inline bool tn__seat_owns(const tn__seat *seat)
{
  return atomic_load_explicit(&seat->crew->seats[0], memory_order_relaxed) == seat;
}

static inline double tn__crew_worth(const tn__crew *crew)
{
  return (double)atomic_load_explicit(&crew->client->pool->worth_ns, memory_order_relaxed);
}
/* Work that was not worth a wake-up. When it has come to that of several, what they cost is believed a little less. */
static inline void tn__seat_declined(tn__seat *seat, double cost_ns)
{
  seat->declined_ns += cost_ns;
  if (seat->declined_ns < 8 * tn__crew_worth(seat->crew)) return;
  seat->declined_ns = 0;
  tn__pool_declined(seat->crew->client->pool);
}

/* Whether others wait for a worker that is in a crew of this client: crews, or who joins the workers. */
static inline bool tn__asked_elsewhere(const tn__pool_client *client)
{
  return atomic_load_explicit(&client->pool->n_calls, memory_order_relaxed) > 0 ||
         atomic_load_explicit(&client->pool->stopping, memory_order_relaxed) ||
         atomic_load_explicit(&client->n_calls, memory_order_relaxed) > 0;
}

/* parallel.c: takes parts of the loop of another seat; false: there are none, or enough help for it. */
bool tn__loop_help(tn__seat *helper, tn__seat *other);
static inline bool tn__loop_counts(const tn__pool_client *client) { return client->max_helpers < client->workers; }
static inline bool tn__loop_open(const tn__loop_share *loop, const tn__pool_client *client)
{
  uint64_t range = atomic_load_explicit(&loop->range, memory_order_relaxed);
  return (uint32_t)(range >> 32) < (uint32_t)range &&
         (!tn__loop_counts(client) || atomic_load_explicit(&loop->helpers, memory_order_relaxed) < client->max_helpers);
}

/* Between two looks of a thread that spins until `until`; false: that is over. In the second half it lets others run
 * now and then: who is waited for may want this very CPU, on a machine that is full. */
static inline bool tn__spin(const tn__pool_client *client, int64_t until, uint32_t *turns)
{
  tn__relax();
  if ((++*turns & 3) != 0) return true;
  int64_t left = until - tn__now_ns();
  if (left < client->spin_ns / 2 && (*turns & 31) == 0) sched_yield();
  return left > 0;
}

#endif
