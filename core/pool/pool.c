/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: the default pool, named pools, private pools. All are in a list as long as there are
 * references to them.
 *
 * The list does not count as a reference. A pool whose last reference is gone may still be in it
 * for a moment, so a lookup takes a reference only if there are others (hold), and else makes
 * another pool. */
#define _GNU_SOURCE
#include <core/pool/pool_internal.h>

#include <string.h>

static tn__mutex list_mu = TN__MUTEX_INIT("worker pools", TN_RANK_POOLS);
static tn__pool *default_pool; /* guarded by list_mu, not counted */
static tn__pool *list;         /* of all pools; guarded by list_mu, not counted */
static uint32_t rounds;        /* number of calls of tn_join_workers; guarded by list_mu */
static pthread_once_t once = PTHREAD_ONCE_INIT; /* installs the fork handlers */

_Atomic uint32_t tn__pool_forks;

/* ---- fork ---- */

/* In a child process the lock of the list is free, and the list is empty: the parent's pools have
 * no threads there. A session of the parent that is used in the child finds its pool dead
 * (tn__pool_alive) and runs without workers. */
static void before_fork(void) { pthread_mutex_lock(&list_mu.mu); }
static void in_parent(void) { pthread_mutex_unlock(&list_mu.mu); }

static void in_child(void)
{
  atomic_fetch_add(&tn__pool_forks, 1);
  default_pool = list = NULL;
  pthread_mutex_unlock(&list_mu.mu);
}

/* Once, before the first pool is made. */
static void install(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* ---- making ---- */

static void free_pool(tn__pool *pool)
{
  for (size_t i = 0; i < pool->n_made; i++) {
    if (tn__pool_alive(pool)) {
      tn__cond_fini(&pool->workers[i]->called);
      tn__mutex_fini(&pool->workers[i]->mu);
    }
    tn__free(pool->workers[i], sizeof *pool->workers[i]);
  }
  tn__free(pool->workers, pool->room * sizeof *pool->workers);
  if (tn__pool_alive(pool)) { /* in a child process, a thread of the parent may hold the lock, or wait: leave both */
    tn__cond_fini(&pool->left);
    tn__mutex_fini(&pool->mu);
  }
  tn__cpus_fini(&pool->cpus);
  tn__free(pool->name, pool->name_size);
  tn__free(pool, sizeof *pool);
}

static tn__pool *make(const char *name, uint32_t workers, bool pin, tn_error *err)
{
  tn__pool *pool = tn__zalloc(sizeof *pool);
  if (pool == NULL) {
    tn__no_memory(err, "worker pool", sizeof *pool);
    return NULL;
  }
  atomic_init(&pool->refs, 1);
  pool->forks = atomic_load(&tn__pool_forks);
  pool->n_workers = workers;
  pool->pin = pin;
  tn__cpus_read(&pool->cpus);
  pool->last_call = &pool->calls;
  tn__mutex_init(&pool->mu, "worker pool", TN_RANK_POOL);
  tn__cond_init(&pool->left);
  tn__pool_measures(pool);
  if (name == NULL) return pool;
  pool->name_size = strlen(name) + 1;
  pool->name = tn__alloc(pool->name_size);
  if (pool->name != NULL) {
    memcpy(pool->name, name, pool->name_size);
    return pool;
  }
  tn__no_memory(err, "name of a worker pool", pool->name_size);
  free_pool(pool);
  return NULL;
}

/* Makes a pool and adds it to the list, whose lock is held. */
static tn__pool *make_listed(const char *name, uint32_t workers, bool pin, tn_error *err)
{
  tn__pool *pool = make(name, workers, pin, err);
  if (pool == NULL) return NULL;
  pool->next = list;
  list = pool;
  return pool;
}

tn_status tn__pool_private(uint32_t workers, bool pin, tn__pool **out, tn_error *err)
{
  pthread_once(&once, install);
  tn__mutex_lock(&list_mu);
  *out = make_listed(NULL, workers, pin, err);
  tn__mutex_unlock(&list_mu);
  return *out == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
}

/* ---- finding ---- */

/* Takes a reference to a pool in the list, whose lock is held. False: the last reference is gone,
 * and the pool is about to be unlisted. */
static bool hold(tn__pool *pool)
{
  uint32_t refs = atomic_load_explicit(&pool->refs, memory_order_relaxed);
  while (refs != 0)
    if (atomic_compare_exchange_weak_explicit(&pool->refs, &refs, refs + 1, memory_order_acq_rel, memory_order_relaxed))
      return true;
  return false;
}

tn_status tn__pool_default(tn__pool **out, tn_error *err)
{
  pthread_once(&once, install);
  tn__mutex_lock(&list_mu);
  if (default_pool == NULL || !hold(default_pool)) default_pool = make_listed(NULL, tn__usable_cpus(), false, err);
  *out = default_pool;
  tn__mutex_unlock(&list_mu);
  return *out == NULL ? TN_RESOURCE_EXHAUSTED : TN_OK;
}

/* S-CFG-13, S-CFG-14 */
tn_status tn__pool_named(const char *name, uint32_t workers, tn__pool **out, tn_error *err)
{
  tn_status st = TN_OK;
  *out = NULL;
  pthread_once(&once, install);
  tn__mutex_lock(&list_mu);
  tn__pool *pool = list;
  while (pool != NULL && (pool->name == NULL || strcmp(pool->name, name) != 0 || atomic_load(&pool->refs) == 0))
    pool = pool->next;
  if (pool != NULL && pool->n_workers != workers) {
    st = tn_error_set(err, TN_INVALID_ARGUMENT,
                      "the pool '%s' has %u threads, but %u were requested: all sessions that name it must request the "
                      "same number", name, pool->n_workers, workers);
  } else if (pool != NULL && hold(pool)) {
    *out = pool;
  } else {
    *out = make_listed(name, workers, false, err);
    if (*out == NULL) st = TN_RESOURCE_EXHAUSTED;
  }
  tn__mutex_unlock(&list_mu);
  return st;
}

static void unlist(tn__pool *pool)
{
  if (!tn__pool_alive(pool)) return;
  tn__mutex_lock(&list_mu);
  if (default_pool == pool) default_pool = NULL;
  tn__pool **at = &list;
  while (*at != NULL && *at != pool) at = &(*at)->next;
  if (*at != NULL) *at = pool->next;
  tn__mutex_unlock(&list_mu);
}

void tn__pool_unref(tn__pool *pool)
{
  if (pool == NULL || atomic_fetch_sub_explicit(&pool->refs, 1, memory_order_acq_rel) != 1) return;
  unlist(pool);
  tn__pool_stop(pool);
  free_pool(pool);
}

uint32_t tn__pool_workers(const tn__pool *pool) { return pool->n_workers; }
bool tn__pool_join(tn__pool *pool) { return tn__pool_stop(pool); }

/* A reference to a pool that has not had its turn in this round; NULL = all have had it. */
static tn__pool *next_of_round(uint32_t number)
{
  tn__mutex_lock(&list_mu);
  tn__pool *pool = list;
  while (pool != NULL && (pool->round == number || !hold(pool))) pool = pool->next;
  if (pool != NULL) pool->round = number;
  tn__mutex_unlock(&list_mu);
  return pool;
}

tn_status tn_join_workers(tn_error *err)
{
  tn__error_reset(err);
  if (tn__worker_number() != 0)
    return tn_error_set(err, TN_FAILED_PRECONDITION,
                        "tn_join_workers: this thread is a worker, so it cannot wait for itself");
  tn__mutex_lock(&list_mu);
  uint32_t number = ++rounds;
  tn__mutex_unlock(&list_mu);
  for (tn__pool *pool; (pool = next_of_round(number)) != NULL; tn__pool_unref(pool)) tn__pool_stop(pool);
  return TN_OK;
}
