/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a session's graph, extending it, and names in it. */
#include "conformance/support/session_kit.h"

#include <stdio.h>

/* --- create ------------------------------------------------------------------------------------------------------- */

static void session_graph__an_empty_one_has_no_effect(void) /* S-GRA-02 */
{
  ts t;
  tn_graph *empty = NULL;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  REQUIRE_OK(tn_graph_create(&empty, &t.err), &t.err);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  CHECK_OK(tn_session_set_graph(t.session, empty, &t.err), &t.err);
  CHECK_OK(tn_session_set_graph(t.session, t.graph, &t.err), &t.err);
  CHECK_OK(tn_session_set_graph(t.session, empty, &t.err), &t.err);
  CHECK(tn_session_graph(t.session) == t.graph);
  CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
  tn_graph_unref(empty);
  ts_fini(&t);
}

static void session_graph__a_second_one_is_refused(void) /* S-GRA-03 */
{
  ts t;
  tn_graph *second = NULL;
  ts_open(&t, 1);
  REQUIRE_OK(tn_graph_create(&second, &t.err), &t.err);
  ts_const(second, "two", 22);
  CHECK_INT(tn_session_set_graph(t.session, second, &t.err), TN_ALREADY_EXISTS);
  CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
  tn_graph_unref(second);
  ts_fini(&t);
}

static void session_graph__lives_as_long_as_the_session(void) /* S-GRA-03: the session holds a reference */
{
  ts t;
  ts_open(&t, 1);
  tn_graph_unref(t.graph);
  t.graph = NULL;
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
  ts_fini(&t);
}

static void session_graph__nodes_added_later_can_be_run(void) /* promised by the header of tn_session_set_graph */
{
  ts t;
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
  ts_op1(t.graph, "Neg", "negneg", (tn_output){ tn_graph_find(t.graph, "neg"), 0 });
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "negneg"), 3, 0);
  ts_fini(&t);
}

/* --- extend ------------------------------------------------------------------------------------------------------- */

/* A session on the usual graph; extending it by this GraphDef must be rejected as a whole. */
static void refused(const char *what, const ts_bytes *def, tn_status wanted, const char *part)
{
  ts t;
  ts_open(&t, 1);
  size_t n = tn_graph_n_operations(t.graph);
  tn_status status = tn_session_extend(t.session, def->data, def->size, &t.err);
  CHECK_MSG(status == wanted, "%s: found %s (%s), wanted %s", what, tn_status_name(status), tn_error_message(&t.err),
            tn_status_name(wanted));
  if (part) CHECK_CONTAINS(tn_error_message(&t.err), part);
  CHECK_INT(tn_graph_n_operations(t.graph), n); /* S-GRA-13 */
  CHECK_NULL(tn_graph_find(t.graph, "good"));
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
  ts_bytes better = { .size = 0 };
  ts_node_const(&better, "good", 5);
  CHECK_OK(tn_session_extend(t.session, better.data, better.size, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&t, NULL, "good"), 5, 0);
  ts_fini(&t);
}

static void session_graph__unknown_inputs_are_refused(void) /* S-GRA-05 */
{
  ts_bytes def = { .size = 0 };
  ts_node_const(&def, "good", 1);
  ts_node(&def, "Neg", "bad", NAMES("absent"), "T", TN_FLOAT);
  refused("data input", &def, TN_INVALID_ARGUMENT, "absent");
  def.size = 0;
  ts_node_const(&def, "good", 1);
  ts_node(&def, "Neg", "bad", NAMES("two", "^absent"), "T", TN_FLOAT);
  refused("control input", &def, TN_INVALID_ARGUMENT, "absent");
  def.size = 0;
  ts_node_const(&def, "good", 1);
  ts_node(&def, "Neg", "bad", NAMES("two:3"), "T", TN_FLOAT);
  refused("output that does not exist", &def, TN_INVALID_ARGUMENT, "bad");
}

static void session_graph__bad_names_are_refused(void) /* S-GRA-07 */
{
  static const char *const names[] = { "with space", "",   "-first", "/first",  ":colon",
                                       "a:0",        "^a", "tab\t",  "nul\x01", "\xc3\xa4" };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    ts_bytes def = { .size = 0 };
    ts_node_const(&def, "good", 1);
    ts_node_const(&def, names[i], 1);
    refused(names[i], &def, TN_INVALID_ARGUMENT, NULL);
  }
}

static void session_graph__good_names_are_taken(void) /* S-GRA-07 */
{
  static const char *const names[] = {
    "a", "A9", "9a", ".dot", "scope/inner", "back\\slash", "a>b", "a-b", "a_b", "w.x"
  };
  ts t;
  ts_open(&t, 1);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    ts_bytes def = { .size = 0 };
    ts_node_const(&def, names[i], 4);
    CHECK_OK(tn_session_extend(t.session, def.data, def.size, &t.err), &t.err);
    CHECK_MSG(ts_run1(&t, NULL, names[i]) == 4, "'%s' cannot be fetched: %s", names[i], tn_error_message(&t.err));
  }
  ts_fini(&t);
}

static void session_graph__duplicate_names_are_refused(void) /* S-GRA-08, S-GRA-11 */
{
  ts_bytes def = { .size = 0 };
  ts_node_const(&def, "good", 1);
  ts_node_const(&def, "good", 1);
  refused("twice in one graph", &def, TN_INVALID_ARGUMENT, "good");
  def.size = 0;
  ts_node_const(&def, "good", 1);
  ts_node_const(&def, "two", 2);
  refused("exists already, even if identical", &def, TN_INVALID_ARGUMENT, "two");
}

static void session_graph__cycles_are_refused(void) /* S-GRA-09 */
{
  ts_bytes def = { .size = 0 };
  ts_node(&def, "Neg", "itself", NAMES("itself"), "T", TN_FLOAT);
  refused("a node that depends on itself", &def, TN_INVALID_ARGUMENT, "itself");
  def.size = 0;
  ts_node_const(&def, "good", 1);
  ts_node(&def, "AddV2", "one", NAMES("good", "three"), "T", TN_FLOAT);
  ts_node(&def, "Neg", "second", NAMES("one"), "T", TN_FLOAT);
  ts_node(&def, "Neg", "three", NAMES("second"), "T", TN_FLOAT);
  refused("data", &def, TN_INVALID_ARGUMENT, "cycle");
  def.size = 0;
  ts_node(&def, "Neg", "one", NAMES("two", "^second"), "T", TN_FLOAT);
  ts_node(&def, "Neg", "second", NAMES("two", "^one"), "T", TN_FLOAT);
  refused("control", &def, TN_INVALID_ARGUMENT, "cycle");
}

static void session_graph__broken_bytes_are_refused(void) /* S-GRA-13 */
{
  ts_bytes def = { .size = 0 };
  ts_node_const(&def, "good", 1);
  ts_node(&def, "Neg", "bad", NAMES("good"), "T", TN_FLOAT);
  size_t whole = def.size;
  for (size_t cut = 1; cut < whole; cut++) {
    ts_bytes part = def;
    part.size = cut;
    ts t;
    ts_open(&t, 1);
    size_t n = tn_graph_n_operations(t.graph);
    tn_status status = tn_session_extend(t.session, part.data, part.size, &t.err);
    bool whole_nodes = status == TN_OK; /* a cut between two nodes gives a smaller GraphDef */
    CHECK_MSG(whole_nodes || status == TN_INVALID_ARGUMENT || status == TN_DATA_LOSS, "cut at byte %zu: %s", cut,
              tn_status_name(status));
    CHECK_INT(tn_graph_n_operations(t.graph), n + (whole_nodes ? 1 : 0));
    ts_fini(&t);
  }
}

static void session_graph__extend_adds_nodes(void) /* S-GRA-10, S-GRA-12, S-GRA-15 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    CHECK_OK(tn_session_extend(t.session, NULL, 0, &t.err), &t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
    ts_bytes more = { .size = 0 }; /* uses names that are defined later, and earlier ones */
    ts_node(&more, "AddV2", "more", NAMES("twice:0", "ten"), "T", TN_FLOAT);
    ts_node_const(&more, "ten", 10);
    CHECK_OK(tn_session_extend(t.session, more.data, more.size, &t.err), &t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "more"), 16, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
    ts_fini(&t);
  }
}

static void session_graph__extend_without_a_graph_makes_one(void) /* S-GRA-04, S-GRA-14 */
{
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_create(t.options, &t.session, &t.err), &t.err);
  ts_bytes bad = { .size = 0 }, good = { .size = 0 };
  ts_node(&bad, "Neg", "bad", NAMES("absent"), "T", TN_FLOAT);
  CHECK_INT(tn_session_extend(t.session, bad.data, bad.size, &t.err), TN_INVALID_ARGUMENT);
  CHECK_NULL(tn_session_graph(t.session));
  ts_node_const(&good, "c", 4);
  CHECK_OK(tn_session_extend(t.session, good.data, good.size, &t.err), &t.err);
  CHECK_DOUBLE(ts_run1(&t, NULL, "c"), 4, 0);
  ts_usual_graph(t.graph);
  CHECK_INT(tn_session_set_graph(t.session, t.graph, &t.err), TN_ALREADY_EXISTS);
  ts_fini(&t);
}

static void session_graph__static_graph_refuses_to_grow(void) /* S-GRA-15 */
{
  ts t;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  CHECK_OK(tn_session_options_set_bool(t.options, "static_graph", 1, &t.err), &t.err);
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
  ts_bytes more = { .size = 0 };
  ts_node_const(&more, "later", 3);
  CHECK_INT(tn_session_extend(t.session, more.data, more.size, &t.err), TN_FAILED_PRECONDITION);
  CHECK_NULL(tn_graph_find(t.graph, "later"));
  ts_fini(&t);
}

static void session_graph__finalize_keeps_what_was_compiled(void) /* S-GRA-16 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    ts_open(&t, level);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 3 }), "neg"), -3, 0);
    CHECK_OK(tn_session_finalize(t.session, &t.err), &t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 4 }), "neg"), -4, 0);
    CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }, { "y", 1 }), NAMES("sum"), &fetched, NULL), TN_FAILED_PRECONDITION);
    CHECK_NULL(fetched);
    ts_bytes more = { .size = 0 };
    ts_node_const(&more, "later", 3);
    CHECK_INT(tn_session_extend(t.session, more.data, more.size, &t.err), TN_FAILED_PRECONDITION);
    CHECK_INT(tn_session_finalize(t.session, &t.err), TN_FAILED_PRECONDITION);
    ts_fini(&t);
  }
}

/* --- unregistered operations
 * -------------------------------------------------------------------------------------- */

static void session_graph__unregistered_ops_are_kept(void) /* S-GRA-06 */
{
  ts t;
  tn_tensor *fetched;
  ts_bytes def = { .size = 0 };
  ts_open(&t, 1);
  ts_node(&def, "UnregisteredOp", "strange", NAMES("x", "two:0"), "T", TN_FLOAT);
  ts_node(&def, "Neg", "below", NAMES("strange:1"), "T", TN_FLOAT);
  ts_node_const(&def, "beside", 8);
  REQUIRE_OK(tn_session_extend(t.session, def.data, def.size, &t.err), &t.err);

  CHECK_DOUBLE(ts_run1(&t, NULL, "beside"), 8, 0);
  tn_operation *op = tn_graph_find(t.graph, "strange");
  REQUIRE_PTR(op);
  CHECK_STR(tn_operation_type(op), "UnregisteredOp");
  CHECK_NULL(tn_operation_schema(op));
  CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }), NAMES("below"), &fetched, NULL), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "strange");
  CHECK_CONTAINS(tn_error_message(&t.err), "UnregisteredOp");
  CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }), NULL, NULL, NAMES("strange")), TN_NOT_FOUND);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "strange:1", 4 }), "below"), -4, 0); /* fed, so it is not needed */
  ts_fini(&t);
}

static void session_graph__the_builder_refuses_unregistered_ops(void) /* S-GRA-06 */
{
  ts t;
  tn_operation *op = NULL;
  ts_init(&t, 1);
  tn_operation_builder *b = tn_operation_begin(t.graph, "UnregisteredOp", "strange", 0);
  CHECK_INT(tn_operation_finish(b, &op, &t.err), TN_NOT_FOUND);
  CHECK_NULL(op);
  CHECK_CONTAINS(tn_error_message(&t.err), "UnregisteredOp");
  b = tn_operation_begin(t.graph, "UnregisteredOp", "strange", TN_BUILD_KEEP_UNKNOWN_OP);
  CHECK_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  CHECK(op && op == tn_graph_find(t.graph, "strange"));
  ts_fini(&t);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static void session_graph__node_means_its_first_output(void) /* S-NAM-01, S-NAM-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[2];
    ts_open(&t, level);
    CHECK_OK(ts_run(&t, FEEDS({ "x:0", 1 }, { "y", 2 }), NAMES("sum", "sum:0"), fetched, NULL), &t.err);
    for (int i = 0; i < 2; i++) {
      CHECK_DOUBLE(ts_float(fetched[i]), 3, 0);
      tn_tensor_unref(fetched[i]);
    }
    ts_fini(&t);
  }
}

static void session_graph__one_endpoint_has_one_feed(void) /* S-NAM-03, S-RUN-09 */
{
  ts t;
  tn_tensor *fetched;
  ts_open(&t, 1);
  CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }, { "x:0", 1 }), NAMES("neg"), &fetched, NULL), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "fed more than once");
  CHECK_CONTAINS(tn_error_message(&t.err), "x");
  CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }, { "x", 1 }), NAMES("neg"), &fetched, NULL), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "fed more than once");
  ts_fini(&t);
}

static void session_graph__missing_outputs_are_refused(void) /* S-NAM-04 */
{
  static const char *const names[] = { "neg:1",   "neg:7",     "neg:4294967296", "neg:99999999999999999999",
                                       "nothing", "nothing:0", "^neg",           "^nothing" };
  ts t;
  tn_tensor *fetched;
  ts_init(&t, 1);
  ts_usual_graph(t.graph);
  ts_test_op(t.graph, "TestNothing", "nothing", NULL, 0, NULL, 0);
  ts_start(&t);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    tn_status status = ts_run(&t, FEEDS({ "x", 1 }), NAMES(names[i]), &fetched, NULL);
    CHECK_MSG(status == TN_OUT_OF_RANGE, "fetch '%s': %s: %s", names[i], tn_status_name(status),
              tn_error_message(&t.err));
    status = ts_run(&t, FEEDS({ names[i], 1 }), NAMES("two"), &fetched, NULL);
    CHECK_MSG(status == TN_OUT_OF_RANGE, "feed '%s': %s: %s", names[i], tn_status_name(status),
              tn_error_message(&t.err));
    tn_tensor_unref(fetched);
  }
  ts_fini(&t);
}

static void session_graph__unknown_names_are_refused(void) /* S-NAM-05, S-NAM-06 */
{
  ts t;
  tn_tensor *fetched;
  ts_open(&t, 1);
  CHECK_INT(ts_run(&t, NULL, NAMES("absent"), &fetched, NULL), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "absent");
  CHECK_INT(ts_run(&t, NULL, NAMES("absent:3"), &fetched, NULL), TN_NOT_FOUND);
  CHECK_INT(ts_run(&t, FEEDS({ "absent", 1 }), NAMES("two"), &fetched, NULL), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "absent");
  CHECK_INT(ts_run(&t, NULL, NULL, NULL, NAMES("absent")), TN_NOT_FOUND);
  CHECK_CONTAINS(tn_error_message(&t.err), "absent");
  CHECK_INT(ts_run(&t, NULL, NULL, NULL, NAMES("Two")), TN_NOT_FOUND); /* names are case-sensitive */
  ts_fini(&t);
}

static void session_graph__a_target_may_name_an_output(void) /* S-NAM-07 */
{
  ts t;
  ts_open(&t, 1);
  CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }), NULL, NULL, NAMES("neg:0")), &t.err);
  ts_fini(&t);
}

static void session_graph__empty_and_null_names(void) /* S-NAM-08, S-RUN-18 */
{
  ts t;
  ts_open(&t, 1);
  static const char *const bad[] = { "", NULL };
  tn_tensor *one = ts_scalar(1), *fetched = NULL;
  const char *x = "x", *two = "two";
  for (int i = 0; i < 2; i++) {
    CHECK_INT(tn_session_run(t.session, NULL, &bad[i], &one, 1, &two, &fetched, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_INT(tn_session_run(t.session, NULL, NULL, NULL, 0, &bad[i], &fetched, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_INT(tn_session_run(t.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &bad[i], 1, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_NULL(fetched);
  }
  tn_tensor *none = NULL;
  CHECK_INT(tn_session_run(t.session, NULL, &x, &none, 1, &two, &fetched, 1, NULL, 0, NULL, &t.err),
            TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "x");
  CHECK_NULL(fetched);
  tn_tensor_unref(one);
  ts_fini(&t);
}

static void session_graph__index_must_be_a_number(void) /* S-NAM-01, S-ERR-04 */
{
  static const char *const names[] = { "neg:", "neg:a", "neg:-1", "neg:0x0", "neg: 0", "neg:0 ", ":0", ":", "neg:0:0" };
  ts t;
  tn_tensor *fetched;
  ts_open(&t, 1);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    tn_status status = ts_run(&t, FEEDS({ "x", 1 }), NAMES(names[i]), &fetched, NULL);
    CHECK_MSG(status == TN_INVALID_ARGUMENT || status == TN_NOT_FOUND || status == TN_OUT_OF_RANGE, "'%s': %s",
              names[i], tn_status_name(status));
    CHECK_NULL(fetched);
  }
  ts_fini(&t);
}

TAP_MAIN(
    TAP_TEST(session_graph__an_empty_one_has_no_effect),
    TAP_TEST(session_graph__a_second_one_is_refused),
    TAP_TEST(session_graph__lives_as_long_as_the_session),
    TAP_TEST(session_graph__nodes_added_later_can_be_run),
    TAP_TEST(session_graph__unknown_inputs_are_refused),
    TAP_TEST(session_graph__bad_names_are_refused),
    TAP_TEST(session_graph__good_names_are_taken),
    TAP_TEST(session_graph__duplicate_names_are_refused),
    TAP_TEST(session_graph__cycles_are_refused),
    TAP_TEST(session_graph__broken_bytes_are_refused),
    TAP_TEST(session_graph__extend_adds_nodes),
    TAP_TEST(session_graph__extend_without_a_graph_makes_one),
    TAP_TEST(session_graph__static_graph_refuses_to_grow),
    TAP_TEST(session_graph__finalize_keeps_what_was_compiled),
    TAP_TEST(session_graph__unregistered_ops_are_kept),
    TAP_TEST(session_graph__the_builder_refuses_unregistered_ops),
    TAP_TEST(session_graph__node_means_its_first_output),
    TAP_TEST(session_graph__one_endpoint_has_one_feed),
    TAP_TEST(session_graph__missing_outputs_are_refused),
    TAP_TEST(session_graph__unknown_names_are_refused),
    TAP_TEST(session_graph__a_target_may_name_an_output),
    TAP_TEST(session_graph__empty_and_null_names),
    TAP_TEST(session_graph__index_must_be_a_number))
