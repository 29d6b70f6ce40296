/* SPDX-License-Identifier: Apache-2.0 */
/* Loops for AVX2 and AVX-512 give the same bits as the baseline's, which the oracle cases check:
 * for all numbers of elements and alignments, in place, with NaN and infinities. First single
 * loops, then whole kernels in reproducible sessions. Fused loops give almost the same. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/leaky.h>
#include <ops/kernel/elements/vectors.h>

#include "conformance/support/session_kit.h"

/* ---- numbers ---- */

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(seed >> 33) % n;
}

static double random_number(void)
{
  static const double special[] = { (double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1e-40, 3e38, -1 };
  if (random_below(12) == 0) return special[random_below(8)];
  return ((double)random_below(20001) - 10000) / 2500;
}

/* Any bits, except for floats, which would seldom have similar magnitudes; bytes are 0 and 1 for
 * bool. */
static void fill(tn_dtype dtype, void *data, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (dtype == TN_FLOAT) ((float *)data)[i] = (float)random_number();
    else if (dtype == TN_DOUBLE) ((double *)data)[i] = random_number();
    else
      for (size_t k = 0, size = tn_dtype_size(dtype); k < size; k++)
        ((uint8_t *)data)[i * size + k] = (uint8_t)random_below(dtype == TN_BOOL ? 2 : 256);
  }
}

static bool is_nan(tn_dtype dtype, const void *p)
{
  uint16_t bits = 0;
  if (dtype == TN_FLOAT) return *(const float *)p != *(const float *)p;
  if (dtype == TN_DOUBLE) return *(const double *)p != *(const double *)p;
  if (dtype == TN_HALF || dtype == TN_BFLOAT16) memcpy(&bits, p, 2);
  return (bits & 0x7fff) > (dtype == TN_HALF ? 0x7c00 : 0x7f80);
}

/* The same bits, except that any NaN equals any NaN. */
static bool same(tn_dtype dtype, const void *a, const void *b, size_t n)
{
  size_t size = tn_dtype_size(dtype);
  for (size_t i = 0; i < n; i++) {
    const char *x = (const char *)a + i * size, *y = (const char *)b + i * size;
    if (memcmp(x, y, size) != 0 && !(is_nan(dtype, x) && is_nan(dtype, y))) return false;
  }
  return true;
}

/* ---- loops ---- */

#define MOST 200
#define ROOM (MOST + 16)
static const tn_dtype dtypes[] = { TN_FLOAT, TN_DOUBLE, TN_HALF, TN_BFLOAT16, TN_INT8, TN_INT16, TN_INT32, TN_INT64,
                                   TN_UINT8, TN_UINT16, TN_UINT32, TN_UINT64, TN_BOOL };
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

/* An operation of float, half, ...; false if the op does not support the dtype. */
static bool operation(tn_graph *graph, const char *op, int inputs, tn_dtype dtype, tn_operation **out)
{
  tn_error err = TN_ERROR_INIT;
  tn_output x = ts_placeholder(graph, "x", dtype);
  tn_operation_builder *b = tn_operation_begin(graph, op, "op", 0);
  for (int i = 0; i < inputs; i++) tn_operation_add_input(b, x);
  return tn_operation_finish(b, out, &err) == TN_OK;
}

static void check_unary(const tn__unary_loop *l, int kind, const char *op)
{
  _Alignas(64) char in[ROOM * 8], wanted[ROOM * 8], found[ROOM * 8], before[ROOM * 8];
  for (int64_t n = 0; n <= MOST; n += n < 80 ? 1 : 13) {
    size_t at = random_below(8); /* not aligned to vectors */
    char *x = in + at * l->from_size, *to = found + at * l->to_size;
    fill(l->from, in, ROOM);
    memset(found, 0x5a, sizeof found);
    memcpy(before, found, sizeof found);
    tn__vectors_limit(TN__BASELINE); /* for loops that choose another one themselves */
    l->fn[TN__BASELINE](x, wanted, n);
    tn__vectors_limit(kind);
    l->fn[kind](x, to, n);
    bool equal = same(l->to, wanted, to, (size_t)n);
    bool kept = memcmp(found, before, at * l->to_size) == 0 &&
                memcmp(to + (size_t)n * l->to_size, before, sizeof found - (at + (size_t)n) * l->to_size) == 0;
    CHECK_MSG(equal && kept, "%s of %d %s differs from the baseline, kind %d", op, (int)n, tn_dtype_name(l->from),
              kind);
    if (l->from_size == l->to_size) {
      l->fn[kind](x, x, n);
      CHECK_MSG(same(l->to, wanted, x, (size_t)n), "%s of %d %s in place, kind %d", op, (int)n, tn_dtype_name(l->from),
                kind);
    }
  }
}

/* All ops that use tn__unary_compute without a libm function for every dtype. */
static void vectors__loops_of_one_operand(void)
{
  static const char *const ops[] = { "Abs", "Neg", "Sign", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid",
                                     "Floor", "Ceil", "Round", "Rint", "Reciprocal", "IsNan", "IsInf", "IsFinite",
                                     "LogicalNot", "Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "Invert",
                                     "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh",
                                     "Atanh", "Expm1", "Log1p", "Erf", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma",
                                     "BesselI0e", "BesselI1e" };
  int most = tn__vectors_limit(TN__AVX512), seen = 0;
  seed = 1;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    for (size_t d = 0; d < N_DTYPES; d++) {
      ts t;
      tn_operation *op;
      ts_init(&t, 0);
      const tn__unary_loop *l = NULL;
      if (operation(t.graph, ops[i], 1, dtypes[d], &op)) l = tn__unary_loop_of(ops[i], op);
      for (int kind = 0; l != NULL && kind <= most; kind++) check_unary(l, kind, ops[i]);
      seen += l != NULL;
      ts_fini(&t);
    }
  tn__vectors_limit(TN__AVX512);
  CHECK_MSG(seen > 170, "only %d loops", seen);
}

static double number_at(tn_dtype dtype, const void *p)
{
  return dtype == TN_DOUBLE ? *(const double *)p : (double)*(const float *)p;
}

/* The same bits for an element whatever is around it, and almost those of the baseline. */
static void check_fused(const tn__unary_loop *l, int kind, const char *op)
{
  _Alignas(64) char in[ROOM * 8], found[ROOM * 8], alone[8], plain[8];
  const double near = l->from == TN_DOUBLE ? 1e-15 : 4e-7, least = l->from == TN_DOUBLE ? 3e-323 : 1e-44;
  const size_t size = l->from_size;
  for (int64_t n = 0; n <= MOST; n += n < 80 ? 1 : 13) {
    char *x = in + random_below(8) * size, *to = found + random_below(8) * size;
    fill(l->from, in, ROOM);
    memset(found, 0x5a, sizeof found);
    l->fn[kind](x, to, n);
    for (int64_t i = 0; i < n; i++) {
      const char *xi = x + (size_t)i * size, *yi = to + (size_t)i * size;
      l->fn[kind](xi, alone, 1);
      l->fn[TN__BASELINE](xi, plain, 1);
      CHECK_MSG(same(l->from, alone, yi, 1), "%s: element %d of %d, kind %d", op, (int)i, (int)n, kind);
      double wanted = number_at(l->from, plain), gap = fabs(number_at(l->from, alone) - wanted);
      CHECK_MSG(same(l->from, alone, plain, 1) || gap <= near * fabs(wanted) || gap < least,
                "%s of %a: %a, baseline %a", op, number_at(l->from, xi), number_at(l->from, alone), wanted);
    }
    CHECK_MSG(to[(size_t)n * size] == 0x5a, "%s of %d writes beyond its end, kind %d", op, (int)n, kind);
    l->fn[kind](x, x, n);
    CHECK_MSG(same(l->from, x, to, (size_t)n), "%s of %d in place, kind %d", op, (int)n, kind);
  }
}

static void vectors__fused_loops_round_alike_everywhere(void)
{
  static const char *const ops[] = { "Exp", "Expm1", "Log", "Log1p", "Tanh", "Sigmoid", "Erf", "Erfc", "Sin", "Cos",
                                     "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Elu",
                                     "Selu", "Softplus" };
  seed = 5;
  for (size_t i = 0; i < 2 * sizeof ops / sizeof ops[0]; i++) {
    ts t;
    tn_operation *op;
    ts_init(&t, 0);
    REQUIRE(operation(t.graph, ops[i / 2], 1, i % 2 != 0 ? TN_DOUBLE : TN_FLOAT, &op));
    const tn__unary_loop *l = tn__unary_loop_of(ops[i / 2], op);
    REQUIRE(l != NULL && l->info->fused);
    for (int kind = TN__FUSED_AVX2; kind <= TN__FUSED_AVX512; kind++)
      if (tn__vectors_limit(kind) == kind) check_fused(l, kind, ops[i / 2]);
    ts_fini(&t);
  }
  tn__vectors_limit(TN__FUSED_AVX512);
}

/* The same for two operands of double, for each pair of strides. */
static void check_fused_pair(const tn__binary_loop *l, int kind, const char *op)
{
  double xs[ROOM], ys[ROOM], found[ROOM], alone, plain;
  for (int64_t n = 0; n <= MOST; n += n < 80 ? 1 : 13)
    for (int how = 1; how <= 3; how++) {
      int64_t sx = how & 1, sy = how >> 1;
      fill(TN_DOUBLE, xs, ROOM);
      fill(TN_DOUBLE, ys, ROOM);
      found[n] = 0.625;
      l->fn[kind](xs, sx, ys, sy, found, n);
      for (int64_t i = 0; i < n; i++) {
        l->fn[kind](xs + i * sx, 1, ys + i * sy, 1, &alone, 1);
        l->fn[TN__BASELINE](xs + i * sx, 1, ys + i * sy, 1, &plain, 1);
        CHECK_MSG(same(TN_DOUBLE, &alone, &found[i], 1), "%s: element %d of %d, kind %d", op, (int)i, (int)n, kind);
        CHECK_MSG(same(TN_DOUBLE, &alone, &plain, 1) || fabs(alone - plain) <= 1e-15 * fabs(plain),
                  "%s of %a and %a: %a, baseline %a", op, xs[i * sx], ys[i * sy], alone, plain);
      }
      CHECK_MSG(found[n] == 0.625, "%s of %d writes beyond its end, kind %d", op, (int)n, kind);
    }
}

static void vectors__fused_loops_of_two_operands_round_alike(void)
{
  static const char *const ops[] = { "Atan2", "SoftplusGrad", "Xlogy", "Xlog1py" };
  seed = 6;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
    ts t;
    tn_operation *op;
    ts_init(&t, 0);
    REQUIRE(operation(t.graph, ops[i], 2, TN_DOUBLE, &op));
    const tn_op_schema *schema = tn_op_schema_find(ops[i]);
    void *state = NULL;
    REQUIRE(schema != NULL && tn_op_schema_kernel(schema, 0)->create(op, &state, NULL) == TN_OK);
    const tn__binary_loop *l = state;
    REQUIRE(l != NULL && l->info->fused);
    for (int kind = TN__FUSED_AVX2; kind <= TN__FUSED_AVX512; kind++)
      if (tn__vectors_limit(kind) == kind) check_fused_pair(l, kind, ops[i]);
    ts_fini(&t);
  }
  tn__vectors_limit(TN__FUSED_AVX512);
}

static void check_binary(const tn__binary_loop *l, int kind, const char *op)
{
  _Alignas(64) char xs[ROOM * 8], ys[ROOM * 8], wanted[ROOM * 8], found[ROOM * 8], before[ROOM * 8];
  for (int64_t n = 0; n <= MOST; n += n < 80 ? 1 : 13)
    for (int how = 1; how <= 3; how++) {
      int64_t sx = how & 1, sy = how >> 1;
      size_t at = random_below(8);
      char *x = xs + at * l->from_size, *y = ys + random_below(8) * l->from_size, *to = found + at * l->to_size;
      fill(l->from, xs, ROOM);
      fill(l->from, ys, ROOM);
      memset(found, 0x5a, sizeof found);
      memcpy(before, found, sizeof found);
      tn__vectors_limit(TN__BASELINE);
      bool bad = l->fn[TN__BASELINE](x, sx, y, sy, wanted, n);
      tn__vectors_limit(kind);
      CHECK_INT(l->fn[kind](x, sx, y, sy, to, n), bad);
      bool equal = same(l->to, wanted, to, (size_t)n);
      bool kept = memcmp(found, before, at * l->to_size) == 0 &&
                  memcmp(to + (size_t)n * l->to_size, before, sizeof found - (at + (size_t)n) * l->to_size) == 0;
      CHECK_MSG(equal && kept, "%s of %d %s (%d%d) differs from the baseline, kind %d", op, (int)n,
                tn_dtype_name(l->from), (int)sx, (int)sy, kind);
      if (l->from_size != l->to_size) continue;
      char *over = sx != 0 ? x : y;
      l->fn[kind](x, sx, y, sy, over, n);
      CHECK_MSG(same(l->to, wanted, over, (size_t)n), "%s of %d %s in place, kind %d", op, (int)n,
                tn_dtype_name(l->from), kind);
    }
}

static void vectors__loops_of_two_operands(void)
{
  static const char *const ops[] = { "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "SquaredDifference",
                                     "DivNoNan", "MulNoNan", "Xdivy", "Less", "LessEqual", "Greater", "GreaterEqual",
                                     "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseXor", "LeftShift", "RightShift",
                                     "Atan2", "Xlogy", "Xlog1py" };
  int most = tn__vectors_limit(TN__AVX512), seen = 0;
  seed = 2;
  for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
    for (size_t d = 0; d < N_DTYPES; d++) {
      ts t;
      tn_operation *op;
      ts_init(&t, 0);
      const tn__binary_loop *l = NULL;
      if (operation(t.graph, ops[i], 2, dtypes[d], &op)) l = tn__binary_loop_of(ops[i], op);
      for (int kind = 0; l != NULL && kind <= most; kind++) check_binary(l, kind, ops[i]);
      seen += l != NULL;
      ts_fini(&t);
    }
  tn__vectors_limit(TN__AVX512);
  CHECK_MSG(seen > 130, "only %d loops", seen);
}

static void vectors__leaky_relu_and_its_gradient_are_one(void)
{
  static const tn_dtype floats[] = { TN_FLOAT, TN_DOUBLE, TN_HALF, TN_BFLOAT16 };
  _Alignas(64) char xs[ROOM * 8], ys[ROOM * 8], wanted[ROOM * 8], found[ROOM * 8];
  int most = tn__vectors_limit(TN__AVX512);
  seed = 3;
  for (int kind = 0; kind <= most; kind++)
    for (size_t d = 0; d < 4; d++)
      for (int64_t n = 0; n < 80; n++) {
        size_t at = random_below(8) * tn_dtype_size(floats[d]);
        fill(floats[d], xs, ROOM);
        fill(floats[d], ys, ROOM);
        tn__vectors_limit(TN__BASELINE);
        tn__leaky_find(floats[d])(xs + at, ys, wanted, n, 0.3f);
        tn__vectors_limit(kind);
        tn__leaky_find(floats[d])(xs + at, ys, found, n, 0.3f);
        CHECK_MSG(same(floats[d], wanted, found, (size_t)n), "%d %s, kind %d", (int)n, tn_dtype_name(floats[d]), kind);
        tn__leaky_find(floats[d])(ys, ys, wanted, n, 0.3f);
        tn__leaky_find(floats[d])(ys, ys, ys, n, 0.3f);
        CHECK_MSG(same(floats[d], wanted, ys, (size_t)n), "in place: %d %s, kind %d", (int)n,
                  tn_dtype_name(floats[d]), kind);
      }
  CHECK_NULL((void *)(uintptr_t)tn__leaky_find(TN_INT32));
  tn__vectors_limit(TN__AVX512);
}

/* ---- kernels ---- */

#define MOST_INPUTS 6
typedef struct node {
  const char *op;
  int n;                     /* number of inputs */
  tn_dtype dtype[MOST_INPUTS];
  int32_t rank[MOST_INPUTS];
  int64_t dims[MOST_INPUTS][4];
  void (*set)(tn_operation_builder *b);
  int32_t axis;              /* constant last input if n_axes > 0 */
  int n_axes;
  int outputs;               /* 0 means 1 */
} node;

static tn_tensor *numbers(const node *c, int i)
{
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  REQUIRE_OK(tn_tensor_create(c->dtype[i], c->dims[i], c->rank[i], &t, &err), &err);
  fill(c->dtype[i], tn_tensor_data(t), (size_t)tn_tensor_elements(t));
  return t;
}

static tn_output axis_of(tn_graph *graph, const node *c)
{
  int64_t n = 1;
  tn_tensor *t = NULL;
  tn_error err = TN_ERROR_INIT;
  bool scalar = strncmp(c->op, "Arg", 3) == 0;
  REQUIRE_OK(tn_tensor_from_data(TN_INT32, &n, scalar ? 0 : 1, &c->axis, sizeof c->axis, &t, &err), &err);
  tn_output out = ts_const_tensor(graph, "axis", t);
  tn_tensor_unref(t);
  return out;
}

static void start_reproducible(ts *t)
{
  REQUIRE_OK(tn_session_options_set_bool(t->options, "reproducible", true, &t->err), &t->err);
  ts_start(t);
}

/* Runs the node reproducibly with these vectors; the numbers are the same for each kind. */
static void run_node(const node *c, int kind, tn_tensor **out)
{
  static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
  static const char *const fetches[] = { "op:0", "op:1", "op:2" };
  ts t;
  tn_tensor *in[MOST_INPUTS];
  tn_output x[MOST_INPUTS];
  tn_operation *op = NULL;
  tn__vectors_limit(kind);
  ts_init(&t, 0);
  seed = 11;
  for (int i = 0; i < c->n; i++) {
    x[i] = ts_placeholder(t.graph, names[i], c->dtype[i]);
    in[i] = numbers(c, i);
  }
  tn_output axis = c->n_axes > 0 ? axis_of(t.graph, c) : (tn_output){ NULL, 0 };
  tn_operation_builder *b = tn_operation_begin(t.graph, c->op, "op", 0);
  if (strcmp(c->op, "AddN") == 0) tn_operation_add_input_list(b, x, (size_t)c->n);
  else
    for (int i = 0; i < c->n; i++) tn_operation_add_input(b, x[i]);
  if (axis.op != NULL) tn_operation_add_input(b, axis);
  if (c->set != NULL) c->set(b);
  REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
  start_reproducible(&t);
  size_t outputs = c->outputs == 0 ? 1 : (size_t)c->outputs;
  REQUIRE_OK(tn_session_run(t.session, NULL, names, in, (size_t)c->n, fetches, out, outputs, NULL, 0, NULL, &t.err),
             &t.err);
  for (int i = 0; i < c->n; i++) tn_tensor_unref(in[i]);
  ts_fini(&t);
  tn__vectors_limit(TN__FUSED_AVX512);
}

static void check_node(const node *c)
{
  int most = tn__vectors_limit(TN__FUSED_AVX512), outputs = c->outputs == 0 ? 1 : c->outputs;
  tn_tensor *wanted[3] = { NULL }, *found[3] = { NULL };
  run_node(c, TN__BASELINE, wanted);
  for (int kind = 1; kind <= most; kind++) {
    run_node(c, kind, found);
    for (int i = 0; i < outputs; i++) {
      bool equal = tn_tensor_elements(wanted[i]) == tn_tensor_elements(found[i]) &&
                   same(tn_tensor_dtype(wanted[i]), tn_tensor_data(wanted[i]), tn_tensor_data(found[i]),
                        (size_t)tn_tensor_elements(wanted[i]));
      CHECK_MSG(equal, "%s of %s [%d,%d,%d,%d], axis %d: output %d differs from the baseline's, kind %d", c->op,
                tn_dtype_name(c->dtype[0]), (int)c->dims[0][0], (int)c->dims[0][1], (int)c->dims[0][2],
                (int)c->dims[0][3], (int)c->axis, i, kind);
      tn_tensor_unref(found[i]);
    }
  }
  for (int i = 0; i < outputs; i++) tn_tensor_unref(wanted[i]);
}

static void vectors__softmax(void)
{
  static const int64_t lasts[] = { 1, 2, 8, 15, 16, 17, 63, 64, 65, 100, 256, 1000, 1025, 3000 };
  static const tn_dtype floats[] = { TN_FLOAT, TN_HALF, TN_BFLOAT16, TN_DOUBLE };
  for (size_t i = 0; i < sizeof lasts / sizeof lasts[0]; i++)
    for (size_t d = 0; d < 4; d++) {
      node c = { .op = "Softmax", .n = 1, .dtype = { floats[d] }, .rank = { 2 }, .dims = { { 7, lasts[i] } } };
      check_node(&c);
      c.op = "LogSoftmax";
      c.dims[0][0] = lasts[i] < 20 ? 300 : 3;
      check_node(&c);
    }
}

static void vectors__reductions(void)
{
  static const char *const ops[] = { "Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm" };
  static const int64_t shapes[][3] = { { 3, 5, 7 },   { 2, 64, 64 }, { 5, 17, 130 }, { 40, 3, 257 },
                                       { 1, 1, 5000 }, { 300, 9, 1 }, { 2, 1000, 3 }, { 70, 70, 70 } };
  for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
    for (size_t d = 0; d < N_DTYPES - 1; d++)
      for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int32_t axis = 0; axis < 3; axis++) {
          node c = { .op = ops[o], .n = 1, .dtype = { dtypes[d] }, .rank = { 3 }, .axis = axis, .n_axes = 1 };
          memcpy(c.dims[0], shapes[s], sizeof shapes[s]);
          check_node(&c);
        }
  for (int32_t axis = 0; axis < 2; axis++) {
    node c = { .op = "All", .n = 1, .dtype = { TN_BOOL }, .rank = { 2 }, .dims = { { 70, 130 } },
               .axis = axis, .n_axes = 1 };
    check_node(&c);
    c.op = "Any";
    check_node(&c);
  }
}

static void vectors__places_of_extremes(void)
{
  static const int64_t lasts[] = { 1, 5, 31, 32, 33, 64, 100, 257, 1000 };
  for (size_t i = 0; i < sizeof lasts / sizeof lasts[0]; i++)
    for (int32_t axis = 0; axis < 2; axis++) {
      node c = { .op = "ArgMax", .n = 1, .dtype = { TN_FLOAT }, .rank = { 2 }, .dims = { { 130, lasts[i] } },
                 .axis = axis, .n_axes = 1 };
      check_node(&c);
      c.dtype[0] = TN_INT32;
      check_node(&c);
      c.op = "ArgMin";
      check_node(&c);
      c.dtype[0] = TN_FLOAT;
      check_node(&c);
    }
}

/* The first of equal extremes, never NaN, 0 if nothing exceeds the minimum, at any place in a
 * row. */
static void vectors__the_first_of_equal_extremes(void)
{
  enum { N = 130 };
  int most = tn__vectors_limit(TN__FUSED_AVX512);
  for (int kind = 0; kind <= most; kind++)
    for (int at = 0; at <= N; at++) {
      ts t;
      float row[N];
      int64_t n = N;
      tn__vectors_limit(kind);
      ts_init(&t, 0);
      for (int i = 0; i < N; i++) {
        row[i] = i % 3 == 0 ? NAN : 1;
        if (at == N) row[i] = -INFINITY;
      }
      if (at < N) row[at] = 2;
      if (at + 7 < N) row[at + 7] = row[N - 1] = 2;
      tn_tensor *in = ts_vector((size_t)n, row), *out = NULL;
      tn_output x = ts_placeholder(t.graph, "x", TN_FLOAT);
      node c = { .op = "ArgMax", .axis = 0, .n_axes = 1 };
      ts_op2(t.graph, "ArgMax", "op", x, axis_of(t.graph, &c));
      start_reproducible(&t);
      REQUIRE_OK(tn_session_run(t.session, NULL, NAMES("x"), &in, 1, NAMES("op"), &out, 1, NULL, 0, NULL, &t.err),
                 &t.err);
      CHECK_INT(*(const int64_t *)tn_tensor_data(out), at == N ? 0 : at);
      tn_tensor_unref(in);
      tn_tensor_unref(out);
      ts_fini(&t);
    }
  tn__vectors_limit(TN__FUSED_AVX512);
}

static void set_training(tn_operation_builder *b) { tn_operation_set_bool(b, "is_training", true); }
static void set_inference(tn_operation_builder *b) { tn_operation_set_bool(b, "is_training", false); }
static void set_training_first(tn_operation_builder *b)
{
  tn_operation_set_bool(b, "is_training", true);
  tn_operation_set_string(b, "data_format", "NCHW", 4);
}
static void set_inference_first(tn_operation_builder *b)
{
  tn_operation_set_bool(b, "is_training", false);
  tn_operation_set_string(b, "data_format", "NCHW", 4);
}
static void set_lrn(tn_operation_builder *b)
{
  tn_operation_set_int(b, "depth_radius", 2);
  tn_operation_set_float(b, "beta", 0.75f);
}
static void set_wide_lrn(tn_operation_builder *b) { tn_operation_set_int(b, "depth_radius", 40); }

static void check_norm(int64_t c, void (*set)(tn_operation_builder *b), bool first, tn_dtype dtype)
{
  node n = { .op = "FusedBatchNormV3", .n = 5, .rank = { 4, 1, 1, 1, 1 }, .dims = { { 2, 9, 5, c } }, .set = set,
             .outputs = 3 };
  if (first) {
    n.dims[0][1] = c;
    n.dims[0][3] = 13;
  }
  for (int i = 0; i < 5; i++) n.dtype[i] = TN_FLOAT;
  n.dtype[0] = dtype;
  for (int i = 1; i < 5; i++) n.dims[i][0] = c;
  check_node(&n);
}

static void vectors__norms(void)
{
  static const int64_t channels[] = { 1, 3, 15, 16, 17, 64, 70, 130 };
  for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
    check_norm(channels[i], set_training, false, TN_FLOAT);
    check_norm(channels[i], set_inference, false, TN_FLOAT);
    check_norm(channels[i], set_training_first, true, TN_FLOAT);
    check_norm(channels[i], set_inference_first, true, TN_HALF);
    node n = { .op = "LRN", .n = 1, .dtype = { TN_FLOAT }, .rank = { 4 }, .dims = { { 1, 3, 5, channels[i] } },
               .set = set_lrn };
    check_node(&n);
    n.set = set_wide_lrn;
    check_node(&n);
  }
}

static void set_half(tn_operation_builder *b) { tn_operation_set_type(b, "DstT", TN_HALF); }
static void set_int(tn_operation_builder *b) { tn_operation_set_type(b, "DstT", TN_INT32); }
static void set_byte(tn_operation_builder *b) { tn_operation_set_type(b, "DstT", TN_UINT8); }
static void set_float(tn_operation_builder *b) { tn_operation_set_type(b, "DstT", TN_FLOAT); }
static void set_long(tn_operation_builder *b) { tn_operation_set_type(b, "DstT", TN_INT64); }

static void vectors__casts(void)
{
  void (*const sets[])(tn_operation_builder *) = { set_half, set_int, set_byte, set_float, set_long };
  for (size_t d = 0; d < N_DTYPES; d++)
    for (size_t s = 0; s < 5; s++)
      for (int64_t n = 0; n < 700; n += n < 70 ? 7 : 203) {
        node c = { .op = "Cast", .n = 1, .dtype = { dtypes[d] }, .rank = { 1 }, .dims = { { n } }, .set = sets[s] };
        check_node(&c);
      }
}

static void vectors__selected_clipped_added(void)
{
  for (size_t d = 0; d < N_DTYPES; d++)
    for (int64_t n = 0; n < 1300; n += n < 70 ? 7 : 203) {
      tn_dtype t = dtypes[d];
      node select = { .op = "SelectV2", .n = 3, .dtype = { TN_BOOL, t, t }, .rank = { 1, 1, 1 },
                      .dims = { { n }, { n }, { n } } };
      check_node(&select);
      select.rank[1] = 0;
      check_node(&select);
      select.rank[1] = 1;
      select.rank[2] = 0;
      check_node(&select);
      if (t == TN_BOOL) continue;
      node add = { .op = "AddN", .n = 3, .dtype = { t, t, t }, .rank = { 1, 1, 1 }, .dims = { { n }, { n }, { n } } };
      check_node(&add);
      node bias = { .op = "BiasAdd", .n = 2, .dtype = { t, t }, .rank = { 2, 1 }, .dims = { { 9, n }, { n } } };
      check_node(&bias);
      if (t == TN_UINT32 || t == TN_UINT64) continue;
      node clip = { .op = "ClipByValue", .n = 3, .dtype = { t, t, t }, .rank = { 1, 0, 0 }, .dims = { { n } } };
      check_node(&clip);
      clip.rank[1] = 1;
      clip.dims[1][0] = n;
      check_node(&clip);
    }
}

static void set_steps(tn_operation_builder *b)
{
  static const void *const steps[] = { "BiasAdd", "Add", "LeakyRelu", "Sigmoid", "Relu6", "Tanh", "Relu" };
  size_t sizes[7];
  for (int i = 0; i < 7; i++) sizes[i] = strlen(steps[i]);
  tn_operation_set_strings(b, "fused_ops", steps, sizes, 7);
}

/* Ops fused into a product, applied before the result is read. */
static void vectors__ops_fused_into_a_product(void)
{
  static const int64_t channels[] = { 1, 3, 16, 17, 64, 130, 5000 };
  for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
    int64_t n = channels[i], rows = n < 100 ? 333 : 3;
    ts t;
    tn_tensor *in[4], *out[TN__VECTORS] = { NULL };
    const int64_t shapes[4][2] = { { rows, 4 }, { 4, n }, { n, 0 }, { rows, n } };
    int most = tn__vectors_limit(TN__FUSED_AVX512);
    seed = 21;
    for (int k = 0; k < 4; k++) {
      node c = { .op = "", .n = 1, .dtype = { TN_FLOAT }, .rank = { k == 2 ? 1 : 2 },
                 .dims = { { shapes[k][0], shapes[k][1] } } };
      in[k] = numbers(&c, 0);
    }
    for (int kind = 0; kind <= most; kind++) {
      tn_output x[4];
      tn_operation *op = NULL;
      tn__vectors_limit(kind);
      ts_init(&t, 0);
      for (int k = 0; k < 4; k++) x[k] = ts_placeholder(t.graph, (const char *[]){ "a", "b", "c", "d" }[k], TN_FLOAT);
      tn_operation_builder *b = tn_operation_begin(t.graph, "_TnMatMul", "op", 0);
      tn_operation_add_input(b, x[0]);
      tn_operation_add_input(b, x[1]);
      tn_operation_add_input_list(b, x + 2, 2);
      set_steps(b);
      REQUIRE_OK(tn_operation_finish(b, &op, &t.err), &t.err);
      start_reproducible(&t);
      REQUIRE_OK(tn_session_run(t.session, NULL, NAMES("a", "b", "c", "d"), in, 4, NAMES("op"), &out[kind], 1, NULL, 0,
                                NULL, &t.err), &t.err);
      ts_fini(&t);
      CHECK_MSG(same(TN_FLOAT, tn_tensor_data(out[0]), tn_tensor_data(out[kind]), (size_t)(rows * n)),
                "%d channels, kind %d", (int)n, kind);
    }
    for (int k = 0; k < 4; k++) tn_tensor_unref(in[k]);
    for (int kind = 0; kind <= most; kind++) tn_tensor_unref(out[kind]);
  }
  tn__vectors_limit(TN__FUSED_AVX512);
}

static void vectors__the_limit_is_respected(void)
{
  int most = tn__vectors_limit(TN__FUSED_AVX512);
  CHECK(most >= TN__BASELINE && most < TN__VECTORS);
  CHECK_INT(tn__vectors_limit(TN__BASELINE), TN__BASELINE);
  CHECK_INT(tn__vectors_for(false), TN__BASELINE);
  CHECK_INT(tn__vectors_for(true), TN__BASELINE);
  CHECK_INT(tn__vectors_limit(TN__FUSED_AVX512), most);
  CHECK_INT(tn__vectors_for(false), most);
  CHECK(tn__vectors_for(true) <= TN__AVX512 && tn__vectors_for(true) == tn__vectors());
}

TAP_MAIN(
  TAP_TEST(vectors__the_limit_is_respected),
  TAP_TEST(vectors__loops_of_one_operand),
  TAP_TEST(vectors__fused_loops_round_alike_everywhere),
  TAP_TEST(vectors__fused_loops_of_two_operands_round_alike),
  TAP_TEST(vectors__loops_of_two_operands),
  TAP_TEST(vectors__leaky_relu_and_its_gradient_are_one),
  TAP_TEST(vectors__softmax),
  TAP_TEST(vectors__reductions),
  TAP_TEST(vectors__places_of_extremes),
  TAP_TEST(vectors__the_first_of_equal_extremes),
  TAP_TEST(vectors__norms),
  TAP_TEST(vectors__casts),
  TAP_TEST(vectors__selected_clipped_added),
  TAP_TEST(vectors__ops_fused_into_a_product))
