/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose condition and body are functions: loop variables, how loops end, and kernels that
 * wait in them. */
#include <pthread.h>

#include "conformance/support/calls_kit.h"

static int32_t int_of(const tn_tensor *t)
{
  return t == NULL ? INT32_MIN : *(const int32_t *)tn_tensor_data((tn_tensor *)t);
}

/* ---- loop variables ---- */

static void loops__run(void)
{
  const char *text = LIBRARY(BELOW(ARG("a", "DT_FLOAT")) FUNCTION(
      "Body", COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT"),
      NEXT BODY("d", "AddV2", "input: 'a' input: 'a'", T("DT_FLOAT")) RET("j", "next:z:0") RET("m", "n")
          RET("b", "d:z:0"))) IN("x", "DT_FLOAT") COUNT("w", "While", "Below", "Body", "input: 'x'", F);
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    static const int32_t turns[] = { 0, 1, 2, 10, 3, 0, 100 };
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
      tn_tensor *out;
      CHECK_OK(ck_run(&t, turns[i], 3, "w:0", &out), &t.err);
      CHECK_INT(int_of(out), turns[i]);
      tn_tensor_unref(out);
      CHECK_OK(ck_run(&t, turns[i], 3, "w:1", &out), &t.err);
      CHECK_INT(int_of(out), turns[i]);
      tn_tensor_unref(out);
      float value = 3;
      for (int k = 0; k < turns[i]; k++) value += value;
      CHECK_OK(ck_run(&t, turns[i], 3, "w:2", &out), &t.err);
      CHECK(ts_float(out) == value);
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

/* The shape grows with each iteration; a string is also a loop variable. */
static void loops__whose_shapes_change(void)
{
  const char *text = LIBRARY(BELOW(ARG("a", "DT_FLOAT") ARG("s", "DT_STRING")) FUNCTION(
      "Body",
      COUNTED(ARG("a", "DT_FLOAT") ARG("s", "DT_STRING")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32")
          RESULT("b", "DT_FLOAT") RESULT("u", "DT_STRING"),
      NEXT BODY("axis", "Const", "", INT_OF("0")) BODY("c", "ConcatV2", "input: 'a' input: 'a' input: 'axis:output:0'",
                                                       T("DT_FLOAT") "attr { key: 'N' value { i: 2 } }")
          RET("j", "next:z:0") RET("m", "n") RET("b", "c:output:0") RET("u", "s"))) IN("x", "DT_FLOAT")
      NODE("axis", "Const", "", INT_OF("0")) NODE("v", "ExpandDims", "input: 'x' input: 'axis'",
                                                  T("DT_FLOAT") "attr { key: 'Tdim' value { type: DT_INT32 } }")
          NODE("word", "Const", "", FILLED("DT_STRING", "string_val: 'a text that is too long to lie inside'"))
              COUNT("w", "StatelessWhile", "Below", "Body", "input: 'v' input: 'word'", F "type: DT_STRING");
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    for (int32_t n = 0; n < 6; n++) {
      tn_tensor *out;
      CHECK_OK(ck_run(&t, n, 2, "w:2", &out), &t.err);
      CHECK_INT(tn_tensor_elements(out), (int64_t)1 << n);
      CHECK(ts_float(out) == 2);
      tn_tensor_unref(out);
      CHECK_OK(ck_run(&t, n, 2, "w:3", &out), &t.err);
      size_t size;
      CHECK(out != NULL && strncmp(tn_string_data(tn_tensor_data(out), &size), "a text that is", 14) == 0);
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

/* Loop variables exchange places, and two of them take the value of one. */
static void loops__swap_variables(void)
{
  const char *text = LIBRARY(BELOW(ARG("a", "DT_FLOAT") ARG("b", "DT_FLOAT") ARG("c", "DT_FLOAT")) FUNCTION(
      "Body",
      COUNTED(ARG("a", "DT_FLOAT") ARG("b", "DT_FLOAT") ARG("c", "DT_FLOAT")) RESULT("j", "DT_INT32")
          RESULT("m", "DT_INT32") RESULT("p", "DT_FLOAT") RESULT("q", "DT_FLOAT") RESULT("r", "DT_FLOAT"),
      NEXT BODY("d", "AddV2", "input: 'c' input: 'a'", T("DT_FLOAT")) RET("j", "next:z:0") RET("m", "n") RET("p", "b")
          RET("q", "d:z:0") RET("r", "b"))) IN("x", "DT_FLOAT") NODE("y", "Neg", "input: 'x'", T("DT_FLOAT"))
      NODE("z", "Square", "input: 'x'", T("DT_FLOAT"))
      COUNT("w", "While", "Below", "Body", "input: 'x' input: 'y' input: 'z'", F F F);
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    for (int32_t n = 0; n < 12; n++) {
      float a = 3, b = -3, c = 9;
      for (int32_t k = 0; k < n; k++) {
        float d = c + a;
        a = c = b;
        b = d;
      }
      const float wanted[] = { a, b, c };
      static const char *const fetches[] = { "w:2", "w:3", "w:4" };
      for (int k = 0; k < 3; k++) {
        tn_tensor *out;
        CHECK_OK(ck_run(&t, n, 3, fetches[k], &out), &t.err);
        CHECK(ts_float(out) == wanted[k]);
        tn_tensor_unref(out);
      }
    }
    ts_fini(&t);
  }
}

/* A tensor that a kernel keeps from an iteration keeps the value of that iteration. */
static void loops__preserve_kept_tensors(void)
{
  const char *text =
      LIBRARY(BELOW(ARG("a", "DT_FLOAT") ARG("h", "DT_RESOURCE") ARG("f", "DT_FLOAT")) FUNCTION(
          "Body",
          COUNTED(ARG("a", "DT_FLOAT") ARG("h", "DT_RESOURCE") ARG("f", "DT_FLOAT")) RESULT("j", "DT_INT32")
              RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT") RESULT("g", "DT_RESOURCE") RESULT("e", "DT_FLOAT"),
          NEXT BODY("d", "AddV2", "input: 'a' input: 'a'", T("DT_FLOAT"))
              BODY("put", "TensorArrayWriteV3", "input: 'h' input: 'i' input: 'a' input: 'f'", T("DT_FLOAT"))
                  RET("j", "next:z:0") RET("m", "n") RET("b", "d:z:0") RET("g", "h") RET("e", "put:flow_out:0")))
      IN("x", "DT_FLOAT") NODE("one", "Const", "", INT_OF("1"))
          NODE("array", "TensorArrayV3", "input: 'n'", "attr { key: 'dtype' value { type: DT_FLOAT } }")
          COUNT("w", "While", "Below", "Body", "input: 'x' input: 'array' input: 'array:1'", F "type: DT_RESOURCE " F)
          NODE("all", "Range", "input: 'zero' input: 'n' input: 'one'", "attr { key: 'Tidx' value { type: DT_INT32 } }")
          NODE("kept", "TensorArrayGatherV3", "input: 'array' input: 'all' input: 'w:4'",
               "attr { key: 'dtype' value { type: DT_FLOAT } }");
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    for (int32_t n = 1; n < 20; n += 6) {
      tn_tensor *out;
      CHECK_OK(ck_run(&t, n, 1, "kept", &out), &t.err);
      CHECK_INT(tn_tensor_elements(out), n);
      for (int32_t k = 0; out != NULL && k < n; k++)
        CHECK(((const float *)tn_tensor_data(out))[k] == (float)((int64_t)1 << k));
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

/* A loop in a loop's body, and a call next to it (S-EXE-14). */
static void loops__nest(void)
{
  const char *text = LIBRARY(TWICE BELOW(ARG("a", "DT_FLOAT")) FUNCTION(
      "Inner", COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT"),
      NEXT BODY("u", "Const", "", FLOAT_OF("1")) BODY("p", "AddV2", "input: 'a' input: 'u:output:0'", T("DT_FLOAT"))
          RET("j", "next:z:0") RET("m", "n") RET("b", "p:z:0"))
                                 FUNCTION("Outer",
                                          COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32")
                                              RESULT("b", "DT_FLOAT"),
                                          NEXT BODY("zero", "Const", "", INT_OF("0"))
                                              BODY("w", "While", "input: 'zero:output:0' input: 'n' input: 'a'",
                                                   TYPES("T", I I F) FUNC("cond", "Below") FUNC("body", "Inner"))
                                                  BODY("t", "Twice", "input: 'w:output:2'", "") RET("j", "next:z:0")
                                                      RET("m", "n") RET("b", "t:y:0"))) IN("x", "DT_FLOAT")
      COUNT("w", "While", "Below", "Outer", "input: 'x'", F);
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    for (int32_t n = 0; n < 5; n++) {
      tn_tensor *out;
      float value = 1;
      for (int32_t i = 0; i < n; i++) value = (value + (float)n) * 2;
      CHECK_OK(ck_run(&t, n, 1, "w:2", &out), &t.err);
      CHECK(ts_float(out) == value);
      tn_tensor_unref(out);
    }
    ts_fini(&t);
  }
}

#define FOR_OF(start, limit, delta)                                                                              \
  LIBRARY(FUNCTION("Plus", ARG("i", "DT_INT32") ARG("a", "DT_FLOAT") RESULT("b", "DT_FLOAT"),                    \
                   BODY("c", "Cast", "input: 'i'",                                                               \
                        "attr { key: 'SrcT' value { type: DT_INT32 } } attr { key: 'DstT' value { type: "        \
                        "DT_FLOAT } }") BODY("s", "AddV2", "input: 'a' input: 'c:y:0'", T("DT_FLOAT"))           \
                       RET("b", "s:z:0")))                                                                       \
  IN("x", "DT_FLOAT")                                                                                            \
  NODE("start", "Const", "", INT_OF(start)) NODE("limit", "Const", "", INT_OF(limit)) NODE("delta", "Const", "", \
                                                                                           INT_OF(delta))        \
      NODE("f", "For", "input: 'start' input: 'limit' input: 'delta' input: 'x'", TYPES("T", F) FUNC("body", "Plus"))

static void loops__for_each_number_of_a_range(void)
{
  ck_expect(FOR_OF("1", "9", "2"), 0.5f, "f", 16.5f);
  ck_expect(FOR_OF("9", "1", "-2"), 0.5f, "f", 24.5f);
  ck_expect(FOR_OF("1", "8", "3"), 0, "f", 12);
  ck_expect(FOR_OF("4", "4", "0"), 0.5f, "f", 0.5f);
  ck_expect(FOR_OF("2147483640", "2147483647", "5"), 0, "f", (float)2147483640 + (float)2147483645);
  ck_expect_error(FOR_OF("9", "1", "2"), 0, "f", TN_INVALID_ARGUMENT,
               "node 'f' (For): a loop from 9 to 1 by steps of 2 does not end");
  ck_expect_error(FOR_OF("1", "9", "0"), 0, "f", TN_INVALID_ARGUMENT, "does not end");
}

/* In the second iteration the body's result is on the branch not taken; so is the result of the
 * other loop's condition. */
static void loops__need_live_variables(void) /* S-EXE-06, S-EXE-09 */
{
#define FIRST_TURN_ONLY(value, type)                                                                           \
  BODY("k", "Const", "", INT_OF("1")) BODY("f", "Less", "input: 'i' input: 'k:output:0'", T("DT_INT32"))       \
  BODY("s", "Switch", "input: '" value "' input: 'f:z:0'", T(type))
  const char *text = LIBRARY(BELOW(ARG("a", "DT_FLOAT")) FUNCTION(
      "Body", COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT"),
      NEXT FIRST_TURN_ONLY("a", "DT_FLOAT") RET("j", "next:z:0") RET("m", "n") RET("b", "s:output_true:0"))
                                 FUNCTION("Odd", COUNTED(ARG("a", "DT_FLOAT")) RESULT("go", "DT_BOOL"),
                                          BODY("l", "Less", "input: 'i' input: 'n'", T("DT_INT32"))
                                              FIRST_TURN_ONLY("l:z:0", "DT_BOOL") RET("go", "s:output_true:0"))
                                     FUNCTION("Same",
                                              COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32")
                                                  RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT"),
                                              NEXT RET("j", "next:z:0") RET("m", "n") RET("b", "a")))
      IN("x", "DT_FLOAT") COUNT("w", "While", "Below", "Body", "input: 'x'", F)
          NODE("v", "While", "input: 'zero' input: 'n' input: 'x'",
               TYPES("T", I I F) FUNC("cond", "Odd") FUNC("body", "Same"))
              NODE("twice", "AddV2", "input: 'w:2' input: 'w:2'", T("DT_FLOAT"));
  static const char *const fetches[] = { "w:2", "twice", "w:0", "v:2" };
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out;
    ck_open(&t, level, text);
    CHECK_OK(ck_run(&t, 1, 3, "twice", &out), &t.err);
    CHECK(ts_float(out) == 6);
    tn_tensor_unref(out);
    for (size_t i = 0; i < sizeof fetches / sizeof *fetches; i++) {
      CHECK_STATUS(ck_run(&t, 2, 3, fetches[i], &out), TN_INVALID_ARGUMENT, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), "it is on a branch that was not taken");
      CHECK_NULL(out);
    }
    ts_fini(&t);
  }
}

/* ---- how they end ---- */

/* A node inside is named by its path through the calls (S-CAN-02). */
static void loops__name_the_node_that_failed(void)
{
  const char *text = LIBRARY(
      BELOW(ARG("a", "DT_FLOAT")) UNARY("Bad", BODY("bad", "TestFail", "input: 'x'", SLOT("9")) RET("y", "bad:y:0"))
          FUNCTION("Body",
                   COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32")
                       RESULT("b", "DT_FLOAT"),
                   NEXT BODY("call", "Bad", "input: 'a'", "") RET("j", "next:z:0") RET("m", "n") RET("b", "call:y:0")))
      IN("x", "DT_FLOAT") COUNT("w", "While", "Below", "Body", "input: 'x'", F);
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out;
    ck_open(&t, level, text);
    CHECK_STATUS(ck_run(&t, 3, 1, "w:2", &out), TN_FAILED_PRECONDITION, &t.err);
    CHECK_STR(tn_error_message(&t.err), "node 'w/body/call/bad' (TestFail): told to fail");
    CHECK_STR(tn_error_node(&t.err), "w/body/call/bad");
    tn_error_clear(&t.err);
    CHECK_OK(ck_run(&t, 0, 1, "w:2", &out), &t.err); /* a body that did not run causes no error */
    CHECK(ts_float(out) == 1);
    tn_tensor_unref(out);
    ts_fini(&t);
  }
}

#define ENDLESS \
  LIBRARY(UNARY("Same", RET("y", "x")) FUNCTION("Ever", ARG("x", "DT_FLOAT") RESULT("go", "DT_BOOL"), \
          BODY("c", "Const", "", FILLED("DT_BOOL", "bool_val: true")) RET("go", "c:output:0"))) \
  IN("x", "DT_FLOAT") NODE("w", "While", "input: 'x'", TYPES("T", F) FUNC("cond", "Ever") FUNC("body", "Same"))

static void *cancel_soon(void *token)
{
  ts_sleep_ms(20);
  tn_cancellation_cancel(token);
  return NULL;
}

/* S-CAN-05, S-CAN-06 */
static void loops__end_with_the_step(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[1] = { NULL }, *in = ts_scalar(1);
    const char *const feeds[] = { "x" }, *const fetches[] = { "w" };
    ck_open(&t, level, ENDLESS);
    tn_run_options options;
    tn_run_options_init(&options);
    options.timeout_ms = 20;
    CHECK_STATUS(tn_session_run(t.session, &options, feeds, &in, 1, fetches, out, 1, NULL, 0, NULL, &t.err),
                 TN_DEADLINE_EXCEEDED, &t.err);
    tn_error_clear(&t.err);
    options.timeout_ms = 0;
    REQUIRE_OK(tn_cancellation_create(NULL, &options.cancellation, &t.err), &t.err);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, cancel_soon, options.cancellation) == 0);
    CHECK_STATUS(tn_session_run(t.session, &options, feeds, &in, 1, fetches, out, 1, NULL, 0, NULL, &t.err),
                 TN_CANCELLED, &t.err);
    pthread_join(thread, NULL);
    tn_cancellation_unref(options.cancellation);
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

/* ---- waiting ---- */

#define QUEUE \
  NODE("q", "FIFOQueueV2", "", TYPES("component_types", F) "attr { key: 'shared_name' value { s: 'waits' } }") \
  NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", TYPES("Tcomponents", F))
#define TAKE(name, result) \
  BODY(name, "QueueDequeueV2", "input: 'h'", TYPES("component_types", F)) RET(result, name ":components:0")
#define H "type: DT_RESOURCE "

/* A node that waits in a function lets the step continue, and resumes when woken: here the element
 * comes from the same step. */
static void loops__wait_inside(void)
{
  const char *text =
      LIBRARY(FUNCTION("Take", ARG("h", "DT_RESOURCE") RESULT("y", "DT_FLOAT"), TAKE("d", "y")) FUNCTION(
          "Deeper", ARG("h", "DT_RESOURCE") RESULT("y", "DT_FLOAT"),
          BODY("c", "StatefulPartitionedCall", "input: 'h'", FUNC("f", "Take") TYPES("Tin", H) TYPES("Tout", F))
              RET("y", "c:output:0")) BELOW(ARG("h", "DT_RESOURCE") ARG("s", "DT_FLOAT"))
                  FUNCTION("Total",
                           COUNTED(ARG("h", "DT_RESOURCE") ARG("s", "DT_FLOAT")) RESULT("j", "DT_INT32")
                               RESULT("m", "DT_INT32") RESULT("g", "DT_RESOURCE") RESULT("t", "DT_FLOAT"),
                           NEXT BODY("c", "Deeper", "input: 'h'", "")
                               BODY("a", "AddV2", "input: 's' input: 'c:y:0'", T("DT_FLOAT")) RET("j", "next:z:0")
                                   RET("m", "n") RET("g", "h") RET("t", "a:z:0"))) IN("x", "DT_FLOAT")
          QUEUE NODE("nil", "Const", "", FLOAT_OF("0"))
              COUNT("w", "While", "Below", "Total", "input: 'q' input: 'nil'", H F)
                  NODE("more", "QueueEnqueueV2", "input: 'q' input: 'x' input: '^put'", TYPES("Tcomponents", F));
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *in[2] = { NULL, ts_scalar(2.5f) }, *out[1] = { NULL };
    const char *const feeds[] = { "n", "x" }, *const fetches[] = { "w:3" }, *const targets[] = { "put", "more" };
    ck_open(&t, level, text);
    REQUIRE_OK(tn_tensor_create(TN_INT32, NULL, 0, &in[0], &t.err), &t.err);
    *(int32_t *)tn_tensor_data(in[0]) = 2;
    for (int i = 0; i < 3; i++) {
      CHECK_OK(tn_session_run(t.session, NULL, feeds, in, 2, fetches, out, 1, targets, 2, NULL, &t.err), &t.err);
      CHECK(ts_float(out[0]) == 5);
      tn_tensor_unref(out[0]);
      out[0] = NULL;
    }
    tn_run_options options; /* no element arrives: S-CAN-12 */
    tn_run_options_init(&options);
    options.timeout_ms = 20;
    CHECK_STATUS(tn_session_run(t.session, &options, feeds, in, 2, fetches, out, 1, NULL, 0, NULL, &t.err),
                 TN_DEADLINE_EXCEEDED, &t.err);
    tn_error_clear(&t.err);
    CHECK_OK(tn_session_run(t.session, NULL, feeds, in, 2, fetches, out, 1, targets, 2, NULL, &t.err), &t.err);
    CHECK(ts_float(out[0]) == 5);
    for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
    tn_tensor_unref(out[0]);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(loops__run),
  TAP_TEST(loops__whose_shapes_change),
  TAP_TEST(loops__swap_variables),
  TAP_TEST(loops__preserve_kept_tensors),
  TAP_TEST(loops__nest),
  TAP_TEST(loops__for_each_number_of_a_range),
  TAP_TEST(loops__need_live_variables),
  TAP_TEST(loops__name_the_node_that_failed),
  TAP_TEST(loops__end_with_the_step),
  TAP_TEST(loops__wait_inside))
