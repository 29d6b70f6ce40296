/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs: one step in several calls. Tests which calls are allowed, the state after a
 * rejected call, and what ends a run. */
#include "conformance/support/partial_kit.h"

#include <math.h>

static const char *const xyz[] = { "x", "y", "z", NULL }, *const abc[] = { "a", "b", "c", NULL };

static void open_steps(ts *t, int level, const char *text)
{
  ts_fini(t);
  ts_watch_reset();
  vk_open(t, level, text);
}
#define FOR_OPEN(t, text)                                                \
  for (int level = (ts_init(&t, 1), 0); level <= 1; level++)             \
    if (open_steps(&t, level, text), true)

/* ---- one run ---- */

static void partial_run__continues_from_call_to_call(void) /* S-PR-01, S-PR-02, S-PR-20 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_partial_run run = pk_begin(&t, xyz, abc, NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    CHECK_INT(ts_counted(2), 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "b"), 7, 0);
    CHECK_INT(ts_counted(3), 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "z", 5 }), "c"), 35, 0);
    for (int slot = 1; slot <= 3; slot++) CHECK_INT(ts_counted(slot), 1); /* S-RUN-22 */
    CHECK_INT(pk_give(&t, run, NULL), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "ended");
  }
  ts_fini(&t);
}

static void partial_run__takes_calls_of_any_size(void) /* S-PR-18, S-PR-20, S-PR-30 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_tensor *fetched[3];
    tn_partial_run run = pk_begin(&t, xyz, abc, NULL);
    CHECK_OK(pk_give(&t, run, NULL), &t.err);
    CHECK_OK(pk_give(&t, run, FEEDS({ "y", 4 }, { "x", 2 })), &t.err);
    CHECK_OK(pk_give(&t, run, NULL), &t.err);
    CHECK_DOUBLE(pk_get(&t, run, NULL, "b"), 7, 0);
    CHECK_OK(pk_give(&t, run, FEEDS({ "z", 5 })), &t.err); /* everything is fed, but not everything fetched */
    CHECK_OK(pk_call(t.session, run, NULL, NAMES("c", "a"), fetched, &t.err), &t.err);
    CHECK_DOUBLE(ts_float(fetched[0]), 35, 0);
    CHECK_DOUBLE(ts_float(fetched[1]), 3, 0);
    for (int i = 0; i < 2; i++) tn_tensor_unref(fetched[i]);
    CHECK(pk_has_ended(&t, run));
    run = pk_begin(&t, xyz, abc, NULL); /* everything in one call */
    CHECK_OK(pk_call(t.session, run, FEEDS({ "z", 1 }, { "y", 2 }, { "x", 3 }), abc, fetched, &t.err), &t.err);
    for (int i = 0; i < 3; i++) {
      CHECK_DOUBLE(ts_float(fetched[i]), i == 0 ? 4 : 6, 0);
      tn_tensor_unref(fetched[i]);
    }
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

static void partial_run__needs_all_declared_feeds_to_end(void) /* S-PR-20, S-RUN-14 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "z"), NAMES("a"), NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 1 }), "a"), 2, 0);
    CHECK_OK(pk_give(&t, run, NULL), &t.err);
    CHECK_OK(pk_give(&t, run, FEEDS({ "z", 1 })), &t.err); /* no node reads it */
    CHECK(pk_has_ended(&t, run));
    run = pk_begin(&t, NULL, NAMES("one"), NULL);
    CHECK_DOUBLE(pk_get(&t, run, NULL, "one"), 1, 0);
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

static void partial_run__runs_are_independent(void) /* S-PR-03, S-RUN-29 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    uint64_t compiled;
    tn_partial_run one = pk_begin(&t, xyz, abc, NULL);
    tn_partial_run other = pk_begin(&t, NAMES("z", "y", "x"), NAMES("c", "b", "a"), NULL);
    CHECK(one.id != other.id);
    tn_session_signature_counts(t.session, &compiled, NULL);
    CHECK_INT(compiled, 1);
    CHECK_DOUBLE(pk_get(&t, one, FEEDS({ "x", 1 }), "a"), 2, 0);
    CHECK_DOUBLE(pk_get(&t, other, FEEDS({ "x", 10 }), "a"), 11, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 100 }, { "y", 0 }), "b"), 101, 0);
    CHECK_DOUBLE(pk_get(&t, other, FEEDS({ "y", 20 }), "b"), 31, 0);
    CHECK_DOUBLE(pk_get(&t, one, FEEDS({ "y", 2 }), "b"), 4, 0);
    CHECK_DOUBLE(pk_get(&t, one, FEEDS({ "z", 3 }), "c"), 12, 0);
    CHECK(pk_has_ended(&t, one));
    CHECK_DOUBLE(pk_get(&t, other, FEEDS({ "z", 30 }), "c"), 930, 0);
  }
  ts_fini(&t);
}

#define EFFECTS SCALAR_VARIABLE("") ANY("x", "DT_FLOAT") SCALAR("zero", "0") SCALAR("one", "1")              \
  NODE("init", "AssignVariableOp", "input: 'v' input: 'zero'", DT)                                           \
  NODE("inc", "AssignAddVariableOp", "input: 'v' input: 'one'", DT)                                          \
  NODE("after", "ReadVariableOp", "input: 'v' input: '^inc'", DT)                                            \
  NODE("sum", "AddV2", "input: 'after' input: 'x'", F) NODE("neg", "TestCount", "input: 'x'", SLOT(4))

static void partial_run__starts_at_once(void) /* S-PR-04 */
{
  ts t;
  FOR_OPEN(t, EFFECTS)
  {
    CHECK_OK(vk_target(&t, "init"), &t.err);
    tn_partial_run run = pk_begin(&t, NAMES("x"), NAMES("sum"), NAMES("inc"));
    CHECK_DOUBLE(ts_run1(&t, NULL, "read"), 1, 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 5 }), "sum"), 6, 0);
    CHECK_DOUBLE(ts_run1(&t, NULL, "read"), 1, 0); /* it ran once */
  }
  vk_fini(&t);
}

static void partial_run__may_have_targets_only(void) /* S-PR-19, S-PR-21 */
{
  ts t;
  FOR_OPEN(t, EFFECTS)
  {
    CHECK_OK(vk_target(&t, "init"), &t.err);
    tn_partial_run run = pk_begin(&t, NAMES("x"), NULL, NAMES("add", "neg"));
    CHECK_OK(pk_give(&t, run, NULL), &t.err);
    CHECK_DOUBLE(ts_run1(&t, NULL, "read"), 0, 0);
    CHECK_OK(pk_give(&t, run, FEEDS({ "x", 5 })), &t.err);
    CHECK_DOUBLE(ts_run1(&t, NULL, "read"), 5, 0);
    CHECK_INT(ts_counted(4), 1);
    CHECK(pk_has_ended(&t, run));
    run = pk_begin(&t, NULL, NULL, NAMES("inc")); /* the next call is the last */
    CHECK_OK(pk_give(&t, run, NULL), &t.err);
    CHECK(pk_has_ended(&t, run));
    CHECK_DOUBLE(ts_run1(&t, NULL, "read"), 6, 0);
  }
  vk_fini(&t);
}

/* ---- errors in arguments ---- */

static void partial_run__setup_checks_names(void) /* S-PR-05, S-PR-06, S-PR-07, S-PR-09, S-NAM-04, S-NAM-08 */
{
  static const struct {
    const char *feeds[3], *fetches[3], *targets[2];
    tn_status wanted;
  } cases[] = {
    { { "x" }, { NULL }, { NULL }, TN_INVALID_ARGUMENT },
    { { "u" }, { "a" }, { NULL }, TN_NOT_FOUND },
    { { "x" }, { "u" }, { NULL }, TN_NOT_FOUND },
    { { "x" }, { "a" }, { "u" }, TN_NOT_FOUND },
    { { "x", "x" }, { "a" }, { NULL }, TN_INVALID_ARGUMENT },
    { { "x", "x:0" }, { "a" }, { NULL }, TN_INVALID_ARGUMENT },
    { { "x", "a" }, { "b", "a" }, { NULL }, TN_INVALID_ARGUMENT },
    { { "x" }, { "x:0" }, { NULL }, TN_INVALID_ARGUMENT },
    { { "x" }, { "a:7" }, { NULL }, TN_OUT_OF_RANGE },
    { { "" }, { "a" }, { NULL }, TN_INVALID_ARGUMENT },
  };
  ts t;
  tn_partial_run run = { 7 };
  FOR_OPEN(t, STEPS)
  {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      tn_status st = pk_setup(&t, cases[i].feeds, cases[i].fetches, cases[i].targets, &run);
      CHECK_MSG(st == cases[i].wanted, "case %zu: %s", i, tn_status_name(st));
    }
    const char *none = NULL;
    CHECK_INT(tn_session_partial_setup(t.session, NULL, &none, 1, abc, 3, NULL, 0, &run, &t.err), TN_INVALID_ARGUMENT);
    CHECK_INT(tn_session_partial_setup(t.session, NULL, xyz, 3, abc, 3, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT);
    CHECK_INT(tn_session_partial_setup(NULL, NULL, xyz, 3, abc, 3, NULL, 0, &run, &t.err), TN_INVALID_ARGUMENT);
  }
  ts_fini(&t);
}

static void partial_run__setup_needs_a_graph_and_good_options(void) /* S-GRA-01, S-GRA-16, S-PR-32, S-RO-09, S-RO-11 */
{
  ts t;
  tn_partial_run run = { 7 };
  tn_run_options options;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_INT(pk_setup(&t, xyz, abc, NULL, &run), TN_INVALID_ARGUMENT);
  ts_fini(&t);
  vk_open(&t, 1, STEPS);
  tn_run_options_init(&options);
  options.trace_level = 4;
  CHECK_INT(pk_setup_with(&t, t.session, &options, xyz, abc, NULL, &run), TN_INVALID_ARGUMENT);
  tn_run_options_init(&options);
  options.inter_op_pool = 5;
  CHECK_INT(pk_setup_with(&t, t.session, &options, xyz, abc, NULL, &run), TN_INVALID_ARGUMENT);
  run = pk_begin(&t, xyz, abc, NULL);
  CHECK_OK(tn_session_finalize(t.session, &t.err), &t.err);
  CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
  run = pk_begin(&t, xyz, abc, NULL); /* the signature was already compiled */
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
  CHECK_INT(pk_setup(&t, xyz, NAMES("a"), NULL, &run), TN_FAILED_PRECONDITION);
  ts_fini(&t);
}

static void partial_run__unknown_handles_are_refused(void) /* S-PR-10, S-PR-31 */
{
  ts t;
  ts_init(&t, 1);
  open_steps(&t, 1, STEPS);
  tn_session *other = bk_session(&t);
  tn_partial_run run = pk_begin(&t, xyz, abc, NULL), bad[4] = { { 0 }, { UINT64_MAX }, { run.id + 1000 } };
  REQUIRE_OK(pk_setup_with(&t, other, NULL, xyz, abc, NULL, &bad[3]), &t.err); /* a run of another session */
  for (int i = 0; i < 4; i++) {
    CHECK_INT(pk_fails(&t, bad[i], FEEDS({ "x", 2 }), "a"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "no such run");
    CHECK_INT(tn_session_partial_release(t.session, bad[i], &t.err), TN_INVALID_ARGUMENT);
  }
  tn_tensor *fetched = NULL;
  CHECK_OK(pk_call(other, bad[3], FEEDS({ "x", 4 }), NAMES("a"), &fetched, &t.err), &t.err);
  tn_tensor_unref(fetched);
  CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
  CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
  CHECK_INT(tn_session_partial_release(t.session, run, &t.err), TN_INVALID_ARGUMENT);
  CHECK(pk_has_ended(&t, run));
  CHECK_INT(tn_session_partial_release(NULL, run, &t.err), TN_INVALID_ARGUMENT);
  CHECK_INT(tn_session_partial_run(NULL, run, NULL, NULL, 0, NULL, NULL, 0, &t.err), TN_INVALID_ARGUMENT);
  tn_session_destroy(other);
  ts_fini(&t);
}

/* Each of these calls is rejected and has no effect. */
static void check_refusals(ts *t, tn_partial_run run)
{
  CHECK_INT(pk_give(t, run, FEEDS({ "y", 1 }, { "one", 1 })), TN_INVALID_ARGUMENT); /* S-PR-11 */
  CHECK_CONTAINS(tn_error_message(&t->err), "'one'");
  CHECK_INT(pk_give(t, run, FEEDS({ "y", 1 }, { "absent", 1 })), TN_INVALID_ARGUMENT);
  CHECK_INT(pk_fails(t, run, FEEDS({ "y", 1 }), "bz"), TN_INVALID_ARGUMENT);
  CHECK_INT(pk_give(t, run, FEEDS({ "y", 1 }, { "x", 9 })), TN_INVALID_ARGUMENT); /* S-PR-12 */
  CHECK_CONTAINS(tn_error_message(&t->err), "earlier");
  CHECK_INT(pk_fails(t, run, FEEDS({ "y", 1 }), "a"), TN_INVALID_ARGUMENT);
  CHECK_INT(pk_fails(t, run, FEEDS({ "y", 1 }), "c"), TN_INVALID_ARGUMENT); /* S-PR-13 */
  CHECK_CONTAINS(tn_error_message(&t->err), "'z:0'");
  CHECK_INT(pk_fails(t, run, FEEDS({ "z", 1 }), "c"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t->err), "'y:0'");
  CHECK_INT(pk_give(t, run, FEEDS({ "y", 1 }, { "y:0", 1 })), TN_INVALID_ARGUMENT); /* S-PR-15, S-PR-17 */
  CHECK_CONTAINS(tn_error_message(&t->err), "more than once");
}

static void partial_run__a_refused_call_consumes_nothing(void) /* S-PR-11 to S-PR-15, S-PR-25 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    const char *names[] = { "y", "z" }, *b = "b";
    int32_t seven = 7;
    tn_tensor *tensors[2] = { ts_scalar(1), NULL }, *fetched = NULL;
    REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &seven, sizeof(seven), &tensors[1], &t.err), &t.err);
    tn_partial_run run = pk_begin(&t, xyz, abc, NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    check_refusals(&t, run);
    CHECK_INT(tn_session_partial_run(t.session, run, names, tensors, 2, &b, &fetched, 1, &t.err), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "int32"); /* S-PR-25 */
    CHECK_NULL(fetched);
    CHECK_INT(tn_session_partial_run(t.session, run, names, tensors, 1, &b, NULL, 1, &t.err), TN_INVALID_ARGUMENT);
    CHECK_INT(tn_session_partial_run(t.session, run, names, NULL, 1, &b, &fetched, 1, &t.err), TN_INVALID_ARGUMENT);
    tn_tensor_unref(tensors[1]);
    tensors[1] = NULL; /* S-RUN-18 */
    CHECK_INT(tn_session_partial_run(t.session, run, names, tensors, 2, &b, &fetched, 1, &t.err), TN_INVALID_ARGUMENT);
    CHECK_INT(ts_counted(2), 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y", 4 }), "b"), 7, 0);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "z", 5 }), "c"), 35, 0);
    tn_tensor_unref(tensors[0]);
  }
  ts_fini(&t);
}

static void partial_run__names_have_one_meaning(void) /* S-PR-08, S-PR-16, S-PR-17 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_tensor *fetched[4];
    tn_partial_run run = pk_begin(&t, NAMES("x:0", "y"), NAMES("a", "a:0", "b", "a"), NULL);
    CHECK_OK(pk_call(t.session, run, FEEDS({ "x", 2 }), NAMES("a:0", "a", "a:0"), fetched, &t.err), &t.err);
    for (int i = 0; i < 3; i++) {
      CHECK_DOUBLE(ts_float(fetched[i]), 3, 0);
      CHECK(tn_tensor_is_exclusive(fetched[i]));
      tn_tensor_unref(fetched[i]);
    }
    CHECK_INT(pk_fails(&t, run, NULL, "a"), TN_INVALID_ARGUMENT);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "y:0", 4 }), "b:0"), 7, 0);
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

static void partial_run__checks_declared_shapes_when_asked(void) /* S-RUN-16, S-PR-25 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  REQUIRE_OK(tn_session_options_set_bool(t.options, "strict_shapes", 1, &t.err), &t.err);
  tn_operation_builder *b = tn_operation_begin(t.graph, "Placeholder", "pair", 0);
  const int64_t two = 2;
  tn_operation *op;
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", &two, 1);
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  ts_op1(t.graph, "Neg", "minus", (tn_output){ op, 0 });
  ts_start(&t);
  tn_partial_run run = pk_begin(&t, NAMES("pair"), NAMES("minus"), NULL);
  CHECK_INT(pk_give(&t, run, FEEDS({ "pair", 1 })), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "strict_shapes");
  CHECK_OK(pk_give(&t, run, NULL), &t.err);
  ts_fini(&t);
}

/* ---- errors ---- */

#define FAILURES                                                                                             \
  STEPS NODE("bad", "TestFail", "input: 'y'", SLOT(9)) NODE("below", "TestCount", "input: 'bad'", SLOT(5))    \
  NODE("early", "TestFail", "input: 'one'", SLOT(13))

static void partial_run__an_error_ends_that_run_alone(void) /* S-PR-23, S-PR-24, S-CAN-02 */
{
  ts t;
  FOR_OPEN(t, FAILURES)
  {
    tn_partial_run run = pk_begin(&t, xyz, NAMES("a", "c", "below"), NULL), other = pk_begin(&t, xyz, abc, NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    CHECK_INT(pk_fails(&t, run, FEEDS({ "y", 1 }), "below"), 9);
    CHECK_CONTAINS(tn_error_message(&t.err), "told to fail");
    CHECK_STR(tn_error_node(&t.err), "bad");
    CHECK_INT(ts_counted(5), 0);
    CHECK(pk_has_ended(&t, run));
    CHECK_DOUBLE(pk_get(&t, other, FEEDS({ "x", 1 }), "a"), 2, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }), "a"), 2, 0);
    CHECK_DOUBLE(pk_get(&t, other, FEEDS({ "y", 1 }, { "z", 2 }), "c"), 6, 0);
  }
  ts_fini(&t);
}

static void partial_run__nodes_that_failed_in_setup_are_reported_by_the_first_call(void) /* S-PR-04, S-PR-23 */
{
  ts t;
  FOR_OPEN(t, FAILURES)
  {
    tn_partial_run run = pk_begin(&t, xyz, NAMES("a"), NAMES("early"));
    CHECK_INT(pk_fails(&t, run, FEEDS({ "x", 2 }), "b"), TN_INVALID_ARGUMENT); /* before the error is reported */
    CHECK_INT(pk_fails(&t, run, FEEDS({ "x", 2 }), "a"), 13);
    CHECK_STR(tn_error_node(&t.err), "early");
    CHECK(pk_has_ended(&t, run));
    run = pk_begin(&t, xyz, NAMES("a"), NAMES("early"));
    CHECK_OK(tn_session_partial_release(t.session, run, &t.err), &t.err);
  }
  ts_fini(&t);
}

static void partial_run__a_failed_target_is_reported_by_the_last_call(void) /* S-PR-22 */
{
  ts t;
  FOR_OPEN(t, FAILURES)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "y"), NAMES("a"), NAMES("below"));
    CHECK_OK(pk_give(&t, run, FEEDS({ "x", 2 })), &t.err);
    CHECK_INT(pk_fails(&t, run, FEEDS({ "y", 1 }), "a"), 9); /* the fetched node itself does not fail */
    CHECK_STR(tn_error_node(&t.err), "bad");
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

static void partial_run__names_missing_placeholders_of_a_fetch(void) /* S-PR-26 */
{
  ts t;
  FOR_OPEN(t, STEPS)
  {
    tn_partial_run run = pk_begin(&t, NAMES("x", "z"), abc, NULL);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 2 }), "a"), 3, 0);
    CHECK_INT(pk_fails(&t, run, FEEDS({ "z", 2 }), "b"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "placeholder 'y'");
    CHECK_STR(tn_error_node(&t.err), "y");
    CHECK(pk_has_ended(&t, run));
    run = pk_begin(&t, NAMES("x"), NAMES("a", "y"), NULL); /* the placeholder itself */
    CHECK_INT(pk_fails(&t, run, NULL, "y"), TN_INVALID_ARGUMENT);
    run = pk_begin(&t, NAMES("x"), NAMES("a"), NAMES("b")); /* a target needs 'y': the last call fails */
    CHECK_INT(pk_fails(&t, run, FEEDS({ "x", 2 }), "a"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "placeholder 'y'");
    CHECK(pk_has_ended(&t, run));
  }
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(partial_run__continues_from_call_to_call),
  TAP_TEST(partial_run__takes_calls_of_any_size),
  TAP_TEST(partial_run__needs_all_declared_feeds_to_end),
  TAP_TEST(partial_run__runs_are_independent),
  TAP_TEST(partial_run__starts_at_once),
  TAP_TEST(partial_run__may_have_targets_only),
  TAP_TEST(partial_run__setup_checks_names),
  TAP_TEST(partial_run__setup_needs_a_graph_and_good_options),
  TAP_TEST(partial_run__unknown_handles_are_refused),
  TAP_TEST(partial_run__a_refused_call_consumes_nothing),
  TAP_TEST(partial_run__names_have_one_meaning),
  TAP_TEST(partial_run__checks_declared_shapes_when_asked),
  TAP_TEST(partial_run__an_error_ends_that_run_alone),
  TAP_TEST(partial_run__nodes_that_failed_in_setup_are_reported_by_the_first_call),
  TAP_TEST(partial_run__a_failed_target_is_reported_by_the_last_call),
  TAP_TEST(partial_run__names_missing_placeholders_of_a_fetch))
