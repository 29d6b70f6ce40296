/* SPDX-License-Identifier: Apache-2.0 */
/* Inlining of functions: results, order, and errors. */
#include "conformance/support/calls_kit.h"
#include <tenon/plan.h>

/* The plan report of a fetch, with some passes disabled. */
static tn_plan_report *report_of(ts *t, const char *text, const char *disabled, const char *fetch)
{
  static const char *const feed = "x";
  const tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
  tn_plan_report *r = NULL;
  ts_init(t, 1);
  REQUIRE_OK(tn_graph_import(t->graph, text, strlen(text), &import, &t->err), &t->err);
  REQUIRE_OK(tn_session_options_set_string(t->options, "disable_passes", disabled, &t->err), &t->err);
  ts_start(t);
  REQUIRE_OK(tn_session_plan_report(t->session, &feed, 1, &fetch, 1, NULL, 0, &r, &t->err), &t->err);
  return r;
}

static tn_plan_summary summary_of(const tn_plan_report *r)
{
  tn_plan_summary s = { .struct_size = sizeof s };
  CHECK_INT(tn_plan_report_summary(r, &s, NULL), TN_OK);
  return s;
}

/* Number of instructions of an op, or of a node. */
static int count(const tn_plan_report *r, const char *op, const char *node)
{
  int n = 0;
  tn_plan_call call = { .struct_size = sizeof call };
  for (size_t i = 0; tn_plan_report_call(r, i, &call, NULL) == TN_OK; i++)
    n += (op == NULL || strcmp(tn_operation_type(call.op), op) == 0) &&
         (node == NULL || strcmp(tn_operation_name(call.op), node) == 0);
  return n;
}

/* ---- plans ---- */

#define CHAIN                                                                                                         \
  LIBRARY(TWICE SQUARE UNARY("Both",                                                                                  \
                             BODY("t", "Twice", "input: 'x'", "")                                                     \
                                 BODY("s", "PartitionedCall", "input: 't:y:0'",                                       \
                                      FUNC("f", "Square1") TYPES("Tin", F) TYPES("Tout", F)) RET("y", "s:output:0"))) \
  IN("x", "DT_FLOAT")                                                                                                 \
  CALL("a", "PartitionedCall", "Both", "x") NODE("b", "Both", "input: 'a'", "")                                       \
      CALL("c", "StatefulPartitionedCall", "Twice", "b")

static void inline__replaces_calls_by_bodies(void)
{
  ts t;
  ck_expect(CHAIN, 1, "c", 128);
  tn_plan_report *r = report_of(&t, CHAIN, "elementwise", "c");
  CHECK_INT(count(r, "AddV2", NULL), 3);
  CHECK_INT(count(r, "Mul", NULL), 2);
  CHECK_INT(summary_of(r).instructions, 5);
  CHECK_INT(summary_of(r).segments, 1);
  tn_plan_pass pass = { .struct_size = sizeof pass };
  CHECK_INT(tn_plan_report_pass(r, 0, &pass, NULL), TN_OK);
  CHECK_STR(pass.name, "inline");
  CHECK_INT(pass.changes, 7);
  CHECK_INT(count(r, NULL, "a/s/m"), 1);
  ts_fini(&t);
  CHECK_INT(count(r, "Mul", NULL), 2); /* a report outlives its session */
  tn_plan_report_release(r);
}

static void inline__can_be_switched_off(void)
{
  ts t;
  tn_plan_report *r = report_of(&t, CHAIN, "inline,elementwise", "c");
  CHECK_INT(count(r, "AddV2", NULL), 0);
  CHECK_INT(summary_of(r).instructions, 3);
  CHECK(ts_run1(&t, FEEDS({ "x", 1 }), "c") == 128);
  tn_plan_report_release(r);
  ts_fini(&t);
}

/* A constant argument of a call is a constant in the function. */
static void inline__folds_through_calls(void)
{
  const char *text = LIBRARY(TWICE) IN("x", "DT_FLOAT") NODE("k", "Const", "", FLOAT_OF("3"))
                     CALL("t", "PartitionedCall", "Twice", "k")
                     NODE("m", "Mul", "input: 'x' input: 't'", T("DT_FLOAT"));
  ts t;
  tn_plan_report *r = report_of(&t, text, "", "m");
  CHECK_INT(summary_of(r).instructions, 1);
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "m") == 12);
  tn_plan_report_release(r);
  ts_fini(&t);
}

/* A function that calls itself keeps a call of itself; a function that is called often is copied
 * a limited number of times. */
static void inline__is_limited(void)
{
  char text[16000] = "library { " TWICE, one[800];
  for (int i = 0; i < 24; i++) {
    snprintf(one, sizeof one,
             "function { signature { name: 'F%d' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: "
             "DT_FLOAT } } node_def { name: 'a' op: '%s%d' input: 'x' } node_def { name: 'b' op: '%s%d' input: 'x' } "
             "node_def { name: 's' op: 'Sub' input: 'a:y:0' input: 'b:y:0' " T(
                 "DT_FLOAT") " } ret { key: 'y' value: 's:z:0' } }\n",
             i, "F", i + 1, "F", i + 1);
    strcat(text, one);
  }
  strcat(text, UNARY("F24", BODY("n", "Neg", "input: 'x'", T("DT_FLOAT")) RET("y", "n:y:0")) "}\n" IN("x", "DT_FLOAT")
                 NODE("n", "F12", "input: 'x'", ""));
  ts t;
  ck_open(&t, 1, text);
  CHECK(ts_run1(&t, FEEDS({ "x", 5 }), "n") == 0);
  ts_fini(&t);
}

/* ---- order ---- */

#define EFFECT(name, slot, after) NODE(name, "TestEffect", after, SLOT(slot))
#define INNER(name, slot, after) BODY(name, "TestEffect", after, SLOT(slot))

static void check_log(const char *text, const char *fetch, const char *target, const char *order)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out = NULL, *in = ts_scalar(1);
    static const char *const feed = "x";
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK_OK(tn_session_run(t.session, NULL, &feed, &in, 1, &fetch, &out, fetch != NULL, &target, target != NULL, NULL,
                            &t.err),
             &t.err);
    char log[20] = "";
    for (size_t i = 0; i < (size_t)ts_watched.n_log && i + 1 < sizeof log; i++)
      log[i] = (char)('0' + ts_watched.log[i]);
    CHECK_STR(log, order);
    tn_tensor_unref(out);
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

/* A call begins when all its inputs exist and its control inputs have ended; it ends when all
 * its nodes have ended. */
static void inline__keeps_the_order_of_effects(void)
{
  const char *inputs = LIBRARY(FUNCTION("Acts", ARG("p", "DT_FLOAT") ARG("q", "DT_FLOAT") RESULT("y", "DT_FLOAT"),
                                        INNER("e", "2", "") RET("y", "p"))) IN("x", "DT_FLOAT")
      EFFECT("first", "1", "") NODE("late", "TestPlain", "input: 'x' input: '^first'", SLOT("5"))
      NODE("c", "Acts", "input: 'x' input: 'late'", "") EFFECT("last", "3", "input: '^c'")
      NODE("y", "Identity", "input: 'c' input: '^last'", T("DT_FLOAT"));
  check_log(inputs, "y", NULL, "123");
  const char *nested = LIBRARY(FUNCTION(
      "In", RESULT("y", "DT_FLOAT"), INNER("e", "2", "") BODY("k", "Const", "", FLOAT_OF("1")) RET("y", "k:output:0"))
                                   FUNCTION("Out", RESULT("y", "DT_FLOAT"),
                                            BODY("i", "In", "", "") INNER("f", "3", "input: '^i'") RET("y", "i:y:0")))
      IN("x", "DT_FLOAT") EFFECT("first", "1", "") NODE("c", "Out", "input: '^first'", "")
          EFFECT("last", "4", "input: '^c'");
  check_log(nested, NULL, "last", "1234");
  check_log(nested, "c", NULL, "123");
}

/* Without effects the whole function counts: if any node in it fails, a step that depends on it
 * fails. */
static void inline__waits_for_nodes_that_may_fail(void)
{
  const char *text = LIBRARY(FUNCTION("Bad", ARG("x", "DT_FLOAT") RESULT("y", "DT_FLOAT"),
                                      BODY("f", "TestFail", "input: 'x'", T("DT_FLOAT")) RET("y", "f:y:0")))
      IN("x", "DT_FLOAT") NODE("c", "Bad", "input: 'x'", "")
      NODE("y", "Identity", "input: 'x' input: '^c'", T("DT_FLOAT"));
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    CHECK(isnan(ts_run1(&t, FEEDS({ "x", 1 }), "y")));
    CHECK_STR(tn_error_node(&t.err), "c/f");
    ts_fini(&t);
  }
}

#define VARIABLE(name)                                                                                               \
  NODE(name, "VarHandleOp", "",                                                                                      \
       DT "attr { key: 'shape' value { shape { unknown_rank: true } } } attr { key: 'shared_name' value { s: '" name \
          "' } }")
#define DT "attr { key: 'dtype' value { type: DT_FLOAT } }"
#define UNIQUE(name, from) \
  NODE(name, "Unique", "input: '" from "'", T("DT_FLOAT") "attr { key: 'out_idx' value { type: DT_INT32 } }")

/* Successors of a call also wait for everything that the call waited for, even if its body needs
 * none of it. The assignment here is late in a step, since its shape is computed. */
static void inline__passes_on_control_dependencies(void)
{
  const char *text = LIBRARY(UNARY("Pure", BODY("n", "Neg", "input: 'x'", T("DT_FLOAT")) RET("y", "n:y:0")) FUNCTION(
      "First", ARG("x", "DT_FLOAT") ARG("unused", "DT_FLOAT") RESULT("y", "DT_FLOAT"), RET("y", "x")))
      IN("x", "DT_FLOAT") VARIABLE("v") NODE("init", "AssignVariableOp", "input: 'v' input: 'x'", DT)
          NODE("zero", "Const", "", INT_OF("0")) NODE("list", "ExpandDims", "input: 'x' input: 'zero'",
                                                      T("DT_FLOAT") "attr { key: 'Tdim' value { type: DT_INT32 } }")
              UNIQUE("u", "list") UNIQUE("late", "u") NODE("two", "Add", "input: 'late' input: 'late'", T("DT_FLOAT"))
                  NODE("write", "AssignVariableOp", "input: 'v' input: 'two'", DT)
                      NODE("c", "Pure", "input: 'x' input: '^write'", "") NODE("r", "ReadVariableOp",
                                                                               "input: 'v' input: '^c'", DT)
                          NODE("old", "ReadVariableOp", "input: 'v' input: '^late'", DT)
                              NODE("d", "First", "input: 'x' input: 'old'", "")
                                  NODE("clear", "AssignVariableOp", "input: 'v' input: 'x' input: '^d'", DT)
                                      NODE("s", "Size", "input: 'old'",
                                           T("DT_FLOAT") "attr { key: 'out_type' value { type: DT_INT32 } }")
                                          NODE("sum", "Sum", "input: 'r' input: 'zero'",
                                               T("DT_FLOAT") "attr { key: 'Tidx' value { type: DT_INT32 } }")
                                              NODE("before", "Identity", "input: 'old' input: '^clear'", T("DT_FLOAT"));
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    CHECK_OK(ts_run(&t, FEEDS({ "x", 1 }), NULL, NULL, NAMES("init")), &t.err);
    CHECK(ts_run1(&t, FEEDS({ "x", 5 }), "sum") == 10);
    CHECK_OK(ts_run(&t, FEEDS({ "x", 3 }), NULL, NULL, NAMES("init")), &t.err);
    CHECK(ts_run1(&t, FEEDS({ "x", 5 }), "before") == 3);
    ts_fini(&t);
  }
}

/* A random sequence continues from one call of a function to the next, and in a loop from one
 * iteration to the next. */
static void inline__continues_random_sequences(void)
{
#define DRAW                                                                                                      \
  BODY("s", "Const", "", "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { "   \
       "dtype: DT_INT32 tensor_shape { dim { } } } } }")                                                          \
  BODY("r", "RandomUniform", "input: 's:output:0'", DT T("DT_INT32") "attr { key: 'seed' value { i: 1 } } "       \
       "attr { key: 'seed2' value { i: 2 } }")
  const char *text = LIBRARY(
      FUNCTION("Draw", RESULT("y", "DT_FLOAT"), DRAW RET("y", "r:output:0"))
          FUNCTION("Lucky", ARG("x", "DT_FLOAT") RESULT("go", "DT_BOOL"),
                   DRAW BODY("k", "Const", "", FLOAT_OF("0.75"))
                       BODY("l", "Less", "input: 'r:output:0' input: 'k:output:0'", T("DT_FLOAT")) RET("go", "l:z:0"))
              UNARY("Next", BODY("k", "Const", "", FLOAT_OF("1"))
                                BODY("n", "AddV2", "input: 'x' input: 'k:output:0'", T("DT_FLOAT")) RET("y", "n:z:0")))
      IN("x", "DT_FLOAT") NODE("a", "Draw", "", "") NODE("b", "Draw", "input: '^a'", "")
          NODE("d", "Sub", "input: 'a' input: 'b'", T("DT_FLOAT"))
              NODE("w", "While", "input: 'x'", TYPES("T", F) FUNC("cond", "Lucky") FUNC("body", "Next"));
  float turns = 0, difference = 0;
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    float d = ts_run1(&t, FEEDS({ "x", 0 }), "d"), w = ts_run1(&t, FEEDS({ "x", 0 }), "w");
    CHECK(d != 0);
    CHECK(level == 0 || (d == difference && w == turns));
    difference = d;
    turns = w;
    ts_fini(&t);
  }
}

/* In a partial run a call begins when all its arguments were fed, even those that its body does
 * not read. */
static void inline__waits_for_later_feeds(void)
{
  const char *text = LIBRARY(FUNCTION("Acts", ARG("x", "DT_FLOAT") ARG("y", "DT_FLOAT") RESULT("z", "DT_FLOAT"),
                                      INNER("e", "1", "") RET("z", "x")))
      IN("x", "DT_FLOAT") IN("y", "DT_FLOAT") NODE("c", "Acts", "input: 'x' input: 'y'", "")
      NODE("n", "Neg", "input: 'x'", T("DT_FLOAT")) EFFECT("last", "2", "input: '^c'");
  static const char *const feeds[] = { "x", "y" }, *const n = "n", *const last = "last";
  FOR_LEVELS(level)
  {
    ts t;
    tn_partial_run run;
    tn_tensor *x = ts_scalar(1), *out = NULL;
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK_OK(tn_session_partial_setup(t.session, NULL, feeds, 2, &n, 1, &last, 1, &run, &t.err), &t.err);
    CHECK_OK(tn_session_partial_run(t.session, run, &feeds[0], &x, 1, &n, &out, 1, &t.err), &t.err);
    tn_tensor_unref(out);
    CHECK_INT(ts_watched.n_log, 0);
    CHECK_OK(tn_session_partial_run(t.session, run, &feeds[1], &x, 1, NULL, NULL, 0, &t.err), &t.err);
    CHECK_INT(ts_watched.n_log, 2);
    tn_tensor_unref(x);
    ts_fini(&t);
  }
}

/* ---- branches ---- */

/* A call ends whichever of its branches was taken. */
static void inline__ends_after_a_branch(void)
{
  const char *text = LIBRARY(UNARY(
      "Maybe",
      BODY("zero", "Const", "", FLOAT_OF("0")) BODY("p", "Greater", "input: 'x' input: 'zero:output:0'", T("DT_FLOAT"))
          BODY("s", "Switch", "input: 'x' input: 'p:z:0'", T("DT_FLOAT")) INNER("e", "1", "input: '^t'")
              BODY("t", "Identity", "input: 's:output_true:0'", T("DT_FLOAT"))
                  BODY("m", "Merge", "input: 's:output_false:0' input: 't:output:0'",
                       T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }") RET("y", "m:output:0"))) IN("x", "DT_FLOAT")
      NODE("c", "Maybe", "input: 'x'", "") EFFECT("last", "2", "input: '^c'")
          NODE("y", "Identity", "input: 'x' input: '^last'", T("DT_FLOAT"));
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK(ts_run1(&t, FEEDS({ "x", -2 }), "y") == -2);
    CHECK_INT(ts_watched.n_log, 1);
    CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y") == 2);
    CHECK_INT(ts_watched.n_log, 3);
    CHECK_OK(ts_run(&t, FEEDS({ "x", -2 }), NULL, NULL, NAMES("c")), &t.err);
    ts_fini(&t);
  }
}

/* A call in a branch runs as a whole or not at all. */
static void inline__keeps_calls_in_branches(void)
{
  const char *text =
      LIBRARY(FUNCTION("Acts", ARG("x", "DT_FLOAT") RESULT("y", "DT_FLOAT"),
                       INNER("e", "1", "") BODY("n", "Neg", "input: 'x'", T("DT_FLOAT")) RET("y", "n:y:0")))
          IN("x", "DT_FLOAT") NODE("zero", "Const", "", FLOAT_OF("0"))
              NODE("p", "Greater", "input: 'x' input: 'zero'", T("DT_FLOAT"))
                  NODE("s", "Switch", "input: 'x' input: 'p'", T("DT_FLOAT")) NODE("c", "Acts", "input: 's:1'", "")
                      NODE("m", "Merge", "input: 's' input: 'c'", T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }");
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK(ts_run1(&t, FEEDS({ "x", -2 }), "m") == -2);
    CHECK_INT(ts_watched.n_log, 0);
    CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "m") == -2);
    CHECK_INT(ts_watched.n_log, 1);
    ts_fini(&t);
  }
}

/* ---- loops ---- */

#define LOOP(op, cond_body, body)                                                                              \
  LIBRARY(FUNCTION("Cond", ARG("x", "DT_FLOAT") RESULT("go", "DT_BOOL"), cond_body)                            \
          UNARY("Body", body)) IN("x", "DT_FLOAT")                                                             \
  NODE("w", op, "input: 'x'", TYPES("T", F) FUNC("cond", "Cond") FUNC("body", "Body"))
#define BELOW_100                         \
  BODY("k", "Const", "", FLOAT_OF("100")) \
  BODY("l", "Less", "input: 'x' input: 'k:output:0'", T("DT_FLOAT")) RET("go", "l:z:0")
#define DOUBLE BODY("d", "AddV2", "input: 'x' input: 'x'", T("DT_FLOAT")) RET("y", "d:z:0")

static void inline__converts_loops_of_functions_to_loops_of_the_plan(void)
{
  const char *text = LOOP("StatelessWhile", BELOW_100, DOUBLE);
  ts t;
  ck_expect(text, 3, "w", 192);
  ck_expect(text, 100, "w", 100);
  tn_plan_report *r = report_of(&t, text, "", "w");
  CHECK_INT(count(r, "StatelessWhile", NULL), 1);
  tn_plan_call call = { .struct_size = sizeof call };
  CHECK_INT(tn_plan_report_call(r, 0, &call, NULL), TN_OK);
  CHECK_INT(call.n_kernels, 0);
  tn_plan_report_release(r);
  ts_fini(&t);
}

static void inline__names_nodes_of_loops(void)
{
  const char *text = LOOP("While", BELOW_100, BODY("f", "TestFail", "input: 'x'", T("DT_FLOAT")) RET("y", "f:y:0"));
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    CHECK(isnan(ts_run1(&t, FEEDS({ "x", 1 }), "w")));
    CHECK_STR(tn_error_node(&t.err), "w/body/f");
    CHECK(ts_run1(&t, FEEDS({ "x", 200 }), "w") == 200);
    ts_fini(&t);
  }
}

/* Effects of an iteration happen before the next condition is evaluated. */
static void inline__keeps_the_order_in_loops(void)
{
  const char *text = LOOP("While", INNER("c", "1", "") BELOW_100, INNER("e", "2", "input: '^d'") DOUBLE);
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK(ts_run1(&t, FEEDS({ "x", 30 }), "w") == 120);
    static const int wanted[] = { 1, 2, 1, 2, 1 };
    CHECK_INT(ts_watched.n_log, 5);
    for (int i = 0; i < 5; i++) CHECK_INT(ts_watched.log[i], wanted[i]);
    ts_fini(&t);
  }
}

/* A condition that is not a scalar is true if it has elements. */
static void inline__accepts_conditions_that_are_not_scalars(void)
{
  const char *text = LIBRARY(FUNCTION("Cond", ARG("x", "DT_BOOL") RESULT("go", "DT_BOOL"), RET("go", "x")) FUNCTION(
      "Body", ARG("x", "DT_BOOL") RESULT("y", "DT_BOOL"),
      BODY("b", "Const", "",
           "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value "
           "{ tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } }")
          BODY("s", "Slice", "input: 'x' input: 'b:output:0' input: 'z:output:0'",
               T("DT_BOOL") "attr { key: 'Index' value { type: DT_INT32 } }")
              BODY("z", "Const", "",
                   "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value "
                   "{ tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: -1 } } }")
                  RET("y", "s:output:0"))) IN("x", "DT_BOOL")
      NODE("w", "StatelessWhile", "input: 'x'", TYPES("T", "type: DT_BOOL") FUNC("cond", "Cond") FUNC("body", "Body"));
  FOR_LEVELS(level)
  {
    ts t;
    static const char *const x = "x", *const w = "w";
    static const uint8_t data[3] = { 0, 0, 0 };
    const int64_t dims[] = { 3 };
    tn_tensor *in, *out = NULL;
    ck_open(&t, level, text);
    CHECK_OK(tn_tensor_from_data(TN_BOOL, dims, 1, data, sizeof data, &in, &t.err), &t.err);
    CHECK_OK(tn_session_run(t.session, NULL, &x, &in, 1, &w, &out, 1, NULL, 0, NULL, &t.err), &t.err);
    CHECK_INT(out == NULL ? -1 : tn_tensor_elements(out), 0);
    tn_tensor_unref(in);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

/* Loops of functions that contain many such loops are copied a limited number of times, and so
 * are frames. */
static void inline__is_limited_in_loops(void)
{
  static char text[80000];
  char one[400];
  strcpy(text, "library { " FUNCTION("Cond", ARG("x", "DT_FLOAT") RESULT("go", "DT_BOOL"), BELOW_100));
  for (int i = 0; i < 4; i++) {
    snprintf(one, sizeof one,
             "function { signature { name: 'B%d' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' "
             "type: DT_FLOAT } } node_def { name: 'n0' op: 'Neg' input: 'x' " T("DT_FLOAT") " }\n",
             i);
    strcat(text, one);
    for (int k = 0; k < 60 && i < 3; k++) {
      snprintf(one, sizeof one,
               "node_def { name: 'n%d' op: 'StatelessWhile' input: 'n%d:%s:0' " TYPES("T", F)
                   FUNC("cond", "Cond") "attr { key: 'body' value { func { name: 'B%d' } } } }\n",
               k + 1, k, k == 0 ? "y" : "output", i + 1);
      strcat(text, one);
    }
    strcat(text, i < 3 ? RET("y", "n60:output:0") "}\n" : RET("y", "n0:y:0") "}\n");
  }
  strcat(text, "}\n" IN("x", "DT_FLOAT")
                   NODE("w", "StatelessWhile", "input: 'x'", TYPES("T", F) FUNC("cond", "Cond") FUNC("body", "B0")));
  ts t;
  ck_open(&t, 1, text);
  CHECK(ts_run1(&t, FEEDS({ "x", 100 }), "w") == 100);
  ts_fini(&t);
}

/* ---- resources ---- */

/* A queue without a name has the name of its node in the function: it is one queue, however
 * often the function is called. */
static void inline__keeps_the_names_of_resources(void)
{
  const char *text = LIBRARY(
      "function { signature { name: 'S' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: DT_FLOAT }"
      " is_stateful: true }" BODY("q", "FIFOQueueV2", "", TYPES("component_types", F))
          BODY("e", "QueueEnqueueV2", "input: 'q:handle:0' input: 'x'", TYPES("Tcomponents", F))
              BODY("r", "QueueSizeV2", "input: 'q:handle:0' input: '^e'", "")
                  BODY("c", "Cast", "input: 'r:size:0'",
                       "attr { key: 'SrcT' value { type: DT_INT32 } } attr { key: 'DstT' value { type: DT_FLOAT } }")
                      RET("y", "c:y:0") "}\n") IN("x", "DT_FLOAT") CALL("first", "StatefulPartitionedCall", "S", "x")
      NODE("second", "StatefulPartitionedCall", "input: 'x' input: '^first'",
           FUNC("f", "S") TYPES("Tin", F) TYPES("Tout", F));
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    CHECK(ts_run1(&t, FEEDS({ "x", 1 }), "second") == 2);
    CHECK_INT(tn_reset(t.options, NULL, 0, NULL), TN_OK);
    ts_fini(&t);
  }
}

/* ---- lack of memory ---- */

static tn_status all_of_it(void *arg)
{
  ts *t = arg;
  static const char *const feed = "x", *const fetches[] = { "w", "c" };
  tn_session *session = NULL;
  tn_tensor *in = NULL, *out = NULL;
  float x = 1;
  tn_status st = tn_tensor_from_data(TN_FLOAT, NULL, 0, &x, sizeof x, &in, &t->err);
  if (st == TN_OK) st = tn_session_create(t->options, &session, &t->err);
  if (st == TN_OK) st = tn_session_set_graph(session, t->graph, &t->err);
  for (int i = 0; st == TN_OK && i < 2; i++) {
    st = tn_session_run(session, NULL, &feed, &in, 1, &fetches[i], &out, 1, NULL, 0, NULL, &t->err);
    tn_tensor_unref(out);
  }
  tn_session_destroy(session);
  tn_tensor_unref(in);
  return st;
}

static void inline__survives_lack_of_memory(void)
{
  const char *text = LIBRARY(TWICE SQUARE UNARY(
      "Both", BODY("t", "Twice", "input: 'x'", "") BODY("s", "Square1", "input: 't:y:0'", "") RET("y", "s:y:0"))
                                 FUNCTION("Cond", ARG("x", "DT_FLOAT") RESULT("go", "DT_BOOL"), BELOW_100)
                                     UNARY("Body", BODY("b", "Twice", "input: 'x'", "") RET("y", "b:y:0")))
      IN("x", "DT_FLOAT") NODE("w", "While", "input: 'x'", TYPES("T", F) FUNC("cond", "Cond") FUNC("body", "Body"))
          CALL("c", "PartitionedCall", "Both", "w");
  ts t;
  ck_open(&t, 1, text);
  tn_test_oom_sweep(all_of_it, &t);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(inline__replaces_calls_by_bodies),
  TAP_TEST(inline__can_be_switched_off),
  TAP_TEST(inline__folds_through_calls),
  TAP_TEST(inline__is_limited),
  TAP_TEST(inline__keeps_the_order_of_effects),
  TAP_TEST(inline__waits_for_nodes_that_may_fail),
  TAP_TEST(inline__passes_on_control_dependencies),
  TAP_TEST(inline__continues_random_sequences),
  TAP_TEST(inline__waits_for_later_feeds),
  TAP_TEST(inline__ends_after_a_branch),
  TAP_TEST(inline__keeps_calls_in_branches),
  TAP_TEST(inline__converts_loops_of_functions_to_loops_of_the_plan),
  TAP_TEST(inline__names_nodes_of_loops),
  TAP_TEST(inline__keeps_the_order_in_loops),
  TAP_TEST(inline__accepts_conditions_that_are_not_scalars),
  TAP_TEST(inline__is_limited_in_loops),
  TAP_TEST(inline__keeps_the_names_of_resources),
  TAP_TEST(inline__survives_lack_of_memory))
