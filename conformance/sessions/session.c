/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: options, life cycle, errors. The rules cited are those of the session semantics; the
 * graph of ts_open is in session_kit.h. */
#include "conformance/support/session_kit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include <tenon/runtime.h>

/* --- options ------------------------------------------------------------------------------------------------------ */

static void session__options_start_at_their_defaults(void) /* S-OPT-01 */
{
  tn_session_options *options = NULL;
  int64_t number = -1;
  tn_bool flag = 1;
  const char *text = NULL;
  REQUIRE_OK(tn_session_options_create(&options, NULL), NULL);
  CHECK_STR(tn_session_options_target(options), "");
  CHECK_STR(tn_session_options_runtime(options), "");
  CHECK_OK(tn_session_options_get_int(options, "level", &number, NULL), NULL);
  CHECK_INT(number, 1);
  CHECK_OK(tn_session_options_get_bool(options, "static_graph", &flag, NULL), NULL);
  CHECK_INT(flag, 0);
  CHECK_OK(tn_session_options_get_string(options, "session_name", &text, NULL), NULL);
  CHECK_STR(text, "");
  tn_session_options_destroy(options);
}

static void session__options_are_copied(void) /* S-OPT-02 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  ts_start(&t);
  CHECK_OK(tn_session_options_set_target(t.options, "nowhere", NULL), NULL);
  CHECK_OK(tn_session_options_set_bool(t.options, "static_graph", 1, NULL), NULL);
  tn_session_options_destroy(t.options);
  t.options = NULL;
  ts_bytes more = { .size = 0 };
  ts_node_const(&more, "later", 3);
  CHECK_OK(tn_session_extend(t.session, more.data, more.size, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&t, NULL, "later"), 3, 0);
  ts_fini(&t);
}

static void session__empty_target_is_the_direct_runtime(void) /* S-OPT-03, S-OPT-09 */
{
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  tn_status st = tn_session_create(options, &session, &err);
  if (st == TN_NOT_FOUND && strcmp(ts_runtime_name(), "direct") != 0) TAP_SKIP("the direct runtime is not available");
  REQUIRE_OK(st, &err);
  CHECK_STR(tn_session_runtime(session)->name, "direct");
  CHECK_STR(tn_session_runtime(session)->kind, "runtime");
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
}

static void session__target_names_the_runtime(void) /* S-OPT-10 */
{
  ts t;
  ts_open(&t, 1);
  CHECK_STR(tn_session_runtime(t.session)->name, ts_runtime_name());
  CHECK(tn_session_runtime(t.session)->loaded);
  ts_fini(&t);
}

/* Opens a session with this target; copies the whole error text to `text`. */
static tn_status open_with_target(const char *target, char *text, size_t size)
{
  tn_session_options *options = NULL;
  tn_session *session = (tn_session *)&options; /* S-OPT-06: whatever its previous value */
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_session_options_create(&options, &err), &err);
  tn_status status = tn_session_options_set_target(options, target, &err);
  if (status == TN_OK) {
    status = tn_session_create(options, &session, &err);
    if (status != TN_OK)
      CHECK_NULL(session);
    else
      tn_session_destroy(session);
  }
  tn_error_format(&err, text, size);
  tn_session_options_destroy(options);
  tn_error_clear(&err);
  return status;
}

static void session__unknown_runtime_is_not_found(void) /* S-OPT-04, S-OPT-06, S-OPT-11 */
{
  char text[2000];
  CHECK_INT(open_with_target("nowhere", text, sizeof(text)), TN_NOT_FOUND);
  CHECK_CONTAINS(text, "nowhere");
  CHECK_CONTAINS(text, ts_runtime_name());
  CHECK_INT(open_with_target("local", text, sizeof(text)), TN_NOT_FOUND);
}

static void session__malformed_target_is_refused(void) /* S-OPT-10 */
{
  static const char *const targets[] = {
    "Direct",          "1x",
    "direct ",         " direct",
    "direct:threads",  "direct:=1",
    "direct:a=1,,b=2", "../direct",
    "direct/x",        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  };
  char text[2000];
  for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
    CHECK_MSG(open_with_target(targets[i], text, sizeof(text)) == TN_INVALID_ARGUMENT, "target '%s': %s", targets[i],
              text);
}

static void session__unknown_setting_is_named(void) /* S-OPT-10 */
{
  char target[120], text[2000];
  snprintf(target, sizeof(target), "%s:bogus_setting=1", ts_runtime_name());
  CHECK_INT(open_with_target(target, text, sizeof(text)), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(text, "bogus_setting");
}

static void session__null_pointers_are_refused(void) /* S-OPT-13, S-ERR-04 */
{
  ts t;
  tn_session *session = NULL;
  ts_open(&t, 1);
  CHECK_INT(tn_session_create(NULL, &session, NULL), TN_INVALID_ARGUMENT);
  CHECK_NULL(session);
  CHECK_INT(tn_session_create(t.options, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_set_graph(NULL, t.graph, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_set_graph(t.session, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_extend(NULL, "", 0, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_extend(t.session, NULL, 1, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_finalize(NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_close(NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run(t.session, NULL, NULL, NULL, 1, NULL, NULL, 0, NULL, 0, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_run(t.session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 1, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_device(t.session, 0, NULL, NULL), TN_INVALID_ARGUMENT);
  tn_session_destroy(NULL);
  ts_fini(&t);
}

static void session__bad_configuration_is_reported_at_once(void) /* S-OPT-14, S-LIFE-15 */
{
  ts t;
  ts_init(&t, 1);
  tn_status status = tn_session_options_set_int(t.options, "session_version", -1, &t.err);
  if (status == TN_OK) status = tn_session_create(t.options, &t.session, &t.err);
  CHECK_INT(status, TN_INVALID_ARGUMENT);
  CHECK_NULL(t.session);
  CHECK_INT(tn_session_options_set_int(t.options, "no_such_field", 1, &t.err), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "level");
  CHECK_INT(tn_session_options_set_bool(t.options, "level", 1, &t.err), TN_INVALID_ARGUMENT);
  ts_fini(&t);
}

static void session__reset_chooses_as_create_does(void) /* S-OPT-12 */
{
  tn_session_options *options = NULL;
  REQUIRE_OK(tn_session_options_create(&options, NULL), NULL);
  CHECK_OK(tn_session_options_set_target(options, "nowhere", NULL), NULL);
  CHECK_INT(tn_reset(options, NULL, 0, NULL), TN_NOT_FOUND);
  CHECK_INT(tn_reset(NULL, NULL, 0, NULL), TN_INVALID_ARGUMENT);
  tn_session_options_destroy(options);
}

/* --- factories of the program ------------------------------------------------------------------------------------- */

static atomic_int n_accepts, n_news;

static tn_status new_null(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                          tn_error *err)
{
  (void)self;
  (void)options;
  (void)err;
  *out = NULL;
  atomic_fetch_add(&n_news, 1);
  return TN_OK;
}

static tn_status new_failing(const tn_session_factory *self, const tn_session_options *options,
                             tn_runtime_session **out, tn_error *err)
{
  (void)self;
  (void)options;
  *out = (tn_runtime_session *)&n_news; /* must never be seen */
  return tn_error_set(err, TN_UNAVAILABLE, "the device is on leave");
}

static tn_bool accept(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  (void)options;
  atomic_fetch_add(&n_accepts, 1);
  return 1;
}

static void destroy_never(const tn_session_factory *self, tn_runtime_session *session)
{
  (void)self;
  (void)session;
  FAIL("destroy_session of a session that was never created");
}

static tn_status open_on_factory(const tn_session_factory *factory, char *text, size_t size)
{
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_runtime_register(factory->name, factory, &err), &err);
  tn_status status = open_with_target(factory->name, text, size);
  CHECK_OK(tn_runtime_unregister(factory->name, &err), &err);
  tn_error_clear(&err);
  return status;
}

static void session__factory_without_a_session_is_internal(void) /* S-OPT-07, S-OPT-08 */
{
  static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                              .name = "test.null",
                                              .new_session = new_null,
                                              .accepts_options = accept,
                                              .destroy_session = destroy_never };
  char text[2000];
  atomic_store(&n_accepts, 0);
  atomic_store(&n_news, 0);
  CHECK_INT(open_on_factory(&factory, text, sizeof(text)), TN_INTERNAL);
  CHECK_CONTAINS(text, "test.null");
  CHECK_INT(atomic_load(&n_news), 1);
  CHECK(atomic_load(&n_accepts) >= 1);
}

static void session__factory_error_is_passed_on(void) /* S-OPT-06, S-ERR-01 */
{
  static const tn_session_factory factory = { .struct_size = TN_SESSION_FACTORY_SIZE,
                                              .name = "test.failing",
                                              .new_session = new_failing,
                                              .accepts_options = accept,
                                              .destroy_session = destroy_never };
  char text[2000];
  CHECK_INT(open_on_factory(&factory, text, sizeof(text)), TN_UNAVAILABLE);
  CHECK_CONTAINS(text, "the device is on leave");
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void session__new_one_has_no_graph(void) /* S-LIFE-01, S-GRA-01 */
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_NULL(tn_session_graph(t.session));
  tn_tensor *fetched;
  CHECK_INT(ts_run(&t, NULL, NAMES("two"), &fetched, NULL), TN_INVALID_ARGUMENT);
  CHECK_NULL(fetched);
  CHECK_CONTAINS(tn_error_message(&t.err), "graph");
  ts_fini(&t);
}

static void session__close_any_number_of_times(void) /* S-LIFE-02, S-LIFE-08 */
{
  ts t;
  ts_open(&t, 1);
  for (int i = 0; i < 3; i++) CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  ts_fini(&t);
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  ts_fini(&t);
}

static void session__closed_one_refuses_work(void) /* S-LIFE-05, S-LIFE-07 */
{
  ts t;
  tn_callable callable;
  tn_tensor *fetched[1] = { NULL };
  const char *const names[] = { "two" };
  ts_open(&t, 1);
  REQUIRE_OK(tn_session_make_callable(t.session, NULL, NULL, 0, names, 1, NULL, 0, &callable, &t.err), &t.err);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);

  CHECK_INT(ts_run(&t, NULL, NAMES("two"), fetched, NULL), TN_CANCELLED);
  CHECK_CONTAINS(tn_error_message(&t.err), "session has been closed");
  CHECK_NULL(fetched[0]);
  CHECK_INT(tn_session_run_callable(t.session, callable, NULL, 0, fetched, 1, NULL, &t.err), TN_CANCELLED);
  CHECK_NULL(fetched[0]);
  tn_callable other;
  CHECK_INT(tn_session_make_callable(t.session, NULL, NULL, 0, names, 1, NULL, 0, &other, &t.err), TN_CANCELLED);
  ts_bytes more = { .size = 0 };
  ts_node_const(&more, "later", 3);
  CHECK_INT(tn_session_extend(t.session, more.data, more.size, &t.err), TN_CANCELLED);
  CHECK_INT(tn_session_set_graph(t.session, t.graph, &t.err), TN_CANCELLED);
  CHECK_NULL(tn_graph_find(t.graph, "later"));
  ts_fini(&t);
}

static void session__devices_are_listed_after_close(void) /* S-LIFE-06 */
{
  ts t;
  tn_device_info device = { .struct_size = sizeof(device) };
  ts_open(&t, 1);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_session_device(t.session, 0, &device, &t.err), &t.err);
  CHECK_STR(device.type, "CPU");
  CHECK_CONTAINS(device.name, "device:CPU:0");
  CHECK_INT(tn_session_device(t.session, 1000, &device, &t.err), TN_OUT_OF_RANGE);
  ts_fini(&t);
}

/* A step that waits at the gate on a separate thread. */
typedef struct blocked {
  ts *t;
  const char *fetch;
  pthread_t thread;
  tn_status status;
  tn_error err;
} blocked;

static void *run_blocked(void *arg)
{
  blocked *b = arg;
  tn_tensor *fetched = NULL;
  const char *const names[] = { b->fetch };
  b->status = tn_session_run(b->t->session, NULL, NULL, NULL, 0, names, &fetched, 1, NULL, 0, NULL, &b->err);
  if (b->status != TN_OK) CHECK_NULL(fetched);
  tn_tensor_unref(fetched);
  return NULL;
}

static void start_blocked(blocked *b, ts *t, const char *op)
{
  ts_watch_reset();
  ts_init(t, 1);
  ts_watch_op(t->graph, op, "gate", ts_const(t->graph, "one", 1), 0);
  ts_watch_op(t->graph, "TestCount", "after", (tn_output){ tn_graph_find(t->graph, "gate"), 0 }, 1);
  ts_start(t);
  *b = (blocked){ .t = t, .fetch = "after", .err = TN_ERROR_INIT };
  REQUIRE_INT(pthread_create(&b->thread, NULL, run_blocked, b), 0);
  REQUIRE(ts_wait_at_gate(1));
}

static void session__close_cancels_steps_and_does_not_wait(void) /* S-LIFE-03, S-LIFE-04, S-CAN-06 */
{
  ts t;
  blocked b;
  start_blocked(&b, &t, "TestDeaf");
  int64_t start = ts_now_ms();
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  CHECK(ts_now_ms() - start < 2000);
  CHECK_INT(atomic_load(&ts_watched.passed), 0); /* the step is still running */
  ts_open_gate();
  pthread_join(b.thread, NULL);
  CHECK_STATUS(b.status, TN_CANCELLED, &b.err);
  CHECK_INT(atomic_load(&ts_watched.count[1]), 0); /* no further node was started */
  tn_error_clear(&b.err);
  ts_fini(&t);
}

static void session__close_wakes_a_kernel_that_listens(void) /* S-LIFE-04 */
{
  ts t;
  blocked b;
  start_blocked(&b, &t, "TestGate");
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  pthread_join(b.thread, NULL);
  CHECK_STATUS(b.status, TN_CANCELLED, &b.err);
  tn_error_clear(&b.err);
  ts_fini(&t);
}

static void *destroy_session(void *arg)
{
  tn_session_destroy(arg);
  return NULL;
}

static void session__destroy_waits_for_its_steps(void) /* S-LIFE-09, S-LIFE-10 */
{
  ts t;
  blocked b;
  pthread_t thread;
  start_blocked(&b, &t, "TestDeaf");
  tn_session *session = t.session;
  REQUIRE_INT(pthread_create(&thread, NULL, destroy_session, session), 0);
  ts_sleep_ms(50);
  CHECK_INT(atomic_load(&ts_watched.destroyed[0]), 0); /* the running kernel still exists */
  ts_open_gate();
  pthread_join(thread, NULL);
  pthread_join(b.thread, NULL);
  CHECK_STATUS(b.status, TN_CANCELLED, &b.err);
  CHECK_INT(atomic_load(&ts_watched.destroyed[0]), atomic_load(&ts_watched.created[0]));
  t.session = NULL;
  tn_error_clear(&b.err);
  ts_fini(&t);
}

static void one_round(void)
{
  ts t;
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
  ts_fini(&t);
}

static void session__rounds_do_not_grow(void) /* S-LIFE-09, S-LIFE-12 */
{
  one_round();
  one_round();
  uint64_t bytes = tn_test_live_bytes(), blocks = tn_test_live_blocks();
  for (int i = 0; i < 200; i++) one_round();
  CHECK_INT(tn_test_live_bytes(), bytes);
  CHECK_INT(tn_test_live_blocks(), blocks);
}

static void session__two_on_one_graph(void) /* S-LIFE-14 */
{
  ts t;
  tn_session *second = NULL;
  ts_open(&t, 1);
  REQUIRE_OK(tn_session_create(t.options, &second, &t.err), &t.err);
  CHECK_OK(tn_session_set_graph(second, t.graph, &t.err), &t.err);
  CHECK(tn_session_graph(second) == tn_session_graph(t.session));
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }), "neg"), -1, 0);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  ts other = { .session = second, .err = TN_ERROR_INIT };
  CHECK_DOUBLE(ts_run1(&other, FEEDS({ "x", 5 }), "neg"), -5, 0);
  tn_session_destroy(second);
  tn_error_clear(&other.err);
  ts_fini(&t);
}

static void session__names_are_unique_among_the_living(void) /* S-LIFE-15 */
{
  ts t;
  tn_session *second = NULL;
  ts_init(&t, 1);
  CHECK_OK(tn_session_options_set_string(t.options, "session_name", "twin", &t.err), &t.err);
  CHECK_OK(tn_session_options_set_int(t.options, "session_version", 7, &t.err), &t.err);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_INT(tn_session_create(t.options, &second, &t.err), TN_INVALID_ARGUMENT);
  CHECK_NULL(second);
  CHECK_CONTAINS(tn_error_message(&t.err), "twin");
  CHECK_OK(tn_session_options_set_int(t.options, "session_version", 8, &t.err), &t.err);
  CHECK_OK(tn_session_create(t.options, &second, &t.err), &t.err);
  tn_session_destroy(second);
  CHECK_OK(tn_session_options_set_int(t.options, "session_version", 7, &t.err), &t.err);
  tn_session_destroy(t.session);
  t.session = NULL;
  CHECK_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  ts_fini(&t);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void session__ok_clears_the_error(void) /* S-ERR-02 */
{
  ts t;
  tn_tensor *fetched;
  ts_open(&t, 1);
  CHECK_INT(ts_run(&t, NULL, NAMES("absent"), &fetched, NULL), TN_NOT_FOUND);
  CHECK(tn_error_message(&t.err)[0] != 0);
  CHECK_OK(ts_run(&t, NULL, NAMES("two"), &fetched, NULL), &t.err);
  CHECK_STR(tn_error_message(&t.err), "");
  CHECK_INT(tn_error_code(&t.err), TN_OK);
  tn_tensor_unref(fetched);
  ts_fini(&t);
}

/* Calls with several errors; the first one in the order of the rule is reported. */
static tn_status wrong_call(ts *t, const char *feed1, const char *feed2, tn_tensor *value, const char *fetch)
{
  const char *feeds[] = { feed1, feed2 }, *fetches[] = { fetch };
  tn_tensor *values[] = { value, value }, *fetched[1] = { NULL };
  tn_status status = tn_session_run(t->session, NULL, feeds, values, 2, fetches, fetched, 1, NULL, 0, NULL, &t->err);
  CHECK_NULL(fetched[0]);
  return status;
}

static void session__arguments_are_checked_in_order(void) /* S-ERR-03 */
{
  ts t;
  ts_open(&t, 1);
  int32_t seven = 7;
  tn_tensor *wrong = NULL, *right = ts_scalar(1);
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &seven, sizeof(seven), &wrong, &t.err), &t.err);
  CHECK_INT(wrong_call(&t, "x", "x", wrong, "absent"), TN_NOT_FOUND);       /* names before duplicates and types */
  CHECK_INT(wrong_call(&t, "x", "x:0", wrong, "neg"), TN_INVALID_ARGUMENT); /* duplicates before types */
  CHECK_CONTAINS(tn_error_message(&t.err), "more than once");
  CHECK_INT(wrong_call(&t, "x", "y", wrong, "neg"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "int32");
  CHECK_INT(wrong_call(&t, "x", NULL, right, "absent"), TN_INVALID_ARGUMENT); /* NULLs before names */
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  CHECK_INT(wrong_call(&t, "x", NULL, right, "absent"), TN_INVALID_ARGUMENT); /* NULLs before closed */
  CHECK_INT(wrong_call(&t, "x", "x", wrong, "absent"), TN_CANCELLED);         /* closed before names */
  tn_tensor_unref(wrong);
  tn_tensor_unref(right);
  ts_fini(&t);

  ts_init(&t, 1); /* closed before no graph */
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_OK(tn_session_close(t.session, &t.err), &t.err);
  tn_tensor *fetched;
  CHECK_INT(ts_run(&t, NULL, NAMES("absent"), &fetched, NULL), TN_CANCELLED);
  ts_fini(&t);
}

static void session__codes_have_names(void) /* S-ERR-05 */
{
  for (tn_status code = 0; code <= 16; code++) {
    tn_status back = -1;
    CHECK_OK(tn_status_from_name(tn_status_name(code), &back), NULL);
    CHECK_INT(back, code);
  }
  CHECK_STR(tn_status_name(TN_NOT_FOUND), "NOT_FOUND");
  CHECK_STR(tn_status_name(4711), "UNKNOWN");
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* A whole life cycle: graph, session, run, extend, callable. After a failure it is cleaned up here,
 * as a program would. */
static tn_status whole_life(void *arg)
{
  const int level = *(const int *)arg;
  tn_graph *graph = NULL;
  tn_session_options *options = NULL;
  tn_session *session = NULL;
  tn_tensor *fetched[2] = { NULL, NULL };
  static const char *const fetches[] = { "double", "b" };
  ts_bytes def = { .size = 0 }, more = { .size = 0 };
  ts_node_const(&def, "a", 3);
  ts_node(&def, "AddV2", "double", NAMES("a", "a"), "T", TN_FLOAT);
  ts_node(&more, "Neg", "b", NAMES("double"), "T", TN_FLOAT);
  tn_callable callable;
  tn_status status = tn_graph_create(&graph, NULL);
  if (status == TN_OK) status = tn_graph_import(graph, def.data, def.size, NULL, NULL);
  if (status == TN_OK) status = tn_session_options_create(&options, NULL);
  if (status == TN_OK) status = tn_session_options_set_target(options, ts_runtime(), NULL);
  if (status == TN_OK) status = tn_session_options_set_int(options, "level", level, NULL);
  if (status == TN_OK) status = tn_session_create(options, &session, NULL);
  if (status == TN_OK) status = tn_session_set_graph(session, graph, NULL);
  if (status == TN_OK) status = tn_session_extend(session, more.data, more.size, NULL);
  if (status == TN_OK) status = tn_session_run(session, NULL, NULL, NULL, 0, fetches, fetched, 2, NULL, 0, NULL, NULL);
  if (status == TN_OK) CHECK_DOUBLE(ts_float(fetched[1]), -6, 0);
  for (int i = 0; i < 2; i++) {
    if (status != TN_OK) CHECK_NULL(fetched[i]);
    tn_tensor_unref(fetched[i]);
    fetched[i] = NULL;
  }
  if (status == TN_OK) status = tn_session_make_callable(session, NULL, NULL, 0, fetches, 2, NULL, 0, &callable, NULL);
  if (status == TN_OK) status = tn_session_run_callable(session, callable, NULL, 0, fetched, 2, NULL, NULL);
  for (int i = 0; i < 2; i++) tn_tensor_unref(fetched[i]);
  tn_session_destroy(session);
  tn_session_options_destroy(options);
  tn_graph_unref(graph);
  return status;
}

static void session__survives_every_failed_allocation(void) /* S-RUN-08, S-CAN-13 */
{
  FOR_LEVELS(level) tn_test_oom_sweep(whole_life, &level);
}

TAP_MAIN(
    TAP_TEST(session__options_start_at_their_defaults),
    TAP_TEST(session__options_are_copied),
    TAP_TEST(session__empty_target_is_the_direct_runtime),
    TAP_TEST(session__target_names_the_runtime),
    TAP_TEST(session__unknown_runtime_is_not_found),
    TAP_TEST(session__malformed_target_is_refused),
    TAP_TEST(session__unknown_setting_is_named),
    TAP_TEST(session__null_pointers_are_refused),
    TAP_TEST(session__bad_configuration_is_reported_at_once),
    TAP_TEST(session__reset_chooses_as_create_does),
    TAP_TEST(session__factory_without_a_session_is_internal),
    TAP_TEST(session__factory_error_is_passed_on),
    TAP_TEST(session__new_one_has_no_graph),
    TAP_TEST(session__close_any_number_of_times),
    TAP_TEST(session__closed_one_refuses_work),
    TAP_TEST(session__devices_are_listed_after_close),
    TAP_TEST(session__close_cancels_steps_and_does_not_wait),
    TAP_TEST(session__close_wakes_a_kernel_that_listens),
    TAP_TEST(session__destroy_waits_for_its_steps),
    TAP_TEST(session__rounds_do_not_grow),
    TAP_TEST(session__two_on_one_graph),
    TAP_TEST(session__names_are_unique_among_the_living),
    TAP_TEST(session__ok_clears_the_error),
    TAP_TEST(session__arguments_are_checked_in_order),
    TAP_TEST(session__codes_have_names),
    TAP_TEST(session__survives_every_failed_allocation))
