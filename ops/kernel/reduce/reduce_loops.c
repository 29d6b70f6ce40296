/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/reduce/reduce_loops.h>
#include <ops/kernel/elements/vectors.h>

typedef struct c64 { float re, im; } c64;
typedef struct c128 { double re, im; } c128;

/* Number of lanes in which long rows are reduced: one cache line. */
#define LANES(T) ((int64_t)(64 / sizeof(T)))
#if defined(__GNUC__) && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1") /* keeps the loop over vectors; GCC must not unroll it into elements */
#else
#define ROLLED
#endif

/* The loops of one operation on one type.
 * T, E, ACC     types of an element in memory, of an element as computed, and of an accumulator
 * LOAD(x)       converts T to E and applies the operation's mapping of single elements
 * MERGE(a, b)   combines two E
 * WIDEN(e)      converts E to ACC
 * TAKE(a, b)    combines two ACC
 * INIT          initial ACC, the result of reducing nothing
 * Eight elements are merged before the accumulator is updated. This saves loads and stores of the accumulator, and most
 * of the conversions if ACC is wider than E. */
#define EIGHT_FOR(E, LOAD, MERGE, WIDEN, TAKE, p, stride, count)                                     \
  for (int64_t j = 0; j < (count); j++) {                                                            \
    E a = MERGE(LOAD((p)[j]), LOAD((p)[(stride) + j]));                                              \
    E b = MERGE(LOAD((p)[2 * (stride) + j]), LOAD((p)[3 * (stride) + j]));                           \
    E c = MERGE(LOAD((p)[4 * (stride) + j]), LOAD((p)[5 * (stride) + j]));                           \
    E d = MERGE(LOAD((p)[6 * (stride) + j]), LOAD((p)[7 * (stride) + j]));                           \
    E ab = MERGE(a, b), cd = MERGE(c, d), all = MERGE(ab, cd);                                       \
    acc[j] = TAKE(acc[j], WIDEN(all));                                                               \
  }
#define ONE_FOR(LOAD, WIDEN, TAKE, count) \
  for (int64_t j = 0; j < (count); j++) acc[j] = TAKE(acc[j], WIDEN(LOAD(in[j])));

/* The part that every operation has: baseline loops over columns. */
#define COLUMNS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                            \
  typedef ACC acc_##name;                                                                                   \
  static void init_##name(void *to, int64_t n)                                                              \
  {                                                                                                         \
    ACC *restrict acc = to;                                                                                 \
    for (int64_t j = 0; j < n; j++) acc[j] = INIT;                                                          \
  }                                                                                                         \
  TN__APART static void columns8_##name(ACC *restrict acc, const T *restrict in, int64_t stride, int64_t n) \
  {                                                                                                         \
    EIGHT_FOR(E, LOAD, MERGE, WIDEN, TAKE, in, stride, n)                                                   \
  }                                                                                                         \
  TN__APART static void columns1_##name(ACC *restrict acc, const T *restrict in, int64_t n)                 \
  {                                                                                                         \
    ONE_FOR(LOAD, WIDEN, TAKE, n)                                                                           \
  }                                                                                                         \
  TN__APART static void combine_##name(void *to, const void *from, int64_t n)                               \
  {                                                                                                         \
    ACC *restrict acc = to;                                                                                 \
    const ACC *restrict other = from;                                                                       \
    for (int64_t j = 0; j < n; j++) acc[j] = TAKE(acc[j], other[j]);                                        \
  }                                                                                                         \
  WALK_COLUMNS(name, T, columns8_##name, columns1_##name, columns_##name)
#define WALK_COLUMNS(name, T, eight, one, columns)                                               \
  TN__APART static void columns(void *to, const void *from, int64_t rows, int64_t stride, int64_t n) \
  {                                                                                              \
    const T *in = from;                                                                          \
    for (; rows >= 8; rows -= 8, in += 8 * stride) eight(to, in, stride, n);                     \
    for (; rows > 0; rows--, in += stride) one(to, in, n);                                       \
  }

/* For types that are rarely reduced: rows are reduced with the loops over columns, one element wide, or WALK_LANES
 * wide for long rows. */
#define WALK_LANES 32
typedef struct walk {
  void (*init)(void *acc, int64_t n);
  void (*columns)(void *acc, const void *in, int64_t rows, int64_t stride, int64_t n);
  void (*combine)(void *acc, const void *other, int64_t n);
  size_t element, acc_size;
} walk;

static void walk_rows(const walk *w, char *acc, const char *in, int64_t n, int64_t stride, int64_t outs)
{
  _Alignas(64) char lane[WALK_LANES * TN__REDUCE_ACC_MAX];
  int64_t steps = n >= 4 * WALK_LANES ? n / WALK_LANES : 0;
  for (int64_t o = 0; o < outs; o++, acc += w->acc_size) {
    const char *row = in + (size_t)(o * stride) * w->element;
    if (steps > 0) {
      w->init(lane, WALK_LANES);
      w->columns(lane, row, steps, WALK_LANES, WALK_LANES);
      for (int64_t k = WALK_LANES / 2; k > 0; k /= 2) w->combine(lane, lane + (size_t)k * w->acc_size, k);
      w->combine(acc, lane, 1);
    }
    w->columns(acc, row + (size_t)(steps * WALK_LANES) * w->element, n - steps * WALK_LANES, 1, 1);
  }
}

#define LOOPS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                               \
  COLUMNS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                   \
  static void rows_##name(void *to, const void *from, int64_t n, int64_t stride, int64_t outs) \
  {                                                                                          \
    static const walk w = { init_##name, columns_##name, combine_##name, sizeof(T), sizeof(ACC) }; \
    walk_rows(&w, to, from, n, stride, outs);                                                \
  }

/* Reduces `steps` times LANES elements of a row. */
#define LONG_ROW(long_row, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                                  \
  TN__APART static ACC long_row(const T *restrict in, int64_t steps)                                                   \
  {                                                                                                                    \
    _Alignas(64) ACC acc[LANES(T)];                                                                                    \
    for (int64_t l = 0; l < LANES(T); l++) acc[l] = INIT;                                                              \
    ROLLED                                                                                                             \
    for (; steps >= 8; steps -= 8, in += 8 * LANES(T)) {                                                               \
      ROLLED                                                                                                           \
      EIGHT_FOR(E, LOAD, MERGE, WIDEN, TAKE, in, LANES(T), LANES(T))                                                   \
    }                                                                                                                  \
    ROLLED                                                                                                             \
    for (; steps > 0; steps--, in += LANES(T)) {                                                                       \
      ROLLED                                                                                                           \
      ONE_FOR(LOAD, WIDEN, TAKE, LANES(T))                                                                             \
    }                                                                                                                  \
    for (int64_t half = LANES(T) / 2; half >= 4; half /= 2)                                                            \
      for (int64_t l = 0; l < half; l++) acc[l] = TAKE(acc[l], acc[l + half]);                                         \
    ACC a = TAKE(acc[0], acc[2]), b = TAKE(acc[1], acc[3]);                                                            \
    return TAKE(a, b);                                                                                                 \
  }

/* The other types have separate loops over rows. All their loops are also compiled for wide vectors. */
#define WIDE_COLUMNS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT, end, attribute)                                  \
  attribute TN__APART static void columns8_##name##_##end(ACC *restrict acc, const T *restrict in, int64_t stride,     \
                                                          int64_t n)                                                   \
  {                                                                                                                    \
    const int64_t whole = n & -LANES(T);                                                                               \
    EIGHT_FOR(E, LOAD, MERGE, WIDEN, TAKE, in, stride, whole)                                                          \
    if (whole < n) columns8_##name(acc + whole, in + whole, stride, n - whole);                                        \
  }                                                                                                                    \
  attribute TN__APART static void columns1_##name##_##end(ACC *restrict acc, const T *restrict in, int64_t n)          \
  {                                                                                                                    \
    const int64_t whole = n & -LANES(T);                                                                               \
    ONE_FOR(LOAD, WIDEN, TAKE, whole)                                                                                  \
    if (whole < n) columns1_##name(acc + whole, in + whole, n - whole);                                                \
  }                                                                                                                    \
  WALK_COLUMNS(name, T, columns8_##name##_##end, columns1_##name##_##end, columns_##name##_##end)
#define WIDE_ROWS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT, end, attribute)                                     \
  attribute LONG_ROW(long_row_##name##_##end, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                               \
  static void rows_##name##_##end(void *to, const void *from, int64_t n, int64_t stride, int64_t outs)                 \
  {                                                                                                                    \
    rows_of_##name(long_row_##name##_##end, to, from, n, stride, outs);                                                \
  }
#define WIDE_LOOPS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                                    \
  COLUMNS(name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                                             \
  LONG_ROW(long_row_##name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                                 \
  TN__APART static void rows_of_##name(ACC (*long_row)(const T *, int64_t), ACC *restrict acc, const T *restrict in,   \
                                       int64_t n, int64_t stride, int64_t outs)                                        \
  {                                                                                                                    \
    const int64_t steps = n / LANES(T);                                                                                \
    for (int64_t o = 0; o < outs; o++, in += stride) {                                                                 \
      ACC total = acc[o];                                                                                              \
      int64_t i = steps * LANES(T);                                                                                    \
      if (steps > 0) {                                                                                                 \
        ACC all_lanes = long_row(in, steps);                                                                           \
        total = TAKE(total, all_lanes);                                                                                \
      }                                                                                                                \
      for (; i + 8 <= n; i += 8) {                                                                                     \
        E a = MERGE(LOAD(in[i]), LOAD(in[i + 1])), b = MERGE(LOAD(in[i + 2]), LOAD(in[i + 3]));                        \
        E c = MERGE(LOAD(in[i + 4]), LOAD(in[i + 5])), d = MERGE(LOAD(in[i + 6]), LOAD(in[i + 7]));                    \
        E ab = MERGE(a, b), cd = MERGE(c, d), all = MERGE(ab, cd);                                                     \
        total = TAKE(total, WIDEN(all));                                                                               \
      }                                                                                                                \
      for (; i < n; i++) total = TAKE(total, WIDEN(LOAD(in[i])));                                                      \
      acc[o] = total;                                                                                                  \
    }                                                                                                                  \
  }                                                                                                                    \
  static void rows_##name(void *to, const void *from, int64_t n, int64_t stride, int64_t outs)                         \
  {                                                                                                                    \
    rows_of_##name(long_row_##name, to, from, n, stride, outs);                                                        \
  }                                                                                                                    \
  TN__AVX2_LOOPS(WIDE_COLUMNS, name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)                                        \
  TN__WIDE_LOOPS(WIDE_ROWS, name, T, E, ACC, LOAD, MERGE, WIDEN, TAKE, INIT)

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

WIDE_LOOPS(sum_f32, float, float, double, SAME, ADD, WIDE, ADD, 0.0)
WIDE_LOOPS(sum_f64, double, double, double, SAME, ADD, SAME, ADD, 0.0)
FINISH(sum_f32, sum_f32, float, (float)acc)
FINISH(sum_f64, sum_f64, double, acc)
FINISH(sum_f16, sum_f32, uint16_t, tn__half_from_double(acc))
FINISH(sum_b16, sum_f32, uint16_t, tn__bfloat16_from_double(acc))

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

/* The mean of no elements is 0 / 0, a NaN. */
FINISH(mean_f32, sum_f32, float, (float)(acc / (double)count))
FINISH(mean_f64, sum_f64, double, acc / (double)count)
FINISH(mean_f16, sum_f32, uint16_t, tn__half_from_double(acc / (double)count))
FINISH(mean_b16, sum_f32, uint16_t, tn__bfloat16_from_double(acc / (double)count))

WIDE_LOOPS(norm_f32, float, float, double, SQUARE, ADD, WIDE, ADD, 0.0)
LOOPS(norm_f64, double, double, double, SQUARE, ADD, SAME, ADD, 0.0)
FINISH(norm_f32, norm_f32, float, (float)sqrt(acc))
FINISH(norm_f64, norm_f64, double, sqrt(acc))
FINISH(norm_f16, norm_f32, uint16_t, tn__half_from_double(sqrt(acc)))
FINISH(norm_b16, norm_f32, uint16_t, tn__bfloat16_from_double(sqrt(acc)))

WIDE_LOOPS(prod_f32, float, float, float, SAME, TIMES, SAME, TIMES, 1.0f)
WIDE_LOOPS(prod_f64, double, double, double, SAME, TIMES, SAME, TIMES, 1.0)
FINISH(prod_f32, prod_f32, float, acc)
FINISH(prod_f64, prod_f64, double, acc)
FINISH(prod_f16, prod_f32, uint16_t, tn__half_from_float(acc))
FINISH(prod_b16, prod_f32, uint16_t, tn__bfloat16_from_float(acc))

/* ---- complex ---- */

static inline c128 wide_c64(c64 a) { return (c128){ a.re, a.im }; }
static inline c64 add_c64(c64 a, c64 b) { return (c64){ a.re + b.re, a.im + b.im }; }
static inline c128 add_c128(c128 a, c128 b) { return (c128){ a.re + b.re, a.im + b.im }; }
static inline c64 mul_c64(c64 a, c64 b) { return (c64){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re }; }
static inline c128 mul_c128(c128 a, c128 b) { return (c128){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re }; }
static inline float norm_of_c64(c64 a) { return a.re * a.re + a.im * a.im; }
static inline double norm_of_c128(c128 a) { return a.re * a.re + a.im * a.im; }
/* The mean of no complex numbers is 0, whereas that of no real numbers is NaN. */
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

/* ---- integers: signed ones are added and multiplied as unsigned ---- */

#define INTEGER(bits, T, SUM_LOOPS)                                   \
  SUM_LOOPS(sum_u##bits, T, T, T, SAME, add_##T, SAME, add_##T, 0)    \
  LOOPS(prod_u##bits, T, T, T, SAME, mul_##T, SAME, mul_##T, 1)       \
  LOOPS(norm_u##bits, T, T, T, square_##T, add_##T, SAME, add_##T, 0) \
  FINISH(sum_u##bits, sum_u##bits, T, acc)                            \
  FINISH(prod_u##bits, prod_u##bits, T, acc)                          \
  FINISH(norm_u##bits, norm_u##bits, T, (T)sqrt((double)acc))
INTEGER(8, uint8_t, LOOPS)
INTEGER(16, uint16_t, LOOPS)
INTEGER(32, uint32_t, WIDE_LOOPS)
INTEGER(64, uint64_t, WIDE_LOOPS)

/* If the sum of squares wrapped below zero, the result is what x86 gives when it converts a NaN. */
#define SIGNED_NORM(bits, BELOW) \
  FINISH(norm_i##bits, norm_u##bits, int##bits##_t, (int##bits##_t)acc < 0 ? BELOW : (int##bits##_t)sqrt((double)acc))
SIGNED_NORM(8, 0)
SIGNED_NORM(16, 0)
SIGNED_NORM(32, INT32_MIN)
SIGNED_NORM(64, INT64_MIN)

/* Means are accumulated in 64 bits and truncated towards zero; the mean of no elements is 0. */
#define DIVISOR(count) ((count) == 0 ? 1 : (count))
#define WIDE_INT(x) ((int64_t)(x))
#define WRAP64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
/* The sum of eight short integers fits 32 bits. */
#define MEAN(MEAN_LOOPS, name, T, E)                                         \
  MEAN_LOOPS(mean_##name, T, E, int64_t, (E), ADD, WIDE_INT, WRAP64, 0)      \
  FINISH(mean_##name, mean_##name, T, (T)(acc / DIVISOR(count)))
MEAN(LOOPS, i8, int8_t, int32_t)
MEAN(WIDE_LOOPS, u8, uint8_t, int32_t)
MEAN(LOOPS, i16, int16_t, int32_t)
MEAN(LOOPS, u16, uint16_t, int32_t)
MEAN(LOOPS, i32, int32_t, int64_t)
MEAN(LOOPS, u32, uint32_t, int64_t)
FINISH(mean_i64, sum_u64, int64_t, (int64_t)acc / DIVISOR(count))
FINISH(mean_u64, sum_u64, uint64_t, acc / (uint64_t)DIVISOR(count))

/* ---- maximum and minimum: NaN if any element is NaN ---- */

#define MORE(a, b) ((a) > (b) ? (a) : (b))
#define LESS(a, b) ((a) < (b) ? (a) : (b))
/* Two simple selections, which vectorise; a single condition with two parts does not. */
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
#define EXTREME(EXTREME_LOOPS, name, T, MAX, MIN, LOWEST, HIGHEST)   \
  EXTREME_LOOPS(max_##name, T, T, T, SAME, MAX, SAME, MAX, LOWEST)   \
  EXTREME_LOOPS(min_##name, T, T, T, SAME, MIN, SAME, MIN, HIGHEST)  \
  FINISH(max_##name, max_##name, T, acc)                             \
  FINISH(min_##name, min_##name, T, acc)
EXTREME(WIDE_LOOPS, f32, float, more_float, less_float, -INFINITY, INFINITY)
EXTREME(WIDE_LOOPS, f64, double, more_double, less_double, -(double)INFINITY, (double)INFINITY)
EXTREME(LOOPS, i8, int8_t, MORE, LESS, INT8_MIN, INT8_MAX)
EXTREME(LOOPS, i16, int16_t, MORE, LESS, INT16_MIN, INT16_MAX)
EXTREME(WIDE_LOOPS, i32, int32_t, MORE, LESS, INT32_MIN, INT32_MAX)
EXTREME(WIDE_LOOPS, i64, int64_t, MORE, LESS, INT64_MIN, INT64_MAX)
EXTREME(WIDE_LOOPS, u8, uint8_t, MORE, LESS, 0, UINT8_MAX)
EXTREME(LOOPS, u16, uint16_t, MORE, LESS, 0, UINT16_MAX)
EXTREME(LOOPS, u32, uint32_t, MORE, LESS, 0, UINT32_MAX)
EXTREME(LOOPS, u64, uint64_t, MORE, LESS, 0, UINT64_MAX)
FINISH(max_f16, max_f32, uint16_t, tn__half_from_float(acc))
FINISH(min_f16, min_f32, uint16_t, tn__half_from_float(acc))
FINISH(max_b16, max_f32, uint16_t, tn__bfloat16_from_float(acc))
FINISH(min_b16, min_f32, uint16_t, tn__bfloat16_from_float(acc))

/* ---- all and any ---- */

#define TRUTH(x) ((uint8_t)((x) != 0))
#define AND(a, b) ((uint8_t)((a) & (b)))
#define OR(a, b) ((uint8_t)((a) | (b)))
WIDE_LOOPS(all, uint8_t, uint8_t, uint8_t, TRUTH, AND, SAME, AND, 1)
WIDE_LOOPS(any, uint8_t, uint8_t, uint8_t, TRUTH, OR, SAME, OR, 0)
FINISH(all, all, uint8_t, acc)
FINISH(any, any, uint8_t, acc)

/* ---- half and bfloat16: a block of floats at a time, with the loops of float ---- */

typedef void (*to_floats)(const uint16_t *from, float *to, int64_t n);
typedef void (*columns_fn)(void *acc, const void *in, int64_t rows, int64_t stride, int64_t n);
typedef void (*rows_fn)(void *acc, const void *in, int64_t n, int64_t stride, int64_t outs);

#define BLOCK 2048 /* floats per block: small enough to stay in the cache */
#define MOST_COLUMNS (BLOCK / 8)

static void short_columns(to_floats load, columns_fn columns, size_t acc_size, char *acc, const uint16_t *in,
                          int64_t rows, int64_t stride, int64_t n)
{
  float block[BLOCK];
  for (int64_t j = 0, m; j < n; j += m) {
    m = n - j < MOST_COLUMNS ? n - j : MOST_COLUMNS;
    for (int64_t i = 0, k; i < rows; i += k) {
      k = BLOCK / m / 8 * 8;
      if (k > rows - i) k = rows - i;
      const uint16_t *from = in + i * stride + j;
      if (m == stride) load(from, block, k * m);
      else
        for (int64_t r = 0; r < k; r++) load(from + r * stride, block + r * m, m);
      columns(acc + (size_t)j * acc_size, block, k, m, m);
    }
  }
}

static void short_rows(to_floats load, rows_fn rows, size_t acc_size, char *acc, const uint16_t *in, int64_t n,
                       int64_t stride, int64_t outs)
{
  float block[BLOCK];
  for (int64_t o = 0; o < outs; o++)
    for (int64_t i = 0, k; i < n; i += k) {
      k = n - i < BLOCK ? n - i : BLOCK;
      load(in + o * stride + i, block, k);
      rows(acc + (size_t)o * acc_size, block, k, k, 1);
    }
}

#define SHORT(op, name, load)                                                                          \
  static void columns_##op##_##name(void *acc, const void *in, int64_t rows, int64_t stride, int64_t n) \
  {                                                                                                    \
    static const columns_fn fn[] = TN__AVX2_FNS(columns_##op##_f32);                                        \
    short_columns(load, fn[tn__vectors()], sizeof(acc_##op##_f32), acc, in, rows, stride, n);          \
  }                                                                                                    \
  static void rows_##op##_##name(void *acc, const void *in, int64_t n, int64_t stride, int64_t outs)   \
  {                                                                                                    \
    static const rows_fn fn[] = TN__FNS(rows_##op##_f32);                                              \
    short_rows(load, fn[tn__vectors()], sizeof(acc_##op##_f32), acc, in, n, stride, outs);             \
  }
#define SHORTS(op) SHORT(op, f16, tn__half_to_floats) SHORT(op, b16, tn__bfloat16_to_floats)
SHORTS(sum)
SHORTS(norm)
SHORTS(prod)
SHORTS(max)
SHORTS(min)

/* ---- the table ---- */

#define ENTRY_OF(op, dtype, loops, columns, rows, finish)                                               \
  { TN__REDUCE_##op, TN_##dtype, sizeof(acc_##loops), init_##loops, columns, rows, combine_##loops, \
    finish_##finish }
#define ENTRY(op, dtype, loops, finish) ENTRY_OF(op, dtype, loops, columns_##loops, rows_##loops, finish)
/* Signed integers share the loops of the unsigned type of the same size. */
#define INTEGERS(op, name)                                                             \
  ENTRY(op, INT8, name##_u8, name##_u8), ENTRY(op, UINT8, name##_u8, name##_u8),       \
  ENTRY(op, INT16, name##_u16, name##_u16), ENTRY(op, UINT16, name##_u16, name##_u16), \
  ENTRY(op, INT32, name##_u32, name##_u32), ENTRY(op, UINT32, name##_u32, name##_u32), \
  ENTRY(op, INT64, name##_u64, name##_u64), ENTRY(op, UINT64, name##_u64, name##_u64)
#define FLOATS(op, name, finish)                                                           \
  ENTRY(op, FLOAT, name##_f32, finish##_f32), ENTRY(op, DOUBLE, name##_f64, finish##_f64), \
  ENTRY_OF(op, HALF, name##_f32, columns_##name##_f16, rows_##name##_f16, finish##_f16),   \
  ENTRY_OF(op, BFLOAT16, name##_f32, columns_##name##_b16, rows_##name##_b16, finish##_b16)
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
  TN__REDUCE_SUM, TN_HALF, sizeof(acc_sum_f32), init_sum_f32, columns_step_f16, rows_sum_f16, combine_sum_f32,
  finish_sum_f16
};

/* Loops for wide vectors, which are looked up first. */
#if TN__VECTORS > 1
#define WIDE_TABLE(X)                                                                                               \
  X(SUM, FLOAT, sum_f32, sum_f32) X(SUM, DOUBLE, sum_f64, sum_f64) X(SUM, INT32, sum_u32, sum_u32)                  \
  X(SUM, UINT32, sum_u32, sum_u32) X(SUM, INT64, sum_u64, sum_u64) X(SUM, UINT64, sum_u64, sum_u64)                 \
  X(MEAN, FLOAT, sum_f32, mean_f32) X(MEAN, DOUBLE, sum_f64, mean_f64) X(MEAN, UINT8, mean_u8, mean_u8)             \
  X(MEAN, INT64, sum_u64, mean_i64) X(MEAN, UINT64, sum_u64, mean_u64) X(NORM, FLOAT, norm_f32, norm_f32)           \
  X(PROD, FLOAT, prod_f32, prod_f32) X(PROD, DOUBLE, prod_f64, prod_f64)                                            \
  X(MAX, FLOAT, max_f32, max_f32) X(MAX, DOUBLE, max_f64, max_f64) X(MAX, INT32, max_i32, max_i32)                  \
  X(MAX, INT64, max_i64, max_i64) X(MAX, UINT8, max_u8, max_u8)                                                     \
  X(MIN, FLOAT, min_f32, min_f32) X(MIN, DOUBLE, min_f64, min_f64) X(MIN, INT32, min_i32, min_i32)                  \
  X(MIN, INT64, min_i64, min_i64) X(MIN, UINT8, min_u8, min_u8)                                                     \
  X(ALL, BOOL, all, all) X(ANY, BOOL, any, any)
#define ENTRY_AVX2(op, dtype, loops, finish) \
  ENTRY_OF(op, dtype, loops, columns_##loops##_avx2, rows_##loops##_avx2, finish),
#define ENTRY_AVX512(op, dtype, loops, finish) \
  ENTRY_OF(op, dtype, loops, columns_##loops##_avx2, rows_##loops##_avx512, finish),
static const tn__reduce_loops table_avx2[] = { WIDE_TABLE(ENTRY_AVX2) };
static const tn__reduce_loops table_avx512[] = { WIDE_TABLE(ENTRY_AVX512) };

static const tn__reduce_loops *find_wide(tn__reduce_op op, tn_dtype dtype)
{
  const tn__reduce_loops *wide[] = { NULL, table_avx2, table_avx512 }, *l = wide[tn__vectors()];
  for (size_t i = 0; l != NULL && i < sizeof table_avx2 / sizeof table_avx2[0]; i++)
    if (l[i].op == op && l[i].dtype == dtype) return &l[i];
  return NULL;
}
#else
static const tn__reduce_loops *find_wide(tn__reduce_op op, tn_dtype dtype)
{
  (void)op, (void)dtype;
  return NULL;
}
#endif

const tn__reduce_loops *tn__reduce_loops_find(tn__reduce_op op, tn_dtype dtype)
{
  const tn__reduce_loops *wide = find_wide(op, dtype);
  if (wide != NULL) return wide;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].op == op && table[i].dtype == dtype) return &table[i];
  return NULL;
}
