/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on two tensors with broadcasting, and sums of many tensors of one shape. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/kernel/elements/rounding.h>
#include <ops/kernel/family.h>
#include <ops/kernel/functions/double_exponential.h>
#include <ops/kernel/functions/double_trigonometric.h>
#include <ops/kernel/functions/exponential.h>
#include <ops/kernel/functions/trigonometric.h>

#include <core/base/alloc.h>
#include <string.h>
#include <tgmath.h>
#undef I

/* ---- integers ---- */

/* Division by zero sets *bad; the lowest number divided by -1 wraps. */
#define DIVISION_SIGNED(T, U, d)                                              \
  static inline T truncate_div_of_##d(T x, T y, bool *bad)                    \
  {                                                                           \
    if (y == 0) return *bad = true, (T)0;                                     \
    return y == -1 ? (T)(0 - (U)x) : (T)(x / y);                              \
  }                                                                           \
  static inline T truncate_mod_of_##d(T x, T y, bool *bad)                    \
  {                                                                           \
    if (y == 0) return *bad = true, (T)0;                                     \
    return y == -1 ? (T)0 : (T)(x % y);                                       \
  }                                                                           \
  static inline T floor_div_of_##d(T x, T y, bool *bad)                       \
  {                                                                           \
    T q = truncate_div_of_##d(x, y, bad), r = truncate_mod_of_##d(x, y, bad); \
    return r != 0 && (r < 0) != (y < 0) ? (T)(q - 1) : q;                     \
  }                                                                           \
  static inline T floor_mod_of_##d(T x, T y, bool *bad)                       \
  {                                                                           \
    T r = truncate_mod_of_##d(x, y, bad);                                     \
    return r != 0 && (r < 0) != (y < 0) ? (T)(r + y) : r;                     \
  }                                                                           \
  static inline T pow_of_##d(T x, T y, bool *bad)                             \
  {                                                                           \
    U base = (U)x, r = 1;                                                     \
    if (y < 0) *bad = true;                                                   \
    for (; y > 0; y = (T)(y / 2)) {                                           \
      if (y % 2 != 0) r *= base;                                              \
      base *= base;                                                           \
    }                                                                         \
    return (T)r;                                                              \
  }
#define DIVISION_UNSIGNED(T, d)                                                                    \
  static inline T truncate_div_of_##d(T x, T y, bool *bad)                                         \
  {                                                                                                \
    if (y == 0) return *bad = true, (T)0;                                                          \
    return (T)(x / y);                                                                             \
  }                                                                                                \
  static inline T truncate_mod_of_##d(T x, T y, bool *bad)                                         \
  {                                                                                                \
    if (y == 0) return *bad = true, (T)0;                                                          \
    return (T)(x % y);                                                                             \
  }                                                                                                \
  static inline T floor_div_of_##d(T x, T y, bool *bad) { return truncate_div_of_##d(x, y, bad); } \
  static inline T floor_mod_of_##d(T x, T y, bool *bad) { return truncate_mod_of_##d(x, y, bad); }
DIVISION_SIGNED(int8_t, uint32_t, i8)
DIVISION_SIGNED(int16_t, uint32_t, i16)
DIVISION_SIGNED(int32_t, uint32_t, i32)
DIVISION_SIGNED(int64_t, uint64_t, i64)
DIVISION_UNSIGNED(uint8_t, u8)
DIVISION_UNSIGNED(uint16_t, u16)
DIVISION_UNSIGNED(uint32_t, u32)
DIVISION_UNSIGNED(uint64_t, u64)

/* ---- floats and complex numbers ---- */

#define DIVISION_FLOAT(T, s, fmod_, pow_, d)                                                 \
  static inline T floor_div_of_##d(T x, T y, bool *bad)                                      \
  {                                                                                          \
    /* The quotient is rounded to the type in memory first. */                               \
    return tn__floor_##s(TN__L_##d(TN__P_##d(x / y)));                                       \
  }                                                                                          \
  static inline T truncate_div_of_##d(T x, T y, bool *bad)                                   \
  {                                                                                          \
    return tn__trunc_##s(TN__L_##d(TN__P_##d(x / y)));                                       \
  }                                                                                          \
  static inline TN_UNUSED T truncate_mod_of_##d(T x, T y, bool *bad) { return fmod_(x, y); } \
  static inline T floor_mod_of_##d(T x, T y, bool *bad)                                      \
  {                                                                                          \
    T r = fmod_(x, y);                                                                       \
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                         \
  }                                                                                          \
  TN__INLINED T pow_of_##d(T x, T y, bool *bad) { return pow_(x, y); }
DIVISION_FLOAT(float, f, fmodf, tn__powf, f32)
DIVISION_FLOAT(double, d, fmod, pow, f64)
DIVISION_FLOAT(float, f, fmodf, tn__powf, f16)
DIVISION_FLOAT(float, f, fmodf, tn__powf, bf16)
static inline tn__c64 pow_of_c64(tn__c64 x, tn__c64 y, bool *bad) { return cpowf(x, y); }
static inline tn__c128 pow_of_c128(tn__c128 x, tn__c128 y, bool *bad) { return cpow(x, y); }

#define SQUARED_DIFFERENCE(T, s) \
  static inline T squared_difference_##s(T x, T y) { return (x - y) * (x - y); }
SQUARED_DIFFERENCE(float, f)
SQUARED_DIFFERENCE(double, d)
SQUARED_DIFFERENCE(uint32_t, 32)
SQUARED_DIFFERENCE(uint64_t, 64)

/* The squared absolute value of the difference. */
static inline tn__c64 squared_difference_zf(tn__c64 x, tn__c64 y)
{
  float re = crealf(x) - crealf(y), im = cimagf(x) - cimagf(y);
  return tn__make_c64(re * re + im * im, 0);
}
static inline tn__c128 squared_difference_zd(tn__c128 x, tn__c128 y)
{
  double re = creal(x) - creal(y), im = cimag(x) - cimag(y);
  return tn__make_c128(re * re + im * im, 0);
}

/* ---- loops ---- */

#define EXPR_add(d, x, y) ((x) + (y))
#define EXPR_sub(d, x, y) ((x) - (y))
#define EXPR_mul(d, x, y) TN__MUL(x, y)
#define EXPR_real_div(d, x, y) TN__DIV(x, y)
#define EXPR_div(d, x, y) truncate_div_of_##d(x, y, &bad)
#define EXPR_floor_div(d, x, y) floor_div_of_##d(x, y, &bad)
#define EXPR_truncate_div(d, x, y) truncate_div_of_##d(x, y, &bad)
#define EXPR_mod(d, x, y) truncate_mod_of_##d(x, y, &bad)
#define EXPR_truncate_mod(d, x, y) truncate_mod_of_##d(x, y, &bad)
#define EXPR_floor_mod(d, x, y) floor_mod_of_##d(x, y, &bad)
#define EXPR_pow(d, x, y) pow_of_##d(x, y, &bad)
#define EXPR_maximum(d, x, y) TN__MAX(x, y)
#define EXPR_minimum(d, x, y) TN__MIN(x, y)
#define EXPR_squared_difference(d, x, y)                                                                    \
  _Generic((x), float: squared_difference_f, double: squared_difference_d, uint32_t: squared_difference_32, \
           uint64_t: squared_difference_64, tn__c64: squared_difference_zf, tn__c128: squared_difference_zd)(x, y)
#define EXPR_atan2(d, x, y) _Generic((x), float: tn__atan2f, double: tn__atan2_d)(x, y)
#define EXPR_atan2_fused(d, x, y) tn__atan2_d_by(1, x, y)
#define EXPR_div_no_nan(d, x, y) ((y) == 0 ? 0 : TN__DIV(x, y))
#define EXPR_mul_no_nan(d, x, y) ((y) == 0 ? 0 : TN__MUL(x, y))
#define EXPR_xdivy(d, x, y) ((x) == 0 ? 0 : TN__DIV(x, y))
#define LOG(x) _Generic((x), float: tn__logf, double: tn__log_d, tn__c64: clogf, tn__c128: clog)(x)
#define EXPR_xlogy(d, x, y) ((x) == 0 ? 0 : TN__MUL(x, LOG(y)))
#define EXPR_xlogy_fused(d, x, y) ((x) == 0 ? 0 : (x) * tn__log_fused_d(y))
#define LOG1P(x) \
  _Generic((x), float: tn__log1pf, double: tn__log1p_d, tn__c64: tn__log1p_c64, tn__c128: tn__log1p_c128)(x)
#define EXPR_xlog1py(d, x, y) ((x) == 0 ? 0 : TN__MUL(x, LOG1P(y)))
#define EXPR_xlog1py_fused(d, x, y) ((x) == 0 ? 0 : (x) * tn__log1p_fused_d(y))
#define EXPR_next_after(d, x, y) nextafter(x, y)
#define EXPR_make_complex(d, x, y) _Generic((x), float: tn__make_c64, double: tn__make_c128)(x, y)

#define WRAPPING(X, op) TN__WRAP_SIGNED(X, op) TN__WRAP_UNSIGNED(X, op)
#define INTEGERS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
#define NUMBERS(X, op) TN__VIA_FLOATS_COMPLEXES(X, op) WRAPPING(X, op)
#define REALS(X, op) TN__VIA_FLOATS(X, op) INTEGERS(X, op)
#define FLOOR_MOD_TYPES(X, op) TN__SAME_FLOATS(X, op) INTEGERS(X, op)
#define SHORT_AND_INTEGERS(X, op) X(op, f16, f16) X(op, bf16, bf16) INTEGERS(X, op)
#define POW_TYPES(X, op) TN__SAME_COMPLEXES(X, op) TN__SAME_SIGNED(X, op)
#define SQUARED_DIFFERENCE_TYPES(X, op) TN__VIA_FLOATS_COMPLEXES(X, op) X(op, wi32, wi32) X(op, wi64, wi64)
#define WIDE_FLOATS(X, op) X(op, f32, f32) X(op, f64, f64)
#define MOD_TYPES(X, op) WIDE_FLOATS(X, op) X(op, i32, i32) X(op, i64, i64)
#define COMPLEX_TYPES(X, op) X(op, f32, c64) X(op, f64, c128)
#define BY_ZERO "integer division by zero"

TN__BINARY(add, 0.3, NUMBERS, TN__NO_TYPES)
TN__BINARY(sub, 0.3, NUMBERS, TN__NO_TYPES)
TN__BINARY(mul, 0.3, NUMBERS, TN__NO_TYPES)
TN__BINARY(real_div, 0.8, TN__VIA_FLOATS_COMPLEXES, TN__NO_TYPES)
TN__BINARY_FAILING(div, 3, TN__NO_TYPES, INTEGERS, TN_INVALID_ARGUMENT, BY_ZERO)
TN__BINARY_FAILING(floor_div, 3, WIDE_FLOATS, SHORT_AND_INTEGERS, TN_INVALID_ARGUMENT, BY_ZERO)
TN__BINARY_FAILING(floor_mod, 6, TN__NO_TYPES, FLOOR_MOD_TYPES, TN_INVALID_ARGUMENT, BY_ZERO)
TN__BINARY_FAILING(mod, 6, TN__NO_TYPES, MOD_TYPES, TN_INVALID_ARGUMENT, BY_ZERO)
/* These two report TN_INTERNAL, as TensorFlow does. */
TN__BINARY_FAILING(truncate_div, 3, WIDE_FLOATS, SHORT_AND_INTEGERS, TN_INTERNAL, BY_ZERO)
TN__BINARY_FAILING(truncate_mod, 6, TN__NO_TYPES, MOD_TYPES, TN_INTERNAL, BY_ZERO)
TN__BINARY_FAILING(pow, 8, TN__VIA_FLOATS, POW_TYPES, TN_INVALID_ARGUMENT, "integer to a negative power")
TN__BINARY(maximum, 0.4, REALS, TN__NO_TYPES)
TN__BINARY(minimum, 0.4, REALS, TN__NO_TYPES)
TN__BINARY(squared_difference, 0.4, SQUARED_DIFFERENCE_TYPES, TN__NO_TYPES)
TN__BINARY_DENSE(atan2, 5, TN__VIA_FLOATS, TN__NO_TYPES)
TN__BINARY(div_no_nan, 1, TN__VIA_FLOATS_COMPLEXES, TN__NO_TYPES)
TN__BINARY(mul_no_nan, 0.5, TN__VIA_FLOATS_COMPLEXES, TN__NO_TYPES)
TN__BINARY(xdivy, 1, TN__VIA_FLOATS_COMPLEXES, TN__NO_TYPES)
TN__BINARY_DENSE(xlogy, 4, TN__VIA_FLOATS, TN__SAME_COMPLEXES)
TN__BINARY_DENSE(xlog1py, 4, TN__VIA_FLOATS, TN__SAME_COMPLEXES)
TN__BINARY(next_after, 3, TN__NO_TYPES, WIDE_FLOATS)
TN__BINARY(make_complex, 0.5, COMPLEX_TYPES, TN__NO_TYPES)

/* ---- strings ---- */

/* Concatenates x and y. Returns true if out of memory. */
static bool join(const tn_string *x, const tn_string *y, tn_string *out)
{
  size_t nx, ny, n;
  const char *px = tn_string_data(x, &nx), *py = tn_string_data(y, &ny);
  char small[256], *text = small;
  if (!tn__size_add(nx, ny, &n)) return true;
  if (n > sizeof(small)) text = tn__alloc(n);
  if (text == NULL) return true;
  if (nx > 0) memcpy(text, px, nx);
  if (ny > 0) memcpy(text + nx, py, ny);
  bool failed = tn_string_set(out, text, n, NULL) != TN_OK;
  if (text != small) tn__free(text, n);
  return failed;
}

static bool add_string_str(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n)
{
  const tn_string *xs = x, *ys = y;
  tn_string *to = out;
  for (int64_t i = 0; i < n; i++)
    if (join(&xs[i * sx], &ys[i * sy], &to[i])) return true;
  return false;
}

static tn_status add_string_create(const tn_operation *node, void **state, tn_error *err)
{
  static const tn__loop_info info = { 50, TN_RESOURCE_EXHAUSTED, "out of memory: joining strings" };
  static const tn__binary_loop loop = {
    TN_STRING, TN_STRING, sizeof(tn_string), sizeof(tn_string), &info, TN__SAME_FNS(add_string_str),
  };
  return tn__binary_create(node, &loop, 1, state, err);
}

/* ---- AddN, AccumulateNV2: n inputs of one shape ---- */

#define SUM_BLOCK 1024 /* elements summed over all inputs at a time: they stay in the cache */

/* Uses the loops of AddV2. Inputs are added from first to last, and each partial sum is rounded to the type in
 * memory, as in TensorFlow; this affects half and bfloat16. The output may have the memory of any input: partial
 * sums are kept in a separate buffer until the last input has been read. */
static tn_status sum_create(const tn_operation *node, void **state, tn_error *err)
{
  *state = (void *)tn__binary_loop_of("AddV2", node); /* only read through it */
  return *state != NULL ? TN_OK : tn__no_kernel(err, node, tn_operation_output_dtype(node, 0));
}

/* Sums scalars, of which there may be thousands, without a function call for each. */
#define SUM_SCALARS(T)                                                                              \
  {                                                                                                 \
    T sum = *(const T *)ctx->inputs[0]->data;                                                       \
    for (uint32_t k = 1; k < ctx->n_inputs; k++) sum += *(const T *)ctx->inputs[k]->data;           \
    *(T *)ctx->outputs[0]->data = sum;                                                              \
    return true;                                                                                    \
  }
static bool sum_scalars(tn_kernel_ctx *ctx)
{
  switch (((const tn__binary_loop *)ctx->state)->from) {
  case TN_FLOAT: SUM_SCALARS(float)
  case TN_DOUBLE: SUM_SCALARS(double)
  case TN_INT32: SUM_SCALARS(uint32_t)
  case TN_INT64: SUM_SCALARS(uint64_t)
  default: return false;
  }
}

static void sum_blocks(tn_kernel_ctx *ctx, int64_t begin, int64_t end)
{
  const tn__binary_loop *loop = ctx->state;
  uint32_t last = ctx->n_inputs - 1;
  int64_t size = loop->to_size;
  _Alignas(64) char sum[SUM_BLOCK * 16];
  tn__binary_fn fn = loop->fn[end - begin < 8 ? TN__BASELINE : tn__vectors()];
  for (int64_t at = begin, n; at < end; at += n) {
    n = end - at < SUM_BLOCK ? end - at : SUM_BLOCK;
    const char *so_far = (const char *)ctx->inputs[0]->data + at * size;
    char *out = (char *)ctx->outputs[0]->data + at * size;
    if (last == 0 && so_far != out) memcpy(out, so_far, (size_t)(n * size));
    for (uint32_t k = 1; k <= last; k++) {
      char *to = k == last ? out : sum;
      fn(so_far, 1, (const char *)ctx->inputs[k]->data + at * size, 1, to, n);
      so_far = to;
    }
  }
}

static tn_status sum_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  for (uint32_t i = 1; i < ctx->n_inputs; i++) {
    tn_status st = tn__want_same_shape(ctx, 0, i, err);
    if (st != TN_OK) return st;
  }
  ctx->cost_ns = 0.3 * (double)ctx->n_inputs * (double)ctx->inputs[0].count;
  return tn__prepare_unchanged(ctx, err);
}

/* The attribute `shape` must match, too. */
static tn_status accumulate_prepare(tn_prepare_ctx *ctx, tn_error *err)
{
  const int64_t *dims = NULL;
  int32_t rank = -1;
  const tn_view *x = &ctx->inputs[0];
  tn_status st = tn_operation_attr_shape(ctx->op, "shape", &dims, &rank, err);
  if (st != TN_OK) return st;
  tn__shape shape;
  tn__shape_set(&shape, x->dims, x->rank);
  if (!tn__shape_merge(&shape, dims, rank)) return tn__shape_error(err, ctx, 0, dims, rank);
  return sum_prepare(ctx, err);
}

static void sum_part(void *user, int64_t begin, int64_t end) { sum_blocks(user, begin, end); }

static tn_status sum_compute(tn_kernel_ctx *ctx)
{
  int64_t n = ctx->outputs[0]->count;
  double cost = 0.3 * ctx->n_inputs;
  if (n == 1 && sum_scalars(ctx)) return TN_OK;
  if (n <= SUM_BLOCK || (double)n * cost < 30000) sum_blocks(ctx, 0, n);
  else tn_parallel_for(ctx, n, 4 * SUM_BLOCK, cost, sum_part, ctx);
  return TN_OK;
}

/* The shape is the attribute's, merged with the shapes of the inputs. */
static tn_status accumulate_infer(tn_infer_ctx *ctx, tn_error *err)
{
  const int64_t *dims = NULL;
  int32_t rank = -1;
  tn_status st = tn_operation_attr_shape(tn_infer_operation(ctx), "shape", &dims, &rank, err);
  return st != TN_OK ? st : tn__infer_merged_with(ctx, dims, rank, err);
}

/* ---- the family ---- */

#define T_FLOATS "T: {bfloat16, half, float, double}"
#define T_FLOATS_COMPLEXES "T: {bfloat16, half, float, double, complex64, complex128}"
#define T_INTEGERS "uint8, int8, uint16, int16, int32, uint32, uint64, int64"
#define T_REALS "T: {bfloat16, half, float, double, " T_INTEGERS "}"
#define T_NUMBERS "T: {bfloat16, half, float, double, " T_INTEGERS ", complex64, complex128}"
#define T_SUM                                                                                             \
  "float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, " \
  "quint16, uint16, complex128, half, uint32, uint64"
#define FLOATS_COMPLEXES "T=bfloat16|half|float|double|complex64|complex128"
#define INTEGERS_ONLY "T=uint8|int8|uint16|int16|int32|uint32|uint64|int64"
#define REALS_ONLY "T=bfloat16|half|float|double|uint8|int8|uint16|int16|int32|uint32|uint64|int64"
#define NUMBERS_ONLY REALS_ONLY "|complex64|complex128"

/* X(op, its loops, attributes, dtypes of the kernel if the schema allows more, traits, summary) */
#define BINARY_OPS(X)                                                                                                  \
  X("Add", add, "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}", \
    "T=bfloat16|half|float|double|uint8|int8|int16|int32|int64|complex64|complex128", 0, "x + y; strings are joined")  \
  X("AddV2", add, T_NUMBERS, NULL, TN_TRAIT_COMMUTATIVE, "x + y")                                                      \
  X("Sub", sub, T_NUMBERS, NULL, 0, "x - y")                                                                           \
  X("Mul", mul, T_NUMBERS, NULL, TN_TRAIT_COMMUTATIVE, "x * y")                                                        \
  X("RealDiv", real_div, T_NUMBERS, FLOATS_COMPLEXES, 0, "x / y")                                                      \
  X("FloorDiv", floor_div, T_NUMBERS, REALS_ONLY, 0, "x / y, rounded down")                                            \
  X("TruncateDiv", truncate_div, T_NUMBERS, REALS_ONLY, 0, "x / y, rounded towards 0")                                 \
  X("Mod", mod, "T: {int32, int64, half, bfloat16, float, double}", "T=int32|int64|float|double", 0,                   \
    "rest of x / y, with the sign of x")                                                                               \
  X("TruncateMod", truncate_mod, "T: {int32, int64, bfloat16, half, float, double}", "T=int32|int64|float|double",     \
    0, "rest of x / y, with the sign of x")                                                                            \
  X("FloorMod", floor_mod, T_REALS, NULL, 0, "rest of x / y, with the sign of y")                                      \
  X("Pow", pow, "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}", NULL, 0,       \
    "x to the y")                                                                                                      \
  X("Maximum", maximum, T_REALS, NULL, TN_TRAIT_COMMUTATIVE, "the larger one; NaN if one is")                          \
  X("Minimum", minimum, T_REALS, NULL, TN_TRAIT_COMMUTATIVE, "the smaller one; NaN if one is")                         \
  X("SquaredDifference", squared_difference,                                                                           \
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}", NULL, TN_TRAIT_COMMUTATIVE,             \
    "|x - y| squared")                                                                                                 \
  X("DivNoNan", div_no_nan, T_FLOATS_COMPLEXES, NULL, 0, "x / y, 0 where y is 0")                                      \
  X("MulNoNan", mul_no_nan, T_FLOATS_COMPLEXES, NULL, 0, "x * y, 0 where y is 0")                                      \
  X("Xdivy", xdivy, T_FLOATS_COMPLEXES, NULL, 0, "x / y, 0 where x is 0")                                              \
  X("Xlogy", xlogy, T_FLOATS_COMPLEXES, NULL, 0, "x log(y), 0 where x is 0")                                           \
  X("Xlog1py", xlog1py, T_FLOATS_COMPLEXES, NULL, 0, "x log(1 + y), 0 where x is 0")

#define BINARY_OP(op, fn, attrs, types, traits, summary) \
  TN__ELEMENTWISE_OP(op, "x: T, y: T", "z: T", attrs, traits, infer_binary, summary),

/* x op y; TN_UNKNOWN_INT if it is unknown, does not fit or is left to run time. */
static int64_t int_of(const char *op, int64_t x, int64_t y)
{
  int64_t z;
  if (x == TN_UNKNOWN_INT || y == TN_UNKNOWN_INT) return TN_UNKNOWN_INT;
  if (strcmp(op, "Add") == 0 || strcmp(op, "AddV2") == 0) return __builtin_add_overflow(x, y, &z) ? TN_UNKNOWN_INT : z;
  if (strcmp(op, "Sub") == 0) return __builtin_sub_overflow(x, y, &z) ? TN_UNKNOWN_INT : z;
  if (strcmp(op, "Mul") == 0) return __builtin_mul_overflow(x, y, &z) ? TN_UNKNOWN_INT : z;
  if (strcmp(op, "Maximum") == 0) return x > y ? x : y;
  if (strcmp(op, "Minimum") == 0) return x < y ? x : y;
  if (strcmp(op, "FloorDiv") == 0 && x >= 0 && y > 0) return x / y;
  return TN_UNKNOWN_INT;
}

/* Values that are computed from known values, such as sizes, stay known. */
static tn_status infer_binary(tn_infer_ctx *ctx, tn_error *err)
{
  tn_status st = tn__infer_broadcast(ctx, err);
  const tn_operation *op = tn_infer_operation(ctx);
  tn_dtype dtype = tn_operation_output_dtype(op, 0);
  if (st != TN_OK || (dtype != TN_INT32 && dtype != TN_INT64)) return st;
  const int64_t *items[2], *dims;
  int64_t n[2], all[TN_MAX_INFER_INTS];
  int32_t rank[2];
  for (size_t i = 0; i < 2; i++) {
    n[i] = tn_infer_input_ints(ctx, i, &items[i]);
    rank[i] = tn_infer_input(ctx, i, &dims);
    if (n[i] < 0 || (rank[i] == 0 ? n[i] != 1 : rank[i] != 1 || dims[0] != n[i])) return st;
  }
  int64_t size = n[0] == 1 ? n[1] : n[0];
  for (int64_t k = 0; k < size; k++)
    all[k] = int_of(tn_operation_type(op), items[0][n[0] == 1 ? 0 : k], items[1][n[1] == 1 ? 0 : k]);
  return tn_infer_output_ints(ctx, 0, all, size, err);
}

static const tn_op_def ops[] = {
  BINARY_OPS(BINARY_OP)
  TN__ELEMENTWISE_OP("Div", "x: T, y: T", "z: T", T_NUMBERS, 0, tn__infer_broadcast,
                     "x / y; integers rounded towards 0"),
  TN__ELEMENTWISE_OP("Atan2", "y: T, x: T", "z: T", T_FLOATS, 0, tn__infer_broadcast, "angle of the point (x, y)"),
  TN__ELEMENTWISE_OP("NextAfter", "x1: T, x2: T", "output: T", "T: {double, float} = float", 0, tn__infer_broadcast,
                     "the next number from x1 on towards x2"),
  TN__ELEMENTWISE_OP("Complex", "real: T, imag: T", "out: Tout",
                     "T: {float, double} = float; Tout: {complex64, complex128} = complex64", 0, tn__infer_broadcast,
                     "a complex number of its parts"),
  TN__ELEMENTWISE_OP("AddN", "inputs: N * T", "sum: T", "N: int >= 1; T: {" T_SUM ", variant}", TN_TRAIT_COMMUTATIVE,
                     tn__infer_merged, "sum of all inputs"),
  TN__ELEMENTWISE_OP("AccumulateNV2", "inputs: N * T", "sum: T", "N: int >= 1; T: {" T_SUM "}; shape: shape",
                     TN_TRAIT_COMMUTATIVE, accumulate_infer, "sum of all inputs, whose shape is said"),
};

#define BINARY_KERNEL(op, fn, attrs, types, traits, summary) TN__BINARY_KERNEL(op, types, fn),
#define SUM_KERNEL(op_, types_, name_, prepare_)                                                   \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = name_, \
    .rank = TN_RANK_C, .create = sum_create, .prepare = prepare_, .compute = sum_compute }

static const tn_kernel_def kernels[] = {
  BINARY_OPS(BINARY_KERNEL)
  TN__BINARY_KERNEL("Add", "T=string", add_string),
  TN__BINARY_KERNEL("Div", FLOATS_COMPLEXES, real_div),
  TN__BINARY_KERNEL("Div", INTEGERS_ONLY, div),
  TN__BINARY_KERNEL("Atan2", NULL, atan2),
  TN__BINARY_KERNEL("NextAfter", NULL, next_after),
  TN__BINARY_KERNEL("Complex", "T=float,Tout=complex64", make_complex),
  TN__BINARY_KERNEL("Complex", "T=double,Tout=complex128", make_complex),
  SUM_KERNEL("AddN", NUMBERS_ONLY, "add_n_cpu", sum_prepare),
  SUM_KERNEL("AccumulateNV2", NUMBERS_ONLY, "accumulate_n_cpu", accumulate_prepare),
};

TN_OP_FAMILY(math_binary)
