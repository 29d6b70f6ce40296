/* SPDX-License-Identifier: Apache-2.0 */
/* The threaded runtime: a step runs on the thread that calls Run, with the help of workers. This file only decides
 * which workers may help; the kit does the rest. */
#include "settings.h"

#include <string.h>

TN_PLUGIN_MANIFEST("runtime", "threaded", "CPU", "200", TN_VERSION_STRING, "Tenon", "")

struct tn_runtime_session {
  size_t n_pools;
  tn_kit_workers *pools[]; /* by the index that tn_run_options may give; NULL: the calling thread works alone */
};

static size_t size_of(size_t n_pools) { return sizeof(tn_runtime_session) + n_pools * sizeof(tn_kit_workers *); }

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  for (size_t i = 0; i < session->n_pools; i++) tn_kit_workers_close(session->pools[i]);
  tn_free(session);
}

/* Opens pool i of the options; *out stays NULL if the calling thread works alone. */
static tn_status open_pool(const tn_session_options *options, size_t i, tn_kit_workers **out, tn_error *err)
{
  tn_kit_workers_config config;
  tn_status st = threaded_settings(options, i, &config, err);
  if (st != TN_OK || config.threads == 1 || config.threads < 0) return st;
  st = tn_kit_workers_open(&config, out, err);
  if (st != TN_OK && threaded_pools(options) > 0) tn_error_prefix(err, "option session_inter_op_pools, pool %zu", i);
  return st;
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  tn_status st = TN_OK;
  size_t n = threaded_pools(options);
  *out = NULL;
  if (n == 0) n = 1;
  tn_runtime_session *s = tn_alloc(size_of(n));
  if (s == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session of runtime 'threaded'");
  s->n_pools = n;
  for (size_t i = 0; i < n; i++) s->pools[i] = NULL;
  for (size_t i = 0; st == TN_OK && i < n; i++) st = open_pool(options, i, &s->pools[i], err);
  if (st == TN_OK) *out = s;
  else destroy_session(self, s);
  return st;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  tn_kit_workers_config config;
  (void)self;
  return threaded_settings(options, 0, &config, NULL) == TN_OK;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  tn_kit_workers_config config;
  (void)self;
  threaded_settings(options, 0, &config, err);
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  uint32_t threads = 1; /* of the largest pool: a plan is used with all of them */
  for (size_t i = 0; i < session->n_pools; i++) {
    uint32_t n = tn_kit_workers_threads(session->pools[i]);
    if (n > threads) threads = n;
  }
  return tn_kit_prepare(plan, TN_KIT_POOL | TN_KIT_THREADS(threads), out, err);
}

static tn_kit_workers *workers(const tn_session_factory *self, tn_runtime_session *session, int32_t pool)
{
  (void)self;
  return pool < 0 || (size_t)pool >= session->n_pools ? NULL : session->pools[pool];
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *step, tn_error *err)
{
  return tn_kit_step_with(executable, step, workers(self, session, tn_step_pool(step)), err);
}

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* Supports eager sessions: an operation is a step like any other. Small operations run without workers anyway. */
static const void *get_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static const tn_eager_runtime eager = { .struct_size = TN_EAGER_RUNTIME_SIZE, .execute = step };
  (void)self;
  return version == 1 && name != NULL && strcmp(name, TN_EAGER_EXTENSION) == 0 ? &eager : NULL;
}

static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "threaded",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .prepare = prepare,
  .step = step,
  .reset = reset,
  .explain_options = explain_options,
  .workers = workers,
  .get_extension = get_extension,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "threaded",
  .version = TN_VERSION_STRING,
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
};

TN_PLUGIN_DEFINE(plugin)
