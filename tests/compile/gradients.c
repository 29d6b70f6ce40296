/* SPDX-License-Identifier: Apache-2.0 */
/* Training graphs in the forms that TensorFlow's gradients have: what the planner makes of them, and that level 0 gives
 * the same results. */
#include <math.h>

#include "conformance/support/plan_kit.h"

#define FEED(name, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define UNARY(name, op, x) NODE(name, op, "input: '" x "'", F)
#define BINARY(name, op, x, y) NODE(name, op, "input: '" x "' input: '" y "'", F)
#define SHAPE_OF(name, x) NODE(name, "Shape", "input: '" x "'", F TYPE("out_type", "DT_INT32"))
#define AXES(name, x, y) \
  NODE(name, "BroadcastGradientArgs", "input: '" x "' input: '" y "'", TYPE("T", "DT_INT32"))
#define REDUCE(name, op, x, axes) NODE(name, op, "input: '" x "' input: '" axes "'", F TYPE("Tidx", "DT_INT32"))
#define RESHAPE(name, x, shape) NODE(name, "Reshape", "input: '" x "' input: '" shape "'", F TYPE("Tshape", "DT_INT32"))
/* The gradient of one operand: summed over the axes in which it was broadcast. */
#define BACK(name, x, axes, shape) REDUCE(name "sum", "Sum", x, axes) RESHAPE(name, name "sum", shape)
#define ADD_N(name, x, y) NODE(name, "AddN", "input: '" x "' input: '" y "'", F INT("N", 2))

typedef struct feeds {
  const char *names[2];
  tn_tensor *t[2];
} feeds;

static float number(int64_t i, int seed) { return (float)((i * 7919 + seed * 31) % 211 - 105) / 40; }

static feeds make_feeds(const char *x, const char *dy, const int64_t *dims, const int64_t *dims_dy, int32_t rank)
{
  feeds f = { { x, dy }, { NULL } };
  for (int k = 0; k < 2; k++) {
    REQUIRE_OK(tn_tensor_create(TN_FLOAT, k == 0 ? dims : dims_dy, rank, &f.t[k], NULL), NULL);
    float *to = tn_tensor_data(f.t[k]);
    for (int64_t i = 0; i < tn_tensor_elements(f.t[k]); i++) to[i] = number(i, k);
  }
  return f;
}

static void drop(feeds *f)
{
  tn_tensor_unref(f->t[0]);
  tn_tensor_unref(f->t[1]);
}

static tn_tensor *run(ts *t, const feeds *f, const char *fetch)
{
  tn_tensor *out = NULL;
  CHECK_OK(tn_session_run(t->session, NULL, f->names, f->t, 2, &fetch, &out, 1, NULL, 0, NULL, &t->err), &t->err);
  return out;
}

static void compare(const char *text, const feeds *f, const char *fetch, double bound)
{
  ts plain, t;
  tp_open(&plain, text, 0, "");
  tp_open(&t, text, 1, "");
  tn_tensor *wanted = run(&plain, f, fetch), *found = run(&t, f, fetch);
  REQUIRE(wanted != NULL && found != NULL && tn_tensor_rank(wanted) == tn_tensor_rank(found));
  for (int32_t d = 0; d < tn_tensor_rank(wanted); d++) CHECK_INT(tn_tensor_dims(found)[d], tn_tensor_dims(wanted)[d]);
  for (int64_t i = 0; i < tn_tensor_elements(wanted); i++) {
    double a = (double)((float *)tn_tensor_data(wanted))[i], b = (double)((float *)tn_tensor_data(found))[i];
    CHECK_MSG(fabs(a - b) <= bound * (1 + fabs(a)), "element %d: %.9g at level 0, %.9g at level 1", (int)i, a, b);
  }
  tn_tensor_unref(wanted);
  tn_tensor_unref(found);
  ts_fini(&plain);
  ts_fini(&t);
}

/* The report for feeds x and dy and these fetches. */
static tn_plan_report *report(ts *t, const char *text, const char *const *fetches, size_t n, const char *disabled)
{
  static const char *const names[] = { "x:0", "dy:0" };
  tn_plan_report *r = NULL;
  tp_open(t, text, 1, disabled);
  REQUIRE_OK(tn_session_plan_report(t->session, names, 2, fetches, n, NULL, 0, &r, &t->err), &t->err);
  return r;
}

/* ---- GELU: y = (x / 2) (1 + erf(x / root)), and its gradient ---- */

#define OPEN D(-1) D(4)
#define GELU                                                                                                       \
  FEED("x", OPEN) FEED("dy", OPEN) SCALAR("half", 0.5) SCALAR("root", 1.41421356) SCALAR("one", 1)                  \
      SCALAR("two", 1.12837917) BINARY("h", "Mul", "x", "half") BINARY("d", "RealDiv", "x", "root")                 \
          UNARY("e", "Erf", "d") BINARY("a", "AddV2", "one", "e") BINARY("y", "Mul", "h", "a")
#define GELU_GRADIENT                                                                                              \
  GELU SHAPE_OF("sh", "h") SHAPE_OF("sa", "a") AXES("axes", "sh", "sa") BINARY("m1", "Mul", "dy", "a")              \
      BACK("r1", "m1", "axes", "sh") BINARY("m2", "Mul", "h", "dy") BACK("r2", "m2", "axes:1", "sa")                \
          NODE("sq", "Square", "input: 'd' input: '^r2'", F) UNARY("n", "Neg", "sq") UNARY("ex", "Exp", "n")        \
              BINARY("t", "Mul", "r2", "two") BINARY("g", "Mul", "t", "ex") BINARY("q", "RealDiv", "g", "root")     \
                  BINARY("p", "Mul", "r1", "half") ADD_N("dx", "p", "q")

static const char *const gelu_fetches[] = { "y:0", "dx:0" };

/* y; 1 + erf, which the gradient reads, too; and the gradient. */
static void gradients__of_an_activation_are_one_program(void)
{
  ts t;
  tn_plan_report *r = report(&t, GELU_GRADIENT, gelu_fetches, 2, "");
  CHECK_INT(tp_rewrites(r, "no_broadcasting"), 1);
  CHECK_INT(tp_rewrites(r, "no_axes"), 2);
  CHECK_INT(tp_rewrites(r, "same_reshape"), 2);
  CHECK_INT(tp_calls(r, "_TnElementwise"), 3);
  CHECK_INT(tp_calls(r, "Square") + tp_calls(r, "RealDiv") + tp_calls(r, "Mul") + tp_calls(r, "AddN"), 0);
  tn_plan_report_release(r);
  ts_fini(&t);
  for (int64_t rows = 0; rows < 600; rows = rows * 5 + 1) {
    const int64_t dims[] = { rows, 4 };
    feeds f = make_feeds("x:0", "dy:0", dims, dims, 2);
    for (int k = 0; k < 2; k++) compare(GELU_GRADIENT, &f, gelu_fetches[k], 1e-6);
    drop(&f);
  }
}

static void gradients__of_an_activation_can_stay_apart(void)
{
  ts t;
  tn_plan_report *r = report(&t, GELU_GRADIENT, gelu_fetches, 2, "elementwise,algebra");
  CHECK_INT(tp_calls(r, "_TnElementwise"), 0);
  CHECK_INT(tp_calls(r, "Mul"), 7);
  tn_plan_report_release(r);
  ts_fini(&t);
}

static void gradients__powers_are_products(void)
{
  static const char *const text = FEED("x", OPEN) FEED("dy", OPEN) SCALAR("three", 3) SCALAR("two", 2)
      BINARY("cube", "Pow", "x", "three") BINARY("square", "Pow", "dy", "two") BINARY("s", "AddV2", "cube", "square")
          BINARY("t", "Mul", "s", "cube") UNARY("y", "Tanh", "t"), *const fetch = "y:0";
  const int64_t dims[] = { 9, 4 };
  ts t;
  tn_plan_report *r = report(&t, text, &fetch, 1, "");
  CHECK_INT(tp_calls(r, "_TnElementwise"), 1);
  CHECK_INT(tp_calls(r, "Pow"), 0);
  tn_plan_report_release(r);
  ts_fini(&t);
  feeds f = make_feeds("x:0", "dy:0", dims, dims, 2);
  compare(text, &f, fetch, 1e-6);
  drop(&f);
}

/* A mean along rows, which is subtracted, and its gradient: the mean was broadcast, the rows were not. */
#define CENTRED                                                                                                      \
  FEED("x", OPEN) FEED("dy", OPEN) INTS("last", 1, "int_val: 1")                                                      \
      NODE("mean", "Mean", "input: 'x' input: 'last'",                                                                \
           F TYPE("Tidx", "DT_INT32") "attr { key: 'keep_dims' value { b: true } }") BINARY("y", "Sub", "x", "mean")  \
          SHAPE_OF("sx", "x") SHAPE_OF("sm", "mean") AXES("axes", "sx", "sm") BINARY("g", "Mul", "dy", "y")           \
              BACK("dx", "g", "axes", "sx") UNARY("n", "Neg", "g") BACK("dm", "n", "axes:1", "sm")

static void gradients__of_means_are_summed(void)
{
  static const char *const fetches[] = { "dx:0", "dm:0" };
  const int64_t dims[] = { 6, 4 };
  ts t;
  tn_plan_report *r = report(&t, CENTRED, fetches, 2, "");
  CHECK_INT(tp_calls(r, "Sum"), 1);
  tn_plan_report_release(r);
  ts_fini(&t);
  feeds f = make_feeds("x:0", "dy:0", dims, dims, 2);
  for (int k = 0; k < 2; k++) compare(CENTRED, &f, fetches[k], 1e-6);
  drop(&f);
}

/* A sum of three terms, of which a step computes one. */
static void gradients__sums_are_steps(void)
{
  static const char *const text =
      FEED("x", OPEN) FEED("dy", OPEN) UNARY("e", "Exp", "x") BINARY("p", "Mul", "e", "dy")
          NODE("y", "AddN", "input: 'x' input: 'p' input: 'dy'", F INT("N", 3)), *const fetch = "y:0";
  const int64_t dims[] = { 7, 4 };
  ts t;
  tn_plan_report *r = report(&t, text, &fetch, 1, "");
  CHECK_INT(tp_calls(r, "_TnElementwise"), 1);
  CHECK_INT(tp_calls(r, "AddN"), 0);
  tn_plan_report_release(r);
  ts_fini(&t);
  feeds f = make_feeds("x:0", "dy:0", dims, dims, 2);
  compare(text, &f, fetch, 1e-6);
  drop(&f);
}

/* Gradients of a product with a row: only the row was broadcast. */
#define ROW_GRADIENT                                                                                     \
  FEED("x", OPEN) FEED("dy", OPEN) CONSTANT("row", "DT_FLOAT", D(4), "float_val: [1, -2, 0.5, 3]")        \
      BINARY("y", "Mul", "x", "row") SHAPE_OF("sx", "x") SHAPE_OF("sr", "row") AXES("axes", "sx", "sr")   \
          BINARY("m1", "Mul", "dy", "row") BACK("dx", "m1", "axes", "sx") BINARY("m2", "Mul", "x", "dy")  \
              BACK("dr", "m2", "axes:1", "sr")

static void gradients__of_what_was_broadcast_are_summed(void)
{
  static const char *const fetches[] = { "dx:0", "dr:0" };
  const int64_t dims[] = { 5, 4 };
  ts t;
  tn_plan_report *r = report(&t, ROW_GRADIENT, fetches, 2, "");
  CHECK_INT(tp_calls(r, "Sum"), 1);
  tn_plan_report_release(r);
  ts_fini(&t);
  feeds f = make_feeds("x:0", "dy:0", dims, dims, 2);
  for (int k = 0; k < 2; k++) compare(ROW_GRADIENT, &f, fetches[k], 1e-6);
  drop(&f);
}

/* Two operands of unknown sizes: each may have been broadcast. */
#define OPEN_GRADIENT                                                                                        \
  FEED("x", D(-1) D(-1)) FEED("dy", D(-1) D(-1)) BINARY("y", "Mul", "x", "dy") SHAPE_OF("sx", "x")            \
      SHAPE_OF("sd", "dy") AXES("axes", "sx", "sd") BINARY("m1", "Mul", "y", "dy") BACK("dx", "m1", "axes", "sx") \
          BINARY("m2", "Mul", "x", "y") BACK("dd", "m2", "axes:1", "sd")

static void gradients__of_unknown_sizes_are_left(void)
{
  static const int64_t all[][2][2] = { { { 3, 4 }, { 3, 4 } }, { { 1, 4 }, { 3, 4 } }, { { 3, 1 }, { 1, 4 } },
                                       { { 1, 1 }, { 1, 1 } } };
  static const char *const fetches[] = { "dx:0", "dd:0" };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    feeds f = make_feeds("x:0", "dy:0", all[i][0], all[i][1], 2);
    for (int k = 0; k < 2; k++) compare(OPEN_GRADIENT, &f, fetches[k], 1e-6);
    drop(&f);
  }
}

/* Operands of a gradient that differ are an error at both levels, though the step of a program would broadcast. */
static void gradients__of_other_shapes_fail(void)
{
  const int64_t dims[] = { 3, 4 }, other[] = { 1, 4 };
  const char *fetch = "y:0";
  for (int level = 0; level < 2; level++) {
    ts t;
    tn_tensor *out = NULL;
    feeds f = make_feeds("x:0", "dy:0", dims, other, 2);
    tp_open(&t, FEED("x", OPEN) FEED("dy", OPEN) UNARY("n", "Neg", "x") ADD_N("s", "n", "dy") UNARY("y", "Exp", "s"),
            level, "");
    CHECK_INT(tn_session_run(t.session, NULL, f.names, f.t, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
              TN_INVALID_ARGUMENT);
    CHECK_CONTAINS(tn_error_message(&t.err), "'s'");
    CHECK_CONTAINS(tn_error_message(&t.err), "[1,4]");
    drop(&f);
    ts_fini(&t);
  }
}

/* ---- edges that order computations ---- */

/* Nothing after s follows w, so the edge keeps w in the plan. */
static void controls__are_kept_where_they_are_needed(void)
{
  static const char *const fetch = "y:0";
  ts t;
  tn_plan_report *r = report(&t,
                             FEED("x", OPEN) FEED("dy", OPEN) UNARY("w", "Exp", "dy")
                                 NODE("s", "Square", "input: 'x' input: '^w'", F) UNARY("y", "Neg", "s"),
                             &fetch, 1, "");
  CHECK_INT(tp_calls(r, "Exp"), 1);
  tn_plan_report_release(r);
  ts_fini(&t);
}

/* ---- variables ---- */

#define DT TYPE("dtype", "DT_FLOAT")
#define OF(dims) "attr { key: 'shape' value { shape { " dims " } } }"
#define VARIABLE(name, dims) NODE(name, "VarHandleOp", "", DT OF(dims) TEXT("shared_name", name))
#define READ(name, v) NODE(name, "ReadVariableOp", "input: '" v "'", DT)
#define ASSIGN(name, v, value) NODE(name, "AssignVariableOp", "input: '" v "' input: '" value "'", DT)
#define LAYER                                                                                                  \
  FEED("x", D(-1) D(3)) FEED("dy", OPEN) VARIABLE("w", D(3) D(4)) VARIABLE("b", D(4))                          \
      CONSTANT("w0", "DT_FLOAT", D(3) D(4), "float_val: 0.5") CONSTANT("b0", "DT_FLOAT", D(4), "float_val: 2") \
          READ("rw", "w") READ("rb", "b") ASSIGN("sw", "w", "w0") ASSIGN("sb", "b", "b0")                      \
              BINARY("m", "MatMul", "x", "rw")                                                                     \
                  INTS("back", 3, "int_val: [-1, 1, 4]") RESHAPE("s", "m", "back") BINARY("y", "BiasAdd", "s", "rb")

static int fused_layers(const char *text)
{
  static const char *const fetch = "y:0";
  ts t;
  tn_plan_report *r = report(&t, text, &fetch, 1, "");
  int n = tp_calls(r, "_TnMatMul");
  tn_plan_report_release(r);
  ts_fini(&t);
  return n;
}

static void variables__have_the_shapes_that_are_assigned(void)
{
  CHECK_INT(fused_layers(LAYER), 1);
  CHECK_INT(fused_layers(LAYER READ("old", "w") BINARY("new", "Mul", "old", "half") SCALAR("half", 0.5)
                             ASSIGN("again", "w", "new")), 1);
  CHECK_INT(fused_layers(LAYER ASSIGN("any", "w", "dy")), 0);
}

/* Another graph may assign another shape. */
static void variables__of_another_shape_are_found(void)
{
  const char *fetch = "y:0", *other = "grow", *sw = "sw";
  const int64_t dims[] = { 2, 3 }, dims_dy[] = { 2, 4 };
  ts t, more;
  TS_NEEDS_RESET(); /* otherwise each session has its own containers */
  tp_open(&t, LAYER, 1, "");
  tp_open(&more, VARIABLE("b", D(5)) CONSTANT("five", "DT_FLOAT", D(5), "float_val: 2") ASSIGN("grow", "b", "five"), 1,
          "");
  feeds f = make_feeds("x:0", "dy:0", dims, dims_dy, 2);
  tn_tensor *out = NULL;
  CHECK_OK(tn_session_run(t.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &sw, 1, NULL, &t.err), &t.err);
  CHECK_OK(tn_session_run(more.session, NULL, NULL, NULL, 0, NULL, NULL, 0, &other, 1, NULL, &more.err), &more.err);
  CHECK_INT(tn_session_run(t.session, NULL, f.names, f.t, 2, &fetch, &out, 1, NULL, 0, NULL, &t.err),
            TN_INVALID_ARGUMENT);
  CHECK_CONTAINS(tn_error_message(&t.err), "variable 'b' has shape [5]");
  drop(&f);
  ts_fini(&more);
  ts_fini(&t);
}

TAP_MAIN(
  TAP_TEST(gradients__of_an_activation_are_one_program),
  TAP_TEST(gradients__of_an_activation_can_stay_apart),
  TAP_TEST(gradients__sums_are_steps),
  TAP_TEST(gradients__powers_are_products),
  TAP_TEST(gradients__of_means_are_summed),
  TAP_TEST(gradients__of_what_was_broadcast_are_summed),
  TAP_TEST(gradients__of_unknown_sizes_are_left),
  TAP_TEST(gradients__of_other_shapes_fail),
  TAP_TEST(controls__are_kept_where_they_are_needed),
  TAP_TEST(variables__have_the_shapes_that_are_assigned),
  TAP_TEST(variables__of_another_shape_are_found))
