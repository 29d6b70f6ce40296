/* SPDX-License-Identifier: Apache-2.0 */
/* Side effects of a plugin: the process and the calling thread belong to the program, and each callback must leave them
 * unchanged. For kernel plugins see plugin_kernels.c. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>

#include <conformance/plugin/plugin_world.h>
#include <conformance/support/eager_kit.h>

static void plugin_effects__of_being_loaded(void) /* P-101 */
{
  pg_watch();
  pg_start();
}

/* ---- callbacks called directly ---- */

static void ask(const tn_session_options *options)
{
  tn_error err = TN_ERROR_INIT;
  pg_world *world = pg_call_begin("its accepts_options");
  bool accepted = pg_it.slots.accepts_options(pg_it.factory, options);
  pg_call_end(world, "its accepts_options");
  world = pg_call_begin("its explain_options");
  if (!accepted && pg_it.slots.explain_options != NULL) pg_it.slots.explain_options(pg_it.factory, options, &err);
  pg_call_end(world, "its explain_options");
  world = pg_call_begin("its rank_for_options");
  if (pg_it.slots.rank_for_options != NULL) pg_it.slots.rank_for_options(pg_it.factory, options, 100);
  pg_call_end(world, "its rank_for_options");
  tn_error_clear(&err);
  world = pg_call_begin("its health");
  if (pg_it.slots.health != NULL) pg_it.slots.health(pg_it.factory, &err);
  pg_call_end(world, "its health");
  tn_error_clear(&err);
}

static void list_devices(tn_runtime_session *session)
{
  tn_error err = TN_ERROR_INIT;
  tn_device_info info = { .struct_size = sizeof(info) };
  pg_world *world = pg_call_begin("its list_devices");
  for (size_t i = 0; pg_it.slots.list_devices != NULL && i < 8; i++)
    if (pg_it.slots.list_devices(pg_it.factory, session, i, &info, &err) != TN_OK) break;
  pg_call_end(world, "its list_devices");
  tn_error_clear(&err);
}

/* Includes options that it refuses. */
static void plugin_effects__of_opening_a_session(void) /* P-101 */
{
  pg_watch();
  pg_start();
  for (int i = 0; i < 2; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_runtime_session *session = NULL;
    tn_session_options *options = pg_options(i == 0 ? NULL : ":conformance_unknown=1");
    ask(options);
    pg_new_session(options, &session, &err);
    if (session != NULL) list_devices(session);
    pg_destroy_session(session);
    tn_session_options_destroy(options);
    tn_error_clear(&err);
  }
}

static void plugin_effects__of_its_end(void) /* P-101 */
{
  tn_error err = TN_ERROR_INIT;
  tn_runtime_session *session = NULL;
  pg_watch();
  pg_start();
  if (!TN_HAS_FIELD(pg_it.plugin, tn_plugin, shutdown) || pg_it.plugin->shutdown == NULL)
    TAP_SKIP("it has no shutdown");
  tn_session_options *options = pg_options(NULL);
  pg_new_session(options, &session, &err);
  pg_destroy_session(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  pg_world *world = pg_call_begin("its shutdown");
  pg_it.plugin->shutdown(&err);
  pg_call_end(world, "its shutdown");
  tn_error_clear(&err);
}

/* ---- sessions of the registry ---- */

/* Large enough to be worth using threads. */
static void add_product(tn_graph *graph, tn_output x)
{
  enum { SIDE = 256 };
  static const int64_t dims[] = { SIDE, SIDE };
  tn_tensor *weights = ts_filled(2, dims, 0.5f);
  tn_output w = ts_const_tensor(graph, "weights", weights);
  tn_output both = ts_op2(graph, "Mul", "large", w, x);
  ts_op2(graph, "MatMul", "product", both, w);
  tn_tensor_unref(weights);
}

static void run_all(ts *t)
{
  static const char *const product[] = { "product", NULL }, *const fails[] = { "fails", NULL };
  tn_tensor *fetched = NULL;
  for (int i = 0; i < 3; i++) {
    CHECK_DOUBLE(ts_run1(t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
    CHECK_OK(ts_run(t, FEEDS({ "x", 1 }), product, &fetched, NULL), &t->err);
    CHECK_DOUBLE(ts_float(fetched), 64, 0);
    tn_tensor_unref(fetched);
    ts_run(t, FEEDS({ "x", 1 }), fails, &fetched, NULL);
    tn_error_clear(&t->err);
  }
}

static void open_graph(ts *t, int level)
{
  ts_init(t, level);
  ts_usual_graph(t->graph);
  tn_output x = { tn_graph_find(t->graph, "x"), 0 };
  add_product(t->graph, x);
  ts_watch_op(t->graph, "TestFail", "fails", x, TN_DATA_LOSS);
  ts_watch_op(t->graph, "TestGate", "stays", x, 1);
  ts_start(t);
}

static void plugin_effects__of_steps(void) /* P-101 */
{
  pg_watch();
  pg_front_register();
  FOR_LEVELS(level) {
    ts t;
    open_graph(&t, level);
    run_all(&t);
    ts_fini(&t);
  }
}

static void *run_to_the_gate(void *user)
{
  static const char *const stays[] = { "stays", NULL };
  tn_tensor *fetched = NULL;
  ts_run(user, FEEDS({ "x", 1 }), stays, &fetched, NULL);
  tn_tensor_unref(fetched);
  return NULL;
}

/* Checks the step's thread and the thread that closes the session. */
static void plugin_effects__of_a_step_that_is_cancelled(void) /* P-101 */
{
  ts t;
  pthread_t thread;
  pg_watch();
  pg_front_register();
  open_graph(&t, 1);
  REQUIRE_INT(pthread_create(&thread, NULL, run_to_the_gate, &t), 0);
  CHECK(ts_wait_at_gate(1));
  tn_session_close(t.session, NULL);
  pthread_join(thread, NULL);
  ts_fini(&t);
}

static void plugin_effects__of_a_reset(void) /* P-101 */
{
  ts t;
  pg_watch();
  pg_front_register();
  TS_NEEDS_RESET();
  open_graph(&t, 1);
  CHECK_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  ts_fini(&t);
}

static void plugin_effects__of_single_operations(void) /* P-101 */
{
  te t;
  pg_watch();
  pg_front_register();
  if (pg_eager() == NULL) TAP_SKIP("UNIMPLEMENTED: it has no extension '%s'", TN_EAGER_EXTENSION);
  te_open(&t, ts_runtime(), TN_EAGER_IN_BACKGROUND);
  tn_eager_handle x = te_scalar(&t, 1);
  for (int i = 0; i < 3; i++) CHECK_DOUBLE(te_value(&t, te_add(&t, x, x)), 2, 0);
  te_fini(&t);
}

/* ---- threads ---- */

static bool was_there(char tasks[][24], size_t n, const char *task)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp(tasks[i], task) == 0) return true;
  return false;
}

/* Calls look for each thread of the process; false: the system does not list threads. */
static bool each_thread(void (*look)(void *user, const char *task), void *user)
{
  DIR *folder = opendir("/proc/self/task");
  if (folder == NULL) return false;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') look(user, entry->d_name);
  closedir(folder);
  return true;
}

typedef struct known {
  char tasks[256][24];
  size_t n;
} known;

static void note_thread(void *user, const char *task)
{
  known *k = user;
  if (k->n < sizeof(k->tasks) / sizeof(k->tasks[0])) snprintf(k->tasks[k->n++], sizeof(k->tasks[0]), "%.23s", task);
}

static void check_thread(void *user, const char *task)
{
  const known *k = user;
  int unblocked = was_there((char(*)[24])(uintptr_t)k->tasks, k->n, task) ? 0 : pg_unblocked_signal(task);
  CHECK_MSG(unblocked == 0, "a thread that it made does not block signal %d, which is the program's", unblocked);
}

/* A process signal is delivered to any thread that does not block it, so the plugin's threads must block all
 * signals. */
static void plugin_effects__its_threads_leave_signals_to_the_program(void) /* P-101 */
{
  static known before;
  ts t;
  if (!each_thread(note_thread, &before)) TAP_SKIP("the system does not list the threads of a process");
  pg_front_register();
  open_graph(&t, 1);
  run_all(&t);
  each_thread(check_thread, &before);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(plugin_effects__of_being_loaded),
  TAP_TEST(plugin_effects__of_opening_a_session),
  TAP_TEST(plugin_effects__of_its_end),
  TAP_TEST(plugin_effects__of_steps),
  TAP_TEST(plugin_effects__of_a_step_that_is_cancelled),
  TAP_TEST(plugin_effects__of_a_reset),
  TAP_TEST(plugin_effects__of_single_operations),
  TAP_TEST(plugin_effects__its_threads_leave_signals_to_the_program))
