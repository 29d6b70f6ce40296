/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on oneDNN: results equal those of Tenon's own kernels, the library is loaded for heavy
 * graphs only, and the program's OpenMP settings are not changed. A process can load it only
 * once, so the test of loading is the first. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tenon/plan.h>

#include "conformance/support/session_kit.h"

#ifdef TEST_ONEDNN
#include <omp.h>

/* ---- one op in a graph, from a line ----
 *
 * "Op attr=K:value ... x:dims c:dims": attributes by kind (s text, l list of ints, b bool, f
 * float, i int), then inputs: x is fed, u is fed with an unknown shape, c is a constant, n the
 * numbers themselves. "+Relu", "+Bias7" and the like append another op. T is float, or bfloat16
 * after "half". */

static size_t numbers(const char *text, int64_t *out)
{
  size_t n = 0;
  while (*text != 0 && *text != ' ') {
    char *end;
    out[n++] = strtoll(text, &end, 10);
    text = end + (*end == ',');
  }
  return n;
}

/* On any processor, so that its kernels are tested. */
__attribute__((constructor)) static void take_all(void) { setenv("TENON_ONEDNN_ALL", "1", 0); }

/* Use all bits of a float, so that sums depend on their order. */
static bool all_bits;

/* Values from -1 to 1: exact in bfloat16, half of them multiples of 1/16, or with all bits used;
 * the same each time. */
static tn_tensor *values(tn_dtype dtype, const int64_t *dims, int32_t rank, uint32_t seed)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &err), &err);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) {
    seed = seed * 1664525u + 1013904223u;
    float v = (float)((int32_t)(seed >> 24) - 128) / 128;
    if (dtype == TN_FLOAT && all_bits) {
      ((float *)tn_tensor_data(t))[i] = (float)((int32_t)(seed >> 8) - (1 << 23)) / (1 << 23);
    } else if (dtype == TN_FLOAT) {
      ((float *)tn_tensor_data(t))[i] = v;
    } else {
      uint32_t bits;
      memcpy(&bits, &v, sizeof bits);
      ((uint16_t *)tn_tensor_data(t))[i] = (uint16_t)(bits >> 16);
    }
  }
  return t;
}

static float value_at(const tn_tensor *t, int64_t i)
{
  if (tn_tensor_dtype(t) == TN_FLOAT) return ((const float *)tn_tensor_data(t))[i];
  uint32_t bits = (uint32_t)((const uint16_t *)tn_tensor_data(t))[i] << 16;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

typedef struct one {
  ts t;
  tn_tensor *feeds[4];
  const char *names[4];
  size_t n;
} one;

static void set_attr(tn_operation_builder *b, const char *text)
{
  char name[40];
  int64_t v[16];
  const char *at = strchr(text, '=');
  snprintf(name, sizeof name, "%.*s", (int)(at - text), text);
  const char *value = at + 3;
  switch (at[1]) {
  case 's': tn_operation_set_string(b, name, value, strcspn(value, " ")); break;
  case 'b': tn_operation_set_bool(b, name, *value == '1'); break;
  case 'f': tn_operation_set_float(b, name, strtof(value, NULL)); break;
  case 'i': tn_operation_set_int(b, name, strtoll(value, NULL, 10)); break;
  default: tn_operation_set_ints(b, name, v, numbers(value, v)); break;
  }
}

static tn_output constant(one *o, const char *name, tn_tensor *value)
{
  tn_output c = ts_const_tensor(o->t.graph, name, value);
  tn_tensor_unref(value);
  return c;
}

static tn_output add_numbers(one *o, const char *name, const int64_t *dims, int64_t n)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, &n, 1, &t, &o->t.err), &o->t.err);
  for (int64_t i = 0; i < n; i++) ((int32_t *)tn_tensor_data(t))[i] = (int32_t)dims[i];
  return constant(o, name, t);
}

static tn_output add_input(one *o, const char *text, tn_dtype dtype, size_t i)
{
  static const char *const names[] = { "a", "b", "c", "d" };
  int64_t dims[8];
  int32_t rank = (int32_t)numbers(text + 2, dims);
  if (text[0] == 'n') return add_numbers(o, names[i], dims, rank);
  tn_tensor *t = values(dtype, dims, rank, (uint32_t)i + 1);
  if (text[0] == 'c') return constant(o, names[i], t);
  o->names[o->n] = names[i];
  o->feeds[o->n++] = t;
  tn_output x = ts_placeholder(o->t.graph, names[i], dtype);
  if (text[0] == 'u') return x;
  REQUIRE_OK(tn_graph_set_shape(x, dims, rank, &o->t.err), &o->t.err); /* so that the plan's work is known */
  return x;
}

static tn_output number(one *o, const char *name, float value)
{
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(TN_FLOAT, NULL, 0, &t, &o->t.err), &o->t.err);
  *(float *)tn_tensor_data(t) = value;
  return constant(o, name, t);
}

/* Activations of several steps, which become one. */
static tn_output add_gate(one *o, const char *line, tn_output x)
{
  tn_graph *g = o->t.graph;
  if (strstr(line, "+Swish") != NULL) return ts_op2(g, "Mul", "swish", x, ts_op1(g, "Sigmoid", "gate", x));
  if (strstr(line, "+Mish") != NULL)
    return ts_op2(g, "Mul", "mish", x, ts_op1(g, "Tanh", "gate", ts_op1(g, "Softplus", "softplus", x)));
  if (strstr(line, "+Gelu") != NULL) {
    tn_output e = ts_op1(g, "Erf", "erf", ts_op2(g, "RealDiv", "scaled", x, number(o, "root", 1.41421356f)));
    tn_output half = ts_op2(g, "Mul", "half", x, number(o, "half_of", 0.5f));
    return ts_op2(g, "Mul", "gelu", half, ts_op2(g, "AddV2", "sum", e, number(o, "one", 1)));
  }
  if (strstr(line, "+HardSwish") == NULL) return x;
  tn_output gate = ts_op1(g, "Relu6", "gate", ts_op2(g, "AddV2", "sum", x, number(o, "three", 3)));
  return ts_op2(g, "Mul", "swish", x, ts_op2(g, "Mul", "scaled", gate, number(o, "sixth", 1.0f / 6)));
}

static const char *target; /* of the next sessions; NULL = the default */

static void open_line(one *o, const char *line, int level, const char *plugins)
{
  char op[60];
  tn_output in[4];
  size_t n = 0;
  memset(o, 0, sizeof *o);
  ts_init(&o->t, level);
  REQUIRE_OK(tn_session_options_set_string(o->t.options, "kernel_plugins", plugins, &o->t.err), &o->t.err);
  if (target != NULL) REQUIRE_OK(tn_session_options_set_target(o->t.options, target, &o->t.err), &o->t.err);
  snprintf(op, sizeof op, "%.*s", (int)strcspn(line, " "), line);
  tn_dtype dtype = strstr(line, " half ") != NULL ? TN_BFLOAT16 : TN_FLOAT;
  for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' '))
    if (at[2] == ':') in[n] = add_input(o, at + 1, dtype, n), n++;
  tn_operation_builder *b = tn_operation_begin(o->t.graph, op, "y", 0);
  for (size_t i = 0; i < n; i++) tn_operation_add_input(b, in[i]);
  for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' ')) {
    const char *is = strchr(at + 1, '='), *next = strchr(at + 1, ' ');
    if (is != NULL && (next == NULL || is < next)) set_attr(b, at + 1);
  }
  tn_operation *made = NULL;
  REQUIRE_OK(tn_operation_finish(b, &made, &o->t.err), &o->t.err);
  tn_output y = { made, 0 };
  if (strstr(line, "+Bias") != NULL) {
    const int64_t size = strtoll(strstr(line, "+Bias") + 5, NULL, 10);
    y = ts_op2(o->t.graph, "BiasAdd", "biased", y, constant(o, "bias", values(dtype, &size, 1, 9)));
  }
  if (strstr(line, "+Relu6") != NULL) y = ts_op1(o->t.graph, "Relu6", "relu", y);
  else if (strstr(line, "+Relu") != NULL) y = ts_op1(o->t.graph, "Relu", "relu", y);
  if (strstr(line, "+Tanh") != NULL) y = ts_op1(o->t.graph, "Tanh", "tanh", y);
  if (strstr(line, "+Sigmoid") != NULL) y = ts_op1(o->t.graph, "Sigmoid", "sigmoid", y);
  y = add_gate(o, line, y);
  ts_op1(o->t.graph, "Identity", "out", y);
  ts_start(&o->t);
}

static tn_tensor *run_line(one *o)
{
  const char *fetch = "out:0";
  tn_tensor *out = NULL;
  REQUIRE_OK(tn_session_run(o->t.session, NULL, o->names, o->feeds, o->n, &fetch, &out, 1, NULL, 0, NULL, &o->t.err),
             &o->t.err);
  return out;
}

static void close_line(one *o)
{
  for (size_t i = 0; i < o->n; i++) tn_tensor_unref(o->feeds[i]);
  ts_fini(&o->t);
}

static tn_tensor *result(const char *line, int level, const char *plugins)
{
  one o;
  open_line(&o, line, level, plugins);
  tn_tensor *out = run_line(&o);
  close_line(&o);
  return out;
}

static bool is_mapped(const char *name)
{
  char line[5000];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  REQUIRE_MSG(maps != NULL, "no /proc");
  while (fgets(line, sizeof line, maps) != NULL) found = found || strstr(line, name) != NULL;
  fclose(maps);
  return found;
}

/* ---- results ---- */

#define CONV "Conv2D strides=l:1,1,1,1 padding=s:SAME"
#define STEP "Conv2D strides=l:1,2,2,1"
#define DEEP "DepthwiseConv2dNative strides=l:1,1,1,1 padding=s:SAME"
#define CUBE "Conv3D strides=l:1,1,1,1,1 padding=s:SAME"
#define TO_INPUT(rest) "Conv2DBackpropInput strides=l:1,1,1,1 padding=s:SAME" rest
#define TO_FILTER(rest) "Conv2DBackpropFilter strides=l:1,1,1,1 padding=s:SAME" rest
#define POOL(op, k, s) op " ksize=l:1," k "," k ",1 strides=l:1," s "," s ",1"

static const char *const lines[] = {
  "MatMul x:64,64 c:64,64", "MatMul x:64,64 x:64,64", "MatMul x:1,700 c:700,700", "MatMul x:1,700 x:700,700",
  "MatMul transpose_a=b:1 x:70,65 c:70,50", "MatMul transpose_b=b:1 x:65,70 c:50,70",
  "MatMul transpose_a=b:1 transpose_b=b:1 x:70,65 x:50,70", "MatMul x:65,70 c:70,33 +Bias33 +Relu",
  "MatMul x:65,70 c:70,33 +Tanh", "MatMul x:65,70 c:70,33 +Bias33 +Sigmoid",
  "MatMul x:3,3 c:3,3", "MatMul x:0,64 c:64,64", "MatMul x:64,0 c:0,64", "MatMul half x:64,64 c:64,64",
  "MatMul x:16,70 c:70,512", "MatMul x:3,200 c:200,130", "MatMul transpose_b=b:1 x:33,70 c:130,70",
  "BatchMatMulV2 x:6,40,50 x:6,50,30", "BatchMatMulV2 adj_x=b:1 adj_y=b:1 x:6,50,40 x:6,30,50",
  "BatchMatMulV2 x:2,3,40,50 x:3,50,30", "BatchMatMulV2 x:2,1,40,50 x:3,50,30", "BatchMatMulV2 x:50,40 x:2,3,40,30",
  "BatchMatMulV2 x:6,40,50 c:50,30", "BatchMatMulV2 x:6,40,50 c:6,50,30", "BatchMatMulV2 adj_x=b:1 x:6,50,40 c:50,30",
  "BatchMatMul x:2,3,40,50 x:2,3,50,30", "BatchMatMulV2 x:6,0,50 x:6,50,30",
  CONV " x:2,17,13,16 c:3,3,16,24", CONV " x:2,17,13,16 x:3,3,16,24", CONV " x:1,17,13,3 c:5,4,3,20 +Bias20 +Relu6",
  CONV " x:1,9,9,16 c:1,1,16,64 +Bias64", CONV " dilations=l:1,2,3,1 x:1,17,19,16 c:3,3,16,24",
  CONV " x:1,9,9,32 c:3,3,8,64", STEP " padding=s:SAME x:1,17,14,16 c:3,3,16,24",
  STEP " padding=s:VALID x:1,18,14,16 c:3,3,16,24",
  STEP " padding=s:SAME x:1,18,15,16 c:1,1,16,64", "Conv2D strides=l:1,5,4,1 padding=s:VALID x:2,33,37,16 c:2,3,16,64",
  STEP " padding=s:EXPLICIT explicit_paddings=l:0,0,3,1,0,2,0,0 x:1,17,13,16 c:3,3,16,24",
  CONV " x:0,9,9,16 c:3,3,16,24",
  CONV " half x:1,17,13,16 c:3,3,16,32", DEEP " x:2,17,13,16 c:3,3,16,1", DEEP " x:1,17,13,12 c:3,3,12,3 +Bias36 +Relu",
  "DepthwiseConv2dNative strides=l:1,2,2,1 padding=s:VALID x:1,30,33,24 c:5,3,24,1",
  DEEP " dilations=l:1,2,2,1 x:1,30,33,24 c:3,3,24,1",
  /* with fewer multiplications, whole tiles and partial ones */
  CONV " x:1,24,24,32 c:3,3,32,48", CONV " x:5,13,10,16 c:3,3,16,16 +Bias16 +Relu",
  CONV " x:1,25,26,16 c:3,3,16,32 +Bias32 +Relu6", CONV " x:40,7,8,32 c:3,3,32,16 +Sigmoid",
  "Conv2D strides=l:1,1,1,1 padding=s:VALID x:2,30,31,64 c:3,3,64,16",
  "Conv2D strides=l:1,1,1,1 padding=s:EXPLICIT explicit_paddings=l:0,0,3,1,0,2,0,0 x:1,27,23,16 c:3,3,16,32",
  CONV " x:2,20,20,16 x:3,3,16,32", CONV " x:2,20,20,32 c:1,1,32,512",
  CONV " dilations=l:1,1,4,1 x:1,49,10,1 c:1,5,1,64",
  DEEP " x:1,24,24,16 c:3,3,16,1 +Bias16 +Swish", DEEP " x:1,24,24,16 c:5,5,16,1 +HardSwish",
  CONV " x:1,24,24,32 c:3,3,32,48 +Mish", CONV " x:3,9,9,32 c:1,1,32,64 +Bias64 +Swish",
  "MatMul x:65,70 c:70,33 +HardSwish", "MatMul x:65,70 c:70,33 +Bias33 +Gelu", CONV " x:1,9,9,16 c:1,1,16,64 +Gelu",
  CONV " x:3,9,9,20 c:1,1,20,12 +Bias12 +Relu",
  CUBE " x:2,5,7,6,8 c:3,2,3,8,24", "Conv3D strides=l:1,2,1,2,1 padding=s:VALID x:1,7,8,9,4 c:2,3,1,4,40",
  CUBE " x:1,5,4,6,16 c:1,1,1,16,48", CUBE " dilations=l:1,1,2,2,1 x:1,7,9,9,8 x:3,3,3,8,16",
  /* gradients */
  TO_INPUT(" n:2,17,13,16 x:3,3,16,24 x:2,17,13,24"), TO_INPUT(" n:2,17,13,16 c:3,3,16,24 x:2,17,13,24"),
  TO_FILTER(" x:2,17,13,16 n:3,3,16,24 x:2,17,13,24"), TO_FILTER(" x:5,8,8,12 n:2,3,4,6 x:5,8,8,6"),
  "Conv2DBackpropInput strides=l:1,2,3,1 padding=s:VALID n:2,18,19,5 x:3,4,5,20 x:2,8,6,20",
  "Conv2DBackpropFilter strides=l:1,2,3,1 padding=s:VALID x:2,18,19,5 n:3,4,5,20 x:2,8,6,20",
  "Conv2DBackpropInput strides=l:1,2,2,1 padding=s:SAME dilations=l:1,1,1,1 n:1,12,12,16 x:1,1,16,32 x:1,6,6,32",
  "Depthwise" "Conv2dNativeBackpropInput strides=l:1,2,2,1 padding=s:SAME n:2,17,14,16 x:3,3,16,1 x:2,9,7,16",
  "Depthwise" "Conv2dNativeBackpropFilter strides=l:1,1,1,1 padding=s:SAME x:2,17,14,6 n:3,3,6,2 x:2,17,14,12",
  "Conv3DBackpropInputV2 strides=l:1,1,2,1,1 padding=s:SAME n:1,5,8,6,8 x:3,3,3,8,16 x:1,5,4,6,16",
  "Conv3DBackpropFilterV2 strides=l:1,1,2,1,1 padding=s:SAME x:1,5,8,6,8 n:3,3,3,8,16 x:1,5,4,6,16",
  "Conv3DBackpropInput strides=l:1,1,1,1,1 padding=s:SAME x:1,5,8,6,8 x:3,3,3,8,16 x:1,5,8,6,16",
  "Conv3DBackpropFilter strides=l:1,1,1,1,1 padding=s:SAME x:1,5,8,6,8 x:3,3,3,8,16 x:1,5,8,6,16",
  POOL("MaxPoolGrad", "3", "2") " padding=s:SAME x:2,17,14,16 x:2,9,7,16 x:2,9,7,16",
  POOL("MaxPoolGrad", "2", "2") " padding=s:VALID x:2,17,14,5 x:2,8,7,5 x:2,8,7,5",
  POOL("AvgPoolGrad", "3", "2") " padding=s:SAME n:2,17,14,16 x:2,9,7,16",
  "AvgPool3DGrad ksize=l:1,2,3,2,1 strides=l:1,2,1,2,1 padding=s:SAME n:1,7,9,8,16 x:1,4,9,4,16",
  POOL("MaxPool", "3", "2") " padding=s:SAME x:2,17,14,16", POOL("MaxPool", "3", "2") " padding=s:VALID x:2,18,14,5",
  POOL("AvgPool", "3", "2") " padding=s:SAME x:2,17,14,16", POOL("AvgPool", "2", "3") " padding=s:VALID x:2,18,15,16",
  POOL("MaxPool", "2", "3") " padding=s:SAME x:2,19,16,16", POOL("MaxPool", "9", "1") " padding=s:SAME x:1,5,6,48",
  "AvgPool3D ksize=l:1,2,3,2,1 strides=l:1,2,1,2,1 padding=s:SAME x:1,7,9,8,16",
  "MaxPool3D ksize=l:1,2,3,2,1 strides=l:1,2,1,2,1 padding=s:VALID x:2,7,9,8,16",
  "Softmax x:70,60", "Softmax x:3,25,40", "Softmax x:300", "Softmax x:300,1", "LogSoftmax x:20,17",
  "LRN depth_radius=i:2 alpha=f:0.3 beta=f:0.75 bias=f:2 x:1,5,6,32", "LRN depth_radius=i:40 beta=f:0.75 x:1,5,6,32",
  "LRN depth_radius=i:0 beta=f:0.75 x:1,5,6,16", "LRN depth_radius=i:2 beta=f:0.6 x:1,5,6,32",
};
#define N_LINES (sizeof lines / sizeof *lines)

/* Errors of a sum are relative to its largest terms, and therefore to the largest results. */
static void compare(const char *line, const tn_tensor *own, const tn_tensor *got)
{
  int64_t n = tn_tensor_elements(own);
  float limit = 1, share = tn_tensor_dtype(own) != TN_FLOAT ? 1e-2f : 1e-5f;
  REQUIRE_MSG(tn_tensor_rank(own) == tn_tensor_rank(got) && n == tn_tensor_elements(got), "%s: shapes differ", line);
  for (int32_t d = 0; d < tn_tensor_rank(own); d++) CHECK_INT(tn_tensor_dims(got)[d], tn_tensor_dims(own)[d]);
  for (int64_t i = 0; i < n; i++) limit = fmaxf(limit, fabsf(value_at(own, i)));
  for (int64_t i = 0; i < n; i++) {
    float a = value_at(own, i), b = value_at(got, i);
    if (fabsf(a - b) <= share * limit) continue;
    CHECK_MSG(false, "%s: element %lld is %g, wanted %g", line, (long long)i, (double)b, (double)a);
    return;
  }
}

/* A graph that seems light until its steps have taken as long as loading the library does. */
static void load_by_steps(void)
{
  one o;
  open_line(&o, CONV " u:2,17,13,16 c:3,3,16,24 +Bias24 +Relu", 1, "auto");
  tn_tensor *own = run_line(&o);
  CHECK(!is_mapped("libdnnl"));
  for (int i = 0; i < 100000 && !is_mapped("libdnnl"); i++) tn_tensor_unref(run_line(&o));
  CHECK(is_mapped("libdnnl"));
  tn_tensor *got = run_line(&o);
  compare("after many steps", own, got);
  tn_tensor_unref(own);
  tn_tensor_unref(got);
  close_line(&o);
}

static void onednn__results_equal_those_of_own_kernels(void)
{
  tn_tensor *own[N_LINES];
  for (size_t i = 0; i < N_LINES; i++) own[i] = result(lines[i], 1, "never");
  tn_tensor *small = result("MatMul x:8,8 c:8,8", 1, "auto");
  CHECK(!is_mapped("libdnnl")); /* no graph so far was heavy */
  tn_tensor_unref(small);
  load_by_steps();
  for (size_t i = 0; i < N_LINES; i++) {
    for (int level = 0; level <= 1; level++) {
      tn_tensor *got = result(lines[i], level, "always");
      compare(lines[i], own[i], got);
      tn_tensor_unref(got);
    }
    tn_tensor_unref(own[i]);
  }
}

/* The convolution of an image with a NaN in the middle. */
static tn_tensor *result_with_nan(const char *line, int level)
{
  one o;
  open_line(&o, line, level, "always");
  ((float *)tn_tensor_data(o.feeds[0]))[(12 * 24 + 12) * 16 + 5] = NAN;
  tn_tensor *out = run_line(&o);
  close_line(&o);
  return out;
}

/* At level 0 each step is a separate op. */
static void onednn__fused_steps_keep_a_nan(void)
{
  static const char *const fused[] = {
    CONV " x:1,24,24,16 c:1,1,16,64 +Bias64 +Relu",  CONV " x:1,24,24,16 c:1,1,16,64 +Relu6",
    CONV " x:1,24,24,16 c:5,4,16,20 +Bias20 +Relu6", CONV " x:1,24,24,16 c:5,5,16,32 +Tanh",
    CONV " x:1,24,24,16 c:1,1,16,64 +Bias64 +Sigmoid", DEEP " x:1,24,24,16 c:3,3,16,1 +Bias16 +Relu",
    STEP " padding=s:SAME x:1,24,24,16 c:3,3,16,24 +Bias24 +Relu", "MatMul x:576,16 c:16,64 +Relu",
    DEEP " x:1,24,24,16 c:3,3,16,1 +Swish", DEEP " x:1,24,24,16 c:3,3,16,1 +Bias16 +Mish",
    DEEP " x:1,24,24,16 c:3,3,16,1 +HardSwish", DEEP " x:1,24,24,16 c:3,3,16,1 +Gelu",
    "MatMul x:576,16 c:16,256 +Bias256 +Tanh", CONV " dilations=l:1,2,3,1 x:1,24,24,16 c:3,3,16,24 +Relu",
  };
  for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) {
    tn_tensor *own = result_with_nan(fused[i], 0), *got = result_with_nan(fused[i], 1);
    REQUIRE_INT(tn_tensor_elements(own), tn_tensor_elements(got));
    int nans = 0, differ = 0;
    for (int64_t k = 0; k < tn_tensor_elements(own); k++) {
      float a = value_at(own, k), b = value_at(got, k);
      nans += isnan(a) != 0;
      differ += isnan(a) ? !isnan(b) : !(fabsf(a - b) <= 1e-4f * (1 + fabsf(a)));
    }
    CHECK_MSG(nans > 0 && differ == 0, "%s: %d NaN; of all values %d differ", fused[i], nans, differ);
    tn_tensor_unref(own);
    tn_tensor_unref(got);
  }
}

static void onednn__a_nan_is_kept_and_stays_within_its_tile(void)
{
  tn_tensor *got = result_with_nan(CONV " x:1,24,24,16 c:3,3,16,16", 1);
  const float *v = tn_tensor_data(got);
  for (int i = 0; i < 24 * 24 * 16; i++) {
    int down = abs(i / 16 / 24 - 12), across = abs(i / 16 % 24 - 12);
    bool under = down <= 1 && across <= 1, near = down <= 4 && across <= 4; /* 3 points further */
    CHECK_MSG(near || !isnan(v[i]), "element %d is a NaN", i);
    CHECK_MSG(!under || isnan(v[i]), "element %d is none", i);
  }
  tn_tensor_unref(got);
}

/* Whether the line's op runs on the plugin's kernel. */
static bool is_taken(const char *line)
{
  one o;
  bool taken = false;
  const char *fetch = "out:0";
  tn_plan_report *r = NULL;
  open_line(&o, line, 1, "always");
  tn_tensor_unref(run_line(&o));
  REQUIRE_OK(tn_session_plan_report(o.t.session, o.names, o.n, &fetch, 1, NULL, 0, &r, &o.t.err), &o.t.err);
  for (size_t i = 0;; i++) {
    tn_plan_call call = { .struct_size = sizeof call };
    if (tn_plan_report_call(r, i, &call, &o.t.err) != TN_OK) break;
    if (call.kernel != TN_NOT_IN_PLAN && strstr(call.kernels[call.kernel], "onednn") != NULL) taken = true;
  }
  tn_plan_report_release(r);
  close_line(&o);
  return taken;
}

/* On AMD processors a multiplication and an addition take as long as one fused instruction. */
#if defined(__x86_64__)
#define FUSED_IS_FASTER (!__builtin_cpu_is("amd"))
#else
#define FUSED_IS_FASTER true
#endif

static void onednn__is_chosen_if_it_is_faster(void)
{
  static const char *const faster[] = {
    "MatMul x:128,128 c:128,128", "MatMul x:64,512 x:512,500", CONV " x:1,24,24,32 c:3,3,32,48",
    CONV " x:2,17,13,16 x:3,3,16,32", CONV " x:5,13,10,16 c:3,3,16,16",
    CONV " x:1,9,9,16 c:1,1,16,64", DEEP " x:2,17,13,32 c:3,3,32,1", CUBE " x:2,5,7,6,8 c:3,2,3,8,24",
    TO_INPUT(" n:2,17,13,16 x:3,3,16,24 x:2,17,13,24"), TO_FILTER(" x:2,17,13,16 n:3,3,16,24 x:2,17,13,24"),
    POOL("MaxPool", "3", "2") " padding=s:SAME x:2,17,14,16", "Softmax x:70,60",
    POOL("MaxPoolGrad", "3", "2") " padding=s:SAME x:2,17,14,16 x:2,9,7,16 x:2,9,7,16",
    POOL("AvgPoolGrad", "3", "2") " padding=s:SAME n:2,17,14,16 x:2,9,7,16",
    "LRN depth_radius=i:2 beta=f:0.75 x:1,5,6,32",
  };
  static const char *const slower[] = {
    "MatMul x:8,8 c:8,8", "MatMul x:1,700 x:700,700", "MatMul x:640,64 x:64,24", "MatMul x:8,512 x:512,512",
    "MatMul x:640,64 c:64,7", CONV " x:1,16,16,2 c:3,3,2,40", CONV " x:1,6,6,24 c:3,3,24,10",
    CONV " x:1,64,64,16 c:3,3,16,4", "Softmax x:300,10", "Softmax x:32,1000", DEEP " x:1,28,28,16 c:3,3,16,1",
    CONV " x:1,3,3,4 c:3,3,4,8",
    CONV " dilations=l:1,1,4,1 x:1,49,10,1 c:1,5,1,64", CONV " x:1,4,4,16 x:3,3,16,64",
    "Conv2D strides=l:1,4,1,1 padding=s:VALID x:1,100,1,16 c:5,1,16,32",
  };
  static const char *const fused[] = {
    "MatMul x:640,64 c:64,24", "MatMul x:8,100 c:100,50", CONV " x:1,16,16,24 c:3,3,24,40",
    CONV " x:1,16,16,24 x:3,3,24,40", CONV " x:1,13,5,172 c:1,1,172,172", CONV " x:1,13,5,172 c:1,1,172,12",
  };
  for (size_t i = 0; i < sizeof faster / sizeof *faster; i++)
    CHECK_MSG(is_taken(faster[i]), "not taken: %s", faster[i]);
  for (size_t i = 0; i < sizeof fused / sizeof *fused; i++)
    CHECK_MSG(is_taken(fused[i]) == FUSED_IS_FASTER, "%s", fused[i]);
  for (size_t i = 0; i < sizeof slower / sizeof *slower; i++)
    CHECK_MSG(!is_taken(slower[i]), "taken: %s", slower[i]);
}

/* With fused multiply-add but without AVX-512 they are no faster. */
static void onednn__products_are_left_where_they_gain_nothing(void)
{
#if defined(__x86_64__)
  const bool taken = !__builtin_cpu_supports("fma") || __builtin_cpu_supports("avx512f");
#else
  const bool taken = true;
#endif
  unsetenv("TENON_ONEDNN_ALL");
  CHECK_INT(is_taken("MatMul x:128,132 c:132,128"), taken);
  CHECK_INT(is_taken(CONV " x:1,24,25,32 c:3,3,32,48"), taken);
  CHECK(is_taken(DEEP " x:2,17,15,32 c:3,3,32,1"));
  CHECK_INT(is_taken(TO_INPUT(" n:2,17,15,16 x:3,3,16,24 x:2,17,15,24")), taken);
  CHECK(is_taken(TO_INPUT(" n:2,17,15,16 x:5,5,16,24 x:2,17,15,24")));
  CHECK_INT(is_taken(TO_FILTER(" x:2,17,15,16 n:3,3,16,24 x:2,17,15,24")), taken);
  take_all();
}

/* ---- threads ---- */

typedef struct worker {
  one *o;
  tn_tensor *wanted;
  int bad;
} worker;

static void *work(void *user)
{
  worker *w = user;
  const char *fetch = "out:0";
  for (int i = 0; i < 20; i++) {
    tn_tensor *out = NULL;
    tn_error err = TN_ERROR_INIT;
    const one *o = w->o;
    tn_status st =
        tn_session_run(o->t.session, NULL, o->names, o->feeds, o->n, &fetch, &out, 1, NULL, 0, NULL, &err);
    w->bad += st != TN_OK || memcmp(tn_tensor_data(out), tn_tensor_data(w->wanted), tn_tensor_bytes(out)) != 0;
    tn_tensor_unref(out);
    tn_error_clear(&err);
  }
  return NULL;
}

static void onednn__steps_may_be_concurrent(void)
{
  one o;
  pthread_t threads[4];
  worker workers[4];
  open_line(&o, CONV " x:2,17,13,16 c:3,3,16,24 +Bias24 +Relu", 1, "always");
  tn_tensor *wanted = run_line(&o);
  for (int i = 0; i < 4; i++) {
    workers[i] = (worker){ &o, wanted, 0 };
    REQUIRE_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    CHECK_INT(workers[i].bad, 0);
  }
  tn_tensor_unref(wanted);
  close_line(&o);
}

/* Work shared by several threads. */
static const char *const large[] = {
  /* rows, columns, matrices */
  "MatMul x:515,70 c:70,160 +Bias160 +Relu",
  "MatMul x:129,300 x:300,96",
  "MatMul x:1,900 c:900,1000 +Bias1000",
  "MatMul x:9,500 c:500,128 +Bias128 +Relu6",
  "MatMul x:17,333 c:333,333 +Tanh",
  "MatMul x:40,333 c:333,70",
  "MatMul transpose_b=b:1 x:65,70 c:300,70",
  "MatMul half x:130,200 c:200,160",
  "BatchMatMulV2 x:7,80,60 x:7,60,96",
  "BatchMatMulV2 x:7,80,60 c:60,96",
  CONV " x:1,31,29,32 c:1,1,32,144 +Bias144",
  CONV " x:1,4,4,160 c:1,1,160,960 +Relu",
  CONV " x:1,3,3,960 c:1,1,960,320 +Bias320",
  CONV " x:1,4,4,960 c:1,1,960,160 +Bias160",
  CONV " x:1,13,5,172 c:1,1,172,172 +Bias172 +Relu",
  CONV " x:1,6,6,960 c:1,1,960,320 +Bias320",
  CONV " x:1,6,6,640 c:1,1,640,128 +Relu",
  CONV " x:1,5,7,2000 c:1,1,2000,288",
  "MatMul x:36,700 c:700,512",
  "MatMul x:30,500 c:500,48",
  "MatMul x:1,1280 c:1280,1001",
  "MatMul x:24,256 c:256,64 +Bias64",
  "MatMul x:13,500 c:500,48 +Relu",
  "MatMul x:8,700 c:700,48",
  "MatMul x:7,700 c:700,48",
  "MatMul x:12,700 c:700,64",
  "MatMul x:6,4000 c:4000,32",
  "MatMul x:9,3000 c:3000,24",
  "MatMul x:3,2000 c:2000,33",
  "MatMul x:40,64 c:64,512",
  "MatMul x:20,32 c:32,400 +Bias400",
  "MatMul x:28,600 c:600,500 +Bias500 +Relu",
  "MatMul x:47,300 c:300,1000",
  "MatMul x:48,300 c:300,1000 +Tanh",
  /* bands and images */
  CONV " x:1,37,29,16 c:5,3,16,32 +Bias32 +Relu",
  CONV " x:2,37,29,16 c:5,3,16,32",
  CONV " x:9,13,11,16 c:5,3,16,32",
  CONV " dilations=l:1,3,2,1 x:1,47,39,16 c:3,3,16,48",
  STEP " padding=s:SAME x:1,63,51,3 c:7,7,3,64 +Bias64",
  STEP " padding=s:VALID x:3,40,41,16 c:3,3,16,48",
  STEP " padding=s:VALID x:9,24,24,16 c:3,3,16,48",
  CONV " x:1,3,70,64 c:3,3,64,16",
  CONV " x:3,31,29,16 x:5,3,16,32",
  STEP " padding=s:EXPLICIT explicit_paddings=l:0,0,3,1,0,2,0,0 x:1,57,53,16 c:4,4,16,32",
  DEEP " x:1,43,37,48 c:3,3,48,1 +Bias48 +Relu6",
  DEEP " x:5,23,17,32 c:5,5,32,1",
  CUBE " x:1,9,17,16,8 c:3,2,3,8,32",
  POOL("MaxPool", "3", "2") " padding=s:SAME x:1,77,64,64",
  POOL("AvgPool", "3", "1") " padding=s:SAME x:2,37,34,48",
  /* tiles */
  CONV " x:1,24,24,32 c:3,3,32,48",
  CONV " x:5,33,30,16 c:3,3,16,32 +Bias32 +Relu",
  CONV " x:1,25,26,128 c:3,3,128,32",
};

static bool same_bits(const tn_tensor *a, const tn_tensor *b)
{
  size_t n = tn_tensor_bytes(a);
  return n == tn_tensor_bytes(b) && memcmp(tn_tensor_data(a), tn_tensor_data(b), n) == 0;
}

static void check_bits(const char *line)
{
  static const char *const targets[] = { "threaded:threads=2", "threaded:threads=3", "threaded:threads=7" };
  tn_tensor *one_thread = result(line, 1, "always");
  for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
    target = targets[k];
    tn_tensor *got = result(line, 1, "always");
    target = NULL;
    CHECK_MSG(same_bits(one_thread, got), "%s: %s gives other bits", line, targets[k]);
    tn_tensor_unref(got);
  }
  tn_tensor_unref(one_thread);
}

static void onednn__results_do_not_depend_on_threads(void)
{
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512f")) TAP_SKIP("without AVX-512 the sums of oneDNN depend on the rows of a part");
#endif
  all_bits = true;
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_bits(large[i]);
  for (size_t i = 0; i < N_LINES; i++) check_bits(lines[i]);
  all_bits = false;
}

/* Steps are tried with workers and without; without, a node has a single part. */
static void onednn__results_do_not_depend_on_help(void)
{
  for (size_t i = 0; i < sizeof large / sizeof *large; i += 2) {
    one o;
    const char *fetch = "out:0";
    tn_session *s;
    tn_tensor *first = result(large[i], 1, "always");
    target = "threaded:threads=2";
    open_line(&o, large[i], 1, "always");
    target = NULL;
    REQUIRE_OK(tn_session_create(o.t.options, &s, &o.t.err), &o.t.err);
    REQUIRE_OK(tn_session_set_graph(s, o.t.graph, &o.t.err), &o.t.err);
    for (int step = 0; step < 40; step++) {
      tn_tensor *out = NULL;
      REQUIRE_OK(tn_session_run(s, NULL, o.names, o.feeds, o.n, &fetch, &out, 1, NULL, 0, NULL, &o.t.err), &o.t.err);
      CHECK_MSG(same_bits(first, out), "%s: step %d gives other bits", large[i], step);
      tn_tensor_unref(out);
    }
    tn_session_destroy(s);
    tn_tensor_unref(first);
    close_line(&o);
  }
}

/* ---- OpenMP ---- */

static int count_threads(void)
{
  int n = 0;
  DIR *folder = opendir("/proc/self/task");
  REQUIRE_MSG(folder != NULL, "no /proc");
  for (struct dirent *e; (e = readdir(folder)) != NULL;) n += e->d_name[0] != '.';
  closedir(folder);
  return n;
}

static void run_some(void)
{
  for (size_t i = 0; i < N_LINES; i += 3) tn_tensor_unref(result(lines[i], 1, "always"));
}

static void *set_and_run(void *threads)
{
  omp_set_num_threads(*(int *)threads);
  tn_tensor_unref(result(CONV " x:1,19,13,16 c:3,3,16,24", 1, "always")); /* a new shape, so it is planned here */
  *(int *)threads = omp_get_max_threads();
  return NULL;
}

/* A program of several threads with an OpenMP team: no team is started for Tenon, and no setting
 * changes. */
static void onednn__does_not_change_openmp_of_the_program(void)
{
#if defined(__SANITIZE_THREAD__)
  TAP_SKIP("the thread sanitizer does not support OpenMP");
#endif
  int before = omp_get_max_threads(), threads = count_threads();
  run_some();
  CHECK_INT(omp_get_max_threads(), before);
  CHECK(count_threads() <= threads); /* helpers of earlier tests may have ended */
  omp_set_num_threads(3);
  int sum = 0;
#pragma omp parallel reduction(+ : sum)
  sum += omp_get_thread_num() + 1;
  CHECK_INT(sum, 6);
  threads = count_threads();
  run_some();
  tn_tensor_unref(result(CONV " x:3,40,40,32 c:3,3,32,32", 1, "always"));
  CHECK_INT(omp_get_max_threads(), 3);
  CHECK(count_threads() <= threads); /* helpers of earlier tests may have ended */
  pthread_t thread;
  int other = 5;
  REQUIRE_INT(pthread_create(&thread, NULL, set_and_run, &other), 0);
  pthread_join(thread, NULL);
  CHECK_INT(other, 5);
  CHECK_INT(omp_get_max_threads(), 3);
  sum = 0;
#pragma omp parallel reduction(+ : sum)
  sum += 1;
  CHECK_INT(sum, 3);
  omp_set_num_threads(before);
}

/* ---- memory ---- */

static tn_status run_all(void *user)
{
  one *o = user;
  tn_error err = TN_ERROR_INIT;
  const char *fetch = "out:0";
  tn_session *s = NULL;
  tn_tensor *out = NULL;
  tn_status st = tn_session_create(o->t.options, &s, &err);
  if (st == TN_OK) st = tn_session_set_graph(s, o->t.graph, &err);
  if (st == TN_OK)
    st = tn_session_run(s, NULL, o->names, o->feeds, o->n, &fetch, &out, 1, NULL, 0, NULL, &err);
  tn_tensor_unref(out);
  tn_session_destroy(s);
  tn_error_clear(&err);
  return st;
}

static void onednn__survives_lack_of_memory(void)
{
  static const char *const some[] = { CONV " x:1,9,9,16 c:3,3,16,24 +Bias24 +Relu", "MatMul x:64,64 c:64,64",
                                      POOL("MaxPool", "3", "2") " padding=s:SAME x:2,17,14,16",
                                      CONV " x:1,24,24,16 c:3,3,16,16 +Bias16", CONV " x:2,9,9,16 x:3,3,16,24",
                                      TO_FILTER(" x:2,7,7,8 n:3,3,8,8 x:2,7,7,8"),
                                      POOL("MaxPoolGrad", "3", "2") " padding=s:SAME x:1,9,8,16 x:1,5,4,16 x:1,5,4,16",
                                      "LRN depth_radius=i:2 beta=f:0.75 x:1,5,6,32" };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    one o;
    open_line(&o, some[i], 1, "always");
    tn_test_oom_sweep(run_all, &o);
    close_line(&o);
  }
}

static void onednn__survives_lack_of_memory_for_parts(void)
{
  for (size_t i = 0; i < sizeof large / sizeof *large; i += 4) {
    one o;
    target = "threaded:threads=3,pin=1"; /* a pool of its own, as workers of a shared pool may be started in between */
    open_line(&o, large[i], 1, "always");
    target = NULL;
    tn_test_oom_sweep(run_all, &o);
    close_line(&o);
  }
}
#else
#define SKIPPED(name) \
  static void name(void) { TAP_SKIP("built without oneDNN"); }
SKIPPED(onednn__results_equal_those_of_own_kernels)
SKIPPED(onednn__a_nan_is_kept_and_stays_within_its_tile)
SKIPPED(onednn__fused_steps_keep_a_nan)
SKIPPED(onednn__is_chosen_if_it_is_faster)
SKIPPED(onednn__products_are_left_where_they_gain_nothing)
SKIPPED(onednn__steps_may_be_concurrent)
SKIPPED(onednn__results_do_not_depend_on_threads)
SKIPPED(onednn__results_do_not_depend_on_help)
SKIPPED(onednn__does_not_change_openmp_of_the_program)
SKIPPED(onednn__survives_lack_of_memory)
SKIPPED(onednn__survives_lack_of_memory_for_parts)
#endif

TAP_MAIN(
  TAP_TEST(onednn__results_equal_those_of_own_kernels),
  TAP_TEST(onednn__a_nan_is_kept_and_stays_within_its_tile),
  TAP_TEST(onednn__fused_steps_keep_a_nan),
  TAP_TEST(onednn__is_chosen_if_it_is_faster),
  TAP_TEST(onednn__products_are_left_where_they_gain_nothing),
  TAP_TEST(onednn__steps_may_be_concurrent),
  TAP_TEST(onednn__results_do_not_depend_on_threads),
  TAP_TEST(onednn__results_do_not_depend_on_help),
  TAP_TEST(onednn__does_not_change_openmp_of_the_program),
  TAP_TEST(onednn__survives_lack_of_memory),
  TAP_TEST(onednn__survives_lack_of_memory_for_parts))
