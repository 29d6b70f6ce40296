/* SPDX-License-Identifier: Apache-2.0 */
/* Swish, hard swish, hard sigmoid, mish and GELU, as exporters write them, become one node or part of a product.
 * Results are those of level 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/support/plan_kit.h"

/* In texts "DT_ANY" stands for the type that a test computes in: x is converted to it, and y from it. */
#define A TYPE("T", "DT_ANY")
#define FLOATS(name, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define CAST(name, x, from, to) NODE(name, "Cast", "input: '" x "'", TYPE("SrcT", from) TYPE("DstT", to))
#define NUMBER(name, dims, value) \
  CONSTANT(name "_f", "DT_FLOAT", dims, "float_val: " value) CAST(name, name "_f", "DT_FLOAT", "DT_ANY")
#define ONE(name, op, x) NODE(name, op, "input: '" x "'", A)
#define TWO(name, op, x, z) NODE(name, op, "input: '" x "' input: '" z "'", A)
#define CLIP(name, x, low, high) NODE(name, "ClipByValue", "input: '" x "' input: '" low "' input: '" high "'", A)
#define NUMBERS(dims)                                                                                     \
  NUMBER("zero", dims, "0") NUMBER("one", dims, "1") NUMBER("three", dims, "3") NUMBER("six", dims, "6")  \
      NUMBER("sixth", dims, "0.166666672") NUMBER("near", dims, "0.16667") NUMBER("half", dims, "0.5")    \
          NUMBER("root", dims, "1.41421354") NUMBER("two", dims, "2") NUMBER("k", dims, "0.044715")       \
              NUMBER("c", dims, "0.797884583") NUMBER("most", dims, "1.702") NUMBER("minus", dims, "-3")  \
                  NUMBER("low", "", "0") NUMBER("high", "", "6") NUMBER("top", "", "1")

typedef struct form {
  const char *name, *made, *text; /* of h, to r */
} form;

static const form forms[] = {
  { "swish of Keras", "_TnSwish", ONE("s", "Sigmoid", "h") TWO("r", "Mul", "h", "s") },
  { "swish of ONNX", "_TnSwish", ONE("s", "Sigmoid", "h") TWO("r", "Mul", "s", "h") },
  { "swish with a factor", "_TnSwish",
    TWO("b", "Mul", "most", "h") ONE("s", "Sigmoid", "b") TWO("r", "Mul", "h", "s") },
  { "hard swish of Keras", "_TnHardSwish",
    TWO("a", "AddV2", "h", "three") ONE("g", "Relu6", "a") TWO("s", "Mul", "g", "sixth") TWO("r", "Mul", "h", "s") },
  { "hard swish of tf.nn", "_TnHardSwish",
    TWO("a", "AddV2", "h", "three") ONE("g", "Relu6", "a") TWO("s", "Mul", "h", "g") TWO("r", "RealDiv", "s", "six") },
  { "hard swish of PyTorch", "_TnHardSwish",
    TWO("a", "Add", "three", "h") CLIP("g", "a", "low", "high") TWO("s", "RealDiv", "g", "six")
        TWO("r", "Mul", "h", "s") },
  { "hard swish of TFLite", "_TnHardSwish",
    TWO("a", "Sub", "h", "minus") ONE("g", "Relu6", "a") TWO("s", "Mul", "sixth", "h") TWO("r", "Mul", "s", "g") },
  { "hard swish of five digits", "_TnHardSwish",
    TWO("a", "AddV2", "h", "three") ONE("g", "Relu6", "a") TWO("s", "Mul", "g", "h") TWO("r", "Mul", "near", "s") },
  { "hard sigmoid of Keras", "_TnHardSigmoid",
    TWO("a", "AddV2", "h", "three") ONE("g", "Relu6", "a") TWO("r", "Mul", "g", "sixth") },
  { "hard sigmoid of bounds", "_TnHardSigmoid",
    TWO("a", "AddV2", "h", "three") TWO("l", "Maximum", "a", "zero") TWO("g", "Minimum", "l", "six")
        TWO("r", "RealDiv", "g", "six") },
  { "hard sigmoid of Relu", "_TnHardSigmoid",
    TWO("a", "AddV2", "h", "three") ONE("l", "Relu", "a") TWO("g", "Minimum", "six", "l")
        TWO("r", "Mul", "sixth", "g") },
  { "mish of tf.nn", "_TnMish", ONE("p", "Softplus", "h") ONE("t", "Tanh", "p") TWO("r", "Mul", "h", "t") },
  { "mish of log1p", "_TnMish",
    ONE("e", "Exp", "h") ONE("p", "Log1p", "e") ONE("t", "Tanh", "p") TWO("r", "Mul", "t", "h") },
  { "mish of ONNX", "_TnMish",
    ONE("e", "Exp", "h") TWO("n", "AddV2", "e", "one") ONE("p", "Log", "n") ONE("t", "Tanh", "p")
        TWO("r", "Mul", "h", "t") },
};
#define N_FORMS (sizeof forms / sizeof *forms)

#define CUBIC(cube) cube TWO("q", "Mul", "k", "p") TWO("u", "AddV2", "h", "q") TWO("v", "Mul", "u", "c") \
    ONE("t", "Tanh", "v") TWO("f", "AddV2", "t", "one")
/* Float only: ONNX's hard sigmoid, for a sixth of another type is not that of float, and GELU. */
static const form lines[] = {
  { "GELU of Keras", "_TnGelu",
    TWO("d", "RealDiv", "h", "root") ONE("e", "Erf", "d") TWO("f", "AddV2", "one", "e") TWO("g", "Mul", "half", "h")
        TWO("r", "Mul", "g", "f") },
  { "GELU of PyTorch", "_TnGelu",
    TWO("d", "RealDiv", "h", "root") ONE("e", "Erf", "d") TWO("f", "AddV2", "e", "one") TWO("g", "Mul", "h", "f")
        TWO("r", "Mul", "g", "half") },
  { "GELU of BERT", "_TnGelu",
    TWO("d", "RealDiv", "h", "root") ONE("e", "Erf", "d") TWO("f", "AddV2", "e", "one") TWO("g", "Mul", "f", "half")
        TWO("r", "Mul", "g", "h") },
  { "half a GELU at the end", "_TnGelu",
    TWO("d", "Mul", "c", "h") ONE("e", "Erf", "d") TWO("f", "AddV2", "e", "one") TWO("g", "Mul", "f", "h")
        TWO("r", "RealDiv", "g", "two") },
  { "GELU of GPT", "_TnGeluTanh",
    CUBIC(TWO("p", "Pow", "h", "three")) TWO("g", "Mul", "h", "half") TWO("r", "Mul", "g", "f") },
  { "GELU of products", "_TnGeluTanh",
    CUBIC(TWO("x2", "Mul", "h", "h") TWO("p", "Mul", "h", "x2")) TWO("g", "Mul", "half", "f")
        TWO("r", "Mul", "h", "g") },
  { "GELU of a square", "_TnGeluTanh",
    CUBIC(ONE("x2", "Square", "h") TWO("p", "Mul", "x2", "h")) TWO("g", "Mul", "f", "h")
        TWO("r", "Mul", "half", "g") },
  { "hard swish of ONNX", "_TnHardSwish",
    TWO("m", "Mul", "h", "sixth") TWO("a", "AddV2", "m", "half") CLIP("g", "a", "low", "top")
        TWO("r", "Mul", "h", "g") },
  { "hard sigmoid of ONNX", "_TnHardSigmoid",
    TWO("m", "Mul", "sixth", "h") TWO("a", "AddV2", "half", "m") TWO("l", "Minimum", "a", "one")
        TWO("r", "Maximum", "l", "zero") },
};

#define N_LINES (sizeof lines / sizeof *lines)

#define PLAIN FLOATS("x", D(-1) D(-1)) FLOATS("w", D(-1) D(-1)) CAST("h", "x", "DT_FLOAT", "DT_ANY")
#define PRODUCT FLOATS("x", D(-1) D(-1)) FLOATS("w", D(-1) D(40)) TWO("h", "MatMul", "x", "w")
#define CONV                                                                                                \
  FLOATS("x", D(-1) D(7) D(6) D(3)) FLOATS("w", D(2) D(2) D(3) D(40))                                       \
      NODE("h", "Conv2D", "input: 'x' input: 'w'", A LIST("strides", 1, 1, 1, 1) TEXT("padding", "SAME"))
#define DEPTHWISE                                                                               \
  FLOATS("x", D(-1) D(7) D(6) D(8)) FLOATS("w", D(3) D(3) D(8) D(1))                            \
      NODE("h", "DepthwiseConv2dNative", "input: 'x' input: 'w'",                               \
           A LIST("strides", 1, 1, 1, 1) TEXT("padding", "SAME"))
#define RESULT CAST("y", "r", "DT_ANY", "DT_FLOAT")

static const char *text_of(const char *head, const form *f, const char *numbers, const char *type, char *to,
                           size_t room)
{
  char all[16384];
  snprintf(all, sizeof all, "%s%s%s%s", head, numbers, f->text, RESULT);
  size_t n = 0;
  for (const char *at = all; *at != 0 && n + 16 < room;) {
    if (strncmp(at, "DT_ANY", 6) == 0) {
      n += (size_t)snprintf(to + n, room - n, "%s", type);
      at += 6;
    } else to[n++] = *at++;
  }
  to[n] = 0;
  return to;
}

static tn_tensor *make(const int64_t *dims, int32_t rank, int64_t seed, float by)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++)
    ((float *)tn_tensor_data(t))[i] = (float)(((i + seed) * 7919) % 211 - 105) * by;
  return t;
}

static tn_tensor *run(const char *text, int level, tn_tensor *x, tn_tensor *w)
{
  ts t;
  const char *names[] = { "x:0", "w:0" }, *fetch = "y:0";
  tn_tensor *feeds[] = { x, w }, *y = NULL;
  tp_open(&t, text, level, "");
  CHECK_OK(tn_session_run(t.session, NULL, names, feeds, 2, &fetch, &y, 1, NULL, 0, NULL, &t.err), &t.err);
  ts_fini(&t);
  return y;
}

static void compare(const char *text, const form *f, tn_tensor *x, tn_tensor *w, double tolerance)
{
  tn_tensor *a = run(text, 0, x, w), *b = run(text, 1, x, w);
  REQUIRE(a != NULL && b != NULL && tn_tensor_bytes(a) == tn_tensor_bytes(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    double p = (double)((float *)tn_tensor_data(a))[i], q = (double)((float *)tn_tensor_data(b))[i];
    CHECK_MSG(fabs(p - q) <= tolerance * (1 + fabs(p)) || p == q || (isnan(p) && isnan(q)),
              "%s, element %d: %.9g at level 0, %.9g at level 1", f->name, (int)i, p, q);
  }
  tn_tensor_unref(a);
  tn_tensor_unref(b);
}

/* Checks the number of nodes of an op, unless the runtime has devices of its own. */
static void check_plan(const char *text, const char *op, int wanted, const char *disabled)
{
  static const char *const names[] = { "x:0", "w:0" };
  const char *fetch = "y:0";
  ts t;
  tn_plan_report *r = NULL;
  if (strncmp(ts_runtime(), "gpu", 3) == 0) return;
  tp_open(&t, text, 1, disabled);
  REQUIRE_OK(tn_session_plan_report(t.session, names, 2, &fetch, 1, NULL, 0, &r, &t.err), &t.err);
  CHECK_MSG(tp_calls(r, op) == wanted, "%d nodes of %s, wanted %d", tp_calls(r, op), op, wanted);
  CHECK_INT(tp_calls(r, "_TnElementwise"), 0);
  tn_plan_report_release(r);
  ts_fini(&t);
}

static void check_alone(const form *f, const char *type, double tolerance)
{
  char text[20000];
  const int64_t dims[] = { 7, 33 }, none[] = { 1, 1 };
  tn_tensor *x = make(dims, 2, 1, 0.11f), *w = make(none, 2, 1, 1);
  float *to = tn_tensor_data(x);
  const float odd[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, -3, 3, 1e-30f, -1e-30f, 87.5f, -87.5f, 88.5f, -88.5f,
                        120, -120, 3e4f, -3e4f };
  memcpy(to, odd, sizeof odd);
  for (int rank = 0; rank < 2; rank++) {
    text_of(PLAIN, f, rank == 0 ? NUMBERS("") : NUMBERS(D(1)), type, text, sizeof text);
    check_plan(text, f->made, 1, "");
    compare(text, f, x, w, tolerance);
  }
  tn_tensor_unref(x);
  tn_tensor_unref(w);
}

static void activation__alone(void)
{
  for (size_t i = 0; i < N_FORMS; i++) {
    check_alone(&forms[i], "DT_FLOAT", 3e-6);
    check_alone(&forms[i], "DT_DOUBLE", 1e-6);
    check_alone(&forms[i], "DT_HALF", 6e-3);
    check_alone(&forms[i], "DT_BFLOAT16", 5e-2);
  }
  for (size_t i = 0; i < N_LINES; i++) check_alone(&lines[i], "DT_FLOAT", 3e-6);
}

static void check_product(const char *head, const char *op, const int64_t *x_dims, const int64_t *w_dims, int32_t rank)
{
  char text[20000];
  for (size_t i = 0; i < N_FORMS + N_LINES; i++) {
    const form *f = i < N_FORMS ? &forms[i] : &lines[i - N_FORMS];
    tn_tensor *x = make(x_dims, rank, (int64_t)i, 0.02f), *w = make(w_dims, rank, 5, 0.01f);
    text_of(head, f, NUMBERS(""), "DT_FLOAT", text, sizeof text);
    check_plan(text, op, 1, "");
    check_plan(text, f->made, 0, "");
    compare(text, f, x, w, 1e-5);
    ((float *)tn_tensor_data(x))[1] = NAN;
    compare(text, f, x, w, 1e-5);
    tn_tensor_unref(x);
    tn_tensor_unref(w);
  }
}

static void activation__of_a_matrix_product(void)
{
  check_product(PRODUCT, "_TnMatMul", (const int64_t[]){ 9, 24 }, (const int64_t[]){ 24, 40 }, 2);
  check_product(PRODUCT, "_TnMatMul", (const int64_t[]){ 1, 24 }, (const int64_t[]){ 24, 40 }, 2);
}

static void activation__of_a_convolution(void)
{
  check_product(CONV, "_TnConv2D", (const int64_t[]){ 2, 7, 6, 3 }, (const int64_t[]){ 2, 2, 3, 40 }, 4);
}

static void activation__of_a_depthwise_convolution(void)
{
  check_product(DEPTHWISE, "_TnDepthwiseConv2D", (const int64_t[]){ 2, 7, 6, 8 }, (const int64_t[]){ 3, 3, 8, 1 }, 4);
}

static void activation__can_be_disabled(void)
{
  char text[20000];
  text_of(PLAIN, &forms[0], NUMBERS(""), "DT_FLOAT", text, sizeof text);
  check_plan(text, "_TnSwish", 0, "activation,elementwise");
}

/* Other numbers, another operand, and a part that is read elsewhere. */
static void activation__is_left_if_it_is_another_function(void)
{
  static const form others[] = {
    { "not three", "", TWO("a", "AddV2", "h", "one") ONE("g", "Relu6", "a") TWO("s", "Mul", "g", "sixth")
                           TWO("r", "Mul", "h", "s") },
    { "not six", "", TWO("a", "AddV2", "h", "three") TWO("l", "Maximum", "a", "zero") TWO("g", "Minimum", "l", "one")
                         TWO("s", "Mul", "g", "sixth") TWO("r", "Mul", "h", "s") },
    { "another line", "", TWO("m", "Mul", "h", "half") TWO("a", "AddV2", "m", "half") CLIP("g", "a", "low", "top")
                              TWO("r", "Mul", "h", "g") },
    { "of another value", "", ONE("n", "Neg", "h") ONE("s", "Sigmoid", "n") TWO("r", "Mul", "h", "s") },
    { "reads the sigmoid", "", ONE("s", "Sigmoid", "h") TWO("m", "Mul", "h", "s") TWO("r", "AddV2", "m", "s") },
    { "reads the gate", "", TWO("a", "AddV2", "h", "three") ONE("g", "Relu6", "a") TWO("s", "Mul", "g", "h")
                                TWO("r", "AddV2", "s", "g") },
  };
  static const char *const made[] = { "_TnSwish", "_TnHardSwish", "_TnHardSigmoid", "_TnMish" };
  const int64_t dims[] = { 7, 33 }, none[] = { 1, 1 };
  tn_tensor *x = make(dims, 2, 1, 0.11f), *w = make(none, 2, 1, 1);
  char text[20000];
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    text_of(PLAIN, &others[i], NUMBERS(""), "DT_FLOAT", text, sizeof text);
    compare(text, &others[i], x, w, 3e-6);
    for (size_t k = 0; k < 4 && i != 1; k++) check_plan(text, made[k], 0, "elementwise");
  }
  tn_tensor_unref(x);
  tn_tensor_unref(w);
}

TAP_MAIN(
  TAP_TEST(activation__alone),
  TAP_TEST(activation__of_a_matrix_product),
  TAP_TEST(activation__of_a_convolution),
  TAP_TEST(activation__of_a_depthwise_convolution),
  TAP_TEST(activation__can_be_disabled),
  TAP_TEST(activation__is_left_if_it_is_another_function))
