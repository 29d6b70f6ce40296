/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <ops/kernel/elements/convert.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/elements/vectors.h>
#include <string.h>

/* ---- between the ten plain types ---- */

/* The ten plain types: short name, dtype, C type. Every other dtype is loaded as one of these and stored from one. */
#define PLAIN(X, a)              \
  X(a, f32, TN_FLOAT, float)     \
  X(a, f64, TN_DOUBLE, double)   \
  X(a, i8, TN_INT8, int8_t)      \
  X(a, i16, TN_INT16, int16_t)   \
  X(a, i32, TN_INT32, int32_t)   \
  X(a, i64, TN_INT64, int64_t)   \
  X(a, u8, TN_UINT8, uint8_t)    \
  X(a, u16, TN_UINT16, uint16_t) \
  X(a, u32, TN_UINT32, uint32_t) \
  X(a, u64, TN_UINT64, uint64_t)

/* Float to integer. Every branch is a cast with defined behaviour in C. */
#define IN_I32(x) ((x) >= -2147483648.0f && (x) < 2147483648.0f)
#define IN_I64(x) ((x) >= -9223372036854775808.0f && (x) < 9223372036854775808.0f)
#define TO_I32(x) (IN_I32(x) ? (int32_t)(x) : INT32_MIN)
#define TO_I64(x) (IN_I64(x) ? (int64_t)(x) : INT64_MIN)
/* TO_U64(x) if x is not in the range of int64 */
#define TO_U64_OUTSIDE(x) ((x) > 0 && (x) < 18446744073709551616.0f ? (uint64_t)(x) : (uint64_t)1 << 63)
#define TO_U64(x) (IN_I64(x) ? (uint64_t)(int64_t)(x) : TO_U64_OUTSIDE(x))
#define TO_U32(x) ((x) > -2147483649.0 && (x) < 4294967296.0f ? (uint32_t)(int64_t)(x) : (uint32_t)1 << 31)

/* F_<to>(x) converts a float x. The short name is pasted before macros are expanded. */
#define F_f32(x) ((float)(x))
#define F_f64(x) ((double)(x))
#define F_i8(x) ((int8_t)TO_I32(x))
#define F_i16(x) ((int16_t)TO_I32(x))
#define F_i32(x) TO_I32(x)
#define F_i64(x) TO_I64(x)
#define F_u8(x) ((uint8_t)TO_I32(x))
#define F_u16(x) ((uint16_t)TO_I32(x))
#define F_u32(x) TO_U32(x)
#define F_u64(x) TO_U64(x)

#define CHANGE(from, name, dtype, T)                              \
  TN__APART static void from##_to_##name(const void *a, void *b, int64_t n) \
  {                                                               \
    const from##_type *restrict x = a;                            \
    T *restrict y = b;                                            \
    for (int64_t i = 0; i < n; i++) y[i] = (T)x[i];               \
  }
#define CHANGE_FLOAT(from, name, dtype, T)                        \
  TN__APART static void from##_to_##name(const void *a, void *b, int64_t n) \
  {                                                               \
    const from##_type *restrict x = a;                            \
    T *restrict y = b;                                            \
    for (int64_t i = 0; i < n; i++) y[i] = F_##name(x[i]);        \
  }
#define TYPE(a, name, dtype, T) typedef T name##_type;
PLAIN(TYPE, x)
PLAIN(CHANGE_FLOAT, f32)
PLAIN(CHANGE_FLOAT, f64)
PLAIN(CHANGE, i8)
PLAIN(CHANGE, i16)
PLAIN(CHANGE, i32)
PLAIN(CHANGE, i64)
PLAIN(CHANGE, u8)
PLAIN(CHANGE, u16)
PLAIN(CHANGE, u32)
PLAIN(CHANGE, u64)

#define TO_BOOL(a, name, dtype, T)                                  \
  static void name##_to_bool(const void *from, void *to, int64_t n) \
  {                                                                 \
    const T *restrict x = from;                                     \
    uint8_t *restrict y = to;                                       \
    for (int64_t i = 0; i < n; i++) y[i] = x[i] != 0;               \
  }
#define INTEGERS(X, a)                                                                                             \
  X(a, i8, TN_INT8, int8_t) X(a, i16, TN_INT16, int16_t) X(a, i32, TN_INT32, int32_t) X(a, i64, TN_INT64, int64_t) \
  X(a, u8, TN_UINT8, uint8_t) X(a, u16, TN_UINT16, uint16_t) X(a, u32, TN_UINT32, uint32_t)                        \
  X(a, u64, TN_UINT64, uint64_t)
INTEGERS(TO_BOOL, x)

/* Subnormal numbers count as 0. */
static void f32_to_bool(const void *from, void *to, int64_t n)
{
  const float *restrict x = from;
  uint8_t *restrict y = to;
  for (int64_t i = 0; i < n; i++) y[i] = !(x[i] > -FLT_MIN && x[i] < FLT_MIN);
}

static void f64_to_bool(const void *from, void *to, int64_t n)
{
  const double *restrict x = from;
  uint8_t *restrict y = to;
  for (int64_t i = 0; i < n; i++) y[i] = !(x[i] > -DBL_MIN && x[i] < DBL_MIN);
}

#define TO_ENTRY(from, name, dtype, T) from##_to_##name,
#define ROW(from) { PLAIN(TO_ENTRY, from) from##_to_bool }
/* Indexed by source and target, in the order of PLAIN; bool is the last target. */
static const tn__convert_fn changes[10][11] = { ROW(f32), ROW(f64), ROW(i8),  ROW(i16), ROW(i32),
                                                ROW(i64), ROW(u8),  ROW(u16), ROW(u32), ROW(u64) };

/* Frequent pairs: also compiled for wide vectors. */
#define OFTEN(X)                                                                                                       \
  X(f32, f64, F_f64) X(f32, i32, F_i32) X(f64, f32, F_f32) X(i32, f32, (float)) X(i32, i64, (int64_t))                 \
  X(i64, i32, (int32_t)) X(i64, f32, (float)) X(u8, f32, (float)) X(u8, i32, (int32_t)) X(i8, f32, (float))
#define OFTEN_HEAVY(X) X(f32, u8, F_u8) X(f32, i8, F_i8)
#define OFTEN_WIDE(from, to, change, end, attribute)                                     \
  attribute static void from##_to_##to##_##end(const void *a, void *b, int64_t n)        \
  {                                                                                      \
    const from##_type *restrict x = a;                                                   \
    to##_type *restrict y = b;                                                           \
    int64_t whole = n & -INT64_C(64);                                                    \
    for (int64_t i = 0; i < whole; i++) y[i] = change(x[i]);                             \
    if (whole < n) from##_to_##to(x + whole, y + whole, n - whole);                      \
  }
#define OFTEN_LOOPS(from, to, change) TN__AVX2_LOOPS(OFTEN_WIDE, from, to, change)
#define HEAVY_LOOPS(from, to, change) TN__WIDE_LOOPS(OFTEN_WIDE, from, to, change)
#define OFTEN_ENTRY(from, to, change) { from##_to_##to, TN__AVX2_FNS(from##_to_##to) },
#define HEAVY_ENTRY(from, to, change) { from##_to_##to, TN__FNS(from##_to_##to) },
OFTEN(OFTEN_LOOPS)
OFTEN_HEAVY(HEAVY_LOOPS)

/* Returns the variant for this machine's vectors. */
static tn__convert_fn widest(tn__convert_fn change)
{
  static const struct {
    tn__convert_fn change, fn[TN__VECTORS];
  } often[] = { OFTEN(OFTEN_ENTRY) OFTEN_HEAVY(HEAVY_ENTRY) };
  for (size_t i = 0; i < sizeof often / sizeof often[0]; i++)
    if (often[i].change == change) return often[i].fn[tn__vectors()];
  return change;
}

static int plain_index(tn_dtype dtype)
{
#define DTYPE(a, name, d, T) d,
  static const tn_dtype order[] = { PLAIN(DTYPE, x) TN_BOOL };
  for (int i = 0; i < 11; i++)
    if (order[i] == dtype) return i;
  return -1;
}

/* ---- float8 ---- */

/* Parametrised by mantissa bits and exponent bias. e5m2 has infinities; e4m3fn has none, one NaN code per sign, and a
 * maximum of 448. */
static inline float float_of_8(uint8_t code, int mantissa, int bias, uint8_t infinity, uint8_t nan)
{
  uint32_t sign = (uint32_t)(code & 0x80u) << 24, magnitude = code & 0x7fu;
  uint32_t exponent = magnitude >> mantissa, fraction = magnitude & ((1u << mantissa) - 1);
  if (exponent != 0)
    fraction |= 1u << mantissa;
  else
    exponent = 1;
  float unit = tn__float_of_bits((exponent + 127u - (uint32_t)bias - (uint32_t)mantissa) << 23);
  uint32_t bits = tn__float_bits((float)fraction * unit);
  bits = magnitude == infinity ? 0x7f800000u : bits;
  bits = magnitude >= nan ? 0x7fc00000u : bits;
  return tn__float_of_bits(bits | sign);
}

static inline uint8_t float_to_8(float f, int mantissa, int bias, uint8_t most, uint8_t over, uint8_t nan)
{
  uint32_t bits = tn__float_bits(f), sign = bits >> 24 & 0x80u;
  uint32_t shift = 23u - (uint32_t)mantissa, code;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return (uint8_t)(sign | nan);
  if (bits < (uint32_t)(128 - bias) << 23) { /* subnormal: count units of the smallest subnormal */
    float units = tn__float_of_bits(bits) * tn__float_of_bits((uint32_t)(126 + bias + mantissa) << 23);
    code = tn__float_bits(units + 8388608.0f) - tn__float_bits(8388608.0f);
  } else {
    code = (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1u)) >> shift;
    code -= (uint32_t)(127 - bias) << mantissa;
  }
  return (uint8_t)(sign | (code > most ? over : code));
}

#define FLOAT8(name, mantissa, bias, most, over, infinity, nan, nan_from)                        \
  static void name##_load(const void *from, void *to, int64_t n)                                 \
  {                                                                                              \
    const uint8_t *x = from;                                                                     \
    float *y = to;                                                                               \
    for (int64_t i = 0; i < n; i++) y[i] = float_of_8(x[i], mantissa, bias, infinity, nan_from); \
  }                                                                                              \
  static void name##_store(const void *from, void *to, int64_t n)                                \
  {                                                                                              \
    const float *x = from;                                                                       \
    uint8_t *y = to;                                                                             \
    for (int64_t i = 0; i < n; i++) y[i] = float_to_8(x[i], mantissa, bias, most, over, nan);    \
  }
FLOAT8(e5m2, 2, 15, 0x7b, 0x7c, 0x7c, 0x7e, 0x7d)
FLOAT8(e4m3fn, 3, 7, 0x7e, 0x7f, 0xff, 0x7f, 0x7f)

/* ---- the other odd types ---- */

/* For both half and bfloat16. Unlike in f32_to_bool, subnormal numbers count as true. */
static void short_to_bool(const void *from, void *to, int64_t n)
{
  const uint16_t *restrict x = from;
  uint8_t *restrict y = to;
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] & 0x7fffu) != 0;
}

static void half_load(const void *from, void *to, int64_t n) { tn__half_to_floats(from, to, n); }
static void half_store(const void *from, void *to, int64_t n) { tn__half_from_floats(from, to, n); }
static void brain_load(const void *from, void *to, int64_t n) { tn__bfloat16_to_floats(from, to, n); }
static void brain_store(const void *from, void *to, int64_t n) { tn__bfloat16_from_floats(from, to, n); }

#define COMPLEX(name, T)                                          \
  static void name##_load(const void *from, void *to, int64_t n)  \
  {                                                               \
    const T *restrict x = from;                                   \
    T *restrict y = to;                                           \
    for (int64_t i = 0; i < n; i++) y[i] = x[2 * i];              \
  }                                                               \
  static void name##_store(const void *from, void *to, int64_t n) \
  {                                                               \
    const T *restrict x = from;                                   \
    T *restrict y = to;                                           \
    for (int64_t i = 0; i < n; i++) {                             \
      y[2 * i] = x[i];                                            \
      y[2 * i + 1] = 0;                                           \
    }                                                             \
  }
COMPLEX(c64, float)
COMPLEX(c128, double)
static void c64_to_c128(const void *from, void *to, int64_t n) { f32_to_f64(from, to, 2 * n); }
static void c128_to_c64(const void *from, void *to, int64_t n) { f64_to_f32(from, to, 2 * n); }

/* Four bits in the low half of a byte; the upper four bits are ignored. */
static void int4_load(const void *from, void *to, int64_t n)
{
  const uint8_t *x = from;
  int8_t *y = to;
  for (int64_t i = 0; i < n; i++) y[i] = (int8_t)((x[i] & 7) - (x[i] & 8));
}

static void uint4_load(const void *from, void *to, int64_t n)
{
  const uint8_t *x = from;
  uint8_t *y = to;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] & 15;
}

/* Dtypes that are not plain: the plain type that stands for each, and the loops that convert to it and back. */
static const struct odd {
  tn_dtype dtype, plain;
  tn__convert_fn load, store;
} odds[] = {
  { TN_HALF, TN_FLOAT, half_load, half_store },
  { TN_BFLOAT16, TN_FLOAT, brain_load, brain_store },
  { TN_FLOAT8_E5M2, TN_FLOAT, e5m2_load, e5m2_store },
  { TN_FLOAT8_E4M3FN, TN_FLOAT, e4m3fn_load, e4m3fn_store },
  { TN_COMPLEX64, TN_FLOAT, c64_load, c64_store },
  { TN_COMPLEX128, TN_DOUBLE, c128_load, c128_store },
  { TN_INT4, TN_INT8, int4_load, int4_load },
  { TN_UINT4, TN_UINT8, uint4_load, uint4_load },
  { TN_QINT8, TN_INT8, NULL, NULL },
  { TN_QUINT8, TN_UINT8, NULL, NULL },
  { TN_QINT16, TN_INT16, NULL, NULL },
  { TN_QUINT16, TN_UINT16, NULL, NULL },
  { TN_QINT32, TN_INT32, NULL, NULL },
};

static struct odd way_of(tn_dtype dtype)
{
  for (size_t i = 0; i < sizeof odds / sizeof odds[0]; i++)
    if (odds[i].dtype == dtype) return odds[i];
  return (struct odd){ dtype, dtype, NULL, NULL };
}

/* ---- truncation of mantissas ---- */

#define CUT(name, T, bits, B)                                    \
  static void name(const void *from, void *to, int64_t n)        \
  {                                                              \
    const T *x = from;                                           \
    T *y = to;                                                   \
    for (int64_t i = 0; i < n; i++) {                            \
      union { T f; B u; } v = { x[i] };                          \
      v.u = v.f != v.f ? v.u : v.u & (B)~(((B)1 << (bits)) - 1); \
      y[i] = v.f;                                                \
    }                                                            \
  }
CUT(cut_f32_half, float, 13, uint32_t)
CUT(cut_f32_brain, float, 16, uint32_t)
CUT(cut_f32_e4m3, float, 20, uint32_t)
CUT(cut_f32_e5m2, float, 21, uint32_t)
CUT(cut_f64_float, double, 29, uint64_t)
CUT(cut_f64_half, double, 42, uint64_t)
CUT(cut_f64_brain, double, 45, uint64_t)
CUT(cut_f64_e4m3, double, 49, uint64_t)
CUT(cut_f64_e5m2, double, 50, uint64_t)

static tn__convert_fn cut_for(tn_dtype plain, tn_dtype to)
{
  bool wide = plain == TN_DOUBLE;
  if (!wide && plain != TN_FLOAT) return NULL;
  switch (to) {
  case TN_FLOAT: return wide ? cut_f64_float : NULL;
  case TN_HALF: return wide ? cut_f64_half : cut_f32_half;
  case TN_BFLOAT16: return wide ? cut_f64_brain : cut_f32_brain;
  case TN_FLOAT8_E4M3FN: return wide ? cut_f64_e4m3 : cut_f32_e4m3;
  case TN_FLOAT8_E5M2: return wide ? cut_f64_e5m2 : cut_f32_e5m2;
  default: return NULL;
  }
}

/* ---- choosing the steps and running them ---- */

static tn__convert_fn direct(tn_dtype from, tn_dtype to)
{
  if (from == TN_COMPLEX64 && to == TN_COMPLEX128) return c64_to_c128;
  if (from == TN_COMPLEX128 && to == TN_COMPLEX64) return c128_to_c64;
  if ((from == TN_HALF || from == TN_BFLOAT16) && to == TN_BOOL) return short_to_bool;
  return NULL;
}

bool tn__convert_find(tn_dtype from, tn_dtype to, bool truncate, tn__convert *out)
{
  struct odd a = way_of(from), b = way_of(to);
  tn_dtype source = a.plain == TN_BOOL ? TN_UINT8 : a.plain;
  int i = plain_index(source), j = plain_index(b.plain);
  *out = (tn__convert){ .from_size = tn_dtype_size(from), .to_size = tn_dtype_size(to) };
  if (i < 0 || j < 0) return false;
  if (from == to || (a.load == NULL && b.store == NULL && source == b.plain)) {
    out->same = true;
    return true;
  }
  out->mid_size = tn_dtype_size(source);
  out->late_size = tn_dtype_size(b.plain);
  out->change = direct(from, to);
  if (out->change != NULL) return true;
  out->load = a.load;
  out->cut = truncate ? cut_for(source, to) : NULL;
  out->change = source == b.plain ? NULL : widest(changes[i][j]);
  out->store = b.store;
  return true;
}

#define BLOCK 512

void tn__convert_run(const tn__convert *c, const void *from, void *to, int64_t n)
{
  _Alignas(64) char one[BLOCK * 16], two[BLOCK * 16];
  const char *in = from;
  char *out = to;
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const void *x = in + (size_t)at * c->from_size;
    void *end = out + (size_t)at * c->to_size, *y;
    if (c->load != NULL) {
      y = c->change == NULL && c->store == NULL && c->cut == NULL ? end : (void *)one;
      c->load(x, y, m);
      x = y;
    }
    if (c->cut != NULL) {
      c->cut(x, one, m);
      x = one;
    }
    if (c->change != NULL) {
      y = c->store == NULL ? end : (void *)two;
      c->change(x, y, m);
      x = y;
    }
    if (c->store != NULL)
      c->store(x, end, m);
    else if (x != end)
      memcpy(end, x, (size_t)m * c->to_size);
  }
}
