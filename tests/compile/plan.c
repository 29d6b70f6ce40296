/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the planner (<tenon/plan.h>), and the pass "algebra": the nodes that it removes and
 * those that it must keep. */
#include <math.h>

#include "conformance/support/plan_kit.h"

/* ---- algebra ---- */

/* Numbers of all kinds: both zeros, NaN, infinities, a denormal. */
static tn_tensor *numbers(const int64_t *dims, int32_t rank)
{
  static const float kinds[] = { 0.0f, -0.0f, 1.5f, -3.25f, INFINITY, -INFINITY, NAN, 1e-40f, 3e38f, -7.0f, 0.1f };
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) ((float *)tn_tensor_data(t))[i] = kinds[i % 11];
  return t;
}

typedef struct algebra_case {
  const char *text; /* from x to y */
  int64_t dims[4];
  int32_t rank;
  int taken; /* number of nodes that the pass replaces */
} algebra_case;

static tn_tensor *compute(const algebra_case *c, int level, const char *disabled, int64_t *taken)
{
  ts t;
  tp_open(&t, c->text, level, disabled);
  const char *feed = "x:0", *fetch = "y:0";
  tn_tensor *x = numbers(c->dims, c->rank), *y = NULL;
  CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
  tn_plan_report *report = tp_report(&t, feed, fetch);
  *taken = tp_changes(report, "algebra");
  tn_plan_report_release(report);
  tn_tensor_unref(x);
  ts_fini(&t);
  return y;
}

static bool equal(const tn_tensor *a, const tn_tensor *b)
{
  return a != NULL && b != NULL && tn_tensor_rank(a) == tn_tensor_rank(b) && tn_tensor_bytes(a) == tn_tensor_bytes(b) &&
         (tn_tensor_rank(a) == 0 || memcmp(tn_tensor_dims(a), tn_tensor_dims(b), (size_t)tn_tensor_rank(a) * 8) == 0) &&
         (tn_tensor_bytes(a) == 0 || memcmp(tn_tensor_data(a), tn_tensor_data(b), tn_tensor_bytes(a)) == 0);
}

static void try_cases(const algebra_case *cases, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    int64_t plain_taken, taken, off_taken;
    tn_tensor *plain = compute(&cases[i], 0, "", &plain_taken), *y = compute(&cases[i], 1, "", &taken);
    tn_tensor *off = compute(&cases[i], 1, "algebra", &off_taken);
    CHECK_MSG(equal(plain, y) && equal(plain, off), "other results: %s", cases[i].text);
    CHECK_MSG(taken == cases[i].taken, "%lld nodes replaced, %d wanted: %s", (long long)taken, cases[i].taken,
              cases[i].text);
    CHECK_INT(plain_taken, -1);
    CHECK_INT(off_taken, -1);
    tn_tensor_unref(plain);
    tn_tensor_unref(y);
    tn_tensor_unref(off);
  }
}
#define TRY(...) \
  static const algebra_case cases[] = { __VA_ARGS__ }; \
  try_cases(cases, sizeof cases / sizeof *cases)

#define BINARY(op) NODE("y", op, "input: 'x' input: 'c'", F)
#define SWAPPED(op) NODE("y", op, "input: 'c' input: 'x'", F)

static void algebra__neutral_elements(void)
{
  TRY({ ANY SCALAR("c", 1) BINARY("Mul"), { 11 }, 1, 1 }, { ANY SCALAR("c", 1) SWAPPED("Mul"), { 11 }, 1, 1 },
      { ANY SCALAR("c", 1) BINARY("RealDiv"), { 11 }, 1, 1 }, { ANY SCALAR("c", 1) BINARY("Div"), { 11 }, 1, 1 },
      { ANY SCALAR("c", 0) BINARY("Sub"), { 11 }, 1, 1 }, { ANY SCALAR("c", -0.0) BINARY("AddV2"), { 11 }, 1, 1 },
      { ANY SCALAR("c", -0.0) SWAPPED("Add"), { 11 }, 1, 1 },
      /* -0 + 0 is 0, -0 - -0 is 0, 1/x and 0-x are different */
      { ANY SCALAR("c", 0) BINARY("AddV2"), { 11 }, 1, 0 }, { ANY SCALAR("c", -0.0) BINARY("Sub"), { 11 }, 1, 0 },
      { ANY SCALAR("c", 1) SWAPPED("RealDiv"), { 11 }, 1, 0 }, { ANY SCALAR("c", 0) SWAPPED("Sub"), { 11 }, 1, 0 },
      { ANY SCALAR("c", 2) BINARY("Mul"), { 11 }, 1, 0 });
}

#define ONES(dims) CONSTANT("c", "DT_FLOAT", dims, "float_val: 1")

static void algebra__neutral_elements_that_broadcast(void)
{
  TRY({ IN(D(-1) D(4)) ONES(D(4)) BINARY("Mul"), { 3, 4 }, 2, 1 },
      { IN(D(-1) D(4)) ONES(D(1) D(1)) BINARY("Mul"), { 3, 4 }, 2, 1 },
      { IN(D(-1) D(1)) ONES(D(4)) BINARY("Mul"), { 3, 1 }, 2, 0 }, /* wider */
      { IN(D(4)) ONES(D(1) D(4)) BINARY("Mul"), { 4 }, 1, 0 },     /* of higher rank */
      { ANY ONES(D(1)) BINARY("Mul"), { 0 }, 0, 0 });              /* a scalar becomes a vector */
}

static void algebra__reshapes(void)
{
#define SHAPE(name, n, values) INTS(name, n, values)
#define RESHAPE(name, from, to) NODE(name, "Reshape", "input: '" from "' input: '" to "'", F)
  TRY({ IN(D(2) D(6)) SHAPE("s", 2, "int_val: 2 int_val: 6") RESHAPE("y", "x", "s"), { 2, 6 }, 2, 1 },
      { IN(D(-1) D(6)) SHAPE("s", 2, "int_val: -1 int_val: 6") RESHAPE("y", "x", "s"), { 2, 6 }, 2, 1 },
      { IN(D(-1) D(6)) SHAPE("s", 2, "int_val: -1 int_val: 3") RESHAPE("y", "x", "s"), { 2, 6 }, 2, 0 },
      { IN(D(-1) D(6)) SHAPE("s", 3, "int_val: -1 int_val: 2 int_val: 3") SHAPE("r", 2, "int_val: -1 int_val: 3")
            RESHAPE("z", "x", "s") RESHAPE("y", "z", "r"),
        { 2, 6 },
        2,
        1 },
      /* there and back */
      { IN(D(-1) D(6)) SHAPE("s", 3, "int_val: -1 int_val: 2 int_val: 3") SHAPE("r", 2, "int_val: -1 int_val: 6")
            RESHAPE("z", "x", "s") RESHAPE("y", "z", "r"),
        { 2, 6 },
        2,
        1 },
      /* the first may fail: [?,6] to [-1,4] */
      { IN(D(-1) D(6)) SHAPE("s", 2, "int_val: -1 int_val: 4") SHAPE("r", 1, "int_val: -1") RESHAPE("z", "x", "s")
            RESHAPE("y", "z", "r"),
        { 2, 6 },
        2,
        0 },
      { IN(D(2) D(6)) CONSTANT("axis", "DT_INT32", "", "int_val: 1")
            NODE("z", "ExpandDims", "input: 'x' input: 'axis'", F)
                NODE("y", "Squeeze", "input: 'z'", F LIST("squeeze_dims", 1)),
        { 2, 6 },
        2,
        1 });
}

static void algebra__transposes(void)
{
#define PERM(name, a, b, c) INTS(name, 3, "int_val: " #a " int_val: " #b " int_val: " #c)
#define TRANSPOSE(name, from, perm) NODE(name, "Transpose", "input: '" from "' input: '" perm "'", F)
  TRY({ IN(D(-1) D(3) D(4)) PERM("p", 0, 1, 2) TRANSPOSE("y", "x", "p"), { 2, 3, 4 }, 3, 1 },
      { IN(D(-1) D(3) D(4)) PERM("p", 0, -2, 2) TRANSPOSE("y", "x", "p"), { 2, 3, 4 }, 3, 1 },
      { IN(D(-1) D(3) D(4)) PERM("p", 2, 0, 1) PERM("q", 1, 2, 0) TRANSPOSE("z", "x", "p") TRANSPOSE("y", "z", "q"),
        { 2, 3, 4 }, 3, 1 },
      { IN(D(-1) D(3) D(4)) PERM("p", 2, 0, 1) PERM("q", 0, 2, 1) TRANSPOSE("z", "x", "p") TRANSPOSE("y", "z", "q"),
        { 2, 3, 4 }, 3, 1 },
      { IN(D(-1) D(3) D(4)) PERM("p", 2, 0, 1) TRANSPOSE("y", "x", "p"), { 2, 3, 4 }, 3, 0 },
      { ANY PERM("p", 0, 1, 2) TRANSPOSE("y", "x", "p"), { 2, 3, 4 }, 3, 0 });
}

static void algebra__identities(void)
{
#define ZEROS2(name) INTS(name, 2, "int_val: 0 int_val: 0")
#define MASKED(b, e, shrink) NODE("y", "StridedSlice", "input: 'x' input: 'b' input: 'e' input: 's'", \
    F TYPE("Index", "DT_INT32") INT("begin_mask", b) INT("end_mask", e) INT("shrink_axis_mask", shrink))
#define STRIDES ZEROS2("b") INTS("e", 2, "int_val: 9 int_val: 6") INTS("s", 2, "int_val: 1 int_val: 1")
  TRY({ ANY NODE("y", "Cast", "input: 'x'", TYPE("SrcT", "DT_FLOAT") TYPE("DstT", "DT_FLOAT")), { 11 }, 1, 1 },
      { ANY NODE("y", "Cast", "input: 'x'", TYPE("SrcT", "DT_FLOAT") TYPE("DstT", "DT_DOUBLE")), { 11 }, 1, 0 },
      { IN(D(-1) D(6)) CONSTANT("a", "DT_INT32", "", "int_val: 0")
            NODE("y", "Split", "input: 'a' input: 'x'", F INT("num_split", 1)),
        { 2, 6 },
        2,
        1 },
      { IN(D(-1) D(6)) CONSTANT("p", "DT_INT32", D(2) D(2), "int_val: 0") NODE("y", "Pad", "input: 'x' input: 'p'", F),
        { 2, 6 },
        2,
        1 },
      { IN(D(-1) D(6)) ZEROS2("b") INTS("n", 2, "int_val: -1 int_val: 6")
            NODE("y", "Slice", "input: 'x' input: 'b' input: 'n'", F TYPE("Index", "DT_INT32")),
        { 2, 6 },
        2,
        1 },
      { IN(D(-1) D(6)) ZEROS2("b") INTS("n", 2, "int_val: 1 int_val: 6")
            NODE("y", "Slice", "input: 'x' input: 'b' input: 'n'", F TYPE("Index", "DT_INT32")),
        { 2, 6 },
        2,
        0 },
      { IN(D(-1) D(6)) STRIDES MASKED(1, 1, 0), { 2, 6 }, 2, 1 },
      { IN(D(-1) D(6)) STRIDES MASKED(0, 0, 0), { 2, 6 }, 2, 0 },
      { IN(D(-1) D(6)) STRIDES MASKED(3, 3, 1), { 2, 6 }, 2, 0 },
      { ANY NODE("z", "Neg", "input: 'x'", F) NODE("y", "Neg", "input: 'z'", F), { 11 }, 1, 1 });
}

/* ---- paddings ---- */

#define PADDINGS INTS_44
#define INTS_44(a, b, c, d) CONSTANT("p", "DT_INT32", D(4) D(2), "int_val: 0 int_val: 0 int_val: " #a " int_val: " #b \
    " int_val: " #c " int_val: " #d " int_val: 0 int_val: 0")
#define IMAGE(pads, conv, padding)                                                                                     \
  IN(D(-1) D(7) D(9) D(3)) pads                                                                                        \
  CONSTANT("f", "DT_FLOAT", D(3) D(3) D(3) D(2), "float_val: [0.5, -1, 2, 0.25, 1, 3, -0.5]")                        \
  NODE("z", "Pad", "input: 'x' input: 'p'", F)                                                                       \
  NODE("y", conv, "input: 'z' input: 'f'", F TEXT("padding", padding) LIST("strides", 1, 2, 2, 1))

static tn_tensor *convolve(const char *text, int level, int64_t *padded, int *pads)
{
  ts t;
  tp_open(&t, text, level, "");
  const int64_t dims[] = { 2, 7, 9, 3 };
  const char *feed = "x:0", *fetch = "y:0";
  tn_tensor *x = NULL, *y = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, 4, &x, &t.err), &t.err);
  for (int64_t i = 0; i < tn_tensor_elements(x); i++) ((float *)tn_tensor_data(x))[i] = (float)(i % 23 - 11);
  CHECK_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
  tn_plan_report *report = tp_report(&t, feed, fetch);
  *padded = tp_rewrites(report, "pad_conv");
  *pads = tp_calls(report, "Pad");
  tn_plan_report_release(report);
  tn_tensor_unref(x);
  ts_fini(&t);
  return y;
}

/* Small integers times quarters: sums are exact, so the order of summation does not matter. */
static void algebra__paddings_are_moved_into_convolutions(void)
{
  static const struct {
    const char *text;
    int taken;
  } cases[] = {
    { IMAGE(PADDINGS(1, 2, 0, 3), "Conv2D", "VALID"), 1 },
    { IMAGE(PADDINGS(0, 1, 0, 1), "DepthwiseConv2dNative", "VALID"), 1 },
    { IMAGE(PADDINGS(1, 1, 1, 1), "Conv2D", "SAME"), 0 },
    { IMAGE(CONSTANT("p", "DT_INT32", D(4) D(2), "int_val: [1, 0, 1, 1, 1, 1, 0, 0]"), "Conv2D", "VALID"), 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t taken, none;
    int pads, all;
    tn_tensor *plain = convolve(cases[i].text, 0, &none, &all), *y = convolve(cases[i].text, 1, &taken, &pads);
    CHECK_MSG(equal(plain, y), "case %zu gives other results", i);
    CHECK_INT(taken, cases[i].taken);
    CHECK_INT(pads, 1 - cases[i].taken);
    CHECK_INT(none, 0);
    CHECK_INT(all, 1);
    tn_tensor_unref(plain);
    tn_tensor_unref(y);
  }
}

/* ---- errors ---- */

#define NONE(n) CONSTANT("p", "DT_INT32", D(n) D(2), "")
#define MIRROR(shape, mode) IN(shape) NONE(2) NODE("y", "MirrorPad", "input: 'x' input: 'p'", F TEXT("mode", mode))

/* The status of a step with such a feed. */
static tn_status step_of_nothing(const char *text, int level, const int64_t *dims, int32_t rank)
{
  ts t;
  const char *feed = "x:0", *fetch = "y:0";
  tn_tensor *x = NULL, *y = NULL;
  tp_open(&t, text, level, "");
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &x, &t.err), &t.err);
  tn_status st = tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err);
  tn_tensor_unref(y);
  tn_tensor_unref(x);
  ts_fini(&t);
  return st;
}

/* An op that would change nothing is kept if it may reject sizes that are known only in a step. */
static void algebra__identities_that_may_fail_are_kept(void)
{
  static const struct {
    const char *text;
    tn_status wanted;
  } cases[] = {
    { MIRROR(D(-1) D(3), "REFLECT"), TN_INVALID_ARGUMENT },
    { MIRROR(D(0) D(3), "REFLECT"), TN_INVALID_ARGUMENT },
    { MIRROR(D(-1) D(3), "SYMMETRIC"), TN_OK },
    { IN(D(-1) D(3)) NONE(2) CONSTANT("with", "DT_FLOAT", D(1), "float_val: 1")
      NODE("y", "PadV2", "input: 'x' input: 'p' input: 'with'", F), TN_INVALID_ARGUMENT },
    { IN(D(-1) D(3)) NONE(2) SCALAR("with", 1) NODE("y", "PadV2", "input: 'x' input: 'p' input: 'with'", F), TN_OK },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    FOR_LEVELS(level) {
      tn_status st = step_of_nothing(cases[i].text, level, (int64_t[]){ 0, 3 }, 2);
      CHECK_MSG(st == cases[i].wanted, "case %zu, level %d: %s", i, level, tn_status_name(st));
    }
}

/* A padded image without rows may be large enough for a window. */
static void algebra__padded_empty_images_are_convolved(void)
{
#define NO_ROWS(conv, more)                                                                            \
  IN(D(-1) D(-1) D(9) D(3))                                                                            \
  PADDINGS(1, 2, 0, 3)                                                                                 \
      more CONSTANT("f", "DT_FLOAT", D(3) D(3) D(3) D(2), "float_val: [0.5, -1, 2, 0.25, 1, 3, -0.5]") \
          NODE("y", conv, "input: 'z' input: 'f'", F TEXT("padding", "VALID") LIST("strides", 1, 1, 1, 1))
  static const char *const texts[] = {
    NO_ROWS("Conv2D", NODE("z", "Pad", "input: 'x' input: 'p'", F)),
    NO_ROWS("DepthwiseConv2dNative", NODE("z", "Pad", "input: 'x' input: 'p'", F)),
    NO_ROWS("Conv2D", CONSTANT("with", "DT_FLOAT", D(1), "float_val: 0")
                          NODE("z", "PadV2", "input: 'x' input: 'p' input: 'with'", F)),
  };
  for (size_t i = 0; i < 3; i++)
    for (int64_t rows = 0; rows < 2; rows++) {
      const int64_t dims[] = { 2, rows, 9, 3 };
      tn_status plain = step_of_nothing(texts[i], 0, dims, 4), st = step_of_nothing(texts[i], 1, dims, 4);
      CHECK_MSG(plain == st, "case %zu, %d rows: %s, wanted %s", i, (int)rows, tn_status_name(st),
                tn_status_name(plain));
    }
}

/* ---- scales in filters ---- */

#define SCALED(weights, scales)                                                                                        \
  IN(D(-1) D(2)) CONSTANT("f", "DT_FLOAT", D(2) D(2), "float_val: [" weights "]")                                     \
  CONSTANT("s", "DT_FLOAT", D(2), "float_val: [" scales "]") NODE("m", "MatMul", "input: 'x' input: 'f'", F)           \
  NODE("y", "Mul", "input: 'm' input: 's'", F)
#define NORMED(scale, offset, mean, variance)                                                                          \
  IN(D(-1) D(-1) D(-1) D(2))                                                                                           \
  CONSTANT("s", "DT_FLOAT", D(2), "float_val: [1, " scale "]") CONSTANT(                                               \
      "o", "DT_FLOAT", D(2), "float_val: [1, " offset "]") CONSTANT("e", "DT_FLOAT", D(2), "float_val: [1, " mean "]") \
      CONSTANT("v", "DT_FLOAT", D(2), "float_val: [1, " variance "]") NODE(                                            \
          "y", "FusedBatchNormV3", "input: 'x' input: 's' input: 'o' input: 'e' input: 'v'",                           \
          F TYPE("U",                                                                                                  \
                 "DT_FLOAT") "attr { key: 'epsilon' value { f: 0 } } attr { key: 'is_training' value { b: false } }")

/* Constants are multiplied only if the result differs by nothing but rounding. */
static void batch_norm__is_kept_if_a_constant_cannot_hold_the_product(void)
{
  static const struct {
    const char *text;
    int changes;
  } cases[] = {
    { SCALED("1, 2, 3, 4", "0.5, -2"), 1 },
    { SCALED("1, 2, 3, 4", "0, 2"), 1 },
    { SCALED("1, 1e-40, 1e-44, 4", "0.3, 0.3"), 1 }, /* one large weight in each channel */
    { SCALED("1, 1e-40, 3, 1e-44", "0.3, 0.3"), 0 },
    { SCALED("1, 1e-40, 3, 1e-44", "0.3, 1"), 1 },
    { SCALED("1, 1e20, 3, 1", "1, 1e20"), 0 },
    { SCALED("1, 2, inf, 4", "1, 2"), 0 },
    { SCALED("1, 2, 3, 4", "1, inf"), 0 },
    { SCALED("1, 2, nan, 4", "1, 0"), 0 },
    { NORMED("2", "3", "4", "5"), 1 },
    { NORMED("2", "3", "4", "0"), 0 },
    { NORMED("0", "3", "4", "0"), 0 },
    { NORMED("1e25", "3", "1e25", "1"), 0 },
    { NORMED("1e-30", "0", "1e-12", "1"), 0 },
    { NORMED("inf", "0", "0", "1"), 0 },
    { NORMED("1", "0", "-inf", "1"), 0 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ts t;
    tp_open(&t, cases[i].text, 1, "");
    tn_plan_report *report = tp_report(&t, "x:0", "y:0");
    int64_t n = tp_changes(report, "batch_norm");
    CHECK_MSG(n == cases[i].changes, "case %zu: %lld changes", i, (long long)n);
    tn_plan_report_release(report);
    ts_fini(&t);
  }
}

/* ---- reports ---- */

#define CHAIN                                                                                                          \
  ANY SCALAR("one", 1) SCALAR("c", 3) NODE("m", "Mul", "input: 'x' input: 'one'", F) NODE("n", "Neg", "input: 'm'", F) \
      NODE("w", "Mul", "input: 'c' input: 'c'", F) NODE("y", "AddV2", "input: 'n' input: 'w'", F)                      \
          NODE("other", "Neg", "input: 'x'", F)

static void report__counts_the_changes_of_passes(void)
{
  ts t;
  tp_open(&t, CHAIN, 1, "elementwise");
  tn_plan_report *report = tp_report(&t, "x:0", "y:0");
  tn_plan_summary s = tp_summary(report);
  CHECK_INT(s.level, 1);
  CHECK_INT(s.graph_nodes, 8);
  CHECK_INT(s.needed_nodes, 6); /* without x, which is fed, and other */
  CHECK_INT(s.nodes, 2);
  CHECK_INT(s.instructions, 2);
  CHECK_INT(s.constants, 1);
  CHECK_INT(s.constant_bytes, 4);
  CHECK_INT(s.layouts, 0);
  CHECK_INT(tp_changes(report, "fold"), 1);
  CHECK_INT(tp_changes(report, "algebra"), 1);
  CHECK_INT(tp_changes(report, "elementwise"), -1);
  CHECK_INT(tp_rewrites(report, "neutral"), 1);
  tn_plan_report_release(report);
  ts_fini(&t);
}

/* A report does not change when its session ends. */
static void report__outlives_the_session(void)
{
  ts t;
  tp_open(&t, CHAIN, 1, "elementwise");
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y:0") == 7);
  tn_plan_report *report = tp_report(&t, "x:0", "y:0");
  ts_fini(&t);
  tn_plan_call c = { .struct_size = sizeof c };
  REQUIRE_INT(tn_plan_report_call(report, 1, &c, NULL), TN_OK);
  CHECK_STR(tn_operation_type(c.op), "AddV2");
  CHECK_STR(tn_operation_name(c.op), "y");
  CHECK(c.n_kernels >= 1 && c.kernel == 0 && strlen(c.kernels[0]) > 0);
  REQUIRE_INT(c.n_inputs, 2);
  REQUIRE_INT(c.n_outputs, 1);
  tn_plan_operand v = { .struct_size = sizeof v };
  REQUIRE_INT(tn_plan_report_operand(report, c.inputs[0], &v, NULL), TN_OK);
  CHECK_INT(v.kind, TN_VALUE_COMPUTED);
  CHECK_INT(v.producer, 0);
  REQUIRE_INT(tn_plan_report_operand(report, c.inputs[1], &v, NULL), TN_OK);
  CHECK_INT(v.kind, TN_VALUE_CONSTANT);
  CHECK_INT(v.bytes, 4);
  CHECK_INT(v.dtype, TN_FLOAT);
  tn_plan_report_release(report);
}

#define BROAD IN(D(-1) D(8)) NODE("a", "Neg", "input: 'x'", F) NODE("b", "Softmax", "input: 'a'", F) \
  NODE("c", "Softmax", "input: 'b'", F) NODE("y", "AddV2", "input: 'c' input: 'b'", F)

static void report__memory_of_layouts(void)
{
  ts t;
  tp_open(&t, BROAD, 1, "");
  const char *feed = "x:0", *fetch = "y:0";
  for (int64_t rows = 1; rows <= 64; rows += 63) {
    const int64_t dims[] = { rows, 8 };
    tn_tensor *x = ts_filled(2, dims, 1), *y = NULL;
    REQUIRE_OK(tn_session_run(t.session, NULL, &feed, &x, 1, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
  }
  tn_plan_report *report = tp_report(&t, feed, fetch);
  tn_plan_summary s = tp_summary(report);
  tn_plan_layout_info last = { .struct_size = sizeof last }, first = { .struct_size = sizeof first };
  CHECK_INT(s.layouts, 2);
  REQUIRE_INT(tn_plan_report_layout(report, 0, &last, NULL), TN_OK); /* the most recently used comes first */
  REQUIRE_INT(tn_plan_report_layout(report, 1, &first, NULL), TN_OK);
  CHECK(last.arena_bytes >= 64 * 8 * 4 && last.arena_bytes > first.arena_bytes);
  CHECK(last.live_bytes <= last.arena_bytes && last.live_bytes > 0);
  CHECK_INT(s.arena_bytes, last.arena_bytes);
  CHECK_INT(s.live_bytes, last.live_bytes);
  CHECK(last.calls > 0);
  tn_plan_report_release(report);
  ts_fini(&t);
}

static void report__wrong_calls(void)
{
  ts t;
  tp_open(&t, CHAIN, 1, "");
  const char *fetch = "nowhere:0";
  tn_plan_report *report = (tn_plan_report *)&t;
  CHECK_STATUS(tn_session_plan_report(t.session, NULL, 0, &fetch, 1, NULL, 0, &report, &t.err), TN_NOT_FOUND, &t.err);
  CHECK_NULL(report);
  CHECK_STATUS(tn_session_plan_report(NULL, NULL, 0, &fetch, 1, NULL, 0, &report, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_session_plan_report(t.session, NULL, 0, NULL, 0, NULL, 0, &report, &t.err), TN_INVALID_ARGUMENT,
               &t.err);
  report = tp_report(&t, "x:0", "y:0");
  tn_plan_pass p = { .struct_size = sizeof p };
  tn_plan_call unset = { 0 };
  CHECK_STATUS(tn_plan_report_pass(report, 1000, &p, &t.err), TN_OUT_OF_RANGE, &t.err);
  CHECK_CONTAINS(tn_error_message(&t.err), "pass 1000 is out of range");
  CHECK_STATUS(tn_plan_report_pass(NULL, 0, &p, &t.err), TN_INVALID_ARGUMENT, &t.err);
  CHECK_STATUS(tn_plan_report_call(report, 0, &unset, &t.err), TN_INVALID_ARGUMENT, &t.err);
  struct {
    tn_plan_pass pass;
    char more[64];
  } newer = { .pass = { .struct_size = sizeof newer }, .more = "untouched" };
  CHECK_OK(tn_plan_report_pass(report, 0, &newer.pass, &t.err), &t.err); /* a newer header: unknown fields are zero */
  CHECK_INT(newer.more[0], 0);
  CHECK_INT(newer.pass.struct_size, sizeof newer);
  tn_plan_report_release(report);
  tn_session_close(t.session, NULL);
  CHECK_STATUS(tn_session_plan_report(t.session, NULL, 0, &fetch, 1, NULL, 0, &report, &t.err), TN_CANCELLED, &t.err);
  ts_fini(&t);
}

static tn_status make_report(void *arg)
{
  ts *t = arg;
  tn_plan_report *report = NULL;
  tn_error err = TN_ERROR_INIT;
  const char *feed = "x:0", *fetch = "y:0";
  tn_status st = tn_session_plan_report(t->session, &feed, 1, &fetch, 1, NULL, 0, &report, &err);
  tn_plan_report_release(report);
  tn_error_clear(&err);
  return st;
}

static void report__survives_lack_of_memory(void)
{
  ts t;
  tp_open(&t, CHAIN, 1, "");
  CHECK(ts_run1(&t, FEEDS({ "x", 2 }), "y:0") == 7);
  tn_test_oom_sweep(make_report, &t);
  ts_fini(&t);
}

static void passes__are_listed(void)
{
  tn_pass_info info = { .struct_size = sizeof info };
  size_t n = 0;
  bool algebra = false;
  for (; tn_pass_at(n, &info, NULL) == TN_OK; n++) {
    CHECK(strlen(info.name) > 0 && strlen(info.about) > 0);
    algebra |= strcmp(info.name, "algebra") == 0;
  }
  CHECK(algebra && n >= 9);
}

TAP_MAIN(
  TAP_TEST(algebra__neutral_elements),
  TAP_TEST(algebra__neutral_elements_that_broadcast),
  TAP_TEST(algebra__reshapes),
  TAP_TEST(algebra__transposes),
  TAP_TEST(algebra__identities),
  TAP_TEST(algebra__paddings_are_moved_into_convolutions),
  TAP_TEST(algebra__identities_that_may_fail_are_kept),
  TAP_TEST(algebra__padded_empty_images_are_convolved),
  TAP_TEST(batch_norm__is_kept_if_a_constant_cannot_hold_the_product),
  TAP_TEST(report__counts_the_changes_of_passes),
  TAP_TEST(report__outlives_the_session),
  TAP_TEST(report__memory_of_layouts),
  TAP_TEST(report__wrong_calls),
  TAP_TEST(report__survives_lack_of_memory),
  TAP_TEST(passes__are_listed))
