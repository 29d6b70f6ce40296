/* SPDX-License-Identifier: Apache-2.0 */
/* Products, convolutions, pooling, normalisation, resizing, recurrent layers and their gradients
 * on the runtime gpu: results equal those of `direct` for sizes that do not fill a tile,
 * strides, dilations, paddings, batches, and ops fused into a product. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/gpu_kit.h"
#include "conformance/support/rnn_kit.h"
#include "conformance/support/session_kit.h"

/* ---- the log: nodes on the device ---- */

static struct {
  int nodes, on_cpu, launches; /* of the last plan */
} seen;

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  const char *at = strstr(line, " nodes on the device, ");
  if (at == NULL) return;
  while (at[-1] >= '0' && at[-1] <= '9') at--;
  (void)sscanf(at, "%d nodes on the device, %d on the CPU; a step has %d launches", &seen.nodes, &seen.on_cpu,
               &seen.launches);
}

/* ---- a node as text ---- */

#define MOST 8

/* inputs: shapes "2x7x9x3 3x3x3x8"; "#1,2" is an int32 constant. attrs: "strides=1,2,2,1
 * padding=SAME epsilon=0.1 adj_x=true". then: ops with one input that follow, and "BiasAdd" and
 * "Add" with a second input. */
typedef struct line {
  const char *op, *inputs, *attrs, *then;
  int outputs;         /* outputs to compare; 0: one */
  int launches;        /* 0: any */
  int by_clblast;      /* launches with CLBlast; 0: any */
} line;

typedef struct scene {
  ts t;
  tn_dtype dtype;
  size_t n;
  const char *names[MOST];
  tn_tensor *feeds[MOST];
  char text[MOST][16];
} scene;

static uint64_t seed;

static float number(void)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return ((float)((seed >> 33) % 2001) - 1000) / 1000;
}

static void put(tn_tensor *t, int64_t i, float x)
{
  void *data = tn_tensor_data(t);
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  switch (tn_tensor_dtype(t)) {
  case TN_DOUBLE: ((double *)data)[i] = x; break;
  case TN_BFLOAT16: ((uint16_t *)data)[i] = (uint16_t)(u >> 16); break;
  case TN_HALF: /* truncated: any half will do */
    u = (u & 0x7fffffff) < 0x38800000 ? 0 : (u >> 16 & 0x8000) | ((u & 0x7fffffff) - 0x38000000) >> 13;
    ((uint16_t *)data)[i] = (uint16_t)u;
    break;
  case TN_INT32: ((int32_t *)data)[i] = (int32_t)(x * 1000); break;
  default: ((float *)data)[i] = x;
  }
}

static double get(const tn_tensor *t, int64_t i)
{
  const void *data = tn_tensor_data(t);
  uint32_t u;
  float f;
  switch (tn_tensor_dtype(t)) {
  case TN_DOUBLE: return ((const double *)data)[i];
  case TN_INT32: return ((const int32_t *)data)[i];
  case TN_FLOAT: return ((const float *)data)[i];
  case TN_BFLOAT16:
    u = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&f, &u, sizeof f);
    return f;
  default:
    u = ((const uint16_t *)data)[i];
    f = (float)((u & 0x7c00) != 0 ? (u & 0x3ff) + 0x400 : u & 0x3ff);
    f = ldexpf(f, (int)((u & 0x7c00) != 0 ? u >> 10 & 31 : 1) - 25);
    return u & 0x8000 ? -f : f;
  }
}

/* Reads the numbers of "2x7" or "1,2"; returns the position after the last one. */
static const char *read_numbers(const char *at, int64_t *out, size_t *n)
{
  char *end;
  for (*n = 0; *n < MOST; at = end + 1) {
    out[(*n)++] = strtoll(at, &end, 10);
    if (*end != 'x' && *end != ',') return end;
  }
  return at;
}

static tn_output add_feed(scene *s, tn_dtype dtype, const int64_t *dims, int32_t rank)
{
  tn_operation *op = NULL;
  REQUIRE(s->n < MOST);
  snprintf(s->text[s->n], sizeof s->text[s->n], "x%zu", s->n);
  tn_operation_builder *b = tn_operation_begin(s->t.graph, "Placeholder", s->text[s->n], 0);
  tn_operation_set_type(b, "dtype", dtype);
  tn_operation_set_shape(b, "shape", dims, rank);
  REQUIRE_OK(tn_operation_finish(b, &op, &s->t.err), &s->t.err);
  tn_tensor *t = NULL;
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &s->t.err), &s->t.err);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) put(t, i, number());
  s->names[s->n] = s->text[s->n];
  s->feeds[s->n++] = t;
  return (tn_output){ op, 0 };
}

static tn_output add_sizes(scene *s, const int64_t *values, size_t n)
{
  tn_tensor *t = NULL;
  const int64_t count = (int64_t)n;
  REQUIRE_OK(tn_tensor_create(TN_INT32, &count, 1, &t, &s->t.err), &s->t.err);
  for (size_t i = 0; i < n; i++) ((int32_t *)tn_tensor_data(t))[i] = (int32_t)values[i];
  static int made;
  char name[32];
  snprintf(name, sizeof name, "sizes%d", made++);
  tn_output out = ts_const_tensor(s->t.graph, name, t);
  tn_tensor_unref(t);
  return out;
}

/* "name=value"; the kind follows from the form of the value. */
static const char *set_attr(tn_operation_builder *b, const char *at)
{
  char name[40] = "", value[80] = "";
  int used = 0;
  int64_t numbers[MOST];
  size_t n;
  REQUIRE(sscanf(at, " %39[^=]=%79s%n", name, value, &used) == 2);
  const bool is_number = (value[0] >= '0' && value[0] <= '9') || value[0] == '-';
  if (strchr(value, ',') != NULL) {
    (void)read_numbers(value, numbers, &n);
    tn_operation_set_ints(b, name, numbers, n);
  } else if (is_number && strchr(value, '.') != NULL) {
    tn_operation_set_float(b, name, strtof(value, NULL));
  } else if (is_number) {
    tn_operation_set_int(b, name, strtoll(value, NULL, 10));
  } else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
    tn_operation_set_bool(b, name, value[0] == 't');
  } else {
    tn_operation_set_string(b, name, value, strlen(value));
  }
  for (at += used; *at == ' '; at++) continue;
  return at;
}

/* Inputs that FusedBatchNorm and its like read per channel are float and above 0. All but the first of _TnLayerNorm are
 * a list. */
static void add_inputs(scene *s, tn_operation_builder *b, const char *op, const char *at)
{
  const bool list = strcmp(op, "_TnLayerNorm") == 0;
  tn_output listed[MOST];
  size_t n_listed = 0;
  const bool norm = strncmp(op, "FusedBatchNorm", 14) == 0, grad = strstr(op, "Grad") != NULL;
  for (int i = 0; *at != 0; i++) {
    int64_t numbers[MOST];
    size_t n;
    const bool sizes = *at == '#';
    at = read_numbers(sizes ? at + 1 : at, numbers, &n);
    while (*at == ' ') at++;
    const bool channels = norm && i >= (grad ? 2 : 1);
    const tn_dtype dtype = channels ? TN_FLOAT : s->dtype;
    const tn_output in = sizes ? add_sizes(s, numbers, n) : add_feed(s, dtype, numbers, (int32_t)n);
    if (channels)
      for (int64_t k = 0; k < tn_tensor_elements(s->feeds[s->n - 1]); k++) put(s->feeds[s->n - 1], k, 1.5f + number());
    if (list && i > 0) listed[n_listed++] = in;
    else tn_operation_add_input(b, in);
  }
  if (list) tn_operation_add_input_list(b, listed, n_listed);
}

static tn_output add_then(scene *s, tn_output x, const char *then, int i)
{
  char name[16], op[40];
  int64_t dims[TN_MAX_RANK];
  int32_t rank = 0;
  tn_operation *made = NULL;
  REQUIRE(sscanf(then, "%39s", op) == 1);
  snprintf(name, sizeof name, "then%d", i);
  REQUIRE_OK(tn_output_shape(x, dims, TN_MAX_RANK, &rank, &s->t.err), &s->t.err);
  tn_output with = { 0 };
  const bool bias = strcmp(op, "BiasAdd") == 0, both = strcmp(op, "AddV2") == 0;
  if (bias) with = add_feed(s, s->dtype, &dims[rank - 1], 1);
  if (both) with = add_feed(s, s->dtype, dims, rank);
  tn_operation_builder *b = tn_operation_begin(s->t.graph, op, name, 0);
  tn_operation_add_input(b, x);
  if (bias || both) tn_operation_add_input(b, with);
  if (strcmp(op, "LeakyRelu") == 0) tn_operation_set_float(b, "alpha", 0.3f);
  REQUIRE_OK(tn_operation_finish(b, &made, &s->t.err), &s->t.err);
  return (tn_output){ made, 0 };
}

static void build(scene *s, const line *l, char (*fetches)[24], int *n)
{
  tn_operation *op = NULL;
  tn_operation_builder *b = tn_operation_begin(s->t.graph, l->op, "node", 0);
  add_inputs(s, b, l->op, l->inputs);
  for (const char *at = l->attrs; at != NULL && *at != 0;) at = set_attr(b, at);
  REQUIRE_OK(tn_operation_finish(b, &op, &s->t.err), &s->t.err);
  tn_output x = { op, 0 };
  int i = 0;
  for (const char *at = l->then; at != NULL && *at != 0; i++) {
    x = add_then(s, x, at, i);
    at += strcspn(at, " ");
    while (*at == ' ') at++;
  }
  *n = l->outputs > 0 ? l->outputs : 1;
  for (int k = 0; k < *n; k++) snprintf(fetches[k], sizeof fetches[k], "%s:%d", tn_operation_name(x.op), k);
}

static int answer(const char *on, const line *l, tn_dtype dtype, tn_tensor **out)
{
  scene s = { .dtype = dtype };
  char fetches[MOST][24];
  const char *names[MOST];
  int n;
  seed = 7;
  ts_init(&s.t, 1);
  REQUIRE_OK(tn_session_options_set_target(s.t.options, on, &s.t.err), &s.t.err);
  build(&s, l, fetches, &n);
  for (int i = 0; i < n; i++) names[i] = fetches[i];
  ts_start(&s.t);
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
  seen.nodes = seen.on_cpu = seen.launches = -1;
  tn_status st = tn_session_run(s.t.session, NULL, s.names, s.feeds, s.n, names, out, (size_t)n, NULL, 0, NULL,
                                &s.t.err);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  REQUIRE_OK(st, &s.t.err);
  for (size_t i = 0; i < s.n; i++) tn_tensor_unref(s.feeds[i]);
  ts_fini(&s.t);
  return n;
}

/* ---- comparing ---- */

static double tolerance(tn_dtype dtype)
{
  switch (dtype) {
  case TN_DOUBLE: return 1e-12;
  case TN_HALF: return 2e-3;
  case TN_BFLOAT16: return 1.6e-2;
  case TN_INT32: return 0;
  default: return 1e-5;
  }
}

static bool same(const tn_tensor *a, const tn_tensor *b, char *why, size_t room)
{
  double largest = 1;
  if (tn_tensor_rank(a) != tn_tensor_rank(b) || tn_tensor_elements(a) != tn_tensor_elements(b)) {
    snprintf(why, room, "the shapes differ");
    return false;
  }
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) largest = fmax(largest, fabs(get(a, i)));
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    double x = get(a, i), y = get(b, i);
    if (fabs(x - y) <= tolerance(tn_tensor_dtype(a)) * largest || (isnan(x) && isnan(y))) continue;
    snprintf(why, room, "element %lld is %.9g, wanted %.9g", (long long)i, y, x);
    return false;
  }
  return true;
}

#define OWN "gpu:placement=device,blas=own"
#define CLBLAST "gpu:placement=device,blas=clblast"
static const char *target = OWN; /* for the checks */

static void check_line(const line *l, tn_dtype dtype)
{
  tn_tensor *wanted[MOST] = { NULL }, *got[MOST] = { NULL };
  char why[200] = "";
  int n = answer("direct", l, dtype, wanted);
  const int launches = strcmp(target, CLBLAST) == 0 ? l->by_clblast : l->launches;
  (void)answer(target, l, dtype, got);
  CHECK_MSG(seen.nodes > 0 && seen.on_cpu == 0, "%s %s %s: %d nodes on the device, %d on the CPU", l->op, l->inputs,
            l->attrs, seen.nodes, seen.on_cpu);
  CHECK_MSG(launches == 0 || seen.launches == launches, "%s %s on %s: %d launches, wanted %d", l->op, l->inputs, target,
            seen.launches, launches);
  for (int i = 0; i < n; i++) {
    const bool good = same(wanted[i], got[i], why, sizeof why);
    CHECK_MSG(good, "%s of %s, %s, output %d: %s", l->op, l->inputs, l->attrs, i, why);
    tn_tensor_unref(wanted[i]);
    tn_tensor_unref(got[i]);
  }
}

static void check_all(const line *lines, size_t n, tn_dtype dtype)
{
  for (size_t i = 0; i < n; i++) check_line(&lines[i], dtype);
}
#define CHECK_ALL(lines, dtype) check_all(lines, sizeof(lines) / sizeof *(lines), dtype)

/* ---- products ---- */

/* Sizes that leave tiles of each kind partly empty: many tiles, few, narrow ones, a few rows. */
static const line any_size[] = {
  { "MatMul", "257x19 19x257", "", .launches = 1 },
  { "MatMul", "19x257 257x19", "transpose_a=true transpose_b=true" },
  { "MatMul", "500x9 9x500", "" },
  { "MatMul", "300x50 50x7", "" },
  { "MatMul", "33x1000 1000x40", "", .launches = 2, .by_clblast = 1 }, /* terms are shared out */
  { "MatMul", "33x37 37x35", "" },
  { "MatMul", "37x33 35x37", "transpose_a=true transpose_b=true" },
  { "MatMul", "1x1 1x1", "" },
  { "MatMul", "5x0 0x40", "" },
};

static void gpu_products__products_of_any_size(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(any_size, TN_FLOAT);
}

static const line few_rows[] = {
  { "MatMul", "1x70 70x1", "", .launches = 1 },
  { "MatMul", "1x333 333x2050", "", .launches = 1 },
  { "MatMul", "3x70 19x70", "transpose_b=true", .launches = 1 },
  { "MatMul", "70x3 19x70", "transpose_a=true transpose_b=true", .launches = 1 },
  { "MatMul", "4x0 0x19", "" },
};

static void gpu_products__few_rows(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(few_rows, TN_FLOAT);
}

static void gpu_products__all_types(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = { { "MatMul", "37x45 45x33", "" }, { "BatchMatMulV2", "2x1x1x9 3x9x20", "" } };
  static const tn_dtype dtypes[] = { TN_DOUBLE, TN_HALF, TN_BFLOAT16, TN_INT32 };
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) CHECK_ALL(lines, dtypes[i]);
}

static const line batches[] = {
  { "BatchMatMul", "3x2x5x7 3x2x7x6", "" },
  { "BatchMatMulV2", "3x2x5x7 7x6", "" }, /* one matrix: all rows together */
  { "BatchMatMulV2", "5x7 3x2x7x6", "" },
  { "BatchMatMulV2", "2x1x3x5x7 4x1x7x6", "" },
  { "BatchMatMulV2", "3x1x7x5 1x4x6x7", "adj_x=true adj_y=true" },
  { "BatchMatMulV2", "2x3x1x7 2x1x7x6", "" },
};

static void gpu_products__batches_broadcast(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(batches, TN_FLOAT);
}

/* The next step of a chain is part of the product's launch. */
static const line followed[] = {
  { "MatMul", "33x37 37x35", "", "BiasAdd Relu", .launches = 1, .by_clblast = 2 },
  { "MatMul", "33x37 37x35", "", "BiasAdd AddV2 Relu6", .launches = 1 },
  { "MatMul", "2x37 37x35", "", "BiasAdd Tanh", .launches = 1 },
  { "MatMul", "33x900 900x35", "", "AddV2 Sigmoid", .launches = 2, .by_clblast = 2 },
  { "Conv2D", "2x7x9x3 3x3x3x21", "strides=1,2,1,1 padding=SAME", "BiasAdd LeakyRelu", .launches = 1 },
  { "Conv2D", "2x7x9x3 3x3x3x21", "strides=1,1,1,1 padding=VALID", "BiasAdd AddV2 Relu", .launches = 1 },
  { "DepthwiseConv2dNative", "2x7x9x8 3x3x8x1", "strides=1,1,1,1 padding=SAME", "BiasAdd Relu6", .launches = 1 },
  { "DepthwiseConv2dNative", "2x7x9x3 3x3x3x2", "strides=1,1,1,1 padding=SAME", "BiasAdd AddV2 Relu", .launches = 1 },
};

static const line rows[] = {
  { "_TnLayerNorm", "3x5x70 70 70", "N=2 epsilon=0.001 scaled=true shifted=true", .launches = 1 },
  { "_TnLayerNorm", "7x300 300", "N=1 epsilon=0.001 scaled=true centered=false", .launches = 1 },
  { "_TnLayerNorm", "9x64 64", "N=1 epsilon=0.1 shifted=true", .launches = 1 },
  { "_TnLayerNorm", "9x3", "N=0 epsilon=0.1", .launches = 1 },
  { "_TnLayerNorm", "0x3", "N=0 epsilon=0.1" },
};

static void gpu_products__rows_are_normalised(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(rows, TN_FLOAT);
}

static void gpu_products__ops_that_follow_are_in_the_launch(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(followed, TN_FLOAT);
}

/* ---- convolutions ---- */
static const line convolutions[] = {
  { "Conv2D", "2x7x9x3 3x2x3x21", "strides=1,1,1,1 padding=SAME", .launches = 1 },
  { "Conv2D", "2x13x9x18 3x5x18x33", "strides=1,2,3,1 padding=SAME" },
  { "Conv2D", "2x13x9x5 3x2x5x33", "strides=1,1,1,1 padding=VALID dilations=1,2,3,1" },
  { "Conv2D", "2x7x9x3 3x3x3x21", "strides=1,2,2,1 padding=EXPLICIT explicit_paddings=0,0,1,2,3,0,0,0" },
  { "Conv2D", "2x7x9x6 3x3x2x21", "strides=1,1,1,1 padding=SAME" }, /* three groups */
  { "Conv2D", "2x7x9x40 1x1x40x33", "strides=1,1,1,1 padding=SAME" },
  { "Conv2D", "2x7x9x40 1x1x40x33", "strides=1,2,2,1 padding=SAME" },
  { "Conv2D", "1x5x5x300 3x3x300x9", "strides=1,1,1,1 padding=SAME", .launches = 2 },
  { "Conv2D", "1x2x2x3 5x5x3x4", "strides=1,1,1,1 padding=SAME" },
};

static void gpu_products__convolutions(void)
{
  GPU_NEEDS_DEVICE();
  CHECK_ALL(convolutions, TN_FLOAT);
  check_line(&convolutions[0], TN_DOUBLE);
  check_line(&convolutions[0], TN_HALF);
}

static void gpu_products__gradients_of_convolutions(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = {
    { "Conv2DBackpropInput", "#2,7,9,5 3x2x5x21 2x7x9x21", "strides=1,1,1,1 padding=SAME" },
    { "Conv2DBackpropInput", "#2,7,9,3 3x3x3x21 2x3x4x21", "strides=1,2,2,1 padding=VALID" },
    { "Conv2DBackpropInput", "#2,9,9,3 3x3x3x21 2x5x5x21", "strides=1,1,1,1 padding=VALID dilations=1,2,2,1" },
    { "Conv2DBackpropInput", "#2,7,9,6 3x3x2x21 2x7x9x21", "strides=1,1,1,1 padding=SAME" },
    { "Conv2DBackpropFilter", "2x7x9x5 #3,2,5,21 2x7x9x21", "strides=1,1,1,1 padding=SAME" },
    { "Conv2DBackpropFilter", "2x7x9x3 #3,3,3,21 2x3x4x21", "strides=1,2,2,1 padding=VALID" },
    { "Conv2DBackpropFilter", "2x7x9x6 #3,3,2,21 2x7x9x21", "strides=1,1,1,1 padding=SAME" },
    { "Conv2DBackpropFilter", "8x28x28x1 #3,3,1,16 8x28x28x16", "strides=1,1,1,1 padding=SAME" },
  };
  CHECK_ALL(lines, TN_FLOAT);
}

static void gpu_products__depthwise_convolutions(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = {
    { "DepthwiseConv2dNative", "2x7x9x8 3x3x8x1", "strides=1,2,2,1 padding=SAME" },
    { "DepthwiseConv2dNative", "2x7x9x5 3x2x5x3", "strides=1,1,1,1 padding=VALID dilations=1,2,3,1" },
    { "DepthwiseConv2dNativeBackpropInput", "#2,7,9,5 3x2x5x3 2x4x5x15", "strides=1,2,2,1 padding=SAME" },
    { "DepthwiseConv2dNativeBackpropFilter", "2x7x9x5 #3,2,5,3 2x4x5x15", "strides=1,2,2,1 padding=SAME" },
  };
  CHECK_ALL(lines, TN_FLOAT);
  check_line(&lines[0], TN_HALF);
}

/* ---- pooling, normalisation, resizing ---- */

static void gpu_products__pooling(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = {
    { "MaxPool", "2x7x9x5", "ksize=1,3,2,1 strides=1,2,2,1 padding=SAME" },
    { "MaxPool", "2x5x7x9", "ksize=1,1,3,3 strides=1,1,2,2 padding=VALID data_format=NCHW" },
    { "MaxPoolV2", "2x7x9x5 #1,3,2,1 #1,2,1,1", "padding=SAME" },
    { "AvgPool", "2x7x9x5", "ksize=1,3,3,1 strides=1,2,2,1 padding=SAME" },
    { "AvgPool", "2x7x7x5", "ksize=1,7,7,1 strides=1,1,1,1 padding=VALID" },
    { "MaxPoolGrad", "2x7x9x5 2x4x5x5 2x4x5x5", "ksize=1,3,2,1 strides=1,2,2,1 padding=SAME" },
    { "MaxPoolGrad", "2x7x9x5 2x5x8x5 2x5x8x5", "ksize=1,3,2,1 strides=1,1,1,1 padding=VALID" },
    { "AvgPoolGrad", "#2,7,9,5 2x4x5x5", "ksize=1,3,3,1 strides=1,2,2,1 padding=SAME" },
  };
  CHECK_ALL(lines, TN_FLOAT);
  check_line(&lines[0], TN_INT32);
  check_line(&lines[3], TN_BFLOAT16);
}

static void gpu_products__normalisation(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = {
    { "FusedBatchNormV3", "2x7x9x19 19 19 19 19", "is_training=false epsilon=0.01", .outputs = 5 },
    { "FusedBatchNormV3", "5x17x9x19 19 19 19 19", "is_training=true epsilon=0.01", .outputs = 5 },
    { "FusedBatchNormV3", "5x17x9x3 3 3 3 3", "is_training=true exponential_avg_factor=0.25", .outputs = 5 },
    { "FusedBatchNormGrad", "5x17x9x19 5x17x9x19 19 19 19", "is_training=true", .outputs = 3 },
    { "FusedBatchNormGradV3", "5x17x9x3 5x17x9x3 3 3 3 3", "is_training=false", .outputs = 3 },
    { "LRN", "2x3x4x9", "depth_radius=2 beta=0.75 bias=1.5" },
    { "BiasAddGrad", "5x17x9x19", "" },
    { "BiasAddGrad", "5x19x9x3", "data_format=NCHW" },
  };
  CHECK_ALL(lines, TN_FLOAT);
}

static void gpu_products__resizing(void)
{
  GPU_NEEDS_DEVICE();
  static const line lines[] = {
    { "ResizeBilinear", "2x5x7x3 #9,4", "" },
    { "ResizeBilinear", "2x5x7x3 #9,4", "half_pixel_centers=true" },
    { "ResizeBilinear", "2x5x7x3 #9,4", "align_corners=true" },
    { "ResizeNearestNeighbor", "2x5x7x3 #9,4", "half_pixel_centers=true" },
    { "ResizeNearestNeighbor", "2x5x7x3 #9,4", "align_corners=true" },
  };
  CHECK_ALL(lines, TN_FLOAT);
}

/* ---- CLBlast ---- */

static void hear_clblast(void *user, int32_t level, const char *text)
{
  (void)level;
  if (strstr(text, " are computed by libclblast") != NULL) *(bool *)user = true;
}

/* False if there is no CLBlast, or the plugin was built without it: own kernels then compute all
 * products. */
static bool has_clblast(void)
{
  bool has = false;
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, CLBLAST, &t.err), &t.err);
  tn_set_log_sink(hear_clblast, &has);
  tn_set_log_level(TN_LOG_INFO);
  ts_start(&t);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  ts_fini(&t);
  return has;
}

#define CHECK_ALL_BY_CLBLAST(lines, dtype) (target = CLBLAST, CHECK_ALL(lines, dtype), target = OWN)

/* Small products, batches, and products that need temporary memory. */
static void gpu_products__clblast_multiplies(void)
{
  GPU_NEEDS_DEVICE();
  if (!has_clblast()) TAP_SKIP("CLBlast is not available");
  static const line large[] = {
    { "MatMul", "700x701 701x820", "", .by_clblast = 1 },
    { "MatMul", "701x700 820x701", "transpose_a=true transpose_b=true", "BiasAdd Relu", .by_clblast = 2 },
    { "BatchMatMulV2", "2x700x701 2x701x820", "", .by_clblast = 1 },
  };
  static const line doubles[] = {
    { "MatMul", "37x45 45x33", "", .by_clblast = 1 },
    { "MatMul", "33x900 900x35", "", "AddV2 Sigmoid", .by_clblast = 2 },
  };
  CHECK_ALL_BY_CLBLAST(any_size, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(few_rows, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(batches, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(followed, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(large, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(doubles, TN_DOUBLE);
}

/* Products that CLBlast does not compute, and convolutions that are products. */
static void gpu_products__clblast_leaves_the_rest_to_own_kernels(void)
{
  GPU_NEEDS_DEVICE();
  if (!has_clblast()) TAP_SKIP("CLBlast is not available");
  static const line halves[] = { { "MatMul", "33x900 900x35", "", .by_clblast = 2 } };
  static const line pointwise[] = {
    { "Conv2D", "1x5x5x900 1x1x900x9", "strides=1,1,1,1 padding=SAME", .by_clblast = 1 },
    { "Conv2D", "2x7x9x40 1x1x40x33", "strides=1,1,1,1 padding=SAME", "BiasAdd Relu", .by_clblast = 2 },
    { "Conv2D", "2x7x9x6 1x1x2x21", "strides=1,1,1,1 padding=VALID" },                 /* three groups, side by side */
    { "Conv2D", "2x7x9x6 1x1x2x21", "strides=1,1,1,1 padding=VALID", "BiasAdd Relu" }, /* by own kernels */
  };
  CHECK_ALL_BY_CLBLAST(halves, TN_HALF);
  CHECK_ALL_BY_CLBLAST(pointwise, TN_FLOAT);
  CHECK_ALL_BY_CLBLAST(convolutions, TN_FLOAT);
}

/* Its programs are freed with the context and made again with the next. */
static void gpu_products__clblast_in_consecutive_sessions(void)
{
  GPU_NEEDS_DEVICE();
  if (!has_clblast()) TAP_SKIP("CLBlast is not available");
  static const line one[] = { { "MatMul", "33x1000 1000x40", "", .by_clblast = 1 } };
  for (int i = 0; i < 20; i++) CHECK_ALL_BY_CLBLAST(one, TN_FLOAT);
}

/* ---- recurrent layers ---- */

static void run_net(const char *on, const rnn_net *net, tn_tensor **out)
{
  static const char *const fetches[] = { "h0_0", "h0_2", "h0_3" };
  const rnn_feeds feeds = { 0 };
  ts t;
  ts_init(&t, 1);
  REQUIRE_OK(tn_session_options_set_target(t.options, on, &t.err), &t.err);
  rnn_graph(t.graph, net);
  ts_start(&t);
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
  tn_status st = rnn_run(&t, net, &feeds, fetches, 3, out);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  REQUIRE_OK(st, &t.err);
  ts_fini(&t);
}

/* A layer's launches are those of its steps, and its state stays on the device between them. */
static void gpu_products__recurrent_layers(void)
{
  GPU_NEEDS_DEVICE();
  for (int kind = 0; kind < RNN_KINDS; kind++)
    for (int64_t batch = 1; batch <= 5; batch += 4) {
      const rnn_net net = { .kind = (rnn_kind)kind, .steps = 4, .layers = 1, .batch = batch, .in = 7, .cells = 19,
                            .batch_known = true };
      tn_tensor *wanted[3] = { NULL }, *got[3] = { NULL };
      char why[200] = "";
      run_net("direct", &net, wanted);
      run_net("gpu:placement=device", &net, got);
      CHECK_INT(seen.on_cpu, 0);
      for (int i = 0; i < 3; i++) {
        const bool good = same(wanted[i], got[i], why, sizeof why);
        CHECK_MSG(good, "kind %d, batch %d, state %d: %s", kind, (int)batch, i, why);
        tn_tensor_unref(wanted[i]);
        tn_tensor_unref(got[i]);
      }
    }
}

TAP_MAIN(
  TAP_TEST(gpu_products__products_of_any_size),
  TAP_TEST(gpu_products__few_rows),
  TAP_TEST(gpu_products__all_types),
  TAP_TEST(gpu_products__batches_broadcast),
  TAP_TEST(gpu_products__rows_are_normalised),
         TAP_TEST(gpu_products__ops_that_follow_are_in_the_launch),
  TAP_TEST(gpu_products__convolutions),
  TAP_TEST(gpu_products__gradients_of_convolutions),
  TAP_TEST(gpu_products__depthwise_convolutions),
  TAP_TEST(gpu_products__pooling),
  TAP_TEST(gpu_products__normalisation),
  TAP_TEST(gpu_products__resizing),
  TAP_TEST(gpu_products__clblast_multiplies),
  TAP_TEST(gpu_products__clblast_leaves_the_rest_to_own_kernels),
  TAP_TEST(gpu_products__clblast_in_consecutive_sessions),
  TAP_TEST(gpu_products__recurrent_layers))
