/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions opened as default sessions: scoped and interactive sessions. */
#include "conformance/support/default_kit.h"

#include <tenon/runtime.h>

/* --- scoped ------------------------------------------------------------------------------------------------------- */

/* Whether the session of `t` with this name exists: a second one with the name is rejected. */
static bool is_alive(ts *t)
{
  tn_session *session = NULL;
  tn_status status = tn_session_create(t->options, &session, NULL);
  tn_session_destroy(session);
  return status != TN_OK;
}

static void open_named(ts *t)
{
  ts_init(t, 1);
  ts_usual_graph(t->graph);
  REQUIRE_OK(tn_session_options_set_string(t->options, "session_name", "scoped", &t->err), &t->err);
}

#ifdef TN_SCOPED_SESSION
static tn_status return_from_scope(ts *t, tn_error *err)
{
  tn_tensor *value = NULL;
  TN_SCOPED_SESSION(session, t->options, t->graph, err);
  if (session == NULL) return tn_error_code(err);
  CHECK(tn_session_default() == session && is_alive(t));
  return tn_eval_name(NULL, "missing", NULL, NULL, 0, &value, err);
}

static void scoped_session__ends_with_its_block(void) /* S-DEF-10 */
{
  ts t;
  open_named(&t);
  {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    REQUIRE_PTR(session);
    CHECK(tn_session_default() == session && is_alive(&t));
    CHECK_DOUBLE(dk_two(), 2, 0);
  }
  CHECK(tn_session_default() == NULL && !is_alive(&t));
  ts_fini(&t);
}

static void scoped_session__ends_on_every_way_out(void) /* S-DEF-10 */
{
  ts t;
  open_named(&t);
  CHECK_INT(return_from_scope(&t, &t.err), TN_NOT_FOUND);
  CHECK(tn_session_default() == NULL && !is_alive(&t));
  for (int i = 0; i < 2; i++) {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    CHECK(session != NULL && tn_session_default() == session);
    if (i == 0) continue;
    break;
  }
  CHECK(tn_session_default() == NULL && !is_alive(&t));
  {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    CHECK(session != NULL && tn_session_default() == session);
    goto out;
  }
out:
  CHECK(tn_session_default() == NULL && !is_alive(&t));
  ts_fini(&t);
}

static void scoped_session__passes_the_error_on(void) /* S-DEF-11 */
{
  ts t;
  tn_error before = TN_ERROR_INIT;
  tn_tensor *value = NULL;
  open_named(&t);
  {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    REQUIRE_PTR(session);
    CHECK_STATUS(tn_eval_name(NULL, "missing", NULL, NULL, 0, &value, &t.err), TN_NOT_FOUND, &t.err);
    tn_error_copy(&before, &t.err);
  }
  CHECK_INT(tn_error_code(&t.err), TN_NOT_FOUND);
  CHECK_STR(tn_error_message(&t.err), tn_error_message(&before));
  CHECK_CONTAINS(tn_error_message(&t.err), "missing");
  tn_error_clear(&before);
  ts_fini(&t);
}

static void scoped_session__scopes_nest(void) /* S-DEF-03, S-DEF-10 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  {
    TN_SCOPED_SESSION(outer, t.options, t.graph, &t.err);
    {
      TN_SCOPED_SESSION(inner, t.options, t.graph, &t.err);
      CHECK(inner != NULL && inner != outer && tn_session_default() == inner);
    }
    CHECK(outer != NULL && tn_session_default() == outer);
    CHECK_DOUBLE(dk_two(), 2, 0);
  }
  CHECK_NULL(tn_session_default());
  ts_fini(&t);
}

static void scoped_session__that_cannot_open_is_null(void)
{
  ts t;
  ts_open(&t, 1);
  REQUIRE_OK(tn_session_enter_default(t.session, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_target(t.options, "nowhere", &t.err), &t.err);
  {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    CHECK_NULL(session);
    CHECK_STATUS(tn_error_code(&t.err), TN_NOT_FOUND, &t.err);
  }
  CHECK(tn_session_default() == t.session);
  CHECK_OK(tn_session_leave_default(t.session, &t.err), &t.err);
  ts_fini(&t);
}

typedef struct blocked {
  tn_session *session;
  tn_status status;
  pthread_t thread;
} blocked;

static void *run_gate(void *arg)
{
  blocked *b = arg;
  tn_tensor *value = NULL;
  b->status = tn_eval_name(b->session, "gate", NULL, NULL, 0, &value, NULL);
  CHECK_NULL(value);
  return NULL;
}

/* The kernel ignores cancellation: a call that waited for the step would wait for the gate. */
static void scoped_session__does_not_wait_for_steps(void) /* S-DEF-13 */
{
  ts t;
  blocked b = { .status = TN_OK };
  ts_watch_reset();
  open_named(&t);
  ts_watch_op(t.graph, "TestDeaf", "gate", ts_const(t.graph, "one", 1), 0);
  {
    TN_SCOPED_SESSION(first, t.options, t.graph, &t.err); /* allocates memory that is kept for the process */
    REQUIRE_PTR(first);
  }
  const uint64_t blocks = tn_test_live_blocks();
  {
    TN_SCOPED_SESSION(session, t.options, t.graph, &t.err);
    REQUIRE_PTR(session);
    b.session = session;
    REQUIRE_INT(pthread_create(&b.thread, NULL, run_gate, &b), 0);
    REQUIRE(ts_wait_at_gate(1));
  }
  CHECK_INT(atomic_load(&ts_watched.passed), 0);
  CHECK(!is_alive(&t)); /* its name is free again */
  ts_open_gate();
  pthread_join(b.thread, NULL);
  CHECK_INT(b.status, TN_CANCELLED);
  CHECK(tn_test_live_blocks() <= blocks + 8); /* the last step freed the session; the graph keeps a few blocks */
  ts_fini(&t);
}
#endif

static void scoped_session__is_closed_after_its_scope(void) /* S-DEF-12 */
{
  ts t;
  tn_session *session = NULL;
  open_named(&t);
  REQUIRE_OK(tn_session_open_scoped(t.options, t.graph, &session, &t.err), &t.err);
  CHECK(tn_session_default() == session);
  CHECK_STATUS(tn_session_leave_default(session, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "until tn_session_close");
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_OK(tn_session_close(session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  CHECK_INT(dk_run_two(session), TN_CANCELLED);
  tn_session_release(session);
  CHECK(!is_alive(&t));
  ts_fini(&t);
}

/* --- interactive -------------------------------------------------------------------------------------------------- */

static tn_session *interactive(ts *t)
{
  tn_session *session = NULL;
  REQUIRE_OK(tn_session_open_interactive(t->options, t->graph, &session, &t->err), &t->err);
  return session;
}

static void scoped_session__interactive_until_closed(void) /* S-DEF-14, S-DEF-16 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  tn_session *session = interactive(&t);
  CHECK(tn_session_default() == session);
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_STATUS(tn_session_leave_default(session, &t.err), TN_FAILED_PRECONDITION, &t.err);
  CHECK_OK(tn_session_close(session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  CHECK_OK(tn_session_close(session, &t.err), &t.err);
  CHECK_INT(dk_run_two(session), TN_CANCELLED);
  tn_session_destroy(session);
  ts_fini(&t);
}

static void scoped_session__interactive_ones_nest(void) /* S-DEF-15, S-DEF-17 */
{
  ts t;
  tn_session *s[4];
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  for (int i = 0; i < 4; i++) s[i] = interactive(&t);
  CHECK_OK(tn_session_close(s[3], &t.err), &t.err);
  CHECK(tn_session_default() == s[2]);
  CHECK_OK(tn_session_close(s[1], &t.err), &t.err); /* in the middle of the stack */
  CHECK(tn_session_default() == s[2]);
  CHECK_OK(tn_session_close(s[0], &t.err), &t.err); /* at the bottom of the stack */
  CHECK_DOUBLE(dk_two(), 2, 0);
  CHECK_OK(tn_session_close(s[2], &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  for (int i = 0; i < 4; i++) tn_session_destroy(s[i]);
  ts_fini(&t);
}

/* Closing removes the entry added by opening; a program must still leave the entries that it added. */
static void scoped_session__closed_one_can_still_be_left(void)
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  tn_session *session = interactive(&t);
  CHECK_OK(tn_session_enter_default(session, &t.err), &t.err);
  CHECK_OK(tn_session_close(session, &t.err), &t.err);
  CHECK(tn_session_default() == session);
  CHECK_OK(tn_session_leave_default(session, &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  tn_session_destroy(session);
  ts_fini(&t);
}

static void *close_it(void *arg)
{
  CHECK_INT(tn_session_close(arg, NULL), TN_OK);
  return NULL;
}

static void scoped_session__interactive_closed_elsewhere(void) /* S-DEF-14 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  tn_session *outer = interactive(&t), *inner = interactive(&t);
  dk_on_thread(close_it, outer);
  CHECK(tn_session_default() == inner);
  dk_on_thread(close_it, inner);
  CHECK_NULL(tn_session_default());
  tn_session_destroy(outer);
  tn_session_destroy(inner);
  ts_fini(&t);
}

/* Interactive work begins with an empty graph. */
static void scoped_session__interactive_graph_grows(void)
{
  ts t;
  ts_init(&t, 1);
  tn_session *session = interactive(&t);
  tn_tensor *value = NULL;
  CHECK_STATUS(tn_eval_name(NULL, "two", NULL, NULL, 0, &value, &t.err), TN_NOT_FOUND, &t.err);
  ts_const(t.graph, "two", 2);
  CHECK_DOUBLE(dk_two(), 2, 0);
  tn_session_destroy(session);
  CHECK_NULL(tn_session_default());
  ts_fini(&t);
}

/* A node on a device that the session lacks is rejected with the graph, or only when a call needs
 * it. */
static void scoped_session__interactive_is_not_spoilt_by_one_node(void) /* S-DEF-18, S-CFG-04 */
{
  ts t;
  tn_session *session = NULL;
  tn_tensor *value = NULL;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  tn_operation_builder *b = tn_operation_begin(t.graph, "Neg", "astray", 0);
  tn_operation_add_input(b, (tn_output){ tn_graph_find(t.graph, "two"), 0 });
  tn_operation_set_device(b, "/device:NOWHERE:0");
  REQUIRE_OK(tn_operation_finish(b, NULL, &t.err), &t.err);
  CHECK_STATUS(tn_session_open_scoped(t.options, t.graph, &session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_NULL(session);
  CHECK_NULL(tn_session_default());
  session = interactive(&t);
  CHECK_STATUS(tn_eval_name(NULL, "astray", NULL, NULL, 0, &value, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "astray");
  CHECK_DOUBLE(dk_two(), 2, 0);
  tn_session_destroy(session);
  ts_fini(&t);
}

static tn_bool pruned = 2;

static tn_bool note_options(const tn_session_factory *self, const tn_session_options *options)
{
  (void)self;
  tn_session_options_get_bool(options, "place_pruned_graph", &pruned, NULL);
  return 0;
}

static tn_status no_session(const tn_session_factory *self, const tn_session_options *options, tn_runtime_session **out,
                            tn_error *err)
{
  (void)self, (void)options;
  *out = NULL;
  return tn_error_set(err, TN_INTERNAL, "new_session must not be called");
}

static void no_destroy(const tn_session_factory *self, tn_runtime_session *session) { (void)self, (void)session; }

static void scoped_session__interactive_sets_its_option(void) /* S-DEF-18 */
{
  static const tn_session_factory factory = { .struct_size = sizeof factory, .name = "test.notes",
                                              .accepts_options = note_options, .new_session = no_session,
                                              .destroy_session = no_destroy };
  ts t;
  tn_session *session = NULL;
  ts_bytes def = { .size = 0 };
  ts_node(&def, "NoSuchOp", "bad", NAMES("two"), NULL, 0);
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  REQUIRE_OK(tn_graph_import(t.graph, def.data, def.size, NULL, &t.err), &t.err);
  session = interactive(&t);
  CHECK_STATUS(tn_run_operation_name(NULL, "bad", NULL, NULL, 0, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_DOUBLE(dk_two(), 2, 0);
  tn_session_destroy(session);

  REQUIRE_OK(tn_runtime_register("test.notes", &factory, &t.err), &t.err);
  REQUIRE_OK(tn_session_options_set_target(t.options, "test.notes", &t.err), &t.err);
  CHECK_STATUS(tn_session_open_interactive(t.options, t.graph, &session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_INT(pruned, 1);
  CHECK_STATUS(tn_session_open_scoped(t.options, t.graph, &session, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_INT(pruned, 0);
  CHECK_OK(tn_runtime_unregister("test.notes", &t.err), &t.err);
  CHECK_NULL(tn_session_default());
  ts_fini(&t);
}

/* If a reset closed the session, calls report that instead of continuing in another session. */
static void scoped_session__remains_default_after_a_reset(void) /* S-DEF-14, S-RST-01 */
{
  ts t;
  tn_tensor *value = NULL;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  tn_session *outer = interactive(&t), *inner = interactive(&t);
  REQUIRE_OK(tn_reset(t.options, NULL, 0, &t.err), &t.err);
  CHECK(tn_session_default() == inner);
  CHECK_STATUS(tn_eval_name(NULL, "two", NULL, NULL, 0, &value, &t.err), TN_CANCELLED, &t.err);
  CHECK_OK(tn_session_close(inner, &t.err), &t.err);
  CHECK(tn_session_default() == outer);
  tn_session_destroy(outer);
  tn_session_destroy(inner);
  ts_fini(&t);
}

TAP_MAIN(
#ifdef TN_SCOPED_SESSION
    TAP_TEST(scoped_session__ends_with_its_block),
    TAP_TEST(scoped_session__ends_on_every_way_out),
    TAP_TEST(scoped_session__passes_the_error_on),
    TAP_TEST(scoped_session__scopes_nest),
    TAP_TEST(scoped_session__that_cannot_open_is_null),
    TAP_TEST(scoped_session__does_not_wait_for_steps),
#endif
    TAP_TEST(scoped_session__is_closed_after_its_scope),
    TAP_TEST(scoped_session__interactive_until_closed),
    TAP_TEST(scoped_session__interactive_ones_nest),
    TAP_TEST(scoped_session__closed_one_can_still_be_left),
    TAP_TEST(scoped_session__interactive_closed_elsewhere),
    TAP_TEST(scoped_session__interactive_graph_grows),
    TAP_TEST(scoped_session__interactive_is_not_spoilt_by_one_node),
    TAP_TEST(scoped_session__interactive_sets_its_option),
    TAP_TEST(scoped_session__remains_default_after_a_reset))
