/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <ops/support/half.h>
#include <ops/support/reduce_loops.h>

typedef struct c64 { float re, im; } c64;
typedef struct c128 { double re, im; } c128;

#if defined(__GNUC__)
#define NOINLINE __attribute__((noinline)) /* there are eighty of each */
#else
#define NOINLINE
#endif

/* Long rows are reduced in this many lanes at once. */
#define LANES 32

/* The loops of one operation on one type.
 * T, E, ACC     element in memory; as it is computed with; accumulator
 * LOAD(x)       T to E, with what the operation does to each element first
 * MERGE(a, b)   two E to one
 * WIDEN(e)      E to ACC
 * TAKE(a, b)    two ACC to one
 * INIT          ACC of nothing
 * Eight elements are merged before the accumulator is touched: that saves its loads and stores, and where it is wider
 * than E most of the conversions. */
#define LOOPS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                             \
  static void init_##name(void *to, int64_t n)                                                             \
  {                                                                                                        \
    ACC *restrict acc = to;                                                                                \
    for (int64_t j = 0; j < n; j++) acc[j] = INIT;                                                         \
  }                                                                                                        \
  static NOINLINE void columns8_##name(ACC *restrict acc, const T *restrict in, int64_t stride, int64_t n) \
  {                                                                                                        \
    const T *restrict p1 = in + stride, *restrict p2 = p1 + stride, *restrict p3 = p2 + stride;            \
    const T *restrict p4 = p3 + stride, *restrict p5 = p4 + stride, *restrict p6 = p5 + stride;            \
    const T *restrict p7 = p6 + stride;                                                                    \
    for (int64_t j = 0; j < n; j++) {                                                                      \
      E a = MERGE(LOAD(in[j]), LOAD(p1[j])), b = MERGE(LOAD(p2[j]), LOAD(p3[j]));                          \
      E c = MERGE(LOAD(p4[j]), LOAD(p5[j])), d = MERGE(LOAD(p6[j]), LOAD(p7[j]));                          \
      E ab = MERGE(a, b), cd = MERGE(c, d), all = MERGE(ab, cd);                                           \
      acc[j] = TAKE(acc[j], WIDEN(all));                                                                   \
    }                                                                                                      \
  }                                                                                                        \
  static inline void columns1_##name(ACC *restrict acc, const T *restrict in, int64_t n)                   \
  {                                                                                                        \
    for (int64_t j = 0; j < n; j++) acc[j] = TAKE(acc[j], WIDEN(LOAD(in[j])));                             \
  }                                                                                                        \
  static NOINLINE void columns_##name(void *to, const void *from, int64_t rows, int64_t stride, int64_t n) \
  {                                                                                                        \
    const T *in = from;                                                                                    \
    for (; rows >= 8; rows -= 8, in += 8 * stride) columns8_##name(to, in, stride, n);                     \
    for (; rows > 0; rows--, in += stride) columns1_##name(to, in, n);                                     \
  }                                                                                                        \
  static inline ACC row_##name(ACC total, const T *in, int64_t n)                                          \
  {                                                                                                        \
    if (n >= 4 * LANES) {                                                                                  \
      ACC lane[LANES];                                                                                     \
      int64_t steps = n / LANES;                                                                           \
      for (int l = 0; l < LANES; l++) lane[l] = INIT;                                                      \
      columns_##name(lane, in, steps, LANES, LANES);                                                       \
      for (int w = LANES / 2; w > 0; w /= 2)                                                               \
        for (int l = 0; l < w; l++) lane[l] = TAKE(lane[l], lane[l + w]);                                  \
      total = TAKE(total, lane[0]);                                                                        \
      in += steps * LANES;                                                                                 \
      n -= steps * LANES;                                                                                  \
    }                                                                                                      \
    for (; n >= 8; n -= 8, in += 8) {                                                                      \
      E a = MERGE(LOAD(in[0]), LOAD(in[1])), b = MERGE(LOAD(in[2]), LOAD(in[3]));                          \
      E c = MERGE(LOAD(in[4]), LOAD(in[5])), d = MERGE(LOAD(in[6]), LOAD(in[7]));                          \
      E ab = MERGE(a, b), cd = MERGE(c, d), all = MERGE(ab, cd);                                           \
      total = TAKE(total, WIDEN(all));                                                                     \
    }                                                                                                      \
    for (int64_t i = 0; i < n; i++) total = TAKE(total, WIDEN(LOAD(in[i])));                               \
    return total;                                                                                          \
  }                                                                                                        \
  static void rows_##name(void *to, const void *from, int64_t n, int64_t stride, int64_t outs)             \
  {                                                                                                        \
    ACC *restrict acc = to;                                                                                \
    const T *in = from;                                                                                    \
    for (int64_t o = 0; o < outs; o++) acc[o] = row_##name(acc[o], in + o * stride, n);                    \
  }                                                                                                        \
  static void combine_##name(void *to, const void *from, int64_t n)                                        \
  {                                                                                                        \
    ACC *restrict acc = to;                                                                                \
    const ACC *restrict other = from;                                                                      \
    for (int64_t j = 0; j < n; j++) acc[j] = TAKE(acc[j], other[j]);                                       \
  }                                                                                                        \
  typedef ACC acc_##name;

#define FINISH(name, loops, T, VALUE)                                             \
  static void finish_##name(void *to, const void *from, int64_t n, int64_t count) \
  {                                                                               \
    T *restrict out = to;                                                         \
    const acc_##loops *restrict in = from;                                        \
    for (int64_t j = 0; j < n; j++) {                                             \
      const acc_##loops acc = in[j];                                              \
      out[j] = VALUE;                                                             \
    }                                                                             \
    (void)count;                                                                  \
  }

#define SAME(x) (x)
#define ADD(a, b) ((a) + (b))
#define WIDE(x) ((double)(x))
#define SQUARE(x) ((x) * (x))
#define HALF(x) tn__half_to_float(x)
#define BRAIN(x) tn__bfloat16_to_float(x)

static inline float square_half(uint16_t x)
{
  float f = tn__half_to_float(x);
  return f * f;
}

static inline float square_brain(uint16_t x)
{
  float f = tn__bfloat16_to_float(x);
  return f * f;
}

/* Integer arithmetic wraps. `1u *` keeps the short types from being multiplied as signed ints. */
#define TIMES(a, b) ((a) * (b))
#define WRAP_ADD(T) static inline T add_##T(T a, T b) { return (T)(a + b); }
#define WRAP_MUL(T) static inline T mul_##T(T a, T b) { return (T)(1u * a * b); }
#define WRAP_SQUARE(T) static inline T square_##T(T a) { return (T)(1u * a * a); }
#define WRAP(T) WRAP_ADD(T) WRAP_MUL(T) WRAP_SQUARE(T)
WRAP(uint8_t)
WRAP(uint16_t)
WRAP(uint32_t)
WRAP(uint64_t)

/* ---- sums, means, norms, products of floats ---- */

LOOPS(sum_f32, float, float, double, SAME, ADD, WIDE, ADD, 0.0)
LOOPS(sum_f64, double, double, double, SAME, ADD, SAME, ADD, 0.0)
LOOPS(sum_f16, uint16_t, float, double, HALF, ADD, WIDE, ADD, 0.0)
LOOPS(sum_b16, uint16_t, float, double, BRAIN, ADD, WIDE, ADD, 0.0)
FINISH(sum_f32, sum_f32, float, (float)acc)
FINISH(sum_f64, sum_f64, double, acc)
FINISH(sum_f16, sum_f16, uint16_t, tn__half_from_double(acc))
FINISH(sum_b16, sum_b16, uint16_t, tn__bfloat16_from_double(acc))

/* Rounds after each addition. */
static void columns_step_f16(void *to, const void *from, int64_t rows, int64_t stride, int64_t n)
{
  double *restrict acc = to;
  const uint16_t *restrict in = from;
  for (int64_t i = 0; i < rows; i++, in += stride)
    for (int64_t j = 0; j < n; j++) {
      float sum = (float)acc[j] + tn__half_to_float(in[j]);
      acc[j] = tn__half_to_float(tn__half_from_float(sum));
    }
}

/* The mean of nothing is 0 / 0, a NaN. */
FINISH(mean_f32, sum_f32, float, (float)(acc / (double)count))
FINISH(mean_f64, sum_f64, double, acc / (double)count)
FINISH(mean_f16, sum_f16, uint16_t, tn__half_from_double(acc / (double)count))
FINISH(mean_b16, sum_b16, uint16_t, tn__bfloat16_from_double(acc / (double)count))

LOOPS(norm_f32, float, float, double, SQUARE, ADD, WIDE, ADD, 0.0)
LOOPS(norm_f64, double, double, double, SQUARE, ADD, SAME, ADD, 0.0)
LOOPS(norm_f16, uint16_t, float, double, square_half, ADD, WIDE, ADD, 0.0)
LOOPS(norm_b16, uint16_t, float, double, square_brain, ADD, WIDE, ADD, 0.0)
FINISH(norm_f32, norm_f32, float, (float)sqrt(acc))
FINISH(norm_f64, norm_f64, double, sqrt(acc))
FINISH(norm_f16, norm_f16, uint16_t, tn__half_from_double(sqrt(acc)))
FINISH(norm_b16, norm_b16, uint16_t, tn__bfloat16_from_double(sqrt(acc)))

LOOPS(prod_f32, float, float, float, SAME, TIMES, SAME, TIMES, 1.0f)
LOOPS(prod_f64, double, double, double, SAME, TIMES, SAME, TIMES, 1.0)
LOOPS(prod_f16, uint16_t, float, float, HALF, TIMES, SAME, TIMES, 1.0f)
LOOPS(prod_b16, uint16_t, float, float, BRAIN, TIMES, SAME, TIMES, 1.0f)
FINISH(prod_f32, prod_f32, float, acc)
FINISH(prod_f64, prod_f64, double, acc)
FINISH(prod_f16, prod_f16, uint16_t, tn__half_from_float(acc))
FINISH(prod_b16, prod_b16, uint16_t, tn__bfloat16_from_float(acc))

/* ---- complex ---- */

static inline c128 wide_c64(c64 a) { return (c128){ a.re, a.im }; }
static inline c64 add_c64(c64 a, c64 b) { return (c64){ a.re + b.re, a.im + b.im }; }
static inline c128 add_c128(c128 a, c128 b) { return (c128){ a.re + b.re, a.im + b.im }; }
static inline c64 mul_c64(c64 a, c64 b) { return (c64){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re }; }
static inline c128 mul_c128(c128 a, c128 b) { return (c128){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re }; }
static inline float norm_of_c64(c64 a) { return a.re * a.re + a.im * a.im; }
static inline double norm_of_c128(c128 a) { return a.re * a.re + a.im * a.im; }
/* The mean of no complex numbers is 0, unlike that of no real ones. */
static inline c128 mean_c128(c128 a, int64_t count)
{
  double n = count == 0 ? 1.0 : (double)count;
  return (c128){ a.re / n, a.im / n };
}
static inline c64 narrow_c128(c128 a) { return (c64){ (float)a.re, (float)a.im }; }

#define ZERO_C ((c128){ 0.0, 0.0 })
LOOPS(sum_c64, c64, c64, c128, SAME, add_c64, wide_c64, add_c128, ZERO_C)
LOOPS(sum_c128, c128, c128, c128, SAME, add_c128, SAME, add_c128, ZERO_C)
LOOPS(prod_c64, c64, c64, c64, SAME, mul_c64, SAME, mul_c64, ((c64){ 1.0f, 0.0f }))
LOOPS(prod_c128, c128, c128, c128, SAME, mul_c128, SAME, mul_c128, ((c128){ 1.0, 0.0 }))
LOOPS(norm_c64, c64, float, double, norm_of_c64, ADD, WIDE, ADD, 0.0)
LOOPS(norm_c128, c128, double, double, norm_of_c128, ADD, SAME, ADD, 0.0)
FINISH(sum_c64, sum_c64, c64, narrow_c128(acc))
FINISH(sum_c128, sum_c128, c128, acc)
FINISH(mean_c64, sum_c64, c64, narrow_c128(mean_c128(acc, count)))
FINISH(mean_c128, sum_c128, c128, mean_c128(acc, count))
FINISH(prod_c64, prod_c64, c64, acc)
FINISH(prod_c128, prod_c128, c128, acc)
FINISH(norm_c64, norm_c64, c64, ((c64){ (float)sqrt(acc), 0.0f }))
FINISH(norm_c128, norm_c128, c128, ((c128){ sqrt(acc), 0.0 }))

/* ---- integers: signed ones add and multiply as unsigned ones do ---- */

#define INTEGER(bits, T)                                              \
  LOOPS(sum_u##bits, T, T, T, SAME, add_##T, SAME, add_##T, 0)        \
  LOOPS(prod_u##bits, T, T, T, SAME, mul_##T, SAME, mul_##T, 1)       \
  LOOPS(norm_u##bits, T, T, T, square_##T, add_##T, SAME, add_##T, 0) \
  FINISH(sum_u##bits, sum_u##bits, T, acc)                            \
  FINISH(prod_u##bits, prod_u##bits, T, acc)                          \
  FINISH(norm_u##bits, norm_u##bits, T, (T)sqrt((double)acc))
INTEGER(8, uint8_t)
INTEGER(16, uint16_t)
INTEGER(32, uint32_t)
INTEGER(64, uint64_t)

/* A sum of squares that wrapped below zero: what x86's conversion makes of a NaN. */
#define SIGNED_NORM(bits, BELOW) \
  FINISH(norm_i##bits, norm_u##bits, int##bits##_t, (int##bits##_t)acc < 0 ? BELOW : (int##bits##_t)sqrt((double)acc))
SIGNED_NORM(8, 0)
SIGNED_NORM(16, 0)
SIGNED_NORM(32, INT32_MIN)
SIGNED_NORM(64, INT64_MIN)

/* Means are gathered in 64 bits and cut towards zero; the mean of nothing is 0. */
#define DIVISOR(count) ((count) == 0 ? 1 : (count))
#define WIDE_INT(x) ((int64_t)(x))
#define WRAP64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define MEAN(name, T)                                                        \
  LOOPS(mean_##name, T, int64_t, int64_t, WIDE_INT, WRAP64, SAME, WRAP64, 0) \
  FINISH(mean_##name, mean_##name, T, (T)(acc / DIVISOR(count)))
MEAN(i8, int8_t)
MEAN(u8, uint8_t)
MEAN(i16, int16_t)
MEAN(u16, uint16_t)
MEAN(i32, int32_t)
MEAN(u32, uint32_t)
FINISH(mean_i64, sum_u64, int64_t, (int64_t)acc / DIVISOR(count))
FINISH(mean_u64, sum_u64, uint64_t, acc / (uint64_t)DIVISOR(count))

/* ---- extremes: a NaN wins ---- */

#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))
/* Two plain selections, which become vector code; one condition of two parts does not. */
#define EXTREME_NAN(T)               \
  static inline T more_##T(T a, T b) \
  {                                  \
    T m = a < b ? b : a;             \
    return b != b ? b : m;           \
  }                                  \
  static inline T less_##T(T a, T b) \
  {                                  \
    T m = a > b ? b : a;             \
    return b != b ? b : m;           \
  }
EXTREME_NAN(float)
EXTREME_NAN(double)
#define EXTREME(name, T, E, LOAD, MAX, MIN, LOWEST, HIGHEST, STORE) \
  LOOPS(max_##name, T, E, E, LOAD, MAX, SAME, MAX, LOWEST)          \
  LOOPS(min_##name, T, E, E, LOAD, MIN, SAME, MIN, HIGHEST)         \
  FINISH(max_##name, max_##name, T, STORE(acc))                     \
  FINISH(min_##name, min_##name, T, STORE(acc))
EXTREME(f32, float, float, SAME, more_float, less_float, -INFINITY, INFINITY, SAME)
EXTREME(f64, double, double, SAME, more_double, less_double, -(double)INFINITY, (double)INFINITY, SAME)
EXTREME(f16, uint16_t, float, HALF, more_float, less_float, -INFINITY, INFINITY, tn__half_from_float)
EXTREME(b16, uint16_t, float, BRAIN, more_float, less_float, -INFINITY, INFINITY, tn__bfloat16_from_float)
EXTREME(i8, int8_t, int8_t, SAME, MORE, LESS, INT8_MIN, INT8_MAX, SAME)
EXTREME(i16, int16_t, int16_t, SAME, MORE, LESS, INT16_MIN, INT16_MAX, SAME)
EXTREME(i32, int32_t, int32_t, SAME, MORE, LESS, INT32_MIN, INT32_MAX, SAME)
EXTREME(i64, int64_t, int64_t, SAME, MORE, LESS, INT64_MIN, INT64_MAX, SAME)
EXTREME(u8, uint8_t, uint8_t, SAME, MORE, LESS, 0, UINT8_MAX, SAME)
EXTREME(u16, uint16_t, uint16_t, SAME, MORE, LESS, 0, UINT16_MAX, SAME)
EXTREME(u32, uint32_t, uint32_t, SAME, MORE, LESS, 0, UINT32_MAX, SAME)
EXTREME(u64, uint64_t, uint64_t, SAME, MORE, LESS, 0, UINT64_MAX, SAME)

/* ---- truth ---- */

#define TRUTH(x) ((uint8_t)((x) != 0))
#define AND(a, b) ((uint8_t)((a) & (b)))
#define OR(a, b) ((uint8_t)((a) | (b)))
LOOPS(all, uint8_t, uint8_t, uint8_t, TRUTH, AND, SAME, AND, 1)
LOOPS(any, uint8_t, uint8_t, uint8_t, TRUTH, OR, SAME, OR, 0)
FINISH(all, all, uint8_t, acc)
FINISH(any, any, uint8_t, acc)

/* ---- the table ---- */

#define ENTRY(op, dtype, loops, finish)                                                                             \
  { TN__REDUCE_##op, TN_##dtype, sizeof(acc_##loops), init_##loops, columns_##loops, rows_##loops, combine_##loops, \
    finish_##finish }
/* Integers share the loops of their unsigned kind; `s` gives the finish its sign where it matters. */
#define INTEGERS(op, name)                                                             \
  ENTRY(op, INT8, name##_u8, name##_u8), ENTRY(op, UINT8, name##_u8, name##_u8),       \
  ENTRY(op, INT16, name##_u16, name##_u16), ENTRY(op, UINT16, name##_u16, name##_u16), \
  ENTRY(op, INT32, name##_u32, name##_u32), ENTRY(op, UINT32, name##_u32, name##_u32), \
  ENTRY(op, INT64, name##_u64, name##_u64), ENTRY(op, UINT64, name##_u64, name##_u64)
#define FLOATS(op, name, finish)                                                           \
  ENTRY(op, FLOAT, name##_f32, finish##_f32), ENTRY(op, DOUBLE, name##_f64, finish##_f64), \
  ENTRY(op, HALF, name##_f16, finish##_f16), ENTRY(op, BFLOAT16, name##_b16, finish##_b16)
#define COMPLEX(op, name, finish) \
  ENTRY(op, COMPLEX64, name##_c64, finish##_c64), ENTRY(op, COMPLEX128, name##_c128, finish##_c128)
#define ORDERED(op, name)                                                              \
  ENTRY(op, INT8, name##_i8, name##_i8), ENTRY(op, UINT8, name##_u8, name##_u8),       \
  ENTRY(op, INT16, name##_i16, name##_i16), ENTRY(op, UINT16, name##_u16, name##_u16), \
  ENTRY(op, INT32, name##_i32, name##_i32), ENTRY(op, UINT32, name##_u32, name##_u32), \
  ENTRY(op, INT64, name##_i64, name##_i64), ENTRY(op, UINT64, name##_u64, name##_u64)

static const tn__reduce_loops table[] = {
  FLOATS(SUM, sum, sum), COMPLEX(SUM, sum, sum), INTEGERS(SUM, sum),
  FLOATS(PROD, prod, prod), COMPLEX(PROD, prod, prod), INTEGERS(PROD, prod),
  FLOATS(MEAN, sum, mean), COMPLEX(MEAN, sum, mean),
  ENTRY(MEAN, INT8, mean_i8, mean_i8), ENTRY(MEAN, UINT8, mean_u8, mean_u8),
  ENTRY(MEAN, INT16, mean_i16, mean_i16), ENTRY(MEAN, UINT16, mean_u16, mean_u16),
  ENTRY(MEAN, INT32, mean_i32, mean_i32), ENTRY(MEAN, UINT32, mean_u32, mean_u32),
  ENTRY(MEAN, INT64, sum_u64, mean_i64), ENTRY(MEAN, UINT64, sum_u64, mean_u64),
  FLOATS(NORM, norm, norm), COMPLEX(NORM, norm, norm),
  ENTRY(NORM, INT8, norm_u8, norm_i8), ENTRY(NORM, UINT8, norm_u8, norm_u8),
  ENTRY(NORM, INT16, norm_u16, norm_i16), ENTRY(NORM, UINT16, norm_u16, norm_u16),
  ENTRY(NORM, INT32, norm_u32, norm_i32), ENTRY(NORM, UINT32, norm_u32, norm_u32),
  ENTRY(NORM, INT64, norm_u64, norm_i64), ENTRY(NORM, UINT64, norm_u64, norm_u64),
  FLOATS(MAX, max, max), ORDERED(MAX, max),
  FLOATS(MIN, min, min), ORDERED(MIN, min),
  ENTRY(ALL, BOOL, all, all), ENTRY(ANY, BOOL, any, any),
};

const tn__reduce_loops tn__reduce_short_half_sum = {
  TN__REDUCE_SUM, TN_HALF, sizeof(acc_sum_f16), init_sum_f16, columns_step_f16, rows_sum_f16, combine_sum_f16,
  finish_sum_f16
};

const tn__reduce_loops *tn__reduce_loops_find(tn__reduce_op op, tn_dtype dtype)
{
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].op == op && table[i].dtype == dtype) return &table[i];
  return NULL;
}
