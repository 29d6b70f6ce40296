/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops exactly as TensorFlow writes them, and graphs that contain only a part of one. */
#include "conformance/support/oom.h"
#include "conformance/support/op_kit.h"
#include "conformance/support/partial_kit.h"

#define BOOL_CONST(name, value) TENSOR(name, "DT_BOOL", "", "bool_val: " value)
#define FLOAT_CONST(name, value, inputs)                                                            \
  NODE(name, "Const", inputs, TYPE("dtype", "DT_FLOAT") "attr { key: 'value' value { tensor { dtype: DT_FLOAT " \
       "tensor_shape { } float_val: " value " } } }")
#define IN(x) "input: '" x "' "
#define FRAME(name) "attr { key: 'frame_name' value { s: '" name "' } }"
#define CONSTANT "attr { key: 'is_constant' value { b: true } }"
#define N2 INT("N", 2)

/* x or -x, selected by p; `dead` is on the side p = true. */
#define BRANCH                                                                                          \
  ANY("x", "DT_FLOAT") ANY("p", "DT_BOOL") NODE("s", "Switch", IN("x") IN("p"), F)                      \
  NODE("off", "Neg", IN("s"), F) NODE("on", "Identity", IN("s:1"), F)                                   \
  NODE("m", "Merge", IN("off") IN("on"), F N2) NODE("y", "Identity", IN("m"), F)                        \
  NODE("watched", "TestCount", IN("on"), F INT("slot", 1)) NODE("late", "Neg", IN("x") IN("^on"), F)    \
  NODE("trigger", "ControlTrigger", IN("^on"), "") FLOAT_CONST("after", "5", IN("^trigger"))            \
  NODE("joined", "Identity", IN("after"), F)

/* Loop `name`: doubles x while it is less than `limit`. */
#define DOUBLING(name, from, limit)                                                        \
  NODE(name "/enter", "Enter", IN(from), F FRAME(name))                                    \
  NODE(name "/limit", "Enter", IN(limit), F FRAME(name) CONSTANT)                          \
      NODE(name "/merge", "Merge", IN(name "/enter") IN(name "/next"), F N2)               \
          NODE(name "/less", "Less", IN(name "/merge") IN(name "/limit"), F)               \
              NODE(name "/cond", "LoopCond", IN(name "/less"), "")                         \
                  NODE(name "/switch", "Switch", IN(name "/merge") IN(name "/cond"), F)    \
                      NODE(name "/body", "Identity", IN(name "/switch:1"), F)              \
                          NODE(name "/twice", "Add", IN(name "/body") IN(name "/body"), F) \
                              NODE(name "/next", "NextIteration", IN(name "/twice"), F)    \
                                  NODE(name "/exit", "Exit", IN(name "/switch"), F)

static void open_text(ts *t, int level, const char *text)
{
  tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  ts_start(t);
}

/* Fetches a float; x and the bool p are fed. */
static tn_status branch(ts *t, const char *fetch, float x, bool p, float *out)
{
  const char *feeds[] = { "x", "p" };
  uint8_t flag = p;
  tn_tensor *values[2] = { ts_scalar(x), NULL }, *fetched = NULL;
  REQUIRE_OK(tn_tensor_from_data(TN_BOOL, NULL, 0, &flag, 1, &values[1], &t->err), &t->err);
  tn_status st = tn_session_run(t->session, NULL, feeds, values, 2, &fetch, &fetched, 1, NULL, 0, NULL, &t->err);
  *out = st == TN_OK ? ts_float(fetched) : 0;
  tn_tensor_unref(fetched);
  tn_tensor_unref(values[0]);
  tn_tensor_unref(values[1]);
  return st;
}

static void control_flow__one_branch_is_taken(void) /* S-EXE-05, 07, 12 */
{
  FOR_LEVELS(level) {
    ts t;
    float y;
    open_text(&t, level, BRANCH);
    CHECK_OK(branch(&t, "y", 3, true, &y), &t.err);
    CHECK_DOUBLE(y, 3, 0);
    CHECK_OK(branch(&t, "y", 3, false, &y), &t.err);
    CHECK_DOUBLE(y, -3, 0);
    ts_watch_reset();
    CHECK_OK(branch(&t, "watched", 3, true, &y), &t.err);
    CHECK_INT(atomic_load(&ts_watched.count[1]), 1);
    ts_fini(&t);
  }
}

static void control_flow__dead_values_cannot_be_fetched(void) /* S-EXE-06, 09, 10 */
{
  FOR_LEVELS(level) {
    ts t;
    float y;
    open_text(&t, level, BRANCH);
    ts_watch_reset();
    CHECK_STATUS(branch(&t, "watched", 3, false, &y), TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "watched");
    CHECK_CONTAINS(tn_error_message(&t.err), "branch");
    CHECK_INT(atomic_load(&ts_watched.count[1]), 0);
    tn_error_clear(&t.err);
    CHECK_STATUS(branch(&t, "late", 3, false, &y), TN_INVALID_ARGUMENT, &t.err); /* dead because of its control input */
    tn_error_clear(&t.err);
    CHECK_OK(branch(&t, "late", 3, true, &y), &t.err);
    CHECK_DOUBLE(y, -3, 0);
    CHECK_OK(branch(&t, "joined", 3, false, &y), &t.err); /* a ControlTrigger runs nevertheless */
    CHECK_DOUBLE(y, 5, 0);
    ts_fini(&t);
  }
}

static void control_flow__a_fed_dead_value_lives(void) /* S-EXE-11 */
{
  ts t;
  open_text(&t, 1, BRANCH);
  CHECK_DOUBLE(ts_run1(&t, FEEDS({ "on", 7 }), "watched"), 7, 0);
  ts_fini(&t);
}

static void control_flow__loops_iterate(void) /* S-EXE-13, 16 */
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") DOUBLING("a", "x", "n"));
    for (int i = 0; i < 3; i++) {
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "n", 1000 }), "a/exit"), 1024, 0);
      CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 5 }, { "n", 1 }), "a/exit"), 5, 0); /* no iteration */
    }
    ts_fini(&t);
  }
}

/* Loops with the same name, in parallel or in sequence, are separate loops. */
static void control_flow__loops_may_have_one_name(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_text(
        &t, level,
        ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") ANY("m", "DT_FLOAT") NODE("a/enter", "Enter", IN("x"), F FRAME("w"))
            NODE("a/limit", "Enter", IN("n"), F FRAME("w") CONSTANT)
                NODE("a/merge", "Merge", IN("a/enter") IN("a/next"), F N2)
                    NODE("a/less", "Less", IN("a/merge") IN("a/limit"), F) NODE("a/cond", "LoopCond", IN("a/less"), "")
                        NODE("a/switch", "Switch", IN("a/merge") IN("a/cond"), F)
                            NODE("a/twice", "Add", IN("a/switch:1") IN("a/switch:1"), F)
                                NODE("a/next", "NextIteration", IN("a/twice"), F)
                                    NODE("a/exit", "Exit", IN("a/switch"), F) DOUBLING("w", "a/exit", "m"));
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "n", 10 }, { "m", 100 }), "w/exit"), 128, 0);
    ts_fini(&t);
  }
}

/* Outer: i from 0, while i < 4; the inner loop doubles its input until it is 10 or more. */
static void control_flow__loops_nest(void) /* S-EXE-14 */
{
  FOR_LEVELS(level) {
    ts t;
    open_text(
        &t, level,
        ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") NODE("enter", "Enter", IN("x"), F FRAME("out")) NODE(
            "limit", "Enter", IN("n"), F FRAME("out") CONSTANT) NODE("merge", "Merge", IN("enter") IN("next"), F N2)
            NODE("less", "Less", IN("merge") IN("limit"), F) NODE("cond", "LoopCond", IN("less"), "")
                NODE("switch", "Switch", IN("merge") IN("cond"), F) NODE("body", "Identity", IN("switch:1"), F)
                    NODE("inside", "Neg", IN("body"), F) NODE("again", "Neg", IN("inside"), F)
                        FLOAT_CONST("ten", "10", IN("^body")) DOUBLING("in", "again", "ten")
                            FLOAT_CONST("three", "3", IN("^body")) NODE("times", "Mul", IN("in/exit") IN("three"), F)
                                NODE("next", "NextIteration", IN("times"), F) NODE("exit", "Exit", IN("switch"), F));
    /* 1 -> 16 -> 48 -> 144 */
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "n", 100 }), "exit"), 144, 0);
    ts_fini(&t);
  }
}

/* Constants that depend on a branch exist only if it is taken, whatever the planner does with them. */
#define CONSTANTS                                                                                                      \
  ANY("x", "DT_FLOAT") ANY("p", "DT_BOOL") NODE("s", "Switch", IN("x") IN("p"), F)                                     \
  NODE("on", "Identity", IN("s:1"), F) NODE("off", "Identity", IN("s"), F) FLOAT_CONST("one", "1", IN("^on"))          \
  FLOAT_CONST("four", "4", IN("^off")) NODE("a", "Sqrt", IN("one"), F) NODE("b", "Sqrt", IN("four"), F)                \
  NODE("m", "Merge", IN("b") IN("a"), F N2) NODE("y", "Neg", IN("m"), F)                                               \
  NODE("same", "Mul", IN("x") IN("one"), F) NODE("other", "Mul", IN("x") IN("four"), F)                                \
  NODE("n", "Merge", IN("same") IN("other"), F N2) NODE("z", "Identity", IN("n"), F)                                   \
  NODE("gone", "Identity", IN("one"), F) NODE("late", "Neg", IN("x") IN("^gone"), F)

static void control_flow__constants_may_be_dead(void) /* S-EXE-06, S-CFG-21 */
{
  FOR_LEVELS(level) {
    ts t;
    float y;
    open_text(&t, level, CONSTANTS);
    CHECK_OK(branch(&t, "y", 3, true, &y), &t.err);
    CHECK_DOUBLE(y, -1, 0);
    CHECK_OK(branch(&t, "y", 3, false, &y), &t.err);
    CHECK_DOUBLE(y, -2, 0);
    CHECK_OK(branch(&t, "z", 3, true, &y), &t.err);
    CHECK_DOUBLE(y, 3, 0);
    CHECK_OK(branch(&t, "z", 3, false, &y), &t.err);
    CHECK_DOUBLE(y, 12, 0);
    CHECK_OK(branch(&t, "late", 3, true, &y), &t.err);
    CHECK_STATUS(branch(&t, "late", 3, false, &y), TN_INVALID_ARGUMENT, &t.err);
    ts_fini(&t);
  }
}

/* A Merge may be a loop's predicate; values left over after its last reader are not requested
 * again. */
static void control_flow__a_merge_may_be_a_predicate(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level,
              ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") NODE("enter", "Enter", IN("x"), F FRAME("w")) NODE(
                  "limit", "Enter", IN("n"), F FRAME("w") CONSTANT) NODE("merge", "Merge", IN("enter") IN("next"), F N2)
                  NODE("less", "Less", IN("merge") IN("limit"), F) NODE("side", "Switch", IN("less") IN("less"),
                                                                        TYPE("T", "DT_BOOL"))
                      NODE("either", "Merge", IN("side") IN("side:1"), TYPE("T", "DT_BOOL") N2)
                          NODE("cond", "LoopCond", IN("either"), "") NODE("switch", "Switch", IN("merge") IN("cond"), F)
                              NODE("body", "Identity", IN("switch:1"), F) NODE("twice", "Add", IN("body") IN("body"), F)
                                  NODE("next", "NextIteration", IN("twice"), F) NODE("exit", "Exit", IN("switch"), F));
    for (int i = 0; i < 2; i++) CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "n", 100 }), "exit"), 128, 0);
    ts_fini(&t);
  }
}

static void control_flow__a_target_may_be_in_a_loop(void) /* S-EXE-10 */
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") DOUBLING("a", "x", "n")
                         NODE("a/seen", "TestCount", IN("a/twice"), F INT("slot", 2)));
    ts_watch_reset();
    CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }, { "n", 8 }), NULL, NULL, NAMES("a/seen")), &t.err);
    CHECK_INT(ts_counted(2), 3);
    CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }, { "n", 8 }), NULL, NULL, NAMES("a/body")), &t.err);
    CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }, { "n", 8 }), NULL, NULL, NAMES("a/enter", "a/exit")), &t.err);
    ts_fini(&t);
  }
}

/* An Exit after a branch that was not taken. */
static void control_flow__an_exit_may_be_dead(void)
{
  FOR_LEVELS(level) {
    ts t;
    float y;
    open_text(&t, level,
              ANY("x", "DT_FLOAT") ANY("p", "DT_BOOL") NODE("e", "Enter", IN("x"), F FRAME("w"))
                  NODE("q", "Enter", IN("p"), TYPE("T", "DT_BOOL") FRAME("w") CONSTANT)
                      NODE("s", "Switch", IN("e") IN("q"), F) NODE("o", "Exit", IN("s:1"), F)
                          NODE("y", "Neg", IN("o"), F));
    CHECK_OK(branch(&t, "y", 3, true, &y), &t.err);
    CHECK_DOUBLE(y, -3, 0);
    CHECK_STATUS(branch(&t, "y", 3, false, &y), TN_INVALID_ARGUMENT, &t.err);
    ts_fini(&t);
  }
}

/* State does not change with the program's tensor: a variable assigned from a feed through a Merge
 * has its own copy. */
static void control_flow__feeds_are_not_kept(void) /* S-RUN-28 */
{
  FOR_LEVELS(level) {
    ts t;
    const char *feeds[] = { "x", "p" }, *targets[] = { "set" };
    const uint8_t yes = 1;
    float x = 3;
    tn_tensor *values[2];
    open_text(&t, level, BRANCH
              NODE("v", "VarHandleOp", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { } } }")
              NODE("plain", "Switch", IN("x") IN("p"), F) NODE("either", "Merge", IN("plain") IN("plain:1"), F N2)
              NODE("set", "AssignVariableOp", IN("v") IN("either"), TYPE("dtype", "DT_FLOAT"))
              NODE("get", "ReadVariableOp", IN("v"), TYPE("dtype", "DT_FLOAT")));
    REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, NULL, 0, &x, sizeof x, &values[0], &t.err), &t.err);
    REQUIRE_OK(tn_tensor_from_data(TN_BOOL, NULL, 0, &yes, 1, &values[1], &t.err), &t.err);
    CHECK_OK(tn_session_run(t.session, NULL, feeds, values, 2, NULL, NULL, 0, targets, 1, NULL, &t.err), &t.err);
    *(float *)tn_tensor_data(values[0]) = 77;
    CHECK_DOUBLE(ts_run1(&t, NULL, "get"), 3, 0);
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
    ts_fini(&t);
  }
}

/* ---- malformed loops ---- */

static void refused(const char *text, const char *fetch, tn_status status, const char *part)
{
  FOR_LEVELS(level) {
    ts t;
    tn_tensor *out = NULL;
    open_text(&t, level, text);
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 1 }), NAMES(fetch), &out, NULL), status, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), part);
    CHECK_NULL(out);
    ts_fini(&t);
  }
}

static void control_flow__half_a_loop_is_refused(void) /* S-EXE-17, 18 */
{
  refused(ANY("x", "DT_FLOAT") NODE("y", "Exit", IN("x"), F), "y", TN_INVALID_ARGUMENT, "no Enter leads to it");
  refused(ANY("x", "DT_FLOAT") NODE("y", "NextIteration", IN("x"), F), "y", TN_INVALID_ARGUMENT,
          "no Enter leads to it");
  refused(ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("w")) NODE("y", "Neg", IN("e"), F), "y",
          TN_INVALID_ARGUMENT, "inside a loop");
  refused(ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("w")), "e", TN_INVALID_ARGUMENT, "inside a loop");
  refused(ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("w")) NODE("y", "Add", IN("e") IN("x"), F)
          NODE("z", "Exit", IN("y"), F), "z", TN_INVALID_ARGUMENT, "'x:0' is fed but node 'y' reads it inside a loop");
  refused(FLOAT_CONST("c", "1", "") NODE("e", "Enter", IN("c"), F FRAME("w")) NODE("y", "Add", IN("e") IN("c"), F)
          NODE("x", "Exit", IN("y"), F) NODE("z", "Neg", IN("y"), F) NODE("w", "Exit", IN("z"), F), "w",
          TN_INVALID_ARGUMENT, "different frames");
  refused(ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("v")) NODE("f", "Enter", IN("x"), F FRAME("w"))
              NODE("y", "Add", IN("e") IN("f"), F) NODE("z", "Exit", IN("y"), F),
          "z", TN_INVALID_ARGUMENT, "different frames");
}

/* A constant before an Enter makes no difference, although it is also constant in the loop. */
static void control_flow__constants_of_a_loop_are_not_fetched(void) /* S-EXE-17, 18 */
{
#define ENTERED FLOAT_CONST("c", "3", "") ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("c"), F FRAME("w") CONSTANT)
  refused(ENTERED, "e", TN_INVALID_ARGUMENT, "inside a loop");
  refused(ENTERED NODE("y", "Neg", IN("e"), F), "y", TN_INVALID_ARGUMENT, "inside a loop");
  refused(ENTERED NODE("f", "Enter", IN("e"), F FRAME("v") CONSTANT), "f", TN_INVALID_ARGUMENT, "inside a loop");
  refused(ENTERED NODE("y", "Add", IN("e") IN("c"), F), "y", TN_INVALID_ARGUMENT, "different frames");
  refused(ENTERED NODE("f", "Enter", IN("c"), F FRAME("v") CONSTANT) NODE("y", "Add", IN("e") IN("f"), F), "y",
          TN_INVALID_ARGUMENT, "different frames");
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, ENTERED NODE("f", "Enter", IN("e"), F FRAME("v") CONSTANT) NODE("g", "Exit", IN("f"), F)
                         NODE("y", "Neg", IN("g"), F) NODE("z", "Exit", IN("y"), F));
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 2 }), "z"), -3, 0);
    ts_fini(&t);
  }
#undef ENTERED
}

static void control_flow__a_frame_without_a_loop_runs_once(void)
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("w")) NODE("y", "Neg", IN("e"), F)
                         NODE("z", "Exit", IN("y"), F));
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 2 }), "z"), -2, 0);
    ts_fini(&t);
  }
}

static void control_flow__a_loop_cannot_use_its_own_exit(void)
{
  refused(ANY("x", "DT_FLOAT") NODE("e", "Enter", IN("x"), F FRAME("w")) NODE("a", "Neg", IN("e"), F)
          NODE("out", "Exit", IN("a"), F) NODE("again", "Enter", IN("out"), F FRAME("w"))
          NODE("b", "Add", IN("a") IN("again"), F) NODE("z", "Exit", IN("b"), F), "z", TN_INVALID_ARGUMENT,
          "depends on an output of the loop");
}

static void control_flow__a_predicate_is_a_scalar(void)
{
  FOR_LEVELS(level) {
    ts t;
    const char *feed = "p", *fetch = "y";
    const uint8_t two[] = { 1, 1 };
    const int64_t n = 2;
    tn_tensor *p, *out = NULL;
    open_text(&t, level, TENSOR("c", "DT_FLOAT", "", "float_val: 1") ANY("p", "DT_BOOL")
                         NODE("s", "Switch", IN("c") IN("p"), F) NODE("y", "Neg", IN("s:1"), F));
    REQUIRE_OK(tn_tensor_from_data(TN_BOOL, &n, 1, two, 2, &p, &t.err), &t.err);
    CHECK_STATUS(tn_session_run(t.session, NULL, &feed, &p, 1, &fetch, &out, 1, NULL, 0, NULL, &t.err),
                 TN_INVALID_ARGUMENT, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "'p:0'");
    tn_tensor_unref(p);
    ts_fini(&t);
  }
}

static void control_flow__a_feed_inside_a_loop_is_refused(void)
{
  ts t;
  tn_tensor *out = NULL;
  open_text(&t, 1, ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") DOUBLING("a", "x", "n"));
  CHECK_STATUS(ts_run(&t, FEEDS({ "x", 1 }, { "n", 9 }, { "a/body", 1 }), NAMES("a/exit"), &out, NULL),
               TN_INVALID_ARGUMENT, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "loop");
  ts_fini(&t);
}

/* while x < limit: x += 1; each time the inner loop doubles 1 until it is c or more, and the result
 * is added. c enters through two Enters. */
#define FED_LOOPS                                                                                                     \
  ANY("x", "DT_FLOAT") FLOAT_CONST("limit", "10", "") FLOAT_CONST("c", "4", "")                                       \
  NODE("enter", "Enter", IN("x"), F FRAME("out")) NODE("limit_in", "Enter", IN("limit"), F FRAME("out") CONSTANT)      \
  NODE("c_in", "Enter", IN("c"), F FRAME("out") CONSTANT) NODE("merge", "Merge", IN("enter") IN("next"), F N2)         \
  NODE("less", "Less", IN("merge") IN("limit_in"), F) NODE("cond", "LoopCond", IN("less"), "")                        \
  NODE("switch", "Switch", IN("merge") IN("cond"), F) NODE("body", "Identity", IN("switch:1"), F)                     \
  FLOAT_CONST("one", "1", IN("^body")) DOUBLING("in", "one", "c_in")                                                  \
  NODE("sum", "Add", IN("body") IN("in/exit"), F) NODE("next", "NextIteration", IN("sum"), F)                         \
  NODE("exit", "Exit", IN("switch"), F)

static void control_flow__constants_of_loops_may_be_fed(void) /* S-RUN-11 */
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, FED_LOOPS);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }), "exit"), 12, 0); /* 4 + 4 + 4 */
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }, { "c", 7 }), "exit"), 16, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }, { "limit", 3 }), "exit"), 4, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }, { "c", 1 }, { "limit", 3 }), "exit"), 3, 0);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 0 }), "exit"), 12, 0);
    ts_fini(&t);
  }
}

static void control_flow__constants_of_loops_may_be_fed_in_parts(void) /* S-PR-02 */
{
  FOR_LEVELS(level) {
    ts t;
    open_text(&t, level, FED_LOOPS);
    tn_partial_run run = pk_begin(&t, NAMES("x", "c"), NAMES("exit"), NULL);
    CHECK_OK(pk_give(&t, run, FEEDS({ "c", 7 })), &t.err);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 0 }), "exit"), 16, 0);
    ts_fini(&t);
  }
}

static void control_flow__endless_loops_end_in_time(void) /* S-RO-08, S-CAN-06 */
{
  FOR_LEVELS(level) {
    ts t;
    const char *feeds[] = { "x", "n" }, *fetch = "a/exit";
    tn_tensor *values[] = { ts_scalar(0), ts_scalar(1) }, *out = NULL;
    tn_run_options options;
    tn_run_options_init(&options);
    options.timeout_ms = 20;
    open_text(&t, level, ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") DOUBLING("a", "x", "n")); /* twice 0 stays 0 */
    CHECK_STATUS(tn_session_run(t.session, &options, feeds, values, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
                 TN_DEADLINE_EXCEEDED, &t.err);
    tn_error_clear(&t.err);
    CHECK_DOUBLE(ts_run1(&t, FEEDS({ "x", 1 }, { "n", 3 }), "a/exit"), 4, 0); /* S-RO-07 */
    ts_fini(&t);
    tn_tensor_unref(values[0]);
    tn_tensor_unref(values[1]);
  }
}

/* ---- waiting ---- */

/* "get" waits until the later node "put" has run; nodes that depend on a trigger after it wait as
 * well. */
#define WAITS                                                                                             \
  NODE("q", "FIFOQueueV2", "", "attr { key: 'component_types' value { list { type: DT_FLOAT } } }")       \
  NODE("get", "QueueDequeueV2", IN("q"), "attr { key: 'component_types' value { list { type: DT_FLOAT } } }") \
  NODE("put", "QueueEnqueueV2", IN("q") IN("x"), "attr { key: 'Tcomponents' value { list { type: DT_FLOAT } } }")

static tn_operation *with_controls(ts *t, const char *op, const char *prefix, int number, tn_operation *a,
                                   tn_operation *b)
{
  char name[32];
  tn_operation *made;
  snprintf(name, sizeof name, "%s%d", prefix, number);
  tn_operation_builder *builder = tn_operation_begin(t->graph, op, name, 0);
  REQUIRE(builder != NULL);
  tn_operation_add_control_input(builder, a);
  if (b != NULL) tn_operation_add_control_input(builder, b);
  REQUIRE_OK(tn_operation_finish(builder, &made, &t->err), &t->err);
  return made;
}

/* A chain of triggers with a branch node between each two; "end" depends on all of them. */
static void open_chain(ts *t, int level, int n)
{
  const tn_import_options options = { .struct_size = sizeof options, .flags = TN_IMPORT_TEXT };
  const char *text = BRANCH WAITS;
  ts_init(t, level);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &options, &t->err), &t->err);
  tn_operation *on = tn_graph_find(t->graph, "on"), *last = tn_graph_find(t->graph, "get");
  for (int i = 0; i < n; i++) {
    last = with_controls(t, "ControlTrigger", "trigger", i, last, i % 2 ? last : on);
    last = with_controls(t, "NoOp", "between", i, last, on);
  }
  with_controls(t, "ControlTrigger", "end", 0, last, NULL);
  ts_start(t);
}

static tn_status chain_once(ts *t, bool p, int64_t timeout_ms, const char *second)
{
  const char *feeds[] = { "x", "p" }, *targets[] = { "end0", second };
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = timeout_ms;
  uint8_t flag = p;
  tn_tensor *values[2] = { ts_scalar(1), NULL };
  tn_error_clear(&t->err);
  REQUIRE_OK(tn_tensor_from_data(TN_BOOL, NULL, 0, &flag, 1, &values[1], &t->err), &t->err);
  tn_status st = tn_session_run(t->session, &options, feeds, values, 2, NULL, NULL, 0, targets, second != NULL ? 2 : 1,
                                NULL, &t->err);
  tn_tensor_unref(values[0]);
  tn_tensor_unref(values[1]);
  return st;
}

/* Each undecided node is evaluated once in a pass, however many nodes depend on it, and without
 * recursion. */
static void control_flow__long_chains_may_wait(void) /* S-EXE-10 */
{
  FOR_LEVELS(level) {
    ts t;
    open_chain(&t, level, 50000);
    CHECK_OK(chain_once(&t, true, 0, "put"), &t.err);
    CHECK_OK(chain_once(&t, false, 0, "put"), &t.err);
    CHECK_STATUS(chain_once(&t, true, 20, NULL), TN_DEADLINE_EXCEEDED, &t.err);
    CHECK_OK(chain_once(&t, true, 0, "put"), &t.err);
    ts_fini(&t);
  }
}

static tn_status loop_once(void *user)
{
  ts *t = user;
  const char *feeds[] = { "x", "n" }, *fetch = "a/exit";
  tn_tensor *values[2] = { NULL, NULL }, *out = NULL;
  const float numbers[] = { 1, 10 };
  tn_session *session = NULL;
  tn_error err = TN_ERROR_INIT;
  tn_status st = tn_session_create(t->options, &session, &err);
  if (st == TN_OK) st = tn_session_set_graph(session, t->graph, &err);
  for (int i = 0; st == TN_OK && i < 2; i++)
    st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &numbers[i], sizeof numbers[i], &values[i], &err);
  if (st == TN_OK) st = tn_session_run(session, NULL, feeds, values, 2, &fetch, &out, 1, NULL, 0, NULL, &err);
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 16, 0);
  tn_tensor_unref(out);
  tn_tensor_unref(values[0]);
  tn_tensor_unref(values[1]);
  tn_session_destroy(session);
  tn_error_clear(&err);
  return st;
}

static void control_flow__survives_lack_of_memory(void)
{
  ts t;
  open_text(&t, 1, ANY("x", "DT_FLOAT") ANY("n", "DT_FLOAT") DOUBLING("a", "x", "n"));
  tn_test_oom_sweep(loop_once, &t);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(control_flow__one_branch_is_taken), TAP_TEST(control_flow__dead_values_cannot_be_fetched),
         TAP_TEST(control_flow__a_fed_dead_value_lives), TAP_TEST(control_flow__loops_iterate),
         TAP_TEST(control_flow__loops_may_have_one_name), TAP_TEST(control_flow__loops_nest),
         TAP_TEST(control_flow__constants_may_be_dead), TAP_TEST(control_flow__a_merge_may_be_a_predicate),
         TAP_TEST(control_flow__a_target_may_be_in_a_loop), TAP_TEST(control_flow__an_exit_may_be_dead),
         TAP_TEST(control_flow__feeds_are_not_kept), TAP_TEST(control_flow__half_a_loop_is_refused),
         TAP_TEST(control_flow__a_frame_without_a_loop_runs_once),
         TAP_TEST(control_flow__constants_of_a_loop_are_not_fetched),
         TAP_TEST(control_flow__a_loop_cannot_use_its_own_exit), TAP_TEST(control_flow__a_predicate_is_a_scalar),
         TAP_TEST(control_flow__a_feed_inside_a_loop_is_refused), TAP_TEST(control_flow__endless_loops_end_in_time),
         TAP_TEST(control_flow__constants_of_loops_may_be_fed),
         TAP_TEST(control_flow__constants_of_loops_may_be_fed_in_parts), TAP_TEST(control_flow__long_chains_may_wait),
         TAP_TEST(control_flow__survives_lack_of_memory))
