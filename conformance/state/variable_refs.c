/* SPDX-License-Identifier: Apache-2.0 */
/* Reference variables, variables of one step, and updates of parts of variables of either kind. */
#include "conformance/support/partial_kit.h"

#define AB VALUES("ab", 2, "float_val: 1 float_val: 2")
#define FEED_THREE(t, node) vk_feed(t, "x", 3, (const float[]){ 7, 8, 9 }, node)

/* ---- by reference ---- */

#define LAYER                                                                                                         \
  VARIABLE("v", "by_ref") AB ANY("x", "DT_FLOAT") NODE("is", "IsVariableInitialized", "input: 'v'", DT)               \
  NODE("read", "Identity", "input: 'v'", F) NODE("set", "Assign", "input: 'v' input: 'ab'", F)                        \
  NODE("add", "AssignAdd", "input: 'v' input: 'ab'", F) NODE("sub", "AssignSub", "input: 'add' input: 'ab'", F)       \
  NODE("same", "Assign", "input: 'v' input: 'x'", F)                                                                  \
  NODE("any", "Assign", "input: 'v' input: 'x'", F BOOL("validate_shape", "false"))                                   \
  INTS("at", D(2), "int_val: 1 int_val: 1") NODE("rows", "ScatterAdd", "input: 'v' input: 'at' input: 'ab'", F TI)    \
  NODE("ref", "RefIdentity", "input: 'v'", F) NODE("add_ref", "AssignAdd", "input: 'ref' input: 'ab'", F)

static void variable_refs__by_reference_have_a_shape_from_the_beginning(void) /* S-RUN-23 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, LAYER);
    CHECK(!vk_fetch_bool(&t, "is"));
    CHECK_INT(vk_fails(&t, "read"), TN_FAILED_PRECONDITION);
    CHECK_CONTAINS(tn_error_message(&t.err), "by_ref");
    CHECK_INT(vk_fails(&t, "add"), TN_FAILED_PRECONDITION);
    CHECK_INT(FEED_THREE(&t, "same"), TN_INVALID_ARGUMENT);
    CHECK(!vk_fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "set", 1, 2);
    CHECK(vk_fetch_bool(&t, "is"));
    CHECK_FLOATS(&t, "read", 1, 2);
    CHECK_FLOATS(&t, "add", 2, 4);
    CHECK_FLOATS(&t, "sub", 2, 4);
    CHECK_FLOATS(&t, "rows", 2, 7);
    CHECK_FLOATS(&t, "add_ref", 3, 9);
    CHECK_OK(FEED_THREE(&t, "any"), &t.err);
    CHECK_FLOATS(&t, "read", 7, 8, 9);
    CHECK_INT(vk_fails(&t, "add"), TN_INVALID_ARGUMENT);
    vk_fini(&t);
  }
}

#define COUNTER                                                                                                       \
  NODE("v", "VariableV2", "", TYPE("dtype", "DT_INT64") SHAPE("") TEXT_ATTR("shared_name", "counter"))                \
  TENSOR("0", "DT_INT64", "", "int64_val: 0") NODE("set", "Assign", "input: 'v' input: '0'", TYPE("T", "DT_INT64"))   \
  NODE("count", "CountUpTo", "input: 'v'", TYPE("T", "DT_INT64") INT("limit", 2))

static void variable_refs__are_counted_up_to_a_limit(void)
{
  ts t;
  vk_open(&t, 1, COUNTER);
  CHECK_INT(vk_fails(&t, "count"), TN_FAILED_PRECONDITION);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  for (int64_t i = 0; i < 2; i++) {
    tn_tensor *out = vk_fetch(&t, "count");
    CHECK_INT(*(const int64_t *)tn_tensor_data(out), i);
    tn_tensor_unref(out);
  }
  CHECK_INT(vk_fails(&t, "count"), TN_OUT_OF_RANGE);
  CHECK_CONTAINS(tn_error_message(&t.err), "limit of 2");
  vk_fini(&t);
}

#define TEMPORARY(name, var) NODE(name, "TemporaryVariable", "", DT SHAPE(D(2)) TEXT_ATTR("var_name", var))
#define TEMPORARIES                                                                                                   \
  AB TEMPORARY("a", "tmp") TEMPORARY("b", "tmp") NODE("set", "Assign", "input: 'a' input: 'ab'", F)                   \
  NODE("add", "AssignAdd", "input: 'set' input: 'ab'", F)                                                             \
  NODE("end", "DestroyTemporaryVariable", "input: 'add'", F TEXT_ATTR("var_name", "tmp"))                             \
  NODE("wrong", "DestroyTemporaryVariable", "input: 'set'", F TEXT_ATTR("var_name", "other"))                         \
  NODE("second", "Assign", "input: 'b' input: 'ab' input: '^set'", F)

static void variable_refs__of_a_step_end_with_it(void) /* S-RST-22 */
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, TEMPORARIES);
    for (int i = 0; i < 3; i++) CHECK_FLOATS(&t, "end", 2, 4);
    CHECK_INT(vk_fails(&t, "wrong"), TN_NOT_FOUND);
    CHECK_INT(vk_target(&t, "second"), TN_ALREADY_EXISTS);
    CHECK_CONTAINS(tn_error_message(&t.err), "'tmp'");
    vk_fini(&t);
  }
}

#define UNKNOWN NODE("v", "VariableV2", "", DT SHAPE(D(-1) D(2))) NODE("is", "IsVariableInitialized", "input: 'v'", DT)

static void variable_refs__need_a_shape(void)
{
  ts t;
  vk_open(&t, 1, UNKNOWN);
  CHECK_INT(vk_fails(&t, "is"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "[?,2]");
  vk_fini(&t);
}

/* ---- when references are read ---- */

#define TENS(name, inputs)    \
  NODE(name, "Const", inputs, \
       DT "attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 10 } } }")
/* [1,2] is doubled after "early" has read it; the length of the addend is known only in the step. */
#define CHANGE                                                                                                        \
  VARIABLE("v", "by_ref") AB NODE("set", "Assign", "input: 'v' input: 'ab'", F)                                       \
  NODE("early", "AddV2", "input: 'v' input: 'ab'", F) NODE("u", "Unique", "input: 'ab'", F)                         \
  NODE("add", "AssignAdd", "input: 'v' input: 'u' input: '^early'", F)

/* Fetches in a fresh session each, after "set". */
static void expect_reads(const char *text, const char *fetch, float a, float b)
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, text);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    CHECK_FLOATS(&t, fetch, a, b);
    vk_fini(&t);
  }
}

/* An op reads a variable when it runs: after all its other inputs have been computed. */
static void variable_refs__are_read_when_the_reader_runs(void)
{
  const char *constant = CHANGE TENS("k", "input: '^add'") NODE("y", "Mul", "input: 'v' input: 'k'", F);
  const char *data = CHANGE NODE("k", "Neg", "input: 'add'", F) NODE("y", "Sub", "input: 'v' input: 'k'", F);
  const char *other = CHANGE NODE("y", "Mul", "input: 'v' input: 'add'", F);
  const char *ref = CHANGE NODE("r", "RefIdentity", "input: 'v'", F) TENS("k", "input: '^add'")
      NODE("same", "Identity", "input: 'k'", F) NODE("y", "Mul", "input: 'r' input: 'same'", F);
  const char *three =
      CHANGE TENS("k", "input: '^add'") NODE("y", "AddN", "input: 'v' input: 'r' input: 'z'", F INT("N", 3))
          NODE("r", "Identity", "input: 'v' input: '^k'", F) NODE("z", "ZerosLike", "input: 'ab'", F);
  expect_reads(constant, "y", 20, 40);
  expect_reads(data, "y", 4, 8);
  expect_reads(other, "y", 4, 16);
  expect_reads(ref, "y", 20, 40);
  expect_reads(three, "y", 4, 8);
}

/* A reference is not read on a branch that is not taken, where it may hold nothing. */
static void variable_refs__are_not_read_for_a_dead_reader(void) /* S-EXE-06 */
{
  expect_reads(CHANGE VARIABLE("w", "unset") TENSOR("p", "DT_BOOL", "", "bool_val: false")
                   NODE("s", "Switch", "input: 'ab' input: 'p'", F) NODE("on", "Mul", "input: 'w' input: 's:1'", F)
                   NODE("off", "Neg", "input: 's'", F) NODE("y", "Merge", "input: 'off' input: 'on'", F INT("N", 2)),
               "y", -1, -2);
}

#define BODY(name, op, inputs, attrs) "node_def { name: '" name "' op: '" op "' " inputs " " attrs " }\n"
#define FLOATS(key) "attr { key: '" key "' value { list { type: DT_FLOAT } } }"
#define READS                                                                                                         \
  BODY("v", "VariableV2", "", DT SHAPE(D(2)) TEXT_ATTR("shared_name", "by_ref"))                                      \
  BODY("y", "AddV2", "input: 'v:ref:0' input: 'v:ref:0'", F)

static void variable_refs__are_read_when_a_function_runs(void)
{
  const char *reader = CHANGE
      "library { function { signature { name: 'Read' output_arg { name: 'y' type: DT_FLOAT } is_stateful: true } " READS
      "ret { key: 'y' value: 'y:z:0' } } function { signature { name: 'Whole' output_arg { name: 'y' type: DT_FLOAT } "
      "is_stateful: true } " READS "ret { key: 'y' value: 'v:ref:0' } } }" NODE(
          "call", "StatefulPartitionedCall", "input: '^add'",
          "attr { key: 'Tin' value { list { } } }" FLOATS("Tout") "attr { key: 'f' value { func { name: 'Read' } } }")
          NODE("y", "Identity", "input: 'call'", F)
              NODE("whole", "StatefulPartitionedCall", "input: '^add'",
                   "attr { key: 'Tin' value { list { } } }" FLOATS(
                       "Tout") "attr { key: 'f' value { func { name: 'Whole' } } }");
  expect_reads(reader, "y", 4, 8);
  expect_reads(reader, "whole", 2, 4);
}

#define FRAME TEXT_ATTR("frame_name", "w")
#define GOES_ROUND(name, from, next)                                                                \
  NODE(name "/enter", "Enter", "input: '" from "'", F FRAME)                                        \
  NODE(name "/exit", "Exit", "input: '" name "/switch'", F)                                         \
      NODE(name "/merge", "Merge", "input: '" name "/enter' input: '" name "/next'", F INT("N", 2)) \
          NODE(name "/switch", "Switch", "input: '" name "/merge' input: 'cond'", F)                \
              NODE(name "/body", "Identity", "input: '" name "/switch:1'", F)                       \
                  NODE(name "/next", "NextIteration", "input: '" next "'", F)
#define INVARIANT(name, op, from) NODE(name, op, "input: '" from "'", F FRAME BOOL("is_constant", "true"))

/* Three iterations: the sum of [2,4], [3,6] and [4,8]. */
static void variable_refs__are_read_in_each_turn_of_a_loop(void)
{
  expect_reads(
      CHANGE TENSOR("zero", "DT_FLOAT", "", "float_val: 0") TENS("ten", "") NODE("zeros", "ZerosLike", "input: 'ab'", F)
          GOES_ROUND("i", "zero", "more") GOES_ROUND("sum", "zeros", "total") INVARIANT("limit", "Enter", "ten")
              NODE("less", "Less", "input: 'i/merge' input: 'limit'", F) NODE("cond", "LoopCond", "input: 'less'", "")
                  TENSOR("4", "DT_FLOAT", "", "float_val: 4") INVARIANT("step", "Enter", "4")
                      NODE("more", "AddV2", "input: 'i/body' input: 'step'", F) INVARIANT("in", "RefEnter", "v")
                          INVARIANT("by", "Enter", "ab") NODE("now", "Neg", "input: 'in' input: '^i/body'", F)
                              NODE("grow", "AssignAdd", "input: 'in' input: 'by' input: '^now'", F)
                                  TENS("k", "input: '^grow'") NODE("none", "Sub", "input: 'k' input: 'k'", F)
                                      NODE("here", "AddV2", "input: 'in' input: 'none'", F)
                                          NODE("total", "AddV2", "input: 'sum/body' input: 'here'", F)
                                              NODE("y", "Identity", "input: 'sum/exit'", F),
      "y", 9, 18);
}

/* In a partial run an op runs when its input is fed. */
static void variable_refs__are_read_when_the_reader_is_fed(void) /* S-PR-02 */
{
  FOR_LEVELS(level)
  {
    ts t;
    tn_tensor *out[1];
    vk_open(&t, level,
            CHANGE ANY("x", "DT_FLOAT") NODE("nx", "Neg", "input: 'x'", F)
                NODE("y", "Mul", "input: 'v' input: 'nx'", F));
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    tn_partial_run run = pk_begin(&t, NAMES("x"), NAMES("y", "add"), NULL);
    CHECK_OK(pk_call(t.session, run, NULL, NAMES("add"), out, &t.err), &t.err);
    CHECK_DOUBLE(ts_float(out[0]), 2, 0);
    tn_tensor_unref(out[0]);
    CHECK_DOUBLE(pk_get(&t, run, FEEDS({ "x", 10 }), "y"), -20, 0);
    vk_fini(&t);
  }
}

/* ---- parts of variables ---- */

#define ROWS                                                                                                          \
  NODE("v", "VarHandleOp", "", DT SHAPE(D(2) D(2)) TEXT_ATTR("shared_name", "rows"))                                  \
  TENSOR("1234", "DT_FLOAT", D(2) D(2), "float_val: 1 float_val: 2 float_val: 3 float_val: 4") ANY("x", "DT_FLOAT")   \
  NODE("set", "AssignVariableOp", "input: 'v' input: '1234'", DT) NODE("read", "ReadVariableOp", "input: 'v'", DT)    \
  INTS("at", D(3), "int_val: 1 int_val: 9 int_val: 0") INTS("1", "", "int_val: 1") INTS("none", D(0), "")             \
  INTS("at2", D(2) D(2), "int_val: 1 int_val: 5 int_val: 0 int_val: 1")                                               \
  TENSOR("ten", "DT_FLOAT", "", "float_val: 10") VALUES("tens", 2, "float_val: 10 float_val: 20")                     \
  NODE("bad", "ResourceScatterAdd", "input: 'v' input: 'at' input: 'ten'", DT TI)                                     \
  NODE("row", "ResourceScatterUpdate", "input: 'v' input: '1' input: 'tens'", DT TI)                                  \
  NODE("odd", "ResourceScatterSub", "input: 'v' input: 'at' input: 'tens'", DT TI)                                    \
  NODE("bad_nd", "ResourceScatterNdAdd", "input: 'v' input: 'at2' input: 'tens'", F TI)                               \
  NODE("let_nd", "ResourceScatterNdAdd", "input: 'v' input: 'at2' input: 'tens'", F TI                                \
       TEXT_ATTR("bad_indices_policy", "IGNORE"))                                                                     \
  NODE("nothing", "ResourceScatterAdd", "input: 'v' input: 'none' input: 'ten'", DT TI)                               \
  NODE("gather", "ResourceGather", "input: 'v' input: '1'", DT TI)                                                    \
  NODE("far", "ResourceGather", "input: 'v' input: 'at'", DT TI)                                                      \
  NODE("nd", "ResourceGatherNd", "input: 'v' input: 'at2'", DT TI)

static void variable_refs__rows_change_at_indices(void)
{
  FOR_LEVELS(level)
  {
    ts t;
    vk_open(&t, level, ROWS);
    CHECK_INT(vk_target(&t, "bad"), TN_NOT_FOUND);
    REQUIRE_OK(vk_target(&t, "set"), &t.err);
    CHECK_INT(vk_target(&t, "bad"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "index 1 is 9 in dimension 0, wanted one in [0, 2)");
    CHECK_FLOATS(&t, "read", 1, 2, 13, 14); /* rows before the invalid index stay updated, as in TensorFlow */
    CHECK_OK(vk_target(&t, "row"), &t.err);
    CHECK_FLOATS(&t, "read", 1, 2, 10, 20);
    CHECK_INT(vk_target(&t, "odd"), TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "input 2 has shape [2], wanted [3,2] or a scalar");
    CHECK_INT(vk_target(&t, "bad_nd"), TN_INVALID_ARGUMENT);
    CHECK_FLOATS(&t, "read", 1, 22, 10, 20); /* here all other rows */
    CHECK_OK(vk_target(&t, "let_nd"), &t.err);
    CHECK_OK(vk_target(&t, "nothing"), &t.err);
    CHECK_FLOATS(&t, "gather", 10, 20);
    CHECK_INT(vk_fails(&t, "far"), TN_INVALID_ARGUMENT);
    CHECK_INT(vk_fails(&t, "nd"), TN_INVALID_ARGUMENT);
    CHECK_FLOATS(&t, "read", 1, 42, 10, 20);
    vk_fini(&t);
  }
}

#define INTEGERS                                                                                                    \
  NODE("v", "VarHandleOp", "", TYPE("dtype", "DT_INT32") SHAPE(D(2)) TEXT_ATTR("shared_name", "integers"))          \
  INTS("start", D(2), "int_val: -7 int_val: -2147483648") INTS("at", D(2), "int_val: 0 int_val: 1")                 \
  INTS("by", D(2), "int_val: 2 int_val: -1") INTS("zeros", D(2), "int_val: 1 int_val: 0")                           \
  NODE("set", "AssignVariableOp", "input: 'v' input: 'start'", TYPE("dtype", "DT_INT32"))                           \
  NODE("div", "ResourceScatterDiv", "input: 'v' input: 'at' input: 'by'", TYPE("dtype", "DT_INT32") TI)             \
  NODE("zero", "ResourceScatterDiv", "input: 'v' input: 'at' input: 'zeros'", TYPE("dtype", "DT_INT32") TI)         \
  NODE("read", "ReadVariableOp", "input: 'v'", TYPE("dtype", "DT_INT32"))

static void variable_refs__integers_are_divided_without_a_trap(void)
{
  ts t;
  vk_open(&t, 1, INTEGERS);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  CHECK_OK(vk_target(&t, "div"), &t.err);
  CHECK_INT(vk_target(&t, "zero"), TN_INVALID_ARGUMENT);
  tn_tensor *out = vk_fetch(&t, "read");
  const int32_t *x = tn_tensor_data(out);
  CHECK_INT(x[0], -3);
  CHECK_INT(x[1], INT32_MIN); /* wraps */
  tn_tensor_unref(out);
  vk_fini(&t);
}

#define SLICES                                                                                                      \
  ROWS INTS("0", D(1), "int_val: 0") INTS("2", D(1), "int_val: 2") INTS("step", D(1), "int_val: 1")                 \
  VALUES("three", 3, "float_val: 7")                                                                                \
  NODE("slice", "ResourceStridedSliceAssign", "input: 'v' input: '0' input: '2' input: 'step' input: 'ten'",        \
       F TYPE("Index", "DT_INT32"))                                                                                 \
  NODE("wide", "ResourceStridedSliceAssign", "input: 'v' input: '0' input: '2' input: 'step' input: 'three'",       \
       F TYPE("Index", "DT_INT32"))                                                                                 \
  NODE("long", "ResourceStridedSliceAssign", "input: 'v' input: 'at' input: '2' input: 'step' input: 'ten'",        \
       F TYPE("Index", "DT_INT32"))

static void variable_refs__slices_get_values(void)
{
  ts t;
  vk_open(&t, 1, SLICES);
  REQUIRE_OK(vk_target(&t, "set"), &t.err);
  CHECK_INT(vk_target(&t, "wide"), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "input 4 has shape [3], the slice of variable 'rows' has shape [2,2]");
  CHECK_INT(vk_target(&t, "long"), TN_INVALID_ARGUMENT);
  CHECK_OK(vk_target(&t, "slice"), &t.err);
  CHECK_FLOATS(&t, "read", 10, 10, 10, 10);
  vk_fini(&t);
}

/* ---- lack of memory ---- */

static void variable_refs__survive_every_failed_allocation(void) /* S-CAN-13 */
{
  tn_test_oom_sweep(vk_whole_life, (void *)LAYER);
}

TAP_MAIN(
    TAP_TEST(variable_refs__by_reference_have_a_shape_from_the_beginning),
    TAP_TEST(variable_refs__are_counted_up_to_a_limit),
    TAP_TEST(variable_refs__of_a_step_end_with_it),
    TAP_TEST(variable_refs__need_a_shape),
    TAP_TEST(variable_refs__are_read_when_the_reader_runs),
    TAP_TEST(variable_refs__are_not_read_for_a_dead_reader),
    TAP_TEST(variable_refs__are_read_when_a_function_runs),
    TAP_TEST(variable_refs__are_read_in_each_turn_of_a_loop),
    TAP_TEST(variable_refs__are_read_when_the_reader_is_fed),
    TAP_TEST(variable_refs__rows_change_at_indices),
    TAP_TEST(variable_refs__integers_are_divided_without_a_trap),
    TAP_TEST(variable_refs__slices_get_values),
    TAP_TEST(variable_refs__survive_every_failed_allocation))
