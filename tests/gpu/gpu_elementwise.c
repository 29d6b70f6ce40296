/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise chains and ops that move elements on the runtime gpu: a chain is one launch, and
 * results equal those of `direct`, with broadcasting, joined, empty and short arguments, and too
 * many dimensions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/gpu_kit.h"
#include "conformance/support/session_kit.h"

#define MOST_FEEDS 24

/* ---- the log: nodes on the device ---- */

static struct {
  int nodes, on_cpu, launches; /* of the last plan */
} seen;

static void hear(void *user, int32_t level, const char *line)
{
  (void)user, (void)level;
  const char *at = strstr(line, "a plan for ");
  if (at == NULL) return;
  const char *nodes = strstr(at, ": ");
  if (nodes != NULL)
    (void)sscanf(nodes, ": %d nodes on the device, %d on the CPU; a step has %d launches", &seen.nodes, &seen.on_cpu,
                 &seen.launches);
}

/* ---- a graph, its feeds, and its answers ---- */

typedef struct scene {
  tn_graph *graph;
  tn_output inputs[MOST_FEEDS];
  tn_tensor *feeds[MOST_FEEDS];
  size_t n;
} scene;

static uint64_t seed;

static double number(void)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return ((double)((seed >> 33) % 20001) - 10000) / 2500;
}

static uint16_t half_of(float x)
{
  /* Numbers that are normal as halves; truncated rather than rounded, as any half will do. */
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  if ((u & 0x7fffffff) < 0x38800000) return 0;
  return (uint16_t)((u >> 16 & 0x8000) | ((u & 0x7fffffff) - 0x38000000) >> 13);
}

static void put_number(tn_tensor *t, int64_t i, double x)
{
  void *data = tn_tensor_data(t);
  float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  switch (tn_tensor_dtype(t)) {
  case TN_FLOAT: ((float *)data)[i] = f; break;
  case TN_DOUBLE: ((double *)data)[i] = x; break;
  case TN_HALF: ((uint16_t *)data)[i] = half_of(f); break;
  case TN_BFLOAT16: ((uint16_t *)data)[i] = (uint16_t)(u >> 16); break;
  case TN_INT32: ((int32_t *)data)[i] = (int32_t)(x * 5e8); break;
  case TN_INT64: ((int64_t *)data)[i] = (int64_t)(x * 2e18); break;
  case TN_BOOL: ((uint8_t *)data)[i] = x > 0; break;
  default: ((uint8_t *)data)[i] = (uint8_t)(int64_t)(x * 60);
  }
}

/* A placeholder and the tensor it is fed. */
static tn_output feed(scene *s, tn_dtype dtype, int32_t rank, const int64_t *dims)
{
  char name[16];
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  tn_tensor *t = NULL;
  REQUIRE(s->n < MOST_FEEDS);
  snprintf(name, sizeof name, "x%zu", s->n);
  tn_operation_builder *b = tn_operation_begin(s->graph, "Placeholder", name, 0);
  tn_operation_set_type(b, "dtype", dtype);
  tn_operation_set_shape(b, "shape", dims, rank);
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  REQUIRE_OK(tn_tensor_create(dtype, dims, rank, &t, &err), &err);
  for (int64_t i = 0; i < tn_tensor_elements(t); i++) put_number(t, i, number());
  s->inputs[s->n] = (tn_output){ op, 0 };
  s->feeds[s->n] = t;
  return s->inputs[s->n++];
}
#define FEED(s, dtype, ...) \
  feed(s, dtype, (int32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (const int64_t[]){ __VA_ARGS__ })

typedef tn_output (*build_fn)(scene *s, const void *what);

static tn_tensor *answer(const char *target, int level, build_fn build, const void *what)
{
  ts t;
  scene s = { 0 };
  tn_tensor *out = NULL;
  seed = 7;
  ts_init(&t, level);
  REQUIRE_OK(tn_session_options_set_target(t.options, target, &t.err), &t.err);
  s.graph = t.graph;
  tn_output fetch = build(&s, what);
  ts_start(&t);
  tn_set_log_sink(hear, NULL);
  tn_set_log_level(TN_LOG_INFO);
  seen.nodes = seen.on_cpu = seen.launches = -1;
  const char *names[MOST_FEEDS], *wanted = tn_operation_name(fetch.op);
  for (size_t i = 0; i < s.n; i++) names[i] = tn_operation_name(s.inputs[i].op);
  tn_status st = tn_session_run(t.session, NULL, names, s.feeds, s.n, &wanted, &out, 1, NULL, 0, NULL, &t.err);
  tn_set_log_level(TN_LOG_WARNING);
  tn_set_log_sink(NULL, NULL);
  REQUIRE_OK(st, &t.err);
  for (size_t i = 0; i < s.n; i++) tn_tensor_unref(s.feeds[i]);
  ts_fini(&t);
  return out;
}

static double value_at(const tn_tensor *t, int64_t i)
{
  const void *data = tn_tensor_data(t);
  uint32_t u;
  float f;
  switch (tn_tensor_dtype(t)) {
  case TN_FLOAT: return ((const float *)data)[i];
  case TN_DOUBLE: return ((const double *)data)[i];
  case TN_HALF:
    u = ((const uint16_t *)data)[i];
    return ldexp((u & 0x7c00) != 0 ? (u & 0x3ff) + 0x400 : u & 0x3ff,
                 (int)((u & 0x7c00) != 0 ? u >> 10 & 31 : 1) - 25) *
           (u & 0x8000 ? -1 : 1);
  case TN_BFLOAT16:
    u = (uint32_t)((const uint16_t *)data)[i] << 16;
    memcpy(&f, &u, sizeof f);
    return f;
  case TN_INT32: return ((const int32_t *)data)[i];
  case TN_INT64: return (double)((const int64_t *)data)[i];
  default: return ((const uint8_t *)data)[i];
  }
}

static double tolerance(tn_dtype dtype)
{
  switch (dtype) {
  case TN_FLOAT: return 1e-5;
  case TN_DOUBLE: return 1e-12;
  case TN_HALF: return 4e-3;
  case TN_BFLOAT16: return 3e-2;
  default: return 0;
  }
}

static void check_same(const tn_tensor *a, const tn_tensor *b)
{
  tn_dtype dtype = tn_tensor_dtype(a);
  double near = tolerance(dtype);
  CHECK_INT(tn_tensor_dtype(b), dtype);
  REQUIRE_INT(tn_tensor_rank(b), tn_tensor_rank(a));
  for (int32_t d = 0; d < tn_tensor_rank(a); d++) REQUIRE_INT(tn_tensor_dims(b)[d], tn_tensor_dims(a)[d]);
  for (int64_t i = 0; i < tn_tensor_elements(a); i++) {
    double x = value_at(a, i), y = value_at(b, i);
    if (x == y || (x != x && y != y) || fabs(x - y) <= near * (1 + fabs(x))) continue;
    tap_note("element %lld is %.9g, wanted %.9g", (long long)i, y, x);
    CHECK(false);
    return;
  }
}

/* The results on the device equal those of the CPU; the log's counts of the plan are in `seen`. */
static void compare(int level, build_fn build, const void *what)
{
  tn_tensor *cpu = answer("direct", level, build, what), *device = answer("gpu:placement=device", level, build, what);
  check_same(cpu, device);
  tn_tensor_unref(cpu);
  tn_tensor_unref(device);
}

/* ---- chains ---- */

static tn_output build_chain(scene *s, const void *what)
{
  const int64_t *n = what;
  tn_output x = FEED(s, TN_FLOAT, *n, 3), two = ts_const(s->graph, "two", 2);
  tn_output twice = ts_op2(s->graph, "Mul", "twice", x, two), tanh = ts_op1(s->graph, "Tanh", "tanh", twice);
  tn_output sum = ts_op2(s->graph, "AddV2", "sum", tanh, x), relu = ts_op1(s->graph, "Relu", "relu", sum);
  return ts_op1(s->graph, "Sigmoid", "out", relu);
}

static void gpu_elementwise__a_chain_is_one_launch(void)
{
  GPU_NEEDS_DEVICE();
  static const int64_t sizes[] = { 1, 2, 85, 4096, 4097 }; /* some are not multiples of a work item's four elements */
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    compare(1, build_chain, &sizes[i]);
    CHECK_INT(seen.nodes, 1);
    CHECK_INT(seen.launches, 1);
    compare(0, build_chain, &sizes[i]);
    CHECK_INT(seen.launches, 5);
  }
}

static void gpu_elementwise__no_elements_launch_nothing(void)
{
  GPU_NEEDS_DEVICE();
  static const int64_t none = 0;
  compare(1, build_chain, &none);
  CHECK(seen.launches <= 0);
}

/* ---- broadcasting ---- */

typedef struct shapes {
  int32_t ranks[2];
  int64_t dims[2][8];
} shapes;

static tn_output build_broadcast(scene *s, const void *what)
{
  const shapes *p = what;
  tn_output x = feed(s, TN_FLOAT, p->ranks[0], p->dims[0]), y = feed(s, TN_FLOAT, p->ranks[1], p->dims[1]);
  tn_output product = ts_op2(s->graph, "Mul", "product", x, y);
  return ts_op2(s->graph, "Sub", "out", product, y);
}

static void gpu_elementwise__arguments_broadcast(void)
{
  GPU_NEEDS_DEVICE();
  static const shapes all[] = {
    { { 2, 1 }, { { 5, 7 }, { 7 } } },
    { { 2, 1 }, { { 9, 16 }, { 16 } } },
    { { 3, 2 }, { { 4, 1, 6 }, { 3, 1 } } },
    { { 4, 3 }, { { 2, 3, 4, 8 }, { 3, 1, 8 } } },
    { { 3, 0 }, { { 2, 3, 5 }, { 0 } } },
    { { 2, 2 }, { { 1, 12 }, { 7, 1 } } },
    { { 8, 7 }, { { 2, 1, 3, 1, 2, 1, 3, 4 }, { 3, 1, 2, 1, 2, 1, 4 } } },
    { { 1, 4 }, { { 1 }, { 1, 1, 1, 1 } } },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    FOR_LEVELS(level) compare(level, build_broadcast, &all[i]);
    CHECK_INT(seen.launches, 1);
  }
}

/* ---- joined arguments ---- */

typedef struct parts {
  size_t n;
  int64_t rows, width, step; /* part k has a width of width + k * step */
} parts;

static tn_output join(scene *s, const parts *p, int64_t *width)
{
  tn_output part[MOST_FEEDS];
  tn_error err = TN_ERROR_INIT;
  tn_operation *op = NULL;
  *width = 0;
  for (size_t k = 0; k < p->n; k++) {
    int64_t w = p->width + (int64_t)k * p->step;
    part[k] = FEED(s, TN_FLOAT, p->rows, w);
    *width += w;
  }
  tn_tensor *axis = NULL;
  REQUIRE_OK(tn_tensor_create(TN_INT32, NULL, 0, &axis, &err), &err);
  *(int32_t *)tn_tensor_data(axis) = 1;
  tn_operation_builder *b = tn_operation_begin(s->graph, "ConcatV2", "joined", 0);
  tn_operation_add_input_list(b, part, p->n);
  tn_operation_add_input(b, ts_const_tensor(s->graph, "axis", axis));
  REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
  tn_tensor_unref(axis);
  return (tn_output){ op, 0 };
}

static tn_output build_joined(scene *s, const void *what)
{
  int64_t width;
  tn_output x = join(s, what, &width), scale = FEED(s, TN_FLOAT, width), bias = FEED(s, TN_FLOAT, width);
  tn_output product = ts_op2(s->graph, "Mul", "product", x, scale),
            sum = ts_op2(s->graph, "AddV2", "sum", product, bias);
  return ts_op1(s->graph, "Relu", "out", sum);
}

static void gpu_elementwise__joined_arguments_are_read_in_their_parts(void)
{
  GPU_NEEDS_DEVICE();
  static const struct { parts p; int launches; } all[] = {
    { { 2, 6, 4, 8 }, 1 }, { { 5, 6, 32, 0 }, 1 }, { { 20, 3, 4, 4 }, 3 }, { { 3, 5, 1, 2 }, 1 }, { { 9, 4, 0, 1 }, 1 },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    compare(0, build_joined, &all[i].p);
    compare(1, build_joined, &all[i].p);
    CHECK_INT(seen.nodes, 1);
    CHECK_INT(seen.launches, all[i].launches);
  }
}

/* ---- dtypes ---- */

typedef struct typed {
  const char *op;
  tn_dtype dtype;
} typed;

static tn_output build_typed(scene *s, const void *what)
{
  const typed *p = what;
  tn_output x = FEED(s, p->dtype, 6, 9), y = FEED(s, p->dtype, 9);
  return ts_op2(s->graph, p->op, "out", x, y);
}

static void gpu_elementwise__results_of_all_types_equal_those_of_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  static const typed all[] = {
    { "AddV2", TN_HALF },      { "Mul", TN_BFLOAT16 },   { "Maximum", TN_DOUBLE }, { "Mul", TN_INT32 },
    { "Sub", TN_INT64 },       { "AddV2", TN_UINT8 },    { "Less", TN_FLOAT },     { "Equal", TN_BOOL },
    { "LogicalAnd", TN_BOOL }, { "FloorDiv", TN_FLOAT }, { "FloorMod", TN_HALF },  { "GreaterEqual", TN_INT64 },
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    compare(1, build_typed, &all[i]);
    CHECK(seen.nodes == 1 || all[i].dtype == TN_DOUBLE);
  }
}

static tn_output build_halves(scene *s, const void *what)
{
  const tn_dtype *dtype = what;
  tn_output x = FEED(s, *dtype, 11, 8), y = FEED(s, *dtype, 8), sum = ts_op2(s->graph, "AddV2", "sum", x, y);
  tn_output e = ts_op1(s->graph, "Exp", "exp", sum), m = ts_op2(s->graph, "Mul", "mul", e, x);
  return ts_op1(s->graph, "Tanh", "out", m);
}

static void gpu_elementwise__chains_of_short_floats(void)
{
  GPU_NEEDS_DEVICE();
  static const tn_dtype all[] = { TN_HALF, TN_BFLOAT16 };
  for (size_t i = 0; i < 2; i++) {
    compare(1, build_halves, &all[i]);
    CHECK_INT(seen.launches, 1);
  }
}

/* Division by zero is tested in gpu_data_faults.c. */
static void gpu_elementwise__integers_are_divided_on_the_device(void)
{
  GPU_NEEDS_DEVICE();
  static const char *const ops[] = { "Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod" };
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    for (int wide = 0; wide < 2; wide++) {
      const typed division = { ops[i], wide ? TN_INT64 : TN_INT32 };
      compare(1, build_typed, &division);
      CHECK_INT(seen.nodes, 1);
    }
}

/* ---- too many dimensions ---- */

static tn_output build_deep(scene *s, const void *what)
{
  int64_t dims[18];
  (void)what;
  for (int i = 0; i < 18; i++) dims[i] = i % 6 == 0 ? 2 : 1;
  return ts_op1(s->graph, "Exp", "out", feed(s, TN_FLOAT, 18, dims));
}

static void gpu_elementwise__too_many_dimensions_stay_on_the_cpu(void)
{
  GPU_NEEDS_DEVICE();
  compare(1, build_deep, NULL);
  CHECK(seen.nodes <= 0);
}

/* ---- reductions ---- */

static tn_output build_reductions(scene *s, const void *what)
{
  (void)what;
  tn_output sum = { NULL, 0 };
  for (int i = 0; i < 4; i++) {
    char name[2][16];
    snprintf(name[0], sizeof name[0], "relu%d", i);
    snprintf(name[1], sizeof name[1], "reduced%d", i);
    tn_output x = FEED(s, TN_FLOAT, 8 + i, 12);
    tn_output relu = ts_op1(s->graph, "Relu", name[0], x);
    tn_error err = TN_ERROR_INIT;
    tn_operation *op = NULL;
    tn_tensor *axes = NULL;
    static const int64_t two = 2;
    REQUIRE_OK(tn_tensor_create(TN_INT32, &two, 1, &axes, &err), &err);
    ((int32_t *)tn_tensor_data(axes))[0] = 0;
    ((int32_t *)tn_tensor_data(axes))[1] = 1;
    char axes_name[16];
    snprintf(axes_name, sizeof axes_name, "axes%d", i);
    tn_operation_builder *b = tn_operation_begin(s->graph, "Mean", name[1], 0);
    tn_operation_add_input(b, relu);
    tn_operation_add_input(b, ts_const_tensor(s->graph, axes_name, axes));
    REQUIRE_OK(tn_operation_finish(b, &op, &err), &err);
    tn_tensor_unref(axes);
    tn_output mean = { op, 0 };
    snprintf(name[0], sizeof name[0], "sum%d", i);
    sum = i == 0 ? mean : ts_op2(s->graph, "AddV2", name[0], sum, mean);
  }
  return ts_op1(s->graph, "Neg", "out", sum);
}

static void gpu_elementwise__reductions_follow_chains(void)
{
  GPU_NEEDS_DEVICE();
  FOR_LEVELS(level) compare(level, build_reductions, NULL);
  CHECK_INT(seen.on_cpu, 0);
}

/* ---- sizes that divide the work: chunks of long sums, tiles of matrices, groups for rows ---- */

typedef struct sized {
  const char *op;
  int32_t rank;
  int64_t dims[4];
  int32_t n; /* integers of the second input; 0: there is no such input, -1: it is a scalar */
  int32_t ints[4];
} sized;

static tn_output build_sized(scene *s, const void *what)
{
  const sized *p = what;
  tn_error err = TN_ERROR_INIT;
  tn_tensor *ints = NULL;
  tn_output x = feed(s, TN_FLOAT, p->rank, p->dims);
  if (p->n == 0) return ts_op1(s->graph, p->op, "out", x);
  int64_t n = p->n < 0 ? 1 : p->n;
  REQUIRE_OK(tn_tensor_create(TN_INT32, &n, p->n < 0 ? 0 : 1, &ints, &err), &err);
  memcpy(tn_tensor_data(ints), p->ints, (size_t)n * sizeof *p->ints);
  tn_output second = ts_const_tensor(s->graph, "ints", ints);
  tn_tensor_unref(ints);
  return ts_op2(s->graph, p->op, "out", x, second);
}

static void compare_sized(const sized *all, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    compare(1, build_sized, &all[i]);
    CHECK_INT(seen.nodes, 1);
  }
}

static void gpu_elementwise__long_reductions(void)
{
  GPU_NEEDS_DEVICE();
  static const sized all[] = {
    { "Sum", 1, { 100003 }, 1, { 0 } },          { "Mean", 2, { 5001, 3 }, 1, { 0 } },
    { "Max", 3, { 300, 70, 9 }, 2, { 0, 2 } },   { "Min", 3, { 300, 70, 9 }, 1, { 1 } },
    { "Sum", 3, { 30, 70, 90 }, 3, { 0, 1, 2 } }, { "Mean", 4, { 7, 8, 9, 10 }, 2, { 1, 2 } },
    { "Sum", 2, { 40, 1000 }, 1, { 1 } },        { "ArgMax", 2, { 7, 500 }, -1, { 1 } },
    { "ArgMin", 2, { 500, 7 }, -1, { 0 } },
  };
  compare_sized(all, sizeof all / sizeof *all);
}

static void gpu_elementwise__matrices_are_transposed_by_tiles(void)
{
  GPU_NEEDS_DEVICE();
  static const sized all[] = {
    { "Transpose", 2, { 33, 65 }, 2, { 1, 0 } },
    { "Transpose", 3, { 3, 40, 50 }, 3, { 0, 2, 1 } },
    { "Transpose", 4, { 4, 5, 6, 7 }, 4, { 3, 1, 0, 2 } },
    { "Transpose", 4, { 2, 9, 10, 16 }, 4, { 0, 3, 1, 2 } },
    { "Transpose", 4, { 5, 6, 7, 8 }, 4, { 1, 0, 2, 3 } },
  };
  compare_sized(all, sizeof all / sizeof *all);
}

static void gpu_elementwise__softmax_of_short_and_long_rows(void)
{
  GPU_NEEDS_DEVICE();
  static const sized all[] = { { "Softmax", 2, { 2000, 10 }, 0, { 0 } },
                               { "Softmax", 2, { 5, 1001 }, 0, { 0 } },
                               { "LogSoftmax", 3, { 3, 4, 300 }, 0, { 0 } } };
  compare_sized(all, sizeof all / sizeof *all);
}

TAP_MAIN(
  TAP_TEST(gpu_elementwise__a_chain_is_one_launch),
  TAP_TEST(gpu_elementwise__no_elements_launch_nothing),
  TAP_TEST(gpu_elementwise__arguments_broadcast),
  TAP_TEST(gpu_elementwise__joined_arguments_are_read_in_their_parts),
  TAP_TEST(gpu_elementwise__results_of_all_types_equal_those_of_the_cpu),
  TAP_TEST(gpu_elementwise__chains_of_short_floats),
  TAP_TEST(gpu_elementwise__integers_are_divided_on_the_device),
  TAP_TEST(gpu_elementwise__too_many_dimensions_stay_on_the_cpu),
  TAP_TEST(gpu_elementwise__reductions_follow_chains),
  TAP_TEST(gpu_elementwise__long_reductions),
  TAP_TEST(gpu_elementwise__matrices_are_transposed_by_tiles),
  TAP_TEST(gpu_elementwise__softmax_of_short_and_long_rows))
