/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops. A new op needs an expression, one line that instantiates its loops, and one line in its file's op
 * table.
 *
 *   #define EXPR_square(d, x) ((x) * (x))
 *   TN__UNARY(square, 0.5, SQUARE_TYPES)
 *
 * A type list such as SQUARE_TYPES(X, op) calls X(op, from, to) for each loop, with the short names below. The
 * expression sees x (and y) converted to the type that `from` is computed in, and d, the short name of `from`, for
 * token pasting:
 *
 *   f32 f64 c64 c128            computed in their own type
 *   f16 bf16                    computed in float, rounded once
 *   vf16 vbf16                  the same through the f32 loop, which must precede them: less code; d is f32
 *   i8 ... u64, b8, qi8 ...     computed in their own type (and in int, by C's promotion); b8 is bool
 *   wi8 ... wi64                integers computed in unsigned numbers at least as wide, so that overflow wraps
 *   wu8 ... wu64                the loops of wi8 ... wi64, which must precede them
 *   str                         a pointer to the element
 *
 * The output may have the same address as an input of equal element size. */
#ifndef TN_OPS_KERNEL_ELEMENTS_ELEMENTWISE_H
#define TN_OPS_KERNEL_ELEMENTS_ELEMENTWISE_H

#include <stdbool.h>

#include <ops/kernel/elements/broadcast.h>
#include <ops/kernel/elements/complex.h>
#include <ops/kernel/elements/half.h>
#include <ops/kernel/shapes.h>
#include <ops/kernel/elements/vectors.h>

/* Properties by short name: D_ dtype, S_ type in memory, C_ compute type, L_ load, P_ store, K_ kind of loop. Kind
 * PLAIN is also compiled for wide vectors, NARROW for the baseline only. */
#define TN__D_f32 TN_FLOAT
#define TN__D_f64 TN_DOUBLE
#define TN__D_f16 TN_HALF
#define TN__D_bf16 TN_BFLOAT16
#define TN__D_c64 TN_COMPLEX64
#define TN__D_c128 TN_COMPLEX128
#define TN__D_i8 TN_INT8
#define TN__D_i16 TN_INT16
#define TN__D_i32 TN_INT32
#define TN__D_i64 TN_INT64
#define TN__D_u8 TN_UINT8
#define TN__D_u16 TN_UINT16
#define TN__D_u32 TN_UINT32
#define TN__D_u64 TN_UINT64
#define TN__D_b8 TN_BOOL
#define TN__D_qi8 TN_QINT8
#define TN__D_qi16 TN_QINT16
#define TN__D_qi32 TN_QINT32
#define TN__D_qu8 TN_QUINT8
#define TN__D_qu16 TN_QUINT16
#define TN__D_str TN_STRING
#define TN__D_vf16 TN_HALF
#define TN__D_vbf16 TN_BFLOAT16
#define TN__D_wi8 TN_INT8
#define TN__D_wi16 TN_INT16
#define TN__D_wi32 TN_INT32
#define TN__D_wi64 TN_INT64
#define TN__D_wu8 TN_UINT8
#define TN__D_wu16 TN_UINT16
#define TN__D_wu32 TN_UINT32
#define TN__D_wu64 TN_UINT64

/* The unsigned dtype whose wrapping arithmetic gives the same bits as this one's; the dtype itself where there is
 * none. */
#define TN__TWIN_f32 TN_FLOAT
#define TN__TWIN_f64 TN_DOUBLE
#define TN__TWIN_f16 TN_HALF
#define TN__TWIN_bf16 TN_BFLOAT16
#define TN__TWIN_c64 TN_COMPLEX64
#define TN__TWIN_c128 TN_COMPLEX128
#define TN__TWIN_wi8 TN_UINT8
#define TN__TWIN_wi16 TN_UINT16
#define TN__TWIN_wi32 TN_UINT32
#define TN__TWIN_wi64 TN_UINT64
#define TN__TWIN_i8 TN_INT8
#define TN__TWIN_i16 TN_INT16
#define TN__TWIN_i32 TN_INT32
#define TN__TWIN_i64 TN_INT64
#define TN__TWIN_u8 TN_UINT8
#define TN__TWIN_u16 TN_UINT16
#define TN__TWIN_u32 TN_UINT32
#define TN__TWIN_u64 TN_UINT64
#define TN__TWIN_b8 TN_BOOL

typedef float tn__S_f32, tn__C_f32, tn__C_f16, tn__C_bf16;
typedef double tn__S_f64, tn__C_f64;
typedef uint16_t tn__S_f16, tn__S_bf16, tn__S_vf16, tn__S_vbf16;
typedef tn__c64 tn__S_c64, tn__C_c64;
typedef tn__c128 tn__S_c128, tn__C_c128;
typedef int8_t tn__S_i8, tn__C_i8, tn__S_qi8, tn__C_qi8, tn__S_wi8;
typedef int16_t tn__S_i16, tn__C_i16, tn__S_qi16, tn__C_qi16, tn__S_wi16;
typedef int32_t tn__S_i32, tn__C_i32, tn__S_qi32, tn__C_qi32, tn__S_wi32;
typedef int64_t tn__S_i64, tn__C_i64, tn__S_wi64;
typedef uint8_t tn__S_u8, tn__C_u8, tn__S_qu8, tn__C_qu8, tn__S_wu8, tn__S_b8, tn__C_b8;
typedef uint16_t tn__S_u16, tn__C_u16, tn__S_qu16, tn__C_qu16, tn__S_wu16;
typedef uint32_t tn__S_u32, tn__C_u32, tn__S_wu32;
typedef uint64_t tn__S_u64, tn__C_u64, tn__S_wu64;
typedef uint32_t tn__C_wi8, tn__C_wi16, tn__C_wi32, tn__C_wu8, tn__C_wu16, tn__C_wu32;
typedef uint64_t tn__C_wi64, tn__C_wu64;
typedef tn_string tn__S_str;
typedef const tn_string *tn__C_str;

#define TN__L_f32(v) (v)
#define TN__L_f64(v) (v)
#define TN__L_f16(v) tn__half_to_float(v)
#define TN__L_bf16(v) tn__bfloat16_to_float(v)
#define TN__L_c64(v) (v)
#define TN__L_c128(v) (v)
#define TN__L_i8(v) (v)
#define TN__L_i16(v) (v)
#define TN__L_i32(v) (v)
#define TN__L_i64(v) (v)
#define TN__L_u8(v) (v)
#define TN__L_u16(v) (v)
#define TN__L_u32(v) (v)
#define TN__L_u64(v) (v)
#define TN__L_b8(v) (v)
#define TN__L_qi8(v) (v)
#define TN__L_qi16(v) (v)
#define TN__L_qi32(v) (v)
#define TN__L_qu8(v) (v)
#define TN__L_qu16(v) (v)
#define TN__L_str(v) (&(v))
#define TN__L_wi8(v) (uint32_t)(v)
#define TN__L_wi16(v) (uint32_t)(v)
#define TN__L_wi32(v) (uint32_t)(v)
#define TN__L_wi64(v) (uint64_t)(v)
#define TN__L_wu8(v) (uint32_t)(v)
#define TN__L_wu16(v) (uint32_t)(v)
#define TN__L_wu32(v) (v)
#define TN__L_wu64(v) (v)

#define TN__P_f32(v) (v)
#define TN__P_f64(v) (v)
#define TN__P_f16(v) tn__half_from_float(v)
#define TN__P_bf16(v) tn__bfloat16_from_float(v)
#define TN__P_c64(v) (v)
#define TN__P_c128(v) (v)
#define TN__P_i8(v) (int8_t)(v)
#define TN__P_i16(v) (int16_t)(v)
#define TN__P_i32(v) (int32_t)(v)
#define TN__P_i64(v) (int64_t)(v)
#define TN__P_u8(v) (uint8_t)(v)
#define TN__P_u16(v) (uint16_t)(v)
#define TN__P_u32(v) (uint32_t)(v)
#define TN__P_u64(v) (uint64_t)(v)
#define TN__P_b8(v) (uint8_t)(v)
#define TN__P_wi8 TN__P_i8
#define TN__P_wi16 TN__P_i16
#define TN__P_wi32 TN__P_i32
#define TN__P_wi64 TN__P_i64
#define TN__P_wu8 TN__P_u8
#define TN__P_wu16 TN__P_u16
#define TN__P_wu32 TN__P_u32
#define TN__P_wu64 TN__P_u64

#define TN__K_f32 PLAIN
#define TN__K_f64 PLAIN
#define TN__K_f16 NARROW
#define TN__K_bf16 NARROW
#define TN__K_c64 NARROW
#define TN__K_c128 NARROW
#define TN__K_i8 PLAIN
#define TN__K_i16 PLAIN
#define TN__K_i32 PLAIN
#define TN__K_i64 PLAIN
#define TN__K_u8 PLAIN
#define TN__K_u16 PLAIN
#define TN__K_u32 PLAIN
#define TN__K_u64 PLAIN
#define TN__K_b8 PLAIN
#define TN__K_qi8 PLAIN
#define TN__K_qi16 PLAIN
#define TN__K_qi32 PLAIN
#define TN__K_qu8 PLAIN
#define TN__K_qu16 PLAIN
#define TN__K_str NARROW
#define TN__K_wi8 PLAIN
#define TN__K_wi16 PLAIN
#define TN__K_wi32 PLAIN
#define TN__K_wi64 PLAIN
#define TN__K_wu8 UNSIGNED
#define TN__K_wu16 UNSIGNED
#define TN__K_wu32 UNSIGNED
#define TN__K_wu64 UNSIGNED
#define TN__K_vf16 VIA_FLOAT
#define TN__K_vbf16 VIA_FLOAT
#define TN__SIGNED_wu8 wi8
#define TN__SIGNED_wu16 wi16
#define TN__SIGNED_wu32 wi32
#define TN__SIGNED_wu64 wi64
#define TN__FORMAT_vf16 tn__half_format
#define TN__FORMAT_vbf16 tn__bfloat16_format
#define TN__CAT2(a, b) a##b
#define TN__CAT(a, b) TN__CAT2(a, b)

/* Type lists whose output type equals the input type. */
#define TN__SAME_FLOATS(X, op) X(op, f32, f32) X(op, f64, f64) X(op, f16, f16) X(op, bf16, bf16)
#define TN__VIA_FLOATS(X, op) X(op, f32, f32) X(op, f64, f64) X(op, vf16, vf16) X(op, vbf16, vbf16)
#define TN__SAME_COMPLEXES(X, op) X(op, c64, c64) X(op, c128, c128)
#define TN__SAME_SIGNED(X, op) X(op, i8, i8) X(op, i16, i16) X(op, i32, i32) X(op, i64, i64)
#define TN__SAME_UNSIGNED(X, op) X(op, u8, u8) X(op, u16, u16) X(op, u32, u32) X(op, u64, u64)
#define TN__WRAP_SIGNED(X, op) X(op, wi8, wi8) X(op, wi16, wi16) X(op, wi32, wi32) X(op, wi64, wi64)
#define TN__WRAP_UNSIGNED(X, op) X(op, wu8, wu8) X(op, wu16, wu16) X(op, wu32, wu32) X(op, wu64, wu64)
#define TN__SAME_FLOATS_COMPLEXES(X, op) TN__SAME_FLOATS(X, op) TN__SAME_COMPLEXES(X, op)
#define TN__VIA_FLOATS_COMPLEXES(X, op) TN__VIA_FLOATS(X, op) TN__SAME_COMPLEXES(X, op)

/* Operators by compute type. Complex numbers use the functions of complex.h, not C's operators. */
#define TN__REAL_OPERATORS(T, s)                          \
  static inline T tn__mul_##s(T x, T y) { return x * y; } \
  static inline T tn__div_##s(T x, T y) { return x / y; }
TN__REAL_OPERATORS(float, f32)
TN__REAL_OPERATORS(double, f64)
static inline uint32_t tn__mul_u32(uint32_t x, uint32_t y) { return x * y; }
static inline uint64_t tn__mul_u64(uint64_t x, uint64_t y) { return x * y; }
#define TN__MUL(x, y)                                                                                  \
  _Generic((x), float: tn__mul_f32, double: tn__mul_f64, uint32_t: tn__mul_u32, uint64_t: tn__mul_u64, \
           tn__c64: tn__mul_c64, tn__c128: tn__mul_c128)(x, y)
#define TN__DIV(x, y) \
  _Generic((x), float: tn__div_f32, double: tn__div_f64, tn__c64: tn__div_c64, tn__c128: tn__div_c128)(x, y)

/* Maximum and minimum of two numbers; NaN if either is NaN. */
#define TN__MAX(x, y) ((((x) > (y)) | ((x) != (x))) ? (x) : (y))
#define TN__MIN(x, y) ((((x) < (y)) | ((x) != (x))) ? (x) : (y))

/* A two-byte floating-point type that is computed in float. */
typedef struct tn__short_format {
  void (*to_floats)(const uint16_t *from, float *to, int64_t n);
  void (*from_floats)(const float *from, uint16_t *to, int64_t n);
} tn__short_format;
extern const tn__short_format tn__half_format, tn__bfloat16_format;

/* Properties common to all loops of an op. */
typedef struct tn__loop_info {
  double cost_ns;         /* per element */
  tn_status fault;        /* status and text reported for a bad element; TN_OK if no element can be bad */
  const char *fault_text;
  bool fused;             /* there are fused variants (vectors.h), which process any number of elements */
} tn__loop_info;

/* ---- one input ---- */

typedef void (*tn__unary_fn)(const void *x, void *out, int64_t n);
typedef struct tn__unary_loop {
  tn_dtype from, to;
  uint32_t from_size, to_size; /* bytes */
  const tn__loop_info *info;
  tn__unary_fn fn[TN__VECTORS];
} tn__unary_loop;

/* Number of elements that fill whole 64-byte vectors in both types. */
#define TN__WHOLE(from, to) (64 / TN__LESS_BYTES(sizeof(tn__S_##from), sizeof(tn__S_##to)))
#define TN__LESS_BYTES(a, b) (int64_t)((a) < (b) ? (a) : (b))

#define TN__UNARY_LOOP(op, from, to) TN__CAT(TN__UNARY_LOOP_, TN__K_##from)(op, from, to)
#define TN__UNARY_FOR(op, from, to, count)     \
  const tn__S_##from *xs = x_;                 \
  tn__S_##to *out = out_;                      \
  TN__IVDEP                                    \
  for (int64_t i = 0; i < (count); i++) {      \
    tn__C_##from x = TN__L_##from(xs[i]);      \
    out[i] = TN__P_##to(EXPR_##op(from, x));   \
  }
#define TN__UNARY_LOOP_NARROW(op, from, to)                                \
  TN__APART static void op##_##from(const void *x_, void *out_, int64_t n) \
  {                                                                        \
    TN__UNARY_FOR(op, from, to, n)                                         \
  }
#define TN__UNARY_LOOP_WIDE(op, from, to, end, attribute)                        \
  attribute static void op##_##from##_##end(const void *x_, void *out_, int64_t n) \
  {                                                                              \
    int64_t whole = n & -TN__WHOLE(from, to);                                    \
    TN__UNARY_FOR(op, from, to, whole)                                           \
    if (whole < n) op##_##from(xs + whole, out + whole, n - whole);              \
  }
#define TN__UNARY_LOOP_PLAIN(op, from, to) \
  TN__UNARY_LOOP_NARROW(op, from, to)      \
  TN__AVX2_LOOPS(TN__UNARY_LOOP_WIDE, op, from, to)
#define TN__UNARY_LOOP_UNSIGNED(op, from, to)
#define TN__UNARY_LOOP_VIA_FLOAT(op, from, to) TN__UNARY_VIA(op, from, to, TN__AVX2_FNS(op##_f32))
#define TN__UNARY_VIA(op, from, to, fns)                                             \
  static void op##_##from(const void *x, void *out, int64_t n)                       \
  {                                                                                  \
    static const tn__unary_fn fn[] = fns;                                            \
    tn__unary_via_float(&TN__FORMAT_##from, fn[tn__vectors()], x, out, sizeof(tn__S_##to) == 2, n); \
  }
/* Converts x[n] to float and applies fn. If to_short, fn's results are floats and are
 * converted back; otherwise they are single bytes and are stored as they are. */
void tn__unary_via_float(const tn__short_format *format, tn__unary_fn fn, const void *x, void *out,
                         bool to_short, int64_t n);

#define TN__FNS_PLAIN(op, from) TN__AVX2_FNS(op##_##from)
#define TN__FNS_NARROW(op, from) TN__SAME_FNS(op##_##from)
#define TN__FNS_VIA_FLOAT(op, from) TN__SAME_FNS(op##_##from)
#define TN__FNS_UNSIGNED(op, from) TN__FNS_OF_SIGNED(op, TN__SIGNED_##from)
#define TN__FNS_OF_SIGNED(op, from) TN__FNS_PLAIN(op, from)
#define TN__ENTRY(op, from, to, fns) \
  { TN__D_##from, TN__D_##to, sizeof(tn__S_##from), sizeof(tn__S_##to), &op##_info, fns },
#define TN__UNARY_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__CAT(TN__FNS_, TN__K_##from)(op, from))

/* For expressions of many instructions: also compiled for AVX-512. */
#define TN__UNARY_HEAVY_LOOP(op, from, to) TN__CAT(TN__UNARY_HEAVY_LOOP_, TN__K_##from)(op, from, to)
#define TN__UNARY_HEAVY_LOOP_PLAIN(op, from, to) \
  TN__UNARY_LOOP_NARROW(op, from, to)            \
  TN__WIDE_LOOPS(TN__UNARY_LOOP_WIDE, op, from, to)
#define TN__UNARY_HEAVY_LOOP_NARROW TN__UNARY_LOOP_NARROW
#define TN__UNARY_HEAVY_LOOP_UNSIGNED TN__UNARY_LOOP_UNSIGNED
#define TN__UNARY_HEAVY_LOOP_VIA_FLOAT(op, from, to) TN__UNARY_VIA(op, from, to, TN__FNS(op##_f32))
#define TN__HEAVY_FNS_PLAIN(op, from) TN__FNS(op##_##from)
#define TN__HEAVY_FNS_NARROW TN__FNS_NARROW
#define TN__HEAVY_FNS_VIA_FLOAT TN__FNS_VIA_FLOAT
#define TN__HEAVY_FNS_UNSIGNED(op, from) TN__HEAVY_FNS_OF_SIGNED(op, TN__SIGNED_##from)
#define TN__HEAVY_FNS_OF_SIGNED(op, from) TN__HEAVY_FNS_PLAIN(op, from)
#define TN__UNARY_HEAVY_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__CAT(TN__HEAVY_FNS_, TN__K_##from)(op, from))

/* For expressions whose form for fused loops is EXPR_op_fused. Float and double have loops of all kinds, half and
 * bfloat16 use float's, and other types have the baseline loop only. */
#define TN__UNARY_FUSED_LOOP(op, from, to) TN__UNARY_FUSED_LOOP_##from(op, from, to)
#define TN__UNARY_FUSED_LOOP_f32(op, from, to)    \
  TN__UNARY_LOOP_NARROW(op, from, to)             \
  TN__AVX2_LOOPS(TN__UNARY_LOOP_WIDE, op, from, to) \
  TN__FUSED_LOOPS(TN__UNARY_LOOP_WHOLE, op, from, to)
#define TN__UNARY_LOOP_WHOLE(op, from, to, end, attribute)                                                        \
  attribute static void op##_##from##_##end(const void *x_, void *out_, int64_t n)                                \
  {                                                                                                               \
    int64_t whole = n & -TN__WHOLE(from, to);                                                                     \
    TN__UNARY_FOR(op##_fused, from, to, whole)                                                                    \
    if (whole < n) tn__unary_rest(op##_##from##_##end, xs + whole, out + whole, n - whole, sizeof(tn__S_##from)); \
  }
/* Applies fn, which needs whole vectors of 64 bytes, to fewer elements, of `size` bytes. */
void tn__unary_rest(tn__unary_fn fn, const void *x, void *out, int64_t n, size_t size);
#define TN__UNARY_FUSED_LOOP_f64 TN__UNARY_FUSED_LOOP_f32
#define TN__UNARY_FUSED_LOOP_f16 TN__UNARY_LOOP_NARROW
#define TN__UNARY_FUSED_LOOP_bf16 TN__UNARY_LOOP_NARROW
#define TN__UNARY_FUSED_LOOP_c64 TN__UNARY_LOOP_NARROW
#define TN__UNARY_FUSED_LOOP_c128 TN__UNARY_LOOP_NARROW
#define TN__UNARY_FUSED_LOOP_vf16(op, from, to) TN__UNARY_FUSED_VIA(op, from, to)
#define TN__UNARY_FUSED_LOOP_vbf16(op, from, to) TN__UNARY_FUSED_VIA(op, from, to)
#define TN__UNARY_FUSED_VIA(op, from, to)                                                                \
  TN__UNARY_VIA(op, from, to, TN__FUSED_FNS(op##_f32))                                                   \
  static void op##_##from##_fused(const void *x, void *out, int64_t n)                                   \
  {                                                                                                      \
    static const tn__unary_fn fns[] = TN__FUSED_FNS(op##_f32);                                           \
    const tn__unary_fn fn = fns[tn__vectors_for(false)];                                                 \
    tn__unary_via_float(&TN__FORMAT_##from, fn, x, out, sizeof(tn__S_##to) == 2, n);                     \
  }
#define TN__UNARY_FUSED_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__UNARY_FUSED_FNS_##from(op, from))
#define TN__UNARY_FUSED_FNS_f32(op, from) TN__FUSED_FNS(op##_##from)
#define TN__UNARY_FUSED_FNS_f64 TN__UNARY_FUSED_FNS_f32
#define TN__UNARY_FUSED_FNS_f16 TN__FNS_NARROW
#define TN__UNARY_FUSED_FNS_bf16 TN__FNS_NARROW
#define TN__UNARY_FUSED_FNS_c64 TN__FNS_NARROW
#define TN__UNARY_FUSED_FNS_c128 TN__FNS_NARROW
#define TN__UNARY_FUSED_FNS_vf16(op, from) TN__PLAIN_FUSED_FNS(op##_##from)
#define TN__UNARY_FUSED_FNS_vbf16(op, from) TN__PLAIN_FUSED_FNS(op##_##from)

/* For rare functions of many instructions: float is computed by the loops of double of the expression `wide`, half and
 * bfloat16 in float. */
#define TN__UNARY_WIDE(op, cost, wide)                           \
  TN__UNARY_LOOP_PLAIN(op, f64, f64)                             \
  static void op##_f32(const void *x, void *out, int64_t n)      \
  {                                                              \
    static const tn__unary_fn fn[] = TN__AVX2_FNS(wide##_f64);   \
    tn__unary_via_double(fn[tn__vectors()], x, out, n);          \
  }                                                              \
  TN__UNARY_SLOW_LOOP(op, vf16, vf16)                            \
  TN__UNARY_SLOW_LOOP(op, vbf16, vbf16)                          \
  TN__UNARY_CREATE(op, cost, TN__VIA_FLOATS, TN__UNARY_WIDE_ENTRY)
#define TN__UNARY_WIDE_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__UNARY_WIDE_FNS_##from(op, from))
#define TN__UNARY_WIDE_FNS_f32 TN__FNS_NARROW
#define TN__UNARY_WIDE_FNS_f64 TN__FNS_PLAIN
#define TN__UNARY_WIDE_FNS_vf16 TN__FNS_NARROW
#define TN__UNARY_WIDE_FNS_vbf16 TN__FNS_NARROW
void tn__unary_via_double(tn__unary_fn fn, const float *x, float *out, int64_t n);

/* For expressions that call functions: the baseline loop only. */
#define TN__UNARY_SLOW_LOOP(op, from, to) TN__CAT(TN__UNARY_SLOW_LOOP_, TN__K_##from)(op, from, to)
#define TN__UNARY_SLOW_LOOP_PLAIN TN__UNARY_LOOP_NARROW
#define TN__UNARY_SLOW_LOOP_NARROW TN__UNARY_LOOP_NARROW
#define TN__UNARY_SLOW_LOOP_VIA_FLOAT(op, from, to) TN__UNARY_VIA(op, from, to, TN__SAME_FNS(op##_f32))
#define TN__UNARY_SLOW_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__FNS_NARROW(op, from))

/* For an expression EXPR_op_near of float and double that holds up to a limit in size: `exact` computes what is above.
 * Double is fused by EXPR_op_near_fused. Other types are as in TN__UNARY_SLOW; TYPES has them, f32 and f64. */
#define TN__UNARY_BOUNDED(op, cost, limit, exact, wide_limit, wide_exact, TYPES, OTHER_TYPES)         \
  TN__UNARY_HEAVY_LOOP_PLAIN(op##_near, f32, f32)                                                     \
  TN__UNARY_FUSED_LOOP_f64(op##_near, f64, f64)                                                       \
  static void op##_f32(const void *x, void *out, int64_t n)                                           \
  {                                                                                                   \
    static const tn__unary_fn fn[] = TN__FNS(op##_near_f32);                                          \
    tn__unary_bounded(fn[tn__vectors()], limit, exact, x, out, n);                                    \
  }                                                                                                   \
  static void op##_f64(const void *x, void *out, int64_t n)                                           \
  {                                                                                                   \
    static const tn__unary_fn fn[] = TN__FUSED_FNS(op##_near_f64);                                    \
    tn__unary_bounded_wide(fn[tn__vectors()], wide_limit, wide_exact, x, out, n);                     \
  }                                                                                                   \
  static void op##_f64_fused(const void *x, void *out, int64_t n)                                     \
  {                                                                                                   \
    static const tn__unary_fn fn[] = TN__FUSED_FNS(op##_near_f64);                                    \
    tn__unary_bounded_wide(fn[tn__vectors_for(false)], wide_limit, wide_exact, x, out, n);            \
  }                                                                                                   \
  OTHER_TYPES(TN__UNARY_SLOW_LOOP, op)                                                                \
  TN__UNARY_CREATE_WITH(op, cost, true, TYPES, TN__UNARY_BOUNDED_ENTRY)
#define TN__UNARY_BOUNDED_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__UNARY_BOUNDED_FNS_##from(op, from))
#define TN__UNARY_BOUNDED_FNS_f32 TN__FNS_NARROW
#define TN__UNARY_BOUNDED_FNS_f64(op, from) TN__PLAIN_FUSED_FNS(op##_##from)
#define TN__UNARY_BOUNDED_FNS_vf16 TN__FNS_NARROW
#define TN__UNARY_BOUNDED_FNS_vbf16 TN__FNS_NARROW
#define TN__UNARY_BOUNDED_FNS_c64 TN__FNS_NARROW
#define TN__UNARY_BOUNDED_FNS_c128 TN__FNS_NARROW
void tn__unary_bounded(tn__unary_fn fn, float limit, float (*exact)(float), const float *x, float *out, int64_t n);
void tn__unary_bounded_wide(tn__unary_fn fn, double limit, double (*exact)(double), const double *x, double *out,
                            int64_t n);

/* Defines the loops of op for a list of types, and op_create, the `create` of its kernels. cost is in nanoseconds per
 * element. */
#define TN__UNARY(op, cost, TYPES) TYPES(TN__UNARY_LOOP, op) TN__UNARY_CREATE(op, cost, TYPES, TN__UNARY_ENTRY)
#define TN__UNARY_HEAVY(op, cost, TYPES) \
  TYPES(TN__UNARY_HEAVY_LOOP, op)        \
  TN__UNARY_CREATE(op, cost, TYPES, TN__UNARY_HEAVY_ENTRY)
#define TN__UNARY_FUSED(op, cost, TYPES) \
  TYPES(TN__UNARY_FUSED_LOOP, op)        \
  TN__UNARY_CREATE_WITH(op, cost, true, TYPES, TN__UNARY_FUSED_ENTRY)
#define TN__UNARY_SLOW(op, cost, TYPES) \
  TYPES(TN__UNARY_SLOW_LOOP, op)        \
  TN__UNARY_CREATE(op, cost, TYPES, TN__UNARY_SLOW_ENTRY)
#define TN__UNARY_CREATE(op, cost, TYPES, ENTRY) TN__UNARY_CREATE_WITH(op, cost, false, TYPES, ENTRY)
#define TN__UNARY_CREATE_WITH(op, cost, fused, TYPES, ENTRY)                            \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)   \
  {                                                                                     \
    static const tn__loop_info op##_info = { cost, TN_OK, NULL, fused };                \
    static const tn__unary_loop loops[] = { TYPES(ENTRY, op) };                         \
    return tn__unary_create(node, loops, sizeof(loops) / sizeof(loops[0]), state, err); \
  }

/* Selects the loop for the node's dtypes; TN_UNIMPLEMENTED if there is none. The state is static, so no `destroy` is
 * needed. */
tn_status tn__unary_create(const tn_operation *node, const tn__unary_loop *loops, size_t n, void **state,
                           tn_error *err);
/* The loop of another op's kernel for the node's dtypes; NULL if it has none or if it can report bad elements. */
const tn__unary_loop *tn__unary_loop_of(const char *op, const tn_operation *node);
tn_status tn__unary_prepare(tn_prepare_ctx *ctx, tn_error *err);
tn_status tn__unary_compute(tn_kernel_ctx *ctx);

/* ---- two inputs ---- */

/* sx and sy are the strides of x and y in elements: 1 or 0, not both 0. Returns true if an element is bad. */
typedef bool (*tn__binary_fn)(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n);
typedef struct tn__binary_loop {
  tn_dtype from, to;
  uint32_t from_size, to_size;
  const tn__loop_info *info;
  tn__binary_fn fn[TN__VECTORS];
} tn__binary_loop;

#define TN__BINARY_FOR(op, from, to, count, xi, yi) \
  TN__IVDEP                                         \
  for (int64_t i = 0; i < (count); i++) {           \
    tn__C_##from x = xi, y = yi;                    \
    out[i] = TN__P_##to(EXPR_##op(from, x, y));     \
  }
/* n > 0 */
#define TN__BINARY_ROWS(op, from, to, count)                                      \
  const tn__S_##from *xs = x_, *ys = y_;                                          \
  tn__S_##to *out = out_;                                                         \
  bool bad = false;                                                               \
  if (sx != 0 && sy != 0) {                                                       \
    TN__BINARY_FOR(op, from, to, count, TN__L_##from(xs[i]), TN__L_##from(ys[i])) \
  } else if (sx != 0) {                                                           \
    tn__C_##from y0 = TN__L_##from(ys[0]);                                        \
    TN__BINARY_FOR(op, from, to, count, TN__L_##from(xs[i]), y0)                  \
  } else {                                                                        \
    tn__C_##from x0 = TN__L_##from(xs[0]);                                        \
    TN__BINARY_FOR(op, from, to, count, x0, TN__L_##from(ys[i]))                  \
  }

/* For expressions that the compiler can vectorise: three loops, one for each pair of strides. The expression may set
 * `bad`. */
#define TN__BINARY_LOOP(op, from, to) TN__CAT(TN__BINARY_LOOP_, TN__K_##from)(op, from, to)
#define TN__BINARY_LOOP_NARROW(op, from, to)                                                             \
  TN__APART static bool op##_##from(const void *x_, int64_t sx, const void *y_, int64_t sy, void *out_,  \
                                    int64_t n)                                                           \
  {                                                                                                      \
    if (n == 0) return false;                                                                            \
    TN__BINARY_ROWS(op, from, to, n)                                                                     \
    return bad;                                                                                          \
  }
#define TN__BINARY_LOOP_WIDE(op, from, to, end, attribute)                                                        \
  attribute static bool op##_##from##_##end(const void *x_, int64_t sx, const void *y_, int64_t sy, void *out_,   \
                                            int64_t n)                                                            \
  {                                                                                                               \
    if (n < TN__WHOLE(from, to)) return op##_##from(x_, sx, y_, sy, out_, n);                                     \
    int64_t whole = n & -TN__WHOLE(from, to);                                                                     \
    TN__BINARY_ROWS(op, from, to, whole)                                                                          \
    if (whole < n) bad |= op##_##from(xs + whole * sx, sx, ys + whole * sy, sy, out + whole, n - whole);          \
    return bad;                                                                                                   \
  }
#define TN__BINARY_LOOP_PLAIN(op, from, to) \
  TN__BINARY_LOOP_NARROW(op, from, to)      \
  TN__AVX2_LOOPS(TN__BINARY_LOOP_WIDE, op, from, to)
#define TN__BINARY_LOOP_UNSIGNED(op, from, to)
#define TN__BINARY_LOOP_VIA_FLOAT(op, from, to)                                                               \
  static bool op##_##from(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n)         \
  {                                                                                                           \
    static const tn__binary_fn fn[] = TN__AVX2_FNS(op##_f32);                                                    \
    return tn__binary_via_float(&TN__FORMAT_##from, fn, x, sx, y, sy, out, sizeof(tn__S_##to) == 2, n);       \
  }
bool tn__binary_via_float(const tn__short_format *format, const tn__binary_fn *fn, const void *x, int64_t sx,
                          const void *y, int64_t sy, void *out, bool to_short, int64_t n);

/* For expressions of many instructions: loops over operands that are not broadcast, for which a scalar is repeated in a
 * block. The form for fused loops of double is EXPR_op_fused. */
typedef void (*tn__dense_fn)(const void *x, const void *y, void *out, int64_t n);
#define TN__DENSE_FOR(op, from, to, count)                          \
  const tn__S_##from *xs = x_, *ys = y_;                            \
  tn__S_##to *out = out_;                                           \
  TN__IVDEP                                                         \
  for (int64_t i = 0; i < (count); i++) {                           \
    tn__C_##from x = TN__L_##from(xs[i]), y = TN__L_##from(ys[i]);  \
    out[i] = TN__P_##to(EXPR_##op(from, x, y));                     \
  }
#define TN__DENSE_LOOP_NARROW(op, from, to)                                                       \
  TN__APART static void op##_##from##_dense(const void *x_, const void *y_, void *out_, int64_t n) \
  {                                                                                               \
    TN__DENSE_FOR(op, from, to, n)                                                                \
  }
#define TN__DENSE_LOOP_WIDE(op, from, to, end, attribute)                                                \
  attribute static void op##_##from##_dense_##end(const void *x_, const void *y_, void *out_, int64_t n) \
  {                                                                                                      \
    int64_t whole = n & -TN__WHOLE(from, to);                                                            \
    TN__DENSE_FOR(op, from, to, whole)                                                                   \
    if (whole < n) op##_##from##_dense(xs + whole, ys + whole, out + whole, n - whole);                  \
  }
#define TN__DENSE_LOOP_WHOLE(op, from, to, end, attribute)                                                       \
  attribute static void op##_##from##_dense_##end(const void *x_, const void *y_, void *out_, int64_t n)         \
  {                                                                                                              \
    int64_t whole = n & -TN__WHOLE(from, to);                                                                    \
    TN__DENSE_FOR(op##_fused, from, to, whole)                                                                   \
    if (whole < n)                                                                                               \
      tn__dense_rest(op##_##from##_dense_##end, xs + whole, ys + whole, out + whole, n - whole, sizeof(*xs));    \
  }
#define TN__DENSE_STRIDED(name, op, from, FNS, reproducible)                                                      \
  static bool name(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n)                    \
  {                                                                                                               \
    static const tn__dense_fn fn[] = FNS(op##_##from##_dense);                                                    \
    tn__binary_dense(fn[tn__vectors_for(reproducible)], sizeof(tn__S_##from), x, sx, y, sy, out, n);              \
    return false;                                                                                                 \
  }
/* As tn__unary_rest. */
void tn__dense_rest(tn__dense_fn fn, const void *x, const void *y, void *out, int64_t n, size_t size);
/* Applies fn to operands of `size` bytes an element, of which one may have the stride 0. */
void tn__binary_dense(tn__dense_fn fn, size_t size, const void *x, int64_t sx, const void *y, int64_t sy, void *out,
                      int64_t n);
#define TN__BINARY_DENSE_LOOP(op, from, to) TN__BINARY_DENSE_LOOP_##from(op, from, to)
#define TN__BINARY_DENSE_LOOP_f32(op, from, to)      \
  TN__DENSE_LOOP_NARROW(op, from, to)                \
  TN__AVX2_LOOPS(TN__DENSE_LOOP_WIDE, op, from, to)  \
  TN__DENSE_STRIDED(op##_##from, op, from, TN__AVX2_FNS, true)
#define TN__BINARY_DENSE_LOOP_f64(op, from, to)                 \
  TN__DENSE_LOOP_NARROW(op, from, to)                           \
  TN__AVX2_LOOPS(TN__DENSE_LOOP_WIDE, op, from, to)             \
  TN__FUSED_LOOPS(TN__DENSE_LOOP_WHOLE, op, from, to)           \
  TN__DENSE_STRIDED(op##_##from, op, from, TN__FUSED_FNS, true) \
  TN__DENSE_STRIDED(op##_##from##_fused, op, from, TN__FUSED_FNS, false)
#define TN__BINARY_DENSE_LOOP_vf16(op, from, to) TN__DENSE_VIA_FLOAT(op, from, to)
#define TN__BINARY_DENSE_LOOP_vbf16(op, from, to) TN__DENSE_VIA_FLOAT(op, from, to)
#define TN__DENSE_VIA_FLOAT(op, from, to)                                                              \
  static bool op##_##from(const void *x, int64_t sx, const void *y, int64_t sy, void *out, int64_t n)  \
  {                                                                                                    \
    static const tn__binary_fn fn[] = TN__SAME_FNS(op##_f32);                                          \
    return tn__binary_via_float(&TN__FORMAT_##from, fn, x, sx, y, sy, out, sizeof(tn__S_##to) == 2, n); \
  }
#define TN__BINARY_DENSE_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__BINARY_DENSE_FNS_##from(op, from))
#define TN__BINARY_DENSE_FNS_f32 TN__FNS_NARROW
#define TN__BINARY_DENSE_FNS_f64(op, from) TN__PLAIN_FUSED_FNS(op##_##from)
#define TN__BINARY_DENSE_FNS_vf16 TN__FNS_NARROW
#define TN__BINARY_DENSE_FNS_vbf16 TN__FNS_NARROW

/* For expressions that call functions: one loop for all strides. */
#define TN__BINARY_SLOW_LOOP(op, from, to)                                                               \
  static bool op##_##from(const void *x_, int64_t sx, const void *y_, int64_t sy, void *out_, int64_t n) \
  {                                                                                                      \
    const tn__S_##from *xs = x_, *ys = y_;                                                               \
    tn__S_##to *out = out_;                                                                              \
    bool bad = false;                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                    \
      tn__C_##from x = TN__L_##from(xs[i * sx]), y = TN__L_##from(ys[i * sy]);                           \
      out[i] = TN__P_##to(EXPR_##op(from, x, y));                                                        \
    }                                                                                                    \
    return bad;                                                                                          \
  }
#define TN__BINARY_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__CAT(TN__FNS_, TN__K_##from)(op, from))
#define TN__BINARY_SLOW_ENTRY(op, from, to) TN__ENTRY(op, from, to, TN__FNS_NARROW(op, from))

/* Defines the loops and op_create. FAST_TYPES are vectorised, SLOW_TYPES are not; use TN__NO_TYPES for an empty
 * list. TN__BINARY_DENSE is for expressions of many instructions. */
#define TN__BINARY_FAILING(op, cost, FAST_TYPES, SLOW_TYPES, fault, text) \
  FAST_TYPES(TN__BINARY_LOOP, op)                                         \
  SLOW_TYPES(TN__BINARY_SLOW_LOOP, op)                                    \
  TN__BINARY_CREATE(op, cost, FAST_TYPES, SLOW_TYPES, fault, text)
#define TN__BINARY_CREATE(op, cost, TYPES, MORE_TYPES, fault, text)                                          \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)                        \
  {                                                                                                          \
    static const tn__loop_info op##_info = { cost, fault, text, false };                                     \
    static const tn__binary_loop loops[] = { TYPES(TN__BINARY_ENTRY, op) MORE_TYPES(TN__BINARY_SLOW_ENTRY, op) }; \
    return tn__binary_create(node, loops, sizeof(loops) / sizeof(loops[0]), state, err);                     \
  }
#define TN__BINARY_DENSE(op, cost, TYPES, SLOW_TYPES)                                                               \
  TYPES(TN__BINARY_DENSE_LOOP, op)                                                                                  \
  SLOW_TYPES(TN__BINARY_SLOW_LOOP, op)                                                                              \
  static tn_status op##_create(const tn_operation *node, void **state, tn_error *err)                               \
  {                                                                                                                 \
    static const tn__loop_info op##_info = { cost, TN_OK, NULL, true };                                             \
    static const tn__binary_loop loops[] = { TYPES(TN__BINARY_DENSE_ENTRY, op)                                      \
                                             SLOW_TYPES(TN__BINARY_SLOW_ENTRY, op) };                               \
    return tn__binary_create(node, loops, sizeof(loops) / sizeof(loops[0]), state, err);                            \
  }
#define TN__BINARY(op, cost, FAST_TYPES, SLOW_TYPES) TN__BINARY_FAILING(op, cost, FAST_TYPES, SLOW_TYPES, TN_OK, NULL)
#define TN__NO_TYPES(X, op)

tn_status tn__binary_create(const tn_operation *node, const tn__binary_loop *loops, size_t n, void **state,
                            tn_error *err);
const tn__binary_loop *tn__binary_loop_of(const char *op, const tn_operation *node); /* as tn__unary_loop_of */
/* The same for an op whose two operands must have the same shape, such as ReluGrad. */
const tn__binary_loop *tn__gradient_loop_of(const char *op, const tn_operation *node);
/* Inputs 0 and 1 are broadcast together. */
tn_status tn__binary_prepare(tn_prepare_ctx *ctx, tn_error *err);
/* No broadcasting, as for gradients: both inputs must have the same number of elements; the output has the shape of
 * input 0. */
tn_status tn__binary_prepare_same(tn_prepare_ctx *ctx, tn_error *err);
void tn__binary_destroy_shape_state(void *shape_state);
tn_status tn__binary_compute(tn_kernel_ctx *ctx);

/* ---- tables ---- */

/* Entries of a family's op and kernel tables. */
#define TN__ELEMENTWISE_OP(name_, inputs_, outputs_, attrs_, traits_, infer_, summary_)                    \
  { .struct_size = TN_OP_DEF_SIZE, .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, \
    .traits = TN_TRAIT_ELEMENTWISE | (traits_), .infer = infer_, .summary = summary_ }
#define TN__UNARY_KERNEL(op_, types_, fn)                                                               \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = #fn "_cpu", \
    .rank = TN_RANK_C, .create = fn##_create, .prepare = tn__unary_prepare, .compute = tn__unary_compute }
#define TN__BINARY_KERNEL(op_, types_, fn)                                                              \
  { .struct_size = TN_KERNEL_DEF_SIZE, .op = op_, .device = "CPU", .types = types_, .name = #fn "_cpu", \
    .rank = TN_RANK_C, .create = fn##_create, .prepare = tn__binary_prepare,                            \
    .destroy_shape_state = tn__binary_destroy_shape_state, .compute = tn__binary_compute }

#endif
