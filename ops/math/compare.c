/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of two tensors with broadcasting, and logical ops. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/family.h>

#include <core/base/alloc.h>
#include <math.h>
#include <string.h>

/* ---- loops ---- */

static bool string_equal(const tn_string *x, const tn_string *y)
{
  size_t nx, ny;
  const char *px = tn_string_data(x, &nx), *py = tn_string_data(y, &ny);
  return nx == ny && (nx == 0 || memcmp(px, py, nx) == 0);
}

#define EXPR_equal(d, x, y) ((x) == (y))
#define EXPR_not_equal(d, x, y) ((x) != (y))
#define EXPR_equal_strings(d, x, y) string_equal(x, y)
#define EXPR_not_equal_strings(d, x, y) (!string_equal(x, y))
#define EXPR_less(d, x, y) ((x) < (y))
#define EXPR_less_equal(d, x, y) ((x) <= (y))
#define EXPR_logical_and(d, x, y) ((x) & (y))
#define EXPR_logical_or(d, x, y) ((x) | (y))

#define ORDERED(X, op)                                                         \
  X(op, f32, b8) X(op, f64, b8) X(op, vf16, b8) X(op, vbf16, b8) X(op, i8, b8) \
  X(op, i16, b8) X(op, i32, b8) X(op, i64, b8) X(op, u8, b8) X(op, u16, b8)    \
  X(op, u32, b8) X(op, u64, b8)
#define COMPARABLE(X, op)                                                    \
  ORDERED(X, op) X(op, b8, b8) X(op, c64, b8) X(op, c128, b8) X(op, qi8, b8) \
  X(op, qu8, b8) X(op, qi16, b8) X(op, qu16, b8) X(op, qi32, b8)
#define BOOLS(X, op) X(op, b8, b8)
#define STRINGS(X, op) X(op, str, b8)

TN__BINARY(equal, 0.3, COMPARABLE, TN__NO_TYPES)
TN__BINARY(not_equal, 0.3, COMPARABLE, TN__NO_TYPES)
TN__BINARY(equal_strings, 10, TN__NO_TYPES, STRINGS)
TN__BINARY(not_equal_strings, 10, TN__NO_TYPES, STRINGS)
TN__BINARY(less, 0.3, ORDERED, TN__NO_TYPES)
TN__BINARY(less_equal, 0.3, ORDERED, TN__NO_TYPES)

/* x > y is computed as y < x, with the loops of Less. */
#define SWAPPED_FN(name, less_fns)                                                                  \
  static bool name(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n)      \
  {                                                                                                 \
    static const tn__binary_fn fn[] = less_fns;                                                     \
    return fn[tn__vectors()](y, sy, x, sx, out, n);                                                 \
  }
#define SWAPPED_LOOPS(op, from, to)                                                 \
  SWAPPED_FN(greater_##from, TN__CAT(TN__FNS_, TN__K_##from)(less, from))           \
  SWAPPED_FN(greater_equal_##from, TN__CAT(TN__FNS_, TN__K_##from)(less_equal, from))
ORDERED(SWAPPED_LOOPS, )
TN__BINARY_CREATE(greater, 0.3, TN__NO_TYPES, ORDERED, TN_OK, NULL)
TN__BINARY_CREATE(greater_equal, 0.3, TN__NO_TYPES, ORDERED, TN_OK, NULL)

TN__BINARY(logical_and, 0.1, BOOLS, TN__NO_TYPES)
TN__BINARY(logical_or, 0.1, BOOLS, TN__NO_TYPES)

/* ---- Equal, NotEqual: with incompatible_shape_error false, shapes that do not broadcast are unequal ---- */

/* Shape states for that case: the output is a single false (Equal) or true (NotEqual). */
static const char says_false, says_true;

static tn_status compare_shapes(tn_prepare_ctx *ctx, const char *answer, tn_error *err)
{
  const tn_view *x = &ctx->inputs[0], *y = &ctx->inputs[1];
  tn__shape shape;
  if (tn__broadcast_shapes(x->dims, x->rank, y->dims, y->rank, &shape) ||
      tn__attr_bool(ctx->op, "incompatible_shape_error", true))
    return tn__binary_prepare(ctx, err);
  ctx->shape_state = (void *)answer; /* only its address is used */
  return tn_prepare_output(ctx, 0, NULL, 0, err);
}

static tn_status equal_prepare(tn_prepare_ctx *ctx, tn_error *err) { return compare_shapes(ctx, &says_false, err); }
static tn_status not_equal_prepare(tn_prepare_ctx *ctx, tn_error *err) { return compare_shapes(ctx, &says_true, err); }

static void equal_destroy_shape_state(void *shape_state)
{
  if (shape_state != &says_false && shape_state != &says_true) tn__binary_destroy_shape_state(shape_state);
}

static tn_status equal_compute(tn_kernel_ctx *ctx)
{
  const void *s = ctx->shape_state;
  if (s != &says_false && s != &says_true) return tn__binary_compute(ctx);
  *(uint8_t *)ctx->outputs[0]->data = s == &says_true;
  return TN_OK;
}

/* True if the shapes broadcast whatever the values of their unknown dimensions. */
static bool surely_broadcast(const int64_t *a, int32_t a_rank, const int64_t *b, int32_t b_rank)
{
  if (a_rank < 0 || b_rank < 0) return false;
  int32_t common = a_rank < b_rank ? a_rank : b_rank;
  for (int32_t i = 1; i <= common; i++) {
    int64_t x = a[a_rank - i], y = b[b_rank - i];
    if (x != 1 && y != 1 && (x != y || x < 0)) return false;
  }
  return true;
}

static tn_status equal_infer(tn_infer_ctx *ctx, tn_error *err)
{
  if (tn__attr_bool(tn_infer_operation(ctx), "incompatible_shape_error", true)) return tn__infer_broadcast(ctx, err);
  const int64_t *a, *b;
  int32_t a_rank = tn_infer_input(ctx, 0, &a), b_rank = tn_infer_input(ctx, 1, &b);
  if (surely_broadcast(a, a_rank, b, b_rank)) return tn__infer_broadcast(ctx, err);
  tn__shape shape;
  bool may_broadcast = tn__broadcast_shapes(a, a_rank, b, b_rank, &shape);
  return tn_infer_output(ctx, 0, NULL, may_broadcast ? -1 : 0, err);
}

/* ---- ApproximateEqual ---- */

typedef struct approximate {
  tn_dtype dtype;
  float tolerance;
} approximate;

static tn_status approximate_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = NULL;
  tn_dtype dtype = tn_operation_input_dtype(node, 0);
  if (dtype != TN_FLOAT && dtype != TN_DOUBLE) return tn__no_kernel(err, node, dtype);
  approximate *s = tn__alloc(sizeof(*s));
  if (s == NULL) return tn__no_memory(err, "ApproximateEqual", sizeof(*s));
  s->dtype = dtype;
  tn_status st = tn_operation_attr_float(node, "tolerance", &s->tolerance, err);
  if (st != TN_OK) tn__free(s, sizeof(*s));
  else *state = s;
  return st;
}

static void approximate_destroy(void *state)
{
  tn__free(state, sizeof(approximate));
}

static tn_status approximate_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  tn_status st = tn__want_same_shape(ctx, 0, 1, err);
  ctx->cost_ns = 0.4 * (double)ctx->inputs[0].count;
  return st != TN_OK ? st : tn_prepare_output_like(ctx, 0, 0, err);
}

typedef struct approximate_run {
  const approximate *state;
  const void *x, *y;
  uint8_t *out;
} approximate_run;

static void approximate_part(void *user, int64_t begin, int64_t end)
{
  const approximate_run *r = user;
  uint8_t *restrict out = r->out;
  if (r->state->dtype == TN_FLOAT) {
    const float *x = r->x, *y = r->y, tolerance = r->state->tolerance;
    for (int64_t i = begin; i < end; i++) out[i] = fabsf(x[i] - y[i]) <= tolerance;
  } else {
    const double *x = r->x, *y = r->y, tolerance = r->state->tolerance;
    for (int64_t i = begin; i < end; i++) out[i] = fabs(x[i] - y[i]) <= tolerance;
  }
}

static tn_status approximate_compute(tn_kernel_ctx *ctx)
{
  approximate_run run = { ctx->state, ctx->inputs[0]->data, ctx->inputs[1]->data, ctx->outputs[0]->data };
  int64_t n = ctx->outputs[0]->count;
  if (n <= TN__SERIAL_ELEMENTS) approximate_part(&run, 0, n);
  else tn_parallel_for(ctx, n, TN__SERIAL_ELEMENTS, 0.4, approximate_part, &run);
  return TN_OK;
}

/* ---- the family ---- */

#define T_ORDERED "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define T_EQUAL "T: type; incompatible_shape_error: bool = true"
#define T_APPROXIMATE                                                                                         \
  "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, " \
  "quint16, uint16, complex128, half, uint32, uint64}; tolerance: float = 1e-05"
#define COMPARABLE_ONLY                                                                                       \
  "T=float|double|half|bfloat16|int8|int16|int32|int64|uint8|uint16|uint32|uint64|bool|complex64|complex128|" \
  "qint8|quint8|qint16|quint16|qint32"

#define ORDER_OPS(X)                   \
  X("Less", less, "x < y")             \
  X("LessEqual", less_equal, "x <= y") \
  X("Greater", greater, "x > y")       \
  X("GreaterEqual", greater_equal, "x >= y")
#define LOGIC_OPS(X)                      \
  X("LogicalAnd", logical_and, "x and y") \
  X("LogicalOr", logical_or, "x or y")

#define ORDER_OP(op, fn, summary) \
  TN__ELEMENTWISE_OP(op, "x: T, y: T", "z: bool", T_ORDERED, 0, tn__infer_broadcast, summary),
#define LOGIC_OP(op, fn, summary) \
  TN__ELEMENTWISE_OP(op, "x: bool, y: bool", "z: bool", "", TN_TRAIT_COMMUTATIVE, tn__infer_broadcast, summary),

static const tn_op_def ops[] = {
  TN__ELEMENTWISE_OP("Equal", "x: T, y: T", "z: bool", T_EQUAL, TN_TRAIT_COMMUTATIVE, equal_infer, "x == y"),
  TN__ELEMENTWISE_OP("NotEqual", "x: T, y: T", "z: bool", T_EQUAL, TN_TRAIT_COMMUTATIVE, equal_infer, "x != y"),
  ORDER_OPS(ORDER_OP)
  LOGIC_OPS(LOGIC_OP)
  TN__ELEMENTWISE_OP("ApproximateEqual", "x: T, y: T", "z: bool", T_APPROXIMATE, TN_TRAIT_COMMUTATIVE, tn__infer_merged,
                     "|x - y| <= tolerance"),
};

#define ORDER_KERNEL(op, fn, summary) TN__BINARY_KERNEL(op, NULL, fn),
#define EQUAL_KERNEL(op_, types_, fn, prepare_)                                                                      \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = #fn "_cpu",              \
    .rank = TN_RANK_C, .create = fn##_create, .prepare = prepare_, .destroy_shape_state = equal_destroy_shape_state, \
    .compute = equal_compute }

static const tn_kernel_def kernels[] = {
  EQUAL_KERNEL("Equal", COMPARABLE_ONLY, equal, equal_prepare),
  EQUAL_KERNEL("Equal", "T=string", equal_strings, equal_prepare),
  EQUAL_KERNEL("NotEqual", COMPARABLE_ONLY, not_equal, not_equal_prepare),
  EQUAL_KERNEL("NotEqual", "T=string", not_equal_strings, not_equal_prepare),
  ORDER_OPS(ORDER_KERNEL)
  LOGIC_OPS(ORDER_KERNEL)
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = "ApproximateEqual", .device = "CPU", .types = "T=float|double",
    .name = "approximate_equal_cpu", .rank = TN_RANK_C, .create = approximate_create, .destroy = approximate_destroy,
    .prepare = approximate_prepare, .compute = approximate_compute },
};

TN_OP_FAMILY(compare)
