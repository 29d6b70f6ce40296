/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes with a rank. The enum is the lock order: a thread takes locks only in rising rank, so no two threads can
 * deadlock. Builds with TN_DEBUG_LOCKS (the sanitizer builds) check rank and owner; other builds pay nothing. */
#ifndef TN_CORE_BASE_THREADS_LOCK_H
#define TN_CORE_BASE_THREADS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Each rank with what a lock of that rank guards. */
typedef enum tn__rank {
  TN_RANK_EAGER_DEFAULT = 8,   /* creation of the process's eager session */
  TN_RANK_SESSION_LIST = 10,   /* list of live sessions, their names and versions */
  TN_RANK_DEFAULT_LIST = 12,   /* list of the default-session stacks, one per thread */
  TN_RANK_DEFAULT_STACK = 14,  /* one default-session stack; the eager scopes */
  TN_RANK_EAGER_OP = 18,       /* plans of one op of an eager session */
  TN_RANK_SESSION = 20,        /* one session: graph, signatures, callables */
  TN_RANK_GRAPH = 30,          /* one graph (readers and writers) */
  TN_RANK_PLACEMENT = 32,      /* device placement of one session's nodes */
  TN_RANK_CONSUMERS = 35,      /* consumers of each output in a graph */
  TN_RANK_REGISTRY = 40,       /* factories, plugins; every libltdl call */
  TN_RANK_OPS = 50,            /* op schemas and kernels */
  TN_RANK_CONTAINER_VIEW = 54, /* containers that one session has seen */
  TN_RANK_CONTAINERS = 56,     /* one set of containers */
  TN_RANK_CONTAINER = 58,      /* content of one container */
  TN_RANK_PLAN = 60,           /* layouts and free instances of a plan */
  TN_RANK_OFFLOAD = 62,        /* parts of a plan's layouts that a runtime has taken */
  TN_RANK_PACK = 65,           /* packed constants of a graph */
  TN_RANK_WAITING = 66,        /* one object that steps wait for: a queue, staging area or barrier */
  TN_RANK_FILE = 67,           /* bytes of a file that are discarded and read again */
  TN_RANK_TABLE = 68,          /* one table (readers and writers) */
  TN_RANK_VARIABLE = 68,       /* one variable; several are locked in the order of their addresses */
  TN_RANK_SLEEPERS = 69,       /* list of a session's sleeping steps */
  TN_RANK_STEP = 70,           /* one waiting step */
  TN_RANK_CANCEL = 80,         /* one cancellation */
  TN_RANK_BUFFER = 85,         /* mapping of a buffer */
  TN_RANK_TENSOR_ARRAY = 86,   /* one tensor array */
  TN_RANK_TENSOR_LIST = 87,    /* versions of one tensor list */
  TN_RANK_PRINT = 88,          /* sink of ops that print, and sink of placements */
  TN_RANK_TRACE = 89,          /* list of the threads that have recorded events of a step */
  TN_RANK_LOG = 90,            /* log sink */
  TN_RANK_POOLS = 91,          /* list of worker pools */
  TN_RANK_POOL = 92,           /* one worker pool: idle workers, members of each crew */
  TN_RANK_PARKED = 93,         /* one parked thread */
  TN_RANK_SPARES = 94,         /* temporary tensors that a step reuses */
  TN_RANK_TEMPORARY = 95       /* list of temporary file names */
} tn__rank;

typedef struct tn__mutex {
  pthread_mutex_t mu;
  const char *name; /* static; for debuggers */
  int rank;
  pthread_t owner; /* with TN_DEBUG_LOCKS, valid while held */
  bool held;       /* with TN_DEBUG_LOCKS; guarded by mu */
} tn__mutex;
#define TN__MUTEX_INIT(name_, rank_) { PTHREAD_MUTEX_INITIALIZER, name_, rank_, 0, false }

void tn__mutex_init(tn__mutex *m, const char *name, tn__rank rank);
void tn__mutex_fini(tn__mutex *m);
void tn__mutex_lock(tn__mutex *m);
/* Like tn__mutex_lock, but the thread may hold locks of the same rank. The caller ensures an order among these. */
void tn__mutex_lock_peer(tn__mutex *m);
void tn__mutex_unlock(tn__mutex *m);
void tn__assert_held(tn__mutex *m); /* by the calling thread; does nothing without TN_DEBUG_LOCKS */

typedef struct tn__cond {
  pthread_cond_t cond; /* on CLOCK_MONOTONIC */
} tn__cond;
void tn__cond_init(tn__cond *c);
void tn__cond_fini(tn__cond *c);
/* May wake spuriously: test the condition in a loop. Not a cancellation point. */
void tn__cond_wait(tn__cond *c, tn__mutex *m);
/* Waits at most until the time deadline_ns of tn__now_ns; false: it has passed. */
bool tn__cond_wait_until(tn__cond *c, tn__mutex *m, int64_t deadline_ns);
void tn__cond_signal(tn__cond *c);
void tn__cond_broadcast(tn__cond *c);
int64_t tn__now_ns(void); /* CLOCK_MONOTONIC, in nanoseconds */

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

/* Takes and releases the program's lock around libltdl (tn_set_ltdl_lock), if it set one. Called around every libltdl
 * call, with the registry's own lock held. After the first call tn_set_ltdl_lock is refused. */
void tn__ltdl_enter(void);
void tn__ltdl_leave(void);

#endif
