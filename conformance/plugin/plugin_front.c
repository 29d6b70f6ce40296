/* SPDX-License-Identifier: Apache-2.0 */
/* A program's factory that wraps the plugin's. The registry runs its sessions; each callback forwards to the plugin's,
 * with options and names that become unreadable when it returns (P-47). */
#include <stdlib.h>

#include <conformance/plugin/plugin_world.h>

#define FRONT "conformance.front"

static const tn_session_factory *behind(void) { return pg_it.factory; }

/* Copies the argument into guarded memory. */
static tn_session_options *guarded_options(void)
{
  pg_guard_begin();
  tn_session_options *options = pg_options(NULL);
  pg_guard_end();
  return options;
}

static tn_status new_session(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self, (void)options;
  tn_session_options *given = guarded_options();
  pg_world *world = pg_call_begin("its new_session");
  tn_status st = pg_it.slots.new_session(behind(), given, out, err);
  pg_call_end(world, "its new_session");
  tn_session_options_destroy(given);
  return st;
}

static tn_bool accepts_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self, (void)options;
  tn_session_options *given = guarded_options();
  pg_world *world = pg_call_begin("its accepts_options");
  tn_bool yes = pg_it.slots.accepts_options(behind(), given);
  pg_call_end(world, "its accepts_options");
  tn_session_options_destroy(given);
  return yes;
}

static void destroy_session(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  pg_world *world = pg_call_begin("its destroy_session");
  pg_it.slots.destroy_session(behind(), session);
  pg_call_end(world, "its destroy_session");
}

static tn_status prepare(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan,
                         tn_executable **out, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its prepare");
  tn_status st = pg_it.slots.prepare(behind(), session, plan, out, err);
  pg_call_end(world, "its prepare");
  return st;
}

static void release(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable)
{
  (void)self;
  pg_world *world = pg_call_begin("its release");
  pg_it.slots.release(behind(), session, executable);
  pg_call_end(world, "its release");
}

static tn_status step(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                      tn_step *s, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its step");
  tn_status st = pg_it.slots.step(behind(), session, executable, s, err);
  pg_call_end(world, "its step");
  return st;
}

static void cancel(const tn_session_factory *self, tn_runtime_session *session, tn_step *s)
{
  (void)self;
  pg_world *world = pg_call_begin("its cancel");
  pg_it.slots.cancel(behind(), session, s);
  pg_call_end(world, "its cancel");
}

static tn_status list_devices(const tn_session_factory *self, tn_runtime_session *session, size_t i,
                              tn_device_info *out, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its list_devices");
  tn_status st = pg_it.slots.list_devices(behind(), session, i, out, err);
  pg_call_end(world, "its list_devices");
  return st;
}

/* The names are also valid only during the call. */
static tn_status reset(const tn_session_factory *self, const tn_session_options *options, const char *const *containers,
                       size_t n, uint32_t flags, tn_error *err)
{
  enum { MOST = 64 };
  (void)self, (void)options;
  char *names[MOST];
  if (n > MOST) return tn_error_set(err, TN_INVALID_ARGUMENT, "more than %d names", MOST);
  tn_session_options *given = guarded_options();
  pg_guard_begin();
  for (size_t i = 0; i < n; i++) {
    size_t size = strlen(containers[i]) + 1;
    names[i] = tn_alloc(size);
    if (names[i] != NULL) memcpy(names[i], containers[i], size);
  }
  pg_guard_end();
  pg_world *world = pg_call_begin("its reset");
  tn_status st = pg_it.slots.reset(behind(), given, (const char *const *)names, n, flags, err);
  pg_call_end(world, "its reset");
  for (size_t i = 0; i < n; i++) tn_free(names[i]);
  tn_session_options_destroy(given);
  return st;
}

static tn_status partial_runs(const tn_session_factory *self, tn_runtime_session *session, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its partial_runs");
  tn_status st = pg_it.slots.partial_runs(behind(), session, err);
  pg_call_end(world, "its partial_runs");
  return st;
}

static tn_kit_workers *workers(const tn_session_factory *self, tn_runtime_session *session, int32_t pool)
{
  (void)self;
  pg_world *world = pg_call_begin("its workers");
  tn_kit_workers *found = pg_it.slots.workers(behind(), session, pool);
  pg_call_end(world, "its workers");
  return found;
}

static tn_eager_runtime eager_behind;

static tn_status execute(const tn_session_factory *self, tn_runtime_session *session, tn_executable *executable,
                         tn_step *s, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its execute");
  tn_status st = eager_behind.execute(behind(), session, executable, s, err);
  pg_call_end(world, "its execute");
  return st;
}

static tn_status prepare_on(const tn_session_factory *self, tn_runtime_session *session, const tn_plan *plan, size_t i,
                            tn_executable **out, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its prepare_on");
  tn_status st = eager_behind.prepare_on(behind(), session, plan, i, out, err);
  pg_call_end(world, "its prepare_on");
  return st;
}

static tn_status copy(const tn_session_factory *self, tn_runtime_session *session, const tn_tensor *tensor, size_t i,
                      tn_tensor **out, tn_error *err)
{
  (void)self;
  pg_world *world = pg_call_begin("its copy");
  tn_status st = eager_behind.copy(behind(), session, tensor, i, out, err);
  pg_call_end(world, "its copy");
  return st;
}

/* Extensions with callbacks also need a wrapper; the library requests no others. */
static const void *get_extension(const tn_session_factory *self, const char *name, uint32_t version)
{
  static tn_eager_runtime eager;
  (void)self;
  const tn_eager_runtime *found = pg_extension(name, version);
  if (found == NULL || version != 1 || strcmp(name, TN_EAGER_EXTENSION) != 0) return found;
  eager_behind = *pg_eager();
  eager = (tn_eager_runtime){ .struct_size = TN_EAGER_RUNTIME_SIZE,
                              .execute = eager_behind.execute != NULL ? execute : NULL,
                              .prepare_on = eager_behind.prepare_on != NULL ? prepare_on : NULL,
                              .copy = eager_behind.copy != NULL ? copy : NULL };
  return &eager;
}

void pg_front_register(void)
{
  static tn_session_factory front = { .struct_size = TN_SESSION_FACTORY_SIZE, .name = FRONT, .new_session = new_session,
                                      .accepts_options = accepts_options, .destroy_session = destroy_session };
  tn_error err = TN_ERROR_INIT;
  pg_start();
  const tn_session_factory *has = &pg_it.slots;
  if (has->prepare != NULL) front.prepare = prepare;
  if (has->release != NULL) front.release = release;
  if (has->step != NULL) front.step = step;
  if (has->cancel != NULL) front.cancel = cancel;
  if (has->list_devices != NULL) front.list_devices = list_devices;
  if (has->reset != NULL) front.reset = reset;
  if (has->partial_runs != NULL) front.partial_runs = partial_runs;
  if (has->workers != NULL) front.workers = workers;
  if (has->get_extension != NULL) front.get_extension = get_extension;
  pg_stands_for = &front;
  REQUIRE_OK(tn_runtime_register(FRONT, &front, &err), &err);
  setenv("TENON_TEST_RUNTIME", FRONT, 1);
}
