/* SPDX-License-Identifier: Apache-2.0 */
/* Run: feeds, fetches, targets, which parts of the graph are executed, and errors in a step. */
#include "conformance/support/blocked_kit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

/* --- feeds and fetches -------------------------------------------------------------------------------------------- */

static void session_run__gives_fetches_in_the_order_asked(void) /* S-RUN-01 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[4];
    static const float wanted[] = { -1, 6, 3, 2 };
    ts_open(&t, level);
    REQUIRE_OK(ts_run(&t, FEEDS({ "x", 1 }, { "y", 2 }), NAMES("neg", "twice", "sum", "two"), fetched, NULL), &t.err);
    for (int i = 0; i < 4; i++) {
      CHECK_DOUBLE(ts_float(fetched[i]), wanted[i], 0);
      tn_tensor_unref(fetched[i]);
    }
    ts_fini(&t);
  }
}

static void session_run__order_of_names_has_no_meaning(void) /* S-RUN-02, S-RUN-29 */
{
  ts t;
  tn_tensor *fetched[2];
  uint64_t compiled = 0, held = 0;
  ts_open(&t, 1);
  REQUIRE_OK(ts_run(&t, FEEDS({ "x", 1 }, { "y", 10 }), NAMES("sum", "neg"), fetched, NAMES("two", "half")), &t.err);
  CHECK_DOUBLE(ts_float(fetched[0]), 11, 0);
  tn_tensor_unref(fetched[0]);
  tn_tensor_unref(fetched[1]);
  REQUIRE_OK(ts_run(&t, FEEDS({ "y:0", 20 }, { "x", 2 }), NAMES("neg:0", "sum"), fetched, NAMES("half", "two")),
             &t.err);
  CHECK_DOUBLE(ts_float(fetched[0]), -2, 0);
  CHECK_DOUBLE(ts_float(fetched[1]), 22, 0);
  tn_tensor_unref(fetched[0]);
  tn_tensor_unref(fetched[1]);
  tn_session_signature_counts(t.session, &compiled, &held);
  CHECK_INT(compiled, 1);
  CHECK_INT(held, 1);
  ts_fini(&t);
}

static void session_run__same_fetch_twice_runs_once(void) /* S-RUN-03, S-RUN-04, S-RUN-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched[3];
    tn_output in = ts_open_watched(&t, level), c = ts_watch_op(t.graph, "TestCount", "c", in, 1);
    ts_op2(t.graph, "AddV2", "used", c, c);
    ts_start(&t);
    REQUIRE_OK(ts_run(&t, FEEDS({ "in", 4 }), NAMES("c", "c", "used"), fetched, NAMES("c", "c")), &t.err);
    CHECK_INT(ts_counted(1), 1);
    CHECK_DOUBLE(ts_float(fetched[0]), 4, 0);
    CHECK_DOUBLE(ts_float(fetched[1]), 4, 0);
    CHECK_DOUBLE(ts_float(fetched[2]), 8, 0);
    CHECK(tn_tensor_data(fetched[0]) != tn_tensor_data(fetched[1])); /* each belongs to the caller alone */
    for (int i = 0; i < 3; i++) tn_tensor_unref(fetched[i]);
    ts_fini(&t);
  }
}

static void session_run__an_empty_call_is_refused(void) /* S-RUN-05 */
{
  ts t;
  ts_open(&t, 1);
  CHECK_INT(ts_run(&t, NULL, NULL, NULL, NULL), TN_INVALID_ARGUMENT);
  CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }), NULL, NULL, NULL), TN_INVALID_ARGUMENT);
  ts_fini(&t);
}

static void session_run__targets_only(void) /* S-RUN-06 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open_watched(&t, level);
    ts_test_op(t.graph, "TestEffect", "effect", NULL, 3, NULL, 0);
    ts_start(&t);
    CHECK_OK(ts_run(&t, NULL, NULL, NULL, NAMES("effect")), &t.err);
    CHECK_INT(ts_counted(3), 1);
    CHECK_OK(ts_run(&t, NULL, NULL, NULL, NAMES("effect")), &t.err);
    CHECK_INT(ts_counted(3), 2);
    ts_fini(&t);
  }
}

static void session_run__fetches_need_a_place(void) /* S-RUN-07 */
{
  ts t;
  const char *two = "two";
  ts_open(&t, 1);
  CHECK_INT(tn_session_run(t.session, NULL, NULL, NULL, 0, &two, NULL, 1, NULL, 0, NULL, &t.err), TN_INVALID_ARGUMENT);
  ts_fini(&t);
}

static void session_run__a_failed_one_outputs_nothing(void) /* S-RUN-08, S-RUN-24 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_output in = ts_open_watched(&t, level);
    ts_op1(t.graph, "Neg", "good", in);
    ts_watch_op(t.graph, "TestFail", "bad", in, TN_DATA_LOSS);
    ts_start(&t);
    tn_tensor *garbage = (tn_tensor *)&t, *fetched[2] = { garbage, garbage }, *one = ts_scalar(1);
    const char *feed = "in", *names[] = { "good", "bad" };
    CHECK_INT(tn_session_run(t.session, NULL, &feed, &one, 1, names, fetched, 2, NULL, 0, NULL, &t.err), TN_DATA_LOSS);
    CHECK_NULL(fetched[0]);
    CHECK_NULL(fetched[1]);
    tn_tensor_unref(one);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 4 }), "good"), -4, 0);
    ts_fini(&t);
  }
}

static void session_run__any_output_can_be_fed(void) /* S-RUN-10, S-RUN-11 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }, { "two", 10 }), "twice"), 30, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "sum", 7 }), "twice"), 14, 0); /* x and y come before the fed value */
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "two", 5 }), "two"), 5, 0);
    CHECK_DOUBLE(ts_run1(&t, NULL, "two"), 2, 0);
    ts_fini(&t);
  }
}

static void session_run__a_target_runs_though_its_output_is_fed(void) /* S-RUN-12 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    tn_output in = ts_open_watched(&t, level);
    ts_op1(t.graph, "Neg", "below", ts_watch_op(t.graph, "TestCount", "c", in, 1));
    ts_start(&t);
    REQUIRE_OK(ts_run(&t, FEEDS({ "c", 9 }, { "in", 1 }), NAMES("below"), &fetched, NAMES("c")), &t.err);
    CHECK_DOUBLE(ts_float(fetched), -9, 0);
    CHECK_INT(ts_counted(1), 1);
    tn_tensor_unref(fetched);
    CHECK_INT(ts_run(&t, FEEDS({ "c", 9 }), NAMES("below"), &fetched, NAMES("c")), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "in");
    CHECK_OK(ts_run(&t, FEEDS({ "c", 9 }), NAMES("below"), &fetched, NULL), &t.err);
    CHECK_INT(ts_counted(1), 1);
    tn_tensor_unref(fetched);
    ts_fini(&t);
  }
}

static void session_run__fed_and_fetched_gives_a_copy_of_the_feed(void) /* S-RUN-13, S-RUN-27, S-RUN-28 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_tensor *fed = ts_vector(3, (float[]){ 1, 2, 3 }), *fetched[2] = { NULL, NULL };
    const char *feed = "x", *names[] = { "x", "x:0" };
    REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &fed, 1, names, fetched, 2, NULL, 0, NULL, &t.err), &t.err);
    for (int i = 0; i < 2; i++) {
      CHECK_BYTES(tn_tensor_data(fetched[i]), tn_tensor_data(fed), 12);
      CHECK(tn_tensor_data(fetched[i]) != tn_tensor_data(fed));
      CHECK(tn_tensor_is_exclusive(fetched[i]));
    }
    CHECK(tn_tensor_data(fetched[0]) != tn_tensor_data(fetched[1]));
    CHECK(tn_tensor_is_exclusive(fed)); /* no other reference is left */
    for (int i = 0; i < 2; i++) tn_tensor_unref(fetched[i]);
    tn_tensor_unref(fed);
    ts_fini(&t);
  }
}

static void session_run__unneeded_feed_is_ignored_but_checked(void) /* S-RUN-14, S-RUN-15 */
{
  ts t;
  tn_tensor *fetched = NULL, *wrong = NULL;
  int32_t seven = 7;
  const char *z = "z", *two = "two";
  ts_open(&t, 1);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "z", 1 }), "two"), 2, 0);
  CHECK_INT(ts_run(&t, FEEDS({ "absent", 1 }), NAMES("two"), &fetched, NULL), TN_NOT_FOUND);
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &seven, sizeof(seven), &wrong, &t.err), &t.err);
  CHECK_INT(tn_session_run(t.session, NULL, &z, &wrong, 1, &two, &fetched, 1, NULL, 0, NULL, &t.err),
            TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "z");
  CHECK_CONTAINS(tn_error_message(&t.err), "int32");
  CHECK_CONTAINS(tn_error_message(&t.err), "float32");
  tn_tensor_unref(wrong);
  ts_fini(&t);
}

/* A session on -p, where p is a placeholder with this declared shape; rank -1: any shape. */
static void open_declared(ts *t, int level, int strict, const int64_t *dims, int32_t rank)
{
  ts_init(t, level);
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(t->graph, "Placeholder", "p", 0);
  tn_operation_set_type(b, "dtype", TN_FLOAT);
  tn_operation_set_shape(b, "shape", dims, rank);
  REQUIRE_OK(tn_operation_finish(b, &op, &t->err), &t->err);
  ts_op1(t->graph, "Neg", "neg", (tn_output){ op, 0 });
  CHECK_OK(tn_session_options_set_bool(t->options, "strict_shapes", (tn_bool)strict, &t->err), &t->err);
  ts_start(t);
}

/* Feeds a tensor of this shape by name and through a callable; returns their common result. */
static tn_status feed_declared(ts *t, const int64_t *dims, int32_t rank)
{
  tn_tensor *fed = ts_filled(rank, dims, 1), *fetched = NULL;
  const char *p = "p", *neg = "neg";
  tn_callable callable;
  CHECK_OK(tn_session_make_callable(t->session, NULL, &p, 1, &neg, 1, NULL, 0, &callable, &t->err), &t->err);
  tn_status prepared = tn_session_run_callable(t->session, callable, &fed, 1, &fetched, 1, NULL, &t->err);
  tn_tensor_unref(fetched);
  tn_status status = tn_session_run(t->session, NULL, &p, &fed, 1, &neg, &fetched, 1, NULL, 0, NULL, &t->err);
  CHECK_INT(prepared, status);
  if (status == TN_OK) CHECK_INT(tn_tensor_elements(fetched), tn_tensor_elements(fed));
  tn_tensor_unref(fetched);
  tn_tensor_unref(fed);
  return status;
}

static void session_run__fed_shape_is_checked_when_strict(void) /* S-RUN-16 */
{
  static const int64_t any[3] = { -1, -1, -1 }, batch[3] = { -1, 2, 3 }, whole[1] = { 2 };
  FOR_LEVELS(level)
    for (int strict = 0; strict < 2; strict++) {
      const tn_status refused = strict ? TN_INVALID_ARGUMENT : TN_OK;
      ts t;
      open_declared(&t, level, strict, whole, 1);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 2 }, 1), TN_OK);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 3 }, 1), refused);
      ts_fini(&t);
      open_declared(&t, level, strict, batch, 3);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 1, 2, 3 }, 3), TN_OK);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 5, 2, 3 }, 3), TN_OK);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 5, 2, 4 }, 3), refused);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 2, 3 }, 2), refused);
      if (strict) CHECK_CONTAINS(tn_error_message(&t.err), "feed 'p:0' has shape [2,3], its declared shape is [?,2,3]");
      if (strict) CHECK_CONTAINS(tn_error_message(&t.err), "strict_shapes");
      ts_fini(&t);
      open_declared(&t, level, strict, any, 3);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 5, 0, 4 }, 3), TN_OK);
      CHECK_INT(feed_declared(&t, NULL, 0), refused);
      ts_fini(&t);
      open_declared(&t, level, strict, NULL, -1);
      CHECK_INT(feed_declared(&t, (int64_t[]){ 5, 2 }, 2), TN_OK);
      CHECK_INT(feed_declared(&t, NULL, 0), TN_OK);
      ts_fini(&t);
    }
}

/* If a node fails, a feed whose shape differs from the declared one may be the cause, so the error
 * names it as well. */
static void session_run__a_failure_names_feeds_of_other_shapes(void) /* S-RUN-16, S-RUN-17 */
{
  static const char text[] =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape {"
      " dim { size: -1 } dim { size: 3 } } } } }"
      "node { name: 'w' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "node { name: 'y' op: 'MatMul' input: 'x' input: 'w' attr { key: 'T' value { type: DT_FLOAT } } }";
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  const char *feeds[] = { "w", "x" }, *fetch = "y";
  FOR_LEVELS(level)
  {
    ts t;
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    tn_tensor *in[] = { ts_filled(2, (int64_t[]){ 3, 2 }, 1), ts_filled(3, (int64_t[]){ 1, 2, 3 }, 1) }, *out = NULL;
    CHECK_INT(tn_session_run(t.session, NULL, feeds, in, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_STR(tn_error_node(&t.err), "y");
    REQUIRE(tn_error_n_causes(&t.err) == 1);
    CHECK_STR(tn_error_cause(&t.err, 0), "feed 'x:0' has shape [1,2,3], its declared shape is [?,3]");
    tn_tensor_unref(in[1]);
    in[1] = ts_filled(2, (int64_t[]){ 2, 3 }, 1);
    CHECK_OK(tn_session_run(t.session, NULL, feeds, in, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err), &t.err);
    tn_tensor_unref(out);
    tn_tensor_unref(in[0]);
    in[0] = ts_filled(2, (int64_t[]){ 4, 2 }, 1); /* both feeds match their declarations, but not each other */
    CHECK_INT(tn_session_run(t.session, NULL, feeds, in, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_INT(tn_error_n_causes(&t.err), 0);
    tn_tensor_unref(in[0]);
    tn_tensor_unref(in[1]);
    ts_fini(&t);
  }
}

static void session_run__shapes_that_do_not_fit_are_named(void) /* S-RUN-17, S-CAN-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open(&t, level);
    tn_tensor *values[] = { ts_filled(2, (int64_t[]){ 2, 3 }, 1), ts_filled(2, (int64_t[]){ 4, 5 }, 1) },
              *fetched = NULL;
    const char *feeds[] = { "x", "y" }, *name = "twice";
    CHECK_INT(tn_session_run(t.session, NULL, feeds, values, 2, &name, &fetched, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "[2,3]");
    CHECK_CONTAINS(tn_error_message(&t.err), "[4,5]");
    CHECK_CONTAINS(tn_error_message(&t.err), "sum");
    CHECK_STR(tn_error_node(&t.err), "sum");
    CHECK_NULL(fetched);
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "twice"), 6, 0);
    ts_fini(&t);
  }
}

/* The graph declares the shape of x and the value of k, so the Reshape looks redundant. The feeds
 * differ. */
static void session_run__feeds_may_have_other_shapes(void) /* S-RUN-10, S-RUN-16 */
{
  static const char text[] =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
      "shape {"
      " dim { size: 2 } dim { size: 3 } } } } }"
      "node { name: 'k' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor {"
      " dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 2 int_val: 3 } } } }"
      "node { name: 'r' op: 'Reshape' input: 'x' input: 'k' attr { key: 'T' value { type: DT_FLOAT } } }"
      "node { name: 'y' op: 'Neg' input: 'r' attr { key: 'T' value { type: DT_FLOAT } } }";
  static const int64_t shapes[][2] = { { 2, 3 }, { 3, 2 }, { 6, 1 }, { 2, 3 } };
  static const float six[6] = { 1, 2, 3, 4, 5, 6 };
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  const char *feeds[] = { "x", "k" }, *fetch = "y";
  FOR_LEVELS(level)
  {
    ts t;
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    for (int i = 0; i < 8; i++) {
      tn_tensor *in[2], *out = NULL;
      const int32_t wanted[2] = { i < 4 ? 2 : 3, i < 4 ? 3 : 2 }, n = 2;
      const int64_t two = n;
      CHECK_OK(tn_tensor_from_data(TN_FLOAT, shapes[i % 4], 2, six, sizeof six, &in[0], &t.err), &t.err);
      CHECK_OK(tn_tensor_from_data(TN_INT32, &two, 1, wanted, sizeof wanted, &in[1], &t.err), &t.err);
      CHECK_OK(tn_session_run(t.session, NULL, feeds, in, i < 4 ? 1 : 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
               &t.err);
      CHECK_INT(out == NULL ? -1 : tn_tensor_dims(out)[0], wanted[0]);
      CHECK_DOUBLE(ts_float(out), -1, 0);
      tn_tensor_unref(out);
      tn_tensor_unref(in[0]);
      tn_tensor_unref(in[1]);
    }
    ts_fini(&t);
  }
}

/* According to the graph the range has three elements, because its end is a known float, and the
 * slice is all of it. A feed makes it five. */
static void session_run__a_fed_float_may_decide_a_size(void) /* S-RUN-11 */
{
#define NUMBER(name, value)                                                                           \
  "node { name: '" name                                                                               \
  "' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor {" \
  " dtype: DT_FLOAT tensor_shape { } float_val: " value " } } } }"
#define ONE_INT(name, value)                                                                          \
  "node { name: '" name                                                                               \
  "' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor {" \
  " dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: " value " } } } }"
  static const char text[] = NUMBER("from", "0") NUMBER("to", "3") NUMBER("by", "1") ONE_INT("begin", "0")
      ONE_INT("size", "3") "node { name: 'same' op: 'Identity' input: 'to' attr { key: 'T' value { type: DT_FLOAT } } }"
                           "node { name: 'r' op: 'Range' input: 'from' input: 'same' input: 'by' attr { key: 'Tidx' "
                           "value { type: DT_FLOAT } } }"
                           "node { name: 's' op: 'Slice' input: 'r' input: 'begin' input: 'size' attr { key: 'T' value "
                           "{ type: DT_FLOAT } }"
                           " attr { key: 'Index' value { type: DT_INT32 } } }"
                           "node { name: 'y' op: 'Neg' input: 's' attr { key: 'T' value { type: DT_FLOAT } } }";
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  static const char *const fed[] = { "to", "same" };
  FOR_LEVELS(level)
  {
    ts t;
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    for (int i = 0; i < 3; i++) {
      tn_tensor *out = NULL;
      CHECK_OK(ts_run(&t, i == 0 ? NULL : FEEDS({ fed[i - 1], 5 }), NAMES("y"), &out, NULL), &t.err);
      CHECK_INT(out == NULL ? -1 : tn_tensor_elements(out), 3);
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

/* A node that depends on a placeholder only by a control edge does not wait if the placeholder is
 * fed. */
static void session_run__a_fed_placeholder_delays_nothing(void) /* S-RUN-11, S-RUN-19 */
{
  static const char text[] =
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "node { name: 'd' op: 'Neg' input: 'x' input: '^y' attr { key: 'T' value { type: DT_FLOAT } } }";
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  FOR_LEVELS(level)
  {
    ts t;
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &options, &t.err), &t.err);
    ts_start(&t);
    CHECK(ts_run1(&t, FEEDS({ "x", 1 }, { "y", 2 }), "d") == -1);
    tn_tensor *fetched;
    CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }), NAMES("d"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_STR(tn_error_node(&t.err), "y");
    CHECK_INT(ts_run(&t, FEEDS({ "y", 1 }), NULL, NULL, NAMES("y")), TN_INVALID_ARGUMENT); /* S-RUN-12 */
    ts_fini(&t);
  }
}

static void session_run__a_placeholder_that_is_not_fed_has_a_shape(void) /* S-RUN-19 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    open_declared(&t, level, 0, (const int64_t[]){ -1, 28, 28 }, 3);
    CHECK_INT(ts_run(&t, NULL, NAMES("neg"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_STR(tn_error_message(&t.err),
              "placeholder 'p' of type float32 and shape [?,28,28] is needed and was not fed");
    CHECK_STR(tn_error_node(&t.err), "p");
    ts_fini(&t);
    open_declared(&t, level, 0, NULL, -1);
    CHECK_INT(ts_run(&t, NULL, NAMES("neg"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_STR(tn_error_message(&t.err), "placeholder 'p' of type float32 is needed and was not fed");
    ts_fini(&t);
  }
}

static void session_run__placeholder_must_be_fed(void) /* S-RUN-19 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    ts_open(&t, level);
    CHECK_INT(ts_run(&t, FEEDS({ "x", 1 }), NAMES("sum"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'y'");
    CHECK_CONTAINS(tn_error_message(&t.err), "float32");
    CHECK_INT(ts_run(&t, NULL, NAMES("x"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'x'");
    CHECK_INT(ts_run(&t, NULL, NULL, NULL, NAMES("x")), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'x'");
    ts_fini(&t);
  }
}

static void session_run__placeholder_with_default(void) /* S-RUN-20 */
{
  ts t;
  if (!tn_op_schema_find("PlaceholderWithDefault")) TAP_SKIP("PlaceholderWithDefault is not registered yet");
  ts_init(&t, 1);
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(t.graph, "PlaceholderWithDefault", "p", 0);
  tn_operation_add_input(b, ts_const(t.graph, "default", 6));
  tn_operation_set_shape(b, "shape", NULL, 0);
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  ts_op1(t.graph, "Neg", "neg", (tn_output){ op, 0 });
  ts_start(&t);
  CHECK_DOUBLE(ts_run1(&t, NULL, "neg"), -6, 0);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "p", 1 }), "neg"), -1, 0);
  ts_fini(&t);
}

/* Effects before the failure persist: here next to an assertion, in either node order. */
static void session_run__a_failed_one_is_not_undone(void) /* S-RUN-25, S-RUN-24 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, START SCALAR_VARIABLE("") TRUTH("no", "false", "")
            NODE("claim", "Assert", "input: 'no' input: 'x' input: '^add'", LIST("T", "type: DT_FLOAT"))
            NODE("beyond", "AssignAddVariableOp", "input: 'v' input: 'x' input: '^claim'", DT));
    CHECK_INT(bk_target(t.session, "set", 1), TN_OK);
    for (int i = 1; i <= 3; i++) {
      bk_step s = { .session = t.session, .target = "beyond", .x = 10 };
      CHECK_STATUS(bk_run(&s), TN_INVALID_ARGUMENT, &s.err);
      CHECK_STR(tn_error_node(&s.err), "claim");
      bk_done(&s);
      CHECK_DOUBLE(bk_fetch(t.session, "read"), 1 + 10 * i, 0); /* once per step, not twice */
    }
    vk_fini(&t);
  }
}

/* --- which nodes run
 * ---------------------------------------------------------------------------------------------- */

static void session_run__only_what_is_needed_runs(void) /* S-RUN-21 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_output in = ts_open_watched(&t, level);
    ts_op1(t.graph, "Neg", "wanted", ts_watch_op(t.graph, "TestCount", "needed", in, 1));
    ts_watch_op(t.graph, "TestCount", "beside", in, 2);
    ts_watch_op(t.graph, "TestFail", "fails", in, TN_INTERNAL);
    ts_test_op(t.graph, "TestEffect", "effect", NULL, 3, NULL, 0);
    ts_start(&t);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "wanted"), -2, 0);
    CHECK_INT(ts_counted(1), 1);
    CHECK_INT(ts_counted(2), 0);
    CHECK_INT(ts_counted(3), 0);
    ts_fini(&t);
  }
}

static void session_run__control_inputs_order(void) /* S-EXE-01, S-EXE-02, S-EXE-03 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_output in = ts_open_watched(&t, level);
    tn_operation *third = ts_test_op(t.graph, "TestEffect", "c3", NULL, 3, NULL, 0);
    tn_operation *first = ts_test_op(t.graph, "TestEffect", "c1", NULL, 1, &third, 1);
    tn_operation *both[] = { first, third };
    tn_operation *nothing = ts_test_op(t.graph, "TestNothing", "group", NULL, 0, both, 2);
    tn_operation *last = ts_test_op(t.graph, "TestEffect", "c2", NULL, 2, &nothing, 1);
    ts_test_op(t.graph, "TestCount", "count", &in, 5, &last, 1);
    ts_start(&t);
    for (int round = 0; round < 2; round++) {
      ts_watch_reset();
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 2 }), "count"), 2, 0);
      CHECK_INT(atomic_load(&ts_watched.n_log), 3);
      CHECK_INT(atomic_load(&ts_watched.log[0]), 3);
      CHECK_INT(atomic_load(&ts_watched.log[1]), 1);
      CHECK_INT(atomic_load(&ts_watched.log[2]), 2);
    }
    ts_fini(&t);
  }
}

static void session_run__direct_has_a_fixed_order(void) /* S-EXE-04 */
{
  ts t;
  if (strcmp(ts_runtime_name(), "direct") != 0) TAP_SKIP("only the direct runtime guarantees an order");
  ts_open_watched(&t, 1);
  const char *targets[21] = { NULL };
  char names[20][8];
  for (int i = 0; i < 20; i++) {
    snprintf(names[i], sizeof(names[i]), "e%d", i);
    ts_test_op(t.graph, "TestEffect", names[i], NULL, i, NULL, 0);
    targets[i] = names[i];
  }
  ts_start(&t);
  int first[20] = { 0 };
  for (int round = 0; round < 5; round++) {
    ts_watch_reset();
    CHECK_OK(ts_run(&t, NULL, NULL, NULL, targets), &t.err);
    CHECK_INT(atomic_load(&ts_watched.n_log), 20);
    for (int i = 0; i < 20; i++) {
      if (round == 0)
        first[i] = atomic_load(&ts_watched.log[i]);
      else
        CHECK_INT(atomic_load(&ts_watched.log[i]), first[i]);
    }
  }
  ts_fini(&t);
}

static void session_run__stateful_ops_are_not_folded_or_merged(void) /* S-EXE-21 */
{
  FOR_LEVELS(level)
  {
    ts t;
    ts_open_watched(&t, level);
    tn_output one = ts_const(t.graph, "one", 1);
    tn_output a = ts_watch_op(t.graph, "TestCount", "a", one, 1), b = ts_watch_op(t.graph, "TestCount", "b", one, 1);
    tn_output c = ts_watch_op(t.graph, "TestRandom", "c", one, 2), d = ts_watch_op(t.graph, "TestRandom", "d", one, 2);
    ts_op2(t.graph, "AddV2", "all", ts_op2(t.graph, "AddV2", "ab", a, b), ts_op2(t.graph, "AddV2", "cd", c, d));
    ts_start(&t);
    for (int run = 1; run <= 3; run++) {
      CHECK_DOUBLE(ts_run1(&t, NULL, "all"), 4, 0);
      CHECK_INT(ts_counted(1), 2 * run);
      CHECK_INT(ts_counted(2), 2 * run);
    }
    ts_fini(&t);
  }
}

static void session_run__level_0_runs_the_graph_unchanged(void) /* S-CFG-21 */
{
  ts t;
  ts_open_watched(&t, 0);
  tn_output one = ts_const(t.graph, "one", 1);
  ts_op2(t.graph, "AddV2", "all", ts_watch_op(t.graph, "TestPlain", "a", one, 1),
         ts_watch_op(t.graph, "TestPlain", "b", one, 1));
  ts_start(&t);
  for (int run = 1; run <= 3; run++) {
    CHECK_DOUBLE(ts_run1(&t, NULL, "all"), 2, 0);
    CHECK_INT(ts_counted(1), 2 * run);
  }
  ts_fini(&t);
}

static void session_run__stateful_kernels_stay(void) /* S-EXE-20 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_output in = ts_open_watched(&t, level);
    ts_watch_op(t.graph, "TestCount", "c", in, 1);
    ts_start(&t);
    for (int i = 0; i < 5; i++) CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", (float)i }), "c"), i, 0);
    CHECK_INT(atomic_load(&ts_watched.created[1]), 1);
    CHECK_INT(atomic_load(&ts_watched.destroyed[1]), 0);
    ts_fini(&t);
    CHECK_INT(atomic_load(&ts_watched.destroyed[1]), 1);
  }
}

/* The state of a random-number kernel belongs to its node, whatever else is fetched with it. */
static void session_run__stateful_kernels_stay_for_all_signatures(void) /* S-EXE-20 */
{
  FOR_LEVELS(level)
  {
    ts t;
    float values[6];
    vk_open(&t, level, INTS("shape", D(1), "int_val: 1")
            NODE("r", "RandomUniform", "input: 'shape'", TYPE("dtype", "DT_FLOAT") TYPE("T", "DT_INT32") INT("seed", 5))
            NODE("same", "Identity", "input: 'r'", F) NODE("neg", "Neg", "input: 'r'", F));
    static const char *const fetches[] = { "r", "neg", "same" };
    for (int i = 0; i < 6; i++) {
      values[i] = ts_run1(&t, NULL, fetches[i % 3]);
      if (i % 3 == 1) values[i] = -values[i];
      for (int k = 0; k < i; k++) CHECK_MSG(values[i] != values[k], "step %d gives the same value as step %d", i, k);
    }
    vk_fini(&t);
  }
}

static void session_run__kernels_refuse_when_compiled(void) /* S-CAN-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    tn_output in = ts_open_watched(&t, level);
    ts_watch_op(t.graph, "TestRefuse", "picky", ts_watch_op(t.graph, "TestCount", "c", in, 1), 0);
    ts_start(&t);
    CHECK_INT(ts_run(&t, FEEDS({ "in", 1 }), NAMES("picky"), &fetched, NULL), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "refused by its kernel");
    CHECK_CONTAINS(tn_error_message(&t.err), "picky");
    CHECK_INT(ts_counted(1), 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "in", 1 }), "c"), 1, 0);
    ts_fini(&t);
  }
}

static void session_run__output_never_set_is_internal(void) /* S-RUN-26 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *fetched;
    tn_output in = ts_open_watched(&t, level);
    ts_op1(t.graph, "Neg", "below", ts_watch_op(t.graph, "TestLazy", "lazy", in, 0));
    ts_start(&t);
    CHECK_INT(ts_run(&t, FEEDS({ "in", 1 }), NAMES("lazy"), &fetched, NULL), TN_INTERNAL);
    CHECK_CONTAINS(tn_error_message(&t.err), "lazy");
    CHECK_INT(ts_run(&t, FEEDS({ "in", 1 }), NAMES("below"), &fetched, NULL), TN_INTERNAL);
    ts_fini(&t);
  }
}

static void session_run__shapes_may_depend_on_data(void) /* the plan's segments */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_output x = ts_open_watched(&t, level), n = ts_placeholder(t.graph, "n", TN_INT32);
    tn_output head = ts_op2(t.graph, "TestHead", "head", ts_op1(t.graph, "Neg", "neg", x), n);
    ts_op2(t.graph, "AddV2", "out", ts_op2(t.graph, "Mul", "square", head, head), head);
    ts_start(&t);
    const char *feeds[] = { "in", "n" }, *fetch = "out";
    for (int32_t k = 0; k <= 4; k += 2) {
      tn_tensor *values[] = { ts_vector(4, (float[]){ 1, 2, 3, 4 }), NULL }, *fetched = NULL;
      REQUIRE_OK(tn_tensor_from_data(TN_INT32, NULL, 0, &k, sizeof(k), &values[1], &t.err), &t.err);
      REQUIRE_OK(tn_session_run(t.session, NULL, feeds, values, 2, &fetch, &fetched, 1, NULL, 0, NULL, &t.err), &t.err);
      CHECK_INT(tn_tensor_elements(fetched), k);
      for (int i = 0; i < k; i++)
        CHECK_DOUBLE(((const float *)tn_tensor_data(fetched))[i], (i + 1.0) * (i + 1) - (i + 1), 0);
      tn_tensor_unref(fetched);
      tn_tensor_unref(values[0]);
      tn_tensor_unref(values[1]);
    }
    ts_fini(&t);
  }
}

/* A file may contain cycles through unregistered ops: such a signature cannot be run. */
static void session_run__a_cycle_through_an_unknown_op(void) /* S-GRA-06 */
{
  FOR_LEVELS(level) {
    ts t;
    ts_bytes def = { .size = 0 };
    tn_tensor *fetched;
    ts_init(&t, level);
    ts_node(&def, "Neg", "n", NAMES("odd"), "T", TN_FLOAT);
    ts_node(&def, "Odd", "odd", NAMES("n"), NULL, 0);
    REQUIRE_OK(tn_graph_import(t.graph, def.data, def.size, NULL, &t.err), &t.err);
    ts_start(&t);
    CHECK_STATUS(ts_run(&t, NULL, NAMES("odd"), &fetched, NULL), TN_NOT_FOUND, &t.err);
    CHECK_STATUS(ts_run(&t, NULL, NAMES("n"), &fetched, NULL), TN_NOT_FOUND, &t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "odd", 2 }), "n"), -2, 0);
    ts_fini(&t);
  }
}

/* A feed for an unknown op has the type that its readers expect, and they must agree. */
static void session_run__types_of_feeds_for_unknown_ops(void) /* S-RUN-15 */
{
  FOR_LEVELS(level) {
    ts t;
    ts_bytes def = { .size = 0 };
    tn_tensor *out[2] = { NULL, NULL }, *one = ts_scalar(1);
    const char *feed = "odd", *both[] = { "n", "text" };
    ts_init(&t, level);
    ts_node(&def, "Odd", "odd", NULL, NULL, 0);
    ts_node(&def, "Neg", "n", NAMES("odd"), "T", TN_FLOAT);
    ts_node(&def, "Add", "text", NAMES("odd", "odd"), "T", TN_STRING);
    ts_node(&def, "Identity", "same", NAMES("odd"), "T", TN_STRING);
    REQUIRE_OK(tn_graph_import(t.graph, def.data, def.size, NULL, &t.err), &t.err);
    ts_start(&t);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "odd", 2 }), "n"), -2, 0);
    CHECK_STATUS(ts_run(&t, FEEDS({ "odd", 2 }), NAMES("text"), out, NULL), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(ts_run(&t, FEEDS({ "odd", 2 }), NAMES("same"), out, NULL), TN_INVALID_ARGUMENT, &t.err);
    CHECK_STATUS(tn_session_run(t.session, NULL, &feed, &one, 1, both, out, 2, NULL, 0, NULL, &t.err),
                 TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "odd");
    tn_tensor_unref(one);
    ts_fini(&t);
  }
}

TAP_MAIN(
    TAP_TEST(session_run__gives_fetches_in_the_order_asked),
    TAP_TEST(session_run__order_of_names_has_no_meaning),
    TAP_TEST(session_run__same_fetch_twice_runs_once),
    TAP_TEST(session_run__an_empty_call_is_refused),
    TAP_TEST(session_run__targets_only),
    TAP_TEST(session_run__fetches_need_a_place),
    TAP_TEST(session_run__a_failed_one_outputs_nothing),
    TAP_TEST(session_run__any_output_can_be_fed),
    TAP_TEST(session_run__a_target_runs_though_its_output_is_fed),
    TAP_TEST(session_run__fed_and_fetched_gives_a_copy_of_the_feed),
    TAP_TEST(session_run__unneeded_feed_is_ignored_but_checked),
    TAP_TEST(session_run__fed_shape_is_checked_when_strict),
    TAP_TEST(session_run__a_failure_names_feeds_of_other_shapes),
    TAP_TEST(session_run__a_placeholder_that_is_not_fed_has_a_shape),
    TAP_TEST(session_run__shapes_that_do_not_fit_are_named),
    TAP_TEST(session_run__feeds_may_have_other_shapes),
         TAP_TEST(session_run__a_fed_float_may_decide_a_size),
    TAP_TEST(session_run__a_fed_placeholder_delays_nothing),
    TAP_TEST(session_run__placeholder_must_be_fed),
    TAP_TEST(session_run__placeholder_with_default),
    TAP_TEST(session_run__a_failed_one_is_not_undone),
    TAP_TEST(session_run__only_what_is_needed_runs),
    TAP_TEST(session_run__control_inputs_order),
    TAP_TEST(session_run__direct_has_a_fixed_order),
    TAP_TEST(session_run__stateful_ops_are_not_folded_or_merged),
    TAP_TEST(session_run__level_0_runs_the_graph_unchanged),
    TAP_TEST(session_run__stateful_kernels_stay),
    TAP_TEST(session_run__stateful_kernels_stay_for_all_signatures),
    TAP_TEST(session_run__kernels_refuse_when_compiled),
    TAP_TEST(session_run__output_never_set_is_internal),
    TAP_TEST(session_run__shapes_may_depend_on_data),
    TAP_TEST(session_run__a_cycle_through_an_unknown_op),
    TAP_TEST(session_run__types_of_feeds_for_unknown_ops))
