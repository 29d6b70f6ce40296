/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes with a rank. The enum is the lock order: a thread takes locks only in rising rank. Builds with TN_DEBUG_LOCKS
 * (the sanitizer builds) check rank and owner. */
#ifndef TN_CORE_BASE_LOCK_H
#define TN_CORE_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum tn__rank {
  TN_RANK_EAGER_DEFAULT = 8, /* the eager session of the process, while it is made */
  TN_RANK_SESSION_LIST = 10, /* live sessions, their names and versions */
  TN_RANK_DEFAULT_LIST = 12, /* the stacks of default sessions, one a thread */
  TN_RANK_DEFAULT_STACK = 14, /* one of them */
  TN_RANK_EAGER_OP = 18,     /* which plans one op of an eager session has */
  TN_RANK_SESSION = 20,      /* one session: graph, signatures, callables */
  TN_RANK_GRAPH = 30,        /* one graph (readers and writers) */
  TN_RANK_PLACEMENT = 32,    /* where one session's nodes stand */
  TN_RANK_CONSUMERS = 35,    /* who reads what in a graph */
  TN_RANK_REGISTRY = 40,     /* factories, plugins; every libltdl call */
  TN_RANK_OPS = 50,          /* op schemas and kernels */
  TN_RANK_CONTAINER_VIEW = 54,   /* containers that one session has seen */
  TN_RANK_CONTAINERS = 56,       /* one set of containers */
  TN_RANK_CONTAINER = 58,        /* what is in one container */
  TN_RANK_PLAN = 60,         /* layouts and free instances of a plan */
  TN_RANK_OFFLOAD = 62,      /* what a runtime has taken of the layouts of plans */
  TN_RANK_PACK = 65,         /* packed constants of a graph */
  TN_RANK_WAITING = 66,      /* what steps wait at: one queue, staging area or barrier */
  TN_RANK_FILE = 67,         /* bytes of a file that are put down and read again */
  TN_RANK_TABLE = 68,        /* one table (readers and writers) */
  TN_RANK_VARIABLE = 68,     /* one variable; several in the order of their addresses */
  TN_RANK_SLEEPERS = 69,     /* which steps of a session sleep */
  TN_RANK_STEP = 70,         /* one step that waits */
  TN_RANK_CANCEL = 80,       /* one cancellation */
  TN_RANK_BUFFER = 85,       /* mapping of a buffer */
  TN_RANK_TENSOR_ARRAY = 86, /* one tensor array */
  TN_RANK_TENSOR_LIST = 87,  /* the versions of one tensor list */
  TN_RANK_PRINT = 88,        /* the sink of ops that print, and that of placements */
  TN_RANK_TRACE = 89,        /* which threads have recorded something of a step */
  TN_RANK_LOG = 90,          /* the log sink */
  TN_RANK_POOLS = 91,        /* which worker pools there are */
  TN_RANK_POOL = 92,         /* one worker pool: who is idle, who is in which crew */
  TN_RANK_PARKED = 93,       /* one thread that sleeps until it is needed */
  TN_RANK_SPARES = 94,       /* tensors that a step keeps for itself */
  TN_RANK_TEMPORARY = 95     /* names of files that are being written */
} tn__rank;

typedef struct tn__mutex {
  pthread_mutex_t mu;
  const char *name;
  int rank;
  pthread_t owner; /* valid while held */
  bool held;
} tn__mutex;
#define TN__MUTEX_INIT(name_, rank_) { PTHREAD_MUTEX_INITIALIZER, name_, rank_, 0, false }

void tn__mutex_init(tn__mutex *m, const char *name, tn__rank rank);
void tn__mutex_fini(tn__mutex *m);
void tn__mutex_lock(tn__mutex *m);
/* The same where one of equal rank may be held already: the caller sees to an order among those. */
void tn__mutex_lock_peer(tn__mutex *m);
void tn__mutex_unlock(tn__mutex *m);
void tn__assert_held(tn__mutex *m);

typedef struct tn__cond {
  pthread_cond_t cond; /* on CLOCK_MONOTONIC */
} tn__cond;
void tn__cond_init(tn__cond *c);
void tn__cond_fini(tn__cond *c);
void tn__cond_wait(tn__cond *c, tn__mutex *m);
/* Until the monotonic time in nanoseconds; false when that passed. */
bool tn__cond_wait_until(tn__cond *c, tn__mutex *m, int64_t deadline_ns);
void tn__cond_signal(tn__cond *c);
void tn__cond_broadcast(tn__cond *c);
int64_t tn__now_ns(void); /* CLOCK_MONOTONIC */

typedef struct tn__rwlock {
  pthread_rwlock_t rw;
  const char *name;
  int rank;
} tn__rwlock;
void tn__rwlock_init(tn__rwlock *l, const char *name, tn__rank rank);
void tn__rwlock_fini(tn__rwlock *l);
void tn__rwlock_read(tn__rwlock *l);
void tn__rwlock_write(tn__rwlock *l);
void tn__rwlock_unlock(tn__rwlock *l);

/* The lock that the program gave with tn_set_ltdl_lock, if it did: around every libltdl call, inside the registry's
 * own. The first call ends the time in which one can be given. */
void tn__ltdl_enter(void);
void tn__ltdl_leave(void);

#endif
