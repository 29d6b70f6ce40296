/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that help with the steps of a session: the pool as a runtime sees it. */
#include <core/exec/step/env.h>
#include <core/kit/executable.h>
#include <core/kit/workers.h>
#include <tenon/runtime.h>

#include <string.h>

struct tn_kit_workers {
  tn__pool_client *client; /* owned; has a reference to the pool */
};

/* Copies the fields that the caller's version of the struct has; the others get their defaults.
 * NULL: all defaults. */
static tn_status read_config(const tn_kit_workers_config *from, tn_kit_workers_config *to, tn_error *err)
{
  *to = (tn_kit_workers_config){ .struct_size = sizeof *to, .spin_us = -1 };
  if (from == NULL) return TN_OK;
  if (from->struct_size < TN_SIZE_TO(tn_kit_workers_config, threads))
    return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_workers_open: struct_size of the configuration is %zu",
                        from->struct_size);
  memcpy(to, from, from->struct_size < sizeof *to ? from->struct_size : sizeof *to);
  return TN_OK;
}

/* The number of threads for a configured count: 0 = the usable CPUs, below 0 = one. */
static uint32_t threads_of(int32_t count)
{
  if (count == 0) return tn__usable_cpus();
  return count < 0 ? 1 : (uint32_t)count;
}

/* A pool starts threads only when there is work for them, so one thread alone needs no special
 * case. */
static tn_status open_pool(const tn_kit_workers_config *c, uint32_t n, tn__pool **out, tn_error *err)
{
  if (c->name != NULL && *c->name != 0) return tn__pool_named(c->name, n, out, err);
  if (c->own_pool) return tn__pool_private(n > 1 ? n - 1 : 1, c->pin, out, err); /* the caller is one of the n */
  return tn__pool_default(out, err);
}

tn_status tn_kit_workers_open(const tn_kit_workers_config *config, tn_kit_workers **out, tn_error *err)
{
  tn__error_reset(err);
  if (out == NULL) return tn_error_set(err, TN_INVALID_ARGUMENT, "tn_kit_workers_open: out is NULL");
  *out = NULL;
  tn_kit_workers_config c;
  tn__pool *pool = NULL;
  tn_status st = read_config(config, &c, err);
  uint32_t threads = threads_of(c.threads);
  if (st == TN_OK) st = open_pool(&c, threads, &pool, err);
  if (st != TN_OK) return st;
  tn_kit_workers *w = tn__alloc(sizeof *w);
  const tn__client_config client = { .workers = threads - 1,
                                     .intra = c.loop_threads == 0 ? 0 : threads_of(c.loop_threads),
                                     .spin_us = c.spin_us < 0 ? TN__SPIN_US : (uint32_t)c.spin_us,
                                     .linger_us = c.linger_us };
  st = w == NULL ? tn__no_memory(err, "workers", sizeof *w) : tn__client_create(pool, &client, &w->client, err);
  tn__pool_unref(pool);
  if (st == TN_OK) *out = w;
  else if (w != NULL) tn__free(w, sizeof *w);
  return st;
}

/* No step that uses them may run. */
void tn_kit_workers_close(tn_kit_workers *workers)
{
  if (workers == NULL) return;
  tn__client_destroy(workers->client);
  tn__free(workers, sizeof *workers);
}

uint32_t tn_kit_workers_threads(const tn_kit_workers *workers)
{
  return workers == NULL ? 1 : tn__client_width(workers->client);
}

/* The crew is taken when a kernel first has a loop that is worth it, and put back at the end of the
 * step. */
tn_status tn_kit_step_with(tn_executable *executable, tn_step *step, tn_kit_workers *workers, tn_error *err)
{
  tn__step_env *env = step->env;
  if (workers == NULL || env == NULL || !(executable->flags & TN_KIT_POOL)) return tn_kit_step(executable, step, err);
  tn__step_dismiss(env); /* a crew from tn_kit_step_workers */
  env->client = workers->client;
  env->kind = executable->plan;
  tn_status st = tn_kit_step(executable, step, err);
  tn__step_dismiss(env);
  return st;
}

/* The crew is taken at once, by the thread that runs the step, so kernels on other threads read
 * env->crew without a race. These kernels run their loops alone. */
void tn_kit_step_workers(tn_step *step, const tn_plan *plan, tn_kit_workers *workers)
{
  tn__step_env *env = step == NULL ? NULL : step->env;
  if (env == NULL || (workers != NULL && env->crew != NULL && env->client == workers->client)) return;
  tn__step_dismiss(env);
  if (workers == NULL || tn__client_width(workers->client) <= 1) return;
  env->crew = tn__crew_take_for(workers->client, plan);
  if (env->crew == NULL) return;
  env->client = workers->client;
  env->kind = plan;
}

tn__pool_client *tn__kit_workers_client(const tn_kit_workers *workers)
{
  return workers == NULL ? NULL : workers->client;
}

int32_t tn_step_pool(const tn_step *step) { return step->env == NULL ? 0 : step->env->pool; }
