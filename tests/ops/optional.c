/* SPDX-License-Identifier: Apache-2.0 */
/* Optionals: values that may be missing. */
#include "conformance/support/op_kit.h"

#define SHAPES(...) "attr { key: 'output_shapes' value { list { " __VA_ARGS__ " } } }"
#define TYPES(key, ...) "attr { key: '" key "' value { list { " __VA_ARGS__ " } } }"
#define ANY_SHAPE "shape { unknown_rank: true } "
#define GET(name, types, shapes) \
  NODE(name, "OptionalGetValue", "input: 'o'", TYPES("output_types", types) SHAPES(shapes))
#define GRAPH                                                                                                         \
  TENSOR("12", "DT_FLOAT", D(2), "float_val: 1 float_val: 2") INTS("7", "", "int_val: 7")                             \
  NODE("o", "OptionalFromValue", "input: '12' input: '7'", TYPES("Toutput_types", "type: DT_FLOAT type: DT_INT32"))   \
  NODE("none", "OptionalNone", "", "") NODE("has", "OptionalHasValue", "input: 'o'", "")                              \
  NODE("has_not", "OptionalHasValue", "input: 'none'", "")                                                            \
  GET("get", "type: DT_FLOAT type: DT_INT32", "shape { " D(-1) "} shape { }")                                         \
  GET("types", "type: DT_INT32 type: DT_INT32", ANY_SHAPE ANY_SHAPE)                                                  \
  GET("shapes", "type: DT_FLOAT type: DT_INT32", "shape { " D(3) "} " ANY_SHAPE)                                      \
  GET("count", "type: DT_FLOAT", ANY_SHAPE)                                                                           \
  NODE("missing", "OptionalGetValue", "input: 'none'", TYPES("output_types", "type: DT_FLOAT") SHAPES(ANY_SHAPE))

static void optionals__have_values_or_none(void)
{
  ts t;
  tn_tensor *out[4];
  ops_open_text(&t, GRAPH);
  for (int step = 0; step < 2; step++) {
    REQUIRE_OK(ts_run(&t, NULL, NAMES("get", "get:1", "has", "has_not"), out, NULL), &t.err);
    CHECK_DOUBLE(((const float *)tn_tensor_data(out[0]))[1], 2, 0);
    CHECK_INT(*(const int32_t *)tn_tensor_data(out[1]), 7);
    CHECK_INT(*(const uint8_t *)tn_tensor_data(out[2]), 1);
    CHECK_INT(*(const uint8_t *)tn_tensor_data(out[3]), 0);
    for (int i = 0; i < 4; i++) tn_tensor_unref(out[i]);
  }
  CHECK_STR(ops_shape_of(&t, "get", 0), "[?]");
  CHECK_STR(ops_shape_of(&t, "o", 0), "[]");
  ts_fini(&t);
}

static void fails(ts *t, const char *name, const char *message)
{
  tn_tensor *out[1] = { NULL };
  CHECK_INT(ts_run(t, NULL, NAMES(name), out, NULL), TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t->err), name);
  CHECK_CONTAINS(tn_error_message(&t->err), message);
}

static void optionals__errors_name_mismatches(void)
{
  ts t;
  ops_open_text(&t, GRAPH);
  fails(&t, "types", "value 0 of the optional is float32 [2], wanted int32");
  fails(&t, "shapes", "wanted float32 [3]");
  fails(&t, "count", "has 2 values, wanted 1");
  fails(&t, "missing", "has no value");
  ts_fini(&t);
}

static tn_status run_step(void *arg)
{
  ts *t = arg;
  tn_tensor *out[2] = { NULL };
  tn_status st = tn_session_run(t->session, NULL, NULL, NULL, 0, NAMES("get", "has"), out, 2, NULL, 0, NULL, NULL);
  tn_tensor_unref(out[0]);
  tn_tensor_unref(out[1]);
  return st;
}

static void optionals__survive_failing_allocations(void)
{
  ts t;
  ops_open_text(&t, GRAPH);
  tn_test_oom_sweep(run_step, &t);
  ts_fini(&t);
}

TAP_MAIN(
    TAP_TEST(optionals__have_values_or_none),
    TAP_TEST(optionals__errors_name_mismatches),
    TAP_TEST(optionals__survive_failing_allocations))
