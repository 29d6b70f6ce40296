/* SPDX-License-Identifier: Apache-2.0 */
/* Function calls: by nodes of the function's name and by ops that take functions as attributes. */
#include <pthread.h>
#include <stdlib.h>

#include "conformance/support/calls_kit.h"

/* ---- calls ---- */

static void calls__by_name_and_by_attribute(void)
{
  const char *text = LIBRARY(TWICE SQUARE) IN("x", "DT_FLOAT") NODE("n", "Twice", "input: 'x'", "")
                     CALL("p", "PartitionedCall", "Square1", "n") CALL("s", "StatefulPartitionedCall", "Twice", "p");
  ck_expect(text, 3, "n", 6);
  ck_expect(text, 3, "p", 36);
  ck_expect(text, 3, "s", 72);
}

/* Functions that call functions that call others; one is called from several places. */
static void calls__nest(void)
{
  const char *text =
      LIBRARY(TWICE UNARY("Four", BODY("a", "Twice", "input: 'x'", "") BODY("b", "Twice", "input: 'a:y:0'", "")
                                      RET("y", "b:y:0"))
                  UNARY("Sixteen",
                        BODY("a", "PartitionedCall", "input: 'x'", FUNC("f", "Four") TYPES("Tin", F) TYPES("Tout", F))
                            BODY("b", "Four", "input: 'a:output:0'", "") RET("y", "b:y:0"))) IN("x", "DT_FLOAT")
          NODE("n", "Sixteen", "input: 'x'", "") NODE("m", "Four", "input: 'n'", "");
  ck_expect(text, 3, "n", 48);
  ck_expect(text, 3, "m", 192);
}

#define TIMES \
  "function { signature { name: 'Times' input_arg { name: 'a' type_attr: 'T' } input_arg { name: 'b' type_attr: 'T' }" \
  " output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } }" \
  BODY("p", "Mul", "input: 'a' input: 'b'", "attr { key: 'T' value { placeholder: 'T' } }") RET("y", "p:z:0") "}\n"

/* The call determines the type of a function; one function passes it on to the next, as an
 * attribute or under a name. */
static void calls__take_types_from_the_call(void)
{
  const char *text = LIBRARY(
      TIMES "function { signature { name: 'Cube' input_arg { name: 'a' type_attr: 'U' }" /**/
            " output_arg { name: 'y' type_attr: 'U' } attr { name: 'U' type: 'type' } }" BODY(
                "s", "Times", "input: 'a' input: 'a'", "attr { key: 'T' value { placeholder: 'U' } }")
                BODY("c", "PartitionedCall", "input: 's:y:0' input: 'a'",
                     "attr { key: 'f' value { func { name: 'Times' attr { key: 'T' value { placeholder: 'U' } } } } }"
                     "attr { key: 'Tin' value { list { type: DT_FLOAT type: DT_FLOAT } } }" TYPES("Tout", F))
                    RET("y", "c:output:0") "}\n") IN("x", "DT_FLOAT")
      NODE("i", "Cast", "input: 'x'",
           "attr { key: 'SrcT' value { type: DT_FLOAT } } "
           "attr { key: 'DstT' value { type: DT_INT32 } }") NODE("f", "Times", "input: 'x' input: 'x'", T("DT_FLOAT"))
          NODE("g", "Times", "input: 'i' input: 'i'", T("DT_INT32"))
              NODE("h", "Cast", "input: 'g'",
                   "attr { key: 'SrcT' value { type: DT_INT32 } } attr { key: 'DstT' value { type: DT_FLOAT } }")
                  NODE("c", "Cube", "input: 'x'", "attr { key: 'U' value { type: DT_FLOAT } }");
  ck_expect(text, 2.5f, "f", 6.25f);
  ck_expect(text, 2.5f, "h", 4);
  ck_expect(text, 3, "c", 27);
}

/* Arguments that are unused, and arguments returned unchanged, twice and in another order. */
static void calls__return_arguments_unchanged(void)
{
  const char *text =
      LIBRARY(FUNCTION("Swap",
                       ARG("a", "DT_FLOAT") ARG("b", "DT_FLOAT") ARG("c", "DT_FLOAT") RESULT("p", "DT_FLOAT")
                           RESULT("q", "DT_FLOAT") RESULT("r", "DT_FLOAT") RESULT("k", "DT_FLOAT"),
                       BODY("seven", "Const", "", FLOAT_OF("7")) RET("p", "b") RET("q", "a:0") RET("r", "b")
                           RET("k", "seven:output:0"))) IN("x", "DT_FLOAT") NODE("two", "Const", "", FLOAT_OF("2"))
          NODE("n", "Neg", "input: 'x'", T("DT_FLOAT")) NODE("s", "Swap", "input: 'x' input: 'n' input: 'two'", "");
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[5], *in = ts_scalar(4);
    ck_open(&t, level, text);
    const char *const feeds[] = { "x" }, *const fetches[] = { "s:0", "s:1", "s:2", "s:3", "x" };
    for (int i = 0; i < 5; i++) out[i] = NULL;
    CHECK_OK(tn_session_run(t.session, NULL, feeds, &in, 1, fetches, out, 5, NULL, 0, NULL, &t.err), &t.err);
    static const float wanted[] = { -4, 4, -4, 7, 4 };
    for (int i = 0; i < 5; i++) CHECK(ts_float(out[i]) == wanted[i]);
    for (int i = 0; i < 5; i++) { /* each belongs to the program alone */
      CHECK(tn_tensor_data(out[i]) != tn_tensor_data(in));
      for (int k = 0; k < i; k++) CHECK(tn_tensor_data(out[i]) != tn_tensor_data(out[k]));
    }
    for (int i = 0; i < 5; i++) tn_tensor_unref(out[i]);
    tn_tensor_unref(in);
    ts_fini(&t);
  }
}

static void calls__of_empty_functions(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, LIBRARY(FUNCTION("Nothing", "", "")) NODE("n", "Nothing", "", "")
              NODE("p", "PartitionedCall", "", FUNC("f", "Nothing") TYPES("Tin", "") TYPES("Tout", "")));
    CHECK_OK(ts_run(&t, NULL, NULL, NULL, NAMES("n", "p")), &t.err);
    ts_fini(&t);
  }
}

/* ---- effects ---- */

#define EFFECT(name, slot, after) BODY(name, "TestEffect", after, SLOT(slot))

/* Nodes with effects run whether or not an output needs them, in the order of their control edges.
 * Nodes named by a control output also run. Nodes without effects that are not needed do not. */
static void calls__run_effects_and_control_outputs(void)
{
  const char *text = LIBRARY(
      "function { signature { name: 'Acts' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' type: "
      "DT_FLOAT }"
      " control_output: 'done' }" /**/
      EFFECT("third", "3", "input: '^second'") EFFECT("second", "2", "input: '^first'") EFFECT(
          "first", "1", "input: '^x'") BODY("named", "TestPlain", "input: 'x'", SLOT("4"))
          BODY("unread", "TestPlain", "input: 'x'", SLOT("5")) "control_ret { key: 'done' value: 'named' } " RET(
              "y", "x") "}\n" UNARY("Outer", BODY("acts", "StatefulPartitionedCall", "input: 'x'",
                                                  FUNC("f", "Acts") TYPES("Tin", F) TYPES("Tout", F)) RET("y", "x")))
      IN("x", "DT_FLOAT") NODE("o", "Outer", "input: 'x'", "");
  FOR_LEVELS(level)
  {
    ts t;
    ck_open(&t, level, text);
    ts_watch_reset();
    CHECK(ts_run1(&t, FEEDS({ "x", 8 }), "o") == 8);
    CHECK_INT(ts_watched.n_log, 3);
    for (int i = 0; i < 3; i++) CHECK_INT(ts_watched.log[i], i + 1);
    CHECK_INT(ts_counted(4), 1);
    CHECK_INT(ts_counted(5), 0);
    ts_fini(&t);
  }
}

/* At level 0 a function has one plan however often it is called: the kernel of its node is created
 * once. */
static void calls__share_compiled_functions(void)
{
  char text[8000] = "library { " UNARY("F0", BODY("n", "TestCount", "input: 'x'", SLOT("7")) RET("y", "n:y:0")),
       one[600];
  for (int i = 1; i <= 12; i++) { /* each calls the one before it twice */
    snprintf(one, sizeof one,
             "function { signature { name: 'F%d' input_arg { name: 'x' type: DT_FLOAT } output_arg { name: 'y' "
             "type: DT_FLOAT } } node_def { name: 'a' op: 'F%d' input: 'x' } node_def { name: 'b' op: "
             "'PartitionedCall' input: "
             "'a:y:0' attr { key: 'f' value { func { name: 'F%d' } } } attr { key: 'Tin' value { list { type: DT_FLOAT "
             "} } } attr "
             "{ key: 'Tout' value { list { type: DT_FLOAT } } } } ret { key: 'y' value: 'b:output:0' } }\n",
             i, i - 1, i - 1);
    strcat(text, one);
  }
  strcat(text, "}\n" IN("x", "DT_FLOAT") NODE("n", "F12", "input: 'x'", ""));
  ts t;
  ck_open(&t, 0, text);
  ts_watch_reset();
  CHECK(ts_run1(&t, FEEDS({ "x", 5 }), "n") == 5);
  CHECK_INT(ts_counted(7), 4096);
  CHECK_INT(ts_watched.created[7], 1);
  ts_fini(&t);
  CHECK_INT(ts_watched.destroyed[7], 1);
}

/* ---- branches ---- */

#define BRANCHES(more) \
  LIBRARY(TWICE SQUARE UNARY("Minus", BODY("n", "Neg", "input: 'x'", T("DT_FLOAT")) RET("y", "n:y:0")) more)
#define IF(name, op, type, cond)                                                                                      \
  NODE(name, op, "input: '" cond "' input: 'x'",                                                                      \
       "attr { key: 'Tcond' value { type: " type " } }" TYPES("Tin", F) TYPES("Tout", F) FUNC("then_branch", "Twice") \
           FUNC("else_branch", "Square1"))
#define EMPTY(type)                                                                                  \
  "attr { key: 'dtype' value { type: " type " } } attr { key: 'value' value { tensor { dtype: " type \
  " tensor_shape { dim { "                                                                           \
  "size: 0 } } } } }"
/* A scalar is true if it is neither zero nor empty; any other tensor is true if it has elements. */
static void calls__take_one_of_two_branches(void)
{
  static const struct {
    const char *type, *value;
    bool yes;
  } cases[] = {
    { "DT_BOOL", "bool_val: true", true },       { "DT_BOOL", "bool_val: false", false },
    { "DT_INT32", "int_val: -3", true },         { "DT_INT64", "int64_val: 0", false },
    { "DT_FLOAT", "float_val: 0.5", true },      { "DT_DOUBLE", "double_val: 0", false },
    { "DT_FLOAT", "float_val: -0.0", false },    { "DT_HALF", "half_val: 32768", false }, /* minus zero */
    { "DT_HALF", "half_val: 1", true },          { "DT_COMPLEX64", "scomplex_val: 0 scomplex_val: 2", true },
    { "DT_STRING", "string_val: 'no'", true },   { "DT_STRING", "string_val: ''", false },
    { "DT_UINT8", "int_val: 1", true },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[4000];
    snprintf(text, sizeof text,
             BRANCHES("") IN("x", "DT_FLOAT") NODE("k", "Const", "", FILLED("%s", "%s")) IF("r", "%s", "%s", "k"),
             cases[i].type, cases[i].type, cases[i].value, i % 2 ? "If" : "StatelessIf", cases[i].type);
    ck_expect(text, 3, "r", cases[i].yes ? 6 : 9);
  }
  ck_expect(BRANCHES("") IN("x", "DT_FLOAT") NODE("k", "Const", "", EMPTY("DT_FLOAT")) IF("r", "If", "DT_FLOAT", "k"),
            3, "r", 9);
}

static void calls__take_a_branch_by_number(void)
{
  static const struct {
    const char *op, *number;
    float value;
  } cases[] = { { "Case", "0", 6 }, { "StatelessCase", "1", 9 }, { "Case", "2", -3 }, { "Case", "3", -3 },
                { "StatelessCase", "-1", -3 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[4000];
    snprintf(text, sizeof text,
             BRANCHES("") IN("x", "DT_FLOAT") NODE("k", "Const", "", INT_OF("%s"))
                 NODE("r", "%s", "input: 'k' input: 'x'",
                      TYPES("Tin", F)
                          TYPES("Tout", F) "attr { key: 'branches' value { list { func { "
                                           "name: 'Twice' } func { name: 'Square1' } func { name: 'Minus' } } } }"),
             cases[i].number, cases[i].op);
    ck_expect(text, 3, "r", cases[i].value);
  }
}

static void calls__run_only_the_branch_that_is_taken(void)
{
  const char *text = LIBRARY(UNARY("Yes", BODY("n", "TestCount", "input: 'x'", SLOT("1")) RET("y", "n:y:0"))
                                 UNARY("No", BODY("n", "TestCount", "input: 'x'", SLOT("2")) RET("y", "n:y:0")))
      IN("x", "DT_FLOAT") NODE("r", "If", "input: 'x' input: 'x'",
                               "attr { key: 'Tcond' value { type: DT_FLOAT } }" TYPES("Tin", F) TYPES("Tout", F)
                                   FUNC("then_branch", "Yes") FUNC("else_branch", "No"));
  ts t; /* S-EXE-12 */
  ck_open(&t, 1, text);
  ts_watch_reset();
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "r") == 2);
  CHECK(ts_run1(&t, FEEDS({ "x", 0 }), "r") == 0);
  CHECK(ts_run1(&t, FEEDS({ "x", 1 }), "r") == 1);
  CHECK_INT(ts_counted(1), 2);
  CHECK_INT(ts_counted(2), 1);
  ts_fini(&t);
}

/* ---- recursion ---- */

#define FACTORIAL                                                                                                      \
  UNARY("One", BODY("c", "Const", "", FLOAT_OF("1")) RET("y", "c:output:0"))                                           \
  UNARY("Step",                                                                                                        \
        BODY("one", "Const", "", FLOAT_OF("1")) BODY("less", "Sub", "input: 'x' input: 'one:output:0'", T("DT_FLOAT")) \
            BODY("again", "Fact", "input: 'less:z:0'", "")                                                             \
                BODY("m", "AddV2", "input: 'x' input: 'again:y:0'", T("DT_FLOAT")) RET("y", "m:z:0"))                  \
  UNARY("Fact", BODY("one", "Const", "", FLOAT_OF("1"))                                                                \
                    BODY("go", "Greater", "input: 'x' input: 'one:output:0'", T("DT_FLOAT"))                           \
                        BODY("r", "If", "input: 'go:z:0' input: 'x'",                                                  \
                             "attr { key: 'Tcond' value { type: DT_BOOL } }" TYPES("Tin", F) TYPES("Tout", F)          \
                                 FUNC("then_branch", "Step") FUNC("else_branch", "One")) RET("y", "r:output:0"))

/* A function may call itself. Unbounded recursion is an error, after which the session remains
 * usable. */
static void calls__recurse_to_a_limit(void)
{
  const char *text = LIBRARY(FACTORIAL) IN("x", "DT_FLOAT") NODE("f", "Fact", "input: 'x'", "");
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out = NULL;
    ck_open(&t, level, text);
    CHECK(ts_run1(&t, FEEDS({ "x", 5 }), "f") == 15);
    CHECK(ts_run1(&t, FEEDS({ "x", 100 }), "f") == 5050);
    CHECK_STATUS(ts_run(&t, FEEDS({ "x", 1000000 }), NAMES("f"), &out, NULL), TN_RESOURCE_EXHAUSTED, &t.err);
    CHECK_CONTAINS(tn_error_message(&t.err), "exceeds the maximum call depth of 400");
    CHECK_CONTAINS(tn_error_message(&t.err), "node 'f/r/then_branch/again/r/then_branch/again/");
    tn_error_clear(&t.err);
    CHECK(ts_run1(&t, FEEDS({ "x", 3 }), "f") == 6);
    ts_fini(&t);
  }
}

/* ---- errors ---- */

#define PC(f, inputs, tin, tout) \
  IN("x", "DT_FLOAT") NODE("c", "PartitionedCall", inputs, FUNC("f", f) TYPES("Tin", tin) TYPES("Tout", tout))

static void calls__mismatches_are_named(void)
{
  ck_expect_error(LIBRARY(TWICE) PC("Gone", "input: 'x'", F, F), 1, "c", TN_NOT_FOUND,
               "node 'c' (PartitionedCall): the graph has no function 'Gone'");
  ck_expect_error(LIBRARY(TWICE) PC("Twice", "input: 'x' input: 'x'", F F, F), 1, "c", TN_INVALID_ARGUMENT,
               "node 'c' (PartitionedCall): function 'Twice' takes 1 arguments, but is called with 2");
  ck_expect_error(LIBRARY(TWICE) PC("Twice", "input: 'x'", F, F F), 1, "c", TN_INVALID_ARGUMENT,
               "function 'Twice' returns 1 tensors, but the kernel expects 2");
  ck_expect_error(LIBRARY(TWICE) NODE("k", "Const", "", INT_OF("1")) PC("Twice", "input: 'k'", I, F), 1, "c",
               TN_INVALID_ARGUMENT, "function 'Twice': argument 0 must be float32, but is int32");
  ck_expect_error(LIBRARY(TWICE) PC("Twice", "input: 'x'", F, I), 1, "c", TN_INVALID_ARGUMENT,
               "the function returns float32 for output 0, which is int32");
  ck_expect_error(LIBRARY(TIMES) PC("Times", "input: 'x' input: 'x'", F F, F), 1, "c", TN_INVALID_ARGUMENT,
               "function 'Times': attribute 'T' (a type) is missing");
  ck_expect_error(LIBRARY(UNARY("Odd", BODY("n", "NoSuchOp", "input: 'x'", "") RET("y", "n:y:0")))
                   PC("Odd", "input: 'x'", F, F),
               1, "c", TN_NOT_FOUND, "node 'c/n': op 'NoSuchOp' is not registered");
  ck_expect_error(LIBRARY(UNARY("Ring", BODY("a", "AddV2", "input: 'x' input: 'b:z:0'", T("DT_FLOAT")) BODY(
                                         "b", "AddV2", "input: 'x' input: 'a:z:0'", T("DT_FLOAT")) RET("y", "b:z:0")))
                   PC("Ring", "input: 'x'", F, F),
               1, "c", TN_INVALID_ARGUMENT, "is part of a cycle");
  ck_expect_error(LIBRARY(UNARY("Wait", BODY("a", "Neg", "input: 'x' input: '^b'", T("DT_FLOAT"))
                                         BODY("b", "Neg", "input: 'x' input: '^a'", T("DT_FLOAT")) RET("y", "b:y:0")))
                   PC("Wait", "input: 'x'", F, F),
               1, "c", TN_INVALID_ARGUMENT, "is part of a cycle");
}

/* ---- gradients ---- */

/* The library names a function that is the gradient of another one. */
static void calls__of_gradients_that_the_library_names(void)
{
#define GRADIENT \
  NODE("g", "SymbolicGradient", "input: 'x' input: 'x'", FUNC("f", "Twice") TYPES("Tin", F F) TYPES("Tout", F))
  ck_expect(
      "library { " TWICE FUNCTION(
          "TwiceGrad", ARG("x", "DT_FLOAT") ARG("dy", "DT_FLOAT") RESULT("dx", "DT_FLOAT"),
          BODY("s", "AddV2", "input: 'dy' input: 'dy'", T("DT_FLOAT"))
              RET("dx", "s:z:0")) "gradient { function_name: 'Twice' gradient_func: 'TwiceGrad' } }" IN("x", "DT_FLOAT")
          GRADIENT,
      3, "g", 6);
}

#define OF(body) LIBRARY(UNARY("Twice", body)) IN("x", "DT_FLOAT") GRADIENT
#define TWO BODY("two", "Const", "", FLOAT_OF("2"))
#define B1(name, op, x) BODY(name, op, "input: '" x "'", T("DT_FLOAT"))
#define B2(name, op, x, y) BODY(name, op, "input: '" x "' input: '" y "'", T("DT_FLOAT"))

/* If the library names no gradient, one is derived from the body. The incoming gradient is also x. */
static void calls__of_gradients_that_are_made(void)
{
  ck_expect(LIBRARY(TWICE) IN("x", "DT_FLOAT") GRADIENT, 3, "g", 6);
  ck_expect(OF(B2("q", "Mul", "x", "x") B2("c", "Mul", "q:z:0", "x") TWO B2("l", "Mul", "two:output:0", "x")
                B2("p", "AddV2", "c:z:0", "l:z:0") RET("y", "p:z:0")),
         3, "g", (3 * 9 + 2) * 3);
  ck_expect(OF(B1("q", "Square", "x") B1("n", "Neg", "q:y:0") B2("d", "RealDiv", "n:y:0", "x") RET("y", "d:z:0")), 4,
            "g", -4);
  ck_expect(OF(TWO B2("d", "RealDiv", "two:output:0", "x") B1("i", "Identity", "d:z:0") RET("y", "i:output:0")), 4, "g",
         -2.f / 16 * 4);
  ck_expect(OF(TWO B2("s", "Sub", "two:output:0", "x") B1("r", "Relu", "s:z:0") RET("y", "r:activations:0")), 1, "g",
            -1);
  ck_expect(OF(TWO B2("s", "Sub", "two:output:0", "x") B1("r", "Relu", "s:z:0") RET("y", "r:activations:0")), 5, "g",
            0);
  ck_expect(OF(TWO RET("y", "two:output:0")), 5, "g", 0);
  ck_expect(OF(RET("y", "x")), 5, "g", 5);
  ck_expect_error(OF(B1("f", "Floor", "x") RET("y", "f:y:0")), 3, "g", TN_UNIMPLEMENTED,
               "function 'Twice': no gradient of op 'Floor' (node 'f') is known");
}

static void calls__on_a_device_that_is_named(void)
{
#define REMOTE(target)                                                                        \
  LIBRARY(TWICE)                                                                              \
  IN("x", "DT_FLOAT") NODE("k", "Const", "", FILLED("DT_STRING", "string_val: '" target "'")) \
      NODE("r", "RemoteCall", "input: 'k' input: 'x'", FUNC("f", "Twice") TYPES("Tin", F) TYPES("Tout", F))
  ck_expect(REMOTE(""), 3, "r", 6);
  ck_expect(REMOTE("/cpu:0"), 3, "r", 6);
  ck_expect(REMOTE("/job:localhost/replica:0/task:0/device:CPU:0"), 3, "r", 6);
  ck_expect_error(REMOTE("/job:worker/task:3/cpu:0"), 3, "r", TN_UNIMPLEMENTED,
               "'/job:worker/task:3/cpu:0' is not a device of this process");
}

/* ---- kernels that end before the functions they called ---- */

enum { FAILS, ENDS, GIVES_UP, WAITS };

static atomic_int n_without_error; /* calls of compute without an error object */

static tn_status hasty_create(const tn_operation *op, void **state, tn_error *err)
{
  int64_t how = 0;
  tn_status st = tn_operation_attr_int(op, "how", &how, err);
  *state = (void *)(intptr_t)how;
  return st;
}

static tn_status hasty_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  ctx->scratch_bytes = sizeof(tn_tensor *);
  return tn_prepare_dynamic(ctx, 0, err);
}

/* Passes x to its function, which waits. */
static tn_status hasty_compute(tn_kernel_ctx *ctx)
{
  intptr_t how = (intptr_t)ctx->state;
  tn_tensor **result = ctx->scratch;
  if (ctx->err == NULL) atomic_fetch_add(&n_without_error, 1);
  if (how == GIVES_UP && tn_kernel_cancelled(ctx))
    return tn_error_set(ctx->err, TN_CANCELLED, "it does not call its function");
  tn_status st = tn_kernel_call(ctx, 0, ctx->inputs, 1, result, 1);
  if (st == TN_PENDING && how == FAILS) return tn_error_set(ctx->err, TN_ABORTED, "it cannot wait");
  if (st == TN_PENDING && how == ENDS) st = tn_kernel_keep_input(ctx, 0, result);
  if (st != TN_OK) return st;
  st = tn_kernel_set_output(ctx, 0, *result);
  tn_tensor_unref(*result);
  return st;
}

static const tn_op_def hasty_op = { .struct_size = TN_OP_DEF_SIZE,
                                    .name = "TestHasty",
                                    .inputs = "x: T",
                                    .outputs = "y: T",
                                    .attrs = "T: {float}; f: func; how: int = 0",
                                    .traits = TN_TRAIT_STATEFUL | TN_TRAIT_DYNAMIC | TN_TRAIT_FUNCTION_CALL };
static const tn_kernel_def hasty_kernel = { .struct_size = TN_KERNEL_DEF_SIZE, .op = "TestHasty", .device = "CPU",
                                            .name = "hasty_cpu", .rank = TN_RANK_C, .create = hasty_create,
                                            .prepare = hasty_prepare, .compute = hasty_compute };
static const tn_op_family hasty_family = { .struct_size = TN_OP_FAMILY_SIZE,
                                           .name = "hasty",
                                           .ops = &hasty_op,
                                           .n_ops = 1,
                                           .kernels = &hasty_kernel,
                                           .n_kernels = 1 };

#define HASTY_QUEUE(node)                                                                                     \
  node("q", "FIFOQueueV2", "", "attr { key: 'component_types' value { list { type: DT_FLOAT } } }"            \
       "attr { key: 'shared_name' value { s: 'hasty' } } attr { key: 'shapes' value { list { shape { } } } }")
#define COMPONENTS(key) "attr { key: '" key "' value { list { type: DT_FLOAT } } }"
#define HASTY(name, f, how, in)                                                                               \
  NODE(name, "TestHasty", "input: '" in "'", T("DT_FLOAT") FUNC("f", f) " attr { key: 'how' value { i: " how " } }")
/* "Gets" waits for an element of the queue, "Outer" calls it, and "Rounds" calls it in a loop. */
#define HASTY_GRAPH                                                                                                   \
  LIBRARY(TWICE UNARY(                                                                                                \
      "Gets", HASTY_QUEUE(BODY) BODY("get", "QueueDequeueV2", "input: 'q:handle:0'", COMPONENTS("component_types"))   \
                  BODY("n", "AddV2", "input: 'get:components:0' input: 'x'", T("DT_FLOAT")) RET("y", "n:z:0"))        \
              UNARY("Outer", BODY("g", "StatefulPartitionedCall", "input: 'x'",                                       \
                                  FUNC("f", "Gets") TYPES("Tin", F) TYPES("Tout", F)) RET("y", "g:output:0"))         \
                  FUNCTION("Yes", ARG("x", "DT_FLOAT") RESULT("y", "DT_BOOL"),                                        \
                           BODY("c", "Const", "", FILLED("DT_BOOL", "bool_val: true")) RET("y", "c:output:0"))        \
                      UNARY("Rounds",                                                                                 \
                            BODY("w", "While", "input: 'x'", TYPES("T", F) FUNC("cond", "Yes") FUNC("body", "Outer")) \
                                RET("y", "w:output:0")))                                                              \
  IN("x", "DT_FLOAT")                                                                                                 \
  HASTY_QUEUE(NODE) NODE("put", "QueueEnqueueV2", "input: 'q' input: 'x'", COMPONENTS("Tcomponents"))                 \
      NODE("get", "QueueDequeueV2", "input: 'q'", COMPONENTS("component_types"))                                      \
          NODE("size", "QueueSizeV2", "input: 'q'", "")

static void register_hasty(void)
{
  static bool known;
  if (!known) REQUIRE_OK(tn_register_ops(&hasty_family, NULL), NULL);
  known = true;
}

static void open_hasty(ts *t, int level, const char *text)
{
  register_hasty();
  ck_open(t, level, text);
}

static tn_status run_hasty(ts *t, const char *fetch, int64_t timeout_ms, tn_error *err)
{
  const char *feed = "x";
  tn_tensor *x = ts_scalar(3), *out = NULL;
  tn_run_options options;
  tn_run_options_init(&options);
  options.timeout_ms = timeout_ms;
  tn_status st = tn_session_run(t->session, &options, &feed, &x, 1, &fetch, &out, 1, NULL, 0, NULL, err);
  CHECK(st == TN_OK || out == NULL);
  tn_tensor_unref(out);
  tn_tensor_unref(x);
  return st;
}

/* No call waits at the queue any more, so an enqueued element stays. */
static void check_queue(ts *t)
{
  const char *fetch = "size";
  tn_tensor *size = NULL;
  CHECK_OK(ts_run(t, FEEDS({ "x", 7 }), NULL, NULL, NAMES("put")), &t->err);
  CHECK_OK(tn_session_run(t->session, NULL, NULL, NULL, 0, &fetch, &size, 1, NULL, 0, NULL, &t->err), &t->err);
  CHECK(size != NULL && *(int32_t *)tn_tensor_data(size) == 1);
  if (size != NULL && *(int32_t *)tn_tensor_data(size) == 1) CHECK(ts_run1(t, NULL, "get") == 7);
  tn_tensor_unref(size);
}

static void calls__that_wait_end_with_their_kernel(void) /* S-CAN-02 */
{
  static const struct {
    const char *fetch, *message;
    tn_status status;
    int64_t timeout_ms;
  } cases[] = { { "fails", "it cannot wait", TN_ABORTED, 0 },
                { "ends", "node 'ends' (TestHasty): its kernel returned while a function that it called was waiting",
                  TN_INTERNAL, 0 },
                { "gives_up", "exceeded its time limit", TN_DEADLINE_EXCEEDED, 20 },
                { "round", "it cannot wait", TN_ABORTED, 0 } };
  FOR_LEVELS(level)
  {
    ts t;
    open_hasty(&t, level, HASTY_GRAPH HASTY("fails", "Outer", "0", "x") HASTY("ends", "Outer", "1", "x")
                          HASTY("gives_up", "Outer", "2", "x") HASTY("round", "Rounds", "0", "x"));
    for (size_t i = 0; i < 3 * sizeof cases / sizeof *cases; i++) {
      size_t k = i % (sizeof cases / sizeof *cases);
      tn_error_clear(&t.err);
      CHECK_STATUS(run_hasty(&t, cases[k].fetch, cases[k].timeout_ms, &t.err), cases[k].status, &t.err);
      CHECK_CONTAINS(tn_error_message(&t.err), cases[k].message);
      tn_error_clear(&t.err);
      check_queue(&t);
    }
    ts_clean(&t, NULL);
    ts_fini(&t);
  }
}

/* Kernels have an error object even if the program passes none. */
static void calls__have_an_error_object(void)
{
  ts t;
  open_hasty(&t, 1, HASTY_GRAPH HASTY("fails", "Gets", "0", "x") HASTY("waits", "Rounds", "3", "x"));
  atomic_store(&n_without_error, 0);
  CHECK_INT(run_hasty(&t, "fails", 0, NULL), TN_ABORTED);
  CHECK_INT(run_hasty(&t, "waits", 20, NULL), TN_DEADLINE_EXCEEDED);
  CHECK_INT(atomic_load(&n_without_error), 0);
  ts_clean(&t, NULL);
  ts_fini(&t);
}

/* A call that waits resumes in memory of its own, even if the step failed for lack of memory. */
static void calls__that_wait_keep_their_memory(void)
{
  const char *text = HASTY_GRAPH HASTY("waits", "Gets", "3", "x") HASTY("first", "Twice", "3", "x")
      NODE("dims", "Const", "",
           "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: "
           "DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1000000 } } }")
          NODE("many", "Fill", "input: 'dims' input: 'first'", T("DT_FLOAT"))
              NODE("large", "Cumsum", "input: 'many' input: 'zero'", T("DT_FLOAT"))
                  NODE("zero", "Const", "", INT_OF("0"))
                      NODE("sum", "Sum", "input: 'large' input: 'zero'", T("DT_FLOAT"));
  FOR_LEVELS(level)
  {
    const tn_import_options import = { .struct_size = sizeof import, .flags = TN_IMPORT_TEXT };
    ts t;
    tn_tensor *out[2] = { NULL, NULL };
    register_hasty();
    ts_init(&t, level);
    REQUIRE_OK(tn_graph_import(t.graph, text, strlen(text), &import, &t.err), &t.err);
    REQUIRE_OK(tn_session_options_set_int(t.options, "memory_limit_bytes", 1 << 20, &t.err), &t.err);
    ts_start(&t);
    for (int i = 0; i < 3; i++) {
      CHECK_STATUS(ts_run(&t, FEEDS({ "x", 1 }), NAMES("waits", "sum"), out, NULL), TN_RESOURCE_EXHAUSTED, &t.err);
      tn_error_clear(&t.err);
      check_queue(&t);
    }
    ts_clean(&t, NULL);
    ts_fini(&t);
  }
}

/* ---- threads and memory ---- */

static void *run_many(void *arg)
{
  ts *t = arg;
  for (int i = 0; i < 50; i++) {
    tn_error err = TN_ERROR_INIT;
    tn_tensor *out[1] = { NULL }, *in = ts_scalar((float)(i % 20 + 1));
    const char *const feeds[] = { "x" }, *const fetches[] = { "f" };
    CHECK_OK(tn_session_run(t->session, NULL, feeds, &in, 1, fetches, out, 1, NULL, 0, NULL, &err), &err);
    int n = i % 20 + 1;
    CHECK(ts_float(out[0]) == (float)(n * (n + 1) / 2));
    tn_tensor_unref(out[0]);
    tn_tensor_unref(in);
    tn_error_clear(&err);
  }
  return NULL;
}

static void calls__of_several_steps_at_once(void)
{
  ts t;
  pthread_t threads[4];
  ck_open(&t, 1, LIBRARY(FACTORIAL) IN("x", "DT_FLOAT") NODE("f", "Fact", "input: 'x'", ""));
  for (int i = 0; i < 4; i++) REQUIRE(pthread_create(&threads[i], NULL, run_many, &t) == 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  ts_fini(&t);
}

typedef struct sweep {
  tn_graph *graph;
  tn_session_options *options;
} sweep;

static tn_status all_of_it(void *arg)
{
  const sweep *s = arg;
  tn_session *session = NULL;
  tn_tensor *out[2] = { NULL, NULL }, *in[2] = { NULL, NULL };
  const char *const feeds[] = { "x", "n" }, *const fetches[] = { "f", "w:2" };
  tn_status st = tn_session_create(s->options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, s->graph, NULL);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, NULL, 0, &in[0], NULL);
  if (st == TN_OK) st = tn_tensor_create(TN_INT32, NULL, 0, &in[1], NULL);
  if (st == TN_OK) *(float *)tn_tensor_data(in[0]) = 4;
  if (st == TN_OK) *(int32_t *)tn_tensor_data(in[1]) = 5;
  if (st == TN_OK) st = tn_session_run(session, NULL, feeds, in, 2, fetches, out, 2, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK(ts_float(out[0]) == 10 && ts_float(out[1]) == 4 * 32);
  for (int i = 0; i < 2; i++) tn_tensor_unref(out[i]);
  for (int i = 0; i < 2; i++) tn_tensor_unref(in[i]);
  tn_session_destroy(session);
  return st;
}

static void calls__survive_lack_of_memory(void)
{
  const char *text = LIBRARY(FACTORIAL BELOW(ARG("a", "DT_FLOAT")) FUNCTION(
      "Body", COUNTED(ARG("a", "DT_FLOAT")) RESULT("j", "DT_INT32") RESULT("m", "DT_INT32") RESULT("b", "DT_FLOAT"),
      NEXT BODY("d", "AddV2", "input: 'a' input: 'a' input: '^next'", T("DT_FLOAT")) RET("j", "next:z:0") RET("m", "n")
          RET("b", "d:z:0"))) IN("x", "DT_FLOAT") NODE("f", "Fact", "input: 'x'", "")
      COUNT("w", "While", "Below", "Body", "input: 'x'", F);
  ts t;
  ck_open(&t, 1, text);
  sweep s = { t.graph, t.options };
  tn_test_oom_sweep(all_of_it, &s);
  ts_fini(&t);
}

static tn_status gradient_of_it(void *arg)
{
  const sweep *s = arg;
  tn_session *session = NULL;
  tn_tensor *out[1] = { NULL }, *in[1] = { NULL };
  const char *const feeds[] = { "x" }, *const fetches[] = { "g" };
  tn_status st = tn_session_create(s->options, &session, NULL);
  if (st == TN_OK) st = tn_session_set_graph(session, s->graph, NULL);
  if (st == TN_OK) st = tn_tensor_create(TN_FLOAT, NULL, 0, &in[0], NULL);
  if (st == TN_OK) *(float *)tn_tensor_data(in[0]) = 3;
  if (st == TN_OK) st = tn_session_run(session, NULL, feeds, in, 1, fetches, out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK(ts_float(out[0]) == 18);
  tn_tensor_unref(out[0]);
  tn_tensor_unref(in[0]);
  tn_session_destroy(session);
  return st;
}

static void calls__make_gradients_without_memory(void)
{
  ts t;
  ck_open(&t, 1, OF(B1("q", "Square", "x") RET("y", "q:y:0")));
  sweep s = { t.graph, t.options };
  tn_test_oom_sweep(gradient_of_it, &s);
  ts_fini(&t);
}

/* Sessions are created and destroyed; the graph does not grow (S-LIFE-12). */
static void calls__leave_nothing_in_the_graph(void)
{
  ts t;
  ck_open(&t, 1, LIBRARY(FACTORIAL) IN("x", "DT_FLOAT") NODE("f", "Fact", "input: 'x'", ""));
  uint64_t bytes = 0;
  for (int i = 0; i < 20; i++) {
    tn_session *session;
    tn_tensor *out[1] = { NULL }, *in = ts_scalar(20);
    const char *const feeds[] = { "x" }, *const fetches[] = { "f" };
    REQUIRE_OK(tn_session_create(t.options, &session, &t.err), &t.err);
    REQUIRE_OK(tn_session_set_graph(session, t.graph, &t.err), &t.err);
    CHECK_OK(tn_session_run(session, NULL, feeds, &in, 1, fetches, out, 1, NULL, 0, NULL, &t.err), &t.err);
    tn_tensor_unref(in);
    tn_tensor_unref(out[0]);
    tn_session_destroy(session);
    if (i == 1) bytes = tn_test_live_bytes();
    if (i > 1) CHECK_INT(tn_test_live_bytes(), bytes);
  }
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(calls__by_name_and_by_attribute),
  TAP_TEST(calls__nest),
  TAP_TEST(calls__take_types_from_the_call),
  TAP_TEST(calls__return_arguments_unchanged),
  TAP_TEST(calls__of_empty_functions),
  TAP_TEST(calls__run_effects_and_control_outputs),
  TAP_TEST(calls__share_compiled_functions),
  TAP_TEST(calls__take_one_of_two_branches),
  TAP_TEST(calls__take_a_branch_by_number),
  TAP_TEST(calls__run_only_the_branch_that_is_taken),
  TAP_TEST(calls__recurse_to_a_limit),
  TAP_TEST(calls__mismatches_are_named),
  TAP_TEST(calls__of_gradients_that_the_library_names),
  TAP_TEST(calls__of_gradients_that_are_made),
  TAP_TEST(calls__on_a_device_that_is_named),
  TAP_TEST(calls__that_wait_end_with_their_kernel),
  TAP_TEST(calls__have_an_error_object),
  TAP_TEST(calls__that_wait_keep_their_memory),
  TAP_TEST(calls__of_several_steps_at_once),
  TAP_TEST(calls__survive_lack_of_memory),
  TAP_TEST(calls__make_gradients_without_memory),
  TAP_TEST(calls__leave_nothing_in_the_graph))
