/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetime of a loaded plugin: sessions hold it, unregistering shuts it down, and its threads end with it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include <conformance/plugin/plugin.h>
#include <conformance/support/session_kit.h>
#include <conformance/support/threads.h>

static void enter(void)
{
  bool found = cf_runtime_enter(cf_under_test);
  REQUIRE_MSG(found, "%s is not found", cf_under_test->name != NULL ? cf_under_test->name : "it");
}

static void open_run_end(void)
{
  ts t;
  ts_open(&t, 1);
  cf_reached("a step");
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  cf_reached("its destroy_session");
  ts_fini(&t);
}

/* Its shutdown may refuse; a test that needs the shutdown is then skipped. */
static bool unregister(void)
{
  tn_error err = TN_ERROR_INIT;
  cf_reached("its shutdown");
  tn_status st = tn_runtime_unregister(cf_under_test->name, &err);
  if (st != TN_OK) tap_skip("its shutdown refuses: %s", tn_error_message(&err));
  tn_error_clear(&err);
  return st == TN_OK;
}

static void plugin_life__steps_leave_nothing(void) /* P-46 */
{
  pg_held before = { 0 };
  enter();
  for (int i = 0; i < 60; i++) {
    if (i == 20) before = pg_measure();
    open_run_end();
  }
  pg_check_held(&before, "40 sessions with a step", 32768);
}

/* ---- references to the plugin ---- */

static void plugin_life__a_session_holds_it(void) /* P-45, P-75 */
{
  ts t;
  enter();
  ts_open(&t, 1);
  tn_status st = tn_runtime_unregister(cf_under_test->name, &t.err);
  CHECK_STATUS(st, TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "session");
  tn_error_clear(&t.err);
  cf_reached("a step, when it could not be unregistered");
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  ts_fini(&t);
  unregister();
}

/* Plugin memory in a fetched tensor: the tensor must hold a reference to the plugin. */
static void check_holder(const tn_tensor *tensor, const char *what)
{
  const tn_buffer *buffer = tensor != NULL ? tn_tensor_buffer(tensor) : NULL;
  const tn_buffer_desc *desc = buffer != NULL ? tn_buffer_describe(buffer) : NULL;
  Dl_info where;
  void *release = NULL;
  if (desc == NULL || desc->release == NULL) return;
  memcpy(&release, &desc->release, sizeof(release));
  if (dladdr(release, &where) == 0 || where.dli_fname == NULL) return;
  const char *in = strrchr(where.dli_fname, '/'), *file = strrchr(cf_under_test->plugin, '/');
  if (in == NULL || file == NULL || strcmp(in, file) != 0) return;
  CHECK_MSG(desc->holder != NULL,
            "%s is memory of the plugin without a reference to it: set tn_buffer_desc.holder to its host's self", what);
}

static void plugin_life__its_buffers_hold_it(void) /* P-45, P-73 */
{
  static const char *const fetches[] = { "twice", "neg", NULL };
  tn_tensor *fetched[2] = { NULL, NULL };
  ts t;
  enter();
  ts_open(&t, 1);
  CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }, { "y", 2 }), fetches, fetched, NULL), &t.err);
  for (int i = 0; i < 2 && cf_under_test->plugin != NULL; i++) check_holder(fetched[i], fetches[i]);
  ts_fini(&t);
  tn_error err = TN_ERROR_INIT;
  if (tn_runtime_unregister(cf_under_test->name, &err) == TN_OK)
    cf_reached("the release of a tensor, after its shutdown");
  tn_error_clear(&err);
  CHECK_DOUBLE(ts_float(fetched[0]), 6, 0);
  CHECK_DOUBLE(ts_float(fetched[1]), -1, 0);
  for (int i = 0; i < 2; i++) tn_tensor_unref(fetched[i]);
}

/* ---- shutdown ---- */

static void run_on_a_thread(void *user, int i)
{
  ts *t = user;
  tn_tensor *x = NULL, *y = NULL, *fetched = NULL;
  static const char *const feeds[] = { "x", "y" }, *const fetch = "twice";
  float value = (float)i;
  if (tn_tensor_from_data(TN_FLOAT, NULL, 0, &value, sizeof(value), &x, NULL) != TN_OK) return;
  y = tn_tensor_ref(x);
  for (int k = 0; k < 20; k++) {
    tn_error err = TN_ERROR_INIT;
    CHECK_OK(
        tn_session_run(t->session, NULL, feeds, (tn_tensor *[]){ x, y }, 2, &fetch, &fetched, 1, NULL, 0, NULL, &err),
        &err);
    CHECK_DOUBLE(ts_float(fetched), 4 * value, 0);
    tn_tensor_unref(fetched);
    tn_error_clear(&err);
  }
  tn_tensor_unref(x);
  tn_tensor_unref(y);
}

/* A shutdown that refuses gives a reason, and the plugin continues to work. */
static void plugin_life__shutdown_succeeds_or_gives_a_reason(void) /* P-75, P-61, P-94 */
{
  tn_error err = TN_ERROR_INIT;
  enter();
  open_run_end();
  cf_reached("its shutdown");
  tn_status st = tn_runtime_unregister(cf_under_test->name, &err);
  if (st == TN_OK) return;
  CHECK_MSG(tn_error_message(&err)[0] != '\0', "its shutdown refuses without a text");
  cf_reached("a session, after its shutdown had refused");
  open_run_end();
  cf_note("its shutdown refuses: %s", tn_error_message(&err));
  tn_error_clear(&err);
}

static void plugin_life__shutdown_joins_its_threads(void) /* P-71 */
{
  ts t;
  int before = threads_of_process(), after;
  if (before < 0) TAP_SKIP("the number of threads is unknown on this system");
  enter();
  ts_open(&t, 1);
  cf_reached("steps from 4 threads");
  pg_threads(4, run_on_a_thread, &t);
  ts_fini(&t);
  if (!unregister()) return;
  tn_join_workers(NULL);
  after = threads_of_process();
  CHECK_MSG(after <= before, "%d threads are left after its shutdown", after - before);
}

static sem_t may_end, has_run;

static void *run_and_wait(void *user)
{
  run_on_a_thread(user, 1);
  sem_post(&has_run);
  sem_wait(&may_end);
  return NULL;
}

/* The plugin's TLS destructors and thread_local objects may run long after its shutdown. */
static void plugin_life__a_thread_that_used_it_ends_later(void) /* P-73, P-76 */
{
  ts t;
  pthread_t thread;
  enter();
  sem_init(&may_end, 0, 0);
  sem_init(&has_run, 0, 0);
  ts_open(&t, 1);
  REQUIRE(pthread_create(&thread, NULL, run_and_wait, &t) == 0);
  sem_wait(&has_run);
  ts_fini(&t);
  bool gone = unregister();
  cf_reached(gone ? "the end of a thread that had used it, after its shutdown"
                  : "the end of a thread that had used it");
  sem_post(&may_end);
  pthread_join(thread, NULL);
}

/* A program that exits with a session open: no plugin code may run or hang. */
static void plugin_life__the_process_ends_with_a_session_open(void) /* P-76 */
{
  static ts t;
  enter();
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  cf_reached("the end of the process, with a session open");
}

/* Loaded once per process, unless it is unloadable: then it can be loaded again. */
static void plugin_life__is_loaded_again_after_its_shutdown(void) /* P-73, P-74 */
{
  const char *flags = cf_under_test->plugin != NULL ? pg_value(pg_the_file(), "flags") : NULL;
  if (flags == NULL || strstr(flags, "unloadable") == NULL) TAP_SKIP("its manifest does not declare it unloadable");
  enter();
  for (int i = 0; i < 3; i++) {
    cf_reached("a session, when it was loaded anew");
    open_run_end();
    if (!unregister()) return;
  }
}

TAP_MAIN(
  TAP_TEST(plugin_life__steps_leave_nothing),
  TAP_TEST(plugin_life__a_session_holds_it),
  TAP_TEST(plugin_life__its_buffers_hold_it),
  TAP_TEST(plugin_life__shutdown_succeeds_or_gives_a_reason),
  TAP_TEST(plugin_life__shutdown_joins_its_threads),
  TAP_TEST(plugin_life__a_thread_that_used_it_ends_later),
  TAP_TEST(plugin_life__the_process_ends_with_a_session_open),
  TAP_TEST(plugin_life__is_loaded_again_after_its_shutdown))
