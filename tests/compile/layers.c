/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of today's networks in the forms that exporters write: what the planner makes of them, and that level 0 gives
 * the same results. */
#include <math.h>

#include "conformance/support/plan_kit.h"

#define UNARY(name, op, x) NODE(name, op, "input: '" x "'", F)
#define BINARY(name, op, x, y) NODE(name, op, "input: '" x "' input: '" y "'", F)
#define RESHAPE(name, x, shape) NODE(name, "Reshape", "input: '" x "' input: '" shape "'", F TYPE("Tshape", "DT_INT32"))
#define MATRIX(name, rows, columns) CONSTANT(name, "DT_FLOAT", D(rows) D(columns), \
    "float_val: [0.5, -1, 0.25, 2, -0.75, 1.5, 0.125, -0.5, 1, 0.75, -2, 0.25]")
#define VECTOR(name, n) CONSTANT(name, "DT_FLOAT", D(n), "float_val: [0.5, 1.25, -2, 0.75]")

/* Feeds x with numbers from -2 to 2 and fetches y. */
static tn_tensor *step(ts *t, const int64_t *dims, int32_t rank)
{
  const char *feed = "x:0", *fetch = "y:0";
  tn_tensor *x = NULL, *y = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &x, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(x); i++) ((float *)tn_tensor_data(x))[i] = (float)(i % 17 - 8) / 4;
  CHECK_OK(tn_session_run(t->session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t->err), &t->err);
  tn_tensor_unref(x);
  return y;
}

/* Compares the results of both levels, and returns the report of level 1. */
static tn_plan_report *check_levels(ts *t, const char *text, const int64_t *dims, int32_t rank, double bound)
{
  ts plain;
  tp_open(&plain, text, 0, "");
  tp_open(t, text, 1, "");
  tn_tensor *wanted = step(&plain, dims, rank), *found = step(t, dims, rank);
  REQUIRE(wanted != NULL && found != NULL && tn_tensor_bytes(wanted) == tn_tensor_bytes(found));
  for (int64_t i = 0; i < tn_tensor_elements(wanted); i++) {
    double a = (double)((float *)tn_tensor_data(wanted))[i], b = (double)((float *)tn_tensor_data(found))[i];
    CHECK_MSG(fabs(a - b) <= bound, "element %d: %.9g at level 0, %.9g at level 1", (int)i, a, b);
  }
  tn_tensor_unref(wanted);
  tn_tensor_unref(found);
  ts_fini(&plain);
  return tp_report(t, "x:0", "y:0");
}

/* ---- dense layers on sequences ---- */

#define SEQUENCE IN(D(2) D(5) D(3)) INTS("rows", 2, "int_val: [-1, 3]") INTS("back", 3, "int_val: [2, 5, 4]") \
  MATRIX("w", 3, 4) VECTOR("b", 4) RESHAPE("r", "x", "rows") BINARY("m", "MatMul", "r", "w") RESHAPE("s", "m", "back")

static const int64_t sequence[] = { 2, 5, 3 };

static void check_dense(const char *text, int64_t moved, int64_t biases, int64_t activations)
{
  ts t;
  tn_plan_report *r = check_levels(&t, text, sequence, 3, 1e-6);
  CHECK_INT(tp_rewrites(r, "before_reshape"), moved);
  CHECK_INT(tp_rewrites(r, "product_bias") + tp_rewrites(r, "product_add"), biases);
  CHECK_INT(tp_rewrites(r, "product_activation"), activations);
  tn_plan_report_release(r);
  ts_fini(&t);
}

static void dense__a_bias_after_a_reshape_is_part_of_the_product(void)
{
  check_dense(SEQUENCE BINARY("y", "BiasAdd", "s", "b"), 1, 1, 0);
  check_dense(SEQUENCE BINARY("y", "AddV2", "b", "s"), 1, 1, 0);
}

static void dense__so_is_an_activation(void)
{
  check_dense(SEQUENCE BINARY("a", "BiasAdd", "s", "b") UNARY("y", "Relu", "a"), 2, 1, 1);
  check_dense(SEQUENCE UNARY("y", "Tanh", "s"), 1, 0, 1);
  check_dense(SEQUENCE UNARY("g", "Sigmoid", "s") BINARY("y", "Mul", "s", "g"), 1, 0, 1);
}

/* The plain value is read elsewhere, or the vector belongs to another dimension. */
static void dense__other_sums_stay(void)
{
  check_dense(SEQUENCE BINARY("a", "BiasAdd", "s", "b") BINARY("y", "Mul", "a", "s"), 0, 0, 0);
  check_dense(SEQUENCE INTS("other", 3, "int_val: [2, 10, 2]") RESHAPE("u", "m", "other") VECTOR("c", 2)
                  BINARY("y", "AddV2", "u", "c"),
              0, 0, 0);
}

/* ---- GELU ---- */

static void check_gelu(const char *text, const char *op)
{
  static const int64_t dims[] = { 3, 7 };
  ts t;
  tn_plan_report *r = check_levels(&t, text, dims, 2, 1e-6);
  CHECK_INT(tp_calls(r, op), 1);
  CHECK_INT(tp_summary(r).instructions, 1);
  tn_plan_report_release(r);
  ts_fini(&t);
}

#define MATRIX_IN IN(D(-1) D(7)) SCALAR("half", 0.5) SCALAR("one", 1) SCALAR("root", 1.4142135) SCALAR("three", 3) \
  SCALAR("k", 0.044715) SCALAR("c", 0.7978846)

static void gelu__of_erf_is_one_node(void)
{
  check_gelu(MATRIX_IN BINARY("d", "RealDiv", "x", "root") UNARY("e", "Erf", "d") BINARY("s", "AddV2", "e", "one")
                 BINARY("h", "Mul", "x", "half") BINARY("y", "Mul", "h", "s"), "_TnGelu");
  check_gelu(MATRIX_IN BINARY("d", "Mul", "x", "c") UNARY("n", "Neg", "d") UNARY("e", "Erfc", "n")
                 BINARY("h", "Mul", "half", "x") BINARY("y", "Mul", "e", "h"), "_TnElementwise");
}

static void gelu__of_tanh_is_one_node(void)
{
  check_gelu(MATRIX_IN BINARY("p", "Pow", "x", "three") BINARY("q", "Mul", "p", "k") BINARY("s", "AddV2", "x", "q")
                 BINARY("d", "Mul", "s", "c") UNARY("e", "Tanh", "d") BINARY("f", "AddV2", "e", "one")
                     BINARY("h", "Mul", "x", "half") BINARY("y", "Mul", "h", "f"), "_TnGeluTanh");
  check_gelu(MATRIX_IN UNARY("p", "Square", "x") BINARY("q", "Mul", "p", "x") BINARY("u", "Mul", "k", "q")
                 BINARY("s", "AddV2", "x", "u") BINARY("d", "Mul", "c", "s") UNARY("e", "Tanh", "d")
                     BINARY("f", "AddV2", "one", "e") BINARY("g", "Mul", "half", "f") BINARY("y", "Mul", "x", "g"),
             "_TnGeluTanh");
}

/* ---- layer and RMS normalisation ---- */

#define KEEPS "attr { key: 'keep_dims' value { b: true } }"
#define MEAN(name, x, axis) NODE(name, "Mean", "input: '" x "' input: '" axis "'", F TYPE("Tidx", "DT_INT32") KEEPS)
#define COLUMNS IN(D(-1) D(4)) INTS("last", 1, "int_val: -1") INTS("one_last", 1, "int_val: 1") \
  INTS("first", 1, "int_val: 0") SCALAR("eps", 0.001) SCALAR("two", 2) SCALAR("minus_half", -0.5) VECTOR("g", 4) \
  CONSTANT("b", "DT_FLOAT", D(4), "float_val: [1, -1, 0.5, 0.25]")
#define MOMENTS(axis) MEAN("mean", "x", axis) BINARY("sd", "SquaredDifference", "x", "mean") MEAN("v", "sd", axis) \
  BINARY("ve", "AddV2", "v", "eps")

static void check_norm(const char *text, int64_t fused, int calls)
{
  static const int64_t dims[] = { 5, 4 };
  ts t;
  tn_plan_report *r = check_levels(&t, text, dims, 2, 2e-6);
  CHECK_INT(tp_calls(r, "_TnLayerNorm"), fused);
  if (calls > 0) CHECK_INT(tp_summary(r).instructions, calls);
  tn_plan_report_release(r);
  ts_fini(&t);
}

/* tf.nn.moments and tf.nn.batch_normalization. */
#define FOLDED_SCALE COLUMNS MOMENTS("last") UNARY("r", "Rsqrt", "ve") BINARY("s", "Mul", "r", "g") \
  BINARY("xs", "Mul", "x", "s") BINARY("ms", "Mul", "mean", "s") BINARY("o", "Sub", "b", "ms") \
  BINARY("y", "AddV2", "xs", "o")

static void norm__of_moments_is_one_node(void)
{
  check_norm(FOLDED_SCALE, 1, 1);
  /* Keras 3: no scale in s, the mean negated. */
  check_norm(COLUMNS MOMENTS("one_last") UNARY("r", "Rsqrt", "ve") UNARY("n", "Neg", "mean")
                 BINARY("nr", "Mul", "n", "r") BINARY("xr", "Mul", "x", "r") BINARY("z", "AddV2", "xr", "nr")
                     BINARY("zg", "Mul", "z", "g") BINARY("y", "AddV2", "zg", "b"),
             1, 1);
}

static void norm__of_differences_is_one_node(void)
{
  check_norm(COLUMNS MEAN("mean", "x", "last") BINARY("d", "Sub", "x", "mean") UNARY("q", "Square", "d")
                 MEAN("v", "q", "last") BINARY("ve", "AddV2", "v", "eps") UNARY("root", "Sqrt", "ve")
                     BINARY("z", "RealDiv", "d", "root") BINARY("zg", "Mul", "g", "z") BINARY("y", "AddV2", "zg", "b"),
             1, 1);
  check_norm(COLUMNS MEAN("mean", "x", "last") BINARY("d", "Sub", "x", "mean") BINARY("q", "Pow", "d", "two")
                 MEAN("v", "q", "last") BINARY("ve", "AddV2", "eps", "v") BINARY("r", "Pow", "ve", "minus_half")
                     BINARY("y", "Mul", "r", "d"),
             1, 1);
  check_norm(COLUMNS MOMENTS("last") UNARY("r", "Rsqrt", "ve") BINARY("d", "Sub", "x", "mean")
                 BINARY("z", "Mul", "d", "r") BINARY("y", "Add", "b", "z"),
             1, 1);
}

static void norm__of_squares_is_one_node(void)
{
  check_norm(COLUMNS UNARY("q", "Square", "x") MEAN("v", "q", "last") BINARY("ve", "AddV2", "v", "eps")
                 UNARY("r", "Rsqrt", "ve") BINARY("z", "Mul", "x", "r") BINARY("y", "Mul", "z", "g"),
             1, 1);
  check_norm(COLUMNS BINARY("q", "Mul", "x", "x") MEAN("v", "q", "last") BINARY("ve", "AddV2", "v", "eps")
                 UNARY("root", "Sqrt", "ve") UNARY("r", "Reciprocal", "root") BINARY("s", "Mul", "g", "r")
                     BINARY("y", "Mul", "s", "x"),
             1, 1);
}

static void norm__other_axes_and_mixtures_stay(void)
{
  check_norm(COLUMNS MOMENTS("first") UNARY("r", "Rsqrt", "ve") BINARY("d", "Sub", "x", "mean")
                 BINARY("y", "Mul", "d", "r"),
             0, 0);
  /* The mean of one tensor, the deviation of another. */
  check_norm(COLUMNS MOMENTS("last") UNARY("r", "Rsqrt", "ve") UNARY("a", "Abs", "x") MEAN("other", "a", "last")
                 BINARY("d", "Sub", "x", "other") BINARY("y", "Mul", "d", "r"),
             0, 0);
}

static void norm__can_be_disabled(void)
{
  ts t;
  tp_open(&t, FOLDED_SCALE, 1, "norm");
  tn_plan_report *r = tp_report(&t, "x:0", "y:0");
  CHECK_INT(tp_calls(r, "_TnLayerNorm"), 0);
  tn_plan_report_release(r);
  ts_fini(&t);
}

/* A row with a NaN or an infinity is all NaN, and no other row is. */
static void norm__nan_stays_in_its_row(void)
{
  static const float numbers[] = { 1, 2, 3, 4, 1, NAN, 3, 4, 1, 2, INFINITY, 4, 4, 3, 2, 2 };
  const char *feed = "x:0", *fetch = "y:0";
  const int64_t dims[] = { 4, 4 };
  for (int level = 0; level <= 1; level++) {
    ts t;
    tn_tensor *x = NULL, *y = NULL;
    tp_open(&t, FOLDED_SCALE, level, "");
    REQUIRE_OK(tn_tensor_from_data(TN_FLOAT, dims, 2, numbers, sizeof numbers, &x, &t.err), &t.err);
    REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
    for (int i = 0; i < 16; i++)
      CHECK_MSG(!isnan(((float *)tn_tensor_data(y))[i]) == (i / 4 == 0 || i / 4 == 3), "element %d at level %d", i,
                level);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    ts_fini(&t);
  }
}

/* Rows of one element and of many, none, and more than vectors hold. */
static void norm__rows_of_any_length(void)
{
  static const int64_t lengths[] = { 0, 1, 15, 16, 17, 33, 1000 };
  for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
    const int64_t dims[] = { 3, lengths[k] };
    ts t;
    tn_plan_report *r =
        check_levels(&t,
                     IN(D(-1) D(-1)) INTS("last", 1, "int_val: -1") SCALAR("eps", 0.01) MOMENTS("last")
                         UNARY("r", "Rsqrt", "ve") BINARY("d", "Sub", "x", "mean") BINARY("y", "Mul", "d", "r"),
                     dims, 2, 2e-6);
    CHECK_INT(tp_calls(r, "_TnLayerNorm"), 1);
    tn_plan_report_release(r);
    ts_fini(&t);
  }
}

TAP_MAIN(
  TAP_TEST(dense__a_bias_after_a_reshape_is_part_of_the_product),
  TAP_TEST(dense__so_is_an_activation),
  TAP_TEST(dense__other_sums_stay),
  TAP_TEST(gelu__of_erf_is_one_node),
  TAP_TEST(gelu__of_tanh_is_one_node),
  TAP_TEST(norm__of_moments_is_one_node),
  TAP_TEST(norm__of_differences_is_one_node),
  TAP_TEST(norm__of_squares_is_one_node),
  TAP_TEST(norm__other_axes_and_mixtures_stay),
  TAP_TEST(norm__can_be_disabled),
  TAP_TEST(norm__nan_stays_in_its_row),
  TAP_TEST(norm__rows_of_any_length))
