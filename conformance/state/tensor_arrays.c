/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor arrays: values written are read in the same step, once or repeatedly; gradients; handles
 * of all three versions. */
#include "conformance/support/op_kit.h"

#define DT TYPE("dtype", "DT_FLOAT")
#define ON(key) "attr { key: '" key "' value { b: true } }"
#define OFF(key) "attr { key: '" key "' value { b: false } }"
#define SHAPE(key, dims) "attr { key: '" key "' value { shape { " dims " } } }"
#define TEXT_ATTR(key, text) "attr { key: '" key "' value { s: '" text "' } }"
#define ARRAY(name, size, attrs) NODE(name, "TensorArrayV3", "input: '" size "'", DT attrs)
#define WRITE(name, array, index, value, flow) \
  NODE(name, "TensorArrayWriteV3", "input: '" array "' input: '" index "' input: '" value "' input: '" flow "'", F)
#define READ(name, array, index, flow) \
  NODE(name, "TensorArrayReadV3", "input: '" array "' input: '" index "' input: '" flow "'", DT)
#define SIZE(name, array, flow) NODE(name, "TensorArraySizeV3", "input: '" array "' input: '" flow "'", "")
#define GATHER(name, array, indices, flow) \
  NODE(name, "TensorArrayGatherV3", "input: '" array "' input: '" indices "' input: '" flow "'", DT)
#define GRAD(name, array, flow) \
  NODE(name, "TensorArrayGradV3", "input: '" array "' input: '" flow "'", TEXT_ATTR("source", "gradients"))
#define BASIC                                                                                                      \
  INTS("0", "", "int_val: 0") INTS("1", "", "int_val: 1") INTS("2", "", "int_val: 2") INTS("5", "", "int_val: 5")  \
  INTS("m1", "", "int_val: -1") INTS("01", D(2), "int_val: 0 int_val: 1") INTS("none", D(0), "") ANY("x", "DT_FLOAT") \
  NODE("xx", "Add", "input: 'x' input: 'x'", F) TENSOR("12", "DT_FLOAT", D(2), "float_val: 1 float_val: 2")

/* The first element of a fetch, float or int32. */
static double fetched(ts *t, const char *name)
{
  tn_tensor *out[1];
  if (ts_run(t, FEEDS({ "x", 5 }), NAMES(name), out, NULL) != TN_OK) return NAN;
  const void *data = tn_tensor_data(out[0]);
  double v = tn_tensor_dtype(out[0]) == TN_FLOAT ? (double)*(const float *)data : *(const int32_t *)data;
  tn_tensor_unref(out[0]);
  return v;
}

static void fails_with(ts *t, const char *name, tn_status wanted, const char *message)
{
  tn_tensor *out[1] = { NULL };
  CHECK_STATUS(ts_run(t, FEEDS({ "x", 5 }), NAMES(name), out, NULL), wanted, &t->err);
  CHECK_CONTAINS(tn_error_message(&t->err), message);
  CHECK_CONTAINS(tn_error_message(&t->err), "node '");
  CHECK_NULL(out[0]);
}

static void fails(ts *t, const char *name, const char *message) { fails_with(t, name, TN_INVALID_ARGUMENT, message); }

static void tensor_arrays__give_what_was_written(void)
{
  ts t;
  ops_open_text(&t, BASIC ARRAY("a", "2", OFF("clear_after_read")) WRITE("w0", "a", "0", "x", "a:1")
                    WRITE("w1", "a", "1", "xx", "w0") READ("r1", "a", "1", "w1") READ("again", "a", "1", "w1")
                    GATHER("g", "a", "01", "w1") SIZE("n", "a", "w1")
                    ARRAY("d", "1", ON("dynamic_size") SHAPE("element_shape", ""))
                    WRITE("wd", "d", "5", "x", "d:1") SIZE("nd", "d", "wd") READ("zero", "d", "2", "wd"));
  for (int step = 0; step < 3; step++) { /* each step has its own array */
    CHECK_DOUBLE(fetched(&t, "r1"), 10, 0);
    CHECK_DOUBLE(fetched(&t, "again"), 10, 0);
    CHECK_DOUBLE(fetched(&t, "g"), 5, 0);
    CHECK_DOUBLE(fetched(&t, "n"), 2, 0);
    CHECK_DOUBLE(fetched(&t, "nd"), 6, 0);
    CHECK_DOUBLE(fetched(&t, "zero"), 0, 0);
  }
  ts_fini(&t);
}

static void tensor_arrays__report_errors(void)
{
  ts t;
  ops_open_text(&t, BASIC ARRAY("a", "2", TEXT_ATTR("tensor_array_name", "outs") SHAPE("element_shape", ""))
                    WRITE("w", "a", "0", "x", "a:1") WRITE("w2", "a", "0", "x", "w") WRITE("far", "a", "5", "x", "w")
                    WRITE("below", "a", "m1", "x", "w") WRITE("shape", "a", "1", "12", "w") READ("r", "a", "0", "w")
                    NODE("r2", "TensorArrayReadV3", "input: 'a' input: '0' input: 'w' input: '^r'", DT)
                    NODE("w3", "TensorArrayWriteV3", "input: 'a' input: '0' input: 'x' input: 'w' input: '^r'", F)
                    READ("out", "a", "2", "w") ARRAY("minus", "m1", "") ARRAY("vector", "01", "") ARRAY("b", "2", "")
                    READ("unknown", "b", "0", "b:1") GATHER("empty", "b", "none", "b:1")
                    NODE("int", "TensorArrayReadV3", "input: 'b' input: '0' input: 'b:1'", TYPE("dtype", "DT_INT32"))
                    NODE("end", "TensorArrayCloseV3", "input: 'b'", "")
                    NODE("closed", "TensorArraySizeV3", "input: 'b' input: 'b:1' input: '^end'", "")
                    NODE("v", "VarHandleOp", "", DT SHAPE("shape", "")) READ("other", "v", "0", "a:1"));
  fails(&t, "w2", "'outs': element 0 is written a second time");
  fails(&t, "far", "element 5 is written, the array has 2 and does not grow");
  fails(&t, "below", "element -1 is written");
  fails(&t, "shape", "a tensor of shape [2] is written to element 1, elements have []");
  fails(&t, "r2", "element 0 is read a second time");
  fails(&t, "w3", "written after it was read");
  fails(&t, "out", "element 2 is read, the array has 2");
  fails(&t, "minus", "is -1, wanted 0 or more");
  fails(&t, "vector", "input 0 has shape [2]");
  fails(&t, "unknown", "shape of elements is unknown rank");
  fails_with(&t, "empty", TN_UNIMPLEMENTED, "no elements are selected");
  fails(&t, "int", "dtype float32, the op's is int32");
  fails(&t, "closed", "'b' has been closed");
  fails(&t, "other", "wanted a TensorArray");
  ts_fini(&t);
}

#define PIECES                                                                                                       \
  BASIC ARRAY("a", "2", "") INTS("45", D(2) D(1), "int_val: 4 int_val: 5")                                           \
  NODE("rows", "Cast", "input: '45'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT"))                             \
  INTS("10", D(2), "int_val: 1 int_val: 0")                                                                          \
  NODE("s", "TensorArrayScatterV3", "input: 'a' input: '10' input: 'rows' input: 'a:1'", F)                          \
  NODE("c", "TensorArrayConcatV3", "input: 'a' input: 's'", DT) ARRAY("b", "2", "")                                  \
  NODE("l", "Cast", "input: '02'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_INT64"))                                \
  INTS("02", D(2), "int_val: 0 int_val: 2")                                                                          \
  NODE("p", "TensorArraySplitV3", "input: 'b' input: 'rows' input: 'l' input: 'b:1'", F) READ("p1", "b", "1", "p")

static void tensor_arrays__are_filled_and_read_as_a_whole(void)
{
  ts t;
  tn_tensor *out[3];
  ops_open_text(&t, PIECES);
  for (int step = 0; step < 2; step++) {
    REQUIRE_OK(ts_run(&t, NULL, NAMES("c", "c:1", "p1"), out, NULL), &t.err);
    CHECK_INT(tn_tensor_elements(out[0]), 2);
    CHECK_DOUBLE(((const float *)tn_tensor_data(out[0]))[0], 5, 0);
    CHECK_DOUBLE(((const float *)tn_tensor_data(out[0]))[1], 4, 0);
    CHECK_INT(((const int64_t *)tn_tensor_data(out[1]))[1], 1);
    CHECK_INT(tn_tensor_dims(out[2])[0], 2);
    CHECK_DOUBLE(((const float *)tn_tensor_data(out[2]))[1], 5, 0);
    for (int i = 0; i < 3; i++) tn_tensor_unref(out[i]);
  }
  ts_fini(&t);
}

static void tensor_arrays__gradients_add_up(void)
{
  ts t;
  ops_open_text(&t, BASIC ARRAY("a", "2", ON("dynamic_size")) WRITE("w", "a", "0", "x", "a:1") GRAD("g", "a", "w")
                        WRITE("g1", "g", "0", "x", "g:1") WRITE("g2", "g", "0", "xx", "g1") GRAD("same", "a", "g2")
                            WRITE("g3", "same", "0", "xx", "same:1") READ("sum", "g", "0", "g3") GRAD("fresh", "a", "w")
                                READ("zeros", "fresh", "0", "fresh:1")
                                    NODE("grow", "TensorArrayWriteV3",
                                         "input: 'a' input: '5' input: 'x' input: 'w' input: '^g'", F)
                                        NODE("shape", "TensorArrayGradWithShape", "input: 'a' input: 'w' input: '45'",
                                             TEXT_ATTR("source", "s")) INTS("45", D(2), "int_val: 4 int_val: 5")
                                            READ("more", "shape", "0", "shape:1") GRAD("second", "g", "g:1")
                                                WRITE("bad", "g", "0", "12", "g1"));
  CHECK_DOUBLE(fetched(&t, "sum"), 5 + 10 + 10, 0);
  CHECK_DOUBLE(fetched(&t, "zeros"), 0, 0);
  fails(&t, "grow", "does not grow");
  fails(&t, "second:1", "one of gradients");
  fails(&t, "bad", "where the sum so far has []");
  tn_tensor *out[1];
  REQUIRE_OK(ts_run(&t, FEEDS({ "x", 5 }), NAMES("more"), out, NULL), &t.err);
  CHECK_INT(tn_tensor_elements(out[0]), 20);
  tn_tensor_unref(out[0]);
  ts_fini(&t);
}

/* Handles of two strings, and by reference. */
static void tensor_arrays__older_versions_find_them_in_the_step(void)
{
  ts t;
  ops_open_text(&t, BASIC NODE("a", "TensorArrayV2", "input: '2'", DT TEXT_ATTR("tensor_array_name", "old"))
                    NODE("f", "Cast", "input: '0'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT"))
                    NODE("w", "TensorArrayWriteV2", "input: 'a' input: '0' input: 'x' input: 'f'", F)
                    NODE("r", "TensorArrayReadV2", "input: 'a' input: '0' input: 'w'", DT)
                    NODE("g", "TensorArrayGradV2", "input: 'a' input: 'w'", TEXT_ATTR("source", "gradients"))
                    NODE("gw", "TensorArrayWriteV2", "input: 'g' input: '0' input: 'xx' input: 'w'", F)
                    NODE("gr", "TensorArrayReadV2", "input: 'g' input: '0' input: 'gw'", DT)
                    NODE("b", "TensorArray", "input: '2'", DT)
                    NODE("bw", "TensorArrayWrite", "input: 'b' input: '1' input: 'x' input: 'f'", F)
                    NODE("bn", "TensorArraySize", "input: 'b' input: 'bw'", "")
                    NODE("br", "TensorArrayRead", "input: 'b' input: '1' input: 'bw'", DT)
                    NODE("bg", "TensorArrayGrad", "input: 'b' input: 'bw'", TEXT_ATTR("source", "gradients"))
                    NODE("bgw", "TensorArrayWrite", "input: 'bg' input: '1' input: 'xx' input: 'bw'", F)
                    NODE("bgr", "TensorArrayRead", "input: 'bg' input: '1' input: 'bgw'", DT)
                    NODE("c", "TensorArray", "input: '2'", DT)
                    NODE("cu", "TensorArrayUnpack", "input: 'c' input: '12' input: 'f'", F)
                    NODE("cp", "TensorArrayPack", "input: 'c' input: 'cu'", DT)
                    TENSOR("name", "DT_STRING", D(2), "string_val: 'a' string_val: 'b'")
                    NODE("lost", "TensorArrayReadV2", "input: 'name' input: '0' input: 'f'", DT));
  for (int step = 0; step < 2; step++) {
    CHECK_DOUBLE(fetched(&t, "r"), 5, 0);
    CHECK_DOUBLE(fetched(&t, "gr"), 10, 0);
    CHECK_DOUBLE(fetched(&t, "bn"), 2, 0);
    CHECK_DOUBLE(fetched(&t, "br"), 5, 0);
    CHECK_DOUBLE(fetched(&t, "bgr"), 10, 0);
    CHECK_DOUBLE(fetched(&t, "cp"), 1, 0);
  }
  fails_with(&t, "lost", TN_NOT_FOUND, "b");
  ts_fini(&t);
}

static void tensor_arrays__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t, BASIC ARRAY("a", "2", "") WRITE("w", "a", "0", "x", "a:1") READ("r", "a", "0", "w")
                        NODE("g", "TensorArrayGatherV3", "input: 'a' input: '01' input: 'w'",
                             DT SHAPE("element_shape", D(4) D(-1))) ARRAY("b", "2", SHAPE("element_shape", D(4) D(-1)))
                            NODE("in", "Identity", "input: 'b'", TYPE("T", "DT_RESOURCE"))
                                NODE("d", "TensorArrayGradV3", "input: 'in' input: 'b:1'",
                                     TEXT_ATTR("source", "s")) READ("rb", "in", "0", "b:1") READ("rd", "d", "0", "d:1")
                                    NODE("c", "TensorArrayConcatV3", "input: 'a' input: 'w'", DT) SIZE("n", "a", "w"));
  CHECK_STR(ops_shape_of(&t, "a", 0), "[]");
  CHECK_STR(ops_shape_of(&t, "a", 1), "[]");
  CHECK_STR(ops_shape_of(&t, "w", 0), "[]");
  CHECK_STR(ops_shape_of(&t, "r", 0), "?");
  CHECK_STR(ops_shape_of(&t, "rb", 0), "[4,?]"); /* the array's declared shape */
  CHECK_STR(ops_shape_of(&t, "rd", 0), "[4,?]");
  CHECK_STR(ops_shape_of(&t, "g", 0), "[2,4,?]");
  CHECK_STR(ops_shape_of(&t, "c", 0), "?");
  CHECK_STR(ops_shape_of(&t, "c", 1), "[?]");
  CHECK_STR(ops_shape_of(&t, "n", 0), "[]");
  ts_fini(&t);
}

#define ALL                                                                                                            \
  PIECES ARRAY("e", "1", ON("dynamic_size")) WRITE("w", "e", "2", "c", "e:1") GRAD("g", "e", "w")                      \
  WRITE("g1", "g", "2", "12", "g:1") WRITE("g2", "g", "2", "c", "g1") READ("sum", "g", "2", "g2")                      \
  NODE("f0", "Cast", "input: '0'", TYPE("SrcT", "DT_INT32") TYPE("DstT", "DT_FLOAT"))                                  \
  NODE("a2", "TensorArrayV2", "input: '2'", DT)                                                                        \
  NODE("w2", "TensorArrayWriteV2", "input: 'a2' input: '0' input: '12' input: 'f0'", F)                                \
  NODE("h2", "TensorArrayGradV2", "input: 'a2' input: 'w2'", TEXT_ATTR("source", "s"))                                 \
  NODE("r2", "TensorArrayReadV2", "input: 'h2' input: '0' input: 'w2'", DT)                                            \
  NODE("end", "AddN", "input: 'sum' input: 'r2'", F INT("N", 2))

static tn_status whole_life(void *arg)
{
  tn_session *session = NULL;
  tn_tensor *out = NULL;
  tn_status st = ts_open_isolated(arg, &session);
  if (st == TN_OK) st = tn_session_run(session, NULL, NULL, NULL, 0, NAMES("end"), &out, 1, NULL, 0, NULL, NULL);
  if (st == TN_OK) CHECK_DOUBLE(ts_float(out), 1 + 5, 0);
  tn_tensor_unref(out);
  tn_session_destroy(session);
  return st;
}

static void tensor_arrays__survive_failing_allocations(void) /* S-CAN-13 */
{
  tn_test_oom_sweep(whole_life, (void *)ALL);
}

TAP_MAIN(
    TAP_TEST(tensor_arrays__give_what_was_written),
    TAP_TEST(tensor_arrays__report_errors),
    TAP_TEST(tensor_arrays__are_filled_and_read_as_a_whole),
    TAP_TEST(tensor_arrays__gradients_add_up),
    TAP_TEST(tensor_arrays__older_versions_find_them_in_the_step),
    TAP_TEST(tensor_arrays__shapes_are_known_before_a_step),
    TAP_TEST(tensor_arrays__survive_failing_allocations))
