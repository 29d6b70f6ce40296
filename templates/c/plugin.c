/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime acme.longest: schedules steps by itself, on level (b) of the kit. It decides which thread
 * runs which instruction and when (crew.c); the library computes. Its setting threads=1 to 64
 * includes the thread that calls Run; the default is the option inter_op_threads. */
#include <stdlib.h>

#include "crew.h"

TN_PLUGIN_MANIFEST("runtime", "acme.longest", "CPU", "0", "1.0.0", "Acme", "")

enum { DEFAULT_THREADS = 2 };

struct tn_runtime_session {
  crew *crew;
};

/* inter_op_threads of the session: 0 = chosen by the runtime, negative = only the thread that calls
 * Run. */
static int threads_of_option(const tn_session_options *options)
{
  int64_t n = 0;
  if (tn_session_options_get_int(options, "inter_op_threads", &n, NULL) != TN_OK || n == 0) return DEFAULT_THREADS;
  if (n < 0) return 1;
  return n > MOST_THREADS ? MOST_THREADS : (int)n;
}

/* Returns the number of threads that the options request; on error 0, with a text in err. */
static int threads_of(const tn_session_options *options, tn_error *err)
{
  static const char *const keys[] = { "threads" };
  if (tn_session_options_check_settings(options, keys, 1, err) != TN_OK) return 0;
  const char *text = tn_session_options_setting(options, "threads");
  if (text == NULL) return threads_of_option(options);
  char *end;
  long n = strtol(text, &end, 10);
  if (end != text && *end == 0 && n >= 1 && n <= MOST_THREADS) return (int)n;
  tn_error_set(err, TN_INVALID_ARGUMENT, "setting 'threads' is '%s', wanted 1 to %d", text, MOST_THREADS);
  return 0;
}

/* May be called often and by several threads: it only checks and stores nothing. */
static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  return threads_of(options, NULL) > 0;
}

static void explain_options(const tn_session_factory *self, const tn_session_options *options, tn_error *err)
{
  (void)self;
  threads_of(options, err);
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  *out = NULL;
  int threads = threads_of(options, err);
  if (threads == 0) return TN_INVALID_ARGUMENT;
  tn_runtime_session *session = tn_alloc(sizeof *session);
  if (session == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory for a session");
  tn_status status = crew_open(threads, &session->crew, err);
  if (status == TN_OK) *out = session;
  else tn_free(session);
  return status;
}

/* All executables are released and no step runs, so the threads can be joined. */
static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  crew_close(session->crew);
  tn_free(session);
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  const tn_kit_scheduler scheduler = {
    .struct_size = TN_KIT_SCHEDULER_SIZE,
    .user = session->crew,
    .ready = crew_ready,
    .wait = crew_wait,
  };
  return tn_kit_prepare_scheduled(plan, &scheduler, out, err);
}

static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  (void)options;
  return tn_kit_reset(self, containers, n, flags, err);
}

/* release and step are NULL: the kit's defaults handle its executables. */
static const tn_session_factory factory = {
  .struct_size = TN_SESSION_FACTORY_SIZE,
  .name = "acme.longest",
  .new_session = new_session,
  .accepts_options = accepts_options,
  .destroy_session = destroy_session,
  .prepare = prepare,
  .reset = reset,
  .explain_options = explain_options,
};
static const tn_session_factory *const factories[] = { &factory };

static const tn_plugin plugin = {
  .struct_size = TN_PLUGIN_SIZE,
  .abi_major = TN_ABI_MAJOR,
  .abi_minor = TN_ABI_MINOR,
  .kind = TN_PLUGIN_RUNTIME,
  .name = "acme.longest",
  .version = "1.0.0",
  .types = "CPU",
  .factories = factories,
  .n_factories = 1,
};

TN_PLUGIN_DEFINE(plugin)
