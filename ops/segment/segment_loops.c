/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of segment reductions. */
#include <ops/kernel/elements/elementwise.h>
#include <ops/segment/segment_loops.h>

/* A comparison with NaN is false, so it never replaces what is there, as in TensorFlow. */
#define STEP_sum(a, x) ((a) + (x))
#define STEP_prod(a, x) TN__MUL(a, x)
#define STEP_max(a, x) ((a) < (x) ? (x) : (a))
#define STEP_min(a, x) ((x) < (a) ? (x) : (a))

#define START_sum(d) 0
#define START_prod(d) 1
#define START_max(d) LOWEST_##d
#define START_min(d) HIGHEST_##d
#define LOWEST_f32 (-INFINITY)
#define LOWEST_f64 (-INFINITY)
#define LOWEST_f16 (-INFINITY)
#define LOWEST_bf16 (-INFINITY)
#define LOWEST_i8 INT8_MIN
#define LOWEST_i16 INT16_MIN
#define LOWEST_i32 INT32_MIN
#define LOWEST_i64 INT64_MIN
#define LOWEST_u8 0
#define LOWEST_u16 0
#define LOWEST_u32 0
#define LOWEST_u64 0
#define HIGHEST_f32 INFINITY
#define HIGHEST_f64 INFINITY
#define HIGHEST_f16 INFINITY
#define HIGHEST_bf16 INFINITY
#define HIGHEST_i8 INT8_MAX
#define HIGHEST_i16 INT16_MAX
#define HIGHEST_i32 INT32_MAX
#define HIGHEST_i64 INT64_MAX
#define HIGHEST_u8 UINT8_MAX
#define HIGHEST_u16 UINT16_MAX
#define HIGHEST_u32 UINT32_MAX
#define HIGHEST_u64 UINT64_MAX

/* ---- accumulation ---- */

#define ADD_LOOP(op, d, name, attribute)                                                                       \
  attribute static void name(void *acc_, const void *data, const int64_t *places, int64_t rows, int64_t stride, \
                             int64_t n)                                                                        \
  {                                                                                                            \
    tn__C_##d *restrict acc = acc_;                                                                            \
    const tn__S_##d *x = data;                                                                                 \
    for (int64_t r = 0; r < rows; r++) {                                                                       \
      const tn__S_##d *row = x + (places != NULL ? places[r] : r) * stride;                                    \
      for (int64_t j = 0; j < n; j++) acc[j] = (tn__C_##d)(STEP_##op(acc[j], TN__L_##d(row[j])));              \
    }                                                                                                          \
  }
#define START_LOOP(op, d)                                                         \
  static void op##_start_##d(void *acc_, int64_t n)                               \
  {                                                                               \
    tn__C_##d *acc = acc_;                                                        \
    for (int64_t j = 0; j < n; j++) acc[j] = (tn__C_##d)START_##op(d);            \
  }
#define STORE_LOOP(op, d)                                                                \
  static void op##_store_##d(void *out_, const void *acc_, int64_t n, int64_t count)     \
  {                                                                                      \
    (void)count;                                                                         \
    tn__S_##d *out = out_;                                                               \
    const tn__C_##d *acc = acc_;                                                         \
    for (int64_t j = 0; j < n; j++) out[j] = TN__P_##d(acc[j]);                          \
  }
#define LOOPS(op, d, unused)                  \
  START_LOOP(op, d)                           \
  ADD_LOOP(op, d, op##_add_##d, TN__APART)    \
  STORE_LOOP(op, d)

#define NUMBERS(X, op) TN__SAME_FLOATS_COMPLEXES(X, op) TN__WRAP_SIGNED(X, op)
#define ORDERED(X, op) TN__SAME_FLOATS(X, op) TN__SAME_SIGNED(X, op) TN__SAME_UNSIGNED(X, op)
NUMBERS(LOOPS, sum)
NUMBERS(LOOPS, prod)
ORDERED(LOOPS, max)
ORDERED(LOOPS, min)

/* Sums of embeddings take most of the time of a model that has them. */
#define WIDE_ADD(d, end, attribute) ADD_LOOP(sum, d, sum_add_##d##_##end, attribute)
TN__AVX2_LOOPS(WIDE_ADD, f32)
TN__AVX2_LOOPS(WIDE_ADD, f64)

/* ---- quotients ---- */

#define QUOTIENT_LOOP(name, d, T, divisor)                                               \
  static void name##_##d(void *out_, const void *acc_, int64_t n, int64_t count)         \
  {                                                                                      \
    tn__S_##d *out = out_;                                                               \
    const tn__C_##d *acc = acc_;                                                         \
    T by = (T)(divisor);                                                                 \
    for (int64_t j = 0; j < n; j++) out[j] = TN__P_##d(acc[j] / by);                     \
  }
#define FLOAT_QUOTIENTS(name, divisor)        \
  QUOTIENT_LOOP(name, f32, float, divisor)    \
  QUOTIENT_LOOP(name, f64, double, divisor)   \
  QUOTIENT_LOOP(name, f16, float, divisor)    \
  QUOTIENT_LOOP(name, bf16, float, divisor)
FLOAT_QUOTIENTS(mean, count)
FLOAT_QUOTIENTS(sqrtn, sqrt((double)count))
QUOTIENT_LOOP(mean, c64, float, count)
QUOTIENT_LOOP(mean, c128, double, count)

/* Means of integers: the sum and the count wrap as the dtype does. A count that wraps to 0 gives 0. */
#define INTEGER_MEAN(d, T, A)                                                                \
  static void mean_##d(void *out_, const void *acc_, int64_t n, int64_t count)               \
  {                                                                                          \
    T *out = out_, by = (T)count;                                                            \
    const A *acc = acc_;                                                                     \
    for (int64_t j = 0; j < n; j++) {                                                        \
      T sum = (T)acc[j];                                                                     \
      if (by == 0) out[j] = 0;                                                               \
      else out[j] = by == (T)-1 && (T)-1 < (T)1 ? (T)(0 - acc[j]) : (T)(sum / by);           \
    }                                                                                        \
  }
INTEGER_MEAN(i8, int8_t, uint32_t)
INTEGER_MEAN(i16, int16_t, uint32_t)
INTEGER_MEAN(i32, int32_t, uint32_t)
INTEGER_MEAN(i64, int64_t, uint64_t)
INTEGER_MEAN(u8, uint8_t, uint32_t)
INTEGER_MEAN(u16, uint16_t, uint32_t)
INTEGER_MEAN(u32, uint32_t, uint32_t)
INTEGER_MEAN(u64, uint64_t, uint64_t)

/* ---- the table ---- */

typedef struct entry {
  tn__segment_op op;
  tn_dtype dtype, twin; /* twin: the unsigned dtype with the same wrapping arithmetic, or the dtype itself */
  tn__segment_loops loops;
} entry;

#define FNS(op, d, end) { sizeof(tn__C_##d), op##_start_##d, op##_add_##d, end }
#define STORED(OP, op, d) { TN__SEGMENT_##OP, TN__D_##d, TN__TWIN_##d, FNS(op, d, op##_store_##d) },
#define DIVIDED(OP, name, d, as) { TN__SEGMENT_##OP, TN__D_##as, TN__D_##as, FNS(sum, d, name##_##as) },
#define SUM_ENTRY(op, d, unused) STORED(SUM, op, d)
#define PROD_ENTRY(op, d, unused) STORED(PROD, op, d)
#define MAX_ENTRY(op, d, unused) STORED(MAX, op, d)
#define MIN_ENTRY(op, d, unused) STORED(MIN, op, d)
#define MEAN_ENTRY(op, d, unused) DIVIDED(MEAN, mean, d, d)
#define SQRTN_ENTRY(op, d, unused) DIVIDED(SQRTN, sqrtn, d, d)

static const entry entries[] = {
  NUMBERS(SUM_ENTRY, sum)
  NUMBERS(PROD_ENTRY, prod)
  ORDERED(MAX_ENTRY, max)
  ORDERED(MIN_ENTRY, min)
  TN__SAME_FLOATS_COMPLEXES(MEAN_ENTRY, mean)
  TN__SAME_FLOATS(SQRTN_ENTRY, sqrtn)
  DIVIDED(MEAN, mean, wi8, i8)
  DIVIDED(MEAN, mean, wi16, i16)
  DIVIDED(MEAN, mean, wi32, i32)
  DIVIDED(MEAN, mean, wi64, i64)
  DIVIDED(MEAN, mean, wi8, u8)
  DIVIDED(MEAN, mean, wi16, u16)
  DIVIDED(MEAN, mean, wi32, u32)
  DIVIDED(MEAN, mean, wi64, u64)
};

/* The version of an addition for the machine's vectors. */
static tn__segment_add widest(tn__segment_add add)
{
#if TN__VECTORS > 1
  if (tn__vectors() >= TN__AVX2 && add == sum_add_f32) return sum_add_f32_avx2;
  if (tn__vectors() >= TN__AVX2 && add == sum_add_f64) return sum_add_f64_avx2;
#endif
  return add;
}

bool tn__segment_loops_find(tn__segment_op op, tn_dtype dtype, tn__segment_loops *out)
{
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    const entry *e = &entries[i];
    if (e->op != op || (e->dtype != dtype && e->twin != dtype)) continue;
    *out = e->loops;
    out->add = widest(e->loops.add);
    return true;
  }
  return false;
}
