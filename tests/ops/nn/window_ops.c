/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, pooling, normalisation and recurrent cells: sizes and attributes that the
 * recorded cases lack, shapes before a step, errors, and lack of memory. */
#include "conformance/support/op_kit.h"

#define IN(name, dims) \
  NODE(name, "Placeholder", "", TYPE("dtype", "DT_FLOAT") "attr { key: 'shape' value { shape { " dims " } } }")
#define HALVES(name, shape) TENSOR(name, "DT_FLOAT", shape, "float_val: 0.5")
#define LIST(key, values) "attr { key: '" key "' value { list { " values " } } }"
#define TEXT(key, value) "attr { key: '" key "' value { s: '" value "' } }"
#define BOOL(key, value) "attr { key: '" key "' value { b: " value " } }"
#define ONES "i: 1 i: 1 i: 1 i: 1"

/* Numbers that all differ, so that no result is right by accident. */
static tn_tensor *numbers(int32_t rank, const int64_t *dims, int seed)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, dims, rank, &t, NULL), NULL);
  float *x = tn_tensor_data(t);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) x[i] = (float)((i * 37 + seed * 11) % 61 - 30) / 32;
  return t;
}

/* ---- gradients ---- */

/* A convolution is linear in its images and in its filter, so for any dy
 *   sum of y dy = sum of x dx = sum of filter df */
typedef struct convolution {
  const char *y, *dx, *df; /* the ops */
  const char *attrs;
  int32_t rank;
  int64_t dims[3][5]; /* of x, filter and y */
} convolution;

static double product(const tn_tensor *a, const tn_tensor *b)
{
  const float *x = tn_tensor_data(a), *y = tn_tensor_data(b);
  double sum = 0;
  REQUIRE_INT(tn_tensor_elements(a), tn_tensor_elements(b));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) sum += (double)x[i] * (double)y[i];
  return sum;
}

static size_t add_sizes(char *to, size_t room, const char *name, int32_t rank, const int64_t *dims)
{
  char values[200];
  size_t n = 0;
  for (int32_t i = 0; i < rank; i++) n += (size_t)snprintf(values + n, sizeof values - n, "int_val: %d ", (int)dims[i]);
  return (size_t)snprintf(to, room,
                          "node { name: '%s' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: "
                          "'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: %d } } %s } } } }\n",
                          name, (int)rank, values);
}

static void check_gradients(const convolution *c)
{
  static const char *const feeds[] = { "x", "f", "dy" }, *const fetches[] = { "y", "dx", "df" };
  char text[4000];
  ts t;
  tn_tensor *in[3], *out[3] = { NULL };
  size_t n = (size_t)snprintf(text, sizeof text, "%s", ANY("x", "DT_FLOAT") ANY("f", "DT_FLOAT") ANY("dy", "DT_FLOAT"));
  n += add_sizes(text + n, sizeof text - n, "xs", c->rank, c->dims[0]);
  n += add_sizes(text + n, sizeof text - n, "fs", c->rank, c->dims[1]);
  snprintf(text + n, sizeof text - n,
           "node { name: 'y' op: '%s' input: 'x' input: 'f' %s }\n"
           "node { name: 'dx' op: '%s' input: 'xs' input: 'f' input: 'dy' %s }\n"
           "node { name: 'df' op: '%s' input: 'x' input: 'fs' input: 'dy' %s }\n",
           c->y, c->attrs, c->dx, c->attrs, c->df, c->attrs);
  ops_open_text(&t, text);
  for (int i = 0; i < 3; i++) in[i] = numbers(c->rank, c->dims[i], i + 1);
  REQUIRE_OK(tn_session_run(t.session, NULL, feeds, in, 3, fetches, out, 3, NULL, 0, NULL, &t.err), &t.err);
  double y = product(out[0], in[2]);
  CHECK(y > 1 || y < -1);
  CHECK_DOUBLE(product(in[0], out[1]), y, 1e-3 * (y < 0 ? -y : y));
  CHECK_DOUBLE(product(in[1], out[2]), y, 1e-3 * (y < 0 ? -y : y));
  for (int i = 0; i < 3; i++) tn_tensor_unref(in[i]), tn_tensor_unref(out[i]);
  ts_fini(&t);
}

#define CONV2D "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"
#define CONV3D "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"
#define DEPTHWISE \
  "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"

static void window_ops__gradients_are_those_of_convolutions(void)
{
  static const convolution all[] = {
    { CONV2D, F LIST("strides", "i: 1 i: 2 i: 1 i: 1") TEXT("padding", "SAME"), 4,
      { { 2, 13, 12, 19 }, { 3, 2, 19, 40 }, { 2, 7, 12, 40 } } },
    { CONV2D, F LIST("strides", ONES) LIST("dilations", "i: 1 i: 2 i: 3 i: 1") TEXT("padding", "VALID"), 4,
      { { 2, 11, 13, 5 }, { 3, 3, 5, 6 }, { 2, 7, 7, 6 } } },
    { CONV2D, F LIST("strides", "i: 1 i: 1 i: 2 i: 2") TEXT("padding", "SAME") TEXT("data_format", "NCHW"), 4,
      { { 2, 6, 9, 8 }, { 3, 3, 6, 17 }, { 2, 17, 5, 4 } } },
    /* three groups */
    { CONV2D, F LIST("strides", ONES) TEXT("padding", "SAME"), 4,
      { { 2, 5, 6, 12 }, { 3, 3, 4, 15 }, { 2, 5, 6, 15 } } },
    { CONV2D, F LIST("strides", ONES) TEXT("padding", "EXPLICIT")
        LIST("explicit_paddings", "i: 0 i: 0 i: 2 i: 0 i: 0 i: 3 i: 0 i: 0"), 4,
      { { 1, 5, 6, 2 }, { 2, 3, 2, 3 }, { 1, 6, 7, 3 } } },
    { CONV3D, F LIST("strides", ONES " i: 1") LIST("dilations", "i: 1 i: 1 i: 2 i: 1 i: 1") TEXT("padding", "SAME"), 5,
      { { 2, 4, 5, 6, 17 }, { 2, 3, 3, 17, 9 }, { 2, 4, 5, 6, 9 } } },
    { CONV3D, F LIST("strides", "i: 1 i: 1 i: 2 i: 1 i: 2") TEXT("padding", "VALID") TEXT("data_format", "NCDHW"), 5,
      { { 2, 3, 5, 6, 7 }, { 2, 3, 2, 3, 4 }, { 2, 4, 2, 4, 3 } } },
    { DEPTHWISE, F LIST("strides", "i: 1 i: 2 i: 2 i: 1") TEXT("padding", "SAME"), 4,
      { { 2, 9, 8, 35 }, { 3, 3, 35, 1 }, { 2, 5, 4, 35 } } },
    { DEPTHWISE, F LIST("strides", ONES) LIST("dilations", "i: 1 i: 1 i: 2 i: 2") TEXT("padding", "VALID")
        TEXT("data_format", "NCHW"), 4, { { 2, 5, 9, 8 }, { 3, 2, 5, 3 }, { 2, 15, 5, 6 } } },
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_gradients(&all[i]);
}

/* ---- shapes ---- */

#define STEP F LIST("strides", ONES) TEXT("padding", "SAME")
#define TWO F LIST("ksize", "i: 1 i: 2 i: 2 i: 1") LIST("strides", "i: 1 i: 2 i: 2 i: 1") TEXT("padding", "VALID")
#define GRAD2 "input: 'in' input: 'best' input: 'best'"
#define CELL "input: 'half.2.4' input: 'half.2.4' input: 'half.7.16' input: 'half.4' input: 'half.4' input: " \
             "'half.4' input: 'half.16'"
/* An unknown batch size propagates. */
#define NETWORK                                                                                                       \
  IN("in", D(-1) D(6) D(6) D(4)) IN("vol", D(1) D(4) D(5) D(6) D(2)) IN("steps", D(3) D(2) D(3))                      \
  HALVES("f", D(3) D(3) D(4) D(2)) HALVES("c", D(4)) HALVES("g", D(2) D(2) D(2) D(2) D(3)) HALVES("e", D(0))          \
  HALVES("d", D(2) D(2) D(4)) HALVES("half.2.4", D(2) D(4)) HALVES("half.7.16", D(7) D(16)) HALVES("half.4", D(4)) \
  HALVES("half.16", D(16)) HALVES("half.2.3", D(2) D(3)) HALVES("half.7.8", D(7) D(8)) HALVES("half.8", D(8))     \
  HALVES("half.7.4", D(7) D(4)) TENSOR("3", "DT_INT64", "", "int64_val: 3")                                          \
  INTS("sizes", D(4), "int_val: 2 int_val: 6 int_val: 6 int_val: 4")                                                  \
  NODE("dw", "DepthwiseConv2dNative", "input: 'in' input: 'f'", STEP)                                                 \
  NODE("bn", "FusedBatchNormV3", "input: 'in' input: 'c' input: 'c' input: 'e' input: 'e'", F TYPE("U", "DT_FLOAT"))  \
  NODE("dbn", "FusedBatchNormGradV3", "input: 'in' input: 'bn' input: 'c' input: 'bn:3' input: 'bn:4' input: 'bn:5'", \
       F TYPE("U", "DT_FLOAT"))                                                                                       \
  NODE("conv3", "Conv3D", "input: 'vol' input: 'g'", F LIST("strides", ONES " i: 1") TEXT("padding", "VALID")         \
       TEXT("data_format", "NDHWC"))                                                                                  \
  NODE("pool3", "MaxPool3D", "input: 'conv3'", F LIST("ksize", "i: 1 i: 2 i: 2 i: 2 i: 1")                            \
       LIST("strides", "i: 1 i: 2 i: 2 i: 2 i: 1") TEXT("padding", "SAME"))                                           \
  NODE("best", "MaxPoolWithArgmax", "input: 'in'", TWO TYPE("Targmax", "DT_INT64"))                                   \
  NODE("back", "MaxPoolGradWithArgmax", "input: 'in' input: 'best' input: 'best:1'", TWO TYPE("Targmax", "DT_INT64")) \
  NODE("grad", "MaxPoolGrad", GRAD2, TWO) NODE("mean", "AvgPoolGrad", "input: 'sizes' input: 'best'", TWO)            \
  NODE("dil", "Dilation2D", "input: 'in' input: 'd'", STEP LIST("rates", ONES)) NODE("lrn", "LRN", "input: 'in'", F)  \
  NODE("bias", "BiasAddGrad", "input: 'dw'", F) NODE("leaky", "LeakyReluGrad", "input: 'in' input: 'lrn'", F)         \
  NODE("lstm", "BlockLSTM", "input: '3' input: 'steps' " CELL, F)                                                     \
  NODE("dlstm", "BlockLSTMGrad", "input: '3' input: 'steps' " CELL " input: 'lstm' input: 'lstm:1' input: 'lstm:2' "  \
       "input: 'lstm:3' input: 'lstm:4' input: 'lstm:5' input: 'lstm:6' input: 'lstm:1' input: 'lstm:6'",             \
       F BOOL("use_peephole", "true"))                                                                                \
  NODE("gru", "GRUBlockCell", "input: 'half.2.3' input: 'half.2.4' input: 'half.7.8' input: 'half.7.4' input: "   \
       "'half.8' input: 'half.4'", F)

static void window_ops__shapes_are_known_before_a_step(void)
{
  ts t;
  ops_open_text(&t, NETWORK);
  CHECK_STR(ops_shape_of(&t, "dw", 0), "[?,6,6,8]");
  CHECK_STR(ops_shape_of(&t, "bn", 0), "[?,6,6,4]");
  CHECK_STR(ops_shape_of(&t, "bn", 1), "[4]");
  CHECK_STR(ops_shape_of(&t, "conv3", 0), "[1,3,4,5,3]");
  CHECK_STR(ops_shape_of(&t, "pool3", 0), "[1,2,2,3,3]");
  CHECK_STR(ops_shape_of(&t, "best", 1), "[?,3,3,4]");
  CHECK_STR(ops_shape_of(&t, "mean", 0), "[2,6,6,4]");
  CHECK_STR(ops_shape_of(&t, "bias", 0), "[8]");
  CHECK_STR(ops_shape_of(&t, "lstm", 6), "[3,2,4]");
  CHECK_STR(ops_shape_of(&t, "dlstm", 3), "[7,16]");
  CHECK_STR(ops_shape_of(&t, "gru", 3), "[2,4]");
  ts_fini(&t);
}

/* ---- errors ---- */

static void expect_error(ts *t, tn_tensor *in, const char *text)
{
  static const char *const feeds[] = { "in" }, *const fetches[] = { "it" };
  tn_tensor *out = NULL;
  tn_error_clear(&t->err);
  CHECK_INT(tn_session_run(t->session, NULL, feeds, &in, 1, fetches, &out, 1, NULL, 0, NULL, &t->err),
            TN_INVALID_ARGUMENT);
  CHECK_NULL(out);
  CHECK_CONTAINS(tn_error_message(&t->err), text);
}

static void window_ops__errors_name_the_offending_value(void)
{
  ts t;
  tn_tensor *in = numbers(4, (int64_t[]){ 1, 4, 4, 2 }, 1);
  ops_open_text(&t, ANY("in", "DT_FLOAT") HALVES("f", D(2) D(2) D(3) D(1))
            NODE("it", "DepthwiseConv2dNative", "input: 'in' input: 'f'", STEP));
  expect_error(&t, in, "images of shape [1,4,4,2], filter of shape [2,2,3,1]: the numbers of channels differ");
  ts_fini(&t);
  ops_open_text(&t, ANY("in", "DT_FLOAT") HALVES("g", D(1) D(2) D(2) D(2))
            TENSOR("at", "DT_INT64", D(1) D(2) D(2) D(2), "int64_val: 32")
            NODE("it", "MaxPoolGradWithArgmax", "input: 'in' input: 'g' input: 'at'", TWO TYPE("Targmax", "DT_INT64")));
  expect_error(&t, in, "element 0 of input 2 is 32, wanted 0 to 31");
  ts_fini(&t);
  ops_open_text(&t, ANY("in", "DT_FLOAT") HALVES("c", D(3))
            NODE("it", "FusedBatchNorm", "input: 'in' input: 'c' input: 'c' input: 'c' input: 'c'",
                 F BOOL("is_training", "false")));
  expect_error(&t, in, "input 1 has shape [3], wanted [2]");
  ts_fini(&t);
  tn_tensor_unref(in);
}

/* ---- lack of memory ---- */

typedef struct trial {
  ts *t;
  tn_tensor *in[3];
} trial;

static tn_status compile_and_run(void *arg)
{
  static const char *const feeds[] = { "in", "vol", "steps" };
  static const char *const fetches[] = { "dbn", "pool3", "back", "grad", "mean", "dil", "bias", "leaky", "dlstm:3",
                                         "gru:3" };
  enum { N = sizeof fetches / sizeof fetches[0] };
  trial *a = arg;
  tn_callable callable;
  tn_tensor *out[N] = { NULL };
  tn_status st = tn_session_make_callable(a->t->session, NULL, feeds, 3, fetches, N, NULL, 0, &callable, NULL);
  if (st != TN_OK) return st;
  st = tn_session_run_callable(a->t->session, callable, a->in, 3, out, N, NULL, NULL);
  for (int k = 0; k < N; k++) tn_tensor_unref(out[k]);
  tn_session_release_callable(a->t->session, callable, NULL);
  return st;
}

static void window_ops__nothing_leaks_without_memory(void)
{
  ts t;
  ops_open_text(&t, NETWORK);
  trial a = { &t, { numbers(4, (int64_t[]){ 2, 6, 6, 4 }, 1), numbers(5, (int64_t[]){ 1, 4, 5, 6, 2 }, 2),
                    numbers(3, (int64_t[]){ 3, 2, 3 }, 3) } };
  CHECK_INT(compile_and_run(&a), TN_OK);
  tn_test_oom_sweep(compile_and_run, &a);
  for (int i = 0; i < 3; i++) tn_tensor_unref(a.in[i]);
  ts_fini(&t);
}

TAP_MAIN(TAP_TEST(window_ops__gradients_are_those_of_convolutions),
         TAP_TEST(window_ops__shapes_are_known_before_a_step), TAP_TEST(window_ops__errors_name_the_offending_value),
         TAP_TEST(window_ops__nothing_leaks_without_memory))
