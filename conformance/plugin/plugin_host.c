/* SPDX-License-Identifier: Apache-2.0 */
/* The kit's own host: opens the plugin, passes it the library's functions, and calls its callbacks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <conformance/plugin/plugin_world.h>

pg pg_it = { .err = TN_ERROR_INIT };
const tn_op_family **pg_families;
size_t pg_n_families;
const tn_session_factory *pg_stands_for;

/* ---- the table ---- */

/* Records the registration, and forwards it to the library. */
static tn_status note_ops(const tn_op_family *family, tn_error *err)
{
  tn_status st = tn_register_ops(family, err);
  if (st != TN_OK) return st;
  const tn_op_family **grown = realloc(pg_families, (pg_n_families + 1) * sizeof(*grown));
  if (grown == NULL) return tn_error_set(err, TN_RESOURCE_EXHAUSTED, "no memory");
  pg_families = grown;
  pg_families[pg_n_families++] = family;
  return TN_OK;
}

/* The registry knows only the wrapping factory. */
static tn_status reset_front(const tn_session_factory *factory, const char *const *containers, size_t n, uint32_t flags,
                             tn_error *err)
{
  return tn_kit_reset(factory == pg_it.factory && pg_stands_for != NULL ? pg_stands_for : factory, containers, n, flags,
                      err);
}

#define ENTRY(type, name, params, args) name,
#define ENTRY_VOID(name, params, args) name,
static tn_host_base base = { sizeof(base),    tn_error_set, tn_error_wrap,
                             tn_error_prefix, tn_log,       TN_HOST_BASE(ENTRY, ENTRY_VOID) };
static tn_host_tensor tensor = { sizeof(tensor), TN_HOST_TENSOR(ENTRY, ENTRY_VOID) };
static tn_host_graph graph = { sizeof(graph), TN_HOST_GRAPH(ENTRY, ENTRY_VOID) };
static tn_host_op op = { sizeof(op), TN_HOST_OP(ENTRY, ENTRY_VOID) };
static tn_host_kit kit = { sizeof(kit), TN_HOST_KIT(ENTRY, ENTRY_VOID) };

typedef void (*function)(void);
#define NAMED(type, name, params, args) { #name, (function)name },
#define NAMED_VOID(name, params, args) { #name, (function)name },
static const void *get_extension(const char *name, uint32_t version)
{
  static const struct {
    const char *name;
    function at;
  } functions[] = {
    { "tn_register_ops", (function)note_ops },         { "tn_kit_reset", (function)reset_front },
    { "tn_error_set", (function)tn_error_set },        { "tn_error_wrap", (function)tn_error_wrap },
    { "tn_error_prefix", (function)tn_error_prefix },  { "tn_log", (function)tn_log },
    TN_HOST_BASE(NAMED, NAMED_VOID) TN_HOST_TENSOR(NAMED, NAMED_VOID) TN_HOST_GRAPH(NAMED, NAMED_VOID)
    TN_HOST_OP(NAMED, NAMED_VOID) TN_HOST_KIT(NAMED, NAMED_VOID)
  };
  if (name == NULL || version != 1) return NULL;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
    if (strcmp(functions[i].name, name) == 0) return (const void *)(uintptr_t)functions[i].at;
  return NULL;
}

static const tn_host *the_host(void)
{
  static tn_host host = { TN_HOST_SIZE, TN_ABI_MAJOR, TN_ABI_MINOR, NULL, get_extension,
                          &base,        &tensor,      &graph,       &op,  &kit };
  op.tn_register_ops = note_ops;
  kit.tn_kit_reset = reset_front;
  return &host;
}

/* ---- the steps of a load ---- */

bool pg_open(void)
{
  const char *entry = pg_value(pg_the_file(), "entry");
  cf_reached("opening it (its constructors)");
  pg_world *world = pg_call_begin("opening it (its constructors)");
  pg_it.handle = dlopen(cf_under_test->plugin, RTLD_NOW | RTLD_LOCAL);
  pg_call_end(world, "opening it (its constructors)");
  if (pg_it.handle == NULL) {
    const char *words = dlerror();
    tn_error_set(&pg_it.err, TN_INVALID_ARGUMENT, "the dynamic linker cannot open it: %s",
                 words != NULL ? words : "");
    return false;
  }
  void *symbol = dlsym(pg_it.handle, entry != NULL ? entry : "");
  if (symbol == NULL) tn_error_set(&pg_it.err, TN_INVALID_ARGUMENT, "it has no entry '%s'", entry != NULL ? entry : "");
  memcpy(&pg_it.entry, &symbol, sizeof(symbol));
  return symbol != NULL;
}

bool pg_query(void)
{
  cf_reached("its entry");
  pg_world *world = pg_call_begin("its entry");
  pg_it.plugin = pg_it.entry(the_host(), &pg_it.err);
  pg_call_end(world, "its entry");
  return pg_it.plugin != NULL;
}

static void copy_slots(const tn_session_factory *from)
{
  size_t size = from->struct_size < sizeof(pg_it.slots) ? from->struct_size : sizeof(pg_it.slots);
  memset(&pg_it.slots, 0, sizeof(pg_it.slots));
  memcpy(&pg_it.slots, from, size - size % sizeof(void *));
}

bool pg_choose(void)
{
  const tn_plugin *p = pg_it.plugin;
  const char *name = pg_value(pg_the_file(), "name");
  for (size_t i = 0; i < p->n_factories; i++) {
    const tn_session_factory *f = p->factories[i];
    if (f == NULL || f->struct_size < TN_SESSION_FACTORY_MIN_SIZE || f->name == NULL) continue;
    if (name == NULL || strcmp(f->name, name) != 0) continue;
    pg_it.factory = f;
    copy_slots(f);
    return true;
  }
  tn_error_set(&pg_it.err, TN_INVALID_ARGUMENT, "none of its session factories is named '%s', as its manifest says",
               name);
  return false;
}

tn_status pg_init(void)
{
  if (!TN_HAS_FIELD(pg_it.plugin, tn_plugin, init) || pg_it.plugin->init == NULL) return TN_OK;
  cf_reached("its init");
  pg_world *world = pg_call_begin("its init");
  tn_status st = pg_it.plugin->init(&pg_it.err);
  pg_call_end(world, "its init");
  return st;
}

void pg_start(void)
{
  bool good = pg_open() && pg_query() && (pg_it.plugin->kind == TN_PLUGIN_KERNELS || pg_choose()) && pg_init() == TN_OK;
  REQUIRE_MSG(good, "%s", tn_error_message(&pg_it.err));
}

/* ---- calls ---- */

tn_session_options *pg_options(const char *settings)
{
  char target[4096];
  tn_session_options *options = NULL;
  tn_error err = TN_ERROR_INIT;
  /* A plugin that the library does not find, for example because of its file name, is still called directly. */
  const char *name = cf_under_test->name != NULL ? cf_under_test->name : pg_it.factory->name;
  snprintf(target, sizeof(target), "%s%s", name, settings != NULL ? settings : cf_under_test->settings);
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  REQUIRE_OK(tn_session_options_set_target(options, target, &err), &err);
  return options;
}

bool pg_check_refusal(tn_status status, const tn_error *err, const char *who)
{
  bool known = status == TN_OK || strcmp(tn_status_name(status), "UNKNOWN") != 0 || status == TN_UNKNOWN;
  if (!CHECK_MSG(known, "%s returned %d, which is not a status", who, (int)status)) return false;
  if (status == TN_OK)
    return CHECK_MSG(tn_error_code(err) == TN_OK, "%s returned OK but set an error: %s", who, tn_error_message(err));
  if (!CHECK_MSG(tn_error_message(err)[0] != '\0', "%s returned %s without a text", who, tn_status_name(status)))
    return false;
  return CHECK_MSG(tn_error_code(err) == status, "%s returned %s, but its error has code %s", who,
                   tn_status_name(status), tn_status_name(tn_error_code(err)));
}

tn_status pg_new_session(const tn_session_options *options, tn_runtime_session **out, tn_error *err)
{
  *out = NULL;
  cf_reached("its new_session");
  pg_world *world = pg_call_begin("its new_session");
  tn_status st = pg_it.slots.new_session(pg_it.factory, options, out, err);
  pg_call_end(world, "its new_session");
  if (st == TN_OK && !CHECK_MSG(*out != NULL, "its new_session returned OK without a session")) return TN_INTERNAL;
  if (st != TN_OK) *out = NULL;
  return st;
}

void pg_destroy_session(tn_runtime_session *session)
{
  cf_reached("its destroy_session");
  if (session == NULL) return;
  pg_world *world = pg_call_begin("its destroy_session");
  pg_it.slots.destroy_session(pg_it.factory, session);
  pg_call_end(world, "its destroy_session");
}

const void *pg_extension(const char *name, uint32_t version)
{
  if (pg_it.slots.get_extension == NULL) return NULL;
  pg_guard_begin();
  char *given = name != NULL ? tn_alloc(strlen(name) + 1) : NULL;
  pg_guard_end();
  if (given != NULL) memcpy(given, name, strlen(name) + 1);
  cf_reached("its get_extension");
  pg_world *world = pg_call_begin("its get_extension");
  const void *found = pg_it.slots.get_extension(pg_it.factory, given, version);
  pg_call_end(world, "its get_extension");
  tn_free(given);
  return found;
}

const tn_eager_runtime *pg_eager(void)
{
  static tn_eager_runtime known;
  const tn_eager_runtime *found = pg_extension(TN_EAGER_EXTENSION, 1);
  if (found == NULL) return NULL;
  memset(&known, 0, sizeof(known));
  memcpy(&known, found, found->struct_size < sizeof(known) ? found->struct_size : sizeof(known));
  return &known;
}

/* ---- time and threads ---- */

double pg_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct job {
  pthread_t thread;
  void (*fn)(void *user, int i);
  void *user;
  int i;
} job;

static void *run_job(void *arg)
{
  const job *j = arg;
  j->fn(j->user, j->i);
  return NULL;
}

void pg_threads(int n, void (*fn)(void *user, int i), void *user)
{
  job *jobs = cf_alloc((size_t)n, sizeof(job));
  int started = 0;
  for (; started < n; started++) {
    jobs[started] = (job){ .fn = fn, .user = user, .i = started };
    if (pthread_create(&jobs[started].thread, NULL, run_job, &jobs[started]) != 0) break;
  }
  for (int i = 0; i < started; i++) pthread_join(jobs[i].thread, NULL);
  CHECK_MSG(started == n, "only %d of %d threads can be started", started, n);
  free(jobs);
}
